// SPDX-License-Identifier: GPL-2.0-only
/*
 * The front end's connection.
 *
 * remote.lock covers what is sent: requests are put into remote.out, and sent when an answer is
 * needed or FLUSH_AT bytes are there.  Those of a loop that are as predicted are taken out again,
 * and remote.predict has them: what is put after them has them sent first.  remote.in_lock covers
 * who waits for what; one of the threads that wait reads the connection, for all of them.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "clock.h"
#include "ledger.h"
#include "marks.h"
#include "predict.h"
#include "shared.h"
#include "transport.h"

#define OUT_SIZE	(64u << 10)
#define FLUSH_AT	(16u << 10)
#define IN_SIZE		(64u << 10)
#define NR_LIKE		4096u		/* keys, a power of two */
#define NR_FIND		1024u		/* chains of objects, a power of two */
#define GROUP_AT	128u		/* requests of a group: the server executes it meanwhile */
#define REST_NS		1000000		/* a loop that is silent for so long has left */
#define SHARE_AT	(128u << 10)	/* bytes of a transfer in shared memory */
#define SHARE_SIZE	(128ull << 20)	/* of the memory */
#define REPORT_NS	100000000	/* between two reports of what was counted */
#define STAY_GOOD	8u		/* iterations as predicted that make up for the rest */

_Thread_local struct remote_place remote_place __attribute__((tls_model("initial-exec")));
struct remote_layer remote_layer;

/**
 * struct late - memory that data go to which the server sends later
 * @seq: number of the request
 * @dst: the memory
 * @len: its bytes
 * @shape: how they lie there
 * @region: part of the shared memory that the transfer has, with REMOTE_SHARED; 0 for none
 * @next: the one before
 */
struct late {
	uint32_t seq;
	void *dst;
	uint64_t len;
	struct shape shape;
	uint64_t region;
	struct late *next;
};

static struct {
	const struct remote_api *api;
	atomic_bool up;
	enum remote_mode mode;
	uint64_t max_message;

	pthread_mutex_t lock;
	struct transport *t;
	uint32_t seq;
	size_t out_len;
	uint8_t out[OUT_SIZE];
	uint64_t like[NR_LIKE];
	unsigned int nr_like;
	struct remote_counts counts;
	uint64_t report[LEDGER_REPORTED];	/* what the server is told of */
	bool reports;				/* it has changed */
	uint64_t reported_ns;			/* when that was done last */

	/* The loop that the program is in, or NULL, and what follows of it. */
	struct mark_loop *loop;
	const void *first;			/* site that an iteration begins with */
	uint64_t stay;				/* iterations as predicted */
	struct predict predict;
	/* The request that is being put. */
	bool in_loop;
	bool fresh;				/* it is the first of its call */
	size_t begun;				/* where it begins in @out */

	pthread_cond_t held;			/* @predict has requests */
	bool resting;				/* a thread waits for that */
	bool rests;				/* there is such a thread */

	pthread_mutex_t in_lock;
	pthread_cond_t in_cond;
	bool reading;
	struct call *calls;
	struct late *lates;
	const void *arriving;		/* where data go to at this moment */
	size_t in_at, in_len;
	uint8_t in[IN_SIZE];

	pthread_mutex_t find_lock;
	struct object *find[NR_FIND];
	atomic_ullong next_id;
} remote = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.held = PTHREAD_COND_INITIALIZER,
	.in_lock = PTHREAD_MUTEX_INITIALIZER,
	.in_cond = PTHREAD_COND_INITIALIZER,
	.find_lock = PTHREAD_MUTEX_INITIALIZER,
};

static void complain(const char *what, const char *why)
{
	fprintf(stderr, "mgpu: %s: %s\n", what, why);
}

/* ---- sending and receiving ---- */

/* The connection is no longer: threads that read or write it see its end. */
static void lose(const char *why)
{
	if (atomic_exchange(&remote.up, false)) {
		complain("the connection to the GPU's server is lost", why);
		remote.t->ops->shut(remote.t);
	}
}

