// SPDX-License-Identifier: GPL-2.0-only
/* The response network: from a question to shares. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "lines.h"
#include "network_pass.h"

#define L	LEARN_WORDS
#define N	LEARN_CLIENTS
#define D	NETWORK_WIDTH
#define MODEL	NETWORK_MODEL
#define HEAD	NETWORK_HEAD
#define INNER	NETWORK_INNER
#define TAPS	NETWORK_TAPS

#define LEAST		((real)1e-3)	/* of availability and need */
#define NORM_LEAST	((real)1e-5)	/* added to a variance */
#define NOT_SEEN	(-(real)1e9)

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
/* The C library has one for vectors. */
__attribute__((simd("notinbranch"))) float expf(float);
__attribute__((simd("notinbranch"))) double exp(double);
#endif

#ifdef LEARN_DOUBLE
#define EXP	exp
#define LOG	log
#define LOG1P	log1p
#define SQRT	sqrt
#define FABS	fabs
#define MAX	fmax
#define MIN	fmin
#else
#define EXP	expf
#define LOG	logf
#define LOG1P	log1pf
#define SQRT	sqrtf
#define FABS	fabsf
#define MAX	fmaxf
#define MIN	fminf
#endif

/* ---- the order of clients ---- */

/**
 * struct vm_group - VMs, before one is served
 * @n: their number
 * @word: of each
 * @rank: place of each in an order by words and surroundings; equal for VMs that these do
 *	not tell apart
 * @prior: logarithm of the weight of each over the mean
 */
struct vm_group {
	size_t n;
	struct learn_word word[N][L];
	uint8_t rank[N];
	float prior[N];
};

static uint64_t mix(uint64_t x)
{
	return random_next(&x);
}

/*
 * Digest the surroundings of a VM, independent of the order of VMs: the distance to each VM
 * with given words. @sum has a digest of each VM's words.
 */
static uint64_t surroundings(const struct learn_input *in, const uint64_t *sum, size_t j)
{
	uint64_t all = 0, bits;

	for (size_t k = 0; k < in->n; k++) {
		memcpy(&bits, &in->distance[j][k], sizeof(bits));
		all += mix(sum[k] ^ mix(bits));
	}
	return all;
}

static int compare(const struct vm_group *g, const uint64_t *around, size_t a, size_t b)
{
	int c = learn_words_compare(g->word[a], g->word[b]);

	if (c)
		return c;
	return around[a] < around[b] ? -1 : around[a] > around[b];
}

static void rank_clients(struct vm_group *g, const uint64_t *around)
{
	for (size_t j = 0; j < g->n; j++) {
		g->rank[j] = 0;
		for (size_t k = 0; k < g->n; k++)
			g->rank[j] = (uint8_t)(g->rank[j] + (compare(g, around, k, j) < 0));
	}
}

static void group_make(const struct learn_input *in, struct vm_group *g)
{
	uint64_t sum[N], around[N];
	double weight = 0;

	g->n = in->n;
	memset(g->word, 0, sizeof(g->word));
	for (size_t j = 0; j < g->n; j++)
		weight += in->task[j].weight / (double)g->n;
	for (size_t j = 0; j < g->n; j++) {
		learn_words(&in->task[j], weight, g->word[j]);
		g->prior[j] = (float)log(in->task[j].weight / weight);
		sum[j] = 0;
		for (size_t l = 0; l < L; l++) {
			uint32_t part;

			memcpy(&part, &g->word[j][l].part, sizeof(part));
			sum[j] = mix(sum[j] + ((uint64_t)part << 16 ^ g->word[j][l].id));
		}
	}
	for (size_t j = 0; j < g->n; j++)
		around[j] = surroundings(in, sum, j);
	rank_clients(g, around);
}

/*
 * Whether @a comes before @b, behind the @placed first of @order. Where nothing else tells
 * them apart, distances to those already placed do.
 */
