// SPDX-License-Identifier: GPL-2.0-only
/* Reads traces. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "place_trace.h"

#define LINE_MAX_LEN	65536
#define MAX_COLUMNS	64

/**
 * struct column - a column that a reader knows
 * @name: as the first line has it
 * @needed: a file without it is refused
 * @at: its place in the file, -1: not there
 */
struct column {
	const char *name;
	bool needed;
	int at;
};

/**
 * struct table - a CSV file that is being read
 * @f: the file
 * @file: its name
 * @kind: what it has, for errors
 * @columns: columns, with NULL as the last name
 * @line: number of the line
 * @text: the line, its fields ended by 0
 * @room: size of @text
 * @fields: offsets of the fields in @text
 * @nr_fields: fields of the line
 * @nr_columns: fields of the first line
 * @why: for an error
 * @size: size of @why
 */
struct table {
	FILE *f;
	const char *file;
	const char *kind;
	struct column *columns;
	unsigned int line;
	char *text;
	size_t room;
	size_t fields[MAX_COLUMNS];
	int nr_fields;
	int nr_columns;
	char *why;
	size_t size;
};

__attribute__((format(printf, 3, 4)))
static int refuse(struct table *t, size_t offset, const char *fmt, ...)
{
	va_list args;
	int len;

	len = snprintf(t->why, t->size, "%s:%u:%zu: ", t->file, t->line, offset + 1);
	va_start(args, fmt);
	if (len >= 0 && (size_t)len < t->size)
		vsnprintf(t->why + len, t->size - (size_t)len, fmt, args);
	va_end(args);
	return -EINVAL;
}

/* Read a line that is not empty, and split it. Return 1, 0 at the end, or -errno. */
static int next_line(struct table *t)
{
	ssize_t len;

	do {
		errno = 0;
		len = getline(&t->text, &t->room, t->f);
		if (len < 0)
			return errno == ENOMEM ? -ENOMEM : ferror(t->f) ? -EIO : 0;
		t->line++;
		if (len > LINE_MAX_LEN)
			return refuse(t, LINE_MAX_LEN, "the line is longer than %d bytes",
				      LINE_MAX_LEN);
		if (memchr(t->text, 0, (size_t)len))
			return refuse(t, strlen(t->text), "a byte 0; the file must be text");
		t->text[strcspn(t->text, "\r\n")] = '\0';
	} while (!t->text[0]);
	t->nr_fields = 0;
	for (char *at = t->text, *end; at; at = end) {
		if (t->nr_fields == MAX_COLUMNS)
			return refuse(t, (size_t)(at - t->text), "more than %d columns",
				      MAX_COLUMNS);
		t->fields[t->nr_fields++] = (size_t)(at - t->text);
		end = strchr(at, ',');
		if (end)
			*end++ = '\0';
	}
	return 1;
}

static int read_header(struct table *t)
{
	char all[256] = "";
	int ret = next_line(t);

	if (ret < 0)
		return ret;
	if (!ret) {
		t->line = 1;
		return refuse(t, 0, "the file is empty; its first line must name its columns");
	}
	t->nr_columns = t->nr_fields;
	for (struct column *c = t->columns; c->name; c++) {
		c->at = -1;
		for (int i = 0; i < t->nr_fields; i++) {
			if (strcmp(t->text + t->fields[i], c->name))
				continue;
			if (c->at >= 0)
				return refuse(t, t->fields[i], "duplicate column '%s'", c->name);
			c->at = i;
		}
		if (c->needed)
			snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
				 all[0] ? ", " : "", c->name);
	}
	for (struct column *c = t->columns; c->name; c++)
		if (c->needed && c->at < 0)
			return refuse(t, 0, "no column '%s'; a file of %s needs the columns %s",
				      c->name, t->kind, all);
	return 0;
}

/* Read the next row. Return as next_line(). */
static int next_row(struct table *t)
{
	int ret = next_line(t);

	if (ret == 1 && t->nr_fields != t->nr_columns)
		return refuse(t, t->fields[t->nr_fields - 1],
			      "%d fields; the first line names %d columns", t->nr_fields,
			      t->nr_columns);
	return ret;
}

