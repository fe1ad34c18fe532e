// SPDX-License-Identifier: GPL-2.0-only
/*
 * Virtqueues of good and of hostile drivers, and guest memory that goes away.
 *
 * Its jobs are flushes that the engine copies.
 * soft: scanout=eager
 * needs: quiet
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "nl.h"
#include "vmm.h"

#define BGRX		VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM
#define NEXT		VRING_DESC_F_NEXT
#define WRITE		VRING_DESC_F_WRITE
#define INDIRECT	VRING_DESC_F_INDIRECT

/* ---- rings that are broken ---- */

FIXTURE(broken)
{
	struct vm vm;
	struct vm bystander;
};

FIXTURE_VARIANT(broken)
{
	void (*hurt)(struct vm *vm, unsigned int q);
};

static void desc(struct vm *vm, unsigned int q, uint16_t i, uint64_t addr,
		 uint32_t len, uint16_t flags, uint16_t next)
{
	vm->vq[q].desc[i] = (struct vring_desc){ addr, len, flags, next };
}

static struct vring_desc *table(struct vm *vm, unsigned int n)
{
	return vm_alloc(vm, n * sizeof(struct vring_desc), 16);
}

static void head_out_of_range(struct vm *vm, unsigned int q)
{
	vq_publish(vm, q, vm->vq[q].size);
}

static void next_out_of_range(struct vm *vm, unsigned int q)
{
	desc(vm, q, 0, VMM_RAM_BASE, 24, NEXT, 0xffff);
	vq_publish(vm, q, 0);
}

static void chain_loops(struct vm *vm, unsigned int q)
{
	desc(vm, q, 0, VMM_RAM_BASE, 24, NEXT, 1);
	desc(vm, q, 1, VMM_RAM_BASE, 24, NEXT, 0);
	vq_publish(vm, q, 0);
}

static void index_jumps(struct vm *vm, unsigned int q)
{
	vm->vq[q].avail->idx += vm->vq[q].size + 1;
}

static void readable_after_writable(struct vm *vm, unsigned int q)
{
	desc(vm, q, 0, VMM_RAM_BASE, 24, WRITE | NEXT, 1);
	desc(vm, q, 1, VMM_RAM_BASE, 24, 0, 0);
	vq_publish(vm, q, 0);
}

static void address_wraps(struct vm *vm, unsigned int q)
{
	desc(vm, q, 0, ~0ull - 8, 24, 0, 0);
	vq_publish(vm, q, 0);
}

static void command_outside_of_memory(struct vm *vm, unsigned int q)
{
	desc(vm, q, 0, 0x1000, 24, NEXT, 1);
	desc(vm, q, 1, VMM_RAM_BASE, 24, WRITE, 0);
	vq_publish(vm, q, 0);
}

static void table_outside_of_memory(struct vm *vm, unsigned int q)
{
	desc(vm, q, 0, VMM_RAM_BASE - 32, 64, INDIRECT, 0);
	vq_publish(vm, q, 0);
}

static void table_of_odd_length(struct vm *vm, unsigned int q)
{
	desc(vm, q, 0, VMM_RAM_BASE, 40, INDIRECT, 0);
	vq_publish(vm, q, 0);
}

static void table_too_long(struct vm *vm, unsigned int q)
{
	desc(vm, q, 0, VMM_RAM_BASE, 16 * 1025, INDIRECT, 0);
	vq_publish(vm, q, 0);
}

static void table_in_a_table(struct vm *vm, unsigned int q)
{
	struct vring_desc *t = table(vm, 2);

	t[0] = (struct vring_desc){ vm_addr(vm, t), 32, INDIRECT, 0 };
	desc(vm, q, 0, vm_addr(vm, t), 32, INDIRECT, 0);
	vq_publish(vm, q, 0);
}

static void table_loops(struct vm *vm, unsigned int q)
{
	struct vring_desc *t = table(vm, 1024);
	unsigned int i;

	for (i = 0; i < 1024; i++)
		t[i] = (struct vring_desc){ VMM_RAM_BASE, 1, NEXT,
					    (i + 1) % 1024 };
	desc(vm, q, 0, vm_addr(vm, t), 16 * 1024, INDIRECT, 0);
	vq_publish(vm, q, 0);
}

