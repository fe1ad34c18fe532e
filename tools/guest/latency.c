// SPDX-License-Identifier: GPL-2.0-only
/*
 * Measure a device's time from the doorbell to the interrupt, as the guest's kernel
 * sees it: a probe on the function that writes a queue's doorbell, one on
 * the handler of a queue's interrupt, both in the kernel's trace.
 *
 * Meant for a program that gives the device one thing to do at a time.  The
 * device may interrupt more than once for it (a page flip is three commands);
 * what counts is the last interrupt before the next doorbell.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "game.h"

#define TRACING		"/sys/kernel/tracing"
#define MAX_QUEUES	16
#define MAX_PAIRS	65536

/* State of a queue while the trace is read. */
struct queue {
	uint64_t id;		/* 0: slot is free */
	uint64_t doorbell;	/* when it was rung last, 0 for never */
	uint64_t interrupt;	/* the last one since, 0 for none */
	struct latency l;
	uint32_t ns[MAX_PAIRS];
};

static struct queue queues[MAX_QUEUES];

static int put(const char *file, const char *text)
{
	char path[128];
	ssize_t n;
	int fd, ret = 0;

	snprintf(path, sizeof(path), TRACING "/%s", file);
	fd = open(path, O_WRONLY | O_CLOEXEC | O_APPEND);
	if (fd < 0) {
		ret = -errno;
	} else {
		n = write(fd, text, strlen(text));
		if (n < 0)
			ret = -errno;
		close(fd);
	}
	if (ret)
		explain("cannot write '%s' to %s: %s\n", text, path,
			strerror(-ret));
	return ret;
}

/* Probes of an earlier run, which may have been killed. */
static void remove_probes(void)
{
	int fd;

	if (!access(TRACING "/events/mgpu/enable", F_OK))
		put("events/mgpu/enable", "0");
	/* That truncates it. */
	fd = open(TRACING "/kprobe_events", O_WRONLY | O_TRUNC | O_CLOEXEC);
	if (fd >= 0)
		close(fd);
}

/* Begin to record; 0 or -errno. */
int latency_start(void)
{
	static const char * const set[][2] = {
		{ "tracing_on", "0" },
		{ "trace_clock", "mono" },
		{ "buffer_size_kb", "4096" },
		{ "kprobe_events", "p:mgpu/doorbell vp_notify vq=%di" },
		{ "kprobe_events", "p:mgpu/interrupt vring_interrupt vq=%si" },
		{ "events/mgpu/enable", "1" },
		{ "tracing_on", "1" },
	};
	size_t i;
	int ret;

	if (access(TRACING "/trace", F_OK)) {
		mkdir(TRACING, 0700);
		if (mount("tracefs", TRACING, "tracefs", 0, NULL)) {
			ret = -errno;
			explain("cannot mount tracefs at %s: %s\n", TRACING,
				strerror(-ret));
			return ret;
		}
	}
	remove_probes();
	for (i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
		ret = put(set[i][0], set[i][1]);
		if (ret)
			return ret;
	}
	return 0;
}

static struct queue *find_queue(uint64_t id)
{
	int i;

	for (i = 0; i < MAX_QUEUES; i++) {
		if (!queues[i].id)
			queues[i].id = id;
		if (queues[i].id == id)
			return &queues[i];
	}
	return NULL;
}

/* The queue's last doorbell will get no further interrupt. */
static void settle(struct queue *q)
{
	if (!q->doorbell)
		return;
	if (!q->interrupt)
		q->l.alone++;
	else if (q->l.pairs < MAX_PAIRS)
		q->ns[q->l.pairs++] = (uint32_t)(q->interrupt - q->doorbell);
	q->doorbell = 0;
	q->interrupt = 0;
}

/* A line: "task-pid [cpu] flags seconds.micros: event: (place) vq=0x..." */
static void read_line(char *line)
{
	char *at = strstr(line, ": doorbell: ");
	bool doorbell = at;
	unsigned long long s, us;
	struct queue *q;
	char *vq;

	if (!at)
		at = strstr(line, ": interrupt: ");
	if (!at)
		return;
	vq = strstr(at, " vq=0x");
	*at = '\0';
	at = strrchr(line, ' ');
	if (!vq || !at || sscanf(at, " %llu.%llu", &s, &us) != 2)
		return;
	q = find_queue(strtoull(vq + strlen(" vq="), NULL, 16));
	if (!q)
		return;
	if (doorbell) {
		settle(q);
		q->doorbell = (s * 1000000 + us) * 1000;
	} else {
		q->l.interrupts++;
		q->interrupt = (s * 1000000 + us) * 1000;
	}
}

/* End the recording; figures of the queue that was used most. */
int latency_stop(struct latency *l)
{
	struct queue *q, *best = &queues[0];
	char line[512];
	FILE *f;
	int ret;

	ret = put("tracing_on", "0");
	if (ret)
		return ret;
	f = fopen(TRACING "/trace", "r");
	if (!f) {
		ret = -errno;
		explain("cannot read the trace: %s\n", strerror(-ret));
		return ret;
	}
	while (fgets(line, sizeof(line), f))
		read_line(line);
	fclose(f);
	remove_probes();

	for (q = queues; q < queues + MAX_QUEUES; q++) {
		settle(q);
		if (q->l.pairs > best->l.pairs)
			best = q;
	}
	*l = best->l;
	if (l->pairs) {
		sort_ns(best->ns, l->pairs);
		l->p50_ns = best->ns[(l->pairs - 1) * 50 / 100];
		l->p99_ns = best->ns[(l->pairs - 1) * 99 / 100];
	}
	return 0;
}
