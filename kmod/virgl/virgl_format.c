// SPDX-License-Identifier: GPL-2.0-only
/*
 * virgl resources: their sizes, and the bounds of transfers and copies.  Pure: no
 * kernel calls, builds in user space too.
 *
 * No arithmetic here can overflow 64 bits: a texture has at most 2^14 columns,
 * rows, slices and layers of at most 2^5 bytes with 2^5 samples, a buffer fewer
 * than 2^31 bytes, and strides have 32 bits.
 */
#include "virgl/virgl.h"

#define PAGE	4096	/* granularity of the host's memory, bytes */

/* Bind bits of Mesa and the protocol. */
#define BINDS	(0x00000001U | 0x00000002U | 0x00000008U | 0x00000010U | \
		 0x00000020U | 0x00000040U | 0x00000080U | 0x00000100U | \
		 0x00000800U | 0x00004000U | 0x00008000U | 0x00010000U | \
		 0x00020000U | 0x00040000U | 0x00080000U | 0x00100000U | \
		 0x00200000U | 0x00400000U | 0xff000000U)
#define BIND_CUSTOM	0x00020000U
#define BIND_STAGING	0x00080000U
#define FLAGS	(MGPU_VIRGL_Y_0_TOP | MGPU_VIRGL_MAP_PERSISTENT | \
		 MGPU_VIRGL_MAP_COHERENT)

/*
 * Bytes of a block << 8 | its columns << 4 | its rows; 0 for an unknown format.
 * Formats with several planes are missing: hosts accept them for video only.
 */
