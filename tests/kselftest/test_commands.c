// SPDX-License-Identifier: GPL-2.0-only
/*
 * virtio-gpu commands: answers, errors, fences, limits (VIRTIO 1.2, section
 * 5.7.6).  The picture is checked in test_display.c.
 */
#include <errno.h>
#include <string.h>

#include <kselftest_harness.h>

#include "nl.h"
#include "vmm.h"

#define BGRX		VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM

FIXTURE(gpu)
{
	struct vm vm;
	struct nl nl;
};

FIXTURE_SETUP(gpu)
{
	ASSERT_EQ(0, nl_open(&self->nl));
	ASSERT_EQ(0, vm_new_started(&self->vm, "small", VMM_RAM));
}

FIXTURE_TEARDOWN(gpu)
{
	struct nl_vgpu v;
	uint32_t w, h;

	/* Whatever the test did, the device goes on ... */
	if (vio_status(&self->vm) & VIRTIO_CONFIG_S_DRIVER_OK) {
		EXPECT_EQ(VIRTIO_GPU_RESP_OK_DISPLAY_INFO,
			  gpu_display_info(&self->vm, &w, &h));
	}
	/* ... and closed it holds nothing. */
	vm_close(&self->vm);
	EXPECT_EQ(0, nl_vgpu_get(&self->nl, self->vm.uuid, &v));
	EXPECT_EQ(0, v.mem_used);
	EXPECT_EQ(0, v.pinned);
	EXPECT_FALSE(v.open);
	vm_delete(&self->vm);
	nl_close(&self->nl);
}

TEST_F(gpu, display_info_tells_the_largest_mode)
{
	struct virtio_gpu_resp_display_info info;
	struct virtio_gpu_ctrl_hdr c;
	int i;

	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	ASSERT_EQ(VIRTIO_GPU_RESP_OK_DISPLAY_INFO,
		  gpu_call(&self->vm, &c, sizeof(c), &info, sizeof(info)));
	EXPECT_EQ(1, info.pmodes[0].enabled);
	EXPECT_EQ(1024, info.pmodes[0].r.width);
	EXPECT_EQ(768, info.pmodes[0].r.height);
	for (i = 1; i < VIRTIO_GPU_MAX_SCANOUTS; i++) {
		EXPECT_EQ(0, info.pmodes[i].enabled);
	}
}

TEST_F(gpu, an_answer_is_as_long_as_it_says)
{
	struct virtio_gpu_resp_display_info info;
	struct virtio_gpu_ctrl_hdr c;
	struct vm *vm = &self->vm;
	int head, len;

	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	head = gpu_send(vm, VMM_CONTROL, &c, sizeof(c), 4096);
	ASSERT_LE(0, head);
	len = vq_wait(vm, VMM_CONTROL, head, VMM_TIMEOUT);
	EXPECT_EQ(sizeof(info), len);
	/* Nothing behind it was written. */
	EXPECT_EQ(0xee, vm->vq[VMM_CONTROL].resp[head * 4096 + sizeof(info)]);
}

TEST_F(gpu, unknown_commands_are_answered_unspec)
{
	static const uint32_t types[] = {
		0, 0x00ff, 0x010e, 0x01ff, VIRTIO_GPU_CMD_CTX_CREATE,
		VIRTIO_GPU_CMD_SUBMIT_3D, VIRTIO_GPU_CMD_RESOURCE_CREATE_3D,
		VIRTIO_GPU_CMD_GET_CAPSET_INFO, VIRTIO_GPU_CMD_GET_CAPSET,
		VIRTIO_GPU_CMD_RESOURCE_ASSIGN_UUID,
		VIRTIO_GPU_CMD_RESOURCE_MAP_BLOB, VIRTIO_GPU_CMD_UPDATE_CURSOR,
		0x1100, 0x1200, 0x7fffffff, 0xffffffff,
	};
	struct virtio_gpu_transfer_host_3d c;
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(types); i++) {
		memset(&c, 0x11, sizeof(c));
		gpu_hdr(&c.hdr, types[i]);
		EXPECT_EQ(UNSPEC, gpu_call(&self->vm, &c, sizeof(c), NULL, 0)) {
			TH_LOG("type 0x%x", types[i]);
		}
	}
}

