// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-poold check, and what it reads of this machine, on a model of a machine. */
#include <sys/stat.h>

#include "check.h"
#include "host_private.h"
#include "tap.h"

#include "pool_libvirt.h"

static char root[] = "/tmp/test_pool_check_XXXXXX";
static struct check_line lines[64];
static size_t nr_lines;

/* Write a file of the model, with its folders. */
static void put(const char *path, const char *text)
{
	char full[512], *slash;
	FILE *f;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	if (!text) {
		mkdir(full, 0755);
		return;
	}
	f = fopen(full, "w");
	if (!f)
		abort();
	fputs(text, f);
	fclose(f);
}

static void link_to(const char *target, const char *path)
{
	char full[512];

	put(path, "");
	snprintf(full, sizeof(full), "%s%s", root, path);
	unlink(full);
	if (symlink(target, full))
		abort();
}

static void begin(void)
{
	if (!mkdtemp(root))
		abort();
	local_root = root;
}

static void end(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", root);
	TAP_EQ(system(command), 0);
}

static void add(const struct check_line *l, void *arg)
{
	(void)arg;
	lines[nr_lines++] = *l;
}

static const struct check_line *find(const char *what, const char *part)
{
	size_t i;

	for (i = 0; i < nr_lines; i++)
		if (!strcmp(lines[i].what, what) && strstr(lines[i].text, part))
			return &lines[i];
	for (i = 0; i < nr_lines; i++)
		tap_diag("%s %d: %s; %s", lines[i].what, lines[i].level, lines[i].text,
			 lines[i].mend);
	return NULL;
}

static void libvirt(void)
{
	struct pool_host host = { .name = "h" };
	const struct check_line *l;
	char path[64];

	write_test_host(path, 2, 3);
	snprintf(host.uri, sizeof(host.uri), "test://%s", path);
	TAP_EQ(check_hosts(&host, 1, add, NULL), CHECK_OK);
	TAP_NEED(find("libvirt", "answers at test:///"));
	l = find("gpu", "0000:01:00.0 (AD102 [GeForce RTX 4090]), IOMMU group 1: 0000:01:00.0 (no driver), 0000:01:00.1 (no driver)");
	TAP_NEED(l);
	TAP_EQ(l->level, CHECK_OK);
	TAP_STR(l->host, "h");
	TAP_CHECK(find("vms", "there are 3 VMs"));
	/* what only sysfs tells is that of another machine */
	TAP_CHECK(nr_lines == 4);
	unlink(path);
}

static void none(void)
{
	struct pool_host host = { .name = "h" };
	const struct check_line *l;
	char path[64];

	write_test_host(path, 0, 0);
	snprintf(host.uri, sizeof(host.uri), "test://%s", path);
	TAP_EQ(check_hosts(&host, 1, add, NULL), CHECK_ERROR);
	l = find("gpu", "there is no GPU");
	TAP_NEED(l);
	TAP_EQ(l->level, CHECK_ERROR);
	TAP_CHECK(*l->mend);
	l = find("vms", "there are no VMs");
	TAP_NEED(l);
	TAP_EQ(l->level, CHECK_WARNING);
	unlink(path);
}

static void off(void)
{
	struct pool_host host = { .name = "h" };
	const struct check_line *l;

	begin();
	put("/proc/cmdline", "ro intel_iommu=onx iommu=ptx noiommu=pt\n");
	put("/sys/kernel/iommu_groups", NULL);
	snprintf(host.uri, sizeof(host.uri), "qemu:///system?socket=%s/none", root);
	TAP_EQ(check_hosts(&host, 1, add, NULL), CHECK_ERROR);
	l = find("iommu", "the IOMMU is off");
	TAP_NEED(l);
	TAP_CHECK(strstr(l->mend, "intel_iommu=on"));
	l = find("parameters", "lacks iommu=pt");
	TAP_NEED(l);
	TAP_EQ(l->level, CHECK_WARNING);
	l = find("modules", "the kernel has no vfio_pci");
	TAP_NEED(l);
	TAP_EQ(l->level, CHECK_ERROR);
	l = find("libvirt", "no connection to libvirt");
	TAP_NEED(l);
	TAP_CHECK(strstr(l->mend, "start libvirtd"));
	end();
}

