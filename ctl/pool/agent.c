// SPDX-License-Identifier: GPL-2.0-only
/* Connections of agents: listeners, handshakes, frames, bounds. */
#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <linux/vm_sockets.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "agent_verbs.h"
#include "clock.h"

#define EVENTS		64	/* of one call */
#define ACCEPTS		32	/* of a listener in one call */
#define PEERS		512	/* that are remembered */
#define PLACE_MS	1000	/* between two looks at the places of requests that wait */
#define LOG_MS		60000	/* between two lines of the log about one VM's bad frames */
#define AHEAD		(600 * UINT64_C(1000000))	/* sequences stored at once: 10 minutes */
#define MS		UINT64_C(1000000)

/**
 * struct bucket - tokens for what a peer may do
 * @tokens: thousandths that are left
 * @ns: when they were last counted
 */
struct bucket {
	uint64_t tokens;
	uint64_t ns;
};

/**
 * struct peer - an address that opened connections
 * @key: CID or address, as peer_of() makes it
 * @opens: connections that it may open
 */
struct peer {
	uint64_t key;
	struct bucket opens;
};

/**
 * struct guest - a VM whose agent has proven its name
 * @name: the VM
 * @seq: highest sequence that was taken of it, 0: none, or only the database knows
 * @stored: highest sequence that the database has, 0: unknown; a process that begins anew takes
 *	only what is above it
 * @connections: that it has
 * @messages: frames that it may send
 * @changes: frames with changes that it may send
 * @logged_ns: when a bad frame of it was last logged, 0: never
 */
struct guest {
	struct guest *next;
	char name[POOL_NAME_MAX];
	uint64_t seq;
	uint64_t stored;
	unsigned int connections;
	struct bucket messages;
	struct bucket changes;
	uint64_t logged_ns;
};

enum phase { HANDSHAKE, READ, WAIT, WRITE, CLOSED };

/**
 * struct conn - a connection
 * @fd: its socket
 * @phase: what it is at
 * @events: that epoll watches for
 * @tls: its session
 * @peer: who opened it
 * @name: VM that the handshake named, proven once @guest is set
 * @keys: of that VM
 * @uuid: of that VM when the handshake was over
 * @guest: the VM, NULL during the handshake
 * @deadline_ns: when it is closed, or its wait is over
 * @place_ns: when a wait last looked at the place in the queue
 * @wait: what it waits for
 * @mac: HMAC of the request that is to be answered
 * @seq: its sequence
 * @in: frame that is read, NULL between frames
 * @have: bytes of it
 * @out: answer that is written, NULL for none
 * @out_size: bytes of it
 * @sent: bytes of it that GnuTLS took
 */
struct conn {
	struct conn *next;
	struct agent *agent;
	int fd;
	enum phase phase;
	uint32_t events;
	gnutls_session_t tls;
	uint64_t peer;
	char name[POOL_NAME_MAX];
	struct wire_keys keys;
	char uuid[POOL_UUID_MAX];
	struct guest *guest;
	uint64_t deadline_ns;
	uint64_t place_ns;
	struct agent_wait wait;
	unsigned char mac[WIRE_KEY];
	uint64_t seq;
	unsigned char *in;
	size_t have;
	unsigned char *out;
	size_t out_size;
	size_t sent;
};

/**
 * struct agent - all listeners and connections
 * @setup: what they are answered with
 * @epoll: descriptor of all
 * @timer: the next time limit
 * @cred: GnuTLS's, which asks for the keys of VMs
 * @prio: GnuTLS's ciphers
 * @conns: connections, the newest first
 * @guests: VMs
 * @peers: addresses
 * @counts: for people
 * @answer: the frame that is written
 * @message: the body that is read
 * @now: time of this call, seconds
 * @began: a transaction is open
 */
struct agent {
	struct agent_setup setup;
	int epoll;
	int timer;
	gnutls_psk_server_credentials_t cred;
	gnutls_priority_t prio;
	struct conn *conns;
	struct guest *guests;
	struct peer peers[PEERS];
	struct agent_counts counts;
	struct wire_text answer;
	struct wire_message message;
	int64_t now;
	bool began;
};

/* ---- listeners ---- */

