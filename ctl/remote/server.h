/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The server's side of a remoted API, whatever the API, for one application.
 *
 * Requests are read and executed in their order, by one thread.  What an application sends is not
 * trusted: a request is read to its end, and every id, length and number in it looked at, before
 * the API is called.  A request that no front end sends ends the application's process.
 */
#ifndef REMOTE_SERVER_H
#define REMOTE_SERVER_H

#include <pthread.h>
#include <stddef.h>

#include "codec.h"
#include "group.h"
#include "ledger.h"

struct server;
struct request;

/**
 * struct served - an object of an application
 * @id: number that the application knows it by
 * @kind: its kind, from 1
 * @error: why it cannot be used: it was not made, or a call on it that nothing waited for failed
 * @native: the API's handle; NULL if it was not made
 * @size: bytes, for calls whose ranges are checked
 * @unit: bytes of a pixel
 * @charged: bytes that count for the application's limit
 * @parent: object that it goes with; NULL: none, or it has gone
 * @within: another one, the context that it was made for if @parent is for all contexts; or NULL
 * @next: in the table
 */
struct served {
	uint64_t id;
	uint32_t kind;
	int32_t error;
	void *native;
	uint64_t size;
	uint32_t unit;
	uint64_t charged;
	struct served *parent;
	struct served *within;
	struct served *next;
};

/**
 * struct limits - what an application may have
 * @memory: bytes of its objects
 * @objects: their number
 * @message: bytes of a request, and of a reply
 * @pending: bytes of transfers that nothing waits for
 */
struct limits {
	uint64_t memory;
	uint64_t objects;
	uint64_t message;
	uint64_t pending;
};

/**
 * struct server_errors - errors of the API that its server returns
 * @value: a range is not within its object, or a number is not allowed
 * @memory: memory, or another limit of the server's, is short
 * @device_memory: the application has as much memory as it may
 * @missing: the host's library does not have the call
 */
struct server_errors {
	int32_t value;
	int32_t memory;
	int32_t device_memory;
	int32_t missing;
};

/**
 * struct server_call - a call of an API
 * @serve: execute a request, return the call's result
 */
struct server_call {
	int32_t (*serve)(struct server *s, struct request *q);
};

/**
 * struct server_api - an API
 * @name: its name
 * @number: for struct remote_hello
 * @digest: of its description
 * @functions: by number
 * @nr_functions: their number
 * @errors: its errors
 * @open: find the functions of a library that dlopen() opened, once; return struct server's @native
 * @invalid: by kind, the error of an argument that is no such object
 * @release: release an object that has a native handle
 * @failed: make a native handle that stands for an object that a call on @target did not make;
 *	NULL if there is none
 * @finished: find out whether the command of a native event has ended: 0, 1, or a negative error
 * @forget: release a native event
 */
struct server_api {
	const char *name;
	uint32_t number;
	uint64_t digest;
	const struct server_call *functions;
	unsigned int nr_functions;
	struct server_errors errors;
	void *(*open)(void *library);
	const int32_t *invalid;
	void (*release)(struct server *s, struct served *o);
	void *(*failed)(struct server *s, uint32_t kind, struct served *target, int32_t error);
	int32_t (*finished)(struct server *s, void *event);
	void (*forget)(struct server *s, void *event);
};

extern const struct server_api opencl_server;
extern const struct server_api cuda_server;

/**
 * struct request - a request that is being executed
 * @in: its arguments
 * @seq: its number
 * @function: the call
 * @flags: REMOTE_WAITS, REMOTE_ASIDE
 * @status: error of an argument, the first one
 * @first: the first object that was read
 * @later: the reply is another thread's
 * @shared: memory of its data that the application has, too; NULL for none, and once a transfer
 *	has it
 * @reserved: bytes of objects that are charged, and that no object has yet
 * @owned: memory that the arguments are in, for a call that takes it and sets it to NULL; NULL if
 *	they are in the server's own
 */
struct request {
	struct reader in;
	uint32_t seq;
	uint16_t function;
	uint16_t flags;
	int32_t status;
	const struct served *first;
	bool later;
	void *shared;
	uint64_t reserved;
	void **owned;
};

/**
 * struct pending - a transfer that nothing waits for
 * @event: native event of its command; NULL if there is none
 * @status: of a transfer without an event: 1, or its error
 * @data: memory that the command uses; NULL if that is shared
 * @len: its bytes
 * @seq: number of the request
 * @read: @data go to the application
 * @shared: the application is told when it has its memory back
 * @next: the one after
 */
struct pending {
	void *event;
	int32_t status;
	void *data;
	uint64_t len;
	uint32_t seq;
	bool read;
	bool shared;
	struct pending *next;
};

#define SERVER_CHAINS	4096u	/* a power of two */
#define SERVER_ROOTS	256u
#define SERVER_JOBS	64u	/* threads that wait for an application */

/**
 * struct server - an application's server
 * @api: its API
 * @native: the API's functions, and what else its own part has
 * @choose: set @api and @native to those of the number that the application asks for.  Return 0,
 *	-ENOENT: there is no such API, or another negative errno.  NULL: they are set
 * @fd: the connection
 * @rests: file that is told how many bytes were received so far, 8 bytes, when all requests in them
 *	have been executed; 0 for none
 * @received: their number
 * @limits: what the application may have
 * @ledger: what it has, for its account's limits and the control socket
 * @objects: table by id
 * @roots: objects that the server named; the id is the index and REMOTE_ROOT
 * @nr_roots: their number
 * @arena: memory that is freed after the request
 * @payload: of the reply
 * @payload_len: its bytes
 * @payload_size: bytes of the memory
 * @lock: covers sending, @pending and @nr_jobs
 * @pending: transfers, the oldest first
 * @pending_end: where the next one goes
 * @shared: memory that the application has, too; NULL for none
 * @shared_len: its bytes
 * @nr_jobs: threads that wait
 * @idle: signalled when there is none
 * @groups_told: groups whose errors were named
 */
