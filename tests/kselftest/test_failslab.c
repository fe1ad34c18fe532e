// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory runs out: each allocation of an operation fails in turn, and in the end
 * all from some point on.  The operation succeeds or returns an error, leaves nothing
 * behind, and works afterwards.  kmemleak reports leaks at the end of the run, and
 * KASAN every use after free.
 *
 * lib/failslab.h says how.  A listener has joined both groups of events, so that they are
 * made, and fail, too.
 * Needs a kernel with fault injection (KERNEL=debug).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "../../kmod/vfio/device.h"
#include "compute.h"
#include "failslab.h"

#define BGRX		VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM
#define RAM		(4u << 20)
#define SIDE		64u	/* of a picture or a job, pixels */
/*
 * Of the resource or context that is made: so far from the others that the table of
 * them has to grow.
 */
#define ID		5000

/* ---- what an operation may answer ---- */

/* ENOSPC: tmpfs', for the memory that is to be the machine's. */
static bool is_open(int ret)
{
	return ret == -ENOMEM || ret == -ENOSPC;
}

/* Netlink has no memory for the answer, or the module none for the request. */
static bool is_netlink(int ret)
{
	return ret == -ENOMEM || ret == -ENOBUFS;
}

/* ---- the harness's part ---- */

FIXTURE(failslab)
{
	bool offered;
	struct faults faults;
	struct stage s;
	struct nl events;
	unsigned int mdevs;
	long long available;
};

FIXTURE_SETUP(failslab)
{
	self->offered = faults_offered();
	if (!self->offered)
		return;
	self->s.vm.container = self->s.vm.group = self->s.vm.device = -1;
	ASSERT_EQ(0, nl_open(&self->s.nl));
	ASSERT_EQ(0, nl_open(&self->events));
	ASSERT_EQ(0, nl_subscribe(&self->events));
	ASSERT_EQ(0, nl_subscribe_contexts(&self->events));
	self->mdevs = mdev_count();
	self->available = mdev_available("small-render");
	ASSERT_EQ(0, faults_open(&self->faults));
}

FIXTURE_TEARDOWN(failslab)
{
	struct nl_vgpu v;

	if (!self->offered)
		return;
	EXPECT_EQ(0, faults_close(&self->faults));
	if (self->s.vm.made) {
		vm_close(&self->s.vm);
		EXPECT_EQ(0, nl_vgpu_get(&self->s.nl, self->s.vm.uuid, &v));
		EXPECT_FALSE(v.open);
		EXPECT_EQ(0, v.mem_used);
		EXPECT_EQ(0, v.pinned);
		vm_delete(&self->s.vm);
	}
	EXPECT_EQ(self->mdevs, mdev_count());
	EXPECT_EQ(self->available, mdev_available("small-render"));
	nl_close(&self->events);
	nl_close(&self->s.nl);
}

static int stage_start(struct stage *s)
{
	int ret = stage_open(s);

	return ret ? ret : vm_start_with(&s->vm, RENDER_FEATURES);
}

/* A started device that has carried out a command. */
static int stage_running(struct stage *s)
{
	uint32_t w, h;
	int ret = stage_start(s);

	if (!ret && gpu_display_info(&s->vm, &w, &h) != INFO)
		ret = -EIO;
	s->at = vm_alloc(&s->vm, 1 << 20, 4096);
	return ret ? ret : s->at ? 0 : -ENOMEM;
}

/* ---- vGPUs ---- */

static int create_setup(struct stage *s)
{
	mdev_uuid_new(s->uuid);
	return 0;
}

static int create_run(struct stage *s)
{
	return mdev_create("small-render", s->uuid);
}

static int create_undo(struct stage *s)
{
	return mdev_remove(s->uuid);
}

static bool create_left(struct stage *s)
{
	struct nl_vgpu v;

	return !mdev_exists(s->uuid) &&
	       nl_vgpu_get(&s->nl, s->uuid, &v) == -ENODEV;
}

TEST_F(failslab, create)
{
	const struct op op = {
		"create", true, create_setup, create_run, create_undo, is_enomem,
		create_left,
	};

	NEEDS_FAULTS(self);
	EXPECT_TRUE(sweep(&op, &self->s, &self->faults));
}

