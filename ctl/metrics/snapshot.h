/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The answers of all sources of metrics at one moment.  A number that is not known is NAN, a text
 * "", and an attribute of the module is absent (mgpu_has()).
 */
#ifndef METRICS_SNAPSHOT_H
#define METRICS_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "expose.h"
#include "mgpu.h"
#include "renderd.h"

struct json_object;

/* vGPUs, programs and accounts that are written at most; more are left out. */
#define SNAPSHOT_VGPUS		4096
#define SNAPSHOT_PROGRAMS	1024
#define SNAPSHOT_TEXT		192	/* of a name from another program */

enum snapshot_source {
	SOURCE_MODULE,
	SOURCE_MGPUD,
	SOURCE_REMOTED,
	SOURCE_RENDERD,
	NR_SOURCES
};

/**
 * struct snapshot_read - how a source was read
 * @name: its name
 * @up: 1, it answered; 0, it did not
 * @seconds: time that this took
 */
struct snapshot_read {
	const char *name;
	double up;
	double seconds;
};

/**
 * struct snapshot_vgpu - a vGPU
 * @info: as the module has it; all absent if only mgpud told of it
 * @cpu_ns: CPU time of the process that has it open, ns; only with @has_cpu
 * @has_cpu: @cpu_ns is known
 * @uuid: its UUID
 * @description: mgpud: what its VM is for
 * @fps: mgpud: frames shown per second
 * @floor: mgpud: agreed floor, frames per second; NAN for none
 * @ceiling: mgpud: agreed ceiling; INFINITY for none
 * @granted: mgpud: part of the floor that is granted
 * @kept: mgpud: 1 if the floor is granted, 0 if not; NAN without a floor
 * @cpu_share: mgpud: part of the CPU capacity that it uses
 * @gpu_share: mgpud: part of the engines that it uses
 * @active: mgpud: 1 if it shows frames or computes
 */
struct snapshot_vgpu {
	struct mgpu_vgpu_info info;
	uint64_t cpu_ns;
	bool has_cpu;
	char uuid[MGPU_UUID_LEN];
	char description[SNAPSHOT_TEXT];
	double fps, floor, ceiling, granted, kept, cpu_share, gpu_share, active;
};

/*
 * mgpud; numbers as in its state.  Of model_off to model_failed the one of the model's state is 1,
 * the others are 0.
 */
struct snapshot_controller {
	char release[SNAPSHOT_TEXT], allocator[SNAPSHOT_TEXT], charge_source[SNAPSHOT_TEXT],
	     preempt[SNAPSHOT_TEXT];
	double uptime, sample_age, period, periods, reloads, bpf, dry_run, troubles, shortfalls,
	       fairness, fairness_best, cpu_cores, gpu_engines;
	double preempt_watched, preempt_contexts, preempt_waiting, preempt_cpu, preempt_left,
	       launched, resumed, preempted, switches, drains, flushes;
	char model[SNAPSHOT_TEXT], model_file[SNAPSHOT_TEXT];
	double model_off, model_shadow, model_acts, model_failed, model_age, model_answers,
	       model_checked, model_error, model_control_error;
};

/* A program whose calls mgpu-remoted executes; numbers as in the state of mgpu-remoted. */
struct snapshot_program {
	char process[24], pid[24], uid[24], cid[24];
	char command[SNAPSHOT_TEXT], api[SNAPSHOT_TEXT], mode[SNAPSHOT_TEXT], busy[SNAPSHOT_TEXT];
	double age, calls, waits, received, sent, busy_s, memory, pending, handles, groups,
	       grouped, wrong, demoted;
};

/* An account of mgpu-remoted, as in its state. */
struct snapshot_account {
	char name[64];
	double weight, limit, programs, waits;
};

/**
 * struct snapshot - answers of all sources
 * @reads: how each was read
 * @devs: devices
 * @vgpus: vGPUs that the module or mgpud told of
 * @controller: mgpud, if its source is up
 * @programs: programs of mgpu-remoted
 * @accounts: its accounts
 * @renderds: records of mgpu-renderds
 * @left_out: vGPUs and programs that had no room
 */
struct snapshot {
	struct snapshot_read reads[NR_SOURCES];
	struct mgpu_dev_info *devs;
	size_t nr_devs;
	struct snapshot_vgpu *vgpus;
	size_t nr_vgpus;
	struct snapshot_controller controller;
	struct snapshot_program *programs;
	size_t nr_programs;
	struct snapshot_account *accounts;
	size_t nr_accounts;
	struct renderd *renderds;
	size_t nr_renderds;
	uint64_t left_out;
};

/* Begin: no source was read. */
void snapshot_init(struct snapshot *s);
void snapshot_free(struct snapshot *s);

/* Take over a list of the module, before the state of mgpud.  0 or -ENOMEM. */
int snapshot_add_vgpus(struct snapshot *s, const struct mgpu_vgpu_info *vgpus, size_t nr);

/*
 * Take over the states of mgpud and of mgpu-remoted; what has another type than it should is
 * not known.  0 or -ENOMEM.
 */
int snapshot_add_mgpud(struct snapshot *s, struct json_object *state);
int snapshot_add_remoted(struct snapshot *s, struct json_object *state);

/* ---- metrics ---- */

/* Write all metrics of a snapshot. */
void metrics_write(struct text *text, const struct snapshot *s, enum expose_format format);

/* Write the table of all metrics: name of samples, type, unit, labels and help, by tabs. */
void metrics_list(struct text *text);

#endif /* METRICS_SNAPSHOT_H */
