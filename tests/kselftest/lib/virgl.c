// SPDX-License-Identifier: GPL-2.0-only
/* A guest's OpenGL: commands and streams. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "virgl.h"

#define PAGE		4096u

/* Commands of a stream. */
#define CREATE_OBJECT	1
#define BIND_OBJECT	2
#define SET_VIEWPORT	4
#define SET_FRAMEBUFFER	5
#define SET_VERTEX_BUFFERS 6
#define CLEAR		7
#define DRAW_VBO	8
#define INLINE_WRITE	9
#define SET_CONSTANTS	12
#define BLIT		16
#define COPY_REGION	17
#define BIND_SHADER	31
#define OBJECT_BLEND	1
#define OBJECT_RASTERIZER 2
#define OBJECT_DEPTH	3
#define OBJECT_SHADER	4
#define OBJECT_VERTICES	5
#define OBJECT_SURFACE	8
#define CLEAR_COLOR0	4

#define MAX_TOKENS	300u	/* of a shader's text, as the host parses it */

void gl_need_gpu(void)
{
	const char *gpu = getenv("MGPU_GPU");

	if (!gpu || !*gpu) {
		printf("TAP version 13\n1..0 # SKIP there is no GPU: tools/vm/run --gpu virtio\n");
		exit(4);
	}
	setenv("MGPU_PARENT", gpu, 1);
}

void gl_virtio_name(char *name, size_t len)
{
	char path[256];
	struct dirent *e;
	DIR *d;

	name[0] = 0;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s", vmm_parent());
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (!strncmp(e->d_name, "virtio", 6))
			snprintf(name, len, "%.*s", (int)len - 1, e->d_name);
	if (d)
		closedir(d);
}

int gl_new(struct gl *g, const char *type, size_t ram)
{
	struct nl_vgpu v;
	int ret;

	memset(g, 0, sizeof(*g));
	ret = nl_open(&g->nl);
	if (ret)
		return ret;
	ret = vm_new(&g->vm, type, ram);
	if (!ret)
		ret = vm_start_with(&g->vm, GL_FEATURES);
	if (!ret)
		ret = nl_vgpu_get(&g->nl, g->vm.uuid, &v);
	if (ret)
		return ret;
	g->vgpu = v.id;
	g->stream = vm_alloc(&g->vm, GL_STREAM_MAX + PAGE, PAGE);
	return g->stream ? 0 : -ENOMEM;
}

void gl_delete(struct gl *g)
{
	vm_delete(&g->vm);
	nl_close(&g->nl);
}

int gl_restart(struct gl *g)
{
	return vm_start_with(&g->vm, GL_FEATURES);
}

uint64_t gl_left(struct gl *g)
{
	struct nl_vgpu v;

	if (nl_vgpu_get(&g->nl, g->vm.uuid, &v))
		return ~0ull;
	return v.mem_used + v.pinned;
}

/* ---- contexts and resources ---- */

int gl_ctx(struct vm *vm, uint32_t id)
{
	struct virtio_gpu_ctx_create c = { .nlen = 4 };

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_CTX_CREATE);
	c.hdr.ctx_id = id;
	memcpy(c.debug_name, "test", 4);
	return gpu_call(vm, &c, sizeof(c), NULL, 0);
}

int gl_ctx_end(struct vm *vm, uint32_t id)
{
	struct virtio_gpu_ctx_destroy c;

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_CTX_DESTROY);
	c.hdr.ctx_id = id;
	return gpu_call(vm, &c, sizeof(c), NULL, 0);
}

static int ctx_res(struct vm *vm, uint32_t ctx, uint32_t res, uint32_t type)
{
	struct virtio_gpu_ctx_resource c = { .resource_id = res };

	gpu_hdr(&c.hdr, type);
	c.hdr.ctx_id = ctx;
	return gpu_call(vm, &c, sizeof(c), NULL, 0);
}

int gl_ctx_attach(struct vm *vm, uint32_t ctx, uint32_t res)
{
	return ctx_res(vm, ctx, res, VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE);
}

int gl_ctx_detach(struct vm *vm, uint32_t ctx, uint32_t res)
{
	return ctx_res(vm, ctx, res, VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE);
}

int gl_create(struct vm *vm, const struct virtio_gpu_resource_create_3d *c)
{
	struct virtio_gpu_resource_create_3d cmd = *c;

	gpu_hdr(&cmd.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_3D);
	return gpu_call(vm, &cmd, sizeof(cmd), NULL, 0);
}

int gl_texture(struct vm *vm, uint32_t id, uint32_t w, uint32_t h,
	       uint32_t flags)
{
	const struct virtio_gpu_resource_create_3d c = {
		.resource_id = id, .target = GL_2D, .format = GL_B8G8R8A8,
		.bind = GL_TARGET | GL_SAMPLED, .width = w, .height = h,
		.depth = 1, .array_size = 1, .flags = flags,
	};

	return gl_create(vm, &c);
}

