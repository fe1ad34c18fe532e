// SPDX-License-Identifier: GPL-2.0-only
/* GPUs of a host from its node devices, and the devices of the pool that its VMs have. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_private.h"

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof(*(array)))

/* ---- the inventory ---- */

static void free_devices(virNodeDevicePtr *devices, int nr)
{
	while (nr > 0)
		virNodeDeviceFree(devices[--nr]);
	free(devices);
}

enum host_result inventory_load(struct host *host, struct inventory *inventory, char *text)
{
	const unsigned int flags = VIR_CONNECT_LIST_NODE_DEVICES_CAP_PCI_DEV |
				   VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV;
	virNodeDevicePtr *devices = NULL;
	int nr, i;

	inventory->nodes = NULL;
	inventory->nr = 0;
	nr = virConnectListAllNodeDevices(host->conn, &devices, flags);
	if (nr < 0)
		return host_error(host, text, "no list of node devices");
	inventory->nodes = calloc((size_t)nr + 1, sizeof(*inventory->nodes));
	for (i = 0; inventory->nodes && i < nr; i++) {
		/* A device may be gone by now. */
		char *xml = virNodeDeviceGetXMLDesc(devices[i], 0);

		if (xml && !xml_node(xml, &inventory->nodes[inventory->nr]))
			inventory->nr++;
		free(xml);
	}
	free_devices(devices, nr);
	if (!inventory->nodes)
		return host_says(HOST_RETRY, text, "%s: out of memory", host->config.name);
	return HOST_OK;
}

/* A function that is gone by now is left out. */
static void load_one(struct host *host, struct inventory *inventory, const char *addr)
{
	virNodeDevicePtr device = NULL;
	char name[XML_NAME_MAX];
	char *xml = NULL;

	if (!xml_node_name(addr, name, sizeof(name)))
		device = virNodeDeviceLookupByName(host->conn, name);
	if (device)
		xml = virNodeDeviceGetXMLDesc(device, 0);
	if (xml && !xml_node(xml, &inventory->nodes[inventory->nr]))
		inventory->nr++;
	free(xml);
	if (device)
		virNodeDeviceFree(device);
}

enum host_result inventory_load_group(struct host *host, const char *addr,
				      struct inventory *inventory, char *text)
{
	const struct xml_node *node;
	unsigned int i;

	inventory->nr = 0;
	inventory->nodes = calloc(XML_GROUP_MAX + 1, sizeof(*inventory->nodes));
	if (!inventory->nodes)
		return host_says(HOST_RETRY, text, "%s: out of memory", host->config.name);
	node = &inventory->nodes[0];
	load_one(host, inventory, addr);
	for (i = 0; inventory->nr && i < node->nr_members && i < XML_GROUP_MAX; i++)
		if (strcmp(node->members[i], node->addr))
			load_one(host, inventory, node->members[i]);
	return HOST_OK;
}

void inventory_free(struct inventory *inventory)
{
	free(inventory->nodes);
	inventory->nodes = NULL;
	inventory->nr = 0;
}

const struct xml_node *inventory_find(const struct inventory *inventory, const char *addr)
{
	size_t i;

	for (i = 0; i < inventory->nr; i++)
		if (inventory->nodes[i].kind == XML_PCI &&
		    !strcmp(inventory->nodes[i].addr, addr))
			return &inventory->nodes[i];
	return NULL;
}

/* ---- one GPU ---- */

/* Displays of management controllers, which are no GPUs. */
static const struct {
	unsigned int vendor;
	unsigned int product, mask;
} consoles[] = {
	{ 0x1a03, 0, 0 },		/* ASPEED */
	{ 0x102b, 0x0500, 0xff00 },	/* Matrox G200 */
	{ 0x19e5, 0x1711, 0xffff },	/* Huawei iBMC */
	{ 0x1013, 0, 0 },		/* Cirrus, QEMU's */
	{ 0x1234, 0, 0 },		/* QEMU's standard VGA */
};

static bool is_console(const struct xml_node *node)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(consoles); i++)
		if (node->vendor == consoles[i].vendor &&
		    (node->product & consoles[i].mask) == consoles[i].product)
			return true;
	return false;
}

/* A display controller, or a processing accelerator. */
static bool is_gpu(const struct xml_node *node)
{
	unsigned int class = node->class >> 8;

	return node->kind == XML_PCI && (class >> 8 == 0x03 || class == 0x1200) &&
	       !is_console(node);
}

bool is_vfio(const char *driver)
{
	return strstr(driver, "vfio") || !strcmp(driver, "pci-stub");
}

