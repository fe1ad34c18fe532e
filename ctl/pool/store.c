// SPDX-License-Identifier: GPL-2.0-only
/*
 * The functions of store.h over a connection of sql.h.
 *
 * Each transaction first raises the counter in pool_service, where the generation is still that
 * which store_open() made: so a service that lost its lock without notice cannot write any more,
 * and the counter tells after a lost connection whether a COMMIT was done.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export.h"
#include "rows.h"
#include "schema.h"
#include "statements.h"
#include "store.h"

#define DIGITS		64	/* of 32 bytes */
/* Requests that one transaction of store_retain() deletes: others need not wait long. */
#define RETAIN_BATCH	500

/**
 * struct store - a database
 * @began: the caller's transaction is open
 * @inside: a transaction is open, the caller's or a function's own
 * @broken: a statement of the caller's transaction failed, and it cannot commit
 * @reading: a callback runs
 * @stale: another service used the database since, or a COMMIT that was reported as failed is in
 *	it: the caller's memory is not what the database has
 * @transactions: counter of pool_service after the last transaction
 */
struct store {
	struct sql *sql;
	unsigned int version;
	char *text[NR_STATEMENTS];
	bool began, inside, broken, reading, stale;
	int64_t generation, transactions;
	char error[POOL_TEXT_MAX];
};

/* ---- errors ---- */

__attribute__((format(printf, 3, 4)))
static int refuse(struct store *store, int error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(store->error, sizeof(store->error), fmt, ap);
	va_end(ap);
	return error;
}

/* Take over an error of the connection. */
static int taken(struct store *store, int rc)
{
	if (rc < 0)
		memcpy(store->error, store->sql->error, sizeof(store->error));
	return rc;
}

static int stale(struct store *store, const char *why)
{
	store->stale = true;
	return refuse(store, -ESTALE, "%s: start the service again, so that it reads the database",
		      why);
}

/* ---- statements ---- */

static int run(struct store *store, enum statement statement, const struct sql_value *args,
	       size_t nr, sql_row_fn *fn, void *arg, uint64_t *changed)
{
	const struct sql_statement s = { statement, store->text[statement] };

	return taken(store, store->sql->ops->run(store->sql, &s, args, nr, fn, arg, changed));
}

/* A statement that does without an object. */
static int change(struct store *store, enum statement statement, const struct sql_value *args,
		  size_t nr, uint64_t *changed)
{
	return run(store, statement, args, nr, NULL, NULL, changed);
}

static int take_number(const struct sql_value *row, void *arg)
{
	*(int64_t *)arg = row->number;
	return 0;
}

/* ---- connections and transactions ---- */

struct fence {
	int64_t generation, transactions;
};

static int take_fence(const struct sql_value *row, void *arg)
{
	struct fence *fence = arg;

	fence->generation = row[0].number;
	fence->transactions = row[1].number;
	return 0;
}

static int read_fence(struct store *store, struct fence *fence)
{
	int rc = run(store, ST_FENCE_READ, NULL, 0, take_fence, fence, NULL);

	if (!rc && fence->generation != store->generation)
		return stale(store, "another service used the database");
	return rc;
}

/*
 * Connect again, and see what became of a transaction; *@done: it is in the database.  The lock
 * is free once the former session is over, and so is its COMMIT.
 */
static int reconnect(struct store *store, bool *done)
{
	struct fence fence = { 0 };
	int rc = taken(store, store->sql->ops->reopen(store->sql));

	if (!rc)
		rc = read_fence(store, &fence);
	if (!rc)
		rc = taken(store, store->sql->ops->relock(store->sql));
	if (!rc)
		rc = read_fence(store, &fence);
	if (rc) {
		store->sql->lost = true;
		return rc;
	}
	*done = store->sql->doubt && fence.transactions == store->transactions + 1;
	if (fence.transactions != store->transactions + *done)
		return stale(store, "the database has not all that this service wrote, or more");
	store->sql->doubt = false;
	return 0;
}

static int connected(struct store *store)
{
	bool done;
	int rc;

	if (store->stale)
		return stale(store, "the database has changed behind this service");
	if (!store->sql->lost)
		return 0;
	rc = reconnect(store, &done);
	if (!rc && done)
		return stale(store, "the database has a change that it could not confirm");
	return rc;
}