struct server {
	const struct server_api *api;
	void *native;
	int (*choose)(struct server *s, uint32_t number);
	int fd;
	int rests;
	uint64_t received;
	struct limits limits;
	struct ledger ledger;
	struct served *objects[SERVER_CHAINS];
	struct served roots[SERVER_ROOTS];
	unsigned int nr_roots;
	struct block *arena;
	uint8_t *payload;
	uint64_t payload_len;
	uint64_t payload_size;
	pthread_mutex_t lock;
	struct pending *pending;
	struct pending **pending_end;
	uint8_t *shared;
	uint64_t shared_len;
	unsigned int nr_jobs;
	pthread_cond_t idle;
	unsigned int groups_told;
};

/**
 * server_serve() - serve an application until it goes
 * @s: the server, of which fd, limits, perhaps rests, and either choose or api and native are
 *	set, and the ledger where the application has an account; the rest is 0
 *
 * Return: 0, or a negative errno: the application sent what no front end sends (-EPROTO), or the
 * connection failed.
 */
int server_serve(struct server *s);

/*
 * Release all objects of the application, and wait for its jobs, which may last for ever: a process
 * that serves one application ends without it.
 */
void server_free(struct server *s);

/* ---- reading arguments ---- */

/* Return memory until the end of the request; NULL, and an error, without. */
void *server_arena(struct server *s, struct request *q, uint64_t len);

/* Read a handle. Return the object, or NULL for none; an invalid one is an error of the request. */
struct served *server_object(struct server *s, struct request *q, uint32_t kind, bool maybe);

/* Read an "in" of handles. Return the native ones, of which there must be @nr unless it is NULL. */
void *server_objects(struct server *s, struct request *q, uint32_t kind, uint64_t nr,
		     int32_t error);

/* Read an "in", which must have @len bytes unless it is NULL and may be. */
const void *server_in(struct server *s, struct request *q, uint64_t len, bool maybe);

/* Read an "in" of data, which may be in shared memory, and which the library does not interpret. */
const void *server_data(struct server *s, struct request *q, uint64_t len);

/* Read whether data are asked for, which may go to shared memory. */
bool server_wish(struct server *s, struct request *q, uint64_t len);

/* Read texts. Return pointers to copies that end with a NUL, and their lengths. */
char **server_texts(struct server *s, struct request *q, uint64_t nr, size_t **lengths);

/* Read the id of an object that is to be made: one that is free. 0 is none. */
uint64_t server_new(struct server *s, struct request *q);

/* Return whether the request is as agreed and all of its arguments are good. */
bool server_ready(struct server *s, struct request *q);

/*
 * Charge memory that the request is about to use. Return false if the application or its account
 * has as much as it may.  What no object gets is given back after the request.
 */
bool server_reserve(struct server *s, struct request *q, uint64_t size);

/* ---- results ---- */

/* Add a native object; it cannot fail after server_new(). */
struct served *server_add(struct server *s, uint32_t kind, uint64_t id, void *native);

/* Charge an object for the memory that the request reserved. */
void server_charge(struct request *q, struct served *o);

/* Release an object. */
void server_remove(struct server *s, struct served *o);

/* Release the objects that go with @parent; the API's release() finds no parent of theirs. */
void server_remove_children(struct server *s, const struct served *parent);

/* Return the id of a native object that the server names. */
uint64_t server_root(struct server *s, uint32_t kind, void *native);

/* Replace native handles by ids. */
void server_roots(struct server *s, uint32_t kind, void *handles, uint64_t len);

/* Have memory for further bytes of the reply. Return false, after an error, without. */
bool server_room(struct server *s, struct request *q, uint64_t len);

/*
 * Return memory for an "out" of the reply, zeroed; NULL, and an error, without. It stays where it
 * is while there is room.
 */
void *server_out(struct server *s, struct request *q, uint64_t len);

/* The same for an "out" that the library fills, or the call fails: it is not zeroed. */
void *server_out_data(struct server *s, struct request *q, uint64_t len);

/* Keep an error of a call that nothing waits for: the next use of @target returns it. */
void server_fail(struct request *q, struct served *target, int32_t status);

/* Add an object that was not made. */
void server_add_failed(struct server *s, uint32_t kind, uint64_t id, struct served *target,
		       int32_t status);

/*
 * Execute a group of requests, each as if it had come by itself.  Errors of them are kept as those
 * of requests that nothing waits for.
 */
int32_t back_remoteGroup(struct server *s, struct request *q, uint64_t count, size_t size,
			 size_t nr_steps, const void *list, const void *steps);

/* ---- what goes on beside ---- */

/*
 * Keep the memory of a transfer until its command has ended. @data is the server's from now on,
 * and @event, too.
 */
void server_pend(struct server *s, const struct pending *transfer);

/* Return whether a transfer of this size may be pending, after a look at those that are. */
bool server_may_pend(struct server *s, uint64_t len);

/**
 * struct job - a call that waits in a thread of its own
 * @s: the server
 * @seq: of the request
 * @wait: wait, and return the result
 * @native: what for
 * @data: payload of the reply after success; freed
 * @len: its bytes
 */
struct job {
	struct server *s;
	uint32_t seq;
	int32_t (*wait)(struct job *j);
	void *native;
	void *data;
	uint64_t len;
};

/* Start a job, which is copied; the thread replies. Return 0, or an error of the API. */
int32_t server_start(struct server *s, struct request *q, const struct job *j);

#endif /* REMOTE_SERVER_H */
