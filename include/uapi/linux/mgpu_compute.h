/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/*
 * Compute jobs of an mgpu vGPU: the capset that a guest reads and the command buffers
 * that it submits.
 *
 * A vGPU of a render type has the capset MGPU_CAPSET_COMPUTE.  A guest makes a
 * context for it (CTX_CREATE with the capset's id in context_init), attaches
 * blobs to it and submits command buffers (SUBMIT_3D).  A command buffer is one
 * struct mgpu_compute_cmd, one job.
 *
 * All numbers, those in the blobs included, are little endian.  Unused bits of a field
 * and parameters that an operation does not use must be zero.  Offsets and lengths are
 * in bytes and multiples of 8.  A range that a job writes must not overlap another
 * range of the same job.
 */
#ifndef _UAPI_LINUX_MGPU_COMPUTE_H
#define _UAPI_LINUX_MGPU_COMPUTE_H

#include <linux/types.h>

#define MGPU_CAPSET_COMPUTE		10

#define MGPU_COMPUTE_MAGIC		0x4350474d	/* "MGPC" in memory */
#define MGPU_COMPUTE_VERSION		1

#define MGPU_COMPUTE_MAX_CMD		256	/* bytes of a command buffer */
#define MGPU_COMPUTE_MAX_BUFS		3	/* resources of a job */
#define MGPU_COMPUTE_MAX_SLOTS		64	/* slots of a job */
#define MGPU_COMPUTE_LOCAL_MAX		(256 << 10) /* bytes of slot memory */

#define MGPU_COMPUTE_MAX_LENGTH		0x1000000000ULL /* bytes */
#define MGPU_COMPUTE_MAX_DIM		16384	/* pixels, width or height */
#define MGPU_COMPUTE_MAX_STRIDE		0x100000 /* bytes from one row to the next */
#define MGPU_COMPUTE_MAX_N		2048	/* MATMUL: rows and columns */
#define MGPU_COMPUTE_MAX_ITERATIONS	4095	/* MANDELBROT: per pixel */
#define MGPU_COMPUTE_MIN_CHUNK		64	/* HASH: bytes */
#define MGPU_COMPUTE_MAX_CHUNK		(512 << 10) /* HASH: bytes */
#define MGPU_COMPUTE_MAX_TABLE_LOG2	32	/* GATHER: log2 of the table's entries */
#define MGPU_COMPUTE_MAX_WALKS		0x1000000	/* GATHER: walks */
#define MGPU_COMPUTE_MAX_STEPS		8192	/* GATHER: steps per walk */

/* MANDELBROT: fixed-point numbers with so many fraction bits, at most 4. */
#define MGPU_COMPUTE_FIXED_SHIFT	28
#define MGPU_COMPUTE_FIXED_MAX		(4LL << MGPU_COMPUTE_FIXED_SHIFT)

/* Multiplier of HASH and GATHER: odd, with well distributed bits. */
#define MGPU_COMPUTE_MIX		0x9e3779b97f4a7c15ULL

/**
 * enum mgpu_compute_op - operation of a job; resources are numbered in their order
 * @MGPU_COMPUTE_FILL: write a 64-bit pattern to resource 0
 * @MGPU_COMPUTE_COPY: copy resource 1 to resource 0
 * @MGPU_COMPUTE_SCALE: scale a picture, XRGB8888, from resource 1 to resource 0 with
 *   bilinear interpolation
 * @MGPU_COMPUTE_MATMUL: resource 0 = resource 1 * resource 2, square matrices
 *   of 32-bit numbers row by row, modulo 2^32
 * @MGPU_COMPUTE_MANDELBROT: write the iterations until a point escapes, 32 bits per
 *   pixel, and a histogram of them, to resource 0
 * @MGPU_COMPUTE_HASH: write 64-bit digests of the chunks of resource 1, and their
 *   sum, to resource 0
 * @MGPU_COMPUTE_GATHER: write the sums of the entries on random walks through the table
 *   in resource 1, and the sum of these, to resource 0
 * @MGPU_COMPUTE_ACCUMULATE: resource 0 += resource 1, 64-bit numbers.  The only
 *   operation that cannot be restarted after it has begun
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
 * struct mgpu_capset_compute - the capability set that GET_CAPSET returns
 * @version: MGPU_COMPUTE_VERSION
 * @slots: number of slots that a job can use at once
 * @max_cmd: length of the longest command buffer, bytes
 * @max_bufs: most resources of a job
 * @max_local: size of a slot's memory, bytes
 * @pad: 0
 * @ops: bit 1 << op for each supported operation
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
 * struct mgpu_compute_fill - parameters of FILL
 * @offset: offset in resource 0, bytes
 * @length: 8 to MGPU_COMPUTE_MAX_LENGTH bytes
 * @pattern: number to write
 */
