// SPDX-License-Identifier: GPL-2.0-only
/*
 * The VMM sees the picture that the guest draws.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "../../kmod/vfio/device.h"
#include "nl.h"
#include "vmm.h"

#define BGRX		VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM
#define BGRA		VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM
#define DRM_XRGB8888	0x34325258	/* fourcc XR24 */
#define RGB		0xffffff	/* the X byte means nothing */
#define CURSOR		64

FIXTURE(display)
{
	struct vm vm;
	uint32_t *seen;		/* the display region */
	size_t seen_len;
};

#define display_data FIXTURE_DATA(display)

FIXTURE_SETUP(display)
{
	ASSERT_EQ(0, vm_new_started(&self->vm, "small", 16 << 20));
	self->seen = display_map(&self->vm, &self->seen_len);
	ASSERT_NE(NULL, self->seen);
}

FIXTURE_TEARDOWN(display)
{
	vm_delete(&self->vm);
}

/* A colour for each pixel that no other pixel nearby has. */
static uint32_t colour(uint32_t x, uint32_t y, uint32_t salt)
{
	return (x * 0x010305 ^ y * 0x0b0701 ^ salt * 0x9e3779) & RGB;
}

static void draw(struct gpu_screen *s, uint32_t salt)
{
	uint32_t x, y;

	for (y = 0; y < s->height; y++)
		for (x = 0; x < s->width; x++)
			s->pixels[y * s->width + x] = colour(x, y, salt);
}

/* Return the picture on the screen; queries the plane first, as a VMM does. */
static uint32_t *look(display_data *self)
{
	struct vfio_device_gfx_plane_info plane;

	return display_plane(&self->vm, &plane) ? NULL : self->seen;
}

/* Number of pixels of the rectangle that do not have the salt's colour. */
static unsigned int wrong(const uint32_t *seen, uint32_t width,
			  struct virtio_gpu_rect r, uint32_t salt)
{
	unsigned int n = 0;
	uint32_t x, y;

	for (y = r.y; y < r.y + r.height; y++)
		for (x = r.x; x < r.x + r.width; x++)
			n += (seen[y * width + x] & RGB) != colour(x, y, salt);
	return n;
}

TEST_F(display, a_dark_screen_has_no_size)
{
	struct vfio_device_gfx_plane_info plane;

	ASSERT_EQ(0, display_plane(&self->vm, &plane));
	EXPECT_EQ(0, plane.width);
	EXPECT_EQ(0, plane.height);
	EXPECT_EQ(0, plane.size);
	EXPECT_EQ(0, plane.drm_format);
	EXPECT_EQ(MGPU_REGION_DISPLAY, plane.region_index);
}

TEST_F(display, only_a_region_is_offered)
{
	struct vfio_device_gfx_plane_info plane = { .argsz = 8 };
	struct vm *vm = &self->vm;

	EXPECT_EQ(0, display_probe(vm, VFIO_GFX_PLANE_TYPE_REGION));
	EXPECT_EQ(-EINVAL, display_probe(vm, VFIO_GFX_PLANE_TYPE_DMABUF));
	EXPECT_EQ(-EINVAL, display_probe(vm, 0));
	EXPECT_EQ(-EINVAL, display_probe(vm, VFIO_GFX_PLANE_TYPE_REGION |
					     VFIO_GFX_PLANE_TYPE_DMABUF));
	EXPECT_EQ(-1, ioctl(vm->device, VFIO_DEVICE_QUERY_GFX_PLANE, &plane));
	EXPECT_EQ(EINVAL, errno);
	plane.argsz = sizeof(plane);
	plane.flags = VFIO_GFX_PLANE_TYPE_DMABUF;
	EXPECT_EQ(-1, ioctl(vm->device, VFIO_DEVICE_QUERY_GFX_PLANE, &plane));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(display, the_plane_describes_the_scanout)
{
	struct vfio_device_gfx_plane_info plane;
	struct gpu_screen s;

	ASSERT_EQ(0, gpu_screen_2d(&self->vm, &s, 1, BGRX, 320, 200));
	ASSERT_EQ(0, display_plane(&self->vm, &plane));
	EXPECT_EQ(320, plane.width);
	EXPECT_EQ(200, plane.height);
	EXPECT_EQ(320 * 4, plane.stride);
	EXPECT_LE(320 * 200 * 4, plane.size);
	EXPECT_EQ(DRM_XRGB8888, plane.drm_format);
	EXPECT_EQ(0, plane.drm_format_mod);
	EXPECT_LE(plane.size, self->seen_len);
	ASSERT_EQ(OK, gpu_set_scanout(&self->vm, 0, gpu_rect(0, 0, 0, 0)));
	ASSERT_EQ(0, display_plane(&self->vm, &plane));
	EXPECT_EQ(0, plane.width);
}

TEST_F(display, the_region_is_read_only)
{
	struct vm *vm = &self->vm;
	uint64_t off = vm->region[MGPU_REGION_DISPLAY].offset;
	uint32_t v = 1;
	void *p;

	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, vm->device,
		 off);
	EXPECT_EQ(MAP_FAILED, p);
	EXPECT_EQ(-1, mprotect(self->seen, 4096, PROT_READ | PROT_WRITE));
	EXPECT_GT(0, vm_write(vm, MGPU_REGION_DISPLAY, 0, &v, 4));
	/* Neither more than it has, nor anything but it. */
	p = mmap(NULL, self->seen_len + 4096, PROT_READ, MAP_SHARED,
		 vm->device, off);
	EXPECT_EQ(MAP_FAILED, p);
	p = mmap(NULL, self->seen_len, PROT_READ, MAP_SHARED, vm->device,
		 off + 4096);
	EXPECT_EQ(MAP_FAILED, p);
	p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, vm->device,
		 vm->region[0].offset);
	EXPECT_EQ(MAP_FAILED, p);
}

