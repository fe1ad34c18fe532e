// SPDX-License-Identifier: GPL-2.0-only
/* The loop of an application's server, its objects, and replies. */
#include <errno.h>
#include <stdio.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "complain.h"
#include "server.h"

#define IN_SIZE		(256u << 10)
#define GROUPS_TOLD	8u		/* groups with errors that are named */
#define KEEP_PAYLOAD	(64u << 20)	/* memory for payloads that stays for the next reply */

/* Memory that is freed after a request. */
struct block {
	struct block *next;
	uint8_t bytes[] __attribute__((aligned(16)));
};

/* ---- objects ---- */

static struct served **chain(struct server *s, uint64_t id)
{
	return &s->objects[(id * 0x9e3779b97f4a7c15ull >> 40) % SERVER_CHAINS];
}

static struct served *find(struct server *s, uint64_t id)
{
	struct served *o;

	if (id & REMOTE_ROOT) {
		id &= ~REMOTE_ROOT;
		return id < s->nr_roots ? &s->roots[id] : NULL;
	}
	for (o = *chain(s, id); o && o->id != id; o = o->next)
		;
	return o;
}

static void set_status(struct request *q, int32_t status)
{
	if (!q->status)
		q->status = status;
}

struct served *server_object(struct server *s, struct request *q, uint32_t kind, bool maybe)
{
	uint64_t id = take_u64(&q->in);
	struct served *o;

	if (!id && maybe)
		return NULL;
	o = find(s, id);
	if (!o || o->kind != kind) {
		set_status(q, s->api->invalid[kind]);
		return NULL;
	}
	if (!q->first)
		q->first = o;
	if (o->error) {
		set_status(q, o->error);
		/* The application learns of it now, or the error moves on to the first object. */
		if (o->native && (q->flags & REMOTE_WAITS || o != q->first))
			o->error = 0;
	}
	return o;
}

void *server_objects(struct server *s, struct request *q, uint32_t kind, uint64_t nr,
		     int32_t error)
{
	uint64_t len, id;
	const uint8_t *ids = take_in(&q->in, &len);
	struct served *o;
	void **native;

	if (!ids)
		return NULL;
	if (len != sat_mul(nr, 8)) {
		q->in.bad = true;
		return NULL;
	}
	native = server_arena(s, q, len);
	if (!native)
		return NULL;
	for (uint64_t i = 0; i < nr; i++) {
		memcpy(&id, ids + 8 * i, 8);
		o = find(s, id);
		native[i] = o && o->kind == kind ? o->native : NULL;
		if (!native[i])
			set_status(q, o && o->kind == kind && o->error ? o->error : error);
	}
	return native;
}

uint64_t server_new(struct server *s, struct request *q)
{
	uint64_t id = take_u64(&q->in);

	if (id && (id & REMOTE_ROOT || find(s, id)))
		q->in.bad = true;
	if (id && !ledger_fits(&s->ledger, LEDGER_OBJECTS, 1, s->limits.objects))
		set_status(q, s->api->errors.memory);
	return id;
}

struct served *server_add(struct server *s, uint32_t kind, uint64_t id, void *native)
{
	struct served *o = calloc(1, sizeof(*o)), **at = chain(s, id);

	if (!o) {
		complain("no memory for an object");
		abort();
	}
	o->id = id;
	o->kind = kind;
	o->native = native;
	o->next = *at;
	*at = o;
	ledger_add(&s->ledger, LEDGER_OBJECTS, 1);
	return o;
}

void server_add_failed(struct server *s, uint32_t kind, uint64_t id, struct served *target,
		       int32_t status)
{
	struct served *o;

	/* Over the limit there is not even that: its id is invalid. */
	if (!id || !ledger_fits(&s->ledger, LEDGER_OBJECTS, 1, s->limits.objects))
		return;
	o = server_add(s, kind, id, s->api->failed(s, kind, target, status));
	if (!o->native)
		o->error = status;
}

void server_remove(struct server *s, struct served *o)
{
	struct served **at;

	if (o->id & REMOTE_ROOT)
		return;
	for (at = chain(s, o->id); *at != o; at = &(*at)->next)
		;
	*at = o->next;
	ledger_sub(&s->ledger, LEDGER_OBJECTS, 1);
	ledger_sub(&s->ledger, LEDGER_MEMORY, o->charged);
	if (o->native)
		s->api->release(s, o);
	free(o);
}

