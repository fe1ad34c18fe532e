// SPDX-License-Identifier: GPL-2.0-only
/*
 * OpenGL for guests, on a vGPU of mgpu_virtio: capabilities, pictures byte by
 * byte, isolation of guests, limits, and fences.  test_virtio.c tests orders of removal
 * and a GPU that hangs.
 *
 * needs: gpu
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <kselftest_harness.h>

#include "virgl.h"

#define RAM	(64u << 20)
#define WIDTH	96u
#define HEIGHT	64u

#define SLICE_BANDS	"/sys/module/mgpu/parameters/slice_bands"

FIXTURE(gl)
{
	struct gl g;
	char bands[16];		/* as it was */
};

FIXTURE_SETUP(gl)
{
	snprintf(self->bands, sizeof(self->bands), "%lld", sysfs_number(SLICE_BANDS));
	ASSERT_EQ(0, gl_new(&self->g, "medium-render", RAM));
}

FIXTURE_TEARDOWN(gl)
{
	EXPECT_EQ(0, sysfs_write(SLICE_BANDS, self->bands));
	vm_close(&self->g.vm);
	EXPECT_EQ(0, gl_left(&self->g));
	gl_delete(&self->g);
}

/* Pixels that are not what they should be, without their alpha. */
static unsigned int wrong_pixels(const uint32_t *p, size_t n, uint32_t want)
{
	unsigned int wrong = 0;
	size_t i;

	for (i = 0; i < n; i++)
		wrong += (p[i] & 0xffffff) != (want & 0xffffff);
	return wrong;
}

static void fill_random(void *p, size_t len, unsigned int seed)
{
	uint8_t *b = p;
	size_t i;

	for (i = 0; i < len; i++)
		b[i] = (uint8_t)(rand_r(&seed) >> 7);
}

/* Return whether the device says that contexts have a capset. */
static bool context_init(void)
{
	return getenv("MGPU_CONTEXT_INIT");
}

/* Return whether the device says that guests can map blobs. */
static bool blobs(void)
{
	return getenv("MGPU_BLOBS");
}

/* ---- what is offered ---- */

TEST_F(gl, virgl_is_offered_and_nothing_that_is_not_there)
{
	uint64_t f = vio_features(&self->g.vm);

	EXPECT_NE(0, f & VMM_F(VIRTIO_GPU_F_VIRGL));
	EXPECT_EQ(blobs(), !!(f & VMM_F(VIRTIO_GPU_F_RESOURCE_BLOB)));
	EXPECT_EQ(context_init(), !!(f & VMM_F(VIRTIO_GPU_F_CONTEXT_INIT)));
	EXPECT_EQ(0, f & VMM_F(VIRTIO_GPU_F_RESOURCE_UUID));
	EXPECT_EQ(blobs() ? 0 : -ENOTSUP,
		  vm_start_with(&self->g.vm, GL_FEATURES |
				VMM_F(VIRTIO_GPU_F_RESOURCE_BLOB)));
	EXPECT_EQ(2, vio_read(&self->g.vm, VIRTIO_PCI_CAP_DEVICE_CFG,
			      offsetof(struct virtio_gpu_config, num_capsets),
			      4));
}

TEST_F(gl, two_capability_sets_without_refused_features)
{
	struct virtio_gpu_resp_capset_info info;
	struct virtio_gpu_get_capset_info gi;
	struct virtio_gpu_get_capset gc;
	struct {
		struct virtio_gpu_ctrl_hdr hdr;
		uint8_t data[2048];
	} cap;
	struct vm *vm = &self->g.vm;
	uint32_t i, bits;

	memset(&gi, 0, sizeof(gi));
	memset(&gc, 0, sizeof(gc));
	gpu_hdr(&gi.hdr, VIRTIO_GPU_CMD_GET_CAPSET_INFO);
	gpu_hdr(&gc.hdr, VIRTIO_GPU_CMD_GET_CAPSET);
	for (i = 0; i < 2; i++) {
		gi.capset_index = i;
		ASSERT_EQ(VIRTIO_GPU_RESP_OK_CAPSET_INFO,
			  gpu_call(vm, &gi, sizeof(gi), &info, sizeof(info)));
		EXPECT_EQ(i + 1, info.capset_id);
		EXPECT_LT(300, info.capset_max_size);
		EXPECT_GE(i ? 1384 : 308, info.capset_max_size);
		EXPECT_EQ(0, info.capset_max_size % 4);

		gc.capset_id = i + 1;
		gc.capset_version = info.capset_max_version;
		memset(&cap, 0xcc, sizeof(cap));
		ASSERT_EQ(VIRTIO_GPU_RESP_OK_CAPSET,
			  gpu_call(vm, &gc, sizeof(gc), &cap, sizeof(cap)));
		/* The capability set is not empty, and not longer than announced. */
		for (bits = 0; bits < 64 && !cap.data[bits]; bits++)
			;
		EXPECT_GT(64, bits);
		/* gpu_send() filled the answer's page with this. */
		EXPECT_EQ(0xee, cap.data[info.capset_max_size]);
	}
	/* Of set 2: no debug flags, buffers that stay mapped only with blobs, nothing of video. */
	ASSERT_LE(1384, info.capset_max_size + 1384 - 692);
	memcpy(&bits, cap.data + 392, sizeof(bits));
	EXPECT_EQ(0, bits & 0x4000);
	EXPECT_TRUE(blobs() || !(bits >> 31));
	EXPECT_NE(0, bits & 0x7fffffff);
	memcpy(&bits, cap.data + 688, sizeof(bits));
	EXPECT_EQ(0, bits & ~0x3fff1u);
	if (info.capset_max_size >= 860) {
		memcpy(&bits, cap.data + 856, sizeof(bits));
		EXPECT_EQ(0, bits);
	}

	gi.capset_index = 2;
	EXPECT_EQ(PARAM, gpu_call(vm, &gi, sizeof(gi), NULL, 0));
	gi.capset_index = ~0u;
	EXPECT_EQ(PARAM, gpu_call(vm, &gi, sizeof(gi), NULL, 0));
	for (i = 0; i < 10; i++) {
		gc.capset_id = i;
		EXPECT_EQ(i == 1 || i == 2 ? VIRTIO_GPU_RESP_OK_CAPSET : PARAM,
			  gpu_call(vm, &gc, sizeof(gc), &cap, sizeof(cap)));
	}
}

TEST_F(gl, blobs_and_kinds_of_contexts_that_are_offered)
{
	struct vm *vm = &self->g.vm;
	void *p = vm_alloc(vm, 4096, 4096);

	EXPECT_EQ(blobs() ? OK : UNSPEC, gpu_create_blob(vm, 1, p, 4096));
	EXPECT_EQ(blobs() ? OK : NORES, gpu_unref(vm, 1));
	EXPECT_EQ(PARAM, gl_ctx_of(vm, 1, 4));
	EXPECT_EQ(context_init() ? OK : PARAM, gl_ctx_of(vm, 1, 2));
	EXPECT_EQ(context_init() ? OK : NOCTX, gl_ctx_end(vm, 1));
}

/* ---- blobs: buffers that stay mapped ---- */

#define BLOB	8192u
#define MAPPED	VIRTIO_GPU_RESP_OK_MAP_INFO

/* Make a blob in context 1, with the number of its storage, and map it at @offset. */
static int make_blob(struct vm *vm, uint32_t id, uint32_t size, uint64_t offset)
{
	struct gl_stream s;
	int ret;

	gl_begin(&s);
	gl_storage(&s, id, size);
	ret = gl_run(vm, 1, &s);
	if (ret == OK)
		ret = gl_blob(vm, 1, id, size);
	if (ret == OK)
		ret = gl_ctx_attach(vm, 1, id);
	return ret == OK ? gl_map(vm, id, offset) : ret;
}

/* Return the bytes that count against the type, or ~0. */
static uint64_t mem_used(struct gl *g)
{
	struct nl_vgpu v;

	return nl_vgpu_get(&g->nl, g->vm.uuid, &v) ? ~0ull : v.mem_used;
}

static bool all_zeros(volatile const uint8_t *p, size_t len)
{
	while (len && !*p) {
		p++;
		len--;
	}
	return !len;
}

static void copy_out(volatile uint8_t *to, const void *from, size_t len)
{
	const uint8_t *p = from;

	while (len--)
		*to++ = *p++;
}

/* A picture and a pipeline whose draws add white to what is there, from vertices in @id. */
static int set_up(struct vm *vm, uint32_t *picture, uint32_t id)
{
	static const char *const white =
		"FRAG\n"
		"PROPERTY FS_COLOR0_WRITES_ALL_CBUFS 1\n"
		"DCL OUT[0], COLOR\n"
		"IMM[0] FLT32 {1.0, 1.0, 1.0, 1.0}\n"
		"0: MOV OUT[0], IMM[0]\n"
		"1: END\n";
	struct gl_stream s;
	int ret = gl_vertices(vm, 1, 2);

	if (ret != OK || !picture)
		return ret;
	gl_begin(&s);
	gl_surface(&s, 10, 1);
	gl_draw_to(&s, 10);
	gl_pipeline(&s, 2, WIDTH, HEIGHT);
	gl_shader(&s, 11, GL_FRAGMENT, white);
	gl_vertices_from(&s, id);
	return gl_run(vm, 1, &s);
}

