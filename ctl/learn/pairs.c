// SPDX-License-Identifier: GPL-2.0-only
/* Speed of two jobs that share a GPU. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pairs.h"

const char *const pairs_predictor_name[PAIRS_PREDICTORS] = {
	"constant", "additive", "nearest", "ridge", "trees", "blend",
};

bool pairs_name(char name[PAIRS_NAME], const char *text)
{
	if (!text[0] || strlen(text) >= PAIRS_NAME)
		return false;
	strcpy(name, text);
	for (; *name; name++)
		if ((unsigned char)*name <= ' ' || *name == 0x7f)
			*name = '_';
	return true;
}

bool pairs_same(const struct pairs_job *a, const struct pairs_job *b)
{
	return !strcmp(a->model, b->model) && !strcmp(a->dataset, b->dataset) &&
		a->gpus == b->gpus && a->batch == b->batch && a->amp == b->amp;
}

void pairs_table_free(struct pairs_table *t)
{
	free(t->job);
	free(t->row);
	*t = (struct pairs_table){ 0 };
}

size_t pairs_find(const struct learn_pairs *p, const struct pairs_job *job)
{
	size_t i;

	for (i = 0; i < p->jobs && !pairs_same(&p->job[i], job); i++)
		;
	return i;
}

/* ---- words ---- */

/* Not those of ctype.h, which depend on the locale. */
static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_letter(char c)
{
	return is_upper(c) || (c >= 'a' && c <= 'z');
}

/*
 * Copy the next word of a name in lower case. Words end at what is no letter, and before a
 * capital that follows a small letter: "MobileNetV3" is mobile, net, v. Return what follows the
 * word, NULL if there is none.
 */
static const char *next_word(const char *at, char word[PAIRS_WORD])
{
	size_t n = 0;
	char last = 'A';

	while (*at && !is_letter(*at))
		at++;
	if (!*at)
		return NULL;
	for (; is_letter(*at) && (is_upper(last) || !is_upper(*at)); last = *at++)
		if (n < PAIRS_WORD - 1)
			word[n++] = is_upper(*at) ? (char)(*at - 'A' + 'a') : *at;
	word[n] = '\0';
	return at;
}

static size_t find_word(const struct learn_pairs *p, const char *word)
{
	size_t i;

	for (i = 0; i < p->words && strcmp(p->word[i], word); i++)
		;
	return i;
}

static void learn_name(struct learn_pairs *p, const char *name)
{
	char word[PAIRS_WORD];

	while ((name = next_word(name, word)) && p->words < PAIRS_WORDS_MAX)
		if (find_word(p, word) == p->words)
			strcpy(p->word[p->words++], word);
}

void pairs_learn_words(struct learn_pairs *p, const struct pairs_job *job)
{
	learn_name(p, job->model);
	learn_name(p, job->dataset);
}

static void mark_name(const struct learn_pairs *p, const char *name, double *x)
{
	char word[PAIRS_WORD];

	while ((name = next_word(name, word))) {
		size_t i = find_word(p, word);

		if (i < p->words)
			x[i] = 1;
	}
}

/* Words of the names of common models and data sets, and what they are about. */
static const struct {
	const char *word;
	int about;
} lexicon[] = {
	{ "cifar", PAIRS_Q_IMAGE }, { "image", PAIRS_Q_IMAGE }, { "mnist", PAIRS_Q_IMAGE },
	{ "coco", PAIRS_Q_IMAGE }, { "vgg", PAIRS_Q_IMAGE }, { "res", PAIRS_Q_IMAGE },
	{ "mobile", PAIRS_Q_IMAGE }, { "efficient", PAIRS_Q_IMAGE },
	{ "dense", PAIRS_Q_IMAGE }, { "inception", PAIRS_Q_IMAGE }, { "unet", PAIRS_Q_IMAGE },
	{ "yolo", PAIRS_Q_IMAGE }, { "alex", PAIRS_Q_IMAGE }, { "shuffle", PAIRS_Q_IMAGE },
	{ "lstm", PAIRS_Q_TEXT }, { "gru", PAIRS_Q_TEXT }, { "wikitext", PAIRS_Q_TEXT },
	{ "bert", PAIRS_Q_TEXT }, { "gpt", PAIRS_Q_TEXT }, { "transformer", PAIRS_Q_TEXT },
	{ "squad", PAIRS_Q_TEXT }, { "imdb", PAIRS_Q_TEXT },
	{ "ppo", PAIRS_Q_CONTROL }, { "td", PAIRS_Q_CONTROL }, { "dqn", PAIRS_Q_CONTROL },
	{ "sac", PAIRS_Q_CONTROL }, { "ddpg", PAIRS_Q_CONTROL }, { "lander", PAIRS_Q_CONTROL },
	{ "walker", PAIRS_Q_CONTROL }, { "pole", PAIRS_Q_CONTROL }, { "atari", PAIRS_Q_CONTROL },
};

