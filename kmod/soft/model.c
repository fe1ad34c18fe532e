// SPDX-License-Identifier: GPL-2.0-only
/*
 * Model of a GPU.  Pure: builds in user space too.
 *
 * The parts of a GPU that a job needs work beside each other, so a tile takes the time of
 * its slowest part: the roofline model (Williams, Waterman, Patterson: Roofline, CACM 52,
 * 2009).  The command processor comes before them.  Engines share the memory's bandwidth by
 * max-min fairness: those whose jobs need much of it slow each other down, and a job that
 * needs less than an equal part of it is not slowed down.
 */
#ifdef __KERNEL__
#include <linux/kernel.h>
#else
#include <stdio.h>
#include <stdlib.h>
#endif

#include "soft/model.h"

/*
 * Pixel rate (raster units times clock), arithmetic (FP32 units times two times clock) and
 * memory bandwidth as published; upload by the bus: PCIe 3.0 with 4 and 16 lanes, or half
 * of the shared memory's bandwidth.  The time of a command is an assumption.
 */
static const struct preset {
	const char *name;
	struct mgpu_model model;
} presets[] = {
	/* Intel UHD Graphics 630, 24 execution units, 1.15 GHz, DDR4-2666 in two channels */
	{ "uhd630", { 3450, 20800, 5000, 441600, 41600, 1 } },
	/* NVIDIA GeForce GT 1030, GDDR5 */
	{ "gt1030", { 23490, 3940, 5000, 1127000, 48060, 1 } },
	/* NVIDIA T4 */
	{ "t4", { 101760, 15750, 5000, 8141000, 320000, 1 } },
};

static const struct key {
	const char *name;
	size_t offset;
	u32 min;
	u32 max;
} keys[] = {
	{ "fill", offsetof(struct mgpu_model, fill), 1, MGPU_MODEL_MAX },
	{ "upload", offsetof(struct mgpu_model, upload), 1, MGPU_MODEL_MAX },
	{ "command", offsetof(struct mgpu_model, command), 0, MGPU_MODEL_MAX },
	{ "inst", offsetof(struct mgpu_model, inst), 1, MGPU_MODEL_MAX },
	{ "memory", offsetof(struct mgpu_model, memory), 1, MGPU_MODEL_MAX },
	{ "slowdown", offsetof(struct mgpu_model, slowdown), 1,
	  MGPU_MODEL_SLOWDOWN_MAX },
};

#define NR(a)	(sizeof(a) / sizeof((a)[0]))

static bool is(const char *name, const char *text, size_t len)
{
	return strlen(name) == len && !strncmp(name, text, len);
}

/* Parse a decimal number of @len digits; return false unless it is in range. */
static bool number(const char *text, size_t len, const struct key *key, u32 *value)
{
	u64 n = 0;
	size_t i;

	for (i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9' || n > key->max)
			return false;
		n = n * 10 + (u64)(text[i] - '0');
	}
	if (!len || n < key->min || n > key->max)
		return false;
	*value = (u32)n;
	return true;
}

static bool set_key(struct mgpu_model *m, const char *text, size_t name_len,
		    size_t len)
{
	size_t i;

	for (i = 0; i < NR(keys); i++)
		if (is(keys[i].name, text, name_len))
			return number(text + name_len + 1, len - name_len - 1,
				      &keys[i],
				      (u32 *)((char *)m + keys[i].offset));
	return false;
}

/**
 * mgpu_model_parse - read the description of a GPU
 * @text: a preset, keys with values (fill=2000), or both, separated by commas; later ones
 *	overwrite earlier ones; without a preset, keys change uhd630
 * @m: set to the model; undefined on error
 *
 * Return: NULL, or the place in @text of the first word that is invalid.
 */
const char *mgpu_model_parse(const char *text, struct mgpu_model *m)
{
	const char *word = text, *equals;
	size_t len, i;

	*m = presets[0].model;
	for (;;) {
		len = strcspn(word, ",");
		equals = memchr(word, '=', len);
		if (equals) {
			if (!set_key(m, word, (size_t)(equals - word), len))
				return word;
		} else {
			for (i = 0; i < NR(presets); i++)
				if (is(presets[i].name, word, len))
					break;
			if (i == NR(presets))
				return word;
			*m = presets[i].model;
		}
		if (!word[len])
			return NULL;
		word += len + 1;
	}
}