/* Draw on black, and return the colour of all pixels, or 1 if they differ. */
static uint32_t drawn(struct vm *vm, const uint32_t *picture)
{
	struct gl_stream s;

	gl_begin(&s);
	gl_clear(&s, 0, 0, 0, 0);
	gl_triangle(&s);
	if (gl_run(vm, 1, &s) != OK || gl_fetch(vm, 1, 1, WIDTH, HEIGHT) != OK ||
	    wrong_pixels(picture, WIDTH * HEIGHT, picture[0]))
		return 1;
	return picture[0] & 0xffffff;
}

/* Draws read the bytes that the guest writes to its BAR, and it finds drawn bytes there. */
TEST_F_TIMEOUT(gl, a_blob_that_the_guest_maps, 120)
{
	const uint8_t zeros[16] = { 0 };
	struct vm *vm = &self->g.vm;
	volatile uint8_t *bar;
	uint32_t *picture;
	struct gl_stream s;
	size_t len;

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	if (!blobs()) {
		EXPECT_EQ(NULL, hostmem_map(vm, &len));
		EXPECT_EQ(PARAM, make_blob(vm, 3, BLOB, 0));
		EXPECT_EQ(UNSPEC, gl_blob(vm, 1, 3, BLOB));
		return;
	}
	bar = hostmem_map(vm, &len);
	ASSERT_NE(NULL, bar);
	picture = gl_picture(vm, 1, 1, WIDTH, HEIGHT, 0);
	ASSERT_NE(NULL, picture);
	ASSERT_EQ(MAPPED, make_blob(vm, 3, BLOB, 0x10000));
	EXPECT_TRUE(all_zeros(bar + 0x10000, BLOB));
	ASSERT_EQ(OK, set_up(vm, picture, 3));
	EXPECT_EQ(0, drawn(vm, picture));
	copy_out(bar + 0x10000, gl_corners, sizeof(gl_corners));
	EXPECT_EQ(0xffffff, drawn(vm, picture));
	/* Nothing is told to the device about a write. */
	copy_out(bar + 0x10000, zeros, sizeof(zeros));
	EXPECT_NE(0xffffff, drawn(vm, picture));
	/* The device writes: buffer 2 has the corners from set_up(). */
	gl_begin(&s);
	gl_copy(&s, 3, 2, sizeof(gl_corners), 1);
	ASSERT_EQ(OK, gl_run(vm, 1, &s));
	EXPECT_EQ(0, memcmp((const void *)(bar + 0x10000), gl_corners, sizeof(gl_corners)));
	EXPECT_TRUE(all_zeros(bar + 0x10000 + sizeof(gl_corners), BLOB - sizeof(gl_corners)));
	EXPECT_EQ(0xffffff, drawn(vm, picture));
	/* At another place, with the same content. */
	ASSERT_EQ(OK, gl_unmap(vm, 3));
	EXPECT_TRUE(all_zeros(bar + 0x10000, BLOB));
	EXPECT_EQ(0xffffff, drawn(vm, picture));
	ASSERT_EQ(MAPPED, gl_map(vm, 3, 0x4000));
	EXPECT_EQ(0, memcmp((const void *)(bar + 0x4000), gl_corners, sizeof(gl_corners)));
	/* An end of the guest's driver takes it away; the next one begins with zeros. */
	ASSERT_EQ(0, gl_restart(&self->g));
	EXPECT_TRUE(all_zeros(bar + 0x4000, BLOB));
	EXPECT_EQ(0, mem_used(&self->g));
	ASSERT_EQ(OK, gl_ctx(vm, 1));
	ASSERT_EQ(MAPPED, make_blob(vm, 3, BLOB, 0x4000));
	EXPECT_TRUE(all_zeros(bar + 0x4000, BLOB));
	munmap((void *)bar, len);
}

/* Map the BAR of blobs, and make context 1: NULL if one of them fails. */
static volatile uint8_t *bar_of_context(struct vm *vm, size_t *len)
{
	volatile uint8_t *bar = hostmem_map(vm, len);

	return bar && gl_ctx(vm, 1) == OK ? bar : NULL;
}

/* A worker's heap has pages of blobs that are gone, of all sizes. */
TEST_F_TIMEOUT(gl, a_new_blob_has_nothing_of_old_ones, 120)
{
	struct vm *vm = &self->g.vm;
	volatile uint8_t *bar;
	uint32_t i, n, size, other;
	size_t len;

	if (!blobs())
		SKIP(return, "the device has no blobs");
	bar = bar_of_context(vm, &len);
	ASSERT_NE(NULL, bar);
	for (n = 0; n < 8; n++) {
		size = 4096u << n % 4;
		for (i = 1; i <= 6; i++) {
			ASSERT_EQ(MAPPED, make_blob(vm, i, size, i * 0x10000));
			EXPECT_TRUE(all_zeros(bar + i * 0x10000, size));
			memset((void *)(bar + i * 0x10000), 0x5a, size);
		}
		for (i = 1; i <= 6; i++) {
			ASSERT_EQ(OK, gpu_unref(vm, i));
			EXPECT_TRUE(all_zeros(bar + i * 0x10000, size));
			/* The others keep theirs. */
			other = i < 6 ? 6 : 0;
			EXPECT_TRUE(!other || bar[other * 0x10000 + size - 1] == 0x5a);
		}
	}
	EXPECT_EQ(0, mem_used(&self->g));
	munmap((void *)bar, len);
}

TEST_F_TIMEOUT(gl, blobs_count_against_the_type, 120)
{
	const uint32_t big = 48u << 20;
	struct vm *vm = &self->g.vm;
	volatile uint8_t *bar;
	uint32_t i, n;
	size_t len;

	if (!blobs())
		SKIP(return, "the device has no blobs");
	bar = bar_of_context(vm, &len);
	ASSERT_NE(NULL, bar);
	for (n = 0; n < 3; n++) {
		/* 128 MiB in all. */
		ASSERT_EQ(MAPPED, make_blob(vm, 1, big, 0));
		ASSERT_EQ(MAPPED, make_blob(vm, 2, big, big));
		EXPECT_EQ(NOMEM, make_blob(vm, 3, big, 2 * big));
		EXPECT_EQ(2 * big, mem_used(&self->g));
		/* Both are used to their ends. */
		for (i = 0; i < 2 * big; i += 1u << 20)
			bar[i + 4095] = (uint8_t)(i >> 20);
		EXPECT_EQ((2 * big - 1) >> 20, bar[2 * big - (1u << 20) + 4095]);
		ASSERT_EQ(OK, gpu_unref(vm, 1));
		ASSERT_EQ(OK, gpu_unref(vm, 2));
	}
	EXPECT_EQ(0, mem_used(&self->g));
	munmap((void *)bar, len);
}

/* Fences of one ring, between those without one; a device without rings ignores it. */
TEST_F(gl, fences_on_a_ring)
{
	struct vm *vm = &self->g.vm;
	struct gl_stream s;
	int heads[6];
	uint32_t i;

	ASSERT_EQ(OK, gl_ctx_of(vm, 1, context_init() ? 2 : 0));
	ASSERT_EQ(OK, gl_texture(vm, 1, WIDTH, HEIGHT, 0));
	ASSERT_EQ(OK, gl_ctx_attach(vm, 1, 1));
	gl_begin(&s);
	gl_put_fill(&s, 1, 0xff00ff00);
	for (i = 0; i < ARRAY_LEN(heads); i++)
		heads[i] = i % 2 ? gl_send_on(vm, 1, 0, &s) :
				   gl_send(vm, 1, ++vm->next_fence, &s);
	for (i = 0; i < ARRAY_LEN(heads); i++)
		EXPECT_EQ(OK, gl_result(vm, heads[i], NULL));
	/* virgl's contexts have one ring. */
	EXPECT_EQ(context_init() ? PARAM : OK,
		  gl_result(vm, gl_send_on(vm, 1, 1, &s), NULL));
}

/* ---- pictures ---- */

TEST_F(gl, a_drawing_can_be_read_back)
{
	struct vm *vm = &self->g.vm;
	uint32_t *p;

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	p = gl_picture(vm, 1, 1, WIDTH, HEIGHT, 0);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(OK, gl_fill(vm, 1, 1, 0xff2040c0));
	memset(p, 0x11, WIDTH * HEIGHT * 4);
	ASSERT_EQ(OK, gl_fetch(vm, 1, 1, WIDTH, HEIGHT));
	EXPECT_EQ(0, wrong_pixels(p, WIDTH * HEIGHT, 0x2040c0));
	ASSERT_EQ(OK, gl_fill(vm, 1, 1, 0xff804001));
	ASSERT_EQ(OK, gl_fetch(vm, 1, 1, WIDTH, HEIGHT));
	EXPECT_EQ(0, wrong_pixels(p, WIDTH * HEIGHT, 0x804001));
}

