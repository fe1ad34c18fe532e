// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpud on the modelled device: lists of contexts and counts go through ctx_view, the
 * policy decides about its snapshot, and its orders go to the module.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "preempt_model.h"

#define DEV_ID		1
#define EPOCH_NS	1000000000ULL	/* when the stream begins: 0 is "no job" in a list */

struct psim_mgpud {
	const struct psim_setup *setup;
	struct ctx_view view;
	struct mgpu_dev_info dev;
	double rest_until;
	struct mgpu_ctx list[PSIM_JOBS_MAX];
	size_t n;
	struct preempt_plan plan;
	struct ctx_order order[2 * PREEMPT_CTX_MAX];
};

struct psim_mgpud *psim_mgpud_new(const struct psim_setup *setup)
{
	struct psim_mgpud *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->setup = setup;
	ctx_view_init(&d->view, &setup->param);
	d->view.analyse.prior = setup->prior;
	if (setup->norm)
		d->view.analyse.norm = *setup->norm;
	d->dev = (struct mgpu_dev_info){
		.present = UINT64_MAX,	/* a module that tells all attributes */
		.id = DEV_ID, .engines = setup->slots, .slots = setup->slots,
		.policy = "best-effort",
	};
	return d;
}

void psim_mgpud_free(struct psim_mgpud *d)
{
	if (!d)
		return;
	ctx_view_free(&d->view);
	free(d);
}

const struct analyse *psim_mgpud_learned(const struct psim_mgpud *d)
{
	return &d->view.analyse;
}

const struct preempt_norm *psim_mgpud_norm(const struct psim_mgpud *d)
{
	return &d->view.analyse.norm;
}

const struct guard *psim_mgpud_guard(const struct psim_mgpud *d)
{
	return &d->view.analyse.guard;
}

static uint64_t clock_ns(const struct psim_device *m)
{
	return EPOCH_NS + psim_ns(m->now);
}

/* vGPU 0 is "no neighbour" in the counts. */
static uint32_t vgpu_id(const struct psim_job *j)
{
	return j->vgpu + 1;
}

static uint32_t context_id(const struct psim_active *a)
{
	return (uint32_t)a->job + 1;
}

static void describe(const struct psim_device *m, const struct psim_active *a,
		     struct mgpu_ctx *c)
{
	const struct psim_job *j = psim_job_of(m, a);

	*c = (struct mgpu_ctx){
		.vgpu_id = vgpu_id(j),
		.id = context_id(a),
		.dev_id = DEV_ID,
		.state = a->held ? MGPU_CTX_STATE_RUNNING :
			a->parked ? MGPU_CTX_STATE_PREEMPTED : MGPU_CTX_STATE_WAITING,
		.slots = a->held,
		.slots_allowed = a->allowed,
		.slots_wanted = j->width,
		.queued = 1,
		.idempotent = j->idempotent,
		.job_inst = (uint64_t)j->inst,
		.job_inst_done = (uint64_t)fmax(a->done, 0),
		.job_bytes = (uint64_t)j->size,
		.live_bytes = (uint32_t)fmin(j->bytes, UINT32_MAX),
		.arrived_ns = EPOCH_NS + psim_ns(j->arrival),
		.preemptions = a->lost,
	};
	strcpy(c->op, mgpu_ctx_op_name(j->kind));
}

int psim_mgpud_look(struct psim_mgpud *d, const struct psim_device *m)
{
	d->n = m->n;
	for (size_t i = 0; i < m->n; i++)
		describe(m, &m->a[i], &d->list[i]);
	return ctx_view_look(&d->view, d->list, d->n, clock_ns(m));
}

/* The BPF program names one neighbour, whoever else is there. */
static const struct psim_active *neighbour(const struct psim_device *m,
					   const struct psim_active *a)
{
	for (size_t i = 0; i < m->n; i++)
		if (&m->a[i] != a && m->a[i].held)
			return &m->a[i];
	return NULL;
}

void psim_mgpud_ran(struct psim_mgpud *d, const struct psim_device *m, double cycles)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct psim_active *a = &m->a[i], *peer = neighbour(m, a);
		const struct psim_job *j = psim_job_of(m, a);
		double inst = psim_speed(m, a) * cycles, bound = fmin(j->bound, 0.999);
		const struct mgpu_run_key key = {
			.vgpu = vgpu_id(j),
			.ctx = context_id(a),
			.op = j->kind,
			.peer_vgpu = peer ? vgpu_id(psim_job_of(m, peer)) : 0,
			.peer = peer ? context_id(peer) : 0,
		};
		const struct mgpu_run run = {
			.inst = (uint64_t)inst,
			/* ctx_view tells memory-boundness from bytes per work unit */
			.bytes = (uint64_t)(CTX_BALANCE * inst * bound / (1 - bound)),
			.engine_cycles = (uint64_t)(a->held * cycles),
			.samples = 1,
		};

		if (a->held)
			ctx_view_ran(&d->view, &key, &run);
	}
}

static void count(struct psim_result *r, const struct preempt_plan *plan)
{
	for (size_t k = 0; k < plan->n; k++) {
		const struct preempt_decision *d = &plan->decision[k];

		if (d->action == PREEMPT_DO_PREEMPT) {
			r->preemptions++;
			r->by[d->method]++;
		} else if (d->reason == PREEMPT_STARVED) {
			r->starved++;
		}
	}
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void give_orders(struct psim_mgpud *d, struct psim_device *m,
			const struct preempt_snapshot *s)
{
	size_t n;

	ctx_view_orders(&d->view, d->setup->policy, s, ctx_view_promises(&d->dev), &d->plan,
			d->order, &n);
	for (size_t k = 0; k < n; k++)
		psim_module_order(m, psim_find(m, d->order[k].id - 1), &d->order[k]);
}

int psim_mgpud_decide(struct psim_mgpud *d, struct psim_device *m, double *wake)
{
	struct preempt_snapshot s;
	uint64_t wake_ns;
	double start;
	int ret;

	/* the module does not wait for mgpud */
	psim_module_give(m);
	*wake = INFINITY;
	if (m->now < d->rest_until) {
		*wake = m->n ? d->rest_until : INFINITY;
		return 0;
	}
	d->rest_until = m->now + d->setup->rest;
	ret = psim_mgpud_look(d, m);
	if (!ret)
		ret = ctx_view_snapshot(&d->view, d->list, d->n, &d->dev, clock_ns(m), &s);
	if (ret || !s.n)
		return ret;
	start = seconds();
	ret = preempt_decide(d->setup->policy, &s, &d->view.param, &d->plan);
	if (ret)
		return ret;
	m->result->decisions++;
	m->result->seconds_per_decision += seconds() - start;
	count(m->result, &d->plan);
	/* as in mgpud: with none the module's own order is in force */
	if (d->setup->policy == &preempt_none)
		return 0;
	give_orders(d, m, &s);
	psim_module_give(m);
	wake_ns = preempt_wake_ns(&s, &d->view.param);
	if (ctx_view_trial_ns(&d->view, DEV_ID) < wake_ns)
		wake_ns = ctx_view_trial_ns(&d->view, DEV_ID);
	/* a nanosecond later, so that the bound has passed in whole ones */
	if (wake_ns != UINT64_MAX)
		*wake = (double)(wake_ns - EPOCH_NS + 1) * 1e-9 * PSIM_HZ;
	return 0;
}
