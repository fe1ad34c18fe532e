// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory runs out while guests draw on a physical GPU: as test_failslab.c, for what
 * mgpu_virtio and the code of contexts and resources on the GPU (kmod/virgl) allocate.
 *
 * needs: gpu
 */
#include <errno.h>
#include <string.h>

#include <kselftest_harness.h>

#include "../../kmod/vfio/device.h"
#include "failslab.h"
#include "virgl.h"

#define RAM	(8u << 20)
#define FETCHES	16
#define SIDE	64u
#define ID	5000u	/* so far from the others that their table has to grow */

FIXTURE(failslab_gpu)
{
	bool offered;
	struct faults faults;
	struct stage s;
};

FIXTURE_SETUP(failslab_gpu)
{
	self->offered = faults_offered();
	if (!self->offered)
		return;
	self->s.vm.container = self->s.vm.group = self->s.vm.device = -1;
	ASSERT_EQ(0, nl_open(&self->s.nl));
	ASSERT_EQ(0, faults_open(&self->faults));
	ASSERT_EQ(0, stage_made(&self->s, RAM));
}

FIXTURE_TEARDOWN(failslab_gpu)
{
	struct nl_vgpu v;

	if (!self->offered)
		return;
	EXPECT_EQ(0, faults_close(&self->faults));
	vm_close(&self->s.vm);
	EXPECT_EQ(0, nl_vgpu_get(&self->s.nl, self->s.vm.uuid, &v));
	EXPECT_FALSE(v.open);
	EXPECT_EQ(0, v.mem_used);
	EXPECT_EQ(0, v.pinned);
	vm_delete(&self->s.vm);
	EXPECT_EQ(0, mdev_count());
	nl_close(&self->s.nl);
}

/* A device that has carried out commands, with a context and a picture in it. */
static int running(struct stage *s)
{
	int ret = stage_open(s);

	if (!ret)
		ret = vm_start_with(&s->vm, GL_FEATURES);
	if (ret)
		return ret;
	if (gl_ctx(&s->vm, 1) != OK || gl_texture(&s->vm, 1, SIDE, SIDE, 0) != OK ||
	    gl_ctx_attach(&s->vm, 1, 1) != OK || gl_fill(&s->vm, 1, 1, 0xff112233) != OK)
		return -EIO;
	s->at = vm_alloc(&s->vm, 1 << 20, 4096);
	return s->at ? 0 : -ENOMEM;
}

/* ---- operations ---- */

static int start(struct stage *s)
{
	int ret = vm_start_with(&s->vm, GL_FEATURES);

	if (ret)
		return ret;
	if (vio_status(&s->vm) & VIRTIO_CONFIG_S_NEEDS_RESET)
		return NOMEM;
	return gl_ctx(&s->vm, 1);
}

static int context(struct stage *s)
{
	return gl_ctx(&s->vm, ID);
}

static int texture(struct stage *s)
{
	return gl_texture(&s->vm, ID, SIDE, SIDE, 0);
}

static int two_contexts(struct stage *s)
{
	int ret = running(s);

	return ret ? ret : gl_ctx(&s->vm, 2) == OK ? 0 : -EIO;
}

static int attach_context(struct stage *s)
{
	return gl_ctx_attach(&s->vm, 2, 1);
}

static int attach(struct stage *s)
{
	return gpu_attach(&s->vm, 1, s->at, SIDE * SIDE * 4);
}

static int stream(struct stage *s)
{
	struct gl_stream g;

	gl_begin(&g);
	gl_surface(&g, 77, 1);
	gl_draw_to(&g, 77);
	gl_clear(&g, 0, 1, 0, 1);
	return gl_run(&s->vm, 1, &g);
}

static int with_backing(struct stage *s)
{
	int ret = running(s);

	return ret ? ret : attach(s) == OK ? 0 : -EIO;
}

/* More at once than there were commands before, whose memory the module uses again. */
static int fetch(struct stage *s)
{
	struct gl_move m = {
		.ctx = 1, .res = 1, .box = { .w = SIDE, .h = SIDE, .d = 1 },
	};
	int head[FETCHES], ret = OK, i, answer;

	for (i = 0; i < FETCHES; i++) {
		head[i] = gl_move_send(&s->vm, &m, 0);
		if (head[i] < 0)
			return head[i];
	}
	for (i = 0; i < FETCHES; i++) {
		answer = gpu_result(&s->vm, VMM_CONTROL, (uint16_t)head[i], NULL, 0, VMM_TIMEOUT);
		if (ret == OK)
			ret = answer;
	}
	return ret;
}

static int screen(struct stage *s)
{
	struct virtio_gpu_rect r = gpu_rect(0, 0, SIDE, SIDE);
	int ret = gpu_set_scanout(&s->vm, 1, r);

	return ret == OK ? gpu_flush(&s->vm, 1, r) : ret;
}

static int shown(struct stage *s)
{
	int ret = running(s);

	return ret ? ret : screen(s) == OK ? 0 : -EIO;
}

/* The VMM reads the screen, which the GPU has. */
static int readback(struct stage *s)
{
	struct vfio_device_gfx_plane_info plane;
	uint8_t some[256];
	int ret = display_plane(&s->vm, &plane);

	return ret ? ret : vm_read(&s->vm, MGPU_REGION_DISPLAY, 0, some, sizeof(some));
}

/* The GPU releases all that the guest had; without memory, one by one. */
static int reset(struct stage *s)
{
	return vio_reset(&s->vm);
}

TEST_F_TIMEOUT(failslab_gpu, guests_that_draw, 600)
{
	const struct op ops[] = {
		{ "start", false, stage_open, start, stage_close, is_start, stage_empty },
		{ "ctx-create", false, running, context, stage_close, is_answer, stage_empty },
		{ "resource-create-3d", false, running, texture, stage_close, is_answer,
		  stage_empty },
		{ "ctx-attach-resource", false, two_contexts, attach_context, stage_close,
		  is_answer, stage_empty },
		{ "resource-attach-backing", false, running, attach, stage_close, is_answer,
		  stage_empty },
		{ "submit-3d", false, running, stream, stage_close, is_answer, stage_empty },
		{ "transfers-from-host", false, with_backing, fetch, stage_close, is_answer,
		  stage_empty },
		{ "set-scanout, flush", false, running, screen, stage_close, is_answer,
		  stage_empty },
		{ "readback", false, shown, readback, stage_close, is_enomem, stage_empty },
		{ "reset", false, shown, reset, stage_close, never, stage_empty },
	};
	unsigned int i;

	NEEDS_FAULTS(self);
	for (i = 0; i < ARRAY_LEN(ops); i++)
		EXPECT_TRUE(sweep(&ops[i], &self->s, &self->faults));
}

static void __attribute__((constructor)) find_gpu(void)
{
	gl_need_gpu();
}

TEST_HARNESS_MAIN
