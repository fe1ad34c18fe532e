// SPDX-License-Identifier: GPL-2.0-only
/*
 * The time that VMMs wait for a CPU: from a proc of the test's own, where threads come
 * and go, and from the kernel's for this process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>

#include "frames/cpu_waits.h"
#include "tap.h"

static char root[32];

#define MANY	1000

static struct sample_vmm vmms[MANY];
static struct sample now = { .vmms = vmms };

static void make(const char *path, const char *text)
{
	char name[256];
	FILE *f;

	snprintf(name, sizeof(name), "%s/%s", root, path);
	for (char *slash = name + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(name, 0700);
		*slash = '/';
	}
	f = fopen(name, "w");
	TAP_NEED(f);
	fputs(text, f);
	fclose(f);
}

static void thread(unsigned int tgid, unsigned int tid, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "%u/task/%u/schedstat", tgid, tid);
	make(path, text);
}

static void end_thread(unsigned int tgid, unsigned int tid)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%u/task/%u/schedstat", root, tgid, tid);
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

static void look(struct cpu_waits *w, size_t nr, uint32_t first, uint32_t second)
{
	memset(vmms, 0, sizeof(vmms));
	vmms[0].tgid = first;
	vmms[1].tgid = second;
	now.nr_vmms = nr;
	cpu_waits_read(w, &now);
}

/* Counters begin at 0, and rise by what all threads waited. */
static void adds_up(void)
{
	struct cpu_waits *w = cpu_waits_new(root);

	TAP_NEED(w);
	make("self/schedstat", "1 2 3\n");
	thread(10, 10, "500 7000 3\n");
	thread(10, 11, "500 100 3\n");
	thread(20, 20, "500 40 3\n");
	look(w, 2, 10, 20);
	TAP_CHECK(vmms[0].wait_known && vmms[1].wait_known);
	TAP_EQ(vmms[0].wait_ns, 0);
	TAP_EQ(vmms[1].wait_ns, 0);
	thread(10, 10, "900 7500 4\n");
	thread(10, 11, "900 101 4\n");
	look(w, 2, 10, 20);
	TAP_EQ(vmms[0].wait_ns, 501);
	TAP_EQ(vmms[1].wait_ns, 0);

	/* a thread that is new counts from its begin */
	thread(10, 12, "1 60 1\n");
	thread(20, 20, "500 50 3\n");
	look(w, 2, 10, 20);
	TAP_EQ(vmms[0].wait_ns, 561);
	TAP_EQ(vmms[1].wait_ns, 10);
	/* what ended threads waited stays */
	end_thread(10, 10);
	look(w, 2, 10, 20);
	TAP_EQ(vmms[0].wait_ns, 561);
	/* the ID of an ended thread goes to another one */
	thread(10, 12, "1 5 1\n");
	look(w, 2, 10, 20);
	TAP_EQ(vmms[0].wait_ns, 566);

	/* a VMM that is not listed for a while begins at 0 */
	look(w, 1, 20, 0);
	TAP_EQ(vmms[0].wait_ns, 10);
	thread(10, 12, "1 500 1\n");
	look(w, 2, 10, 20);
	TAP_EQ(vmms[0].wait_ns, 0);
	TAP_EQ(vmms[1].wait_ns, 10);
	cpu_waits_free(w);
}

/* Processes that have ended, and files that are not what they should be. */
static void odd_files(void)
{
	static const char *const odd[] = {
		"", "\n", "1\n", "a b c\n", "1 -\n", "9 x", "\xff\xfe",
	};
	struct cpu_waits *w = cpu_waits_new(root);

	TAP_NEED(w);
	make("self/schedstat", "1 2 3\n");
	thread(30, 30, "1 100 1\n");
	look(w, 2, 30, 4000000000U);
	TAP_CHECK(vmms[0].wait_known && !vmms[1].wait_known);
	thread(30, 30, "1 200 1\n");
	look(w, 2, 30, 4000000000U);
	TAP_EQ(vmms[0].wait_ns, 100);
	TAP_CHECK(!vmms[1].wait_known);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		thread(30, 31, odd[i]);
		look(w, 2, 30, 4000000000U);
		TAP_CHECK(vmms[0].wait_known);
		TAP_EQ(vmms[0].wait_ns, 100);
	}
	look(w, 0, 0, 0);
	cpu_waits_free(w);
	cpu_waits_free(NULL);
}

