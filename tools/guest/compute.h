/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compute jobs on a vGPU of a render type, through the virtio_gpu driver as it is
 * in Linux.
 *
 *	struct compute c;
 *	struct compute_buffer b;
 *	struct compute_job job;
 *
 *	if (compute_open(&c, "/dev/dri/card0") || compute_alloc(&c, 4096, &b))
 *		return report(compute_message(&c));
 *	compute_job_fill(&job, &b, 0, 4096, 0x0102030405060708);
 *	ret = compute_run(&c, &job, 1000);
 *	...
 *	compute_free(&c, &b);
 *	compute_close(&c);
 *
 * Functions that can fail return 0 or a negative errno; compute_message() then
 * returns the reason.  A struct compute belongs to one thread at a time.
 *
 * Linux's driver does not tell programs that the device refused a job, or had to
 * end it: it writes the response's number to the kernel's log, and the job's
 * fence looks as if all were well.  A caller that must know checks the result.
 */
#ifndef MGPU_GUEST_COMPUTE_H
#define MGPU_GUEST_COMPUTE_H

#include <stdint.h>

#include <linux/mgpu_compute.h>

/**
 * struct compute - a context on a device; from compute_open()
 * @fd: file descriptor of the device
 * @slots: slots of the device: tiles of a job that run at once
 * @ops: bit 1 << op for each operation of the device
 * @message: reason of the last error
 */
struct compute {
	int fd;
	uint32_t slots;
	uint64_t ops;
	char message[256];
};

/**
 * struct compute_buffer - memory that the program and the device share
 * @map: the program's mapping, aligned to a page
 * @size: size, bytes
 * @handle: number of the buffer in the driver
 * @resource: number of the buffer in the device
 */
struct compute_buffer {
	void *map;
	uint64_t size;
	uint32_t handle;
	uint32_t resource;
};

/**
 * struct compute_job - a job to submit; from one of compute_job_*()
 * @cmd: command for the device
 * @buffers: the cmd.nr_res buffers of the job; they must exist until it completes
 */
struct compute_job {
	struct mgpu_compute_cmd cmd;
	const struct compute_buffer *buffers[MGPU_COMPUTE_MAX_BUFS];
};

/**
 * struct compute_picture - place of a picture in a buffer
 * @offset: first byte, a multiple of 8
 * @width: width, pixels
 * @height: height, rows
 * @stride: bytes from row to row, a multiple of 4
 */
struct compute_picture {
	uint64_t offset;
	uint32_t width;
	uint32_t height;
	uint32_t stride;
};

/**
 * struct compute_view - part of the plane that MANDELBROT draws
 * @width: width, pixels
 * @height: height, rows
 * @iterations: greatest number of iterations of a pixel
 * @left: coordinate of the first pixel; all coordinates have
 *	MGPU_COMPUTE_FIXED_SHIFT bits behind the point
 * @top: coordinate of the first row
 * @dx: distance from pixel to pixel
 * @dy: distance from row to row
 */
struct compute_view {
	uint32_t width;
	uint32_t height;
	uint32_t iterations;
	int64_t left;
	int64_t top;
	int64_t dx;
	int64_t dy;
};

/**
 * struct compute_walks - parameters of GATHER
 * @seed: seed of the walks' first entries
 * @table_log2: the table has 1 << @table_log2 entries of 8 bytes
 * @walks: number of walks
 * @steps: steps of each walk
 */
struct compute_walks {
	uint64_t seed;
	uint32_t table_log2;
	uint32_t walks;
	uint32_t steps;
};

/**
 * compute_open - make a context on a device
 * @c: result; compute_message() and compute_close() accept it also after an error
 * @device: such as /dev/dri/card0 or /dev/dri/renderD128
 *
 * Return: 0; -ENODEV when @device does not belong to virtio_gpu; -EOPNOTSUPP when the
 * vGPU's type, the device or the kernel has no compute jobs; other errors of open(2)
 * and the driver.
 */
int compute_open(struct compute *c, const char *device);

