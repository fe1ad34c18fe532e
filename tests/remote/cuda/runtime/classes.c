// SPDX-License-Identifier: GPL-2.0-only
/* The loops of classes.h, with launches as nvcc's host code makes them. */
#include "common.h"

#define LAUNCH(kernel, grid, block, stream, ...)					\
	(__cudaPushCallConfiguration(dim(grid, 1, 1), dim(block, 1, 1), 0, stream) ?	\
	 (void)0 : launch_##kernel(__VA_ARGS__))

/* The functions that nvcc makes for a kernel. */
static __attribute__((noinline)) void launch(const void *kernel, void **args)
{
	cudaStream_t stream;
	dim3 grid, block;
	size_t shared;

	if (!__cudaPopCallConfiguration(&grid, &block, &shared, &stream))
		cudaLaunchKernel(kernel, grid, block, args, shared, stream);
}

static __attribute__((noinline)) void launch_step(unsigned int *p, unsigned int i)
{
	void *args[] = { &p, &i };

	launch(&step, args);
}

static __attribute__((noinline)) void launch_fault(unsigned int *p)
{
	void *args[] = { &p };

	launch(&fault, args);
}

#include "classes.h"

int main(void)
{
	execute();
	return 0;
}
