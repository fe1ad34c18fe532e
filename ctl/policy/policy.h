/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mgpu-policy: loads scheduling policies in BPF.  Unless noted, functions return 0 or
 * -errno, and print an error and what to do on standard error.
 */
#ifndef MGPU_POLICY_POLICY_H
#define MGPU_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mgpu.h"

/* The kernel's bounds, kmod/sched/policy_bpf.h */
#define TIMEOUT_MIN	100
#define TIMEOUT_MAX	30000

enum exit_status {
	STATUS_OK,
	STATUS_FAILED,
	STATUS_USAGE,
	STATUS_EVICTED,		/* the policy broke its contract */
	STATUS_ENDED,		/* the policy was ended from outside */
};

/* ---- examples.c ---- */

/**
 * struct example - a policy that is part of the program
 * @name: its name
 * @help: effect and variables
 * @start: begin of its object
 * @end: end of its object
 */
struct example {
	const char *name;
	const char *help;
	const unsigned char *start;
	const unsigned char *end;
};

extern const struct example examples[];
extern const size_t nr_examples;

/* ---- object.c ---- */

#define MAX_SETS	16

/**
 * struct request - policy to load
 * @what: name of an example, or path of an object
 * @dev: ID or name of the device; NULL for every device
 * @timeout_ms: timeout of the kernel's watchdog, ms; 0 for the policy's own
 * @set: VAR=VALUE of global variables
 * @nr_sets: number of entries of @set
 * @pin: path at which to pin the link; NULL: hold the link
 * @verbose: print messages of libbpf and the verifier
 */
struct request {
	const char *what;
	const char *dev;
	uint32_t timeout_ms;
	const char *set[MAX_SETS];
	size_t nr_sets;
	const char *pin;
	bool verbose;
};

struct policy;

/*
 * policy_open() reads the object and applies the settings of the request; dev_id 0 is
 * every device.  policy_attach() loads the policy into the kernel and puts it in force;
 * policy_replace() puts it in force in place of the policy of a link.  policy_close() ends
 * the policy, unless the link is pinned.
 */
int policy_open(struct policy **policy, const struct request *req,
		uint32_t dev_id);
int policy_attach(struct policy *p);
int policy_replace(struct policy *p, int link_fd);
int policy_pin(struct policy *p, const char *path);
void policy_close(struct policy *p);

const char *policy_name(const struct policy *p);
int policy_link_fd(const struct policy *p);

/* Open the link with this path or ID; returns a file descriptor. */
int link_open(const char *key);
uint32_t link_id(int fd);
int link_detach(int fd);

/* ---- watch.c ---- */

struct watch;

/* Start to watch; must be called before the policy is loaded, so that no event is missed. */
int watch_begin(struct watch **watch, const char *dev_name,
		const char *policy);
/* Devices on which the policy is in force, as "mgpu_soft.0, ..."; "" for none. */
const char *watch_where(struct watch *w);
/* Wait for a signal or the end of the policy; returns the program's exit status. */
int watch_run(struct watch *w, int link_fd);
void watch_end(struct watch *w);

#endif /* MGPU_POLICY_POLICY_H */
