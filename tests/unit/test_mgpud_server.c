// SPDX-License-Identifier: GPL-2.0-only
/* mgpud's socket, over real sockets, and the settings that come over it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <json-c/json.h>

#include "config/table.h"
#include "server/server.h"
#include "tap.h"

#define NR(a)	(sizeof(a) / sizeof((a)[0]))

static char folder[64], path[96], why[256];
static struct config config;
static struct server *server;
static size_t padding;		/* bytes that make the state large */
static unsigned int states;	/* how often it was asked for */

static struct json_object *on_state(void *arg)
{
	struct json_object *o = json_object_new_object();
	char *pad = calloc(1, padding + 1);

	(void)arg;
	memset(pad, 'x', padding);
	states++;
	json_object_object_add(o, "allocator",
			       json_object_new_string(config.set.allocator->name));
	json_object_object_add(o, "period_ms", json_object_new_int64(config.set.period_ms));
	json_object_object_add(o, "pad", json_object_new_string(pad));
	free(pad);
	return o;
}

static int on_set(void *arg, struct json_object *set, struct settings_error *err)
{
	(void)arg;
	return table_json(&config, set, err);
}

static const struct server_ops ops = { .state = on_state, .set = on_set };

static void up(void)
{
	config_default(&config);
	padding = 0;
	states = 0;
	if (server_open(&server, path, &ops, NULL, why, sizeof(why))) {
		tap_diag("%s", why);
		server = NULL;
	}
}

static void down(void)
{
	server_close(server);
	server = NULL;
	config_free(&config);
}

/* Let the server work until it has nothing to do. */
static void turn(void)
{
	struct pollfd p = { .fd = server_fd(server), .events = POLLIN };

	for (unsigned int k = 0; k < 200 && poll(&p, 1, 5) > 0; k++)
		server_run(server);
}

static int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	strcpy(addr.sun_path, path);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
		close(fd);
		return -1;
	}
	return fd;
}

static void put(int fd, const char *text)
{
	TAP_EQ(send(fd, text, strlen(text), MSG_NOSIGNAL), (long long)strlen(text));
	turn();
}

/* The next line, NULL when there is none. */
static char *line(int fd)
{
	static char buf[4096];
	size_t n = 0;

	while (n < sizeof(buf) - 1 && recv(fd, buf + n, 1, 0) == 1)
		if (buf[n++] == '\n')
			break;
	buf[n] = '\0';
	return n ? buf : NULL;
}

/* Is the next line an answer that is ok, or one that names @key? */
static bool answered(int fd, const char *key)
{
	char *text = line(fd);
	struct json_object *o = text ? json_tokener_parse(text) : NULL, *v, *e;
	bool good = false;

	if (json_object_object_get_ex(o, "ok", &v)) {
		if (!key)
			good = json_object_get_boolean(v) &&
				json_object_object_get_ex(o, "state", &e);
		else
			good = !json_object_get_boolean(v) &&
				json_object_object_get_ex(o, "error", &e) &&
				json_object_get_string_len(e) > 10 &&
				json_object_object_get_ex(o, "key", &v) &&
				!strcmp(json_object_get_string(v), key);
	}
	if (!good)
		tap_diag("answer: %s", text ? text : "(nothing)");
	json_object_put(o);
	return good;
}

static bool closed(int fd)
{
	char c;

	return recv(fd, &c, 1, 0) == 0 || errno == ECONNRESET;
}

static void get(void)
{
	int fd;

	up();
	fd = dial();
	put(fd, "{\"request\":\"get\"}\n");
	TAP_CHECK(answered(fd, NULL));
	/* in pieces, and two at once */
	put(fd, "{\"request\"");
	TAP_CHECK(!line(fd));
	put(fd, ":\"get\"}\n{\"request\":\"get\"}\n");
	TAP_CHECK(answered(fd, NULL));
	TAP_CHECK(answered(fd, NULL));
	TAP_CHECK(!line(fd));
	/* a client that sends and hangs up its side is answered */
	put(fd, "");
	TAP_EQ(send(fd, "{\"request\":\"get\"}\n", 18, 0), 18);
	shutdown(fd, SHUT_WR);
	turn();
	TAP_CHECK(answered(fd, NULL));
	TAP_CHECK(closed(fd));
	close(fd);
	down();
}

