// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"
#include "utf8.h"

/* ---- tables ---- */

#define FIELD(type, column, field, kind) \
	{ column, offsetof(struct type, field), sizeof(((struct type *)NULL)->field), kind, false }
#define ONCE(type, column, field, kind) \
	{ column, offsetof(struct type, field), sizeof(((struct type *)NULL)->field), kind, true }
#define TABLE(table, keys) \
	{ "pool_" #table, table##_fields, sizeof(table##_fields) / sizeof(*table##_fields), keys }

static const struct row_field project_fields[] = {
	FIELD(pool_project, "name", name, ROW_TEXT),
	FIELD(pool_project, "weight", weight, ROW_U32),
	FIELD(pool_project, "max_gpus", max_gpus, ROW_U32),
};

static const struct row_field vm_fields[] = {
	FIELD(pool_vm, "name", name, ROW_TEXT),
	FIELD(pool_vm, "host", host, ROW_TEXT),
	FIELD(pool_vm, "uuid", uuid, ROW_TEXT),
	FIELD(pool_vm, "project", project, ROW_TEXT),
	FIELD(pool_vm, "pinned", pinned, ROW_BOOL),
	FIELD(pool_vm, "consent", consent, ROW_TIME),
	/* store_take_seq() alone raises it: the caller's copy may be old. */
	ONCE(pool_vm, "seq", seq, ROW_U64),
	FIELD(pool_vm, "seen", seen, ROW_TIME),
};

static const struct row_field gpu_fields[] = {
	FIELD(pool_gpu, "name", name, ROW_TEXT),
	FIELD(pool_gpu, "host", host, ROW_TEXT),
	FIELD(pool_gpu, "addr", addr, ROW_TEXT),
	FIELD(pool_gpu, "functions", functions, ROW_FUNCTIONS),
	FIELD(pool_gpu, "iommu_group", group, ROW_INT),
	FIELD(pool_gpu, "target", target, ROW_TARGET),
	FIELD(pool_gpu, "model", model, ROW_TEXT),
	FIELD(pool_gpu, "types", types, ROW_TEXT),
	FIELD(pool_gpu, "slots", slots, ROW_U32),
	FIELD(pool_gpu, "memory_mib", memory_mib, ROW_U32),
	FIELD(pool_gpu, "capabilities", capabilities, ROW_CAPABILITIES),
	FIELD(pool_gpu, "precisions", precisions, ROW_U32),
	FIELD(pool_gpu, "offline", offline, ROW_BOOL),
	FIELD(pool_gpu, "why", why, ROW_TEXT),
	FIELD(pool_gpu, "device", device, ROW_TEXT),
	FIELD(pool_gpu, "managed", managed, ROW_U32),
};

static const struct row_field request_fields[] = {
	FIELD(pool_request, "id", id, ROW_U64),
	FIELD(pool_request, "project", project, ROW_TEXT),
	FIELD(pool_request, "key", key, ROW_TEXT),
	FIELD(pool_request, "vm", vm, ROW_TEXT),
	FIELD(pool_request, "kind", kind, ROW_TEXT),
	FIELD(pool_request, "target", target, ROW_TARGET),
	FIELD(pool_request, "precision", precision, ROW_PRECISION),
	FIELD(pool_request, "size_mib", size_mib, ROW_U64),
	FIELD(pool_request, "memory_mib", memory_mib, ROW_U32),
	FIELD(pool_request, "capabilities", capabilities, ROW_CAPABILITIES),
	FIELD(pool_request, "type", type, ROW_TEXT),
	FIELD(pool_request, "weight", weight, ROW_U32),
	FIELD(pool_request, "floor_mhz", floor_mhz, ROW_U32),
	FIELD(pool_request, "lease", lease, ROW_U32),
	FIELD(pool_request, "state", state, ROW_STATE),
	FIELD(pool_request, "gpu", gpu, ROW_TEXT),
	FIELD(pool_request, "uuid", uuid, ROW_TEXT),
	FIELD(pool_request, "why", why, ROW_TEXT),
	FIELD(pool_request, "asked", asked, ROW_TIME),
	FIELD(pool_request, "chosen", chosen, ROW_TIME),
	FIELD(pool_request, "attached", attached, ROW_TIME),
	FIELD(pool_request, "ended", ended, ROW_TIME),
	FIELD(pool_request, "until", until, ROW_TIME),
	FIELD(pool_request, "warned", warned, ROW_TIME),
	FIELD(pool_request, "tries", tries, ROW_U32),
	FIELD(pool_request, "cancel", cancel, ROW_BOOL),
	FIELD(pool_request, "vm_uuid", vm_uuid, ROW_TEXT),
};

static const struct row_field use_fields[] = {
	FIELD(pool_use, "request", request, ROW_U64),
	FIELD(pool_use, "time", time, ROW_TIME),
	FIELD(pool_use, "source", source, ROW_LETTER),
	FIELD(pool_use, "busy_ns", busy_ns, ROW_U64),
	FIELD(pool_use, "energy_mj", energy_mj, ROW_U64),
	FIELD(pool_use, "memory_mib", memory_mib, ROW_U32),
};

static const struct row_field outcome_fields[] = {
	FIELD(pool_outcome, "request", request, ROW_U64),
	FIELD(pool_outcome, "project", project, ROW_TEXT),
	FIELD(pool_outcome, "kind", kind, ROW_TEXT),
	FIELD(pool_outcome, "model", model, ROW_TEXT),
	FIELD(pool_outcome, "target", target, ROW_TARGET),
	FIELD(pool_outcome, "precision", precision, ROW_PRECISION),
	FIELD(pool_outcome, "size_mib", size_mib, ROW_U64),
	FIELD(pool_outcome, "microseconds", seconds, ROW_SECONDS),
	FIELD(pool_outcome, "busy_ns", busy_ns, ROW_U64),
	FIELD(pool_outcome, "energy_mj", energy_mj, ROW_U64),
	FIELD(pool_outcome, "memory_mib", memory_mib, ROW_U32),
	FIELD(pool_outcome, "ended", ended, ROW_TIME),
	FIELD(pool_outcome, "done", done, ROW_BOOL),
};

static const struct row_field event_fields[] = {
	FIELD(pool_event, "id", id, ROW_U64),
	FIELD(pool_event, "time", time, ROW_TIME),
	FIELD(pool_event, "actor", actor, ROW_TEXT),
	FIELD(pool_event, "what", what, ROW_TEXT),
	FIELD(pool_event, "request", request, ROW_U64),
	FIELD(pool_event, "object", object, ROW_TEXT),
	FIELD(pool_event, "text", text, ROW_TEXT),
};

static const struct row_field token_fields[] = {
	FIELD(store_token, "name", name, ROW_TEXT),
	FIELD(store_token, "hash", hash, ROW_TEXT),
	FIELD(store_token, "role", role, ROW_ROLE),
	FIELD(store_token, "project", project, ROW_TEXT),
	FIELD(store_token, "expires", expires, ROW_TIME),
};

const struct row_table row_project = TABLE(project, 1);
const struct row_table row_vm = TABLE(vm, 1);
const struct row_table row_gpu = TABLE(gpu, 1);
const struct row_table row_request = TABLE(request, 1);
const struct row_table row_use = TABLE(use, 3);
const struct row_table row_outcome = TABLE(outcome, 1);
const struct row_table row_event = TABLE(event, 1);
const struct row_table row_token = TABLE(token, 1);

static const char *const roles[STORE_ROLES] = {
	[STORE_VIEWER] = "viewer",
	[STORE_PROJECT] = "project",
	[STORE_ADMIN] = "admin",
};

const char *store_role_name(enum store_role role)
{
	return (unsigned int)role < STORE_ROLES ? roles[role] : NULL;
}

int store_role_of(const char *name)
{
	for (int i = 0; i < STORE_ROLES; i++)
		if (!strcmp(name, roles[i]))
			return i;
	return -1;
}

/* ---- an object's values ---- */

__attribute__((format(printf, 3, 4)))
static int refuse(char *why, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, POOL_TEXT_MAX, fmt, ap);
	va_end(ap);
	return error;
}

