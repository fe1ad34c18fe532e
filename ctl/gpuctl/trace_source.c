// SPDX-License-Identifier: GPL-2.0-only
/* Loads the BPF programs, and reads their ring buffer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "jobs.h"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Woverlength-strings"
#include "jobs.skel.h"
#pragma GCC diagnostic pop

#include "bpf_why.h"
#include "trace_source.h"

struct trace_source {
	struct jobs_bpf *skel;
	struct ring_buffer *ring;
	trace_source_fn fn;
	void *data;
};

static int take(void *ctx, void *data, size_t size)
{
	const struct trace_source *source = ctx;
	struct mgpu_trace_event e;

	if (size < sizeof(e))
		return 0;
	memcpy(&e, data, sizeof(e));
	return source->fn(source->data, &e);
}

static int start(struct trace_source *source)
{
	int ret;

	source->skel = jobs_bpf__open();
	if (!source->skel)
		return -errno;
	ret = jobs_bpf__load(source->skel);
	if (ret)
		return ret;
	source->ring = ring_buffer__new(bpf_map__fd(source->skel->maps.events), take, source, NULL);
	if (!source->ring)
		return -errno;
	/*
	 * Last: a job that started while its end is not attached yet would stay in its slot. One of
	 * which only the end is seen is left away.
	 */
	bpf_program__set_autoattach(source->skel->progs.job_start, false);
	ret = jobs_bpf__attach(source->skel);
	if (ret)
		return ret;
	source->skel->links.job_start = bpf_program__attach(source->skel->progs.job_start);
	return source->skel->links.job_start ? 0 : -errno;
}

int trace_source_open(struct trace_source **result, trace_source_fn fn, void *data,
		      struct mgpu_error *err)
{
	struct trace_source *source = calloc(1, sizeof(*source));
	char why[sizeof(err->text)] = "";
	int ret;

	if (!source)
		return mgpu_fail(err, -ENOMEM, "out of memory");
	source->fn = fn;
	source->data = data;
	bpf_why_init();
	ret = start(source);
	if (ret) {
		bpf_why(why, sizeof(why), "tracing", ret);
		trace_source_close(source);
		return mgpu_fail(err, ret, "%s", why);
	}
	*result = source;
	return 0;
}

void trace_source_close(struct trace_source *source)
{
	if (!source)
		return;
	ring_buffer__free(source->ring);
	jobs_bpf__destroy(source->skel);
	free(source);
}

int trace_source_read(struct trace_source *source)
{
	int ret = ring_buffer__consume(source->ring);

	return ret < 0 ? ret : 0;
}

void trace_source_skip(struct trace_source *source, uint32_t vgpu, bool skip)
{
	uint32_t value = skip;

	/* an id that is too large has no entry, and no events */
	bpf_map_update_elem(bpf_map__fd(source->skel->maps.skips), &vgpu, &value, BPF_ANY);
}

uint64_t trace_source_lost(const struct trace_source *source)
{
	return __atomic_load_n(&source->skel->bss->lost, __ATOMIC_RELAXED);
}

uint64_t trace_source_missed(const struct trace_source *source)
{
	return bpf_missed(source->skel->obj);
}
