/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages between the front end of a remoted API and its server.
 *
 * All is little-endian, and a multiple of 8 bytes long.  The front end sends a struct remote_hello
 * and gets a struct remote_welcome; then it sends requests, and the server replies and data.
 *
 * The arguments of a request follow its header: numbers and handles first, then the others, in the
 * order of the description:
 *
 *	number		8 bytes
 *	handle		its id, 0 for NULL
 *	in, string	length in bytes, or REMOTE_NULL; then the bytes, padded.  Handles are ids
 *	texts		each as an "in"
 *	list		as an "in"; handles among the values are ids
 *	out		1 if the caller asks for it, or 0
 *	new		id of the object to be made, or 0
 *	returned object	its id, behind all arguments
 *
 * In place of the length of data that are written, and in place of the 1 for data that are read,
 * there may be the offset of the data in memory that both sides share, with REMOTE_SHARED.  No
 * bytes follow then.  When the command has ended, or if there is none, a REMOTE_DATA without bytes
 * says so, and the front end has that part of the memory back.
 *
 * The payload of a reply whose status is 0 has each "out" that was asked for, as an "in".
 */
#ifndef REMOTE_WIRE_H
#define REMOTE_WIRE_H

#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire has the order of memory");
_Static_assert(sizeof(void *) == 8, "handles and sizes have 8 bytes");

#define REMOTE_MAGIC	0x6f6d65727570676dull	/* "mgpuremo" */
#define REMOTE_VERSION	2
#define REMOTE_NULL	UINT64_MAX
#define REMOTE_SHARED	(1ull << 62)

/* Ids of objects that the server names have this bit; the front end names all others. */
#define REMOTE_ROOT	(1ull << 63)

/**
 * struct remote_hello - first message of a front end
 *
 * The descriptor of memory to be shared may come with it: of a memfd that cannot become smaller.
 *
 * @magic: REMOTE_MAGIC
 * @version: REMOTE_VERSION
 * @api: number of the API
 * @digest: of its description, which both sides are made from
 */
struct remote_hello {
	uint64_t magic;
	uint32_t version;
	uint32_t api;
	uint64_t digest;
};

/**
 * struct remote_welcome - the server's answer
 * @magic: REMOTE_MAGIC
 * @version: REMOTE_VERSION
 * @refused: 0, or the server speaks another version or has no such API, and ends
 * @max_message: bytes that a request may have behind its header
 * @shared: bytes of the memory that is shared, 0 for none
 */
struct remote_welcome {
	uint64_t magic;
	uint32_t version;
	uint32_t refused;
	uint64_t max_message;
	uint64_t shared;
};

/* The front end waits for a reply. */
#define REMOTE_WAITS	(1u << 0)
/* The call may wait for what a later request does: other requests are served meanwhile. */
#define REMOTE_ASIDE	(1u << 1)

/**
 * struct remote_request - header of a request
 * @len: bytes that follow
 * @seq: number that the reply or the data have
 * @function: number of the call
 * @flags: REMOTE_WAITS, REMOTE_ASIDE
 */
struct remote_request {
	uint64_t len;
	uint32_t seq;
	uint16_t function;
	uint16_t flags;
};

/*
 * Number of a function of every API: the front end tells what it has counted.  The arguments are
 * LEDGER_REPORTED words in the order of enum ledger_number, from LEDGER_REPORT on; there is no
 * reply, and the request's number is 0.
 */
#define REMOTE_REPORT	0xffffu

/*
 * A function of every API, too: wait for a while until a transfer in shared memory has ended.
 * There are no arguments, and the reply has no payload.
 */
#define REMOTE_ROOM	0xfffeu

/* A reply, or the data that a request without a reply asked for. */
#define REMOTE_REPLY	1
#define REMOTE_DATA	2

/**
 * struct remote_reply - header of a reply or of data
 * @len: bytes that follow
 * @seq: that of the request
 * @type: REMOTE_REPLY or REMOTE_DATA
 * @status: what the call returned
 * @reserved: 0
 */
struct remote_reply {
	uint64_t len;
	uint32_t seq;
	uint32_t type;
	int32_t status;
	uint32_t reserved;
};

#endif /* REMOTE_WIRE_H */
