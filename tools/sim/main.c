// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-sim: the command line. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fea_printed.h"
#include "file.h"
#include "options.h"
#include "place_trace.h"
#include "sim.h"

#define MAX_ALLOCATORS	16
#define MAX_TRACES	16
#define MAX_VM_OPTIONS	64
#define MAX_MODELS	16

enum {
	OPT_ALLOCATOR, OPT_TRACE, OPT_TASKS, OPT_SCENARIO, OPT_SECONDS, OPT_PERIOD,
	OPT_ITERATIONS, OPT_BETA, OPT_LAMBDA, OPT_CPUS, OPT_HOST, OPT_ENGINES,
	OPT_ORDER, OPT_AHEAD, OPT_ON_CPUS, OPT_SEED, OPT_FLOOR, OPT_CEILING, OPT_THREADS,
	OPT_RATE, OPT_WEIGHT, OPT_WEIGHTS,
	OPT_JSON, OPT_CSV, OPT_LOG, OPT_PLOT,
};

static const struct sim_option options[] = {
	{ OPT_SCENARIO, "scenario", "NAME", "scenario to run (reference); --list names all" },
	{ OPT_TRACE, "trace", "FILE",
	  "replay a recording of mgpu-trace; several run together" },
	{ OPT_TASKS, "tasks", "FILE", "VMs come and go as tasks in a trace of a cluster (CSV)" },
	{ OPT_ALLOCATOR, "allocator", "NAME,...",
	  "several, or all (none,vgasa,fea,exact,clairvoyant); exact+MODEL has expectations" },
	{ OPT_WEIGHTS, "weights", "FILE", "a learned model; one file of each can be there" },
	{ SIM_OPTION_LIST, "list", NULL, "print scenarios and allocators, and exit" },
	{ OPT_SECONDS, "seconds", "S",
	  "measured time, after 5 s of settling (the scenario's)" },
	{ OPT_PERIOD, "period-ms", "MS", "length of a period, 100 to 60000 ms (1000)" },
	{ OPT_ITERATIONS, "iterations", "N", "iterations of fea per period, 1 to 10000 (10)" },
	{ OPT_BETA, "beta", "B", "fairness parameter beta (2)" },
	{ OPT_LAMBDA, "lambda", "L", "efficiency weight lambda (-0.5)" },
	{ OPT_CPUS, "cpus", "N", "CPUs of the machine" },
	{ OPT_HOST, "host-cpus", "X", "CPUs that the host uses for itself (0)" },
	{ OPT_ENGINES, "engines", "N", "engines of the device, 1 to 64" },
	{ OPT_ORDER, "order", "NAME",
	  "scheduling policy of the engines: weighted, equal or best-effort" },
	{ OPT_AHEAD, "ahead", "N",
	  "frames that a VM hands over while it makes another, 0 to 3 (traces: 1)" },
	{ OPT_ON_CPUS, "engines-on-cpus", NULL,
	  "run engines as threads on the CPUs, as mgpu_soft does" },
	{ OPT_SEED, "seed", "N", "seed of random costs and of drawn scenarios (1)" },
	{ OPT_FLOOR, "floor", "VM=FPS", "promise a VM at least this rate" },
	{ OPT_CEILING, "ceiling", "VM=FPS", "limit a VM to this rate" },
	{ OPT_RATE, "rate", "VM=FPS", "rate that a VM can use at most" },
	{ OPT_THREADS, "threads", "VM=N", "threads that a VM keeps busy" },
	{ OPT_WEIGHT, "weight", "VM=N", "weight of a VM, 1 to 10000 (the scenario's, or 100)" },
	{ OPT_JSON, "json", "FILE", "write the result" },
	{ OPT_CSV, "csv", "FILE", "write each period" },
	{ OPT_LOG, "log", "FILE", "write a log as mgpud does, which mgpu-learn reads" },
	{ OPT_PLOT, "plot", "FILE.png", "plot rates and f; needs gnuplot" },
	{ SIM_OPTION_HELP, "help", NULL, "print this" },
};

