// SPDX-License-Identifier: GPL-2.0-only
/* Whether a GPU that a VM holds is used. */
#include "tap.h"
#include "idle.h"

#define START	1000000
#define S	UINT64_C(1000000000)

static struct pool_settings settings = {
	.look1 = 3600, .look2 = 1200, .grace = 300, .agent_silent = 600,
	.extend_max = 14400,
};

static struct idle idle;
static int64_t seen;
static char why[POOL_TEXT_MAX];

static void begin(void)
{
	idle_start(&idle, &settings, START, START);
	seen = 0;
	why[0] = '\0';
}

/* A sample @at seconds after the start. */
static int use(char source, int64_t at, uint64_t busy_ns)
{
	const struct pool_use u = { .request = 1, .time = START + at, .source = source,
				    .busy_ns = busy_ns };

	if (source == 'a')
		seen = START + at;
	return idle_use(&idle, &u);
}

static enum idle_verdict look(int64_t at)
{
	return idle_look(&idle, &settings, seen, START + at, why);
}

/* Follow the looks to the release. Return its time after the start. */
static int64_t release_time(void)
{
	for (int i = 0; i < 100; i++)
		if (look(idle.look - START) == IDLE_RELEASE)
			return idle.look - settings.look2 - START;
	return -1;
}

static void two_looks(void)
{
	begin();
	TAP_EQ(idle.look, START + 3600);
	TAP_EQ(look(3599), IDLE_KEEP);
	TAP_EQ(look(3600), IDLE_STOPPED);
	TAP_EQ(idle.look, START + 4500);
	TAP_EQ(look(4500), IDLE_WARN);
	TAP_EQ(idle.look, START + 4800);
	TAP_EQ(look(4799), IDLE_KEEP);
	TAP_EQ(look(4800), IDLE_RELEASE);
	TAP_CHECK(strstr(why, "idle for 4800 s") != NULL);
	begin();
	TAP_EQ(release_time(), 4800);
}

static void long_grace(void)
{
	settings.grace = 2000;
	begin();
	TAP_EQ(look(3600), IDLE_WARN);
	TAP_EQ(idle.look, START + 5600);
	TAP_EQ(look(5600), IDLE_RELEASE);
	settings.grace = 300;
}

/* A look that comes late gives the whole grace still. */
static void late_looks(void)
{
	begin();
	TAP_EQ(look(9000), IDLE_WARN);
	TAP_EQ(idle.look, START + 9300);
	TAP_EQ(look(9299), IDLE_KEEP);
	TAP_EQ(look(9300), IDLE_RELEASE);
}

static void work_between_looks(void)
{
	begin();
	/* A second of work in the first hour. */
	TAP_EQ(use('h', 100, 0), 0);
	TAP_EQ(use('h', 200, S), 0);
	TAP_EQ(look(3600), IDLE_KEEP);
	TAP_EQ(idle.look, START + 200 + 3600);
	/* Between the looks. */
	TAP_EQ(look(3800), IDLE_STOPPED);
	TAP_EQ(use('h', 4000, 2 * S), 0);
	TAP_EQ(look(4700), IDLE_KEEP);
	TAP_EQ(idle.look, START + 7600);
	/* After the warning. */
	TAP_EQ(look(7600), IDLE_STOPPED);
	TAP_EQ(look(8500), IDLE_WARN);
	TAP_EQ(use('h', 8799, 3 * S), 0);
	TAP_EQ(look(8800), IDLE_KEEP);
	TAP_EQ(release_time(), 8799 + 4800);
	TAP_EQ(idle_busy(&idle), 3 * S);
}

static void noise(void)
{
	begin();
	for (int i = 1; i <= 10; i++)
		use('h', i * 300, (uint64_t)i * 1000);
	TAP_EQ(release_time(), 4800);
	/* Much noise is work. */
	begin();
	for (int i = 1; i <= 10; i++)
		use('h', i * 300, (uint64_t)i * 600000);
	TAP_EQ(release_time(), 3000 + 4800);
}

