// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-agent: the command line. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "cmdline.h"
#include "complain.h"

#ifndef MGPU_VERSION
#define MGPU_VERSION "unknown"
#endif

static const char usage_text[] =
	"usage: mgpu-agent run --kind KIND [OPTION]... [--] COMMAND [ARGUMENT]...\n"
	"       mgpu-agent watch [OPTION]...\n"
	"       mgpu-agent request --kind KIND [--key KEY] [--wait] [OPTION]...\n"
	"       mgpu-agent state [REQUEST]\n"
	"       mgpu-agent release [--done] REQUEST\n"
	"       mgpu-agent extend REQUEST TIME\n"
	"       mgpu-agent consent yes|no\n"
	"       mgpu-agent help | version\n"
	"\n"
	"Asks the pool's service for a GPU for this VM, runs a command or the jobs of a queue with\n"
	"it, and gives it back.\n"
	"\n"
	"      --kind KIND     kind of work, such as training: the service learns from each kind\n"
	"      --size SIZE     amount of data, such as 512M, 4G or 1T\n"
	"      --memory SIZE   GPU memory that is needed\n"
	"      --precision P   precision of the work: any, fp64, fp32, fp16 or fp8\n"
	"      --target TARGET a whole GPU or a vGPU: any, whole or vgpu\n"
	"      --capabilities LIST\n"
	"                      what the GPU must be able to do, separated by commas, 3d and compute\n"
	"      --type TYPE     type of the vGPU\n"
	"      --weight NUMBER weight of the vGPU (1 to 10000)\n"
	"      --floor FPS     frames per second that the vGPU is promised\n"
	"      --lease TIME    how long the GPU is wanted, such as 30m, 2h or 1d\n"
	"      --wait          wait in the queue (run does, unless told otherwise)\n"
	"      --no-wait       end with status 75 if no GPU is free\n"
	"      --key KEY       key of the request: asking again with it is the same request\n"
	"      --done          the work ended with success: the service learns from it\n"
	"      --config FILE   read the settings from this file (/etc/mgpu/agent.conf)\n"
	"      --service WHERE where the service is: vsock, vsock:CID:PORT or HOST:PORT\n"
	"  -h, --help          print this help\n"
	"  -V, --version       print the version\n";

enum {
	OPT_KIND = 256, OPT_SIZE, OPT_MEMORY, OPT_PRECISION, OPT_TARGET, OPT_CAPABILITIES, OPT_TYPE,
	OPT_WEIGHT, OPT_FLOOR, OPT_LEASE, OPT_WAIT, OPT_NO_WAIT, OPT_KEY, OPT_DONE, OPT_CONFIG,
	OPT_SERVICE,
};

static const struct option options[] = {
	{ "kind", required_argument, NULL, OPT_KIND },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "precision", required_argument, NULL, OPT_PRECISION },
	{ "target", required_argument, NULL, OPT_TARGET },
	{ "capabilities", required_argument, NULL, OPT_CAPABILITIES },
	{ "type", required_argument, NULL, OPT_TYPE },
	{ "weight", required_argument, NULL, OPT_WEIGHT },
	{ "floor", required_argument, NULL, OPT_FLOOR },
	{ "lease", required_argument, NULL, OPT_LEASE },
	{ "wait", no_argument, NULL, OPT_WAIT },
	{ "no-wait", no_argument, NULL, OPT_NO_WAIT },
	{ "key", required_argument, NULL, OPT_KEY },
	{ "done", no_argument, NULL, OPT_DONE },
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "service", required_argument, NULL, OPT_SERVICE },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

#define BIT(option)	(UINT32_C(1) << ((option) - OPT_KIND))
#define WISH		(BIT(OPT_LEASE + 1) - 1)
#define WHERE		(BIT(OPT_CONFIG) | BIT(OPT_SERVICE))

static int run_help(const struct options *o)
{
	(void)o;
	fputs(usage_text, stdout);
	return fflush(stdout) ? STATUS_FAILED : 0;
}

static int run_version(const struct options *o)
{
	(void)o;
	puts("mgpu-agent " MGPU_VERSION);
	return fflush(stdout) ? STATUS_FAILED : 0;
}

/**
 * struct command - a command
 * @o: its name and options
 * @least: words that it needs
 * @most: words that it takes, -1: any number
 * @words: their names
 * @run: the command
 */
