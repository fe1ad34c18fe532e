// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attaching and detaching: whole, or not at all.  Each function is looked for in the running VM
 * and in its definition first, so that a step that was done before is not done again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host_private.h"

/* A VM and its hostdevs. */
struct guest {
	virDomainPtr vm;
	char uuid[VIR_UUID_STRING_BUFLEN];
	struct vm_look now;
};

/* ---- the VM ---- */

static void guest_close(struct guest *guest)
{
	host_vm_forget(&guest->now);
	if (guest->vm)
		virDomainFree(guest->vm);
	guest->vm = NULL;
}

/*
 * Find out what it has now; after an error the last look counts.
 * -ENOENT: the VM is gone; -EIO: libvirt's error.
 */
static int guest_look(struct guest *guest)
{
	struct vm_look look;
	int ret = host_vm_look(guest->vm, &look);

	if (ret)
		return ret;
	host_vm_forget(&guest->now);
	guest->now = look;
	return 0;
}

/* -ENOENT: no such VM. */
static int guest_open(struct host *host, const struct pool_job *job, struct guest *guest)
{
	memset(guest, 0, sizeof(*guest));
	if (*job->vm.uuid)
		guest->vm = virDomainLookupByUUIDString(host->conn, job->vm.uuid);
	else
		guest->vm = virDomainLookupByName(host->conn, job->request.vm);
	if (!guest->vm)
		return host_last_error() == VIR_ERR_NO_DOMAIN ? -ENOENT : -EIO;
	if (virDomainGetUUIDString(guest->vm, guest->uuid))
		return -EIO;
	return guest_look(guest);
}

static const struct xml_device *find_alias(const struct vm_devices *devices, const char *alias)
{
	size_t i;

	for (i = 0; i < devices->nr; i++)
		if (!strcmp(devices->devices[i].alias, alias))
			return &devices->devices[i];
	return NULL;
}

static void make_alias(uint64_t request, unsigned int function, char alias[POOL_NAME_MAX])
{
	snprintf(alias, POOL_NAME_MAX, "ua-mgpu-%" PRIu64 "-%u", request, function);
}

/* The node device of a PCI function; NULL with libvirt's error. */
static virNodeDevicePtr node_of(struct host *host, const char *addr)
{
	char name[XML_NAME_MAX];

	if (xml_node_name(addr, name, sizeof(name)))
		return NULL;
	return virNodeDeviceLookupByName(host->conn, name);
}

/* ---- definitions, where libvirt's driver plugs nothing ---- */

/* Libvirt's test driver, and others without hot-plug: change the definition as a whole. */
static int redefine(struct host *host, struct guest *guest, const char *xml, const char *alias)
{
	char *old, *changed = NULL;
	virDomainPtr vm = NULL;
	int ret;

	old = virDomainGetXMLDesc(guest->vm, VIR_DOMAIN_XML_INACTIVE | VIR_DOMAIN_XML_SECURE);
	if (!old)
		return -1;
	ret = xml ? xml_domain_add(old, xml, &changed) : xml_domain_remove(old, alias, &changed);
	if (!ret)
		vm = virDomainDefineXML(host->conn, changed);
	free(changed);
	free(old);
	if (!vm)
		return -1;
	virDomainFree(vm);
	return 0;
}

/* Detach a device by its alias from the running VM, or from the definition. */
static int ask_detach(struct host *host, struct guest *guest, const char *alias, unsigned int flags)
{
	if (!virDomainDetachDeviceAlias(guest->vm, alias, flags))
		return 0;
	if (host_last_error() == VIR_ERR_NO_SUPPORT && flags == VIR_DOMAIN_AFFECT_CONFIG)
		return redefine(host, guest, NULL, alias);
	return -1;
}

static int attach(struct host *host, struct guest *guest, const char *xml, unsigned int flags)
{
	if (!virDomainAttachDeviceFlags(guest->vm, xml, flags))
		return 0;
	if (host_last_error() == VIR_ERR_NO_SUPPORT && flags == VIR_DOMAIN_AFFECT_CONFIG)
		return redefine(host, guest, xml, NULL);
	return -1;
}

/* ---- unplugging ---- */