static void on(void)
{
	struct pool_host host = { .name = "h" };

	begin();
	put("/proc/cmdline", "ro intel_iommu=on iommu=pt\n");
	put("/sys/kernel/iommu_groups/0", NULL);
	put("/sys/kernel/iommu_groups/1", NULL);
	put("/sys/module/vfio_pci", NULL);
	put("/sys/module/vfio_iommu_type1", NULL);
	snprintf(host.uri, sizeof(host.uri), "qemu:///system?socket=%s/none", root);
	check_hosts(&host, 1, add, NULL);
	TAP_CHECK(find("iommu", "the IOMMU is on, with 2 groups"));
	TAP_CHECK(find("parameters", "has the IOMMU on, and iommu=pt"));
	TAP_CHECK(find("modules", "the kernel has vfio_pci"));
	TAP_CHECK(find("modules", "the kernel has vfio_iommu_type1"));
	end();
}

static void machine(void)
{
	begin();
	TAP_CHECK(local_is("qemu:///system") && local_is("qemu+unix:///system?socket=/x"));
	TAP_CHECK(!local_is("qemu+ssh://a/system") && !local_is("qemu://a/system"));
	TAP_CHECK(!local_is("qemu+tls:///system") && !local_is("test:///default"));
	put("/sys/bus/pci/devices/0000:01:00.0/boot_vga", "1\n");
	put("/sys/bus/pci/devices/0000:02:00.0/boot_vga", "0\n");
	TAP_CHECK(local_boot_display("0000:01:00.0"));
	TAP_CHECK(!local_boot_display("0000:02:00.0"));
	TAP_CHECK(!local_boot_display("0000:03:00.0"));
	put("/sys/bus/pci/devices/0000:01:00.0/mem_info_vram_total", "25753026560\n");
	TAP_EQ(local_memory_mib("0000:01:00.0"), 24560);
	TAP_EQ(local_memory_mib("0000:02:00.0"), 0);
	TAP_EQ(local_works("0000:01:00.0"), -1);
	put("/sys/bus/pci/devices/0000:01:00.0/power_state", "unknown\n");
	TAP_EQ(local_works("0000:01:00.0"), -1);
	put("/sys/bus/pci/devices/0000:01:00.0/power_state", "D0\n");
	TAP_EQ(local_works("0000:01:00.0"), 1);
	put("/sys/bus/pci/devices/0000:01:00.0/current_link_speed", "16.0 GT/s PCIe\n");
	TAP_EQ(local_works("0000:01:00.0"), 1);
	put("/sys/bus/pci/devices/0000:01:00.0/current_link_speed", "2.5 GT/s PCIe\n");
	TAP_EQ(local_works("0000:01:00.0"), 1);
	put("/sys/bus/pci/devices/0000:01:00.0/max_link_speed", "2.5 GT/s PCIe\n");
	TAP_EQ(local_works("0000:01:00.0"), 1);
	put("/sys/bus/pci/devices/0000:01:00.0/max_link_speed", "16.0 GT/s PCIe\n");
	TAP_EQ(local_works("0000:01:00.0"), 0);
	put("/sys/bus/pci/devices/0000:01:00.0/power_state", "D3hot\n");
	put("/sys/bus/pci/devices/0000:01:00.0/current_link_speed", "16.0 GT/s PCIe\n");
	TAP_EQ(local_works("0000:01:00.0"), 0);
	end();
}

