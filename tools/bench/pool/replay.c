// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replays a cluster trace through the pool at simulated time, and measures what a pass costs.
 *
 *	bench-pool-replay --nodes FILE --tasks FILE [--requests N] [--speed N] [--load PERCENT]
 *		[--forget PERCENT] [--json FILE]
 *	bench-pool-replay --cost [--json FILE]
 *
 * The files have the columns of Alibaba's cluster-trace-gpu-v2023 (ctl/place/place_trace.h).
 *
 * Requests.  A task with N GPUs is N requests for a whole GPU; a task with a part of a GPU is a
 * request for a vGPU of that part, rounded up to eighths.  Tasks without a GPU are left out, and
 * so is the first hundredth of the rest by time of creation: in the trace these are spread over
 * three quarters of the time, and the pool would stand empty.  Times are the trace's: a request
 * arrives at the creation and works as long as the task existed.  When the tasks are used up
 * before there are N requests, they arrive once more, later by the length of the trace.  Requests
 * arrive SPEED times as fast as in the trace; work, idle rule and all else keep their times, so the
 * pool that they fill is larger.
 *
 * Pool.  Hosts have 8 GPUs of a model; models are drawn evenly from the file of nodes.  There are
 * as many GPUs as make the offered load LOAD per cent: the work that could be done until the last
 * arrival if each request was served at once, to the GPU time of the pool until then.  Whole GPUs
 * and parents of vGPUs (8 slots) are divided by the work of either.  The trace names no users:
 * tasks that want the same (processors, memory, GPUs) are a project's, of 8 by a hash.  VMs stay on
 * their host and get GPUs of that host only.  There is a VM for each GPU, which project and
 * target own by their part of the work; a project's requests go to its VMs in turn.
 *
 * Policies.  history, best-fit and first-fit are the pool of ctl/pool under its settings; attaching
 * takes 5 s, detaching 3 s.  FORGET per cent of the users do not release: their work ends, the
 * counter stands still, and the idle rule takes the GPU back.  Counters are the host's, grow as
 * fast as time while there is work, and are read every 300 s.
 *
 * Static assignment has two forms, and both are given more than they would have: nothing is
 * attached, nothing is forgotten, and they know the whole trace beforehand.
 *
 *	static-equal	has the pool's GPUs. Each VM owns its GPU for good, and all requests of its
 *			project come to the VMs that own GPUs, in turn. What waits is first come
 *			first served.
 *	static-peak	has as many GPUs as owners need so that nothing waits. An owner is all tasks
 *			that want the same; it owns its largest number of GPUs in use at a time (of
 *			vGPUs: the sum of parts) for good.
 *
 * Utilisation is GPU time of work (a vGPU: its part, not rounded) until the last arrival, to GPU
 * time of the pool until then.  Waiting is from arrival to attached, of all requests: the replay
 * goes on until the last is served.  The trace does not say how fast a task is on another model, so
 * the policies differ in packing only.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "inside.h"
#include "place_trace.h"

#define GPUS_OF_HOST	8
#define SLOTS		8
#define PROJECTS	8
#define TARGETS		2	/* whole GPUs, parents */
#define ATTACH_S	5
#define DETACH_S	3
#define SAMPLE_S	300
#define MAX_REQUESTS	1000000
#define MAX_GPUS	4096
#define BEGIN		INT64_C(1000000000)	/* times of the pool are not 0 */

/**
 * struct ask - a request of the trace
 * @at: arrival; @work: seconds of work; @share: part of a GPU
 * @slots: eighths, 0: a whole GPU
 * @wants: what the task wants, as a number
 * @vm: that asks; @forgets: does not release
 * @started: when its work began, -1: not yet
 */
struct ask {
	int64_t at;
	int64_t work;
	double share;
	unsigned int slots;
	uint64_t wants;
	unsigned int project;
	unsigned int vm;
	bool forgets;
	int64_t started;
};

