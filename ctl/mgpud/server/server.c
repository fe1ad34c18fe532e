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
#include <sys/un.h>
#include <json-c/json.h>

#include "config/fail.h"
#include "server/server.h"

#define LOST "{\"event\":\"lost\"}\n"
#define FULL "{\"ok\":false,\"error\":\"mgpud has too many clients; close one first\",\"key\":\"request\"}\n"

/**
 * struct client - a connection
 * @fd: socket, -1 if the entry is free
 * @used: last activity, in server turns
 * @trusted: the client is root or mgpud's user, and may change settings
 * @watch: the client gets the state of each period
 * @ended: the client sends no more requests
 * @in: @in_len bytes of an incomplete request
 * @out: answer that is being sent, NULL for none: @out_done of @out_len bytes are sent
 * @events: bytes of events in @out
 * @lost: events were dropped for lack of room
 */
struct client {
	int fd;
	uint64_t used;
	bool trusted;
	bool watch;
	bool ended;
	char in[SERVER_LINE_MAX];
	size_t in_len;
	char *out;
	size_t out_len, out_done;
	size_t events;
	bool lost;
};

struct server {
	int epoll, listen, lock;
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	const struct server_ops *ops;
	void *arg;
	uint64_t turn;
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
			    "another mgpud (process %s) serves %s; stop it first, or choose another --socket",
			    pid[0] ? pid : "unknown", s->path);
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
	/* every user may connect; set() checks the client's user */
	if (chmod(s->path, 0666) || listen(s->listen, SERVER_CLIENTS))
		return fail(why, len, -errno, "cannot listen on %s: %s", s->path,
			    strerror(errno));
	return 0;
}

static int poll_for(struct server *s, int op, int fd, uint32_t events, void *who)
{
	struct epoll_event ev = { .events = events, .data = { .ptr = who } };

	return epoll_ctl(s->epoll, op, fd, &ev) ? -errno : 0;
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
	s->epoll = -1;
	s->listen = -1;
	s->lock = -1;
	strcpy(s->path, path);
	s->ops = ops;
	s->arg = arg;
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
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	ret = s->epoll < 0 ? -errno : poll_for(s, EPOLL_CTL_ADD, s->listen, EPOLLIN, NULL);
	if (ret) {
		fail(why, len, ret, "cannot watch %s: %s", path, strerror(-ret));
		goto err;
	}
	*server = s;
	return 0;
err:
	if (s->listen >= 0) {
		close(s->listen);
		unlink(s->path);
	}
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->lock >= 0)
		close(s->lock);
	free(s);
	return ret;
}

static void drop(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	free(c->out);
	memset(c, 0, sizeof(*c));
	c->fd = -1;
}

void server_close(struct server *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < SERVER_CLIENTS; i++)
		drop(&s->clients[i]);
	/* keep the lock's file: after an unlink two processes could hold a lock */
	unlink(s->path);
	close(s->listen);
	close(s->epoll);
	close(s->lock);
	free(s);
}

int server_fd(const struct server *s)
{
	return s->epoll;
}

/* ---- answers ---- */

/* Takes over @answer. */
static void send_line(struct client *c, struct json_object *answer)
{
	const char *text;
	size_t len;

	text = answer ? json_object_to_json_string_length(answer,
			JSON_C_TO_STRING_PLAIN, &len) : NULL;
	if (text)
		c->out = malloc(len + 1);
	if (c->out) {
		memcpy(c->out, text, len);
		c->out[len] = '\n';
		c->out_len = len + 1;
		c->out_done = 0;
	} else {
		c->ended = true;	/* out of memory: close the connection */
	}
	json_object_put(answer);
}

static void send_state(struct server *s, struct client *c)
{
	struct json_object *answer = json_object_new_object();
	struct json_object *state = s->ops->state(s->arg);

	if (answer && state) {
		json_object_object_add(answer, "ok", json_object_new_boolean(true));
		json_object_object_add(answer, "state", state);
	} else {
		json_object_put(state);
	}
	send_line(c, answer);
}

static void send_error(struct client *c, const char *key, const char *text)
{
	struct json_object *answer = json_object_new_object();

	if (answer) {
		json_object_object_add(answer, "ok", json_object_new_boolean(false));
		json_object_object_add(answer, "error", json_object_new_string(text));
		json_object_object_add(answer, "key", json_object_new_string(key));
	}
	send_line(c, answer);
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

static void set(struct server *s, struct client *c, struct json_object *request)
{
	struct settings_error err = { .key = "", .text = "" };
	struct json_object *settings;

	if (!c->trusted) {
		send_error(c, "request", "only root and the user that mgpud runs as may change settings; use one of these");
		return;
	}
	if (!json_object_object_get_ex(request, "settings", &settings)) {
		send_error(c, "settings", "a set request needs \"settings\"");
		return;
	}
	if (s->ops->set(s->arg, settings, &err))
		send_error(c, err.key, err.text);
	else
		send_state(s, c);
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
		send_error(c, "request", "the object needs \"request\": \"get\", \"set\" or \"watch\"");
		json_object_put(request);
		return;
	}
	name = json_object_get_string(what);
	if (!strcmp(name, "get")) {
		send_state(s, c);
	} else if (!strcmp(name, "set")) {
		set(s, c, request);
	} else if (!strcmp(name, "watch")) {
		c->watch = true;
		send_state(s, c);
	} else {
		send_error(c, "request", "unknown request; the requests are get, set and watch");
	}
	json_object_put(request);
}

