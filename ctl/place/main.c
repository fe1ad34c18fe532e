// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-place: the command line. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmdline.h"
#include "command.h"
#include "complain.h"

static const char usage_text[] =
	"usage: mgpu-place replay --nodes FILE --tasks FILE [--policy NAME]... [--weights FILE]\n"
	"                         [--seed N] [--seeds N] [--demand LIST] [--churn N] [--by-time]\n"
	"                         [--part N] [-j]\n"
	"       mgpu-place place --state FILE [--tasks FILE] [--policy NAME] [--weights FILE]\n"
	"                        [REQUEST] [-j]\n"
	"       mgpu-place train --nodes FILE --tasks FILE --output FILE [--seed N]\n"
	"                        [--generations N] [--population N] [--replays N] [--part N]\n"
	"                        [--churn-weight N] [--threads N]\n"
	"       mgpu-place inspect WEIGHTS [-j]\n"
	"       mgpu-place policies [-j]\n"
	"       mgpu-place help | version\n"
	"\n"
	"Chooses nodes and GPUs for requests, and compares placement policies on traces.\n"
	"\n"
	"      --nodes FILE    CSV with the columns cpu_milli, memory_mib, gpu, model\n"
	"      --tasks FILE    CSV with the columns cpu_milli, memory_mib, num_gpu, gpu_milli; of\n"
	"                      place: the target workload\n"
	"      --policy NAME   policy to use; replay takes several, and else all that it can\n"
	"      --weights FILE  weights of the policy learned\n"
	"      --seed N        seed of all that is drawn (1)\n"
	"      --seeds N       replay with so many seeds, and print means (1)\n"
	"      --demand LIST   measure at these per cent of arrived GPU demand (95,100,105,130)\n"
	"      --churn N       have tasks end so that their GPU demand stays at N per cent\n"
	"      --by-time       replay from creation to deletion instead\n"
	"      --part N        use each N-th node only (replay: 1, train: 8)\n"
	"      --state FILE    the cluster: JSON, or CSV (.csv) of nodes that are free\n"
	"      --output FILE   where weights go\n"
	"      --generations N, --population N, --replays N, --threads N\n"
	"                      how long to train (120, 24, 4, 1)\n"
	"      --churn-weight N  weight of replays with churn, per cent (15)\n"
	"  -j, --json          print JSON\n"
	"  -h, --help          print this help\n"
	"  -V, --version       print the version\n"
	"\n"
	"REQUEST is\n"
	"      --cpu-milli N, --memory-mib N\n"
	"                      host CPU, thousandths of a processor, and memory (0)\n"
	"      --num-gpu N     GPUs (1)\n"
	"      --gpu-milli N   part of each GPU, thousandths (1000)\n"
	"      --gpu-memory-mib N\n"
	"                      memory of each GPU (0)\n"
	"      --gpu-spec LIST models that will do, separated by | (all)\n"
	"      --capability NAME\n"
	"                      what the node must be able to do; may be repeated\n"
	"      --vgpu          a vGPU of a type that is large enough\n"
	"      --kind KIND     what bounds its GPU work: compute or memory\n";

enum {
	OPT_NODES = 256, OPT_TASKS, OPT_POLICY, OPT_WEIGHTS, OPT_SEED, OPT_SEEDS, OPT_DEMAND,
	OPT_CHURN, OPT_TIME, OPT_PART, OPT_STATE, OPT_OUTPUT, OPT_GENERATIONS, OPT_POPULATION,
	OPT_REPLAYS, OPT_WEIGHT, OPT_THREADS, OPT_CPU, OPT_MEMORY, OPT_GPUS, OPT_MILLI,
	OPT_GPU_MEMORY, OPT_SPEC, OPT_CAPABILITY, OPT_VGPU, OPT_KIND, OPT_END,
};

