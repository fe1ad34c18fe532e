// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl remote: what the programs of mgpu-remoted do, as its control socket tells it. */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "control.h"
#include "gpuctl.h"
#include "mgpud_client.h"

/* ---- reading ---- */

/* Read a list of the state, which the caller must put. */
static int get_list(struct json_object **list, const char *name, struct mgpu_error *err)
{
	struct json_object *state = NULL, *found;
	struct mgpud *client;
	int ret;

	ret = mgpud_connect_to(&client, &remoted_service, NULL, err);
	if (ret)
		return ret;
	ret = mgpud_get(client, &state, err);
	mgpud_close(client);
	if (ret)
		return ret;
	if (json_object_object_get_ex(state, name, &found) &&
	    json_object_is_type(found, json_type_array))
		*list = json_object_get(found);
	else
		ret = mgpu_fail(err, -EBADMSG,
				"mgpu-remoted's answer has no %s: it is of another version than this program",
				name);
	json_object_put(state);
	return ret;
}

static int get_apps(struct json_object **apps, struct mgpu_error *err)
{
	return get_list(apps, "applications", err);
}

static uint64_t count(struct json_object *app, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(app, key, &value);
	return value ? json_object_get_uint64(value) : 0;
}

static const char *text(struct json_object *app, const char *key)
{
	struct json_object *value = NULL;

	json_object_object_get_ex(app, key, &value);
	return value ? json_object_get_string(value) : "-";
}

/* ---- list ---- */

static const char *const list_columns[] = {
	">PID", "~USER", "~COMMAND", "API", "-MODE", ">CALLS", ">WAITS", "->SAVED", ">IN", ">OUT",
	">MEMORY", "->HANDLES", NULL
};

static void add_user(struct table *table, struct json_object *app)
{
	const struct passwd *pw = NULL;

	if (json_object_object_get(app, "cid")) {
		table_cell(table, "VM %s", text(app, "cid"));
		return;
	}
	if (json_object_object_get(app, "uid"))
		pw = getpwuid((uid_t)count(app, "uid"));
	table_cell(table, "%s", pw ? pw->pw_name : text(app, "uid"));
}

static void add_bytes(struct table *table, uint64_t bytes)
{
	char buf[OUT_CELL];

	table_cell(table, "%s", out_bytes(buf, sizeof(buf), bytes));
}

static void add_app(struct table *table, struct json_object *app)
{
	table_cell(table, "%s", text(app, "pid"));
	add_user(table, app);
	table_cell(table, "%s", text(app, "command"));
	table_cell(table, "%s", text(app, "api"));
	table_cell(table, "%s", text(app, "mode"));
	table_cell(table, "%" PRIu64, count(app, "calls"));
	table_cell(table, "%" PRIu64, count(app, "round_trips"));
	table_cell(table, "%" PRIu64, count(app, "round_trips_saved"));
	add_bytes(table, count(app, "received_bytes"));
	add_bytes(table, count(app, "sent_bytes"));
	add_bytes(table, count(app, "memory_bytes"));
	table_cell(table, "%" PRIu64, count(app, "handles"));
}

static int print_apps(const struct gpuctl *ctl, struct json_object *apps)
{
	struct json_object *all = json_object_new_object();

	json_object_object_add(all, "applications", apps);
	return out_json(ctl, all);
}

int remote_list(const struct gpuctl *ctl, int argc, char **argv)
{
	struct table table = { .columns = list_columns };
	struct json_object *apps;
	struct mgpu_error err;

	if (argc)
		return usage_error("remote list takes no '%s': it lists all", argv[0]);
	if (get_apps(&apps, &err))
		return failed(&err);
	if (ctl->json)
		return print_apps(ctl, apps);
	for (size_t i = 0; i < json_object_array_length(apps); i++)
		add_app(&table, json_object_array_get_idx(apps, i));
	table_print(&table);
	json_object_put(apps);
	return EXIT_OK;
}

/* ---- show ---- */