static bool before(const struct vm_group *g, const struct learn_input *in, const uint8_t *order,
		   size_t placed, size_t a, size_t b)
{
	const double *da = in->distance[a], *db = in->distance[b];
	size_t served = order[0];

	if (da[served] < db[served] || da[served] > db[served])
		return da[served] < db[served];
	if (g->rank[a] != g->rank[b])
		return g->rank[a] < g->rank[b];
	for (size_t i = 1; i < placed; i++)
		if (da[order[i]] < db[order[i]] || da[order[i]] > db[order[i]])
			return da[order[i]] < db[order[i]];
	return false;
}

static void group_order(const struct vm_group *g, const struct learn_input *in, size_t served,
			uint8_t *order)
{
	for (size_t j = 0; j < g->n; j++)
		order[j] = (uint8_t)j;
	order[0] = (uint8_t)served;
	order[served] = 0;
	for (size_t i = 1; i < g->n; i++) {
		size_t best = i;
		uint8_t swap;

		for (size_t j = i + 1; j < g->n; j++)
			if (before(g, in, order, i, order[j], order[best]))
				best = j;
		swap = order[i];
		order[i] = order[best];
		order[best] = swap;
	}
}

void network_ask(const struct learn_input *in, struct network_question *q,
		 uint8_t order[LEARN_CLIENTS])
{
	struct vm_group g;

	group_make(in, &g);
	group_order(&g, in, 0, order);
	memset(q, 0, sizeof(*q));
	q->n = g.n;
	for (size_t j = 0; j < g.n; j++) {
		memcpy(q->word[j], g.word[order[j]], sizeof(q->word[j]));
		q->prior[j] = g.prior[order[j]];
		for (size_t k = 0; k < g.n; k++)
			q->distance[j][k] = (float)in->distance[order[j]][order[k]];
	}
	for (size_t r = 0; r < LEARN_RESOURCES; r++)
		for (size_t i = 0; i < LEARN_PAST; i++)
			q->idle[r][i] = (float)in->idle[r][i];
}

/* ---- the encoder of clients ---- */

static void embed(const struct network_parameters *p, struct learn_word word[N][L],
		  struct network_encoder *e)
{
	for (size_t l = 0; l < L; l++)
		for (size_t k = 0; k < N; k++) {
			const struct learn_word *w = &word[k][l];
			const real *first = p->embedding[w->id], *next = p->embedding[w->next];
			real part = w->part, on = w->id != 0;

			e->mask[l][k] = on;
			for (size_t i = 0; i < MODEL; i++)
				e->x[l][i][k] = on * (first[i] + part * (next[i] - first[i]) +
						      p->position[l][i]);
		}
}

/* y = W x + b for each place. */
static __always_inline void linear(int rows, int columns, const real *w, const real *bias,
				   lanes *x, lanes *y)
{
	for (int o = 0; o < rows; o++) {
#pragma omp simd
		for (int k = 0; k < N; k++) {
			real sum = bias ? bias[o] : 0;

#pragma GCC unroll 32
			for (int i = 0; i < columns; i++)
				sum += w[o * columns + i] * x[i][k];
			y[o][k] = sum;
		}
	}
}

/* Subtract the mean, and divide by the standard deviation. */
static __always_inline void centre(lanes *x, real *scale, const real *weight, const real *bias,
				   lanes *y)
{
#pragma omp simd
	for (int k = 0; k < N; k++) {
		real mean = 0, variance = 0, by;

#pragma GCC unroll 8
		for (int i = 0; i < MODEL; i++)
			mean += x[i][k] * ((real)1 / MODEL);
#pragma GCC unroll 8
		for (int i = 0; i < MODEL; i++)
			variance += (x[i][k] - mean) * (x[i][k] - mean) * ((real)1 / MODEL);
		by = 1 / SQRT(variance + NORM_LEAST);
		scale[k] = by;
#pragma GCC unroll 8
		for (int i = 0; i < MODEL; i++) {
			x[i][k] = (x[i][k] - mean) * by;
			y[i][k] = weight[i] * x[i][k] + bias[i];
		}
	}
}