static void table_with_next(struct vm *vm, unsigned int q)
{
	struct vring_desc *t = table(vm, 1);

	t[0] = (struct vring_desc){ VMM_RAM_BASE, 24, 0, 0 };
	desc(vm, q, 0, vm_addr(vm, t), 16, INDIRECT | NEXT, 1);
	desc(vm, q, 1, VMM_RAM_BASE, 24, WRITE, 0);
	vq_publish(vm, q, 0);
}

FIXTURE_VARIANT_ADD(broken, head_out_of_range)
{
	.hurt = head_out_of_range,
};

FIXTURE_VARIANT_ADD(broken, next_out_of_range)
{
	.hurt = next_out_of_range,
};

FIXTURE_VARIANT_ADD(broken, chain_loops)
{
	.hurt = chain_loops,
};

FIXTURE_VARIANT_ADD(broken, index_jumps)
{
	.hurt = index_jumps,
};

FIXTURE_VARIANT_ADD(broken, readable_after_writable)
{
	.hurt = readable_after_writable,
};

FIXTURE_VARIANT_ADD(broken, address_wraps)
{
	.hurt = address_wraps,
};

FIXTURE_VARIANT_ADD(broken, command_outside_of_memory)
{
	.hurt = command_outside_of_memory,
};

FIXTURE_VARIANT_ADD(broken, table_outside_of_memory)
{
	.hurt = table_outside_of_memory,
};

FIXTURE_VARIANT_ADD(broken, table_of_odd_length)
{
	.hurt = table_of_odd_length,
};

FIXTURE_VARIANT_ADD(broken, table_too_long)
{
	.hurt = table_too_long,
};

FIXTURE_VARIANT_ADD(broken, table_in_a_table)
{
	.hurt = table_in_a_table,
};

FIXTURE_VARIANT_ADD(broken, table_loops)
{
	.hurt = table_loops,
};

FIXTURE_VARIANT_ADD(broken, table_with_next)
{
	.hurt = table_with_next,
};

FIXTURE_SETUP(broken)
{
	ASSERT_EQ(0, vm_new_started(&self->vm, "small", VMM_RAM));
	ASSERT_EQ(0, vm_new_started(&self->bystander, "small", VMM_RAM));
}

FIXTURE_TEARDOWN(broken)
{
	vm_delete(&self->vm);
	vm_delete(&self->bystander);
}

TEST_F(broken, asks_for_a_reset_and_hurts_no_other_vgpu)
{
	struct vm *vm = &self->vm;
	uint16_t used;
	uint32_t w, h;
	unsigned int q;

	for (q = 0; q < VMM_NR_VQS; q++) {
		ASSERT_EQ(INFO, gpu_display_info(vm, &w, &h));
		used = vm->vq[q].used->idx;
		variant->hurt(vm, q);
		ASSERT_EQ(0, vq_kick(vm, q));
		EXPECT_EQ(1, irq_wait(vm->irq[0], VMM_TIMEOUT));
		EXPECT_TRUE(vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET);
		/* A broken buffer is not handed back, and is reported once. */
		ASSERT_EQ(0, vq_kick(vm, q));
		EXPECT_EQ(0, irq_wait(vm->irq[0], VMM_QUIET / 4));
		EXPECT_EQ(used, vm->vq[q].used->idx);
		EXPECT_EQ(INFO, gpu_display_info(&self->bystander, &w, &h));
		EXPECT_EQ(0, vio_status(&self->bystander) &
			     VIRTIO_CONFIG_S_NEEDS_RESET);
		ASSERT_EQ(0, vm_start(vm));
		EXPECT_EQ(0, vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET);
		EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
	}
}

