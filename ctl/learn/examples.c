// SPDX-License-Identifier: GPL-2.0-only
/* From histories to samples. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "draw.h"
#include "due.h"
#include "examples.h"
#include "learner.h"

const char *const example_kind_name[EXAMPLE_KINDS] = {
	[EXAMPLE_NEW] = "new", [EXAMPLE_WAKES] = "wakes", [EXAMPLE_ACTIVE] = "active",
};

/**
 * struct open_question - a question that waits for its plan
 * @due: the period of the plan, by number
 * @kind: enum example_kind
 * @in: the question
 * @uuid: of each VM of the question
 */
struct open_question {
	uint64_t due;
	enum example_kind kind;
	struct learn_input in;
	char uuid[LEARN_CLIENTS][SAMPLE_UUID_LEN];
};

/**
 * struct maker - a history that samples are made of
 * @x: samples
 * @o: which
 * @learner: what is known
 * @due: plan of the period
 * @seed: state of random numbers
 * @period: number of the period
 * @open: questions that wait, in the order of their periods
 * @nr: number of them
 * @room: questions that there is memory for
 */
struct maker {
	struct examples *x;
	const struct example_options *o;
	struct learner *learner;
	struct due due;
	uint64_t seed;
	uint64_t period;
	struct open_question *open;
	size_t nr;
	size_t room;
};

/* Make room for one more entry of @size bytes; false if memory ran out. */
static bool grow(void **array, size_t room, size_t size)
{
	void *more = reallocarray(*array, room, size);

	if (more)
		*array = more;
	return more;
}

static int add_sample(struct examples *x, const struct open_question *q,
		      float label[LEARN_RESOURCES][LEARN_CLIENTS])
{
	if (x->nr == x->room) {
		size_t room = x->room ? 2 * x->room : 256;

		if (!grow((void **)&x->sample, room, sizeof(*x->sample)) ||
		    !grow((void **)&x->kind, room, sizeof(*x->kind)) ||
		    !grow((void **)&x->run, room, sizeof(*x->run)))
			return -ENOMEM;
		x->room = room;
	}
	x->sample[x->nr].in = q->in;
	memcpy(x->sample[x->nr].label, label, sizeof(x->sample[x->nr].label));
	x->kind[x->nr] = (unsigned char)q->kind;
	x->run[x->nr++] = x->runs - 1;
	return 0;
}

/* ---- answers ---- */

static size_t find(const struct estimate *e, const char *uuid)
{
	for (size_t j = 0; j < e->nr_vgpus; j++)
		if (!strcmp(e->vgpus[j].last.uuid, uuid))
			return j;
	return e->nr_vgpus;
}

/*
 * Write the VMs' parts of the plan. A VM that is no longer active has no part, and a VM on
 * another device has no part of these engines. Return false if the first VM has none.
 */
static bool make_label(const struct maker *m, const struct estimate *e,
		       const struct open_question *q,
		       float label[LEARN_RESOURCES][LEARN_CLIENTS])
{
	memset(label, 0, sizeof(float) * LEARN_RESOURCES * LEARN_CLIENTS);
	for (int g = 0; g < LEARN_RESOURCES; g++) {
		double sum = 0, share[LEARN_CLIENTS] = { 0 };

		for (size_t i = 0; i < q->in.n; i++) {
			size_t j = find(e, q->uuid[i]);

			if (j == e->nr_vgpus || !isfinite(m->due.share[j][g]) ||
			    (g == LEARN_ENGINE && q->in.distance[0][i] > 1))
				continue;
			share[i] = m->due.share[j][g];
			sum += share[i];
		}
		if (!(share[0] > 0))
			return false;
		for (size_t i = 0; i < q->in.n; i++)
			label[g][i] = (float)(share[i] / sum);
	}
	return true;
}

/* Answer the questions whose plan is that of this period. */
static int answer(struct maker *m, const struct estimate *e)
{
	float label[LEARN_RESOURCES][LEARN_CLIENTS];
	size_t done = 0;
	int ret = 0;

	while (!ret && done < m->nr && m->open[done].due <= m->period) {
		const struct open_question *q = &m->open[done++];

		if (make_label(m, e, q, label))
			ret = add_sample(m->x, q, label);
	}
	if (done) {
		m->nr -= done;
		memmove(m->open, m->open + done, m->nr * sizeof(*m->open));
	}
	return ret;
}

