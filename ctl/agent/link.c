// SPDX-License-Identifier: GPL-2.0-only
/* The agent's connection to the service: vsock or TCP, TLS 1.3, signed frames. */
#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <linux/vm_sockets.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "complain.h"
#include "link.h"
#include "vm_name.h"

#define CONNECT_S	5	/* for a connection and its handshake */
#define PAUSE_MS	500	/* before the second try, doubled each time up to: */
#define PAUSE_MAX_MS	60000
#define REPLAY_TRIES	5	/* another process of the VM may send at the same time */
#define MS		UINT64_C(1000000)

int link_init(struct link *link, const struct conf *conf, int wake)
{
	gnutls_psk_client_credentials_t cred = NULL;
	gnutls_datum_t name = { (unsigned char *)conf->vm, (unsigned int)strlen(conf->vm) };
	gnutls_datum_t key = { link->keys.tls, WIRE_KEY };

	memset(link, 0, sizeof(*link));
	link->conf = conf;
	link->wake = wake;
	link->fd = -1;
	if (wire_keys(conf->key, &link->keys) || gnutls_psk_allocate_client_credentials(&cred) ||
	    gnutls_psk_set_client_credentials2(cred, &name, &key, GNUTLS_PSK_KEY_RAW)) {
		complain("GnuTLS refuses the VM's key");
		if (cred)
			gnutls_psk_free_client_credentials(cred);
		return -1;
	}
	link->cred = cred;
	return 0;
}

void link_close(struct link *link)
{
	if (link->tls)
		gnutls_deinit(link->tls);
	if (link->fd >= 0)
		close(link->fd);
	link->tls = NULL;
	link->fd = -1;
}

void link_free(struct link *link)
{
	link_close(link);
	if (link->cred)
		gnutls_psk_free_client_credentials(link->cred);
	gnutls_memset(&link->keys, 0, sizeof(link->keys));
}

/* ---- waiting ---- */

/* Wait for a descriptor. Return 0, -EINTR for @wake, -ETIMEDOUT. */
static int wait_for(const struct link *link, int fd, short events, uint64_t deadline)
{
	for (;;) {
		struct pollfd p[] = { { .fd = fd, .events = events },
				      { .fd = link->wake, .events = POLLIN } };
		int n = poll(p, 2, poll_ms(deadline));

		if (!n)
			return -ETIMEDOUT;
		if (n > 0)
			return p[1].revents ? -EINTR : 0;
		if (errno != EINTR)
			return -errno;
	}
}

int link_sleep(const struct link *link, unsigned int ms)
{
	int ret = wait_for(link, -1, 0, now_ns() + ms * MS);

	return ret == -ETIMEDOUT ? 0 : ret;
}

/* ---- connecting ---- */

static int connected(struct link *link, int family, const void *to, socklen_t size,
		     uint64_t deadline)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0, ret = 0;
	socklen_t length = sizeof(error);

	if (fd < 0)
		return -errno;
	if (connect(fd, to, size)) {
		ret = errno == EINPROGRESS ? wait_for(link, fd, POLLOUT, deadline) : -errno;
		if (!ret && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length))
			ret = -errno;
		if (!ret)
			ret = -error;
	}
	if (ret) {
		close(fd);
		return ret;
	}
	if (family != AF_VSOCK)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	link->fd = fd;
	return 0;
}

/* "vsock", "vsock:CID" or "vsock:CID:PORT". */
static int connect_vsock(struct link *link, const char *where, uint64_t deadline)
{
	struct sockaddr_vm vm = { .svm_family = AF_VSOCK };
	uint64_t cid = VMADDR_CID_HOST, port = WIRE_PORT;
	char text[128], *at = text, *word;

	snprintf(text, sizeof(text), "%s", where);
	strsep(&at, ":");
	word = at ? strsep(&at, ":") : NULL;
	if ((word && wire_decimal(word, UINT32_MAX, &cid)) ||
	    (at && wire_decimal(at, UINT32_MAX, &port)))
		return -EINVAL;
	vm.svm_cid = (unsigned int)cid;
	vm.svm_port = (unsigned int)port;
	return connected(link, AF_VSOCK, &vm, sizeof(vm), deadline);
}

