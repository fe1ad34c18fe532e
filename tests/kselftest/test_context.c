// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compute contexts: commands, jobs and their results, what hostile guests try, and
 * slots that are taken away and given back meanwhile.  tests/unit/test_compute.c tests
 * the results of the jobs as pure code.
 *
 * needs: quiet
 */
#include <errno.h>
#include <glob.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <kselftest_harness.h>

#include "compute.h"
#include "mgpud.h"
#include "nl.h"
#include "vmm.h"

#define RAM	(64u << 20)
#define ATTEMPTS	5	/* to be in time for a job */

FIXTURE(ctx)
{
	struct vm vm;
	struct nl nl;
	uint32_t vgpu;
};

FIXTURE_SETUP(ctx)
{
	struct vm *vm = &self->vm;
	struct nl_vgpu v;

	ASSERT_EQ(0, nl_open(&self->nl));
	/* Long jobs, on a busy machine. */
	ASSERT_EQ(0, nl_dev_set(&self->nl, VMM_PARENT, NULL,
				MGPU_JOB_TIMEOUT_MAX));
	ASSERT_EQ(0, vm_new(vm, "medium-render", RAM));
	ASSERT_EQ(0, vm_start_with(vm, RENDER_FEATURES));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
	self->vgpu = v.id;
}

FIXTURE_TEARDOWN(ctx)
{
	struct nl_vgpu v;

	vm_close(&self->vm);
	EXPECT_EQ(0, nl_vgpu_get(&self->nl, self->vm.uuid, &v));
	EXPECT_EQ(0, v.mem_used);
	EXPECT_EQ(0, v.pinned);
	vm_delete(&self->vm);
	EXPECT_EQ(0, nl_dev_set(&self->nl, VMM_PARENT, NULL,
				MGPU_JOB_TIMEOUT_DEFAULT));
	nl_close(&self->nl);
}

/* A blob of the guest's in a context. */
static void *blob(struct __test_metadata *_metadata, struct vm *vm,
		  uint32_t ctx, uint32_t id, size_t size)
{
	void *p = vm_alloc(vm, (size + 4095) & ~4095ul, 4096);

	ASSERT_NE(NULL, p);
	ASSERT_EQ(OK, gpu_create_blob(vm, id, p, (size + 4095) & ~4095ul));
	ASSERT_EQ(OK, ctx_attach(vm, ctx, id));
	return p;
}

static int ctx_ask(struct nl *nl, uint8_t cmd, uint32_t vgpu, uint32_t ctx,
		   int method, int slots, int hold)
{
	struct nl_msg m;
	uint8_t one = 1;

	nl_begin(nl, &m, cmd, NLM_F_ACK);
	nl_put_u32(&m, MGPU_A_CTX_VGPU_ID, vgpu);
	nl_put_u32(&m, MGPU_A_CTX_ID, ctx);
	if (method >= 0)
		nl_put_u32(&m, MGPU_A_CTX_METHOD, method);
	if (slots >= 0)
		nl_put_u32(&m, MGPU_A_CTX_SLOTS, slots);
	if (hold)
		nl_put(&m, MGPU_A_CTX_HOLD, &one, sizeof(one));
	return nl_talk(nl, &m);
}

#define preempt(self, ctx, method, hold) \
	ctx_ask(&(self)->nl, MGPU_CMD_CTX_PREEMPT, (self)->vgpu, ctx, method, \
		-1, hold)
#define resume(self, ctx) \
	ctx_ask(&(self)->nl, MGPU_CMD_CTX_RESUME, (self)->vgpu, ctx, -1, -1, 0)

/* Wait until a context's state, in *@c, is as expected; false when time is up. */
static bool wait_ctx(struct nl *nl, uint32_t vgpu, uint32_t ctx,
		     bool (*is_so)(const struct nl_ctx *c, uint64_t arg),
		     uint64_t arg, struct nl_ctx *c)
{
	uint64_t end = now_ms() + VMM_TIMEOUT;

	while (!nl_ctx_get(nl, vgpu, ctx, c)) {
		if (is_so(c, arg))
			return true;
		if (now_ms() > end)
			break;
		sleep_ms(1);
	}
	return false;
}

static bool in_state(const struct nl_ctx *c, uint64_t state)
{
	return c->state == state;
}

static bool has_slots(const struct nl_ctx *c, uint64_t slots)
{
	return c->slots == slots;
}

static bool runs_or_ran(const struct nl_ctx *c, uint64_t jobs)
{
	return c->state == MGPU_CTX_STATE_RUNNING || c->jobs > jobs;
}

static bool wait_state(struct nl *nl, uint32_t vgpu, uint32_t ctx,
		       uint32_t state, struct nl_ctx *c)
{
	return wait_ctx(nl, vgpu, ctx, in_state, state, c);
}

static bool wait_slots(struct nl *nl, uint32_t vgpu, uint32_t ctx,
		       uint64_t slots)
{
	struct nl_ctx c;

	return wait_ctx(nl, vgpu, ctx, has_slots, slots, &c);
}

TEST_F(ctx, the_capset_names_operations_and_limits)
{
	struct virtio_gpu_get_capset_info gi;
	struct virtio_gpu_resp_capset_info info;
	struct virtio_gpu_get_capset gc;
	struct {
		struct virtio_gpu_ctrl_hdr hdr;
		struct mgpu_capset_compute c;
	} cap;

	memset(&gi, 0, sizeof(gi));
	gpu_hdr(&gi.hdr, VIRTIO_GPU_CMD_GET_CAPSET_INFO);
	ASSERT_EQ(VIRTIO_GPU_RESP_OK_CAPSET_INFO,
		  gpu_call(&self->vm, &gi, sizeof(gi), &info, sizeof(info)));
	EXPECT_EQ(MGPU_CAPSET_COMPUTE, info.capset_id);
	EXPECT_EQ(sizeof(cap.c), info.capset_max_size);
	gi.capset_index = 1;
	EXPECT_EQ(PARAM, gpu_call(&self->vm, &gi, sizeof(gi), NULL, 0));

	memset(&gc, 0, sizeof(gc));
	gpu_hdr(&gc.hdr, VIRTIO_GPU_CMD_GET_CAPSET);
	gc.capset_id = MGPU_CAPSET_COMPUTE;
	ASSERT_EQ(VIRTIO_GPU_RESP_OK_CAPSET,
		  gpu_call(&self->vm, &gc, sizeof(gc), &cap, sizeof(cap)));
	EXPECT_EQ(MGPU_COMPUTE_VERSION, cap.c.version);
	EXPECT_LE(1, cap.c.slots);
	EXPECT_NE(0, cap.c.ops & (1ull << MGPU_COMPUTE_MATMUL));
	gc.capset_id = 1;
	EXPECT_EQ(PARAM, gpu_call(&self->vm, &gc, sizeof(gc), NULL, 0));
}

