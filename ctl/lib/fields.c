// SPDX-License-Identifier: GPL-2.0-only
/*
 * The attributes by the names of Documentation/netlink/specs/mgpu.yaml, and
 * where the library keeps each.
 */
#include <string.h>

#include "mgpu.h"

#define FIELD(set, ATTR, spec_name, kind, strct, member)			\
	{								\
		.name = spec_name,					\
		.attr = MGPU_A_##set##_##ATTR,				\
		.type = MGPU_FIELD_##kind,				\
		.offset = offsetof(struct strct, member),		\
		.size = sizeof(((struct strct *)0)->member),		\
	}

#define DEV(ATTR, name, kind, member) \
	FIELD(DEV, ATTR, name, kind, mgpu_dev_info, member)

const struct mgpu_field mgpu_dev_fields[] = {
	DEV(ID, "id", U32, id),
	DEV(NAME, "name", STRING, name),
	DEV(BACKEND, "backend", STRING, backend),
	DEV(ENGINES, "engines", U32, engines),
	DEV(ENGINE_ON_CPU, "engine-on-cpu", U8, engine_on_cpu),
	DEV(POLICY, "policy", STRING, policy),
	DEV(VGPUS, "vgpus", U32, vgpus),
	DEV(MAX_VGPUS, "max-vgpus", U32, max_vgpus),
	DEV(ENGINE_NS, "engine-ns", U64, engine_ns),
	DEV(CHARGED_BPF_NS, "charged-bpf-ns", U64, charged_bpf_ns),
	DEV(CHARGED_SELF_NS, "charged-self-ns", U64, charged_self_ns),
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
	STAT(QUEUE_NS, "queue-ns", queue_ns),
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
	{ .attr = 0 }
};

_Static_assert(MGPU_A_DEV_MAX < 32 && MGPU_A_VGPU_MAX < 32 &&
	       MGPU_A_STATS_MAX < 32, "present has too few bits");

/* mgpu_has() finds it wherever the fields are. */
_Static_assert(offsetof(struct mgpu_dev_info, present) == 0 &&
	       offsetof(struct mgpu_vgpu_info, present) == 0 &&
	       offsetof(struct mgpu_vgpu_stats, present) == 0,
	       "present comes first");

const struct mgpu_field *mgpu_field_find(const struct mgpu_field *fields,
					 const char *name)
{
	for (; fields->attr; fields++)
		if (!strcmp(fields->name, name))
			return fields;
	return NULL;
}

bool mgpu_field_present(const struct mgpu_field *field, const void *info)
{
	const uint32_t *present = info;

	return *present & (UINT32_C(1) << field->attr);
}

uint64_t mgpu_field_u64(const struct mgpu_field *field, const void *info)
{
	const char *at = (const char *)info + field->offset;
	uint64_t u64;
	uint32_t u32;

	switch (field->type) {
	case MGPU_FIELD_U8:
		return *(const uint8_t *)at;
	case MGPU_FIELD_U32:
		memcpy(&u32, at, sizeof(u32));
		return u32;
	case MGPU_FIELD_U64:
		memcpy(&u64, at, sizeof(u64));
		return u64;
	case MGPU_FIELD_STRING:
	case MGPU_FIELD_NEST:
		break;
	}
	return 0;
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
	}
	return NULL;
}
