// SPDX-License-Identifier: GPL-2.0-only
/* Gradients of the response network, and Adam. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "network_pass.h"
#include "network_train.h"

#define L	LEARN_WORDS
#define N	LEARN_CLIENTS
#define D	NETWORK_WIDTH
#define MODEL	NETWORK_MODEL
#define HEAD	NETWORK_HEAD
#define INNER	NETWORK_INNER
#define TAPS	NETWORK_TAPS

/**
 * struct example - a sample as the network sees it
 * @q: the question
 * @label: in the order of @q's clients; a row adds up to 1, or to 0 if it does not count
 */
struct example {
	struct network_question q;
	float label[LEARN_RESOURCES][N];
};

/**
 * struct network_scratch - values of one sample
 * @pass: on the way through the network
 * @example: the sample
 * @x: gradient of the words and positions; the other members of the encoder likewise
 * @result: of the encoder's result
 * @m0: of M0, as are @m1 of M1 and @mt of Mt; borders are 0
 * @pooled: of a pooled channel of a CNN
 * @wide_channel: of a channel of CNN1 before the pooling; its border is 0
 * @square_channel: likewise of CNN2
 */
struct network_scratch {
	struct network_pass pass;
	struct example example;
	lanes x[L][MODEL];
	lanes query[L][MODEL];
	lanes key[L][MODEL];
	lanes value[L][MODEL];
	lanes head[L][MODEL];
	lanes y[L][MODEL];
	lanes inner[L][INNER];
	lanes result[L][MODEL];
	real m0[NETWORK_BUFFER(D)];
	real m1[NETWORK_BUFFER(D)];
	real mt[NETWORK_BUFFER(N)];
	real pooled[NETWORK_BUFFER(D)];
	real wide_channel[NETWORK_BUFFER(D)];
	real square_channel[NETWORK_BUFFER(N)];
};

struct network_scratch *network_scratch_new(void)
{
	return calloc(1, sizeof(struct network_scratch));
}

/* ---- the gradient, from the answer back ---- */

/* Of a vector that was made positive, and has mean 1: from that of its value to that before. */
static void back_positive(const struct network_positive *v, real *d, size_t n)
{
	real mean = 0;

	for (size_t i = 0; i < n; i++)
		mean += d[i] * v->value[i] / (real)n;
	for (size_t i = 0; i < n; i++)
		d[i] = (d[i] - mean) / v->mean / (1 + (real)exp(-(double)v->raw[i]));
}

/* The derivative of the response to @a, if @x is the response to @a and @b. */
static real slope(enum network_form form, real x, real a, real b)
{
	real s = a + b, beta = 2 / s + 1 / (s + 1) - 1 / a;

	switch (form) {
	case NETWORK_FORM_A:
		return -x * beta;
	case NETWORK_FORM_C:
		return -1 / (a * a);
	default:
		return x * beta;
	}
}

static void back_times(const struct network_weights *w, const struct example *ex, size_t r,
		       const struct network_answer *a, const real *d, struct network_parameters *g)
{
	real times[NETWORK_TIMES] = { 0 };

	for (size_t i = 0; i < ex->q.n; i++) {
		g->filter_bias[0] += d[i];
		for (size_t k = 0; k < NETWORK_KERNEL; k++) {
			size_t at = i + NETWORK_KERNEL - 1 - k;

			g->filter[k] += d[i] * a->times[r][at];
			times[at] += d[i] * w->p.filter[k];
		}
	}
	for (size_t i = 0; i < NETWORK_TIMES; i++) {
		g->times_bias[i] += times[i];
		for (size_t t = 0; t < LEARN_PAST; t++)
			g->times[i][t] += times[i] * (real)ex->q.idle[r][t];
	}
}

