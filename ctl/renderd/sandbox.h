/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sandbox of a worker.  A guest's commands reach the GPU's driver in user space, which
 * was not written for hostile input: this bounds what a guest gets that takes it over.
 */
#ifndef RENDERD_SANDBOX_H
#define RENDERD_SANDBOX_H

#include <stdint.h>
#include <sys/types.h>

/* Memory of a worker beyond the resources of its guest, bytes. */
#define SANDBOX_SPARE	(96ull << 20)

/**
 * sandbox_pids() - have the next child be the first process of a PID namespace
 *
 * Call it again before each fork().
 *
 * Return: 0 or a negative errno.
 */
int sandbox_pids(void);

/**
 * sandbox_enter() - give up what a renderer does not need to start
 * @node: path of the render node that it uses; NULL for none
 * @user: account to run as; NULL for mgpu-renderd, or nobody where that is missing
 *
 * Afterwards the process has namespaces and a session of its own, without a network; a file
 * system for reading, which has libraries, the node and little else; another user; and no
 * capabilities.  The caller is root, has one thread, and was started after sandbox_pids().
 *
 * Return: 0 or a negative errno after a message on standard error.
 */
int sandbox_enter(const char *node, const char *user);

/**
 * sandbox_seal() - give up what a renderer that has started does not need
 * @memory: bytes that the resources of the guest may have
 *
 * Afterwards the process can make threads and no other processes, makes only system calls
 * of a list, and can allocate @memory and SANDBOX_SPARE bytes more than it has.  A call
 * that is not in the list fails with EPERM.
 *
 * Return: 0 or a negative errno after a message on standard error.
 */
int sandbox_seal(uint64_t memory);

#endif /* RENDERD_SANDBOX_H */
