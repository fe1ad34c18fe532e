// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many VMs in one thread.  Each keeps its control queue full of one command,
 * as a VM would that always has the next frame ready: answered buffers go back
 * into the ring.  Rings are looked at by the clock, not on interrupts, so
 * that the bench takes little of the processors; the interrupts are sent all
 * the same.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sched.h"

#define PAGE		4096u
#define OK		VIRTIO_GPU_RESP_OK_NODATA
#define RAM_BASE	(1u << 20)	/* queues, commands; without the picture */
#define STOP_MS		20000	/* a job of another VM may come first */

/* ---- one machine ---- */

int machine_create(struct bench *b, struct machine *m)
{
	struct nl_vgpu v;
	int ret;

	memset(m, 0, sizeof(*m));
	mdev_uuid_new(m->uuid);
	ret = mdev_create(b->type ? b->type : "small", m->uuid);
	if (ret) {
		complain("cannot create a vGPU: %s", strerror(-ret));
		return ret;
	}
	m->made = true;
	ret = nl_vgpu_get(&b->nl, m->uuid, &v);
	if (ret) {
		complain("the module does not know vGPU %s: %s", m->uuid,
			 strerror(-ret));
		machine_remove(m);
		return ret;
	}
	m->id = v.id;
	return 0;
}

/* A picture, and memory for the load. */
static int machine_furnish(struct machine *m, uint32_t w, uint32_t h)
{
	int ret;

	ret = gpu_screen_blob(&m->vm, &m->screen, 1, w, h);
	if (ret)
		return ret;
	/* The first frame makes the display buffer, which takes a while. */
	return gpu_show(&m->vm, &m->screen);
}

int machine_open_with(struct machine *m, uint64_t features, uint32_t w, uint32_t h,
		      int (*furnish)(struct machine *m, uint32_t w, uint32_t h))
{
	size_t pixels = ((size_t)w * h * 4 + PAGE - 1) / PAGE * PAGE;
	const char *what = "open";
	int ret;

	ret = vm_open(&m->vm, m->uuid, RAM_BASE + pixels);
	if (ret)
		goto fail;
	m->open = true;
	m->buffers = m->queued = m->next = 0;
	what = "start";
	ret = vm_start_with(&m->vm, features);
	if (ret)
		goto fail;
	what = "set up the picture of";
	m->cmd = vm_alloc(&m->vm, MACHINE_CMD, PAGE);
	m->cmd_len = 0;
	m->resp = vm_alloc(&m->vm, VMM_MAX_VQ * sizeof(*m->resp), 64);
	ret = m->cmd && m->resp ? 0 : -ENOMEM;
	if (!ret && w)
		ret = furnish(m, w, h);
	if (!ret)
		return 0;
fail:
	complain("cannot %s vGPU %u: %s", what, m->id,
		 ret < 0 ? strerror(-ret) : "the device refused");
	machine_close(m);
	return ret < 0 ? ret : -EPROTO;
}

int machine_open(struct machine *m, uint32_t w, uint32_t h)
{
	return machine_open_with(m, VMM_FEATURES, w, h, machine_furnish);
}

/* Buffers for the load; they stay the ring's own for good. */
static int more_buffers(struct machine *m, unsigned int depth)
{
	struct vmm_seg segs[2];
	int head;

	while (m->buffers < depth) {
		segs[0] = (struct vmm_seg){
			vm_addr(&m->vm, m->cmd), (uint32_t)m->cmd_len, false
		};
		segs[1] = (struct vmm_seg){
			vm_addr(&m->vm, &m->resp[m->buffers]),
			sizeof(*m->resp), true
		};
		/* As the Linux driver does for more than one descriptor. */
		head = vq_add(&m->vm, VMM_CONTROL, segs, 2, true);
		if (head < 0)
			return head;
		m->head[m->buffers++] = (uint16_t)head;
	}
	return 0;
}

/* Rings only if the device asks for it. */
static void doorbell(struct machine *m)
{
	/* The index must be there before the flag is read. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&m->vm.vq[VMM_CONTROL].used->flags,
			    __ATOMIC_RELAXED) & VRING_USED_F_NO_NOTIFY)
		return;
	vq_kick(&m->vm, VMM_CONTROL);
	m->kicks++;
}

int machine_load_with(struct machine *m, unsigned int depth, const void *cmd, size_t len)
{
	unsigned int i;
	int ret;

	if (!m->open || !m->cmd || m->queued)
		return -EBUSY;
	/* The buffers have the length of the first command. */
	if (len > MACHINE_CMD || (m->buffers && len != m->cmd_len))
		return -EINVAL;
	m->cmd_len = len;
	memcpy(m->cmd, cmd, len);
	ret = more_buffers(m, depth);
	if (ret) {
		complain("vGPU %u: no room for %u commands", m->id, depth);
		return ret;
	}
	for (i = 0; i < depth; i++)
		vq_publish(&m->vm, VMM_CONTROL, m->head[i]);
	m->next = 0;
	m->depth = depth;
	m->queued = depth;
	m->on = true;
	doorbell(m);
	return 0;
}

