/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * mgpu_user: GPUs whose engines are processes.
 *
 * A supervisor makes a device with MGPU_USER_CREATE on /dev/mgpu-user-control, and opens
 * /dev/mgpu-userN.  For each vGPU that a VMM opens it reads an event, and starts a worker
 * with a file of /dev/mgpu-userN that MGPU_USER_ATTACH has made the vGPU's channel.
 *
 * The module checks, paces, schedules and charges the guest's commands, as for any other
 * back end.  The channel carries virtio-gpu control commands (VIRTIO 1.2, section 5.7.6).
 * Numbers of resources and contexts are the guest's; those of the module's own begin at
 * 2^30.  The worker executes commands in order, and answers each.
 *
 * The argument of a request has its size in the first field, so that it may grow; the number
 * of the request does not depend on the size, as with VFIO.  Reserved fields and unknown
 * flags must be 0; the module refuses them otherwise.
 */
#ifndef _UAPI_LINUX_MGPU_USER_H
#define _UAPI_LINUX_MGPU_USER_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define MGPU_USER_MAX_ENGINES	64
#define MGPU_USER_MAX_CAPSETS	8
#define MGPU_USER_MAX_CAPSET	8192	/* bytes */
#define MGPU_USER_MAX_DEVICES	64

/**
 * struct mgpu_user_capset - capability set that guests get
 * @id: VIRTIO_GPU_CAPSET_*
 * @version: latest version of the set
 * @len: length of @data, 1 to MGPU_USER_MAX_CAPSET bytes
 * @reserved: 0
 * @data: address of the set
 */
struct mgpu_user_capset {
	__u32 id;
	__u32 version;
	__u32 len;
	__u32 reserved;
	__aligned_u64 data;
};

/**
 * struct mgpu_user_create - argument of MGPU_USER_CREATE
 * @size: size of this structure
 * @flags: MGPU_USER_CREATE_*
 * @id: set to N of /dev/mgpu-userN and of the device mgpu_user.N
 * @engines: jobs that all workers together execute at once, 1 to MGPU_USER_MAX_ENGINES
 * @depth: jobs that all workers together may have, @engines to MGPU_USER_MAX_ENGINES
 * @max_vgpus: upper bound on vGPUs, 1 to 4095
 * @nr_capsets: length of @capsets, 1 to MGPU_USER_MAX_CAPSETS
 * @vgpu_depth: jobs that one worker may have, at most @depth; 0 for @depth.  With less than
 *	@depth, a worker that hangs leaves room for others.
 * @capsets: address of an array of struct mgpu_user_capset
 * @pci_domain: with MGPU_USER_CREATE_PCI: domain of the GPU's PCI function, else 0
 * @pci_bus: likewise its bus
 * @pci_devfn: likewise its device, shifted left by 3, and its function
 * @reserved: 0
 *
 * The vGPUs are below the GPU's PCI function, where mdevctl and libvirt look for them, and
 * their types are named after its driver; without MGPU_USER_CREATE_PCI they are below
 * mgpu_user.N.  When the driver is unbound from the GPU, the device ends before, as by
 * MGPU_USER_DESTROY, and read() on /dev/mgpu-userN returns 0.  Errors of the GPU: ENODEV, there
 * is none at this address, or it has no driver; EBUSY, its driver is one that hands devices
 * over to others, as vfio-pci does; EEXIST, its mediated devices are those of another module
 * or of another device of this one.
 */
struct mgpu_user_create {
	__u32 size;
	__u32 flags;
	__u32 id;
	__u32 engines;
	__u32 depth;
	__u32 max_vgpus;
	__u32 nr_capsets;
	__u32 vgpu_depth;
	__aligned_u64 capsets;
	__u32 pci_domain;
	__u8 pci_bus;
	__u8 pci_devfn;
	__u16 reserved;
};

/*
 * Guests get VIRTIO_GPU_F_CONTEXT_INIT: CTX_CREATE says which capset the context has, and a
 * fenced command with VIRTIO_GPU_FLAG_INFO_RING_IDX makes a fence on that ring of its context.
 * The worker may answer fenced commands of different rings in any order.  Capsets other than
 * VIRGL (1) and VIRGL2 (2) are allowed; the module does not look into streams of their
 * contexts.
 */
