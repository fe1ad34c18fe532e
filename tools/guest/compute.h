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
 * Functions that can fail return 0 or a negative errno, and compute_message()
 * then says in a sentence what was wrong.  A struct compute belongs to one thread
 * at a time.
 *
 * Linux's driver does not tell programs that the device refused a job, or had to
 * end it: it writes the response's number to the kernel's log, and the job's
 * fence looks as if all were well.  Who must know looks at the result.
 */
#ifndef MGPU_GUEST_COMPUTE_H
#define MGPU_GUEST_COMPUTE_H

#include <stdint.h>

#include <linux/mgpu_compute.h>

/**
 * struct compute - a context on a device; from compute_open()
 * @fd: of the device
 * @slots: parts of one job that the device runs at once
 * @ops: bit 1 << op for each operation that it has
 * @message: what was wrong last
 */
struct compute {
	int fd;
	uint32_t slots;
	uint64_t ops;
	char message[256];
};

/**
 * struct compute_buffer - memory that the program and the device share
 * @map: the program's view of it; aligned to a page
 * @size: bytes
 * @handle: the driver's number for it
 * @resource: the device's number for it
 */
struct compute_buffer {
	void *map;
	uint64_t size;
	uint32_t handle;
	uint32_t resource;
};

/**
 * struct compute_job - a job to submit; from one of compute_job_*()
 * @cmd: as it goes to the device
 * @buffers: those that it uses, cmd.nr_res of them; they must stay until it is
 *	done
 */
struct compute_job {
	struct mgpu_compute_cmd cmd;
	const struct compute_buffer *buffers[MGPU_COMPUTE_MAX_BUFS];
};

/**
 * struct compute_picture - where a picture is in a buffer
 * @offset: bytes, a multiple of 8
 * @width: pixels
 * @height: rows
 * @stride: bytes from row to row, a multiple of 4
 */
struct compute_picture {
	uint64_t offset;
	uint32_t width;
	uint32_t height;
	uint32_t stride;
};

/**
 * struct compute_view - what MANDELBROT looks at
 * @width: pixels
 * @height: rows
 * @iterations: at most so many
 * @left: of the first pixel; all with MGPU_COMPUTE_FIXED_SHIFT bits behind the
 *	point
 * @top: of the first pixel
 * @dx: from pixel to pixel
 * @dy: from row to row
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
 * struct compute_walks - what GATHER does
 * @seed: where walks begin
 * @table_log2: the table has 1 << this entries of 8 bytes
 * @walks: how many
 * @steps: of each
 */
struct compute_walks {
	uint64_t seed;
	uint32_t table_log2;
	uint32_t walks;
	uint32_t steps;
};

/**
 * compute_open - make a context on a device
 * @c: to be filled; compute_message() and compute_close() work on it also after
 *	an error
 * @device: such as /dev/dri/card0 or /dev/dri/renderD128
 *
 * Return: 0; -ENODEV when it is not virtio_gpu's; -EOPNOTSUPP when the vGPU's
 * type, the device or the kernel has no compute jobs; other errors of open(2) and
 * the driver.
 */
int compute_open(struct compute *c, const char *device);

/** compute_close - end a context; NULL and one that did not open are fine */
void compute_close(struct compute *c);

/** compute_message - what was wrong last, without a full stop or a new line */
const char *compute_message(const struct compute *c);

/**
 * compute_alloc - memory for jobs, filled with zeros
 * @c: from compute_open()
 * @size: bytes, not 0
 * @b: to be filled; all 0 on error
 *
 * Return: 0; -ENOMEM and other errors of the driver and mmap(2).
 */
int compute_alloc(struct compute *c, uint64_t size, struct compute_buffer *b);

/** compute_free - give memory back; fine for one that compute_alloc() refused */
void compute_free(struct compute *c, struct compute_buffer *b);

/**
 * compute_settle - wait until no job uses a buffer
 * @c: from compute_open()
 * @b: from compute_alloc()
 *
 * For who gave up to wait for a fence.
 *
 * Return: 0; -EBUSY after the driver's 15 s.
 */
int compute_settle(struct compute *c, const struct compute_buffer *b);

/*
 * Fill in a job: what each operation does, and the bounds of its parameters, are
 * in <linux/mgpu_compute.h>; results first.  Offsets and lengths are in bytes.
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

/** compute_job_slots - how many parts may run at once; 0: as many as there are */
void compute_job_slots(struct compute_job *job, uint32_t slots);

/**
 * compute_submit - give a job to the device
 * @c: from compute_open()
 * @job: may be changed or thrown away afterwards, but not its buffers
 * @fence: a file descriptor that becomes readable when the job is done; to be
 *	closed by the caller
 *
 * Jobs of a context are done in the order in which they were submitted.
 *
 * Return: 0; -EOPNOTSUPP when the device lacks the operation; errors of the
 * driver.
 */
int compute_submit(struct compute *c, const struct compute_job *job, int *fence);

/**
 * compute_wait - wait for a job
 * @c: from compute_open()
 * @fence: from compute_submit()
 * @timeout_ms: at most so long; -1 for ever
 *
 * Return: 0; -ETIME when it is not done yet; what the job failed with, where
 * the driver knows.
 */
int compute_wait(struct compute *c, int fence, int timeout_ms);

/** compute_run - compute_submit() and compute_wait() */
int compute_run(struct compute *c, const struct compute_job *job,
		int timeout_ms);

#endif /* MGPU_GUEST_COMPUTE_H */