static const u16 formats[MGPU_VIRGL_MAX_FORMAT + 1] = {
	0, 0x0411, 0x0411, 0x0411, 0x0411, 0x0211, 0x0211, 0x0211,	/* 0 */
	0x0411, 0x0111, 0x0111, 0x0111, 0x0211, 0x0211, 0x0421, 0x0421,	/* 8 */
	0x0211, 0x0411, 0x0411, 0x0411, 0x0411, 0x0411, 0x0411, 0x0111,	/* 16 */
	0x0811, 0x1011, 0x1811, 0x2011, 0x0411, 0x0811, 0x0c11, 0x1011,	/* 24 */
	0x0411, 0x0811, 0x0c11, 0x1011, 0x0411, 0x0811, 0x0c11, 0x1011,	/* 32 */
	0x0411, 0x0811, 0x0c11, 0x1011, 0x0411, 0x0811, 0x0c11, 0x1011,	/* 40 */
	0x0211, 0x0411, 0x0611, 0x0811, 0x0211, 0x0411, 0x0611, 0x0811,	/* 48 */
	0x0211, 0x0411, 0x0611, 0x0811, 0x0211, 0x0411, 0x0611, 0x0811,	/* 56 */
	0x0111, 0x0211, 0x0311, 0x0411, 0x0411, 0x0111, 0x0211, 0x0311,	/* 64 */
	0x0411, 0, 0x0111, 0x0211, 0x0311, 0x0411, 0, 0,	/* 72 */
	0, 0, 0x0111, 0x0211, 0x0311, 0x0411, 0, 0x0411,	/* 80 */
	0x0811, 0x0c11, 0x1011, 0x0211, 0x0411, 0x0611, 0x0811, 0x0111,	/* 88 */
	0x0211, 0x0311, 0x0411, 0x0411, 0x0411, 0x0411, 0x0411, 0x0411,	/* 96 */
	0x0411, 0x0844, 0x0844, 0x1044, 0x1044, 0x0844, 0x0844, 0x1044,	/* 104 */
	0x1044, 0x0844, 0x0844, 0x1044, 0x1044, 0x0421, 0x0421, 0x0411,	/* 112 */
	0x0211, 0x0411, 0x0211, 0x0411, 0x0411, 0x0411, 0x0811, 0,	/* 120 */
	0x0411, 0x0411, 0x0111, 0x0411, 0x0411, 0x0211, 0x0411, 0x0211,	/* 128 */
	0x0411, 0x0411, 0x0811, 0x0111, 0x0411, 0x0211, 0x0211, 0x0844,	/* 136 */
	0x0844, 0x1044, 0x1044, 0x0111, 0x0111, 0x0211, 0x0111, 0x0211,	/* 144 */
	0x0211, 0x0411, 0x0211, 0x0211, 0x0211, 0x0411, 0x0211, 0x0411,	/* 152 */
	0x0411, 0x0811, 0x0411, 0, 0, 0, 0, 0,	/* 160 */
	0x0111, 0x0111, 0x0211, 0x0211, 0x0411, 0x0411, 0x0411, 0x0411,	/* 168 */
	0x0411, 0x0111, 0x0211, 0x0311, 0x0411, 0x0111, 0x0211, 0x0311,	/* 176 */
	0x0411, 0x0211, 0x0411, 0x0611, 0x0811, 0x0211, 0x0411, 0x0611,	/* 184 */
	0x0811, 0x0411, 0x0811, 0x0c11, 0x1011, 0x0411, 0x0811, 0x0c11,	/* 192 */
	0x1011, 0x0111, 0x0111, 0x0111, 0x0211, 0x0111, 0x0111, 0x0111,	/* 200 */
	0x0211, 0x0211, 0x0211, 0x0211, 0x0411, 0x0211, 0x0211, 0x0211,	/* 208 */
	0x0411, 0x0411, 0x0411, 0x0411, 0x0811, 0x0411, 0x0411, 0x0411,	/* 216 */
	0x0811, 0x0411, 0x0844, 0x0421, 0x0421, 0x0411, 0x0411, 0x0411,	/* 224 */
	0x0411, 0x0411, 0x0811, 0x0811, 0x0811, 0x0811, 0x0811, 0x1011,	/* 232 */
	0x1011, 0x1011, 0x0211, 0x0411, 0x0411, 0x0411, 0x0811, 0x0211,	/* 240 */
	0x0211, 0x0411, 0x0411, 0x0811, 0x0811, 0x0411, 0x0211, 0x1044,	/* 248 */
	0x1044, 0x1044, 0x1044, 0x0211, 0x0211, 0x0211, 0x0211, 0x0211,	/* 256 */
	0x0411, 0x0411, 0x0211, 0x0411, 0x0411, 0x0844, 0x0844, 0x0844,	/* 264 */
	0x0844, 0x1044, 0x1044, 0x0844, 0x0844, 0x1044, 0x1044, 0x1044,	/* 272 */
	0x1054, 0x1055, 0x1065, 0x1066, 0x1085, 0x1086, 0x1088, 0x10a5,	/* 280 */
	0x10a6, 0x10a8, 0x10aa, 0x10ca, 0x10cc, 0x1044, 0x1054, 0x1055,	/* 288 */
	0x1065, 0x1066, 0x1085, 0x1086, 0x1088, 0x10a5, 0x10a6, 0x10a8,	/* 296 */
	0x10aa, 0x10ca, 0x10cc, 0, 0x0411, 0, 0, 0x0211,	/* 304 */
	0x0111, 0x0211, 0, 0, 0, 0x0311, 0x0111, 0x0211,	/* 312 */
	0x0211, 0x0211,	/* 320 */
};

/**
 * mgpu_virgl_format - get the block size of a format
 * @format: number of the format in the protocol
 * @block: result, if the format is known
 *
 * Return: true if the format is known.
 */
bool mgpu_virgl_format(u32 format, struct mgpu_virgl_block *block)
{
	u32 f = format <= MGPU_VIRGL_MAX_FORMAT ? formats[format] : 0;

	if (!f)
		return false;
	block->bytes = f >> 8;
	block->width = f >> 4 & 0xf;
	block->height = f & 0xf;
	return true;
}

static u32 format_blocks(u32 pixels, u32 per_block)
{
	return pixels / per_block + !!(pixels % per_block);
}

static u32 format_minify(u32 size, u32 level)
{
	size >>= level;
	return size ? size : 1;
}

static u32 format_slices(const struct mgpu_virgl_shape *s, u32 level)
{
	return s->target == MGPU_VIRGL_3D ? format_minify(s->depth, level) :
					    s->array_size;
}

