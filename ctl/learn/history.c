// SPDX-License-Identifier: GPL-2.0-only
/* Reads histories, which are not trusted. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <json-c/json.h>

#include "history.h"

/* Between two lines of a run there is at most so much, seconds. */
#define BREAK_S		120.0

/* Figures beyond these are no measurements. */
#define FPS_MAX		1e6
#define COST_MAX	1e6	/* seconds */
#define CAPACITY_MAX	1e6

/* A time in nanoseconds must fit in 64 bits, seconds. */
#define TIME_MAX	1e10

/**
 * struct reader - what a line is read with
 * @h: the history
 * @why: for an error
 * @len: size of @why
 * @bad: there was an error
 */
struct reader {
	const struct history *h;
	char *why;
	size_t len;
	bool bad;
};

__attribute__((format(printf, 2, 3)))
static void refuse(struct reader *r, const char *fmt, ...)
{
	va_list args;
	int n;

	if (r->bad)
		return;
	r->bad = true;
	n = snprintf(r->why, r->len, "%s:%zu: ", r->h->name, r->h->line);
	va_start(args, fmt);
	if (n >= 0 && (size_t)n < r->len)
		vsnprintf(r->why + n, r->len - (size_t)n, fmt, args);
	va_end(args);
}

/* Read a number in a range; null is @none, and refused if that is NAN. */
static double number(struct reader *r, struct json_object *o, const char *key, double none,
		     double min, double max)
{
	struct json_object *value;
	double v;

	if (!json_object_object_get_ex(o, key, &value)) {
		refuse(r, "no \"%s\"; the line must be of the JSON log of mgpud, or of mgpu-sim --log",
		       key);
		return 0;
	}
	if (!value && !isnan(none))
		return none;
	v = json_object_get_double(value);
	if ((!json_object_is_type(value, json_type_double) &&
	     !json_object_is_type(value, json_type_int)) || !(v >= min && v <= max)) {
		refuse(r, "\"%s\" must be a number from %g to %g", key, min, max);
		return 0;
	}
	return v;
}

/* Read a string; one that is missing is "". */
static const char *text(struct reader *r, struct json_object *o, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(o, key, &value) || !value)
		return "";
	if (!json_object_is_type(value, json_type_string)) {
		refuse(r, "\"%s\" must be a string", key);
		return "";
	}
	return json_object_get_string(value);
}

static struct json_object *member(struct reader *r, struct json_object *o, const char *key,
				  enum json_type type)
{
	struct json_object *value;

	if (json_object_object_get_ex(o, key, &value) && json_object_is_type(value, type))
		return value;
	refuse(r, "no \"%s\"; the line must be of the JSON log of mgpud, or of mgpu-sim --log",
	       key);
	return NULL;
}

static enum vgpu_state read_state(struct reader *r, struct json_object *o)
{
	static const char *const names[] = {
		[VGPU_CLOSED] = "closed", [VGPU_IDLE] = "idle", [VGPU_ACTIVE] = "active",
	};
	const char *name = text(r, o, "state");

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(name, names[i]))
			return (enum vgpu_state)i;
	refuse(r, "\"state\" must be closed, idle or active");
	return VGPU_CLOSED;
}

static void read_vgpu(struct reader *r, struct json_object *o, struct history_period *p,
		      size_t j)
{
	struct estimate_vgpu *v = &p->e.vgpus[j];
	struct json_object *device;

	snprintf(v->last.uuid, sizeof(v->last.uuid), "%s", text(r, o, "uuid"));
	snprintf(p->text[j], sizeof(p->text[j]), "%s", text(r, o, "description"));
	v->last.id = (uint32_t)j;
	/* older logs have no device */
	if (json_object_object_get_ex(o, "device", &device))
		v->last.dev = (uint32_t)number(r, o, "device", 0, 0, UINT32_MAX);
	v->last.weight = (uint32_t)number(r, o, "weight", NAN, 0, 10000);
	v->state = read_state(r, o);
	v->last.open = v->state != VGPU_CLOSED;
	if (v->state != VGPU_ACTIVE)
		return;
	v->fps = number(r, o, "fps", NAN, 0, FPS_MAX);
	v->demand = number(r, o, "reach_fps", INFINITY, 0, FPS_MAX);
	v->cpu_share = number(r, o, "cpu_share", NAN, 0, CAPACITY_MAX);
	v->gpu_share = number(r, o, "gpu_share", NAN, 0, CAPACITY_MAX);
	v->cpu_cost = number(r, o, "cpu_s_per_frame", NAN, 0, COST_MAX);
	v->gpu_cost = number(r, o, "gpu_s_per_frame", NAN, 0, COST_MAX);
	v->cpu_cost_smooth = v->cpu_cost;
	v->gpu_cost_smooth = v->gpu_cost;
	/* a period without a frame says nothing of what could have been */
	if (!(v->demand > 0) || !(v->cpu_cost + v->gpu_cost > 0))
		v->state = VGPU_IDLE;
}

