// SPDX-License-Identifier: GPL-2.0-only
/* mgpud: the command line. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/capability.h>

#include "daemon.h"
#include "mgpud_client.h"

#ifndef MGPU_VERSION
#define MGPU_VERSION "unknown"
#endif

enum {
	OPT_CONFIG = 256, OPT_KEY, OPT_CHECK, OPT_DRY_RUN, OPT_ONCE, OPT_HELP,
	OPT_VERSION,
};

/* The one table of options: parser, help and man page agree with it. */
static const struct {
	struct option opt;
	const char *key;	/* of the configuration that it sets */
	const char *arg;
	const char *help;
} table[] = {
	{ { "config", required_argument, NULL, OPT_CONFIG }, NULL, "PATH",
	  "configuration file (default " CONFIG_DEFAULT ", which may be missing)" },
	{ { "policy", required_argument, NULL, OPT_KEY }, "policy", "NAME",
	  "who allocates (default exact); see below" },
	{ { "period", required_argument, NULL, OPT_KEY }, "period_ms", "MS",
	  "length of a period, 100 to 60000 ms (default 1000)" },
	{ { "iterations", required_argument, NULL, OPT_KEY }, "iterations", "N",
	  "iterations of fea per period, 1 to 10000 (default 10)" },
	{ { "headroom", required_argument, NULL, OPT_KEY }, "headroom", "H",
	  "demand over the rate measured, 1.05 to 4 (default 2)" },
	{ { "beta", required_argument, NULL, OPT_KEY }, "beta", "B",
	  "fairness parameter, above 0, not 1 (default 2)" },
	{ { "lambda", required_argument, NULL, OPT_KEY }, "lambda", "L",
	  "efficiency weight (default -0.5)" },
	{ { "preempt", required_argument, NULL, OPT_KEY }, "preempt", "NAME",
	  "whose work is preempted (default mgpu); see below" },
	{ { "socket", required_argument, NULL, OPT_KEY }, "socket", "PATH",
	  "local socket (default $MGPUD_SOCKET, else " MGPUD_SOCKET_DEFAULT ")" },
	{ { "log", required_argument, NULL, OPT_KEY }, "log", "WHAT",
	  "periods, changes, quiet, or auto (default): changes to the journal, else periods" },
	{ { "json-log", required_argument, NULL, OPT_KEY }, "json_log", "FILE",
	  "append one JSON object per period to FILE" },
	{ { "state-file", required_argument, NULL, OPT_KEY }, "state_file", "FILE",
	  "what a restart goes on with, or none (default " CONFIG_STATE_FILE ")" },
	{ { "check", no_argument, NULL, OPT_CHECK }, NULL, NULL,
	  "say whether the configuration is right, and end" },
	{ { "dry-run", no_argument, NULL, OPT_DRY_RUN }, NULL, NULL,
	  "set no limits and preempt nobody, print what would be set" },
	{ { "once", no_argument, NULL, OPT_ONCE }, NULL, NULL,
	  "end after one period" },
	{ { "help", no_argument, NULL, OPT_HELP }, NULL, NULL, "print this" },
	{ { "version", no_argument, NULL, OPT_VERSION }, NULL, NULL,
	  "print the version" },
};

#define NR_OPTIONS (sizeof(table) / sizeof(table[0]))

static void help(void)
{
	puts("mgpud - divides CPU and GPU time among virtual machines\n\n"
	     "Usage: mgpud [OPTION...]\n");
	for (size_t i = 0; i < NR_OPTIONS; i++)
		printf("  --%-10s %-5s  %s\n", table[i].opt.name,
		       table[i].arg ? table[i].arg : "", table[i].help);
	puts("\nPolicies:");
	for (const struct alloc_ops *const *p = alloc_all; *p; p++)
		printf("  %-12s        %s\n", (*p)->name, (*p)->summary);
	puts("\nPolicies of preemption:");
	for (const struct preempt_ops *const *p = preempt_all; *p; p++)
		printf("  %-12s        %s\n", (*p)->name, (*p)->summary);
	puts("\nRuns in the foreground until SIGTERM or SIGINT; limits then stay as they are.\n"
	     "SIGHUP reads the configuration again.");
}

