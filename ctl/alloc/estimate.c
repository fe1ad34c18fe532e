// SPDX-License-Identifier: GPL-2.0-only
/* From counters to rates, costs, capacities and demand. Pure. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "estimate.h"

#define NSEC	1e9

/*
 * Get by how much a counter rose.  A counter that wraps around rises too.  A counter
 * that fell was reset, and its last count before the reset is lost.
 */
static bool rise(uint64_t before, uint64_t now, double *by)
{
	uint64_t d = now - before;

	if (d > UINT64_MAX / 2) {
		*by = 0;
		return false;
	}
	*by = (double)d;
	return true;
}

static int compare_vmm(const void *key, const void *entry)
{
	uint32_t tgid = *(const uint32_t *)key;
	const struct sample_vmm *v = entry;

	return tgid < v->tgid ? -1 : tgid > v->tgid;
}

static const struct sample_vmm *find_vmm(const struct sample_vmm *v, size_t n,
					 uint32_t tgid)
{
	return n ? bsearch(&tgid, v, n, sizeof(*v), compare_vmm) : NULL;
}

static int compare_vgpu(const void *key, const void *entry)
{
	uint32_t id = *(const uint32_t *)key;
	const struct estimate_vgpu *v = entry;

	return id < v->last.id ? -1 : id > v->last.id;
}

static const struct estimate_vgpu *find_vgpu(const struct estimate *e,
					     const struct sample_vgpu *s)
{
	const struct estimate_vgpu *v = NULL;

	if (e->nr_vgpus)
		v = bsearch(&s->id, e->vgpus, e->nr_vgpus, sizeof(*v), compare_vgpu);
	/* the id of a removed vGPU may come back with another one */
	return v && !strcmp(v->last.uuid, s->uuid) ? v : NULL;
}

static double engines(const struct estimate *e, uint32_t dev)
{
	for (size_t i = 0; i < e->nr_devs; i++)
		if (e->devs[i].id == dev)
			return e->devs[i].engines;
	return 1;
}

static void *copy(const void *from, size_t n, size_t size)
{
	void *to = calloc(n ? n : 1, size);

	if (to && n)
		memcpy(to, from, n * size);
	return to;
}

/* Counts of a vGPU in the period; its VMM's CPU time is split later. */
struct change {
	bool valid;		/* there is a sample before to compare with */
	double frames;
	double gpu;		/* seconds */
	double held;		/* seconds, by a limit of frames or of engine time */
	double queue;		/* seconds, without those */
	double cpu;		/* seconds */
	double cpu_wait;	/* seconds, of its VMM; INFINITY for unknown */
};

static void count(const struct estimate_vgpu *old, const struct sample_vgpu *s,
		  struct estimate *e, struct change *c)
{
	double bpf, self, limited;

	if (!old)
		return;
	if (rise(old->last.charged_bpf_ns, s->charged_bpf_ns, &bpf))
		e->charged_bpf += bpf / NSEC;
	if (rise(old->last.charged_self_ns, s->charged_self_ns, &self))
		e->charged_self += self / NSEC;
	if (!s->open || (old->last.open && old->last.tgid != s->tgid))
		return;

	c->valid = rise(old->last.frames, s->frames, &c->frames);
	c->valid &= rise(old->last.engine_ns, s->engine_ns, &c->gpu);
	c->valid &= rise(old->last.throttled_ns, s->throttled_ns, &c->held);
	c->valid &= rise(old->last.queue_ns, s->queue_ns, &c->queue);
	c->valid &= rise(old->last.limited_ns, s->limited_ns, &limited);
	c->gpu /= NSEC;
	c->held = (c->held + limited) / NSEC;
	/* a wait may begin in one period, and count in the next */
	c->queue = fmax(c->queue - limited, 0) / NSEC;
}

