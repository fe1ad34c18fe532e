// SPDX-License-Identifier: GPL-2.0-only
/*
 * The simulated scenarios. The figures were written down before any policy was run on
 * them. Documentation/simulator.rst tells where they come from.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define MAX_SCENARIO_VMS	8

/* Two virtual CPUs, both busy; the next frame is made while one is shown. */
#define WEIGHT(w)	.threads = 2, .depth = 2, .rate = INFINITY, .weight = (w)
#define GAME		WEIGHT(100)

/* How games' costs move: scenes, a drift within them, and each frame. */
#define MOVES		.drift = 0.15, .drift_s = 5, .scene = 0.25, .scene_s = 20, \
			.noise = 0.1

/* Some busy threads; two frames wait to be shown while the next one is made. */
#define AHEAD(n)	.threads = (n), .depth = 3, .rate = INFINITY, .weight = 100
#define JITTERS		.drift = 0.05, .drift_s = 5, .noise = 0.1

struct scenario {
	const char *name;
	const char *summary;
	unsigned int cpus, engines;
	const char *order;
	uint64_t tile_ns;
	double seconds;
	const char *like;	/* whose VMs it has, instead of: */
	struct sim_vm vms[MAX_SCENARIO_VMS];
};

/* A ceiling that is left out is none. */
static const struct scenario scenarios[] = {
	{
		.name = "reference",
		.summary = "three games; the engine takes frames in the order of arrival",
		.cpus = 4, .engines = 1, .order = "best-effort",
		.seconds = 600,
		.vms = {
			{
				.name = "A", .what = "game at 1920x1080",
				.machine = { GAME },
				.cost = { .cpu_ms = 12, .engine_ms = 9, MOVES },
			}, {
				.name = "B", .what = "game at 1920x1080",
				.machine = { GAME },
				.cost = { .cpu_ms = 10, .engine_ms = 14, MOVES },
			}, {
				.name = "C", .what = "game at 1024x768",
				.machine = { GAME },
				.cost = { .cpu_ms = 14, .engine_ms = 5, MOVES },
			},
		},
	}, {
		.name = "weighted",
		.summary = "the same on the module's default order, a millisecond at a time",
		.cpus = 4, .engines = 1, .order = "weighted", .tile_ns = 1000000,
		.seconds = 600,
		.like = "reference",
	}, {
		.name = "unequal",
		.summary = "the games of the reference, with weights 400, 200 and 100",
		.cpus = 4, .engines = 1, .order = "best-effort",
		.seconds = 600,
		.vms = {
			{
				.name = "A", .what = "game, weight 400",
				.machine = { WEIGHT(400) },
				.cost = { .cpu_ms = 12, .engine_ms = 9, MOVES },
			}, {
				.name = "B", .what = "game, weight 200",
				.machine = { WEIGHT(200) },
				.cost = { .cpu_ms = 10, .engine_ms = 14, MOVES },
			}, {
				.name = "C", .what = "game, weight 100",
				.machine = { WEIGHT(100) },
				.cost = { .cpu_ms = 14, .engine_ms = 5, MOVES },
			},
		},
	}, {
		.name = "cpu",
		.summary = "two CPUs for three games, one of which has six busy threads",
		.cpus = 2, .engines = 1, .order = "weighted", .tile_ns = 1000000,
		.seconds = 600,
		.vms = {
			{
				.name = "greedy", .what = "six busy threads",
				.machine = { .threads = 6, .depth = 2, .rate = INFINITY,
					     .weight = 100 },
				.cost = { .cpu_ms = 20, .engine_ms = 2, MOVES },
			}, {
				.name = "one", .what = "one busy thread",
				.machine = { .threads = 1, .depth = 2, .rate = INFINITY,
					     .weight = 100 },
				.cost = { .cpu_ms = 20, .engine_ms = 2, MOVES },
			}, {
				.name = "two", .what = "one busy thread",
				.machine = { .threads = 1, .depth = 2, .rate = INFINITY,
					     .weight = 100 },
				.cost = { .cpu_ms = 10, .engine_ms = 1, MOVES },
			},
		},
	}, {
		.name = "mixed",
		.summary = "one VM needs the GPU, one the CPUs, one some of both",
		.cpus = 2, .engines = 1, .order = "weighted", .tile_ns = 1000000,
		.seconds = 600,
		.vms = {
			{
				.name = "gpu", .what = "GPU-bound",
				.machine = { GAME },
				.cost = { .cpu_ms = 4, .engine_ms = 20, MOVES },
			}, {
				.name = "cpu", .what = "CPU-bound",
				.machine = { GAME },
				.cost = { .cpu_ms = 60, .engine_ms = 4, MOVES },
			}, {
				.name = "both", .what = "some of both",
				.machine = { GAME },
				.cost = { .cpu_ms = 15, .engine_ms = 8, MOVES },
			},
		},
	}, {
		.name = "floors",
		.summary = "promises of 40 frames/s each to three games that cannot all be kept",
		.cpus = 4, .engines = 1, .order = "best-effort",
		.seconds = 600,
		.vms = {
			{
				.name = "A", .what = "game, promised 40",
				.machine = { GAME }, .sla = { .floor = 40 },
				.cost = { .cpu_ms = 12, .engine_ms = 9, MOVES },
			}, {
				.name = "B", .what = "game, promised 40",
				.machine = { GAME }, .sla = { .floor = 40 },
				.cost = { .cpu_ms = 10, .engine_ms = 14, MOVES },
			}, {
				.name = "C", .what = "game, promised 40",
				.machine = { GAME }, .sla = { .floor = 40 },
				.cost = { .cpu_ms = 14, .engine_ms = 5, MOVES },
			},
		},
	}, {
		.name = "promises",
		.summary = "a promise that can be kept, and a VM that may have no more than 20",
		.cpus = 4, .engines = 1, .order = "best-effort",
		.seconds = 600,
		.vms = {
			{
				.name = "A", .what = "game, promised 50",
				.machine = { GAME }, .sla = { .floor = 50 },
				.cost = { .cpu_ms = 12, .engine_ms = 7, MOVES },
			}, {
				.name = "B", .what = "game, 20 at most",
				.machine = { GAME }, .sla = { .ceiling = 20 },
				.cost = { .cpu_ms = 10, .engine_ms = 14, MOVES },
			}, {
				.name = "C", .what = "game",
				.machine = { GAME },
				.cost = { .cpu_ms = 14, .engine_ms = 5, MOVES },
			},
		},
	}, {
		.name = "light",
		.summary = "a light game is promised 30 beside a heavy one and one with more threads than CPUs",
		.cpus = 2, .engines = 1, .order = "weighted", .tile_ns = 1000000,
		.seconds = 600,
		.vms = {
			{
				.name = "A", .what = "heavy",
				.machine = { AHEAD(1) },
				.cost = { .cpu_ms = 16, .engine_ms = 74, JITTERS },
			}, {
				.name = "B", .what = "CPU-bound",
				.machine = { AHEAD(4) },
				.cost = { .cpu_ms = 75, .engine_ms = 10, JITTERS },
			}, {
				.name = "C", .what = "light, promised 30",
				.machine = { AHEAD(1) }, .sla = { .floor = 30 },
				.cost = { .cpu_ms = 15, .engine_ms = 16, JITTERS },
			},
		},
	}, {
		.name = "comings",
		.summary = "four games, three of which are shut down and started again",
		.cpus = 4, .engines = 1, .order = "weighted", .tile_ns = 1000000,
		.seconds = 600,
		.vms = {
			{
				.name = "A", .what = "always there",
				.machine = { GAME },
				.cost = { .cpu_ms = 12, .engine_ms = 9, MOVES },
			}, {
				.name = "B", .what = "gone 20 s a minute",
				.machine = { GAME },
				.cost = { .cpu_ms = 10, .engine_ms = 14, MOVES },
				.away = { .cycle_s = 60, .from_s = 20, .to_s = 40,
					  .closed = true },
			}, {
				.name = "C", .what = "gone 30 s in 90",
				.machine = { GAME },
				.cost = { .cpu_ms = 14, .engine_ms = 5, MOVES },
				.away = { .cycle_s = 90, .from_s = 0, .to_s = 30,
					  .closed = true },
			}, {
				.name = "D", .what = "gone 45 s in 100",
				.machine = { GAME },
				.cost = { .cpu_ms = 25, .engine_ms = 4, MOVES },
				.away = { .cycle_s = 100, .from_s = 50, .to_s = 95,
					  .closed = true },
			},
		},
	}, {
		.name = "idle",
		.summary = "two games, a menu at 20 frames/s, and a desktop that is often idle",
		.cpus = 4, .engines = 1, .order = "best-effort",
		.seconds = 600,
		.vms = {
			{
				.name = "A", .what = "game",
				.machine = { GAME },
				.cost = { .cpu_ms = 12, .engine_ms = 9, MOVES },
			}, {
				.name = "B", .what = "game",
				.machine = { GAME },
				.cost = { .cpu_ms = 10, .engine_ms = 14, MOVES },
			}, {
				.name = "menu", .what = "20 frames/s are enough",
				.machine = { .threads = 1, .depth = 2, .rate = 20,
					     .weight = 100 },
				.cost = { .cpu_ms = 4, .engine_ms = 3, MOVES },
			}, {
				.name = "desktop", .what = "still 40 s a minute",
				.machine = { .threads = 1, .depth = 1, .rate = 60,
					     .weight = 100 },
				.cost = { .cpu_ms = 6, .engine_ms = 3, MOVES },
				.away = { .cycle_s = 60, .from_s = 10, .to_s = 50 },
			},
		},
	},
};

