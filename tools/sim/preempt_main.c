// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-sim-preempt: the command line, the table and the JSON. */
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "options.h"
#include "pairs.h"
#include "preempt_sim.h"

#define MAX_POLICIES	16

enum {
	OPT_STREAM, OPT_POLICY, OPT_COST, OPT_TRUE_COST, OPT_DECAY, OPT_SLOTS, OPT_STARVE,
	OPT_GAIN, OPT_REST, OPT_SHARING, OPT_PRIOR_STREAM, OPT_PRIOR_PAIRS, OPT_JSON,
	OPT_GENERATE, OPT_JOBS, OPT_LOAD, OPT_WIDE,
};

static const struct sim_option options[] = {
	{ OPT_STREAM, "stream", "FILE.csv", "stream of jobs" },
	{ OPT_POLICY, "policy", "NAME,...",
	  "one or several, or all (all); --list names them" },
	{ SIM_OPTION_LIST, "list", NULL, "print policies, and exit" },
	{ OPT_COST, "cost", "A,B",
	  "cost of a switch that the policy assumes, cycles per byte, or published" },
	{ OPT_TRUE_COST, "true-cost", "A,B", "true cost of a switch (published)" },
	{ OPT_DECAY, "decay", "X",
	  "speed of memory-intensive contexts in a switch, 0.5 to 1 (0.9)" },
	{ OPT_SLOTS, "slots", "K", "slots of the device, 1 to 64 (2)" },
	{ OPT_STARVE, "starve-ms", "MS",
	  "a context that waits longer goes first (500)" },
	{ OPT_GAIN, "min-gain", "X", "least gain of a preemption, 0 to 1 (0.02)" },
	{ OPT_REST, "rest-ms", "MS", "least time between two decisions (0)" },
	{ OPT_SHARING, "sharing", "M,C,A,D",
	  "true slowdown by waiting for memory, by computing and by anything, and decay" },
	{ OPT_PRIOR_STREAM, "prior-stream", "FILE.csv",
	  "begin with what mgpu learns of kinds and classes on another stream" },
	{ OPT_PRIOR_PAIRS, "prior-pairs", "FILE",
	  "begin with the table of classes in weights of 'mgpu-learn pairs train'" },
	{ OPT_JSON, "json", "FILE", "write the result" },
	{ OPT_GENERATE, "generate", "SEED", "print a generated stream instead" },
	{ OPT_JOBS, "jobs", "N", "jobs of the generated stream (400)" },
	{ OPT_LOAD, "load", "X", "its load: time alone over the slots' time (1)" },
	{ OPT_WIDE, "wide", "X", "its part of jobs that want several slots (0)" },
	{ SIM_OPTION_HELP, "help", NULL, "print this" },
};

struct options {
	const char *stream, *json, *prior_stream, *prior_pairs;
	const char *policy[MAX_POLICIES];
	size_t nr_policies;
	char policies[256];
	struct psim_setup setup;
	struct psim_sharing sharing;
	struct psim_shape shape;
	bool generate;
};

static void list(void)
{
	for (size_t i = 0; preempt_all[i]; i++)
		printf("%-12s %s\n", preempt_all[i]->name, preempt_all[i]->summary);
	printf("%-12s %s\n", PSIM_CLAIRVOYANT,
	       "knows all jobs to come, tries its choices, and takes the best");
}

static int coefficients(const char *option, const char *s, struct preempt_cost *c)
{
	struct preempt_param p = PREEMPT_PARAM_DEFAULT;
	int end = 0;

	if (!strcmp(s, "published")) {
		*c = PREEMPT_COST_PUBLISHED;
		return 0;
	}
	if (sscanf(s, "%lf,%lf%n", &p.cost.a, &p.cost.b, &end) != 2 || s[end])
		return sim_bad("--%s '%s': must be published, or A,B as in 0.09526,0.01633",
			       option, s);
	if (preempt_param_check(&p))
		return sim_bad("--%s '%s': %s", option, s, preempt_param_check(&p));
	*c = p.cost;
	return 0;
}

