/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The objects of the GPU pool: projects, VMs, GPUs, requests, and the records that are kept of
 * them.  The database (store.h) has the truth; the service's memory (pool.h) is a copy of what
 * is not over.
 *
 * Times are seconds since 1970 (steady.h), 0 for none. Texts end with a NUL, and a text
 * that does not fit is refused where it comes in, never cut.
 */
#ifndef POOL_MODEL_H
#define POOL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_NAME_MAX		64	/* of a project, host, VM, GPU, kind of work, and its NUL */
#define POOL_KEY_MAX		64	/* the id that a client chose for a request, and its NUL */
#define POOL_MODEL_MAX		64	/* name of a model of GPU */
#define POOL_TYPE_MAX		64	/* vGPU type, such as mgpu_virtio-1 */
#define POOL_ADDR_MAX		16	/* DDDD:BB:SS.F */
#define POOL_UUID_MAX		37
#define POOL_DEVICE_MAX		16
#define POOL_TEXT_MAX		512	/* a reason for people */
#define POOL_FUNCTIONS_MAX	8	/* functions of a GPU's IOMMU group */

#define POOL_WEIGHT_DEFAULT	100

/* A GPU of a host: a whole one for VFIO, or a parent of vGPUs. */
enum pool_target {
	POOL_ANY,
	POOL_WHOLE,
	POOL_VGPU,
	POOL_TARGETS,
};

enum pool_precision {
	POOL_PRECISION_ANY,
	POOL_FP64,
	POOL_FP32,
	POOL_FP16,
	POOL_FP8,
	POOL_PRECISIONS,
};

/* Capabilities that a GPU has, and a request needs: bits. */
enum pool_capability {
	POOL_3D		= 1 << 0,
	POOL_COMPUTE	= 1 << 1,
};

/**
 * enum pool_state - the life of a request
 * @POOL_QUEUED: waits for a GPU
 * @POOL_ATTACHING: has a GPU; the host attaches it, and the guest binds it
 * @POOL_ACTIVE: the GPU is in the VM
 * @POOL_RELEASING: the GPU is on its way back
 * @POOL_RELEASED: over; a final state
 * @POOL_FAILED: over, the reason says why; a final state
 * @POOL_CANCELLED: taken back while it was queued; a final state
 */
enum pool_state {
	POOL_QUEUED,
	POOL_ATTACHING,
	POOL_ACTIVE,
	POOL_RELEASING,
	POOL_RELEASED,
	POOL_FAILED,
	POOL_CANCELLED,
	POOL_STATES,
};

static inline bool pool_over(enum pool_state state)
{
	return state >= POOL_RELEASED;
}

/**
 * struct pool_project - who shares the pool
 * @weight: share of the pool against other projects, 1 to 10000
 * @max_gpus: GPUs and vGPUs that it may hold, 0: no limit
 */
struct pool_project {
	char name[POOL_NAME_MAX];
	uint32_t weight;
	uint32_t max_gpus;
};

/**
 * struct pool_host - a machine with libvirt
 * @name: name for people, from the configuration
 * @uri: libvirt's URI, such as qemu:///system or qemu+tls://node7/system
 * @up: whether libvirt answers; not stored
 */
struct pool_host {
	char name[POOL_NAME_MAX];
	char uri[256];
	bool up;
};

/**
 * struct pool_vm - a VM that may ask
 * @name: the domain's name; unique among all hosts
 * @host: host that it is defined on
 * @uuid: the domain's UUID
 * @project: its project
 * @pinned: its GPUs are not taken back for idleness
 * @consent: the VM agreed that attributes and use are read (agent); 0 or the time
 * @seq: highest sequence number of a signed message, 0: none
 * @seen: last message of its agent
 */
struct pool_vm {
	char name[POOL_NAME_MAX];
	char host[POOL_NAME_MAX];
	char uuid[POOL_UUID_MAX];
	char project[POOL_NAME_MAX];
	bool pinned;
	int64_t consent;
	uint64_t seq;
	int64_t seen;
};

/**
 * struct pool_gpu - a GPU of the pool
 * @name: HOST/ADDRESS, such as node7/0000:41:00.0: unique
 * @addr: PCI address of its first function
 * @nr_functions: functions of its IOMMU group that go with it, @functions[0] is @addr
 * @group: IOMMU group, -1: none
 * @target: POOL_WHOLE, or POOL_VGPU for a parent of vGPUs
 * @types: vGPU types that it offers, separated by spaces, the smallest first; NAME:SLOTS for a
 *	type that takes several slots, NAME:SLOTS:CAPABILITIES for one that does less than the GPU
 * @slots: vGPUs that fit at most (of its smallest type), without those of others; 1 for a whole
 *	GPU
 * @memory_mib: memory, 0: unknown
 * @capabilities: enum pool_capability
 * @precisions: mask of 1 << enum pool_precision that it is fast at, 0: unknown
 * @device: vendor and product that its address has, such as 10de:2684; "": unknown
 * @managed: functions, bits, that a driver of the host had when no VM had the GPU
 * @offline: an administrator took it out, or its group holds what is in use; @why says it
 * @present: libvirt lists it; not stored
 * @used: slots in use; not stored
 */
