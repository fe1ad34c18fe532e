// SPDX-License-Identifier: GPL-2.0-only
/*
 * The channel between mgpu-agent and mgpu-poold, both sides in one process over loopback: the
 * real pool and store, the real connection of the agent, and clients and services that lie.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent.h"
#include "clock.h"
#include "link.h"
#include "tap.h"

#define T0	1800000000

/**
 * struct world - a service with two VMs of one project, and a whole GPU
 * @listen: address to listen at
 * @lock: of all but @stop; the service's thread and the test take turns
 * @jobs: jobs that the pool began
 */
static struct world {
	char dir[64];
	struct store *store;
	struct pool *pool;
	struct agent *agent;
	struct agent_setup setup;
	pthread_mutex_t lock;
	pthread_t thread;
	int wake[2];
	atomic_bool stop;
	atomic_bool begin_fails;
	atomic_bool commit_fails;
	int64_t now;
	struct pool_job job;
	unsigned int jobs;
	char events[4096];
	const char *listen;
	char where[64];
	struct conf conf[3];
	struct link link[3];
} w = { .lock = PTHREAD_MUTEX_INITIALIZER, .now = T0, .listen = "127.0.0.1:0" };

static const char *const names[] = { "a", "b", "c" };

/*
 * This thread holds the lock, so that the service cannot answer.  The next poll() that waits
 * releases it, and is interrupted after its time, with the answer there.
 */
static _Thread_local bool late_poll;

int __real_poll(struct pollfd *fds, nfds_t nr, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout_ms);

int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout_ms)
{
	if (!late_poll || timeout_ms <= 0)
		return __real_poll(fds, nr, timeout_ms);
	late_poll = false;
	pthread_mutex_unlock(&w.lock);
	usleep((useconds_t)timeout_ms * 1000);
	__real_poll(fds, nr, -1);
	errno = EINTR;
	return -1;
}

/* ---- the service ---- */

static int on_store(void *arg, const struct pool_request *r)
{
	(void)arg;
	return store_put_request(w.store, r);
}

static int on_add(void *arg, struct pool_request *r)
{
	(void)arg;
	return store_add_request(w.store, r);
}

static int on_outcome(void *arg, const struct pool_outcome *outcome)
{
	(void)arg;
	return store_add_outcome(w.store, outcome);
}

static void on_event(void *arg, const struct pool_event *event)
{
	size_t at = strlen(w.events);

	(void)arg;
	snprintf(w.events + at, sizeof(w.events) - at, "%s %s\n", event->actor, event->what);
}

static int on_begin(void *arg)
{
	(void)arg;
	return w.begin_fails ? -EIO : store_begin(w.store);
}

static int on_commit(void *arg)
{
	(void)arg;
	if (w.commit_fails)
		store_rollback(w.store);
	return w.commit_fails ? -EIO : store_commit(w.store);
}

static void on_job(void *arg, const struct pool_job *job)
{
	(void)arg;
	w.job = *job;
	w.jobs++;
}

static void wake_service(void)
{
	TAP_EQ(write(w.wake[1], "", 1), 1);
}

static void *serve(void *arg)
{
	char byte;

	while (!w.stop) {
		struct pollfd p[] = { { .fd = agent_fd(w.agent), .events = POLLIN },
				      { .fd = w.wake[0], .events = POLLIN } };

		poll(p, 2, -1);
		if (p[1].revents && read(w.wake[0], &byte, 1) != 1)
			break;
		pthread_mutex_lock(&w.lock);
		agent_handle(w.agent, w.now);
		pthread_mutex_unlock(&w.lock);
	}
	return arg;
}

/* Have the agents connect to a listener, which is at the loopback address. */
static void set_where(int listener)
{
	struct sockaddr_in at;
	socklen_t size = sizeof(at);

	getsockname(listener, (struct sockaddr *)&at, &size);
	snprintf(w.where, sizeof(w.where), "127.0.0.1:%u", ntohs(at.sin_port));
}

static void start(void)
{
	char text[POOL_TEXT_MAX] = "";

	w.setup.listeners[0] = agent_listen(w.listen, text);
	w.setup.nr_listeners = 1;
	if (!TAP_CHECK(w.setup.listeners[0] >= 0))
		tap_diag("%s", text);
	set_where(w.setup.listeners[0]);
	w.agent = agent_new(&w.setup, text);
	if (!TAP_CHECK(w.agent))
		tap_diag("%s", text);
	w.stop = false;
	TAP_EQ(pthread_create(&w.thread, NULL, serve, NULL), 0);
}

static void halt(void)
{
	w.stop = true;
	wake_service();
	pthread_join(w.thread, NULL);
	agent_free(w.agent);
	w.agent = NULL;
}

static void connect_links(void)
{
	for (int i = 0; i < 3; i++) {
		struct conf *c = &w.conf[i];

		strcpy(c->vm, names[i]);
		memset(c->key, 0x40 + i, sizeof(c->key));
		strcpy(c->services[0], w.where);
		c->nr_services = 1;
		link_free(&w.link[i]);
		TAP_EQ(link_init(&w.link[i], c, -1), 0);
	}
}

/* VMs a and b have keys, c has none. */
static void add_objects(void)
{
	struct pool_project project = { .name = "p", .weight = 1 };
	struct pool_host host = { .name = "h" };
	struct pool_gpu gpu = {
		.name = "h/0000:41:00.0", .host = "h", .addr = "0000:41:00.0",
		.functions = { "0000:41:00.0" }, .nr_functions = 1, .group = 7,
		.target = POOL_WHOLE, .model = "m", .slots = 1, .memory_mib = 8192,
		.capabilities = POOL_3D | POOL_COMPUTE, .present = true,
	};
	unsigned char key[32];

	TAP_EQ(store_put_project(w.store, &project), 0);
	TAP_EQ(pool_put_project(w.pool, &project), 0);
	pool_host_up(w.pool, host.name, true);
	for (int i = 0; i < 3; i++) {
		struct pool_vm vm = { .host = "h", .uuid = "u", .project = "p" };

		strcpy(vm.name, names[i]);
		memset(key, 0x40 + i, sizeof(key));
		TAP_EQ(store_put_vm(w.store, &vm), 0);
		TAP_EQ(pool_put_vm(w.pool, &vm), 0);
		if (i < 2)
			TAP_EQ(store_put_vm_key(w.store, vm.name, key), 0);
	}
	TAP_EQ(store_put_gpu(w.store, &gpu), 0);
	TAP_EQ(pool_put_gpu(w.pool, &gpu), 0);
}