#define NR_SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

const char *sim_scenario(size_t i, const char **summary)
{
	if (i >= NR_SCENARIOS)
		return drawn_scenario(i - NR_SCENARIOS, summary);
	*summary = scenarios[i].summary;
	return scenarios[i].name;
}

static void set_uuid(char *uuid, size_t vm)
{
	snprintf(uuid, SAMPLE_UUID_LEN, "6d677075-0000-4000-8000-%012x",
		 (unsigned int)vm + 1);
}

int sim_begin(struct sim *s, const char *name, size_t nr_vms)
{
	memset(s, 0, sizeof(*s));
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->vms = calloc(nr_vms, sizeof(*s->vms));
	s->nr_vms = nr_vms;
	s->seed = 1;
	s->period_ms = 1000;
	s->headroom = ESTIMATE_HEADROOM;
	s->param = (struct decide_param){
		.iterations = 10, .fds = { FDS_BETA_DEFAULT, FDS_LAMBDA_DEFAULT },
	};
	return s->vms ? 0 : -ENOMEM;
}

static const struct scenario *find(const char *name)
{
	for (size_t i = 0; i < NR_SCENARIOS; i++)
		if (!strcmp(scenarios[i].name, name))
			return &scenarios[i];
	return NULL;
}

static int begin_drawn(struct sim *s, const char *name, uint64_t seed)
{
	int ret = sim_begin(s, name, drawn_vms(seed));

	if (!ret && !drawn_fill(s, name, seed)) {
		sim_free(s);
		ret = -ENOENT;
	}
	return ret;
}

