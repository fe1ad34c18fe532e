/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cases of test_pool_store.c about the connection to a server.  A relay between both cuts it at
 * a chosen message, or is silent.
 */
#ifndef TEST_POOL_POSTGRES_H
#define TEST_POOL_POSTGRES_H

#include <poll.h>
#include <libpq-fe.h>
#include <sys/socket.h>
#include <sys/un.h>

/**
 * enum relay_mode - what the relay does
 * @RELAY_CUT_COMMIT: cut the connection before the server has a COMMIT
 * @RELAY_CUT_ANSWER: cut it after the server has done the COMMIT
 * @RELAY_HALF: leave the client, at its next message, and not the server
 * @RELAY_SILENT: give no more answers, and take no connection
 * @RELAY_REFUSE: end new connections
 */
enum relay_mode {
	RELAY_PASS, RELAY_CUT_COMMIT, RELAY_CUT_ANSWER, RELAY_HALF, RELAY_SILENT, RELAY_REFUSE,
};

/**
 * struct relay - shared with its processes
 * @after: mode once the connection was cut
 * @connections: taken so far
 */
struct relay {
	_Atomic enum relay_mode mode, after;
	_Atomic unsigned int connections;
};

/* The store stands still for more than 2 s before it waits for the next answer, which comes. */
static bool late;

int __real_PQisBusy(PGconn *conn);
int __wrap_PQisBusy(PGconn *conn);

int __wrap_PQisBusy(PGconn *conn)
{
	int busy = __real_PQisBusy(conn);

	if (busy && late) {
		late = false;
		usleep(2100000);
		poll(&(struct pollfd){ .fd = PQsocket(conn), .events = POLLIN }, 1, -1);
	}
	return busy;
}

static struct relay *relay;
static pid_t relay_pid;

