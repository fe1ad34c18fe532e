// SPDX-License-Identifier: GPL-2.0-only
/*
 * gpuctl dev bind and unbind on a machine made of files, whose kernel is the few
 * lines of kernel_write() and kernel_modprobe().
 */
#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "pci_gpu.h"
#include "tap.h"

#define GPU	"0000:00:10.0"
#define DISK	"0000:00:03.0"
#define BRIDGE	"0000:00:1f.0"
#define PCI	"/sys/bus/pci/devices/"
#define PARENTS	"/sys/class/mdev_bus/"
#define VIRTIO	"/sys/bus/virtio/devices/"
#define DRIVERS	"/sys/bus/virtio/drivers/"

static struct {
	char root[64];
	char log[1024];			/* writes to sysfs and loaded modules */
	const char *installed;		/* modules that modprobe finds */
	const char *refuses;		/* driver that takes nothing */
	const char *eager;		/* driver that takes what is free, at once */
	bool stuck;			/* a driver that lets go of nothing */
	bool unprivileged;
	bool broken_module;
	size_t waited;			/* vGPUs that were waited for */
	struct mgpu_vgpu_info vgpus[6];
	size_t nr_vgpus;
	int vgpus_err;
} m;

static char *at(const char *path)
{
	static char buf[4][PCI_GPU_PATH];
	static unsigned int next;
	char *to = buf[next++ % 4];

	snprintf(to, PCI_GPU_PATH, "%s%s", m.root, path);
	return to;
}

static void make_dir(const char *path)
{
	char *full = at(path);
	char *slash;

	for (slash = full + strlen(m.root) + 1; (slash = strchr(slash, '/'));
	     slash++) {
		*slash = '\0';
		mkdir(full, 0777);
		*slash = '/';
	}
	mkdir(full, 0777);
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[PCI_GPU_PATH];
	FILE *file;

	make_dir(dir);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(at(path), "w");
	if (!TAP_CHECK(file))
		return;
	fputs(text, file);
	fclose(file);
}

static void link_to(const char *target, const char *path)
{
	unlink(at(path));
	TAP_EQ(symlink(target, at(path)), 0);
}

static bool is_there(const char *path)
{
	struct stat st;

	return !lstat(at(path), &st);
}

/* ---- the kernel ---- */

static void attach(const char *driver)
{
	char target[PCI_GPU_PATH];

	snprintf(target, sizeof(target), "../../../../bus/virtio/drivers/%s",
		 driver);
	link_to(target, VIRTIO "virtio3/driver");
}

static bool is_driver(const char *driver)
{
	char target[PCI_GPU_PATH] = "";
	const char *name;

	if (readlink(at(VIRTIO "virtio3/driver"), target, sizeof(target) - 1) < 0)
		return !*driver;
	name = strrchr(target, '/') + 1;
	return !strcmp(name, driver);
}

static void logged(const char *what, const char *which)
{
	size_t len = strlen(m.log);

	snprintf(m.log + len, sizeof(m.log) - len, "%s %s;", what, which);
}

static int kernel_write(const struct pci_host *host, const char *path,
			const char *text)
{
	char driver[PCI_GPU_NAME];
	char file[16];

	if (m.unprivileged)
		return -EACCES;
	TAP_STR(text, "virtio3");
	if (!TAP_CHECK(!strncmp(path, host->root, strlen(host->root))) ||
	    !TAP_EQ(sscanf(path + strlen(host->root),
			   DRIVERS "%63[^/]/%15s", driver, file), 2))
		return -ENOENT;
	logged(file, driver);
	if (!strcmp(file, "unbind")) {
		if (!is_driver(driver))
			return -ENODEV;
		if (m.stuck)
			return 0;
		unlink(at(VIRTIO "virtio3/driver"));
		if (m.eager)
			attach(m.eager);
		return 0;
	}
	TAP_STR(file, "bind");
	if (!is_driver(""))
		return -EBUSY;
	if (m.refuses && !strcmp(m.refuses, driver))
		return -ENODEV;
	attach(driver);
	return 0;
}

