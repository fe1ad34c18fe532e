// SPDX-License-Identifier: GPL-2.0-only
/* Read traces. A trace is untrusted input. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tracefile.h"

#define MAX_COLUMNS	32

enum column { TIME, VGPU, CPU, ENGINE, FRAMES, NR_COLUMNS };

static const char *const column_names[NR_COLUMNS] = {
	[TIME] = "time_s",
	[VGPU] = "vgpu",
	[CPU] = "cpu_s",
	[ENGINE] = "engine_s",
	[FRAMES] = "frames",		/* need not be there */
};

struct reader {
	struct trace *t;
	const char *file;
	unsigned long line;
	char *why;
	size_t len;
	int where[NR_COLUMNS];		/* -1 for not there */
	int columns;			/* 0 before the header */
	size_t first_vm;		/* of this file */
	uint32_t last_vm;
	double last_s, seconds;
};

__attribute__((format(printf, 2, 3)))
static int bad(struct reader *r, const char *fmt, ...)
{
	int n = snprintf(r->why, r->len, "%s:%lu: ", r->file, r->line);
	va_list ap;

	if (n < 0 || (size_t)n >= r->len)
		return -EINVAL;
	va_start(ap, fmt);
	vsnprintf(r->why + n, r->len - (size_t)n, fmt, ap);
	va_end(ap);
	/* it may quote what was read */
	for (char *c = r->why; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	return -EINVAL;
}

/* Cuts @line at its commas, in place; -1 when there are too many. */
static int split(char *line, char **field)
{
	int n = 0;

	do {
		if (n == MAX_COLUMNS)
			return -1;
		field[n++] = strsep(&line, ",");
	} while (line);
	return n;
}

static int header(struct reader *r, char **field, int n)
{
	for (int c = 0; c < NR_COLUMNS; c++) {
		r->where[c] = -1;
		for (int i = 0; i < n; i++) {
			if (strcmp(field[i], column_names[c]))
				continue;
			if (r->where[c] >= 0)
				return bad(r, "duplicate column '%s'", field[i]);
			r->where[c] = i;
		}
		if (r->where[c] < 0 && c != FRAMES)
			return bad(r, "missing column '%s'; the first line names the columns, as in time_s,vgpu,frame,frames,cpu_s,engine_s,held_s",
				   column_names[c]);
	}
	r->columns = n;
	return 0;
}

static int number(struct reader *r, char **field, enum column c, double min, double max,
		  double *v)
{
	const char *s = field[r->where[c]];
	char *end;

	errno = 0;
	*v = strtod(s, &end);
	if (end == s || *end || !isfinite(*v) || *v < min || *v > max || isspace(*s))
		return bad(r, "%s is '%.40s': must be a number from %g to %g",
			   column_names[c], s, min, max);
	return 0;
}

static int find_vm(struct reader *r, const char *name, uint32_t *vm)
{
	struct trace *t = r->t;
	void *more;

	/* mostly one of the last ones */
	if (r->last_vm < t->nr_vms && r->last_vm >= r->first_vm &&
	    !strcmp(t->names[r->last_vm], name)) {
		*vm = r->last_vm;
		return 0;
	}
	for (size_t j = r->first_vm; j < t->nr_vms; j++) {
		if (strcmp(t->names[j], name))
			continue;
		*vm = (uint32_t)j;
		r->last_vm = *vm;
		return 0;
	}
	if (!*name || strlen(name) >= SAMPLE_UUID_LEN)
		return bad(r, "vgpu is '%.60s': must be a UUID, or another name of 1 to %d characters",
			   name, SAMPLE_UUID_LEN - 1);
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
			return bad(r, "vgpu is '%.60s': must be letters, digits, '-', '_' and '.'",
				   name);
	if (t->nr_vms == TRACE_MAX_VMS)
		return bad(r, "more than %d vGPUs", TRACE_MAX_VMS);
	more = realloc(t->names, (t->nr_vms + 1) * sizeof(*t->names));
	if (!more)
		return -ENOMEM;
	t->names = more;
	strcpy(t->names[t->nr_vms], name);
	*vm = (uint32_t)t->nr_vms++;
	r->last_vm = *vm;
	return 0;
}

static int frame(struct reader *r, char **field, int n)
{
	struct trace *t = r->t;
	struct trace_frame f;
	double frames = 1;
	int ret;

	if (n != r->columns)
		return bad(r, "%d columns where the first line has %d: is the line cut off?",
			   n, r->columns);
	ret = number(r, field, TIME, 0, TRACE_MAX_SECONDS, &f.time_s);
	if (!ret)
		ret = number(r, field, CPU, 0, TRACE_MAX_COST, &f.cpu_s);
	if (!ret)
		ret = number(r, field, ENGINE, 0, TRACE_MAX_COST, &f.engine_s);
	if (!ret && r->where[FRAMES] >= 0)
		ret = number(r, field, FRAMES, 1, 1000000, &frames);
	if (!ret)
		ret = find_vm(r, field[r->where[VGPU]], &f.vm);
	if (ret)
		return ret;
	if (frames != floor(frames))
		return bad(r, "frames is '%.40s': must be a whole number",
			   field[r->where[FRAMES]]);
	if (f.time_s < r->last_s)
		return bad(r, "time_s goes back, from %.9g to %.9g; sort the lines by time",
			   r->last_s, f.time_s);
	r->last_s = f.time_s;
	f.frames = (uint32_t)frames;
	t->all_frames += f.frames;
	if (t->all_frames > TRACE_MAX_FRAMES)
		return bad(r, "more than %d frames", TRACE_MAX_FRAMES);

	if (t->nr == t->room) {
		size_t room = t->room ? 2 * t->room : 4096;
		void *more;

		more = realloc(t->frames, room * sizeof(*t->frames));
		if (!more)
			return -ENOMEM;
		t->frames = more;
		t->room = room;
	}
	t->frames[t->nr++] = f;
	return 0;
}

/* "# mgpu-trace cpus=2 engines=1 seconds=45.0": what is known beside the frames. */
static int remark(struct reader *r, const char *line)
{
	double v;

	for (const char *s = strchr(line, ' '); s; s = strchr(s + 1, ' ')) {
		if (sscanf(s, " cpus=%lf", &v) == 1 && v >= 1 && v <= 65536)
			r->t->cpus = (unsigned int)v;
		else if (sscanf(s, " engines=%lf", &v) == 1 && v >= 1 &&
			 v <= TRACE_MAX_ENGINES)
			r->t->engines = (unsigned int)v;
		else if (sscanf(s, " seconds=%lf", &v) == 1 && v > 0 &&
			 v <= TRACE_MAX_SECONDS)
			r->seconds = v;
	}
	return 0;
}

static int compare_time(const void *a, const void *b)
{
	const struct trace_frame *x = a, *y = b;

	if (x->time_s != y->time_s)
		return x->time_s < y->time_s ? -1 : 1;
	return x->vm < y->vm ? -1 : x->vm > y->vm;
}

/*
 * Returns its length, more than TRACE_MAX_LINE for one that is too long, -1 at
 * the end.
 */
static long read_line(FILE *f, char *line, bool *zero)
{
	long n = 0;
	int c;

	*zero = false;
	while ((c = getc_unlocked(f)) != EOF && c != '\n') {
		*zero |= !c;
		line[n++] = (char)c;
		if (n > TRACE_MAX_LINE)
			break;
	}
	line[n] = '\0';
	return n || c != EOF ? n : -1;
}

int trace_read(struct trace *t, FILE *f, const char *file, char *why, size_t len)
{
	struct reader r = {
		.t = t, .file = file, .why = why, .len = len, .first_vm = t->nr_vms,
	};
	char line[TRACE_MAX_LINE + 2], *field[MAX_COLUMNS];
	size_t before = t->nr;
	int ret = 0, n;
	bool zero;
	long got;

	why[0] = '\0';
	while (!ret && (got = read_line(f, line, &zero)) >= 0) {
		r.line++;
		if (zero || got > TRACE_MAX_LINE) {
			ret = zero ? bad(&r, "contains a zero byte: not a trace") :
				bad(&r, "longer than %d characters: not a trace",
				    TRACE_MAX_LINE);
			break;
		}
		if (got && line[got - 1] == '\r')
			line[--got] = '\0';
		if (line[0] == '#')
			ret = remark(&r, line);
		if (line[0] == '#' || !line[0])
			continue;
		n = split(line, field);
		if (n < 0)
			ret = bad(&r, "more than %d columns: not a trace", MAX_COLUMNS);
		else
			ret = r.columns ? frame(&r, field, n) : header(&r, field, n);
	}
	if (!ret && ferror(f)) {
		ret = -EIO;
		snprintf(why, len, "%s: cannot be read", file);
	}
	if (!ret && !r.columns)
		ret = bad(&r, "the file is empty; the first line names the columns");
	if (!ret && t->nr == before)
		ret = bad(&r, "no frames; was any vGPU open while it was recorded?");
	if (!ret) {
		r.seconds = fmax(r.seconds, r.last_s);
		t->seconds = fmax(t->seconds, r.seconds);
		/* Replaying takes memory for each second of each vGPU. */
		if ((double)t->nr_vms * t->seconds > TRACE_MAX_VM_SECONDS)
			ret = bad(&r, "%zu vGPUs for %.0f s: no more than %d s of all vGPUs together",
				  t->nr_vms, t->seconds, TRACE_MAX_VM_SECONDS);
	}
	if (ret == -ENOMEM)
		snprintf(why, len, "%s: out of memory", file);
	if (!ret) {
		if (before)
			qsort(t->frames, t->nr, sizeof(*t->frames), compare_time);
	}
	return ret;
}

void trace_free(struct trace *t)
{
	free(t->names);
	free(t->frames);
	memset(t, 0, sizeof(*t));
}
