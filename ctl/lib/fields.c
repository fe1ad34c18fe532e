// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tables of attributes: their names in Documentation/netlink/specs/mgpu.yaml, their fields
 * in the library's structs, their units, and their keys in JSON.
 */
#include <stdio.h>
#include <string.h>
#include <linux/mgpu_compute.h>

#include "mgpu.h"

#define FIELD(set, ATTR, spec_name, kind, strct, member)			\
	{								\
		.name = spec_name,					\
		.attr = MGPU_A_##set##_##ATTR,				\
		.type = MGPU_FIELD_##kind,				\
		.offset = offsetof(struct strct, member),		\
		.size = sizeof(((struct strct *)0)->member),		\
	}

static const char *const exit_kinds[] = {
	[MGPU_POLICY_EXIT_KIND_NONE] = "none",
	[MGPU_POLICY_EXIT_KIND_UNLOADED] = "unloaded",
	[MGPU_POLICY_EXIT_KIND_REPLACED] = "replaced",
	[MGPU_POLICY_EXIT_KIND_SWITCHED] = "switched",
	[MGPU_POLICY_EXIT_KIND_STARVED] = "starved",
	[MGPU_POLICY_EXIT_KIND_STALLED] = "stalled",
	[MGPU_POLICY_EXIT_KIND_ERROR] = "error",
	NULL
};

#define POLICY_EXIT(ATTR, name, kind, member) \
	FIELD(POLICY_EXIT, ATTR, name, kind, mgpu_policy_exit_info, member)

const struct mgpu_field mgpu_policy_exit_fields[] = {
	{
		.name = "kind",
		.attr = MGPU_A_POLICY_EXIT_KIND,
		.type = MGPU_FIELD_U32,
		.offset = offsetof(struct mgpu_policy_exit_info, kind),
		.size = sizeof(uint32_t),
		.values = exit_kinds,
	},
	POLICY_EXIT(CODE, "code", S32, code),
	POLICY_EXIT(POLICY, "policy", STRING, policy),
	POLICY_EXIT(VGPU_ID, "vgpu-id", U32, vgpu_id),
	POLICY_EXIT(MESSAGE, "message", STRING, message),
	{ .attr = 0 }
};

#define DEV(ATTR, name, kind, member) \
	FIELD(DEV, ATTR, name, kind, mgpu_dev_info, member)

const struct mgpu_field mgpu_dev_fields[] = {
	DEV(ID, "id", U32, id),
	DEV(NAME, "name", STRING, name),
	DEV(BACKEND, "backend", STRING, backend),
	DEV(ENGINES, "engines", U32, engines),
	DEV(ENGINE_ON_CPU, "engine-on-cpu", U8, engine_on_cpu),
	DEV(POLICY, "policy", STRING, policy),
	DEV(BUILTIN_POLICY, "builtin-policy", STRING, builtin_policy),
	DEV(JOB_TIMEOUT, "job-timeout", U32, job_timeout),
	DEV(VGPUS, "vgpus", U32, vgpus),
	DEV(MAX_VGPUS, "max-vgpus", U32, max_vgpus),
	DEV(WAITING, "waiting", U32, waiting),
	DEV(ENGINE_NS, "engine-ns", U64, engine_ns),
	DEV(CHARGED_BPF_NS, "charged-bpf-ns", U64, charged_bpf_ns),
	DEV(CHARGED_SELF_NS, "charged-self-ns", U64, charged_self_ns),
	{
		.name = "policy-exit",
		.attr = MGPU_A_DEV_POLICY_EXIT,
		.type = MGPU_FIELD_NEST,
		.offset = offsetof(struct mgpu_dev_info, policy_exit),
		.size = sizeof(struct mgpu_policy_exit_info),
		.nest = mgpu_policy_exit_fields,
	},
	DEV(SLOTS, "slots", U32, slots),
	DEV(POLICY_SHARES, "policy-shares", U8, policy_shares),
	DEV(HANG_LIMIT, "hang-limit", U32, hang_limit),
	{ .attr = 0 }
};

#define STAT(ATTR, name, member) \
	FIELD(STATS, ATTR, name, U64, mgpu_vgpu_stats, member)