static void print_classes(struct json_object *classes)
{
	for (size_t i = 0; i < json_object_array_length(classes); i++) {
		struct json_object *value = json_object_array_get_idx(classes, i);

		printf("loops-class-%zu:       %s\n", i + 1, json_object_get_string(value));
	}
}

static void print_app(struct json_object *app)
{
	struct json_object *classes = json_object_object_get(app, "loops_by_class");
	char buf[OUT_CELL];

	json_object_object_foreach(app, key, value) {
		size_t len = strlen(key);

		if (value == classes) {
			print_classes(classes);
			continue;
		}
		snprintf(buf, sizeof(buf), "%s:", key);
		for (char *c = buf; *c; c++)
			*c = *c == '_' ? '-' : *c;
		printf("%-20s ", buf);
		if (!value)
			puts("-");
		else if (len > 2 && !strcmp(key + len - 2, "_s"))
			printf("%s s\n", json_object_get_string(value));
		else if (len > 6 && !strcmp(key + len - 6, "_bytes"))
			printf("%s (%s)\n", json_object_get_string(value),
			       out_bytes(buf, sizeof(buf), json_object_get_uint64(value)));
		else
			puts(json_object_get_string(value));
	}
}

/* Find the application with a process ID, its own or that of its process in mgpu-remoted. */
static struct json_object *find(struct json_object *apps, uint32_t pid, struct mgpu_error *err)
{
	struct json_object *found = NULL;
	char processes[128] = "";

	for (size_t i = 0; i < json_object_array_length(apps); i++) {
		struct json_object *app = json_object_array_get_idx(apps, i);
		size_t len = strlen(processes);

		if (count(app, "process") == pid)
			return app;
		if (!json_object_object_get(app, "pid") || count(app, "pid") != pid)
			continue;
		found = app;
		snprintf(processes + len, sizeof(processes) - len, "%s%s", len ? ", " : "",
			 text(app, "process"));
	}
	if (!found)
		mgpu_fail(err, -ESRCH,
			  "mgpu-remoted has no application with process ID %u: 'gpuctl remote list' lists them",
			  pid);
	if (found && strchr(processes, ',')) {
		mgpu_fail(err, -EINVAL,
			  "process %u has several connections: name one of their processes in mgpu-remoted: %s",
			  pid, processes);
		return NULL;
	}
	return found;
}

int remote_show(const struct gpuctl *ctl, int argc, char **argv)
{
	struct json_object *apps, *app;
	struct mgpu_error err;
	uint32_t pid;

	if (argc != 1)
		return usage_error("remote show takes one process ID; 'gpuctl remote list' lists them");
	if (parse_u32(argv[0], 1, INT32_MAX, &pid))
		return usage_error("'%s' is no process ID; 'gpuctl remote list' lists them",
				   argv[0]);
	if (get_apps(&apps, &err))
		return failed(&err);
	app = find(apps, pid, &err);
	if (!app) {
		json_object_put(apps);
		return failed(&err);
	}
	if (ctl->json)
		out_json(ctl, json_object_get(app));
	else
		print_app(app);
	json_object_put(apps);
	return EXIT_OK;
}

/* ---- stats ---- */

static const char *const stats_columns[] = {
	">PID", "~COMMAND", ">CALLS/S", ">WAITS/S", "->SAVED/S", ">IN/S", ">OUT/S", ">BUSY", "OF",
	">MEMORY", "->HANDLES", NULL
};

/* Counters whose rates are printed; those of @key in JSON are @rate. */
static const struct {
	const char *key;
	const char *rate;
	bool bytes;
} rates[] = {
	{ "calls", "calls_per_s", false },
	{ "round_trips", "round_trips_per_s", false },
	{ "round_trips_saved", "round_trips_saved_per_s", false },
	{ "received_bytes", "received_bytes_per_s", true },
	{ "sent_bytes", "sent_bytes_per_s", true },
};

#define NR_RATES	(sizeof(rates) / sizeof(rates[0]))

