// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scenarios that are drawn from a seed: VMs with descriptions, which come and go. The
 * cost of a VM's frames follows from its description as far as people can tell: the kind of
 * program, the size of its screen and its quality, and a factor of its own that no
 * description has. All figures were written down before any model saw them.
 */
#include <math.h>
#include <string.h>

#include "random.h"
#include "sim.h"

#define DRAWN_VMS_MIN	4
#define DRAWN_VMS_MAX	10
#define DRAWN_SECONDS	600

/* Standard deviation of the logarithm of what a description does not tell of costs. */
#define OWN_FACTOR	0.3

/* Cost of pixels: exponents for engine and CPU. */
#define PIXELS_ENGINE	0.8
#define PIXELS_CPU	0.1

/**
 * struct kind - a kind of program
 * @part: how often it comes, a part of all VMs
 * @words: how people call it
 * @cpu_ms: of a frame at 1920x1080 in medium quality
 * @engine_ms: of a frame at 1920x1080 in medium quality
 * @threads: busy while it works on a frame
 * @rate: frames per second that it wants at most, INFINITY for any
 * @screen: costs depend on the size of the screen
 */
struct kind {
	unsigned int part;
	const char *words[3];
	double cpu_ms, engine_ms;
	unsigned int threads;
	double rate;
	bool screen;
};

static const struct kind kinds[] = {
	{ 4, { "shooter", "shooter game", "first person shooter" }, 8, 9, 2, INFINITY, true },
	{ 3, { "racing", "racing game", "car racing" }, 6, 12, 2, INFINITY, true },
	{ 3, { "strategy", "strategy game", "real time strategy" }, 20, 6, 3, INFINITY, true },
	{ 3, { "adventure", "adventure game", "open world adventure" }, 10, 16, 2, INFINITY, true },
	{ 3, { "CAD", "cad workstation", "mechanical design" }, 15, 10, 1, 60, true },
	{ 2, { "video", "video player", "movie" }, 5, 4, 1, 30, true },
	{ 3, { "desktop", "office desktop", "office" }, 6, 3, 1, 60, true },
	{ 2, { "browser", "web browser", "browser" }, 12, 4, 3, 60, true },
	{ 2, { "preview", "render preview", "ray tracing" }, 5, 60, 1, INFINITY, true },
	{ 2, { "training", "model training", "resnet training" }, 3, 80, 1, INFINITY, false },
	{ 2, { "inference", "model inference", "object detection" }, 6, 15, 1, 20, false },
};

static const struct {
	unsigned int part;
	const char *text;
	double pixels;
} screens[] = {
	{ 2, "1280x720", 1280 * 720 }, { 5, "1920x1080", 1920 * 1080 },
	{ 2, "2560x1440", 2560 * 1440 }, { 1, "3840x2160", 3840 * 2160 },
};

static const struct {
	unsigned int part;
	const char *text;
	double engine, cpu;
} qualities[] = {
	{ 2, "low", 0.6, 0.9 }, { 3, "medium", 1, 1 }, { 3, "high", 1.4, 1.05 },
	{ 1, "ultra", 2.1, 1.1 },
};

static const struct {
	const char *name, *summary;
} families[] = {
	{ "churn", "VMs of many kinds are shut down and started at any time (drawn)" },
	{ "bursts", "VMs of many kinds that pause for seconds (drawn)" },
	{ "diurnal", "VMs of many kinds, of which most are there by day (drawn)" },
};

#define NR(a)	(sizeof(a) / sizeof((a)[0]))

const char *drawn_scenario(size_t i, const char **summary)
{
	if (i >= NR(families))
		return NULL;
	*summary = families[i].summary;
	return families[i].name;
}

/* ---- drawing ---- */

/* Return a number from @low to below @high. */
static double between(struct random *r, double low, double high)
{
	return low + (high - low) * draw(r);
}

static bool happens(struct random *r, double probability)
{
	return draw(r) < probability;
}

/* Draw an entry of a table, whose entries begin with how often they come: a part of all. */
static size_t pick(struct random *r, const void *table, size_t nr, size_t size)
{
	double all = 0, at;
	size_t i = 0;

	for (size_t k = 0; k < nr; k++)
		all += *(const unsigned int *)((const char *)table + k * size);
	at = between(r, 0, all);
	for (; i + 1 < nr; i++) {
		unsigned int part = *(const unsigned int *)((const char *)table + i * size);

		if (at < part)
			break;
		at -= part;
	}
	return i;
}

#define PICK(r, table) pick(r, table, NR(table), sizeof((table)[0]))

