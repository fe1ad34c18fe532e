// SPDX-License-Identifier: GPL-2.0-only
/* virglrenderer on Mesa's llvmpipe, as mgpu-renderd uses it. */
#include <linux/virtio_gpu.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "renderer.h"
#include "stream.h"

#define OK	VIRTIO_GPU_RESP_OK_NODATA
#define PAGE	4096u	/* where the picture's memory begins: 0 is for commands without */

struct renderer renderer;

const char renderer_shader[] =
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

static int guest_memory;
static uint32_t picture_len, picture_width, picture_height;
static uint32_t next_seq, answer;

static void *map(void *arg, uint64_t offset, uint64_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, guest_memory,
		       (off_t)offset);

	(void)arg;
	return p == MAP_FAILED ? NULL : p;
}

static void done(void *arg, uint32_t seq, uint32_t type)
{
	(void)arg;
	(void)seq;
	answer = type;
}

static const struct virgl_ops ops = { .map = map, .done = done };

static uint32_t execute(const void *buf, size_t len, uint64_t mem)
{
	const struct mgpu_user_cmd cmd = {
		.seq = next_seq++, .flags = mem ? 0 : MGPU_USER_CMD_FENCED,
		.len = (uint32_t)len, .mem = mem, .mem_len = mem ? picture_len : 0,
	};

	answer = 0;
	return virgl_execute(renderer.v, &cmd, buf);
}

uint32_t renderer_send(const void *cmd, size_t len)
{
	return execute(cmd, len, 0);
}

uint32_t renderer_wait(void)
{
	while (virgl_busy(renderer.v)) {
		struct pollfd fd = { .fd = virgl_fd(renderer.v), .events = POLLIN };

		poll(&fd, 1, 1);
		virgl_poll(renderer.v);
	}
	return answer;
}

uint32_t renderer_run(const void *cmd, size_t len)
{
	uint32_t type = renderer_send(cmd, len), later = renderer_wait();

	return type ? type : later;
}

uint32_t renderer_fetch(void)
{
	const struct virtio_gpu_transfer_host_3d fetch = {
		.hdr = { .type = VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D, .ctx_id = RENDERER_CTX },
		.resource_id = RENDERER_PICTURE,
		.box = { .w = picture_width, .h = picture_height, .d = 1 },
	};

	return renderer_run(&fetch, sizeof(fetch));
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
		.hdr = { .type = VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE, .ctx_id = RENDERER_CTX },
		.resource_id = id,
	};
	uint32_t ret = renderer_run(&c, sizeof(c));

	return ret == OK ? renderer_run(&a, sizeof(a)) : ret;
}

bool renderer_start(uint32_t width, uint32_t height)
{
	const struct virtio_gpu_ctx_create ctx = {
		.hdr = { .type = VIRTIO_GPU_CMD_CTX_CREATE, .ctx_id = RENDERER_CTX }, .nlen = 1,
		.debug_name = "t",
	};
	const struct {
		struct virtio_gpu_resource_attach_backing c;
		struct virtio_gpu_mem_entry e;
	} backing = {
		.c.hdr.type = VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
		.c.resource_id = RENDERER_PICTURE, .c.nr_entries = 1,
		.e = { .length = width * height * 4 },
	};

	picture_width = width;
	picture_height = height;
	picture_len = width * height * 4;
	guest_memory = memfd_create("guest", MFD_CLOEXEC);
	if (guest_memory < 0 || ftruncate(guest_memory, (off_t)(PAGE + picture_len)))
		return false;
	renderer.mem = map(NULL, PAGE, picture_len);
	return renderer.mem && !virgl_new(&renderer.v, -1, &ops, NULL) &&
	       renderer_run(&ctx, sizeof(ctx)) == OK &&
	       create(RENDERER_PICTURE, GL_2D, GL_B8G8R8A8, GL_TARGET | GL_SAMPLED, width,
		      height) == OK &&
	       create(RENDERER_VERTICES, GL_BUFFER, GL_R8, GL_VERTICES, sizeof(gl_corners),
		      1) == OK &&
	       execute(&backing, sizeof(backing), PAGE) == OK;
}
