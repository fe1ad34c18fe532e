// SPDX-License-Identifier: GPL-2.0-only
/*
 * In place of ctl/gpuctl/trace_source.c: a module with two vGPUs, ids 1 and 2, on a device with
 * several slots. Each 10 ms, vGPU 1 shows a frame that was held back for 2 ms, and waits 1 ms for
 * its slot; a job of vGPU 2 is preempted after 2 ms and completes 2 ms later, with a frame. Each
 * second three events are lost. With PLAYED_FLOOD in the environment there is always a next event.
 */
#include <errno.h>
#include <stdlib.h>
#include <linux/types.h>

#include "account.h"
#include "clock.h"
#include "jobs.h"
#include "trace_source.h"

#define MS	1000000ULL
#define STEP	(10 * MS)

struct trace_source {
	trace_source_fn fn;
	void *data;
	bool skip[MGPU_BPF_IDS];
	uint64_t next_ns;	/* end of the next 10 ms */
	uint64_t nr;		/* of them */
	uint64_t lost;
	int ret;
};

int trace_source_open(struct trace_source **result, trace_source_fn fn, void *data,
		      struct mgpu_error *err)
{
	struct trace_source *source = calloc(1, sizeof(*source));

	if (!source)
		return mgpu_fail(err, -ENOMEM, "out of memory");
	source->fn = fn;
	source->data = data;
	source->next_ns = now_ns() + STEP;
	*result = source;
	return 0;
}

void trace_source_close(struct trace_source *source)
{
	free(source);
}

static void give(struct trace_source *s, uint32_t type, uint32_t vgpu, uint64_t at_ns, uint64_t nr,
		 uint64_t ns, uint32_t kind)
{
	struct mgpu_trace_event e = {
		.now_ns = at_ns, .lost = s->lost, .nr = nr, .ns = ns, .vgpu = vgpu, .type = type,
		.kind = kind,
	};

	if (!s->ret && !s->skip[vgpu])
		s->ret = s->fn(s->data, &e);
}

static void play(struct trace_source *s)
{
	uint64_t t = s->next_ns - STEP, job = 2 * ++s->nr;

	if (!(s->nr % 100))
		s->lost += 3;
	give(s, MGPU_TRACE_START, 2, t + 1 * MS, job + 1, 0, 4);
	give(s, MGPU_TRACE_PREEMPT, 2, t + 3 * MS, job + 1, 2 * MS, 4);
	give(s, MGPU_TRACE_THROTTLE, 1, t + 4 * MS, s->nr, 2 * MS, 2);
	give(s, MGPU_TRACE_START, 1, t + 4 * MS, job, 1 * MS, 1);
	give(s, MGPU_TRACE_START, 2, t + 5 * MS, job + 1, 2 * MS, 4);
	give(s, MGPU_TRACE_DONE, 2, t + 7 * MS, job + 1, 2 * MS, 4);
	give(s, MGPU_TRACE_FRAME, 2, t + 7 * MS, s->nr, s->nr > 1 ? STEP : 0, 0);
	give(s, MGPU_TRACE_DONE, 1, t + 9 * MS, job, 5 * MS, 1);
	give(s, MGPU_TRACE_FRAME, 1, t + 9 * MS, s->nr, s->nr > 1 ? STEP : 0, 0);
	s->next_ns += STEP;
}

int trace_source_read(struct trace_source *source)
{
	while (!source->ret && (getenv("PLAYED_FLOOD") || source->next_ns <= now_ns()))
		play(source);
	return source->ret;
}

void trace_source_skip(struct trace_source *source, uint32_t vgpu, bool skip)
{
	source->skip[vgpu] = skip;
}

uint64_t trace_source_lost(const struct trace_source *source)
{
	return source->lost;
}

uint64_t trace_source_missed(const struct trace_source *source)
{
	(void)source;
	return 0;
}