void server_remove_children(struct server *s, const struct served *parent)
{
	for (unsigned int i = 0; i < SERVER_CHAINS; i++) {
		struct served *o = s->objects[i];

		while (o) {
			if (o->parent != parent && o->within != parent) {
				o = o->next;
				continue;
			}
			o->parent = NULL;
			server_remove(s, o);
			/* Others of the chain may have gone with it. */
			o = s->objects[i];
		}
	}
}

uint64_t server_root(struct server *s, uint32_t kind, void *native)
{
	unsigned int i;

	if (!native)
		return 0;
	for (i = 0; i < s->nr_roots; i++)
		if (s->roots[i].native == native && s->roots[i].kind == kind)
			return i | REMOTE_ROOT;
	if (i == SERVER_ROOTS)
		return 0;
	s->roots[i] = (struct served){ .id = i | REMOTE_ROOT, .kind = kind, .native = native };
	s->nr_roots++;
	return i | REMOTE_ROOT;
}

void server_roots(struct server *s, uint32_t kind, void *handles, uint64_t len)
{
	uint8_t *at = handles;

	for (; len >= 8; at += 8, len -= 8) {
		void *native;
		uint64_t id;

		memcpy(&native, at, 8);
		id = server_root(s, kind, native);
		memcpy(at, &id, 8);
	}
}

/* ---- arguments ---- */

void *server_arena(struct server *s, struct request *q, uint64_t len)
{
	struct block *b = NULL;

	if (len <= s->limits.message)
		b = malloc(sizeof(*b) + len);
	if (!b) {
		set_status(q, s->api->errors.memory);
		return NULL;
	}
	b->next = s->arena;
	s->arena = b;
	return b->bytes;
}

static void free_arena(struct server *s)
{
	while (s->arena) {
		struct block *b = s->arena;

		s->arena = b->next;
		free(b);
	}
}

const void *server_in(struct server *s, struct request *q, uint64_t len, bool maybe)
{
	uint64_t there;
	const void *p = take_in(&q->in, &there);

	if (!p) {
		if (!maybe)
			set_status(q, s->api->errors.value);
		return NULL;
	}
	/* The length may depend on an object that is not there. */
	if (there != len) {
		if (!q->status)
			q->in.bad = true;
		return NULL;
	}
	return p;
}

/* Take the part of the shared memory that a word names; one that is not within is bad. */
static void take_shared(struct server *s, struct request *q, uint64_t word, uint64_t len)
{
	uint64_t offset = word & ~REMOTE_SHARED;

	if (q->shared || q->flags & REMOTE_ASIDE || offset >= s->shared_len ||
	    len > s->shared_len - offset)
		q->in.bad = true;
	else
		q->shared = s->shared + offset;
}

const void *server_data(struct server *s, struct request *q, uint64_t len)
{
	uint64_t word = 0;

	if (q->in.end - q->in.at >= 8)
		memcpy(&word, q->in.at, 8);
	if (word == REMOTE_NULL || !(word & REMOTE_SHARED))
		return server_in(s, q, len, false);
	take_shared(s, q, take_u64(&q->in), len);
	return q->shared;
}

bool server_wish(struct server *s, struct request *q, uint64_t len)
{
	uint64_t word = take_u64(&q->in);

	if (word & REMOTE_SHARED)
		take_shared(s, q, word, len);
	return word;
}

char **server_texts(struct server *s, struct request *q, uint64_t nr, size_t **lengths)
{
	char **texts;

	/* Each has a length at least. */
	if (nr > (uint64_t)(q->in.end - q->in.at) / 8) {
		q->in.bad = true;
		return NULL;
	}
	texts = server_arena(s, q, 8 * nr);
	*lengths = server_arena(s, q, 8 * nr);
	if (!texts || !*lengths) {
		q->in.bad = true;
		return NULL;
	}
	for (uint64_t i = 0; i < nr; i++) {
		uint64_t len;
		const void *p = take_in(&q->in, &len);

		texts[i] = p ? server_arena(s, q, len + 1) : NULL;
		if (!texts[i]) {
			q->in.bad = true;
			return NULL;
		}
		memcpy(texts[i], p, len);
		texts[i][len] = '\0';
		(*lengths)[i] = len;
	}
	return texts;
}

