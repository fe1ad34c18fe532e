// SPDX-License-Identifier: GPL-2.0-only
/* Names of the runtime's errors.  Texts of those that the driver has, too, are the driver's. */
#include "runtime.h"

static const struct {
	unsigned int error;
	const char *name;
	const char *text;
} errors[] = {
	{ 0, "cudaSuccess", NULL },
	{ 1, "cudaErrorInvalidValue", NULL },
	{ 2, "cudaErrorMemoryAllocation", NULL },
	{ 3, "cudaErrorInitializationError", NULL },
	{ 4, "cudaErrorCudartUnloading", NULL },
	{ 5, "cudaErrorProfilerDisabled", NULL },
	{ 6, "cudaErrorProfilerNotInitialized", NULL },
	{ 7, "cudaErrorProfilerAlreadyStarted", NULL },
	{ 8, "cudaErrorProfilerAlreadyStopped", NULL },
	{ 9, "cudaErrorInvalidConfiguration", "invalid configuration argument" },
	{ 12, "cudaErrorInvalidPitchValue", "invalid pitch argument" },
	{ 13, "cudaErrorInvalidSymbol", "invalid device symbol" },
	{ 16, "cudaErrorInvalidHostPointer", "invalid host pointer" },
	{ 17, "cudaErrorInvalidDevicePointer", "invalid device pointer" },
	{ 18, "cudaErrorInvalidTexture", "invalid texture" },
	{ 19, "cudaErrorInvalidTextureBinding", "invalid texture binding" },
	{ 20, "cudaErrorInvalidChannelDescriptor", "invalid channel descriptor" },
	{ 21, "cudaErrorInvalidMemcpyDirection", "invalid direction of a copy" },
	{ 22, "cudaErrorAddressOfConstant", "address of constant memory" },
	{ 23, "cudaErrorTextureFetchFailed", "texture fetch failed" },
	{ 24, "cudaErrorTextureNotBound", "texture not bound" },
	{ 25, "cudaErrorSynchronizationError", "synchronization error" },
	{ 26, "cudaErrorInvalidFilterSetting", "invalid filter setting" },
	{ 27, "cudaErrorInvalidNormSetting", "invalid normalization setting" },
	{ 28, "cudaErrorMixedDeviceExecution", "mixed device execution" },
	{ 31, "cudaErrorNotYetImplemented", "not yet implemented" },
	{ 32, "cudaErrorMemoryValueTooLarge", "value too large" },
	{ 34, "cudaErrorStubLibrary", NULL },
	{ 35, "cudaErrorInsufficientDriver",
	  "CUDA driver version is insufficient for CUDA runtime version" },
	{ 36, "cudaErrorCallRequiresNewerDriver", NULL },
	{ 37, "cudaErrorInvalidSurface", "invalid surface" },
	{ 43, "cudaErrorDuplicateVariableName", "duplicate variable name" },
	{ 44, "cudaErrorDuplicateTextureName", "duplicate texture name" },
	{ 45, "cudaErrorDuplicateSurfaceName", "duplicate surface name" },
	{ 46, "cudaErrorDevicesUnavailable", NULL },
	{ 49, "cudaErrorIncompatibleDriverContext", "incompatible driver context" },
	{ 52, "cudaErrorMissingConfiguration", "no configuration for a kernel launch" },
	{ 53, "cudaErrorPriorLaunchFailure", "failure of a prior launch" },
	{ 65, "cudaErrorLaunchMaxDepthExceeded", "launches nested too deep" },
	{ 66, "cudaErrorLaunchFileScopedTex", "launch with file-scoped texture" },
	{ 67, "cudaErrorLaunchFileScopedSurf", "launch with file-scoped surface" },
	{ 68, "cudaErrorSyncDepthExceeded", "synchronization nested too deep" },
	{ 69, "cudaErrorLaunchPendingCountExceeded", "too many pending launches" },
	{ 98, "cudaErrorInvalidDeviceFunction", "invalid device function" },
	{ 100, "cudaErrorNoDevice", NULL },
	{ 101, "cudaErrorInvalidDevice", NULL },
	{ 102, "cudaErrorDeviceNotLicensed", NULL },
	{ 103, "cudaErrorSoftwareValidityNotEstablished", "software validity not established" },
	{ 127, "cudaErrorStartupFailure", "startup failure" },
	{ 200, "cudaErrorInvalidKernelImage", NULL },
	{ 201, "cudaErrorDeviceUninitialized", NULL },
	{ 205, "cudaErrorMapBufferObjectFailed", NULL },
	{ 206, "cudaErrorUnmapBufferObjectFailed", NULL },
	{ 207, "cudaErrorArrayIsMapped", NULL },
	{ 208, "cudaErrorAlreadyMapped", NULL },
	{ 209, "cudaErrorNoKernelImageForDevice", NULL },
	{ 210, "cudaErrorAlreadyAcquired", NULL },
	{ 211, "cudaErrorNotMapped", NULL },
	{ 212, "cudaErrorNotMappedAsArray", NULL },
	{ 213, "cudaErrorNotMappedAsPointer", NULL },
	{ 214, "cudaErrorECCUncorrectable", NULL },
	{ 215, "cudaErrorUnsupportedLimit", NULL },
	{ 216, "cudaErrorDeviceAlreadyInUse", NULL },
	{ 217, "cudaErrorPeerAccessUnsupported", NULL },
	{ 218, "cudaErrorInvalidPtx", NULL },
	{ 219, "cudaErrorInvalidGraphicsContext", NULL },
	{ 220, "cudaErrorNvlinkUncorrectable", NULL },
	{ 221, "cudaErrorJitCompilerNotFound", NULL },
	{ 222, "cudaErrorUnsupportedPtxVersion", NULL },
	{ 223, "cudaErrorJitCompilationDisabled", NULL },
	{ 224, "cudaErrorUnsupportedExecAffinity", NULL },
	{ 225, "cudaErrorUnsupportedDevSideSync", NULL },
	{ 226, "cudaErrorContained", NULL },
	{ 300, "cudaErrorInvalidSource", NULL },
	{ 301, "cudaErrorFileNotFound", NULL },
	{ 302, "cudaErrorSharedObjectSymbolNotFound", NULL },
	{ 303, "cudaErrorSharedObjectInitFailed", NULL },
	{ 304, "cudaErrorOperatingSystem", NULL },
	{ 400, "cudaErrorInvalidResourceHandle", NULL },
	{ 401, "cudaErrorIllegalState", NULL },
	{ 402, "cudaErrorLossyQuery", NULL },
	{ 500, "cudaErrorSymbolNotFound", NULL },
	{ 600, "cudaErrorNotReady", NULL },
	{ 700, "cudaErrorIllegalAddress", NULL },
	{ 701, "cudaErrorLaunchOutOfResources", NULL },
	{ 702, "cudaErrorLaunchTimeout", NULL },
	{ 703, "cudaErrorLaunchIncompatibleTexturing", NULL },
	{ 704, "cudaErrorPeerAccessAlreadyEnabled", NULL },
	{ 705, "cudaErrorPeerAccessNotEnabled", NULL },
	{ 708, "cudaErrorSetOnActiveProcess", NULL },
	{ 709, "cudaErrorContextIsDestroyed", NULL },
	{ 710, "cudaErrorAssert", NULL },
	{ 711, "cudaErrorTooManyPeers", NULL },
	{ 712, "cudaErrorHostMemoryAlreadyRegistered", NULL },
	{ 713, "cudaErrorHostMemoryNotRegistered", NULL },
	{ 714, "cudaErrorHardwareStackError", NULL },
	{ 715, "cudaErrorIllegalInstruction", NULL },
	{ 716, "cudaErrorMisalignedAddress", NULL },
	{ 717, "cudaErrorInvalidAddressSpace", NULL },
	{ 718, "cudaErrorInvalidPc", NULL },
	{ 719, "cudaErrorLaunchFailure", NULL },
	{ 720, "cudaErrorCooperativeLaunchTooLarge", NULL },
	{ 721, "cudaErrorTensorMemoryLeak", NULL },
	{ 800, "cudaErrorNotPermitted", NULL },
	{ 801, "cudaErrorNotSupported", NULL },
	{ 802, "cudaErrorSystemNotReady", NULL },
	{ 803, "cudaErrorSystemDriverMismatch", NULL },
	{ 804, "cudaErrorCompatNotSupportedOnDevice", NULL },
	{ 805, "cudaErrorMpsConnectionFailed", NULL },
	{ 806, "cudaErrorMpsRpcFailure", NULL },
	{ 807, "cudaErrorMpsServerNotReady", NULL },
	{ 808, "cudaErrorMpsMaxClientsReached", NULL },
	{ 809, "cudaErrorMpsMaxConnectionsReached", NULL },
	{ 810, "cudaErrorMpsClientTerminated", NULL },
	{ 811, "cudaErrorCdpNotSupported", NULL },
	{ 812, "cudaErrorCdpVersionMismatch", NULL },
	{ 900, "cudaErrorStreamCaptureUnsupported", NULL },
	{ 901, "cudaErrorStreamCaptureInvalidated", NULL },
	{ 902, "cudaErrorStreamCaptureMerge", NULL },
	{ 903, "cudaErrorStreamCaptureUnmatched", NULL },
	{ 904, "cudaErrorStreamCaptureUnjoined", NULL },
	{ 905, "cudaErrorStreamCaptureIsolation", NULL },
	{ 906, "cudaErrorStreamCaptureImplicit", NULL },
	{ 907, "cudaErrorCapturedEvent", NULL },
	{ 908, "cudaErrorStreamCaptureWrongThread", NULL },
	{ 909, "cudaErrorTimeout", NULL },
	{ 910, "cudaErrorGraphExecUpdateFailure", NULL },
	{ 911, "cudaErrorExternalDevice", NULL },
	{ 912, "cudaErrorInvalidClusterSize", NULL },
	{ 913, "cudaErrorFunctionNotLoaded", NULL },
	{ 914, "cudaErrorInvalidResourceType", NULL },
	{ 915, "cudaErrorInvalidResourceConfiguration", NULL },
	{ 999, "cudaErrorUnknown", NULL },
};

#define NR_ERRORS	(sizeof(errors) / sizeof(*errors))
#define UNKNOWN		"unrecognized error code"

const char *cudaGetErrorName(cudaError_t error)
{
	for (size_t i = 0; i < NR_ERRORS; i++)
		if (errors[i].error == error)
			return errors[i].name;
	return UNKNOWN;
}

const char *cudaGetErrorString(cudaError_t error)
{
	for (size_t i = 0; i < NR_ERRORS; i++)
		if (errors[i].error == error)
			return errors[i].text ? errors[i].text : cuda_error_text(error);
	return UNKNOWN;
}

cudaError_t rt_error(CUresult status)
{
	for (size_t i = 0; i < NR_ERRORS; i++)
		if (errors[i].error == status)
			return status;
	return cudaErrorUnknown;
}