int machine_load(struct machine *m, unsigned int depth, uint32_t w, uint32_t h)
{
	struct virtio_gpu_resource_flush cmd = {
		.r = { 0, 0, w, h }, .resource_id = m->screen.id,
	};

	gpu_hdr(&cmd.hdr, VIRTIO_GPU_CMD_RESOURCE_FLUSH);
	return machine_load_with(m, depth, &cmd, sizeof(cmd));
}

/* Count an incorrect answer of the device; report the first. */
static void spoilt(struct machine *m, uint16_t head)
{
	if (!m->bad++)
		complain("vGPU %u: answer %#x to buffer %u where buffer %u was next",
			 m->id, m->resp[m->next].type, head, m->head[m->next]);
}

unsigned int machine_reap(struct machine *m)
{
	struct vmm_vq *vq = &m->vm.vq[VMM_CONTROL];
	unsigned int n = 0;
	uint16_t idx, head;

	idx = __atomic_load_n(&vq->used->idx, __ATOMIC_ACQUIRE);
	while (vq->used_idx != idx) {
		head = (uint16_t)vq->used->ring[vq->used_idx % vq->size].id;
		if (head != m->head[m->next] || m->resp[m->next].type != OK)
			spoilt(m, head);
		head = m->head[m->next];
		m->resp[m->next].type = 0;
		m->next = (m->next + 1) % m->depth;
		vq->used_idx++;
		n++;
		if (m->on)
			vq_publish(&m->vm, VMM_CONTROL, head);
		else
			m->queued--;
	}
	m->answers += n;
	if (n == m->depth)
		m->dry++;
	if (n && m->on)
		doorbell(m);
	return n;
}

int machine_stop(struct machine *m)
{
	uint64_t end = now_ms() + STOP_MS;

	m->on = false;
	while (m->queued) {
		machine_reap(m);
		if (now_ms() > end) {
			complain("vGPU %u: %u commands not answered after %u ms",
				 m->id, m->queued, STOP_MS);
			return -ETIMEDOUT;
		}
		sleep_ms(1);
	}
	return 0;
}

void machine_close(struct machine *m)
{
	if (!m->open)
		return;
	vm_close(&m->vm);
	m->open = false;
	m->on = false;
	m->cmd = NULL;
	m->buffers = m->queued = m->next = 0;
}

void machine_remove(struct machine *m)
{
	machine_close(m);
	if (m->made)
		mdev_remove(m->uuid);
	m->made = false;
}

/* ---- many ---- */

int bench_create(struct bench *b, unsigned int n)
{
	unsigned int i;
	int ret = 0;

	if (n > b->max)
		return -ENOSPC;
	for (i = 0; i < n && !ret; i++)
		if (!b->m[i].made)
			ret = machine_create(b, &b->m[i]);
	return ret;
}

int bench_open(struct bench *b, unsigned int n, uint32_t w, uint32_t h)
{
	unsigned int i;
	int ret = bench_create(b, n);

	for (i = 0; i < n && !ret; i++)
		if (!b->m[i].open)
			ret = machine_open(&b->m[i], w, h);
	return ret;
}

int bench_stop(struct bench *b, unsigned int n)
{
	unsigned int i;
	int ret = 0, err;

	/* All at once: each would else wait for those that go on. */
	for (i = 0; i < n; i++)
		b->m[i].on = false;
	for (i = 0; i < n; i++) {
		err = b->m[i].open ? machine_stop(&b->m[i]) : 0;
		ret = ret ? ret : err;
	}
	return ret;
}

void bench_close(struct bench *b, unsigned int from)
{
	unsigned int i;

	for (i = from; i < b->max; i++)
		machine_close(&b->m[i]);
}

void bench_remove(struct bench *b)
{
	unsigned int i;

	for (i = 0; i < b->max; i++)
		machine_remove(&b->m[i]);
}

void bench_pump(struct bench *b, unsigned int n, uint64_t until_ns)
{
	uint64_t now = now_ns(), next = now;
	unsigned int i;

	for (;;) {
		for (i = 0; i < n; i++)
			if (b->m[i].queued)
				machine_reap(&b->m[i]);
		next += BENCH_TICK_NS;
		if (next > until_ns)
			next = until_ns;
		now = now_ns();
		if (now >= until_ns)
			return;
		if (next < now)
			next = now + BENCH_TICK_NS / 4;
		sleep_until(next);
		now = now_ns();
		if (now - next > b->late_ns)
			b->late_ns = now - next;
	}
}

uint64_t bench_answers(const struct bench *b, unsigned int n)
{
	uint64_t sum = 0;

	while (n)
		sum += b->m[--n].answers;
	return sum;
}

uint64_t bench_kicks(const struct bench *b, unsigned int n)
{
	uint64_t sum = 0;

	while (n)
		sum += b->m[--n].kicks;
	return sum;
}

uint64_t bench_bad(const struct bench *b, unsigned int n)
{
	uint64_t sum = 0;

	while (n)
		sum += b->m[--n].bad;
	return sum;
}

uint64_t bench_dry(const struct bench *b, unsigned int n)
{
	uint64_t sum = 0;

	while (n)
		sum += b->m[--n].dry;
	return sum;
}
