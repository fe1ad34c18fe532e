/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libmgpu: a typed client of the generic netlink family of mgpu.ko.
 *
 * Functions return 0 or -errno, and write a sentence to their struct mgpu_error, which
 * may be NULL.  Only one thread at a time may use a handle.  Requests and subscriptions
 * need CAP_NET_ADMIN, or else fail with -EPERM.
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
#define MGPU_COMM_LEN		16	/* of a command name: TASK_COMM_LEN */
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

/* ---- objects of the kernel ---- */

/*
 * @present of each struct has a bit for each attribute (MGPU_A_...) that the kernel sent.
 * An attribute that is absent is unknown or does not apply, and its field is 0.
 */
#define MGPU_HAS(attr)		(UINT64_C(1) << (attr))
#define mgpu_has(info, attr)	(!!((info)->present & MGPU_HAS(attr)))

/* How a BPF policy ended. */
struct mgpu_policy_exit_info {
	uint64_t present;
	uint32_t kind;			/* enum mgpu_policy_exit_kind */
	int32_t code;			/* negative errno, or 0 */
	char policy[MGPU_NAME_LEN];
	uint32_t vgpu_id;		/* absent if the reason is not about a vGPU */
	char message[MGPU_MESSAGE_LEN];
};

struct mgpu_dev_info {
	uint64_t present;
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
	uint8_t policy_shares;		/* the policy in force promises shares */
	uint32_t hang_limit;		/* hangs before quarantine, 0 = none */
};

struct mgpu_vgpu_stats {
	uint64_t present;
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
	uint64_t hangs;			/* timeouts, and resets of the GPU for its jobs */
	uint64_t lost;			/* jobs that the GPU had when it was reset */
	uint64_t commands;
	uint64_t command_errors;
	uint64_t doorbells;
	uint64_t interrupts;
	uint64_t resets;
};

struct mgpu_vgpu_info {
	uint64_t present;
	uint32_t id;
	char uuid[MGPU_UUID_LEN];
	uint32_t dev_id;
	char dev_name[MGPU_NAME_LEN];
	char type[MGPU_NAME_LEN];
	uint8_t open;
	uint32_t tgid;			/* absent when closed */
	uint32_t weight;
	uint32_t fps_limit;		/* of the operator, millihertz, 0 = none */
	uint32_t fps_target;		/* of a controller, millihertz, 0 = none */
	char fps_limit_by[MGPU_COMM_LEN];	/* setters; absent without a limit */
	char fps_target_by[MGPU_COMM_LEN];
	uint32_t gpu_limit;		/* of the operator, ppm of engine time, 0 = none */
	uint32_t gpu_target;		/* of a controller, likewise */
	char gpu_limit_by[MGPU_COMM_LEN];	/* setters; absent without a limit */
	char gpu_target_by[MGPU_COMM_LEN];
	uint32_t fps_floor;		/* promise for mgpud to keep, millihertz, 0 = none */
	uint32_t gpu_period;		/* microseconds */
	uint32_t gpu_burst;		/* microseconds of engine time */
	uint64_t mem_used;
	uint64_t mem_limit;
	uint64_t pinned_pages;
	uint32_t scanout_width;		/* absent when it shows nothing */
	uint32_t scanout_height;
	uint32_t charge_source;		/* enum mgpu_charge_source */
	struct mgpu_vgpu_stats stats;
	/* Present in the answer of mgpu_vgpu_get(); absent in lists and events. */
	uint64_t frame_interval_hist[MGPU_HIST_BUCKETS];
	uint64_t latency_hist[MGPU_HIST_BUCKETS];
	uint32_t mode_width;		/* of the mode that its guest is told, pixels */
	uint32_t mode_height;
	uint32_t quarantine;		/* its jobs fail, because it hung the GPU */
};

/*
 * A compute context of a vGPU's guest.  Without a job the fields of its job are 0, and @op
 * is absent.
 */