static void mark_about(const char *name, double *q)
{
	char word[PAIRS_WORD];

	while ((name = next_word(name, word)))
		for (size_t i = 0; i < sizeof(lexicon) / sizeof(lexicon[0]); i++)
			if (!strcmp(lexicon[i].word, word))
				q[lexicon[i].about] = 1;
}

/* ---- features ---- */

/* The utilisation of a job: as given, or else as measured if the job was seen, or else NAN. */
static double use_of(const struct learn_pairs *p, size_t at, double own, bool memory)
{
	if (isfinite(own) || at == p->jobs)
		return own;
	return memory ? p->job[at].memory_use : p->job[at].gpu_use;
}

static void quantities(const struct learn_pairs *p, const struct pairs_job *job, size_t at,
		       double *q)
{
	memset(q, 0, PAIRS_QUANTITIES * sizeof(*q));
	q[PAIRS_Q_BATCH] = log2(job->batch) - 6;
	q[PAIRS_Q_AMP] = job->amp;
	q[PAIRS_Q_GPUS] = log2(job->gpus);
	if (p->use) {
		q[PAIRS_Q_GPU_USE] = use_of(p, at, job->gpu_use, false);
		q[PAIRS_Q_MEMORY_USE] = use_of(p, at, job->memory_use, true);
	}
	mark_about(job->model, q);
	mark_about(job->dataset, q);
}

size_t pairs_additive_columns(const struct learn_pairs *p)
{
	return 1 + 2 * p->jobs;
}

void pairs_additive_row(const struct learn_pairs *p, size_t job, size_t other, double *x)
{
	memset(x, 0, pairs_additive_columns(p) * sizeof(*x));
	x[0] = 1;
	if (job < p->jobs)
		x[1 + job] = 1;
	if (other < p->jobs)
		x[1 + p->jobs + other] = 1;
}

size_t pairs_tree_columns(const struct learn_pairs *p)
{
	return 1 + 2 * p->words + 2 * PAIRS_QUANTITIES + PAIRS_SUMS;
}

size_t pairs_ridge_columns(const struct learn_pairs *p)
{
	return pairs_tree_columns(p) + PAIRS_QUANTITIES * PAIRS_QUANTITIES + 2 * p->jobs;
}

void pairs_ridge_row(const struct learn_pairs *p, const struct pairs_job *job,
		     const struct pairs_job *other, size_t at, size_t other_at, double *x)
{
	static const double step[PAIRS_SUMS] = { 0, 0.4, 0.7, 0, 0.3, 0.6 };
	double *q = x + 1 + 2 * p->words, *r = q + PAIRS_QUANTITIES;

	memset(x, 0, pairs_ridge_columns(p) * sizeof(*x));
	x[0] = 1;
	mark_name(p, job->model, x + 1);
	mark_name(p, job->dataset, x + 1);
	mark_name(p, other->model, x + 1 + p->words);
	mark_name(p, other->dataset, x + 1 + p->words);
	quantities(p, job, at, q);
	quantities(p, other, other_at, r);
	x = r + PAIRS_QUANTITIES;
	for (int i = 0; i < PAIRS_SUMS; i++) {
		int k = i < PAIRS_SUMS / 2 ? PAIRS_Q_GPU_USE : PAIRS_Q_MEMORY_USE;

		*x++ = fmax(q[k] + r[k] - step[i], 0);
	}
	for (int i = 0; i < PAIRS_QUANTITIES; i++)
		for (int k = 0; k < PAIRS_QUANTITIES; k++)
			*x++ = q[i] * r[k];
	if (at < p->jobs)
		x[at] = 1;
	if (other_at < p->jobs)
		x[p->jobs + other_at] = 1;
}

