// SPDX-License-Identifier: GPL-2.0-only
/* PCI devices of the guest. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "devices.h"
#include "sysfs.h"

#define PCI		"/sys/bus/pci/devices"
#define CLASS_DISPLAY	0x03
#define CLASS_PROCESSOR	0x0b
#define SUBCLASS_CO	0x40
#define CLASS_ACCEL	0x12

static void read_driver(const char *dir, char *driver, size_t size)
{
	char path[768], to[512];
	const char *name;
	ssize_t n;

	*driver = '\0';
	snprintf(path, sizeof(path), "%s/driver", dir);
	n = readlink(path, to, sizeof(to) - 1);
	if (n <= 0)
		return;
	to[n] = '\0';
	name = strrchr(to, '/');
	snprintf(driver, size, "%.*s", (int)size - 1, name ? name + 1 : to);
}

static void read_device(const char *root, const char *addr, struct device *d)
{
	char dir[640], path[768], line[32];
	struct stat st;

	snprintf(dir, sizeof(dir), "%s" PCI "/%s", root, addr);
	d->number = stat(dir, &st) ? 0 : st.st_ino;
	snprintf(path, sizeof(path), "%s/class", dir);
	snprintf(d->addr, sizeof(d->addr), "%.15s", addr);
	d->class = read_line(path, line, sizeof(line)) ? (uint32_t)strtoul(line, NULL, 16) : 0;
	snprintf(path, sizeof(path), "%s/vendor", dir);
	d->vendor = read_line(path, line, sizeof(line)) ? (uint32_t)strtoul(line, NULL, 16) : 0;
	read_driver(dir, d->driver, sizeof(d->driver));
}

static int by_addr(const void *a, const void *b)
{
	return strcmp(((const struct device *)a)->addr, ((const struct device *)b)->addr);
}

int devices_scan(const char *root, struct devices *list)
{
	char path[640];
	const struct dirent *e;
	DIR *dir;

	list->nr = 0;
	snprintf(path, sizeof(path), "%s" PCI, root);
	dir = opendir(path);
	if (!dir)
		return -errno;
	while (list->nr < DEVICES_MAX && (e = readdir(dir)))
		if (*e->d_name != '.' && strlen(e->d_name) < DEVICE_ADDR)
			read_device(root, e->d_name, &list->d[list->nr++]);
	closedir(dir);
	qsort(list->d, list->nr, sizeof(*list->d), by_addr);
	return 0;
}

const struct device *devices_find(const struct devices *list, const char *addr)
{
	for (size_t i = 0; i < list->nr; i++)
		if (!strcmp(list->d[i].addr, addr))
			return &list->d[i];
	return NULL;
}

bool device_is_gpu(const struct device *d)
{
	uint32_t base = d->class >> 16, sub = d->class >> 8 & 0xff;

	return base == CLASS_DISPLAY || base == CLASS_ACCEL ||
	       (base == CLASS_PROCESSOR && sub == SUBCLASS_CO);
}

bool device_is_screen(const struct device *d)
{
	/* QEMU's standard VGA, QXL, Cirrus, VMware's, and virtio */
	static const uint32_t vendors[] = { 0x1234, 0x1b36, 0x1013, 0x15ad, 0x1af4 };

	for (size_t i = 0; i < sizeof(vendors) / sizeof(*vendors); i++)
		if (d->vendor == vendors[i])
			return true;
	return false;
}

bool devices_listed(const char *list, const char *addr)
{
	size_t length = strlen(addr);

	for (const char *at = strstr(list, addr); at; at = strstr(at + 1, addr))
		if ((at == list || at[-1] == ' ') && (!at[length] || at[length] == ' '))
			return length;
	return false;
}

/* Whether a list of devices_list() has a device; a word without a number is any at its address. */
static bool was_there(const char *list, const struct device *d)
{
	size_t length = strlen(d->addr);

	for (const char *at = strstr(list, d->addr); at; at = strstr(at + 1, d->addr))
		if ((at == list || at[-1] == ' ') &&
		    (at[length] != '/' || strtoull(at + length + 1, NULL, 10) == d->number))
			return true;
	return false;
}