/* Look at MANY VMMs. */
static void look_at_all(struct cpu_waits *w)
{
	for (size_t k = 0; k < MANY; k++)
		vmms[k] = (struct sample_vmm){ .tgid = 40 + (uint32_t)k };
	now.nr_vmms = MANY;
	cpu_waits_read(w, &now);
}

/* A VMM with more threads than its part is left out, and nothing of another one. */
static void too_many_threads(void)
{
	struct cpu_waits *w = cpu_waits_new(root);

	TAP_NEED(w);
	make("self/schedstat", "1 2 3\n");
	for (unsigned int i = 0; i < CPU_WAITS_EACH; i++) {
		thread(40, 1000 + i, "1 100 1\n");
		thread(41, 2000 + i, "1 100 1\n");
	}
	thread(41, 3000, "1 100 1\n");
	thread(40 + MANY - 1, 5000, "1 100 1\n");
	look_at_all(w);
	TAP_CHECK(vmms[0].wait_known && !vmms[1].wait_known && vmms[MANY - 1].wait_known);
	thread(40, 1000, "1 150 1\n");
	thread(40 + MANY - 1, 5000, "1 107 1\n");
	look_at_all(w);
	TAP_EQ(vmms[0].wait_ns, 50);
	TAP_CHECK(!vmms[1].wait_known);
	TAP_EQ(vmms[MANY - 1].wait_ns, 7);
	/* with fewer threads it begins at 0 */
	end_thread(41, 3000);
	look_at_all(w);
	TAP_CHECK(vmms[1].wait_known);
	TAP_EQ(vmms[1].wait_ns, 0);
	thread(41, 2000, "1 103 1\n");
	look_at_all(w);
	TAP_EQ(vmms[1].wait_ns, 3);

	/* a VMM alone may have more, but not any number */
	thread(41, 3000, "1 100 1\n");
	look(w, 1, 41, 0);
	TAP_CHECK(vmms[0].wait_known);
	for (unsigned int i = 0; i < CPU_WAITS_THREADS - CPU_WAITS_EACH; i++)
		thread(41, 10000 + i, "1 100 1\n");
	look(w, 1, 41, 0);
	TAP_CHECK(!vmms[0].wait_known);
	cpu_waits_free(w);
}

/* A kernel that does not count waits. */
static void not_counted(void)
{
	struct cpu_waits *w = cpu_waits_new("/proc/none/there");

	TAP_NEED(w);
	look(w, 1, (uint32_t)getpid(), 0);
	TAP_CHECK(!vmms[0].wait_known);
	TAP_EQ(vmms[0].wait_ns, 0);
	cpu_waits_free(w);
}

/* The kernel's own files: the counter of this process never falls. */
static void of_this_process(void)
{
	struct cpu_waits *w = cpu_waits_new("/proc");
	uint64_t before = 0;

	if (access("/proc/self/schedstat", R_OK)) {
		cpu_waits_free(w);
		TAP_SKIP("the kernel has no /proc/PID/schedstat");
	}
	TAP_NEED(w);
	for (unsigned int i = 0; i < 20; i++) {
		look(w, 1, (uint32_t)getpid(), 0);
		TAP_CHECK(vmms[0].wait_known);
		TAP_CHECK(vmms[0].wait_ns >= before);
		before = vmms[0].wait_ns;
	}
	cpu_waits_free(w);
}

int main(void)
{
	char command[64];

	strcpy(root, "/tmp/test-cpu-waits-XXXXXX");
	if (!mkdtemp(root))
		return 1;
	tap_run(adds_up, "waits of all threads add up, of ended ones too");
	tap_run(odd_files, "ended processes and odd files count for nothing");
	tap_run(too_many_threads, "a VMM with too many threads is left out");
	tap_run(not_counted, "a kernel that does not count waits is told apart");
	tap_run(of_this_process, "the counter of a running process never falls");
	snprintf(command, sizeof(command), "rm -rf %s", root);
	return tap_done() + (system(command) != 0);
}
