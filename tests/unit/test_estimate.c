// SPDX-License-Identifier: GPL-2.0-only
/* From counters to rates: vGPUs come, go and stop, counters wrap and fall. */
#include <stdlib.h>

#include "estimate.h"
#include "tap.h"

#define SEC	1000000000ULL
#define MS	1000000ULL
#define MAX	4

/* A machine of which tests change what they are about. */
static struct sample_vgpu vgpus[MAX];
static struct sample_vmm vmms[MAX];
static struct sample_dev devs[2];
static struct sample now;
static struct estimate e;

static void begin(size_t n)
{
	memset(vgpus, 0, sizeof(vgpus));
	memset(vmms, 0, sizeof(vmms));
	devs[0] = (struct sample_dev){ .id = 0, .engines = 1 };
	devs[1] = (struct sample_dev){ .id = 1, .engines = 2 };
	for (size_t j = 0; j < n; j++) {
		vgpus[j].id = (uint32_t)j;
		snprintf(vgpus[j].uuid, sizeof(vgpus[j].uuid), "uuid-%zu", j);
		vgpus[j].open = true;
		vgpus[j].tgid = vmms[j].tgid = 100 + (uint32_t)j;
		vmms[j].wait_known = true;
		vgpus[j].frames = 1000;
	}
	now = (struct sample){
		.now_ns = 50 * SEC, .cpus = 4, .idle_ns = 7 * SEC,
		.vgpus = vgpus, .nr_vgpus = n, .vmms = vmms, .nr_vmms = n,
		.devs = devs, .nr_devs = 2,
	};
	estimate_free(&e);
	TAP_EQ(estimate_update(&e, &now, ESTIMATE_HEADROOM), 0);
}

static void all_finite(void)
{
	TAP_CHECK(isfinite(e.seconds) && isfinite(e.cpu_capacity));
	TAP_CHECK(e.cpu_capacity >= ESTIMATE_CPU_MIN && e.cpu_capacity <= 4);
	for (size_t j = 0; j < e.nr_vgpus; j++) {
		const struct estimate_vgpu *v = &e.vgpus[j];

		TAP_CHECK(isfinite(v->fps) && v->fps >= 0);
		TAP_CHECK(isfinite(v->cpu_use) && v->cpu_use >= 0);
		TAP_CHECK(isfinite(v->gpu_use) && v->gpu_use >= 0);
		TAP_CHECK(isfinite(v->cpu_cost) && isfinite(v->gpu_cost));
		TAP_CHECK(isfinite(v->cpu_cost_smooth) && isfinite(v->gpu_cost_smooth));
		TAP_CHECK(isfinite(v->share) && v->share >= 0);
		TAP_CHECK(!isnan(v->demand) && v->demand >= 0);
		TAP_CHECK(isfinite(v->queue) && v->queue >= 0);
		TAP_CHECK(v->cpu_wait >= 0 && v->cpu_wait <= 1);
		TAP_CHECK(v->state != VGPU_ACTIVE || (v->reach >= 1 && v->unheld >= 1));
		TAP_CHECK(v->state == VGPU_ACTIVE || v->fps <= 0);
		TAP_CHECK(v->state != VGPU_ACTIVE || v->share > 0);
	}
}

static void period(uint64_t ns)
{
	now.now_ns += ns;
	TAP_EQ(estimate_update(&e, &now, ESTIMATE_HEADROOM), 0);
	all_finite();
}

static void work(size_t j, uint64_t frames, uint64_t cpu_ms, uint64_t gpu_ms)
{
	vgpus[j].frames += frames;
	vgpus[j].engine_ns += gpu_ms * MS;
	for (size_t k = 0; k < MAX; k++)
		if (vmms[k].tgid == vgpus[j].tgid)
			vmms[k].cpu_ns += cpu_ms * MS;
}

static void first(void)
{
	begin(2);
	TAP_NEAR(e.seconds, 0, 0);
	TAP_EQ(e.vgpus[0].state, VGPU_IDLE);
	all_finite();
}

