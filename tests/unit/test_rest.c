// SPDX-License-Identifier: GPL-2.0-only
/* Whether limits rest. */
#include <math.h>

#include "rest.h"
#include "tap.h"

#define VMS	3

/* Give periods with a gap for each state until a number of them is over; count rests. */
static unsigned int live(struct rest *r, unsigned int periods, double resting, double in_force)
{
	unsigned int rested = 0;

	for (unsigned int k = 0; k < periods; k++) {
		rested += !r->in_force;
		rest_update(r, r->in_force ? in_force : resting, VMS, true);
	}
	return rested;
}

static void fair_without(void)
{
	struct rest r = { 0 };

	TAP_EQ(live(&r, 1000, 0.003, 0.01), 1000);
}

static void unfair_without(void)
{
	struct rest r = { 0 };

	TAP_EQ(rest_update(&r, 0.1, VMS, true), false);
	/* trials, each of one period, after 10, 20, 40, 80, 160, 320 and 640 more */
	TAP_EQ(live(&r, 1300, 0.1, 0.01), 7);
	/* and later after 640 each time */
	TAP_EQ(live(&r, 6410, 0.1, 0.01), 10);
}

/* Limits that do no good are not kept, and limits that do some are not given up. */
static void compared(void)
{
	struct rest r = { 0 };

	rest_update(&r, 0.12, VMS, true);
	TAP_CHECK(r.in_force);
	TAP_CHECK(live(&r, 1000, 0.03, 0.04) > 980);
	r = (struct rest){ 0 };
	TAP_CHECK(live(&r, 1000, 0.05, 0.004) < 150);
	/* however bad periods with limits are, very unfair ones without are not borne */
	r = (struct rest){ 0 };
	TAP_CHECK(live(&r, 1000, 0.12, 0.13) < 50);
}

/* One bad period with limits does not make unfair ones without limits bearable. */
static void a_bad_period_in_force(void)
{
	struct rest r = { 0 };

	rest_update(&r, 0.1, VMS, true);
	live(&r, REST_SETTLE, 0.1, 0.005);
	rest_update(&r, 0.2, VMS, true);
	TAP_CHECK(live(&r, 1000, 0.06, 0.005) < 50);
}

/* One bad period costs few with limits. */
static void a_bad_period(void)
{
	struct rest r = { 0 };

	live(&r, 100, 0.003, 0.01);
	rest_update(&r, 0.2, VMS, true);
	TAP_CHECK(r.in_force);
	TAP_EQ(live(&r, 1000, 0.003, 0.01), 1000 - REST_TRIAL_MIN);
}

static void promises(void)
{
	struct rest r = { 0 };

	for (unsigned int k = 0; k < 1000; k++)
		TAP_EQ(rest_update(&r, 0, VMS, false), false);
	TAP_EQ(rest_update(&r, 0, VMS, true), false);
	TAP_CHECK(live(&r, 1000, 0.003, 0.01) > 1000 - 2 * REST_TRIAL_MIN);

	/* the distance that a promise costs does not count */
	r = (struct rest){ 0 };
	for (unsigned int k = 0; k < 1000; k++)
		rest_update(&r, 0.4, VMS, false);
	TAP_CHECK(live(&r, 1000, 0.1, 0.01) < 50);
}

static void unknown(void)
{
	struct rest r = { 0 };

	for (unsigned int k = 0; k < 1000; k++)
		TAP_EQ(rest_update(&r, NAN, VMS, true), true);
	rest_update(&r, 0.1, VMS, true);
	for (unsigned int k = 0; k < 1000; k++)
		TAP_EQ(rest_update(&r, NAN, VMS, true), false);
	TAP_EQ(r.measured, 0);
}

/* When a vGPU comes or goes, a trial is due sooner, but not at once. */
static void others_come(void)
{
	struct rest r = { 0 };

	live(&r, 2000, 0.1, 0.01);
	TAP_EQ(r.wait, REST_TRIAL_MAX);
	TAP_CHECK(r.in_force);
	r.periods = 0;
	for (unsigned int k = 0; k < REST_OTHERS_TRIAL; k++) {
		TAP_CHECK(r.in_force);
		rest_update(&r, 0.01, VMS + 1, true);
	}
	TAP_CHECK(!r.in_force);
	/* nor later than it was */
	r = (struct rest){ 0 };
	rest_update(&r, 0.1, VMS, true);
	rest_update(&r, 0.01, VMS + 1, true);
	TAP_CHECK(r.in_force);
	TAP_EQ(r.wait, REST_TRIAL_MIN);
}

/* Trials that fail are seldom although vGPUs come and go between them. */
static void others_keep_coming(void)
{
	struct rest r = { 0 };
	unsigned int rested = 0, nr = 3000;

	for (unsigned int k = 0; k < nr; k++) {
		rested += !r.in_force;
		rest_update(&r, r.in_force ? 0.01 : 0.1, VMS + k / 15 % 2, true);
	}
	TAP_CHECK(rested < nr / REST_OTHERS_TRIAL + 5);
	/* and where rates are fair without limits, the first trial shows it */
	rested = 0;
	for (unsigned int k = 0; k < nr; k++) {
		rested += !r.in_force;
		rest_update(&r, r.in_force ? 0.01 : 0.003, VMS + k / 15 % 2, true);
	}
	TAP_CHECK(rested > nr - 2 * REST_OTHERS_TRIAL);
}

int main(void)
{
	tap_run(fair_without, "limits rest where rates are fair without them");
	tap_run(unfair_without, "else they rest for a trial only, ever more seldom");
	tap_run(compared, "each state is compared with the other");
	tap_run(a_bad_period_in_force, "a bad period with limits is only one of many");
	tap_run(a_bad_period, "a bad period brings limits for some periods");
	tap_run(promises, "they do not rest where there is a promise");
	tap_run(unknown, "what is not known changes nothing");
	tap_run(others_come, "when a vGPU comes or goes, a trial is due sooner");
	tap_run(others_keep_coming, "what trials showed outlives comings and goings");
	return tap_done();
}