static int remove_setup(struct stage *s)
{
	mdev_uuid_new(s->uuid);
	return mdev_create("small-render", s->uuid);
}

/* To open the file may fail; the removal itself never. */
static int remove_run(struct stage *s)
{
	char path[256];
	int ret;

	snprintf(path, sizeof(path), "%s/%s/remove", VMM_DEVICES, s->uuid);
	do
		ret = sysfs_write(path, "1");
	while (ret == -ENOMEM);
	return ret;
}

static int remove_undo(struct stage *s)
{
	return mdev_exists(s->uuid);
}

TEST_F(failslab, remove)
{
	const struct op op = {
		"remove", true, remove_setup, remove_run, remove_undo, never,
		NULL,
	};

	NEEDS_FAULTS(self);
	EXPECT_TRUE(sweep(&op, &self->s, &self->faults));
}

TEST_F(failslab, open)
{
	const struct op op = {
		"open", true, NULL, stage_open, stage_close, is_open, stage_empty,
	};

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(&self->s, RAM));
	EXPECT_TRUE(sweep(&op, &self->s, &self->faults));
}

static int close_undo(struct stage *s)
{
	return !stage_empty(s);
}

TEST_F(failslab, close)
{
	const struct op op = {
		"close", true, stage_running, stage_close, close_undo, never, NULL,
	};

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(&self->s, RAM));
	EXPECT_TRUE(sweep(&op, &self->s, &self->faults));
}

/* ---- the VMM's calls ---- */

#define MORE		(VMM_RAM_BASE + (256ull << 20))

static int map_run(struct stage *s)
{
	return vm_map(&s->vm, s->vm.ram, RAM, MORE);
}

static int map_undo(struct stage *s)
{
	return vm_unmap(&s->vm, MORE, RAM);
}

TEST_F(failslab, map)
{
	const struct op op = {
		"map", true, NULL, map_run, map_undo, is_enomem, NULL,
	};

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(&self->s, RAM));
	ASSERT_EQ(0, stage_running(&self->s));
	EXPECT_TRUE(sweep(&op, &self->s, &self->faults));
}

static int irq_run(struct stage *s)
{
	int ret = irq_msix(&s->vm, 3);

	ret = ret ? ret : irq_msix_off(&s->vm);
	ret = ret ? ret : irq_intx(&s->vm);
	return ret ? ret : irq_request(&s->vm);
}

TEST_F(failslab, interrupts)
{
	const struct op op = {
		"interrupts", true, stage_open, irq_run, stage_close, is_enomem,
		stage_empty,
	};

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(&self->s, RAM));
	EXPECT_TRUE(sweep(&op, &self->s, &self->faults));
}

static int display_run(struct stage *s)
{
	size_t len;

	return display_map(&s->vm, &len) ? 0 : -errno;
}

static int display_read(struct stage *s)
{
	uint8_t some[64];

	return vm_read(&s->vm, MGPU_REGION_DISPLAY, 0, some, sizeof(some));
}

TEST_F(failslab, display)
{
	const struct op ops[] = {
		{ "display", true, stage_open, display_run, stage_close, is_enomem,
		  stage_empty },
		/* The buffer's pages are the module's allocations, and not the task's. */
		{ "display, pages", false, stage_open, display_run, stage_close, is_enomem,
		  stage_empty },
		{ "display, read", false, stage_open, display_read, stage_close, is_enomem,
		  stage_empty },
	};
	unsigned int i;

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(&self->s, RAM));
	for (i = 0; i < ARRAY_LEN(ops); i++)
		EXPECT_TRUE(sweep(&ops[i], &self->s, &self->faults));
}

/* ---- netlink ---- */

/* A socket for each round: a dump that failed stays with its own. */
static int socket_new(struct stage *s)
{
	nl_close(&s->nl);
	return nl_open(&s->nl);
}

static bool socket_left(struct stage *s)
{
	return !socket_new(s);
}

