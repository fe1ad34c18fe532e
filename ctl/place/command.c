// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-place replay, train, inspect and policies. */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "complain.h"
#include "files.h"
#include "output.h"
#include "weights.h"

#define NAME_LEN	32

static int nodes_from(void *data, FILE *f, const char *file, char *why, size_t size)
{
	return trace_read_nodes(data, f, file, why, size);
}

static int tasks_from(void *data, FILE *f, const char *file, char *why, size_t size)
{
	return trace_read_tasks(data, f, file, why, size);
}

static int weights_from(void *data, FILE *f, const char *file, char *why, size_t size)
{
	return weights_read(data, f, file, why, size);
}

int read_nodes(struct place_trace *t, const char *path)
{
	return read_file(path, t, nodes_from);
}

int read_tasks(struct place_trace *t, const char *path)
{
	return read_file(path, t, tasks_from);
}

int read_weights(struct place_weights *w, const char *path)
{
	return read_file(path, w, weights_from);
}

/* ---- replay ---- */

/* Processor time: another program on the processor does not count. */
static uint64_t processor_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Return whether a replay has one value for each figure, not one at each demand. */
static bool one_value(const struct place_options *o)
{
	return o->by_time || o->churn;
}

/* Add the results of a seed, each divided by the number of seeds. */
static void add_result(struct replay_result *sum, const struct replay_result *one,
		       unsigned int seeds)
{
	for (size_t k = 0; k < REPLAY_MAX_POINTS; k++) {
		sum->unallocated_pct[k] += one->unallocated_pct[k] / seeds;
		sum->fragmentation_pct[k] += one->fragmentation_pct[k] / seeds;
	}
	sum->gpus = one->gpus;
	sum->placed += one->placed;
	sum->refused += one->refused;
	sum->refused_gpu_pct += one->refused_gpu_pct / seeds;
	sum->peak_pct += one->peak_pct / seeds;
	sum->median_ns += one->median_ns / seeds;
	sum->p99_ns += one->p99_ns / seeds;
}

static json_object *result_json(const struct place_options *o, const struct place_policy *policy,
				const struct replay_result *r)
{
	json_object *json = json_object_new_object(), *points, *point;

	json_object_object_add(json, "policy", json_object_new_string(policy->name));
	if (!one_value(o)) {
		points = json_object_new_array();
		for (size_t k = 0; k < o->nr_points; k++) {
			point = json_object_new_object();
			json_object_object_add(point, "demand_pct",
					       json_object_new_int((int)o->points[k]));
			json_object_object_add(point, "unallocated_gpu_pct",
					       rounded(r->unallocated_pct[k], 3));
			json_object_object_add(point, "fragmentation_pct",
					       rounded(r->fragmentation_pct[k], 3));
			json_object_array_add(points, point);
		}
		json_object_object_add(json, "points", points);
	} else {
		json_object_object_add(json, "unallocated_gpu_pct",
				       rounded(r->unallocated_pct[0], 3));
		json_object_object_add(json, "fragmentation_pct",
				       rounded(r->fragmentation_pct[0], 3));
		json_object_object_add(json, "peak_allocated_gpu_pct", rounded(r->peak_pct, 3));
	}
	json_object_object_add(json, "placed", json_object_new_int64((int64_t)r->placed));
	json_object_object_add(json, "refused", json_object_new_int64((int64_t)r->refused));
	json_object_object_add(json, "refused_gpu_pct", rounded(r->refused_gpu_pct, 3));
	json_object_object_add(json, "decision_us", rounded(r->median_ns / 1e3, 2));
	json_object_object_add(json, "decision_p99_us", rounded(r->p99_ns / 1e3, 2));
	return json;
}