struct vm_option {
	int opt;
	char name[SIM_NAME_LEN];
	double value;
};

struct options {
	const char *scenario, *tasks, *json, *csv, *log, *plot, *order;
	const char *weights[MAX_MODELS];
	size_t nr_weights;
	const char *traces[MAX_TRACES];
	size_t nr_traces;
	char allocators[512];
	const char *allocator[MAX_ALLOCATORS];
	size_t nr_allocators;
	struct vm_option vm[MAX_VM_OPTIONS];
	size_t nr_vm;
	double seconds, period_ms, iterations, beta, lambda, cpus, host, engines, seed;
	double ahead;
	bool on_cpus;
};

static void list(void)
{
	const char *name, *summary;

	puts("Scenarios:");
	for (size_t i = 0; (name = sim_scenario(i, &summary)); i++)
		printf("  %-12s %s\n", name, summary);
	puts("Allocators:");
	for (size_t i = 0; alloc_all[i]; i++)
		printf("  %-12s %s\n", alloc_all[i]->name, alloc_all[i]->summary);
	printf("  %-12s %s\n", alloc_fea_printed.name, alloc_fea_printed.summary);
	printf("  %-12s %s\n", SIM_CLAIRVOYANT,
	       "is told the costs of the coming period, and takes its optimum");
	puts("Models, for an allocator with expectations such as exact+static:");
	for (size_t i = 0; learn_models[i]; i++)
		printf("  %-12s %s%s\n", learn_models[i]->name, learn_models[i]->summary,
		       learn_models[i]->learned ? " (needs --weights)" : "");
}

static int vm_option(struct options *o, int opt, const char *option, const char *s,
		     double min, double max)
{
	const char *eq = strrchr(s, '=');
	struct vm_option *v = &o->vm[o->nr_vm];

	if (!eq || eq == s || (size_t)(eq - s) >= sizeof(v->name))
		return sim_bad("--%s '%s': must be VM=VALUE, as in A=30", option, s);
	if (o->nr_vm == MAX_VM_OPTIONS)
		return sim_bad("--%s '%s': more than %d options for single VMs", option, s,
			       MAX_VM_OPTIONS);
	v->opt = opt;
	memcpy(v->name, s, (size_t)(eq - s));
	v->name[eq - s] = '\0';
	o->nr_vm++;
	return sim_number(option, eq + 1, min, max, opt == OPT_THREADS || opt == OPT_WEIGHT,
			  &v->value);
}

static int add_allocator(struct options *o, const char *name)
{
	const struct alloc_ops *allocator;
	const struct learn_model_ops *model;

	if (!sim_policy(name, &allocator, &model))
		return sim_bad("--allocator '%s': unknown %s; --list names all", name,
			       allocator ? "model" : "allocator");
	for (size_t i = 0; i < o->nr_allocators; i++)
		if (!strcmp(o->allocator[i], name))
			return 0;
	if (o->nr_allocators == MAX_ALLOCATORS)
		return sim_bad("--allocator '%s': more than %d allocators", name, MAX_ALLOCATORS);
	o->allocator[o->nr_allocators++] = name;
	return 0;
}

static int parse_allocators(struct options *o)
{
	char *names = o->allocators, *name;
	int ret = 0;

	while (!ret && (name = strsep(&names, ","))) {
		if (strcmp(name, "all")) {
			ret = add_allocator(o, name);
			continue;
		}
		for (size_t i = 0; !ret && alloc_all[i]; i++)
			ret = add_allocator(o, alloc_all[i]->name);
		if (!ret)
			ret = add_allocator(o, SIM_CLAIRVOYANT);
	}
	return ret;
}

