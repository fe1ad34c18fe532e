// SPDX-License-Identifier: GPL-2.0-only
/* Set the limits of a plan in the kernel module. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "frames/apply.h"

static uint32_t millihertz(double fps)
{
	double mhz = round(fps * 1000);

	if (!isfinite(fps) || mhz > MGPU_FPS_LIMIT_MAX)
		return 0;
	return mhz < MGPU_FPS_LIMIT_MIN ? MGPU_FPS_LIMIT_MIN : (uint32_t)mhz;
}

/*
 * An allocator without targets removes, once, the limits that it finds: those of the
 * allocator before, or of the mgpud before.
 */
static bool free_once(struct applier *a, const struct sample_vgpu *v)
{
	if (v->id >= APPLY_IDS || !strcmp(a->freed[v->id], v->uuid))
		return false;
	strcpy(a->freed[v->id], v->uuid);
	return true;
}

/* Remove vGPUs from the batch that no longer exist. */
static int still_there(struct mgpu *mgpu, struct mgpu_vgpu_setting *set, size_t *nr,
		       struct mgpu_error *err)
{
	struct mgpu_vgpu_info *now;
	size_t n, kept = 0, k = 0;
	int ret;

	ret = mgpu_vgpu_list(mgpu, NULL, &now, &n, err);
	if (ret)
		return ret;
	for (size_t j = 0; j < *nr; j++) {
		while (k < n && now[k].id < set[j].id)
			k++;
		if (k < n && now[k].id == set[j].id)
			set[kept++] = set[j];
	}
	free(now);
	*nr = kept;
	return 0;
}

int apply(struct applier *a, struct mgpu *mgpu, const struct settings *set,
	  const struct estimate *e, const struct plan *plan,
	  struct applied *result, struct mgpu_error *err)
{
	bool limits = set->allocator->allocate;
	size_t n = 0;
	int ret = 0;

	result->changed = 0;
	result->set = calloc(plan->nr ? plan->nr : 1, sizeof(*result->set));
	if (!a->freed)
		a->freed = calloc(APPLY_IDS, sizeof(*a->freed));
	if (!result->set || !a->freed)
		return mgpu_fail(err, -ENOMEM, "out of memory");
	if (a->allocator != set->allocator) {
		memset(a->freed, 0, APPLY_IDS * sizeof(*a->freed));
		a->allocator = set->allocator;
	}

	for (size_t j = 0; j < plan->nr; j++) {
		const struct sample_vgpu *v = &e->vgpus[j].last;
		uint32_t want = millihertz(plan->targets[j].limit);

		if (plan->targets[j].keep || (!limits && !free_once(a, v)) ||
		    want == v->fps_limit)
			continue;
		result->set[n++] = (struct mgpu_vgpu_setting){
			.id = v->id,
			.mask = MGPU_SETTING_FPS_LIMIT,
			.fps_limit = want,
		};
	}
	result->changed = n;
	if (!mgpu || !n)
		return 0;
	ret = mgpu_vgpu_set(mgpu, result->set, n, err);
	if (ret == -ENOENT || ret == -ENODEV) {
		/* a batch is all or nothing: retry without vGPUs that were just removed */
		ret = still_there(mgpu, result->set, &n, err);
		if (!ret && n)
			ret = mgpu_vgpu_set(mgpu, result->set, n, err);
		result->changed = n;
	}
	return ret;
}

void applier_free(struct applier *a)
{
	free(a->freed);
	a->freed = NULL;
}
