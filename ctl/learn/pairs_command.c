// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-learn pairs train, evaluate and predict. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checksum.h"
#include "cmdline.h"
#include "command.h"
#include "complain.h"
#include "file.h"
#include "files.h"
#include "output.h"
#include "pairs_command.h"
#include "pairs_csv.h"
#include "pairs_fit.h"

#define PROGRAM		"mgpu-learn pairs"
#define MODEL		"pairs"

static const char usage_text[] =
	"mgpu-learn pairs - speeds of jobs that share a GPU, learned from measured pairs\n"
	"\n"
	"Usage: mgpu-learn pairs train --data FILE --output FILE [--use USE] [--seed N]\n"
	"       mgpu-learn pairs evaluate --data FILE [--use USE] [--hold WHAT] [--seed N] [-j]\n"
	"       mgpu-learn pairs predict --weights FILE --job JOB --job JOB [-j]\n"
	"\n"
	"      --data FILE     measured pairs, CSV\n"
	"      --output FILE   where the weights go\n"
	"      --weights FILE  weights that train wrote\n"
	"      --use USE       utilisation of a job that is alone as a feature: none (none),\n"
	"                      alone (columns gpu_alone1, gmem_alone1, ...), or pairs: estimated\n"
	"                      from that of the pairs (columns gpu_util, gmem_util)\n"
	"      --hold WHAT     what is held out: models of jobs, or parts of the pairs (models)\n"
	"      --seed N        of what is drawn (1)\n"
	"      --job JOB       key=value,...: model, dataset, batch, amp (0), gpus (1), and\n"
	"                      gpu_alone, gmem_alone in per cent\n"
	"  -j, --json          print JSON\n"
	"  -h, --help          print this\n";

enum {
	OPT_DATA = 256, OPT_OUTPUT, OPT_WEIGHTS, OPT_USE, OPT_HOLD, OPT_SEED, OPT_JOB, OPT_END,
};

