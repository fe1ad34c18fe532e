// SPDX-License-Identifier: GPL-2.0-only
/* A host: GPUs with their groups, and attaching, on libvirt's test driver. */
#include "host.h"
#include "host_private.h"
#include "tap.h"

#include "pool_libvirt.h"

static char path[64];
static char text[POOL_TEXT_MAX];
static struct host *host;

/* A node device that stands for an mdev; "" for none. */
static const char *created = "";

virNodeDevicePtr __real_virNodeDeviceCreateXML(virConnectPtr conn, const char *xml,
					       unsigned int flags);
virNodeDevicePtr __wrap_virNodeDeviceCreateXML(virConnectPtr conn, const char *xml,
					       unsigned int flags);

virNodeDevicePtr __wrap_virNodeDeviceCreateXML(virConnectPtr conn, const char *xml,
					       unsigned int flags)
{
	return *created ? virNodeDeviceLookupByName(conn, created) :
			  __real_virNodeDeviceCreateXML(conn, xml, flags);
}

/*
 * A VM that runs and lets a device go when it is asked again, which is when it stops. Meanwhile
 * libvirt once has no XML of it.
 */
static bool slow;
static int asked, xmls_refused;

int __real_virDomainDetachDeviceAlias(virDomainPtr vm, const char *alias, unsigned int flags);
int __wrap_virDomainDetachDeviceAlias(virDomainPtr vm, const char *alias, unsigned int flags);
char *__real_virDomainGetXMLDesc(virDomainPtr vm, unsigned int flags);
char *__wrap_virDomainGetXMLDesc(virDomainPtr vm, unsigned int flags);

int __wrap_virDomainDetachDeviceAlias(virDomainPtr vm, const char *alias, unsigned int flags)
{
	if (!slow || flags != VIR_DOMAIN_AFFECT_LIVE)
		return __real_virDomainDetachDeviceAlias(vm, alias, flags);
	if (asked++)
		return virDomainDestroy(vm);
	xmls_refused = 1;
	return 0;
}

char *__wrap_virDomainGetXMLDesc(virDomainPtr vm, unsigned int flags)
{
	return xmls_refused-- > 0 ? NULL : __real_virDomainGetXMLDesc(vm, flags);
}

/*
 * A host that plugs: a VM that is off starts just before its definition changes. Functions get and
 * leave the host's drivers.
 */
static bool plugs, starts;
static unsigned int attaches, plugged, drivers_taken, drivers_back;

int __real_virDomainAttachDeviceFlags(virDomainPtr vm, const char *xml, unsigned int flags);
int __wrap_virDomainAttachDeviceFlags(virDomainPtr vm, const char *xml, unsigned int flags);
int __real_virNodeDeviceDetachFlags(virNodeDevicePtr node, const char *driver, unsigned int flags);
int __wrap_virNodeDeviceDetachFlags(virNodeDevicePtr node, const char *driver, unsigned int flags);
int __real_virNodeDeviceReAttach(virNodeDevicePtr node);
int __wrap_virNodeDeviceReAttach(virNodeDevicePtr node);

int __wrap_virDomainAttachDeviceFlags(virDomainPtr vm, const char *xml, unsigned int flags)
{
	if (starts && virDomainIsActive(vm) == 0)
		TAP_EQ(virDomainCreate(vm), 0);
	attaches++;
	if (plugs && flags & VIR_DOMAIN_AFFECT_LIVE) {
		plugged++;
		return 0;
	}
	return __real_virDomainAttachDeviceFlags(vm, xml, flags);
}

int __wrap_virNodeDeviceDetachFlags(virNodeDevicePtr node, const char *driver, unsigned int flags)
{
	drivers_taken++;
	return plugs ? 0 : __real_virNodeDeviceDetachFlags(node, driver, flags);
}

int __wrap_virNodeDeviceReAttach(virNodeDevicePtr node)
{
	drivers_back++;
	return plugs ? 0 : __real_virNodeDeviceReAttach(node);
}