/* Get the block size of a resource; a buffer has blocks of a byte in any format. */
static bool shape_block(const struct mgpu_virgl_shape *s,
			struct mgpu_virgl_block *block)
{
	static const struct mgpu_virgl_block byte = { 1, 1, 1 };

	if (s->target == MGPU_VIRGL_BUFFER) {
		*block = byte;
		return true;
	}
	return mgpu_virgl_format(s->format, block);
}

/*
 * Check the size of a buffer.  Some hosts multiply a buffer's size by the bytes of its
 * format, and store the product in an int.
 */
static bool buffer_ok(const struct mgpu_virgl_shape *s)
{
	struct mgpu_virgl_block block = { 1, 1, 1 };

	if (s->format && !mgpu_virgl_format(s->format, &block))
		return false;
	return s->width && (u64)s->width * block.bytes <= INT_MAX &&
	       s->height == 1 && s->depth == 1 && s->array_size == 1;
}

static bool dim_ok(u32 v)
{
	return v && v <= MGPU_MAX_DIM;
}

/* Return whether the sizes are valid for the target. */
static bool dims_ok(const struct mgpu_virgl_shape *s)
{
	if (s->target == MGPU_VIRGL_BUFFER)
		return buffer_ok(s);

	if (!dim_ok(s->width) || !dim_ok(s->height) || !dim_ok(s->depth) ||
	    !dim_ok(s->array_size))
		return false;

	switch (s->target) {
	case MGPU_VIRGL_1D:
		return s->height == 1 && s->depth == 1 && s->array_size == 1;
	case MGPU_VIRGL_1D_ARRAY:
		return s->height == 1 && s->depth == 1;
	case MGPU_VIRGL_2D:
	case MGPU_VIRGL_RECT:
		return s->depth == 1 && s->array_size == 1;
	case MGPU_VIRGL_2D_ARRAY:
		return s->depth == 1;
	case MGPU_VIRGL_3D:
		return s->array_size == 1;
	case MGPU_VIRGL_CUBE:
		return s->width == s->height && s->depth == 1 &&
		       s->array_size == 6;
	case MGPU_VIRGL_CUBE_ARRAY:
		return s->width == s->height && s->depth == 1 &&
		       s->array_size % 6 == 0;
	default:
		return false;
	}
}

static bool levels_ok(const struct mgpu_virgl_shape *s)
{
	u32 most = s->width > s->height ? s->width : s->height;

	if (!s->last_level)
		return true;
	if (s->target == MGPU_VIRGL_BUFFER || s->target == MGPU_VIRGL_RECT)
		return false;
	if (s->target == MGPU_VIRGL_3D && s->depth > most)
		most = s->depth;
	return s->last_level < 32 && most >> s->last_level;
}

static bool samples_ok(const struct mgpu_virgl_shape *s)
{
	if (s->nr_samples <= 1)
		return true;
	return s->nr_samples <= MGPU_VIRGL_MAX_SAMPLES &&
	       !(s->nr_samples & (s->nr_samples - 1)) && !s->last_level &&
	       (s->target == MGPU_VIRGL_2D ||
		s->target == MGPU_VIRGL_2D_ARRAY);
}

static bool flags_ok(const struct mgpu_virgl_shape *s)
{
	if (s->flags & ~FLAGS || s->bind & ~BINDS)
		return false;
	return !(s->flags & MGPU_VIRGL_Y_0_TOP) ||
	       s->target == MGPU_VIRGL_2D || s->target == MGPU_VIRGL_RECT;
}

/**
 * mgpu_virgl_resource_bytes - check the shape of a resource and compute its size
 * @shape: shape that the guest asks for
 * @bytes: set to the least memory that a host needs, bytes: all levels, layers and
 *	samples, in whole pages of 4 KiB; not 0
 *
 * Return: 0, or -EINVAL if the shape is invalid: an unknown target or format, a size
 * of 0 or beyond MGPU_MAX_DIM, sizes, levels, samples or flags that are invalid for
 * the target, or 4 GiB or more without the samples (Mesa and virglrenderer count the
 * bytes of a resource in 32 bits).
 */