struct mgpu_ctx {
	uint64_t present;
	uint32_t vgpu_id;
	uint32_t id;			/* chosen by the guest */
	uint32_t dev_id;
	char name[MGPU_CTX_NAME_LEN + 1];	/* chosen by the guest */
	uint32_t state;			/* enum mgpu_ctx_state */
	char op[MGPU_NAME_LEN];		/* operation of its job */
	uint32_t slots;			/* slots that it holds */
	uint32_t slots_allowed;
	uint32_t slots_wanted;
	uint32_t queued;		/* jobs submitted and not complete */
	uint8_t idempotent;		/* its job may be flushed */
	uint64_t job_inst;		/* work units of its job */
	uint64_t job_inst_done;
	uint64_t job_bytes;
	uint32_t live_bytes;		/* saved for each slot that is taken */
	uint64_t arrived_ns;		/* submission of its job, CLOCK_MONOTONIC */
	uint64_t jobs;
	uint64_t job_errors;
	uint64_t inst;
	uint64_t bytes;
	uint64_t engine_ns;
	uint64_t engine_cycles;
	uint64_t preemptions;		/* slots taken */
	uint64_t resumes;		/* slots given back */
	uint64_t flushes;		/* jobs restarted */
	uint64_t switch_ns;		/* time of saves and restores */
	uint64_t copies;		/* number of saves and restores */
};

/* Attributes of ctx-preempt and ctx-resume, for error texts. */
struct mgpu_ctx_order {
	uint64_t present;
	uint32_t vgpu_id;
	uint32_t id;
	uint32_t slots;			/* slots that it may keep */
	uint32_t method;		/* enum mgpu_preempt_method */
	uint8_t hold;
	uint8_t first;
};

/* Names of enum mgpu_preempt_method, NULL at the end. */
extern const char *const mgpu_preempt_methods[];

/* Name of an enum mgpu_compute_op, as in struct mgpu_ctx; NULL if it is unknown. */
const char *mgpu_ctx_op_name(uint32_t op);

/* ---- histograms ---- */

/*
 * Total of a histogram of times: bucket 0 counts times below 2 us, bucket i those from
 * 2^i us up to 2^(i + 1) us, the last bucket all above.
 */
uint64_t mgpu_hist_total(const uint64_t *hist);

/* Begin and end of a bucket, microseconds; the last bucket ends at INFINITY. */
void mgpu_hist_bounds(unsigned int bucket, double *from_us, double *to_us);

/*
 * The time, microseconds, that the part @q (0 to 1) of the counts does not exceed, if the
 * counts of a bucket are spread evenly over it: off by less than a factor of two.  In the
 * last bucket it is the begin of the bucket, a lower bound.  NAN without counts.
 */
double mgpu_hist_quantile(const uint64_t *hist, double q);

/* ---- tables of fields ---- */

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
 * @offset: offset of the field in the struct
 * @size: size of the field, bytes
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

/**
 * enum mgpu_unit - unit of an attribute in the specification
 * @MGPU_UNIT_NONE: a name, a state, or a number of what the attribute's name says
 * @MGPU_UNIT_FLAG: 0 or 1
 * @MGPU_UNIT_BYTES: bytes
 * @MGPU_UNIT_PIXELS: pixels
 * @MGPU_UNIT_MILLIHERTZ: frames in 1000 seconds
 * @MGPU_UNIT_PPM: parts per million of the device's engine time
 * @MGPU_UNIT_NS: nanoseconds
 * @MGPU_UNIT_US: microseconds
 * @MGPU_UNIT_MS: milliseconds
 */
enum mgpu_unit {
	MGPU_UNIT_NONE,
	MGPU_UNIT_FLAG,
	MGPU_UNIT_BYTES,
	MGPU_UNIT_PIXELS,
	MGPU_UNIT_MILLIHERTZ,
	MGPU_UNIT_PPM,
	MGPU_UNIT_NS,
	MGPU_UNIT_US,
	MGPU_UNIT_MS,
};

enum mgpu_unit mgpu_field_unit(const struct mgpu_field *field);
/* True if 0 means that there is no limit. */
bool mgpu_field_is_limit(const struct mgpu_field *field);

#define MGPU_KEY_LEN	48

/**
 * mgpu_field_key() - make an attribute's key in JSON
 * @field: the attribute
 * @key: result
 *
 * The key is the specification's name in snake_case, with the unit of JSON as its last
 * word: _s (seconds), _fps (frames per second), _share (0 to 1), _bytes, _px (pixels).
 *
 * Return: @key.
 */
