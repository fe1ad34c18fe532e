// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions that back ends call to execute a job: the loop of tiles of an engine that
 * is a CPU, and the messages of a job that a device executes.
 *
 * Engine time on a CPU is the time that the engine's thread ran: the time that
 * passed less the time that the thread was ready while another task ran.
 */
#include <linux/export.h>
#include <linux/kcov.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/sched.h>
#include <linux/timex.h>

#include "mgpu.h"

/* Time for which the current task was kept from running, nanoseconds. */
static u64 run_delay(void)
{
#ifdef CONFIG_SCHED_INFO
	return current->sched_info.run_delay;
#else
	return 0;
#endif
}

/* Read the clocks of the calling thread. */
void mgpu_cpu_clock_start(struct mgpu_cpu_clock *clock)
{
	clock->ns = ktime_get_ns();
	clock->delay = run_delay();
	clock->cycles = get_cycles();
}

/**
 * mgpu_cpu_clock_lap - get the time for which the calling thread ran since the last call
 * @clock: from mgpu_cpu_clock_start() or the last call, in the same thread
 * @cycles: set to the same in TSC ticks; may be NULL
 *
 * Return: nanoseconds.
 */
u64 mgpu_cpu_clock_lap(struct mgpu_cpu_clock *clock, u64 *cycles)
{
	struct mgpu_cpu_clock from = *clock;
	u64 ns, off;

	mgpu_cpu_clock_start(clock);
	ns = clock->ns - from.ns;
	off = min(clock->delay - from.delay, ns);
	/* The same part of the ticks was spent off the CPU. */
	if (cycles)
		*cycles = off ? mul_u64_u64_div_u64(clock->cycles - from.cycles,
						    ns - off, ns) :
				clock->cycles - from.cycles;
	return ns - off;
}

/**
 * mgpu_cpu_engine_resume - measure engine time from now on
 * @e: engine
 *
 * The time since the last tile is not the job's.
 *
 * Context: the engine's thread.
 */
void mgpu_cpu_engine_resume(struct mgpu_cpu_engine *e)
{
	mgpu_cpu_clock_start(&e->from);
}
EXPORT_SYMBOL_GPL(mgpu_cpu_engine_resume);

/**
 * mgpu_cpu_engine_begin - start or resume a job on this CPU
 * @e: engine that has no job; @e->local must stay valid and unused by others until
 *	mgpu_cpu_engine_step() has returned false
 * @job: from mgpu_sched_next()
 *
 * Context: the engine's thread; may sleep.
 */
void mgpu_cpu_engine_begin(struct mgpu_cpu_engine *e, struct mgpu_job *job)
{
	e->job = job;
	e->ns = 0;
	e->cycles = 0;
	mgpu_cpu_engine_resume(e);
	kcov_remote_start_common(job->vgpu->worker.kcov);
	if (READ_ONCE(job->vgpu->quarantine))
		e->error = -EACCES;
	else
		e->error = job->ops->begin ? job->ops->begin(job, e->local) : 0;
	kcov_remote_stop();
}
EXPORT_SYMBOL_GPL(mgpu_cpu_engine_begin);

/* Return the error with which a job has to end before its end, or 0. */
static int job_refused(const struct mgpu_job *job)
{
	if (READ_ONCE(job->cancelled))
		return -ECANCELED;
	if (READ_ONCE(job->expired))
		return -ETIMEDOUT;
	return READ_ONCE(job->vgpu->quarantine) ? -EACCES : 0;
}

/* Execute one tile: 1 when there is more to do, 0 at the end, or a negative errno. */
static int engine_tile(struct mgpu_job *job)
{
	int ret = job_refused(job);

	if (ret)
		return ret;
	return job->ops->step ? job->ops->step(job) : -EINVAL;
}

/* Execute a tile; its time is that of the CPU. */
static int engine_cpu_tile(struct mgpu_cpu_engine *e)
{
	u64 cycles;
	int ret;

	ret = e->error ?: engine_tile(e->job);
	e->ns += mgpu_cpu_clock_lap(&e->from, &cycles);
	e->cycles += cycles;
	return ret;
}

/* Longest time that a modelled engine takes between two looks at the scheduler. */
#define MODEL_SLICE_NS	(1 * NSEC_PER_MSEC)

/*
 * Execute tiles until they are worth a slice of a modelled engine's time, or have taken as
 * long: the CPU may be slower than the GPU.
 */
