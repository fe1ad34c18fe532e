// SPDX-License-Identifier: GPL-2.0-only
/*
 * The run queue and the policies: the invariants of
 * Documentation/scheduling.rst, each where it is easiest to break, and all of
 * them under random use.
 */
#include "test_runq.h"

#define MS	NSEC_MS
#define SEC	NSEC_S

#define NR(a) (sizeof(a) / sizeof((a)[0]))

static struct sim sim;		/* too large for the stack */

static const struct mgpu_policy_ops * const all[] = {
	&mgpu_policy_best_effort, &mgpu_policy_equal, &mgpu_policy_weighted,
	&mgpu_policy_fixed,
};

static double share(const struct sim *s, const struct vm *v, u64 since,
		    u64 time)
{
	return (double)(sim_used(s, v) - since) / (double)(time * s->engines);
}

/* ---- random use ---- */

static u32 any_weight(void)
{
	switch (rand() % 4) {
	case 0:
		return 1 + rand() % 10000;
	case 1:
		return rand() % 2 ? 1 : 10000;
	default:
		return 50 + rand() % 200;
	}
}

static void any_limit(struct sim *s, struct vm *v)
{
	u32 ppm = 1000 + rand() % 999001, period = 1000 + rand() % 999001;

	if (rand() % 3 == 0)
		ppm = 0;
	sim_limit(s, v, ppm, period, rand() % 2 ? 0 : rand() % 1000001);
}

static void any_behaviour(struct vm *v)
{
	v->weight = any_weight();
	v->lanes = rand() % 8 ? 1 + rand() % 2 : 0;
	v->job_min = 1 + rand() % (2 * MS);
	v->job_max = v->job_min + rand() % (3 * MS);
	v->gap_min = 0;
	v->gap_max = 0;
	if (rand() % 2)
		v->gap_max = rand() % (rand() % 2 ? MS : 30 * MS);
}

static void random_step(struct sim *s, bool switching)
{
	struct vm *v = &s->vm[rand() % s->vms];
	struct job *first;
	u32 what;
	u64 ns;

	if (rand() % 16 == 0 && switching)
		mgpu_runq_set_policy(&s->rq, all[rand() % NR(all)], NULL,
				     s->now);
	if (!v->attached) {
		if (rand() % 3 == 0) {
			any_behaviour(v);
			sim_attach(s, v - s->vm);
			any_limit(s, v);
		}
		return;
	}
	what = rand() % 27;
	if (what < 2) {
		sim_detach(s, v);
	} else if (what < 8) {
		mgpu_runq_set_weight(&s->rq, &v->e, any_weight(), s->now);
	} else if (what < 14) {
		any_limit(s, v);
	} else if (what < 16) {
		sim_cancel(s, v);
	} else if (what < 18) {
		/* Once more does nothing. */
		sim_wake(s, v);
		if (!v->waiting)
			mgpu_runq_sleep(&s->rq, &v->e);
	} else if (what < 20) {
		/* A charge of any size at any time, as a program may make. */
		ns = (u64)rand() >> rand() % 31;
		sim_charge_ns(s, v, ns);
	} else if (what < 23) {
		/* Its jobs change places; without any it stays where it is. */
		if (v->waiting == LANES) {
			first = v->queue[0];
			v->queue[0] = v->queue[1];
			v->queue[1] = first;
		}
		if (v->waiting)
			sim_move(s, v);
		else
			mgpu_runq_move(&s->rq, &v->e, s->now);
	} else {
		any_behaviour(v);
		for (what = 0; what < LANES; what++)
			if (v->job[what].state == JOB_NONE)
				v->job[what].next = s->now;
	}
}

static void random_use_of(const struct mgpu_policy_ops *policy, bool switching,
			  int seed, int steps, u32 vms)
{
	u64 submitted = 0, over = 0, end;
	struct sim *s = &sim;
	struct vm *v;
	u32 i, lane;
	int k;

	srand(seed);
	sim_init(s, 1 + rand() % vms, 1 + rand() % MAX_ENGINES, policy);
	s->tile = rand() % 3 ? 50000 + rand() % 500000 : 0;
	s->timer_late = rand() % 2 ? rand() % MS : 0;
	for (i = 0; i < s->vms; i++) {
		any_behaviour(&s->vm[i]);
		sim_attach(s, i);
		any_limit(s, &s->vm[i]);
	}

	for (k = 0; k < steps && !s->broken; k++) {
		sim_run(s, s->now + rand() % (rand() % 3 ? MS : 20 * MS));
		random_step(s, switching);
		check_places(s);
	}

	/* No VM submits any more: the waiting jobs complete. */
	for (i = 0; i < s->vms; i++) {
		v = &s->vm[i];
		v->lanes = 0;
		if (v->attached && !switching)
			mgpu_runq_set_weight(&s->rq, &v->e, 100, s->now);
	}
	end = s->now + s->vms * 20 * SEC;
	while (!s->broken && over != submitted + 1 && s->now < end) {
		sim_run(s, s->now + SEC);
		submitted = 0;
		over = 1;
		for (i = 0; i < s->vms; i++) {
			submitted += s->vm[i].submitted;
			over += s->vm[i].done + s->vm[i].cancelled;
		}
	}
	SIM_CHECK(s, over == submitted + 1);
	for (i = 0; i < s->vms && !s->broken; i++) {
		for (lane = 0; lane < LANES; lane++)
			SIM_CHECK(s, s->vm[i].job[lane].state == JOB_NONE);
		SIM_CHECK(s, !s->vm[i].waiting);
	}
	check_places(s);
	if (s->broken)
		tap_diag("seed %d, %u vGPUs, %u engines", seed, s->vms,
			 s->engines);
}

static void random_use(void)
{
	int seed, last = (int)tap_some(60, 150);

	for (seed = 1; seed <= last && !tap.bad; seed++)
		random_use_of(all[seed % NR(all)], false, seed, 400, 24);
}

static void random_switches(void)
{
	int seed, last = 1000 + (int)tap_some(60, 200);

	for (seed = 1001; seed <= last && !tap.bad; seed++)
		random_use_of(all[seed % NR(all)], true, seed, 600, 16);
}

static void random_crowds(void)
{
	int seed;

	for (seed = 2001; seed <= 2004 && !tap.bad; seed++)
		random_use_of(all[seed % NR(all)], true, seed, 200, MAX_VMS);
}

/* ---- fairness ---- */

static u64 longest;		/* job of the test that runs */
static u32 spread;		/* jobs of one vGPU that may be uncharged */

/*
 * Any two that always have work have got the same for their weight, but for
 * the jobs that could not be stopped in time.
 */
static void fair_so_far(struct sim *s, struct vm *v, u64 ns)
{
	bool equal = s->rq.policy == &mgpu_policy_equal;
	double mine, other, wi, wj, most;
	struct vm *w;
	u32 i;

	wi = equal ? 1 : v->weight;
	mine = v->used / wi;
	for (i = 0; i < s->vms; i++) {
		w = &s->vm[i];
		wj = equal ? 1 : w->weight;
		other = w->used / wj;
		/* Of each charge a part of a nanosecond is rounded off. */
		most = spread * (longest / wi + longest / wj) +
		       (double)(v->done + w->done + s->yields) / 10000;
		if (fabs(mine - other) > most) {
			SIM_CHECK(s, fabs(mine - other) <= most);
			tap_diag("%u and %u of weights %u and %u have %g and %g",
				 v->e.id, w->e.id, v->weight, w->weight, mine,
				 other);
			return;
		}
	}
}

static void pairs(const struct mgpu_policy_ops *policy, int seed, u32 engines,
		  u64 tile)
{
	struct sim *s = &sim;
	u32 i;

	srand(seed);
	sim_init(s, 2 + rand() % 14, engines, policy);
	s->tile = tile;
	s->charged = fair_so_far;
	longest = 1 + rand() % (8 * MS);
	spread = engines;
	for (i = 0; i < s->vms; i++)
		sim_vm(s, i, any_weight(), engines > 1 ? 2 : 1 + rand() % 2, 1,
		       longest);
	sim_run(s, s->now + 4 * SEC);
	SIM_CHECK(s, s->idle == 0 || engines > 2 * s->vms);
	if (s->broken)
		tap_diag("seed %d, %u vGPUs, tile %llu", seed, s->vms,
			 (unsigned long long)tile);
}