static void rates(void)
{
	begin(2);
	work(0, 60, 600, 120);
	work(1, 30, 1200, 60);
	now.idle_ns += 3000 * MS;
	period(2 * SEC);
	TAP_NEAR(e.seconds, 2, 1e-12);
	TAP_NEAR(e.cpu_capacity, (3.0 + 1.8) / 2, 1e-12);
	TAP_NEAR(e.vgpus[0].fps, 30, 1e-12);
	TAP_NEAR(e.vgpus[0].cpu_cost, 0.010, 1e-12);
	TAP_NEAR(e.vgpus[0].gpu_cost, 0.002, 1e-12);
	TAP_NEAR(e.vgpus[1].cpu_use, 0.6, 1e-12);
	TAP_NEAR(e.vgpus[1].cpu_share, 0.6 / 2.4, 1e-12);
	TAP_NEAR(e.vgpus[1].gpu_share, 0.03, 1e-12);
	TAP_NEAR(e.vgpus[1].share, 0.25, 1e-12);
	TAP_NEAR(e.vgpus[1].demand, 15 * ESTIMATE_HEADROOM, 1e-12);
}

/* A period of a second; the first vGPU's times in it, milliseconds. */
static const struct {
	const char *what;
	uint64_t frames, cpu, gpu, held, queue, wait, idle;
	double reach, unheld;
} spent[] = {
	{ "serial, alone", 40, 600, 400, 0, 0, 0, 3000, 1, 1 },
	{ "serial, waits for the engine", 40, 300, 200, 0, 500, 0, 3000, 2, 1 },
	{ "serial, waits for a CPU", 40, 300, 200, 0, 0, 500, 1000, 2, 1 },
	{ "threads waited, but CPUs were idle", 40, 300, 200, 0, 0, 900, 3600, 1, 1 },
	{ "held back", 40, 300, 200, 500, 0, 0, 3000, 2, 2 },
	{ "held back, and waits", 40, 150, 100, 500, 250, 0, 3000, 4, 2 },
	{ "keeps its pace, and waits less than it sleeps", 20, 100, 100, 0, 300, 0, 3000, 1, 1 },
	{ "keeps its pace, but waits longer", 20, 100, 100, 0, 500, 0, 3000, 1.25, 1 },
	{ "works on the next frame while it waits", 40, 500, 200, 0, 800, 0, 3000, 2, 1 },
	{ "bound by the engine", 40, 100, 500, 0, 900, 0, 3000, 2, 1 },
	{ "several threads", 40, 1500, 100, 0, 900, 0, 1000, 4.0 / 3, 1 },
	{ "one thread and the VMM's own", 40, 1050, 100, 0, 900, 0, 1000, 1, 1 },
	{ "several jobs wait at once", 40, 250, 100, 0, 4000, 0, 1000, 4, 1 },
};

static void what_it_could_reach(void)
{
	for (size_t i = 0; i < sizeof(spent) / sizeof(spent[0]); i++) {
		begin(2);
		work(0, spent[i].frames, spent[i].cpu, spent[i].gpu);
		vgpus[0].throttled_ns += spent[i].held * MS;
		vgpus[0].queue_ns += spent[i].queue * MS;
		vmms[0].wait_ns += spent[i].wait * MS;
		now.idle_ns += spent[i].idle * MS;
		period(SEC);
		if (!TAP_NEAR(e.vgpus[0].reach, spent[i].reach, 1e-9) ||
		    !TAP_NEAR(e.vgpus[0].unheld, spent[i].unheld, 1e-9))
			tap_diag("%s", spent[i].what);
	}
}