static int vgpu_get(struct stage *s)
{
	struct nl_vgpu v;

	return nl_vgpu_get(&s->nl, s->vm.uuid, &v);
}

static int vgpu_dump(struct stage *s)
{
	struct nl_vgpu v[4];
	int ret = nl_vgpu_dump(&s->nl, v, ARRAY_LEN(v));

	return ret == 1 ? 0 : ret < 0 ? ret : -EBADMSG;
}

static int dev_get(struct stage *s)
{
	struct nl_dev d;

	return nl_dev_get(&s->nl, VMM_PARENT, &d);
}

/* Another value each time, so that there is something to do. */
static int vgpu_set(struct stage *s)
{
	static int64_t weight = 100;

	weight = weight == 100 ? 101 : 100;
	return nl_vgpu_set_full(&s->nl, s->vm.uuid, weight, 60000, 500000, 20000,
				20000);
}

static int vgpu_mode(struct stage *s)
{
	static int64_t width = 640;

	width = width == 640 ? 800 : 640;
	return nl_vgpu_set_mode(&s->nl, s->vm.uuid, width, 480);
}

static int dev_set(struct stage *s)
{
	return nl_dev_set(&s->nl, VMM_PARENT, NULL, MGPU_JOB_TIMEOUT_DEFAULT);
}

/* Two vGPUs in a batch: both, or none. */
static int64_t batch_weight = 200;

static int batch_run(struct stage *s)
{
	struct nl_msg m;

	batch_weight = batch_weight == 200 ? 201 : 200;
	nl_begin(&s->nl, &m, MGPU_CMD_VGPU_SET, 0);
	nl_put_setting(&m, s->vm.uuid, batch_weight, NL_KEEP, NL_KEEP, NL_KEEP,
		       NL_KEEP);
	nl_put_setting(&m, s->uuid, batch_weight, NL_KEEP, NL_KEEP, NL_KEEP,
		       NL_KEEP);
	return nl_talk(&s->nl, &m);
}

static bool batch_left(struct stage *s)
{
	struct nl_vgpu a, b;

	return !socket_new(s) && !nl_vgpu_get(&s->nl, s->vm.uuid, &a) &&
	       !nl_vgpu_get(&s->nl, s->uuid, &b) && a.weight == b.weight;
}

static int ctx_get(struct stage *s)
{
	struct nl_ctx c;

	return nl_ctx_get(&s->nl, s->vgpu, 1, &c);
}

static int ctx_dump(struct stage *s)
{
	struct nl_ctx c[4];
	int ret = nl_ctx_dump(&s->nl, 0, c, ARRAY_LEN(c));

	return ret == 1 ? 0 : ret < 0 ? ret : -EBADMSG;
}

static int ctx_ask(struct stage *s, uint8_t cmd, int method)
{
	uint8_t one = 1;
	struct nl_msg m;

	nl_begin(&s->nl, &m, cmd, NLM_F_ACK);
	nl_put_u32(&m, MGPU_A_CTX_VGPU_ID, s->vgpu);
	nl_put_u32(&m, MGPU_A_CTX_ID, 1);
	if (method >= 0) {
		nl_put_u32(&m, MGPU_A_CTX_METHOD, (uint32_t)method);
		nl_put(&m, MGPU_A_CTX_HOLD, &one, sizeof(one));
	}
	return nl_talk(&s->nl, &m);
}

static int ctx_hold(struct stage *s)
{
	return ctx_ask(s, MGPU_CMD_CTX_PREEMPT, MGPU_PREEMPT_METHOD_SWITCH);
}

static int ctx_resume(struct stage *s)
{
	return ctx_ask(s, MGPU_CMD_CTX_RESUME, -1);
}

static int ctx_hold_first(struct stage *s)
{
	int ret = socket_new(s);

	return ret ? ret : ctx_hold(s);
}

