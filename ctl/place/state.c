// SPDX-License-Identifier: GPL-2.0-only
/* Reads the state of a cluster. */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

/**
 * struct reader - a state that is being read
 * @s: result
 * @file: name of the file
 * @where: the place in it, such as nodes[3].gpus[0]
 * @why: for an error
 * @size: size of @why
 */
struct reader {
	struct place_state *s;
	const char *file;
	char where[64];
	char *why;
	size_t size;
};

__attribute__((format(printf, 2, 3)))
static int refuse(struct reader *r, const char *fmt, ...)
{
	va_list args;
	int len;

	len = snprintf(r->why, r->size, "%s: %s%s", r->file, r->where, r->where[0] ? ": " : "");
	va_start(args, fmt);
	if (len >= 0 && (size_t)len < r->size)
		vsnprintf(r->why + len, r->size - (size_t)len, fmt, args);
	va_end(args);
	return -EINVAL;
}

/* Refuse a thing that is no object, or has a key that is not in @keys, NULL at the end. */
static int check_keys(struct reader *r, json_object *o, const char *const *keys)
{
	struct json_object_iterator at, end;

	if (!json_object_is_type(o, json_type_object))
		return refuse(r, "it must be an object");
	at = json_object_iter_begin(o);
	end = json_object_iter_end(o);
	for (; !json_object_iter_equal(&at, &end); json_object_iter_next(&at)) {
		const char *key = json_object_iter_peek_name(&at);
		size_t i;

		for (i = 0; keys[i] && strcmp(keys[i], key); i++)
			;
		if (!keys[i])
			return refuse(r, "unknown key '%.40s'; mgpu-place(1) lists the keys", key);
	}
	return 0;
}

/* @otherwise: the number without the key, -1: the key is needed */
static int number(struct reader *r, json_object *o, const char *key, int64_t least, int64_t most,
		  int64_t otherwise, int64_t *result)
{
	json_object *value;

	*result = otherwise;
	if (!json_object_object_get_ex(o, key, &value))
		return otherwise < 0 ? refuse(r, "no '%s'", key) : 0;
	if (json_object_is_type(value, json_type_int)) {
		*result = json_object_get_int64(value);
		if (*result >= least && *result <= most)
			return 0;
	}
	return refuse(r, "%s must be a whole number from %" PRId64 " to %" PRId64, key, least,
		      most);
}

/* Return a name, NULL with the error told if it is none or absent. */
static const char *name_of(struct reader *r, json_object *o, const char *key)
{
	json_object *value;
	const char *text;

	if (!json_object_object_get_ex(o, key, &value)) {
		refuse(r, "no '%s'", key);
		return NULL;
	}
	text = json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
	if (!text[0] || strlen(text) >= TRACE_NAME_LEN || strchr(text, '|')) {
		refuse(r, "%s must be a text of 1 to %d characters, none of them |", key,
		       TRACE_NAME_LEN - 1);
		return NULL;
	}
	return text;
}

/* Set @list to an array, NULL if the key is absent. */
static int array_of(struct reader *r, json_object *o, const char *key, size_t most,
		    json_object **list)
{
	if (!json_object_object_get_ex(o, key, list)) {
		*list = NULL;
		return 0;
	}
	if (!json_object_is_type(*list, json_type_array) || json_object_array_length(*list) > most)
		return refuse(r, "%s must be a list of up to %zu", key, most);
	return 0;
}

static size_t length(json_object *list)
{
	return list ? json_object_array_length(list) : 0;
}

static size_t find(char (*names)[TRACE_NAME_LEN], size_t nr, const char *name)
{
	size_t i;

	for (i = 0; i < nr && strcmp(names[i], name); i++)
		;
	return i;
}

static int read_types(struct reader *r, json_object *root)
{
	static const char *const keys[] = { "name", "gpu_milli", "gpu_memory_mib", NULL };
	struct place_state *s = r->s;
	json_object *list;
	int ret = array_of(r, root, "types", PLACE_MAX_TYPES, &list);

	for (size_t i = 0; !ret && i < length(list); i++) {
		json_object *o = json_object_array_get_idx(list, i);
		int64_t milli, memory;
		const char *name;

		snprintf(r->where, sizeof(r->where), "types[%zu]", i);
		ret = check_keys(r, o, keys);
		if (!ret)
			ret = number(r, o, "gpu_milli", 1, PLACE_WHOLE, -1, &milli);
		if (!ret)
			ret = number(r, o, "gpu_memory_mib", 0, PLACE_MAX_AMOUNT, 0, &memory);
		name = ret ? NULL : name_of(r, o, "name");
		if (!name)
			return -EINVAL;
		if (find(s->type_names, s->nr_types, name) < s->nr_types)
			return refuse(r, "duplicate type '%s'", name);
		if (i && milli < s->types[i - 1].gpu_milli)
			return refuse(r, "types must be in ascending order of gpu_milli");
		s->types[i] = (struct place_type){ (uint16_t)milli, (int32_t)memory };
		snprintf(s->type_names[s->nr_types++], TRACE_NAME_LEN, "%s", name);
	}
	r->where[0] = '\0';
	return ret;
}