TEST_F(broken, good_buffers_before_it_are_answered)
{
	struct vm *vm = &self->vm;
	struct virtio_gpu_ctrl_hdr c;
	int head;

	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	/* The broken buffer uses descriptors 0 and 1. */
	vm->vq[VMM_CONTROL].free &= ~3ull;
	head = gpu_send(vm, VMM_CONTROL, &c, sizeof(c), 408);
	ASSERT_LE(0, head);
	ASSERT_EQ(INFO, gpu_result(vm, VMM_CONTROL, head, NULL, 0,
				   VMM_TIMEOUT));
	head = gpu_send(vm, VMM_CONTROL, &c, sizeof(c), 408);
	ASSERT_LE(0, head);
	if (variant->hurt == index_jumps) {
		/* It must be seen first, or it is a part of the jump. */
		ASSERT_EQ(INFO, gpu_result(vm, VMM_CONTROL, head, NULL, 0,
					   VMM_TIMEOUT));
		head = -1;
	}
	variant->hurt(vm, VMM_CONTROL);
	ASSERT_EQ(0, vq_kick(vm, VMM_CONTROL));
	if (head >= 0) {
		EXPECT_EQ(INFO, gpu_result(vm, VMM_CONTROL, head, NULL, 0,
					   VMM_TIMEOUT));
	}
	EXPECT_EQ(1, irq_wait(vm->irq[0], VMM_TIMEOUT));
}

/* ---- rings that are not in memory ---- */

FIXTURE(ring)
{
	struct vm vm;
	struct nl nl;
};

FIXTURE_SETUP(ring)
{
	ASSERT_EQ(0, nl_open(&self->nl));
	ASSERT_EQ(0, vm_new_started(&self->vm, "small", VMM_RAM));
}

FIXTURE_TEARDOWN(ring)
{
	struct nl_vgpu v;

	vm_close(&self->vm);
	EXPECT_EQ(0, nl_vgpu_get(&self->nl, self->vm.uuid, &v));
	EXPECT_EQ(0, v.pinned);
	EXPECT_EQ(0, v.mem_used);
	EXPECT_FALSE(v.open);
	vm_delete(&self->vm);
	nl_close(&self->nl);
}

static uint64_t pinned(struct nl *nl, struct vm *vm)
{
	struct nl_vgpu v;

	return nl_vgpu_get(nl, vm->uuid, &v) ? ~0ull : v.pinned;
}

TEST_F(ring, a_ring_outside_of_memory_asks_for_a_reset)
{
	static const uint64_t addrs[] = {
		0, VMM_RAM_BASE - 4096, VMM_RAM_BASE + VMM_RAM,
		VMM_RAM_BASE + VMM_RAM - 64, 0xfffffffffffff000ull,
		0xfffffffffffffff0ull, VMM_RAM_BASE + 1,
	};
	static const size_t regs[] = {
		VIRTIO_PCI_COMMON_Q_DESCLO, VIRTIO_PCI_COMMON_Q_AVAILLO,
		VIRTIO_PCI_COMMON_Q_USEDLO,
	};
	struct vm *vm = &self->vm;
	uint32_t w, h, good[2];
	unsigned int i, k;

	for (i = 0; i < ARRAY_LEN(addrs); i++) {
		for (k = 0; k < ARRAY_LEN(regs); k++) {
			/* Bytes of alignment: avail is aligned to 2. */
			ASSERT_EQ(0, vio_reset(vm));
			ASSERT_EQ(0, vio_negotiate(vm, VMM_FEATURES));
			cc_write(vm, msix_config, 0);
			cc_write(vm, queue_select, VMM_CONTROL);
			good[0] = addrs[i];
			good[1] = addrs[i] >> 32;
			cc_write(vm, queue_desc_lo, vm_addr(vm, vm->vq[0].desc));
			cc_write(vm, queue_avail_lo,
				 vm_addr(vm, vm->vq[0].avail));
			cc_write(vm, queue_used_lo, vm_addr(vm, vm->vq[0].used));
			vio_write(vm, VIRTIO_PCI_CAP_COMMON_CFG, regs[k], 4,
				  good[0]);
			vio_write(vm, VIRTIO_PCI_CAP_COMMON_CFG, regs[k] + 4, 4,
				  good[1]);
			cc_write(vm, queue_enable, 1);
			ASSERT_EQ(0, vio_driver_ok(vm));
			vq_kick(vm, VMM_CONTROL);
			EXPECT_EQ(1, irq_wait(vm->irq[0], VMM_TIMEOUT)) {
				TH_LOG("address %u, register %u", i, k);
			}
			EXPECT_TRUE(vio_status(vm) &
				    VIRTIO_CONFIG_S_NEEDS_RESET);
		}
	}
	ASSERT_EQ(0, vm_start(vm));
	EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
}