/* CPU time of a VMM, and the frames of all its vGPUs. */
struct vmm_change {
	bool valid;
	double cpu;		/* seconds */
	double wait;		/* seconds, INFINITY for unknown */
	double frames;
	unsigned int vgpus;
};

/*
 * A VMM's CPU time is shared out among its vGPUs by frames: what a frame costs
 * the VM does not depend on the screen that shows it. Without any frames there
 * is nothing to tell its vGPUs apart, and each has an equal part.
 */
static void split_cpu(const struct estimate *e, const struct sample *s,
		      struct vmm_change *vc, struct change *c)
{
	const struct sample_vmm *vmm;
	double wait;

	for (size_t m = 0; m < s->nr_vmms; m++) {
		vmm = find_vmm(e->vmms, e->nr_vmms, s->vmms[m].tgid);
		if (!vmm || !rise(vmm->cpu_ns, s->vmms[m].cpu_ns, &vc[m].cpu))
			continue;
		vc[m].valid = true;
		vc[m].cpu /= NSEC;
		vc[m].wait = INFINITY;
		if (vmm->wait_known && s->vmms[m].wait_known &&
		    rise(vmm->wait_ns, s->vmms[m].wait_ns, &wait))
			vc[m].wait = wait / NSEC;
	}
	for (size_t j = 0; j < s->nr_vgpus; j++) {
		vmm = find_vmm(s->vmms, s->nr_vmms, s->vgpus[j].tgid);
		if (!vmm || !vc[vmm - s->vmms].valid)
			c[j].valid = false;
		if (!c[j].valid)
			continue;
		vc[vmm - s->vmms].frames += c[j].frames;
		vc[vmm - s->vmms].vgpus++;
	}
	for (size_t j = 0; j < s->nr_vgpus; j++) {
		const struct vmm_change *v;

		if (!c[j].valid)
			continue;
		v = &vc[find_vmm(s->vmms, s->nr_vmms, s->vgpus[j].tgid) - s->vmms];
		c[j].cpu = v->frames > 0 ? v->cpu * c[j].frames / v->frames :
			v->cpu / v->vgpus;
		c[j].cpu_wait = v->wait;
	}
}

/*
 * Averages weigh frames, not periods. They fall at once, but rise slowly until a
 * second period says the same: a stall of the host makes frames look dear for one
 * period, and a limit made from that would hold the VM back.
 */
static double average(double old, double frames_before, double last, double now,
		      double frames)
{
	double next;

	if (!(frames_before > 0))
		return now;
	next = old + (now - old) * frames / (frames_before + frames);
	return old > 0 ? fmin(next, fmax(old * ESTIMATE_RISE, fmin(now, last))) : next;
}

/* The rate without waits for a part of the time, over the rate with them. */
static double without(double waits)
{
	return waits < 1 ? 1 / (1 - waits) : INFINITY;
}

/*
 * The rates that a VM could have reached, over the rate that it did reach. Its time
 * passes in parts: it is held back, waits for an engine, waits for a CPU, or makes
 * progress of its own, which takes CPU time, engine time, or sleep. Parts may overlap,
 * which makes the results too large, never too small.
 *
 *  - Without waits it would need as much time of its own for each frame, so it would
 *    reach at most 1 / (1 - waits) times the rate. It waits for a CPU as long as its
 *    threads do, but only while no CPU is idle.
 *  - A VM that sleeps between frames keeps a pace of its own. Without waits it would
 *    have slept longer, so only the waits beyond its sleep have slowed it.
 *  - It uses no more CPUs than the most that it was seen to use, and no more than one
 *    engine, or what it used of several.
 *  - The operator's limit holds it back whatever a controller does.
 */
