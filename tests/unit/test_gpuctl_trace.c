// SPDX-License-Identifier: GPL-2.0-only
/*
 * Test the recordings of gpuctl trace and the figures of gpuctl report: tracks of played events,
 * the bound on the size, files that are damaged, and hostile names.
 */
#include <json-c/json.h>
#include <linux/types.h>

#include "account.h"
#include "jobs.h"
#include "report_data.h"
#include "report_html.h"
#include "tap.h"
#include "trace_model.h"

#define MS	1000000ULL
#define BEGIN	(1000 * MS)
#define UUID_A	"83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"
#define UUID_B	"12345678-509f-382f-3c1e-e6bfe0fa1002"
#define DEV	"mgpu_soft.0"
#define HOSTILE	"<script>alert(\"1\")</script>&'\342\200\256\033[2J\377"

static const struct trace_clocks clocks = { BEGIN, BEGIN + 5, 1700000000000000000 };
static struct trace_model model;
static struct trace_reading reading;
static struct report figures;
static char why[256];
static char *file;
static size_t size;

static void begin(size_t max)
{
	trace_model_init(&model, &clocks, max);
	trace_model_dev(&model, DEV, 2, 2);
	trace_model_vgpu(&model, 1, UUID_A, "game", DEV);
	trace_model_vgpu(&model, 2, UUID_B, "", DEV);
}

/* Times are ms since the begin. */
static void event(uint32_t type, uint32_t vgpu, double at, uint64_t nr, double ms)
{
	struct mgpu_trace_event e = {
		.now_ns = BEGIN + (uint64_t)(at * (double)MS), .lost = model.lost, .nr = nr,
		.ns = (uint64_t)(ms * (double)MS), .vgpu = vgpu, .type = type, .kind = 1,
	};

	trace_model_event(&model, &e);
}

static void end(double at)
{
	FILE *f = open_memstream(&file, &size);

	trace_model_finish(&model, BEGIN + (uint64_t)(at * (double)MS), "time", 0);
	if (!f || trace_file_write(&model.file, f) || fclose(f))
		abort();
}

/* End the recording, and read it. */
static void read_back(double at)
{
	end(at);
	if (!TAP_CHECK(!trace_read(&reading, file, size, why, sizeof(why))))
		tap_diag("%s", why);
}

static void done(void)
{
	report_free(&figures);
	trace_read_free(&reading);
	trace_model_free(&model);
	free(file);
	file = NULL;
}

/* Track with a path: names with '/' between them. */
static size_t track(const char *path)
{
	char name[128];
	size_t at = TRACE_NONE, len;

	do {
		len = strcspn(path, "/");
		snprintf(name, sizeof(name), "%.*s", (int)len, path);
		at = trace_track_named(&reading, at, name);
		path += len;
	} while (*path++ && at != TRACE_NONE);
	if (at == TRACE_NONE)
		tap_diag("there is no track %s", name);
	return at;
}

/* The events of a track as text: "name FROM-TO" in ms, or "name AT", or "=VALUE AT". */
static const char *events(const char *path)
{
	static char text[4096];
	size_t at = track(path), len = 0;

	*text = '\0';
	for (size_t i = 0; i < reading.nr_events && at != TRACE_NONE; i++) {
		const struct read_event *e = &reading.events[i];
		double from = ((double)e->ns - (double)BEGIN) / (double)MS;

		if (e->track != at)
			continue;
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s", len ? ", " : "",
					(int)e->name.len, e->name.at ? e->name.at : "");
		if (e->type == TRACE_BEGIN)
			len += (size_t)snprintf(text + len, sizeof(text) - len, " %g-%g", from,
						((double)e->end_ns - (double)BEGIN) / (double)MS);
		else if (e->type == TRACE_COUNTER)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "=%g %g", e->value,
						from);
		else
			len += (size_t)snprintf(text + len, sizeof(text) - len, " %g", from);
	}
	return text;
}

