// SPDX-License-Identifier: GPL-2.0-only
/*
 * The guest's virtio-gpu driver: commands, and the VMM's view of the screen.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include "vmm.h"

#define PAGE		4096u

/* ---- calls ---- */

/*
 * A command of up to a page goes from the head's own page; a longer one gets
 * memory of its own.
 */
int gpu_send(struct vm *vm, unsigned int q, const void *req, size_t len,
	     size_t resp_len)
{
	struct vmm_vq *vq = &vm->vq[q];
	struct vmm_seg segs[2];
	uint8_t *from;
	int head, ret;

	if (resp_len > PAGE)
		return -EINVAL;
	segs[0] = (struct vmm_seg){ 0, (uint32_t)len, false };
	segs[1] = (struct vmm_seg){ 0, (uint32_t)resp_len, true };
	head = vq_add(vm, q, segs, resp_len ? 2 : 1, false);
	if (head < 0)
		return head;

	from = vq->req + (size_t)head * PAGE;
	if (len > PAGE)
		from = vm_alloc(vm, len, 8);
	if (!from)
		return -ENOMEM;
	memcpy(from, req, len);
	vq->desc[head].addr = vm_addr(vm, from);
	if (resp_len) {
		memset(vq->resp + (size_t)head * PAGE, 0xee, PAGE);
		vq->desc[vq->desc[head].next].addr =
			vm_addr(vm, vq->resp + (size_t)head * PAGE);
	}
	vq_publish(vm, q, (uint16_t)head);
	/* Published before the flag is read (VIRTIO 1.2, section 2.7.10). */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	ret = vq->used->flags & VRING_USED_F_NO_NOTIFY ? 0 : vq_kick(vm, q);
	return ret ? ret : head;
}

int gpu_result(struct vm *vm, unsigned int q, uint16_t head, void *resp,
	       size_t resp_len, int timeout_ms)
{
	uint8_t *from = vm->vq[q].resp + (size_t)head * PAGE;
	struct virtio_gpu_ctrl_hdr hdr;
	int len;

	len = vq_wait(vm, q, head, timeout_ms);
	if (len < 0)
		return len;
	if ((size_t)len < sizeof(hdr))
		return -EBADMSG;
	memcpy(&hdr, from, sizeof(hdr));
	if (resp)
		memcpy(resp, from, resp_len);
	return (int)hdr.type;
}

int gpu_call(struct vm *vm, const void *req, size_t len, void *resp,
	     size_t resp_len)
{
	size_t room = resp ? resp_len : sizeof(struct virtio_gpu_ctrl_hdr);
	int head;

	head = gpu_send(vm, VMM_CONTROL, req, len, room);
	if (head < 0)
		return head;
	return gpu_result(vm, VMM_CONTROL, (uint16_t)head, resp, resp_len,
			  VMM_TIMEOUT);
}

void gpu_hdr(struct virtio_gpu_ctrl_hdr *hdr, uint32_t type)
{
	memset(hdr, 0, sizeof(*hdr));
	hdr->type = type;
}

struct virtio_gpu_rect gpu_rect(uint32_t x, uint32_t y, uint32_t w,
				uint32_t h)
{
	return (struct virtio_gpu_rect){ x, y, w, h };
}

#define CALL(vm, c) gpu_call(vm, &(c), sizeof(c), NULL, 0)

/* ---- commands ---- */

int gpu_display_info(struct vm *vm, uint32_t *width, uint32_t *height)
{
	struct virtio_gpu_resp_display_info info;
	struct virtio_gpu_ctrl_hdr c;
	int ret;

	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	ret = gpu_call(vm, &c, sizeof(c), &info, sizeof(info));
	if (ret == VIRTIO_GPU_RESP_OK_DISPLAY_INFO) {
		*width = info.pmodes[0].r.width;
		*height = info.pmodes[0].r.height;
	}
	return ret;
}

int gpu_create_2d(struct vm *vm, uint32_t id, uint32_t format, uint32_t w,
		  uint32_t h)
{
	struct virtio_gpu_resource_create_2d c = {
		.resource_id = id, .format = format, .width = w, .height = h,
	};

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_2D);
	return CALL(vm, c);
}

int gpu_attach_entries(struct vm *vm, uint32_t id,
		       const struct virtio_gpu_mem_entry *e, uint32_t n)
{
	struct virtio_gpu_resource_attach_backing c = {
		.resource_id = id, .nr_entries = n,
	};
	uint8_t buf[PAGE];

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING);
	if (sizeof(c) + n * sizeof(*e) > sizeof(buf))
		return -E2BIG;
	memcpy(buf, &c, sizeof(c));
	memcpy(buf + sizeof(c), e, n * sizeof(*e));
	return gpu_call(vm, buf, sizeof(c) + n * sizeof(*e), NULL, 0);
}