/* Softmax over the places that a place looks at. */
static __always_inline void attend(struct network_encoder *e, int h, int l)
{
	lanes *at = e->attention[h][l];
	lanes *query = &e->query[l][h * HEAD];
	lanes most, sum;

	for (int k = 0; k < N; k++) {
		most[k] = NOT_SEEN;
		sum[k] = 0;
	}
	for (int m = 0; m < L; m++) {
		lanes *key = &e->key[m][h * HEAD];

#pragma omp simd
		for (int k = 0; k < N; k++) {
			real s = 0;

#pragma GCC unroll 4
			for (int i = 0; i < HEAD; i++)
				s += query[i][k] * key[i][k];
			s = s * (real)0.5 + (1 - e->mask[m][k]) * NOT_SEEN;
			at[m][k] = s;
			most[k] = s > most[k] ? s : most[k];
		}
	}
	for (int m = 0; m < L; m++) {
#pragma omp simd
		for (int k = 0; k < N; k++) {
			at[m][k] = EXP(at[m][k] - most[k]);
			sum[k] += at[m][k];
		}
	}
#pragma omp simd
	for (int k = 0; k < N; k++)
		sum[k] = 1 / sum[k];
	for (int m = 0; m < L; m++) {
#pragma omp simd
		for (int k = 0; k < N; k++)
			at[m][k] *= sum[k];
	}
	for (int i = 0; i < HEAD; i++) {
#pragma omp simd
		for (int k = 0; k < N; k++) {
			real s = 0;

#pragma GCC unroll 16
			for (int m = 0; m < L; m++)
				s += at[m][k] * e->value[m][h * HEAD + i][k];
			e->head[l][h * HEAD + i][k] = s;
		}
	}
}

NETWORK_CLONES
static void encode(const struct network_parameters *p, struct network_encoder *e)
{
	for (int l = 0; l < L; l++) {
		linear(MODEL, MODEL, p->query[0], p->query_bias, e->x[l], e->query[l]);
		linear(MODEL, MODEL, p->key[0], NULL, e->x[l], e->key[l]);
		linear(MODEL, MODEL, p->value[0], p->value_bias, e->x[l], e->value[l]);
	}
	for (int h = 0; h < NETWORK_HEADS; h++)
		for (int l = 0; l < L; l++)
			attend(e, h, l);
	for (int l = 0; l < L; l++) {
		linear(MODEL, MODEL, p->heads[0], p->heads_bias, e->head[l], e->centred1[l]);
		for (int i = 0; i < MODEL; i++)
			for (int k = 0; k < N; k++)
				e->centred1[l][i][k] += e->x[l][i][k];
		centre(e->centred1[l], e->scale1[l], p->norm1, p->norm1_bias, e->y[l]);
		linear(INNER, MODEL, p->inner[0], p->inner_bias, e->y[l], e->inner[l]);
		for (int i = 0; i < INNER; i++)
			for (int k = 0; k < N; k++)
				e->inner[l][i][k] = e->inner[l][i][k] > 0 ? e->inner[l][i][k] : 0;
		linear(MODEL, INNER, p->outer[0], p->outer_bias, e->inner[l], e->centred2[l]);
		for (int i = 0; i < MODEL; i++)
			for (int k = 0; k < N; k++)
				e->centred2[l][i][k] += e->y[l][i][k];
		centre(e->centred2[l], e->scale2[l], p->norm2, p->norm2_bias, e->out[l]);
		for (int i = 0; i < MODEL; i++)
			for (int k = 0; k < N; k++)
				e->out[l][i][k] *= e->mask[l][k];
	}
}

/* ---- convolutional networks ---- */

/* Set the border beside rows to zero, columns that are not used, and the row below. */
static __always_inline void mask_cells(real *cells, size_t rows, size_t columns, size_t width)
{
	for (size_t r = 0; r < rows; r++) {
		real *row = cells + network_row(r, width);

		row[-1] = 0;
		for (size_t i = columns; i <= width; i++)
			row[i] = 0;
	}
	if (rows < N)
		memset(cells + network_row(rows, width) - 1, 0,
		       NETWORK_STRIDE(width) * sizeof(*cells));
}

