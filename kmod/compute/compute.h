/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MGPU_COMPUTE_H
#define MGPU_COMPUTE_H

#include <uapi/linux/mgpu_compute.h>

#include "pure.h"

#define MGPU_COMPUTE_MAX_RANGES	3

/**
 * struct mgpu_compute_range - a part of a resource that a job reads or writes
 * @buf: index of the resource in the job's resources
 * @write: the job writes the range; no other range of the job may overlap it
 * @offset: offset of the first byte, a multiple of 8 bytes
 * @size: size in bytes, not 0
 */
struct mgpu_compute_range {
	u32 buf;
	bool write;
	u64 offset;
	u64 size;
};

/**
 * struct mgpu_compute_size - size of a picture
 * @width: width in pixels
 * @height: height in rows
 * @stride: bytes from one row to the next
 */
struct mgpu_compute_size {
	u32 width;
	u32 height;
	u32 stride;
};

/**
 * struct mgpu_compute - a compute job, checked except for its resources
 * @op: enum mgpu_compute_op
 * @flags: 0
 * @slots: most slots that the job may use at once; 0 for all slots
 * @nr_bufs: number of resources
 * @res: the guest's numbers of the resources; not 0
 * @nr_ranges: entries of @range
 * @range: parts of the resources that the job reads or writes
 * @tiles: number of tiles: @groups * ceil(@items / @per_tile), at least 1
 * @local: bytes of slot memory that the job needs, at most MGPU_COMPUTE_LOCAL_MAX:
 *	state that cannot be rebuilt, then state that can
 * @regs: bytes at the start of the slot memory that cannot be rebuilt
 * @inst: work units of the whole job, see Documentation/compute.rst
 * @bytes: memory traffic of the whole job, bytes
 * @idempotent: restarting the job after any part of it gives the same result
 * @items: number of items that a group of tiles shares: words, rows, pixels, chunks
 *	or walks
 * @per_tile: items of a tile; the last tile of a group may have fewer
 * @groups: MATMUL: blocks of columns; otherwise 1
 * @fill: parameters of FILL
 * @scale: parameters of SCALE; steps are in 1/65536 pixel
 * @matmul: parameters of MATMUL; @matmul.cols: width of a block, columns
 * @mandelbrot: parameters of MANDELBROT
 * @hash: parameters of HASH
 * @gather: parameters of GATHER; @gather.mask: mask of an entry's number
 */
struct mgpu_compute {
	u32 op;
	u32 flags;
	u32 slots;
	u32 nr_bufs;
	u32 res[MGPU_COMPUTE_MAX_BUFS];
	u32 nr_ranges;
	struct mgpu_compute_range range[MGPU_COMPUTE_MAX_RANGES];

	u32 tiles;
	u32 local;
	u32 regs;
	u64 inst;
	u64 bytes;
	bool idempotent;

	u64 items;
	u32 per_tile;
	u32 groups;
	union {
		struct {
			u64 pattern;
		} fill;
		struct {
			struct mgpu_compute_size dst;
			struct mgpu_compute_size src;
			u32 step_x;
			u32 step_y;
		} scale;
		struct {
			u32 n;
			u32 cols;
		} matmul;
		struct {
			u32 width;
			u32 iterations;
			s64 left;
			s64 top;
			s64 dx;
			s64 dy;
		} mandelbrot;
		struct {
			u64 length;
			u32 chunk;
		} hash;
		struct {
			u64 seed;
			u64 mask;
			u32 steps;
		} gather;
	};
};

/**
 * struct mgpu_compute_buf - a resource of a job
 * @base: address of the first byte, aligned to 8 bytes
 * @size: size in bytes
 */
struct mgpu_compute_buf {
	void *base;
	u64 size;
};

/**
 * struct mgpu_compute_usage - cost of tiles
 * @inst: work units
 * @bytes: memory traffic, bytes
 */
struct mgpu_compute_usage {
	u64 inst;
	u64 bytes;
};

int mgpu_compute_decode(const void *buf, size_t len, struct mgpu_compute *job);
int mgpu_compute_check(const struct mgpu_compute *job,
		       const struct mgpu_compute_buf *bufs);
void mgpu_compute_prepare(const struct mgpu_compute *job,
			  const struct mgpu_compute_buf *bufs);
void mgpu_compute_begin(const struct mgpu_compute *job, void *local);
void mgpu_compute_tile(const struct mgpu_compute *job,
		       const struct mgpu_compute_buf *bufs, void *local,
		       u32 tile, struct mgpu_compute_usage *usage);
void mgpu_compute_end(const struct mgpu_compute *job,
		      const struct mgpu_compute_buf *bufs, void *local);
u32 mgpu_compute_live(const struct mgpu_compute *job);
void mgpu_compute_capset(struct mgpu_capset_compute *cap, u32 slots);
const char *mgpu_compute_op_name(u32 op);

#endif /* MGPU_COMPUTE_H */