static const struct option options[] = {
	{ "data", required_argument, NULL, OPT_DATA },
	{ "output", required_argument, NULL, OPT_OUTPUT },
	{ "weights", required_argument, NULL, OPT_WEIGHTS },
	{ "use", required_argument, NULL, OPT_USE },
	{ "hold", required_argument, NULL, OPT_HOLD },
	{ "seed", required_argument, NULL, OPT_SEED },
	{ "job", required_argument, NULL, OPT_JOB },
	{ "json", no_argument, NULL, 'j' },
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

enum use { USE_NONE, USE_ALONE, USE_PAIRS };

static const char *const use_name[] = { "none", "alone", "pairs", NULL };

/**
 * struct args - the options
 * @models: hold out models
 * @job: jobs of predict
 * @jobs: number of these
 */
struct args {
	const char *data;
	const char *output;
	const char *weights;
	enum use use;
	bool models;
	uint64_t seed;
	struct pairs_job job[2];
	size_t jobs;
	bool json;
};

/* ---- input ---- */

/* A table, and the sum of its bytes for the file of weights. */
struct input {
	struct pairs_table *t;
	uint64_t sum;
};

static int table_from(void *data, FILE *f, const char *file, char *why, size_t size)
{
	struct input *in = data;
	int ret = pairs_read(in->t, f, file, why, size);
	char block[4096];
	size_t n;

	rewind(f);
	while (!ret && (n = fread(block, 1, sizeof(block), f)) > 0)
		in->sum = checksum_add(in->sum, block, n);
	return ret;
}

/* Read the table, with its digest for the file of weights. */
static int read_table(const struct args *a, struct pairs_table *t, char digest[20])
{
	struct input in = { t, CHECKSUM_START };
	int ret;

	*t = (struct pairs_table){ 0 };
	if (read_file(a->data, &in, table_from))
		return -1;
	snprintf(digest, 20, "%016" PRIx64, in.sum);
	/* also without its use as a feature: classes come from it */
	ret = a->use == USE_ALONE ? 0 : pairs_estimate_use(t);
	if (ret == -ENODATA && a->use == USE_PAIRS) {
		complain("%s: --use pairs needs gpu_util and gmem_util in each line", a->data);
		return -1;
	}
	if (ret && ret != -ENODATA) {
		complain("%s", strerror(-ret));
		return -1;
	}
	return 0;
}

static struct pairs_options options_of(const struct args *a)
{
	struct pairs_options o = PAIRS_DEFAULT;

	o.seed = a->seed;
	o.use = a->use != USE_NONE;
	return o;
}

/* ---- evaluate ---- */

static json_object *score_json(int by, const struct pairs_score *s)
{
	json_object *one = json_object_new_object();

	json_object_object_add(one, "predictor", json_object_new_string(pairs_predictor_name[by]));
	json_object_object_add(one, "speeds", json_object_new_int64((int64_t)s->n));
	json_object_object_add(one, "median_err", rounded(s->median_err, 4));
	json_object_object_add(one, "p90_err", rounded(s->p90_err, 4));
	json_object_object_add(one, "spearman", rounded(s->spearman, 3));
	json_object_object_add(one, "coverage_90", rounded(s->coverage_90, 3));
	json_object_object_add(one, "width", rounded(s->width, 3));
	return one;
}

static int print_scores(const struct args *a, const struct pairs_table *t,
			const struct pairs_score *score)
{
	json_object *json, *list;

	if (a->json) {
		json = json_object_new_object();
		list = json_object_new_array();
		json_object_object_add(json, "held_out",
				       json_object_new_string(a->models ? "models" : "parts"));
		json_object_object_add(json, "utilisation",
				       json_object_new_string(use_name[a->use]));
		json_object_object_add(json, "rows", json_object_new_int64((int64_t)t->rows));
		json_object_object_add(json, "jobs", json_object_new_int64((int64_t)t->jobs));
		json_object_object_add(json, "seed", json_object_new_int64((int64_t)a->seed));
		for (int i = 0; i < PAIRS_PREDICTORS; i++)
			json_object_array_add(list, score_json(i, &score[i]));
		json_object_object_add(json, "pairs", list);
		return print_json(json);
	}
	printf("%-10s %7s %10s %10s %9s %12s %7s\n", "predictor", "speeds", "median err",
	       "p90 err", "spearman", "coverage 90", "width");
	for (int i = 0; i < PAIRS_PREDICTORS; i++) {
		const struct pairs_score *s = &score[i];

		printf("%-10s %7zu %8.2f %% %8.2f %% ", pairs_predictor_name[i], s->n,
		       s->median_err * 100, s->p90_err * 100);
		if (isnan(s->spearman))
			printf("%9s", "-");
		else
			printf("%9.3f", s->spearman);
		printf(" %10.1f %% %7.3f\n", s->coverage_90 * 100, s->width);
	}
	return end_output();
}

static int evaluate(const struct args *a)
{
	const struct pairs_options o = options_of(a);
	struct pairs_score score[PAIRS_PREDICTORS];
	struct pairs_table t;
	char why[512], digest[20];
	int ret = read_table(a, &t, digest) ? 1 : 0;

	if (!ret && pairs_evaluate(score, &t, &o, a->models, why, sizeof(why))) {
		complain("%s: %s", a->data, why);
		ret = 1;
	}
	if (!ret)
		ret = print_scores(a, &t, score);
	pairs_table_free(&t);
	return ret;
}

/* ---- train ---- */

static int write_model(const struct args *a, const struct learn_pairs *p,
		       const struct pairs_score *s, const char *digest)
{
	struct learn_file file = { .model = MODEL };
	FILE *f = open_memstream(&file.payload, &file.size);
	int ret;

	if (!f) {
		complain("%s", strerror(ENOMEM));
		return -1;
	}
	learn_pairs_write(p, f);
	ret = ferror(f);
	if (fclose(f) || ret) {
		complain("%s", strerror(ENOMEM));
		free(file.payload);
		return -1;
	}
	snprintf(file.data, sizeof(file.data), "%s", digest);
	snprintf(file.evaluation, sizeof(file.evaluation),
		 "median error %.2f %% of models that were held out, rank correlation %.3f, %.1f %% in the interval for 90 %%",
		 s->median_err * 100, s->spearman, s->coverage_90 * 100);
	ret = write_weights(&file, a->output);
	free(file.payload);
	return ret;
}

static int train(const struct args *a)
{
	const struct pairs_options o = options_of(a);
	struct pairs_score score[PAIRS_PREDICTORS];
	struct learn_pairs *p = NULL;
	struct pairs_table t;
	char why[512], digest[20];
	int ret = read_table(a, &t, digest);

	if (!ret) {
		ret = pairs_evaluate(score, &t, &o, true, why, sizeof(why));
		if (!ret)
			ret = pairs_train(&p, &t, &o, why, sizeof(why));
		if (ret)
			complain("%s: %s", a->data, why);
	}
	if (!ret)
		ret = write_model(a, p, &score[PAIRS_BLEND], digest);
	learn_pairs_free(p);
	pairs_table_free(&t);
	if (ret)
		return 1;
	printf("models that were held out: median error %.2f %%, %.1f %% in the interval for 90 %%\n",
	       score[PAIRS_BLEND].median_err * 100, score[PAIRS_BLEND].coverage_90 * 100);
	return end_output();
}

/* ---- predict ---- */

static int load(const char *path, struct learn_pairs **p)
{
	struct learn_file file;
	char why[512];
	int ret;

	*p = NULL;
	if (read_weights(&file, path))
		return -1;
	if (strcmp(file.model, MODEL)) {
		complain("%s: weights of the model '%s'; 'mgpu-learn pairs train' writes some of '%s'",
			 path, file.model, MODEL);
		ret = -1;
	} else {
		ret = learn_pairs_load(p, file.payload, file.size, why, sizeof(why));
		if (ret)
			complain("%s: %s", path, why);
	}
	learn_file_free(&file);
	return ret;
}

static const char *novelty_name(enum pairs_novelty novelty)
{
	static const char *const name[] = { "none", "other", "job", "both" };

	return name[novelty];
}

static const char *class_name(double bound)
{
	return isnan(bound) ? "unknown" : bound >= PAIRS_BOUND ? "memory" : "compute";
}

static json_object *guess_json(const struct pairs_job *job, const struct pairs_guess *g,
			       double bound)
{
	json_object *one = json_object_new_object();

	json_object_object_add(one, "model", json_object_new_string(job->model));
	json_object_object_add(one, "class", json_object_new_string(class_name(bound)));
	json_object_object_add(one, "bound", rounded(bound, 3));
	json_object_object_add(one, "speed", rounded(g->speed, 4));
	json_object_object_add(one, "low_90", rounded(g->low, 4));
	json_object_object_add(one, "high_90", rounded(g->high, 4));
	json_object_object_add(one, "unseen", json_object_new_string(novelty_name(g->novelty)));
	return one;
}

static int print_guesses(const struct args *a, const struct learn_pairs *p,
			 const struct pairs_guess g[2])
{
	json_object *json, *list;

	if (a->json) {
		json = json_object_new_object();
		list = json_object_new_array();
		for (int i = 0; i < 2; i++)
			json_object_array_add(list, guess_json(&a->job[i], &g[i],
							       learn_pairs_bound(p, &a->job[i])));
		json_object_object_add(json, "jobs", list);
		json_object_object_add(json, "norm_ipc", rounded(g[0].speed + g[1].speed, 4));
		return print_json(json);
	}
	printf("%-20s %-8s %6s %15s %7s\n", "model", "class", "speed", "of nine of ten",
	       "unseen");
	for (int i = 0; i < 2; i++)
		printf("%-20s %-8s %6.3f %7.3f - %5.3f %7s\n", a->job[i].model,
		       class_name(learn_pairs_bound(p, &a->job[i])), g[i].speed, g[i].low,
		       g[i].high, novelty_name(g[i].novelty));
	printf("norm_ipc %.3f\n", g[0].speed + g[1].speed);
	return end_output();
}

static int predict(const struct args *a)
{
	struct pairs_guess g[2];
	struct learn_pairs *p;
	int ret = 0;

	if (a->jobs != 2) {
		complain("predict needs --job twice; see 'mgpu-learn pairs --help'");
		return STATUS_USAGE;
	}
	if (load(a->weights, &p))
		return 1;
	for (int i = 0; !ret && i < 2; i++)
		ret = learn_pairs_predict(p, &a->job[i], &a->job[!i], PAIRS_BLEND, &g[i]);
	if (ret)
		complain("a job that was not seen needs gpu_alone and gmem_alone with these weights; add them to --job, or train with --use none");
	else
		ret = print_guesses(a, p, g);
	learn_pairs_free(p);
	return ret ? 1 : 0;
}

/* ---- the command line ---- */

__attribute__((noreturn))
static void bad_job(const char *pair, const char *why)
{
	complain("--job '%s': %s; a job is model=NAME,dataset=NAME,batch=N, and more as --help says",
		 pair, why);
	exit(STATUS_USAGE);
}

static double job_number(const char *pair, const char *text, double least, double most)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= least && value <= most))
		bad_job(pair, "not a number in its range");
	return value;
}