TEST_F(display, a_whole_picture_arrives)
{
	static const uint32_t sizes[][2] = {
		{ 1024, 768 }, { 640, 480 }, { 1, 1 }, { 33, 7 }, { 1023, 767 },
		{ 1, 768 }, { 1024, 1 },
	};
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		ASSERT_EQ(0, gpu_screen_2d(vm, &s, i + 1, BGRX, sizes[i][0],
					   sizes[i][1]));
		draw(&s, i);
		ASSERT_EQ(0, gpu_show(vm, &s));
		EXPECT_EQ(0, wrong(look(self), s.width,
				   gpu_rect(0, 0, s.width, s.height), i)) {
			TH_LOG("%u x %u", s.width, s.height);
		}
	}
}

TEST_F(display, nothing_shows_before_transfer_and_flush)
{
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	struct virtio_gpu_rect all = gpu_rect(0, 0, 64, 64);

	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, 64, 64));
	draw(&s, 1);
	ASSERT_EQ(0, gpu_show(vm, &s));
	ASSERT_EQ(0, wrong(look(self), 64, all, 1));
	draw(&s, 2);
	ASSERT_EQ(OK, gpu_flush(vm, 1, all));
	EXPECT_EQ(0, wrong(look(self), 64, all, 1));
	ASSERT_EQ(OK, gpu_transfer(vm, 1, all, 0));
	EXPECT_EQ(0, wrong(look(self), 64, all, 1));
	ASSERT_EQ(OK, gpu_flush(vm, 1, all));
	EXPECT_EQ(0, wrong(look(self), 64, all, 2));
}

TEST_F(display, a_part_arrives_and_the_rest_stays)
{
	static const struct virtio_gpu_rect parts[] = {
		{ 0, 0, 1, 1 }, { 99, 79, 1, 1 }, { 10, 20, 30, 40 },
		{ 0, 40, 100, 1 }, { 50, 0, 1, 80 }, { 0, 0, 100, 80 },
		{ 7, 7, 0, 0 }, { 100, 80, 0, 0 },
	};
	struct virtio_gpu_rect all = gpu_rect(0, 0, 100, 80), p;
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	unsigned int i, in, area;

	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, 100, 80));
	for (i = 0; i < ARRAY_LEN(parts); i++) {
		p = parts[i];
		draw(&s, 100);
		ASSERT_EQ(0, gpu_show(vm, &s));
		draw(&s, i);
		ASSERT_EQ(OK, gpu_transfer(vm, 1, p, (p.y * 100 + p.x) * 4 <
					   32000 ? (p.y * 100 + p.x) * 4 : 0));
		ASSERT_EQ(OK, gpu_flush(vm, 1, p));
		EXPECT_EQ(0, wrong(look(self), 100, p, i));
		/* All the others have their old colour. */
		area = p.width * p.height;
		in = area - wrong(look(self), 100, p, 100);
		EXPECT_EQ(area - in, wrong(look(self), 100, all, 100));
	}
}

TEST_F(display, damage_outside_of_the_transfer_shows_the_old)
{
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	struct virtio_gpu_rect left = gpu_rect(0, 0, 32, 64);
	struct virtio_gpu_rect right = gpu_rect(32, 0, 32, 64);

	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, 64, 64));
	draw(&s, 1);
	ASSERT_EQ(0, gpu_show(vm, &s));
	draw(&s, 2);
	ASSERT_EQ(OK, gpu_transfer(vm, 1, left, 0));
	ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, 64, 64)));
	EXPECT_EQ(0, wrong(look(self), 64, left, 2));
	EXPECT_EQ(0, wrong(look(self), 64, right, 1));
}

TEST_F(display, the_scanout_may_be_a_part_of_the_resource)
{
	struct vfio_device_gfx_plane_info plane;
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	uint32_t x, y, bad = 0;

	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, 200, 100));
	draw(&s, 3);
	ASSERT_EQ(OK, gpu_set_scanout(vm, 1, gpu_rect(50, 30, 100, 60)));
	ASSERT_EQ(0, gpu_show(vm, &s));
	ASSERT_EQ(0, display_plane(vm, &plane));
	EXPECT_EQ(100, plane.width);
	EXPECT_EQ(60, plane.height);
	for (y = 0; y < 60; y++)
		for (x = 0; x < 100; x++)
			bad += (look(self)[y * 100 + x] & RGB) !=
			       colour(x + 50, y + 30, 3);
	EXPECT_EQ(0, bad);
	/* Damage that the scanout does not show changes nothing. */
	draw(&s, 4);
	ASSERT_EQ(OK, gpu_transfer(vm, 1, gpu_rect(0, 0, 200, 100), 0));
	ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, 200, 30)));
	ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, 50, 100)));
	EXPECT_EQ(colour(50, 30, 3), look(self)[0] & RGB);
	EXPECT_EQ(colour(149, 89, 3), look(self)[59 * 100 + 99] & RGB);
	/* Damage that straddles its edge changes the inside only. */
	ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(40, 20, 20, 20)));
	EXPECT_EQ(colour(50, 30, 4), look(self)[0] & RGB);
	EXPECT_EQ(colour(59, 39, 4), look(self)[9 * 100 + 9] & RGB);
	EXPECT_EQ(colour(60, 39, 3), look(self)[9 * 100 + 10] & RGB);
	EXPECT_EQ(colour(59, 40, 3), look(self)[10 * 100 + 9] & RGB);
}

