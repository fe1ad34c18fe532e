/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mgpu-policy: loads scheduling policies in BPF.  Functions return 0 or -errno
 * and say on standard error what is wrong and how to mend it, unless said.
 */
#ifndef MGPU_POLICY_POLICY_H
#define MGPU_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mgpu.h"

/* The kernel's bounds, kmod/policy_bpf.h */
#define TIMEOUT_MIN	100
#define TIMEOUT_MAX	30000

enum exit_status {
	STATUS_OK,
	STATUS_FAILED,
	STATUS_USAGE,
	STATUS_EVICTED,		/* the policy broke its contract */
	STATUS_ENDED,		/* somebody else ended it */
};

/* A sentence on standard error, behind the program's name. */
void complain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- examples.c ---- */

/**
 * struct example - a policy that is part of the program
 * @name: its name
 * @help: what it does, and its variables
 * @start: its object
 * @end: behind it
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
 * struct request - what to load
 * @what: name of an example or path of an object
 * @dev: device, its id or name; NULL for every one
 * @timeout_ms: watchdog; 0 for what the policy says
 * @set: VAR=VALUE
 * @nr_sets: how many of them
 * @pin: where to leave the link; NULL: stay and hold it
 * @verbose: show what libbpf and the verifier say
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
 * policy_open reads the object and makes the settings of the request; dev_id is
 * for the kernel, 0 for every device.  policy_attach loads it into the kernel
 * and puts it in force; policy_replace does so in place of what a link stands
 * for.  policy_close takes it away, unless the link is pinned.
 */
int policy_open(struct policy **policy, const struct request *req,
		uint32_t dev_id);
int policy_attach(struct policy *p);
int policy_replace(struct policy *p, int link_fd);
int policy_pin(struct policy *p, const char *path);
void policy_close(struct policy *p);

const char *policy_name(const struct policy *p);
int policy_link_fd(const struct policy *p);

/* The link that a path or an id stands for, as a file descriptor. */
int link_open(const char *key);
uint32_t link_id(int fd);
int link_detach(int fd);

/* ---- watch.c ---- */

struct watch;

/* Begin before the policy is loaded, so that nothing is missed. */
int watch_begin(struct watch **watch, const char *dev_name,
		const char *policy);
/* Where it is in force, as "mgpu_soft.0, ..."; "" for nowhere. */
const char *watch_where(struct watch *w);
/* Until a signal comes or the policy is over.  The program's exit status. */
int watch_run(struct watch *w, int link_fd);
void watch_end(struct watch *w);

#endif /* MGPU_POLICY_POLICY_H */
