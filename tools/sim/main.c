// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-sim: the command line. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define MAX_POLICIES	16
#define MAX_TRACES	16
#define MAX_VM_OPTIONS	64

enum {
	OPT_POLICY = 256, OPT_TRACE, OPT_SCENARIO, OPT_LIST, OPT_SECONDS, OPT_PERIOD,
	OPT_ITERATIONS, OPT_BETA, OPT_LAMBDA, OPT_CPUS, OPT_HOST, OPT_ENGINES,
	OPT_ORDER, OPT_ON_CPUS, OPT_SEED, OPT_FLOOR, OPT_CEILING, OPT_THREADS, OPT_RATE,
	OPT_JSON, OPT_CSV, OPT_PLOT, OPT_HELP,
};

/* The one table of options: parser and help agree with it. */
static const struct {
	struct option opt;
	const char *arg;
	const char *help;
} table[] = {
	{ { "scenario", required_argument, NULL, OPT_SCENARIO }, "NAME",
	  "what runs (reference); --list names all" },
	{ { "trace", required_argument, NULL, OPT_TRACE }, "FILE",
	  "replay what mgpu-trace recorded; several run together" },
	{ { "policy", required_argument, NULL, OPT_POLICY }, "NAME,...",
	  "one or several, or all (none,vgasa,fea,exact,clairvoyant)" },
	{ { "list", no_argument, NULL, OPT_LIST }, NULL,
	  "print scenarios and policies, and exit" },
	{ { "seconds", required_argument, NULL, OPT_SECONDS }, "S",
	  "time that counts, after 5 s of settling (the scenario's)" },
	{ { "period-ms", required_argument, NULL, OPT_PERIOD }, "MS",
	  "length of a period, 100 to 60000 ms (1000)" },
	{ { "iterations", required_argument, NULL, OPT_ITERATIONS }, "N",
	  "of fea per period, 1 to 10000 (10)" },
	{ { "beta", required_argument, NULL, OPT_BETA }, "B", "fairness parameter (2)" },
	{ { "lambda", required_argument, NULL, OPT_LAMBDA }, "L",
	  "efficiency weight (-0.5)" },
	{ { "cpus", required_argument, NULL, OPT_CPUS }, "N", "CPUs of the machine" },
	{ { "host-cpus", required_argument, NULL, OPT_HOST }, "X",
	  "of these, used by the host for itself (0)" },
	{ { "engines", required_argument, NULL, OPT_ENGINES }, "N",
	  "engines of the device, 1 to 64" },
	{ { "order", required_argument, NULL, OPT_ORDER }, "NAME",
	  "of the engines' jobs: weighted, equal or best-effort" },
	{ { "engines-on-cpus", no_argument, NULL, OPT_ON_CPUS }, NULL,
	  "engines are threads on the CPUs, as mgpu_soft's are" },
	{ { "seed", required_argument, NULL, OPT_SEED }, "N", "of random costs (1)" },
	{ { "floor", required_argument, NULL, OPT_FLOOR }, "VM=FPS",
	  "promise a VM a rate" },
	{ { "ceiling", required_argument, NULL, OPT_CEILING }, "VM=FPS",
	  "let a VM have no more" },
	{ { "rate", required_argument, NULL, OPT_RATE }, "VM=FPS",
	  "a VM has no use for more" },
	{ { "threads", required_argument, NULL, OPT_THREADS }, "VM=N",
	  "threads that a VM keeps busy" },
	{ { "json", required_argument, NULL, OPT_JSON }, "FILE", "write the result" },
	{ { "csv", required_argument, NULL, OPT_CSV }, "FILE", "write each period" },
	{ { "plot", required_argument, NULL, OPT_PLOT }, "FILE.png",
	  "draw rates and f; needs gnuplot" },
	{ { "help", no_argument, NULL, OPT_HELP }, NULL, "print this" },
};

#define NR_OPTIONS (sizeof(table) / sizeof(table[0]))

struct vm_option {
	int opt;
	char name[SIM_NAME_LEN];
	double value;
};

struct options {
	const char *scenario, *json, *csv, *plot, *order;
	char *traces[MAX_TRACES];
	size_t nr_traces;
	char policies[512];
	const char *policy[MAX_POLICIES];
	size_t nr_policies;
	struct vm_option vm[MAX_VM_OPTIONS];
	size_t nr_vm;
	double seconds, period_ms, iterations, beta, lambda, cpus, host, engines, seed;
	bool on_cpus;
};

