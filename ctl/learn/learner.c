// SPDX-License-Identifier: GPL-2.0-only
/* From estimates to expectations. Pure. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "division.h"
#include "drift.h"
#include "due.h"
#include "learner.h"

static const double unknown[LEARN_RESOURCES] = { NAN, NAN };

/**
 * struct vm - what is known of a vGPU
 * @is: what outlives this process
 * @fps: frames per second in the last period, 0 if it was not active
 * @past: part of each resource that it used in each period, by @head of struct learner
 * @frames: its counter of frames at the end of the last period
 * @seen: there was a period before, so that @frames counts
 * @started: periods in a row in which it was starting
 * @asked: the period of the last question
 * @answer: the model's last answer, NAN before there is one
 * @last: what was expected of it last, NAN before that, and since it was active
 */
struct vm {
	struct learner_known is;
	double fps;
	double past[LEARN_RESOURCES][LEARN_PAST];
	uint64_t frames;
	bool seen;
	unsigned int started;
	uint64_t asked;
	double answer[LEARN_RESOURCES];
	double last[LEARN_RESOURCES];
};

/**
 * struct resource - idle parts of a resource
 * @id: id of the device
 * @idle: part that no VM used in each period, by @head of struct learner
 * @known: there was a period
 * @floors: part that granted floors need
 * @start: sum of the expectations of vGPUs that are starting
 */
struct resource {
	uint32_t id;
	double idle[LEARN_PAST];
	bool known;
	double floors;
	double start;
};

/**
 * struct learner - all that is known
 * @model: the model
 * @report: how it does
 * @drift: its errors
 * @vms: a vGPU each, in the order of the estimate
 * @gone: removed vGPUs that were active once, the last one last
 * @nr_gone: number of these
 * @devs: a device each, likewise
 * @cpu: the CPUs
 * @head: index of the present in all arrays of periods
 * @periods: number of periods
 * @next: index of the vGPU whose turn it is to be asked for
 * @next_check: the same of the answer that is checked
 * @due: the plan that answers are compared with
 * @in: the question
 * @who: index of each of its VMs in the estimate
 */
struct learner {
	struct learner_model model;
	struct learner_report report;
	struct drift drift;
	struct vm *vms;
	size_t nr_vms;
	struct learner_known gone[LEARNER_GONE];
	size_t nr_gone;
	struct resource *devs;
	size_t nr_devs;
	struct resource cpu;
	size_t head;
	uint64_t periods;
	size_t next, next_check;
	struct due due;
	struct learn_input in;
	size_t who[LEARN_CLIENTS];
};

struct learner *learner_new(void)
{
	struct learner *l = calloc(1, sizeof(*l));

	if (l)
		learner_use(l, &(struct learner_model){ .ops = NULL });
	return l;
}

void learner_free(struct learner *l)
{
	if (!l)
		return;
	free(l->vms);
	free(l->devs);
	due_free(&l->due);
	free(l);
}

static void forget_answers(struct vm *vm)
{
	memcpy(vm->answer, unknown, sizeof(vm->answer));
	memcpy(vm->last, unknown, sizeof(vm->last));
}

void learner_use(struct learner *l, const struct learner_model *model)
{
	l->model = *model;
	memset(&l->report, 0, sizeof(l->report));
	memset(&l->drift, 0, sizeof(l->drift));
	l->report.error = NAN;
	l->report.control = NAN;
	l->report.mode = !model->ops ? LEARNER_OFF :
		model->acts ? LEARNER_ACTS : LEARNER_SHADOW;
	for (size_t j = 0; j < l->nr_vms; j++)
		forget_answers(&l->vms[j]);
}

void learner_fail(struct learner *l, const char *why)
{
	if (l->report.mode == LEARNER_OFF || l->report.mode == LEARNER_FAILED)
		return;
	l->report.mode = LEARNER_FAILED;
	snprintf(l->report.why, sizeof(l->report.why), "%s", why);
}

const struct learner_report *learner_report(const struct learner *l)
{
	return &l->report;
}

const struct learner_known *learner_known(const struct learner *l, size_t i)
{
	if (i < l->nr_vms)
		return &l->vms[i].is;
	i -= l->nr_vms;
	return i < l->nr_gone ? &l->gone[i] : NULL;
}