#define MGPU_USER_CREATE_CONTEXT_INIT	0x1
/*
 * Guests get VIRTIO_GPU_F_RESOURCE_BLOB.  RESOURCE_CREATE_BLOB of guest memory has memory as
 * RESOURCE_ATTACH_BACKING has.  One of the host's memory is in a context: virgl's streams name
 * its storage (PIPE_RESOURCE_CREATE), which the worker gets as a stream of its own right before
 * the blob.  RESOURCE_MAP_BLOB (its offset is 0) and RESOURCE_UNMAP_BLOB are for blobs of
 * the host's memory: see MGPU_USER_MAP.
 */
#define MGPU_USER_CREATE_BLOB		0x2
/* The parent of the vGPUs is the PCI function at pci_domain, pci_bus and pci_devfn. */
#define MGPU_USER_CREATE_PCI		0x4
/*
 * Workers export resources as dma-bufs, see MGPU_USER_EXPORT: a VMM gets the screens of guests
 * with contexts as dma-bufs, too.  QEMU then needs a display with OpenGL for such a VM.
 */
#define MGPU_USER_CREATE_EXPORT	0x8

/**
 * struct mgpu_user_destroy - argument of MGPU_USER_DESTROY
 * @size: size of this structure
 * @id: N
 *
 * Waits until the VMMs have closed their vGPUs.
 */
struct mgpu_user_destroy {
	__u32 size;
	__u32 id;
};

/* On /dev/mgpu-user-control; CAP_SYS_ADMIN. */
#define MGPU_USER_CREATE	_IO('M', 0x40)	/* struct mgpu_user_create */
#define MGPU_USER_DESTROY	_IO('M', 0x41)	/* struct mgpu_user_destroy */

/**
 * enum mgpu_user_event_type - what happened to a vGPU
 * @MGPU_USER_EVENT_OPENED: a VMM opened it: it needs a worker
 * @MGPU_USER_EVENT_CLOSED: the VMM closed it; its channel closes behind this event
 * @MGPU_USER_EVENT_LOST: it has lost its worker and needs another one
 */
enum mgpu_user_event_type {
	MGPU_USER_EVENT_OPENED = 1,
	MGPU_USER_EVENT_CLOSED,
	MGPU_USER_EVENT_LOST,
};

/**
 * struct mgpu_user_event - what read() on a file of /dev/mgpu-userN without a channel returns
 * @type: enum mgpu_user_event_type
 * @vgpu: ID of the vGPU
 * @uuid: its UUID, as text; ends with 0
 *
 * A file that was just opened reads of all vGPUs that are open and have no worker first.
 */
struct mgpu_user_event {
	__u32 type;
	__u32 vgpu;
	__u8 uuid[40];
};

/**
 * struct mgpu_user_attach - argument of MGPU_USER_ATTACH
 * @size: size of this structure
 * @flags: MGPU_USER_ATTACH_CGROUPS or 0
 * @vgpu: ID of the vGPU
 * @entries: set to the number of entries of each ring, a power of 2
 * @ring_len: set to the length of the area at offset MGPU_USER_OFF_RING, bytes
 * @arena_len: set to the length of the area at offset MGPU_USER_OFF_ARENA, bytes
 * @mem_limit: set to the size of the resources that the vGPU may have, bytes
 */
struct mgpu_user_attach {
	__u32 size;
	__u32 flags;
	__u32 vgpu;
	__u32 entries;
	__u32 ring_len;
	__u32 arena_len;
	__u64 mem_limit;
};

/*
 * Move the caller into the cgroups of the VMM, so that the VM pays for the CPU time and
 * memory of its worker.  The caller must have one thread (EINVAL) and CAP_SYS_ADMIN (EPERM).
 * It stays there if the request fails afterwards.
 */
#define MGPU_USER_ATTACH_CGROUPS	0x1

