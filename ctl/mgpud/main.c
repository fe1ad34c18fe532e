// SPDX-License-Identifier: GPL-2.0-only
/* mgpud: the command line. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/capability.h>

#include "cmdline.h"
#include "config/table.h"
#include "daemon.h"
#include "mgpud_client.h"

#ifndef MGPU_VERSION
#define MGPU_VERSION "unknown"
#endif

enum {
	OPT_HELP = 'h', OPT_VERSION = 'V',
	OPT_CONFIG = 256, OPT_CHECK, OPT_DRY_RUN, OPT_ONCE,
	OPT_SETTING,	/* plus the index in mgpud_settings[] */
	OPT_WAS = OPT_SETTING + CONFIG_SETTINGS_MAX,	/* the same, by its old name */
};

/* Options that are not settings; mgpud_settings[] has the others. */
static const struct {
	struct option opt;
	const char *arg;
	const char *help;
} table[] = {
	{ { "config", required_argument, NULL, OPT_CONFIG }, "PATH",
	  "configuration file (default " CONFIG_DEFAULT ", which may be missing)" },
	{ { "check", no_argument, NULL, OPT_CHECK }, NULL,
	  "check the configuration and exit" },
	{ { "dry-run", no_argument, NULL, OPT_DRY_RUN }, NULL,
	  "set no targets and preempt no contexts; print the targets" },
	{ { "once", no_argument, NULL, OPT_ONCE }, NULL,
	  "exit after one period" },
	{ { "help", no_argument, NULL, OPT_HELP }, NULL, "print this help" },
	{ { "version", no_argument, NULL, OPT_VERSION }, NULL,
	  "print the version" },
};

#define NR_OPTIONS (sizeof(table) / sizeof(table[0]))

static void help(void)
{
	char range[MGPUD_RANGE];

	puts("mgpud - divides CPU and GPU time among virtual machines\n\n"
	     "usage: mgpud [OPTION]...\n"
	     "       mgpud help | version\n");
	for (size_t i = 0; i < NR_OPTIONS; i++) {
		bool letter = table[i].opt.val < OPT_CONFIG;

		printf("  %c%c%s--%-10s %-5s  %s\n", letter ? '-' : ' ',
		       letter ? table[i].opt.val : ' ', letter ? ", " : "  ",
		       table[i].opt.name, table[i].arg ? table[i].arg : "", table[i].help);
	}
	puts("\nSettings, which count more than the configuration file:");
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++) {
		if (!s->option)
			continue;
		mgpud_setting_range(s, range);
		printf("      --%-10s %-5s  %s: %s (default %s)\n", s->option, s->arg, s->help,
		       range, s->initial);
	}
	puts("\nAllocators:");
	for (const struct alloc_ops *const *p = alloc_all; *p; p++)
		printf("  %-12s        %s\n", (*p)->name, (*p)->summary);
	puts("\nPreemption policies:");
	for (const struct preempt_ops *const *p = preempt_all; *p; p++)
		printf("  %-12s        %s\n", (*p)->name, (*p)->summary);
	puts("\nWhat \"gpuctl ctl set\" and \"gpuctl ctl sla\" set counts more than both, until \"gpuctl ctl reset\".\n"
	     "mgpud runs in the foreground until SIGTERM or SIGINT. SIGHUP makes it read the\n"
	     "configuration file again, SIGUSR1 open the JSON log again, after a rotation.");
}

static bool can_set_targets(void)
{
	unsigned long long caps = 0;
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");

	if (!f)
		return true;	/* let the kernel refuse */
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "CapEff: %llx", &caps) == 1)
			break;
	fclose(f);
	return caps >> CAP_NET_ADMIN & 1;
}

/* A setting from the command line or the environment, whose name there is @from. */
static int override(struct options *o, enum config_origin origin, const char *from,
		    const struct mgpud_setting *s, const char *value)
{
	struct config_source *source = &o->source;
	struct settings_error err;
	struct config try;
	size_t i;

	config_default(&try);
	if (table_parse(&try, s, s->option, value, &err)) {
		fprintf(stderr, "mgpud: %s: %s\n", from, err.text);
		return -EINVAL;
	}
	/* the last one counts, as usual */
	for (i = 0; i < source->nr; i++)
		if (source->override[i].setting == s)
			break;
	source->override[i].setting = s;
	source->override[i].value = value;
	source->override[i].origin = origin;
	source->nr += i == source->nr;
	return 0;
}

