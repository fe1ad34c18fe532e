// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory for the bytes of commands, kept for the commands to come.
 *
 * A guest that draws sends streams of similar lengths, as many at a time as it can.  Each
 * stream needs a buffer until the device has executed it.  So buffers have few sizes, and a
 * vGPU keeps those that no command has, up to a number of bytes.  The buffers are charged to
 * the VM's memory control group all the time.
 *
 * Callers hold the vGPU's ring_lock, or no thread runs its ring.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "gpu/cmdbuf.h"

#define SMALLEST	512
#define HEADER		256	/* bytes of a command before its stream or entries, or more */

/*
 * Return the size of the buffer for a command: a power of two.  Whole pages are one more,
 * so that a stream whose length is a power of two does not take twice its length.
 */
static u32 cmdbuf_size(size_t len)
{
	if (len <= MGPU_CMDBUF_SHORT)
		return roundup_pow_of_two(max_t(size_t, len, SMALLEST));
	len = max_t(size_t, len - HEADER, MGPU_CMDBUF_SHORT + 1);
	return roundup_pow_of_two(len) + PAGE_SIZE;
}

static void **list_of(struct mgpu_cmdbufs *bufs, u32 size)
{
	return &bufs->first[ilog2(size) - ilog2(SMALLEST)];
}

static void *take(struct mgpu_cmdbufs *bufs, u32 size)
{
	void **first = list_of(bufs, size), *data = *first;

	if (data) {
		*first = *(void **)data;
		bufs->bytes -= size;
	}
	return data;
}

/* Free buffers of other sizes than @size until one of @size can be kept. */
static bool make_room(struct mgpu_cmdbufs *bufs, u32 size)
{
	u32 i, other;

	if (size > bufs->max)
		return false;
	for (i = 0; i < MGPU_CMDBUF_SIZES; i++) {
		other = cmdbuf_size((size_t)SMALLEST << i);
		while (other != size && bufs->first[i] && bufs->bytes + size > bufs->max)
			kvfree(take(bufs, other));
	}
	return bufs->bytes + size <= bufs->max;
}

/* Free all buffers that are kept. */
void mgpu_cmdbuf_drop(struct mgpu_cmdbufs *bufs)
{
	u32 i;

	for (i = 0; i < MGPU_CMDBUF_SIZES; i++) {
		while (bufs->first[i])
			kvfree(take(bufs, cmdbuf_size((size_t)SMALLEST << i)));
	}
}

static void *allocate(u32 size, gfp_t gfp)
{
	return size > MGPU_CMDBUF_SHORT ? __vmalloc(size, gfp) : kmalloc(size, gfp);
}

/**
 * mgpu_cmdbuf_get - have a buffer for a command
 * @bufs: the vGPU's buffers
 * @buf: buffer to be used if it has the size that @len bytes need; else it goes to @bufs
 * @len: bytes, up to those of a command with a stream of MGPU_MAX_STREAM
 * @gfp: how to allocate; must allow waiting for more than MGPU_CMDBUF_SHORT
 *
 * Return: false if out of memory; @buf is then empty.
 */
bool mgpu_cmdbuf_get(struct mgpu_cmdbufs *bufs, struct mgpu_cmdbuf *buf, size_t len,
		     gfp_t gfp)
{
	u32 size = cmdbuf_size(len);

	if (buf->size == size)
		return true;
	mgpu_cmdbuf_put(bufs, buf);
	buf->data = take(bufs, size);
	if (!buf->data)
		buf->data = allocate(size, gfp);
	if (!buf->data && bufs->bytes) {
		/* Kept buffers count against the limit of the control group. */
		mgpu_cmdbuf_drop(bufs);
		buf->data = allocate(size, gfp);
	}
	buf->size = buf->data ? size : 0;
	return buf->data;
}

/**
 * mgpu_cmdbuf_put - keep or free a buffer
 * @bufs: the vGPU's buffers
 * @buf: buffer from mgpu_cmdbuf_get(), or an empty one; empty afterwards
 */
void mgpu_cmdbuf_put(struct mgpu_cmdbufs *bufs, struct mgpu_cmdbuf *buf)
{
	void **first;

	if (!buf->data)
		return;
	if (make_room(bufs, buf->size)) {
		first = list_of(bufs, buf->size);
		*(void **)buf->data = *first;
		*first = buf->data;
		bufs->bytes += buf->size;
	} else {
		kvfree(buf->data);
	}
	*buf = (struct mgpu_cmdbuf){};
}
