/* SPDX-License-Identifier: GPL-2.0-only */
/* virglrenderer on Mesa's llvmpipe, as mgpu-renderd uses it. A process can have one. */
#ifndef TESTS_UNIT_RENDERER_H
#define TESTS_UNIT_RENDERER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "virgl.h"

/* renderer_start() makes these: a context, a picture with guest memory, and a vertex buffer. */
#define RENDERER_CTX		1u
#define RENDERER_PICTURE	1u
#define RENDERER_VERTICES	2u

/**
 * struct renderer - the renderer
 * @v: it
 * @mem: memory of the picture, rows from the top down, four bytes a pixel
 */
struct renderer {
	struct virgl *v;
	uint8_t *mem;
};

extern struct renderer renderer;

/*
 * A fragment shader with a loop: each pixel has a colour of its own, which depends on its
 * place and on its neighbours'.
 */
extern const char renderer_shader[];

/* Start it, with a picture of @width x @height pixels: false if it does not start here. */
bool renderer_start(uint32_t width, uint32_t height);

/* Execute a command, without waiting for its fence: VIRTIO_GPU_RESP_*, or 0 for later. */
uint32_t renderer_send(const void *cmd, size_t len);
/* Wait for all fences: VIRTIO_GPU_RESP_* of the last command. */
uint32_t renderer_wait(void);
/* Both. */
uint32_t renderer_run(const void *cmd, size_t len);
/* Get the picture into its memory. */
uint32_t renderer_fetch(void);

#endif /* TESTS_UNIT_RENDERER_H */