const struct mgpu_field mgpu_stats_fields[] = {
	STAT(FRAMES, "frames", frames),
	STAT(JOBS, "jobs", jobs),
	STAT(JOB_ERRORS, "job-errors", job_errors),
	STAT(BYTES, "bytes", bytes),
	STAT(ENGINE_NS, "engine-ns", engine_ns),
	STAT(ENGINE_CYCLES, "engine-cycles", engine_cycles),
	STAT(CHARGED_BPF_NS, "charged-bpf-ns", charged_bpf_ns),
	STAT(CHARGED_SELF_NS, "charged-self-ns", charged_self_ns),
	STAT(THROTTLED_NS, "throttled-ns", throttled_ns),
	STAT(THROTTLED, "throttled", throttled),
	STAT(LIMITED_NS, "limited-ns", limited_ns),
	STAT(LIMITED, "limited", limited),
	STAT(QUEUE_NS, "queue-ns", queue_ns),
	STAT(PREEMPTED, "preempted", preempted),
	STAT(TIMEOUTS, "timeouts", timeouts),
	STAT(HANGS, "hangs", hangs),
	STAT(LOST, "lost", lost),
	STAT(COMMANDS, "commands", commands),
	STAT(COMMAND_ERRORS, "command-errors", command_errors),
	STAT(DOORBELLS, "doorbells", doorbells),
	STAT(INTERRUPTS, "interrupts", interrupts),
	STAT(RESETS, "resets", resets),
	{ .attr = 0 }
};

static const char *const charge_sources[] = {
	[MGPU_CHARGE_SOURCE_MODULE] = "module",
	[MGPU_CHARGE_SOURCE_BPF] = "bpf",
	NULL
};

#define VGPU(ATTR, name, kind, member) \
	FIELD(VGPU, ATTR, name, kind, mgpu_vgpu_info, member)

const struct mgpu_field mgpu_vgpu_fields[] = {
	VGPU(ID, "id", U32, id),
	VGPU(UUID, "uuid", STRING, uuid),
	VGPU(DEV_ID, "dev-id", U32, dev_id),
	VGPU(DEV_NAME, "dev-name", STRING, dev_name),
	VGPU(TYPE, "type", STRING, type),
	VGPU(OPEN, "open", U8, open),
	VGPU(TGID, "tgid", U32, tgid),
	VGPU(WEIGHT, "weight", U32, weight),
	VGPU(FPS_LIMIT, "fps-limit", U32, fps_limit),
	VGPU(FPS_LIMIT_BY, "fps-limit-by", STRING, fps_limit_by),
	VGPU(FPS_TARGET, "fps-target", U32, fps_target),
	VGPU(FPS_TARGET_BY, "fps-target-by", STRING, fps_target_by),
	VGPU(FPS_FLOOR, "fps-floor", U32, fps_floor),
	VGPU(GPU_LIMIT, "gpu-limit", U32, gpu_limit),
	VGPU(GPU_LIMIT_BY, "gpu-limit-by", STRING, gpu_limit_by),
	VGPU(GPU_TARGET, "gpu-target", U32, gpu_target),
	VGPU(GPU_TARGET_BY, "gpu-target-by", STRING, gpu_target_by),
	VGPU(GPU_PERIOD, "gpu-period", U32, gpu_period),
	VGPU(GPU_BURST, "gpu-burst", U32, gpu_burst),
	VGPU(MODE_WIDTH, "mode-width", U32, mode_width),
	VGPU(MODE_HEIGHT, "mode-height", U32, mode_height),
	VGPU(QUARANTINE, "quarantine", U32, quarantine),
	VGPU(MEM_USED, "mem-used", U64, mem_used),
	VGPU(MEM_LIMIT, "mem-limit", U64, mem_limit),
	VGPU(PINNED_PAGES, "pinned-pages", U64, pinned_pages),
	VGPU(SCANOUT_WIDTH, "scanout-width", U32, scanout_width),
	VGPU(SCANOUT_HEIGHT, "scanout-height", U32, scanout_height),
	{
		.name = "charge-source",
		.attr = MGPU_A_VGPU_CHARGE_SOURCE,
		.type = MGPU_FIELD_U32,
		.offset = offsetof(struct mgpu_vgpu_info, charge_source),
		.size = sizeof(uint32_t),
		.values = charge_sources,
	},
	{
		.name = "stats",
		.attr = MGPU_A_VGPU_STATS,
		.type = MGPU_FIELD_NEST,
		.offset = offsetof(struct mgpu_vgpu_info, stats),
		.size = sizeof(struct mgpu_vgpu_stats),
		.nest = mgpu_stats_fields,
	},
	VGPU(FRAME_INTERVAL_HIST, "frame-interval-hist", BINARY,
	     frame_interval_hist),
	VGPU(LATENCY_HIST, "latency-hist", BINARY, latency_hist),
	{ .attr = 0 }
};