TEST_F(display, every_format_shows_the_same_colours)
{
	/* The bytes of 0x112233 in memory. */
	static const struct {
		uint32_t format;
		uint8_t bytes[4];
	} f[] = {
		{ VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM, { 0x33, 0x22, 0x11, 0xff } },
		{ VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM, { 0x33, 0x22, 0x11, 0x55 } },
		{ VIRTIO_GPU_FORMAT_A8R8G8B8_UNORM, { 0xff, 0x11, 0x22, 0x33 } },
		{ VIRTIO_GPU_FORMAT_X8R8G8B8_UNORM, { 0x55, 0x11, 0x22, 0x33 } },
		{ VIRTIO_GPU_FORMAT_R8G8B8A8_UNORM, { 0x11, 0x22, 0x33, 0xff } },
		{ VIRTIO_GPU_FORMAT_X8B8G8R8_UNORM, { 0x55, 0x33, 0x22, 0x11 } },
		{ VIRTIO_GPU_FORMAT_A8B8G8R8_UNORM, { 0xff, 0x33, 0x22, 0x11 } },
		{ VIRTIO_GPU_FORMAT_R8G8B8X8_UNORM, { 0x11, 0x22, 0x33, 0x55 } },
	};
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	unsigned int i, k;

	for (i = 0; i < ARRAY_LEN(f); i++) {
		ASSERT_EQ(0, gpu_screen_2d(vm, &s, i + 1, f[i].format, 16, 16));
		for (k = 0; k < 256; k++)
			memcpy(&s.pixels[k], f[i].bytes, 4);
		ASSERT_EQ(0, gpu_show(vm, &s));
		for (k = 0; k < 256; k++) {
			ASSERT_EQ(0x112233, look(self)[k] & RGB) {
				TH_LOG("format %u", f[i].format);
			}
		}
	}
}

TEST_F(display, scattered_backing_is_put_together)
{
	struct virtio_gpu_mem_entry e[100];
	struct vm *vm = &self->vm;
	uint32_t w = 100, h = 60, len = w * h * 4, at = 0, n = 0, k, x, y;
	uint8_t *mem = vm_alloc(vm, 100 * 4096, 4096);
	uint8_t *flat = malloc(len);
	uint32_t px;

	/* Odd lengths at odd addresses, in no order. */
	ASSERT_NE(NULL, flat);
	for (y = 0; y < h; y++) {
		for (x = 0; x < w; x++) {
			px = colour(x, y, 9);
			memcpy(flat + (y * w + x) * 4, &px, 4);
		}
	}
	while (at < len) {
		k = 1 + (n * 997) % 2047;
		if (k > len - at)
			k = len - at;
		ASSERT_GT(ARRAY_LEN(e), n);
		/* Some entries cross a page boundary. */
		e[n].addr = vm_addr(vm, mem) + (n * 37 % 97) * 4096 +
			    (n * 523) % 4096;
		e[n].length = k;
		e[n].padding = 0xffffffff;
		n++;
		at += k;
	}
	/* Later entries may overwrite earlier ones: write what is last read. */
	ASSERT_EQ(OK, gpu_create_2d(vm, 1, BGRX, w, h));
	ASSERT_EQ(OK, gpu_attach_entries(vm, 1, e, n));
	ASSERT_EQ(OK, gpu_set_scanout(vm, 1, gpu_rect(0, 0, w, h)));
	for (at = 0, k = 0; k < n; at += e[k].length, k++)
		memcpy(vm->ram + (e[k].addr - VMM_RAM_BASE), flat + at,
		       e[k].length);
	/* Read the memory through the entries. */
	for (at = 0, k = 0; k < n; at += e[k].length, k++)
		memcpy(flat + at, vm->ram + (e[k].addr - VMM_RAM_BASE),
		       e[k].length);
	ASSERT_EQ(OK, gpu_transfer(vm, 1, gpu_rect(0, 0, w, h), 0));
	ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, w, h)));
	for (k = 0; k < w * h; k++) {
		memcpy(&px, flat + k * 4, 4);
		ASSERT_EQ(px & RGB, look(self)[k] & RGB) {
			TH_LOG("pixel %u", k);
		}
	}
	free(flat);
}

/* ---- guest blobs ---- */

TEST_F(display, a_blob_shows_without_a_transfer)
{
	struct virtio_gpu_rect all = gpu_rect(0, 0, 320, 240);
	struct vm *vm = &self->vm;
	struct gpu_screen s;

	ASSERT_EQ(0, gpu_screen_blob(vm, &s, 1, 320, 240));
	draw(&s, 1);
	ASSERT_EQ(OK, gpu_flush(vm, 1, all));
	EXPECT_EQ(0, wrong(look(self), 320, all, 1));
	draw(&s, 2);
	EXPECT_EQ(0, wrong(look(self), 320, all, 1));
	/* Guests transfer all the same; it is answered and does nothing. */
	EXPECT_EQ(OK, gpu_transfer(vm, 1, all, 0));
	EXPECT_EQ(0, wrong(look(self), 320, all, 1));
	ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, 320, 120)));
	EXPECT_EQ(0, wrong(look(self), 320, gpu_rect(0, 0, 320, 120), 2));
	EXPECT_EQ(0, wrong(look(self), 320, gpu_rect(0, 120, 320, 120), 1));
}