static bool same_slot(const char *a, const char *b)
{
	return !strncmp(a, b, strlen("DDDD:BB:SS."));
}

/* A name for people and for the history: the brackets' content, where the whole is too long. */
static void name_model(const struct xml_node *node, char model[POOL_MODEL_MAX])
{
	const char *begin = strchr(node->product_name, '[');
	const char *end = strrchr(node->product_name, ']');
	size_t len = strlen(node->product_name);

	if (len && len < POOL_MODEL_MAX)
		strcpy(model, node->product_name);
	else if (begin && end > begin && end - begin <= POOL_MODEL_MAX)
		snprintf(model, POOL_MODEL_MAX, "%.*s", (int)(end - begin - 1), begin + 1);
	else
		snprintf(model, POOL_MODEL_MAX, "%04x:%04x", node->vendor & 0xffff,
			 node->product & 0xffff);
}

__attribute__((format(printf, 2, 3)))
static void take_offline(struct pool_gpu *gpu, const char *fmt, ...)
{
	va_list ap;

	if (gpu->offline)
		return;
	gpu->offline = true;
	va_start(ap, fmt);
	vsnprintf(gpu->why, sizeof(gpu->why), fmt, ap);
	va_end(ap);
}

/* The GPU with the lowest address leads its group; without a group, each is its own. */
static bool leads(const struct inventory *inventory, const struct xml_node *node)
{
	unsigned int i;

	for (i = 0; node->group >= 0 && i < node->nr_members && i < XML_GROUP_MAX; i++) {
		const struct xml_node *member = inventory_find(inventory, node->members[i]);

		if (member && is_gpu(member) && strcmp(member->addr, node->addr) < 0)
			return false;
	}
	return true;
}

static void add_function(struct pool_gpu *gpu, const char *addr)
{
	if (gpu->nr_functions == POOL_FUNCTIONS_MAX) {
		take_offline(gpu, "IOMMU group %d has more than %d functions; the pool takes groups of one GPU",
			     gpu->group, POOL_FUNCTIONS_MAX);
		return;
	}
	strcpy(gpu->functions[gpu->nr_functions++], addr);
}

/* A function that shares the group: it goes along unless the host uses it. */
static void add_member(const struct inventory *inventory, const char *addr, struct pool_gpu *gpu)
{
	const struct xml_node *member = inventory_find(inventory, addr);

	if (!strcmp(addr, gpu->addr) || (member && member->bridge))
		return;
	add_function(gpu, addr);
	if (same_slot(addr, gpu->addr))
		return;
	if (!member)
		take_offline(gpu, "IOMMU group %d also holds %s, of which libvirt knows nothing",
			     gpu->group, addr);
	else if (*member->driver && !is_vfio(member->driver))
		take_offline(gpu, "IOMMU group %d also holds %s (%s), which the host uses with the driver %s; put the GPU into another slot, or bind %s to vfio-pci",
			     gpu->group, addr,
			     *member->product_name ? member->product_name : "unknown",
			     member->driver, addr);
}

/* Functions of its group, or of its slot where there is no IOMMU. */
static void add_functions(const struct inventory *inventory, const struct xml_node *node,
			  struct pool_gpu *gpu)
{
	size_t i;

	add_function(gpu, node->addr);
	if (node->group < 0) {
		take_offline(gpu, "the host has no IOMMU group for it; turn on VT-d or AMD-Vi in the firmware, and add intel_iommu=on or amd_iommu=on to the kernel's command line");
		return;
	}
	if (node->nr_members > XML_GROUP_MAX)
		take_offline(gpu, "IOMMU group %d has %u functions; put the GPU into another slot",
			     node->group, node->nr_members);
	for (i = 0; i < node->nr_members && i < XML_GROUP_MAX; i++)
		add_member(inventory, node->members[i], gpu);
}

/* VMs that others gave a function to. */
static void look_at_held(const struct host *host, struct pool_gpu *gpu)
{
	unsigned int f;
	size_t i;

	if (gpu->target != POOL_WHOLE)
		return;
	for (i = 0; i < host->nr_held; i++)
		for (f = 0; f < gpu->nr_functions; f++)
			if (!host->held[i].device.request &&
			    !strcmp(host->held[i].device.addr, gpu->functions[f]))
				take_offline(gpu, "VM %s has %s, and not from the pool; take it from the VM first",
					     host->held[i].vm, gpu->functions[f]);
}

