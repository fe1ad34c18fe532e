/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The control socket of the listener: root and the members of a group read there what its programs
 * do.  It is a socket like mgpud's, and uses the same code.
 */
#ifndef REMOTE_CONTROL_H
#define REMOTE_CONTROL_H

#include "apps.h"

struct control_socket;

/**
 * struct control_api - name of an API
 * @number: as in struct remote_hello; 0 ends a list
 * @name: its name
 */
struct control_api {
	uint32_t number;
	const char *name;
};

/**
 * control_open() - open the control socket
 * @control: result
 * @path: where
 * @group: group that may use it; "auto" for mgpu if that exists
 * @apps: the programs
 * @apis: names of the APIs
 *
 * Return: 0, or a negative errno after a line in the log.
 */
int control_open(struct control_socket **control, const char *path, const char *group,
		 struct apps *apps, const struct control_api *apis);
void control_close(struct control_socket *control);

/* For poll(): readable when control_run() must be called. */
int control_fd(const struct control_socket *control);
void control_run(struct control_socket *control);

#endif /* REMOTE_CONTROL_H */