/* ---- bytes ---- */

/* Append to the output; returns false when out of memory. */
static bool append(struct client *c, const char *text, size_t len)
{
	size_t used = c->out ? c->out_len : 0;
	char *out = realloc(c->out, used + len);

	if (!out)
		return false;
	if (!used)
		c->out_done = 0;
	memcpy(out + used, text, len);
	c->out = out;
	c->out_len = used + len;
	return true;
}

/* Send output; returns false if the connection is broken. */
static bool flush(struct client *c)
{
	while (c->out) {
		ssize_t n = send(c->fd, c->out + c->out_done, c->out_len - c->out_done,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		c->out_done += (size_t)n;
		if (c->out_done < c->out_len)
			continue;
		free(c->out);
		c->out = NULL;
		c->events = 0;
		if (c->lost) {
			c->lost = false;
			append(c, LOST, strlen(LOST));
		}
	}
	return true;
}

/* Answer complete lines, while answers can be sent at once. */
static bool answer_lines(struct server *s, struct client *c)
{
	while (!c->out) {
		char *end = memchr(c->in, '\n', c->in_len);
		size_t len;

		if (!end) {
			if (c->in_len < sizeof(c->in))
				return !c->ended;
			c->ended = true;
			c->in_len = 0;
			send_error(c, "request", "the request is too long");
			return flush(c) && c->out;
		}
		len = (size_t)(end - c->in);
		*end = '\0';
		answer_line(s, c, c->in, len);
		c->in_len -= len + 1;
		memmove(c->in, end + 1, c->in_len);
		if (!flush(c))
			return false;
	}
	return true;
}

static bool receive(struct client *c)
{
	while (!c->ended && c->in_len < sizeof(c->in)) {
		ssize_t n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len,
				 MSG_DONTWAIT);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		if (!n)
			c->ended = true;
		c->in_len += (size_t)n;
		if (memchr(c->in, '\n', c->in_len))
			break;
	}
	return true;
}

static void serve(struct server *s, struct client *c, uint32_t events)
{
	uint32_t want = 0;
	bool good = !(events & EPOLLERR) && flush(c);

	c->used = s->turn;
	if (good && !c->out)
		good = receive(c) && answer_lines(s, c);
	if (good && c->out)
		want = EPOLLOUT;
	else if (good && !c->ended)
		want = EPOLLIN;
	/* a client that is not polled would report its hang-up forever */
	if (!good || !want || poll_for(s, EPOLL_CTL_MOD, c->fd, want, c))
		drop(c);
}

/* ---- connections ---- */

static struct client *free_client(struct server *s)
{
	struct client *oldest = NULL;

	for (size_t i = 0; i < SERVER_CLIENTS; i++) {
		struct client *c = &s->clients[i];

		if (c->fd < 0)
			return c;
		if (!c->trusted && (!oldest || c->used < oldest->used))
			oldest = c;
	}
	/* a user who may not set must not block others by staying connected */
	if (oldest)
		drop(oldest);
	return oldest;
}

static void welcome(struct server *s)
{
	for (unsigned int i = 0; i < SERVER_CLIENTS; i++) {
		struct ucred cred = { .uid = (uid_t)-1 };
		socklen_t len = sizeof(cred);
		struct client *c;
		int fd;

		fd = accept4(s->listen, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			return;
		c = free_client(s);
		if (!c) {
			send(fd, FULL, strlen(FULL), MSG_NOSIGNAL | MSG_DONTWAIT);
			close(fd);
			continue;
		}
		c->fd = fd;
		c->used = s->turn;
		if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
			c->trusted = cred.uid == 0 || cred.uid == geteuid();
		if (poll_for(s, EPOLL_CTL_ADD, fd, EPOLLIN, c))
			drop(c);
	}
}

void server_run(struct server *s)
{
	struct epoll_event events[SERVER_CLIENTS + 1];
	int n = epoll_wait(s->epoll, events, SERVER_CLIENTS + 1, 0);
	bool knock = false;

	s->turn++;
	for (int i = 0; i < n; i++) {
		struct client *c = events[i].data.ptr;

		if (!c)
			knock = true;
		else if (c->fd >= 0)
			serve(s, c, events[i].events);
	}
	/* accept last, so that no event above is for a reused entry */
	if (knock)
		welcome(s);
}

void server_publish(struct server *s)
{
	for (size_t i = 0; i < SERVER_CLIENTS; i++) {
		struct client *c = &s->clients[i];

		if (c->fd < 0 || !c->watch || c->out)
			continue;
		send_state(s, c);
		serve(s, c, 0);
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
		serve(s, c, 0);
	}
	free(line);
}