static int bound(int family, const void *address, socklen_t size)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1, ret;

	if (fd < 0)
		return -errno;
	if (family != AF_VSOCK)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, address, size) || listen(fd, 128)) {
		ret = -errno;
		close(fd);
		return ret;
	}
	return fd;
}

static int listen_vsock(const char *where)
{
	struct sockaddr_vm vm = { .svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_ANY };
	uint64_t port = AGENT_PORT;

	if (where[5] && (where[5] != ':' || wire_decimal(where + 6, UINT32_MAX - 1, &port)))
		return -EINVAL;
	vm.svm_port = port ? (unsigned int)port : VMADDR_PORT_ANY;
	return bound(AF_VSOCK, &vm, sizeof(vm));
}

static int listen_tcp(const char *where)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
				  .ai_socktype = SOCK_STREAM }, *found;
	const char *colon = strrchr(where, ':');
	char host[64];
	size_t length;
	int fd;

	if (!colon || colon == where || (size_t)(colon - where) >= sizeof(host))
		return -EINVAL;
	length = (size_t)(colon - where);
	if (*where == '[' && where[length - 1] == ']') {
		where++;
		length -= 2;
	}
	snprintf(host, sizeof(host), "%.*s", (int)length, where);
	if (getaddrinfo(host, colon + 1, &hints, &found))
		return -EINVAL;
	fd = bound(found->ai_family, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return fd;
}

int agent_listen(const char *where, char *text)
{
	bool vsock = !strncmp(where, "vsock", 5);
	int fd = vsock ? listen_vsock(where) : listen_tcp(where);

	if (fd == -EINVAL)
		snprintf(text, POOL_TEXT_MAX, "agents cannot be listened for at '%.64s': give vsock, vsock:PORT, ADDRESS:PORT or [IPv6]:PORT",
			 where);
	else if (fd < 0)
		snprintf(text, POOL_TEXT_MAX, "agents cannot be listened for at '%.64s': %s%s",
			 where, strerror(-fd), !vsock ? "" : ": see that /dev/vsock exists (modprobe vhost_vsock)");
	return fd;
}

/* ---- bounds ---- */

/* Take a token; @rate comes per @seconds, up to @most. */
static bool take(struct bucket *b, uint64_t now, unsigned int most, unsigned int rate,
		 unsigned int seconds)
{
	uint64_t full = (uint64_t)most * 1000, more;

	if (!b->ns) {
		b->tokens = full;
		b->ns = now;
	}
	more = (now - b->ns) / MS * rate / seconds;
	if (more) {
		b->tokens = more >= full - b->tokens ? full : b->tokens + more;
		b->ns = now;
	}
	if (b->tokens < 1000)
		return false;
	b->tokens -= 1000;
	return true;
}

/* A number for who is at the other end: CID, IPv4 address, or network of an IPv6 address. */
static uint64_t peer_of(const struct sockaddr_storage *from)
{
	const struct in6_addr *v6;
	uint64_t key = 0;

	switch (from->ss_family) {
	case AF_VSOCK:
		return UINT64_C(1) << 48 | ((const struct sockaddr_vm *)from)->svm_cid;
	case AF_INET:
		return UINT64_C(2) << 48 | ((const struct sockaddr_in *)from)->sin_addr.s_addr;
	case AF_INET6:
		v6 = &((const struct sockaddr_in6 *)from)->sin6_addr;
		/* IPv4 at a listener for both: the network is the same for all. */
		if (IN6_IS_ADDR_V4MAPPED(v6))
			return UINT64_C(2) << 48 | v6->s6_addr32[3];
		memcpy(&key, v6, sizeof(key));
		return key ? key : UINT64_C(3) << 48;
	default:
		return UINT64_C(4) << 48;
	}
}

/* Find a peer, or take the place of the one that was quiet for longest. */
static struct peer *find_peer(struct agent *a, uint64_t key)
{
	struct peer *oldest = a->peers;

	for (size_t i = 0; i < PEERS; i++) {
		if (a->peers[i].key == key)
			return &a->peers[i];
		if (a->peers[i].opens.ns < oldest->opens.ns)
			oldest = &a->peers[i];
	}
	*oldest = (struct peer){ .key = key };
	return oldest;
}

static struct guest *find_guest(struct agent *a, const char *name)
{
	struct guest *g;