/* Read a list of names as a mask of bits in @names; a name that is new is added up to @room. */
static int read_mask(struct reader *r, json_object *o, const char *key,
		     char (*names)[TRACE_NAME_LEN], size_t *nr, size_t room, uint32_t *mask)
{
	json_object *list;
	int ret = array_of(r, o, key, 32, &list);

	for (size_t i = 0; !ret && i < length(list); i++) {
		json_object *value = json_object_array_get_idx(list, i);
		const char *name = json_object_is_type(value, json_type_string) ?
			json_object_get_string(value) : "";
		size_t at = find(names, *nr, name);

		if (!name[0] || strlen(name) >= TRACE_NAME_LEN)
			return refuse(r, "%s must be a list of names", key);
		if (at == *nr && *nr >= room)
			return refuse(r, "%s: '%s' is not known; list it first", key, name);
		if (at == *nr)
			snprintf(names[(*nr)++], TRACE_NAME_LEN, "%s", name);
		*mask |= UINT32_C(1) << at;
	}
	return ret;
}

static int read_gpu(struct reader *r, json_object *o, struct place_node *n)
{
	static const char *const keys[] = {
		"free_milli", "memory_free_mib", "compute", "memory", NULL,
	};
	int64_t free_milli, memory, compute, bound;
	int ret = check_keys(r, o, keys);

	if (!ret)
		ret = number(r, o, "free_milli", 0, PLACE_WHOLE, PLACE_WHOLE, &free_milli);
	if (!ret)
		ret = number(r, o, "memory_free_mib", 0, n->gpu_memory_mib, n->gpu_memory_mib,
			     &memory);
	if (!ret)
		ret = number(r, o, "compute", 0, PLACE_WHOLE, 0, &compute);
	if (!ret)
		ret = number(r, o, "memory", 0, PLACE_WHOLE, 0, &bound);
	if (ret)
		return ret;
	n->gpu_free[n->nr_gpus] = (uint16_t)free_milli;
	n->gpu_memory_free[n->nr_gpus] = (int32_t)memory;
	n->tenants[n->nr_gpus][PLACE_KIND_COMPUTE] = (uint16_t)compute;
	n->tenants[n->nr_gpus][PLACE_KIND_MEMORY] = (uint16_t)bound;
	n->nr_gpus++;
	return 0;
}

static int read_gpus(struct reader *r, json_object *o, struct place_node *n)
{
	size_t len = strlen(r->where);
	json_object *list;
	int ret = array_of(r, o, "gpus", PLACE_MAX_GPUS, &list);

	for (size_t g = 0; !ret && g < length(list); g++) {
		snprintf(r->where + len, sizeof(r->where) - len, ".gpus[%zu]", g);
		ret = read_gpu(r, json_object_array_get_idx(list, g), n);
	}
	if (!ret)
		r->where[len] = '\0';
	return ret;
}

/* Tasks by size: parts of GPUs, one GPU, two, ... */
static int read_tasks(struct reader *r, json_object *o, struct place_node *n)
{
	json_object *list;
	int ret = array_of(r, o, "tasks", PLACE_MAX_GPUS + 1, &list);

	for (size_t k = 0; !ret && k < length(list); k++) {
		json_object *value = json_object_array_get_idx(list, k);
		int64_t tasks = json_object_get_int64(value);

		if (!json_object_is_type(value, json_type_int) || tasks < 0 || tasks > UINT16_MAX)
			return refuse(r, "tasks[%zu] must be a whole number from 0 to %d", k,
				      UINT16_MAX);
		n->tasks[k] = (uint16_t)tasks;
	}
	return ret;
}

static int read_model(struct reader *r, json_object *o, struct place_node *n)
{
	struct place_trace *t = &r->s->trace;
	const char *model = name_of(r, o, "model");
	size_t at;

	if (!model)
		return -EINVAL;
	at = find(t->models, t->nr_models, model);
	if (at == PLACE_MAX_MODELS)
		return refuse(r, "more than %d models", PLACE_MAX_MODELS);
	if (at == t->nr_models)
		snprintf(t->models[t->nr_models++], TRACE_NAME_LEN, "%s", model);
	n->model = (uint8_t)at;
	return 0;
}