/* A process of this test holds a node of the modelled GPU: /dev/null stands for it. */
static void in_use(void)
{
	char why[256];

	begin();
	put("/sys/bus/pci/devices/0000:01:00.0/drm/card0/dev", "1:3\n");
	put("/sys/bus/pci/devices/0000:02:00.0/drm/card1/dev", "226:77\n");
	put("/proc/812/comm", "Xorg\n");
	link_to("/dev/null", "/proc/812/fd/7");
	TAP_CHECK(local_in_use("0000:01:00.0", why, sizeof(why)));
	TAP_STR(why, "0000:01:00.0 is in use by Xorg (pid 812); end that first");
	TAP_CHECK(!local_in_use("0000:02:00.0", why, sizeof(why)));
	put("/sys/bus/pci/devices/0000:02:00.0/graphics/fb0/dev", "29:77\n");
	put("/sys/class/vtconsole/vtcon1/name", "(M) frame buffer device\n");
	put("/sys/class/vtconsole/vtcon1/bind", "1\n");
	TAP_CHECK(local_in_use("0000:02:00.0", why, sizeof(why)));
	TAP_STR(why, "0000:02:00.0 is in use by the text console; 'echo 0 >/sys/class/vtconsole/vtcon1/bind' takes it away");
	end();
}

static void type(const char *name, const char *available, const char *description)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/class/mdev_bus/mgpu_soft.0/mdev_supported_types/%s/available_instances",
		 name);
	put(path, available);
	snprintf(path, sizeof(path), "/sys/class/mdev_bus/mgpu_soft.0/mdev_supported_types/%s/description",
		 name);
	put(path, description);
}

static struct pool_gpu gpu;
static int nr_gpus;

static int take(const struct pool_gpu *g, void *arg)
{
	(void)arg;
	gpu = *g;
	nr_gpus++;
	return 0;
}

/* A parent that is not on PCI, and its mdevs. */
static void parents(void)
{
	static const char ours[] = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001";
	static const char other[] = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1002";
	static struct held held;
	struct host host = { .config.name = "h", .local = true, .held = &held, .nr_held = 1 };
	char parent[POOL_ADDR_MAX], path[128], target[128];

	begin();
	type("mgpu_soft-large", "3\n", "virtio-gpu 2D, largest mode 1x1, memory 256 MiB, weight 100\n");
	type("mgpu_soft-small-render", "9\n", "virtio-gpu 2D and compute, memory 32 MiB\n");
	type("mgpu_soft-small", "9\n", "virtio-gpu 2D, largest mode 1x1, memory 32 MiB, weight 100\n");
	put("/sys/class/mdev_bus/0000:00:10.0/mdev_supported_types", NULL);
	snprintf(path, sizeof(path), "/sys/devices/mgpu_soft.0/%s", ours);
	put(path, NULL);
	snprintf(path, sizeof(path), "/sys/devices/mgpu_soft.0/%s", other);
	put(path, NULL);
	snprintf(path, sizeof(path), "/sys/bus/mdev/devices/%s", ours);
	snprintf(target, sizeof(target), "../../../devices/mgpu_soft.0/%s", ours);
	link_to(target, path);
	snprintf(path, sizeof(path), "/sys/bus/mdev/devices/%s", other);
	snprintf(target, sizeof(target), "../../../devices/mgpu_soft.0/%s", other);
	link_to(target, path);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/sys/devices/mgpu_soft.0/%s/mdev_type",
			 i ? other : ours);
		link_to("../../../class/mdev_bus/mgpu_soft.0/mdev_supported_types/mgpu_soft-small",
			path);
	}
	held.device.request = 4;
	strcpy(held.device.uuid, ours);
	TAP_EQ(local_parents(&host, take, NULL), 0);
	TAP_EQ(nr_gpus, 1);
	TAP_STR(gpu.name, "h/mgpu_soft.0");
	TAP_STR(gpu.model, "mgpu_soft");
	TAP_STR(gpu.types, "mgpu_soft-small:1:none mgpu_soft-small-render mgpu_soft-large:3:none");
	TAP_EQ(gpu.capabilities, POOL_COMPUTE);
	TAP_EQ(gpu.slots, 10);
	TAP_CHECK(local_has_parent("mgpu_soft.0") && !local_has_parent("mgpu_soft.1"));
	TAP_CHECK(!local_has_parent("0000:00:10.0") && !local_has_parent("../mdev_bus"));
	TAP_EQ(local_capabilities("mgpu_soft.0", "mgpu_soft-small-render"), POOL_COMPUTE);
	TAP_EQ(local_capabilities("mgpu_soft.0", "mgpu_soft-small"), 0);
	TAP_CHECK(local_parent(ours, parent, sizeof(parent)));
	TAP_STR(parent, "mgpu_soft.0");
	TAP_CHECK(!local_parent("83b8f4f2-509f-382f-3c1e-e6bfe0fa1003", parent, sizeof(parent)));
	TAP_CHECK(!local_parent("../devices", parent, sizeof(parent)));
	end();
}

