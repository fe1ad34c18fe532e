// SPDX-License-Identifier: GPL-2.0-only
/* The clock of a GPU by timer queries of OpenGL, on Mesa's llvmpipe. */
#include <linux/virtio_gpu.h>

#include "clock.h"
#include "tap.h"

#include "renderer.h"
#include "stream.h"

#define WIDTH	640u
#define HEIGHT	360u
#define OK	VIRTIO_GPU_RESP_OK_NODATA
#define MS	1000000u

static struct {
	struct virtio_gpu_cmd_submit c;
	uint32_t w[1100];
} job = {
	.c.hdr = { .type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = RENDERER_CTX },
};

static size_t job_of(const struct gl_stream *s)
{
	job.c.size = s->n * 4;
	memcpy(job.w, s->w, job.c.size);
	return sizeof(job.c) + job.c.size;
}

static size_t triangles(uint32_t n)
{
	struct gl_stream s;

	gl_begin(&s);
	while (n--)
		gl_triangle(&s);
	return job_of(&s);
}

/*
 * Run a job; return how long the GPU worked for it, and nothing but it, nanoseconds. GL_TIMESTAMP
 * of llvmpipe is the clock of now_ns().
 */
static uint64_t time_of(size_t len, uint64_t *wall)
{
	uint64_t before = virgl_time_ns(renderer.v), begin = now_ns();

	TAP_EQ(renderer_run(&job, len), OK);
	*wall = now_ns() - begin;
	return virgl_time_ns(renderer.v) - before;
}

/* Start the renderer, one for each test: NULL, or why there is no clock. */
static const char *start(void)
{
	struct gl_stream s;

	if (!renderer_start(WIDTH, HEIGHT))
		return "virglrenderer does not start here";
	if (!virgl_time(renderer.v))
		return "Mesa has no timer queries here";
	gl_begin(&s);
	gl_surface(&s, 10, RENDERER_PICTURE);
	gl_draw_to(&s, 10);
	gl_pipeline(&s, RENDERER_VERTICES, WIDTH, HEIGHT);
	gl_shader(&s, 11, GL_FRAGMENT, renderer_shader);
	TAP_EQ(renderer_run(&job, job_of(&s)), OK);
	/* The first draw compiles the shaders. */
	TAP_EQ(renderer_run(&job, triangles(1)), OK);
	return NULL;
}

static void work_counts(void)
{
	const char *why_not;
	uint64_t light_wall, heavy_wall, light, heavy;

	why_not = start();
	if (why_not)
		TAP_SKIP(why_not);
	light = time_of(triangles(2), &light_wall);
	heavy = time_of(triangles(60), &heavy_wall);
	TAP_CHECK(light > 0 && light <= light_wall);
	TAP_CHECK(heavy <= heavy_wall);
	/* The rest is the renderer's own, and waiting for the fence. */
	TAP_CHECK(heavy > heavy_wall / 4);
	TAP_CHECK(heavy > 4 * light);
}

static void a_pause_does_not_count(void)
{
	const char *why_not;
	uint64_t before, wall;

	why_not = start();
	if (why_not)
		TAP_SKIP(why_not);
	before = virgl_time_ns(renderer.v);
	usleep(200000);
	TAP_EQ(virgl_time_ns(renderer.v), before);
	TAP_CHECK(time_of(triangles(2), &wall) <= wall);
}

static void many_jobs_count_once(void)
{
	const char *why_not;
	uint64_t before, begin, wall, worked;
	size_t len;

	why_not = start();
	if (why_not)
		TAP_SKIP(why_not);
	before = virgl_time_ns(renderer.v);
	begin = now_ns();
	len = triangles(2);
	/* More than the clock has queries, and as many as a channel has commands at most. */
	for (int i = 0; i < 150; i++)
		renderer_send(&job, len);
	TAP_EQ(renderer_wait(), OK);
	wall = now_ns() - begin;
	worked = virgl_time_ns(renderer.v) - before;
	TAP_CHECK(worked <= wall);
	TAP_CHECK(worked > wall / 4);
}

static void the_picture_is_the_same(void)
{
	const char *why_not;
	struct gl_stream s;

	why_not = start();
	if (why_not)
		TAP_SKIP(why_not);
	gl_begin(&s);
	gl_clear(&s, 0, 1, 0, 1);
	TAP_EQ(renderer_run(&job, job_of(&s)), OK);
	TAP_EQ(renderer_fetch(), OK);
	for (size_t i = 0; i < WIDTH * HEIGHT; i++)
		TAP_NEED(!memcmp(renderer.mem + 4 * i, "\0\xff\0\xff", 4));
}

int main(void)
{
	tap_run(work_counts, "work counts, and more work counts more");
	tap_run(a_pause_does_not_count, "a pause does not count");
	tap_run(many_jobs_count_once, "jobs in flight at the same time count once");
	tap_run(the_picture_is_the_same, "the picture is the same with a clock");
	return tap_done();
}
