/* SPDX-License-Identifier: GPL-2.0-only */
/* A worker: executes the commands of one vGPU, in a process of its own. */
#ifndef RENDERD_WORKER_H
#define RENDERD_WORKER_H

#include <stdint.h>

/**
 * worker_main() - serve a vGPU until its VMM closes it
 * @fd: file of /dev/mgpu-userN
 * @vgpu: ID of the vGPU
 * @node: path of a render node; NULL to render without a GPU
 *
 * Return: 0 when the vGPU needs this worker no more, or a negative errno after a message on
 * standard error.
 */
int worker_main(int fd, uint32_t vgpu, const char *node);

#endif /* RENDERD_WORKER_H */
