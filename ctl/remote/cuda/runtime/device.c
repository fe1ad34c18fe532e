// SPDX-License-Identifier: GPL-2.0-only
/* Properties of devices, and settings of the current one. */
#include <string.h>

#include "runtime.h"

/* ---- attributes and properties ---- */

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	cudaError_t error = rt_load();

	if (!error && !value)
		error = cudaErrorInvalidValue;
	if (!error && rt_device(device) < 0)
		error = cudaErrorInvalidDevice;
	if (!error)
		error = rt_error(cu.cuDeviceGetAttribute(value, attr, rt_device(device)));
	return rt_end(error);
}

#define PROP(name)	offsetof(struct cudaDeviceProp, name)

/* Properties that are attributes, in the order of the structure. */
static const struct {
	uint16_t at;
	uint16_t attribute;
} numbers[] = {
	{ PROP(regsPerBlock), 12 },
	{ PROP(warpSize), 10 },
	{ PROP(maxThreadsPerBlock), 1 },
	{ PROP(maxThreadsDim[0]), 2 },
	{ PROP(maxThreadsDim[1]), 3 },
	{ PROP(maxThreadsDim[2]), 4 },
	{ PROP(maxGridSize[0]), 5 },
	{ PROP(maxGridSize[1]), 6 },
	{ PROP(maxGridSize[2]), 7 },
	{ PROP(major), 75 },
	{ PROP(minor), 76 },
	{ PROP(multiProcessorCount), 16 },
	{ PROP(integrated), 18 },
	{ PROP(canMapHostMemory), 19 },
	{ PROP(maxTexture1D), 21 },
	{ PROP(maxTexture1DMipmap), 77 },
	{ PROP(maxTexture2D[0]), 22 },
	{ PROP(maxTexture2D[1]), 23 },
	{ PROP(maxTexture2DMipmap[0]), 73 },
	{ PROP(maxTexture2DMipmap[1]), 74 },
	{ PROP(maxTexture2DLinear[0]), 70 },
	{ PROP(maxTexture2DLinear[1]), 71 },
	{ PROP(maxTexture2DLinear[2]), 72 },
	{ PROP(maxTexture2DGather[0]), 45 },
	{ PROP(maxTexture2DGather[1]), 46 },
	{ PROP(maxTexture3D[0]), 24 },
	{ PROP(maxTexture3D[1]), 25 },
	{ PROP(maxTexture3D[2]), 26 },
	{ PROP(maxTexture3DAlt[0]), 47 },
	{ PROP(maxTexture3DAlt[1]), 48 },
	{ PROP(maxTexture3DAlt[2]), 49 },
	{ PROP(maxTextureCubemap), 52 },
	{ PROP(maxTexture1DLayered[0]), 42 },
	{ PROP(maxTexture1DLayered[1]), 43 },
	{ PROP(maxTexture2DLayered[0]), 27 },
	{ PROP(maxTexture2DLayered[1]), 28 },
	{ PROP(maxTexture2DLayered[2]), 29 },
	{ PROP(maxTextureCubemapLayered[0]), 53 },
	{ PROP(maxTextureCubemapLayered[1]), 54 },
	{ PROP(maxSurface1D), 55 },
	{ PROP(maxSurface2D[0]), 56 },
	{ PROP(maxSurface2D[1]), 57 },
	{ PROP(maxSurface3D[0]), 58 },
	{ PROP(maxSurface3D[1]), 59 },
	{ PROP(maxSurface3D[2]), 60 },
	{ PROP(maxSurface1DLayered[0]), 61 },
	{ PROP(maxSurface1DLayered[1]), 62 },
	{ PROP(maxSurface2DLayered[0]), 63 },
	{ PROP(maxSurface2DLayered[1]), 64 },
	{ PROP(maxSurface2DLayered[2]), 65 },
	{ PROP(maxSurfaceCubemap), 66 },
	{ PROP(maxSurfaceCubemapLayered[0]), 67 },
	{ PROP(maxSurfaceCubemapLayered[1]), 68 },
	{ PROP(concurrentKernels), 31 },
	{ PROP(ECCEnabled), 32 },
	{ PROP(pciBusID), 33 },
	{ PROP(pciDeviceID), 34 },
	{ PROP(pciDomainID), 50 },
	{ PROP(tccDriver), 35 },
	{ PROP(asyncEngineCount), 40 },
	{ PROP(unifiedAddressing), 41 },
	{ PROP(memoryBusWidth), 37 },
	{ PROP(l2CacheSize), 38 },
	{ PROP(persistingL2CacheMaxSize), 108 },
	{ PROP(maxThreadsPerMultiProcessor), 39 },
	{ PROP(streamPrioritiesSupported), 78 },
	{ PROP(globalL1CacheSupported), 79 },
	{ PROP(localL1CacheSupported), 80 },
	{ PROP(regsPerMultiprocessor), 82 },
	{ PROP(managedMemory), 83 },
	{ PROP(isMultiGpuBoard), 84 },
	{ PROP(multiGpuBoardGroupID), 85 },
	{ PROP(hostNativeAtomicSupported), 86 },
	{ PROP(pageableMemoryAccess), 88 },
	{ PROP(concurrentManagedAccess), 89 },
	{ PROP(computePreemptionSupported), 90 },
	{ PROP(canUseHostPointerForRegisteredMem), 91 },
	{ PROP(cooperativeLaunch), 95 },
	{ PROP(pageableMemoryAccessUsesHostPageTables), 100 },
	{ PROP(directManagedMemAccessFromHost), 101 },
	{ PROP(maxBlocksPerMultiProcessor), 106 },
	{ PROP(accessPolicyMaxWindowSize), 109 },
	{ PROP(hostRegisterSupported), 99 },
	{ PROP(sparseCudaArraySupported), 112 },
	{ PROP(hostRegisterReadOnlySupported), 113 },
	{ PROP(timelineSemaphoreInteropSupported), 114 },
	{ PROP(memoryPoolsSupported), 115 },
	{ PROP(gpuDirectRDMASupported), 116 },
	{ PROP(gpuDirectRDMAFlushWritesOptions), 117 },
	{ PROP(gpuDirectRDMAWritesOrdering), 118 },
	{ PROP(memoryPoolSupportedHandleTypes), 119 },
	{ PROP(deferredMappingCudaArraySupported), 121 },
	{ PROP(ipcEventSupported), 125 },
	{ PROP(clusterLaunch), 120 },
	{ PROP(unifiedFunctionPointers), 129 },
	{ PROP(deviceNumaConfig), 130 },
	{ PROP(deviceNumaId), 131 },
	{ PROP(mpsEnabled), 133 },
	{ PROP(hostNumaId), 134 },
	{ PROP(gpuPciDeviceID), 139 },
	{ PROP(gpuPciSubsystemID), 140 },
	{ PROP(hostNumaMultinodeIpcSupported), 143 },
}, sizes[] = {
	{ PROP(sharedMemPerBlock), 8 },
	{ PROP(memPitch), 11 },
	{ PROP(totalConstMem), 9 },
	{ PROP(textureAlignment), 14 },
	{ PROP(texturePitchAlignment), 51 },
	{ PROP(surfaceAlignment), 30 },
	{ PROP(sharedMemPerMultiprocessor), 81 },
	{ PROP(sharedMemPerBlockOptin), 97 },
	{ PROP(reservedSharedMemPerBlock), 111 },
};

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
	cudaError_t error = rt_load();
	CUuuid uuid;
	CUdevice dev;
	int value;

	if (error || !prop)
		return rt_end(error ? error : cudaErrorInvalidValue);
	dev = rt_device(device);
	if (dev < 0)
		return rt_end(cudaErrorInvalidDevice);
	memset(prop, 0, sizeof(*prop));
	error = rt_error(cu.cuDeviceGetName(prop->name, sizeof(prop->name), dev));
	if (!error)
		error = rt_error(cu.cuDeviceTotalMem_v2(&prop->totalGlobalMem, dev));
	if (!cu.cuDeviceGetUuid_v2(&uuid, dev))
		memcpy(prop->uuid.bytes, uuid.bytes, sizeof(uuid.bytes));
	/* An older driver does not know all attributes. */
	for (size_t i = 0; !error && i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!cu.cuDeviceGetAttribute(&value, numbers[i].attribute, dev))
			*(int *)((char *)prop + numbers[i].at) = value;
	for (size_t i = 0; !error && i < sizeof(sizes) / sizeof(*sizes); i++)
		if (!cu.cuDeviceGetAttribute(&value, sizes[i].attribute, dev))
			*(size_t *)((char *)prop + sizes[i].at) = (size_t)value;
	return rt_end(error);
}

