// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "complain.h"
#include "control.h"
#include "mgpud_client.h"
#include "server/server.h"

struct control_socket {
	struct server *server;
	struct apps *apps;
	const struct control_api *apis;
};

#define PPM	1e6

static const char *const modes[] = { NULL, "one", "batched", "deferred" };

static void add_number(struct json_object *o, const char *key, uint64_t value)
{
	json_object_object_add(o, key, json_object_new_int64(value > INT64_MAX ? INT64_MAX :
							     (int64_t)value));
}

static void add_text(struct json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, text && *text ? json_object_new_string(text) : NULL);
}

static void add_seconds(struct json_object *o, const char *key, uint64_t ns)
{
	char text[32];

	snprintf(text, sizeof(text), "%.3f", (double)ns / 1e9);
	json_object_object_add(o, key, json_object_new_double_s((double)ns / 1e9, text));
}

static const char *api_name(const struct control_socket *c, uint64_t number)
{
	for (const struct control_api *api = c->apis; api->number; api++)
		if (api->number == number)
			return api->name;
	return NULL;
}

/* Loops, as the front end reports them. */
static void add_loops(struct json_object *o, const struct ledger_entry *e)
{
	struct json_object *classes = json_object_new_array();

	for (enum ledger_number which = LEDGER_CLASS_1; which <= LEDGER_CLASS_3; which++) {
		uint64_t value = ledger_get(e, which);

		json_object_array_add(classes, json_object_new_int64(value > INT64_MAX ? INT64_MAX :
								      (int64_t)value));
	}
	json_object_object_add(o, "loops_by_class", classes);
	add_number(o, "mispredictions", ledger_get(e, LEDGER_WRONG));
	add_number(o, "loops_demoted", ledger_get(e, LEDGER_GIVEN_UP));
}

static struct json_object *app_object(const struct control_socket *c, struct app *app)
{
	struct json_object *o = json_object_new_object();
	const struct ledger_entry *e = app_entry(app);
	const struct owner *owner = &app->account->owner;
	/* In this order: each that was replied to is among the calls. */
	uint64_t replies = ledger_get(e, LEDGER_REPLIES), calls = ledger_get(e, LEDGER_CALLS);
	uint64_t mode = ledger_get(e, LEDGER_MODE);
	uint64_t engine_ns = process_clock_engine_ns(&app->clock, now_ns());
	bool engines = process_clock_has_engines(&app->clock);

	json_object_object_add(o, "pid", app->pid ? json_object_new_int64(app->pid) : NULL);
	json_object_object_add(o, "uid", owner->uid == (uid_t)-1 ? NULL :
			       json_object_new_int64(owner->uid));
	json_object_object_add(o, "cid", owner->cid ? json_object_new_int64(owner->cid) : NULL);
	add_text(o, "command", app->command);
	add_number(o, "process", (uint64_t)app->process);
	add_text(o, "api", api_name(c, ledger_get(e, LEDGER_API)));
	add_text(o, "mode", mode < sizeof(modes) / sizeof(*modes) ? modes[mode] : NULL);
	add_seconds(o, "age_s", now_ns() - app->since_ns);
	add_number(o, "calls", calls);
	add_number(o, "round_trips", replies);
	add_number(o, "round_trips_saved", calls > replies ? calls - replies : 0);
	add_number(o, "received_bytes", ledger_get(e, LEDGER_RECEIVED));
	add_number(o, "sent_bytes", ledger_get(e, LEDGER_SENT));
	add_text(o, "busy_source", engines ? "engine" : "cpu");
	add_seconds(o, "busy_s", engines ? engine_ns : process_clock_cpu_ns(&app->clock));
	add_number(o, "memory_bytes", ledger_get(e, LEDGER_MEMORY));
	add_number(o, "pending_bytes", ledger_get(e, LEDGER_PENDING));
	add_number(o, "handles", ledger_get(e, LEDGER_OBJECTS));
	add_number(o, "groups", ledger_get(e, LEDGER_GROUPS));
	add_number(o, "grouped_calls", ledger_get(e, LEDGER_GROUPED));
	add_loops(o, e);
	return o;
}

static struct json_object *account_object(const struct apps *apps, const struct part *part)
{
	struct json_object *o = json_object_new_object();
	const struct account *account;
	char name[OWNER_TEXT];

	for (account = apps->accounts; account; account = account->next)
		if (owner_same(&account->owner, &part->owner))
			break;
	add_text(o, "account", owner_name(name, &part->owner));
	add_number(o, "weight", part->weight);
	json_object_object_add(o, "gpu_limit_share", part->limit_ppm ?
			       json_object_new_double((double)part->limit_ppm / PPM) : NULL);
	add_number(o, "programs", account ? account->nr : 0);
	json_object_object_add(o, "waits", json_object_new_boolean(account &&
								   account->share.turns.stopped));
	return o;
}

/* The accounts that have programs, or a part of their own. */
static struct json_object *account_list(const struct apps *apps)
{
	struct json_object *list = json_object_new_array();
	const struct account *account;