TEST_F(ring, thousands_of_commands_wrap_around_the_ring)
{
	struct vm *vm = &self->vm;
	struct virtio_gpu_ctrl_hdr c;
	int head[32], i, round;

	gpu_hdr(&c, 0x0bad);
	for (round = 0; round < 150; round++) {
		for (i = 0; i < 32; i++) {
			head[i] = gpu_send(vm, VMM_CONTROL, &c, sizeof(c),
					   sizeof(c));
			ASSERT_LE(0, head[i]);
		}
		for (i = 0; i < 32; i++) {
			ASSERT_EQ(VIRTIO_GPU_RESP_ERR_UNSPEC,
				  gpu_result(vm, VMM_CONTROL, head[i], NULL, 0,
					     VMM_TIMEOUT));
		}
	}
	EXPECT_EQ(vm->vq[VMM_CONTROL].avail_idx,
		  vm->vq[VMM_CONTROL].used->idx);
}

TEST_F(ring, an_indirect_table_may_have_1024_entries)
{
	struct vm *vm = &self->vm;
	struct virtio_gpu_resp_display_info info;
	struct virtio_gpu_ctrl_hdr c;
	static struct vmm_seg segs[1024];
	uint8_t *req = vm_alloc(vm, 64, 8), *resp = vm_alloc(vm, 4096, 8);
	unsigned int i;
	int head;

	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	memcpy(req, &c, sizeof(c));
	for (i = 0; i < 1024; i++) {
		/* A byte each; 24 to read, the rest to write. */
		if (i < sizeof(c))
			segs[i] = (struct vmm_seg){ vm_addr(vm, req) + i, 1,
						    false };
		else
			segs[i] = (struct vmm_seg){ vm_addr(vm, resp) + i - 24,
						    1, true };
	}
	head = vq_add(vm, VMM_CONTROL, segs, 1024, true);
	ASSERT_LE(0, head);
	vq_publish(vm, VMM_CONTROL, head);
	ASSERT_EQ(0, vq_kick(vm, VMM_CONTROL));
	EXPECT_EQ(sizeof(info), vq_wait(vm, VMM_CONTROL, head, VMM_TIMEOUT));
	memcpy(&info, resp, sizeof(info));
	EXPECT_EQ(INFO, info.hdr.type);
	EXPECT_EQ(1024, info.pmodes[0].r.width);
}

TEST_F(ring, the_longest_command_is_taken)
{
	struct vm *vm = &self->vm;
	struct virtio_gpu_resource_attach_backing *c;
	struct virtio_gpu_mem_entry *e;
	size_t len = sizeof(*c) + 4000 * sizeof(*e);
	uint64_t at = vm_addr(vm, vm_alloc(vm, 4096, 4096));
	uint32_t i;

	c = calloc(1, len);
	ASSERT_NE(NULL, c);
	gpu_hdr(&c->hdr, VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING);
	c->resource_id = 1;
	c->nr_entries = 4000;
	e = (void *)(c + 1);
	for (i = 0; i < 4000; i++)
		e[i] = (struct virtio_gpu_mem_entry){ at, 64, 0 };
	ASSERT_EQ(OK, gpu_create_2d(vm, 1, BGRX, 100, 100));
	EXPECT_EQ(OK, gpu_call(vm, c, len, NULL, 0));
	EXPECT_EQ(OK, gpu_transfer(vm, 1, gpu_rect(0, 0, 100, 100), 0));
	EXPECT_EQ(OK, gpu_unref(vm, 1));
	free(c);
}

/* ---- memory that goes away ---- */

static int lose_memory(struct vm *vm)
{
	return vm_unmap(vm, VMM_RAM_BASE, vm->ram_size);
}

static int find_memory(struct vm *vm)
{
	return vm_map(vm, vm->ram, vm->ram_size, VMM_RAM_BASE);
}