static int set_option(void *data, const struct sim_option *option, const char *value)
{
	const char *name = option->name;
	struct options *o = data;

	switch (option->id) {
	case OPT_SCENARIO:
		o->scenario = value;
		return 0;
	case OPT_TRACE:
		if (o->nr_traces == MAX_TRACES)
			return sim_bad("--trace '%s': more than %d traces", value, MAX_TRACES);
		o->traces[o->nr_traces++] = value;
		return 0;
	case OPT_TASKS:
		o->tasks = value;
		return 0;
	case OPT_ALLOCATOR:
		if (strlen(value) >= sizeof(o->allocators))
			return sim_bad("--allocator: the list is too long");
		strcpy(o->allocators, value);
		return 0;
	case OPT_SECONDS:
		return sim_number(name, value, 1, TRACE_MAX_SECONDS, false, &o->seconds);
	case OPT_PERIOD:
		return sim_number(name, value, 100, 60000, true, &o->period_ms);
	case OPT_ITERATIONS:
		return sim_number(name, value, 1, 10000, true, &o->iterations);
	case OPT_BETA:
		return sim_number(name, value, 0.05, 50, false, &o->beta);
	case OPT_LAMBDA:
		return sim_number(name, value, -100, 100, false, &o->lambda);
	case OPT_CPUS:
		return sim_number(name, value, 1, 4096, true, &o->cpus);
	case OPT_HOST:
		return sim_number(name, value, 0, 4096, false, &o->host);
	case OPT_ENGINES:
		return sim_number(name, value, 1, MACHINE_MAX_ENGINES, true, &o->engines);
	case OPT_ORDER:
		o->order = value;
		return 0;
	case OPT_AHEAD:
		return sim_number(name, value, 0, MACHINE_MAX_DEPTH - 1, true, &o->ahead);
	case OPT_ON_CPUS:
		o->on_cpus = true;
		return 0;
	case OPT_SEED:
		return sim_number(name, value, 0, 9007199254740992.0, true, &o->seed);
	case OPT_FLOOR:
	case OPT_CEILING:
	case OPT_RATE:
		return vm_option(o, option->id, name, value, SLA_FPS_MIN, SLA_FPS_MAX);
	case OPT_THREADS:
		return vm_option(o, option->id, name, value, 1, 1024);
	case OPT_WEIGHT:
		return vm_option(o, option->id, name, value, 1, 10000);
	case OPT_WEIGHTS:
		if (o->nr_weights == MAX_MODELS)
			return sim_bad("--weights '%s': more than %d files", value, MAX_MODELS);
		o->weights[o->nr_weights++] = value;
		return 0;
	case OPT_LOG:
		o->log = value;
		return 0;
	case OPT_JSON:
		o->json = value;
		return 0;
	case OPT_CSV:
		o->csv = value;
		return 0;
	default:
		o->plot = value;
		return 0;
	}
}

static const struct sim_program program = {
	.name = "mgpu-sim",
	.usage = "mgpu-sim - runs mgpud's allocators on a modelled machine\n\n"
		 "Usage: mgpu-sim [--scenario NAME | --trace FILE... | --tasks FILE] [OPTION...]\n",
	.options = options,
	.nr = sizeof(options) / sizeof(options[0]),
	.width = 16,
	.list = list,
	.set = set_option,
};

/* Returns 0, 1 after --help or --list, or -EINVAL. */
static int parse(struct options *o, int argc, char **argv)
{
	int ret = sim_parse(&program, argc, argv, o);

	if (!ret && !!o->scenario + !!o->nr_traces + !!o->tasks > 1)
		ret = sim_bad("--scenario, --trace and --tasks exclude each other");
	return ret ? ret : parse_allocators(o);
}

static int read_traces(const struct options *o, struct trace *t)
{
	char why[512];

	for (size_t i = 0; i < o->nr_traces; i++) {
		FILE *f = fopen(o->traces[i], "re");
		int ret;

		if (!f)
			return sim_bad("%s: %s", o->traces[i], strerror(errno));
		ret = trace_read(t, f, o->traces[i], why, sizeof(why));
		fclose(f);
		if (ret)
			return sim_bad("%s", why);
	}
	return 0;
}

