/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the files of a host: host.c, host_open.c, host_gpus.c, host_types.c, host_attach.c,
 * host_mdev.c, host_local.c.
 */
#ifndef POOL_HOST_PRIVATE_H
#define POOL_HOST_PRIVATE_H

#include <pthread.h>

#include <libvirt/libvirt.h>
#include <libvirt/virterror.h>

#include "host.h"
#include "xml.h"

#define HOST_UNPLUG_SECONDS	60	/* for a guest to let go of a device */
#define HOST_UNDO_SECONDS	15	/* the same, of one that it just got */
#define HOST_AGAIN_SECONDS	2	/* between two requests to unplug */
#define HOST_OPEN_SECONDS	30	/* for libvirt to open a connection */
#define HOST_CALLBACKS		6

struct mgpu;
struct mgpu_vgpu_info;

/**
 * struct unplug - a device that a guest is asked to let go of
 * @vm: UUID of the domain
 * @gone: DEVICE_DELETED came, or the VM stopped
 * @refused: DEVICE_REMOVAL_FAILED came
 */
struct unplug {
	struct unplug *next;
	char vm[POOL_UUID_MAX];
	char alias[POOL_NAME_MAX];
	bool gone;
	bool refused;
};

/* A device of a VM, as the last look at all VMs had it. */
struct held {
	char vm[POOL_NAME_MAX];
	struct xml_device device;
};

/* Time for which a whole GPU was powered, of a request; @seen_ns: the last look. */
struct powered {
	struct powered *next;
	uint64_t request;
	int64_t seen_ns;
	int64_t last_ns;
	uint64_t busy_ns;
};

/**
 * struct host - a host, and the connection to its libvirt
 * @local: sysfs here is that of the host
 * @references: host_new()'s, and those of libvirt's callbacks
 * @lock: of all that follows
 * @changed: an unplug of @unplugs has news, or @stopped was set
 * @closed: the connection ended by itself
 * @opening: the thread @opener opens a connection; it has a reference, too
 * @opened: what it opened, until host_open() takes it; NULL: it did not, for @open_text
 * @held: devices of VMs, of the pool and others'
 * @made: UUIDs of mdevs that were made for the pool since
 * @vgpus: of @mgpu, of the time @vgpus_ns
 */
struct host {
	struct pool_host config;
	bool local;
	void (*news)(void *arg, enum host_news news);
	void *news_arg;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int references;
	virConnectPtr conn;
	int callbacks[HOST_CALLBACKS];
	bool closed;
	bool stopped;
	bool opening;
	pid_t opener;
	virConnectPtr opened;
	char open_text[POOL_TEXT_MAX];
	struct unplug *unplugs;
	struct held *held;
	size_t nr_held;
	char (*made)[POOL_UUID_MAX];
	size_t nr_made;

	/* of the thread that asks for use */
	struct mgpu *mgpu;
	struct mgpu_vgpu_info *vgpus;
	size_t nr_vgpus;
	int64_t vgpus_ns;
	struct powered *powered;
};

/* ---- host.c ---- */