/* "HOST:PORT" or "[IPv6]:PORT". */
static int connect_tcp(struct link *link, const char *where, uint64_t deadline)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV }, *found;
	const char *colon = strrchr(where, ':');
	char host[128];
	size_t length;
	int ret = -EINVAL;

	if (!colon || colon == where)
		return -EINVAL;
	length = (size_t)(colon - where);
	if (*where == '[' && where[length - 1] == ']') {
		where++;
		length -= 2;
	}
	snprintf(host, sizeof(host), "%.*s", (int)length, where);
	if (getaddrinfo(host, colon + 1, &hints, &found))
		return -EHOSTUNREACH;
	for (const struct addrinfo *ai = found; ai && ret && ret != -EINTR; ai = ai->ai_next)
		ret = connected(link, ai->ai_family, ai->ai_addr, ai->ai_addrlen, deadline);
	freeaddrinfo(found);
	return ret;
}

static int shake_hands(struct link *link, uint64_t deadline)
{
	int ret, error;

	do {
		error = gnutls_handshake(link->tls);
		if (!error)
			return 0;
		ret = 0;
		if (error == GNUTLS_E_AGAIN)
			ret = wait_for(link, link->fd, gnutls_record_get_direction(link->tls) ?
						       POLLOUT : POLLIN, deadline);
	} while (!ret && !gnutls_error_is_fatal(error));
	if (ret)
		return ret;
	snprintf(link->why, sizeof(link->why), "TLS: %s", gnutls_strerror(error));
	return error == GNUTLS_E_FATAL_ALERT_RECEIVED ? -EACCES : -EPROTO;
}

static int secure(struct link *link, uint64_t deadline)
{
	gnutls_session_t tls;

	if (gnutls_init(&tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL |
			      GNUTLS_NO_TICKETS))
		return -ENOMEM;
	link->tls = tls;
	if (gnutls_priority_set_direct(tls, WIRE_PRIORITY, NULL) ||
	    gnutls_credentials_set(tls, GNUTLS_CRD_PSK, link->cred))
		return -EPROTO;
	gnutls_transport_set_int(tls, link->fd);
	gnutls_handshake_set_timeout(tls, 0);
	return shake_hands(link, deadline);
}

static int connect_one(struct link *link, const char *where)
{
	uint64_t deadline = now_ns() + CONNECT_S * NSEC;
	int ret;

	*link->why = '\0';
	ret = strncmp(where, "vsock", 5) ? connect_tcp(link, where, deadline) :
					   connect_vsock(link, where, deadline);
	if (!ret)
		ret = secure(link, deadline);
	if (!ret)
		return 0;
	link_close(link);
	if (ret == -EACCES)
		snprintf(link->why, sizeof(link->why), "the service at %s refuses the key of the VM '%s': an administrator of the pool makes a new one",
			 where, link->conf->vm);
	else if (!*link->why)
		snprintf(link->why, sizeof(link->why), "no connection to the service at %s: %s",
			 where, strerror(-ret));
	return ret;
}

static int open_link(struct link *link)
{
	int ret = -EINVAL;

	for (unsigned int i = 0; i < link->conf->nr_services && ret && ret != -EINTR; i++)
		ret = connect_one(link, link->conf->services[i]);
	return ret;
}

/* ---- frames ---- */

/* Return GnuTLS's number or -errno. */
static int meet(const struct link *link, ssize_t n, uint64_t deadline)
{
	if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
		return wait_for(link, link->fd, gnutls_record_get_direction(link->tls) ? POLLOUT :
											  POLLIN,
				deadline);
	return n == 0 ? -ECONNRESET : n < 0 ? -EPROTO : (int)n;
}

static int send_all(struct link *link, size_t size, uint64_t deadline)
{
	for (size_t sent = 0; sent < size;) {
		int n = meet(link, gnutls_record_send(link->tls, link->out.frame + sent,
						      size - sent), deadline);

		if (n < 0)
			return n;
		sent += (size_t)n;
	}
	return 0;
}

static int read_all(struct link *link, size_t from, size_t to, uint64_t deadline)
{
	while (from < to) {
		int n = meet(link, gnutls_record_recv(link->tls, link->in + from, to - from),
			     deadline);

		if (n < 0)
			return n;
		from += (size_t)n;
	}
	return 0;
}