/* ---- neighbours ---- */

/* Part of the words of two jobs that they do not share. */
static double words_apart(const struct learn_pairs *p, const struct pairs_job *a,
			  const struct pairs_job *b)
{
	double x[PAIRS_WORDS_MAX] = { 0 }, y[PAIRS_WORDS_MAX] = { 0 }, both = 0, any = 0;

	mark_name(p, a->model, x);
	mark_name(p, a->dataset, x);
	mark_name(p, b->model, y);
	mark_name(p, b->dataset, y);
	for (size_t i = 0; i < p->words; i++) {
		both += x[i] * y[i];
		any += fmax(x[i], y[i]);
	}
	return any > 0 ? 1 - both / any : 1;
}

static double distance(const struct learn_pairs *p, const struct pairs_job *a, size_t at,
		       size_t known)
{
	static const double scale[PAIRS_QUANTITIES] = {
		[PAIRS_Q_BATCH] = 0.5, [PAIRS_Q_AMP] = 0.5, [PAIRS_Q_GPUS] = 0.5,
		[PAIRS_Q_GPU_USE] = 4, [PAIRS_Q_MEMORY_USE] = 4, [PAIRS_Q_IMAGE] = 0.5,
		[PAIRS_Q_TEXT] = 0.5, [PAIRS_Q_CONTROL] = 0.5,
	};
	double q[PAIRS_QUANTITIES], r[PAIRS_QUANTITIES], sum;

	if (at == known)
		return 0;
	quantities(p, a, at, q);
	quantities(p, &p->job[known], known, r);
	sum = words_apart(p, a, &p->job[known]);
	/* utilisation that is not known does not count */
	for (int i = 0; i < PAIRS_QUANTITIES; i++)
		if (!isnan(q[i] - r[i]))
			sum += scale[i] * fabs(q[i] - r[i]);
	return sum;
}

double pairs_nearest(const struct learn_pairs *p, const struct pairs_job *job,
		     const struct pairs_job *other, double reach)
{
	double mine[PAIRS_JOBS_MAX], theirs[PAIRS_JOBS_MAX], least = INFINITY;
	size_t at = pairs_find(p, job), other_at = pairs_find(p, other);
	double sum = 0, weights = 0;

	for (size_t i = 0; i < p->jobs; i++) {
		mine[i] = distance(p, job, at, i);
		theirs[i] = distance(p, other, other_at, i);
	}
	for (size_t i = 0; i < p->nr_seen; i++)
		least = fmin(least, mine[p->seen[i].job] + theirs[p->seen[i].other]);
	for (size_t i = 0; i < p->nr_seen; i++) {
		const struct pairs_seen *s = &p->seen[i];
		double weight = exp((least - mine[s->job] - theirs[s->other]) / reach);

		sum += weight * s->speed;
		weights += weight;
	}
	return weights > 0 ? sum / weights : p->constant;
}

/* The class is that of the most similar jobs, however far the reach for speeds is. */
#define CLASS_REACH	0.2

/* NAN if the utilisation is not known. */
static double bound_of(double gpu_use, double memory_use)
{
	if (!isfinite(gpu_use) || !isfinite(memory_use))
		return NAN;
	return gpu_use > 0 ? fmin(memory_use / gpu_use, 1) : 0;
}

double learn_pairs_bound(const struct learn_pairs *p, const struct pairs_job *job)
{
	size_t at = pairs_find(p, job);
	double bound = bound_of(use_of(p, at, job->gpu_use, false),
				use_of(p, at, job->memory_use, true));
	double apart[PAIRS_JOBS_MAX], least = INFINITY, sum = 0, weights = 0;

	if (!isnan(bound))
		return bound;
	for (size_t i = 0; i < p->jobs; i++) {
		apart[i] = distance(p, job, at, i);
		least = fmin(least, apart[i]);
	}
	for (size_t i = 0; i < p->jobs; i++) {
		double weight = exp((least - apart[i]) / CLASS_REACH);

		bound = bound_of(p->job[i].gpu_use, p->job[i].memory_use);
		if (isnan(bound))
			continue;
		sum += weight * bound;
		weights += weight;
	}
	return weights > 0 ? sum / weights : NAN;
}

