/* SPDX-License-Identifier: GPL-2.0-only */
/* The recorded streams on a real device. */
#ifndef BENCH_PREEMPT_PLAY_H
#define BENCH_PREEMPT_PLAY_H

#include "../../../tools/sim/preempt_sim.h"
#include "preempt.h"

#define PLAY_GUESTS	6u
#define PLAY_LINES	300u
#define PLAY_KINDS	9u	/* of the streams, from 1 */

#define PLAY_IN		(200 * MIB)
#define PLAY_OUT	(200 * MIB)

/**
 * struct speeds - speeds of this machine, measured when the run begins
 * @ns_unit: engine time of a work unit alone on one slot, by kind of the streams, ns
 * @norm: speed of a job of a class beside a job of another class, as a part of its
 *	speed alone; 0 is compute, 1 memory
 * @cost: cycles of PSIM_HZ to save and restore a byte
 * @sharing: @norm for the clairvoyant
 */
struct speeds {
	double ns_unit[PLAY_KINDS];
	double norm[2][2];
	double cost;
	struct psim_sharing sharing;
};

/* Return the job of a kind of the streams, without @units; NULL for an unknown kind. */
const struct job_shape *play_kind(uint32_t kind);
/* Return whether mgpud would class the job as memory-intensive. */
bool play_memory(const struct job *j);

int speeds_measure(struct bench *b, struct guest *g, struct speeds *s);

/**
 * struct line - a line of a stream as a job
 * @guest: owner of the job
 * @job: the job
 * @width: slots that the job uses
 * @at_ns: time of its arrival, from the start, ns
 * @line_ns: its time alone on one slot, in the stream, ns
 * @alone_ns: its measured time without other jobs, ns
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
 * struct play - a stream to play
 * @name: name of the stream
 * @n: number of lines
 * @line: the lines
 * @stretch: factor of the stream's times: the sum of the measured jobs, and arrivals
 */
struct play {
	const char *name;
	size_t n;
	double stretch;
	struct line line[PLAY_LINES];
};

/*
 * The clairvoyant as a policy, for one play at a time. Times are those of struct play;
 * play_oracle_start() sets their start, CLOCK_MONOTONIC.
 */
extern const struct preempt_ops play_clairvoyant;

/* Write a result of playing streams, with the kind of engine on which it was got. */
#define stream_result(b, part, fmt, ...)				\
	result(b, "streams_" part, "\"engine\": \"%s\", " fmt,		\
	       (b)->dev.engine_on_cpu ? "cpu" : "modelled", __VA_ARGS__)

/*
 * Simulate a play with these jobs, speeds and costs, which takes no time of the
 * device's processors: norm_ipc under @ops, or for the clairvoyant if that
 * is &play_clairvoyant, with a fourth of the horizon it has there.
 */
int play_simulated(const struct play *p, const struct speeds *s, const struct preempt_ops *ops,
		   const struct preempt_param *param, unsigned int slots, double *norm_ipc);

int play_oracle_open(const struct play *p, const struct speeds *s,
		     const struct preempt_param *param, unsigned int slots);
void play_oracle_start(uint64_t start_ns);
/* Return the mean real time of a decision, milliseconds, and the number of decisions. */
double play_oracle_close(unsigned long *decisions);
double play_oracle_horizon_ms(void);

#endif /* BENCH_PREEMPT_PLAY_H */