static struct pool_vm vms[8];
static struct pool_gpu gpus[8];
static struct pool_found found[8];
static size_t nr_vms, nr_gpus, nr_found;

static int add_vm(const struct pool_vm *vm, void *arg)
{
	(void)arg;
	vms[nr_vms++] = *vm;
	return 0;
}

static int add_gpu(const struct pool_gpu *gpu, void *arg)
{
	(void)arg;
	gpus[nr_gpus++] = *gpu;
	return 0;
}

static int add_found(const struct pool_found *f, void *arg)
{
	(void)arg;
	found[nr_found++] = *f;
	return 0;
}

static void look(void)
{
	nr_vms = nr_gpus = nr_found = 0;
	TAP_EQ(host_found(host, add_found, NULL, text), HOST_OK);
	TAP_EQ(host_gpus(host, add_gpu, NULL, text), HOST_OK);
	TAP_EQ(host_vms(host, add_vm, NULL, text), HOST_OK);
}

static void begin(unsigned int nr_of_gpus, unsigned int nr_of_vms)
{
	struct pool_host config = { .name = "h" };

	write_test_host(path, nr_of_gpus, nr_of_vms);
	snprintf(config.uri, sizeof(config.uri), "test://%s", path);
	host = host_new(&config);
	if (!host || host_connect(host, text) != HOST_OK) {
		tap_diag("%s", text);
		abort();
	}
}

static void end(void)
{
	host_free(host);
	unlink(path);
}

static struct pool_job job_of(uint64_t id, size_t gpu, size_t vm)
{
	struct pool_job job = { .request.id = id, .gpu = gpus[gpu], .vm = vms[vm] };

	strcpy(job.request.vm, vms[vm].name);
	strcpy(job.request.gpu, gpus[gpu].name);
	return job;
}

static void lists(void)
{
	begin(2, 3);
	TAP_CHECK(host_alive(host));
	look();
	TAP_EQ(nr_vms, 3);
	TAP_STR(vms[0].host, "h");
	TAP_EQ(strlen(vms[0].uuid), 36);
	TAP_EQ(nr_gpus, 2);
	TAP_EQ(nr_found, 0);
	TAP_STR(gpus[0].host, "h");
	TAP_EQ(gpus[0].nr_functions, 2);
	TAP_EQ(gpus[0].target, POOL_WHOLE);
	TAP_EQ(gpus[0].slots, 1);
	TAP_STR(gpus[0].model, "AD102 [GeForce RTX 4090]");
	TAP_EQ(gpus[0].capabilities, POOL_3D | POOL_COMPUTE);
	TAP_CHECK(!gpus[0].offline && gpus[0].present);
	end();
}

static void attach(void)
{
	char uuid[POOL_UUID_MAX];
	double seconds = -1;
	struct pool_job job;

	begin(2, 2);
	look();
	job = job_of(7, 1, 0);
	TAP_EQ(host_attach(host, &job, uuid, &seconds, text), HOST_OK);
	TAP_STR(uuid, "");
	TAP_CHECK(seconds >= 0);
	look();
	TAP_EQ(nr_found, 1);
	TAP_EQ(found[0].request, 7);
	TAP_STR(found[0].vm, job.vm.name);
	TAP_STR(found[0].gpu, job.gpu.name);
	TAP_STR(found[0].uuid, "");
	TAP_CHECK(!found[0].partial);
	/* again: no change */
	TAP_EQ(host_attach(host, &job, uuid, &seconds, text), HOST_OK);
	look();
	TAP_EQ(nr_found, 1);
	TAP_EQ(host_detach(host, &job, &seconds, text), HOST_OK);
	look();
	TAP_EQ(nr_found, 0);
	TAP_EQ(host_detach(host, &job, &seconds, text), HOST_OK);
	end();
}

