// SPDX-License-Identifier: GPL-2.0-only
/* Fourier transforms, a launch for each stage, whose number is an argument: fft [TRANSFORMS]. */
#include "common.h"

#define BITS	12
#define N	(1u << BITS)

static const char source[] =
	"kernel void stage(global const float2 *from, global float2 *to, int n, int span)\n"
	"{\n"
	"	int i = get_global_id(0), k = i & (span - 1);\n"
	"	float angle = -M_PI_F * k / span;\n"
	"	float2 w = (float2)(cos(angle), sin(angle));\n"
	"	float2 a = from[i], b = from[i + n / 2];\n"
	"	float2 c = (float2)(b.x * w.x - b.y * w.y, b.x * w.y + b.y * w.x);\n"
	"	int at = ((i - k) << 1) + k;\n"
	"	to[at] = a + c;\n"
	"	to[at + span] = a - c;\n"
	"}\n"
	"kernel void scale(global float2 *x, float f)\n"
	"{\n"
	"	x[get_global_id(0)] *= f;\n"
	"}\n";

int main(int argc, char **argv)
{
	static cl_float2 x[N];
	const size_t n = N, half_n = N / 2;
	const cl_float f = 1.0f / 64;
	const cl_int nr = N;
	const int rounds = number(argc, argv, 40);
	cl_kernel stage, scale;
	cl_mem m[2];

	cl_open(source, 0);
	for (size_t i = 0; i < N; i++)
		x[i].s[0] = (cl_float)(random_number() % 1000) / 1000;
	for (int i = 0; i < 2; i++)
		m[i] = cl_buffer(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(x), x);
	stage = cl_kernel_of("stage");
	scale = cl_kernel_of("scale");
	cl_arg(stage, 2, sizeof(nr), &nr);
	cl_arg(scale, 1, sizeof(f), &f);
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < BITS; i++) {
			const cl_int span = 1 << i;

			cl_arg(stage, 0, sizeof(cl_mem), &m[i % 2]);
			cl_arg(stage, 1, sizeof(cl_mem), &m[1 - i % 2]);
			cl_arg(stage, 3, sizeof(span), &span);
			CL(clEnqueueNDRangeKernel(queue, stage, 1, NULL, &half_n, NULL, 0, NULL,
						  NULL));
		}
		cl_arg(scale, 0, sizeof(cl_mem), &m[BITS % 2]);
		CL(clEnqueueNDRangeKernel(queue, scale, 1, NULL, &n, NULL, 0, NULL, NULL));
	}
	CL(clEnqueueReadBuffer(queue, m[BITS % 2], CL_TRUE, 0, sizeof(x), x, 0, NULL, NULL));
	printf("transform %016llx\n", (unsigned long long)digest(x, sizeof(x)));
	CL(clReleaseMemObject(m[0]));
	CL(clReleaseMemObject(m[1]));
	CL(clReleaseKernel(stage));
	CL(clReleaseKernel(scale));
	cl_close();
	return 0;
}
