// SPDX-License-Identifier: GPL-2.0-only
/* The local socket. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <json-c/json.h>

#include "clock.h"
#include "config/fail.h"
#include "server/budget.h"
#include "mgpud_client.h"
#include "server/server.h"

#define TEXT(number)	TEXT_OF(number)
#define TEXT_OF(text)	#text

#define LOST "{\"version\":" TEXT(MGPU_JSON_VERSION) ",\"event\":\"lost\"}\n"
#define FULL "{\"ok\":false,\"error\":\"%s has too many clients; close one first\",\"key\":\"request\"}\n"

#define BURST_NS	20000000	/* work at once after a time without requests */
#define QUANTUM_NS	1000000		/* work at once while there are always requests */
/* While the work for others rests, let in few: root may be among those that wait. */
#define TICK_NS		20000000
#define TICK_ACCEPTS	8
#define ACCEPTS		16		/* connections accepted per turn otherwise */

/* Sources of the outer epoll; the first two are also indices of budgets. */
enum source {
	ROOT,			/* clients of root and mgpud's own user */
	OTHERS,			/* clients of other users */
	LISTEN,
	TIMER,			/* a rest ends */
	SOURCES,
};

/* Text that several answers share. */
struct text {
	unsigned int refs;
	size_t len;
	char data[];
};

/**
 * struct client - a connection
 * @fd: socket, -1 if the entry is free
 * @peer: process at the other end
 * @rank: what it may do
 * @source: ROOT or OTHERS
 * @want: events that epoll reports
 * @used: last activity, in server turns
 * @seen: state that was sent last, by struct server's @seq
 * @ticket: the answer waits for server_done(); 0: it does not
 * @done: server_done() was called
 * @warning: what the answer says then, NULL for nothing
 * @watch: the client gets the state of each period
 * @ended: the client sends no more requests
 * @in: @in_len bytes, of requests that are incomplete or not answered yet
 * @head: first part of the output, NULL for none
 * @body: second part, NULL for none
 * @out: third part, NULL for none
 * @sent: bytes of all three parts that are sent
 * @events: bytes of events in @out
 * @lost: events were dropped for lack of room
 */
struct client {
	int fd;
	struct peer peer;
	enum access_rank rank;
	enum source source;
	uint32_t want;
	uint64_t used;
	uint64_t seen;
	uint64_t ticket;
	bool done;
	char *warning;
	bool watch;
	bool ended;
	char in[SERVER_LINE_MAX];
	size_t in_len;
	char *head;
	size_t head_len;
	struct text *body;
	char *out;
	size_t out_len;
	size_t sent;
	size_t events;
	bool lost;
};

/**
 * struct server - the socket and its clients
 * @outer: epoll of the sources, for the caller
 * @epoll: epolls of the clients of ROOT and OTHERS
 * @listen: socket for connections
 * @timer: ends a rest
 * @lock: file that keeps a second mgpud out
 * @on: sources that @outer reports
 * @armed: @timer runs
 * @budget: time for the clients of ROOT and OTHERS
 * @charged_ns: CPU time of this thread up to which the work is charged, ns
 * @path: path of the socket
 * @access: users of the socket
 * @turn: number of calls of server_run()
 * @seq: number of the period, from 1
 * @state: members of the state as text; NULL: not made since it changed
 */
struct server {
	int outer, epoll[2], listen, timer, lock;
	bool on[SOURCES];
	bool armed;
	struct budget budget[2];
	uint64_t charged_ns;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	struct access access;
	const struct server_ops *ops;
	void *arg;
	uint64_t turn;
	uint64_t seq;
	struct text *state;
	struct client clients[SERVER_CLIENTS];
};

/* ---- opening ---- */