TEST_F(display, a_blob_has_its_own_stride_and_offset)
{
	struct vm *vm = &self->vm;
	uint32_t *mem = vm_alloc(vm, 1 << 20, 4096);
	uint32_t x, y, bad = 0, stride = 1300, off = 4 * 77;

	ASSERT_EQ(OK, gpu_create_blob(vm, 1, mem, 1 << 20));
	ASSERT_EQ(OK, gpu_set_scanout_blob(vm, 1, BGRX, 300, 200, stride, off));
	for (y = 0; y < 200; y++)
		for (x = 0; x < 300; x++)
			mem[off / 4 + y * stride / 4 + x] = colour(x, y, 5);
	ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, 300, 200)));
	for (y = 0; y < 200; y++)
		for (x = 0; x < 300; x++)
			bad += (look(self)[y * 300 + x] & RGB) !=
			       colour(x, y, 5);
	EXPECT_EQ(0, bad);
}

TEST_F(display, a_blob_may_be_of_any_pages)
{
	struct {
		struct virtio_gpu_resource_create_blob c;
		struct virtio_gpu_mem_entry e[50];
	} c;
	struct vm *vm = &self->vm;
	uint32_t n = 50, w = 256, h = 50, i, x, y, bad = 0;
	uint8_t *mem = vm_alloc(vm, n * 8192, 4096);

	memset(&c, 0, sizeof(c));
	gpu_hdr(&c.c.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB);
	c.c.resource_id = 1;
	c.c.blob_mem = VIRTIO_GPU_BLOB_MEM_GUEST;
	c.c.nr_entries = n;
	c.c.size = w * h * 4;
	/* A row of pixels is 1,024 bytes; pages in reverse, odd starts. */
	for (i = 0; i < n; i++) {
		c.e[i].addr = vm_addr(vm, mem) + (n - 1 - i) * 8192 + i * 61;
		c.e[i].length = 1024;
		for (x = 0; x < w; x++) {
			y = colour(x, i, 6);
			memcpy(mem + (n - 1 - i) * 8192 + i * 61 + x * 4, &y,
			       4);
		}
	}
	ASSERT_EQ(OK, gpu_call(vm, &c, sizeof(c), NULL, 0));
	ASSERT_EQ(OK, gpu_set_scanout_blob(vm, 1, BGRX, w, h, w * 4, 0));
	ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, w, h)));
	for (y = 0; y < h; y++)
		for (x = 0; x < w; x++)
			bad += (look(self)[y * w + x] & RGB) != colour(x, y, 6);
	EXPECT_EQ(0, bad);
}

/* ---- flips ---- */

TEST_F(display, a_flip_shows_the_other_resource)
{
	struct virtio_gpu_rect all = gpu_rect(0, 0, 64, 64);
	struct vm *vm = &self->vm;
	struct gpu_screen a, b;
	int i;

	ASSERT_EQ(0, gpu_screen_2d(vm, &a, 1, BGRX, 64, 64));
	ASSERT_EQ(0, gpu_screen_blob(vm, &b, 2, 64, 64));
	draw(&a, 1);
	draw(&b, 2);
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(OK, gpu_set_scanout(vm, 1, all));
		ASSERT_EQ(0, gpu_show(vm, &a));
		EXPECT_EQ(0, wrong(look(self), 64, all, 1));
		/* A flush of what is not shown changes nothing. */
		ASSERT_EQ(OK, gpu_flush(vm, 2, all));
		EXPECT_EQ(0, wrong(look(self), 64, all, 1));
		ASSERT_EQ(OK, gpu_set_scanout_blob(vm, 2, BGRX, 64, 64, 256,
						   0));
		ASSERT_EQ(OK, gpu_flush(vm, 2, all));
		EXPECT_EQ(0, wrong(look(self), 64, all, 2));
	}
}

/* A VMM's thread that looks at the screen all the time, at pictures of one colour. */
struct viewer {
	display_data *self;
	pthread_t thread;
	atomic_bool stop;
	atomic_uint looks;
	unsigned int torn;
};

static void *view(void *arg)
{
	struct viewer *v = arg;
	const uint32_t *seen;

	while (!atomic_load(&v->stop)) {
		seen = look(v->self);
		v->torn += !seen || memcmp(seen, seen + 1, (1024 * 768 - 1) * 4);
		atomic_fetch_add(&v->looks, 1);
	}
	return NULL;
}

