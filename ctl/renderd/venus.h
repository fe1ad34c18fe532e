/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The server of Venus: virglrenderer executes a guest's Vulkan in a process of its own for each
 * context.
 */
#ifndef RENDERD_VENUS_H
#define RENDERD_VENUS_H

#include <stdbool.h>
#include <stdint.h>

#include "processes.h"

#define VENUS_SERVER	"/usr/libexec/virgl_render_server"

/**
 * venus_start() - start the server
 * @ps: result
 * @sandbox: give up what it does not need
 * @memory: with @sandbox: bytes that each context may allocate for itself
 *
 * The server ends with this process.
 *
 * Return: a socket to it for virglrenderer; a negative errno after a message on standard error.
 */
int venus_start(struct processes *ps, bool sandbox, uint64_t memory);

#endif /* RENDERD_VENUS_H */
