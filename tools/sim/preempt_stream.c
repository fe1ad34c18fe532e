// SPDX-License-Identifier: GPL-2.0-only
/* Streams of jobs: made from a seed, written, and read. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "preempt_sim.h"

/* ---- generated ---- */

static double uniform(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*seed >> 11) / (double)(1ULL << 53);
}

static double normal(uint64_t *seed)
{
	double u = uniform(seed), v = uniform(seed);

	return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

static double between(uint64_t *seed, double from, double to)
{
	return from * pow(to / from, uniform(seed));
}

/*
 * Kinds of work: how often, per slot and cycle, memory, state, tiles, and how
 * instructions grow with the size. The kinds are the same for all seeds; the
 * sizes of jobs are not.
 */
static const struct {
	double weight, ipc, bound, miss, kib, tile, exponent;
	bool idempotent;
} kinds[] = {
	{ 3, 2.4, 0.05, 0.02, 304, 400e3, 1.5, true },	/* products of matrices */
	{ 2, 2.0, 0.10, 0.05, 128, 900e3, 1.0, true },	/* fractals */
	{ 2, 1.7, 0.20, 0.10, 192, 150e3, 1.0, true },	/* digests */
	{ 1, 1.5, 0.35, 0.25, 64, 2e6, 1.2, false },	/* simulations */
	{ 3, 0.5, 0.80, 0.70, 96, 300e3, 1.0, true },	/* copies */
	{ 2, 0.3, 0.90, 0.90, 48, 1.2e6, 1.0, true },	/* random walks */
	{ 2, 0.7, 0.70, 0.60, 160, 100e3, 1.0, false },	/* sums in place */
	{ 1, 1.0, 0.55, 0.45, 256, 600e3, 1.1, true },	/* pictures */
};

#define NR_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int by_arrival(const void *a, const void *b)
{
	const struct psim_job *x = a, *y = b;

	return (x->arrival > y->arrival) - (x->arrival < y->arrival);
}

void psim_generate(struct psim_stream *s, const struct psim_shape *shape)
{
	uint64_t seed = shape->seed * 0x9e3779b97f4a7c15ULL + 1;
	double weights = 0, work = 0, end;

	for (size_t k = 0; k < NR_KINDS; k++)
		weights += kinds[k].weight;
	for (int i = 0; i < 10; i++)
		uniform(&seed);
	s->n = shape->jobs;
	for (size_t i = 0; i < s->n; i++) {
		double pick = uniform(&seed) * weights, alone;
		struct psim_job *j = &s->job[i];
		size_t k = 0;

		while (k + 1 < NR_KINDS && pick >= kinds[k].weight)
			pick -= kinds[k++].weight;
		/* alone and on one slot from a millisecond to some tens */
		alone = between(&seed, 1e-3, 40e-3) * PSIM_HZ;
		j->vgpu = (uint32_t)(uniform(&seed) * 6);
		j->kind = (uint32_t)k + 1;
		j->ipc = kinds[k].ipc * exp(0.05 * normal(&seed));
		j->inst = floor(alone * kinds[k].ipc);
		/* what it takes for its size differs with its data */
		j->size = floor(pow(j->inst * exp(0.15 * normal(&seed)) / 10,
				    1 / kinds[k].exponent)) + 1;
		j->width = uniform(&seed) < shape->wide ?
			2 + (unsigned int)(uniform(&seed) * (shape->slots - 1)) : 1;
		if (j->width > shape->slots)
			j->width = shape->slots;
		j->bound = fmin(fmax(kinds[k].bound + 0.04 * normal(&seed), 0.01), 0.98);
		j->miss = fmin(fmax(kinds[k].miss + 0.04 * normal(&seed), 0), 1);
		j->bytes = floor(kinds[k].kib * 1024);
		j->tile = floor(kinds[k].tile * exp(0.1 * normal(&seed)));
		j->idempotent = kinds[k].idempotent;
		work += j->inst / j->ipc;
	}
	/* calm and busy spells take turns; the times between are then scaled */
	end = work / (shape->load * shape->slots);
	for (size_t i = 0; i < s->n; i++) {
		double t = uniform(&seed);

		t -= 0.11 * sin(2 * M_PI * 3 * t) * 0.45;
		s->job[i].arrival = floor(fmax(t, 0) * end);
	}
	qsort(s->job, s->n, sizeof(s->job[0]), by_arrival);
}

/* ---- files ---- */

static const char header[] =
	"arrival_us,vgpu,kind,size,slots,instr,ipc,bound,miss,bytes,tile_cycles,idempotent";

int psim_write(const struct psim_stream *s, const struct psim_shape *shape, FILE *f)
{
	/* the tag in parts: it is that of the stream, not of this file */
	fprintf(f, "# SPDX-%s: GPL-2.0-only\n", "License-Identifier");
	fprintf(f, "# mgpu-sim-preempt --generate %llu --jobs %u --load %g --slots %u --wide %g\n",
		(unsigned long long)shape->seed, shape->jobs, shape->load, shape->slots,
		shape->wide);
	fprintf(f, "%s\n", header);
	for (size_t i = 0; i < s->n; i++) {
		const struct psim_job *j = &s->job[i];

		fprintf(f, "%.3f,%u,%u,%.0f,%u,%.0f,%.4f,%.4f,%.4f,%.0f,%.0f,%d\n",
			j->arrival / PSIM_HZ * 1e6, j->vgpu, j->kind, j->size, j->width,
			j->inst, j->ipc, j->bound, j->miss, j->bytes, j->tile,
			j->idempotent);
	}
	return fflush(f) || ferror(f) ? -EIO : 0;
}

/* The columns, in their order: what they may be. */
static const struct {
	const char *name;
	double min, max;
	bool whole;
} column[] = {
	{ "arrival_us", 0, 1e12, false },
	{ "vgpu", 0, 4095, true },
	{ "kind", 1, NR_KINDS, true },	/* enum mgpu_compute_op, for mgpud */
	{ "size", 1, 1e15, false },
	{ "slots", 1, PREEMPT_SLOTS_MAX, true },
	{ "instr", 1, 1e15, false },
	{ "ipc", 1e-3, 1e3, false },
	{ "bound", 0, 1, false },
	{ "miss", 0, 1, false },
	{ "bytes", 0, 1e12, false },
	{ "tile_cycles", 1, 1e12, false },
	{ "idempotent", 0, 1, true },
};

#define NR_COLUMNS (sizeof(column) / sizeof(column[0]))

__attribute__((format(printf, 3, 4)))
static int fail(char *why, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int read_line(char *line, double v[NR_COLUMNS], char *why, size_t size)
{
	char *p = line;

	for (size_t c = 0; c < NR_COLUMNS; c++) {
		size_t len = strcspn(p, ",");
		char *end;

		if ((p[len] == ',') != (c + 1 < NR_COLUMNS))
			return fail(why, size, "there must be %zu columns: %s", NR_COLUMNS,
				    header);
		p[len] = '\0';
		errno = 0;
		v[c] = strtod(p, &end);
		if (errno || end == p || *end ||
		    !(v[c] >= column[c].min && v[c] <= column[c].max) ||
		    (column[c].whole && v[c] != floor(v[c])))
			return fail(why, size, "%s is '%.40s', and must be a %snumber from %.15g to %.15g",
				    column[c].name, p, column[c].whole ? "whole " : "",
				    column[c].min, column[c].max);
		p += len + 1;
	}
	return 0;
}

int psim_read(struct psim_stream *s, const char *path, char *why, size_t size)
{
	FILE *f = fopen(path, "re");
	unsigned int number = 0;
	bool titled = false;
	char line[512];
	int ret = 0;

	if (!f)
		return fail(why, size, "%s: %s", path, strerror(errno));
	s->n = 0;
	while (!ret && fgets(line, sizeof(line), f)) {
		double v[NR_COLUMNS];
		size_t len = strlen(line);
		char what[256];

		number++;
		if (!len || line[len - 1] != '\n') {
			ret = fail(why, size, "%s:%u: the line is too long or does not end",
				   path, number);
			break;
		}
		line[len - 1] = '\0';
		if (line[0] == '#' || !line[0])
			continue;
		if (!titled) {
			if (strcmp(line, header)) {
				ret = fail(why, size, "%s:%u: the columns must be: %s", path,
					   number, header);
				break;
			}
			titled = true;
			continue;
		}
		if (s->n == PSIM_JOBS_MAX) {
			ret = fail(why, size, "%s: more than %d jobs", path, PSIM_JOBS_MAX);
			break;
		}
		if (read_line(line, v, what, sizeof(what))) {
			ret = fail(why, size, "%s:%u: %s", path, number, what);
			break;
		}
		s->job[s->n++] = (struct psim_job){
			.arrival = v[0] * 1e-6 * PSIM_HZ, .vgpu = (uint32_t)v[1],
			.kind = (uint32_t)v[2], .size = v[3], .width = (unsigned int)v[4],
			.inst = v[5], .ipc = v[6], .bound = v[7], .miss = v[8],
			.bytes = v[9], .tile = v[10], .idempotent = v[11] > 0,
		};
	}
	if (!ret && ferror(f))
		ret = fail(why, size, "%s: cannot be read", path);
	if (!ret && !s->n)
		ret = fail(why, size, "%s: has no jobs", path);
	fclose(f);
	qsort(s->job, s->n, sizeof(s->job[0]), by_arrival);
	return ret;
}