static bool has_device(const struct estimate *e, uint32_t dev)
{
	for (size_t i = 0; i < e->nr_devs; i++)
		if (e->devs[i].id == dev)
			return true;
	return false;
}

/* The devices that vGPUs name; the log has the engines of all together. */
static void find_devices(struct estimate *e, double engines)
{
	for (size_t j = 0; j < e->nr_vgpus; j++)
		if (!has_device(e, e->vgpus[j].last.dev))
			e->devs[e->nr_devs++].id = e->vgpus[j].last.dev;
	for (size_t i = 0; i < e->nr_devs; i++)
		e->devs[i].engines = fmax(engines / (double)e->nr_devs, 1);
}

static int read_period(struct reader *r, struct json_object *o, struct history_period *p)
{
	struct json_object *capacity = member(r, o, "capacity", json_type_object);
	struct json_object *vgpus = member(r, o, "vgpus", json_type_array);
	size_t n = vgpus ? json_object_array_length(vgpus) : 0;
	struct estimate *e = &p->e;
	double engines;

	if (n > HISTORY_VGPUS_MAX)
		refuse(r, "more than %d vGPUs", HISTORY_VGPUS_MAX);
	e->now_ns = (uint64_t)(number(r, o, "time_s", NAN, 0, TIME_MAX) * 1e9);
	e->cpu_capacity = number(r, capacity, "cpu_cores", NAN, 0, CAPACITY_MAX);
	engines = number(r, capacity, "gpu_engines", NAN, 0, CAPACITY_MAX);
	if (r->bad)
		return -EINVAL;
	e->cpu_capacity_smooth = fmax(e->cpu_capacity, ESTIMATE_CPU_MIN);
	e->seconds = 1;
	e->vgpus = calloc(n + 1, sizeof(*e->vgpus));
	e->devs = calloc(n + 1, sizeof(*e->devs));
	p->text = calloc(n + 1, sizeof(*p->text));
	if (!e->vgpus || !e->devs || !p->text)
		return -ENOMEM;
	e->nr_vgpus = n;
	for (size_t j = 0; j < n; j++) {
		struct json_object *v = json_object_array_get_idx(vgpus, j);

		if (!json_object_is_type(v, json_type_object))
			refuse(r, "\"vgpus\" must be an array of objects");
		if (r->bad)
			return -EINVAL;
		read_vgpu(r, v, p, j);
	}
	find_devices(e, engines);
	return r->bad ? -EINVAL : 0;
}

int history_next(struct history *h, struct history_period *p, char *why, size_t len)
{
	struct reader r = { .h = h, .why = why, .len = len };
	struct json_object *o;
	double time_s;
	ssize_t n;
	int ret;

	memset(p, 0, sizeof(*p));
	h->line++;
	n = getline(&h->text, &h->size, h->f);
	if (n < 0 && ferror(h->f)) {
		refuse(&r, "cannot be read");
		return -EIO;
	}
	if (n < 0)
		return 0;
	if ((size_t)n > HISTORY_LINE_MAX) {
		refuse(&r, "the line is longer than %u bytes", HISTORY_LINE_MAX);
		return -EINVAL;
	}
	o = json_tokener_parse(h->text);
	if (!json_object_is_type(o, json_type_object)) {
		json_object_put(o);
		refuse(&r, "not a JSON object; the line may be incomplete: remove it");
		return -EINVAL;
	}
	ret = read_period(&r, o, p);
	json_object_put(o);
	if (ret == -ENOMEM)
		refuse(&r, "out of memory");
	if (ret)
		return ret;
	time_s = (double)p->e.now_ns * 1e-9;
	p->begins = h->line == 1 || time_s <= h->time_s || time_s > h->time_s + BREAK_S;
	h->time_s = time_s;
	return 1;
}

void history_period_free(struct history_period *p)
{
	estimate_free(&p->e);
	free(p->text);
	memset(p, 0, sizeof(*p));
}

void history_free(struct history *h)
{
	free(h->text);
	memset(h, 0, sizeof(*h));
}
