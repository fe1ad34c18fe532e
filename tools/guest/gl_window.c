// SPDX-License-Identifier: GPL-2.0-only
/*
 * A context of OpenGL ES on a card with a screen, whose frames are shown by page
 * flips, or on a render node.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <drm_fourcc.h>
#include <gbm.h>
#include <xf86drm.h>

#include "gl.h"

#define FIRST_RENDER_NODE	128
#define MAX_RENDER_NODES	64
#define OFFSCREEN_WIDTH		1920
#define OFFSCREEN_HEIGHT	1080

static int open_render_node(const char *path)
{
	char name[64];
	int fd, i, ret = -ENOENT;

	if (path) {
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd < 0) {
			ret = -errno;
			explain("cannot open %s: %s\n", path, strerror(-ret));
			return ret;
		}
		return fd;
	}
	for (i = 0; i < MAX_RENDER_NODES; i++) {
		snprintf(name, sizeof(name), "/dev/dri/renderD%d",
			 FIRST_RENDER_NODE + i);
		fd = open(name, O_RDWR | O_CLOEXEC);
		if (fd >= 0)
			return fd;
		if (errno == ENOENT)
			continue;
		ret = -errno;
		break;
	}
	if (ret == -ENOENT)
		explain("no render node in /dev/dri; is the GPU's driver loaded, and has the GPU 3D (dmesg)?\n");
	else
		explain("cannot open %s: %s%s\n", name, strerror(-ret),
			ret == -EACCES ?
			"; run as root or in group render" : "");
	return ret;
}

/* EGL's own names are of more use than its numbers. */
static const char *egl_reason(void)
{
	switch (eglGetError()) {
	case EGL_NOT_INITIALIZED: return "not initialized";
	case EGL_BAD_ACCESS: return "bad access";
	case EGL_BAD_ALLOC: return "no memory";
	case EGL_BAD_ATTRIBUTE: return "bad attribute";
	case EGL_BAD_CONFIG: return "bad configuration";
	case EGL_BAD_MATCH: return "bad match";
	case EGL_BAD_NATIVE_WINDOW: return "bad window";
	case EGL_BAD_PARAMETER: return "bad parameter";
	case EGL_CONTEXT_LOST: return "context lost";
	default: return "no reason given";
	}
}

static int choose_config(struct window *w, EGLConfig *chosen)
{
	const EGLint want[] = {
		EGL_SURFACE_TYPE, w->offscreen ? 0 : EGL_WINDOW_BIT,
		EGL_RED_SIZE, 8, EGL_GREEN_SIZE, 8, EGL_BLUE_SIZE, 8,
		EGL_DEPTH_SIZE, 16,
		EGL_RENDERABLE_TYPE, EGL_OPENGL_ES2_BIT,
		EGL_NONE,
	};
	EGLConfig config[64];
	EGLint n = 0, i, format;

	if (!eglChooseConfig(w->egl, want, config, 64, &n)) {
		explain("cannot list configurations of EGL: %s\n", egl_reason());
		return -ENODEV;
	}
	for (i = 0; i < n; i++) {
		if (eglGetConfigAttrib(w->egl, config[i], EGL_NATIVE_VISUAL_ID,
				       &format) &&
		    (w->offscreen || format == GBM_FORMAT_XRGB8888)) {
			*chosen = config[i];
			return 0;
		}
	}
	explain("no GL with 24 bits of colour and 16 of depth on this card\n");
	return -ENODEV;
}

