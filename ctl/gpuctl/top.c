// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpuctl top: activity of each vGPU and context since the last refresh. Rates come from
 * the module's counters; targets and CPU time from mgpud, if it runs.
 */
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "control.h"
#include "gpuctl.h"

static const char *const columns[] = {
	">ID", "UUID", "STATE", ">FPS", ">TARGET", ">FLOOR", ">LIMIT", ">GPU%",
	">GPU-LIMIT", ">CPU%", ">HELD%", ">MEM", "CHARGED-BY", NULL
};

static const char *const ctx_columns[] = {
	">VGPU", ">CTX", "STATE", "OP", ">SLOTS", ">DONE%", ">WORK/S",
	">QUEUED", "NAME", NULL
};

/* Characters of a context's name, so that a line has less than 80 columns. */
#define CTX_NAME	12

/* Lines above and below the rows, without those of devices. */
#define OTHER_LINES	4
/* Lines around the table of contexts, if there is one. */
#define CTX_LINES	3

/**
 * struct sample - values read at one moment
 * @time: CLOCK_MONOTONIC, seconds
 * @vgpus: vGPUs, sorted by ID
 * @nr: number of vGPUs
 * @devs: devices, sorted by ID
 * @nr_devs: number of devices
 * @ctxs: contexts, sorted by the IDs of vGPU and context
 * @nr_ctxs: number of contexts
 * @control: mgpud
 */
struct sample {
	double time;
	struct mgpu_vgpu_info *vgpus;
	size_t nr;
	struct mgpu_dev_info *devs;
	size_t nr_devs;
	struct mgpu_ctx *ctxs;
	size_t nr_ctxs;
	struct control control;
};

/**
 * struct rates - rates of a vGPU; NAN is unknown
 * @told: mgpud has the vGPU in its list, and tells target and floor
 * @fps: frames shown per second
 * @target: frames per second that mgpud allocated, INFINITY for no limit
 * @floor: floor of its agreement, frames per second
 * @granted: part of the floor that it is granted, frames per second
 * @gpu: part of the device's engines
 * @cpu: part of the CPUs that VMs share
 * @held: part of the time in which a frame was held back
 * @limited: part of the time in which jobs waited for want of engine time
 */
struct rates {
	bool told;
	double fps;
	double target;
	double floor;
	double granted;
	double gpu;
	double cpu;
	double held;
	double limited;
};

static void sample_free(struct sample *sample)
{
	free(sample->vgpus);
	free(sample->devs);
	free(sample->ctxs);
	control_free(&sample->control);
	memset(sample, 0, sizeof(*sample));
}

static int sample_read(struct sample *sample, struct mgpu *mgpu, struct mgpu_error *err)
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
	return 0;
}

static const struct mgpu_vgpu_info *by_id(const struct sample *sample,
					  uint32_t id)
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
	const struct mgpu_vgpu_info *old = by_id(sample, vgpu->id);
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

/* Entry of mgpud's state; its list is mostly sorted by ID. */
static struct json_object *find_state(struct json_object *state,
				      const char *uuid, size_t hint)
{
	struct json_object *list;
	struct json_object *entry;
	struct json_object *value;
	size_t nr;
	size_t i;

	if (!state || !json_object_object_get_ex(state, "vgpus", &list) ||
	    !json_object_is_type(list, json_type_array))
		return NULL;
	nr = json_object_array_length(list);
	for (i = 0; i < nr; i++) {
		entry = json_object_array_get_idx(list, (i + hint) % nr);
		if (json_object_object_get_ex(entry, "uuid", &value) &&
		    json_object_is_type(value, json_type_string) &&
		    !strcmp(json_object_get_string(value), uuid))
			return entry;
	}
	return NULL;
}

