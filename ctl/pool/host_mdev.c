// SPDX-License-Identifier: GPL-2.0-only
/* mdevs of vGPUs, which libvirt makes with mdevctl, so that they come back with the host. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>

#include "host_private.h"

/*
 * Not random: after a crash between making the mdev and storing its UUID, the next try finds the
 * one that is there.
 */
void mdev_uuid(const struct pool_job *job, char uuid[POOL_UUID_MAX])
{
	const struct pool_request *r = &job->request;
	unsigned char h[32] = { 0 };
	char name[512];
	int len;

	if (*r->uuid) {
		strcpy(uuid, r->uuid);
		return;
	}
	len = snprintf(name, sizeof(name), "mgpu-pool %" PRIu64 " %" PRId64 " %s/%s %s %s", r->id,
		       r->asked, r->project, r->key, r->vm, r->gpu);
	gnutls_hash_fast(GNUTLS_DIG_SHA256, name, (size_t)len, h);
	/* RFC 9562, version 8: of the application's own making. */
	snprintf(uuid, POOL_UUID_MAX,
		 "%02x%02x%02x%02x-%02x%02x-8%01x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", h[0],
		 h[1], h[2], h[3], h[4], h[5], h[6] & 0xf, h[7], (h[8] & 0x3f) | 0x80, h[9], h[10],
		 h[11], h[12], h[13], h[14], h[15]);
}

/* The node device of an mdev, active or only defined; NULL for none, with *@failed on an error. */
static virNodeDevicePtr find(struct host *host, const char *uuid, bool *failed)
{
	/* Libvirt before 7.3 knows no inactive ones. */
	static const unsigned int flags[] = {
		VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV | VIR_CONNECT_LIST_NODE_DEVICES_ACTIVE |
		VIR_CONNECT_LIST_NODE_DEVICES_INACTIVE,
		VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV,
	};
	virNodeDevicePtr *devices = NULL, found = NULL;
	char prefix[XML_NAME_MAX];
	int nr = -1, i;
	size_t f;
	char *c;

	snprintf(prefix, sizeof(prefix), "mdev_%s", uuid);
	for (c = prefix; *c; c++)
		if (*c == '-')
			*c = '_';
	for (f = 0; nr < 0 && f < 2; f++)
		nr = virConnectListAllNodeDevices(host->conn, &devices, flags[f]);
	*failed = nr < 0;
	for (i = 0; i < nr; i++) {
		const char *name = virNodeDeviceGetName(devices[i]);

		if (!found && name && !strncasecmp(name, prefix, strlen(prefix)))
			found = devices[i];
		else
			virNodeDeviceFree(devices[i]);
	}
	free(devices);
	return found;
}

static bool is_supported(void)
{
	return host_last_error() != VIR_ERR_NO_SUPPORT &&
	       host_last_error() != VIR_ERR_ARGUMENT_UNSUPPORTED;
}

/* Start it, unless it runs; it must not outlive a failure. */
static enum host_result start(struct host *host, virNodeDevicePtr device, const char *uuid,
			      char *text)
{
	enum host_result result;

	if (virNodeDeviceIsActive(device) == 1)
		return HOST_OK;
	/* Libvirt before 7.3 starts none, and has only those that run. */
	if (!virNodeDeviceCreate(device, 0) || !is_supported())
		return HOST_OK;
	result = host_error(host, text, "vGPU %s", uuid);
	virNodeDeviceUndefine(device, 0);
	return result;
}

static enum host_result define(struct host *host, const char *xml, const char *uuid, char *text)
{
	virNodeDevicePtr device = virNodeDeviceDefineXML(host->conn, xml, 0);
	enum host_result result;

	/* Libvirt before 7.3: a vGPU that ends with the host's uptime. */
	if (!device && !is_supported())
		device = virNodeDeviceCreateXML(host->conn, xml, 0);
	else if (device)
		virNodeDeviceSetAutostart(device, 1);
	if (!device)
		return host_error(host, text, "no vGPU");
	result = start(host, device, uuid, text);
	virNodeDeviceFree(device);
	return result;
}

