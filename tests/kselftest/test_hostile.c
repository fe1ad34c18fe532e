// SPDX-License-Identifier: GPL-2.0-only
/*
 * A guest that does anything at all.  The seed is fixed and printed; whatever
 * happens, the device works after a reset, another vGPU never notices, and
 * nothing stays pinned.
 *
 * Its jobs are flushes that the engine copies.
 * soft: scanout=eager
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include <kselftest_harness.h>

#include "nl.h"
#include "vmm.h"

/* Of each test that does anything at all. */
#define SECONDS	(vmm_long() ? 60 : 3)

FIXTURE(hostile)
{
	struct vm vm;
	struct vm neighbour;
	struct gpu_screen screen;
	struct nl nl;
};

FIXTURE_SETUP(hostile)
{
	ASSERT_EQ(0, nl_open(&self->nl));
	ASSERT_EQ(0, vm_new_started(&self->vm, "small", VMM_RAM));
	ASSERT_EQ(0, vm_new_started(&self->neighbour, "small", VMM_RAM));
	ASSERT_EQ(0, gpu_screen_blob(&self->neighbour, &self->screen, 1, 64,
				     64));
	TH_LOG("seed 20240229");
	srand(20240229);
}

FIXTURE_TEARDOWN(hostile)
{
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	struct nl_vgpu v;
	size_t len;

	/* It was hostile; now it behaves, and is served. */
	EXPECT_EQ(0, ioctl(vm->device, VFIO_DEVICE_RESET));
	vm_forget(vm);
	EXPECT_EQ(0, vm_discover(vm));
	EXPECT_EQ(0, vm_start(vm));
	EXPECT_EQ(0, gpu_screen_2d(vm, &s, 1, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
				   64, 64));
	memset(s.pixels, 0x5a, 64 * 64 * 4);
	EXPECT_EQ(0, gpu_show(vm, &s));
	EXPECT_NE(NULL, display_map(vm, &len));
	if (vm->display) {
		EXPECT_EQ(0x5a5a5a, vm->display[64 * 64 - 1] & 0xffffff);
	}
	EXPECT_EQ(OK, gpu_flush(&self->neighbour, 1, gpu_rect(0, 0, 64, 64)));
	vm_close(vm);
	EXPECT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
	EXPECT_EQ(0, v.pinned);
	EXPECT_EQ(0, v.mem_used);
	vm_delete(vm);
	vm_delete(&self->neighbour);
	nl_close(&self->nl);
}

/* A number of the kind that finds mistakes. */
static uint32_t awkward(void)
{
	static const uint32_t v[] = {
		0, 1, 2, 3, 4, 8, 63, 64, 65, 255, 256, 1023, 1024, 1025, 4095,
		4096, 16384, 16385, 0x7fffffff, 0x80000000, 0xfffffffc,
		0xffffffff,
	};

	return rand() % 4 ? v[rand() % ARRAY_LEN(v)] : (uint32_t)rand();
}

static uint64_t address(struct vm *vm)
{
	switch (rand() % 8) {
	case 0:
		return awkward();
	case 1:
		return (uint64_t)awkward() << 32 | awkward();
	case 2:
		return VMM_RAM_BASE + vm->ram_size - rand() % 64;
	default:
		return VMM_RAM_BASE + (uint64_t)rand() % vm->ram_size;
	}
}

static bool neighbour_is_well(struct vm *vm)
{
	return gpu_flush(vm, 1, gpu_rect(0, 0, 64, 64)) == OK;
}

/* A command with the right layout and wrong contents. */
static size_t random_command(struct vm *vm, uint8_t *buf, size_t room)
{
	struct virtio_gpu_mem_entry e;
	uint32_t *word = (void *)buf;
	size_t len = 24 + 4 * (rand() % 20), i;
	uint32_t n;

	memset(buf, 0, room);
	word[0] = 0x100 + rand() % 0x10;
	if (rand() % 32 == 0)
		word[0] = awkward();
	if (rand() % 4 == 0)
		word[1] = rand() % 4;
	for (i = 6; i < len / 4; i++)
		word[i] = rand() % 2 ? 1u + rand() % 3 : awkward();
	if (rand() % 3 == 0) {
		/* Entries, after what could be a head for them. */
		n = 1 + rand() % 8;
		word[7] = n;
		len = 32;
		for (i = 0; i < n; i++) {
			e = (struct virtio_gpu_mem_entry){
				address(vm) & ~(uint64_t)(rand() % 2 ? 4095 : 0),
				rand() % 2 ? 4096 : awkward() % 200000, 0 };
			memcpy(buf + len, &e, sizeof(e));
			len += sizeof(e);
		}
	}
	return rand() % 16 ? len : (size_t)rand() % len;
}