static const char *const ctx_states[] = {
	[MGPU_CTX_STATE_IDLE] = "idle",
	[MGPU_CTX_STATE_WAITING] = "waiting",
	[MGPU_CTX_STATE_RUNNING] = "running",
	[MGPU_CTX_STATE_PREEMPTED] = "preempted",
	[MGPU_CTX_STATE_HELD] = "held",
	NULL
};

const char *const mgpu_preempt_methods[] = {
	[MGPU_PREEMPT_METHOD_SWITCH] = "switch",
	[MGPU_PREEMPT_METHOD_DRAIN] = "drain",
	[MGPU_PREEMPT_METHOD_FLUSH] = "flush",
	NULL
};

const char *mgpu_ctx_op_name(uint32_t op)
{
	static const char *const names[] = {
		[MGPU_COMPUTE_FILL] = "fill",
		[MGPU_COMPUTE_COPY] = "copy",
		[MGPU_COMPUTE_SCALE] = "scale",
		[MGPU_COMPUTE_MATMUL] = "matmul",
		[MGPU_COMPUTE_MANDELBROT] = "mandelbrot",
		[MGPU_COMPUTE_HASH] = "hash",
		[MGPU_COMPUTE_GATHER] = "gather",
		[MGPU_COMPUTE_ACCUMULATE] = "accumulate",
	};

	return op < sizeof(names) / sizeof(names[0]) ? names[op] : NULL;
}

#define CTX(ATTR, name, kind, member) \
	FIELD(CTX, ATTR, name, kind, mgpu_ctx, member)

const struct mgpu_field mgpu_ctx_fields[] = {
	CTX(VGPU_ID, "vgpu-id", U32, vgpu_id),
	CTX(ID, "id", U32, id),
	CTX(DEV_ID, "dev-id", U32, dev_id),
	CTX(NAME, "name", STRING, name),
	{
		.name = "state",
		.attr = MGPU_A_CTX_STATE,
		.type = MGPU_FIELD_U32,
		.offset = offsetof(struct mgpu_ctx, state),
		.size = sizeof(uint32_t),
		.values = ctx_states,
	},
	CTX(OP, "op", STRING, op),
	CTX(SLOTS, "slots", U32, slots),
	CTX(SLOTS_ALLOWED, "slots-allowed", U32, slots_allowed),
	CTX(SLOTS_WANTED, "slots-wanted", U32, slots_wanted),
	CTX(QUEUED, "queued", U32, queued),
	CTX(IDEMPOTENT, "idempotent", U8, idempotent),
	CTX(JOB_INST, "job-inst", U64, job_inst),
	CTX(JOB_INST_DONE, "job-inst-done", U64, job_inst_done),
	CTX(JOB_BYTES, "job-bytes", U64, job_bytes),
	CTX(LIVE_BYTES, "live-bytes", U32, live_bytes),
	CTX(ARRIVED_NS, "arrived-ns", U64, arrived_ns),
	CTX(JOBS, "jobs", U64, jobs),
	CTX(JOB_ERRORS, "job-errors", U64, job_errors),
	CTX(INST, "inst", U64, inst),
	CTX(BYTES, "bytes", U64, bytes),
	CTX(ENGINE_NS, "engine-ns", U64, engine_ns),
	CTX(ENGINE_CYCLES, "engine-cycles", U64, engine_cycles),
	CTX(PREEMPTIONS, "preemptions", U64, preemptions),
	CTX(RESUMES, "resumes", U64, resumes),
	CTX(FLUSHES, "flushes", U64, flushes),
	CTX(SWITCH_NS, "switch-ns", U64, switch_ns),
	CTX(COPIES, "copies", U64, copies),
	{ .attr = 0 }
};

#define CTX_ORDER(ATTR, name, kind, member) \
	FIELD(CTX, ATTR, name, kind, mgpu_ctx_order, member)

