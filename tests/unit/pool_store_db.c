// SPDX-License-Identifier: GPL-2.0-only
#include <fcntl.h>
#include <libpq-fe.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store.h"
#include "test_pool_store.h"

static char folder[64];
static const char *server;	/* postgresql://.../%s?...: %s is the database's name */

int database_init(void)
{
	const char *tmp = getenv("TMPDIR");

	server = getenv("POOL_STORE_SERVER");
	if (server && !*server)
		server = NULL;
	snprintf(folder, sizeof(folder), "%.30s/pool-store-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

void database_exit(void)
{
	char command[100];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command))
		perror(folder);
}

const char *backend_name(void)
{
	return server ? "postgresql" : "sqlite";
}

const char *database_server(void)
{
	return server;
}

const char *database_folder(void)
{
	return folder;
}

const char *database_path(void)
{
	static char path[100];

	snprintf(path, sizeof(path), "%s/%d.db", folder, (int)getpid());
	return path;
}

static const char *url_of(const char *name)
{
	static char url[400];

	/* one %s only, of the caller's */
	snprintf(url, sizeof(url), "%.*s%s%s", (int)(strstr(server, "%s") - server), server, name,
		 strstr(server, "%s") + 2);
	return url;
}

const char *database_url(void)
{
	static char url[120];
	char name[40];

	if (server) {
		snprintf(name, sizeof(name), "t%d", (int)getpid());
		return url_of(name);
	}
	snprintf(url, sizeof(url), "sqlite:%s", database_path());
	return url;
}

static void quiet(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

static int pg_exec(const char *url, const char *text)
{
	PGconn *conn = PQconnectdb(url);
	PGresult *result;
	ExecStatusType status;
	int rc;

	PQsetNoticeProcessor(conn, quiet, NULL);
	result = PQexec(conn, text);
	status = PQresultStatus(result);
	rc = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? 0 : -1;
	if (rc)
		fprintf(stderr, "%.100s: %s", text, PQerrorMessage(conn));
	PQclear(result);
	PQfinish(conn);
	return rc;
}

static int lite_exec(const char *text)
{
	sqlite3 *db;
	char *error = NULL;
	int rc = sqlite3_open(database_path(), &db);

	if (!rc)
		rc = sqlite3_exec(db, text, NULL, NULL, &error);
	if (rc)
		fprintf(stderr, "%.100s: %s\n", text, error ? error : "cannot open");
	sqlite3_free(error);
	sqlite3_close(db);
	return rc;
}

int sql_by_hand(const char *text)
{
	return server ? pg_exec(database_url(), text) : lite_exec(text);
}

static bool make_empty_sqlite(void)
{
	static const char *const ends[] = { "", "-wal", "-shm", "-lock" };
	char path[120];
	int fd;

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		snprintf(path, sizeof(path), "%s%s", database_path(), ends[i]);
		unlink(path);
	}
	fd = open(database_path(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

bool make_empty(void)
{
	char text[100];

	if (!server)
		return make_empty_sqlite();
	snprintf(text, sizeof(text), "DROP DATABASE IF EXISTS t%d WITH (FORCE)", (int)getpid());
	if (pg_exec(url_of("postgres"), text))
		return false;
	snprintf(text, sizeof(text), "CREATE DATABASE t%d", (int)getpid());
	return !pg_exec(url_of("postgres"), text);
}

struct store *open_again(void)
{
	char text[POOL_TEXT_MAX];
	struct store *store;

	if (!store_open(database_url(), &store, text))
		return store;
	fprintf(stderr, "%s\n", text);
	return NULL;
}

struct store *open_new(void)
{
	return make_empty() ? open_again() : NULL;
}

bool load_dump(const char *path)
{
	size_t size = 0;
	char *text = NULL;
	FILE *f = fopen(path, "r");
	bool good = f && getdelim(&text, &size, '\0', f) > 0 && make_empty() && !sql_by_hand(text);

	if (!f)
		perror(path);
	else
		fclose(f);
	free(text);
	return good;
}

bool take_lock_away(void)
{
	char path[120];

	if (server)
		return !pg_exec(url_of("postgres"),
				"SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'");
	snprintf(path, sizeof(path), "%s-lock", database_path());
	return !unlink(path);
}

int store_group(struct store *store, unsigned int group)
{
	struct pool_request r = { .project = "p", .vm = "v", .kind = "k" };
	int rc = store_begin(store);

	memset(r.why, 'x', sizeof(r.why) - 1);
	for (unsigned int i = 0; i < GROUP && !rc; i++) {
		snprintf(r.key, sizeof(r.key), "%u-%u", group, i);
		rc = store_add_request(store, &r);
	}
	if (!rc)
		return store_commit(store);
	store_rollback(store);
	return rc;
}

struct groups {
	unsigned int *counts, nr;
};

static int count_group(const struct pool_request *r, void *arg)
{
	const struct groups *groups = arg;
	unsigned int group = (unsigned int)atoi(r->key);

	if (group < groups->nr)
		groups->counts[group]++;
	return 0;
}

bool count_groups(struct store *store, unsigned int *counts, unsigned int nr)
{
	struct groups groups = { counts, nr };
	bool good;

	memset(counts, 0, nr * sizeof(*counts));
	good = !store_requests(store, NULL, 0, 1000000, count_group, &groups);
	for (unsigned int i = 0; i < nr; i++)
		good = good && (counts[i] == 0 || counts[i] == GROUP);
	return good;
}
