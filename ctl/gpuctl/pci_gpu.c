// SPDX-License-Identifier: GPL-2.0-only
/* Bind a physical virtio-gpu to a driver, through sysfs. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pci.h"
#include "pci_gpu.h"
#include "pci_users.h"
#include "program.h"
#include "sysfs.h"

#define VIRTIO_VENDOR	0x1af4
#define VIRTIO_ID_GPU	16

#define MDEV_PARENTS	"/sys/class/mdev_bus"
#define VIRTIO_DEVICES	"/sys/bus/virtio/devices"
#define VIRTIO_DRIVERS	"/sys/bus/virtio/drivers"

/* ---- the machine ---- */

static int machine_write(const struct pci_host *host, const char *path,
			 const char *text)
{
	ssize_t n;
	int err;
	int fd;

	(void)host;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	err = n < 0 ? -errno : 0;
	close(fd);
	return err;
}

static int machine_modprobe(const struct pci_host *host, const char *module)
{
	char name[] = "modprobe";
	char quiet[] = "-q";
	char *const argv[] = { name, quiet, strdupa(module), NULL };
	char path[PCI_GPU_PATH];
	int status;
	int err;

	(void)host;
	err = program_run(argv, "/sbin/modprobe", false, &status);
	if (err)
		return err;
	if (!status)
		return 0;
	/* With -q modprobe prints nothing about a module that does not exist. */
	snprintf(path, sizeof(path), "/sys/module/%s", module);
	return access(path, F_OK) ? -ENOENT : -ECHILD;
}

static int machine_vgpus(const struct pci_host *host,
			 struct mgpu_vgpu_info **vgpus, size_t *nr,
			 struct mgpu_error *err)
{
	struct mgpu *mgpu;
	int ret;

	(void)host;
	ret = mgpu_open(&mgpu, err);
	if (ret)
		return ret;
	ret = mgpu_vgpu_list(mgpu, NULL, vgpus, nr, err);
	mgpu_close(mgpu);
	return ret;
}

static void machine_waits(const struct pci_host *host, size_t vgpus)
{
	(void)host;
	fprintf(stderr, "gpuctl: asks the VMMs of %zu vGPU%s to let go, and waits until they have\n",
		vgpus, vgpus == 1 ? "" : "s");
}

const struct pci_host pci_machine = {
	.root = "",
	.write = machine_write,
	.modprobe = machine_modprobe,
	.vgpus = machine_vgpus,
	.waits = machine_waits,
};

/* ---- files ---- */

/* Make a path on the host; false, with an empty path, if it is too long. */
static bool on_host(const struct pci_host *host, char path[PCI_GPU_PATH],
		    const char *fmt, ...)
{
	size_t len = strlen(host->root);
	va_list ap;
	int n;

	if (len >= PCI_GPU_PATH) {
		*path = '\0';
		return false;
	}
	memcpy(path, host->root, len);
	va_start(ap, fmt);
	n = vsnprintf(path + len, PCI_GPU_PATH - len, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < PCI_GPU_PATH - len)
		return true;
	*path = '\0';
	return false;
}

static bool exists(const struct pci_host *host, const char *dir,
		   const char *name)
{
	char path[PCI_GPU_PATH];

	return on_host(host, path, "%s/%s", dir, name) && !access(path, F_OK);
}

static unsigned long read_number(const char *path, int base)
{
	char line[32];

	return read_line(path, line, sizeof(line)) ?
		strtoul(line, NULL, base) : ULONG_MAX;
}

/* Read the current driver, which another program may have changed. */
static void look(const struct pci_host *host, struct pci_gpu *gpu)
{
	char path[PCI_GPU_PATH];

	if (on_host(host, path, VIRTIO_DEVICES "/%s", gpu->virtio))
		pci_read_driver(path, gpu->driver);
	else
		*gpu->driver = '\0';
}

static bool has_driver(const struct pci_gpu *gpu, const char *driver)
{
	return !strcmp(gpu->driver, driver);
}

/* ---- finding it ---- */

static int no_virtio(const char *dir, const char *address,
		     struct mgpu_error *err)
{
	char path[PCI_GPU_PATH + 8];
	char driver[PCI_GPU_NAME];
	unsigned long vendor;

