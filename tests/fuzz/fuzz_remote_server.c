// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz the server of remoted OpenCL with requests.  The input is a sequence of requests: function,
 * flags, number of words, then as many words of arguments; with an odd first byte it is what comes
 * through the socket.  The library is played, and reads all memory that it is handed.
 */
#include "fuzz_remote.h"
#include "play.h"

atomic_int played_objects;

static atomic_uint calls;
static unsigned int fails;

int32_t played_status(const char *function)
{
	(void)function;
	return ++calls % 8 == fails ? CL_OUT_OF_RESOURCES : 0;
}

static atomic_bool slept;	/* the server waits for commands to end, which they do then */

int __wrap_usleep(useconds_t us);

int __wrap_usleep(useconds_t us)
{
	(void)us;
	slept = true;
	return 0;
}

int32_t played_done(void)
{
	return slept || calls % 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct remote_hello hello = {
		.magic = REMOTE_MAGIC, .version = REMOTE_VERSION,
		.api = OPENCL_NUMBER, .digest = OPENCL_DIGEST,
	};
	static struct opencl_calls library;

	if (size < 2)
		return 0;
	played_library(&library);
	calls = 0;
	slept = false;
	/* 8 is no remainder. */
	fails = data[1] % 9;
	fuzz_serve(&opencl_server, &library, &hello, data[0] & 1, data + 2, size - 2);
	FUZZ_ASSERT(!played_objects);
	return 0;
}

/* ---- seeds: what the front end sends ---- */

/* The two words of a header in a group: length, and number and function. */
#define HEAD_LEN(words)		(8 * (words))
#define HEAD_CALL(function)	(1 | (uint64_t)CALL_##function << 32)

#define NONE	REMOTE_NULL
#define P	REMOTE_ROOT		/* the platform */
#define D	(REMOTE_ROOT | 1)	/* the device */
#define TEXT	0x00656d616e6c65ull	/* "lename" */