int row_check_text(const char *name, const char *text, size_t size, char *why)
{
	size_t len = strnlen(text, size), n;

	if (len == size)
		return refuse(why, -EILSEQ, "the text of \"%s\" is longer than %zu bytes: shorten it",
			      name, size - 1);
	for (const char *s = text; *s; s += n) {
		n = utf8_len((const unsigned char *)s);
		if (!n)
			return refuse(why, -EILSEQ,
				      "the text of \"%s\" has at byte %zu what is no UTF-8: send UTF-8",
				      name, (size_t)(s - text));
	}
	return 0;
}

static int set_number(const char *name, uint64_t number, struct sql_value *value, char *why)
{
	if (number > INT64_MAX)
		return refuse(why, -ERANGE, "the number of \"%s\" is above %lld: send a smaller one",
			      name, (long long)INT64_MAX);
	value->number = (int64_t)number;
	return 0;
}

static int set_seconds(const char *name, double seconds, struct sql_value *value, char *why)
{
	/* written so that a NaN is refused */
	if (!(seconds >= 0 && seconds < 1e12))
		return refuse(why, -ERANGE, "\"%s\" is no time of a piece of work: %g s", name,
			      seconds);
	value->number = llround(seconds * 1e6);
	return 0;
}

static int set_name(const char *name, const char *text, struct sql_value *value, char *why)
{
	if (!text)
		return refuse(why, -EINVAL, "\"%s\" has an unknown value", name);
	value->text = text;
	return 0;
}