/* A limit of engine time holds a VM back as one of frames does: it is no queue. */
static void limited_engine_time(void)
{
	double reach[2], unheld[2];

	for (size_t i = 0; i < 2; i++) {
		begin(2);
		work(0, 40, 300, 200);
		vgpus[0].throttled_ns += i ? 0 : 500 * MS;
		vgpus[0].limited_ns += i ? 500 * MS : 0;
		vgpus[0].queue_ns += i ? 700 * MS : 200 * MS;
		now.idle_ns += 3000 * MS;
		period(SEC);
		TAP_NEAR(e.vgpus[0].queue, 0.2, 1e-9);
		TAP_CHECK(e.vgpus[0].held);
		TAP_CHECK(isinf(e.vgpus[0].demand));
		reach[i] = e.vgpus[0].reach;
		unheld[i] = e.vgpus[0].unheld;
	}
	TAP_NEAR(reach[1], reach[0], 1e-9);
	TAP_NEAR(unheld[1], unheld[0], 1e-9);
}

/* A VM could not have reached, under any controller, a rate that the operator refuses it. */
static void refused_by_operator(void)
{
	static const struct {
		uint32_t limit;
		double reach;
	} refused[] = { { 0, 2 }, { 90000, 2 }, { 50000, 1.25 }, { 40000, 1 }, { 39000, 1 } };

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		begin(2);
		vgpus[0].fps_limit = refused[i].limit;
		work(0, 40, 300, 200);
		vgpus[0].throttled_ns += 500 * MS;
		now.idle_ns += 3000 * MS;
		period(SEC);
		TAP_NEAR(e.vgpus[0].reach, refused[i].reach, 1e-9);
		TAP_NEAR(e.vgpus[0].unheld, refused[i].reach, 1e-9);
	}
}

/* Where waits for CPUs are not known, they may be all the time without an idle CPU. */
static void unknown_waits(void)
{
	begin(2);
	vmms[0].wait_known = false;
	work(0, 40, 300, 200);
	now.idle_ns += 2000 * MS;
	period(SEC);
	TAP_NEAR(e.vgpus[0].cpu_wait, 0.5, 1e-9);
	TAP_NEAR(e.vgpus[0].reach, 2, 1e-9);
	/* a counter says nothing until it was read twice */
	vmms[0].wait_known = true;
	work(0, 40, 300, 200);
	now.idle_ns += 2000 * MS;
	period(SEC);
	TAP_NEAR(e.vgpus[0].cpu_wait, 0.5, 1e-9);
	/* nor does one that fell */
	vmms[0].wait_ns = 5 * SEC;
	work(0, 40, 300, 200);
	period(SEC);
	vmms[0].wait_ns = 0;
	work(0, 40, 300, 200);
	now.idle_ns += 2000 * MS;
	period(SEC);
	TAP_NEAR(e.vgpus[0].reach, 2, 1e-9);
}

/* The CPUs that a VM has shown to use stay known while the same VMM has it open. */
static void remembers_cpus(void)
{
	begin(2);
	work(0, 40, 1900, 100);
	period(SEC);
	work(0, 10, 500, 100);
	vgpus[0].throttled_ns += 900 * MS;
	period(SEC);
	TAP_NEAR(e.vgpus[0].reach, 4, 1e-9);
	vgpus[0].tgid = vmms[0].tgid = 90;
	period(SEC);
	work(0, 10, 500, 100);
	vgpus[0].throttled_ns += 900 * MS;
	period(SEC);
	TAP_NEAR(e.vgpus[0].reach, 2, 1e-9);
}

static void two_devices(void)
{
	begin(2);
	vgpus[1].dev = 1;
	work(0, 10, 10, 500);
	work(1, 10, 10, 500);
	now.idle_ns += 3 * SEC;
	period(SEC);
	TAP_NEAR(e.vgpus[0].gpu_share, 0.5, 1e-12);
	TAP_NEAR(e.vgpus[1].gpu_share, 0.25, 1e-12);	/* two engines */
}

