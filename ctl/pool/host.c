// SPDX-License-Identifier: GPL-2.0-only
/* Hosts: the connection to libvirt, its events, VMs and their devices. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "complain.h"
#include "host_private.h"
#include "mgpu.h"

#define KEEPALIVE_SECONDS	5
#define KEEPALIVE_COUNT		4
#define CALLBACKS_NS		INT64_C(2000000000)

/* ---- the event loop ---- */

static void *event_loop(void *arg)
{
	(void)arg;
	for (;;)
		virEventRunDefaultImpl();
	return NULL;
}

/* Errors are in the answers; libvirt would print them, too. */
static void quiet(void *arg, virErrorPtr error)
{
	(void)arg;
	(void)error;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int init_result;

static void init(void)
{
	pthread_attr_t attributes;
	pthread_t thread;

	xml_init();
	virSetErrorFunc(NULL, quiet);
	if (virInitialize() || virEventRegisterDefaultImpl()) {
		init_result = -EIO;
		return;
	}
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	init_result = -pthread_create(&thread, &attributes, event_loop, NULL);
	pthread_attr_destroy(&attributes);
}

int host_init(void)
{
	pthread_once(&once, init);
	return init_result;
}

/* ---- errors ---- */

enum host_result host_says(enum host_result result, char *text, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, POOL_TEXT_MAX, fmt, ap);
	va_end(ap);
	return result;
}

int host_last_error(void)
{
	const virError *error = virGetLastError();

	return error ? error->code : VIR_ERR_OK;
}

/* Errors that come again. */
static bool is_final(int code)
{
	switch (code) {
	case VIR_ERR_NO_DOMAIN:
	case VIR_ERR_NO_NODE_DEVICE:
	case VIR_ERR_NO_SUPPORT:
	case VIR_ERR_XML_ERROR:
	case VIR_ERR_XML_DETAIL:
	case VIR_ERR_CONFIG_UNSUPPORTED:
	case VIR_ERR_ARGUMENT_UNSUPPORTED:
	case VIR_ERR_INVALID_ARG:
	case VIR_ERR_OPERATION_DENIED:
	case VIR_ERR_ACCESS_DENIED:
	case VIR_ERR_AUTH_FAILED:
	case VIR_ERR_AUTH_UNAVAILABLE:
	case VIR_ERR_AUTH_CANCELLED:
		return true;
	}
	return false;
}

/* Errors of libvirt that name no remedy, and remedies; the first that fits counts. */
static const struct {
	const char *part, *remedy;
	bool final;
} remedies[] = {
	{ "No more available PCI slots",
	  "; add <controller type='pci' model='pcie-root-port'/> to the VM, one for each device, or a pcie-to-pci-bridge for a device without PCIe",
	  true },
	{ "does not support hotplugging", "; the VM needs the machine type q35, and free pcie-root-ports",
	  true },
	{ "VFIO device assignment is currently not supported",
	  "; turn on the IOMMU (mgpu-poold check)", true },
	{ "Permission denied (", "; put the public half of the service's key (keyfile=) into authorized_keys of the account on the host, and see that it needs no passphrase",
	  false },
	{ "Host key verification failed", "; connect by ssh once as the service's user, so that its known_hosts has the host's key",
	  false },
	{ "Failed to verify peer's certificate",
	  "; the authority in cacert.pem must have signed the host's servercert.pem, which must have the host's name of the URI",
	  false },
	{ "TLS confirmation", "; the host refuses the service's certificate; its cacert.pem must have signed clientcert.pem, and its tls_allowed_dn_list must have the name (see the host's log)",
	  false },
	{ "failed validation against", "; cacert.pem must be of the authority that signed clientcert.pem",
	  false },
	{ "Cannot read CA certificate", "; put cacert.pem, clientcert.pem and clientkey.pem where the URI's pkipath says, or to /etc/pki (GPU pool, Remote hosts)",
	  false },
	{ "unable to connect to server at", "; start the host's libvirtd with TLS (virtproxyd-tls.socket), or mend the URI and the firewall",
	  false },
	{ "ssh: connect to host", "; start the host's SSH server, or mend the URI and the firewall",
	  false },
	{ "Permission denied", "; the service's user needs the group libvirt", false },
	{ "Failed to connect socket", "; start libvirtd, or mend the URI", false },
	{ "Numerical result out of range",
	  "; weights are 1 to 10000, floors 1 to 10000 frames/s", true },
};