static void begin_with(const struct agent_limits *limits)
{
	static const struct pool_hooks hooks = {
		.store_request = on_store, .add_request = on_add, .outcome = on_outcome,
		.event = on_event, .job = on_job,
	};
	struct pool_settings settings;
	char text[POOL_TEXT_MAX] = "", url[128];

	strcpy(w.dir, "/tmp/test_pool_agent.XXXXXX");
	TAP_CHECK(mkdtemp(w.dir));
	snprintf(url, sizeof(url), "sqlite:%s/db", w.dir);
	if (!TAP_EQ(store_open(url, &w.store, text), 0))
		tap_diag("%s", text);
	pool_settings_default(&settings);
	w.pool = pool_new(&settings, &hooks);
	add_objects();
	for (int i = 0; i < 3; i++)
		w.link[i].fd = -1;
	TAP_EQ(pipe2(w.wake, O_CLOEXEC), 0);
	w.setup = (struct agent_setup){
		.pool = w.pool, .store = w.store, .event = on_event, .begin = on_begin,
		.commit = on_commit,
	};
	w.setup.limits = *limits;
	start();
	connect_links();
}

static void begin(void)
{
	struct agent_limits limits;

	agent_limits_default(&limits);
	/* All clients of a test are one peer. */
	limits.opens = 10000;
	limits.messages = limits.changes = 10000;
	begin_with(&limits);
}

static void finish(void)
{
	char command[128];

	for (int i = 0; i < 3; i++)
		link_free(&w.link[i]);
	halt();
	pool_free(w.pool);
	store_close(w.store);
	close(w.wake[0]);
	close(w.wake[1]);
	snprintf(command, sizeof(command), "rm -r %s", w.dir);
	TAP_EQ(system(command), 0);
}

static struct agent_counts counts(void)
{
	struct agent_counts c;

	pthread_mutex_lock(&w.lock);
	agent_counts(w.agent, &c);
	pthread_mutex_unlock(&w.lock);
	return c;
}

/* Wait until the service has closed all but @nr connections. */
static bool settled(unsigned int nr)
{
	for (int i = 0; i < 2000; i++) {
		if (counts().connections == nr)
			return true;
		usleep(5000);
	}
	return false;
}

/* ---- the agent ---- */

static const char *get(int vm, const char *name)
{
	const char *value = wire_get(&w.link[vm].answer, name);

	return value ? value : "";
}

/* Ask, and return the error's word, "" for none, or the link's error. */
static const char *ask(int vm)
{
	int ret = link_ask(&w.link[vm], 20);

	return ret ? strerror(-ret) : link_code(&w.link[vm]);
}

/* Ask for the list, and return the link's error. */
static int list_error(int vm)
{
	wire_begin(&w.link[vm].out, "list");
	return link_ask(&w.link[vm], 20);
}

static const char *list(int vm)
{
	wire_begin(&w.link[vm].out, "list");
	return ask(vm);
}

static void write_request(struct wire_text *t, const char *key)
{
	wire_begin(t, "request");
	wire_add(t, "key", key);
	wire_add(t, "kind", "training");
}

static const char *request(int vm, const char *key)
{
	write_request(&w.link[vm].out, key);
	return ask(vm);
}

static const char *verb(int vm, const char *name, uint64_t id)
{
	wire_begin(&w.link[vm].out, name);
	wire_add_number(&w.link[vm].out, "id", id);
	return ask(vm);
}

/* Write a message that waits until a request is not of the version any more. */
static void write_wait(struct wire_text *t, uint64_t id, uint64_t seconds, const char *seen)
{
	wire_begin(t, "state");
	wire_add_number(t, "id", id);
	wire_add_number(t, "wait", seconds);
	wire_add(t, "seen", seen);
}

static const char *report(int vm, uint64_t id, uint64_t busy_ns, uint64_t memory_mib)
{
	wire_begin(&w.link[vm].out, "use");
	wire_add_number(&w.link[vm].out, "id", id);
	wire_add_number(&w.link[vm].out, "busy_ns", busy_ns);
	wire_add_number(&w.link[vm].out, "memory_mib", memory_mib);
	return ask(vm);
}

static const char *consent(int vm, const char *value)
{
	wire_begin(&w.link[vm].out, "consent");
	wire_add(&w.link[vm].out, "value", value);
	return ask(vm);
}

static void attached(uint64_t id)
{
	pthread_mutex_lock(&w.lock);
	TAP_EQ(pool_attached(w.pool, id, "", w.now), 0);
	pthread_mutex_unlock(&w.lock);
	wake_service();
}

/* Transactions that the database has, each of which is on disk before the next. */
static int64_t transactions(void)
{
	sqlite3_stmt *s = NULL;
	sqlite3 *db = NULL;
	char path[80];
	int64_t nr = -1;

	snprintf(path, sizeof(path), "%s/db", w.dir);
	pthread_mutex_lock(&w.lock);
	if (!sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) &&
	    !sqlite3_prepare_v2(db, "SELECT transactions FROM pool_service", -1, &s, NULL) &&
	    sqlite3_step(s) == SQLITE_ROW)
		nr = sqlite3_column_int64(s, 0);
	pthread_mutex_unlock(&w.lock);
	sqlite3_finalize(s);
	sqlite3_close(db);
	return nr;
}

static void later(int64_t seconds)
{
	pthread_mutex_lock(&w.lock);
	w.now += seconds;
	pthread_mutex_unlock(&w.lock);
}

/* ---- raw frames ---- */

/* Connect a link without a message. */
static void open_raw(int vm)
{
	link_close(&w.link[vm]);
	TAP_STR(list(vm), "");
}

static void send_raw(int vm, const void *bytes, size_t size)
{
	TAP_EQ(gnutls_record_send(w.link[vm].tls, bytes, size), size);
}

/* Read an answer to the frame @asked. Return its verb or code, "closed", or "bad". */
static const char *read_raw(int vm, const unsigned char *asked)
{
	struct link *l = &w.link[vm];
	size_t have = 0, want = WIRE_HEADER;
	struct wire_header h = { 0 };

	while (have < want) {
		struct pollfd p = { .fd = l->fd, .events = POLLIN };
		ssize_t n = gnutls_record_recv(l->tls, l->in + have, want - have);

		if (n == GNUTLS_E_AGAIN) {
			poll(&p, 1, -1);
			continue;
		}
		if (n <= 0)
			return "closed";
		have += (size_t)n;
		if (have == WIRE_HEADER) {
			if (wire_header(l->in, &h))
				return "bad";
			want += h.length;
		}
	}
	if (!wire_signed(l->in, l->keys.sign, wire_mac(asked)) ||
	    wire_parse(l->in + WIRE_HEADER, h.length, &l->answer))
		return "bad";
	return *link_code(l) ? link_code(l) : l->answer.verb;
}