static const char *field(const struct table *t, unsigned int column)
{
	int at = t->columns[column].at;

	return at < 0 ? "" : t->text + t->fields[at];
}

static size_t offset_of(const struct table *t, unsigned int column)
{
	int at = t->columns[column].at;

	return at < 0 ? 0 : t->fields[at];
}

/* Read a whole number. Without one it is @otherwise; -1: it is needed. */
static int number(struct table *t, unsigned int column, int64_t least, int64_t most,
		  int64_t otherwise, int64_t *result)
{
	const char *text = field(t, column);
	char *end;

	if (!text[0] && otherwise >= 0) {
		*result = otherwise;
		return 0;
	}
	errno = 0;
	*result = strtoll(text, &end, 10);
	if (errno || end == text || *end || *result < least || *result > most ||
	    strspn(text, "0123456789") != strlen(text))
		return refuse(t, offset_of(t, column),
			      "%s is '%.40s'; it must be a whole number from %lld to %lld",
			      t->columns[column].name, text, (long long)least, (long long)most);
	return 0;
}

/* Return the bit of a model. Models beyond the last are none. */
static int find_model(const struct place_trace *t, const char *name, size_t len)
{
	for (size_t i = 0; i < t->nr_models; i++)
		if (strlen(t->models[i]) == len && !memcmp(t->models[i], name, len))
			return (int)i;
	return -1;
}

uint32_t trace_models(const struct place_trace *t, const char *spec)
{
	uint32_t mask = 0;
	int model;

	if (!spec[0])
		return PLACE_ANY_MODEL;
	for (;;) {
		size_t len = strcspn(spec, "|");

		model = find_model(t, spec, len);
		if (model >= 0)
			mask |= UINT32_C(1) << model;
		if (!spec[len])
			return mask;
		spec += len + 1;
	}
}

/* Make room for one more of @nr things of @size bytes. */
static int grow(void *array, size_t nr, size_t size)
{
	void *old, *more;

	/* at 0, 64, 128, 256, ... */
	if (nr && (nr < 64 || nr & (nr - 1)))
		return 0;
	memcpy(&old, array, sizeof(old));
	more = realloc(old, (nr ? nr * 2 : 64) * size);
	if (!more)
		return -ENOMEM;
	memcpy(array, &more, sizeof(more));
	return 0;
}

enum { NODE_NAME, NODE_CPU, NODE_MEMORY, NODE_GPU, NODE_MODEL, NODE_GPU_MEMORY };

static int read_node(struct place_trace *t, struct table *table)
{
	int64_t cpu, memory, gpus, gpu_memory;
	const char *model = field(table, NODE_MODEL);
	struct place_node *n;
	int index, ret;

	if (t->nr_nodes == PLACE_MAX_NODES)
		return refuse(table, 0, "more than %d nodes", PLACE_MAX_NODES);
	ret = number(table, NODE_CPU, 0, PLACE_MAX_AMOUNT, -1, &cpu);
	if (!ret)
		ret = number(table, NODE_MEMORY, 0, PLACE_MAX_AMOUNT, -1, &memory);
	if (!ret)
		ret = number(table, NODE_GPU, 0, PLACE_MAX_GPUS, -1, &gpus);
	if (!ret)
		ret = number(table, NODE_GPU_MEMORY, 0, PLACE_MAX_AMOUNT, 0, &gpu_memory);
	if (ret)
		return ret;
	if (strlen(model) >= TRACE_NAME_LEN || strchr(model, '|'))
		return refuse(table, offset_of(table, NODE_MODEL),
			      "the name of a model has less than %d characters, none of them |",
			      TRACE_NAME_LEN);
	index = find_model(t, model, strlen(model));
	if (index < 0 && t->nr_models == PLACE_MAX_MODELS)
		return refuse(table, offset_of(table, NODE_MODEL), "more than %d models",
			      PLACE_MAX_MODELS);
	if (grow(&t->nodes, t->nr_nodes, sizeof(*t->nodes)) ||
	    grow(&t->names, t->nr_nodes, sizeof(*t->names)))
		return -ENOMEM;
	if (index < 0) {
		index = (int)t->nr_models++;
		snprintf(t->models[index], TRACE_NAME_LEN, "%s", model);
	}
	if (table->columns[NODE_NAME].at < 0)
		snprintf(t->names[t->nr_nodes], TRACE_NAME_LEN, "%zu", t->nr_nodes);
	else
		snprintf(t->names[t->nr_nodes], TRACE_NAME_LEN, "%s", field(table, NODE_NAME));
	n = &t->nodes[t->nr_nodes++];
	*n = (struct place_node){
		.cpu_free = (int32_t)cpu, .cpu_milli = (int32_t)cpu,
		.memory_free = (int32_t)memory, .memory_mib = (int32_t)memory,
		.nr_gpus = (uint8_t)gpus, .model = (uint8_t)index,
		.gpu_memory_mib = (int32_t)gpu_memory,
	};
	for (unsigned int g = 0; g < n->nr_gpus; g++) {
		n->gpu_free[g] = PLACE_WHOLE;
		n->gpu_memory_free[g] = n->gpu_memory_mib;
	}
	place_node_sum(n);
	return 0;
}