	for (account = apps->accounts; account; account = account->next) {
		const struct part part = apps_part(apps, &account->owner);

		json_object_array_add(list, account_object(apps, &part));
	}
	for (const struct part *part = apps->parts; part; part = part->next) {
		for (account = apps->accounts; account; account = account->next)
			if (owner_same(&account->owner, &part->owner))
				break;
		if (!account)
			json_object_array_add(list, account_object(apps, part));
	}
	return list;
}

static struct json_object *state(void *arg)
{
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	const struct control_socket *c = arg;

	json_object_object_add(o, "version", json_object_new_int(MGPU_JSON_VERSION));
	for (struct app *app = c->apps->list; app; app = app->next)
		json_object_array_add(list, app_object(c, app));
	json_object_object_add(o, "applications", list);
	json_object_object_add(o, "accounts", account_list(c->apps));
	return o;
}

/* ---- changes ---- */

/* Read a number in units of 1 / @factor. */
static bool read_number(struct json_object *value, double factor, uint32_t min, uint32_t max,
			uint32_t *result)
{
	double v = json_object_get_double(value) * factor;

	if ((!json_object_is_type(value, json_type_int) &&
	     !json_object_is_type(value, json_type_double)) || !(v >= min && v <= max))
		return false;
	*result = (uint32_t)(v + 0.5);
	return true;
}

/* Read what is to be changed of an account's part. */
static int read_part(struct part *part, struct json_object *value, struct settings_error *err)
{
	if (!json_object_is_type(value, json_type_object))
		return settings_wrong(err, "settings",
				      "an account's part is an object with weight or gpu_limit_share");
	json_object_object_foreach(value, key, v) {
		if (!strcmp(key, "weight")) {
			if (!read_number(v, 1, MGPU_WEIGHT_MIN, MGPU_WEIGHT_MAX, &part->weight))
				return settings_wrong(err, key,
						      "a weight is a number from %d to %d",
						      MGPU_WEIGHT_MIN, MGPU_WEIGHT_MAX);
		} else if (!strcmp(key, "gpu_limit_share")) {
			part->limit_ppm = 0;
			if (v && !read_number(v, PPM, MGPU_GPU_LIMIT_MIN, MGPU_GPU_LIMIT_MAX,
					      &part->limit_ppm))
				return settings_wrong(err, key,
						      "a limit is a number from 0.001 to 1, or null");
		} else {
			return settings_wrong(err, "settings",
					      "an account has a weight and a gpu_limit_share");
		}
	}
	return 0;
}

/* The settings are those of one account. */
static int change(void *arg, const struct peer *peer, enum server_change what,
		  struct json_object *value, uint64_t *ticket, struct settings_error *err)
{
	const struct control_socket *c = arg;
	struct json_object_iterator it;
	struct owner owner;
	struct part part;
	int ret;

	(void)peer;
	(void)ticket;
	if (what != SERVER_SET)
		return settings_wrong(err, "request",
				      "mgpu-remoted keeps no earlier settings: set those that are to be in force");
	if (!json_object_is_type(value, json_type_object) || json_object_object_length(value) != 1)
		return settings_wrong(err, "settings", "settings are an object with one account");
	it = json_object_iter_begin(value);
	if (!owner_parse(&owner, json_object_iter_peek_name(&it)))
		return settings_wrong(err, "account",
				      "an account is user:NAME, vm:CID, or others for all that are not named");
	part = apps_part(c->apps, &owner);
	ret = read_part(&part, json_object_iter_peek_value(&it), err);
	if (!ret)
		ret = apps_set_part(c->apps, &part);
	if (ret == -ENOMEM)
		settings_wrong(err, "settings", "out of memory");
	return ret;
}

static const struct server_ops ops = {
	.name = "mgpu-remoted", .state = state, .change = change,
};

int control_open(struct control_socket **control, const char *path, const char *group,
		 struct apps *apps, const struct control_api *apis)
{
	struct control_socket *c = calloc(1, sizeof(*c));
	struct access access = { .everyone = false };
	char why[512] = "out of memory";
	int ret = c ? 0 : -ENOMEM;

	if (!ret) {
		c->apps = apps;
		c->apis = apis;
		ret = access_group(group, &access.gid, why, sizeof(why));
	}
	if (!ret)
		ret = server_open(&c->server, path, &ops, c, why, sizeof(why));
	if (!ret)
		ret = server_access(c->server, &access, why, sizeof(why));
	if (ret) {
		complain("%s", why);
		control_close(c);
		return ret;
	}
	*control = c;
	return 0;
}

void control_close(struct control_socket *control)
{
	if (control)
		server_close(control->server);
	free(control);
}

int control_fd(const struct control_socket *control)
{
	return server_fd(control->server);
}

void control_run(struct control_socket *control)
{
	/* Nothing tells when a program's numbers change. */
	server_publish(control->server, false);
	server_run(control->server);
}