/* A pair of channels: convolution, ReLU, and the larger of both. */
static __always_inline void pool(const struct network_cnn *w, int c, const real *in, real *pooled,
				 real *won0, real *won1, size_t rows, size_t width, bool train)
{
	ptrdiff_t stride = NETWORK_STRIDE(width), end = (ptrdiff_t)rows * stride;
	const real *wa = w->wide[2 * c], *wb = w->wide[2 * c + 1];
	real bias_a = w->wide_bias[2 * c], bias_b = w->wide_bias[2 * c + 1];

	in += network_row(0, width) - 1;
	pooled += network_row(0, width) - 1;
	won0 += network_row(0, width) - 1;
	won1 += network_row(0, width) - 1;
#pragma omp simd
	for (ptrdiff_t i = 0; i < end; i++) {
		real a = bias_a, b = bias_b, most;

#pragma GCC unroll 9
		for (int k = 0; k < TAPS; k++) {
			real x = in[i + (k / 3 - 1) * stride + k % 3 - 1];

			a += wa[k] * x;
			b += wb[k] * x;
		}
		most = a > b ? a : b;
		pooled[i] = most > 0 ? most : 0;
		if (train) {
			won0[i] = most > 0 && a >= b ? 1 : 0;
			won1[i] = most > 0 && a < b ? 1 : 0;
		}
	}
}

static __always_inline void narrow(const struct network_cnn *w, const real *pooled, real *out,
				   size_t rows, size_t width)
{
	ptrdiff_t stride = NETWORK_STRIDE(width), end = (ptrdiff_t)rows * stride;
	const ptrdiff_t channel = (ptrdiff_t)NETWORK_BUFFER(width);
	real bias = w->narrow_bias[0];

	pooled += network_row(0, width) - 1;
	out += network_row(0, width) - 1;
#pragma omp simd
	for (ptrdiff_t i = 0; i < end; i++) {
		real sum = bias;

#pragma GCC unroll 4
		for (int c = 0; c < NETWORK_POOLED; c++) {
#pragma GCC unroll 9
			for (int k = 0; k < TAPS; k++)
				sum += w->narrow[c][k] *
					pooled[c * channel + i + (k / 3 - 1) * stride + k % 3 - 1];
		}
		out[i] = sum;
	}
}

static __always_inline void cnn(const struct network_cnn *w, const real *in, real *pooled,
				real *won, real *out, size_t rows, size_t columns, size_t width,
				bool train)
{
	const size_t channel = NETWORK_BUFFER(width);

	for (int c = 0; c < NETWORK_POOLED; c++) {
		real *first = won + 2 * (size_t)c * channel, *second = first + channel;

		pool(w, c, in, pooled + (size_t)c * channel, first, second, rows, width, train);
		mask_cells(pooled + (size_t)c * channel, rows, columns, width);
		if (train) {
			mask_cells(first, rows, columns, width);
			mask_cells(second, rows, columns, width);
		}
	}
	narrow(w, pooled, out, rows, width);
}

NETWORK_CLONES
static void cnn_clients(const struct network_cnn *w, struct network_wide *c, size_t n)
{
	cnn(w, c->in, c->pooled[0], c->won[0], c->out, n, D, D, false);
}

NETWORK_CLONES
static void cnn_clients_train(const struct network_cnn *w, struct network_wide *c, size_t n)
{
	cnn(w, c->in, c->pooled[0], c->won[0], c->out, n, D, D, true);
}

NETWORK_CLONES
static void cnn_distances(const struct network_cnn *w, struct network_square *c, size_t n)
{
	cnn(w, c->in, c->pooled[0], c->won[0], c->out, n, n, N, true);
}

/* ---- the answer ---- */

static void make_positive(struct network_positive *v, size_t n)
{
	v->mean = 0;
	for (size_t i = 0; i < n; i++) {
		real x = v->raw[i];

		v->value[i] = MAX(x, 0) + LOG1P(EXP(-FABS(x))) + LEAST;
		v->mean += v->value[i] / (real)n;
	}
	for (size_t i = 0; i < n; i++)
		v->value[i] /= v->mean;
}