bool server_reserve(struct server *s, struct request *q, uint64_t size)
{
	if (!ledger_take(&s->ledger, LEDGER_MEMORY, size, s->limits.memory))
		return false;
	q->reserved += size;
	return true;
}

void server_charge(struct request *q, struct served *o)
{
	o->charged = q->reserved;
	q->reserved = 0;
}

bool server_ready(struct server *s, struct request *q)
{
	(void)s;
	if (q->in.at != q->in.end)
		q->in.bad = true;
	return !q->in.bad && !q->status;
}

/* ---- results ---- */

bool server_room(struct server *s, struct request *q, uint64_t len)
{
	uint64_t size = sat_add(s->payload_len, len);
	uint8_t *p;

	if (size <= s->payload_size)
		return true;
	p = size <= s->limits.message ? realloc(s->payload, size) : NULL;
	if (!p) {
		set_status(q, s->api->errors.memory);
		return false;
	}
	s->payload = p;
	s->payload_size = size;
	return true;
}

void *server_out_data(struct server *s, struct request *q, uint64_t len)
{
	uint64_t room = in_room(len);
	uint8_t *at;

	if (!server_room(s, q, room))
		return NULL;
	at = s->payload + s->payload_len;
	memcpy(at, &len, 8);
	memset(at + 8 + len, 0, room - 8 - len);
	s->payload_len += room;
	return at + 8;
}

void *server_out(struct server *s, struct request *q, uint64_t len)
{
	void *p = server_out_data(s, q, len);

	/* The memory may have been another reply's. */
	return p ? memset(p, 0, len) : NULL;
}

void server_fail(struct request *q, struct served *target, int32_t status)
{
	if (!(q->flags & REMOTE_WAITS) && target && !target->error)
		target->error = status;
}