TEST_F(ring, unmapping_all_memory_leaves_no_pin)
{
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	uint32_t w, h;

	ASSERT_EQ(0, gpu_screen_blob(vm, &s, 1, 64, 64));
	ASSERT_EQ(0, gpu_show(vm, &s));
	EXPECT_LT(0, pinned(&self->nl, vm));
	ASSERT_EQ(0, lose_memory(vm));
	EXPECT_EQ(0, pinned(&self->nl, vm));
	/* The next doorbell finds no ring. */
	ASSERT_EQ(0, vq_kick(vm, VMM_CONTROL));
	EXPECT_EQ(1, irq_wait(vm->irq[0], VMM_TIMEOUT));
	EXPECT_TRUE(vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET);
	ASSERT_EQ(0, find_memory(vm));
	ASSERT_EQ(0, vm_start(vm));
	EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
}

TEST_F(ring, a_blob_whose_memory_went_fails_and_nothing_else)
{
	struct vm *vm = &self->vm;
	uint8_t *mem = aligned_alloc(4096, 1 << 16);
	uint64_t at = 0x80000000ull;
	struct {
		struct virtio_gpu_resource_create_blob c;
		struct virtio_gpu_mem_entry e;
	} c;
	uint64_t before;
	uint32_t w, h;

	ASSERT_NE(NULL, mem);
	memset(mem, 0x55, 1 << 16);
	ASSERT_EQ(0, vm_map(vm, mem, 1 << 16, at));
	memset(&c, 0, sizeof(c));
	gpu_hdr(&c.c.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB);
	c.c.resource_id = 1;
	c.c.blob_mem = VIRTIO_GPU_BLOB_MEM_GUEST;
	c.c.nr_entries = 1;
	c.c.size = 1 << 16;
	c.e.addr = at;
	c.e.length = 1 << 16;
	ASSERT_EQ(INFO, gpu_display_info(vm, &w, &h));
	before = pinned(&self->nl, vm);
	ASSERT_EQ(OK, gpu_call(vm, &c, sizeof(c), NULL, 0));
	ASSERT_EQ(OK, gpu_set_scanout_blob(vm, 1, BGRX, 128, 128, 512, 0));
	ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, 128, 128)));
	EXPECT_LE(before + 16, pinned(&self->nl, vm));
	ASSERT_EQ(0, vm_unmap(vm, at, 1 << 16));
	EXPECT_GE(before + 2, pinned(&self->nl, vm));
	/* A physical GPU's flush reads nothing until the VMM queries the plane. */
	EXPECT_LT(getenv("MGPU_PARENT") ? 0 : VIRTIO_GPU_RESP_ERR_UNSPEC - 1,
		  gpu_flush(vm, 1, gpu_rect(0, 0, 128, 128)));
	EXPECT_EQ(0, vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET);
	EXPECT_EQ(OK, gpu_unref(vm, 1));
	EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
	free(mem);
}

struct unmapper {
	struct vm *vm;
	void *mem;
	uint64_t at;
	size_t len;
	volatile bool stop;
	unsigned int rounds;
	int error;
	int sleep[2];
};

static void *unmap_and_map(void *arg)
{
	struct unmapper *u = arg;

	while (!u->stop && !u->error) {
		u->error = vm_unmap(u->vm, u->at, u->len);
		if (!u->error)
			u->error = vm_map(u->vm, u->mem, u->len, u->at);
		u->rounds++;
	}
	return NULL;
}

/* Unmap and map once, then sleep until there is something to read. */
static void *map_anew_and_sleep(void *arg)
{
	struct unmapper *u = arg;
	char c;

	u->error = vm_unmap(u->vm, u->at, u->len);
	if (!u->error)
		u->error = vm_map(u->vm, u->mem, u->len, u->at);
	u->stop = true;
	if (read(u->sleep[0], &c, 1) != 1)
		u->error = -EIO;
	return NULL;
}