struct pool_gpu {
	char name[2 * POOL_NAME_MAX];
	char host[POOL_NAME_MAX];
	char addr[POOL_ADDR_MAX];
	char functions[POOL_FUNCTIONS_MAX][POOL_ADDR_MAX];
	unsigned int nr_functions;
	int group;
	enum pool_target target;
	char model[POOL_MODEL_MAX];
	char types[POOL_TEXT_MAX];
	uint32_t slots;
	uint32_t memory_mib;
	uint32_t capabilities;
	uint32_t precisions;
	char device[POOL_DEVICE_MAX];
	uint32_t managed;
	bool offline;
	char why[POOL_TEXT_MAX];
	bool present;
	uint32_t used;
};

/**
 * struct pool_request - a wish for a GPU, and what became of it
 * @id: the service's number, from 1, never used again
 * @key: id that the client chose; unique within the project: a second request with it is the first
 * @vm: name of the VM
 * @vm_uuid: its UUID: another VM may get the name later; "": unknown
 * @kind: kind of work, such as training; [a-z0-9._-]+
 * @target: whole GPU, vGPU, or any
 * @size_mib: amount of data, MiB
 * @memory_mib: GPU memory that it needs, MiB, 0: the kind's or none
 * @capabilities: enum pool_capability that it needs
 * @type: vGPU type, "": the smallest that fits
 * @weight: the vGPU's weight, 0: the default
 * @floor_mhz: the vGPU's floor, thousandths of a frame per second, 0: none
 * @lease: seconds that the GPU is wanted for, 0: until released
 * @gpu: GPU, "" while queued
 * @uuid: mdev of a vGPU
 * @why: why this GPU, or why it waits, failed or was released
 * @until: end of the lease, 0: none
 * @warned: time of the warning that the GPU is idle, 0: none
 * @tries: attempts at the current step
 * @cancel: released while it was attaching
 */
struct pool_request {
	uint64_t id;
	char key[POOL_KEY_MAX];
	char project[POOL_NAME_MAX];
	char vm[POOL_NAME_MAX];
	char vm_uuid[POOL_UUID_MAX];
	char kind[POOL_NAME_MAX];
	enum pool_target target;
	enum pool_precision precision;
	uint64_t size_mib;
	uint32_t memory_mib;
	uint32_t capabilities;
	char type[POOL_TYPE_MAX];
	uint32_t weight;
	uint32_t floor_mhz;
	uint32_t lease;

	enum pool_state state;
	char gpu[2 * POOL_NAME_MAX];
	char uuid[POOL_UUID_MAX];
	char why[POOL_TEXT_MAX];
	int64_t asked;
	int64_t chosen;
	int64_t attached;
	int64_t ended;
	int64_t until;
	int64_t warned;
	uint32_t tries;
	bool cancel;
};

/* Whether a request is of a VM, and not of a former one of the name. */
bool pool_is_of(const struct pool_request *r, const struct pool_vm *vm);

/**
 * struct pool_use - a look at a GPU's use
 * @busy_ns: cumulative time of work since the GPU was attached, ns
 * @source: 'h' the host's counters, 'a' the VM's agent, 'p' power and link state
 * @energy_mj: cumulative energy, mJ; 0: unknown
 * @memory_mib: memory in use, 0: unknown
 */
struct pool_use {
	uint64_t request;
	int64_t time;
	uint64_t busy_ns;
	uint64_t energy_mj;
	uint32_t memory_mib;
	char source;
};

/**
 * struct pool_outcome - what a kind of work took on a model of GPU: a row of the history
 * @seconds: from attached to the end of the work
 * @busy_ns: the GPU's time of it
 * @done: the work ended by itself, with success; other rows do not count for the choice
 */
struct pool_outcome {
	uint64_t request;
	char project[POOL_NAME_MAX];
	char kind[POOL_NAME_MAX];
	char model[POOL_MODEL_MAX];
	enum pool_target target;
	enum pool_precision precision;
	uint64_t size_mib;
	double seconds;
	uint64_t busy_ns;
	uint64_t energy_mj;
	uint32_t memory_mib;
	int64_t ended;
	bool done;
};

/**
 * struct pool_event - a line of the log: of the audit, and of what people see
 * @id: from 1, growing
 * @actor: who did it: "admin:NAME", "vm:NAME", "service"
 * @what: a word: request, choose, attach, attached, warn, release, released, fail, ...
 * @object: request, VM or GPU
 */
struct pool_event {
	uint64_t id;
	int64_t time;
	char actor[2 * POOL_NAME_MAX];
	char what[32];
	uint64_t request;
	char object[2 * POOL_NAME_MAX];
	char text[POOL_TEXT_MAX];
};

/* Names of the enumerations, as the API, the database and the page have them; NULL: no such. */
const char *pool_target_name(enum pool_target target);
const char *pool_precision_name(enum pool_precision precision);
const char *pool_state_name(enum pool_state state);
/* Return -1 for an unknown name. */
int pool_target_of(const char *name);
int pool_precision_of(const char *name);
int pool_state_of(const char *name);
/* The names alone of a GPU's types. */
void pool_type_names(const struct pool_gpu *gpu, char names[POOL_TEXT_MAX]);
/* "3d", "compute", "3d,compute"; -1: unknown. */
int pool_capabilities_of(const char *names);
void pool_capabilities_text(uint32_t capabilities, char text[16]);
/* Whether @name is 1 to POOL_NAME_MAX - 1 of [A-Za-z0-9._-] and does not begin with - or '.'. */
bool pool_name_ok(const char *name);

#endif /* POOL_MODEL_H */
