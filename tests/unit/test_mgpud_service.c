// SPDX-License-Identifier: GPL-2.0-only
/* Keep-alives for a service manager, and events of agreements that are not kept. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "frames/sla_watch.h"
#include "tap.h"
#include "server/watchdog.h"

#define S	1000000000ULL

static uint64_t interval(const char *usec, const char *pid)
{
	struct watchdog w;

	watchdog_init(&w, usec, pid, 42, 5 * S);
	return w.interval_ns;
}

static void environment(void)
{
	TAP_EQ(interval("30000000", NULL), 15 * S);
	TAP_EQ(interval("30000000", "42"), 15 * S);
	TAP_EQ(interval("30000000", "43"), 0);
	TAP_EQ(interval("30000000", ""), 0);
	TAP_EQ(interval(NULL, NULL), 0);
	TAP_EQ(interval("", NULL), 0);
	TAP_EQ(interval("0", NULL), 0);
	TAP_EQ(interval("-5", NULL), 0);
	TAP_EQ(interval("5s", NULL), 0);
	TAP_EQ(interval(" 5", NULL), 0);
	TAP_EQ(interval("18446744073709551615", NULL), 0);
	TAP_EQ(interval("99999999999999999999999", NULL), 0);
}

/*
 * A loop as mgpud's for 10 minutes: it waits as told, and ends each period when
 * it is due. Returns the longest time without a keep-alive.
 */
static uint64_t longest(uint64_t limit_us, uint64_t period, unsigned int *sent)
{
	char usec[32];
	uint64_t now = 5 * S, due = now + period, last = now, worst = 0;
	struct watchdog w;

	snprintf(usec, sizeof(usec), "%llu", (unsigned long long)limit_us);
	watchdog_init(&w, usec, NULL, 1, now);
	*sent = 0;
	while (now < 605 * S) {
		uint64_t wake = now + (uint64_t)watchdog_wait_ms(&w, now) * 1000000;

		now = wake < due ? wake : due;
		if (now >= due)
			due = now + period;
		if (!watchdog_due(&w, now, due))
			continue;
		worst = now - last > worst ? now - last : worst;
		last = now;
		(*sent)++;
	}
	return worst;
}

static void regular(void)
{
	unsigned int sent;

	/* a period longer than the limit, as long, much shorter */
	TAP_CHECK(longest(4000000, 60 * S, &sent) <= 2 * S + S / 100);
	TAP_CHECK(sent >= 295 && sent <= 302);
	TAP_CHECK(longest(4000000, 4 * S, &sent) <= 2 * S + S / 100);
	TAP_CHECK(sent >= 295 && sent <= 302);
	TAP_CHECK(longest(4000000, S / 10, &sent) <= 2 * S + S / 10);
	TAP_CHECK(sent >= 280 && sent <= 302);
}

/* A period that does not end: none is sent, until one ends. */
static void stuck(void)
{
	struct watchdog w;

	watchdog_init(&w, "4000000", NULL, 1, 0);
	TAP_CHECK(watchdog_due(&w, 0, S));
	TAP_CHECK(!watchdog_due(&w, S, S));		/* not yet */
	TAP_CHECK(watchdog_due(&w, 2 * S, S));		/* late by less than 2 s */
	TAP_CHECK(!watchdog_due(&w, 4 * S, S));		/* by 3 s */
	TAP_CHECK(!watchdog_due(&w, 6 * S, S));
	TAP_CHECK(!watchdog_due(&w, 8 * S, S));
	TAP_CHECK(watchdog_due(&w, 10 * S, 10 * S + 1));	/* it went on */
	TAP_EQ(watchdog_wait_ms(&w, 10 * S), 2000);
	TAP_EQ(watchdog_wait_ms(&w, 11 * S + 1), 1000);	/* rounded up */
	TAP_EQ(watchdog_wait_ms(&w, 12 * S), 0);
	TAP_EQ(watchdog_wait_ms(&w, 99 * S), 0);
}

static void none(void)
{
	struct watchdog w;

	watchdog_init(&w, NULL, NULL, 1, 0);
	TAP_EQ(watchdog_wait_ms(&w, 5 * S), -1);
	TAP_CHECK(!watchdog_due(&w, 5 * S, 0));
	watchdog_init(&w, "9000000000000000", NULL, 1, 0);
	TAP_CHECK(watchdog_due(&w, 0, S));
	TAP_EQ(watchdog_wait_ms(&w, 0), INT_MAX);
}

/* ---- agreements ---- */

static struct estimate_vgpu vgpus[3];
static struct target targets[3];
static struct estimate e = { .vgpus = vgpus, .nr_vgpus = 3 };
static struct plan plan = { .targets = targets, .nr = 3 };
static struct sla_watch watch;
static struct sla_event *events;
static size_t nr;