static bool is_known(const struct learner_known *k)
{
	bool valid = k->periods >= 0 && isfinite(k->periods);

	for (int g = 0; g < LEARN_RESOURCES; g++)
		valid &= k->cost[g] >= 0 && isfinite(k->cost[g]) &&
			k->smooth[g] >= 0 && isfinite(k->smooth[g]);
	return valid;
}

int learner_know(struct learner *l, const struct learner_known *known, size_t n)
{
	struct vm *vms;

	for (size_t j = 0; j < n; j++)
		if (!is_known(&known[j]))
			return -EINVAL;
	vms = calloc(n ? n : 1, sizeof(*vms));
	if (!vms)
		return -ENOMEM;
	for (size_t j = 0; j < n; j++) {
		vms[j].is = known[j];
		forget_answers(&vms[j]);
	}
	free(l->vms);
	l->vms = vms;
	l->nr_vms = n;
	l->nr_gone = 0;
	return 0;
}

/* ---- vGPUs and devices ---- */

/* The index of a vGPU, which is most likely at @hint; nr_vms for none. */
static size_t find_vm(const struct learner *l, const char *uuid, size_t hint)
{
	if (hint < l->nr_vms && !strcmp(l->vms[hint].is.uuid, uuid))
		return hint;
	for (size_t j = 0; j < l->nr_vms; j++)
		if (!strcmp(l->vms[j].is.uuid, uuid))
			return j;
	return l->nr_vms;
}

static bool same_vms(const struct learner *l, const struct estimate *e)
{
	if (l->nr_vms != e->nr_vgpus)
		return false;
	for (size_t j = 0; j < l->nr_vms; j++)
		if (strcmp(l->vms[j].is.uuid, e->vgpus[j].last.uuid))
			return false;
	return true;
}

static void remove_gone(struct learner *l, size_t i)
{
	l->nr_gone--;
	memmove(l->gone + i, l->gone + i + 1, (l->nr_gone - i) * sizeof(*l->gone));
}

/* Remember a vGPU that was removed. */
static void add_gone(struct learner *l, const struct learner_known *known)
{
	if (!(known->periods > 0))
		return;
	if (l->nr_gone == LEARNER_GONE)
		remove_gone(l, 0);
	l->gone[l->nr_gone++] = *known;
}

/* Begin with a vGPU that is new, or was made anew. */
static void begin_vm(struct learner *l, struct vm *vm, const char *uuid)
{
	strcpy(vm->is.uuid, uuid);
	forget_answers(vm);
	for (size_t i = 0; i < l->nr_gone; i++)
		if (!strcmp(l->gone[i].uuid, uuid)) {
			vm->is = l->gone[i];
			remove_gone(l, i);
			return;
		}
}

/* Take over what is known of the vGPUs that there are. */
static int follow_vms(struct learner *l, const struct estimate *e)
{
	size_t hint = 0;
	struct vm *vms;

	if (same_vms(l, e))
		return 0;
	vms = calloc(e->nr_vgpus ? e->nr_vgpus : 1, sizeof(*vms));
	if (!vms)
		return -ENOMEM;
	for (size_t j = 0; j < e->nr_vgpus; j++) {
		size_t old = find_vm(l, e->vgpus[j].last.uuid, hint);

		if (old < l->nr_vms) {
			vms[j] = l->vms[old];
			hint = old + 1;
			/* it stays */
			l->vms[old].is.periods = 0;
			continue;
		}
		begin_vm(l, &vms[j], e->vgpus[j].last.uuid);
	}
	for (size_t j = 0; j < l->nr_vms; j++)
		add_gone(l, &l->vms[j].is);
	free(l->vms);
	l->vms = vms;
	l->nr_vms = e->nr_vgpus;
	return 0;
}

static struct resource *find_dev(struct learner *l, uint32_t id)
{
	for (size_t i = 0; i < l->nr_devs; i++)
		if (l->devs[i].id == id)
			return &l->devs[i];
	return NULL;
}