static void print_head(const struct place_options *o)
{
	if (one_value(o)) {
		printf("%-15s %11s %13s %8s %8s %8s %9s %8s\n", "policy", "unallocated",
		       "fragmentation", "peak", "refused", "of GPU", "median us", "p99 us");
		return;
	}
	printf("%-15s unallocated GPU, per cent of capacity, at arrived demand\n%-15s", "policy",
	       "");
	for (size_t k = 0; k < o->nr_points; k++)
		printf(" %6u %%", o->points[k]);
	printf(" %13s %9s %8s\n", "fragmentation", "median us", "p99 us");
}

static void print_result(const struct place_options *o, const struct place_policy *policy,
			 const struct replay_result *r)
{
	printf("%-15s", policy->name);
	if (one_value(o)) {
		printf(" %9.2f %% %11.2f %% %6.1f %% %8zu %6.2f %%", r->unallocated_pct[0],
		       r->fragmentation_pct[0], r->peak_pct, r->refused, r->refused_gpu_pct);
	} else {
		for (size_t k = 0; k < o->nr_points; k++)
			printf(" %8.2f", r->unallocated_pct[k]);
		printf(" %11.2f %%", r->fragmentation_pct[o->nr_points - 1]);
	}
	printf(" %9.1f %8.1f\n", r->median_ns / 1e3, r->p99_ns / 1e3);
	fflush(stdout);
}

/* Replay one policy with all seeds. */
static int replay_policy(const struct place_options *o, struct replay *rp,
			 struct replay_result *sum)
{
	*sum = (struct replay_result){ 0 };
	for (unsigned int k = 0; k < o->seeds; k++) {
		struct replay_result one;
		int ret;

		rp->seed = o->seed + k;
		ret = o->by_time ? replay_times(rp, &one) :
			o->churn ? replay_churn(rp, &one) : replay_inflate(rp, &one);
		if (ret == -EINVAL)
			complain("%s: no GPU in the cluster or in the tasks; there is nothing to measure",
				 o->nodes);
		else if (ret)
			complain("%s", strerror(-ret));
		if (ret)
			return ret;
		add_result(sum, &one, o->seeds);
	}
	return 0;
}

static int replay_all(struct place_options *o, struct replay *rp)
{
	json_object *list = json_object_new_array(), *json = json_object_new_object();
	struct replay_result sum = { 0 };
	int ret = 0;

	if (!o->json)
		print_head(o);
	for (size_t i = 0; !ret && i < o->nr_policies; i++) {
		rp->policy = o->policies[i];
		ret = replay_policy(o, rp, &sum);
		if (ret)
			break;
		if (o->json)
			json_object_array_add(list, result_json(o, o->policies[i], &sum));
		else
			print_result(o, o->policies[i], &sum);
	}
	json_object_object_add(json, "mode",
			       json_object_new_string(o->by_time ? "time" :
						      o->churn ? "churn" : "inflation"));
	json_object_object_add(json, "gpus", rounded(sum.gpus, 0));
	json_object_object_add(json, "classes", json_object_new_int64((int64_t)rp->nr_classes));
	json_object_object_add(json, "seed", json_object_new_int64((int64_t)o->seed));
	json_object_object_add(json, "seeds", json_object_new_int64(o->seeds));
	json_object_object_add(json, "placement", list);
	if (!ret && o->json)
		return print_json(json);
	json_object_put(json);
	return ret ? 1 : end_output();
}