static int fence(struct store *store)
{
	const struct sql_value args[] = { { .number = store->generation } };
	int64_t transactions = -1;
	int rc = run(store, ST_FENCE, args, 1, take_number, &transactions, NULL);

	if (!rc && transactions != store->transactions + 1)
		return stale(store, "another service uses the database");
	return rc;
}

/* A connection that broke while it was idle is opened again at once: nothing was done yet. */
static int begin(struct store *store)
{
	int rc = 0;

	if (store->reading)
		return refuse(store, -EDEADLK, "a callback of the database cannot use it");
	for (int tries = 0; tries < 2; tries++) {
		rc = connected(store);
		if (!rc)
			rc = taken(store, store->sql->ops->begin(store->sql));
		if (!rc)
			rc = fence(store);
		if (rc != -EIO || !store->sql->lost)
			break;
	}
	if (rc)
		store->sql->ops->rollback(store->sql);
	store->inside = !rc;
	return rc;
}

static void rollback(struct store *store)
{
	store->sql->ops->rollback(store->sql);
	store->inside = false;
}

static int commit(struct store *store)
{
	int rc = taken(store, store->sql->ops->commit(store->sql));
	bool done = !rc;

	store->inside = false;
	if (rc && store->sql->doubt && reconnect(store, &done))
		done = false;
	if (done) {
		store->transactions++;
		return 0;
	}
	store->sql->ops->rollback(store->sql);
	return store->stale ? -ESTALE : rc;
}

int store_begin(struct store *store)
{
	int rc;

	if (store->began)
		return refuse(store, -EINVAL, "a transaction is open already");
	rc = begin(store);
	store->began = !rc;
	store->broken = false;
	return rc;
}

int store_commit(struct store *store)
{
	if (!store->began)
		return refuse(store, -EINVAL, "no transaction is open");
	if (store->broken) {
		store_rollback(store);
		return -EIO;
	}
	store->began = false;
	return commit(store);
}

void store_rollback(struct store *store)
{
	if (store->began)
		rollback(store);
	store->began = false;
	store->broken = false;
}

/* Begin a change: the caller's transaction, or one of its own. */
static int enter(struct store *store)
{
	if (!store->began)
		return begin(store);
	if (store->reading)
		return refuse(store, -EDEADLK, "a callback of the database cannot use it");
	/* the first error stays */
	return store->broken ? -EIO : 0;
}

static int leave(struct store *store, int rc)
{
	if (store->began) {
		if (rc == -EIO)
			store->broken = true;
		return rc;
	}
	if (!rc)
		return commit(store);
	rollback(store);
	return rc;
}

/* One statement that changes something, with -ENOENT if it changed nothing. */
static int one_change(struct store *store, enum statement statement, const struct sql_value *args,
		      size_t nr, const char *missing)
{
	uint64_t changed = 0;
	int rc = enter(store);

	if (rc)
		return rc;
	rc = change(store, statement, args, nr, &changed);
	if (!rc && !changed && missing)
		rc = refuse(store, -ENOENT, "there is no such %s", missing);
	return leave(store, rc);
}

/* ---- objects ---- */

static int put(struct store *store, enum statement statement, const struct row_table *table,
	       const void *object)
{
	struct row_values values;
	int rc = row_values(table, object, 0, &values, store->error);

	return rc ? rc : one_change(store, statement, values.v, table->nr, NULL);
}

static int drop(struct store *store, enum statement statement, const char *name,
		const char *what)
{
	const struct sql_value args[] = { { .text = name } };
	int rc = row_check_text("name", name, 2 * POOL_NAME_MAX, store->error);

	return rc ? rc : one_change(store, statement, args, 1, what);
}

int store_put_project(struct store *store, const struct pool_project *project)
{
	return put(store, ST_PUT_PROJECT, &row_project, project);
}

int store_put_vm(struct store *store, const struct pool_vm *vm)
{
	return put(store, ST_PUT_VM, &row_vm, vm);
}

int store_put_gpu(struct store *store, const struct pool_gpu *gpu)
{
	return put(store, ST_PUT_GPU, &row_gpu, gpu);
}