static void seeds(const char *dir)
{
	size_t before;

	seed[0] = 0;
	seed[1] = 8;
	seed_len = 2;
	REQUEST(clGetPlatformIDs, 1, 1, 1, 1);
	REQUEST(clGetDeviceIDs, 1, P, CL_DEVICE_TYPE_ALL, 1, 1, 1);
	REQUEST(clGetDeviceInfo, 1, D, CL_DEVICE_PLATFORM);
	REQUEST(clGetDeviceInfo, 1, D, CL_DEVICE_NAME);
	request(0xff, 0, (const uint64_t[]){ 3, 1, 0, 0, 2, 0 }, LEDGER_REPORTED);
	fuzz_seed(dir, "questions", seed, seed_len);
	REQUEST(clCreateContext, 1, 1, 24, CL_CONTEXT_PLATFORM, P, 0, 8, D, 1);
	REQUEST(clCreateCommandQueue, 1, 1, D, 0, 2);
	REQUEST(clCreateCommandQueueWithProperties, 0, 1, D, 24, CL_QUEUE_PROPERTIES, 1, 0, 3);
	REQUEST(clCreateBuffer, 0, 1, CL_MEM_COPY_HOST_PTR, 8, 8, 42, 4);
	REQUEST(clCreateBuffer, 0, 1, 0, 64, NONE, 5);
	REQUEST(clCreateSubBuffer, 0, 5, 0, CL_BUFFER_CREATE_TYPE_REGION, 16, 8, 16, 6);
	fuzz_seed(dir, "objects", seed, seed_len);
	REQUEST(clCreateProgramWithSource, 1, 1, 1, 8, TEXT, 7);
	REQUEST(clCreateProgramWithBinary, 1, 1, 1, 8, D, 8, TEXT, 1, 8);
	REQUEST(clBuildProgram, 1, 7, 1, 8, D, NONE);
	REQUEST(clCreateKernel, 0, 7, 7, TEXT, 9);
	REQUEST(remoteGetProgramBinary, 1, 7, 0, 4, 1);
	REQUEST(clGetKernelInfo, 1, 9, CL_KERNEL_FUNCTION_NAME);
	REQUEST(clSetKernelArg, 0, 9, 0, 4, 4, 7);
	REQUEST(remoteSetKernelArgMem, 0, 9, 0, 0, 5);
	REQUEST(clEnqueueNDRangeKernel, 0, 2, 9, 1, 0, NONE, 8, 64, NONE, NONE, 10);
	REQUEST(clEnqueueNDRangeKernel, 0, 2, 9, 2, 1, 16, 0, 0, 16, 64, 1, 16, 8, 1, 8, 10, 11);
	REQUEST(clFinish, 1, 2);
	REQUEST(clFinish, 3, 2);
	fuzz_seed(dir, "kernels", seed, seed_len);
	before = seed_len;
	/* An argument and a launch; objects that are made and released. */
	REQUEST(remoteGroup, 0, 5, 152, 3, 152,
		HEAD_LEN(5), HEAD_CALL(clSetKernelArg), 9, 0, 4, 4, 7,
		HEAD_LEN(10), HEAD_CALL(clEnqueueNDRangeKernel), 2, 9, 1, 0, NONE, 8, 64, NONE,
		NONE, 0, 48, 1, 2, 6, 3, 8, 2);
	REQUEST(remoteGroup, 0, 30, 72, 3, 72, HEAD_LEN(2), HEAD_CALL(clCreateUserEvent), 1, 100,
		HEAD_LEN(1), HEAD_CALL(clReleaseEvent), 100,
		HEAD_LEN(0), HEAD_CALL(clReleaseEvent), 48, 3, 1, 6, 1, 7, 0);
	REQUEST(remoteGroup, 0, 30, 56, 2, 56, HEAD_LEN(2), HEAD_CALL(clCreateUserEvent), 1, 200,
		HEAD_LEN(1), HEAD_CALL(clReleaseEvent), 200, 32, 3, 1, 6, 1);
	fuzz_seed(dir, "groups", seed, seed_len);
	seed_len = before;
	REQUEST(clEnqueueWriteBuffer, 0, 2, 5, 0, 8, 8, 0, 8, 42, NONE, 12);
	REQUEST(clEnqueueReadBuffer, 0, 2, 5, 0, 0, 64, 0, 1, NONE, 13);
	REQUEST(clEnqueueReadBuffer, 1, 2, 5, 1, 0, 64, 1, 1, 8, 13, 0);
	REQUEST(clEnqueueReadBuffer, 3, 2, 5, 1, 0, 64, 0, 1, NONE, 0);
	REQUEST(clEnqueueReadBufferRect, 1, 2, 5, 1, 8, 0, 8, 0, 0, 24, 0, 1, 0, 24, 0, 0, 0, 24, 4,
		2, 1, 1, NONE, 0);
	REQUEST(clEnqueueFillBuffer, 0, 2, 5, 4, 0, 64, 0, 4, 1, NONE, 0);
	REQUEST(clEnqueueCopyBuffer, 0, 2, 4, 5, 0, 8, 8, 0, NONE, 0);
	REQUEST(clWaitForEvents, 1, 1, 8, 12);
	REQUEST(clWaitForEvents, 3, 2, 16, 12, 13);
	fuzz_seed(dir, "transfers", seed, seed_len);
	REQUEST(clEnqueueWriteBuffer, 0, 2, 5, 0, 8, 8, 0, REMOTE_SHARED | (SHARED - 8), NONE, 20);
	REQUEST(clEnqueueReadBuffer, 0, 2, 5, 0, 0, 64, 0, REMOTE_SHARED, NONE, 21);
	request(0xfe, 1, (const uint64_t[]){ 0 }, 0);
	REQUEST(clEnqueueReadBuffer, 1, 2, 5, 1, 0, 64, 0, REMOTE_SHARED | 8, NONE, 0);
	fuzz_seed(dir, "shared", seed, seed_len);
	REQUEST(clCreateImage, 0, 1, 0, 8, CL_RGBA | (uint64_t)CL_UNSIGNED_INT8 << 32, 72,
		CL_MEM_OBJECT_IMAGE2D, 8, 4, 0, 0, 0, 0, 0, 0, NONE, 14);
	REQUEST(clEnqueueReadImage, 1, 2, 14, 1, 0, 0, 0, 24, 0, 0, 0, 24, 2, 2, 1, 1, NONE, 0);
	REQUEST(clEnqueueWriteImage, 0, 2, 14, 0, 0, 0, 0, 24, 0, 0, 0, 24, 2, 1, 1, 8, 42, NONE,
		0);
	REQUEST(clCreateSampler, 0, 1, 1, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, 15);
	REQUEST(remoteSetKernelArgSampler, 0, 9, 1, 15);
	REQUEST(clCreateUserEvent, 0, 1, 16);
	REQUEST(clSetUserEventStatus, 1, 16, 0);
	REQUEST(clReleaseEvent, 0, 16);
	REQUEST(clReleaseMemObject, 0, 5);
	REQUEST(clReleaseContext, 0, 1);
	fuzz_seed(dir, "images", seed, seed_len);
}

FUZZ_SEEDS(seeds)