#define GAME	"mgpu/vGPUs/game, vGPU 1, 83b8f4f2"
#define OTHER	"mgpu/vGPUs/vGPU 2, 12345678"
#define SLOT(n)	"mgpu/devices/" DEV "/slot " #n

static void slots(void)
{
	begin(1 << 20);
	event(MGPU_TRACE_START, 1, 10, 7, 0);
	event(MGPU_TRACE_START, 2, 12, 8, 0);
	event(MGPU_TRACE_DONE, 1, 15, 7, 5);
	/* the lowest free one */
	event(MGPU_TRACE_START, 2, 16, 9, 0);
	event(MGPU_TRACE_DONE, 2, 18, 9, 2);
	event(MGPU_TRACE_PREEMPT, 2, 20, 8, 8);
	event(MGPU_TRACE_START, 1, 21, 10, 0);
	/* one that the recording knows no start of */
	event(MGPU_TRACE_DONE, 1, 22, 99, 1);
	read_back(30);
	TAP_STR(events(SLOT(0)), "game 10-15, vGPU 2 16-18, game 21-30");
	TAP_STR(events(SLOT(1)), "vGPU 2 12-20");
	TAP_STR(events(OTHER "/preempted"), "preempted 20");
	TAP_EQ(model.unmatched, 1);
	TAP_EQ(model.preempted, 1);
	done();
}

static void states(void)
{
	begin(1 << 20);
	event(MGPU_TRACE_THROTTLE, 1, 10, 1, 4);
	event(MGPU_TRACE_START, 1, 10, 1, 3);
	event(MGPU_TRACE_DONE, 1, 11, 1, 1);
	/* two jobs that wait at the same time, in the order in which they start */
	event(MGPU_TRACE_START, 2, 20, 2, 2);
	event(MGPU_TRACE_START, 2, 21, 3, 9);
	event(MGPU_TRACE_START, 2, 30, 4, 5);
	/* since before the recording */
	event(MGPU_TRACE_START, 1, 40, 5, 900);
	read_back(50);
	TAP_STR(events(GAME "/throttled"), "fps-limit 3-7");
	TAP_STR(events(OTHER "/waiting"), "waiting 12-21, waiting 25-30");
	TAP_STR(events(GAME "/waiting"), "waiting 0-40");
	done();
}

static void frames(void)
{
	begin(1 << 20);
	event(MGPU_TRACE_FRAME, 1, 10, 1, 0);
	event(MGPU_TRACE_FRAME, 1, 20, 2, 10);
	/* the module's clock is read a little earlier than the program's */
	event(MGPU_TRACE_FRAME, 1, 29, 3, 9.5);
	event(MGPU_TRACE_FRAME, 2, 5, 1, 300);
	read_back(50);
	TAP_STR(events(GAME "/frames"), "first frame 10, frame 10-20, frame 20-29");
	TAP_STR(events(OTHER "/frames"), "first frame 5");
	done();
}

static void losses(void)
{
	struct mgpu_trace_event e = {
		.now_ns = BEGIN + 20 * MS, .lost = 5, .nr = 2, .vgpu = 2,
		.type = MGPU_TRACE_START, .kind = 1,
	};

	begin(1 << 20);
	event(MGPU_TRACE_START, 1, 10, 1, 0);
	event(MGPU_TRACE_THROTTLE, 2, 12, 1, 4);
	trace_model_event(&model, &e);
	/* no more, and then one, as the ring buffer's count tells at the end */
	trace_model_lost(&model, BEGIN + 25 * MS, 5);
	trace_model_lost(&model, BEGIN + 40 * MS, 6);
	read_back(40);
	TAP_STR(events("mgpu/lost events"), "5 events lost 12-20, 1 events lost 20-40");
	/* when it ended is unknown, and whether that frame was of this job */
	TAP_STR(events(SLOT(0)), "game 10-12");
	TAP_STR(events(OTHER "/throttled"), "");
	TAP_EQ(model.lost, 6);
	done();
}

