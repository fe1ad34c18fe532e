/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Model of a GPU: the time that it would take for what an engine has executed.  Pure:
 * builds in user space too.
 */
#ifndef MGPU_MODEL_H
#define MGPU_MODEL_H

#include "pure.h"
#include "gpu_work.h"

/**
 * struct mgpu_model - description of a GPU
 * @fill: pixels that it writes in a microsecond (megapixels per second)
 * @upload: bytes that it reads from guest memory in a microsecond (MB/s)
 * @command: nanoseconds that each command takes in addition
 * @inst: work units of compute jobs that all engines together execute in a microsecond
 * @memory: bytes that all engines together move to or from its memory in a microsecond
 * @slowdown: factor for all times
 *
 * Ranges: 1 to MGPU_MODEL_MAX; @command from 0, @slowdown to MGPU_MODEL_SLOWDOWN_MAX.
 */
struct mgpu_model {
	u32 fill;
	u32 upload;
	u32 command;
	u32 inst;
	u32 memory;
	u32 slowdown;
};

#define MGPU_MODEL_MAX		1000000000U
#define MGPU_MODEL_SLOWDOWN_MAX	100000U

/* The most users of the memory beside one engine. */
#define MGPU_MODEL_USERS	63

const char *mgpu_model_parse(const char *text, struct mgpu_model *m);
int mgpu_model_print(const struct mgpu_model *m, char *buf, size_t size);
u32 mgpu_model_share(const struct mgpu_model *m, const u32 *use, u32 nr);
u64 mgpu_model_cost(const struct mgpu_model *m, const struct mgpu_gpu_work *w,
		    u32 engines, u32 share, u32 *use);

#endif /* MGPU_MODEL_H */