static void set(void)
{
	int fd;

	up();
	fd = dial();
	put(fd, "{\"request\":\"set\",\"settings\":{\"allocator\":\"vgasa\",\"period_ms\":500,\"iterations\":20,\"headroom\":1.5,\"beta\":3,\"lambda\":-1}}\n");
	TAP_CHECK(answered(fd, NULL));
	TAP_STR(config.set.allocator->name, "vgasa");
	TAP_EQ(config.set.period_ms, 500);
	TAP_EQ(config.set.iterations, 20);
	TAP_NEAR(config.set.headroom, 1.5, 0);
	TAP_NEAR(config.set.param.beta, 3, 0);
	TAP_NEAR(config.set.param.lambda, -1, 0);
	put(fd, "{\"request\":\"set\",\"settings\":{}}\n");
	TAP_CHECK(answered(fd, NULL));
	close(fd);
	down();
}

static void set_preempt(void)
{
	char text[TABLE_ALL_TEXT];
	int fd;

	up();
	table_all(&config, text);
	TAP_STR(text, "allocator=exact period_ms=1000 iterations=10 headroom=2 beta=2 lambda=-0.5 preempt=mgpu preempt_cost=fit preempt_decay_compute=1 preempt_decay_memory=0.9 preempt_class_threshold=0.5 preempt_starve_ms=500 preempt_min_gain=0.02");
	fd = dial();
	/* with others, in any order */
	put(fd, "{\"request\":\"set\",\"settings\":{\"preempt\":\"drain\",\"allocator\":\"fea\",\"preempt_cost\":\"0.25,0.5\",\"preempt_decay_compute\":0.75,\"preempt_decay_memory\":0.5,\"period_ms\":500,\"preempt_class_threshold\":0.25,\"preempt_starve_ms\":12.5,\"preempt_min_gain\":0}}\n");
	TAP_CHECK(answered(fd, NULL));
	TAP_STR(config.set.allocator->name, "fea");
	TAP_EQ(config.set.period_ms, 500);
	TAP_STR(config.preempt.ops->name, "drain");
	TAP_CHECK(!config.preempt.fit);
	TAP_NEAR(config.preempt.param.cost.a, 0.25, 0);
	TAP_NEAR(config.preempt.param.cost.b, 0.5, 0);
	TAP_NEAR(config.preempt.param.decay_compute, 0.75, 0);
	TAP_NEAR(config.preempt.param.decay_memory, 0.5, 0);
	TAP_NEAR(config.preempt.param.class_threshold, 0.25, 0);
	TAP_EQ(config.preempt.param.starve_ns, 12500000);
	TAP_NEAR(config.preempt.param.min_gain, 0, 0);
	table_all(&config, text);
	TAP_STR(text, "allocator=fea period_ms=500 iterations=10 headroom=2 beta=2 lambda=-0.5 preempt=drain preempt_cost=0.25,0.5 preempt_decay_compute=0.75 preempt_decay_memory=0.5 preempt_class_threshold=0.25 preempt_starve_ms=12.5 preempt_min_gain=0");
	/* as if nothing had been set */
	put(fd, "{\"request\":\"set\",\"settings\":{\"preempt_cost\":\"fit\"}}\n");
	TAP_CHECK(answered(fd, NULL));
	TAP_CHECK(config.preempt.fit);
	TAP_NEAR(config.preempt.param.cost.a, PREEMPT_COST_A, 0);
	TAP_NEAR(config.preempt.param.cost.b, PREEMPT_COST_B, 0);
	TAP_STR(config.preempt.ops->name, "drain");
	/* the ends of the ranges */
	put(fd, "{\"request\":\"set\",\"settings\":{\"preempt_cost\":\"0,1000\",\"preempt_starve_ms\":3600000,\"preempt_min_gain\":1}}\n");
	TAP_CHECK(answered(fd, NULL));
	TAP_NEAR(config.preempt.param.cost.b, 1000, 0);
	TAP_EQ(config.preempt.param.starve_ns, PREEMPT_STARVE_MAX_NS);
	close(fd);
	down();
}

