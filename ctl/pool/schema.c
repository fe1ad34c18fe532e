// SPDX-License-Identifier: GPL-2.0-only
/*
 * A step, once released, never changes: databases have its result.  A change of the tables is a
 * new step at the end, and a dump of the version before it in tests/unit/data/pool-store.
 *
 * The dialects differ in the names of types and in the ends of tables only.
 */
#include <errno.h>
#include <stdio.h>

#include "schema.h"

/* Statement numbers of this file; store.c has those below. */
enum { ST_EXISTS = SQL_STATEMENTS - 2, ST_VERSION };

#define STEP_1(ID, INT, END, CLUSTERED)							\
	"CREATE TABLE pool_service ("							\
	"one " INT " PRIMARY KEY CHECK (one = 1), "					\
	"version " INT " NOT NULL, "							\
	"generation " INT " NOT NULL, "							\
	"transactions " INT " NOT NULL, "						\
	"holder TEXT NOT NULL)" END ";"							\
	"INSERT INTO pool_service VALUES (1, 0, 0, 0, '');"				\
	"CREATE TABLE pool_project ("							\
	"name TEXT PRIMARY KEY, "							\
	"weight " INT " NOT NULL, "							\
	"max_gpus " INT " NOT NULL)" END ";"						\
	"CREATE TABLE pool_vm ("							\
	"name TEXT PRIMARY KEY, "							\
	"host TEXT NOT NULL, "								\
	"uuid TEXT NOT NULL, "								\
	"project TEXT NOT NULL, "							\
	"pinned " INT " NOT NULL, "							\
	"consent " INT " NOT NULL, "							\
	"seq " INT " NOT NULL, "							\
	"seen " INT " NOT NULL)" END ";"						\
	"CREATE TABLE pool_vm_key ("							\
	"vm TEXT PRIMARY KEY, "								\
	"key TEXT NOT NULL)" END ";"							\
	"CREATE TABLE pool_gpu ("							\
	"name TEXT PRIMARY KEY, "							\
	"host TEXT NOT NULL, "								\
	"addr TEXT NOT NULL, "								\
	"functions TEXT NOT NULL, "							\
	"iommu_group " INT " NOT NULL, "						\
	"target TEXT NOT NULL, "							\
	"model TEXT NOT NULL, "								\
	"types TEXT NOT NULL, "								\
	"slots " INT " NOT NULL, "							\
	"memory_mib " INT " NOT NULL, "							\
	"capabilities TEXT NOT NULL, "							\
	"precisions " INT " NOT NULL, "							\
	"offline " INT " NOT NULL, "							\
	"why TEXT NOT NULL)" END ";"							\
	"CREATE TABLE pool_request ("							\
	"id " ID ", "									\
	"project TEXT NOT NULL, "							\
	"key TEXT NOT NULL, "								\
	"vm TEXT NOT NULL, "								\
	"kind TEXT NOT NULL, "								\
	"target TEXT NOT NULL, "							\
	"precision TEXT NOT NULL, "							\
	"size_mib " INT " NOT NULL, "							\
	"memory_mib " INT " NOT NULL, "							\
	"capabilities TEXT NOT NULL, "							\
	"type TEXT NOT NULL, "								\
	"weight " INT " NOT NULL, "							\
	"floor_mhz " INT " NOT NULL, "							\
	"lease " INT " NOT NULL, "							\
	"state TEXT NOT NULL, "								\
	"gpu TEXT NOT NULL, "								\
	"uuid TEXT NOT NULL, "								\
	"why TEXT NOT NULL, "								\
	"asked " INT " NOT NULL, "							\
	"chosen " INT " NOT NULL, "							\
	"attached " INT " NOT NULL, "							\
	"ended " INT " NOT NULL, "							\
	"until " INT " NOT NULL, "							\
	"warned " INT " NOT NULL, "							\
	"tries " INT " NOT NULL, "							\
	"cancel " INT " NOT NULL, "							\
	"UNIQUE (project, key))" END ";"						\
	"CREATE INDEX pool_request_project ON pool_request (project, id);"		\
	"CREATE INDEX pool_request_open ON pool_request (id) "				\
	"WHERE state IN ('queued', 'attaching', 'active', 'releasing');"		\
	"CREATE INDEX pool_request_ended ON pool_request (ended) WHERE ended > 0;"	\
	"CREATE TABLE pool_use ("							\
	"request " INT " NOT NULL, "							\
	"time " INT " NOT NULL, "							\
	"source TEXT NOT NULL, "							\
	"busy_ns " INT " NOT NULL, "							\
	"energy_mj " INT " NOT NULL, "							\
	"memory_mib " INT " NOT NULL, "							\
	"PRIMARY KEY (request, time, source))" CLUSTERED ";"				\
	"CREATE INDEX pool_use_time ON pool_use (time);"				\
	"CREATE TABLE pool_event ("							\
	"id " ID ", "									\
	"time " INT " NOT NULL, "							\
	"actor TEXT NOT NULL, "								\
	"what TEXT NOT NULL, "								\
	"request " INT " NOT NULL, "							\
	"object TEXT NOT NULL, "							\
	"text TEXT NOT NULL)" END ";"							\
	"CREATE INDEX pool_event_request ON pool_event (request, id);"			\
	"CREATE TABLE pool_token ("							\
	"name TEXT PRIMARY KEY, "							\
	"hash TEXT NOT NULL UNIQUE, "							\
	"role TEXT NOT NULL, "								\
	"project TEXT NOT NULL, "							\
	"expires " INT " NOT NULL)" END ";"

