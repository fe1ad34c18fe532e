// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-gl: draw frames with OpenGL ES and show them with page flips, or compare drawn
 * pixels with the expected ones.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gl.h"

const char *const program_name = "mgpu-gl";

struct options {
	const char *card;
	const char *mode;
	const char *name;
	const struct load *load;
	uint32_t work;
	uint32_t seed;
	uint32_t warm_up;
	bool offscreen;
	bool software;
	bool sync;
	bool verify;
	double fps;
	uint64_t frames;
	double seconds;
};

/**
 * struct times - durations, in nanoseconds
 * @ns: the durations; longer ones than 4 s are 4 s
 */
struct times {
	uint32_t *ns;
	size_t nr;
	size_t room;
};

/**
 * struct record - frames that were shown
 * @interval: times from a frame to the next
 * @latency: times from the beginning of a frame's drawing until it is shown
 * @start: beginning of the first frame
 * @since: time of the last line of output
 * @since_frames: frames until @since
 * @cpu: CPU time of the process at the start
 */
struct record {
	struct times interval;
	struct times latency;
	uint64_t start, last, since;
	uint64_t frames, since_frames;
	uint64_t cpu;
};

static const char usage[] =
"usage: mgpu-gl [options]\n"
"\n"
"Draw with OpenGL ES on a DRM card, show each frame by a page flip, and print\n"
"the frame rate each second.\n"
"\n"
"  --card PATH      card to use (the first one of virtio_gpu; with --offscreen\n"
"                   the first render node)\n"
"  --mode WxH       mode to set (the screen's preferred one; 1920x1080 with\n"
"                   --offscreen)\n"
"  --offscreen      show nothing: draw to memory by the render node, and wait\n"
"                   until each frame is drawn; --card none --software is GL\n"
"                   without any device\n"
"  --load LOAD      content of a frame (cube):\n"
"                   cube    K cubes that turn, with light and depth (1)\n"
"                   light   K small squares (4)\n"
"                   flood   K layers over the whole screen, with 32 steps of\n"
"                           arithmetic for each of their pixels (4)\n"
"                   finish  K small squares, each with a glFinish() (20)\n"
"                   upload  K textures of 1 MiB and K buffers of 64 KiB of new\n"
"                           data, up to 64 (4)\n"
"  --work K         amount of the load (default in brackets above)\n"
"  --sync           wait until a frame is drawn before it is shown\n"
"  --fps N          sleep so as not to exceed N frames/s (none)\n"
"  --warm-up N      frames to draw before the first that counts (2)\n"
"  --frames N       stop after N frames (never)\n"
"  --seconds S      stop after S seconds (never)\n"
"  --name NAME      name in the output (gl)\n"
"  --software       allow rendering by this system's own processors\n"
"  --verify         draw known scenes and compare all their pixels; a round, or\n"
"                   as many as --frames and --seconds say\n"
"  --seed N         seed of the random pixels of --verify (1)\n"
"  --help           this text\n"
"\n"
"Each second a line of key=value: frames since the start, fps, p50_ms, p99_ms\n"
"and max_ms of the time between two frames.  At the end a JSON object.\n"
"\n"
"Exit status: 0 for success, 1 for no usable GL, an error or a wrong pixel, 2 for\n"
"an invalid option.\n";

static int choose_load(const char *value, void *to)
{
	return load_find(value, to);
}

static int parse(struct options *o, int argc, char **argv)
{
	const struct cmdline_option options[] = {
		TEXT("card", &o->card),
		TEXT("mode", &o->mode),
		FLAG("offscreen", &o->offscreen),
		CHOICE("load", &o->load, choose_load, load_names()),
		U32("work", &o->work, 1, 100000),
		FLAG("sync", &o->sync),
		NUMBER("fps", &o->fps, 0.1, 10000,
		       "a rate from 0.1 to 10000 frames/s"),
		U32("warm-up", &o->warm_up, 0, 100000),
		U64("frames", &o->frames, 1, 1e15, "a number from 1"),
		NUMBER("seconds", &o->seconds, 0.01, 1e9,
		       "a time in seconds, above 0"),
		WORD("name", &o->name),
		FLAG("software", &o->software),
		FLAG("verify", &o->verify),
		U32("seed", &o->seed, 1, UINT32_MAX),
		{ 0 },
	};

	return cmdline_parse(options, usage, argc, argv);
}