static int sharing(const char *s, struct psim_sharing *t)
{
	int end = 0;

	if (sscanf(s, "%lf,%lf,%lf,%lf%n", &t->memory, &t->compute, &t->any, &t->decay,
		   &end) != 4 || s[end])
		return sim_bad("--sharing '%s': must be M,C,A,D as in 0.9,0.3,0.03,0.12", s);
	if (!(t->memory >= 0 && t->memory <= 100 && t->compute >= 0 && t->compute <= 100 &&
	      t->any >= 0 && t->any <= 100 && t->decay >= 0 && t->decay <= 1))
		return sim_bad("--sharing '%s': slowdowns must be from 0 to 100, decay from 0 to 1",
			       s);
	return 0;
}

static int add_policy(struct options *o, const char *name)
{
	const struct preempt_ops *ops = preempt_find(name);

	if (!ops && strcmp(name, PSIM_CLAIRVOYANT))
		return sim_bad("--policy '%s': unknown policy; --list names all", name);
	if (o->nr_policies == MAX_POLICIES)
		return sim_bad("--policy: more than %d policies", MAX_POLICIES);
	o->policy[o->nr_policies++] = ops ? ops->name : PSIM_CLAIRVOYANT;
	return 0;
}

static int policies(struct options *o, const char *s)
{
	int ret = 0;

	o->nr_policies = 0;
	if (!strcmp(s, "all")) {
		for (size_t i = 0; preempt_all[i]; i++)
			add_policy(o, preempt_all[i]->name);
		return add_policy(o, PSIM_CLAIRVOYANT);
	}
	if (strlen(s) >= sizeof(o->policies))
		return sim_bad("--policy: too long");
	strcpy(o->policies, s);
	for (char *rest = o->policies, *name; !ret && (name = strsep(&rest, ","));)
		ret = add_policy(o, name);
	return ret;
}

static int set_option(void *data, const struct sim_option *option, const char *value)
{
	const char *name = option->name;
	struct options *o = data;
	int ret = 0;
	double v;

	switch (option->id) {
	case OPT_STREAM:
		o->stream = value;
		break;
	case OPT_PRIOR_STREAM:
		o->prior_stream = value;
		break;
	case OPT_PRIOR_PAIRS:
		o->prior_pairs = value;
		break;
	case OPT_JSON:
		o->json = value;
		break;
	case OPT_POLICY:
		ret = policies(o, value);
		break;
	case OPT_COST:
		ret = coefficients(name, value, &o->setup.param.cost);
		break;
	case OPT_TRUE_COST:
		ret = coefficients(name, value, &o->setup.truth);
		break;
	case OPT_DECAY:
		ret = sim_number(name, value, PREEMPT_DECAY_MIN, 1, false,
				 &o->setup.param.decay_memory);
		break;
	case OPT_SLOTS:
		ret = sim_number(name, value, 1, PREEMPT_SLOTS_MAX, true, &v);
		o->setup.slots = ret ? 1 : (unsigned int)v;
		break;
	case OPT_STARVE:
		ret = sim_number(name, value, 1, 3.6e6, false, &v);
		o->setup.param.starve_ns = ret ? 1 : (uint64_t)(v * 1e6);
		break;
	case OPT_GAIN:
		ret = sim_number(name, value, 0, 1, false,
				 &o->setup.param.min_gain);
		break;
	case OPT_REST:
		ret = sim_number(name, value, 0, 1000, false, &v);
		o->setup.rest = ret ? 0 : v * 1e-3 * PSIM_HZ;
		break;
	case OPT_SHARING:
		ret = sharing(value, &o->sharing);
		o->setup.sharing = &o->sharing;
		break;
	case OPT_GENERATE:
		ret = sim_number(name, value, 0, 1e15, true, &v);
		o->shape.seed = ret ? 0 : (uint64_t)v;
		o->generate = true;
		break;
	case OPT_JOBS:
		ret = sim_number(name, value, 1, PSIM_JOBS_MAX, true, &v);
		o->shape.jobs = ret ? 1 : (unsigned int)v;
		break;
	case OPT_LOAD:
		ret = sim_number(name, value, 0.01, 100, false, &o->shape.load);
		break;
	default:
		ret = sim_number(name, value, 0, 1, false, &o->shape.wide);
		break;
	}
	return ret;
}