/* Triangles whose colour a loop in the fragment shader computes, as often as it is told. */
TEST_F(gl, a_shader_with_a_loop_draws)
{
	/* A sixteenth of full red and blue each time. */
	static const char *const text =
		"FRAG\n"
		"PROPERTY FS_COLOR0_WRITES_ALL_CBUFS 1\n"
		"DCL OUT[0], COLOR\n"
		"DCL CONST[0][0]\n"
		"DCL TEMP[0..2]\n"
		"IMM[0] FLT32 {0.0625, 0.0, 0.0625, 0.0}\n"
		"IMM[1] INT32 {0, 1, 0, 0}\n"
		"0: MOV TEMP[0].x, IMM[1].xxxx\n"
		"1: MOV TEMP[2], IMM[0].yyyy\n"
		"2: BGNLOOP :0\n"
		"3: ISGE TEMP[1].x, TEMP[0].xxxx, CONST[0][0].xxxx\n"
		"4: UIF TEMP[1].xxxx :0\n"
		"5: BRK\n"
		"6: ENDIF\n"
		"7: ADD TEMP[2], TEMP[2], IMM[0]\n"
		"8: UADD TEMP[0].x, TEMP[0].xxxx, IMM[1].yyyy\n"
		"9: ENDLOOP :0\n"
		"10: MOV OUT[0], TEMP[2]\n"
		"11: END\n";
	const uint32_t times[4] = { 4 };
	struct vm *vm = &self->g.vm;
	struct gl_stream s;
	uint32_t *p;

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	p = gl_picture(vm, 1, 1, WIDTH, HEIGHT, 0);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(OK, gl_vertices(vm, 1, 2));
	gl_begin(&s);
	gl_surface(&s, 10, 1);
	gl_draw_to(&s, 10);
	gl_pipeline(&s, 2, WIDTH, HEIGHT);
	gl_shader(&s, 11, GL_FRAGMENT, text);
	gl_constant(&s, times);
	gl_clear(&s, 0, 1, 0, 0);
	gl_triangle(&s);
	gl_triangle(&s);
	ASSERT_EQ(OK, gl_run(vm, 1, &s));
	ASSERT_EQ(OK, gl_fetch(vm, 1, 1, WIDTH, HEIGHT));
	/* Twice a quarter, added to green. */
	EXPECT_EQ(0, wrong_pixels(p, WIDTH * HEIGHT, 0x80ff80)) {
		TH_LOG("%#x", p[WIDTH * HEIGHT / 2]);
	}
}

/*
 * A scene in which each pixel has another colour, with draws that do and do not use the
 * scissor rectangle.  @broken: an object that does not exist is bound in the middle.
 */
static void put_scene(struct gl_stream *s, bool broken)
{
	static const char *const text =
		"FRAG\n"
		"PROPERTY FS_COLOR0_WRITES_ALL_CBUFS 1\n"
		"DCL IN[0], POSITION, LINEAR\n"
		"DCL OUT[0], COLOR\n"
		"IMM[0] FLT32 {0.0011, 0.0017, 0.0007, 0.0013}\n"
		"0: MUL OUT[0], IN[0].xyyx, IMM[0]\n"
		"1: END\n";

	gl_begin(s);
	gl_surface(s, 10, 1);
	gl_draw_to(s, 10);
	gl_pipeline(s, 2, WIDTH, HEIGHT);
	gl_shader(s, 11, GL_FRAGMENT, text);
	gl_clear(s, 0, 0.25, 0, 0);
	gl_triangle(s);
	gl_rasterizer(s, 20, GL_HALF_CENTER | GL_SCISSOR);
	gl_scissor(s, 10, 9, WIDTH - 5, HEIGHT - 6);
	gl_triangle(s);
	gl_bind_rasterizer(s, 2);
	if (broken)
		gl_bind_rasterizer(s, 77);
	gl_triangle(s);
	gl_blit(s, 1, WIDTH / 2, HEIGHT / 2, 3, WIDTH, HEIGHT);
	gl_rasterizer(s, 21, GL_HALF_CENTER | GL_SCISSOR);
	gl_scissor(s, 0, HEIGHT / 2, WIDTH, HEIGHT);
	gl_triangle(s);
	gl_triangle(s);
}

/* Slices and bands, which the module makes of streams and draws, show nowhere. */
TEST_F(gl, a_picture_is_the_same_in_slices)
{
	static const char *const bands[] = { "0", "1", "3", "4" };
	static uint32_t want[2][WIDTH * HEIGHT];
	const size_t size = sizeof(want[0]);
	struct vm *vm = &self->g.vm;
	unsigned int i, broken;
	uint64_t jobs, whole = 0;
	struct gl_stream s;
	uint32_t *p, ctx;
	int answer[2] = { 0 }, ret;

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	p = gl_picture(vm, 1, 1, WIDTH, HEIGHT, 0);
	ASSERT_NE(NULL, p);
	ASSERT_NE(NULL, gl_picture(vm, 1, 3, WIDTH, HEIGHT, 0));
	ASSERT_EQ(OK, gl_fill(vm, 1, 3, 0xff336699));
	ASSERT_EQ(OK, gl_vertices(vm, 1, 2));
	for (i = 0; i < ARRAY_LEN(bands); i++) {
		ASSERT_EQ(0, sysfs_write(SLICE_BANDS, bands[i]));
		for (broken = 0; broken < 2; broken++) {
			ASSERT_EQ(OK, gl_fill(vm, 1, 1, 0xff000000));
			ctx = 2 + i * 2 + broken;
			ASSERT_EQ(OK, gl_ctx(vm, ctx));
			ASSERT_EQ(OK, gl_ctx_attach(vm, ctx, 1));
			ASSERT_EQ(OK, gl_ctx_attach(vm, ctx, 2));
			ASSERT_EQ(OK, gl_ctx_attach(vm, ctx, 3));
			put_scene(&s, broken);
			jobs = nl_stat(&self->g.nl, vm->uuid, MGPU_A_STATS_JOBS);
			ret = gl_run(vm, ctx, &s);
			jobs = nl_stat(&self->g.nl, vm->uuid, MGPU_A_STATS_JOBS) - jobs;
			if (!i) {
				whole = jobs;
				answer[broken] = ret;
				EXPECT_TRUE(broken || ret == OK);
			}
			/* A renderer may refuse what comes behind an error. */
			if (!broken || !i || ret != UNSPEC)
				EXPECT_EQ(answer[broken], ret);
			/* Draws and all other commands are jobs, and so is each band. */
			EXPECT_LE(i ? 20 + (i > 1 ? i * 5 : 0) : 1, jobs);
			memset(p, 0x11, size);
			ASSERT_EQ(OK, gl_fetch(vm, 1, 1, WIDTH, HEIGHT));
			if (!i)
				memcpy(want[broken], p, size);
			EXPECT_EQ(0, memcmp(want[broken], p, size)) {
				TH_LOG("bands: %s, broken: %u", bands[i], broken);
			}
			EXPECT_EQ(OK, gl_ctx_end(vm, ctx));
		}
	}
	EXPECT_EQ(1, whole);
	EXPECT_NE(0, memcmp(want[0], want[1], size));
	EXPECT_NE(want[0][0], want[0][WIDTH * HEIGHT - 1]);
}

/* Up from one place in memory, and down to another: nothing else is touched. */
struct layout {
	struct virtio_gpu_box box;
	uint32_t level;
	uint32_t stride;	/* 0: that of the level */
	uint32_t layer_stride;
	uint64_t offset;
};

static void check_layout(struct __test_metadata *_metadata, struct vm *vm,
			 uint32_t ctx, uint32_t res, uint8_t *mem, size_t len,
			 uint32_t bytes, const struct layout *up,
			 const struct layout *down, uint32_t width,
			 uint32_t height)
{
	struct gl_move m = { .ctx = ctx, .res = res, .up = true };
	uint32_t s1, s2, l1, l2, z, y;
	uint8_t *was = malloc(len), *want = malloc(len);

	ASSERT_NE(NULL, was);
	ASSERT_NE(NULL, want);
	fill_random(mem, len, (unsigned int)up->offset + 1);
	memcpy(was, mem, len);
	m.box = up->box;
	m.level = up->level;
	m.stride = up->stride;
	m.layer_stride = up->layer_stride;
	m.offset = up->offset;
	ASSERT_EQ(OK, gl_move(vm, &m));
	EXPECT_EQ(0, memcmp(was, mem, len));

	fill_random(mem, len, 77);
	memcpy(want, mem, len);
	m.up = false;
	m.stride = down->stride;
	m.layer_stride = down->layer_stride;
	s1 = up->stride ? up->stride : width * bytes;
	s2 = down->stride ? down->stride : width * bytes;
	l1 = up->layer_stride ? up->layer_stride : s1 * height;
	l2 = down->layer_stride ? down->layer_stride : s2 * height;
	/* From the GPU it is a layer at a time. */
	m.box.d = 1;
	for (z = 0; z < up->box.d; z++, m.box.z++) {
		m.offset = down->offset + z * (uint64_t)l2;
		ASSERT_EQ(OK, gl_move(vm, &m));
	}
	for (z = 0; z < up->box.d; z++)
		for (y = 0; y < up->box.h; y++)
			memcpy(want + down->offset + z * (size_t)l2 +
			       y * (size_t)s2,
			       was + up->offset + z * (size_t)l1 +
			       y * (size_t)s1, up->box.w * bytes);
	for (y = 0; y < len && want[y] == mem[y]; y++)
		;
	EXPECT_EQ(len, y) {
		TH_LOG("byte %u of %zu differs", y, len);
	}
	free(was);
	free(want);
}