/* Send, under s->lock. */
static int send_all(struct server *s, const void *head, size_t head_len, const void *p,
		    uint64_t len)
{
	struct iovec iov[] = {
		{ .iov_base = (void *)(uintptr_t)head, .iov_len = head_len },
		{ .iov_base = (void *)(uintptr_t)p, .iov_len = len },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	while (iov[0].iov_len || iov[1].iov_len) {
		ssize_t n = sendmsg(s->fd, &msg, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		ledger_add(&s->ledger, LEDGER_SENT, (uint64_t)n);
		for (int i = 0; i < 2; i++) {
			size_t part = (size_t)n < iov[i].iov_len ? (size_t)n : iov[i].iov_len;

			if (!part)
				continue;
			iov[i].iov_base = (uint8_t *)iov[i].iov_base + part;
			iov[i].iov_len -= part;
			n -= (ssize_t)part;
		}
	}
	return 0;
}

/* Return 1 if a transfer's data are there, its error, or 0 while it goes on. */
static int32_t finished(struct server *s, const struct pending *t)
{
	return t->event ? s->api->finished(s, t->event) : t->status;
}

/* Send what transfers to the application have read, and let go of all that have ended. */
static int send_data(struct server *s)
{
	struct pending **at = &s->pending;
	int ret = 0;

	while (*at && !ret) {
		struct pending *t = *at;
		int32_t done = finished(s, t);
		struct {
			struct remote_reply h;
			uint64_t len;
		} head = {
			.h.type = REMOTE_DATA, .h.seq = t->seq,
			.h.len = 8 + padded(t->len), .len = t->len,
		};

		if (!done) {
			at = &t->next;
			continue;
		}
		if (t->shared || (t->read && done < 0)) {
			head.h.len = 0;
			head.h.status = done < 0 ? done : 0;
			ret = send_all(s, &head.h, sizeof(head.h), NULL, 0);
		} else if (t->read) {
			/* Its memory is padded, too. */
			ret = send_all(s, &head, sizeof(head), t->data, padded(t->len));
		}
		ledger_sub(&s->ledger, LEDGER_PENDING, t->len);
		if (t->event)
			s->api->forget(s, t->event);
		free(t->data);
		*at = t->next;
		free(t);
	}
	if (!s->pending || !*at)
		s->pending_end = at;
	return ret;
}

/* Reply after the data that the application may expect because of the reply. */
static int reply(struct server *s, uint32_t seq, int32_t status, const void *p, uint64_t len)
{
	struct remote_reply h = { .type = REMOTE_REPLY, .seq = seq, .status = status };
	int ret;

	if (!status)
		h.len = len;
	pthread_mutex_lock(&s->lock);
	ledger_add(&s->ledger, LEDGER_REPLIES, 1);
	ret = send_data(s);
	if (!ret)
		ret = send_all(s, &h, sizeof(h), p, h.len);
	pthread_mutex_unlock(&s->lock);
	return ret;
}

/* ---- what goes on beside ---- */

bool server_may_pend(struct server *s, uint64_t len)
{
	bool good;

	/* Those to the application stay until it waits for something, since it reads only then. */
	pthread_mutex_lock(&s->lock);
	while (s->pending && !s->pending->read && !s->pending->shared) {
		struct pending *t = s->pending;

		if (!finished(s, t))
			break;
		ledger_sub(&s->ledger, LEDGER_PENDING, t->len);
		s->api->forget(s, t->event);
		free(t->data);
		s->pending = t->next;
		if (!s->pending)
			s->pending_end = &s->pending;
		free(t);
	}
	good = ledger_fits(&s->ledger, LEDGER_PENDING, len, s->limits.pending);
	pthread_mutex_unlock(&s->lock);
	return good;
}

void server_pend(struct server *s, const struct pending *transfer)
{
	struct pending *t = malloc(sizeof(*t));

	if (!t) {
		complain("no memory for a transfer");
		abort();
	}
	*t = *transfer;
	t->next = NULL;
	pthread_mutex_lock(&s->lock);
	*s->pending_end = t;
	s->pending_end = &t->next;
	ledger_add(&s->ledger, LEDGER_PENDING, t->len);
	pthread_mutex_unlock(&s->lock);
}

static void *work(void *arg)
{
	struct job *j = arg;
	struct server *s = j->s;
	int32_t status = j->wait(j);

	/* If it cannot be sent, the loop finds the end of the connection, too. */
	reply(s, j->seq, status, j->data, j->len);
	free(j->data);
	free(j);
	pthread_mutex_lock(&s->lock);
	if (!--s->nr_jobs)
		pthread_cond_signal(&s->idle);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

int32_t server_start(struct server *s, struct request *q, const struct job *j)
{
	struct job *own = malloc(sizeof(*own));
	pthread_t thread;

	if (!own)
		return s->api->errors.memory;
	*own = *j;
	own->s = s;
	own->seq = q->seq;
	pthread_mutex_lock(&s->lock);
	if (s->nr_jobs == SERVER_JOBS || pthread_create(&thread, NULL, work, own)) {
		pthread_mutex_unlock(&s->lock);
		free(own);
		return s->api->errors.memory;
	}
	s->nr_jobs++;
	pthread_mutex_unlock(&s->lock);
	pthread_detach(thread);
	q->later = true;
	return 0;
}

/* ---- the loop ---- */

/* Keep what the front end has counted. */
static int32_t take_report(struct server *s, struct request *q)
{
	for (unsigned int i = 0; i < LEDGER_REPORTED; i++)
		ledger_set(&s->ledger, LEDGER_REPORT + i, take_u64(&q->in));
	if (q->flags || q->in.at != q->in.end)
		q->in.bad = true;
	return 0;
}

#define ROOM_US		200	/* between two looks at transfers */
#define ROOM_LOOKS	250

/* Wait until a transfer in shared memory has ended: the reply comes with all that have. */
static int32_t make_room(struct server *s, struct request *q)
{
	bool found = false, any = true;

	if (q->flags != REMOTE_WAITS || q->in.at != q->in.end)
		q->in.bad = true;
	for (int i = 0; i < ROOM_LOOKS && any && !found && !q->in.bad; i++) {
		if (i)
			usleep(ROOM_US);
		pthread_mutex_lock(&s->lock);
		any = false;
		for (struct pending *t = s->pending; t && !found; t = t->next) {
			any |= t->shared;
			found = t->shared && finished(s, t);
		}
		pthread_mutex_unlock(&s->lock);
	}
	s->payload_len = 0;
	return 0;
}

/* Have a request served. Return what the call returned; @q->in.bad: no front end sends it. */
static int32_t serve(struct server *s, struct request *q)
{
	int32_t status;

	if (q->function == REMOTE_REPORT)
		return take_report(s, q);
	if (q->function == REMOTE_ROOM)
		return make_room(s, q);
	if (q->function >= s->api->nr_functions || !s->api->functions[q->function].serve ||
	    q->flags & ~(REMOTE_WAITS | REMOTE_ASIDE)) {
		q->in.bad = true;
		return 0;
	}
	s->payload_len = 0;
	ledger_add(&s->ledger, LEDGER_CALLS, 1);
	status = s->api->functions[q->function].serve(s, q);
	ledger_sub(&s->ledger, LEDGER_MEMORY, q->reserved);
	q->reserved = 0;
	/* No command has it: the application that waits for none is told. */
	if (q->shared && !(q->flags & REMOTE_WAITS))
		server_pend(s, &(struct pending){
			.status = status < 0 ? status : -1, .seq = q->seq, .shared = true,
		});
	free_arena(s);
	return status;
}

int32_t back_remoteGroup(struct server *s, struct request *q, uint64_t count, size_t size,
			 size_t nr_steps, const void *list, const void *steps)
{
	const struct request_group group = {
		.count = count, .requests = list, .size = size,
		.steps = steps, .nr_steps = nr_steps,
	}, *g = &group;
	uint8_t *requests = NULL;
	struct remote_request h;
	bool told = false;

	if (q->flags || !group_check(g, q->function))
		q->in.bad = true;
	else
		requests = malloc(g->size);
	if (!requests)
		return s->api->errors.memory;
	memcpy(requests, g->requests, g->size);
	ledger_add(&s->ledger, LEDGER_GROUPS, 1);
	for (uint64_t k = 0; k < g->count && !q->in.bad; k++) {
		unsigned int call = 0;

		for (uint64_t at = 0; at < g->size && !q->in.bad; at += sizeof(h) + h.len, call++) {
			const uint8_t *p = requests + at + sizeof(h);
			struct request one;
			int32_t status;

			memcpy(&h, requests + at, sizeof(h));
			one = (struct request){
				.in = { .at = p, .end = p + h.len },
				.seq = h.seq, .function = h.function,
			};
			ledger_add(&s->ledger, LEDGER_GROUPED, 1);
			status = serve(s, &one);
			q->in.bad = one.in.bad;
			if (status && !told && s->groups_told < GROUPS_TOLD) {
				told = true;
				s->groups_told++;
				complain("call %u of iteration %llu of %llu in a loop: error %d",
					 call + 1, (unsigned long long)k + 1,
					 (unsigned long long)g->count, status);
			}
		}
		group_move(requests, g->steps, g->nr_steps, 1);
	}
	free(requests);
	return 0;
}

static int execute(struct server *s, const struct remote_request *h, const uint8_t *p,
		   void **owned)
{
	struct request q = {
		.in = { .at = p, .end = p + h->len },
		.seq = h->seq, .function = h->function, .flags = h->flags, .owned = owned,
	};
	int32_t status;
	int ret = 0;

	if (h->len % 8)
		return -EPROTO;
	status = serve(s, &q);
	if (q.in.bad)
		return -EPROTO;
	if (h->flags & REMOTE_WAITS && !q.later)
		ret = reply(s, h->seq, status, s->payload, s->payload_len);
	if (s->payload_size > KEEP_PAYLOAD) {
		free(s->payload);
		s->payload = NULL;
		s->payload_size = 0;
	}
	return ret;
}

/* Say that nothing is left to do; a reader that is late misses no more than that. */
static void say_rests(const struct server *s)
{
	ssize_t n = write(s->rests, &s->received, sizeof(s->received));

	(void)n;
}

/* Receive at least @min and at most @max bytes; return their number, 0 at the end. */
static ssize_t receive(struct server *s, void *p, size_t min, size_t max)
{
	size_t len = 0;
	int flags = s->rests ? MSG_DONTWAIT : 0;

	while (len < min) {
		ssize_t n = recv(s->fd, (uint8_t *)p + len, max - len, flags);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN && flags) {
			say_rests(s);
			flags = 0;
			continue;
		}
		if (n < 0)
			return -errno;
		if (!n)
			return len ? -EPROTO : 0;
		len += (size_t)n;
		s->received += (uint64_t)n;
	}
	ledger_add(&s->ledger, LEDGER_RECEIVED, len);
	return (ssize_t)len;
}

/* Share memory, if it cannot become smaller and is not too much. */
static void share(struct server *s, int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *p;

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) || !st.st_size ||
	    (uint64_t)st.st_size > s->limits.pending)
		return;
	p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return;
	s->shared = p;
	s->shared_len = (uint64_t)st.st_size;
}