/*
 * A program that keeps definitions in a folder as mdevctl does, writes more than is read of it,
 * and starts none.
 */
static void put_mdevctl(const char *name)
{
	char full[512];

	put(name, "#!/bin/sh\n"
		  "cd \"${0%/*}/..\" && echo \"$*\" >>calls || exit\n"
		  "[ $1 != define ] || [ ! -e defined ] || exit\n"
		  "[ $1 != define ] || { seq 9999 && : >defined; } || exit\n"
		  "[ $1 != modify ] || [ -e defined ] || exit\n"
		  "[ $1 != undefine ] || exec rm defined\n"
		  "[ $1 != start ] || { echo 'no room' >&2; exit 1; }\n");
	snprintf(full, sizeof(full), "%s%s", root, name);
	chmod(full, 0755);
}

static bool is_there(const char *path)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", root, path);
	return !access(full, F_OK);
}

static unsigned int count_calls(void)
{
	unsigned int nr = 0;
	char full[512];
	FILE *f;
	int c;

	snprintf(full, sizeof(full), "%s/calls", root);
	f = fopen(full, "r");
	while (f && (c = getc(f)) != EOF)
		nr += c == '\n';
	if (f)
		fclose(f);
	return nr;
}

/* mdevctl starts no vGPU: its definition, which comes at each boot, goes. */
static void not_started(void)
{
	struct pool_request r = { .uuid = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001", .weight = 300 };
	char text[POOL_TEXT_MAX], path[512];

	begin();
	put_mdevctl("/bin/mdevctl");
	snprintf(path, sizeof(path), "%s/bin:%s", root, getenv("PATH"));
	setenv("PATH", path, 1);
	TAP_EQ(local_mdev_make("mgpu_soft.0", "mgpu_soft-small", &r, text), HOST_RETRY);
	TAP_STR(text, "no vGPU of type mgpu_soft-small on mgpu_soft.0: no room");
	TAP_CHECK(is_there("/calls") && !is_there("/defined"));
	TAP_EQ(count_calls(), 4);
	/* The definition of an earlier try, which ended in a crash, is in the way. */
	put("/defined", "");
	TAP_EQ(local_mdev_make("mgpu_soft.0", "mgpu_soft-small", &r, text), HOST_RETRY);
	TAP_STR(text, "no vGPU of type mgpu_soft-small on mgpu_soft.0: no room");
	TAP_CHECK(!is_there("/defined"));
	TAP_EQ(count_calls(), 4 + 6);
	end();
}

int main(void)
{
	tap_run(libvirt, "a host that has all is fine");
	tap_run(none, "a host without a GPU is an error, and without a VM a warning");
	tap_run(off, "what a machine lacks is named, with the remedy");
	tap_run(on, "a machine that has all is fine");
	tap_run(machine, "boot display, memory and power of a GPU are read");
	tap_run(in_use, "users of a GPU are named");
	tap_run(not_started, "a vGPU that does not start leaves no definition");
	tap_run(parents, "a parent of vGPUs that is not on PCI is read");
	return tap_done();
}