static void idle(void)
{
	begin(2);
	for (unsigned int k = 1; k <= 5; k++) {
		work(0, 10, 50, 10);
		work(1, 0, 300, 0);	/* busy, but shows nothing */
		now.idle_ns += 2 * SEC;
		period(SEC);
		TAP_EQ(e.vgpus[1].state, VGPU_IDLE);
		TAP_EQ(e.vgpus[1].idle_ns, k * SEC);
		/* vGPUs that show frames cannot have its part */
		TAP_NEAR(e.cpu_capacity, 2.05, 1e-9);
	}
	work(1, 5, 300, 10);
	period(SEC);
	TAP_EQ(e.vgpus[1].state, VGPU_ACTIVE);
	TAP_EQ(e.vgpus[1].idle_ns, 0);
}

static void held(void)
{
	begin(1);
	work(0, 30, 300, 10);
	vgpus[0].throttled_ns += 100 * MS;
	period(SEC);
	TAP_CHECK(e.vgpus[0].held && isinf(e.vgpus[0].demand));
	work(0, 30, 300, 10);
	vgpus[0].throttled_ns += 10 * MS;
	period(SEC);
	TAP_CHECK(!e.vgpus[0].held && isfinite(e.vgpus[0].demand));
}

static void smooth(void)
{
	begin(1);
	work(0, 100, 1000, 100);
	period(SEC);
	TAP_NEAR(e.vgpus[0].cpu_cost_smooth, 0.010, 1e-12);
	work(0, 100, 1200, 100);
	period(SEC);
	TAP_NEAR(e.vgpus[0].cpu_cost, 0.012, 1e-12);
	TAP_CHECK(e.vgpus[0].cpu_cost_smooth > 0.0105 && e.vgpus[0].cpu_cost_smooth < 0.0119);
	for (unsigned int k = 0; k < 40; k++) {
		work(0, 100, 2000, 100);
		period(SEC);
	}
	TAP_NEAR(e.vgpus[0].cpu_cost_smooth, 0.020, 1e-6);
	/* a period without frames says nothing about what frames cost */
	work(0, 0, 900, 0);
	period(SEC);
	TAP_NEAR(e.vgpus[0].cpu_cost_smooth, 0.020, 1e-6);
	work(0, 100, 2000, 100);
	period(SEC);
	TAP_NEAR(e.vgpus[0].cpu_cost_smooth, 0.020, 1e-6);
}

static void stall(void)
{
	begin(1);
	for (unsigned int k = 0; k < 10; k++) {
		work(0, 20, 600, 100);
		period(SEC);
	}
	/* one period in which a frame seems to cost forty times as much */
	work(0, 1, 1200, 5);
	period(SEC);
	TAP_NEAR(e.vgpus[0].cpu_cost, 1.2, 1e-9);
	TAP_CHECK(e.vgpus[0].cpu_cost_smooth <= 0.030 * ESTIMATE_RISE + 1e-9);
	work(0, 20, 600, 100);
	period(SEC);
	TAP_CHECK(e.vgpus[0].cpu_cost_smooth < 0.0355);
}

/* A change that a second period confirms is a change, not a stall. */
static void change_of_scene(void)
{
	begin(1);
	for (unsigned int k = 0; k < 10; k++) {
		work(0, 50, 500, 100);
		period(SEC);
	}
	for (unsigned int k = 0; k < 2; k++) {
		work(0, 25, 500, 100);
		period(SEC);
	}
	TAP_CHECK(e.vgpus[0].cpu_cost_smooth > 0.017);
	/* and down again, at once */
	work(0, 100, 500, 100);
	period(SEC);
	TAP_CHECK(e.vgpus[0].cpu_cost_smooth < 0.0065);
}