/* Receive the first message, and what descriptor comes with it. */
static ssize_t receive_hello(struct server *s, struct remote_hello *h)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = h, .iov_len = sizeof(*h) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	const struct cmsghdr *c;
	ssize_t n, more = 0;
	int fd;

	do {
		n = recvmsg(s->fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n ? -errno : 0;
	s->received += (uint64_t)n;
	ledger_add(&s->ledger, LEDGER_RECEIVED, (uint64_t)n);
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(fd))) {
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		share(s, fd);
		close(fd);
	}
	if ((size_t)n < sizeof(*h)) {
		more = receive(s, (uint8_t *)h + n, sizeof(*h) - (size_t)n, sizeof(*h) - (size_t)n);
		if (more <= 0)
			return more ? more : -EPROTO;
	}
	return n + more;
}

static int welcome(struct server *s)
{
	struct remote_welcome w = {
		.magic = REMOTE_MAGIC, .version = REMOTE_VERSION,
		.max_message = s->limits.message,
	};
	struct remote_hello h;
	ssize_t n = receive_hello(s, &h);
	int ret = 0;

	if (n <= 0)
		return n ? (int)n : -ECONNRESET;
	w.shared = s->shared_len;
	w.refused = h.magic != REMOTE_MAGIC || h.version != REMOTE_VERSION;
	if (!w.refused && s->choose)
		ret = s->choose(s, h.api);
	if (ret && ret != -ENOENT)
		return ret;
	if (s->api)
		ledger_set(&s->ledger, LEDGER_API, s->api->number);
	w.refused |= ret || (s->api && (h.api != s->api->number || h.digest != s->api->digest));
	n = send_all(s, &w, sizeof(w), NULL, 0);
	return w.refused ? -EPROTO : (int)n;
}

