// SPDX-License-Identifier: GPL-2.0-only
/*
 * Screens as dma-bufs: a VMM imports them with EGL, as QEMU does, and sees what the display
 * region shows.  test_render_gpu.sh starts mgpu-renderd --dmabuf before.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <GLES2/gl2.h>
#include <GLES2/gl2ext.h>
#include <gbm.h>

#include <kselftest_harness.h>

#include "virgl.h"

#define RAM	(32u << 20)
#define WIDTH	320u
#define HEIGHT	200u
#define PIXELS	(WIDTH * HEIGHT)
#define NODE	"/dev/dri/renderD128"
#define CURSOR	64u

/* ---- the VMM's OpenGL ---- */

static struct {
	EGLDisplay dpy;
	GLuint from, to, texture, pixels;
	PFNEGLCREATEIMAGEKHRPROC create;
	PFNEGLDESTROYIMAGEKHRPROC destroy;
	PFNGLEGLIMAGETARGETTEXTURE2DOESPROC target;
	PFNGLBLITFRAMEBUFFERANGLEPROC blit;
} egl;

static const char *egl_open(void)
{
	static const EGLint attrs[] = { EGL_CONTEXT_CLIENT_VERSION, 3, EGL_NONE };
	struct gbm_device *gbm;
	EGLContext ctx;
	int fd;

	fd = open(NODE, O_RDWR | O_CLOEXEC);
	gbm = fd < 0 ? NULL : gbm_create_device(fd);
	if (!gbm)
		return "cannot open " NODE;
	egl.dpy = eglGetPlatformDisplay(EGL_PLATFORM_GBM_KHR, gbm, NULL);
	if (!eglInitialize(egl.dpy, NULL, NULL) || !eglBindAPI(EGL_OPENGL_ES_API))
		return "no EGL";
	ctx = eglCreateContext(egl.dpy, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, attrs);
	if (!ctx || !eglMakeCurrent(egl.dpy, EGL_NO_SURFACE, EGL_NO_SURFACE, ctx))
		return "no context";
	egl.create = (PFNEGLCREATEIMAGEKHRPROC)eglGetProcAddress("eglCreateImageKHR");
	egl.destroy = (PFNEGLDESTROYIMAGEKHRPROC)eglGetProcAddress("eglDestroyImageKHR");
	egl.target = (PFNGLEGLIMAGETARGETTEXTURE2DOESPROC)
		eglGetProcAddress("glEGLImageTargetTexture2DOES");
	egl.blit = (PFNGLBLITFRAMEBUFFERANGLEPROC)eglGetProcAddress("glBlitFramebuffer");
	glGenFramebuffers(1, &egl.from);
	glGenTextures(1, &egl.texture);
	glGenFramebuffers(1, &egl.to);
	glGenRenderbuffers(1, &egl.pixels);
	glBindRenderbuffer(GL_RENDERBUFFER, egl.pixels);
	glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8_OES, WIDTH, HEIGHT);
	glBindFramebuffer(GL_FRAMEBUFFER, egl.to);
	glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER,
				  egl.pixels);
	return glGetError() ? "no framebuffer" : NULL;
}

