// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samplers on a driver that has no seamless cubes by sampler: Mesa's llvmpipe, which is told
 * that it has none.
 */
#include <linux/virtio_gpu.h>

#include "tap.h"

#include "renderer.h"
#include "stream.h"

#define CREATE_OBJECT	1u	/* VIRGL_CCMD_CREATE_OBJECT */
#define SAMPLER		7u	/* VIRGL_OBJECT_SAMPLER_STATE */
#define OK		VIRTIO_GPU_RESP_OK_NODATA

static uint32_t submit(const struct gl_stream *s)
{
	struct {
		struct virtio_gpu_cmd_submit c;
		uint32_t w[64];
	} buf = {
		.c.hdr = { .type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = RENDERER_CTX },
		.c.size = s->n * 4,
	};

	memcpy(buf.w, s->w, s->n * 4);
	return renderer_run(&buf, sizeof(buf.c) + s->n * 4);
}

static void samplers(void)
{
	struct gl_stream s;

	setenv("MESA_EXTENSION_OVERRIDE", "-GL_AMD_seamless_cubemap_per_texture", 1);
	if (!renderer_start(64, 64))
		TAP_SKIP("virglrenderer does not start here");
	gl_begin(&s);
	gl_head(&s, CREATE_OBJECT, SAMPLER, 9);
	gl_word(&s, 1);		/* its number */
	for (int i = 0; i < 8; i++)
		gl_word(&s, 0);
	TAP_EQ(submit(&s), OK);
	/* The context goes on. */
	gl_begin(&s);
	gl_rasterizer(&s, 2, 0);
	TAP_EQ(submit(&s), OK);
}

int main(void)
{
	tap_run(samplers, "samplers of drivers without seamless cubes by sampler");
	return tap_done();
}
