// SPDX-License-Identifier: GPL-2.0-only
/* Command lines of the simulators. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "options.h"

static const char *program = "mgpu-sim";

int sim_bad(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "%s: ", program);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return -EINVAL;
}

int sim_number(const char *option, const char *s, double min, double max, bool whole,
	       double *v)
{
	char *end;

	errno = 0;
	*v = strtod(s, &end);
	if (errno || end == s || *end || !(*v >= min && *v <= max) ||
	    (whole && *v != floor(*v)))
		return sim_bad("--%s '%s': must be a %snumber from %.15g to %.15g", option, s,
			       whole ? "whole " : "", min, max);
	return 0;
}

int sim_weights(struct learn_file *file, const char *path)
{
	FILE *f = fopen(path, "re");
	char why[512];
	int ret;

	if (!f)
		return sim_bad("%s: %s", path, strerror(errno));
	ret = learn_file_read(file, f, path, why, sizeof(why));
	fclose(f);
	return ret ? sim_bad("%s", why) : 0;
}

static void help(const struct sim_program *p)
{
	printf("%s\n", p->usage);
	for (size_t i = 0; i < p->nr; i++)
		printf("  --%-*s %-9s %s\n", p->width, p->options[i].name,
		       p->options[i].arg ? p->options[i].arg : "", p->options[i].help);
}

int sim_parse(const struct sim_program *p, int argc, char **argv, void *data)
{
	struct option *longs = calloc(p->nr + 1, sizeof(*longs));
	int c, index = 0, ret = 0;

	program = p->name;
	if (!longs)
		return sim_bad("out of memory");
	for (size_t i = 0; i < p->nr; i++)
		longs[i] = (struct option){
			.name = p->options[i].name, .val = 1,
			.has_arg = p->options[i].arg ? required_argument : no_argument,
		};
	opterr = 0;
	while (!ret && (c = getopt_long(argc, argv, ":", longs, &index)) != -1) {
		const struct sim_option *o = &p->options[index];

		if (c == ':') {
			ret = sim_bad("'%s' needs a value; --help lists all options",
				      argv[optind - 1]);
		} else if (c == '?') {
			ret = sim_bad("unknown option '%s'; --help lists all options",
				      argv[optind - 1]);
		} else if (o->id == SIM_OPTION_HELP) {
			help(p);
			ret = 1;
		} else if (o->id == SIM_OPTION_LIST) {
			p->list();
			ret = 1;
		} else {
			ret = p->set(data, o, optarg);
		}
	}
	if (!ret && optind < argc)
		ret = sim_bad("unexpected argument '%s'; --help lists all options",
			      argv[optind]);
	free(longs);
	return ret;
}