static bool can_set_limits(void)
{
	unsigned long long caps = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	if (!f)
		return true;	/* the kernel will say */
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	fclose(f);
	return caps >> CAP_NET_ADMIN & 1;
}

/* Of the command line and the environment; counts instead of the file. */
static int override(struct options *o, const char *option, const char *key,
		    const char *value)
{
	struct config_source *source = &o->source;
	struct settings_error err;
	struct config try;

	config_default(&try);
	if (config_override(&try, key, value, &err)) {
		fprintf(stderr, "mgpud: %s: %s\n", option, err.text);
		return -EINVAL;
	}
	/* the last one counts, as usual */
	for (size_t i = 0; i < source->nr; i++) {
		if (strcmp(source->override[i].key, key))
			continue;
		source->override[i].value = value;
		return 0;
	}
	source->override[source->nr].key = key;
	source->override[source->nr++].value = value;
	return 0;
}

/* Returns 0 to go on, else main()'s result + 1. */
static int parse(int argc, char **argv, struct options *o, bool *check)
{
	struct option longopts[NR_OPTIONS + 1] = { 0 };
	int opt, at = 0;
	char name[32];

	for (size_t i = 0; i < NR_OPTIONS; i++)
		longopts[i] = table[i].opt;
	while ((opt = getopt_long(argc, argv, "", longopts, &at)) != -1) {
		switch (opt) {
		case OPT_CONFIG:
			o->source.path = optarg;
			o->source.must = true;
			break;
		case OPT_KEY:
			snprintf(name, sizeof(name), "--%s", table[at].opt.name);
			if (override(o, name, table[at].key, optarg))
				return END_USAGE + 1;
			break;
		case OPT_CHECK:
			*check = true;
			break;
		case OPT_DRY_RUN:
			o->dry_run = true;
			break;
		case OPT_ONCE:
			o->once = true;
			break;
		case OPT_HELP:
			help();
			return END_OK + 1;
		case OPT_VERSION:
			puts("mgpud " MGPU_VERSION);
			return END_OK + 1;
		default:
			fputs("mgpud: see mgpud --help\n", stderr);
			return END_USAGE + 1;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "mgpud: no arguments expected, but got \"%s\"; see mgpud --help\n",
			argv[optind]);
		return END_USAGE + 1;
	}
	return 0;
}

static int load(struct options *o)
{
	char why[512];

	if (!config_load(&o->config, &o->source, why, sizeof(why)))
		return END_OK;
	log_text(LEVEL_ERROR, "config", "%s", why);
	/* without a file, what is wrong is the command line's */
	return o->source.must || !access(o->source.path, F_OK) ? END_CONFIG : END_USAGE;
}

int main(int argc, char **argv)
{
	struct options o = { .source = { .path = CONFIG_DEFAULT } };
	const char *socket = getenv(MGPUD_SOCKET_ENV);
	bool check = false;
	int ret;

	log_start();
	if (socket && *socket && override(&o, MGPUD_SOCKET_ENV, "socket", socket))
		return END_USAGE;
	ret = parse(argc, argv, &o, &check);
	if (ret)
		return ret - 1;
	ret = load(&o);
	if (ret)
		return ret;
	if (check) {
		printf("%s: good\n", o.config.found ? o.source.path : "no configuration file");
		config_free(&o.config);
		return END_OK;
	}
	if (!o.dry_run && !can_set_limits()) {
		log_text(LEVEL_ERROR, "failed", "no permission to set limits: run as root, or with the capabilities that mgpud(8) names; --dry-run sets none");
		config_free(&o.config);
		return END_PERMISSION;
	}
	return daemon_run(&o);
}