/* Delete an object, and first the credentials that belong to its name. */
static int drop_with(struct store *store, enum statement credentials, enum statement statement,
		     const char *name, const char *what)
{
	const struct sql_value args[] = { { .text = name } };
	uint64_t changed = 0;
	int rc = row_check_text("name", name, POOL_NAME_MAX, store->error);

	if (!rc)
		rc = enter(store);
	if (rc)
		return rc;
	rc = change(store, credentials, args, 1, NULL);
	if (!rc)
		rc = change(store, statement, args, 1, &changed);
	if (!rc && !changed)
		rc = refuse(store, -ENOENT, "there is no such %s", what);
	return leave(store, rc);
}

/* Its tokens go along: a later project of the name is another one. */
int store_drop_project(struct store *store, const char *name)
{
	return drop_with(store, ST_DROP_TOKENS, ST_DROP_PROJECT, name, "project");
}

/* The key goes along: sequence numbers of the VM's messages are forgotten. */
int store_drop_vm(struct store *store, const char *name)
{
	return drop_with(store, ST_DROP_KEY, ST_DROP_VM, name, "VM");
}

int store_add_use(struct store *store, const struct pool_use *use)
{
	return put(store, ST_PUT_USE, &row_use, use);
}

int store_add_outcome(struct store *store, const struct pool_outcome *outcome)
{
	return put(store, ST_PUT_OUTCOME, &row_outcome, outcome);
}

/* Insert a row that the database numbers; @id stays 0 if the row is there. */
static int insert(struct store *store, enum statement statement, const struct row_table *table,
		  const struct row_values *values, int64_t *id)
{
	*id = 0;
	return run(store, statement, values->v, table->nr - 1, take_number, id, NULL);
}

int store_add_event(struct store *store, struct pool_event *event)
{
	struct row_values values;
	int64_t id;
	int rc = row_values(&row_event, event, 1, &values, store->error);

	if (!rc)
		rc = enter(store);
	if (rc)
		return rc;
	rc = leave(store, insert(store, ST_ADD_EVENT, &row_event, &values, &id));
	if (!rc)
		event->id = (uint64_t)id;
	return rc;
}

/* ---- reading ---- */

/**
 * struct each - rows on their way to a caller
 * @fn: the caller's function, of the type that @table says
 */
struct each {
	struct store *store;
	const struct row_table *table;
	union {
		int (*project)(const struct pool_project *project, void *arg);
		int (*vm)(const struct pool_vm *vm, void *arg);
		int (*gpu)(const struct pool_gpu *gpu, void *arg);
		int (*request)(const struct pool_request *request, void *arg);
		int (*use)(const struct pool_use *use, void *arg);
		int (*outcome)(const struct pool_outcome *outcome, void *arg);
		int (*event)(const struct pool_event *event, void *arg);
		int (*token)(const struct store_token *token, void *arg);
	} fn;
	void *arg;
	union {
		struct pool_project project;
		struct pool_vm vm;
		struct pool_gpu gpu;
		struct pool_request request;
		struct pool_use use;
		struct pool_outcome outcome;
		struct pool_event event;
		struct store_token token;
	} object;
	bool bad;
};

static int call(struct each *e)
{
	if (e->table == &row_project)
		return e->fn.project(&e->object.project, e->arg);
	if (e->table == &row_vm)
		return e->fn.vm(&e->object.vm, e->arg);
	if (e->table == &row_gpu)
		return e->fn.gpu(&e->object.gpu, e->arg);
	if (e->table == &row_request)
		return e->fn.request(&e->object.request, e->arg);
	if (e->table == &row_use)
		return e->fn.use(&e->object.use, e->arg);
	if (e->table == &row_outcome)
		return e->fn.outcome(&e->object.outcome, e->arg);
	if (e->table == &row_event)
		return e->fn.event(&e->object.event, e->arg);
	return e->fn.token(&e->object.token, e->arg);
}

static int give(const struct sql_value *row, void *arg)
{
	struct each *e = arg;
	int rc;

	memset(&e->object, 0, sizeof(e->object));
	rc = row_object(e->table, row, &e->object, e->store->sql->error);
	if (rc)
		return rc;
	e->store->reading = true;
	rc = call(e);
	e->store->reading = false;
	return rc;
}

