/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * NVIDIA's management library, loaded if it is there.  A look opens it and closes it again: an
 * open library holds the GPU, and the host could not take it back.
 */
#ifndef AGENT_NVML_H
#define AGENT_NVML_H

#include <stdbool.h>
#include <stdint.h>

/**
 * struct nvml_look - what the library says
 * @percent: share of time in which a kernel ran since @since_us, or in the last second
 * @last_us: time of the last sample, of the library's clock; since when the next look counts
 * @energy_mj: energy since the driver was loaded, mJ; 0: unknown
 * @memory_mib: memory in use, MiB
 */
struct nvml_look {
	unsigned int percent;
	uint64_t last_us;
	uint64_t energy_mj;
	uint32_t memory_mib;
};

/* Return false without the library, or if it does not know the device. */
bool nvml_look(const char *library, const char *addr, uint64_t since_us, struct nvml_look *look);

#endif /* AGENT_NVML_H */
