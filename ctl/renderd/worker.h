/* SPDX-License-Identifier: GPL-2.0-only */
/* A worker: executes the commands of one vGPU, in a process of its own. */
#ifndef RENDERD_WORKER_H
#define RENDERD_WORKER_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct worker_options - how a worker renders
 * @node: path of a render node; NULL to render without a GPU
 * @user: account to run as; NULL for the default of sandbox_enter()
 * @sandbox: give up what a renderer does not need
 * @dmabuf: VMMs show dma-bufs: what the supervisor makes the device for
 * @record: folder for recordings, which the supervisor creates; NULL for none
 */
struct worker_options {
	const char *node;
	const char *user;
	bool sandbox;
	bool dmabuf;
	const char *record;
};

/**
 * worker_main() - serve a vGPU until its VMM closes it
 * @fd: file of /dev/mgpu-userN
 * @vgpu: ID of the vGPU
 * @record: file of recorder_create(), or a negative number
 * @o: options
 *
 * Return: 0 when the vGPU needs this worker no more, or a negative errno after a message on
 * standard error.
 */
int worker_main(int fd, uint32_t vgpu, int record, const struct worker_options *o);

#endif /* RENDERD_WORKER_H */
