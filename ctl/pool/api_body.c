// SPDX-License-Identifier: GPL-2.0-only
/* Values of calls: members of a body, and parameters of a query. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api_private.h"
#include "auth.h"
#include "cmdline.h"

#define NR_FIELDS_MAX	16

/* ---- texts ---- */

static int hex(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : isxdigit((unsigned char)c) ?
	       tolower((unsigned char)c) - 'a' + 10 : -1;
}

bool decode(const char *text, size_t len, char *result, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		int byte = (unsigned char)text[i];

		if (byte == '%') {
			if (i + 2 >= len || hex(text[i + 1]) < 0 || hex(text[i + 2]) < 0)
				return false;
			byte = hex(text[i + 1]) << 4 | hex(text[i + 2]);
			i += 2;
		}
		if (byte < 0x20 || byte == 0x7f || n + 1 >= size)
			return false;
		result[n++] = (char)byte;
	}
	result[n] = '\0';
	return true;
}

/* json-c has checked that it is UTF-8. */
static bool printable(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	return true;
}

static bool of(const char *text, const char *others, bool upper)
{
	for (const char *c = text; *c; c++)
		if (!(islower((unsigned char)*c) || isdigit((unsigned char)*c) ||
		      (upper && isupper((unsigned char)*c)) || strchr(others, *c)))
			return false;
	return *text;
}

/* ---- members ---- */

static bool wrong(struct context *c, const struct field *f, const char *must)
{
	fail(c, 400, "invalid", "member '%s' must be %s", f->name, must);
	return false;
}

static bool read_text(struct context *c, const struct field *f, struct json_object *value,
		      char *result)
{
	const char *text = json_object_get_string(value);
	size_t len = (size_t)json_object_get_string_len(value);
	char must[128];

	snprintf(must, sizeof(must), "a text of at most %zu bytes without control characters",
		 f->size - 1);
	if (!json_object_is_type(value, json_type_string) || len >= f->size ||
	    !printable(text, len))
		return wrong(c, f, must);
	if (f->kind == FIELD_NAME && !pool_name_ok(text))
		return wrong(c, f, "a name: 1 to 63 of A-Z a-z 0-9 . _ -, and begin with none of . -");
	if (f->kind == FIELD_KEY && (!of(text, "._:-", true) || strchr(".:-", *text)))
		return wrong(c, f, "1 to 63 of A-Z a-z 0-9 . _ : -, and begin with none of . : -");
	if (f->kind == FIELD_KIND && !of(text, "._-", false))
		return wrong(c, f, "1 to 63 of a-z 0-9 . _ -, such as training");
	memcpy(result, text, len + 1);
	return true;
}

static bool read_whole(struct context *c, const struct field *f, struct json_object *value,
		       void *result)
{
	char must[96];
	uint64_t n;

	snprintf(must, sizeof(must), "a whole number of %llu to %llu", (unsigned long long)f->min,
		 (unsigned long long)f->max);
	if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0)
		return wrong(c, f, must);
	n = json_object_get_uint64(value);
	if (n < f->min || n > f->max)
		return wrong(c, f, must);
	if (f->kind == FIELD_U32)
		*(uint32_t *)result = (uint32_t)n;
	else
		*(uint64_t *)result = n;
	return true;
}

static bool read_milli(struct context *c, const struct field *f, struct json_object *value,
		       uint32_t *result)
{
	double n = json_object_get_double(value);
	char must[96];

	snprintf(must, sizeof(must), "a number of 0 to %llu", (unsigned long long)f->max);
	if ((!json_object_is_type(value, json_type_int) &&
	     !json_object_is_type(value, json_type_double)) || !(n >= 0 && n <= (double)f->max))
		return wrong(c, f, must);
	*result = (uint32_t)lround(n * 1000);
	return true;
}

/* @of: gives the number of a word, or -1. */
static bool read_word(struct context *c, const struct field *f, struct json_object *value,
		      int (*number)(const char *), const char *must, int *result)
{
	*result = json_object_is_type(value, json_type_string) ?
		  number(json_object_get_string(value)) : -1;
	return *result >= 0 || wrong(c, f, must);
}

static int precision_bit(const char *name)
{
	int p = pool_precision_of(name);

	return p > POOL_PRECISION_ANY ? 1 << p : -1;
}

static int capability_bit(const char *name)
{
	return *name && !strchr(name, ',') ? pool_capabilities_of(name) : -1;
}

