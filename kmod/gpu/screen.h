/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scanout, the cursor, and the display region that the VMM reads.
 */
#ifndef MGPU_SCREEN_H
#define MGPU_SCREEN_H

#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/vfio.h>

#include "gpu/cmd_decode.h"
#include "virgl/readback.h"

struct mgpu_resource;
struct mgpu_vgpu;

/**
 * struct mgpu_view - layout of the picture in a resource
 * @res: the resource, holds a reference; NULL for none
 * @rect: part of the picture that the scanout shows, pixels
 * @format: enum virtio_gpu_formats
 * @width: width of the whole picture, pixels
 * @height: height of the whole picture, rows
 * @stride: bytes from one row to the next
 * @offset: offset of the first pixel in the resource, bytes
 */
struct mgpu_view {
	struct mgpu_resource *res;
	struct mgpu_rect rect;
	u32 format;
	u32 width;
	u32 height;
	u32 stride;
	u32 offset;
};

#define MGPU_CURSOR_DIM		64	/* pixels, both ways */

/* drm_plane_type of struct vfio_device_gfx_plane_info: DRM_PLANE_TYPE_CURSOR. */
#define MGPU_PLANE_CURSOR	2

/**
 * struct mgpu_screen - scanout, cursor and the picture that the VMM sees
 *
 * An engine thread must not wait for a VMM that looks at its screen, and may be out of
 * processor time meanwhile.  So the state that commands change has a spinlock, and an
 * engine only tries to take the mutex of the picture.  If the VMM has it, the engine
 * leaves @damage and @redraw behind, for the VMM's next look.
 *
 * @lock: protects the picture: @display, @cursor, @under and the fields from @shown to
 *	@shown_height
 * @state_lock: protects the state: @view, @damage, @image and the fields from @redraw on,
 *	but for @readback
 * @view: picture that the scanout shows; written under ring_lock, too, or in a reset
 * @damage: rectangle that was flushed since the VMM's last look and is not in @display,
 *	in the resource's pixels; width 0 for none
 * @display: XRGB8888, rows of view.rect.width pixels; allocated when first
 *	needed, as large as the type's largest mode
 * @cursor: ARGB8888, premultiplied, MGPU_CURSOR_DIM squared; allocated when
 *	first needed, with @under and @image
 * @under: pixels of @display that the cursor covers
 * @image: image for @cursor that the guest has set
 * @shown: @display has the cursor drawn, at @shown_x, @shown_y
 * @shown_x: left column of the drawn cursor on the screen, may be negative
 * @shown_y: top row of the drawn cursor on the screen, may be negative
 * @shown_width: width of the picture that the cursor was drawn into, pixels
 * @shown_height: height of that picture, rows
 * @redraw: the cursor changed after it was drawn
 * @new_image: @image is not in @cursor
 * @image_nr: number of images that @image has had, but not 0 after the first
 * @visible: the guest shows the cursor
 * @x: left column of the cursor on the screen, may be negative
 * @y: top row of the cursor on the screen, may be negative
 * @hot_x: hot spot in the cursor image, pixels
 * @hot_y: hot spot in the cursor image, rows
 * @readback: copying of a scanout from the device; has its own lock
 */
struct mgpu_screen {
	struct mutex lock;	/* see above */
	spinlock_t state_lock;	/* see above */
	struct mgpu_view view;
	struct mgpu_rect damage;
	u32 *display;
	u32 *cursor;
	u32 *under;
	u32 *image;
	bool shown;
	s32 shown_x;
	s32 shown_y;
	u32 shown_width;
	u32 shown_height;
	bool redraw;
	bool new_image;
	u32 image_nr;
	bool visible;
	s32 x;
	s32 y;
	u32 hot_x;
	u32 hot_y;
	struct mgpu_readback readback;
};

/* screen.c */
void mgpu_screen_init(struct mgpu_vgpu *vgpu);
void mgpu_screen_reset(struct mgpu_vgpu *vgpu);
void mgpu_screen_release(struct mgpu_vgpu *vgpu);
int mgpu_screen_alloc(struct mgpu_vgpu *vgpu);
size_t mgpu_screen_size(const struct mgpu_vgpu *vgpu);
int mgpu_screen_mmap(struct mgpu_vgpu *vgpu, struct vm_area_struct *vma);
ssize_t mgpu_screen_read(struct mgpu_vgpu *vgpu, char __user *buf, size_t len,
			 u64 off);
int mgpu_screen_query(struct mgpu_vgpu *vgpu,
		      struct vfio_device_gfx_plane_info *plane);
int mgpu_screen_get_buf(struct mgpu_vgpu *vgpu, u32 id);
u32 mgpu_screen_set(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);
void mgpu_screen_forget(struct mgpu_vgpu *vgpu,
			const struct mgpu_resource *res);
u32 mgpu_screen_cursor(struct mgpu_vgpu *vgpu, const struct mgpu_cmd *cmd);

/* draw.c */
void mgpu_screen_update(struct mgpu_vgpu *vgpu);
void mgpu_screen_new_image(struct mgpu_screen *s);
void mgpu_screen_damage(struct mgpu_screen *s);
bool mgpu_screen_take(struct mgpu_screen *s, struct mgpu_view *view,
		      struct mgpu_rect *r);
void mgpu_screen_show(struct mgpu_screen *s, const struct mgpu_view *view,
		      const struct mgpu_rect *r, const u32 *pixels);
bool mgpu_screen_settle(struct mgpu_vgpu *vgpu, bool nowait);

/* edid.c */
void mgpu_edid(u8 *edid, u32 width, u32 height, u32 serial);

#endif /* MGPU_SCREEN_H */