static int follow_devs(struct learner *l, const struct estimate *e)
{
	bool same = l->nr_devs == e->nr_devs;
	struct resource *devs;

	for (size_t i = 0; same && i < l->nr_devs; i++)
		same = l->devs[i].id == e->devs[i].id;
	if (same)
		return 0;
	devs = calloc(e->nr_devs ? e->nr_devs : 1, sizeof(*devs));
	if (!devs)
		return -ENOMEM;
	for (size_t i = 0; i < e->nr_devs; i++) {
		const struct resource *old = find_dev(l, e->devs[i].id);

		if (old)
			devs[i] = *old;
		devs[i].id = e->devs[i].id;
	}
	free(l->devs);
	l->devs = devs;
	l->nr_devs = e->nr_devs;
	return 0;
}

/* ---- learning ---- */

/* Return whether a vGPU that is not active has begun to show frames. */
static bool starts(const struct learner *l, const struct vm *vm,
		   const struct estimate_vgpu *v)
{
	if (v->state == VGPU_ACTIVE || !v->last.open)
		return false;
	/* new since the period before */
	if (!vm->seen)
		return l->periods && v->last.frames_total > 0;
	return v->last.frames - vm->frames - 1 < UINT64_MAX / 2;
}

static void learn_vm(struct learner *l, struct vm *vm, const struct estimate_vgpu *v)
{
	const double use[LEARN_RESOURCES] = { v->cpu_share, v->gpu_share };
	double part;

	vm->started = starts(l, vm, v) ? vm->started + 1 : 0;
	vm->fps = 0;
	for (int g = 0; g < LEARN_RESOURCES; g++)
		vm->past[g][l->head] = 0;
	if (v->state != VGPU_ACTIVE)
		return;
	vm->fps = v->fps;
	vm->is.periods++;
	vm->is.cost[LEARN_CPU] = v->cpu_cost_smooth;
	vm->is.cost[LEARN_ENGINE] = v->gpu_cost_smooth;
	part = 1 / fmin(vm->is.periods, LEARNER_KEEP);
	for (int g = 0; g < LEARN_RESOURCES; g++) {
		vm->past[g][l->head] = use[g];
		vm->is.smooth[g] += (use[g] - vm->is.smooth[g]) * part;
	}
	forget_answers(vm);
}

/* Add the idle part of the period; those before the first one repeat it. */
static void learn_idle(struct learner *l, struct resource *r)
{
	double idle = fmin(fmax(r->idle[l->head], 0), 1);

	for (size_t t = 0; !r->known && t < LEARN_PAST; t++)
		r->idle[t] = idle;
	r->idle[l->head] = idle;
	r->known = true;
}

static void learn(struct learner *l, const struct estimate *e)
{
	l->head = (l->head + 1) % LEARN_PAST;
	l->cpu.idle[l->head] = 1;
	for (size_t i = 0; i < l->nr_devs; i++)
		l->devs[i].idle[l->head] = 1;
	for (size_t j = 0; j < e->nr_vgpus; j++) {
		const struct estimate_vgpu *v = &e->vgpus[j];
		struct resource *dev = find_dev(l, v->last.dev);

		learn_vm(l, &l->vms[j], v);
		l->cpu.idle[l->head] -= v->cpu_share;
		if (dev)
			dev->idle[l->head] -= v->gpu_share;
	}
	learn_idle(l, &l->cpu);
	for (size_t i = 0; i < l->nr_devs; i++)
		learn_idle(l, &l->devs[i]);
	l->periods++;
}

static void remember_frames(struct learner *l, const struct estimate *e)
{
	for (size_t j = 0; j < e->nr_vgpus; j++) {
		l->vms[j].frames = e->vgpus[j].last.frames;
		l->vms[j].seen = true;
	}
}

/* ---- questions ---- */

/**
 * struct period - what a question is made from, beside what is known
 * @e: the estimate of the period
 * @text: descriptions, NULL for none
 * @sla: agreements, NULL for none
 */
struct period {
	const struct estimate *e;
	const char *const *text;
	const struct sla *sla;
};