static bool read_mask(struct context *c, const struct field *f, struct json_object *value,
		      int (*bit_of)(const char *), const char *must, uint32_t *result)
{
	uint32_t mask = 0;

	if (!json_object_is_type(value, json_type_array))
		return wrong(c, f, must);
	for (size_t i = 0; i < json_object_array_length(value); i++) {
		struct json_object *word = json_object_array_get_idx(value, i);
		int bit = json_object_is_type(word, json_type_string) ?
			  bit_of(json_object_get_string(word)) : -1;

		if (bit <= 0 || mask & (uint32_t)bit)
			return wrong(c, f, must);
		mask |= (uint32_t)bit;
	}
	*result = mask;
	return true;
}

static bool read_null(struct context *c, const struct field *f, void *result)
{
	if (!f->null)
		return wrong(c, f, "a value, not null");
	if (f->kind == FIELD_U32)
		*(uint32_t *)result = 0;
	else if (f->kind == FIELD_U64)
		*(uint64_t *)result = 0;
	else
		*(char *)result = '\0';
	return true;
}

static bool read_field(struct context *c, const struct field *f, struct json_object *value,
		       void *result)
{
	int word = 0;

	if (!value)
		return read_null(c, f, result);
	switch (f->kind) {
	case FIELD_NAME:
	case FIELD_KEY:
	case FIELD_KIND:
	case FIELD_TEXT:
		return read_text(c, f, value, result);
	case FIELD_U32:
	case FIELD_U64:
		return read_whole(c, f, value, result);
	case FIELD_MILLI:
		return read_milli(c, f, value, result);
	case FIELD_FLAG:
		if (!json_object_is_type(value, json_type_boolean))
			return wrong(c, f, "true or false");
		*(bool *)result = json_object_get_boolean(value);
		return true;
	case FIELD_TARGET:
		if (!read_word(c, f, value, pool_target_of, "any, whole or vgpu", &word))
			return false;
		*(enum pool_target *)result = (enum pool_target)word;
		return true;
	case FIELD_PRECISION:
		if (!read_word(c, f, value, pool_precision_of, "any, fp64, fp32, fp16 or fp8",
			       &word))
			return false;
		*(enum pool_precision *)result = (enum pool_precision)word;
		return true;
	case FIELD_ROLE:
		if (!read_word(c, f, value, store_role_of, "viewer, project or admin", &word))
			return false;
		*(enum store_role *)result = (enum store_role)word;
		return true;
	case FIELD_CAPABILITIES:
		return read_mask(c, f, value, capability_bit,
				 "a list of 3d and compute, each at most once", result);
	default:
		return read_mask(c, f, value, precision_bit,
				 "a list of fp64, fp32, fp16 and fp8, each at most once", result);
	}
}

static bool unknown_member(struct context *c, const struct field *fields, const char *name)
{
	const char *names[NR_FIELDS_MAX + 1] = { NULL }, *like;
	char list[256] = "";

	for (size_t i = 0; fields[i].name && i < NR_FIELDS_MAX; i++) {
		size_t len = strlen(list);

		names[i] = fields[i].name;
		snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "", names[i]);
	}
	like = suggest(name, names);
	if (like)
		fail(c, 400, "invalid", "unknown member '%.64s'; did you mean '%s'?", name, like);
	else
		fail(c, 400, "invalid", "unknown member '%.64s'; the members are %s", name, list);
	return false;
}

static bool read_members(struct context *c, const struct field *fields, struct json_object *body,
			 void *result, uint32_t *given)
{
	struct json_object_iterator it = json_object_iter_begin(body);
	struct json_object_iterator end = json_object_iter_end(body);
	uint32_t have = 0;
	size_t i;

	for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
		const char *name = json_object_iter_peek_name(&it);

		for (i = 0; fields[i].name && strcmp(fields[i].name, name); )
			i++;
		if (!fields[i].name)
			return unknown_member(c, fields, name);
		have |= 1u << i;
		if (!read_field(c, &fields[i], json_object_iter_peek_value(&it),
				(char *)result + fields[i].offset))
			return false;
	}
	for (i = 0; fields[i].name; i++)
		if (fields[i].needed && !(have & 1u << i)) {
			fail(c, 400, "invalid", "member '%s' is missing; add it", fields[i].name);
			return false;
		}
	if (given)
		*given = have;
	return true;
}

