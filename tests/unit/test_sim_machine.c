// SPDX-License-Identifier: GPL-2.0-only
/*
 * The simulator's machine: time is neither made nor lost, limits are kept, and the
 * result depends on the input alone.
 */
#include <stdlib.h>

#include "costs.h"
#include "machine.h"
#include "tracefile.h"
#include "tap.h"

#define MS	1000000ULL
#define SEC	MACHINE_NSEC
#define MAX_VM	6

static uint64_t seed;

static uint64_t draw(uint64_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

struct job {
	struct machine_frame cost[MAX_VM];
	uint64_t begun[MAX_VM];
};

static void constant(void *data, size_t vm, uint64_t now_ns, struct machine_frame *f)
{
	struct job *job = data;

	(void)now_ns;
	*f = job->cost[vm];
	job->begun[vm]++;
}

static const struct machine_vm one_vm = {
	.uuid = "a", .threads = 1, .depth = 2, .rate = INFINITY, .weight = 100,
};

static struct machine *make(struct machine_config *cfg, struct machine_vm *vms, size_t nr,
			    struct job *job)
{
	struct machine *m;

	cfg->vms = vms;
	cfg->nr_vms = nr;
	cfg->frame = constant;
	cfg->data = job;
	m = machine_new(cfg);
	for (size_t j = 0; m && j < nr; j++)
		machine_open(m, j, true);
	return m;
}

/* A VM alone reaches the rate that its costs allow, in each mode of working. */
static void alone(void)
{
	static const struct {
		unsigned int depth, threads;
		uint64_t patience;
		double fps;
	} cases[] = {
		{ 1, 1, 0, 1000 / (20 + 5.0) },
		{ 1, 2, 0, 1000 / (10 + 5.0) },
		{ 2, 1, 0, 1000 / 20.0 },
		{ 2, 2, 0, 1000 / 10.0 },
		{ 2, 2, 2 * MS, 1000 / (10 + 2.0) },
		{ 2, 2, 50 * MS, 1000 / (10 + 5.0) },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct machine_config cfg = { .cpus = 4, .engines = 1, .tile_ns = MS };
		struct job job = { .cost = { { 20e6, 5e6 } } };
		struct machine_vm vm = one_vm;
		struct machine *m;

		vm.depth = cases[i].depth;
		vm.threads = cases[i].threads;
		vm.patience_ns = cases[i].patience;
		m = make(&cfg, &vm, 1, &job);
		TAP_NEED(m);
		machine_run(m, 100 * SEC);
		TAP_NEAR((double)machine_frames(m, 0) / 100, cases[i].fps,
			 cases[i].fps * 0.001 + 0.02);
		TAP_NEAR(machine_rate_alone(&cfg, &vm, &job.cost[0]), cases[i].fps, 1e-6);
		machine_free(m);
	}
}

/* Whatever the machine, what was used is what there was, and never more. */
static void conserves(void)
{
	static const char *const orders[] = { "weighted", "equal", "best-effort" };

	for (unsigned int round = 0; round < 60; round++) {
		struct machine_config cfg = {
			.cpus = 1 + (unsigned int)draw(8), .engines = 1 + (unsigned int)draw(2),
			.order = orders[draw(3)], .tile_ns = draw(2) * MS,
			.engines_on_cpus = draw(2),
		};
		size_t nr = 1 + draw(MAX_VM);
		struct machine_vm vms[MAX_VM];
		struct job job = { 0 };
		struct machine *m;

		cfg.host = 0.1 * (double)draw(5);
		for (size_t j = 0; j < nr; j++) {
			vms[j] = one_vm;
			vms[j].threads = 1 + (unsigned int)draw(4);
			vms[j].depth = 1 + (unsigned int)draw(3);
			vms[j].background = 0.01 * (double)draw(5);
			vms[j].weight = 1 + (uint32_t)draw(1000);
			job.cost[j].cpu_ns = 1e5 + (double)draw(30 * MS);
			job.cost[j].engine_ns = 1e5 + (double)draw(30 * MS);
		}
		m = make(&cfg, vms, nr, &job);
		TAP_NEED(m);
		for (unsigned int k = 1; k <= 20; k++) {
			double t = k * 1e9, cpus = t * cfg.cpus, frames = 0, engine = 0, cpu = 0;
			const struct machine_use *u;
			struct sample s;

			if (!draw(3))
				machine_set_limit(m, draw(nr), (uint32_t)draw(60000) + 1000);
			if (!draw(5))
				machine_open(m, draw(nr), draw(2));
			machine_run(m, k * SEC);
			u = machine_use(m);
			machine_sample(m, &s);
			TAP_CHECK(u->cpu_ns + u->engine_cpu_ns + u->host_ns <= cpus * (1 + 1e-9));
			TAP_NEAR((u->cpu_ns + u->engine_cpu_ns + u->host_ns + u->idle_ns) / cpus,
				 1, 1e-6);
			TAP_CHECK(u->engine_ns <= t * cfg.engines * (1 + 1e-9));
			TAP_CHECK(cfg.engines_on_cpus ? u->engine_cpu_ns == u->engine_ns :
				  !u->engine_cpu_ns);
			for (size_t j = 0; j < s.nr_vgpus; j++) {
				frames += (double)s.vgpus[j].frames * job.cost[j].engine_ns;
				cpu += (double)s.vgpus[j].frames * job.cost[j].cpu_ns;
				engine += (double)s.vgpus[j].engine_ns;
			}
			/* the cost of shown frames was used, and used time made frames */
			TAP_CHECK(frames <= u->engine_ns + 1e3 * (double)(nr + u->events));
			TAP_CHECK(cpu <= u->cpu_ns + 1e3 * (double)nr);
			TAP_CHECK(engine <= u->engine_ns + 1);
		}
		machine_free(m);
		if (tap.bad)
			return;
	}
}

/* A capacity that a VM could use is used. */
static void works_on(void)
{
	struct machine_config cfg = { .cpus = 2, .engines = 1, .tile_ns = MS };
	struct job job = { .cost = { { 2e6, 9e6 }, { 3e6, 14e6 }, { 1e6, 5e6 } } };
	struct machine_vm vms[3] = { one_vm, one_vm, one_vm };
	struct machine *m = make(&cfg, vms, 3, &job);

	TAP_NEED(m);
	machine_run(m, 10 * SEC);
	TAP_NEAR(machine_use(m)->engine_ns / 10e9, 1, 0.001);
	/* the weighted order shares the engine by weight, all equal here */
	for (size_t j = 0; j < 3; j++)
		TAP_NEAR((double)machine_frames(m, j) * job.cost[j].engine_ns / 10e9, 1.0 / 3,
			 0.01);
	machine_free(m);

	cfg.order = "best-effort";
	cfg.tile_ns = 0;
	m = make(&cfg, vms, 3, &job);
	TAP_NEED(m);
	machine_run(m, 10 * SEC);
	/* first come, first served: the same number of frames each */
	TAP_NEAR((double)machine_frames(m, 0), (double)machine_frames(m, 1), 2);
	TAP_NEAR((double)machine_frames(m, 0), (double)machine_frames(m, 2), 2);
	machine_free(m);
}

static void shares_by_weight(void)
{
	struct machine_config cfg = { .cpus = 4, .engines = 1, .tile_ns = MS };
	struct job job = { .cost = { { 1e6, 10e6 }, { 1e6, 10e6 } } };
	struct machine_vm vms[2] = { one_vm, one_vm };
	struct machine *m;

	vms[0].weight = 300;
	m = make(&cfg, vms, 2, &job);
	TAP_NEED(m);
	machine_run(m, 20 * SEC);
	TAP_NEAR((double)machine_frames(m, 0) / (double)machine_frames(m, 1), 3, 0.05);
	machine_free(m);
}

static void threads_share_cpus(void)
{
	struct machine_config cfg = { .cpus = 2, .engines = 1, .tile_ns = MS };
	struct job job = { .cost = { { 10e6, 1e5 }, { 10e6, 1e5 } } };
	struct machine_vm vms[2] = { one_vm, one_vm };
	struct machine *m;

	vms[0].threads = 3;
	m = make(&cfg, vms, 2, &job);
	TAP_NEED(m);
	machine_run(m, 20 * SEC);
	TAP_NEAR((double)machine_frames(m, 0) / (double)machine_frames(m, 1), 3, 0.05);
	TAP_CHECK(machine_use(m)->idle_ns < 0.001 * 40e9);
	machine_free(m);
}

/* Never more frames than the limit allows, and as many if there is room. */
static void keeps_limits(void)
{
	struct machine_config cfg = { .cpus = 4, .engines = 1, .tile_ns = MS };
	struct job job = { .cost = { { 2e6, 4e6 }, { 2e6, 4e6 } } };
	struct machine_vm vms[2] = { one_vm, one_vm };
	uint64_t before[2] = { 0 };
	uint32_t limit[2] = { 30000, 0 };
	struct machine *m = make(&cfg, vms, 2, &job);
	struct sample s;

	TAP_NEED(m);
	for (unsigned int k = 1; k <= 50; k++) {
		for (size_t j = 0; j < 2; j++) {
			if (k > 10)
				limit[j] = (uint32_t)draw(90000) + 1000;
			machine_set_limit(m, j, limit[j]);
		}
		machine_run(m, k * SEC);
		for (size_t j = 0; j < 2; j++) {
			double frames = (double)(machine_frames(m, j) - before[j]);

			before[j] = machine_frames(m, j);
			if (!limit[j])
				continue;
			TAP_CHECK(frames <= limit[j] / 1000.0 + 2);
			/* both together leave it room: 90 frames take 360 ms each */
			TAP_CHECK(frames >= limit[j] / 1000.0 - 2);
		}
	}
	machine_sample(m, &s);
	TAP_CHECK(s.vgpus[0].throttled_ns > 10 * SEC);
	machine_free(m);
}

static void held_time_is_counted(void)
{
	struct machine_config cfg = { .cpus = 1, .engines = 1, .tile_ns = MS };
	struct job job = { .cost = { { 10e6, 10e6 } } };
	struct machine_vm vm = one_vm;
	struct machine *m;
	struct sample s;

	vm.depth = 1;
	m = make(&cfg, &vm, 1, &job);
	TAP_NEED(m);
	machine_set_limit(m, 0, 20000);
	machine_run(m, 10 * SEC);
	machine_sample(m, &s);
	/* of 50 ms a frame works for 20 */
	TAP_NEAR((double)machine_frames(m, 0), 200, 1);
	TAP_NEAR((double)s.vgpus[0].throttled_ns / 10e9, 0.6, 0.01);
	machine_free(m);
}

static void comes_and_goes(void)
{
	struct machine_config cfg = { .cpus = 2, .engines = 1, .tile_ns = MS };
	struct job job = { .cost = { { 10e6, 5e6 }, { 10e6, 5e6 } } };
	struct machine_vm vms[2] = { one_vm, one_vm };
	struct machine *m = make(&cfg, vms, 2, &job);
	uint64_t frames;
	uint32_t tgid;
	struct sample s;

	TAP_NEED(m);
	machine_run(m, SEC);
	machine_sample(m, &s);
	tgid = s.vgpus[0].tgid;
	TAP_CHECK(tgid && s.nr_vmms == 2);
	machine_open(m, 0, false);
	machine_run(m, SEC + 100 * MS);
	frames = machine_frames(m, 0);
	machine_run(m, 2 * SEC);
	machine_sample(m, &s);
	TAP_EQ(machine_frames(m, 0), frames);
	TAP_CHECK(!s.vgpus[0].open && !s.vgpus[0].tgid && s.nr_vmms == 1);
	machine_open(m, 0, true);
	machine_run(m, 3 * SEC);
	machine_sample(m, &s);
	TAP_CHECK(s.vgpus[0].open && s.vgpus[0].tgid != tgid);
	TAP_CHECK(s.vmms[0].tgid < s.vmms[1].tgid);
	TAP_NEAR((double)(machine_frames(m, 0) - frames), 100, 3);
	frames = machine_frames(m, 0);
	machine_pause(m, 0, true);
	machine_run(m, 4 * SEC);
	TAP_CHECK(machine_frames(m, 0) - frames <= vms[0].depth);
	machine_free(m);
}

static void refuses_nonsense(void)
{
	struct machine_vm vm = one_vm;
	struct machine_config good = { .cpus = 2, .engines = 1, .vms = &vm, .nr_vms = 1 }, bad;

	TAP_CHECK(!machine_check(&good));
	bad = good; bad.cpus = 0; TAP_CHECK(machine_check(&bad) && !machine_new(&bad));
	bad = good; bad.engines = 65; TAP_CHECK(machine_check(&bad));
	bad = good; bad.nr_vms = 0; TAP_CHECK(machine_check(&bad));
	bad = good; bad.host = 2; TAP_CHECK(machine_check(&bad));
	bad = good; bad.order = "fixed"; TAP_CHECK(machine_check(&bad));
	bad = good; bad.order = "none"; TAP_CHECK(machine_check(&bad));
	vm.threads = 0; TAP_CHECK(machine_check(&good));
	vm = one_vm; vm.depth = 5; TAP_CHECK(machine_check(&good));
	vm = one_vm; vm.rate = 0; TAP_CHECK(machine_check(&good));
	vm = one_vm; vm.weight = 0; TAP_CHECK(machine_check(&good));
	vm = one_vm; vm.background = 3; TAP_CHECK(machine_check(&good));
}

/* ---- costs ---- */

static void run_costs(struct costs *c, uint64_t *frames, double *engine)
{
	struct machine_vm vms[2] = { one_vm, one_vm };
	struct machine_config cfg = {
		.cpus = 2, .engines = 1, .tile_ns = MS, .vms = vms, .nr_vms = 2,
		.frame = costs_frame, .data = c,
	};
	struct machine *m = machine_new(&cfg);
	struct sample s;

	TAP_NEED(m);
	costs_rewind(c);
	for (size_t j = 0; j < 2; j++)
		machine_open(m, j, true);
	machine_run(m, 20 * SEC);
	machine_sample(m, &s);
	for (size_t j = 0; j < 2; j++) {
		frames[j] = machine_frames(m, j);
		engine[j] = (double)s.vgpus[j].engine_ns;
	}
	machine_free(m);
}

static void same_seed_same_run(void)
{
	static const struct cost_spec specs[2] = {
		{ 10, 5, 0.15, 5, 0.25, 20, 0.1 }, { 5, 10, 0.15, 5, 0.25, 20, 0.1 },
	};
	struct costs *a = costs_generate(specs, 2, 20, 7), *b = costs_generate(specs, 2, 20, 7);
	struct costs *other = costs_generate(specs, 2, 20, 8);
	uint64_t frames[4][2];
	double engine[4][2];

	TAP_NEED(a && b && other);
	run_costs(a, frames[0], engine[0]);
	run_costs(b, frames[1], engine[1]);
	run_costs(a, frames[2], engine[2]);
	run_costs(other, frames[3], engine[3]);
	for (size_t j = 0; j < 2; j++) {
		TAP_EQ(frames[0][j], frames[1][j]);
		TAP_CHECK(engine[0][j] == engine[1][j]);
		TAP_CHECK(engine[0][j] == engine[2][j]);
		TAP_CHECK(engine[0][j] != engine[3][j]);
	}
	costs_free(a);
	costs_free(b);
	costs_free(other);
}

/* Over a long time the factors have the means and deviations that were asked for. */
static void costs_are_what_was_asked_for(void)
{
	static const struct cost_spec specs[2] = {
		{ 10, 5, 0.3, 2, 0, 0, 0.2 }, { 10, 5, 0, 0, 0.3, 2, 0 },
	};
	struct costs *c = costs_generate(specs, 2, 20000, 3);
	struct machine_frame mean, std, f;

	TAP_NEED(c);
	for (size_t j = 0; j < 2; j++) {
		double sum = 0;

		costs_describe(c, j, &mean, &std);
		TAP_NEAR(mean.cpu_ns, 10e6, 0.3e6);
		TAP_NEAR(mean.engine_ns, 5e6, 0.15e6);
		TAP_NEAR(std.cpu_ns / mean.cpu_ns, sqrt(exp(0.09) - 1), 0.03);
		for (uint64_t i = 0; i < 20000; i++) {
			costs_frame(c, j, i * SEC, &f);
			sum += f.cpu_ns;
		}
		TAP_NEAR(sum / 20000, 10e6, 0.3e6);
		TAP_CHECK(costs_mean(c, j, 50 * MS, 20000 * SEC, &f));
		TAP_NEAR(f.cpu_ns / mean.cpu_ns, 1, 0.001);
	}
	costs_free(c);
}

/* ---- traces ---- */

static int parse(struct trace *t, const char *text, size_t len, char *why)
{
	FILE *f = fmemopen((char *)(uintptr_t)text, len, "r");
	int ret;

	memset(t, 0, sizeof(*t));
	if (!f)
		return -1;
	ret = trace_read(t, f, "t.csv", why, 256);
	fclose(f);
	return ret;
}

/* The costs of a replay are the recorded costs, second by second. */
static void replay_reproduces_costs(void)
{
	char *text = NULL, why[256];
	size_t len;
	FILE *f = open_memstream(&text, &len);
	double want[3][2] = { 0 }, t[2] = { 0 };
	unsigned int lines[3][2] = { 0 };
	struct trace trace;
	struct costs *c;

	TAP_NEED(f);
	fputs("# mgpu-trace cpus=3 engines=2\ntime_s,vgpu,frame,frames,cpu_s,engine_s,held_s\n", f);
	for (unsigned int i = 1; t[0] < 2.95 && t[1] < 2.95; i++) {
		size_t vm = t[0] > t[1];
		double cpu = 0.001 * (double)(1 + draw(20)), engine = 0.001 * (double)draw(20);
		unsigned int frames = draw(10) ? 1 : 3;

		t[vm] += 0.01 + 0.001 * (double)draw(30);
		if (t[vm] < t[!vm])
			t[vm] = t[!vm];
		fprintf(f, "%.9f,vm%zu,%u,%u,%.9f,%.9f,0\n", t[vm], vm, i, frames, cpu, engine);
		want[(int)t[vm]][vm] += cpu;
		lines[(int)t[vm]][vm] += frames;
	}
	fputs("# end seconds=3.0 lost=0\n", f);
	fclose(f);
	TAP_CHECK(!parse(&trace, text, len, why));
	TAP_EQ(trace.nr_vms, 2);
	TAP_EQ(trace.cpus, 3);
	TAP_EQ(trace.engines, 2);
	TAP_NEAR(trace.seconds, 3, 1e-9);
	c = costs_replay(&trace);
	TAP_NEED(c);
	for (size_t j = 0; j < 2; j++) {
		size_t vm = !strcmp(trace.names[0], "vm0") ? j : !j;

		/* twice over: the second round is the trace's beginning again */
		for (uint64_t s = 0; s < 6; s++) {
			struct machine_frame mean, one;
			double sum = 0;

			TAP_CHECK(costs_mean(c, vm, s * SEC, (s + 1) * SEC, &mean));
			TAP_NEAR(mean.cpu_ns * lines[s % 3][j], want[s % 3][j] * 1e9, 10);
			for (unsigned int k = 0; k < lines[s % 3][j]; k++) {
				costs_frame(c, vm, s * SEC + k * MS, &one);
				sum += one.cpu_ns;
			}
			TAP_NEAR(sum, want[s % 3][j] * 1e9, 10);
		}
	}
	costs_free(c);
	trace_free(&trace);
	free(text);
}

static void idle_parts_of_a_trace_are_idle(void)
{
	static const char text[] = "time_s,vgpu,cpu_s,engine_s\n"
		"0.5,a,0.01,0.01\n1.5,a,0.01,0.01\n18.5,a,0.01,0.01\n";
	struct machine_frame f;
	struct trace t;
	struct costs *c;
	char why[256];

	TAP_CHECK(!parse(&t, text, sizeof(text) - 1, why));
	c = costs_replay(&t);
	TAP_NEED(c);
	TAP_CHECK(costs_wants(c, 0, SEC / 2));
	TAP_CHECK(!costs_wants(c, 0, 8 * SEC));
	TAP_CHECK(!costs_mean(c, 0, 8 * SEC, 9 * SEC, &f));
	TAP_CHECK(costs_wants(c, 0, 16 * SEC));
	costs_free(c);
	trace_free(&t);
}

/* Anything may be in a file; the complaint names its line. */
static void hostile_traces(void)
{
#define HEAD "time_s,vgpu,cpu_s,engine_s\n"
	static const struct {
		const char *text, *want;
		size_t len;
	} cases[] = {
#define CASE(t, w) { t, w, sizeof(t) - 1 }
		CASE("\n", "t.csv:1: the file is empty"),
		CASE("# x\n", "the file is empty"),
		CASE(HEAD, "no frames"),
		CASE("time_s,vgpu,cpu_s\n1,a,1\n", "t.csv:1: missing column 'engine_s'"),
		CASE("time_s,time_s,vgpu,cpu_s,engine_s\n", "duplicate column"),
		CASE("1,2,3,4\n", "missing column 'time_s'"),
		CASE(HEAD "1,a,0.1\n", "t.csv:2: 3 columns where the first line has 4"),
		CASE(HEAD "1,a,0.1,0.1,9\n", "t.csv:2: 5 columns"),
		CASE(HEAD "1,a,0.1,0.1\n0.5,a,0.1,0.1\n", "t.csv:3: time_s goes back"),
		CASE(HEAD "-1,a,0.1,0.1\n", "t.csv:2: time_s is '-1'"),
		CASE(HEAD "nan,a,0.1,0.1\n", "time_s is 'nan'"),
		CASE(HEAD "1,a,inf,0.1\n", "cpu_s is 'inf'"),
		CASE(HEAD "1,a,1e999,0.1\n", "cpu_s is"),
		CASE(HEAD "1,a,0.1x,0.1\n", "cpu_s is '0.1x'"),
		CASE(HEAD "1,a,,0.1\n", "cpu_s is ''"),
		CASE(HEAD "1,a, 1,0.1\n", "cpu_s is ' 1'"),
		CASE(HEAD "1,a,0.1,1001\n", "engine_s is '1001'"),
		CASE(HEAD "1,,0.1,0.1\n", "vgpu is ''"),
		CASE(HEAD "1,a b,0.1,0.1\n", "vgpu is 'a b'"),
		CASE(HEAD "1,0123456789012345678901234567890123456,0.1,0.1\n", "vgpu is"),
		CASE(HEAD "1,\x1b[2J,0.1,0.1\n", "vgpu is '?[2J'"),
		CASE(HEAD "1,a,0.1,0.1\n1,a\0,0.1,0.1\n", "t.csv:3: contains a zero byte"),
		CASE("frames," HEAD "0,1,a,0.1,0.1\n", "frames is '0'"),
		CASE("frames," HEAD "1.5,1,a,0.1,0.1\n", "frames is '1.5'"),
		CASE("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,1,2,3,4,5,6,7,8\n",
		     "more than 32 columns"),
	};
	static char text[4096];
	struct trace t;
	char why[256];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TAP_CHECK(parse(&t, cases[i].text, cases[i].len, why) < 0);
		if (!TAP_CHECK(strstr(why, cases[i].want)))
			tap_diag("wanted '%s', got '%s'", cases[i].want, why);
		trace_free(&t);
	}
	memset(text, 'x', sizeof(text));
	TAP_CHECK(parse(&t, text, sizeof(text), why) < 0);
	TAP_CHECK(strstr(why, "longer than"));
	trace_free(&t);

	/* and at random: it may say no, not more */
	for (unsigned int round = 0; round < 3000; round++) {
		static const char alphabet[] = "0123456789.,,,,eE-+naifxt_s\n\n\n#\r";
		size_t len = (size_t)snprintf(text, sizeof(text), HEAD "1,a,0.1,0.1\n");
		size_t more = 1 + draw(200);

		for (size_t k = 0; k < more; k++)
			text[len++] = alphabet[draw(sizeof(alphabet))];
		for (size_t k = draw(3); k--;)
			text[draw(len)] = (char)draw(256);
		if (parse(&t, text, len, why))
			TAP_CHECK(why[0]);
		trace_free(&t);
	}
}

