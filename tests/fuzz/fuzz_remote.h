/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fuzz the server of a remoted API with requests: function, flags, number of words, then as many
 * words of arguments.
 */
#ifndef FUZZ_REMOTE_H
#define FUZZ_REMOTE_H

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "server.h"

#define SHARED	4096u	/* bytes of the shared memory */

static const uint8_t *in;	/* what is still to come */
static size_t in_len;

/* Socket calls of the server. */
ssize_t __wrap_recv(int fd, void *p, size_t len, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);

ssize_t __wrap_recv(int fd, void *p, size_t len, int flags)
{
	(void)fd;
	(void)flags;
	len = len < in_len ? len : in_len;
	memcpy(p, in, len);
	in += len;
	in_len -= len;
	return (ssize_t)len;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	msg->msg_controllen = 0;
	return __wrap_recv(fd, msg->msg_iov->iov_base, msg->msg_iov->iov_len, flags);
}

/* All bytes are read: a sanitizer sees those that are not there. */
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t len = 0;

	(void)fd;
	(void)flags;
	for (size_t i = 0; i < msg->msg_iovlen; i++) {
		const volatile uint8_t *p = msg->msg_iov[i].iov_base;

		for (size_t k = 0; k < msg->msg_iov[i].iov_len; k++)
			(void)p[k];
		len += (ssize_t)msg->msg_iov[i].iov_len;
	}
	FUZZ_ASSERT(len % 8 == 0);
	return len;
}

/* Make the stream that the input describes. */
static size_t fuzz_stream(uint8_t *to, const struct remote_hello *hello, const uint8_t *data,
			  size_t size)
{
	struct remote_request h = { 0 };
	size_t len = sizeof(*hello);

	memcpy(to, hello, len);
	while (size >= 4) {
		h.function = data[0] == 0xff ? REMOTE_REPORT : data[0] == 0xfe ? REMOTE_ROOM :
			data[0];
		h.flags = data[1] & 3;
		h.seq++;
		h.len = 8ull * (data[2] | data[3] << 8);
		data += 4;
		size -= 4;
		if (h.len > size)
			h.len = size & ~7ull;
		memcpy(to + len, &h, sizeof(h));
		memcpy(to + len + sizeof(h), data, h.len);
		len += sizeof(h) + h.len;
		data += h.len;
		size -= h.len;
	}
	return len;
}

static uint64_t fuzz_has(const struct server *s, enum ledger_number which)
{
	return ledger_get(s->ledger.own, which);
}

static bool fuzz_is_object(const struct server *s, const struct served *o)
{
	const struct served *other;

	for (unsigned int i = 0; i < SERVER_CHAINS; i++)
		for (other = s->objects[i]; other; other = other->next)
			if (other == o)
				return true;
	return false;
}

/* An object's parent lives at least as long as the object. */
static void fuzz_check_parents(const struct server *s)
{
	const struct served *o;

	for (unsigned int i = 0; i < SERVER_CHAINS; i++)
		for (o = s->objects[i]; o; o = o->next)
			FUZZ_ASSERT(!o->parent || fuzz_is_object(s, o->parent));
}

/* Serve an application until the input ends; a raw one is what comes through the socket. */
static void fuzz_serve(const struct server_api *api, void *native,
		       const struct remote_hello *hello, bool raw, const uint8_t *data, size_t size)
{
	static uint8_t buffer[8u << 16];
	struct server *s = calloc(1, sizeof(*s));

	FUZZ_ASSERT(s);
	in = raw ? data : buffer;
	in_len = raw ? size : fuzz_stream(buffer, hello, data, size);
	s->api = api;
	s->native = native;
	s->fd = -1;
	s->limits = (struct limits){
		.memory = 1u << 20, .objects = 64, .message = 1u << 16, .pending = 1u << 16,
	};
	/* The page behind it is not mapped: a read beyond the end is a fault. */
	s->shared = mmap(NULL, 2 * SHARED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	FUZZ_ASSERT(s->shared != MAP_FAILED && !munmap(s->shared + SHARED, SHARED));
	s->shared_len = SHARED;
	server_serve(s);
	FUZZ_ASSERT(fuzz_has(s, LEDGER_OBJECTS) <= s->limits.objects);
	FUZZ_ASSERT(fuzz_has(s, LEDGER_MEMORY) <= s->limits.memory);
	FUZZ_ASSERT(fuzz_has(s, LEDGER_PENDING) <= s->limits.pending);
	fuzz_check_parents(s);
	server_free(s);
	FUZZ_ASSERT(!fuzz_has(s, LEDGER_OBJECTS) && !fuzz_has(s, LEDGER_MEMORY));
	free(s);
}

/* ---- seeds ---- */

static uint8_t seed[1u << 16];
static size_t seed_len;

static void request(uint16_t function, uint8_t flags, const uint64_t *words, size_t nr)
{
	const uint8_t head[4] = { (uint8_t)function, flags, (uint8_t)nr, (uint8_t)(nr >> 8) };

	memcpy(seed + seed_len, head, sizeof(head));
	memcpy(seed + seed_len + sizeof(head), words, 8 * nr);
	seed_len += sizeof(head) + 8 * nr;
}

#define REQUEST(function, flags, ...)							\
	request(CALL_##function, flags, (const uint64_t[]){ __VA_ARGS__ },		\
		sizeof((const uint64_t[]){ __VA_ARGS__ }) / 8)

#endif /* FUZZ_REMOTE_H */
