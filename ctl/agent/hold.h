/* SPDX-License-Identifier: GPL-2.0-only */
/* A GPU from the request to the release: what "run" and "watch" have in common. */
#ifndef AGENT_HOLD_H
#define AGENT_HOLD_H

#include "kept.h"
#include "link.h"
#include "use.h"

/**
 * struct wish - what a request says; texts are as on the command line
 * @kind: kind of work
 * @target: any, whole, vgpu; "": any
 * @lease: seconds, 0: until released
 */
struct wish {
	char kind[64];
	char target[16];
	char precision[16];
	char capabilities[16];
	char type[64];
	uint64_t size_mib;
	uint64_t memory_mib;
	uint32_t weight;
	uint32_t floor_mhz;
	uint32_t lease;
};

/**
 * wish_set() - take a word of a request
 * @wish: result
 * @name: kind, target, precision, capabilities, type, size, memory, weight, floor or lease
 * @value: its value
 *
 * Return: 0, -ENOENT for an unknown name, -EINVAL.
 */
int wish_set(struct wish *wish, const char *name, const char *value);
/* Whether jobs of two wishes can run on one GPU, one after the other. */
bool wish_alike(const struct wish *a, const struct wish *b);
/* Write the wish's fields. */
void wish_write(const struct wish *wish, struct wire_text *t);

/**
 * struct hold - a GPU, or the wish for it
 * @conf: settings
 * @link: connection
 * @kept: what is on disk
 * @say: tell on standard error where it stands
 * @state: of the request: queued, attaching, active, releasing, released, failed, cancelled
 * @place: in the queue
 * @reason: why it waits
 * @why: why this GPU, or why it failed
 * @target: whole or vgpu
 * @gpu: name of the GPU, on its host
 * @version: of the state
 * @warned: time of the service's warning that the GPU is idle, 0: none
 * @until: end of the lease, by the service's clock, seconds since 1970; 0: none
 * @lease: time to that at the last answer, seconds
 * @until_said: end of the lease that a notice told of
 * @driver: that has the device
 * @node: render node, "": none
 * @meter: use; without an address there is no device to look at
 * @look_ns: time of the next look at use, CLOCK_MONOTONIC
 * @report_ns: time of the next report
 */
struct hold {
	const struct conf *conf;
	struct link *link;
	struct kept kept;
	bool say;
	char state[16];
	uint64_t place;
	char reason[512];
	char why[512];
	char target[16];
	char gpu[128];
	uint64_t version;
	uint64_t warned;
	uint64_t until;
	uint64_t lease;
	uint64_t until_said;
	char driver[64];
	char node[64];
	struct meter meter;
	uint64_t look_ns;
	uint64_t report_ns;
};

/* Take the answer of the link as the state. Return 0 or -EBADMSG. */
int hold_take(struct hold *h);

/**
 * hold_ask() - ask for a GPU, or for the one that was asked for before
 * @h: with @conf, @link and @kept
 * @wish: what is wanted
 *
 * Return: 0; -EINTR; -EACCES with a sentence complained if the service refuses.
 */
int hold_ask(struct hold *h, const struct wish *wish);
/* Wait until the GPU is attached. Return 0; -EAGAIN if !@wait and it is queued; like hold_ask(). */
int hold_wait(struct hold *h, bool wait);
/* Begin to look at the use of a device. Return 0 or -ENODEV. */
int hold_begin(struct hold *h, const struct device *d);
/* Wait until the guest's driver has it. Return 0; -EINTR; -ENODEV, complained. */
int hold_device(struct hold *h);
/**
 * hold_tick() - look at use, report it, and take the state, as far as due
 * @h: an attached GPU
 * @now_ns: CLOCK_MONOTONIC
 *
 * Return: 0; -ENODEV if the service takes the GPU back, said; -EINTR. A service that does not
 * answer is no error.
 */
int hold_tick(struct hold *h, uint64_t now_ns);
/* When hold_tick() is due. */
uint64_t hold_due(const struct hold *h);
/* Give it back. Return 0, or -errno, and then a later start does it. */
int hold_release(struct hold *h, bool done, unsigned int patience);
/* Release what earlier runs could not, and drop what ended without them. */
void hold_finish_all(const struct conf *conf, struct link *link);
/* Whether the request is over, or about to be. */
bool hold_lost(const struct hold *h);

#endif /* AGENT_HOLD_H */
