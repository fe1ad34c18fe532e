/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sandbox of a worker.  A guest's commands reach the GPU's driver in user space, which
 * was not written for hostile input: this bounds what a guest gets that takes it over.
 */
#ifndef RENDERD_SANDBOX_H
#define RENDERD_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Memory of a worker beyond the resources of its guest, bytes. */
#define SANDBOX_SPARE	(96ull << 20)

/* Folder in which programs can make files, if there are programs, and their size. */
#define SANDBOX_FILES		"/tmp"
#define SANDBOX_FILES_SIZE	"256m"

/* A process in a sandbox that aborts ends with this status and the number of the signal. */
#define SANDBOX_ABORTED	128

/**
 * sandbox_pids() - have the next child be the first process of a PID namespace
 *
 * Call it again before each fork().
 *
 * Return: 0 or a negative errno.
 */
int sandbox_pids(void);

/**
 * struct sandbox - a sandbox that is prepared
 * @uid: account to run as
 * @gid: its group
 * @node_gid: group of the render node; 0 for none
 */
struct sandbox {
	uid_t uid;
	gid_t gid;
	gid_t node_gid;
};

/**
 * sandbox_prepare() - give up what a process does not need to become a worker
 * @s: result
 * @node: path of the render node that it uses; NULL for none
 * @user: account to run as; NULL for mgpu-renderd, or nobody where that is missing
 * @programs: a server of programs will be started: there are /sys, OpenCL's settings, and room for
 *	files
 *
 * Afterwards the process has namespaces and a session of its own, without a network, and a file
 * system for reading, which has libraries, the node and little else.  It is still root. The
 * caller is root, has one thread, and was started after sandbox_pids().
 *
 * Return: 0 or a negative errno after a message on standard error.
 */
int sandbox_prepare(struct sandbox *s, const char *node, const char *user, bool programs);

/**
 * sandbox_enter() - give up what a renderer does not need to start
 * @s: of sandbox_prepare()
 *
 * Afterwards the process is another user without capabilities, and the cgroups that it has are
 * the root of what it sees of them.  It has one thread before.
 *
 * Return: 0 or a negative errno after a message on standard error.
 */
int sandbox_enter(const struct sandbox *s);

/**
 * sandbox_seal() - give up what a renderer that has started does not need
 * @memory: bytes that the resources of the guest may have
 * @servers: it has started servers, of Venus or of programs
 *
 * Afterwards the process can make threads and no other processes, makes only system calls
 * of a list, and can allocate @memory and SANDBOX_SPARE bytes more than it has.  A call
 * that is not in the list fails with EPERM.
 *
 * Return: 0 or a negative errno after a message on standard error.
 */
int sandbox_seal(uint64_t memory, bool servers);

/**
 * sandbox_server() - give up what a server of Venus does not need
 * @memory: bytes that the guest's resources may have
 *
 * The caller is a child of a worker, after sandbox_enter(). Afterwards it makes only system calls
 * of a list, which has those of a worker and those that start processes, and each of its
 * processes can allocate @memory and SANDBOX_SPARE bytes more than a worker that has started.
 *
 * Return: 0 or a negative errno after a message on standard error.
 */
int sandbox_server(uint64_t memory);

/**
 * sandbox_programs() - give up what a server of programs that use OpenCL does not need
 *
 * The caller is a child of a worker, after sandbox_enter() with programs. Afterwards it makes only
 * system calls of a list, which has those of sandbox_server() and those that compilers and linkers
 * make. The program's process bounds its memory itself, and the VM's cgroup all of it.
 *
 * Return: 0 or a negative errno after a message on standard error.
 */
int sandbox_programs(void);

#endif /* RENDERD_SANDBOX_H */