TEST_F(gpu, truncated_commands_are_refused)
{
	static const struct {
		uint32_t type;
		size_t size;
	} cmds[] = {
		{ VIRTIO_GPU_CMD_GET_EDID,
		  sizeof(struct virtio_gpu_cmd_get_edid) },
		{ VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
		  sizeof(struct virtio_gpu_resource_create_2d) },
		{ VIRTIO_GPU_CMD_RESOURCE_UNREF,
		  sizeof(struct virtio_gpu_resource_unref) },
		{ VIRTIO_GPU_CMD_SET_SCANOUT,
		  sizeof(struct virtio_gpu_set_scanout) },
		{ VIRTIO_GPU_CMD_RESOURCE_FLUSH,
		  sizeof(struct virtio_gpu_resource_flush) },
		{ VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D,
		  sizeof(struct virtio_gpu_transfer_to_host_2d) },
		{ VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
		  sizeof(struct virtio_gpu_resource_attach_backing) },
		{ VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING,
		  sizeof(struct virtio_gpu_resource_detach_backing) },
		{ VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB,
		  sizeof(struct virtio_gpu_resource_create_blob) },
		{ VIRTIO_GPU_CMD_SET_SCANOUT_BLOB,
		  sizeof(struct virtio_gpu_set_scanout_blob) },
	};
	struct vm *vm = &self->vm;
	uint8_t buf[128];
	unsigned int i;
	size_t len;

	for (i = 0; i < ARRAY_LEN(cmds); i++) {
		memset(buf, 0, sizeof(buf));
		gpu_hdr((void *)buf, cmds[i].type);
		for (len = 24; len < cmds[i].size; len++) {
			EXPECT_EQ(PARAM, gpu_call(vm, buf, len, NULL, 0)) {
				TH_LOG("type 0x%x, %zu bytes", cmds[i].type,
				       len);
			}
		}
		for (len = 1; len < 24; len++) {
			EXPECT_EQ(UNSPEC, gpu_call(vm, buf, len, NULL, 0));
		}
	}
}

TEST_F(gpu, edid_is_valid_and_prefers_the_largest_mode)
{
	struct virtio_gpu_cmd_get_edid c = { .scanout = 0 };
	static const uint8_t magic[8] = { 0, 255, 255, 255, 255, 255, 255, 0 };
	struct virtio_gpu_resp_edid r;
	uint32_t size, i, w, h;
	uint8_t sum = 0, *d;

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_GET_EDID);
	ASSERT_EQ(VIRTIO_GPU_RESP_OK_EDID,
		  gpu_call(&self->vm, &c, sizeof(c), &r, sizeof(r)));
	size = r.size;
	ASSERT_LE(128, size);
	ASSERT_EQ(0, size % 128);
	EXPECT_EQ(0, memcmp(r.edid, magic, sizeof(magic)));
	for (i = 0; i < size; i++) {
		sum += r.edid[i];
		if (i % 128 == 127) {
			EXPECT_EQ(0, sum);
		}
	}
	EXPECT_EQ(1, r.edid[18]);
	EXPECT_EQ(size / 128 - 1, r.edid[126]);
	/* The first detailed timing is the preferred mode. */
	d = r.edid + 54;
	EXPECT_NE(0, d[0] | d[1]);
	w = d[2] | (d[4] >> 4) << 8;
	h = d[5] | (d[7] >> 4) << 8;
	EXPECT_EQ(1024, w);
	EXPECT_EQ(768, h);

	c.scanout = 1;
	EXPECT_EQ(NOSCANOUT, gpu_call(&self->vm, &c, sizeof(c), NULL, 0));
}

/* ---- fences ---- */

static void fence(struct virtio_gpu_ctrl_hdr *h, uint32_t flags, uint64_t id)
{
	h->flags = flags;
	h->fence_id = id;
	h->ctx_id = 0xc0ffee;
	h->ring_idx = 5;
}

TEST_F(gpu, fences_come_back_with_answers_of_all_kinds)
{
	struct virtio_gpu_resource_create_2d create = {
		.resource_id = 1, .format = BGRX, .width = 8, .height = 8,
	};
	struct virtio_gpu_resource_unref unref = { .resource_id = 77 };
	struct virtio_gpu_resp_display_info info;
	struct virtio_gpu_ctrl_hdr c, r;
	struct vm *vm = &self->vm;
	uint32_t both = VIRTIO_GPU_FLAG_FENCE | VIRTIO_GPU_FLAG_INFO_RING_IDX;

	/* With data. */
	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	fence(&c, both, 0x1122334455667788ull);
	ASSERT_EQ(VIRTIO_GPU_RESP_OK_DISPLAY_INFO,
		  gpu_call(vm, &c, sizeof(c), &info, sizeof(info)));
	EXPECT_EQ(both, info.hdr.flags);
	EXPECT_EQ(0x1122334455667788ull, info.hdr.fence_id);
	EXPECT_EQ(0xc0ffee, info.hdr.ctx_id);
	EXPECT_EQ(5, info.hdr.ring_idx);

	/* Without. */
	gpu_hdr(&create.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_2D);
	fence(&create.hdr, VIRTIO_GPU_FLAG_FENCE, 2);
	ASSERT_EQ(OK, gpu_call(vm, &create, sizeof(create), &r, sizeof(r)));
	EXPECT_EQ(VIRTIO_GPU_FLAG_FENCE, r.flags);
	EXPECT_EQ(2, r.fence_id);
	EXPECT_EQ(0xc0ffee, r.ctx_id);

	/* An error, from the vGPU's state and from the decoder. */
	gpu_hdr(&unref.hdr, VIRTIO_GPU_CMD_RESOURCE_UNREF);
	fence(&unref.hdr, both, 3);
	ASSERT_EQ(NORES, gpu_call(vm, &unref, sizeof(unref), &r, sizeof(r)));
	EXPECT_EQ(both, r.flags);
	EXPECT_EQ(3, r.fence_id);
	EXPECT_EQ(0xc0ffee, r.ctx_id);
	EXPECT_EQ(5, r.ring_idx);
	gpu_hdr(&c, 0x0fff);
	fence(&c, both, 4);
	ASSERT_EQ(UNSPEC, gpu_call(vm, &c, sizeof(c), &r, sizeof(r)));
	EXPECT_EQ(both, r.flags);
	EXPECT_EQ(4, r.fence_id);
	EXPECT_EQ(0xc0ffee, r.ctx_id);
	EXPECT_EQ(5, r.ring_idx);
}

