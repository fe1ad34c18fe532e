// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guests that draw on a physical GPU: the neighbours, with light frames, and one whose
 * fragment shader loops.
 *
 * A GPU that gets a job without an end has to be reset, and an emulated one may never
 * return: so the loops have a number of iterations, which is found at run time.
 */
#include <errno.h>
#include <string.h>

#include "../common/bench.h"
#include "isolation.h"

#define CTX		1u
#define PICTURE		1u
#define VERTICES	2u
#define SURFACE		10u	/* handles of gl_pipeline() end before */
#define SHADER		11u
#define LOOP_SHADER	12u

#define JOBS		4u	/* in the attacker's ring */
#define ANSWER_MS	120000	/* a job of the attacker waits for the others' share */
#define FIRST		64u	/* iterations to begin with */
/* Drivers may end a loop after 65,536 iterations, as llvmpipe does. */
#define TRIANGLE_MAX	50000u	/* iterations of a triangle's pixel */
#define TRIANGLES	64u

static const char *const colour =
	"FRAG\n"
	"PROPERTY FS_COLOR0_WRITES_ALL_CBUFS 1\n"
	"DCL OUT[0], COLOR\n"
	"IMM[0] FLT32 {0.25, 0.5, 0.125, 1.0}\n"
	"0: MOV OUT[0], IMM[0]\n"
	"1: END\n";

/* Each iteration needs the one before. */
static const char *const loop =
	"FRAG\n"
	"PROPERTY FS_COLOR0_WRITES_ALL_CBUFS 1\n"
	"DCL OUT[0], COLOR\n"
	"DCL CONST[0][0]\n"
	"DCL TEMP[0..2]\n"
	"IMM[0] FLT32 {0.3, 0.7, 0.1, 0.0}\n"
	"IMM[1] INT32 {0, 1, 0, 0}\n"
	"0: MOV TEMP[0].x, IMM[1].xxxx\n"
	"1: MOV TEMP[2].x, IMM[0].xxxx\n"
	"2: BGNLOOP :0\n"
	"3: ISGE TEMP[1].x, TEMP[0].xxxx, CONST[0][0].xxxx\n"
	"4: UIF TEMP[1].xxxx :0\n"
	"5: BRK\n"
	"6: ENDIF\n"
	"7: SIN TEMP[1].x, TEMP[2].xxxx\n"
	"8: MAD TEMP[2].x, TEMP[1].xxxx, IMM[0].yyyy, IMM[0].zzzz\n"
	"9: UADD TEMP[0].x, TEMP[0].xxxx, IMM[1].yyyy\n"
	"10: ENDLOOP :0\n"
	"11: MOV OUT[0], TEMP[2].xxxx\n"
	"12: END\n";

int gl_furnish(struct machine *m, uint32_t w, uint32_t h)
{
	struct gl_stream s;

	if (gl_ctx(&m->vm, CTX) != OK || !gl_picture(&m->vm, CTX, PICTURE, w, h, 0) ||
	    gl_vertices(&m->vm, CTX, VERTICES) != OK)
		return -EPROTO;
	gl_begin(&s);
	gl_surface(&s, SURFACE, PICTURE);
	gl_draw_to(&s, SURFACE);
	gl_pipeline(&s, VERTICES, w, h);
	gl_shader(&s, SHADER, GL_FRAGMENT, colour);
	return gl_run(&m->vm, CTX, &s) == OK ? 0 : -EPROTO;
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

/* A job of @n iterations a pixel. */
static void loop_job(struct gl_stream *s, uint32_t n)
{
	uint32_t triangles = (n + TRIANGLE_MAX - 1) / TRIANGLE_MAX;
	const uint32_t times[4] = { n / triangles };

	gl_begin(s);
	gl_constant(s, times);
	while (triangles--)
		gl_triangle(s);
}

/* Return the time of a job that has the GPU alone, ns, or -errno. */
static int64_t loop_time(struct vm *vm, uint32_t n)
{
	uint64_t start = now_ns();
	struct gl_stream s;
	int ret;

	loop_job(&s, n);
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
		if (n > TRIANGLES * TRIANGLE_MAX / 4)
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
	gl_shader(&s, LOOP_SHADER, GL_FRAGMENT, loop);
	ret = gl_run(vm, CTX, &s);
	if (ret != OK)
		return ret < 0 ? ret : -EPROTO;
	n = calibrate(vm, (int64_t)ms * 1000000);
	if (n < 0)
		return (int)n;
	loop_job(&job, (uint32_t)n);
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