/* Import a dma-buf, draw it elsewhere, as QEMU's egl-headless does, and read that. */
static const char *egl_read(const struct vfio_device_gfx_plane_info *p, int fd, uint32_t *pixels)
{
	EGLint attrs[] = {
		EGL_WIDTH, (EGLint)p->width, EGL_HEIGHT, (EGLint)p->height,
		EGL_LINUX_DRM_FOURCC_EXT, (EGLint)p->drm_format,
		EGL_DMA_BUF_PLANE0_FD_EXT, fd,
		EGL_DMA_BUF_PLANE0_OFFSET_EXT, 0,
		EGL_DMA_BUF_PLANE0_PITCH_EXT, (EGLint)p->stride,
		EGL_DMA_BUF_PLANE0_MODIFIER_LO_EXT, (EGLint)p->drm_format_mod,
		EGL_DMA_BUF_PLANE0_MODIFIER_HI_EXT, (EGLint)(p->drm_format_mod >> 32),
		EGL_NONE,
	};
	const GLint w = (GLint)p->width, h = (GLint)p->height;
	const uint8_t *b = (const uint8_t *)pixels;
	EGLImageKHR image;
	uint32_t i;

	/* QEMU takes 0 for no modifier. */
	if (!p->drm_format_mod)
		attrs[12] = EGL_NONE;
	image = egl.create(egl.dpy, EGL_NO_CONTEXT, EGL_LINUX_DMA_BUF_EXT, NULL, attrs);
	if (!image)
		return "EGL does not import it";
	glBindTexture(GL_TEXTURE_2D, egl.texture);
	egl.target(GL_TEXTURE_2D, image);
	glBindFramebuffer(GL_READ_FRAMEBUFFER_ANGLE, egl.from);
	glFramebufferTexture2D(GL_READ_FRAMEBUFFER_ANGLE, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D,
			       egl.texture, 0);
	if (glCheckFramebufferStatus(GL_READ_FRAMEBUFFER_ANGLE) != GL_FRAMEBUFFER_COMPLETE)
		return "it cannot be read";
	glBindFramebuffer(GL_DRAW_FRAMEBUFFER_ANGLE, egl.to);
	egl.blit(0, 0, w, h, 0, 0, w, h, GL_COLOR_BUFFER_BIT, GL_NEAREST);
	glBindFramebuffer(GL_READ_FRAMEBUFFER_ANGLE, egl.to);
	glReadPixels(0, 0, w, h, GL_RGBA, GL_UNSIGNED_BYTE, pixels);
	egl.destroy(egl.dpy, image);
	for (i = 0; i < p->width * p->height; i++, b += 4)
		pixels[i] = (uint32_t)b[3] << 24 | (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 |
			b[2];
	return glGetError() ? "an error of OpenGL" : NULL;
}

/* ---- the plane ---- */

static unsigned int differs(const uint32_t *a, const uint32_t *b, uint32_t w, uint32_t h,
			    uint32_t stride)
{
	unsigned int x, y, n = 0;

	for (y = 0; y < h; y++)
		for (x = 0; x < w; x++)
			n += !!((a[y * w + x] ^ b[y * stride + x]) & 0xffffff);
	return n;
}

/*
 * Look until the dma-buf shows that: a look while the GPU still draws shows the picture
 * before.  @id: set to the dma-buf's number.
 */
static bool shows(struct vm *vm, const uint32_t *want, uint32_t w, uint32_t h, uint32_t stride,
		  uint32_t *id)
{
	static uint32_t got[PIXELS];
	uint64_t end = now_ms() + VMM_TIMEOUT;
	struct vfio_device_gfx_plane_info p;
	const char *why = "there is no plane";
	unsigned int n = 0;
	int fd;

	do {
		if (display_dmabuf(vm, PLANE_PRIMARY, &p))
			break;
		if (p.width == w && p.height == h && p.size) {
			fd = display_get_dmabuf(vm, p.dmabuf_id);
			why = fd < 0 ? "there is no file" : egl_read(&p, fd, got);
			if (fd >= 0)
				close(fd);
			if (!why) {
				n = differs(got, want, w, h, stride);
				*id = p.dmabuf_id;
				if (!n)
					return true;
			}
		}
		sleep_ms(10);
	} while (now_ms() < end);
	printf("# %s; %u of %u pixels differ (%08x, not %08x), %ux%u format %.4s modifier %llx stride %u\n",
	       why ? why : "it is imported", n, w * h, got[0], want[0], p.width, p.height,
	       (char *)&p.drm_format, (unsigned long long)p.drm_format_mod, p.stride);
	fflush(stdout);
	return false;
}

/* Return whether the region shows it, too. */
static bool region_shows(struct vm *vm, const uint32_t *want, uint32_t w, uint32_t h,
			 uint32_t stride)
{
	uint64_t end = now_ms() + VMM_TIMEOUT;
	struct vfio_device_gfx_plane_info p;
	size_t len;

	if (!display_map(vm, &len))
		return false;
	do {
		if (!display_plane(vm, &p) && p.width == w && p.height == h &&
		    !differs(vm->display, want, w, h, stride))
			return true;
		sleep_ms(10);
	} while (now_ms() < end);
	return false;
}

FIXTURE(dmabuf)
{
	struct gl g;
};

FIXTURE_SETUP(dmabuf)
{
	const char *why = egl_open();

	if (why)
		TH_LOG("%s", why);
	ASSERT_EQ(NULL, why);
	ASSERT_EQ(0, gl_new(&self->g, "medium-render", RAM));
}

FIXTURE_TEARDOWN(dmabuf)
{
	vm_close(&self->g.vm);
	EXPECT_EQ(0, gl_left(&self->g));
	gl_delete(&self->g);
}

/* A picture of the guest, on its screen; @seed chooses its pixels. */
static uint32_t *show(struct vm *vm, uint32_t id, uint32_t flags, uint32_t seed)
{
	struct gl_move m = {
		.ctx = 1, .res = id, .up = true, .box = { .w = WIDTH, .h = HEIGHT, .d = 1 },
	};
	uint32_t *p = gl_picture(vm, 1, id, WIDTH, HEIGHT, flags), i;

	for (i = 0; p && i < PIXELS; i++)
		p[i] = (i + seed) * 2654435761u;
	if (!p || gl_move(vm, &m) != OK ||
	    gpu_set_scanout(vm, id, gpu_rect(0, 0, WIDTH, HEIGHT)) != OK ||
	    gpu_flush(vm, id, gpu_rect(0, 0, WIDTH, HEIGHT)) != OK)
		return NULL;
	return p;
}

TEST_F(dmabuf, both_kinds_of_plane_are_there)
{
	struct vm *vm = &self->g.vm;
	struct vfio_device_gfx_plane_info p;

	EXPECT_EQ(0, display_probe(vm, VFIO_GFX_PLANE_TYPE_DMABUF));
	EXPECT_EQ(0, display_probe(vm, VFIO_GFX_PLANE_TYPE_REGION));
	EXPECT_EQ(-EINVAL, display_probe(vm, VFIO_GFX_PLANE_TYPE_DMABUF |
					     VFIO_GFX_PLANE_TYPE_REGION));
	/* The guest shows nothing. */
	ASSERT_EQ(0, display_dmabuf(vm, PLANE_PRIMARY, &p));
	EXPECT_EQ(0, p.size);
	ASSERT_EQ(0, display_dmabuf(vm, PLANE_CURSOR, &p));
	EXPECT_EQ(0, p.size);
	EXPECT_EQ(-ENOENT, display_get_dmabuf(vm, 0));
	EXPECT_EQ(-ENOENT, display_get_dmabuf(vm, 1));
}

/* Guests without OpenGL have rows from the bottom up, others from the top down. */
TEST_F_TIMEOUT(dmabuf, it_shows_the_screen, 90)
{
	static const uint32_t flags[] = { 0, GL_Y_0_TOP };
	struct vm *vm = &self->g.vm;
	uint32_t f, i, id, first = 0, *p;
	struct gl_move m = {
		.ctx = 1, .up = true, .box = { .w = WIDTH, .h = HEIGHT, .d = 1 },
	};

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	for (f = 0; f < ARRAY_LEN(flags); f++) {
		m.res = 1 + f;
		p = show(vm, m.res, flags[f], f);
		ASSERT_NE(NULL, p);
		ASSERT_TRUE(shows(vm, p, WIDTH, HEIGHT, WIDTH, &id));
		/* All pictures of this size are in one dma-buf. */
		first = first ? first : id;
		EXPECT_EQ(first, id);
		EXPECT_TRUE(region_shows(vm, p, WIDTH, HEIGHT, WIDTH));

		/* A part is drawn and flushed: the rest stays. */
		for (i = 0; i < PIXELS; i++)
			if (i / WIDTH >= 10 && i / WIDTH < 20 && i % WIDTH >= 30 && i % WIDTH < 50)
				p[i] = 0xff00ff00;
		ASSERT_EQ(OK, gl_move(vm, &m));
		ASSERT_EQ(OK, gpu_flush(vm, m.res, gpu_rect(30, 10, 20, 10)));
		/* Two viewers in turn: each sees all of it. */
		EXPECT_TRUE(region_shows(vm, p, WIDTH, HEIGHT, WIDTH));
		EXPECT_TRUE(shows(vm, p, WIDTH, HEIGHT, WIDTH, &id));
		EXPECT_TRUE(region_shows(vm, p, WIDTH, HEIGHT, WIDTH));
		EXPECT_EQ(first, id);
	}
	/* A part of it, by its own coordinates, is another dma-buf. */
	ASSERT_EQ(OK, gpu_set_scanout(vm, 2, gpu_rect(8, 4, 64, 32)));
	ASSERT_EQ(OK, gpu_flush(vm, 2, gpu_rect(0, 0, WIDTH, HEIGHT)));
	EXPECT_TRUE(shows(vm, p + 4 * WIDTH + 8, 64, 32, WIDTH, &id));
	EXPECT_NE(first, id);
	EXPECT_EQ(-ENOENT, display_get_dmabuf(vm, first));
}

/* A file that the VMM has stays, and shows later pictures. */
TEST_F(dmabuf, a_file_shows_later_pictures)
{
	static uint32_t got[PIXELS];
	struct vm *vm = &self->g.vm;
	struct vfio_device_gfx_plane_info plane;
	uint32_t *p, id;
	int fd;

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	p = show(vm, 1, 0, 3);
	ASSERT_NE(NULL, p);
	ASSERT_TRUE(shows(vm, p, WIDTH, HEIGHT, WIDTH, &id));
	fd = display_get_dmabuf(vm, id);
	ASSERT_LE(0, fd);
	p = show(vm, 2, 0, 4);
	ASSERT_NE(NULL, p);
	ASSERT_TRUE(shows(vm, p, WIDTH, HEIGHT, WIDTH, &id));
	ASSERT_EQ(0, display_dmabuf(vm, PLANE_PRIMARY, &plane));
	ASSERT_EQ(NULL, egl_read(&plane, fd, got));
	EXPECT_EQ(0, differs(got, p, WIDTH, HEIGHT, WIDTH));
	/* After a reset nothing is shown; the VMM's file stays valid. */
	ASSERT_EQ(0, gl_restart(&self->g));
	ASSERT_EQ(0, display_dmabuf(vm, PLANE_PRIMARY, &plane));
	EXPECT_EQ(0, plane.size);
	EXPECT_EQ(-ENOENT, display_get_dmabuf(vm, id));
	EXPECT_LE(0, fcntl(fd, F_GETFD));
	close(fd);
}

TEST_F(dmabuf, the_cursor_is_a_plane)
{
	static uint32_t got[CURSOR * CURSOR];
	struct vm *vm = &self->g.vm;
	struct vfio_device_gfx_plane_info p;
	uint32_t *cursor, *screen, i, id, round;
	int fd;

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	screen = show(vm, 1, 0, 5);
	ASSERT_NE(NULL, screen);
	ASSERT_TRUE(shows(vm, screen, WIDTH, HEIGHT, WIDTH, &id));
	cursor = vm_alloc(vm, CURSOR * CURSOR * 4, 4096);
	ASSERT_EQ(OK, gpu_create_2d(vm, 9, VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM, CURSOR, CURSOR));
	ASSERT_EQ(OK, gpu_attach(vm, 9, cursor, CURSOR * CURSOR * 4));
	for (round = 0; round < 2; round++) {
		for (i = 0; i < CURSOR * CURSOR; i++)
			cursor[i] = i % CURSOR < 8 ? 0xff000000 | (i * 77777 + round) : 0;
		ASSERT_EQ(OK, gpu_transfer(vm, 9, gpu_rect(0, 0, CURSOR, CURSOR), 0));
		ASSERT_EQ(0, gpu_cursor(vm, 9, 40, 20, 3, 4));
		ASSERT_EQ(0, display_dmabuf(vm, PLANE_CURSOR, &p));
		EXPECT_EQ(40, p.x_pos);
		EXPECT_EQ(20, p.y_pos);
		EXPECT_EQ(3, p.x_hot);
		EXPECT_EQ(4, p.y_hot);
		ASSERT_EQ(CURSOR, p.width);
		ASSERT_EQ(CURSOR, p.height);
		fd = display_get_dmabuf(vm, p.dmabuf_id);
		ASSERT_LE(0, fd);
		ASSERT_EQ(NULL, egl_read(&p, fd, got));
		close(fd);
		EXPECT_EQ(0, memcmp(got, cursor, sizeof(got)));
	}
	ASSERT_EQ(0, gpu_cursor_move(vm, 41, 21));
	ASSERT_EQ(0, display_dmabuf(vm, PLANE_CURSOR, &p));
	EXPECT_EQ(41, p.x_pos);
	/* The picture does not have it. */
	EXPECT_TRUE(shows(vm, screen, WIDTH, HEIGHT, WIDTH, &id));
	ASSERT_EQ(0, gpu_cursor(vm, 0, 0, 0, 0, 0));
	ASSERT_EQ(0, display_dmabuf(vm, PLANE_CURSOR, &p));
	EXPECT_EQ(0, p.size);
}

TEST_HARNESS_MAIN
