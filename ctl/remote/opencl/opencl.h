/* SPDX-License-Identifier: GPL-2.0-only */
/* Lengths that calls of OpenCL imply, for the front end and the server. */
#ifndef REMOTE_OPENCL_H
#define REMOTE_OPENCL_H

#define CL_TARGET_OPENCL_VERSION		300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdbool.h>
#include <stdint.h>

#define OPENCL_NUMBER	1

/* Elements of a region. */
uint64_t opencl_volume(const size_t *region);

/* Bytes of a buffer up to the end of a rectangle in it. */
uint64_t opencl_rect(const size_t *origin, const size_t *region, size_t row_pitch,
		     size_t slice_pitch);

/* Bytes up to the end of a sub-buffer, a cl_buffer_region, and its own. */
uint64_t opencl_part_end(const void *info);
uint64_t opencl_part_size(const void *info);

/* Bytes of a pixel; 0 if the format is unknown. */
uint64_t opencl_pixel_bytes(const cl_image_format *format);

/* Width, height or number of lines, and depth or number of pictures; false if it has none. */
bool opencl_image_region(const cl_image_desc *desc, size_t region[3]);

/* Bytes of an image without gaps. */
uint64_t opencl_image_bytes(const cl_image_format *format, const cl_image_desc *desc);

/* Return whether an image has memory of its own without gaps, and one level. */
bool opencl_image_is_plain(const cl_image_desc *desc);

#endif /* REMOTE_OPENCL_H */
