// SPDX-License-Identifier: GPL-2.0-only
/*
 * The machine: sysfs, VFIO, PCI capabilities, the virtio handshake and queues.
 * The GPU's commands are in gpu.c.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/pci_regs.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vmm.h"

#define PAGE		4096u

/* ---- time ---- */

bool goes_on(uint64_t end, bool enough)
{
	return now_ms() < end + (enough ? 0 : (uint64_t)VMM_TIMEOUT);
}

int vmm_slow(void)
{
	static int slow;
	const char *env;

	if (!slow) {
		env = getenv("MGPU_SLOW");
		slow = env ? atoi(env) : 1;
		if (slow < 1)
			slow = 1;
	}
	return slow;
}

bool vmm_long(void)
{
	const char *env = getenv("MGPU_LONG");

	return env && atoi(env) > 0;
}

/* ---- verdicts ---- */

/* To the stream of the harness's own remarks, a line in one piece. */
static void say(const char *before, const char *fmt, va_list ap)
{
	char what[512];

	vsnprintf(what, sizeof(what), fmt, ap);
	fprintf(stderr, "# %s%s\n", before, what);
}

void remark(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("", fmt, ap);
	va_end(ap);
}

void measured_again(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("measured again: ", fmt, ap);
	va_end(ap);
}

#define TRIALS		5
#define RIGHT		4

bool trials_go_on(const struct trials *t)
{
	return t->right < RIGHT && t->wrong <= TRIALS - RIGHT;
}

void trial(struct trials *t, bool right)
{
	if (right)
		t->right++;
	else
		t->wrong++;
}

bool mostly_right(const struct trials *t)
{
	return t->right >= RIGHT;
}

/*
 * The harness ends a test that takes too long with alarm(), for which the
 * linker puts this (see the Makefile).
 */
unsigned int __real_alarm(unsigned int seconds);
unsigned int __wrap_alarm(unsigned int seconds);

unsigned int __wrap_alarm(unsigned int seconds)
{
	return __real_alarm(seconds * (unsigned int)vmm_slow());
}

/* ---- sysfs ---- */

/* The text of a file without its last newline; its length. */
int sysfs_read(const char *path, char *buf, size_t len)
{
	ssize_t n;
	int fd, err;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, buf, len - 1);
	err = errno;
	close(fd);
	if (n < 0)
		return -err;
	if (n && buf[n - 1] == '\n')
		n--;
	buf[n] = 0;
	return (int)n;
}

long long sysfs_number(const char *path)
{
	char buf[64], *end;
	long long v;
	int ret;

	ret = sysfs_read(path, buf, sizeof(buf));
	if (ret < 0)
		return ret;
	v = strtoll(buf, &end, 0);
	return *end || end == buf ? -EINVAL : v;
}

int sysfs_write(const char *path, const char *text)
{
	int fd, ret = 0;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

int cgroup_remove(const char *path)
{
	uint64_t end = now_ms() + VMM_TIMEOUT;

	while (rmdir(path)) {
		if (errno != EBUSY || now_ms() > end)
			return -errno;
		sleep_ms(5);
	}
	return 0;
}

/* Nor may it have what is mapped here: the display keeps its device open. */
pid_t sysfs_write_aside(const char *path, const char *text)
{
	pid_t pid = fork();

	if (!pid) {
		close_range(3, ~0u, 0);
		execl("/bin/sh", "sh", "-c", "printf %s \"$1\" >\"$2\"", "sh",
		      text, path, NULL);
		_exit(127);
	}
	return pid;
}

bool ends(pid_t pid, int timeout_ms)
{
	uint64_t end = now_ms() + (uint64_t)timeout_ms;
	int status;
	pid_t got;

	while (!(got = waitpid(pid, &status, WNOHANG))) {
		if (now_ms() > end)
			return false;
		sleep_ms(5);
	}
	return got == pid && status == 0;
}

const char *vmm_parent(void)
{
	const char *env = getenv("MGPU_PARENT");

	return env ? env : VMM_PARENT;
}

/* ---- modules ---- */

int module_remove(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? -errno : 0;
}

int module_insert(const char *name)
{
	const char *build = getenv("BUILD"), *kernel = getenv("KERNEL");
	const char *soft = strcmp(name, "mgpu_soft") ? NULL : getenv("MGPU_SOFT");
	char path[PATH_MAX];
	int fd, ret;

	if (!build || !kernel)
		return -ENOENT;
	snprintf(path, sizeof(path), "%s/kmod/%s/%s.ko", build, kernel, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = syscall(SYS_finit_module, fd, soft ? soft : "", 0) ? -errno : 0;
	close(fd);
	return ret;
}

/* ---- mediated devices ---- */

/* Types are named after the driver of the parent. */
int mdev_type_path(const char *type, const char *file, char *path, size_t len)
{
	char link[256], driver[256];
	ssize_t got;
	int n;

	snprintf(link, sizeof(link), "%s/%s/driver", VMM_BUS, vmm_parent());
	got = readlink(link, driver, sizeof(driver) - 1);
	if (got < 0)
		return -errno;
	driver[got] = 0;
	n = snprintf(path, len, "%s/%s/mdev_supported_types/%s-%s/%s", VMM_BUS,
		     vmm_parent(), strrchr(driver, '/') + 1, type, file);
	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : 0;
}

long long mdev_available(const char *type)
{
	char path[512];
	int ret;

	ret = mdev_type_path(type, "available_instances", path, sizeof(path));
	return ret ? ret : sysfs_number(path);
}

void mdev_uuid_new(char *uuid)
{
	uint8_t b[16];

	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		abort();
	b[6] = (b[6] & 0x0f) | 0x40;
	b[8] = (b[8] & 0x3f) | 0x80;
	snprintf(uuid, VMM_UUID_LEN + 1,
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9],
		 b[10], b[11], b[12], b[13], b[14], b[15]);
}

int mdev_create(const char *type, const char *uuid)
{
	char path[512];
	int ret;

	ret = mdev_type_path(type, "create", path, sizeof(path));
	return ret ? ret : sysfs_write(path, uuid);
}

int mdev_remove(const char *uuid)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s/remove", VMM_DEVICES, uuid);
	return sysfs_write(path, "1");
}

