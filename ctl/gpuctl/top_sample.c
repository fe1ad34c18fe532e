// SPDX-License-Identifier: GPL-2.0-only
/* Samples of top: what is read of module and mgpud, and rates between two of them. */
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpuctl.h"
#include "json_read.h"
#include "top_sample.h"

void sample_free(struct sample *sample)
{
	free(sample->vgpus);
	free(sample->devs);
	free(sample->ctxs);
	free(sample->states);
	control_free(&sample->control);
	memset(sample, 0, sizeof(*sample));
}

static int compare_states(const void *a, const void *b)
{
	const struct sample_state *x = a, *y = b;

	return strcmp(x->uuid, y->uuid);
}

int sample_sort_states(struct sample *sample, struct mgpu_error *err)
{
	struct json_object *list = json_list(sample->control.state, "vgpus");
	size_t nr = list ? json_object_array_length(list) : 0, i;

	free(sample->states);
	sample->nr_states = 0;
	sample->states = calloc(nr + 1, sizeof(*sample->states));
	if (!sample->states)
		return mgpu_fail(err, -ENOMEM, "out of memory");
	for (i = 0; i < nr; i++) {
		struct json_object *entry = json_object_array_get_idx(list, i), *uuid;

		if (json_object_object_get_ex(entry, "uuid", &uuid) &&
		    json_object_is_type(uuid, json_type_string))
			sample->states[sample->nr_states++] = (struct sample_state){
				json_object_get_string(uuid), entry
			};
	}
	qsort(sample->states, sample->nr_states, sizeof(*sample->states), compare_states);
	return 0;
}

/* The vGPU in the state of mgpud; NULL if there is none. */
static struct json_object *find_state(const struct sample *sample, const char *uuid)
{
	const struct sample_state key = { .uuid = uuid };
	const struct sample_state *found;

	if (!sample->nr_states)
		return NULL;
	found = bsearch(&key, sample->states, sample->nr_states, sizeof(key), compare_states);
	return found ? found->entry : NULL;
}

int sample_read(struct sample *sample, struct mgpu *mgpu, struct mgpu_error *err)
{
	struct timespec ts;
	int ret;

	memset(sample, 0, sizeof(*sample));
	ret = mgpu_dev_list(mgpu, &sample->devs, &sample->nr_devs, err);
	if (ret)
		return ret;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	sample->time = (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
	ret = mgpu_vgpu_list(mgpu, NULL, &sample->vgpus, &sample->nr, err);
	if (!ret)
		ret = mgpu_ctx_dump(mgpu, NULL, &sample->ctxs,
				    &sample->nr_ctxs, err);
	/* an older module has no contexts */
	if (ret == -EOPNOTSUPP)
		ret = 0;
	if (ret) {
		sample_free(sample);
		return ret;
	}

	/* mgpud may start and end; without it some columns are unknown. */
	control_read(&sample->control);
	ret = sample_sort_states(sample, err);
	if (ret)
		sample_free(sample);
	return ret;
}

const struct mgpu_vgpu_info *sample_vgpu(const struct sample *sample, uint32_t id)
{
	size_t low = 0;
	size_t high = sample->nr;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (sample->vgpus[middle].id == id)
			return &sample->vgpus[middle];
		if (sample->vgpus[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

static const struct mgpu_vgpu_info *find(const struct sample *sample,
					 const struct mgpu_vgpu_info *vgpu)
{
	const struct mgpu_vgpu_info *old = sample_vgpu(sample, vgpu->id);
	const struct mgpu_vgpu_stats *then, *now = &vgpu->stats;

	/* the ID may be another vGPU's by now */
	if (!old || strcmp(old->uuid, vgpu->uuid))
		return NULL;
	/* a counter fell: the vGPU was removed, and created anew with its UUID */
	then = &old->stats;
	if (then->frames > now->frames || then->engine_ns > now->engine_ns ||
	    then->throttled_ns > now->throttled_ns ||
	    then->limited_ns > now->limited_ns)
		return NULL;
	return old;
}

static uint32_t engines(const struct sample *sample, uint32_t dev_id)
{
	size_t i;

	for (i = 0; i < sample->nr_devs; i++)
		if (sample->devs[i].id == dev_id)
			return sample->devs[i].engines;
	return 0;
}

void get_rates(struct rates *rates, const struct sample *now,
	       const struct sample *before, size_t i)
{
	const struct mgpu_vgpu_info *vgpu = &now->vgpus[i];
	const struct mgpu_vgpu_info *old = find(before, vgpu);
	struct json_object *entry = find_state(now, vgpu->uuid);
	double seconds = now->time - before->time;
	uint32_t nr = engines(now, vgpu->dev_id);

	*rates = (struct rates){ entry, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN };
	if (old && seconds > 0) {
		rates->fps = (double)(vgpu->stats.frames -
				      old->stats.frames) / seconds;
		rates->held = (double)(vgpu->stats.throttled_ns -
				       old->stats.throttled_ns) / 1e9 / seconds;
		rates->limited = (double)(vgpu->stats.limited_ns -
					  old->stats.limited_ns) / 1e9 /
				 seconds;
		if (nr)
			rates->gpu = (double)(vgpu->stats.engine_ns -
					      old->stats.engine_ns) / 1e9 /
				     seconds / nr;
	}
	if (entry) {
		rates->cpu = json_number(entry, "cpu_share");
		rates->target = json_number(entry, "target_fps");
		rates->floor = json_number(entry, "floor_fps");
		rates->granted = json_number(entry, "granted_fps");
	}
}

static int compare_ctx(const void *a, const void *b)
{
	const struct mgpu_ctx *x = a;
	const struct mgpu_ctx *y = b;

	if (x->vgpu_id != y->vgpu_id)
		return x->vgpu_id < y->vgpu_id ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* The same context in the last sample; NULL if there is none. */
static const struct mgpu_ctx *find_ctx(const struct sample *now,
				       const struct sample *before,
				       const struct mgpu_ctx *ctx)
{
	const struct mgpu_vgpu_info *vgpu = sample_vgpu(now, ctx->vgpu_id);
	const struct mgpu_ctx *old;

	if (!vgpu || !find(before, vgpu) || !before->nr_ctxs)
		return NULL;
	old = bsearch(ctx, before->ctxs, before->nr_ctxs, sizeof(*ctx),
		      compare_ctx);
	/* a counter fell: this is a new context with the same ID */
	if (!old || old->inst > ctx->inst || old->engine_ns > ctx->engine_ns)
		return NULL;
	return old;
}

void get_ctx_rates(struct ctx_rates *rates, const struct sample *now,
		   const struct sample *before, const struct mgpu_ctx *ctx)
{
	const struct mgpu_ctx *old = find_ctx(now, before, ctx);
	double seconds = now->time - before->time;
	uint32_t nr = engines(now, ctx->dev_id);

	*rates = (struct ctx_rates){ out_progress(ctx), NAN, NAN };
	if (!old || seconds <= 0)
		return;
	rates->inst = (double)(ctx->inst - old->inst) / seconds;
	if (nr)
		rates->gpu = (double)(ctx->engine_ns - old->engine_ns) / 1e9 /
			     seconds / nr;
}