/* Create only the last folder of the path, as /run/mgpu. */
static int make_folder(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *folder;
	int ret = 0;

	if (!slash || slash == path)
		return 0;
	folder = strndup(path, (size_t)(slash - path));
	if (!folder)
		return -ENOMEM;
	if (mkdir(folder, 0755) && errno != EEXIST)
		ret = -errno;
	free(folder);
	return ret;
}

/*
 * The holder of the lock is the only mgpud of this path. The kernel releases the lock
 * when the holder ends.
 */
static int take_lock(struct server *s, char *why, size_t len)
{
	char name[sizeof(s->path) + 8], pid[16] = "";
	ssize_t n;

	snprintf(name, sizeof(name), "%s.lock", s->path);
	s->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (s->lock < 0)
		return fail(why, len, -errno, "cannot open %s: %s", name,
			    strerror(errno));
	if (flock(s->lock, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK)
			return fail(why, len, -errno, "cannot lock %s: %s", name,
				    strerror(errno));
		n = read(s->lock, pid, sizeof(pid) - 1);
		if (n > 0)
			pid[strcspn(pid, "\n")] = '\0';
		return fail(why, len, -EBUSY,
			    "another %s (process %s) serves %s; stop it first, or choose another --socket",
			    s->ops->name, pid[0] ? pid : "unknown", s->path);
	}
	snprintf(pid, sizeof(pid), "%d\n", getpid());
	if (ftruncate(s->lock, 0) || write(s->lock, pid, strlen(pid)) < 0)
		return fail(why, len, -errno, "cannot write %s: %s", name,
			    strerror(errno));
	return 0;
}

static int start_listening(struct server *s, char *why, size_t len)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat st;

	strcpy(addr.sun_path, s->path);
	if (!lstat(s->path, &st)) {
		if (!S_ISSOCK(st.st_mode))
			return fail(why, len, -EEXIST,
				    "%s exists and is not a socket; remove it, or choose another --socket",
				    s->path);
		unlink(s->path);
	}
	s->listen = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (s->listen < 0)
		return fail(why, len, -errno, "cannot make a socket: %s",
			    strerror(errno));
	if (bind(s->listen, (struct sockaddr *)&addr, sizeof(addr)))
		return fail(why, len, -errno, "cannot bind %s: %s", s->path,
			    strerror(errno));
	/* server_access() lets others in */
	if (chmod(s->path, 0600) || listen(s->listen, SERVER_CLIENTS))
		return fail(why, len, -errno, "cannot listen on %s: %s", s->path,
			    strerror(errno));
	return 0;
}

/* Have @outer report a source, or not. */
static int switch_source(struct server *s, enum source which, int fd, bool on)
{
	struct epoll_event ev = {
		.events = on ? EPOLLIN : 0, .data = { .u32 = which },
	};

	if (s->on[which] == on)
		return 0;
	s->on[which] = on;
	return epoll_ctl(s->outer, EPOLL_CTL_MOD, fd, &ev) ? -errno : 0;
}

