// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples: lists of vGPUs and devices over netlink, and counters of the BPF programs in
 * shared memory. Without a BPF program: the module's own counters for frames and engine
 * time, each VMM's CPU clock and /proc/stat for CPU time. The time that VMMs waited for a
 * CPU comes from /proc in any case.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "frames/counters.h"
#include "frames/cpu_waits.h"
#include "frames/observe.h"

struct observer {
	struct mgpu *mgpu;
	struct counters *counters;
	struct cpu_waits *waits;
	struct sample sample;
	bool sampled;
};

int observer_open(struct observer **observer, struct mgpu *mgpu, char *why,
		  size_t len, struct mgpu_error *err)
{
	struct observer *o = calloc(1, sizeof(*o));

	if (o)
		o->waits = cpu_waits_new("/proc");
	if (!o || !o->waits || counters_open(&o->counters, why, len)) {
		if (o)
			cpu_waits_free(o->waits);
		free(o);
		return mgpu_fail(err, -ENOMEM, "out of memory");
	}
	o->mgpu = mgpu;
	*observer = o;
	return 0;
}

static void free_sample(struct sample *s)
{
	free(s->vgpus);
	free(s->vmms);
	free(s->devs);
	memset(s, 0, sizeof(*s));
}

void observer_close(struct observer *o)
{
	if (!o)
		return;
	counters_close(o->counters);
	cpu_waits_free(o->waits);
	free_sample(&o->sample);
	free(o);
}

bool observer_bpf(const struct observer *o)
{
	return counters_account(o->counters) && counters_cputime(o->counters);
}

bool observer_charge(const struct observer *o)
{
	return counters_charge(o->counters);
}

uint64_t observer_missed(const struct observer *o)
{
	return counters_missed(o->counters);
}

static int compare_u32(const void *a, const void *b)
{
	const struct sample_vmm *x = a, *y = b;

	return x->tgid < y->tgid ? -1 : x->tgid > y->tgid;
}

/* List each thread group once, sorted. */
static void list_vmms(struct sample *s)
{
	size_t n = 0;

	for (size_t j = 0; j < s->nr_vgpus; j++)
		if (s->vgpus[j].open && s->vgpus[j].tgid)
			s->vmms[n++].tgid = s->vgpus[j].tgid;
	qsort(s->vmms, n, sizeof(*s->vmms), compare_u32);
	s->nr_vmms = 0;
	for (size_t k = 0; k < n; k++)
		if (!k || s->vmms[k].tgid != s->vmms[k - 1].tgid)
			s->vmms[s->nr_vmms++].tgid = s->vmms[k].tgid;
}

static uint64_t ns_of(const struct timespec *ts)
{
	return (uint64_t)ts->tv_sec * 1000000000 + (uint64_t)ts->tv_nsec;
}

/* Idle time, ns, in the resolution of the clock tick; iowait counts as idle. */
static uint64_t proc_idle_ns(void)
{
	unsigned long long idle = 0, iowait = 0;
	FILE *f = fopen("/proc/stat", "re");

	if (!f)
		return 0;
	if (fscanf(f, "cpu %*u %*u %*u %llu %llu", &idle, &iowait) != 2)
		idle = iowait = 0;
	fclose(f);
	return (idle + iowait) * (1000000000ULL / (unsigned long long)sysconf(_SC_CLK_TCK));
}

static void cpu_without_bpf(struct sample *s)
{
	struct timespec ts;
	clockid_t clock;
	size_t kept = 0;

	for (size_t k = 0; k < s->nr_vmms; k++) {
		if (clock_getcpuclockid((pid_t)s->vmms[k].tgid, &clock) ||
		    clock_gettime(clock, &ts))
			continue;	/* the process has ended */
		s->vmms[kept].tgid = s->vmms[k].tgid;
		s->vmms[kept++].cpu_ns = ns_of(&ts);
	}
	s->nr_vmms = kept;
	s->idle_ns = proc_idle_ns();
	clock_gettime(CLOCK_MONOTONIC, &ts);
	s->now_ns = ns_of(&ts);
}