/* The same application in an earlier list, or NULL. */
static struct json_object *earlier(struct json_object *apps, struct json_object *app)
{
	for (size_t i = 0; i < json_object_array_length(apps); i++) {
		struct json_object *one = json_object_array_get_idx(apps, i);

		if (count(one, "process") == count(app, "process") &&
		    json_number(one, "age_s") <= json_number(app, "age_s"))
			return one;
	}
	return NULL;
}

/* Rate of a counter; of an application that was not there before, since it came. */
static double rate(struct json_object *before, struct json_object *app, const char *key)
{
	double seconds = json_number(app, "age_s"), amount = json_number(app, key);

	if (before) {
		seconds -= json_number(before, "age_s");
		amount -= json_number(before, key);
	}
	return seconds > 0 && amount > 0 ? amount / seconds : 0;
}

static void add_rates(struct table *table, struct json_object *before, struct json_object *app)
{
	char buf[OUT_CELL];

	table_cell(table, "%s", text(app, "pid"));
	table_cell(table, "%s", text(app, "command"));
	for (size_t i = 0; i < NR_RATES; i++) {
		double value = rate(before, app, rates[i].key);

		table_cell(table, "%s", rates[i].bytes ?
			   out_bytes(buf, sizeof(buf), (uint64_t)value) :
			   out_rate(buf, sizeof(buf), value));
	}
	table_cell(table, "%.0f%%", 100 * rate(before, app, "busy_s"));
	table_cell(table, "%s", text(app, "busy_source"));
	add_bytes(table, count(app, "memory_bytes"));
	table_cell(table, "%" PRIu64, count(app, "handles"));
}

static void add_number(struct json_object *object, const char *key, double value)
{
	char buf[64];

	snprintf(buf, sizeof(buf), "%.3f", value);
	json_object_object_add(object, key, json_object_new_double_s(value, buf));
}

static struct json_object *rates_object(struct json_object *before, struct json_object *app)
{
	struct json_object *object = json_object_new_object();

	static const char *const same[] = {
		"pid", "uid", "cid", "command", "process", "api", "mode", "busy_source", "memory_bytes",
		"handles",
	};

	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++)
		json_object_object_add(object, same[i],
				       json_object_get(json_object_object_get(app, same[i])));
	for (size_t i = 0; i < NR_RATES; i++)
		add_number(object, rates[i].rate, rate(before, app, rates[i].key));
	add_number(object, "busy_share", rate(before, app, "busy_s"));
	return object;
}

static void print_stats(const struct gpuctl *ctl, struct json_object *before,
			struct json_object *apps)
{
	struct table table = { .columns = stats_columns };
	struct json_object *list = ctl->json ? json_object_new_array() : NULL;

	for (size_t i = 0; i < json_object_array_length(apps); i++) {
		struct json_object *app = json_object_array_get_idx(apps, i);
		struct json_object *one = earlier(before, app);

		if (ctl->json)
			json_object_array_add(list, rates_object(one, app));
		else
			add_rates(&table, one, app);
	}
	if (ctl->json)
		print_apps(ctl, list);
	else
		table_print(&table);
	fflush(stdout);
}

int remote_stats(const struct gpuctl *ctl, int argc, char **argv)
{
	const struct timespec pause = {
		.tv_sec = (time_t)ctl->seconds,
		.tv_nsec = (long)(fmod(ctl->seconds, 1) * NSEC),
	};
	struct json_object *before, *apps;
	uint32_t left = ctl->count;
	struct mgpu_error err;
	int ret;

	if (argc)
		return usage_error("remote stats takes no '%s': it has all applications", argv[0]);
	stop_on_signals();
	ret = get_apps(&before, &err);
	if (ret)
		return failed(&err);
	do {
		ret = wait_or_stop(-1, &pause, &err);
		if (!ret && !gpuctl_stop)
			ret = get_apps(&apps, &err);
		if (ret || gpuctl_stop)
			break;
		print_stats(ctl, before, apps);
		json_object_put(before);
		before = apps;
	} while (!ctl->count || --left);
	json_object_put(before);
	return ret ? failed(&err) : EXIT_OK;
}