const char *mgpu_field_key(const struct mgpu_field *field, char key[MGPU_KEY_LEN]);

/* Decimals of JSON's unit in the attribute's: 3 of milliseconds, since JSON has seconds. */
int mgpu_unit_decimals(enum mgpu_unit unit);

const struct mgpu_field *mgpu_field_find(const struct mgpu_field *fields,
					 const char *name);
bool mgpu_field_present(const struct mgpu_field *field, const void *info);
/* Value of a number; a signed one must be cast to int64_t. */
uint64_t mgpu_field_u64(const struct mgpu_field *field, const void *info);
/* Value of a histogram, else NULL. */
const uint64_t *mgpu_field_hist(const struct mgpu_field *field,
				const void *info);
/* Value of a string, or name of an enumeration's value; NULL if it has no name. */
const char *mgpu_field_str(const struct mgpu_field *field, const void *info);

/* ---- asking ---- */

struct mgpu;

int mgpu_open(struct mgpu **mgpu, struct mgpu_error *err);
void mgpu_close(struct mgpu *mgpu);

/*
 * Lists are sorted by ID.  A list may lack objects that are added or removed while it is
 * read, or have them.  The caller must free *devs.
 */
int mgpu_dev_list(struct mgpu *mgpu, struct mgpu_dev_info **devs, size_t *nr,
		  struct mgpu_error *err);
int mgpu_dev_get(struct mgpu *mgpu, uint32_t id, struct mgpu_dev_info *dev,
		 struct mgpu_error *err);
/* @key: ID or name */
int mgpu_dev_find(struct mgpu *mgpu, const char *key, struct mgpu_dev_info *dev,
		  struct mgpu_error *err);

/* @dev_id: ID of the device, NULL for all.  The caller must free *vgpus. */
int mgpu_vgpu_list(struct mgpu *mgpu, const uint32_t *dev_id,
		   struct mgpu_vgpu_info **vgpus, size_t *nr,
		   struct mgpu_error *err);
int mgpu_vgpu_get(struct mgpu *mgpu, uint32_t id, struct mgpu_vgpu_info *vgpu,
		  struct mgpu_error *err);

/**
 * mgpu_vgpu_hists() - add histograms to a list of vGPUs
 * @mgpu: handle
 * @vgpus: vGPUs of mgpu_vgpu_list()
 * @nr: their number
 * @err: sentence about an error, may be NULL
 *
 * The kernel is asked for several vGPUs at once.  A vGPU that has gone, or was never open,
 * gets no histograms.
 *
 * Return: 0 or a negative errno.
 */
int mgpu_vgpu_hists(struct mgpu *mgpu, struct mgpu_vgpu_info *vgpus, size_t nr,
		    struct mgpu_error *err);

/*
 * @key: ID, UUID, or the beginning of the UUID if that is unique.  A key of digits only is
 * always an ID.
 */
int mgpu_vgpu_find(struct mgpu *mgpu, const char *key,
		   struct mgpu_vgpu_info *vgpu, struct mgpu_error *err);

/* The same in a list; *found points into it. */
int mgpu_vgpu_match(const struct mgpu_vgpu_info *vgpus, size_t nr,
		    const char *key, const struct mgpu_vgpu_info **found,
		    struct mgpu_error *err);

/*
 * Compute contexts, sorted by the IDs of vGPU and context.  @vgpu_id: ID of the vGPU, NULL
 * for all.  The caller must free *ctxs.  -ENODEV: no such vGPU; -EOPNOTSUPP: the module is
 * too old to have contexts.
 */
int mgpu_ctx_dump(struct mgpu *mgpu, const uint32_t *vgpu_id,
		  struct mgpu_ctx **ctxs, size_t *nr, struct mgpu_error *err);

/* -ENODEV: no such vGPU; -ENOENT: it has no such context. */
int mgpu_ctx_get(struct mgpu *mgpu, uint32_t vgpu_id, uint32_t ctx_id,
		 struct mgpu_ctx *ctx, struct mgpu_error *err);

/* ---- setting ---- */