int gpu_attach(struct vm *vm, uint32_t id, const void *p, size_t len)
{
	struct virtio_gpu_mem_entry e = {
		.addr = vm_addr(vm, p), .length = (uint32_t)len,
	};

	return gpu_attach_entries(vm, id, &e, 1);
}

static int res_call(struct vm *vm, uint32_t type, uint32_t id)
{
	struct virtio_gpu_resource_unref c = { .resource_id = id };

	gpu_hdr(&c.hdr, type);
	return CALL(vm, c);
}

int gpu_detach(struct vm *vm, uint32_t id)
{
	return res_call(vm, VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING, id);
}

int gpu_unref(struct vm *vm, uint32_t id)
{
	return res_call(vm, VIRTIO_GPU_CMD_RESOURCE_UNREF, id);
}

int gpu_transfer(struct vm *vm, uint32_t id, struct virtio_gpu_rect r,
		 uint64_t offset)
{
	struct virtio_gpu_transfer_to_host_2d c = {
		.resource_id = id, .r = r, .offset = offset,
	};

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D);
	return CALL(vm, c);
}

int gpu_set_scanout(struct vm *vm, uint32_t id, struct virtio_gpu_rect r)
{
	struct virtio_gpu_set_scanout c = { .resource_id = id, .r = r };

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_SET_SCANOUT);
	return CALL(vm, c);
}

int gpu_flush(struct vm *vm, uint32_t id, struct virtio_gpu_rect r)
{
	struct virtio_gpu_resource_flush c = { .resource_id = id, .r = r };

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_FLUSH);
	return CALL(vm, c);
}

/* Without a wait: its head. */
int gpu_flush_send(struct vm *vm, uint32_t id, struct virtio_gpu_rect r)
{
	struct virtio_gpu_resource_flush c = { .resource_id = id, .r = r };

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_FLUSH);
	return gpu_send(vm, VMM_CONTROL, &c, sizeof(c), sizeof(c.hdr));
}

int gpu_create_blob(struct vm *vm, uint32_t id, const void *p, size_t size)
{
	return gpu_create_blob_at(vm, id, vm_addr(vm, p), size);
}

int gpu_create_blob_at(struct vm *vm, uint32_t id, uint64_t addr, size_t size)
{
	struct {
		struct virtio_gpu_resource_create_blob c;
		struct virtio_gpu_mem_entry e;
	} c = {
		.c = {
			.resource_id = id,
			.blob_mem = VIRTIO_GPU_BLOB_MEM_GUEST,
			.blob_flags = VIRTIO_GPU_BLOB_FLAG_USE_SHAREABLE,
			.nr_entries = 1,
			.size = size,
		},
		.e = { .addr = addr, .length = (uint32_t)size },
	};

	gpu_hdr(&c.c.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB);
	return CALL(vm, c);
}

int gpu_set_scanout_blob(struct vm *vm, uint32_t id, uint32_t format,
			 uint32_t w, uint32_t h, uint32_t stride,
			 uint32_t offset)
{
	struct virtio_gpu_set_scanout_blob c = {
		.resource_id = id,
		.r = { 0, 0, w, h },
		.width = w,
		.height = h,
		.format = format,
		.strides = { stride },
		.offsets = { offset },
	};

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_SET_SCANOUT_BLOB);
	return CALL(vm, c);
}

static int cursor_call(struct vm *vm, struct virtio_gpu_update_cursor *c)
{
	int head, ret;

	/* As the Linux driver: no room for an answer. */
	head = gpu_send(vm, VMM_CURSOR, c, sizeof(*c), 0);
	if (head < 0)
		return head;
	ret = vq_wait(vm, VMM_CURSOR, (uint16_t)head, VMM_TIMEOUT);
	return ret < 0 ? ret : 0;
}

int gpu_cursor(struct vm *vm, uint32_t id, int32_t x, int32_t y,
	       uint32_t hot_x, uint32_t hot_y)
{
	struct virtio_gpu_update_cursor c = {
		.pos = { .x = (uint32_t)x, .y = (uint32_t)y },
		.resource_id = id, .hot_x = hot_x, .hot_y = hot_y,
	};

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_UPDATE_CURSOR);
	return cursor_call(vm, &c);
}

