/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Use of a GPU that the host cannot see: engine times of DRM drivers, NVIDIA's library, or what
 * the kernel counts of any device.
 */
#ifndef AGENT_USE_H
#define AGENT_USE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "devices.h"

#define USE_CLIENTS	512

/**
 * enum use_source - where use is read, the best first
 * @USE_NVML: NVIDIA's library: share of time in which a kernel ran, energy, memory
 * @USE_DRM: engine times of all open files of the GPU (fdinfo)
 * @USE_BUSY: the driver's gpu_busy_percent
 * @USE_POWER: time in which the device was not suspended, if it may be suspended
 * @USE_IRQ: interrupts: an interval with many of them counts as busy
 * @USE_NONE: nothing is known
 */
enum use_source { USE_NVML, USE_DRM, USE_BUSY, USE_POWER, USE_IRQ, USE_NONE };

/**
 * struct use_client - a client of a DRM driver
 * @client: its number
 * @engine_ns: its engine time at the last look
 * @seen: it was there at the last look
 */
struct use_client {
	uint64_t client;
	uint64_t engine_ns;
	bool seen;
};

/**
 * struct meter - use of one GPU
 * @root: prefix of /sys and /proc
 * @addr: PCI address
 * @nvml: name of NVIDIA's library
 * @sample_us: its last sample that was counted
 * @clients: of its DRM driver
 * @nr_clients: their number
 * @last_ns: time of the last look, CLOCK_MONOTONIC; 0: none yet
 * @counter: of the source at the last look
 * @busy_ns: busy time, never more than the time that passed
 * @energy_mj: energy since the first look, mJ
 * @energy_from: of the library at the first look
 * @memory_mib: memory in use, MiB
 * @source: of the last look
 */
struct meter {
	const char *root;
	char addr[DEVICE_ADDR];
	const char *nvml;
	uint64_t sample_us;
	struct use_client clients[USE_CLIENTS];
	size_t nr_clients;
	uint64_t last_ns;
	uint64_t counter;
	uint64_t busy_ns;
	uint64_t energy_mj;
	uint64_t energy_from;
	uint32_t memory_mib;
	enum use_source source;
};

/**
 * meter_open() - begin to measure
 * @m: result
 * @root: prefix of /sys and /proc, "" for the machine
 * @addr: PCI address of the GPU
 * @nvml: name of NVIDIA's library
 * @busy_ns: busy time so far
 */
void meter_open(struct meter *m, const char *root, const char *addr, const char *nvml,
		uint64_t busy_ns);
/* Look; every few seconds, so that short-lived programs count. @now_ns: CLOCK_MONOTONIC. */
void meter_look(struct meter *m, uint64_t now_ns);

#endif /* AGENT_USE_H */
