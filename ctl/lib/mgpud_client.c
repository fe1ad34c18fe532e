// SPDX-License-Identifier: GPL-2.0-only
/* Client of the local socket of mgpud, or of another service that speaks as it does. */
#include <errno.h>
#include <grp.h>
#include <json-c/json.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "clock.h"
#include "mgpud_client.h"

/* The state of 1,024 vGPUs takes about 512 KiB. */
#define LINE_MAX_SIZE	(16u << 20)

/* mgpud answers only between two periods' work. */
#define ANSWER_MS	5000

/* It accepts clients there, too: more than may wait for that are a sign that it hangs. */
#define CONNECT_S	1

/**
 * struct mgpud - connection to a service
 * @fd: socket
 * @name: name of the service
 * @buf: bytes that were read and not processed
 * @len: number of bytes in @buf
 * @room: size of @buf, bytes
 * @seen: number of bytes in @buf known to have no newline
 * @warning: warning of the last answer, NULL for none
 */
struct mgpud {
	int fd;
	const char *name;
	char *buf;
	size_t len;
	size_t room;
	size_t seen;
	char *warning;
};

static const struct mgpud_service mgpud_service = {
	.name = "mgpud", .path = MGPUD_SOCKET_DEFAULT, .env = MGPUD_SOCKET_ENV,
};

const struct mgpud_service remoted_service = {
	.name = "mgpu-remoted", .path = "/run/mgpu/remote.sock.control",
	.env = "MGPU_REMOTE_CONTROL",
};

static int from_fd(struct mgpud **client, const char *name, int fd, struct mgpu_error *err)
{
	struct mgpud *c = calloc(1, sizeof(*c));

	*client = c;
	if (!c) {
		close(fd);
		return mgpu_fail(err, -ENOMEM, "out of memory");
	}
	c->fd = fd;
	c->name = name;
	return 0;
}

int mgpud_from_fd(struct mgpud **client, int fd, struct mgpu_error *err)
{
	return from_fd(client, mgpud_service.name, fd, err);
}

/* The socket's group is the one whose members may use it. */
static int not_permitted(const char *path, const char *name, struct mgpu_error *err)
{
	struct stat st;
	const struct group *group = NULL;

	if (!stat(path, &st) && st.st_gid)
		group = getgrgid(st.st_gid);
	return mgpu_fail(err, -EACCES,
			 "%s: not permitted: run as root, or as %s%s%s", path,
			 group ? "a member of the group " : "the user that ",
			 group ? group->gr_name : name, group ? "" : " runs as");
}

int mgpud_connect(struct mgpud **client, const char *path,
		  struct mgpu_error *err)
{
	return mgpud_connect_to(client, &mgpud_service, path, err);
}

int mgpud_connect_to(struct mgpud **client, const struct mgpud_service *service,
		     const char *path, struct mgpu_error *err)
{
	const struct timeval patience = { .tv_sec = CONNECT_S };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int ret;
	int fd;

	*client = NULL;
	if (!path)
		path = getenv(service->env);
	if (!path || !*path)
		path = service->path;
	if (strlen(path) >= sizeof(addr.sun_path))
		return mgpu_fail(err, -ENAMETOOLONG,
				 "%s: a socket's path has at most %zu bytes",
				 path, sizeof(addr.sun_path) - 1);
	strcpy(addr.sun_path, path);

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return mgpu_fail(err, -errno, "no socket: %s",
				 strerror(errno));
	/* also of a request that a full socket does not take */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) ||
	    connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		ret = -errno;
		close(fd);
		if (ret == -EAGAIN)
			return mgpu_fail(err, -ETIMEDOUT, "%s does not answer",
					 service->name);
		if (ret == -ENOENT || ret == -ECONNREFUSED)
			return mgpu_fail(err, ret,
					 "%s does not run (no process listens at %s): start it, or set %s",
					 service->name, path, service->env);
		if (ret == -EACCES)
			return not_permitted(path, service->name, err);
		return mgpu_fail(err, ret, "%s: %s", path, strerror(-ret));
	}
	return from_fd(client, service->name, fd, err);
}

void mgpud_close(struct mgpud *client)
{
	if (!client)
		return;
	close(client->fd);
	free(client->buf);
	free(client->warning);
	free(client);
}

int mgpud_fd(const struct mgpud *client)
{
	return client->fd;
}