static void reused(void)
{
	begin(1 << 20);
	event(MGPU_TRACE_FRAME, 1, 10, 1, 0);
	trace_model_vgpu(&model, 1, UUID_A, "another name", DEV);
	event(MGPU_TRACE_FRAME, 1, 11, 2, 1);
	trace_model_vgpu(&model, 1, "99999999-509f-382f-3c1e-e6bfe0fa1003", "later", DEV);
	event(MGPU_TRACE_FRAME, 1, 12, 1, 0);
	event(MGPU_TRACE_FRAME, 4000, 12, 1, 0);
	event(MGPU_TRACE_FRAME, UINT32_MAX, 12, 1, 0);
	read_back(50);
	TAP_STR(events(GAME "/frames"), "first frame 10, frame 10-11");
	TAP_STR(events("mgpu/vGPUs/later, vGPU 1, 99999999/frames"), "first frame 12");
	TAP_EQ(model.others, 2);
	done();
}

static void controller(void)
{
	static const char *const states[] = {
		"{\"allocator\":\"fea\",\"trouble\":[],\"preempt\":{\"decisions\":{\"preempt\":7}},\n"
		"\"vgpus\":[{\"uuid\":\"" UUID_A "\",\"fps\":59.5,\"target_fps\":60,\n"
		"\"gpu_share\":0.25,\"gpu_target_share\":null},{\"uuid\":7},8]}",
		"{\"allocator\":\"exact\",\"trouble\":[\"bad\"],\"vgpus\":{},\n"
		"\"preempt\":{\"decisions\":{\"preempt\":9,\"launch\":-1}}}",
		"{\"allocator\":3}", "[]",
	};
	struct json_object *o;

	begin(1 << 20);
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		o = json_tokener_parse(states[i]);
		trace_model_state(&model, BEGIN + (i + 1) * 10 * MS, o);
		json_object_put(o);
	}
	o = json_tokener_parse("{\"event\":\"sla-met\",\"time_s\":1.035,\"uuid\":\"" UUID_A "\"}");
	trace_model_mgpud_event(&model, BEGIN + 60 * MS, o);
	json_object_put(o);
	read_back(50);
	TAP_STR(events("mgpu/mgpud"),
		"allocator fea 10, allocator exact 20, trouble: bad 20, preempt 20, allocator 3 30, trouble: none 30, sla-met game 35, allocator  40");
	TAP_STR(events(GAME "/frame rate"), "=59.5 10");
	TAP_STR(events(GAME "/frame rate target"), "=60 10");
	TAP_STR(events(GAME "/GPU share"), "=25 10");
	TAP_STR(events(GAME "/GPU share target"), "=0 10");
	done();
}

/* A recording that is full can be read, and is not larger than it may be, wherever it ends. */
static void bounded(void)
{
	for (size_t max = 9500; max < 14000; max += 37) {
		uint64_t i;

		begin(max);
		for (i = 0; i < 1000 && !model.file.error; i++) {
			/* frames alone reserve nothing */
			if (max % 2) {
				event(MGPU_TRACE_FRAME, 1, (double)i, i, i ? 1 : 0);
				continue;
			}
			event(MGPU_TRACE_START, 1, (double)i, i, 0.5);
			event(MGPU_TRACE_THROTTLE, 2, (double)i + 0.1, i, 0.25);
			event(MGPU_TRACE_START, 2, (double)i + 0.2, i, 0.25);
			event(MGPU_TRACE_DONE, i % 2 + 1, (double)i + 0.3, i, 0.25);
			event(MGPU_TRACE_FRAME, 1, (double)i + 0.4, i, i ? 1 : 0);
		}
		TAP_EQ(model.file.error, -ENOSPC);
		TAP_CHECK(i < 1000);
		read_back(2000);
		TAP_EQ(model.file.error, 0);
		TAP_CHECK(size <= max);
		TAP_STR(events("mgpu/recording"), "recording 0-2000");
		done();
	}
}