/* ---- PCI ---- */

cudaError_t cudaDeviceGetPCIBusId(char *id, int len, int device)
{
	cudaError_t error = rt_load();

	if (!error && (!id || len <= 0))
		error = cudaErrorInvalidValue;
	if (!error && rt_device(device) < 0)
		error = cudaErrorInvalidDevice;
	if (!error)
		error = rt_error(cu.cuDeviceGetPCIBusId(id, len, rt_device(device)));
	return rt_end(error);
}

cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
	cudaError_t error = rt_load();
	CUdevice dev;

	if (error || !device || !id)
		return rt_end(error ? error : cudaErrorInvalidValue);
	error = rt_error(cu.cuDeviceGetByPCIBusId(&dev, id));
	if (error)
		return rt_end(error);
	for (int i = 0; i < RT_DEVICES; i++) {
		if (rt_device(i) == dev) {
			*device = i;
			return cudaSuccess;
		}
	}
	return rt_end(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	cudaError_t error = rt_load();

	if (error || !can)
		return rt_end(error ? error : cudaErrorInvalidValue);
	if (rt_device(device) < 0 || rt_device(peer) < 0)
		return rt_end(cudaErrorInvalidDevice);
	/* The library has no function with which a program could use it. */
	*can = 0;
	return cudaSuccess;
}

/* ---- the current context ---- */

cudaError_t cudaDeviceSynchronize(void)
{
	return RT_CALL(cuCtxSynchronize());
}

cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
	return RT_GET(value, cuCtxGetLimit(value, limit));
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
	return RT_CALL(cuCtxSetLimit(limit, value));
}

cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
	CUfunc_cache value = 0;
	cudaError_t error;

	if (!config)
		return rt_end(cudaErrorInvalidValue);
	error = RT_CALL(cuCtxGetCacheConfig(&value));
	if (!error)
		*config = (enum cudaFuncCache)value;
	return error;
}

cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
	return RT_CALL(cuCtxSetCacheConfig(config));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	return RT_CALL(cuCtxGetStreamPriorityRange(least, greatest));
}

/* ---- profilers ---- */

/* No profiler knows this library: there is nothing to start or to stop. */
cudaError_t cudaProfilerStart(void)
{
	return cudaSuccess;
}

cudaError_t cudaProfilerStop(void)
{
	return cudaSuccess;
}