TEST_F(ctx, jobs_compute)
{
	const size_t n = 1u << 20;
	struct mgpu_compute_cmd c;
	uint64_t *a, *b;
	size_t i;

	ASSERT_EQ(OK, ctx_create(&self->vm, 1, MGPU_CAPSET_COMPUTE));
	a = blob(_metadata, &self->vm, 1, 1, n);
	b = blob(_metadata, &self->vm, 1, 2, n);

	c = job_new(MGPU_COMPUTE_FILL, 1, 1, 0, 0);
	c.fill.length = n;
	c.fill.pattern = 0x1122334455667788ull;
	ASSERT_EQ(OK, ctx_result(&self->vm, ctx_submit(&self->vm, 1, &c)));
	for (i = 0; i < n / 8 && a[i] == 0x1122334455667788ull; i++)
		;
	EXPECT_EQ(n / 8, i);

	for (i = 0; i < n / 8; i++)
		a[i] = i * 0x9e3779b97f4a7c15ull;
	c = job_new(MGPU_COMPUTE_COPY, 2, 2, 1, 0);
	c.move.length = n;
	ASSERT_EQ(OK, ctx_result(&self->vm, ctx_submit(&self->vm, 1, &c)));
	EXPECT_EQ(0, memcmp(a, b, n));
}

#define FAST	2048	/* jobs */
#define DEPTH	8

/*
 * However fast jobs complete, the module makes an event a millisecond, and one more a
 * tick; the last event is made after the last completion.
 */
TEST_F_TIMEOUT(ctx, events_of_fast_jobs_are_combined, 120)
{
	struct mgpu_compute_cmd c = job_new(MGPU_COMPUTE_FILL, 1, 1, 0, 0);
	int i, head[DEPTH], size = 64 << 20;
	unsigned int events = 0;
	struct nl_event e;
	uint64_t begin;
	uint64_t ms;
	struct nl ev;

	c.fill.length = 8;
	ASSERT_EQ(OK, ctx_create(&self->vm, 1, MGPU_CAPSET_COMPUTE));
	blob(_metadata, &self->vm, 1, 1, 4096);
	ASSERT_EQ(0, nl_open(&ev));
	/* Room for an event of each job. */
	ASSERT_EQ(0, setsockopt(ev.fd, SOL_SOCKET, SO_RCVBUFFORCE, &size,
				sizeof(size)));
	ASSERT_EQ(0, nl_subscribe_contexts(&ev));

	begin = now_ms();
	for (i = 0; i < FAST + DEPTH; i++) {
		if (i >= DEPTH) {
			ASSERT_EQ(OK, ctx_result(&self->vm, head[i % DEPTH]));
		}
		if (i < FAST)
			head[i % DEPTH] = ctx_submit(&self->vm, 1, &c);
	}
	do {
		ASSERT_EQ(MGPU_CMD_CTX_NTF,
			  nl_event_next(&ev, &e, VMM_TIMEOUT)) {
			TH_LOG("%u events, none after the last of the jobs",
			       events);
		}
		events += e.ctx.vgpu_id == self->vgpu;
	} while (e.ctx.vgpu_id != self->vgpu || e.ctx.jobs < FAST);
	ms = now_ms() - begin;
	TH_LOG("%u events of %u jobs in %llu ms", events, FAST,
	       (unsigned long long)ms);
	EXPECT_GE(2 * ms + 4, events);
	if (2 * ms + 4 >= FAST)
		TH_LOG("too slow to tell");
	nl_close(&ev);
}

TEST_F(ctx, contexts_are_told_apart)
{
	struct mgpu_compute_cmd c = job_new(MGPU_COMPUTE_FILL, 1, 1, 0, 0);
	struct vm *vm = &self->vm;

	c.fill.length = 8;
	EXPECT_EQ(NOCTX, ctx_create(vm, 0, MGPU_CAPSET_COMPUTE));
	EXPECT_EQ(PARAM, ctx_create(vm, 1, 2));
	EXPECT_EQ(NOCTX, ctx_result(vm, ctx_submit(vm, 1, &c)));
	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	ASSERT_EQ(OK, ctx_create(vm, 2, MGPU_CAPSET_COMPUTE));
	/* a context without a capability set, as a display's driver makes it */
	ASSERT_EQ(OK, ctx_create(vm, 3, 0));
	EXPECT_EQ(NOCTX, ctx_create(vm, 2, MGPU_CAPSET_COMPUTE));
	blob(_metadata, vm, 1, 1, 4096);
	EXPECT_EQ(OK, ctx_result(vm, ctx_submit(vm, 1, &c)));
	/* attached to one, not to the other */
	EXPECT_EQ(NORES, ctx_result(vm, ctx_submit(vm, 2, &c)));
	EXPECT_EQ(PARAM, ctx_result(vm, ctx_submit(vm, 3, &c)));
	EXPECT_EQ(NORES, ctx_attach(vm, 2, 77));
	EXPECT_EQ(NOCTX, ctx_attach(vm, 77, 1));
	EXPECT_EQ(OK, ctx_resource(vm, 1, 1, VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE));
	EXPECT_EQ(NORES, ctx_resource(vm, 1, 1,
				      VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE));
	EXPECT_EQ(NORES, ctx_result(vm, ctx_submit(vm, 1, &c)));
	EXPECT_EQ(OK, ctx_destroy(vm, 1));
	EXPECT_EQ(NOCTX, ctx_destroy(vm, 1));
	EXPECT_EQ(NOCTX, ctx_result(vm, ctx_submit(vm, 1, &c)));
}

