// SPDX-License-Identifier: GPL-2.0-only
/*
 * Types of vGPUs, and the slots that they take of their parent.  Pure.
 *
 * A parent says of each type how many more vGPUs of it could be made.  A type of which as many fit
 * as of the smallest takes one slot.  Of the others fewer fit, whatever limits them, and they take
 * more: as many slots as vGPUs of the smallest type fit in the place of one.
 */
#include <stdio.h>
#include <string.h>

#include "host_private.h"

/* Bound of the numbers that libvirt and sysfs give: more than any GPU has. */
#define INSTANCES_MAX	65536u

static unsigned int room(const struct host_type *type)
{
	return type->available < INSTANCES_MAX ? type->available : INSTANCES_MAX;
}

static uint32_t slots_of(const struct host_type *type, unsigned int left, unsigned int most)
{
	unsigned int fit = room(type) + type->ours;

	if (room(type) == left)
		return 1;
	return !fit ? most : most / fit ? most / fit : 1;
}

/* "NAME", "NAME:SLOTS" or "NAME:SLOTS:CAPABILITIES". False: no room. */
static bool add(struct pool_gpu *gpu, const struct host_type *type, uint32_t slots)
{
	char word[2 * POOL_TYPE_MAX], able[16];
	size_t len = strlen(gpu->types);

	pool_capabilities_text(type->capabilities, able);
	if (type->capabilities != gpu->capabilities)
		snprintf(word, sizeof(word), "%s:%u:%s", type->name, slots, *able ? able : "none");
	else if (slots > 1)
		snprintf(word, sizeof(word), "%s:%u", type->name, slots);
	else
		snprintf(word, sizeof(word), "%s", type->name);
	if (len + strlen(word) + 2 > sizeof(gpu->types))
		return false;
	sprintf(gpu->types + len, "%s%s", len ? " " : "", word);
	return true;
}

void types_fill(struct pool_gpu *gpu, const struct host_type *types, size_t nr)
{
	unsigned int left = 0, most = 0;

	for (size_t i = 0; i < nr; i++) {
		if (room(&types[i]) > left)
			left = room(&types[i]);
		if (room(&types[i]) + types[i].ours > most)
			most = room(&types[i]) + types[i].ours;
		gpu->capabilities |= types[i].capabilities;
	}
	gpu->slots = left;
	for (size_t i = 0; i < nr; i++) {
		uint32_t slots = slots_of(&types[i], left, most);

		gpu->slots += slots * types[i].ours;
		if (!add(gpu, &types[i], slots))
			break;
	}
}