/* Make a signed frame of a verb with an id. */
static size_t frame(int vm, struct wire_text *t, const char *name, uint64_t id, uint64_t seq)
{
	wire_begin(t, name);
	if (id)
		wire_add_number(t, "id", id);
	return wire_end(t, w.link[vm].keys.sign, seq, NULL);
}

/* ---- tests ---- */

static void life(void)
{
	begin();
	TAP_STR(request(0, "k1"), "");
	TAP_STR(get(0, "state"), "attaching");
	TAP_STR(get(0, "gpu"), "h/0000:41:00.0");
	TAP_EQ(w.jobs, 1);
	TAP_STR(request(1, "k2"), "");
	TAP_STR(get(1, "state"), "queued");
	TAP_STR(get(1, "place"), "1");
	TAP_CHECK(*get(1, "reason"));
	attached(1);
	TAP_STR(verb(0, "state", 1), "");
	TAP_STR(get(0, "state"), "active");
	TAP_STR(get(0, "target"), "whole");
	/* The same key is the same request. */
	TAP_STR(request(0, "k1"), "");
	TAP_STR(get(0, "id"), "1");
	TAP_STR(verb(0, "release", 1), "");
	TAP_STR(get(0, "state"), "releasing");
	TAP_STR(verb(0, "release", 1), "");
	pthread_mutex_lock(&w.lock);
	TAP_EQ(pool_detached(w.pool, 1, w.now), 0);
	pthread_mutex_unlock(&w.lock);
	TAP_STR(verb(0, "state", 1), "");
	TAP_STR(get(0, "state"), "released");
	TAP_STR(verb(0, "release", 1), "");
	TAP_STR(verb(1, "state", 2), "");
	TAP_STR(get(1, "state"), "attaching");
	TAP_CHECK(pool_vm(w.pool, "a")->seen == T0);
	finish();
}

/* A release by key, for an agent that never saw the number. */
static void by_key(void)
{
	begin();
	TAP_STR(request(0, "k1"), "");
	TAP_STR(request(1, "k2"), "");
	wire_begin(&w.link[1].out, "release");
	wire_add(&w.link[1].out, "key", "k1");
	TAP_STR(ask(1), "unknown");
	wire_begin(&w.link[1].out, "release");
	wire_add(&w.link[1].out, "key", "k2");
	TAP_STR(ask(1), "");
	TAP_STR(get(1, "state"), "cancelled");
	finish();
}

