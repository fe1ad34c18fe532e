// SPDX-License-Identifier: GPL-2.0-only
/*
 * SQLite: a file with a write-ahead log.  The lock of the one service is on a file beside it, so
 * that other programs can read and back up the database meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sql.h"

#define APPLICATION_ID	0x6d677075	/* "mgpu" */
/* For another program's write, such as that of an administrator's sqlite3. */
#define BUSY_MS		5000

struct lite {
	struct sql sql;
	struct sqlite3 *db;
	struct sqlite3_stmt *statements[SQL_STATEMENTS];
	int lock;
};

static struct lite *lite_of(struct sql *sql)
{
	return (struct lite *)sql;
}

/* ---- errors ---- */

static const char *advice(int code)
{
	switch (code & 0xff) {
	case SQLITE_FULL:
		return "make room on its disk";
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return "another program writes to it: end that one";
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return "the file is damaged or no database: restore a backup";
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
	case SQLITE_CANTOPEN:
		return "give this user the right to write to the file and its folder";
	default:
		return "look at its disk and its file system";
	}
}

static int failed(struct lite *l, int code)
{
	return sql_failed(&l->sql, "SQLite: %s (%d): %s", l->db ? sqlite3_errmsg(l->db) :
			  sqlite3_errstr(code), code, advice(code));
}

/* ---- statements ---- */

static int lite_script(struct sql *sql, const char *text)
{
	struct lite *l = lite_of(sql);
	int code = sqlite3_exec(l->db, text, NULL, NULL, NULL);

	return code ? failed(l, code) : 0;
}

/* SQLite numbers parameters with ?1, and gives $1 a number by its place. */
static int prepare(struct lite *l, const struct sql_statement *statement)
{
	char *text = strdup(statement->text);
	int code;

	if (!text)
		return sql_failed(&l->sql, "out of memory");
	for (char *c = text; (c = strchr(c, '$'));)
		*c = '?';
	code = sqlite3_prepare_v3(l->db, text, -1, SQLITE_PREPARE_PERSISTENT,
				  &l->statements[statement->id], NULL);
	free(text);
	return code ? failed(l, code) : 0;
}

static int bind(struct lite *l, sqlite3_stmt *s, const struct sql_value *args, size_t nr)
{
	int code = SQLITE_OK;

	for (size_t i = 0; i < nr && !code; i++) {
		if (args[i].text)
			code = sqlite3_bind_text(s, (int)i + 1, args[i].text, -1, SQLITE_STATIC);
		else
			code = sqlite3_bind_int64(s, (int)i + 1, args[i].number);
	}
	return code ? failed(l, code) : 0;
}

static int give_row(sqlite3_stmt *s, sql_row_fn *fn, void *arg)
{
	struct sql_value row[SQL_COLUMNS] = { 0 };
	int nr = sqlite3_column_count(s);

	for (int i = 0; i < nr && i < SQL_COLUMNS; i++) {
		if (sqlite3_column_type(s, i) == SQLITE_INTEGER) {
			row[i].number = sqlite3_column_int64(s, i);
			continue;
		}
		row[i].text = (const char *)sqlite3_column_text(s, i);
		row[i].size = (size_t)sqlite3_column_bytes(s, i);
	}
	return fn ? fn(row, arg) : 0;
}

static int lite_run(struct sql *sql, const struct sql_statement *statement,
		    const struct sql_value *args, size_t nr, sql_row_fn *fn, void *arg,
		    uint64_t *changed)
{
	struct lite *l = lite_of(sql);
	sqlite3_stmt *s;
	int rc = 0, code;

	if (!l->statements[statement->id])
		rc = prepare(l, statement);
	if (rc)
		return rc;
	s = l->statements[statement->id];
	rc = bind(l, s, args, nr);
	while (!rc && (code = sqlite3_step(s)) != SQLITE_DONE)
		rc = code == SQLITE_ROW ? give_row(s, fn, arg) : failed(l, code);
	if (changed)
		*changed = (uint64_t)sqlite3_changes64(l->db);
	sqlite3_reset(s);
	sqlite3_clear_bindings(s);
	return rc;
}

/* ---- transactions ---- */

static int lite_begin(struct sql *sql)
{
	return lite_script(sql, "BEGIN IMMEDIATE");
}

static int lite_commit(struct sql *sql)
{
	struct lite *l = lite_of(sql);

	/* SQLite rolls back by itself when a disk is full. */
	if (sqlite3_get_autocommit(l->db))
		return sql_failed(sql, "SQLite: the transaction was rolled back");
	return lite_script(sql, "COMMIT");
}

static void lite_rollback(struct sql *sql)
{
	struct lite *l = lite_of(sql);

	if (!sqlite3_get_autocommit(l->db))
		sqlite3_exec(l->db, "ROLLBACK", NULL, NULL, NULL);
}

/* ---- opening ---- */

/* The file's one name, which links to it share. */
static int resolve(const char *path, char *real, struct lite *l)
{
	char folder[PATH_MAX];
	const char *name = strrchr(path, '/');
	struct stat st;

	if (realpath(path, real)) {
		if (stat(real, &st) || S_ISREG(st.st_mode))
			return 0;
		return sql_failed(&l->sql, "%.300s is no regular file: name another", path);
	}
	name = name ? name + 1 : path;
	if (errno != ENOENT || !*name)
		return sql_failed(&l->sql, "%.300s: %s", path, strerror(errno));
	snprintf(folder, sizeof(folder), "%.*s", name == path ? 1 : (int)(name - path),
		 name == path ? "." : path);
	if (!realpath(folder, real) || strlen(real) + strlen(name) + 2 > PATH_MAX)
		return sql_failed(&l->sql, "%.300s: %s: make the folder first", folder,
				  strerror(errno));
	strcat(strcat(real, "/"), name);
	return 0;
}

