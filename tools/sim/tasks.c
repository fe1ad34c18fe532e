// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scenarios out of a trace of a cluster: its tasks that share a GPU become VMs, which come and
 * go as these did. The trace has the tasks' arrivals, durations and requests. It has no frames,
 * so their costs are drawn: a task can use about the part of the GPU and of the CPUs that it
 * requested, up to a factor of its own.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "place_trace.h"
#include "random.h"
#include "sim.h"

#define TASKS_SECONDS	600	/* what is simulated, however long the tasks were there */
#define TASKS_FRAME_MS	40.0	/* of a task that has all that it was given */
#define TASKS_RATE	40.0	/* frames per second at most */
#define TASKS_THREADS	8	/* busy at most */
#define TASKS_FACTOR	0.3	/* standard deviation of the logarithm of its own factor */

static bool shares_gpu(const struct place_task *t)
{
	return t->r.nr_gpus == 1 && t->r.gpu_milli < PLACE_WHOLE &&
		t->deletion_s > t->creation_s && t->deletion_s < TRACE_MAX_TIME;
}

static int compare_creation(const void *a, const void *b)
{
	const struct place_task *x = *(const struct place_task *const *)a;
	const struct place_task *y = *(const struct place_task *const *)b;

	if (x->creation_s != y->creation_s)
		return x->creation_s < y->creation_s ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* The tasks that share a GPU, by creation; for free(). */
static const struct place_task **find_tasks(const struct place_trace *t, size_t *nr)
{
	const struct place_task **task = calloc(t->nr_tasks + 1, sizeof(*task));

	*nr = 0;
	for (size_t i = 0; task && i < t->nr_tasks; i++)
		if (shares_gpu(&t->tasks[i]))
			task[(*nr)++] = &t->tasks[i];
	if (task)
		qsort(task, *nr, sizeof(*task), compare_creation);
	return task;
}

static void fill_vm(struct random *r, const struct place_task *t, double from_s, double to_s,
		    struct sim_vm *v)
{
	double cpus = fmin(fmax(t->r.cpu_milli / 1000.0, 0.1), TASKS_THREADS);

	snprintf(v->text, sizeof(v->text), "task gpu %d cpu %d memory %d", t->r.gpu_milli,
		 t->r.cpu_milli, t->r.memory_mib);
	snprintf(v->what, sizeof(v->what), "%d/1000 GPU, %.1f CPUs", t->r.gpu_milli,
		 t->r.cpu_milli / 1000.0);
	v->machine = (struct machine_vm){
		.threads = (unsigned int)ceil(cpus), .depth = 2, .rate = TASKS_RATE, .weight = 100,
	};
	v->cost = (struct cost_spec){
		.cpu_ms = TASKS_FRAME_MS * cpus * factor(TASKS_FACTOR, normal(r)),
		.engine_ms = TASKS_FRAME_MS * t->r.gpu_milli / 1000 *
			factor(TASKS_FACTOR, normal(r)),
		.drift = 0.15, .drift_s = 5, .scene = 0.25, .scene_s = 20, .noise = 0.1,
	};
	v->sla = SLA_NONE;
	/* away from its end until its begin in the next cycle */
	v->away = (struct sim_away){
		.cycle_s = TASKS_SECONDS, .from_s = to_s, .to_s = TASKS_SECONDS + from_s,
		.closed = true,
	};
}

int sim_from_tasks(struct sim *s, const struct place_trace *t, uint64_t seed, char *why,
		   size_t len)
{
	struct random r = { stream(seed, 0, 4) };
	const struct place_task **task;
	size_t nr, n = drawn_vms(seed), first;
	double begin, end = 0, scale;
	int ret;

	task = find_tasks(t, &nr);
	if (!task) {
		snprintf(why, len, "out of memory");
		return -ENOMEM;
	}
	if (nr < n) {
		snprintf(why, len, "the trace has %zu tasks with times that share a GPU (num_gpu 1, gpu_milli below %d); %zu are needed",
			 nr, PLACE_WHOLE, n);
		free(task);
		return -EINVAL;
	}
	ret = sim_begin(s, "tasks", n);
	if (ret) {
		snprintf(why, len, "out of memory");
		free(task);
		return ret;
	}
	s->summary = "tasks of a cluster that share a GPU";
	s->seconds = TASKS_SECONDS;
	s->seed = seed;
	s->machine.engines = 1;
	s->machine.order = "best-effort";
	/* tasks that came one after the other */
	first = (size_t)(draw(&r) * (double)(nr - n + 1));
	begin = (double)task[first]->creation_s;
	for (size_t j = 0; j < n; j++)
		end = fmax(end, (double)task[first + j]->deletion_s);
	scale = TASKS_SECONDS / (end - begin);
	for (size_t j = 0; j < n; j++) {
		const struct place_task *one = task[first + j];
		double from_s = ((double)one->creation_s - begin) * scale;
		double to_s = ((double)one->deletion_s - begin) * scale;

		snprintf(s->vms[j].name, sizeof(s->vms[j].name), "%c", (char)('A' + j));
		fill_vm(&r, one, from_s, to_s, &s->vms[j]);
		s->machine.cpus += s->vms[j].machine.threads;
	}
	/* about half of what they were given is there at a time */
	s->machine.cpus = s->machine.cpus / 2 + 1;
	free(task);
	return 0;
}