/* A module takes by itself what has no driver. */
static int kernel_modprobe(const struct pci_host *host, const char *module)
{
	char dir[PCI_GPU_PATH];

	(void)host;
	logged("modprobe", module);
	if (m.broken_module)
		return -ECHILD;
	if (!m.installed || strcmp(m.installed, module))
		return -ENOENT;
	snprintf(dir, sizeof(dir), DRIVERS "%s", module);
	make_dir(dir);
	if (is_driver("") && (!m.refuses || strcmp(m.refuses, module)))
		attach(module);
	return 0;
}

static int kernel_vgpus(const struct pci_host *host,
			struct mgpu_vgpu_info **vgpus, size_t *nr,
			struct mgpu_error *err)
{
	(void)host;
	if (m.vgpus_err)
		return mgpu_fail(err, m.vgpus_err, "the module does not answer");
	*vgpus = malloc(sizeof(m.vgpus));
	memcpy(*vgpus, m.vgpus, sizeof(m.vgpus));
	*nr = m.nr_vgpus;
	return 0;
}

static void kernel_waits(const struct pci_host *host, size_t vgpus)
{
	(void)host;
	/* said before, not after */
	TAP_CHECK(is_driver(PCI_GPU_OURS));
	m.waited = vgpus;
}

static const struct pci_host host = {
	.root = m.root,
	.write = kernel_write,
	.modprobe = kernel_modprobe,
	.vgpus = kernel_vgpus,
	.waits = kernel_waits,
};

static int rm(const char *path, const struct stat *st, int flag,
	      struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void unplug(void)
{
	nftw(m.root, rm, 16, FTW_DEPTH | FTW_PHYS);
}

/* A machine with a GPU, driven by @driver, a disk and a bridge. */
static bool plug(const char *driver)
{
	memset(&m, 0, sizeof(m));
	strcpy(m.root, "/tmp/test_gpuctl_bind.XXXXXX");
	if (!TAP_CHECK(mkdtemp(m.root)))
		return false;
	put(PCI GPU, "vendor", "0x1af4\n");
	make_dir(PCI GPU "/virtio3");
	make_dir(PCI GPU "/virtio_pci");	/* not a device */
	link_to("../../../bus/pci/drivers/virtio-pci", PCI GPU "/driver");
	put(VIRTIO "virtio3", "device", "0x0010\n");
	put(PCI DISK, "vendor", "0x1af4\n");
	make_dir(PCI DISK "/virtio0");
	put(VIRTIO "virtio0", "device", "0x0002\n");
	put(PCI BRIDGE, "vendor", "0x8086\n");
	make_dir("/sys/bus/virtio/drivers");
	make_dir("/proc");
	if (*driver) {
		make_dir(DRIVERS PCI_GPU_THEIRS);
		make_dir(DRIVERS PCI_GPU_OURS);
		attach(driver);
	}
	return true;
}

static void check_error(const struct mgpu_error *err, const char *pattern)
{
	if (!TAP_CHECK(strstr(err->text, pattern)))
		tap_diag("says '%s', nothing like '%s'", err->text, pattern);
	TAP_CHECK(!strchr(err->text, '\n'));
	/* it was not cut */
	TAP_CHECK(strlen(err->text) < sizeof(err->text) - 1);
}

/* ---- tests ---- */

static void bind_from_theirs(void)
{
	static const char *const names[] = {
		GPU, "00:10.0", "0:0:10.0", "00000000:00:10.0"
	};
	struct mgpu_error err = { 0 };
	struct pci_gpu gpu;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!plug(PCI_GPU_THEIRS))
			return;
		TAP_EQ(pci_gpu_bind(&host, names[i], false, &gpu, &err), 0);
		TAP_STR(gpu.address, GPU);
		TAP_STR(gpu.virtio, "virtio3");
		TAP_STR(gpu.before, PCI_GPU_THEIRS);
		TAP_STR(gpu.driver, PCI_GPU_OURS);
		TAP_CHECK(is_driver(PCI_GPU_OURS));
		TAP_STR(m.log, "unbind virtio_gpu;bind mgpu_virtio;");

		/* again: nothing is done */
		TAP_EQ(pci_gpu_bind(&host, names[i], false, &gpu, &err), 0);
		TAP_STR(gpu.before, PCI_GPU_OURS);
		TAP_STR(m.log, "unbind virtio_gpu;bind mgpu_virtio;");
		unplug();
	}
}