#define MGPU_SETTING_WEIGHT	(1u << 0)
#define MGPU_SETTING_FPS_LIMIT	(1u << 1)
#define MGPU_SETTING_GPU_LIMIT	(1u << 2)
#define MGPU_SETTING_GPU_PERIOD	(1u << 3)
#define MGPU_SETTING_GPU_BURST	(1u << 4)
#define MGPU_SETTING_MODE	(1u << 5)
#define MGPU_SETTING_QUARANTINE	(1u << 6)
#define MGPU_SETTING_FPS_TARGET	(1u << 7)
#define MGPU_SETTING_GPU_TARGET	(1u << 8)
#define MGPU_SETTING_FPS_FLOOR	(1u << 9)

/**
 * struct mgpu_vgpu_setting - changes of one vGPU
 * @id: ID of the vGPU, unless @uuid is set
 * @uuid: UUID of the vGPU; "" to use @id
 * @mask: settings to change, MGPU_SETTING_*
 * @weight: MGPU_WEIGHT_MIN to MGPU_WEIGHT_MAX
 * @fps_limit: the operator's limit, millihertz: 0 for none, or MGPU_FPS_LIMIT_MIN to
 *	MGPU_FPS_LIMIT_MAX
 * @fps_target: a controller's limit, likewise; the stricter of both is in force
 * @fps_floor: rate that mgpud is to let the vGPU reach, likewise; 0 for no promise
 * @gpu_limit: the operator's limit, parts per million of the device's engine time: 0 for
 *	none, or MGPU_GPU_LIMIT_MIN to MGPU_GPU_LIMIT_MAX
 * @gpu_target: a controller's limit, likewise; the stricter of both is in force
 * @gpu_period: microseconds, MGPU_GPU_PERIOD_MIN to MGPU_GPU_PERIOD_MAX
 * @gpu_burst: microseconds of engine time, 0 to MGPU_GPU_BURST_MAX
 * @mode_width: width of the mode that its guest is told to use, pixels: MGPU_MODE_MIN
 *	to that of the type's largest mode; 0, with @mode_height 0, for that mode
 * @mode_height: height of that mode, pixels
 * @quarantine: 1 to have its jobs fail, 0 to lift that and forget its hangs
 */
struct mgpu_vgpu_setting {
	uint32_t id;
	char uuid[MGPU_UUID_LEN];
	uint32_t mask;
	uint32_t weight;
	uint32_t fps_limit;
	uint32_t fps_target;
	uint32_t fps_floor;
	uint32_t gpu_limit;
	uint32_t gpu_target;
	uint32_t gpu_period;
	uint32_t gpu_burst;
	uint32_t mode_width;
	uint32_t mode_height;
	uint32_t quarantine;
};

/* Change all vGPUs or none, in one message. */
int mgpu_vgpu_set(struct mgpu *mgpu, const struct mgpu_vgpu_setting *set,
		  size_t nr, struct mgpu_error *err);

#define MGPU_DEV_SETTING_POLICY		(1u << 0)
#define MGPU_DEV_SETTING_JOB_TIMEOUT	(1u << 1)
#define MGPU_DEV_SETTING_SLOTS		(1u << 2)
#define MGPU_DEV_SETTING_HANG_LIMIT	(1u << 3)

/**
 * struct mgpu_dev_setting - changes of a device
 * @id: ID of the device
 * @mask: settings to change, MGPU_DEV_SETTING_*
 * @policy: name of a built-in policy; a BPF policy that is in force ends
 * @job_timeout: milliseconds, MGPU_JOB_TIMEOUT_MIN to MGPU_JOB_TIMEOUT_MAX
 * @slots: jobs that the device may run at once, 1 to its engines
 * @hang_limit: hangs within MGPU_HANG_WINDOW seconds that put a vGPU under quarantine,
 *	1 to MGPU_HANG_LIMIT_MAX; 0 for no quarantine
 */
struct mgpu_dev_setting {
	uint32_t id;
	uint32_t mask;
	char policy[MGPU_NAME_LEN];
	uint32_t job_timeout;
	uint32_t slots;
	uint32_t hang_limit;
};

