/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recordings of what a worker executed: the file's format, and its reader.
 *
 * A file is a struct recording_header, then records: each a struct record_header and its
 * body.  Integers are little-endian; nothing is aligned.  RECORD_CAPSET come first.  A
 * command is RECORD_MEMORY for what it can read and the recording does not have yet, and its
 * RECORD_COMMAND.  After a TRANSFER_FROM_HOST_3D, RECORD_RESULT have what it changed, and
 * RECORD_CHECK says that the resource's memory is now as it is recorded.
 *
 * Memory is recorded as the pages of a resource's whole memory that changed since they were
 * recorded last: this is right for every layout of a transfer, also for those within
 * streams, without knowledge of formats.  Memory is zeros when it is attached.  A blob of the
 * host's memory has memory, too, which each stream can read while the guest has it mapped.
 *
 * A file that ends behind a record is complete: a worker may be killed.
 */
#ifndef RENDERD_RECORDING_H
#define RENDERD_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>
#include <linux/virtio_gpu.h>

#include "../../include/uapi/linux/mgpu_user.h"

#define RECORDING_MAGIC		"mgpurec\n"
#define RECORDING_VERSION	2u	/* 1 has no blobs */
#define RECORDING_PAGE		4096u

/* Limits that the reader holds a file to. */
#define RECORDING_MAX_BODY	(5u << 20)	/* bytes; a channel's arena has 4 MiB */
#define RECORDING_MAX_RUN	(1u << 20)	/* bytes of memory in a record */
#define RECORDING_MAX_MEM	(1ull << 30)	/* bytes of memory of a resource */
#define RECORDING_MAX_MEMS	(4ull << 30)	/* of all resources at a time */

struct recording_header {
	__u8 magic[8];
	__le32 version;
	__le32 vgpu;		/* ID */
};

enum record_type {
	RECORD_CAPSET = 1,
	RECORD_COMMAND,
	RECORD_MEMORY,		/* guest memory before the next command */
	RECORD_RESULT,		/* guest memory after the command before */
	RECORD_CHECK,
};

/**
 * struct record_header - beginning of a record
 * @type: enum record_type
 * @len: bytes of the body
 * @ns: time since the beginning of the recording, nanoseconds; never decreases
 */
struct record_header {
	__le32 type;
	__le32 len;
	__le64 ns;
};

/* Beginning of the body of RECORD_CAPSET; the set follows. */
struct record_capset {
	__le32 id;
	__le32 version;
};

/* That of RECORD_COMMAND: members of struct mgpu_user_cmd; the command follows. */
struct record_command {
	__le32 seq;
	__le32 flags;
	__le64 mem;
	__le64 mem_len;
};

/* That of RECORD_MEMORY and RECORD_RESULT; the bytes follow. */
struct record_memory {
	__le32 resource;
	__le32 reserved;	/* 0 */
	__le64 offset;		/* bytes, from the beginning of the resource's memory */
};

/* Body of RECORD_CHECK. */
struct record_check {
	__le32 resource;
};

/* ---- memory of resources ---- */

/**
 * struct recording_mem - memory of a resource, as far as it is recorded
 * @next: of the same bucket
 * @id: number of the resource
 * @mark: for the user
 * @mapped: it is a blob's, and the guest has mapped it
 * @len: bytes
 * @bytes: contents; each entry has pages of its own, also where entries share a guest's
 * @entry: what the renderer uses of them
 * @nr: number of @entry
 */
struct recording_mem {
	struct recording_mem *next;
	uint32_t id;
	uint64_t mark;
	bool mapped;
	uint64_t len;
	uint8_t *bytes;
	struct virtio_gpu_mem_entry *entry;
	uint32_t nr;
};

#define RECORDING_BUCKETS	1024u

struct recording_mems {
	struct recording_mem *bucket[RECORDING_BUCKETS];
	uint64_t len;		/* of all, bytes */
	uint32_t mapped;	/* blobs that the guest has mapped */
};

struct recording_mem *recording_mem(const struct recording_mems *mems, uint32_t id);
/* Return a memory that the guest has mapped: the first one behind @last; NULL at the end. */
struct recording_mem *recording_mapped(const struct recording_mems *mems,
				       const struct recording_mem *last);
void recording_mems_free(struct recording_mems *mems);

/**
 * recording_follow() - attach, map and detach memory as a command does
 * @mems: memory of resources
 * @cmd: command; it need not succeed
 * @buf: its bytes, at least as many as its type has
 *
 * Return: 0; -EFBIG if it attaches more than the limits; or -ENOMEM.
 */
int recording_follow(struct recording_mems *mems, const struct mgpu_user_cmd *cmd,
		     const void *buf);

/* ---- reading ---- */

/**
 * struct recording - a file that is read
 * @fd: file
 * @at: offset of the record, bytes
 * @next: that of the record after it
 * @vgpu: ID of the vGPU
 * @type: of the record: enum record_type
 * @ns: its time
 * @len: bytes of its body
 * @body: body; at an address for any integer
 * @room: bytes that @body has room for
 * @cmd: of RECORD_COMMAND: the command; without an offset
 * @buf: of RECORD_COMMAND: its bytes
 * @capset: of RECORD_CAPSET: ID of the set
 * @mem: of RECORD_MEMORY, RECORD_RESULT and RECORD_CHECK: the memory, which has the bytes
 *	already
 * @offset: of RECORD_MEMORY and RECORD_RESULT: where they begin
 * @bytes: of these: their number; of RECORD_CAPSET: bytes of the set, at the end of @body
 * @mems: memory of resources
 * @result_of: resource that RECORD_RESULT and RECORD_CHECK may name; 0 for none
 * @why: error
 */
struct recording {
	int fd;
	uint64_t at, next;
	uint32_t vgpu;
	uint32_t type;
	uint64_t ns;
	uint32_t len;
	uint8_t *body;
	size_t room;
	struct mgpu_user_cmd cmd;
	const void *buf;
	uint32_t capset;
	struct recording_mem *mem;
	uint64_t offset;
	uint32_t bytes;
	struct recording_mems mems;
	uint32_t result_of;
	char why[160];
};

/**
 * recording_open() - read a file's header
 * @r: result; to be closed in any case
 * @fd: file that can be read at offsets; @r's from now on
 *
 * Return: 0 or a negative errno, with @r->why set.
 */
int recording_open(struct recording *r, int fd);
void recording_close(struct recording *r);

/**
 * recording_next() - read the next record
 * @r: recording
 *
 * Checks what virgl_execute() takes for granted, as the file may have been made by anybody.
 *
 * Return: 1; 0 at the end; or a negative errno, with @r->why set.
 */
int recording_next(struct recording *r);

#endif /* RENDERD_RECORDING_H */