static void bind_loads_the_module(void)
{
	struct mgpu_error err = { 0 };
	struct pci_gpu gpu;

	/* it takes the GPU itself when that has no driver */
	if (!plug(""))
		return;
	m.installed = PCI_GPU_OURS;
	TAP_EQ(pci_gpu_bind(&host, GPU, false, &gpu, &err), 0);
	TAP_STR(gpu.before, "");
	TAP_STR(gpu.driver, PCI_GPU_OURS);
	TAP_STR(m.log, "modprobe mgpu_virtio;");
	unplug();

	/* and is there before the other one is taken away */
	if (!plug(""))
		return;
	m.installed = PCI_GPU_OURS;
	make_dir(DRIVERS PCI_GPU_THEIRS);
	attach(PCI_GPU_THEIRS);
	TAP_EQ(pci_gpu_bind(&host, GPU, false, &gpu, &err), 0);
	TAP_STR(m.log, "modprobe mgpu_virtio;unbind virtio_gpu;bind mgpu_virtio;");
	unplug();
}

static void bind_without_a_module(void)
{
	struct mgpu_error err = { 0 };
	struct pci_gpu gpu;

	if (!plug(""))
		return;
	make_dir(DRIVERS PCI_GPU_THEIRS);
	attach(PCI_GPU_THEIRS);
	TAP_EQ(pci_gpu_bind(&host, GPU, true, &gpu, &err), -ENOPKG);
	check_error(&err, "mgpu.ko and then mgpu_virtio.ko with insmod");
	TAP_CHECK(is_driver(PCI_GPU_THEIRS));
	m.broken_module = true;
	TAP_EQ(pci_gpu_bind(&host, GPU, true, &gpu, &err), -ECHILD);
	check_error(&err, "cannot be loaded");
	TAP_CHECK(is_driver(PCI_GPU_THEIRS));
	TAP_STR(m.log, "modprobe mgpu_virtio;modprobe mgpu_virtio;");
	unplug();
}

static void bind_gives_back_what_is_not_taken(void)
{
	struct mgpu_error err = { 0 };
	struct pci_gpu gpu;

	if (!plug(PCI_GPU_THEIRS))
		return;
	m.refuses = PCI_GPU_OURS;
	TAP_EQ(pci_gpu_bind(&host, GPU, false, &gpu, &err), -ENODEV);
	check_error(&err, "kernel's log says why; its driver is virtio_gpu");
	TAP_CHECK(is_driver(PCI_GPU_THEIRS));
	/* without one before, it has none again */
	unlink(at(VIRTIO "virtio3/driver"));
	TAP_EQ(pci_gpu_bind(&host, GPU, false, &gpu, &err), -ENODEV);
	check_error(&err, "it has no driver now");
	unplug();
}