/* Of the need of a resource: M1, Mt, and the query, which is a row of M0, with its gains. */
static void back_need(const struct network_weights *w, struct network_scratch *s, size_t r,
		      const real *d, size_t n, struct network_parameters *g)
{
	const real *query = s->pass.wide.in + network_row(0, D), *gain = w->p.gain[r];
	real *to_query = s->m0 + network_row(0, D), by = (real)(1 / sqrt(D)), asked[N] = { 0 };

	for (size_t i = 0; i < n; i++)
		asked[i] = d[i] * by;
	for (size_t i = 0; i < n; i++) {
		const real *mt = s->pass.square.out + network_row(i, N);

		for (size_t k = 0; k < n; k++) {
			s->mt[network_row(i, N) + k] += d[i] * by * s->pass.a.asked[r][k];
			asked[k] += d[i] * by * mt[k];
		}
	}
	for (size_t i = 0; i < n; i++) {
		const real *m1 = s->pass.wide.out + network_row(i, D);
		real *to = s->m1 + network_row(i, D);

		for (size_t k = 0; k < D; k++) {
			to[k] += asked[i] * query[k] * gain[k];
			to_query[k] += asked[i] * m1[k] * gain[k];
			g->gain[r][k] += asked[i] * m1[k] * query[k];
		}
	}
}

/* Return the loss of a resource, and the derivative of it to each response. */
static double back_softmax(const struct network_answer *a, const struct example *ex, size_t r,
			   real *d, bool *counts)
{
	double loss = 0, sum = 0;

	for (size_t i = 0; i < ex->q.n; i++)
		sum += (double)ex->label[r][i];
	*counts = sum > 0;
	for (size_t i = 0; i < ex->q.n; i++) {
		double label = (double)ex->label[r][i], log_p = (double)a->log_p[r][i];

		if (label > 0)
			loss += label * (log(label) - log_p);
		d[i] = (real)(label - exp(log_p));
	}
	return loss;
}

static double back_answer(const struct network_weights *w, struct network_scratch *s,
			  struct network_parameters *g)
{
	const struct network_answer *a = &s->pass.a;
	const struct example *ex = &s->example;
	real d[LEARN_RESOURCES][N], need[N];
	bool counts[LEARN_RESOURCES];
	double loss = 0;
	size_t rows = 0;

	for (size_t r = 0; r < LEARN_RESOURCES; r++) {
		double of_row = back_softmax(a, ex, r, d[r], &counts[r]);

		loss += counts[r] ? of_row : 0;
		rows += counts[r];
	}
	for (size_t r = 0; r < LEARN_RESOURCES; r++) {
		if (!counts[r])
			continue;
		for (size_t i = 0; i < ex->q.n; i++) {
			real have = a->available[r].value[i], want = a->needed[r].value[i];
			real x = a->response[r][i], by = d[r][i] / (real)rows;

			if (w->form == NETWORK_FORM_A)
				g->factor[0] += by * x;
			need[i] = by * slope(w->form, x, want, have);
			d[r][i] = by * slope(w->form, x, have, want);
		}
		back_positive(&a->available[r], d[r], ex->q.n);
		back_times(w, ex, r, a, d[r], g);
		back_positive(&a->needed[r], need, ex->q.n);
		back_need(w, s, r, need, ex->q.n, g);
	}
	return rows ? loss / (double)rows : 0;
}

/* ---- convolutional networks ---- */

static __always_inline void clear_border(real *cells, size_t rows, size_t width)
{
	for (size_t r = 0; r < rows; r++) {
		cells[network_row(r, width) - 1] = 0;
		cells[network_row(r, width) + width] = 0;
	}
	if (rows < N)
		memset(cells + network_row(rows, width) - 1, 0,
		       NETWORK_STRIDE(width) * sizeof(*cells));
}

/* Gradient of a kernel: products of what it reads with the gradient of what it wrote. */
static __always_inline void back_kernel(const real *in, const real *d, size_t rows, size_t width,
					real *kernel, real *bias)
{
	ptrdiff_t stride = NETWORK_STRIDE(width), end = (ptrdiff_t)rows * stride;
	real sum;

	in += network_row(0, width) - 1;
	d += network_row(0, width) - 1;
	for (int k = 0; k < 3; k++) {
		const real *line = in + (k - 1) * stride;
		real left = 0, middle = 0, right = 0;

#pragma omp simd reduction(+ : left, middle, right)
		for (ptrdiff_t i = 0; i < end; i++) {
			left += d[i] * line[i - 1];
			middle += d[i] * line[i];
			right += d[i] * line[i + 1];
		}
		kernel[3 * k] += left;
		kernel[3 * k + 1] += middle;
		kernel[3 * k + 2] += right;
	}
	if (!bias)
		return;
	sum = 0;
#pragma omp simd reduction(+ : sum)
	for (ptrdiff_t i = 0; i < end; i++)
		sum += d[i];
	*bias += sum;
}