static void job_name(const char *pair, const char *text, char name[PAIRS_NAME])
{
	if (!pairs_name(name, text))
		bad_job(pair, "a name must have 1 to 47 bytes");
}

/* Set what a pair of key and value says. */
static void set_job(struct pairs_job *j, const char *pair)
{
	const char *value = strchr(pair, '=');
	size_t n = value ? (size_t)(value - pair) : strlen(pair);

#define IS(key) (n == strlen(key) && !strncmp(pair, key, n))
	if (!value)
		bad_job(pair, "no '='");
	value++;
	if (IS("model"))
		job_name(pair, value, j->model);
	else if (IS("dataset"))
		job_name(pair, value, j->dataset);
	else if (IS("batch"))
		j->batch = job_number(pair, value, 1, PAIRS_NUMBER_MAX);
	else if (IS("gpus"))
		j->gpus = job_number(pair, value, 1, PAIRS_NUMBER_MAX);
	else if (IS("amp"))
		j->amp = job_number(pair, value, 0, 1) > 0.5;
	else if (IS("gpu_alone"))
		j->gpu_use = job_number(pair, value, 0, 100) / 100;
	else if (IS("gmem_alone"))
		j->memory_use = job_number(pair, value, 0, 100) / 100;
	else
		bad_job(pair, "unknown key");
#undef IS
}