static void others_may_be_faster(void)
{
	struct mgpu_error err = { 0 };
	struct pci_gpu gpu;

	if (!plug(PCI_GPU_THEIRS))
		return;
	m.eager = PCI_GPU_OURS;
	TAP_EQ(pci_gpu_bind(&host, GPU, false, &gpu, &err), 0);
	TAP_STR(gpu.driver, PCI_GPU_OURS);
	m.eager = PCI_GPU_THEIRS;
	TAP_EQ(pci_gpu_unbind(&host, GPU, false, false, &gpu, &err), 0);
	TAP_STR(gpu.driver, PCI_GPU_THEIRS);
	TAP_STR(m.log, "unbind virtio_gpu;unbind mgpu_virtio;");
	/* a third one */
	make_dir(DRIVERS "vfio");
	m.eager = "vfio";
	TAP_EQ(pci_gpu_bind(&host, GPU, false, &gpu, &err), -EBUSY);
	check_error(&err, "its driver is vfio");
	TAP_EQ(pci_gpu_unbind(&host, GPU, false, true, &gpu, &err), -EBUSY);
	check_error(&err, "neither mgpu_virtio nor virtio_gpu");
	TAP_CHECK(is_driver("vfio"));
	unplug();
}

static void kernel_says_no(void)
{
	struct mgpu_error err = { 0 };
	struct pci_gpu gpu;

	if (!plug(PCI_GPU_THEIRS))
		return;
	m.unprivileged = true;
	TAP_EQ(pci_gpu_bind(&host, GPU, false, &gpu, &err), -EACCES);
	check_error(&err, "needs root");
	m.unprivileged = false;
	m.stuck = true;
	TAP_EQ(pci_gpu_bind(&host, GPU, false, &gpu, &err), -EBUSY);
	check_error(&err, "stays there");
	TAP_CHECK(is_driver(PCI_GPU_THEIRS));
	unplug();
}

static void what_is_no_gpu(void)
{
	static const struct {
		const char *address;
		int err;
		const char *says;
	} t[] = {
		{ "", -EINVAL, "as in 0000:00:10.0" },
		{ "gpu", -EINVAL, "no PCI address" },
		{ "00:10", -EINVAL, "no PCI address" },
		{ "00:10.8", -EINVAL, "no PCI address" },
		{ "00:20.0", -EINVAL, "no PCI address" },
		{ "0000:00:10.0/", -EINVAL, "no PCI address" },
		{ "../0000:00:10.0", -EINVAL, "no PCI address" },
		{ "0000:00:10.0 ", -EINVAL, "no PCI address" },
		{ "-1:00:10.0", -EINVAL, "no PCI address" },
		{ "0000:00:10.00", -EINVAL, "no PCI address" },
		{ "123456789:00:10.0", -EINVAL, "no PCI address" },
		{ "00:11.0", -ENODEV, "there is no PCI device 0000:00:11.0" },
		{ "1:00:10.0", -ENODEV, "there is no PCI device 0001:00:10.0" },
		{ DISK, -ENODEV, "a virtio device of kind 2" },
		{ BRIDGE, -ENODEV, "no virtio device (its vendor is 0x8086" },
	};
	struct mgpu_error err = { 0 };
	struct pci_gpu gpu;
	size_t i;

	if (!plug(PCI_GPU_THEIRS))
		return;
	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		TAP_EQ(pci_gpu_bind(&host, t[i].address, true, &gpu, &err),
		       t[i].err);
		check_error(&err, t[i].says);
		TAP_EQ(pci_gpu_unbind(&host, t[i].address, true, true, &gpu,
				      &err), t[i].err);
		check_error(&err, t[i].says);
	}
	/* another driver of the PCI function */
	rmdir(at(PCI GPU "/virtio3"));
	link_to("../../../bus/pci/drivers/vfio-pci", PCI GPU "/driver");
	TAP_EQ(pci_gpu_bind(&host, GPU, true, &gpu, &err), -ENODEV);
	check_error(&err, "is driven by vfio-pci, not by virtio-pci");
	unlink(at(PCI GPU "/driver"));
	TAP_EQ(pci_gpu_bind(&host, GPU, true, &gpu, &err), -ENODEV);
	check_error(&err, "modprobe virtio_pci");
	TAP_STR(m.log, "");
	unplug();
}

