// SPDX-License-Identifier: GPL-2.0-only
/* The table of preemption policies, the checks of their input, and names. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "preempt.h"

const struct preempt_ops *const preempt_all[] = {
	&preempt_none, &preempt_always, &preempt_drain, &preempt_flush, &preempt_mgpu, NULL,
};

const struct preempt_ops *preempt_find(const char *name)
{
	for (size_t i = 0; preempt_all[i]; i++)
		if (!strcmp(preempt_all[i]->name, name))
			return preempt_all[i];
	return NULL;
}

/* ---- checks ---- */

static bool within(double x, double min, double max)
{
	return x >= min && x <= max;	/* false for NAN */
}

const char *preempt_param_check(const struct preempt_param *p)
{
	if (!within(p->cost.a, 0, PREEMPT_COST_MAX) ||
	    !within(p->cost.b, 0, PREEMPT_COST_MAX))
		return "cost coefficients must be from 0 to 1000 cycles per byte";
	if (!(p->cost.a + p->cost.b > 0))
		return "at least one of the cost coefficients must be above 0";
	if (!within(p->decay_compute, PREEMPT_DECAY_MIN, 1))
		return "decay of compute-intensive contexts must be from 0.5 to 1";
	if (!within(p->decay_memory, PREEMPT_DECAY_MIN, 1))
		return "decay of memory-intensive contexts must be from 0.5 to 1";
	if (!within(p->class_threshold, PREEMPT_THRESHOLD_MIN, PREEMPT_THRESHOLD_MAX))
		return "class threshold must be from 0.05 to 0.95 of the time";
	if (p->starve_ns < PREEMPT_STARVE_MIN_NS || p->starve_ns > PREEMPT_STARVE_MAX_NS)
		return "starvation bound must be from 1 ms to 1 h";
	if (!within(p->min_gain, 0, 1))
		return "least gain must be from 0 to 1";
	return NULL;
}

/* Larger numbers cannot be measured, and their products could overflow. */
#define NUMBER_MAX	1e30
#define IPC_MIN		1e-9
#define IPC_MAX		1e9

static const char *ctx_check(const struct preempt_ctx *c)
{
	bool runs;

	if (c->state > PREEMPT_HELD || c->class > PREEMPT_UNKNOWN ||
	    c->share > PREEMPT_OVER)
		return "invalid state, class or share of a context";
	if (c->state == PREEMPT_IDLE)
		return c->held || c->coming || c->leaving ?
			"an idle context must not hold or be promised slots" : NULL;
	runs = c->state == PREEMPT_RUNNING;
	if (runs != !!c->held)
		return runs ? "a running context must hold a slot" :
			"a context that is not running must not hold slots";
	if (c->leaving > c->held)
		return "more slots leave a context than it holds";
	if (c->coming && c->state == PREEMPT_HELD)
		return "a held context must not be promised slots";
	if (!c->wanted)
		return "a context that is not idle must want at least one slot";
	if (!within(c->ipc, IPC_MIN, IPC_MAX))
		return "a context's ipc must be above 0";
	if (!within(c->rest_inst, -NUMBER_MAX, NUMBER_MAX) ||
	    !within(c->done_inst, 0, NUMBER_MAX))
		return "a context's instructions must be finite";
	if (!within(c->miss, 0, 1))
		return "a context's miss rate must be from 0 to 1";
	if (!within(c->bytes, 0, NUMBER_MAX) || !within(c->tile_cycles, 0, NUMBER_MAX))
		return "a context's bytes and cycles of a tile must be finite and not negative";
	return NULL;
}

const char *preempt_snapshot_check(const struct preempt_snapshot *s)
{
	unsigned int used, leaving = 0;

	if (s->slots < 1 || s->slots > PREEMPT_SLOTS_MAX)
		return "a device must have from 1 to 64 slots";
	if (s->n > PREEMPT_CTX_MAX)
		return "more than 4096 contexts";
	if (s->free > s->slots)
		return "more slots are free or held than the device has";
	if (!s->norm || preempt_norm_check(s->norm))
		return "table of norm_ipc out of range";
	for (int m = 0; m < PREEMPT_METHODS; m++)
		if (!within(s->guard.extra[m], 0, NUMBER_MAX))
			return "extra cost of a preemption must be finite and not negative";
	used = s->free;
	for (size_t i = 0; i < s->n; i++) {
		const char *why = ctx_check(&s->ctx[i]);

		if (why)
			return why;
		if (s->ctx[i].held > s->slots - used)
			return "more slots are free or held than the device has";
		used += s->ctx[i].held;
		leaving += s->ctx[i].leaving;
	}
	for (size_t i = 0; i < s->n; i++) {
		if (s->ctx[i].coming > leaving)
			return "more slots are promised than are leaving";
		leaving -= s->ctx[i].coming;
	}
	return NULL;
}

enum preempt_class preempt_classify(const struct preempt_param *p, double bound)
{
	if (isnan(bound))
		return PREEMPT_UNKNOWN;
	return bound >= p->class_threshold ? PREEMPT_MEMORY : PREEMPT_COMPUTE;
}

double preempt_cost_cycles(const struct preempt_cost *c, double miss, double bytes)
{
	return (c->a * miss + c->b) * bytes;
}

/* ---- decisions ---- */

int preempt_decide(const struct preempt_ops *ops, const struct preempt_snapshot *s,
		   const struct preempt_param *p, struct preempt_plan *plan)
{
	plan->n = 0;
	if (preempt_param_check(p) || preempt_snapshot_check(s))
		return -EINVAL;
	ops->decide(s, p, plan);
	return 0;
}

static uint64_t later_than(uint64_t now, uint64_t t, uint64_t best)
{
	return t > now && t < best ? t : best;
}

uint64_t preempt_wake_ns(const struct preempt_snapshot *s, const struct preempt_param *p)
{
	uint64_t wake = UINT64_MAX;
	bool waiting = false;

	for (size_t i = 0; i < s->n; i++) {
		const struct preempt_ctx *c = &s->ctx[i];

		if ((c->state != PREEMPT_WAITING && c->state != PREEMPT_PREEMPTED) ||
		    c->share == PREEMPT_OVER)
			continue;
		waiting = true;
		if (c->since_ns <= UINT64_MAX - p->starve_ns)
			wake = later_than(s->now_ns, c->since_ns + p->starve_ns, wake);
	}
	for (size_t i = 0; waiting && i < s->n; i++)
		if (s->ctx[i].state == PREEMPT_RUNNING)
			wake = later_than(s->now_ns, s->ctx[i].keep_until_ns, wake);
	return wake;
}

/* ---- names ---- */

#define NAME(table, i) \
	((unsigned int)(i) < sizeof(table) / sizeof((table)[0]) ? (table)[i] : "?")

const char *preempt_class_name(enum preempt_class c)
{
	static const char *const name[] = { "compute", "memory", "unknown" };

	return NAME(name, c);
}

const char *preempt_state_name(enum preempt_state s)
{
	static const char *const name[] = {
		"idle", "waiting", "running", "preempted", "held",
	};

	return NAME(name, s);
}

const char *preempt_method_name(enum preempt_method m)
{
	static const char *const name[] = { "switch", "drain", "flush" };

	return NAME(name, m);
}

const char *preempt_action_name(enum preempt_action a)
{
	static const char *const name[] = { "launch", "resume", "preempt" };

	return NAME(name, a);
}

const char *preempt_reason_name(enum preempt_reason r)
{
	static const char *const name[] = {
		"free-slot", "grow", "gain", "starved", "rule",
	};

	return NAME(name, r);
}