	for (g = a->guests; g; g = g->next)
		if (!strcmp(g->name, name))
			return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	snprintf(g->name, sizeof(g->name), "%s", name);
	g->next = a->guests;
	a->guests = g;
	return g;
}

/* ---- connections ---- */

static void watch(struct conn *c, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = c };

	if (c->events != events)
		epoll_ctl(c->agent->epoll, EPOLL_CTL_MOD, c->fd, &e);
	c->events = events;
}

/* End a connection; sweep() frees it, for an event of this call may still name it. */
static void end(struct conn *c)
{
	if (c->phase == CLOSED)
		return;
	if (c->guest)
		c->guest->connections--;
	else
		c->agent->counts.handshakes--;
	c->agent->counts.connections--;
	c->phase = CLOSED;
	gnutls_deinit(c->tls);
	gnutls_memset(&c->keys, 0, sizeof(c->keys));
	close(c->fd);
	free(c->in);
	free(c->out);
}

static void refused(struct conn *c)
{
	c->agent->counts.refused++;
	end(c);
}

static void sweep(struct agent *a)
{
	struct conn **link = &a->conns, *c;

	while ((c = *link)) {
		if (c->phase != CLOSED) {
			link = &c->next;
			continue;
		}
		*link = c->next;
		free(c);
	}
}

/* The oldest connection in the handshake of the peer that has the most of them. */
static struct conn *worst_handshake(const struct agent *a)
{
	struct conn *worst = NULL;
	unsigned int most = 0;

	for (struct conn *c = a->conns; c; c = c->next) {
		unsigned int nr = 0;

		if (c->phase != HANDSHAKE)
			continue;
		for (const struct conn *o = a->conns; o; o = o->next)
			nr += o->phase == HANDSHAKE && o->peer == c->peer;
		/* The list has the newest first. */
		if (nr >= most) {
			most = nr;
			worst = c;
		}
	}
	return worst;
}

static void end_oldest(const struct agent *a, const struct guest *g)
{
	struct conn *oldest = NULL;

	for (struct conn *c = a->conns; c; c = c->next)
		if (c->guest == g && c->phase != CLOSED)
			oldest = c;
	if (oldest)
		end(oldest);
}

/*
 * GnuTLS asks for the key of a name. A name without a key gets a random one, so that it fails as
 * a wrong key does and names cannot be tried out.
 */
static int psk(gnutls_session_t tls, const gnutls_datum_t *name, gnutls_datum_t *key)
{
	struct conn *c = gnutls_session_get_ptr(tls);
	unsigned char secret[WIRE_KEY];
	bool known = false;

	*c->name = '\0';
	if (name->size < sizeof(c->name) && !memchr(name->data, '\0', name->size)) {
		memcpy(c->name, name->data, name->size);
		c->name[name->size] = '\0';
		known = pool_name_ok(c->name) &&
			!store_get_vm_key(c->agent->setup.store, c->name, secret) &&
			!wire_keys(secret, &c->keys);
	}
	gnutls_memset(secret, 0, sizeof(secret));
	if (!known) {
		*c->name = '\0';
		if (gnutls_rnd(GNUTLS_RND_KEY, &c->keys, sizeof(c->keys)))
			return -1;
	}
	key->data = gnutls_malloc(WIRE_KEY);
	if (!key->data)
		return -1;
	memcpy(key->data, c->keys.tls, WIRE_KEY);
	key->size = WIRE_KEY;
	return 0;
}

static gnutls_session_t new_session(struct agent *a, int fd)
{
	gnutls_session_t tls;

	if (gnutls_init(&tls, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL |
			      GNUTLS_NO_TICKETS))
		return NULL;
	if (gnutls_priority_set(tls, a->prio) ||
	    gnutls_credentials_set(tls, GNUTLS_CRD_PSK, a->cred)) {
		gnutls_deinit(tls);
		return NULL;
	}
	gnutls_transport_set_int(tls, fd);
	/* The time limit is the loop's. */
	gnutls_handshake_set_timeout(tls, 0);
	return tls;
}