/* The purpose of a GPU. The VM of the same number owns it when it is static. */
struct place_of {
	unsigned int project;
	bool parent;
};

static struct ask *asks;
static size_t nr_asks;
static struct place_of *gpus;
static size_t nr_gpus;
static int64_t end;	/* last arrival */
static const char *models[MAX_GPUS / GPUS_OF_HOST];

static void die(const char *what)
{
	fprintf(stderr, "bench-pool-replay: %s\n", what);
	exit(1);
}

static void *take(size_t nr, size_t size)
{
	void *memory = calloc(nr + 1, size);

	if (!memory)
		die("out of memory");
	return memory;
}

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* ---- the trace ---- */

static int by_creation(const void *a, const void *b)
{
	const struct place_task *x = a, *y = b;

	return x->creation_s < y->creation_s ? -1 : x->creation_s > y->creation_s;
}

/* A number for what a task wants. */
static uint64_t wants_of(const struct place_request *r)
{
	return mix(mix(mix((uint64_t)r->cpu_milli + 1) + (uint64_t)r->memory_mib) +
		   r->gpu_milli * UINT64_C(32) + r->nr_gpus);
}

static void add_task(const struct place_task *t, int64_t at, unsigned int forget, size_t most)
{
	for (unsigned int g = 0; g < t->r.nr_gpus && nr_asks < most; g++) {
		bool part = t->r.gpu_milli < PLACE_WHOLE;
		unsigned int eighths = (t->r.gpu_milli * SLOTS + PLACE_WHOLE - 1) / PLACE_WHOLE;

		asks[nr_asks] = (struct ask){
			.at = at,
			.work = t->deletion_s > t->creation_s ? t->deletion_s - t->creation_s : 1,
			.share = t->r.gpu_milli / (double)PLACE_WHOLE,
			.slots = part ? eighths : 0,
			.wants = wants_of(&t->r),
			.project = (unsigned int)(wants_of(&t->r) % PROJECTS),
			.forgets = mix(nr_asks + 77) % 100 < forget,
			.started = -1,
		};
		nr_asks++;
	}
}

static void make_asks(struct place_trace *t, size_t wanted, unsigned int speed,
		      unsigned int forget)
{
	size_t first, nr = 0;
	int64_t from, span;

	qsort(t->tasks, t->nr_tasks, sizeof(*t->tasks), by_creation);
	for (size_t i = 0; i < t->nr_tasks; i++)
		if (t->tasks[i].r.nr_gpus)
			t->tasks[nr++] = t->tasks[i];
	if (!nr || !t->timed)
		die("the tasks have no GPUs or no times; creation_time and deletion_time are needed");
	first = nr / 100;
	from = t->tasks[first].creation_s;
	span = t->tasks[nr - 1].creation_s - from + 1;
	asks = take(wanted, sizeof(*asks));
	for (int64_t round = 0; nr_asks < wanted; round++)
		for (size_t i = first; i < nr; i++)
			add_task(&t->tasks[i], BEGIN + (t->tasks[i].creation_s - from +
							round * span) / speed, forget, wanted);
	end = asks[nr_asks - 1].at;
}

/* ---- the pool's shape ---- */

static double work_until_end(const struct ask *a)
{
	int64_t left = end - a->at;

	return a->share * (double)(a->work < left ? a->work : left);
}

/* Divide @nr GPUs by the work of projects and targets: largest remainder, at least one each. */
static void divide(size_t nr, double work[PROJECTS][TARGETS], unsigned int of[PROJECTS][TARGETS])
{
	double all = 0;
	size_t given = 0;

	for (int p = 0; p < PROJECTS; p++)
		for (int t = 0; t < TARGETS; t++)
			all += work[p][t];
	for (int p = 0; p < PROJECTS; p++)
		for (int t = 0; t < TARGETS; t++) {
			of[p][t] = (unsigned int)(work[p][t] / all * (double)nr);
			if (!of[p][t] && work[p][t] > 0)
				of[p][t] = 1;
			given += of[p][t];
		}
	while (given != nr) {
		int sign = given < nr ? 1 : -1, best = -1;
		double most = -1e300;

		for (int i = 0; i < PROJECTS * TARGETS; i++) {
			unsigned int n = of[i / TARGETS][i % TARGETS];
			double part = work[i / TARGETS][i % TARGETS] / all * (double)nr;
			double lack = sign * (part - n);

			if ((sign < 0 && n < 2) || lack <= most)
				continue;
			most = lack;
			best = i;
		}
		if (best < 0)
			die("too few GPUs for the projects; raise --requests or lower --load");
		of[best / TARGETS][best % TARGETS] += (unsigned int)sign;
		given += (size_t)sign;
	}
}

