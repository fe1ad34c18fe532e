// SPDX-License-Identifier: GPL-2.0-only
/* Mistakes, whose errors the calls themselves return; then a fault, of which later calls tell. */
#include "common.h"

static void say(const char *what, CUresult status)
{
	const char *name = "?", *text = "?";

	cuGetErrorName(status, &name);
	cuGetErrorString(status, &text);
	printf("%s: %u %s, %s\n", what, (unsigned int)status, name, text);
}

#define SAY(call)	say(#call, call)

int main(void)
{
	CUdeviceptr p, q;
	CUfunction f, step;
	CUmodule m;
	CUstream stream;
	CUevent event;
	CUcontext none;
	char bytes[64] = "";
	const char *name;
	float ms;
	int count;
	uint32_t n = 1;
	void *params[] = { &p, &n };

	SAY(cuDeviceGetCount(&count));
	SAY(cuInit(1));
	CU(cuInit(0));
	SAY(cuDeviceGet(&device, 7));
	SAY(cuMemAlloc_v2(&p, 64));
	SAY(cuCtxPopCurrent_v2(&none));
	cuda_begin(ptx);
	SAY(cuModuleLoadData(&m, "\x01\x02\x03\x04"));
	SAY(cuModuleGetFunction(&f, module, "no_such_kernel"));
	SAY(cuModuleGetGlobal_v2(&q, NULL, module, "no_such_variable"));
	SAY(cuMemAlloc_v2(&p, 0));
	SAY(cuMemAlloc_v2(&p, 1ull << 40));
	CU(cuMemAlloc_v2(&p, 64));
	SAY(cuMemcpyHtoD_v2(p, bytes, 65));
	SAY(cuMemcpyHtoD_v2(p + 1, bytes, 64));
	SAY(cuMemcpyHtoD_v2(p, NULL, 8));
	SAY(cuMemcpyDtoH_v2(bytes, p - 8, 16));
	SAY(cuMemcpyDtoH_v2(bytes, 0, 16));
	SAY(cuMemsetD32_v2(p + 2, 1, 1));
	SAY(cuMemsetD32_v2(p, 1, 17));
	SAY(cuMemsetD8_v2(p, 1, SIZE_MAX));
	SAY(cuMemFree_v2(p + 8));
	SAY(cuMemFree_v2(0));
	step = cuda_kernel("step");
	SAY(cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	SAY(cuLaunchKernel(step, 1, 1, 1, 2048, 1, 1, 0, NULL, params, NULL));
	SAY(cuLaunchKernel(step, 0, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	SAY(cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	SAY(cuStreamCreate(&stream, 99));
	SAY(cuStreamDestroy_v2(NULL));
	SAY(cuStreamSynchronize((CUstream)context));
	SAY(cuEventRecord((CUevent)context, NULL));
	CU(cuEventCreate(&event, 0));
	SAY(cuEventElapsedTime(&ms, event, event));
	CU(cuEventDestroy_v2(event));
	SAY(cuCtxSetCurrent((CUcontext)module));
	SAY(cuGetErrorName(123456, &name));
	CU(cuLaunchKernel(step, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	SAY(cuCtxSynchronize());
	CU(cuLaunchKernel(cuda_kernel("fault"), 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	SAY(cuCtxSynchronize());
	SAY(cuCtxSynchronize());
	SAY(cuMemcpyDtoH_v2(bytes, p, 64));
	return 0;
}
