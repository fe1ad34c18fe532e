// SPDX-License-Identifier: GPL-2.0-only
/* A machine with VMs that share a GPU, event by event. Pure. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sched/runq.h"
#include "sched/sched_policy.h"
#include "sched/throttle.h"

#include "machine.h"

#define NEVER	UINT64_MAX
#define FAR	(1ULL << 60)

/* Work that is as good as done, nanoseconds. */
#define NOTHING	1e-3

/* Of the CPUs: what engines that run on them may take from busy threads. */
#define ENGINES_OF_CPUS	0.9

/* Where a frame is that the VM has handed over. */
enum frame_state {
	FRAME_QUEUED,		/* behind another one */
	FRAME_HELD,		/* its time has not come */
	FRAME_WAITS,		/* for an engine */
	FRAME_RUNS,
};

struct vm {
	struct machine_vm cfg;
	struct mgpu_sched_entity e;
	struct mgpu_throttle throttle;
	u32 gpu_limit;
	u64 seq_ns;
	bool open, paused;
	u32 tgid;

	/* the frame that it works on */
	bool works;
	double cpu_left;
	double engine_next;	/* what it will ask of the engine */
	u64 retry_ns;		/* looked at again then, NEVER for not */
	u64 due_ns;		/* its program wants no frame before that */
	u64 handed_ns;		/* when it handed over the last one */

	/* those that it has handed over; the first one is on its way */
	double engine_left[MACHINE_MAX_DEPTH];
	unsigned int nr;
	enum frame_state state;
	u64 held_since;		/* 0 for not held */
	u64 held_until;
	bool started;		/* it has been on an engine already */
	bool stale;		/* what runs is of a VMM that is gone */

	/* counters */
	double cpu_ns, cpu_wait_ns, engine_ns, throttled_ns, queue_ns, held_ns;
	u64 frames;
};

struct engine {
	struct vm *vm;		/* whose first frame runs, NULL when idle */
	double left;
	double ran;		/* and not charged */
	double tile_left;
};

struct machine {
	struct machine_config cfg;
	struct mgpu_runq rq;
	struct machine_use use;
	u64 now;
	u64 seq;
	u32 next_tgid;
	double cpus;		/* for threads, without host and background */
	double background;
	unsigned int busy;	/* threads of VMs */
	unsigned int working;	/* engines */
	struct sample_vgpu *vgpus;
	struct sample_vmm *vmms;
	struct sample_dev dev;
	struct engine engine[MACHINE_MAX_ENGINES];
	size_t nr;
	struct vm vm[];
};

/* ---- setting up ---- */

static const struct mgpu_policy_ops *find_order(const char *name)
{
	for (size_t i = 0; mgpu_policies[i]; i++)
		if (!name || !strcmp(mgpu_policies[i]->name, name))
			return mgpu_policies[i];
	return NULL;
}

const char *machine_check(const struct machine_config *cfg)
{
	double cpus = cfg->cpus - cfg->host;

	if (!cfg->cpus)
		return "a machine must have at least one CPU";
	if (!cfg->engines || cfg->engines > MACHINE_MAX_ENGINES)
		return "a device must have 1 to 64 engines";
	if (!cfg->nr_vms || cfg->nr_vms > MACHINE_MAX_VM)
		return "a machine must have 1 to 1024 VMs";
	if (!(cfg->host >= 0))
		return "the host's own use of CPUs must not be negative";
	if (!find_order(cfg->order) || (cfg->order && !strcmp(cfg->order, "fixed")))
		return "order must be weighted, equal or best-effort";
	for (size_t j = 0; j < cfg->nr_vms; j++) {
		const struct machine_vm *v = &cfg->vms[j];

		if (!v->threads)
			return "a VM must have at least one thread";
		if (!v->depth || v->depth > MACHINE_MAX_DEPTH)
			return "a VM must have 1 to 4 frames in flight";
		if (!(v->rate > 0))
			return "the rate that a VM wants must be above 0";
		if (!(v->background >= 0))
			return "a VM's background use of CPUs must not be negative";
		if (v->weight < MGPU_WEIGHT_MIN || v->weight > MGPU_WEIGHT_MAX)
			return "a weight must be from 1 to 10000";
		cpus -= v->background;
	}
	if (!(cpus > 0))
		return "the host and the VMs' background leave no CPU time; lower --host-cpus";
	return NULL;
}