static int read_node(struct reader *r, json_object *o, struct place_node *n, char *name)
{
	static const char *const keys[] = {
		"name", "model", "cpu_milli", "memory_mib", "cpu_free_milli", "memory_free_mib",
		"gpu_memory_mib", "gpus", "tasks", "types", "capabilities", NULL,
	};
	struct place_state *s = r->s;
	int64_t cpu, memory, cpu_free, memory_free, gpu_memory;
	const char *text;
	int ret = check_keys(r, o, keys);

	text = ret ? NULL : name_of(r, o, "name");
	if (!text)
		return -EINVAL;
	snprintf(name, TRACE_NAME_LEN, "%s", text);
	ret = number(r, o, "cpu_milli", 0, PLACE_MAX_AMOUNT, -1, &cpu);
	if (!ret)
		ret = number(r, o, "memory_mib", 0, PLACE_MAX_AMOUNT, -1, &memory);
	if (!ret)
		ret = number(r, o, "cpu_free_milli", 0, cpu, cpu, &cpu_free);
	if (!ret)
		ret = number(r, o, "memory_free_mib", 0, memory, memory, &memory_free);
	if (!ret)
		ret = number(r, o, "gpu_memory_mib", 0, PLACE_MAX_AMOUNT, 0, &gpu_memory);
	if (ret)
		return ret;
	n->cpu_milli = (int32_t)cpu;
	n->memory_mib = (int32_t)memory;
	n->cpu_free = (int32_t)cpu_free;
	n->memory_free = (int32_t)memory_free;
	n->gpu_memory_mib = (int32_t)gpu_memory;
	ret = read_model(r, o, n);
	if (!ret)
		ret = read_gpus(r, o, n);
	if (!ret)
		ret = read_tasks(r, o, n);
	if (!ret)
		ret = read_mask(r, o, "types", s->type_names, &s->nr_types, 0, &n->types);
	if (!ret)
		ret = read_mask(r, o, "capabilities", s->capabilities, &s->nr_capabilities,
				STATE_MAX_CAPABILITIES, &n->capabilities);
	place_node_sum(n);
	return ret;
}

static int read_state(struct reader *r, json_object *root)
{
	static const char *const keys[] = { "types", "nodes", NULL };
	struct place_trace *t = &r->s->trace;
	json_object *list = NULL;
	int ret = check_keys(r, root, keys);

	if (!ret)
		ret = read_types(r, root);
	if (!ret)
		ret = array_of(r, root, "nodes", PLACE_MAX_NODES, &list);
	if (ret)
		return ret;
	if (!length(list))
		return refuse(r, "no nodes; 'nodes' must be a list of at least one");
	t->nodes = calloc(length(list), sizeof(*t->nodes));
	t->names = calloc(length(list), sizeof(*t->names));
	if (!t->nodes || !t->names)
		return -ENOMEM;
	for (size_t i = 0; !ret && i < length(list); i++) {
		snprintf(r->where, sizeof(r->where), "nodes[%zu]", i);
		ret = read_node(r, json_object_array_get_idx(list, i), &t->nodes[i], t->names[i]);
		t->nr_nodes++;
	}
	return ret;
}

/* Read all of a file. Return its size, or -errno. */
static ssize_t read_all(FILE *f, char **text)
{
	size_t room = 4096, len = 0, got;
	char *more;

	*text = NULL;
	do {
		room *= 2;
		more = room <= STATE_MAX_BYTES ? realloc(*text, room) : NULL;
		if (!more)
			return room <= STATE_MAX_BYTES ? -ENOMEM : -EFBIG;
		*text = more;
		got = fread(*text + len, 1, room - len, f);
		len += got;
	} while (len == room);
	return ferror(f) ? -EIO : (ssize_t)len;
}

int state_read(struct place_state *s, FILE *f, const char *file, char *why, size_t size)
{
	struct reader r = { .s = s, .file = file, .why = why, .size = size };
	json_tokener *tokener = json_tokener_new_ex(16);
	json_object *root = NULL;
	char *text = NULL;
	ssize_t len = tokener ? read_all(f, &text) : -ENOMEM;
	int ret = len < 0 ? (int)len : 0;

	why[0] = '\0';
	if (!ret) {
		json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
		root = json_tokener_parse_ex(tokener, text, (int)len);
		if (json_tokener_get_error(tokener) != json_tokener_success)
			ret = refuse(&r, "not JSON at byte %zu: %s",
				     json_tokener_get_parse_end(tokener),
				     json_tokener_error_desc(json_tokener_get_error(tokener)));
	}
	if (!ret)
		ret = read_state(&r, root);
	if (ret && !why[0])
		snprintf(why, size, "%s: %s", file, strerror(-ret));
	json_object_put(root);
	if (tokener)
		json_tokener_free(tokener);
	free(text);
	return ret;
}
