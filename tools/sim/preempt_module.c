// SPDX-License-Identifier: GPL-2.0-only
/*
 * Slots as mgpu.ko gives them under the scheduling policy best-effort: see
 * kmod/compute/context.c and kmod/sched/.
 */
#include "preempt_model.h"

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static unsigned int wants(const struct psim_device *m, const struct psim_active *a)
{
	return least(psim_job_of(m, a)->width, m->slots);
}

static bool is_queued(const struct psim_device *m, const struct psim_active *a)
{
	return a->held < least(wants(m, a), a->allowed);
}

void psim_module_order(struct psim_device *m, struct psim_active *a,
		       const struct ctx_order *o)
{
	if (!o->preempt) {
		bool queued = is_queued(m, a);

		a->allowed = m->slots;
		a->parked = 0;
		if (!queued)
			a->queued = ++m->turn;
		if (o->first)
			a->first = ++m->turn;
		return;
	}
	if (!a->parked && wants(m, a) > o->keep)
		a->parked = ++m->turn;
	a->allowed = o->keep;
	if (a->held - a->leaving > o->keep)
		psim_take(m, a, NULL, a->held - a->leaving - o->keep, o->method);
}

/* Whether no queued job of the same vGPU goes ahead of @a. */
static bool is_head(const struct psim_device *m, const struct psim_active *a)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct psim_active *b = &m->a[i];

		if (psim_job_of(m, b)->vgpu == psim_job_of(m, a)->vgpu && is_queued(m, b) &&
		    (b->first > a->first ||
		     (b->first == a->first && b->queued < a->queued)))
			return false;
	}
	return true;
}

/* Of the heads of the vGPUs' queues the one that was queued first. */
static struct psim_active *next_queued(struct psim_device *m)
{
	struct psim_active *best = NULL;

	for (size_t i = 0; i < m->n; i++) {
		struct psim_active *a = &m->a[i];

		if (is_queued(m, a) && (!best || a->queued < best->queued) && is_head(m, a))
			best = a;
	}
	return best;
}

/* Of the jobs that are kept off the one for longest. */
static struct psim_active *next_parked(struct psim_device *m)
{
	struct psim_active *best = NULL;

	for (size_t i = 0; i < m->n; i++) {
		struct psim_active *a = &m->a[i];

		if (a->parked && !a->leaving && a->held < wants(m, a) &&
		    (!best || a->parked < best->parked))
			best = a;
	}
	return best;
}

void psim_module_give(struct psim_device *m)
{
	while (m->free) {
		struct psim_active *a = next_queued(m);

		if (!a) {
			a = next_parked(m);
			if (!a)
				return;
			a->allowed = a->held + 1;
		}
		psim_launch(m, a, 1);
		if (!is_queued(m, a))
			a->first = 0;
		if (a->allowed >= wants(m, a))
			a->parked = 0;
	}
}
