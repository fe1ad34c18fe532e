// SPDX-License-Identifier: GPL-2.0-only
/* The client of mgpud's socket, against the other end of a socket pair. */
#include <errno.h>
#include <json-c/json.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "mgpud_client.h"
#include "tap.h"

/**
 * struct server - the other end
 * @fd: its socket
 * @answer: its answer to a line
 * @len: bytes of it
 * @chunk: bytes to send at once
 * @request: the line that it read
 */
struct server {
	pthread_t thread;
	int fd;
	const char *answer;
	size_t len;
	size_t chunk;
	char request[512];
};

static void *serve(void *arg)
{
	struct server *server = arg;
	size_t len = 0;
	size_t at = 0;
	ssize_t n;

	while (len < sizeof(server->request) - 1 &&
	       !memchr(server->request, '\n', len)) {
		n = read(server->fd, server->request + len,
			 sizeof(server->request) - 1 - len);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	while (at < server->len) {
		size_t left = server->len - at;

		n = send(server->fd, server->answer + at,
			 left < server->chunk ? left : server->chunk,
			 MSG_NOSIGNAL);
		if (n <= 0)
			break;
		at += (size_t)n;
	}
	close(server->fd);
	return NULL;
}

static struct mgpud *start(struct server *server, const char *answer,
			   size_t len, size_t chunk)
{
	struct mgpud *client;
	int fds[2];

	memset(server, 0, sizeof(*server));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		abort();
	server->fd = fds[1];
	server->answer = answer;
	server->len = len;
	server->chunk = chunk;
	if (mgpud_from_fd(&client, fds[0], NULL) ||
	    pthread_create(&server->thread, NULL, serve, server))
		abort();
	return client;
}

static void stop(struct server *server, struct mgpud *client)
{
	mgpud_close(client);
	pthread_join(server->thread, NULL);
}

static const char good[] =
	"{\"ok\":true,\"state\":{\"allocator\":\"fea\",\"fds\":null}}\n";

static void gets_state(void)
{
	struct json_object *state = NULL;
	struct json_object *value = NULL;
	struct mgpu_error err = { 0 };
	struct mgpud *client;
	struct server server;
	size_t chunk;

	/* whole, and byte by byte */
	for (chunk = sizeof(good); chunk; chunk = chunk > 1 ? 1 : 0) {
		client = start(&server, good, sizeof(good) - 1, chunk);
		TAP_EQ(mgpud_get(client, &state, &err), 0);
		TAP_CHECK(json_object_object_get_ex(state, "allocator", &value));
		TAP_STR(json_object_get_string(value), "fea");
		json_object_put(state);
		stop(&server, client);
		TAP_STR(server.request, "{\"request\":\"get\"}\n");
	}
}

static void gets_large_state(void)
{
	size_t len = 1 << 20;
	char *answer = malloc(len + 64);
	struct json_object *state = NULL;
	struct mgpu_error err = { 0 };
	struct mgpud *client;
	struct server server;
	int n;

	TAP_NEED(answer);
	n = sprintf(answer, "{\"ok\":true,\"state\":{\"version\":\"");
	memset(answer + n, 'v', len);
	strcpy(answer + (size_t)n + len, "\"}}\n");
	client = start(&server, answer, strlen(answer), 4096);
	TAP_EQ(mgpud_get(client, &state, &err), 0);
	json_object_put(state);
	stop(&server, client);
	free(answer);
}

static void sets(void)
{
	struct json_object *settings = json_object_new_object();
	struct json_object *state = NULL;
	struct mgpu_error err = { 0 };
	struct mgpud *client;
	struct server server;

	json_object_object_add(settings, "allocator",
			       json_object_new_string("fea"));
	json_object_object_add(settings, "period_ms", json_object_new_int(500));
	client = start(&server, good, sizeof(good) - 1, sizeof(good));
	TAP_EQ(mgpud_set(client, settings, &state, &err), 0);
	TAP_CHECK(state);
	json_object_put(state);
	stop(&server, client);
	TAP_STR(server.request,
		"{\"request\":\"set\",\"settings\":{\"allocator\":\"fea\",\"period_ms\":500}}\n");
	json_object_put(settings);
}

/* A change that does not last, and one that undoes others. */
static void warns(void)
{
	static const char answer[] =
		"{\"ok\":true,\"warning\":\"not for long\",\"state\":{\"beta\":3}}\n";
	static const char null[] = "{\"ok\":true,\"warning\":null,\"state\":{}}\n";
	struct json_object *keys = json_object_new_array();
	struct json_object *state = NULL;
	struct mgpu_error err = { 0 };
	struct mgpud *client;
	struct server server;

	json_object_array_add(keys, json_object_new_string("beta"));
	client = start(&server, answer, sizeof(answer) - 1, sizeof(answer));
	TAP_CHECK(!mgpud_warning(client));
	TAP_EQ(mgpud_reset(client, keys, &state, &err), 0);
	TAP_STR(mgpud_warning(client), "not for long");
	json_object_put(state);
	stop(&server, client);
	TAP_STR(server.request, "{\"request\":\"reset\",\"keys\":[\"beta\"]}\n");
	json_object_put(keys);
	client = start(&server, good, sizeof(good) - 1, sizeof(good));
	TAP_EQ(mgpud_reset(client, NULL, NULL, &err), 0);
	TAP_CHECK(!mgpud_warning(client));
	stop(&server, client);
	TAP_STR(server.request, "{\"request\":\"reset\"}\n");
	/* no sentence */
	client = start(&server, null, sizeof(null) - 1, sizeof(null));
	TAP_EQ(mgpud_reset(client, NULL, NULL, &err), 0);
	TAP_CHECK(!mgpud_warning(client));
	stop(&server, client);
}

static void check_refusal(const char *answer, int want, const char *text)
{
	struct json_object *state = NULL;
	struct mgpu_error err = { 0 };
	struct mgpud *client;
	struct server server;

	client = start(&server, answer, strlen(answer), 4096);
	TAP_EQ(mgpud_get(client, &state, &err), want);
	TAP_CHECK(!state);
	TAP_EQ(err.code, want);
	if (text)
		TAP_STR(err.text, text);
	else
		TAP_CHECK(strlen(err.text) > 5);
	stop(&server, client);
}

static void refusals(void)
{
	check_refusal("{\"ok\":false,\"error\":\"there is no such allocator\",\"key\":\"allocator\"}\n",
		      -EINVAL, "there is no such allocator");
	check_refusal("{\"ok\":false,\"error\":\"no\"}\n", -EINVAL, "no");
	check_refusal("{\"ok\":false,\"error\":\"not 1\",\"key\":\"beta\"}\n",
		      -EINVAL, "beta: not 1");
	check_refusal("{\"ok\":false,\"error\":\"cost must be fit\",\"key\":\"preempt_cost\"}\n",
		      -EINVAL, "preempt_cost: cost must be fit");
	check_refusal("{\"ok\":false}\n", -EINVAL, NULL);
	check_refusal("{}\n", -EINVAL, NULL);
}

static void nonsense(void)
{
	check_refusal("{\"ok\":true}\n", -EBADMSG, NULL);
	check_refusal("{\"ok\":true,\"state\":5}\n", -EBADMSG, NULL);
	check_refusal("[1,2]\n", -EBADMSG, NULL);
	check_refusal("\n", -EBADMSG, NULL);
	check_refusal("null\n", -EBADMSG, NULL);
	check_refusal("{\"ok\":tru\n", -EBADMSG, NULL);
	check_refusal("SSH-2.0-OpenSSH_9.2\n", -EBADMSG, NULL);
	/* gone in the middle of a line, and before it */
	check_refusal("{\"ok\":true", -EPIPE, NULL);
	check_refusal("", -EPIPE, NULL);
}

static void watches(void)
{
	static const char lines[] =
		"{\"ok\":true,\"state\":{\"periods\":1}}\n"
		"{\"ok\":true,\"state\":{\"periods\":2}}\n";
	struct json_object *state = NULL;
	struct json_object *value = NULL;
	struct mgpu_error err = { 0 };
	struct mgpud *client;
	struct server server;
	int i;

	client = start(&server, lines, sizeof(lines) - 1, sizeof(lines));
	TAP_EQ(mgpud_watch(client, &err), 0);
	for (i = 1; i <= 2; i++) {
		TAP_EQ(mgpud_next(client, &state, 5000, &err), 0);
		TAP_CHECK(json_object_object_get_ex(state, "periods", &value));
		TAP_EQ(json_object_get_int(value), i);
		json_object_put(state);
	}
	TAP_EQ(mgpud_next(client, &state, 5000, &err), -EPIPE);
	stop(&server, client);
	TAP_STR(server.request, "{\"request\":\"watch\"}\n");
}

static void events(void)
{
	static const char lines[] =
		"{\"ok\":true,\"state\":{\"periods\":1}}\n"
		"{\"event\":\"sla-shortfall\",\"id\":3}\n"
		"{\"ok\":true,\"state\":{\"periods\":2}}\n"
		"{\"event\":\"sla-met\",\"id\":3}\n"
		"{\"ok\":true,\"state\":{\"periods\":3}}\n";
	struct json_object *state = NULL;
	struct json_object *event = NULL;
	struct json_object *value = NULL;
	struct mgpu_error err = { 0 };
	struct mgpud *client;
	struct server server;

	client = start(&server, lines, sizeof(lines) - 1, sizeof(lines));
	TAP_EQ(mgpud_watch(client, &err), 0);
	TAP_EQ(mgpud_next_any(client, &state, &event, 5000, &err), 0);
	TAP_CHECK(state && !event);
	json_object_put(state);
	TAP_EQ(mgpud_next_any(client, &state, &event, 5000, &err), 0);
	TAP_CHECK(!state && event);
	TAP_CHECK(json_object_object_get_ex(event, "event", &value));
	TAP_STR(json_object_get_string(value), "sla-shortfall");
	json_object_put(event);
	/* a client that wants only states gets only states */
	TAP_EQ(mgpud_next(client, &state, 5000, &err), 0);
	json_object_put(state);
	TAP_EQ(mgpud_next(client, &state, 5000, &err), 0);
	TAP_CHECK(json_object_object_get_ex(state, "periods", &value));
	TAP_EQ(json_object_get_int(value), 3);
	json_object_put(state);
	TAP_EQ(mgpud_next_any(client, &state, &event, 5000, &err), -EPIPE);
	stop(&server, client);
}

static void times_out(void)
{
	struct json_object *state = NULL;
	struct mgpu_error err = { 0 };
	struct mgpud *client;
	int fds[2];

	TAP_NEED(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	TAP_NEED(!mgpud_from_fd(&client, fds[0], &err));
	TAP_EQ(mgpud_next(client, &state, 50, &err), -ETIMEDOUT);
	mgpud_close(client);
	close(fds[1]);
}

#define FULL_SECONDS	10

/* mgpud accepts nobody, and no more may wait for it. */
static void socket_is_full(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct mgpud *clients[8] = { NULL };
	struct mgpu_error err = { 0 };
	int listener, ret = 0;
	size_t nr = 0;

	snprintf(addr.sun_path, sizeof(addr.sun_path), "/tmp/test_gpuctl_mgpud.%d", getpid());
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	TAP_NEED(!bind(listener, (struct sockaddr *)&addr, sizeof(addr)));
	TAP_NEED(!listen(listener, 1));
	while (!ret && nr < 8)
		ret = mgpud_connect(&clients[nr++], addr.sun_path, &err);
	TAP_EQ(ret, -ETIMEDOUT);
	TAP_STR(err.text, "mgpud does not answer");
	while (nr)
		mgpud_close(clients[--nr]);
	close(listener);
	unlink(addr.sun_path);
}

static void nobody_listens(void)
{
	struct mgpu_error err = { 0 };
	struct mgpud *client = NULL;
	char path[200];

	TAP_EQ(mgpud_connect(&client, "/nonexistent/mgpud.sock", &err),
	       -ENOENT);
	TAP_CHECK(!client);
	TAP_CHECK(strstr(err.text, "/nonexistent/mgpud.sock"));
	TAP_CHECK(strstr(err.text, "does not run"));
	setenv(MGPUD_SOCKET_ENV, "/nonexistent/other.sock", 1);
	TAP_EQ(mgpud_connect(&client, NULL, &err), -ENOENT);
	TAP_CHECK(strstr(err.text, "/nonexistent/other.sock"));
	memset(path, 'p', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	TAP_EQ(mgpud_connect(&client, path, &err), -ENAMETOOLONG);
}

int main(void)
{
	tap_run(gets_state, "the state is read, in one piece or many");
	tap_run(gets_large_state, "a state of a mebibyte is read");
	tap_run(sets, "settings are sent as one object on one line");
	tap_run(warns, "a reset is sent, and a warning is heard");
	tap_run(refusals, "a refusal is told in mgpud's words with the key");
	tap_run(nonsense, "an invalid answer is refused");
	tap_run(watches, "states are read one by one until mgpud goes");
	tap_run(events, "events come between states, to clients that want them");
	tap_run(times_out, "no answer in time is an error");
	tap_run_within(socket_is_full, "a socket at which too many wait is no answer in time",
		       FULL_SECONDS);
	tap_run(nobody_listens, "without mgpud the error says where it was looked for");
	return tap_done();
}