TEST_F(ctx, bad_jobs_are_refused)
{
	struct mgpu_compute_cmd c = job_new(MGPU_COMPUTE_FILL, 1, 1, 0, 0);
	struct vm *vm = &self->vm;
	uint8_t junk[512];
	unsigned int i;

	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	blob(_metadata, vm, 1, 1, 4096);
	c.fill.length = 4104;
	EXPECT_EQ(PARAM, ctx_result(vm, ctx_submit(vm, 1, &c)));
	c.fill.length = 8;
	c.fill.offset = 4096;
	EXPECT_EQ(PARAM, ctx_result(vm, ctx_submit(vm, 1, &c)));
	c.fill.offset = ~7ull;
	EXPECT_EQ(PARAM, ctx_result(vm, ctx_submit(vm, 1, &c)));
	c.fill.offset = 0;
	EXPECT_EQ(OK, ctx_result(vm, ctx_submit(vm, 1, &c)));
	c.op = 99;
	EXPECT_EQ(PARAM, ctx_result(vm, ctx_submit(vm, 1, &c)));
	EXPECT_EQ(PARAM, ctx_result(vm, ctx_submit_bytes(vm, 1, 0, &c, 7)));

	srand(1);
	for (i = 0; i < 200; i++) {
		unsigned int j, len = 1 + (unsigned int)rand() % sizeof(junk);

		for (j = 0; j < len; j++)
			junk[j] = (uint8_t)rand();
		/* half of them get past the first fields */
		if (i & 1 && len >= 24)
			memcpy(junk, &c, 16);
		EXPECT_EQ(PARAM, ctx_result(vm, ctx_submit_bytes(vm, 1, 0, junk, len)));
	}
}

TEST_F(ctx, a_type_without_render_has_no_contexts)
{
	struct vm vm;

	ASSERT_EQ(0, vm_new_started(&vm, "small", VMM_RAM));
	EXPECT_EQ(0, vio_features(&vm) & VMM_F(VIRTIO_GPU_F_VIRGL));
	EXPECT_EQ(UNSPEC, ctx_create(&vm, 1, MGPU_CAPSET_COMPUTE));
	vm_delete(&vm);
}

/* The queue goes on while a context computes. */
TEST_F(ctx, a_long_job_holds_no_context_up)
{
	struct mgpu_compute_cmd c = job_mandelbrot(1, 1024, 1024, 4095);
	struct vm *vm = &self->vm;
	struct nl_ctx info;
	uint32_t w, h;
	int head;

	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	blob(_metadata, vm, 1, 1, job_mandelbrot_size(1024, 1024, 4095));
	head = ctx_submit(vm, 1, &c);
	ASSERT_LE(0, head);
	ASSERT_TRUE(wait_state(&self->nl, self->vgpu, 1,
			       MGPU_CTX_STATE_RUNNING, &info));
	EXPECT_STREQ("mandelbrot", info.op);
	EXPECT_STREQ("test", info.name);
	EXPECT_EQ(VIRTIO_GPU_RESP_OK_DISPLAY_INFO, gpu_display_info(vm, &w, &h));
	ASSERT_EQ(0, nl_ctx_get(&self->nl, self->vgpu, 1, &info));
	EXPECT_EQ(MGPU_CTX_STATE_RUNNING, info.state);
	EXPECT_LT(info.job_inst_done, info.job_inst);
	/* Its end, with the job in it. */
	EXPECT_EQ(OK, ctx_destroy(vm, 1));
	EXPECT_EQ(NOCTX, ctx_result(vm, head));
}

/* A fence of no ring's own is one of all commands': they stay in order. */
TEST_F(ctx, a_fence_without_a_ring_stays_in_order)
{
	struct mgpu_compute_cmd c = job_mandelbrot(1, 256, 256, 1023);
	struct virtio_gpu_ctrl_hdr hdr;
	struct vm *vm = &self->vm;
	struct nl_ctx info;
	int head, next;

	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	blob(_metadata, vm, 1, 1, job_mandelbrot_size(256, 256, 1023));
	ASSERT_EQ(0, preempt(self, 1, MGPU_PREEMPT_METHOD_SWITCH, 1));
	head = ctx_submit_bytes(vm, 1, 0, &c, sizeof(c));
	ASSERT_LE(0, head);
	gpu_hdr(&hdr, VIRTIO_GPU_CMD_GET_DISPLAY_INFO);
	next = gpu_send(vm, VMM_CONTROL, &hdr, sizeof(hdr), 4096);
	ASSERT_LE(0, next);
	EXPECT_TRUE(vq_quiet(vm, VMM_CONTROL, VMM_QUIET));
	ASSERT_EQ(0, nl_ctx_get(&self->nl, self->vgpu, 1, &info));
	ASSERT_EQ(0, resume(self, 1));
	EXPECT_EQ(OK, ctx_result(vm, head));
	EXPECT_EQ(VIRTIO_GPU_RESP_OK_DISPLAY_INFO,
		  gpu_result(vm, VMM_CONTROL, next, NULL, 0, VMM_TIMEOUT));

	/* Destroying the context waits in the same queue; a reset does not. */
	ASSERT_EQ(0, preempt(self, 1, MGPU_PREEMPT_METHOD_SWITCH, 1));
	ASSERT_LE(0, ctx_submit_bytes(vm, 1, 0, &c, sizeof(c)));
	ASSERT_EQ(0, vio_reset(vm));
	ASSERT_EQ(0, vm_start_with(vm, RENDER_FEATURES));
}

TEST_F(ctx, a_reset_ends_jobs)
{
	struct mgpu_compute_cmd c = job_mandelbrot(1, 1024, 1024, 4095);
	struct vm *vm = &self->vm;
	struct nl_ctx info;
	struct nl_vgpu v;

	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	blob(_metadata, vm, 1, 1, job_mandelbrot_size(1024, 1024, 4095));
	ASSERT_LE(0, ctx_submit(vm, 1, &c));
	ASSERT_LE(0, ctx_submit(vm, 1, &c));
	ASSERT_TRUE(wait_state(&self->nl, self->vgpu, 1,
			       MGPU_CTX_STATE_RUNNING, &info));
	ASSERT_EQ(0, vio_reset(vm));
	EXPECT_EQ(-ENOENT, nl_ctx_get(&self->nl, self->vgpu, 1, &info));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &v));
	EXPECT_EQ(0, v.mem_used);
	ASSERT_EQ(0, vm_start_with(vm, RENDER_FEATURES));
	EXPECT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
}