static void add_task(struct learner *l, const struct period *p, size_t j, bool newcomer)
{
	struct learn_task *t = &l->in.task[l->in.n];
	const struct sample_vgpu *v = &p->e->vgpus[j].last;
	const struct vm *vm = &l->vms[j];

	l->who[l->in.n++] = j;
	memset(t, 0, sizeof(*t));
	if (p->text && p->text[j])
		snprintf(t->text, sizeof(t->text), "%s", p->text[j]);
	t->weight = v->weight ? v->weight : SAMPLE_WEIGHT;
	if (newcomer)
		return;
	t->periods = vm->is.periods;
	t->fps = vm->fps;
	for (int g = 0; g < LEARN_RESOURCES; g++) {
		t->cost[g] = vm->is.cost[g];
		t->use[g] = vm->past[g][l->head];
		t->smooth[g] = vm->is.smooth[g];
	}
}

/* Add active vGPUs on the device of the first one, or on other devices. */
static void add_others(struct learner *l, const struct period *p, size_t first, bool same,
		       uint32_t dev[LEARN_CLIENTS])
{
	const struct estimate *e = p->e;

	for (size_t j = 0; j < e->nr_vgpus && l->in.n < LEARN_CLIENTS; j++) {
		bool here = e->vgpus[j].last.dev == dev[0];

		if (j == first || e->vgpus[j].state != VGPU_ACTIVE || here != same)
			continue;
		dev[l->in.n] = e->vgpus[j].last.dev;
		add_task(l, p, j, false);
	}
}

/* Add the idle parts of the past; the use of the vGPU itself counts as idle. */
static void add_past(struct learner *l, const struct vm *vm, const struct resource *r, int g)
{
	for (size_t t = 0; t < LEARN_PAST; t++) {
		size_t at = (l->head + 1 + t) % LEARN_PAST;

		l->in.idle[g][t] = fmin((r ? r->idle[at] : 1) + vm->past[g][at], 1);
	}
	l->in.now[g] = 1;
}

/* Make the question for a vGPU; @newcomer: as if nothing were known of it. */
static void make_question(struct learner *l, const struct period *p, size_t j, bool newcomer)
{
	uint32_t dev[LEARN_CLIENTS];

	l->in.n = 0;
	dev[0] = p->e->vgpus[j].last.dev;
	add_task(l, p, j, newcomer);
	add_others(l, p, j, true, dev);
	add_others(l, p, j, false, dev);
	for (size_t a = 0; a < l->in.n; a++)
		for (size_t b = 0; b < l->in.n; b++)
			l->in.distance[a][b] = a == b ? 0 : dev[a] == dev[b] ? 1 : 2;
	add_past(l, &l->vms[j], &l->cpu, LEARN_CPU);
	add_past(l, &l->vms[j], find_dev(l, dev[0]), LEARN_ENGINE);
}

void learner_question(struct learner *l, const struct estimate *e, const char *const *text,
		      size_t vgpu, struct learn_input *in, size_t who[LEARN_CLIENTS])
{
	const struct period p = { .e = e, .text = text };

	make_question(l, &p, vgpu, false);
	*in = l->in;
	memcpy(who, l->who, l->in.n * sizeof(*who));
}

/* Let the model answer the question. Return false if its answer is none. */
static bool answer(struct learner *l, const struct vm *vm, double share[LEARN_RESOURCES])
{
	static const char *const name[LEARN_RESOURCES] = { "CPUs", "engines" };
	char why[sizeof(l->report.why)];

	memcpy(share, unknown, sizeof(unknown));
	l->model.ops->share(l->model.data, &l->in, share);
	l->report.answers++;
	for (int g = 0; g < LEARN_RESOURCES; g++) {
		/* NAN is in no range */
		if (!(share[g] >= -LEARNER_ROUNDING && share[g] <= 1 + LEARNER_ROUNDING)) {
			snprintf(why, sizeof(why),
				 "%s expects %g of the %s for vGPU %s, not 0 to 1; train it anew, or choose another model",
				 l->model.ops->name, share[g], name[g], vm->is.uuid);
			learner_fail(l, why);
			return false;
		}
		share[g] = fmin(fmax(share[g], 0), 1);
	}
	return true;
}

/* Return false if the model has failed. */
static bool ask(struct learner *l, const struct period *p, size_t j)
{
	struct vm *vm = &l->vms[j];

	vm->asked = l->periods;
	make_question(l, p, j, false);
	if (answer(l, vm, vm->answer))
		return true;
	forget_answers(vm);
	return false;
}

