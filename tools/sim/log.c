// SPDX-License-Identifier: GPL-2.0-only
/*
 * The log of a run: a line of JSON for each period, with those members of mgpud's JSON log that
 * mgpu-learn reads.
 */
#include <errno.h>
#include <math.h>
#include <json-c/json.h>

#include "sim.h"

static void put(struct json_object *o, const char *key, double v)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6g", v);
	json_object_object_add(o, key, isfinite(v) ? json_object_new_double_s(v, text) : NULL);
}

static struct json_object *vgpu(const struct sim *s, const struct estimate *e, size_t j)
{
	static const char *const states[] = {
		[VGPU_CLOSED] = "closed", [VGPU_IDLE] = "idle", [VGPU_ACTIVE] = "active",
	};
	const struct estimate_vgpu *v = &e->vgpus[j];
	struct json_object *o = json_object_new_object();

	if (!o)
		return NULL;
	json_object_object_add(o, "uuid", json_object_new_string(v->last.uuid));
	json_object_object_add(o, "description", json_object_new_string(s->vms[j].text));
	json_object_object_add(o, "device", json_object_new_int64(v->last.dev));
	json_object_object_add(o, "weight", json_object_new_int64(v->last.weight));
	put(o, "fps", v->fps);
	put(o, "reach_fps", v->state == VGPU_ACTIVE ? v->reach * v->fps : NAN);
	put(o, "cpu_share", v->cpu_share);
	put(o, "gpu_share", v->gpu_share);
	put(o, "cpu_s_per_frame", v->cpu_cost);
	put(o, "gpu_s_per_frame", v->gpu_cost);
	json_object_object_add(o, "state", json_object_new_string(states[v->state]));
	return o;
}

int sim_log_period(const struct sim *s, const struct estimate *e)
{
	struct json_object *o = json_object_new_object();
	struct json_object *capacity = json_object_new_object();
	struct json_object *vgpus = json_object_new_array();
	int ret = 0;

	if (!o || !capacity || !vgpus) {
		json_object_put(o);
		json_object_put(capacity);
		json_object_put(vgpus);
		return -ENOMEM;
	}
	put(capacity, "cpu_cores", e->cpu_capacity);
	put(capacity, "gpu_engines", s->machine.engines);
	for (size_t j = 0; j < e->nr_vgpus; j++)
		json_object_array_add(vgpus, vgpu(s, e, j));
	put(o, "time_s", (double)e->now_ns * 1e-9);
	json_object_object_add(o, "capacity", capacity);
	json_object_object_add(o, "vgpus", vgpus);
	if (fprintf(s->log, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN)) < 0)
		ret = -EIO;
	json_object_put(o);
	return ret;
}
