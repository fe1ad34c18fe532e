// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pictures that virglrenderer draws on Mesa's llvmpipe, from streams in slices and whole:
 * they are the same, byte by byte.  Each renderer runs in a process of its own.
 */
#include <linux/virtio_gpu.h>

#include "tap.h"

#include "renderer.h"
#include "stream.h"
#include "virgl/slice.h"

#define WIDTH		640u
#define HEIGHT		360u
#define PICTURE		(WIDTH * HEIGHT * 4)
#define OK		VIRTIO_GPU_RESP_OK_NODATA
#define MS		1000000u

static void put_frame(struct gl_stream *s, uint32_t frame)
{
	gl_begin(s);
	if (!frame) {
		gl_surface(s, 10, RENDERER_PICTURE);
		gl_draw_to(s, 10);
		gl_pipeline(s, RENDERER_VERTICES, WIDTH, HEIGHT);
		gl_shader(s, 11, GL_FRAGMENT, renderer_shader);
	}
	gl_clear(s, 0, 0.25, 0, 0);
	gl_triangle(s);
	gl_rasterizer(s, 20 + frame % 3, GL_HALF_CENTER | GL_SCISSOR);
	gl_scissor(s, 33, 21 + frame, WIDTH - 50, HEIGHT - 43);
	gl_triangle(s);
	gl_bind_rasterizer(s, 2);
	gl_scissor(s, 0, 0, WIDTH, HEIGHT);
	gl_triangle(s);
}

static bool submit(const struct mgpu_slicer *slicer, const struct gl_stream *s, uint32_t i)
{
	struct {
		struct virtio_gpu_cmd_submit c;
		uint32_t w[1100];
	} c = {
		.c.hdr = { .type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = RENDERER_CTX },
	};
	uint32_t words = mgpu_slice_words(slicer, i);

	if (words > 1100)
		return false;
	c.c.size = words * 4;
	mgpu_slice_write(slicer, s->w, i, c.w);
	return renderer_run(&c, sizeof(c.c) + words * 4) == OK;
}

/* In a process of its own: draw frames, and keep the last.  2 without a renderer. */
static int draw(uint32_t frames, uint32_t slice_ns, uint32_t bands, uint8_t *picture)
{
	static struct mgpu_slicer slicer;
	uint32_t frame, nr, i, most = 0;
	struct gl_stream s;

	if (!renderer_start(WIDTH, HEIGHT))
		return 2;
	mgpu_slicer_init(&slicer);
	for (frame = 0; frame < frames; frame++) {
		put_frame(&s, frame);
		nr = mgpu_slice_plan(&slicer, s.w, s.n, slice_ns, bands);
		if (nr > most)
			most = nr;
		for (i = 0; i < nr; i++) {
			if (!submit(&slicer, &s, i))
				return 1;
			/* Each draw would take some 30 ms. */
			mgpu_slice_learn(&slicer, &slicer.slices[i].load, 10 * MS, true);
		}
		mgpu_slice_commit(&slicer);
	}
	if (renderer_fetch() != OK)
		return 1;
	memcpy(picture, renderer.mem, PICTURE);
	return (slice_ns || bands) && most < 10;
}

static int apart(uint32_t frames, uint32_t slice_ns, uint32_t bands, uint8_t *picture)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(draw(frames, slice_ns, bands, picture));
	return pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ?
		1 : WEXITSTATUS(status);
}

static void same_pictures(void)
{
	static const struct {
		uint32_t slice_ns;
		uint32_t bands;
	} ways[] = { { 0, 1 }, { 0, 7 }, { 0, 20 }, { 4 * MS, 0 }, { MS, 0 } };
	uint8_t *whole, *cut;
	size_t i;
	int ret;

	/* Processes draw. */
	whole = mmap(NULL, 2 * PICTURE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	TAP_NEED(whole != MAP_FAILED);
	cut = whole + PICTURE;
	ret = apart(5, 0, 0, whole);
	if (ret == 2)
		TAP_SKIP("virglrenderer does not start here");
	TAP_NEED(!ret);
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		memset(cut, 0x5a, PICTURE);
		TAP_NEED(!apart(5, ways[i].slice_ns, ways[i].bands, cut));
		TAP_MEM(cut, whole, PICTURE);
	}
	/* The picture is none of a single colour. */
	TAP_CHECK(memcmp(whole, whole + PICTURE / 2, PICTURE / 2));
}

int main(void)
{
	tap_run_within(same_pictures, "pictures in slices are those of whole streams", 120);
	return tap_done();
}
