// SPDX-License-Identifier: GPL-2.0-only
/* A question as a row of numbers. */
#include <string.h>

#include "checksum.h"
#include "feature.h"

/* ---- the description ---- */

/* Not those of ctype.h, which depend on the locale. */
static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_letter(char c)
{
	return lower(c) >= 'a' && lower(c) <= 'z';
}

/* Read a number; return what follows it. */
static const char *number(const char *at, struct feature_words *w)
{
	double value = 0, digit = 1;

	for (; is_digit(*at); at++)
		value = value * 10 + (*at - '0');
	if (*at == '.' && is_digit(at[1]))
		for (at++; is_digit(*at); at++)
			value += (*at - '0') * (digit /= 10);
	value = log1p(value);
	w->numbers++;
	w->magnitude += value;
	w->largest = fmax(w->largest, value);
	return at;
}

static const char *word(const char *at, struct feature_words *w)
{
	uint64_t sum = CHECKSUM_START;

	for (; is_letter(*at); at++) {
		char c = lower(*at);

		sum = checksum_add(sum, &c, 1);
	}
	/* the low bits of FNV-1a alone see little of the first letters */
	w->bin[(sum ^ sum >> 32) % FEATURES_WORDS]++;
	return at;
}

void feature_words(const char *text, struct feature_words *w)
{
	memset(w, 0, sizeof(*w));
	while (*text) {
		if (is_digit(*text))
			text = number(text, w);
		else if (is_letter(*text))
			text = word(text, w);
		else
			text++;
	}
}

/* ---- other VMs ---- */

/**
 * struct sums - a figure of the other VMs
 * @n: VMs of which it is known
 * @sum: its sum over these
 * @max: its maximum over these
 */
struct sums {
	double n;
	double sum;
	double max;
};

static void add(struct sums *s, double value)
{
	s->max = s->n > 0 ? fmax(s->max, value) : value;
	s->sum += value;
	s->n++;
}

static void put(float *x, const struct sums *s)
{
	if (!(s->n > 0))
		return;
	x[0] = (float)s->sum;
	x[1] = (float)(s->sum / s->n);
	x[2] = (float)s->max;
}

static void resource_features(const struct learn_input *in, int g, float *x)
{
	const struct learn_task *t = &in->task[0];
	struct sums cost = { 0 }, use = { 0 }, smooth = { 0 };
	double costs = 0;

	if (t->periods > 0 && t->cost[g] > 0)
		x[FEATURE_COST] = (float)log(t->cost[g]);
	if (t->fps > 0)
		x[FEATURE_USE] = (float)t->use[g];
	if (t->periods > 0)
		x[FEATURE_SMOOTH] = (float)t->smooth[g];
	for (size_t j = 1; j < in->n; j++) {
		const struct learn_task *o = &in->task[j];

		if (o->fps > 0)
			add(&use, o->use[g]);
		if (!(o->periods > 0))
			continue;
		add(&smooth, o->smooth[g]);
		if (o->cost[g] > 0) {
			add(&cost, log(o->cost[g]));
			costs += o->cost[g];
		}
	}
	put(x + FEATURE_SUM_COST, &cost);
	if (costs > 0)
		x[FEATURE_SUM_COST] = (float)log(costs);
	put(x + FEATURE_SUM_USE, &use);
	put(x + FEATURE_SUM_SMOOTH, &smooth);
	if (t->periods > 0 && t->smooth[g] + smooth.sum > 0)
		x[FEATURE_PART] = (float)(t->smooth[g] / (t->smooth[g] + smooth.sum));
}

static void past_features(const struct learn_input *in, int g, float *x)
{
	const double *idle = in->idle[g], middle = (LEARN_PAST - 1) / 2.0;
	double mean = 0, xy = 0, xx = 0;

	for (int p = 0; p < LEARN_PAST; p++) {
		mean += idle[p] / LEARN_PAST;
		xy += (p - middle) * idle[p];
		xx += (p - middle) * (p - middle);
	}
	x[FEATURE_NOW] = (float)in->now[g];
	x[FEATURE_IDLE] = (float)idle[LEARN_PAST - 1];
	x[FEATURE_PAST_MEAN] = (float)mean;
	x[FEATURE_PAST_SLOPE] = (float)(xy / xx);
}

/* ---- all of it ---- */

static void text_features(const struct learn_input *in, float *x)
{
	struct sums others = { 0 };
	struct feature_words w;

	for (size_t j = 1; j < in->n; j++) {
		feature_words(in->task[j].text, &w);
		add(&others, w.magnitude);
	}
	feature_words(in->task[0].text, &w);
	x[FEATURE_NUMBERS] = (float)w.numbers;
	x[FEATURE_MAGNITUDE] = (float)w.magnitude;
	x[FEATURE_LARGEST] = (float)w.largest;
	if (others.n > 0) {
		x[FEATURE_OTHERS_MAGNITUDE] = (float)(others.sum / others.n);
		x[FEATURE_OTHERS_LARGEST] = (float)others.max;
	}
	for (int i = 0; i < FEATURES_WORDS; i++)
		x[FEATURE_WORDS + i] = (float)w.bin[i];
}

void learn_features(const struct learn_input *in, float *x)
{
	const struct learn_task *t = &in->task[0];
	double weights = 0, active = 0, known = 0;

	for (int i = 0; i < LEARN_FEATURES; i++)
		x[i] = NAN;
	for (size_t j = 0; j < in->n; j++)
		weights += in->task[j].weight;
	for (size_t j = 1; j < in->n; j++) {
		active += in->task[j].fps > 0;
		known += in->task[j].periods > 0;
	}
	if (weights > 0)
		x[FEATURE_WEIGHT] = (float)(t->weight * (double)in->n / weights);
	x[FEATURE_VMS] = (float)in->n;
	x[FEATURE_PERIODS] = (float)t->periods;
	x[FEATURE_ACTIVE] = t->fps > 0;
	x[FEATURE_FPS] = (float)t->fps;
	if (in->n > 1) {
		x[FEATURE_OTHERS_ACTIVE] = (float)(active / (double)(in->n - 1));
		x[FEATURE_OTHERS_KNOWN] = (float)(known / (double)(in->n - 1));
	}
	text_features(in, x);
	for (int g = 0; g < LEARN_RESOURCES; g++) {
		resource_features(in, g, x + FEATURE_OF(g, 0));
		past_features(in, g, x + FEATURE_OF(g, 0));
	}
}
