/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A spare: the process of a worker that has no vGPU yet.  It has loaded the libraries of the
 * renderer, which takes longer than all else that needs no GPU and no vGPU.
 */
#ifndef RENDERD_SPARE_H
#define RENDERD_SPARE_H

#include <stddef.h>
#include <stdint.h>

/* Longest list of libraries, bytes. */
#define SPARE_LIBRARIES		16384

/**
 * struct spare_order - what a spare needs to become a worker
 * @vgpu: ID of the vGPU
 * @fd: file of /dev/mgpu-userN
 * @record: file of recorder_create(), or -1
 */
struct spare_order {
	uint32_t vgpu;
	int fd;
	int record;
};

/* ---- the supervisor's side ---- */

/**
 * spare_list_libraries() - list the files whose code this process has mapped
 * @list: set to their paths, one a line; what does not fit is left out
 * @size: of @list, bytes
 */
void spare_list_libraries(char *list, size_t size);

/**
 * spare_load() - have a spare load libraries: the first thing that it is told
 * @fd: socket (SOCK_SEQPACKET) to the spare
 * @list: of spare_list_libraries(), shorter than SPARE_LIBRARIES
 *
 * Return: 0 or a negative errno.
 */
int spare_load(int fd, const char *list);

/**
 * spare_give() - make a spare a worker
 * @fd: socket to the spare, which has been told of libraries
 * @order: its files stay the caller's
 *
 * Return: 0 or a negative errno.
 */
int spare_give(int fd, const struct spare_order *order);

/* ---- the spare's side ---- */

/**
 * spare_prepare() - load the libraries that the supervisor names
 * @fd: socket to the supervisor
 *
 * Return: 0; -ENODEV if the supervisor has died; -EOPNOTSUPP if a library made a thread, with
 * which the process cannot join cgroups; or another negative errno.
 */
int spare_prepare(int fd);

/**
 * spare_wait() - wait for an order
 * @fd: socket to the supervisor, after spare_prepare()
 * @order: set to the order; its files close on exec
 *
 * Return: 0; -ENODEV if the supervisor wants no worker, or has died; or another negative errno.
 */
int spare_wait(int fd, struct spare_order *order);

#endif /* RENDERD_SPARE_H */