static int times_add(struct times *t, uint64_t ns)
{
	if (t->nr == t->room) {
		size_t room = t->room ? t->room * 2 : 4096;
		uint32_t *more = realloc(t->ns, room * sizeof(*more));

		if (!more) {
			explain("no memory for the times of %zu frames\n", room);
			return -ENOMEM;
		}
		t->ns = more;
		t->room = room;
	}
	t->ns[t->nr++] = ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
	return 0;
}

/* Times in milliseconds of a part that is sorted for it. */
static void quantiles(const uint32_t *ns, size_t nr, double ms[4])
{
	static const unsigned int percent[] = { 50, 95, 99, 100 };
	uint32_t *sorted;
	int i;

	memset(ms, 0, 4 * sizeof(*ms));
	sorted = nr ? malloc(nr * sizeof(*sorted)) : NULL;
	if (!sorted)
		return;
	memcpy(sorted, ns, nr * sizeof(*sorted));
	sort_ns(sorted, nr);
	/* Of n the i-th such that at least the given part is not above it. */
	for (i = 0; i < 4; i++)
		ms[i] = sorted[(nr * percent[i] + 99) / 100 - 1] / 1e6;
	free(sorted);
}

static void record_start(struct record *r)
{
	r->start = now_ns();
	r->last = r->start;
	r->since = r->start;
	r->cpu = cpu_ns();
}

static void report(struct record *r, const char *name, uint64_t now)
{
	uint64_t n = r->frames - r->since_frames;
	double ms[4];

	quantiles(r->interval.ns + r->since_frames, n, ms);
	printf("gl name=%s t=%.3f frames=%llu fps=%.2f p50_ms=%.2f p99_ms=%.2f max_ms=%.2f\n",
	       name, (double)(now - r->start) / 1e9,
	       (unsigned long long)r->frames,
	       (double)n * 1e9 / (double)(now - r->since), ms[0], ms[2], ms[3]);
	fflush(stdout);
	r->since = now;
	r->since_frames = r->frames;
}

static int record_frame(struct record *r, uint64_t began, uint64_t now)
{
	int ret = times_add(&r->interval, now - r->last);

	if (!ret)
		ret = times_add(&r->latency, now - began);
	r->frames++;
	r->last = now;
	return ret;
}

/* Print a string of GL as JSON; drops characters that JSON would have to escape. */
static void print_string(const char *s)
{
	putchar('"');
	for (; s && *s; s++)
		if (*s >= ' ' && *s != '"' && *s != '\\')
			putchar(*s);
	putchar('"');
}

static void print_renderer(const struct window *w)
{
	printf(", \"width\": %d, \"height\": %d, \"offscreen\": %s, \"es\": %d, \"renderer\": ",
	       w->width, w->height, w->offscreen ? "true" : "false", w->es);
	print_string((const char *)glGetString(GL_RENDERER));
	printf(", \"version\": ");
	print_string((const char *)glGetString(GL_VERSION));
}

