// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts of objects and memory that the kernel holds.  Threads, pins, references and BPF
 * programs must be as many as before.  Files and memory are estimates that other parts of
 * the kernel move, too:
 *
 * - The kernel counts files in batches of 32 for each processor.
 * - Slabs keep pages for free objects of each kind on each processor, and a processor
 *   keeps the stacks of two ended tasks.  Neither grows with the rounds: 1 MiB.
 * - KASAN keeps freed objects in a quarantine of a 32nd of the memory, in which they
 *   count as if they were in use; looking into /proc alone puts inodes there.  Shrinking
 *   a cache takes its objects out of the quarantine.
 * - A round may leave 512 bytes, half of the smallest object of this module that a VMM
 *   can leak by the page, in a thousand rounds as much as the noise.  The debug kernel's
 *   kmemleak reports each single object.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "footprint.h"
#include "vmm.h"

#define NOISE_KIB	1024
#define ROUNDS_A_KIB	2	/* rounds that may leave a KiB */
#define FILE_BATCH	32

static const char *const name[NR_FEET] = {
	"unreclaimable slabs", "reclaimable", "vmalloc", "percpu", "stacks", "files",
	"pins", "threads", "mgpu", "back end", "programs", "maps", "links", "vGPUs",
};

/* The number after a key in a file of lines; 0 when there is none. */
static long long entry(const char *path, const char *key)
{
	FILE *f = fopen(path, "re");
	long long val = 0;
	char line[256];
	size_t len = strlen(key);

	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, key, len) && (line[len] == ':' || line[len] == ' '))
			sscanf(line + len + 1, "%lld", &val);
	}
	if (f)
		fclose(f);
	return val;
}

/* Threads of the kernel whose name begins with "mgpu". */
static long long threads(void)
{
	char path[64], comm[64];
	struct dirent *e;
	long long n = 0;
	DIR *d = opendir("/proc");

	while (d && (e = readdir(d))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		/* A thread of the kernel has no command line; mgpud has one. */
		snprintf(path, sizeof(path), "/proc/%.16s/cmdline", e->d_name);
		if (sysfs_read(path, comm, sizeof(comm)) != 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/comm", e->d_name);
		n += sysfs_read(path, comm, sizeof(comm)) > 0 &&
		     !strncmp(comm, "mgpu", 4);
	}
	if (d)
		closedir(d);
	return n;
}

static long long bpf_objects(int next)
{
	union bpf_attr attr;
	long long n = 0;

	memset(&attr, 0, sizeof(attr));
	while (!syscall(SYS_bpf, next, &attr, sizeof(attr))) {
		attr.start_id = attr.next_id;
		n++;
	}
	return n;
}

long long bpf_programs(void)
{
	return bpf_objects(BPF_PROG_GET_NEXT_ID);
}

long long bpf_maps(void)
{
	return bpf_objects(BPF_MAP_GET_NEXT_ID);
}

static long long references(const char *module)
{
	char path[128];
	long long n;

	snprintf(path, sizeof(path), "/sys/module/%s/refcnt", module);
	n = sysfs_number(path);
	return n < 0 ? 0 : n;
}

static long long files(void)
{
	long long n = -1;
	char text[64];

	if (sysfs_read("/proc/sys/fs/file-nr", text, sizeof(text)) > 0)
		sscanf(text, "%lld", &n);
	return n;
}

/* Free what no one uses: entries of caches first, then the slabs that they were in. */
static void free_unused(void)
{
	const char *slabs = "/sys/kernel/slab";
	DIR *d = opendir(slabs);
	char path[320];
	struct dirent *e;

	sysfs_write("/proc/sys/vm/drop_caches", "3");
	while (d && (e = readdir(d))) {
		/* A link is another name of a cache. */
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/shrink", slabs, e->d_name);
		sysfs_write(path, "1");
	}
	if (d)
		closedir(d);
}

static void take(struct footprint *f)
{
	const char *mem = "/proc/meminfo", *vm = "/proc/vmstat";

	free_unused();
	/* Have each processor add its own counts to the totals. */
	sysfs_write("/proc/sys/vm/stat_refresh", "1");
	f->of[FOOT_SLAB] = entry(mem, "SUnreclaim");
	f->of[FOOT_RECLAIMABLE] = entry(mem, "KReclaimable");
	f->of[FOOT_VMALLOC] = entry(mem, "VmallocUsed");
	f->of[FOOT_PERCPU] = entry(mem, "Percpu");
	f->of[FOOT_STACKS] = entry(mem, "KernelStack");
	f->of[FOOT_FILES] = files();
	f->of[FOOT_PINS] = entry(vm, "nr_foll_pin_acquired") -
			   entry(vm, "nr_foll_pin_released");
	f->of[FOOT_THREADS] = threads();
	f->of[FOOT_CORE] = references("mgpu");
	f->of[FOOT_BACK_END] = references("mgpu_soft") + references("mgpu_virtio") +
				 references("mgpu_user");
	f->of[FOOT_PROGRAMS] = bpf_programs();
	f->of[FOOT_MAPS] = bpf_maps();
	f->of[FOOT_LINKS] = bpf_objects(BPF_LINK_GET_NEXT_ID);
	f->of[FOOT_VGPUS] = mdev_count();
}

void footprint_take(struct footprint *f)
{
	struct footprint last;
	int i;

	/* Until two looks say the same of what is counted: 20 at most. */
	take(f);
	for (i = 0; i < 20; i++) {
		last = *f;
		sleep_ms(100);
		take(f);
		if (!memcmp(&last.of[FOOT_PINS], &f->of[FOOT_PINS],
			    sizeof(last.of) - sizeof(last.of[0]) * FOOT_PINS))
			break;
	}
}

static bool grown(const struct footprint *before, const struct footprint *now,
		  enum foot i, unsigned int rounds)
{
	long long by = now->of[i] - before->of[i];

	switch (i) {
	case FOOT_SLAB:
	case FOOT_RECLAIMABLE:
	case FOOT_VMALLOC:
	case FOOT_PERCPU:
	case FOOT_STACKS:
		return by > NOISE_KIB + (long long)rounds / ROUNDS_A_KIB;
	case FOOT_FILES:
		return by > 2 * FILE_BATCH * sysconf(_SC_NPROCESSORS_CONF);
	default:
		return by != 0;
	}
}

bool footprint_kept(const struct footprint *before, unsigned int rounds)
{
	uint64_t end = now_ms() + (uint64_t)VMM_TIMEOUT;
	struct footprint now;
	bool more, kept;
	int i;

	do {
		more = now_ms() < end;
		take(&now);
		kept = true;
		for (i = 0; i < NR_FEET; i++)
			kept &= !grown(before, &now, i, rounds);
		if (!kept && more)
			sleep_ms(200);
	} while (!kept && more);
	for (i = 0; i < NR_FEET; i++)
		remark("%s: %lld before, %lld after %u rounds%s", name[i],
		       before->of[i], now.of[i], rounds,
		       grown(before, &now, i, rounds) ? ": GROWN" : "");
	return kept;
}
