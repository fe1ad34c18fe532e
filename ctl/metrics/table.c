// SPDX-License-Identifier: GPL-2.0-only
/* The table of all metrics, and their values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot.h"

#ifndef MGPU_VERSION
#define MGPU_VERSION "unknown"
#endif

/* First bounds of the histograms: 2^(n + 1) us.  No display, and no path to a GPU, is faster. */
#define FRAME_FIRST	8	/* 512 us */
#define LATENCY_FIRST	4	/* 32 us */

/* Kinds of objects that have metrics. */
enum object {
	OF_EXPORTER,
	OF_SOURCE,
	OF_GPU,
	OF_VGPU,
	OF_CONTROLLER,
	OF_PROGRAM,
	OF_ACCOUNT,
	OF_RENDERD,
	NR_OBJECTS
};

enum kind {
	KIND_WORD,	/* an attribute of the module, 1 to 8 bytes */
	KIND_LIMIT,	/* the same; 0 is no limit, +Inf */
	KIND_HISTOGRAM,	/* the same; counts */
	KIND_DOUBLE,	/* NAN: not known */
	KIND_NS,	/* uint64_t, known if the bool at @bits is true */
	KIND_INFO,	/* 1, if @labels adds labels */
	KIND_STATE,	/* 1 if the enumeration at @offset is @number, else 0 */
	KIND_LEFT_OUT,	/* of the snapshot */
};

/**
 * struct metric - a metric, or the samples of a metric that have one label more
 * @f: name, type, unit, help
 * @of: objects that have it
 * @kind: how its value is found
 * @bits: offset of the word that has a bit for each known attribute
 * @attr: number of the attribute
 * @offset: offset of the value
 * @size: size of the value, bytes
 * @number: decimals of the value; of a histogram the first bucket
 * @label: name of the further label, NULL for none
 * @value: its value
 * @labels: adds the further labels of KIND_INFO
 * @more: their names, for the list
 */
struct metric {
	struct expose_family f;
	enum object of;
	enum kind kind;
	size_t bits;
	unsigned int attr;
	size_t offset;
	size_t size;
	unsigned int number;
	const char *label;
	const char *value;
	void (*labels)(struct text *t, const void *object);
	const char *more;
};

/* ---- labels ---- */

/* A label without a value is the same as none. */
static void add_label(struct text *t, const char *name, const char *value)
{
	if (value && *value)
		text_label(t, name, value);
}

static void source_labels(struct text *t, const void *object)
{
	add_label(t, "source", ((const struct snapshot_read *)object)->name);
}

static void gpu_labels(struct text *t, const void *object)
{
	add_label(t, "parent", ((const struct mgpu_dev_info *)object)->name);
}

static void vgpu_labels(struct text *t, const void *object)
{
	const struct snapshot_vgpu *v = object;

	add_label(t, "parent", v->info.dev_name);
	add_label(t, "uuid", v->uuid);
}

static void program_labels(struct text *t, const void *object)
{
	add_label(t, "process", ((const struct snapshot_program *)object)->process);
}

static void account_labels(struct text *t, const void *object)
{
	add_label(t, "account", ((const struct snapshot_account *)object)->name);
}

static void renderd_labels(struct text *t, const void *object)
{
	add_label(t, "gpu", ((const struct renderd *)object)->gpu);
}

static void no_labels(struct text *t, const void *object)
{
	(void)t;
	(void)object;
}

static void exporter_info(struct text *t, const void *object)
{
	(void)object;
	add_label(t, "version", MGPU_VERSION);
}

static void gpu_info(struct text *t, const void *object)
{
	const struct mgpu_dev_info *d = object;

	add_label(t, "backend", d->backend);
	add_label(t, "policy", d->policy);
}

static void policy_exit_info(struct text *t, const void *object)
{
	const struct mgpu_dev_info *d = object;
	const struct mgpu_policy_exit_info *x = &d->policy_exit;
	const struct mgpu_field *kind = mgpu_field_find(mgpu_policy_exit_fields, "kind");

	if (!mgpu_has(x, MGPU_A_POLICY_EXIT_KIND) || x->kind == MGPU_POLICY_EXIT_KIND_NONE)
		return;
	add_label(t, "kind", mgpu_field_str(kind, x));
	add_label(t, "policy", x->policy);
}

static void vgpu_info(struct text *t, const void *object)
{
	const struct snapshot_vgpu *v = object;

	add_label(t, "type", v->info.type);
	add_label(t, "name", v->description);
}