/* Parse the body; NULL after an answer. */
static struct json_object *parse(struct context *c)
{
	struct json_tokener *t = json_tokener_new_ex(API_JSON_DEPTH);
	struct json_object *body;
	enum json_tokener_error error;

	if (!t) {
		fail(c, 503, "busy", "out of memory; ask again");
		return NULL;
	}
	json_tokener_set_flags(t, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	body = json_tokener_parse_ex(t, c->call->body, (int)c->call->body_size);
	error = json_tokener_get_error(t);
	if (error == json_tokener_success && json_tokener_get_parse_end(t) != c->call->body_size) {
		fail(c, 400, "invalid", "the body has more than one JSON value; send one object");
	} else if (error != json_tokener_success) {
		fail(c, 400, "invalid", "the body is no JSON (%s at byte %zu); send an object in UTF-8",
		     error == json_tokener_continue ? "it ends too early" :
		     json_tokener_error_desc(error), json_tokener_get_parse_end(t));
	} else if (!json_object_is_type(body, json_type_object)) {
		fail(c, 400, "invalid", "the body must be a JSON object");
	} else {
		json_tokener_free(t);
		return body;
	}
	json_object_put(body);
	json_tokener_free(t);
	return NULL;
}

bool read_body(struct context *c, const struct field *fields, void *result, uint32_t *given,
	       bool empty)
{
	struct json_object *body;
	bool good;

	if (given)
		*given = 0;
	if (!c->call->body_size && empty)
		return true;
	if (!c->call->body_size) {
		fail(c, 400, "invalid", "the body is empty; send a JSON object");
		return false;
	}
	body = parse(c);
	if (!body)
		return false;
	good = read_members(c, fields, body, result, given);
	json_object_put(body);
	return good;
}

/* ---- the query ---- */

/* The value of a parameter, up to & or the end. */
static const char *find(const char *query, const char *name, size_t *len)
{
	size_t name_len = strlen(name);

	for (const char *at = query; *at; at += strcspn(at, "&"), at += *at == '&')
		if (!strncmp(at, name, name_len) && at[name_len] == '=') {
			at += name_len + 1;
			*len = strcspn(at, "&");
			return at;
		}
	return NULL;
}

bool query_has(const struct context *c, const char *name)
{
	size_t len;

	return find(c->call->query, name, &len);
}

bool query_check(struct context *c, const char *const *names)
{
	char name[32], list[128] = "";
	const char *next, *query = c->call->query;
	size_t len, other;

	for (const char *at = query; *at; at = next) {
		len = strcspn(at, "=&");
		next = at + strcspn(at, "&");
		next += *next == '&';
		snprintf(name, sizeof(name), "%.*s", (int)(len < 31 ? len : 31), at);
		if (at[len] != '=' || !is_word(name, names)) {
			for (size_t i = 0; names[i]; i++)
				snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
					 i ? ", " : "", names[i]);
			fail(c, 400, "invalid", "bad parameter in the query; the parameters are %s, each as NAME=VALUE",
			     *list ? list : "none");
			return false;
		}
		if (find(query, name, &other) != at + len + 1) {
			fail(c, 400, "invalid", "duplicate parameter '%s'; remove one", name);
			return false;
		}
	}
	return true;
}

bool query_number(struct context *c, const char *name, uint64_t min, uint64_t max, uint64_t *value)
{
	char text[32], *end;
	size_t len;
	const char *at = find(c->call->query, name, &len);
	unsigned long long n;

	if (!at)
		return true;
	if (decode(at, len, text, sizeof(text)) && isdigit((unsigned char)*text)) {
		errno = 0;
		n = strtoull(text, &end, 10);
		if (!errno && !*end && n >= min && n <= max) {
			*value = n;
			return true;
		}
	}
	fail(c, 400, "invalid", "parameter '%s' must be a whole number of %llu to %llu", name,
	     (unsigned long long)min, (unsigned long long)max);
	return false;
}

bool query_name(struct context *c, const char *name, char value[POOL_NAME_MAX])
{
	size_t len;
	const char *at = find(c->call->query, name, &len);

	*value = '\0';
	if (!at || (decode(at, len, value, POOL_NAME_MAX) && pool_name_ok(value)))
		return true;
	fail(c, 400, "invalid", "parameter '%s' must be a name", name);
	return false;
}