int gpu_cursor_move(struct vm *vm, int32_t x, int32_t y)
{
	struct virtio_gpu_update_cursor c = {
		.pos = { .x = (uint32_t)x, .y = (uint32_t)y },
	};

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_MOVE_CURSOR);
	return cursor_call(vm, &c);
}

/* ---- whole screens ---- */

/* 0, -errno, or the answer that was not OK. */
static int ok(int ret)
{
	return ret == VIRTIO_GPU_RESP_OK_NODATA ? 0 : ret ? ret : -EPROTO;
}

int gpu_screen_2d(struct vm *vm, struct gpu_screen *s, uint32_t id,
		  uint32_t format, uint32_t w, uint32_t h)
{
	size_t len = (size_t)w * h * 4;
	int ret;

	*s = (struct gpu_screen){ id, w, h, NULL, false };
	s->pixels = vm_alloc(vm, len, PAGE);
	if (!s->pixels)
		return -ENOMEM;
	ret = ok(gpu_create_2d(vm, id, format, w, h));
	if (!ret)
		ret = ok(gpu_attach(vm, id, s->pixels, len));
	if (!ret)
		ret = ok(gpu_set_scanout(vm, id, gpu_rect(0, 0, w, h)));
	return ret;
}

int gpu_screen_blob(struct vm *vm, struct gpu_screen *s, uint32_t id,
		    uint32_t w, uint32_t h)
{
	size_t len = (size_t)w * h * 4;
	int ret;

	*s = (struct gpu_screen){ id, w, h, NULL, true };
	s->pixels = vm_alloc(vm, len, PAGE);
	if (!s->pixels)
		return -ENOMEM;
	ret = ok(gpu_create_blob(vm, id, s->pixels, len));
	if (!ret)
		ret = ok(gpu_set_scanout_blob(vm, id,
					      VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
					      w, h, w * 4, 0));
	return ret;
}

int gpu_show(struct vm *vm, struct gpu_screen *s)
{
	struct virtio_gpu_rect all = gpu_rect(0, 0, s->width, s->height);
	int ret;

	ret = ok(gpu_transfer(vm, s->id, all, 0));
	return ret ? ret : ok(gpu_flush(vm, s->id, all));
}

/* ---- the display ---- */

int display_plane(struct vm *vm, struct vfio_device_gfx_plane_info *plane)
{
	memset(plane, 0, sizeof(*plane));
	plane->argsz = sizeof(*plane);
	plane->flags = VFIO_GFX_PLANE_TYPE_REGION;
	plane->drm_plane_type = PLANE_PRIMARY;
	return ioctl(vm->device, VFIO_DEVICE_QUERY_GFX_PLANE, plane) ?
	       -errno : 0;
}

int display_dmabuf(struct vm *vm, uint32_t type, struct vfio_device_gfx_plane_info *plane)
{
	memset(plane, 0, sizeof(*plane));
	plane->argsz = sizeof(*plane);
	plane->flags = VFIO_GFX_PLANE_TYPE_DMABUF;
	plane->drm_plane_type = type;
	return ioctl(vm->device, VFIO_DEVICE_QUERY_GFX_PLANE, plane) ? -errno : 0;
}

int display_get_dmabuf(struct vm *vm, uint32_t id)
{
	int fd = ioctl(vm->device, VFIO_DEVICE_GET_GFX_DMABUF, &id);

	return fd < 0 ? -errno : fd;
}

int display_probe(struct vm *vm, uint32_t flags)
{
	struct vfio_device_gfx_plane_info plane = {
		.argsz = sizeof(plane),
		.flags = VFIO_GFX_PLANE_TYPE_PROBE | flags,
	};

	return ioctl(vm->device, VFIO_DEVICE_QUERY_GFX_PLANE, &plane) ?
	       -errno : 0;
}

/* The region that the plane names; vm_close() unmaps it. */
uint32_t *display_map(struct vm *vm, size_t *len)
{
	struct vfio_device_gfx_plane_info plane;
	struct vfio_region_info *r;
	void *p;
	int ret;

	if (vm->display) {
		*len = vm->display_size;
		return vm->display;
	}
	ret = display_plane(vm, &plane);
	if (!ret && plane.region_index >= ARRAY_LEN(vm->region))
		ret = -ENODEV;
	if (ret) {
		errno = -ret;
		return NULL;
	}
	r = &vm->region[plane.region_index];
	p = mmap(NULL, r->size, PROT_READ, MAP_SHARED, vm->device,
		 (off_t)r->offset);
	if (p == MAP_FAILED)
		return NULL;
	vm->display = p;
	vm->display_size = r->size;
	*len = r->size;
	return p;
}