static int open_egl(struct window *w)
{
	static const EGLint versions[][3] = {
		{ EGL_CONTEXT_CLIENT_VERSION, 3, EGL_NONE },
		{ EGL_CONTEXT_CLIENT_VERSION, 2, EGL_NONE },
	};
	PFNEGLGETPLATFORMDISPLAYEXTPROC platform;
	EGLConfig config = NULL;
	unsigned int i;

	platform = (PFNEGLGETPLATFORMDISPLAYEXTPROC)
		eglGetProcAddress("eglGetPlatformDisplayEXT");
	if (w->fd >= 0) {
		w->gbm = gbm_create_device(w->fd);
		if (!w->gbm) {
			explain("no GL: this card has no GBM (package libgl1-mesa-dri)\n");
			return -ENODEV;
		}
		if (platform)
			w->egl = platform(EGL_PLATFORM_GBM_KHR, w->gbm, NULL);
	} else if (platform) {
		w->egl = platform(EGL_PLATFORM_SURFACELESS_MESA,
				  EGL_DEFAULT_DISPLAY, NULL);
	}
	if (w->egl == EGL_NO_DISPLAY ||
	    !eglInitialize(w->egl, NULL, NULL)) {
		explain("no GL: EGL does not take this card: %s\n",
			platform ? egl_reason() : "it knows no platforms");
		return -ENODEV;
	}
	if (!eglBindAPI(EGL_OPENGL_ES_API) || choose_config(w, &config))
		return -ENODEV;

	for (i = 0; i < 2 && w->context == EGL_NO_CONTEXT; i++)
		w->context = eglCreateContext(w->egl, config, EGL_NO_CONTEXT,
					      versions[i]);
	if (w->context == EGL_NO_CONTEXT) {
		explain("no GL: a context cannot be made: %s\n", egl_reason());
		return -ENODEV;
	}
	if (!w->offscreen) {
		w->surface = gbm_surface_create(w->gbm, (uint32_t)w->width,
						(uint32_t)w->height,
						GBM_FORMAT_XRGB8888,
						GBM_BO_USE_SCANOUT |
						GBM_BO_USE_RENDERING);
		if (!w->surface) {
			explain("no buffers of %dx%d for the screen: %s\n",
				w->width, w->height, strerror(errno));
			return -ENOMEM;
		}
		w->target = eglCreateWindowSurface(w->egl, config,
						   (EGLNativeWindowType)w->surface,
						   NULL);
		if (w->target == EGL_NO_SURFACE) {
			explain("GL cannot draw to the screen's buffers: %s\n",
				egl_reason());
			return -ENODEV;
		}
	}
	if (!eglMakeCurrent(w->egl, w->target, w->target, w->context)) {
		explain("the GL context cannot be used: %s\n", egl_reason());
		return -ENODEV;
	}
	return 0;
}

/* Make the render target that stands for a screen. */
static int make_target(struct window *w)
{
	glGenTextures(1, &w->color);
	glBindTexture(GL_TEXTURE_2D, w->color);
	glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA, w->width, w->height, 0, GL_RGBA,
		     GL_UNSIGNED_BYTE, NULL);
	glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
	glGenRenderbuffers(1, &w->depth);
	glBindRenderbuffer(GL_RENDERBUFFER, w->depth);
	glRenderbufferStorage(GL_RENDERBUFFER, GL_DEPTH_COMPONENT16, w->width,
			      w->height);
	glGenFramebuffers(1, &w->fbo);
	glBindFramebuffer(GL_FRAMEBUFFER, w->fbo);
	glFramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0,
			       GL_TEXTURE_2D, w->color, 0);
	glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT,
				  GL_RENDERBUFFER, w->depth);
	if (glCheckFramebufferStatus(GL_FRAMEBUFFER) !=
	    GL_FRAMEBUFFER_COMPLETE) {
		explain("GL cannot draw to a texture of %dx%d\n", w->width,
			w->height);
		return -ENODEV;
	}
	return window_error("making a target");
}

static bool by_software(const char *renderer)
{
	return !strncmp(renderer, "llvmpipe", 8) ||
	       !strncmp(renderer, "softpipe", 8) ||
	       !strncmp(renderer, "swrast", 6) ||
	       !strncmp(renderer, "Software", 8);
}