TEST_F(ctx, a_held_context_waits_until_it_is_resumed)
{
	struct mgpu_compute_cmd c = job_mandelbrot(1, 256, 256, 255);
	struct vm *vm = &self->vm;
	struct nl_ctx info;
	int head;

	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	blob(_metadata, vm, 1, 1, job_mandelbrot_size(256, 256, 255));
	EXPECT_EQ(-EINVAL, preempt(self, 1, MGPU_PREEMPT_METHOD_SWITCH, 0));
	EXPECT_NE(NULL, strstr(self->nl.text, "no job"));
	EXPECT_EQ(-ENOENT, preempt(self, 9, MGPU_PREEMPT_METHOD_SWITCH, 0));
	ASSERT_EQ(0, preempt(self, 1, MGPU_PREEMPT_METHOD_SWITCH, 1));
	head = ctx_submit(vm, 1, &c);
	ASSERT_LE(0, head);
	EXPECT_TRUE(vq_quiet(vm, VMM_CONTROL, VMM_QUIET));
	ASSERT_EQ(0, nl_ctx_get(&self->nl, self->vgpu, 1, &info));
	EXPECT_EQ(MGPU_CTX_STATE_HELD, info.state);
	ASSERT_EQ(0, resume(self, 1));
	EXPECT_EQ(OK, ctx_result(vm, head));
}

/*
 * A job of some tenths of a second, with each try twice as long: it may have ended
 * before the test gets to do anything about it.
 */
static struct mgpu_compute_cmd job_longer(unsigned int try)
{
	return job_mandelbrot(1, 256, 256u << try, 1023);
}

/* A context, and memory for job_longer(). */
static void ctx_longer(struct __test_metadata *_metadata, struct vm *vm)
{
	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	blob(_metadata, vm, 1, 1,
	     job_mandelbrot_size(256, 256u << (ATTEMPTS - 1), 1023));
}

/*
 * No request resumes the context, and no other context wants the slot.  A request that
 * is accepted with half of the job still to do is carried out.
 */
TEST_F_TIMEOUT(ctx, a_preempted_context_takes_an_unwanted_slot, 90)
{
	struct mgpu_compute_cmd c;
	struct vm *vm = &self->vm;
	unsigned int try, jobs = 0, trials = 0;
	uint64_t copies = 0;
	struct nl_ctx info;
	int head, ret;
	bool early;

	ctx_longer(_metadata, vm);
	for (try = 0; trials < 3; try++) {
		c = job_longer(try < ATTEMPTS ? try : ATTEMPTS - 1);
		head = ctx_submit(vm, 1, &c);
		ASSERT_LE(0, head);
		ASSERT_TRUE(wait_ctx(&self->nl, self->vgpu, 1, runs_or_ran,
				     jobs, &info));
		ret = preempt(self, 1, MGPU_PREEMPT_METHOD_SWITCH, 0);
		ASSERT_EQ(0, nl_ctx_get(&self->nl, self->vgpu, 1, &info));
		early = info.jobs == jobs &&
			info.job_inst_done < info.job_inst / 2;
		/* Refused only when there is no job any more. */
		EXPECT_TRUE(!ret || info.jobs > jobs);
		EXPECT_EQ(OK, ctx_result(vm, head));
		jobs++;
		ASSERT_EQ(0, nl_ctx_get(&self->nl, self->vgpu, 1, &info));
		EXPECT_EQ(jobs, info.jobs);
		/*
		 * A slot that was left is not lost, and not counted as a
		 * preemption, if an idle engine gave it back before.
		 */
		if (early) {
			EXPECT_LT(copies, info.copies);
			trials++;
		}
		copies = info.copies;
	}
	EXPECT_EQ(info.preemptions, info.resumes);
	/*
	 * The state of a lost slot was saved, and restored when the slot came back; so
	 * was that of a slot which it left and had again before it counted as lost.
	 */
	EXPECT_LE(info.preemptions + info.resumes, info.copies);
	EXPECT_EQ(0, info.job_errors);
}

/* Slots come and go at random; the bytes are those of an undisturbed run. */
TEST_F(ctx, preemption_changes_no_byte)
{
	const uint32_t side = 256, iterations = 300;
	const unsigned int jobs = 20;
	size_t size = job_mandelbrot_size(side, side, iterations);
	struct mgpu_compute_cmd c = job_mandelbrot(1, side, side, iterations);
	struct vm *vm = &self->vm;
	uint64_t taken = 0, flushed = 0;
	struct nl_ctx info;
	unsigned int i;
	uint8_t *p, *want;
	int head;

	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	p = blob(_metadata, vm, 1, 1, size);
	want = malloc(size);
	ASSERT_NE(NULL, want);
	ASSERT_EQ(OK, ctx_result(vm, ctx_submit(vm, 1, &c)));
	memcpy(want, p, size);

	srand(7);
	for (i = 0; i < jobs; i++) {
		memset(p, (int)i, size);
		head = ctx_submit(vm, 1, &c);
		ASSERT_LE(0, head);
		do {
			preempt(self, 1, rand() % 3 ? MGPU_PREEMPT_METHOD_SWITCH :
						     MGPU_PREEMPT_METHOD_FLUSH,
				rand() & 1);
			if (rand() & 1)
				sleep_ms(1);
			resume(self, 1);
			ASSERT_EQ(0, nl_ctx_get(&self->nl, self->vgpu, 1, &info));
		} while (info.queued && rand() % 16);
		ASSERT_EQ(OK, ctx_result(vm, head));
		EXPECT_EQ(0, memcmp(want, p, size));
	}
	ASSERT_EQ(0, nl_ctx_get(&self->nl, self->vgpu, 1, &info));
	taken = info.preemptions;
	flushed = info.flushes;
	TH_LOG("%llu preemptions, %llu flushes", (unsigned long long)taken,
	       (unsigned long long)flushed);
	EXPECT_LT(jobs / 2, taken);
	EXPECT_LT(0, flushed);
	EXPECT_EQ(jobs + 1, info.jobs);
	EXPECT_EQ(0, info.job_errors);
	free(want);
}

