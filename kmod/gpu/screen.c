// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scanout, the cursor, and the display region that the VMM reads.
 */
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/virtio_gpu.h>
#include <linux/vmalloc.h>
#include <drm/drm_fourcc.h>

#include "compat.h"
#include "gpu/resource.h"
#include "mgpu.h"

#define READ_PART	SZ_64K	/* bytes of the screen that are copied at a time */

void mgpu_screen_init(struct mgpu_vgpu *vgpu)
{
	mutex_init(&vgpu->screen.lock);
	spin_lock_init(&vgpu->screen.state_lock);
}

/* Return the size of the display region in bytes: that of the type's largest mode. */
size_t mgpu_screen_size(const struct mgpu_vgpu *vgpu)
{
	const struct mgpu_type_desc *d = vgpu->type->desc;

	return PAGE_ALIGN((size_t)d->max_width * d->max_height * 4);
}

/* Allocate the display buffer unless it exists; it is freed when the VMM closes. */
int mgpu_screen_alloc(struct mgpu_vgpu *vgpu)
{
	struct mgpu_screen *s = &vgpu->screen;
	u32 *display;

	if (READ_ONCE(s->display))
		return 0;
	display = __vmalloc(mgpu_screen_size(vgpu), GFP_GUEST | __GFP_ZERO);
	if (!display)
		return -ENOMEM;
	mutex_lock(&s->lock);
	if (!s->display) {
		WRITE_ONCE(s->display, display);
		display = NULL;
	}
	mutex_unlock(&s->lock);
	vfree(display);
	return 0;
}

/* The resource table, or the caller, has a reference to the view's old resource. */
static void set_view(struct mgpu_screen *s, const struct mgpu_view *view)
{
	struct mgpu_resource *old;

	if (view->res)
		mgpu_resource_get(view->res);
	spin_lock(&s->state_lock);
	old = s->view.res;
	s->view = *view;
	spin_unlock(&s->state_lock);
	if (old)
		mgpu_resource_put(old);
}

/* Turn the scanout off and remove the cursor, for a device reset. */
void mgpu_screen_reset(struct mgpu_vgpu *vgpu)
{
	struct mgpu_screen *s = &vgpu->screen;
	const struct mgpu_view none = {};

	set_view(s, &none);
	spin_lock(&s->state_lock);
	s->visible = false;
	s->redraw = false;
	s->new_image = false;
	s->damage.width = 0;
	s->x = 0;
	s->y = 0;
	spin_unlock(&s->state_lock);

	/* A VMM that is copying the picture has a reference to it. */
	mutex_lock(&s->lock);
	s->shown = false;
	mutex_unlock(&s->lock);
}

/*
 * Free the buffers after the VMM closed the device.  Remaining mappings of the VMM hold
 * references to their pages.
 */
void mgpu_screen_release(struct mgpu_vgpu *vgpu)
{
	struct mgpu_screen *s = &vgpu->screen;

	mutex_lock(&s->lock);
	vfree(s->display);
	s->display = NULL;
	kfree(s->cursor);
	s->cursor = NULL;
	kfree(s->under);
	s->under = NULL;
	kfree(s->image);
	s->image = NULL;
	s->image_nr = 0;
	mutex_unlock(&s->lock);
}

/* Return whether the scanout can show a resource: not all on the device are pictures. */
static bool is_picture(const struct mgpu_resource *res)
{
	const struct mgpu_virgl_shape *shape = &res->dev.shape;

	return !res->dev.host_id ||
	       ((shape->target == MGPU_VIRGL_2D ||
		 shape->target == MGPU_VIRGL_RECT) && shape->nr_samples <= 1);
}