	snprintf(path, sizeof(path), "%s/vendor", dir);
	vendor = read_number(path, 16);
	if (vendor != VIRTIO_VENDOR)
		return mgpu_fail(err, -ENODEV,
				 "%s is no virtio device (its vendor is %#lx, not 0x1af4): only a virtio-gpu can be shared so; 'lspci -nn -d 1af4:1050' lists them",
				 address, vendor);
	pci_read_driver(dir, driver);
	if (*driver && strcmp(driver, "virtio-pci"))
		return mgpu_fail(err, -ENODEV,
				 "%s is driven by %s, not by virtio-pci: take it from there with 'echo %s >/sys/bus/pci/drivers/%s/unbind' and give it to virtio-pci with 'echo %s >/sys/bus/pci/drivers/virtio-pci/bind'",
				 address, driver, address, driver, address);
	return mgpu_fail(err, -ENODEV,
			 "%s is not driven by virtio-pci: 'modprobe virtio_pci' and 'echo %s >/sys/bus/pci/drivers/virtio-pci/bind' change that",
			 address, address);
}

static int find_gpu(const struct pci_host *host, const char *text,
		    struct pci_gpu *gpu, struct mgpu_error *err)
{
	char dir[PCI_GPU_PATH];
	char path[PCI_GPU_PATH];
	struct dirent *entry;
	unsigned long kind;
	DIR *files;

	memset(gpu, 0, sizeof(*gpu));
	if (!pci_parse_address(text, gpu->address))
		return mgpu_fail(err, -EINVAL,
				 "'%.64s' is no PCI address: give one as in 0000:00:10.0 or 00:10.0; 'lspci -nn -d 1af4:1050' lists virtio-gpus",
				 text);
	on_host(host, dir, PCI_DEVICES "/%s", gpu->address);
	files = opendir(dir);
	if (!files)
		return mgpu_fail(err, -ENODEV,
				 "there is no PCI device %s; 'lspci -nn -d 1af4:1050' lists virtio-gpus",
				 gpu->address);
	while ((entry = readdir(files)))
		if (!strncmp(entry->d_name, "virtio", 6) &&
		    isdigit((unsigned char)entry->d_name[6]) &&
		    strlen(entry->d_name) < sizeof(gpu->virtio))
			strcpy(gpu->virtio, entry->d_name);
	closedir(files);
	if (!*gpu->virtio)
		return no_virtio(dir, gpu->address, err);

	on_host(host, path, VIRTIO_DEVICES "/%s/device", gpu->virtio);
	kind = read_number(path, 16);
	if (kind != VIRTIO_ID_GPU)
		return mgpu_fail(err, -ENODEV,
				 "%s is a virtio device of kind %lu, and a GPU is %d; 'lspci -nn -d 1af4:1050' lists virtio-gpus",
				 gpu->address, kind, VIRTIO_ID_GPU);
	look(host, gpu);
	strcpy(gpu->before, gpu->driver);
	return 0;
}

/* ---- users of a GPU ---- */

/* Returns -EBUSY, with the users in the text, or 0. */
static int check_users(const struct pci_host *host, const struct pci_gpu *gpu,
		       struct mgpu_error *err)
{
	struct pci_users users;

	if (!pci_users_find(host->root, gpu->address, &users))
		return 0;
	return mgpu_fail(err, -EBUSY, "%s is in use:%s%s%s%s%s%s, or say 'force'",
			 gpu->address, users.nr ? " by " : "", users.names,
			 users.nr && *users.console ? ", and" : "",
			 *users.console ? " the text console is on it; 'echo 0 >" : "",
			 users.console,
			 !*users.console ? ": end them first" :
			 users.nr ? "' takes that away; end the others first" :
			 "' takes it away");
}

#define NAMED	3	/* the first vGPUs in use are named; the others are counted */

__attribute__((format(printf, 3, 4)))
static void append(char *buf, size_t size, const char *fmt, ...)
{
	size_t len = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf + len, size - len, fmt, ap);
	va_end(ap);
}

static bool is_of(const struct mgpu_vgpu_info *vgpu, const struct pci_gpu *gpu)
{
	return vgpu->open && !strcmp(vgpu->dev_name, gpu->address);
}