static void reach(const struct estimate *e, const struct change *c, struct estimate_vgpu *v)
{
	double t = e->seconds, held = c->held / t, waits, sleep, cpus, most;

	v->queue = c->queue / t;
	v->cpu_wait = fmin(c->cpu_wait / t, e->cpu_full);
	waits = held + v->queue + v->cpu_wait;
	sleep = fmax(1 - waits - v->cpu_use - v->gpu_use, 0);
	v->unheld = without(fmax(held - sleep, 0));
	v->reach = without(fmax(waits - sleep, 0));

	v->kept.cpus_most = fmax(v->kept.cpus_most, v->cpu_use);
	cpus = fmax(ceil(v->kept.cpus_most - ESTIMATE_SPARE_CPU), 1);
	if (v->cpu_use > 0)
		v->reach = fmin(v->reach, cpus / v->cpu_use);
	if (v->gpu_use > 0)
		v->reach = fmin(v->reach, ceil(v->gpu_use) / v->gpu_use);
	if (v->last.fps_limit && v->fps > 0) {
		most = fmax(v->last.fps_limit / 1000.0 / v->fps, 1);
		v->reach = fmin(v->reach, most);
		v->unheld = fmin(v->unheld, most);
	}
	v->reach = fmax(v->reach, 1);
}

static void measure(const struct estimate *e, const struct change *c,
		    double headroom, struct estimate_vgpu *v)
{
	double t = e->seconds;

	v->fps = c->frames / t;
	v->cpu_use = c->cpu / t;
	v->gpu_use = c->gpu / t;
	v->cpu_share = v->cpu_use / e->cpu_capacity;
	v->gpu_share = v->gpu_use / engines(e, v->last.dev);
	v->share = fmax(v->cpu_share, v->gpu_share);

	if (c->frames > 0) {
		double before = v->kept.frames * ESTIMATE_KEEP;

		v->cpu_cost = c->cpu / c->frames;
		v->gpu_cost = c->gpu / c->frames;
		v->kept.cpu = average(v->kept.cpu, before, v->kept.cpu_last,
				      v->cpu_cost, c->frames);
		v->kept.gpu = average(v->kept.gpu, before, v->kept.gpu_last,
				      v->gpu_cost, c->frames);
		v->kept.cpu_last = v->cpu_cost;
		v->kept.gpu_last = v->gpu_cost;
		v->kept.frames = before + c->frames;
	} else {
		v->cpu_cost = v->kept.cpu;
		v->gpu_cost = v->kept.gpu;
	}
	v->cpu_cost_smooth = v->kept.cpu;
	v->gpu_cost_smooth = v->kept.gpu;

	reach(e, c, v);

	/* what a limit holds back cannot show how much it would use */
	v->held = c->held > ESTIMATE_THROTTLED * t;
	v->demand = v->held || !(v->fps > 0) ? INFINITY : v->fps * headroom;
}

/*
 * Return whether the vGPU shows frames.  A slow or starved vGPU may show none in a
 * period and yet work on one; leaving it out would make the period look fair.
 */
static bool is_active(const struct estimate_vgpu *v, const struct change *c, uint64_t ns)
{
	if (!c->valid || !(c->cpu + c->gpu > 0))
		return false;	/* what costs nothing measurable has no share */
	if (c->frames > 0)
		return true;
	return v->kept.cpu > 0 && v->idle_ns + ns <= ESTIMATE_IDLE_NS &&
		c->cpu >= v->kept.cpu * ESTIMATE_WORKING;
}

/* Idle time and what active VMs used is what these have or could have. */
static void cpu_capacity(struct estimate *e, const struct sample *s, double idle,
			 double active)
{
	double cores = s->cpus ? s->cpus : 1, least;

	least = fmax(active / e->seconds, ESTIMATE_CPU_MIN);
	e->cpu_capacity = fmin((idle + active) / e->seconds, cores);
	e->cpu_capacity = fmax(e->cpu_capacity, least);
	if (e->cpu_capacity_smooth > 0)
		e->cpu_capacity_smooth = e->cpu_capacity_smooth * ESTIMATE_KEEP +
			e->cpu_capacity * (1 - ESTIMATE_KEEP);
	else
		e->cpu_capacity_smooth = e->cpu_capacity;
	/* all CPUs are busy only while none is idle */
	e->cpu_full = fmax(1 - idle / (e->seconds * cores), 0);
}