/* Gradient of what a kernel reads. */
static __always_inline void back_input(const real *kernel, const real *d, size_t rows,
				       size_t width, bool add, real *to)
{
	ptrdiff_t stride = NETWORK_STRIDE(width), end = (ptrdiff_t)rows * stride;

	d += network_row(0, width) - 1;
	to += network_row(0, width) - 1;
#pragma omp simd
	for (ptrdiff_t i = 0; i < end; i++) {
		real sum = add ? to[i] : 0;

#pragma GCC unroll 9
		for (int k = 0; k < TAPS; k++)
			sum += kernel[k] * d[i - (k / 3 - 1) * stride - (k % 3 - 1)];
		to[i] = sum;
	}
}

/* @d: gradient of the output, its border 0; @to: NULL, or where that of the input is added. */
static __always_inline void back_cnn(const struct network_cnn *w, struct network_cnn *g,
				     const real *in, const real *pooled, const real *won,
				     const real *d, size_t rows, size_t width, real *d_pooled,
				     real *channel, real *to)
{
	const size_t size = NETWORK_BUFFER(width), first = network_row(0, width) - 1;
	const size_t end = network_row(rows, width) - 1;

	for (size_t c = 0; c < NETWORK_POOLED; c++) {
		back_kernel(pooled + c * size, d, rows, width, g->narrow[c],
			    c ? NULL : g->narrow_bias);
		back_input(w->narrow[c], d, rows, width, false, d_pooled);
		for (size_t k = 2 * c; k < 2 * c + 2; k++) {
#pragma omp simd
			for (size_t i = first; i < end; i++)
				channel[i] = d_pooled[i] * won[k * size + i];
			clear_border(channel, rows, width);
			back_kernel(in, channel, rows, width, g->wide[k], &g->wide_bias[k]);
			if (to)
				back_input(w->wide[k], channel, rows, width, true, to);
		}
	}
}

NETWORK_CLONES
static void back_clients(const struct network_weights *w, struct network_scratch *s, size_t n,
			 struct network_parameters *g)
{
	const struct network_wide *c = &s->pass.wide;

	back_cnn(&w->p.clients, &g->clients, c->in, c->pooled[0], c->won[0], s->m1, n, D,
		 s->pooled, s->wide_channel, s->m0);
}

NETWORK_CLONES
static void back_distances(const struct network_weights *w, struct network_scratch *s, size_t n,
			   struct network_parameters *g)
{
	const struct network_square *c = &s->pass.square;

	back_cnn(&w->p.distances, &g->distances, c->in, c->pooled[0], c->won[0], s->mt, n, N,
		 s->pooled, s->square_channel, NULL);
}

/* ---- the encoder ---- */

/* Of y = W x + b over all places: add to that of W and b. */
static __always_inline void back_weights(int rows, int columns, lanes *d, lanes *x, real *w,
					 real *bias)
{
	for (int o = 0; o < rows; o++) {
		for (int i = 0; i < columns; i++) {
			real sum = 0;

#pragma omp simd reduction(+ : sum)
			for (int k = 0; k < N; k++) {
				real s = 0;

#pragma GCC unroll 12
				for (int l = 0; l < L; l++)
					s += d[l * rows + o][k] * x[l * columns + i][k];
				sum += s;
			}
			w[o * columns + i] += sum;
		}
		for (int l = 0; bias && l < L; l++)
			for (int k = 0; k < N; k++)
				bias[o] += d[l * rows + o][k];
	}
}

/* Of y = W x + b for one place: to that of x. */
static __always_inline void back_linear(int rows, int columns, const real *w, lanes *d, bool add,
					lanes *x)
{
	for (int i = 0; i < columns; i++) {
#pragma omp simd
		for (int k = 0; k < N; k++) {
			real sum = add ? x[i][k] : 0;

#pragma GCC unroll 32
			for (int o = 0; o < rows; o++)
				sum += w[o * columns + i] * d[o][k];
			x[i][k] = sum;
		}
	}
}