static void watch(struct host *host, struct unplug *u, const struct guest *guest,
		  const char alias[POOL_NAME_MAX])
{
	memset(u, 0, sizeof(*u));
	strcpy(u->vm, guest->uuid);
	strcpy(u->alias, alias);
	pthread_mutex_lock(&host->lock);
	u->next = host->unplugs;
	host->unplugs = u;
	pthread_mutex_unlock(&host->lock);
}

static void unwatch(struct host *host, struct unplug *u)
{
	struct unplug **at = &host->unplugs;

	pthread_mutex_lock(&host->lock);
	while (*at != u)
		at = &(*at)->next;
	*at = u->next;
	pthread_mutex_unlock(&host->lock);
}

/* Wait for the event, its refusal, or a time. Return whether it is gone. */
static bool await(struct host *host, struct unplug *u, int64_t until)
{
	bool gone;

	pthread_mutex_lock(&host->lock);
	while (!u->gone && !u->refused && !host->stopped && host_ns() < until)
		host_wait(host, until);
	gone = u->gone;
	pthread_mutex_unlock(&host->lock);
	return gone;
}

static void set_gone(struct host *host, struct unplug *u)
{
	pthread_mutex_lock(&host->lock);
	u->gone = true;
	pthread_mutex_unlock(&host->lock);
}

static bool take_refusal(struct host *host, struct unplug *u)
{
	bool refused;

	pthread_mutex_lock(&host->lock);
	refused = u->refused;
	u->refused = false;
	pthread_mutex_unlock(&host->lock);
	return refused;
}

/* Ask a running VM's guest to let a device go; libvirt refuses while an earlier request runs. */
static void ask(struct host *host, struct guest *guest, struct unplug *u, char *text)
{
	if (!ask_detach(host, guest, u->alias, VIR_DOMAIN_AFFECT_LIVE))
		return;
	if (host_last_error() == VIR_ERR_DEVICE_MISSING || host_last_error() == VIR_ERR_NO_DOMAIN)
		set_gone(host, u);
	else
		host_error(host, text, "VM %s", virDomainGetName(guest->vm));
}

/* Whether the running VM no longer has it, whatever events came. */
static bool is_gone(const char *alias, struct guest *guest)
{
	int ret = guest_look(guest);

	return ret == -ENOENT || (!ret && !find_alias(&guest->now.live, alias));
}

/*
 * A guest that has just got a device, or still boots, refuses or does not answer: it is asked
 * again until the time is over.
 */
static enum host_result unplug(struct host *host, struct guest *guest, struct unplug *u,
			       int64_t until, char *text)
{
	const char *name = virDomainGetName(guest->vm);
	char why[POOL_TEXT_MAX] = "";

	for (;;) {
		int64_t again = host_ns() + HOST_AGAIN_SECONDS * INT64_C(1000000000);

		if (await(host, u, again < until ? again : until) || is_gone(u->alias, guest))
			return HOST_OK;
		if (host_is_stopped(host))
			return host_says(HOST_RETRY, text, "%s: the service stops",
					 host->config.name);
		if (host_ns() >= until)
			return host_says(HOST_RETRY, text, "%s: the guest of VM %s does not let %s go%s%.300s; see whether it has booted, its driver for PCI hot-plug, and programs that use the GPU",
					 host->config.name, name, u->alias, *why ? ": " : "", why);
		if (take_refusal(host, u))
			host_sleep(host, 0.5);
		ask(host, guest, u, why);
	}
}

/* ---- detaching ---- */

/* Aliases of a request's devices, each once. */
static unsigned int list_aliases(const struct guest *guest, uint64_t request,
				 char aliases[POOL_FUNCTIONS_MAX][POOL_NAME_MAX])
{
	const struct vm_devices *lists[] = { &guest->now.live, &guest->now.config };
	unsigned int nr = 0, known;
	size_t l, i;

	for (l = 0; l < 2; l++)
		for (i = 0; i < lists[l]->nr; i++) {
			const struct xml_device *d = &lists[l]->devices[i];

			for (known = 0; known < nr && strcmp(aliases[known], d->alias); known++)
				;
			if (d->request == request && known == nr && nr < POOL_FUNCTIONS_MAX)
				strcpy(aliases[nr++], d->alias);
		}
	return nr;
}