/* Add a function to the definition of a VM, as the pool does. */
static void add_to(const char *name, uint64_t request, const char *addr, unsigned int function)
{
	virDomainPtr vm = virDomainLookupByName(host->conn, name);
	char *old = virDomainGetXMLDesc(vm, 0), *changed;
	char xml[XML_HOSTDEV_MAX];

	TAP_EQ(xml_hostdev_pci(addr, request, function, true, xml, sizeof(xml)), 0);
	TAP_EQ(xml_domain_add(old, xml, &changed), 0);
	virDomainFree(virDomainDefineXML(host->conn, changed));
	virDomainFree(vm);
	free(old);
	free(changed);
}

/* One function of two is there, as after a crash. */
static void partial(void)
{
	char uuid[POOL_UUID_MAX];
	struct pool_job job;

	begin(1, 1);
	look();
	job = job_of(9, 0, 0);
	add_to("vm0", 9, "0000:01:00.1", 1);
	look();
	TAP_EQ(nr_found, 1);
	TAP_CHECK(found[0].partial);
	TAP_STR(found[0].gpu, "h/0000:01:00.0");
	TAP_EQ(host_attach(host, &job, uuid, NULL, text), HOST_OK);
	look();
	TAP_EQ(nr_found, 1);
	TAP_CHECK(!found[0].partial);
	/* a request of which only these are known */
	memset(&job.gpu, 0, sizeof(job.gpu));
	memset(&job.vm, 0, sizeof(job.vm));
	TAP_EQ(host_detach(host, &job, NULL, text), HOST_OK);
	look();
	TAP_EQ(nr_found, 0);
	end();
}

/* GPUs that libvirt no longer lists, whatever functions those have that it does. */
static void lost(void)
{
	begin(1, 2);
	add_to("vm0", 9, "0000:77:00.0", 0);
	add_to("vm0", 9, "0000:77:00.1", 1);
	add_to("vm1", 10, "0000:78:00.0", 0);
	look();
	TAP_EQ(nr_found, 2);
	for (size_t i = 0; i < 2; i++) {
		TAP_STR(found[i].gpu, found[i].request == 9 ? "h/0000:77:00.0" : "h/0000:78:00.0");
		TAP_CHECK(!found[i].partial);
	}
	end();
}

/* A device that is another's, in the VM that asks and in another one. */
static void foreign(void)
{
	const char *xml = "<hostdev mode='subsystem' type='pci' managed='yes'><source>\n"
		"<address domain='0' bus='1' slot='0' function='1'/></source></hostdev>";
	char uuid[POOL_UUID_MAX];
	char *old, *changed;
	struct pool_job job;
	virDomainPtr vm;

	begin(1, 2);
	vm = virDomainLookupByName(host->conn, "vm0");
	old = virDomainGetXMLDesc(vm, 0);
	TAP_EQ(xml_domain_add(old, xml, &changed), 0);
	virDomainFree(virDomainDefineXML(host->conn, changed));
	look();
	TAP_CHECK(gpus[0].offline);
	TAP_CHECK(strstr(gpus[0].why, "VM vm0 has 0000:01:00.1"));
	TAP_EQ(nr_found, 1);
	TAP_EQ(found[0].request, 0);
	TAP_STR(found[0].gpu, "h/0000:01:00.0");
	job = job_of(3, 0, strcmp(vms[0].name, "vm0") ? 1 : 0);
	TAP_EQ(host_attach(host, &job, uuid, NULL, text), HOST_FAILED);
	TAP_CHECK(strstr(text, "vm0 has 0000:01:00.1 already"));
	look();
	TAP_EQ(nr_found, 1);
	virDomainFree(vm);
	free(old);
	free(changed);
	end();
}

