// SPDX-License-Identifier: GPL-2.0-only
/* mgpud's socket, over real sockets, and the settings that come over it. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <json-c/json.h>

#include "clock.h"
#include "config/table.h"
#include "server/budget.h"
#include "server/server.h"
#include "tap.h"

#define NR(a)	(sizeof(a) / sizeof((a)[0]))

static char folder[64], path[96], why[256];
static struct config config;
static struct server *server;
static size_t padding;		/* bytes that make the state large */
static unsigned int states;	/* how often it was asked for */
static struct peer changer;	/* peer of the last change */
static uint64_t ticket;		/* of the next change */
static const char *warning;	/* of the next change */
static struct estimate estimate;	/* vGPUs whose own settings count */

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

static void on_fresh(void *arg, char *text, size_t size)
{
	static unsigned int calls;

	(void)arg;
	snprintf(text, size, "\"calls\":%u", ++calls);
}

static int on_change(void *arg, const struct peer *peer, enum server_change what,
		     struct json_object *value, uint64_t *wait, struct settings_error *err)
{
	(void)arg;
	changer = *peer;
	if (what == SERVER_RESET) {
		config_free(&config);
		config_default(&config);
		return 0;
	}
	*wait = ticket;
	snprintf(err->text, sizeof(err->text), "%s", warning);
	return table_json(&config, &estimate, value, err);
}

static const struct server_ops ops = {
	.name = "mgpud",
	.state = on_state, .fresh = on_fresh, .change = on_change,
};

static void open_to(bool everyone)
{
	const struct access access = { .gid = getegid(), .everyone = everyone };

	TAP_EQ(server_access(server, &access, why, sizeof(why)), 0);
}

static void up(void)
{
	config_default(&config);
	padding = 0;
	states = 0;
	ticket = 0;
	warning = "";
	if (server_open(&server, path, &ops, NULL, why, sizeof(why))) {
		tap_diag("%s", why);
		server = NULL;
		return;
	}
	open_to(true);
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

	for (unsigned int k = 0; k < 5000; k++) {
		if (poll(&p, 1, server_rests(server) ? 1000 : 5) <= 0)
			break;
		server_run(server);
	}
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
	TAP_STR(text, "allocator=exact period_ms=1000 iterations=10 headroom=2 beta=2 lambda=-0.5 preempt=mgpu preempt_cost=fit preempt_decay_compute=1 preempt_decay_memory=0.9 preempt_class_threshold=0.5 preempt_starve_ms=500 preempt_min_gain=0.02 model=static model_mode=auto model_max_age_days=0");
	fd = dial();
	/* with others, in any order */
	put(fd, "{\"request\":\"set\",\"settings\":{\"preempt\":\"drain\",\"allocator\":\"fea\",\"preempt_cost\":\"0.25,0.5\",\"preempt_decay_compute\":0.75,\"preempt_decay_memory\":0.5,\"period_ms\":500,\"preempt_class_threshold\":0.25,\"preempt_starve_ms\":12.5,\"preempt_min_gain\":0,\"model\":\"smoothing\",\"model_mode\":\"act\",\"model_max_age_days\":30}}\n");
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
	TAP_STR(config.model.use, "smoothing");
	TAP_EQ(config.model.mode, CONFIG_MODEL_ACT);
	TAP_EQ(config.model.max_age_days, 30);
	table_all(&config, text);
	TAP_STR(text, "allocator=fea period_ms=500 iterations=10 headroom=2 beta=2 lambda=-0.5 preempt=drain preempt_cost=0.25,0.5 preempt_decay_compute=0.75 preempt_decay_memory=0.5 preempt_class_threshold=0.25 preempt_starve_ms=12.5 preempt_min_gain=0 model=smoothing model_mode=act model_max_age_days=30");
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

/* A new agreement takes over a floor that is a setting of the vGPU. */
static void agreements_take_over(void)
{
	struct estimate_vgpu v = { .last = { .id = 7, .uuid = A, .fps_floor = 20000 } };
	struct sla sla;
	int fd;

	up();
	estimate = (struct estimate){ .vgpus = &v, .nr_vgpus = 1 };
	fd = dial();
	put(fd, SLA "\"default\":{\"floor\":5,\"ceiling\":60},\"" A "\":{\"ceiling\":50}}}}\n");
	TAP_CHECK(answered(fd, NULL));
	sla = *settings_sla(&config.set, A);
	TAP_NEAR(sla.floor, 20, 0);
	TAP_NEAR(sla.ceiling, 50, 0);
	/* its own agreement counts from then on */
	v.last.fps_floor = 30000;
	put(fd, SLA "\"" A "\":{\"ceiling\":25}}}}\n");
	TAP_CHECK(answered(fd, NULL));
	TAP_NEAR(settings_sla(&config.set, A)->floor, 20, 0);
	put(fd, SLA "\"" A "\":null}}}\n");
	TAP_CHECK(answered(fd, NULL));
	/* the floor that stays is above this ceiling */
	put(fd, SLA "\"" A "\":{\"ceiling\":25}}}}\n");
	TAP_CHECK(answered(fd, "floor"));
	TAP_EQ(config.set.nr_vgpus, 0);
	put(fd, SLA "\"" A "\":{\"floor\":null,\"ceiling\":25}}}}\n");
	TAP_CHECK(answered(fd, NULL));
	TAP_NEAR(settings_sla(&config.set, A)->floor, 0, 0);
	TAP_NEAR(settings_sla(&config.set, A)->ceiling, 25, 0);
	close(fd);
	estimate = (struct estimate){ 0 };
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
	turn();
	TAP_STR(line(fd), "{\"event\":\"sla-shortfall\",\"id\":0}\n");
	TAP_STR(line(fd), "{\"event\":\"sla-shortfall\",\"id\":1}\n");
	TAP_STR(line(fd), "{\"event\":\"sla-shortfall\",\"id\":2}\n");
	TAP_CHECK(!line(fd) && !line(other));
	server_event(server, NULL);		/* out of memory */
	turn();
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
			lost += !strcmp(text, "{\"version\":1,\"event\":\"lost\"}\n");
		}
	}
	TAP_CHECK(got > 100 && got * 33 <= SERVER_EVENTS_MAX + 33);
	TAP_EQ(lost, 1);
	/* and from then on it gets them again */
	server_event(server, event(7));
	turn();
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
		server_publish(server, true);
		turn();
		TAP_CHECK(answered(fd, NULL));
		TAP_CHECK(!line(fd));
	}
	TAP_CHECK(!line(other));	/* which did not ask for it */
	close(fd);
	turn();
	server_publish(server, true);
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
		server_publish(server, true);
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
	server_publish(server, true);
	put(fd, "{\"request\":\"get\"}\n");
	TAP_CHECK(answered(fd, NULL));
	close(fd);
	down();
}