/* ---- predictions ---- */

enum pairs_novelty pairs_novelty(const struct learn_pairs *p, size_t job, size_t other)
{
	if (job < p->jobs)
		return other < p->jobs ? PAIRS_SEEN : PAIRS_NEW_OTHER;
	return other < p->jobs ? PAIRS_NEW_JOB : PAIRS_NEW_BOTH;
}

static double dot(const double *w, const double *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += w[i] * x[i];
	return sum;
}

#define COLUMNS_MAX	(1 + 2 * PAIRS_WORDS_MAX + 2 * PAIRS_QUANTITIES + PAIRS_SUMS + \
			 PAIRS_QUANTITIES * PAIRS_QUANTITIES + 2 * PAIRS_JOBS_MAX)

static double predict_one(const struct learn_pairs *p, const struct pairs_job *job,
			  const struct pairs_job *other, enum pairs_predictor by)
{
	size_t at = pairs_find(p, job), other_at = pairs_find(p, other);
	double x[COLUMNS_MAX];
	float few[COLUMNS_MAX];

	switch (by) {
	case PAIRS_ADDITIVE:
		pairs_additive_row(p, at, other_at, x);
		return dot(p->additive, x, pairs_additive_columns(p));
	case PAIRS_NEAREST:
		return pairs_nearest(p, job, other, p->reach);
	case PAIRS_RIDGE:
		pairs_ridge_row(p, job, other, at, other_at, x);
		return dot(p->ridge, x, pairs_ridge_columns(p));
	case PAIRS_TREES:
		pairs_ridge_row(p, job, other, at, other_at, x);
		for (size_t i = 0; i < pairs_tree_columns(p); i++)
			few[i] = (float)x[i];
		return (double)forest_value(&p->forest, few);
	default:
		return p->constant;
	}
}

static bool lacks_use(const struct learn_pairs *p, const struct pairs_job *job)
{
	size_t at = pairs_find(p, job);

	return p->use && !(isfinite(use_of(p, at, job->gpu_use, false)) &&
			   isfinite(use_of(p, at, job->memory_use, true)));
}

/* Speed of a logarithm, in the range of speeds whatever it is. */
static double speed_of(double log_speed)
{
	return fmin(fmax(exp(log_speed), PAIRS_SPEED_MIN), PAIRS_SPEED_MAX);
}

int learn_pairs_predict(const struct learn_pairs *p, const struct pairs_job *job,
			const struct pairs_job *other, enum pairs_predictor by,
			struct pairs_guess *g)
{
	double speed = 0;

	if (lacks_use(p, job) || lacks_use(p, other))
		return -ENODATA;
	g->novelty = pairs_novelty(p, pairs_find(p, job), pairs_find(p, other));
	if (by == PAIRS_BLEND) {
		for (enum pairs_predictor i = 0; i < PAIRS_BLEND; i++)
			if (p->blend[g->novelty][i] > 0)
				speed += p->blend[g->novelty][i] * predict_one(p, job, other, i);
	} else {
		speed = predict_one(p, job, other, by);
	}
	g->speed = speed_of(speed);
	g->low = speed_of(speed - p->off[g->novelty][by]);
	g->high = speed_of(speed + p->off[g->novelty][by]);
	return 0;
}

/* ---- payload ---- */

static void write_numbers(FILE *out, const char *word, const double *value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s %.17g\n", word, value[i]);
}

static void write_use(FILE *out, double use)
{
	if (isfinite(use))
		fprintf(out, " %.9g", use);
	else
		fputs(" ?", out);
}

