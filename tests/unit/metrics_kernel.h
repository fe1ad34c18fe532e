/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A module for tests and benches of mgpu-exporter, behind the system calls of its netlink
 * socket: the program wraps genl_ctrl_resolve, sendto, recvmsg and recvmmsg. It has a device and
 * any number of vGPUs, whose values follow from their IDs.
 */
#ifndef TESTS_METRICS_KERNEL_H
#define TESTS_METRICS_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct metrics_kernel - the module
 * @unloaded: it is not loaded
 * @vgpus: vGPUs, IDs 1 to @vgpus
 * @gone: ID of a vGPU that goes between the list and its histograms, 0 for none
 * @old: it is of a version without hangs, and without histograms
 * @requests: requests so far
 * @calls: system calls on the socket
 * @ns: CPU time that the module's part of them took
 */
struct metrics_kernel {
	bool unloaded;
	uint32_t vgpus;
	uint32_t gone;
	bool old;
	uint64_t requests;
	uint64_t calls;
	uint64_t ns;
};

extern struct metrics_kernel metrics_kernel;

/* UUID of a vGPU. */
void metrics_kernel_uuid(char uuid[37], uint32_t id);

#endif /* TESTS_METRICS_KERNEL_H */
