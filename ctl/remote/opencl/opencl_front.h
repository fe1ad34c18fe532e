/* SPDX-License-Identifier: GPL-2.0-only */
/* The front end of OpenCL.  The calls that the description cannot express are all in front.c. */
#ifndef REMOTE_OPENCL_FRONT_H
#define REMOTE_OPENCL_FRONT_H

#include "opencl.h"
#include <CL/cl_icd.h>

#include "client.h"
#include "opencl_gen.h"

extern const struct remote_api opencl_front;
extern struct _cl_icd_dispatch opencl_dispatch;

/* ---- for what is generated ---- */

/* Return CALL_ASIDE if a call may wait for what another thread of the program does, or 0. */
unsigned int aside(void);

/* Entries of a list of properties with the 0 at its end; 0 for NULL, SIZE_MAX if it is too long. */
size_t list_len(const void *list);

/* Bytes of a text: @len, or up to its NUL if that is 0. */
uint64_t text_len(const void *text, size_t len);

/* Answer a question. */
int32_t info_bytes(const void *data, uint64_t len, size_t size, void *value, size_t *ret);
int32_t info_number(cl_uint number, size_t size, void *value, size_t *ret);
int32_t info_handle(const void *handle, size_t size, void *value, size_t *ret);

/* Replace ids that the server named by handles. */
void roots_in_place(void *data, uint64_t len, uint32_t kind);

/* Where the program's rows are; false if the pitches are too small. */
bool opencl_host_rect(const size_t *origin, const size_t *region, size_t row_pitch,
		      size_t slice_pitch, struct shape *shape);
bool opencl_host_image(uint32_t unit, const size_t *region, size_t row_pitch, size_t slice_pitch,
		       struct shape *shape);

/* Change what the server said of an object; return its length, which is not more than it was. */
uint64_t opencl_look(struct object *o, cl_uint name, void *data, uint64_t len);

/* Answer what the front end knows itself. */
int32_t opencl_local(struct object *o, cl_uint name, size_t size, void *value, size_t *ret);

void opencl_gone(struct object *o);

/* ---- by hand ---- */

cl_mem front_clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host_ptr,
			    cl_int *errcode_ret);
cl_mem front_clCreateSubBuffer(cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type type,
			       const void *info, cl_int *errcode_ret);
cl_mem front_clCreateImage(cl_context context, cl_mem_flags flags, const cl_image_format *format,
			   const cl_image_desc *desc, void *host_ptr, cl_int *errcode_ret);
cl_mem front_clCreateImage2D(cl_context context, cl_mem_flags flags, const cl_image_format *format,
			     size_t width, size_t height, size_t row_pitch, void *host_ptr,
			     cl_int *errcode_ret);
cl_mem front_clCreateImage3D(cl_context context, cl_mem_flags flags, const cl_image_format *format,
			     size_t width, size_t height, size_t depth, size_t row_pitch,
			     size_t slice_pitch, void *host_ptr, cl_int *errcode_ret);
cl_int
front_clSetMemObjectDestructorCallback(cl_mem memobj, void (*notify)(cl_mem, void *),
				       void *user_data);
cl_int front_clGetProgramInfo(cl_program program, cl_program_info name, size_t size, void *value,
			      size_t *ret);
cl_int front_clCreateKernelsInProgram(cl_program program, cl_uint nr, cl_kernel *kernels,
				      cl_uint *nr_ret);
cl_int front_clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value);
void *front_clEnqueueMapBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking,
			       cl_map_flags flags, size_t offset, size_t size, cl_uint nr,
			       const cl_event *wait, cl_event *event, cl_int *errcode_ret);
void *front_clEnqueueMapImage(cl_command_queue queue, cl_mem image, cl_bool blocking,
			      cl_map_flags flags, const size_t *origin, const size_t *region,
			      size_t *row_pitch, size_t *slice_pitch, cl_uint nr,
			      const cl_event *wait, cl_event *event, cl_int *errcode_ret);
cl_int front_clEnqueueUnmapMemObject(cl_command_queue queue, cl_mem memobj, void *mapped,
				     cl_uint nr, const cl_event *wait, cl_event *event);
cl_event front_clCreateUserEvent(cl_context context, cl_int *errcode_ret);
cl_int front_clSetUserEventStatus(cl_event event, cl_int status);
cl_int front_clSetEventCallback(cl_event event, cl_int type,
				void (*notify)(cl_event, cl_int, void *), void *user_data);
void *front_clGetExtensionFunctionAddress(const char *name);
void *front_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name);

#endif /* REMOTE_OPENCL_FRONT_H */
