// SPDX-License-Identifier: GPL-2.0-only
/*
 * The jobs of mgpu-compute, and what their results should be: computed here from
 * the same input, one thing after the other.
 */
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

#define ITERATIONS	255
#define CHUNK		4096	/* bytes */
#define STEPS		64
#define DIRT		0xa5	/* a byte that fills no result */

/**
 * struct kind - an operation
 * @name: name on the command line
 * @adds: adds to the old content: running it again changes the result
 * @make: allocate, fill in the job
 * @expect: the result of one run, from what is in @w->in and @w->want
 */
struct kind {
	const char *name;
	bool adds;
	int (*make)(struct work *w, struct compute *c, uint32_t n);
	void (*expect)(struct work *w);
};

/* Bytes of a picture of n times n pixels, in whole words. */
static uint64_t area(uint32_t n)
{
	return ((uint64_t)n * n * 4 + 7) / 8 * 8;
}

static uint64_t in_word(const struct work *w, int i, uint64_t at)
{
	return le64toh(((const uint64_t *)w->in[i].map)[at]);
}

static void put_word(struct work *w, uint64_t at, uint64_t v)
{
	((uint64_t *)(void *)w->want)[at] = htole64(v);
}

static void put_half(struct work *w, uint64_t at, uint32_t v)
{
	((uint32_t *)(void *)w->want)[at] = htole32(v);
}

static int alloc(struct work *w, struct compute *c, uint64_t out, uint64_t in0,
		 uint64_t in1)
{
	int ret = compute_alloc(c, out, &w->out);

	if (!ret && in0)
		ret = compute_alloc(c, in0, &w->in[0]);
	if (!ret && in1)
		ret = compute_alloc(c, in1, &w->in[1]);
	return ret;
}

static int make_fill(struct work *w, struct compute *c, uint32_t n)
{
	int ret = alloc(w, c, area(n), 0, 0);

	if (!ret)
		compute_job_fill(&w->job, &w->out, 0, area(n),
				 0x0123456789abcdef);
	return ret;
}

static void expect_fill(struct work *w)
{
	uint64_t i;

	for (i = 0; i < w->out.size / 8; i++)
		put_word(w, i, 0x0123456789abcdef);
}

static int make_copy(struct work *w, struct compute *c, uint32_t n)
{
	int ret = alloc(w, c, area(n), area(n), 0);

	if (!ret)
		compute_job_copy(&w->job, &w->out, 0, &w->in[0], 0, area(n));
	return ret;
}

static void expect_copy(struct work *w)
{
	memcpy(w->want, w->in[0].map, w->out.size);
}

static int make_accumulate(struct work *w, struct compute *c, uint32_t n)
{
	int ret = alloc(w, c, area(n), area(n), 0);

	if (!ret)
		compute_job_accumulate(&w->job, &w->out, 0, &w->in[0], 0,
				       area(n));
	return ret;
}

static void expect_accumulate(struct work *w)
{
	const uint64_t *was = (const void *)w->want;
	uint64_t i;

	for (i = 0; i < w->out.size / 8; i++)
		put_word(w, i, le64toh(was[i]) + in_word(w, 0, i));
}

/* From two thirds of the size, rounded up. */
static int make_scale(struct work *w, struct compute *c, uint32_t n)
{
	uint32_t m = n * 2 / 3 + 1;
	struct compute_picture to = { 0, n, n, n * 4 };
	struct compute_picture from = { 0, m, m, m * 4 };
	int ret = alloc(w, c, area(n), area(m), 0);

	if (!ret)
		compute_job_scale(&w->job, &w->out, &to, &w->in[0], &from);
	return ret;
}

/* Return a component of the colour between two neighbours, @part / 256 of the way. */
static uint32_t mix(uint32_t a, uint32_t b, uint32_t part, int colour)
{
	a = a >> (8 * colour) & 0xff;
	b = b >> (8 * colour) & 0xff;
	return (a * (256 - part) + b * part) / 256 << (8 * colour);
}

/* Where the centre of pixel @i is in the source, 1/65536 pixels. */
static int64_t centre(int64_t i, uint32_t from, uint32_t to)
{
	int64_t step = ((int64_t)from << 16) / to;
	int64_t at = i * step + step / 2 - 32768;

	return at < 0 ? 0 : at;
}