/* All of them are asked for before the first is waited for: guests take seconds for each. */
static enum host_result unplug_all(struct host *host, struct guest *guest, unsigned int nr,
				   char aliases[POOL_FUNCTIONS_MAX][POOL_NAME_MAX],
				   unsigned int seconds, char *text)
{
	int64_t until = host_ns() + seconds * INT64_C(1000000000);
	struct unplug unplugs[POOL_FUNCTIONS_MAX];
	enum host_result result = HOST_OK;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		watch(host, &unplugs[i], guest, aliases[i]);
		if (find_alias(&guest->now.live, aliases[i]))
			ask(host, guest, &unplugs[i], text);
		else
			set_gone(host, &unplugs[i]);
	}
	for (i = 0; i < nr; i++) {
		if (result == HOST_OK)
			result = unplug(host, guest, &unplugs[i], until, text);
		unwatch(host, &unplugs[i]);
	}
	return result;
}

static enum host_result undefine_all(struct host *host, struct guest *guest, unsigned int nr,
				     char aliases[POOL_FUNCTIONS_MAX][POOL_NAME_MAX], char *text)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (find_alias(&guest->now.config, aliases[i]) &&
		    ask_detach(host, guest, aliases[i], VIR_DOMAIN_AFFECT_CONFIG) &&
		    host_last_error() != VIR_ERR_DEVICE_MISSING &&
		    host_last_error() != VIR_ERR_NO_DOMAIN)
			return host_error(host, text, "definition of VM %s",
					  virDomainGetName(guest->vm));
	return HOST_OK;
}

/*
 * Bring the host's driver back to a function that no VM has any more. Libvirt does that for those
 * that came with managed='yes' when the VM started, one by one, and may fail while the group was in
 * use: so a function without a driver is tried, too.
 */
static void return_driver(struct host *host, const char *addr)
{
	virNodeDevicePtr node = node_of(host, addr);
	char *xml = node ? virNodeDeviceGetXMLDesc(node, 0) : NULL;
	struct xml_node *now = malloc(sizeof(*now));

	if (xml && now && !xml_node(xml, now) && (!*now->driver || is_vfio(now->driver)))
		virNodeDeviceReAttach(node);
	free(now);
	free(xml);
	if (node)
		virNodeDeviceFree(node);
}

/* Functions of a request in a VM whose drivers the service took, or libvirt at the VM's start. */
static unsigned int list_managed(const struct guest *guest, uint64_t request,
				 char addrs[POOL_FUNCTIONS_MAX][POOL_ADDR_MAX])
{
	/* Only a definition remembers it; a VM without one gets the host's driver back. */
	const struct vm_look *now = &guest->now;
	const struct vm_devices *list = now->persistent ? &now->config : &now->live;
	unsigned int nr = 0;
	size_t i;

	for (i = 0; i < list->nr && nr < POOL_FUNCTIONS_MAX; i++) {
		const struct xml_device *d = &list->devices[i];

		if (d->request == request && *d->addr && (d->managed || !now->persistent))
			strcpy(addrs[nr++], d->addr);
	}
	return nr;
}

static bool has_any(const struct guest *guest, uint64_t request)
{
	char aliases[POOL_FUNCTIONS_MAX][POOL_NAME_MAX];

	return list_aliases(guest, request, aliases) > 0;
}

static enum host_result detach_all(struct host *host, struct guest *guest, uint64_t request,
				   unsigned int seconds, char *text)
{
	char aliases[POOL_FUNCTIONS_MAX][POOL_NAME_MAX];
	char managed[POOL_FUNCTIONS_MAX][POOL_ADDR_MAX];
	unsigned int nr = list_aliases(guest, request, aliases);
	unsigned int nr_managed = list_managed(guest, request, managed);
	enum host_result result = HOST_OK;
	unsigned int i;

	if (guest->now.active)
		result = unplug_all(host, guest, nr, aliases, seconds, text);
	/* Before the definition forgets: a crash in between does it once more. */
	for (i = 0; result == HOST_OK && i < nr_managed; i++)
		return_driver(host, managed[i]);
	if (result == HOST_OK)
		result = undefine_all(host, guest, nr, aliases, text);
	return result;
}

/*
 * The GPU of a VM whose definition is gone, or lost it by another program: functions that a driver
 * of the host had before go back to it. Libvirt refuses those that another VM has by now.
 */
