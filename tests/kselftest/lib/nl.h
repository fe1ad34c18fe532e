/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module's generic netlink family, by hand: tests send messages that a
 * well-behaved library would not send.
 */
#ifndef KSELFTEST_NL_H
#define KSELFTEST_NL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../../include/uapi/linux/mgpu.h"

struct nl {
	int fd;
	uint16_t family;
	uint32_t events;	/* multicast group */
	uint32_t contexts;	/* the same of contexts */
	uint32_t seq;
	char text[256];		/* message of the last error, or "" */
	uint32_t text_off;	/* offset of the attribute that it is about, or 0 */
};

struct nl_msg {
	uint8_t *buf;
	size_t len;
	size_t cap;
};

struct nl_vgpu {
	uint32_t id;
	char uuid[40];
	char type[32];
	char dev_name[32];
	uint32_t dev_id;
	bool open;
	uint32_t tgid;
	uint32_t weight;
	uint32_t fps_limit;
	uint32_t fps_target;
	uint32_t fps_floor;
	char fps_limit_by[16];	/* "" when absent */
	char fps_target_by[16];
	char gpu_limit_by[16];
	char gpu_target_by[16];
	uint32_t gpu_limit;
	uint32_t gpu_target;
	uint32_t gpu_period;
	uint32_t gpu_burst;
	uint32_t mode_width;
	uint32_t mode_height;
	uint32_t quarantine;
	uint64_t mem_used;
	uint64_t mem_limit;
	uint64_t pinned;
	uint32_t width;
	uint32_t height;
	uint32_t charge_source;	/* ~0 when absent */
	uint64_t stats[MGPU_A_STATS_MAX + 1];	/* by MGPU_A_STATS_* */
	bool has_interval;	/* dumps and events have no histograms */
	bool has_latency;
	uint64_t interval[MGPU_HIST_BUCKETS];
	uint64_t latency[MGPU_HIST_BUCKETS];
};

struct nl_dev {
	uint32_t id;
	char name[32];
	char backend[32];
	uint32_t engines;
	bool engine_on_cpu;
	uint32_t vgpus;
	uint32_t max_vgpus;
	char policy[MGPU_POLICY_NAME_LEN];	/* in force */
	char builtin[MGPU_POLICY_NAME_LEN];	/* chosen last */
	uint32_t job_timeout;			/* milliseconds */
	uint32_t hang_limit;			/* 0: no quarantine */
	uint32_t waiting;
	uint32_t policy_shares;		/* 1: the policy in force promises shares */
	uint64_t engine_ns;
	uint64_t charged_bpf_ns;
	uint64_t charged_self_ns;
	bool has_exit;		/* the members below are valid */
	uint32_t exit_kind;	/* MGPU_POLICY_EXIT_KIND_* */
	int32_t exit_code;
	uint32_t exit_vgpu;	/* 0 when absent */
	char exit_policy[MGPU_POLICY_NAME_LEN];
	char exit_message[MGPU_POLICY_EXIT_MSG_LEN];
};

struct nl_ctx {
	uint64_t vgpu_id;
	uint64_t id;
	char name[MGPU_CTX_NAME_LEN + 1];
	char op[16];
	uint64_t state;		/* MGPU_CTX_STATE_* */
	uint64_t slots;
	uint64_t slots_allowed;
	uint64_t slots_wanted;
	uint64_t queued;
	uint64_t job_inst;
	uint64_t job_inst_done;
	uint64_t jobs;
	uint64_t job_errors;
	uint64_t inst;
	uint64_t bytes;
	uint64_t engine_ns;
	uint64_t preemptions;
	uint64_t resumes;
	uint64_t flushes;
	uint64_t switch_ns;
	uint64_t copies;
};

/* The subject of @cmd is one of them; the other members are all zeros. */
struct nl_event {
	uint8_t cmd;
	struct nl_vgpu vgpu;
	struct nl_dev dev;
	struct nl_ctx ctx;
};

int nl_open(struct nl *nl);
void nl_close(struct nl *nl);
int nl_subscribe(struct nl *nl);
int nl_subscribe_contexts(struct nl *nl);

void nl_begin(struct nl *nl, struct nl_msg *m, uint8_t cmd, uint16_t flags);
void nl_put(struct nl_msg *m, uint16_t type, const void *data, size_t len);
void nl_put_u32(struct nl_msg *m, uint16_t type, uint32_t val);
void nl_put_str(struct nl_msg *m, uint16_t type, const char *s);
size_t nl_nest(struct nl_msg *m, uint16_t type);
void nl_nest_end(struct nl_msg *m, size_t at);
int nl_talk(struct nl *nl, struct nl_msg *m);	/* send, free, wait */

