// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whether a GPU that a VM holds is used.  Pure.
 *
 * Rules for what cannot be trusted:
 *
 * - The host's counters decide alone where there are any: what the agent says does not count.
 * - A sample is work if the counter grew by more than IDLE_NOISE_NS since the source's last.
 * - A counter that goes backwards proves no work and counts on from there.  It may have begun anew
 *   with the agent or the guest's driver.
 * - A counter that grew more than the time that went by proves no work (5 % and 1 s are allowed
 *   for clocks), and neither does one that went back to more than can have been done since.  The
 *   third such sample of an agent makes it a liar: nothing that it says counts from then on.
 * - The host's counter of a vGPU is the sum over the engines of its GPU, which work at the same
 *   time: it may grow more than the time that went by.
 * - The host sees the power state of a whole GPU.  A GPU that sleeps does not compute: an agent's
 *   claim of work counts up to the last time that the host saw the GPU awake.
 * - An agent is dead after agent_silent seconds without a message.  For a VM with a dead agent, or
 *   none, a GPU that the host sees awake counts as work.
 * - What no source shows is no work: the GPU is idle since the last work that was seen.
 * - An extension counts as work for extend_max seconds after the last work that a source showed: a
 *   VM that extends again and again does not keep an idle GPU for ever.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "idle.h"

#define NS_PER_S	UINT64_C(1000000000)

enum { HOST, AGENT, POWER };

static int source_of(char source)
{
	static const char names[IDLE_SOURCES + 1] = "hap";
	const char *at = source ? strchr(names, source) : NULL;

	return at ? (int)(at - names) : -1;
}

void idle_start(struct idle *idle, const struct pool_settings *settings, int64_t attached,
		int64_t now)
{
	*idle = (struct idle){
		.start = attached,
		.worked = now,
		.used = now,
		.look = now + settings->look1,
	};
}

/* The longest work, ns, that fits in a time in seconds. */
static uint64_t most_work(int64_t seconds)
{
	return (uint64_t)seconds * (NS_PER_S + NS_PER_S / 20) + NS_PER_S;
}

static void keep_highest(struct idle *idle, const struct pool_use *use)
{
	if (use->energy_mj > idle->energy_mj)
		idle->energy_mj = use->energy_mj;
	if (use->memory_mib > idle->memory_mib)
		idle->memory_mib = use->memory_mib;
}

/* Return whether the growth since the last sample can be true. */
static bool possible(const struct idle *idle, const struct idle_source *s,
		     const struct pool_use *use)
{
	uint64_t most = most_work(use->time - (s->time ? s->time : idle->start));

	if (s == &idle->sources[HOST])
		return true;
	if (use->busy_ns < s->busy_ns)
		return use->busy_ns <= most;
	return use->busy_ns - s->busy_ns <= most;
}

int idle_use(struct idle *idle, const struct pool_use *use)
{
	int source = source_of(use->source);
	struct idle_source *s;
	uint64_t grown;
	bool good;

	if (source < 0)
		return -EINVAL;
	s = &idle->sources[source];
	if (source == AGENT && idle->lies >= IDLE_LIES)
		return -EPERM;
	if (use->time < (s->time ? s->time : idle->start))
		return -ERANGE;
	good = possible(idle, s, use);
	grown = good && use->busy_ns > s->busy_ns ? use->busy_ns - s->busy_ns : 0;
	if (grown > IDLE_NOISE_NS) {
		s->worked = use->time;
		s->total_ns += grown;
	}
	/* Noise adds up until it is work. */
	if (grown > IDLE_NOISE_NS || !good || use->busy_ns < s->busy_ns)
		s->busy_ns = use->busy_ns;
	s->time = use->time;
	if (!good) {
		idle->lies += source == AGENT;
		return -ERANGE;
	}
	if (source == HOST || !idle->sources[HOST].time)
		keep_highest(idle, use);
	return 0;
}

uint64_t idle_busy(const struct idle *idle)
{
	return idle->sources[idle->sources[HOST].time ? HOST : AGENT].total_ns;
}

static bool alive(const struct idle *idle, const struct pool_settings *settings, int64_t seen,
		  int64_t now)
{
	const struct idle_source *a = &idle->sources[AGENT];

	return a->time && now - (seen > a->time ? seen : a->time) <= settings->agent_silent;
}

