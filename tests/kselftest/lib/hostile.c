// SPDX-License-Identifier: GPL-2.0-only
/*
 * Guests with OpenGL that mean to hurt their neighbours.
 *
 * A GPU that gets a job without an end has to be reset, and an emulated one may never
 * return: so the loops have a number of iterations.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hostile.h"

#define VERTICES	2u
#define SURFACE		10u	/* handles of gl_pipeline() end before */
#define SHADER		11u
#define SIDE		256u
#define BURST		24u	/* commands in the ring of a flood */
#define MANY		4096u	/* contexts or textures, of which fewer are possible */
#define TEXTURE_SIDE	512u

const char *const hostile_colour =
	"FRAG\n"
	"PROPERTY FS_COLOR0_WRITES_ALL_CBUFS 1\n"
	"DCL OUT[0], COLOR\n"
	"IMM[0] FLT32 {0.25, 0.5, 0.125, 1.0}\n"
	"0: MOV OUT[0], IMM[0]\n"
	"1: END\n";

/* Each iteration needs the one before. */
const char *const hostile_loop =
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

static void furniture(struct gl_stream *s, uint32_t w, uint32_t h, const char *shader)
{
	gl_begin(s);
	gl_surface(s, SURFACE, HOSTILE_PICTURE);
	gl_draw_to(s, SURFACE);
	gl_pipeline(s, VERTICES, w, h);
	gl_shader(s, SHADER, GL_FRAGMENT, shader);
}

int hostile_furnish(struct vm *vm, uint32_t w, uint32_t h, const char *shader)
{
	struct gl_stream s;
	int ret;

	if (gl_ctx(vm, HOSTILE_CTX) != OK ||
	    !gl_picture(vm, HOSTILE_CTX, HOSTILE_PICTURE, w, h, 0) ||
	    gl_vertices(vm, HOSTILE_CTX, VERTICES) != OK)
		return -EPROTO;
	furniture(&s, w, h, shader);
	ret = gl_run(vm, HOSTILE_CTX, &s);
	return ret == OK ? 0 : ret < 0 ? ret : -EPROTO;
}

void hostile_loop_job(struct gl_stream *s, uint32_t n)
{
	uint32_t triangles = (n + HOSTILE_LOOP_MAX - 1) / HOSTILE_LOOP_MAX;
	const uint32_t times[4] = { n / triangles };

	gl_begin(s);
	gl_constant(s, times);
	while (triangles--)
		gl_triangle(s);
}

/*
 * Reset the device; the guest has lost all that it had, and uses the memory again that it
 * took since it had @used bytes.
 */
static int again(struct vm *vm, size_t used)
{
	vm->ram_used = used;
	return vm_start_with(vm, GL_FEATURES);
}

/* Keep the ring full of a stream, until an answer is an error or does not come. */
static int draw(struct vm *vm, const struct gl_stream *s, unsigned int depth,
		atomic_ulong *did)
{
	uint32_t len = s->n * 4;
	void *p = vm_alloc(vm, len, 4);
	int head[BURST], ret;
	unsigned int i;

	if (!p)
		return -ENOMEM;
	memcpy(p, s->w, len);
	for (i = 0; i < depth; i++)
		head[i] = gl_send_bytes(vm, HOSTILE_CTX, ++vm->next_fence, p, len, len);
	for (i = 0;; i = (i + 1) % depth) {
		ret = gl_result(vm, head[i], NULL);
		if (ret > 0)
			++*did;
		if (ret != OK)
			return ret;
		head[i] = gl_send_bytes(vm, HOSTILE_CTX, ++vm->next_fence, p, len, len);
	}
}

/* Draw with a shader that loops, without end; each job takes @n iterations a pixel. */
static int loops(struct vm *vm, uint32_t n, unsigned int depth, atomic_ulong *did)
{
	const size_t used = vm->ram_used;
	struct gl_stream s;
	int ret = 0;

	hostile_loop_job(&s, n);
	while (!ret) {
		/* There may be no worker just now: then the next life may have one. */
		if (!hostile_furnish(vm, SIDE, SIDE, hostile_loop))
			draw(vm, &s, depth, did);
		else
			sleep_ms(10);
		ret = again(vm, used);
	}
	return ret;
}