static void weighted_pairs(void)
{
	int seed;

	for (seed = 1; seed <= 60 && !tap.bad; seed++)
		pairs(&mgpu_policy_weighted, seed, 1, seed % 2 ? 0 : 300000);
}

static void equal_pairs(void)
{
	int seed;

	for (seed = 1; seed <= 60 && !tap.bad; seed++)
		pairs(&mgpu_policy_equal, seed, 1, seed % 2 ? 0 : 300000);
}

#define TILE	(100 * NSEC_US)

/* Shares by weight, over a second and over every tenth of a second. */
static void shares_of(const struct mgpu_policy_ops *policy, const u32 *weights,
		      u32 n, u64 job_min, u64 job_max, u64 gap, u64 tile,
		      double most_100ms, double most_1s)
{
	double want, off, worst = 0, worst_1s = 0;
	u64 begin[MAX_VMS];
	struct sim *s = &sim;
	u32 i, k, sum = 0;

	srand(21);
	sim_init(s, n, 1, policy);
	s->tile = tile;
	s->timer_late = 60 * NSEC_US;
	for (i = 0; i < n; i++) {
		sim_vm(s, i, weights[i], 1, job_min, job_max)->gap_max = gap;
		sum += weights[i];
	}
	sim_run(s, s->now + SEC);
	for (k = 0; k < 100; k++) {
		for (i = 0; i < n; i++) {
			s->vm[i].seen = sim_used(s, &s->vm[i]);
			if (k % 10 == 0)
				begin[i] = s->vm[i].seen;
		}
		sim_run(s, s->now + 100 * MS);
		for (i = 0; i < n; i++) {
			want = (double)weights[i] / sum;
			off = fabs(share(s, &s->vm[i], s->vm[i].seen,
					 100 * MS) - want);
			if (off > worst)
				worst = off;
			off = fabs(share(s, &s->vm[i], begin[i], SEC) - want);
			if (k % 10 == 9 && off > worst_1s)
				worst_1s = off;
		}
	}
	SIM_CHECK(s, worst <= most_100ms);
	SIM_CHECK(s, worst_1s <= most_1s);
	tap_diag("%s, %u, jobs of %g to %g ms%s, gap %g ms: %.2f pp in 100 ms, %.3f pp in 1 s",
		 policy->name, n, job_min / 1e6, job_max / 1e6,
		 tile ? "" : " in one piece", gap / 1e6, 100 * worst,
		 100 * worst_1s);
}

static const u32 thirty_seventy[] = { 30, 70 };
static const u32 doubling[] = { 1, 2, 4, 8 };
static u32 sixty_four[64];

static void shares(const struct mgpu_policy_ops *policy)
{
	u32 i;

	for (i = 0; i < 64; i++)
		sixty_four[i] = 100;
	shares_of(policy, thirty_seventy, 2, 300000, 2 * MS, 0, TILE, .02,
		  .005);
	shares_of(policy, thirty_seventy, 2, 2 * MS, 10 * MS, 0, TILE, .02,
		  .005);
	shares_of(policy, doubling, 4, 300000, 2 * MS, 0, TILE, .02, .005);
	shares_of(policy, doubling, 4, 2 * MS, 10 * MS, 0, TILE, .02, .005);
	shares_of(policy, sixty_four, 64, 300000, 2 * MS, 0, TILE, .02, .005);
	shares_of(policy, sixty_four, 64, 2 * MS, 10 * MS, 0, TILE, .02, .005);
	/* Where no job can be set aside, the longest one is the error. */
	shares_of(policy, thirty_seventy, 2, 2 * MS, 10 * MS, 0, 0, .1, .012);
	shares_of(policy, doubling, 4, 2 * MS, 10 * MS, 0, 0, .1, .012);
}

static void weighted_shares(void)
{
	shares(&mgpu_policy_weighted);
}

static void fixed_shares(void)
{
	shares(&mgpu_policy_fixed);
}

/* A guest's ring is empty for a moment after each job, the engine is not. */
static void refill_keeps_share(void)
{
	shares_of(&mgpu_policy_weighted, thirty_seventy, 2, 2 * MS, 4 * MS,
		  300000, TILE, .02, .005);
	shares_of(&mgpu_policy_weighted, doubling, 4, 2 * MS, 4 * MS, 300000,
		  TILE, .02, .005);
}

/* ---- idle vGPUs ---- */

static const struct mgpu_policy_ops * const fair[] = {
	&mgpu_policy_weighted, &mgpu_policy_equal,
};

/* The test stops with the policy and the time at which it went wrong. */
#define NEED(s, cond)				\
	do {					\
		SIM_CHECK(s, cond);		\
		if ((s)->broken)		\
			return;			\
	} while (0)

/* A thousand idle entities cost an active entity nothing. */
static void idle_neighbours(void)
{
	struct sim *s = &sim;
	u64 begin;
	size_t k;
	u32 i;

	for (k = 0; k < 3; k++) {
		srand(31);
		sim_init(s, MAX_VMS, 1, all[k]);
		for (i = 0; i < s->vms; i++)
			sim_vm(s, i, any_weight(), i ? 0 : 1, MS, 3 * MS);
		begin = s->now;
		sim_run(s, s->now + SEC);
		NEED(s, s->idle == 0);
		NEED(s, sim_used(s, &s->vm[0]) == s->now - begin);
	}
}

/* However long it was away, it goes on as an equal. */
static void idle_earns_nothing(void)
{
	struct sim *s = &sim;
	struct vm *v, *w;
	double mine, other;
	size_t k;

	for (k = 0; k < 2; k++) {
		srand(32);
		sim_init(s, 2, 1, fair[k]);
		v = sim_vm(s, 0, 30, 1, MS, 3 * MS);
		w = sim_vm(s, 1, k ? 30 : 60, 1, MS, 3 * MS);
		sim_run(s, s->now + SEC);
		w->lanes = 0;
		sim_run(s, s->now + 10 * SEC);
		w->lanes = 1;
		w->job[0].next = s->now;
		v->seen = sim_used(s, v);
		w->seen = sim_used(s, w);
		sim_run(s, s->now + 300 * MS);
		mine = (double)(sim_used(s, v) - v->seen) / v->weight;
		other = (double)(sim_used(s, w) - w->seen) / w->weight;
		/* A job of each, and the job that ran. */
		NEED(s, fabs(mine - other) <= 2 * 3e6 / 30 + 3e6 / w->weight);
	}
}

/* It gets its part back as soon as a job can be stopped, or has ended. */
static void lent_and_returned(void)
{
	struct sim *s = &sim;
	struct vm *v, *w;
	u64 begin, wait;
	size_t k;
	int round;

	for (k = 0; k < 4; k++) {
		srand(33);
		sim_init(s, 2, 1, fair[k / 2]);
		s->tile = k % 2 ? 100 * NSEC_US : 0;
		v = sim_vm(s, 0, 90, 1, 2 * MS, 5 * MS);
		w = sim_vm(s, 1, 10, 1, 2 * MS, 5 * MS);
		for (round = 0; round < 50; round++) {
			v->lanes = 0;
			sim_run(s, s->now + 20 * MS);
			w->seen = sim_used(s, w);
			begin = s->idle;
			sim_run(s, s->now + between(10 * MS, 90 * MS));
			NEED(s, s->idle == begin);
			/* All of it was lent; now the owner is back. */
			v->lanes = 1;
			v->job[0].next = s->now;
			begin = v->started;
			wait = s->now;
			while (v->started == begin && !s->broken &&
			       s->now < wait + SEC)
				sim_run(s, s->now + 10 * NSEC_US);
			wait = s->now - wait;
			if (s->tile)
				NEED(s, wait <= MS + 2 * s->tile);
			else
				NEED(s, wait <= 5 * MS + 10 * NSEC_US);
			sim_run(s, s->now + 50 * MS);
		}
	}
}

/* ---- credit and debt: the run queue by hand ---- */

static struct mgpu_runq hand;
static struct mgpu_sched_entity ent[80];

static void by_hand(u32 n, u32 engines, const struct mgpu_policy_ops *policy,
		    u32 weight)
{
	u32 i;

	memset(ent, 0, sizeof(ent));
	mgpu_runq_init(&hand, 1, engines, policy);
	for (i = 0; i < n; i++) {
		ent[i].id = i + 1;
		ent[i].weight = weight;
		mgpu_runq_attach(&hand, &ent[i], SEC);
	}
}