enum host_result host_error(const struct host *host, char *text, const char *fmt, ...)
{
	const virError *error = virGetLastError();
	const char *message = error && error->message ? error->message : "libvirt gave no reason";
	bool final = error && is_final(error->code);
	const char *remedy = "";
	char what[128];
	va_list ap;
	size_t i;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	for (i = 0; i < sizeof(remedies) / sizeof(*remedies) && !*remedy; i++)
		if (strstr(message, remedies[i].part)) {
			remedy = remedies[i].remedy;
			final |= remedies[i].final;
		}
	snprintf(text, POOL_TEXT_MAX, "%s: %s: %.300s%s", host->config.name, what, message, remedy);
	return final ? HOST_FAILED : HOST_RETRY;
}

/* ---- time ---- */

int64_t host_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void host_wait(struct host *host, int64_t until)
{
	struct timespec t = { until / 1000000000, until % 1000000000 };

	if (!host->stopped)
		pthread_cond_timedwait(&host->changed, &host->lock, &t);
}

void host_sleep(struct host *host, double seconds)
{
	int64_t until = host_ns() + (int64_t)(seconds * 1e9);

	pthread_mutex_lock(&host->lock);
	while (!host->stopped && host_ns() < until)
		host_wait(host, until);
	pthread_mutex_unlock(&host->lock);
}

/* ---- life ---- */

struct host *host_new(const struct pool_host *config)
{
	struct host *host = calloc(1, sizeof(*host));
	pthread_condattr_t attributes;
	size_t i;

	if (!host || host_init()) {
		free(host);
		return NULL;
	}
	host->config = *config;
	host->local = local_is(config->uri);
	host->references = 1;
	for (i = 0; i < HOST_CALLBACKS; i++)
		host->callbacks[i] = -1;
	pthread_mutex_init(&host->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&host->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	return host;
}

void host_put(void *arg)
{
	struct host *host = arg;
	bool last;

	pthread_mutex_lock(&host->lock);
	last = !--host->references;
	pthread_cond_broadcast(&host->changed);
	pthread_mutex_unlock(&host->lock);
	if (!last)
		return;
	/* It came too late. */
	if (host->opened)
		virConnectClose(host->opened);
	pthread_cond_destroy(&host->changed);
	pthread_mutex_destroy(&host->lock);
	free(host->held);
	free(host->made);
	free(host);
}

/* A reference for a callback, which libvirt gives back with host_put(). */
static struct host *get(struct host *host)
{
	pthread_mutex_lock(&host->lock);
	host->references++;
	pthread_mutex_unlock(&host->lock);
	return host;
}

void host_watch(struct host *host, void (*news)(void *arg, enum host_news news), void *arg)
{
	host->news = news;
	host->news_arg = arg;
}

void host_tell(struct host *host, enum host_news news)
{
	void (*tell)(void *arg, enum host_news news);

	pthread_mutex_lock(&host->lock);
	tell = host->stopped ? NULL : host->news;
	if (tell)
		tell(host->news_arg, news);
	pthread_mutex_unlock(&host->lock);
}

void host_stop(struct host *host)
{
	pthread_mutex_lock(&host->lock);
	host->stopped = true;
	pthread_cond_broadcast(&host->changed);
	pthread_mutex_unlock(&host->lock);
}

bool host_is_stopped(struct host *host)
{
	bool stopped;

	pthread_mutex_lock(&host->lock);
	stopped = host->stopped;
	pthread_mutex_unlock(&host->lock);
	return stopped;
}

/* ---- events ---- */

static struct unplug *find_unplug(struct host *host, const char *vm, const char *alias)
{
	struct unplug *u = host->unplugs;