/* Deal the GPUs of each project and target over the hosts. */
static void deal(unsigned int of[PROJECTS][TARGETS])
{
	size_t hosts = nr_gpus / GPUS_OF_HOST, k = 0;

	gpus = take(nr_gpus, sizeof(*gpus));
	for (unsigned int p = 0; p < PROJECTS; p++)
		for (unsigned int t = 0; t < TARGETS; t++)
			for (unsigned int n = of[p][t]; n; n--, k++)
				gpus[k % hosts * GPUS_OF_HOST + k / hosts] =
					(struct place_of){ .project = p, .parent = t };
}

/* Each project's requests go to its VMs (a VM for each GPU) in turn. */
static void give_vms(void)
{
	size_t turn[PROJECTS][TARGETS] = { 0 };

	for (size_t i = 0; i < nr_asks; i++) {
		struct ask *a = &asks[i];
		size_t *at = &turn[a->project][a->slots > 0];

		do {
			*at = (*at + 1) % nr_gpus;
		} while (gpus[*at].project != a->project || gpus[*at].parent != (a->slots > 0));
		a->vm = (unsigned int)*at;
	}
}

static double make_pool(const struct place_trace *t, unsigned int load)
{
	double work[PROJECTS][TARGETS] = { 0 }, all = 0, time = (double)(end - asks[0].at);
	unsigned int of[PROJECTS][TARGETS];
	size_t hosts, nodes = 0;

	for (size_t i = 0; i < nr_asks; i++) {
		work[asks[i].project][asks[i].slots > 0] += work_until_end(&asks[i]);
		all += work_until_end(&asks[i]);
	}
	hosts = (size_t)(all / time * 100 / load / GPUS_OF_HOST + 0.5);
	if (hosts < 2)
		hosts = 2;
	if (hosts > MAX_GPUS / GPUS_OF_HOST)
		die("more than 4096 GPUs; raise --load");
	nr_gpus = hosts * GPUS_OF_HOST;
	for (size_t h = 0; h < hosts; h++) {
		nodes = h * t->nr_nodes / hosts;
		models[h] = t->models[t->nodes[nodes].model];
	}
	divide(nr_gpus, work, of);
	deal(of);
	give_vms();
	return all / time / (double)nr_gpus;
}

/* ---- events ---- */

enum event_kind { ARRIVAL, ATTACHED, DETACHED, WORK_ENDS, SAMPLE };

struct event {
	int64_t time;
	uint64_t order;
	enum event_kind kind;
	uint64_t id;
};

static struct event *heap;
static size_t nr_events, room;
static uint64_t orders;

