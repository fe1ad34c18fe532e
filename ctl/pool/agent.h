/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The service's side of the agents' channel: listeners, handshakes, and the verbs.
 *
 * A connection is TLS 1.3 with a pre-shared key (ECDHE, identity: the VM's name), over vsock or
 * TCP.  Inside are signed frames (ctl/agent/wire.h), one at a time per connection.  Frames
 * instead of HTTP: no browser or proxy can reach a port that wants a pre-shared key, a header of
 * fixed size has no parser to attack, and the agent stays without an HTTP library.
 *
 * A VM reaches its own requests only: the name that the handshake proved is the name that every
 * verb works with, and no frame has a field for another one.
 *
 * One thread uses a struct agent, the one that uses its pool and store.
 */
#ifndef POOL_AGENT_H
#define POOL_AGENT_H

#include "pool.h"
#include "store.h"

#define AGENT_LISTENERS	8
#define AGENT_PORT	9653	/* of vsock and TCP */

/**
 * struct agent_limits - bounds against guests that ask too much
 * @connections: connections of all VMs (4096)
 * @handshakes: connections without a proven name (64); the peer with the most of them loses its
 *	oldest for a new one
 * @connections_vm: connections of a VM (8); its oldest is closed for a new one
 * @opens: connections that a peer (CID or address) may open at once (16), and
 * @opens_s: per second from then on (4)
 * @messages: messages that a VM may send at once (40), and
 * @messages_s: per second from then on (10)
 * @changes: messages that write to the database (all but state and list) that a VM may send at once
 *	(120), and
 * @changes_min: per minute from then on (30)
 * @handshake_ms: time for a handshake (10000)
 * @message_ms: time from the first byte of a frame to its last, and of an answer (10000)
 * @idle_ms: time without a message after which a connection is closed (300000)
 * @wait_max: longest wait of the verb state, seconds (300)
 * @requests_vm: open requests of a VM (16)
 */
struct agent_limits {
	unsigned int connections;
	unsigned int handshakes;
	unsigned int connections_vm;
	unsigned int opens;
	unsigned int opens_s;
	unsigned int messages;
	unsigned int messages_s;
	unsigned int changes;
	unsigned int changes_min;
	unsigned int handshake_ms;
	unsigned int message_ms;
	unsigned int idle_ms;
	unsigned int wait_max;
	unsigned int requests_vm;
};

void agent_limits_default(struct agent_limits *limits);

/**
 * struct agent_setup - what agents are answered with
 * @pool: the pool
 * @store: its database
 * @limits: bounds
 * @listeners: listening sockets, of agent_listen(); agent_free() closes them
 * @nr_listeners: their number, up to AGENT_LISTENERS
 * @event: a line of the log, as in struct pool_hooks; NULL: none
 * @begin: begin a transaction; other than 0: the database takes nothing now
 * @commit: end it; other than 0: what the pool has is not in the database, and the service must end
 * @arg: for @event, @begin and @commit
 */
struct agent_setup {
	struct pool *pool;
	struct store *store;
	struct agent_limits limits;
	int listeners[AGENT_LISTENERS];
	size_t nr_listeners;
	void (*event)(void *arg, const struct pool_event *event);
	int (*begin)(void *arg);
	int (*commit)(void *arg);
	void *arg;
};

/**
 * struct agent_counts - what came, for the service's status and metrics
 * @connections: connections that are open
 * @handshakes: of them, those without a proven name
 * @messages: frames answered
 * @refused: connections and frames refused: limits, wrong key, bad signature, bad frame
 * @replayed: frames refused because their sequence was not above the last one
 */
struct agent_counts {
	unsigned int connections;
	unsigned int handshakes;
	uint64_t messages;
	uint64_t refused;
	uint64_t replayed;
};

/**
 * agent_listen() - open a listener
 * @where: vsock, vsock:PORT, ADDRESS:PORT, or [IPv6]:PORT; port 0: the kernel chooses
 * @text: why not, and how to mend it, of POOL_TEXT_MAX bytes
 *
 * Return: a non-blocking listening socket, or -errno.
 */
int agent_listen(const char *where, char *text);

/**
 * agent_new() - begin to serve agents
 * @setup: what they are answered with; copied
 * @text: why not, of POOL_TEXT_MAX bytes
 *
 * Return: the agents' server; NULL on an error, and the caller keeps the listeners.
 */
struct agent *agent_new(const struct agent_setup *setup, char *text);
void agent_free(struct agent *agent);

/* An epoll descriptor: readable when there is something to do, time limits included. */
int agent_fd(const struct agent *agent);

/**
 * agent_handle() - do what is due, without blocking
 * @agent: the agents' server
 * @now: time, seconds
 *
 * Call it when agent_fd() is readable, and after every change of the pool: it answers the waits
 * for states that changed. The changes of all messages of a call are one transaction, at whose end
 * they are answered.
 */
void agent_handle(struct agent *agent, int64_t now);

/* Take a VM's key out of use: closes its connections. Call it after a new key or none. */
void agent_key_changed(struct agent *agent, const char *vm);

void agent_counts(const struct agent *agent, struct agent_counts *counts);

#endif /* POOL_AGENT_H */