TEST_F(ctx, a_job_that_changes_its_input_is_not_flushed)
{
	struct mgpu_compute_cmd c = job_new(MGPU_COMPUTE_ACCUMULATE, 2, 1, 2, 0);
	struct vm *vm = &self->vm;
	const size_t n = 16u << 20;
	uint64_t *a, *b;
	struct nl_ctx info;
	size_t i;
	int head;

	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	a = blob(_metadata, vm, 1, 1, n);
	b = blob(_metadata, vm, 1, 2, n);
	for (i = 0; i < n / 8; i++) {
		a[i] = i;
		b[i] = 3 * i;
	}
	c.move.length = n;
	ASSERT_EQ(0, preempt(self, 1, MGPU_PREEMPT_METHOD_SWITCH, 1));
	head = ctx_submit(vm, 1, &c);
	ASSERT_LE(0, head);
	ASSERT_TRUE(wait_state(&self->nl, self->vgpu, 1, MGPU_CTX_STATE_HELD,
			       &info));
	EXPECT_EQ(-EOPNOTSUPP, preempt(self, 1, MGPU_PREEMPT_METHOD_FLUSH, 1));
	EXPECT_NE(NULL, strstr(self->nl.text, "drain"));
	ASSERT_EQ(0, resume(self, 1));
	while (!nl_ctx_get(&self->nl, self->vgpu, 1, &info) && info.queued) {
		preempt(self, 1, MGPU_PREEMPT_METHOD_SWITCH, 1);
		resume(self, 1);
	}
	EXPECT_EQ(OK, ctx_result(vm, head));
	for (i = 0; i < n / 8 && a[i] == 4 * i; i++)
		;
	EXPECT_EQ(n / 8, i);
}

TEST_F_TIMEOUT(ctx, a_drained_context_ends_its_job_first, 90)
{
	struct mgpu_compute_cmd c;
	struct vm *vm = &self->vm;
	struct nl_ctx info;
	unsigned int try;
	int head[2];

	ctx_longer(_metadata, vm);
	for (try = 0; try < ATTEMPTS; try++) {
		c = job_longer(try);
		head[0] = ctx_submit(vm, 1, &c);
		head[1] = ctx_submit(vm, 1, &c);
		ASSERT_LE(0, head[0]);
		ASSERT_LE(0, head[1]);
		ASSERT_TRUE(wait_ctx(&self->nl, self->vgpu, 1, runs_or_ran,
				     2 * try, &info));
		ASSERT_EQ(0, preempt(self, 1, MGPU_PREEMPT_METHOD_DRAIN, 1));
		ASSERT_EQ(0, nl_ctx_get(&self->nl, self->vgpu, 1, &info));
		if (info.jobs == 2 * try)
			break;
		/* The first had ended before. */
		ASSERT_EQ(0, resume(self, 1));
		EXPECT_EQ(OK, ctx_result(vm, head[0]));
		EXPECT_EQ(OK, ctx_result(vm, head[1]));
	}
	ASSERT_GT(ATTEMPTS, try);
	EXPECT_EQ(OK, ctx_result(vm, head[0]));
	EXPECT_TRUE(vq_quiet(vm, VMM_CONTROL, VMM_QUIET));
	ASSERT_EQ(0, nl_ctx_get(&self->nl, self->vgpu, 1, &info));
	EXPECT_EQ(MGPU_CTX_STATE_HELD, info.state);
	EXPECT_EQ(1, info.queued);
	ASSERT_EQ(0, resume(self, 1));
	EXPECT_EQ(OK, ctx_result(vm, head[1]));
}

/* ---- engine time ---- */

/* Run a job; return the engine time that it took, nanoseconds, 0 if it failed. */
static uint64_t run_job(struct vm *vm, struct nl *nl,
			const struct mgpu_compute_cmd *c)
{
	uint64_t before = nl_stat(nl, vm->uuid, MGPU_A_STATS_ENGINE_NS);

	if (ctx_result(vm, ctx_submit(vm, 1, c)) != OK)
		return 0;
	return nl_stat(nl, vm->uuid, MGPU_A_STATS_ENGINE_NS) - before;
}

/* Return a job_longer() that takes 50 ms of engine time, or the longest. */
static struct mgpu_compute_cmd job_of_50_ms(struct vm *vm, struct nl *nl)
{
	struct mgpu_compute_cmd c;
	unsigned int try;

	for (try = 0; try < ATTEMPTS; try++) {
		c = job_longer(try);
		c.slots = 1;
		if (run_job(vm, nl, &c) > 50000000)
			break;
	}
	return c;
}

/*
 * A vGPU that is alone keeps its limit while its job runs, not only before the next
 * one: the job takes at least half as long as its engine time at the limit's rate,
 * which is 20 % of one engine.
 */
TEST_F_TIMEOUT(ctx, a_limit_holds_within_a_job, 120)
{
	struct vm *vm = &self->vm;
	struct mgpu_compute_cmd c;
	uint64_t used, start, ns;
	struct nl_dev device;

	ASSERT_EQ(0, nl_dev_get(&self->nl, VMM_PARENT, &device));
	ctx_longer(_metadata, vm);
	c = job_of_50_ms(vm, &self->nl);
	ASSERT_EQ(0, nl_vgpu_set_full(&self->nl, vm->uuid, NL_KEEP, NL_KEEP,
				      200000 / device.engines, 10000, NL_KEEP));
	start = now_ns();
	used = run_job(vm, &self->nl, &c);
	ns = now_ns() - start;
	TH_LOG("%llu of %llu us, with 20 %% of an engine",
	       (unsigned long long)used / 1000, (unsigned long long)ns / 1000);
	ASSERT_LT(0, used);
	EXPECT_LT(5 * used, 2 * ns);
	EXPECT_LT(0, nl_stat(&self->nl, vm->uuid, MGPU_A_STATS_PREEMPTED));
	EXPECT_LT(0, nl_stat(&self->nl, vm->uuid, MGPU_A_STATS_LIMITED));
}