/* v1 of each resource. */
static void see_past(const struct network_parameters *p, float idle[][LEARN_PAST], size_t n,
		     struct network_answer *a)
{
	for (size_t r = 0; r < LEARN_RESOURCES; r++) {
		for (size_t i = 0; i < NETWORK_TIMES; i++) {
			real sum = p->times_bias[i];

			for (size_t t = 0; t < LEARN_PAST; t++)
				sum += p->times[i][t] * (real)idle[r][t];
			a->times[r][i] = sum;
		}
		for (size_t i = 0; i < n; i++) {
			real sum = p->filter_bias[0];

			for (size_t k = 0; k < NETWORK_KERNEL; k++)
				sum += p->filter[k] * a->times[r][i + NETWORK_KERNEL - 1 - k];
			a->available[r].raw[i] = sum;
		}
		make_positive(&a->available[r], n);
	}
}

static real response(enum network_form form, real factor, real a, real b)
{
	real s = a + b, beta = s / a * (s / b) * (s + 1);

	switch (form) {
	case NETWORK_FORM_A:
		return factor / beta;
	case NETWORK_FORM_C:
		return 1 / a + 1 / b;
	default:
		return beta;
	}
}

/* v3 = (Mt + 1) M1 q of a resource, from the right: a product of matrices is not needed. */
NETWORK_CLONES
static void need(const struct network_wide *wide, const struct network_square *square,
		 const real *gain, size_t n, real *asked, struct network_positive *needed)
{
	const real *query = wide->in + network_row(0, D);
	real by = 1 / SQRT(D), q[D];

	for (size_t k = 0; k < D; k++)
		q[k] = query[k] * gain[k];
	for (size_t i = 0; i < n; i++) {
		const real *row = wide->out + network_row(i, D);
		real sum = 0;

#pragma omp simd reduction(+ : sum)
		for (size_t k = 0; k < D; k++)
			sum += row[k] * q[k];
		asked[i] = sum;
	}
	for (size_t i = 0; i < n; i++) {
		const real *row = square->out + network_row(i, N);
		real sum = asked[i];

		for (size_t k = 0; k < n; k++)
			sum += row[k] * asked[k];
		needed->raw[i] = sum * by;
	}
	make_positive(needed, n);
}

/* Logarithm of the softmax of the prior - x: with equal responses, the parts by weight. */
static void decide(const real *x, const real *prior, size_t n, real *log_p)
{
	real least = x[0] - prior[0], sum = 0, log_sum;

	for (size_t i = 1; i < n; i++)
		least = MIN(least, x[i] - prior[i]);
	for (size_t i = 0; i < n; i++)
		sum += EXP(least - x[i] + prior[i]);
	log_sum = LOG(sum);
	for (size_t i = 0; i < n; i++)
		log_p[i] = least - x[i] + prior[i] - log_sum;
}

static void answer(const struct network_weights *w, size_t n, struct network_pass *pass)
{
	struct network_answer *a = &pass->a;
	real factor = EXP(w->p.factor[0]);

	for (size_t r = 0; r < LEARN_RESOURCES; r++) {
		need(&pass->wide, &pass->square, w->p.gain[r], n, a->asked[r], &a->needed[r]);
		for (size_t i = 0; i < n; i++)
			a->response[r][i] = response(w->form, factor, a->available[r].value[i],
						     a->needed[r].value[i]);
		decide(a->response[r], a->prior, n, a->log_p[r]);
	}
}

/* M0, in the order of the question, of clients that were encoded in another. */
static void gather(const struct network_encoder *e, const uint8_t *order, size_t n,
		   struct network_wide *wide)
{
	for (size_t j = 0; j < n; j++) {
		real *row = wide->in + network_row(j, D);

		for (size_t i = 0; i < D; i++)
			row[i] = e->out[i / MODEL][i % MODEL][order[j]];
	}
	mask_cells(wide->in, n, D, D);
}

static void set_distances(float distance[N][N], size_t n, struct network_square *square)
{
	for (size_t j = 0; j < n; j++)
		for (size_t k = 0; k < n; k++)
			square->in[network_row(j, N) + k] = distance[j][k];
	mask_cells(square->in, n, n, N);
}

