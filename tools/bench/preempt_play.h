/* SPDX-License-Identifier: GPL-2.0-only */
/* The recorded streams on a real device. */
#ifndef BENCH_PREEMPT_PLAY_H
#define BENCH_PREEMPT_PLAY_H

#include "../../tools/sim/preempt_sim.h"
#include "preempt.h"

#define PLAY_GUESTS	6u
#define PLAY_LINES	300u
#define PLAY_KINDS	9u	/* of the streams, from 1 */

#define PLAY_IN		(200 * MIB)
#define PLAY_OUT	(200 * MIB)

/**
 * struct speeds - what this machine is like, measured when the run begins
 * @ns_unit: engine time of a work unit alone on one slot, by the streams' kinds
 * @norm: speed of one of a class beside one of another, as a part of alone; 0 is
 *	compute, 1 memory
 * @cost: cycles of PSIM_HZ to save and restore a byte
 * @sharing: @norm for the clairvoyant
 */
struct speeds {
	double ns_unit[PLAY_KINDS];
	double norm[2][2];
	double cost;
	struct psim_sharing sharing;
};

/* What a kind of the streams is here; @units are not set. NULL for an unknown one. */
const struct job_shape *play_kind(uint32_t kind);
/* Whether mgpud would call it memory-intensive. */
bool play_memory(const struct job *j);

int speeds_measure(struct bench *b, struct guest *g, struct speeds *s);

/**
 * struct line - a line of a stream as a job
 * @guest: whose it is
 * @job: it
 * @width: slots that it uses
 * @at_ns: when it comes, from the start
 * @line_ns: what it takes alone on one slot, in the stream
 * @alone_ns: that it takes with nothing beside it
 */
struct line {
	struct guest *guest;
	struct job job;
	unsigned int width;
	uint64_t at_ns;
	double line_ns;
	double alone_ns;
};

/**
 * struct play - a stream to be played
 * @name: of it
 * @n: lines
 * @line: these
 * @stretch: times by which its times are longer: jobs, measured, in sum, and arrivals
 */
struct play {
	const char *name;
	size_t n;
	double stretch;
	struct line line[PLAY_LINES];
};

/*
 * The clairvoyant as a policy: for one play at a time. Times are those of struct
 * play; play_oracle_start() says when it begins, CLOCK_MONOTONIC.
 */
extern const struct preempt_ops play_clairvoyant;

/*
 * What the simulator makes of a play with these jobs, speeds and costs, which takes no
 * time of the device's processors: norm_ipc under @ops, or for the clairvoyant if that
 * is &play_clairvoyant, with a fourth of the horizon it has there.
 */
int play_modelled(const struct play *p, const struct speeds *s, const struct preempt_ops *ops,
		  const struct preempt_param *param, unsigned int slots, double *norm_ipc);

int play_oracle_open(const struct play *p, const struct speeds *s,
		     const struct preempt_param *param, unsigned int slots);
void play_oracle_start(uint64_t start_ns);
/* Milliseconds of real time that a decision took: mean; how many there were. */
double play_oracle_close(unsigned long *decisions);
double play_oracle_horizon_ms(void);

#endif /* BENCH_PREEMPT_PLAY_H */