__attribute__((format(printf, 1, 2)))
static int bad(const char *fmt, ...)
{
	va_list ap;

	fputs("mgpu-sim: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return -EINVAL;
}

static void help(void)
{
	puts("mgpu-sim - runs mgpud's allocators on a modelled machine\n\n"
	     "Usage: mgpu-sim [--scenario NAME | --trace FILE...] [OPTION...]\n");
	for (size_t i = 0; i < NR_OPTIONS; i++)
		printf("  --%-16s %-9s %s\n", table[i].opt.name,
		       table[i].arg ? table[i].arg : "", table[i].help);
}

static void list(void)
{
	const char *name, *summary;

	puts("Scenarios:");
	for (size_t i = 0; (name = sim_scenario(i, &summary)); i++)
		printf("  %-12s %s\n", name, summary);
	puts("Policies:");
	for (size_t i = 0; alloc_all[i]; i++)
		printf("  %-12s %s\n", alloc_all[i]->name, alloc_all[i]->summary);
	printf("  %-12s %s\n", alloc_fea_printed.name, alloc_fea_printed.summary);
	printf("  %-12s %s\n", SIM_CLAIRVOYANT,
	       "knows what the coming period costs, and takes its optimum");
}

static int number(const char *option, const char *s, double min, double max, bool whole,
		  double *v)
{
	char *end;

	errno = 0;
	*v = strtod(s, &end);
	if (errno || end == s || *end || !(*v >= min && *v <= max) ||
	    (whole && *v != floor(*v)))
		return bad("--%s '%s': must be a %snumber from %.15g to %.15g", option, s,
			   whole ? "whole " : "", min, max);
	return 0;
}

static int vm_option(struct options *o, int opt, const char *option, const char *s,
		     double min, double max)
{
	const char *eq = strrchr(s, '=');
	struct vm_option *v = &o->vm[o->nr_vm];

	if (!eq || eq == s || (size_t)(eq - s) >= sizeof(v->name))
		return bad("--%s '%s': must be VM=VALUE, as in A=30", option, s);
	if (o->nr_vm == MAX_VM_OPTIONS)
		return bad("--%s '%s': more than %d options for single VMs", option, s,
			   MAX_VM_OPTIONS);
	v->opt = opt;
	memcpy(v->name, s, (size_t)(eq - s));
	v->name[eq - s] = '\0';
	o->nr_vm++;
	return number(option, eq + 1, min, max, opt == OPT_THREADS, &v->value);
}

static int add_policy(struct options *o, const char *name)
{
	const struct alloc_ops *ops = alloc_find_any(name);

	if (!ops && strcmp(name, SIM_CLAIRVOYANT))
		return bad("--policy '%s': there is no such policy; --list names them", name);
	for (size_t i = 0; i < o->nr_policies; i++)
		if (!strcmp(o->policy[i], name))
			return 0;
	if (o->nr_policies == MAX_POLICIES)
		return bad("--policy '%s': more than %d policies", name, MAX_POLICIES);
	o->policy[o->nr_policies++] = name;
	return 0;
}

static int parse_policies(struct options *o)
{
	char *names = o->policies, *name;
	int ret = 0;

	while (!ret && (name = strsep(&names, ","))) {
		if (strcmp(name, "all")) {
			ret = add_policy(o, name);
			continue;
		}
		for (size_t i = 0; !ret && alloc_all[i]; i++)
			ret = add_policy(o, alloc_all[i]->name);
		if (!ret)
			ret = add_policy(o, SIM_CLAIRVOYANT);
	}
	return ret;
}

static int parse_one(struct options *o, int c, const char *name)
{
	switch (c) {
	case OPT_SCENARIO:
		o->scenario = optarg;
		return 0;
	case OPT_TRACE:
		if (o->nr_traces == MAX_TRACES)
			return bad("--trace '%s': more than %d traces", optarg, MAX_TRACES);
		o->traces[o->nr_traces++] = optarg;
		return 0;
	case OPT_POLICY:
		if (strlen(optarg) >= sizeof(o->policies))
			return bad("--policy: the list is too long");
		strcpy(o->policies, optarg);
		return 0;
	case OPT_SECONDS:
		return number(name, optarg, 1, TRACE_MAX_SECONDS, false, &o->seconds);
	case OPT_PERIOD:
		return number(name, optarg, 100, 60000, true, &o->period_ms);
	case OPT_ITERATIONS:
		return number(name, optarg, 1, 10000, true, &o->iterations);
	case OPT_BETA:
		return number(name, optarg, 0.05, 50, false, &o->beta);
	case OPT_LAMBDA:
		return number(name, optarg, -100, 100, false, &o->lambda);
	case OPT_CPUS:
		return number(name, optarg, 1, 4096, true, &o->cpus);
	case OPT_HOST:
		return number(name, optarg, 0, 4096, false, &o->host);
	case OPT_ENGINES:
		return number(name, optarg, 1, MACHINE_MAX_ENGINES, true, &o->engines);
	case OPT_ORDER:
		o->order = optarg;
		return 0;
	case OPT_ON_CPUS:
		o->on_cpus = true;
		return 0;
	case OPT_SEED:
		return number(name, optarg, 0, 9007199254740992.0, true, &o->seed);
	case OPT_FLOOR:
	case OPT_CEILING:
	case OPT_RATE:
		return vm_option(o, c, name, optarg, SLA_FPS_MIN, SLA_FPS_MAX);
	case OPT_THREADS:
		return vm_option(o, c, name, optarg, 1, 1024);
	case OPT_JSON:
		o->json = optarg;
		return 0;
	case OPT_CSV:
		o->csv = optarg;
		return 0;
	case OPT_PLOT:
		o->plot = optarg;
		return 0;
	default:
		return bad("try --help");
	}
}

/* Returns 0, 1 when there is nothing left to do, or -EINVAL. */
static int parse(struct options *o, int argc, char **argv)
{
	struct option longs[NR_OPTIONS + 1] = { 0 };
	int c, index = 0, ret = 0;

	for (size_t i = 0; i < NR_OPTIONS; i++)
		longs[i] = table[i].opt;
	while (!ret && (c = getopt_long(argc, argv, "", longs, &index)) != -1) {
		if (c == OPT_HELP || c == OPT_LIST) {
			if (c == OPT_HELP)
				help();
			else
				list();
			return 1;
		}
		ret = parse_one(o, c, c == '?' ? "" : table[index].opt.name);
	}
	if (!ret && optind < argc)
		ret = bad("'%s' is no option; try --help", argv[optind]);
	if (!ret && o->scenario && o->nr_traces)
		ret = bad("--scenario and --trace: one of both");
	return ret ? ret : parse_policies(o);
}

static int read_traces(const struct options *o, struct trace *t)
{
	char why[512];

	for (size_t i = 0; i < o->nr_traces; i++) {
		FILE *f = fopen(o->traces[i], "re");
		int ret;

		if (!f)
			return bad("%s: %s", o->traces[i], strerror(errno));
		ret = trace_read(t, f, o->traces[i], why, sizeof(why));
		fclose(f);
		if (ret)
			return bad("%s", why);
	}
	return 0;
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
		else
			vm->machine.threads = (unsigned int)v->value;
	}
	if (found)
		return 0;
	return bad("there is no VM '%s'; VMs of '%s' begin with '%s'", v->name, s->name,
		   s->vms[0].name);
}