TEST_F_TIMEOUT(ring, memory_that_a_sleeping_thread_mapped_can_be_used, 60)
{
	struct unmapper u = { .vm = &self->vm, .at = 0x80000000ull, .len = 1 << 20 };
	struct vm *vm = &self->vm;
	pthread_t thread;
	unsigned int i;

	u.mem = aligned_alloc(4096, u.len);
	ASSERT_NE(NULL, u.mem);
	ASSERT_EQ(0, vm_map(vm, u.mem, u.len, u.at));
	/* VFIO tells of the unmapping of pages that are pinned. */
	ASSERT_EQ(OK, gpu_create_blob_at(vm, 1, u.at, u.len));
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(0, pipe(u.sleep));
		u.stop = false;
		ASSERT_EQ(0, pthread_create(&thread, NULL, map_anew_and_sleep, &u));
		while (!u.stop)
			sched_yield();
		sleep_ms(20);
		/* It is asleep in the kernel, but not in the ioctl. */
		EXPECT_EQ(OK, gpu_unref(vm, 1));
		EXPECT_EQ(OK, gpu_create_blob_at(vm, 1, u.at, u.len));
		ASSERT_EQ(1, write(u.sleep[1], "", 1));
		ASSERT_EQ(0, pthread_join(thread, NULL));
		EXPECT_EQ(0, u.error);
		close(u.sleep[0]);
		close(u.sleep[1]);
	}
	free(u.mem);
}

TEST_F_TIMEOUT(ring, memory_that_comes_and_goes_under_flushes_is_safe, 120)
{
	struct unmapper u = { .vm = &self->vm, .at = 0x80000000ull,
			      .len = 1 << 20 };
	struct vm *vm = &self->vm;
	struct virtio_gpu_mem_entry e = { u.at, 1 << 20, 0 };
	uint64_t end = now_ms() + (vmm_long() ? 60000 : 2000);
	unsigned int good = 0, bad = 0;
	pthread_t thread;
	uint32_t w, h;
	int ret;

	u.mem = aligned_alloc(4096, u.len);
	ASSERT_NE(NULL, u.mem);
	memset(u.mem, 1, u.len);
	ASSERT_EQ(0, vm_map(vm, u.mem, u.len, u.at));
	ASSERT_EQ(OK, gpu_create_2d(vm, 1, BGRX, 512, 512));
	ASSERT_EQ(0, pthread_create(&thread, NULL, unmap_and_map, &u));
	while (goes_on(end, u.rounds)) {
		ret = gpu_attach_entries(vm, 1, &e, 1);
		if (ret == OK) {
			ret = gpu_transfer(vm, 1, gpu_rect(0, 0, 512, 512), 0);
			ASSERT_LT(0, ret);
			good += ret == OK;
			bad += ret != OK;
			ASSERT_EQ(OK, gpu_detach(vm, 1));
		} else {
			ASSERT_LT(0, ret);
			bad++;
		}
	}
	u.stop = true;
	ASSERT_EQ(0, pthread_join(thread, NULL));
	EXPECT_EQ(0, u.error);
	EXPECT_LT(0, u.rounds);
	TH_LOG("%u transfers went well, %u did not, %u unmaps", good, bad,
	       u.rounds);
	EXPECT_EQ(0, vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET);
	EXPECT_EQ(INFO, gpu_display_info(vm, &w, &h));
	EXPECT_EQ(OK, gpu_unref(vm, 1));
	free(u.mem);
}

TEST_F(ring, rings_that_come_and_go_under_commands_are_safe)
{
	struct vm *vm = &self->vm;
	struct virtio_gpu_ctrl_hdr c;
	uint32_t w, h;
	int i, k;

	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	for (i = 0; i < 40; i++) {
		for (k = 0; k < 10; k++) {
			ASSERT_LE(0, gpu_send(vm, VMM_CONTROL, &c, sizeof(c),
					      408));
		}
		ASSERT_EQ(0, lose_memory(vm));
		ASSERT_EQ(0, pinned(&self->nl, vm));
		ASSERT_EQ(0, find_memory(vm));
		ASSERT_EQ(0, vm_start(vm));
		ASSERT_EQ(INFO, gpu_display_info(vm, &w, &h));
	}
}

