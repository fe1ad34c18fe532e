// SPDX-License-Identifier: GPL-2.0-only
/* NVIDIA's management library; the declarations are those of its documented interface. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "nvml.h"

#define SAMPLES		512
#define GPU_UTILIZATION	1	/* of nvmlSamplingType_t */
#define UNSIGNED_INT	1	/* of nvmlValueType_t */

typedef struct nvmlDevice_st *nvml_device;

struct utilization {
	unsigned int gpu;
	unsigned int memory;
};

struct memory {
	unsigned long long total;
	unsigned long long free;
	unsigned long long used;
};

struct sample {
	unsigned long long us;
	union {
		double d;
		unsigned int u;
		unsigned long long ull;
	} value;
};

/**
 * struct nvml - functions of the library; each returns 0 for success
 */
struct nvml {
	int (*init)(void);
	int (*shutdown)(void);
	int (*device)(const char *addr, nvml_device *device);
	int (*rates)(nvml_device device, struct utilization *rates);
	int (*samples)(nvml_device device, int type, unsigned long long since, int *value,
		       unsigned int *nr, struct sample *samples);
	int (*energy)(nvml_device device, unsigned long long *mj);
	int (*memory)(nvml_device device, struct memory *memory);
};

static void *symbol(void *library, const char *name)
{
	return dlsym(library, name);
}

static bool load(void *library, struct nvml *n)
{
	/* POSIX has a pointer to a function in a void pointer. */
	*(void **)&n->init = symbol(library, "nvmlInit_v2");
	*(void **)&n->shutdown = symbol(library, "nvmlShutdown");
	*(void **)&n->device = symbol(library, "nvmlDeviceGetHandleByPciBusId_v2");
	*(void **)&n->rates = symbol(library, "nvmlDeviceGetUtilizationRates");
	*(void **)&n->samples = symbol(library, "nvmlDeviceGetSamples");
	*(void **)&n->energy = symbol(library, "nvmlDeviceGetTotalEnergyConsumption");
	*(void **)&n->memory = symbol(library, "nvmlDeviceGetMemoryInfo");
	return n->init && n->shutdown && n->device && n->rates;
}

/* The average of all samples since the last look; false if there are none. */
static bool average(const struct nvml *n, nvml_device device, uint64_t since,
		    struct nvml_look *look)
{
	struct sample samples[SAMPLES];
	unsigned int nr = SAMPLES;
	uint64_t sum = 0;
	int type;

	if (!n->samples || n->samples(device, GPU_UTILIZATION, since, &type, &nr, samples) ||
	    type != UNSIGNED_INT || !nr || nr > SAMPLES)
		return false;
	for (unsigned int i = 0; i < nr; i++) {
		sum += samples[i].value.u;
		if (samples[i].us > look->last_us)
			look->last_us = samples[i].us;
	}
	look->percent = (unsigned int)(sum / nr);
	return true;
}

static bool read_device(const struct nvml *n, nvml_device device, uint64_t since,
			struct nvml_look *look)
{
	struct utilization rates = { 0 };
	struct memory memory = { 0 };
	unsigned long long mj = 0;

	look->last_us = since;
	if (!average(n, device, since, look)) {
		if (n->rates(device, &rates))
			return false;
		look->percent = rates.gpu;
	}
	if (look->percent > 100)
		look->percent = 100;
	if (n->energy && !n->energy(device, &mj))
		look->energy_mj = mj;
	if (n->memory && !n->memory(device, &memory))
		look->memory_mib = (uint32_t)(memory.used >> 20);
	return true;
}

bool nvml_look(const char *name, const char *addr, uint64_t since_us, struct nvml_look *look)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	nvml_device device;
	struct nvml n;
	bool good = false;

	memset(look, 0, sizeof(*look));
	if (!library)
		return false;
	if (load(library, &n) && !n.init()) {
		good = !n.device(addr, &device) && read_device(&n, device, since_us, look);
		n.shutdown();
	}
	dlclose(library);
	return good;
}