static void remember(struct host *host, const char *uuid)
{
	char (*grown)[POOL_UUID_MAX];
	size_t i;

	pthread_mutex_lock(&host->lock);
	for (i = 0; i < host->nr_made && strcmp(host->made[i], uuid); i++)
		;
	grown = i < host->nr_made ? NULL :
		reallocarray(host->made, host->nr_made + 1, sizeof(*grown));
	if (grown) {
		host->made = grown;
		strcpy(grown[host->nr_made++], uuid);
	}
	pthread_mutex_unlock(&host->lock);
}

static void forget(struct host *host, const char *uuid)
{
	size_t i;

	pthread_mutex_lock(&host->lock);
	for (i = 0; i < host->nr_made; i++)
		if (!strcmp(host->made[i], uuid)) {
			memmove(host->made[i], host->made[--host->nr_made], POOL_UUID_MAX);
			break;
		}
	pthread_mutex_unlock(&host->lock);
}

enum host_result mdev_make(struct host *host, const struct pool_job *job, char *text)
{
	const char *uuid = job->request.uuid, *type = job->request.type;
	enum host_result result;
	virNodeDevicePtr device;
	char xml[XML_MDEV_MAX];
	bool failed;

	if (!*type)
		return host_says(HOST_FAILED, text, "%s: the request names no type of %s; release it, and ask again",
				 host->config.name, job->gpu.addr);
	remember(host, uuid);
	if (host->local && local_has_parent(job->gpu.addr))
		return local_mdev_make(job->gpu.addr, type, &job->request, text);
	device = find(host, uuid, &failed);
	if (failed)
		return host_error(host, text, "no list of mdevs");
	if (device) {
		result = start(host, device, uuid, text);
		virNodeDeviceFree(device);
		return result;
	}
	if (xml_mdev(&job->gpu, type, &job->request, xml, sizeof(xml)))
		return host_says(HOST_FAILED, text, "%s: %s is no parent of vGPUs that libvirt knows; a GPU that is not on PCI needs the service on its own host",
				 host->config.name, job->gpu.addr);
	return define(host, xml, uuid, text);
}

/* Ends when the VMM that had it open has closed it. */
static enum host_result destroy(struct host *host, virNodeDevicePtr device, const char *uuid,
				char *text)
{
	int64_t until = host_ns() + HOST_UNDO_SECONDS * INT64_C(1000000000);

	while (virNodeDeviceIsActive(device) != 0 && virNodeDeviceDestroy(device)) {
		if (host_last_error() == VIR_ERR_NO_NODE_DEVICE)
			break;
		if (host_ns() > until || host_is_stopped(host))
			return host_error(host, text, "vGPU %s stays", uuid);
		host_sleep(host, 0.2);
	}
	return HOST_OK;
}

enum host_result mdev_remove(struct host *host, const char *uuid, char *text)
{
	enum host_result result;
	virNodeDevicePtr device;
	bool failed;
	int ret;

	ret = host->local ? local_mdev_remove(uuid, text) : 0;
	if (ret)
		forget(host, uuid);
	if (ret)
		return ret > 0 ? HOST_OK : HOST_RETRY;
	device = find(host, uuid, &failed);
	if (failed && is_supported())
		return host_error(host, text, "no list of mdevs");
	if (!device)
		forget(host, uuid);
	if (!device)
		return HOST_OK;
	result = destroy(host, device, uuid, text);
	if (result == HOST_OK && virNodeDeviceIsPersistent(device) == 1 &&
	    virNodeDeviceUndefine(device, 0) && host_last_error() != VIR_ERR_NO_NODE_DEVICE)
		result = host_error(host, text, "vGPU %s stays defined", uuid);
	virNodeDeviceFree(device);
	if (result == HOST_OK)
		forget(host, uuid);
	return result;
}