TEST_F(failslab, netlink)
{
	const struct op ops[] = {
		{ "vgpu-get", true, socket_new, vgpu_get, NULL, is_netlink,
		  socket_left },
		{ "vgpu-get dump", true, socket_new, vgpu_dump, NULL, is_netlink,
		  socket_left },
		{ "vgpu-set", true, socket_new, vgpu_set, NULL, is_netlink,
		  socket_left },
		{ "vgpu-set mode", true, socket_new, vgpu_mode, NULL, is_netlink,
		  socket_left },
		{ "vgpu-set batch", true, socket_new, batch_run, NULL,
		  is_netlink, batch_left },
		{ "dev-get dump", true, socket_new, dev_get, NULL, is_netlink,
		  socket_left },
		{ "dev-set", true, socket_new, dev_set, NULL, is_netlink,
		  socket_left },
		{ "ctx-get", true, socket_new, ctx_get, NULL, is_netlink,
		  socket_left },
		{ "ctx-get dump", true, socket_new, ctx_dump, NULL, is_netlink,
		  socket_left },
		{ "ctx-preempt", true, socket_new, ctx_hold, ctx_resume,
		  is_netlink, socket_left },
		{ "ctx-resume", true, ctx_hold_first, ctx_resume, NULL,
		  is_netlink, socket_left },
	};
	struct stage *s = &self->s;
	unsigned int i;

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(s, RAM));
	ASSERT_EQ(0, stage_running(s));
	ASSERT_EQ(OK, ctx_create(&s->vm, 1, MGPU_CAPSET_COMPUTE));
	for (i = 0; i < ARRAY_LEN(ops); i++) {
		if (ops[i].run == batch_run) {
			mdev_uuid_new(s->uuid);
			ASSERT_EQ(0, mdev_create("small-render", s->uuid));
			ASSERT_EQ(0, batch_run(s));
		}
		EXPECT_TRUE(sweep(&ops[i], s, &self->faults));
		if (ops[i].run == batch_run) {
			ASSERT_EQ(0, mdev_remove(s->uuid));
		}
	}
}

/* ---- the guest's ---- */

/*
 * DRIVER_OK pins the rings, and the first command its pages.  Rings that cannot be
 * pinned are told with NEEDS_RESET.
 */
static int first_run(struct stage *s)
{
	uint32_t w, h;
	int ret = vm_start_with(&s->vm, RENDER_FEATURES);

	if (ret)
		return ret;
	if (vio_status(&s->vm) & VIRTIO_CONFIG_S_NEEDS_RESET)
		return NOMEM;
	return gpu_display_info(&s->vm, &w, &h);
}

TEST_F(failslab, start)
{
	const struct op op = {
		"start", false, stage_open, first_run, stage_close, is_start,
		stage_empty,
	};

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(&self->s, RAM));
	EXPECT_TRUE(sweep(&op, &self->s, &self->faults));
}

static int answer(int ret)
{
	return ret == OK ? 0 : ret;
}

static int create_2d(struct stage *s)
{
	return gpu_create_2d(&s->vm, ID, BGRX, SIDE, SIDE);
}

static int unref(struct stage *s)
{
	return answer(gpu_unref(&s->vm, ID));
}

static int detach(struct stage *s)
{
	return answer(gpu_detach(&s->vm, ID));
}

/* Use the object that was made, so that a missing part shows; else unmake it. */
static int used(struct stage *s, int ret, int (*unmake)(struct stage *s))
{
	if (ret != OK && unmake(s))
		return -EIO;
	return ret;
}

static int create_blob(struct stage *s)
{
	int ret = gpu_create_blob(&s->vm, ID, s->at, SIDE * SIDE * 4);

	if (ret != OK)
		return ret;
	ret = gpu_set_scanout_blob(&s->vm, ID, BGRX, SIDE, SIDE, SIDE * 4, 0);
	if (ret == OK)
		ret = gpu_flush(&s->vm, ID, gpu_rect(0, 0, SIDE, SIDE));
	return used(s, ret, unref);
}

static int attach_only(struct stage *s)
{
	/* In pieces, one of them no page's beginning. */
	const struct virtio_gpu_mem_entry e[] = {
		{ .addr = vm_addr(&s->vm, s->at), .length = 8192 },
		{ .addr = vm_addr(&s->vm, s->at) + 5 * 4096 + 16, .length = 4096 },
		{ .addr = vm_addr(&s->vm, s->at) + 9 * 4096, .length = 4096 },
	};

	return gpu_attach_entries(&s->vm, ID, e, ARRAY_LEN(e));
}