/* Whether the host saw the power state lately. */
static bool sees_power(const struct idle *idle, const struct pool_settings *settings, int64_t now)
{
	const struct idle_source *p = &idle->sources[POWER];

	return p->time && now - p->time <= settings->agent_silent;
}

/* Return the last time of work that a source shows. */
static int64_t last_work(const struct idle *idle, const struct pool_settings *settings,
			 int64_t seen, int64_t now)
{
	int64_t agent = idle->sources[AGENT].worked, power = idle->sources[POWER].worked;
	int64_t worked = agent;

	if (idle->sources[HOST].time)
		worked = idle->sources[HOST].worked;
	else if (idle->lies >= IDLE_LIES)
		worked = agent;
	else if (!alive(idle, settings, seen, now))
		worked = agent > power ? agent : power;
	else if (sees_power(idle, settings, now) && power < agent)
		worked = power;
	return worked;
}

/* The end of a sentence: how the finding came about. */
static const char *evidence(const struct idle *idle, const struct pool_settings *settings,
			    int64_t seen, int64_t now)
{
	if (idle->sources[HOST].time)
		return "by the host's counters";
	if (idle->lies >= IDLE_LIES)
		return "its agent reported what cannot be, and does not count";
	if (alive(idle, settings, seen, now))
		return idle->sources[AGENT].worked > idle->worked ?
			"its agent reports work, but the host sees the GPU asleep" :
			"by its agent";
	if (idle->sources[AGENT].time)
		return "its agent is silent; restart mgpu-agent, or pin the VM";
	if (seen)
		return "its agent does not report its use; give consent, or pin the VM";
	return "no agent reports its use; install mgpu-agent, or pin the VM";
}

/* The time at which the VM is warned. */
static int64_t warning_of(const struct idle *idle, const struct pool_settings *s)
{
	return idle->worked + s->look1 + (s->grace < s->look2 ? s->look2 - s->grace : 0);
}

static int64_t end_of(const struct idle *idle, const struct pool_settings *s)
{
	return idle->worked + s->look1 + (s->grace < s->look2 ? s->look2 : s->grace);
}

/* Set the phase, and when it is due: never at once again. */
static enum idle_verdict next(struct idle *idle, enum idle_phase phase, int64_t look, int64_t now,
			      enum idle_verdict verdict)
{
	idle->phase = phase;
	idle->look = look > now ? look : now + 1;
	return verdict;
}

void idle_keep(struct idle *idle, const struct pool_settings *settings, int64_t now)
{
	idle->worked = now;
	next(idle, IDLE_FIRST, now + settings->look1, now, IDLE_KEEP);
}

static void note_work(struct idle *idle, int64_t worked)
{
	if (worked > idle->used)
		idle->used = worked;
}

bool idle_may_extend(struct idle *idle, const struct pool_settings *settings, int64_t seen,
		     int64_t now)
{
	note_work(idle, last_work(idle, settings, seen, now));
	return now - idle->used <= settings->extend_max;
}

void idle_pinned(struct idle *idle, const struct pool_settings *settings, int64_t now)
{
	idle->used = now;
	idle_keep(idle, settings, now);
}

enum idle_verdict idle_look(struct idle *idle, const struct pool_settings *settings, int64_t seen,
			    int64_t now, char why[POOL_TEXT_MAX])
{
	int64_t worked = last_work(idle, settings, seen, now);

	note_work(idle, worked);
	worked = worked > idle->worked ? worked : idle->worked;
	if (worked > idle->worked || now < idle->worked + settings->look1) {
		idle->worked = worked;
		return next(idle, IDLE_FIRST, worked + settings->look1, now, IDLE_KEEP);
	}
	snprintf(why, POOL_TEXT_MAX, "idle for %" PRId64 " s: %s", now - idle->worked,
		 evidence(idle, settings, seen, now));
	if (idle->phase == IDLE_FIRST && now < warning_of(idle, settings))
		return next(idle, IDLE_SECOND, warning_of(idle, settings), now, IDLE_STOPPED);
	if (idle->phase != IDLE_WARNED) {
		/* The whole grace, even if this look is late. */
		int64_t end = end_of(idle, settings);

		if (end < now + settings->grace)
			end = now + settings->grace;
		return next(idle, IDLE_WARNED, end, now, IDLE_WARN);
	}
	if (now < idle->look)
		return IDLE_KEEP;
	return next(idle, IDLE_WARNED, now + settings->look2, now, IDLE_RELEASE);
}
