// SPDX-License-Identifier: GPL-2.0-only
/*
 * New resources on a physical GPU: a guest reads zeros, and nothing of what another guest
 * had in the same memory of the GPU's host.  The first guest fills resources of every kind
 * and frees them; the second makes resources of the same shape and reads them at once.
 *
 * Whether memory comes again with its old content depends on the host's OpenGL driver:
 * softpipe's does, while llvmpipe zeroes all.
 *
 * needs: softpipe
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <kselftest_harness.h>

#include "virgl.h"

#define RAM		(16u << 20)
#define BYTES		(256u << 10)	/* memory for one resource's content */
#define RES		1
#define RESOLVED	2
#define ROUNDS		4
#define LONG_ROUNDS	300

/* The rest of lib/virgl.h's. */
#define GL_1D		1
#define GL_CUBE		4
#define GL_RECT		5
#define GL_1D_ARRAY	6
#define GL_2D_ARRAY	7
#define GL_CUBE_ARRAY	8
#define GL_CUSTOM	(1u << 17)
#define GL_DXT1		105
#define GL_DXT5		108
#define GL_BLIT_ALL	0x3f	/* colours, depth, stencil */

struct kind {
	const char *name;
	uint32_t target;
	uint32_t format;
	uint32_t bind;
	uint32_t width;
	uint32_t height;
	uint32_t depth;
	uint32_t layers;
	uint32_t last_level;
	uint32_t samples;
	uint32_t bytes;		/* of a block */
	uint32_t block;		/* pixels, both ways */
	bool flat;		/* by RESOURCE_CREATE_2D */
};

#define BUFFER(name, bind) \
	{ name, GL_BUFFER, GL_R8, bind, 40000, 1, 1, 1, 0, 0, 1, 1, false }
#define COLOR		(GL_TARGET | GL_SAMPLED)
#define DEPTH		(GL_DEPTH_STENCIL | GL_SAMPLED)

static const struct kind kinds[] = {
	BUFFER("vertices", GL_VERTICES),
	BUFFER("indices", 1u << 5),
	BUFFER("constants", 1u << 6),
	BUFFER("parameters of draws", 1u << 8),
	BUFFER("stream output", 1u << 11),
	BUFFER("shader buffer", 1u << 14),
	BUFFER("results of queries", 1u << 15),
	BUFFER("texels", GL_SAMPLED),
	BUFFER("no use", 0),
	BUFFER("memory of the guest", GL_CUSTOM),
	{ "2D", GL_2D, GL_B8G8R8A8, COLOR, 64, 48, 1, 1, 0, 0, 4, 1, false },
	{ "2D by 2D command", GL_2D, GL_B8G8R8A8, COLOR, 64, 48, 1, 1, 0, 0, 4, 1, true },
	{ "mipmap", GL_2D, GL_B8G8R8A8, COLOR, 128, 64, 1, 1, 7, 0, 4, 1, false },
	{ "rectangle", GL_RECT, GL_B8G8R8A8, COLOR, 60, 40, 1, 1, 0, 0, 4, 1, false },
	{ "1D", GL_1D, GL_B8G8R8A8, COLOR, 512, 1, 1, 1, 9, 0, 4, 1, false },
	{ "3D", GL_3D, GL_B8G8R8A8, COLOR, 32, 16, 12, 1, 2, 0, 4, 1, false },
	{ "cube", GL_CUBE, GL_B8G8R8A8, COLOR, 32, 32, 1, 6, 0, 0, 4, 1, false },
	{ "cube with a mipmap", GL_CUBE, GL_B8G8R8A8, COLOR, 32, 32, 1, 6, 5, 0, 4, 1, false },
	{ "cubes", GL_CUBE_ARRAY, GL_B8G8R8A8, COLOR, 16, 16, 1, 12, 2, 0, 4, 1, false },
	{ "a few 1D", GL_1D_ARRAY, GL_B8G8R8A8, COLOR, 128, 1, 1, 5, 2, 0, 4, 1, false },
	{ "many 1D", GL_1D_ARRAY, GL_B8G8R8A8, COLOR, 128, 1, 1, 40, 3, 0, 4, 1, false },
	{ "2D array", GL_2D_ARRAY, GL_B8G8R8A8, COLOR, 32, 24, 1, 5, 2, 0, 4, 1, false },
	{ "depth and stencil", GL_2D, GL_Z24S8, DEPTH, 64, 48, 1, 1, 0, 0, 4, 1, false },
	{ "compressed", GL_2D, GL_DXT1, GL_SAMPLED, 64, 32, 1, 1, 2, 0, 8, 4, false },
	{ "compressed array", GL_2D_ARRAY, GL_DXT5, GL_SAMPLED, 32, 32, 1, 3, 1, 0, 16,
	  4, false },
	{ "compressed cube", GL_CUBE, GL_DXT5, GL_SAMPLED, 32, 32, 1, 6, 4, 0, 16, 4,
	  false },
	{ "samples", GL_2D, GL_B8G8R8A8, COLOR, 64, 48, 1, 1, 0, 4, 4, 1, false },
	{ "layers of samples", GL_2D_ARRAY, GL_B8G8R8A8, COLOR, 32, 32, 1, 3, 0, 4, 4, 1, false },
	{ "samples of depth", GL_2D, GL_Z24S8, DEPTH, 64, 48, 1, 1, 0, 4, 4, 1, false },
};

