// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl report: figures of a recording, as a table, as JSON, or as a page. */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files.h"
#include "gpuctl.h"
#include "output.h"
#include "report_data.h"
#include "report_html.h"

static const char *const columns[] = {
	"~VGPU", ">FPS", ">P50-MS", ">P95-MS", ">P99-MS", ">MAX-MS", ">GPU%", ">HELD%", ">WAIT%",
	">PREEMPTED", NULL
};

static int read_all(int fd, char *data, size_t size)
{
	while (size) {
		ssize_t n = read(fd, data, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		data += n;
		size -= (size_t)n;
	}
	return 0;
}

/* Read a file that is at most as large as a recording may be. The caller must free *data. */
static int load(const char *path, char **data, size_t *size, struct mgpu_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret = 0;
	struct stat st;

	*data = NULL;
	if (fd < 0)
		return mgpu_fail(err, -errno, "%s: %s", path, strerror(errno));
	if (fstat(fd, &st))
		ret = mgpu_fail(err, -errno, "%s: %s", path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		ret = mgpu_fail(err, -EINVAL, "%s is not a regular file: name a recording of gpuctl trace record",
				path);
	else if ((uint64_t)st.st_size > TRACE_SIZE_MAX)
		ret = mgpu_fail(err, -EFBIG, "%s is larger than any recording of gpuctl trace record (1 GiB)",
				path);
	if (!ret) {
		*size = (size_t)st.st_size;
		*data = malloc(*size + 1);
		ret = *data ? read_all(fd, *data, *size) : -ENOMEM;
		if (ret)
			mgpu_fail(err, ret, "%s: %s", path, strerror(-ret));
	}
	close(fd);
	return ret;
}

/* A text as a string of JSON or a cell, cleaned. */
static const char *text(char clean[TRACE_TEXT + 1], const struct trace_text *t)
{
	text_clean(t->len ? t->at : "", t->len, clean, TRACE_TEXT + 1);
	return clean;
}

static void add_text(struct json_object *o, const char *key, const struct trace_text *t)
{
	char clean[TRACE_TEXT + 1];

	json_object_object_add(o, key, json_object_new_string(text(clean, t)));
}

static void add(struct json_object *o, const char *key, double value)
{
	json_object_object_add(o, key, rounded(value, 6));
}

static void add_count(struct json_object *o, const char *key, uint64_t count)
{
	json_object_object_add(o, key, json_object_new_uint64(count));
}

static struct json_object *vgpu_json(const struct report *r, const struct report_vgpu *v)
{
	struct json_object *o = json_object_new_object();

	add_text(o, "name", &v->name);
	add_text(o, "uuid", &v->uuid);
	add_count(o, "frames", v->frames);
	add(o, "fps", (double)v->frames / r->seconds);
	add(o, "frame_time_p50_s", report_frame_time(v, 0.50));
	add(o, "frame_time_p95_s", report_frame_time(v, 0.95));
	add(o, "frame_time_p99_s", report_frame_time(v, 0.99));
	add(o, "frame_time_max_s", report_frame_time(v, 1));
	add(o, "engine_s", v->engine_s);
	add(o, "gpu_share", v->share);
	add(o, "held_share", v->throttled);
	add(o, "waiting_share", v->waiting);
	add_count(o, "jobs", v->jobs);
	add_count(o, "preempted", v->preempted);
	return o;
}

static struct json_object *slot_json(const struct report_slot *slot)
{
	struct json_object *o = json_object_new_object();

	add_text(o, "dev", &slot->dev);
	add_text(o, "slot", &slot->name);
	add(o, "used_share", slot->used);
	return o;
}

static struct json_object *decision_json(const struct report_decision *d)
{
	struct json_object *o = json_object_new_object();

	add(o, "at_s", d->at);
	add_text(o, "decision", &d->text);
	json_object_object_add(o, "count", d->count ? json_object_new_uint64(d->count) : NULL);
	return o;
}

static struct json_object *gap_json(const struct report_gap *gap)
{
	struct json_object *o = json_object_new_object();

	add(o, "from_s", gap->from);
	add(o, "to_s", gap->to);
	add_count(o, "lost", gap->lost);
	return o;
}

static int print_figures(const struct gpuctl *ctl, const struct report *r)
{
	struct json_object *o = json_object_new_object();
	struct json_object *vgpus = json_object_new_array(), *slots = json_object_new_array();
	struct json_object *decisions = json_object_new_array(), *gaps = json_object_new_array();
	size_t i;

	for (i = 0; i < r->nr_vgpus; i++)
		json_object_array_add(vgpus, vgpu_json(r, &r->vgpus[i]));
	for (i = 0; i < r->nr_slots; i++)
		json_object_array_add(slots, slot_json(&r->slots[i]));
	for (i = 0; i < r->nr_decisions; i++)
		json_object_array_add(decisions, decision_json(&r->decisions[i]));
	for (i = 0; i < r->nr_gaps; i++)
		json_object_array_add(gaps, gap_json(&r->gaps[i]));
	add(o, "duration_s", r->seconds);
	add_text(o, "ended", &r->ended);
	add_count(o, "lost", r->lost);
	add_count(o, "missed", r->missed);
	json_object_object_add(o, "vgpus", vgpus);
	json_object_object_add(o, "slots", slots);
	json_object_object_add(o, "decisions", decisions);
	json_object_object_add(o, "gaps", gaps);
	return out_json(ctl, o);
}

static void cell(struct table *table, double value, double factor)
{
	if (isfinite(value))
		table_cell(table, "%.1f", value * factor);
	else
		table_cell(table, "-");
}

static int print_table(const struct report *r)
{
	struct table table = { .columns = columns };
	char clean[TRACE_TEXT + 1];

	printf("%.1f s, %zu vGPUs, %llu events lost\n\n", r->seconds, r->nr_vgpus,
	       (unsigned long long)r->lost);
	for (size_t i = 0; i < r->nr_vgpus; i++) {
		const struct report_vgpu *v = &r->vgpus[i];

		table_cell(&table, "%s", text(clean, &v->name));
		cell(&table, (double)v->frames / r->seconds, 1);
		cell(&table, report_frame_time(v, 0.50), 1e3);
		cell(&table, report_frame_time(v, 0.95), 1e3);
		cell(&table, report_frame_time(v, 0.99), 1e3);
		cell(&table, report_frame_time(v, 1), 1e3);
		cell(&table, v->share, 100);
		cell(&table, v->throttled, 100);
		cell(&table, v->waiting, 100);
		table_cell(&table, "%llu", (unsigned long long)v->preempted);
	}
	table_print(&table);
	return EXIT_OK;
}

/* Print the figures, or write the page. */
static int show(const struct gpuctl *ctl, const struct report *r)
{
	if (ctl->output && replace_file(ctl->output, r, report_html))
		return EXIT_FAILED;
	if (ctl->json)
		return print_figures(ctl, r);
	return ctl->output ? EXIT_OK : print_table(r);
}

static bool same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int report(const struct gpuctl *ctl, int argc, char **argv)
{
	struct trace_reading reading = { 0 };
	struct report r = { 0 };
	struct mgpu_error err;
	char why[256], *data;
	size_t size = 0;
	int status = EXIT_FAILED, ret;

	if (!argc)
		return usage_error("report wants a FILE that gpuctl trace record made");
	if (argc > 1)
		return usage_error("report takes one FILE, not '%s' too", argv[1]);
	if (ctl->output && same_file(ctl->output, argv[0]))
		return usage_error("--output %s: is the recording itself: name another file",
				   ctl->output);
	if (ctl->output && check_replaceable(ctl->output))
		return EXIT_FAILED;
	ret = load(argv[0], &data, &size, &err);
	if (!ret && (trace_read(&reading, data, size, why, sizeof(why)) ||
		     report_make(&r, &reading, why, sizeof(why))))
		ret = mgpu_fail(&err, -EINVAL, "%s: %s", argv[0], why);
	if (ret)
		failed(&err);
	else
		status = show(ctl, &r);
	report_free(&r);
	trace_read_free(&reading);
	free(data);
	return status;
}