void learn_pairs_write(const struct learn_pairs *p, FILE *out)
{
	fprintf(out, "pairs 1 %d %zu %zu %zu\n", p->use, p->words, p->jobs, p->nr_seen);
	for (size_t i = 0; i < p->words; i++)
		fprintf(out, "word %s\n", p->word[i]);
	for (size_t i = 0; i < p->jobs; i++) {
		const struct pairs_job *j = &p->job[i];

		fprintf(out, "job %s %s %.17g %.17g %d", j->model, j->dataset, j->gpus, j->batch,
			j->amp);
		write_use(out, j->gpu_use);
		write_use(out, j->memory_use);
		putc('\n', out);
	}
	write_numbers(out, "constant", &p->constant, 1);
	write_numbers(out, "additive", p->additive, pairs_additive_columns(p));
	write_numbers(out, "ridge", p->ridge, pairs_ridge_columns(p));
	write_numbers(out, "reach", &p->reach, 1);
	for (size_t i = 0; i < p->nr_seen; i++)
		fprintf(out, "seen %zu %zu %.9g\n", p->seen[i].job, p->seen[i].other,
			p->seen[i].speed);
	forest_write(&p->forest, out);
	for (int i = 0; i < PAIRS_NOVELTIES; i++) {
		write_numbers(out, "blend", p->blend[i], PAIRS_BLEND);
		write_numbers(out, "off", p->off[i], PAIRS_PREDICTORS);
	}
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 2; k++)
			fprintf(out, "slow %.17g %.17g\n", p->slow[i][k], p->weight[i][k]);
}

static int read_numbers(struct lines *l, const char *word, double least, double most,
			double *value, size_t n)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++) {
		ret = lines_next(l, word);
		if (!ret)
			ret = lines_number(l, word, least, most, &value[i]);
		if (!ret)
			ret = lines_done(l);
	}
	return ret;
}

static int read_name(struct lines *l, char name[PAIRS_NAME])
{
	const char *word = lines_word(l, "name");

	if (!word)
		return -EINVAL;
	if (strlen(word) >= PAIRS_NAME)
		return lines_refuse(l, "the name \"%.60s\" is too long; train again", word);
	strcpy(name, word);
	return 0;
}

static int read_use(struct lines *l, double *use)
{
	if (l->rest && *l->rest == '?') {
		*use = NAN;
		return lines_word(l, "utilisation") ? 0 : -EINVAL;
	}
	return lines_number(l, "utilisation", 0, 1, use);
}

static int read_job(struct learn_pairs *p, struct lines *l, size_t i)
{
	struct pairs_job *j = &p->job[i];
	size_t amp;
	int ret = lines_next(l, "job");

	if (!ret)
		ret = read_name(l, j->model);
	if (!ret)
		ret = read_name(l, j->dataset);
	if (!ret)
		ret = lines_number(l, "GPUs", 1, PAIRS_NUMBER_MAX, &j->gpus);
	if (!ret)
		ret = lines_number(l, "batch", 1, PAIRS_NUMBER_MAX, &j->batch);
	if (!ret)
		ret = lines_whole(l, "precision", 0, 1, &amp);
	if (!ret)
		ret = read_use(l, &j->gpu_use);
	if (!ret)
		ret = read_use(l, &j->memory_use);
	if (!ret)
		ret = lines_done(l);
	if (ret)
		return ret;
	j->amp = amp;
	if (p->use && !(isfinite(j->gpu_use) && isfinite(j->memory_use)))
		return lines_refuse(l, "a job without utilisation; train again");
	for (size_t k = 0; k < i; k++)
		if (pairs_same(&p->job[k], j))
			return lines_refuse(l, "duplicate job; train again");
	return 0;
}

static int read_word(struct learn_pairs *p, struct lines *l, size_t i)
{
	const char *word;

	if (lines_next(l, "word"))
		return -EINVAL;
	word = lines_word(l, "word");
	if (!word)
		return -EINVAL;
	if (strlen(word) >= PAIRS_WORD)
		return lines_refuse(l, "the word \"%.60s\" is too long; train again", word);
	strcpy(p->word[i], word);
	return lines_done(l);
}

static int read_seen(struct learn_pairs *p, struct lines *l, struct pairs_seen *s)
{
	int ret = lines_next(l, "seen");

	if (!ret)
		ret = lines_whole(l, "job", 0, p->jobs - 1, &s->job);
	if (!ret)
		ret = lines_whole(l, "job", 0, p->jobs - 1, &s->other);
	if (!ret)
		ret = lines_number(l, "speed", log(PAIRS_SPEED_MIN) - 1, log(PAIRS_SPEED_MAX) + 1,
				   &s->speed);
	return ret ? ret : lines_done(l);
}