static uint32_t minify(uint32_t size, uint32_t level)
{
	return size >> level ? size >> level : 1;
}

static uint32_t slices(const struct kind *k, uint32_t level)
{
	return k->target == GL_3D ? minify(k->depth, level) : k->layers;
}

static uint32_t blocks(const struct kind *k, uint32_t pixels)
{
	return (pixels + k->block - 1) / k->block;
}

/* Bytes of a layer. */
static uint32_t layer_bytes(const struct kind *k, uint32_t level)
{
	return blocks(k, minify(k->width, level)) *
	       (k->height > 1 ? blocks(k, minify(k->height, level)) : 1) * k->bytes;
}

static int create(struct vm *vm, const struct kind *k, uint32_t id, uint32_t samples,
		  uint32_t target, uint32_t layers)
{
	const struct virtio_gpu_resource_create_3d c = {
		.resource_id = id, .target = target, .format = k->format,
		.bind = k->bind, .width = k->width, .height = k->height,
		.depth = k->depth, .array_size = layers, .last_level = k->last_level,
		.nr_samples = samples,
	};

	if (k->flat)
		return gpu_create_2d(vm, id, VIRTIO_GPU_FORMAT_B8G8R8A8_UNORM, k->width,
				     k->height);
	return gl_create(vm, &c);
}

/* Move all of a layer between the resource and the guest's memory. */
static int move_layer(struct vm *vm, const struct kind *k, uint32_t level, uint32_t z,
		      bool up)
{
	const struct gl_move m = {
		.res = RES, .level = level, .up = up,
		.box = {
			.z = z, .w = minify(k->width, level),
			.h = k->height > 1 ? minify(k->height, level) : 1, .d = 1,
		},
	};

	return gl_move(vm, &m);
}

/* Fill every pixel of a resource with samples, by drawing. */
static int draw_over(struct vm *vm, const struct kind *k)
{
	struct gl_stream s;
	bool depth = k->format == GL_Z24S8;

	gl_begin(&s);
	gl_head(&s, 1, 8, 5);		/* a surface of all layers */
	gl_word(&s, 10);
	gl_word(&s, RES);
	gl_word(&s, k->format);
	gl_word(&s, 0);
	gl_word(&s, (k->layers - 1) << 16);
	gl_head(&s, 5, 0, depth ? 2 : 3);	/* draw to it */
	gl_word(&s, !depth);
	gl_word(&s, depth ? 10 : 0);
	if (!depth)
		gl_word(&s, 10);
	gl_head(&s, 7, 0, 8);		/* clear */
	gl_word(&s, depth ? 3 : 4);
	gl_word(&s, 0x3f000000);	/* 0.5 */
	gl_word(&s, 0x3f000000);
	gl_word(&s, 0x3f000000);
	gl_word(&s, 0x3f000000);
	gl_word(&s, 0);
	gl_word(&s, 0x3fe00000);	/* 0.5, a double */
	gl_word(&s, 0x55);
	return gl_run(vm, 1, &s);
}

/* Resolve a layer of a resource with samples into RESOLVED, and read that. */
static int read_samples(struct vm *vm, const struct kind *k, uint32_t z, uint8_t *mem)
{
	const struct gl_move m = {
		.res = RESOLVED, .box = { .w = k->width, .h = k->height, .d = 1 },
	};
	struct gl_stream s;
	const uint32_t words[] = {
		k->format == GL_Z24S8 ? 0x30 : 0xf, 0, 0,
		RESOLVED, 0, k->format, 0, 0, 0, k->width, k->height, 1,
		RES, 0, k->format, 0, 0, z, k->width, k->height, 1,
	};
	unsigned int i;
	int ret;

	gl_begin(&s);
	gl_head(&s, 16, 0, ARRAY_LEN(words));
	for (i = 0; i < ARRAY_LEN(words); i++)
		gl_word(&s, words[i]);
	/* The memory must not hold the expected content before. */
	memset(mem, 0xff, BYTES);
	ret = create(vm, k, RESOLVED, 0, GL_2D, 1);
	if (ret == OK)
		ret = gpu_attach(vm, RESOLVED, mem, BYTES);
	if (ret == OK)
		ret = gl_ctx_attach(vm, 1, RESOLVED);
	if (ret == OK) {
		struct gl_move up = m;

		up.up = true;
		ret = gl_move(vm, &up);
	}
	if (ret == OK)
		ret = gl_run(vm, 1, &s);
	memset(mem, 0xee, BYTES);
	if (ret == OK)
		ret = gl_move(vm, &m);
	return ret == OK ? gpu_unref(vm, RESOLVED) : ret;
}