static void get_rates(struct rates *rates, const struct sample *now,
		      const struct sample *before, size_t i)
{
	const struct mgpu_vgpu_info *vgpu = &now->vgpus[i];
	const struct mgpu_vgpu_info *old = find(before, vgpu);
	struct json_object *entry = find_state(now->control.state, vgpu->uuid, i);
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
	const struct mgpu_vgpu_info *vgpu = by_id(now, ctx->vgpu_id);
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

/**
 * struct ctx_rates - rates of a context; NAN is unknown
 * @done: part of its job that is done
 * @inst: work units per second
 * @gpu: part of the device's engines
 */
struct ctx_rates {
	double done;
	double inst;
	double gpu;
};

static void get_ctx_rates(struct ctx_rates *rates, const struct sample *now,
			  const struct sample *before,
			  const struct mgpu_ctx *ctx)
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

static void add_json(struct json_object *object, const char *key, double value)
{
	char buf[OUT_CELL];

	if (!isfinite(value)) {
		json_object_object_add(object, key, NULL);
		return;
	}
	/* without meaningless digits */
	snprintf(buf, sizeof(buf), "%.6g", value);
	json_object_object_add(object, key,
			       json_object_new_double_s(value, buf));
}

/* Add the fields with these names of the specification, NULL at the end. */
static void add_fields(struct json_object *object, const struct mgpu_field *fields,
		       const void *info, const char *const *names)
{
	for (; *names; names++)
		out_field(object, mgpu_field_find(fields, *names), info);
}

static struct json_object *contexts_json(const struct sample *now,
					 const struct sample *before)
{
	static const char *const fields[] = {
		"vgpu-id", "id", "dev-id", "name", "state", "op", "slots",
		"slots-allowed", "slots-wanted", "queued", NULL
	};
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; i < now->nr_ctxs; i++) {
		struct json_object *entry = json_object_new_object();
		struct ctx_rates rates;

		get_ctx_rates(&rates, now, before, &now->ctxs[i]);
		add_fields(entry, mgpu_ctx_fields, &now->ctxs[i], fields);
		add_json(entry, "progress", rates.done);
		add_json(entry, "inst_per_s", rates.inst);
		add_json(entry, "gpu_share", rates.gpu);
		json_object_array_add(array, entry);
	}
	return array;
}

static void print_json(const struct gpuctl *ctl, const struct sample *now,
		       const struct sample *before)
{
	static const char *const fields[] = {
		"id", "uuid", "dev-id", "open", "weight", "fps-limit",
		"gpu-limit", "mem-used", "charge-source", NULL
	};
	static const char *const dev_fields[] = {
		"id", "name", "policy", "vgpus", "waiting", "engines",
		"slots", NULL
	};
	struct json_object *object = json_object_new_object();
	struct json_object *array = json_object_new_array();
	struct json_object *devs = json_object_new_array();
	char time[OUT_CELL];
	size_t i;

	out_time(time, sizeof(time));
	json_object_object_add(object, "time", json_object_new_string(time));
	json_object_object_add(object, "mgpud",
			       json_object_new_boolean(!!now->control.state));
	for (i = 0; i < now->nr_devs; i++) {
		struct json_object *entry = json_object_new_object();

		add_fields(entry, mgpu_dev_fields, &now->devs[i], dev_fields);
		json_object_array_add(devs, entry);
	}
	json_object_object_add(object, "devs", devs);
	for (i = 0; i < now->nr; i++) {
		struct json_object *entry = json_object_new_object();
		struct rates rates;

		get_rates(&rates, now, before, i);
		add_fields(entry, mgpu_vgpu_fields, &now->vgpus[i], fields);
		out_stale(entry, control_is_stale(&now->control, &now->vgpus[i]));
		add_json(entry, "fps", rates.fps);
		/* null is none: unknown ones are left out */
		if (rates.told) {
			add_json(entry, "target_fps", rates.target);
			add_json(entry, "floor_fps", rates.floor);
		}
		add_json(entry, "granted_fps", rates.granted);
		add_json(entry, "gpu_share", rates.gpu);
		add_json(entry, "cpu_share", rates.cpu);
		add_json(entry, "held_share", rates.held);
		add_json(entry, "limited_share", rates.limited);
		json_object_array_add(array, entry);
	}
	json_object_object_add(object, "vgpus", array);
	json_object_object_add(object, "contexts", contexts_json(now, before));
	out_json(ctl, object);
}

