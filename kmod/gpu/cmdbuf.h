/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory for the bytes of commands, kept for the commands to come.
 */
#ifndef MGPU_CMDBUF_H
#define MGPU_CMDBUF_H

#include <linux/types.h>

/* Longest command whose buffer comes from kmalloc(), bytes. */
#define MGPU_CMDBUF_SHORT	16384

/* Sizes: the powers of two from 512 bytes to 1 MiB, see cmdbuf_size(). */
#define MGPU_CMDBUF_SIZES	12

/**
 * struct mgpu_cmdbuf - a buffer
 * @data: the memory, NULL for none
 * @size: bytes allocated at @data
 */
struct mgpu_cmdbuf {
	void *data;
	u32 size;
};

/**
 * struct mgpu_cmdbufs - a vGPU's buffers that no command has
 * @first: first buffer of each size; a buffer begins with the address of the next one
 * @bytes: sum of their sizes
 * @max: upper bound on @bytes
 */
struct mgpu_cmdbufs {
	void *first[MGPU_CMDBUF_SIZES];
	u32 bytes;
	u32 max;
};

bool mgpu_cmdbuf_get(struct mgpu_cmdbufs *bufs, struct mgpu_cmdbuf *buf, size_t len,
		     gfp_t gfp);
void mgpu_cmdbuf_put(struct mgpu_cmdbufs *bufs, struct mgpu_cmdbuf *buf);
void mgpu_cmdbuf_drop(struct mgpu_cmdbufs *bufs);

#endif /* MGPU_CMDBUF_H */