static void host_beats_agent(void)
{
	begin();
	for (int i = 1; i < 40; i++) {
		use('a', i * 100, (uint64_t)i * 90 * S);
		use('h', i * 100, 0);
	}
	TAP_EQ(release_time(), 4800);
	TAP_CHECK(strstr(why, "host's counters") != NULL);
	TAP_EQ(idle_busy(&idle), 0);
}

static void agent_alone(void)
{
	begin();
	for (int i = 1; i <= 36; i++)
		TAP_EQ(use('a', i * 100, (uint64_t)i * 90 * S), 0);
	TAP_EQ(idle_busy(&idle), 36 * 90 * S);
	for (int i = 37; i < 84; i++)
		use('a', i * 100, 36 * 90 * S);
	TAP_EQ(release_time(), 3600 + 4800);
	TAP_CHECK(strstr(why, "by its agent") != NULL);
}

static void dead_agent(void)
{
	begin();
	use('a', 100, 50 * S);
	TAP_EQ(release_time(), 4900);
	TAP_CHECK(strstr(why, "silent") != NULL);
	/* The host sees the GPU awake. */
	begin();
	use('a', 100, 50 * S);
	for (int i = 2; i < 80; i++)
		use('p', i * 100, (uint64_t)i * 100 * S);
	TAP_EQ(release_time(), 7900 + 4800);
	/* It sees the GPU asleep. */
	begin();
	use('a', 100, 50 * S);
	for (int i = 2; i < 80; i++)
		use('p', i * 100, 0);
	TAP_EQ(release_time(), 4900);
}

static void no_agent(void)
{
	begin();
	TAP_EQ(release_time(), 4800);
	TAP_CHECK(strstr(why, "install mgpu-agent") != NULL);
	begin();
	seen = START + 4700;
	TAP_EQ(release_time(), 4800);
	TAP_CHECK(strstr(why, "consent") != NULL);
	begin();
	for (int i = 1; i < 80; i++)
		use('p', i * 100, (uint64_t)i * 100 * S);
	TAP_EQ(release_time(), 7900 + 4800);
	TAP_EQ(idle_busy(&idle), 0);
}

static void counter_that_begins_anew(void)
{
	begin();
	for (int i = 1; i < 8; i++) {
		TAP_EQ(use('a', i * 200 - 100, 90 * S), 0);
		/* The agent starts again. */
		TAP_EQ(use('a', i * 200, 0), 0);
	}
	TAP_EQ(idle.lies, 0);
	TAP_EQ(idle_busy(&idle), 7 * 90 * S);
}

static void impossible_samples(void)
{
	begin();
	TAP_EQ(use('a', 100, 107 * S), -ERANGE);
	TAP_EQ(idle.lies, 1);
	/* 5 % and a second are allowed. */
	TAP_EQ(use('a', 200, (107 + 105) * S), 0);
	TAP_EQ(idle_busy(&idle), 105 * S);
	/* Back, but to more than can be. */
	TAP_EQ(use('a', 210, 150 * S), -ERANGE);
	TAP_EQ(idle.lies, 2);
	TAP_EQ(use('a', 220, 300 * S), -ERANGE);
	TAP_EQ(use('a', 230, 305 * S), -EPERM);
	TAP_EQ(release_time(), 200 + 4800);
	TAP_CHECK(strstr(why, "cannot be") != NULL);
	/* The power state is no liar. */
	begin();
	for (int i = 1; i < 8; i++)
		TAP_EQ(use('p', i, (uint64_t)i * 100 * S), -ERANGE);
	TAP_EQ(idle.lies, 0);
	TAP_EQ(use('x', 100, 0), -EINVAL);
	TAP_EQ(use('\0', 100, 0), -EINVAL);
	/* Older than the last, and before the start. */
	TAP_EQ(use('a', 50, 0), 0);
	TAP_EQ(use('a', 49, 0), -ERANGE);
	TAP_EQ(use('h', -1, 0), -ERANGE);
	TAP_EQ(idle.lies, 0);
	TAP_EQ(use('a', 60, UINT64_MAX), -ERANGE);
}

