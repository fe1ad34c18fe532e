// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"
#include "statements.h"

#define OLD_REQUESTS								\
	"SELECT id FROM pool_request WHERE ended > 0 AND ended < $1"		\
	" AND state IN ('released', 'failed', 'cancelled') ORDER BY ended, id LIMIT $2"

static const char *const fixed[NR_STATEMENTS] = {
	[ST_CLAIM] = "UPDATE pool_service SET generation = generation + 1, holder = $1 RETURNING generation, transactions",
	[ST_FENCE] = "UPDATE pool_service SET transactions = transactions + 1 WHERE generation = $1 RETURNING transactions",
	[ST_FENCE_READ] = "SELECT generation, transactions FROM pool_service",
	[ST_DROP_PROJECT] = "DELETE FROM pool_project WHERE name = $1",
	[ST_DROP_VM] = "DELETE FROM pool_vm WHERE name = $1",
	[ST_DROP_TOKEN] = "DELETE FROM pool_token WHERE name = $1",
	[ST_DROP_TOKENS] = "DELETE FROM pool_token WHERE project = $1",
	[ST_PUT_KEY] = "INSERT INTO pool_vm_key (vm, key) SELECT name, $2 FROM pool_vm WHERE name = $1 ON CONFLICT (vm) DO UPDATE SET key = excluded.key",
	[ST_DROP_KEY] = "DELETE FROM pool_vm_key WHERE vm = $1",
	[ST_GET_KEY] = "SELECT key FROM pool_vm_key WHERE vm = $1",
	[ST_TAKE_SEQ] = "UPDATE pool_vm SET seq = $3 WHERE name = $1 AND seq < $2",
	[ST_GET_SEQ] = "SELECT seq FROM pool_vm WHERE name = $1",
	[ST_CLEAR_SEQ] = "UPDATE pool_vm SET seq = 0 WHERE name = $1",
	[ST_RETAIN_USES] = "DELETE FROM pool_use WHERE request IN (" OLD_REQUESTS ")",
	[ST_RETAIN_EVENTS] = "DELETE FROM pool_event WHERE request IN (" OLD_REQUESTS ")",
	[ST_RETAIN_REQUESTS] = "DELETE FROM pool_request WHERE id IN (" OLD_REQUESTS ")",
	[ST_RETAIN_OLD_USES] = "DELETE FROM pool_use WHERE time < $1",
	[ST_RETAIN_OLD_EVENTS] = "DELETE FROM pool_event WHERE time < $1 AND NOT EXISTS (SELECT 1 FROM pool_request WHERE id = pool_event.request)",
};

/* Statements that follow from the columns of a table. */
static void make_texts(char **text)
{
	text[ST_PUT_PROJECT] = row_sql_put(&row_project);
	text[ST_PUT_VM] = row_sql_put(&row_vm);
	text[ST_PUT_GPU] = row_sql_put(&row_gpu);
	text[ST_PUT_USE] = row_sql_put(&row_use);
	text[ST_PUT_OUTCOME] = row_sql_put(&row_outcome);
	text[ST_PUT_TOKEN] = row_sql_put(&row_token);
	text[ST_ADD_REQUEST] = row_sql_add(&row_request, "ON CONFLICT (project, key) DO NOTHING");
	text[ST_ADD_EVENT] = row_sql_add(&row_event, "");
	text[ST_PUT_REQUEST] = row_sql_update(&row_request, REQUEST_FIXED);
	text[ST_FIND_KEY] = row_sql_select(&row_request, "WHERE project = $1 AND key = $2");
	text[ST_GET_REQUEST] = row_sql_select(&row_request, "WHERE id = $1");
	text[ST_PROJECTS] = row_sql_select(&row_project, "ORDER BY name");
	text[ST_VMS] = row_sql_select(&row_vm, "ORDER BY name");
	text[ST_GPUS] = row_sql_select(&row_gpu, "ORDER BY name");
	text[ST_OPEN_REQUESTS] = row_sql_select(&row_request, "WHERE state IN ('queued', 'attaching', 'active', 'releasing') ORDER BY id");
	text[ST_REQUESTS] = row_sql_select(&row_request, "WHERE id < $1 ORDER BY id DESC LIMIT $2");
	text[ST_REQUESTS_OF] = row_sql_select(&row_request, "WHERE id < $1 AND project = $3 ORDER BY id DESC LIMIT $2");
	text[ST_EVENTS] = row_sql_select(&row_event, "WHERE id > $1 ORDER BY id LIMIT $2");
	text[ST_EVENTS_OF] = row_sql_select(&row_event, "WHERE id > $1 AND request = $3 ORDER BY id LIMIT $2");
	text[ST_USES] = row_sql_select(&row_use, "WHERE request = $1 AND time >= $2 ORDER BY time, source LIMIT $3");
	text[ST_COURSE] = row_sql_select(&row_use, "WHERE request = $1 AND (source, time) IN (SELECT source, max(time) FROM pool_use WHERE request = $1 AND time >= $2 GROUP BY source, time / $3) ORDER BY time, source");
	text[ST_OUTCOMES] = row_sql_select(&row_outcome, "ORDER BY ended DESC, request DESC LIMIT $1");
	text[ST_OUTCOMES_BEFORE] = row_sql_select(&row_outcome, "WHERE (ended, request) < (SELECT ended, request FROM pool_outcome WHERE request = $2) ORDER BY ended DESC, request DESC LIMIT $1");
	text[ST_OUTCOMES_AFTER] = row_sql_select(&row_outcome, "WHERE request > $1 ORDER BY request LIMIT $2");
	text[ST_FIND_TOKEN] = row_sql_select(&row_token, "WHERE hash = $1");
	text[ST_TOKENS] = row_sql_select(&row_token, "ORDER BY name");
}

int statements_make(char *text[NR_STATEMENTS])
{
	make_texts(text);
	for (size_t i = 0; i < NR_STATEMENTS; i++) {
		if (fixed[i])
			text[i] = strdup(fixed[i]);
		if (!text[i])
			return -ENOMEM;
	}
	return 0;
}

void statements_free(char *text[NR_STATEMENTS])
{
	for (size_t i = 0; i < NR_STATEMENTS; i++)
		free(text[i]);
}