TEST_F(gpu, fences_come_back_from_jobs)
{
	struct virtio_gpu_resource_flush c = { .resource_id = 1 };
	struct virtio_gpu_transfer_to_host_2d t = { .resource_id = 1 };
	struct virtio_gpu_ctrl_hdr r;
	struct vm *vm = &self->vm;
	struct gpu_screen s;

	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, 16, 16));
	gpu_hdr(&t.hdr, VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D);
	t.r = gpu_rect(0, 0, 16, 16);
	fence(&t.hdr, VIRTIO_GPU_FLAG_FENCE, 10);
	ASSERT_EQ(OK, gpu_call(vm, &t, sizeof(t), &r, sizeof(r)));
	EXPECT_EQ(10, r.fence_id);
	EXPECT_EQ(VIRTIO_GPU_FLAG_FENCE, r.flags);
	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_FLUSH);
	c.r = gpu_rect(0, 0, 16, 16);
	fence(&c.hdr, VIRTIO_GPU_FLAG_FENCE, 11);
	ASSERT_EQ(OK, gpu_call(vm, &c, sizeof(c), &r, sizeof(r)));
	EXPECT_EQ(11, r.fence_id);
	EXPECT_EQ(VIRTIO_GPU_FLAG_FENCE, r.flags);
}

TEST_F(gpu, without_a_fence_nothing_comes_back)
{
	struct virtio_gpu_ctrl_hdr c, r;

	gpu_hdr(&c, 0x0fff);
	c.fence_id = 9;
	c.ctx_id = 9;
	ASSERT_EQ(UNSPEC, gpu_call(&self->vm, &c, sizeof(c), &r, sizeof(r)));
	EXPECT_EQ(0, r.flags);
	EXPECT_EQ(0, r.fence_id);
}

TEST_F(gpu, fenced_commands_complete_in_order)
{
	struct virtio_gpu_transfer_to_host_2d t = { .resource_id = 1 };
	struct virtio_gpu_ctrl_hdr r;
	struct vm *vm = &self->vm;
	struct vmm_vq *vq = &vm->vq[VMM_CONTROL];
	struct gpu_screen s;
	uint64_t expect = 1, end;
	unsigned int sent = 0;
	uint16_t pos;
	int head;

	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, 64, 64));
	gpu_hdr(&t.hdr, VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D);
	end = now_ms() + VMM_TIMEOUT;
	pos = vq->used->idx;
	while (expect <= 500) {
		ASSERT_GT(end, now_ms());
		while (sent < 500 && sent - expect + 1 < 20) {
			/* Large and small jobs in turn. */
			t.r = gpu_rect(0, 0, sent % 2 ? 1 : 64,
				       sent % 2 ? 1 : 64);
			fence(&t.hdr, VIRTIO_GPU_FLAG_FENCE, ++sent);
			head = gpu_send(vm, VMM_CONTROL, &t, sizeof(t),
					sizeof(r));
			ASSERT_LE(0, head);
		}
		if (pos == __atomic_load_n(&vq->used->idx, __ATOMIC_ACQUIRE)) {
			sleep_ms(1);
			continue;
		}
		head = vq->used->ring[pos % vq->size].id;
		pos++;
		ASSERT_EQ(OK, gpu_result(vm, VMM_CONTROL, head, &r, sizeof(r),
					 VMM_TIMEOUT));
		ASSERT_EQ(expect, r.fence_id);
		expect++;
	}
}

/*
 * With several jobs in flight each wakes the engine for those before it.  Here only
 * the job itself can.
 */
TEST_F(gpu, each_job_wakes_an_idle_engine)
{
	struct virtio_gpu_transfer_to_host_2d t = { .resource_id = 1 };
	struct virtio_gpu_ctrl_hdr r;
	struct vm *vm = &self->vm;
	struct gpu_screen s;
	int i;

	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, BGRX, 16, 16));
	gpu_hdr(&t.hdr, VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D);
	t.r = gpu_rect(0, 0, 16, 16);
	for (i = 0; i < 256; i++) {
		ASSERT_EQ(OK, gpu_call(vm, &t, sizeof(t), &r, sizeof(r))) {
			TH_LOG("job %d", i);
		}
		/* The engine finds no job, and sleeps. */
		sleep_ms(1);
	}
}

/* ---- resources ---- */

