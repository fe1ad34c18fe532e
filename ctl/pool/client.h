/* SPDX-License-Identifier: GPL-2.0-only */
/* Commands of mgpu-poold that call the API at the Unix socket. */
#ifndef POOL_CLIENT_H
#define POOL_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

/**
 * client_call() - call the API
 * @socket: path of the Unix socket
 * @method: method
 * @path: path and query
 * @body: body, which is freed; NULL for none
 * @status: result: status of HTTP
 *
 * Complains when there is no answer.
 *
 * Return: the answer, NULL for none.
 */
struct json_object *client_call(const char *socket, const char *method, const char *path,
				struct json_object *body, int *status);

/* The same for a call that must succeed: complains about an error of the service. */
struct json_object *client_do(const char *socket, const char *method, const char *path,
			      struct json_object *body);

/* Whether a service listens at the socket. */
bool client_reaches(const char *socket);

/**
 * struct client_wish - options of the command request
 *
 * NULL or 0: not given.
 */
struct client_wish {
	const char *vm;
	const char *kind;
	const char *key;
	const char *target;
	const char *precision;
	const char *type;
	uint64_t size_mib;
	uint64_t memory_mib;
	uint64_t lease_s;
	uint64_t wait_s;
};

/* Return the exit status. */
int client_request(const char *socket, const struct client_wish *wish, bool json);
int client_list(const char *socket, bool all, bool json);
int client_release(const char *socket, const char *id, bool done, bool json);
int client_export(const char *socket);
int client_token(const char *socket, const char *name, const char *role, const char *project,
		 int64_t expires);

#endif /* POOL_CLIENT_H */