static void add_number(struct table *table, double value, double factor)
{
	if (isfinite(value))
		table_cell(table, "%.1f", value * factor);
	else
		table_cell(table, "-");
}

/*
 * Return the stricter one of the operator's limit and the controller's target, 0 for none.
 * Set @remark to what is to be said of it; an operator's limit is never stale.
 */
static uint32_t in_force(uint32_t limit, uint32_t target, bool stale, const char **remark)
{
	bool holds = out_target_holds(limit, target);

	*remark = holds && stale ? " stale" : "";
	return holds ? target : limit;
}

static void add_row(struct table *table, const struct mgpu_vgpu_info *vgpu,
		    const struct rates *rates, bool stale)
{
	const char *remark, *source = "-";
	char buf[OUT_CELL];
	uint32_t limit;

	if (mgpu_has(vgpu, MGPU_A_VGPU_CHARGE_SOURCE)) {
		source = mgpu_field_str(mgpu_field_find(mgpu_vgpu_fields,
							"charge-source"), vgpu);
		if (!source)
			source = "?";
	}
	table_cell(table, "%u", vgpu->id);
	table_cell(table, "%.8s", vgpu->uuid);
	table_cell(table, "%s", vgpu->open ? "open" : "closed");
	add_number(table, rates->fps, 1);
	add_number(table, rates->target, 1);
	if (rates->granted < rates->floor)
		table_cell(table, "%.1f/%.1f", rates->granted, rates->floor);
	else
		add_number(table, rates->floor, 1);
	limit = in_force(vgpu->fps_limit, vgpu->fps_target, stale, &remark);
	table_cell(table, "%s%s", limit ? out_fps(buf, sizeof(buf), limit) : "none", remark);
	add_number(table, rates->gpu, 100);
	limit = in_force(vgpu->gpu_limit, vgpu->gpu_target, stale, &remark);
	table_cell(table, "%s%s", limit ? out_share(buf, sizeof(buf), limit) : "none", remark);
	add_number(table, rates->cpu, 100);
	add_number(table, rates->held, 100);
	table_cell(table, "%s", out_bytes(buf, sizeof(buf), vgpu->mem_used));
	table_cell(table, "%s", source);
}

static void add_ctx_row(struct table *table, const struct mgpu_ctx *ctx,
			const struct ctx_rates *rates)
{
	char buf[OUT_CELL];

	table_cell(table, "%u", ctx->vgpu_id);
	table_cell(table, "%u", ctx->id);
	table_cell(table, "%s", out_state(ctx));
	table_cell(table, "%s", *ctx->op ? ctx->op : "-");
	table_cell(table, "%s", out_slots(buf, sizeof(buf), ctx));
	add_number(table, rates->done, 100);
	table_cell(table, "%s", isfinite(rates->inst) ?
		   out_rate(buf, sizeof(buf), rates->inst) : "-");
	table_cell(table, "%u", ctx->queued);
	table_cell(table, "%.*s", CTX_NAME, *ctx->name ? ctx->name : "-");
}

/* Rows that fit: for vGPUs and, in *@ctxs, for contexts, up to half of them. */
static size_t screen_rows(bool tty, const struct sample *now, size_t *ctxs)
{
	size_t others = OTHER_LINES + now->nr_devs +
			(now->nr_ctxs ? CTX_LINES : 0);
	struct winsize size;
	size_t rows;

	*ctxs = SIZE_MAX;
	if (!tty || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ||
	    size.ws_row <= others + 1)
		return SIZE_MAX;
	rows = size.ws_row - others;
	if (!now->nr_ctxs)
		return rows;
	*ctxs = rows / 2;
	if (now->nr < rows - *ctxs)
		*ctxs = rows - now->nr;
	else if (now->nr_ctxs < *ctxs)
		*ctxs = now->nr_ctxs;
	return rows - *ctxs;
}

