/* SPDX-License-Identifier: GPL-2.0-only */
/* Execution of a vGPU's commands by virglrenderer, on a render node or without a GPU. */
#ifndef RENDERD_VIRGL_H
#define RENDERD_VIRGL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../include/uapi/linux/mgpu_user.h"

struct virgl;

/**
 * typedef virgl_done_fn - a fenced command is complete
 * @arg: as given to virgl_new()
 * @seq: number of the command
 * @type: VIRTIO_GPU_RESP_*
 */
typedef void (*virgl_done_fn)(void *arg, uint32_t seq, uint32_t type);

/**
 * typedef virgl_map_fn - map guest memory
 * @arg: as given to virgl_new()
 * @offset: of struct mgpu_user_cmd
 * @len: bytes
 *
 * Return: address, or NULL.
 */
typedef void *(*virgl_map_fn)(void *arg, uint64_t offset, uint64_t len);

/**
 * typedef virgl_show_fn - have the guest find a blob of the host's memory
 * @arg: as given to virgl_new()
 * @seq: number of the command that maps it
 * @p: its memory, whole pages
 * @len: bytes
 * @cache: how it is mapped, VIRTIO_GPU_MAP_CACHE_*; 0 if that is not known
 *
 * Return: 0 or a negative errno.
 */
typedef int (*virgl_show_fn)(void *arg, uint32_t seq, void *p, size_t len, uint32_t cache);

/**
 * typedef virgl_server_fn - start the server of Venus
 * @arg: as given to virgl_new()
 *
 * Return: a socket to it, the renderer's; or a negative errno.
 */
typedef int (*virgl_server_fn)(void *arg);

/**
 * struct virgl_ops - what the renderer calls
 * @map: maps guest memory
 * @show: has the guest find a blob
 * @done: for each fenced command, from virgl_execute() and virgl_poll()
 * @server: starts the server of Venus, within virgl_new(); NULL for a renderer without Vulkan
 */
struct virgl_ops {
	virgl_map_fn map;
	virgl_show_fn show;
	virgl_done_fn done;
	virgl_server_fn server;
};

/* VIRTIO_GPU_CAPSET_VENUS */
#define VIRGL_VENUS	4u

/**
 * virgl_open_node() - open a render node
 * @node: its path; NULL to render without a GPU
 * @fd: set to the open file, or -1 without a GPU
 *
 * Return: 0 or a negative errno after a message on standard error.
 */
int virgl_open_node(const char *node, int *fd);

/**
 * virgl_new() - start the renderer
 * @v: result
 * @drm: of virgl_open_node(); the renderer's in any case
 * @ops: what it calls; must stay valid; only @server is called if no command is executed
 * @arg: for @ops
 *
 * Of a process, there can be one.
 *
 * Return: 0 or a negative errno after a message on standard error.
 */
int virgl_new(struct virgl **v, int drm, const struct virgl_ops *ops, void *arg);
void virgl_free(struct virgl *v);

/* The capability set @id: its version and length; 0 if the renderer does not have it. */
size_t virgl_capset(uint32_t id, uint32_t *version, void *data, size_t size);

/**
 * virgl_execute() - execute a command
 * @v: renderer
 * @cmd: from the channel
 * @buf: its bytes
 *
 * Return: VIRTIO_GPU_RESP_*, or 0 if @done is called with that.
 */
uint32_t virgl_execute(struct virgl *v, const struct mgpu_user_cmd *cmd, const void *buf);

/**
 * virgl_answer() - answer a command that another renderer has executed
 * @v: renderer
 * @cmd: from the channel
 * @buf: its bytes
 * @type: VIRTIO_GPU_RESP_*
 *
 * The fence of a fenced command is behind those of the commands before.
 *
 * Return: as virgl_execute().
 */
uint32_t virgl_answer(struct virgl *v, const struct mgpu_user_cmd *cmd, const void *buf,
		      uint32_t type);

/**
 * virgl_export() - export a resource as a dma-buf
 * @v: renderer
 * @id: number of the resource
 * @e: set to what MGPU_USER_EXPORT takes; the caller must close @e->fd
 *
 * Return: 0; -EOPNOTSUPP, the GPU's driver does not export it, or not as one plane from offset 0
 * that VMMs can show.
 */
int virgl_export(struct virgl *v, uint32_t id, struct mgpu_user_export *e);

/* Return whether virgl_export() can export a picture of 64 x 64 pixels. */
bool virgl_can_export(void);

/*
 * Return whether guests can map blobs of the host's memory: the renderer has buffers that stay
 * mapped, of whole pages.
 */
bool virgl_can_share(void);

/*
 * Return the memory that is attached to a resource, or that of a blob, and its length in bytes;
 * NULL for none.
 */
void *virgl_memory(struct virgl *v, uint32_t id, size_t *len);

/* The same, if it is the guest's memory, and its pieces follow each other in @len bytes. */
void *virgl_one_piece(struct virgl *v, uint32_t id, size_t *len);

/* Return whether fenced commands are not complete. */
bool virgl_busy(const struct virgl *v);
/* Return whether the guest has contexts of Venus. */
bool virgl_has_venus(const struct virgl *v);
/* A file descriptor that is readable when virgl_poll() has something to do, or -1. */
int virgl_fd(const struct virgl *v);
void virgl_poll(struct virgl *v);

/*
 * Return for how long the GPU has had work of fenced commands that are complete, nanoseconds. It
 * may have worked for others meanwhile. Fences on rings are not counted.
 */
uint64_t virgl_worked_ns(const struct virgl *v);

#endif /* RENDERD_VIRGL_H */