TEST_F(gpu, resource_ids_are_checked)
{
	struct virtio_gpu_rect all = gpu_rect(0, 0, 8, 8);
	struct vm *vm = &self->vm;
	uint8_t *mem = vm_alloc(vm, 4096, 4096);

	EXPECT_EQ(NORES, gpu_create_2d(vm, 0, BGRX, 8, 8));
	EXPECT_EQ(NORES, gpu_create_blob(vm, 0, mem, 4096));
	EXPECT_EQ(NORES, gpu_unref(vm, 5));
	EXPECT_EQ(NORES, gpu_attach(vm, 5, mem, 4096));
	EXPECT_EQ(NORES, gpu_detach(vm, 5));
	EXPECT_EQ(NORES, gpu_transfer(vm, 5, all, 0));
	EXPECT_EQ(NORES, gpu_flush(vm, 5, all));
	EXPECT_EQ(NORES, gpu_set_scanout(vm, 5, all));
	EXPECT_EQ(NORES, gpu_set_scanout_blob(vm, 5, BGRX, 8, 8, 32, 0));

	EXPECT_EQ(OK, gpu_create_2d(vm, 5, BGRX, 8, 8));
	EXPECT_EQ(NORES, gpu_create_2d(vm, 5, BGRX, 8, 8));
	EXPECT_EQ(NORES, gpu_create_blob(vm, 5, mem, 4096));
	EXPECT_EQ(OK, gpu_unref(vm, 5));
	EXPECT_EQ(NORES, gpu_unref(vm, 5));
	EXPECT_EQ(OK, gpu_create_blob(vm, 0xffffffff, mem, 4096));
	EXPECT_EQ(OK, gpu_unref(vm, 0xffffffff));
}

TEST_F(gpu, one_guest_does_not_see_another_s_resources)
{
	struct vm other;

	ASSERT_EQ(0, vm_new_started(&other, "small", VMM_RAM));
	EXPECT_EQ(OK, gpu_create_2d(&self->vm, 1, BGRX, 8, 8));
	EXPECT_EQ(NORES, gpu_unref(&other, 1));
	EXPECT_EQ(OK, gpu_create_2d(&other, 1, BGRX, 8, 8));
	EXPECT_EQ(OK, gpu_unref(&self->vm, 1));
	EXPECT_EQ(OK, gpu_unref(&other, 1));
	vm_delete(&other);
}

TEST_F(gpu, bad_sizes_and_formats_are_refused)
{
	struct vm *vm = &self->vm;

	EXPECT_EQ(PARAM, gpu_create_2d(vm, 1, 0, 8, 8));
	EXPECT_EQ(PARAM, gpu_create_2d(vm, 1, 5, 8, 8));
	EXPECT_EQ(PARAM, gpu_create_2d(vm, 1, 0xffffffff, 8, 8));
	EXPECT_EQ(PARAM, gpu_create_2d(vm, 1, BGRX, 0, 8));
	EXPECT_EQ(PARAM, gpu_create_2d(vm, 1, BGRX, 8, 0));
	EXPECT_EQ(PARAM, gpu_create_2d(vm, 1, BGRX, 0xffffffff, 0xffffffff));
	EXPECT_EQ(PARAM, gpu_create_2d(vm, 1, BGRX, 0x40000000, 4));
	EXPECT_EQ(PARAM, gpu_create_2d(vm, 1, BGRX, 16385, 1));
	EXPECT_EQ(OK, gpu_create_2d(vm, 1, BGRX, 16384, 1));
	EXPECT_EQ(OK, gpu_unref(vm, 1));
}

TEST_F(gpu, backing_outside_of_memory_is_refused)
{
	struct virtio_gpu_mem_entry bad[] = {
		{ 0, 4096, 0 },
		{ VMM_RAM_BASE - 4096, 8192, 0 },
		{ VMM_RAM_BASE + VMM_RAM - 4096, 8192, 0 },
		{ 0xfffffffffffff000ull, 4096, 0 },
		{ VMM_RAM_BASE, 0, 0 },
		{ ~0ull, 0xffffffff, 0 },
	};
	struct virtio_gpu_mem_entry two[2] = {
		{ VMM_RAM_BASE + 0x1000, 4096, 0 },
	};
	struct vm *vm = &self->vm;
	struct nl_vgpu before, after;
	unsigned int i;

	ASSERT_EQ(OK, gpu_create_2d(vm, 1, BGRX, 8, 8));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &before));
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		EXPECT_EQ(PARAM, gpu_attach_entries(vm, 1, &bad[i], 1)) {
			TH_LOG("entry %u", i);
		}
		/* Good ones in front are let go again. */
		two[1] = bad[i];
		EXPECT_EQ(PARAM, gpu_attach_entries(vm, 1, two, 2));
	}
	EXPECT_EQ(PARAM, gpu_attach_entries(vm, 1, NULL, 0));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &after));
	EXPECT_EQ(before.mem_used, after.mem_used);
	EXPECT_GE(before.pinned + 1, after.pinned);
}

TEST_F(gpu, attach_twice_and_detach_twice_are_refused)
{
	struct vm *vm = &self->vm;
	uint8_t *mem = vm_alloc(vm, 4096, 4096);
	int i;

	ASSERT_EQ(OK, gpu_create_2d(vm, 1, BGRX, 8, 8));
	EXPECT_EQ(UNSPEC, gpu_detach(vm, 1));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(OK, gpu_attach(vm, 1, mem, 256));
		EXPECT_EQ(UNSPEC, gpu_attach(vm, 1, mem, 256));
		EXPECT_EQ(OK, gpu_detach(vm, 1));
		EXPECT_EQ(UNSPEC, gpu_detach(vm, 1));
	}
	EXPECT_EQ(UNSPEC, gpu_transfer(vm, 1, gpu_rect(0, 0, 8, 8), 0));
}