static int set_functions(const char *name, const struct pool_gpu *gpu, char *text,
			 struct sql_value *value, char *why)
{
	size_t len = 0;
	int rc = 0;

	if (gpu->nr_functions > POOL_FUNCTIONS_MAX)
		return refuse(why, -ERANGE, "\"%s\" has %u functions, at most %d fit", name,
			      gpu->nr_functions, POOL_FUNCTIONS_MAX);
	*text = '\0';
	for (unsigned int i = 0; i < gpu->nr_functions && !rc; i++) {
		rc = row_check_text(name, gpu->functions[i], POOL_ADDR_MAX, why);
		if (!rc)
			len += (size_t)sprintf(text + len, "%s%s", i ? " " : "", gpu->functions[i]);
	}
	value->text = text;
	return rc;
}

static int set_value(const struct row_field *field, const void *object, struct row_values *values,
		     struct sql_value *value, char *why)
{
	const void *at = (const char *)object + field->offset;
	const char *name = field->name;

	*value = (struct sql_value){ 0 };
	switch (field->kind) {
	case ROW_TEXT:
		value->text = at;
		return row_check_text(name, at, field->size, why);
	case ROW_U32:
		value->number = *(const uint32_t *)at;
		return 0;
	case ROW_U64:
		return set_number(name, *(const uint64_t *)at, value, why);
	case ROW_TIME:
		value->number = *(const int64_t *)at;
		return 0;
	case ROW_INT:
		value->number = *(const int *)at;
		return 0;
	case ROW_BOOL:
		value->number = *(const bool *)at;
		return 0;
	case ROW_SECONDS:
		return set_seconds(name, *(const double *)at, value, why);
	case ROW_LETTER:
		snprintf(values->made[0], 2, "%c", *(const char *)at);
		value->text = values->made[0];
		return row_check_text(name, value->text, 2, why);
	case ROW_TARGET:
		return set_name(name, pool_target_name(*(const enum pool_target *)at), value,
				why);
	case ROW_PRECISION:
		return set_name(name, pool_precision_name(*(const enum pool_precision *)at), value,
				why);
	case ROW_STATE:
		return set_name(name, pool_state_name(*(const enum pool_state *)at), value, why);
	case ROW_ROLE:
		return set_name(name, store_role_name(*(const enum store_role *)at), value, why);
	case ROW_CAPABILITIES:
		if (*(const uint32_t *)at & ~(uint32_t)(POOL_3D | POOL_COMPUTE))
			return set_name(name, NULL, value, why);
		pool_capabilities_text(*(const uint32_t *)at, values->made[0]);
		return set_name(name, values->made[0], value, why);
	case ROW_FUNCTIONS:
		return set_functions(name, object, values->made[1], value, why);
	}
	return -EINVAL;
}

int row_values(const struct row_table *table, const void *object, size_t from,
	       struct row_values *values, char *why)
{
	int rc = 0;

	for (size_t i = from; i < table->nr && !rc; i++)
		rc = set_value(&table->fields[i], object, values, &values->v[i - from], why);
	return rc;
}

/* ---- a row's object ---- */

static int get_text(const struct sql_value *value, char *text, size_t size)
{
	if (!value->text || value->size >= size || strlen(value->text) != value->size)
		return -1;
	memcpy(text, value->text, value->size + 1);
	return 0;
}

static int get_functions(const struct sql_value *value, struct pool_gpu *gpu)
{
	char text[POOL_FUNCTIONS_MAX * POOL_ADDR_MAX], *rest = text, *word;

	if (get_text(value, text, sizeof(text)))
		return -1;
	gpu->nr_functions = 0;
	while ((word = strsep(&rest, " "))) {
		if (!*word)
			continue;
		if (gpu->nr_functions == POOL_FUNCTIONS_MAX || strlen(word) >= POOL_ADDR_MAX)
			return -1;
		strcpy(gpu->functions[gpu->nr_functions++], word);
	}
	return 0;
}

static int get_name(const struct sql_value *value, int (*of)(const char *), int *number)
{
	char text[POOL_NAME_MAX];

	if (get_text(value, text, sizeof(text)))
		return -1;
	*number = of(text);
	return *number < 0 ? -1 : 0;
}

static int get_enumeration(const struct row_field *field, const struct sql_value *value, void *at)
{
	int number;

	switch (field->kind) {
	case ROW_TARGET:
		if (get_name(value, pool_target_of, &number))
			return -1;
		*(enum pool_target *)at = (enum pool_target)number;
		return 0;
	case ROW_PRECISION:
		if (get_name(value, pool_precision_of, &number))
			return -1;
		*(enum pool_precision *)at = (enum pool_precision)number;
		return 0;
	case ROW_STATE:
		if (get_name(value, pool_state_of, &number))
			return -1;
		*(enum pool_state *)at = (enum pool_state)number;
		return 0;
	case ROW_ROLE:
		if (get_name(value, store_role_of, &number))
			return -1;
		*(enum store_role *)at = (enum store_role)number;
		return 0;
	default:
		if (get_name(value, pool_capabilities_of, &number))
			return -1;
		*(uint32_t *)at = (uint32_t)number;
		return 0;
	}
}