TEST_F(gl, boxes_levels_and_strides)
{
	const struct virtio_gpu_resource_create_3d tex = {
		.resource_id = 1, .target = GL_2D, .format = GL_B8G8R8A8,
		.bind = GL_SAMPLED | GL_TARGET, .width = 80, .height = 60,
		.depth = 1, .array_size = 1, .last_level = 2,
	};
	static const struct layout tex_up[] = {
		{ { 0, 0, 0, 80, 60, 1 }, 0, 0, 0, 0 },
		{ { 3, 5, 0, 17, 11, 1 }, 0, 200, 0, 52 },
		{ { 79, 59, 0, 1, 1, 1 }, 0, 4, 0, 1000 },
		{ { 0, 0, 0, 40, 30, 1 }, 1, 0, 0, 64 },
		{ { 7, 1, 0, 13, 28, 1 }, 2, 0, 0, 0 },
	};
	static const struct layout tex_down[] = {
		{ { 0 }, 0, 400, 0, 128 },
		{ { 0 }, 0, 68, 0, 4 },
		{ { 0 }, 0, 0, 0, 2000 },
		{ { 0 }, 1, 164, 0, 8 },
		{ { 0 }, 2, 96, 0, 2048 },
	};
	struct vm *vm = &self->g.vm;
	const size_t len = 32768;
	uint8_t *mem;
	unsigned int i;

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	mem = vm_alloc(vm, len, 4096);
	ASSERT_EQ(OK, gl_create(vm, &tex));
	ASSERT_EQ(OK, gpu_attach(vm, 1, mem, len));
	ASSERT_EQ(OK, gl_ctx_attach(vm, 1, 1));
	for (i = 0; i < ARRAY_LEN(tex_up); i++) {
		struct layout up = tex_up[i];
		uint32_t w = 80 >> up.level, h = 60 >> up.level;

		/* A box that leaves the level is refused, not cut off. */
		if (up.box.x + up.box.w > w || up.box.y + up.box.h > h) {
			const struct gl_move m = {
				.ctx = 1, .res = 1, .level = up.level,
				.box = up.box, .up = true,
			};

			EXPECT_EQ(PARAM, gl_move(vm, &m));
			continue;
		}
		check_layout(_metadata, vm, 1, 1, mem, len, 4, &up,
			     &tex_down[i], w, h);
	}
}

TEST_F(gl, volumes_and_buffers)
{
	const struct virtio_gpu_resource_create_3d volume = {
		.resource_id = 1, .target = GL_3D, .format = GL_B8G8R8A8,
		.bind = GL_SAMPLED, .width = 16, .height = 8, .depth = 6,
		.array_size = 1,
	}, buffer = {
		.resource_id = 2, .target = GL_BUFFER, .format = GL_R8,
		.bind = GL_VERTICES, .width = 10007, .height = 1, .depth = 1,
		.array_size = 1,
	};
	static const struct layout up[] = {
		{ { 0, 0, 0, 16, 8, 6 }, 0, 0, 0, 0 },
		{ { 2, 3, 1, 9, 4, 3 }, 0, 64, 512, 20 },
		{ { 1001, 0, 0, 4097, 1, 1 }, 0, 0, 0, 333 },
	}, down[] = {
		{ { 0 }, 0, 80, 640, 16 },
		{ { 0 }, 0, 36, 144, 3000 },
		{ { 0 }, 0, 0, 0, 4001 },
	};
	struct gl_move m = {
		.ctx = 1, .res = 1, .box = { .w = 4, .h = 4, .d = 1 },
	};
	struct vm *vm = &self->g.vm;
	const size_t len = 16384;
	uint8_t *mem[2];

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	mem[0] = vm_alloc(vm, len, 4096);
	mem[1] = vm_alloc(vm, len, 4096);
	ASSERT_EQ(OK, gl_create(vm, &volume));
	ASSERT_EQ(OK, gl_create(vm, &buffer));
	ASSERT_EQ(OK, gpu_attach(vm, 1, mem[0], len));
	ASSERT_EQ(OK, gpu_attach(vm, 2, mem[1], len));
	ASSERT_EQ(OK, gl_ctx_attach(vm, 1, 1));
	ASSERT_EQ(OK, gl_ctx_attach(vm, 1, 2));
	check_layout(_metadata, vm, 1, 1, mem[0], len, 4, &up[0], &down[0], 16,
		     8);
	check_layout(_metadata, vm, 1, 1, mem[0], len, 4, &up[1], &down[1], 16,
		     8);
	check_layout(_metadata, vm, 1, 2, mem[1], len, 1, &up[2], &down[2],
		     10007, 1);
	/* Only the first of several layers would be the resource's. */
	m.box.d = 2;
	EXPECT_EQ(PARAM, gl_move(vm, &m));
	m.up = true;
	EXPECT_EQ(OK, gl_move(vm, &m));
}

TEST_F(gl, transfers_stay_in_the_memory)
{
	struct vm *vm = &self->g.vm;
	struct gl_move m = {
		.ctx = 1, .res = 1, .box = { .w = 16, .h = 16, .d = 1 },
	};
	uint8_t *mem;
	int i;

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	mem = vm_alloc(vm, 4096, 4096);
	ASSERT_EQ(OK, gl_texture(vm, 1, 16, 16, 0));
	ASSERT_EQ(OK, gl_ctx_attach(vm, 1, 1));
	/* Nothing is attached yet. */
	EXPECT_EQ(UNSPEC, gl_move(vm, &m));
	ASSERT_EQ(OK, gpu_attach(vm, 1, mem, 1024));
	for (i = 0; i < 2; i++) {
		m.up = i;
		m.offset = 0;
		m.stride = 0;
		EXPECT_EQ(OK, gl_move(vm, &m));
		m.offset = 4;
		EXPECT_EQ(PARAM, gl_move(vm, &m));
		m.offset = ~0ull - 100;
		EXPECT_EQ(PARAM, gl_move(vm, &m));
		m.offset = 0;
		m.stride = 65;
		EXPECT_EQ(PARAM, gl_move(vm, &m));
		m.stride = 63;
		EXPECT_EQ(PARAM, gl_move(vm, &m));
		m.stride = ~0u;
		EXPECT_EQ(PARAM, gl_move(vm, &m));
		m.stride = 0;
		m.box.x = 1;
		EXPECT_EQ(PARAM, gl_move(vm, &m));
		m.box.x = ~0u;
		EXPECT_EQ(PARAM, gl_move(vm, &m));
		m.box.x = 0;
		m.box.d = 2;
		EXPECT_EQ(PARAM, gl_move(vm, &m));
		m.box.d = 1;
		m.level = 1;
		EXPECT_EQ(PARAM, gl_move(vm, &m));
		m.level = 0;
		m.ctx = 2;
		EXPECT_EQ(NOCTX, gl_move(vm, &m));
		m.ctx = 1;
		m.res = 2;
		EXPECT_EQ(NORES, gl_move(vm, &m));
		m.res = 1;
	}
}

/* Pieces of odd lengths at odd places, the last one first. */
TEST_F(gl, scattered_memory)
{
	enum { SIDE = 128, SIZE = SIDE * SIDE * 4 };
	struct virtio_gpu_mem_entry *e;
	struct vm *vm = &self->g.vm;
	uint8_t *where[2048], *pool;
	uint32_t len[2048], n = 0, at = 0, i, k, bad = 0;
	unsigned int seed = 9;
	uint8_t *want = malloc(SIZE);
	struct gl_move m = {
		.ctx = 1, .res = 1, .up = true,
		.box = { .w = SIDE, .h = SIDE, .d = 1 },
	};

	ASSERT_NE(NULL, want);
	ASSERT_EQ(OK, gl_ctx(vm, 1));
	ASSERT_EQ(OK, gl_texture(vm, 1, SIDE, SIDE, 0));
	ASSERT_EQ(OK, gl_ctx_attach(vm, 1, 1));
	pool = vm_alloc(vm, 2048 * 512, 4096);
	e = vm_alloc(vm, sizeof(*e) * 2048, 16);
	ASSERT_NE(NULL, e);
	while (at < SIZE) {
		len[n] = 1 + (uint32_t)rand_r(&seed) % 257;
		if (len[n] > SIZE - at)
			len[n] = SIZE - at;
		where[n] = pool + (size_t)(2047 - n) * 512 +
			   rand_r(&seed) % 200;
		at += len[n];
		n++;
		ASSERT_GT(2048, n);
	}
	for (i = 0; i < n; i++) {
		e[i] = (struct virtio_gpu_mem_entry){
			.addr = vm_addr(vm, where[i]), .length = len[i],
		};
	}
	TH_LOG("%u entries", n);
	ASSERT_EQ(OK, gl_attach_entries(vm, 1, e, n));
	fill_random(want, SIZE, 5);
	for (i = 0, at = 0; i < n; at += len[i++])
		memcpy(where[i], want + at, len[i]);
	ASSERT_EQ(OK, gl_move(vm, &m));
	memset(pool, 0x5a, 2048 * 512);
	m.up = false;
	ASSERT_EQ(OK, gl_move(vm, &m));
	for (i = 0, at = 0; i < n; at += len[i++]) {
		bad += !!memcmp(where[i], want + at, len[i]);
		memset(where[i], 0x5a, len[i]);
	}
	EXPECT_EQ(0, bad);
	for (k = 0; k < 2048 * 512 && pool[k] == 0x5a; k++)
		;
	EXPECT_EQ(2048 * 512, k);
	EXPECT_EQ(OK, gpu_detach(vm, 1));
	EXPECT_EQ(UNSPEC, gpu_detach(vm, 1));
	EXPECT_EQ(UNSPEC, gl_move(vm, &m));
	free(want);
}

/* The picture on the screen against a part of one that is @stride pixels wide. */
static unsigned int differs(const uint32_t *display, const uint32_t *p,
			    unsigned int w, unsigned int h, unsigned int stride)
{
	unsigned int x, y, n = 0;

	for (y = 0; y < h; y++)
		for (x = 0; x < w; x++)
			n += (display[y * w + x] ^ p[y * stride + x]) &
			     0xffffff ? 1 : 0;
	return n;
}

static uint32_t *look(struct vm *vm, unsigned int w, unsigned int h)
{
	struct vfio_device_gfx_plane_info plane;
	size_t len;

	if (!display_map(vm, &len) || display_plane(vm, &plane) ||
	    plane.width != w || plane.height != h)
		return NULL;
	return vm->display;
}

/*
 * Look until that is on the screen: a look while the GPU still draws shows the picture
 * before.
 */