static int read_answer(struct link *link, uint64_t deadline)
{
	struct wire_header h;
	int ret = read_all(link, 0, WIRE_HEADER, deadline);

	if (ret)
		return ret;
	if (wire_header(link->in, &h) || h.seq != link->seq)
		return -EBADMSG;
	ret = read_all(link, WIRE_HEADER, WIRE_HEADER + h.length, deadline);
	if (ret)
		return ret;
	if (!wire_signed(link->in, link->keys.sign, wire_mac(link->out.frame)) ||
	    wire_parse(link->in + WIRE_HEADER, h.length, &link->answer) ||
	    (strcmp(link->answer.verb, "ok") && strcmp(link->answer.verb, "error")))
		return -EBADMSG;
	return 0;
}

/* Microseconds since 1970, or one more than the last: it grows over restarts without a file. */
static uint64_t next_seq(const struct link *link)
{
	uint64_t now = clock_ns(CLOCK_REALTIME) / 1000;

	return now > link->seq ? now : link->seq + 1;
}

static int exchange(struct link *link, unsigned int seconds)
{
	size_t size;
	int ret = link->tls ? 0 : open_link(link);

	if (ret)
		return ret;
	link->seq = next_seq(link);
	size = wire_end(&link->out, link->keys.sign, link->seq, NULL);
	if (!size) {
		snprintf(link->why, sizeof(link->why), "the message does not fit: shorten its words");
		return -E2BIG;
	}
	ret = send_all(link, size, now_ns() + CONNECT_S * NSEC);
	if (!ret)
		ret = read_answer(link, now_ns() + seconds * NSEC);
	if (ret) {
		link_close(link);
		snprintf(link->why, sizeof(link->why), "no answer of the service: %s",
			 strerror(-ret));
	}
	return ret;
}

/* Whether the answer refuses the sequence; takes the last one that the service has seen. */
static bool replayed(struct link *link)
{
	uint64_t last = 0;

	if (strcmp(link_code(link), "replayed"))
		return false;
	/* The service proved the VM's key; a number of it is still bounded. */
	if (!wire_number(&link->answer, "last", WIRE_SEQ_MAX / 2, &last) && last > link->seq)
		link->seq = last;
	return true;
}

int link_ask(struct link *link, unsigned int seconds)
{
	bool reused = link->tls;
	int ret = exchange(link, seconds);

	/* The service closes connections that are idle for long. */
	if (ret && ret != -EINTR && ret != -E2BIG && ret != -ETIMEDOUT && reused)
		ret = exchange(link, seconds);
	for (int i = 0; !ret && replayed(link) && i < REPLAY_TRIES; i++)
		ret = exchange(link, seconds);
	return ret;
}

/* Half of a pause is drawn, so that the VMs of a host do not come all at once. */
static unsigned int drawn(unsigned int pause)
{
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = (uint32_t)now_ns();
	return pause / 2 + random % (pause / 2 + 1);
}

int link_ask_long(struct link *link, unsigned int seconds, unsigned int patience, bool say)
{
	uint64_t end = now_ns() + patience * NSEC;
	unsigned int pause = PAUSE_MS;

	for (;;) {
		int ret = link_ask(link, seconds), slept;
		bool slower = !ret && !strcmp(link_code(link), "slower");

		if ((!ret && !slower) || ret == -EINTR || ret == -E2BIG || ret == -EACCES)
			return ret;
		if (patience && now_ns() >= end)
			return ret;
		if (say && !slower)
			complain("%s; trying again", link->why);
		say = false;
		slept = link_sleep(link, drawn(pause));
		if (slept)
			return slept;
		pause = pause * 2 < PAUSE_MAX_MS ? pause * 2 : PAUSE_MAX_MS;
	}
}

const char *link_code(const struct link *link)
{
	const char *code = strcmp(link->answer.verb, "error") ? "" : wire_get(&link->answer, "code");

	return code ? code : "unknown";
}

bool link_ok(struct link *link)
{
	const char *text = wire_get(&link->answer, "text");

	if (!strcmp(link->answer.verb, "ok"))
		return true;
	if (!text)
		text = "the service refuses, and gives no reason";
	text_clean(text, strlen(text), link->why, sizeof(link->why));
	return false;
}
