// SPDX-License-Identifier: GPL-2.0-only
/* Output: JSON as Documentation/mgpu.schema.json describes it, or text. */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <libsmartcols.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

#include "gpuctl.h"
#include "mgpud_client.h"

static struct json_object *hist_json(const uint64_t *hist)
{
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; i < MGPU_HIST_BUCKETS; i++)
		json_object_array_add(array, json_object_new_uint64(hist[i]));
	return array;
}

/*
 * Format @value / 10^@decimals exactly, without trailing zeros, and @unit.
 */
static const char *out_decimal(char *buf, size_t size, uint64_t value,
			       int decimals, const char *unit);

static struct json_object *number_json(const struct mgpu_field *field, uint64_t value)
{
	enum mgpu_unit unit = mgpu_field_unit(field);
	int decimals = mgpu_unit_decimals(unit);
	char text[OUT_CELL];

	if (!value && mgpu_field_is_limit(field))
		return NULL;	/* no limit */
	if (unit == MGPU_UNIT_FLAG)
		return json_object_new_boolean(value != 0);
	if (field->type == MGPU_FIELD_S32)
		return json_object_new_int64((int64_t)value);
	if (!decimals)
		return json_object_new_uint64(value);
	out_decimal(text, sizeof(text), value, decimals, "");
	return json_object_new_double_s(strtod(text, NULL), text);
}

static struct json_object *field_json(const struct mgpu_field *field,
				      const void *info)
{
	const char *str = mgpu_field_str(field, info);

	if (!mgpu_field_present(field, info))
		return NULL;
	if (str)
		return json_object_new_string(str);

	switch (field->type) {
	case MGPU_FIELD_U8:
	case MGPU_FIELD_U32:
	case MGPU_FIELD_U64:
	case MGPU_FIELD_S32:
		return number_json(field, mgpu_field_u64(field, info));
	case MGPU_FIELD_BINARY:
		return hist_json(mgpu_field_hist(field, info));
	case MGPU_FIELD_NEST:
		return out_object(field->nest,
				  (const char *)info + field->offset);
	case MGPU_FIELD_STRING:
		break;
	}
	return NULL;
}

void out_field(struct json_object *object, const struct mgpu_field *field,
	       const void *info)
{
	char key[MGPU_KEY_LEN];

	/* null would mean that there is no limit */
	if (mgpu_field_is_limit(field) && !mgpu_field_present(field, info))
		return;
	json_object_object_add(object, mgpu_field_key(field, key),
			       field_json(field, info));
}

struct json_object *out_object(const struct mgpu_field *fields,
			       const void *info)
{
	struct json_object *object = json_object_new_object();

	for (; fields->attr; fields++)
		out_field(object, fields, info);
	return object;
}

void out_stale(struct json_object *object, bool stale)
{
	json_object_object_add(object, "target_stale", json_object_new_boolean(stale));
}

/* Return @object, which is put, with the version of the format ahead of its members. */
static struct json_object *with_version(struct json_object *object)
{
	struct json_object *all;

	if (json_object_object_get_ex(object, "version", NULL))
		return object;	/* mgpud's */
	all = json_object_new_object();
	json_object_object_add(all, "version", json_object_new_int(MGPU_JSON_VERSION));
	json_object_object_foreach(object, key, value)
		json_object_object_add(all, key, json_object_get(value));
	json_object_put(object);
	return all;
}

int out_json(const struct gpuctl *ctl, struct json_object *object)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;

	flags |= ctl->pretty ? JSON_C_TO_STRING_PRETTY |
			       JSON_C_TO_STRING_SPACED :
			       JSON_C_TO_STRING_PLAIN;
	object = with_version(object);
	puts(json_object_to_json_string_ext(object, flags));
	json_object_put(object);
	return EXIT_OK;
}

/* ---- values for people ---- */