TEST_F(gpu, transfers_stay_inside)
{
	struct vm *vm = &self->vm;
	uint8_t *mem = vm_alloc(vm, 4096, 4096);

	ASSERT_EQ(OK, gpu_create_2d(vm, 1, BGRX, 8, 8));
	ASSERT_EQ(OK, gpu_attach(vm, 1, mem, 256));
	EXPECT_EQ(OK, gpu_transfer(vm, 1, gpu_rect(0, 0, 8, 8), 0));
	EXPECT_EQ(OK, gpu_transfer(vm, 1, gpu_rect(7, 7, 1, 1), 252));
	EXPECT_EQ(PARAM, gpu_transfer(vm, 1, gpu_rect(0, 0, 9, 8), 0));
	EXPECT_EQ(PARAM, gpu_transfer(vm, 1, gpu_rect(0, 0, 8, 9), 0));
	EXPECT_EQ(PARAM, gpu_transfer(vm, 1, gpu_rect(8, 0, 1, 1), 0));
	EXPECT_EQ(PARAM, gpu_transfer(vm, 1, gpu_rect(~0u, 0, 1, 1), 0));
	EXPECT_EQ(PARAM, gpu_transfer(vm, 1, gpu_rect(1, 1, ~0u, ~0u), 0));
	EXPECT_EQ(PARAM, gpu_transfer(vm, 1, gpu_rect(0, 0, 8, 8), 4));
	EXPECT_EQ(PARAM, gpu_transfer(vm, 1, gpu_rect(7, 7, 1, 1), 253));
	EXPECT_EQ(PARAM, gpu_transfer(vm, 1, gpu_rect(0, 0, 1, 1), ~0ull));
	EXPECT_EQ(PARAM, gpu_transfer(vm, 1, gpu_rect(0, 0, 1, 1), 1ull << 63));
	EXPECT_EQ(PARAM, gpu_flush(vm, 1, gpu_rect(0, 0, 9, 8)));
	EXPECT_EQ(PARAM, gpu_flush(vm, 1, gpu_rect(~0u, 0, 2, 1)));
	EXPECT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, 8, 8)));
}

TEST_F(gpu, scanouts_are_checked)
{
	struct virtio_gpu_set_scanout c = {
		.scanout_id = 1, .resource_id = 1, .r = { 0, 0, 8, 8 },
	};
	struct vm *vm = &self->vm;
	uint8_t *mem = vm_alloc(vm, 4096, 4096);

	ASSERT_EQ(OK, gpu_create_2d(vm, 1, BGRX, 8, 8));
	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_SET_SCANOUT);
	EXPECT_EQ(NOSCANOUT, gpu_call(vm, &c, sizeof(c), NULL, 0));
	c.scanout_id = 0xffffffff;
	EXPECT_EQ(NOSCANOUT, gpu_call(vm, &c, sizeof(c), NULL, 0));
	EXPECT_EQ(PARAM, gpu_set_scanout(vm, 1, gpu_rect(0, 0, 9, 8)));
	EXPECT_EQ(PARAM, gpu_set_scanout(vm, 1, gpu_rect(1, 0, 8, 8)));
	EXPECT_EQ(PARAM, gpu_set_scanout(vm, 1, gpu_rect(0, 0, 0, 8)));
	EXPECT_EQ(PARAM, gpu_set_scanout(vm, 1, gpu_rect(~0u, 0, 2, 8)));
	EXPECT_EQ(OK, gpu_set_scanout(vm, 1, gpu_rect(0, 0, 8, 8)));
	/* 0 turns it off, whatever the rectangle says. */
	EXPECT_EQ(OK, gpu_set_scanout(vm, 0, gpu_rect(9, 9, 9, 9)));
	/* A 2D resource is none for SET_SCANOUT_BLOB, nor the other way. */
	EXPECT_EQ(PARAM, gpu_set_scanout_blob(vm, 1, BGRX, 8, 8, 32, 0));
	ASSERT_EQ(OK, gpu_create_blob(vm, 2, mem, 4096));
	EXPECT_EQ(PARAM, gpu_set_scanout(vm, 2, gpu_rect(0, 0, 8, 8)));
}

TEST_F(gpu, larger_than_the_largest_mode_is_refused)
{
	struct vm *vm = &self->vm;

	ASSERT_EQ(OK, gpu_create_2d(vm, 1, BGRX, 1025, 768));
	EXPECT_EQ(PARAM, gpu_set_scanout(vm, 1, gpu_rect(0, 0, 1025, 768)));
	EXPECT_EQ(OK, gpu_set_scanout(vm, 1, gpu_rect(1, 0, 1024, 768)));
}

