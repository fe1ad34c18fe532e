// SPDX-License-Identifier: GPL-2.0-only
/* Set the targets of a plan in the kernel module. */
#include <errno.h>
#include <stdlib.h>

#include "frames/apply.h"

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

/* Set targets in one batch; @nr may become less. */
static int set_all(struct mgpu *mgpu, struct mgpu_vgpu_setting *set, size_t *nr,
		   struct mgpu_error *err)
{
	int ret = *nr ? mgpu_vgpu_set(mgpu, set, *nr, err) : 0;

	if (ret != -ENOENT && ret != -ENODEV)
		return ret;
	/* a batch is all or nothing: retry without vGPUs that were just removed */
	ret = still_there(mgpu, set, nr, err);
	return !ret && *nr ? mgpu_vgpu_set(mgpu, set, *nr, err) : ret;
}

int apply(struct mgpu *mgpu, const struct estimate *e, const struct plan *plan,
	  struct applied *result, struct mgpu_error *err)
{
	size_t n = 0;

	result->changed = 0;
	result->set = calloc(plan->nr ? plan->nr : 1, sizeof(*result->set));
	if (!result->set)
		return mgpu_fail(err, -ENOMEM, "out of memory");

	for (size_t j = 0; j < plan->nr; j++) {
		const struct sample_vgpu *v = &e->vgpus[j].last;
		struct mgpu_vgpu_setting set = {
			.id = v->id,
			.fps_target = decide_millihertz(plan->targets[j].limit),
			.gpu_target = decide_ppm(plan->targets[j].gpu),
		};

		if (set.fps_target != v->fps_target)
			set.mask |= MGPU_SETTING_FPS_TARGET;
		if (set.gpu_target != v->gpu_target)
			set.mask |= MGPU_SETTING_GPU_TARGET;
		if (set.mask && !plan->targets[j].keep)
			result->set[n++] = set;
	}
	result->changed = n;
	return mgpu ? set_all(mgpu, result->set, &result->changed, err) : 0;
}

int apply_release(struct mgpu *mgpu, size_t *nr, struct mgpu_error *err)
{
	struct mgpu_vgpu_setting *set;
	struct mgpu_vgpu_info *vgpus;
	size_t n;
	int ret;

	*nr = 0;
	ret = mgpu_vgpu_list(mgpu, NULL, &vgpus, &n, err);
	if (ret)
		return ret;
	set = calloc(n ? n : 1, sizeof(*set));
	for (size_t j = 0; set && j < n; j++)
		if (vgpus[j].fps_target || vgpus[j].gpu_target)
			set[(*nr)++] = (struct mgpu_vgpu_setting){
				.id = vgpus[j].id,
				.mask = MGPU_SETTING_FPS_TARGET |
					MGPU_SETTING_GPU_TARGET,
			};
	free(vgpus);
	if (!set)
		return mgpu_fail(err, -ENOMEM, "out of memory");
	ret = set_all(mgpu, set, nr, err);
	free(set);
	return ret;
}
