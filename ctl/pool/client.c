// SPDX-License-Identifier: GPL-2.0-only
/* Commands of mgpu-poold that call the API at the Unix socket. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <json-c/json.h>

#include "api.h"
#include "client.h"
#include "clock.h"
#include "complain.h"
#include "json_read.h"
#include "output.h"
#include "service.h"

#define ANSWER_MAX	(64 << 20)
#define WAIT_STEP	30	/* seconds of a long poll */

/* ---- HTTP ---- */

static int reach(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&addr, sizeof(addr))) {
		int error = errno;

		close(fd);
		errno = error;
		return -1;
	}
	return fd;
}

bool client_reaches(const char *socket)
{
	int fd = reach(socket);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static bool send_all(int fd, const char *text, size_t len)
{
	while (len) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		text += n;
		len -= (size_t)n;
	}
	return true;
}

/* Read until the service closes the connection; NULL on an error. */
static char *read_all(int fd)
{
	size_t len = 0, room = 0;
	char *text = NULL, *more;
	ssize_t n;

	do {
		if (room - len < 4096) {
			room = room * 2 + 8192;
			more = room > ANSWER_MAX ? NULL : realloc(text, room);
			if (!more) {
				free(text);
				return NULL;
			}
			text = more;
		}
		n = recv(fd, text + len, room - len - 1, 0);
		if (n > 0)
			len += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	text[len] = '\0';
	return text;
}

static bool ask(int fd, const char *method, const char *path, const char *body)
{
	char head[512];
	int len;

	/* Version 1.0: the answer comes in one piece, and the connection ends. */
	len = snprintf(head, sizeof(head), "%s %s HTTP/1.0\r\nHost: mgpu-poold\r\n"
		       "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n", method,
		       path, strlen(body));
	return len > 0 && (size_t)len < sizeof(head) && send_all(fd, head, (size_t)len) &&
	       send_all(fd, body, strlen(body));
}

/*
 * Copy the body of a good answer to standard output, which may be larger than memory. Whether all
 * of it came: a service that ends closes the connection, too.
 */
static bool copy_body(FILE *answer)
{
	unsigned long long left = ULLONG_MAX;
	char block[32768];
	int status = 0;
	size_t n;

	while (fgets(block, sizeof(block), answer) && strcmp(block, "\r\n")) {
		if (sscanf(block, "HTTP/1.%*d %d", &status) == 1)
			continue;
		if (!strncasecmp(block, "Content-Length:", 15))
			left = strtoull(block + 15, NULL, 10);
	}
	if (status != 200)
		return false;
	do {
		n = fread(block, 1, left < sizeof(block) ? left : sizeof(block), answer);
		left -= fwrite(block, 1, n, stdout);
	} while (n && left);
	return !left;
}

int client_export(const char *socket)
{
	int fd = reach(socket);
	FILE *answer = fd >= 0 ? fdopen(fd, "r") : NULL;
	bool whole = answer && ask(fd, "GET", "/v1/history.csv", "") && copy_body(answer);

	if (answer)
		fclose(answer);
	else if (fd >= 0)
		close(fd);
	if (whole)
		return end_output();
	complain("%s: the service gave no history, or not all of it; see its log", socket);
	return STATUS_FAILED;
}

struct json_object *client_call(const char *socket, const char *method, const char *path,
				struct json_object *body, int *status)
{
	struct json_object *o = NULL;
	char *answer = NULL, *text;
	int fd = reach(socket);

	*status = 0;
	if (fd < 0) {
		complain("%s: %s; start mgpu-poold, or name its socket with --socket", socket,
			 strerror(errno));
		json_object_put(body);
		return NULL;
	}
	if (ask(fd, method, path, body ? json_object_to_json_string(body) : ""))
		answer = read_all(fd);
	close(fd);
	json_object_put(body);
	if (answer && sscanf(answer, "HTTP/1.%*d %d", status) == 1) {
		text = strstr(answer, "\r\n\r\n");
		o = text && text[4] ? json_tokener_parse(text + 4) : json_object_new_object();
	}
	if (!o)
		complain("%s: the service gave no answer; see its log", socket);
	free(answer);
	return o;
}

struct json_object *client_do(const char *socket, const char *method, const char *path,
			      struct json_object *body)
{
	struct json_object *o, *error;
	char text[POOL_TEXT_MAX];
	int status;

	o = client_call(socket, method, path, body, &status);
	if (!o || status < 400)
		return o;
	error = json_member(o, "error");
	json_text(error ? error : o, "text", text, sizeof(text));
	complain("%s", *text ? text : "the service refused");
	json_object_put(o);
	return NULL;
}

/* ---- commands ---- */

static void add_text(struct json_object *o, const char *key, const char *text)
{
	if (text)
		json_object_object_add(o, key, json_object_new_string(text));
}

static void add_number(struct json_object *o, const char *key, uint64_t value)
{
	if (value)
		json_object_object_add(o, key, json_object_new_uint64(value));
}

static uint64_t number(struct json_object *o, const char *key)
{
	struct json_object *value;

	return json_object_object_get_ex(o, key, &value) ? json_object_get_uint64(value) : 0;
}

static void print_request(struct json_object *o)
{
	char state[16], vm[POOL_NAME_MAX], kind[POOL_NAME_MAX], gpu[2 * POOL_NAME_MAX];
	char why[POOL_TEXT_MAX];

	json_text(o, "state", state, sizeof(state));
	json_text(o, "vm", vm, sizeof(vm));
	json_text(o, "kind", kind, sizeof(kind));
	json_text(o, "gpu", gpu, sizeof(gpu));
	json_text(o, "why", why, sizeof(why));
	printf("%-6" PRIu64 " %-9s %-20s %-12s %-24s %s\n", number(o, "id"), state, vm, kind,
	       *gpu ? gpu : "-", why);
}

static void print_heading(void)
{
	printf("%-6s %-9s %-20s %-12s %-24s %s\n", "ID", "STATE", "VM", "KIND", "GPU", "WHY");
}

/* Print a request and free it. Return the exit status. */
static int print_one(struct json_object *o, bool json)
{
	if (!o)
		return STATUS_FAILED;
	if (json)
		return print_json(o);
	print_heading();
	print_request(o);
	json_object_put(o);
	return end_output();
}

/* Whether a request goes on by itself. */
static bool pending(struct json_object *o)
{
	char state[16];

	json_text(o, "state", state, sizeof(state));
	return !strcmp(state, "queued") || !strcmp(state, "attaching");
}

static struct json_object *wait_for(const char *socket, struct json_object *o, uint64_t seconds)
{
	uint64_t end = now_ns() / NSEC + seconds, t;
	char path[128];

	while (o && pending(o) && (t = now_ns() / NSEC) < end) {
		unsigned int left = end - t < WAIT_STEP ? (unsigned int)(end - t) : WAIT_STEP;

		snprintf(path, sizeof(path), "/v1/requests/%" PRIu64 "?wait=%u&seen=%" PRIu64,
			 number(o, "id"), left, number(o, "version"));
		json_object_put(o);
		o = client_do(socket, "GET", path, NULL);
	}
	return o;
}

/* A key of its own for each command. */
static void new_key(char key[32])
{
	uint64_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = (uint64_t)time(NULL) << 20 | (uint64_t)getpid();
	snprintf(key, 32, "cli-%016" PRIx64, random);
}

int client_request(const char *socket, const struct client_wish *wish, bool json)
{
	struct json_object *o = json_object_new_object();
	char key[32];

	new_key(key);
	add_text(o, "key", wish->key ? wish->key : key);
	add_text(o, "vm", wish->vm);
	add_text(o, "kind", wish->kind);
	add_text(o, "target", wish->target);
	add_text(o, "precision", wish->precision);
	add_text(o, "type", wish->type);
	add_number(o, "size_mib", wish->size_mib);
	add_number(o, "memory_mib", wish->memory_mib);
	add_number(o, "lease_s", wish->lease_s);
	o = client_do(socket, "POST", "/v1/requests", o);
	return print_one(wait_for(socket, o, wish->wait_s), json);
}

int client_list(const char *socket, bool all, bool json)
{
	struct json_object *o, *list;

	o = client_do(socket, "GET", all ? "/v1/requests?limit=1000" :
		      "/v1/requests?open=1&limit=1000", NULL);
	if (!o)
		return STATUS_FAILED;
	if (json)
		return print_json(o);
	print_heading();
	list = json_list(o, "requests");
	for (size_t i = 0; list && i < json_object_array_length(list); i++)
		print_request(json_object_array_get_idx(list, i));
	json_object_put(o);
	return end_output();
}

int client_release(const char *socket, const char *id, bool done, bool json)
{
	struct json_object *o = json_object_new_object();
	char path[64];

	if (!*id || strspn(id, "0123456789") != strlen(id) || strlen(id) > 18) {
		complain("release '%s': give the number of a request; 'mgpu-poold list' shows them",
			 id);
		json_object_put(o);
		return STATUS_USAGE;
	}
	snprintf(path, sizeof(path), "/v1/requests/%s/release", id);
	json_object_object_add(o, "done", json_object_new_boolean(done));
	return print_one(client_do(socket, "POST", path, o), json);
}

int client_token(const char *socket, const char *name, const char *role, const char *project,
		 int64_t expires)
{
	struct json_object *o = json_object_new_object();
	char path[128], token[128];

	add_text(o, "role", role);
	add_text(o, "project", project);
	add_number(o, "expires", (uint64_t)expires);
	snprintf(path, sizeof(path), "/v1/tokens/%s", name);
	o = client_do(socket, "PUT", path, o);
	if (!o)
		return STATUS_FAILED;
	json_text(o, "token", token, sizeof(token));
	puts(token);
	json_object_put(o);
	return end_output();
}