const struct mgpu_field mgpu_ctx_order_fields[] = {
	CTX_ORDER(VGPU_ID, "vgpu-id", U32, vgpu_id),
	CTX_ORDER(ID, "id", U32, id),
	CTX_ORDER(SLOTS, "slots", U32, slots),
	{
		.name = "method",
		.attr = MGPU_A_CTX_METHOD,
		.type = MGPU_FIELD_U32,
		.offset = offsetof(struct mgpu_ctx_order, method),
		.size = sizeof(uint32_t),
		.values = mgpu_preempt_methods,
	},
	CTX_ORDER(HOLD, "hold", U8, hold),
	CTX_ORDER(FIRST, "first", U8, first),
	{ .attr = 0 }
};

/*
 * Attributes with a unit, in whichever set. Those whose name ends in -ns are nanoseconds,
 * and those of one byte are flags.
 */
static const struct {
	const char *name;
	enum mgpu_unit unit;
	bool limit;
} units[] = {
	{ "bytes", MGPU_UNIT_BYTES, false },
	{ "fps-floor", MGPU_UNIT_MILLIHERTZ, true },
	{ "fps-limit", MGPU_UNIT_MILLIHERTZ, true },
	{ "fps-target", MGPU_UNIT_MILLIHERTZ, true },
	{ "gpu-burst", MGPU_UNIT_US, false },
	{ "gpu-limit", MGPU_UNIT_PPM, true },
	{ "gpu-target", MGPU_UNIT_PPM, true },
	{ "gpu-period", MGPU_UNIT_US, false },
	{ "hang-limit", MGPU_UNIT_NONE, true },
	{ "job-bytes", MGPU_UNIT_BYTES, false },
	{ "job-timeout", MGPU_UNIT_MS, false },
	{ "live-bytes", MGPU_UNIT_BYTES, false },
	{ "mem-limit", MGPU_UNIT_BYTES, false },
	{ "mem-used", MGPU_UNIT_BYTES, false },
	{ "mode-height", MGPU_UNIT_PIXELS, false },
	{ "mode-width", MGPU_UNIT_PIXELS, false },
	{ "quarantine", MGPU_UNIT_FLAG, false },
	{ "scanout-height", MGPU_UNIT_PIXELS, false },
	{ "scanout-width", MGPU_UNIT_PIXELS, false },
};

/* Words of the units: in the specification's names, in JSON's keys; and decimals. */
static const struct {
	const char *spec;
	const char *json;
	int decimals;
} unit_words[] = {
	[MGPU_UNIT_NONE] = { NULL, NULL, 0 },
	[MGPU_UNIT_FLAG] = { NULL, NULL, 0 },
	[MGPU_UNIT_BYTES] = { "bytes", "bytes", 0 },
	[MGPU_UNIT_PIXELS] = { NULL, "px", 0 },
	[MGPU_UNIT_MILLIHERTZ] = { "fps", "fps", 3 },
	[MGPU_UNIT_PPM] = { NULL, "share", 6 },
	[MGPU_UNIT_NS] = { "ns", "s", 9 },
	[MGPU_UNIT_US] = { NULL, "s", 6 },
	[MGPU_UNIT_MS] = { NULL, "s", 3 },
};

_Static_assert(MGPU_A_DEV_MAX < 64 && MGPU_A_VGPU_MAX < 64 &&
	       MGPU_A_STATS_MAX < 64 && MGPU_A_POLICY_EXIT_MAX < 64 &&
	       MGPU_A_CTX_MAX < 64,
	       "present has too few bits");

/* mgpu_has() needs @present at the begin of each struct. */
_Static_assert(offsetof(struct mgpu_dev_info, present) == 0 &&
	       offsetof(struct mgpu_vgpu_info, present) == 0 &&
	       offsetof(struct mgpu_vgpu_stats, present) == 0 &&
	       offsetof(struct mgpu_policy_exit_info, present) == 0 &&
	       offsetof(struct mgpu_ctx, present) == 0 &&
	       offsetof(struct mgpu_ctx_order, present) == 0,
	       "present comes first");

const struct mgpu_field *mgpu_field_find(const struct mgpu_field *fields,
					 const char *name)
{
	for (; fields->attr; fields++)
		if (!strcmp(fields->name, name))
			return fields;
	return NULL;
}

static bool ends_in_ns(const char *name)
{
	size_t len = strlen(name);

	return len > 3 && !strcmp(name + len - 3, "-ns");
}

enum mgpu_unit mgpu_field_unit(const struct mgpu_field *field)
{
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(units[i].name, field->name))
			return units[i].unit;
	if (ends_in_ns(field->name))
		return MGPU_UNIT_NS;
	return field->type == MGPU_FIELD_U8 ? MGPU_UNIT_FLAG : MGPU_UNIT_NONE;
}

