// SPDX-License-Identifier: GPL-2.0-only
#include "codec.h"
#include "opencl.h"

uint64_t opencl_volume(const size_t *region)
{
	return sat_mul(sat_mul(region[0], region[1]), region[2]);
}

uint64_t opencl_rect(const size_t *origin, const size_t *region, size_t row_pitch,
		     size_t slice_pitch)
{
	uint64_t row = row_pitch ? row_pitch : region[0];
	uint64_t slice = slice_pitch ? slice_pitch : sat_mul(row, region[1]);

	if (!region[0] || !region[1] || !region[2])
		return 0;
	return sat_add(sat_add(sat_add(origin[0], region[0]),
			       sat_mul(sat_add(origin[1], region[1] - 1), row)),
		       sat_mul(sat_add(origin[2], region[2] - 1), slice));
}

uint64_t opencl_part_end(const void *info)
{
	const cl_buffer_region *r = info;

	return sat_add(r->origin, r->size);
}

uint64_t opencl_part_size(const void *info)
{
	const cl_buffer_region *r = info;

	return r->size;
}

static uint64_t channels(cl_channel_order order)
{
	switch (order) {
	case CL_R: case CL_A: case CL_INTENSITY: case CL_LUMINANCE: case CL_Rx: case CL_DEPTH:
		return 1;
	case CL_RG: case CL_RA: case CL_RGx:
		return 2;
	case CL_RGB: case CL_RGBx: case CL_sRGB:
		return 3;
	case CL_RGBA: case CL_BGRA: case CL_ARGB: case CL_ABGR: case CL_sRGBA: case CL_sBGRA:
	case CL_sRGBx:
		return 4;
	}
	return 0;
}

uint64_t opencl_pixel_bytes(const cl_image_format *format)
{
	switch (format->image_channel_data_type) {
	case CL_SNORM_INT8: case CL_UNORM_INT8: case CL_SIGNED_INT8: case CL_UNSIGNED_INT8:
		return channels(format->image_channel_order);
	case CL_SNORM_INT16: case CL_UNORM_INT16: case CL_SIGNED_INT16: case CL_UNSIGNED_INT16:
	case CL_HALF_FLOAT:
		return 2 * channels(format->image_channel_order);
	case CL_SIGNED_INT32: case CL_UNSIGNED_INT32: case CL_FLOAT:
		return 4 * channels(format->image_channel_order);
	case CL_UNORM_SHORT_565: case CL_UNORM_SHORT_555:
		return 2;
	case CL_UNORM_INT_101010: case CL_UNORM_INT_101010_2:
		return 4;
	}
	return 0;
}

bool opencl_image_region(const cl_image_desc *desc, size_t region[3])
{
	region[0] = desc->image_width;
	region[1] = region[2] = 1;
	switch (desc->image_type) {
	case CL_MEM_OBJECT_IMAGE1D:
		return true;
	case CL_MEM_OBJECT_IMAGE1D_ARRAY:
		region[1] = desc->image_array_size;
		return true;
	case CL_MEM_OBJECT_IMAGE2D:
		region[1] = desc->image_height;
		return true;
	case CL_MEM_OBJECT_IMAGE2D_ARRAY:
		region[1] = desc->image_height;
		region[2] = desc->image_array_size;
		return true;
	case CL_MEM_OBJECT_IMAGE3D:
		region[1] = desc->image_height;
		region[2] = desc->image_depth;
		return true;
	}
	return false;
}

uint64_t opencl_image_bytes(const cl_image_format *format, const cl_image_desc *desc)
{
	size_t region[3];

	if (!opencl_image_region(desc, region))
		return 0;
	return sat_mul(opencl_pixel_bytes(format), opencl_volume(region));
}

bool opencl_image_is_plain(const cl_image_desc *desc)
{
	size_t region[3];

	return opencl_image_region(desc, region) && !desc->mem_object && !desc->num_mip_levels &&
		!desc->num_samples && !desc->image_row_pitch && !desc->image_slice_pitch;
}