/* Read all rows of a file. */
static int read_table(struct place_trace *t, struct table *table,
		      int (*row)(struct place_trace *t, struct table *table))
{
	int ret;

	table->why[0] = '\0';
	ret = read_header(table);
	while (!ret) {
		ret = next_row(table);
		if (ret <= 0)
			break;
		ret = row(t, table);
	}
	free(table->text);
	if (ret && !table->why[0])
		snprintf(table->why, table->size, "%s: %s", table->file, strerror(-ret));
	return ret;
}

int trace_read_nodes(struct place_trace *t, FILE *f, const char *file, char *why, size_t size)
{
	struct column columns[] = {
		[NODE_NAME] = { .name = "sn" },
		[NODE_CPU] = { .name = "cpu_milli", .needed = true },
		[NODE_MEMORY] = { .name = "memory_mib", .needed = true },
		[NODE_GPU] = { .name = "gpu", .needed = true },
		[NODE_MODEL] = { .name = "model", .needed = true },
		[NODE_GPU_MEMORY] = { .name = "gpu_memory_mib" },
		{ 0 },
	};
	struct table table = { .f = f, .file = file, .kind = "nodes", .columns = columns,
			       .why = why, .size = size };
	int ret = read_table(t, &table, read_node);

	if (!ret && !t->nr_nodes)
		ret = refuse(&table, 0, "no nodes; each line after the first is a node");
	return ret;
}

enum { TASK_CPU, TASK_MEMORY, TASK_GPUS, TASK_MILLI, TASK_SPEC, TASK_CREATION, TASK_DELETION,
	TASK_GPU_MEMORY };

static int read_task(struct place_trace *t, struct table *table)
{
	int64_t cpu, memory, gpus, milli, gpu_memory, creation, deletion;
	struct place_task *task;
	int ret;

	if (t->nr_tasks == TRACE_MAX_TASKS)
		return refuse(table, 0, "more than %d tasks", TRACE_MAX_TASKS);
	ret = number(table, TASK_CPU, 0, PLACE_MAX_AMOUNT, -1, &cpu);
	if (!ret)
		ret = number(table, TASK_MEMORY, 0, PLACE_MAX_AMOUNT, -1, &memory);
	if (!ret)
		ret = number(table, TASK_GPUS, 0, PLACE_MAX_GPUS, -1, &gpus);
	if (!ret)
		ret = number(table, TASK_MILLI, gpus ? 1 : 0, gpus ? PLACE_WHOLE : 0, -1, &milli);
	if (!ret)
		ret = number(table, TASK_GPU_MEMORY, 0, PLACE_MAX_AMOUNT, 0, &gpu_memory);
	if (!ret)
		ret = number(table, TASK_CREATION, 0, TRACE_MAX_TIME, 0, &creation);
	if (!ret)
		ret = number(table, TASK_DELETION, creation, TRACE_MAX_TIME, TRACE_MAX_TIME,
			     &deletion);
	if (ret)
		return ret;
	if (grow(&t->tasks, t->nr_tasks, sizeof(*t->tasks)))
		return -ENOMEM;
	task = &t->tasks[t->nr_tasks++];
	*task = (struct place_task){
		.r = {
			.cpu_milli = (int32_t)cpu, .memory_mib = (int32_t)memory,
			.nr_gpus = (uint8_t)gpus, .gpu_milli = (uint16_t)milli,
			.gpu_memory_mib = (int32_t)gpu_memory,
			.models = gpus ? trace_models(t, field(table, TASK_SPEC)) :
				PLACE_ANY_MODEL,
		},
		.creation_s = creation,
		.deletion_s = deletion,
	};
	return 0;
}

