/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The database: SQLite (a file, WAL, synchronous=FULL) or PostgreSQL (by URL, libpq).  All SQL
 * of the service is behind these functions, with bound parameters only.  Every function that
 * changes something is on disk when it returns, in one transaction of its own unless the caller
 * began one.  One thread uses a store.
 *
 * A function returns 0, or a negative error number and store_error() says more:
 *
 * -ENOENT	there is no such row
 * -EEXIST	it is there already
 * -EILSEQ	a text is not UTF-8, or has no end in its field
 * -ERANGE	a number that the database has no room for (64 bits with a sign)
 * -EINVAL	an unknown value of an enumeration; a transaction where none can be
 * -EDEADLK	called from a callback: those only look at their row
 * -EIO		the database failed; nothing of the transaction is written, and a lost connection
 *		is opened again by the next function
 * -ESTALE	the caller's memory is not what the database has, because another service used
 *		it, or a COMMIT of a lost connection turned out to be done after -EIO: the process
 *		must end, and its next start reads the database
 *
 * Once a function of a transaction that the caller began returned -EIO, so do the others, and
 * store_commit() rolls back.
 */
#ifndef POOL_STORE_H
#define POOL_STORE_H

#include "model.h"

struct store;

/**
 * store_open() - open a database, make or migrate its tables
 * @url: sqlite:PATH, a path, or postgresql://...; there, connect_timeout (10 s) is the limit of a
 *	statement, too
 * @store: result
 * @text: why not, of POOL_TEXT_MAX bytes; never holds a password
 *
 * Return: 0; -EBUSY if another service has the database, with its name in @text; -EPROTO if the
 * database is of a later version of the service; -EINVAL for an unknown kind; -ENOMEM; -EIO.
 */
int store_open(const char *url, struct store **store, char *text);
void store_close(struct store *store);
const char *store_error(const struct store *store);
/* "sqlite 3.40.1" */
const char *store_kind(const struct store *store);
int store_version(struct store *store);

int store_begin(struct store *store);
int store_commit(struct store *store);
void store_rollback(struct store *store);

/* Insert or update. The seq of a VM that is there stays: store_take_seq() alone raises it. */
int store_put_project(struct store *store, const struct pool_project *project);
int store_put_vm(struct store *store, const struct pool_vm *vm);
int store_put_gpu(struct store *store, const struct pool_gpu *gpu);
/* With its tokens. */
int store_drop_project(struct store *store, const char *name);
/* With its key. */
int store_drop_vm(struct store *store, const char *name);

/**
 * store_add_request() - store a new request
 * @r: the request; its @id is set. A number is never given twice, retention or not.
 *
 * Return: 0; -EEXIST if the project has a request with this @key, which is then in @r.
 */
int store_add_request(struct store *store, struct pool_request *r);
/* Find the request of @r's project with @r's key, over or not. -ENOENT: @r is as it was. */
int store_find_request(struct store *store, struct pool_request *r);
/* Store all fields of a request but id, key, project, vm. */
int store_put_request(struct store *store, const struct pool_request *r);
int store_get_request(struct store *store, uint64_t id, struct pool_request *r);

/* A row with the same request, time and source, or the same request, is replaced. */
int store_add_use(struct store *store, const struct pool_use *use);
int store_add_outcome(struct store *store, const struct pool_outcome *outcome);
/* Sets @event->id. */
int store_add_event(struct store *store, struct pool_event *event);

/* Call @fn for each row; it returns other than 0 to stop, which is then returned. */
int store_projects(struct store *store, int (*fn)(const struct pool_project *, void *), void *arg);
int store_vms(struct store *store, int (*fn)(const struct pool_vm *, void *), void *arg);
int store_gpus(struct store *store, int (*fn)(const struct pool_gpu *, void *), void *arg);
/* Requests that are not over, by id. */
int store_open_requests(struct store *store, int (*fn)(const struct pool_request *, void *),
			void *arg);
/* Requests with an id below @before (0: all), newest first; @project NULL: all; over or not. */
int store_requests(struct store *store, const char *project, uint64_t before, unsigned int limit,
		   int (*fn)(const struct pool_request *, void *), void *arg);
/* Events with an id above @after, oldest first; of @request if it is not 0. */
int store_events(struct store *store, uint64_t after, uint64_t request, unsigned int limit,
		 int (*fn)(const struct pool_event *, void *), void *arg);
int store_uses(struct store *store, uint64_t request, int64_t since, unsigned int limit,
	       int (*fn)(const struct pool_use *, void *), void *arg);
/* The last sample of each source in each @seconds since @since, 1 at least; oldest first. */
int store_course(struct store *store, uint64_t request, int64_t since, int64_t seconds,
		 int (*fn)(const struct pool_use *, void *), void *arg);
/* Outcomes, newest first; those behind that of the request @before (0: all). */
int store_outcomes(struct store *store, uint64_t before, unsigned int limit,
		   int (*fn)(const struct pool_outcome *, void *), void *arg);

/* ---- credentials: only hashes are stored ---- */

enum store_role { STORE_VIEWER, STORE_PROJECT, STORE_ADMIN, STORE_ROLES };

/* Names of roles, as the API and the database have them; NULL, -1: no such. */
const char *store_role_name(enum store_role role);
int store_role_of(const char *name);

/**
 * struct store_token - a token for the API
 * @hash: SHA-256 of the token, hexadecimal
 * @project: for STORE_PROJECT and STORE_VIEWER; "" for a viewer: all projects
 * @expires: 0: never
 */
struct store_token {
	char name[POOL_NAME_MAX];
	char hash[65];
	enum store_role role;
	char project[POOL_NAME_MAX];
	int64_t expires;
};

/* -EEXIST: the hash is that of another name. */
int store_put_token(struct store *store, const struct store_token *token);
int store_drop_token(struct store *store, const char *name);
/* The caller looks at @expires. */
int store_find_token(struct store *store, const char *hash, struct store_token *token);
int store_tokens(struct store *store, int (*fn)(const struct store_token *, void *), void *arg);

/* The key that a VM's agent signs with (32 bytes; it must be known whole). -ENOENT: no such VM. */
int store_put_vm_key(struct store *store, const char *vm, const unsigned char key[32]);
int store_get_vm_key(struct store *store, const char *vm, unsigned char key[32]);
/*
 * Take all sequence numbers up to @to, if @seq is higher than all before. -EEXIST: it is not, and
 * *@last is the highest.
 */
int store_take_seq(struct store *store, const char *vm, uint64_t seq, uint64_t to,
		   uint64_t *last);

/*
 * Delete requests that ended before @before, with their events and uses; uses of then; and events
 * of then that are of no request. The history stays. Many requests are deleted in several
 * transactions, unless the caller began one.
 */
int store_retain(struct store *store, int64_t before, uint64_t *deleted);
/* The history as CSV (RFC 4180) with a line of names; no text of it is a formula. */
int store_export(struct store *store, int fd);

#endif /* POOL_STORE_H */
