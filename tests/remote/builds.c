// SPDX-License-Identifier: GPL-2.0-only
/* Programs of parts, with headers and callbacks; objects with properties; images with layers. */
#include "common.h"

static const char header_text[] = "#define FACTOR 3\nint twice(int n);\n";
static const char part_text[] = "#include \"factor.h\"\nint twice(int n) { return 2 * n; }\n";
static const char main_text[] =
	"#include \"factor.h\"\n"
	"kernel void put(global int *a)\n"
	"{\n"
	"	a[get_global_id(0)] = FACTOR * twice(get_global_id(0));\n"
	"}\n";

static int notified;

static void on_built(cl_program p, void *data)
{
	notified += p != NULL;
	(void)data;
}

static cl_program compile(const char *text, cl_program header)
{
	const char *name = "factor.h";
	cl_program p = clCreateProgramWithSource(context, 1, &text, NULL, &err);

	good(err, "clCreateProgramWithSource");
	CL(clCompileProgram(p, 0, NULL, NULL, 1, &header, &name, on_built, NULL));
	return p;
}

static void layers(void)
{
	const cl_image_format format = { CL_R, CL_FLOAT };
	const cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE3D, .image_width = 8,
				     .image_height = 4, .image_depth = 3, .image_row_pitch = 48,
				     .image_slice_pitch = 240 };
	const size_t origin[3] = { 1, 1, 1 }, region[3] = { 4, 2, 2 };
	static float pixels[3 * 60], part[4 * 2 * 2];
	size_t row, slice;
	cl_mem image;
	float *p;

	for (int i = 0; i < 3 * 60; i++)
		pixels[i] = (float)i;
	image = clCreateImage(context, CL_MEM_COPY_HOST_PTR, &format, &desc, pixels, &err);
	good(err, "clCreateImage");
	CL(clEnqueueReadImage(queue, image, CL_TRUE, origin, region, 0, 0, part, 0, NULL, NULL));
	printf("part %016llx\n", (unsigned long long)digest(part, sizeof(part)));
	p = clEnqueueMapImage(queue, image, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, origin, region,
			      &row, &slice, 0, NULL, NULL, &err);
	good(err, "clEnqueueMapImage");
	for (size_t z = 0; z < region[2]; z++)
		for (size_t y = 0; y < region[1]; y++)
			p[(z * slice + y * row) / sizeof(float)] += 1000;
	CL(clEnqueueUnmapMemObject(queue, image, p, 0, NULL, NULL));
	memset(pixels, 0, sizeof(pixels));
	CL(clEnqueueReadImage(queue, image, CL_FALSE, origin, region, 48, 240, pixels, 0, NULL,
			      NULL));
	CL(clFinish(queue));
	printf("with gaps %016llx\n", (unsigned long long)digest(pixels, sizeof(pixels)));
	CL(clReleaseMemObject(image));
}

int main(void)
{
	const cl_queue_properties properties[3] = {
		CL_QUEUE_PROPERTIES, CL_QUEUE_PROFILING_ENABLE,
	};
	const cl_sampler_properties how[3] = { CL_SAMPLER_FILTER_MODE, CL_FILTER_LINEAR };
	const char *text = header_text;
	cl_program header, parts[2], whole;
	cl_command_queue_properties there;
	cl_queue_properties list[3];
	cl_build_status status;
	cl_filter_mode filter;
	cl_command_queue other;
	cl_context owner;
	cl_sampler sampler;
	cl_kernel put;
	const size_t n = 16;
	int result[16];
	cl_mem m;

	cl_open(NULL, 0);
	header = clCreateProgramWithSource(context, 1, &text, NULL, &err);
	good(err, "clCreateProgramWithSource");
	parts[0] = compile(part_text, header);
	parts[1] = compile(main_text, header);
	whole = clLinkProgram(context, 0, NULL, NULL, 2, parts, on_built, NULL, &err);
	good(err, "clLinkProgram");
	CL(clGetProgramBuildInfo(whole, device, CL_PROGRAM_BUILD_STATUS, sizeof(status), &status,
				 NULL));
	printf("notified %d, status %d\n", notified, status);

	other = clCreateCommandQueueWithProperties(context, device, properties, &err);
	good(err, "clCreateCommandQueueWithProperties");
	CL(clGetCommandQueueInfo(other, CL_QUEUE_PROPERTIES, sizeof(there), &there, NULL));
	CL(clGetCommandQueueInfo(other, CL_QUEUE_CONTEXT, sizeof(owner), &owner, NULL));
	CL(clGetCommandQueueInfo(other, CL_QUEUE_PROPERTIES_ARRAY, sizeof(list), list, NULL));
	printf("queue %u, ours: %s, list: %s\n", (unsigned int)there, owner == context ? "yes" : "no",
	       memcmp(list, properties, sizeof(list)) ? "other" : "the same");
	put = clCreateKernel(whole, "put", &err);
	good(err, "clCreateKernel");
	m = cl_buffer(CL_MEM_WRITE_ONLY, sizeof(result), NULL);
	cl_arg(put, 0, sizeof(m), &m);
	CL(clEnqueueNDRangeKernel(other, put, 1, NULL, &n, NULL, 0, NULL, NULL));
	CL(clEnqueueReadBuffer(other, m, CL_TRUE, 0, sizeof(result), result, 0, NULL, NULL));
	printf("result %d %d\n", result[1], result[15]);
	sampler = clCreateSamplerWithProperties(context, how, &err);
	good(err, "clCreateSamplerWithProperties");
	CL(clGetSamplerInfo(sampler, CL_SAMPLER_FILTER_MODE, sizeof(filter), &filter, NULL));
	printf("filter %x\n", filter);
	layers();
	CL(clReleaseSampler(sampler));
	CL(clReleaseKernel(put));
	CL(clReleaseMemObject(m));
	CL(clReleaseCommandQueue(other));
	CL(clReleaseProgram(whole));
	CL(clReleaseProgram(parts[0]));
	CL(clReleaseProgram(parts[1]));
	CL(clReleaseProgram(header));
	cl_close();
	return 0;
}