static void set_wrong(void)
{
	static const struct {
		const char *settings, *key;
	} bad[] = {
		{ "{\"allocator\":\"none\",\"period_ms\":99}", "period_ms" },
		{ "{\"allocator\":\"none\",\"period_ms\":60001}", "period_ms" },
		{ "{\"allocator\":\"none\",\"period_ms\":100.5}", "period_ms" },
		{ "{\"allocator\":\"none\",\"period_ms\":\"1000\"}", "period_ms" },
		{ "{\"allocator\":\"none\",\"iterations\":0}", "iterations" },
		{ "{\"allocator\":\"none\",\"iterations\":1e99}", "iterations" },
		{ "{\"allocator\":\"none\",\"iterations\":-1}", "iterations" },
		{ "{\"allocator\":\"none\",\"headroom\":1}", "headroom" },
		{ "{\"allocator\":\"none\",\"headroom\":4.5}", "headroom" },
		{ "{\"allocator\":\"none\",\"beta\":1}", "beta" },
		{ "{\"allocator\":\"none\",\"beta\":1e999}", "beta" },
		{ "{\"allocator\":\"none\",\"beta\":0.5}", "lambda" },
		{ "{\"allocator\":\"none\",\"lambda\":0}", "lambda" },
		{ "{\"allocator\":\"none\",\"lambda\":null}", "lambda" },
		{ "{\"period_ms\":200,\"allocator\":\"drv\"}", "allocator" },
		{ "{\"period_ms\":200,\"allocator\":3}", "allocator" },
		/* as it was called before */
		{ "{\"period_ms\":200,\"policy\":\"fea\"}", "policy" },
		{ "{\"period_ms\":200,\"colour\":3}", "colour" },
		{ "{\"allocator\":\"none\",\"sla\":3}", "sla" },
		{ "{\"allocator\":\"none\",\"sla\":{\"me\":{\"floor\":30}}}", "sla" },
		{ "{\"allocator\":\"none\",\"sla\":{\"default\":30}}", "sla" },
		{ "{\"allocator\":\"none\",\"sla\":{\"default\":{\"speed\":30}}}", "sla" },
		{ "{\"allocator\":\"none\",\"sla\":{\"default\":{\"floor\":\"30\"}}}", "floor" },
		{ "{\"allocator\":\"none\",\"sla\":{\"default\":{\"floor\":0.5}}}", "floor" },
		{ "{\"allocator\":\"none\",\"sla\":{\"default\":{\"ceiling\":1e99}}}", "ceiling" },
		{ "{\"allocator\":\"none\",\"sla\":{\"default\":{\"ceiling\":20,\"floor\":30}}}",
		  "floor" },
		{ "{\"sla\":{\"default\":{\"floor\":30}},\"allocator\":\"drv\"}", "allocator" },
		/* of preemption, before and behind others that are right */
		{ "{\"allocator\":\"none\",\"preempt\":\"drv\"}", "preempt" },
		{ "{\"preempt\":3,\"allocator\":\"none\"}", "preempt" },
		{ "{\"preempt\":null}", "preempt" },
		{ "{\"preempt\":\"none\",\"allocator\":\"drv\"}", "allocator" },
		{ "{\"preempt\":\"none\",\"beta\":1}", "beta" },
		{ "{\"preempt\":\"none\",\"preempt_colour\":3}", "preempt_colour" },
		{ "{\"preempt\":\"none\",\"preempt_policy\":\"none\"}", "preempt_policy" },
		{ "{\"preempt\":\"none\",\"preempt_\":\"none\"}", "preempt_" },
		{ "{\"preempt\":\"none\",\"preemption\":\"none\"}", "preemption" },
		{ "{\"preempt\":\"none\",\"preempt_cost\":0.1}", "preempt_cost" },
		{ "{\"preempt\":\"none\",\"preempt_cost\":\"\"}", "preempt_cost" },
		{ "{\"preempt\":\"none\",\"preempt_cost\":\"0.1\"}", "preempt_cost" },
		{ "{\"preempt\":\"none\",\"preempt_cost\":\"0.1,\"}", "preempt_cost" },
		{ "{\"preempt\":\"none\",\"preempt_cost\":\",0.1\"}", "preempt_cost" },
		{ "{\"preempt\":\"none\",\"preempt_cost\":\"0.1,0.1,\"}", "preempt_cost" },
		{ "{\"preempt\":\"none\",\"preempt_cost\":\"0,0\"}", "preempt_cost" },
		{ "{\"preempt\":\"none\",\"preempt_cost\":\"-1,1\"}", "preempt_cost" },
		{ "{\"preempt\":\"none\",\"preempt_cost\":\"1,1000.1\"}", "preempt_cost" },
		{ "{\"preempt\":\"none\",\"preempt_cost\":\"nan,1\"}", "preempt_cost" },
		{ "{\"preempt\":\"none\",\"preempt_cost\":\"fit,1\"}", "preempt_cost" },
		{ "{\"preempt\":\"none\",\"preempt_decay_compute\":1.01}",
		  "preempt_decay_compute" },
		{ "{\"preempt\":\"none\",\"preempt_decay_memory\":0.49}",
		  "preempt_decay_memory" },
		{ "{\"preempt\":\"none\",\"preempt_decay_memory\":\"0.9\"}",
		  "preempt_decay_memory" },
		{ "{\"preempt\":\"none\",\"preempt_class_threshold\":0.04}",
		  "preempt_class_threshold" },
		{ "{\"preempt\":\"none\",\"preempt_starve_ms\":0.99}", "preempt_starve_ms" },
		{ "{\"preempt\":\"none\",\"preempt_starve_ms\":-1e300}", "preempt_starve_ms" },
		{ "{\"preempt\":\"none\",\"preempt_starve_ms\":1e300}", "preempt_starve_ms" },
		{ "{\"preempt\":\"none\",\"preempt_starve_ms\":3600001}", "preempt_starve_ms" },
		{ "{\"preempt\":\"none\",\"preempt_starve_ms\":null}", "preempt_starve_ms" },
		{ "{\"preempt\":\"none\",\"preempt_min_gain\":1e999}", "preempt_min_gain" },
		{ "{\"preempt\":\"none\",\"preempt_min_gain\":-0.1}", "preempt_min_gain" },
		{ "[]", "settings" },
		{ "7", "settings" },
		{ "null", "settings" },
	};
	char text[256];
	int fd;

	up();
	fd = dial();
	for (size_t k = 0; k < NR(bad); k++) {
		snprintf(text, sizeof(text), "{\"request\":\"set\",\"settings\":%s}\n",
			 bad[k].settings);
		put(fd, text);
		TAP_CHECK(answered(fd, bad[k].key));
		/* all or nothing */
		TAP_STR(config.set.allocator->name, "exact");
		TAP_EQ(config.set.period_ms, 1000);
		TAP_STR(config.preempt.ops->name, "mgpu");
		TAP_CHECK(config.preempt.fit && !preempt_param_check(&config.preempt.param));
		TAP_NEAR(config.set.sla.floor, 0, 0);
		TAP_EQ(config.set.nr_vgpus, 0);
	}
	put(fd, "{\"request\":\"set\"}\n");
	TAP_CHECK(answered(fd, "settings"));
	close(fd);
	down();
}