/* Returns -EBUSY with the VMMs that have vGPUs open; with @force, their number. */
static int check_vgpus(const struct pci_host *host, const struct pci_gpu *gpu,
		       bool force, size_t *open, struct mgpu_error *err)
{
	struct mgpu_vgpu_info *vgpus = NULL;
	char names[256] = "";
	size_t nr = 0;
	size_t i;
	int ret;

	*open = 0;
	ret = host->vgpus(host, &vgpus, &nr, err);
	if (ret)
		return force ? 0 : ret;
	for (i = 0; i < nr; i++) {
		if (!is_of(&vgpus[i], gpu) || (*open)++ >= NAMED)
			continue;
		append(names, sizeof(names), "%s%s (pid %u)",
		       *open > 1 ? ", " : "", vgpus[i].uuid, vgpus[i].tgid);
	}
	free(vgpus);
	if (!*open || force)
		return 0;
	if (*open > NAMED)
		append(names, sizeof(names), " and %zu more", *open - NAMED);
	return mgpu_fail(err, -EBUSY,
			 "VMs use vGPUs of %s: %s: shut them down first, or say 'force', which asks for the vGPUs and waits until they are given back",
			 gpu->address, names);
}

/* ---- drivers ---- */

static int write_driver(const struct pci_host *host, const struct pci_gpu *gpu,
			const char *driver, const char *file)
{
	char path[PCI_GPU_PATH];

	if (!on_host(host, path, VIRTIO_DRIVERS "/%s/%s", driver, file))
		return -ENAMETOOLONG;
	return host->write(host, path, gpu->virtio);
}

static const char *why(int err)
{
	return err == -EACCES || err == -EPERM ?
		"that needs root" : strerror(-err);
}

/* Unbind it from its driver, unless another program has done so. */
static int take_away(const struct pci_host *host, struct pci_gpu *gpu,
		     struct mgpu_error *err)
{
	char driver[PCI_GPU_NAME];
	int ret;

	strcpy(driver, gpu->driver);
	ret = write_driver(host, gpu, driver, "unbind");
	look(host, gpu);
	if (!has_driver(gpu, driver))
		return 0;
	return mgpu_fail(err, ret ? ret : -EBUSY,
			 "taking %s from %s: %s", gpu->address, driver,
			 ret ? why(ret) : "it stays there");
}

/* Bind it to a driver, unless the driver has bound it meanwhile. */
static int give(const struct pci_host *host, struct pci_gpu *gpu,
		const char *driver)
{
	int ret = 0;

	look(host, gpu);
	if (!*gpu->driver)
		ret = write_driver(host, gpu, driver, "bind");
	look(host, gpu);
	if (has_driver(gpu, driver))
		return 0;
	return ret ? ret : *gpu->driver ? -EBUSY : -ENODEV;
}

static int not_taken(const struct pci_gpu *gpu, const char *driver, int ret,
		     struct mgpu_error *err)
{
	return mgpu_fail(err, ret,
			 "%s does not take %s (%s): the kernel's log says why; %s%s",
			 driver, gpu->address, why(ret), *gpu->driver ?
			 "its driver is " : "it has no driver now",
			 gpu->driver);
}

/* Load the module of a driver; -ENOPKG if there is none. */
static int need_driver(const struct pci_host *host, const char *driver)
{
	int ret;

	if (exists(host, VIRTIO_DRIVERS, driver))
		return 0;
	ret = host->modprobe(host, driver);
	if (exists(host, VIRTIO_DRIVERS, driver))
		return 0;
	return ret && ret != -ENOENT ? ret : -ENOPKG;
}

int pci_gpu_bind(const struct pci_host *host, const char *address, bool force,
		 struct pci_gpu *gpu, struct mgpu_error *err)
{
	const char *back;
	int ret;

