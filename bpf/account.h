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

/*
 * Histogram of the time between two frames. Bucket b counts intervals from
 * 2^b up to but not including 2^(b + 1) microseconds; bucket 0 also those
 * below 1 us, the last one also all that are longer (8.4 s and up).
 */
#define MGPU_BPF_BUCKETS	24

struct mgpu_account {
	__u64 frames;		/* frames shown */
	__u64 jobs;		/* jobs that left an engine */
	__u64 job_errors;	/* jobs that ended with an error */
	__u64 bytes;		/* bytes moved by jobs */
	__u64 engine_ns;	/* engine time of jobs, ns */
	__u64 engine_cycles;	/* the same in ticks of the engine's counter */
	__u64 queue_ns;		/* time that jobs waited for an engine, ns */
	__u64 throttled;	/* frames held back */
	__u64 throttled_ns;	/* time for which frames were held back, ns */
	__u64 charged_ns;	/* engine time that mgpu_charge() charged, ns */
	__u64 charge_refused;	/* calls of mgpu_charge() that failed */
	__u64 reserved[5];
	__u64 interval[MGPU_BPF_BUCKETS];
};

#endif /* MGPU_BPF_ACCOUNT_H */