int mgpu_virgl_resource_bytes(const struct mgpu_virgl_shape *shape, u64 *bytes)
{
	struct mgpu_virgl_block block;
	u64 sum = 0;
	u32 level;

	if (shape->target >= MGPU_VIRGL_NR_TARGETS ||
	    !shape_block(shape, &block) || !dims_ok(shape) ||
	    !levels_ok(shape) || !samples_ok(shape) || !flags_ok(shape))
		return -EINVAL;

	for (level = 0; level <= shape->last_level; level++)
		sum += (u64)format_blocks(format_minify(shape->width, level), block.width) *
		       format_blocks(format_minify(shape->height, level), block.height) *
		       block.bytes * format_slices(shape, level);
	if (sum > UINT_MAX)
		return -EINVAL;
	if (shape->nr_samples > 1)
		sum *= shape->nr_samples;
	*bytes = (sum + PAGE - 1) / PAGE * PAGE;
	return 0;
}

/**
 * mgpu_virgl_level - get the whole of a level
 * @shape: shape that mgpu_virgl_resource_bytes() accepts
 * @level: level of the mipmap, up to the last
 * @box: set to all pixels of all slices or layers
 *
 * Return: bytes of the level in memory, of one sample and without gaps; below 4 GiB.
 */
u64 mgpu_virgl_level(const struct mgpu_virgl_shape *shape, u32 level,
		     struct mgpu_virgl_box *box)
{
	struct mgpu_virgl_block block;

	*box = (struct mgpu_virgl_box){
		.width = format_minify(shape->width, level),
		.height = format_minify(shape->height, level),
		.depth = format_slices(shape, level),
	};
	if (!shape_block(shape, &block))
		return 0;
	return (u64)format_blocks(box->width, block.width) *
	       format_blocks(box->height, block.height) * block.bytes * box->depth;
}

/**
 * mgpu_virgl_by_layer - tell whether a transfer may have one layer only
 * @shape: shape that mgpu_virgl_resource_bytes() accepts
 *
 * Of a cube, of an array of lines and of a compressed format, hosts transfer the first
 * layer of a box, or nothing.
 */
bool mgpu_virgl_by_layer(const struct mgpu_virgl_shape *shape)
{
	struct mgpu_virgl_block block;

	return shape->target == MGPU_VIRGL_CUBE ||
	       shape->target == MGPU_VIRGL_1D_ARRAY ||
	       (shape_block(shape, &block) && block.width > 1);
}

/**
 * mgpu_virgl_has_storage - tell whether the GPU has memory for a resource
 * @shape: shape that mgpu_virgl_resource_bytes() accepts
 *
 * For some buffers the host uses the guest's memory, or memory that it zeroes.
 */
bool mgpu_virgl_has_storage(const struct mgpu_virgl_shape *shape)
{
	return shape->target != MGPU_VIRGL_BUFFER ||
	       (shape->bind != BIND_CUSTOM && shape->bind != BIND_STAGING);
}

/**
 * mgpu_virgl_is_depth - tell whether a format has depth or stencil in place of colours
 * @format: number of the format in the protocol
 */
bool mgpu_virgl_is_depth(u32 format)
{
	/* Z16 to S8, Z32_FLOAT_S8X24, and views of one of both parts. */
	return (format >= 16 && format <= 23) || format == 126 ||
	       (format >= 136 && format <= 138);
}

static bool format_inside(u32 at, u32 size, u32 limit)
{
	return size <= limit && at <= limit - size;
}

/* Return whether a box, which may be empty, is within a level. */
static bool box_ok(const struct mgpu_virgl_shape *s, u32 level,
		   const struct mgpu_virgl_box *box)
{
	return level <= s->last_level &&
	       format_inside(box->x, box->width, format_minify(s->width, level)) &&
	       format_inside(box->y, box->height, format_minify(s->height, level)) &&
	       format_inside(box->z, box->depth, format_slices(s, level));
}

/**
 * mgpu_virgl_layers_ok - check that slices or layers are within a level
 * @shape: shape that mgpu_virgl_resource_bytes() accepts
 * @level: level of the mipmap
 * @first: first slice or layer
 * @nr: number of slices or layers
 *
 * Return: true if all of them exist.
 */
