/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A model of an allowance in wide numbers, which the tests compare kmod/sched/bucket.c
 * with.
 */
#ifndef TESTS_UNIT_TEST_BUCKET_H
#define TESTS_UNIT_TEST_BUCKET_H

#include "sched/bucket.h"

__extension__ typedef __int128 s128;

#define MODEL_UNIT	((s128)1000000000)	/* of a nanosecond */
#define MODEL_RATE_MAX	4096000000000ULL
#define MODEL_CAP_MAX	3600000000000ULL

struct model {
	s128 rate, cap, level;	/* units per ns; units */
	u64 at;
};

static inline void model_gain(struct model *m, u64 now, s128 most)
{
	if (now > m->at) {
		m->level += m->rate * (now - m->at);
		m->at = now;
	}
	if (m->level > most)
		m->level = most;
}

static inline void model_begin(struct model *m, u64 now)
{
	model_gain(m, now, m->cap);
}

/* The debt that takes 2 s to pay back, to where one nanosecond is left. */
static inline void model_forgive(struct model *m)
{
	s128 least = MODEL_UNIT - m->rate * 2000000000;

	if (m->level < least)
		m->level = least + m->level % MODEL_UNIT +
			   (m->level % MODEL_UNIT < 0 ? MODEL_UNIT : 0);
}

static inline void model_set(struct model *m, u64 rate, u64 cap, u64 now)
{
	bool fresh = !m->rate;

	if (!fresh)
		model_gain(m, now, m->cap);
	m->rate = rate < MODEL_RATE_MAX ? rate : MODEL_RATE_MAX;
	m->cap = cap < MODEL_CAP_MAX ? cap : MODEL_CAP_MAX;
	m->cap = (m->cap ? m->cap : 1) * MODEL_UNIT;
	if (fresh) {
		m->level = m->cap;
		m->at = now;
	}
	if (m->level > m->cap)
		m->level = m->cap;
	model_forgive(m);
}

static inline void model_charge(struct model *m, u64 ns, u64 now)
{
	if (!m->rate)
		return;
	if (ns > INT64_MAX / 4)
		ns = INT64_MAX / 4;
	model_gain(m, now, m->cap + ns * MODEL_UNIT);
	m->level -= ns * MODEL_UNIT;
	model_forgive(m);
}

static inline void model_trim(struct model *m, u64 ns, u64 now)
{
	s128 most = ns * MODEL_UNIT;

	model_gain(m, now, most < m->cap ? most : m->cap);
}

/* Work starts while there is a whole nanosecond. */
static inline bool model_allows(const struct model *m, u64 now)
{
	struct model then = *m;

	model_gain(&then, now, m->cap);
	return !m->rate || then.level >= MODEL_UNIT;
}

/* Whether a charge of @ns would leave a debt of more than a millisecond. */
static inline bool model_spent(const struct model *m, u64 ns, u64 now)
{
	struct model then = *m;

	if (ns > INT64_MAX / 4)
		ns = INT64_MAX / 4;
	model_gain(&then, now, m->cap + ns * MODEL_UNIT);
	return m->rate && then.level - ns * MODEL_UNIT < -1000000 * MODEL_UNIT;
}

#endif /* TESTS_UNIT_TEST_BUCKET_H */
