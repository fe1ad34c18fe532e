// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz what clients send to mgpud's socket.  First byte of the input: whether the
 * client may change settings (bit 0) and in how large pieces its bytes arrive; the
 * rest: the bytes.  Whatever they are, each answer is one JSON object on a line,
 * settings are valid after each request, and only a client that may change them
 * does.
 *
 * server.c is part of this file, since the code to reach is behind its connections.
 */
#include "../../ctl/mgpud/server/server.c"

#include "fuzz_settings.h"

static struct config config;
static unsigned int changes;
static struct server server;

static struct json_object *on_state(void *arg)
{
	struct json_object *o = json_object_new_object();

	(void)arg;
	json_object_object_add(o, "allocator",
			       json_object_new_string(config.set.allocator->name));
	return o;
}

static int on_change(void *arg, const struct peer *peer, enum server_change what,
		     struct json_object *value, uint64_t *ticket,
		     struct settings_error *err)
{
	int ret = what == SERVER_SET ? table_json(&config, NULL, value, err) : 0;

	(void)arg;
	(void)peer;
	(void)ticket;
	changes++;
	/* a refusal has a reason; the key is the client's, and may be "" */
	if (ret)
		FUZZ_ASSERT(err->text[0]);
	return ret;
}

static const struct server_ops on = { .name = "mgpud", .state = on_state, .change = on_change };

/* Read what the server sent; returns the number of lines. */
static size_t drain(int fd)
{
	static char text[1 << 18];
	size_t lines = 0, len = 0;
	char *line, *end;
	ssize_t n;

	while ((n = recv(fd, text + len, sizeof(text) - 1 - len, MSG_DONTWAIT)) > 0)
		len += (size_t)n;
	FUZZ_ASSERT(len < sizeof(text) - 1);
	text[len] = '\0';
	for (line = text; (end = strchr(line, '\n')); line = end + 1) {
		struct json_object *o, *ok;

		*end = '\0';
		o = json_tokener_parse(line);
		FUZZ_ASSERT(json_object_is_type(o, json_type_object));
		if (!json_object_object_get_ex(o, "event", &ok)) {
			FUZZ_ASSERT(json_object_object_get_ex(o, "ok", &ok));
			lines++;
		}
		json_object_put(o);
	}
	FUZZ_ASSERT(!*line);
	return lines;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t piece, lines = 0, answers = 0, at = 1;
	struct client *c = &server.clients[0];
	int fd[2];

	if (!size)
		return 0;
	if (!server.ops) {
		server.ops = &on;
		server.epoll[ROOT] = epoll_create1(EPOLL_CLOEXEC);
		server.epoll[OTHERS] = epoll_create1(EPOLL_CLOEXEC);
		for (size_t i = 0; i < SERVER_CLIENTS; i++)
			server.clients[i].fd = -1;
	}
	config_default(&config);
	changes = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd))
		abort();
	c->fd = fd[0];
	c->rank = data[0] & 1 ? ACCESS_CHANGE : ACCESS_READ;
	FUZZ_ASSERT(!add_client(&server, c));

	for (piece = 1 + (size_t)(data[0] >> 1) * 64; at < size && c->fd >= 0; at += piece) {
		size_t n = size - at < piece ? size - at : piece;

		if (send(fd[1], data + at, n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)n)
			break;
		for (size_t i = 0; i < n; i++)
			lines += data[at + i] == '\n';
		/* a line stays behind where the one before it had to be sent first */
		for (size_t i = 0; i <= n && c->fd >= 0; i++) {
			size_t had = c->in_len;

			serve(&server, c, EPOLLIN);
			answers += drain(fd[1]);
			if (c->in_len == had)
				break;
		}
		FUZZ_ASSERT(c->in_len <= sizeof(c->in));
		check_settings(&config);
	}
	/* one answer a line, and one more for a line that is too long */
	FUZZ_ASSERT(answers <= lines + 1);
	FUZZ_ASSERT((data[0] & 1) || !changes);
	if (c->fd >= 0 && c->watch) {
		server_publish(&server, true);
		if (c->fd >= 0)
			serve(&server, c, 0);
		FUZZ_ASSERT(c->fd < 0 || drain(fd[1]) == 1);
	}
	drop(c);
	close(fd[1]);
	config_free(&config);
	return 0;
}

#define UUID_SET \
	"{\"request\":\"set\",\"settings\":{\"sla\":{\"01234567-89AB-cdef-0123-456789abcdef\":{\"floor\":30,\"ceiling\":null}}}}\n"

static void seeds(const char *dir)
{
	static const char *const lines[] = {
		"{\"request\":\"get\"}\n{\"request\":\"get\"}\n",
		"{\"request\":\"watch\"}\n",
		"{\"request\":\"set\",\"settings\":{\"allocator\":\"fea\",\"period_ms\":500,\"iterations\":20}}\n",
		"{\"request\":\"set\",\"settings\":{\"headroom\":1.5,\"beta\":3,\"lambda\":-0.6}}\n",
		"{\"request\":\"set\",\"settings\":{\"sla\":{\"default\":{\"floor\":30,\"ceiling\":60}}}}\n",
		UUID_SET
		"{\"request\":\"set\",\"settings\":{\"sla\":{\"01234567-89ab-cdef-0123-456789abcdef\":null,\"default\":null}}}\n",
		"{\"request\":\"set\",\"settings\":{\"preempt\":\"fcfs\",\"preempt_cost\":\"2.5,1\",\"preempt_min_gain\":0.1}}\n",
		"{\"request\":\"set\",\"settings\":{\"preempt_decay_compute\":0.9,\"preempt_decay_memory\":0.8,\"preempt_class_threshold\":0.5,\"preempt_starve_ms\":100,\"preempt_cost\":\"fit\"}}\n",
		"{\"request\":\"none\"}\n[]\n{\n\n",
		"{\"request\":\"reset\"}\n{\"request\":\"reset\",\"keys\":[\"beta\",\"sla\"]}\n",
	};
	char text[512], name[16];

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		/* whole or in pieces; every third one from a client that may not set */
		snprintf(text, sizeof(text), "%c%s", (i & 1 ? 2 : 0xfe) | (i % 3 != 2), lines[i]);
		snprintf(name, sizeof(name), "%zu", i);
		fuzz_seed(dir, name, text, strlen(text));
	}
}

FUZZ_SEEDS(seeds)
