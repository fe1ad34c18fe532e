// SPDX-License-Identifier: GPL-2.0-only
/* Engine time of remoted accounts: by weight, below limits, and none of it left unused. */
#include <limits.h>
#include <string.h>

#include "shares.h"
#include "tap.h"

#define MS	1000000ull
#define NR	4u

/**
 * struct sim - an account of the simulation
 * @share: its share
 * @work: it has work
 * @stopped: its processes are stopped
 * @starved: others have the processors that it needs
 * @threads: engines that it uses at a time
 * @used: engine time so far
 */
static struct sim {
	struct share share;
	bool work;
	bool stopped;
	bool starved;
	unsigned int threads;
	uint64_t used;
} sim[NR];

static struct shares all;
static uint64_t now;

static uint64_t used(void *arg, uint64_t now_ns)
{
	TAP_EQ(now_ns, now);
	return ((struct sim *)arg)->used;
}

static bool ready(void *arg)
{
	return ((struct sim *)arg)->work;
}

static void stop(void *arg, bool stop_it)
{
	struct sim *s = arg;

	TAP_CHECK(s->stopped != stop_it);
	s->stopped = stop_it;
}

/* Have accounts that all have work for one engine, and a weight of 100. */
static void reset(unsigned int nr, unsigned int engines)
{
	memset(sim, 0, sizeof(sim));
	memset(&all, 0, sizeof(all));
	all.engines = engines;
	all.used = used;
	all.ready = ready;
	all.stop = stop;
	now = 1000 * MS;
	for (unsigned int i = 0; i < nr; i++) {
		sim[i].share.weight = 100;
		sim[i].share.arg = &sim[i];
		sim[i].work = true;
		sim[i].threads = 1;
		shares_add(&all, &sim[i].share);
	}
}

/* Let time pass; each account uses the engines while it may. */
static void pass(uint64_t ns)
{
	const uint64_t end = now + ns;

	while (now < end) {
		uint64_t step = shares_look(&all, now);

		if (step > end - now)
			step = end - now;
		now += step;
		for (unsigned int i = 0; i < NR; i++)
			if (sim[i].work && !sim[i].stopped && !sim[i].starved)
				sim[i].used += step * sim[i].threads;
	}
}

static double part(unsigned int i, uint64_t before, uint64_t ns)
{
	return (double)(sim[i].used - before) / (double)ns;
}

static void nobody_waits_without_need(void)
{
	reset(2, 2);
	TAP_CHECK(shares_look(&all, now) == UINT64_MAX);
	reset(3, UINT_MAX);
	TAP_CHECK(shares_look(&all, now) == UINT64_MAX);
	pass(100 * MS);
	for (int i = 0; i < 3; i++)
		TAP_CHECK(sim[i].used == 100 * MS && !sim[i].stopped);
}

static void weights_decide(void)
{
	double ratio;

	reset(2, 1);
	sim[0].share.weight = 300;
	pass(10000 * MS);
	ratio = (double)sim[0].used / (double)sim[1].used;
	TAP_CHECK(ratio > 2.85 && ratio < 3.15);
	/* Neither more than the engine has, but for the time until the next look, nor less. */
	TAP_CHECK(sim[0].used + sim[1].used > 9800 * MS);
	TAP_CHECK(sim[0].used + sim[1].used < 10500 * MS);
}

static void equal_accounts_share_two_engines(void)
{
	reset(3, 2);
	pass(9000 * MS);
	for (int i = 0; i < 3; i++)
		TAP_CHECK(part(i, 0, 9000 * MS) > 0.63 && part(i, 0, 9000 * MS) < 0.71);
}

