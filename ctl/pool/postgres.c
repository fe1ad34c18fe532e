// SPDX-License-Identifier: GPL-2.0-only
/*
 * PostgreSQL by libpq.  The lock of the one service is an advisory lock of the session: the
 * server gives it back when the connection ends.
 *
 * A server that does not answer must not stop the service for ever: every wait has an end, after
 * which the connection counts as lost.
 */
#include <errno.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"
#include "sql.h"

#define MSEC		1000000ULL
#define CONNECT_S	10		/* unless the URL has a connect_timeout */
#define OPENING_MS	600000		/* statements of a migration */
#define LOCK_MS		3000		/* a session that has just lost its client may have it */
#define LOCK_POLL_MS	50
#define REST_MIN_MS	500		/* between attempts to connect, doubled each time */
#define REST_MAX_MS	16000
#define VERSION_MIN	120000

/* Types of parameters, as pg_type has them. */
#define OID_INT8	20
#define OID_TEXT	25

/* Of two services with their tables in one database each has a schema of its own. */
#define SERVICE_SCHEMA	"hashtext(current_database() || '/' || current_schema())"
#define SERVICE_LOCK	"1835495541, " SERVICE_SCHEMA

/**
 * struct pg - a connection
 * @secret: passwords of the URL, which no error may have; "": none
 * @prepared: statements that the server knows
 * @limit_ms: most time for a statement now, ms
 * @statement_ms: most time once the tables are there, ms
 * @session: the server's process for the last connection with the lock, 0: none
 * @rest_ms: time between attempts to connect, ms
 * @try_ns: no attempt before, CLOCK_MONOTONIC, ns
 */
struct pg {
	struct sql sql;
	char *url;
	char secret[2][256];
	PGconn *conn;
	bool prepared[SQL_STATEMENTS];
	unsigned int limit_ms, statement_ms;
	int session;
	unsigned int rest_ms;
	uint64_t try_ns;
};

static struct pg *pg_of(struct sql *sql)
{
	return (struct pg *)sql;
}

/* ---- errors ---- */

static void hide(char *text, const char *secret)
{
	size_t len = strlen(secret);

	if (!len)
		return;
	for (char *at = text; (at = strstr(at, secret)); at += len)
		memset(at, '*', len);
}

/* An error with the server's own words, on one line. */
static int failed(struct pg *pg, const char *what, const char *words)
{
	char text[400];

	snprintf(text, sizeof(text), "%s", words && *words ? words : "the connection is lost");
	text[strcspn(text, "\n")] = '\0';
	hide(text, pg->secret[0]);
	hide(text, pg->secret[1]);
	return sql_failed(&pg->sql, "PostgreSQL: %s: %s", what, text);
}

static int lost(struct pg *pg, const char *what, const char *words)
{
	pg->sql.lost = true;
	return failed(pg, what, words);
}

static const char *advice(const char *state)
{
	if (!strncmp(state, "53", 2))
		return "the server has no room: make some";
	if (!strcmp(state, "25006"))
		return "the server takes no writes: name the primary one";
	if (!strcmp(state, "42501"))
		return "the role has no right to: grant it";
	return "a statement failed";
}

/* Class 57P: the server ends the session, or is starting or stopping. */
static int check(struct pg *pg, const PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);
	const char *state;

	if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK)
		return 0;
	state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	if (PQstatus(pg->conn) == CONNECTION_BAD || !state || !strncmp(state, "57P", 3))
		return lost(pg, "the server ended the connection", PQerrorMessage(pg->conn));
	return failed(pg, advice(state), PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY));
}

/* ---- statements ---- */

/* Wait until a result is there; -EIO: not in time, or the connection is lost. */
static int ready(struct pg *pg, uint64_t end_ns)
{
	struct pollfd fd = { .fd = PQsocket(pg->conn) };

	while (PQisBusy(pg->conn)) {
		int flush = PQflush(pg->conn), n;

		fd.events = flush ? POLLIN | POLLOUT : POLLIN;
		n = poll(&fd, 1, poll_ms(end_ns));
		if (!n)
			return lost(pg, "no answer in time", "the server or the network is too slow");
		if (n < 0 && errno != EINTR)
			flush = -1;
		if (flush < 0 || !PQconsumeInput(pg->conn))
			return lost(pg, "no answer", PQerrorMessage(pg->conn));
	}
	return 0;
}

