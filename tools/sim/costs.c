// SPDX-License-Identifier: GPL-2.0-only
/* Costs of frames over time: generated, or replayed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "costs.h"
#include "random.h"
#include "tracefile.h"

#define MADE_STEP_NS	(MACHINE_NSEC / 10)
#define TRACE_STEP_NS	MACHINE_NSEC

/* Without a frame for longer a VM of a trace is idle, not just slow. */
#define IDLE_STEPS	3

/* Costs of the frames in a step of time. */
struct step {
	struct machine_frame mean;
	size_t first, nr;	/* a trace's frames */
};

struct costs {
	size_t nr_vms, nr_steps;
	uint64_t step_ns;
	uint64_t seed;
	struct step *steps;	/* nr_steps of each VM */
	double *noise;		/* of each VM */
	struct machine_frame *frames;
	uint64_t *count;	/* frames that each VM has begun */
	uint64_t *at;		/* in which step the last one was */
	uint64_t *in_step;	/* and how many before it there */
};

/* ---- making ---- */

static struct costs *new(size_t nr_vms, size_t nr_steps, uint64_t step_ns)
{
	struct costs *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->nr_vms = nr_vms;
	c->nr_steps = nr_steps;
	c->step_ns = step_ns;
	c->steps = calloc(nr_vms * nr_steps, sizeof(*c->steps));
	c->noise = calloc(nr_vms, sizeof(*c->noise));
	c->count = calloc(nr_vms, sizeof(*c->count));
	c->at = calloc(nr_vms, sizeof(*c->at));
	c->in_step = calloc(nr_vms, sizeof(*c->in_step));
	if (!c->steps || !c->noise || !c->count || !c->at || !c->in_step) {
		costs_free(c);
		return NULL;
	}
	costs_rewind(c);
	return c;
}

void costs_free(struct costs *c)
{
	if (!c)
		return;
	free(c->steps);
	free(c->noise);
	free(c->count);
	free(c->at);
	free(c->in_step);
	free(c->frames);
	free(c);
}

void costs_rewind(struct costs *c)
{
	memset(c->count, 0, c->nr_vms * sizeof(*c->count));
	memset(c->in_step, 0, c->nr_vms * sizeof(*c->in_step));
	for (size_t j = 0; j < c->nr_vms; j++)
		c->at[j] = UINT64_MAX;
}

struct costs *costs_generate(const struct cost_spec *spec, size_t nr_vms,
			     double seconds, uint64_t seed)
{
	double step = (double)MADE_STEP_NS / (double)MACHINE_NSEC;
	struct costs *c = new(nr_vms, (size_t)ceil(seconds / step) + 1, MADE_STEP_NS);

	if (!c)
		return NULL;
	c->seed = seed;
	for (size_t j = 0; j < nr_vms; j++) {
		const struct cost_spec *s = &spec[j];
		struct random r = { stream(seed, j, 1) };
		double keep = s->drift_s > 0 ? exp(-step / s->drift_s) : 0;
		double cpu = normal(&r), engine = normal(&r);
		double scene_cpu = normal(&r), scene_engine = normal(&r);

		c->noise[j] = s->noise;
		for (size_t k = 0; k < c->nr_steps; k++) {
			struct step *to = &c->steps[j * c->nr_steps + k];

			to->mean.cpu_ns = s->cpu_ms * 1e6 * factor(s->drift, cpu) *
				factor(s->scene, scene_cpu);
			to->mean.engine_ns = s->engine_ms * 1e6 *
				factor(s->drift, engine) *
				factor(s->scene, scene_engine);
			cpu = keep * cpu + sqrt(1 - keep * keep) * normal(&r);
			engine = keep * engine + sqrt(1 - keep * keep) * normal(&r);
			if (s->scene_s > 0 && draw(&r) < step / s->scene_s) {
				scene_cpu = normal(&r);
				scene_engine = normal(&r);
			}
		}
	}
	return c;
}

/* ---- replaying ---- */

static size_t step_of(const struct costs *c, uint64_t ns)
{
	return (size_t)(ns / c->step_ns % c->nr_steps);
}

/* In two passes: how many frames each step has, then which. */
struct costs *costs_replay(const struct trace *t)
{
	double step = (double)TRACE_STEP_NS / (double)MACHINE_NSEC;
	size_t steps = (size_t)ceil(t->seconds / step), all = 0;
	struct costs *c = new(t->nr_vms, steps ? steps : 1, TRACE_STEP_NS);