/* A program that runs charges shards of jobs, preempted ones too. */
TEST_F_TIMEOUT(ctx, ebpf_charges_jobs, 120)
{
	uint64_t end = now_ms() + 3 * (uint64_t)VMM_TIMEOUT;
	struct nl_vgpu before, after;
	struct vm *vm = &self->vm;
	struct mgpu_compute_cmd c;
	pid_t pid;

	ctx_longer(_metadata, vm);
	pid = mgpud_start();
	if (!pid)
		SKIP(return, "mgpud is not built");
	ASSERT_LT(0, pid);
	c = job_mandelbrot(1, 64, 64, 100);
	do {
		ASSERT_LT(0, run_job(vm, &self->nl, &c));
		ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &before));
	} while (before.charge_source != MGPU_CHARGE_SOURCE_BPF &&
		 now_ms() < end);
	c = job_longer(2);
	ASSERT_LE(0, ctx_submit(vm, 1, &c));
	preempt(self, 1, MGPU_PREEMPT_METHOD_SWITCH, 0);
	ASSERT_LT(0, run_job(vm, &self->nl, &c));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, vm->uuid, &after));
	EXPECT_TRUE(charged_by_ebpf(&before, &after));
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
}

/* ---- several slots ---- */

/* Skips where the device has one slot; test_slots.sh has two. */
#define NEED_SLOTS(n) do {						\
	struct nl_dev dev;						\
									\
	ASSERT_EQ(0, nl_dev_get(&self->nl, VMM_PARENT, &dev));		\
	if (dev.engines < (n))						\
		SKIP(return, "needs %u slots, there are %u", n,		\
		     dev.engines);					\
} while (0)

TEST_F(ctx, a_job_uses_the_slots_that_it_asks_for)
{
	struct mgpu_compute_cmd c = job_mandelbrot(1, 1024, 1024, 4095);
	struct vm *vm = &self->vm;
	struct nl_ctx info;

	NEED_SLOTS(2);
	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	blob(_metadata, vm, 1, 1, job_mandelbrot_size(1024, 1024, 4095));
	ASSERT_LE(0, ctx_submit(vm, 1, &c));
	ASSERT_TRUE(wait_slots(&self->nl, self->vgpu, 1, 2));
	ASSERT_EQ(OK, ctx_destroy(vm, 1));
	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	ASSERT_EQ(OK, ctx_attach(vm, 1, 1));
	c.slots = 1;
	ASSERT_LE(0, ctx_submit(vm, 1, &c));
	ASSERT_TRUE(wait_slots(&self->nl, self->vgpu, 1, 1));
	sleep_ms(VMM_QUIET);
	ASSERT_EQ(0, nl_ctx_get(&self->nl, self->vgpu, 1, &info));
	EXPECT_EQ(1, info.slots);
	EXPECT_EQ(1, info.slots_wanted);
}

/* Return how often the engines' threads have gone to sleep so far; 0 if none is found. */
static unsigned long long engine_sleeps(void)
{
	static const char key[] = "\nvoluntary_ctxt_switches:";
	unsigned long long sum = 0;
	char text[4096];
	const char *at;
	glob_t found;
	size_t i;

	if (glob("/proc/[0-9]*/status", 0, NULL, &found))
		return 0;
	for (i = 0; i < found.gl_pathc; i++) {
		if (sysfs_read(found.gl_pathv[i], text, sizeof(text)) <= 0 ||
		    strncmp(text, "Name:\tmgpu_soft/", 16))
			continue;
		at = strstr(text, key);
		if (at)
			sum += strtoull(at + sizeof(key) - 1, NULL, 10);
	}
	globfree(&found);
	return sum;
}

TEST_F(ctx, a_job_wakes_one_engine)
{
	struct mgpu_compute_cmd c = job_mandelbrot(1, 64, 64, 100);
	struct vm *vm = &self->vm;
	const unsigned int jobs = 400;
	unsigned long long before;
	char engine[16] = "";
	unsigned int i;

	NEED_SLOTS(2);
	sysfs_read("/sys/module/mgpu_soft/parameters/engine", engine, sizeof(engine));
	if (!strncmp(engine, "modelled", 8))
		SKIP(return, "a modelled engine sleeps while it works");
	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	blob(_metadata, vm, 1, 1, job_mandelbrot_size(64, 64, 100));
	c.slots = 1;
	before = engine_sleeps();
	ASSERT_LT(0, before);
	for (i = 0; i < jobs; i++)
		ASSERT_EQ(OK, ctx_result(vm, ctx_submit(vm, 1, &c)));
	before = engine_sleeps() - before;
	TH_LOG("engines slept %llu times for %u jobs", before, jobs);
	EXPECT_GT(jobs + jobs / 4, before);
}

TEST_F(ctx, only_the_shortfall_is_taken)
{
	struct mgpu_compute_cmd c = job_mandelbrot(1, 1024, 1024, 4095);
	struct vm *vm = &self->vm;
	struct nl_ctx a, b;

	NEED_SLOTS(2);
	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	ASSERT_EQ(OK, ctx_create(vm, 2, MGPU_CAPSET_COMPUTE));
	blob(_metadata, vm, 1, 1, job_mandelbrot_size(1024, 1024, 4095));
	ASSERT_EQ(OK, ctx_attach(vm, 2, 1));
	ASSERT_LE(0, ctx_submit(vm, 1, &c));
	ASSERT_TRUE(wait_slots(&self->nl, self->vgpu, 1, 2));
	c.slots = 1;
	ASSERT_LE(0, ctx_submit(vm, 2, &c));
	EXPECT_TRUE(wait_state(&self->nl, self->vgpu, 2,
			       MGPU_CTX_STATE_WAITING, &b));
	ASSERT_EQ(0, ctx_ask(&self->nl, MGPU_CMD_CTX_PREEMPT, self->vgpu, 1,
			     MGPU_PREEMPT_METHOD_SWITCH, 1, 0));
	ASSERT_TRUE(wait_slots(&self->nl, self->vgpu, 2, 1));
	ASSERT_EQ(0, nl_ctx_get(&self->nl, self->vgpu, 1, &a));
	EXPECT_EQ(1, a.slots);
	EXPECT_EQ(1, a.preemptions);
	/* The context gets its slot back when the other context is gone. */
	ASSERT_EQ(OK, ctx_destroy(vm, 2));
	EXPECT_TRUE(wait_slots(&self->nl, self->vgpu, 1, 2));
}

