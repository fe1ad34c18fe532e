/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The server of CUDA's driver API.  The calls that the description cannot express are all here:
 * those that change what memory the application has, and those with parameters of kernels.
 */
#ifndef REMOTE_CUDA_BACK_H
#define REMOTE_CUDA_BACK_H

#include "cuda_api.h"
#include "cuda_gen.h"
#include "server.h"

#define CUDA_DEVICES	64u

/**
 * struct cuda - what the server of an application has: struct server's native
 * @calls: the library's functions, first
 * @current: context that is current, or NULL if that is not known
 * @primary: by device the primary context that the application has, or NULL: it is not destroyed
 *	but given up
 * @memory: the application's device memory
 */
struct cuda {
	struct cuda_calls calls;
	CUcontext current;
	CUcontext primary[CUDA_DEVICES];
	struct cuda_ranges memory;
};

void *cuda_open(void *library);

/* ---- for what is generated ---- */

/* Make a context current. Return 0 or an error. */
int32_t cuda_enter(struct server *s, struct served *context);
/* Return whether @len bytes from @start on are the application's; none are. */
bool cuda_holds(struct server *s, CUdeviceptr start, uint64_t len);

void cuda_release(struct server *s, struct served *o);
void *cuda_failed(struct server *s, uint32_t kind, struct served *target, int32_t error);
int32_t cuda_finished(struct server *s, void *event);
void cuda_forget(struct server *s, void *event);

/* ---- by hand: lengths are those of the reply's parts ---- */

int32_t back_cuDevicePrimaryCtxRetain(struct server *s, struct request *q, CUcontext *made,
				      CUdevice dev);
int32_t back_cuCtxCreate_v2(struct server *s, struct request *q, CUcontext *made,
			    unsigned int flags, CUdevice dev);
int32_t back_cuModuleGetGlobal_v2(struct server *s, struct request *q, uint64_t len_dptr,
				  uint64_t len_bytes, CUmodule module, const char *name);
int32_t back_cuLibraryGetGlobal(struct server *s, struct request *q, uint64_t len_dptr,
				uint64_t len_bytes, CUlibrary library, const char *name);
int32_t back_cuMemAlloc_v2(struct server *s, struct request *q, uint64_t len_dptr, size_t bytes);
int32_t back_cuMemAllocPitch_v2(struct server *s, struct request *q, uint64_t len_dptr,
				uint64_t len_pitch, size_t width, size_t height,
				unsigned int element);
int32_t back_cuMemFree_v2(struct server *s, struct request *q, CUdeviceptr dptr);
int32_t back_cuMemcpyDtoHAsync_v2(struct server *s, struct request *q, uint64_t len,
				  CUdeviceptr src, size_t bytes, CUstream stream);
int32_t back_remoteModuleLoad(struct server *s, struct request *q, CUmodule *made, size_t size,
			      const void *image, unsigned int nr, const CUjit_option *options,
			      const size_t *values);
int32_t back_remoteLibraryLoad(struct server *s, struct request *q, CUlibrary *made, size_t size,
			       const void *code, unsigned int nr, const CUjit_option *options,
			       const size_t *values);
int32_t back_remoteFuncParams(struct server *s, struct request *q, CUfunction f, uint64_t len_nr,
			      uint64_t len_layout);
int32_t back_remoteLaunch(struct server *s, struct request *q, CUfunction f, unsigned int grid_x,
			  unsigned int grid_y, unsigned int grid_z, unsigned int block_x,
			  unsigned int block_y, unsigned int block_z, unsigned int shared,
			  CUstream stream, unsigned int cooperative, size_t size,
			  const void *params);
int32_t back_remoteCopyToDevice(struct server *s, struct request *q, CUdeviceptr dst, size_t pitch,
				size_t width, size_t height, const void *data, size_t host_pitch,
				unsigned int async, CUstream stream);
int32_t back_remoteCopyToHost(struct server *s, struct request *q, uint64_t len, CUdeviceptr src,
			      size_t pitch, size_t width, size_t height, size_t host_pitch,
			      unsigned int async, CUstream stream);
int32_t back_remoteCopyOnDevice(struct server *s, struct request *q, CUdeviceptr dst,
				size_t dst_pitch, CUdeviceptr src, size_t src_pitch, size_t width,
				size_t height, unsigned int async, CUstream stream);

#endif /* REMOTE_CUDA_BACK_H */