static const struct sim_program program = {
	.name = "mgpu-sim-preempt",
	.usage = "mgpu-sim-preempt - runs mgpud's preemption policies on a modelled device\n\n"
		 "Usage: mgpu-sim-preempt --stream FILE.csv [OPTION...]\n"
		 "       mgpu-sim-preempt --generate SEED [--jobs N] [--load X] [--slots K] [--wide X]\n",
	.options = options,
	.nr = sizeof(options) / sizeof(options[0]),
	.width = 10,
	.list = list,
	.set = set_option,
};

/* Returns 0, 1 after --help or --list, or -EINVAL. */
static int parse(struct options *o, int argc, char **argv)
{
	int ret;

	policies(o, "all");
	ret = sim_parse(&program, argc, argv, o);
	o->shape.slots = o->setup.slots;
	if (!ret && o->generate == !!o->stream)
		ret = sim_bad("exactly one of --stream and --generate is needed");
	return ret;
}

static void add(struct json_object *o, const char *key, double v)
{
	json_object_object_add(o, key, json_object_new_double(v));
}

/* Gains are relative to no preemption. */
static struct json_object *guard_object(const struct guard *g)
{
	struct json_object *all = json_object_new_object();

	for (enum preempt_method i = 0; i < PREEMPT_METHODS; i++) {
		const struct guard_method *m = &g->method[i];
		struct json_object *o = json_object_new_object();

		json_object_object_add(o, "open", json_object_new_boolean(!m->closed));
		add(o, "trials", (double)m->measured);
		add(o, "expected", m->expected);
		add(o, "got", m->got);
		add(o, "extra_cycles", m->extra);
		add(o, "closings", (double)m->closings);
		json_object_object_add(all, preempt_method_name(i), o);
	}
	return all;
}

static struct json_object *result_object(const char *policy, const struct psim_result *r)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "policy", json_object_new_string(policy));
	add(o, "norm_ipc", r->norm_ipc);
	add(o, "busy_s", r->busy / PSIM_HZ);
	add(o, "turnaround_mean_s", r->mean);
	add(o, "turnaround_p99_s", r->p99);
	add(o, "slowdown_mean", r->slowdown);
	json_object_object_add(o, "preemptions", json_object_new_int64(r->preemptions));
	for (enum preempt_method m = 0; m < PREEMPT_METHODS; m++)
		json_object_object_add(o, preempt_method_name(m),
				       json_object_new_int64(r->by[m]));
	json_object_object_add(o, "starved", json_object_new_int64(r->starved));
	add(o, "wasted_cycles", r->wasted);
	json_object_object_add(o, "guard", guard_object(&r->guard));
	return o;
}

static int write_json(const struct options *o, size_t jobs, struct json_object *runs)
{
	struct json_object *all = json_object_new_object();
	int ret = 0;

	json_object_object_add(all, "stream", json_object_new_string(o->stream));
	json_object_object_add(all, "jobs", json_object_new_int64((int64_t)jobs));
	json_object_object_add(all, "slots", json_object_new_int64(o->setup.slots));
	add(all, "cost_a", o->setup.param.cost.a);
	add(all, "cost_b", o->setup.param.cost.b);
	add(all, "decay", o->setup.param.decay_memory);
	json_object_object_add(all, "runs", json_object_get(runs));
	if (json_object_to_file_ext(o->json, all, JSON_C_TO_STRING_PRETTY))
		ret = sim_bad("--json %s: %s", o->json, json_util_get_last_err());
	json_object_put(all);
	return ret;
}

