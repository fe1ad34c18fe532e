/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The front end of CUDA's driver API: libcuda.so.1 of the program.  The calls that the description
 * cannot express are in front.c, memory.c and launch.c.
 */
#ifndef REMOTE_CUDA_FRONT_H
#define REMOTE_CUDA_FRONT_H

#include "client.h"
#include "cuda_api.h"
#include "cuda_gen.h"

extern const struct remote_api cuda_front;

/* A function that the library has, for cuGetProcAddress(); the last one has no name. */
struct cuda_symbol {
	const char *name;
	void *address;
};

extern const struct cuda_symbol cuda_symbols[];

/* ---- for what is generated ---- */

/* Return whether cuInit() has succeeded. */
bool cuda_ready(void);

/* Return the thread's current context, or NULL. */
struct object *cuda_current(void);

/* Return the stream that a special value names. */
void *cuda_named(void *stream);

/* Return whether @len bytes from @start on are device memory of the program; none are. */
bool cuda_has(CUdeviceptr start, uint64_t len);

/* Where rows of the program's memory are; false if the pitch is too small. */
bool cuda_rows(size_t pitch, size_t width, size_t height, struct shape *shape);

void cuda_gone(struct object *o);

/* ---- between the files ---- */

/* Device memory goes with its context or module. */
void cuda_forget_memory(const struct object *owner);

/* Note device memory that the server has named. */
CUresult cuda_keep_memory(CUdeviceptr start, uint64_t len, struct object *owner, bool fixed);

#endif /* REMOTE_CUDA_FRONT_H */
