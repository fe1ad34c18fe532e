/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libmgpu: a typed client of the generic netlink family of mgpu.ko.
 *
 * Functions return 0 or -errno, and where they take a struct mgpu_error they
 * leave there a sentence for people; NULL if nobody is to read it.  A handle
 * belongs to one thread at a time.
 *
 * Needs -I include/uapi for <linux/mgpu.h>; link with libnl-genl-3.
 */
#ifndef LIBMGPU_MGPU_H
#define LIBMGPU_MGPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/mgpu.h>

#define MGPU_NAME_LEN		64	/* of a device, type, back end or policy */
#define MGPU_UUID_LEN		(MGPU_UUID_STRLEN + 1)
#define MGPU_MESSAGE_LEN	256	/* of how a policy ended */

/**
 * struct mgpu_error - why a call failed
 * @code: the negative errno that the call returned
 * @text: a sentence, without a newline
 */
struct mgpu_error {
	int code;
	char text[512];
};

int mgpu_fail(struct mgpu_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- what the kernel says ---- */

/*
 * Each struct's @present has a bit for each attribute (MGPU_A_...) that the
 * kernel sent.  One that is absent is unknown or does not apply, and its field
 * is 0.
 */
#define mgpu_has(info, attr)	(!!((info)->present & (UINT32_C(1) << (attr))))

/* How a BPF policy ended. */
struct mgpu_policy_exit_info {
	uint32_t present;
	uint32_t kind;			/* enum mgpu_policy_exit_kind */
	int32_t code;			/* negative errno, or 0 */
	char policy[MGPU_NAME_LEN];
	uint32_t vgpu_id;		/* absent when it is about none */
	char message[MGPU_MESSAGE_LEN];
};

struct mgpu_dev_info {
	uint32_t present;
	uint32_t id;
	char name[MGPU_NAME_LEN];
	char backend[MGPU_NAME_LEN];
	uint32_t engines;
	uint8_t engine_on_cpu;
	char policy[MGPU_NAME_LEN];	/* in force */
	char builtin_policy[MGPU_NAME_LEN];	/* chosen last */
	uint32_t job_timeout;		/* milliseconds */
	uint32_t vgpus;
	uint32_t max_vgpus;
	uint32_t waiting;		/* vGPUs that wait for an engine */
	uint64_t engine_ns;
	uint64_t charged_bpf_ns;
	uint64_t charged_self_ns;
	struct mgpu_policy_exit_info policy_exit; /* absent if there was none */
	uint32_t slots;			/* jobs at once now, 1 to engines */
};

struct mgpu_vgpu_stats {
	uint32_t present;
	uint64_t frames;
	uint64_t jobs;
	uint64_t job_errors;
	uint64_t bytes;
	uint64_t engine_ns;
	uint64_t engine_cycles;
	uint64_t charged_bpf_ns;
	uint64_t charged_self_ns;
	uint64_t throttled_ns;		/* frames held back: fps_limit */
	uint64_t throttled;
	uint64_t limited_ns;		/* out of engine time: gpu_limit, fixed */
	uint64_t limited;
	uint64_t queue_ns;
	uint64_t preempted;
	uint64_t timeouts;
	uint64_t commands;
	uint64_t command_errors;
	uint64_t doorbells;
	uint64_t interrupts;
	uint64_t resets;
};

struct mgpu_vgpu_info {
	uint32_t present;
	uint32_t id;
	char uuid[MGPU_UUID_LEN];
	uint32_t dev_id;
	char dev_name[MGPU_NAME_LEN];
	char type[MGPU_NAME_LEN];
	uint8_t open;
	uint32_t tgid;			/* absent when closed */
	uint32_t weight;
	uint32_t fps_limit;		/* millihertz, 0 = none */
	uint32_t gpu_limit;		/* ppm of engine time, 0 = none */
	uint32_t gpu_period;		/* microseconds */
	uint32_t gpu_burst;		/* microseconds of engine time */
	uint64_t mem_used;
	uint64_t mem_limit;
	uint64_t pinned_pages;
	uint32_t scanout_width;		/* absent when it shows nothing */
	uint32_t scanout_height;
	uint32_t charge_source;		/* enum mgpu_charge_source */
	struct mgpu_vgpu_stats stats;
	/* Of one vGPU that was asked for; absent in lists and events. */
	uint64_t frame_interval_hist[MGPU_HIST_BUCKETS];
	uint64_t latency_hist[MGPU_HIST_BUCKETS];
	uint32_t mode_width;		/* that its guest is told to use, pixels */
	uint32_t mode_height;
};

/*
 * A compute context of a vGPU's guest.  What it says of the job is 0 when there
 * is none, and @op is absent then.
 */
struct mgpu_ctx {
	uint32_t present;
	uint32_t vgpu_id;
	uint32_t id;			/* the guest's choice */
	uint32_t dev_id;
	char name[MGPU_CTX_NAME_LEN + 1];	/* the guest's choice */
	uint32_t state;			/* enum mgpu_ctx_state */
	char op[MGPU_NAME_LEN];		/* what its job does */
	uint32_t slots;			/* that it has */
	uint32_t slots_allowed;
	uint32_t slots_wanted;
	uint32_t queued;		/* jobs submitted and not done */
	uint8_t idempotent;		/* its job may be flushed */
	uint64_t job_inst;		/* work units of its job */
	uint64_t job_inst_done;
	uint64_t job_bytes;
	uint32_t live_bytes;		/* to save for each slot taken */
	uint64_t arrived_ns;		/* of its job, CLOCK_MONOTONIC */
	uint64_t jobs;
	uint64_t job_errors;
	uint64_t inst;
	uint64_t bytes;
	uint64_t engine_ns;
	uint64_t engine_cycles;
	uint64_t preemptions;		/* slots taken */
	uint64_t resumes;		/* slots got back */
	uint64_t flushes;		/* jobs begun anew */
	uint64_t switch_ns;		/* for saving and restoring */
	uint64_t copies;		/* how often that was */
};

/* What ctx-preempt and ctx-resume say of a context; for naming what they said. */
struct mgpu_ctx_order {
	uint32_t present;
	uint32_t vgpu_id;
	uint32_t id;
	uint32_t slots;			/* that it may keep */
	uint32_t method;		/* enum mgpu_preempt_method */
	uint8_t hold;
	uint8_t first;
};

/* Names of enum mgpu_preempt_method, NULL at the end. */
extern const char *const mgpu_preempt_methods[];

/* Of enum mgpu_compute_op, as struct mgpu_ctx has it; NULL for what is none. */
const char *mgpu_ctx_op_name(uint32_t op);

/* ---- histograms ---- */

/*
 * Counts of times: bucket 0 of those below 2 us, bucket i of those from 2^i us
 * up to 2^(i + 1) us, the last one of all above.
 */
uint64_t mgpu_hist_total(const uint64_t *hist);

/* Where a bucket begins and ends, in microseconds; the last one at INFINITY. */
void mgpu_hist_bounds(unsigned int bucket, double *from_us, double *to_us);

/*
 * The time, in microseconds, that the part @q (0 to 1) of the counted ones does
 * not exceed, as if those of a bucket were spread evenly over it: off by less
 * than a factor of two.  In the last bucket it is the bucket's beginning, which
 * is a lower bound.  NAN if nothing was counted.
 */
double mgpu_hist_quantile(const uint64_t *hist, double q);

/* ---- the same, for code that walks over all fields ---- */

enum mgpu_field_type {
	MGPU_FIELD_U8,
	MGPU_FIELD_U32,
	MGPU_FIELD_S32,
	MGPU_FIELD_U64,
	MGPU_FIELD_STRING,
	MGPU_FIELD_BINARY,	/* a histogram: MGPU_HIST_BUCKETS uint64_t */
	MGPU_FIELD_NEST,
};

/**
 * struct mgpu_field - an attribute and the field that holds it
 * @name: the specification's name of the attribute
 * @attr: its number; 0 ends a table
 * @type: its type
 * @offset: of the field in the struct
 * @size: of the field
 * @values: names of the values of an enumeration, NULL at the end; NULL for
 *	a plain number
 * @nest: fields of a nest
 */
struct mgpu_field {
	const char *name;
	uint16_t attr;
	enum mgpu_field_type type;
	size_t offset;
	size_t size;
	const char *const *values;
	const struct mgpu_field *nest;
};

extern const struct mgpu_field mgpu_dev_fields[];	/* struct mgpu_dev_info */
extern const struct mgpu_field mgpu_policy_exit_fields[];
extern const struct mgpu_field mgpu_vgpu_fields[];	/* struct mgpu_vgpu_info */
extern const struct mgpu_field mgpu_stats_fields[];	/* struct mgpu_vgpu_stats */
extern const struct mgpu_field mgpu_ctx_fields[];	/* struct mgpu_ctx */
extern const struct mgpu_field mgpu_ctx_order_fields[];

const struct mgpu_field *mgpu_field_find(const struct mgpu_field *fields,
					 const char *name);
bool mgpu_field_present(const struct mgpu_field *field, const void *info);
/* Of any number; one with a sign is to be cast to int64_t. */
uint64_t mgpu_field_u64(const struct mgpu_field *field, const void *info);
/* Of a histogram, else NULL. */
const uint64_t *mgpu_field_hist(const struct mgpu_field *field,
				const void *info);
/* Of a string, or of the value of an enumeration; NULL if it has no name. */
const char *mgpu_field_str(const struct mgpu_field *field, const void *info);

/* ---- asking ---- */

struct mgpu;

int mgpu_open(struct mgpu **mgpu, struct mgpu_error *err);
void mgpu_close(struct mgpu *mgpu);

/*
 * Lists are in the order of ids.  What comes or goes while a list is read may be
 * in it or not.  free(*devs).
 */
int mgpu_dev_list(struct mgpu *mgpu, struct mgpu_dev_info **devs, size_t *nr,
		  struct mgpu_error *err);
int mgpu_dev_get(struct mgpu *mgpu, uint32_t id, struct mgpu_dev_info *dev,
		 struct mgpu_error *err);
/* @key: its id or its name */
int mgpu_dev_find(struct mgpu *mgpu, const char *key, struct mgpu_dev_info *dev,
		  struct mgpu_error *err);

/* @dev_id: of which device; NULL for all.  free(*vgpus). */
int mgpu_vgpu_list(struct mgpu *mgpu, const uint32_t *dev_id,
		   struct mgpu_vgpu_info **vgpus, size_t *nr,
		   struct mgpu_error *err);
int mgpu_vgpu_get(struct mgpu *mgpu, uint32_t id, struct mgpu_vgpu_info *vgpu,
		  struct mgpu_error *err);
/*
 * @key: its id, its UUID, or the beginning of the UUID if no other vGPU's
 * begins like it.  Digits only are an id, always.
 */
int mgpu_vgpu_find(struct mgpu *mgpu, const char *key,
		   struct mgpu_vgpu_info *vgpu, struct mgpu_error *err);

/* The same in a list that was read before; *found points into it. */
int mgpu_vgpu_match(const struct mgpu_vgpu_info *vgpus, size_t nr,
		    const char *key, const struct mgpu_vgpu_info **found,
		    struct mgpu_error *err);

/*
 * Compute contexts, in the order of their vGPUs' ids and their own.  @vgpu_id: of
 * which vGPU; NULL for all.  free(*ctxs).  -ENODEV: there is no such vGPU;
 * -EOPNOTSUPP: the module is too old to know contexts.
 */
int mgpu_ctx_dump(struct mgpu *mgpu, const uint32_t *vgpu_id,
		  struct mgpu_ctx **ctxs, size_t *nr, struct mgpu_error *err);

/* -ENODEV: there is no such vGPU; -ENOENT: it has no such context. */
int mgpu_ctx_get(struct mgpu *mgpu, uint32_t vgpu_id, uint32_t ctx_id,
		 struct mgpu_ctx *ctx, struct mgpu_error *err);

/* ---- setting ---- */

#define MGPU_SETTING_WEIGHT	(1u << 0)
#define MGPU_SETTING_FPS_LIMIT	(1u << 1)
#define MGPU_SETTING_GPU_LIMIT	(1u << 2)
#define MGPU_SETTING_GPU_PERIOD	(1u << 3)
#define MGPU_SETTING_GPU_BURST	(1u << 4)
#define MGPU_SETTING_MODE	(1u << 5)

/**
 * struct mgpu_vgpu_setting - what to change of one vGPU
 * @id: which, unless @uuid is set
 * @uuid: which; empty to use @id
 * @mask: what to change, MGPU_SETTING_*
 * @weight: MGPU_WEIGHT_MIN to MGPU_WEIGHT_MAX
 * @fps_limit: millihertz: 0 for none, or MGPU_FPS_LIMIT_MIN to
 *	MGPU_FPS_LIMIT_MAX
 * @gpu_limit: parts per million of the device's engine time: 0 for none, or
 *	MGPU_GPU_LIMIT_MIN to MGPU_GPU_LIMIT_MAX
 * @gpu_period: microseconds, MGPU_GPU_PERIOD_MIN to MGPU_GPU_PERIOD_MAX
 * @gpu_burst: microseconds of engine time, 0 to MGPU_GPU_BURST_MAX
 * @mode_width: of the mode that its guest is told to use, pixels: MGPU_MODE_MIN to
 *	that of the type's largest mode; 0 with @mode_height for that mode
 * @mode_height: of it, likewise
 */
struct mgpu_vgpu_setting {
	uint32_t id;
	char uuid[MGPU_UUID_LEN];
	uint32_t mask;
	uint32_t weight;
	uint32_t fps_limit;
	uint32_t gpu_limit;
	uint32_t gpu_period;
	uint32_t gpu_burst;
	uint32_t mode_width;
	uint32_t mode_height;
};

/* All of them or none, in one message; needs CAP_NET_ADMIN. */
int mgpu_vgpu_set(struct mgpu *mgpu, const struct mgpu_vgpu_setting *set,
		  size_t nr, struct mgpu_error *err);

#define MGPU_DEV_SETTING_POLICY		(1u << 0)
#define MGPU_DEV_SETTING_JOB_TIMEOUT	(1u << 1)
#define MGPU_DEV_SETTING_SLOTS		(1u << 2)

/**
 * struct mgpu_dev_setting - what to change of a device
 * @id: which
 * @mask: what to change, MGPU_DEV_SETTING_*
 * @policy: name of a built-in policy; a BPF policy that is in force ends
 * @job_timeout: milliseconds, MGPU_JOB_TIMEOUT_MIN to MGPU_JOB_TIMEOUT_MAX
 * @slots: jobs that the device may run at once, 1 to its engines
 */
struct mgpu_dev_setting {
	uint32_t id;
	uint32_t mask;
	char policy[MGPU_NAME_LEN];
	uint32_t job_timeout;
	uint32_t slots;
};

/* All of it or nothing; needs CAP_NET_ADMIN. */
int mgpu_dev_set(struct mgpu *mgpu, const struct mgpu_dev_setting *set,
		 struct mgpu_error *err);

/**
 * mgpu_ctx_preempt() - take slots from a context
 * @mgpu: handle
 * @vgpu_id: its vGPU
 * @ctx_id: the context
 * @keep: slots that it may keep; 0 for MGPU_PREEMPT_METHOD_FLUSH
 * @method: how they are taken
 * @hold: keep it from going on until it is resumed; else it goes on when a slot
 *	is free, and after MGPU_PREEMPT_MAX_MS at the latest
 * @err: where a sentence goes, may be NULL
 *
 * Returns when it is settled, not when the slots are free: the context may be at
 * a tile, or, with MGPU_PREEMPT_METHOD_DRAIN, at its job, for a while yet.  Needs
 * CAP_NET_ADMIN.
 *
 * Return: 0; -ENODEV, there is no such vGPU; -ENOENT, it has no such context;
 * -EINVAL, the context has no job to take slots from and @hold is not set, or
 * slots are to be kept in a flush; -EOPNOTSUPP, its job cannot begin anew, or the
 * module is too old; -ERANGE, there is no such method; -EPERM.
 */
int mgpu_ctx_preempt(struct mgpu *mgpu, uint32_t vgpu_id, uint32_t ctx_id,
		     uint32_t keep, enum mgpu_preempt_method method, bool hold,
		     struct mgpu_error *err);

/**
 * mgpu_ctx_resume() - let a context have as many slots as its job can use
 * @mgpu: handle
 * @vgpu_id: its vGPU
 * @ctx_id: the context
 * @first: ahead of the other contexts of its vGPU
 * @err: where a sentence goes, may be NULL
 *
 * One from which nothing was taken stays as it is, but for @first.  Needs
 * CAP_NET_ADMIN.
 *
 * Return: 0; -ENODEV, there is no such vGPU; -ENOENT, it has no such context;
 * -EOPNOTSUPP, the module is too old; -EPERM.
 */
int mgpu_ctx_resume(struct mgpu *mgpu, uint32_t vgpu_id, uint32_t ctx_id,
		    bool first, struct mgpu_error *err);

/* ---- watching ---- */

/**
 * struct mgpu_event - what became of a vGPU, a device or a context
 * @cmd: MGPU_CMD_VGPU_..._NTF, MGPU_CMD_DEV_..._NTF or MGPU_CMD_CTX_NTF
 * @vgpu: the vGPU at that moment; of another's event all absent
 * @dev: the device at that moment; of another's event all absent
 * @ctx: the context at that moment; of another's event all absent
 */
struct mgpu_event {
	uint8_t cmd;
	struct mgpu_vgpu_info vgpu;
	struct mgpu_dev_info dev;
	struct mgpu_ctx ctx;
};

/* The specification's name of an event, NULL for what is none. */
const char *mgpu_event_name(uint8_t cmd);
/* Of a device, not of a vGPU or a context. */
bool mgpu_event_is_dev(uint8_t cmd);
/* Of a context, not of a vGPU or a device. */
bool mgpu_event_is_ctx(uint8_t cmd);

/*
 * Of vGPUs and devices.  From here on the handle gives events only; use another
 * one to ask.
 */
int mgpu_subscribe(struct mgpu *mgpu, struct mgpu_error *err);
/*
 * Of contexts, of which there may be thousands a second; alone or with the other.
 * -ENOENT: the module does not know contexts, or is not there any more.
 */
int mgpu_subscribe_ctx(struct mgpu *mgpu, struct mgpu_error *err);

/*
 * For poll(): readable when there may be an event. Messages about others come, too,
 * over which mgpu_event_next() waits on: who must not wait sets O_NONBLOCK.
 */
int mgpu_fd(const struct mgpu *mgpu);

/*
 * Wait for the next event.  -ENOBUFS: events were lost after the last one returned;
 * list what they are about again and go on.  -ENODEV: the module was unloaded.
 * -EINTR: a signal came.  -EAGAIN: there is none, and the socket does not block.
 */
int mgpu_event_next(struct mgpu *mgpu, struct mgpu_event *event,
		    struct mgpu_error *err);

#endif /* LIBMGPU_MGPU_H */