/* ---- a VM ---- */

/* Some descriptions say less, and some VMs have none. */
static void describe(struct random *r, const struct kind *kind, const char *screen,
		     const char *quality, char *text, size_t len)
{
	bool with_screen = kind->screen && !happens(r, 0.15);
	bool with_quality = kind->screen && !happens(r, 0.3);
	const char *words = kind->words[(size_t)between(r, 0, NR(kind->words))];

	if (happens(r, 0.1)) {
		text[0] = '\0';
		return;
	}
	snprintf(text, len, "%s%s%s%s%s", words, with_screen ? " " : "",
		 with_screen ? screen : "", with_quality ? " " : "",
		 with_quality ? quality : "");
}

static uint32_t draw_weight(struct random *r)
{
	static const uint32_t weights[] = { 50, 200, 400 };

	return happens(r, 0.7) ? 100 : weights[(size_t)between(r, 0, NR(weights))];
}

static void draw_program(struct random *r, struct sim_vm *v)
{
	const struct kind *kind = &kinds[PICK(r, kinds)];
	size_t screen = PICK(r, screens), quality = PICK(r, qualities);
	double pixels = kind->screen ? screens[screen].pixels / (1920 * 1080) : 1;
	double engine = kind->screen ? qualities[quality].engine : 1;
	double cpu = kind->screen ? qualities[quality].cpu : 1;

	describe(r, kind, screens[screen].text, qualities[quality].text, v->text,
		 sizeof(v->text));
	snprintf(v->what, sizeof(v->what), "%.*s", (int)sizeof(v->what) - 1,
		 v->text[0] ? v->text : "not described");
	v->machine = (struct machine_vm){
		.threads = kind->threads, .depth = 2, .rate = kind->rate,
		.weight = draw_weight(r),
	};
	v->cost = (struct cost_spec){
		.cpu_ms = kind->cpu_ms * cpu * pow(pixels, PIXELS_CPU) *
			factor(OWN_FACTOR, normal(r)),
		.engine_ms = kind->engine_ms * engine * pow(pixels, PIXELS_ENGINE) *
			factor(OWN_FACTOR, normal(r)),
		.drift = 0.15, .drift_s = 5, .scene = 0.25, .scene_s = 20, .noise = 0.1,
	};
	v->sla = SLA_NONE;
}

/* ---- comings and goings ---- */

static struct sim_away draw_away(struct random *r, size_t family)
{
	struct sim_away a = { 0 };

	switch (family) {
	case 0:
		if (happens(r, 0.2))
			return a;	/* always there */
		a.cycle_s = floor(between(r, 40, 160));
		a.from_s = floor(between(r, 0, a.cycle_s * 0.6));
		a.to_s = floor(a.from_s + between(r, 10, a.cycle_s * 0.4));
		a.closed = true;
		break;
	case 1:
		if (happens(r, 0.3))
			return a;
		a.cycle_s = floor(between(r, 12, 40));
		a.from_s = floor(between(r, 3, a.cycle_s * 0.5));
		a.to_s = floor(a.from_s + between(r, 5, a.cycle_s * 0.5));
		break;
	default:
		/* a day of 240 s, of which the night is at both ends */
		if (happens(r, 0.15))
			return a;
		a.cycle_s = 240;
		a.from_s = floor(between(r, 120, 200));
		a.to_s = floor(between(r, 210, 240));
		a.closed = true;
		break;
	}
	return a;
}

/* ---- all of it ---- */

size_t drawn_vms(uint64_t seed)
{
	struct random r = { stream(seed, 0, 2) };

	return (size_t)between(&r, DRAWN_VMS_MIN, DRAWN_VMS_MAX + 1);
}

bool drawn_fill(struct sim *s, const char *name, uint64_t seed)
{
	struct random r = { stream(seed, 0, 3) };
	size_t family = 0;

	while (family < NR(families) && strcmp(families[family].name, name))
		family++;
	if (family == NR(families))
		return false;
	s->summary = families[family].summary;
	s->seconds = DRAWN_SECONDS;
	s->machine.cpus = (unsigned int)between(&r, 4, 13);
	s->machine.engines = 1;
	/* an order that is not fair by itself: the others need no controller */
	s->machine.order = "best-effort";
	for (size_t j = 0; j < s->nr_vms; j++) {
		struct sim_vm *v = &s->vms[j];

		snprintf(v->name, sizeof(v->name), "%c", (char)('A' + j));
		draw_program(&r, v);
		v->away = draw_away(&r, family);
	}
	return true;
}
