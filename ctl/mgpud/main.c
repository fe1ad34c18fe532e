// SPDX-License-Identifier: GPL-2.0-only
/* mgpud: the command line. */
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
	OPT_POLICY = 256, OPT_PERIOD, OPT_ITERATIONS, OPT_BETA, OPT_LAMBDA,
	OPT_SOCKET, OPT_JSON_LOG, OPT_DRY_RUN, OPT_ONCE, OPT_HELP, OPT_VERSION,
};

/* The one table of options: parser, help and man page agree with it. */
static const struct {
	struct option opt;
	const char *setting;	/* what it sets, for settings_parse() */
	const char *arg;
	const char *help;
} table[] = {
	{ { "policy", required_argument, NULL, OPT_POLICY }, "policy", "NAME",
	  "who allocates: exact (default), fea, drf, maxmin, static, vgasa or none" },
	{ { "period", required_argument, NULL, OPT_PERIOD }, "period_ms", "MS",
	  "length of a period, 100 to 60000 ms (default 1000)" },
	{ { "iterations", required_argument, NULL, OPT_ITERATIONS }, "iterations", "N",
	  "iterations of fea per period, 1 to 10000 (default 10)" },
	{ { "beta", required_argument, NULL, OPT_BETA }, "beta", "B",
	  "fairness parameter, above 0, not 1 (default 2)" },
	{ { "lambda", required_argument, NULL, OPT_LAMBDA }, "lambda", "L",
	  "efficiency weight (default -0.5)" },
	{ { "socket", required_argument, NULL, OPT_SOCKET }, NULL, "PATH",
	  "local socket (default $MGPUD_SOCKET, else " MGPUD_SOCKET_DEFAULT ")" },
	{ { "json-log", required_argument, NULL, OPT_JSON_LOG }, NULL, "FILE",
	  "append one JSON object per period to FILE" },
	{ { "dry-run", no_argument, NULL, OPT_DRY_RUN }, NULL, NULL,
	  "set no limits, print what would be set" },
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
	puts("\nRuns in the foreground until SIGTERM or SIGINT; limits then stay as they are.");
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

/* Returns 0 to go on, else main()'s result + 1. */
static int parse(int argc, char **argv, struct options *o)
{
	struct option longopts[NR_OPTIONS + 1] = { 0 };
	struct settings_error err;
	int opt;

	for (size_t i = 0; i < NR_OPTIONS; i++)
		longopts[i] = table[i].opt;
	while ((opt = getopt_long(argc, argv, "", longopts, NULL)) != -1) {
		switch (opt) {
		case OPT_SOCKET:
			o->socket = optarg;
			break;
		case OPT_JSON_LOG:
			o->json_log = optarg;
			break;
		case OPT_DRY_RUN:
			o->dry_run = true;
			break;
		case OPT_ONCE:
			o->once = true;
			break;
		case OPT_HELP:
			help();
			return EXIT_SUCCESS + 1;
		case OPT_VERSION:
			puts("mgpud " MGPU_VERSION);
			return EXIT_SUCCESS + 1;
		case '?':
			fputs("mgpud: see mgpud --help\n", stderr);
			return EXIT_FAILURE + 1;
		default:
			for (size_t i = 0; i < NR_OPTIONS; i++) {
				if (table[i].opt.val != opt)
					continue;
				if (!settings_parse(&o->set, table[i].setting, optarg, &err))
					break;
				fprintf(stderr, "mgpud: --%s: %s\n",
					table[i].opt.name, err.text);
				return EXIT_FAILURE + 1;
			}
		}
	}
	if (optind < argc) {
		fprintf(stderr, "mgpud: no arguments expected, but got \"%s\"; see mgpud --help\n",
			argv[optind]);
		return EXIT_FAILURE + 1;
	}
	if (settings_check(&o->set, &err)) {
		fprintf(stderr, "mgpud: %s\n", err.text);
		return EXIT_FAILURE + 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = { .socket = getenv(MGPUD_SOCKET_ENV) };
	int ret;

	settings_default(&o.set);
	ret = parse(argc, argv, &o);
	if (ret)
		return ret - 1;
	if (!o.socket || !o.socket[0])
		o.socket = MGPUD_SOCKET_DEFAULT;
	if (!o.dry_run && !can_set_limits()) {
		fputs("mgpud: no permission to set limits: run as root, or with CAP_NET_ADMIN, CAP_BPF and CAP_PERFMON; --dry-run sets none\n",
		      stderr);
		return EXIT_FAILURE;
	}
	return daemon_run(&o);
}