static bool send_all(const void *p, size_t len)
{
	const uint8_t *at = p;

	while (len) {
		ssize_t n = remote.t->ops->send(remote.t, at, len);

		if (n <= 0)
			return false;
		remote.counts.bytes += (uint64_t)n;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

static void flush(void)
{
	if (remote.out_len && atomic_load(&remote.up) && !send_all(remote.out, remote.out_len))
		lose(strerror(errno));
	remote.out_len = 0;
}

static void put_raw(const void *p, size_t len)
{
	if (len > OUT_SIZE - remote.out_len)
		flush();
	if (len > OUT_SIZE) {
		if (atomic_load(&remote.up) && !send_all(p, len))
			lose(strerror(errno));
		return;
	}
	memcpy(remote.out + remote.out_len, p, len);
	remote.out_len += len;
}

/* Count what the server is told of. */
static void note(enum ledger_number which)
{
	remote.report[which - LEDGER_REPORT]++;
	remote.reports = true;
}

/* Send what there is, and after a while what was counted, too. */
static void flush_calls(void)
{
	const struct remote_request h = {
		.len = sizeof(remote.report), .function = REMOTE_REPORT,
	};
	uint64_t now = remote.reports && remote.out_len ? now_ns() : 0;

	if (now && (!remote.reported_ns || now - remote.reported_ns >= REPORT_NS)) {
		remote.reported_ns = now;
		remote.reports = false;
		put_raw(&h, sizeof(h));
		put_raw(remote.report, sizeof(remote.report));
	}
	flush();
}

/* Receive @len bytes; large ones without a copy. */
static bool receive(void *p, size_t len)
{
	uint8_t *at = p;

	while (len) {
		size_t n = remote.in_len - remote.in_at;
		ssize_t got;

		if (n) {
			n = n < len ? n : len;
			memcpy(at, remote.in + remote.in_at, n);
			remote.in_at += n;
		} else {
			bool direct = len >= IN_SIZE;

			got = remote.t->ops->receive(remote.t, direct ? at : remote.in,
						     direct ? len : IN_SIZE);
			if (got <= 0) {
				lose(got ? strerror(errno) : "it has ended");
				return false;
			}
			n = direct ? (size_t)got : 0;
			if (!direct) {
				remote.in_at = 0;
				remote.in_len = (size_t)got;
			}
		}
		at += n;
		len -= n;
	}
	return true;
}

/* Receive an "in" of @len bytes, of which @left are in the message, to @dst. */
static bool receive_into(uint8_t *dst, uint64_t len, const struct shape *shape, uint64_t *left)
{
	uint64_t there, pad = 0;

	if (*left < 8 || !receive(&there, 8))
		return false;
	*left -= 8;
	if (there != len || padded(len) > *left)
		return false;
	*left -= padded(len);
	if (!shape->row)
		return receive(dst, len) && receive(&pad, padded(len) - len);
	for (uint64_t k = 0; k < shape->slices; k++)
		for (uint64_t j = 0; j < shape->rows; j++)
			if (!receive(dst + shape->offset + k * shape->slice_pitch +
				     j * shape->row_pitch, shape->row))
				return false;
	return receive(&pad, padded(len) - len);
}

static struct late *find_late(uint32_t seq)
{
	for (struct late **at = &remote.lates; *at; at = &(*at)->next) {
		struct late *l = *at;

		if (l->seq == seq) {
			*at = l->next;
			return l;
		}
	}
	return NULL;
}

/* Free it, and what it has of the shared memory. */
static void free_late(struct late *l)
{
	if (l && l->region)
		shared_put(l->region & ~REMOTE_SHARED);
	free(l);
}

/* Copy from memory that @shape describes to memory without gaps, or the other way. */
static void copy_shape(void *to, const void *from, uint64_t len, const struct shape *shape,
		       bool to_is_shaped)
{
	uint64_t at, done = 0;

	if (!shape->row) {
		memcpy(to, from, len);
		return;
	}
	for (uint64_t k = 0; k < shape->slices; k++) {
		for (uint64_t j = 0; j < shape->rows; j++, done += shape->row) {
			at = shape->offset + k * shape->slice_pitch + j * shape->row_pitch;
			memcpy((uint8_t *)to + (to_is_shaped ? at : done),
			       (const uint8_t *)from + (to_is_shaped ? done : at), shape->row);
		}
	}
}

static bool discard(uint64_t len)
{
	uint64_t word;

	for (; len >= 8; len -= 8)
		if (!receive(&word, 8))
			return false;
	return !len;
}

static bool receive_data(const struct remote_reply *h)
{
	uint64_t left = h->len;
	struct late *l;
	bool good;

	pthread_mutex_lock(&remote.in_lock);
	l = find_late(h->seq);
	remote.arriving = l ? l->dst : NULL;
	pthread_mutex_unlock(&remote.in_lock);
	if (!l)
		return false;
	/* After an error there are no data, and the program learns of it by the queue. */
	if (h->status || l->region)
		good = !left;
	else if (!l->dst)
		good = discard(left);
	else
		good = receive_into(l->dst, l->len, &l->shape, &left) && !left;
	if (!h->status && l->region && l->dst)
		copy_shape(l->dst, shared_at(l->region & ~REMOTE_SHARED), l->len, &l->shape, true);
	free_late(l);
	pthread_mutex_lock(&remote.in_lock);
	remote.arriving = NULL;
	pthread_cond_broadcast(&remote.in_cond);
	pthread_mutex_unlock(&remote.in_lock);
	return good;
}

static bool receive_reply(const struct remote_reply *h, struct call *c)
{
	uint64_t left = h->len;
	uint8_t *p = (uint8_t *)c->space;

	c->status = h->status;
	if (h->status)
		return !left;
	if (c->into && !receive_into(c->into, c->into_len, &c->shape, &left))
		return false;
	if (left > sizeof(c->space)) {
		c->memory = left <= remote.max_message ? malloc(left) : NULL;
		p = c->memory;
	}
	if (!p || !receive(p, left))
		return false;
	c->reply = (struct reader){ .at = p, .end = p + left };
	return true;
}

/* Receive a message, as the only thread that does. Return the call that it answers, or NULL. */
static struct call *receive_message(void)
{
	struct remote_reply h;
	struct call **at, *c = NULL;
	bool good;

	if (!receive(&h, sizeof(h)))
		return NULL;
	if (h.type == REMOTE_DATA) {
		good = receive_data(&h);
	} else {
		pthread_mutex_lock(&remote.in_lock);
		for (at = &remote.calls; *at && (*at)->seq != h.seq; at = &(*at)->next)
			;
		c = *at;
		if (c) {
			*at = c->next;
			c->taken = true;
		}
		pthread_mutex_unlock(&remote.in_lock);
		good = c && h.type == REMOTE_REPLY && receive_reply(&h, c);
	}
	if (!good)
		lose("it sent what was not expected");
	if (!good && c)
		c->status = remote.api->lost;
	return c;
}

bool remote_forget(const void *dst)
{
	bool found = false;

	pthread_mutex_lock(&remote.in_lock);
	/* Data that arrive now are there first. */
	while (remote.arriving == dst)
		pthread_cond_wait(&remote.in_cond, &remote.in_lock);
	for (struct late *l = remote.lates; l; l = l->next) {
		if (l->dst == dst) {
			l->dst = NULL;
			found = true;
		}
	}
	pthread_mutex_unlock(&remote.in_lock);
	return found;
}

static void wait_for(struct call *c)
{
	struct call *answered;

	pthread_mutex_lock(&remote.in_lock);
	/* A call whose reply is being read ends with that, also when the connection is lost. */
	while (!c->done && (c->taken || atomic_load(&remote.up))) {
		if (remote.reading) {
			pthread_cond_wait(&remote.in_cond, &remote.in_lock);
			continue;
		}
		remote.reading = true;
		pthread_mutex_unlock(&remote.in_lock);
		answered = receive_message();
		pthread_mutex_lock(&remote.in_lock);
		if (answered)
			answered->done = true;
		remote.reading = false;
		pthread_cond_broadcast(&remote.in_cond);
	}
	if (!c->done) {
		for (struct call **at = &remote.calls; *at; at = &(*at)->next) {
			if (*at == c) {
				*at = c->next;
				break;
			}
		}
		c->status = remote.api->lost;
	}
	if (c->status && (c->late || c->region))
		free_late(find_late(c->seq));
	pthread_mutex_unlock(&remote.in_lock);
}

/* ---- loops ---- */

static void put_word(uint64_t v)
{
	put_raw(&v, sizeof(v));
}

/* Put what was as predicted: whole iterations as a group, if that is less, and the rest. */
static void put_held(void)
{
	struct predict *p = &remote.predict;
	struct remote_request h = { .function = remote.api->group };
	struct request_group g;

	if (!predict_holds(p))
		return;
	predict_group(p, &g);
	h.len = 5 * 8 + g.size + g.nr_steps * sizeof(*g.steps);
	if (g.count * g.size <= sizeof(h) + h.len || h.len > remote.max_message) {
		for (; p->count; p->count--) {
			put_raw(p->requests, p->size);
			group_move(p->requests, p->steps, p->nr_steps, 1);
		}
	} else {
		put_raw(&h, sizeof(h));
		put_word(g.count);
		put_word(g.size);
		put_word(g.nr_steps);
		put_word(g.size);
		put_raw(g.requests, g.size);
		put_word(g.nr_steps * sizeof(*g.steps));
		put_raw(g.steps, g.nr_steps * sizeof(*g.steps));
		remote.counts.groups++;
		remote.loop->groups++;
		remote.counts.grouped += g.count * p->nr_calls;
		predict_sent(p);
	}
	put_raw(p->requests, p->at);
}

static void give_up(const struct mark_loop *loop)
{
	note(LEDGER_GIVEN_UP);
	marks_say(loop,
		  "no longer deferred: %u times it was left, or a call differed, before %u iterations were as predicted; at last at 0x%llx",
		  MARK_SHORT, STAY_GOOD,
		  (unsigned long long)((uintptr_t)remote_place.site - loop->base));
}

/* The program has left the loop, or does there what was not predicted. */
static void leave_loop(void)
{
	if (!remote.loop)
		return;
	put_held();
	if (remote.stay >= STAY_GOOD)
		remote.loop->short_stays = 0;
	else if (++remote.loop->short_stays == MARK_SHORT)
		give_up(remote.loop);
	remote.loop = NULL;
	predict_reset(&remote.predict);
}

static void enter_loop(struct mark_loop *loop)
{
	if (!loop->seen && loop->class - 1 < 3)
		note(LEDGER_CLASS_1 + loop->class - 1);
	loop->seen = true;
	remote.loop = loop;
	remote.first = remote_place.site;
	remote.stay = 0;
}

/* Send what a loop has left, if it was the last that the program does for long. */
static void *rest(void *arg)
{
	const struct timespec pause = { .tv_nsec = REST_NS };
	uint64_t seen;

	(void)arg;
	pthread_mutex_lock(&remote.lock);
	for (;;) {
		while (!predict_holds(&remote.predict)) {
			remote.resting = true;
			pthread_cond_wait(&remote.held, &remote.lock);
			remote.resting = false;
		}
		seen = remote.counts.requests;
		pthread_mutex_unlock(&remote.lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&remote.lock);
		if (seen == remote.counts.requests && predict_holds(&remote.predict)) {
			leave_loop();
			flush_calls();
		}
	}
	return NULL;
}

int32_t remote_status(void)
{
	return atomic_load(&remote.up) ? 0 : remote.api->lost;
}

bool remote_thread(void *(*run)(void *))
{
	sigset_t all, before;
	pthread_t thread;
	bool started;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	started = !pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (started)
		pthread_detach(thread);
	return started;
}

/* Have the thread look after what @predict holds. Return false if there is none. */
static bool have_rest(void)
{
	if (!remote.rests)
		remote.rests = remote_thread(rest);
	if (remote.resting)
		pthread_cond_signal(&remote.held);
	return remote.rests;
}

/* Begin a request of a loop, or send what a loop has left before another one. */
static void begin_request(const struct call *c, uint64_t len)
{
	struct mark_loop *loop = NULL;

	remote.fresh = remote_place.fresh;
	remote_place.fresh = false;
	remote.in_loop = false;
	if (remote.mode != REMOTE_DEFERRED)
		return;
	len += sizeof(struct remote_request);
	marks_tell(remote_place.site);
	if (!c->how && len <= GROUP_BYTES)
		loop = marks_find(remote_place.site);
	if (remote.loop && remote.loop != loop)
		leave_loop();
	if (!loop)
		return;
	if (!remote.loop)
		enter_loop(loop);
	/* The request is to lie in one piece. */
	if (len > OUT_SIZE - remote.out_len)
		flush();
	remote.in_loop = true;
	remote.begun = remote.out_len;
}

/* Take a request of a loop that is as predicted out again. Return whether it was. */
static bool take_request(void)
{
	static uint8_t request[GROUP_BYTES] __attribute__((aligned(8)));
	struct predict *p = &remote.predict;
	struct mark_loop *loop = remote.loop;
	size_t len = remote.out_len - remote.begun;
	bool again = remote.fresh && remote_place.site == remote.first;

	switch (predict_request(p, remote.out + remote.begun, len, again)) {
	case PREDICTED_KEPT:
		return false;
	case PREDICTED_AS_IS:
		break;
	case PREDICTED_WRONG:
		note(LEDGER_WRONG);
		loop->wrong++;
		memcpy(request, remote.out + remote.begun, len);
		remote.out_len = remote.begun;
		leave_loop();
		put_raw(request, len);
		/* An iteration may as well begin here. */
		if (loop->short_stays < MARK_SHORT) {
			enter_loop(loop);
			predict_request(p, request, len, true);
		}
		return false;
	}
	remote.out_len = remote.begun;
	if (!p->call) {
		remote.stay++;
		loop->iterations++;
		if (p->count * p->nr_calls >= GROUP_AT) {
			put_held();
			flush_calls();
			return true;
		}
	}
	if ((!remote.rests || remote.resting) && !have_rest())
		leave_loop();
	return true;
}

bool remote_in_loop(void)
{
	return remote.mode == REMOTE_DEFERRED && marks_find(remote_place.site);
}

/* ---- calls ---- */

static bool is_like(uint64_t key)
{
	for (unsigned int i = key % NR_LIKE; remote.like[i]; i = (i + 1) % NR_LIKE)
		if (remote.like[i] == key)
			return true;
	return false;
}

static void keep_like(uint64_t key)
{
	unsigned int i;

	if (remote.nr_like >= NR_LIKE / 2) {
		memset(remote.like, 0, sizeof(remote.like));
		remote.nr_like = 0;
	}
	for (i = key % NR_LIKE; remote.like[i]; i = (i + 1) % NR_LIKE)
		if (remote.like[i] == key)
			return;
	remote.like[i] = key;
	remote.nr_like++;
}

/* Expect a reply, and data. */
static bool expect(struct call *c)
{
	struct late *l = NULL;

	if (!c->late && !c->region && !(c->how & CALL_WAIT))
		return true;
	if (c->late || c->region) {
		l = malloc(sizeof(*l));
		if (!l)
			return false;
		*l = (struct late){
			.seq = c->seq, .dst = c->late, .len = c->late_len, .shape = c->shape,
			.region = c->region,
		};
	}
	pthread_mutex_lock(&remote.in_lock);
	if (l) {
		l->next = remote.lates;
		remote.lates = l;
	}
	if (c->how & CALL_WAIT) {
		c->next = remote.calls;
		remote.calls = c;
	}
	pthread_mutex_unlock(&remote.in_lock);
	return true;
}

static void give_up_region(struct call *c)
{
	if (c->region)
		shared_put(c->region & ~REMOTE_SHARED);
	c->region = 0;
}

/* Have a region for a transfer; wait for one if others have all. */
static bool share(struct call *c, uint64_t len)
{
	uint64_t offset;
	struct call room;

	/* A transfer in shared memory is no part of a loop's prediction. */
	if (len < SHARE_AT || len > shared_size() || c->how & CALL_ASIDE)
		return false;
	offset = shared_take(len);
	if (offset == SHARED_NONE) {
		call_init(&room, CALL_WAIT);
		if (!call_begin(&room, REMOTE_ROOM, 0))
			call_end(&room);
		call_done(&room);
		offset = shared_take(len);
	}
	if (offset == SHARED_NONE)
		return false;
	c->region = offset | REMOTE_SHARED;
	c->how |= c->how & CALL_WAIT ? 0 : CALL_FLUSH;
	return true;
}

void call_share(struct call *c, const void *p, uint64_t len)
{
	if (share(c, len))
		copy_shape(shared_at(c->region & ~REMOTE_SHARED), p, len, &c->shape, false);
}

void call_share_out(struct call *c)
{
	if (!share(c, c->into ? c->into_len : c->late_len))
		return;
	/* The data are in memory before the reply comes. */
	if (c->into) {
		c->late = c->into;
		c->late_len = c->into_len;
		c->into = NULL;
	}
}

void put_data(struct call *c, const void *p, uint64_t len)
{
	if (c->region)
		put_u64(c, c->region);
	else if (c->shape.row)
		put_shape(c, p, &c->shape);
	else
		put_in(c, p, len);
}

int32_t call_begin(struct call *c, uint16_t function, uint64_t len)
{
	struct remote_request h = { .len = len, .function = function };
	int32_t status;

	if (len > remote.max_message) {
		give_up_region(c);
		return remote.api->no_memory;
	}
	pthread_mutex_lock(&remote.lock);
	if (remote.mode == REMOTE_ONE || (c->like && !is_like(c->like)))
		c->how |= CALL_WAIT;
	c->seq = h.seq = ++remote.seq;
	status = remote_status();
	if (!status && !expect(c))
		status = remote.api->no_memory;
	if (status) {
		pthread_mutex_unlock(&remote.lock);
		give_up_region(c);
		return status;
	}
	begin_request(c, len);
	remote.counts.requests++;
	remote.counts.waits += c->how & CALL_WAIT ? 1 : 0;
	if (c->how & CALL_WAIT)
		h.flags |= REMOTE_WAITS | (c->how & CALL_ASIDE ? REMOTE_ASIDE : 0);
	put_raw(&h, sizeof(h));
	return 0;
}

void put_u64(struct call *c, uint64_t v)
{
	(void)c;
	put_raw(&v, sizeof(v));
}

void put_in(struct call *c, const void *p, uint64_t len)
{
	const uint64_t pad = 0;

	put_u64(c, p ? len : REMOTE_NULL);
	if (p) {
		put_raw(p, len);
		put_raw(&pad, padded(len) - len);
	}
}

void put_shape(struct call *c, const void *p, const struct shape *shape)
{
	const uint8_t *at = (const uint8_t *)p + shape->offset;
	uint64_t len = shape->row * shape->rows * shape->slices, pad = 0;

	put_u64(c, len);
	for (uint64_t k = 0; k < shape->slices; k++)
		for (uint64_t j = 0; j < shape->rows; j++)
			put_raw(at + k * shape->slice_pitch + j * shape->row_pitch, shape->row);
	put_raw(&pad, padded(len) - len);
}

void put_objects(struct call *c, const void *handles, uint64_t nr)
{
	struct object *const *o = handles;

	put_u64(c, o ? 8 * nr : REMOTE_NULL);
	for (uint64_t i = 0; o && i < nr; i++)
		put_object(c, o[i]);
}

int32_t call_end(struct call *c)
{
	if ((!remote.in_loop || !take_request()) && (c->how || remote.out_len >= FLUSH_AT))
		flush_calls();
	pthread_mutex_unlock(&remote.lock);
	if (!(c->how & CALL_WAIT))
		return 0;
	wait_for(c);
	if (!c->status && c->like) {
		pthread_mutex_lock(&remote.lock);
		keep_like(c->like);
		pthread_mutex_unlock(&remote.lock);
	}
	return c->status;
}

void call_out(struct call *c, void *p, uint64_t len)
{
	const void *from;
	uint64_t there;

	if (!p || c->status)
		return;
	from = take_in(&c->reply, &there);
	if (!from || there != len)
		c->reply.bad = true;
	else
		memcpy(p, from, len);
}

void call_out_roots(struct call *c, void **p, uint64_t nr, unsigned int kind)
{
	const uint8_t *from;
	uint64_t there, id;

	if (!p || c->status)
		return;
	from = take_in(&c->reply, &there);
	if (!from || there != sat_mul(nr, 8)) {
		c->reply.bad = true;
		return;
	}
	for (uint64_t i = 0; i < nr; i++) {
		memcpy(&id, from + 8 * i, 8);
		if (!id)
			continue;
		p[i] = object_root(kind, id);
		if (!p[i]) {
			c->status = remote.api->no_memory;
			return;
		}
	}
}

int32_t call_done(struct call *c)
{
	free(c->memory);
	c->memory = NULL;
	if (!c->status && (c->how & CALL_WAIT) &&
	    (c->reply.bad || c->reply.at != c->reply.end)) {
		lose("a reply is not as agreed");
		c->status = remote.api->lost;
	}
	return c->status;
}

uint64_t like_bytes(uint64_t key, const void *p, uint64_t len)
{
	const uint8_t *at = p;
	uint64_t v;

	key = like_u64(key, p ? len : REMOTE_NULL);
	for (; p && len; at += v, len -= v) {
		uint64_t word = 0;

		v = len < 8 ? len : 8;
		memcpy(&word, at, v);
		key = like_u64(key, word);
	}
	return key;
}

uint64_t like_objects(uint64_t key, const void *handles, uint64_t nr)
{
	struct object *const *o = handles;

	key = like_u64(key, o ? nr : REMOTE_NULL);
	for (uint64_t i = 0; o && i < nr; i++)
		key = like_object(key, o[i]);
	return key;
}

/* ---- objects ---- */

static struct object **chain(const void *address)
{
	return &remote.find[like_u64(0, (uintptr_t)address) % NR_FIND];
}

static struct object *make(unsigned int kind, uint64_t id, struct object *parent)
{
	struct object *o = calloc(1, sizeof(*o)), **at;

	if (!o)
		return NULL;
	o->dispatch = remote.api->dispatch;
	o->magic = OBJECT_MAGIC;
	o->kind = kind;
	o->id = id;
	atomic_init(&o->refs, 1);
	o->parent = parent;
	if (parent)
		object_retain(parent);
	at = chain(o);
	o->next = *at;
	*at = o;
	return o;
}

struct object *object_new(unsigned int kind, struct object *parent)
{
	struct object *o;

	pthread_mutex_lock(&remote.find_lock);
	o = make(kind, atomic_fetch_add(&remote.next_id, 1) + 1, parent);
	pthread_mutex_unlock(&remote.find_lock);
	return o;
}

struct object *object_root(unsigned int kind, uint64_t id)
{
	struct object *o;

	pthread_mutex_lock(&remote.find_lock);
	for (unsigned int i = 0; i < NR_FIND; i++)
		for (o = remote.find[i]; o; o = o->next)
			if (o->id == id && o->kind == kind)
				goto out;
	o = make(kind, id, NULL);
out:
	pthread_mutex_unlock(&remote.find_lock);
	return o;
}

bool object_keep_list(struct object *o, const void *list, size_t nr)
{
	if (!nr)
		return true;
	o->list = malloc(nr * sizeof(*o->list));
	if (!o->list)
		return false;
	memcpy(o->list, list, nr * sizeof(*o->list));
	o->nr_list = nr;
	return true;
}

struct object *object_above(struct object *o, unsigned int kind)
{
	while (o && o->kind != kind)
		o = o->parent;
	return o;
}

struct object *object_find(const void *address)
{
	struct object *o;

	pthread_mutex_lock(&remote.find_lock);
	for (o = *chain(address); o && o != address; o = o->next)
		;
	pthread_mutex_unlock(&remote.find_lock);
	return o;
}

static void unlink_object(struct object *o)
{
	struct object **at;

	pthread_mutex_lock(&remote.find_lock);
	for (at = chain(o); *at != o; at = &(*at)->next)
		;
	*at = o->next;
	pthread_mutex_unlock(&remote.find_lock);
}

void object_drop(struct object *o)
{
	if (!o)
		return;
	unlink_object(o);
	if (o->parent)
		object_release(o->parent);
	o->magic = 0;
	free(o->list);
	free(o->own);
	free(o);
}

void object_retain(struct object *o)
{
	atomic_fetch_add(&o->refs, 1);
}

void object_release(struct object *o)
{
	struct call c;

	if (o->id & REMOTE_ROOT || atomic_fetch_sub(&o->refs, 1) != 1)
		return;
	if (remote.api->gone)
		remote.api->gone(o);
	call_init(&c, remote.api->waits & 1u << o->kind ? CALL_WAIT : CALL_DEFER);
	if (!call_begin(&c, remote.api->release[o->kind], 8)) {
		put_u64(&c, o->id);
		call_end(&c);
		call_done(&c);
	}
	object_drop(o);
}

/* ---- the connection ---- */

/*
 * The server's process belongs to the parent: it is not to outlive the parent because a child has
 * the socket, too.  Any thread may have held a lock.
 */
static void in_child(void)
{
	if (!remote.t)
		return;
	remote.t->ops->close(remote.t);
	remote.t = NULL;
	shared_in_child();
	atomic_store(&remote.up, false);
	remote.out_len = 0;
	remote.loop = NULL;
	remote.rests = remote.resting = false;
	predict_reset(&remote.predict);
	remote.calls = NULL;
	remote.reading = false;
	pthread_mutex_init(&remote.lock, NULL);
	pthread_mutex_init(&remote.in_lock, NULL);
	pthread_mutex_init(&remote.find_lock, NULL);
	pthread_cond_init(&remote.in_cond, NULL);
	pthread_cond_init(&remote.held, NULL);
}

/* Send the first message, and memory to be shared if the transport carries files. */
static bool send_hello(const struct remote_hello *hello)
{
	const char *text = getenv("MGPU_REMOTE_SHARED");
	uint64_t size = text ? strtoull(text, NULL, 10) << 20 : SHARE_SIZE;
	const struct transport_ops *ops = remote.t->ops;
	int fd = size && ops->send_file ? shared_open(size) : -1;
	ssize_t n = -1;

	if (fd >= 0) {
		n = ops->send_file(remote.t, hello, sizeof(*hello), fd);
		close(fd);
		if (n < 0)
			shared_close();
		else
			remote.counts.bytes += (uint64_t)n;
	}
	n = n < 0 ? 0 : n;
	return send_all((const uint8_t *)hello + n, sizeof(*hello) - (size_t)n);
}

/* Speak with the server at the other end of a transport, which is the connection's. */
static int open_on(const struct remote_api *api, struct transport *t, enum remote_mode mode)
{
	const struct remote_hello hello = {
		.magic = REMOTE_MAGIC, .version = REMOTE_VERSION,
		.api = api->number, .digest = api->digest,
	};
	static atomic_bool forks;
	struct remote_welcome welcome;
	int ret = 0;

	remote.t = t;
	remote.in_at = remote.in_len = 0;
	remote.api = api;
	remote.mode = mode;
	remote.counts = (struct remote_counts){ 0 };
	memset(remote.report, 0, sizeof(remote.report));
	remote.report[LEDGER_MODE - LEDGER_REPORT] = (uint64_t)mode + 1;
	remote.reports = true;
	remote.reported_ns = 0;
	remote.nr_like = 0;
	memset(remote.like, 0, sizeof(remote.like));
	if (!send_hello(&hello) || !receive(&welcome, sizeof(welcome)))
		ret = -ECONNRESET;
	else if (welcome.magic != REMOTE_MAGIC || welcome.version != REMOTE_VERSION ||
		 welcome.refused)
		ret = -EPROTO;
	if (ret) {
		t->ops->close(t);
		remote.t = NULL;
		return ret;
	}
	remote.max_message = welcome.max_message;
	if (!welcome.shared)
		shared_close();
	atomic_store(&remote.up, true);
	if (!atomic_exchange(&forks, true))
		pthread_atfork(NULL, NULL, in_child);
	return 0;
}

int remote_open(const struct remote_api *api, int fd, enum remote_mode mode)
{
	struct transport *t = transport_socket(fd);

	return t ? open_on(api, t, mode) : -ENOMEM;
}

/* Return what follows a prefix, or NULL. */
static const char *behind(const char *text, const char *prefix)
{
	size_t len = strlen(prefix);

	return strncmp(text, prefix, len) ? NULL : text + len;
}

/* Connect to what $MGPU_REMOTE names, or without it to what there is. */
static int reach(struct transport **t, const char *where)
{
	const char *rest;

	if (!where)
		return transport_vgpu(t, NULL) ? transport_unix(t, REMOTE_SOCKET) : 0;
	if (!strcmp(where, "vgpu"))
		return transport_vgpu(t, NULL);
	rest = behind(where, "vgpu:");
	if (rest)
		return transport_vgpu(t, rest);
	rest = behind(where, "vsock:");
	if (rest)
		return transport_vsock(t, rest);
	rest = behind(where, "unix:");
	return transport_unix(t, rest ? rest : where);
}

static const char *why(int err)
{
	switch (err) {
	case -ENAMETOOLONG:
		return "the name of the socket is too long";
	case -EOPNOTSUPP:
		return "the vGPU has no remoted OpenCL: start mgpu-renderd with --remote";
	case -ECONNRESET:
		return "the host starts no process for this program: mgpu-renderd says why";
	default:
		return strerror(-err);
	}
}

int remote_connect(const struct remote_api *api)
{
	const char *where = getenv("MGPU_REMOTE"), *mode = getenv("MGPU_REMOTE_MODE");
	static const char *const modes[] = {
		[REMOTE_ONE] = "one", [REMOTE_BATCHED] = "batched", [REMOTE_DEFERRED] = "deferred",
	};
	enum remote_mode how = REMOTE_BATCHED;
	struct transport *t;
	bool known = !mode;
	int ret;

	if (where && !strcmp(where, "off"))
		return -ENOENT;
	for (unsigned int i = 0; mode && i < sizeof(modes) / sizeof(*modes); i++) {
		if (!strcmp(mode, modes[i])) {
			how = i;
			known = true;
		}
	}
	if (!known)
		complain("MGPU_REMOTE_MODE is not one, batched or deferred, but", mode);
	ret = reach(&t, where);
	if (ret) {
		if (where)
			complain(where, why(ret));
		return ret;
	}
	ret = open_on(api, t, how);
	if (!ret && how == REMOTE_DEFERRED)
		marks_load(api->library, remote_layer.within);
	if (ret)
		complain(where ? where : "the GPU of another process", ret == -EPROTO ?
			 "the server and this library are not of the same version" :
			 "the server does not take this program");
	return ret;
}

void remote_close(void)
{
	struct object *o;

	atomic_store(&remote.up, false);
	if (remote.t)
		remote.t->ops->close(remote.t);
	remote.t = NULL;
	pthread_mutex_lock(&remote.lock);
	remote.out_len = 0;
	remote.loop = NULL;
	predict_reset(&remote.predict);
	pthread_mutex_unlock(&remote.lock);
	while (remote.lates)
		free_late(find_late(remote.lates->seq));
	shared_close();
	for (unsigned int i = 0; i < NR_FIND; i++) {
		while (remote.find[i]) {
			o = remote.find[i];
			remote.find[i] = o->next;
			free(o->list);
			free(o->own);
			free(o);
		}
	}
}

/* Say at the program's end what the connection was used for, if that is asked for. */
__attribute__((destructor)) static void say_counts(void)
{
	const struct remote_counts *c = &remote.counts;

	if (remote.t)
		marks_tell_all();
	if (remote.t && getenv("MGPU_REMOTE_COUNTS"))
		fprintf(stderr, "mgpu: requests=%llu waits=%llu bytes=%llu groups=%llu grouped=%llu\n",
			(unsigned long long)c->requests, (unsigned long long)c->waits,
			(unsigned long long)c->bytes, (unsigned long long)c->groups,
			(unsigned long long)c->grouped);
}

void remote_count(struct remote_counts *counts)
{
	pthread_mutex_lock(&remote.lock);
	*counts = remote.counts;
	pthread_mutex_unlock(&remote.lock);
}

void remote_outside(const char *name, atomic_bool *said)
{
	if (!atomic_exchange(said, true))
		complain(name, "this call is not remoted");
}