static void return_drivers(struct host *host, const struct pool_gpu *gpu)
{
	unsigned int f;

	for (f = 0; gpu->target == POOL_WHOLE && f < gpu->nr_functions; f++)
		if (gpu->managed & UINT32_C(1) << f)
			return_driver(host, gpu->functions[f]);
}

/* A whole GPU has no mdev, and of a request without an UUID none is stored. */
static enum host_result remove_mdev(struct host *host, const struct pool_job *job, char *text)
{
	char uuid[POOL_UUID_MAX];

	if (!*job->request.uuid && job->gpu.target != POOL_VGPU)
		return HOST_OK;
	mdev_uuid(job, uuid);
	return mdev_remove(host, uuid, text);
}

enum host_result host_detach(struct host *host, const struct pool_job *job, double *seconds,
			     char *text)
{
	enum host_result result = HOST_OK;
	int64_t begin = host_ns();
	struct guest guest;
	int ret;

	ret = guest_open(host, job, &guest);
	/* Without the VM there is no device; it was undefined, or another host has it. */
	if (ret == -ENOENT || (!ret && !has_any(&guest, job->request.id)))
		return_drivers(host, &job->gpu);
	if (!ret)
		result = detach_all(host, &guest, job->request.id, HOST_UNPLUG_SECONDS, text);
	else if (ret != -ENOENT)
		result = host_error(host, text, "no XML of VM %s", job->request.vm);
	guest_close(&guest);
	if (result == HOST_OK)
		result = remove_mdev(host, job, text);
	if (seconds)
		*seconds = (double)(host_ns() - begin) / 1e9;
	return result;
}

/* ---- attaching ---- */

/* A device of the same address or UUID is in the VM under another name. */
static bool has_other(const struct vm_devices *devices, const struct xml_device *d)
{
	size_t i;

	for (i = 0; i < devices->nr; i++)
		if (strcmp(devices->devices[i].alias, d->alias) &&
		    !strcmp(devices->devices[i].addr, d->addr) &&
		    !strcmp(devices->devices[i].uuid, d->uuid))
			return true;
	return false;
}

static enum host_result no_plugging(const struct host *host, const struct guest *guest, char *text)
{
	return host_says(HOST_FAILED, text, "%s: libvirt's driver of this host plugs nothing into a running VM; shut %s down",
			 host->config.name, virDomainGetName(guest->vm));
}

/* Attach a device to the running VM or to its definition, unless it is there. */
static enum host_result attach_device(struct host *host, struct guest *guest, const char *xml,
				      const struct xml_device *d, unsigned int flag, char *text)
{
	const char *name = virDomainGetName(guest->vm);
	const struct vm_devices *there;

	there = flag == VIR_DOMAIN_AFFECT_LIVE ? &guest->now.live : &guest->now.config;
	if (has_other(there, d))
		return host_says(HOST_FAILED, text, "%s: VM %s has %s already, and not from the pool; take it from the VM first",
				 host->config.name, name, *d->addr ? d->addr : d->uuid);
	if (find_alias(there, d->alias) || !attach(host, guest, xml, flag))
		return HOST_OK;
	if (host_last_error() == VIR_ERR_NO_SUPPORT)
		return no_plugging(host, guest, text);
	return host_error(host, text, "VM %s: %s", name, *d->addr ? d->addr : d->uuid);
}

/**
 * struct whole - a whole GPU on its way to a VM
 * @devices: its functions; @managed: they have a driver of the host's to come back to
 */
struct whole {
	struct xml_device devices[POOL_FUNCTIONS_MAX];
	unsigned int nr;
};

/* Look at the GPU's group again: it may have changed since the choice. */
static enum host_result check_gpu(struct host *host, const struct pool_job *job,
				  const struct inventory *inventory, struct pool_gpu *gpu,
				  char *text)
{
	const char *addr = job->gpu.addr;
	const struct xml_node *node = inventory_find(inventory, addr);
	char why[256];

	if (!node || !inventory_gpu(host, inventory, node, gpu) || gpu->target != POOL_WHOLE)
		return host_says(HOST_FAILED, text, "%s: %s is no GPU that can be given whole; see mgpu-poold check",
				 host->config.name, addr);
	if (gpu->offline)
		return host_says(HOST_FAILED, text, "%s: %s: %.400s", host->config.name, addr,
				 gpu->why);
	if (host->local && !is_vfio(node->driver) && local_in_use(addr, why, sizeof(why)))
		return host_says(HOST_FAILED, text, "%s: %s", host->config.name, why);
	return HOST_OK;
}