int trace_read_tasks(struct place_trace *t, FILE *f, const char *file, char *why, size_t size)
{
	struct column columns[] = {
		[TASK_CPU] = { .name = "cpu_milli", .needed = true },
		[TASK_MEMORY] = { .name = "memory_mib", .needed = true },
		[TASK_GPUS] = { .name = "num_gpu", .needed = true },
		[TASK_MILLI] = { .name = "gpu_milli", .needed = true },
		[TASK_SPEC] = { .name = "gpu_spec" },
		[TASK_CREATION] = { .name = "creation_time" },
		[TASK_DELETION] = { .name = "deletion_time" },
		[TASK_GPU_MEMORY] = { .name = "gpu_memory_mib" },
		{ 0 },
	};
	struct table table = { .f = f, .file = file, .kind = "tasks", .columns = columns,
			       .why = why, .size = size };
	int ret = read_table(t, &table, read_task);

	if (!ret && !t->nr_tasks)
		ret = refuse(&table, 0, "no tasks; each line after the first is a task");
	t->timed = columns[TASK_CREATION].at >= 0 && columns[TASK_DELETION].at >= 0;
	return ret;
}

void place_trace_free(struct place_trace *t)
{
	free(t->nodes);
	free(t->names);
	free(t->tasks);
	*t = (struct place_trace){ 0 };
}

/* Compare field by field: a request has padding. */
static int compare_requests(const struct place_request *a, const struct place_request *b)
{
	const int64_t x[] = { a->nr_gpus, a->gpu_milli, a->models, a->cpu_milli, a->memory_mib,
			      a->gpu_memory_mib };
	const int64_t y[] = { b->nr_gpus, b->gpu_milli, b->models, b->cpu_milli, b->memory_mib,
			      b->gpu_memory_mib };

	for (size_t i = 0; i < sizeof(x) / sizeof(*x); i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

static int by_request(const void *a, const void *b)
{
	return compare_requests(&((const struct place_class *)a)->r,
				&((const struct place_class *)b)->r);
}

static int by_count(const void *a, const void *b)
{
	uint32_t x = ((const struct place_class *)a)->count;
	uint32_t y = ((const struct place_class *)b)->count;

	return x != y ? (x < y) - (x > y) : by_request(a, b);
}

struct place_class *trace_classes(const struct place_trace *t, size_t *nr)
{
	struct place_class *classes = calloc(t->nr_tasks + 1, sizeof(*classes));

	*nr = 0;
	if (!classes)
		return NULL;
	for (size_t i = 0; i < t->nr_tasks; i++)
		classes[i] = (struct place_class){ .r = t->tasks[i].r, .count = 1 };
	qsort(classes, t->nr_tasks, sizeof(*classes), by_request);
	for (size_t i = 0; i < t->nr_tasks; i++) {
		if (*nr && !compare_requests(&classes[i].r, &classes[*nr - 1].r))
			classes[*nr - 1].count++;
		else
			classes[(*nr)++] = classes[i];
	}
	qsort(classes, *nr, sizeof(*classes), by_count);
	if (*nr > POTENTIAL_MAX_CLASSES)
		*nr = POTENTIAL_MAX_CLASSES;
	return classes;
}
