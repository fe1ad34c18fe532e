/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The counters of account.bpf.c, as user space reads them.
 *
 * The map `accounts` is a BPF_MMAPABLE array with one entry per vGPU id, so a
 * reader maps it once and then reads any number of vGPUs without a system
 * call. Every counter only rises, from when the programs were attached; an id
 * that is given to another vGPU goes on counting, so readers take differences.
 */
#ifndef MGPU_BPF_ACCOUNT_H
#define MGPU_BPF_ACCOUNT_H

/* vGPU ids are below this. */
#define MGPU_BPF_IDS		4096

struct mgpu_account {
	__u64 frames;		/* frames shown */
	__u64 jobs;		/* jobs that left an engine */
	__u64 engine_ns;	/* engine time of jobs, ns */
	__u64 throttled_ns;	/* time for which frames were held back, ns */
	__u64 reserved[4];	/* so that no entry shares a line of the cache */
};

#endif /* MGPU_BPF_ACCOUNT_H */