#define A	"01234567-89ab-cdef-0123-456789abcdef"
#define SLA	"{\"request\":\"set\",\"settings\":{\"sla\":{"

static void agreements(void)
{
	struct sla sla;
	int fd;

	up();
	fd = dial();
	put(fd, SLA "\"default\":{\"ceiling\":60},\"01234567-89AB-cdef-0123-456789abcdef\":{\"floor\":30}}}}\n");
	TAP_CHECK(answered(fd, NULL));
	TAP_EQ(config.set.nr_vgpus, 1);
	sla = *settings_sla(&config.set, A);
	TAP_NEAR(sla.floor, 30, 0);
	TAP_NEAR(sla.ceiling, 60, 0);		/* as all others then */
	/* an absent key changes nothing, null removes the value */
	put(fd, SLA "\"" A "\":{\"ceiling\":null},\"default\":{\"ceiling\":50}}}}\n");
	TAP_CHECK(answered(fd, NULL));
	sla = *settings_sla(&config.set, A);
	TAP_NEAR(sla.floor, 30, 0);
	TAP_CHECK(isinf(sla.ceiling));
	TAP_NEAR(config.set.sla.ceiling, 50, 0);
	/* away with it */
	put(fd, SLA "\"" A "\":null}}}\n");
	TAP_CHECK(answered(fd, NULL));
	TAP_EQ(config.set.nr_vgpus, 0);
	put(fd, SLA "\"" A "\":null,\"default\":null}}}\n");
	TAP_CHECK(answered(fd, NULL));
	TAP_CHECK(isinf(config.set.sla.ceiling));
	close(fd);
	down();
}

