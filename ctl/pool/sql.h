/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A connection to a database, as store.c needs it: SQLite (sqlite.c) and PostgreSQL
 * (postgres.c).  SQL has parameters $1, $2...  Every value is a number of 64 bits or a text.
 */
#ifndef POOL_SQL_H
#define POOL_SQL_H

#include "model.h"

#define SQL_STATEMENTS	64	/* statements that a connection prepares once */
#define SQL_COLUMNS	32	/* columns or parameters of a statement */

enum sql_dialect { SQL_SQLITE, SQL_POSTGRES, SQL_DIALECTS };

/**
 * struct sql_value - a parameter or a column
 * @text: text, UTF-8; NULL: @number is the value
 * @size: bytes of @text without its NUL; of a column only
 */
struct sql_value {
	const char *text;
	size_t size;
	int64_t number;
};

/* A row of a result; other than 0 stops, and sql_run() returns it. */
typedef int sql_row_fn(const struct sql_value *row, void *arg);

/**
 * struct sql_statement - a statement, prepared when it is run first
 * @id: below SQL_STATEMENTS, of this statement alone
 */
struct sql_statement {
	unsigned int id;
	const char *text;
};

/**
 * struct sql - a connection
 * @kind: product and version, such as "sqlite 3.40.1"
 * @lost: the connection broke; the transaction, if there was one, did not commit unless
 *	@doubt is set
 * @doubt: the connection broke in a COMMIT
 * @error: the last error, for people, without a password
 */
struct sql {
	const struct sql_ops *ops;
	char kind[32];
	bool lost;
	bool doubt;
	char error[POOL_TEXT_MAX];
};

/**
 * struct sql_ops - a kind of database
 * @open: connect, and take the lock that one service has; on an error @text says why
 * @opened: the tables are there: statements now have the time limit of the service's work
 * @reopen: connect again after @lost, without the lock
 * @relock: take the lock after @reopen; on an error the connection is lost again
 * @close: give the lock back and disconnect
 * @script: run several statements without parameters and results
 * @run: run a statement; @changed, if not NULL: rows that it changed
 * @begin, @commit: the transaction; -EIO if the database failed
 * @rollback: end a transaction, if there is one
 *
 * Functions return 0 or -EIO, with a sentence in @error; @open also -EBUSY if another service
 * has the database, and -ENOMEM.
 */
struct sql_ops {
	enum sql_dialect dialect;
	int (*open)(const char *url, struct sql **sql, char *text);
	void (*opened)(struct sql *sql);
	int (*reopen)(struct sql *sql);
	int (*relock)(struct sql *sql);
	void (*close)(struct sql *sql);
	int (*script)(struct sql *sql, const char *text);
	int (*run)(struct sql *sql, const struct sql_statement *statement,
		   const struct sql_value *args, size_t nr, sql_row_fn *fn, void *arg,
		   uint64_t *changed);
	int (*begin)(struct sql *sql);
	int (*commit)(struct sql *sql);
	void (*rollback)(struct sql *sql);
};

extern const struct sql_ops sqlite_ops, postgres_ops;

/* Write an error; return -EIO. */
int sql_failed(struct sql *sql, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "process PID on HOST", for the holder of the lock. */
void sql_holder(char *text, size_t size);

#endif /* POOL_SQL_H */