/* It gets no more than its share when it begins to work, and no less. */
static void idle_time_earns_nothing(void)
{
	uint64_t before[2];

	reset(2, 1);
	sim[1].work = false;
	pass(5000 * MS);
	TAP_CHECK(part(0, 0, 5000 * MS) > 0.97);
	before[0] = sim[0].used;
	before[1] = sim[1].used;
	sim[1].work = true;
	pass(1000 * MS);
	TAP_CHECK(part(0, before[0], 1000 * MS) > 0.45);
	TAP_CHECK(part(1, before[1], 1000 * MS) > 0.45);
}

static void a_limit_holds(void)
{
	reset(2, UINT_MAX);
	sim[0].share.limit_ppm = 100000;
	pass(20000 * MS);
	TAP_CHECK(part(0, 0, 20000 * MS) > 0.09 && part(0, 0, 20000 * MS) < 0.105);
	TAP_CHECK(part(1, 0, 20000 * MS) > 0.99);
	/* Without it both go on at once. */
	sim[0].share.limit_ppm = 0;
	shares_look(&all, now);
	TAP_CHECK(!sim[0].stopped && !all.in_force);
}

/* A kernel that cannot be stopped, or many threads: the account pays afterwards. */
static void long_work_is_paid_for(void)
{
	uint64_t before;

	reset(2, 1);
	pass(100 * MS);
	sim[0].used += 2000 * MS;
	before = sim[1].used;
	pass(1500 * MS);
	TAP_CHECK(part(1, before, 1500 * MS) > 0.97);
	reset(1, UINT_MAX);
	sim[0].share.limit_ppm = 50000;
	sim[0].threads = 16;
	pass(60000 * MS);
	TAP_CHECK(part(0, 0, 60000 * MS) > 0.045 && part(0, 0, 60000 * MS) < 0.055);
}

/* A process that other work keeps from the processors has its turn all the same. */
static void starved_accounts_keep_their_turn(void)
{
	double ratio;

	reset(2, 1);
	sim[0].share.weight = 300;
	for (int i = 0; i < 5000; i++) {
		/* Each has a processor in a third of the time. */
		sim[0].starved = i % 3;
		sim[1].starved = (i + 1) % 3;
		pass(2 * MS);
	}
	ratio = (double)sim[0].used / (double)sim[1].used;
	TAP_CHECK(ratio > 2.7 && ratio < 3.3);
}

static void an_account_that_goes_leaves_its_turn(void)
{
	uint64_t before;

	reset(2, 1);
	pass(105 * MS);
	for (int i = 0; i < 2; i++) {
		if (sim[i].share.turns.state != TURNS_HAS)
			continue;
		shares_remove(&all, &sim[i].share);
		before = sim[1 - i].used;
		pass(100 * MS);
		TAP_CHECK(!sim[1 - i].stopped);
		TAP_CHECK(part(1 - (unsigned int)i, before, 100 * MS) > 0.99);
		TAP_EQ(all.given, 0);
		return;
	}
	TAP_CHECK(false);
}

/* It must be able to end. */
static void a_stopped_account_goes_on_when_it_is_removed(void)
{
	reset(2, 1);
	pass(105 * MS);
	for (int i = 0; i < 2; i++)
		if (sim[i].stopped) {
			shares_remove(&all, &sim[i].share);
			TAP_CHECK(!sim[i].stopped);
			return;
		}
	TAP_CHECK(false);
}

int main(void)
{
	tap_run(nobody_waits_without_need, "nobody waits where all may work");
	tap_run(weights_decide, "weights of 300 and 100 share an engine 3 to 1");
	tap_run(equal_accounts_share_two_engines, "three accounts share two engines equally");
	tap_run(idle_time_earns_nothing, "time without work earns no credit");
	tap_run(a_limit_holds, "a limit holds, and ends at once");
	tap_run(long_work_is_paid_for, "long work is paid for afterwards");
	tap_run(starved_accounts_keep_their_turn, "accounts without a processor keep their turn");
	tap_run(an_account_that_goes_leaves_its_turn, "an account that goes leaves its turn");
	tap_run(a_stopped_account_goes_on_when_it_is_removed, "an account that is removed goes on");
	return tap_done();
}