/* Change all settings or none. */
int mgpu_dev_set(struct mgpu *mgpu, const struct mgpu_dev_setting *set,
		 struct mgpu_error *err);

/**
 * mgpu_ctx_preempt() - preempt a context
 * @mgpu: handle
 * @vgpu_id: ID of its vGPU
 * @ctx_id: ID of the context
 * @keep: slots that it may keep; 0 for MGPU_PREEMPT_METHOD_FLUSH
 * @method: how slots are taken
 * @hold: keep it preempted until it is resumed; else it resumes when a slot is free, and
 *	waits for slots after MGPU_PREEMPT_MAX_MS
 * @err: sentence about an error, may be NULL
 *
 * Returns before the slots are free: the context releases them at the end of a tile or,
 * with MGPU_PREEMPT_METHOD_DRAIN, of its job.
 *
 * Return: 0; -ENODEV, no such vGPU; -ENOENT, it has no such context; -EINVAL, the context
 * has no job and @hold is not set, or @keep is not 0 in a flush; -EOPNOTSUPP, its job cannot
 * be restarted, or the module is too old; -ERANGE, invalid method; -EPERM.
 */
int mgpu_ctx_preempt(struct mgpu *mgpu, uint32_t vgpu_id, uint32_t ctx_id,
		     uint32_t keep, enum mgpu_preempt_method method, bool hold,
		     struct mgpu_error *err);

/**
 * mgpu_ctx_resume() - let a context have as many slots as its job can use
 * @mgpu: handle
 * @vgpu_id: ID of its vGPU
 * @ctx_id: ID of the context
 * @first: put it ahead of the other contexts of its vGPU
 * @err: sentence about an error, may be NULL
 *
 * For a context that is not preempted only @first has an effect.
 *
 * Return: 0; -ENODEV, no such vGPU; -ENOENT, it has no such context; -EOPNOTSUPP, the
 * module is too old; -EPERM.
 */
int mgpu_ctx_resume(struct mgpu *mgpu, uint32_t vgpu_id, uint32_t ctx_id,
		    bool first, struct mgpu_error *err);

/* ---- watching ---- */

/**
 * struct mgpu_event - event of a vGPU, a device or a context
 * @cmd: MGPU_CMD_VGPU_..._NTF, MGPU_CMD_DEV_..._NTF or MGPU_CMD_CTX_NTF
 * @vgpu: the vGPU at that moment; all attributes are absent in other events
 * @dev: the device at that moment; all attributes are absent in other events
 * @ctx: the context at that moment; all attributes are absent in other events
 */
struct mgpu_event {
	uint8_t cmd;
	struct mgpu_vgpu_info vgpu;
	struct mgpu_dev_info dev;
	struct mgpu_ctx ctx;
};

/* The specification's name of an event, NULL if @cmd is not an event. */
const char *mgpu_event_name(uint8_t cmd);
/* True for events of devices. */
bool mgpu_event_is_dev(uint8_t cmd);
/* True for events of contexts. */
bool mgpu_event_is_ctx(uint8_t cmd);

/*
 * Subscribe to events of vGPUs and devices.  Afterwards the handle receives only events;
 * use another handle for requests.
 */
int mgpu_subscribe(struct mgpu *mgpu, struct mgpu_error *err);
/*
 * Subscribe to events of contexts, of which there may be thousands per second, alone or in
 * addition.  -ENOENT: the module has no contexts, or was unloaded.
 */
int mgpu_subscribe_ctx(struct mgpu *mgpu, struct mgpu_error *err);

/*
 * For poll(): readable when there may be an event.  Other messages make it readable, too;
 * mgpu_event_next() skips these and waits on, unless the caller sets O_NONBLOCK.
 */
int mgpu_fd(const struct mgpu *mgpu);

/*
 * Wait for the next event.  -ENOBUFS: events were lost after the last one; read the lists
 * again and continue.  -ENODEV: the module was unloaded.  -EINTR: a signal came.  -EAGAIN:
 * no event, and the socket does not block.
 */
int mgpu_event_next(struct mgpu *mgpu, struct mgpu_event *event,
		    struct mgpu_error *err);

#endif /* LIBMGPU_MGPU_H */