/* Members that change within a period are new in each answer, the others are made once. */
static void once_per_period(void)
{
	static const char before[] = "{\"ok\":true,\"state\":{\"calls\":";
	unsigned int calls = 0, k;
	int fds[4];
	char *text;

	up();
	for (k = 0; k < NR(fds); k++)
		fds[k] = dial();
	for (unsigned int round = 0; round < 3; round++) {
		for (k = 0; k < NR(fds); k++) {
			unsigned int now = 0;

			put(fds[k], "{\"request\":\"get\"}\n");
			text = line(fds[k]);
			TAP_NEED(text);
			TAP_CHECK(!strncmp(text, before, strlen(before)));
			now = (unsigned int)strtoul(text + strlen(before), NULL, 10);
			TAP_CHECK(now > calls);
			calls = now;
		}
		TAP_EQ(states, round + 1);
		server_publish(server, true);
		turn();
		TAP_EQ(states, round + 1);	/* without a watcher, not before it is asked for */
	}
	/* but what was changed is seen at once */
	put(fds[0], "{\"request\":\"set\",\"settings\":{\"period_ms\":700}}\n");
	text = line(fds[0]);
	TAP_CHECK(text && strstr(text, "\"period_ms\":700"));
	put(fds[1], "{\"request\":\"get\"}\n");
	text = line(fds[1]);
	TAP_CHECK(text && strstr(text, "\"period_ms\":700"));
	TAP_EQ(states, 4);
	for (k = 0; k < NR(fds); k++)
		close(fds[k]);
	down();
}