	ret = find_gpu(host, address, gpu, err);
	if (ret || has_driver(gpu, PCI_GPU_OURS))
		return ret;
	if (*gpu->driver && !force) {
		ret = check_users(host, gpu, err);
		if (ret)
			return ret;
	}
	/* Checks before it is unbound from its driver. */
	ret = need_driver(host, PCI_GPU_OURS);
	if (ret == -ENOPKG)
		return mgpu_fail(err, ret,
				 "the module %s is not loaded, and modprobe finds none: install mgpu's modules, or load mgpu.ko and then %s.ko with insmod",
				 PCI_GPU_OURS, PCI_GPU_OURS);
	if (ret)
		return mgpu_fail(err, ret,
				 "the module %s cannot be loaded: 'modprobe %s' and the kernel's log say why",
				 PCI_GPU_OURS, PCI_GPU_OURS);

	look(host, gpu);
	if (*gpu->driver && !has_driver(gpu, PCI_GPU_OURS)) {
		ret = take_away(host, gpu, err);
		if (ret)
			return ret;
	}
	ret = give(host, gpu, PCI_GPU_OURS);
	if (!ret)
		return 0;

	back = *gpu->before ? gpu->before : NULL;
	if (back && !*gpu->driver)
		give(host, gpu, back);
	return not_taken(gpu, PCI_GPU_OURS, ret, err);
}

int pci_gpu_unbind(const struct pci_host *host, const char *address,
		   bool leave, bool force, struct pci_gpu *gpu,
		   struct mgpu_error *err)
{
	size_t open;
	int ret;

	ret = find_gpu(host, address, gpu, err);
	if (ret)
		return ret;
	if (has_driver(gpu, PCI_GPU_OURS)) {
		ret = check_vgpus(host, gpu, force, &open, err);
		if (ret)
			return ret;
		if (open)
			host->waits(host, open);
		ret = take_away(host, gpu, err);
		if (ret)
			return ret;
	}
	if (has_driver(gpu, PCI_GPU_THEIRS) || (leave && !*gpu->driver))
		return 0;
	if (*gpu->driver)
		return mgpu_fail(err, -EBUSY,
				 "the driver of %s is %s, neither %s nor %s: it is left alone",
				 gpu->address, gpu->driver, PCI_GPU_OURS,
				 PCI_GPU_THEIRS);

	ret = need_driver(host, PCI_GPU_THEIRS);
	if (ret == -ENOPKG) {
		gpu->missing = true;
		return 0;
	}
	if (!ret)
		ret = give(host, gpu, PCI_GPU_THEIRS);
	if (!ret)
		return 0;
	return not_taken(gpu, PCI_GPU_THEIRS, ret, err);
}

/* ---- types ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct mdev_type *)a)->name,
		      ((const struct mdev_type *)b)->name);
}

int mdev_types(const struct pci_host *host, const char *parent,
	       struct mdev_type **types, size_t *nr, struct mgpu_error *err)
{
	struct mdev_type *list = NULL;
	char path[PCI_GPU_PATH];
	char dir[PCI_GPU_PATH - PCI_GPU_NAME - 32];
	struct dirent *entry;
	size_t room = 0;
	DIR *files;

	*nr = 0;
	snprintf(dir, sizeof(dir), MDEV_PARENTS "/%s/mdev_supported_types", parent);
	on_host(host, path, "%s", dir);
	files = opendir(path);
	if (!files)
		return mgpu_fail(err, -errno,
				 "%s: %s: the device offers nothing; the kernel's log may say why",
				 path, strerror(errno));
	while ((entry = readdir(files))) {
		struct mdev_type *type;

		if (entry->d_name[0] == '.' ||
		    strlen(entry->d_name) >= sizeof(type->name))
			continue;
		if (*nr == room) {
			room = room ? room * 2 : 8;
			type = reallocarray(list, room, sizeof(*list));
			if (!type) {
				free(list);
				closedir(files);
				return mgpu_fail(err, -ENOMEM, "out of memory");
			}
			list = type;
		}
		type = &list[(*nr)++];
		memset(type, 0, sizeof(*type));
		strcpy(type->name, entry->d_name);
		on_host(host, path, "%s/%s/description", dir, type->name);
		read_line(path, type->description, sizeof(type->description));
		on_host(host, path, "%s/%s/available_instances", dir,
			type->name);
		type->available = read_number(path, 10);
	}
	closedir(files);
	if (list)
		qsort(list, *nr, sizeof(*list), by_name);
	*types = list;
	return 0;
}