TEST_F_TIMEOUT(display, a_viewer_sees_complete_frames, 180)
{
	struct virtio_gpu_rect all = gpu_rect(0, 0, 1024, 768);
	uint64_t end = now_ms() + VMM_TIMEOUT;
	struct viewer v = { .self = self };
	struct vm *vm = &self->vm;
	struct gpu_screen s[2];
	char scanout[16] = "";
	unsigned int i;

	sysfs_read("/sys/module/mgpu_soft/parameters/scanout", scanout, sizeof(scanout));
	if (!strncmp(scanout, "eager", 5))
		SKIP(return, "an engine copies frames while a VMM looks");
	ASSERT_EQ(0, gpu_screen_blob(vm, &s[1], 2, 1024, 768));
	ASSERT_EQ(0, gpu_screen_blob(vm, &s[0], 1, 1024, 768));
	ASSERT_EQ(OK, gpu_flush(vm, 1, all));
	ASSERT_EQ(0, pthread_create(&v.thread, NULL, view, &v));
	for (i = 1; atomic_load(&v.looks) < 300 && now_ms() < end; i++) {
		memset(s[i % 2].pixels, (int)(i & 0xff), 1024 * 768 * 4);
		ASSERT_EQ(OK, gpu_set_scanout_blob(vm, i % 2 + 1, BGRX, 1024, 768, 4096, 0));
		ASSERT_EQ(OK, gpu_flush(vm, i % 2 + 1, all));
	}
	atomic_store(&v.stop, true);
	ASSERT_EQ(0, pthread_join(v.thread, NULL));
	TH_LOG("%u flips, %u looks", i, atomic_load(&v.looks));
	EXPECT_LT(10, atomic_load(&v.looks));
	EXPECT_EQ(0, v.torn);
}

TEST_F(display, a_shown_resource_can_go_away)
{
	struct vfio_device_gfx_plane_info plane;
	struct vm *vm = &self->vm;
	struct gpu_screen s;

	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, 64, 64));
	ASSERT_EQ(0, gpu_show(vm, &s));
	ASSERT_EQ(OK, gpu_unref(vm, 1));
	ASSERT_EQ(0, display_plane(vm, &plane));
	EXPECT_EQ(0, plane.width);
	ASSERT_EQ(0, gpu_screen_blob(vm, &s, 1, 64, 64));
	draw(&s, 7);
	ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, 64, 64)));
	ASSERT_EQ(OK, gpu_unref(vm, 1));
	ASSERT_EQ(0, display_plane(vm, &plane));
	EXPECT_EQ(0, plane.width);
}

TEST_F(display, reads_and_mappings_agree)
{
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	uint32_t buf[64];

	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, 64, 64));
	draw(&s, 8);
	ASSERT_EQ(0, gpu_show(vm, &s));
	ASSERT_EQ(0, vm_read(vm, MGPU_REGION_DISPLAY, 5 * 256, buf, 256));
	EXPECT_EQ(0, memcmp(buf, look(self) + 5 * 64, 256));
	EXPECT_GT(0, vm_read(vm, MGPU_REGION_DISPLAY, self->seen_len, buf, 4));
}

TEST_F(display, frames_are_counted)
{
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	struct nl_vgpu v;
	struct nl nl;
	int i;

	ASSERT_EQ(0, nl_open(&nl));
	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, 64, 64));
	ASSERT_EQ(OK, gpu_create_2d(vm, 2, BGRX, 64, 64));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(0, gpu_show(vm, &s));
		/* Not on the screen, so no frame. */
		ASSERT_EQ(OK, gpu_flush(vm, 2, gpu_rect(0, 0, 64, 64)));
	}
	ASSERT_EQ(0, nl_vgpu_get(&nl, vm->uuid, &v));
	EXPECT_EQ(10, v.stats[MGPU_A_STATS_FRAMES]);
	EXPECT_EQ(20, v.stats[MGPU_A_STATS_JOBS]);
	EXPECT_EQ(20 * 64 * 64 * 4, v.stats[MGPU_A_STATS_BYTES]);
	EXPECT_EQ(64, v.width);
	EXPECT_EQ(64, v.height);
	nl_close(&nl);
}

/* ---- cursor ---- */

static int cursor_make(struct vm *vm, uint32_t id, uint32_t value)
{
	uint32_t *px = vm_alloc(vm, CURSOR * CURSOR * 4, 4096), i;

	for (i = 0; i < CURSOR * CURSOR; i++)
		px[i] = value;
	if (gpu_create_2d(vm, id, BGRA, CURSOR, CURSOR) != OK ||
	    gpu_attach(vm, id, px, CURSOR * CURSOR * 4) != OK ||
	    gpu_transfer(vm, id, gpu_rect(0, 0, CURSOR, CURSOR), 0) != OK)
		return -EPROTO;
	return 0;
}

/* Count pixels that differ from the picture under a cursor at (cx, cy). */
static unsigned int cursor_wrong(const uint32_t *seen, uint32_t w, uint32_t h,
				 int cx, int cy, uint32_t value, uint32_t salt)
{
	unsigned int n = 0;
	uint32_t want;
	int x, y;

	for (y = 0; y < (int)h; y++)
		for (x = 0; x < (int)w; x++) {
			if (x >= cx && x < cx + CURSOR && y >= cy &&
			    y < cy + CURSOR)
				want = value & RGB;
			else
				want = colour(x, y, salt);
			n += (seen[y * (int)w + x] & RGB) != want;
		}
	return n;
}