/* Of a norm: from that of its result in @d to that of what it read. */
static __always_inline void back_centre(lanes *centred, const real *scale, const real *weight,
					lanes *d, real *to_weight, real *to_bias)
{
	for (int i = 0; i < MODEL; i++)
		for (int k = 0; k < N; k++) {
			to_weight[i] += d[i][k] * centred[i][k];
			to_bias[i] += d[i][k];
		}
#pragma omp simd
	for (int k = 0; k < N; k++) {
		real mean = 0, along = 0;

#pragma GCC unroll 8
		for (int i = 0; i < MODEL; i++) {
			real x = d[i][k] * weight[i] * ((real)1 / MODEL);

			mean += x;
			along += x * centred[i][k];
		}
#pragma GCC unroll 8
		for (int i = 0; i < MODEL; i++)
			d[i][k] = scale[k] *
				(d[i][k] * weight[i] - mean - centred[i][k] * along);
	}
}

/* Of the attention of a place: to query, key and value. */
static __always_inline void back_attend(struct network_encoder *e, struct network_scratch *s,
					int h, int l)
{
	lanes *at = e->attention[h][l], *head = &s->head[l][h * HEAD];
	lanes *query = &e->query[l][h * HEAD], *to_query = &s->query[l][h * HEAD];
	lanes along = { 0 }, d[L];

	for (int m = 0; m < L; m++) {
		lanes *value = &e->value[m][h * HEAD], *to_value = &s->value[m][h * HEAD];

#pragma omp simd
		for (int k = 0; k < N; k++) {
			real sum = 0;

#pragma GCC unroll 4
			for (int i = 0; i < HEAD; i++) {
				sum += head[i][k] * value[i][k];
				to_value[i][k] += head[i][k] * at[m][k];
			}
			d[m][k] = sum;
			along[k] += sum * at[m][k];
		}
	}
	for (int m = 0; m < L; m++) {
		lanes *key = &e->key[m][h * HEAD], *to_key = &s->key[m][h * HEAD];

#pragma omp simd
		for (int k = 0; k < N; k++) {
			real x = at[m][k] * (d[m][k] - along[k]) * (real)0.5;

#pragma GCC unroll 4
			for (int i = 0; i < HEAD; i++) {
				to_query[i][k] += x * key[i][k];
				to_key[i][k] += x * query[i][k];
			}
		}
	}
}

/* From the gradient of the result in @s->result to that of words and positions in @s->x. */
NETWORK_CLONES
static void back_encoder(const struct network_parameters *p, struct network_scratch *s,
			 struct network_parameters *g)
{
	struct network_encoder *e = &s->pass.e;

	for (int l = 0; l < L; l++) {
		back_centre(e->centred2[l], e->scale2[l], p->norm2, s->result[l], g->norm2,
			    g->norm2_bias);
		memcpy(s->y[l], s->result[l], sizeof(s->y[l]));
		back_linear(MODEL, INNER, p->outer[0], s->result[l], false, s->inner[l]);
		for (int i = 0; i < INNER; i++)
			for (int k = 0; k < N; k++)
				s->inner[l][i][k] = e->inner[l][i][k] > 0 ? s->inner[l][i][k] : 0;
		back_linear(INNER, MODEL, p->inner[0], s->inner[l], true, s->y[l]);
	}
	back_weights(MODEL, INNER, s->result[0], e->inner[0], g->outer[0], g->outer_bias);
	back_weights(INNER, MODEL, s->inner[0], e->y[0], g->inner[0], g->inner_bias);
	for (int l = 0; l < L; l++) {
		back_centre(e->centred1[l], e->scale1[l], p->norm1, s->y[l], g->norm1,
			    g->norm1_bias);
		memcpy(s->x[l], s->y[l], sizeof(s->x[l]));
		back_linear(MODEL, MODEL, p->heads[0], s->y[l], false, s->head[l]);
	}
	back_weights(MODEL, MODEL, s->y[0], e->head[0], g->heads[0], g->heads_bias);
	memset(s->query, 0, sizeof(s->query));
	memset(s->key, 0, sizeof(s->key));
	memset(s->value, 0, sizeof(s->value));
	for (int h = 0; h < NETWORK_HEADS; h++)
		for (int l = 0; l < L; l++)
			back_attend(e, s, h, l);
	for (int l = 0; l < L; l++) {
		back_linear(MODEL, MODEL, p->query[0], s->query[l], true, s->x[l]);
		back_linear(MODEL, MODEL, p->key[0], s->key[l], true, s->x[l]);
		back_linear(MODEL, MODEL, p->value[0], s->value[l], true, s->x[l]);
	}
	back_weights(MODEL, MODEL, s->query[0], e->x[0], g->query[0], g->query_bias);
	back_weights(MODEL, MODEL, s->key[0], e->x[0], g->key[0], NULL);
	back_weights(MODEL, MODEL, s->value[0], e->x[0], g->value[0], g->value_bias);
}

