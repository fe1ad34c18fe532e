// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pictures that virglrenderer draws on Mesa's llvmpipe, from streams in slices and whole:
 * they are the same, byte by byte.  Each renderer runs in a process of its own.
 */
#include <linux/virtio_gpu.h>

#include "tap.h"

#include "stream.h"
#include "virgl.h"
#include "virgl/slice.h"

#define WIDTH		640u
#define HEIGHT		360u
#define PICTURE		(WIDTH * HEIGHT * 4)
#define OK		VIRTIO_GPU_RESP_OK_NODATA
#define MS		1000000u

static struct {
	struct virgl *v;
	int fd;			/* guest memory: a page, and a picture */
	uint32_t seq;
	uint32_t answer;
} host;

static void *map(void *arg, uint64_t offset, uint64_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, host.fd, (off_t)offset);

	(void)arg;
	return p == MAP_FAILED ? NULL : p;
}

static void done(void *arg, uint32_t seq, uint32_t type)
{
	(void)arg;
	(void)seq;
	host.answer = type;
}

static uint32_t run(const void *buf, size_t len, uint64_t mem)
{
	const struct mgpu_user_cmd cmd = {
		.seq = host.seq++, .flags = mem ? 0 : MGPU_USER_CMD_FENCED,
		.len = (uint32_t)len, .mem = mem, .mem_len = mem ? PICTURE : 0,
	};
	uint32_t type;

	host.answer = 0;
	type = virgl_execute(host.v, &cmd, buf);
	while (virgl_busy(host.v)) {
		struct pollfd fd = { .fd = virgl_fd(host.v), .events = POLLIN };

		poll(&fd, 1, 1);
		virgl_poll(host.v);
	}
	return type ? type : host.answer;
}

static uint32_t create(uint32_t id, uint32_t target, uint32_t format, uint32_t bind,
		       uint32_t width, uint32_t height)
{
	const struct virtio_gpu_resource_create_3d c = {
		.hdr.type = VIRTIO_GPU_CMD_RESOURCE_CREATE_3D, .resource_id = id,
		.target = target, .format = format, .bind = bind, .width = width,
		.height = height, .depth = 1, .array_size = 1,
	};
	const struct virtio_gpu_ctx_resource a = {
		.hdr = { .type = VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, .ctx_id = 1 },
		.resource_id = id,
	};
	uint32_t ret = run(&c, sizeof(c), 0);

	return ret == OK ? run(&a, sizeof(a), 0) : ret;
}

/* A context 1 with a picture 1, which has memory, and a buffer 2. */
static bool start(void)
{
	const struct virtio_gpu_ctx_create ctx = {
		.hdr = { .type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = 1 }, .nlen = 1,
		.debug_name = "t",
	};
	const struct {
		struct virtio_gpu_resource_attach_backing c;
		struct virtio_gpu_mem_entry e;
	} backing = {
		.c.hdr.type = VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
		.c.resource_id = 1, .c.nr_entries = 1, .e = { .length = PICTURE },
	};

	host.fd = memfd_create("guest", MFD_CLOEXEC);
	return host.fd >= 0 && !ftruncate(host.fd, 4096 + PICTURE) &&
	       !virgl_new(&host.v, -1, map, done, NULL) &&
	       run(&ctx, sizeof(ctx), 0) == OK &&
	       create(1, GL_2D, GL_B8G8R8A8, GL_TARGET | GL_SAMPLED, WIDTH, HEIGHT) == OK &&
	       create(2, GL_BUFFER, GL_R8, GL_VERTICES, sizeof(gl_corners), 1) == OK &&
	       run(&backing, sizeof(backing), 4096) == OK;
}

/* Each pixel has a colour of its own, which depends on its place and on its neighbours'. */
static const char text[] =
	"FRAG\n"
	"PROPERTY FS_COLOR0_WRITES_ALL_CBUFS 1\n"
	"DCL IN[0], POSITION, LINEAR\n"
	"DCL OUT[0], COLOR\n"
	"DCL TEMP[0..3]\n"
	"IMM[0] FLT32 {0.001, 0.002, 0.3, 0.25}\n"
	"IMM[1] INT32 {0, 1, 32, 0}\n"
	"0: MOV TEMP[0].x, IMM[1].xxxx\n"
	"1: MUL TEMP[2], IN[0].xyxy, IMM[0].xxyy\n"
	"2: BGNLOOP :0\n"
	"3: ISGE TEMP[1].x, TEMP[0].xxxx, IMM[1].zzzz\n"
	"4: UIF TEMP[1].xxxx :0\n"
	"5: BRK\n"
	"6: ENDIF\n"
	"7: MAD TEMP[2], TEMP[2], TEMP[2].yxwz, IMM[0].zzww\n"
	"8: FRC TEMP[2], TEMP[2]\n"
	"9: UADD TEMP[0].x, TEMP[0].xxxx, IMM[1].yyyy\n"
	"10: ENDLOOP :0\n"
	"11: DDX TEMP[3], TEMP[2]\n"
	"12: MAD OUT[0], TEMP[3], IMM[0].zzzz, TEMP[2]\n"
	"13: END\n";

static void put_frame(struct gl_stream *s, uint32_t frame)
{
	gl_begin(s);
	if (!frame) {
		gl_surface(s, 10, 1);
		gl_draw_to(s, 10);
		gl_pipeline(s, 2, WIDTH, HEIGHT);
		gl_shader(s, 11, GL_FRAGMENT, text);
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
		.c.hdr = { .type = VIRTIO_GPU_CMD_SUBMIT_3D, .ctx_id = 1 },
	};
	uint32_t words = mgpu_slice_words(slicer, i);

	if (words > 1100)
		return false;
	c.c.size = words * 4;
	mgpu_slice_write(slicer, s->w, i, c.w);
	return run(&c, sizeof(c.c) + words * 4, 0) == OK;
}

/* In a process of its own: draw frames, and keep the last.  2 without a renderer. */
static int draw(uint32_t frames, uint32_t slice_ns, uint32_t bands, uint8_t *picture)
{
	const struct virtio_gpu_transfer_host_3d fetch = {
		.hdr = { .type = VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D, .ctx_id = 1 },
		.resource_id = 1, .box = { .w = WIDTH, .h = HEIGHT, .d = 1 },
	};
	static struct mgpu_slicer slicer;
	uint32_t frame, nr, i, most = 0;
	struct gl_stream s;

	if (!start())
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
			mgpu_slice_learn(&slicer, &slicer.slices[i].load, 10 * MS);
		}
		mgpu_slice_commit(&slicer);
	}
	if (run(&fetch, sizeof(fetch), 0) != OK ||
	    pread(host.fd, picture, PICTURE, 4096) != PICTURE)
		return 1;
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