/**
 * window_open - open a card and make a GL context that draws to its screen
 * @w: the window
 * @card: path, or NULL for the first one of virtio_gpu; offscreen also "none", for
 *	GL without a device
 * @mode: WIDTHxHEIGHT, or NULL for the screen's own; offscreen it is any size
 * @offscreen: open a render node and draw to memory
 * @software: GL that this system's own processors do is all right, too
 *
 * Return: 0, or a negative errno with a message on standard error.
 */
int window_open(struct window *w, const char *card, const char *mode,
		bool offscreen, bool software)
{
	const char *renderer;
	GLint es = 0;
	int ret = 0;

	memset(w, 0, sizeof(*w));
	w->screen.fd = -1;
	w->fd = -1;
	w->offscreen = offscreen;
	w->egl = EGL_NO_DISPLAY;
	w->context = EGL_NO_CONTEXT;
	w->target = EGL_NO_SURFACE;
	if (offscreen) {
		w->width = OFFSCREEN_WIDTH;
		w->height = OFFSCREEN_HEIGHT;
		if (mode && (sscanf(mode, "%dx%d", &w->width, &w->height) != 2 ||
			     w->width < 1 || w->height < 1 ||
			     w->width > 8192 || w->height > 8192)) {
			explain("mode '%s' is not of the form 1024x768, up to 8192\n",
				mode);
			return -EINVAL;
		}
		if (!card || strcmp(card, "none")) {
			w->fd = open_render_node(card);
			if (w->fd < 0)
				return w->fd;
		}
	} else {
		ret = display_open(&w->screen, card, mode, 0);
		if (ret)
			return ret;
		w->fd = w->screen.fd;
		w->width = w->screen.mode.hdisplay;
		w->height = w->screen.mode.vdisplay;
	}

	ret = open_egl(w);
	if (!ret) {
		renderer = (const char *)glGetString(GL_RENDERER);
		glGetIntegerv(GL_MAJOR_VERSION, &es);
		/* OpenGL ES 2 does not know the question. */
		w->es = glGetError() == GL_NO_ERROR && es ? es : 2;
		if (!renderer) {
			explain("no GL: the context does not name its renderer\n");
			ret = -ENODEV;
		} else if (!software && by_software(renderer)) {
			explain("no GL by the GPU: this system's own processors would render (%s); has the GPU 3D (dmesg: features)? --software allows it\n",
				renderer);
			ret = -ENODEV;
		}
	}
	if (!ret && offscreen)
		ret = make_target(w);
	if (ret)
		window_close(w);
	return ret;
}