void network_forward(const struct network_weights *w, struct network_question *q,
		     bool train, struct network_pass *pass)
{
	static const uint8_t same[N] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

	embed(&w->p, q->word, &pass->e);
	encode(&w->p, &pass->e);
	gather(&pass->e, same, q->n, &pass->wide);
	set_distances(q->distance, q->n, &pass->square);
	if (train)
		cnn_clients_train(&w->p.clients, &pass->wide, q->n);
	else
		cnn_clients(&w->p.clients, &pass->wide, q->n);
	cnn_distances(&w->p.distances, &pass->square, q->n);
	see_past(&w->p, q->idle, q->n, &pass->a);
	for (size_t i = 0; i < q->n; i++)
		pass->a.prior[i] = q->prior[i];
	answer(w, q->n, pass);
}

/* ---- files ---- */

/* A block has the size of its field: a matrix, or a vector, which is one row. */
#define REALS(field)	(sizeof(((struct network_parameters *)NULL)[0].field) / sizeof(real))
#define BLOCK(field, row)							\
	{ #field, offsetof(struct network_parameters, field) / sizeof(real),	\
	  REALS(field) / REALS(row), REALS(row) }
#define MATRIX(field)	BLOCK(field, field[0])
#define VECTOR(field)	BLOCK(field, field)

const struct network_block network_blocks[] = {
	MATRIX(embedding),
	MATRIX(position),
	MATRIX(query),
	VECTOR(query_bias),
	MATRIX(key),
	MATRIX(value),
	VECTOR(value_bias),
	MATRIX(heads),
	VECTOR(heads_bias),
	VECTOR(norm1),
	VECTOR(norm1_bias),
	MATRIX(inner),
	VECTOR(inner_bias),
	MATRIX(outer),
	VECTOR(outer_bias),
	VECTOR(norm2),
	VECTOR(norm2_bias),
	MATRIX(times),
	VECTOR(times_bias),
	VECTOR(filter),
	VECTOR(filter_bias),
	MATRIX(clients.wide),
	VECTOR(clients.wide_bias),
	MATRIX(clients.narrow),
	VECTOR(clients.narrow_bias),
	MATRIX(distances.wide),
	VECTOR(distances.wide_bias),
	MATRIX(distances.narrow),
	VECTOR(distances.narrow_bias),
	MATRIX(gain),
	VECTOR(factor),
};

const size_t network_nr_blocks = sizeof(network_blocks) / sizeof(network_blocks[0]);

char network_form_letter(enum network_form form)
{
	static const char letter[NETWORK_FORMS] = {
		[NETWORK_FORM_B] = 'B', [NETWORK_FORM_A] = 'A', [NETWORK_FORM_C] = 'C',
	};

	return letter[form];
}

char *learn_network_write(const struct network_weights *w, size_t *size)
{
	const real *p = (const real *)&w->p;
	char *payload = NULL;
	FILE *f = open_memstream(&payload, size);
	bool bad;

	if (!f)
		return NULL;
	fprintf(f, "network 1\nform %c\n", network_form_letter(w->form));
	for (size_t i = 0; i < network_nr_blocks; i++) {
		const struct network_block *b = &network_blocks[i];

		fprintf(f, "%s %zu %zu", b->name, b->rows, b->columns);
		for (size_t k = 0; k < b->rows * b->columns; k++)
			fprintf(f, " %.9g", (double)p[b->offset + k]);
		putc('\n', f);
	}
	bad = ferror(f);
	if (!fclose(f) && !bad)
		return payload;
	free(payload);
	return NULL;
}

/**
 * struct network_model - what learn_network.load() makes
 * @w: the network
 * @group: of the question
 * @pass: values on the way
 */
struct network_model {
	struct network_weights w;
	struct vm_group group;
	struct network_pass pass;
};

static int read_block(struct lines *l, const struct network_block *b, real *p)
{
	bool factor = b->offset == offsetof(struct network_parameters, factor) / sizeof(real);
	double most = factor ? NETWORK_MAX_FACTOR : NETWORK_MAX_WEIGHT, weight;
	size_t size;
	int ret = lines_next(l, b->name);

	if (!ret)
		ret = lines_whole(l, "number of rows", b->rows, b->rows, &size);
	if (!ret)
		ret = lines_whole(l, "number of columns", b->columns, b->columns, &size);
	for (size_t k = 0; k < b->rows * b->columns && !ret; k++) {
		ret = lines_number(l, "weight", -most, most, &weight);
		if (!ret)
			p[b->offset + k] = (real)weight;
	}
	return ret ? ret : lines_done(l);
}