/* Send a valid command now and then, so that errors find state to spoil. */
static void good_command(struct vm *vm)
{
	uint8_t *mem = vm->ram + (4 << 20);
	uint32_t id = 1 + rand() % 3;

	switch (rand() % 8) {
	case 0:
		gpu_create_2d(vm, id, VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM, 64, 64);
		break;
	case 1:
		gpu_create_blob(vm, id, mem, 1 << 16);
		break;
	case 2:
		gpu_attach(vm, id, mem, 64 * 64 * 4);
		break;
	case 3:
		gpu_set_scanout(vm, id, gpu_rect(0, 0, 64, 64));
		break;
	case 4:
		gpu_set_scanout_blob(vm, id, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
				     64, 64, 256, 0);
		break;
	case 5:
		gpu_transfer(vm, id, gpu_rect(0, 0, 64, 64), 0);
		break;
	case 6:
		gpu_flush(vm, id, gpu_rect(0, 0, 64, 64));
		break;
	case 7:
		gpu_unref(vm, id);
		break;
	}
}

TEST_F_TIMEOUT(hostile, random_commands, 120)
{
	uint64_t end = now_ms() + (uint64_t)SECONDS * 1000;
	struct vm *vm = &self->vm;
	uint8_t buf[512];
	unsigned int n = 0, q;
	size_t len;
	int head, ret;

	while (goes_on(end, n > 64)) {
		if (rand() % 4 == 0)
			good_command(vm);
		q = rand() % 8 == 0;
		len = random_command(vm, buf, sizeof(buf));
		if (q)
			buf[1] = 3;
		head = gpu_send(vm, q, buf, len ? len : 1, rand() % 3 ? 1100 :
				rand() % 64);
		ASSERT_LE(0, head);
		ret = vq_wait(vm, q, head, VMM_TIMEOUT);
		/* Each is answered; none breaks the ring. */
		ASSERT_LE(0, ret);
		if (++n % 64 == 0) {
			ASSERT_TRUE(neighbour_is_well(&self->neighbour));
			/* Long random addresses use up the helper's memory. */
			vm->ram_used = 3 << 20;
		}
	}
	EXPECT_EQ(0, vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET);
	TH_LOG("%u commands", n);
	EXPECT_LT(64, n);
}

static void spoil_rings(struct vm *vm)
{
	struct vmm_vq *vq = &vm->vq[rand() % 2];
	unsigned int i, n = 1 + rand() % 8;
	struct vring_desc *d;

	for (i = 0; i < n; i++) {
		d = rand() % 2 ? &vq->desc[rand() % vq->size] :
			(void *)(vm->ram + (3 << 20) + 16 * (rand() % 1024));
		d->addr = rand() % 3 ? VMM_RAM_BASE + (3 << 20) +
				       16 * (rand() % 1024) : address(vm);
		d->len = rand() % 2 ? 16u * (rand() % 64) : awkward();
		d->flags = rand() % 8;
		d->next = rand() % 4 ? rand() % (unsigned int)vq->size :
				       awkward();
	}
	vq->avail->ring[rand() % vq->size] =
		rand() % 16 ? rand() % (unsigned int)vq->size : awkward();
	vq->avail->idx += rand() % 8 ? 1u : awkward();
	vq->avail->flags = rand() % 2;
}

TEST_F_TIMEOUT(hostile, random_rings, 120)
{
	uint64_t end = now_ms() + (uint64_t)SECONDS * 1000;
	unsigned int n = 0, resets = 0;
	struct vm *vm = &self->vm;

	while (goes_on(end, resets)) {
		spoil_rings(vm);
		vq_kick(vm, rand() % 2);
		if (++n % 64 == 0) {
			ASSERT_TRUE(neighbour_is_well(&self->neighbour));
		}
		if (vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET) {
			vm_forget(vm);
			ASSERT_EQ(0, vm_start(vm));
			resets++;
		}
	}
	TH_LOG("%u kicks, %u resets", n, resets);
	EXPECT_LT(0, resets);
}

TEST_F_TIMEOUT(hostile, random_register_accesses, 120)
{
	static const unsigned int width[] = { 1, 2, 4, 8, 3, 5, 64 };
	uint64_t end = now_ms() + (uint64_t)SECONDS * 1000;
	struct vm *vm = &self->vm;
	unsigned int region, len, n = 0;
	uint8_t buf[64];
	uint64_t off;
	uint32_t v;

	while (goes_on(end, n > 256)) {
		region = rand() % 10;
		len = width[rand() % ARRAY_LEN(width)];
		off = rand() % 4 ? (uint64_t)rand() % 0x4100 : awkward();
		if (region == VFIO_PCI_CONFIG_REGION_INDEX)
			off = rand() % 272;
		else if (rand() % 2)
			off = rand() % 64;	/* the common configuration */
		v = awkward();
		memset(buf, rand(), sizeof(buf));
		memcpy(buf, &v, sizeof(v));
		/* A status of 0 resets, which would make this tame. */
		if (rand() % 2)
			vm_read(vm, region, off, buf, len);
		else
			vm_write(vm, region, off, buf, len);
		if (++n % 64 == 0) {
			ASSERT_TRUE(neighbour_is_well(&self->neighbour));
		}
		if (n % 256 == 0) {
			ASSERT_EQ(0, ioctl(vm->device, VFIO_DEVICE_RESET));
			vm_forget(vm);
			ASSERT_EQ(0, vm_discover(vm));
			ASSERT_EQ(0, vm_start(vm));
		}
	}
	TH_LOG("%u accesses", n);
	EXPECT_LT(256, n);
}

