// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpuctl top: activity of each vGPU and context since the last refresh. Rates come from
 * the module's counters; targets and CPU time from mgpud, if it runs. On a terminal
 * top_screen.c shows them; here they are printed, as text and as JSON.
 */
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpuctl.h"
#include "top_sample.h"
#include "top_screen.h"

static const char *const columns[] = {
	">ID", "UUID", "VM", "STATE", ">FPS", ">TARGET", ">FLOOR", ">LIMIT", ">GPU%",
	">GPU-LIMIT", ">CPU%", ">HELD%", ">MEM", "CHARGED-BY", NULL
};

static const char *const ctx_columns[] = {
	">VGPU", ">CTX", "STATE", "OP", ">SLOTS", ">DONE%", ">WORK/S",
	">QUEUED", "NAME", NULL
};

/* Characters of a context's name, so that a line has less than 80 columns. */
#define CTX_NAME	12

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
		       const struct sample *before, const struct names_cache *names)
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
		out_names(entry, &names->entries[i].names);
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
		    const struct rates *rates, const struct vgpu_names *names, bool stale)
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
	table_cell(table, "%s", names_shown(names));
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

static void print_text(const struct sample *now, const struct sample *before,
		       const struct names_cache *names)
{
	struct table ctxs = { .columns = ctx_columns };
	struct table table = { .columns = columns };
	struct json_object *value;
	char time[OUT_CELL], why[OUT_CELL];
	size_t open = 0;
	size_t i;

	for (i = 0; i < now->nr; i++)
		open += now->vgpus[i].open;
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
		add_row(&table, &now->vgpus[i], &rates, &names->entries[i].names,
			control_is_stale(&now->control, &now->vgpus[i]));
	}
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
	putchar('\n');
}

/* Print a sample per delay. Returns 0 or -errno. */
static int print_samples(const struct gpuctl *ctl, struct mgpu *mgpu, struct mgpu_error *err)
{
	struct timespec delay = {
		.tv_sec = (time_t)ctl->seconds,
		.tv_nsec = (long)((ctl->seconds - floor(ctl->seconds)) * 1e9),
	};
	struct names_cache names = { 0 };
	struct sample before, now;
	uint32_t shown = 0;
	int ret;

	ret = sample_read(&before, mgpu, err);
	while (!ret && !gpuctl_stop && (!ctl->count || shown < ctl->count)) {
		ret = wait_or_stop(-1, &delay, err);
		if (ret || gpuctl_stop)
			break;
		ret = sample_read(&now, mgpu, err);
		if (ret)
			break;
		ret = names_cache_update(&names, now.vgpus, now.nr, err);
		if (!ret && ctl->json)
			print_json(ctl, &now, &before, &names);
		else if (!ret)
			print_text(&now, &before, &names);
		fflush(stdout);
		shown++;
		sample_free(&before);
		before = now;
	}

	sample_free(&before);
	names_cache_free(&names);
	return ret;
}

int top(const struct gpuctl *ctl, int argc, char **argv)
{
	bool screen = !ctl->json && !ctl->plain && top_can_draw();
	struct mgpu_error err;
	struct mgpu *mgpu;
	int ret;

	if (argc)
		return usage_error("top takes no '%s'", argv[0]);
	if (mgpu_open(&mgpu, &err))
		return failed(&err);
	stop_on_signals();
	ret = screen ? top_draw(ctl, mgpu, &err) : print_samples(ctl, mgpu, &err);
	mgpu_close(mgpu);
	return ret ? failed(&err) : EXIT_OK;
}