/* Functions that leave a driver of the host's to go to a VM. */
static void fill_managed(const struct inventory *inventory, struct pool_gpu *gpu)
{
	const struct xml_node *node;
	unsigned int f;

	for (f = 0; f < gpu->nr_functions; f++) {
		node = inventory_find(inventory, gpu->functions[f]);
		if (node && *node->driver && !is_vfio(node->driver))
			gpu->managed |= UINT32_C(1) << f;
	}
}

static void fill_whole(const struct host *host, const struct inventory *inventory,
		       const struct xml_node *node, struct pool_gpu *gpu)
{
	unsigned int class = node->class >> 8;

	gpu->target = POOL_WHOLE;
	gpu->slots = 1;
	gpu->group = node->group;
	gpu->capabilities = class == 0x1200 ? POOL_COMPUTE :
			    node->vendor == 0x1af4 ? POOL_3D : POOL_3D | POOL_COMPUTE;
	add_functions(inventory, node, gpu);
	fill_managed(inventory, gpu);
	if (!host->local)
		return;
	gpu->memory_mib = local_memory_mib(node->addr);
	if (!is_vfio(node->driver) && *node->driver && local_boot_display(node->addr))
		take_offline(gpu, "%s is the host's boot display, and in use by the driver %s; bind it to vfio-pci at boot (vfio-pci.ids=%04x:%04x), or let another GPU have the screen",
			     node->addr, node->driver, node->vendor, node->product);
}

/* ---- parents of mdevs ---- */

