/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The front end's side of a remoted API, whatever the API: a connection to the server, calls that
 * wait for an answer or are put off, and the objects that the program has handles of.
 *
 * A process has one connection.  Requests of all threads are sent in the order in which
 * call_begin() was called.
 */
#ifndef REMOTE_CLIENT_H
#define REMOTE_CLIENT_H

#include <stdatomic.h>
#include <stddef.h>

#include "codec.h"

#define REMOTE_SOCKET	"/run/mgpu/remote.sock"

/* How calls are sent, if they can be put off. */
enum remote_mode {
	REMOTE_ONE,		/* one by one, each with its answer */
	REMOTE_BATCHED,		/* several at once */
	REMOTE_DEFERRED,	/* those of loops as groups */
};

/**
 * struct remote_place - where the program's thread is
 * @site: address that its call of the API returns to
 * @fresh: the call has sent nothing yet
 */
struct remote_place {
	const void *site;
	bool fresh;
};

extern _Thread_local struct remote_place remote_place __attribute__((tls_model("initial-exec")));

/**
 * struct remote_layer - a library between the program and the API
 * @start: first byte of its code
 * @len: bytes of it; 0 if there is none
 * @within: the program is not linked with it, but calls it
 *
 * The library says by remote_come() where the program called it, and its own calls of the API are
 * there.
 */
struct remote_layer {
	atomic_uintptr_t start;
	atomic_uintptr_t len;
	atomic_bool within;
};

extern struct remote_layer remote_layer;

/* The program has made a call that returns to @site. */
static inline void remote_come(const void *site)
{
	if ((uintptr_t)site - remote_layer.start >= remote_layer.len)
		remote_place = (struct remote_place){ site, true };
}

/* Begin a call of the program: in the function that it, or the API's loader, jumps to. */
#define remote_enter()	remote_come(__builtin_return_address(0))

/**
 * struct object - an object of the API; the program's handle is its address
 * @dispatch: table of functions, for the API's loader
 * @magic: OBJECT_MAGIC
 * @kind: its kind, from 1
 * @id: number that the server knows it by
 * @refs: references that the program and other objects have
 * @parent: object that it was made from, and that lives as long; NULL for none
 * @size: bytes, for calls whose ranges are checked
 * @unit: bytes of a pixel
 * @like: key of the call that made it, or 0: calls on objects that were made alike are alike; of
 *	some APIs only in a loop that is deferred
 * @list: properties that it was made with, NULL for none
 * @nr_list: their number, the 0 at the end included
 * @own: of the API's own part; NULL
 * @next: in the table of objects
 */
struct object {
	void *dispatch;
	uint32_t magic;
	uint32_t kind;
	uint64_t id;
	atomic_uint refs;
	struct object *parent;
	uint64_t size;
	uint32_t unit;
	uint64_t like;
	uint64_t *list;
	size_t nr_list;
	void *own;
	struct object *next;
};

#define OBJECT_MAGIC	0x6d67706f

/**
 * struct remote_api - an API
 * @number: for struct remote_hello
 * @digest: of its description
 * @group: number of the function that executes groups
 * @dispatch: table for objects
 * @library: what the name of the library begins with that programs are linked with
 * @release: by kind, the function that releases an object; 0 for none
 * @waits: bits of kinds whose release is waited for
 * @lost: error if there is no server, or no longer
 * @no_memory: error if memory is short here
 * @gone: called before an object goes; may be NULL
 */
struct remote_api {
	uint32_t number;
	uint64_t digest;
	uint16_t group;
	void *dispatch;
	const char *library;
	const uint16_t *release;
	uint32_t waits;
	int32_t lost;
	int32_t no_memory;
	void (*gone)(struct object *o);
};

/**
 * remote_open() - speak with a server
 * @api: the API
 * @fd: a connected socket, which belongs to the connection from now on
 * @mode: how calls are sent
 *
 * Return: 0, or a negative errno: the server does not answer (-ECONNRESET), or is another version
 * (-EPROTO).
 */