static void refused(void)
{
	char uuid[POOL_UUID_MAX];
	struct pool_job job;

	begin(1, 1);
	look();
	job = job_of(4, 0, 0);
	strcpy(job.vm.uuid, "00000000-0000-0000-0000-000000000001");
	TAP_EQ(host_attach(host, &job, uuid, NULL, text), HOST_FAILED);
	TAP_CHECK(strstr(text, "there is no VM vm0"));
	TAP_EQ(host_detach(host, &job, NULL, text), HOST_OK);
	*job.vm.uuid = '\0';
	strcpy(job.request.vm, "other");
	TAP_EQ(host_attach(host, &job, uuid, NULL, text), HOST_FAILED);
	job = job_of(4, 0, 0);
	strcpy(job.gpu.addr, "0000:01:00.1");
	TAP_EQ(host_attach(host, &job, uuid, NULL, text), HOST_FAILED);
	TAP_CHECK(strstr(text, "no GPU that can be given whole"));
	strcpy(job.gpu.addr, "0000:77:00.0");
	TAP_EQ(host_attach(host, &job, uuid, NULL, text), HOST_FAILED);
	look();
	TAP_EQ(nr_found, 0);
	end();
}

/* The test driver plugs nothing into a VM that runs: all of it must be undone. */
static void undone(void)
{
	char uuid[POOL_UUID_MAX];
	struct pool_job job;
	virDomainPtr vm;

	begin(1, 1);
	look();
	vm = virDomainLookupByName(host->conn, "vm0");
	TAP_EQ(virDomainCreate(vm), 0);
	job = job_of(5, 0, 0);
	TAP_EQ(host_attach(host, &job, uuid, NULL, text), HOST_FAILED);
	TAP_CHECK(strstr(text, "shut vm0 down"));
	look();
	TAP_EQ(nr_found, 0);
	virDomainFree(vm);
	end();
}

/* The definition lets it go, too, though libvirt had no XML of the VM for a moment. */
static void let_go(void)
{
	struct pool_job job;
	virDomainPtr vm;

	begin(1, 1);
	look();
	job = job_of(5, 0, 0);
	add_to("vm0", 5, "0000:01:00.0", 0);
	vm = virDomainLookupByName(host->conn, "vm0");
	TAP_EQ(virDomainCreate(vm), 0);
	slow = true;
	TAP_EQ(host_detach(host, &job, NULL, text), HOST_OK);
	TAP_EQ(asked, 2);
	TAP_CHECK(xmls_refused <= 0);
	look();
	TAP_EQ(nr_found, 0);
	virDomainFree(vm);
	end();
}

static void vgpu(void)
{
	char uuid[POOL_UUID_MAX], again[POOL_UUID_MAX];
	struct pool_job job;

	begin(1, 1);
	look();
	job = job_of(6, 0, 0);
	job.gpu.target = POOL_VGPU;
	strcpy(job.request.type, "virtio-pci-medium");
	/* the test driver makes no mdevs */
	TAP_CHECK(host_attach(host, &job, uuid, NULL, text) != HOST_OK);
	TAP_CHECK(strstr(text, "no vGPU"));
	TAP_EQ(strlen(uuid), 36);
	TAP_EQ(uuid[14], '8');
	mdev_uuid(&job, again);
	TAP_STR(again, uuid);
	job.request.id++;
	mdev_uuid(&job, again);
	TAP_CHECK(strcmp(again, uuid));
	strcpy(job.request.uuid, "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001");
	mdev_uuid(&job, again);
	TAP_STR(again, "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001");
	*job.request.type = '\0';
	TAP_EQ(host_attach(host, &job, uuid, NULL, text), HOST_FAILED);
	TAP_CHECK(strstr(text, "names no type"));
	end();
}

/* Libvirt before 7.3 makes mdevs, and neither defines nor starts them: as the test driver. */
static void old_libvirt(void)
{
	char uuid[POOL_UUID_MAX];
	struct pool_job job;

	begin(1, 1);
	look();
	job = job_of(6, 0, 0);
	job.gpu.target = POOL_VGPU;
	strcpy(job.request.type, "virtio-pci-medium");
	created = "pci_0000_01_00_0";
	TAP_EQ(host_attach(host, &job, uuid, NULL, text), HOST_OK);
	look();
	TAP_EQ(nr_found, 1);
	TAP_STR(found[0].uuid, uuid);
	TAP_EQ(host_detach(host, &job, NULL, text), HOST_OK);
	look();
	TAP_EQ(nr_found, 0);
	end();
}