static void add_conn(struct agent *a, int fd, uint64_t peer, uint64_t now)
{
	struct conn *c = calloc(1, sizeof(*c));
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = c };

	if (c)
		c->tls = new_session(a, fd);
	if (!c || !c->tls)
		goto no;
	if (epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &e)) {
		gnutls_deinit(c->tls);
		goto no;
	}
	c->agent = a;
	c->fd = fd;
	c->events = EPOLLIN;
	c->peer = peer;
	c->deadline_ns = now + a->setup.limits.handshake_ms * MS;
	gnutls_session_set_ptr(c->tls, c);
	c->next = a->conns;
	a->conns = c;
	a->counts.connections++;
	a->counts.handshakes++;
	return;
no:
	free(c);
	close(fd);
}

/* Whether there is room for one more connection of a peer; makes it among handshakes. */
static bool admit(struct agent *a, uint64_t peer, uint64_t now)
{
	const struct agent_limits *l = &a->setup.limits;
	struct conn *worst;

	if (!take(&find_peer(a, peer)->opens, now, l->opens, l->opens_s, 1))
		return false;
	if (a->counts.connections >= l->connections)
		return false;
	if (a->counts.handshakes >= l->handshakes) {
		worst = worst_handshake(a);
		if (worst)
			refused(worst);
	}
	return true;
}

static void accept_some(struct agent *a, int listener, uint64_t now)
{
	for (int i = 0; i < ACCEPTS; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t size = sizeof(from);
		int fd = accept4(listener, (struct sockaddr *)&from, &size,
				 SOCK_NONBLOCK | SOCK_CLOEXEC), one = 1;

		if (fd < 0)
			return;
		if (!admit(a, peer_of(&from), now)) {
			a->counts.refused++;
			close(fd);
			continue;
		}
		if (from.ss_family != AF_VSOCK)
			setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		add_conn(a, fd, peer_of(&from), now);
	}
}

/* ---- frames ---- */

static void begin_read(struct conn *c, uint64_t now)
{
	free(c->out);
	free(c->in);
	c->out = NULL;
	c->in = NULL;
	c->have = 0;
	c->phase = READ;
	/* Bytes that GnuTLS has read already wake no epoll: the timer does. */
	c->deadline_ns = now + (gnutls_record_check_pending(c->tls) ? 0 :
				c->agent->setup.limits.idle_ms * MS);
	watch(c, EPOLLIN);
}

static bool again(ssize_t n)
{
	return n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED;
}

static void write_some(struct conn *c, uint64_t now)
{
	while (c->sent < c->out_size) {
		ssize_t n = gnutls_record_send(c->tls, c->out + c->sent, c->out_size - c->sent);

		if (again(n)) {
			watch(c, EPOLLOUT);
			return;
		}
		if (n <= 0) {
			end(c);
			return;
		}
		c->sent += (size_t)n;
	}
	begin_read(c, now);
}

/* Sign the answer. It is sent when the changes of this call are on disk: see send_answers(). */
static void answer(struct conn *c, uint64_t now)
{
	struct wire_text *t = &c->agent->answer;
	size_t size = wire_end(t, c->keys.sign, c->seq, c->mac);

	if (!size) {
		agent_error(t, "failed", "the service's answer does not fit: see its journal");
		size = wire_end(t, c->keys.sign, c->seq, c->mac);
	}
	c->out = size ? malloc(size) : NULL;
	if (!c->out) {
		end(c);
		return;
	}
	memcpy(c->out, t->frame, size);
	c->out_size = size;
	c->sent = 0;
	c->phase = WRITE;
	c->deadline_ns = now + c->agent->setup.limits.message_ms * MS;
	c->agent->counts.messages++;
}

/* Begin to change the database, in one transaction for all messages of a call. 0 or -EIO. */
static int begin_change(struct agent *a)
{
	if (!a->began && a->setup.begin(a->setup.arg))
		return -EIO;
	a->began = true;
	return 0;
}

static void failed_to_store(struct conn *c, uint64_t now)
{
	agent_error(&c->agent->answer, "failed",
		    "the service cannot write its database: ask again later");
	answer(c, now);
}

/* Log that a VM sent what its agent does not send, once in a while. */
static void log_bad(struct conn *c, const char *text, uint64_t now)
{
	struct guest *g = c->guest;

	if (g->logged_ns && now - g->logged_ns < LOG_MS * MS)
		return;
	g->logged_ns = now;
	agent_event(&c->agent->setup, g->name, "agent-refused", 0, text, c->agent->now);
}