static bool shows(struct vm *vm, const uint32_t *p, unsigned int w,
		  unsigned int h, unsigned int stride)
{
	uint64_t end = now_ms() + VMM_TIMEOUT;
	unsigned int n = w * h;
	uint32_t *d;

	for (;;) {
		d = look(vm, w, h);
		if (d)
			n = differs(d, p, w, h, stride);
		if (d && !n)
			return true;
		if (now_ms() > end)
			break;
		sleep_ms(10);
	}
	printf("# %u of %u pixels differ\n", n, w * h);
	return false;
}

TEST_F(gl, the_screen_shows_the_drawing)
{
	static const uint32_t flags[] = { GL_Y_0_TOP, 0 };
	struct vm *vm = &self->g.vm;
	uint32_t *p, *cursor, *d, i, k, f;
	struct gl_move m = {
		.ctx = 1, .up = true, .box = { .w = WIDTH, .h = HEIGHT, .d = 1 },
	};
	unsigned int wrong;

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	cursor = vm_alloc(vm, 64 * 64 * 4, 4096);
	for (i = 0; i < 64 * 64; i++)
		cursor[i] = i % 64 < 8 && i / 64 < 8 ? 0xffabcdef : 0;
	ASSERT_EQ(OK, gpu_create_2d(vm, 9, VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM,
				    64, 64));
	ASSERT_EQ(OK, gpu_attach(vm, 9, cursor, 64 * 64 * 4));
	ASSERT_EQ(OK, gpu_transfer(vm, 9, gpu_rect(0, 0, 64, 64), 0));
	for (f = 0; f < ARRAY_LEN(flags); f++) {
		m.res = 1 + f;
		p = gl_picture(vm, 1, m.res, WIDTH, HEIGHT, flags[f]);
		ASSERT_NE(NULL, p);
		for (i = 0; i < WIDTH * HEIGHT; i++)
			p[i] = 0xff000000 | i * 2654435761u;
		ASSERT_EQ(OK, gl_move(vm, &m));
		ASSERT_EQ(OK, gpu_set_scanout(vm, m.res,
					      gpu_rect(0, 0, WIDTH, HEIGHT)));
		ASSERT_EQ(OK, gpu_flush(vm, m.res,
					gpu_rect(0, 0, WIDTH, HEIGHT)));
		EXPECT_TRUE(shows(vm, p, WIDTH, HEIGHT, WIDTH)) {
			TH_LOG("flags %u", flags[f]);
		}

		/* A part is drawn and flushed: the rest stays. */
		for (i = 10; i < 20; i++)
			for (k = 30; k < 50; k++)
				p[i * WIDTH + k] = 0xff00ff00;
		ASSERT_EQ(OK, gl_move(vm, &m));
		ASSERT_EQ(OK, gpu_flush(vm, m.res, gpu_rect(30, 10, 20, 10)));
		EXPECT_TRUE(shows(vm, p, WIDTH, HEIGHT, WIDTH)) {
			TH_LOG("flags %u", flags[f]);
		}

		/* The cursor is over it, and gone again. */
		d = vm->display;
		ASSERT_EQ(0, gpu_cursor(vm, 9, 40, 20, 0, 0));
		for (i = 0, wrong = 0; i < WIDTH * HEIGHT; i++) {
			uint32_t x = i % WIDTH, y = i / WIDTH;
			bool in = x >= 40 && x < 48 && y >= 20 && y < 28;

			wrong += (d[i] & 0xffffff) !=
				 (in ? 0xabcdef : p[i] & 0xffffff);
		}
		EXPECT_EQ(0, wrong);
		ASSERT_EQ(0, gpu_cursor(vm, 0, 0, 0, 0, 0));
		EXPECT_EQ(0, differs(d, p, WIDTH, HEIGHT, WIDTH));
	}

	/* A part of it, by its own coordinates. */
	ASSERT_EQ(OK, gpu_set_scanout(vm, 2, gpu_rect(8, 4, 64, 32)));
	ASSERT_EQ(OK, gpu_flush(vm, 2, gpu_rect(0, 0, WIDTH, HEIGHT)));
	EXPECT_TRUE(shows(vm, p + 4 * WIDTH + 8, 64, 32, WIDTH));
}

/* As a guest's console does it: dumb buffers and TRANSFER_TO_HOST_2D. */
TEST_F(gl, pictures_without_gl)
{
	struct vm *vm = &self->g.vm;
	struct gpu_screen s;
	uint32_t i;

	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
				   WIDTH, HEIGHT));
	for (i = 0; i < WIDTH * HEIGHT; i++)
		s.pixels[i] = i * 40503u;
	ASSERT_EQ(0, gpu_show(vm, &s));
	EXPECT_TRUE(shows(vm, s.pixels, WIDTH, HEIGHT, WIDTH));

	/* A part, from where it is in the memory. */
	for (i = 0; i < 10; i++)
		s.pixels[(20 + i) * WIDTH + 7 + i] = 0x123456;
	ASSERT_EQ(OK, gpu_transfer(vm, 1, gpu_rect(7, 20, 10, 10),
				   (20 * WIDTH + 7) * 4));
	ASSERT_EQ(OK, gpu_flush(vm, 1, gpu_rect(7, 20, 10, 10)));
	EXPECT_TRUE(shows(vm, s.pixels, WIDTH, HEIGHT, WIDTH));
	EXPECT_EQ(PARAM, gpu_transfer(vm, 1, gpu_rect(0, 0, WIDTH, HEIGHT), 4));
	EXPECT_EQ(PARAM, gpu_transfer(vm, 1, gpu_rect(1, 0, WIDTH, 1), 0));
}

/* A resource that cannot be shown leaves the screen usable. */
TEST_F(gl, a_scanout_that_is_no_picture)
{
	const struct virtio_gpu_resource_create_3d depth = {
		.resource_id = 1, .target = GL_2D, .format = GL_Z24S8,
		.bind = GL_DEPTH_STENCIL, .width = WIDTH, .height = HEIGHT,
		.depth = 1, .array_size = 1,
	}, buffer = {
		.resource_id = 2, .target = GL_BUFFER, .format = GL_R8,
		.bind = GL_VERTICES, .width = 65536, .height = 1, .depth = 1,
		.array_size = 1,
	};
	struct vm *vm = &self->g.vm;
	struct gpu_screen s;
	uint32_t i;

	ASSERT_EQ(OK, gl_create(vm, &depth));
	ASSERT_EQ(OK, gl_create(vm, &buffer));
	EXPECT_EQ(PARAM, gpu_set_scanout(vm, 2, gpu_rect(0, 0, 64, 1)));
	if (gpu_set_scanout(vm, 1, gpu_rect(0, 0, WIDTH, HEIGHT)) == OK) {
		EXPECT_EQ(OK, gpu_flush(vm, 1, gpu_rect(0, 0, WIDTH, HEIGHT)));
		look(vm, WIDTH, HEIGHT);
		sleep_ms(VMM_QUIET);
		look(vm, WIDTH, HEIGHT);
	}
	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 3, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
				   WIDTH, HEIGHT));
	for (i = 0; i < WIDTH * HEIGHT; i++)
		s.pixels[i] = i * 40503u;
	ASSERT_EQ(0, gpu_show(vm, &s));
	EXPECT_TRUE(shows(vm, s.pixels, WIDTH, HEIGHT, WIDTH));
}

/*
 * A copy from a resource that the host could not make: the screen is black then, and does
 * not go on showing the picture before.
 */
TEST_F(gl, a_picture_that_cannot_be_read_is_black)
{
	/* A use that virglrenderer refuses for a texture; QEMU does not report that. */
	const struct virtio_gpu_resource_create_3d missing = {
		.resource_id = 2, .target = GL_2D, .format = GL_B8G8R8A8,
		.bind = 1u << 17, .width = WIDTH, .height = HEIGHT, .depth = 1,
		.array_size = 1,
	};
	uint32_t *black = calloc(WIDTH * HEIGHT, 4);
	struct vm *vm = &self->g.vm;
	struct gpu_screen s;
	uint32_t i;
	int answer;

	ASSERT_NE(NULL, black);
	ASSERT_EQ(0, gpu_screen_2d(vm, &s, 1, VIRTIO_GPU_FORMAT_B8G8R8X8_UNORM,
				   WIDTH, HEIGHT));
	for (i = 0; i < WIDTH * HEIGHT; i++)
		s.pixels[i] = i * 40503u | 1;
	ASSERT_EQ(0, gpu_show(vm, &s));
	EXPECT_TRUE(shows(vm, s.pixels, WIDTH, HEIGHT, WIDTH));

	answer = gl_create(vm, &missing);
	if (answer == OK) {
		ASSERT_EQ(OK, gpu_set_scanout(vm, 2, gpu_rect(0, 0, WIDTH, HEIGHT)));
		ASSERT_EQ(OK, gpu_flush(vm, 2, gpu_rect(0, 0, WIDTH, HEIGHT)));
		EXPECT_TRUE(shows(vm, black, WIDTH, HEIGHT, WIDTH));
	} else {
		/* mgpu-renderd does. */
		EXPECT_EQ(NOMEM, answer);
	}

	/* The next one is there again, in the same size. */
	ASSERT_EQ(OK, gpu_set_scanout(vm, 1, gpu_rect(0, 0, WIDTH, HEIGHT)));
	ASSERT_EQ(0, gpu_show(vm, &s));
	EXPECT_TRUE(shows(vm, s.pixels, WIDTH, HEIGHT, WIDTH));
	free(black);
}

/* ---- isolation of guests ---- */

