// SPDX-License-Identifier: GPL-2.0-only
/* A host's report is merged with the state known before. */
#include <errno.h>
#include <string.h>

#include "hosts.h"

/* The API marks so what an administrator took out. */
static bool by_admin(const struct pool_gpu *gpu)
{
	return gpu->offline && !strncmp(gpu->why, API_OFFLINE, strlen(API_OFFLINE));
}

bool hosts_merge_gpu(struct pool_gpu *gpu, const struct pool_gpu *old)
{
	if (!old)
		return false;
	if (by_admin(old)) {
		gpu->offline = true;
		strcpy(gpu->why, old->why);
	}
	if (*old->device && *gpu->device && strcmp(old->device, gpu->device))
		return true;
	if (old->used)
		gpu->managed |= old->managed;
	if (*old->model)
		strcpy(gpu->model, old->model);
	if (old->memory_mib)
		gpu->memory_mib = old->memory_mib;
	if (old->capabilities)
		gpu->capabilities = old->capabilities;
	if (old->precisions)
		gpu->precisions = old->precisions;
	return false;
}

int hosts_merge_vm(struct pool_vm *vm, const struct pool_vm *old, const char *default_project)
{
	strcpy(vm->project, default_project);
	vm->pinned = false;
	vm->consent = vm->seen = 0;
	vm->seq = 0;
	if (!old)
		return 0;
	if (strcmp(old->uuid, vm->uuid))
		return strcmp(old->host, vm->host) ? -EEXIST : 1;
	strcpy(vm->project, old->project);
	vm->pinned = old->pinned;
	vm->consent = old->consent;
	vm->seen = old->seen;
	vm->seq = old->seq;
	return 0;
}