/* Take a sequence above the last one; the database has it, or a higher one, before the answer. */
static int take_sequence(struct agent *a, struct guest *g, uint64_t seq)
{
	uint64_t to = seq < WIRE_SEQ_MAX - AHEAD ? seq + AHEAD : WIRE_SEQ_MAX;
	int ret;

	if (seq <= g->seq)
		return -EEXIST;
	if (seq > g->stored) {
		ret = begin_change(a);
		if (!ret)
			ret = store_take_seq(a->setup.store, g->name, seq, to, &g->seq);
		if (ret)
			return ret;
		g->stored = to;
	}
	g->seq = seq;
	return 0;
}

static void refuse_sequence(struct conn *c, int error, uint64_t now)
{
	struct agent *a = c->agent;

	if (error != -EEXIST) {
		failed_to_store(c, now);
		return;
	}
	a->counts.replayed++;
	agent_error(&a->answer, "replayed", "the sequence is not above the last one");
	wire_add_number(&a->answer, "last", c->guest->seq);
	answer(c, now);
}

/* Whether the message changes something: a row of the database or more. */
static bool is_change(const struct wire_message *m)
{
	return strcmp(m->verb, "state") && strcmp(m->verb, "list");
}

static bool may_change(struct conn *c, uint64_t now)
{
	const struct agent_limits *l = &c->agent->setup.limits;

	return take(&c->guest->changes, now, l->changes, l->changes_min, 60);
}

static void do_message(struct conn *c, const struct wire_header *h, uint64_t now)
{
	struct agent *a = c->agent;

	if (wire_parse(c->in + WIRE_HEADER, h->length, &a->message)) {
		agent_error(&a->answer, "invalid", "the message is malformed");
		log_bad(c, "its agent sent a malformed message", now);
		answer(c, now);
		return;
	}
	if (is_change(&a->message) && !may_change(c, now)) {
		a->counts.refused++;
		agent_error(&a->answer, "slower", "the VM changes too much: wait a few seconds");
		answer(c, now);
		return;
	}
	if (is_change(&a->message) && begin_change(a)) {
		failed_to_store(c, now);
		return;
	}
	agent_verb(&a->setup, c->guest->name, &a->message, a->now, &a->answer, &c->wait);
	if (!c->wait.id) {
		answer(c, now);
		return;
	}
	c->phase = WAIT;
	c->place_ns = now;
	c->deadline_ns = now + c->wait.seconds * NSEC;
	free(c->in);
	c->in = NULL;
	watch(c, EPOLLRDHUP);
}

/*
 * Whether the VM of the name is still the one that has proven it. The key of another one is void,
 * but the former VM may run on under another name, or on another host.
 */
static bool is_same_vm(const struct conn *c)
{
	const struct pool_vm *vm = pool_vm(c->agent->setup.pool, c->guest->name);

	return !vm || !strcmp(vm->uuid, c->uuid);
}

static void do_frame(struct conn *c, const struct wire_header *h, uint64_t now)
{
	const struct agent_limits *l = &c->agent->setup.limits;
	int ret;

	if (!wire_signed(c->in, c->keys.sign, NULL)) {
		log_bad(c, "its agent sent a message with a wrong signature", now);
		refused(c);
		return;
	}
	if (!is_same_vm(c)) {
		refused(c);
		return;
	}
	c->seq = h->seq;
	memcpy(c->mac, wire_mac(c->in), sizeof(c->mac));
	if (!take(&c->guest->messages, now, l->messages, l->messages_s, 1)) {
		c->agent->counts.refused++;
		agent_error(&c->agent->answer, "slower", "the VM sends too many messages: wait a second");
		answer(c, now);
		return;
	}
	ret = take_sequence(c->agent, c->guest, c->seq);
	if (ret)
		refuse_sequence(c, ret, now);
	else
		do_message(c, h, now);
}