static void controller_info(struct text *t, const void *object)
{
	const struct snapshot_controller *c = object;

	add_label(t, "version", c->release);
	add_label(t, "allocator", c->allocator);
	add_label(t, "charge_source", c->charge_source);
	add_label(t, "preemption", c->preempt);
}

static void model_info(struct text *t, const void *object)
{
	const struct snapshot_controller *c = object;

	add_label(t, "model", c->model);
	add_label(t, "file", c->model_file);
}

static void program_info(struct text *t, const void *object)
{
	const struct snapshot_program *p = object;

	add_label(t, "pid", p->pid);
	add_label(t, "uid", p->uid);
	add_label(t, "cid", p->cid);
	add_label(t, "command", p->command);
	add_label(t, "api", p->api);
	add_label(t, "mode", p->mode);
	add_label(t, "busy_source", p->busy);
}

static void renderd_info(struct text *t, const void *object)
{
	const struct renderd *r = object;

	add_label(t, "node", r->node);
	add_label(t, "parent", r->device);
}

/* ---- the table ---- */

#define SIZE(type, field)	sizeof(((type *)NULL)[0].field)

#define G(name, unit, help)	{ name, unit, help, EXPOSE_GAUGE }
#define C(name, unit, help)	{ name, unit, help, EXPOSE_COUNTER }
#define H(name, unit, help)	{ name, unit, help, EXPOSE_HISTOGRAM }
#define I(name, help)		{ name, "", help, EXPOSE_INFO }

#define WORD_OF(object, type, present, member, a, k, n, ...)				\
	{ .f = __VA_ARGS__, .of = object, .kind = k, .bits = offsetof(type, present),	\
	  .attr = a, .offset = offsetof(type, member), .size = SIZE(type, member), .number = n }
#define GPU(member, a, n, ...)								\
	WORD_OF(OF_GPU, struct mgpu_dev_info, present, member, MGPU_A_DEV_##a, KIND_WORD, n, \
		__VA_ARGS__)
#define GPU_LIMIT(member, a, n, ...)							\
	WORD_OF(OF_GPU, struct mgpu_dev_info, present, member, MGPU_A_DEV_##a, KIND_LIMIT, n, \
		__VA_ARGS__)
#define VGPU(member, a, n, ...)								\
	WORD_OF(OF_VGPU, struct snapshot_vgpu, info.present, info.member, MGPU_A_VGPU_##a, \
		KIND_WORD, n, __VA_ARGS__)
#define VGPU_LIMIT(member, a, n, ...)							\
	WORD_OF(OF_VGPU, struct snapshot_vgpu, info.present, info.member, MGPU_A_VGPU_##a, \
		KIND_LIMIT, n, __VA_ARGS__)
#define VGPU_HISTOGRAM(member, a, n, ...)						\
	WORD_OF(OF_VGPU, struct snapshot_vgpu, info.present, info.member, MGPU_A_VGPU_##a, \
		KIND_HISTOGRAM, n, __VA_ARGS__)
#define COUNT(member, a, n, ...)							\
	WORD_OF(OF_VGPU, struct snapshot_vgpu, info.stats.present, info.stats.member,	\
		MGPU_A_STATS_##a, KIND_WORD, n, __VA_ARGS__)

#define NUMBER(object, type, member, ...)						\
	{ .f = __VA_ARGS__, .of = object, .kind = KIND_DOUBLE, .offset = offsetof(type, member) }
#define VGPU_NUMBER(member, ...)	NUMBER(OF_VGPU, struct snapshot_vgpu, member, __VA_ARGS__)
#define CONTROLLER(member, ...)								\
	NUMBER(OF_CONTROLLER, struct snapshot_controller, member, __VA_ARGS__)
#define CONTROLLER_BY(member, l, v, ...)						\
	{ .f = __VA_ARGS__, .of = OF_CONTROLLER, .kind = KIND_DOUBLE,			\
	  .offset = offsetof(struct snapshot_controller, member), .label = l, .value = v }
#define PROGRAM(member, ...)	NUMBER(OF_PROGRAM, struct snapshot_program, member, __VA_ARGS__)
#define ACCOUNT(member, ...)	NUMBER(OF_ACCOUNT, struct snapshot_account, member, __VA_ARGS__)
#define RENDERD_STATE(v, n)								\
	{ .f = G("mgpu_renderd_state", "",						\
		 "1 for the state of the mgpu-renderd of a GPU, 0 for other states."),	\
	  .of = OF_RENDERD, .kind = KIND_STATE, .offset = offsetof(struct renderd, state), \
	  .number = n, .label = "state", .value = v }
#define INFO(object, l, m, ...)								\
	{ .f = __VA_ARGS__, .of = object, .kind = KIND_INFO, .labels = l, .more = m }

#define MODEL_STATE		G("mgpu_model_state", "",				\
	"1 for the state of the model of what is due to unmeasured vGPUs, 0 for other states.")