int estimate_update(struct estimate *e, const struct sample *s, double headroom)
{
	struct estimate next = {
		.now_ns = s->now_ns,
		.cpu_capacity = s->cpus ? s->cpus : 1,
		.cpu_capacity_smooth = e->cpu_capacity_smooth,
		.nr_vgpus = s->nr_vgpus,
		.nr_devs = s->nr_devs,
		.source = s->source,
		.idle_ns = s->idle_ns,
		.nr_vmms = s->nr_vmms,
	};
	bool comparable = e->now_ns && e->source == s->source &&
		s->now_ns >= e->now_ns + ESTIMATE_PERIOD_MIN_NS;
	double idle = 0, active = 0;
	struct vmm_change *vc;
	struct change *c;

	next.vgpus = calloc(s->nr_vgpus ? s->nr_vgpus : 1, sizeof(*next.vgpus));
	next.devs = calloc(s->nr_devs ? s->nr_devs : 1, sizeof(*next.devs));
	next.vmms = copy(s->vmms, s->nr_vmms, sizeof(*s->vmms));
	c = calloc(s->nr_vgpus ? s->nr_vgpus : 1, sizeof(*c));
	vc = calloc(s->nr_vmms ? s->nr_vmms : 1, sizeof(*vc));
	if (!next.vgpus || !next.devs || !next.vmms || !c || !vc) {
		estimate_free(&next);
		free(c);
		free(vc);
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->nr_devs; i++) {
		next.devs[i].id = s->devs[i].id;
		next.devs[i].engines = s->devs[i].engines ? s->devs[i].engines : 1;
		next.devs[i].on_cpus = s->devs[i].on_cpus;
	}

	for (size_t j = 0; j < s->nr_vgpus; j++) {
		struct estimate_vgpu *v = &next.vgpus[j];
		const struct estimate_vgpu *old = find_vgpu(e, &s->vgpus[j]);

		v->last = s->vgpus[j];
		v->state = v->last.open ? VGPU_IDLE : VGPU_CLOSED;
		if (!old || !v->last.open || old->last.tgid != v->last.tgid)
			continue;
		v->kept = old->kept;
		v->planned = old->planned;
		v->idle_ns = old->idle_ns;
	}

	if (comparable) {
		next.seconds = (double)(s->now_ns - e->now_ns) / NSEC;
		for (size_t j = 0; j < s->nr_vgpus; j++)
			count(find_vgpu(e, &s->vgpus[j]), &s->vgpus[j], &next, &c[j]);
		split_cpu(e, s, vc, c);
		rise(e->idle_ns, s->idle_ns, &idle);
		for (size_t j = 0; j < s->nr_vgpus; j++) {
			struct estimate_vgpu *v = &next.vgpus[j];

			if (v->state != VGPU_IDLE ||
			    !is_active(v, &c[j], s->now_ns - e->now_ns))
				continue;
			v->state = VGPU_ACTIVE;
			active += c[j].cpu;
		}
		cpu_capacity(&next, s, idle / NSEC, active);
		for (size_t j = 0; j < s->nr_vgpus; j++) {
			struct estimate_vgpu *v = &next.vgpus[j];

			if (v->state == VGPU_CLOSED)
				continue;
			v->idle_ns = c[j].frames > 0 ? 0 :
				v->idle_ns + (s->now_ns - e->now_ns);
			if (v->state == VGPU_ACTIVE)
				measure(&next, &c[j], headroom, v);
		}
	}
	free(c);
	free(vc);
	estimate_free(e);
	*e = next;
	return 0;
}

void estimate_free(struct estimate *e)
{
	free(e->vgpus);
	free(e->devs);
	free(e->vmms);
	memset(e, 0, sizeof(*e));
}