static int complain_option(int result, char **argv, const struct option *longopts)
{
	const char *names[NR_OPTIONS + CONFIG_SETTINGS_MAX + 1] = { NULL };
	const struct option *option;
	char text[256];
	size_t nr = 0;

	for (option = longopts; option->name; option++)
		if (option->val < OPT_WAS)
			names[nr++] = option->name;
	getopt_problem(text, sizeof(text), "mgpud", result, argv, longopts, names);
	fprintf(stderr, "mgpud: %s\n", text);
	return END_USAGE + 1;
}

/* The words help and version are options, too. Returns as parse(). */
static int parse_word(const char *word)
{
	static const char *const words[] = { "help", "version", NULL };
	char text[256];

	if (!strcmp(word, "help")) {
		help();
		return END_OK + 1;
	}
	if (!strcmp(word, "version")) {
		puts("mgpud " MGPU_VERSION);
		return END_OK + 1;
	}
	unknown_command(text, sizeof(text), "mgpud", word, words);
	fprintf(stderr, "mgpud: %s\n", text);
	return END_USAGE + 1;
}

/* Returns 0 to go on, else main()'s result + 1. */
static int parse(int argc, char **argv, struct options *o, bool *check)
{
	struct option longopts[NR_OPTIONS + 2 * CONFIG_SETTINGS_MAX + 1] = { 0 };
	const struct mgpud_setting *s;
	int opt, at = 0;
	char name[32];
	size_t n = 0;

	while (n < NR_OPTIONS) {
		longopts[n] = table[n].opt;
		n++;
	}
	for (s = mgpud_settings; s->key; s++) {
		int place = (int)(s - mgpud_settings);

		if (s->option)
			longopts[n++] = (struct option){
				.name = s->option, .has_arg = required_argument,
				.val = OPT_SETTING + place,
			};
		if (s->option && s->was)
			longopts[n++] = (struct option){
				.name = s->was, .has_arg = required_argument,
				.val = OPT_WAS + place,
			};
	}
	opterr = 0;	/* it prints errors of its own */
	while ((opt = getopt_long(argc, argv, ":hV", longopts, &at)) != -1) {
		switch (opt) {
		case OPT_CONFIG:
			o->source.path = optarg;
			o->source.must = true;
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
		case '?':
		case ':':
			return complain_option(opt, argv, longopts);
		default:
			if (opt >= OPT_WAS) {
				s = &mgpud_settings[opt - OPT_WAS];
				fprintf(stderr, "mgpud: --%s is called --%s now: use --%s %s\n",
					s->was, s->option, s->option, optarg);
				return END_USAGE + 1;
			}
			snprintf(name, sizeof(name), "--%s", longopts[at].name);
			if (override(o, ORIGIN_OPTION, name, &mgpud_settings[opt - OPT_SETTING],
				     optarg))
				return END_USAGE + 1;
		}
	}
	return optind < argc ? parse_word(argv[optind]) : 0;
}

static int load(struct options *o)
{
	char why[512];

	if (!config_load(&o->config, &o->source, why, sizeof(why)))
		return END_OK;
	log_text(LEVEL_ERROR, "config", "%s", why);
	/* without a file the mistake is in the command line */
	return o->source.must || !access(o->source.path, F_OK) ? END_CONFIG : END_USAGE;
}

int main(int argc, char **argv)
{
	struct options o = { .source = { .path = CONFIG_DEFAULT } };
	const char *socket = getenv(MGPUD_SOCKET_ENV);
	bool check = false;
	int ret;

	log_start();
	if (socket && *socket &&
	    override(&o, ORIGIN_ENVIRONMENT, MGPUD_SOCKET_ENV,
		     table_member(offsetof(struct config, socket)), socket))
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
	if (!o.dry_run && !can_set_targets()) {
		log_text(LEVEL_ERROR, "failed", "no permission to set targets: run as root, or with the capabilities that mgpud(8) names");
		config_free(&o.config);
		return END_PERMISSION;
	}
	return daemon_run(&o);
}