static int64_t now_ms(void)
{
	return (int64_t)(now_ns() / 1000000);
}

static int write_line(struct mgpud *client, struct json_object *object,
		      struct mgpu_error *err)
{
	const char *text;
	struct iovec iov[2];
	struct msghdr hdr = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t n;

	text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
	if (!text)
		return mgpu_fail(err, -ENOMEM, "out of memory");
	iov[0].iov_base = (char *)text;
	iov[0].iov_len = strlen(text);
	iov[1].iov_base = (char *)"\n";
	iov[1].iov_len = 1;

	while (hdr.msg_iovlen) {
		n = sendmsg(client->fd, &hdr, MSG_NOSIGNAL);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			if (errno == EAGAIN)
				return mgpu_fail(err, -ETIMEDOUT, "%s does not answer",
						 client->name);
			return mgpu_fail(err, -errno,
					 "%s no longer listens: %s",
					 client->name, strerror(errno));
		}
		while (hdr.msg_iovlen && (size_t)n >= hdr.msg_iov->iov_len) {
			n -= (ssize_t)hdr.msg_iov->iov_len;
			hdr.msg_iov++;
			hdr.msg_iovlen--;
		}
		if (hdr.msg_iovlen) {
			hdr.msg_iov->iov_base =
				(char *)hdr.msg_iov->iov_base + n;
			hdr.msg_iov->iov_len -= (size_t)n;
		}
	}
	return 0;
}

/* Read available bytes into the buffer; returns 0 if there were any. */
static int fill(struct mgpud *client, int64_t deadline, struct mgpu_error *err)
{
	struct pollfd pfd = { .fd = client->fd, .events = POLLIN };
	int64_t left = -1;
	ssize_t n;
	int ret;

	if (client->len == client->room) {
		size_t room = client->room ? client->room * 2 : 16384;
		char *more;

		if (room > LINE_MAX_SIZE)
			return mgpu_fail(err, -EMSGSIZE,
					 "%s sent a line that is too long", client->name);
		more = realloc(client->buf, room);
		if (!more)
			return mgpu_fail(err, -ENOMEM, "out of memory");
		client->buf = more;
		client->room = room;
	}

	if (deadline >= 0) {
		left = deadline - now_ms();
		if (left < 0)
			left = 0;
	}
	ret = poll(&pfd, 1, (int)left);
	if (ret < 0)
		return mgpu_fail(err, -errno, "waiting for %s: %s",
				 client->name, strerror(errno));
	if (!ret)
		return mgpu_fail(err, -ETIMEDOUT, "%s does not answer", client->name);

	n = read(client->fd, client->buf + client->len,
		 client->room - client->len);
	if (n < 0)
		return mgpu_fail(err, -errno, "reading %s's answer: %s",
				 client->name, strerror(errno));
	if (!n)
		return mgpu_fail(err, -EPIPE, "%s closed the connection", client->name);
	client->len += (size_t)n;
	return 0;
}

/* Read the next line as an object. */
static int read_line(struct mgpud *client, struct json_object **object,
		     int timeout_ms, struct mgpu_error *err)
{
	int64_t deadline = timeout_ms < 0 ? -1 : now_ms() + timeout_ms;
	struct json_tokener *tok;
	char *end = NULL;
	size_t used;
	int ret;

	for (;;) {
		if (client->len > client->seen)
			end = memchr(client->buf + client->seen, '\n',
				     client->len - client->seen);
		if (end)
			break;
		client->seen = client->len;
		ret = fill(client, deadline, err);
		if (ret == -EINTR && timeout_ms >= 0)
			continue;
		if (ret)
			return ret;
	}

	used = (size_t)(end - client->buf) + 1;
	tok = json_tokener_new();
	if (!tok)
		return mgpu_fail(err, -ENOMEM, "out of memory");
	*object = json_tokener_parse_ex(tok, client->buf, (int)used);
	ret = *object && json_object_is_type(*object, json_type_object) ?
	      0 : -EBADMSG;
	json_tokener_free(tok);

	client->len -= used;
	client->seen = 0;
	memmove(client->buf, client->buf + used, client->len);

	if (ret) {
		json_object_put(*object);
		*object = NULL;
		return mgpu_fail(err, ret,
				 "%s's answer is no JSON object: is another program at its socket?",
				 client->name);
	}
	return 0;
}

