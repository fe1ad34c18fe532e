// SPDX-License-Identifier: GPL-2.0-only
/* A guest's OpenGL: commands and streams. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "virgl.h"

#define PAGE		4096u

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
	return gl_ctx_of(vm, id, 0);
}

int gl_ctx_of(struct vm *vm, uint32_t id, uint32_t capset)
{
	struct virtio_gpu_ctx_create c = { .nlen = 4, .context_init = capset };

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

int gl_blob(struct vm *vm, uint32_t ctx, uint32_t id, size_t size)
{
	return gl_blob_of(vm, ctx, id, id, size);
}

int gl_blob_of(struct vm *vm, uint32_t ctx, uint32_t id, uint64_t blob_id, size_t size)
{
	struct virtio_gpu_resource_create_blob c = {
		.resource_id = id, .blob_mem = VIRTIO_GPU_BLOB_MEM_HOST3D,
		.blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_MAPPABLE, .blob_id = blob_id, .size = size,
	};

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB);
	c.hdr.ctx_id = ctx;
	return gpu_call(vm, &c, sizeof(c), NULL, 0);
}

int gl_map_as(struct vm *vm, uint32_t id, uint64_t offset, uint32_t cache)
{
	struct virtio_gpu_resource_map_blob c = { .resource_id = id, .offset = offset };
	struct virtio_gpu_resp_map_info info = { 0 };
	int ret;

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB);
	ret = gpu_call(vm, &c, sizeof(c), &info, sizeof(info));
	return ret == VIRTIO_GPU_RESP_OK_MAP_INFO &&
	       info.map_info != cache ? -EBADMSG : ret;
}

int gl_map(struct vm *vm, uint32_t id, uint64_t offset)
{
	return gl_map_as(vm, id, offset, VIRTIO_GPU_MAP_CACHE_CACHED);
}

int gl_unmap(struct vm *vm, uint32_t id)
{
	struct virtio_gpu_resource_unmap_blob c = { .resource_id = id };

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_UNMAP_BLOB);
	return gpu_call(vm, &c, sizeof(c), NULL, 0);
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

int gl_vertices(struct vm *vm, uint32_t ctx, uint32_t id)
{
	const struct virtio_gpu_resource_create_3d c = {
		.resource_id = id, .target = GL_BUFFER, .format = GL_R8,
		.bind = GL_VERTICES, .width = sizeof(gl_corners), .height = 1,
		.depth = 1, .array_size = 1,
	};
	int ret = gl_create(vm, &c);

	return ret == OK ? gl_ctx_attach(vm, ctx, id) : ret;
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

int gl_send_on(struct vm *vm, uint32_t ctx, uint8_t ring, const struct gl_stream *s)
{
	struct virtio_gpu_cmd_submit c = { .size = s->n * 4 };
	void *p = vm_alloc(vm, s->n * 4 + 4, 4);

	if (!p)
		return -ENOMEM;
	memcpy(p, s->w, s->n * 4);
	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_SUBMIT_3D);
	c.hdr.ctx_id = ctx;
	set_fence(&c.hdr, ++vm->next_fence);
	c.hdr.flags |= VIRTIO_GPU_FLAG_INFO_RING_IDX;
	c.hdr.ring_idx = ring;
	return send_with(vm, &c, sizeof(c), p, s->n * 4);
}

int gl_run(struct vm *vm, uint32_t ctx, const struct gl_stream *s)
{
	return gl_result(vm, gl_send(vm, ctx, ++vm->next_fence, s), NULL);
}

int gl_fill(struct vm *vm, uint32_t ctx, uint32_t res, uint32_t argb)
{
	struct gl_stream s;

	gl_begin(&s);
	gl_put_fill(&s, res, argb);
	return gl_run(vm, ctx, &s);
}
