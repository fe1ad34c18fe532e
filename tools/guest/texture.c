// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work for the GPU: a texture that is uploaded anew, several times per frame.
 * virtio_gpu makes a TRANSFER_TO_HOST_2D of each upload, which a GPU executes
 * at the cost of copying the texture and the guest at nearly none.  The uploads
 * are ahead of the frame's flush in the queue, so the frame waits for them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <virtgpu_drm.h>
#include <xf86drm.h>

#include "game.h"

#define FORMAT_B8G8R8X8		2	/* enum virtio_gpu_formats */
#define TARGET_2D		2

static int failed(const char *what)
{
	int ret = -errno;

	fprintf(stderr, "mgpu-game: cannot %s a texture: %s%s\n", what,
		strerror(-ret),
		ret == -ENOTTY || ret == -EINVAL ?
		"; --textures needs virtio_gpu" : "");
	return ret;
}

/* Make a texture of @height rows, 8 KiB each. 0 or -errno. */
int texture_open(struct texture *t, int fd, uint32_t height)
{
	struct drm_virtgpu_resource_create create = {
		.target = TARGET_2D,
		.format = FORMAT_B8G8R8X8,
		.width = TEXTURE_W,
		.height = height,
		.depth = 1,
		.array_size = 1,
		.size = TEXTURE_W * height * 4,
		.stride = TEXTURE_W * 4,
	};
	struct drm_virtgpu_map map = { 0 };
	void *px;

	if (drmIoctl(fd, DRM_IOCTL_VIRTGPU_RESOURCE_CREATE, &create))
		return failed("create");
	t->fd = fd;
	t->height = height;
	t->handle = create.bo_handle;

	map.handle = create.bo_handle;
	if (drmIoctl(fd, DRM_IOCTL_VIRTGPU_MAP, &map))
		return failed("map");
	px = mmap(NULL, create.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		  (off_t)map.offset);
	if (px == MAP_FAILED)
		return failed("map");
	t->px = px;
	memset(t->px, 0x40, create.size);
	return 0;
}

/* Change a row of the texture and upload all of it, n times. */
int texture_upload(struct texture *t, uint32_t n, uint64_t frame)
{
	struct drm_virtgpu_3d_transfer_to_host transfer = {
		.bo_handle = t->handle,
		.box = { .w = TEXTURE_W, .h = t->height, .d = 1 },
	};
	uint32_t i;

	memset(t->px + (frame % t->height) * TEXTURE_W, (int)frame,
	       TEXTURE_W * 4);
	for (i = 0; i < n; i++)
		if (drmIoctl(t->fd, DRM_IOCTL_VIRTGPU_TRANSFER_TO_HOST,
			     &transfer))
			return failed("upload");
	return 0;
}

void texture_close(struct texture *t)
{
	if (t->px)
		munmap(t->px, TEXTURE_W * t->height * 4);
	if (t->handle)
		drmCloseBufferHandle(t->fd, t->handle);
	memset(t, 0, sizeof(*t));
}
