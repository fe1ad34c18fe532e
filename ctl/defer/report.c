// SPDX-License-Identifier: GPL-2.0-only
#include <inttypes.h>
#include <string.h>

#include "report.h"

/* ---- JSON ---- */

static const char *const class_words[] = {
	[ARG_CONST] = "constant", [ARG_IV] = "induction", [ARG_RESULT] = "result",
	[ARG_DATA] = "data", [ARG_UNKNOWN] = "unknown",
};

static json_object *address(uint64_t a)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, a);
	return json_object_new_string(text);
}

static json_object *text_or_null(const char *s)
{
	return s ? json_object_new_string(s) : NULL;
}

static void put(json_object *o, const char *key, json_object *value)
{
	json_object_object_add(o, key, value);
}

static json_object *reasons_json(const struct loop_reason *reasons, unsigned int nr)
{
	json_object *list = json_object_new_array(), *o;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		o = json_object_new_object();
		put(o, "address", reasons[i].address ? address(reasons[i].address) : NULL);
		put(o, "text", json_object_new_string(reasons[i].text));
		json_object_array_add(list, o);
	}
	return list;
}

static bool points(enum api_arg_type type)
{
	return type == API_IN || type == API_STRING || type == API_PARAMS;
}

static json_object *call_json(const struct loop_call *c)
{
	json_object *o = json_object_new_object(), *args = json_object_new_array(), *arg;
	unsigned int i;

	put(o, "address", address(c->address));
	put(o, "name", json_object_new_string(c->fn->name));
	put(o, "blocks", json_object_new_boolean(c->blocks));
	for (i = 0; i < c->fn->nr_args; i++) {
		arg = json_object_new_object();
		put(arg, "name", json_object_new_string(c->fn->args[i].name));
		put(arg, "class", json_object_new_string(class_words[c->args[i]]));
		if (points(c->fn->args[i].type))
			put(arg, "points_to", json_object_new_string(class_words[c->pointees[i]]));
		json_object_array_add(args, arg);
	}
	put(o, "args", args);
	return o;
}

static json_object *result_json(const struct write_back *w)
{
	json_object *o = json_object_new_object();

	put(o, "exit", address(w->exit));
	put(o, "where", json_object_new_string(w->where));
	put(o, "call", address(w->call));
	/* null: its return value */
	put(o, "arg", w->arg == API_MAX_ARGS ? NULL : json_object_new_int((int)w->arg));
	return o;
}

static json_object *loop_json(const struct loop_report *l)
{
	json_object *o = json_object_new_object(), *calls = json_object_new_array(),
		    *results = json_object_new_array();
	unsigned int i;

	put(o, "function", text_or_null(l->fn->name));
	put(o, "function_address", address(l->fn->start));
	put(o, "header", address(l->header));
	put(o, "end", address(l->end));
	put(o, "depth", json_object_new_int((int)l->depth));
	put(o, "class", l->class ? json_object_new_int((int)l->class) : NULL);
	put(o, "extension", json_object_new_boolean(l->extension));
	for (i = 0; i < l->nr_calls; i++)
		json_object_array_add(calls, call_json(&l->calls[i]));
	put(o, "calls", calls);
	put(o, "reasons", reasons_json(l->reasons, l->nr_reasons));
	put(o, "guards", reasons_json(l->guards, l->nr_guards));
	for (i = 0; i < l->nr_results; i++)
		json_object_array_add(results, result_json(&l->results[i]));
	put(o, "results", results);
	return o;
}