struct machine *machine_new(const struct machine_config *cfg)
{
	struct machine *m;

	if (machine_check(cfg))
		return NULL;
	m = calloc(1, sizeof(*m) + cfg->nr_vms * sizeof(m->vm[0]));
	if (!m)
		return NULL;
	m->vgpus = calloc(cfg->nr_vms, sizeof(*m->vgpus));
	m->vmms = calloc(cfg->nr_vms, sizeof(*m->vmms));
	if (!m->vgpus || !m->vmms) {
		machine_free(m);
		return NULL;
	}
	m->cfg = *cfg;
	m->nr = cfg->nr_vms;
	m->next_tgid = 1;
	m->cpus = cfg->cpus - cfg->host;
	m->dev = (struct sample_dev){
		.id = 0, .engines = cfg->engines, .on_cpus = cfg->engines_on_cpus,
	};
	mgpu_runq_init(&m->rq, 1, cfg->engines, find_order(cfg->order));
	for (size_t j = 0; j < m->nr; j++) {
		struct vm *v = &m->vm[j];

		v->cfg = cfg->vms[j];
		v->retry_ns = NEVER;
		v->e.id = (u32)j + 1;
		v->e.weight = v->cfg.weight;
		mgpu_runq_attach(&m->rq, &v->e, 0);
	}
	return m;
}

void machine_free(struct machine *m)
{
	if (!m)
		return;
	free(m->vgpus);
	free(m->vmms);
	free(m);
}

/* ---- what happens ---- */

/* Does it begin a frame, or when should that be looked at again? */
static void begin(struct machine *m, struct vm *v)
{
	struct machine_frame f = { 0 };
	u64 at = v->due_ns;

	v->retry_ns = NEVER;
	if (!v->open || v->paused || v->works || v->nr >= v->cfg.depth)
		return;
	if (v->nr && v->cfg.patience_ns && v->handed_ns + v->cfg.patience_ns > at)
		at = v->handed_ns + v->cfg.patience_ns;
	if (at > m->now) {
		v->retry_ns = at;
		return;
	}
	m->cfg.frame(m->cfg.data, (size_t)(v - m->vm), m->now, &f);
	v->cpu_left = fmax(f.cpu_ns, MACHINE_COST_MIN);
	v->engine_next = fmax(f.engine_ns, MACHINE_COST_MIN);
	v->works = true;
	m->busy += v->cfg.threads;
	if (v->cfg.rate < INFINITY)
		v->due_ns = (v->due_ns + (u64)(1e9 / v->cfg.rate) > m->now ?
			     v->due_ns : m->now) + (u64)(1e9 / v->cfg.rate);
}

static void wake(struct machine *m, struct vm *v)
{
	v->e.head_ns = m->now;
	v->e.head_seq = v->seq_ns;
	mgpu_runq_wake(&m->rq, &v->e, m->now);
}

static void submit(struct machine *m, struct vm *v)
{
	mgpu_throttle_frame(&v->throttle, m->now);
	if (v->held_since)
		v->held_ns = (double)(m->now - v->held_since);
	v->held_since = 0;
	v->state = FRAME_WAITS;
	v->started = false;
	v->seq_ns = ++m->seq;
	wake(m, v);
}

/* The first frame that was handed over: may it go? As kmod/gpu/ring.c's pace(). */
static void pace(struct machine *m, struct vm *v)
{
	u64 wait = mgpu_throttle_wait(&v->throttle, m->now);

	if (!wait) {
		submit(m, v);
		return;
	}
	if (!v->held_since)
		v->held_since = m->now;
	v->state = FRAME_HELD;
	v->held_until = m->now + wait;
}