/* ---- accounts ---- */

static const char *const account_columns[] = {
	"~ACCOUNT", ">WEIGHT", ">GPU-LIMIT", ">PROGRAMS", "WAITS", NULL
};

const char *const remote_set_keys[] = { "weight", "gpu-limit", NULL };

static void add_account(struct table *table, struct json_object *account)
{
	double limit = json_number(account, "gpu_limit_share");
	const char *name = text(account, "account");
	const struct passwd *pw = NULL;
	char buf[OUT_CELL];

	if (!strncmp(name, "user:", 5))
		pw = getpwuid((uid_t)strtoul(name + 5, NULL, 10));
	if (pw)
		table_cell(table, "user:%s", pw->pw_name);
	else
		table_cell(table, "%s", name);
	table_cell(table, "%" PRIu64, count(account, "weight"));
	table_cell(table, "%s", isnan(limit) ? "none" :
		   out_share(buf, sizeof(buf), (uint64_t)(limit * 1e6 + 0.5)));
	table_cell(table, "%" PRIu64, count(account, "programs"));
	table_cell(table, "%s", json_object_get_boolean(json_object_object_get(account, "waits")) ?
		   "yes" : "no");
}

int remote_accounts(const struct gpuctl *ctl, int argc, char **argv)
{
	struct table table = { .columns = account_columns };
	struct json_object *accounts, *all;
	struct mgpu_error err;

	if (argc)
		return usage_error("remote accounts takes no '%s': it lists all", argv[0]);
	if (get_list(&accounts, "accounts", &err))
		return failed(&err);
	if (ctl->json) {
		all = json_object_new_object();
		json_object_object_add(all, "accounts", accounts);
		return out_json(ctl, all);
	}
	for (size_t i = 0; i < json_object_array_length(accounts); i++)
		add_account(&table, json_object_array_get_idx(accounts, i));
	table_print(&table);
	json_object_put(accounts);
	return EXIT_OK;
}

/* Add a setting. Return 0 or an exit status. */
static int add_setting(struct json_object *part, const char *key, const char *value)
{
	uint32_t number;

	if (!is_word(key, remote_set_keys))
		return usage_error("remote set: unknown setting '%s', but weight and gpu-limit",
				   key);
	if (!value)
		return usage_error("%s needs a value", key);
	if (!strcmp(key, "weight")) {
		if (parse_u32(value, MGPU_WEIGHT_MIN, MGPU_WEIGHT_MAX, &number))
			return usage_error("weight '%s': use a whole number from %d to %d", value,
					   MGPU_WEIGHT_MIN, MGPU_WEIGHT_MAX);
		json_object_object_add(part, "weight", json_object_new_int64(number));
		return 0;
	}
	if (parse_share(value, &number))
		return usage_error("gpu-limit '%s': use a part of an engine's time from 0.1%% to 100%%, as in 30.5%%, or 'none'",
				   value);
	json_object_object_add(part, "gpu_limit_share",
			       number ? json_object_new_double(number / 1e6) : NULL);
	return 0;
}

static int set_part(struct json_object *settings, struct mgpu_error *err)
{
	struct mgpud *client;
	int ret = mgpud_connect_to(&client, &remoted_service, NULL, err);

	if (ret)
		return ret;
	ret = mgpud_set(client, settings, NULL, err);
	mgpud_close(client);
	return ret;
}

int remote_set(const struct gpuctl *ctl, int argc, char **argv)
{
	struct json_object *settings, *part;
	struct mgpu_error err;
	int ret = EXIT_OK;

	(void)ctl;
	if (argc < 2)
		return usage_error("remote set: name an account and what to set, as in 'gpuctl remote set vm:3 weight 300'");
	settings = json_object_new_object();
	part = json_object_new_object();
	json_object_object_add(settings, argv[0], part);
	for (int i = 1; i < argc && !ret; i += 2)
		ret = add_setting(part, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
	if (!ret && set_part(settings, &err))
		ret = failed(&err);
	json_object_put(settings);
	return ret;
}