bool mgpu_field_is_limit(const struct mgpu_field *field)
{
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(units[i].name, field->name))
			return units[i].limit;
	return false;
}

int mgpu_unit_decimals(enum mgpu_unit unit)
{
	return unit_words[unit].decimals;
}

/* The first or last word of a name is dropped if it is the specification's unit. */
const char *mgpu_field_key(const struct mgpu_field *field, char key[MGPU_KEY_LEN])
{
	enum mgpu_unit unit = mgpu_field_unit(field);
	const char *spec = unit_words[unit].spec, *json = unit_words[unit].json;
	const char *begin = field->name;
	size_t len = strlen(begin), word = spec ? strlen(spec) : 0;
	char *c;

	if (spec && len > word && !strncmp(begin, spec, word) && begin[word] == '-') {
		begin += word + 1;
		len -= word + 1;
	} else if (spec && len > word && !strcmp(begin + len - word, spec) &&
		   begin[len - word - 1] == '-') {
		len -= word + 1;
	} else if (spec && !strcmp(begin, spec)) {
		len = 0;
	}
	snprintf(key, MGPU_KEY_LEN, "%.*s%s%s", (int)len, begin, len && json ? "_" : "",
		 json ? json : "");
	for (c = key; *c; c++)
		if (*c == '-')
			*c = '_';
	return key;
}

bool mgpu_field_present(const struct mgpu_field *field, const void *info)
{
	const uint64_t *present = info;

	return *present & MGPU_HAS(field->attr);
}

uint64_t mgpu_field_u64(const struct mgpu_field *field, const void *info)
{
	const char *at = (const char *)info + field->offset;
	uint64_t u64;
	uint32_t u32;
	int32_t s32;

	switch (field->type) {
	case MGPU_FIELD_U8:
		return *(const uint8_t *)at;
	case MGPU_FIELD_U32:
		memcpy(&u32, at, sizeof(u32));
		return u32;
	case MGPU_FIELD_S32:
		memcpy(&s32, at, sizeof(s32));
		return (uint64_t)(int64_t)s32;
	case MGPU_FIELD_U64:
		memcpy(&u64, at, sizeof(u64));
		return u64;
	case MGPU_FIELD_STRING:
	case MGPU_FIELD_BINARY:
	case MGPU_FIELD_NEST:
		break;
	}
	return 0;
}

const uint64_t *mgpu_field_hist(const struct mgpu_field *field,
				const void *info)
{
	if (field->type != MGPU_FIELD_BINARY)
		return NULL;
	return (const uint64_t *)(const void *)((const char *)info +
						field->offset);
}

const char *mgpu_field_str(const struct mgpu_field *field, const void *info)
{
	uint64_t value;
	uint64_t i;

	if (field->type == MGPU_FIELD_STRING)
		return (const char *)info + field->offset;
	if (!field->values)
		return NULL;

	value = mgpu_field_u64(field, info);
	for (i = 0; i < value && field->values[i]; i++)
		;
	return field->values[i];
}

const char *mgpu_event_name(uint8_t cmd)
{
	switch (cmd) {
	case MGPU_CMD_VGPU_ADDED_NTF:
		return "vgpu-added-ntf";
	case MGPU_CMD_VGPU_REMOVED_NTF:
		return "vgpu-removed-ntf";
	case MGPU_CMD_VGPU_OPENED_NTF:
		return "vgpu-opened-ntf";
	case MGPU_CMD_VGPU_CLOSED_NTF:
		return "vgpu-closed-ntf";
	case MGPU_CMD_VGPU_HUNG_NTF:
		return "vgpu-hung-ntf";
	case MGPU_CMD_VGPU_QUARANTINE_NTF:
		return "vgpu-quarantine-ntf";
	case MGPU_CMD_DEV_POLICY_NTF:
		return "dev-policy-ntf";
	case MGPU_CMD_DEV_POLICY_EXIT_NTF:
		return "dev-policy-exit-ntf";
	case MGPU_CMD_CTX_NTF:
		return "ctx-ntf";
	}
	return NULL;
}

bool mgpu_event_is_dev(uint8_t cmd)
{
	const char *name = mgpu_event_name(cmd);

	return name && !strncmp(name, "dev-", 4);
}

bool mgpu_event_is_ctx(uint8_t cmd)
{
	return cmd == MGPU_CMD_CTX_NTF;
}