/* Execute a request that is larger than the buffer, of which @have bytes are at @p. */
static int execute_large(struct server *s, const struct remote_request *h, const uint8_t *p,
			 size_t have)
{
	void *owned = malloc(h->len);
	uint8_t *all = owned;
	ssize_t n;
	int ret;

	if (!all)
		return -ENOMEM;
	memcpy(all, p, have);
	n = receive(s, all + have, h->len - have, h->len - have);
	ret = n > 0 ? execute(s, h, all, &owned) : n ? (int)n : -EPROTO;
	free(owned);
	return ret;
}

static int loop(struct server *s, uint8_t *in)
{
	size_t at = 0, len = 0;
	struct remote_request h;
	ssize_t n;
	int ret = 0;

	while (!ret) {
		if (len - at >= sizeof(h)) {
			memcpy(&h, in + at, sizeof(h));
			if (h.len > s->limits.message)
				return -EPROTO;
			if (h.len <= len - at - sizeof(h)) {
				ret = execute(s, &h, in + at + sizeof(h), NULL);
				at += sizeof(h) + h.len;
				continue;
			}
			if (h.len > IN_SIZE - sizeof(h)) {
				at += sizeof(h);
				ret = execute_large(s, &h, in + at, len - at);
				at = len = 0;
				continue;
			}
		}
		memmove(in, in + at, len - at);
		len -= at;
		at = 0;
		n = receive(s, in + len, 1, IN_SIZE - len);
		if (n <= 0)
			return n || !len ? (int)n : -EPROTO;
		len += (size_t)n;
	}
	return ret;
}

int server_serve(struct server *s)
{
	uint8_t *in = malloc(IN_SIZE);
	int ret;

	if (!in)
		return -ENOMEM;
	s->pending_end = &s->pending;
	if (!s->ledger.own)
		s->ledger.own = &s->ledger.alone;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->idle, NULL);
	ret = welcome(s);
	if (!ret)
		ret = loop(s, in);
	free(in);
	return ret;
}

void server_free(struct server *s)
{
	pthread_mutex_lock(&s->lock);
	while (s->nr_jobs)
		pthread_cond_wait(&s->idle, &s->lock);
	pthread_mutex_unlock(&s->lock);
	while (s->pending) {
		struct pending *t = s->pending;

		s->pending = t->next;
		if (t->event)
			s->api->forget(s, t->event);
		free(t->data);
		free(t);
	}
	if (s->shared)
		munmap(s->shared, s->shared_len);
	for (unsigned int i = 0; i < SERVER_CHAINS; i++)
		while (s->objects[i])
			server_remove(s, s->objects[i]);
	free(s->payload);
	free_arena(s);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->idle);
}