TEST_F(gl, the_same_numbers_in_two_vms)
{
	struct vm *a = &self->g.vm, *b;
	uint32_t *pa, *pb;
	struct gl other;
	unsigned int i;

	ASSERT_EQ(0, gl_new(&other, "small-render", 16u << 20));
	b = &other.vm;
	ASSERT_EQ(OK, gl_ctx(a, 1));
	ASSERT_EQ(OK, gl_ctx(b, 1));
	pa = gl_picture(a, 1, 7, WIDTH, HEIGHT, 0);
	pb = gl_picture(b, 1, 7, WIDTH, HEIGHT, 0);
	ASSERT_NE(NULL, pa);
	ASSERT_NE(NULL, pb);
	for (i = 0; i < 8; i++) {
		uint32_t ca = 0xff000000 | (i * 0x103050 & 0xffffff);
		uint32_t cb = ca ^ 0xffffff;

		ASSERT_EQ(OK, gl_fill(a, 1, 7, ca));
		ASSERT_EQ(OK, gl_fill(b, 1, 7, cb));
		ASSERT_EQ(OK, gl_fetch(a, 1, 7, WIDTH, HEIGHT));
		ASSERT_EQ(OK, gl_fetch(b, 1, 7, WIDTH, HEIGHT));
		EXPECT_EQ(0, wrong_pixels(pa, WIDTH * HEIGHT, ca));
		EXPECT_EQ(0, wrong_pixels(pb, WIDTH * HEIGHT, cb));
	}
	/* The end of one guest's resource is not the end of the other's. */
	ASSERT_EQ(OK, gpu_unref(b, 7));
	ASSERT_EQ(OK, gl_ctx_end(b, 1));
	ASSERT_EQ(OK, gl_fetch(a, 1, 7, WIDTH, HEIGHT));
	gl_delete(&other);
	ASSERT_EQ(OK, gl_fill(a, 1, 7, 0xff00ff00));
	ASSERT_EQ(OK, gl_fetch(a, 1, 7, WIDTH, HEIGHT));
	EXPECT_EQ(0, wrong_pixels(pa, WIDTH * HEIGHT, 0x00ff00));
}

/* A refused submit has its own fence in its answer. */
static void refused(struct __test_metadata *_metadata, struct vm *vm,
		    const struct gl_stream *s, int want)
{
	struct virtio_gpu_ctrl_hdr hdr;
	uint64_t fence = 0x1234500000000ull + ++vm->next_fence;

	EXPECT_EQ(want, gl_result(vm, gl_send(vm, 1, fence, s), &hdr));
	EXPECT_EQ(VIRTIO_GPU_FLAG_FENCE, hdr.flags);
	EXPECT_EQ(fence, hdr.fence_id);
	EXPECT_EQ(1, hdr.ctx_id);
}

TEST_F(gl, resources_that_are_not_the_contexts)
{
	struct vm *vm = &self->g.vm;
	struct gl_stream s;
	struct gl other;
	uint32_t id, *p, *q;

	/* Another guest has resources that this one could try to use. */
	ASSERT_EQ(0, gl_new(&other, "small-render", 16u << 20));
	ASSERT_EQ(OK, gl_ctx(&other.vm, 1));
	q = gl_picture(&other.vm, 1, 1, WIDTH, HEIGHT, 0);
	ASSERT_NE(NULL, q);
	ASSERT_EQ(OK, gl_fill(&other.vm, 1, 1, 0xff777777));

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	ASSERT_EQ(OK, gl_ctx(vm, 2));
	p = gl_picture(vm, 1, 1000, WIDTH, HEIGHT, 0);
	ASSERT_NE(NULL, p);
	ASSERT_EQ(OK, gl_texture(vm, 1001, WIDTH, HEIGHT, 0));
	ASSERT_EQ(OK, gl_ctx_attach(vm, 2, 1001));
	/* Try each number, whether the GPU uses it or not. */
	for (id = 0; id < 600; id++) {
		if (id == 1)
			id = 2;
		gl_begin(&s);
		gl_copy(&s, 1000, id, WIDTH, HEIGHT);
		refused(_metadata, vm, &s, PARAM);
	}
	/* Another context's, as what is read, written or drawn to. */
	gl_begin(&s);
	gl_copy(&s, 1001, 1000, WIDTH, HEIGHT);
	refused(_metadata, vm, &s, PARAM);
	gl_begin(&s);
	gl_blit(&s, 1000, WIDTH, HEIGHT, 1001, WIDTH, HEIGHT);
	refused(_metadata, vm, &s, PARAM);
	gl_begin(&s);
	gl_surface(&s, 5, 1001);
	refused(_metadata, vm, &s, PARAM);

	/* Detached, and gone. */
	ASSERT_EQ(OK, gl_ctx_attach(vm, 1, 1001));
	gl_begin(&s);
	gl_copy(&s, 1001, 1000, WIDTH, HEIGHT);
	EXPECT_EQ(OK, gl_run(vm, 1, &s));
	ASSERT_EQ(OK, gl_ctx_detach(vm, 1, 1001));
	EXPECT_EQ(NORES, gl_ctx_detach(vm, 1, 1001));
	refused(_metadata, vm, &s, PARAM);
	ASSERT_EQ(OK, gl_ctx_attach(vm, 1, 1001));
	ASSERT_EQ(OK, gpu_unref(vm, 1001));
	refused(_metadata, vm, &s, PARAM);
	EXPECT_EQ(NORES, gl_ctx_attach(vm, 1, 1001));

	/* The number at once anew: another resource, not attached. */
	ASSERT_EQ(OK, gl_texture(vm, 1001, WIDTH, HEIGHT, 0));
	refused(_metadata, vm, &s, PARAM);
	ASSERT_EQ(OK, gl_ctx_attach(vm, 1, 1001));
	EXPECT_EQ(OK, gl_run(vm, 1, &s));

	/* No context was touched. */
	EXPECT_EQ(NOCTX, gl_run(vm, 3, &s));
	ASSERT_EQ(OK, gl_fetch(&other.vm, 1, 1, WIDTH, HEIGHT));
	EXPECT_EQ(0, wrong_pixels(q, WIDTH * HEIGHT, 0x777777));
	vm_close(&other.vm);
	EXPECT_EQ(0, gl_left(&other));
	gl_delete(&other);
}

TEST_F(gl, numbers_are_used_again_at_once)
{
	struct virtio_gpu_resource_unref un = { .resource_id = 1 };
	struct vm *vm = &self->g.vm;
	unsigned int i;
	uint32_t *p;
	int head;

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	gpu_hdr(&un.hdr, VIRTIO_GPU_CMD_RESOURCE_UNREF);
	p = gl_picture(vm, 1, 1, WIDTH, HEIGHT, 0);
	ASSERT_NE(NULL, p);
	for (i = 0; i < 50; i++) {
		uint32_t argb = 0xff000000 | i * 0x051020;

		ASSERT_EQ(OK, gl_fill(vm, 1, 1, argb));
		/* Without a wait for the end of the old one. */
		head = gpu_send(vm, VMM_CONTROL, &un, sizeof(un),
				sizeof(un.hdr));
		ASSERT_LE(0, head);
		ASSERT_EQ(OK, gl_texture(vm, 1, WIDTH, HEIGHT, 0));
		ASSERT_EQ(OK, gpu_attach(vm, 1, p, WIDTH * HEIGHT * 4));
		ASSERT_EQ(OK, gl_result(vm, head, NULL));
		/* The new resource has no pixel of the old one. */
		ASSERT_EQ(OK, gl_fetch(vm, 0, 1, WIDTH, HEIGHT));
		EXPECT_NE(0, wrong_pixels(p, WIDTH * HEIGHT, argb) || !i);
		ASSERT_EQ(OK, gl_ctx_attach(vm, 1, 1));
	}
	EXPECT_EQ(NOCTX, gl_ctx(vm, 1));
	for (i = 0; i < 50; i++) {
		ASSERT_EQ(OK, gl_ctx_end(vm, 1));
		EXPECT_EQ(NOCTX, gl_fill(vm, 1, 1, 0));
		ASSERT_EQ(OK, gl_ctx(vm, 1));
	}
}

TEST_F(gl, streams_that_make_no_sense)
{
	struct vm *vm = &self->g.vm;
	uint32_t *w = (uint32_t *)self->g.stream, op;
	struct gl_stream s;
	uint32_t *p;

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	p = gl_picture(vm, 1, 1, WIDTH, HEIGHT, 0);
	ASSERT_NE(NULL, p);
	for (op = 48; op < 256; op++) {
		/* known ones, tested as pure code */
		if (op > 48 && op < 53 && op != 50)
			continue;
		if (op == 62)
			continue;
		gl_begin(&s);
		gl_head(&s, op, 0, 0);
		refused(_metadata, vm, &s, PARAM);
	}
	/* Cut, too short, too long, not whole. */
	w[0] = 8 << 16 | 7;
	w[1] = 4;
	EXPECT_EQ(PARAM, gl_result(vm, gl_send_bytes(vm, 1, 1, w, 8, 8), NULL));
	w[0] = 1 << 16 | 7;
	EXPECT_EQ(PARAM, gl_result(vm, gl_send_bytes(vm, 1, 2, w, 8, 8), NULL));
	w[0] = 0;
	EXPECT_EQ(PARAM, gl_result(vm, gl_send_bytes(vm, 1, 3, w, 8, 7), NULL));
	EXPECT_EQ(context_init() ? OK : PARAM,
		  gl_result(vm, gl_send_bytes(vm, 1, 4, w, 8, 0), NULL));
	EXPECT_EQ(PARAM, gl_result(vm, gl_send_bytes(vm, 1, 5, w, 8, 12), NULL));
	EXPECT_EQ(PARAM, gl_result(vm, gl_send_bytes(vm, 1, 6, w, 8, ~0u), NULL));
	/* As much as there may be, and one word more. */
	memset(w, 0, GL_STREAM_MAX + 4096);
	EXPECT_EQ(OK, gl_result(vm, gl_send_bytes(vm, 1, 7, w, GL_STREAM_MAX,
						  GL_STREAM_MAX), NULL));
	EXPECT_EQ(PARAM, gl_result(vm, gl_send_bytes(vm, 1, 8, w,
						     GL_STREAM_MAX + 4,
						     GL_STREAM_MAX + 4), NULL));
	/* It still draws. */
	ASSERT_EQ(OK, gl_fill(vm, 1, 1, 0xff112233));
	ASSERT_EQ(OK, gl_fetch(vm, 1, 1, WIDTH, HEIGHT));
	EXPECT_EQ(0, wrong_pixels(p, WIDTH * HEIGHT, 0x112233));
}