static const char *out_decimal(char *buf, size_t size, uint64_t value,
			       int decimals, const char *unit)
{
	uint64_t one = 1;
	int i;

	for (i = 0; i < decimals; i++)
		one *= 10;
	while (decimals && value % 10 == 0) {
		value /= 10;
		one /= 10;
		decimals--;
	}
	if (decimals)
		snprintf(buf, size, "%" PRIu64 ".%0*" PRIu64 "%s", value / one,
			 decimals, value % one, unit);
	else
		snprintf(buf, size, "%" PRIu64 "%s", value, unit);
	return buf;
}

const char *out_fps(char *buf, size_t size, uint64_t millihertz)
{
	return out_decimal(buf, size, millihertz, 3, "");
}

const char *out_share(char *buf, size_t size, uint64_t ppm)
{
	return out_decimal(buf, size, ppm, 4, "%");
}

const char *out_us(char *buf, size_t size, uint64_t us)
{
	if (us >= 1000000)
		return out_decimal(buf, size, us, 6, "s");
	if (us >= 1000)
		return out_decimal(buf, size, us, 3, "ms");
	return out_decimal(buf, size, us, 0, "us");
}

/* Format with four digits. */
static const char *out_about(char *buf, size_t size, double us)
{
	if (us >= 1e6)
		snprintf(buf, size, "%.4g s", us / 1e6);
	else if (us >= 1e3)
		snprintf(buf, size, "%.4g ms", us / 1e3);
	else
		snprintf(buf, size, "%.4g us", us);
	return buf;
}

const char *out_bytes(char *buf, size_t size, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	size_t i = 0;

	while (value >= 1024 && i + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		i++;
	}
	snprintf(buf, size, "%.*f %s", i && value < 100 ? 1 : 0, value,
		 units[i]);
	return buf;
}

const char *out_rate(char *buf, size_t size, double rate)
{
	static const char units[] = " kMGTP";
	size_t i = 0;

	/* 999.6 would be rounded to 1000 */
	while (rate >= 999.5 && units[i + 1]) {
		rate /= 1000;
		i++;
	}
	snprintf(buf, size, "%.*f%.*s", rate < 9.995 ? 2 : rate < 99.95 ? 1 : 0,
		 rate, i ? 1 : 0, &units[i]);
	return buf;
}

const char *out_time(char *buf, size_t size)
{
	struct timeval tv;
	struct tm tm;
	char date[32];
	char zone[8];

	gettimeofday(&tv, NULL);
	localtime_r(&tv.tv_sec, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm);
	strftime(zone, sizeof(zone), "%z", &tm);
	snprintf(buf, size, "%s.%03d%.3s:%s", date, (int)(tv.tv_usec / 1000),
		 zone, zone + 3);
	return buf;
}

#define BAR	40

static void print_quantile(const uint64_t *hist, const char *name, double q)
{
	double us = mgpu_hist_quantile(hist, q);
	char buf[OUT_CELL];
	double from;
	double to;

	mgpu_hist_bounds(MGPU_HIST_BUCKETS - 1, &from, &to);
	printf(", %s %s%s", name, us >= from ? "at least " : "",
	       out_about(buf, sizeof(buf), us));
}

/* Print a bar for each bucket, from the first to the last that is not empty. */
static void print_hist(const uint64_t *hist)
{
	uint64_t total = mgpu_hist_total(hist);
	char from[OUT_CELL];
	char to[OUT_CELL];
	uint64_t most = 0;
	uint64_t seen = 0;
	double low;
	double high;
	unsigned int i;
	int bar;

	if (!total) {
		puts(" none yet");
		return;
	}
	printf(" %" PRIu64, total);
	print_quantile(hist, "p50", 0.5);
	print_quantile(hist, "p99", 0.99);
	puts(" (as if spread evenly over a bucket)");

	for (i = 0; i < MGPU_HIST_BUCKETS; i++)
		if (hist[i] > most)
			most = hist[i];
	for (i = 0; i < MGPU_HIST_BUCKETS && seen < total; i++) {
		if (!hist[i] && !seen)
			continue;
		seen += hist[i];
		mgpu_hist_bounds(i, &low, &high);
		/* at least one character for a bucket that is not empty */
		bar = (int)ceil((double)hist[i] / (double)most * BAR);
		printf("  %9s to %-9s %10" PRIu64 "%s%.*s\n",
		       out_about(from, sizeof(from), low),
		       isinf(high) ? "any time" :
		       out_about(to, sizeof(to), high), hist[i],
		       bar ? "  " : "", bar,
		       "########################################");
	}
}