static void expect_scale(struct work *w)
{
	const struct mgpu_compute_scale *p = &w->job.cmd.scale;
	uint32_t n = le32toh(p->dst.width), m = le32toh(p->src.width);
	const uint32_t *src = w->in[0].map;
	uint32_t x, y, x0, x1, y0, y1, px, above, below;
	int64_t sx, sy;
	int k;

	for (y = 0; y < n; y++) {
		sy = centre(y, m, n);
		y0 = (uint32_t)(sy >> 16);
		y1 = y0 + 1 < m ? y0 + 1 : y0;
		for (x = 0; x < n; x++) {
			sx = centre(x, m, n);
			x0 = (uint32_t)(sx >> 16);
			x1 = x0 + 1 < m ? x0 + 1 : x0;
			for (k = 0, px = 0; k < 3; k++) {
				above = mix(le32toh(src[(uint64_t)y0 * m + x0]),
					    le32toh(src[(uint64_t)y0 * m + x1]),
					    (uint32_t)(sx >> 8) & 0xff, k);
				below = mix(le32toh(src[(uint64_t)y1 * m + x0]),
					    le32toh(src[(uint64_t)y1 * m + x1]),
					    (uint32_t)(sx >> 8) & 0xff, k);
				px |= mix(above, below,
					  (uint32_t)(sy >> 8) & 0xff, k);
			}
			put_half(w, (uint64_t)y * n + x, px);
		}
	}
}

static int make_matmul(struct work *w, struct compute *c, uint32_t n)
{
	int ret;

	if (n > MGPU_COMPUTE_MAX_N) {
		snprintf(c->message, sizeof(c->message),
			 "a matrix may have at most --size %d", MGPU_COMPUTE_MAX_N);
		return -EINVAL;
	}
	ret = alloc(w, c, area(n), area(n), area(n));
	if (!ret)
		compute_job_matmul(&w->job, &w->out, 0, &w->in[0], 0,
				   &w->in[1], 0, n);
	return ret;
}

static void expect_matmul(struct work *w)
{
	uint32_t n = le32toh(w->job.cmd.matmul.n), i, j, k, v;
	const uint32_t *a = w->in[0].map, *b = w->in[1].map;
	uint32_t *c = (void *)w->want;

	memset(c, 0, (size_t)n * n * 4);
	for (i = 0; i < n; i++) {
		for (k = 0; k < n; k++) {
			v = le32toh(a[(uint64_t)i * n + k]);
			for (j = 0; j < n; j++)
				c[(uint64_t)i * n + j] = htole32
					(le32toh(c[(uint64_t)i * n + j]) +
					 v * le32toh(b[(uint64_t)k * n + j]));
		}
	}
}

static int make_mandelbrot(struct work *w, struct compute *c, uint32_t n)
{
	const int64_t one = 1LL << MGPU_COMPUTE_FIXED_SHIFT;
	struct compute_view view = {
		.width = n, .height = n, .iterations = ITERATIONS,
		.left = -2 * one, .top = -3 * one / 2,
		.dx = 3 * one / n, .dy = 3 * one / n,
	};
	int ret = alloc(w, c, area(n) + (ITERATIONS + 1) * 8, 0, 0);

	if (!ret)
		compute_job_mandelbrot(&w->job, &w->out, 0, area(n), &view);
	return ret;
}

static void expect_mandelbrot(struct work *w)
{
	const struct mgpu_compute_mandelbrot *p = &w->job.cmd.mandelbrot;
	uint32_t n = le32toh(p->width), i, j, k;
	uint64_t hist[ITERATIONS + 1] = { 0 };
	int64_t cx, cy, x, y, xx, yy;

	for (j = 0; j < n; j++) {
		for (i = 0; i < n; i++) {
			cx = (int64_t)le64toh(p->left) +
			     i * (int64_t)le64toh(p->dx);
			cy = (int64_t)le64toh(p->top) +
			     j * (int64_t)le64toh(p->dy);
			x = 0;
			y = 0;
			for (k = 0; k < ITERATIONS; k++) {
				xx = x * x;
				yy = y * y;
				if (xx + yy > 4LL << 56)
					break;
				y = (x * y >> 27) + cy;
				x = ((xx - yy) >> 28) + cx;
			}
			put_half(w, (uint64_t)j * n + i, k);
			hist[k]++;
		}
	}
	for (k = 0; k <= ITERATIONS; k++)
		put_word(w, area(n) / 8 + k, hist[k]);
}

static int make_hash(struct work *w, struct compute *c, uint32_t n)
{
	uint64_t chunks = (area(n) + CHUNK - 1) / CHUNK;
	int ret = alloc(w, c, (chunks + 1) * 8, area(n), 0);

	if (!ret)
		compute_job_hash(&w->job, &w->out, 8, 0, &w->in[0], 0, area(n),
				 CHUNK);
	return ret;
}