static void hand_over(struct machine *m, struct vm *v)
{
	v->works = false;
	m->busy -= v->cfg.threads;
	v->engine_left[v->nr++] = v->engine_next;
	v->handed_ns = m->now;
	if (v->nr == 1)
		pace(m, v);
	begin(m, v);
}

static void pop(struct vm *v)
{
	v->nr--;
	memmove(v->engine_left, v->engine_left + 1, v->nr * sizeof(v->engine_left[0]));
	v->state = FRAME_QUEUED;
}

static void charge(struct machine *m, struct engine *e)
{
	struct vm *v = e->vm;

	v->engine_ns += e->ran;
	mgpu_runq_charge(&m->rq, &v->e, (u64)e->ran, m->now);
	e->vm = NULL;
	e->ran = 0;
	m->working--;
}

static void job_done(struct machine *m, struct engine *e)
{
	struct vm *v = e->vm;

	charge(m, e);
	pop(v);
	v->frames += !v->stale;
	v->stale = false;
	if (v->nr)
		pace(m, v);
	begin(m, v);
}

static void job_yields(struct machine *m, struct engine *e)
{
	struct vm *v = e->vm;

	v->engine_left[0] = e->left;
	charge(m, e);
	v->state = FRAME_WAITS;
	wake(m, v);
}

static void pick(struct machine *m, struct engine *e)
{
	struct mgpu_sched_entity *next = mgpu_runq_pick(&m->rq, m->now);
	struct vm *v;

	if (!next)
		return;
	v = rb_entry(next, struct vm, e);
	if (!v->started)
		v->throttled_ns += v->held_ns;
	v->held_ns = 0;
	v->queue_ns += (double)(m->now - v->e.head_ns);
	v->started = true;
	v->state = FRAME_RUNS;
	e->vm = v;
	e->left = v->engine_left[0];
	e->ran = 0;
	e->tile_left = m->cfg.tile_ns ? (double)m->cfg.tile_ns : INFINITY;
	m->working++;
}

/* An engine's job ends, or makes way, or there is a job to begin. */
static void look_at_engine(struct machine *m, struct engine *e)
{
	struct vm *v = e->vm;

	if (v && e->left <= NOTHING) {
		job_done(m, e);
	} else if (v && e->tile_left <= NOTHING) {
		e->tile_left += (double)m->cfg.tile_ns;
		if (!v->stale && mgpu_runq_may_yield(&m->rq, &v->e) &&
		    mgpu_runq_should_yield(&m->rq, &v->e, (u64)e->ran, m->now))
			job_yields(m, e);
	}
	if (!e->vm)
		pick(m, e);
}

/* ---- time ---- */

/*
 * Of one CPU, or engine: what each busy thread and each working engine has.
 * Engines on CPUs go first, as mgpu_soft's threads do, but not all the way.
 */
static void speed(const struct machine *m, double *thread, double *engine)
{
	double cpus = m->cpus - m->background;

	*engine = 1;
	if (m->cfg.engines_on_cpus) {
		if (m->working > cpus * ENGINES_OF_CPUS)
			*engine = cpus * ENGINES_OF_CPUS / m->working;
		cpus -= *engine * m->working;
	}
	*thread = m->busy > cpus ? cpus / m->busy : 1;
}

static u64 after(const struct machine *m, double work, double rate)
{
	double ns = ceil(work / rate);

	if (work <= NOTHING)
		return m->now;
	return ns < (double)FAR ? m->now + (u64)ns : NEVER;
}