static int attach(struct stage *s)
{
	int ret = attach_only(s);

	if (ret != OK)
		return ret;
	ret = gpu_transfer(&s->vm, ID, gpu_rect(0, 0, SIDE, SIDE), 0);
	return used(s, ret, detach);
}

/*
 * Many pieces of many pages, the same ones again and again: the command's copy and the
 * arrays of pages, addresses and runs are too large for a slab.
 */
#define PIECES		200u
#define PIECE_PAGES	16u

static int attach_many(struct stage *s)
{
	struct virtio_gpu_mem_entry e[PIECES];
	unsigned int i;
	int ret;

	for (i = 0; i < PIECES; i++)
		e[i] = (struct virtio_gpu_mem_entry){
			.addr = vm_addr(&s->vm, s->at) + i % 4 * 2 * PIECE_PAGES * 4096ull,
			.length = PIECE_PAGES * 4096,
		};
	ret = gpu_attach_entries(&s->vm, ID, e, PIECES);
	return ret == OK ? used(s, gpu_transfer(&s->vm, ID, gpu_rect(0, 0, SIDE, SIDE), 0),
				detach) : ret;
}

/* A picture whose pixels take many pages of the host. */
static int create_large(struct stage *s)
{
	return gpu_create_2d(&s->vm, ID, BGRX, 512, 512);
}

static int context(struct stage *s)
{
	return ctx_create(&s->vm, ID, MGPU_CAPSET_COMPUTE);
}

static int context_end(struct stage *s)
{
	return answer(ctx_destroy(&s->vm, ID));
}

static int context_attach(struct stage *s)
{
	return ctx_attach(&s->vm, 1, 1);
}

static int context_detach(struct stage *s)
{
	return answer(ctx_resource(&s->vm, 1, 1,
				   VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE));
}

TEST_F_TIMEOUT(failslab, resources_and_contexts, 60)
{
	const struct op before = {
		"resource-create-2d", false, NULL, create_2d, unref, is_answer,
		NULL,
	};
	const struct op ops[] = {
		{ "resource-create-blob", false, NULL, create_blob, unref,
		  is_answer, NULL },
		{ "resource-create-2d, large", false, NULL, create_large, unref,
		  is_answer, NULL },
		{ "ctx-create", false, NULL, context, context_end, is_answer,
		  NULL },
		{ "ctx-attach-resource", false, NULL, context_attach,
		  context_detach, is_answer, NULL },
	};
	const struct op backings[] = {
		{ "resource-attach-backing", false, NULL, attach, detach,
		  is_answer, NULL },
		{ "resource-attach-backing, many", false, NULL, attach_many, detach,
		  is_answer, NULL },
	};
	struct stage *s = &self->s;
	unsigned int i;

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(s, RAM));
	ASSERT_EQ(0, stage_running(s));
	ASSERT_EQ(OK, gpu_create_2d(&s->vm, 1, BGRX, 64, 64));
	ASSERT_EQ(OK, ctx_create(&s->vm, 1, MGPU_CAPSET_COMPUTE));
	EXPECT_TRUE(sweep(&before, s, &self->faults));
	for (i = 0; i < ARRAY_LEN(ops); i++)
		EXPECT_TRUE(sweep(&ops[i], s, &self->faults));
	ASSERT_EQ(OK, create_2d(s));
	for (i = 0; i < ARRAY_LEN(backings); i++)
		EXPECT_TRUE(sweep(&backings[i], s, &self->faults));
	ASSERT_EQ(0, unref(s));
}

/* A job with state to be saved, of which the room for it is a part. */
#define ITERATIONS	255u

static int submit(struct stage *s)
{
	struct mgpu_compute_cmd c = job_mandelbrot(1, SIDE, SIDE, ITERATIONS);

	return ctx_result(&s->vm, ctx_submit(&s->vm, 1, &c));
}