TEST_F(gpu, blob_scanouts_stay_inside)
{
	struct vm *vm = &self->vm;
	uint8_t *mem = vm_alloc(vm, 8192, 4096);

	ASSERT_EQ(OK, gpu_create_blob(vm, 1, mem, 4096));
	EXPECT_EQ(OK, gpu_set_scanout_blob(vm, 1, BGRX, 32, 32, 128, 0));
	EXPECT_EQ(PARAM, gpu_set_scanout_blob(vm, 1, BGRX, 32, 33, 128, 0));
	EXPECT_EQ(PARAM, gpu_set_scanout_blob(vm, 1, BGRX, 32, 32, 128, 4));
	EXPECT_EQ(PARAM, gpu_set_scanout_blob(vm, 1, BGRX, 32, 32, 132, 0));
	EXPECT_EQ(PARAM, gpu_set_scanout_blob(vm, 1, BGRX, 32, 32, 124, 0));
	EXPECT_EQ(PARAM, gpu_set_scanout_blob(vm, 1, BGRX, 1, 2, 0xfffffffc,
					      0));
	EXPECT_EQ(PARAM, gpu_set_scanout_blob(vm, 1, BGRX, 1, 1, 4,
					      0xfffffffc));
	EXPECT_EQ(PARAM, gpu_set_scanout_blob(vm, 1, 0, 8, 8, 32, 0));
	EXPECT_EQ(PARAM, gpu_set_scanout_blob(vm, 1, BGRX, 0, 8, 32, 0));
	/* The last row need not be a whole stride. */
	EXPECT_EQ(OK, gpu_set_scanout_blob(vm, 1, BGRX, 8, 8, 32,
					   4096 - 7 * 32 - 32));
	/* The mode, not the blob, is the limit of what follows. */
	EXPECT_EQ(PARAM, gpu_flush(vm, 1, gpu_rect(0, 0, 9, 8)));
	EXPECT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, 8, 8)));
}

TEST_F(gpu, blobs_are_checked)
{
	struct {
		struct virtio_gpu_resource_create_blob c;
		struct virtio_gpu_mem_entry e;
	} c;
	struct vm *vm = &self->vm;
	uint32_t i;

	memset(&c, 0, sizeof(c));
	gpu_hdr(&c.c.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB);
	c.c.resource_id = 1;
	c.c.nr_entries = 1;
	c.c.size = 4096;
	c.e.addr = vm_addr(vm, vm_alloc(vm, 4096, 4096));
	c.e.length = 4096;
	for (i = 0; i < 5; i++) {
		if (i == VIRTIO_GPU_BLOB_MEM_GUEST)
			continue;
		c.c.blob_mem = i;
		EXPECT_EQ(PARAM, gpu_call(vm, &c, sizeof(c), NULL, 0));
	}
	c.c.blob_mem = VIRTIO_GPU_BLOB_MEM_GUEST;
	c.c.size = 4097;
	EXPECT_EQ(PARAM, gpu_call(vm, &c, sizeof(c), NULL, 0));
	c.c.size = 0;
	EXPECT_EQ(PARAM, gpu_call(vm, &c, sizeof(c), NULL, 0));
	c.c.size = 4096;
	c.c.nr_entries = 2;
	EXPECT_EQ(PARAM, gpu_call(vm, &c, sizeof(c), NULL, 0));
	c.c.nr_entries = 0xffffffff;
	EXPECT_EQ(PARAM, gpu_call(vm, &c, sizeof(c), NULL, 0));
	c.c.nr_entries = 1;
	c.e.addr = 0;
	EXPECT_EQ(PARAM, gpu_call(vm, &c, sizeof(c), NULL, 0));
	EXPECT_EQ(NORES, gpu_unref(vm, 1));
}

TEST_F(gpu, cursors_are_checked_and_never_block)
{
	struct virtio_gpu_update_cursor c = { .pos = { .scanout_id = 3 } };
	struct vm *vm = &self->vm;
	int head;

	ASSERT_EQ(OK, gpu_create_2d(vm, 1, BGRX, 32, 32));
	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_UPDATE_CURSOR);
	head = gpu_send(vm, VMM_CURSOR, &c, sizeof(c), sizeof(c.hdr));
	ASSERT_LE(0, head);
	EXPECT_EQ(NOSCANOUT, gpu_result(vm, VMM_CURSOR, head, NULL, 0,
					VMM_TIMEOUT));
	c.pos.scanout_id = 0;
	c.resource_id = 99;
	head = gpu_send(vm, VMM_CURSOR, &c, sizeof(c), sizeof(c.hdr));
	ASSERT_LE(0, head);
	EXPECT_EQ(NORES, gpu_result(vm, VMM_CURSOR, head, NULL, 0,
				    VMM_TIMEOUT));
	/* A cursor is 64x64. */
	c.resource_id = 1;
	head = gpu_send(vm, VMM_CURSOR, &c, sizeof(c), sizeof(c.hdr));
	ASSERT_LE(0, head);
	EXPECT_EQ(PARAM, gpu_result(vm, VMM_CURSOR, head, NULL, 0,
				    VMM_TIMEOUT));
	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	head = gpu_send(vm, VMM_CURSOR, &c, sizeof(c), 408);
	ASSERT_LE(0, head);
	EXPECT_EQ(UNSPEC, gpu_result(vm, VMM_CURSOR, head, NULL, 0,
				     VMM_TIMEOUT));
}

/* ---- answers that do not fit ---- */

TEST_F(gpu, no_room_for_an_answer_is_no_error)
{
	struct virtio_gpu_resource_create_2d c = {
		.resource_id = 1, .format = BGRX, .width = 8, .height = 8,
	};
	struct vm *vm = &self->vm;
	int head;

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_2D);
	head = gpu_send(vm, VMM_CONTROL, &c, sizeof(c), 0);
	ASSERT_LE(0, head);
	EXPECT_EQ(0, vq_wait(vm, VMM_CONTROL, head, VMM_TIMEOUT));
	/* It was carried out all the same. */
	EXPECT_EQ(NORES, gpu_create_2d(vm, 1, BGRX, 8, 8));
}