/* A limit is a part of the slots that there are: half of two, then half of one. */
TEST_F_TIMEOUT(ctx, a_limit_follows_the_slots, 120)
{
	uint64_t limited, used, start, ns;
	struct vm *vm = &self->vm;
	struct mgpu_compute_cmd c;
	struct nl_dev device;

	NEED_SLOTS(2);
	ASSERT_EQ(0, nl_dev_get(&self->nl, VMM_PARENT, &device));
	ctx_longer(_metadata, vm);
	c = job_of_50_ms(vm, &self->nl);
	ASSERT_EQ(0, nl_vgpu_set_full(&self->nl, vm->uuid, NL_KEEP, NL_KEEP,
				      500000, 10000, NL_KEEP));
	ASSERT_EQ(0, nl_dev_set_slots(&self->nl, device.id, 1));
	limited = nl_stat(&self->nl, vm->uuid, MGPU_A_STATS_LIMITED_NS);
	start = now_ns();
	used = run_job(vm, &self->nl, &c);
	ns = now_ns() - start;
	limited = nl_stat(&self->nl, vm->uuid, MGPU_A_STATS_LIMITED_NS) - limited;
	EXPECT_EQ(0, nl_dev_set_slots(&self->nl, device.id, 2));
	TH_LOG("%llu of %llu us, held back for %llu us",
	       (unsigned long long)used / 1000, (unsigned long long)ns / 1000,
	       (unsigned long long)limited / 1000);
	ASSERT_LT(0, used);
	/* A rate of one slot would never hold it back. */
	EXPECT_LT(used, 10 * limited);
	EXPECT_LT(3 * used, 2 * ns);
}