/**
 * mgpu_model_print - write the description that mgpu_model_parse() reads
 * @m: model
 * @buf: buffer
 * @size: its size, bytes; 128 are enough
 *
 * Return: length of the text, as snprintf() does.
 */
int mgpu_model_print(const struct mgpu_model *m, char *buf, size_t size)
{
	return snprintf(buf, size,
			"fill=%u,upload=%u,command=%u,inst=%u,memory=%u,slowdown=%u",
			m->fill, m->upload, m->command, m->inst, m->memory,
			m->slowdown);
}

/* The longest time that a part of the GPU takes for a tile, nanoseconds: an hour. */
#define LONGEST_NS	3600000000000ULL

static u64 at_most(u64 ns)
{
	return ns < LONGEST_NS ? ns : LONGEST_NS;
}

/* Return @n / @per_us in nanoseconds, slowed down. */
static u64 time_of(u64 n, u64 per_us, u32 slowdown)
{
	u64 ns;

	if (check_mul_overflow(n, (u64)slowdown * 1000, &ns))
		return LONGEST_NS;
	return at_most(div64_u64(ns, per_us) + !!n);
}

static u64 later(u64 a, u64 b)
{
	return a > b ? a : b;
}

/* Return @all * @a / @b, rounded up, at most @all; 0 if @a is 0. */
static u32 part_of(u32 all, u64 a, u64 b)
{
	if (a >= b)
		return a ? all : 0;
	/* Large numbers lose their lowest bits: 2^30 * 2^33 fits into 64 bits. */
	while (a >> 33) {
		a >>= 1;
		b >>= 1;
	}
	return a ? (u32)div64_u64(all * a, b) + 1 : 0;
}

/**
 * mgpu_model_share - compute how much of the memory one more engine can have
 * @m: model
 * @use: what each other engine would use if it were alone, bytes per microsecond, from
 *	mgpu_model_cost()
 * @nr: number of other engines, at most MGPU_MODEL_USERS
 *
 * Engines that use less than an equal part leave the rest to the others (max-min
 * fairness: Bertsekas, Gallager: Data Networks, section 6.5.2, with one link).
 *
 * Return: bytes per microsecond without @m->slowdown, 1 to @m->memory.
 */
u32 mgpu_model_share(const struct mgpu_model *m, const u32 *use, u32 nr)
{
	u32 left = m->memory, users = nr + 1, i;
	u64 served = 0;
	bool again;

	do {
		again = false;
		for (i = 0; i < nr; i++) {
			if (served & (1ULL << i) || use[i] >= left / users)
				continue;
			served |= 1ULL << i;
			left -= use[i];
			users--;
			again = true;
		}
	} while (again);
	return left / users ? left / users : 1;
}

/**
 * mgpu_model_cost - compute how long the GPU takes for some work
 * @m: model
 * @w: work
 * @engines: number of engines, which share @m->inst
 * @share: from mgpu_model_share()
 * @use: set to what the work uses of the memory when no other engine does, bytes per
 *	microsecond without @m->slowdown, at most @m->memory; rounded up
 *
 * Return: nanoseconds, at most two hours.
 */
u64 mgpu_model_cost(const struct mgpu_model *m, const struct mgpu_gpu_work *w,
		    u32 engines, u32 share, u32 *use)
{
	u64 command, ns, alone;

	if (check_mul_overflow(w->commands, (u64)m->command * m->slowdown,
			       &command))
		command = LONGEST_NS;
	command = at_most(command);
	ns = later(time_of(w->pixels, m->fill, m->slowdown),
		   time_of(w->upload, m->upload, m->slowdown));
	if (w->inst)
		ns = later(ns, time_of(w->inst, later(m->inst / engines, 1),
				       m->slowdown));
	alone = time_of(w->traffic, m->memory, m->slowdown);
	*use = part_of(m->memory, alone, ns);
	return command + later(ns, time_of(w->traffic, share, m->slowdown));
}