/* Print the mean per job, for fields that have one. */
static void print_per_job(const struct mgpu_field *field, const void *info,
			  uint64_t value)
{
	const struct mgpu_field *jobs = mgpu_field_find(mgpu_stats_fields,
							"jobs");
	char buf[OUT_CELL];
	uint64_t nr;

	if (field != mgpu_field_find(mgpu_stats_fields, "queue-ns") &&
	    field != mgpu_field_find(mgpu_stats_fields, "engine-ns"))
		return;
	nr = mgpu_field_present(jobs, info) ? mgpu_field_u64(jobs, info) : 0;
	if (nr)
		printf(" (%s per job)", out_about(buf, sizeof(buf),
						  (double)value / 1e3 /
						  (double)nr));
}

/* @ns: CLOCK_MONOTONIC, ns; 0: never */
static void print_ago(uint64_t ns)
{
	struct timespec ts;
	double ago;

	if (!ns) {
		puts("-");
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &ts);
	ago = (double)ts.tv_sec + (double)ts.tv_nsec / 1e9 - (double)ns / 1e9;
	printf("%.6f s ago\n", ago > 0 ? ago : 0);
}

bool out_target_holds(uint32_t limit, uint32_t target)
{
	return target && (!limit || target < limit);
}

/* Return ", in force" for a limit or a target that is, else "". */
static const char *in_force(const struct mgpu_field *field, const void *info, uint64_t value)
{
	const struct mgpu_vgpu_info *vgpu = info;
	uint32_t limit, target;

	if (!strcmp(field->name, "fps-limit") || !strcmp(field->name, "fps-target")) {
		limit = vgpu->fps_limit;
		target = vgpu->fps_target;
	} else if (!strcmp(field->name, "gpu-limit") || !strcmp(field->name, "gpu-target")) {
		limit = vgpu->gpu_limit;
		target = vgpu->gpu_target;
	} else {
		return "";
	}
	return value && !strcmp(field->name + 4,
				out_target_holds(limit, target) ? "target" : "limit") ?
		", in force" : "";
}

/* @code: a negative errno, or 0 */
static void print_errno(int64_t code)
{
	printf("%" PRId64, code);
	if (code < 0)
		printf(" (%s)", strerror((int)-code));
	putchar('\n');
}

static void print_value(const struct mgpu_field *field, const void *info)
{
	char buf[OUT_CELL];
	uint64_t value;
	const char *str;

	if (!mgpu_field_present(field, info)) {
		puts("-");
		return;
	}
	str = mgpu_field_str(field, info);
	if (str) {
		puts(str);
		return;
	}

	value = mgpu_field_u64(field, info);
	if (!value && mgpu_field_is_limit(field)) {
		puts("none");
		return;
	}
	if (!strcmp(field->name, "arrived-ns")) {
		print_ago(value);
		return;
	}
	switch (mgpu_field_unit(field)) {
	case MGPU_UNIT_FLAG:
		if (field->type == MGPU_FIELD_U8)
			puts(value ? "yes" : "no");
		else
			puts(value ? "on" : "off");	/* a setting */
		break;
	case MGPU_UNIT_MILLIHERTZ:
		printf("%s%s\n", out_fps(buf, sizeof(buf), value),
		       in_force(field, info, value));
		break;
	case MGPU_UNIT_PPM:
		printf("%s%s\n", out_share(buf, sizeof(buf), value),
		       in_force(field, info, value));
		break;
	case MGPU_UNIT_US:
		puts(out_us(buf, sizeof(buf), value));
		break;
	case MGPU_UNIT_MS:
		puts(out_us(buf, sizeof(buf), value * 1000));
		break;
	case MGPU_UNIT_NS:
		printf("%.6f s", (double)value / 1e9);
		print_per_job(field, info, value);
		putchar('\n');
		break;
	case MGPU_UNIT_BYTES:
		printf("%" PRIu64 " (%s)\n", value,
		       out_bytes(buf, sizeof(buf), value));
		break;
	case MGPU_UNIT_PIXELS:
	case MGPU_UNIT_NONE:
		if (field->type == MGPU_FIELD_S32)
			print_errno((int64_t)value);
		else
			printf("%" PRIu64 "\n", value);
	}
}