/* A job on the engine for longer than its time ends, and its context. */
TEST_F(ctx, a_job_that_takes_too_long_is_ended)
{
	struct mgpu_compute_cmd c = job_mandelbrot(1, 2048, 1024, 4095);
	struct vm *vm = &self->vm;
	int head;

	ASSERT_EQ(0, nl_dev_set(&self->nl, VMM_PARENT, NULL, 100));
	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	blob(_metadata, vm, 1, 1, job_mandelbrot_size(2048, 1024, 4095));
	head = ctx_submit(vm, 1, &c);
	EXPECT_EQ(UNSPEC, ctx_result(vm, head));
	EXPECT_EQ(NOCTX, ctx_result(vm, ctx_submit(vm, 1, &c)));
	EXPECT_EQ(0, nl_dev_set(&self->nl, VMM_PARENT, NULL,
				MGPU_JOB_TIMEOUT_MAX));
	/* It stays dead until it is made anew. */
	EXPECT_EQ(NOCTX, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	EXPECT_EQ(OK, ctx_destroy(vm, 1));
	EXPECT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	EXPECT_EQ(OK, ctx_attach(vm, 1, 1));
	c = job_mandelbrot(1, 64, 64, 100);
	EXPECT_EQ(OK, ctx_result(vm, ctx_submit(vm, 1, &c)));
}

/* ---- all at once ---- */

struct tormentor {
	atomic_bool stop;
	uint32_t vgpu[2];
	atomic_ullong asked;
	int bad;
};

/* Takes and gives slots, lists contexts, and changes how many slots there are. */
static void *torment(void *arg)
{
	struct tormentor *t = arg;
	unsigned int seed = 3;
	struct nl_ctx c[64];
	struct nl_dev dev;
	struct nl nl;
	int ret;

	ret = nl_open(&nl);
	if (!ret)
		ret = nl_dev_get(&nl, VMM_PARENT, &dev);
	while (!ret && !t->stop) {
		uint32_t vgpu = t->vgpu[rand_r(&seed) & 1];
		uint32_t ctx = 1 + (uint32_t)rand_r(&seed) % 4;

		switch (rand_r(&seed) % 6) {
		case 0:
			ret = nl_ctx_dump(&nl, 0, c, ARRAY_LEN(c));
			break;
		case 1:
			ret = nl_dev_set_slots(&nl, dev.id, 1 +
					       (uint32_t)rand_r(&seed) %
					       dev.engines);
			break;
		case 2:
			ret = ctx_ask(&nl, MGPU_CMD_CTX_RESUME, vgpu, ctx, -1,
				      -1, 0);
			break;
		default:
			ret = ctx_ask(&nl, MGPU_CMD_CTX_PREEMPT, vgpu, ctx,
				      rand_r(&seed) % 3, rand_r(&seed) % 2,
				      rand_r(&seed) % 4 == 0);
		}
		/* a context without a job, one that is gone, no flush */
		if (ret > 0 || ret == -EINVAL || ret == -ENOENT ||
		    ret == -EOPNOTSUPP)
			ret = 0;
		t->asked++;
	}
	nl_dev_set_slots(&nl, dev.id, dev.engines);
	nl_close(&nl);
	t->bad = ret;
	return NULL;
}

/* A guest that does whatever comes to its mind. */
struct whimsical {
	struct vm *vm;
	uint64_t heads;		/* submitted and not seen again */
	unsigned int done;
	unsigned int resets;
};

static void start_anew(struct whimsical *g)
{
	vio_reset(g->vm);
	vm_start_with(g->vm, RENDER_FEATURES);
	g->heads = 0;
	g->resets++;
}

static void whim(struct whimsical *g, unsigned int *seed)
{
	struct vm *vm = g->vm;
	unsigned int i;
	int head;
	uint32_t ctx = 1 + (uint32_t)rand_r(seed) % 4;
	struct mgpu_compute_cmd c = job_mandelbrot(1, 64, 64, 100);

	vq_collect(vm, VMM_CONTROL);
	for (i = 0; i < VMM_MAX_VQ; i++) {
		if (!(g->heads >> i & 1) || !vm->vq[VMM_CONTROL].done[i])
			continue;
		vq_wait(vm, VMM_CONTROL, (uint16_t)i, 0);
		g->heads &= ~(1ull << i);
		g->done++;
	}

	switch (rand_r(seed) % 16) {
	case 0:
		ctx_destroy(vm, ctx);
		break;
	case 1:
		if (rand_r(seed) % 8 == 0)
			start_anew(g);
		break;
	case 2:
		gpu_unref(vm, 1);
		break;
	case 3:
	case 4:
		ctx_create(vm, ctx, MGPU_CAPSET_COMPUTE);
		/* fall through */
	case 5:
		gpu_create_blob(vm, 1, vm->ram + vm->ram_size - (1 << 20),
				1 << 20);
		ctx_attach(vm, ctx, 1);
		break;
	default:
		c.slots = (uint32_t)rand_r(seed) % 3;
		if (rand_r(seed) % 4 == 0) {
			c = job_new(MGPU_COMPUTE_ACCUMULATE, 2, 1, 1, 0);
			c.move.src_offset = 512 << 10;
			c.move.length = 256 << 10;
		}
		/* never waits for it: a held context might not come back */
		head = ctx_submit(vm, ctx, &c);
		if (head >= 0)
			g->heads |= 1ull << head;
		else
			start_anew(g);
	}
}

static bool enough(const struct whimsical *g, const struct tormentor *t)
{
	return g[0].done + g[1].done > 10 && g[0].resets + g[1].resets &&
	       t->asked > 20;
}

TEST_F_TIMEOUT(ctx, all_at_once, 180)
{
	struct tormentor t = { .stop = false };
	uint64_t end = now_ms() + (vmm_long() ? 60000 : 3000);
	unsigned int seed = 5, n = 0;
	struct whimsical guests[2] = { { .vm = &self->vm } };
	struct nl_vgpu v;
	pthread_t thread;
	struct vm other;

	ASSERT_EQ(0, vm_new(&other, "small-render", RAM));
	ASSERT_EQ(0, vm_start_with(&other, RENDER_FEATURES));
	ASSERT_EQ(0, nl_vgpu_get(&self->nl, other.uuid, &v));
	guests[1].vm = &other;
	t.vgpu[0] = self->vgpu;
	t.vgpu[1] = v.id;
	ASSERT_EQ(0, pthread_create(&thread, NULL, torment, &t));
	while (goes_on(end, enough(guests, &t))) {
		whim(&guests[rand_r(&seed) & 1], &seed);
		n++;
	}
	t.stop = true;
	pthread_join(thread, NULL);
	EXPECT_EQ(0, t.bad);
	TH_LOG("%u steps, %u jobs done, %u resets, %llu requests", n,
	       guests[0].done + guests[1].done,
	       guests[0].resets + guests[1].resets,
	       (unsigned long long)t.asked);
	EXPECT_LT(10, guests[0].done + guests[1].done);
	EXPECT_LT(0, guests[0].resets + guests[1].resets);
	EXPECT_LT(20, t.asked);

	/* It still computes. */
	ASSERT_EQ(0, vio_reset(&self->vm));
	ASSERT_EQ(0, vm_start_with(&self->vm, RENDER_FEATURES));
	vm_delete(&other);
	ASSERT_EQ(OK, ctx_create(&self->vm, 1, MGPU_CAPSET_COMPUTE));
	blob(_metadata, &self->vm, 1, 1, job_mandelbrot_size(64, 64, 100));
	{
		struct mgpu_compute_cmd c = job_mandelbrot(1, 64, 64, 100);

		EXPECT_EQ(OK, ctx_result(&self->vm, ctx_submit(&self->vm, 1, &c)));
	}
}

/* Memory that is unmapped while a job uses it is an error, without a crash. */
TEST_F(ctx, memory_may_go_under_a_job)
{
	struct mgpu_compute_cmd c = job_mandelbrot(1, 1024, 1024, 4095);
	size_t size = (job_mandelbrot_size(1024, 1024, 4095) + 4095) & ~4095ul;
	struct vm *vm = &self->vm;
	struct nl_ctx info;
	void *p;
	int head;

	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	p = vm_alloc(vm, size, 4096);
	ASSERT_NE(NULL, p);
	/* a second name for it, which can be taken away */
	ASSERT_EQ(0, vm_map(vm, p, size, 0x200000000ull));
	ASSERT_EQ(OK, gpu_create_blob_at(vm, 1, 0x200000000ull, size));
	ASSERT_EQ(OK, ctx_attach(vm, 1, 1));
	head = ctx_submit(vm, 1, &c);
	ASSERT_LE(0, head);
	ASSERT_TRUE(wait_state(&self->nl, self->vgpu, 1,
			       MGPU_CTX_STATE_RUNNING, &info));
	ASSERT_EQ(0, vm_unmap(vm, 0x200000000ull, size));
	EXPECT_EQ(UNSPEC, ctx_result(vm, head));
}

/* Return the address space that the module's mappings of pages take, bytes. */
static long long mapped(void)
{
	FILE *f = fopen("/proc/vmallocinfo", "re");
	long long sum = 0, size;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (strstr(line, "[mgpu]") && strstr(line, " vmap") &&
		    sscanf(line, "%*s %lld", &size) == 1)
			sum += size;
	if (f)
		fclose(f);
	return f ? sum : -1;
}

#define BACKINGS	100
#define BACKING		(1u << 20)

/* The kernel maps what a job needs the address of, and nothing else. */
TEST_F(ctx, backings_take_address_space_when_a_job_needs_it)
{
	struct vm *vm = &self->vm;
	void *p = vm_alloc(vm, BACKING, 4096);
	long long before, pinned, used, attached;
	uint32_t id;

	ASSERT_NE(NULL, p);
	ASSERT_EQ(OK, ctx_create(vm, 1, MGPU_CAPSET_COMPUTE));
	before = mapped();
	for (id = 1; id <= BACKINGS; id++)
		ASSERT_EQ(OK, gpu_create_blob(vm, id, p, BACKING));
	pinned = mapped() - before;
	ASSERT_EQ(OK, gpu_set_scanout_blob(vm, 1, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
					   512, 512, 2048, 0));
	ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, 512, 512)));
	used = mapped() - before;
	for (id = 1; id <= BACKINGS; id++)
		ASSERT_EQ(OK, ctx_attach(vm, 1, id));
	attached = mapped() - before;
	TH_LOG("%u backings of %u KiB: %lld KiB, %lld KiB with a flush, %lld KiB attached",
	       BACKINGS, BACKING >> 10, pinned >> 10, used >> 10, attached >> 10);
	EXPECT_LE(0, before);
	EXPECT_EQ(0, pinned);
	EXPECT_EQ(0, used);
	EXPECT_LE((long long)BACKINGS * BACKING, attached);
	for (id = 1; id <= BACKINGS; id++) {
		ASSERT_EQ(OK, ctx_resource(vm, 1, id,
					   VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE));
		ASSERT_EQ(OK, gpu_unref(vm, id));
	}
	EXPECT_EQ(before, mapped());
}

TEST_HARNESS_MAIN
