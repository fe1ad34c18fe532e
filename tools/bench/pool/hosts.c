// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hosts of mgpu-poold without the rest of it: what libvirt takes, and what it needs.
 *
 *	bench-pool-hosts attach CONCURRENT ROUNDS NAME=URI...
 *	bench-pool-hosts hold NAME=URI...
 *
 * attach gives VMs in turn CONCURRENT GPUs of their hosts (vGPUs where there are any), all at once,
 * takes them back, and does so ROUNDS times, by ctl/pool/jobs.c as the service does.  It prints a
 * line for each attachment: milliseconds from the job to its answer, and those of them that libvirt
 * took.
 *
 * hold connects to all hosts, prints "up", and keeps what they said until its input ends.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "jobs.h"

#define HOSTS	64
#define PAIRS	1024

/**
 * struct pair - a VM and the GPU that it gets
 * @vm: the VM
 * @gpu: the GPU
 * @uuid: mdev of a vGPU
 * @begin: CLOCK_MONOTONIC when the job began, ns
 */
struct pair {
	struct pool_vm vm;
	struct pool_gpu gpu;
	char uuid[POOL_UUID_MAX];
	uint64_t begin;
};

static struct pool_host hosts[HOSTS];
static size_t nr_hosts;
static struct pool_vm vms[PAIRS];
static struct pool_gpu gpus[PAIRS];
static size_t nr_vms, nr_gpus;
static struct pair pairs[PAIRS];
static size_t nr_pairs;
static enum pool_target target = POOL_WHOLE;	/* POOL_VGPU where there is a parent */
static struct jobs *jobs;

static void die(const char *text)
{
	fprintf(stderr, "bench-pool-hosts: %s\n", text);
	exit(1);
}

static void next_answer(struct jobs_answer *a)
{
	struct pollfd p = { .fd = jobs_fd(jobs), .events = POLLIN };

	while (!jobs_next(jobs, a))
		if (poll(&p, 1, 60000) <= 0)
			die("the hosts are silent");
	free(a->found);
	a->found = NULL;
	if (a->kind == JOBS_DOWN || a->kind == JOBS_FAILED || a->kind == JOBS_REFUSED)
		die(a->text);
}

/* Wait until all hosts are up, and take what they have. */
static void connect_all(void)
{
	struct jobs_answer a;
	size_t up = 0;

	jobs = jobs_new(hosts, nr_hosts);
	if (!jobs)
		die("out of memory");
	while (up < nr_hosts) {
		next_answer(&a);
		up += a.kind == JOBS_UP;
		if (a.kind == JOBS_VM && nr_vms < PAIRS)
			vms[nr_vms++] = a.vm;
		if (a.kind == JOBS_GPU && nr_gpus < PAIRS) {
			gpus[nr_gpus++] = a.gpu;
			if (a.gpu.target == POOL_VGPU)
				target = POOL_VGPU;
		}
	}
}

/* The first type of a parent of vGPUs, without its slots. */
static void first_type(const struct pool_gpu *gpu, char type[POOL_TYPE_MAX])
{
	if (gpu->target == POOL_VGPU)
		snprintf(type, POOL_TYPE_MAX, "%.*s", (int)strcspn(gpu->types, " :"), gpu->types);
}

/* Give VMs GPUs of their host, in turn. */
static void make_pairs(size_t wanted)
{
	size_t tried = 0;

	if (wanted > PAIRS)
		die("there are too many attachments at once");
	for (size_t v = 0; nr_vms && nr_pairs < wanted && tried++ < wanted + nr_vms; v++)
		for (size_t g = 0; g < nr_gpus; g++) {
			const struct pool_vm *vm = &vms[v % nr_vms];

			if (gpus[g].used >= gpus[g].slots || gpus[g].offline ||
			    strcmp(gpus[g].host, vm->host) || gpus[g].target != target)
				continue;
			gpus[g].used++;
			pairs[nr_pairs].vm = *vm;
			pairs[nr_pairs++].gpu = gpus[g];
			break;
		}
	if (nr_pairs < wanted)
		die("the hosts have too few VMs or GPUs");
}

static void begin(enum pool_job_kind kind, size_t i, uint64_t request)
{
	struct pool_job job = {
		.kind = kind, .gpu = pairs[i].gpu, .vm = pairs[i].vm, .request.id = request,
	};

	strcpy(job.request.gpu, pairs[i].gpu.name);
	strcpy(job.request.vm, pairs[i].vm.name);
	strcpy(job.request.uuid, pairs[i].uuid);
	first_type(&pairs[i].gpu, job.request.type);
	pairs[i].begin = now_ns();
	jobs_add(jobs, &job);
}

static void round_of(uint64_t first)
{
	struct jobs_answer a;

	for (size_t i = 0; i < nr_pairs; i++)
		begin(POOL_JOB_ATTACH, i, first + i);
	for (size_t left = nr_pairs; left; ) {
		next_answer(&a);
		if (a.kind != JOBS_ATTACHED)
			continue;
		left--;
		strcpy(pairs[a.request - first].uuid, a.uuid);
		printf("%.3f %.3f\n", (double)(now_ns() - pairs[a.request - first].begin) / 1e6,
		       a.seconds * 1e3);
	}
	for (size_t i = 0; i < nr_pairs; i++)
		begin(POOL_JOB_DETACH, i, first + i);
	for (size_t left = nr_pairs; left; ) {
		next_answer(&a);
		left -= a.kind == JOBS_DETACHED;
	}
}

static void read_host(char *word)
{
	char *uri = strchr(word, '=');

	if (!uri || nr_hosts == HOSTS)
		die("a host is NAME=URI");
	*uri++ = '\0';
	snprintf(hosts[nr_hosts].name, sizeof(hosts[0].name), "%s", word);
	snprintf(hosts[nr_hosts++].uri, sizeof(hosts[0].uri), "%s", uri);
}

int main(int argc, char **argv)
{
	bool attach = argc > 4 && !strcmp(argv[1], "attach");

	if (!attach && (argc < 3 || strcmp(argv[1], "hold")))
		die("the words are attach CONCURRENT ROUNDS NAME=URI... or hold NAME=URI...");
	for (int i = attach ? 4 : 2; i < argc; i++)
		read_host(argv[i]);
	if (host_init())
		die("libvirt does not start");
	connect_all();
	if (attach) {
		make_pairs((size_t)atoi(argv[2]));
		for (int i = 0; i < atoi(argv[3]); i++)
			round_of(1 + (uint64_t)i * PAIRS);
	} else {
		puts("up");
		fflush(stdout);
		while (getchar() != EOF)
			;
	}
	jobs_free(jobs);
	return 0;
}