bool mdev_exists(const char *uuid)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", VMM_DEVICES, uuid);
	return access(path, F_OK) == 0;
}

unsigned int mdev_count(void)
{
	unsigned int n = 0;
	struct dirent *e;
	DIR *d;

	d = opendir(VMM_DEVICES);
	if (!d)
		return 0;
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

/* ---- opening and closing ---- */

static int group_open(const char *uuid)
{
	char path[256], link[256];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s/iommu_group", VMM_DEVICES, uuid);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return -errno;
	link[n] = 0;
	snprintf(path, sizeof(path), "/dev/vfio/%s", strrchr(link, '/') + 1);
	fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int container_setup(struct vm *vm)
{
	struct vfio_group_status st = { .argsz = sizeof(st) };

	vm->container = open("/dev/vfio/vfio", O_RDWR | O_CLOEXEC);
	if (vm->container < 0)
		return -errno;
	if (ioctl(vm->container, VFIO_GET_API_VERSION) != VFIO_API_VERSION ||
	    !ioctl(vm->container, VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU))
		return -ENOTSUP;
	if (ioctl(vm->group, VFIO_GROUP_GET_STATUS, &st))
		return -errno;
	if (!(st.flags & VFIO_GROUP_FLAGS_VIABLE))
		return -EPERM;
	if (ioctl(vm->group, VFIO_GROUP_SET_CONTAINER, &vm->container) ||
	    ioctl(vm->container, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU))
		return -errno;
	return 0;
}

/* ---- iommufd: newer than the headers of the distribution ---- */

#ifndef VFIO_DEVICE_BIND_IOMMUFD
struct vfio_device_bind_iommufd {
	uint32_t argsz;
	uint32_t flags;
	int32_t iommufd;
	uint32_t out_devid;
};

#define VFIO_DEVICE_BIND_IOMMUFD	_IO(VFIO_TYPE, VFIO_BASE + 18)

struct vfio_device_attach_iommufd_pt {
	uint32_t argsz;
	uint32_t flags;
	uint32_t pt_id;
};

#define VFIO_DEVICE_ATTACH_IOMMUFD_PT	_IO(VFIO_TYPE, VFIO_BASE + 19)
#endif

struct ioas_alloc {
	uint32_t size;
	uint32_t flags;
	uint32_t out_ioas_id;
};

struct ioas_map {
	uint32_t size;
	uint32_t flags;
	uint32_t ioas_id;
	uint32_t reserved;
	uint64_t user_va;
	uint64_t length;
	uint64_t iova;
};

struct ioas_unmap {
	uint32_t size;
	uint32_t ioas_id;
	uint64_t iova;
	uint64_t length;
};

#define IOAS_ALLOC	_IO(';', 0x81)
#define IOAS_MAP	_IO(';', 0x85)
#define IOAS_UNMAP	_IO(';', 0x86)
#define IOAS_MAP_FLAGS	7	/* at an address, writable, readable */

/* The device's own node, vfioN. */
static int cdev_open(const char *uuid)
{
	char path[512];
	struct dirent *e;
	int fd = -1;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s/vfio-dev", VMM_DEVICES, uuid);
	d = opendir(path);
	if (!d)
		return -EOPNOTSUPP;
	while (fd < 0 && (e = readdir(d))) {
		if (strncmp(e->d_name, "vfio", 4))
			continue;
		snprintf(path, sizeof(path), "/dev/vfio/devices/%s", e->d_name);
		fd = open(path, O_RDWR | O_CLOEXEC);
	}
	if (fd < 0)
		fd = errno == ENOENT ? -EOPNOTSUPP : -errno;
	closedir(d);
	return fd;
}

static int iommufd_setup(struct vm *vm)
{
	struct vfio_device_bind_iommufd bind = { .argsz = sizeof(bind) };
	struct vfio_device_attach_iommufd_pt pt = { .argsz = sizeof(pt) };
	struct ioas_alloc alloc = { .size = sizeof(alloc) };

	vm->device = cdev_open(vm->uuid);
	if (vm->device < 0)
		return vm->device;
	vm->iommufd = open("/dev/iommu", O_RDWR | O_CLOEXEC);
	if (vm->iommufd < 0)
		return errno == ENOENT ? -EOPNOTSUPP : -errno;
	bind.iommufd = vm->iommufd;
	if (ioctl(vm->device, VFIO_DEVICE_BIND_IOMMUFD, &bind) ||
	    ioctl(vm->iommufd, IOAS_ALLOC, &alloc))
		return -errno;
	vm->ioas = alloc.out_ioas_id;
	pt.pt_id = vm->ioas;
	return ioctl(vm->device, VFIO_DEVICE_ATTACH_IOMMUFD_PT, &pt) ? -errno : 0;
}

static int device_setup(struct vm *vm)
{
	uint32_t i;

	if (vm->device < 0)
		vm->device = ioctl(vm->group, VFIO_GROUP_GET_DEVICE_FD,
				   vm->uuid);
	if (vm->device < 0)
		return -errno;
	vm->info.argsz = sizeof(vm->info);
	if (ioctl(vm->device, VFIO_DEVICE_GET_INFO, &vm->info))
		return -errno;
	for (i = 0; i < ARRAY_LEN(vm->region) && i < vm->info.num_regions;
	     i++) {
		vm->region[i].argsz = sizeof(vm->region[i]);
		vm->region[i].index = i;
		if (ioctl(vm->device, VFIO_DEVICE_GET_REGION_INFO,
			  &vm->region[i]))
			memset(&vm->region[i], 0, sizeof(vm->region[i]));
	}
	return 0;
}

static int group_setup(struct vm *vm)
{
	vm->group = group_open(vm->uuid);
	return vm->group < 0 ? vm->group : container_setup(vm);
}

static int open_with(struct vm *vm, const char *uuid, size_t ram,
		     int (*setup)(struct vm *vm))
{
	char name[VMM_UUID_LEN + 1];
	unsigned int i;
	int ret;

	/* uuid may be vm's own. */
	snprintf(name, sizeof(name), "%s", uuid);
	memset(vm, 0, sizeof(*vm));
	vm->container = vm->group = vm->iommufd = vm->device = -1;
	vm->intx = vm->req_irq = -1;
	for (i = 0; i < ARRAY_LEN(vm->irq); i++)
		vm->irq[i] = -1;
	memcpy(vm->uuid, name, sizeof(name));

	ret = setup(vm);
	if (ret)
		goto fail;

	vm->ram = mmap(NULL, ram, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (vm->ram == MAP_FAILED) {
		vm->ram = NULL;
		ret = -errno;
		goto fail;
	}
	vm->ram_size = ram;
	ret = vm_map(vm, vm->ram, ram, VMM_RAM_BASE);
	if (!ret)
		ret = device_setup(vm);
	if (!ret)
		ret = vm_discover(vm);
	if (!ret)
		return 0;
fail:
	vm_close(vm);
	return ret;
}

int vm_open(struct vm *vm, const char *uuid, size_t ram)
{
	return open_with(vm, uuid, ram, group_setup);
}

int vm_open_iommufd(struct vm *vm, const char *uuid, size_t ram)
{
	return open_with(vm, uuid, ram, iommufd_setup);
}

int vm_new(struct vm *vm, const char *type, size_t ram)
{
	char uuid[VMM_UUID_LEN + 1];
	int ret;

	mdev_uuid_new(uuid);
	ret = mdev_create(type, uuid);
	if (ret) {
		memset(vm, 0, sizeof(*vm));
		vm->container = vm->group = vm->iommufd = vm->device = -1;
		return ret;
	}
	ret = vm_open(vm, uuid, ram);
	snprintf(vm->uuid, sizeof(vm->uuid), "%s", uuid);
	vm->made = true;
	if (ret)
		vm_delete(vm);
	return ret;
}

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void vm_close(struct vm *vm)
{
	unsigned int i;

	if (vm->display)
		munmap(vm->display, vm->display_size);
	vm->display = NULL;
	fd_close(&vm->device);
	if (vm->group >= 0)
		ioctl(vm->group, VFIO_GROUP_UNSET_CONTAINER);
	fd_close(&vm->group);
	fd_close(&vm->container);
	fd_close(&vm->iommufd);
	if (!vm->ram)
		return;
	fd_close(&vm->intx);
	fd_close(&vm->req_irq);
	for (i = 0; i < ARRAY_LEN(vm->irq); i++)
		fd_close(&vm->irq[i]);
	munmap(vm->ram, vm->ram_size);
	vm->ram = NULL;
}

void vm_delete(struct vm *vm)
{
	vm_close(vm);
	if (vm->made)
		mdev_remove(vm->uuid);
	vm->made = false;
}

/* ---- guest memory ---- */

/* Never given back; NULL when the machine's memory is used up. */
void *vm_alloc(struct vm *vm, size_t len, size_t align)
{
	size_t at = (vm->ram_used + align - 1) / align * align;

	if (at > vm->ram_size || vm->ram_size - at < len)
		return NULL;
	vm->ram_used = at + len;
	return vm->ram + at;
}

uint64_t vm_addr(const struct vm *vm, const void *p)
{
	return VMM_RAM_BASE + (uint64_t)((const uint8_t *)p - vm->ram);
}

int vm_map(struct vm *vm, void *p, size_t len, uint64_t iova)
{
	struct vfio_iommu_type1_dma_map map = {
		.argsz = sizeof(map),
		.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE,
		.vaddr = (uintptr_t)p,
		.iova = iova,
		.size = len,
	};
	struct ioas_map at = {
		.size = sizeof(at),
		.flags = IOAS_MAP_FLAGS,
		.ioas_id = vm->ioas,
		.user_va = (uintptr_t)p,
		.length = len,
		.iova = iova,
	};

	if (vm->iommufd >= 0)
		return ioctl(vm->iommufd, IOAS_MAP, &at) ? -errno : 0;
	return ioctl(vm->container, VFIO_IOMMU_MAP_DMA, &map) ? -errno : 0;
}

int vm_unmap(struct vm *vm, uint64_t iova, size_t len)
{
	struct vfio_iommu_type1_dma_unmap unmap = {
		.argsz = sizeof(unmap),
		.iova = iova,
		.size = len,
	};
	struct ioas_unmap at = {
		.size = sizeof(at),
		.ioas_id = vm->ioas,
		.iova = iova,
		.length = len,
	};

	if (vm->iommufd >= 0)
		return ioctl(vm->iommufd, IOAS_UNMAP, &at) ? -errno : 0;
	if (ioctl(vm->container, VFIO_IOMMU_UNMAP_DMA, &unmap))
		return -errno;
	return unmap.size == len ? 0 : -ENOENT;
}

/* ---- regions ---- */

int vm_read(struct vm *vm, unsigned int region, uint64_t off, void *buf,
	    size_t len)
{
	ssize_t n = pread(vm->device, buf, len,
			  (off_t)(vm->region[region].offset + off));

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int vm_write(struct vm *vm, unsigned int region, uint64_t off,
	     const void *buf, size_t len)
{
	ssize_t n = pwrite(vm->device, buf, len,
			   (off_t)(vm->region[region].offset + off));

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

/* All ones when it fails, as a read from a PCI device that is not there. */
static uint32_t reg_read(struct vm *vm, unsigned int region, uint64_t off,
			 unsigned int bytes)
{
	uint32_t val = 0;

	if (vm_read(vm, region, off, &val, bytes))
		val = bytes == 4 ? ~0u : (1u << 8 * bytes) - 1;
	return val;
}

uint32_t cfg_read(struct vm *vm, uint32_t off, unsigned int bytes)
{
	return reg_read(vm, VFIO_PCI_CONFIG_REGION_INDEX, off, bytes);
}

int cfg_write(struct vm *vm, uint32_t off, unsigned int bytes, uint32_t val)
{
	return vm_write(vm, VFIO_PCI_CONFIG_REGION_INDEX, off, &val, bytes);
}

/* ---- virtio structures ---- */

static void cap_virtio(struct vm *vm, uint8_t pos)
{
	struct vmm_cap cap = { .found = true, .pos = pos };
	unsigned int type;

	type = cfg_read(vm, pos + VIRTIO_PCI_CAP_CFG_TYPE, 1);
	cap.bar = cfg_read(vm, pos + VIRTIO_PCI_CAP_BAR, 1);
	cap.id = cfg_read(vm, pos + offsetof(struct virtio_pci_cap, id), 1);
	cap.offset = cfg_read(vm, pos + VIRTIO_PCI_CAP_OFFSET, 4);
	cap.length = cfg_read(vm, pos + VIRTIO_PCI_CAP_LENGTH, 4);
	/* Section 4.1.4: the first one of a type counts. */
	if (type >= ARRAY_LEN(vm->cap) || vm->cap[type].found)
		return;
	vm->cap[type] = cap;
	if (type == VIRTIO_PCI_CAP_NOTIFY_CFG)
		vm->notify_mult = cfg_read(vm, pos +
					   VIRTIO_PCI_NOTIFY_CAP_MULT, 4);
}

int vm_discover(struct vm *vm)
{
	unsigned int type, seen;
	uint8_t pos;

	memset(vm->cap, 0, sizeof(vm->cap));
	if (!(cfg_read(vm, PCI_STATUS, 2) & PCI_STATUS_CAP_LIST))
		return -ENODEV;
	pos = cfg_read(vm, PCI_CAPABILITY_LIST, 1) & ~3u;
	for (seen = 0; pos; seen++) {
		if (pos < PCI_STD_HEADER_SIZEOF || seen > 48)
			return -ELOOP;
		switch (cfg_read(vm, pos + PCI_CAP_LIST_ID, 1)) {
		case PCI_CAP_ID_VNDR:
			cap_virtio(vm, pos);
			break;
		case PCI_CAP_ID_MSIX:
			vm->msix_pos = pos;
			vm->nr_vectors = (cfg_read(vm, pos + PCI_MSIX_FLAGS,
						   2) &
					  PCI_MSIX_FLAGS_QSIZE) + 1;
			break;
		}
		pos = cfg_read(vm, pos + PCI_CAP_LIST_NEXT, 1) & ~3u;
	}
	for (type = VIRTIO_PCI_CAP_COMMON_CFG;
	     type <= VIRTIO_PCI_CAP_DEVICE_CFG; type++)
		if (!vm->cap[type].found || vm->cap[type].bar > 5)
			return -ENODEV;
	return cfg_write(vm, PCI_COMMAND, 2,
			 PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER);
}

volatile uint8_t *hostmem_map(struct vm *vm, size_t *len)
{
	const struct vmm_cap *cap = &vm->cap[VIRTIO_PCI_CAP_SHARED_MEMORY_CFG];
	const struct vfio_region_info *region = &vm->region[cap->bar];
	void *p;

	if (!cap->found || cap->id != VIRTIO_GPU_SHM_ID_HOST_VISIBLE ||
	    !(region->flags & VFIO_REGION_INFO_FLAG_MMAP)) {
		errno = ENODEV;
		return NULL;
	}
	*len = cap->length;
	p = mmap(NULL, cap->length, PROT_READ | PROT_WRITE, MAP_SHARED, vm->device,
		 (off_t)(region->offset + cap->offset));
	return p == MAP_FAILED ? NULL : p;
}

uint32_t vio_read(struct vm *vm, unsigned int cap, uint32_t off,
		  unsigned int bytes)
{
	return reg_read(vm, vm->cap[cap].bar, vm->cap[cap].offset + off,
			bytes);
}

int vio_write(struct vm *vm, unsigned int cap, uint32_t off,
	      unsigned int bytes, uint32_t val)
{
	return vm_write(vm, vm->cap[cap].bar, vm->cap[cap].offset + off, &val,
			bytes);
}

uint64_t vio_features(struct vm *vm)
{
	uint64_t f;

	cc_write(vm, device_feature_select, 0);
	f = cc_read(vm, device_feature);
	cc_write(vm, device_feature_select, 1);
	return f | (uint64_t)cc_read(vm, device_feature) << 32;
}

int vio_status(struct vm *vm)
{
	return (int)cc_read(vm, device_status);
}

int vio_reset(struct vm *vm)
{
	uint64_t end = now_ms() + VMM_TIMEOUT;
	int ret;

	ret = cc_write(vm, device_status, 0);
	while (!ret && vio_status(vm)) {
		if (now_ms() > end)
			return -ETIMEDOUT;
		sleep_ms(1);
	}
	return ret;
}

/* Section 3.1.1, up to FEATURES_OK; -ENOTSUP when the device refuses. */
int vio_negotiate(struct vm *vm, uint64_t features)
{
	uint8_t status = VIRTIO_CONFIG_S_ACKNOWLEDGE;
	int ret;

	ret = cc_write(vm, device_status, status);
	if (ret)
		return ret;
	status |= VIRTIO_CONFIG_S_DRIVER;
	cc_write(vm, device_status, status);
	cc_write(vm, guest_feature_select, 0);
	cc_write(vm, guest_feature, (uint32_t)features);
	cc_write(vm, guest_feature_select, 1);
	cc_write(vm, guest_feature, (uint32_t)(features >> 32));
	status |= VIRTIO_CONFIG_S_FEATURES_OK;
	cc_write(vm, device_status, status);
	return vio_status(vm) & VIRTIO_CONFIG_S_FEATURES_OK ? 0 : -ENOTSUP;
}

int vio_setup_queue(struct vm *vm, unsigned int q)
{
	struct vmm_vq *vq = &vm->vq[q];
	uint64_t addr;
	uint16_t size;

	cc_write(vm, queue_select, q);
	size = cc_read(vm, queue_size);
	if (!size || size > VMM_MAX_VQ || size & (size - 1))
		return -ENODEV;
	if (!vq->desc) {
		vq->desc = vm_alloc(vm, size * sizeof(*vq->desc), PAGE);
		vq->avail = vm_alloc(vm, 6 + 2u * size, PAGE);
		vq->used = vm_alloc(vm, 6 + 8u * size, PAGE);
		vq->req = vm_alloc(vm, size * PAGE, PAGE);
		vq->resp = vm_alloc(vm, size * PAGE, PAGE);
		if (!vq->resp)
			return -ENOMEM;
	}
	memset(vq->desc, 0, size * sizeof(*vq->desc));
	memset(vq->avail, 0, 6 + 2u * size);
	memset(vq->used, 0, 6 + 8u * size);
	memset(vq->done, 0, sizeof(vq->done));
	memset(vq->owned, 0, sizeof(vq->owned));
	vq->size = size;
	vq->avail_idx = 0;
	vq->used_idx = 0;
	vq->free = size == 64 ? ~0ull : (1ull << size) - 1;
	vq->notify_off = cc_read(vm, queue_notify_off);

	addr = vm_addr(vm, vq->desc);
	cc_write(vm, queue_desc_lo, (uint32_t)addr);
	cc_write(vm, queue_desc_hi, (uint32_t)(addr >> 32));
	addr = vm_addr(vm, vq->avail);
	cc_write(vm, queue_avail_lo, (uint32_t)addr);
	cc_write(vm, queue_avail_hi, (uint32_t)(addr >> 32));
	addr = vm_addr(vm, vq->used);
	cc_write(vm, queue_used_lo, (uint32_t)addr);
	cc_write(vm, queue_used_hi, (uint32_t)(addr >> 32));
	return cc_write(vm, queue_enable, 1);
}

int vio_driver_ok(struct vm *vm)
{
	return cc_write(vm, device_status, VIRTIO_CONFIG_S_ACKNOWLEDGE |
			VIRTIO_CONFIG_S_DRIVER | VIRTIO_CONFIG_S_FEATURES_OK |
			VIRTIO_CONFIG_S_DRIVER_OK);
}

void vm_forget(struct vm *vm)
{
	memset(vm->vq, 0, sizeof(vm->vq));
	vm->ram_used = 0;
}

int vm_start(struct vm *vm)
{
	return vm_start_with(vm, VMM_FEATURES);
}

int vm_start_with(struct vm *vm, uint64_t features)
{
	unsigned int q;
	int ret;

	ret = vio_reset(vm);
	if (!ret)
		ret = vio_negotiate(vm, features);
	if (!ret)
		ret = irq_msix(vm, 3);
	if (ret)
		return ret;
	cc_write(vm, msix_config, 0);
	if (cc_read(vm, msix_config) != 0)
		return -EBUSY;
	for (q = 0; q < VMM_NR_VQS; q++) {
		cc_write(vm, queue_select, q);
		cc_write(vm, queue_msix_vector, q + 1);
		if (cc_read(vm, queue_msix_vector) != q + 1)
			return -EBUSY;
		ret = vio_setup_queue(vm, q);
		if (ret)
			return ret;
	}
	return vio_driver_ok(vm);
}

int vm_new_started(struct vm *vm, const char *type, size_t ram)
{
	int ret;

	ret = vm_new(vm, type, ram);
	if (ret)
		return ret;
	ret = vm_start(vm);
	if (ret)
		vm_delete(vm);
	return ret;
}

/* ---- interrupts ---- */

static int irq_set_fds(struct vm *vm, unsigned int index, const int *fds,
		       unsigned int n)
{
	union {
		struct vfio_irq_set set;
		uint8_t bytes[sizeof(struct vfio_irq_set) + 8 * sizeof(int)];
	} u;

	memset(&u, 0, sizeof(u));
	u.set.argsz = sizeof(u.set) + n * sizeof(int);
	u.set.flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
	u.set.index = index;
	u.set.count = n;
	memcpy(u.set.data, fds, n * sizeof(int));
	return ioctl(vm->device, VFIO_DEVICE_SET_IRQS, &u.set) ? -errno : 0;
}

static int irq_disable(struct vm *vm, unsigned int index)
{
	struct vfio_irq_set set = {
		.argsz = sizeof(set),
		.flags = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER,
		.index = index,
	};

	return ioctl(vm->device, VFIO_DEVICE_SET_IRQS, &set) ? -errno : 0;
}

/* Do an action on an interrupt, with DATA_NONE or DATA_BOOL in @flags. */
int irq_action(struct vm *vm, unsigned int index, unsigned int start,
	       uint32_t flags, uint8_t val)
{
	union {
		struct vfio_irq_set set;
		uint8_t bytes[sizeof(struct vfio_irq_set) + 4];
	} u;

	memset(&u, 0, sizeof(u));
	u.set.argsz = sizeof(u.set) +
		      (flags & VFIO_IRQ_SET_DATA_BOOL ? 1 : 0);
	u.set.flags = flags;
	u.set.index = index;
	u.set.start = start;
	u.set.count = 1;
	u.set.data[0] = val;
	return ioctl(vm->device, VFIO_DEVICE_SET_IRQS, &u.set) ? -errno : 0;
}

static int eventfd_new(int *fd)
{
	if (*fd < 0)
		*fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return *fd < 0 ? -errno : 0;
}

/* As QEMU: the guest's write first, then the eventfds. */
int irq_msix(struct vm *vm, unsigned int vectors)
{
	unsigned int i;
	int ret;

	if (!vm->msix_pos)
		return -ENODEV;
	ret = cfg_write(vm, vm->msix_pos + PCI_MSIX_FLAGS, 2,
			PCI_MSIX_FLAGS_ENABLE);
	for (i = 0; !ret && i < vectors; i++)
		ret = eventfd_new(&vm->irq[i]);
	if (ret)
		return ret;
	return irq_set_fds(vm, VFIO_PCI_MSIX_IRQ_INDEX, vm->irq, vectors);
}

int irq_msix_off(struct vm *vm)
{
	int ret;

	ret = cfg_write(vm, vm->msix_pos + PCI_MSIX_FLAGS, 2, 0);
	return ret ? ret : irq_disable(vm, VFIO_PCI_MSIX_IRQ_INDEX);
}

int irq_intx(struct vm *vm)
{
	int ret = eventfd_new(&vm->intx);

	return ret ? ret :
	       irq_set_fds(vm, VFIO_PCI_INTX_IRQ_INDEX, &vm->intx, 1);
}

int irq_request(struct vm *vm)
{
	int ret = eventfd_new(&vm->req_irq);

	return ret ? ret :
	       irq_set_fds(vm, VFIO_PCI_REQ_IRQ_INDEX, &vm->req_irq, 1);
}

int irq_wait(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t n;

	if (fd < 0 || poll(&p, 1, timeout_ms) <= 0 ||
	    read(fd, &n, sizeof(n)) != sizeof(n))
		return 0;
	return (int)n;
}

/* ---- queues ---- */

/* The descriptors of a buffer that was used are free again. */
static void vq_claim(struct vmm_vq *vq, unsigned int head)
{
	vq->free |= vq->owned[head];
	vq->owned[head] = 0;
	vq->done[head] = false;
}

/* Make room for @n descriptors, if need be from used buffers without a waiter. */
static bool desc_room(struct vm *vm, unsigned int q, unsigned int n)
{
	struct vmm_vq *vq = &vm->vq[q];
	unsigned int i;

	if (n <= (unsigned int)__builtin_popcountll(vq->free))
		return true;
	vq_collect(vm, q);
	for (i = 0; i < vq->size; i++)
		if (vq->done[i])
			vq_claim(vq, i);
	return n <= (unsigned int)__builtin_popcountll(vq->free);
}

static int desc_take(struct vmm_vq *vq)
{
	int i;

	if (!vq->free)
		return -EBUSY;
	i = __builtin_ctzll(vq->free);
	vq->free &= ~(1ull << i);
	return i;
}

static void desc_put(struct vring_desc *d, const struct vmm_seg *s,
		     uint16_t next, bool last)
{
	d->addr = s->addr;
	d->len = s->len;
	d->flags = (s->write ? VRING_DESC_F_WRITE : 0) |
		   (last ? 0 : VRING_DESC_F_NEXT);
	d->next = next;
}

static int add_indirect(struct vm *vm, struct vmm_vq *vq,
			const struct vmm_seg *segs, unsigned int n)
{
	struct vring_desc *table;
	unsigned int i;
	int head;

	table = vm_alloc(vm, n * sizeof(*table), 16);
	if (!table)
		return -ENOMEM;
	head = desc_take(vq);
	if (head < 0)
		return head;
	for (i = 0; i < n; i++)
		desc_put(&table[i], &segs[i], i + 1, i + 1 == n);
	vq->desc[head].addr = vm_addr(vm, table);
	vq->desc[head].len = n * sizeof(*table);
	vq->desc[head].flags = VRING_DESC_F_INDIRECT;
	vq->owned[head] = 1ull << head;
	return head;
}

/* Descriptors for a chain, not yet made available; its head. */
int vq_add(struct vm *vm, unsigned int q, const struct vmm_seg *segs,
	   unsigned int n, bool indirect)
{
	struct vmm_vq *vq = &vm->vq[q];
	unsigned int i;
	uint64_t owned = 0;
	int at[VMM_MAX_VQ];

	if (!desc_room(vm, q, indirect ? 1 : n))
		return -EBUSY;
	if (indirect)
		return add_indirect(vm, vq, segs, n);
	for (i = 0; i < n; i++) {
		at[i] = desc_take(vq);
		owned |= 1ull << at[i];
	}
	for (i = 0; i < n; i++)
		desc_put(&vq->desc[at[i]], &segs[i], i + 1 < n ? at[i + 1] : 0,
			 i + 1 == n);
	vq->owned[at[0]] = owned;
	return at[0];
}

void vq_publish(struct vm *vm, unsigned int q, uint16_t head)
{
	struct vmm_vq *vq = &vm->vq[q];

	vq->avail->ring[vq->avail_idx % vq->size] = head;
	vq->avail_idx++;
	__atomic_store_n(&vq->avail->idx, vq->avail_idx, __ATOMIC_RELEASE);
}

/* Always rings: the device may suppress doorbells, but must take them. */
int vq_kick(struct vm *vm, unsigned int q)
{
	int ret = vio_write(vm, VIRTIO_PCI_CAP_NOTIFY_CFG,
			    vm->vq[q].notify_off * vm->notify_mult, 2, q);

	vm->vq[q].kicks += !ret;
	return ret;
}

int vq_interrupt(struct vm *vm, unsigned int q, int timeout_ms)
{
	int n = irq_wait(vm->irq[q + 1], timeout_ms);

	vm->vq[q].interrupts += (uint64_t)n;
	return n;
}

/* Takes what the device has used; number of buffers. */
unsigned int vq_collect(struct vm *vm, unsigned int q)
{
	struct vmm_vq *vq = &vm->vq[q];
	struct vring_used_elem *e;
	unsigned int n = 0;
	uint16_t idx;

	idx = __atomic_load_n(&vq->used->idx, __ATOMIC_ACQUIRE);
	while (vq->used_idx != idx) {
		e = &vq->used->ring[vq->used_idx % vq->size];
		vq->used_idx++;
		n++;
		if (e->id >= vq->size)
			continue;
		vq->done[e->id] = true;
		vq->len[e->id] = e->len;
	}
	return n;
}

/*
 * Waits for one buffer by its head, for an interrupt when there is an eventfd;
 * bytes that the device wrote.
 */
int vq_wait(struct vm *vm, unsigned int q, uint16_t head, int timeout_ms)
{
	struct vmm_vq *vq = &vm->vq[q];
	uint64_t end = now_ms() + (uint64_t)timeout_ms;
	uint64_t now;

	for (;;) {
		vq_collect(vm, q);
		if (vq->done[head]) {
			vq_claim(vq, head);
			return (int)vq->len[head];
		}
		now = now_ms();
		if (now >= end)
			return -ETIMEDOUT;
		if (vm->irq[q + 1] >= 0)
			vq_interrupt(vm, q, (int)(end - now));
		else
			sleep_ms(1);
	}
}

/* Return whether the device uses no buffer within the time. */
bool vq_quiet(struct vm *vm, unsigned int q, int timeout_ms)
{
	uint64_t end = now_ms() + (uint64_t)timeout_ms;

	while (now_ms() < end) {
		if (__atomic_load_n(&vm->vq[q].used->idx, __ATOMIC_ACQUIRE) !=
		    vm->vq[q].used_idx)
			return false;
		sleep_ms(2);
	}
	return true;
}