int command_replay(struct place_options *o)
{
	struct place_weights weights;
	struct place_trace t = { 0 };
	struct replay rp = {
		.trace = &t, .weights = &weights, .part = o->part ? o->part : 1,
		.points = o->points, .nr_points = o->nr_points, .clock = processor_ns,
	};
	struct place_class *classes = NULL;
	int ret = 1;

	if (o->by_time && o->churn) {
		complain("--by-time and --churn exclude each other; remove one of them");
		return STATUS_USAGE;
	}
	if (o->churn)
		rp.points = &o->churn;
	for (size_t i = 0; i < o->nr_policies; i++) {
		if (o->policies[i]->learned && !o->weights) {
			complain("the policy learned needs --weights; 'mgpu-place train' writes some");
			return STATUS_USAGE;
		}
	}
	if (!o->nr_policies)
		for (size_t i = 0; place_policies[i]; i++)
			if (!place_policies[i]->learned || o->weights)
				o->policies[o->nr_policies++] = place_policies[i];
	if (o->weights && read_weights(&weights, o->weights))
		return 1;
	if (!read_nodes(&t, o->nodes) && !read_tasks(&t, o->tasks)) {
		classes = trace_classes(&t, &rp.nr_classes);
		rp.classes = classes;
		if (!classes)
			complain("%s", strerror(ENOMEM));
		else if (o->by_time && !t.timed)
			complain("%s: no columns creation_time and deletion_time; --by-time needs them",
				 o->tasks);
		else
			ret = replay_all(o, &rp);
	}
	free(classes);
	place_trace_free(&t);
	return ret;
}

/* ---- train, inspect ---- */

static void progress(unsigned int generation, double cost)
{
	if (generation != 1 && generation % 10)
		return;
	printf("generation %u: cost %.3f of fgd's, mean of the candidates\n", generation, cost);
	fflush(stdout);
}

static int weights_to(const void *data, FILE *f)
{
	return weights_write(data, f);
}

int command_train(struct place_options *o)
{
	struct place_trace t = { 0 };
	const struct train what = {
		.trace = &t, .seed = o->seed, .generations = o->generations,
		.population = o->population, .replays = o->replays,
		.part = o->part ? o->part : 8, .churn_pct = o->churn_weight,
		.threads = o->threads, .progress = progress,
	};
	struct train_result result;
	int ret = 1;

	if (!read_nodes(&t, o->nodes) && !read_tasks(&t, o->tasks)) {
		ret = train(&what, &result);
		if (ret == -EINVAL)
			complain("%s: no GPU in the cluster or in the tasks; there is nothing to learn",
				 o->nodes);
		else if (ret)
			complain("%s", strerror(-ret));
		ret = ret || replace_file(o->output, &result.weights, weights_to);
	}
	place_trace_free(&t);
	if (ret)
		return 1;
	printf("on other draws from the trace, the whole cluster: cost %.3f of fgd's\n",
	       result.cost);
	return end_output();
}

int command_inspect(struct place_options *o)
{
	json_object *json, *values;
	struct place_weights w;
	char name[NAME_LEN];

	if (read_weights(&w, o->word))
		return 1;
	if (o->json) {
		json = json_object_new_object();
		values = json_object_new_object();
		json_object_object_add(json, "version", json_object_new_int(WEIGHTS_VERSION));
		for (unsigned int i = 0; i < PLACE_FEATURES; i++) {
			place_feature_name(i, name, sizeof(name));
			json_object_object_add(values, name, json_object_new_int(w.value[i]));
		}
		json_object_object_add(json, "weights_milli", values);
		return print_json(json);
	}
	printf("version %d, %d weights\n", WEIGHTS_VERSION, PLACE_FEATURES);
	for (unsigned int i = 0; i < PLACE_FEATURES; i++) {
		place_feature_name(i, name, sizeof(name));
		printf("  %-16s %8.3f\n", name, w.value[i] / 1e3);
	}
	return end_output();
}

int command_policies(struct place_options *o)
{
	json_object *list = json_object_new_array(), *one;

	for (size_t i = 0; place_policies[i]; i++) {
		const struct place_policy *p = place_policies[i];

		one = json_object_new_object();
		json_object_object_add(one, "name", json_object_new_string(p->name));
		json_object_object_add(one, "summary", json_object_new_string(p->summary));
		json_object_object_add(one, "needs_workload",
				       json_object_new_boolean(p->potential));
		json_object_object_add(one, "needs_weights", json_object_new_boolean(p->learned));
		json_object_array_add(list, one);
		if (!o->json)
			printf("%-15s %s\n", p->name, p->summary);
	}
	if (o->json)
		return print_json(list);
	json_object_put(list);
	return end_output();
}