static int run(struct options *o, const struct psim_stream *s)
{
	struct json_object *runs = json_object_new_array();
	int ret = 0;

	printf("%-12s %8s %9s %9s %9s %8s %8s %7s %9s %8s\n", "policy", "norm_ipc", "busy_s",
	       "mean_ms", "p99_ms", "slowdown", "preempt", "starved", "wasted_Mc", "us/decn");
	for (size_t i = 0; !ret && i < o->nr_policies; i++) {
		struct psim_result r;

		o->setup.policy = preempt_find(o->policy[i]);
		ret = psim_run(s, &o->setup, &r);
		if (ret) {
			sim_bad("policy %s: %s", o->policy[i], strerror(-ret));
			break;
		}
		printf("%-12s %8.4f %9.4f %9.2f %9.2f %8.2f %8u %7u %9.2f ", o->policy[i],
		       r.norm_ipc, r.busy / PSIM_HZ, r.mean * 1e3, r.p99 * 1e3, r.slowdown,
		       r.preemptions, r.starved, r.wasted / 1e6);
		if (r.decisions)
			printf("%8.2f\n", r.seconds_per_decision * 1e6);
		else
			printf("%8s\n", "-");
		json_object_array_add(runs, result_object(o->policy[i], &r));
	}
	if (!ret && o->json)
		ret = write_json(o, s->n, runs);
	json_object_put(runs);
	return ret;
}

/* ---- priors ---- */

/* Have mgpu learn from a stream, as another host. */
static int learn_stream(struct options *o, struct analyse *learned, struct preempt_norm *norm)
{
	struct psim_stream *s = calloc(1, sizeof(*s));
	struct psim_setup setup = o->setup;
	struct psim_result r;
	char why[512];
	int ret;

	if (!s)
		return sim_bad("out of memory");
	ret = psim_read(s, o->prior_stream, why, sizeof(why));
	if (ret) {
		sim_bad("%s", why);
	} else {
		setup.policy = &preempt_mgpu;
		setup.learned = learned;
		ret = psim_run(s, &setup, &r);
		if (ret)
			sim_bad("--prior-stream %s: %s", o->prior_stream, strerror(-ret));
	}
	free(s);
	if (ret)
		return ret;
	for (int i = 0; i < PREEMPT_CLASSES * PREEMPT_CLASSES; i++) {
		enum preempt_class a = i / PREEMPT_CLASSES, b = i % PREEMPT_CLASSES;

		preempt_norm_prior(norm, a, b, learned->norm.slow[a][b], PREEMPT_NORM_PRIOR);
	}
	o->setup.prior = learned;
	return 0;
}

static int learn_pairs(const char *path, struct preempt_norm *norm)
{
	struct learn_pairs *p = NULL;
	struct learn_file file;
	char why[512];
	int ret = sim_weights(&file, path);

	if (ret)
		return ret;
	if (strcmp(file.model, "pairs"))
		ret = sim_bad("%s: weights of the model '%.32s', not of pairs; 'mgpu-learn pairs train' writes some",
			      path, file.model);
	else if (learn_pairs_load(&p, file.payload, file.size, why, sizeof(why)))
		ret = sim_bad("%s: %s", path, why);
	else
		learn_pairs_prior(p, norm);
	learn_pairs_free(p);
	learn_file_free(&file);
	return ret;
}

static int learn_priors(struct options *o, struct analyse *learned, struct preempt_norm *norm)
{
	int ret = 0;

	preempt_norm_cold(norm);
	if (o->prior_stream)
		ret = learn_stream(o, learned, norm);
	if (!ret && o->prior_pairs)
		ret = learn_pairs(o->prior_pairs, norm);
	o->setup.norm = norm;
	return ret;
}

int main(int argc, char **argv)
{
	static struct analyse learned;
	struct preempt_norm norm;
	struct options o = {
		.setup = {
			.param = PREEMPT_PARAM_DEFAULT,
			.truth = PREEMPT_COST_PUBLISHED,
			.slots = 2,
		},
		.shape = { .jobs = 400, .load = 1 },
	};
	struct psim_stream *s;
	char why[512];
	int ret;

	ret = parse(&o, argc, argv);
	if (ret)
		return ret < 0 ? 2 : 0;
	s = calloc(1, sizeof(*s));
	if (!s) {
		sim_bad("out of memory");
		return 1;
	}
	if (o.generate) {
		psim_generate(s, &o.shape);
		ret = psim_write(s, &o.shape, stdout);
		if (ret)
			sim_bad("standard output: cannot be written");
	} else {
		ret = psim_read(s, o.stream, why, sizeof(why));
		ret = ret ? sim_bad("%s", why) : learn_priors(&o, &learned, &norm);
		if (!ret)
			ret = run(&o, s);
	}
	free(s);
	return ret ? 1 : 0;
}