/* Ask for vGPUs that are not active: those that are starting first, the others in turn. */
static void ask_all(struct learner *l, const struct period *p)
{
	size_t left = LEARNER_QUESTIONS - 1, n = l->nr_vms, from;

	for (size_t j = 0; j < n && left; j++)
		if (l->vms[j].started) {
			left--;
			if (!ask(l, p, j))
				return;
		}
	from = n ? l->next % n : 0;
	for (size_t k = 0; k < n && left; k++) {
		size_t j = (from + k) % n;

		if (p->e->vgpus[j].state == VGPU_ACTIVE || l->vms[j].asked == l->periods)
			continue;
		left--;
		l->next = j + 1;
		if (!ask(l, p, j))
			return;
	}
}

/* ---- the watch ---- */

static double mean_error(const double *share, const double *due)
{
	double sum = 0;

	for (int g = 0; g < LEARN_RESOURCES; g++)
		sum += fabs(share[g] - due[g]);
	return sum / LEARN_RESOURCES;
}

/*
 * The part that an active vGPU has of what the plan gives out of a resource: a plan leaves
 * capacity idle where nobody can use it, and models do not predict how much.
 */
static double part_of_plan(const struct learner *l, const struct estimate *e, size_t j, int g)
{
	double sum = 0;

	for (size_t k = 0; k < e->nr_vgpus; k++)
		if (isfinite(l->due.share[k][g]) &&
		    (g == LEARN_CPU || e->vgpus[k].last.dev == e->vgpus[j].last.dev))
			sum += l->due.share[k][g];
	return sum > 0 ? l->due.share[j][g] / sum : 0;
}

/* Compare the answer for an active vGPU, and the control's, with the plan. */
static void check(struct learner *l, const struct period *p)
{
	double share[LEARN_RESOURCES], control[LEARN_RESOURCES];
	char why[sizeof(l->report.why)];
	size_t n = l->nr_vms, j = 0, k;
	double due[LEARN_RESOURCES];

	for (k = 0; k < n; k++) {
		j = (l->next_check + k) % n;
		if (isfinite(l->due.share[j][LEARN_CPU]) &&
		    isfinite(l->due.share[j][LEARN_ENGINE]))
			break;
	}
	if (k == n)
		return;
	l->next_check = j + 1;
	for (int g = 0; g < LEARN_RESOURCES; g++)
		due[g] = part_of_plan(l, p->e, j, g);
	make_question(l, p, j, true);
	if (!answer(l, &l->vms[j], share))
		return;
	learn_static.share(NULL, &l->in, control);
	if (drift_add(&l->drift, mean_error(share, due), mean_error(control, due))) {
		snprintf(why, sizeof(why),
			 "the error of %s is %.3f of late, that of %s %.3f; train it anew, or choose another model",
			 l->model.ops->name, l->drift.error, learn_static.name,
			 l->drift.control);
		learner_fail(l, why);
	}
	l->report.checked = l->drift.n;
	l->report.error = l->drift.error;
	l->report.control = l->drift.control;
}

/* ---- expectations ---- */

static double capacity(const struct estimate *e, size_t j, int g)
{
	if (g == LEARN_CPU)
		return e->cpu_capacity_smooth;
	for (size_t i = 0; i < e->nr_devs; i++)
		if (e->devs[i].id == e->vgpus[j].last.dev)
			return e->devs[i].engines;
	return 1;
}

static struct resource *resource_of(struct learner *l, const struct estimate *e, size_t j,
				    int g)
{
	return g == LEARN_CPU ? &l->cpu : find_dev(l, e->vgpus[j].last.dev);
}

static bool is_expected(const struct learner *l, const struct estimate *e, size_t j)
{
	return e->vgpus[j].state != VGPU_ACTIVE && isfinite(l->vms[j].answer[LEARN_CPU]);
}

static bool is_starting(const struct vm *vm)
{
	return vm->started && vm->started <= LEARNER_STARTING;
}

/* Return the part of a resource that floors leave; it is always enough to show a frame. */
static double room(const struct resource *r)
{
	return fmax(1 - (r ? r->floors : 0), LEARNER_PART_MIN);
}