static int add_source(struct server *s, enum source which, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data = { .u32 = which } };

	s->on[which] = true;
	return fd < 0 || epoll_ctl(s->outer, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int open_epolls(struct server *s)
{
	static const unsigned int part[] = {
		[ROOT] = SERVER_ROOT_PART, [OTHERS] = SERVER_PART,
	};
	uint64_t now = now_ns();
	int ret = 0;

	s->outer = epoll_create1(EPOLL_CLOEXEC);
	if (s->outer < 0)
		return -errno;
	for (int i = ROOT; i <= OTHERS && !ret; i++) {
		budget_init(&s->budget[i], part[i], BURST_NS, QUANTUM_NS, now);
		s->epoll[i] = epoll_create1(EPOLL_CLOEXEC);
		ret = add_source(s, (enum source)i, s->epoll[i]);
	}
	s->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (!ret)
		ret = add_source(s, LISTEN, s->listen);
	if (!ret)
		ret = add_source(s, TIMER, s->timer);
	return ret;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void free_server(struct server *s)
{
	close_fd(s->listen);
	close_fd(s->timer);
	close_fd(s->epoll[ROOT]);
	close_fd(s->epoll[OTHERS]);
	close_fd(s->outer);
	close_fd(s->lock);
	free(s);
}

int server_open(struct server **server, const char *path,
		const struct server_ops *ops, void *arg, char *why, size_t len)
{
	struct server *s;
	int ret;

	if (strlen(path) >= sizeof(s->path))
		return fail(why, len, -ENAMETOOLONG,
			    "the socket's path is longer than %zu bytes: %s",
			    sizeof(s->path) - 1, path);
	s = calloc(1, sizeof(*s));
	if (!s)
		return fail(why, len, -ENOMEM, "out of memory");
	s->outer = s->epoll[ROOT] = s->epoll[OTHERS] = s->listen = s->timer = s->lock = -1;
	strcpy(s->path, path);
	s->ops = ops;
	s->arg = arg;
	s->seq = 1;
	for (size_t i = 0; i < SERVER_CLIENTS; i++)
		s->clients[i].fd = -1;

	ret = make_folder(path);
	if (ret) {
		fail(why, len, ret, "cannot make the folder of %s: %s", path,
		     strerror(-ret));
		goto err;
	}
	ret = take_lock(s, why, len);
	if (!ret)
		ret = start_listening(s, why, len);
	if (ret)
		goto err;
	ret = open_epolls(s);
	if (ret) {
		fail(why, len, ret, "cannot watch %s: %s", path, strerror(-ret));
		goto err;
	}
	*server = s;
	return 0;
err:
	if (s->listen >= 0)
		unlink(s->path);
	free_server(s);
	return ret;
}

static void put_text(struct text *text)
{
	if (text && !--text->refs)
		free(text);
}

/* All output is sent. */
static void drop_output(struct client *c)
{
	free(c->head);
	put_text(c->body);
	free(c->out);
	c->head = NULL;
	c->body = NULL;
	c->out = NULL;
	c->head_len = c->out_len = c->sent = c->events = 0;
}

static void drop(struct client *c)
{
	close_fd(c->fd);
	drop_output(c);
	free(c->warning);
	memset(c, 0, sizeof(*c));
	c->fd = -1;
}

void server_close(struct server *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < SERVER_CLIENTS; i++)
		drop(&s->clients[i]);
	put_text(s->state);
	/* keep the lock's file: after an unlink two processes could hold a lock */
	unlink(s->path);
	free_server(s);
}

int server_fd(const struct server *s)
{
	return s->outer;
}

/* ---- clients in their epolls ---- */

static void poll_for(struct server *s, struct client *c, uint32_t want)
{
	struct epoll_event ev = { .events = want, .data = { .ptr = c } };

	if (c->want == want)
		return;
	c->want = want;
	if (epoll_ctl(s->epoll[c->source], EPOLL_CTL_MOD, c->fd, &ev))
		drop(c);
}

static bool has_output(const struct client *c)
{
	return c->head || c->body || c->out;
}

static bool has_line(const struct client *c)
{
	return memchr(c->in, '\n', c->in_len) || c->in_len == sizeof(c->in);
}

/* Is there a state that the watcher has not got? */
static bool is_due(const struct server *s, const struct client *c)
{
	return c->watch && c->seen != s->seq;
}

/* Decide what the next turn waits for. */
static void wait_for(struct server *s, struct client *c)
{
	if (has_output(c) || c->done)
		poll_for(s, c, EPOLLOUT);
	else if (c->ticket)
		poll_for(s, c, 0);	/* epoll reports a hang-up nevertheless */
	else if (is_due(s, c) || has_line(c))
		poll_for(s, c, EPOLLOUT);
	else if (!c->ended)
		poll_for(s, c, EPOLLIN);
	else	/* a client that is not polled would report its hang-up forever */
		drop(c);
}

static int add_client(struct server *s, struct client *c)
{
	struct epoll_event ev = { .events = EPOLLIN, .data = { .ptr = c } };

	c->want = EPOLLIN;
	c->source = c->rank == ACCESS_ROOT ? ROOT : OTHERS;
	return epoll_ctl(s->epoll[c->source], EPOLL_CTL_ADD, c->fd, &ev) ? -errno : 0;
}

/* ---- answers ---- */

/* Append to the output; returns false when out of memory. */
static bool append(struct client *c, const char *text, size_t len)
{
	char *out = realloc(c->out, c->out_len + len);

	if (!out)
		return false;
	memcpy(out + c->out_len, text, len);
	c->out = out;
	c->out_len += len;
	return true;
}

static void send_error(struct client *c, const char *key, const char *text)
{
	struct json_object *answer = json_object_new_object();
	const char *line = NULL;
	size_t len;

	if (answer) {
		json_object_object_add(answer, "ok", json_object_new_boolean(false));
		json_object_object_add(answer, "error", json_object_new_string(text));
		json_object_object_add(answer, "key", json_object_new_string(key));
		line = json_object_to_json_string_length(answer, JSON_C_TO_STRING_PLAIN,
							 &len);
	}
	/* out of memory: close the connection */
	if (!line || !append(c, line, len) || !append(c, "\n", 1))
		c->ended = true;
	json_object_put(answer);
}

/* The members of the state as text; NULL when out of memory. */
static struct text *state_text(struct server *s)
{
	struct json_object *state;
	const char *text = NULL;
	size_t len = 0;

	if (s->state)
		return s->state;
	state = s->ops->state(s->arg);
	if (state)
		text = json_object_to_json_string_length(state, JSON_C_TO_STRING_PLAIN, &len);
	if (text && len >= 2)
		s->state = malloc(sizeof(*s->state) + len);
	if (s->state) {
		/* without its braces */
		s->state->refs = 1;
		s->state->len = len - 2;
		memcpy(s->state->data, text + 1, len - 2);
	}
	json_object_put(state);
	return s->state;
}

/* {"ok":true,"warning":"...","state":{fresh members,members}} */
static void send_state(struct server *s, struct client *c, const char *warning)
{
	struct text *state = state_text(s);
	struct json_object *said = NULL;
	char fresh[256] = "";
	int len = -1;

	c->seen = s->seq;
	if (warning[0])
		said = json_object_new_string(warning);
	if (s->ops->fresh)
		s->ops->fresh(s->arg, fresh, sizeof(fresh));
	if (state && (said || !warning[0]))
		len = asprintf(&c->head, "{\"ok\":true,%s%s%s\"state\":{%s%s",
			       said ? "\"warning\":" : "",
			       said ? json_object_to_json_string(said) : "", said ? "," : "",
			       fresh, fresh[0] && state->len ? "," : "");
	json_object_put(said);
	if (len < 0 || !append(c, "}}\n", 3)) {
		if (len < 0)
			c->head = NULL;
		drop_output(c);
		c->ended = true;	/* out of memory: close the connection */
		return;
	}
	c->head_len = (size_t)len;
	c->body = state;
	state->refs++;
}

static struct json_object *parse(const char *line, size_t len)
{
	struct json_tokener *t = json_tokener_new_ex(8);
	struct json_object *obj;

	if (!t)
		return NULL;
	json_tokener_set_flags(t, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	obj = json_tokener_parse_ex(t, line, (int)len + 1);
	if (obj && json_tokener_get_parse_end(t) < len) {
		json_object_put(obj);
		obj = NULL;
	}
	json_tokener_free(t);
	return obj;
}

static void change(struct server *s, struct client *c, enum server_change what,
		   struct json_object *request)
{
	struct settings_error err = { .key = "", .text = "" };
	struct json_object *value = NULL;

	if (c->rank < ACCESS_CHANGE) {
		snprintf(err.text, sizeof(err.text),
			 "only root, the user that %s runs as and members of the socket's group may change settings; use one of these",
			 s->ops->name);
		send_error(c, "request", err.text);
		return;
	}
	if (!json_object_object_get_ex(request, what == SERVER_SET ? "settings" : "keys",
				       &value) && what == SERVER_SET) {
		send_error(c, "settings", "a set request needs \"settings\"");
		return;
	}
	if (s->ops->change(s->arg, &c->peer, what, value, &c->ticket, &err)) {
		c->ticket = 0;
		send_error(c, err.key, err.text);
		return;
	}
	server_publish(s, false);
	if (!c->ticket && !c->done)
		send_state(s, c, err.text);
}

static void answer_line(struct server *s, struct client *c, const char *line, size_t len)
{
	struct json_object *request = parse(line, len), *what = NULL;
	const char *name;

	if (!json_object_is_type(request, json_type_object)) {
		send_error(c, "request", "a request is one JSON object on a line, such as {\"request\":\"get\"}");
		json_object_put(request);
		return;
	}
	if (!json_object_object_get_ex(request, "request", &what) ||
	    !json_object_is_type(what, json_type_string)) {
		send_error(c, "request", "the object needs \"request\": \"get\", \"set\", \"reset\" or \"watch\"");
		json_object_put(request);
		return;
	}
	name = json_object_get_string(what);
	if (!strcmp(name, "get")) {
		send_state(s, c, "");
	} else if (!strcmp(name, "set")) {
		change(s, c, SERVER_SET, request);
	} else if (!strcmp(name, "reset")) {
		change(s, c, SERVER_RESET, request);
	} else if (!strcmp(name, "watch")) {
		c->watch = true;
		send_state(s, c, "");
	} else {
		send_error(c, "request", "unknown request; the requests are get, set, reset and watch");
	}
	json_object_put(request);
}

/* ---- bytes ---- */

/* Fill @iov, which has 3 entries, with the output that is not sent; returns their number. */
static size_t output(const struct client *c, struct iovec *iov)
{
	const struct {
		const char *data;
		size_t len;
	} part[] = {
		{ c->head, c->head_len },
		{ c->body ? c->body->data : NULL, c->body ? c->body->len : 0 },
		{ c->out, c->out_len },
	};
	size_t skip = c->sent, n = 0;

	for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++) {
		if (skip >= part[i].len) {
			skip -= part[i].len;
			continue;
		}
		iov[n].iov_base = (char *)part[i].data + skip;
		iov[n++].iov_len = part[i].len - skip;
		skip = 0;
	}
	return n;
}

/* Send output; returns false if the connection is broken. */
static bool flush(struct client *c)
{
	while (has_output(c)) {
		struct iovec iov[3];
		struct msghdr hdr = { .msg_iov = iov, .msg_iovlen = output(c, iov) };
		ssize_t n = 0;

		if (hdr.msg_iovlen)
			n = sendmsg(c->fd, &hdr, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		c->sent += (size_t)n;
		if (output(c, iov))
			continue;
		drop_output(c);
		if (c->lost) {
			c->lost = false;
			append(c, LOST, strlen(LOST));
		}
	}
	return true;
}

/* Answer the first line. */
static void answer_first(struct server *s, struct client *c)
{
	char *end = memchr(c->in, '\n', c->in_len);
	size_t len;

	if (!end) {
		c->ended = true;
		c->in_len = 0;
		send_error(c, "request", "the request is too long");
		return;
	}
	len = (size_t)(end - c->in);
	*end = '\0';
	answer_line(s, c, c->in, len);
	c->in_len -= len + 1;
	memmove(c->in, end + 1, c->in_len);
}

/* Read once; returns false if the connection is broken. */
static bool receive(struct client *c)
{
	ssize_t n;

	if (c->ended)
		return true;
	n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	if (!n)
		c->ended = true;
	c->in_len += (size_t)n;
	return true;
}

/* A turn of a client: at most one state, or one request. */
static void serve(struct server *s, struct client *c, uint32_t events)
{
	bool good = !(events & EPOLLERR) && flush(c);

	c->used = s->turn;
	/* the peer hung up while it waited for an answer */
	if (c->ticket && events & EPOLLHUP)
		good = false;
	if (good && !has_output(c) && !c->ticket) {
		if (c->done) {
			send_state(s, c, c->warning ? c->warning : "");
			free(c->warning);
			c->warning = NULL;
			c->done = false;
		} else if (is_due(s, c)) {
			send_state(s, c, "");
		} else {
			if (!has_line(c))
				good = receive(c);
			if (good && has_line(c))
				answer_first(s, c);
		}
		good = good && flush(c);
	}
	if (good)
		wait_for(s, c);
	else
		drop(c);
}

/* ---- connections ---- */

static bool is_root(const struct client *c)
{
	return c->rank == ACCESS_ROOT;
}

static unsigned int count_uid(const struct server *s, uid_t uid)
{
	unsigned int n = 0;

	for (size_t i = 0; i < SERVER_CLIENTS; i++)
		n += s->clients[i].fd >= 0 && s->clients[i].peer.uid == uid;
	return n;
}

/*
 * Return an entry for @new; NULL: there is none. A user must not keep others out by
 * staying connected: the newcomer displaces a client of a lower rank, or of its rank and
 * a user that has more connections.
 */
static struct client *free_client(struct server *s, const struct client *new)
{
	unsigned int own = count_uid(s, new->peer.uid);
	struct client *victim = NULL;

	if (!is_root(new) && own >= SERVER_UID_CLIENTS)
		return NULL;
	for (size_t i = 0; i < SERVER_CLIENTS; i++) {
		struct client *c = &s->clients[i];

		if (c->fd < 0)
			return c;
		if (c->rank > new->rank || is_root(c) ||
		    (c->rank == new->rank && count_uid(s, c->peer.uid) <= own))
			continue;
		if (!victim || c->rank < victim->rank ||
		    (c->rank == victim->rank && c->used < victim->used))
			victim = c;
	}
	if (victim)
		drop(victim);
	return victim;
}

/* Charge the CPU time since the last charge to the clients of @source. */
static void charge(struct server *s, enum source source)
{
	uint64_t now = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	budget_charge(&s->budget[source], now - s->charged_ns);
	s->charged_ns = now;
}

static void welcome(struct server *s, unsigned int max)
{
	for (unsigned int i = 0; i < max; i++) {
		struct client new = { .used = s->turn }, *c;

		new.fd = accept4(s->listen, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (new.fd < 0)
			return;
		new.rank = access_peer(&s->access, new.fd, &new.peer);
		c = free_client(s, &new);
		if (c) {
			*c = new;
			if (add_client(s, c))
				drop(c);
		} else {
			char text[160];

			snprintf(text, sizeof(text), FULL, s->ops->name);
			send(new.fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
			close(new.fd);
		}
		charge(s, is_root(&new) ? ROOT : OTHERS);
	}
}

int server_access(struct server *s, const struct access *access, char *why, size_t len)
{
	s->access = *access;
	for (size_t i = 0; i < SERVER_CLIENTS; i++) {
		struct client *c = &s->clients[i];
		struct peer peer;

		if (c->fd < 0 || is_root(c))
			continue;
		c->rank = access_peer(access, c->fd, &peer);
		if (c->rank < ACCESS_CHANGE && !access->everyone)
			drop(c);
	}
	return access_apply(access, s->path, why, len);
}

/* ---- turns ---- */

/* Serve each client that is ready once, as long as there is time. */
static void serve_source(struct server *s, enum source source)
{
	struct epoll_event ev;

	/* epoll reports its clients in turn */
	while (!s->budget[source].rests &&
	       epoll_wait(s->epoll[source], &ev, 1, 0) == 1) {
		struct client *c = ev.data.ptr;

		if (c->used == s->turn)
			break;
		serve(s, c, ev.events);
		charge(s, source);
	}
}

/* Let the sources rest that took their part of the time, and set the time of their end. */
static void settle(struct server *s)
{
	uint64_t now = now_ns(), rest = 0;
	struct itimerspec t = { 0 };

	for (int i = ROOT; i <= OTHERS; i++) {
		bool goes_on = budget_allows(&s->budget[i], now);
		uint64_t ns = budget_rest_ns(&s->budget[i], now) + 1;

		switch_source(s, (enum source)i, s->epoll[i], goes_on);
		if (!goes_on && (!rest || ns < rest))
			rest = ns;
	}
	switch_source(s, LISTEN, s->listen, s->on[OTHERS]);
	if (!s->on[LISTEN] && rest > TICK_NS)
		rest = TICK_NS;
	if (!rest && !s->armed)
		return;
	s->armed = rest;
	t.it_value.tv_sec = (time_t)(rest / NSEC);
	t.it_value.tv_nsec = (long)(rest % NSEC);
	timerfd_settime(s->timer, 0, &t, NULL);
}

void server_run(struct server *s)
{
	struct epoll_event events[SOURCES];
	uint64_t now = now_ns(), ticks;
	bool ready[SOURCES] = { false };
	int n = epoll_wait(s->outer, events, SOURCES, 0);

	for (int i = 0; i < n; i++)
		ready[events[i].data.u32] = true;
	s->charged_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	s->turn++;
	for (int i = ROOT; i <= OTHERS; i++)
		if (budget_allows(&s->budget[i], now) && ready[i])
			serve_source(s, (enum source)i);
	/* while others rest, the timer lets in few */
	if (ready[LISTEN])
		welcome(s, ACCEPTS);
	else if (ready[TIMER])
		welcome(s, TICK_ACCEPTS);
	if (ready[TIMER] && read(s->timer, &ticks, sizeof(ticks)) > 0)
		s->armed = false;
	charge(s, OTHERS);
	settle(s);
}

bool server_rests(const struct server *s)
{
	return s->budget[ROOT].rests || s->budget[OTHERS].rests;
}

/* ---- news ---- */

void server_publish(struct server *s, bool period)
{
	put_text(s->state);
	s->state = NULL;
	if (!period)
		return;
	s->seq++;
	for (size_t i = 0; i < SERVER_CLIENTS; i++) {
		struct client *c = &s->clients[i];

		if (c->fd >= 0 && c->watch)
			wait_for(s, c);
	}
}

void server_event(struct server *s, struct json_object *event)
{
	const char *text = NULL;
	size_t len = 0;
	char *line;

	if (event)
		text = json_object_to_json_string_length(event, JSON_C_TO_STRING_PLAIN, &len);
	line = text ? malloc(len + 1) : NULL;
	if (line) {
		memcpy(line, text, len);
		line[len++] = '\n';
	}
	json_object_put(event);
	for (size_t i = 0; line && i < SERVER_CLIENTS; i++) {
		struct client *c = &s->clients[i];

		if (c->fd < 0 || !c->watch)
			continue;
		if (c->events + len > SERVER_EVENTS_MAX || !append(c, line, len)) {
			c->lost = true;
			continue;
		}
		c->events += len;
		wait_for(s, c);
	}
	free(line);
}

void server_done(struct server *s, uint64_t ticket, const char *warning)
{
	for (size_t i = 0; i < SERVER_CLIENTS; i++) {
		struct client *c = &s->clients[i];

		if (c->fd < 0 || !c->ticket || c->ticket > ticket)
			continue;
		c->ticket = 0;
		c->done = true;
		c->warning = warning[0] ? strdup(warning) : NULL;
		wait_for(s, c);
	}
}
