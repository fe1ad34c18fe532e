/* SPDX-License-Identifier: GPL-2.0-only */
/* A worker: executes the commands of one vGPU, in a process of its own. */
#ifndef RENDERD_WORKER_H
#define RENDERD_WORKER_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct worker_options - how a worker renders
 * @node: path of a render node; NULL to render without a GPU
 * @user: account to run as; NULL for the default of sandbox_prepare()
 * @sandbox: give up what a renderer does not need
 * @dmabuf: VMMs show dma-bufs: what the supervisor makes the device for
 * @venus: guests get Vulkan
 * @remote: guests get remoted OpenCL
 * @record: folder for recordings, which the supervisor creates; NULL for none
 */
struct worker_options {
	const char *node;
	const char *user;
	bool sandbox;
	bool dmabuf;
	bool venus;
	bool remote;
	const char *record;
};

/**
 * worker_main() - wait for a vGPU, and serve it until its VMM closes it
 * @orders: socket to the supervisor, see spare_wait(); the worker's in any case
 * @o: options
 *
 * Return: 0 when it is needed no more; -EOPNOTSUPP if a library that it has loaded made a
 * thread; or another negative errno after a message on standard error.
 */
int worker_main(int orders, const struct worker_options *o);

#endif /* RENDERD_WORKER_H */
