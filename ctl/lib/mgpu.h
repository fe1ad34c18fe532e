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
};

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

/* ---- setting ---- */

#define MGPU_SETTING_WEIGHT	(1u << 0)
#define MGPU_SETTING_FPS_LIMIT	(1u << 1)
#define MGPU_SETTING_GPU_LIMIT	(1u << 2)
#define MGPU_SETTING_GPU_PERIOD	(1u << 3)
#define MGPU_SETTING_GPU_BURST	(1u << 4)

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
};

/* All of them or none, in one message; needs CAP_NET_ADMIN. */
int mgpu_vgpu_set(struct mgpu *mgpu, const struct mgpu_vgpu_setting *set,
		  size_t nr, struct mgpu_error *err);

#define MGPU_DEV_SETTING_POLICY		(1u << 0)
#define MGPU_DEV_SETTING_JOB_TIMEOUT	(1u << 1)

/**
 * struct mgpu_dev_setting - what to change of a device
 * @id: which
 * @mask: what to change, MGPU_DEV_SETTING_*
 * @policy: name of a built-in policy; a BPF policy that is in force ends
 * @job_timeout: milliseconds, MGPU_JOB_TIMEOUT_MIN to MGPU_JOB_TIMEOUT_MAX
 */
struct mgpu_dev_setting {
	uint32_t id;
	uint32_t mask;
	char policy[MGPU_NAME_LEN];
	uint32_t job_timeout;
};

/* All of it or nothing; needs CAP_NET_ADMIN. */
int mgpu_dev_set(struct mgpu *mgpu, const struct mgpu_dev_setting *set,
		 struct mgpu_error *err);

/* ---- watching ---- */

/**
 * struct mgpu_event - what became of a vGPU or a device
 * @cmd: MGPU_CMD_VGPU_..._NTF or MGPU_CMD_DEV_..._NTF
 * @vgpu: the vGPU at that moment; of an event of a device all absent
 * @dev: the device at that moment; of an event of a vGPU all absent
 */
struct mgpu_event {
	uint8_t cmd;
	struct mgpu_vgpu_info vgpu;
	struct mgpu_dev_info dev;
};

/* The specification's name of an event, NULL for what is none. */
const char *mgpu_event_name(uint8_t cmd);
/* Of a device, not of a vGPU. */
bool mgpu_event_is_dev(uint8_t cmd);

/* From here on the handle gives events only; use another one to ask. */
int mgpu_subscribe(struct mgpu *mgpu, struct mgpu_error *err);

/* For poll(): readable when mgpu_event_next() will not wait. */
int mgpu_fd(const struct mgpu *mgpu);

/*
 * Wait for the next event.  -ENOBUFS: events were lost, list the vGPUs again
 * and go on.  -ENODEV: the module was unloaded.  -EINTR: a signal came.
 */
int mgpu_event_next(struct mgpu *mgpu, struct mgpu_event *event,
		    struct mgpu_error *err);

#endif /* LIBMGPU_MGPU_H */