uint32_t *gl_picture(struct vm *vm, uint32_t ctx, uint32_t id, uint32_t w,
		     uint32_t h, uint32_t flags)
{
	size_t len = (size_t)w * h * 4;
	uint32_t *p = vm_alloc(vm, len, PAGE);

	if (!p || gl_texture(vm, id, w, h, flags) != OK ||
	    gpu_attach(vm, id, p, len) != OK ||
	    gl_ctx_attach(vm, ctx, id) != OK)
		return NULL;
	return p;
}

/* A command whose rest is in guest memory already. */
static int send_with(struct vm *vm, const void *cmd, size_t len, const void *p,
		     uint32_t more)
{
	struct vmm_vq *vq = &vm->vq[VMM_CONTROL];
	struct vmm_seg segs[3] = {
		{ 0, (uint32_t)len, false },
		{ more ? vm_addr(vm, p) : 0, more, false },
		{ 0, sizeof(struct virtio_gpu_ctrl_hdr), true },
	};
	int head, ret;

	if (!more)
		segs[1] = segs[2];
	head = vq_add(vm, VMM_CONTROL, segs, more ? 3 : 2, false);
	if (head < 0)
		return head;
	memcpy(vq->req + (size_t)head * PAGE, cmd, len);
	vq->desc[head].addr = vm_addr(vm, vq->req + (size_t)head * PAGE);
	ret = vq->desc[head].next;
	if (more)
		ret = vq->desc[ret].next;
	memset(vq->resp + (size_t)head * PAGE, 0xee, PAGE);
	vq->desc[ret].addr = vm_addr(vm, vq->resp + (size_t)head * PAGE);
	vq_publish(vm, VMM_CONTROL, (uint16_t)head);
	/* Published before the flag is read (VIRTIO 1.2, section 2.7.10). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	ret = vq->used->flags & VRING_USED_F_NO_NOTIFY ?
		0 : vq_kick(vm, VMM_CONTROL);
	return ret ? ret : head;
}

int gl_result(struct vm *vm, int head, struct virtio_gpu_ctrl_hdr *hdr)
{
	if (head < 0)
		return head;
	return gpu_result(vm, VMM_CONTROL, (uint16_t)head, hdr,
			  hdr ? sizeof(*hdr) : 0, VMM_TIMEOUT);
}

int gl_attach_entries(struct vm *vm, uint32_t id, void *p, uint32_t n)
{
	struct virtio_gpu_resource_attach_backing c = {
		.resource_id = id, .nr_entries = n,
	};

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING);
	return gl_result(vm, send_with(vm, &c, sizeof(c), p,
				       n * sizeof(struct virtio_gpu_mem_entry)),
			 NULL);
}

static void set_fence(struct virtio_gpu_ctrl_hdr *hdr, uint64_t fence)
{
	if (!fence)
		return;
	hdr->flags = VIRTIO_GPU_FLAG_FENCE;
	hdr->fence_id = fence;
}

int gl_move_send(struct vm *vm, const struct gl_move *m, uint64_t fence)
{
	struct virtio_gpu_transfer_host_3d c = {
		.box = m->box, .offset = m->offset, .resource_id = m->res,
		.level = m->level, .stride = m->stride,
		.layer_stride = m->layer_stride,
	};

	gpu_hdr(&c.hdr, m->up ? VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D :
				VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D);
	c.hdr.ctx_id = m->ctx;
	set_fence(&c.hdr, fence);
	return send_with(vm, &c, sizeof(c), NULL, 0);
}

int gl_move(struct vm *vm, const struct gl_move *m)
{
	return gl_result(vm, gl_move_send(vm, m, ++vm->next_fence), NULL);
}

int gl_fetch(struct vm *vm, uint32_t ctx, uint32_t id, uint32_t w, uint32_t h)
{
	const struct gl_move m = {
		.ctx = ctx, .res = id, .box = { .w = w, .h = h, .d = 1 },
	};

	return gl_move(vm, &m);
}

/* ---- streams ---- */

void gl_begin(struct gl_stream *s)
{
	s->n = 0;
}

void gl_word(struct gl_stream *s, uint32_t w)
{
	if (s->n == ARRAY_LEN(s->w))
		abort();
	s->w[s->n++] = w;
}

void gl_head(struct gl_stream *s, uint32_t cmd, uint32_t object, uint32_t len)
{
	gl_word(s, len << 16 | object << 8 | cmd);
}

void gl_surface(struct gl_stream *s, uint32_t handle, uint32_t res)
{
	gl_head(s, CREATE_OBJECT, OBJECT_SURFACE, 5);
	gl_word(s, handle);
	gl_word(s, res);
	gl_word(s, GL_B8G8R8A8);
	gl_word(s, 0);		/* level */
	gl_word(s, 0);		/* layers */
}

void gl_draw_to(struct gl_stream *s, uint32_t surface)
{
	gl_head(s, SET_FRAMEBUFFER, 0, 3);
	gl_word(s, 1);		/* colour buffers */
	gl_word(s, 0);		/* no depth */
	gl_word(s, surface);
}

static void gl_float(struct gl_stream *s, float f)
{
	uint32_t w;

	memcpy(&w, &f, sizeof(w));
	gl_word(s, w);
}

void gl_clear(struct gl_stream *s, float r, float g, float b, float a)
{
	gl_head(s, CLEAR, 0, 8);
	gl_word(s, CLEAR_COLOR0);
	gl_float(s, r);
	gl_float(s, g);
	gl_float(s, b);
	gl_float(s, a);
	gl_word(s, 0);		/* depth, a double */
	gl_word(s, 0);
	gl_word(s, 0);		/* stencil */
}

void gl_blit(struct gl_stream *s, uint32_t dst, uint32_t dw, uint32_t dh,
	     uint32_t src, uint32_t sw, uint32_t sh)
{
	const uint32_t words[] = {
		0xf | 1 << 8,	/* RGBA, linear */
		0, 0,
		dst, 0, GL_B8G8R8A8, 0, 0, 0, dw, dh, 1,
		src, 0, GL_B8G8R8A8, 0, 0, 0, sw, sh, 1,
	};
	unsigned int i;

	gl_head(s, BLIT, 0, ARRAY_LEN(words));
	for (i = 0; i < ARRAY_LEN(words); i++)
		gl_word(s, words[i]);
}

void gl_copy(struct gl_stream *s, uint32_t dst, uint32_t src, uint32_t w,
	     uint32_t h)
{
	const uint32_t words[] = {
		dst, 0, 0, 0, 0, src, 0, 0, 0, 0, w, h, 1,
	};
	unsigned int i;

	gl_head(s, COPY_REGION, 0, ARRAY_LEN(words));
	for (i = 0; i < ARRAY_LEN(words); i++)
		gl_word(s, words[i]);
}

/* Put a text and its zero, padded to a word. */
static void gl_text(struct gl_stream *s, const char *text)
{
	size_t len = strlen(text) + 1, n;
	uint32_t w;

	for (; len; text += n, len -= n) {
		n = len < sizeof(w) ? len : sizeof(w);
		w = 0;
		memcpy(&w, text, n);
		gl_word(s, w);
	}
}

void gl_shader(struct gl_stream *s, uint32_t handle, uint32_t stage,
	       const char *tgsi)
{
	uint32_t len = (uint32_t)strlen(tgsi) + 1;

	gl_head(s, CREATE_OBJECT, OBJECT_SHADER, 5 + (len + 3) / 4);
	gl_word(s, handle);
	gl_word(s, stage);
	gl_word(s, len);
	gl_word(s, MAX_TOKENS);
	gl_word(s, 0);		/* stream outputs */
	gl_text(s, tgsi);
	gl_head(s, BIND_SHADER, 0, 2);
	gl_word(s, handle);
	gl_word(s, stage);
}

void gl_constant(struct gl_stream *s, const uint32_t value[4])
{
	unsigned int i;

	gl_head(s, SET_CONSTANTS, 0, 6);
	gl_word(s, GL_FRAGMENT);
	gl_word(s, 0);
	for (i = 0; i < 4; i++)
		gl_word(s, value[i]);
}

/* Create an object of @n words behind the handle, and bind it. */
static void gl_object(struct gl_stream *s, uint32_t type, uint32_t handle,
		      const uint32_t *words, uint32_t n)
{
	uint32_t i;

	gl_head(s, CREATE_OBJECT, type, 1 + n);
	gl_word(s, handle);
	for (i = 0; i < n; i++)
		gl_word(s, words[i]);
	gl_head(s, BIND_OBJECT, type, 1);
	gl_word(s, handle);
}

/* A triangle that reaches beyond the picture's right and upper edge. */
static const float corners[3][4] = {
	{ -1, -1, 0, 1 }, { 3, -1, 0, 1 }, { -1, 3, 0, 1 },
};

int gl_vertices(struct vm *vm, uint32_t ctx, uint32_t id)
{
	const struct virtio_gpu_resource_create_3d c = {
		.resource_id = id, .target = GL_BUFFER, .format = GL_R8,
		.bind = GL_VERTICES, .width = sizeof(corners), .height = 1,
		.depth = 1, .array_size = 1,
	};
	int ret = gl_create(vm, &c);

	return ret == OK ? gl_ctx_attach(vm, ctx, id) : ret;
}

void gl_pipeline(struct gl_stream *s, uint32_t vertices, uint32_t w, uint32_t h)
{
	/* Source and destination times one, added; all four components. */
	const uint32_t blend[10] = {
		[2] = 1 | 1 << 4 | 1 << 9 | 1 << 17 | 1 << 22 | 0xf << 27,
	};
	/* Centres of pixels are at halves. */
	const uint32_t rasterizer[8] = { 1u << 29 }, depth[4] = { 0 };
	const uint32_t elements[4] = { 0, 0, 0, GL_RGBA32F };
	const float half[2] = { (float)w / 2, (float)h / 2 };
	unsigned int i;

	gl_object(s, OBJECT_BLEND, 1, blend, ARRAY_LEN(blend));
	gl_object(s, OBJECT_RASTERIZER, 2, rasterizer, ARRAY_LEN(rasterizer));
	gl_object(s, OBJECT_DEPTH, 3, depth, ARRAY_LEN(depth));
	gl_object(s, OBJECT_VERTICES, 4, elements, ARRAY_LEN(elements));
	gl_shader(s, 5, GL_VERTEX,
		  "VERT\n"
		  "DCL IN[0]\n"
		  "DCL OUT[0], POSITION\n"
		  "0: MOV OUT[0], IN[0]\n"
		  "1: END\n");

	gl_head(s, SET_VIEWPORT, 0, 7);
	gl_word(s, 0);
	/* Scale, then translation. */
	for (i = 0; i < 2; i++) {
		gl_float(s, half[0]);
		gl_float(s, half[1]);
		gl_float(s, 0.5f);
	}

	gl_head(s, INLINE_WRITE, 0, 11 + sizeof(corners) / 4);
	gl_word(s, vertices);
	for (i = 0; i < 7; i++)
		gl_word(s, 0);	/* level, usage, strides, x, y, z */
	gl_word(s, sizeof(corners));
	gl_word(s, 1);
	gl_word(s, 1);
	for (i = 0; i < sizeof(corners) / 4; i++)
		gl_float(s, corners[i / 4][i % 4]);
	gl_head(s, SET_VERTEX_BUFFERS, 0, 3);
	gl_word(s, sizeof(corners[0]));
	gl_word(s, 0);
	gl_word(s, vertices);
}

void gl_triangle(struct gl_stream *s)
{
	const uint32_t words[12] = {
		[1] = ARRAY_LEN(corners),	/* vertices */
		[2] = 4,			/* triangles */
		[4] = 1,			/* instances */
		[10] = ARRAY_LEN(corners) - 1,	/* largest index */
	};
	unsigned int i;

	gl_head(s, DRAW_VBO, 0, ARRAY_LEN(words));
	for (i = 0; i < ARRAY_LEN(words); i++)
		gl_word(s, words[i]);
}

int gl_send_bytes(struct vm *vm, uint32_t ctx, uint64_t fence, const void *p,
		  uint32_t len, uint32_t told)
{
	struct virtio_gpu_cmd_submit c = { .size = told };

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_SUBMIT_3D);
	c.hdr.ctx_id = ctx;
	set_fence(&c.hdr, fence);
	return send_with(vm, &c, sizeof(c), p, len);
}