static void print_fields(const struct mgpu_field *fields, const void *info,
			 int indent)
{
	char name[OUT_CELL];
	int len;

	for (; fields->attr; fields++) {
		bool present = mgpu_field_present(fields, info);

		if (fields->type == MGPU_FIELD_NEST && present) {
			printf("%*s%s:\n", indent, "", fields->name);
			print_fields(fields->nest,
				     (const char *)info + fields->offset,
				     indent + 2);
			continue;
		}
		if (fields->type == MGPU_FIELD_BINARY && present) {
			printf("%s:", fields->name);
			print_hist(mgpu_field_hist(fields, info));
			continue;
		}
		/* JSON has nanoseconds, text has seconds */
		len = (int)strlen(fields->name);
		if (mgpu_field_unit(fields) == MGPU_UNIT_NS)
			snprintf(name, sizeof(name), "%.*s-time:", len - 3,
				 fields->name);
		else
			snprintf(name, sizeof(name), "%s:", fields->name);
		printf("%*s%-*s ", indent, "", 20 - indent, name);
		print_value(fields, info);
	}
}

int out_info(const struct gpuctl *ctl, const struct mgpu_field *fields,
	     const void *info)
{
	if (ctl->json)
		return out_json(ctl, out_object(fields, info));
	print_fields(fields, info, 0);
	return EXIT_OK;
}

void out_list(const struct gpuctl *ctl, const struct listing *listing,
	      const void *objects, size_t nr)
{
	struct table table = { .columns = listing->columns };
	struct json_object *array = json_object_new_array();
	struct json_object *all;
	const char *object = objects;
	size_t i;

	for (i = 0; i < nr; i++, object += listing->size) {
		if (ctl->json) {
			all = out_object(listing->fields, object);
			if (listing->add_json)
				listing->add_json(all, object, listing->arg);
			json_object_array_add(array, all);
		} else {
			listing->add_row(&table, object, listing->arg);
		}
	}
	if (ctl->json) {
		all = json_object_new_object();
		json_object_object_add(all, listing->key, array);
		out_json(ctl, all);
	} else {
		json_object_put(array);
		table_print(&table);
	}
}

/* ---- contexts ---- */

const char *out_state(const struct mgpu_ctx *ctx)
{
	const char *state;

	state = mgpu_field_str(mgpu_field_find(mgpu_ctx_fields, "state"), ctx);
	return state && mgpu_has(ctx, MGPU_A_CTX_STATE) ? state : "?";
}

const char *out_slots(char *buf, size_t size, const struct mgpu_ctx *ctx)
{
	if (!mgpu_has(ctx, MGPU_A_CTX_OP))
		return "-";
	snprintf(buf, size, "%u/%u", ctx->slots, ctx->slots_wanted);
	return buf;
}

double out_progress(const struct mgpu_ctx *ctx)
{
	double done;

	if (!mgpu_has(ctx, MGPU_A_CTX_OP) || !ctx->job_inst)
		return NAN;
	done = (double)ctx->job_inst_done / (double)ctx->job_inst;
	return done > 1 ? 1 : done;
}