static int set_up(const struct options *o, const struct trace *t, struct sim *s)
{
	char why[256];
	int ret;

	ret = o->nr_traces ? sim_from_trace(s, t, why, sizeof(why)) :
		sim_from_scenario(s, o->scenario, why, sizeof(why));
	if (ret)
		return bad("%s", why);
	if (o->seconds > 0)
		s->seconds = o->seconds;
	if (o->cpus > 0)
		s->machine.cpus = (unsigned int)o->cpus;
	if (o->engines > 0)
		s->machine.engines = (unsigned int)o->engines;
	if (o->order)
		s->machine.order = o->order;
	s->machine.host = o->host;
	s->machine.engines_on_cpus = o->on_cpus;
	s->seed = (uint64_t)o->seed;
	s->set.period_ms = (unsigned int)o->period_ms;
	s->set.iterations = (unsigned int)o->iterations;
	s->set.param.beta = o->beta;
	s->set.param.lambda = o->lambda;
	for (size_t i = 0; !ret && i < o->nr_vm; i++)
		ret = set_vm(s, &o->vm[i]);
	if (ret)
		return ret;
	ret = sim_prepare(s, o->nr_traces ? t : NULL, why, sizeof(why));
	return ret ? bad("%s", why) : 0;
}

static int write_all(const struct options *o, const struct sim *s,
		     const struct sim_run *runs, size_t nr)
{
	char why[512] = "";
	int ret = 0;

	if (o->json)
		ret = sim_write_json(s, runs, nr, o->json);
	if (ret)
		return bad("%s: %s", o->json, strerror(-ret));
	if (o->csv)
		ret = sim_write_csv(s, runs, nr, o->csv);
	if (ret)
		return bad("%s: %s", o->csv, strerror(-ret));
	if (o->plot && sim_plot(s, runs, nr, o->plot, why, sizeof(why)))
		return bad("%s: %s", o->plot, why);
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = {
		.policies = "none,vgasa,fea,exact," SIM_CLAIRVOYANT,
		.period_ms = 1000, .iterations = 10, .beta = FDS_BETA_DEFAULT,
		.lambda = FDS_LAMBDA_DEFAULT, .seed = 1,
	};
	struct sim_run runs[MAX_POLICIES] = { 0 };
	struct trace trace = { 0 };
	struct sim s = { 0 };
	size_t nr = 0;
	int ret;

	ret = parse(&o, argc, argv);
	if (ret)
		return ret < 0 ? 2 : 0;
	if (!o.scenario)
		o.scenario = "reference";
	ret = read_traces(&o, &trace);
	if (!ret)
		ret = set_up(&o, &trace, &s);
	for (; !ret && nr < o.nr_policies; nr++) {
		ret = sim_run(&s, o.policy[nr], &runs[nr]);
		if (ret)
			bad("policy %s: %s", o.policy[nr], strerror(-ret));
	}
	if (!ret) {
		sim_print(&s, runs, nr);
		ret = write_all(&o, &s, runs, nr);
	}
	for (size_t i = 0; i < MAX_POLICIES; i++)
		sim_run_free(&runs[i]);
	sim_free(&s);
	trace_free(&trace);
	return ret ? 1 : 0;
}
