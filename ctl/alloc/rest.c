// SPDX-License-Identifier: GPL-2.0-only
/* Decides whether limits rest. Pure. */
#include <math.h>

#include "rest.h"

static void turn(struct rest *r, bool in_force)
{
	r->in_force = in_force;
	r->periods = 0;
	r->gap = 0;
}

/* The distance above which limits come into force. */
static double bearable(const struct rest *r)
{
	return r->measured ? fmin(r->force, REST_FAR) + REST_MARGIN : REST_GAP;
}

static void measure_force(struct rest *r, double gap)
{
	if (r->measured < REST_FORCE_PERIODS)
		r->measured++;
	if (r->measured == 1)
		r->force = 0;
	r->force += (gap - r->force) / r->measured;
}

/* A rest has ended. */
static void wait_for_trial(struct rest *r)
{
	bool failed = r->measured && r->periods < r->wait;

	r->wait = failed ? r->wait * 2 : REST_TRIAL_MIN;
	if (r->wait > REST_TRIAL_MAX)
		r->wait = REST_TRIAL_MAX;
	turn(r, true);
}

/*
 * Reduce the weight of earlier trials when the active vGPUs change. An engine's order that was
 * unfair to the earlier vGPUs is probably unfair to these, too, but a trial may show otherwise.
 */
static void change_vgpus(struct rest *r)
{
	if (r->measured > REST_OTHERS_PERIODS)
		r->measured = REST_OTHERS_PERIODS;
	if (r->wait > REST_OTHERS_TRIAL)
		r->wait = REST_OTHERS_TRIAL;
}

bool rest_update(struct rest *r, double gap, size_t active, bool allowed)
{
	if (active != r->active)
		change_vgpus(r);
	r->active = active;
	/* what was learned under a promise does not count */
	if (!allowed) {
		r->wait = REST_TRIAL_MIN;
		r->measured = 0;
		turn(r, true);
		return false;
	}
	r->periods++;
	if (isnan(gap))
		return !r->in_force;
	if (r->in_force) {
		if (r->periods > REST_SETTLE)
			measure_force(r, gap);
		if (r->periods >= r->wait)
			turn(r, false);
	} else {
		r->gap += REST_NEW * (gap - r->gap);
		if (r->gap > bearable(r))
			wait_for_trial(r);
	}
	return !r->in_force;
}