/* Run a statement that reads; a connection that broke while it was idle is opened again. */
static int query(struct store *store, enum statement statement, const struct sql_value *args,
		 size_t nr, sql_row_fn *fn, void *arg)
{
	int rc = 0;

	if (store->reading)
		return refuse(store, -EDEADLK, "a callback of the database cannot use it");
	if (store->inside)
		return store->broken ? -EIO : run(store, statement, args, nr, fn, arg, NULL);
	for (int tries = 0; tries < 2; tries++) {
		rc = connected(store);
		if (!rc)
			rc = run(store, statement, args, nr, fn, arg, NULL);
		if (rc != -EIO || !store->sql->lost)
			break;
	}
	return rc;
}

static int each(enum statement statement, const struct sql_value *args, size_t nr, struct each *e)
{
	return query(e->store, statement, args, nr, give, e);
}

int store_projects(struct store *store, int (*fn)(const struct pool_project *, void *), void *arg)
{
	struct each e = { .store = store, .table = &row_project, .fn.project = fn, .arg = arg };

	return each(ST_PROJECTS, NULL, 0, &e);
}

int store_vms(struct store *store, int (*fn)(const struct pool_vm *, void *), void *arg)
{
	struct each e = { .store = store, .table = &row_vm, .fn.vm = fn, .arg = arg };

	return each(ST_VMS, NULL, 0, &e);
}

int store_gpus(struct store *store, int (*fn)(const struct pool_gpu *, void *), void *arg)
{
	struct each e = { .store = store, .table = &row_gpu, .fn.gpu = fn, .arg = arg };

	return each(ST_GPUS, NULL, 0, &e);
}

int store_open_requests(struct store *store, int (*fn)(const struct pool_request *, void *),
			void *arg)
{
	struct each e = { .store = store, .table = &row_request, .fn.request = fn, .arg = arg };

	return each(ST_OPEN_REQUESTS, NULL, 0, &e);
}

/* A number of the caller's as the database can have it. */
static int64_t bounded(uint64_t number)
{
	return number > INT64_MAX ? INT64_MAX : (int64_t)number;
}

int store_requests(struct store *store, const char *project, uint64_t before, unsigned int limit,
		   int (*fn)(const struct pool_request *, void *), void *arg)
{
	struct each e = { .store = store, .table = &row_request, .fn.request = fn, .arg = arg };
	const struct sql_value args[] = {
		{ .number = before ? bounded(before) : INT64_MAX }, { .number = limit },
		{ .text = project },
	};
	int rc = project ? row_check_text("project", project, POOL_NAME_MAX, store->error) : 0;

	if (rc)
		return rc;
	return project ? each(ST_REQUESTS_OF, args, 3, &e) : each(ST_REQUESTS, args, 2, &e);
}

int store_events(struct store *store, uint64_t after, uint64_t request, unsigned int limit,
		 int (*fn)(const struct pool_event *, void *), void *arg)
{
	struct each e = { .store = store, .table = &row_event, .fn.event = fn, .arg = arg };
	const struct sql_value args[] = {
		{ .number = bounded(after) }, { .number = limit }, { .number = bounded(request) },
	};

	return request ? each(ST_EVENTS_OF, args, 3, &e) : each(ST_EVENTS, args, 2, &e);
}

int store_uses(struct store *store, uint64_t request, int64_t since, unsigned int limit,
	       int (*fn)(const struct pool_use *, void *), void *arg)
{
	struct each e = { .store = store, .table = &row_use, .fn.use = fn, .arg = arg };
	const struct sql_value args[] = {
		{ .number = bounded(request) }, { .number = since }, { .number = limit },
	};

	return each(ST_USES, args, 3, &e);
}

int store_course(struct store *store, uint64_t request, int64_t since, int64_t seconds,
		 int (*fn)(const struct pool_use *, void *), void *arg)
{
	struct each e = { .store = store, .table = &row_use, .fn.use = fn, .arg = arg };
	const struct sql_value args[] = {
		{ .number = bounded(request) }, { .number = since }, { .number = seconds },
	};

	return each(ST_COURSE, args, 3, &e);
}

int store_outcomes(struct store *store, uint64_t before, unsigned int limit,
		   int (*fn)(const struct pool_outcome *, void *), void *arg)
{
	struct each e = { .store = store, .table = &row_outcome, .fn.outcome = fn, .arg = arg };
	const struct sql_value args[] = { { .number = limit }, { .number = bounded(before) } };

	return before ? each(ST_OUTCOMES_BEFORE, args, 2, &e) : each(ST_OUTCOMES, args, 1, &e);
}