static void make_report(double at)
{
	read_back(at);
	if (!TAP_CHECK(!report_make(&figures, &reading, why, sizeof(why))))
		tap_diag("%s", why);
}

static void reports(void)
{
	const struct report_vgpu *v;

	begin(1 << 20);
	for (int i = 0; i < 100; i++) {
		double at = 1 + 100.0 * i;

		event(MGPU_TRACE_THROTTLE, 1, at + 20, 1, 10);
		event(MGPU_TRACE_START, 1, at + 20, (uint64_t)i, 5);
		event(MGPU_TRACE_DONE, 1, at + 60, (uint64_t)i, 30);
		/* one of ten is late */
		event(MGPU_TRACE_FRAME, 1, at + 60 + (i % 10 ? 0 : 20), (uint64_t)i,
		      !i ? 0 : i % 10 == 0 ? 120 : i % 10 == 1 ? 80 : 100);
		event(MGPU_TRACE_START, 2, at + 70, (uint64_t)i, 0);
		event(MGPU_TRACE_PREEMPT, 2, at + 90, (uint64_t)i, 20);
	}
	make_report(10000);
	TAP_EQ(figures.nr_vgpus, 2);
	TAP_EQ(figures.nr_slots, 2);
	TAP_EQ(figures.bins, 20);
	v = &figures.vgpus[0];
	TAP_EQ(v->frames, 100);
	TAP_NEAR(report_frame_time(v, 0.5), 0.1, 1e-9);
	TAP_NEAR(report_frame_time(v, 0.05), 0.08, 1e-9);
	TAP_NEAR(report_frame_time(v, 0.99), 0.12, 1e-9);
	TAP_NEAR(report_frame_time(v, 1), 0.12, 1e-9);
	/* 30 of 100 ms, of one of two engines */
	TAP_NEAR(v->share, 0.15, 1e-6);
	TAP_NEAR(v->engine_s, 3, 1e-6);
	TAP_NEAR(v->throttled, 0.1, 1e-6);
	TAP_NEAR(v->waiting, 0.05, 1e-6);
	TAP_NEAR(v->series[SERIES_SHARE][3], 0.15, 1e-6);
	TAP_NEAR(v->series[SERIES_FPS][3], 10, 1e-6);
	TAP_CHECK(isnan(v->series[SERIES_TARGET][3]));
	v = &figures.vgpus[1];
	TAP_EQ(v->preempted, 100);
	TAP_EQ(v->frames, 0);
	TAP_CHECK(isnan(report_frame_time(v, 0.5)));
	TAP_NEAR(v->series[SERIES_PREEMPTED][19], 5, 1e-6);
	/* 40 and 20 of 100 ms, one after the other */
	TAP_NEAR(figures.slots[0].used, 0.6, 1e-6);
	TAP_NEAR(figures.slots[1].used, 0, 1e-6);
	TAP_EQ(figures.slots[0].vgpu[7], 0);
	TAP_CHECK(figures.slots[1].vgpu[7] == SIZE_MAX);
	done();
}

static char *page(void)
{
	char *html = NULL;
	size_t len;
	FILE *f = open_memstream(&html, &len);

	if (!f || report_html(&figures, f) || fclose(f))
		abort();
	return html;
}

