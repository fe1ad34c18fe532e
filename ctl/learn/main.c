// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-learn: the command line. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmdline.h"
#include "command.h"
#include "complain.h"
#include "output.h"
#include "pairs_command.h"

static const char usage_text[] =
	"usage: mgpu-learn train --model NAME --output FILE [--seed N] [--epochs N] [--form B|A|C]\n"
	"                        [--part P] [-q] HISTORY...\n"
	"       mgpu-learn evaluate [--weights FILE]... [--horizon LIST] [--part P] [--seed N] [-j]\n"
	"                           HISTORY...\n"
	"       mgpu-learn inspect WEIGHTS [-j]\n"
	"       mgpu-learn pairs train|evaluate|predict ...\n"
	"       mgpu-learn help | version\n"
	"\n"
	"Trains models of the share that is due to a VM, and compares them. A HISTORY is a JSON log\n"
	"of mgpud (json_log), or of mgpu-sim --log.\n"
	"\n"
	"      --model NAME    what to train: network or trees\n"
	"      --output FILE   where weights go\n"
	"      --seed N        seed of all that is drawn (1)\n"
	"      --epochs N      times that each sample is learned from, or trees, at most\n"
	"      --form B|A|C    response factor of the network (B)\n"
	"      --part P        part of the active VMs that is asked for as if they were not (0.25)\n"
	"      --weights FILE  a learned model to evaluate beside the controls\n"
	"      --horizon LIST  predict the plans of so many periods ahead (1)\n"
	"  -j, --json          print JSON\n"
	"  -q, --quiet         print no progress\n"
	"  -h, --help          print this help\n"
	"  -V, --version       print the version\n";

enum {
	OPT_MODEL = 256, OPT_OUTPUT, OPT_SEED, OPT_EPOCHS, OPT_FORM, OPT_PART, OPT_WEIGHTS,
	OPT_HORIZON,
};