static const struct option options[] = {
	{ "nodes", required_argument, NULL, OPT_NODES },
	{ "tasks", required_argument, NULL, OPT_TASKS },
	{ "policy", required_argument, NULL, OPT_POLICY },
	{ "weights", required_argument, NULL, OPT_WEIGHTS },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "seeds", required_argument, NULL, OPT_SEEDS },
	{ "demand", required_argument, NULL, OPT_DEMAND },
	{ "churn", required_argument, NULL, OPT_CHURN },
	{ "by-time", no_argument, NULL, OPT_TIME },
	{ "part", required_argument, NULL, OPT_PART },
	{ "state", required_argument, NULL, OPT_STATE },
	{ "output", required_argument, NULL, OPT_OUTPUT },
	{ "generations", required_argument, NULL, OPT_GENERATIONS },
	{ "population", required_argument, NULL, OPT_POPULATION },
	{ "replays", required_argument, NULL, OPT_REPLAYS },
	{ "churn-weight", required_argument, NULL, OPT_WEIGHT },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "cpu-milli", required_argument, NULL, OPT_CPU },
	{ "memory-mib", required_argument, NULL, OPT_MEMORY },
	{ "num-gpu", required_argument, NULL, OPT_GPUS },
	{ "gpu-milli", required_argument, NULL, OPT_MILLI },
	{ "gpu-memory-mib", required_argument, NULL, OPT_GPU_MEMORY },
	{ "gpu-spec", required_argument, NULL, OPT_SPEC },
	{ "capability", required_argument, NULL, OPT_CAPABILITY },
	{ "vgpu", no_argument, NULL, OPT_VGPU },
	{ "kind", required_argument, NULL, OPT_KIND },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

#define BIT(option)	(UINT32_C(1) << ((option) - OPT_NODES))

_Static_assert(OPT_END - OPT_NODES < 32, "a mask has a bit for each option");

#define REQUEST	(BIT(OPT_CPU) | BIT(OPT_MEMORY) | BIT(OPT_GPUS) | BIT(OPT_MILLI) | \
		 BIT(OPT_GPU_MEMORY) | BIT(OPT_SPEC) | BIT(OPT_CAPABILITY) | BIT(OPT_VGPU) | \
		 BIT(OPT_KIND))

/**
 * struct command - a command
 * @o: its name and options
 * @words: words behind its name
 * @run: the command; returns the exit status
 */
static const struct command {
	struct command_options o;
	int words;
	int (*run)(struct place_options *o);
} commands[] = {
	{ { "replay", BIT(OPT_NODES) | BIT(OPT_TASKS) | BIT(OPT_POLICY) | BIT(OPT_WEIGHTS) |
		BIT(OPT_SEED) | BIT(OPT_SEEDS) | BIT(OPT_DEMAND) | BIT(OPT_CHURN) | BIT(OPT_TIME) |
		BIT(OPT_PART),
		BIT(OPT_NODES) | BIT(OPT_TASKS) }, 0, command_replay },
	{ { "place", BIT(OPT_STATE) | BIT(OPT_TASKS) | BIT(OPT_POLICY) | BIT(OPT_WEIGHTS) |
		BIT(OPT_SEED) | REQUEST, BIT(OPT_STATE) }, 0, command_place },
	{ { "train", BIT(OPT_NODES) | BIT(OPT_TASKS) | BIT(OPT_OUTPUT) | BIT(OPT_SEED) |
		BIT(OPT_GENERATIONS) | BIT(OPT_POPULATION) | BIT(OPT_REPLAYS) | BIT(OPT_PART) |
		BIT(OPT_WEIGHT) | BIT(OPT_THREADS),
		BIT(OPT_NODES) | BIT(OPT_TASKS) | BIT(OPT_OUTPUT) }, 0, command_train },
	{ { "inspect", 0, 0 }, 1, command_inspect },
	{ { "policies", 0, 0 }, 0, command_policies },
};

#define COMMANDS	(sizeof(commands) / sizeof(*commands))

static const char *option_name(int option)
{
	size_t i;

	for (i = 0; options[i].val != option; i++)
		;
	return options[i].name;
}