/* A sample that came a period late, or early, changes no rate and no cost. */
static void missed(void)
{
	begin(1);
	for (unsigned int k = 0; k < 12; k++) {
		unsigned int periods = k % 4 == 3 ? 2 : 1;

		work(0, 30 * periods, 300 * periods, 150 * periods);
		now.idle_ns += periods * SEC;
		period(periods * SEC);
		TAP_NEAR(e.vgpus[0].fps, 30, 1e-9);
		TAP_NEAR(e.vgpus[0].cpu_cost_smooth, 0.010, 1e-12);
		TAP_NEAR(e.vgpus[0].gpu_share, 0.15, 1e-9);
	}
	work(0, 15, 150, 75);
	period(SEC / 2);
	TAP_NEAR(e.vgpus[0].fps, 30, 1e-9);
}

/* With steady input nothing moves, not even where frames fall unevenly. */
static void steady(void)
{
	double low = INFINITY, high = 0;

	begin(2);
	for (unsigned int k = 0; k < 200; k++) {
		/* 7 and 8 frames of 20 ms by turns; the other exactly 60 */
		work(0, 7 + k % 2, 20 * (7 + k % 2), 5 * (7 + k % 2));
		work(1, 60, 600, 120);
		now.idle_ns += SEC;
		period(SEC);
		if (k < 5)
			continue;
		TAP_NEAR(e.vgpus[1].cpu_cost_smooth, 0.010, 1e-12);
		TAP_NEAR(e.vgpus[0].cpu_cost_smooth, 0.020, 1e-12);
		low = fmin(low, e.cpu_capacity_smooth);
		high = fmax(high, e.cpu_capacity_smooth);
	}
	TAP_CHECK(high - low < 0.02);
}

/*
 * Three games as mgpu-trace recorded them, on an emulated machine that stalls now
 * and then: the estimate of the next period is nearer to it than the period before.
 */
static void recorded(void)
{
	static const char tail[] = "cab";
	double error = 0, naive = 0, t, cpu, engine, held;
	unsigned int frame, frames, second = 1, compared = 0;
	struct estimate_vgpu before[3] = { 0 };
	FILE *f = fopen(DATA "/frames.csv", "r");
	char line[256], uuid[64];

	TAP_NEED(f);
	begin(3);
	while (fgets(line, sizeof(line), f)) {
		size_t j;

		if (sscanf(line, "%lf,%63[^,],%u,%u,%lf,%lf,%lf", &t, uuid, &frame,
			   &frames, &cpu, &engine, &held) != 7)
			continue;
		for (; t >= second; second++) {
			memcpy(before, e.vgpus, sizeof(before));
			period(SEC);
			for (j = 0; j < 3; j++) {
				double real = e.vgpus[j].cpu_cost;

				if (!(before[j].cpu_cost > 0) || !(e.vgpus[j].fps > 0))
					continue;
				error += fabs(log(before[j].cpu_cost_smooth / real));
				naive += fabs(log(before[j].cpu_cost / real));
				compared++;
			}
		}
		j = (size_t)(strchr(tail, uuid[strlen(uuid) - 1]) - tail);
		TAP_NEED(j < 3);
		vgpus[j].frames += frames;
		vgpus[j].engine_ns += (uint64_t)(engine * 1e9);
		vgpus[j].throttled_ns += (uint64_t)(held * 1e9);
		vmms[j].cpu_ns += (uint64_t)(cpu * 1e9);
	}
	fclose(f);
	tap_diag("%u costs: off by %.1f %% in the mean, the period before by %.1f %%",
		 compared, 100 * error / compared, 100 * naive / compared);
	TAP_CHECK(compared > 40);
	TAP_CHECK(error < naive);
}