/* A VM that runs gets a vGPU by one call of libvirt, which the guest does not wait for twice. */
static void at_once(void)
{
	char uuid[POOL_UUID_MAX];
	struct pool_job job;
	virDomainPtr vm;

	begin(1, 1);
	look();
	job = job_of(6, 0, 0);
	job.gpu.target = POOL_VGPU;
	strcpy(job.request.type, "virtio-pci-medium");
	created = "pci_0000_01_00_0";
	vm = virDomainLookupByUUIDString(host->conn, job.vm.uuid);
	TAP_NEED(vm && !virDomainCreate(vm));
	virDomainFree(vm);
	plugs = true;
	attaches = plugged = 0;
	TAP_EQ(host_attach(host, &job, uuid, NULL, text), HOST_OK);
	TAP_EQ(attaches, 1);
	TAP_EQ(plugged, 1);
	plugs = false;
	TAP_EQ(host_attach(host, &job, uuid, NULL, text), HOST_FAILED);
	TAP_CHECK(strstr(text, "plugs nothing into a running VM; shut vm0 down"));
	end();
}

/* ---- groups ---- */

static struct xml_node nodes[8];
static struct inventory inventory = { nodes, 0 };
static struct host plain;

static void add(const char *addr, uint32_t class, const char *driver, int group)
{
	struct xml_node *n = &nodes[inventory.nr++];
	size_t i, j;

	memset(n, 0, sizeof(*n));
	n->kind = XML_PCI;
	n->class = class;
	n->vendor = 0x1002;
	n->product = 0x7448;
	n->group = group;
	strcpy(n->addr, addr);
	strcpy(n->driver, driver);
	xml_node_name(addr, n->name, sizeof(n->name));
	n->bridge = class >> 8 == 0x0604;
	for (i = 0; i < inventory.nr; i++) {
		nodes[i].nr_members = 0;
		for (j = 0; j < inventory.nr; j++)
			if (nodes[i].group >= 0 && nodes[j].group == nodes[i].group)
				strcpy(nodes[i].members[nodes[i].nr_members++], nodes[j].addr);
	}
}

static bool gpu_at(size_t i)
{
	strcpy(plain.config.name, "h");
	return inventory_gpu(&plain, &inventory, &nodes[i], &gpus[0]);
}

static void group(void)
{
	add("0000:40:01.0", 0x060400, "pcieport", 5);
	add("0000:41:00.1", 0x040300, "snd_hda_intel", 5);
	add("0000:41:00.0", 0x030000, "amdgpu", 5);
	add("0000:41:00.2", 0x0c0330, "xhci_hcd", 5);
	TAP_CHECK(!gpu_at(0) && !gpu_at(1) && !gpu_at(3));
	TAP_NEED(gpu_at(2));
	TAP_CHECK(!gpus[0].offline);
	TAP_EQ(gpus[0].nr_functions, 3);
	TAP_STR(gpus[0].functions[0], "0000:41:00.0");
	TAP_STR(gpus[0].functions[1], "0000:41:00.1");
	TAP_STR(gpus[0].functions[2], "0000:41:00.2");
	TAP_EQ(gpus[0].group, 5);
	TAP_STR(gpus[0].model, "1002:7448");
	TAP_CHECK(inventory_gpu_of(&plain, &inventory, "0000:41:00.2", &gpus[1]));
	TAP_STR(gpus[1].addr, "0000:41:00.0");
	TAP_CHECK(!inventory_gpu_of(&plain, &inventory, "0000:40:01.0", &gpus[1]));
}