int remote_open(const struct remote_api *api, int fd, enum remote_mode mode);

/**
 * remote_connect() - find a server and speak with it
 * @api: the API
 *
 * $MGPU_REMOTE is unix:PATH or a PATH, vgpu, vgpu:NODE, vsock:CID:PORT, or "off"; without it a vGPU
 * that has remoted OpenCL is taken, or else REMOTE_SOCKET.  $MGPU_REMOTE_MODE is one, batched (the
 * default), or deferred; with $MGPU_REMOTE_COUNTS what was counted is named on standard error in
 * the end.  Errors are named on standard error if $MGPU_REMOTE is set.
 *
 * Return: 0 or a negative errno.
 */
int remote_connect(const struct remote_api *api);

/* End the connection, and free all objects that are left: for tests. */
void remote_close(void);

/**
 * struct remote_counts - what the connection has been used for
 * @requests: requests
 * @waits: those that were waited for
 * @bytes: bytes that were sent
 * @groups: groups that were sent
 * @grouped: requests in them
 */
struct remote_counts {
	uint64_t requests;
	uint64_t waits;
	uint64_t bytes;
	uint64_t groups;
	uint64_t grouped;
};

void remote_count(struct remote_counts *counts);

/* Return 0, or the API's error if the connection is lost, as for a child process. */
int32_t remote_status(void);

/* Start a thread of the front end, which runs none of the program's signal handlers. */
bool remote_thread(void *(*run)(void *));

/* Say once that a call is not remoted. @said belongs to the call. */
void remote_outside(const char *name, atomic_bool *said);

/* ---- objects ---- */

/* Make an object that the server is about to be told of; NULL without memory. */
struct object *object_new(unsigned int kind, struct object *parent);

/* Free an object that the server did not make after all; NULL is none. */
void object_drop(struct object *o);

/* Keep the properties that an object was made with. */
bool object_keep_list(struct object *o, const void *list, size_t nr);

/* Find the object that the server gave a name; NULL without memory. */
struct object *object_root(unsigned int kind, uint64_t id);

/* Return the object of @kind that @o is or was made from; NULL if there is none. */
struct object *object_above(struct object *o, unsigned int kind);

/* Find out whether an address is that of an object, which it need not be. */
struct object *object_find(const void *address);

static inline bool object_is(const void *handle, unsigned int kind)
{
	const struct object *o = handle;

	return o && o->magic == OBJECT_MAGIC && o->kind == kind;
}

static inline struct object *object_of(const void *handle)
{
	return (struct object *)(uintptr_t)handle;
}

void object_retain(struct object *o);

/* Give up a reference; with the last one the server is told. */
void object_release(struct object *o);

/* ---- calls ---- */

/* How a request is sent. */
#define CALL_DEFER	0		/* sent with others, without an answer */
#define CALL_FLUSH	(1u << 0)	/* sent at once, without an answer */
#define CALL_WAIT	(1u << 1)	/* wait for the answer */
#define CALL_ASIDE	(1u << 2)	/* and let others be served */

/**
 * struct shape - how bytes lie in the program's memory
 * @offset: bytes before the first row
 * @row: bytes of a row; 0: all bytes follow each other
 * @rows: rows of a slice
 * @slices: slices
 * @row_pitch: bytes from a row to the next
 * @slice_pitch: bytes from a slice to the next
 */
struct shape {
	uint64_t offset;
	uint64_t row;
	uint64_t rows;
	uint64_t slices;
	uint64_t row_pitch;
	uint64_t slice_pitch;
};