/* A vGPU that works on four engines at the same time. */
static void many_engines(void)
{
	begin();
	for (int i = 1; i < 60; i++)
		TAP_EQ(use('h', i * 100, (uint64_t)i * 400 * S), 0);
	TAP_EQ(idle_busy(&idle), 59 * 400 * S);
	TAP_EQ(idle.lies, 0);
	TAP_EQ(release_time(), 5900 + 4800);
}

/* Always busy, and the host sees that the GPU sleeps. */
static void busy_in_its_sleep(void)
{
	begin();
	for (int i = 1; i < 60; i++) {
		TAP_EQ(use('a', i * 100, (uint64_t)i * 100 * S), 0);
		use('p', i * 100, i < 5 ? (uint64_t)i * 100 * S : 400 * S);
	}
	TAP_EQ(release_time(), 400 + 4800);
	TAP_CHECK(strstr(why, "asleep") != NULL);
}

static void awake_proves_nothing(void)
{
	begin();
	for (int i = 1; i < 60; i++) {
		use('a', i * 100, 0);
		use('p', i * 100, (uint64_t)i * 100 * S);
	}
	TAP_EQ(release_time(), 4800);
}

static void kept(void)
{
	begin();
	TAP_EQ(look(3600), IDLE_STOPPED);
	idle_keep(&idle, &settings, START + 4000);
	TAP_EQ(look(4500), IDLE_KEEP);
	TAP_EQ(release_time(), 8800);
}

/* Extend every half hour while the pool allows it. Return the time of the release. */
static int64_t extend_on_and_on(void)
{
	for (int64_t at = 1800; at < 1000000; at += 1800) {
		while (idle.look <= START + at)
			if (look(idle.look - START) == IDLE_RELEASE)
				return idle.look - settings.look2 - START;
		if (idle_may_extend(&idle, &settings, seen, START + at))
			idle_keep(&idle, &settings, START + at);
	}
	return -1;
}

static void extended_on_and_on(void)
{
	begin();
	TAP_EQ(extend_on_and_on(), 14400 + 4800);
	begin();
	use('a', 7000, 10 * S);
	TAP_CHECK(idle_may_extend(&idle, &settings, seen, START + 21400));
	TAP_CHECK(!idle_may_extend(&idle, &settings, seen, START + 21401));
	begin();
	TAP_CHECK(!idle_may_extend(&idle, &settings, seen, START + 20000));
	idle_pinned(&idle, &settings, START + 20000);
	TAP_CHECK(idle_may_extend(&idle, &settings, seen, START + 30000));
}

int main(void)
{
	tap_run(two_looks, "two looks without work release a GPU, after a warning");
	tap_run(long_grace, "a grace longer than the second look is given whole");
	tap_run(late_looks, "late looks give the whole grace");
	tap_run(work_between_looks, "work between looks keeps a GPU");
	tap_run(noise, "noise of a counter is no work until it adds up");
	tap_run(host_beats_agent, "the host's counters decide alone");
	tap_run(agent_alone, "an agent's counter decides for a whole GPU");
	tap_run(dead_agent, "for a dead agent the power state decides");
	tap_run(no_agent, "without an agent, what no source shows is no work");
	tap_run(counter_that_begins_anew, "a counter that begins anew counts on");
	tap_run(impossible_samples, "samples that cannot be true make a liar");
	tap_run(many_engines, "a vGPU that works on several engines at the same time is used");
	tap_run(busy_in_its_sleep, "a GPU that sleeps does not work, whatever its agent says");
	tap_run(awake_proves_nothing, "a GPU that is awake is not used by that");
	tap_run(kept, "an extension begins the looks anew");
	tap_run(extended_on_and_on, "extensions without work between them come to an end");
	return tap_done();
}