	if (!c)
		return NULL;
	for (size_t i = 0; i < t->nr; i++) {
		const struct trace_frame *f = &t->frames[i];
		size_t k = (size_t)(f->time_s / step);

		k = k < c->nr_steps ? k : c->nr_steps - 1;
		c->steps[f->vm * c->nr_steps + k].nr += f->frames;
	}
	for (size_t k = 0; k < c->nr_vms * c->nr_steps; k++) {
		c->steps[k].first = all;
		all += c->steps[k].nr;
		c->steps[k].nr = 0;
	}
	c->frames = calloc(all ? all : 1, sizeof(*c->frames));
	if (!c->frames) {
		costs_free(c);
		return NULL;
	}
	for (size_t i = 0; i < t->nr; i++) {
		const struct trace_frame *f = &t->frames[i];
		size_t k = (size_t)(f->time_s / step);
		struct machine_frame one = {
			.cpu_ns = f->cpu_s * 1e9 / f->frames,
			.engine_ns = f->engine_s * 1e9 / f->frames,
		};
		struct step *to;

		k = k < c->nr_steps ? k : c->nr_steps - 1;
		to = &c->steps[f->vm * c->nr_steps + k];
		for (uint32_t n = 0; n < f->frames; n++)
			c->frames[to->first + to->nr++] = one;
	}
	for (size_t k = 0; k < c->nr_vms * c->nr_steps; k++) {
		struct step *s = &c->steps[k];

		for (size_t n = 0; n < s->nr; n++) {
			s->mean.cpu_ns += c->frames[s->first + n].cpu_ns / (double)s->nr;
			s->mean.engine_ns += c->frames[s->first + n].engine_ns / (double)s->nr;
		}
	}
	return c;
}

/* The step with frames that speaks for step @k: itself, or the next one. */
static const struct step *with_frames(const struct costs *c, size_t vm, size_t k)
{
	const struct step *steps = &c->steps[vm * c->nr_steps];

	for (size_t n = 0; n < c->nr_steps; n++) {
		const struct step *s = &steps[(k + n) % c->nr_steps];

		if (!c->frames || s->nr)
			return s;
	}
	return NULL;
}

/* ---- asking ---- */

void costs_frame(void *data, size_t vm, uint64_t now_ns, struct machine_frame *f)
{
	struct costs *c = data;
	uint64_t nth = c->count[vm]++;
	const struct step *s = with_frames(c, vm, step_of(c, now_ns));
	struct random r = { stream(c->seed, vm, nth + 2) };

	if (!s) {
		*f = (struct machine_frame){ MACHINE_COST_MIN, MACHINE_COST_MIN };
		return;
	}
	if (c->frames) {
		uint64_t at = (uint64_t)(s - c->steps);

		if (c->at[vm] != at)
			c->in_step[vm] = 0;
		c->at[vm] = at;
		*f = c->frames[s->first + c->in_step[vm]++ % s->nr];
		return;
	}
	*f = s->mean;
	if (c->noise[vm] > 0) {
		double z = factor(c->noise[vm], normal(&r));

		f->cpu_ns *= z;
		f->engine_ns *= z;
	}
}

bool costs_wants(const struct costs *c, size_t vm, uint64_t now_ns)
{
	const struct step *steps = &c->steps[vm * c->nr_steps];
	size_t k = step_of(c, now_ns);

	if (!c->frames)
		return true;
	for (size_t n = 0; n <= IDLE_STEPS && n < c->nr_steps; n++)
		if (steps[(k + n) % c->nr_steps].nr)
			return true;
	return false;
}

bool costs_mean(const struct costs *c, size_t vm, uint64_t from_ns, uint64_t to_ns,
		struct machine_frame *f)
{
	struct machine_frame sum = { 0 };
	double time = 0;

	while (from_ns < to_ns) {
		uint64_t end = (from_ns / c->step_ns + 1) * c->step_ns;
		const struct step *s = with_frames(c, vm, step_of(c, from_ns));
		double part;

		if (!s || !costs_wants(c, vm, from_ns))
			return false;
		end = end < to_ns ? end : to_ns;
		part = (double)(end - from_ns);
		sum.cpu_ns += s->mean.cpu_ns * part;
		sum.engine_ns += s->mean.engine_ns * part;
		time += part;
		from_ns = end;
	}
	f->cpu_ns = fmax(sum.cpu_ns / time, MACHINE_COST_MIN);
	f->engine_ns = fmax(sum.engine_ns / time, MACHINE_COST_MIN);
	return true;
}

void costs_describe(const struct costs *c, size_t vm, struct machine_frame *mean,
		    struct machine_frame *std)
{
	const struct step *steps = &c->steps[vm * c->nr_steps];
	struct machine_frame sum = { 0 }, squares = { 0 };
	double n = 0;

	/* a trace's frames count one each, whatever their second */
	for (size_t k = 0; k < c->nr_steps; k++) {
		double w = c->frames ? (double)steps[k].nr : 1;

		n += w;
		sum.cpu_ns += w * steps[k].mean.cpu_ns;
		sum.engine_ns += w * steps[k].mean.engine_ns;
	}
	*mean = (struct machine_frame){ 0 };
	*std = *mean;
	if (!(n > 0))
		return;
	mean->cpu_ns = sum.cpu_ns / n;
	mean->engine_ns = sum.engine_ns / n;
	for (size_t k = 0; k < c->nr_steps; k++) {
		double w = c->frames ? (double)steps[k].nr : 1;
		double cpu = steps[k].mean.cpu_ns - mean->cpu_ns;
		double engine = steps[k].mean.engine_ns - mean->engine_ns;

		squares.cpu_ns += w * cpu * cpu;
		squares.engine_ns += w * engine * engine;
	}
	std->cpu_ns = sqrt(squares.cpu_ns / n);
	std->engine_ns = sqrt(squares.engine_ns / n);
}