int store_outcomes_after(struct store *store, uint64_t request, unsigned int limit,
			 int (*fn)(const struct pool_outcome *, void *), void *arg)
{
	struct each e = { .store = store, .table = &row_outcome, .fn.outcome = fn, .arg = arg };
	const struct sql_value args[] = { { .number = bounded(request) }, { .number = limit } };

	return each(ST_OUTCOMES_AFTER, args, 2, &e);
}

int store_set_error(struct store *store, int error, const char *text)
{
	return refuse(store, error, "%s", text);
}

/* ---- requests ---- */

struct found_request {
	struct pool_request request;
	bool found;
};

static int take_request(const struct pool_request *request, void *arg)
{
	struct found_request *found = arg;

	found->request = *request;
	found->found = true;
	return 0;
}

static int find_request(struct store *store, enum statement statement,
			const struct sql_value *args, size_t nr, struct pool_request *r)
{
	struct found_request found = { .found = false };
	struct each e = { .store = store, .table = &row_request, .fn.request = take_request,
			  .arg = &found };
	int rc = each(statement, args, nr, &e);

	if (!rc && !found.found)
		rc = refuse(store, -ENOENT, "there is no such request");
	if (!rc)
		*r = found.request;
	return rc;
}

int store_get_request(struct store *store, uint64_t id, struct pool_request *r)
{
	const struct sql_value args[] = { { .number = bounded(id) } };

	return find_request(store, ST_GET_REQUEST, args, 1, r);
}

int store_find_request(struct store *store, struct pool_request *r)
{
	const struct sql_value key[] = { { .text = r->project }, { .text = r->key } };

	return find_request(store, ST_FIND_KEY, key, 2, r);
}

/* Within a transaction: insert, or find the former one. */
static int insert_request(struct store *store, struct pool_request *r,
			  const struct row_values *values, int64_t *id)
{
	int rc = insert(store, ST_ADD_REQUEST, &row_request, values, id);

	if (rc || *id)
		return rc;
	rc = store_find_request(store, r);
	if (rc == -ENOENT)
		return refuse(store, -EIO, "the database has the request's key, but no request");
	if (rc)
		return rc;
	return refuse(store, -EEXIST, "project %s used the key \"%s\" for request %llu", r->project,
		      r->key, (unsigned long long)r->id);
}

int store_add_request(struct store *store, struct pool_request *r)
{
	struct row_values values;
	int64_t id = 0;
	int rc = row_values(&row_request, r, 1, &values, store->error);

	if (!rc)
		rc = enter(store);
	if (rc)
		return rc;
	rc = leave(store, insert_request(store, r, &values, &id));
	if (!rc)
		r->id = (uint64_t)id;
	return rc;
}

int store_put_request(struct store *store, const struct pool_request *r)
{
	struct row_values values;
	int rc = row_values(&row_request, r, REQUEST_FIXED, &values, store->error);

	if (rc)
		return rc;
	memmove(values.v + 1, values.v, (row_request.nr - REQUEST_FIXED) * sizeof(*values.v));
	values.v[0] = (struct sql_value){ .number = bounded(r->id) };
	return one_change(store, ST_PUT_REQUEST, values.v, row_request.nr - REQUEST_FIXED + 1,
			  "request");
}

/* ---- credentials ---- */

struct found_token {
	struct store_token token;
	bool found;
};

static int take_token(const struct store_token *token, void *arg)
{
	struct found_token *found = arg;

	found->token = *token;
	found->found = true;
	return 0;
}

int store_find_token(struct store *store, const char *hash, struct store_token *token)
{
	struct found_token found = { .found = false };
	struct each e = { .store = store, .table = &row_token, .fn.token = take_token,
			  .arg = &found };
	const struct sql_value args[] = { { .text = hash } };
	int rc = row_check_text("hash", hash, sizeof(token->hash), store->error);

	if (!rc)
		rc = each(ST_FIND_TOKEN, args, 1, &e);
	if (!rc && !found.found)
		rc = refuse(store, -ENOENT, "there is no such token");
	if (!rc)
		*token = found.token;
	return rc;
}