/* ---- how much ---- */

/* MGPU_CONTEXTS: so many there can be; the device may have no memory for further ones. */
TEST_F_TIMEOUT(gl, a_number_of_contexts, 240)
{
	const char *env = getenv("MGPU_CONTEXTS");
	const uint32_t sure = env ? (uint32_t)atoi(env) : 256;
	struct vm *vm = &self->g.vm;
	uint32_t i;

	for (i = 1; i <= sure; i++)
		ASSERT_EQ(OK, gl_ctx(vm, i * 3));
	if (sure < 256) {
		EXPECT_EQ(OK, gl_ctx_end(vm, 3));
		EXPECT_EQ(OK, gl_ctx(vm, 1));
		return;
	}
	EXPECT_EQ(NOMEM, gl_ctx(vm, 1));
	EXPECT_EQ(NOCTX, gl_ctx(vm, 3));
	EXPECT_EQ(OK, gl_ctx_end(vm, 3));
	EXPECT_EQ(OK, gl_ctx(vm, 1));
	EXPECT_EQ(NOMEM, gl_ctx(vm, 2));
}

static int one_sub(struct vm *vm, uint32_t op, uint32_t id)
{
	struct gl_stream s;

	gl_begin(&s);
	gl_head(&s, op, 0, 1);
	gl_word(&s, id);
	return gl_run(vm, 1, &s);
}

TEST_F_TIMEOUT(gl, a_number_of_sub_contexts, 120)
{
	const uint32_t make = 29, end = 30;
	struct vm *vm = &self->g.vm;
	struct gl_stream s;
	uint32_t i;

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	for (i = 1; i <= 64; i++)
		ASSERT_EQ(OK, one_sub(vm, make, i));
	EXPECT_EQ(NOMEM, one_sub(vm, make, 65));
	/* To end what is not there makes no room. */
	EXPECT_EQ(OK, one_sub(vm, end, 1000));
	EXPECT_EQ(NOMEM, one_sub(vm, make, 65));
	EXPECT_EQ(OK, one_sub(vm, end, 7));
	EXPECT_EQ(OK, one_sub(vm, make, 65));
	EXPECT_EQ(NOMEM, one_sub(vm, make, 7));
	/* An object that one stream destroys and creates again exists. */
	EXPECT_EQ(OK, one_sub(vm, end, 65));
	gl_begin(&s);
	gl_head(&s, end, 0, 1);
	gl_word(&s, 8);
	gl_head(&s, make, 0, 1);
	gl_word(&s, 8);
	EXPECT_EQ(OK, gl_run(vm, 1, &s));
	EXPECT_EQ(OK, one_sub(vm, make, 66));
	EXPECT_EQ(NOMEM, one_sub(vm, make, 7));
}

/*
 * Buffers of the numbers @from to @to, made and attached to context 1, many at a time;
 * how many of these commands went well.
 */
static unsigned int attach_many(struct vm *vm, uint32_t from, uint32_t to)
{
	struct virtio_gpu_resource_create_3d c = {
		.target = GL_BUFFER, .format = GL_R8, .bind = GL_VERTICES,
		.width = 64, .height = 1, .depth = 1, .array_size = 1,
	};
	struct virtio_gpu_ctx_resource a = { .hdr.ctx_id = 1 };
	unsigned int n, i, good = 0;
	int head[30];

	while (from <= to) {
		for (n = 0; n < ARRAY_LEN(head) && from <= to; from++) {
			gpu_hdr(&c.hdr, VIRTIO_GPU_CMD_RESOURCE_CREATE_3D);
			c.resource_id = from;
			head[n++] = gpu_send(vm, VMM_CONTROL, &c, sizeof(c),
					     sizeof(c.hdr));
			gpu_hdr(&a.hdr, VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE);
			a.hdr.ctx_id = 1;
			a.resource_id = from;
			head[n++] = gpu_send(vm, VMM_CONTROL, &a, sizeof(a),
					     sizeof(a.hdr));
		}
		for (i = 0; i < n; i++)
			good += gl_result(vm, head[i], NULL) == OK;
	}
	return good;
}

TEST_F_TIMEOUT(gl, a_number_of_attached_resources, 240)
{
	struct vm *vm = &self->g.vm;
	struct gl_stream s;

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	ASSERT_EQ(2 * 4096, attach_many(vm, 1, 4096));
	/* Made, and not attached. */
	ASSERT_EQ(1, attach_many(vm, 4097, 4097));
	EXPECT_EQ(NOMEM, gl_ctx_attach(vm, 1, 4097));
	/* Attached once more it is not another one. */
	EXPECT_EQ(OK, gl_ctx_attach(vm, 1, 4096));
	gl_begin(&s);
	gl_copy(&s, 4096, 1, 64, 1);
	EXPECT_EQ(OK, gl_run(vm, 1, &s));
	EXPECT_EQ(OK, gl_ctx_detach(vm, 1, 2));
	EXPECT_EQ(OK, gl_ctx_attach(vm, 1, 4097));
	EXPECT_EQ(OK, gpu_unref(vm, 4097));
	EXPECT_EQ(OK, gl_ctx_attach(vm, 1, 2));
}

TEST_F(gl, no_more_memory_than_the_type_has)
{
	struct vm *vm = &self->g.vm;
	struct nl_vgpu v;
	void *p;
	uint32_t i;
	int ret;

	/* 16 MiB each, 128 in all. */
	for (i = 1; i <= 9; i++) {
		ret = gl_texture(vm, i, 2048, 2048, 0);
		if (ret != OK)
			break;
	}
	EXPECT_EQ(NOMEM, ret);
	EXPECT_EQ(9, i);
	ASSERT_EQ(0, nl_vgpu_get(&self->g.nl, vm->uuid, &v));
	EXPECT_EQ(v.mem_limit, v.mem_used);
	p = vm_alloc(vm, 4096, 4096);
	EXPECT_EQ(NOMEM, gpu_attach(vm, 1, p, 4096));
	EXPECT_EQ(NOMEM, gl_texture(vm, 9, 1, 1, 0));
	EXPECT_EQ(NORES, gpu_unref(vm, 9));
	EXPECT_EQ(OK, gpu_unref(vm, 3));
	EXPECT_EQ(OK, gpu_attach(vm, 1, p, 4096));
	EXPECT_EQ(OK, gl_texture(vm, 9, 1, 1, 0));
	ASSERT_EQ(0, vio_reset(vm));
	ASSERT_EQ(0, nl_vgpu_get(&self->g.nl, vm->uuid, &v));
	EXPECT_EQ(0, v.mem_used);
}

TEST_F(gl, entries_up_to_the_limit)
{
	const uint32_t most = 16384;
	struct virtio_gpu_mem_entry *e;
	struct vm *vm = &self->g.vm;
	uint32_t i, wrong = 0;
	uint8_t *p;
	struct gl_move m = {
		.res = 1, .up = true, .box = { .w = 128, .h = 128, .d = 1 },
	};

	ASSERT_EQ(OK, gl_texture(vm, 1, 128, 128, 0));
	e = vm_alloc(vm, (most + 1) * sizeof(*e), 16);
	p = vm_alloc(vm, 65536 * 2, 4096);
	ASSERT_NE(NULL, p);
	/* Pixels, every second one of what is there. */
	for (i = 0; i <= most; i++)
		e[i] = (struct virtio_gpu_mem_entry){
			.addr = vm_addr(vm, p) + i % most * 8, .length = 4,
		};
	EXPECT_EQ(PARAM, gl_attach_entries(vm, 1, e, most + 1));
	EXPECT_EQ(PARAM, gl_attach_entries(vm, 1, e, 0));
	ASSERT_EQ(OK, gl_attach_entries(vm, 1, e, most));
	fill_random(p, 65536 * 2, 3);
	ASSERT_EQ(OK, gl_move(vm, &m));
	memset(p, 0x33, 65536 * 2);
	m.up = false;
	ASSERT_EQ(OK, gl_move(vm, &m));
	for (i = 0; i < most; i++)
		wrong += ((uint32_t *)p)[2 * i + 1] != 0x33333333;
	EXPECT_EQ(0, wrong);
	EXPECT_EQ(UNSPEC, gl_attach_entries(vm, 1, e, 1));
	EXPECT_EQ(OK, gpu_detach(vm, 1));

	/* Nothing is pinned of what was refused. */
	e[1].addr = VMM_RAM_BASE + RAM;
	EXPECT_EQ(PARAM, gl_attach_entries(vm, 1, e, 2));
	e[1].addr = ~0ull - 2;
	EXPECT_EQ(PARAM, gl_attach_entries(vm, 1, e, 2));
	EXPECT_EQ(NORES, gl_attach_entries(vm, 2, e, 1));
}