static void hostile_names(void)
{
	struct json_object *o;
	char *html;

	trace_model_init(&model, &clocks, 1 << 20);
	trace_model_dev(&model, HOSTILE, 1, 1);
	trace_model_vgpu(&model, 1, UUID_A, HOSTILE, HOSTILE);
	event(MGPU_TRACE_START, 1, 10, 1, 0);
	event(MGPU_TRACE_DONE, 1, 20, 1, 10);
	event(MGPU_TRACE_FRAME, 1, 20, 1, 0);
	event(MGPU_TRACE_FRAME, 1, 30, 2, 10);
	trace_model_note(&model, BEGIN + 5 * MS, HOSTILE);
	o = json_object_new_object();
	json_object_object_add(o, "allocator", json_object_new_string(HOSTILE));
	trace_model_state(&model, BEGIN + 8 * MS, o);
	json_object_put(o);
	o = json_tokener_parse("{\"vgpus\":[{\"uuid\":\"" UUID_A "\",\"gpu_target_share\":0.3}]}");
	trace_model_state(&model, BEGIN + 9 * MS, o);
	json_object_put(o);
	make_report(1000);
	html = page();
	/* of a vGPU whose share has a target */
	TAP_CHECK(strstr(html, "Targets of the GPU share"));
	TAP_CHECK(!strstr(html, "<script"));
	TAP_CHECK(!strstr(html, "\342\200\256"));
	TAP_CHECK(!strchr(html, '\033'));
	TAP_CHECK(!strchr(html, '\377'));
	TAP_CHECK(!strstr(html, "alert(\"1\")"));
	TAP_CHECK(strstr(html, "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;&#39;"
			 "\\u202e"));
	TAP_CHECK(strstr(html, "allocator &lt;script&gt;"));
	free(html);
	done();
}

/* Texts of mgpud are cut off by bytes before they come here. */
static void cut_texts(void)
{
	char text[TRACE_TEXT + 8] = "";

	begin(1 << 20);
	trace_model_note(&model, BEGIN + 1 * MS, "two \303");
	trace_model_note(&model, BEGIN + 2 * MS, "three \342\202");
	trace_model_note(&model, BEGIN + 3 * MS, "four \360\237\230");
	trace_model_note(&model, BEGIN + 4 * MS, "whole \303\251");
	read_back(10);
	TAP_STR(events("mgpu/mgpud"), "two  1, three  2, four  3, whole \303\251 4");
	done();

	memset(text, 'x', TRACE_TEXT + 1);
	memcpy(text + TRACE_TEXT - 1, "\303\251", 2);
	begin(1 << 20);
	trace_model_note(&model, BEGIN + 1 * MS, text);
	read_back(10);
	strcpy(text + TRACE_TEXT - 1, " 1");
	TAP_STR(events("mgpu/mgpud"), text);
	done();
}

static void empty(void)
{
	char *html;

	trace_model_init(&model, &clocks, 1 << 20);
	make_report(0.001);
	html = page();
	TAP_CHECK(strstr(html, "</html>"));
	TAP_CHECK(!strstr(html, "nan") && !strstr(html, "inf"));
	free(html);
	done();
}

static void many_vgpus(void)
{
	char uuid[40], *html;

	begin(4 << 20);
	for (uint32_t i = 3; i < 40; i++) {
		snprintf(uuid, sizeof(uuid), "%08u-509f-382f-3c1e-e6bfe0fa1003", i);
		trace_model_vgpu(&model, i, uuid, "one of many", DEV);
		event(MGPU_TRACE_START, i, i * 10, i, 0);
		event(MGPU_TRACE_DONE, i, i * 10 + (i == 20 ? 9 : 1), i, i == 20 ? 9 : 1);
	}
	/* of a vGPU without a plot: it used least */
	event(MGPU_TRACE_START, 1, 500, 1, 0);
	event(MGPU_TRACE_PREEMPT, 1, 501, 1, 0.1);
	make_report(1000);
	html = page();
	TAP_EQ(figures.nr_vgpus, 39);
	TAP_CHECK(strstr(html, "Plots have the 8 vGPUs"));
	/* it used most, and so is in the keys of plots */
	TAP_CHECK(strstr(html, "</i>one of many, vGPU 20,"));
	TAP_CHECK(!strstr(html, "</i>game, vGPU 1,"));
	TAP_CHECK(!strstr(html, "No job was preempted"));
	TAP_CHECK(strstr(html, "No job of a vGPU in the plots was preempted"));
	free(html);
	done();
}