/**
 * struct mgpu_user_enter - argument of MGPU_USER_ENTER
 * @size: size of this structure
 * @flags: MGPU_USER_WAIT or 0
 * @timeout_ms: with MGPU_USER_WAIT: longest wait for a command, milliseconds
 * @ready: set to the number of commands in the ring that the worker has not taken
 *
 * Takes all answers from the ring, then waits for a command.  Fails with EPROTO when an
 * answer is invalid, and with ENODEV when the vGPU was closed or has lost this worker; the
 * channel is of no use then.
 */
struct mgpu_user_enter {
	__u32 size;
	__u32 flags;
	__u32 timeout_ms;
	__u32 ready;
};

#define MGPU_USER_WAIT		0x1

/**
 * struct mgpu_user_map - argument of MGPU_USER_MAP
 * @size: size of this structure
 * @seq: of a RESOURCE_MAP_BLOB that is not answered
 * @cache: VIRTIO_GPU_MAP_CACHE_CACHED, _UNCACHED or _WC, as the worker has mapped it: the guest
 *	is told so; 0 is CACHED
 * @reserved: 0
 * @addr: address of the blob in the worker, a multiple of the page size
 * @len: bytes, the blob's size rounded up to whole pages
 *
 * The guest finds these pages in its BAR when the worker has answered
 * VIRTIO_GPU_RESP_OK_NODATA.  They stay pinned, whatever the worker does, until the guest
 * unmaps or releases the blob or is reset.
 *
 * Memory that cannot be pinned may be a shared mapping of a driver that the worker can write
 * (VM_PFNMAP).  The guest then has at any time what the worker has mapped at @addr, wherever the
 * driver moves it, and a page of its own vGPU where the worker has nothing any more.  The worker
 * must keep the mapping until RESOURCE_UNMAP_BLOB or the blob's end.
 *
 * Fails with EFAULT for other memory, and with EEXIST if the command has pages already.
 */
struct mgpu_user_map {
	__u32 size;
	__u32 seq;
	__u32 cache;
	__u32 reserved;
	__aligned_u64 addr;
	__aligned_u64 len;
};

/**
 * struct mgpu_user_export - argument of MGPU_USER_EXPORT
 * @size: size of this structure
 * @flags: 0
 * @resource: number of the resource
 * @fd: dma-buf with its memory, one plane
 * @fourcc: DRM_FORMAT_XRGB8888, ARGB8888, XBGR8888 or ABGR8888: the order of the colours.  VMMs
 *	get the format without alpha for a screen, and that with alpha for a cursor.
 * @stride: bytes from one row to the next; an upper bound where @modifier is not linear
 * @offset: 0; VMMs show no other buffers
 * @reserved: 0
 * @modifier: DRM_FORMAT_MOD_*; with DRM_FORMAT_MOD_INVALID the driver alone knows the layout, and
 *	the size of the dma-buf says nothing
 *
 * A command with MGPU_USER_CMD_EXPORT makes the resource: the request is made before that is
 * answered, at most once, or not at all if the GPU cannot export.  The module keeps a reference
 * to the dma-buf for as long as it has the resource.  The VMM of the same VM gets the dma-buf,
 * and nobody else.  Errors: ENOENT, no such command waits for an answer; EEXIST, its resource
 * was exported; EINVAL, a field is wrong, or the dma-buf is too small; ENODEV, as of
 * MGPU_USER_ENTER; or an error of the dma-buf.
 */
struct mgpu_user_export {
	__u32 size;
	__u32 flags;
	__u32 resource;
	__s32 fd;
	__u32 fourcc;
	__u32 stride;
	__u32 offset;
	__u32 reserved;
	__u64 modifier;
};

/**
 * struct mgpu_user_turn - argument of MGPU_USER_TURN
 * @size: size of this structure
 * @flags: 0
 *
 * Asks for engine time that no command of the guest stands for: that of work which the guest
 * gives the worker in memory that they share.  The module queues a turn of the vGPU, behind the
 * commands that the guest has submitted before, and when the scheduler has come to it puts a
 * command with MGPU_USER_CMD_TURN.  The turn lasts until the worker answers that, which says how
 * long the engine has worked, and must be within the device's job-timeout.  Without a turn, the
 * worker has such work wait.  It may ask for the next turn before it answers, so that the vGPU has
 * a job that the scheduler can choose then.  Errors: EBUSY, the vGPU waits for a turn, or has two
 * that are not answered; EAGAIN, the guest has no driver, or has reset the vGPU; EACCES, the vGPU
 * is under quarantine; ENODEV, as of MGPU_USER_ENTER.
 */