/* When something happens next, at most @until. */
static u64 next_event(const struct machine *m, double thread, double engine, u64 until)
{
	u64 next = until, at;

	for (size_t j = 0; j < m->nr; j++) {
		const struct vm *v = &m->vm[j];

		if (v->works) {
			at = after(m, v->cpu_left, thread * v->cfg.threads);
			next = at < next ? at : next;
		}
		if (v->nr && v->state == FRAME_HELD && v->held_until < next)
			next = v->held_until;
		if (v->retry_ns < next)
			next = v->retry_ns;
	}
	at = mgpu_runq_due(&m->rq);
	next = at < next ? at : next;
	for (unsigned int i = 0; i < m->cfg.engines; i++) {
		const struct engine *e = &m->engine[i];

		if (!e->vm)
			continue;
		at = after(m, e->left, engine);
		next = at < next ? at : next;
		/* a VM that is alone and has no limit cannot yield after a tile */
		if (mgpu_runq_may_yield(&m->rq, &e->vm->e)) {
			at = after(m, e->tile_left, engine);
			next = at < next ? at : next;
		}
	}
	return next;
}

static void pass(struct machine *m, double ns, double thread, double engine)
{
	double used = 0, engines = 0;

	for (size_t j = 0; j < m->nr; j++) {
		struct vm *v = &m->vm[j];
		double cpu;

		if (v->open)
			v->cpu_ns += ns * v->cfg.background;
		if (!v->works)
			continue;
		cpu = ns * thread * v->cfg.threads;
		v->cpu_left -= cpu;
		v->cpu_ns += cpu;
		v->cpu_wait_ns += ns * (1 - thread) * v->cfg.threads;
		used += cpu;
	}
	for (unsigned int i = 0; i < m->cfg.engines; i++) {
		struct engine *e = &m->engine[i];
		double ran = ns * engine;

		if (!e->vm)
			continue;
		e->left -= ran;
		e->ran += ran;
		engines += ran;
		e->tile_left -= ran;
		/* boundaries that nobody was waiting at */
		if (m->cfg.tile_ns && e->tile_left < -NOTHING)
			e->tile_left += ceil((-NOTHING - e->tile_left) /
					     (double)m->cfg.tile_ns) *
				(double)m->cfg.tile_ns;
	}
	m->use.cpu_ns += used + ns * m->background;
	m->use.engine_ns += engines;
	m->use.host_ns += ns * m->cfg.host;
	if (m->cfg.engines_on_cpus)
		m->use.engine_cpu_ns += engines;
	else
		engines = 0;
	m->use.idle_ns += fmax(ns * (m->cpus - m->background) - used - engines, 0);
}

void machine_run(struct machine *m, uint64_t until_ns)
{
	while (m->now < until_ns) {
		double thread, engine;
		u64 next;

		speed(m, &thread, &engine);
		next = next_event(m, thread, engine, until_ns);
		pass(m, (double)(next - m->now), thread, engine);
		m->now = next;
		m->use.events++;
		m->use.now_ns = next;
		mgpu_runq_advance(&m->rq, next);
		for (size_t j = 0; j < m->nr; j++) {
			struct vm *v = &m->vm[j];

			if (v->works && v->cpu_left <= NOTHING)
				hand_over(m, v);
			if (v->nr && v->state == FRAME_HELD && v->held_until <= m->now)
				submit(m, v);
			if (v->retry_ns <= m->now)
				begin(m, v);
		}
		for (unsigned int i = 0; i < m->cfg.engines; i++)
			look_at_engine(m, &m->engine[i]);
	}
}

/* ---- from outside ---- */

static bool on_engine(const struct machine *m, const struct vm *v)
{
	for (unsigned int i = 0; i < m->cfg.engines; i++)
		if (m->engine[i].vm == v)
			return true;
	return false;
}

void machine_open(struct machine *m, size_t vm, bool open)
{
	struct vm *v = &m->vm[vm];

	if (open == v->open)
		return;
	v->open = open;
	m->background += open ? v->cfg.background : -v->cfg.background;
	if (open) {
		v->tgid = m->next_tgid++;
		v->cpu_ns = 0;
		v->cpu_wait_ns = 0;
		v->due_ns = m->now;
		begin(m, v);
		return;
	}
	if (v->works) {
		v->works = false;
		m->busy -= v->cfg.threads;
	}
	v->retry_ns = NEVER;
	v->held_since = 0;
	v->held_ns = 0;
	v->stale = on_engine(m, v);
	if (!v->stale)
		mgpu_runq_sleep(&m->rq, &v->e);
	v->nr = v->stale;
}

