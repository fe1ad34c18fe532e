// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guests that draw on a physical GPU: the neighbours, with light frames, and one whose
 * fragment shader loops.
 * The number of iterations is found at run time.
 */
#include <errno.h>
#include <string.h>

#include "../common/bench.h"
#include "isolation.h"

#define CTX		HOSTILE_CTX
#define LOOP_SHADER	12u	/* handles of hostile_furnish() end before */

#define JOBS		4u	/* in the attacker's ring */
#define ANSWER_MS	120000	/* a job of the attacker waits for the others' share */
#define FIRST		64u	/* iterations to begin with */

int gl_furnish(struct machine *m, uint32_t w, uint32_t h)
{
	return hostile_furnish(&m->vm, w, h, hostile_colour);
}

int gl_load(struct machine *m, unsigned int depth)
{
	struct {
		struct virtio_gpu_cmd_submit submit;
		uint32_t words[64];
	} cmd = { 0 };
	struct gl_stream s;

	gl_begin(&s);
	gl_clear(&s, 0, 0, 0, 1);
	gl_triangle(&s);
	if (s.n > ARRAY_LEN(cmd.words))
		return -E2BIG;
	memcpy(cmd.words, s.w, s.n * 4);
	gpu_hdr(&cmd.submit.hdr, VIRTIO_GPU_CMD_SUBMIT_3D);
	cmd.submit.hdr.ctx_id = CTX;
	cmd.submit.hdr.flags = VIRTIO_GPU_FLAG_FENCE;
	cmd.submit.hdr.fence_id = 1;
	cmd.submit.size = s.n * 4;
	return machine_load_with(m, depth, &cmd, sizeof(cmd.submit) + s.n * 4);
}

/* Return the time of a job that has the GPU alone, ns, or -errno. */
static int64_t loop_time(struct vm *vm, uint32_t n)
{
	uint64_t start = now_ns();
	struct gl_stream s;
	int ret;

	hostile_loop_job(&s, n);
	ret = gl_run(vm, CTX, &s);
	if (ret != OK)
		return ret < 0 ? ret : -EPROTO;
	return (int64_t)(now_ns() - start);
}

/* Return the iterations that take a job of @ns, or -errno. */
static int64_t calibrate(struct vm *vm, int64_t ns)
{
	/* The host compiles the shader in the first job. */
	int64_t took = loop_time(vm, FIRST), n = FIRST;

	if (took >= 0)
		took = loop_time(vm, FIRST);
	while (took >= 0 && took < ns / 4) {
		n *= 2;
		if (n > HOSTILE_TRIANGLES * HOSTILE_LOOP_MAX / 4)
			return -ERANGE;
		took = loop_time(vm, (uint32_t)n);
	}
	return took < 0 ? took : n * ns / took + 1;
}

static struct gl_stream job;

static int prepare(struct vm *vm, unsigned int ms)
{
	struct gl_stream s;
	int64_t n;
	int ret;

	gl_begin(&s);
	gl_shader(&s, LOOP_SHADER, GL_FRAGMENT, hostile_loop);
	ret = gl_run(vm, CTX, &s);
	if (ret != OK)
		return ret < 0 ? ret : -EPROTO;
	n = calibrate(vm, (int64_t)ms * 1000000);
	if (n < 0)
		return (int)n;
	hostile_loop_job(&job, (uint32_t)n);
	return 0;
}

int gl_loop_prepare(struct vm *vm)
{
	return prepare(vm, LOOP_MS);
}

int gl_hang_prepare(struct vm *vm)
{
	return prepare(vm, HANG_MS);
}

/* @refused: a job may be answered with an error */
static int draw(struct vm *vm, bool refused)
{
	uint32_t len = job.n * 4;
	void *p = vm_alloc(vm, len, 4);
	int head[JOBS], ret;
	unsigned int i;

	if (!p)
		return -ENOMEM;
	memcpy(p, job.w, len);
	for (i = 0; i < JOBS; i++)
		head[i] = gl_send_bytes(vm, CTX, ++vm->next_fence, p, len, len);
	for (i = 0;; i = (i + 1) % JOBS) {
		if (head[i] < 0)
			return head[i];
		ret = gpu_result(vm, VMM_CONTROL, (uint16_t)head[i], NULL, 0, ANSWER_MS);
		if (ret < 0)
			return ret;
		if (ret != OK && !refused)
			return -EPROTO;
		attack_did();
		head[i] = gl_send_bytes(vm, CTX, ++vm->next_fence, p, len, len);
	}
}

int gl_loop(struct vm *vm, uint32_t id)
{
	(void)id;
	return draw(vm, false);
}

int gl_hang(struct vm *vm, uint32_t id)
{
	(void)id;
	return draw(vm, true);
}

/* Be a guest of lib/hostile.c. */
static int hostile(struct vm *vm, const char *name)
{
	static atomic_ulong did;
	unsigned int i;

	for (i = 0; i < nr_hostiles; i++)
		if (!strcmp(hostiles[i].name, name))
			return hostiles[i].run(vm, 1, &did);
	return -EINVAL;
}

int gl_contexts(struct vm *vm, uint32_t id)
{
	(void)id;
	return hostile(vm, "contexts");
}

int gl_textures(struct vm *vm, uint32_t id)
{
	(void)id;
	return hostile(vm, "textures");
}

int gl_malformed(struct vm *vm, uint32_t id)
{
	(void)id;
	return hostile(vm, "malformed");
}