bool mgpu_virgl_layers_ok(const struct mgpu_virgl_shape *shape, u32 level,
			  u32 first, u32 nr)
{
	return level <= shape->last_level &&
	       format_inside(first, nr, format_slices(shape, level));
}

/* Like box_ok(), but a level includes all pixels of its last blocks. */
static bool region_ok(const struct mgpu_virgl_shape *s, u32 level,
		      const struct mgpu_virgl_block *block,
		      const struct mgpu_virgl_box *box)
{
	u32 columns, rows;

	if (!mgpu_virgl_layers_ok(s, level, box->z, box->depth))
		return false;
	columns = format_blocks(format_minify(s->width, level), block->width) * block->width;
	rows = format_blocks(format_minify(s->height, level), block->height) * block->height;
	return format_inside(box->x, box->width, columns) &&
	       format_inside(box->y, box->height, rows);
}

/**
 * mgpu_virgl_copy_ok - check that a copy is within two resources
 * @dst: shape of the destination that mgpu_virgl_resource_bytes() accepts
 * @dst_level: level of the destination's mipmap
 * @at: position in the destination; width, height and depth are ignored
 * @src: shape of the source that mgpu_virgl_resource_bytes() accepts
 * @src_level: level of the source's mipmap
 * @box: box to copy, in pixels of the source
 *
 * Between formats with different blocks, whole blocks are copied.  A copy between a
 * buffer and a texture is invalid.
 *
 * Return: true if the copy is valid.
 */
bool mgpu_virgl_copy_ok(const struct mgpu_virgl_shape *dst, u32 dst_level,
			const struct mgpu_virgl_box *at,
			const struct mgpu_virgl_shape *src, u32 src_level,
			const struct mgpu_virgl_box *box)
{
	struct mgpu_virgl_block from, to;
	struct mgpu_virgl_box target = *at;

	static_assert(!MGPU_VIRGL_BUFFER, "the rest are textures");
	if (!dst->target != !src->target)
		return false;
	if (!shape_block(src, &from) || !shape_block(dst, &to) ||
	    !region_ok(src, src_level, &from, box))
		return false;
	target.width = format_blocks(box->width, from.width) * to.width;
	target.height = format_blocks(box->height, from.height) * to.height;
	target.depth = box->depth;
	return region_ok(dst, dst_level, &to, &target);
}

/**
 * mgpu_virgl_transfer_ok - check that a transfer is within resource and memory
 * @shape: shape of the resource that mgpu_virgl_resource_bytes() accepts
 * @backing: size of the memory, bytes
 * @transfer: the transfer
 * @bytes: set to the bytes moved, without gaps between rows, if the transfer is valid
 *
 * If the guest gives no stride, the host uses the stride of the whole level, so the
 * transfer must fit with that.  Rows or slices that overlap in memory are refused,
 * as the host does.
 *
 * Return: true if the transfer is within the resource and the memory.
 */
bool mgpu_virgl_transfer_ok(const struct mgpu_virgl_shape *shape, u64 backing,
			    const struct mgpu_virgl_transfer *transfer,
			    u64 *bytes)
{
	const struct mgpu_virgl_box *box = &transfer->box;
	struct mgpu_virgl_block block;
	u64 row, stride, layer, span;
	u32 rows;

	if (!shape_block(shape, &block) ||
	    !box_ok(shape, transfer->level, box) ||
	    transfer->offset > backing)
		return false;

	*bytes = 0;
	if (!box->width || !box->height || !box->depth)
		return true;

	row = (u64)format_blocks(box->width, block.width) * block.bytes;
	rows = format_blocks(box->height, block.height);
	stride = transfer->stride;
	if (!stride)
		stride = (u64)format_blocks(format_minify(shape->width, transfer->level),
				     block.width) * block.bytes;
	else if (rows > 1 && stride < row)
		return false;
	layer = transfer->layer_stride;
	if (!layer)
		layer = stride * format_blocks(format_minify(shape->height, transfer->level),
					block.height);
	span = (rows - 1) * stride + row;
	if (box->depth > 1 && layer < span)
		return false;
	span += (box->depth - 1) * layer;
	if (span > backing - transfer->offset)
		return false;
	*bytes = row * rows * box->depth;
	return true;
}