/* Connect to the service by TCP. */
static int connect_from(uint32_t address)
{
	struct sockaddr_in to = { .sin_family = AF_INET }, from = to;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	from.sin_addr.s_addr = htonl(address);
	TAP_EQ(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	to.sin_port = htons((uint16_t)atoi(strchr(w.where, ':') + 1));
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	TAP_EQ(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static int connect_plain(void)
{
	return connect_from(INADDR_LOOPBACK);
}

/* The alert by which the service refuses a VM's key, -1: none. */
static int alert_of(int vm)
{
	gnutls_session_t tls;
	int fd = connect_plain(), ret;

	gnutls_init(&tls, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL);
	gnutls_priority_set_direct(tls, WIRE_PRIORITY, NULL);
	gnutls_credentials_set(tls, GNUTLS_CRD_PSK, w.link[vm].cred);
	gnutls_transport_set_int(tls, fd);
	do {
		ret = gnutls_handshake(tls);
	} while (ret && !gnutls_error_is_fatal(ret));
	ret = ret == GNUTLS_E_FATAL_ALERT_RECEIVED ? (int)gnutls_alert_get(tls) : -1;
	gnutls_deinit(tls);
	close(fd);
	return ret;
}

static void wrong_key(void)
{
	int alert;

	begin();
	memset(w.conf[0].key, 0x77, sizeof(w.conf[0].key));
	link_free(&w.link[0]);
	TAP_EQ(link_init(&w.link[0], &w.conf[0], -1), 0);
	TAP_EQ(list_error(0), -EACCES);
	TAP_CHECK(settled(0));
	TAP_EQ(counts().refused, 1);
	TAP_EQ(counts().handshakes, 0);
	alert = alert_of(0);
	TAP_CHECK(alert >= 0);
	/* A VM without a key, and no VM at all, fail in the same way. */
	TAP_EQ(list_error(2), -EACCES);
	TAP_EQ(alert_of(2), alert);
	strcpy(w.conf[2].vm, "nobody");
	link_free(&w.link[2]);
	TAP_EQ(link_init(&w.link[2], &w.conf[2], -1), 0);
	TAP_EQ(list_error(2), -EACCES);
	TAP_EQ(alert_of(2), alert);
	/* The key of another VM. */
	strcpy(w.conf[1].vm, "a");
	link_free(&w.link[1]);
	TAP_EQ(link_init(&w.link[1], &w.conf[1], -1), 0);
	TAP_EQ(list_error(1), -EACCES);
	TAP_CHECK(settled(0));
	TAP_EQ(counts().refused, 7);
	finish();
}

/* An agent that signs with another key than that of its handshake. */
static void wrong_signature(void)
{
	struct wire_text t;
	size_t size;

	begin();
	open_raw(0);
	size = frame(1, &t, "list", 0, w.link[0].seq + 1);
	send_raw(0, t.frame, size);
	TAP_STR(read_raw(0, t.frame), "closed");
	TAP_CHECK(settled(0));
	TAP_CHECK(strstr(w.events, "vm:a agent-refused\n"));
	finish();
}

static void replay(void)
{
	struct wire_text t;
	uint64_t last = 0;
	size_t size;

	begin();
	TAP_STR(request(0, "k1"), "");
	attached(1);
	TAP_STR(verb(0, "extend", 1), "");
	t = w.link[0].out;
	size = WIRE_HEADER + t.length;
	send_raw(0, t.frame, size);
	TAP_STR(read_raw(0, t.frame), "replayed");
	/* The database has the sequence, for a service that begins anew. */
	pthread_mutex_lock(&w.lock);
	TAP_EQ(store_take_seq(w.store, "a", w.link[0].seq, INT64_MAX, &last),
	       -EEXIST);
	TAP_CHECK(last >= w.link[0].seq);
	pthread_mutex_unlock(&w.lock);
	open_raw(0);
	send_raw(0, t.frame, size);
	TAP_STR(read_raw(0, t.frame), "replayed");
	halt();
	start();
	connect_links();
	w.link[0].seq = 1;
	open_raw(0);
	send_raw(0, t.frame, size);
	TAP_STR(read_raw(0, t.frame), "replayed");
	TAP_CHECK(counts().replayed >= 1);
	finish();
}

/* A new process of the agent after its clock went back takes the service's number. */
static void clock_back(void)
{
	begin();
	w.link[0].seq = UINT64_C(1) << 60;
	TAP_STR(list(0), "");
	link_close(&w.link[0]);
	w.link[0].seq = 0;
	TAP_STR(list(0), "");
	TAP_CHECK(w.link[0].seq > UINT64_C(1) << 60);
	finish();
}

/* Messages that change nothing write nothing, but for a sequence in 10 minutes of them. */
static void reads(void)
{
	int64_t before;

	begin();
	TAP_STR(request(0, "k1"), "");
	before = transactions();
	for (int i = 0; i < 100; i++)
		TAP_STR(i % 2 ? list(0) : verb(0, "state", 1), "");
	tap_diag("%d transactions for 100 messages", (int)(transactions() - before));
	TAP_EQ(transactions(), before);
	/* The agent's clock, ten minutes later. */
	w.link[0].seq += 11 * 60 * UINT64_C(1000000);
	TAP_STR(list(0), "");
	TAP_EQ(transactions(), before + 1);
	TAP_STR(list(0), "");
	TAP_EQ(transactions(), before + 1);
	finish();
}

/* Messages that arrive together are one transaction, and are answered when it is on disk. */
static void together(void)
{
	struct wire_text t[2];
	int64_t before;
	size_t size;

	begin();
	TAP_STR(consent(0, "yes"), "");
	TAP_STR(consent(1, "yes"), "");
	before = transactions();
	TAP_STR(request(0, "k1"), "");
	TAP_EQ(transactions(), before + 1);
	attached(1);
	TAP_STR(verb(0, "state", 1), "");
	later(60);
	before = transactions();
	TAP_STR(report(0, 1, 1000000, 10), "");
	TAP_EQ(transactions(), before + 1);
	before = transactions();
	pthread_mutex_lock(&w.lock);
	for (int i = 0; i < 2; i++) {
		write_request(&t[i], i ? "k3" : "k2");
		size = wire_end(&t[i], w.link[i].keys.sign, ++w.link[i].seq, NULL);
		send_raw(i, t[i].frame, size);
	}
	pthread_mutex_unlock(&w.lock);
	for (int i = 0; i < 2; i++)
		TAP_STR(read_raw(i, t[i].frame), "ok");
	tap_diag("%d transactions for 2 requests", (int)(transactions() - before));
	TAP_EQ(transactions(), before + 1);
	finish();
}

/* Changes are answered when they are on disk. */
static void database_fails(void)
{
	begin();
	TAP_STR(list(0), "");
	w.begin_fails = true;
	TAP_STR(request(0, "k1"), "failed");
	TAP_CHECK(!pool_request(w.pool, 1));
	TAP_STR(list(0), "");
	w.begin_fails = false;
	w.commit_fails = true;
	write_request(&w.link[0].out, "k1");
	TAP_CHECK(link_ask(&w.link[0], 20) < 0);
	TAP_CHECK(settled(0));
	w.commit_fails = false;
	finish();
}

static void reordered(void)
{
	struct wire_text first, second;
	size_t one, two;
	uint64_t seq;

	begin();
	TAP_STR(request(0, "k1"), "");
	attached(1);
	seq = w.link[0].seq;
	one = frame(0, &first, "extend", 1, seq + 1);
	two = frame(0, &second, "release", 1, seq + 2);
	send_raw(0, second.frame, two);
	TAP_STR(read_raw(0, second.frame), "ok");
	send_raw(0, first.frame, one);
	TAP_STR(read_raw(0, first.frame), "replayed");
	/* Two in one record are answered in their order. */
	one = frame(0, &first, "state", 1, seq + 3);
	two = frame(0, &second, "state", 1, seq + 4);
	memcpy(first.frame + one, second.frame, two);
	send_raw(0, first.frame, one + two);
	TAP_STR(read_raw(0, first.frame), "ok");
	TAP_STR(read_raw(0, second.frame), "ok");
	finish();
}

static void cut(void)
{
	struct wire_text t;
	size_t size;

	begin();
	TAP_STR(request(0, "k1"), "");
	attached(1);
	size = frame(0, &t, "release", 1, w.link[0].seq + 1000);
	for (size_t n = 1; n < size; n += tap_some(9, 1)) {
		open_raw(0);
		send_raw(0, t.frame, n);
		link_close(&w.link[0]);
	}
	TAP_CHECK(settled(0));
	TAP_STR(verb(0, "state", 1), "");
	TAP_STR(get(0, "state"), "active");
	/* Byte by byte it is a message. */
	size = frame(0, &t, "release", 1, w.link[0].seq + 1000);
	for (size_t n = 0; n < size; n++)
		send_raw(0, t.frame + n, 1);
	TAP_STR(read_raw(0, t.frame), "ok");
	TAP_STR(get(0, "state"), "releasing");
	finish();
}

static void flipped(void)
{
	struct wire_text t;
	size_t size;

	begin();
	TAP_STR(request(0, "k1"), "");
	attached(1);
	size = frame(0, &t, "release", 1, 1);
	for (size_t n = 0; n < size; n++) {
		struct wire_text bad;

		open_raw(0);
		frame(0, &bad, "release", 1, w.link[0].seq + 1);
		bad.frame[n] ^= (unsigned char)(1 << n % 8);
		send_raw(0, bad.frame, size);
		/* The length is the only thing that is believed before the signature. */
		if (n >= 4 && n < 8)
			link_close(&w.link[0]);
		else
			TAP_STR(read_raw(0, bad.frame), "closed");
	}
	TAP_STR(verb(0, "state", 1), "");
	TAP_STR(get(0, "state"), "active");
	finish();
}

static void malformed(void)
{
	static const char *const bodies[] = {
		"list", "list\nx", "list\nx=", "list\n=1\n", "list\nA=1\n", "list\nx=%\n",
		"list\nx=%zz\n", "list\nx=%0a\n", "list\nx=%00\n", "list\nx=1\nx=2\n", "\nx=1\n",
		"list\nx=\"\n", "list\nx=%c3\n", "list\nx=%c0%80\n", "list\nx=%ed%a0%80\n",
		"list\nx=%f4%90%80%80\n", "averyveryverylongverb\n", "1list\n", "list\n\n",
	};
	struct wire_text t;
	size_t size;

	begin();
	open_raw(0);
	for (size_t i = 0; i < sizeof(bodies) / sizeof(*bodies); i++) {
		t.length = strlen(bodies[i]);
		t.failed = false;
		memcpy(t.frame + WIRE_HEADER, bodies[i], t.length);
		size = wire_end(&t, w.link[0].keys.sign, w.link[0].seq + 1 + i, NULL);
		send_raw(0, t.frame, size);
		if (!TAP_STR(read_raw(0, t.frame), "invalid"))
			tap_diag("body %zu", i);
		TAP_STR(get(0, "text"), "the message is malformed");
	}
	w.link[0].seq += 1000;
	wire_begin(&w.link[0].out, "dance");
	TAP_STR(ask(0), "invalid");
	wire_begin(&w.link[0].out, "list");
	wire_add(&w.link[0].out, "vm", "b");
	TAP_STR(ask(0), "invalid");
	/* A number, and a word, that are none. */
	wire_begin(&w.link[0].out, "state");
	wire_add(&w.link[0].out, "id", "-1");
	TAP_STR(ask(0), "invalid");
	wire_begin(&w.link[0].out, "request");
	wire_add(&w.link[0].out, "key", "k");
	wire_add(&w.link[0].out, "kind", "training");
	wire_add(&w.link[0].out, "target", "all");
	TAP_STR(ask(0), "invalid");
	finish();
}

static void others(void)
{
	begin();
	TAP_STR(request(0, "k1"), "");
	attached(1);
	TAP_STR(consent(1, "yes"), "");
	TAP_STR(verb(1, "state", 1), "unknown");
	TAP_STR(verb(1, "release", 1), "unknown");
	TAP_STR(verb(1, "extend", 1), "unknown");
	TAP_STR(report(1, 1, 1, 0), "unknown");
	/* As a request that is not there. */
	TAP_STR(verb(1, "state", 99), "unknown");
	TAP_STR(verb(1, "state", 0), "unknown");
	/* The key of a request of a VM of the same project shows nothing of it. */
	TAP_STR(request(1, "k1"), "exists");
	TAP_STR(get(1, "id"), "");
	TAP_STR(list(1), "");
	TAP_STR(get(1, "r0"), "");
	TAP_STR(list(0), "");
	TAP_STR(get(0, "r0"), "1 active training k1");
	finish();
}

static void consented(void)
{
	begin();
	TAP_STR(request(0, "k1"), "");
	TAP_STR(report(0, 1, 0, 0), "consent");
	attached(1);
	TAP_STR(report(0, 1, 0, 0), "consent");
	TAP_STR(consent(0, "maybe"), "invalid");
	TAP_STR(consent(0, "yes"), "");
	TAP_CHECK(pool_vm(w.pool, "a")->consent == T0);
	TAP_CHECK(!pool_vm(w.pool, "b")->consent);
	TAP_CHECK(strstr(w.events, "vm:a consent\n"));
	later(100);
	TAP_STR(report(0, 1, 5000000000, 100), "");
	TAP_STR(consent(0, "no"), "");
	TAP_STR(report(0, 1, 6000000000, 100), "consent");
	TAP_CHECK(!pool_vm(w.pool, "a")->consent);
	/* The sequence is not older than the consent's message. */
	halt();
	start();
	connect_links();
	TAP_STR(list(0), "");
	TAP_STR(get(0, "consent"), "no");
	finish();
}

static void lies(void)
{
	begin();
	TAP_STR(consent(0, "yes"), "");
	TAP_STR(consent(1, "yes"), "");
	TAP_STR(request(0, "k1"), "");
	TAP_STR(request(1, "k2"), "");
	attached(1);
	later(100);
	/* More time than has passed, more memory than there is, a GPU that it does not have. */
	TAP_STR(report(0, 1, UINT64_C(400000000000), 0), "invalid");
	TAP_STR(report(0, 1, INT64_MAX, 0), "invalid");
	TAP_STR(report(0, 1, 1, 8193), "invalid");
	TAP_STR(report(1, 2, 1, 0), "forbidden");
	wire_begin(&w.link[0].out, "use");
	wire_add_number(&w.link[0].out, "id", 1);
	TAP_STR(ask(0), "invalid");
	wire_begin(&w.link[0].out, "use");
	wire_add_number(&w.link[0].out, "id", 1);
	wire_add_number(&w.link[0].out, "busy_ns", 1);
	wire_add_number(&w.link[0].out, "energy_mj", INT64_MAX);
	TAP_STR(ask(0), "invalid");
	TAP_STR(report(0, 1, UINT64_C(90000000000), 8192), "");
	finish();
}

static void *attach_soon(void *arg)
{
	usleep(200000);
	attached(1);
	return arg;
}

static void long_poll(void)
{
	uint64_t from;
	pthread_t t;

	begin();
	TAP_STR(request(0, "k1"), "");
	TAP_EQ(pthread_create(&t, NULL, attach_soon, NULL), 0);
	for (int i = 0; i < 2; i++) {
		char version[32];

		snprintf(version, sizeof(version), "%s", get(0, "version"));
		write_wait(&w.link[0].out, 1, i ? 1 : 300, version);
		from = now_ns();
		TAP_STR(ask(0), "");
		TAP_STR(get(0, "state"), "active");
		/* The second has nothing to wait for, and takes its whole time. */
		TAP_CHECK(!i || now_ns() - from >= NSEC);
	}
	pthread_join(t, NULL);
	/* A change that was not seen is answered at once. */
	write_wait(&w.link[0].out, 1, 300, "1");
	TAP_STR(ask(0), "");
	finish();
}

/* A queue that moves is told, and a client that leaves while it waits is no connection. */
static void place(void)
{
	struct link *l = &w.link[1];
	struct wire_text t;
	char version[32];
	size_t size;

	begin();
	TAP_STR(request(0, "k1"), "");
	TAP_STR(request(0, "k2"), "");
	TAP_STR(request(1, "k3"), "");
	TAP_STR(get(1, "place"), "2");
	snprintf(version, sizeof(version), "%s", get(1, "version"));
	write_wait(&t, 3, 300, version);
	size = wire_end(&t, l->keys.sign, ++l->seq, NULL);
	send_raw(1, t.frame, size);
	/* The service reads frames in the order in which they come: it waits before the release. */
	TAP_STR(list(0), "");
	TAP_STR(verb(0, "release", 2), "");
	TAP_STR(read_raw(1, t.frame), "ok");
	TAP_STR(get(1, "place"), "1");
	snprintf(version, sizeof(version), "%s", get(1, "version"));
	write_wait(&l->out, 3, 300, version);
	TAP_EQ(link_ask(l, 1), -ETIMEDOUT);
	link_close(&w.link[0]);
	TAP_CHECK(settled(0));
	finish();
}

static void limits(void)
{
	struct agent_limits l;
	int fds[8];

	agent_limits_default(&l);
	l.opens = 10000;
	l.messages = 5;
	l.messages_s = 0;
	l.handshakes = 4;
	l.connections_vm = 1;
	l.requests_vm = 2;
	/* longer than a client is not scheduled, and shorter than settled() waits */
	l.handshake_ms = 3000;
	l.idle_ms = 60000;
	begin_with(&l);
	/* Connections that say nothing make room for others, and go after their time. */
	for (int i = 0; i < 8; i++)
		fds[i] = connect_plain();
	TAP_STR(request(0, "k1"), "");
	TAP_CHECK(counts().handshakes <= 4);
	TAP_CHECK(settled(1));
	for (int i = 0; i < 8; i++)
		close(fds[i]);
	TAP_STR(request(0, "k2"), "");
	TAP_STR(request(0, "k3"), "quota");
	TAP_STR(request(0, "k2"), "");
	/* A second connection of the VM ends the first one. */
	w.link[2].seq = 0;
	strcpy(w.conf[2].vm, "a");
	memset(w.conf[2].key, 0x40, sizeof(w.conf[2].key));
	link_free(&w.link[2]);
	TAP_EQ(link_init(&w.link[2], &w.conf[2], -1), 0);
	TAP_STR(list(2), "");
	TAP_EQ(counts().connections, 1);
	TAP_STR(verb(0, "state", 1), "slower");
	/* The other VM has tokens of its own. */
	TAP_STR(request(1, "k4"), "");
	finish();
}

/* A VM that asks and releases again and again must not fill the database. */
static void changes(void)
{
	struct agent_limits l;
	char key[16];

	agent_limits_default(&l);
	l.messages = 10000;
	l.changes = 6;
	l.changes_min = 0;
	begin_with(&l);
	for (int i = 0; i < 3; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		TAP_STR(request(0, key), "");
		TAP_STR(verb(0, "release", (uint64_t)i + 1), "");
	}
	TAP_STR(request(0, "more"), "slower");
	TAP_STR(verb(0, "release", 1), "slower");
	TAP_STR(verb(0, "state", 1), "");
	TAP_STR(list(0), "");
	TAP_STR(request(1, "other"), "");
	finish();
}

/* One peer opens too many, and another one does not suffer from it. */
static void peers_of(uint32_t other)
{
	struct agent_limits l;
	int fd;

	agent_limits_default(&l);
	l.opens = 3;
	l.opens_s = 0;
	begin_with(&l);
	for (int i = 0; i < 3; i++)
		open_raw(0);
	link_close(&w.link[0]);
	TAP_CHECK(list_error(0) != 0);
	TAP_EQ(counts().refused, 1);
	TAP_CHECK(settled(0));
	fd = connect_from(other);
	TAP_CHECK(settled(1));
	TAP_EQ(counts().refused, 1);
	close(fd);
	finish();
}

static void peers(void)
{
	peers_of(INADDR_LOOPBACK + 1);
}

/* A listener for both takes IPv4 addresses as those of one IPv6 network: they are peers each. */
static void mapped_peers(void)
{
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		TAP_SKIP("there is no IPv6");
	close(fd);
	w.listen = "[::ffff:127.0.0.1]:0";
	peers_of(INADDR_LOOPBACK + 1);
	w.listen = "127.0.0.1:0";
}

static void slow(void)
{
	struct agent_limits l;

	agent_limits_default(&l);
	l.message_ms = 100;
	begin_with(&l);
	open_raw(0);
	send_raw(0, "mga1", 4);
	TAP_STR(read_raw(0, w.link[0].out.frame), "closed");
	TAP_EQ(counts().refused, 1);
	finish();
}

static void idle(void)
{
	struct agent_limits l;

	agent_limits_default(&l);
	l.idle_ms = 3000;
	begin_with(&l);
	open_raw(0);
	TAP_STR(read_raw(0, w.link[0].out.frame), "closed");
	TAP_EQ(counts().refused, 0);
	/* The agent connects again by itself. */
	TAP_STR(list(0), "");
	finish();
}

/* An agent that is not scheduled takes what came in time. */
static void late(void)
{
	begin();
	TAP_STR(list(0), "");
	wire_begin(&w.link[0].out, "list");
	pthread_mutex_lock(&w.lock);
	late_poll = true;
	TAP_EQ(link_ask(&w.link[0], 1), 0);
	TAP_CHECK(!late_poll);
	TAP_STR(link_code(&w.link[0]), "");
	finish();
}

static void change_key(const void *key)
{
	pthread_mutex_lock(&w.lock);
	TAP_EQ(store_put_vm_key(w.store, "a", key), 0);
	agent_key_changed(w.agent, "a");
	pthread_mutex_unlock(&w.lock);
}

static void new_key(void)
{
	unsigned char key[32];

	begin();
	open_raw(0);
	open_raw(1);
	memset(key, 0x55, sizeof(key));
	change_key(key);
	TAP_EQ(counts().connections, 1);
	TAP_EQ(list_error(0), -EACCES);
	finish();
}

/* A VM that took the last sequence has the first ones again with a new key. */
static void new_sequence(void)
{
	begin();
	w.link[0].seq = WIRE_SEQ_MAX - 1;
	TAP_STR(list(0), "");
	w.link[0].seq = 0;
	TAP_STR(ask(0), "replayed");
	memset(w.conf[0].key, 0x55, sizeof(w.conf[0].key));
	change_key(w.conf[0].key);
	link_free(&w.link[0]);
	TAP_EQ(link_init(&w.link[0], &w.conf[0], -1), 0);
	TAP_STR(list(0), "");
	w.link[0].seq--;
	finish();
}

/* As hosts.c does when a host has another VM of the name: the former one may run on. */
static void other_vm_of_the_name(void)
{
	struct pool_vm vm = { .name = "a", .host = "h", .uuid = "other", .project = "p" };

	begin();
	TAP_STR(request(0, "k1"), "");
	open_raw(0);
	open_raw(1);
	pthread_mutex_lock(&w.lock);
	TAP_EQ(store_drop_vm(w.store, "a"), 0);
	TAP_EQ(store_put_vm(w.store, &vm), 0);
	TAP_EQ(pool_put_vm(w.pool, &vm), 0);
	pthread_mutex_unlock(&w.lock);
	TAP_EQ(list_error(0), -EACCES);
	TAP_STR(list(1), "");
	/* With a key of its own it reads and ends nothing that the former one asked for. */
	memset(w.conf[0].key, 0x55, sizeof(w.conf[0].key));
	change_key(w.conf[0].key);
	link_free(&w.link[0]);
	TAP_EQ(link_init(&w.link[0], &w.conf[0], -1), 0);
	TAP_STR(list(0), "");
	TAP_STR(get(0, "r0"), "");
	TAP_STR(verb(0, "state", 1), "unknown");
	TAP_STR(verb(0, "release", 1), "unknown");
	wire_begin(&w.link[0].out, "release");
	wire_add(&w.link[0].out, "key", "k1");
	TAP_STR(ask(0), "unknown");
	TAP_STR(request(0, "k1"), "exists");
	TAP_STR(request(0, "k9"), "");
	TAP_STR(list(0), "");
	TAP_STR(get(0, "r0"), "2 queued training k9");
	finish();
}

/* Bytes that are no TLS, and TLS of an older version. */
static void no_tls(void)
{
	gnutls_session_t tls;
	char buffer[256];
	int fd;

	begin();
	fd = connect_plain();
	TAP_EQ(write(fd, "GET / HTTP/1.1\r\n\r\n", 18), 18);
	while (read(fd, buffer, sizeof(buffer)) > 0)
		;
	close(fd);
	fd = connect_plain();
	gnutls_init(&tls, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL);
	gnutls_priority_set_direct(tls, "NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+ECDHE-PSK:+PSK",
				   NULL);
	gnutls_credentials_set(tls, GNUTLS_CRD_PSK, w.link[0].cred);
	gnutls_transport_set_int(tls, fd);
	TAP_CHECK(gnutls_handshake(tls) < 0);
	gnutls_deinit(tls);
	close(fd);
	TAP_CHECK(settled(0));
	TAP_EQ(counts().refused, 2);
	finish();
}

/* ---- a service that lies ---- */

static pthread_t play_thread;
static int play_listener;
static int play_kind;
static struct wire_keys play_keys;

static int play_psk(gnutls_session_t tls, const char *name, gnutls_datum_t *key)
{
	(void)tls;
	(void)name;
	key->data = gnutls_malloc(WIRE_KEY);
	key->size = WIRE_KEY;
	memcpy(key->data, play_keys.tls, WIRE_KEY);
	return 0;
}

enum {
	PLAY_TRUE, PLAY_SEQ, PLAY_MAC, PLAY_UNBOUND, PLAY_REQUEST, PLAY_CUT, PLAY_HUGE, PLAY_VERB,
	PLAY_BODY, PLAY_REPLAYED, PLAY_KINDS,
};

static size_t played_answer(struct wire_text *t, const unsigned char *in,
			    const struct wire_header *h)
{
	const unsigned char *mac = wire_mac(in);
	uint64_t seq = h->seq;
	unsigned char other[WIRE_KEY] = { 0 };
	size_t size;

	wire_begin(t, play_kind == PLAY_VERB ? "maybe" : "ok");
	wire_add(t, "vm", "a");
	if (play_kind == PLAY_BODY)
		t->frame[WIRE_HEADER + t->length - 1] = 0;
	if (play_kind == PLAY_REPLAYED) {
		wire_begin(t, "error");
		wire_add(t, "code", "replayed");
		wire_add(t, "last", "9223372036854775807");
	}
	if (play_kind == PLAY_SEQ)
		seq++;
	size = wire_end(t, play_keys.sign, seq, play_kind == PLAY_UNBOUND ? other :
			play_kind == PLAY_REQUEST ? NULL : mac);
	if (play_kind == PLAY_MAC)
		t->frame[20] ^= 1;
	if (play_kind == PLAY_HUGE)
		memset(t->frame + 4, 0xff, 4);
	return play_kind == PLAY_CUT ? size - 1 : size;
}

static void play_connection(int fd, gnutls_psk_server_credentials_t cred)
{
	unsigned char in[WIRE_FRAME_MAX];
	struct wire_header h;
	struct wire_text t;
	gnutls_session_t tls;
	size_t size;
	int ret;

	gnutls_init(&tls, GNUTLS_SERVER | GNUTLS_NO_SIGNAL);
	gnutls_priority_set_direct(tls, WIRE_PRIORITY, NULL);
	gnutls_credentials_set(tls, GNUTLS_CRD_PSK, cred);
	gnutls_transport_set_int(tls, fd);
	ret = gnutls_handshake(tls);
	if (ret) {
		gnutls_alert_send_appropriate(tls, ret);
	} else {
		while (gnutls_record_recv(tls, in, sizeof(in)) > WIRE_HEADER &&
		       !wire_header(in, &h)) {
			size = played_answer(&t, in, &h);
			gnutls_record_send(tls, t.frame, size);
			if (play_kind != PLAY_REPLAYED)
				break;
		}
	}
	gnutls_deinit(tls);
	close(fd);
}

static void *play(void *arg)
{
	gnutls_psk_server_credentials_t cred;
	int fd;

	gnutls_psk_allocate_server_credentials(&cred);
	gnutls_psk_set_server_credentials_function(cred, play_psk);
	while ((fd = accept(play_listener, NULL, NULL)) >= 0)
		play_connection(fd, cred);
	gnutls_psk_free_server_credentials(cred);
	return arg;
}

/* Play a service that has the keys of a VM. */
static void begin_play(int vm)
{
	char text[POOL_TEXT_MAX];

	play_listener = agent_listen("127.0.0.1:0", text);
	fcntl(play_listener, F_SETFL, 0);
	set_where(play_listener);
	for (int i = 0; i < 3; i++)
		w.link[i].fd = -1;
	connect_links();
	play_keys = w.link[vm].keys;
	TAP_EQ(pthread_create(&play_thread, NULL, play, NULL), 0);
}

static void end_play(void)
{
	for (int i = 0; i < 3; i++)
		link_free(&w.link[i]);
	shutdown(play_listener, SHUT_RDWR);
	pthread_join(play_thread, NULL);
	close(play_listener);
}

/* An answer that is not to this request, or not of this VM's service, is none. */
static void lying_service(void)
{
	begin_play(0);
	for (play_kind = 0; play_kind < PLAY_KINDS; play_kind++) {
		int want = play_kind == PLAY_TRUE || play_kind == PLAY_REPLAYED ? 0 :
			   play_kind == PLAY_CUT ? -ECONNRESET : -EBADMSG, ret;

		link_close(&w.link[0]);
		ret = list_error(0);
		/* A cut answer may end in either of two ways. */
		if (!TAP_CHECK(ret == want || (play_kind == PLAY_CUT && ret == -EPROTO)))
			tap_diag("kind %d: %d", play_kind, ret);
		if (play_kind == PLAY_REPLAYED)
			TAP_CHECK(w.link[0].seq < WIRE_SEQ_MAX / 2);
	}
	end_play();
}

/* A service that does not know the VM's key proves nothing: the agent sends it no message. */
static void false_service(void)
{
	play_kind = PLAY_TRUE;
	begin_play(1);
	TAP_EQ(list_error(0), -EACCES);
	end_play();
}

/* ---- pure ---- */

static void frames(void)
{
	unsigned char key[WIRE_KEY] = { 1 }, other[WIRE_KEY] = { 2 };
	struct wire_message m;
	struct wire_header h;
	struct wire_text t;
	struct wire_keys a, b;
	char vm[64];

	wire_begin(&t, "request");
	wire_add(&t, "why", "50% = \"a\" \xc3\xa9");
	wire_add_number(&t, "n", UINT64_MAX);
	TAP_EQ(wire_end(&t, key, 7, NULL), WIRE_HEADER + t.length);
	TAP_EQ(wire_header(t.frame, &h), 0);
	TAP_EQ(h.seq, 7);
	TAP_CHECK(wire_signed(t.frame, key, NULL));
	TAP_CHECK(!wire_signed(t.frame, other, NULL));
	TAP_CHECK(!wire_signed(t.frame, key, other));
	TAP_EQ(wire_parse(t.frame + WIRE_HEADER, h.length, &m), 0);
	TAP_STR(m.verb, "request");
	TAP_STR(wire_get(&m, "why"), "50% = \"a\" \xc3\xa9");
	TAP_STR(wire_get(&m, "n"), "18446744073709551615");
	TAP_CHECK(!wire_get(&m, "x"));
	/* An answer to one request is none to another, and no request. */
	wire_end(&t, key, 7, other);
	TAP_CHECK(wire_signed(t.frame, key, other));
	TAP_CHECK(!wire_signed(t.frame, key, key));
	TAP_CHECK(!wire_signed(t.frame, key, NULL));
	/* Control characters cannot be written. */
	wire_begin(&t, "list");
	wire_add(&t, "x", "a\nb=1");
	TAP_EQ(wire_end(&t, key, 7, NULL), 0);
	/* The two keys of a VM, and those of two VMs, are different. */
	TAP_EQ(wire_keys(key, &a), 0);
	TAP_EQ(wire_keys(other, &b), 0);
	TAP_CHECK(memcmp(a.tls, a.sign, WIRE_KEY) && memcmp(a.tls, b.tls, WIRE_KEY) &&
		  memcmp(a.sign, b.sign, WIRE_KEY) && memcmp(a.tls, key, WIRE_KEY));
	TAP_EQ(wire_read_key("vm-1:00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF\n",
			     vm, key), 0);
	TAP_STR(vm, "vm-1");
	TAP_EQ(key[31], 0xff);
	TAP_EQ(wire_read_key("00112233445566778899aabbccddeeff00112233445566778899aabbccddeef", vm,
			     key), -EINVAL);
	TAP_EQ(wire_read_key(":00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff",
			     vm, key), -EINVAL);
}

static void numbers(void)
{
	uint64_t n = 5;

	TAP_EQ(wire_decimal("0", 9, &n), 0);
	TAP_EQ(n, 0);
	TAP_EQ(wire_decimal("18446744073709551615", UINT64_MAX, &n), 0);
	TAP_CHECK(n == UINT64_MAX);
	TAP_EQ(wire_decimal("18446744073709551616", UINT64_MAX, &n), -EINVAL);
	TAP_EQ(wire_decimal("10", 9, &n), -EINVAL);
	TAP_EQ(wire_decimal("9", 9, &n), 0);
	TAP_EQ(wire_decimal("3", 2, &n), -EINVAL);
	TAP_EQ(wire_decimal("", 9, &n), -EINVAL);
	TAP_EQ(wire_decimal("01", 9, &n), -EINVAL);
	TAP_EQ(wire_decimal("+1", 9, &n), -EINVAL);
	TAP_EQ(wire_decimal(" 1", 9, &n), -EINVAL);
}

static void listeners(void)
{
	static const char *const bad[] = {
		"", "x", ":1", "1.2.3.4", "host.invalid:1", "vsockx", "vsock:", "vsock:x",
		"127.0.0.1:x", "[::1:1",
	};
	char text[POOL_TEXT_MAX];
	int fd;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		*text = '\0';
		if (!TAP_EQ(agent_listen(bad[i], text), -EINVAL))
			tap_diag("'%s'", bad[i]);
		TAP_CHECK(strstr(text, "give vsock"));
	}
	fd = agent_listen("[::1]:0", text);
	TAP_CHECK(fd >= 0 || fd == -EADDRNOTAVAIL || fd == -EAFNOSUPPORT);
	if (fd >= 0)
		close(fd);
}

int main(void)
{
	tap_run(life, "a VM asks, gets a GPU, and gives it back");
	tap_run(by_key, "a request can be released by its key");
	tap_run(wrong_key, "a wrong key, no key and an unknown VM fail alike");
	tap_run(wrong_signature, "a message that is signed with another key ends the connection");
	tap_run(replay, "a replayed message is refused, also by a service that began anew");
	tap_run(clock_back, "an agent whose clock went back goes on with the service's sequence");
	tap_run(reads, "messages that change nothing write a sequence in ten minutes");
	tap_run(together, "messages that arrive together are one transaction");
	tap_run(database_fails, "a change that is not on disk is not answered as done");
	tap_run(reordered, "a message behind a later one is refused");
	tap_run(cut, "a message that is cut has no effect");
	tap_run(flipped, "a message with a flipped bit has no effect");
	tap_run(malformed, "a malformed message is refused, and the connection stays");
	tap_run(others, "a VM does not reach the requests of another");
	tap_run(consented, "use is taken with consent only");
	tap_run(lies, "use that cannot be is refused");
	tap_run(long_poll, "a wait for a state ends at its change, or after its time");
	tap_run(place, "a wait ends when the place in the queue changes");
	tap_run(limits, "connections, handshakes, messages and requests have bounds");
	tap_run(changes, "changes of a VM have a bound");
	tap_run(peers, "a peer opens so many connections, and no more");
	tap_run(mapped_peers, "IPv4 addresses at an IPv6 listener are peers each");
	tap_run(slow, "a message that takes too long ends the connection");
	tap_run(idle, "an idle connection is closed, and the agent connects again");
	tap_run(late, "an answer that is read late came in time");
	tap_run(new_key, "a new key ends the connections of the old one");
	tap_run(new_sequence, "a new key begins the sequence anew");
	tap_run(other_vm_of_the_name, "a connection ends when its name is that of another VM");
	tap_run(no_tls, "what is not TLS 1.3 is refused");
	tap_run(lying_service, "an agent takes no answer that is not to its request");
	tap_run(false_service, "an agent sends nothing to a service that does not know its key");
	tap_run(frames, "frames are signed for their direction, and their bodies survive");
	tap_run(numbers, "numbers are plain, and in their bounds");
	tap_run(listeners, "an address that cannot be listened at is refused with its remedy");
	return tap_done();
}