static void sum_floors(struct learner *l, const struct estimate *e)
{
	l->cpu.floors = 0;
	l->cpu.start = 0;
	for (size_t i = 0; i < l->nr_devs; i++) {
		l->devs[i].floors = 0;
		l->devs[i].start = 0;
	}
	for (size_t j = 0; j < e->nr_vgpus; j++)
		for (int g = 0; g < LEARN_RESOURCES; g++) {
			struct resource *r = resource_of(l, e, j, g);

			if (r)
				r->floors += l->due.floor[j][g];
		}
}

/* From an answer to a share that this vGPU alone may have. */
static double own_share(struct learner *l, const struct period *p, size_t j, int g)
{
	const struct vm *vm = &l->vms[j];
	double per_fps = vm->is.cost[g] / capacity(p->e, j, g);
	double share = vm->answer[g], last = fmax(vm->last[g], LEARNER_PART_MIN);

	if (isfinite(vm->last[g]))
		share = fmin(fmax(share, last / LEARNER_STEP), last * LEARNER_STEP);
	if (per_fps > 0) {
		share = fmax(share, division_sla(p->sla, j)->floor * per_fps);
		share = fmin(share, division_ceiling(p->e, p->sla, j) * per_fps);
	}
	share = fmax(share, LEARNER_PART_MIN);
	return fmin(share, room(resource_of(l, p->e, j, g)));
}

/* The rate that both shares allow. */
static double rate(const struct learner *l, const struct period *p, size_t j,
		   const double share[LEARN_RESOURCES])
{
	double fps = INFINITY;

	for (int g = 0; g < LEARN_RESOURCES; g++)
		if (l->vms[j].is.cost[g] > 0)
			fps = fmin(fps, share[g] * capacity(p->e, j, g) /
				   l->vms[j].is.cost[g]);
	return isfinite(fps) ? fmin(fps, division_ceiling(p->e, p->sla, j)) : INFINITY;
}

/* Part of their shares that the vGPUs that are starting on a resource have room for. */
static double fit(const struct resource *r)
{
	return r && r->start > room(r) ? room(r) / r->start : 1;
}

static void expect_all(struct learner *l, const struct period *p, struct expect *expect)
{
	const struct estimate *e = p->e;

	sum_floors(l, e);
	for (size_t j = 0; j < e->nr_vgpus; j++) {
		if (!is_expected(l, e, j))
			continue;
		for (int g = 0; g < LEARN_RESOURCES; g++) {
			struct resource *r = resource_of(l, e, j, g);

			l->vms[j].last[g] = own_share(l, p, j, g);
			if (r && is_starting(&l->vms[j]))
				r->start += l->vms[j].last[g];
		}
	}
	for (size_t j = 0; j < e->nr_vgpus; j++) {
		double *last = l->vms[j].last;

		if (!is_expected(l, e, j))
			continue;
		expect[j].starting = is_starting(&l->vms[j]);
		for (int g = 0; expect[j].starting && g < LEARN_RESOURCES; g++)
			last[g] *= fit(resource_of(l, e, j, g));
		expect[j].cpu = last[LEARN_CPU];
		expect[j].gpu = last[LEARN_ENGINE];
		expect[j].fps = rate(l, p, j, last);
	}
}

int learner_update(struct learner *l, const struct estimate *e, const char *const *text,
		   const struct sla *sla, const struct fds_param *param,
		   struct expect *expect)
{
	const struct period p = { .e = e, .text = text, .sla = sla };
	bool measured = e->seconds > 0;

	for (size_t j = 0; j < e->nr_vgpus; j++)
		expect[j] = EXPECT_NONE;
	if (follow_vms(l, e) || follow_devs(l, e))
		return -ENOMEM;
	if (measured)
		learn(l, e);
	remember_frames(l, e);
	if (!measured || !l->model.ops)
		return 0;
	if (due_update(&l->due, e, sla, param))
		return -ENOMEM;
	check(l, &p);
	ask_all(l, &p);
	if (l->report.mode == LEARNER_ACTS)
		expect_all(l, &p, expect);
	return 0;
}