static void read_job(struct args *a)
{
	struct pairs_job *j = &a->job[a->jobs];

	if (a->jobs == 2) {
		complain("--job: more than two; a pair has two jobs");
		exit(STATUS_USAGE);
	}
	a->jobs++;
	*j = (struct pairs_job){ .gpus = 1, .gpu_use = NAN, .memory_use = NAN };
	for (char *rest = optarg, *pair; (pair = strsep(&rest, ","));)
		set_job(j, pair);
	if (!j->model[0] || !j->dataset[0] || !(j->batch > 0))
		bad_job(optarg, "model, dataset and batch are needed");
}

static void read_seed(struct args *a)
{
	char *end;

	errno = 0;
	a->seed = strtoull(optarg, &end, 10);
	if (errno || end == optarg || *end || *optarg == '-' || a->seed > INT64_MAX) {
		complain("--seed '%s': it must be a whole number from 0 to %" PRId64, optarg,
			 INT64_MAX);
		exit(STATUS_USAGE);
	}
}

static void read_option(struct args *a, int option)
{
	switch (option) {
	case OPT_DATA:
		a->data = optarg;
		break;
	case OPT_OUTPUT:
		a->output = optarg;
		break;
	case OPT_WEIGHTS:
		a->weights = optarg;
		break;
	case OPT_USE:
		for (a->use = USE_NONE; use_name[a->use]; a->use++)
			if (!strcmp(use_name[a->use], optarg))
				return;
		complain("--use '%s': it must be none, alone or pairs", optarg);
		exit(STATUS_USAGE);
	case OPT_HOLD:
		a->models = !strcmp(optarg, "models");
		if (!a->models && strcmp(optarg, "parts")) {
			complain("--hold '%s': it must be models or parts", optarg);
			exit(STATUS_USAGE);
		}
		break;
	case OPT_SEED:
		read_seed(a);
		break;
	default:
		read_job(a);
	}
}