#define DECISIONS		C("mgpu_controller_preemption_decisions", "",		\
	"Decisions of the preemption policy about contexts.")
#define PREEMPTIONS		C("mgpu_controller_preemptions", "",			\
	"Preemptions of contexts that mgpud ordered, by method.")

/* Rows of a metric follow each other. */
static const struct metric metrics[] = {
	INFO(OF_EXPORTER, exporter_info, "version",
	     I("mgpu_exporter", "The exporter.")),
	{ .f = G("mgpu_exporter_left_out", "",
		 "vGPUs and programs beyond the exporter's limits, which have no metrics."),
	  .of = OF_EXPORTER, .kind = KIND_LEFT_OUT },

	NUMBER(OF_SOURCE, struct snapshot_read, up,
	       G("mgpu_source_up", "", "1 if the source of metrics answered, else 0.")),
	NUMBER(OF_SOURCE, struct snapshot_read, seconds,
	       G("mgpu_source_read_seconds", "seconds", "Time that reading the source took.")),

	INFO(OF_GPU, gpu_info, "backend, policy",
	     I("mgpu_gpu", "A GPU that vGPUs share, with the scheduling policy in force.")),
	GPU(engines, ENGINES, 0, G("mgpu_gpu_engines", "", "Jobs that the GPU runs at once.")),
	GPU(slots, SLOTS, 0, G("mgpu_gpu_slots", "", "Jobs that may be in flight on the GPU.")),
	GPU(engine_on_cpu, ENGINE_ON_CPU, 0,
	    G("mgpu_gpu_engine_on_cpu", "", "1 if engine time is CPU time of the host too.")),
	GPU(vgpus, VGPUS, 0, G("mgpu_gpu_vgpus", "", "vGPUs that exist.")),
	GPU(max_vgpus, MAX_VGPUS, 0,
	    G("mgpu_gpu_max_vgpus", "", "vGPUs of all types together that may exist.")),
	GPU(waiting, WAITING, 0,
	    G("mgpu_gpu_waiting_vgpus", "", "vGPUs that wait for an engine now.")),
	GPU(job_timeout, JOB_TIMEOUT, 3,
	    G("mgpu_gpu_job_timeout_seconds", "seconds", "Time that a job may be on an engine.")),
	GPU_LIMIT(hang_limit, HANG_LIMIT, 0,
		  G("mgpu_gpu_hang_limit", "",
		    "Hangs that put a vGPU under quarantine; +Inf for no quarantine.")),
	INFO(OF_GPU, policy_exit_info, "kind, policy",
	     I("mgpu_gpu_policy_exit", "How the last BPF scheduling policy ended, if one did.")),

	INFO(OF_VGPU, vgpu_info, "type, name",
	     I("mgpu_vgpu", "A vGPU; name is the description that mgpud has of it.")),
	VGPU(open, OPEN, 0, G("mgpu_vgpu_open", "", "1 if a VMM has the vGPU open.")),
	VGPU(quarantine, QUARANTINE, 0,
	     G("mgpu_vgpu_quarantined", "",
	       "1 if the jobs of the vGPU fail because it hung the GPU.")),
	VGPU(weight, WEIGHT, 0,
	     G("mgpu_vgpu_weight", "", "Share of the engine relative to the GPU's other vGPUs.")),
	VGPU_LIMIT(fps_limit, FPS_LIMIT, 3,
		   G("mgpu_vgpu_frame_rate_limit_hertz", "hertz",
		     "Frames per second by the operator's order; +Inf for no limit.")),
	VGPU_LIMIT(fps_target, FPS_TARGET, 3,
		   G("mgpu_vgpu_frame_rate_target_hertz", "hertz",
		     "Frames per second by mgpud's order; +Inf for no limit.")),
	VGPU(fps_floor, FPS_FLOOR, 3,
	     G("mgpu_vgpu_frame_rate_floor_hertz", "hertz",
	       "Frames per second that the vGPU's setting promises; 0 for no promise.")),
	VGPU_LIMIT(gpu_limit, GPU_LIMIT, 6,
		   G("mgpu_vgpu_engine_limit_ratio", "ratio",
		     "Part of the GPU's engine time by the operator's order; +Inf for no limit.")),
	VGPU_LIMIT(gpu_target, GPU_TARGET, 6,
		   G("mgpu_vgpu_engine_target_ratio", "ratio",
		     "Part of the GPU's engine time by mgpud's order; +Inf for no limit.")),
	VGPU(gpu_period, GPU_PERIOD, 6,
	     G("mgpu_vgpu_engine_period_seconds", "seconds",
	       "Time over which the limits of engine time hold.")),
	VGPU(gpu_burst, GPU_BURST, 6,
	     G("mgpu_vgpu_engine_burst_seconds", "seconds",
	       "Engine time that the vGPU may save up beyond one period's.")),
	VGPU(mem_used, MEM_USED, 0,
	     G("mgpu_vgpu_memory_bytes", "bytes", "Memory of resources that the vGPU holds.")),
	VGPU(mem_limit, MEM_LIMIT, 0,
	     G("mgpu_vgpu_memory_limit_bytes", "bytes",
	       "Memory of resources that the vGPU may hold.")),
	VGPU(pinned_pages, PINNED_PAGES, 0,
	     G("mgpu_vgpu_pinned_pages", "", "Guest pages that are pinned for the vGPU.")),
	VGPU(scanout_width, SCANOUT_WIDTH, 0,
	     G("mgpu_vgpu_scanout_width_pixels", "pixels",
	       "Width of the scanout; absent while it is off.")),
	VGPU(scanout_height, SCANOUT_HEIGHT, 0,
	     G("mgpu_vgpu_scanout_height_pixels", "pixels",
	       "Height of the scanout; absent while it is off.")),
	COUNT(frames, FRAMES, 0, C("mgpu_vgpu_frames", "", "Frames shown.")),
	COUNT(jobs, JOBS, 0, C("mgpu_vgpu_jobs", "", "Jobs completed.")),
	COUNT(job_errors, JOB_ERRORS, 0,
	      C("mgpu_vgpu_job_errors", "", "Jobs completed with an error.")),
	COUNT(bytes, BYTES, 0, C("mgpu_vgpu_moved_bytes", "bytes", "Bytes that jobs moved.")),
	COUNT(engine_ns, ENGINE_NS, 9,
	      C("mgpu_vgpu_engine_seconds", "seconds",
		"Engine time of jobs, as the back end measured it.")),
	COUNT(charged_bpf_ns, CHARGED_BPF_NS, 9,
	      C("mgpu_vgpu_charged_bpf_seconds", "seconds",
		"Part of the engine time that an eBPF program charged.")),
	COUNT(charged_self_ns, CHARGED_SELF_NS, 9,
	      C("mgpu_vgpu_charged_module_seconds", "seconds",
		"Part of the engine time that the module charged.")),
	COUNT(throttled_ns, THROTTLED_NS, 9,
	      C("mgpu_vgpu_throttled_seconds", "seconds",
		"Time for which frames were held back by a frame rate limit.")),
	COUNT(throttled, THROTTLED, 0,
	      C("mgpu_vgpu_throttled_frames", "", "Frames held back by a frame rate limit.")),
	COUNT(limited_ns, LIMITED_NS, 9,
	      C("mgpu_vgpu_limited_seconds", "seconds",
		"Time for which jobs waited for want of engine time under a limit.")),
	COUNT(limited, LIMITED, 0,
	      C("mgpu_vgpu_limited_waits", "", "Waits for want of engine time under a limit.")),
	COUNT(queue_ns, QUEUE_NS, 9,
	      C("mgpu_vgpu_queue_seconds", "seconds", "Time for which jobs waited for an engine.")),
	COUNT(preempted, PREEMPTED, 0,
	      C("mgpu_vgpu_preempted_jobs", "", "Jobs preempted between two tiles.")),
	COUNT(timeouts, TIMEOUTS, 0,
	      C("mgpu_vgpu_job_timeouts", "", "Jobs on the engine for longer than the timeout.")),
	COUNT(hangs, HANGS, 0,
	      C("mgpu_vgpu_hangs", "",
		"Timeouts, and resets of a silent GPU because of a job of the vGPU.")),
	COUNT(lost, LOST, 0,
	      C("mgpu_vgpu_lost_jobs", "", "Jobs that the GPU had when it was reset.")),
	COUNT(commands, COMMANDS, 0, C("mgpu_vgpu_commands", "", "virtio-gpu commands.")),
	COUNT(command_errors, COMMAND_ERRORS, 0,
	      C("mgpu_vgpu_command_errors", "", "Commands answered with an error.")),
	COUNT(doorbells, DOORBELLS, 0,
	      C("mgpu_vgpu_doorbells", "", "Queue notifications from the guest.")),
	COUNT(interrupts, INTERRUPTS, 0,
	      C("mgpu_vgpu_interrupts", "", "Interrupts sent to the guest.")),
	COUNT(resets, RESETS, 0, C("mgpu_vgpu_resets", "", "Resets of the device by its guest.")),
	{ .f = C("mgpu_vgpu_vmm_cpu_seconds", "seconds",
		 "CPU time of the process that has the vGPU open, with all its threads."),
	  .of = OF_VGPU, .kind = KIND_NS, .bits = offsetof(struct snapshot_vgpu, has_cpu),
	  .offset = offsetof(struct snapshot_vgpu, cpu_ns), .number = 9 },
	VGPU_HISTOGRAM(frame_interval_hist, FRAME_INTERVAL_HIST, FRAME_FIRST,
		       H("mgpu_vgpu_frame_interval_seconds", "seconds",
			 "Frames by the time since the previous frame.")),
	VGPU_HISTOGRAM(latency_hist, LATENCY_HIST, LATENCY_FIRST,
		       H("mgpu_vgpu_latency_seconds", "seconds",
			 "Jobs by the time from the command in the ring to its answer.")),

	VGPU_NUMBER(active, G("mgpu_vgpu_active", "",
			      "1 if mgpud saw the vGPU at work in its last period.")),
	VGPU_NUMBER(fps, G("mgpu_vgpu_frame_rate_hertz", "hertz",
			   "Frames per second, as mgpud averages them.")),
	VGPU_NUMBER(floor, G("mgpu_vgpu_floor_hertz", "hertz",
			     "Agreed floor, frames per second; absent without a floor.")),
	VGPU_NUMBER(ceiling, G("mgpu_vgpu_ceiling_hertz", "hertz",
			       "Agreed ceiling, frames per second; +Inf for none.")),
	VGPU_NUMBER(granted, G("mgpu_vgpu_floor_granted_hertz", "hertz",
			       "Part of the floor that is granted; absent without a floor.")),
	VGPU_NUMBER(kept, G("mgpu_vgpu_floor_kept", "",
			    "1 if the floor is granted, 0 if not; absent without a floor.")),
	VGPU_NUMBER(cpu_share, G("mgpu_vgpu_cpu_ratio", "ratio",
				 "Part of the CPU time for VMs that the vGPU uses.")),
	VGPU_NUMBER(gpu_share, G("mgpu_vgpu_engine_ratio", "ratio",
				 "Part of the GPU's engine time that the vGPU uses.")),

	INFO(OF_CONTROLLER, controller_info, "version, allocator, charge_source, preemption",
	     I("mgpu_controller", "mgpud, and its main settings.")),
	CONTROLLER(uptime, G("mgpu_controller_uptime_seconds", "seconds",
			     "Time since mgpud started.")),
	CONTROLLER(period, G("mgpu_controller_period_seconds", "seconds",
			     "Length of mgpud's period.")),
	CONTROLLER(sample_age, G("mgpu_controller_sample_age_seconds", "seconds",
				 "Age of mgpud's last sample; absent before the first one.")),
	CONTROLLER(periods, C("mgpu_controller_periods", "", "Periods of the rate loop.")),
	CONTROLLER(reloads, C("mgpu_controller_reloads", "",
			      "Times that the configuration was read again.")),
	CONTROLLER(bpf, G("mgpu_controller_bpf_attached", "",
			  "1 if all accounting programs of mgpud are attached.")),
	CONTROLLER(dry_run, G("mgpu_controller_dry_run", "", "1 if mgpud sets no targets.")),
	CONTROLLER(troubles, G("mgpu_controller_troubles", "",
			       "Faults that mgpud reports; 'gpuctl ctl show' has the sentences.")),
	CONTROLLER(shortfalls, G("mgpu_controller_shortfall_vgpus", "",
				 "vGPUs that are granted less than their floor.")),
	CONTROLLER(fairness, G("mgpu_controller_fairness", "", "Fairness of the last period.")),
	CONTROLLER(fairness_best, G("mgpu_controller_fairness_optimum", "",
				    "Best fairness that the last period allowed.")),
	CONTROLLER(cpu_cores, G("mgpu_controller_cpu_cores", "", "Cores available to VMs.")),
	CONTROLLER(gpu_engines, G("mgpu_controller_gpu_engines", "", "Engines of all GPUs.")),
	CONTROLLER(preempt_watched, G("mgpu_controller_contexts_watched", "",
				      "1 if mgpud preempts contexts.")),
	CONTROLLER(preempt_contexts, G("mgpu_controller_contexts", "", "Compute contexts.")),
	CONTROLLER(preempt_waiting, G("mgpu_controller_waiting_contexts", "",
				      "Compute contexts with work and without a slot.")),
	CONTROLLER(preempt_cpu, C("mgpu_controller_preemption_cpu_seconds", "seconds",
				  "CPU time of mgpud's preemption loop.")),
	CONTROLLER(preempt_left, C("mgpu_controller_preemption_orders_left", "",
				   "Orders about contexts that were not carried out.")),
	CONTROLLER_BY(launched, "decision", "launch", DECISIONS),
	CONTROLLER_BY(resumed, "decision", "resume", DECISIONS),
	CONTROLLER_BY(preempted, "decision", "preempt", DECISIONS),
	CONTROLLER_BY(switches, "method", "switch", PREEMPTIONS),
	CONTROLLER_BY(drains, "method", "drain", PREEMPTIONS),
	CONTROLLER_BY(flushes, "method", "flush", PREEMPTIONS),
	INFO(OF_CONTROLLER, model_info, "model, file",
	     I("mgpu_model", "The model of what is due to vGPUs that were not measured yet.")),
	CONTROLLER_BY(model_off, "state", "off", MODEL_STATE),
	CONTROLLER_BY(model_shadow, "state", "shadow", MODEL_STATE),
	CONTROLLER_BY(model_acts, "state", "acts", MODEL_STATE),
	CONTROLLER_BY(model_failed, "state", "failed", MODEL_STATE),
	CONTROLLER(model_age, G("mgpu_model_age_seconds", "seconds",
				"Age of the model's weights.")),
	CONTROLLER(model_answers, C("mgpu_model_answers", "", "Answers of the model.")),
	CONTROLLER(model_checked, C("mgpu_model_checked_answers", "",
				    "Answers that were compared with the allocator's plan.")),
	CONTROLLER(model_error, G("mgpu_model_error_ratio", "ratio",
				  "Mean absolute error of the checked answers.")),
	CONTROLLER(model_control_error,
		   G("mgpu_model_control_error_ratio", "ratio",
		     "Mean absolute error of equal shares on the same questions.")),

	INFO(OF_PROGRAM, program_info, "pid, uid, cid, command, api, mode, busy_source",
	     I("mgpu_remote_program", "A program whose calls mgpu-remoted executes.")),
	PROGRAM(age, G("mgpu_remote_age_seconds", "seconds", "Time since the program connected.")),
	PROGRAM(calls, C("mgpu_remote_calls", "", "Requests of the program.")),
	PROGRAM(waits, C("mgpu_remote_round_trips", "", "Requests that the program waited for.")),
	PROGRAM(received, C("mgpu_remote_received_bytes", "bytes",
			    "Bytes that came from the program.")),
	PROGRAM(sent, C("mgpu_remote_sent_bytes", "bytes", "Bytes that the program was sent.")),
	PROGRAM(busy_s, C("mgpu_remote_busy_seconds", "seconds",
			  "Time of engines or processors used; busy_source says which.")),
	PROGRAM(memory, G("mgpu_remote_memory_bytes", "bytes", "Memory of the program's objects.")),
	PROGRAM(pending, G("mgpu_remote_pending_bytes", "bytes",
			   "Transfers that the program does not wait for.")),
	PROGRAM(handles, G("mgpu_remote_handles", "", "Objects of the program.")),
	PROGRAM(groups, C("mgpu_remote_groups", "", "Groups of requests that were executed.")),
	PROGRAM(grouped, C("mgpu_remote_grouped_calls", "", "Requests in groups.")),
	PROGRAM(wrong, C("mgpu_remote_mispredictions", "",
			 "Requests not as predicted, as the program counts them.")),
	PROGRAM(demoted, C("mgpu_remote_demoted_loops", "",
			   "Loops that are no longer recorded, as the program counts them.")),
	ACCOUNT(weight, G("mgpu_remote_account_weight", "",
			  "Weight of the account relative to others that compute.")),
	ACCOUNT(limit, G("mgpu_remote_account_engine_limit_ratio", "ratio",
			 "Part of an engine's time that the account may use; +Inf for no limit.")),
	ACCOUNT(programs, G("mgpu_remote_account_programs", "", "Programs of the account.")),
	ACCOUNT(waits, G("mgpu_remote_account_waiting", "",
			 "1 if the account's processes are stopped until its turn.")),

	INFO(OF_RENDERD, renderd_info, "node, parent",
	     I("mgpu_renderd", "An mgpu-renderd, which renders for the vGPUs of a parent.")),
	RENDERD_STATE("dead", RENDERD_DEAD),
	RENDERD_STATE("starting", RENDERD_STARTING),
	RENDERD_STATE("serving", RENDERD_SERVING),
	RENDERD_STATE("stopping", RENDERD_STOPPING),
};