static void between_frames(void)
{
	begin(2);
	for (unsigned int k = 0; k < 5; k++) {
		work(0, 1, 900, 20);
		work(1, 10, 100, 20);
		period(SEC);
	}
	/* no frame, but the CPU time of nearly one */
	work(0, 0, 700, 0);
	work(1, 10, 100, 20);
	now.idle_ns += SEC;
	period(SEC);
	TAP_EQ(e.vgpus[0].state, VGPU_ACTIVE);
	TAP_NEAR(e.vgpus[0].fps, 0, 0);
	TAP_NEAR(e.vgpus[0].share, 0.7 / 1.8, 1e-9);
	TAP_NEAR(e.vgpus[0].cpu_cost, 0.9, 1e-9);
	TAP_CHECK(isinf(e.vgpus[0].demand));
	/* for so long, then the VM changes its load */
	for (unsigned int k = 0; k < 3; k++) {
		work(0, 0, 700, 0);
		period(SEC);
	}
	TAP_EQ(e.vgpus[0].state, VGPU_IDLE);
	/* a vGPU that stops is idle at once */
	work(1, 0, 1, 0);
	period(SEC);
	TAP_EQ(e.vgpus[1].state, VGPU_IDLE);
}

static void comes_and_goes(void)
{
	begin(1);
	work(0, 10, 100, 10);
	/* another vGPU, which had counts before the first sample */
	vgpus[1] = (struct sample_vgpu){ .id = 1, .uuid = "new", .open = true,
		.tgid = 101, .frames = 1u << 30, .engine_ns = 99 * SEC };
	vmms[1] = (struct sample_vmm){ .tgid = 101, .cpu_ns = 77 * SEC };
	now.nr_vgpus = now.nr_vmms = 2;
	period(SEC);
	TAP_EQ(e.vgpus[1].state, VGPU_IDLE);
	work(0, 10, 100, 10);
	work(1, 20, 100, 10);
	period(SEC);
	TAP_EQ(e.vgpus[1].state, VGPU_ACTIVE);
	TAP_NEAR(e.vgpus[1].fps, 20, 1e-9);

	/* closed: no VMM any more */
	vgpus[1].open = false;
	vgpus[1].tgid = 0;
	now.nr_vmms = 1;
	work(0, 10, 100, 10);
	period(SEC);
	TAP_EQ(e.vgpus[1].state, VGPU_CLOSED);

	/* removed, all of them */
	now.nr_vgpus = now.nr_vmms = 0;
	period(SEC);
	TAP_EQ(e.nr_vgpus, 0);
	period(SEC);
}

static void other_vgpu_same_id(void)
{
	begin(1);
	strcpy(vgpus[0].uuid, "another");
	work(0, 500, 100, 10);
	period(SEC);
	TAP_EQ(e.vgpus[0].state, VGPU_IDLE);
}

static void other_vmm(void)
{
	begin(1);
	vgpus[0].tgid = vmms[0].tgid = 555;
	work(0, 50, 100, 10);
	period(SEC);
	TAP_EQ(e.vgpus[0].state, VGPU_IDLE);
	work(0, 50, 100, 10);
	period(SEC);
	TAP_EQ(e.vgpus[0].state, VGPU_ACTIVE);
	TAP_NEAR(e.vgpus[0].cpu_cost, 0.002, 1e-12);
}

static void wraps_and_falls(void)
{
	begin(1);
	vgpus[0].frames = UINT64_MAX - 9;
	vgpus[0].engine_ns = UINT64_MAX - MS;
	vmms[0].cpu_ns = UINT64_MAX;
	now.idle_ns = UINT64_MAX - 5;
	period(SEC);
	work(0, 20, 100, 10);
	now.idle_ns += 2 * SEC;
	period(SEC);
	TAP_NEAR(e.vgpus[0].fps, 20, 1e-9);
	TAP_NEAR(e.vgpus[0].cpu_cost, 0.005, 1e-9);
	TAP_NEAR(e.vgpus[0].gpu_cost, 0.0005, 1e-9);
	TAP_NEAR(e.cpu_capacity, 2.1, 1e-9);

	/* a counter that fell begins anew: no rate, not a huge one */
	vgpus[0].frames = 3;
	period(SEC);
	TAP_EQ(e.vgpus[0].state, VGPU_IDLE);
	vmms[0].cpu_ns = 0;
	now.idle_ns = 0;
	vgpus[0].frames += 10;
	period(SEC);
	work(0, 10, 100, 10);
	period(SEC);
	TAP_EQ(e.vgpus[0].state, VGPU_ACTIVE);
	TAP_NEAR(e.vgpus[0].fps, 10, 1e-9);
}