static void back_words(const struct network_question *q, const struct network_scratch *s,
		       struct network_parameters *g)
{
	for (size_t j = 0; j < q->n; j++)
		for (size_t l = 0; l < L; l++) {
			const struct learn_word *w = &q->word[j][l];

			for (size_t i = 0; w->id && i < MODEL; i++) {
				real d = s->x[l][i][j];

				g->position[l][i] += d;
				g->embedding[w->id][i] += (1 - w->part) * d;
				g->embedding[w->next][i] += w->part * d;
			}
		}
}

/* M0 is the encoder's result with clients in the other place. */
static void spread(struct network_scratch *s, size_t n)
{
	const struct network_encoder *e = &s->pass.e;

	memset(s->result, 0, sizeof(s->result));
	for (size_t j = 0; j < n; j++) {
		const real *row = s->m0 + network_row(j, D);

		for (size_t i = 0; i < D; i++)
			s->result[i / MODEL][i % MODEL][j] = row[i] * e->mask[i / MODEL][j];
	}
}

/* The loss of @s->example, and its gradient. */
static double learn(const struct network_weights *w, struct network_scratch *s,
		    struct network_parameters *g)
{
	size_t n = s->example.q.n;
	double loss;

	network_forward(w, &s->example.q, true, &s->pass);
	memset(s->m0, 0, sizeof(s->m0));
	memset(s->m1, 0, sizeof(s->m1));
	memset(s->mt, 0, sizeof(s->mt));
	loss = back_answer(w, s, g);
	back_distances(w, s, n, g);
	back_clients(w, s, n, g);
	spread(s, n);
	back_encoder(&w->p, s, g);
	back_words(&s->example.q, s, g);
	return loss;
}

static void make_example(const struct learn_sample *sample, struct example *ex)
{
	uint8_t order[N];

	network_ask(&sample->in, &ex->q, order);
	memset(ex->label, 0, sizeof(ex->label));
	for (size_t r = 0; r < LEARN_RESOURCES; r++) {
		float sum = 0;

		for (size_t j = 0; j < ex->q.n; j++)
			sum += sample->label[r][j];
		for (size_t j = 0; sum > 0 && j < ex->q.n; j++)
			ex->label[r][j] = sample->label[r][order[j]] / sum;
	}
}

double network_gradient(const struct network_weights *w, const struct learn_sample *sample,
			struct network_scratch *scratch, struct network_parameters *gradient)
{
	make_example(sample, &scratch->example);
	return learn(w, scratch, gradient);
}

/* ---- the first weights ---- */

/* Uniform, with mean 0 and the given standard deviation. */
static void spread_out(uint64_t *state, real *x, size_t n, double deviation)
{
	for (size_t i = 0; i < n; i++)
		x[i] = (real)(deviation * sqrt(12) * (random_part(state) - 0.5));
}

#define SPREAD(field, deviation)	spread_out(&seed, (real *)w->p.field, \
						   sizeof(w->p.field) / sizeof(real), deviation)

void network_init(struct network_weights *w, enum network_form form, uint64_t seed)
{
	const double model = 1 / sqrt(MODEL);

	memset(w, 0, sizeof(*w));
	w->form = form;
	SPREAD(embedding, 0.5);
	SPREAD(position, 0.5);
	SPREAD(query, model);
	SPREAD(key, model);
	SPREAD(value, model);
	SPREAD(heads, model);
	SPREAD(inner, sqrt(2) * model);
	SPREAD(outer, 1 / sqrt(INNER));
	SPREAD(times, 1 / sqrt(LEARN_PAST));
	SPREAD(filter, 1 / sqrt(NETWORK_KERNEL));
	SPREAD(clients.wide, sqrt(2) / 3);
	SPREAD(clients.narrow, 0.3 / sqrt(NETWORK_POOLED * TAPS));
	SPREAD(distances.wide, sqrt(2) / 3);
	SPREAD(distances.narrow, 0.3 / sqrt(NETWORK_POOLED * TAPS));
	for (size_t i = 0; i < MODEL; i++)
		w->p.norm1[i] = w->p.norm2[i] = 1;
	SPREAD(gain, 0.5);
	for (size_t r = 0; r < LEARN_RESOURCES; r++)
		for (size_t i = 0; i < D; i++)
			w->p.gain[r][i] += 1;
	w->p.factor[0] = (real)log(20);
}