static void summary(const struct options *o, const struct window *w,
		    const struct record *r)
{
	double seconds = (double)(r->last - r->start) / 1e9;
	double frame[4], latency[4];

	quantiles(r->interval.ns, r->interval.nr, frame);
	quantiles(r->latency.ns, r->latency.nr, latency);
	printf("{\"name\": \"%s\", \"load\": \"%s\", \"work\": %u, \"frames\": %llu, \"seconds\": %.3f, \"fps\": %.3f",
	       o->name, load_name(o->load), o->work,
	       (unsigned long long)r->frames, seconds,
	       seconds > 0 ? (double)r->frames / seconds : 0);
	printf(", \"frame_ms_median\": %.3f, \"frame_ms_p95\": %.3f, \"frame_ms_p99\": %.3f, \"frame_ms_max\": %.3f",
	       frame[0], frame[1], frame[2], frame[3]);
	printf(", \"latency_ms_median\": %.3f, \"latency_ms_p95\": %.3f, \"latency_ms_p99\": %.3f, \"latency_ms_max\": %.3f",
	       latency[0], latency[1], latency[2], latency[3]);
	printf(", \"cpu_s\": %.3f", (double)(cpu_ns() - r->cpu) / 1e9);
	print_renderer(w);
	printf("}\n");
	fflush(stdout);
}

static int frame(const struct options *o, struct window *w, uint64_t number)
{
	int ret = load_frame(o->load, w, number);

	if (ret)
		return ret;
	if (o->sync)
		glFinish();
	return window_show(w);
}

static int draw(const struct options *o, struct window *w, struct record *r)
{
	uint64_t number = 0, began, now, due;
	int ret;

	ret = load_open(o->load, w, o->work);
	while (!ret && !stop && number < o->warm_up)
		ret = frame(o, w, number++);
	if (ret)
		return ret;
	if (!o->offscreen)
		glFinish();

	record_start(r);
	due = r->start;
	while (!stop) {
		began = now_ns();
		ret = frame(o, w, number++);
		if (ret)
			break;
		now = now_ns();
		ret = record_frame(r, began, now);
		if (ret)
			break;
		if (now - r->since >= 1000000000)
			report(r, o->name, now);
		if (o->frames && r->frames >= o->frames)
			break;
		if (o->seconds > 0 &&
		    (double)(now - r->start) >= o->seconds * 1e9)
			break;
		if (o->fps > 0)
			pace(&due, o->fps);
	}
	summary(o, w, r);
	return ret;
}

static int verify(const struct options *o, struct window *w)
{
	struct verdict v = { 0 };
	uint64_t start = now_ns();
	uint32_t round = 0;
	double seconds = 0;
	int ret = 0;

	do {
		ret = verify_round(w, o->seed, round, &v);
		seconds = (double)(now_ns() - start) / 1e9;
		round++;
		if (!ret) {
			printf("gl name=%s verify round=%u scenes=%u skipped=%u failed=%u t=%.3f\n",
			       o->name, round, v.scenes, v.skipped, v.failed,
			       seconds);
			fflush(stdout);
		}
	} while (!ret && !stop && (o->frames || o->seconds > 0) &&
		 (!o->frames || round < o->frames) &&
		 (!(o->seconds > 0) || seconds < o->seconds));

	printf("{\"name\": \"%s\", \"verify\": true, \"right\": %s, \"rounds\": %u, \"scenes\": %u, \"skipped\": %u, \"failed\": %u, \"seconds\": %.3f",
	       o->name, ret || v.failed ? "false" : "true", round, v.scenes,
	       v.skipped, v.failed, seconds);
	print_renderer(w);
	printf("}\n");
	fflush(stdout);
	return v.failed ? -EIO : ret;
}

int main(int argc, char **argv)
{
	struct options o = { .name = "gl", .seed = 1, .warm_up = 2 };
	static struct window window;
	struct record record = { 0 };
	int ret;

	load_find("cube", &o.load);
	ret = parse(&o, argc, argv);
	if (ret)
		return ret < 0 ? 2 : 0;
	if (!o.work)
		o.work = load_usual_work(o.load);

	stop_on_signals();

	ret = window_open(&window, o.card, o.mode, o.offscreen, o.software);
	if (ret)
		return 1;
	ret = o.verify ? verify(&o, &window) : draw(&o, &window, &record);
	window_close(&window);
	free(record.interval.ns);
	free(record.latency.ns);
	return ret ? 1 : 0;
}