TEST_F(gpu, an_answer_never_exceeds_its_buffer)
{
	struct virtio_gpu_ctrl_hdr c;
	struct vm *vm = &self->vm;
	unsigned int room, i;
	uint8_t *resp;
	int head, len;

	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	for (room = 1; room < 500; room += room < 30 ? 1 : 37) {
		head = gpu_send(vm, VMM_CONTROL, &c, sizeof(c), room);
		ASSERT_LE(0, head);
		len = vq_wait(vm, VMM_CONTROL, head, VMM_TIMEOUT);
		ASSERT_LE(0, len);
		EXPECT_GE(room, len);
		resp = vm->vq[VMM_CONTROL].resp + head * 4096;
		for (i = room; i < 4096 && resp[i] == 0xee; i++)
			;
		EXPECT_EQ(4096, i) {
			TH_LOG("%u bytes of room, byte %u written", room, i);
		}
	}
}

TEST_F(gpu, an_answer_may_be_scattered)
{
	struct virtio_gpu_resp_display_info info;
	struct virtio_gpu_ctrl_hdr c;
	struct vmm_seg segs[60];
	struct vm *vm = &self->vm;
	uint8_t *req = vm_alloc(vm, 64, 1), *resp;
	unsigned int i, n = 0, at;
	int head, len;

	/* Odd addresses and odd lengths, across a page boundary. */
	resp = vm_alloc(vm, 8192, 4096);
	resp += 4096 - 101;
	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	memcpy(req + 1, &c, sizeof(c));
	for (at = 0; at < sizeof(c); at += 5) {
		segs[n++] = (struct vmm_seg){ vm_addr(vm, req + 1 + at),
			at + 5 > sizeof(c) ? sizeof(c) - at : 5, false };
	}
	for (at = 0; at < sizeof(info); at += 13) {
		segs[n++] = (struct vmm_seg){ vm_addr(vm, resp + at),
			at + 13 > sizeof(info) ? sizeof(info) - at : 13,
			true };
	}
	for (i = 0; i < 2; i++) {
		memset(resp, 0, sizeof(info));
		head = vq_add(vm, VMM_CONTROL, segs, n, i);
		ASSERT_LE(0, head);
		vq_publish(vm, VMM_CONTROL, head);
		ASSERT_EQ(0, vq_kick(vm, VMM_CONTROL));
		len = vq_wait(vm, VMM_CONTROL, head, VMM_TIMEOUT);
		EXPECT_EQ(sizeof(info), len);
		memcpy(&info, resp, sizeof(info));
		EXPECT_EQ(VIRTIO_GPU_RESP_OK_DISPLAY_INFO, info.hdr.type);
		EXPECT_EQ(1024, info.pmodes[0].r.width);
	}
}

