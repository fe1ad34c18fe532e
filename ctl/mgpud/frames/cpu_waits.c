// SPDX-License-Identifier: GPL-2.0-only
/*
 * The second figure of /proc/PID/task/TID/schedstat: the time for which a thread was
 * ready and another thread had the CPU (Documentation/scheduler/sched-stats.rst of the
 * kernel). It is lost when the thread ends, so it is added up per VMM here.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frames/cpu_waits.h"

/**
 * struct thread - a thread in the last sample
 * @tgid: its VMM
 * @tid: its ID
 * @wait_ns: its counter of waiting, ns
 */
struct thread {
	uint32_t tgid;
	uint32_t tid;
	uint64_t wait_ns;
};

/**
 * struct cpu_waits - VMMs and threads of the last sample
 * @proc: where proc is mounted
 * @threads: threads, in the order of (tgid, tid)
 * @nr_threads: number of them
 * @room: entries of @threads that are allocated
 * @vmms: VMMs whose counters are known, in the order of IDs
 * @nr_vmms: number of them
 */
struct cpu_waits {
	char *proc;
	struct thread *threads;
	size_t nr_threads, room;
	struct sample_vmm *vmms;
	size_t nr_vmms;
};

struct cpu_waits *cpu_waits_new(const char *proc)
{
	struct cpu_waits *w = calloc(1, sizeof(*w));

	if (w)
		w->proc = strdup(proc);
	if (w && w->proc)
		return w;
	cpu_waits_free(w);
	return NULL;
}

void cpu_waits_free(struct cpu_waits *w)
{
	if (!w)
		return;
	free(w->proc);
	free(w->threads);
	free(w->vmms);
	free(w);
}

static int compare_thread(const void *a, const void *b)
{
	const struct thread *x = a, *y = b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

static int compare_vmm(const void *a, const void *b)
{
	const struct sample_vmm *x = a, *y = b;

	return x->tgid < y->tgid ? -1 : x->tgid > y->tgid;
}

/* Read a schedstat file: "run_ns wait_ns slices". */
static bool read_wait(int dir, const char *path, uint64_t *wait_ns)
{
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	unsigned long long run, wait;
	char text[128];
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	if (sscanf(text, "%llu %llu", &run, &wait) != 2)
		return false;
	*wait_ns = wait;
	return true;
}

/* True if the kernel counts waits. */
static bool counted(const struct cpu_waits *w)
{
	char path[256];
	uint64_t wait;

	snprintf(path, sizeof(path), "%s/self/schedstat", w->proc);
	return read_wait(AT_FDCWD, path, &wait);
}

static bool add_thread(struct cpu_waits *w, const struct thread *t)
{
	if (w->nr_threads == w->room) {
		size_t room = w->room ? 2 * w->room : 64;
		void *more = realloc(w->threads, room * sizeof(*w->threads));

		if (!more)
			return false;
		w->threads = more;
		w->room = room;
	}
	w->threads[w->nr_threads++] = *t;
	return true;
}

/* The most threads of a VMM that are read in a sample with @vmms of them. */
static size_t most_threads(size_t vmms)
{
	size_t part = CPU_WAITS_THREADS / vmms;

	return part > CPU_WAITS_EACH ? part : CPU_WAITS_EACH;
}

/*
 * List the threads of a VMM. False, with none of them, if it has ended, has more than
 * @most, or memory is lacking.
 */
static bool list_threads(struct cpu_waits *w, uint32_t tgid, size_t most)
{
	size_t begin = w->nr_threads, seen = 0;
	struct dirent *entry;
	char path[256];
	bool ok = true;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/%u/task", w->proc, tgid);
	dir = opendir(path);
	if (!dir)
		return false;
	while (ok && (entry = readdir(dir))) {
		struct thread t = { .tgid = tgid };

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		t.tid = (uint32_t)strtoul(entry->d_name, NULL, 10);
		snprintf(path, sizeof(path), "%u/schedstat", t.tid);
		if (seen++ == most)
			ok = false;
		else if (read_wait(dirfd(dir), path, &t.wait_ns))
			ok = add_thread(w, &t);
	}
	closedir(dir);
	if (!ok)
		w->nr_threads = begin;
	return ok;
}

void cpu_waits_read(struct cpu_waits *w, struct sample *s)
{
	struct cpu_waits next = { .proc = w->proc };

	for (size_t k = 0; k < s->nr_vmms; k++)
		s->vmms[k].wait_known = false;
	next.vmms = calloc(s->nr_vmms + 1, sizeof(*next.vmms));
	if (!next.vmms || !counted(w))
		goto out;
	for (size_t k = 0; k < s->nr_vmms; k++)
		s->vmms[k].wait_known = list_threads(&next, s->vmms[k].tgid,
						     most_threads(s->nr_vmms));
	if (next.nr_threads)
		qsort(next.threads, next.nr_threads, sizeof(*next.threads), compare_thread);

	for (size_t k = 0, i = 0; k < s->nr_vmms; k++) {
		struct sample_vmm *vmm = &s->vmms[k], *old = NULL;

		if (!vmm->wait_known)
			continue;
		if (w->nr_vmms)
			old = bsearch(vmm, w->vmms, w->nr_vmms, sizeof(*vmm), compare_vmm);
		vmm->wait_ns = old ? old->wait_ns : 0;
		for (; i < next.nr_threads && next.threads[i].tgid == vmm->tgid; i++) {
			const struct thread *t = &next.threads[i], *before = NULL;

			if (!old)
				continue;	/* what it waited before it was seen */
			if (w->nr_threads)
				before = bsearch(t, w->threads, w->nr_threads, sizeof(*t),
						 compare_thread);
			/* a thread that is new began at 0, also with a known ID */
			if (before && before->wait_ns <= t->wait_ns)
				vmm->wait_ns += t->wait_ns - before->wait_ns;
			else
				vmm->wait_ns += t->wait_ns;
		}
		next.vmms[next.nr_vmms++] = *vmm;
	}
	free(w->threads);
	free(w->vmms);
	*w = next;
	return;
out:
	free(next.vmms);
}