#define NR_METRICS	(sizeof(metrics) / sizeof(*metrics))

/* ---- values ---- */

/**
 * struct objects - the objects of one kind, with their labels
 * @first: the first one
 * @nr: their number
 * @size: size of each, bytes
 * @labels: adds the labels that all metrics of them have
 * @names: names of these labels
 * @text: the labels of all of them
 * @ends: where those of each end in @text
 */
struct objects {
	const void *first;
	size_t nr;
	size_t size;
	void (*labels)(struct text *t, const void *object);
	const char *names;
	struct text text;
	size_t *ends;
};

static void describe(struct objects o[NR_OBJECTS], const struct snapshot *s)
{
	o[OF_EXPORTER] = (struct objects){ s, 1, sizeof(*s), no_labels, "", .ends = NULL };
	o[OF_SOURCE] = (struct objects){ s->reads, NR_SOURCES, sizeof(*s->reads), source_labels,
					 "source", .ends = NULL };
	o[OF_GPU] = (struct objects){ s->devs, s->nr_devs, sizeof(*s->devs), gpu_labels,
				      "parent", .ends = NULL };
	o[OF_VGPU] = (struct objects){ s->vgpus, s->nr_vgpus, sizeof(*s->vgpus), vgpu_labels,
				       "parent, uuid", .ends = NULL };
	o[OF_CONTROLLER] = (struct objects){ &s->controller, s->reads[SOURCE_MGPUD].up == 1,
					     sizeof(s->controller), no_labels, "", .ends = NULL };
	o[OF_PROGRAM] = (struct objects){ s->programs, s->nr_programs, sizeof(*s->programs),
					  program_labels, "process", .ends = NULL };
	o[OF_ACCOUNT] = (struct objects){ s->accounts, s->nr_accounts, sizeof(*s->accounts),
					  account_labels, "account", .ends = NULL };
	o[OF_RENDERD] = (struct objects){ s->renderds, s->nr_renderds, sizeof(*s->renderds),
					  renderd_labels, "gpu", .ends = NULL };
}

