/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The server of OpenCL.  The calls that the description cannot express are all here: they keep
 * memory until a command has ended, wait, or give an argument to a kernel.
 */
#ifndef REMOTE_OPENCL_BACK_H
#define REMOTE_OPENCL_BACK_H

#include "opencl.h"
#include "opencl_gen.h"
#include "server.h"

void *opencl_open(void *library);
void *opencl_failed(struct server *s, uint32_t kind, struct served *target, int32_t error);
int32_t opencl_finished(struct server *s, void *event);
void opencl_forget(struct server *s, void *event);

int32_t back_clEnqueueReadBuffer(struct server *s, struct request *q, cl_command_queue queue,
				 cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
				 uint64_t len, cl_uint nr, const cl_event *wait, cl_event *event);
int32_t back_clEnqueueReadBufferRect(struct server *s, struct request *q, cl_command_queue queue,
				     cl_mem buffer, cl_bool blocking, const size_t *origin,
				     const size_t *host_origin, const size_t *region,
				     size_t row_pitch, size_t slice_pitch, size_t host_row_pitch,
				     size_t host_slice_pitch, uint64_t len, cl_uint nr,
				     const cl_event *wait, cl_event *event);
int32_t back_clEnqueueReadImage(struct server *s, struct request *q, cl_command_queue queue,
				cl_mem image, cl_bool blocking, const size_t *origin,
				const size_t *region, size_t row_pitch, size_t slice_pitch,
				uint64_t len, cl_uint nr, const cl_event *wait, cl_event *event);
int32_t back_clEnqueueWriteBuffer(struct server *s, struct request *q, cl_command_queue queue,
				  cl_mem buffer, cl_bool blocking, size_t offset, size_t size,
				  const void *p, cl_uint nr, const cl_event *wait, cl_event *event);
int32_t back_clEnqueueWriteBufferRect(struct server *s, struct request *q, cl_command_queue queue,
				      cl_mem buffer, cl_bool blocking, const size_t *origin,
				      const size_t *host_origin, const size_t *region,
				      size_t row_pitch, size_t slice_pitch, size_t host_row_pitch,
				      size_t host_slice_pitch, const void *p, cl_uint nr,
				      const cl_event *wait, cl_event *event);
int32_t back_clEnqueueWriteImage(struct server *s, struct request *q, cl_command_queue queue,
				 cl_mem image, cl_bool blocking, const size_t *origin,
				 const size_t *region, size_t row_pitch, size_t slice_pitch,
				 const void *p, cl_uint nr, const cl_event *wait, cl_event *event);
int32_t back_clFinish(struct server *s, struct request *q, cl_command_queue queue);
int32_t back_clWaitForEvents(struct server *s, struct request *q, cl_uint nr,
			     const cl_event *events);
int32_t back_clSetKernelArg(struct server *s, struct request *q, cl_kernel kernel, cl_uint index,
			    size_t size, const void *value);
int32_t back_remoteSetKernelArgMem(struct server *s, struct request *q, cl_kernel kernel,
				   cl_uint index, cl_bool image, cl_mem mem);
int32_t back_remoteSetKernelArgSampler(struct server *s, struct request *q, cl_kernel kernel,
				       cl_uint index, cl_sampler sampler);
int32_t back_remoteGetProgramBinary(struct server *s, struct request *q, cl_program program,
				    cl_uint index, size_t size, uint64_t len);

#endif /* REMOTE_OPENCL_BACK_H */