/* Wake all entities; run a job of @ns of the entity that is picked, and return it. */
static struct mgpu_sched_entity *serve(u64 *now, u64 ns, u32 n)
{
	struct mgpu_sched_entity *e;
	u32 i;

	for (i = 0; i < n; i++)
		mgpu_runq_wake(&hand, &ent[i], *now);
	e = mgpu_runq_pick(&hand, *now);
	*now += ns;
	if (e)
		mgpu_runq_charge(&hand, e, ns, *now);
	return e;
}

/*
 * Two engines: while one is busy with a long job of A, B is served a hundred
 * times on the other.  A moment after its job A is back: it is owed some time, but not
 * all that B has had.
 */
static void credit_is_bounded(void)
{
	struct mgpu_sched_entity *a = &ent[0], *b = &ent[1];
	u64 now = SEC;
	int k, n;

	for (k = 0; k < 3; k++) {
		by_hand(2, 2, &mgpu_policy_equal, 100);
		mgpu_runq_wake(&hand, a, now);
		TAP_NEED(mgpu_runq_pick(&hand, now) == a);
		for (n = 0; n < 100; n++) {
			mgpu_runq_wake(&hand, b, now);
			TAP_NEED(mgpu_runq_pick(&hand, now) == b);
			now += 10 * MS;
			mgpu_runq_charge(&hand, b, 10 * MS, now);
		}
		mgpu_runq_charge(&hand, a, MS, now);
		/* Back at once, after a moment, after more than that. */
		now += k * (MS - 1);
		for (n = 0; serve(&now, MS, 2) == a; n++)
			TAP_NEED(n < 100);
		/* B owes its last job. */
		TAP_EQ(n, k < 2 ? 20 : 10);
	}
}

/* Of two engines A has one; B has used 5 ms of the other, and has it again. */
static void both_busy(u64 *now)
{
	struct mgpu_sched_entity *a = &ent[0], *b = &ent[1];

	mgpu_runq_wake(&hand, a, *now);
	TAP_NEED(mgpu_runq_pick(&hand, *now) == a);
	mgpu_runq_wake(&hand, b, *now);
	TAP_NEED(mgpu_runq_pick(&hand, *now) == b);
	*now += 5 * MS;
	mgpu_runq_charge(&hand, b, 5 * MS, *now);
	mgpu_runq_wake(&hand, b, *now);
	TAP_NEED(mgpu_runq_pick(&hand, *now) == b);
}

/* An entity with a job of its other queue on an engine is not away. */
static void busy_is_not_away(void)
{
	struct mgpu_sched_entity *a = &ent[0];
	u64 now = SEC;

	by_hand(2, 2, &mgpu_policy_equal, 100);
	both_busy(&now);
	/* The queue has moved on by 5 ms, which A has not used. */
	now += 2 * MS;
	mgpu_runq_wake(&hand, a, now);
	TAP_EQ((s64)(hand.vtime - a->vtime), 5 * MS);
}

/* Another job of its own goes first: it has been waiting all along, and is owed for it. */
static void moving_is_not_away(void)
{
	struct mgpu_sched_entity *a = &ent[0];
	u64 now = SEC;

	by_hand(2, 2, &mgpu_policy_equal, 100);
	/* Moving an entity that has no waiting job does not make it wait. */
	mgpu_runq_move(&hand, a, now);
	TAP_CHECK(!mgpu_runq_pick(&hand, now));
	both_busy(&now);
	/* A has used 1 of 5 ms, and waits for longer than a moment. */
	mgpu_runq_charge(&hand, a, 1 * MS, now);
	mgpu_runq_wake(&hand, a, now);
	now += 2 * MS;
	mgpu_runq_move(&hand, a, now);
	TAP_EQ((s64)(hand.vtime - a->vtime), 4 * MS);
	/* Had it been away, it would not be. */
	mgpu_runq_sleep(&hand, a);
	mgpu_runq_wake(&hand, a, now + 2 * MS);
	TAP_EQ((s64)(hand.vtime - a->vtime), 0);
}

/* Time used under one policy is no debt under the next. */
static void switches_forgive(void)
{
	struct mgpu_sched_entity *a = &ent[0], *b = &ent[1];
	size_t i, k;
	u64 now, ns;
	int n;

	for (i = 0; i < NR(all); i++)
		for (k = 0; k < NR(fair); k++) {
			if (all[i] == fair[k])
				continue;
			now = SEC;
			by_hand(2, 1, all[i], 1);
			/* A uses far more than B, and then one long job. */
			for (n = 0; n < 1000; n++)
				serve(&now, 10 * MS, n % 10 ? 1 : 2);
			mgpu_runq_wake(&hand, a, now);
			for (n = 0; mgpu_runq_pick(&hand, now) != a; n++) {
				TAP_NEED(n < 100);
				now += 10 * MS;
				mgpu_runq_wake(&hand, a, now);
			}
			now += 50 * SEC;
			mgpu_runq_charge(&hand, a, 50 * SEC, now);
			mgpu_runq_set_weight(&hand, b, 100, now);
			mgpu_runq_set_policy(&hand, fair[k], NULL, now);
			for (ns = 0; serve(&now, MS, 2) == b; ns += MS)
				TAP_NEED(ns < 10 * SEC);
			/* 10 ms at equal weights, 100 times that at 1 to 100 */
			if (!TAP_CHECK(ns <= (k ? 11 : 1010) * MS))
				tap_diag("from %s to %s: %llu ms",
					 all[i]->name, fair[k]->name,
					 (unsigned long long)(ns / MS));
		}
}

/* The same policy once more changes nothing. */
static void same_policy_forgives_nothing(void)
{
	struct mgpu_sched_entity *a = &ent[0], *b = &ent[1];
	u64 now = SEC;
	int n;

	by_hand(2, 1, &mgpu_policy_equal, 100);
	mgpu_runq_wake(&hand, a, now);
	TAP_NEED(mgpu_runq_pick(&hand, now) == a);
	now += 50 * MS;
	mgpu_runq_charge(&hand, a, 50 * MS, now);
	for (n = 0; n < 1000 && serve(&now, MS, 2) == b; n++)
		mgpu_runq_set_policy(&hand, &mgpu_policy_equal, NULL, now);
	TAP_CHECK(n == 50 || n == 51);
}

/* A new weight does not apply to time used before, whether an entity waits or not. */
static void weights_change_what_comes(void)
{
	struct mgpu_sched_entity *a = &ent[0], *b = &ent[1];
	u64 now, ns;
	int k;

	for (k = 0; k < 2; k++) {
		now = SEC;
		by_hand(2, 1, &mgpu_policy_weighted, 1);
		mgpu_runq_set_weight(&hand, b, 10000, now);
		mgpu_runq_wake(&hand, a, now);
		TAP_NEED(mgpu_runq_pick(&hand, now) == a);
		now += 5 * MS;
		mgpu_runq_charge(&hand, a, 5 * MS, now);
		if (k)
			mgpu_runq_wake(&hand, a, now);
		/* It owes 5 ms, which would be 50 s of B at its old weight. */
		mgpu_runq_set_weight(&hand, a, 10000, now);
		for (ns = 0; serve(&now, MS, 2) == b; ns += MS)
			TAP_NEED(ns < 10 * SEC);
		TAP_CHECK(ns >= 5 * MS && ns <= 6 * MS);
	}
}

/* The same while one of its jobs runs: time used so far keeps the old weight. */
static void weights_change_under_a_job(void)
{
	struct mgpu_sched_entity *a = &ent[0], *b = &ent[1];
	u64 now = SEC, ns;

	by_hand(2, 2, &mgpu_policy_weighted, 1);
	mgpu_runq_set_weight(&hand, b, 10000, now);
	mgpu_runq_wake(&hand, a, now);
	TAP_NEED(mgpu_runq_pick(&hand, now) == a);
	mgpu_runq_wake(&hand, a, now);
	TAP_NEED(mgpu_runq_pick(&hand, now) == a);
	now += 5 * MS;
	mgpu_runq_charge(&hand, a, 5 * MS, now);
	mgpu_runq_set_weight(&hand, a, 10000, now);
	now += 5 * MS;
	mgpu_runq_charge(&hand, a, 10 * MS, now);
	for (ns = 0; serve(&now, MS, 2) == b; ns += MS)
		TAP_NEED(ns < SEC);
	TAP_CHECK(ns >= 15 * MS && ns <= 16 * MS);
}