static void engine_execute(struct mgpu_cpu_engine *e)
{
	u64 start = ktime_get_ns();
	struct mgpu_job *job = e->job;
	int ret;

	while (!job->executed && job->owed_ns < MODEL_SLICE_NS &&
	       ktime_get_ns() - start < MODEL_SLICE_NS) {
		ret = e->error ?: engine_tile(job);
		job->executed = ret <= 0;
		job->error = min(ret, 0);
		job->owed_ns += e->model->price(e, &job->work);
		job->work = (struct mgpu_gpu_work){ };
		cond_resched();
	}
	e->cpu_ns += mgpu_cpu_clock_lap(&e->from, NULL);
}

/*
 * Execute tiles and take a slice of the modelled engine's time.  A preempted job carries the
 * time that it still owes to the engine that resumes it.
 */
static int engine_model_slice(struct mgpu_cpu_engine *e)
{
	struct mgpu_job *job = e->job;
	u64 slice, cycles, ns;

	engine_execute(e);
	if (job->executed && job->error)
		return job->error;
	slice = min_t(u64, job->owed_ns, MODEL_SLICE_NS);
	e->model->spend(e, slice);
	job->owed_ns -= slice;
	e->ns += slice;
	/* Ticks at the rate of the time stamp counter meanwhile. */
	ns = mgpu_cpu_clock_lap(&e->from, &cycles);
	if (ns)
		e->cycles += mul_u64_u64_div_u64(cycles, slice, ns);
	return job_refused(job) ?: !job->executed || job->owed_ns;
}

/**
 * mgpu_cpu_engine_step - execute one tile of the engine's job
 * @e: engine with a job
 *
 * Completes the job after its last tile, and hands it back to the scheduler when
 * another one has to go first.  With @e->model, it executes as many tiles as the GPU does in
 * a millisecond, and takes that long.
 *
 * Context: the engine's thread; may sleep.
 * Return: true while the engine has the job.
 */
bool mgpu_cpu_engine_step(struct mgpu_cpu_engine *e)
{
	struct mgpu_job *job = e->job;
	bool more;
	int ret;

	/* Coverage is that of the vGPU, whose VMM may collect it. */
	kcov_remote_start_common(job->vgpu->worker.kcov);
	ret = e->model ? engine_model_slice(e) : engine_cpu_tile(e);
	more = ret > 0 && !mgpu_job_yield(job, e->ns, e->cycles);
	if (!more)
		e->job = NULL;
	if (ret <= 0)
		mgpu_job_done(job, ret, e->ns, e->cycles);
	kcov_remote_stop();
	return more;
}
EXPORT_SYMBOL_GPL(mgpu_cpu_engine_step);

/**
 * mgpu_job_msgs - get the messages of a job that the device executes
 * @job: from mgpu_sched_next()
 * @nr: set to their number, 1 to MGPU_JOB_MSGS
 *
 * Return: the messages; NULL for a job that a CPU executes.
 */
struct mgpu_msg *mgpu_job_msgs(struct mgpu_job *job, u32 *nr)
{
	return job->ops->msgs ? job->ops->msgs(job, nr) : NULL;
}
EXPORT_SYMBOL_GPL(mgpu_job_msgs);

/* Return the ID of the job's vGPU. */
u32 mgpu_job_vgpu(const struct mgpu_job *job)
{
	return job->vgpu->id;
}
EXPORT_SYMBOL_GPL(mgpu_job_vgpu);

/* Return the device of the job's vGPU. */
struct mgpu_device *mgpu_job_device(const struct mgpu_job *job)
{
	return job->vgpu->mdev;
}
EXPORT_SYMBOL_GPL(mgpu_job_device);

/**
 * mgpu_job_must_end - tell whether the engine has to end a job
 * @job: from mgpu_sched_next()
 *
 * Return: true if the job was cancelled or has expired, or its vGPU is under quarantine.
 */
bool mgpu_job_must_end(const struct mgpu_job *job)
{
	return job_refused(job);
}
EXPORT_SYMBOL_GPL(mgpu_job_must_end);

/* Return whether a job from mgpu_sched_next() has been on its engine for too long. */
bool mgpu_job_expired(const struct mgpu_job *job)
{
	return READ_ONCE(job->expired);
}
EXPORT_SYMBOL_GPL(mgpu_job_expired);