/* /dev/null is the card's file. */
static void open_card(const char *pid, const char *comm, const char *file)
{
	char path[PCI_GPU_PATH];

	snprintf(path, sizeof(path), "/proc/%s", pid);
	put(path, "comm", comm);
	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	make_dir(path);
	snprintf(path, sizeof(path), "/proc/%s/fd/7", pid);
	link_to(file, path);
}

static void a_card_in_use(const char *below)
{
	struct mgpu_error err = { 0 };
	char path[PCI_GPU_PATH];
	struct pci_gpu gpu;
	struct stat st;
	char line[32];

	if (!plug(PCI_GPU_THEIRS))
		return;
	TAP_EQ(stat("/dev/null", &st), 0);
	snprintf(line, sizeof(line), "%u:%u\n", major(st.st_rdev),
		 minor(st.st_rdev));
	snprintf(path, sizeof(path), PCI GPU "%s/drm/card0", below);
	put(path, "dev", line);
	snprintf(path, sizeof(path), PCI GPU "%s/drm/renderD128", below);
	put(path, "dev", "226:128\n");
	open_card("12", "cat\n", "/dev/zero");
	open_card("self", "gpuctl\n", "/dev/null");	/* no process's */
	TAP_EQ(pci_gpu_bind(&host, GPU, false, &gpu, &err), 0);

	unlink(at(VIRTIO "virtio3/driver"));
	attach(PCI_GPU_THEIRS);
	open_card("812", "Xorg\n", "/dev/null");
	*m.log = '\0';
	TAP_EQ(pci_gpu_bind(&host, GPU, false, &gpu, &err), -EBUSY);
	check_error(&err, "is in use: by Xorg (pid 812): end them first, or say 'force'");
	TAP_CHECK(is_driver(PCI_GPU_THEIRS));
	TAP_STR(m.log, "");

	open_card("813", "a\n", "/dev/null");
	open_card("814", "b\n", "/dev/null");
	open_card("815", "c\n", "/dev/null");
	open_card("816", "d\n", "/dev/null");
	TAP_EQ(pci_gpu_bind(&host, GPU, false, &gpu, &err), -EBUSY);
	check_error(&err, " and 2 more");

	TAP_EQ(pci_gpu_bind(&host, GPU, true, &gpu, &err), 0);
	TAP_STR(gpu.driver, PCI_GPU_OURS);
	unplug();
}

static void open_files_refuse(void)
{
	a_card_in_use("");
	a_card_in_use("/virtio3");
}

static void the_console_refuses(void)
{
	struct mgpu_error err = { 0 };
	struct pci_gpu gpu;

	if (!plug(PCI_GPU_THEIRS))
		return;
	put(PCI GPU "/graphics/fb0", "dev", "29:0\n");
	put("/sys/class/vtconsole/vtcon0", "name", "(S) dummy device\n");
	put("/sys/class/vtconsole/vtcon0", "bind", "1\n");
	put("/sys/class/vtconsole/vtcon1", "name", "(M) frame buffer device\n");
	put("/sys/class/vtconsole/vtcon1", "bind", "1\n");
	TAP_EQ(pci_gpu_bind(&host, GPU, false, &gpu, &err), -EBUSY);
	check_error(&err, "'echo 0 >/sys/class/vtconsole/vtcon1/bind' takes it away, or say 'force'");
	TAP_CHECK(is_driver(PCI_GPU_THEIRS));
	put("/sys/class/vtconsole/vtcon1", "bind", "0\n");
	TAP_EQ(pci_gpu_bind(&host, GPU, false, &gpu, &err), 0);
	unplug();

	/* the console is on another card */
	if (!plug(PCI_GPU_THEIRS))
		return;
	put("/sys/class/vtconsole/vtcon1", "name", "(M) frame buffer device\n");
	put("/sys/class/vtconsole/vtcon1", "bind", "1\n");
	TAP_EQ(pci_gpu_bind(&host, GPU, false, &gpu, &err), 0);
	unplug();
}