/*
 * Jobs of a minute at weight 1 drive virtual time around twice.  An entity that slept
 * through any part of that comes first when it is back, and only once.
 */
static void virtual_time_wraps(void)
{
	struct mgpu_sched_entity *a = &ent[0], *e;
	u64 now = SEC;
	int k, i;

	by_hand(80, 1, &mgpu_policy_weighted, 1);
	for (k = 0; k < 79000; k++) {
		mgpu_runq_wake(&hand, a, now);
		TAP_NEED(mgpu_runq_pick(&hand, now) == a);
		now += 60 * SEC;
		mgpu_runq_charge(&hand, a, 60 * SEC, now);
		if (k % 1000)
			continue;
		/* An entity that was never there before, and one that was once. */
		for (i = k / 1000; i >= 0; i -= k / 1000 ? k / 1000 : 1) {
			e = &ent[1 + i];
			mgpu_runq_wake(&hand, a, now);
			mgpu_runq_wake(&hand, e, now);
			if (!TAP_CHECK(mgpu_runq_pick(&hand, now) == e)) {
				tap_diag("round %d, %d", k, i);
				return;
			}
			now += 120 * SEC;
			mgpu_runq_charge(&hand, e, 120 * SEC, now);
			mgpu_runq_wake(&hand, e, now);
			TAP_NEED(mgpu_runq_pick(&hand, now) == a);
			mgpu_runq_sleep(&hand, e);
			now += SEC;
			mgpu_runq_charge(&hand, a, SEC, now);
		}
	}
}

/* A new entity has no debt, wherever virtual time is. */
static void new_ones_owe_nothing(void)
{
	struct mgpu_sched_entity *a = &ent[0], *b = &ent[1];
	u64 ago[] = { 0, SEC, 10000 * SEC, 50 * 10000 * SEC, 1ULL << 63 };
	u64 now = SEC;
	size_t i;

	for (i = 0; i < NR(ago); i++) {
		by_hand(1, 1, &mgpu_policy_weighted, 1);
		hand.vtime = -ago[i];
		a->vtime = hand.vtime;
		mgpu_runq_wake(&hand, a, now);
		TAP_NEED(mgpu_runq_pick(&hand, now) == a);
		mgpu_runq_charge(&hand, a, 1, now);
		mgpu_runq_wake(&hand, a, now);
		b->weight = 1;
		mgpu_runq_attach(&hand, b, now);
		mgpu_runq_wake(&hand, b, now);
		TAP_CHECK(mgpu_runq_pick(&hand, now) == b);
		mgpu_runq_charge(&hand, b, 2, now);
		TAP_CHECK(mgpu_runq_pick(&hand, now) == a);
	}
}

/* Some that are nearly nothing once they are multiplied by 1,000 or 10,000. */
static const u64 huge[] = {
	61 * SEC, 3600 * SEC, U64_MAX / 1000 + 1, U64_MAX / 10000 + 1,
	1ULL << 63, U64_MAX,
};

/* A charge beyond all reason costs no more than the longest job. */
static void charges_are_bounded(void)
{
	struct mgpu_sched_entity *a = &ent[0], *b = &ent[1];
	u64 now = SEC;
	size_t i;
	int k, n;

	for (i = 0; i < NR(huge); i++)
		for (k = 0; k < 2; k++) {
			by_hand(2, 1, &mgpu_policy_weighted, 10);
			mgpu_runq_wake(&hand, a, now);
			TAP_NEED(mgpu_runq_pick(&hand, now) == a);
			/* Of one queue, or of more than there are. */
			for (n = 0; n < (k ? 10 : 1); n++)
				mgpu_runq_charge(&hand, a, huge[i], now);
			for (n = 0; serve(&now, SEC, 2) == b; n++)
				TAP_NEED(n < 1000);
			/* Jobs of 60 s each, of two queues. */
			TAP_CHECK(n == (k ? 120 : 60) || n == (k ? 121 : 61));
		}
}

/* ---- yielding ---- */

static void who_yields(void)
{
	struct mgpu_sched_entity *a = &ent[0], *b = &ent[1];
	size_t i, k;
	u64 now;

	for (k = 0; k < NR(all); k++) {
		now = SEC;
		by_hand(3, 1, all[k], 100);
		/* A runs; a job of its other queue waits, which is no reason. */
		mgpu_runq_wake(&hand, a, now);
		TAP_NEED(mgpu_runq_pick(&hand, now) == a);
		mgpu_runq_wake(&hand, a, now);
		if (all[k] != &mgpu_policy_fixed)
			TAP_CHECK(!mgpu_runq_should_yield(&hand, a, U64_MAX,
							  now));
		/* B waits, too: A goes on for a slice, except where all do. */
		mgpu_runq_wake(&hand, b, now);
		TAP_CHECK(!mgpu_runq_should_yield(&hand, a, 0, now));
		TAP_CHECK(!mgpu_runq_should_yield(&hand, a, MS, now));
		if (all[k] == &mgpu_policy_best_effort) {
			TAP_CHECK(!mgpu_runq_should_yield(&hand, a, SEC, now));
			TAP_CHECK(!mgpu_runq_should_yield(&hand, a, U64_MAX,
							  now));
			continue;
		}
		TAP_CHECK(mgpu_runq_should_yield(&hand, a, 2 * MS, now));
		for (i = 0; i < NR(huge); i++)
			TAP_CHECK(mgpu_runq_should_yield(&hand, a, huge[i],
							 now));
	}
}

/* A slice is engine time of the entity that runs, whatever its weight. */
static void slices_have_a_length(void)
{
	static const u32 weights[] = { 1, 7, 100, 9999, 10000 };
	struct mgpu_sched_entity *a = &ent[0], *b = &ent[1];
	size_t k, j;

	for (k = 0; k < NR(weights); k++)
		for (j = 0; j < NR(weights); j++) {
			by_hand(2, 1, &mgpu_policy_weighted, weights[k]);
			mgpu_runq_set_weight(&hand, b, weights[j], SEC);
			mgpu_runq_wake(&hand, a, SEC);
			TAP_NEED(mgpu_runq_pick(&hand, SEC) == a);
			mgpu_runq_wake(&hand, b, SEC);
			TAP_CHECK(!mgpu_runq_should_yield(&hand, a, MS, SEC));
			TAP_CHECK(mgpu_runq_should_yield(&hand, a, MS + 2,
							 SEC));
		}
}

/* The debt of a waiting entity counts, under equal without its weight. */
static void debtors_wait(void)
{
	struct mgpu_sched_entity *a = &ent[0], *b = &ent[1];
	u64 now = SEC;

	by_hand(2, 1, &mgpu_policy_equal, 1);
	mgpu_runq_wake(&hand, b, now);
	TAP_NEED(mgpu_runq_pick(&hand, now) == b);
	mgpu_runq_charge(&hand, b, 5 * MS, now);
	mgpu_runq_wake(&hand, a, now);
	mgpu_runq_wake(&hand, b, now);
	TAP_NEED(mgpu_runq_pick(&hand, now) == a);
	TAP_CHECK(!mgpu_runq_should_yield(&hand, a, 6 * MS, now));
	TAP_CHECK(mgpu_runq_should_yield(&hand, a, 6 * MS + 1, now));
	mgpu_runq_charge(&hand, a, MS, now);
	TAP_EQ((s64)(b->vtime - a->vtime), 4 * MS);
}

