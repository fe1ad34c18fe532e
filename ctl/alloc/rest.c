// SPDX-License-Identifier: GPL-2.0-only
/* Whether limits rest. Pure. */
#include <math.h>

#include "rest.h"

static void turn(struct rest *r, bool in_force)
{
	r->in_force = in_force;
	r->periods = 0;
	r->gap = 0;
}

/* The distance from which on limits come into force. */
static double bearable(const struct rest *r)
{
	return r->known ? r->force + REST_MARGIN : REST_GAP;
}

bool rest_update(struct rest *r, double gap, size_t active, bool allowed)
{
	if (r->wait < REST_TRIAL_MIN)
		r->wait = REST_TRIAL_MIN;
	if (active != r->active) {
		/* what was learned is of other vGPUs */
		r->active = active;
		r->wait = REST_TRIAL_MIN;
		r->known = false;
	}
	r->periods++;
	if (!allowed) {
		if (!r->in_force)
			turn(r, true);
	} else if (isnan(gap)) {
		/* nothing to judge by */
	} else if (r->in_force) {
		if (r->periods > REST_SETTLE) {
			r->force += r->known ? REST_NEW_FORCE * (gap - r->force) :
				gap - r->force;
			r->known = true;
		}
		if (r->periods >= r->wait)
			turn(r, false);
	} else {
		r->gap += REST_NEW * (gap - r->gap);
		if (r->gap > bearable(r)) {
			if (r->known && r->periods < r->wait)
				r->wait *= 2;
			else
				r->wait = REST_TRIAL_MIN;
			if (r->wait > REST_TRIAL_MAX)
				r->wait = REST_TRIAL_MAX;
			turn(r, true);
		}
	}
	return !r->in_force;
}
