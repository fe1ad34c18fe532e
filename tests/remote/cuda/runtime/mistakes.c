// SPDX-License-Identifier: GPL-2.0-only
/* Mistakes, and the last error; then a fault, of which later calls tell. */
#include "common.h"

cudaError_t cudaMallocManaged(void **p, size_t size, unsigned int flags);

static void say(const char *what, cudaError_t error)
{
	cudaError_t peeked = cudaPeekAtLastError(), last = cudaGetLastError();

	printf("%s: %u %s, %s\n", what, (unsigned int)error, cudaGetErrorName(error),
	       cudaGetErrorString(error));
	/* Each error is the last one, until it has been asked for. */
	check(error == peeked && error == last && !cudaGetLastError(), what);
}

#define SAY(call)	say(#call, call)

/* Kernels beside managed variables do not run, and the host's pointer can be read. */
static void managed(void **args)
{
	static char kernel;
	static int *variable;
	void **other = __cudaRegisterFatBinary((void *)(uintptr_t)&wrapper);

	__cudaRegisterFunction(other, &kernel, &kernel, "step", -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterManagedVar(other, (void **)&variable, (char *)&variable, "total", 0, 64, 0,
				 0);
	CHECK(__cudaInitModule(other) && cudaGetLastError() == cudaErrorNotSupported);
	CHECK(variable && !variable[15]);
	SAY(cudaLaunchKernel(&kernel, dim(1, 1, 1), dim(1, 1, 1), args, 0, NULL));
	__cudaUnregisterFatBinary(other);
}

int main(void)
{
	struct cudaDeviceProp prop;
	char bytes[64] = "";
	unsigned int n = 1;
	cudaStream_t stream;
	cudaEvent_t event;
	cudaKernel_t kernel;
	size_t size, shared;
	dim3 a, b;
	void *p, *q;
	void *args[] = { &p, &n };
	float ms;
	int value;

	SAY(cudaSetDevice(-1));
	SAY(cudaSetDevice(1));
	SAY(cudaGetDeviceCount(NULL));
	SAY(cudaGetDeviceProperties(&prop, 3));
	SAY(cudaDeviceGetAttribute(&value, cudaDevAttrMaxBlockDimX, 64));
	SAY(cudaMalloc(NULL, 8));
	SAY(cudaMalloc(&p, (size_t)1 << 40));
	CU(cudaMalloc(&p, 64));
	SAY(cudaMemcpy(p, bytes, 65, cudaMemcpyHostToDevice));
	SAY(cudaMemcpy(p, NULL, 8, cudaMemcpyHostToDevice));
	SAY(cudaMemcpy(NULL, bytes, 8, cudaMemcpyHostToHost));
	SAY(cudaMemcpy(p, bytes, 8, (enum cudaMemcpyKind)5));
	SAY(cudaMemcpy(bytes, bytes, 8, cudaMemcpyDeviceToHost));
	SAY(cudaMemcpy2D(p, 4, bytes, 8, 8, 2, cudaMemcpyHostToDevice));
	SAY(cudaMemset(p, 0, 65));
	SAY(cudaMemset2D(p, 4, 0, 8, 2));
	SAY(cudaFree((char *)p + 8));
	SAY(cudaFree(bytes));
	SAY(cudaFreeHost(bytes));
	SAY(cudaHostUnregister(bytes));
	SAY(cudaMallocManaged(&q, 64, 1));
	SAY(cudaMemcpyToSymbol(factors, bytes, 33, 0, cudaMemcpyHostToDevice));
	SAY(cudaMemcpyToSymbol(factors, bytes, 8, 25, cudaMemcpyHostToDevice));
	SAY(cudaMemcpyToSymbol(factors, bytes, 8, (size_t)-4, cudaMemcpyHostToDevice));
	SAY(cudaMemcpyToSymbol(factors, bytes, 8, 0, cudaMemcpyDeviceToHost));
	SAY(cudaMemcpyToSymbol(bytes, bytes, 8, 0, cudaMemcpyHostToDevice));
	SAY(cudaMemcpyToSymbol(&step, bytes, 8, 0, cudaMemcpyHostToDevice));
	SAY(cudaGetSymbolSize(&size, bytes));
	SAY(cudaLaunchKernel(bytes, dim(1, 1, 1), dim(1, 1, 1), args, 0, NULL));
	SAY(cudaLaunchKernel(NULL, dim(1, 1, 1), dim(1, 1, 1), args, 0, NULL));
	SAY(cudaLaunchKernel(total, dim(1, 1, 1), dim(1, 1, 1), args, 0, NULL));
	SAY(cudaLaunchKernel(&lost, dim(1, 1, 1), dim(1, 1, 1), args, 0, NULL));
	SAY(cudaLaunchKernel(&step, dim(0, 1, 1), dim(1, 1, 1), args, 0, NULL));
	SAY(cudaLaunchKernel(&step, dim(1, 1, 1), dim(2048, 1, 1), args, 0, NULL));
	SAY(cudaLaunchKernel(&step, dim(1, 1, 1), dim(32, 32, 2), args, 0, NULL));
	SAY(cudaLaunchKernel(&step, dim(1, 1, 1), dim(1, 1, 1), NULL, 0, NULL));
	SAY(cudaLaunchKernel(&step, dim(1, 1, 1), dim(1, 1, 1), args, (size_t)1 << 32, NULL));
	SAY(cudaLaunchKernelExC(NULL, &step, args));
	SAY(__cudaGetKernel(&kernel, bytes));
	SAY(__cudaLaunchKernel(kernel, dim(1, 1, 1), dim(1, 1, 1), args, 0, NULL));
	SAY(__cudaPopCallConfiguration(&a, &b, &shared, &stream));
	for (int i = 0; i < 16; i++)
		CU(__cudaPushCallConfiguration(dim(1, 1, 1), dim(1, 1, 1), 0, NULL));
	SAY(__cudaPushCallConfiguration(dim(1, 1, 1), dim(1, 1, 1), 0, NULL));
	SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, &step, 0, 0));
	SAY(cudaFuncGetAttributes(NULL, &step));
	SAY(cudaStreamCreateWithFlags(&stream, 99));
	SAY(cudaStreamCreate(NULL));
	SAY(cudaStreamGetFlags(NULL, NULL));
	SAY(cudaEventCreate(NULL));
	SAY(cudaMemGetInfo(NULL, &size));
	SAY(cudaDeviceGetAttribute(NULL, cudaDevAttrMaxBlockDimX, 0));
	SAY(cudaDeviceGetPCIBusId(bytes, 0, 0));
	SAY(cudaDeviceGetLimit(NULL, cudaLimitStackSize));
	SAY(cudaFuncGetParamInfo(&step, 7, &size, NULL));
	SAY(cudaFuncGetParamInfo(&step, 0, NULL, NULL));
	SAY(cudaMallocPitch(&q, NULL, 8, 8));
	SAY(cudaMemcpy3D(NULL));
	SAY(cudaStreamDestroy(NULL));
	SAY(cudaEventRecord(NULL, NULL));
	CU(cudaEventCreate(&event));
	SAY(cudaEventElapsedTime(&ms, event, event));
	SAY(cudaDeviceSynchronize());
	printf("%s, %s\n", cudaGetErrorName(12345), cudaGetErrorString(12345));
	managed(args);
	/* The last error stays while calls succeed. */
	CHECK(cudaSetDevice(9) == cudaErrorInvalidDevice);
	CU(cudaMemset(p, 0, 8));
	CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
	/* Kernels of an unregistered fat binary are not there any more. */
	__cudaUnregisterFatBinary(fat);
	SAY(cudaLaunchKernel(&step, dim(1, 1, 1), dim(1, 1, 1), args, 0, NULL));
	__cudaRegisterFunction(fat, &step, &step, "step", -1, NULL, NULL, NULL, NULL, NULL);
	SAY(cudaLaunchKernel(&step, dim(1, 1, 1), dim(1, 1, 1), args, 0, NULL));
	enlist();
	SAY(cudaLaunchKernel(&step, dim(1, 1, 1), dim(1, 1, 1), args, 0, NULL));
	CU(cudaLaunchKernel(&fault, dim(1, 1, 1), dim(1, 1, 1), args, 0, NULL));
	SAY(cudaDeviceSynchronize());
	SAY(cudaDeviceSynchronize());
	SAY(cudaMemcpy(bytes, p, 64, cudaMemcpyDeviceToHost));
	return 0;
}