static void many_gaps(void)
{
	char *html;

	begin(4 << 20);
	for (uint64_t i = 1; i <= 20000; i++) {
		event(MGPU_TRACE_FRAME, 1, (double)i, i, 0);
		trace_model_lost(&model, BEGIN + i * MS + MS / 2, i);
	}
	make_report(20001);
	html = page();
	TAP_EQ(figures.nr_gaps, 20000);
	/* the bands of six plots that are 888 wide, of some 70 bytes each */
	TAP_CHECK(strstr(html, "class=\"band\""));
	TAP_CHECK(strlen(html) < 7 * 888 * 100);
	free(html);
	done();
}

/* Damage each byte, cut at each byte: the file is refused, or read; the sanitizers watch. */
static void damaged(void)
{
	unsigned int refusals = 0;
	char *copy;

	begin(1 << 20);
	event(MGPU_TRACE_START, 1, 10, 7, 1);
	event(MGPU_TRACE_FRAME, 1, 15, 7, 5);
	event(MGPU_TRACE_DONE, 1, 15, 7, 5);
	end(20);
	for (size_t i = 0; i < size; i++) {
		copy = malloc(i + 1);
		TAP_NEED(copy);
		memcpy(copy, file, i);
		TAP_CHECK(trace_read(&reading, copy, i, why, sizeof(why)) == -EINVAL ||
			  reading.nr_events);
		trace_read_free(&reading);
		free(copy);
		for (int bit = 0; bit < 8; bit += 3) {
			file[i] ^= (char)(1 << bit);
			if (trace_read(&reading, file, size, why, sizeof(why)))
				refusals++;
			else if (!report_make(&figures, &reading, why, sizeof(why)))
				free(page());
			report_free(&figures);
			trace_read_free(&reading);
			file[i] ^= (char)(1 << bit);
		}
	}
	TAP_CHECK(refusals > size / 2);
	done();
}

/* Add a packet with an event: type and track as the field numbers say, ns by clock. */
static size_t put_event(char *at, uint64_t type, uint64_t track_id, uint64_t ns, unsigned int clock)
{
	const char packet[] = {
		0x0a, 18, 0x40, (char)(ns & 0x7f), (char)0xd0, 0x03, (char)clock, 0x50, 1,
		0x5a, 9, 0x48, (char)type, 0x58, (char)track_id, (char)0xba, 0x01, 2, 'a', 'b',
	};

	memcpy(at, packet, sizeof(packet));
	return sizeof(packet);
}

static void refuses(size_t len, const char *want)
{
	int ret = trace_read(&reading, file, len, why, sizeof(why));

	TAP_EQ(ret, want ? -EINVAL : 0);
	if (want && !TAP_CHECK(strstr(why, want)))
		tap_diag("says '%s', nothing like '%s'", why, want);
	trace_read_free(&reading);
}

/* Whatever the file has, the events take a bounded amount of memory. */
static void too_many(void)
{
	static const char track[] = { 0x0a, 7, (char)0xe2, 0x03, 4, 0x08, 1, 0x12, 0 };
	size_t len = sizeof(track), i;

	file = malloc(len + 20 * (TRACE_EVENTS_MAX + 1));
	TAP_NEED(file);
	memcpy(file, track, len);
	for (i = 0; i < TRACE_EVENTS_MAX; i++)
		len += put_event(file + len, TRACE_INSTANT, 1, 10, 3);
	TAP_EQ(trace_read(&reading, file, len, why, sizeof(why)), 0);
	TAP_EQ(reading.nr_events, TRACE_EVENTS_MAX);
	trace_read_free(&reading);
	len += put_event(file + len, TRACE_INSTANT, 1, 10, 3);
	TAP_EQ(trace_read(&reading, file, len, why, sizeof(why)), -E2BIG);
	TAP_CHECK(strstr(why, "events: record a shorter time"));
	TAP_CHECK(!strstr(why, "damaged"));
	TAP_CHECK(!reading.events);
	free(file);
	file = NULL;
}

