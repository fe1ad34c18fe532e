// SPDX-License-Identifier: GPL-2.0-only
/* Memory of all kinds, copies of all kinds, and launches with parameters of all kinds. */
#include "common.h"

#define N	1000
#define W	100
#define H	7

static float a[N], b[N], c[N];
static uint8_t rows[H * 150], back[H * 130];

static void ask(void)
{
	int count, major, minor, version, blocks, value;
	CUfunction add = cuda_kernel("add");
	unsigned int nr, flags;
	size_t total, left;
	CUdevice current;
	char name[64];

	CU(cuDriverGetVersion(&version));
	CU(cuDeviceGetCount(&count));
	CU(cuDeviceGetName(name, sizeof(name), device));
	CU(cuDeviceTotalMem_v2(&total, device));
	CU(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
	CU(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
	CU(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
	CU(cuMemGetInfo_v2(&left, &total));
	CU(cuCtxGetFlags(&flags));
	CU(cuCtxGetDevice(&current));
	CU(cuModuleGetFunctionCount(&nr, module));
	CU(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 64, 0));
	printf("version %d, %d devices, %s, %zu bytes, %d.%d, warps of %d\n", version, count, name,
	       total, major, minor, value);
	printf("%zu bytes left, flags %u, device %d, %u functions, %d blocks\n", left, flags,
	       current, nr, blocks);
}

static void rectangles(void)
{
	CUDA_MEMCPY2D copy = { 0 };
	CUdeviceptr p, q;
	size_t pitch;

	for (size_t i = 0; i < sizeof(rows); i++)
		rows[i] = (uint8_t)(i * 7);
	CU(cuMemAllocPitch_v2(&p, &pitch, W, H, 4));
	CU(cuMemsetD2D8_v2(p, pitch, 9, W, H));
	CU(cuMemsetD2D32_v2(p, pitch, 77, W / 8, H - 1));
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = rows;
	copy.srcPitch = 150;
	copy.srcXInBytes = 10;
	copy.srcY = 1;
	copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.dstDevice = p;
	copy.dstPitch = pitch;
	copy.dstXInBytes = 3;
	copy.WidthInBytes = W - 20;
	copy.Height = H - 2;
	CU(cuMemcpy2D_v2(&copy));
	q = cuda_memory(W * H);
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.srcDevice = p;
	copy.srcPitch = pitch;
	copy.dstDevice = q;
	copy.WidthInBytes = W;
	copy.Height = H;
	CU(cuMemcpy2DAsync_v2(&copy, NULL));
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.srcDevice = q;
	copy.srcPitch = W;
	copy.srcY = 1;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = back;
	copy.dstPitch = 130;
	copy.dstXInBytes = 5;
	copy.WidthInBytes = W;
	copy.Height = H - 1;
	CU(cuMemcpy2DUnaligned_v2(&copy));
	printf("rows %llx\n", sum(back, sizeof(back)));
	CU(cuMemFree_v2(q));
	CU(cuMemFree_v2(p));
}

static void parameters(CUdeviceptr p)
{
	struct {
		CUdeviceptr inner;
		uint32_t rest[4];
	} d = { p + 8, { 1, 2, 3, 4 } };
	struct __attribute__((aligned(8))) {
		uint64_t a;
		uint32_t n;
	} packed = { p, 5 };
	size_t len = sizeof(packed);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
			  &len, CU_LAUNCH_PARAM_END };
	CUlaunchConfig config = { .gridDimX = 2, .gridDimY = 3, .gridDimZ = 1, .blockDimX = 8,
				  .blockDimY = 2, .blockDimZ = 1, .sharedMemBytes = 1024 };
	uint8_t small = 7;
	uint16_t middle = 300;
	float e = 1.5f;
	void *mixed[] = { &small, &p, &middle, &d, &e };

	CU(cuLaunchKernelEx(&config, cuda_kernel("mixed"), mixed, NULL));
	CU(cuLaunchKernel(cuda_kernel("step"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	CU(cuLaunchCooperativeKernel(cuda_kernel("none"), 1, 1, 1, 32, 1, 1, 0, NULL, NULL));
	CU(cuFuncSetAttribute(cuda_kernel("add"), 8, 4096));
}

int main(void)
{
	CUdeviceptr p, q, r, total;
	size_t len;
	uint32_t n = N, words[16];
	void *params[] = { &p, &q, &r, &n };
	float *pinned;

	cuda_begin(ptx);
	ask();
	for (int i = 0; i < N; i++) {
		a[i] = (float)i;
		b[i] = (float)(2 * i);
	}
	p = cuda_memory(sizeof(a));
	q = cuda_memory(sizeof(b));
	r = cuda_memory(sizeof(c));
	CU(cuMemcpyHtoD_v2(p, a, sizeof(a)));
	CU(cuMemcpyHtoDAsync_v2(q, b, sizeof(b), NULL));
	/* The program may write to memory that was sent. */
	memset(a, 0, sizeof(a));
	cuda_launch(cuda_kernel("add"), N / 64, NULL, params);
	CU(cuMemcpyDtoD_v2(r + 400, p + 100, 400));
	CU(cuMemsetD16_v2(r + 800, 0x1234, 50));
	CU(cuMemsetD32Async(r + 1200, 0x12345678, 10, NULL));
	parameters(r);
	CU(cuMemcpyDtoH_v2(c, r, sizeof(c)));
	printf("result %llx\n", sum(c, sizeof(c)));
	CU(cuMemAllocHost_v2((void **)&pinned, sizeof(c)));
	CU(cuMemcpyDtoHAsync_v2(pinned, q, sizeof(c), NULL));
	CU(cuStreamSynchronize(NULL));
	printf("pinned %llx\n", sum(pinned, sizeof(c)));
	CU(cuMemFreeHost(pinned));
	CU(cuModuleGetGlobal_v2(&total, &len, module, "total"));
	CU(cuMemsetD32_v2(total, 3, len / 4));
	cuda_launch(cuda_kernel("step"), 1, NULL, (void *[]){ &total, &n });
	CU(cuMemcpyDtoH_v2(words, total, len));
	printf("total %zu %llx\n", len, sum(words, len));
	rectangles();
	CU(cuMemFree_v2(p));
	CU(cuMemFree_v2(q));
	CU(cuMemFree_v2(r));
	CU(cuCtxSynchronize());
	cuda_end();
	return 0;
}