static struct json_object *event(unsigned int k)
{
	struct json_object *o = json_object_new_object();

	json_object_object_add(o, "event", json_object_new_string("sla-shortfall"));
	json_object_object_add(o, "id", json_object_new_int((int)k));
	return o;
}

static void events(void)
{
	int fd, other;

	up();
	fd = dial();
	other = dial();
	put(fd, "{\"request\":\"watch\"}\n");
	put(other, "{\"request\":\"get\"}\n");
	TAP_CHECK(answered(fd, NULL) && answered(other, NULL));
	for (unsigned int k = 0; k < 3; k++)
		server_event(server, event(k));
	TAP_STR(line(fd), "{\"event\":\"sla-shortfall\",\"id\":0}\n");
	TAP_STR(line(fd), "{\"event\":\"sla-shortfall\",\"id\":1}\n");
	TAP_STR(line(fd), "{\"event\":\"sla-shortfall\",\"id\":2}\n");
	TAP_CHECK(!line(fd) && !line(other));
	server_event(server, NULL);		/* out of memory */
	TAP_CHECK(!line(fd));
	close(fd);
	close(other);
	turn();
	server_event(server, event(3));
	down();
}

/* A client that does not read keeps a bounded number of events; the rest are counted. */
static void events_lost(void)
{
	static char buf[65536];
	unsigned int got = 0, lost = 0;
	size_t n = 0;
	char text[128];
	int fd;

	up();
	padding = 4 << 20;
	fd = dial();
	put(fd, "{\"request\":\"watch\"}\n");
	for (unsigned int k = 0; k < 5000; k++)
		server_event(server, event(k));
	for (unsigned int idle = 0; idle < 3;) {
		ssize_t r = recv(fd, buf, sizeof(buf), 0);

		if (r <= 0) {
			turn();
			idle++;
			continue;
		}
		idle = 0;
		for (ssize_t i = 0; i < r; i++) {
			if (n < sizeof(text) - 1)
				text[n++] = buf[i];
			if (buf[i] != '\n')
				continue;
			text[n] = '\0';
			n = 0;
			if (!strncmp(text, "{\"event\":\"sla", 13)) {
				got++;
				/* the first of them, in order, and the note behind them */
				if (!lost)
					TAP_EQ(atoi(strstr(text, "id\":") + 4), got - 1);
			}
			lost += !strcmp(text, "{\"event\":\"lost\"}\n");
		}
	}
	TAP_CHECK(got > 100 && got * 33 <= SERVER_EVENTS_MAX + 33);
	TAP_EQ(lost, 1);
	/* and from then on it gets them again */
	server_event(server, event(7));
	TAP_STR(line(fd), "{\"event\":\"sla-shortfall\",\"id\":7}\n");
	close(fd);
	down();
}

