/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a front end in a VM and a worker of mgpu-renderd speak, by a context of the VM's vGPU.
 *
 * The context has the capset REMOTE_VGPU_CAPSET, and one ring.  The front end makes a resource,
 * whose memory is the guest's, and names it in the context's first stream.  It has
 *
 *	struct remote_vgpu_page		at 0
 *	bytes from the server		at REMOTE_VGPU_PAGE, a ring of @in_len
 *	bytes for the server		behind those, where the front end likes
 *
 * Streams of SUBMIT_3D have operations, each a struct remote_vgpu_op and as many bytes as that
 * says, padded to 8.  Bytes to and from the server are those of a socket (wire.h).
 *
 * A stream's fence, on ring 0, is signalled when its bytes were taken and
 *
 *	- the ring has bytes that the front end has not taken,
 *	- or the server has executed all that it was sent, and waits,
 *	- or REMOTE_VGPU_SLICE_NS have passed since the fence before,
 *	- or the server has ended.
 *
 * So each stream is a job of a bounded length: a front end that waits sends further ones.
 */
#ifndef REMOTE_VGPU_H
#define REMOTE_VGPU_H

#include <stdint.h>

/* Linux tells programs of capsets below 32. */
#define REMOTE_VGPU_CAPSET	28u
#define REMOTE_VGPU_VERSION	1u
#define REMOTE_VGPU_PAGE	4096u
#define REMOTE_VGPU_SLICE_NS	10000000u
/* Bytes that the front end may have sent before the server has received them. */
#define REMOTE_VGPU_WINDOW	(1u << 20)

/**
 * struct remote_vgpu_caps - the capset's data
 * @version: REMOTE_VGPU_VERSION
 * @api: number of the API
 */
struct remote_vgpu_caps {
	uint32_t version;
	uint32_t api;
};

/**
 * struct remote_vgpu_page - the resource's first page
 * @put: bytes from the server that were put into the ring so far; the worker writes this last
 * @taken: bytes that the front end has taken from the ring so far; it writes this
 * @sent: bytes for the server that it has received so far; the worker writes this
 * @streams: streams that are complete; the worker writes this before it signals the fence of each,
 *	so that a fence without it says that the worker has no such context
 * @ended: not 0 if the server has ended, which the worker writes behind its last bytes
 * @reserved: 0
 */
struct remote_vgpu_page {
	uint64_t put;
	uint64_t taken;
	uint64_t sent;
	uint64_t streams;
	uint32_t ended;
	uint32_t reserved;
};

/* Begin: struct remote_vgpu_open. */
#define REMOTE_VGPU_OPEN	1u
/* Bytes for the server. */
#define REMOTE_VGPU_SEND	2u
/* The same, in the resource: struct remote_vgpu_data. */
#define REMOTE_VGPU_DATA	3u
/* Nothing; for a stream that only waits. */
#define REMOTE_VGPU_WAIT	4u

/**
 * struct remote_vgpu_op - header of an operation
 * @op: REMOTE_VGPU_...
 * @len: bytes that follow, without their padding
 */
struct remote_vgpu_op {
	uint32_t op;
	uint32_t len;
};

/**
 * struct remote_vgpu_open - what the context uses
 * @resource: number of the resource
 * @in_len: bytes of the ring, a power of two
 */
struct remote_vgpu_open {
	uint32_t resource;
	uint32_t in_len;
};

/**
 * struct remote_vgpu_data - bytes in the resource
 * @offset: where they are
 * @len: their number
 */
struct remote_vgpu_data {
	uint32_t offset;
	uint32_t len;
};

#endif /* REMOTE_VGPU_H */