/* More devices fit where types are small; names break ties. */
static int rank(const char *id)
{
	static const char *const sizes[] = { "small", "medium", "large" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		if (strstr(id, sizes[i]))
			return (int)i * 2 + !!strstr(id, "-render");
	return 0;
}

static int by_size(const void *a, const void *b)
{
	const struct xml_type *x = a, *y = b;

	if (rank(x->id) != rank(y->id))
		return rank(x->id) - rank(y->id);
	if (x->available != y->available)
		return x->available < y->available ? 1 : -1;
	return strcmp(x->id, y->id);
}

bool host_owns(const struct host *host, const char *uuid)
{
	size_t i;

	for (i = 0; i < host->nr_held; i++)
		if (host->held[i].device.request && !strcmp(host->held[i].device.uuid, uuid))
			return true;
	for (i = 0; i < host->nr_made; i++)
		if (!strcmp(host->made[i], uuid))
			return true;
	return false;
}

/* mdevs of the pool count as room: it knows of them. */
static uint32_t count_ours(const struct host *host, const struct inventory *inventory,
			   const char *parent, const char *type)
{
	uint32_t nr = 0;
	size_t i;

	for (i = 0; i < inventory->nr; i++)
		if (inventory->nodes[i].kind == XML_MDEV &&
		    !strcmp(inventory->nodes[i].parent, parent) &&
		    !strcmp(inventory->nodes[i].type, type) &&
		    host_owns(host, inventory->nodes[i].uuid))
			nr++;
	return nr;
}

/* By the descriptions of types on this machine, else by the names of mgpu's. */
static void able(const struct host *host, const struct xml_node *node, struct host_type *types)
{
	uint32_t all = 0;
	unsigned int i;

	for (i = 0; host->local && i < node->nr_types; i++) {
		types[i].capabilities = local_capabilities(node->addr, types[i].name);
		all |= types[i].capabilities;
	}
	for (i = 0; !all && i < node->nr_types; i++)
		if (strstr(types[i].name, "-render"))
			types[i].capabilities = POOL_3D;
}

static void fill_parent(const struct host *host, const struct inventory *inventory,
			const struct xml_node *node, struct pool_gpu *gpu)
{
	struct host_type types[XML_TYPES_MAX] = { 0 };
	struct xml_type sorted[XML_TYPES_MAX];
	unsigned int i;

	memcpy(sorted, node->types, node->nr_types * sizeof(*sorted));
	qsort(sorted, node->nr_types, sizeof(*sorted), by_size);
	gpu->target = POOL_VGPU;
	gpu->group = -1;
	strcpy(gpu->functions[gpu->nr_functions++], node->addr);
	for (i = 0; i < node->nr_types; i++) {
		strcpy(types[i].name, sorted[i].id);
		types[i].available = sorted[i].available;
		types[i].ours = count_ours(host, inventory, node->name, sorted[i].id);
	}
	able(host, node, types);
	types_fill(gpu, types, node->nr_types);
}

bool inventory_gpu(const struct host *host, const struct inventory *inventory,
		   const struct xml_node *node, struct pool_gpu *gpu)
{
	memset(gpu, 0, sizeof(*gpu));
	if (node->kind != XML_PCI || (!node->nr_types && !is_gpu(node)))
		return false;
	strcpy(gpu->host, host->config.name);
	strcpy(gpu->addr, node->addr);
	snprintf(gpu->name, sizeof(gpu->name), "%s/%s", gpu->host, gpu->addr);
	name_model(node, gpu->model);
	snprintf(gpu->device, sizeof(gpu->device), "%04x:%04x", node->vendor & 0xffff,
		 node->product & 0xffff);
	gpu->present = true;
	if (node->nr_types) {
		fill_parent(host, inventory, node, gpu);
		return true;
	}
	if (!leads(inventory, node))
		return false;
	fill_whole(host, inventory, node, gpu);
	return true;
}

bool inventory_gpu_of(const struct host *host, const struct inventory *inventory,
		      const char *addr, struct pool_gpu *gpu)
{
	unsigned int f;
	size_t i;

	for (i = 0; i < inventory->nr; i++) {
		if (!inventory_gpu(host, inventory, &inventory->nodes[i], gpu))
			continue;
		for (f = 0; f < gpu->nr_functions; f++)
			if (!strcmp(gpu->functions[f], addr))
				return true;
	}
	return false;
}

enum host_result host_gpus(struct host *host, int (*fn)(const struct pool_gpu *, void *), void *arg,
			   char *text)
{
	struct inventory inventory;
	enum host_result result;
	struct pool_gpu gpu;
	int ret = 0;
	size_t i;

	result = inventory_load(host, &inventory, text);
	if (result != HOST_OK)
		return result;
	pthread_mutex_lock(&host->lock);
	for (i = 0; i < inventory.nr && !ret; i++)
		if (inventory_gpu(host, &inventory, &inventory.nodes[i], &gpu)) {
			look_at_held(host, &gpu);
			ret = fn(&gpu, arg);
		}
	if (!ret && host->local)
		ret = local_parents(host, fn, arg);
	pthread_mutex_unlock(&host->lock);
	inventory_free(&inventory);
	return ret ? host_says(HOST_RETRY, text, "%s: out of memory", host->config.name) : HOST_OK;
}

/* ---- what VMs have ---- */

/**
 * struct sighting - a request's devices in a VM, or a device of another's
 * @live: functions of the running VM, bits
 * @config: functions of the definition, bits
 * @active: the VM runs
 * @persistent: the VM has a definition
 */
struct sighting {
	struct pool_found found;
	char addr[POOL_ADDR_MAX];
	uint32_t live, config;
	bool active, persistent;
};

/**
 * struct look - a look at all VMs
 * @vm: the VM of now
 */
struct look {
	struct sighting *seen;
	size_t nr_seen;
	struct held *held;
	size_t nr_held;
	const char *vm;
	bool active, persistent;
};

static struct sighting *sighting_of(struct look *look, const struct xml_device *device)
{
	struct sighting *grown;
	size_t i;

	for (i = 0; i < look->nr_seen; i++) {
		const struct sighting *s = &look->seen[i];

		/* Those of others have no number; each stands for itself. */
		if (s->found.request == device->request && !strcmp(s->found.vm, look->vm) &&
		    (device->request || (!strcmp(s->addr, device->addr) &&
					 !strcmp(s->found.uuid, device->uuid))))
			return &look->seen[i];
	}
	grown = reallocarray(look->seen, look->nr_seen + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	look->seen = grown;
	grown += look->nr_seen++;
	memset(grown, 0, sizeof(*grown));
	grown->found.request = device->request;
	grown->active = look->active;
	grown->persistent = look->persistent;
	strcpy(grown->found.vm, look->vm);
	return grown;
}

static int see(struct look *look, const struct xml_device *device, bool live)
{
	struct sighting *s;
	struct held *grown;

	grown = reallocarray(look->held, look->nr_held + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	look->held = grown;
	strcpy(grown[look->nr_held].vm, look->vm);
	grown[look->nr_held++].device = *device;
	if (device->function >= 32)
		return 0;
	s = sighting_of(look, device);
	if (!s)
		return -ENOMEM;
	*(live ? &s->live : &s->config) |= UINT32_C(1) << device->function;
	if (*device->uuid)
		strcpy(s->found.uuid, device->uuid);
	if (*device->addr && (!*s->addr || !device->function))
		strcpy(s->addr, device->addr);
	return 0;
}

static int see_all(struct look *look, const struct vm_devices *devices, bool live)
{
	int ret = 0;
	size_t i;

	for (i = 0; i < devices->nr && !ret; i++)
		ret = see(look, &devices->devices[i], live);
	return ret;
}

/* Returns -ENOMEM, -EIO. A VM that is gone by now has nothing. */
static int look_at(struct look *look, virDomainPtr vm)
{
	struct vm_look now;
	int ret;

	look->vm = virDomainGetName(vm);
	if (!look->vm || strlen(look->vm) >= POOL_NAME_MAX)
		return 0;
	ret = host_vm_look(vm, &now);
	/* An error is no VM that is off and has no definition. */
	if (ret)
		return ret == -ENOENT || ret == -EINVAL ? 0 : ret;
	look->active = now.active;
	look->persistent = now.persistent;
	ret = see_all(look, &now.live, true);
	if (!ret)
		ret = see_all(look, &now.config, false);
	host_vm_forget(&now);
	return ret;
}

static enum host_result look_at_all(struct host *host, struct look *look, char *text)
{
	enum host_result result = HOST_OK;
	virDomainPtr *vms = NULL;
	int nr, i, ret = 0;

	nr = virConnectListAllDomains(host->conn, &vms, 0);
	if (nr < 0)
		return host_error(host, text, "no list of VMs");
	for (i = 0; i < nr && !ret; i++)
		ret = look_at(look, vms[i]);
	if (ret == -EIO)
		result = host_error(host, text, "no XML of VM %s", virDomainGetName(vms[i - 1]));
	else if (ret)
		result = host_says(HOST_RETRY, text, "%s: out of memory", host->config.name);
	while (nr > 0)
		virDomainFree(vms[--nr]);
	free(vms);
	return result;
}

/* The parent of an mdev: HOST/ADDRESS, "" if it is gone. */
static void name_parent(const struct host *host, const struct inventory *inventory,
			const char *uuid, char *name, size_t size)
{
	const struct xml_node *mdev = NULL, *parent = NULL;
	char addr[POOL_ADDR_MAX];
	size_t i;

	*name = '\0';
	if (host->local && local_parent(uuid, addr, sizeof(addr))) {
		snprintf(name, size, "%s/%s", host->config.name, addr);
		return;
	}
	for (i = 0; i < inventory->nr && !mdev; i++)
		if (!strcmp(inventory->nodes[i].uuid, uuid))
			mdev = &inventory->nodes[i];
	for (i = 0; mdev && i < inventory->nr && !parent; i++)
		if (!strcmp(inventory->nodes[i].name, mdev->parent))
			parent = &inventory->nodes[i];
	if (parent && parent->kind == XML_PCI)
		snprintf(name, size, "%s/%s", host->config.name, parent->addr);
	else if (mdev && *mdev->parent_addr)
		snprintf(name, size, "%s/%s", host->config.name, mdev->parent_addr);
}

static void complete(const struct host *host, const struct inventory *inventory,
		     struct sighting *s)
{
	struct pool_found *found = &s->found;
	struct pool_gpu gpu;
	uint32_t all = 1;

	if (*found->uuid) {
		name_parent(host, inventory, found->uuid, found->gpu, sizeof(found->gpu));
	} else if (inventory_gpu_of(host, inventory, s->addr, &gpu)) {
		strcpy(found->gpu, gpu.name);
		all = (UINT32_C(1) << gpu.nr_functions) - 1;
	} else {
		/* The host lost it: its functions are those that the VM has. */
		snprintf(found->gpu, sizeof(found->gpu), "%s/%s", host->config.name, s->addr);
		all = s->live | s->config;
	}
	found->partial = (s->active && s->live != all) || (s->persistent && s->config != all);
}

static int report(struct host *host, const struct inventory *inventory, struct look *look,
		  int (*fn)(const struct pool_found *, void *), void *arg)
{
	int ret = 0;
	size_t i;

	for (i = 0; i < look->nr_seen && !ret; i++) {
		complete(host, inventory, &look->seen[i]);
		ret = fn(&look->seen[i].found, arg);
	}
	return ret;
}

enum host_result host_found(struct host *host, int (*fn)(const struct pool_found *, void *),
			    void *arg, char *text)
{
	struct inventory inventory = { NULL, 0 };
	struct look look = { 0 };
	enum host_result result;
	int ret = 0;

	result = look_at_all(host, &look, text);
	if (result == HOST_OK)
		result = inventory_load(host, &inventory, text);
	if (result == HOST_OK) {
		pthread_mutex_lock(&host->lock);
		free(host->held);
		host->held = look.held;
		host->nr_held = look.nr_held;
		look.held = NULL;
		ret = report(host, &inventory, &look, fn, arg);
		pthread_mutex_unlock(&host->lock);
	}
	inventory_free(&inventory);
	free(look.seen);
	free(look.held);
	return ret ? host_says(HOST_RETRY, text, "%s: out of memory", host->config.name) : result;
}