	while (u && (strcmp(u->vm, vm) || strcmp(u->alias, alias)))
		u = u->next;
	return u;
}

/* A device that another program gives or takes: it may be a GPU's function. */
static void others(struct host *host, const char *alias)
{
	if (!strncmp(alias, "hostdev", 7))
		host_tell(host, HOST_NEWS_DEVICES);
}

/* A device went, or a guest refused to let it go. */
static void unplugged(struct host *host, virDomainPtr vm, const char *alias, bool refused)
{
	char uuid[VIR_UUID_STRING_BUFLEN];
	unsigned int function;
	uint64_t request;
	struct unplug *u;

	if (!xml_alias(alias, &request, &function)) {
		others(host, alias);
		return;
	}
	if (virDomainGetUUIDString(vm, uuid))
		return;
	pthread_mutex_lock(&host->lock);
	u = find_unplug(host, uuid, alias);
	if (u && refused)
		u->refused = true;
	else if (u)
		u->gone = true;
	pthread_cond_broadcast(&host->changed);
	pthread_mutex_unlock(&host->lock);
	if (!u && !refused)
		host_tell(host, HOST_NEWS_DEVICES);
}

static void on_removed(virConnectPtr conn, virDomainPtr vm, const char *alias, void *arg)
{
	(void)conn;
	unplugged(arg, vm, alias, false);
}

static void on_added(virConnectPtr conn, virDomainPtr vm, const char *alias, void *arg)
{
	(void)conn;
	(void)vm;
	others(arg, alias);
}

static void on_refused(virConnectPtr conn, virDomainPtr vm, const char *alias, void *arg)
{
	(void)conn;
	unplugged(arg, vm, alias, true);
}

/* A VM that had devices at the last look. */
static bool has_devices(struct host *host, virDomainPtr vm)
{
	const char *name = virDomainGetName(vm);
	bool found = false;
	size_t i;

	pthread_mutex_lock(&host->lock);
	for (i = 0; name && i < host->nr_held && !found; i++)
		found = !strcmp(host->held[i].vm, name);
	pthread_mutex_unlock(&host->lock);
	return found;
}

static int on_vm(virConnectPtr conn, virDomainPtr vm, int event, int detail, void *arg)
{
	char uuid[VIR_UUID_STRING_BUFLEN];
	struct host *host = arg;
	struct unplug *u;

	(void)conn;
	(void)detail;
	switch (event) {
	case VIR_DOMAIN_EVENT_STOPPED:
		if (virDomainGetUUIDString(vm, uuid))
			break;
		pthread_mutex_lock(&host->lock);
		for (u = host->unplugs; u; u = u->next)
			u->gone |= !strcmp(u->vm, uuid);
		pthread_cond_broadcast(&host->changed);
		pthread_mutex_unlock(&host->lock);
		host_tell(host, has_devices(host, vm) ? HOST_NEWS_DEVICES : HOST_NEWS_VMS);
		break;
	case VIR_DOMAIN_EVENT_DEFINED:
	case VIR_DOMAIN_EVENT_UNDEFINED:
	case VIR_DOMAIN_EVENT_STARTED:
		host_tell(host, HOST_NEWS_VMS);
		break;
	}
	return 0;
}

static void on_node(virConnectPtr conn, virNodeDevicePtr device, int event, int detail, void *arg)
{
	(void)conn;
	(void)device;
	(void)event;
	(void)detail;
	host_tell(arg, HOST_NEWS_GPUS);
}

static void on_node_update(virConnectPtr conn, virNodeDevicePtr device, void *arg)
{
	on_node(conn, device, 0, 0, arg);
}

static void on_close(virConnectPtr conn, int reason, void *arg)
{
	struct host *host = arg;

	(void)conn;
	(void)reason;
	pthread_mutex_lock(&host->lock);
	host->closed = true;
	pthread_cond_broadcast(&host->changed);
	pthread_mutex_unlock(&host->lock);
	host_tell(host, HOST_NEWS_CLOSED);
}

static int vm_event(struct host *host, int event, virConnectDomainEventGenericCallback fn)
{
	int id = virConnectDomainEventRegisterAny(host->conn, NULL, event, fn, get(host), host_put);

	if (id < 0)
		host_put(host);
	return id;
}

static int node_event(struct host *host, int event, virConnectNodeDeviceEventGenericCallback fn)
{
	int id = virConnectNodeDeviceEventRegisterAny(host->conn, NULL, event, fn, get(host),
						      host_put);

	if (id < 0)
		host_put(host);
	return id;
}

/* Drivers lack some of these; looks at VMs and at node devices make up for them. */
static void register_events(struct host *host)
{
	host->callbacks[0] = vm_event(host, VIR_DOMAIN_EVENT_ID_LIFECYCLE,
				      VIR_DOMAIN_EVENT_CALLBACK(on_vm));
	host->callbacks[1] = vm_event(host, VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED,
				      VIR_DOMAIN_EVENT_CALLBACK(on_removed));
	host->callbacks[2] = vm_event(host, VIR_DOMAIN_EVENT_ID_DEVICE_REMOVAL_FAILED,
				      VIR_DOMAIN_EVENT_CALLBACK(on_refused));
	host->callbacks[3] = vm_event(host, VIR_DOMAIN_EVENT_ID_DEVICE_ADDED,
				      VIR_DOMAIN_EVENT_CALLBACK(on_added));
	host->callbacks[4] = node_event(host, VIR_NODE_DEVICE_EVENT_ID_LIFECYCLE,
					VIR_NODE_DEVICE_EVENT_CALLBACK(on_node));
	host->callbacks[5] = node_event(host, VIR_NODE_DEVICE_EVENT_ID_UPDATE,
					VIR_NODE_DEVICE_EVENT_CALLBACK(on_node_update));
	/* Drivers without it say that all is well, and never give a reference back. */
	virConnectRegisterCloseCallback(host->conn, on_close, host, NULL);
}

/* ---- the connection ---- */

/* Libvirt's event loop gives a callback back a moment after it was told to. */
static void wait_for_references(struct host *host, unsigned int references)
{
	int64_t until = host_ns() + CALLBACKS_NS;
	struct timespec t = { until / 1000000000, until % 1000000000 };

	pthread_mutex_lock(&host->lock);
	while (host->references > references && host_ns() < until)
		pthread_cond_timedwait(&host->changed, &host->lock, &t);
	pthread_mutex_unlock(&host->lock);
}

static unsigned int count_references(struct host *host)
{
	unsigned int references;

	pthread_mutex_lock(&host->lock);
	references = host->references;
	pthread_mutex_unlock(&host->lock);
	return references;
}

/* A callback may run until it is given back. */
static void unregister_events(struct host *host)
{
	unsigned int references;
	int id, ret;
	size_t i;

	for (i = 0; i < HOST_CALLBACKS; i++) {
		if (host->callbacks[i] < 0)
			continue;
		references = count_references(host);
		id = host->callbacks[i];
		if (i < 4)
			ret = virConnectDomainEventDeregisterAny(host->conn, id);
		else
			ret = virConnectNodeDeviceEventDeregisterAny(host->conn, id);
		/* A connection that is lost takes them along. */
		if (!ret)
			wait_for_references(host, references - 1);
		host->callbacks[i] = -1;
	}
	virConnectUnregisterCloseCallback(host->conn, on_close);
}

static void disconnect(struct host *host)
{
	virConnectPtr conn = host->conn;

	if (!conn)
		return;
	unregister_events(host);
	pthread_mutex_lock(&host->lock);
	host->conn = NULL;
	pthread_mutex_unlock(&host->lock);
	virConnectClose(conn);
}

enum host_result host_connect(struct host *host, char *text)
{
	enum host_result result;
	virConnectPtr conn;