static void set(unsigned int j, enum vgpu_state state, double floor, double granted)
{
	vgpus[j].last.id = j + 1;
	snprintf(vgpus[j].last.uuid, sizeof(vgpus[j].last.uuid),
		 "0000000%u-0000-4000-8000-000000000000", j);
	vgpus[j].state = state;
	targets[j].floor = floor;
	targets[j].granted = granted;
}

static size_t update(double seconds)
{
	free(events);
	events = NULL;
	e.now_ns = (uint64_t)(seconds * 1e9);
	TAP_EQ(sla_watch_update(&watch, &e, &plan, &events, &nr), 0);
	return nr;
}

static void begin_and_end(void)
{
	set(0, VGPU_ACTIVE, 30, 30);
	set(1, VGPU_ACTIVE, 20, 20);
	set(2, VGPU_CLOSED, 0, 0);
	TAP_EQ(update(1), 0);
	set(0, VGPU_ACTIVE, 30, 15);
	TAP_EQ(update(2), 1);
	TAP_CHECK(events[0].shortfall && !events[0].gone);
	TAP_EQ(events[0].id, 1);
	TAP_STR(events[0].uuid, vgpus[0].last.uuid);
	TAP_NEAR(events[0].floor, 30, 0);
	TAP_NEAR(events[0].granted, 15, 0);
	TAP_CHECK(sla_watch_has(&watch, vgpus[0].last.uuid));
	/* not one per period */
	for (unsigned int k = 3; k < 60; k++) {
		set(0, VGPU_ACTIVE, 30, 10 + k % 7);
		TAP_EQ(update(k), 0);
	}
	/* another one */
	set(1, VGPU_ACTIVE, 20, 19);
	TAP_EQ(update(60), 1);
	TAP_EQ(events[0].id, 2);
	TAP_EQ(watch.nr, 2);
	/* it is over when it has been for a while */
	set(0, VGPU_ACTIVE, 30, 30);
	TAP_EQ(update(61), 0);
	TAP_EQ(update(62), 0);
	TAP_EQ(update(62.9), 0);
	TAP_EQ(update(63.1), 1);
	TAP_CHECK(!events[0].shortfall && !events[0].gone);
	TAP_NEAR(events[0].granted, 30, 0);
	TAP_CHECK(!sla_watch_has(&watch, vgpus[0].last.uuid));
	TAP_EQ(watch.nr, 1);
	set(1, VGPU_IDLE, 20, 20);
	TAP_EQ(update(66), 0);
	TAP_EQ(update(66.2), 1);
	TAP_EQ(watch.nr, 0);
	sla_watch_free(&watch);
}

/* At the edge, or idle now and then: a single event, not one at each change. */
static void at_the_edge(void)
{
	unsigned int all = 0;

	for (unsigned int k = 1; k < 100; k++) {
		set(0, k % 3 ? VGPU_ACTIVE : VGPU_IDLE, 30, k % 2 ? 29.9 : 30);
		all += update(k);
	}
	TAP_EQ(all, 1);
	sla_watch_free(&watch);
}

static void other_ends(void)
{
	/* closed */
	set(0, VGPU_ACTIVE, 30, 15);
	set(1, VGPU_ACTIVE, 30, 15);
	TAP_EQ(update(1), 2);
	set(0, VGPU_CLOSED, 30, 30);
	TAP_EQ(update(2), 1);
	TAP_CHECK(!events[0].shortfall && events[0].gone);
	TAP_EQ(events[0].id, 1);
	/* removed: the list is shorter */
	e.nr_vgpus = 1;
	plan.nr = 1;
	TAP_EQ(update(3), 1);
	TAP_CHECK(events[0].gone);
	TAP_EQ(events[0].id, 2);
	e.nr_vgpus = 3;
	plan.nr = 3;
	/* promised no more: at once */
	set(0, VGPU_ACTIVE, 30, 15);
	set(1, VGPU_ACTIVE, 0, 0);
	TAP_EQ(update(4), 1);
	set(0, VGPU_ACTIVE, 0, 0);
	TAP_EQ(update(4.1), 1);
	TAP_CHECK(!events[0].shortfall && !events[0].gone);
	/* the same id, another vGPU */
	set(0, VGPU_ACTIVE, 30, 15);
	TAP_EQ(update(5), 1);
	strcpy(vgpus[0].last.uuid, "ffffffff-0000-4000-8000-000000000000");
	TAP_EQ(update(6), 2);
	TAP_CHECK(events[0].gone && events[1].shortfall);
	free(events);
	events = NULL;
	sla_watch_free(&watch);
}