/*
 * The definition remembers whether a function had a driver of the host's: managed='yes'. So it
 * comes before the driver is taken away.
 */
static void fill_function(const struct guest *guest, const struct inventory *inventory,
			  uint64_t request, unsigned int f, const char *addr, struct xml_device *d)
{
	const struct xml_node *node = inventory_find(inventory, addr);
	const struct xml_device *before;

	memset(d, 0, sizeof(*d));
	d->request = request;
	d->function = f;
	strcpy(d->addr, addr);
	make_alias(request, f, d->alias);
	before = find_alias(&guest->now.config, d->alias);
	d->managed = before ? before->managed : !node || !is_vfio(node->driver);
}

static enum host_result look_at_whole(struct host *host, const struct guest *guest,
				      const struct pool_job *job, struct whole *whole, char *text)
{
	struct inventory inventory;
	enum host_result result;
	struct pool_gpu gpu;

	whole->nr = 0;
	result = inventory_load_group(host, job->gpu.addr, &inventory, text);
	pthread_mutex_lock(&host->lock);
	if (result == HOST_OK)
		result = check_gpu(host, job, &inventory, &gpu, text);
	pthread_mutex_unlock(&host->lock);
	for (; result == HOST_OK && whole->nr < gpu.nr_functions; whole->nr++)
		fill_function(guest, &inventory, job->request.id, whole->nr,
			      gpu.functions[whole->nr], &whole->devices[whole->nr]);
	inventory_free(&inventory);
	return result;
}

/* Take the host's driver away from a function, and bind it to vfio-pci. */
static enum host_result take_driver(struct host *host, const struct guest *guest, const char *addr,
				    char *text)
{
	virNodeDevicePtr node = node_of(host, addr);
	enum host_result result = HOST_OK;

	if (!node)
		return host_error(host, text, "%s", addr);
	if (virNodeDeviceDetachFlags(node, NULL, 0))
		result = host_last_error() == VIR_ERR_NO_SUPPORT ?
			 no_plugging(host, guest, text) :
			 host_error(host, text, "%s stays with the host's driver", addr);
	virNodeDeviceFree(node);
	return result;
}

static enum host_result attach_functions(struct host *host, struct guest *guest,
					 const struct whole *whole, unsigned int flag, char *text)
{
	enum host_result result = HOST_OK;
	char xml[XML_HOSTDEV_MAX];
	unsigned int f;

	for (f = 0; result == HOST_OK && f < whole->nr; f++) {
		const struct xml_device *d = &whole->devices[f];

		/* The service brings the drivers back that it takes away, all at once. */
		if (xml_hostdev_pci(d->addr, d->request, f,
				    d->managed && flag == VIR_DOMAIN_AFFECT_CONFIG, xml,
				    sizeof(xml)))
			return host_says(HOST_FAILED, text, "%s: %s is no address of a PCI function",
					 host->config.name, d->addr);
		result = attach_device(host, guest, xml, d, flag, text);
	}
	return result;
}

/*
 * A VM that was off may have started before its definition changed: then it runs without the
 * device. One that started after has it.
 */
static enum host_result look_whether_started(struct host *host, struct guest *guest, char *text)
{
	int ret = 0;

	if (!guest->now.active && virDomainIsActive(guest->vm) != 0)
		ret = guest_look(guest);
	return ret ? host_error(host, text, "no XML of VM %s", virDomainGetName(guest->vm)) :
		     HOST_OK;
}

static enum host_result attach_whole(struct host *host, struct guest *guest,
				     const struct pool_job *job, char *text)
{
	enum host_result result;
	struct whole whole;
	unsigned int f;

	result = look_at_whole(host, guest, job, &whole, text);
	if (result == HOST_OK && guest->now.persistent)
		result = attach_functions(host, guest, &whole, VIR_DOMAIN_AFFECT_CONFIG, text);
	if (result == HOST_OK)
		result = look_whether_started(host, guest, text);
	for (f = 0; result == HOST_OK && guest->now.active && f < whole.nr; f++) {
		const struct xml_device *d = &whole.devices[f];

		if (d->managed && !find_alias(&guest->now.live, d->alias))
			result = take_driver(host, guest, d->addr, text);
	}
	if (result == HOST_OK && guest->now.active)
		result = attach_functions(host, guest, &whole, VIR_DOMAIN_AFFECT_LIVE, text);
	return result;
}