/** compute_close - end a context; accepts NULL and a context that did not open */
void compute_close(struct compute *c);

/** compute_message - return the reason of the last error, without a full stop */
const char *compute_message(const struct compute *c);

/**
 * compute_alloc - allocate memory for jobs, filled with zeros
 * @c: from compute_open()
 * @size: size in bytes, not 0
 * @b: result; all 0 on error
 *
 * Return: 0; -ENOMEM and other errors of the driver and mmap(2).
 */
int compute_alloc(struct compute *c, uint64_t size, struct compute_buffer *b);

/** compute_free - free memory; accepts a buffer that compute_alloc() refused */
void compute_free(struct compute *c, struct compute_buffer *b);

/**
 * compute_settle - wait until no job uses a buffer
 * @c: from compute_open()
 * @b: from compute_alloc()
 *
 * For a caller that gave up to wait for a fence.
 *
 * Return: 0; -EBUSY after the driver's 15 s.
 */
int compute_settle(struct compute *c, const struct compute_buffer *b);

/*
 * Fill in a job.  <linux/mgpu_compute.h> describes the operations and the bounds of
 * their parameters.  The result comes first.  Offsets and lengths are in bytes.
 */
void compute_job_fill(struct compute_job *job, const struct compute_buffer *dst,
		      uint64_t offset, uint64_t length, uint64_t pattern);
void compute_job_copy(struct compute_job *job, const struct compute_buffer *dst,
		      uint64_t dst_offset, const struct compute_buffer *src,
		      uint64_t src_offset, uint64_t length);
void compute_job_accumulate(struct compute_job *job,
			    const struct compute_buffer *dst,
			    uint64_t dst_offset,
			    const struct compute_buffer *src,
			    uint64_t src_offset, uint64_t length);
void compute_job_scale(struct compute_job *job,
		       const struct compute_buffer *dst,
		       const struct compute_picture *to,
		       const struct compute_buffer *src,
		       const struct compute_picture *from);
void compute_job_matmul(struct compute_job *job, const struct compute_buffer *c,
			uint64_t c_offset, const struct compute_buffer *a,
			uint64_t a_offset, const struct compute_buffer *b,
			uint64_t b_offset, uint32_t n);
void compute_job_mandelbrot(struct compute_job *job,
			    const struct compute_buffer *dst, uint64_t offset,
			    uint64_t hist_offset,
			    const struct compute_view *view);
void compute_job_hash(struct compute_job *job, const struct compute_buffer *dst,
		      uint64_t offset, uint64_t sum_offset,
		      const struct compute_buffer *src, uint64_t src_offset,
		      uint64_t length, uint64_t chunk);
void compute_job_gather(struct compute_job *job,
			const struct compute_buffer *dst, uint64_t offset,
			uint64_t sum_offset,
			const struct compute_buffer *table,
			uint64_t table_offset,
			const struct compute_walks *walks);

/** compute_job_slots - limit the slots that a job may use; 0 for no limit */
void compute_job_slots(struct compute_job *job, uint32_t slots);

/**
 * compute_submit - submit a job to the device
 * @c: from compute_open()
 * @job: the caller may change or free it afterwards, but not its buffers
 * @fence: file descriptor that becomes readable when the job completes; the caller
 *	closes it
 *
 * Jobs of a context complete in the order of their submission.
 *
 * Return: 0; -EOPNOTSUPP when the device lacks the operation; errors of the
 * driver.
 */
int compute_submit(struct compute *c, const struct compute_job *job, int *fence);

/**
 * compute_wait - wait for a job
 * @c: from compute_open()
 * @fence: from compute_submit()
 * @timeout_ms: longest wait, milliseconds; -1 for no limit
 *
 * Return: 0; -ETIME when the job is still in flight; the job's error, where the driver
 * knows it.
 */
int compute_wait(struct compute *c, int fence, int timeout_ms);

/** compute_run - submit a job and wait for it */
int compute_run(struct compute *c, const struct compute_job *job,
		int timeout_ms);

#endif /* MGPU_GUEST_COMPUTE_H */