/* Write libvirt's last error; return HOST_RETRY, or HOST_FAILED where trying again is no help. */
enum host_result host_error(const struct host *host, char *text, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Write an error of the pool's own. */
enum host_result host_says(enum host_result result, char *text, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int host_last_error(void);
void host_tell(struct host *host, enum host_news news);
bool host_is_stopped(struct host *host);
int64_t host_ns(void);	/* CLOCK_MONOTONIC */
/* Wait for news of unplugs, at most until @until (host_ns()); with the lock held. */
void host_wait(struct host *host, int64_t until);
/* Sleep, or until host_stop(). */
void host_sleep(struct host *host, double seconds);

/**
 * struct vm_devices - hostdevs of a domain
 * @devices: the pool's and others'
 */
struct vm_devices {
	struct xml_device *devices;
	size_t nr;
};

/**
 * struct vm_look - what a VM has
 * @active: it runs
 * @persistent: it has a definition
 * @live: of the running VM
 * @config: of its definition
 */
struct vm_look {
	bool active, persistent;
	struct vm_devices live, config;
};

/*
 * Asks libvirt once for a VM that is off, and three times for one that runs. Returns -ENOENT for a
 * VM that is gone, -EIO for libvirt's error, -EINVAL for XML that is none, -ENOMEM.
 */
int host_vm_look(virDomainPtr vm, struct vm_look *look);
void host_vm_forget(struct vm_look *look);

/* Give a reference to the host back. */
void host_put(void *host);

/* ---- host_open.c ---- */

/**
 * host_open() - open a connection to libvirt
 * @conn: out: the connection, NULL for none
 * @text: out: why there is none, POOL_TEXT_MAX bytes
 *
 * Context: blocks for HOST_OPEN_SECONDS at most, whatever the host does. An attempt that takes
 * longer is broken; while it does not end, the next call waits for it. host_stop() ends the wait.
 *
 * Return: HOST_OK or HOST_RETRY.
 */
enum host_result host_open(struct host *host, virConnectPtr *conn, char *text);
/* The URI with which ssh asks for nothing on a terminal; -1: no room. */
int host_batch_uri(const char *uri, char *batch, size_t size);

/* ---- host_gpus.c ---- */

/**
 * struct inventory - node devices of a host
 * @nodes: those that could be read
 */
struct inventory {
	struct xml_node *nodes;
	size_t nr;
};

enum host_result inventory_load(struct host *host, struct inventory *inventory, char *text);
/* Only a PCI function and the members of its group; nothing if there is no such function. */
enum host_result inventory_load_group(struct host *host, const char *addr,
				      struct inventory *inventory, char *text);
void inventory_free(struct inventory *inventory);
bool is_vfio(const char *driver);
const struct xml_node *inventory_find(const struct inventory *inventory, const char *addr);
/*
 * The GPU that the PCI function @node leads; false if it is no GPU, or goes along with another.
 * With @offline and @why if it cannot be given.
 */
bool inventory_gpu(const struct host *host, const struct inventory *inventory,
		   const struct xml_node *node, struct pool_gpu *gpu);
/* The GPU that a function goes along with. */
bool inventory_gpu_of(const struct host *host, const struct inventory *inventory,
		      const char *addr, struct pool_gpu *gpu);

/* Whether an mdev is the pool's; with the lock held, as inventory_gpu() and local_parents(). */
bool host_owns(const struct host *host, const char *uuid);

/* ---- host_types.c ---- */

/**
 * struct host_type - a type of vGPUs of a parent
 * @available: vGPUs of it that could be made now
 * @ours: vGPUs of it that the pool made
 * @capabilities: what it does, enum pool_capability; 0 for all if it is unknown
 */
struct host_type {
	char name[POOL_TYPE_MAX];
	unsigned int available;
	unsigned int ours;
	uint32_t capabilities;
};

/* Write the types, slots and capabilities of a parent; @types: the smallest first. */
void types_fill(struct pool_gpu *gpu, const struct host_type *types, size_t nr);

/* ---- host_mdev.c ---- */

enum host_result mdev_make(struct host *host, const struct pool_job *job, char *text);
enum host_result mdev_remove(struct host *host, const char *uuid, char *text);
/* The UUID that a request's mdev has, on each try, and after each crash. */
void mdev_uuid(const struct pool_job *job, char uuid[POOL_UUID_MAX]);

/* ---- host_local.c: sysfs of this machine ---- */

/* Prefix of /sys and /proc, for tests. */
extern const char *local_root;

bool local_is(const char *uri);
/* Sentence about what uses a PCI function of this machine; false if nothing does. */
bool local_in_use(const char *addr, char *why, size_t size);
bool local_boot_display(const char *addr);
uint32_t local_memory_mib(const char *addr);
/* Capabilities of a type of mdevs, from its description; 0: it names none. */
uint32_t local_capabilities(const char *parent, const char *type);
/* Parents of mdevs that libvirt does not list: those that are not on PCI. */
int local_parents(const struct host *host, int (*fn)(const struct pool_gpu *, void *), void *arg);
bool local_has_parent(const char *name);
/* The parent of an mdev; false if there is no such mdev. */
bool local_parent(const char *uuid, char *parent, size_t size);
enum host_result local_mdev_make(const char *parent, const char *type,
				 const struct pool_request *r, char *text);
/* 1: it was there; 0: not; negative: an error, in @text. */
int local_mdev_remove(const char *uuid, char *text);
/* Whether a GPU is powered, and its link is not at its slowest; -1: unknown. */
int local_works(const char *addr);

#endif /* POOL_HOST_PRIVATE_H */
