/* SPDX-License-Identifier: GPL-2.0-only */
/* Recording of what a worker executes, for `mgpu-renderd replay`. */
#ifndef RENDERD_RECORD_H
#define RENDERD_RECORD_H

#include <stdint.h>

#include "../../include/uapi/linux/mgpu_user.h"

struct recorder;
struct virgl;

/**
 * recorder_create() - create the file of a worker
 * @dir: folder
 * @vgpu: ID of the vGPU
 *
 * The file is DIR/vgpu-ID-N.mgpurec, with the first N from 1 of which there is no file.
 *
 * Return: file, which is closed by exec; or a negative errno.
 */
int recorder_create(const char *dir, uint32_t vgpu);

/**
 * recorder_new() - begin a recording
 * @fd: file, the recorder's from now on; a negative number records nothing
 * @vgpu: ID of the vGPU
 * @v: renderer
 *
 * A recorder makes no system calls but clock_gettime(), mmap(), munmap(), write() and
 * close().  A write that fails ends the recording with a message on standard error; the
 * worker goes on.
 *
 * Return: recorder; NULL, which all functions take, if nothing is recorded.
 */
struct recorder *recorder_new(int fd, uint32_t vgpu, struct virgl *v);
void recorder_free(struct recorder *rec);

/* Record a command that virgl_execute() is about to execute. */
void recorder_before(struct recorder *rec, const struct mgpu_user_cmd *cmd, const void *buf);
/* Record what it has changed, after virgl_execute(). */
void recorder_after(struct recorder *rec, const void *buf);

#endif /* RENDERD_RECORD_H */