void machine_pause(struct machine *m, size_t vm, bool pause)
{
	m->vm[vm].paused = pause;
	begin(m, &m->vm[vm]);
}

void machine_set_limit(struct machine *m, size_t vm, uint32_t limit)
{
	struct vm *v = &m->vm[vm];

	if (limit == v->throttle.limit)
		return;
	v->e.fps_limit = limit;
	mgpu_throttle_set(&v->throttle, limit, m->now);
	if (v->nr && v->state == FRAME_HELD)
		pace(m, v);
}

void machine_set_gpu_limit(struct machine *m, size_t vm, uint32_t ppm)
{
	struct vm *v = &m->vm[vm];

	if (ppm == v->gpu_limit)
		return;
	v->gpu_limit = ppm;
	mgpu_runq_set_limit(&m->rq, &v->e, ppm, MGPU_GPU_PERIOD_DEFAULT, 0, m->now);
}

void machine_sample(struct machine *m, struct sample *s)
{
	size_t vmms = 0;

	for (size_t j = 0; j < m->nr; j++) {
		const struct vm *v = &m->vm[j];
		struct sample_vgpu *g = &m->vgpus[j];

		*g = (struct sample_vgpu){
			.id = (u32)j + 1,
			.dev = m->dev.id,
			.open = v->open,
			.tgid = v->open ? v->tgid : 0,
			.weight = v->cfg.weight,
			.fps_target = v->throttle.limit,
			.gpu_target = v->gpu_limit,
			.frames_total = v->frames,
			.frames = v->frames,
			.engine_ns = (u64)v->engine_ns,
			.throttled_ns = (u64)v->throttled_ns,
			.queue_ns = (u64)v->queue_ns,
			.limited_ns = v->e.limited_ns,
			.charged_self_ns = (u64)v->engine_ns,
		};
		memcpy(g->uuid, v->cfg.uuid, sizeof(g->uuid));
		if (v->open)
			m->vmms[vmms++] = (struct sample_vmm){
				.tgid = v->tgid,
				.cpu_ns = (u64)v->cpu_ns,
				.wait_ns = (u64)v->cpu_wait_ns,
				.wait_known = true,
			};
	}
	/* in the order of ids; a VM that was started again has a later one */
	for (size_t i = 1; i < vmms; i++) {
		struct sample_vmm x = m->vmms[i];
		size_t k = i;

		for (; k && m->vmms[k - 1].tgid > x.tgid; k--)
			m->vmms[k] = m->vmms[k - 1];
		m->vmms[k] = x;
	}
	*s = (struct sample){
		.now_ns = m->now + MACHINE_NSEC,
		.cpus = m->cfg.cpus,
		.idle_ns = (u64)m->use.idle_ns,
		.vgpus = m->vgpus,
		.nr_vgpus = m->nr,
		.vmms = m->vmms,
		.nr_vmms = vmms,
		.devs = &m->dev,
		.nr_devs = 1,
	};
}

const struct machine_use *machine_use(const struct machine *m)
{
	return &m->use;
}

uint64_t machine_frames(const struct machine *m, size_t vm)
{
	return m->vm[vm].frames;
}

double machine_rate_alone(const struct machine_config *cfg, const struct machine_vm *v,
			  const struct machine_frame *frame)
{
	double cpus = fmin(v->threads, cfg->cpus - cfg->host - v->background);
	double cpu = fmax(frame->cpu_ns, MACHINE_COST_MIN) / cpus;
	double engine = fmax(frame->engine_ns, MACHINE_COST_MIN);
	double patience = (double)v->patience_ns;
	double interval;

	/* one after the other; else the next is begun at once, or after a while */
	if (v->depth == 1)
		interval = cpu + engine;
	else
		interval = fmax(engine, cpu + fmin(engine, patience));
	return fmin(1e9 / interval, v->rate);
}