struct mgpu_compute_fill {
	__le64 offset;
	__le64 length;
	__le64 pattern;
};

/**
 * struct mgpu_compute_move - parameters of COPY and ACCUMULATE
 * @dst_offset: offset in resource 0, bytes
 * @src_offset: offset in resource 1, bytes
 * @length: 8 to MGPU_COMPUTE_MAX_LENGTH bytes
 */
struct mgpu_compute_move {
	__le64 dst_offset;
	__le64 src_offset;
	__le64 length;
};

/**
 * struct mgpu_compute_picture - a picture, 4 bytes a pixel: blue, green, red,
 * ignored (0 in a result)
 * @offset: offset of the first pixel, bytes
 * @width: 1 to MGPU_COMPUTE_MAX_DIM pixels
 * @height: 1 to MGPU_COMPUTE_MAX_DIM rows
 * @stride: bytes from one row to the next: a multiple of 4, at least 4 * @width and at
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
 * struct mgpu_compute_scale - parameters of SCALE
 * @dst: picture in resource 0
 * @src: picture in resource 1
 */
struct mgpu_compute_scale {
	struct mgpu_compute_picture dst;
	struct mgpu_compute_picture src;
};

/**
 * struct mgpu_compute_matmul - parameters of MATMUL
 * @c_offset: offset of the product in resource 0, bytes
 * @a_offset: offset of the left factor in resource 1, bytes
 * @b_offset: offset of the right factor in resource 2, bytes
 * @n: number of rows and of columns, 1 to MGPU_COMPUTE_MAX_N
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
 * struct mgpu_compute_mandelbrot - parameters of MANDELBROT
 * @offset: offset of the pixels in resource 0, bytes
 * @hist_offset: offset of the histogram in resource 0, bytes: @iterations + 1 numbers
 *	of 64 bits
 * @width: 1 to MGPU_COMPUTE_MAX_DIM pixels
 * @height: 1 to MGPU_COMPUTE_MAX_DIM rows
 * @iterations: most iterations of a pixel, 1 to MGPU_COMPUTE_MAX_ITERATIONS
 * @pad: 0
 * @left: real part of the first pixel's centre; this, @top, @dx and @dy are signed,
 *	with MGPU_COMPUTE_FIXED_SHIFT fraction bits
 * @top: imaginary part of the first pixel's centre
 * @dx: distance between pixels of a row; no pixel may be further than 4 from either axis
 * @dy: distance between rows
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
 * struct mgpu_compute_hash - parameters of HASH
 * @offset: offset of the digests in resource 0, bytes; 8 bytes per chunk
 * @sum_offset: offset of the sum of the digests in resource 0, bytes
 * @src_offset: offset in resource 1, bytes
 * @length: 8 to MGPU_COMPUTE_MAX_LENGTH bytes; the last chunk may be short
 * @chunk: MGPU_COMPUTE_MIN_CHUNK to MGPU_COMPUTE_MAX_CHUNK bytes
 */
struct mgpu_compute_hash {
	__le64 offset;
	__le64 sum_offset;
	__le64 src_offset;
	__le64 length;
	__le64 chunk;
};

/**
 * struct mgpu_compute_gather - parameters of GATHER
 * @offset: offset of the walks' sums in resource 0, bytes; 8 bytes per walk
 * @sum_offset: offset of the sum of these sums in resource 0, bytes
 * @table_offset: offset of the table of 64-bit numbers in resource 1, bytes
 * @seed: start of the walks
 * @table_log2: the table has 1 << @table_log2 entries, 0 to
 *	MGPU_COMPUTE_MAX_TABLE_LOG2
 * @walks: number of walks, 1 to MGPU_COMPUTE_MAX_WALKS
 * @steps: steps of each walk, 1 to MGPU_COMPUTE_MAX_STEPS
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
 * @flags: 0; no flags are defined
 * @slots: most slots that the job may use at once, 1 to MGPU_COMPUTE_MAX_SLOTS; 0 for
 *	all slots
 * @nr_res: number of resources, as @op requires
 * @res: ids of the resources; an id may appear more than once
 * @pad: 0
 * @fill: parameters of FILL
 * @move: parameters of COPY and ACCUMULATE
 * @scale: parameters of SCALE
 * @matmul: parameters of MATMUL
 * @mandelbrot: parameters of MANDELBROT
 * @hash: parameters of HASH
 * @gather: parameters of GATHER
 * @param: all parameters
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