static int begin_written(struct sim *s, const struct scenario *from)
{
	const struct scenario *vms = from->like ? find(from->like) : from;
	size_t n = 0;
	int ret;

	while (n < MAX_SCENARIO_VMS && vms->vms[n].name[0])
		n++;
	ret = sim_begin(s, from->name, n);
	if (ret)
		return ret;
	s->summary = from->summary;
	s->seconds = from->seconds;
	s->machine.cpus = from->cpus;
	s->machine.engines = from->engines;
	s->machine.order = from->order;
	s->machine.tile_ns = from->tile_ns;
	for (size_t j = 0; j < n; j++) {
		struct sim_vm *v = &s->vms[j];

		*v = vms->vms[j];
		if (!(v->sla.ceiling > 0))
			v->sla.ceiling = INFINITY;
		memcpy(v->text, v->what, sizeof(v->what));
	}
	return 0;
}

int sim_from_scenario(struct sim *s, const char *name, uint64_t seed, char *why, size_t len)
{
	const struct scenario *from = find(name);
	int ret;

	memset(s, 0, sizeof(*s));
	ret = from ? begin_written(s, from) : begin_drawn(s, name, seed);
	if (ret == -ENOENT)
		snprintf(why, len, "unknown scenario '%.40s'; --list names all", name);
	else if (ret)
		snprintf(why, len, "out of memory");
	if (!ret)
		s->seed = seed;
	return ret;
}