static int unix_socket(const char *folder, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(address->sun_path, sizeof(address->sun_path), "%s/.s.PGSQL.5432", folder);
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int connect_to_server(void)
{
	struct sockaddr_un address;
	char folder[100];
	int fd;

	snprintf(folder, sizeof(folder), "%s", strstr(database_server(), "host=") + 5);
	folder[strcspn(folder, "&")] = '\0';
	fd = unix_socket(folder, &address);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		_exit(1);
	return fd;
}

/* End this connection's process: the client sees it closed. */
static void cut(void)
{
	relay->mode = relay->after;
	_exit(0);
}

static void from_client(int client, int server)
{
	static char data[65536];
	ssize_t n = read(client, data, sizeof(data));
	bool commit = n > 0 && memmem(data, (size_t)n, "COMMIT", 6);

	if (n <= 0)
		_exit(0);
	if (relay->mode == RELAY_CUT_COMMIT && commit)
		cut();
	if (relay->mode == RELAY_HALF) {
		relay->mode = relay->after;
		close(client);
		/* the server's session lives on, until it is ended */
		if (read(server, data, sizeof(data)) >= 0)
			_exit(0);
	}
	if (write(server, data, (size_t)n) != n)
		_exit(1);
	if (relay->mode == RELAY_CUT_ANSWER && commit) {
		if (read(server, data, sizeof(data)) > 0)
			cut();
		_exit(1);
	}
}

static void pass_on(int client)
{
	static char data[65536];
	int server = connect_to_server();
	struct pollfd fds[] = { { client, POLLIN, 0 }, { server, POLLIN, 0 } };
	ssize_t n;

	for (;;) {
		while (relay->mode == RELAY_SILENT)
			usleep(10000);
		if (poll(fds, 2, 20) <= 0 || relay->mode == RELAY_SILENT)
			continue;
		if (fds[0].revents)
			from_client(client, server);
		if (!fds[1].revents)
			continue;
		n = read(server, data, sizeof(data));
		if (n <= 0 || write(client, data, (size_t)n) != n)
			_exit(0);
	}
}

static void serve(int listener)
{
	signal(SIGCHLD, SIG_IGN);
	for (;;) {
		int client = accept(listener, NULL, NULL);

		relay->connections++;
		if (relay->mode != RELAY_REFUSE && !fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pass_on(client);
		}
		close(client);
	}
}

/* A new database through the relay; connect_timeout is the shortest of libpq. */
static struct store *open_relayed(void)
{
	struct store *store = NULL;
	char url[300], text[POOL_TEXT_MAX];
	struct sockaddr_un address;
	int listener;

	relay = mmap(NULL, sizeof(*relay), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	listener = unix_socket(database_folder(), &address);
	unlink(address.sun_path);
	if (relay == MAP_FAILED || !make_empty() ||
	    bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 5))
		return NULL;
	relay_pid = fork();
	if (!relay_pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(listener);
	}
	close(listener);
	snprintf(url, sizeof(url), "postgresql://pool@/t%d?host=%s&connect_timeout=2", (int)getpid(),
		 database_folder());
	if (store_open(url, &store, text))
		tap_diag("%s", text);
	return store;
}

static void close_relayed(struct store *store)
{
	relay->mode = RELAY_PASS;
	store_close(store);
	kill(relay_pid, SIGKILL);
	waitpid(relay_pid, NULL, 0);
}

static void set_relay(enum relay_mode mode, enum relay_mode after)
{
	relay->after = after;
	relay->mode = mode;
}

/* Wait until attempts to connect are over their rest; the result of one. */
static int begin_after_rest(struct store *store)
{
	int rc = -EIO;

	for (int i = 0; i < 600 && rc == -EIO; i++) {
		rc = store_begin(store);
		usleep(50000);
	}
	if (!rc)
		store_rollback(store);
	return rc;
}

static void idle_connection_reopens(void)
{
	struct store *store = open_new();
	struct pool_request r;

	TAP_NEED(store);
	add(store, "p", "1");
	TAP_NEED(take_lock_away());
	TAP_CHECK(add(store, "p", "2"));
	TAP_NEED(take_lock_away());
	TAP_EQ(store_get_request(store, 1, &r), 0);
	TAP_EQ(count_requests(store), 2);
	store_close(store);
}

static void lost_in_transaction(void)
{
	struct store *store = open_new();
	struct pool_request r = request("p", "2");

	TAP_NEED(store);
	TAP_EQ(store_begin(store), 0);
	add(store, "p", "1");
	TAP_NEED(take_lock_away());
	TAP_EQ(store_add_request(store, &r), -EIO);
	TAP_EQ(store_add_request(store, &r), -EIO);
	TAP_EQ(store_get_request(store, 1, &r), -EIO);
	TAP_EQ(store_commit(store), -EIO);
	TAP_EQ(count_requests(store), 0);
	TAP_CHECK(add(store, "p", "1"));
	TAP_EQ(count_requests(store), 1);
	store_close(store);
}

static void commit_does_not_arrive(void)
{
	struct store *store = open_relayed();
	struct pool_request r = request("p", "1");

	TAP_NEED(store);
	set_relay(RELAY_CUT_COMMIT, RELAY_PASS);
	TAP_EQ(store_add_request(store, &r), -EIO);
	TAP_EQ(relay->connections, 2);
	TAP_EQ(count_requests(store), 0);
	TAP_EQ(store_add_request(store, &r), 0);
	TAP_EQ(count_requests(store), 1);
	close_relayed(store);
}

static void answer_does_not_arrive(void)
{
	struct store *store = open_relayed();
	struct pool_request r = request("p", "1");

	TAP_NEED(store);
	set_relay(RELAY_CUT_ANSWER, RELAY_PASS);
	TAP_EQ(store_add_request(store, &r), 0);
	TAP_EQ(relay->connections, 2);
	TAP_EQ(r.id, 1);
	TAP_EQ(count_requests(store), 1);
	TAP_CHECK(add(store, "p", "2"));
	close_relayed(store);
}

/* The caller was told that it failed, and the database has it: only a new start helps. */
static void answer_stays_away(void)
{
	struct store *store = open_relayed();
	struct pool_request r = request("p", "1");

	TAP_NEED(store);
	set_relay(RELAY_CUT_ANSWER, RELAY_REFUSE);
	TAP_EQ(store_add_request(store, &r), -EIO);
	relay->mode = RELAY_PASS;
	TAP_EQ(begin_after_rest(store), -ESTALE);
	TAP_CHECK(strstr(store_error(store), "start the service again"));
	TAP_EQ(store_add_request(store, &r), -ESTALE);
	close_relayed(store);
	store = open_again();
	TAP_NEED(store);
	TAP_EQ(store_add_request(store, &r), -EEXIST);
	store_close(store);
}

static void commit_stays_away(void)
{
	struct store *store = open_relayed();
	struct pool_request r = request("p", "1");

	TAP_NEED(store);
	set_relay(RELAY_CUT_COMMIT, RELAY_REFUSE);
	TAP_EQ(store_add_request(store, &r), -EIO);
	relay->mode = RELAY_PASS;
	TAP_EQ(begin_after_rest(store), 0);
	TAP_EQ(store_add_request(store, &r), 0);
	TAP_EQ(count_requests(store), 1);
	close_relayed(store);
}

static void former_session_is_ended(void)
{
	struct store *store = open_relayed();

	TAP_NEED(store);
	add(store, "p", "1");
	set_relay(RELAY_HALF, RELAY_PASS);
	TAP_CHECK(add(store, "p", "2"));
	TAP_EQ(relay->connections, 2);
	TAP_EQ(count_requests(store), 2);
	close_relayed(store);
}

static void silent_server(void)
{
	struct store *store = open_relayed();
	struct pool_request r = request("p", "1");

	TAP_NEED(store);
	TAP_EQ(store_begin(store), 0);
	relay->mode = RELAY_SILENT;
	TAP_EQ(store_add_request(store, &r), -EIO);
	TAP_CHECK(strstr(store_error(store), "no answer in time"));
	store_rollback(store);
	TAP_EQ(store_begin(store), -EIO);
	relay->mode = RELAY_PASS;
	TAP_EQ(begin_after_rest(store), 0);
	TAP_EQ(store_add_request(store, &r), 0);
	close_relayed(store);
}

/* A service that is not scheduled for longer than a server may take has its answer. */
static void answer_read_late(void)
{
	struct store *store = open_relayed();
	struct pool_request r = request("p", "1");

	TAP_NEED(store);
	late = true;
	TAP_EQ(store_add_request(store, &r), 0);
	TAP_CHECK(!late);
	TAP_EQ(relay->connections, 1);
	TAP_EQ(count_requests(store), 1);
	close_relayed(store);
}

static void attempts_rest(void)
{
	struct store *store = open_relayed();
	unsigned int before;

	TAP_NEED(store);
	set_relay(RELAY_CUT_COMMIT, RELAY_REFUSE);
	TAP_EQ(store_begin(store), 0);
	TAP_EQ(store_commit(store), -EIO);
	before = relay->connections;
	for (int i = 0; i < 20; i++)
		TAP_EQ(store_begin(store), -EIO);
	TAP_CHECK(strstr(store_error(store), "the next attempt is in"));
	TAP_CHECK(relay->connections <= before + 1);
	close_relayed(store);
}

#define REFUSE_COMMIT								\
	"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS "		\
	"$$BEGIN RAISE 'not today'; END$$;"					\
	"CREATE CONSTRAINT TRIGGER t AFTER INSERT ON pool_request "		\
	"DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION f()"

/* A COMMIT that the server refuses is no lost connection. */
static void refused_commit(void)
{
	struct store *store = open_new();
	struct pool_request r = request("p", "1");

	TAP_NEED(store);
	TAP_EQ(sql_by_hand(REFUSE_COMMIT), 0);
	TAP_EQ(store_add_request(store, &r), -EIO);
	TAP_CHECK(strstr(store_error(store), "not today"));
	TAP_EQ(sql_by_hand("DROP TRIGGER t ON pool_request"), 0);
	TAP_EQ(store_add_request(store, &r), 0);
	TAP_EQ(count_requests(store), 1);
	store_close(store);
}

static void passwords_stay_secret(void)
{
	static const char *const urls[] = {
		"postgresql://secretive:hunter2x@/%s&x=1",
		"postgresql://secretive:hunter2x@/none?host=%s",
		"postgresql://u:hunter2x%%zz@/none?host=%s",
		"postgresql://u:hunter2x@[/none?host=%s",
		"postgresql://u:hunter2x@/none?host=/nonexistent/%s",
		"postgresql://u@/hunter2x?host=/nonexistent/hunter2x%s&password=hunter2x",
		"postgresql://hunter2x@/none?host=%s&password=hunter2x",
	};
	char url[300], text[POOL_TEXT_MAX], folder[100];
	struct store *store;

	TAP_NEED(make_empty());
	TAP_EQ(sql_by_hand("DROP ROLE IF EXISTS secretive;"
			   "CREATE ROLE secretive LOGIN PASSWORD 'other'"), 0);
	snprintf(folder, sizeof(folder), "%s", strstr(database_server(), "host=") + 5);
	for (size_t i = 0; i < sizeof(urls) / sizeof(*urls); i++) {
		const char *at = strstr(urls[i], "%s");

		snprintf(url, sizeof(url), "%.*s%s%s", (int)(at - urls[i]), urls[i], folder,
			 at + 2);
		TAP_EQ(store_open(url, &store, text), -EIO);
		if (!TAP_CHECK(*text && !strstr(text, "hunter2x")))
			tap_diag("%s", text);
	}
	snprintf(url, sizeof(url), "postgresql://secretive:hunter2x@/postgres?host=%s", folder);
	TAP_EQ(store_open(url, &store, text), -EIO);
	TAP_CHECK(strstr(text, "password authentication failed") && !strstr(text, "hunter2x"));
}

static void run_postgres(void)
{
	tap_run(idle_connection_reopens, "postgresql: a connection lost while idle is opened again");
	tap_run(lost_in_transaction, "postgresql: a connection lost in a transaction fails it");
	tap_run(commit_does_not_arrive, "postgresql: a COMMIT that does not arrive has failed");
	tap_run(answer_does_not_arrive, "postgresql: a COMMIT whose answer is lost is done");
	tap_run(answer_stays_away, "postgresql: a COMMIT that was done after -EIO ends the service");
	tap_run(commit_stays_away, "postgresql: a COMMIT that was not done after -EIO does not");
	tap_run(former_session_is_ended, "postgresql: a former session of this service is ended");
	tap_run(silent_server, "postgresql: a silent server counts as lost");
	tap_run(answer_read_late, "postgresql: an answer that is read late came in time");
	tap_run(attempts_rest, "postgresql: attempts to connect have a rest between them");
	tap_run(refused_commit, "postgresql: a COMMIT that the server refuses has failed");
	tap_run(passwords_stay_secret, "postgresql: no error has a password");
}

#endif /* TEST_POOL_POSTGRES_H */
