/* SPDX-License-Identifier: GPL-2.0-only */
/* A worker's side of a channel of mgpu_user. */
#ifndef RENDERD_CHANNEL_H
#define RENDERD_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../include/uapi/linux/mgpu_user.h"

/**
 * struct channel - channel to a vGPU
 * @fd: file of /dev/mgpu-userN
 * @a: its sizes
 * @ring: the rings
 * @cmds: commands
 * @answers: answers
 * @arena: bytes of commands
 * @taken: number of commands that were taken
 * @put: number of answers that were put
 * @told: number of answers that the module was told of
 */
struct channel {
	int fd;
	struct mgpu_user_attach a;
	struct mgpu_user_ring *ring;
	struct mgpu_user_cmd *cmds;
	struct mgpu_user_answer *answers;
	const uint8_t *arena;
	uint32_t taken, put, told;
};

/**
 * channel_open() - become the worker of a vGPU, in the cgroups of its VMM
 * @ch: result
 * @fd: file of /dev/mgpu-userN; the channel's in any case
 * @vgpu: ID of the vGPU
 *
 * Return: 0 or a negative errno: -ENODEV if the vGPU is not open, -EBUSY if it has a worker.
 */
int channel_open(struct channel *ch, int fd, uint32_t vgpu);
void channel_close(struct channel *ch);

/* Take the next command; false if there is none. */
bool channel_take(struct channel *ch, struct mgpu_user_cmd *cmd);

/* Put an answer. The module learns of it at the next channel_enter(). */
void channel_answer(struct channel *ch, uint32_t seq, uint32_t type, uint64_t engine_ns);

/**
 * channel_map() - have the guest find memory of the worker
 * @ch: channel
 * @seq: number of a RESOURCE_MAP_BLOB that is not answered
 * @p: address, a multiple of the page size
 * @len: bytes, whole pages
 * @cache: how it is mapped, VIRTIO_GPU_MAP_CACHE_*; 0 if that is not known
 *
 * Return: 0 or a negative errno: -EFAULT if the module can neither pin nor follow the memory.
 */
int channel_map(struct channel *ch, uint32_t seq, void *p, size_t len, uint32_t cache);

/* Hand over the dma-buf of a resource whose command is not answered: 0 or a negative errno. */
int channel_export(struct channel *ch, const struct mgpu_user_export *e);

/* Ask for a turn: 0 or a negative errno, -EBUSY if the module knows of the request. */
int channel_turn(struct channel *ch);

/**
 * channel_enter() - hand over answers, and wait for a command
 * @ch: channel
 * @timeout_ms: longest wait, milliseconds; 0 for none
 *
 * Makes no system call without answers and without a wait.
 *
 * Return: 0; -ENODEV when the vGPU has no use for this worker any more; or another negative
 * errno.
 */
int channel_enter(struct channel *ch, uint32_t timeout_ms);

#endif /* RENDERD_CHANNEL_H */