static int set_up_tasks(const char *path, struct sim *s, uint64_t seed, char *why, size_t len)
{
	struct place_trace t = { 0 };
	FILE *f = fopen(path, "re");
	int ret;

	if (!f) {
		snprintf(why, len, "%s: %s", path, strerror(errno));
		return -EINVAL;
	}
	ret = trace_read_tasks(&t, f, path, why, len);
	fclose(f);
	if (!ret)
		ret = sim_from_tasks(s, &t, seed, why, len);
	place_trace_free(&t);
	return ret;
}

static int set_vm(struct sim *s, const struct vm_option *v)
{
	bool found = false;

	for (size_t j = 0; j < s->nr_vms; j++) {
		struct sim_vm *vm = &s->vms[j];

		if (strcmp(vm->name, v->name))
			continue;
		found = true;
		if (v->opt == OPT_FLOOR)
			vm->sla.floor = v->value;
		else if (v->opt == OPT_CEILING)
			vm->sla.ceiling = v->value;
		else if (v->opt == OPT_RATE)
			vm->machine.rate = v->value;
		else if (v->opt == OPT_WEIGHT)
			vm->machine.weight = (uint32_t)v->value;
		else
			vm->machine.threads = (unsigned int)v->value;
	}
	if (found)
		return 0;
	return sim_bad("unknown VM '%s'; the first VM of '%s' is '%s'", v->name, s->name,
		       s->vms[0].name);
}

static int set_up(const struct options *o, const struct trace *t, struct sim *s)
{
	char why[256];
	int ret;

	ret = o->nr_traces ? sim_from_trace(s, t, why, sizeof(why)) :
		o->tasks ? set_up_tasks(o->tasks, s, (uint64_t)o->seed, why, sizeof(why)) :
		sim_from_scenario(s, o->scenario, (uint64_t)o->seed, why, sizeof(why));
	if (ret)
		return sim_bad("%s", why);
	if (o->seconds > 0)
		s->seconds = o->seconds;
	if (o->cpus > 0)
		s->machine.cpus = (unsigned int)o->cpus;
	if (o->engines > 0)
		s->machine.engines = (unsigned int)o->engines;
	if (o->order)
		s->machine.order = o->order;
	for (size_t j = 0; o->ahead >= 0 && j < s->nr_vms; j++) {
		s->vms[j].machine.depth = (unsigned int)o->ahead + 1;
		s->vms[j].machine.patience_ns = 0;
	}
	s->machine.host = o->host;
	s->machine.engines_on_cpus = o->on_cpus;
	s->seed = (uint64_t)o->seed;
	s->period_ms = (unsigned int)o->period_ms;
	s->param.iterations = (unsigned int)o->iterations;
	s->param.fds.beta = o->beta;
	s->param.fds.lambda = o->lambda;
	for (size_t i = 0; !ret && i < o->nr_vm; i++)
		ret = set_vm(s, &o->vm[i]);
	if (ret)
		return ret;
	ret = sim_prepare(s, o->nr_traces ? t : NULL, why, sizeof(why));
	return ret ? sim_bad("%s", why) : 0;
}

/* ---- models ---- */

static int load_model(const char *path, struct learner_model *m)
{
	struct learn_file file;
	char why[256];
	int ret = sim_weights(&file, path);

	if (ret)
		return ret;
	m->acts = true;
	m->ops = learn_model_find(file.model);
	if (!m->ops || !m->ops->learned)
		ret = sim_bad("%s: \"%s\" is no model for an allocator", path, file.model);
	else if (m->ops->load(&m->data, file.payload, file.size, why, sizeof(why)))
		ret = sim_bad("%s: %s", path, why);
	learn_file_free(&file);
	return ret;
}

