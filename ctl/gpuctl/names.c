// SPDX-License-Identifier: GPL-2.0-only
/* Names of vGPUs and of the VMs that have them. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl.h"

void names_read(struct vgpu_names *names, const struct mgpu_vgpu_info *vgpu)
{
	*names->vm = '\0';
	if (mgpu_has(vgpu, MGPU_A_VGPU_TGID))
		vm_name_of_process(gpuctl_root, vgpu->tgid, names->vm);
	vgpu_name_read(gpuctl_root, vgpu->uuid, names->given);
}

const char *names_shown(const struct vgpu_names *names)
{
	return *names->vm ? names->vm : *names->given ? names->given : "-";
}

const char *vgpu_name(const struct mgpu_vgpu_info *vgpu, char name[VM_NAME_LEN])
{
	struct vgpu_names names;

	names_read(&names, vgpu);
	return strcpy(name, names_shown(&names));
}

static struct json_object *text_or_null(const char *text)
{
	return *text ? json_object_new_string(text) : NULL;
}

void out_names(struct json_object *object, const struct vgpu_names *names)
{
	json_object_object_add(object, "vm", text_or_null(names->vm));
	json_object_object_add(object, "name", text_or_null(names->given));
}

void names_list_read(struct names_list *list)
{
	struct mgpu *mgpu;

	memset(list, 0, sizeof(*list));
	if (mgpu_open(&mgpu, NULL))
		return;
	if (mgpu_vgpu_list(mgpu, NULL, &list->vgpus, &list->nr, NULL))
		memset(list, 0, sizeof(*list));
	mgpu_close(mgpu);
}

void names_list_free(struct names_list *list)
{
	free(list->vgpus);
	memset(list, 0, sizeof(*list));
}

bool names_find(const struct names_list *list, const char *uuid, struct vgpu_names *names)
{
	memset(names, 0, sizeof(*names));
	for (size_t i = 0; i < list->nr; i++) {
		if (strcasecmp(list->vgpus[i].uuid, uuid))
			continue;
		names_read(names, &list->vgpus[i]);
		return true;
	}
	return false;
}

static bool is_entry(const struct names_entry *entry, const struct mgpu_vgpu_info *vgpu)
{
	return entry->id == vgpu->id && entry->tgid == vgpu->tgid &&
	       !strcmp(entry->uuid, vgpu->uuid);
}

int names_cache_update(struct names_cache *cache, const struct mgpu_vgpu_info *vgpus, size_t nr,
		       struct mgpu_error *err)
{
	struct names_entry *entries = calloc(nr + 1, sizeof(*entries));
	size_t i, old = 0;

	if (!entries)
		return mgpu_fail(err, -ENOMEM, "out of memory");
	for (i = 0; i < nr; i++) {
		while (old < cache->nr && cache->entries[old].id < vgpus[i].id)
			old++;
		if (old < cache->nr && is_entry(&cache->entries[old], &vgpus[i])) {
			entries[i] = cache->entries[old];
			continue;
		}
		entries[i].id = vgpus[i].id;
		entries[i].tgid = vgpus[i].tgid;
		strcpy(entries[i].uuid, vgpus[i].uuid);
		names_read(&entries[i].names, &vgpus[i]);
	}
	free(cache->entries);
	cache->entries = entries;
	cache->nr = nr;
	return 0;
}

void names_cache_free(struct names_cache *cache)
{
	free(cache->entries);
	memset(cache, 0, sizeof(*cache));
}
