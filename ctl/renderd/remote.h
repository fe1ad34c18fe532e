/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Contexts of a guest's programs that use remoted OpenCL (../remote/vgpu.h): each has a process of
 * mgpu-remoted, and a worker carries the bytes between both.
 */
#ifndef RENDERD_REMOTE_H
#define RENDERD_REMOTE_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/virtio_gpu.h>

#include "processes.h"

/* Contexts of a guest, each with two files to poll. */
#define REMOTE_CONTEXTS	16u
#define REMOTE_FDS	(2 * REMOTE_CONTEXTS)

struct remote;

/**
 * struct remote_ops - what contexts need
 * @memory: return the guest's memory of a resource, as one piece, and its length in bytes; NULL for
 *	none
 * @done: a stream is complete, of which remote_submit() has returned 0
 */
struct remote_ops {
	void *(*memory)(void *arg, uint32_t resource, size_t *len);
	void (*done)(void *arg, uint32_t seq, uint32_t type);
};

/**
 * remote_start() - start the process that starts those of programs
 * @ps: result
 * @program: mgpu-remoted, open; or -1 to look for it beside this program
 * @sandbox: give up what it does not need
 * @memory: bytes of objects that each program may have
 *
 * It ends with this process.
 *
 * Return: a socket to it, for remote_new(), or a negative errno after a message on standard error.
 */
int remote_start(struct processes *ps, int program, bool sandbox, uint64_t memory);

/* Open mgpu-remoted, which is beside this program. Return a file, or a negative errno. */
int remote_open_program(void);

/**
 * remote_new() - prepare for contexts
 * @control: of remote_start(), which is the result's in any case
 * @ops: what they need; must stay valid
 * @arg: for @ops
 *
 * Return: NULL without memory.
 */
struct remote *remote_new(int control, const struct remote_ops *ops, void *arg);
void remote_free(struct remote *r);

/**
 * remote_execute() - execute a command, if it is one of a context here
 * @r: contexts; NULL for none
 * @seq: number of the command
 * @hdr: the command, which the module has checked
 * @type: set to VIRTIO_GPU_RESP_*, or 0 if remote_ops.done is called with that
 *
 * Return: false if the command is another renderer's.
 */
bool remote_execute(struct remote *r, uint32_t seq, const struct virtio_gpu_ctrl_hdr *hdr,
		    uint32_t *type);

/* Return whether streams are not complete. */
bool remote_busy(const struct remote *r);

/* Return whether there are contexts. */
bool remote_used(const struct remote *r);

/* Return whether a program's process has more to do, as far as it was sent. */
bool remote_works(const struct remote *r);

/* Set up to REMOTE_FDS files that remote_poll() waits for. Return their number. */
unsigned int remote_fds(struct remote *r, struct pollfd *fds);

/**
 * remote_poll() - carry bytes, and complete streams
 * @r: contexts; NULL for none
 * @now_ns: time, monotonic
 *
 * Return: nanoseconds until the next call even if no file is ready; UINT64_MAX if there is no need.
 */
uint64_t remote_poll(struct remote *r, uint64_t now_ns);

#endif /* RENDERD_REMOTE_H */