/* As many threads as it ever had busy on average over a second. */
static unsigned int threads(const struct trace *t, uint32_t vm)
{
	double most = 0, sum = 0, since = 0;

	for (size_t i = 0; i < t->nr; i++) {
		const struct trace_frame *f = &t->frames[i];

		if (f->vm != vm)
			continue;
		sum += f->cpu_s;
		if (f->time_s < since + 1)
			continue;
		most = fmax(most, sum / (f->time_s - since));
		since = f->time_s;
		sum = 0;
	}
	return (unsigned int)fmin(fmax(ceil(most - 0.1), 1), 64);
}

int sim_from_trace(struct sim *s, const struct trace *t, char *why, size_t len)
{
	int ret = sim_begin(s, "trace", t->nr_vms);

	if (ret) {
		snprintf(why, len, "out of memory");
		return ret;
	}
	s->summary = "replay of recorded frames";
	s->seconds = fmax(t->seconds, 1);
	s->machine.cpus = t->cpus ? t->cpus : 2;
	s->machine.engines = t->engines ? t->engines : 1;
	s->machine.tile_ns = 1000000;
	for (size_t j = 0; j < t->nr_vms; j++) {
		struct sim_vm *v = &s->vms[j];

		snprintf(v->name, sizeof(v->name), "%s", t->names[j]);
		snprintf(v->what, sizeof(v->what), "recorded");
		v->sla = SLA_NONE;
		/* Linux's virtio_gpu waits 50 ms for a flip, then goes on */
		v->machine = (struct machine_vm){
			.threads = threads(t, (uint32_t)j),
			.depth = 2,
			.patience_ns = 50000000,
			.rate = INFINITY,
			.weight = 100,
		};
	}
	return 0;
}

int sim_prepare(struct sim *s, const struct trace *t, char *why, size_t len)
{
	struct machine_vm *vms = calloc(s->nr_vms, sizeof(*vms));
	struct cost_spec *specs = calloc(s->nr_vms, sizeof(*specs));
	struct machine_config cfg = s->machine;
	const char *bad = NULL;
	int ret = 0;

	if (!vms || !specs) {
		ret = -ENOMEM;
		goto out;
	}
	for (size_t j = 0; j < s->nr_vms; j++) {
		struct sim_vm *v = &s->vms[j];

		set_uuid(v->machine.uuid, j);
		vms[j] = v->machine;
		specs[j] = v->cost;
		bad = sla_check(&v->sla);
		if (bad) {
			snprintf(why, len, "VM %s: %s", v->name, bad);
			ret = -EINVAL;
			goto out;
		}
	}
	cfg.vms = vms;
	cfg.nr_vms = s->nr_vms;
	bad = machine_check(&cfg);
	if (!bad)
		bad = fds_param_check(&s->param.fds);
	if (bad) {
		snprintf(why, len, "%s", bad);
		ret = -EINVAL;
		goto out;
	}
	costs_free(s->costs);
	s->costs = t ? costs_replay(t) :
		costs_generate(specs, s->nr_vms, s->seconds + SIM_SETTLE_S + 1, s->seed);
	if (!s->costs)
		ret = -ENOMEM;
out:
	if (ret == -ENOMEM)
		snprintf(why, len, "out of memory");
	free(vms);
	free(specs);
	return ret;
}

void sim_free(struct sim *s)
{
	costs_free(s->costs);
	free(s->vms);
	memset(s, 0, sizeof(*s));
}