json_object *report_json(const struct report *r, const struct image *img,
			 const struct classify_options *o)
{
	json_object *top = json_object_new_object(), *loops = json_object_new_array();
	unsigned int i;

	if (!top || !loops) {
		json_object_put(top);
		json_object_put(loops);
		return NULL;
	}
	put(top, "version", json_object_new_int(REPORT_VERSION));
	put(top, "build_id", text_or_null(*img->build_id ? img->build_id : NULL));
	put(top, "pie", json_object_new_boolean(img->pie));
	put(top, "code_bytes", json_object_new_int64((int64_t)img->code_bytes));
	put(top, "functions", json_object_new_int((int)img->nr_functions));
	put(top, "functions_with_calls", json_object_new_int((int)r->nr_looked_at));
	put(top, "assume_success", json_object_new_boolean(o->assume_success));
	for (i = 0; i < r->nr_loops; i++)
		json_object_array_add(loops, loop_json(&r->loops[i]));
	put(top, "loops", loops);
	return top;
}

/* ---- text ---- */

static json_object *get(json_object *o, const char *key)
{
	return json_object_object_get(o, key);
}

static const char *get_text(json_object *o, const char *key)
{
	json_object *value = get(o, key);

	return value ? json_object_get_string(value) : "";
}

static void print_args(json_object *args, FILE *out)
{
	size_t i, n = json_object_array_length(args);
	json_object *arg;
	const char *to;

	for (i = 0; i < n; i++) {
		arg = json_object_array_get_idx(args, i);
		to = get_text(arg, "points_to");
		fprintf(out, "%s%s %s", i ? ", " : "", get_text(arg, "name"),
			get_text(arg, "class"));
		if (*to && strcmp(to, get_text(arg, "class")))
			fprintf(out, " to %s", to);
	}
}

static void print_reasons(json_object *list, const char *what, FILE *out)
{
	size_t i, n = json_object_array_length(list);
	json_object *o;

	for (i = 0; i < n; i++) {
		o = json_object_array_get_idx(list, i);
		fprintf(out, "    %s: %s%s%s\n", what, get_text(o, "address"),
			get(o, "address") ? " " : "", get_text(o, "text"));
	}
}

static void print_loop(json_object *loop, FILE *out)
{
	json_object *calls = get(loop, "calls"), *results = get(loop, "results"), *o;
	size_t i, n = json_object_array_length(calls);
	const char *name = get_text(loop, "function");

	fprintf(out, "\n%s: loop at %s to %s, depth %s, ", *name ? name :
		get_text(loop, "function_address"), get_text(loop, "header"),
		get_text(loop, "end"), get_text(loop, "depth"));
	if (get(loop, "class"))
		fprintf(out, "class %s%s\n", get_text(loop, "class"),
			json_object_get_boolean(get(loop, "extension")) ?
			", with arguments that change with the iteration" : "");
	else
		fprintf(out, "not deferrable\n");
	for (i = 0; i < n; i++) {
		o = json_object_array_get_idx(calls, i);
		fprintf(out, "    %s %s(", get_text(o, "address"), get_text(o, "name"));
		print_args(get(o, "args"), out);
		fprintf(out, ")%s\n", json_object_get_boolean(get(o, "blocks")) ? ", blocks" : "");
	}
	print_reasons(get(loop, "reasons"), "not deferrable", out);
	print_reasons(get(loop, "guards"), "if", out);
	for (i = 0, n = json_object_array_length(results); i < n; i++) {
		o = json_object_array_get_idx(results, i);
		fprintf(out, "    result: of %s to %s, when it leaves at %s\n",
			get_text(o, "call"), get_text(o, "where"), get_text(o, "exit"));
	}
}

void report_print(json_object *report, const char *program, FILE *out)
{
	json_object *loops = get(report, "loops");
	size_t i, n = json_object_array_length(loops), good = 0;

	for (i = 0; i < n; i++)
		good += get(json_object_array_get_idx(loops, i), "class") ? 1 : 0;
	fprintf(out, "%s: %s functions, %s of them call a GPU API; ", program,
		get_text(report, "functions"), get_text(report, "functions_with_calls"));
	fprintf(out, "%zu loops with such calls, %zu deferrable\n", n, good);
	for (i = 0; i < n; i++)
		print_loop(json_object_array_get_idx(loops, i), out);
}

/* ---- picture ---- */