static void fill_vgpu(struct observer *o, struct sample_vgpu *s,
		      const struct mgpu_vgpu_info *v)
{
	const struct mgpu_account *a = NULL;

	s->id = v->id;
	snprintf(s->uuid, sizeof(s->uuid), "%s", v->uuid);
	s->dev = v->dev_id;
	s->open = v->open;
	s->tgid = v->open ? v->tgid : 0;
	s->weight = v->weight;
	s->fps_limit = v->fps_limit;
	s->fps_target = v->fps_target;
	s->fps_floor = v->fps_floor;
	s->gpu_target = v->gpu_target;
	s->frames_total = v->stats.frames;
	s->charged_bpf_ns = v->stats.charged_bpf_ns;
	s->charged_self_ns = v->stats.charged_self_ns;
	s->queue_ns = v->stats.queue_ns;
	s->limited_ns = v->stats.limited_ns;
	if (counters_account(o->counters))
		a = counters_vgpu(o->counters, v->id);
	if (a) {
		s->frames = __atomic_load_n(&a->frames, __ATOMIC_RELAXED);
		s->engine_ns = __atomic_load_n(&a->engine_ns, __ATOMIC_RELAXED);
		s->throttled_ns = __atomic_load_n(&a->throttled_ns, __ATOMIC_RELAXED);
	} else {
		s->frames = v->stats.frames;
		s->engine_ns = v->stats.engine_ns;
		s->throttled_ns = v->stats.throttled_ns;
	}
}

int observer_sample(struct observer *o, const struct sample **sample,
		    struct mgpu_error *err)
{
	struct mgpu_vgpu_info *vgpus = NULL;
	struct mgpu_dev_info *devs = NULL;
	size_t nr_vgpus = 0, nr_devs = 0;
	struct sample s = { 0 };
	long cpus;
	int ret;

	ret = mgpu_dev_list(o->mgpu, &devs, &nr_devs, err);
	if (!ret)
		ret = mgpu_vgpu_list(o->mgpu, NULL, &vgpus, &nr_vgpus, err);
	if (ret)
		goto out;
	s.vgpus = calloc(nr_vgpus + 1, sizeof(*s.vgpus));
	s.vmms = calloc(nr_vgpus + 1, sizeof(*s.vmms));
	s.devs = calloc(nr_devs + 1, sizeof(*s.devs));
	if (!s.vgpus || !s.vmms || !s.devs) {
		ret = mgpu_fail(err, -ENOMEM, "out of memory");
		goto out;
	}

	for (size_t i = 0; i < nr_devs; i++)
		s.devs[s.nr_devs++] = (struct sample_dev){
			.id = devs[i].id,
			.engines = devs[i].engines,
			.on_cpus = devs[i].engine_on_cpu,
		};
	/* programs and module use the same IDs, which are sorted */
	for (size_t j = 0; j < nr_vgpus; j++)
		fill_vgpu(o, &s.vgpus[s.nr_vgpus++], &vgpus[j]);
	list_vmms(&s);
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	s.cpus = cpus > 0 ? (unsigned int)cpus : 1;
	s.source = counters_account(o->counters) + 2 * counters_cputime(o->counters);
	if (counters_cputime(o->counters)) {
		counters_owners(o->counters, s.vgpus, s.nr_vgpus, !o->sampled);
		counters_cpu(o->counters, &s);
	} else {
		cpu_without_bpf(&s);
	}
	cpu_waits_read(o->waits, &s);
	free_sample(&o->sample);
	o->sample = s;
	o->sampled = true;
	*sample = &o->sample;
	memset(&s, 0, sizeof(s));
out:
	free_sample(&s);
	free(devs);
	free(vgpus);
	return ret;
}