static void group_in_use(void)
{
	add("0000:41:00.0", 0x030000, "amdgpu", 5);
	add("0000:42:00.0", 0x010802, "nvme", 5);
	TAP_NEED(gpu_at(0));
	TAP_CHECK(gpus[0].offline);
	TAP_CHECK(strstr(gpus[0].why, "IOMMU group 5 also holds 0000:42:00.0"));
	TAP_CHECK(strstr(gpus[0].why, "driver nvme"));
	strcpy(nodes[1].driver, "vfio-pci");
	TAP_NEED(gpu_at(0));
	TAP_CHECK(!gpus[0].offline);
	TAP_EQ(gpus[0].nr_functions, 2);
	*nodes[1].driver = '\0';
	TAP_NEED(gpu_at(0));
	TAP_CHECK(!gpus[0].offline);
	/* libvirt lists a member of which it knows nothing */
	nodes[1].kind = XML_OTHER;
	TAP_NEED(gpu_at(0));
	TAP_CHECK(gpus[0].offline);
}

static void group_of_two(void)
{
	add("0000:42:00.0", 0x030000, "vfio-pci", 5);
	add("0000:41:00.0", 0x030200, "vfio-pci", 5);
	TAP_CHECK(!gpu_at(0));
	TAP_NEED(gpu_at(1));
	TAP_CHECK(!gpus[0].offline);
	TAP_EQ(gpus[0].nr_functions, 2);
	TAP_STR(gpus[0].functions[1], "0000:42:00.0");
	strcpy(nodes[0].driver, "amdgpu");
	TAP_NEED(gpu_at(1));
	TAP_CHECK(gpus[0].offline);
}

static void no_iommu(void)
{
	add("0000:41:00.0", 0x030000, "amdgpu", -1);
	add("0000:42:00.0", 0x030000, "amdgpu", -1);
	TAP_NEED(gpu_at(0));
	TAP_CHECK(gpus[0].offline && strstr(gpus[0].why, "intel_iommu=on"));
	TAP_CHECK(gpu_at(1));
}

static void no_gpu(void)
{
	add("0000:41:00.0", 0x030000, "ast", 1);
	add("0000:42:00.0", 0x038000, "", 2);
	add("0000:43:00.0", 0x120000, "", 3);
	add("0000:44:00.0", 0x020000, "", 4);
	nodes[0].vendor = 0x1a03;
	TAP_CHECK(!gpu_at(0));
	TAP_CHECK(gpu_at(1));
	TAP_CHECK(gpu_at(2));
	TAP_EQ(gpus[0].capabilities, POOL_COMPUTE);
	TAP_CHECK(!gpu_at(3));
}

static void long_model(void)
{
	add("0000:41:00.0", 0x030000, "", 1);
	memset(nodes[0].product_name, 'x', 70);
	strcpy(nodes[0].product_name + 70, " [Radeon RX 7900 XT]");
	TAP_NEED(gpu_at(0));
	TAP_STR(gpus[0].model, "Radeon RX 7900 XT");
	memset(nodes[0].product_name, 'x', 100);
	TAP_NEED(gpu_at(0));
	TAP_STR(gpus[0].model, "1002:7448");
}

static void parent(void)
{
	add("0000:00:10.0", 0x038000, "virtio-pci", 1);
	nodes[0].nr_types = 4;
	strcpy(nodes[0].types[0].id, "virtio-pci-large-render");
	strcpy(nodes[0].types[1].id, "virtio-pci-small");
	strcpy(nodes[0].types[2].id, "virtio-pci-medium-render");
	strcpy(nodes[0].types[3].id, "virtio-pci-medium");
	nodes[0].types[0].available = 2;
	nodes[0].types[1].available = 9;
	TAP_NEED(gpu_at(0));
	TAP_EQ(gpus[0].target, POOL_VGPU);
	TAP_STR(gpus[0].types,
		"virtio-pci-small:1:none virtio-pci-medium:9:none virtio-pci-medium-render:9 virtio-pci-large-render:4");
	pool_type_names(&gpus[0], text);
	TAP_STR(text,
		"virtio-pci-small virtio-pci-medium virtio-pci-medium-render virtio-pci-large-render");
	TAP_EQ(gpus[0].slots, 9);
	TAP_EQ(gpus[0].capabilities, POOL_3D);
	TAP_EQ(gpus[0].group, -1);
	TAP_EQ(gpus[0].nr_functions, 1);
}

