/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/*
 * Compute jobs of an mgpu vGPU: what a guest finds in a capset and writes into
 * a command buffer.
 *
 * A vGPU of a render type has the capset MGPU_CAPSET_COMPUTE.  A guest makes a
 * context for it (CTX_CREATE with the capset's id in context_init), attaches
 * blobs to it and submits command buffers (SUBMIT_3D).  A command buffer is one
 * struct mgpu_compute_cmd, one job.
 *
 * All numbers, those in the blobs included, are little endian.  What a field or
 * an operation does not use must be zero.  Offsets and lengths are in bytes and
 * multiples of 8.  A range that a job writes must not overlap another range of
 * the same job.
 */
#ifndef _UAPI_LINUX_MGPU_COMPUTE_H
#define _UAPI_LINUX_MGPU_COMPUTE_H

#include <linux/types.h>

#define MGPU_CAPSET_COMPUTE		10

#define MGPU_COMPUTE_MAGIC		0x4350474d	/* "MGPC" in memory */
#define MGPU_COMPUTE_VERSION		1

#define MGPU_COMPUTE_MAX_CMD		256	/* bytes of a command buffer */
#define MGPU_COMPUTE_MAX_BUFS		3	/* resources of a job */
#define MGPU_COMPUTE_MAX_SLOTS		64	/* that a job can ask for */
#define MGPU_COMPUTE_LOCAL_MAX		(256 << 10) /* bytes, of a slot */

#define MGPU_COMPUTE_MAX_LENGTH		0x1000000000ULL /* bytes */
#define MGPU_COMPUTE_MAX_DIM		16384	/* pixels, width or height */
#define MGPU_COMPUTE_MAX_STRIDE		0x100000 /* bytes from row to row */
#define MGPU_COMPUTE_MAX_N		2048	/* rows and columns of MATMUL */
#define MGPU_COMPUTE_MAX_ITERATIONS	4095	/* of MANDELBROT, a pixel */
#define MGPU_COMPUTE_MIN_CHUNK		64	/* bytes, of HASH */
#define MGPU_COMPUTE_MAX_CHUNK		(512 << 10)
#define MGPU_COMPUTE_MAX_TABLE_LOG2	32	/* entries of GATHER's table */
#define MGPU_COMPUTE_MAX_WALKS		0x1000000	/* of GATHER */
#define MGPU_COMPUTE_MAX_STEPS		8192	/* of GATHER, a walk */

/* MANDELBROT: a number is this many bits behind the point, and at most 4. */
#define MGPU_COMPUTE_FIXED_SHIFT	28
#define MGPU_COMPUTE_FIXED_MAX		(4LL << MGPU_COMPUTE_FIXED_SHIFT)

/* Odd, with bits all over: what HASH and GATHER multiply with. */
#define MGPU_COMPUTE_MIX		0x9e3779b97f4a7c15ULL

/**
 * enum mgpu_compute_op - what a job computes; resources in their order
 * @MGPU_COMPUTE_FILL: a 64-bit pattern into resource 0
 * @MGPU_COMPUTE_COPY: resource 1 to resource 0
 * @MGPU_COMPUTE_SCALE: a picture, XRGB8888, from resource 1 to resource 0 in
 *   another size, bilinear
 * @MGPU_COMPUTE_MATMUL: resource 0 = resource 1 * resource 2, square matrices
 *   of 32-bit numbers row by row, modulo 2^32
 * @MGPU_COMPUTE_MANDELBROT: iterations until a point escapes, 32 bits a pixel,
 *   and a histogram of them, into resource 0
 * @MGPU_COMPUTE_HASH: 64-bit digests of the chunks of resource 1, and their
 *   sum, into resource 0
 * @MGPU_COMPUTE_GATHER: sums of what random walks through the table in
 *   resource 1 came across, and the sum of these, into resource 0
 * @MGPU_COMPUTE_ACCUMULATE: resource 0 += resource 1, 64-bit numbers.  The only
 *   one that cannot be started again after it has begun
 */
enum mgpu_compute_op {
	MGPU_COMPUTE_FILL = 1,
	MGPU_COMPUTE_COPY,
	MGPU_COMPUTE_SCALE,
	MGPU_COMPUTE_MATMUL,
	MGPU_COMPUTE_MANDELBROT,
	MGPU_COMPUTE_HASH,
	MGPU_COMPUTE_GATHER,
	MGPU_COMPUTE_ACCUMULATE,
};

#define MGPU_COMPUTE_NR_OPS	(MGPU_COMPUTE_ACCUMULATE + 1)

/**
 * struct mgpu_capset_compute - what GET_CAPSET returns
 * @version: MGPU_COMPUTE_VERSION
 * @slots: parts of one job that can run at once
 * @max_cmd: bytes of the longest command buffer
 * @max_bufs: resources of a job
 * @max_local: bytes of memory that a slot has
 * @pad: 0
 * @ops: bit 1 << op for each operation there is
 * @reserved: 0
 */
struct mgpu_capset_compute {
	__le32 version;
	__le32 slots;
	__le32 max_cmd;
	__le32 max_bufs;
	__le32 max_local;
	__le32 pad;
	__le64 ops;
	__le64 reserved[4];
};

/**
 * struct mgpu_compute_fill - FILL
 * @offset: where, in resource 0
 * @length: 8..MGPU_COMPUTE_MAX_LENGTH
 * @pattern: what
 */
struct mgpu_compute_fill {
	__le64 offset;
	__le64 length;
	__le64 pattern;
};

/**
 * struct mgpu_compute_move - COPY and ACCUMULATE
 * @dst_offset: in resource 0
 * @src_offset: in resource 1
 * @length: 8..MGPU_COMPUTE_MAX_LENGTH
 */
