// SPDX-License-Identifier: GPL-2.0-only
/* Load each image, a file or the text of a program, and launch what it has: modules FILE... */
#include "common.h"

/* The arguments are those of all images' kernels, in tests/remote/cuda/kernels.cu, too. */
static void use(CUmodule m)
{
	struct {
		double x;
		int y;
		char z[3];
	} s = { 1.5, 3, "ab" };
	CUdeviceptr p = cuda_memory(256), g;
	CUfunction scale, many;
	float factor = 2.5f;
	char flag = 1;
	long long big = -1;
	int n = 32;
	size_t len;
	uint8_t data[256];

	CU(cuModuleGetFunction(&scale, m, "scale"));
	CU(cuModuleGetFunction(&many, m, "many"));
	cuda_launch(scale, 2, NULL, (void *[]){ &p, &factor, &n });
	cuda_launch(many, 2, NULL, (void *[]){ &flag, &p, &s, &n, &big });
	CU(cuMemcpyDtoH_v2(data, p, sizeof(data)));
	printf("%llx\n", sum(data, sizeof(data)));
	if (!cuModuleGetGlobal_v2(&g, &len, m, "table"))
		printf("table %zu\n", len);
	CU(cuMemFree_v2(p));
}

/* Compare where a kernel's parameters are with where C has them. */
static void look(CUmodule m)
{
	struct mixed {
		uint8_t a;
		uint64_t b;
		uint16_t c;
		uint64_t d[3];
		float e;
	};
	static const size_t wanted[][2] = {
		{ offsetof(struct mixed, a), 1 }, { offsetof(struct mixed, b), 8 },
		{ offsetof(struct mixed, c), 2 }, { offsetof(struct mixed, d), 24 },
		{ offsetof(struct mixed, e), 4 },
	};
	size_t offset, size;
	CUfunction f;

	CU(cuModuleGetFunction(&f, m, "mixed"));
	for (size_t i = 0; i < 5; i++) {
		CU(cuFuncGetParamInfo(f, i, &offset, &size));
		if (offset != wanted[i][0] || size != wanted[i][1])
			exit(1);
	}
	if (!cuFuncGetParamInfo(f, 5, &offset, &size))
		exit(1);
}

int main(int argc, char **argv)
{
	CUjit_option options[] = { CU_JIT_MAX_REGISTERS, CU_JIT_ERROR_LOG_BUFFER,
				   CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
	char log[64];
	void *values[] = { (void *)32, log, (void *)sizeof(log) };
	CUmodule m;

	cuda_begin(NULL);
	for (int i = 1; i < argc; i++) {
		CU(cuModuleLoad(&m, argv[i]));
		use(m);
		CU(cuModuleUnload(m));
	}
	CU(cuModuleLoadDataEx(&m, ptx, 3, options, values));
	look(m);
	CU(cuModuleUnload(m));
	cuda_end();
	return 0;
}