/* A delayed entity counts from its due time. */
static void due_ones_are_yielded_to(void)
{
	struct mgpu_sched_entity *a = &ent[0], *b = &ent[1];
	u64 now = SEC, due;

	by_hand(2, 1, &mgpu_policy_weighted, 100);
	mgpu_runq_set_limit(&hand, b, 100000, 10000, 0, now);
	mgpu_runq_charge(&hand, b, 2 * MS, now);
	mgpu_runq_wake(&hand, a, now);
	TAP_NEED(mgpu_runq_pick(&hand, now) == a);
	mgpu_runq_wake(&hand, b, now);
	TAP_EQ(b->state, MGPU_ENTITY_DELAYED);
	TAP_EQ(b->delayed_ns, now);
	TAP_CHECK(!mgpu_runq_may_yield(&hand, a));
	due = mgpu_runq_due(&hand);
	TAP_EQ(due, now + 10 * MS + 10);
	TAP_CHECK(!mgpu_runq_should_yield(&hand, a, 50 * MS, due - 1));
	TAP_CHECK(mgpu_runq_should_yield(&hand, a, 50 * MS, due));
	TAP_CHECK(mgpu_runq_may_yield(&hand, a));
	TAP_EQ(b->ready_ns, due);
	TAP_EQ(b->delayed_ns, 0);
	TAP_EQ(b->limited, 1);
	TAP_EQ(b->limited_ns, 10 * MS + 10);
}

/* A watchdog goes by this: since when an entity waits for the engine. */
static void waits_are_counted_from_the_start(void)
{
	struct mgpu_sched_entity *a = &ent[0];
	u64 now = SEC;
	size_t k;

	by_hand(1, 1, &mgpu_policy_best_effort, 100);
	mgpu_runq_wake(&hand, a, now);
	/* Neither policies nor settings begin a new wait ... */
	for (k = 0; k < 2 * NR(all); k++) {
		now += MS;
		mgpu_runq_wake(&hand, a, now);
		mgpu_runq_set_policy(&hand, all[k % NR(all)], NULL, now);
		mgpu_runq_set_weight(&hand, a, 1 + k, now);
		mgpu_runq_set_limit(&hand, a, 500000, 1000, 0, now);
		TAP_EQ(a->state, MGPU_ENTITY_READY);
		TAP_EQ(a->ready_ns, SEC);
	}
	/* ... but service does, and a time in which it may not run. */
	TAP_NEED(mgpu_runq_pick(&hand, now) == a);
	mgpu_runq_wake(&hand, a, now);
	TAP_EQ(a->ready_ns, now);
	mgpu_runq_charge(&hand, a, 5 * MS, now);
	TAP_EQ(a->state, MGPU_ENTITY_DELAYED);
	now = mgpu_runq_due(&hand);
	mgpu_runq_advance(&hand, now);
	TAP_EQ(a->state, MGPU_ENTITY_READY);
	TAP_EQ(a->ready_ns, now);
}

/* ---- gpu_limit ---- */

static double limit_rate;	/* engine ns per ns */
static double limit_most;	/* that it may be ahead of its rate */
static u64 limit_since;

/* Over no stretch of time has it used more than its part and what it may. */
static void within_limit(struct sim *s)
{
	struct vm *v = &s->vm[0];
	double ahead = sim_used(s, v) -
		       (double)(s->now - limit_since) * limit_rate;

	if (ahead < v->low)
		v->low = ahead;
	if (ahead - v->low > v->ahead)
		v->ahead = ahead - v->low;
	SIM_CHECK(s, v->ahead <= limit_most);
}

struct limit_case {
	u32 ppm, period, burst;
	u32 engines, lanes;
	u64 job;		/* longest */
};

static const struct limit_case limit_cases[] = {
	{ 300000, 100000, 0, 1, 1, 5 * MS },
	{ 300000, 100000, 0, 1, 2, 20 * MS },
	{ 300000, 1000, 0, 1, 1, 20 * MS },
	{ 10000, 1000, 0, 1, 1, MS },
	{ 1000, 1000000, 0, 1, 2, MS },
	{ 500000, 10000, 1000000, 1, 1, 3 * MS },
	{ 250000, 50000, 20000, 4, 2, 8 * MS },
	{ 999999, 100000, 0, 1, 2, 4 * MS },
};

static void limit_holds(void)
{
	const struct limit_case *c;
	struct sim *s = &sim;
	double rate, cap;
	struct vm *v;
	size_t k, p;

	for (k = 0; k < NR(limit_cases); k++)
		for (p = 0; p < 2 * NR(all); p++) {
			c = &limit_cases[k];
			srand(41);
			sim_init(s, 3, c->engines, all[p / 2]);
			s->tile = p % 2 ? 200 * NSEC_US : 0;
			v = sim_vm(s, 0, 10000, c->lanes, 1, c->job);
			/* There are others, or there are not. */
			sim_vm(s, 1, 1, p % 2 ? 2 : 0, 1, c->job);
			sim_vm(s, 2, 1, 0, 1, 1);
			sim_limit(s, v, c->ppm, c->period, c->burst);
			rate = c->ppm / 1e6 * c->engines;
			cap = rate * c->period * 1e3 + c->burst * 1e3;
			limit_rate = rate;
			limit_most = cap + (double)c->job *
				     (c->lanes < c->engines ? c->lanes :
							     c->engines) + 2;
			/* A job that can stop goes no further than a slice. */
			if (s->tile && c->engines == 1)
				limit_most = cap + MGPU_BUCKET_SLICE_NS +
					     (double)s->tile + 2;
			limit_since = s->now;
			s->passed = within_limit;
			sim_run(s, s->now + 10 * SEC);
			/* All that it may, if others leave it so much. */
			rate = rate * 1e10 + cap - c->job * c->engines;
			if (rate > 9.9e9)
				rate = 9.9e9;
			if (p % 2 == 0 || all[p / 2] == &mgpu_policy_weighted)
				SIM_CHECK(s, sim_used(s, v) >= rate);
			/* It saves up no more than it may. */
			v->lanes = 0;
			sim_run(s, s->now + 3 * SEC);
			v->lanes = c->lanes;
			v->job[0].next = s->now;
			sim_run(s, s->now + 5 * SEC);
			if (s->broken)
				tap_diag("case %zu, policy %zu", k, p);
			if (tap.bad)
				return;
		}
}

/* Time that a limited entity may not use goes to the others. */
static void limits_leave_no_gap(void)
{
	struct sim *s = &sim;
	u64 begin;
	size_t k;

	for (k = 0; k < 3; k++) {
		srand(42);
		sim_init(s, 2, 1, all[k]);
		sim_vm(s, 0, 10000, 2, 1, 3 * MS);
		sim_vm(s, 1, 1, 1, 1, 3 * MS);
		sim_limit(s, &s->vm[0], 200000, 20000, 0);
		begin = s->now;
		sim_run(s, s->now + 10 * SEC);
		NEED(s, s->idle == 0);
		TAP_NEAR((double)sim_used(s, &s->vm[0]), 2e9, 4e6 + 3e6);
		NEED(s, sim_used(s, &s->vm[0]) + sim_used(s, &s->vm[1]) ==
		     s->now - begin);
	}
}

/* Alone and always busy: time that it did not run it was delayed. */
static void delays_are_counted(void)
{
	struct sim *s = &sim;
	struct vm *v;

	srand(43);
	sim_init(s, 1, 1, &mgpu_policy_weighted);
	v = sim_vm(s, 0, 100, 1, 1, 5 * MS);
	sim_limit(s, v, 400000, 10000, 0);
	sim_run(s, s->now + 10 * SEC);
	v->lanes = 0;
	sim_run(s, s->now + SEC);
	TAP_EQ(v->e.delayed_ns, 0);
	TAP_CHECK(v->e.limited > 1000 && v->e.limited <= v->started);
	/* The last second has no jobs, and begins with the end of one. */
	TAP_CHECK(s->idle >= v->e.limited_ns + SEC - 15 * MS);
	TAP_CHECK(s->idle <= v->e.limited_ns + SEC);
}