TEST_F(ring, a_shown_blob_can_be_unmapped_while_it_is_flushed)
{
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	int i, k;

	for (i = 0; i < 30; i++) {
		vm->ram_used = 2 << 20;
		ASSERT_EQ(0, gpu_screen_blob(vm, &s, 1, 512, 512));
		for (k = 0; k < 5; k++) {
			ASSERT_LE(0, gpu_flush_send(vm, 1,
						    gpu_rect(0, 0, 512, 512)));
		}
		ASSERT_EQ(0, lose_memory(vm));
		ASSERT_EQ(0, pinned(&self->nl, vm));
		ASSERT_EQ(0, find_memory(vm));
		ASSERT_EQ(0, vm_start(vm));
	}
}

/* ---- the host's log ---- */

/* Count new lines of the log that have a text. */
static unsigned int log_lines(int fd, const char *text)
{
	unsigned int n = 0;
	char line[1024];
	ssize_t len;

	/* EPIPE: lines were overwritten before they were read. */
	while ((len = read(fd, line, sizeof(line) - 1)) > 0 || errno == EPIPE) {
		if (len <= 0)
			continue;
		line[len] = '\0';
		n += strstr(line, text) != NULL;
	}
	return n;
}

/* A guest that breaks its ring and resets the device, again and again. */
TEST_F_TIMEOUT(ring, a_guest_cannot_flood_the_log, 120)
{
	struct vm *vm = &self->vm;
	unsigned int broken = 0, lines = 0, allowed;
	uint64_t start = now_ms(), end;
	bool enough;
	int fd;

	fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_LE(0, lseek(fd, 0, SEEK_END));
	/* A burst of 10 in 5 s, as the kernel's rate limits are. */
	do {
		head_out_of_range(vm, VMM_CONTROL);
		ASSERT_EQ(0, vq_kick(vm, VMM_CONTROL));
		/* The worker may be the one that finds it. */
		end = now_ms() + VMM_TIMEOUT;
		while (!(vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET))
			ASSERT_GT(end, now_ms());
		vm_forget(vm);
		ASSERT_EQ(0, vm_start(vm));
		broken++;
		lines += log_lines(fd, "is broken (");
		allowed = 10 * (2 + (unsigned int)((now_ms() - start) / 5000));
		/* A slow machine never breaks many more than it may tell of. */
		enough = broken >= 4 * allowed ||
			 (broken > allowed && now_ms() - start > 60000 * (uint64_t)vmm_slow());
		/* Other tests may have used the burst up. */
	} while (!enough || !lines);
	TH_LOG("%u broken rings, %u lines in the log", broken, lines);
	EXPECT_GE(allowed, lines);
	close(fd);
}

/* ---- a ring that another processor keeps full ---- */

struct filler {
	struct vm *vm;
	int head[VMM_MAX_VQ / 2];
	unsigned int n;
	pthread_t thread;
	atomic_bool stop;
	atomic_uint dry;	/* times that the ring was empty */
};

/* Commands that are answered at once, in buffers that stay the ring's own. */
static int filler_init(struct filler *f, struct vm *vm)
{
	struct virtio_gpu_ctrl_hdr *req = vm_alloc(vm, sizeof(*req), 8);
	void *resp = vm_alloc(vm, 64, 8);
	struct vmm_seg segs[2];

	f->vm = vm;
	if (!req || !resp)
		return -ENOMEM;
	gpu_hdr(req, VIRTIO_GPU_CMD_RESOURCE_UNREF);
	segs[0] = (struct vmm_seg){ vm_addr(vm, req), 32, false };
	segs[1] = (struct vmm_seg){ vm_addr(vm, resp), 64, true };
	for (f->n = 0; f->n < vm->vq[VMM_CONTROL].size / 2u; f->n++) {
		f->head[f->n] = vq_add(vm, VMM_CONTROL, segs, 2, false);
		if (f->head[f->n] < 0)
			return f->head[f->n];
	}
	return 0;
}

static bool is_empty(const struct vmm_vq *vq)
{
	return __atomic_load_n(&vq->used->idx, __ATOMIC_SEQ_CST) ==
	       __atomic_load_n(&vq->avail->idx, __ATOMIC_SEQ_CST);
}