static void nonsense(void)
{
	static const char *const bad[] = {
		"", "x", "{", "}", "[]", "3", "null", "\"get\"", "{}",
		"{\"request\":3}", "{\"request\":null}", "{\"request\":\"stop\"}",
		"{\"request\":\"get\"} {\"request\":\"get\"}", "{\"request\":\"get\"}x",
		"{'request':'get'}", "\xff\xfe", "{\"request\":\"g\xff\"}",
		"[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]",
	};
	char text[128];
	int fd;

	up();
	fd = dial();
	for (size_t k = 0; k < NR(bad); k++) {
		snprintf(text, sizeof(text), "%s\n", bad[k]);
		put(fd, text);
		if (!TAP_CHECK(answered(fd, "request")))
			tap_diag("to: %s", bad[k]);
	}
	/* a NUL ends nothing */
	TAP_EQ(send(fd, "{\"request\":\"get\"}\0{}\n", 21, 0), 21);
	turn();
	TAP_CHECK(answered(fd, "request"));
	put(fd, "{\"request\":\"get\"}\n");
	TAP_CHECK(answered(fd, NULL));
	close(fd);
	down();
}

static void too_long(void)
{
	char text[SERVER_LINE_MAX + 1];
	int fd;

	up();
	fd = dial();
	memset(text, 'a', sizeof(text));
	TAP_CHECK(send(fd, text, sizeof(text), MSG_NOSIGNAL) > 0);
	turn();
	TAP_CHECK(answered(fd, "request"));
	TAP_CHECK(closed(fd));
	close(fd);
	down();
}

static void watch(void)
{
	int fd, other;

	up();
	fd = dial();
	other = dial();
	put(other, "{\"request\":\"get\"}\n");
	TAP_CHECK(answered(other, NULL));
	put(fd, "{\"request\":\"watch\"}\n");
	TAP_CHECK(answered(fd, NULL));
	TAP_CHECK(!line(fd));
	for (unsigned int k = 0; k < 3; k++) {
		server_publish(server);
		TAP_CHECK(answered(fd, NULL));
		TAP_CHECK(!line(fd));
	}
	TAP_CHECK(!line(other));	/* which did not ask for it */
	close(fd);
	turn();
	server_publish(server);
	close(other);
	down();
}

/* A watcher that does not read costs one state, however long it stays. */
static void lazy_watcher(void)
{
	unsigned int asked;
	int fd;

	up();
	padding = 4 << 20;
	fd = dial();
	put(fd, "{\"request\":\"watch\"}\n");
	asked = states;
	for (unsigned int k = 0; k < 100; k++) {
		server_publish(server);
		turn();
	}
	TAP_EQ(states, asked);
	/* nor does one that asks again and again */
	for (unsigned int k = 0; k < 100; k++)
		TAP_CHECK(send(fd, "{\"request\":\"get\"}\n", 18, MSG_NOSIGNAL) > 0);
	turn();
	TAP_EQ(states, asked);
	close(fd);
	turn();
	padding = 0;
	fd = dial();
	put(fd, "{\"request\":\"get\"}\n");
	TAP_CHECK(answered(fd, NULL));
	close(fd);
	down();
}

/* A large answer arrives whole, at the reader's pace. */
static void slow_reader(void)
{
	size_t n = 0;
	char buf[1000];
	int fd;

	up();
	padding = 2 << 20;
	fd = dial();
	put(fd, "{\"request\":\"get\"}\n");
	for (unsigned int k = 0; k < 100000 && n < padding; k++) {
		ssize_t got = recv(fd, buf, sizeof(buf), 0);

		if (got > 0)
			n += (size_t)got;
		else
			turn();
	}
	TAP_CHECK(n > padding);
	while (recv(fd, buf, sizeof(buf), 0) > 0)
		;
	padding = 0;
	put(fd, "{\"request\":\"get\"}\n");
	TAP_CHECK(answered(fd, NULL));
	close(fd);
	down();
}

