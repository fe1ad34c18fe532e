// SPDX-License-Identifier: GPL-2.0-only
/* Images: written with gaps, filtered with a sampler, copied, filled, mapped and read. */
#include "common.h"

#define W	64u
#define H	48u
#define PITCH	(W * 4 + 32)

static const char source[] =
	"kernel void blur(read_only image2d_t from, write_only image2d_t to, sampler_t s)\n"
	"{\n"
	"	int2 at = (int2)(get_global_id(0), get_global_id(1));\n"
	"	uint4 sum = (uint4)(0);\n"
	"	for (int y = -1; y <= 1; y++)\n"
	"		for (int x = -1; x <= 1; x++)\n"
	"			sum += read_imageui(from, s, at + (int2)(x, y));\n"
	"	write_imageui(to, at, sum / 9);\n"
	"}\n";

int main(void)
{
	const cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = W,
			       .image_height = H };
	const size_t zero[3] = { 0, 0, 0 }, whole[3] = { W, H, 1 }, at[3] = { 8, 4, 0 };
	const size_t part[3] = { 20, 10, 1 }, global[2] = { W, H };
	const cl_uint color[4] = { 1, 2, 3, 4 };
	static uint8_t pixels[PITCH * H], tight[W * H * 4];
	size_t width, row;
	cl_sampler sampler;
	cl_kernel blur;
	cl_mem a, b, buffer;
	cl_uint nr;
	uint8_t *p;

	cl_open(source, 0);
	for (size_t i = 0; i < sizeof(pixels); i++)
		pixels[i] = (uint8_t)random_number();
	desc.image_row_pitch = PITCH;
	a = clCreateImage(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, &format, &desc, pixels,
			  &err);
	good(err, "clCreateImage");
	desc.image_row_pitch = 0;
	b = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, NULL, &err);
	good(err, "clCreateImage");
	sampler = clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP_TO_EDGE, CL_FILTER_NEAREST,
				  &err);
	good(err, "clCreateSampler");
	blur = cl_kernel_of("blur");
	cl_arg(blur, 2, sizeof(sampler), &sampler);
	for (int i = 0; i < 6; i++) {
		cl_arg(blur, 0, sizeof(cl_mem), i % 2 ? &b : &a);
		cl_arg(blur, 1, sizeof(cl_mem), i % 2 ? &a : &b);
		CL(clEnqueueNDRangeKernel(queue, blur, 2, NULL, global, NULL, 0, NULL, NULL));
	}
	CL(clEnqueueReadImage(queue, a, CL_TRUE, zero, whole, 0, 0, tight, 0, NULL, NULL));
	printf("blurred %016llx\n", (unsigned long long)digest(tight, sizeof(tight)));
	CL(clEnqueueFillImage(queue, a, color, at, part, 0, NULL, NULL));
	CL(clEnqueueCopyImage(queue, a, b, at, zero, part, 0, NULL, NULL));
	CL(clEnqueueWriteImage(queue, b, CL_FALSE, at, part, PITCH, 0, pixels, 0, NULL, NULL));
	CL(clFinish(queue));
	memset(pixels, 0xee, sizeof(pixels));
	CL(clEnqueueReadImage(queue, b, CL_FALSE, zero, whole, PITCH, 0, pixels, 0, NULL, NULL));
	CL(clFinish(queue));
	p = clEnqueueMapImage(queue, a, CL_TRUE, CL_MAP_READ, at, part, &row, NULL, 0, NULL, NULL,
			      &err);
	good(err, "clEnqueueMapImage");
	for (size_t i = 0; i < part[1]; i++)
		memcpy(tight + i * part[0] * 4, p + i * row, part[0] * 4);
	CL(clEnqueueUnmapMemObject(queue, a, p, 0, NULL, NULL));
	printf("mapped %016llx\n", (unsigned long long)digest(tight, part[0] * part[1] * 4));
	buffer = cl_buffer(CL_MEM_READ_WRITE, sizeof(tight), NULL);
	CL(clEnqueueCopyImageToBuffer(queue, b, buffer, zero, whole, 0, 0, NULL, NULL));
	CL(clEnqueueCopyBufferToImage(queue, buffer, a, 64, zero, part, 0, NULL, NULL));
	CL(clEnqueueReadImage(queue, a, CL_TRUE, zero, whole, 0, 0, tight, 0, NULL, NULL));
	printf("read %016llx, copied %016llx\n", (unsigned long long)digest(pixels, sizeof(pixels)),
	       (unsigned long long)digest(tight, sizeof(tight)));
	CL(clGetImageInfo(a, CL_IMAGE_WIDTH, sizeof(width), &width, NULL));
	CL(clGetSupportedImageFormats(context, CL_MEM_READ_WRITE, CL_MEM_OBJECT_IMAGE2D, 0, NULL,
				      &nr));
	printf("width %zu, formats %u\n", width, nr);
	CL(clReleaseMemObject(a));
	CL(clReleaseMemObject(b));
	CL(clReleaseMemObject(buffer));
	CL(clReleaseSampler(sampler));
	CL(clReleaseKernel(blur));
	cl_close();
	return 0;
}
