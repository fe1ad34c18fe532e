// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-place place: one decision. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "complain.h"
#include "files.h"
#include "output.h"
#include "state.h"

#define SHOWN	4	/* nodes that the text names for each reason */

static int state_from(void *data, FILE *f, const char *file, char *why, size_t size)
{
	return state_read(data, f, file, why, size);
}

static int load(struct place_state *s, const char *path)
{
	size_t len = strlen(path);

	if (len > 4 && !strcmp(path + len - 4, ".csv"))
		return read_nodes(&s->trace, path);
	return read_file(path, s, state_from);
}

/* Look up the names of the request. */
static int resolve(const struct place_state *s, const struct place_options *o,
		   struct place_request *r)
{
	*r = o->r;
	if (!r->nr_gpus)
		r->gpu_milli = 0;
	if (r->vgpu && r->nr_gpus != 1) {
		complain("--vgpu: a vGPU is on one GPU; remove --num-gpu, or set it to 1");
		return STATUS_USAGE;
	}
	if (r->vgpu && !s->nr_types) {
		complain("--vgpu: %s has no vGPU types; add a list 'types'", o->state);
		return 1;
	}
	if (o->spec) {
		r->models = trace_models(&s->trace, o->spec);
		if (!r->models) {
			complain("--gpu-spec '%s': %s has no such model", o->spec, o->state);
			return 1;
		}
	}
	for (size_t i = 0; i < o->nr_capabilities; i++) {
		size_t k;

		for (k = 0; k < s->nr_capabilities &&
		     strcmp(s->capabilities[k], o->capabilities[i]); k++)
			;
		if (k == s->nr_capabilities) {
			complain("--capability '%s': no node of %s has it", o->capabilities[i],
				 o->state);
			return 1;
		}
		r->capabilities |= UINT32_C(1) << k;
	}
	return 0;
}

/* Set the policy, with what it needs. */
static int prepare(struct place_state *s, struct place_options *o, struct place_cluster *c)
{
	const struct place_policy *policy = o->nr_policies ? o->policies[0] :
		place_policy_find(o->weights ? "learned" : o->tasks ? "fgd" : "best-fit");
	struct place_class *classes = NULL;
	struct place_weights weights;
	size_t nr = 0;

	if (o->nr_policies > 1) {
		complain("place takes one --policy");
		return STATUS_USAGE;
	}
	if (policy->potential && !o->tasks) {
		complain("the policy %s needs --tasks, the target workload", policy->name);
		return STATUS_USAGE;
	}
	if (policy->learned && !o->weights) {
		complain("the policy learned needs --weights; 'mgpu-place train' writes some");
		return STATUS_USAGE;
	}
	if (o->weights && read_weights(&weights, o->weights))
		return 1;
	if (o->tasks && read_tasks(&s->trace, o->tasks))
		return 1;
	*c = (struct place_cluster){
		.nodes = s->trace.nodes, .nr = s->trace.nr_nodes, .types = s->types,
		.nr_types = s->nr_types, .policy = policy, .random = o->seed,
	};
	if (policy->potential) {
		classes = trace_classes(&s->trace, &nr);
		c->potential = classes ? potential_new(c, classes, nr,
						       policy->learned ? &weights : NULL) : NULL;
		free(classes);
		if (!c->potential) {
			complain("%s", strerror(ENOMEM));
			return 1;
		}
	}
	place_cluster_init(c);
	return 0;
}

static json_object *choice_json(const struct place_state *s, const struct place_choice *choice)
{
	const struct place_node *n = &s->trace.nodes[choice->node];
	json_object *json = json_object_new_object(), *gpus = json_object_new_array();

	json_object_object_add(json, "node", json_object_new_string(s->trace.names[choice->node]));
	json_object_object_add(json, "model", json_object_new_string(s->trace.models[n->model]));
	for (int g = 0; g < n->nr_gpus; g++)
		if (choice->gpus >> g & 1)
			json_object_array_add(gpus, json_object_new_int(g));
	json_object_object_add(json, "gpus", gpus);
	json_object_object_add(json, "type", choice->type < 0 ? NULL :
			       json_object_new_string(s->type_names[choice->type]));
	json_object_object_add(json, "gpu_milli", json_object_new_int(choice->gpu_milli));
	json_object_object_add(json, "gpu_memory_mib", json_object_new_int(choice->gpu_memory_mib));
	json_object_object_add(json, "same_kind", json_object_new_int((int)choice->same));
	json_object_object_add(json, "score", json_object_new_int64(choice->score));
	return json;
}