TEST_F(gpu, an_answer_to_nowhere_breaks_nothing_else)
{
	struct virtio_gpu_ctrl_hdr c;
	struct vm *vm = &self->vm;
	struct vmm_seg segs[2];
	uint8_t *req = vm_alloc(vm, 64, 8);
	uint32_t w, h;
	int head;

	gpu_hdr(&c, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	memcpy(req, &c, sizeof(c));
	segs[0] = (struct vmm_seg){ vm_addr(vm, req), sizeof(c), false };
	segs[1] = (struct vmm_seg){ 0x1000, 408, true };
	head = vq_add(vm, VMM_CONTROL, segs, 2, false);
	ASSERT_LE(0, head);
	vq_publish(vm, VMM_CONTROL, head);
	ASSERT_EQ(0, vq_kick(vm, VMM_CONTROL));
	/* Either it is handed back empty, or the ring is broken: 2.1.2. */
	if (vq_wait(vm, VMM_CONTROL, head, 2000) < 0) {
		EXPECT_TRUE(vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET);
		ASSERT_EQ(0, vm_start(vm));
	}
	EXPECT_EQ(VIRTIO_GPU_RESP_OK_DISPLAY_INFO,
		  gpu_display_info(vm, &w, &h));
}

/* ---- limits ---- */

TEST_F(gpu, the_memory_limit_is_enforced)
{
	struct vm *vm = &self->vm;
	struct nl_vgpu v;
	uint32_t id, n;
	uint64_t each = 1024 * 1024 * 4;

	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
	ASSERT_LT(each, v.mem_limit);
	EXPECT_EQ(0, v.mem_used);
	n = v.mem_limit / each;
	for (id = 1; id <= n; id++) {
		ASSERT_EQ(OK, gpu_create_2d(vm, id, BGRX, 1024, 1024));
	}
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
	EXPECT_GE(v.mem_limit, v.mem_used);
	EXPECT_LE(n * each, v.mem_used);
	EXPECT_EQ(NOMEM, gpu_create_2d(vm, id, BGRX, 1024, 1024));
	EXPECT_EQ(NORES, gpu_unref(vm, id));
	/* Memory that was given back can be allocated again. */
	ASSERT_EQ(OK, gpu_unref(vm, 3));
	EXPECT_EQ(OK, gpu_create_2d(vm, id, BGRX, 1024, 1024));
	for (id = 1; id <= n + 1; id++) {
		EXPECT_EQ(id == 3 ? NORES : OK, gpu_unref(vm, id));
	}
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
	EXPECT_EQ(0, v.mem_used);
}

TEST_F(gpu, the_largest_resource_is_beyond_the_limit)
{
	EXPECT_EQ(NOMEM, gpu_create_2d(&self->vm, 1, BGRX, 16384, 16384));
	EXPECT_EQ(OK, gpu_create_2d(&self->vm, 1, BGRX, 64, 64));
}

/* Return a number from the description of a type, 0 if it has none. */
static uint32_t type_limit(const char *type, const char *name)
{
	char path[256], text[256];
	const char *at;

	if (mdev_type_path(type, "description", path, sizeof(path)) ||
	    sysfs_read(path, text, sizeof(text)) < 0)
		return 0;
	at = strstr(text, name);
	return at ? (uint32_t)strtoul(at + strlen(name), NULL, 10) : 0;
}

/*
 * However small resources are, a guest cannot have them without end: a page counts for
 * each, and the type limits their number.
 */
TEST_F_TIMEOUT(gpu, tiny_resources_count_too, 120)
{
	struct virtio_gpu_resource_create_2d c = {
		.format = BGRX, .width = 1, .height = 1,
	};
	struct vm *vm = &self->vm;
	uint32_t id = 0, refused = 0, made = 0;
	int head[24], i, ret;

	gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_2D);
	while (!refused && id < 100000) {
		for (i = 0; i < (int)ARRAY_LEN(head); i++) {
			c.resource_id = ++id;
			head[i] = gpu_send(vm, VMM_CONTROL, &c, sizeof(c),
					   sizeof(c.hdr));
			ASSERT_LE(0, head[i]);
		}
		for (i = 0; i < (int)ARRAY_LEN(head); i++) {
			ret = gpu_result(vm, VMM_CONTROL, head[i], NULL, 0,
					 VMM_TIMEOUT);
			if (ret == OK) {
				made++;
				continue;
			}
			ASSERT_EQ(NOMEM, ret);
			refused++;
		}
	}
	EXPECT_NE(0, refused);
	EXPECT_EQ(type_limit("small", "resources"), made);
	EXPECT_EQ(0, vio_reset(vm));
	EXPECT_EQ(0, vm_start(vm));
	EXPECT_EQ(OK, gpu_create_2d(vm, 1, BGRX, 1024, 1024));
}

/* A page that is named many times pins no more than the limit allows. */
TEST_F(gpu, backing_that_repeats_a_page_counts_each_time)
{
	struct virtio_gpu_mem_entry e[64];
	struct vm *vm = &self->vm;
	uint64_t at = vm_addr(vm, vm_alloc(vm, 4 << 20, 4096));
	struct nl_vgpu v;
	unsigned int i;
	int ret = OK;

	for (i = 0; i < ARRAY_LEN(e); i++)
		e[i] = (struct virtio_gpu_mem_entry){ at, 4 << 20, 0 };
	ASSERT_EQ(OK, gpu_create_2d(vm, 1, BGRX, 8, 8));
	ret = gpu_attach_entries(vm, 1, e, ARRAY_LEN(e));
	EXPECT_EQ(NOMEM, ret);
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
	EXPECT_GE(v.mem_limit, v.pinned * 4096 + (1 << 20));
}

TEST_F(gpu, commands_and_errors_are_counted)
{
	struct vm *vm = &self->vm;
	struct vmm_vq *vq = &vm->vq[VMM_CONTROL];
	uint64_t kicks = vq->kicks, interrupts;
	struct nl_vgpu a, b;
	uint32_t w, h;
	int i;

	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &a));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(VIRTIO_GPU_RESP_OK_DISPLAY_INFO,
			  gpu_display_info(vm, &w, &h));
	}
	for (i = 0; i < 7; i++) {
		ASSERT_EQ(NORES, gpu_unref(vm, 1));
	}
	/* The last one's interrupt may come after its answer. */
	vq_interrupt(vm, VMM_CONTROL, vq->interrupts ? 0 : VMM_TIMEOUT);
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &b));
	EXPECT_EQ(17, b.stats[MGPU_A_STATS_COMMANDS] -
		      a.stats[MGPU_A_STATS_COMMANDS]);
	EXPECT_EQ(7, b.stats[MGPU_A_STATS_COMMAND_ERRORS] -
		     a.stats[MGPU_A_STATS_COMMAND_ERRORS]);
	/* While the device looks at the queue the driver rings none. */
	EXPECT_EQ(vq->kicks - kicks, b.stats[MGPU_A_STATS_DOORBELLS] -
				     a.stats[MGPU_A_STATS_DOORBELLS]);
	/* An interrupt may be for several answers. */
	interrupts = b.stats[MGPU_A_STATS_INTERRUPTS] -
		     a.stats[MGPU_A_STATS_INTERRUPTS];
	EXPECT_LT(0, vq->interrupts);
	EXPECT_LE(vq->interrupts, interrupts);
	EXPECT_GE(17, interrupts);
}

TEST_HARNESS_MAIN