/* A job that runs stops when the limit is spent, whether or not others wait. */
static void limits_stop_a_job(void)
{
	struct mgpu_sched_entity *a = &ent[0];
	u64 now = SEC;
	size_t k;

	for (k = 0; k < NR(all); k++) {
		/* A fixed share has a bucket of its own. */
		if (all[k] == &mgpu_policy_fixed)
			continue;
		by_hand(2, 4, all[k], 100);
		TAP_CHECK(!mgpu_runq_may_yield(&hand, a));
		/* 10 % of 4 engines, in periods of 10 ms: 4 ms. */
		mgpu_runq_set_limit(&hand, a, 100000, 10000, 0, now);
		TAP_CHECK(mgpu_runq_may_yield(&hand, a));
		mgpu_runq_wake(&hand, a, now);
		TAP_NEED(mgpu_runq_pick(&hand, now) == a);
		TAP_CHECK(!mgpu_runq_should_yield(&hand, a, 5 * MS, now));
		TAP_CHECK(mgpu_runq_should_yield(&hand, a, 5 * MS + 1, now));
		TAP_CHECK(mgpu_runq_should_yield(&hand, a, U64_MAX, now));
		/* Time that passes is gained, beyond the size of the bucket. */
		TAP_CHECK(!mgpu_runq_should_yield(&hand, a, 9 * MS,
						  now + 10 * MS));
		TAP_CHECK(mgpu_runq_should_yield(&hand, a, 9 * MS + 1,
						 now + 10 * MS));
		/* A second job in flight uses as much as this one. */
		mgpu_runq_wake(&hand, a, now);
		TAP_NEED(mgpu_runq_pick(&hand, now) == a);
		TAP_CHECK(!mgpu_runq_should_yield(&hand, a, 9 * MS / 2,
						  now + 10 * MS));
		TAP_CHECK(mgpu_runq_should_yield(&hand, a, 9 * MS / 2 + 1,
						 now + 10 * MS));
	}
}

static void new_limits_act_at_once(void)
{
	struct mgpu_sched_entity *a = &ent[0];
	u64 now = SEC;

	by_hand(1, 1, &mgpu_policy_weighted, 100);
	mgpu_runq_set_limit(&hand, a, 1000, 1000, 0, now);
	mgpu_runq_charge(&hand, a, SEC, now);
	mgpu_runq_wake(&hand, a, now);
	TAP_CHECK(!mgpu_runq_pick(&hand, now));
	TAP_EQ(mgpu_runq_due(&hand), now + 2 * SEC);
	/* 2 ms of debt at 0.1 %; at 10 % 20 ms remain of it. */
	mgpu_runq_set_limit(&hand, a, 100000, 1000, 0, now);
	TAP_CHECK(mgpu_runq_due(&hand) < now + 21 * MS);
	TAP_CHECK(mgpu_runq_due(&hand) > now + 19 * MS);
	TAP_CHECK(!mgpu_runq_pick(&hand, now));
	mgpu_runq_set_limit(&hand, a, 0, 1000, 0, now);
	TAP_EQ(mgpu_runq_due(&hand), U64_MAX);
	TAP_EQ(a->state, MGPU_ENTITY_READY);
	/* A limit also delays an entity that already waits for an engine. */
	mgpu_runq_set_limit(&hand, a, 1000, 1000, 0, now);
	TAP_EQ(a->state, MGPU_ENTITY_READY);
	mgpu_runq_charge(&hand, a, SEC, now);
	TAP_EQ(a->state, MGPU_ENTITY_DELAYED);
	TAP_CHECK(!mgpu_runq_pick(&hand, now + SEC));
	TAP_CHECK(mgpu_runq_pick(&hand, now + 2 * SEC) == a);
}

/* ---- fixed share ---- */

/* Alone on the device with neighbours that do nothing: not more than its own. */
static void fixed_lends_nothing(void)
{
	static const u32 parts[] = { 1, 5, 30, 70, 95 };
	u64 job[] = { MS, 10 * MS, 40 * MS }, begin;
	struct sim *s = &sim;
	double off, worst;
	struct vm *v;
	size_t k, j;
	int n;

	for (k = 0; k < NR(parts); k++)
		for (j = 0; j < NR(job); j++) {
			srand(51);
			sim_init(s, 2, 1, &mgpu_policy_fixed);
			s->tile = 100 * NSEC_US;
			s->timer_late = 100 * NSEC_US;
			v = sim_vm(s, 0, parts[k], 1, 1, job[j]);
			sim_vm(s, 1, 100 - parts[k], 0, 1, 1);
			begin = s->now;
			worst = 0;
			for (n = 0; n < 100; n++) {
				v->seen = sim_used(s, v);
				sim_run(s, s->now + 100 * MS);
				off = fabs(share(s, v, v->seen, 100 * MS) -
					   parts[k] / 100.0);
				if (off > worst)
					worst = off;
			}
			SIM_CHECK(s, worst <= .02);
			/* A slice of debt, or what gathers while away. */
			off = fabs(share(s, v, 0, s->now - begin) -
				   parts[k] / 100.0);
			SIM_CHECK(s, off <= .0003);
			if (s->broken)
				tap_diag("share of %u, jobs of %llu ms: %g in 100 ms, %g in all",
					 parts[k], (unsigned long long)job[j] / MS,
					 worst, off);
		}
}

/* After a rest, too, 100 ms hold no more than 2 % above the share. */
static void fixed_saves_nothing(void)
{
	struct sim *s = &sim;
	struct vm *v;
	int n;

	srand(52);
	sim_init(s, 2, 1, &mgpu_policy_fixed);
	s->tile = 100 * NSEC_US;
	v = sim_vm(s, 0, 30, 1, 1, 10 * MS);
	sim_vm(s, 1, 70, 0, 1, 1);
	for (n = 0; n < 50; n++) {
		v->lanes = 0;
		sim_run(s, s->now + SEC);
		v->lanes = 1;
		v->job[0].next = s->now;
		v->seen = sim_used(s, v);
		sim_run(s, s->now + 100 * MS);
		NEED(s, share(s, v, v->seen, 100 * MS) <= .32);
	}
}

/* Whatever other entities do, no stretch of time has more. */
static void fixed_is_bounded(void)
{
	struct sim *s = &sim;
	struct vm *v;
	double cap;
	int seed;
	u32 i;

	for (seed = 1; seed <= 40 && !tap.bad; seed++) {
		srand(seed);
		sim_init(s, 2 + rand() % 8, 1 + rand() % 4, &mgpu_policy_fixed);
		s->tile = seed % 2 ? 200 * NSEC_US : 0;
		longest = 3 * MS;
		for (i = 0; i < s->vms; i++) {
			v = sim_vm(s, i, 1 + rand() % 300, 1 + rand() % 2, 1,
				   longest);
			v->gap_max = rand() % (20 * MS);
		}
		v = &s->vm[0];
		v->gap_max = seed % 3 ? v->gap_max : 0;
		limit_rate = (double)s->engines * v->weight / s->rq.weights;
		cap = limit_rate * 20 * MS;
		limit_most = cap + v->lanes * longest + 2;
		limit_since = s->now;
		s->passed = within_limit;
		sim_run(s, s->now + 4 * SEC);
		if (s->broken)
			tap_diag("seed %d", seed);
	}
}

/* Shares are parts of the sum of existing entities, and change when it changes. */
static void fixed_follows_who_exists(void)
{
	struct sim *s = &sim;
	struct vm *v;

	srand(53);
	sim_init(s, 3, 1, &mgpu_policy_fixed);
	s->tile = 100 * NSEC_US;
	v = sim_vm(s, 0, 100, 1, MS, 3 * MS);
	sim_vm(s, 1, 100, 0, 1, 1);
	sim_run(s, s->now + SEC);
	TAP_NEAR(share(s, v, 0, SEC), .5, .003);
	sim_vm(s, 2, 200, 0, 1, 1);
	v->seen = sim_used(s, v);
	sim_run(s, s->now + SEC);
	TAP_NEAR(share(s, v, v->seen, SEC), .25, .003);
	mgpu_runq_set_weight(&s->rq, &v->e, 900, s->now);
	v->seen = sim_used(s, v);
	sim_run(s, s->now + SEC);
	TAP_NEAR(share(s, v, v->seen, SEC), .75, .003);
	sim_detach(s, &s->vm[1]);
	sim_detach(s, &s->vm[2]);
	/* Alone, all is its own. */
	sim_run(s, s->now + 10 * MS);
	v->seen = sim_used(s, v);
	sim_run(s, s->now + SEC);
	TAP_NEAR(share(s, v, v->seen, SEC), 1, 1e-9);
}