/* ---- events ---- */

static void print_exit(const struct mgpu_policy_exit_info *why)
{
	const char *kind;

	kind = mgpu_field_str(mgpu_field_find(mgpu_policy_exit_fields, "kind"),
			      why);
	printf(" ended %s", why->policy);
	if (kind)
		printf(" kind %s", kind);
	else
		printf(" kind %u", why->kind);
	printf(" code %d", why->code);
	if (mgpu_has(why, MGPU_A_POLICY_EXIT_VGPU_ID))
		printf(" vgpu %u", why->vgpu_id);
	printf(": %s", why->message);
}

static void print_ctx_event(const struct mgpu_ctx *ctx)
{
	char buf[OUT_CELL];

	printf("ctx     vgpu %u ctx %u %s", ctx->vgpu_id, ctx->id,
	       out_state(ctx));
	if (mgpu_has(ctx, MGPU_A_CTX_OP))
		printf(" op %s slots %s", ctx->op,
		       out_slots(buf, sizeof(buf), ctx));
	printf(" queued %u", ctx->queued);
	if (*ctx->name)
		printf(" name %s", ctx->name);
	putchar('\n');
}

/* "added" of "vgpu-added-ntf", "policy-exit" of "dev-policy-exit-ntf" */
void out_event(const struct mgpu_event *event, const char *vm)
{
	const char *name = strchr(mgpu_event_name(event->cmd), '-') + 1;
	const struct mgpu_vgpu_info *vgpu = &event->vgpu;
	const struct mgpu_dev_info *dev = &event->dev;

	if (mgpu_event_is_ctx(event->cmd)) {
		print_ctx_event(&event->ctx);
		return;
	}
	printf("%-7.*s ", (int)(strlen(name) - strlen("-ntf")), name);
	if (mgpu_event_is_dev(event->cmd)) {
		printf("dev %u %s policy %s", dev->id, dev->name, dev->policy);
		if (event->cmd == MGPU_CMD_DEV_POLICY_EXIT_NTF &&
		    mgpu_has(dev, MGPU_A_DEV_POLICY_EXIT))
			print_exit(&dev->policy_exit);
	} else {
		printf("vgpu %u %s dev %s type %s", vgpu->id, vgpu->uuid,
		       vgpu->dev_name, vgpu->type);
		if (mgpu_has(vgpu, MGPU_A_VGPU_TGID))
			printf(" pid %u", vgpu->tgid);
		if (strcmp(vm, "-"))
			printf(" vm %s", vm);
		if (event->cmd == MGPU_CMD_VGPU_QUARANTINE_NTF)
			printf(" %s", vgpu->quarantine ? "on" : "off");
	}
	putchar('\n');
}

/* ---- tables ---- */

static void no_memory(void)
{
	fputs("gpuctl: out of memory\n", stderr);
	exit(EXIT_FAILED);
}

void table_cell(struct table *table, const char *fmt, ...)
{
	va_list ap;

	if (table->nr == table->room) {
		table->room = table->room ? table->room * 2 : 64;
		table->cells = reallocarray(table->cells, table->room,
					    sizeof(*table->cells));
		if (!table->cells)
			no_memory();
	}
	table->cells[table->nr].colour = NULL;
	va_start(ap, fmt);
	vsnprintf(table->cells[table->nr++].text, OUT_CELL, fmt, ap);
	va_end(ap);
}

#define SEPARATOR	"  "

bool out_colours(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb") != 0;
}

void table_colour(struct table *table, const char *colour)
{
	table->cells[table->nr - 1].colour = colour;
}

/* Columns in which a text is on a terminal; SIZE_MAX without one. */
static size_t terminal_width(void)
{
	struct winsize size;

	return isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col ?
		size.ws_col : SIZE_MAX;
}