static int read_form(struct lines *l, enum network_form *form)
{
	const char *word = lines_next(l, "form") ? NULL : lines_word(l, "form");

	if (!word)
		return -EINVAL;
	for (unsigned int i = 0; i < NETWORK_FORMS; i++)
		if (word[0] == network_form_letter(i) && !word[1]) {
			*form = i;
			return lines_done(l);
		}
	return lines_refuse(l, "form is \"%.32s\"; it must be A, B or C; train again", word);
}

static int read_weights(struct network_weights *w, struct lines *l)
{
	size_t version;
	int ret = lines_next(l, "network");

	if (!ret)
		ret = lines_whole(l, "version", 1, 1, &version);
	if (!ret)
		ret = lines_done(l);
	if (!ret)
		ret = read_form(l, &w->form);
	for (size_t i = 0; i < network_nr_blocks && !ret; i++)
		ret = read_block(l, &network_blocks[i], (real *)&w->p);
	return ret ? ret : lines_end(l);
}

static int network_load(void **data, const char *payload, size_t size, char *why, size_t len)
{
	struct network_model *m = calloc(1, sizeof(*m));
	struct lines l;
	int ret;

	*data = NULL;
	lines_init(&l, payload, size, why, len);
	if (!m) {
		lines_refuse(&l, "out of memory");
		return -ENOMEM;
	}
	ret = read_weights(&m->w, &l);
	if (ret)
		free(m);
	else
		*data = m;
	return ret;
}

/* ---- serving ---- */

static void start(struct network_model *m, const struct learn_input *in)
{
	float idle[LEARN_RESOURCES][LEARN_PAST];

	group_make(in, &m->group);
	embed(&m->w.p, m->group.word, &m->pass.e);
	encode(&m->w.p, &m->pass.e);
	for (size_t r = 0; r < LEARN_RESOURCES; r++)
		for (size_t i = 0; i < LEARN_PAST; i++)
			idle[r][i] = (float)in->idle[r][i];
	see_past(&m->w.p, idle, in->n, &m->pass.a);
}

/* Set the distances in an order; return whether they are not those that are there. */
static bool order_distances(const struct learn_input *in, const uint8_t *order,
			    struct network_square *square)
{
	bool changed = false;

	for (size_t j = 0; j < in->n; j++)
		for (size_t k = 0; k < in->n; k++) {
			real *cell = &square->in[network_row(j, N) + k];
			real distance = (real)in->distance[order[j]][order[k]];

			changed |= *cell < distance || *cell > distance;
			*cell = distance;
		}
	return changed;
}

/* Serve a VM; @first of its group. */
static void serve(struct network_model *m, const struct learn_input *in, size_t served, bool first,
		  double share[LEARN_RESOURCES])
{
	struct network_pass *pass = &m->pass;
	uint8_t order[N];

	group_order(&m->group, in, served, order);
	gather(&pass->e, order, in->n, &pass->wide);
	cnn_clients(&m->w.p.clients, &pass->wide, in->n);
	if (order_distances(in, order, &pass->square) || first) {
		mask_cells(pass->square.in, in->n, in->n, N);
		cnn_distances(&m->w.p.distances, &pass->square, in->n);
	}
	for (size_t i = 0; i < in->n; i++)
		pass->a.prior[i] = m->group.prior[order[i]];
	answer(&m->w, in->n, pass);
	for (size_t r = 0; r < LEARN_RESOURCES; r++)
		share[r] = (double)EXP(pass->a.log_p[r][0]) * in->now[r];
}

void learn_network_serve(void *data, const struct learn_input *in,
			 double share[][LEARN_RESOURCES])
{
	start(data, in);
	for (size_t j = 0; j < in->n; j++)
		serve(data, in, j, !j, share[j]);
}

static void network_share(void *data, const struct learn_input *in, double share[LEARN_RESOURCES])
{
	start(data, in);
	serve(data, in, 0, true, share);
}

const struct learn_model_ops learn_network = {
	.name = "network",
	.summary = "the response network, learned from earlier periods",
	.learned = true,
	.load = network_load,
	.free = free,
	.share = network_share,
};