/* Two names of one token could have two roles. */
static int hash_is_free(struct store *store, const struct store_token *token)
{
	struct store_token other;
	int rc = store_find_token(store, token->hash, &other);

	if (rc == -ENOENT)
		return 0;
	if (!rc && strcmp(other.name, token->name))
		return refuse(store, -EEXIST, "the token is that of %s: make a new one",
			      other.name);
	return rc;
}

/* 32 bytes in hexadecimal digits. */
static bool is_hash(const char *hash)
{
	return strnlen(hash, DIGITS + 1) == DIGITS && strspn(hash, "0123456789abcdef") == DIGITS;
}

int store_put_token(struct store *store, const struct store_token *token)
{
	struct row_values values;
	int rc = row_values(&row_token, token, 0, &values, store->error);

	if (!rc && !is_hash(token->hash))
		rc = refuse(store, -EINVAL, "the hash of a token has 64 digits of 0-9a-f");
	if (!rc)
		rc = enter(store);
	if (rc)
		return rc;
	rc = hash_is_free(store, token);
	if (!rc)
		rc = change(store, ST_PUT_TOKEN, values.v, row_token.nr, NULL);
	return leave(store, rc);
}

int store_drop_token(struct store *store, const char *name)
{
	return drop(store, ST_DROP_TOKEN, name, "token");
}

int store_tokens(struct store *store, int (*fn)(const struct store_token *, void *), void *arg)
{
	struct each e = { .store = store, .table = &row_token, .fn.token = fn, .arg = arg };

	return each(ST_TOKENS, NULL, 0, &e);
}

int store_put_vm_key(struct store *store, const char *vm, const unsigned char key[32])
{
	char digits[DIGITS + 1];
	const struct sql_value args[] = { { .text = vm }, { .text = digits } };
	uint64_t changed = 0;
	int rc = row_check_text("vm", vm, POOL_NAME_MAX, store->error);

	if (rc)
		return rc;
	for (int i = 0; i < 32; i++)
		snprintf(digits + 2 * i, 3, "%02x", key[i]);
	rc = enter(store);
	if (!rc) {
		rc = change(store, ST_PUT_KEY, args, 2, &changed);
		if (!rc && !changed)
			rc = refuse(store, -ENOENT, "there is no such VM");
		/* Messages that another key signed are refused by that. */
		if (!rc)
			rc = change(store, ST_CLEAR_SEQ, args, 1, NULL);
		rc = leave(store, rc);
	}
	explicit_bzero(digits, sizeof(digits));
	return rc;
}

struct found_key {
	unsigned char *key;
	bool found;
};

static unsigned int digit_of(char c)
{
	return (unsigned int)(c >= 'a' ? c - 'a' + 10 : c - '0');
}

static int take_key(const struct sql_value *row, void *arg)
{
	struct found_key *found = arg;
	const char *text = row->text;

	found->found = text && is_hash(text);
	for (int i = 0; found->found && i < 32; i++, text += 2)
		found->key[i] = (unsigned char)(digit_of(text[0]) << 4 | digit_of(text[1]));
	return 0;
}

int store_get_vm_key(struct store *store, const char *vm, unsigned char key[32])
{
	const struct sql_value args[] = { { .text = vm } };
	struct found_key found = { .key = key };
	int rc = row_check_text("vm", vm, POOL_NAME_MAX, store->error);

	if (!rc)
		rc = query(store, ST_GET_KEY, args, 1, take_key, &found);
	if (!rc && !found.found)
		rc = refuse(store, -ENOENT, "the VM has no key");
	return rc;
}

int store_take_seq(struct store *store, const char *vm, uint64_t seq, uint64_t to,
		   uint64_t *last)
{
	const struct sql_value args[] = { { .text = vm }, { .number = (int64_t)seq },
					  { .number = (int64_t)to } };
	uint64_t changed = 0;
	int64_t stored = -1;
	int rc = row_check_text("vm", vm, POOL_NAME_MAX, store->error);

	if (!rc && (seq > INT64_MAX || to > INT64_MAX))
		rc = refuse(store, -ERANGE, "the sequence number is above %lld",
			    (long long)INT64_MAX);
	if (!rc)
		rc = enter(store);
	if (rc)
		return rc;
	rc = change(store, ST_TAKE_SEQ, args, 3, &changed);
	if (!rc && !changed)
		rc = run(store, ST_GET_SEQ, args, 1, take_number, &stored, NULL);
	if (!rc && !changed && stored < 0) {
		rc = refuse(store, -ENOENT, "there is no such VM");
	} else if (!rc && !changed) {
		*last = (uint64_t)stored;
		rc = refuse(store, -EEXIST, "the VM used the sequence number, or a higher one");
	}
	return leave(store, rc);
}