/* Read towards @want bytes of a frame. Return 1 when they are there, else 0. */
static int read_to(struct conn *c, size_t want, uint64_t now)
{
	while (c->have < want) {
		ssize_t n;

		if (!c->in)
			c->in = malloc(WIRE_FRAME_MAX);
		if (!c->in) {
			end(c);
			return 0;
		}
		n = gnutls_record_recv(c->tls, c->in + c->have, want - c->have);
		if (again(n)) {
			if (!c->have) {
				free(c->in);
				c->in = NULL;
			}
			return 0;
		}
		/* Also for what an agent never sends: an early end, a new handshake. */
		if (n <= 0) {
			end(c);
			return 0;
		}
		if (!c->have)
			c->deadline_ns = now + c->agent->setup.limits.message_ms * MS;
		c->have += (size_t)n;
	}
	return 1;
}

static void read_frame(struct conn *c, uint64_t now)
{
	struct wire_header h;

	if (!read_to(c, WIRE_HEADER, now))
		return;
	if (wire_header(c->in, &h)) {
		log_bad(c, "its agent sent a frame with a wrong header", now);
		refused(c);
		return;
	}
	if (read_to(c, WIRE_HEADER + h.length, now))
		do_frame(c, &h, now);
}

/* The VM has proven its name. */
static void proven(struct conn *c, uint64_t now)
{
	struct agent *a = c->agent;
	const struct pool_vm *vm;
	gnutls_datum_t name;
	struct guest *g;

	if (!*c->name || gnutls_psk_server_get_username2(c->tls, &name) ||
	    name.size != strlen(c->name) || memcmp(name.data, c->name, name.size)) {
		refused(c);
		return;
	}
	g = find_guest(a, c->name);
	if (!g) {
		refused(c);
		return;
	}
	vm = pool_vm(a->setup.pool, c->name);
	snprintf(c->uuid, sizeof(c->uuid), "%s", vm ? vm->uuid : "");
	if (g->connections >= a->setup.limits.connections_vm)
		end_oldest(a, g);
	g->connections++;
	a->counts.handshakes--;
	c->guest = g;
	begin_read(c, now);
}

static void shake_hands(struct conn *c, uint64_t now)
{
	int ret = gnutls_handshake(c->tls);

	if (!ret) {
		proven(c, now);
	} else if (again(ret)) {
		watch(c, gnutls_record_get_direction(c->tls) ? EPOLLOUT : EPOLLIN);
	} else if (gnutls_error_is_fatal(ret)) {
		gnutls_alert_send_appropriate(c->tls, ret);
		refused(c);
	}
}