static const void *nth(const struct objects *o, size_t i)
{
	return (const char *)o->first + i * o->size;
}

/* Write the labels of all objects once: each has many metrics. */
static bool write_labels(struct objects *o)
{
	struct text one = { 0 };

	o->ends = calloc(o->nr + 1, sizeof(*o->ends));
	for (size_t i = 0; o->ends && i < o->nr; i++) {
		one.len = 0;
		o->labels(&one, nth(o, i));
		text_add(&o->text, one.bytes, one.len);
		o->ends[i] = o->text.len;
	}
	o->text.failed |= one.failed;
	text_free(&one);
	return o->ends && !o->text.failed;
}

static uint64_t word_at(const struct metric *m, const void *object)
{
	const char *at = (const char *)object + m->offset;

	switch (m->size) {
	case 1: return *(const uint8_t *)at;
	case 4: return *(const uint32_t *)at;
	default: return *(const uint64_t *)at;
	}
}

static bool known(const struct metric *m, const void *object)
{
	const uint64_t *bits = (const void *)((const char *)object + m->bits);

	return *bits & MGPU_HAS(m->attr);
}

/* Write the sample of an attribute of the module, if it is known. */
static void write_attribute(struct expose *e, const struct metric *m, const void *object,
			    const char *labels, size_t len)
{
	uint64_t value;

	if (!known(m, object))
		return;
	if (m->kind == KIND_HISTOGRAM) {
		expose_histogram(e, labels, len, (const void *)((const char *)object + m->offset),
				 m->number);
		return;
	}
	value = word_at(m, object);
	if (m->kind == KIND_LIMIT && !value)
		expose_double(e, labels, len, INFINITY);
	else
		expose_number(e, labels, len, value, m->number);
}

