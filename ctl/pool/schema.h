/* SPDX-License-Identifier: GPL-2.0-only */
/* The tables of the database, and the steps from each version of them to the next. */
#ifndef POOL_SCHEMA_H
#define POOL_SCHEMA_H

#include "sql.h"

/* The version of the tables that this program uses. */
unsigned int schema_version(void);

/**
 * schema_migrate() - make the tables, or bring them to this program's version
 * @sql: connection with the lock of the one service
 * @version: result, schema_version()
 *
 * Each step is one transaction: a step that fails or is killed changes nothing.
 *
 * Return: 0; -EPROTO if the tables are of a later version; -EIO; with a sentence in @sql->error.
 */
int schema_migrate(struct sql *sql, unsigned int *version);

#endif /* POOL_SCHEMA_H */