static const struct command {
	struct command_options o;
	int least;
	int most;
	const char *words;
	int (*run)(const struct options *o);
} commands[] = {
	{ { "run", WISH | BIT(OPT_WAIT) | BIT(OPT_NO_WAIT) | WHERE, BIT(OPT_KIND) }, 1, -1,
	  "a command", run_run },
	{ { "watch", WHERE, 0 }, 0, 0, "", run_watch },
	{ { "request", WISH | BIT(OPT_WAIT) | BIT(OPT_NO_WAIT) | BIT(OPT_KEY) | WHERE,
	    BIT(OPT_KIND) }, 0, 0, "", run_request },
	{ { "state", WHERE, 0 }, 0, 1, "the number of a request", run_state },
	{ { "release", BIT(OPT_DONE) | WHERE, 0 }, 1, 1, "the number of a request", run_release },
	{ { "extend", WHERE, 0 }, 2, 2, "the number of a request and a time", run_extend },
	{ { "consent", WHERE, 0 }, 1, 1, "yes or no", run_consent },
	{ { "help", 0, 0 }, 0, 0, "", run_help },
	{ { "version", 0, 0 }, 0, 0, "", run_version },
};

static const struct command *find_command(const char *word)
{
	const char *names[sizeof(commands) / sizeof(*commands) + 1] = { NULL };
	char text[256];

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (!strcmp(commands[i].o.command, word))
			return &commands[i];
		names[i] = commands[i].o.command;
	}
	unknown_command(text, sizeof(text), "mgpu-agent", word, names);
	complain("%s", text);
	return NULL;
}

/* The name that a wish has for an option. */
static const char *wish_name(int option)
{
	for (const struct option *o = options; o->name; o++)
		if (o->val == option)
			return o->name;
	return "";
}

static int read_option(struct options *o, int option)
{
	switch (option) {
	case OPT_WAIT:
	case OPT_NO_WAIT:
		o->wait = option == OPT_WAIT;
		return 0;
	case OPT_KEY:
		o->key = optarg;
		return 0;
	case OPT_DONE:
		o->done = true;
		return 0;
	case OPT_CONFIG:
		o->config = optarg;
		return 0;
	case OPT_SERVICE:
		o->service = optarg;
		return 0;
	default:
		if (!wish_set(&o->wish, wish_name(option), optarg))
			return 0;
		complain("--%s '%s': invalid value (see 'mgpu-agent --help')", wish_name(option),
			 optarg);
		return STATUS_USAGE;
	}
}

/**
 * read_words() - read options up to the words of the command, which may have options of its own
 * @argc: number of words
 * @argv: words; optind is left at the first one behind the options and the command
 * @o: result
 * @given: mask of the options that were given
 * @command: the command; NULL for none
 *
 * Return: 0 or an exit status.
 */
static int read_words(int argc, char **argv, struct options *o, uint32_t *given,
		      const struct command **command)
{
	char text[256];
	int c, ret;

	for (;;) {
		c = getopt_long(argc, argv, "+:hV", options, NULL);
		if (c == -1 && !*command && optind < argc && strcmp(argv[optind - 1], "--")) {
			*command = find_command(argv[optind++]);
			if (!*command)
				return STATUS_USAGE;
			if (!(*given & (BIT(OPT_WAIT) | BIT(OPT_NO_WAIT))))
				o->wait = (*command)->run == run_run;
			continue;
		}
		if (c == -1)
			return 0;
		if (c == 'h' || c == 'V') {
			*command = find_command(c == 'h' ? "help" : "version");
			optind = argc;
			*given = 0;
			return 0;
		}
		if (c == '?' || c == ':') {
			getopt_problem(text, sizeof(text), "mgpu-agent", c, argv, options, NULL);
			complain("%s", text);
			return STATUS_USAGE;
		}
		*given |= BIT(c);
		ret = read_option(o, c);
		if (ret)
			return ret;
	}
}

static int check_words(const struct command *c, const struct options *o)
{
	if (o->nr >= c->least && (c->most < 0 || o->nr <= c->most))
		return 0;
	if (c->most)
		complain("%s takes %s (see 'mgpu-agent --help')", c->o.command, c->words);
	else
		complain("%s takes options only", c->o.command);
	return STATUS_USAGE;
}

int main(int argc, char **argv)
{
	const struct command *command = NULL;
	struct options o = { 0 };
	uint32_t given = 0;
	char text[256];
	int ret = read_words(argc, argv, &o, &given, &command);

	if (ret)
		return ret;
	if (!command) {
		complain("no command; the commands are run, watch, request, state, release, extend and consent (see 'mgpu-agent --help')");
		return STATUS_USAGE;
	}
	if (wrong_options(text, sizeof(text), "mgpu-agent", &command->o, options, OPT_KIND,
			  given)) {
		complain("%s", text);
		return STATUS_USAGE;
	}
	o.words = argv + optind;
	o.nr = argc - optind;
	ret = check_words(command, &o);
	return ret ? ret : command->run(&o);
}