TEST_F(failslab, submit)
{
	const struct op op = {
		"submit-3d", false, NULL, submit, NULL, is_answer, NULL,
	};
	struct stage *s = &self->s;

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(s, RAM));
	ASSERT_EQ(0, stage_running(s));
	ASSERT_EQ(OK, gpu_create_blob(&s->vm, 1, s->at, 1 << 20));
	ASSERT_EQ(OK, ctx_create(&s->vm, 1, MGPU_CAPSET_COMPUTE));
	ASSERT_EQ(OK, ctx_attach(&s->vm, 1, 1));
	EXPECT_TRUE(sweep(&op, s, &self->faults));
}

/* A picture that is there, and not shown yet. */
static int picture(struct stage *s)
{
	int ret = stage_running(s);

	if (ret)
		return ret;
	if (create_2d(s) != OK || attach_only(s) != OK)
		return -EIO;
	return 0;
}

/* The first flush makes the display buffer. */
static int frame(struct stage *s)
{
	struct virtio_gpu_rect r = gpu_rect(0, 0, SIDE, SIDE);
	int ret = gpu_set_scanout(&s->vm, ID, r);

	ret = ret == OK ? gpu_transfer(&s->vm, ID, r, 0) : ret;
	return ret == OK ? gpu_flush(&s->vm, ID, r) : ret;
}

/* The first cursor makes room for its image and for what is below. */
static int cursor(struct stage *s)
{
	return gpu_cursor(&s->vm, ID, 3, 4, 0, 0);
}

TEST_F(failslab, screen)
{
	const struct op ops[] = {
		{ "set-scanout, transfer, flush", false, picture, frame,
		  stage_close, is_answer, stage_empty },
		{ "update-cursor", false, picture, cursor, stage_close, is_answer,
		  stage_empty },
	};
	unsigned int i;

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(&self->s, RAM));
	for (i = 0; i < ARRAY_LEN(ops); i++)
		EXPECT_TRUE(sweep(&ops[i], &self->s, &self->faults));
}

/* Commands that may allocate, and must do what they do with no memory at all. */
static int other_commands(struct stage *s)
{
	struct virtio_gpu_cmd_get_edid edid = { .scanout = 0 };
	struct virtio_gpu_resp_edid answer_edid;
	struct virtio_gpu_get_capset_info info = { .capset_index = 0 };
	struct virtio_gpu_resp_capset_info answer_info;
	struct virtio_gpu_ctrl_hdr bad;
	uint32_t w, h;
	int ret;

	gpu_hdr(&edid.hdr, VIRTIO_GPU_CMD_GET_EDID);
	gpu_hdr(&info.hdr, VIRTIO_GPU_CMD_GET_CAPSET_INFO);
	gpu_hdr(&bad, 0x7777);
	ret = gpu_display_info(&s->vm, &w, &h);
	if (ret != INFO)
		return ret;
	ret = gpu_call(&s->vm, &edid, sizeof(edid), &answer_edid, sizeof(answer_edid));
	if (ret != VIRTIO_GPU_RESP_OK_EDID)
		return ret;
	ret = gpu_call(&s->vm, &info, sizeof(info), &answer_info, sizeof(answer_info));
	if (ret != VIRTIO_GPU_RESP_OK_CAPSET_INFO)
		return ret;
	ret = gpu_call(&s->vm, &bad, sizeof(bad), NULL, 0);
	if (ret != UNSPEC)
		return ret ? ret : -EBADMSG;
	ret = gpu_set_scanout(&s->vm, 0, gpu_rect(0, 0, 0, 0));
	if (ret == OK)
		ret = gpu_cursor_move(&s->vm, 3, 4);
	if (!ret)
		ret = gpu_detach(&s->vm, ID);
	return ret == OK ? gpu_unref(&s->vm, ID) : ret;
}

TEST_F(failslab, commands_that_need_no_memory)
{
	const struct op op = {
		"others", false, picture, other_commands, stage_close, never, stage_empty,
	};
	struct stage *s = &self->s;

	NEEDS_FAULTS(self);
	ASSERT_EQ(0, stage_made(s, RAM));
	EXPECT_TRUE(sweep(&op, s, &self->faults));
}

TEST_HARNESS_MAIN