static void write_info(struct expose *e, const struct metric *m, const void *object,
		       const char *labels, size_t len)
{
	struct text all = { 0 };

	text_add(&all, labels, len);
	m->labels(&all, object);
	if (all.len > len)
		expose_number(e, all.bytes, all.len, 1, 0);
	e->text->failed |= all.failed;
	text_free(&all);
}

/* A counter is finite, and not negative. */
static void write_double(struct expose *e, const char *labels, size_t len, double value)
{
	if (isnan(value) || (e->family->type == EXPOSE_COUNTER && !(value >= 0 && isfinite(value))))
		return;
	expose_double(e, labels, len, value);
}

/* Write a sample whose labels are complete. */
static void write_value(struct expose *e, const struct metric *m, const void *object,
			const char *labels, size_t len)
{
	const char *at = (const char *)object + m->offset;

	switch (m->kind) {
	case KIND_DOUBLE:
		write_double(e, labels, len, *(const double *)at);
		break;
	case KIND_NS:
		if (*((const bool *)object + m->bits))
			expose_number(e, labels, len, *(const uint64_t *)at, m->number);
		break;
	case KIND_INFO:
		write_info(e, m, object, labels, len);
		break;
	case KIND_STATE:
		expose_number(e, labels, len, *(const enum renderd_state *)at == m->number, 0);
		break;
	case KIND_LEFT_OUT:
		expose_number(e, labels, len, ((const struct snapshot *)object)->left_out, 0);
		break;
	default:
		write_attribute(e, m, object, labels, len);
	}
}