/* However much a client sends, each turn answers one of its requests. */
static void one_per_turn(void)
{
	struct pollfd p;
	int fd, other;

	up();
	fd = dial();
	other = dial();
	turn();
	for (unsigned int k = 0; k < 20; k++)
		TAP_EQ(send(fd, "{\"request\":\"get\"}\n", 18, 0), 18);
	TAP_EQ(send(other, "{\"request\":\"get\"}\n", 18, 0), 18);
	for (unsigned int k = 0; k < 20; k++) {
		p = (struct pollfd){ .fd = server_fd(server), .events = POLLIN };
		TAP_EQ(poll(&p, 1, 10000), 1);
		server_run(server);
		TAP_CHECK(answered(fd, NULL));
		TAP_CHECK(!line(fd));
		if (!k)
			TAP_CHECK(answered(other, NULL));
	}
	turn();
	TAP_CHECK(!line(fd));
	close(fd);
	close(other);
	down();
}

/* The answer to a change may wait, while others are answered. */
static void later(void)
{
	static const char said[] =
		"{\"ok\":true,\"warning\":\"it \\\"holds\\\" until the restart\",\"state\":{";
	int fd, other, gone;
	char *text;

	up();
	fd = dial();
	other = dial();
	gone = dial();
	ticket = 7;
	put(fd, "{\"request\":\"set\",\"settings\":{\"period_ms\":700}}\n{\"request\":\"get\"}\n");
	ticket = 8;
	put(gone, "{\"request\":\"set\",\"settings\":{\"period_ms\":800}}\n");
	TAP_CHECK(!line(fd) && !line(gone));
	put(other, "{\"request\":\"get\"}\n");
	text = line(other);
	TAP_CHECK(text && strstr(text, "\"period_ms\":800"));
	/* one that hangs up while it waits */
	close(gone);
	turn();
	server_done(server, 6, "");
	turn();
	TAP_CHECK(!line(fd));
	server_done(server, 7, "it \"holds\" until the restart");
	turn();
	text = line(fd);
	TAP_CHECK(text && !strncmp(text, said, strlen(said)));
	TAP_CHECK(answered(fd, NULL));
	TAP_CHECK(!line(fd));
	/* or the warning is known at once */
	ticket = 0;
	warning = "not for long";
	put(fd, "{\"request\":\"set\",\"settings\":{\"period_ms\":900}}\n");
	text = line(fd);
	TAP_CHECK(text && strstr(text, "\"warning\":\"not for long\""));
	warning = "";
	put(fd, "{\"request\":\"reset\"}\n{\"request\":\"reset\",\"keys\":[\"period_ms\"]}\n");
	TAP_CHECK(answered(fd, NULL) && answered(fd, NULL));
	TAP_EQ(config.set.period_ms, 1000);
	TAP_EQ(changer.uid, geteuid());
	TAP_EQ(changer.pid, getpid());
	close(fd);
	close(other);
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

/* ---- other users ---- */

#define GROUP	12345

/**
 * struct user - a process of another user
 * @pid: its process ID
 * @hears: end of a pipe that tells what it did
 */
struct user {
	pid_t pid;
	int hears;
};

/* Have another user run @act, which writes to the file descriptor it gets. */
static struct user begin(uid_t uid, gid_t gid, gid_t more, void (*act)(int say))
{
	struct user u;
	int pipes[2];

	if (pipe(pipes))
		abort();
	fflush(stdout);
	u.pid = fork();
	if (!u.pid) {
		if (setgroups(1, &more) || setgid(gid) || setuid(uid))
			_exit(9);
		act(pipes[1]);
		_exit(0);
	}
	close(pipes[1]);
	fcntl(pipes[0], F_SETFL, O_NONBLOCK);
	u.hears = pipes[0];
	return u;
}

/* Serve until the user says something; returns that, or 0 if it has ended. */
static char hear(const struct user *u)
{
	struct pollfd p[] = {
		{ .fd = server_fd(server), .events = POLLIN },
		{ .fd = u->hears, .events = POLLIN },
	};
	char c;

	for (;;) {
		if (poll(p, 2, -1) < 0)
			return 0;
		if (p[0].revents)
			server_run(server);
		if (p[1].revents)
			return read(u->hears, &c, 1) == 1 ? c : 0;
	}
}

static void end(struct user *u)
{
	int status;

	kill(u->pid, SIGKILL);
	waitpid(u->pid, &status, 0);
	close(u->hears);
}

static int dial_and_wait(void)
{
	int fd = dial();

	if (fd >= 0)
		fcntl(fd, F_SETFL, 0);
	return fd;
}

/* Say "-" if it cannot connect, else "g" or "G" and "s" or "S": it may not or may get, set. */
static void try_all(int say)
{
	int fd = dial_and_wait();
	const char *what = "-";

	if (fd >= 0) {
		send(fd, "{\"request\":\"get\"}\n", 18, 0);
		what = answered(fd, NULL) ? "G" : "g";
		if (write(say, what, 1) != 1)
			return;
		send(fd, "{\"request\":\"set\",\"settings\":{\"allocator\":\"none\"}}\n", 51, 0);
		what = answered(fd, NULL) ? "S" : "s";
	}
	if (write(say, what, 1) != 1)
		return;
	/* the other end reads who this is */
	pause();
}

static const char *may(uid_t uid, gid_t gid, gid_t more)
{
	static char heard[3];
	struct user u = begin(uid, gid, more, try_all);

	memset(heard, 0, sizeof(heard));
	heard[0] = hear(&u);
	if (heard[0] != '-')
		heard[1] = hear(&u);
	if (heard[1] == 'S') {
		TAP_EQ(changer.uid, uid);
		TAP_EQ(changer.pid, u.pid);
	}
	end(&u);
	return heard;
}

/* Say "G" when the state was read, and "e" when the connection has ended. */
static void stay(int say)
{
	int fd = dial_and_wait();
	char c;

	send(fd, "{\"request\":\"watch\"}\n", 20, 0);
	if (!answered(fd, NULL) || write(say, "G", 1) != 1)
		return;
	while (recv(fd, &c, 1, 0) == 1)
		;
	if (write(say, "e", 1) == 1)
		pause();
}

static void users(void)
{
	const struct access group = { .gid = GROUP };
	struct user reader, member;
	struct stat st;
	char c;

	if (geteuid())
		TAP_SKIP("needs root to become another user");
	up();
	TAP_EQ(server_access(server, &group, why, sizeof(why)), 0);
	TAP_EQ(stat(path, &st), 0);
	TAP_EQ(st.st_mode & 0777, 0660);
	TAP_EQ(st.st_gid, GROUP);
	TAP_STR(may(1001, GROUP, 1001), "GS");
	TAP_STR(config.set.allocator->name, "none");
	TAP_STR(may(1002, 1002, GROUP), "GS");
	TAP_STR(may(1003, 1003, 1003), "-");
	down();

	up();
	open_to(true);
	TAP_EQ(stat(path, &st), 0);
	TAP_EQ(st.st_mode & 0777, 0666);
	TAP_STR(may(1003, 1003, 1003), "Gs");
	TAP_STR(config.set.allocator->name, "exact");
	/* a member of the socket's group, which is root's */
	TAP_STR(may(1004, 1004, getegid()), "GS");
	/* those that may read no more are disconnected, and the others are not */
	turn();		/* a process that is forked holds connections that end after it */
	member = begin(1001, GROUP, 1001, stay);
	TAP_EQ(hear(&member), 'G');
	reader = begin(1003, 1003, 1003, stay);
	TAP_EQ(hear(&reader), 'G');
	TAP_EQ(server_access(server, &group, why, sizeof(why)), 0);
	server_publish(server, true);
	TAP_EQ(hear(&reader), 'e');
	turn();
	TAP_EQ(read(member.hears, &c, 1), -1);
	end(&reader);
	end(&member);
	down();
}

/* The group may be any that exists; the default one need not. */
static void groups(void)
{
	gid_t gid = 1, own = geteuid() ? getegid() : 0;

	TAP_EQ(access_group("root", &gid, why, sizeof(why)), 0);
	TAP_EQ(gid, 0);
	gid = 1;
	TAP_EQ(access_group("no-such-group", &gid, why, sizeof(why)), -ENOENT);
	TAP_EQ(gid, own);
	TAP_CHECK(strstr(why, "no-such-group") && strstr(why, "groupadd"));
	gid = 1;
	TAP_EQ(access_group(ACCESS_AUTO, &gid, why, sizeof(why)), 0);
	if (!getgrnam(ACCESS_GROUP))
		TAP_EQ(gid, own);
	else
		TAP_EQ(gid, getgrnam(ACCESS_GROUP)->gr_gid);
}

/* Connect far more often than is allowed, and say how many were answered. */
static void crowd(int say)
{
	int fds[3 * SERVER_UID_CLIENTS];
	char n = 0, *text;

	for (size_t k = 0; k < NR(fds); k++) {
		fds[k] = dial_and_wait();
		if (fds[k] < 0)
			_exit(1);
		/* one that is refused was told so, and is closed */
		if (send(fds[k], "{\"request\":\"get\"}\n", 18, MSG_NOSIGNAL) != 18)
			continue;
		text = line(fds[k]);
		n = (char)(n + (text && !strncmp(text, "{\"ok\":true", 10)));
	}
	if (write(say, &n, 1) == 1)
		pause();
}

/* A user cannot take all places, nor many users those of root and the group. */
static void crowds(void)
{
	enum { USERS = SERVER_CLIENTS / SERVER_UID_CLIENTS };
	const struct access access = { .gid = GROUP, .everyone = true };
	struct user u[USERS];
	int fds[4];

	if (geteuid())
		TAP_SKIP("needs root to become another user");
	up();
	TAP_EQ(server_access(server, &access, why, sizeof(why)), 0);
	for (unsigned int k = 0; k < USERS; k++) {
		u[k] = begin(2000 + k, 2000, 2000, crowd);
		TAP_EQ(hear(&u[k]), SERVER_UID_CLIENTS);
	}
	/* all places are taken: those that matter more displace others */
	for (size_t k = 0; k < NR(fds); k++) {
		fds[k] = dial();
		put(fds[k], "{\"request\":\"get\"}\n");
		TAP_CHECK(answered(fds[k], NULL));
	}
	TAP_STR(may(1001, GROUP, 1001), "GS");
	/* and a user that has none yet displaces one of those that have many */
	TAP_STR(may(1003, 1003, 1003), "Gs");
	for (size_t k = 0; k < NR(fds); k++) {
		put(fds[k], "{\"request\":\"get\"}\n");
		TAP_CHECK(answered(fds[k], NULL));
		close(fds[k]);
	}
	for (unsigned int k = 0; k < USERS; k++)
		end(&u[k]);
	down();
}

/* ---- floods ---- */

/* Ask, send half lines, connect again, and do not read; as fast as it can. */
static void flood(int say)
{
	char half[100], c;
	int get = dial(), lazy = dial();

	memset(half, 'x', sizeof(half));
	if (write(say, "x", 1) != 1)
		return;
	for (;;) {
		int again = dial(), i;

		send(get, "{\"request\":\"get\"}\n", 18, MSG_NOSIGNAL | MSG_DONTWAIT);
		send(lazy, "{\"request\":\"watch\"}\n", 20, MSG_NOSIGNAL | MSG_DONTWAIT);
		for (i = 0; i < 3 && again >= 0; i++)
			send(again, half, sizeof(half), MSG_NOSIGNAL | MSG_DONTWAIT);
		if (again >= 0)
			close(again);
		while (recv(get, &c, 1, MSG_DONTWAIT) == 1)
			;
	}
}

/*
 * All that a user sends costs a bounded part of the time. The server ran as often as
 * there was work, which a server without a limit would have done all the time.
 */
static void floods(void)
{
	enum { USERS = 4, RESTS = 10 };
	uint64_t cpu = 0, begun, took;
	unsigned int rests = 0, served = 0;
	struct user u[USERS];
	bool rested = false;
	char text[4096];
	int fd;

	if (geteuid())
		TAP_SKIP("needs root to become another user");
	up();
	padding = 100000;
	fd = dial();
	turn();
	begun = clock_ns(CLOCK_MONOTONIC);
	for (unsigned int k = 0; k < USERS; k++) {
		u[k] = begin(3000 + k, 3000, 3000, flood);
		hear(&u[k]);
	}
	while (rests < RESTS) {
		struct pollfd p = { .fd = server_fd(server), .events = POLLIN };
		uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);

		TAP_NEED(poll(&p, 1, 10000) == 1);
		server_run(server);
		cpu += clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
		rests += !rested && server_rests(server);
		rested = server_rests(server);
		/* root is answered although the others must wait */
		while (recv(fd, text, sizeof(text), 0) > 0)
			served += rested && !!memchr(text, '{', 20);
		if (rested)
			send(fd, "{\"request\":\"get\"}\n", 18, MSG_NOSIGNAL);
		server_publish(server, true);
	}
	took = clock_ns(CLOCK_MONOTONIC) - begun;
	tap_diag("%.1f %% of the time for 4 users that flood", 100.0 * (double)cpu / (double)took);
	TAP_CHECK(served > RESTS / 2);
	/* the parts of all others and of root, which asks in each rest, and their bursts */
	TAP_CHECK(cpu < took * 3 / 5);
	for (unsigned int k = 0; k < USERS; k++)
		end(&u[k]);
	close(fd);
	down();
}