static void unbind_gives_it_back(void)
{
	struct mgpu_error err = { 0 };
	struct pci_gpu gpu;

	if (!plug(PCI_GPU_OURS))
		return;
	TAP_EQ(pci_gpu_unbind(&host, "00:10.0", false, false, &gpu, &err), 0);
	TAP_STR(gpu.before, PCI_GPU_OURS);
	TAP_STR(gpu.driver, PCI_GPU_THEIRS);
	TAP_CHECK(!gpu.missing);
	TAP_STR(m.log, "unbind mgpu_virtio;bind virtio_gpu;");
	TAP_EQ(pci_gpu_unbind(&host, GPU, false, false, &gpu, &err), 0);
	TAP_EQ(pci_gpu_unbind(&host, GPU, true, false, &gpu, &err), 0);
	TAP_STR(gpu.driver, PCI_GPU_THEIRS);
	TAP_STR(m.log, "unbind mgpu_virtio;bind virtio_gpu;");
	unplug();

	if (!plug(PCI_GPU_OURS))
		return;
	TAP_EQ(pci_gpu_unbind(&host, GPU, true, false, &gpu, &err), 0);
	TAP_STR(gpu.driver, "");
	TAP_EQ(pci_gpu_unbind(&host, GPU, true, false, &gpu, &err), 0);
	TAP_STR(m.log, "unbind mgpu_virtio;");
	/* a GPU without a driver may be given to one later */
	TAP_EQ(pci_gpu_unbind(&host, GPU, false, false, &gpu, &err), 0);
	TAP_STR(gpu.before, "");
	TAP_STR(gpu.driver, PCI_GPU_THEIRS);
	unplug();
}

static void unbind_loads_their_module(void)
{
	struct mgpu_error err = { 0 };
	struct pci_gpu gpu;

	if (!plug(PCI_GPU_OURS))
		return;
	rmdir(at(DRIVERS PCI_GPU_THEIRS));
	m.installed = PCI_GPU_THEIRS;
	TAP_EQ(pci_gpu_unbind(&host, GPU, false, false, &gpu, &err), 0);
	TAP_STR(gpu.driver, PCI_GPU_THEIRS);
	TAP_STR(m.log, "unbind mgpu_virtio;modprobe virtio_gpu;");
	unplug();

	/* a kernel without it */
	if (!plug(PCI_GPU_OURS))
		return;
	rmdir(at(DRIVERS PCI_GPU_THEIRS));
	TAP_EQ(pci_gpu_unbind(&host, GPU, false, false, &gpu, &err), 0);
	TAP_CHECK(gpu.missing);
	TAP_STR(gpu.driver, "");
	unplug();

	if (!plug(PCI_GPU_OURS))
		return;
	m.refuses = PCI_GPU_THEIRS;
	TAP_EQ(pci_gpu_unbind(&host, GPU, false, false, &gpu, &err), -ENODEV);
	check_error(&err, "virtio_gpu does not take 0000:00:10.0");
	unplug();
}

