/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Types and constants of CUDA's driver API, as far as the described calls need them, and what the
 * front end, the server and the tests' library share.  A program that includes NVIDIA's cuda.h
 * before has those instead.
 */
#ifndef REMOTE_CUDA_API_H
#define REMOTE_CUDA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CUDA_NUMBER	2

typedef unsigned char uchar;
typedef unsigned int uint;
typedef unsigned short ushort;

#ifndef CUDA_VERSION

typedef unsigned int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef uint64_t cuuint64_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUarray_st *CUarray;
typedef struct CUctxCreateParams_st CUctxCreateParams;
typedef unsigned int CUdevice_attribute;
typedef unsigned int CUfunction_attribute;
typedef unsigned int CUfunc_cache;
typedef unsigned int CUlimit;
typedef unsigned int CUmoduleLoadingMode;
typedef unsigned int CUjit_option;
typedef unsigned int CUlibraryOption;
typedef unsigned int CUpointer_attribute;
typedef unsigned int CUmemorytype;
typedef unsigned int CUlaunchAttributeID;
typedef unsigned int CUdriverProcAddressQueryResult;

typedef struct CUuuid_st {
	char bytes[16];
} CUuuid;

typedef struct CUDA_MEMCPY2D_st {
	size_t srcXInBytes;
	size_t srcY;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	size_t srcPitch;
	size_t dstXInBytes;
	size_t dstY;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	size_t dstPitch;
	size_t WidthInBytes;
	size_t Height;
} CUDA_MEMCPY2D;

typedef struct CUlaunchAttribute_st {
	CUlaunchAttributeID id;
	char pad[4];
	union {
		char pad[64];
		int cooperative;
	} value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig_st {
	unsigned int gridDimX;
	unsigned int gridDimY;
	unsigned int gridDimZ;
	unsigned int blockDimX;
	unsigned int blockDimY;
	unsigned int blockDimZ;
	unsigned int sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned int numAttrs;
} CUlaunchConfig;

enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_IMAGE = 200,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
	CUDA_ERROR_FILE_NOT_FOUND = 301,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
	CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
	CUDA_ERROR_LAUNCH_FAILED = 719,
	CUDA_ERROR_NOT_SUPPORTED = 801,
};

enum {
	CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
	CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
	CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
	CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
	CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
	CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 88,
	CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 89,
	CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91,
	CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH = 96,
	CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES = 100,
	CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST = 101,
	CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED = 102,
	CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED = 103,
	CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
	CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED = 116,
};

enum {
	CU_MEMORYTYPE_HOST = 1,
	CU_MEMORYTYPE_DEVICE = 2,
	CU_POINTER_ATTRIBUTE_CONTEXT = 1,
	CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
	CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
	CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
	CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
	CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
	CU_MEMHOSTALLOC_DEVICEMAP = 2,
	CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
	CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2,
	CU_GET_PROC_ADDRESS_SUCCESS = 0,
	CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
	CU_JIT_MAX_REGISTERS = 0,
	CU_JIT_INFO_LOG_BUFFER = 3,
	CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
	CU_JIT_ERROR_LOG_BUFFER = 5,
	CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
	CU_JIT_OPTIMIZATION_LEVEL = 7,
	CU_JIT_TARGET = 9,
	CU_JIT_FALLBACK_STRATEGY = 10,
	CU_JIT_GENERATE_DEBUG_INFO = 11,
	CU_JIT_LOG_VERBOSE = 12,
	CU_JIT_GENERATE_LINE_INFO = 13,
	CU_JIT_CACHE_MODE = 14,
};

#define CU_LAUNCH_PARAM_END		((void *)0x00)
#define CU_LAUNCH_PARAM_BUFFER_POINTER	((void *)0x01)
#define CU_LAUNCH_PARAM_BUFFER_SIZE	((void *)0x02)
#define CU_STREAM_LEGACY		((CUstream)0x1)
#define CU_STREAM_PER_THREAD		((CUstream)0x2)

#endif /* CUDA_VERSION */

#define CUDA_PARAM_BYTES	32764u	/* the most that a kernel's parameters have */
#define CUDA_PARAMS		1024u	/* and that the server tells of */

/**
 * struct cuda_param - a kernel's parameter
 * @offset: bytes before it
 * @size: its bytes
 */
struct cuda_param {
	uint32_t offset;
	uint32_t size;
};

/* Return the name of an error and its text, or NULL. */
const char *cuda_error_name(CUresult error);
const char *cuda_error_text(CUresult error);

/**
 * cuda_image_len() - find out how long an image of code is
 * @image: PTX, a cubin or a fat binary
 * @max: bytes that may be read
 *
 * Return: the bytes, of PTX with its NUL; 0 if it is none of these; more than @max if it does not
 * end there.
 */
uint64_t cuda_image_len(const void *image, uint64_t max);

/* Return the image that nvcc's wrapper of a fat binary points to, or the image itself. */
const void *cuda_image_unwrap(const void *image);

/**
 * cuda_image_kernels() - find the kernels of an image
 * @image: PTX, a cubin, or a fat binary that has one of them uncompressed
 * @len: its bytes, of cuda_image_len()
 * @found: called for each kernel, whose name ends with a NUL; it returns false to end
 * @arg: for @found
 *
 * Return: whether the image was understood, up to the end that @found asked for.
 */
bool cuda_image_kernels(const void *image, uint64_t len,
			bool (*found)(void *arg, const char *name, const struct cuda_param *params,
				      unsigned int nr), void *arg);

/* Return whether options for a load are all numbers, which point to nothing. */
bool cuda_options_plain(unsigned int nr, const CUjit_option *options);

/* Bytes from the first to the last one of a rectangle; 0 if it is empty. */
uint64_t cuda_plane(uint64_t pitch, uint64_t width, uint64_t height);

/**
 * struct cuda_range - memory that was allocated
 * @start: first address
 * @len: bytes
 * @owner: what it goes with
 * @context: context that it goes with, too; NULL if that is @owner, or is told by it
 * @fixed: it is no allocation of its own, but a variable of a module
 */
struct cuda_range {
	uint64_t start;
	uint64_t len;
	void *owner;
	const void *context;
	bool fixed;
};

/**
 * struct cuda_ranges - ranges, none of which overlap
 * @root: tree, of tsearch(3)
 * @bytes: of those that are not fixed
 */
struct cuda_ranges {
	void *root;
	uint64_t bytes;
};

/* Add a range; one that was there already stays. Return false without memory. */
bool cuda_ranges_add(struct cuda_ranges *r, const struct cuda_range *range);
/* Return the range that has all of @len bytes from @start on, or NULL. */
const struct cuda_range *cuda_ranges_find(const struct cuda_ranges *r, uint64_t start,
					  uint64_t len);
/* Remove the range that is an allocation and starts there. Return whether there was one. */
bool cuda_ranges_remove(struct cuda_ranges *r, uint64_t start);
/* Remove all ranges of an owner or context; those of all if it is NULL. */
void cuda_ranges_drop(struct cuda_ranges *r, const void *owner);

#endif /* REMOTE_CUDA_API_H */