/* Write a sample with the further label of its row. */
static void write_labelled(struct expose *e, const struct metric *m, const void *object,
			   const char *labels, size_t len)
{
	struct text all = { 0 };

	text_add(&all, labels, len);
	text_label(&all, m->label, m->value);
	write_value(e, m, object, all.bytes, all.len);
	e->text->failed |= all.failed;
	text_free(&all);
}

static void write_metric(struct expose *e, const struct metric *m, const struct objects *o)
{
	size_t at = 0;

	for (size_t i = 0; i < o->nr; at = o->ends[i++]) {
		size_t len = o->ends[i] - at;
		const char *labels = len ? o->text.bytes + at : "";

		if (m->label)
			write_labelled(e, m, nth(o, i), labels, len);
		else
			write_value(e, m, nth(o, i), labels, len);
	}
}

static bool same_family(const struct metric *m)
{
	return m != metrics && !strcmp(m->f.name, m[-1].f.name);
}

void metrics_write(struct text *text, const struct snapshot *s, enum expose_format format)
{
	struct expose e = { .text = text, .format = format };
	struct objects objects[NR_OBJECTS];

	describe(objects, s);
	for (size_t i = 0; i < NR_OBJECTS; i++)
		text->failed |= !write_labels(&objects[i]);
	for (size_t i = 0; i < NR_METRICS && !text->failed; i++) {
		if (!same_family(&metrics[i]))
			expose_family(&e, &metrics[i].f);
		write_metric(&e, &metrics[i], &objects[metrics[i].of]);
	}
	for (size_t i = 0; i < NR_OBJECTS; i++) {
		text_free(&objects[i].text);
		free(objects[i].ends);
	}
	expose_end(&e);
}

static void list_labels(struct text *text, const struct metric *m, const struct objects *o)
{
	const char *more = m->label ? m->label : m->more;

	text_str(text, o->names);
	if (*o->names && more)
		text_str(text, ", ");
	text_str(text, more ? more : "");
}

void metrics_list(struct text *text)
{
	const struct snapshot none = { 0 };
	struct objects objects[NR_OBJECTS];

	describe(objects, &none);
	for (const struct metric *m = metrics; m < metrics + NR_METRICS; m++) {
		if (same_family(m))
			continue;
		text_str(text, m->f.name);
		text_str(text, expose_suffix(m->f.type));
		text_str(text, "\t");
		text_str(text, expose_type_name(m->f.type));
		text_str(text, "\t");
		text_str(text, m->f.unit);
		text_str(text, "\t");
		list_labels(text, m, &objects[m->of]);
		text_str(text, "\t");
		text_str(text, m->f.help);
		text_str(text, "\n");
	}
}
