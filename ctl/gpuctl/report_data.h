/* SPDX-License-Identifier: GPL-2.0-only */
/* Figures of a recording, which report_html.c draws and report.c prints. Pure. */
#ifndef GPUCTL_REPORT_DATA_H
#define GPUCTL_REPORT_DATA_H

#include "trace_read.h"

#define REPORT_BINS	120	/* points of a plot over time, at most */

/* Values of a vGPU, one for each point of time. */
enum report_series {
	SERIES_FPS,		/* frames per second */
	SERIES_TARGET,		/* mgpud's target of them; NAN for none */
	SERIES_SHARE,		/* part of the engines' time, 0 to 1 */
	SERIES_SHARE_TARGET,	/* mgpud's target of it; NAN for none */
	SERIES_THROTTLED,	/* part of the time, 0 to 1 */
	SERIES_WAITING,		/* part of the time, 0 to 1 */
	SERIES_PREEMPTED,	/* preemptions */
	SERIES,
};

/**
 * struct report_vgpu - figures of a vGPU
 * @name: name of its track: VM, id and UUID
 * @uuid: its UUID
 * @track: its track
 * @rank: place of that
 * @frames: frames shown
 * @times: times from one frame to the next, ns, sorted
 * @nr_times: number of them
 * @jobs: times that a job was in a slot
 * @preempted: jobs of them that were preempted
 * @engine_s: engine time, seconds
 * @share: part of the engines' time, 0 to 1
 * @throttled: part of the time that it was held back, 0 to 1
 * @waiting: part of the time that a job of it waited, 0 to 1
 * @series: for each point of time
 */
struct report_vgpu {
	struct trace_text name;
	struct trace_text uuid;
	size_t track;
	uint64_t rank;
	uint64_t frames;
	uint64_t *times;
	size_t nr_times;
	uint64_t jobs;
	uint64_t preempted;
	double engine_s;
	double share;
	double throttled;
	double waiting;
	double series[SERIES][REPORT_BINS];
};

/**
 * struct report_slot - use of a slot
 * @dev: name of its device
 * @name: its name
 * @used: part of the time that a job was in it, 0 to 1
 * @bins: the same for each point of time
 * @vgpu: index of the vGPU that used it longest, for each point; SIZE_MAX for none
 */
struct report_slot {
	struct trace_text dev;
	struct trace_text name;
	double used;
	double bins[REPORT_BINS];
	size_t vgpu[REPORT_BINS];
};

/**
 * struct report_decision - a decision of mgpud
 * @at: seconds since the begin
 * @text: decision
 * @count: how often, since the period before; 0 for once
 */
struct report_decision {
	double at;
	struct trace_text text;
	uint64_t count;
};

/**
 * struct report_gap - a time of which events were lost
 * @from: its begin, seconds since that of the recording
 * @to: its end
 * @lost: number of events
 */
struct report_gap {
	double from;
	double to;
	uint64_t lost;
};

/**
 * struct report - figures of a recording
 * @seconds: its length
 * @realtime_ns: when it began, CLOCK_REALTIME; 0 if that is unknown
 * @ended: why it ended
 * @lost: events that were lost
 * @missed: events that the kernel ran no program for
 * @mgpud: a value of mgpud is in it
 * @bins: points of each plot over time
 * @vgpus: in the order of their ids
 * @nr_vgpus: number of vGPUs
 * @slots: slots
 * @nr_slots: number of slots
 * @decisions: in the order of time
 * @nr_decisions: number of decisions
 * @gaps: in the order of time
 * @nr_gaps: number of gaps
 */
struct report {
	double seconds;
	uint64_t realtime_ns;
	struct trace_text ended;
	uint64_t lost;
	uint64_t missed;
	bool mgpud;
	size_t bins;
	struct report_vgpu *vgpus;
	size_t nr_vgpus;
	struct report_slot *slots;
	size_t nr_slots;
	struct report_decision *decisions;
	size_t nr_decisions;
	struct report_gap *gaps;
	size_t nr_gaps;
};

/**
 * report_make() - find the figures of a recording
 * @report: result, which points into the file that @r was read from
 * @r: the recording
 * @why: for an error, a sentence
 * @len: size of @why, bytes
 *
 * Return: 0; -EINVAL, the recording is not one of gpuctl trace; -ENOMEM.
 */
int report_make(struct report *report, const struct trace_reading *r, char *why, size_t len);
void report_free(struct report *report);

/* Return the frame time, seconds, that a part @q (0 to 1) of the frames does not exceed; or NAN. */
double report_frame_time(const struct report_vgpu *vgpu, double q);

#endif /* GPUCTL_REPORT_DATA_H */