/* The first result with an error, or the last one; NULL: the connection is lost. */
static PGresult *results(struct pg *pg)
{
	uint64_t end_ns = now_ns() + pg->limit_ms * MSEC;
	PGresult *kept = NULL, *next;
	bool bad = false;

	for (;;) {
		if (ready(pg, end_ns)) {
			PQclear(kept);
			return NULL;
		}
		next = PQgetResult(pg->conn);
		if (!next)
			return kept;
		if (bad) {
			PQclear(next);
			continue;
		}
		PQclear(kept);
		kept = next;
		bad = PQresultStatus(kept) == PGRES_FATAL_ERROR;
		if (bad && PQstatus(pg->conn) == CONNECTION_BAD)
			return kept;
	}
}

/* Results of what was sent; *@result for a success is the caller's. */
static int finish(struct pg *pg, bool sent, PGresult **result)
{
	int rc;

	*result = NULL;
	if (!sent)
		return lost(pg, "cannot send", PQerrorMessage(pg->conn));
	*result = results(pg);
	if (!*result)
		return pg->sql.lost ? -EIO : failed(pg, "no answer", "");
	rc = check(pg, *result);
	if (rc) {
		PQclear(*result);
		*result = NULL;
	}
	return rc;
}

static int usable(struct pg *pg)
{
	return pg->sql.lost ? sql_failed(&pg->sql, "PostgreSQL: the connection is lost") : 0;
}

static int pg_script(struct sql *sql, const char *text)
{
	struct pg *pg = pg_of(sql);
	PGresult *result;
	int rc = usable(pg);

	if (rc)
		return rc;
	rc = finish(pg, PQsendQuery(pg->conn, text), &result);
	PQclear(result);
	return rc;
}

static int prepare(struct pg *pg, const struct sql_statement *statement, const char *name,
		   const struct sql_value *args, size_t nr)
{
	Oid types[SQL_COLUMNS];
	PGresult *result;
	int rc;

	for (size_t i = 0; i < nr; i++)
		types[i] = args[i].text ? OID_TEXT : OID_INT8;
	rc = finish(pg, PQsendPrepare(pg->conn, name, statement->text, (int)nr, types), &result);
	PQclear(result);
	pg->prepared[statement->id] = !rc;
	return rc;
}

static int give_rows(const PGresult *result, sql_row_fn *fn, void *arg)
{
	int columns = PQnfields(result), rc = 0;

	for (int i = 0; i < PQntuples(result) && !rc; i++) {
		struct sql_value row[SQL_COLUMNS] = { 0 };

		for (int j = 0; j < columns && j < SQL_COLUMNS; j++) {
			const char *text = PQgetvalue(result, i, j);

			if (PQftype(result, j) == OID_INT8) {
				row[j].number = strtoll(text, NULL, 10);
				continue;
			}
			row[j].text = text;
			row[j].size = (size_t)PQgetlength(result, i, j);
		}
		rc = fn(row, arg);
	}
	return rc;
}

static int pg_run(struct sql *sql, const struct sql_statement *statement,
		  const struct sql_value *args, size_t nr, sql_row_fn *fn, void *arg,
		  uint64_t *changed)
{
	struct pg *pg = pg_of(sql);
	char name[16], numbers[SQL_COLUMNS][24];
	const char *values[SQL_COLUMNS];
	PGresult *result;
	int rc = usable(pg);

	snprintf(name, sizeof(name), "s%u", statement->id);
	if (!rc && !pg->prepared[statement->id])
		rc = prepare(pg, statement, name, args, nr);
	if (rc)
		return rc;
	for (size_t i = 0; i < nr; i++) {
		snprintf(numbers[i], sizeof(numbers[i]), "%lld", (long long)args[i].number);
		values[i] = args[i].text ? args[i].text : numbers[i];
	}
	rc = finish(pg, PQsendQueryPrepared(pg->conn, name, (int)nr, values, NULL, NULL, 0),
		    &result);
	if (!rc && fn)
		rc = give_rows(result, fn, arg);
	if (changed)
		*changed = rc ? 0 : strtoull(PQcmdTuples(result), NULL, 10);
	PQclear(result);
	return rc;
}

/* ---- transactions ---- */

static int pg_begin(struct sql *sql)
{
	return pg_script(sql, "BEGIN");
}

static int pg_commit(struct sql *sql)
{
	struct pg *pg = pg_of(sql);
	PGresult *result;
	int rc = usable(pg);

	if (rc)
		return rc;
	rc = finish(pg, PQsendQuery(pg->conn, "COMMIT"), &result);
	/* COMMIT of a transaction with an error is a ROLLBACK, and no error. */
	if (!rc && strcmp(PQcmdStatus(result), "COMMIT"))
		rc = failed(pg, "COMMIT", "the server rolled the transaction back");
	PQclear(result);
	sql->doubt = rc && sql->lost;
	return rc;
}

