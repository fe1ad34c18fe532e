// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz gpuctl report: the input is a recording. Events that the reader takes are in the order of
 * time, on tracks that are there, and slices do not overlap; the page has no element or character
 * that the recording brings.
 */
#include <math.h>
#include <linux/types.h>

#include "account.h"
#include "fuzz.h"
#include "jobs.h"
#include "report_data.h"
#include "report_html.h"
#include "trace_model.h"

static void check_events(const struct trace_reading *r)
{
	uint64_t *end_ns = calloc(r->nr_tracks + 1, sizeof(*end_ns));

	FUZZ_ASSERT(end_ns);
	for (size_t i = 0; i < r->nr_events; i++) {
		const struct read_event *e = &r->events[i];

		FUZZ_ASSERT(e->track < r->nr_tracks);
		FUZZ_ASSERT(!i || e->ns >= r->events[i - 1].ns);
		FUZZ_ASSERT(r->tracks[e->track].counter == (e->type == TRACE_COUNTER));
		if (e->type != TRACE_BEGIN)
			continue;
		FUZZ_ASSERT(e->end_ns >= e->ns && e->ns >= end_ns[e->track]);
		end_ns[e->track] = e->end_ns;
	}
	free(end_ns);
}

static void check_figures(const struct report *report)
{
	FUZZ_ASSERT(report->seconds > 0 && report->bins && report->bins <= REPORT_BINS);
	for (size_t i = 0; i < report->nr_vgpus; i++) {
		const struct report_vgpu *v = &report->vgpus[i];

		FUZZ_ASSERT(isfinite(v->share) && isfinite(v->throttled) && isfinite(v->waiting));
		FUZZ_ASSERT(v->nr_times <= v->frames);
		for (size_t j = 1; j < v->nr_times; j++)
			FUZZ_ASSERT(v->times[j] >= v->times[j - 1]);
	}
	for (size_t i = 0; i < report->nr_slots; i++)
		FUZZ_ASSERT(report->slots[i].used >= 0 && report->slots[i].used < 1.001);
}

/* The page has none of the elements and characters that a name could bring. */
static void check_page(const char *html)
{
	static const char *const no[] = { "<script", "<img", "<a", "\033", "\302\205",
					  "\342\200\256", NULL };

	for (const char *const *text = no; *text; text++)
		FUZZ_ASSERT(!strstr(html, *text));
	FUZZ_ASSERT(strstr(html, "</body>\n</html>\n"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct trace_reading reading;
	struct report report;
	char why[256] = "", *html = NULL;
	size_t len;
	FILE *f;

	if (trace_read(&reading, data, size, why, sizeof(why))) {
		FUZZ_ASSERT(*why);
		return 0;
	}
	check_events(&reading);
	if (!report_make(&report, &reading, why, sizeof(why))) {
		check_figures(&report);
		f = open_memstream(&html, &len);
		FUZZ_ASSERT(f && !report_html(&report, f) && !fclose(f));
		check_page(html);
		free(html);
		report_free(&report);
	}
	trace_read_free(&reading);
	return 0;
}

static void play(struct trace_model *m, uint32_t type, uint32_t vgpu, uint64_t ms, uint64_t nr)
{
	struct mgpu_trace_event e = {
		.now_ns = (1000 + ms) * 1000000, .nr = nr, .ns = 4000000, .vgpu = vgpu,
		.type = type, .kind = 1, .lost = ms > 70,
	};

	trace_model_event(m, &e);
}

static void seeds(const char *dir)
{
	static const struct trace_clocks clocks = { 1000000000, 1, 1700000000000000000 };
	struct trace_model m;
	char *bytes = NULL;
	size_t len;
	FILE *f = open_memstream(&bytes, &len);

	trace_model_init(&m, &clocks, 1 << 20);
	trace_model_dev(&m, "mgpu_soft.0", 2, 2);
	trace_model_vgpu(&m, 1, "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001", "a <b>", "mgpu_soft.0");
	trace_model_vgpu(&m, 2, "12345678-509f-382f-3c1e-e6bfe0fa1002", "", "mgpu_soft.0");
	for (uint64_t i = 0; i < 4; i++) {
		play(&m, MGPU_TRACE_THROTTLE, 1, 20 * i + 8, i);
		play(&m, MGPU_TRACE_START, 1, 20 * i + 8, i);
		play(&m, MGPU_TRACE_START, 2, 20 * i + 9, i);
		play(&m, MGPU_TRACE_DONE, 1, 20 * i + 12, i);
		play(&m, MGPU_TRACE_FRAME, 1, 20 * i + 12, i);
		play(&m, MGPU_TRACE_PREEMPT, 2, 20 * i + 15, i);
	}
	trace_model_note(&m, 1030000000, "allocator fea");
	trace_model_finish(&m, 1100000000, "time", 0);
	if (!f || trace_file_write(&m.file, f) || fclose(f))
		abort();
	fuzz_seed(dir, "recording", bytes, len);
	free(bytes);
	trace_model_free(&m);
}

FUZZ_SEEDS(seeds)
