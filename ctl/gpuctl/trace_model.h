/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tracks of a recording: events of the module and states of mgpud become slices, instants
 * and counters. Pure: the caller gives the time, and the names of vGPUs.
 *
 *	mgpu				the program that recorded, and the clock
 *	  recording			a slice from its begin to its end, with its counts
 *	  lost events			a slice for each gap
 *	  mgpud				decisions: instants
 *	  devices
 *	    NAME
 *	      slot N			a slice for each time that a job was in flight
 *	  vGPUs
 *	    VM, vGPU ID, UUID
 *	      frames			a slice from one frame to the next
 *	      throttled			frames were held back
 *	      waiting			a job waited for a slot
 *	      preempted			instants
 *	      frame rate, ...		counters, one value for each period of mgpud
 *
 * The module has no numbers for slots. A job gets the lowest slot that is free.
 */
#ifndef GPUCTL_TRACE_MODEL_H
#define GPUCTL_TRACE_MODEL_H

#include "trace_file.h"

struct json_object;
struct mgpu_trace_event;
struct trace_dev;
struct trace_state;
struct trace_vgpu;

/* Names of tracks, by which gpuctl report finds them. */
#define TRACK_ROOT	"mgpu"
#define TRACK_RECORDING	"recording"
#define TRACK_LOST	"lost events"
#define TRACK_MGPUD	"mgpud"
#define TRACK_DEVICES	"devices"
#define TRACK_VGPUS	"vGPUs"
#define TRACK_FRAMES	"frames"
#define TRACK_THROTTLED	"throttled"
#define TRACK_WAITING	"waiting"
#define TRACK_PREEMPTED	"preempted"
#define TRACK_FPS	"frame rate"
#define TRACK_TARGET	"frame rate target"
#define TRACK_SHARE	"GPU share"
#define TRACK_GPU_TARGET "GPU share target"

/* Arguments of events. */
#define ARG_ENGINES	"engines"	/* of the instant on a device's track */
#define ARG_ENGINE_NS	"engine_ns"	/* of a job: engine time that it used, 0 if unknown */
#define ARG_VGPU_TRACK	"vgpu_track"	/* of a job: track of its vGPU */
#define ARG_END		"end"		/* of a job: absent if it completed */
#define END_PREEMPTED	"preempted"
#define ARG_LOST	"lost"		/* number of events */

/* Decisions of mgpud by its last state. */
struct trace_control {
	char allocator[TRACE_TEXT];
	char trouble[TRACE_TEXT];
	uint64_t actions[3];
	bool seen;
};

/**
 * struct trace_model - a recording that is being made
 * @file: the recording
 * @begin_ns: its begin, CLOCK_MONOTONIC
 * @last_ns: time of the last event of the module
 * @lost: lost events so far
 * @events: events of the module, without those of vGPUs that are not recorded
 * @frames: frames of them
 * @jobs: jobs that left a slot
 * @preempted: jobs of them that were preempted
 * @unmatched: jobs that left a slot, and whose start is not in the recording
 * @others: events of vGPUs that are not recorded
 * @recording: track
 * @lost_track: track
 * @mgpud: track
 * @devices: track
 * @vgpus_track: track
 * @by_id: vGPUs by their ids
 * @vgpus: all vGPUs
 * @nr_vgpus: number of vGPUs
 * @devs: devices
 * @nr_devs: number of devices
 * @states: times for which vGPUs were throttled or waited
 * @nr_states: number of them
 * @control: decisions of mgpud by its last state
 */
struct trace_model {
	struct trace_file file;
	uint64_t begin_ns;
	uint64_t last_ns;
	uint64_t lost;
	uint64_t events;
	uint64_t frames;
	uint64_t jobs;
	uint64_t preempted;
	uint64_t unmatched;
	uint64_t others;
	uint64_t recording;
	uint64_t lost_track;
	uint64_t mgpud;
	uint64_t devices;
	uint64_t vgpus_track;
	struct trace_vgpu **by_id;
	struct trace_vgpu **vgpus;
	size_t nr_vgpus;
	struct trace_dev **devs;
	size_t nr_devs;
	struct trace_state *states;
	size_t nr_states;
	struct trace_control control;
};

/* Begin. @max: of the file, bytes. Afterwards @m->file.error may be set. */
void trace_model_init(struct trace_model *m, const struct trace_clocks *clocks, size_t max);
void trace_model_free(struct trace_model *m);

/* Add a device that has @engines engines and runs @slots jobs at once. */
void trace_model_dev(struct trace_model *m, const char *name, uint32_t engines, uint32_t slots);

/**
 * trace_model_vgpu() - tell which vGPU an id stands for from now on
 * @m: the recording
 * @id: its id, below MGPU_BPF_IDS
 * @uuid: its UUID
 * @vm: name of its VM, or given to it; "" for none
 * @dev: name of its device
 *
 * Nothing changes if the id stands for this vGPU already.
 */
void trace_model_vgpu(struct trace_model *m, uint32_t id, const char *uuid, const char *vm,
		      const char *dev);

/* Add an event of the module, in the order in which the ring buffer has them. */
void trace_model_event(struct trace_model *m, const struct mgpu_trace_event *e);

/* Note that @lost events in all did not fit into the ring buffer until @now_ns. */
void trace_model_lost(struct trace_model *m, uint64_t now_ns, uint64_t lost);

/* Add a state of mgpud, at the time when it came. */
void trace_model_state(struct trace_model *m, uint64_t now_ns, struct json_object *state);

/* Add an event of mgpud, with the time that it has in it, or else @now_ns. */
void trace_model_mgpud_event(struct trace_model *m, uint64_t now_ns, struct json_object *event);

/* Add a sentence about mgpud. */
void trace_model_note(struct trace_model *m, uint64_t now_ns, const char *text);

/**
 * trace_model_finish() - end a recording
 * @m: the recording; afterwards its file can be written, unless its error is -ENOMEM
 * @end_ns: its end
 * @why: why it ended: "time", "interrupted", "size"
 * @missed: events that the kernel ran no program for
 */
void trace_model_finish(struct trace_model *m, uint64_t end_ns, const char *why, uint64_t missed);

#endif /* GPUCTL_TRACE_MODEL_H */