/* ---- retention ---- */

/* Delete some requests with what belongs to them. */
static int retain_some(struct store *store, int64_t before, uint64_t *deleted)
{
	const struct sql_value args[] = { { .number = before }, { .number = RETAIN_BATCH } };
	int rc = enter(store);

	*deleted = 0;
	if (rc)
		return rc;
	rc = change(store, ST_RETAIN_USES, args, 2, NULL);
	if (!rc)
		rc = change(store, ST_RETAIN_EVENTS, args, 2, NULL);
	if (!rc)
		rc = change(store, ST_RETAIN_REQUESTS, args, 2, deleted);
	return leave(store, rc);
}

/* Delete what is old and belongs to requests that stay, or to none. */
static int retain_rest(struct store *store, int64_t before)
{
	const struct sql_value args[] = { { .number = before } };
	int rc = enter(store);

	if (rc)
		return rc;
	rc = change(store, ST_RETAIN_OLD_USES, args, 1, NULL);
	if (!rc)
		rc = change(store, ST_RETAIN_OLD_EVENTS, args, 1, NULL);
	return leave(store, rc);
}

int store_retain(struct store *store, int64_t before, uint64_t *deleted)
{
	uint64_t some;
	int rc;

	*deleted = 0;
	do {
		rc = retain_some(store, before, &some);
		if (!rc)
			*deleted += some;
	} while (!rc && some == RETAIN_BATCH);
	return rc ? rc : retain_rest(store, before);
}

/* ---- opening ---- */

/* Another service that has the database without the lock cannot write from now on. */
static int claim(struct store *store)
{
	char holder[100];
	const struct sql_value args[] = { { .text = holder } };
	struct fence fence = { 0 };
	int rc;

	sql_holder(holder, sizeof(holder));
	rc = taken(store, store->sql->ops->begin(store->sql));
	if (!rc)
		rc = run(store, ST_CLAIM, args, 1, take_fence, &fence, NULL);
	if (!rc)
		rc = taken(store, store->sql->ops->commit(store->sql));
	if (rc)
		store->sql->ops->rollback(store->sql);
	store->generation = fence.generation;
	store->transactions = fence.transactions;
	return rc;
}

static const struct sql_ops *ops_of(const char *url)
{
	if (!strncmp(url, "postgresql://", 13) || !strncmp(url, "postgres://", 11))
		return &postgres_ops;
	if (!strncmp(url, "sqlite:", 7) || !strstr(url, "://"))
		return &sqlite_ops;
	return NULL;
}

int store_open(const char *url, struct store **result, char *text)
{
	const struct sql_ops *ops = ops_of(url);
	struct store *store;
	int rc;

	*text = '\0';
	if (!ops) {
		snprintf(text, POOL_TEXT_MAX, "the database is of an unknown kind: write sqlite:PATH or postgresql://USER@HOST/NAME");
		return -EINVAL;
	}
	store = calloc(1, sizeof(*store));
	if (!store)
		return -ENOMEM;
	rc = ops->open(url, &store->sql, text);
	if (rc) {
		free(store);
		return rc;
	}
	rc = taken(store, schema_migrate(store->sql, &store->version));
	if (!rc && statements_make(store->text))
		rc = refuse(store, -ENOMEM, "out of memory");
	if (!rc)
		rc = claim(store);
	if (rc) {
		snprintf(text, POOL_TEXT_MAX, "%s", store->error);
		store_close(store);
		return rc;
	}
	ops->opened(store->sql);
	*result = store;
	return 0;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	store_rollback(store);
	store->sql->ops->close(store->sql);
	statements_free(store->text);
	free(store);
}

const char *store_error(const struct store *store)
{
	return store->error;
}

const char *store_kind(const struct store *store)
{
	return store->sql->kind;
}

int store_version(struct store *store)
{
	return (int)store->version;
}
