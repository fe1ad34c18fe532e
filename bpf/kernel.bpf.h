/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's types that the BPF programs use, with those fields only.
 *
 * The loader takes the fields' offsets from the running kernel (CO-RE). The programs are
 * therefore built without a kernel's BTF, and the same everywhere.
 */
#ifndef MGPU_KERNEL_BPF_H
#define MGPU_KERNEL_BPF_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <stdbool.h>

struct task_struct {
	unsigned int flags;
	int pid;
	int tgid;
} __attribute__((preserve_access_index));

#endif /* MGPU_KERNEL_BPF_H */