/* How much of a fixed share may gather, by hand. */
static void fixed_gathers_little(void)
{
	struct mgpu_sched_entity *a = &ent[0], *b = &ent[1];
	u64 now = SEC;
	u32 i;

	/* Waiting behind a job for a second gathers the share of 20 ms. */
	by_hand(2, 1, &mgpu_policy_fixed, 100);
	mgpu_runq_wake(&hand, b, now);
	TAP_NEED(mgpu_runq_pick(&hand, now) == b);
	mgpu_runq_wake(&hand, a, now);
	now += SEC;
	mgpu_runq_charge(&hand, b, SEC, now);
	TAP_NEED(mgpu_runq_pick(&hand, now) == a);
	now += 100;
	mgpu_runq_charge(&hand, a, 100, now);
	TAP_EQ(a->share.level_ns, 10 * MS - 50);
	/* Being away for a second leaves the share of 1 ms. */
	now += SEC;
	mgpu_runq_wake(&hand, a, now);
	TAP_EQ(a->share.level_ns, MS / 2);

	/* The same for an entity that was waiting when the policy took over. */
	by_hand(2, 1, &mgpu_policy_weighted, 100);
	mgpu_runq_wake(&hand, a, now);
	now += SEC;
	mgpu_runq_set_policy(&hand, &mgpu_policy_fixed, NULL, now);
	TAP_NEED(mgpu_runq_pick(&hand, now) == a);
	TAP_EQ(a->share.level_ns, MS / 2);

	/* However small its share is, an entity with a job may begin it. */
	by_hand(80, 1, &mgpu_policy_fixed, 10000);
	mgpu_runq_set_weight(&hand, a, 1, now);
	hand.weights += 4015 * 10000;	/* as if all that may exist did */
	for (i = 0; i < 3; i++) {
		mgpu_runq_wake(&hand, a, now);
		TAP_CHECK(mgpu_runq_pick(&hand, now) == a);
		now += 3 * SEC;
		mgpu_runq_charge(&hand, a, 3 * SEC, now);
		now += 3 * SEC;
	}
}

/* Of four engines a quarter is one, however many have nothing to do. */
static void fixed_counts_engines(void)
{
	struct sim *s = &sim;
	struct vm *v;

	srand(55);
	sim_init(s, 2, 4, &mgpu_policy_fixed);
	s->tile = 100 * NSEC_US;
	v = sim_vm(s, 0, 100, 2, MS, 3 * MS);
	sim_vm(s, 1, 300, 0, 1, 1);
	sim_run(s, s->now + SEC);
	TAP_NEAR(share(s, v, 0, SEC), .25, .003);
}

/* An entity of weight 1 among thousands of weight 10,000 is served. */
static void fixed_starves_nobody(void)
{
	struct sim *s = &sim;
	struct vm *v;
	u32 i;

	srand(54);
	sim_init(s, MAX_VMS, 1, &mgpu_policy_fixed);
	s->tile = 100 * NSEC_US;
	v = sim_vm(s, 0, 1, 1, 1, MS);
	for (i = 1; i < s->vms; i++)
		sim_vm(s, i, 10000, i < 20, 1, MS);
	sim_run(s, s->now + 40 * SEC);
	/* No wait is longer than 2 s. */
	TAP_CHECK(v->done >= 19);
}

/* ---- order of submission ---- */

static void first_come_first_served(void)
{
	struct sim *s = &sim;
	u64 last = 0;
	int k;
	u32 i;

	srand(61);
	sim_init(s, 20, 1, &mgpu_policy_best_effort);
	for (i = 0; i < s->vms; i++)
		sim_vm(s, i, any_weight(), 1 + rand() % 2, 1, 2 * MS)->gap_max =
			rand() % (50 * MS);
	/* check_pick() looks at each; here once more, in a row. */
	for (k = 0; k < 20000; k++) {
		sim_run(s, s->now + rand() % MS);
		if (!s->engine[0])
			continue;
		NEED(s, s->engine[0]->seq >= last);
		last = s->engine[0]->seq;
	}
}

/* ---- policies from outside ---- */

static u32 calls;		/* of the callbacks below */
static bool rude;

static void queues_attach(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			  u64 now)
{
	calls++;
	if (rude && e->state == MGPU_ENTITY_READY)
		mgpu_runq_insert(rq, e, 3, now);
}

static void queues_detach(struct mgpu_runq *rq, struct mgpu_sched_entity *e)
{
	calls++;
	if (rude && e->state == MGPU_ENTITY_READY)
		mgpu_runq_insert(rq, e, 4, 0);
}

static void queues_enqueue(struct mgpu_runq *rq, struct mgpu_sched_entity *e,
			   u64 now)
{
	/* Keys go around, too. */
	mgpu_runq_insert(rq, e, e->id % MGPU_RUNQ_QUEUES,
			 U64_MAX - 1000 + e->head_seq);
}

static void queues_dequeue(struct mgpu_runq *rq, struct mgpu_sched_entity *e)
{
	if (rude)
		mgpu_runq_insert(rq, e, 5, 7);
}

static struct mgpu_sched_entity *queues_pick(struct mgpu_runq *rq, u64 now)
{
	struct mgpu_sched_entity *e;
	u32 i;

	if (rude && rand() % 4 == 0)
		return rand() % 2 ? NULL : &ent[79];
	for (i = 0; i < MGPU_RUNQ_QUEUES; i++) {
		e = mgpu_runq_first(rq, i);
		if (e)
			return e;
	}
	return NULL;
}

static const struct mgpu_policy_ops queues_policy = {
	.name = "queues",
	.attach = queues_attach,
	.detach = queues_detach,
	.enqueue = queues_enqueue,
	.dequeue = queues_dequeue,
	.pick = queues_pick,
};

static void queues_and_keys(void)
{
	struct mgpu_sched_entity *e, *last = NULL;
	u64 now = SEC;
	u32 i;

	rude = false;
	by_hand(79, 1, &queues_policy, 100);
	/* Each queue's two entities have the same key: the first to come goes first. */
	for (i = 0; i < 79; i++) {
		ent[i].head_seq = 2000 - i / 2 * 10;
		mgpu_runq_wake(&hand, &ent[i], now);
		mgpu_runq_wake(&hand, &ent[i], now);
	}
	TAP_EQ(hand.nr_ready, 79);
	/* Moved to another queue and back. */
	mgpu_runq_insert(&hand, &ent[7], 3, 0);
	mgpu_runq_insert(&hand, &ent[7], ent[7].id % MGPU_RUNQ_QUEUES,
			 U64_MAX - 1000 + ent[7].head_seq);
	for (i = 0; i < 79; i++) {
		e = mgpu_runq_pick(&hand, now);
		TAP_NEED(e);
		TAP_CHECK(!e->queued && e->state == MGPU_ENTITY_IDLE);
		if (last && last->queue == e->queue) {
			TAP_CHECK(last->head_seq <= e->head_seq);
			if (last->head_seq == e->head_seq)
				TAP_CHECK(last->id < e->id);
		} else if (last) {
			TAP_CHECK(last->queue < e->queue);
		}
		last = e;
	}
	TAP_CHECK(!mgpu_runq_pick(&hand, now));
	TAP_EQ(hand.nr_ready, 0);
}

/* A policy may return anything: no entity gets lost. */
static void rude_policies(void)
{
	struct mgpu_sched_entity *e;
	u32 i, k, ready, served = 0;
	u64 now = SEC;

	srand(71);
	rude = true;
	by_hand(79, 1, &queues_policy, 100);
	for (k = 0; k < 20000; k++) {
		now += rand() % MS;
		e = &ent[rand() % 79];
		switch (rand() % 8) {
		case 0:
			mgpu_runq_set_policy(&hand, all[rand() % NR(all)],
					     NULL, now);
			break;
		case 1:
			/* A new version of the one in force, perhaps. */
			mgpu_runq_set_policy(&hand, &queues_policy, e, now);
			TAP_CHECK(hand.policy_data == e);
			break;
		case 2:
			mgpu_runq_set_limit(&hand, e, rand() % 2 ? 0 : 5000,
					    1000, 0, now);
			break;
		case 3:
			mgpu_runq_set_weight(&hand, e, any_weight(), now);
			break;
		case 4:
			mgpu_runq_detach(&hand, e);
			memset(e, 0, sizeof(*e));
			e->id = e - ent + 1;
			e->weight = any_weight();
			mgpu_runq_attach(&hand, e, now);
			break;
		case 5:
			e = mgpu_runq_pick(&hand, now);
			if (e)
				mgpu_runq_charge(&hand, e, rand() % MS, now);
			served += !!e;
			break;
		default:
			mgpu_runq_wake(&hand, e, now);
		}
		for (i = 0, ready = 0; i < 79; i++)
			ready += ent[i].state == MGPU_ENTITY_READY;
		TAP_NEED(hand.nr_ready == ready);
	}
	TAP_CHECK(served > 500);
	TAP_CHECK(calls > 1000);
	/* Under one that behaves, all that waited are served. */
	mgpu_runq_set_policy(&hand, &mgpu_policy_best_effort, NULL, now);
	now += 3 * SEC;
	while (mgpu_runq_pick(&hand, now))
		;
	for (i = 0; i < 79; i++)
		TAP_EQ(ent[i].state, MGPU_ENTITY_IDLE);
	rude = false;
}