/* As modules of mgpu count: 64 of all types together, or so many of each type. */
static void type_slots(void)
{
	struct host_type types[] = {
		{ "small", 64, 0, 0 }, { "large", 64, 0, 0 }, { "render", 64, 0, POOL_3D },
	};
	struct pool_gpu gpu = { 0 };

	types_fill(&gpu, types, 2);
	TAP_STR(gpu.types, "small large");
	TAP_EQ(gpu.slots, 64);
	/* 40 of them are there */
	types[0] = (struct host_type){ "small", 24, 0, 0 };
	types[1] = (struct host_type){ "large", 24, 40, 0 };
	gpu = (struct pool_gpu){ 0 };
	types_fill(&gpu, types, 2);
	TAP_STR(gpu.types, "small large");
	TAP_EQ(gpu.slots, 64);
	types[0] = (struct host_type){ "small", 1024, 0, 0 };
	types[1] = (struct host_type){ "large", 64, 0, 0 };
	gpu = (struct pool_gpu){ 0 };
	types_fill(&gpu, types, 2);
	TAP_STR(gpu.types, "small large:16");
	TAP_EQ(gpu.slots, 1024);
	types[0] = (struct host_type){ "small", 524, 500, 0 };
	types[1] = (struct host_type){ "large", 1, 63, 0 };
	types[2] = (struct host_type){ "render", 1024, 0, POOL_3D };
	gpu = (struct pool_gpu){ 0 };
	types_fill(&gpu, types, 3);
	TAP_STR(gpu.types, "small:1:none large:16:none render");
	TAP_EQ(gpu.slots, 1024 + 500 + 16 * 63);
	TAP_EQ(gpu.capabilities, POOL_3D);
	/* others have all */
	types[0] = (struct host_type){ "small", 0, 0, 0 };
	types[1] = (struct host_type){ "large", 0, 0, 0 };
	gpu = (struct pool_gpu){ 0 };
	types_fill(&gpu, types, 2);
	TAP_STR(gpu.types, "small large");
	TAP_EQ(gpu.slots, 0);
	/* whatever a host says */
	types[0] = (struct host_type){ "small", UINT32_MAX, 0, 0 };
	gpu = (struct pool_gpu){ 0 };
	types_fill(&gpu, types, 1);
	TAP_EQ(gpu.slots, 65536);
}

/* A password or a question on the service's terminal would hold the host up. */
static void batch(void)
{
	char uri[64];

	TAP_EQ(host_batch_uri("qemu+ssh://u@h/system", uri, sizeof(uri)), 0);
	TAP_STR(uri, "qemu+ssh://u@h/system?no_tty=1");
	TAP_EQ(host_batch_uri("qemu+ssh://u@h/system?keyfile=/k", uri, sizeof(uri)), 0);
	TAP_STR(uri, "qemu+ssh://u@h/system?keyfile=/k&no_tty=1");
	TAP_EQ(host_batch_uri("qemu+ssh://h/system?no_tty=0", uri, sizeof(uri)), 0);
	TAP_STR(uri, "qemu+ssh://h/system?no_tty=0");
	TAP_EQ(host_batch_uri("qemu+tls://h/system", uri, sizeof(uri)), 0);
	TAP_STR(uri, "qemu+tls://h/system");
	TAP_EQ(host_batch_uri("an alias", uri, sizeof(uri)), 0);
	TAP_STR(uri, "an alias");
	TAP_EQ(host_batch_uri("qemu+ssh://h/system", uri, 24), -1);
}