static bool before(const struct event *a, const struct event *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void push(int64_t time, enum event_kind kind, uint64_t id)
{
	struct event e = { time, orders++, kind, id };
	size_t i = nr_events++;

	if (i == room) {
		room = room ? room * 2 : 1024;
		heap = reallocarray(heap, room, sizeof(*heap));
		if (!heap)
			die("out of memory");
	}
	for (; i && before(&e, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = e;
}

static struct event pop(void)
{
	struct event first = heap[0], last = heap[--nr_events];
	size_t i = 0, child;

	while ((child = 2 * i + 1) < nr_events) {
		child += child + 1 < nr_events && before(&heap[child + 1], &heap[child]);
		if (!before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

/* ---- the pool ---- */

static struct pool *pool;
static int64_t now;
static uint64_t last_id;
static unsigned int taken_back, taken_from_work;

static int on_store(void *arg, const struct pool_request *r)
{
	(void)arg;
	(void)r;
	return 0;
}

static int on_add(void *arg, struct pool_request *r)
{
	(void)arg;
	r->id = ++last_id;
	return 0;
}

static int on_outcome(void *arg, const struct pool_outcome *outcome)
{
	(void)arg;
	(void)outcome;
	return 0;
}

static void on_event(void *arg, const struct pool_event *event)
{
	const struct ask *a = &asks[event->request - 1];

	(void)arg;
	if (strcmp(event->what, "release") || strncmp(event->text, "idle", 4))
		return;
	taken_back++;
	taken_from_work += now < a->started + a->work;
}

static void on_job(void *arg, const struct pool_job *job)
{
	(void)arg;
	if (job->kind == POOL_JOB_ATTACH)
		push(now + ATTACH_S, ATTACHED, job->request.id);
	else
		push(now + DETACH_S, DETACHED, job->request.id);
}

static void load_pool(const char *policy)
{
	const struct pool_hooks hooks = {
		.store_request = on_store, .add_request = on_add, .outcome = on_outcome,
		.event = on_event, .job = on_job,
	};
	struct pool_settings s;

	pool_settings_default(&s);
	s.max_queue = s.max_queue_project = MAX_REQUESTS;
	snprintf(s.policy, sizeof(s.policy), "%s", policy);
	pool = pool_new(&s, &hooks);
	if (!pool)
		die("out of memory");
	for (unsigned int p = 0; p < PROJECTS; p++) {
		struct pool_project project = { .weight = POOL_WEIGHT_DEFAULT };

		snprintf(project.name, sizeof(project.name), "p%u", p);
		pool_put_project(pool, &project);
	}
	for (size_t g = 0; g < nr_gpus; g++) {
		struct pool_gpu gpu = { .present = true, .group = -1, .slots = 1,
					.target = POOL_WHOLE };
		struct pool_vm vm = { 0 };

		if (gpus[g].parent) {
			gpu.target = POOL_VGPU;
			gpu.slots = SLOTS;
			snprintf(gpu.types, sizeof(gpu.types),
				 "s1 s2:2 s3:3 s4:4 s5:5 s6:6 s7:7 s8:8");
		}
		snprintf(gpu.host, sizeof(gpu.host), "h%zu", g / GPUS_OF_HOST);
		snprintf(gpu.name, sizeof(gpu.name), "%s/%zu", gpu.host, g);
		snprintf(gpu.model, sizeof(gpu.model), "%s", models[g / GPUS_OF_HOST]);
		pool_put_gpu(pool, &gpu);
		snprintf(vm.name, sizeof(vm.name), "v%zu", g);
		snprintf(vm.host, sizeof(vm.host), "%s", gpu.host);
		snprintf(vm.project, sizeof(vm.project), "p%u", gpus[g].project);
		pool_put_vm(pool, &vm);
	}
	for (size_t h = 0; h < nr_gpus / GPUS_OF_HOST; h++) {
		char host[32];

		snprintf(host, sizeof(host), "h%zu", h);
		pool_reconcile(pool, host, NULL, 0, BEGIN);
	}
}

static void arrive(uint64_t id)
{
	const struct ask *a = &asks[id - 1];
	struct pool_request r = { .target = a->slots ? POOL_VGPU : POOL_WHOLE };
	char text[POOL_TEXT_MAX];

	snprintf(r.key, sizeof(r.key), "k%" PRIu64, id);
	snprintf(r.vm, sizeof(r.vm), "v%u", a->vm);
	snprintf(r.kind, sizeof(r.kind), "p%u", a->project);
	if (a->slots)
		snprintf(r.type, sizeof(r.type), "s%u", a->slots);
	if (pool_ask(pool, &r, now, "replay", text) != 1 || r.id != id)
		die(text);
	if (id < nr_asks)
		push(asks[id].at, ARRIVAL, id + 1);
}

static void sample(uint64_t id)
{
	const struct ask *a = &asks[id - 1];
	int64_t busy = now - a->started < a->work ? now - a->started : a->work;
	const struct pool_use use = { .request = id, .time = now, .source = 'h',
				      .busy_ns = (uint64_t)busy * 1000000000 };

	if (!pool_use(pool, &use))
		push(now + SAMPLE_S, SAMPLE, id);
}

static void happen(const struct event *e)
{
	struct ask *a = &asks[e->id - 1];
	char text[POOL_TEXT_MAX];

	switch (e->kind) {
	case ARRIVAL:
		arrive(e->id);
		break;
	case ATTACHED:
		a->started = now;
		pool_attached(pool, e->id, "", now);
		push(now + a->work, WORK_ENDS, e->id);
		push(now + SAMPLE_S, SAMPLE, e->id);
		break;
	case DETACHED:
		pool_detached(pool, e->id, now);
		break;
	case WORK_ENDS:
		if (!a->forgets)
			pool_release(pool, e->id, true, now, "replay", text);
		break;
	case SAMPLE:
		sample(e->id);
	}
}

static void run_pool(const char *policy)
{
	last_id = 0;
	load_pool(policy);
	push(asks[0].at, ARRIVAL, 1);
	while (nr_events) {
		struct event e;
		int64_t due = pool_run(pool, now);

		if (due < heap[0].time) {
			now = due;
			continue;
		}
		e = pop();
		now = e.time;
		happen(&e);
	}
	/* Requests that are forgotten to the last. */
	pool_free(pool);
}

/* ---- static assignment ---- */

/* Start what waits for the GPU of VM @vm, in order. @first: nothing waits before it. */
static void start_on(unsigned int vm, unsigned int *used, size_t *first, size_t arrived)
{
	for (size_t i = *first; i < arrived; i++) {
		struct ask *a = &asks[i];
		unsigned int slots = a->slots ? a->slots : SLOTS;

		*first = i;
		if (a->started >= 0 || a->vm != vm)
			continue;
		if (used[vm] + slots > SLOTS)
			return;
		used[vm] += slots;
		a->started = now;
		push(now + a->work, WORK_ENDS, i + 1);
	}
}

/* Return the GPU time of the GPUs until the last arrival. */
static double run_equal(void)
{
	unsigned int *used = take(nr_gpus, sizeof(*used));
	size_t *first = take(nr_gpus, sizeof(*first)), arrived = 0;

	push(asks[0].at, ARRIVAL, 1);
	while (nr_events) {
		struct event e = pop();
		struct ask *a = &asks[e.id - 1];

		now = e.time;
		if (e.kind == WORK_ENDS) {
			used[a->vm] -= a->slots ? a->slots : SLOTS;
			start_on(a->vm, used, &first[a->vm], arrived);
			continue;
		}
		arrived = e.id;
		if (arrived < nr_asks)
			push(asks[arrived].at, ARRIVAL, arrived + 1);
		start_on(a->vm, used, &first[a->vm], arrived);
	}
	free(used);
	free(first);
	return (double)nr_gpus;
}

/* A change of an owner's GPUs in use. */
struct change {
	uint64_t owner;
	int64_t time;
	double share;
};

static int by_owner(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->share < y->share ? -1 : x->share > y->share;
}

/* Return how many GPUs the owners have. */
static double run_peak(void)
{
	struct change *changes = take(2 * nr_asks, sizeof(*changes));
	double gpus_of_all = 0, in_use = 0, most = 0;

	for (size_t i = 0; i < nr_asks; i++) {
		struct ask *a = &asks[i];

		a->started = a->at;
		changes[2 * i] = (struct change){ a->wants, a->at, a->share };
		changes[2 * i + 1] = (struct change){ a->wants, a->at + a->work, -a->share };
	}
	qsort(changes, 2 * nr_asks, sizeof(*changes), by_owner);
	for (size_t i = 0; i < 2 * nr_asks; i++) {
		if (i && changes[i].owner != changes[i - 1].owner) {
			gpus_of_all += most;
			in_use = most = 0;
		}
		if (changes[i].time <= end)
			in_use += changes[i].share;
		most = in_use > most ? in_use : most;
	}
	free(changes);
	return gpus_of_all + most;
}

/* ---- results ---- */

/* Of the processor: other processes do not count. */
static double microseconds(void)
{
	return (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e3;
}

static int by_number(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double worked_until_end(void)
{
	double all = 0;

	for (size_t i = 0; i < nr_asks; i++) {
		const struct ask *a = &asks[i];
		int64_t left = end - a->started;

		if (a->started >= 0 && left > 0)
			all += a->share * (double)(a->work < left ? a->work : left);
	}
	return all;
}

static void replay_one(const char *policy, FILE *json, bool last)
{
	double *waits = take(nr_asks, sizeof(*waits)), sum = 0, utilisation;
	double had = (double)nr_gpus;
	double from, seconds;
	size_t lost = 0;

	for (size_t i = 0; i < nr_asks; i++)
		asks[i].started = -1;
	now = BEGIN;
	taken_back = taken_from_work = 0;
	from = microseconds();
	if (!strcmp(policy, "static-equal"))
		had = run_equal();
	else if (!strcmp(policy, "static-peak"))
		had = run_peak();
	else
		run_pool(policy);
	seconds = (microseconds() - from) / 1e6;
	for (size_t i = 0; i < nr_asks; i++) {
		lost += asks[i].started < 0;
		waits[i] = (double)(asks[i].started - asks[i].at);
		sum += waits[i];
	}
	if (lost || taken_from_work)
		die("a request was lost, or a GPU was taken from work");
	qsort(waits, nr_asks, sizeof(*waits), by_number);
	utilisation = worked_until_end() / (had * (double)(end - asks[0].at));
	printf("%-15s %8.1f %11.3f %12.0f %12.0f %12.0f %10u %8.2f\n", policy, had, utilisation,
	       waits[nr_asks / 2], waits[nr_asks * 99 / 100], sum / (double)nr_asks, taken_back,
	       seconds);
	if (json)
		fprintf(json,
			"    {\"policy\": \"%s\", \"gpus\": %.1f, \"utilisation\": %.4f, \"wait_p50_s\": %.0f, \"wait_p99_s\": %.0f, \"wait_mean_s\": %.1f, \"taken_back\": %u, \"cpu_s\": %.3f}%s\n",
			policy, had, utilisation, waits[nr_asks / 2],
			waits[nr_asks * 99 / 100], sum / (double)nr_asks, taken_back, seconds,
			last ? "" : ",");
	free(waits);
}

static void read_file(struct place_trace *t, const char *path,
		      int (*reader)(struct place_trace *t, FILE *f, const char *file, char *why,
				    size_t size))
{
	char why[512];
	FILE *f = fopen(path, "re");

	if (!f) {
		fprintf(stderr, "bench-pool-replay: %s: %s\n", path, strerror(errno));
		exit(1);
	}
	if (reader(t, f, path, why, sizeof(why)))
		die(why);
	fclose(f);
}

static void replay(const char *nodes, const char *tasks, size_t wanted, unsigned int speed,
		   unsigned int load, unsigned int forget, FILE *json)
{
	static const char *const policies[] = { "history", "best-fit", "first-fit",
						"static-equal", "static-peak" };
	const size_t nr = sizeof(policies) / sizeof(*policies);
	struct place_trace t = { 0 };
	double offered;

	read_file(&t, nodes, trace_read_nodes);
	read_file(&t, tasks, trace_read_tasks);
	make_asks(&t, wanted, speed, forget);
	offered = make_pool(&t, load);
	printf("%zu requests in %.1f days, %zu GPUs on %zu hosts, offered load %.2f\n", nr_asks,
	       (double)(end - asks[0].at) / 86400, nr_gpus, nr_gpus / GPUS_OF_HOST, offered);
	printf("%u %% of the users forget to release\n", forget);
	printf("%-15s %8s %11s %12s %12s %12s %10s %8s\n", "policy", "gpus", "utilisation",
	       "wait_p50_s", "wait_p99_s", "wait_mean_s", "taken_back", "cpu_s");
	if (json)
		fprintf(json,
			"  \"requests\": %zu, \"gpus\": %zu, \"hosts\": %zu, \"days\": %.1f, \"offered_load\": %.3f, \"forget\": %.2f,\n  \"replay\": [\n",
			nr_asks, nr_gpus,
			nr_gpus / GPUS_OF_HOST, (double)(end - asks[0].at) / 86400, offered,
			forget / 100.0);
	for (size_t i = 0; i < nr; i++)
		replay_one(policies[i], json, i + 1 == nr);
	if (json)
		fprintf(json, "  ]\n");
	place_trace_free(&t);
}

/* ---- cost ---- */

#define COST_VMS	1000
#define COST_GPUS	200
#define COST_QUEUE	10000
#define COST_PASSES	2000

/* 1,000 VMs of 50 projects and 200 GPUs on 25 hosts; 10,000 requests of many sizes wait. */
static void fill(void)
{
	nr_gpus = COST_GPUS;
	gpus = take(nr_gpus, sizeof(*gpus));
	for (size_t g = 0; g < nr_gpus; g++)
		gpus[g] = (struct place_of){ .project = g % PROJECTS, .parent = g % 2 };
	for (size_t h = 0; h < nr_gpus / GPUS_OF_HOST; h++)
		models[h] = h % 2 ? "T4" : "A10";
	load_pool("history");
	for (unsigned int p = 0; p < 50; p++) {
		struct pool_project project = { .weight = 1 + p * 10 };

		snprintf(project.name, sizeof(project.name), "q%u", p);
		pool_put_project(pool, &project);
	}
	for (unsigned int v = 0; v < COST_VMS; v++) {
		struct pool_vm vm = { 0 };

		snprintf(vm.name, sizeof(vm.name), "w%u", v);
		snprintf(vm.host, sizeof(vm.host), "h%u", v % (COST_GPUS / GPUS_OF_HOST));
		snprintf(vm.project, sizeof(vm.project), "q%u", v % 50);
		pool_put_vm(pool, &vm);
	}
}

static void ask_one(unsigned int i)
{
	struct pool_request r = { .target = i % 3 ? POOL_VGPU : POOL_WHOLE };
	char text[POOL_TEXT_MAX];

	snprintf(r.key, sizeof(r.key), "c%u", i);
	snprintf(r.vm, sizeof(r.vm), "w%u", (unsigned int)(mix(i) % COST_VMS));
	snprintf(r.kind, sizeof(r.kind), "k%u", i % 20);
	if (i % 3)
		snprintf(r.type, sizeof(r.type), "s%u", 1 + i % SLOTS);
	if (pool_ask(pool, &r, now, "cost", text) != 1)
		die(text);
}

/* Release and detach the first that is attached: a pass follows. */
static double pass(void)
{
	struct request *q = TAILQ_FIRST(&pool->held);
	uint64_t id = q->r.id;
	char text[POOL_TEXT_MAX];
	double from;

	if (q->r.state == POOL_ATTACHING)
		pool_attached(pool, id, "", now);
	pool_release(pool, id, true, now + 100, "cost", text);
	now++;
	from = microseconds();
	pool_detached(pool, id, now);
	return microseconds() - from;
}

static void cost(FILE *json)
{
	static double passes[COST_PASSES], asking[COST_QUEUE];
	double where, from, due;
	struct pool_place place;
	unsigned int i, queued = 0;

	asks = take(COST_QUEUE * 2, sizeof(*asks));
	now = BEGIN;
	fill();
	for (i = 0; queued < COST_QUEUE; i++) {
		from = microseconds();
		ask_one(i);
		asking[queued] = microseconds() - from;
		queued = (unsigned int)pool->queue.nr;
	}
	for (unsigned int k = 0; k < COST_PASSES; k++) {
		passes[k] = pass();
		ask_one(i++);
	}
	from = microseconds();
	pool_where(pool, last_id, &place);
	where = microseconds() - from;
	from = microseconds();
	pool_run(pool, now + 3600);
	due = microseconds() - from;
	qsort(passes, COST_PASSES, sizeof(*passes), by_number);
	qsort(asking, COST_QUEUE, sizeof(*asking), by_number);
	printf("%d VMs, %d GPUs, %d requests wait\n", COST_VMS, COST_GPUS, COST_QUEUE);
	printf("pass after a release: median %.1f us, 99 %% %.1f us\n", passes[COST_PASSES / 2],
	       passes[COST_PASSES * 99 / 100]);
	printf("request: median %.1f us, 99 %% %.1f us\n", asking[COST_QUEUE / 2],
	       asking[COST_QUEUE * 99 / 100]);
	printf("places of all %.0f us; looks at all GPUs %.0f us\n", where, due);
	if (json)
		fprintf(json,
			"  \"pass\": {\"vms\": %d, \"gpus\": %d, \"queued\": %d, \"pass_p50_us\": %.2f, \"pass_p99_us\": %.2f, \"ask_p50_us\": %.2f, \"ask_p99_us\": %.2f, \"places_us\": %.1f, \"looks_us\": %.1f}\n",
			COST_VMS, COST_GPUS, COST_QUEUE, passes[COST_PASSES / 2],
			passes[COST_PASSES * 99 / 100], asking[COST_QUEUE / 2],
			asking[COST_QUEUE * 99 / 100], where, due);
	pool_free(pool);
}

static unsigned int number(const char *text, unsigned int least, unsigned int most)
{
	char *behind;
	unsigned long n = strtoul(text, &behind, 10);

	if (*behind || behind == text || n < least || n > most)
		die("a number is out of range");
	return (unsigned int)n;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "nodes", required_argument, NULL, 'n' },
		{ "tasks", required_argument, NULL, 't' },
		{ "requests", required_argument, NULL, 'r' },
		{ "speed", required_argument, NULL, 's' },
		{ "load", required_argument, NULL, 'l' },
		{ "forget", required_argument, NULL, 'f' },
		{ "json", required_argument, NULL, 'j' },
		{ "cost", no_argument, NULL, 'c' },
		{ 0 },
	};
	const char *nodes = NULL, *tasks = NULL, *path = NULL;
	unsigned int wanted = 10000, speed = 10, load = 100, forget = 10;
	bool only_cost = false;
	FILE *json = NULL;
	int option;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 'n':
			nodes = optarg;
			break;
		case 't':
			tasks = optarg;
			break;
		case 'r':
			wanted = number(optarg, 100, MAX_REQUESTS);
			break;
		case 's':
			speed = number(optarg, 1, 1000);
			break;
		case 'l':
			load = number(optarg, 1, 1000);
			break;
		case 'f':
			forget = number(optarg, 0, 100);
			break;
		case 'j':
			path = optarg;
			break;
		case 'c':
			only_cost = true;
			break;
		default:
			return 2;
		}
	}
	if (!only_cost && (!nodes || !tasks))
		die("--nodes FILE and --tasks FILE, or --cost; the source has more");
	if (path) {
		json = fopen(path, "we");
		if (!json)
			die(strerror(errno));
		fprintf(json, "{\n");
	}
	if (only_cost)
		cost(json);
	else
		replay(nodes, tasks, wanted, speed, load, forget, json);
	if (json && (fprintf(json, "}\n") < 0 || fclose(json)))
		die("the file of results is not written");
	free(asks);
	free(gpus);
	free(heap);
	return 0;
}