/*
 * Publish each buffer again as soon as it is answered.  Between two publications the
 * ring only drains: if it was empty, it is empty before the second one.
 */
static void fill(struct filler *f)
{
	struct vmm_vq *vq = &f->vm->vq[VMM_CONTROL];
	uint16_t seen = vq->used->idx;
	unsigned int i;

	for (i = 0; i < f->n; i++)
		vq_publish(f->vm, VMM_CONTROL, (uint16_t)f->head[i]);
	while (!atomic_load(&f->stop)) {
		if (seen == __atomic_load_n(&vq->used->idx, __ATOMIC_ACQUIRE))
			continue;
		if (is_empty(vq))
			atomic_fetch_add(&f->dry, 1);
		vq_publish(f->vm, VMM_CONTROL,
			   (uint16_t)vq->used->ring[seen++ % vq->size].id);
	}
}

static void *fill_thread(void *arg)
{
	fill(arg);
	return NULL;
}

/* The doorbell is written by a thread; other processors of the guest have more to do. */
TEST_F_TIMEOUT(ring, a_doorbell_returns_from_a_ring_that_stays_full, 120)
{
	struct vm *vm = &self->vm;
	struct filler f = { 0 };
	unsigned int full = 0, calls, dry;
	bool stayed;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one processor only");
	ASSERT_EQ(0, filler_init(&f, vm));
	ASSERT_EQ(0, pthread_create(&f.thread, NULL, fill_thread, &f));
	for (calls = 0; full < 8; calls++) {
		dry = atomic_load(&f.dry);
		ASSERT_EQ(0, vq_kick(vm, VMM_CONTROL));
		/* In this order: the ring is not empty, and was not. */
		stayed = !is_empty(&vm->vq[VMM_CONTROL]);
		full += stayed && atomic_load(&f.dry) == dry;
	}
	atomic_store(&f.stop, true);
	ASSERT_EQ(0, pthread_join(f.thread, NULL));
	TH_LOG("%u doorbells, the ring stayed full during %u", calls, full);
	EXPECT_EQ(0, vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET);
}

/* The process that keeps the ring full is not the one that is killed. */
TEST_F_TIMEOUT(ring, a_vmm_that_is_killed_on_a_full_ring_ends, 120)
{
	uint64_t before, end;
	struct filler *f;
	struct nl_vgpu v;
	struct vm *vm;
	int status, i;
	pid_t pid;

	vm = mmap(NULL, sizeof(*vm) + sizeof(*f), PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, vm);
	f = (void *)(vm + 1);
	/* The process that fills the ring outlives its parent, the VMM. */
	ASSERT_EQ(0, prctl(PR_SET_CHILD_SUBREAPER, 1));
	for (i = 0; i < 5; i++) {
		vm_close(&self->vm);
		before = nl_stat(&self->nl, self->vm.uuid, MGPU_A_STATS_COMMANDS);
		memset(f, 0, sizeof(*f));
		pid = fork();
		ASSERT_LE(0, pid);
		if (!pid) {
			if (vm_open(vm, self->vm.uuid, VMM_RAM) || vm_start(vm) ||
			    filler_init(f, vm))
				_exit(1);
			if (!fork()) {
				/* It has the guest's memory, and no descriptor. */
				close_range(3, ~0u, 0);
				alarm(60);
				fill(f);
				_exit(0);
			}
			for (;;)
				vq_kick(vm, VMM_CONTROL);
		}
		end = now_ms() + VMM_TIMEOUT;
		while (nl_stat(&self->nl, self->vm.uuid, MGPU_A_STATS_COMMANDS) <
		       before + 1000 && now_ms() < end)
			sleep_ms(1);
		kill(pid, SIGKILL);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_TRUE(WIFSIGNALED(status));
		EXPECT_GT(end, now_ms());
		ASSERT_EQ(0, nl_vgpu_get(&self->nl, self->vm.uuid, &v));
		EXPECT_FALSE(v.open);
		EXPECT_EQ(0, v.pinned);
		atomic_store(&f->stop, true);
		ASSERT_LT(0, wait(NULL));
	}
}

TEST_HARNESS_MAIN