static void accepts_variants(void)
{
	static const char text[] = "# by hand\r\nengine_s,more,vgpu,cpu_s,time_s\r\n"
		"0.002,?,a-1,0.01,0.5\r\n\n# note\n0.004,,b,0.02,0.5\n0.006,,a-1,0.03,7";
	struct trace t;
	char why[256];

	TAP_CHECK(!parse(&t, text, sizeof(text) - 1, why));
	TAP_EQ(t.nr, 3);
	TAP_EQ(t.nr_vms, 2);
	TAP_NEAR(t.frames[2].engine_s, 0.006, 1e-12);
	TAP_EQ(t.frames[2].vm, 0);
	TAP_EQ(t.frames[2].frames, 1);
	TAP_NEAR(t.seconds, 7, 1e-12);
	trace_free(&t);
}

int main(void)
{
	seed = 1;
	tap_run(alone, "a VM alone is as fast as its costs allow");
	tap_run(conserves, "no time is made and none is lost");
	tap_run(works_on, "an engine that a VM could use is used, in its order");
	tap_run(shares_by_weight, "the engine is shared by weight");
	tap_run(threads_share_cpus, "busy threads share the CPUs equally");
	tap_run(keeps_limits, "limits are kept, and reached");
	tap_run(held_time_is_counted, "the time that frames are held is counted");
	tap_run(comes_and_goes, "VMs start, end and pause");
	tap_run(refuses_nonsense, "a machine that cannot be is refused");
	tap_run(same_seed_same_run, "the same seed gives the same run");
	tap_run(costs_are_what_was_asked_for, "costs have the means and deviations asked for");
	tap_run(replay_reproduces_costs, "a replay costs what was recorded");
	tap_run(idle_parts_of_a_trace_are_idle, "a VM is idle where its trace is");
	tap_run(hostile_traces, "an invalid trace is refused with file and line");
	tap_run(accepts_variants, "a trace may have other columns and order");
	return tap_done();
}