/* ---- fences ---- */

/* A context, two pictures in it, and so many blits from one to the other. */
static int make_draw(struct vm *vm, struct gl_stream *s, unsigned int blits)
{
	int ret = gl_ctx(vm, 1);

	if (ret != OK)
		return ret;
	if (!gl_picture(vm, 1, 1, 512, 512, 0) ||
	    !gl_picture(vm, 1, 2, 512, 512, 0))
		return -ENOMEM;
	gl_begin(s);
	while (blits--)
		gl_blit(s, 1, 512, 512, 2, 300, 300);
	return OK;
}

TEST_F(gl, fences_come_in_their_order)
{
	struct vm *vm = &self->g.vm;
	struct vmm_vq *vq = &vm->vq[VMM_CONTROL];
	uint16_t used = vq->used->idx;
	struct gl_stream draw, bad;
	struct virtio_gpu_ctrl_hdr hdr;
	struct {
		int head;
		uint64_t fence;
		int want;
	} c[20];
	uint64_t last = 0;
	unsigned int i, k, n = 0, round;

	ASSERT_EQ(OK, make_draw(vm, &draw, 1));
	gl_begin(&bad);
	gl_copy(&bad, 1, 99, 8, 8);
	for (round = 0; round < 10; round++) {
		used = vq->used->idx;
		n = 0;
		while (n < 18) {
			bool refuse = n % 3 == 1, fenced = n % 5 != 2;

			c[n].fence = fenced ? 1000 * round + n + 1 : 0;
			c[n].want = refuse ? PARAM : OK;
			c[n].head = gl_send(vm, 1, c[n].fence,
					    refuse ? &bad : &draw);
			ASSERT_LE(0, c[n].head);
			n++;
		}
		for (i = 0; i < n; i++) {
			uint64_t end = now_ms() + VMM_TIMEOUT;

			while ((uint16_t)(vq->used->idx - used) <= i &&
			       now_ms() < end)
				sleep_ms(1);
			ASSERT_LT(i, (uint16_t)(vq->used->idx - used));
			for (k = 0; k < n; k++) {
				if (vq->used->ring[(uint16_t)(used + i) %
						   vq->size].id ==
				    (uint32_t)c[k].head)
					break;
			}
			ASSERT_GT(n, k);
			if (!c[k].fence)
				continue;
			EXPECT_LT(last, c[k].fence);
			last = c[k].fence;
		}
		for (k = 0; k < n; k++) {
			EXPECT_EQ(c[k].want, gl_result(vm, c[k].head, &hdr));
			EXPECT_EQ(c[k].fence, hdr.fence_id);
			EXPECT_EQ(c[k].fence ? VIRTIO_GPU_FLAG_FENCE : 0,
				  hdr.flags);
			EXPECT_EQ(c[k].fence ? 1 : 0, hdr.ctx_id);
		}
	}
}

/* Sends a bare command with a fence. */
static int send_fenced(struct vm *vm, unsigned int q, uint32_t type,
		       uint64_t fence)
{
	union {
		struct virtio_gpu_ctrl_hdr hdr;
		uint8_t room[128];
	} c = { 0 };

	gpu_hdr(&c.hdr, type);
	/* No resource, context or screen has this number. */
	memset(c.room + sizeof(c.hdr), 0x77, sizeof(c) - sizeof(c.hdr));
	c.hdr.ctx_id = 0x77;
	c.hdr.flags = VIRTIO_GPU_FLAG_FENCE;
	c.hdr.fence_id = fence;
	return gpu_send(vm, q, &c, sizeof(c), sizeof(c.hdr));
}

/* Whatever is refused while a fence waits is answered behind it. */
TEST_F(gl, refusals_of_all_kinds_wait_for_fences)
{
	static const uint32_t kinds[] = {
		VIRTIO_GPU_CMD_RESOURCE_CREATE_2D,
		VIRTIO_GPU_CMD_RESOURCE_UNREF,
		VIRTIO_GPU_CMD_SET_SCANOUT,
		VIRTIO_GPU_CMD_RESOURCE_FLUSH,
		VIRTIO_GPU_CMD_TRANSFER_TO_HOST_2D,
		VIRTIO_GPU_CMD_RESOURCE_ATTACH_BACKING,
		VIRTIO_GPU_CMD_RESOURCE_DETACH_BACKING,
		VIRTIO_GPU_CMD_RESOURCE_CREATE_BLOB,
		VIRTIO_GPU_CMD_SET_SCANOUT_BLOB,
		VIRTIO_GPU_CMD_CTX_DESTROY,
		VIRTIO_GPU_CMD_CTX_ATTACH_RESOURCE,
		VIRTIO_GPU_CMD_CTX_DETACH_RESOURCE,
		VIRTIO_GPU_CMD_RESOURCE_CREATE_3D,
		VIRTIO_GPU_CMD_TRANSFER_TO_HOST_3D,
		VIRTIO_GPU_CMD_TRANSFER_FROM_HOST_3D,
		VIRTIO_GPU_CMD_SUBMIT_3D,
		0xdead,
	};
	struct vm *vm = &self->g.vm;
	struct vmm_vq *vq = &vm->vq[VMM_CONTROL];
	struct virtio_gpu_ctrl_hdr hdr;
	int head[ARRAY_LEN(kinds)], cursor, first;
	struct gl_stream draw;
	unsigned int i;
	uint16_t used;

	ASSERT_EQ(OK, make_draw(vm, &draw, 20));
	used = vq->used_idx;
	first = gl_send(vm, 1, 1, &draw);
	ASSERT_LE(0, first);
	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		head[i] = send_fenced(vm, VMM_CONTROL, kinds[i], i + 2);
		ASSERT_LE(0, head[i]);
	}
	/* The other queue has an order of its own. */
	cursor = send_fenced(vm, VMM_CURSOR, VIRTIO_GPU_CMD_UPDATE_CURSOR, 99);
	ASSERT_LE(0, cursor);
	EXPECT_LE(OK, gpu_result(vm, VMM_CURSOR, cursor, &hdr, sizeof(hdr),
				 VMM_TIMEOUT));
	EXPECT_EQ(99, hdr.fence_id);

	EXPECT_EQ(OK, gl_result(vm, first, NULL));
	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		EXPECT_LE(UNSPEC, gl_result(vm, head[i], &hdr)) {
			TH_LOG("command %x", kinds[i]);
		}
		EXPECT_EQ(i + 2, hdr.fence_id);
		EXPECT_EQ(head[i], vq->used->ring[(uint16_t)(used + 1 + i) %
						  vq->size].id);
	}
	EXPECT_EQ(OK, gl_run(vm, 1, &draw));
}

/*
 * A buffer that is offered over and over would be endless work that the host queues for
 * the guest.
 */
TEST_F(gl, a_buffer_that_is_offered_again)
{
	struct vm *vm = &self->g.vm;
	uint64_t end = now_ms() + VMM_TIMEOUT;
	struct gl_stream draw;
	unsigned int i;
	int head;

	ASSERT_EQ(OK, make_draw(vm, &draw, 20));
	head = gl_send(vm, 1, 1, &draw);
	ASSERT_LE(0, head);
	/* A few at a time, which are taken before the next. */
	while (!(vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET) &&
	       now_ms() < end) {
		for (i = 0; i < 8; i++)
			vq_publish(vm, VMM_CONTROL, (uint16_t)head);
		vq_kick(vm, VMM_CONTROL);
		sleep_ms(20);
	}
	EXPECT_TRUE(vio_status(vm) & VIRTIO_CONFIG_S_NEEDS_RESET);
}

/* Every descriptor is in use, all the time; each is answered once. */
TEST_F(gl, a_ring_full_of_submits)
{
	struct vm *vm = &self->g.vm;
	unsigned int sent = 0, full = 0;
	struct gl_stream s;
	uint32_t *w = (uint32_t *)self->g.stream;
	int head, last = -1;
	uint64_t end;

	ASSERT_EQ(OK, gl_ctx(vm, 1));
	ASSERT_NE(NULL, gl_picture(vm, 1, 1, 256, 256, 0));
	ASSERT_NE(NULL, gl_picture(vm, 1, 2, 256, 256, 0));
	gl_begin(&s);
	gl_blit(&s, 1, 256, 256, 2, 100, 100);
	memcpy(w, s.w, s.n * 4);
	/* The time begins here: the steps above may take long. */
	end = now_ms() + 2000;
	while (goes_on(end, sent > 20 && full)) {
		head = gl_send_bytes(vm, 1, ++vm->next_fence, w, s.n * 4,
				     s.n * 4);
		if (head == -EBUSY) {
			full++;
			irq_wait(vm->irq[VMM_CONTROL + 1], VMM_TIMEOUT);
			continue;
		}
		ASSERT_LE(0, head);
		last = head;
		sent++;
	}
	TH_LOG("%u submits, %u times full", sent, full);
	EXPECT_LT(20, sent);
	EXPECT_LT(0, full);
	EXPECT_EQ(OK, gl_result(vm, last, NULL));
	/* All of them were used before the last. */
	vq_collect(vm, VMM_CONTROL);
	EXPECT_EQ(vm->vq[VMM_CONTROL].avail_idx, vm->vq[VMM_CONTROL].used_idx);
}

static void __attribute__((constructor)) find_gpu(void)
{
	gl_need_gpu();
}

TEST_HARNESS_MAIN
