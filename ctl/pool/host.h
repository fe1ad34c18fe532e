/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hosts by libvirt's C API.  Calls block; threads of the host (jobs.c) may call at the same time
 * once host_connect() has returned, for different VMs and GPUs.  Devices are attached to the
 * running VM and to its definition, with aliases ua-mgpu-ID-FUNCTION, so that libvirt's truth says
 * which request a device is of, after a crash at any point.
 */
#ifndef POOL_HOST_H
#define POOL_HOST_H

#include "pool.h"

struct host;

/**
 * enum host_result - how a call ended
 * @HOST_OK: done; attaching twice and detaching what is not there are done, too
 * @HOST_RETRY: a fault that may pass: busy, connection lost, unplug refused, time limit
 * @HOST_FAILED: trying again does not help; the text says how to mend it
 */
enum host_result { HOST_OK, HOST_RETRY, HOST_FAILED };

/* Once for the process: libvirt's event loop, in a thread of its own. */
int host_init(void);

/* Of libvirt's event loop, in its thread: what may have changed. */
enum host_news {
	HOST_NEWS_GPUS,		/* node devices */
	HOST_NEWS_VMS,
	HOST_NEWS_DEVICES,	/* a device of the pool went by itself */
	HOST_NEWS_CLOSED,	/* the connection */
};

struct host *host_new(const struct pool_host *config);
void host_free(struct host *host);
/* Before host_connect(): have news told; @news must not call this file's functions. */
void host_watch(struct host *host, void (*news)(void *arg, enum host_news news), void *arg);
/* From any thread: have waits of others end with HOST_RETRY. */
void host_stop(struct host *host);
enum host_result host_connect(struct host *host, char *text);
bool host_alive(struct host *host);

/* GPUs with their groups (PCI class 0x03, and mdev parents), VMs, and attached devices. */
enum host_result host_gpus(struct host *host, int (*fn)(const struct pool_gpu *, void *), void *arg,
			   char *text);
enum host_result host_vms(struct host *host, int (*fn)(const struct pool_vm *, void *), void *arg,
			  char *text);
enum host_result host_found(struct host *host, int (*fn)(const struct pool_found *, void *),
			    void *arg, char *text);

/**
 * host_attach() - give a GPU to a VM
 * @uuid: out: mdev of a vGPU, made for it (in: one made before)
 * @times: out: seconds that libvirt took, may be NULL
 *
 * A whole GPU: refused if its IOMMU group holds something else in use; every function of the
 * group goes along. All of them leave the host's driver before the first is attached, and come
 * back to it when the last is detached, for the group has one owner. A vGPU: the mdev is created
 * by libvirt's node device API with its attributes mgpu/weight, mgpu/fps_floor (thousandths),
 * then attached. Undone whole if one part fails.
 */
enum host_result host_attach(struct host *host, const struct pool_job *job,
			     char uuid[POOL_UUID_MAX], double *seconds, char *text);
/* Take it back: waits for DEVICE_DELETED (or its refusal) of each function; removes the mdev. */
enum host_result host_detach(struct host *host, const struct pool_job *job, double *seconds,
			     char *text);
/* Cumulative use of a vGPU by the host's counters (sysfs of mgpu); -ENOENT: none for this one. */
int host_use(struct host *host, const struct pool_request *r, struct pool_use *use);

/* ---- pure: XML ---- */

/* One hostdev per function; every text is escaped. -E2BIG: no room. */
int xml_hostdev_pci(const char *addr, uint64_t request, unsigned int function, bool managed,
		    char *xml, size_t size);
int xml_hostdev_mdev(const char *uuid, uint64_t request, char *xml, size_t size);
int xml_mdev(const struct pool_gpu *gpu, const char *type, const struct pool_request *r,
	     char *xml, size_t size);

#endif /* POOL_HOST_H */