/* Whatever single pieces of work take, together they take their part. */
static void budgets(void)
{
	struct budget b;
	uint64_t now = 1000, spent = 0, begun = now;
	unsigned int rests = 0;

	budget_init(&b, 50, 20000000, 1000000, now);
	TAP_CHECK(budget_allows(&b, now));
	TAP_EQ(budget_rest_ns(&b, now), 0);
	for (unsigned int k = 0; k < 20000; k++) {
		uint64_t work = 1 + k * 7919 % 3000000;

		if (!budget_allows(&b, now)) {
			uint64_t rest = budget_rest_ns(&b, now);

			/* then it goes on, and not a nanosecond of CPU time before */
			TAP_CHECK(rest > 0);
			TAP_CHECK(!budget_allows(&b, now + rest - 100));
			now += rest;
			TAP_CHECK(budget_allows(&b, now));
			rests++;
		}
		budget_charge(&b, work);
		spent += work;
		now += work;
	}
	TAP_CHECK(rests > 5000);
	TAP_CHECK(spent <= (now - begun) / 50 + 20000000 + 3000000);
	TAP_CHECK(spent >= (now - begun) / 51);
	/* what is not used is lost beyond the burst */
	now += 1000000000000ULL;
	TAP_CHECK(budget_allows(&b, now));
	TAP_EQ(b.level_ns, 20000000);
	/* small steps of time count in full */
	budget_charge(&b, 20000000);
	for (unsigned int k = 0; k < 1000; k++)
		budget_allows(&b, now += 7);
	TAP_EQ(b.level_ns, 7000 / 50);
	/* a clock that stands still changes nothing */
	budget_allows(&b, now - 5000);
	TAP_EQ(b.level_ns, 7000 / 50);
	/* a virtual processor that stood still amid a request does not silence mgpud: the rest is
	 * shorter than a client's patience of 5 s
	 */
	for (unsigned int k = 0; k < 3; k++)
		budget_charge(&b, 10000000000ULL);
	TAP_EQ(b.level_ns, -20000000);
	TAP_CHECK(budget_rest_ns(&b, now) <= 50 * 21000000ULL);
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
	tap_run(agreements_take_over, "a new agreement takes over the floor that the vGPU's setting has");
	tap_run(events, "events go to watchers, one line each, in order");
	tap_run(events_lost, "a watcher that does not read is told that it lost events");
	tap_run(nonsense, "nonsense is refused and the connection goes on");
	tap_run(too_long, "a line without end is refused");
	tap_run(watch, "watch sends one state per period");
	tap_run(lazy_watcher, "a client that does not read costs one answer");
	tap_run(slow_reader, "a slow reader gets a large answer whole");
	tap_run(once_per_period, "the state is made once per period, and after a change");
	tap_run(one_per_turn, "each turn answers one request of a client");
	tap_run(later, "a change is answered when it is kept, with a warning if it is not");
	tap_run(many_clients, "the number of clients is bounded");
	tap_run(users, "root and the group may change settings, others look if they may");
	tap_run(groups, "the socket's group is one that exists");
	tap_run(crowds, "no user takes the places of others");
	tap_run(budgets, "a budget bounds work, whatever its pieces take");
	tap_run(floods, "users that flood the socket take a bounded part of the time");
	tap_run(one_only, "a second mgpud is refused");
	tap_run(left_behind, "a socket that a killed mgpud left is replaced");
	tap_run(no_socket, "a path that cannot be used is refused with a reason");
	tap_run(command_line, "settings from text");

	snprintf(why, sizeof(why), "rm -rf %s", folder);
	if (system(why))
		return 1;
	return tap_done();
}