/* Execute SET_SCANOUT and SET_SCANOUT_BLOB. */
u32 mgpu_screen_set(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	const struct mgpu_type_desc *d = vgpu->type->desc;
	struct mgpu_view view = {};
	struct mgpu_resource *res;

	if (cmd->res_id) {
		res = mgpu_resource_find(vgpu, cmd->res_id);
		if (!res)
			return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
		if (cmd->rect.width > d->max_width ||
		    cmd->rect.height > d->max_height)
			return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;

		view.res = res;
		view.rect = cmd->rect;
		if (cmd->type == VIRTIO_GPU_CMD_SET_SCANOUT_BLOB) {
			if (!res->blob || res->dev.host_id ||
			    cmd->offset + (u64)(cmd->height - 1) * cmd->stride +
				    cmd->width * 4ULL > res->size)
				return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
			view.format = cmd->format;
			view.width = cmd->width;
			view.height = cmd->height;
			view.stride = cmd->stride;
			view.offset = cmd->offset;
		} else {
			if (res->blob || !is_picture(res) ||
			    !mgpu_rect_inside(&cmd->rect, res->width,
					      res->height))
				return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
			view.format = res->format;
			view.width = res->width;
			view.height = res->height;
			view.stride = res->stride;
		}
	}

	set_view(&vgpu->screen, &view);
	return VIRTIO_GPU_RESP_OK_NODATA;
}

/* Turn the scanout off if it shows a resource that goes away. */
void mgpu_screen_forget(struct mgpu_vgpu *vgpu,
			const struct mgpu_resource *res)
{
	const struct mgpu_view none = {};

	/* The view changes under ring_lock or in a reset: the caller has one of them. */
	if (vgpu->screen.view.res == res)
		set_view(&vgpu->screen, &none);
}

/* Allocate the cursor's images; must hold ring_lock. */
static int cursor_alloc(struct mgpu_screen *s)
{
	const size_t size = MGPU_CURSOR_DIM * MGPU_CURSOR_DIM * sizeof(u32);

	if (!s->cursor)
		s->cursor = kzalloc(size, GFP_GUEST);
	if (!s->under)
		s->under = kzalloc(size, GFP_GUEST);
	/* An engine thread looks at the last one only. */
	if (!s->image && s->cursor && s->under)
		WRITE_ONCE(s->image, kzalloc(size, GFP_GUEST));
	return s->image ? 0 : -ENOMEM;
}

/*
 * Copy the image of a cursor resource that is on the device, from the guest memory
 * that the guest transferred it from.
 */
static bool take_image(struct mgpu_screen *s, struct mgpu_resource *res)
{
	const size_t size = MGPU_CURSOR_DIM * MGPU_CURSOR_DIM * sizeof(u32);

	lockdep_assert_held(&s->state_lock);
	if (!res->backing || res->backing->len < size ||
	    !mgpu_mem_get(res->backing))
		return false;
	mgpu_mem_copy(res->backing, 0, s->image, size);
	mgpu_mem_put(res->backing);
	mgpu_screen_new_image(s);
	return true;
}

/*
 * Check UPDATE_CURSOR and MOVE_CURSOR, and store the cursor's new state; the job that
 * follows draws it.  Return 0 or VIRTIO_GPU_RESP_ERR_*.
 */
u32 mgpu_screen_cursor(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd)
{
	struct mgpu_screen *s = &vgpu->screen;
	struct mgpu_resource *res = NULL;
	bool update = cmd->type == VIRTIO_GPU_CMD_UPDATE_CURSOR;
	u32 err = 0;

	if (update && cmd->res_id) {
		res = mgpu_resource_find(vgpu, cmd->res_id);
		if (!res)
			return VIRTIO_GPU_RESP_ERR_INVALID_RESOURCE_ID;
		if (res->blob ?
		    res->size < MGPU_CURSOR_DIM * MGPU_CURSOR_DIM * 4 :
		    res->width != MGPU_CURSOR_DIM ||
		    res->height != MGPU_CURSOR_DIM)
			return VIRTIO_GPU_RESP_ERR_INVALID_PARAMETER;
		if (cursor_alloc(s))
			return VIRTIO_GPU_RESP_ERR_OUT_OF_MEMORY;
	}

	spin_lock(&s->state_lock);
	if (res && res->dev.host_id && !take_image(s, res)) {
		err = VIRTIO_GPU_RESP_ERR_UNSPEC;
	} else {
		s->x = (s32)cmd->pos_x;
		s->y = (s32)cmd->pos_y;
		if (update) {
			s->visible = res;
			s->hot_x = cmd->hot_x;
			s->hot_y = cmd->hot_y;
		}
	}
	spin_unlock(&s->state_lock);
	return err;
}

/* Return whether planes are dma-bufs, too. */
static bool has_buf(const struct mgpu_vgpu *vgpu)
{
	return mgpu_on_device(vgpu) && vgpu->mdev->caps.exports;
}