static void many_clients(void)
{
	int fds[SERVER_CLIENTS + 8];
	unsigned int served = 0;

	up();
	for (size_t k = 0; k < NR(fds); k++) {
		fds[k] = dial();
		turn();
	}
	for (size_t k = 0; k < NR(fds); k++) {
		if (fds[k] < 0)
			continue;
		if (send(fds[k], "{\"request\":\"get\"}\n", 18, MSG_NOSIGNAL) == 18) {
			turn();
			served += k < SERVER_CLIENTS && answered(fds[k], NULL);
		}
	}
	TAP_EQ(served, SERVER_CLIENTS);
	/* those beyond were told so */
	TAP_CHECK(answered(fds[SERVER_CLIENTS], "request"));
	TAP_CHECK(closed(fds[SERVER_CLIENTS]));
	close(fds[0]);
	turn();
	close(fds[SERVER_CLIENTS]);
	fds[0] = dial();
	turn();
	put(fds[0], "{\"request\":\"get\"}\n");
	TAP_CHECK(answered(fds[0], NULL));
	for (size_t k = 0; k < NR(fds); k++)
		if (k != SERVER_CLIENTS)
			close(fds[k]);
	turn();
	down();
}

/* Another user may look, not touch, and not keep others out. */
static void other_user(void)
{
	int status, pipes[2];
	char go;
	pid_t pid;

	if (geteuid())
		TAP_SKIP("needs root to become another user");
	up();
	TAP_NEED(!pipe(pipes));
	pid = fork();
	if (!pid) {
		int fd, crowd[SERVER_CLIENTS];

		if (setgid(65534) || setuid(65534))
			_exit(9);
		fd = dial();
		if (fd < 0)
			_exit(1);
		fcntl(fd, F_SETFL, 0);
		send(fd, "{\"request\":\"get\"}\n", 18, 0);
		if (!answered(fd, NULL))
			_exit(2);
		send(fd, "{\"request\":\"set\",\"settings\":{\"allocator\":\"none\"}}\n", 51, 0);
		if (!answered(fd, "request"))
			_exit(3);
		for (size_t k = 0; k < NR(crowd); k++)
			crowd[k] = dial();
		if (write(pipes[1], "x", 1) != 1)
			_exit(4);
		pause();
	}
	fcntl(pipes[0], F_SETFL, O_NONBLOCK);
	for (unsigned int k = 0; k < 500; k++) {
		server_run(server);
		if (read(pipes[0], &go, 1) == 1)
			break;
		if (waitpid(pid, &status, WNOHANG) == pid) {
			TAP_EQ(WEXITSTATUS(status), 0);
			pid = 0;
			break;
		}
		usleep(2000);
	}
	TAP_STR(config.set.allocator->name, "exact");
	if (pid) {
		int fd = dial();

		turn();
		put(fd, "{\"request\":\"set\",\"settings\":{\"allocator\":\"none\"}}\n");
		TAP_CHECK(answered(fd, NULL));
		TAP_STR(config.set.allocator->name, "none");
		close(fd);
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	close(pipes[0]);
	close(pipes[1]);
	turn();
	down();
}

static void one_only(void)
{
	struct server *second = NULL;
	int fd;

	up();
	TAP_EQ(server_open(&second, path, &ops, NULL, why, sizeof(why)), -EBUSY);
	TAP_CHECK(strstr(why, "another mgpud") && strstr(why, path));
	tap_diag("%s", why);
	/* the first goes on */
	fd = dial();
	put(fd, "{\"request\":\"get\"}\n");
	TAP_CHECK(answered(fd, NULL));
	close(fd);
	down();
	TAP_EQ(access(path, F_OK), -1);
	up();
	TAP_CHECK(server);
	down();
}

static void left_behind(void)
{
	int status, fd;
	pid_t pid = fork();

	if (!pid) {
		up();
		raise(SIGKILL);
	}
	waitpid(pid, &status, 0);
	TAP_EQ(access(path, F_OK), 0);
	up();
	TAP_NEED(server);
	fd = dial();
	put(fd, "{\"request\":\"get\"}\n");
	TAP_CHECK(answered(fd, NULL));
	close(fd);
	down();
}

static void no_socket(void)
{
	char name[512];
	FILE *f = fopen(path, "w");

	TAP_NEED(f);
	fputs("precious", f);
	fclose(f);
	TAP_EQ(server_open(&server, path, &ops, NULL, why, sizeof(why)), -EEXIST);
	tap_diag("%s", why);
	TAP_EQ(access(path, F_OK), 0);
	unlink(path);

	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	TAP_EQ(server_open(&server, name, &ops, NULL, why, sizeof(why)), -ENAMETOOLONG);
	snprintf(name, sizeof(name), "%s/no/such/folder/sock", folder);
	TAP_CHECK(server_open(&server, name, &ops, NULL, why, sizeof(why)) < 0);
	tap_diag("%s", why);
	/* a missing folder is made, as /run/mgpu after a reboot */
	snprintf(name, sizeof(name), "%s/new/sock", folder);
	TAP_EQ(server_open(&server, name, &ops, NULL, why, sizeof(why)), 0);
	down();
	snprintf(name, sizeof(name), "rm -rf %s/new", folder);
	TAP_EQ(system(name), 0);
}

static int parse(struct config *c, const char *name, const char *value,
		 struct settings_error *err)
{
	return table_parse(c, table_name(name), name, value, err);
}

static void command_line(void)
{
	struct config c;
	struct settings_error err;
	static const char *const bad[][2] = {
		{ "headroom", "1" }, { "headroom", "x" },
		{ "period_ms", "" }, { "period_ms", "1s" }, { "period_ms", "0x" },
		{ "iterations", "10 " }, { "iterations", "1e400" }, { "beta", "nan" },
		{ "beta", "two" }, { "lambda", "inf" }, { "allocator", "" },
		{ "period_ms", "-1000" },
	};

	config_default(&c);
	TAP_EQ(settings_check(&c.set, &err), 0);
	TAP_EQ(parse(&c, "allocator", "none", &err), 0);
	TAP_EQ(parse(&c, "period_ms", "250", &err), 0);
	TAP_EQ(parse(&c, "beta", "0.5", &err), 0);
	TAP_EQ(settings_check(&c.set, &err), -EINVAL);	/* together with lambda < 0 */
	TAP_EQ(parse(&c, "lambda", "1", &err), 0);
	TAP_EQ(settings_check(&c.set, &err), 0);
	TAP_EQ(c.set.period_ms, 250);
	for (size_t k = 0; k < NR(bad); k++) {
		struct config before = c;

		err.text[0] = '\0';
		TAP_EQ(parse(&c, bad[k][0], bad[k][1], &err), -EINVAL);
		TAP_STR(err.key, bad[k][0]);
		TAP_CHECK(strlen(err.text) > 10);
		TAP_MEM(&c, &before, sizeof(c));
	}
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	strcpy(folder, "/tmp/test-mgpud-XXXXXX");
	if (!mkdtemp(folder))
		return 1;
	chmod(folder, 0755);
	snprintf(path, sizeof(path), "%s/sock", folder);

	tap_run(get, "get answers, whole lines or pieces");
	tap_run(set, "set changes settings");
	tap_run(set_preempt, "set changes settings of preemption, alone and with others");
	tap_run(set_wrong, "wrong settings change nothing and are named");
	tap_run(agreements, "agreements are set, one by one and for all others");
	tap_run(events, "events go to watchers, one line each, in order");
	tap_run(events_lost, "a watcher that does not read is told that it lost events");
	tap_run(nonsense, "nonsense is refused and the connection goes on");
	tap_run(too_long, "a line without end is refused");
	tap_run(watch, "watch sends one state per period");
	tap_run(lazy_watcher, "a client that does not read costs one answer");
	tap_run(slow_reader, "a slow reader gets a large answer whole");
	tap_run(many_clients, "the number of clients is bounded");
	tap_run(other_user, "another user may look, not set, and not crowd out root");
	tap_run(one_only, "a second mgpud is refused");
	tap_run(left_behind, "a socket that a killed mgpud left is replaced");
	tap_run(no_socket, "a path that cannot be used is refused with a reason");
	tap_run(command_line, "settings from text");

	snprintf(why, sizeof(why), "rm -rf %s", folder);
	if (system(why))
		return 1;
	return tap_done();
}
