/* SPDX-License-Identifier: GPL-2.0-only */
/* PCI devices of the guest, and the GPU that was not there before. */
#ifndef AGENT_DEVICES_H
#define AGENT_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICES_MAX	256
#define DEVICE_ADDR	16	/* DDDD:BB:SS.F and its NUL */
#define DEVICE_WORD	40	/* address, '/', number, and a blank or NUL */

/**
 * struct device - a PCI function
 * @addr: its address
 * @number: of its folder in sysfs; a device that comes to the address later has another one
 * @class: class, subclass and interface
 * @vendor: number of its vendor
 * @driver: driver that has it, "": none
 */
struct device {
	char addr[DEVICE_ADDR];
	uint64_t number;
	uint32_t class;
	uint32_t vendor;
	char driver[64];
};

/**
 * struct devices - PCI functions by address
 * @d: functions
 * @nr: their number; what is beyond DEVICES_MAX is left out
 */
struct devices {
	struct device d[DEVICES_MAX];
	size_t nr;
};

/* Read the functions of the machine. Return 0 or -errno. */
int devices_scan(const char *root, struct devices *list);
const struct device *devices_find(const struct devices *list, const char *addr);
/* Whether a function is a GPU: display controller, accelerator, or coprocessor. */
bool device_is_gpu(const struct device *d);

/* Whether a GPU is one that VMMs emulate for a VM's screen. */
bool device_is_screen(const struct device *d);

/**
 * devices_new_gpu() - find a GPU that was not there before
 * @now: functions that are there
 * @before: functions that were there, of devices_list()
 * @others: addresses that other requests have, separated by blanks
 *
 * Return: the first one; NULL for none.
 */
const struct device *devices_new_gpu(const struct devices *now, const char *before,
				     const char *others);

/* Write ADDRESS/NUMBER of each, separated by blanks. Return false if they do not fit. */
bool devices_list(const struct devices *list, char *text, size_t size);

/* Cut the numbers off a list: a boot gives others. */
void devices_forget_numbers(char *list);

/* Whether @addr is a word of @list. */
bool devices_listed(const char *list, const char *addr);

/* A socket that is readable when the kernel adds, binds or removes a device; -errno. */
int devices_watch(void);
/*
 * Read what the socket has. The addresses of devices of which a driver's probe ended are appended
 * to @bound, separated by blanks, as far as they fit; all else is looked up in sysfs.
 */
void devices_drain(int fd, char *bound, size_t size);

/* Find the render node: /dev/dri/renderD128; "" for none. */
void device_node(const char *root, const char *addr, char *node, size_t size);

/*
 * Whether its driver offers it to programs: its DRM card or its accelerator is there, or the
 * driver needs none (@bound: of devices_drain()). sysfs names the driver from the beginning of its
 * probe on.
 */
bool device_is_ready(const char *root, const struct device *d, const char *bound);

#endif /* AGENT_DEVICES_H */