/* ---- questions ---- */

static void forget(struct learn_task *t, bool all)
{
	t->fps = 0;
	for (int g = 0; g < LEARN_RESOURCES; g++) {
		t->use[g] = 0;
		if (all) {
			t->cost[g] = 0;
			t->smooth[g] = 0;
		}
	}
	if (all)
		t->periods = 0;
}

/* Add a question for a vGPU, as if it were of a kind. */
static int ask(struct maker *m, const struct history_period *p, const char *const *text,
	       size_t vgpu, enum example_kind kind)
{
	struct open_question *q;
	size_t who[LEARN_CLIENTS];

	if (!(m->o->kinds & 1u << kind))
		return 0;
	if (m->nr == m->room) {
		size_t room = m->room ? 2 * m->room : 64;

		if (!grow((void **)&m->open, room, sizeof(*m->open)))
			return -ENOMEM;
		m->room = room;
	}
	q = &m->open[m->nr++];
	q->due = m->period + m->o->horizon;
	q->kind = kind;
	learner_question(m->learner, &p->e, text, vgpu, &q->in, who);
	for (size_t i = 0; i < q->in.n; i++)
		strcpy(q->uuid[i], p->e.vgpus[who[i]].last.uuid);
	if (kind != EXAMPLE_ACTIVE)
		forget(&q->in.task[0], kind == EXAMPLE_NEW);
	return 0;
}

static int ask_all(struct maker *m, const struct history_period *p, const char *const *text)
{
	int ret = 0;

	for (size_t j = 0; !ret && j < p->e.nr_vgpus; j++) {
		const struct learner_known *known = learner_known(m->learner, j);

		if (p->e.vgpus[j].state != VGPU_ACTIVE) {
			ret = ask(m, p, text, j, known->periods > 0 ? EXAMPLE_WAKES : EXAMPLE_NEW);
			continue;
		}
		ret = ask(m, p, text, j, EXAMPLE_ACTIVE);
		if (!ret && random_part(&m->seed) < m->o->part)
			ret = ask(m, p, text, j, EXAMPLE_NEW);
		if (!ret && random_part(&m->seed) < m->o->part)
			ret = ask(m, p, text, j, EXAMPLE_WAKES);
	}
	return ret;
}

/* ---- a history ---- */

/* Nothing of what was before counts for a run that begins. */
static int begin_run(struct maker *m)
{
	learner_free(m->learner);
	m->learner = learner_new();
	m->nr = 0;
	m->x->runs++;
	return m->learner ? 0 : -ENOMEM;
}

static int add_period(struct maker *m, const struct history_period *p)
{
	size_t n = p->e.nr_vgpus;
	const char **text = calloc(n + 1, sizeof(*text));
	struct expect *expect = calloc(n + 1, sizeof(*expect));
	int ret = text && expect ? 0 : -ENOMEM;

	for (size_t j = 0; !ret && j < n; j++)
		text[j] = p->text[j];
	if (!ret && p->begins)
		ret = begin_run(m);
	m->period++;
	if (!ret)
		ret = due_update(&m->due, &p->e, NULL, &m->o->fds);
	if (!ret)
		ret = answer(m, &p->e);
	if (!ret)
		ret = learner_update(m->learner, &p->e, text, NULL, &m->o->fds, expect);
	if (!ret)
		ret = ask_all(m, p, text);
	free(text);
	free(expect);
	return ret;
}

int examples_add(struct examples *x, FILE *f, const char *name,
		 const struct example_options *o, char *why, size_t len)
{
	struct maker m = { .x = x, .o = o, .seed = o->seed };
	struct history h = { .f = f, .name = name };
	struct history_period p;
	int ret;

	if (!x->digest)
		x->digest = CHECKSUM_START;
	while ((ret = history_next(&h, &p, why, len)) > 0) {
		x->digest = checksum_add(x->digest, h.text, strlen(h.text));
		ret = add_period(&m, &p);
		if (ret) {
			snprintf(why, len, "%s: out of memory", name);
			break;
		}
		history_period_free(&p);
	}
	history_period_free(&p);
	history_free(&h);
	learner_free(m.learner);
	due_free(&m.due);
	free(m.open);
	return ret;
}

void examples_free(struct examples *x)
{
	free(x->sample);
	free(x->kind);
	free(x->run);
	memset(x, 0, sizeof(*x));
}