/* Closing any descriptor of the database would drop SQLite's own locks: this file is another. */
static int lock(struct lite *l, const char *path)
{
	char name[PATH_MAX + 8], holder[100] = "";

	snprintf(name, sizeof(name), "%s-lock", path);
	l->lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (l->lock < 0)
		return sql_failed(&l->sql, "%.300s: %s: give this user the right to write to the folder",
				  name, strerror(errno));
	if (flock(l->lock, LOCK_EX | LOCK_NB)) {
		if (pread(l->lock, holder, sizeof(holder) - 1, 0) <= 0)
			strcpy(holder, "a process");
		holder[strcspn(holder, "\n")] = '\0';
		sql_failed(&l->sql, "%s serves the database %.300s: end it first", holder, path);
		return -EBUSY;
	}
	sql_holder(holder, sizeof(holder) - 1);
	strcat(holder, "\n");
	if (ftruncate(l->lock, 0) || pwrite(l->lock, holder, strlen(holder), 0) < 0)
		return sql_failed(&l->sql, "%.300s: %s", name, strerror(errno));
	return 0;
}

/* Keys of VMs are in the file: it is its owner's. */
static int check_file(struct lite *l, const char *path)
{
	struct stat st;
	int fd;

	if (stat(path, &st)) {
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd < 0)
			return sql_failed(&l->sql, "%.300s: %s", path, strerror(errno));
		close(fd);
		return 0;
	}
	if (st.st_mode & 07)
		return sql_failed(&l->sql, "every user has access to %.300s, which has keys: run chmod o= %.100s",
				  path, path);
	return 0;
}

static int take_text(void *arg, int nr, char **values, char **names)
{
	(void)nr;
	(void)names;
	snprintf(arg, 32, "%s", values[0] ? values[0] : "");
	return 0;
}

static int ask(struct lite *l, const char *text, char answer[32])
{
	int code = sqlite3_exec(l->db, text, take_text, answer, NULL);

	return code ? failed(l, code) : 0;
}

/* The file is the service's, or has nothing yet. */
static int check_owner(struct lite *l)
{
	char id[32] = "", tables[32] = "", want[48];
	int rc = ask(l, "PRAGMA application_id", id);

	if (!rc)
		rc = ask(l, "SELECT count(*) FROM sqlite_master", tables);
	if (rc)
		return rc;
	snprintf(want, sizeof(want), "%d", APPLICATION_ID);
	if (!strcmp(id, want))
		return 0;
	if (strcmp(id, "0") || strcmp(tables, "0"))
		return sql_failed(&l->sql, "the file is the database of another program: name another file");
	snprintf(want, sizeof(want), "PRAGMA application_id = %d", APPLICATION_ID);
	return lite_script(&l->sql, want);
}

static int configure(struct lite *l)
{
	char mode[32] = "";
	int rc;

	sqlite3_extended_result_codes(l->db, 1);
	sqlite3_busy_timeout(l->db, BUSY_MS);
	sqlite3_db_config(l->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(l->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	rc = check_owner(l);
	if (!rc)
		rc = ask(l, "PRAGMA journal_mode = WAL", mode);
	if (!rc && strcmp(mode, "wal"))
		return sql_failed(&l->sql, "SQLite can have no write-ahead log there: name a file on a local file system");
	if (!rc)
		rc = lite_script(&l->sql, "PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON; PRAGMA journal_size_limit = 67108864");
	return rc;
}

static void lite_close(struct sql *sql)
{
	struct lite *l = lite_of(sql);

	for (size_t i = 0; i < SQL_STATEMENTS; i++)
		sqlite3_finalize(l->statements[i]);
	sqlite3_close(l->db);
	if (l->lock >= 0)
		close(l->lock);
	free(l);
}

static int open_file(struct lite *l, const char *path)
{
	char real[PATH_MAX];
	int rc, code;

	if (!*path || !strcmp(path, ":memory:"))
		return sql_failed(&l->sql, "the database needs a file: write sqlite:PATH");
	rc = resolve(path, real, l);
	if (!rc)
		rc = lock(l, real);
	if (!rc)
		rc = check_file(l, real);
	if (rc)
		return rc;
	code = sqlite3_open_v2(real, &l->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW, NULL);
	return code ? failed(l, code) : configure(l);
}

static int lite_open(const char *url, struct sql **sql, char *text)
{
	struct lite *l = calloc(1, sizeof(*l));
	int rc;

	if (!l) {
		snprintf(text, POOL_TEXT_MAX, "out of memory");
		return -ENOMEM;
	}
	l->sql.ops = &sqlite_ops;
	l->lock = -1;
	snprintf(l->sql.kind, sizeof(l->sql.kind), "sqlite %s", sqlite3_libversion());
	rc = open_file(l, strncmp(url, "sqlite:", 7) ? url : url + 7);
	if (rc) {
		snprintf(text, POOL_TEXT_MAX, "%s", l->sql.error);
		lite_close(&l->sql);
		return rc;
	}
	*sql = &l->sql;
	return 0;
}

static void lite_opened(struct sql *sql)
{
	(void)sql;
}

static int lite_reopen(struct sql *sql)
{
	return sql_failed(sql, "SQLite has no connection that breaks");
}

const struct sql_ops sqlite_ops = {
	.dialect = SQL_SQLITE,
	.open = lite_open,
	.opened = lite_opened,
	.reopen = lite_reopen,
	.relock = lite_reopen,
	.close = lite_close,
	.script = lite_script,
	.run = lite_run,
	.begin = lite_begin,
	.commit = lite_commit,
	.rollback = lite_rollback,
};