void window_close(struct window *w)
{
	if (w->egl != EGL_NO_DISPLAY) {
		eglMakeCurrent(w->egl, EGL_NO_SURFACE, EGL_NO_SURFACE,
			       EGL_NO_CONTEXT);
		if (w->target != EGL_NO_SURFACE)
			eglDestroySurface(w->egl, w->target);
		if (w->context != EGL_NO_CONTEXT)
			eglDestroyContext(w->egl, w->context);
	}
	if (w->shown)
		gbm_surface_release_buffer(w->surface, w->shown);
	if (w->surface)
		gbm_surface_destroy(w->surface);
	if (w->egl != EGL_NO_DISPLAY)
		eglTerminate(w->egl);
	if (w->gbm)
		gbm_device_destroy(w->gbm);
	if (w->screen.fd >= 0)
		display_close(&w->screen);
	else if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

/* The number of a buffer's framebuffer, which is made when it is first seen. */
static int framebuffer(struct window *w, struct gbm_bo *bo)
{
	uint32_t handles[4] = { 0 }, pitches[4] = { 0 }, offsets[4] = { 0 };
	uintptr_t known = (uintptr_t)gbm_bo_get_user_data(bo);
	struct display *d = &w->screen;
	int ret;

	if (known)
		return (int)known - 1;
	if (d->nr_buffers == MAX_BUFFERS) {
		explain("GL draws to more than %d buffers by turns\n",
			MAX_BUFFERS);
		return -ENOBUFS;
	}
	handles[0] = gbm_bo_get_handle(bo).u32;
	pitches[0] = gbm_bo_get_stride(bo);
	ret = drmModeAddFB2(d->fd, (uint32_t)w->width, (uint32_t)w->height,
			    DRM_FORMAT_XRGB8888, handles, pitches, offsets,
			    &d->buf[d->nr_buffers].fb, 0);
	if (ret) {
		explain("cannot make a framebuffer of what GL drew: %s\n",
			strerror(-ret));
		return ret;
	}
	gbm_bo_set_user_data(bo, (void *)(uintptr_t)(d->nr_buffers + 1), NULL);
	return d->nr_buffers++;
}

/**
 * window_show - show what was drawn
 * @w: the window
 *
 * Returns when the driver says that it is shown, offscreen when it is drawn.
 *
 * Return: 0, or a negative errno with a message on standard error.
 */
int window_show(struct window *w)
{
	struct gbm_bo *bo;
	int i, ret;

	if (w->offscreen) {
		glFinish();
		return window_error("drawing");
	}
	if (!eglSwapBuffers(w->egl, w->target)) {
		explain("cannot end a frame: %s\n", egl_reason());
		return -EIO;
	}
	bo = gbm_surface_lock_front_buffer(w->surface);
	if (!bo) {
		explain("no buffer with the drawn frame\n");
		return -EIO;
	}
	i = framebuffer(w, bo);
	if (i < 0) {
		gbm_surface_release_buffer(w->surface, bo);
		return i;
	}
	ret = w->shown ? display_flip(&w->screen, i) :
			 display_show(&w->screen, i);
	if (w->shown)
		gbm_surface_release_buffer(w->surface, w->shown);
	w->shown = bo;
	return ret;
}

/**
 * window_error - check for an error of GL
 * @what: name of the last action
 *
 * Return: 0, or -EIO with a message on standard error.
 */
int window_error(const char *what)
{
	GLenum error = glGetError();

	if (error == GL_NO_ERROR)
		return 0;
	explain("%s: GL error 0x%04x%s\n", what, error,
		error == GL_OUT_OF_MEMORY ? ", no memory" :
		error == 0x0507 ? ", the context is lost" : "");
	return -EIO;
}

static GLuint compile(GLenum kind, const char *source)
{
	GLuint shader = glCreateShader(kind);
	char log[512] = "no reason given";
	GLint ok = 0;

	glShaderSource(shader, 1, &source, NULL);
	glCompileShader(shader);
	glGetShaderiv(shader, GL_COMPILE_STATUS, &ok);
	if (ok)
		return shader;
	glGetShaderInfoLog(shader, sizeof(log), NULL, log);
	explain("GL does not take a shader: %s\n", log);
	glDeleteShader(shader);
	return 0;
}

/**
 * window_program - make a program of two shaders
 * @vertex: source; its attributes "position" and "value" become 0 and 1
 * @fragment: source
 *
 * Return: the program, or 0 with a message on standard error.
 */
GLuint window_program(const char *vertex, const char *fragment)
{
	GLuint program, v = compile(GL_VERTEX_SHADER, vertex);
	GLuint f = v ? compile(GL_FRAGMENT_SHADER, fragment) : 0;
	char log[512] = "no reason given";
	GLint ok = 0;

	if (!f)
		return 0;
	program = glCreateProgram();
	glAttachShader(program, v);
	glAttachShader(program, f);
	glBindAttribLocation(program, 0, "position");
	glBindAttribLocation(program, 1, "value");
	glLinkProgram(program);
	/* They live as long as the program. */
	glDeleteShader(v);
	glDeleteShader(f);
	glGetProgramiv(program, GL_LINK_STATUS, &ok);
	if (ok)
		return program;
	glGetProgramInfoLog(program, sizeof(log), NULL, log);
	explain("GL cannot link shaders: %s\n", log);
	glDeleteProgram(program);
	return 0;
}