/* ---- Adam ---- */

#define CLIP	1.0	/* longest gradient of a step */

/**
 * struct adam - state of the optimizer
 * @mean: of the gradients
 * @square: mean of their squares
 * @gradient: of the batch
 * @steps: made so far
 */
struct adam {
	real mean[NETWORK_PARAMETERS];
	real square[NETWORK_PARAMETERS];
	struct network_parameters gradient;
	unsigned int steps;
};

static double length(const real *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	return sqrt(sum);
}

/* Make a step of a batch, and forget its gradient. A gradient that is not finite is left out. */
static void step(struct adam *adam, struct network_parameters *p, unsigned int batch, double rate)
{
	real *gradient = (real *)&adam->gradient, *to = (real *)p;
	double by = 1.0 / batch, long_is = length(gradient, NETWORK_PARAMETERS) * by;
	double mean_by, square_by;

	if (isfinite(long_is)) {
		by *= long_is > CLIP ? CLIP / long_is : 1;
		adam->steps++;
		mean_by = rate / (1 - pow(0.9, adam->steps));
		square_by = 1 / (1 - pow(0.999, adam->steps));
		for (size_t i = 0; i < NETWORK_PARAMETERS; i++) {
			real d = gradient[i] * (real)by;

			adam->mean[i] += (real)0.1 * (d - adam->mean[i]);
			adam->square[i] += (real)0.001 * (d * d - adam->square[i]);
			to[i] -= (real)mean_by * adam->mean[i] /
				((real)sqrt((double)adam->square[i] * square_by) + (real)1e-8);
		}
	}
	memset(&adam->gradient, 0, sizeof(adam->gradient));
}

/* ---- training ---- */

/**
 * struct training - a training
 * @t: how
 * @w: the weights
 * @ex: examples that are learned from
 * @order: of them, in this epoch
 * @n: their number
 * @validation: other examples
 * @nr_validation: their number
 * @scratch: of a sample
 * @adam: the optimizer
 * @random: state
 */
struct training {
	const struct network_training *t;
	struct network_weights *w;
	struct example *ex;
	uint32_t *order;
	size_t n;
	struct example *validation;
	size_t nr_validation;
	struct network_scratch *scratch;
	struct adam *adam;
	uint64_t random;
};

static double loss_of(const struct network_weights *w, const struct example *ex,
		      struct network_scratch *s)
{
	double loss = 0;
	size_t rows = 0;
	real d[N];

	s->example = *ex;
	network_forward(w, &s->example.q, false, &s->pass);
	for (size_t r = 0; r < LEARN_RESOURCES; r++) {
		bool counts;
		double of_row = back_softmax(&s->pass.a, ex, r, d, &counts);

		loss += counts ? of_row : 0;
		rows += counts;
	}
	return rows ? loss / (double)rows : 0;
}

static double validate(const struct training *tr)
{
	double sum = 0;

	for (size_t i = 0; i < tr->nr_validation; i++)
		sum += loss_of(tr->w, &tr->validation[i], tr->scratch);
	return sum / (double)tr->nr_validation;
}

static void shuffle(struct training *tr)
{
	for (size_t i = tr->n - 1; i > 0; i--) {
		size_t k = random_below(&tr->random, i + 1);
		uint32_t swap = tr->order[i];

		tr->order[i] = tr->order[k];
		tr->order[k] = swap;
	}
}

/* Learn from each example once; @epoch counts from 0. Return the mean loss. */
static double run_epoch(struct training *tr, unsigned int epoch)
{
	double loss = 0, done;
	unsigned int in_batch = 0;

	shuffle(tr);
	for (size_t i = 0; i < tr->n; i++) {
		tr->scratch->example = tr->ex[tr->order[i]];
		loss += learn(tr->w, tr->scratch, &tr->adam->gradient);
		if (++in_batch < tr->t->batch && i + 1 < tr->n)
			continue;
		done = (epoch + (double)i / (double)tr->n) / tr->t->epochs;
		step(tr->adam, &tr->w->p, in_batch,
		     tr->t->rate * (0.01 + 0.99 * (1 + cos(M_PI * done)) / 2));
		in_batch = 0;
	}
	return loss / (double)tr->n;
}