static void shared_vmm(void)
{
	begin(2);
	vgpus[1].tgid = vgpus[0].tgid;
	now.nr_vmms = 1;
	period(SEC);
	vgpus[0].frames += 30;
	vgpus[1].frames += 10;
	vgpus[0].engine_ns += MS;
	vgpus[1].engine_ns += MS;
	vmms[0].cpu_ns += 400 * MS;
	period(SEC);
	TAP_NEAR(e.vgpus[0].cpu_use, 0.3, 1e-12);
	TAP_NEAR(e.vgpus[1].cpu_use, 0.1, 1e-12);
	/* one of them alone carries all of it */
	vgpus[0].frames += 30;
	vmms[0].cpu_ns += 400 * MS;
	period(SEC);
	TAP_NEAR(e.vgpus[0].cpu_use, 0.4, 1e-12);
	TAP_EQ(e.vgpus[1].state, VGPU_IDLE);
}

static void no_vmm(void)
{
	begin(1);
	now.nr_vmms = 0;	/* its CPU time cannot be had */
	work(0, 30, 0, 10);
	period(SEC);
	TAP_EQ(e.vgpus[0].state, VGPU_IDLE);
}

static void strange_times(void)
{
	begin(1);
	work(0, 30, 100, 10);
	period(0);		/* no time has passed */
	TAP_NEAR(e.seconds, 0, 0);
	work(0, 30, 100, 10);
	now.now_ns -= 10 * SEC;	/* the clock went back */
	period(0);
	TAP_NEAR(e.seconds, 0, 0);
	work(0, 30, 100, 10);
	period(3600 * SEC);	/* suspended */
	TAP_NEAR(e.vgpus[0].fps, 30.0 / 3600, 1e-12);
}

static void other_source(void)
{
	begin(1);
	work(0, 1u << 30, 100, 10);
	now.source = 3;		/* eBPF's counters in place of the module's */
	period(SEC);
	TAP_NEAR(e.seconds, 0, 0);
	TAP_EQ(e.vgpus[0].state, VGPU_IDLE);
}

static void capacity(void)
{
	begin(1);
	/* everything is used by others */
	work(0, 1, 1, 1);
	period(SEC);
	TAP_NEAR(e.cpu_capacity, ESTIMATE_CPU_MIN, 1e-12);
	/* more idle time than there is: never above the CPUs */
	work(0, 1, 1, 1);
	now.idle_ns += 9 * SEC;
	period(SEC);
	TAP_NEAR(e.cpu_capacity, 4, 1e-12);
	/* VMs used more than the CPUs, by the clocks: never below what was used */
	work(0, 1, 5000, 1);
	now.now_ns += SEC;
	TAP_EQ(estimate_update(&e, &now, ESTIMATE_HEADROOM), 0);
	TAP_CHECK(e.vgpus[0].cpu_share <= 1);
}

static void charges(void)
{
	begin(2);
	vgpus[0].charged_bpf_ns += 300 * MS;
	vgpus[1].charged_self_ns += 100 * MS;
	period(SEC);
	TAP_NEAR(e.charged_bpf, 0.3, 1e-12);
	TAP_NEAR(e.charged_self, 0.1, 1e-12);
}

