/* SPDX-License-Identifier: GPL-2.0-only */
/* The objects of model.h as rows of the database's tables. */
#ifndef POOL_ROWS_H
#define POOL_ROWS_H

#include "sql.h"
#include "store.h"

enum row_kind {
	ROW_TEXT,
	ROW_U32,
	ROW_U64,
	ROW_TIME,
	ROW_INT,
	ROW_BOOL,
	ROW_SECONDS,		/* a double, stored as microseconds */
	ROW_LETTER,
	ROW_TARGET,
	ROW_PRECISION,
	ROW_STATE,
	ROW_ROLE,
	ROW_CAPABILITIES,
	ROW_FUNCTIONS,		/* of a struct pool_gpu, separated by spaces */
};

/**
 * struct row_field - a column
 * @offset: of the field in the object, bytes
 * @size: of a text, bytes with its NUL
 * @once: store_put_...() of a row that is there leaves it
 */
struct row_field {
	const char *name;
	size_t offset;
	size_t size;
	enum row_kind kind;
	bool once;
};

/**
 * struct row_table - a table
 * @nr_keys: columns at the beginning that are the primary key
 */
struct row_table {
	const char *name;
	const struct row_field *fields;
	size_t nr;
	size_t nr_keys;
};

extern const struct row_table row_project, row_vm, row_gpu, row_request, row_use, row_outcome,
	row_event, row_token;

/**
 * struct row_values - an object's values, as parameters
 * @made: texts of fields that the object has in another form
 */
struct row_values {
	struct sql_value v[SQL_COLUMNS];
	char made[2][POOL_FUNCTIONS_MAX * POOL_ADDR_MAX];
};

/**
 * row_values() - values of an object's fields, from the field number @from on
 * @why: for an error, of POOL_TEXT_MAX bytes
 *
 * Return: 0; -EILSEQ for a text that is not UTF-8 or has no end; -ERANGE for a number that the
 * database has no room for; -EINVAL for an unknown value of an enumeration.
 */
int row_values(const struct row_table *table, const void *object, size_t from,
	       struct row_values *values, char *why);
/* Check a single text; @name: of the field, for @why. Return 0 or -EILSEQ. */
int row_check_text(const char *name, const char *text, size_t size, char *why);

/* Set an object's fields. Return 0, or -EIO with @why for a row that this program did not write. */
int row_object(const struct row_table *table, const struct sql_value *row, void *object, char *why);

/*
 * SQL; free() by the caller; NULL: no memory.
 *
 * row_sql_put(): insert a row, or update the one with its key.
 * row_sql_add(): insert a row without its first column, a number that the database gives and
 * RETURNING gives back.
 * row_sql_update(): set the columns from @from on, as $2..., of the row with the first column $1.
 * row_sql_select(): all columns; @rest: from WHERE on.
 */
char *row_sql_put(const struct row_table *table);
char *row_sql_add(const struct row_table *table, const char *conflict);
char *row_sql_update(const struct row_table *table, size_t from);
char *row_sql_select(const struct row_table *table, const char *rest);

#endif /* POOL_ROWS_H */