static int flood(struct vm *vm, unsigned int seed, atomic_ulong *did)
{
	(void)seed;
	return loops(vm, 20, BURST, did);
}

static int hang(struct vm *vm, unsigned int seed, atomic_ulong *did)
{
	(void)seed;
	return loops(vm, HOSTILE_TRIANGLES * HOSTILE_LOOP_MAX, 2, did);
}

/* Create contexts until one more is refused, or has ended the renderer. */
static int contexts(struct vm *vm, unsigned int seed, atomic_ulong *did)
{
	const size_t used = vm->ram_used;
	int ret = 0;
	uint32_t i;

	(void)seed;
	while (!ret) {
		for (i = 1, ret = OK; i < MANY && ret == OK; i++) {
			ret = gl_ctx(vm, i);
			*did += ret > 0;
		}
		if (i < 3)
			sleep_ms(10);
		ret = again(vm, used);
	}
	return ret;
}

/* The same of textures, each of which is drawn to. */
static int textures(struct vm *vm, unsigned int seed, atomic_ulong *did)
{
	const size_t used = vm->ram_used;
	int ret = 0;
	uint32_t i;

	(void)seed;
	while (!ret) {
		ret = gl_ctx(vm, HOSTILE_CTX);
		for (i = 1; i < MANY && ret == OK; i++) {
			ret = gl_texture(vm, i, TEXTURE_SIDE, TEXTURE_SIDE, 0);
			if (ret == OK)
				ret = gl_ctx_attach(vm, HOSTILE_CTX, i);
			/* The copies of streams in guest memory are not freed. */
			if (ret == OK && i < 64)
				ret = gl_fill(vm, HOSTILE_CTX, i, i);
			*did += ret > 0;
		}
		if (i < 3)
			sleep_ms(10);
		ret = again(vm, used);
	}
	return ret;
}

/* Good streams with some words changed: to others, to others' neighbours, or by a bit. */
static int malformed(struct vm *vm, unsigned int seed, atomic_ulong *did)
{
	const size_t used = vm->ram_used;
	struct gl_stream good[3], s;
	unsigned int i, k;
	int ret = 0, answer;
	uint32_t *w;
	void *p;

	furniture(&good[0], SIDE, SIDE, hostile_colour);
	gl_begin(&good[1]);
	gl_clear(&good[1], 0, 0, 0, 1);
	gl_triangle(&good[1]);
	gl_begin(&good[2]);
	gl_put_fill(&good[2], HOSTILE_PICTURE, 0x12345678);
	while (!ret) {
		answer = OK;
		p = NULL;
		if (!hostile_furnish(vm, SIDE, SIDE, hostile_colour))
			p = vm_alloc(vm, sizeof(s.w), 4);
		else
			sleep_ms(10);
		for (i = 0; p && i < 64 && answer > 0; i++) {
			s = good[(unsigned int)rand_r(&seed) % ARRAY_LEN(good)];
			for (k = (unsigned int)rand_r(&seed) % 4 + 1; k; k--) {
				w = &s.w[(unsigned int)rand_r(&seed) % s.n];
				switch (rand_r(&seed) % 3) {
				case 0:
					*w ^= 1u << (rand_r(&seed) % 32);
					break;
				case 1:
					*w = (uint32_t)rand_r(&seed);
					break;
				default:
					*w = s.w[(unsigned int)rand_r(&seed) % s.n];
				}
			}
			memcpy(p, s.w, s.n * 4);
			answer = gl_result(vm, gl_send_bytes(vm, HOSTILE_CTX,
							     ++vm->next_fence, p,
							     s.n * 4, s.n * 4), NULL);
			*did += answer > 0;
		}
		ret = again(vm, used);
	}
	return ret;
}

const struct hostile hostiles[] = {
	{ "flood", flood },
	{ "hang", hang },
	{ "contexts", contexts },
	{ "textures", textures },
	{ "malformed", malformed },
};

const unsigned int nr_hostiles = ARRAY_LEN(hostiles);