/* Anything at all in the counters: never a NaN, never a negative rate. */
static void anything(void)
{
	static const uint64_t odd[] = { 0, 1, UINT64_MAX, UINT64_MAX / 2, 1ULL << 63, SEC };
	uint64_t r = 12345;

	begin(MAX);
	for (unsigned int k = 0; k < 20000; k++) {
		size_t j;

		r = r * 6364136223846793005ULL + 1442695040888963407ULL;
		j = r >> 62;
		switch (r >> 33 & 15) {
		case 0:
			vgpus[j].frames = odd[(r >> 40) % 6];
			break;
		case 1:
			vgpus[j].engine_ns = odd[(r >> 40) % 6];
			break;
		case 2:
			vgpus[j].throttled_ns = odd[(r >> 40) % 6];
			vgpus[j].queue_ns = odd[(r >> 43) % 6];
			break;
		case 3:
			vmms[j].cpu_ns = odd[(r >> 40) % 6];
			vmms[j].wait_ns = odd[(r >> 43) % 6];
			vmms[j].wait_known = r >> 46 & 1;
			break;
		case 4:
			now.idle_ns = odd[(r >> 40) % 6];
			break;
		case 5:
			vgpus[j].open = !vgpus[j].open;
			break;
		case 6:
			now.nr_vmms = (r >> 40) % (MAX + 1);
			break;
		case 7:
			now.nr_vgpus = (r >> 40) % (MAX + 1);
			break;
		case 8:
			vgpus[j].uuid[0] ^= 1;
			break;
		case 9:
			now.cpus = (r >> 40) % 5;
			break;
		default:
			work(j, (r >> 40) % 100, (r >> 45) % 900, (r >> 50) % 900);
		}
		now.now_ns += (r >> 20) % SEC;
		TAP_EQ(estimate_update(&e, &now, ESTIMATE_HEADROOM), 0);
		for (j = 0; j < e.nr_vgpus; j++) {
			const struct estimate_vgpu *v = &e.vgpus[j];

			TAP_CHECK(isfinite(v->fps) && v->fps >= 0);
			TAP_CHECK(isfinite(v->share) && v->share >= 0);
			TAP_CHECK(isfinite(v->cpu_cost_smooth) && v->cpu_cost_smooth >= 0);
			TAP_CHECK(!isnan(v->demand));
		}
		TAP_CHECK(isfinite(e.cpu_capacity) && e.cpu_capacity > 0);
		if (tap.bad > 10)
			return;
	}
}

int main(void)
{
	tap_run(first, "the first sample only gives a base to compare with");
	tap_run(rates, "rates, costs and shares follow the counters");
	tap_run(what_it_could_reach, "what a VM could reach follows its waits and its sleep");
	tap_run(limited_engine_time, "a limit of engine time is no queue");
	tap_run(refused_by_operator, "no VM could reach more than the operator's limit");
	tap_run(unknown_waits, "unknown waits may be all that there is room for");
	tap_run(remembers_cpus, "the CPUs that a VM used stay known");
	tap_run(two_devices, "each device has its own engines");
	tap_run(idle, "a vGPU without frames is idle, whatever else it does");
	tap_run(held, "the demand of a vGPU that a limit holds back is not known");
	tap_run(smooth, "costs follow changes, but not at once");
	tap_run(stall, "a stall of the host is not taken for a cost");
	tap_run(change_of_scene, "a change that two periods show is believed");
	tap_run(missed, "a period missed changes nothing");
	tap_run(steady, "steady input gives a steady estimate");
	tap_run(recorded, "recorded games: the estimate foretells more than the period before");
	tap_run(between_frames, "a vGPU that works on a frame is active without one");
	tap_run(comes_and_goes, "vGPUs may come, close and go");
	tap_run(other_vgpu_same_id, "an id may pass to another vGPU");
	tap_run(other_vmm, "a vGPU may pass to another VMM");
	tap_run(wraps_and_falls, "counters may wrap around, and begin anew");
	tap_run(shared_vmm, "a VMM's CPU time goes to its vGPUs by frames");
	tap_run(no_vmm, "without CPU time there is no measurement");
	tap_run(strange_times, "clocks may stand, go back and leap");
	tap_run(other_source, "counters of two sources are not compared");
	tap_run(capacity, "capacity has bounds");
	tap_run(charges, "charges add up by source");
	tap_run(anything, "no counters lead to a NaN or a negative rate");
	estimate_free(&e);
	return tap_done();
}
