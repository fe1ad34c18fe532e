// SPDX-License-Identifier: GPL-2.0-only
/* Bodies that attract each other, two launches a step with the same arguments: nbody [STEPS]. */
#include "common.h"

#define N	256u

static const char source[] =
	"kernel void attract(global const float4 *x, global float4 *v, int n, float dt)\n"
	"{\n"
	"	int i = get_global_id(0);\n"
	"	float4 a = 0, own = x[i];\n"
	"	for (int k = 0; k < n; k++) {\n"
	"		float4 d = x[k] - own;\n"
	"		d.w = 0;\n"
	"		float r = dot(d, d) + 0.01f;\n"
	"		a += d * (x[k].w / (r * sqrt(r)));\n"
	"	}\n"
	"	v[i] += a * dt;\n"
	"}\n"
	"kernel void move(global float4 *x, global const float4 *v, float dt)\n"
	"{\n"
	"	int i = get_global_id(0);\n"
	"	x[i].xyz += v[i].xyz * dt;\n"
	"}\n";

int main(int argc, char **argv)
{
	static cl_float4 x[N], v[N];
	const cl_float dt = 0.001f;
	const cl_int nr = N;
	const int steps = number(argc, argv, 300);
	const size_t n = N;
	cl_kernel attract, move;
	cl_mem mx, mv;

	cl_open(source, 0);
	for (size_t i = 0; i < N; i++) {
		for (int k = 0; k < 3; k++)
			x[i].s[k] = (cl_float)(random_number() % 1000) / 1000;
		x[i].s[3] = 1;
	}
	mx = cl_buffer(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(x), x);
	mv = cl_buffer(CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(v), v);
	attract = cl_kernel_of("attract");
	move = cl_kernel_of("move");
	cl_arg(attract, 0, sizeof(mx), &mx);
	cl_arg(attract, 1, sizeof(mv), &mv);
	cl_arg(attract, 2, sizeof(nr), &nr);
	cl_arg(attract, 3, sizeof(dt), &dt);
	cl_arg(move, 0, sizeof(mx), &mx);
	cl_arg(move, 1, sizeof(mv), &mv);
	cl_arg(move, 2, sizeof(dt), &dt);
	for (int i = 0; i < steps; i++) {
		CL(clEnqueueNDRangeKernel(queue, attract, 1, NULL, &n, NULL, 0, NULL, NULL));
		CL(clEnqueueNDRangeKernel(queue, move, 1, NULL, &n, NULL, 0, NULL, NULL));
	}
	CL(clEnqueueReadBuffer(queue, mx, CL_TRUE, 0, sizeof(x), x, 0, NULL, NULL));
	printf("bodies %016llx\n", (unsigned long long)digest(x, sizeof(x)));
	CL(clReleaseMemObject(mx));
	CL(clReleaseMemObject(mv));
	CL(clReleaseKernel(attract));
	CL(clReleaseKernel(move));
	cl_close();
	return 0;
}
