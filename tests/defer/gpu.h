/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations for the loops: OpenCL's from its header, and CUDA's driver API as far as they
 * call it, since its header need not be there.
 */
#ifndef TESTS_DEFER_GPU_H
#define TESTS_DEFER_GPU_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;
typedef struct CUfunc_st *CUfunction;
typedef struct CUmod_st *CUmodule;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;

#define CUDA_SUCCESS 0
#define CUDA_ERROR_NOT_READY 600

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
			unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			CUstream stream, void **params, void **extra);
CUresult cuModuleGetFunction(CUfunction *f, CUmodule module, const char *name);
CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t size);
CUresult cuMemFree_v2(CUdeviceptr p);
CUresult cuMemsetD8_v2(CUdeviceptr p, unsigned char value, size_t n);
CUresult cuMemsetD32_v2(CUdeviceptr p, unsigned int value, size_t n);
CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char value, size_t n, CUstream stream);
CUresult cuMemsetD32Async(CUdeviceptr p, unsigned int value, size_t n, CUstream stream);
CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t n);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream stream);
CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t n);
CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n, CUstream stream);
CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t n);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream);
CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuEventCreate(CUevent *event, unsigned int flags);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult cuCtxSynchronize(void);

/* Functions that the programs do not have. */
void elsewhere(int x);
void progress(int percent);

#endif /* TESTS_DEFER_GPU_H */