	disconnect(host);
	result = host_open(host, &conn, text);
	if (result != HOST_OK)
		return result;
	virConnectSetKeepAlive(conn, KEEPALIVE_SECONDS, KEEPALIVE_COUNT);
	pthread_mutex_lock(&host->lock);
	host->conn = conn;
	host->closed = false;
	pthread_mutex_unlock(&host->lock);
	register_events(host);
	return HOST_OK;
}

bool host_alive(struct host *host)
{
	bool open;

	pthread_mutex_lock(&host->lock);
	open = host->conn && !host->closed;
	pthread_mutex_unlock(&host->lock);
	return open && virConnectIsAlive(host->conn) == 1;
}

void host_free(struct host *host)
{
	struct powered *p;

	if (!host)
		return;
	host_stop(host);
	disconnect(host);
	mgpu_close(host->mgpu);
	free(host->vgpus);
	while ((p = host->powered)) {
		host->powered = p->next;
		free(p);
	}
	host_put(host);
}

/* ---- VMs ---- */

static void free_vms(virDomainPtr *vms, int nr)
{
	while (nr > 0)
		virDomainFree(vms[--nr]);
	free(vms);
}

enum host_result host_vms(struct host *host, int (*fn)(const struct pool_vm *, void *), void *arg,
			  char *text)
{
	virDomainPtr *vms = NULL;
	int ret = 0;
	int nr, i;

	nr = virConnectListAllDomains(host->conn, &vms, 0);
	if (nr < 0)
		return host_error(host, text, "no list of VMs");
	for (i = 0; i < nr && !ret; i++) {
		const char *name = virDomainGetName(vms[i]);
		struct pool_vm vm = { 0 };

		/* A VM with another name cannot be in the pool. */
		if (!name || !pool_name_ok(name) || virDomainGetUUIDString(vms[i], vm.uuid))
			continue;
		strcpy(vm.name, name);
		strcpy(vm.host, host->config.name);
		ret = fn(&vm, arg);
	}
	free_vms(vms, nr);
	return ret ? host_says(HOST_FAILED, text, "%s: out of memory", host->config.name) : HOST_OK;
}

static int add_device(const struct xml_device *device, void *arg)
{
	struct vm_devices *list = arg;
	struct xml_device *grown;

	grown = reallocarray(list->devices, list->nr + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	list->devices = grown;
	list->devices[list->nr++] = *device;
	return 0;
}

/* Returns 1 if the XML is of the running VM, 0 if it is of a definition, or an error. */
static int vm_devices(virDomainPtr vm, unsigned int flags, struct vm_devices *devices)
{
	char *xml = virDomainGetXMLDesc(vm, flags);
	int ret;

	if (!xml)
		return -EIO;
	ret = xml_devices(xml, add_device, devices);
	if (!ret)
		ret = xml_domain_runs(xml);
	free(xml);
	return ret;
}

void host_vm_forget(struct vm_look *look)
{
	free(look->live.devices);
	free(look->config.devices);
	look->live = look->config = (struct vm_devices){ NULL, 0 };
}

static int look_at_vm(virDomainPtr vm, struct vm_look *look)
{
	int ret;

	ret = vm_devices(vm, 0, &look->live);
	if (ret < 0)
		return ret;
	look->active = ret;
	if (!look->active) {
		/* It is its definition. */
		look->persistent = true;
		look->config = look->live;
		look->live = (struct vm_devices){ NULL, 0 };
		return 0;
	}
	ret = virDomainIsPersistent(vm);
	if (ret < 0)
		return -EIO;
	look->persistent = ret;
	return ret ? vm_devices(vm, VIR_DOMAIN_XML_INACTIVE, &look->config) : 0;
}

int host_vm_look(virDomainPtr vm, struct vm_look *look)
{
	int ret;

	memset(look, 0, sizeof(*look));
	ret = look_at_vm(vm, look);
	if (!ret)
		return 0;
	host_vm_forget(look);
	return ret == -EIO && host_last_error() == VIR_ERR_NO_DOMAIN ? -ENOENT : ret;
}