TEST_F(display, the_cursor_shows_moves_and_goes)
{
	static const int at[][2] = {
		{ 100, 50 }, { 101, 50 }, { 120, 80 }, { 0, 0 }, { 256, 136 },
		{ 319, 199 }, { -10, -20 }, { -63, 199 }, { 320, 200 },
		{ -64, 0 }, { 2147483647, 5 }, { 100, 100 },
	};
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	unsigned int i;

	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, 320, 200));
	draw(&s, 1);
	ASSERT_EQ(0, gpu_show(vm, &s));
	ASSERT_EQ(0, cursor_make(vm, 2, 0xff00ff00));
	ASSERT_EQ(0, gpu_cursor(vm, 2, at[0][0], at[0][1], 3, 4));
	for (i = 0; i < ARRAY_LEN(at); i++) {
		ASSERT_EQ(0, gpu_cursor_move(vm, at[i][0], at[i][1]));
		EXPECT_EQ(0, cursor_wrong(look(self), 320, 200, at[i][0],
					  at[i][1], 0x00ff00, 1)) {
			TH_LOG("at %d, %d", at[i][0], at[i][1]);
		}
	}
	/* Resource 0 takes it away, and the picture is whole again. */
	ASSERT_EQ(0, gpu_cursor(vm, 0, 100, 100, 0, 0));
	EXPECT_EQ(0, wrong(look(self), 320, gpu_rect(0, 0, 320, 200), 1));
}

TEST_F(display, a_transparent_cursor_lets_the_picture_through)
{
	struct vm *vm = &self->vm;
	struct gpu_screen s;

	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, 320, 200));
	draw(&s, 1);
	ASSERT_EQ(0, gpu_show(vm, &s));
	ASSERT_EQ(0, cursor_make(vm, 2, 0x00000000));
	ASSERT_EQ(0, gpu_cursor(vm, 2, 10, 10, 0, 0));
	EXPECT_EQ(0, wrong(look(self), 320, gpu_rect(0, 0, 320, 200), 1));
}

TEST_F(display, a_frame_under_the_cursor_keeps_both)
{
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	int i;

	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, 320, 200));
	draw(&s, 0);
	ASSERT_EQ(0, gpu_show(vm, &s));
	ASSERT_EQ(0, cursor_make(vm, 2, 0xff123456));
	ASSERT_EQ(0, gpu_cursor(vm, 2, 30, 40, 0, 0));
	for (i = 1; i < 6; i++) {
		draw(&s, i);
		ASSERT_EQ(0, gpu_show(vm, &s));
		EXPECT_EQ(0, cursor_wrong(look(self), 320, 200, 30, 40,
					  0x123456, i));
	}
	/* The picture below the cursor is the new one. */
	ASSERT_EQ(0, gpu_cursor_move(vm, 200, 100));
	EXPECT_EQ(0, cursor_wrong(look(self), 320, 200, 200, 100, 0x123456, 5));
}

TEST_F(display, the_cursor_survives_a_new_mode)
{
	struct vm *vm = &self->vm;
	struct gpu_screen a, b;

	ASSERT_EQ(0, gpu_screen_2d(vm, &a, 1, BGRX, 320, 200));
	draw(&a, 1);
	ASSERT_EQ(0, gpu_show(vm, &a));
	ASSERT_EQ(0, cursor_make(vm, 3, 0xffabcdef));
	ASSERT_EQ(0, gpu_cursor(vm, 3, 250, 150, 0, 0));
	ASSERT_EQ(0, gpu_screen_2d(vm, &b, 2, BGRX, 200, 300));
	draw(&b, 2);
	ASSERT_EQ(0, gpu_show(vm, &b));
	EXPECT_EQ(0, cursor_wrong(look(self), 200, 300, 250, 150, 0xabcdef, 2));
	ASSERT_EQ(0, gpu_cursor_move(vm, 20, 30));
	EXPECT_EQ(0, cursor_wrong(look(self), 200, 300, 20, 30, 0xabcdef, 2));
}

TEST_F(display, a_cursor_resource_may_go_and_the_cursor_stays)
{
	struct vm *vm = &self->vm;
	struct gpu_screen s;

	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, 320, 200));
	draw(&s, 1);
	ASSERT_EQ(0, gpu_show(vm, &s));
	ASSERT_EQ(0, cursor_make(vm, 2, 0xff777777));
	ASSERT_EQ(0, gpu_cursor(vm, 2, 10, 10, 0, 0));
	ASSERT_EQ(OK, gpu_unref(vm, 2));
	ASSERT_EQ(0, gpu_cursor_move(vm, 60, 60));
	EXPECT_EQ(0, cursor_wrong(look(self), 320, 200, 60, 60, 0x777777, 1));
}

/* ---- two at once ---- */

/* ---- modes ---- */

static uint32_t events(struct vm *vm)
{
	return vio_read(vm, VIRTIO_PCI_CAP_DEVICE_CFG,
			offsetof(struct virtio_gpu_config, events_read), 4);
}

static int clear_events(struct vm *vm, uint32_t which)
{
	return vio_write(vm, VIRTIO_PCI_CAP_DEVICE_CFG,
			 offsetof(struct virtio_gpu_config, events_clear), 4,
			 which);
}

/*
 * Check the size of the screen that both commands report: 0, or what is wrong.
 * The clock of the EDID's preferred mode must be that of 60 Hz, to 1 %.
 */