TEST_F_TIMEOUT(hostile, a_doorbell_storm_starves_no_vgpu, 60)
{
	uint64_t end = now_ms() + 1500;
	struct vm *vm = &self->vm;
	unsigned int n = 0, good = 0, i;

	while (goes_on(end, good > 3)) {
		for (i = 0; i < 100; i++, n++)
			vq_kick(vm, n % 2);
		ASSERT_TRUE(neighbour_is_well(&self->neighbour));
		good++;
	}
	TH_LOG("%u doorbells, %u frames of the neighbour", n, good);
	EXPECT_LT(3, good);
}

TEST_F_TIMEOUT(hostile, a_full_ring_of_large_work_starves_no_vgpu, 60)
{
	uint64_t end = now_ms() + 1500;
	struct vm *vm = &self->vm;
	struct virtio_gpu_rect job = gpu_rect(0, 0, 1024, 768);
	unsigned int frames = 0, i;
	struct gpu_screen s;

	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
				   1024, 768));
	while (goes_on(end, frames > 3)) {
		/* As many as fit, while none is done. */
		for (i = 0; i < VMM_MAX_VQ; i++)
			if (gpu_flush_send(vm, 1, job) < 0)
				break;
		ASSERT_TRUE(neighbour_is_well(&self->neighbour));
		frames++;
	}
	TH_LOG("%u frames of the neighbour", frames);
	EXPECT_LT(3, frames);
}

#define FEW_BLOBS	1024
#define MANY_BLOBS	8192

/* Make blobs of a page, return how many; all at the same page. */
static uint32_t blobs(struct vm *vm, uint32_t first, uint32_t nr, const void *page)
{
	uint32_t i;

	for (i = 0; i < nr && gpu_create_blob(vm, first + i, page, 4096) == OK; i++)
		;
	return i;
}

/* Return the time to unmap a page with FEW_BLOBS, beside @others at another page. */
static uint64_t unmap_blobs(struct vm *vm, uint8_t *pages, uint32_t others)
{
	uint64_t iova = vm_addr(vm, pages), start;

	if (vm_start(vm) || blobs(vm, 1, FEW_BLOBS, pages) != FEW_BLOBS ||
	    blobs(vm, 1 + FEW_BLOBS, others, pages + 4096) != others)
		return 0;
	start = now_ns();
	if (vm_unmap(vm, iova, 4096))
		return 0;
	start = now_ns() - start;
	return vm_map(vm, pages, 4096, iova) ? 0 : start;
}

FIXTURE(blobs) {
	struct vm vm;
};

FIXTURE_SETUP(blobs)
{
	ASSERT_EQ(0, vm_new(&self->vm, "medium", VMM_RAM));
}

FIXTURE_TEARDOWN(blobs)
{
	vm_delete(&self->vm);
}

/* Memory that stays mapped does not make the unmapping of other memory slow. */
TEST_F_TIMEOUT(blobs, blobs_elsewhere_do_not_slow_an_unmapping, 120)
{
	uint64_t alone = UINT64_MAX, beside = UINT64_MAX, ns;
	struct vm *vm = &self->vm;
	unsigned int i;
	uint8_t *pages;

	/* All of the guest's memory but two pages is one mapping. */
	pages = vm->ram + VMM_RAM - 2 * 4096;
	ASSERT_EQ(0, vm_unmap(vm, VMM_RAM_BASE, VMM_RAM));
	ASSERT_EQ(0, vm_map(vm, vm->ram, VMM_RAM - 2 * 4096, VMM_RAM_BASE));
	ASSERT_EQ(0, vm_map(vm, pages, 4096, vm_addr(vm, pages)));
	ASSERT_EQ(0, vm_map(vm, pages + 4096, 4096, vm_addr(vm, pages + 4096)));

	/* The least of three each: a busy machine only adds to a time. */
	for (i = 0; i < 3; i++) {
		ns = unmap_blobs(vm, pages, 0);
		ASSERT_NE(0, ns);
		alone = ns < alone ? ns : alone;
		ns = unmap_blobs(vm, pages, MANY_BLOBS);
		ASSERT_NE(0, ns);
		beside = ns < beside ? ns : beside;
	}
	TH_LOG("%u blobs: %lu us; beside %u more: %lu us", FEW_BLOBS, alone / 1000,
	       MANY_BLOBS, beside / 1000);
	EXPECT_GT(4 * alone, beside);
}

TEST_HARNESS_MAIN