int gl_send(struct vm *vm, uint32_t ctx, uint64_t fence,
	    const struct gl_stream *s)
{
	uint32_t len = s->n * 4;
	void *p = vm_alloc(vm, len, 4);

	if (!p)
		return -ENOMEM;
	memcpy(p, s->w, len);
	return gl_send_bytes(vm, ctx, fence, p, len, len);
}

int gl_run(struct vm *vm, uint32_t ctx, const struct gl_stream *s)
{
	return gl_result(vm, gl_send(vm, ctx, ++vm->next_fence, s), NULL);
}

int gl_fill(struct vm *vm, uint32_t ctx, uint32_t res, uint32_t argb)
{
	struct gl_stream s;

	gl_begin(&s);
	/* Handles are the context's own; one for each resource will do. */
	gl_surface(&s, 100 + res, res);
	gl_draw_to(&s, 100 + res);
	gl_clear(&s, (float)(argb >> 16 & 0xff) / 255,
		 (float)(argb >> 8 & 0xff) / 255, (float)(argb & 0xff) / 255,
		 (float)(argb >> 24) / 255);
	/* Gone at once, so that the same can be done again. */
	gl_head(&s, SET_FRAMEBUFFER, 0, 2);
	gl_word(&s, 0);
	gl_word(&s, 0);
	gl_head(&s, 3, OBJECT_SURFACE, 1);
	gl_word(&s, 100 + res);
	return gl_run(vm, ctx, &s);
}