/* The history, and retention by time of what belongs to no request. */
#define STEP_2(ID, INT, END, CLUSTERED)							\
	"CREATE TABLE pool_outcome ("							\
	"request " INT " PRIMARY KEY, "							\
	"project TEXT NOT NULL, "							\
	"kind TEXT NOT NULL, "								\
	"model TEXT NOT NULL, "								\
	"target TEXT NOT NULL, "							\
	"precision TEXT NOT NULL, "							\
	"size_mib " INT " NOT NULL, "							\
	"microseconds " INT " NOT NULL, "						\
	"busy_ns " INT " NOT NULL, "							\
	"energy_mj " INT " NOT NULL, "							\
	"memory_mib " INT " NOT NULL, "							\
	"ended " INT " NOT NULL, "							\
	"done " INT " NOT NULL)" END ";"						\
	"CREATE INDEX pool_outcome_ended ON pool_outcome (ended, request);"		\
	"CREATE INDEX pool_event_time ON pool_event (time);"

/* GPUs and VMs that are replaced under the same name. */
#define STEP_3(ID, INT, END, CLUSTERED)							\
	"ALTER TABLE pool_gpu ADD COLUMN device TEXT NOT NULL DEFAULT '';"		\
	"ALTER TABLE pool_gpu ADD COLUMN managed " INT " NOT NULL DEFAULT 0;"		\
	"ALTER TABLE pool_request ADD COLUMN vm_uuid TEXT NOT NULL DEFAULT '';"		\
	"UPDATE pool_request SET vm_uuid = coalesce((SELECT uuid FROM pool_vm "		\
	"WHERE pool_vm.name = pool_request.vm), '');"

#define SQLITE(STEP) \
	STEP("INTEGER PRIMARY KEY AUTOINCREMENT", "INTEGER", " STRICT", " STRICT, WITHOUT ROWID")
#define POSTGRES(STEP) \
	STEP("BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY", "BIGINT", "", "")

static const char *const steps[][SQL_DIALECTS] = {
	{ SQLITE(STEP_1), POSTGRES(STEP_1) },
	{ SQLITE(STEP_2), POSTGRES(STEP_2) },
	{ SQLITE(STEP_3), POSTGRES(STEP_3) },
};

#define NR_STEPS	(sizeof(steps) / sizeof(*steps))

unsigned int schema_version(void)
{
	return NR_STEPS;
}

static int take_number(const struct sql_value *row, void *arg)
{
	*(int64_t *)arg = row->number;
	return 0;
}

static int ask_number(struct sql *sql, unsigned int id, const char *text, int64_t *number)
{
	const struct sql_statement statement = { id, text };

	return sql->ops->run(sql, &statement, NULL, 0, take_number, number, NULL);
}

/* Version of the tables, 0: there are none. */
static int read_version(struct sql *sql, int64_t *version)
{
	static const char *const exists[SQL_DIALECTS] = {
		[SQL_SQLITE] = "SELECT count(*) FROM sqlite_master WHERE name = 'pool_service'",
		[SQL_POSTGRES] = "SELECT count(to_regclass('pool_service'))",
	};
	int64_t there = 0;
	int rc;

	*version = 0;
	rc = ask_number(sql, ST_EXISTS, exists[sql->ops->dialect], &there);
	if (rc || !there)
		return rc;
	return ask_number(sql, ST_VERSION, "SELECT version FROM pool_service", version);
}

static int take_step(struct sql *sql, unsigned int step)
{
	char set[64];
	int rc;

	snprintf(set, sizeof(set), "UPDATE pool_service SET version = %u", step + 1);
	rc = sql->ops->begin(sql);
	if (!rc)
		rc = sql->ops->script(sql, steps[step][sql->ops->dialect]);
	if (!rc)
		rc = sql->ops->script(sql, set);
	if (!rc)
		rc = sql->ops->commit(sql);
	if (rc)
		sql->ops->rollback(sql);
	return rc;
}

int schema_migrate(struct sql *sql, unsigned int *version)
{
	int64_t there;
	int rc = read_version(sql, &there);

	if (rc)
		return rc;
	if (there < 0 || there > (int64_t)NR_STEPS) {
		sql_failed(sql, "the database has tables of version %lld, and this mgpu-poold knows versions up to %zu: install the mgpu-poold that wrote it, or a later one",
			   (long long)there, NR_STEPS);
		return -EPROTO;
	}
	for (; !rc && there < (int64_t)NR_STEPS; there++)
		rc = take_step(sql, (unsigned int)there);
	*version = (unsigned int)there;
	return rc;
}