int nl_vgpu_get(struct nl *nl, const char *uuid, struct nl_vgpu *v);
/*
 * The same when it is closed, for which this waits: a vGPU's worker that pins memory, or
 * another process that reads the VMM's /proc, may keep the memory of a killed VMM, with
 * the mapping of the screen and so the device, a moment longer than the VMM.  -EBUSY if
 * it stays open.
 */
int nl_vgpu_get_closed(struct nl *nl, const char *uuid, struct nl_vgpu *v);
int nl_vgpu_dump(struct nl *nl, struct nl_vgpu *v, unsigned int max);
int nl_vgpu_set(struct nl *nl, const char *uuid, int64_t weight,
		int64_t fps_limit);	/* -1: leave as it is */

/* Set all settings of a vGPU in one message; NL_KEEP leaves one unchanged. */
#define NL_KEEP		(-1)
int nl_vgpu_set_full(struct nl *nl, const char *uuid, int64_t weight,
		     int64_t fps_limit, int64_t gpu_limit, int64_t gpu_period,
		     int64_t gpu_burst);
/* Set the mode; NL_KEEP leaves an attribute out. */
int nl_vgpu_set_mode(struct nl *nl, const char *uuid, int64_t width,
		     int64_t height);
/* Set the setting of an attribute. */
int nl_vgpu_set_one(struct nl *nl, const char *uuid, uint16_t attr, uint32_t value);
int nl_vgpu_set_quarantine(struct nl *nl, const char *uuid, uint32_t on);
int nl_vgpu_set_target(struct nl *nl, const char *uuid, uint32_t fps_target);
int nl_vgpu_set_gpu_target(struct nl *nl, const char *uuid, uint32_t ppm);
/* Put entries of a batch, between nl_begin() and nl_talk(). */
void nl_put_mode(struct nl_msg *m, const char *uuid, int64_t width,
		 int64_t height);
void nl_put_setting(struct nl_msg *m, const char *uuid, int64_t weight,
		    int64_t fps_limit, int64_t gpu_limit, int64_t gpu_period,
		    int64_t gpu_burst);

/*
 * Read histogram @attr, MGPU_A_VGPU_FRAME_INTERVAL_HIST or
 * MGPU_A_VGPU_LATENCY_HIST: the sum of its buckets, which go to @hist unless
 * it is NULL.  -ENODATA when the vGPU has none yet.
 */
int64_t nl_vgpu_hist(struct nl *nl, const char *uuid, uint16_t attr,
		     uint64_t hist[MGPU_HIST_BUCKETS]);

int nl_ctx_get(struct nl *nl, uint32_t vgpu, uint32_t id, struct nl_ctx *c);
/* Dump contexts of a vGPU, or of all if @vgpu is 0. Return their number. */
int nl_ctx_dump(struct nl *nl, uint32_t vgpu, struct nl_ctx *c,
		unsigned int max);

/* Devices are identified by name: VMM_PARENT. */
int nl_dev_get(struct nl *nl, const char *name, struct nl_dev *d);
int nl_dev_get_id(struct nl *nl, uint32_t id, struct nl_dev *d);
/* Set a device's settings; NULL and NL_KEEP leave one unchanged. */
int nl_dev_set(struct nl *nl, const char *name, const char *policy,
	       int64_t job_timeout_ms);
int nl_dev_set_slots(struct nl *nl, uint32_t id, uint32_t slots);
int nl_dev_set_hang_limit(struct nl *nl, const char *name, uint32_t limit);
int nl_dev_set_policy(struct nl *nl, const char *name, const char *policy);

/* Return the command of the next event, 0 when none comes in time. */
int nl_event(struct nl *nl, struct nl_vgpu *v, int timeout_ms);
int nl_event_next(struct nl *nl, struct nl_event *e, int timeout_ms);
/*
 * Wait for an event @cmd of the vGPU @uuid, or of any vGPU or device if @uuid is
 * NULL; drop events before it.  Return whether it came in time.  @e may be NULL.
 */
bool nl_event_wait(struct nl *nl, uint8_t cmd, const char *uuid,
		   struct nl_event *e, int timeout_ms);

/* Return a counter; all ones when the vGPU cannot be asked. */
uint64_t nl_stat(struct nl *nl, const char *uuid, unsigned int attr);

#endif /* KSELFTEST_NL_H */