static const char *const class_colors[] = { "#f4cccc", "#d9ead3", "#cfe2f3", "#fff2cc" };

void picture_begin(struct picture *p, FILE *out)
{
	p->out = out;
	p->nr = 0;
	fprintf(out, "digraph loops {\n"
		"\tnode [shape=box, fontname=\"DejaVu Sans Mono\", fontsize=9, style=filled, fillcolor=white];\n"
		"\tgraph [fontname=\"DejaVu Sans\", fontsize=11];\n");
}

static uint64_t block_address(const struct cfg *g, uint32_t block)
{
	return g->insns[g->blocks[block].first]->address;
}

/* Return the innermost of the loops that has the block, or NULL. */
static const struct loop_report *loop_of(const struct cfg *g, uint32_t block,
					 const struct loop_report *loops, unsigned int nr_loops)
{
	uint32_t l = g->blocks[block].loop;
	unsigned int i;

	for (; l != CFG_NONE; l = g->loops[l].parent)
		for (i = 0; i < nr_loops; i++)
			if (loops[i].header == block_address(g, g->loops[l].header))
				return &loops[i];
	return NULL;
}

static void picture_block(const struct picture *p, const struct cfg *g, uint32_t block,
			  const struct loop_report *loop)
{
	const struct cfg_block *b = &g->blocks[block];
	uint64_t start = block_address(g, block);
	uint64_t last = g->insns[b->first + b->nr - 1]->address;
	unsigned int i;

	fprintf(p->out, "\t\tf%ub%u [label=\"0x%" PRIx64 ": %u instructions\\l", p->nr, block,
		start, b->nr);
	for (i = 0; loop && i < loop->nr_calls; i++)
		if (loop->calls[i].address >= start && loop->calls[i].address <= last)
			fprintf(p->out, "%s\\l", loop->calls[i].fn->name);
	for (i = 0; loop && i < loop->nr_reasons; i++)
		if (loop->reasons[i].address >= start && loop->reasons[i].address <= last)
			fprintf(p->out, "! %s\\l", loop->reasons[i].text);
	fprintf(p->out, "\"");
	if (loop)
		fprintf(p->out, ", fillcolor=\"%s\"%s", class_colors[loop->class],
			loop->header == start ? ", penwidth=2" : "");
	fprintf(p->out, "];\n");
}

void picture_function(const struct cfg *g, const struct loop_report *loops, unsigned int nr_loops,
		      void *picture)
{
	struct picture *p = picture;
	unsigned int i, k;

	fprintf(p->out, "\tsubgraph cluster_%u {\n\t\tlabel=\"", p->nr);
	if (g->fn->name)
		fprintf(p->out, "%s", g->fn->name);
	else
		fprintf(p->out, "0x%" PRIx64, g->fn->start);
	for (i = 0; i < nr_loops; i++) {
		fprintf(p->out, "\\nloop at 0x%" PRIx64 ": ", loops[i].header);
		if (loops[i].class)
			fprintf(p->out, "class %u", loops[i].class);
		else
			fprintf(p->out, "not deferrable");
	}
	fprintf(p->out, "\";\n");
	for (i = 0; i < g->nr_blocks; i++)
		if (g->blocks[i].order != CFG_NONE)
			picture_block(p, g, i, loop_of(g, i, loops, nr_loops));
	for (i = 0; i < g->nr_blocks; i++) {
		const struct cfg_block *b = &g->blocks[i];

		for (k = 0; k < 2 && b->order != CFG_NONE; k++) {
			uint32_t next = b->succ[k];

			if (next != CFG_NONE)
				fprintf(p->out, "\t\tf%ub%u -> f%ub%u%s;\n", p->nr, i, p->nr, next,
					g->blocks[next].order <= b->order ? " [penwidth=2]" : "");
		}
	}
	fprintf(p->out, "\t}\n");
	p->nr++;
}

void picture_end(struct picture *p)
{
	fprintf(p->out, "}\n");
}