static const struct option options[] = {
	{ "model", required_argument, NULL, OPT_MODEL },
	{ "output", required_argument, NULL, OPT_OUTPUT },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "epochs", required_argument, NULL, OPT_EPOCHS },
	{ "form", required_argument, NULL, OPT_FORM },
	{ "part", required_argument, NULL, OPT_PART },
	{ "weights", required_argument, NULL, OPT_WEIGHTS },
	{ "horizon", required_argument, NULL, OPT_HORIZON },
	{ "json", no_argument, NULL, 'j' },
	{ "quiet", no_argument, NULL, 'q' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

#define NR(a)		(sizeof(a) / sizeof((a)[0]))
#define BIT(option)	(1u << ((option) - OPT_MODEL))

/**
 * struct command - a command
 * @o: its name and options
 * @words: it needs files behind its name: this many at least
 * @most: files at most
 * @run: the command; returns the exit status
 */
static const struct command {
	struct command_options o;
	int words;
	int most;
	int (*run)(const struct learn_options *o);
} commands[] = {
	{ { "train", BIT(OPT_MODEL) | BIT(OPT_OUTPUT) | BIT(OPT_SEED) | BIT(OPT_EPOCHS) |
		BIT(OPT_FORM) | BIT(OPT_PART), BIT(OPT_MODEL) | BIT(OPT_OUTPUT) }, 1, 4096,
		command_train },
	{ { "evaluate", BIT(OPT_WEIGHTS) | BIT(OPT_HORIZON) | BIT(OPT_PART) | BIT(OPT_SEED), 0 },
		1, 4096, command_evaluate },
	{ { "inspect", 0, 0 }, 1, 1, command_inspect },
};

static const char *const command_names[] = {
	"train", "evaluate", "inspect", "pairs", "help", "version", NULL,
};

static const char *option_name(int option)
{
	for (size_t i = 0; options[i].name; i++)
		if (options[i].val == option)
			return options[i].name;
	return "";
}

/* Read a number of an option. Return 0, or -1 after a complaint. */
static int number(int option, const char *text, double min, double max, bool whole, double *value)
{
	char *end;

	errno = 0;
	*value = strtod(text, &end);
	if (!errno && end != text && !*end && *value >= min && *value <= max &&
	    (!whole || *value == (double)(uint64_t)*value))
		return 0;
	complain("--%s must be a %snumber from %.10g to %.10g, not '%.32s'",
		 option_name(option), whole ? "whole " : "", min, max, text);
	return -1;
}

static int read_horizons(struct learn_options *o, char *list)
{
	char *word;
	double value;

	o->nr_horizons = 0;
	while ((word = strsep(&list, ","))) {
		if (o->nr_horizons == OPTIONS_MAX) {
			complain("--horizon takes at most %d numbers", OPTIONS_MAX);
			return -1;
		}
		if (number(OPT_HORIZON, word, 1, 60, true, &value))
			return -1;
		o->horizons[o->nr_horizons++] = (unsigned int)value;
	}
	return 0;
}

static int set_option(struct learn_options *o, int option, char *value)
{
	double x = 0;
	int ret = 0;

	switch (option) {
	case OPT_MODEL:
		o->model = value;
		return 0;
	case OPT_OUTPUT:
		o->output = value;
		return 0;
	case OPT_FORM:
		o->form = value;
		if (strlen(value) == 1 && strchr("ABC", *value))
			return 0;
		complain("--form must be B, A or C, not '%.32s'", value);
		return -1;
	case OPT_WEIGHTS:
		if (o->nr_weights == OPTIONS_MAX) {
			complain("at most %d files of weights", OPTIONS_MAX);
			return -1;
		}
		o->weights[o->nr_weights++] = value;
		return 0;
	case OPT_HORIZON:
		return read_horizons(o, value);
	case OPT_SEED:
		ret = number(option, value, 0, 9007199254740992.0, true, &x);
		o->seed = (uint64_t)x;
		return ret;
	case OPT_EPOCHS:
		ret = number(option, value, 1, 4096, true, &x);
		o->epochs = (unsigned int)x;
		return ret;
	default:
		return number(option, value, 0, 1, false, &o->part);
	}
}

/* Return 0, 1 after --help or --version, or -1 after a complaint. */
static int parse(struct learn_options *o, int argc, char **argv, unsigned int *given)
{
	char text[256];
	int c;

	opterr = 0;
	while ((c = getopt_long(argc, argv, ":jqhV", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			o->json = true;
			break;
		case 'q':
			o->quiet = true;
			break;
		case 'h':
			fputs(usage_text, stdout);
			return 1;
		case 'V':
			puts("mgpu-learn " MGPU_VERSION);
			return 1;
		case '?':
		case ':':
			getopt_problem(text, sizeof(text), "mgpu-learn", c, argv, options, NULL);
			complain("%s", text);
			return -1;
		default:
			*given |= BIT(c);
			if (set_option(o, c, optarg))
				return -1;
		}
	}
	o->words = argv + optind;
	o->nr_words = argc - optind;
	return 0;
}

/* Check that a command has the options that it needs, and no others. */
static int check(const struct command *c, const struct learn_options *o, unsigned int given)
{
	char text[256];

	if (wrong_options(text, sizeof(text), "mgpu-learn", &c->o, options, OPT_MODEL, given)) {
		complain("%s", text);
		return -1;
	}
	if (o->nr_words >= c->words && o->nr_words <= c->most)
		return 0;
	complain("%s needs %s", c->o.command, c->most > 1 ?
		 "a history, such as mgpud's JSON log" : "one file of weights");
	return -1;
}

/* Run the command that the first word names. */
static int run(struct learn_options *o, unsigned int given)
{
	const char *name = o->nr_words ? o->words[0] : NULL;
	char text[256];

	if (!name) {
		complain("no command; the commands are train, evaluate, inspect and pairs (see 'mgpu-learn --help')");
		return STATUS_USAGE;
	}
	if (!strcmp(name, "help")) {
		fputs(usage_text, stdout);
		return end_output();
	}
	if (!strcmp(name, "version")) {
		puts("mgpu-learn " MGPU_VERSION);
		return end_output();
	}
	o->words++;
	o->nr_words--;
	for (size_t i = 0; i < NR(commands); i++) {
		if (strcmp(commands[i].o.command, name))
			continue;
		return check(&commands[i], o, given) ? STATUS_USAGE : commands[i].run(o);
	}
	unknown_command(text, sizeof(text), "mgpu-learn", name, command_names);
	complain("%s", text);
	return STATUS_USAGE;
}

int main(int argc, char **argv)
{
	struct learn_options o = { .seed = 1, .part = 0.25, .horizons = { 1 }, .nr_horizons = 1 };
	unsigned int given = 0;
	int ret;

	/* it has options of its own */
	if (argc > 1 && !strcmp(argv[1], "pairs"))
		return pairs_command(argc - 1, argv + 1);
	ret = parse(&o, argc, argv, &given);
	if (ret)
		return ret > 0 ? end_output() : STATUS_USAGE;
	return run(&o, given);
}