/* Read the number of an option. */
static int64_t read_number(int option, int64_t least, int64_t most)
{
	int64_t value;
	char *end;

	errno = 0;
	value = strtoll(optarg, &end, 10);
	if (errno || end == optarg || *end || value < least || value > most) {
		complain("--%s '%s': it must be a whole number from %lld to %lld",
			 option_name(option), optarg, (long long)least, (long long)most);
		exit(STATUS_USAGE);
	}
	return value;
}

static void read_demand(struct place_options *o)
{
	const char *at = optarg;

	o->nr_points = 0;
	for (;;) {
		char *end;
		unsigned long value = strtoul(at, &end, 10);

		if (end == at || *at == '-' || (*end && *end != ',') || !value ||
		    value > REPLAY_MAX_DEMAND || o->nr_points == REPLAY_MAX_POINTS ||
		    (o->nr_points && value <= o->points[o->nr_points - 1])) {
			complain("--demand '%s': it must be up to %d ascending whole numbers from 1 to %d, with commas between",
				 optarg, REPLAY_MAX_POINTS, REPLAY_MAX_DEMAND);
			exit(STATUS_USAGE);
		}
		o->points[o->nr_points++] = (unsigned int)value;
		if (!*end)
			return;
		at = end + 1;
	}
}

static void read_policy(struct place_options *o)
{
	const struct place_policy *policy = place_policy_find(optarg);

	if (!policy) {
		complain("--policy '%s': no such policy; 'mgpu-place policies' lists them", optarg);
		exit(STATUS_USAGE);
	}
	if (o->nr_policies == OPTIONS_MAX) {
		complain("--policy: more than %d", OPTIONS_MAX);
		exit(STATUS_USAGE);
	}
	o->policies[o->nr_policies++] = policy;
}

static void read_kind(struct place_options *o)
{
	if (!strcmp(optarg, "compute")) {
		o->r.kind = PLACE_KIND_COMPUTE;
	} else if (!strcmp(optarg, "memory")) {
		o->r.kind = PLACE_KIND_MEMORY;
	} else {
		complain("--kind '%s': it must be compute or memory", optarg);
		exit(STATUS_USAGE);
	}
}

static void read_request(struct place_options *o, int option)
{
	switch (option) {
	case OPT_CPU:
		o->r.cpu_milli = (int32_t)read_number(option, 0, PLACE_MAX_AMOUNT);
		break;
	case OPT_MEMORY:
		o->r.memory_mib = (int32_t)read_number(option, 0, PLACE_MAX_AMOUNT);
		break;
	case OPT_GPUS:
		o->r.nr_gpus = (uint8_t)read_number(option, 0, PLACE_MAX_GPUS);
		break;
	case OPT_MILLI:
		o->r.gpu_milli = (uint16_t)read_number(option, 1, PLACE_WHOLE);
		break;
	case OPT_GPU_MEMORY:
		o->r.gpu_memory_mib = (int32_t)read_number(option, 0, PLACE_MAX_AMOUNT);
		break;
	case OPT_SPEC:
		o->spec = optarg;
		break;
	case OPT_CAPABILITY:
		if (o->nr_capabilities == OPTIONS_MAX) {
			complain("--capability: more than %d", OPTIONS_MAX);
			exit(STATUS_USAGE);
		}
		o->capabilities[o->nr_capabilities++] = optarg;
		break;
	case OPT_VGPU:
		o->r.vgpu = true;
		break;
	default:
		read_kind(o);
	}
}