static size_t text_width(const char *text)
{
	wchar_t wide[OUT_CELL];
	size_t n = mbstowcs(wide, text, OUT_CELL);
	int width = n < OUT_CELL ? wcswidth(wide, n) : -1;

	return width < 0 ? strlen(text) : (size_t)width;
}

/* Least width of a column: of its widest cell, or of what stays when it is cut. */
static size_t least_width(const struct table *table, size_t column, size_t columns)
{
	const char *title = table->columns[column];
	size_t least = strlen(title) - strspn(title, OUT_MARKS), i;

	for (i = column; i < table->nr; i += columns) {
		size_t width = text_width(table->cells[i].text);

		if (memchr(title, OUT_CUT, strspn(title, OUT_MARKS)) && width > OUT_CUT_MIN)
			width = OUT_CUT_MIN;
		if (width > least)
			least = width;
	}
	return least;
}

/* Drop columns that are marked so, from the right, until the others fit. */
static void fit(const struct table *table, size_t columns, size_t width, bool *dropped)
{
	size_t least = 0, i;

	for (i = 0; i < columns; i++) {
		dropped[i] = false;
		least += least_width(table, i, columns) + (i ? strlen(SEPARATOR) : 0);
	}
	for (i = columns; i-- && least > width;) {
		if (!memchr(table->columns[i], OUT_DROP, strspn(table->columns[i], OUT_MARKS)))
			continue;
		dropped[i] = true;
		least -= least_width(table, i, columns) + strlen(SEPARATOR);
	}
}

static void add_columns(struct libscols_table *out, const struct table *table,
			const bool *dropped)
{
	for (size_t i = 0; table->columns[i]; i++) {
		const char *title = table->columns[i];
		size_t marks = strspn(title, OUT_MARKS);
		int flags = 0;

		if (memchr(title, OUT_RIGHT, marks))
			flags |= SCOLS_FL_RIGHT;
		if (memchr(title, OUT_CUT, marks))
			flags |= SCOLS_FL_TRUNC;
		if (dropped[i])
			flags |= SCOLS_FL_HIDDEN;
		if (!scols_table_new_column(out, title + marks, 0, flags))
			no_memory();
	}
}

static void add_cells(struct libscols_table *out, const struct table *table, size_t columns)
{
	struct libscols_line *line = NULL;
	bool colours = out_colours();
	size_t i;

	for (i = 0; i < table->nr; i++) {
		const struct cell *cell = &table->cells[i];

		if (i % columns == 0)
			line = scols_table_new_line(out, NULL);
		if (!line || scols_line_set_data(line, i % columns, cell->text))
			no_memory();
		if (cell->colour && colours)
			scols_cell_set_color(scols_line_get_cell(line, i % columns), cell->colour);
	}
}

/* libsmartcols prints nothing of a table without rows. */
static void print_titles(const char *const *columns)
{
	const char *const *column;

	for (column = columns; *column; column++)
		printf("%s%s", column == columns ? "" : "  ", *column + strspn(*column, OUT_MARKS));
	putchar('\n');
}

void table_print(struct table *table)
{
	struct libscols_table *out = scols_new_table();
	size_t width = terminal_width();
	bool dropped[OUT_COLUMNS];
	size_t columns;

	for (columns = 0; table->columns[columns]; columns++)
		;
	if (!out || columns > OUT_COLUMNS || scols_table_set_column_separator(out, SEPARATOR))
		no_memory();
	fit(table, columns, width, dropped);
	if (width != SIZE_MAX)
		scols_table_set_termwidth(out, width);
	scols_table_enable_colors(out, out_colours());
	/* no blanks behind the last column */
	scols_table_enable_minout(out, 1);
	add_columns(out, table, dropped);
	add_cells(out, table, columns);
	fflush(stdout);
	if (table->nr)
		scols_print_table(out);
	else
		print_titles(table->columns);
	scols_unref_table(out);

	free(table->cells);
	table->cells = NULL;
	table->nr = 0;
	table->room = 0;
}
