// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmdline.h"

#define MAX_OPTIONS	31

volatile sig_atomic_t stop;

void explain(const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "%s: ", program_name);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
}

static int invalid(const struct cmdline_option *o, const char *value, const char *want)
{
	explain("--%s '%s': must be %s\n", o->name, value, want);
	return -EINVAL;
}

static int number(const struct cmdline_option *o, const char *value, double *v)
{
	char range[80], *end;

	errno = 0;
	*v = strtod(value, &end);
	/* These comparisons are false for nan. */
	if (!errno && end != value && !*end && *v >= o->min && *v <= o->max)
		return 0;
	snprintf(range, sizeof(range), "a number from %.10g to %.10g", o->min, o->max);
	return invalid(o, value, o->want ? o->want : range);
}

static int set(const struct cmdline_option *o, const char *value)
{
	double v = 0;
	int ret = 0;

	switch (o->type) {
	case OPTION_FLAG:
		*(bool *)o->to = true;
		break;
	case OPTION_WORD:
		if (!*value || strpbrk(value, " \t\n=\"\\"))
			return invalid(o, value, "one word without =, \" and \\");
		/* fall through */
	case OPTION_TEXT:
		*(const char **)o->to = value;
		break;
	case OPTION_CHOICE:
		if (o->choose(value, o->to))
			return invalid(o, value, o->want);
		break;
	case OPTION_U32:
		ret = number(o, value, &v);
		if (!ret && v != (uint32_t)v)
			ret = invalid(o, value, "a whole number");
		if (!ret)
			*(uint32_t *)o->to = (uint32_t)v;
		break;
	case OPTION_U64:
		ret = number(o, value, &v);
		if (!ret)
			*(uint64_t *)o->to = (uint64_t)v;
		break;
	case OPTION_NUMBER:
		ret = number(o, value, &v);
		if (!ret)
			*(double *)o->to = v;
		break;
	}
	return ret;
}

int cmdline_parse(const struct cmdline_option *options, const char *usage, int argc,
		  char **argv)
{
	struct option all[MAX_OPTIONS + 2] = { 0 };
	int c, index, nr = 0, ret = 0;

	for (; options[nr].name && nr < MAX_OPTIONS; nr++) {
		all[nr].name = options[nr].name;
		all[nr].has_arg = options[nr].type == OPTION_FLAG ? no_argument :
			required_argument;
	}
	all[nr].name = "help";
	all[nr].val = 'h';

	opterr = 0;
	while (!ret && (c = getopt_long(argc, argv, ":", all, &index)) != -1) {
		switch (c) {
		case 0:
			ret = set(&options[index], optarg);
			break;
		case 'h':
			fputs(usage, stdout);
			return 1;
		case ':':
			explain("%s needs a value; try --help\n", argv[optind - 1]);
			return -EINVAL;
		default:
			explain("invalid option '%s'; try --help\n", argv[optind - 1]);
			return -EINVAL;
		}
	}
	if (!ret && optind < argc) {
		explain("unexpected argument '%s'; try --help\n", argv[optind]);
		ret = -EINVAL;
	}
	return ret;
}

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

void stop_on_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}
