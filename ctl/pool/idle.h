/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a GPU that a VM holds is used: two looks at cumulative busy counters.  Pure.
 *
 * The first look is due look1 seconds after the last work.  If the counter did not grow since, a
 * second look follows look2 seconds later, and if it did not grow until then, the GPU goes back.
 * The VM is warned grace seconds before the second look, or at the first look if grace is longer
 * than look2.  Work at any time between looks starts anew, so a GPU stands idle for at most
 * look1 + look2 seconds (and as long as samples are apart) before it is released.
 *
 * Sources, the better first: 'h' the host's counters (vGPUs of mgpu), 'a' the VM's agent, 'p' the
 * power and link state that the host sees.  See idle.c for the rules of dead and lying agents.
 */
#ifndef POOL_IDLE_H
#define POOL_IDLE_H

#include "pool.h"

#define IDLE_NOISE_NS	1000000		/* growth of a counter that is no work */
#define IDLE_LIES	3		/* impossible samples that make an agent a liar */
#define IDLE_SOURCES	3

/* A source: its last sample. */
struct idle_source {
	int64_t time;		/* 0: none */
	uint64_t busy_ns;	/* its counter */
	uint64_t total_ns;	/* what counts of it */
	int64_t worked;		/* time of the last sample that showed work, 0: none */
};

enum idle_phase { IDLE_FIRST, IDLE_SECOND, IDLE_WARNED };

/**
 * struct idle - what is known of a GPU in a VM
 * @start: when it was attached
 * @worked: last time that work was seen, or an extension stood for it; at first the begin
 * @used: last time that work was seen; at first the begin
 * @look: when the next look is due
 * @phase: what the next look is
 * @lies: impossible samples of the agent
 * @sources: 'h', 'a', 'p'
 * @energy_mj: the highest value, 0: unknown
 * @memory_mib: the highest value
 */
struct idle {
	int64_t start;
	int64_t worked;
	int64_t used;
	int64_t look;
	enum idle_phase phase;
	unsigned int lies;
	struct idle_source sources[IDLE_SOURCES];
	uint64_t energy_mj;
	uint32_t memory_mib;
};

/**
 * enum idle_verdict - what a look says
 * @IDLE_KEEP: it is used, or the time has not come
 * @IDLE_STOPPED: the first look found no work; the second follows
 * @IDLE_WARN: the VM is to be warned
 * @IDLE_RELEASE: the GPU goes back
 */
enum idle_verdict { IDLE_KEEP, IDLE_STOPPED, IDLE_WARN, IDLE_RELEASE };

/* Begin to watch at @now a GPU that was attached at @attached. */
void idle_start(struct idle *idle, const struct pool_settings *settings, int64_t attached,
		int64_t now);

/* The VM's people want the GPU: look for work from @now on. Samples and lies stay. */
void idle_keep(struct idle *idle, const struct pool_settings *settings, int64_t now);
/* The same for a pinned VM, whose GPU counts as used at @now. */
void idle_pinned(struct idle *idle, const struct pool_settings *settings, int64_t now);

/**
 * idle_may_extend() - whether the VM's people may still want the GPU without using it
 * @seen: last message of the VM's agent, 0: never
 *
 * Return: true up to extend_max seconds after the last work.
 */
bool idle_may_extend(struct idle *idle, const struct pool_settings *settings, int64_t seen,
		     int64_t now);

/**
 * idle_use() - take a sample
 *
 * Return: 0; -EINVAL for an unknown source; -ERANGE for a sample that cannot be true, which does
 * not count (it is older than the last, or a counter of the agent or of power grew more than the
 * time that went by); -EPERM for one of an agent that counts as lying.
 */
int idle_use(struct idle *idle, const struct pool_use *use);
/* Work in all, ns, by the host's counters, else by the agent; 0: unknown. */
uint64_t idle_busy(const struct idle *idle);

/**
 * idle_look() - do what is due at @now
 * @seen: last message of the VM's agent, 0: never
 * @why: out, if not IDLE_KEEP: the finding
 *
 * Sets @idle->look to the time of the next look.
 */
enum idle_verdict idle_look(struct idle *idle, const struct pool_settings *settings, int64_t seen,
			    int64_t now, char why[POOL_TEXT_MAX]);

#endif /* POOL_IDLE_H */