/* Read the first line, and make room. */
static int read_sizes(struct learn_pairs *p, struct lines *l)
{
	size_t version, use;
	int ret = lines_next(l, "pairs");

	if (!ret)
		ret = lines_whole(l, "version", 1, 1, &version);
	if (!ret)
		ret = lines_whole(l, "use of utilisation", 0, 1, &use);
	if (!ret)
		ret = lines_whole(l, "number of words", 0, PAIRS_WORDS_MAX, &p->words);
	if (!ret)
		ret = lines_whole(l, "number of jobs", 1, PAIRS_JOBS_MAX, &p->jobs);
	if (!ret)
		ret = lines_whole(l, "number of observations", 0, 2 * PAIRS_ROWS_MAX, &p->nr_seen);
	if (!ret)
		ret = lines_done(l);
	if (ret)
		return ret;
	p->use = use;
	p->job = calloc(p->jobs, sizeof(*p->job));
	p->additive = calloc(pairs_additive_columns(p), sizeof(*p->additive));
	p->ridge = calloc(pairs_ridge_columns(p), sizeof(*p->ridge));
	p->seen = calloc(p->nr_seen + 1, sizeof(*p->seen));
	if (p->job && p->additive && p->ridge && p->seen)
		return 0;
	lines_refuse(l, "out of memory");
	return -ENOMEM;
}

/* Weights of a predictor may be any that a speed can come of. */
#define WEIGHT_MAX	1e6

static int read_tail(struct learn_pairs *p, struct lines *l)
{
	int ret = forest_read(&p->forest, l, (unsigned int)pairs_tree_columns(p));

	for (int i = 0; !ret && i < PAIRS_NOVELTIES; i++) {
		ret = read_numbers(l, "blend", 0, 1, p->blend[i], PAIRS_BLEND);
		if (!ret)
			ret = read_numbers(l, "off", 0, 10, p->off[i], PAIRS_PREDICTORS);
	}
	for (int i = 0; !ret && i < 4; i++) {
		ret = lines_next(l, "slow");
		if (!ret)
			ret = lines_number(l, "slowdown", -0.2, 100, &p->slow[i / 2][i % 2]);
		if (!ret)
			ret = lines_number(l, "weight", 0, 1000, &p->weight[i / 2][i % 2]);
		if (!ret)
			ret = lines_done(l);
	}
	return ret ? ret : lines_end(l);
}

static int read_all(struct learn_pairs *p, struct lines *l)
{
	int ret = read_sizes(p, l);

	for (size_t i = 0; !ret && i < p->words; i++)
		ret = read_word(p, l, i);
	for (size_t i = 0; !ret && i < p->jobs; i++)
		ret = read_job(p, l, i);
	if (!ret)
		ret = read_numbers(l, "constant", -10, 10, &p->constant, 1);
	if (!ret)
		ret = read_numbers(l, "additive", -WEIGHT_MAX, WEIGHT_MAX, p->additive,
				   pairs_additive_columns(p));
	if (!ret)
		ret = read_numbers(l, "ridge", -WEIGHT_MAX, WEIGHT_MAX, p->ridge,
				   pairs_ridge_columns(p));
	if (!ret)
		ret = read_numbers(l, "reach", 0.001, 1000, &p->reach, 1);
	for (size_t i = 0; !ret && i < p->nr_seen; i++)
		ret = read_seen(p, l, &p->seen[i]);
	return ret ? ret : read_tail(p, l);
}

int learn_pairs_load(struct learn_pairs **p, const char *payload, size_t size, char *why,
		     size_t len)
{
	struct lines l;
	int ret;

	lines_init(&l, payload, size, why, len);
	*p = calloc(1, sizeof(**p));
	if (!*p) {
		lines_refuse(&l, "out of memory");
		return -ENOMEM;
	}
	ret = read_all(*p, &l);
	if (ret) {
		learn_pairs_free(*p);
		*p = NULL;
	}
	return ret;
}

void learn_pairs_free(struct learn_pairs *p)
{
	if (!p)
		return;
	free(p->job);
	free(p->additive);
	free(p->ridge);
	free(p->seen);
	forest_free(&p->forest);
	free(p);
}