/* Make all controls, and load what there are files of. */
static int load_models(const struct options *o, struct learner_model *models, size_t *nr)
{
	int ret = 0;

	for (size_t i = 0; learn_models[i] && *nr < MAX_MODELS; i++)
		if (!learn_models[i]->learned)
			models[(*nr)++] = (struct learner_model){
				.ops = learn_models[i], .acts = true,
			};
	for (size_t i = 0; !ret && i < o->nr_weights; i++) {
		if (*nr == MAX_MODELS)
			return sim_bad("--weights '%s': more than %d models", o->weights[i],
				       MAX_MODELS);
		ret = load_model(o->weights[i], &models[*nr]);
		*nr += !ret;
		/* a policy names a model, not its file */
		for (size_t k = 0; !ret && k + 1 < *nr; k++)
			if (models[k].ops == models[*nr - 1].ops)
				ret = sim_bad("--weights '%s': a second file of the model %s; run once with each",
					      o->weights[i], models[k].ops->name);
	}
	return ret;
}

static void free_models(struct learner_model *models, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (models[i].ops->free)
			models[i].ops->free(models[i].data);
}

/* Return 0, or -EINVAL after a complaint. */
static int run_all(const struct options *o, struct sim *s, struct sim_run *runs, size_t *nr)
{
	int ret = 0;

	if (o->log) {
		s->log = fopen(o->log, "we");
		if (!s->log)
			return sim_bad("%s: %s", o->log, strerror(errno));
	}
	for (; !ret && *nr < o->nr_allocators; (*nr)++) {
		const char *name = o->allocator[*nr];

		ret = sim_run(s, name, &runs[*nr]);
		if (ret == -ENOENT)
			ret = sim_bad("allocator %s: there are no weights of this model; name a file with --weights",
				      name);
		else if (ret)
			ret = sim_bad("allocator %s: %s", name, strerror(-ret));
	}
	if (s->log && fclose(s->log) && !ret)
		ret = sim_bad("%s: %s", o->log, strerror(errno));
	s->log = NULL;
	return ret;
}

static int write_all(const struct options *o, const struct sim *s,
		     const struct sim_run *runs, size_t nr)
{
	char why[512] = "";
	int ret = 0;

	if (o->json)
		ret = sim_write_json(s, runs, nr, o->json);
	if (ret)
		return sim_bad("%s: %s", o->json, strerror(-ret));
	if (o->csv)
		ret = sim_write_csv(s, runs, nr, o->csv);
	if (ret)
		return sim_bad("%s: %s", o->csv, strerror(-ret));
	if (o->plot && sim_plot(s, runs, nr, o->plot, why, sizeof(why)))
		return sim_bad("%s: %s", o->plot, why);
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = {
		.allocators = "none,vgasa,fea,exact," SIM_CLAIRVOYANT,
		.period_ms = 1000, .iterations = 10, .beta = FDS_BETA_DEFAULT,
		.lambda = FDS_LAMBDA_DEFAULT, .seed = 1, .ahead = -1,
	};
	struct sim_run runs[MAX_ALLOCATORS] = { 0 };
	struct learner_model models[MAX_MODELS] = { 0 };
	struct trace trace = { 0 };
	struct sim s = { 0 };
	size_t nr = 0, nr_models = 0;
	int ret;

	ret = parse(&o, argc, argv);
	if (ret)
		return ret < 0 ? 2 : 0;
	if (!o.scenario)
		o.scenario = "reference";
	ret = read_traces(&o, &trace);
	if (!ret)
		ret = load_models(&o, models, &nr_models);
	if (!ret)
		ret = set_up(&o, &trace, &s);
	if (!ret) {
		s.models = models;
		s.nr_models = nr_models;
		ret = run_all(&o, &s, runs, &nr);
	}
	if (!ret) {
		sim_print(&s, runs, nr);
		ret = write_all(&o, &s, runs, nr);
	}
	for (size_t i = 0; i < MAX_ALLOCATORS; i++)
		sim_run_free(&runs[i]);
	free_models(models, nr_models);
	sim_free(&s);
	trace_free(&trace);
	return ret ? 1 : 0;
}