static int told(struct vm *vm, uint32_t width, uint32_t height)
{
	struct virtio_gpu_cmd_get_edid c = { .scanout = 0 };
	struct virtio_gpu_resp_edid r;
	uint32_t w, h, total, hz100;
	const uint8_t *d = r.edid + 54;
	uint8_t sum = 0;
	int i;

	if (gpu_display_info(vm, &w, &h) != VIRTIO_GPU_RESP_OK_DISPLAY_INFO ||
	    w != width || h != height)
		return 1;
	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_GET_EDID);
	if (gpu_call(vm, &c, sizeof(c), &r, sizeof(r)) !=
	    VIRTIO_GPU_RESP_OK_EDID)
		return 2;
	for (i = 0; i < 128; i++)
		sum += r.edid[i];
	if (sum)
		return 3;
	w = d[2] | (d[4] >> 4) << 8;
	h = d[5] | (d[7] >> 4) << 8;
	if (w != width || h != height)
		return 4;
	total = (w + (d[3] | (d[4] & 15) << 8)) * (h + (d[6] | (d[7] & 15) << 8));
	hz100 = (uint64_t)(d[0] | d[1] << 8) * 1000000 / total;
	return hz100 < 5940 || hz100 > 6060 ? 5 : 0;
}

TEST_F(display, a_new_mode_interrupts_and_is_told)
{
	struct vm *vm = &self->vm;
	uint32_t generation;
	struct gpu_screen s;
	struct nl nl;

	ASSERT_EQ(0, nl_open(&nl));
	ASSERT_EQ(0, told(vm, 1024, 768));
	EXPECT_EQ(0, events(vm));
	generation = cc_read(vm, config_generation);
	EXPECT_EQ(0, irq_wait(vm->irq[0], 0));

	ASSERT_EQ(0, nl_vgpu_set_mode(&nl, vm->uuid, 640, 480));
	EXPECT_EQ(1, irq_wait(vm->irq[0], VMM_TIMEOUT));
	EXPECT_EQ(VIRTIO_GPU_EVENT_DISPLAY, events(vm));
	EXPECT_NE(generation, cc_read(vm, config_generation));
	EXPECT_EQ(0, told(vm, 640, 480));
	/* A bit that is not set cannot be cleared; a cleared event is not repeated. */
	ASSERT_EQ(0, clear_events(vm, ~VIRTIO_GPU_EVENT_DISPLAY));
	EXPECT_EQ(VIRTIO_GPU_EVENT_DISPLAY, events(vm));
	ASSERT_EQ(0, clear_events(vm, VIRTIO_GPU_EVENT_DISPLAY));
	EXPECT_EQ(0, events(vm));
	EXPECT_EQ(0, irq_wait(vm->irq[0], VMM_QUIET));

	/* The mode that it has is no news, but the type's is. */
	ASSERT_EQ(0, nl_vgpu_set_mode(&nl, vm->uuid, 640, 480));
	EXPECT_EQ(0, irq_wait(vm->irq[0], VMM_QUIET));
	EXPECT_EQ(0, events(vm));
	ASSERT_EQ(0, nl_vgpu_set_mode(&nl, vm->uuid, 0, 0));
	EXPECT_EQ(1, irq_wait(vm->irq[0], VMM_TIMEOUT));
	EXPECT_EQ(VIRTIO_GPU_EVENT_DISPLAY, events(vm));
	EXPECT_EQ(0, told(vm, 1024, 768));
	ASSERT_EQ(0, nl_vgpu_set_mode(&nl, vm->uuid, 1024, 768));
	EXPECT_EQ(0, irq_wait(vm->irq[0], VMM_QUIET));

	/* The mode is a proposal: the guest may show any. */
	ASSERT_EQ(0, nl_vgpu_set_mode(&nl, vm->uuid, 640, 480));
	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, 800, 600));
	draw(&s, 1);
	ASSERT_EQ(0, gpu_show(vm, &s));
	EXPECT_EQ(0, wrong(look(self), 800, gpu_rect(0, 0, 800, 600), 1));
	nl_close(&nl);
}

TEST_F(display, a_mode_that_changes_while_the_guest_looks_is_told_again)
{
	struct vm *vm = &self->vm;
	struct nl nl;

	ASSERT_EQ(0, nl_open(&nl));
	ASSERT_EQ(0, nl_vgpu_set_mode(&nl, vm->uuid, 640, 480));
	EXPECT_EQ(1, irq_wait(vm->irq[0], VMM_TIMEOUT));
	EXPECT_EQ(VIRTIO_GPU_EVENT_DISPLAY, events(vm));
	EXPECT_EQ(0, told(vm, 640, 480));
	ASSERT_EQ(0, nl_vgpu_set_mode(&nl, vm->uuid, 800, 600));
	EXPECT_EQ(1, irq_wait(vm->irq[0], VMM_TIMEOUT));
	/* The guest believes that this is about the first. */
	ASSERT_EQ(0, clear_events(vm, VIRTIO_GPU_EVENT_DISPLAY));
	EXPECT_EQ(1, irq_wait(vm->irq[0], VMM_TIMEOUT));
	EXPECT_EQ(VIRTIO_GPU_EVENT_DISPLAY, events(vm));
	EXPECT_EQ(0, told(vm, 800, 600));
	ASSERT_EQ(0, clear_events(vm, VIRTIO_GPU_EVENT_DISPLAY));
	EXPECT_EQ(0, events(vm));
	EXPECT_EQ(0, irq_wait(vm->irq[0], VMM_QUIET));
	nl_close(&nl);
}