/* Make a resource, fill all of it and free it. */
static int fill_and_free(struct vm *vm, const struct kind *k, uint8_t *mem)
{
	uint32_t level, z;
	int ret = create(vm, k, RES, k->samples, k->target, k->layers);

	memset(mem, 0xa5, BYTES);
	if (ret == OK)
		ret = gpu_attach(vm, RES, mem, BYTES);
	if (ret == OK && k->samples) {
		ret = gl_ctx_attach(vm, 1, RES);
		if (ret == OK)
			ret = draw_over(vm, k);
	}
	for (level = 0; level <= k->last_level && !k->samples; level++)
		for (z = 0; z < slices(k, level) && ret == OK; z++)
			ret = move_layer(vm, k, level, z, true);
	return ret == OK ? gpu_unref(vm, RES) : ret;
}

static uint32_t count(const uint8_t *p, uint32_t n, uint8_t what)
{
	uint32_t i, found = 0;

	for (i = 0; i < n; i++)
		found += p[i] == what;
	return found;
}

/*
 * Make a resource and read all of it; @read: bytes that came from the GPU; @bad: those that
 * are not zero.
 */
static int make_and_read(struct vm *vm, const struct kind *k, uint8_t *mem, uint32_t *read,
			 uint32_t *bad)
{
	uint32_t level, z, n;
	int ret = create(vm, k, RES, k->samples, k->target, k->layers);

	*read = 0;
	*bad = 0;
	memset(mem, 0xee, BYTES);
	if (ret == OK && !k->samples)
		ret = gpu_attach(vm, RES, mem, BYTES);
	if (ret == OK && k->samples)
		ret = gl_ctx_attach(vm, 1, RES);
	for (level = 0; level <= k->last_level; level++)
		for (z = 0; z < slices(k, level) && ret == OK; z++) {
			if (k->samples) {
				ret = read_samples(vm, k, z, mem);
			} else {
				/* The host writes to this kind's memory at once. */
				if (k->bind != GL_CUSTOM)
					memset(mem, 0xee, BYTES);
				ret = move_layer(vm, k, level, z, false);
			}
			n = layer_bytes(k, level);
			/* The host did not make it: there is nothing to read. */
			if (count(mem, n, k->samples ? 0xff : 0xee) == n)
				continue;
			*read += n;
			*bad += n - count(mem, n, 0);
		}
	return ret == OK ? gpu_unref(vm, RES) : ret;
}

FIXTURE(two)
{
	struct gl a;
	struct gl b;
};

FIXTURE_SETUP(two)
{
	ASSERT_EQ(0, gl_new(&self->a, "small-render", RAM));
	ASSERT_EQ(0, gl_new(&self->b, "small-render", RAM));
	ASSERT_EQ(OK, gl_ctx(&self->a.vm, 1));
	ASSERT_EQ(OK, gl_ctx(&self->b.vm, 1));
}

FIXTURE_TEARDOWN(two)
{
	vm_close(&self->a.vm);
	vm_close(&self->b.vm);
	EXPECT_EQ(0, gl_left(&self->a));
	EXPECT_EQ(0, gl_left(&self->b));
	gl_delete(&self->a);
	gl_delete(&self->b);
}

TEST_F_TIMEOUT(two, new_resources_have_nothing_of_another_guest, 3600)
{
	unsigned int round, rounds = vmm_long() ? LONG_ROUNDS : ROUNDS, i, made = 0;
	unsigned int leaks[ARRAY_LEN(kinds)] = { 0 };
	struct vm *a = &self->a.vm, *b = &self->b.vm;
	uint8_t *pa = vm_alloc(a, BYTES, 4096), *pb = vm_alloc(b, BYTES, 4096);
	uint32_t read, bad, unread = 0;

	ASSERT_NE(NULL, pa);
	ASSERT_NE(NULL, pb);
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < ARRAY_LEN(kinds); i++) {
			ASSERT_EQ(OK, fill_and_free(a, &kinds[i], pa)) {
				TH_LOG("%s", kinds[i].name);
			}
			ASSERT_EQ(OK, make_and_read(b, &kinds[i], pb, &read,
						    &bad)) {
				TH_LOG("%s", kinds[i].name);
			}
			made += 2;
			leaks[i] += !!bad;
			if (!read && !round)
				TH_LOG("%s: not on this host", kinds[i].name);
			unread += !read;
		}
	}
	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		EXPECT_EQ(0, leaks[i]) {
			TH_LOG("%s: %u of %u had something in them", kinds[i].name,
			       leaks[i], rounds);
		}
	}
	/* Hosts without OpenGL 4 or samples lack five of the kinds. */
	EXPECT_GE(5 * rounds, unread);
	TH_LOG("%u resources of %zu kinds", made, ARRAY_LEN(kinds));
}

static void __attribute__((constructor)) find_gpu(void)
{
	gl_need_gpu();
}

TEST_HARNESS_MAIN
