// SPDX-License-Identifier: GPL-2.0-only
/* Streams and events, which are the driver's. */
#include "runtime.h"

/* ---- streams ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
	rt_enter();
	return RT_GET(stream, cuStreamCreate(stream, flags));
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	rt_enter();
	return cudaStreamCreateWithFlags(stream, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
	rt_enter();
	return RT_GET(stream, cuStreamCreateWithPriority(stream, flags, priority));
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	return RT_GET(priority, cuStreamGetPriority(stream, priority));
}

cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int *priority)
{
	return cudaStreamGetPriority(rt_own(stream), priority);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int *flags)
{
	return RT_GET(flags, cuStreamGetFlags(stream, flags));
}

cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned int *flags)
{
	return cudaStreamGetFlags(rt_own(stream), flags);
}

/* No function of the library begins to capture. */
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	(void)stream;
	if (!status)
		return rt_end(cudaErrorInvalidValue);
	*status = cudaStreamCaptureStatusNone;
	return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	return cudaStreamIsCapturing(stream, status);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	rt_enter();
	/* The default streams stay. */
	if (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
		return rt_end(cudaErrorInvalidResourceHandle);
	return RT_CALL(cuStreamDestroy_v2(stream));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	rt_enter();
	return RT_CALL(cuStreamWaitEvent(stream, event, flags));
}

cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
	rt_enter();
	return cudaStreamWaitEvent(rt_own(stream), event, flags);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	return RT_CALL(cuStreamSynchronize(stream));
}

cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream)
{
	return cudaStreamSynchronize(rt_own(stream));
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	return RT_CALL(cuStreamQuery(stream));
}

cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream)
{
	return cudaStreamQuery(rt_own(stream));
}

/* ---- events ---- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
	rt_enter();
	return RT_GET(event, cuEventCreate(event, flags));
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	rt_enter();
	return cudaEventCreateWithFlags(event, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	rt_enter();
	return RT_CALL(cuEventDestroy_v2(event));
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	rt_enter();
	return RT_CALL(cuEventRecord(event, stream));
}

cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream)
{
	rt_enter();
	return cudaEventRecord(event, rt_own(stream));
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
	rt_enter();
	return RT_CALL(cuEventRecordWithFlags(event, stream, flags));
}

cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream,
					  unsigned int flags)
{
	rt_enter();
	return cudaEventRecordWithFlags(event, rt_own(stream), flags);
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
	return RT_CALL(cuEventQuery(event));
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	return RT_CALL(cuEventSynchronize(event));
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	CUresult status;

	if (!ms)
		return rt_end(cudaErrorInvalidValue);
	if (rt_begin())
		return cudaPeekAtLastError();
	status = cu.cuEventElapsedTime_v2(ms, start, end);
	/* A driver before CUDA 12.8 has the first version only. */
	if (status == CUDA_ERROR_NOT_SUPPORTED)
		status = cu.cuEventElapsedTime(ms, start, end);
	return rt_end(rt_error(status));
}
