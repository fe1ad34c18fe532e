/* SPDX-License-Identifier: GPL-2.0-only */
/* Databases for test_pool_store.c: a file, or a database of a server. */
#ifndef TEST_POOL_STORE_H
#define TEST_POOL_STORE_H

#include <stdbool.h>
#include <stdint.h>

struct store;

/* A private folder; and a connection to the server that POOL_STORE_SERVER names, if it is set. */
int database_init(void);
void database_exit(void);
/* "sqlite" or "postgresql". */
const char *backend_name(void);
/* The private folder. */
const char *database_folder(void);
/* POOL_STORE_SERVER; NULL: not set. */
const char *database_server(void);
/* Of this test's database. */
const char *database_url(void);
/* Path of this test's database, of SQLite. */
const char *database_path(void);

/* A new database; NULL, with the reason printed. */
struct store *open_new(void);
/* The same database again. */
struct store *open_again(void);
/* A new database without tables. */
bool make_empty(void);
/* Run SQL beside the service; 0, or an error. */
int sql_by_hand(const char *text);
/* A new database with what a file of SQL has. */
bool load_dump(const char *path);
/* End the lock that this process has, without its notice. */
bool take_lock_away(void);

/* Work that is checked after a crash: groups of requests, each in a transaction. */
#define GROUP	5
int store_group(struct store *store, unsigned int group);
/* Every group is there whole or not; @counts: requests of each group below @nr. */
bool count_groups(struct store *store, unsigned int *counts, unsigned int nr);

#endif /* TEST_POOL_STORE_H */