static void pg_rollback(struct sql *sql)
{
	struct pg *pg = pg_of(sql);
	char error[POOL_TEXT_MAX];

	if (sql->lost) {
		/* the server ends what still runs */
		PQfinish(pg->conn);
		pg->conn = NULL;
		return;
	}
	if (PQtransactionStatus(pg->conn) == PQTRANS_IDLE)
		return;
	/* the reason for it stays */
	memcpy(error, sql->error, sizeof(error));
	pg_script(sql, "ROLLBACK");
	memcpy(sql->error, error, sizeof(error));
}

/* ---- opening ---- */

static void quiet(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

/* A single value of a query without parameters. */
static int ask(struct pg *pg, const char *text, char *value, size_t size)
{
	PGresult *result;
	int rc = finish(pg, PQsendQuery(pg->conn, text), &result);

	if (rc)
		return rc;
	snprintf(value, size, "%s", PQntuples(result) ? PQgetvalue(result, 0, 0) : "");
	PQclear(result);
	return 0;
}

static int connect_server(struct pg *pg)
{
	char holder[100], name[120];
	const char *const words[] = {
		"connect_timeout", "fallback_application_name", "target_session_attrs",
		"tcp_user_timeout", "dbname", "client_encoding", NULL,
	};
	const char *values[] = {
		"10", name, "read-write", "20000", pg->url, "UTF8", NULL,
	};

	sql_holder(holder, sizeof(holder));
	snprintf(name, sizeof(name), "mgpu-poold, %s", holder);
	PQfinish(pg->conn);
	memset(pg->prepared, 0, sizeof(pg->prepared));
	pg->conn = PQconnectdbParams(words, values, 1);
	if (!pg->conn)
		return lost(pg, "cannot connect", "out of memory");
	if (PQstatus(pg->conn) != CONNECTION_OK)
		return lost(pg, "cannot connect", PQerrorMessage(pg->conn));
	PQsetNoticeProcessor(pg->conn, quiet, NULL);
	pg->sql.lost = false;
	if (PQserverVersion(pg->conn) < VERSION_MIN)
		return failed(pg, "the server is too old", "install PostgreSQL 12 or later");
	return 0;
}

/* A COMMIT that returns is on disk, whatever the server's default is. */
#define SESSION								\
	"SET standard_conforming_strings = on;"				\
	"SET default_transaction_isolation = 'read committed';"		\
	"SELECT set_config('synchronous_commit', 'on', false)"		\
	" WHERE current_setting('synchronous_commit') IN ('off', 'local')"

static int configure(struct pg *pg)
{
	char schema[80];
	int rc = pg_script(&pg->sql, SESSION);

	if (!rc)
		rc = ask(pg, "SELECT current_schema()", schema, sizeof(schema));
	if (!rc && !*schema)
		return failed(pg, "the role has no schema", "create one, or set search_path");
	return rc;
}

static int try_lock(struct pg *pg, bool *locked)
{
	char got[8];
	int rc = ask(pg, "SELECT pg_try_advisory_lock(" SERVICE_LOCK ")", got, sizeof(got));

	*locked = !rc && *got == 't';
	return rc;
}

#define LOCK_HOLDER								\
	" FROM pg_locks l JOIN pg_stat_activity a USING (pid)"				\
	" WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 1835495541"	\
	" AND l.objid::bigint = " SERVICE_SCHEMA "::bigint & 4294967295"		\
	" AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"

#define HOLDER_TEXT								\
	"SELECT coalesce(a.application_name, '') || ' (session ' || a.pid"	\
	" || ', since ' || coalesce(a.backend_start::timestamp(0)::text, '?') || ')'"

static int held(struct pg *pg)
{
	char holder[200] = "";
	int rc = ask(pg, HOLDER_TEXT LOCK_HOLDER, holder, sizeof(holder));

	if (rc)
		return rc;
	sql_failed(&pg->sql, "%s serves the database: end it first",
		   *holder ? holder : "another service");
	return -EBUSY;
}

/* Take the lock; the session @former, an own one that the server has not given up yet, is ended. */
static int take_lock(struct pg *pg, int former)
{
	uint64_t end_ns = now_ns() + LOCK_MS * MSEC;
	char text[800], ended[8];
	bool locked;
	int rc;

	for (;;) {
		rc = try_lock(pg, &locked);
		if (rc || locked)
			return rc;
		if (former) {
			snprintf(text, sizeof(text), "SELECT pg_terminate_backend(a.pid)"
				 LOCK_HOLDER " AND a.pid = %d", former);
			rc = ask(pg, text, ended, sizeof(ended));
			if (rc)
				return rc;
		}
		if (now_ns() >= end_ns)
			return held(pg);
		nanosleep(&(struct timespec){ .tv_nsec = LOCK_POLL_MS * 1000000L }, NULL);
	}
}

static int start_session(struct pg *pg)
{
	int rc = connect_server(pg);

	return rc ? rc : configure(pg);
}

/* Take the lock; from then on this session is the one with it. */
static int lock(struct pg *pg)
{
	int rc = take_lock(pg, pg->session);

	if (!rc)
		pg->session = PQbackendPID(pg->conn);
	return rc;
}

static void pg_opened(struct sql *sql)
{
	struct pg *pg = pg_of(sql);

	pg->limit_ms = pg->statement_ms;
}

/* Attempts follow in growing distances: each may hold the service for the time limit. */
static int rest(struct pg *pg)
{
	pg->sql.lost = true;
	pg->rest_ms = pg->rest_ms ? pg->rest_ms * 2 : REST_MIN_MS;
	if (pg->rest_ms > REST_MAX_MS)
		pg->rest_ms = REST_MAX_MS;
	pg->try_ns = now_ns() + pg->rest_ms * MSEC;
	return -EIO;
}

static int pg_reopen(struct sql *sql)
{
	struct pg *pg = pg_of(sql);
	uint64_t now = now_ns();

	if (now < pg->try_ns)
		return sql_failed(sql, "PostgreSQL: the connection is lost; the next attempt is in %llu ms",
				  (unsigned long long)((pg->try_ns - now) / MSEC + 1));
	return start_session(pg) ? rest(pg) : 0;
}

static int pg_relock(struct sql *sql)
{
	struct pg *pg = pg_of(sql);

	if (lock(pg))
		return rest(pg);
	pg->rest_ms = 0;
	return 0;
}

static void pg_close(struct sql *sql)
{
	struct pg *pg = pg_of(sql);

	PQfinish(pg->conn);
	explicit_bzero(pg->secret, sizeof(pg->secret));
	if (pg->url)
		explicit_bzero(pg->url, strlen(pg->url));
	free(pg->url);
	free(pg);
}

/* Look for passwords and the time limit.  The parser's own errors quote the URL. */
static int parse(struct pg *pg, const char *url)
{
	PQconninfoOption *options, *o;
	char *error = NULL;
	int seconds = CONNECT_S;

	pg->url = strdup(url);
	if (!pg->url)
		return sql_failed(&pg->sql, "out of memory");
	options = PQconninfoParse(url, &error);
	PQfreemem(error);
	if (!options)
		return sql_failed(&pg->sql, "the URL of the database is invalid: write postgresql://USER@HOST/NAME, special characters as %%XX");
	for (o = options; o->keyword; o++) {
		if (!o->val)
			continue;
		if (!strcmp(o->keyword, "password"))
			snprintf(pg->secret[0], sizeof(pg->secret[0]), "%s", o->val);
		if (!strcmp(o->keyword, "sslpassword"))
			snprintf(pg->secret[1], sizeof(pg->secret[1]), "%s", o->val);
		if (!strcmp(o->keyword, "connect_timeout") && atoi(o->val) > 0)
			seconds = atoi(o->val);
	}
	PQconninfoFree(options);
	pg->statement_ms = (unsigned int)(seconds < 600 ? seconds : 600) * 1000;
	pg->limit_ms = OPENING_MS;
	return 0;
}

static int pg_open(const char *url, struct sql **sql, char *text)
{
	struct pg *pg = calloc(1, sizeof(*pg));
	int rc;

	if (!pg) {
		snprintf(text, POOL_TEXT_MAX, "out of memory");
		return -ENOMEM;
	}
	pg->sql.ops = &postgres_ops;
	rc = parse(pg, url);
	if (!rc)
		rc = start_session(pg);
	if (!rc)
		rc = lock(pg);
	if (rc) {
		snprintf(text, POOL_TEXT_MAX, "%s", pg->sql.error);
		pg_close(&pg->sql);
		return rc;
	}
	snprintf(pg->sql.kind, sizeof(pg->sql.kind), "postgresql %d.%d",
		 PQserverVersion(pg->conn) / 10000, PQserverVersion(pg->conn) % 10000);
	*sql = &pg->sql;
	return 0;
}

const struct sql_ops postgres_ops = {
	.dialect = SQL_POSTGRES,
	.open = pg_open,
	.opened = pg_opened,
	.reopen = pg_reopen,
	.relock = pg_relock,
	.close = pg_close,
	.script = pg_script,
	.run = pg_run,
	.begin = pg_begin,
	.commit = pg_commit,
	.rollback = pg_rollback,
};