/**
 * mgpu_screen_query - carry out VFIO_DEVICE_QUERY_GFX_PLANE
 * @vgpu: vGPU
 * @plane: in: kind of plane; out: region or dma-buf, and layout of the picture
 *
 * The display region is a plane; the cursor is drawn into it.  Where the device exports,
 * dma-bufs are planes, too, one for the scanout and one for the cursor.  While the scanout is
 * off, the size is 0.
 *
 * Context: the VMM's thread; may sleep.
 * Return: 0, or -EINVAL for any other kind of plane.
 */
int mgpu_screen_query(struct mgpu_vgpu *vgpu,
		      struct vfio_device_gfx_plane_info *plane)
{
	struct mgpu_screen *s = &vgpu->screen;
	u32 type = plane->drm_plane_type;
	u32 kind = plane->flags & ~VFIO_GFX_PLANE_TYPE_PROBE;

	if (kind != VFIO_GFX_PLANE_TYPE_REGION &&
	    (kind != VFIO_GFX_PLANE_TYPE_DMABUF || !has_buf(vgpu)))
		return -EINVAL;
	if (plane->flags & VFIO_GFX_PLANE_TYPE_PROBE)
		return 0;

	*plane = (struct vfio_device_gfx_plane_info){
		.argsz = plane->argsz,
		.flags = plane->flags,
		.drm_plane_type = type,
	};
	if (kind == VFIO_GFX_PLANE_TYPE_DMABUF) {
		mgpu_readback_plane(vgpu, plane);
		return 0;
	}
	plane->region_index = MGPU_REGION_DISPLAY;
	/* QEMU leaves the plane type 0 when it asks for a region. */
	if (type == MGPU_PLANE_CURSOR)
		return 0;
	mgpu_screen_update(vgpu);

	spin_lock(&s->state_lock);
	if (s->view.res) {
		plane->drm_format = DRM_FORMAT_XRGB8888;
		plane->drm_format_mod = DRM_FORMAT_MOD_LINEAR;
		plane->width = s->view.rect.width;
		plane->height = s->view.rect.height;
		plane->stride = plane->width * 4;
		plane->size = plane->stride * plane->height;
	}
	spin_unlock(&s->state_lock);
	return 0;
}

/* Carry out VFIO_DEVICE_GET_GFX_DMABUF: return a file descriptor or a negative errno. */
int mgpu_screen_get_buf(struct mgpu_vgpu *vgpu, u32 id)
{
	return has_buf(vgpu) ? mgpu_readback_get_buf(vgpu, id) : -EINVAL;
}

/* Map the display region for reading. */
int mgpu_screen_mmap(struct mgpu_vgpu *vgpu, struct vm_area_struct *vma)
{
	unsigned long size = vma->vm_end - vma->vm_start, off;
	void *display;
	int ret;

	if (!(vma->vm_flags & VM_SHARED) || vma->vm_flags & VM_WRITE)
		return -EACCES;
	if (size > mgpu_screen_size(vgpu))
		return -EINVAL;
	ret = mgpu_screen_alloc(vgpu);
	if (ret)
		return ret;
	vm_flags_clear(vma, VM_MAYWRITE);
	vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	/* As remap_vmalloc_range(), which takes no memory that a control group pays for. */
	display = vgpu->screen.display;
	for (off = 0; off < size && !ret; off += PAGE_SIZE)
		ret = vm_insert_page(vma, vma->vm_start + off,
				     vmalloc_to_page(display + off));
	return ret;
}

/* Carry out read() on the display region. */
ssize_t mgpu_screen_read(struct mgpu_vgpu *vgpu, char __user *buf, size_t len,
			 u64 off)
{
	size_t size = mgpu_screen_size(vgpu), done = 0, n;
	ssize_t ret;

	if (off >= size)
		return 0;
	len = min_t(u64, len, size - off);
	ret = mgpu_screen_alloc(vgpu);
	if (ret)
		return ret;
	mgpu_screen_update(vgpu);
	/*
	 * The buffer is freed only at close, which cannot run during a read.  A kernel
	 * without preemption leaves the processor to other tasks between two parts only.
	 */
	while (done < len) {
		n = min_t(size_t, len - done, READ_PART);
		if (copy_to_user(buf + done, (u8 *)vgpu->screen.display + off + done, n))
			return -EFAULT;
		done += n;
		cond_resched();
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	return done;
}