/**
 * struct call - a call that is being sent
 * @how: CALL_...
 * @like: 0, or a key: the call waits for its answer unless one with this key succeeded before
 * @seq: its number
 * @late: memory that data go to which come after the call; NULL for none
 * @late_len: its bytes
 * @into: memory that the first "out" of the reply goes to; NULL for none
 * @into_len: its bytes
 * @shape: of @late, @into, or of what is sent
 * @region: part of the shared memory that the data are in, with REMOTE_SHARED; 0 for none
 * @status: what the server returned
 * @reply: the payload of the reply
 * @taken: a thread reads the reply
 * @done: the reply is there
 * @next: among the calls that wait
 * @memory: what @reply reads, to be freed
 * @space: the same, if it is small
 */
struct call {
	unsigned int how;
	uint64_t like;
	uint32_t seq;
	void *late;
	uint64_t late_len;
	void *into;
	uint64_t into_len;
	struct shape shape;
	uint64_t region;
	int32_t status;
	struct reader reply;
	bool taken;
	bool done;
	struct call *next;
	void *memory;
	uint64_t space[16];
};

static inline void call_init(struct call *c, unsigned int how)
{
	memset(c, 0, offsetof(struct call, space));
	c->how = how;
}

/**
 * call_begin() - begin a request
 * @c: the call, whose @how, @like, @late and @into are set
 * @function: its number
 * @len: bytes that the put_...() that follow will send
 *
 * All but put_...() and call_end() is forbidden until call_end().
 *
 * Return: 0, or the API's error: there is nothing to end.
 */
int32_t call_begin(struct call *c, uint16_t function, uint64_t len);

void put_u64(struct call *c, uint64_t v);
/* Put an "in"; @p may be NULL. */
void put_in(struct call *c, const void *p, uint64_t len);
/* Put an "in" that lies in memory as @shape says. */
void put_shape(struct call *c, const void *p, const struct shape *shape);
/* Put an "in" of handles. */
void put_objects(struct call *c, const void *handles, uint64_t nr);

static inline void put_object(struct call *c, const void *handle)
{
	put_u64(c, handle ? object_of(handle)->id : 0);
}

/* Have data that are to be sent, and that lie as @shape says, in shared memory if possible. */
void call_share(struct call *c, const void *p, uint64_t len);
/* Have @late or @into come through shared memory if possible. */
void call_share_out(struct call *c);

/* Bytes of these data in the request, and putting them. */
static inline uint64_t data_len(const struct call *c, uint64_t len)
{
	return c->region ? 8 : in_room(len);
}

void put_data(struct call *c, const void *p, uint64_t len);

/* Put that the data are asked for. */
static inline void put_wish(struct call *c, const void *p)
{
	put_u64(c, c->region ? c->region : p ? 1 : 0);
}

/* Send the request. Return what the call returned; 0 if it was put off. */
int32_t call_end(struct call *c);

/* Return bytes of an "in" of the given length. */
static inline uint64_t in_len(const void *p, uint64_t len)
{
	return p ? in_room(len) : 8;
}

/* Read an "out" of the reply, if @p is not NULL. */
void call_out(struct call *c, void *p, uint64_t len);
/* The same for handles that the server named; those that it did not set stay. */
void call_out_roots(struct call *c, void **p, uint64_t nr, unsigned int kind);

/*
 * Have data that are still to come to @dst, because of an earlier call, go nowhere.  Return whether
 * there are any.
 */
bool remote_forget(const void *dst);

/* Free what the reply took, and return the call's result: an error if the reply was bad. */
int32_t call_done(struct call *c);

/* Return whether the program's call is in a loop whose calls are deferred. */
bool remote_in_loop(void);

/* ---- keys of calls ---- */

static inline uint64_t like_u64(uint64_t key, uint64_t v)
{
	key = (key ^ v) * 0x9e3779b97f4a7c15ull;
	return key ^ key >> 32;
}

static inline uint64_t like_object(uint64_t key, const void *handle)
{
	const struct object *o = handle;

	return like_u64(key, o ? o->like ? o->like : o->id : 0);
}

uint64_t like_bytes(uint64_t key, const void *p, uint64_t len);
uint64_t like_objects(uint64_t key, const void *handles, uint64_t nr);

#endif /* REMOTE_CLIENT_H */