/* A VM that starts while its definition gets the GPU has it, too. */
static void starts_meanwhile(void)
{
	char uuid[POOL_UUID_MAX];
	struct pool_job job;

	begin(1, 2);
	look();
	job = job_of(1, 0, 0);
	plugs = true;
	plugged = drivers_taken = 0;
	TAP_EQ(host_attach(host, &job, uuid, NULL, text), HOST_OK);
	TAP_EQ(plugged, 0);
	TAP_EQ(drivers_taken, 0);
	TAP_EQ(host_detach(host, &job, NULL, text), HOST_OK);
	starts = true;
	TAP_EQ(host_attach(host, &job, uuid, NULL, text), HOST_OK);
	TAP_EQ(plugged, 2);
	TAP_EQ(drivers_taken, 2);
	plugs = starts = false;
	end();
}

/* A VM that is undefined while it has a GPU: its functions go back to the host's drivers. */
static void undefined(void)
{
	char uuid[POOL_UUID_MAX];
	struct pool_job job;
	virDomainPtr vm;

	begin(1, 2);
	look();
	job = job_of(1, 0, 0);
	TAP_EQ(host_attach(host, &job, uuid, NULL, text), HOST_OK);
	vm = virDomainLookupByUUIDString(host->conn, job.vm.uuid);
	TAP_NEED(vm && !virDomainUndefine(vm));
	virDomainFree(vm);
	plugs = true;
	drivers_back = 0;
	/* Vfio-pci had them before. */
	TAP_EQ(host_detach(host, &job, NULL, text), HOST_OK);
	TAP_EQ(drivers_back, 0);
	job.gpu.managed = 1 << 1;
	TAP_EQ(host_detach(host, &job, NULL, text), HOST_OK);
	TAP_EQ(drivers_back, 1);
	job.gpu.managed = 3;
	TAP_EQ(host_detach(host, &job, NULL, text), HOST_OK);
	TAP_EQ(drivers_back, 3);
	/* Nor has its definition them any more. */
	job.vm = vms[1];
	strcpy(job.request.vm, vms[1].name);
	TAP_EQ(host_detach(host, &job, NULL, text), HOST_OK);
	TAP_EQ(drivers_back, 5);
	plugs = false;
	end();
}

int main(void)
{
	tap_run(batch, "ssh asks for nothing on a terminal");
	tap_run(lists, "GPUs and VMs are listed");
	tap_run(attach, "a GPU is attached with all functions, found, and detached");
	tap_run(partial, "what an attachment left undone is found, completed and taken away");
	tap_run(lost, "a GPU that the host lost is whole if the VM has what its definition has");
	tap_run(foreign, "a GPU of which a VM has a function already is refused");
	tap_run(refused, "no VM, no GPU: the text says so");
	tap_run(undone, "an attachment that fails leaves nothing");
	tap_run(let_go, "a device that a guest lets go leaves the definition");
	tap_run(starts_meanwhile, "a VM that starts while it gets a GPU has it");
	tap_run(undefined, "the GPU of a VM that is undefined comes back to the host's drivers");
	tap_run(vgpu, "a vGPU's UUID is the same at each try");
	tap_run(old_libvirt, "libvirt that starts no vGPU makes one");
	tap_run(at_once, "a running VM gets a vGPU by one call");
	tap_run(group, "all functions of a group go along, but for its bridges");
	tap_run(group_in_use, "a group with something that the host uses is refused");
	tap_run(group_of_two, "two GPUs of a group are one");
	tap_run(no_iommu, "a GPU without an IOMMU is offline, and the text says what to do");
	tap_run(no_gpu, "management displays and other devices are no GPUs");
	tap_run(long_model, "a model's name fits");
	tap_run(type_slots, "a type takes as many slots as small ones fit in its place");
	tap_run(parent, "a parent of mdevs has its types, the smallest first");
	return tap_done();
}