TEST_F(display, a_mode_outlives_a_reset_and_its_event_does_not)
{
	struct vm *vm = &self->vm;
	struct nl nl;

	ASSERT_EQ(0, nl_open(&nl));
	ASSERT_EQ(0, nl_vgpu_set_mode(&nl, vm->uuid, 640, 480));
	ASSERT_EQ(0, vio_reset(vm));
	EXPECT_EQ(0, events(vm));
	/* Without a driver there is no interrupt, but for the earlier one. */
	irq_wait(vm->irq[0], 0);
	ASSERT_EQ(0, nl_vgpu_set_mode(&nl, vm->uuid, 800, 600));
	EXPECT_EQ(0, irq_wait(vm->irq[0], VMM_QUIET));
	ASSERT_EQ(0, vm_start(vm));
	EXPECT_EQ(0, told(vm, 800, 600));
	ASSERT_EQ(0, nl_vgpu_set_mode(&nl, vm->uuid, 320, 200));
	EXPECT_EQ(1, irq_wait(vm->irq[0], VMM_TIMEOUT));
	EXPECT_EQ(0, told(vm, 320, 200));
	nl_close(&nl);
}

TEST(a_new_mode_raises_the_line_only_for_a_driver)
{
	struct vm vm;
	struct nl nl;

	ASSERT_EQ(0, nl_open(&nl));
	ASSERT_EQ(0, vm_new(&vm, "small", VMM_RAM));
	ASSERT_EQ(0, vm_discover(&vm));
	ASSERT_EQ(0, vio_reset(&vm));
	ASSERT_EQ(0, irq_intx(&vm));
	ASSERT_EQ(0, nl_vgpu_set_mode(&nl, vm.uuid, 640, 480));
	EXPECT_EQ(0, irq_wait(vm.intx, VMM_QUIET));
	EXPECT_EQ(0, vio_read(&vm, VIRTIO_PCI_CAP_ISR_CFG, 0, 1));

	ASSERT_EQ(0, vio_negotiate(&vm, VMM_FEATURES));
	ASSERT_EQ(0, vio_setup_queue(&vm, VMM_CONTROL));
	ASSERT_EQ(0, vio_driver_ok(&vm));
	ASSERT_EQ(0, nl_vgpu_set_mode(&nl, vm.uuid, 800, 600));
	EXPECT_EQ(1, irq_wait(vm.intx, VMM_TIMEOUT));
	EXPECT_EQ(VIRTIO_PCI_ISR_CONFIG,
		  vio_read(&vm, VIRTIO_PCI_CAP_ISR_CFG, 0, 1));
	EXPECT_EQ(VIRTIO_GPU_EVENT_DISPLAY, events(&vm));
	vm_delete(&vm);
	nl_close(&nl);
}

TEST(every_mode_has_an_edid_of_its_own)
{
	static const uint32_t modes[][2] = {
		{ 64, 64 }, { 65, 67 }, { 320, 200 }, { 1366, 768 },
		{ 255, 257 }, { 256, 256 }, { 1920, 1080 }, { 2160, 1440 },
		{ 3839, 2159 }, { 3840, 64 }, { 64, 2160 }, { 3840, 2160 },
	};
	unsigned int i;
	struct vm vm;
	struct nl nl;

	ASSERT_EQ(0, nl_open(&nl));
	ASSERT_EQ(0, vm_new_started(&vm, "large", VMM_RAM));
	for (i = 0; i < ARRAY_LEN(modes); i++) {
		ASSERT_EQ(0, nl_vgpu_set_mode(&nl, vm.uuid, modes[i][0],
					      modes[i][1]));
		EXPECT_EQ(0, told(&vm, modes[i][0], modes[i][1])) {
			TH_LOG("%u x %u", modes[i][0], modes[i][1]);
		}
	}
	vm_delete(&vm);
	nl_close(&nl);
}

TEST_F(display, two_vgpus_show_each_its_own)
{
	struct virtio_gpu_rect all = gpu_rect(0, 0, 256, 256);
	struct vm *vm = &self->vm, other;
	struct gpu_screen a, b;
	struct vfio_device_gfx_plane_info plane;
	uint32_t *seen;
	size_t len;
	int i, k, ha, hb;

	ASSERT_EQ(0, vm_new_started(&other, "medium", VMM_RAM));
	seen = display_map(&other, &len);
	ASSERT_NE(NULL, seen);
	EXPECT_EQ(0, len % 4096);
	EXPECT_LE(1920 * 1080 * 4, len);
	ASSERT_EQ(0, gpu_screen_blob(vm, &a, 1, 256, 256));
	ASSERT_EQ(0, gpu_screen_blob(&other, &b, 1, 256, 256));
	for (i = 0; i < 30; i++) {
		draw(&a, 2 * i);
		draw(&b, 2 * i + 1);
		for (k = 0; k < 3; k++) {
			ha = gpu_flush_send(vm, 1, all);
			hb = gpu_flush_send(&other, 1, all);
			ASSERT_LE(0, ha);
			ASSERT_LE(0, hb);
			ASSERT_EQ(OK, gpu_result(vm, VMM_CONTROL, ha, NULL, 0,
						 VMM_TIMEOUT));
			ASSERT_EQ(OK, gpu_result(&other, VMM_CONTROL, hb, NULL,
						 0, VMM_TIMEOUT));
		}
		EXPECT_EQ(0, wrong(look(self), 256, all, 2 * i));
		ASSERT_EQ(0, display_plane(&other, &plane));
		EXPECT_EQ(0, wrong(seen, 256, all, 2 * i + 1));
	}
	vm_delete(&other);
}

TEST_HARNESS_MAIN