/* Whether a file can have the weights. */
static bool weights_fit(const struct network_weights *w)
{
	const real *p = (const real *)&w->p;

	for (size_t i = 0; i < NETWORK_PARAMETERS; i++)
		if (!(fabs((double)p[i]) <= NETWORK_MAX_WEIGHT))
			return false;
	return fabs((double)w->p.factor[0]) <= NETWORK_MAX_FACTOR;
}

static int run(struct training *tr, struct network_weights *best)
{
	struct network_progress p = { .epochs = tr->t->epochs, .validation = NAN };
	double least = INFINITY;

	*best = *tr->w;
	for (unsigned int epoch = 0; epoch < tr->t->epochs; epoch++) {
		p.loss = run_epoch(tr, epoch);
		if (!isfinite(p.loss) || !weights_fit(tr->w))
			return -ERANGE;
		p.epoch = epoch + 1;
		if (tr->nr_validation)
			p.validation = validate(tr);
		if (!tr->nr_validation || p.validation < least) {
			*best = *tr->w;
			least = p.validation;
			p.best = p.epoch;
		}
		if (tr->t->progress && tr->t->progress(tr->t->arg, &p))
			break;
		if (tr->nr_validation && tr->t->patience && p.epoch - p.best >= tr->t->patience)
			break;
	}
	*tr->w = *best;
	return 0;
}

static struct example *make_examples(const struct learn_sample *samples, size_t n)
{
	struct example *ex = calloc(n ? n : 1, sizeof(*ex));

	for (size_t i = 0; ex && i < n; i++)
		make_example(&samples[i], &ex[i]);
	return ex;
}

static bool in_range(const struct learn_sample *samples, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!samples[i].in.n || samples[i].in.n > LEARN_CLIENTS)
			return false;
	return true;
}

int network_train(struct network_weights *w, const struct learn_sample *samples, size_t n,
		  const struct learn_sample *validation, size_t nr_validation,
		  const struct network_training *t)
{
	struct training tr = { .t = t, .w = w, .n = n, .nr_validation = nr_validation,
			       .random = t->seed ^ UINT64_C(0x6d677075) };
	struct network_weights *best;
	int ret = -ENOMEM;

	if (!n || n > UINT32_MAX || !t->epochs || !t->batch || !(t->rate > 0) ||
	    t->form >= NETWORK_FORMS || !in_range(samples, n) ||
	    !in_range(validation, nr_validation))
		return -EINVAL;
	network_init(w, t->form, t->seed);
	best = malloc(sizeof(*best));
	tr.ex = make_examples(samples, n);
	tr.validation = make_examples(validation, nr_validation);
	tr.order = malloc(n * sizeof(*tr.order));
	tr.scratch = network_scratch_new();
	tr.adam = calloc(1, sizeof(*tr.adam));
	if (best && tr.ex && tr.validation && tr.order && tr.scratch && tr.adam) {
		for (size_t i = 0; i < n; i++)
			tr.order[i] = (uint32_t)i;
		ret = run(&tr, best);
	}
	free(tr.adam);
	free(tr.scratch);
	free(tr.order);
	free(tr.validation);
	free(tr.ex);
	free(best);
	return ret;
}

int network_loss(const struct network_weights *w, const struct learn_sample *samples, size_t n,
		 double *loss)
{
	struct network_scratch *s = network_scratch_new();
	struct example *ex = malloc(sizeof(*ex));
	double sum = 0;

	for (size_t i = 0; s && ex && i < n; i++) {
		make_example(&samples[i], ex);
		sum += loss_of(w, ex, s);
	}
	*loss = n ? sum / (double)n : 0;
	free(ex);
	free(s);
	return s && ex ? 0 : -ENOMEM;
}

void network_training_defaults(struct network_training *t)
{
	*t = (struct network_training){
		.seed = 1, .form = NETWORK_FORM_B, .epochs = 60, .batch = 32, .rate = 0.003,
		.patience = 10,
	};
}
