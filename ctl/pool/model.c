// SPDX-License-Identifier: GPL-2.0-only
/* Names of the pool's enumerations. */
#include <stdio.h>
#include <string.h>

#include "model.h"

static const char *const targets[POOL_TARGETS] = {
	[POOL_ANY] = "any",
	[POOL_WHOLE] = "whole",
	[POOL_VGPU] = "vgpu",
};

static const char *const precisions[POOL_PRECISIONS] = {
	[POOL_PRECISION_ANY] = "any",
	[POOL_FP64] = "fp64",
	[POOL_FP32] = "fp32",
	[POOL_FP16] = "fp16",
	[POOL_FP8] = "fp8",
};

static const char *const states[POOL_STATES] = {
	[POOL_QUEUED] = "queued",
	[POOL_ATTACHING] = "attaching",
	[POOL_ACTIVE] = "active",
	[POOL_RELEASING] = "releasing",
	[POOL_RELEASED] = "released",
	[POOL_FAILED] = "failed",
	[POOL_CANCELLED] = "cancelled",
};

static const struct {
	uint32_t bit;
	const char *name;
} capabilities[] = {
	{ POOL_3D, "3d" },
	{ POOL_COMPUTE, "compute" },
};

#define NR_CAPABILITIES	(sizeof(capabilities) / sizeof(*capabilities))

static const char *name_of(const char *const *names, unsigned int nr, unsigned int value)
{
	return value < nr ? names[value] : NULL;
}

static int value_of(const char *const *names, unsigned int nr, const char *name)
{
	for (unsigned int i = 0; i < nr; i++)
		if (!strcmp(names[i], name))
			return (int)i;
	return -1;
}

const char *pool_target_name(enum pool_target target)
{
	return name_of(targets, POOL_TARGETS, target);
}

const char *pool_precision_name(enum pool_precision precision)
{
	return name_of(precisions, POOL_PRECISIONS, precision);
}

const char *pool_state_name(enum pool_state state)
{
	return name_of(states, POOL_STATES, state);
}

int pool_target_of(const char *name)
{
	return value_of(targets, POOL_TARGETS, name);
}

int pool_precision_of(const char *name)
{
	return value_of(precisions, POOL_PRECISIONS, name);
}

int pool_state_of(const char *name)
{
	return value_of(states, POOL_STATES, name);
}

static uint32_t capability_of(const char *name, size_t len)
{
	for (size_t i = 0; i < NR_CAPABILITIES; i++)
		if (strlen(capabilities[i].name) == len && !memcmp(capabilities[i].name, name, len))
			return capabilities[i].bit;
	return 0;
}

int pool_capabilities_of(const char *names)
{
	uint32_t mask = 0;

	while (*names) {
		size_t len = strcspn(names, ",");
		uint32_t bit = capability_of(names, len);

		/* A comma at the end has no name behind it. */
		if (!bit || (names[len] && !names[len + 1]))
			return -1;
		mask |= bit;
		names += len + (names[len] == ',');
	}
	return (int)mask;
}

void pool_capabilities_text(uint32_t mask, char text[16])
{
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < NR_CAPABILITIES; i++)
		if (mask & capabilities[i].bit)
			at += (size_t)snprintf(text + at, 16 - at, "%s%s", at ? "," : "",
					       capabilities[i].name);
}

void pool_type_names(const struct pool_gpu *gpu, char names[POOL_TEXT_MAX])
{
	bool name = true;

	for (const char *at = gpu->types; *at; at++) {
		if (*at == ' ' || *at == ':')
			name = *at == ' ';
		if (name)
			*names++ = *at;
	}
	*names = '\0';
}

bool pool_name_ok(const char *name)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = strspn(name, letters);

	return len && !name[len] && len < POOL_NAME_MAX && name[0] != '-' && name[0] != '.';
}

bool pool_is_of(const struct pool_request *r, const struct pool_vm *vm)
{
	return !strcmp(r->vm, vm->name) && (!*r->vm_uuid || !strcmp(r->vm_uuid, vm->uuid));
}