static void proceed(struct conn *c, uint32_t events, uint64_t now)
{
	if (c->phase == HANDSHAKE)
		shake_hands(c, now);
	if (c->phase == WRITE)
		write_some(c, now);
	if (c->phase == READ)
		read_frame(c, now);
	if (c->phase == WAIT && events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		end(c);
}

/* ---- time ---- */

static void answer_wait(struct conn *c, uint64_t now)
{
	if (!is_same_vm(c)) {
		refused(c);
		return;
	}
	agent_state(&c->agent->setup, c->guest->name, c->wait.id, c->agent->now,
		    &c->agent->answer);
	answer(c, now);
}

static void look_at_wait(struct conn *c, uint64_t now)
{
	bool place = now - c->place_ns >= PLACE_MS * MS;

	if (place)
		c->place_ns = now;
	if (now >= c->deadline_ns || agent_wait_over(&c->agent->setup, &c->wait, place))
		answer_wait(c, now);
}

static void look_at_time(struct conn *c, uint64_t now)
{
	if (c->phase == WAIT) {
		look_at_wait(c, now);
	} else if (c->phase == READ && gnutls_record_check_pending(c->tls)) {
		c->deadline_ns = now + c->agent->setup.limits.message_ms * MS;
		read_frame(c, now);
	} else if (c->phase != CLOSED && now >= c->deadline_ns) {
		if (c->phase == READ && !c->have)
			end(c);
		else
			refused(c);
	}
}

/* When a connection is next due. */
static uint64_t due(const struct conn *c)
{
	uint64_t place = c->place_ns + PLACE_MS * MS;

	return c->phase == WAIT && place < c->deadline_ns ? place : c->deadline_ns;
}

static void set_timer(const struct agent *a)
{
	struct itimerspec t = { 0 };
	uint64_t next = UINT64_MAX;

	for (const struct conn *c = a->conns; c; c = c->next)
		if (due(c) < next)
			next = due(c);
	if (next != UINT64_MAX) {
		t.it_value.tv_sec = (time_t)(next / NSEC);
		t.it_value.tv_nsec = (long)(next % NSEC);
	}
	timerfd_settime(a->timer, TFD_TIMER_ABSTIME, &t, NULL);
}

/* ---- the server ---- */

/* End the transaction, and send the answers. None is sent if the changes are not on disk. */
static void send_answers(struct agent *a, uint64_t now)
{
	bool good = !a->began || !a->setup.commit(a->setup.arg);

	a->began = false;
	for (struct conn *c = a->conns; c; c = c->next) {
		/* The rest of an answer waits for the socket. */
		if (c->phase != WRITE || c->events == EPOLLOUT)
			continue;
		if (good)
			write_some(c, now);
		else
			end(c);
	}
}

static const int *listener_of(const struct agent *a, const void *ptr)
{
	for (size_t i = 0; i < a->setup.nr_listeners; i++)
		if (ptr == &a->setup.listeners[i])
			return ptr;
	return NULL;
}

void agent_handle(struct agent *agent, int64_t now)
{
	struct epoll_event events[EVENTS];
	uint64_t ns = now_ns();
	int nr = epoll_wait(agent->epoll, events, EVENTS, 0);

	agent->now = now;
	for (int i = 0; i < nr; i++) {
		const int *listener = listener_of(agent, events[i].data.ptr);

		if (listener)
			accept_some(agent, *listener, ns);
		else if (events[i].data.ptr)
			proceed(events[i].data.ptr, events[i].events, ns);
	}
	for (struct conn *c = agent->conns; c; c = c->next)
		look_at_time(c, ns);
	send_answers(agent, ns);
	sweep(agent);
	set_timer(agent);
}

int agent_fd(const struct agent *agent)
{
	return agent->epoll;
}

void agent_counts(const struct agent *agent, struct agent_counts *counts)
{
	*counts = agent->counts;
}

void agent_key_changed(struct agent *agent, const char *vm)
{
	for (struct conn *c = agent->conns; c; c = c->next)
		if (c->phase != CLOSED && !strcmp(c->name, vm))
			end(c);
	sweep(agent);
	/* Messages that another key signed are refused by that. */
	for (struct guest *g = agent->guests; g; g = g->next)
		if (!strcmp(g->name, vm))
			g->seq = g->stored = 0;
}

static int add_fd(const struct agent *a, int fd, const void *ptr)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = (void *)ptr };

	return epoll_ctl(a->epoll, EPOLL_CTL_ADD, fd, &e);
}

struct agent *agent_new(const struct agent_setup *setup, char *text)
{
	struct agent *a = calloc(1, sizeof(*a));
	const char *at;
	bool bad;

	if (!a) {
		snprintf(text, POOL_TEXT_MAX, "agents cannot be served: out of memory");
		return NULL;
	}
	a->setup = *setup;
	a->epoll = epoll_create1(EPOLL_CLOEXEC);
	a->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	bad = a->epoll < 0 || a->timer < 0 || add_fd(a, a->timer, NULL) ||
	      gnutls_psk_allocate_server_credentials(&a->cred) ||
	      gnutls_priority_init(&a->prio, WIRE_PRIORITY, &at);
	for (size_t i = 0; !bad && i < setup->nr_listeners; i++)
		bad = add_fd(a, setup->listeners[i], &a->setup.listeners[i]);
	if (!bad) {
		gnutls_psk_set_server_credentials_function2(a->cred, psk);
		return a;
	}
	snprintf(text, POOL_TEXT_MAX, "agents cannot be served: %s", strerror(errno));
	a->setup.nr_listeners = 0;
	agent_free(a);
	return NULL;
}

void agent_free(struct agent *agent)
{
	struct guest *g;

	if (!agent)
		return;
	for (struct conn *c = agent->conns; c; c = c->next)
		end(c);
	sweep(agent);
	while ((g = agent->guests)) {
		agent->guests = g->next;
		free(g);
	}
	for (size_t i = 0; i < agent->setup.nr_listeners; i++)
		close(agent->setup.listeners[i]);
	if (agent->prio)
		gnutls_priority_deinit(agent->prio);
	if (agent->cred)
		gnutls_psk_free_server_credentials(agent->cred);
	if (agent->timer >= 0)
		close(agent->timer);
	if (agent->epoll >= 0)
		close(agent->epoll);
	free(agent);
}