#define BIT(option)	(1u << ((option) - OPT_DATA))

/**
 * struct command - a command
 * @o: its name and options
 * @json: it can print JSON
 * @run: the command; returns the exit status
 */
static const struct command {
	struct command_options o;
	bool json;
	int (*run)(const struct args *a);
} commands[] = {
	{ { "train", BIT(OPT_DATA) | BIT(OPT_OUTPUT) | BIT(OPT_USE) | BIT(OPT_SEED),
	    BIT(OPT_DATA) | BIT(OPT_OUTPUT) }, false, train },
	{ { "evaluate", BIT(OPT_DATA) | BIT(OPT_USE) | BIT(OPT_HOLD) | BIT(OPT_SEED),
	    BIT(OPT_DATA) }, true, evaluate },
	{ { "predict", BIT(OPT_WEIGHTS) | BIT(OPT_JOB), BIT(OPT_WEIGHTS) | BIT(OPT_JOB) }, true,
	  predict },
};

#define COMMANDS	(sizeof(commands) / sizeof(*commands))

static int run(const struct command *c, const struct args *a, unsigned int given)
{
	char text[256];

	if (wrong_options(text, sizeof(text), PROGRAM, &c->o, options, OPT_DATA, given)) {
		complain("%s", text);
		return STATUS_USAGE;
	}
	if (a->json && !c->json) {
		complain("--json is not for %s; see '" PROGRAM " --help'", c->o.command);
		return STATUS_USAGE;
	}
	return c->run(a);
}

static int find_command(int argc, char **argv, const struct args *a, unsigned int given)
{
	const char *words[COMMANDS + 1] = { NULL };
	char text[256];

	if (optind == argc) {
		complain("no command; the commands are train, evaluate and predict (see '" PROGRAM " --help')");
		return STATUS_USAGE;
	}
	for (size_t i = 0; i < COMMANDS; i++)
		words[i] = commands[i].o.command;
	if (optind + 1 < argc && is_word(argv[optind], words)) {
		complain("%s takes options only, not '%s'", argv[optind], argv[optind + 1]);
		return STATUS_USAGE;
	}
	for (size_t i = 0; i < COMMANDS; i++)
		if (!strcmp(argv[optind], commands[i].o.command))
			return run(&commands[i], a, given);
	unknown_command(text, sizeof(text), PROGRAM, argv[optind], words);
	complain("%s", text);
	return STATUS_USAGE;
}

int pairs_command(int argc, char **argv)
{
	struct args a = { .models = true, .seed = 1 };
	unsigned int given = 0;
	char text[256];
	int c;

	/* print our own error, and begin anew after the caller's options */
	opterr = 0;
	optind = 0;
	while ((c = getopt_long(argc, argv, ":jh", options, NULL)) != -1) {
		if (c >= OPT_DATA && c < OPT_END) {
			given |= BIT(c);
			read_option(&a, c);
		} else if (c == 'j') {
			a.json = true;
		} else if (c == 'h') {
			fputs(usage_text, stdout);
			return end_output();
		}
		if (c != '?' && c != ':')
			continue;
		getopt_problem(text, sizeof(text), PROGRAM, c, argv, options, NULL);
		complain("%s", text);
		return STATUS_USAGE;
	}
	return find_command(argc, argv, &a, given);
}