struct mgpu_user_turn {
	__u32 size;
	__u32 flags;
};

/* On /dev/mgpu-userN. */
#define MGPU_USER_ATTACH	_IO('M', 0x48)	/* struct mgpu_user_attach */
#define MGPU_USER_ENTER		_IO('M', 0x49)	/* struct mgpu_user_enter */
#define MGPU_USER_EXPORT	_IO('M', 0x4a)	/* struct mgpu_user_export */
#define MGPU_USER_MAP		_IO('M', 0x4b)	/* struct mgpu_user_map */
#define MGPU_USER_TURN		_IO('M', 0x4c)	/* struct mgpu_user_turn */

/**
 * struct mgpu_user_ring - beginning of the area of rings
 * @cmd_head: number of commands that the worker has taken; it writes this
 * @cmd_tail: number of commands that the module has put; it writes this
 * @answer_head: number of answers that the module has taken; it writes this
 * @answer_tail: number of answers that the worker has put; it writes this
 * @reserved: 0
 *
 * Numbers wrap at 2^32.  The writer of a tail writes it last, with release semantics.
 * An array of struct mgpu_user_cmd and one of struct mgpu_user_answer follow, each with
 * @entries of struct mgpu_user_attach.
 */
struct mgpu_user_ring {
	__u32 cmd_head;
	__u32 cmd_tail;
	__u32 answer_head;
	__u32 answer_tail;
	__u32 reserved[12];
};

/**
 * struct mgpu_user_cmd - command for the worker
 * @seq: number of the command, from 0, in the order of the ring
 * @flags: MGPU_USER_CMD_*
 * @offset: of the command in the arena, bytes; a multiple of 8
 * @len: length of the command, bytes
 * @mem: with RESOURCE_ATTACH_BACKING, and a RESOURCE_CREATE_BLOB with entries: offset at
 *	which the memory can be mapped; the addr of each entry is counted from there
 * @mem_len: bytes that can be mapped there
 *
 * The command stays in the arena until it is answered; with MGPU_USER_CMD_NOTICE, until
 * the worker has taken it and calls MGPU_USER_ENTER.
 */
struct mgpu_user_cmd {
	__u32 seq;
	__u32 flags;
	__u32 offset;
	__u32 len;
	__u64 mem;
	__u64 mem_len;
};

/* Answer when all work that the command began is finished. */
#define MGPU_USER_CMD_FENCED	0x1
/* No answer: what the command releases is released already. */
#define MGPU_USER_CMD_NOTICE	0x2
/* It makes a resource: export that with MGPU_USER_EXPORT before the answer. */
#define MGPU_USER_CMD_EXPORT	0x4
/*
 * No command, but the turn that MGPU_USER_TURN has asked for; the bytes are 0.  Later commands may
 * be answered before it.
 */
#define MGPU_USER_CMD_TURN	0x8

/**
 * struct mgpu_user_answer - answer of the worker
 * @seq: of the command
 * @type: VIRTIO_GPU_RESP_OK_NODATA or VIRTIO_GPU_RESP_ERR_*
 * @engine_ns: GPU time that the command took, nanoseconds; 0 if that is not known
 */
struct mgpu_user_answer {
	__u32 seq;
	__u32 type;
	__u64 engine_ns;
};

/*
 * Offsets for mmap() of a channel.  The rings can be written, the arena cannot.  Memory of
 * the guest is at MGPU_USER_OFF_MEM and above.  After the module has released it (the guest
 * detached it, the VMM unmapped it, the vGPU was reset or closed), a page without guest data
 * is there.
 */
#define MGPU_USER_OFF_RING	0ULL
#define MGPU_USER_OFF_ARENA	0x0100000000ULL
#define MGPU_USER_OFF_MEM	0x1000000000ULL

#endif /* _UAPI_LINUX_MGPU_USER_H */
