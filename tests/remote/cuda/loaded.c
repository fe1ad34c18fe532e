// SPDX-License-Identifier: GPL-2.0-only
/* Load the library as CUDA's own libraries do, and have it find its functions. */
#include <dlfcn.h>

#include <stdint.h>
#include <stdio.h>

#include "cuda_api.h"
#include "cuda_gen.h"

int main(void)
{
	__typeof__(cuGetProcAddress_v2) *get;
	static const struct {
		const char *symbol;
		int version;
		uint64_t flags;
		const char *wanted;
	} list[] = {
		{ "cuInit", 2000, 0, "cuInit" },
		{ "cuMemAlloc", 3020, 0, "cuMemAlloc_v2" },
		{ "cuMemAlloc", 3020, 2, NULL },
		{ "cuMem", 3020, 0, NULL },
		{ "cuGetProcAddress", 11030, 0, "cuGetProcAddress" },
		{ "cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2" },
		{ "cuCtxCreate", 3020, 0, "cuCtxCreate_v2" },
		{ "cuCtxCreate", 13000, 0, "cuCtxCreate_v4" },
		{ "cuEventElapsedTime", 2000, 0, "cuEventElapsedTime" },
		{ "cuGraphCreate", 10000, 0, NULL },
		{ "", 0, 0, NULL },
	};
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *p;
	CUdriverProcAddressQueryResult result;
	const void *table;
	CUuuid id = { "" };

	if (!library) {
		puts(dlerror());
		return 1;
	}
	*(void **)&get = dlsym(library, "cuGetProcAddress_v2");
	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		CUresult status = get(list[i].symbol, &p, list[i].version, list[i].flags, &result);
		const void *wanted = list[i].wanted ? dlsym(library, list[i].wanted) : NULL;

		printf("%s %d: %u %u, %s\n", list[i].symbol, list[i].version, (unsigned int)status,
		       (unsigned int)result, p == wanted ? "as wanted" : "another");
	}
	if (get("cuGetExportTable", &p, 3000, 0, &result))
		return 1;
	printf("table: %u\n",
	       (unsigned int)((CUresult(*)(const void **, const CUuuid *))p)(&table, &id));
	return 0;
}