static void vms_refuse(void)
{
	struct mgpu_error err = { 0 };
	struct pci_gpu gpu;
	unsigned int i;

	if (!plug(PCI_GPU_OURS))
		return;
	for (i = 0; i < 6; i++) {
		struct mgpu_vgpu_info *vgpu = &m.vgpus[i];

		snprintf(vgpu->uuid, sizeof(vgpu->uuid),
			 "83b8f4f2-509f-382f-3c1e-00000000000%u", i);
		strcpy(vgpu->dev_name, i == 5 ? "mgpu_soft.0" : GPU);
		vgpu->open = i > 0;
		vgpu->tgid = 100 + i;
	}
	/* a vGPU that no VMM has open, and one of another device */
	m.nr_vgpus = 1;
	m.vgpus[1].open = 0;
	m.nr_vgpus = 2;
	TAP_EQ(pci_gpu_unbind(&host, GPU, false, false, &gpu, &err), 0);
	TAP_EQ(m.waited, 0);
	TAP_EQ(pci_gpu_bind(&host, GPU, false, &gpu, &err), 0);
	*m.log = '\0';

	m.vgpus[1].open = 1;
	TAP_EQ(pci_gpu_unbind(&host, GPU, false, false, &gpu, &err), -EBUSY);
	check_error(&err, ": 83b8f4f2-509f-382f-3c1e-000000000001 (pid 101): shut");
	m.nr_vgpus = 6;
	TAP_EQ(pci_gpu_unbind(&host, GPU, false, false, &gpu, &err), -EBUSY);
	check_error(&err, "3 (pid 103) and 1 more: shut");
	TAP_CHECK(!strstr(err.text, "105"));
	TAP_STR(m.log, "");
	TAP_CHECK(is_driver(PCI_GPU_OURS));

	m.vgpus_err = -EIO;
	TAP_EQ(pci_gpu_unbind(&host, GPU, false, false, &gpu, &err), -EIO);
	check_error(&err, "does not answer");
	m.vgpus_err = 0;

	TAP_EQ(pci_gpu_unbind(&host, GPU, true, true, &gpu, &err), 0);
	TAP_EQ(m.waited, 4);
	TAP_STR(gpu.driver, "");
	unplug();
}

static void types_are_listed(void)
{
	struct mdev_type *types = NULL;
	struct mgpu_error err = { 0 };
	size_t nr = 7;

	if (!plug(PCI_GPU_OURS))
		return;
	TAP_EQ(mdev_types(&host, GPU, &types, &nr, &err), -ENOENT);
	check_error(&err, "offers nothing");
	put(PARENTS GPU "/mdev_supported_types/virtio-pci-small", "description",
	    "virtio-gpu 2D\n");
	put(PARENTS GPU "/mdev_supported_types/virtio-pci-small",
	    "available_instances", "12\n");
	make_dir(PARENTS GPU "/mdev_supported_types/virtio-pci-large");
	TAP_EQ(mdev_types(&host, GPU, &types, &nr, &err), 0);
	if (TAP_EQ(nr, 2)) {
		TAP_STR(types[0].name, "virtio-pci-large");
		TAP_STR(types[0].description, "");
		TAP_CHECK(types[0].available == ~0ul);
		TAP_STR(types[1].name, "virtio-pci-small");
		TAP_STR(types[1].description, "virtio-gpu 2D");
		TAP_EQ(types[1].available, 12);
	}
	free(types);
	TAP_CHECK(is_there(PARENTS GPU));
	unplug();
	TAP_CHECK(!is_there(""));
}

int main(void)
{
	tap_run(bind_from_theirs, "a GPU is taken from virtio_gpu, once");
	tap_run(bind_loads_the_module, "the module is loaded before, and may take the GPU itself");
	tap_run(bind_without_a_module, "without the module, everything stays");
	tap_run(bind_gives_back_what_is_not_taken,
		"a GPU that its new driver does not take goes back");
	tap_run(others_may_be_faster, "the driver that takes the GPU first is read, not guessed");
	tap_run(kernel_says_no, "the kernel's refusal is told");
	tap_run(what_is_no_gpu, "a device that is no GPU is refused with the reason");
	tap_run(open_files_refuse, "a GPU whose files are open is taken only by force");
	tap_run(the_console_refuses, "a GPU with the console is refused with the way out");
	tap_run(unbind_gives_it_back, "a GPU is given back to virtio_gpu, or left");
	tap_run(unbind_loads_their_module, "virtio_gpu is loaded, if there is one");
	tap_run(vms_refuse, "a GPU that VMs use is given back only by force");
	tap_run(types_are_listed, "types are listed by name");
	return tap_done();
}