static int get_number(const struct row_field *field, const struct sql_value *value, void *at)
{
	int64_t n = value->number;

	if (value->text)
		return -1;
	switch (field->kind) {
	case ROW_U32:
		*(uint32_t *)at = (uint32_t)n;
		return n < 0 || n > UINT32_MAX ? -1 : 0;
	case ROW_U64:
		*(uint64_t *)at = (uint64_t)n;
		return n < 0 ? -1 : 0;
	case ROW_INT:
		*(int *)at = (int)n;
		return n < INT_MIN || n > INT_MAX ? -1 : 0;
	case ROW_BOOL:
		*(bool *)at = n;
		return n < 0 || n > 1 ? -1 : 0;
	case ROW_SECONDS:
		*(double *)at = (double)n / 1e6;
		return n < 0 ? -1 : 0;
	default:
		*(int64_t *)at = n;
		return 0;
	}
}

static int get_value(const struct row_field *field, const struct sql_value *value, void *object)
{
	void *at = (char *)object + field->offset;
	char letter[2];

	switch (field->kind) {
	case ROW_TEXT:
		return get_text(value, at, field->size);
	case ROW_LETTER:
		if (get_text(value, letter, sizeof(letter)))
			return -1;
		*(char *)at = letter[0];
		return 0;
	case ROW_FUNCTIONS:
		return get_functions(value, object);
	case ROW_TARGET:
	case ROW_PRECISION:
	case ROW_STATE:
	case ROW_ROLE:
	case ROW_CAPABILITIES:
		return get_enumeration(field, value, at);
	default:
		return get_number(field, value, at);
	}
}

int row_object(const struct row_table *table, const struct sql_value *row, void *object, char *why)
{
	for (size_t i = 0; i < table->nr; i++)
		if (get_value(&table->fields[i], &row[i], object))
			return refuse(why, -EIO,
				      "a row of %s has a \"%s\" that no mgpu-poold wrote: correct it, or restore a backup",
				      table->name, table->fields[i].name);
	return 0;
}

/* ---- SQL ---- */

/* Write names of columns, or parameters for them, with commas. */
static void list(FILE *f, const struct row_table *table, size_t from, bool parameters)
{
	for (size_t i = from; i < table->nr; i++) {
		fputs(i > from ? ", " : "", f);
		if (parameters)
			fprintf(f, "$%zu", i - from + 1);
		else
			fputs(table->fields[i].name, f);
	}
}

static char *finish(FILE *f, char **text)
{
	if (fclose(f) == 0)
		return *text;
	free(*text);
	return NULL;
}

static void insert(FILE *f, const struct row_table *table, size_t from)
{
	fprintf(f, "INSERT INTO %s (", table->name);
	list(f, table, from, false);
	fputs(") VALUES (", f);
	list(f, table, from, true);
	fputs(")", f);
}

char *row_sql_put(const struct row_table *table)
{
	const char *separator = "";
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	insert(f, table, 0);
	fputs(" ON CONFLICT (", f);
	for (size_t i = 0; i < table->nr_keys; i++)
		fprintf(f, "%s%s", i ? ", " : "", table->fields[i].name);
	fputs(") DO UPDATE SET ", f);
	for (size_t i = table->nr_keys; i < table->nr; i++) {
		if (table->fields[i].once)
			continue;
		fprintf(f, "%s%s = excluded.%s", separator, table->fields[i].name,
			table->fields[i].name);
		separator = ", ";
	}
	return finish(f, &text);
}

char *row_sql_add(const struct row_table *table, const char *conflict)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	insert(f, table, 1);
	fprintf(f, " %s RETURNING %s", conflict, table->fields[0].name);
	return finish(f, &text);
}

char *row_sql_update(const struct row_table *table, size_t from)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fprintf(f, "UPDATE %s SET ", table->name);
	for (size_t i = from; i < table->nr; i++)
		fprintf(f, "%s%s = $%zu", i > from ? ", " : "", table->fields[i].name,
			i - from + 2);
	fprintf(f, " WHERE %s = $1", table->fields[0].name);
	return finish(f, &text);
}

char *row_sql_select(const struct row_table *table, const char *rest)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		return NULL;
	fputs("SELECT ", f);
	list(f, table, 0, false);
	fprintf(f, " FROM %s %s", table->name, rest);
	return finish(f, &text);
}
