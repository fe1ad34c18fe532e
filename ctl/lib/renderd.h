/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records of running mgpu-renderds: /run/mgpu/renderd-GPU.pid, where GPU is the address of
 * the PCI function, or "none" without a GPU.  The first line is the process ID; lines "node
 * PATH", "device NAME", "inode N" of its types in sysfs, "user N" and "stopping" follow.
 *
 * mgpu-renderd has the file locked (fcntl) while it runs: the record of a process that died
 * is not locked.  Its device stays, and the next mgpu-renderd of the GPU takes it over.
 */
#ifndef LIBMGPU_RENDERD_H
#define LIBMGPU_RENDERD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "mgpu.h"
#include "pci.h"

#define RENDERD_NONE	"none"
#define RENDERD_DIR	"/run/mgpu"

enum renderd_state {
	RENDERD_DEAD,		/* the process has ended, the record is left */
	RENDERD_STARTING,	/* it has no device yet */
	RENDERD_SERVING,
	RENDERD_STOPPING,	/* it waits for VMMs to close their vGPUs */
};

extern const char *const renderd_states[];	/* their names */

/**
 * struct renderd - a record
 * @gpu: address of the GPU; RENDERD_NONE without one; or the name of a render node that is
 *	not of a PCI function
 * @node: path of the render node; "" for none
 * @device: name of the device, which is the parent of the vGPUs: the address of the GPU, or
 *	as in mgpu_user.0; "" for none yet, or if it is gone
 * @id: N of /dev/mgpu-userN, if there is a device
 * @pid: ID of the process
 * @state: state of the process
 * @fd: renderd_claim(): the locked file
 * @path: renderd_claim(): its path
 */
struct renderd {
	char gpu[PCI_ADDRESS_LEN];
	char node[256];
	char device[MGPU_NAME_LEN];
	uint32_t id;
	pid_t pid;
	enum renderd_state state;
	int fd;
	char path[256];
};

/**
 * renderd_read() - read a record
 * @root: prefix of /run and /sys, "" for the machine
 * @gpu: as in the record
 * @r: result
 *
 * Return: false when there is none.
 */
bool renderd_read(const char *root, const char *gpu, struct renderd *r);

/* Read all records, sorted by GPU; the caller must free *list. Returns 0 or -errno. */
int renderd_list(const char *root, struct renderd **list, size_t *nr, struct mgpu_error *err);

/**
 * renderd_claim() - lock the record of a GPU, for as long as this process runs
 * @root: prefix of /run and /sys, "" for the machine
 * @gpu: as in the record
 * @r: result; @device is that of a process that died and left a device, or ""
 * @err: sentence about an error
 *
 * No other descriptor of the file may be opened and closed in this process, which would
 * release the lock.
 *
 * Return: 0; -EBUSY, another process has it; or another negative errno.
 */
int renderd_claim(const char *root, const char *gpu, struct renderd *r, struct mgpu_error *err);

/**
 * renderd_publish() - write this process into the record
 * @root: prefix of /sys, "" for the machine
 * @r: claimed record; its @node, @device and @id are written
 * @err: sentence about an error
 *
 * Return: 0 or a negative errno.
 */
int renderd_publish(const char *root, const struct renderd *r, struct mgpu_error *err);

/* Write into a claimed record that this process ends when the VMMs let go of its vGPUs. */
void renderd_stopping(const struct renderd *r);

/* Remove a claimed record. */
void renderd_remove(const struct renderd *r);

#endif /* LIBMGPU_RENDERD_H */