/* Whether a device is in neither of a running VM and its definition, under any name. */
static bool is_new(const struct guest *guest, const struct xml_device *d)
{
	const struct vm_look *now = &guest->now;

	return !find_alias(&now->live, d->alias) && !find_alias(&now->config, d->alias) &&
	       !has_other(&now->live, d) && !has_other(&now->config, d);
}

/* To the running VM and its definition in a single call, which does both or nothing. */
static enum host_result attach_at_once(struct host *host, struct guest *guest, const char *xml,
				       const struct xml_device *d, char *text)
{
	if (!attach(host, guest, xml, VIR_DOMAIN_AFFECT_LIVE | VIR_DOMAIN_AFFECT_CONFIG))
		return HOST_OK;
	if (host_last_error() == VIR_ERR_NO_SUPPORT)
		return no_plugging(host, guest, text);
	return host_error(host, text, "VM %s: %s", virDomainGetName(guest->vm), d->uuid);
}

static enum host_result attach_vgpu(struct host *host, struct guest *guest,
				    const struct pool_job *job, char *text)
{
	struct xml_device d = { .request = job->request.id };
	enum host_result result;
	char xml[XML_HOSTDEV_MAX];

	result = mdev_make(host, job, text);
	if (result != HOST_OK)
		return result;
	strcpy(d.uuid, job->request.uuid);
	make_alias(d.request, 0, d.alias);
	if (xml_hostdev_mdev(d.uuid, d.request, xml, sizeof(xml)))
		return host_says(HOST_FAILED, text, "%s: '%s' is no UUID", host->config.name,
				 d.uuid);
	if (guest->now.persistent && guest->now.active && is_new(guest, &d))
		return attach_at_once(host, guest, xml, &d, text);
	if (guest->now.persistent)
		result = attach_device(host, guest, xml, &d, VIR_DOMAIN_AFFECT_CONFIG, text);
	if (result == HOST_OK)
		result = look_whether_started(host, guest, text);
	if (result == HOST_OK && guest->now.active)
		result = attach_device(host, guest, xml, &d, VIR_DOMAIN_AFFECT_LIVE, text);
	return result;
}

/* Take back what came of it; what stays is found at the next look, and taken then. */
static enum host_result undo(struct host *host, struct guest *guest, const struct pool_job *job,
			     enum host_result result)
{
	char why[POOL_TEXT_MAX] = "";
	enum host_result undone = HOST_RETRY;
	int ret;

	if (!guest->vm)
		return result;
	ret = guest_look(guest);
	if (!ret)
		undone = detach_all(host, guest, job->request.id, HOST_UNDO_SECONDS, why);
	if (undone == HOST_OK || ret == -ENOENT)
		undone = remove_mdev(host, job, why);
	if (undone != HOST_OK)
		host_tell(host, HOST_NEWS_DEVICES);
	return result;
}

enum host_result host_attach(struct host *host, const struct pool_job *job,
			     char uuid[POOL_UUID_MAX], double *seconds, char *text)
{
	struct pool_job with_uuid = *job;
	int64_t begin = host_ns();
	enum host_result result;
	struct guest guest;
	int ret;

	*text = '\0';
	if (job->gpu.target == POOL_VGPU)
		mdev_uuid(job, with_uuid.request.uuid);
	ret = guest_open(host, job, &guest);
	if (ret == -ENOENT)
		result = host_says(HOST_FAILED, text, "%s: there is no VM %s; define it on this host, or take it out of the pool",
				   host->config.name, job->request.vm);
	else if (ret)
		result = host_error(host, text, "no XML of VM %s", job->request.vm);
	else if (job->gpu.target == POOL_VGPU)
		result = attach_vgpu(host, &guest, &with_uuid, text);
	else
		result = attach_whole(host, &guest, &with_uuid, text);
	if (!ret && result != HOST_OK)
		result = undo(host, &guest, &with_uuid, result);
	guest_close(&guest);
	strcpy(uuid, with_uuid.request.uuid);
	if (seconds)
		*seconds = (double)(host_ns() - begin) / 1e9;
	return result;
}