/* Out of plans that decide() makes: two VMs that are promised more than there is. */
static void from_plans(void)
{
	const struct sla own[] = { { 50, INFINITY }, { 50, INFINITY } };
	const struct decide_param param = {
		.allocator = &alloc_exact, .iterations = 10,
		.fds = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT },
	};
	struct estimate_dev dev = { .id = 0, .engines = 1 };
	struct estimate est = {
		.cpu_capacity = 1, .cpu_capacity_smooth = 1, .seconds = 1,
		.vgpus = vgpus, .nr_vgpus = 2, .devs = &dev, .nr_devs = 1,
	};
	struct control control = { 0 };
	struct plan made;
	unsigned int all = 0;

	for (unsigned int k = 1; k < 20; k++) {
		/* 20 ms of CPU time a frame: 50 frames/s of both together */
		double cost = k < 10 ? 0.02 : 0.005;

		for (unsigned int j = 0; j < 2; j++) {
			memset(&vgpus[j], 0, sizeof(vgpus[j]));
			set(j, VGPU_ACTIVE, 0, 0);
			vgpus[j].fps = 20;
			vgpus[j].cpu_cost = vgpus[j].cpu_cost_smooth = cost;
			vgpus[j].gpu_cost = vgpus[j].gpu_cost_smooth = 0.001;
			vgpus[j].share = vgpus[j].cpu_share = 20 * cost;
			vgpus[j].demand = INFINITY;
		}
		est.now_ns = k * S;
		TAP_EQ(decide(&est, &param, own, NULL, &control, &made), 0);
		TAP_EQ(sla_watch_update(&watch, &est, &made, &events, &nr), 0);
		all += nr;
		if (k == 1) {
			TAP_EQ(nr, 2);
			TAP_NEAR(events[0].granted, 25, 0.5);
		}
		if (k == 12) {
			TAP_EQ(nr, 2);
			TAP_CHECK(!events[0].shortfall);
		}
		free(events);
		events = NULL;
		plan_free(&made);
	}
	TAP_EQ(all, 4);
	sla_watch_free(&watch);
}

#define MANY	4096

/* CPU time of periods in which all of @n vGPUs are short, and are asked for, ns: the least. */
static uint64_t cost_of(size_t n)
{
	static struct estimate_vgpu many[MANY];
	static struct target short_of[MANY];
	struct estimate est = { .vgpus = many, .nr_vgpus = n };
	struct plan made = { .targets = short_of, .nr = n };
	uint64_t least = UINT64_MAX;

	for (size_t j = 0; j < n; j++) {
		many[j].last.id = (uint32_t)j + 1;
		many[j].state = VGPU_ACTIVE;
		/* UUIDs are in another order than IDs */
		snprintf(many[j].last.uuid, sizeof(many[j].last.uuid),
			 "%08zx-0000-4000-8000-000000000000", j * 2477 % MANY);
		short_of[j] = (struct target){ .floor = 30, .granted = 10 };
	}
	for (unsigned int k = 1; k <= 7; k++) {
		struct timespec begin, end;
		uint64_t ns;

		est.now_ns = k * S;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
		TAP_EQ(sla_watch_update(&watch, &est, &made, &events, &nr), 0);
		for (size_t j = 0; j < n; j++)
			TAP_CHECK(sla_watch_has(&watch, many[j].last.uuid));
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
		TAP_EQ(nr, k == 1 ? n : 0);
		TAP_CHECK(k > 1 || !strcmp(events[n - 1].uuid, many[n - 1].last.uuid));
		ns = (uint64_t)((end.tv_sec - begin.tv_sec) * (time_t)S + end.tv_nsec -
				begin.tv_nsec);
		least = ns < least ? ns : least;
		free(events);
		events = NULL;
	}
	TAP_CHECK(!sla_watch_has(&watch, "none"));
	sla_watch_free(&watch);
	return least;
}

/* 16 times as much where each is looked for among all, 5 times where they are sorted. */
static void many_at_once(void)
{
	uint64_t few = cost_of(MANY / 4), all = cost_of(MANY);

	if (!TAP_CHECK(all < 10 * few))
		tap_diag("%llu ns, and %llu ns with four times as many vGPUs",
			 (unsigned long long)few, (unsigned long long)all);
}

int main(void)
{
	tap_run(environment, "WATCHDOG_USEC and WATCHDOG_PID are read with care");
	tap_run(regular, "keep-alives come at half of the time, whatever the period");
	tap_run(stuck, "a loop that misses its period sends none");
	tap_run(none, "without a watchdog nothing is due");
	tap_run(begin_and_end, "a shortfall is an event when it begins and when it ends");
	tap_run(at_the_edge, "one that comes and goes is one");
	tap_run(other_ends, "it ends when the vGPU goes, or the promise");
	tap_run(from_plans, "plans of a machine that is promised twice give events");
	tap_run(many_at_once, "thousands of shortfalls at once take time by their number");
	return tap_done();
}