const struct device *devices_new_gpu(const struct devices *now, const char *before,
				     const char *others)
{
	for (size_t i = 0; i < now->nr; i++)
		if (device_is_gpu(&now->d[i]) && !was_there(before, &now->d[i]) &&
		    !devices_listed(others, now->d[i].addr))
			return &now->d[i];
	return NULL;
}

bool devices_list(const struct devices *list, char *text, size_t size)
{
	size_t at = 0;

	*text = '\0';
	for (size_t i = 0; i < list->nr; i++) {
		at += (size_t)snprintf(text + at, size - at, "%s%s/%" PRIu64, i ? " " : "",
				       list->d[i].addr, list->d[i].number);
		if (at >= size)
			return false;
	}
	return true;
}

void devices_forget_numbers(char *list)
{
	char *to = list;

	for (const char *from = list; *from;)
		if (*from == '/')
			from += strcspn(from, " ");
		else
			*to++ = *from++;
	*to = '\0';
}

int devices_watch(void)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			NETLINK_KOBJECT_UEVENT), ret;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

/* Append the address of a device from "bind@/devices/pci0000:00/ADDR". */
static void take_bind(const char *message, char *bound, size_t size)
{
	const char *addr = strrchr(message, '/');
	size_t at = strlen(bound);

	if (!strncmp(message, "bind@", 5) && addr && at + strlen(addr) < size)
		sprintf(bound + at, "%s%s", at ? " " : "", addr + 1);
}

void devices_drain(int fd, char *bound, size_t size)
{
	char buffer[4096];
	ssize_t n;

	/* A socket that lost messages says so once: a look at sysfs is due anyway. */
	while ((n = recv(fd, buffer, sizeof(buffer) - 1, MSG_DONTWAIT)) > 0 || errno == ENOBUFS) {
		buffer[n > 0 ? n : 0] = '\0';
		take_bind(buffer, bound, size);
	}
}

/* Find an entry of a folder by how its name begins. */
static bool find_entry(const char *path, const char *begin, char *name, size_t size)
{
	DIR *dir = opendir(path);
	const struct dirent *e;
	bool found = false;

	while (dir && !found && (e = readdir(dir))) {
		found = !strncmp(e->d_name, begin, strlen(begin));
		if (found)
			snprintf(name, size, "%s", e->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

/* Find a DRM device of a PCI function, or of the virtio device that it has. */
static bool find_drm(const char *root, const char *addr, const char *begin, char *name,
		     size_t size)
{
	char dir[640], path[1024], virtio[256];

	snprintf(dir, sizeof(dir), "%s" PCI "/%s", root, addr);
	snprintf(path, sizeof(path), "%s/drm", dir);
	if (find_entry(path, begin, name, size))
		return true;
	if (!find_entry(dir, "virtio", virtio, sizeof(virtio)))
		return false;
	snprintf(path, sizeof(path), "%s/%s/drm", dir, virtio);
	return find_entry(path, begin, name, size);
}

void device_node(const char *root, const char *addr, char *node, size_t size)
{
	char name[256];

	*node = '\0';
	if (find_drm(root, addr, "renderD", name, sizeof(name)))
		snprintf(node, size, "/dev/dri/%.32s", name);
}

bool device_is_ready(const char *root, const struct device *d, const char *bound)
{
	char path[640], name[256];

	/* DRM's card comes behind its render node. */
	if (find_drm(root, d->addr, "card", name, sizeof(name)))
		return true;
	snprintf(path, sizeof(path), "%s" PCI "/%s/accel", root, d->addr);
	if (find_entry(path, "accel", name, sizeof(name)))
		return true;
	/* virtio-pci is a bus: the driver of its device may come later. */
	return devices_listed(bound, d->addr) && strcmp(d->driver, "virtio-pci");
}