static void print_choice(const struct place_state *s, const struct place_request *r,
			 const struct place_choice *choice)
{
	const struct place_node *n = &s->trace.nodes[choice->node];
	const char *between = " ";

	printf("node %s (%s)", s->trace.names[choice->node], s->trace.models[n->model]);
	if (choice->gpus)
		printf(", %s", choice->gpus & (choice->gpus - 1) ? "GPUs" : "GPU");
	for (int g = 0; g < n->nr_gpus; g++) {
		if (choice->gpus >> g & 1) {
			printf("%s%d", between, g);
			between = ", ";
		}
	}
	putchar('\n');
	if (choice->type >= 0)
		printf("type %s: %u thousandths of a GPU, %d MiB\n", s->type_names[choice->type],
		       choice->gpu_milli, (int)choice->gpu_memory_mib);
	if (r->kind != PLACE_KIND_ANY && choice->gpus)
		printf("neighbours of the same kind: %u\n", choice->same);
}

/* Print for each reason the nodes that fail for it. */
static void print_filtered(const struct place_state *s, const struct place_cluster *c,
			   const struct place_request *r)
{
	size_t fits = 0;

	for (size_t i = 0; i < c->nr; i++)
		fits += place_filter(c, i, r) == PLACE_FITS;
	printf("%zu of %zu nodes fit\n", fits, c->nr);
	for (unsigned int reason = PLACE_FITS + 1; reason < PLACE_REASONS; reason++) {
		size_t nr = 0;

		for (size_t i = 0; i < c->nr; i++)
			nr += place_filter(c, i, r) == reason;
		if (!nr)
			continue;
		printf("%zu filtered, %s:", nr, place_reason_text(reason));
		nr = 0;
		for (size_t i = 0; i < c->nr && nr <= SHOWN; i++) {
			if (place_filter(c, i, r) != reason)
				continue;
			printf(" %s", nr++ < SHOWN ? s->trace.names[i] : "...");
		}
		putchar('\n');
	}
}

static json_object *filtered_json(const struct place_state *s, const struct place_cluster *c,
				  const struct place_request *r)
{
	json_object *list = json_object_new_array(), *one;

	for (size_t i = 0; i < c->nr; i++) {
		enum place_reason reason = place_filter(c, i, r);

		if (reason == PLACE_FITS)
			continue;
		one = json_object_new_object();
		json_object_object_add(one, "node", json_object_new_string(s->trace.names[i]));
		json_object_object_add(one, "reason",
				       json_object_new_string(place_reason_text(reason)));
		json_object_array_add(list, one);
	}
	return list;
}

static int decide(const struct place_state *s, struct place_cluster *c,
		  const struct place_request *r, bool as_json)
{
	struct place_choice choice;
	int ret = place_decide(c, r, &choice);
	json_object *json;

	if (as_json) {
		json = json_object_new_object();
		json_object_object_add(json, "policy", json_object_new_string(c->policy->name));
		json_object_object_add(json, "choice", ret ? NULL : choice_json(s, &choice));
		json_object_object_add(json, "filtered", filtered_json(s, c, r));
		return print_json(json) || ret ? 1 : 0;
	}
	if (!ret)
		print_choice(s, r, &choice);
	print_filtered(s, c, r);
	if (end_output())
		return 1;
	if (ret)
		complain("no node fits");
	return ret ? 1 : 0;
}

int command_place(struct place_options *o)
{
	struct place_state *s = calloc(1, sizeof(*s));
	struct place_cluster c = { 0 };
	struct place_request r;
	int ret = 1;

	if (!s) {
		complain("%s", strerror(ENOMEM));
		return 1;
	}
	if (!load(s, o->state)) {
		ret = resolve(s, o, &r);
		if (!ret)
			ret = prepare(s, o, &c);
		if (!ret)
			ret = decide(s, &c, &r, o->json);
	}
	potential_free(c.potential);
	place_trace_free(&s->trace);
	free(s);
	return ret;
}