/* ---- clocks and numbers ---- */

/*
 * Time stands still, goes back, jumps by centuries: those that are not limited
 * are served in turn all the same.
 */
static void odd_clocks(void)
{
	u64 used[4], now, t;
	size_t k;
	u32 i, n;

	for (k = 0; k < 3; k++) {
		srand(81);
		now = 100 * SEC;
		by_hand(4, 1, all[k], 100);
		memset(used, 0, sizeof(used));
		for (n = 0; n < 40000; n++) {
			struct mgpu_sched_entity *e;

			if (n == 20000)
				now += 3155760000 * SEC;
			t = now;
			if (rand() % 3 == 0)
				t -= (u64)rand() * 30;
			for (i = 0; i < 4; i++) {
				ent[i].head_seq = ent[i].state ?
						  ent[i].head_seq : 4 * n + i;
				mgpu_runq_wake(&hand, &ent[i], t);
			}
			e = mgpu_runq_pick(&hand, t);
			TAP_NEED(e);
			mgpu_runq_charge(&hand, e, MS, t);
			mgpu_runq_should_yield(&hand, e, MS, t);
			used[e - ent]++;
		}
		for (i = 0; i < 4; i++)
			TAP_NEAR((double)used[i], 10000, 1);
	}
}

static u64 any_number(void)
{
	u64 n = ((u64)rand() << 62 ^ (u64)rand() << 31 ^ (u64)rand());

	return rand() % 8 ? n >> rand() % 64 : U64_MAX - (n >> 60);
}

/* Times, charges, limits and weights up to what their types hold. */
static void any_numbers(void)
{
	struct mgpu_sched_entity *e;
	u32 i, k, ready, life;
	bool attached[8];
	u64 now, lead;

	srand(82);
	for (life = 0; life < 3000; life++) {
		by_hand(8, 1 + rand() % 64, all[rand() % NR(all)],
			rand() % 2 ? 1 : 10000);
		now = any_number();
		memset(attached, true, sizeof(attached));
		for (k = 0; k < 150; k++) {
			now = rand() % 4 ? now + (any_number() >> 24) :
					   rand() % 16 ? now : any_number();
			i = rand() % 8;
			e = &ent[i];
			if (!attached[i]) {
				memset(e, 0, sizeof(*e));
				e->weight = rand() % 2 ? 1 : 10000;
				mgpu_runq_attach(&hand, e, now);
				attached[i] = true;
			}
			switch (rand() % 10) {
			case 0:
				mgpu_runq_set_policy(&hand,
						     all[rand() % NR(all)],
						     NULL, now);
				break;
			case 1:
				mgpu_runq_set_weight(&hand, e,
						     rand() % 2 ? 1 : 10000,
						     now);
				break;
			case 2:
				mgpu_runq_set_limit(&hand, e,
						    rand() % 2 ? 1 : 1000000,
						    rand() % 2 ? 1 : 1000000,
						    rand() % 2 ? 0 : ~0u, now);
				break;
			case 3:
				mgpu_runq_detach(&hand, e);
				attached[i] = false;
				break;
			case 4:
				mgpu_runq_sleep(&hand, e);
				break;
			case 5:
				mgpu_runq_should_yield(&hand, e, any_number(),
						       now);
				break;
			case 6:
				mgpu_runq_charge(&hand, e, any_number(), now);
				break;
			default:
				mgpu_runq_wake(&hand, e, now);
			}
			e = mgpu_runq_pick(&hand, now);
			if (e && rand() % 2)
				mgpu_runq_charge(&hand, e, any_number(), now);
			ready = 0;
			for (i = 0; i < 8; i++) {
				if (!attached[i])
					continue;
				ready += ent[i].state == MGPU_ENTITY_READY;
				if (hand.policy == &mgpu_policy_best_effort)
					continue;
				/* 120 s of debt at weight 1 */
				lead = ent[i].vtime - hand.vtime;
				if (ent[i].state == MGPU_ENTITY_READY)
					TAP_CHECK(lead <= 1200000000000000 ||
						  -lead <= 100000000000);
			}
			TAP_NEED(hand.nr_ready == ready);
			TAP_NEED(e || !ready);
			TAP_NEED(mgpu_runq_due(&hand) > hand.now);
			TAP_NEED(mgpu_runq_due(&hand) <= hand.now + 2 * SEC ||
				 mgpu_runq_due(&hand) == U64_MAX);
		}
	}
}

int main(void)
{
	tap_run(random_use, "random use of each policy loses and repeats nothing");
	tap_run(random_switches, "nor do policies that change under load");
	tap_run(random_crowds, "nor hundreds of vGPUs");
	tap_run(weighted_pairs, "weighted: any two get their parts at any time");
	tap_run(equal_pairs, "equal: any two get the same at any time");
	tap_run(weighted_shares, "weighted: shares over 100 ms and 1 s");
	tap_run(refill_keeps_share, "a vGPU that refills its ring keeps its share");
	tap_run(idle_neighbours, "idle neighbours cost nothing");
	tap_run(idle_earns_nothing, "time spent idle earns nothing");
	tap_run(lent_and_returned, "unused share is lent and comes back in a job");
	tap_run(credit_is_bounded, "a moment's absence is owed 10 ms at most");
	tap_run(busy_is_not_away, "an entity with a job on an engine is not away");
	tap_run(moving_is_not_away, "nor is an entity that lets another of its jobs go first");
	tap_run(switches_forgive, "a new policy forgives old debt");
	tap_run(same_policy_forgives_nothing, "the same policy again does not");
	tap_run(weights_change_what_comes, "a new weight leaves debt as it is");
	tap_run(weights_change_under_a_job, "not even while a job runs");
	tap_run(virtual_time_wraps, "a wrap of virtual time changes nothing");
	tap_run(new_ones_owe_nothing, "new ones begin as equals");
	tap_run(charges_are_bounded, "no charge is larger than the longest job");
	tap_run(who_yields, "each policy says when to yield");
	tap_run(slices_have_a_length, "a slice has one length at all weights");
	tap_run(debtors_wait, "and counts what the others owe");
	tap_run(due_ones_are_yielded_to, "whoever is due again is yielded to");
	tap_run(waits_are_counted_from_the_start,
		"it is known since when one waits");
	tap_run(limit_holds, "gpu_limit holds over any time, under any policy");
	tap_run(limits_leave_no_gap, "other entities use the time that a limit leaves");
	tap_run(delays_are_counted, "delays are counted");
	tap_run(limits_stop_a_job, "a job stops when its limit is spent");
	tap_run(new_limits_act_at_once, "new limits act on waiting entities");
	tap_run(fixed_shares, "fixed: shares over 100 ms and 1 s");
	tap_run(fixed_lends_nothing, "fixed: unused time of an entity goes to no other");
	tap_run(fixed_saves_nothing, "fixed: unused time is not saved up");
	tap_run(fixed_is_bounded, "fixed: no stretch of time has too much");
	tap_run(fixed_follows_who_exists, "fixed: shares follow the existing entities");
	tap_run(fixed_gathers_little, "fixed: a share gathers, but not for long");
	tap_run(fixed_counts_engines, "fixed: shares are of all engines");
	tap_run(fixed_starves_nobody, "fixed: the smallest share is served");
	tap_run(first_come_first_served, "best effort: first come, first served");
	tap_run(queues_and_keys, "queues keep the order of keys and arrivals");
	tap_run(rude_policies, "a policy that misbehaves loses no entity");
	tap_run(odd_clocks, "odd clocks stop no entity");
	tap_run(any_numbers, "any numbers keep the bounds");
	return tap_done();
}
