/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MGPU_GPU_WORK_H
#define MGPU_GPU_WORK_H

#include "pure.h"

/**
 * struct mgpu_gpu_work - what tiles of a job would have a GPU do
 * @commands: number of commands
 * @pixels: number of pixels that are written
 * @upload: bytes that are read from guest memory into a resource
 * @inst: work units of compute jobs, see Documentation/compute.rst
 * @traffic: bytes that are moved to or from the GPU's memory
 */
struct mgpu_gpu_work {
	u64 commands;
	u64 pixels;
	u64 upload;
	u64 inst;
	u64 traffic;
};

#endif /* MGPU_GPU_WORK_H */