static void read_option(struct place_options *o, int option)
{
	switch (option) {
	case OPT_NODES:
		o->nodes = optarg;
		break;
	case OPT_TASKS:
		o->tasks = optarg;
		break;
	case OPT_POLICY:
		read_policy(o);
		break;
	case OPT_WEIGHTS:
		o->weights = optarg;
		break;
	case OPT_SEED:
		o->seed = (uint64_t)read_number(option, 0, INT64_MAX);
		break;
	case OPT_SEEDS:
		o->seeds = (unsigned int)read_number(option, 1, 1000);
		break;
	case OPT_DEMAND:
		read_demand(o);
		break;
	case OPT_CHURN:
		o->churn = (unsigned int)read_number(option, 1, REPLAY_MAX_DEMAND);
		break;
	case OPT_TIME:
		o->by_time = true;
		break;
	case OPT_PART:
		o->part = (unsigned int)read_number(option, 1, PLACE_MAX_NODES);
		break;
	case OPT_STATE:
		o->state = optarg;
		break;
	case OPT_OUTPUT:
		o->output = optarg;
		break;
	case OPT_GENERATIONS:
		o->generations = (unsigned int)read_number(option, 1, 100000);
		break;
	case OPT_POPULATION:
		o->population = (unsigned int)read_number(option, 4, TRAIN_MAX_POPULATION);
		break;
	case OPT_REPLAYS:
		o->replays = (unsigned int)read_number(option, 1, 1000);
		break;
	case OPT_WEIGHT:
		o->churn_weight = (unsigned int)read_number(option, 0, 1000);
		break;
	case OPT_THREADS:
		o->threads = (unsigned int)read_number(option, 1, 64);
		break;
	default:
		read_request(o, option);
	}
}

/* Run a command whose options are read; @given: mask of the options. */
static int run(const struct command *command, struct place_options *o, uint32_t given, int words)
{
	char text[256];

	if (wrong_options(text, sizeof(text), "mgpu-place", &command->o, options, OPT_NODES,
			  given)) {
		complain("%s", text);
		return STATUS_USAGE;
	}
	if (words != command->words) {
		if (command->words)
			complain("%s takes one file, not %d", command->o.command, words);
		else
			complain("%s takes options only, not '%s'", command->o.command, o->word);
		return STATUS_USAGE;
	}
	if (o->json && command->run == command_train) {
		complain("--json is not for train; see 'mgpu-place --help'");
		return STATUS_USAGE;
	}
	return command->run(o);
}

int main(int argc, char **argv)
{
	const char *words[COMMANDS + 3] = { NULL };
	struct place_options o = {
		.seed = 1, .seeds = 1, .points = { 95, 100, 105, 130 }, .nr_points = 4,
		.generations = 120, .population = 24, .replays = 4, .churn_weight = 15,
		.threads = 1,
		.r = { .nr_gpus = 1, .gpu_milli = PLACE_WHOLE, .models = PLACE_ANY_MODEL },
	};
	uint32_t given = 0;
	char text[256];
	int c;

	for (size_t i = 0; i < COMMANDS; i++)
		words[i] = commands[i].o.command;
	words[COMMANDS] = "help";
	words[COMMANDS + 1] = "version";
	/* print our own error */
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":jhV", options, NULL)) != -1) {
		if (c >= OPT_NODES && c < OPT_END) {
			given |= BIT(c);
			read_option(&o, c);
			continue;
		}
		switch (c) {
		case 'j':
			o.json = true;
			break;
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		case 'V':
			puts("mgpu-place " MGPU_VERSION);
			return 0;
		default:
			getopt_problem(text, sizeof(text), "mgpu-place", c, argv, options, NULL);
			complain("%s", text);
			return STATUS_USAGE;
		}
	}
	if (optind == argc) {
		complain("no command; the commands are replay, place, train, inspect and policies (see 'mgpu-place --help')");
		return STATUS_USAGE;
	}
	o.word = argv[optind + 1];
	if (!strcmp(argv[optind], "help")) {
		fputs(usage_text, stdout);
		return 0;
	}
	if (!strcmp(argv[optind], "version")) {
		puts("mgpu-place " MGPU_VERSION);
		return 0;
	}
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(argv[optind], commands[i].o.command))
			return run(&commands[i], &o, given, argc - optind - 1);
	unknown_command(text, sizeof(text), "mgpu-place", argv[optind], words);
	complain("%s", text);
	return STATUS_USAGE;
}