struct mgpu_compute_move {
	__le64 dst_offset;
	__le64 src_offset;
	__le64 length;
};

/**
 * struct mgpu_compute_picture - a picture, 4 bytes a pixel: blue, green, red,
 * ignored (0 in a result)
 * @offset: of its first pixel
 * @width: pixels, 1..MGPU_COMPUTE_MAX_DIM
 * @height: rows, 1..MGPU_COMPUTE_MAX_DIM
 * @stride: bytes from row to row: a multiple of 4, at least 4 * @width and at
 *	most MGPU_COMPUTE_MAX_STRIDE
 * @pad: 0
 */
struct mgpu_compute_picture {
	__le64 offset;
	__le32 width;
	__le32 height;
	__le32 stride;
	__le32 pad;
};

/**
 * struct mgpu_compute_scale - SCALE
 * @dst: in resource 0
 * @src: in resource 1
 */
struct mgpu_compute_scale {
	struct mgpu_compute_picture dst;
	struct mgpu_compute_picture src;
};

/**
 * struct mgpu_compute_matmul - MATMUL
 * @c_offset: of the product, in resource 0
 * @a_offset: of the left factor, in resource 1
 * @b_offset: of the right factor, in resource 2
 * @n: rows and columns, 1..MGPU_COMPUTE_MAX_N
 * @pad: 0
 */
struct mgpu_compute_matmul {
	__le64 c_offset;
	__le64 a_offset;
	__le64 b_offset;
	__le32 n;
	__le32 pad;
};

/**
 * struct mgpu_compute_mandelbrot - MANDELBROT
 * @offset: of the pixels, in resource 0
 * @hist_offset: of the histogram there: @iterations + 1 64-bit numbers
 * @width: pixels, 1..MGPU_COMPUTE_MAX_DIM
 * @height: rows, 1..MGPU_COMPUTE_MAX_DIM
 * @iterations: at most so many, 1..MGPU_COMPUTE_MAX_ITERATIONS
 * @pad: 0
 * @left: of the first pixel's centre; this, @top, @dx and @dy are signed, with
 *	MGPU_COMPUTE_FIXED_SHIFT bits behind the point
 * @top: of the first pixel's centre
 * @dx: from pixel to pixel; no pixel may be further than 4 from either axis
 * @dy: from row to row
 */
struct mgpu_compute_mandelbrot {
	__le64 offset;
	__le64 hist_offset;
	__le32 width;
	__le32 height;
	__le32 iterations;
	__le32 pad;
	__le64 left;
	__le64 top;
	__le64 dx;
	__le64 dy;
};

/**
 * struct mgpu_compute_hash - HASH
 * @offset: of the digests, in resource 0, 8 bytes a chunk
 * @sum_offset: of their sum, in resource 0
 * @src_offset: in resource 1
 * @length: 8..MGPU_COMPUTE_MAX_LENGTH; the last chunk may be short
 * @chunk: MGPU_COMPUTE_MIN_CHUNK..MGPU_COMPUTE_MAX_CHUNK bytes
 */
struct mgpu_compute_hash {
	__le64 offset;
	__le64 sum_offset;
	__le64 src_offset;
	__le64 length;
	__le64 chunk;
};

/**
 * struct mgpu_compute_gather - GATHER
 * @offset: of the walks' sums, in resource 0, 8 bytes a walk
 * @sum_offset: of their sum, in resource 0
 * @table_offset: in resource 1, 64-bit numbers
 * @seed: where walks begin
 * @table_log2: there are 1 << this entries, 0..MGPU_COMPUTE_MAX_TABLE_LOG2
 * @walks: 1..MGPU_COMPUTE_MAX_WALKS
 * @steps: of each walk, 1..MGPU_COMPUTE_MAX_STEPS
 * @pad: 0
 */
struct mgpu_compute_gather {
	__le64 offset;
	__le64 sum_offset;
	__le64 table_offset;
	__le64 seed;
	__le32 table_log2;
	__le32 walks;
	__le32 steps;
	__le32 pad;
};

/**
 * struct mgpu_compute_cmd - a job
 * @magic: MGPU_COMPUTE_MAGIC
 * @version: MGPU_COMPUTE_VERSION
 * @op: enum mgpu_compute_op
 * @flags: 0; there are none yet
 * @slots: run at most so many parts at once, 0..MGPU_COMPUTE_MAX_SLOTS; 0 is as
 *	many as there are
 * @nr_res: resources, as many as @op takes
 * @res: their ids; the same id may be there twice
 * @fill: parameters of FILL
 * @move: parameters of COPY and ACCUMULATE
 * @scale: parameters of SCALE
 * @matmul: parameters of MATMUL
 * @mandelbrot: parameters of MANDELBROT
 * @hash: parameters of HASH
 * @gather: parameters of GATHER
 * @param: all that there is room for
 *
 * A command buffer may be longer, up to MGPU_COMPUTE_MAX_CMD, with zeros.
 */
struct mgpu_compute_cmd {
	__le32 magic;
	__le32 version;
	__le32 op;
	__le32 flags;
	__le32 slots;
	__le32 nr_res;
	__le32 res[MGPU_COMPUTE_MAX_BUFS];
	__le32 pad;
	union {
		struct mgpu_compute_fill fill;
		struct mgpu_compute_move move;
		struct mgpu_compute_scale scale;
		struct mgpu_compute_matmul matmul;
		struct mgpu_compute_mandelbrot mandelbrot;
		struct mgpu_compute_hash hash;
		struct mgpu_compute_gather gather;
		__le64 param[8];
	};
};

#endif /* _UAPI_LINUX_MGPU_COMPUTE_H */
