/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mgpu-gl: a client of OpenGL ES on DRM, GBM and EGL, without a window system.
 * gl.c is the main loop, gl_window.c the screen and the context, gl_load.c the
 * kinds of frames, gl_verify.c compares pixels with the expected ones; display.c and
 * clock.c are shared with mgpu-game.
 */
#ifndef MGPU_GL_H
#define MGPU_GL_H

#include <stdbool.h>
#include <stdint.h>

#include <EGL/egl.h>
#include <GLES3/gl3.h>

#include "game.h"

struct gbm_bo;
struct gbm_device;
struct gbm_surface;

/* ---- gl_window.c ---- */

/**
 * struct window - the target of drawing
 * @screen: card and mode; its buffers belong to the surface; unused offscreen
 * @offscreen: there is no screen, only a render node
 * @fd: file descriptor of the card or of the render node
 * @width: width, pixels
 * @height: height, pixels
 * @es: major version of OpenGL ES
 * @fbo: the framebuffer object to draw to, 0 with a screen
 */
struct window {
	struct display screen;
	bool offscreen;
	int fd;
	int width;
	int height;
	int es;
	GLuint fbo;
	GLuint color;
	GLuint depth;
	struct gbm_device *gbm;
	struct gbm_surface *surface;
	struct gbm_bo *shown;
	EGLDisplay egl;
	EGLContext context;
	EGLSurface target;
};

int window_open(struct window *w, const char *card, const char *mode,
		bool offscreen, bool software);
int window_show(struct window *w);
void window_close(struct window *w);
GLuint window_program(const char *vertex, const char *fragment);
int window_error(const char *what);

/* ---- gl_load.c ---- */

struct load;

int load_find(const char *name, const struct load **load);
const char *load_names(void);
const char *load_name(const struct load *load);
uint32_t load_usual_work(const struct load *load);
int load_open(const struct load *load, const struct window *w, uint32_t work);
int load_frame(const struct load *load, const struct window *w, uint64_t frame);

/* ---- gl_verify.c ---- */

/**
 * struct verdict - result of a comparison of pixels
 * @scenes: scenes that were rendered
 * @skipped: scenes that this version of OpenGL ES cannot have
 * @failed: scenes with a wrong pixel
 */
struct verdict {
	uint32_t scenes;
	uint32_t skipped;
	uint32_t failed;
};

int verify_round(const struct window *w, uint32_t seed, uint32_t round,
		 struct verdict *v);

#endif /* MGPU_GL_H */