static void invalid(void)
{
	static const char tracks[] = {
		0x0a, 7, (char)0xe2, 0x03, 4, 0x08, 1, 0x12, 0,		/* 1: of slices */
		0x0a, 9, (char)0xe2, 0x03, 6, 0x08, 2, 0x28, 1, 0x42, 0, /* 2 below 1: of values */
	};
	size_t at = sizeof(tracks), len;

	file = malloc(1000);
	TAP_NEED(file);
	memcpy(file, tracks, at);
	refuses(0, "no events");
	refuses(at, "no events");
	len = at + put_event(file + at, TRACE_BEGIN, 1, 10, 3);
	refuses(len, "does not end");
	len += put_event(file + len, TRACE_END, 1, 20, 3);
	refuses(len, NULL);
	put_event(file + len, TRACE_END, 1, 21, 3);
	refuses(len + 20, "not begun");
	put_event(file + len, TRACE_INSTANT, 1, 19, 3);
	refuses(len + 20, "time goes back");
	put_event(file + len, TRACE_INSTANT, 3, 21, 3);
	refuses(len + 20, "track 3, which is not there");
	put_event(file + len, TRACE_INSTANT, 2, 21, 3);
	refuses(len + 20, "another type");
	put_event(file + len, TRACE_COUNTER, 1, 21, 3);
	refuses(len + 20, "another type");
	put_event(file + len, 9, 1, 21, 3);
	refuses(len + 20, "type 9");
	put_event(file + len, TRACE_INSTANT, 1, 21, 6);
	refuses(len + 20, "CLOCK_MONOTONIC");
	put_event(file + len, TRACE_INSTANT, 1, 0, 3);
	refuses(len + 20, "CLOCK_MONOTONIC");
	put_event(file + len, TRACE_INSTANT, 1, 21, 3);
	refuses(len + 20, NULL);
	memcpy(file + len, tracks, 9);
	refuses(len + 9, "after an event");
	put_event(file + len - 20, TRACE_BEGIN, 1, 15, 3);
	refuses(len, "before the one before it has ended");
	put_event(file + len - 20, TRACE_END, 1, 20, 3);
	file[6] = 2;
	refuses(len, "two tracks have the id");
	file[6] = 9;
	refuses(len, "below a track that is not there");
	file[6] = 0;
	refuses(len, "no id");
	file[6] = 1;
	file[17] = 2;
	refuses(len, "levels deep");
	free(file);
	file = NULL;
}

int main(void)
{
	tap_run(slots, "a job is in the lowest free slot until it completes or is preempted");
	tap_run(states, "frames that were held back and jobs that waited are slices that do not overlap");
	tap_run(frames, "a frame is a slice from the frame before it");
	tap_run(losses, "lost events are a gap, which ends what was in flight");
	tap_run(reused, "a vGPU that gets the id of another one has tracks of its own");
	tap_run(controller, "mgpud's states and events become decisions and values");
	tap_run(bounded, "a recording that is full is complete, and not larger than it may be");
	tap_run(reports, "the figures are those of the events");
	tap_run(hostile_names, "names are cleaned and escaped in a page");
	tap_run(cut_texts, "texts end between two characters");
	tap_run(empty, "a recording of nothing has a page");
	tap_run(many_vgpus, "plots have the vGPUs that used most");
	tap_run(many_gaps, "gaps that are closer than a plot can show are one band");
	tap_run_within(damaged, "a damaged file is refused or read, and does no harm", 120);
	tap_run(invalid, "each breach of the format is refused with its reason");
	tap_run(too_many, "a recording with too many events is refused, and says why");
	return tap_done();
}