static void expect_hash(struct work *w)
{
	uint64_t words = w->in[0].size / 8, i, h = 0, sum = 0, chunk = 0;

	for (i = 0; i < words; i++) {
		if (i % (CHUNK / 8) == 0)
			h = ~chunk++;
		h = (h ^ in_word(w, 0, i)) * MGPU_COMPUTE_MIX;
		h ^= h >> 32;
		if (i + 1 == words || (i + 1) % (CHUNK / 8) == 0) {
			put_word(w, chunk, h);
			sum += h;
		}
	}
	put_word(w, 0, sum);
}

static int make_gather(struct work *w, struct compute *c, uint32_t n)
{
	struct compute_walks walks = { .seed = 42, .steps = STEPS };
	int ret;

	while (16ULL << walks.table_log2 <= area(n))
		walks.table_log2++;
	walks.walks = n * n / 256 + 1;
	ret = alloc(w, c, (walks.walks + 1) * 8ULL, 8ULL << walks.table_log2, 0);
	if (!ret)
		compute_job_gather(&w->job, &w->out, 8, 0, &w->in[0], 0,
				   &walks);
	return ret;
}

static void expect_gather(struct work *w)
{
	const struct mgpu_compute_gather *p = &w->job.cmd.gather;
	uint64_t entries = w->in[0].size / 8, sum = 0, found, at, v;
	uint32_t walk, step;

	for (walk = 0; walk < le32toh(p->walks); walk++) {
		at = (le64toh(p->seed) + walk) * MGPU_COMPUTE_MIX;
		found = 0;
		for (step = 0; step < STEPS; step++) {
			v = in_word(w, 0, (at >> 32) % entries);
			found += v;
			at = (at + v + 1) * MGPU_COMPUTE_MIX;
		}
		put_word(w, walk + 1, found);
		sum += found;
	}
	put_word(w, 0, sum);
}

static const struct kind kinds[] = {
	{ "fill", false, make_fill, expect_fill },
	{ "copy", false, make_copy, expect_copy },
	{ "scale", false, make_scale, expect_scale },
	{ "matmul", false, make_matmul, expect_matmul },
	{ "mandelbrot", false, make_mandelbrot, expect_mandelbrot },
	{ "hash", false, make_hash, expect_hash },
	{ "gather", false, make_gather, expect_gather },
	{ "accumulate", true, make_accumulate, expect_accumulate },
};

/* The kind with a number counted from 0; NULL when there are no more. */
const struct kind *work_kind(unsigned int i)
{
	return i < sizeof(kinds) / sizeof(kinds[0]) ? &kinds[i] : NULL;
}

const char *work_name(const struct kind *kind)
{
	return kind->name;
}

static void random_words(void *p, uint64_t size, uint64_t seed)
{
	uint64_t *to = p, i, z;

	for (i = 0; i < size / 8; i++) {
		z = (seed + i) * 0x9e3779b97f4a7c15ULL;
		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
		z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
		to[i] = htole64(z ^ z >> 31);
	}
}

/*
 * Make a job of a size: n times n pixels or numbers, or as many bytes.  Returns 0
 * or a negative errno with a message in @c; work_close() in either case.
 */
int work_open(struct work *w, struct compute *c, const struct kind *kind,
	      uint32_t size, bool verify)
{
	uint64_t seed = 1;
	int ret, i;

	memset(w, 0, sizeof(*w));
	w->kind = kind;
	ret = kind->make(w, c, size);
	if (ret)
		return ret;
	for (i = 0; i < 2; i++) {
		random_words(w->in[i].map, w->in[i].size, seed);
		seed += w->in[i].size;
	}
	if (!verify)
		return 0;

	w->want = calloc(1, w->out.size);
	if (!w->want) {
		snprintf(c->message, sizeof(c->message),
			 "no memory for what %s should give", kind->name);
		return -ENOMEM;
	}
	/* Where a result has holes, what was there must stay. */
	memset(w->want, DIRT, w->out.size);
	if (kind->adds)
		memcpy(w->out.map, w->want, w->out.size);
	else
		kind->expect(w);
	return 0;
}

void work_close(struct work *w, struct compute *c)
{
	free(w->want);
	compute_free(c, &w->out);
	compute_free(c, &w->in[0]);
	compute_free(c, &w->in[1]);
}

/* Before each run, so that the result of the one before cannot pass for its own. */
void work_before(struct work *w)
{
	if (!w->want)
		return;
	if (w->kind->adds)
		w->kind->expect(w);
	else
		memset(w->out.map, DIRT, w->out.size);
}

/* Return whether the result is right, and in @at the first wrong byte. */
bool work_right(const struct work *w, size_t *at)
{
	const uint8_t *out = w->out.map;

	if (!w->want || !memcmp(out, w->want, w->out.size))
		return true;
	for (*at = 0; out[*at] == w->want[*at]; (*at)++)
		;
	return false;
}