/* Read an answer: {"ok":true,"state":{...}}, an error, or {"event":...} for *event. */
static int read_answer(struct mgpud *client, struct json_object **state,
		       struct json_object **event, int timeout_ms,
		       struct mgpu_error *err)
{
	struct json_object *answer;
	struct json_object *value;
	const char *error = NULL;
	const char *key = NULL;
	int ret;

	*event = NULL;
	free(client->warning);
	client->warning = NULL;
	ret = read_line(client, &answer, timeout_ms, err);
	if (ret)
		return ret;

	if (json_object_object_get_ex(answer, "event", &value)) {
		*event = answer;
		return 0;
	}
	if (json_object_object_get_ex(answer, "ok", &value) &&
	    json_object_get_boolean(value)) {
		if (json_object_object_get_ex(answer, "state", &value) &&
		    json_object_is_type(value, json_type_object)) {
			*state = json_object_get(value);
			if (json_object_object_get_ex(answer, "warning", &value) &&
			    json_object_is_type(value, json_type_string))
				client->warning = strdup(json_object_get_string(value));
			ret = 0;
		} else {
			ret = mgpu_fail(err, -EBADMSG,
					"%s's answer has no state: it is of another version than this program",
					client->name);
		}
	} else {
		if (json_object_object_get_ex(answer, "error", &value))
			error = json_object_get_string(value);
		if (json_object_object_get_ex(answer, "key", &value))
			key = json_object_get_string(value);
		/* most sentences name their key */
		if (key && error && strstr(error, key))
			key = NULL;
		ret = mgpu_fail(err, -EINVAL, "%s%s%s",
				key ? key : "", key ? ": " : "",
				error ? error : "it refuses and does not say why");
	}
	json_object_put(answer);
	return ret;
}

/* @key and @value: member of the request, NULL for none */
static int ask(struct mgpud *client, const char *what, const char *key,
	       struct json_object *value, struct json_object **state,
	       int timeout_ms, struct mgpu_error *err)
{
	struct json_object *request = json_object_new_object();
	int ret;

	if (!request ||
	    json_object_object_add(request, "request",
				   json_object_new_string(what)) ||
	    (value && json_object_object_add(request, key, json_object_get(value))))
		ret = mgpu_fail(err, -ENOMEM, "out of memory");
	else
		ret = write_line(client, request, err);
	json_object_put(request);
	if (ret || !state)
		return ret;
	return mgpud_next(client, state, timeout_ms, err);
}

int mgpud_get(struct mgpud *client, struct json_object **state,
	      struct mgpu_error *err)
{
	return ask(client, "get", NULL, NULL, state, ANSWER_MS, err);
}

int mgpud_get_within(struct mgpud *client, struct json_object **state, int timeout_ms,
		     struct mgpu_error *err)
{
	return ask(client, "get", NULL, NULL, state, timeout_ms, err);
}

static int change(struct mgpud *client, const char *what, const char *key,
		  struct json_object *value, struct json_object **state,
		  struct mgpu_error *err)
{
	struct json_object *now;
	int ret = ask(client, what, key, value, &now, ANSWER_MS, err);

	if (ret)
		return ret;
	if (state)
		*state = now;
	else
		json_object_put(now);
	return 0;
}

int mgpud_set(struct mgpud *client, struct json_object *settings,
	      struct json_object **state, struct mgpu_error *err)
{
	return change(client, "set", "settings", settings, state, err);
}

int mgpud_reset(struct mgpud *client, struct json_object *keys,
		struct json_object **state, struct mgpu_error *err)
{
	return change(client, "reset", "keys", keys, state, err);
}

const char *mgpud_warning(const struct mgpud *client)
{
	return client->warning;
}

int mgpud_watch(struct mgpud *client, struct mgpu_error *err)
{
	return ask(client, "watch", NULL, NULL, NULL, ANSWER_MS, err);
}

int mgpud_next_any(struct mgpud *client, struct json_object **state,
		   struct json_object **event, int timeout_ms,
		   struct mgpu_error *err)
{
	*state = NULL;
	return read_answer(client, state, event, timeout_ms, err);
}

int mgpud_next(struct mgpud *client, struct json_object **state,
	       int timeout_ms, struct mgpu_error *err)
{
	struct json_object *event;
	int ret;

	do {
		ret = read_answer(client, state, &event, timeout_ms, err);
		json_object_put(event);
	} while (!ret && event);
	return ret;
}