static void print_text(const struct sample *now, const struct sample *before,
		       bool tty)
{
	struct table ctxs = { .columns = ctx_columns };
	struct table table = { .columns = columns };
	struct json_object *value;
	char time[OUT_CELL], why[OUT_CELL];
	size_t ctx_rows;
	size_t open = 0;
	size_t rows;
	size_t i;

	for (i = 0; i < now->nr; i++)
		open += now->vgpus[i].open;
	if (tty)
		fputs("\033[H\033[J", stdout);
	printf("%.19s  vGPUs: %zu, open: %zu; ", out_time(time, sizeof(time)),
	       now->nr, open);
	if (now->control.state && json_object_object_get_ex(now->control.state, "allocator",
							    &value))
		printf("mgpud: allocator %s", json_object_get_string(value));
	else
		fputs(control_why(&now->control, why, sizeof(why)), stdout);
	if (now->control.state && now->control.late)
		printf(", last sample %.1f s ago: targets are stale", now->control.age);
	putchar('\n');
	for (i = 0; i < now->nr_devs; i++) {
		printf("%s: policy %s, %u of %u vGPUs wait for %u engine%s",
		       now->devs[i].name, now->devs[i].policy,
		       now->devs[i].waiting, now->devs[i].vgpus,
		       now->devs[i].engines,
		       now->devs[i].engines == 1 ? "" : "s");
		if (mgpu_has(&now->devs[i], MGPU_A_DEV_SLOTS) &&
		    now->devs[i].slots != now->devs[i].engines)
			printf(", jobs at once: %u", now->devs[i].slots);
		putchar('\n');
	}
	putchar('\n');

	for (i = 0; i < now->nr; i++) {
		struct rates rates;

		get_rates(&rates, now, before, i);
		add_row(&table, &now->vgpus[i], &rates,
			control_is_stale(&now->control, &now->vgpus[i]));
	}
	rows = screen_rows(tty, now, &ctx_rows);
	table_print(&table);
	if (now->nr_ctxs) {
		putchar('\n');
		for (i = 0; i < now->nr_ctxs; i++) {
			struct ctx_rates rates;

			get_ctx_rates(&rates, now, before, &now->ctxs[i]);
			add_ctx_row(&ctxs, &now->ctxs[i], &rates);
		}
		table_print(&ctxs);
	}
	if (!tty)
		putchar('\n');
}

int top(const struct gpuctl *ctl, int argc, char **argv)
{
	struct timespec delay = {
		.tv_sec = (time_t)ctl->seconds,
		.tv_nsec = (long)((ctl->seconds - floor(ctl->seconds)) * 1e9),
	};
	struct sample before = { 0 };
	struct sample now;
	struct mgpu_error err;
	bool tty = isatty(STDOUT_FILENO);
	struct mgpu *mgpu;
	uint32_t shown = 0;
	int ret;

	if (argc)
		return usage_error("top takes no '%s'", argv[0]);
	if (mgpu_open(&mgpu, &err))
		return failed(&err);
	stop_on_signals();

	ret = sample_read(&before, mgpu, &err);
	while (!ret && !gpuctl_stop && (!ctl->count || shown < ctl->count)) {
		ret = wait_or_stop(-1, &delay, &err);
		if (ret || gpuctl_stop)
			break;
		ret = sample_read(&now, mgpu, &err);
		if (ret)
			break;
		if (ctl->json)
			print_json(ctl, &now, &before);
		else
			print_text(&now, &before, tty);
		fflush(stdout);
		shown++;
		sample_free(&before);
		before = now;
	}

	sample_free(&before);
	mgpu_close(mgpu);
	return ret ? failed(&err) : EXIT_OK;
}
