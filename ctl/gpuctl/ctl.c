// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl ctl: talks to mgpud over its socket */
#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "control.h"
#include "gpuctl.h"
#include "mgpud_client.h"
#include "mgpud_settings.h"

/* Words of mgpud_settings[]: its names with - for _. */
static char words[CTL_SETTINGS_MAX][32];
const char *ctl_set_keys[CTL_SETTINGS_MAX + 1];
const char *ctl_reset_keys[CTL_SETTINGS_MAX + 4];

void ctl_init(void)
{
	size_t nr = 0;

	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++) {
		if (!s->name)
			continue;
		snprintf(words[nr], sizeof(words[nr]), "%s", s->name);
		for (char *c = words[nr]; *c; c++)
			if (*c == '_')
				*c = '-';
		ctl_set_keys[nr] = words[nr];
		ctl_reset_keys[nr] = words[nr];
		nr++;
	}
	ctl_reset_keys[nr++] = "sla";
	ctl_reset_keys[nr++] = "descriptions";
	ctl_reset_keys[nr] = "default";
}

/* The setting with this word; NULL: there is none. */
const struct mgpud_setting *ctl_setting(const char *word)
{
	size_t nr = 0;

	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++)
		if (s->name && !strcmp(ctl_set_keys[nr++], word))
			return s;
	return NULL;
}

/* The setting that had this name before; NULL: there is none. */
static const struct mgpud_setting *was(const char *word)
{
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++)
		if (s->name && s->was && !strcmp(s->was, word))
			return s;
	return NULL;
}

const char *const ctl_sla_keys[] = { "default", "floor", "ceiling", NULL };
const char *const ctl_describe_keys[] = { "none", NULL };

static struct json_object *get(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	if (object)
		json_object_object_get_ex(object, key, &value);
	return value;
}

static const char *get_string(struct json_object *object, const char *key)
{
	struct json_object *value = get(object, key);

	return value ? json_object_get_string(value) : "-";
}

/* Format a number, or '-' if it is unknown. */
static const char *number(char *buf, struct json_object *object,
			  const char *key, double factor, int decimals)
{
	double value = json_number(object, key);

	if (isnan(value))
		strcpy(buf, "-");
	else
		snprintf(buf, OUT_CELL, "%.*f", decimals, value * factor);
	return buf;
}

static bool is_true(struct json_object *object, const char *key)
{
	struct json_object *value = get(object, key);

	return value && json_object_get_boolean(value);
}

/* Format a floor: "30.0", or "21.5/30.0" if only 21.5 is granted. */
static const char *floor_text(char *buf, struct json_object *vgpu)
{
	char granted[OUT_CELL], floor[OUT_CELL];

	number(floor, vgpu, "floor_fps", 1, 1);
	if (is_true(vgpu, "shortfall"))
		snprintf(buf, OUT_CELL, "%.30s/%.30s",
			 number(granted, vgpu, "granted_fps", 1, 1), floor);
	else
		strcpy(buf, floor);
	return buf;
}

static void add_name(struct table *table, const struct names_list *list, const char *uuid)
{
	struct vgpu_names names;

	names_find(list, uuid, &names);
	table_cell(table, "%s", names_shown(&names));
}

/* Add names to the entries of mgpud's state, or of a part of it, that have UUIDs. */
static void add_names(struct json_object *state)
{
	static const char *const lists[] = { "vgpus", "agreements", "descriptions" };
	struct names_list names;
	size_t i, j;

	names_list_read(&names);
	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		struct json_object *list = get(state, lists[i]);

		if (!list || !json_object_is_type(list, json_type_array))
			continue;
		for (j = 0; j < json_object_array_length(list); j++) {
			struct json_object *entry = json_object_array_get_idx(list, j);
			struct vgpu_names found;

			if (!json_object_is_type(entry, json_type_object))
				continue;
			names_find(&names, get_string(entry, "uuid"), &found);
			out_names(entry, &found);
		}
	}
	names_list_free(&names);
}

static void print_vgpus(struct json_object *vgpus)
{
	static const char *const columns[] = {
		">ID", "~UUID", "~VM", "STATE", ">FPS", ">TARGET", ">FLOOR", ">CEILING",
		">CPU%", ">GPU%",
		"->CPU-MS/FRAME", "->GPU-MS/FRAME", "->FRAMES", "~DESCRIPTION", NULL
	};
	struct table table = { .columns = columns };
	struct names_list list;
	char buf[OUT_CELL];
	size_t i;

	if (!vgpus || !json_object_is_type(vgpus, json_type_array) ||
	    !json_object_array_length(vgpus))
		return;
	names_list_read(&list);
	for (i = 0; i < json_object_array_length(vgpus); i++) {
		struct json_object *vgpu = json_object_array_get_idx(vgpus, i);

		table_cell(&table, "%s", number(buf, vgpu, "id", 1, 0));
		table_cell(&table, "%s", get_string(vgpu, "uuid"));
		add_name(&table, &list, get_string(vgpu, "uuid"));
		table_cell(&table, "%s", get_string(vgpu, "state"));
		table_cell(&table, "%s", number(buf, vgpu, "fps", 1, 1));
		table_cell(&table, "%s", number(buf, vgpu, "target_fps", 1, 1));
		table_cell(&table, "%s", floor_text(buf, vgpu));
		table_cell(&table, "%s", number(buf, vgpu, "ceiling_fps", 1, 1));
		table_cell(&table, "%s", number(buf, vgpu, "cpu_share", 100, 1));
		table_cell(&table, "%s", number(buf, vgpu, "gpu_share", 100, 1));
		table_cell(&table, "%s",
			   number(buf, vgpu, "cpu_s_per_frame", 1e3, 3));
		table_cell(&table, "%s",
			   number(buf, vgpu, "gpu_s_per_frame", 1e3, 3));
		table_cell(&table, "%s", number(buf, vgpu, "frames", 1, 0));
		table_cell(&table, "%s", get_string(vgpu, "description"));
	}
	names_list_free(&list);
	putchar('\n');
	table_print(&table);
}

/* Format a count, or '-' if it is unknown. */
static const char *count(char *buf, struct json_object *object, const char *key)
{
	return number(buf, object, key, 1, 0);
}

/* Print preemption policy, statistics and cost of a switch. */
static void print_preempt(struct json_object *preempt)
{
	struct json_object *done = get(preempt, "decisions"), *by = get(preempt, "by");
	struct json_object *cost = get(preempt, "cost");
	char one[OUT_CELL], two[OUT_CELL], three[OUT_CELL];

	printf("%-16s", "preemption");
	if (!preempt) {
		puts("-");	/* an older mgpud has no preemption */
		return;
	}
	fputs(get_string(preempt, "policy"), stdout);
	if (is_true(preempt, "watched")) {
		printf(": %s contexts, %s waiting, ", count(one, preempt, "contexts"),
		       count(two, preempt, "waiting"));
		printf("%s launched, %s resumed, %s preempted", count(one, done, "launch"),
		       count(two, done, "resume"), count(three, done, "preempt"));
		printf(" (%s switched, %s drained, %s flushed)\n", count(one, by, "switch"),
		       count(two, by, "drain"), count(three, by, "flush"));
	} else {
		puts(": no contexts are watched");
	}
	printf("%-16s%s * miss rate + %s cycles per byte, ", "switch cost",
	       number(one, cost, "a", 1, 5), number(two, cost, "b", 1, 5));
	if (!strcmp(get_string(cost, "source"), "fit"))
		printf("fitted to %s switches, median error %s %%\n",
		       count(one, cost, "samples"),
		       number(two, cost, "median_error", 100, 1));
	else if (!strcmp(get_string(cost, "source"), "set"))
		puts("as set");
	else
		printf("as published%s%s\n", get(cost, "no_fit") ? ": " : "",
		       get(cost, "no_fit") ? get_string(cost, "no_fit") : "");
}

/* Print the model, its age, and its error beside that of the control. */
static void print_model(struct json_object *model)
{
	char one[OUT_CELL], two[OUT_CELL];

	/* an older mgpud has none */
	if (!model || !get(model, "name"))
		return;
	printf("%-16s%s: %s", "model", get_string(model, "name"), get_string(model, "state"));
	if (get(model, "age_s"))
		printf(", %s days old", number(one, model, "age_s", 1 / 86400.0, 1));
	putchar('\n');
	printf("%-16s%s, that of the control static %s; ", "model error",
	       number(one, model, "error", 1, 4), number(two, model, "control_error", 1, 4));
	printf("%s answers checked of %s\n", count(one, model, "checked"),
	       count(two, model, "answers"));
	if (get(model, "why"))
		printf("%-16s%s\n", "model failed", get_string(model, "why"));
}

static void print_value(const char *title, struct json_object *value)
{
	size_t i;

	printf("%-16s", title);
	if (!value) {
		puts("-");
	} else if (json_object_is_type(value, json_type_boolean)) {
		puts(json_object_get_boolean(value) ? "yes" : "no");
	} else if (json_object_is_type(value, json_type_double)) {
		printf("%g\n", json_object_get_double(value));
	} else if (json_object_is_type(value, json_type_array)) {
		for (i = 0; i < json_object_array_length(value); i++)
			printf("%s%s", i ? " " : "",
			       json_object_get_string(json_object_array_get_idx(value, i)));
		putchar('\n');
	} else {
		puts(json_object_get_string(value));
	}
}

struct line {
	const char *title;
	const char *key;
};

static void print_lines(struct json_object *state, const struct line *lines, size_t nr)
{
	size_t i;

	for (i = 0; i < nr; i++)
		print_value(lines[i].title, get(state, lines[i].key));
}

/* Origin of a setting, by its name in mgpud's state: " (file)", "" for a default. */
static const char *source(char *buf, struct json_object *state, const char *name)
{
	const char *from = get(get(state, "sources"), name) ?
		get_string(get(state, "sources"), name) : "default";

	buf[0] = '\0';
	if (strcmp(from, "default"))
		snprintf(buf, OUT_CELL, " (%.20s)", from);
	for (char *c = buf; *c; c++)
		if (*c == '-')
			*c = ' ';
	return buf;
}

/*
 * Value of a setting in the state. Times are there in seconds, under a key that says so:
 * *factor is what converts them to the unit of the setting, or 1.
 */
static struct json_object *setting_value(struct json_object *state,
					 const struct mgpud_setting *setting, double *factor)
{
	bool rates = !strcmp(setting->section, MGPUD_RATES);
	bool contexts = !strcmp(setting->section, MGPUD_CONTEXTS);
	struct json_object *in = rates ? state : get(state, contexts ? "preempt" : "model");
	const char *key = rates ? setting->name : setting->key;
	size_t len = strlen(key);
	char seconds[64];

	*factor = 1;
	if (len < 3 || len >= sizeof(seconds) || strcmp(key + len - 3, "_ms"))
		return get(in, key);
	snprintf(seconds, sizeof(seconds), "%.*s_s", (int)len - 3, key);
	*factor = 1e3;
	return get(in, seconds);
}

/* Print each setting that can be changed, and where its value comes from. */
static void print_settings(struct json_object *state)
{
	const char *const *word;
	char buf[OUT_CELL];

	for (word = ctl_set_keys; *word; word++) {
		const struct mgpud_setting *setting = ctl_setting(*word);
		double factor;
		struct json_object *value = setting_value(state, setting, &factor);

		/* the cost of a switch has a line of its own */
		if (setting->kind == MGPUD_COST)
			continue;
		printf("%-24s", *word);
		if (value && (json_object_is_type(value, json_type_double) || factor != 1))
			printf("%.10g", json_object_get_double(value) * factor);
		else
			fputs(value ? json_object_get_string(value) : "-", stdout);
		puts(source(buf, state, setting->name));
	}
}

static void print_trouble(struct json_object *state)
{
	struct json_object *list = get(state, "trouble");

	for (size_t i = 0; list && i < json_object_array_length(list); i++)
		printf("%-16s%s\n", "trouble",
		       json_object_get_string(json_object_array_get_idx(list, i)));
}

static void print_state(struct json_object *state)
{
	static const struct line about[] = {
		{ "version", "release" },
		{ "pid", "pid" },
		{ "uptime (s)", "uptime_s" },
	}, rest[] = {
		{ "allocators", "allocators" },
		{ "periods", "periods" },
		{ "configuration", "config" },
		{ "state file", "state_file" },
		{ "log", "log" },
		{ "keeps floors", "floors" },
		{ "weights count", "weights" },
		{ "shortfalls", "shortfalls" },
		{ "dry run", "dry_run" },
		{ "eBPF", "bpf" },
		{ "charge source", "charge_source" },
		{ "fairness f", "fds" },
		{ "best f", "fds_optimal" },
	};
	struct json_object *capacity = get(state, "capacity");
	char buf[OUT_CELL];

	print_lines(state, about, sizeof(about) / sizeof(about[0]));
	print_trouble(state);
	print_settings(state);
	print_lines(state, rest, sizeof(rest) / sizeof(rest[0]));
	printf("%-16s%s cores for VMs, ", "capacity",
	       number(buf, capacity, "cpu_cores", 1, 2));
	printf("%s engines\n", number(buf, capacity, "gpu_engines", 1, 2));
	print_preempt(get(state, "preempt"));
	print_model(get(state, "model"));
	print_vgpus(get(state, "vgpus"));
}

int ctl_show(const struct gpuctl *ctl, int argc, char **argv)
{
	struct json_object *state;
	struct mgpud *mgpud;
	struct mgpu_error err;
	int ret;

	if (argc)
		return usage_error("ctl show takes no '%s'", argv[0]);
	if (mgpud_connect(&mgpud, NULL, &err))
		return failed(&err);
	ret = mgpud_get(mgpud, &state, &err);
	mgpud_close(mgpud);
	if (ret)
		return failed(&err);

	if (ctl->json) {
		add_names(state);
		return out_json(ctl, state);
	}
	print_state(state);
	json_object_put(state);
	return EXIT_OK;
}

/* Convert a setting to JSON, under its name on the socket; mgpud checks the value. */
static int parse_setting(struct json_object *settings, const struct mgpud_setting *setting,
			 const char *key, const char *value)
{
	struct json_object *json = NULL;
	uint32_t u32;
	double real;

	if (json_object_object_get_ex(settings, setting->name, NULL))
		return usage_error("duplicate %s; give it once", key);
	if (!mgpud_setting_is_number(setting)) {
		json = json_object_new_string(value);
	} else if (setting->kind == MGPUD_WHOLE) {
		if (parse_u32(value, 0, INT32_MAX, &u32))
			return usage_error("%s %s: give a whole number", key,
					   value);
		json = json_object_new_int((int32_t)u32);
	} else {
		if (parse_double(value, &real))
			return usage_error("%s %s: give a number", key, value);
		json = json_object_new_double(real);
	}
	json_object_object_add(settings, setting->name, json);
	return 0;
}

/* Say that a change is in force, but does not last. */
static void warn(const struct mgpud *mgpud)
{
	if (mgpud_warning(mgpud))
		fprintf(stderr, "gpuctl: warning: %s\n", mgpud_warning(mgpud));
}

/* Print mgpud's answer to a change. @state is released. */
static void out_change(const struct gpuctl *ctl, const struct mgpud *mgpud,
		       struct json_object *state)
{
	warn(mgpud);
	if (ctl->json) {
		add_names(state);
		out_json(ctl, state);
	} else {
		json_object_put(state);
	}
}

int ctl_set(const struct gpuctl *ctl, int argc, char **argv)
{
	struct json_object *settings = json_object_new_object();
	struct json_object *state = NULL;
	struct mgpud *mgpud = NULL;
	struct mgpu_error err;
	int ret = 0;
	int i;

	if (!argc)
		ret = usage_error("ctl set: say what to set, as in 'gpuctl ctl set allocator exact'");
	for (i = 0; i < argc && !ret; i += 2) {
		const struct mgpud_setting *setting = ctl_setting(argv[i]);

		if (!setting && was(argv[i])) {
			setting = was(argv[i]);
			ret = usage_error("%s is called %s now: use 'gpuctl ctl set %s %s'",
					  argv[i], setting->name, setting->name,
					  i + 1 < argc ? argv[i + 1] : setting->arg);
		} else if (!setting) {
			const char *like = suggest(argv[i], ctl_set_keys);

			ret = usage_error("unknown setting '%s'%s%s%s",
					  argv[i],
					  like ? "; did you mean '" : "",
					  like ? like : "", like ? "'?" : "");
		} else if (i + 1 == argc) {
			ret = usage_error("%s wants a value", argv[i]);
		} else {
			ret = parse_setting(settings, setting, argv[i],
					    argv[i + 1]);
		}
	}
	if (ret)
		goto out;

	if (mgpud_connect(&mgpud, NULL, &err) ||
	    mgpud_set(mgpud, settings, &state, &err)) {
		ret = failed(&err);
		goto out;
	}
	out_change(ctl, mgpud, state);
	state = NULL;
out:
	json_object_put(state);
	mgpud_close(mgpud);
	json_object_put(settings);
	return ret;
}

/* ---- what belongs to vGPUs ---- */

/* UUID of the vGPU with this ID or beginning of the UUID; NULL after an error. */
static const char *find_uuid(struct json_object *state, const char *word)
{
	struct json_object *list = get(state, "vgpus");
	const char *found = NULL;
	uint32_t id;
	bool is_id = !parse_u32(word, 0, UINT32_MAX, &id);
	size_t i;

	if (!*word) {
		usage_error("'' names no vGPU: give its id, its UUID or the beginning of its UUID");
		return NULL;
	}
	for (i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *vgpu = json_object_array_get_idx(list, i);
		const char *uuid = get_string(vgpu, "uuid");
		struct json_object *number = get(vgpu, "id");

		if (is_id ? !number || json_object_get_int64(number) != id :
		    strncasecmp(uuid, word, strlen(word)))
			continue;
		if (found) {
			usage_error("several UUIDs begin with '%s': write more of the UUID",
				    word);
			return NULL;
		}
		found = uuid;
	}
	if (!found)
		usage_error("mgpud has no vGPU '%s': for a vGPU that does not exist yet, write its whole UUID",
			    word);
	return found;
}

/* A UUID has 36 characters; mgpud checks them. */
static bool is_uuid(const char *word)
{
	return strlen(word) == 36;
}

/*
 * Write the whole UUID of the vGPU that a word names, or the word default. Return 0 or an
 * exit status.
 */
static int name_vgpu(struct json_object *state, const char *word, char uuid[OUT_CELL])
{
	if (strcmp(word, "default") && !is_uuid(word))
		word = find_uuid(state, word);
	if (!word)
		return EXIT_USAGE;
	snprintf(uuid, OUT_CELL, "%s", word);
	return 0;
}

/**
 * struct of_vgpus - agreements or descriptions of vGPUs
 * @setting: name on the socket
 * @keys: members of the state that -j prints, NULL at the end
 * @print: print all of them, or that of the vGPU with a UUID
 */
struct of_vgpus {
	const char *setting;
	const char *keys[6];
	void (*print)(struct json_object *state, const char *only);
};

/*
 * Set what belongs to a vGPU: @value, or null. Renew @state. Return the exit
 * status, after a complaint.
 */
static int set_of_vgpu(struct mgpud *mgpud, const char *setting, const char *uuid,
		       struct json_object *value, struct json_object **state)
{
	struct json_object *settings = json_object_new_object();
	struct json_object *all = json_object_new_object();
	struct mgpu_error err;
	int ret = 0;

	json_object_object_add(all, uuid, json_object_get(value));
	json_object_object_add(settings, setting, all);
	json_object_put(*state);
	*state = NULL;
	if (mgpud_set(mgpud, settings, state, &err))
		ret = failed(&err);
	else
		warn(mgpud);
	json_object_put(settings);
	return ret;
}

/* Show what belongs to vGPUs, or to @who; or @set it to @value. Return the exit status. */
static int show_or_set(const struct gpuctl *ctl, const struct of_vgpus *what, const char *who,
		       bool set, struct json_object *value)
{
	struct json_object *state = NULL, *object;
	struct mgpud *mgpud = NULL;
	struct mgpu_error err;
	char uuid[OUT_CELL];
	int ret = 0;

	if (mgpud_connect(&mgpud, NULL, &err) || mgpud_get(mgpud, &state, &err))
		ret = failed(&err);
	if (!ret && who)
		ret = name_vgpu(state, who, uuid);
	if (!ret && set)
		ret = set_of_vgpu(mgpud, what->setting, uuid, value, &state);
	if (!ret && ctl->json) {
		object = json_object_new_object();
		for (const char *const *key = what->keys; *key; key++)
			json_object_object_add(object, *key, json_object_get(get(state, *key)));
		add_names(object);
		ret = out_json(ctl, object);
	} else if (!ret && !set) {
		what->print(state, who ? uuid : NULL);
	}
	json_object_put(state);
	mgpud_close(mgpud);
	return ret;
}

/* ---- agreements ---- */

/* @source: where the agreement comes from */
static void print_agreement(struct table *table, const struct names_list *names,
			    const char *who, struct json_object *sla, const char *source,
			    struct json_object *vgpu)
{
	char buf[OUT_CELL];

	table_cell(table, "%s", who);
	add_name(table, names, who);
	table_cell(table, "%s", get(sla, "floor_fps") ?
		   number(buf, sla, "floor_fps", 1, 3) : "none");
	table_cell(table, "%s", get(sla, "ceiling_fps") ?
		   number(buf, sla, "ceiling_fps", 1, 3) : "none");
	table_cell(table, "%s", source);
	table_cell(table, "%s", vgpu ? number(buf, vgpu, "granted_fps", 1, 1) : "-");
	table_cell(table, "%s", vgpu ? number(buf, vgpu, "fps", 1, 1) : "-");
	table_cell(table, "%s", !vgpu ? "-" : is_true(vgpu, "shortfall") ?
		   "short" : get_string(vgpu, "state"));
	if (vgpu && is_true(vgpu, "shortfall"))
		table_colour(table, OUT_BAD);
}

/* The entry of a list that is about a vGPU, NULL if there is none. */
static struct json_object *find(struct json_object *list, const char *uuid)
{
	size_t i;

	for (i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *entry = json_object_array_get_idx(list, i);

		if (!strcasecmp(get_string(entry, "uuid"), uuid))
			return entry;
	}
	return NULL;
}

/* Print all agreements, or that of one vGPU. */
static void print_agreements(struct json_object *state, const char *only)
{
	static const char *const columns[] = {
		"~VGPU", "~VM", ">FLOOR", ">CEILING", "SOURCE", ">GRANTED", ">FPS", "STATE", NULL
	};
	struct table table = { .columns = columns };
	struct json_object *own = get(state, "agreements");
	struct names_list names;
	size_t i;

	names_list_read(&names);
	if (!only || !strcmp(only, "default"))
		print_agreement(&table, &names, "default", get(state, "sla"), "-", NULL);
	if (only && strcmp(only, "default")) {
		struct json_object *sla = find(own, only);

		print_agreement(&table, &names, only, sla ? sla : get(state, "sla"),
				sla ? get_string(sla, "source") : "default",
				find(get(state, "vgpus"), only));
	}
	for (i = 0; !only && own && i < json_object_array_length(own); i++) {
		struct json_object *sla = json_object_array_get_idx(own, i);
		const char *uuid = get_string(sla, "uuid");

		print_agreement(&table, &names, uuid, sla, get_string(sla, "source"),
				find(get(state, "vgpus"), uuid));
	}
	names_list_free(&names);
	table_print(&table);
	if (!is_true(state, "floors"))
		printf("\nThe allocator %s keeps no floors.\n", get_string(state, "allocator"));
}

/* "floor 30 ceiling none" becomes {"floor":30,"ceiling":null}. */
static int parse_sla(struct json_object *sla, int argc, char **argv)
{
	uint32_t millihertz;
	int i;

	for (i = 0; i < argc; i += 2) {
		if (strcmp(argv[i], "floor") && strcmp(argv[i], "ceiling")) {
			const char *like = suggest(argv[i], ctl_sla_keys);

			return usage_error("an agreement has no '%s'%s%s%s", argv[i],
					   like ? "; did you mean '" : ", but floor and ceiling",
					   like ? like : "", like ? "'?" : "");
		}
		if (i + 1 == argc)
			return usage_error("%s wants a value: frames per second or none",
					   argv[i]);
		if (json_object_object_get_ex(sla, argv[i], NULL))
			return usage_error("duplicate %s; give it once", argv[i]);
		if (parse_fps(argv[i + 1], &millihertz))
			return usage_error("%s %s: give a number from 1 to 10000 with at most three decimals, or none",
					   argv[i], argv[i + 1]);
		json_object_object_add(sla, argv[i], millihertz ?
				       json_object_new_double(millihertz / 1000.0) :
				       NULL);
	}
	return 0;
}

int ctl_sla(const struct gpuctl *ctl, int argc, char **argv)
{
	static const struct of_vgpus agreements = {
		"sla", { "version", "allocator", "floors", "sla", "agreements" },
		print_agreements,
	};
	const char *who = argc ? argv[0] : NULL;
	struct json_object *sla = NULL;
	/* "default" after a vGPU: remove its own agreement */
	bool drop = argc == 2 && strcmp(who, "default") && !strcmp(argv[1], "default");
	int ret = 0;

	if (who && is_word(who, ctl_sla_keys) && strcmp(who, "default"))
		return usage_error("%s needs a vGPU, or default for all others: name it first",
				   who);
	if (argc > 1 && !drop) {
		sla = json_object_new_object();
		ret = parse_sla(sla, argc - 1, argv + 1);
	}
	if (!ret)
		ret = show_or_set(ctl, &agreements, who, argc > 1, sla);
	json_object_put(sla);
	return ret;
}

/* ---- descriptions ---- */

/* Print all descriptions, or that of one vGPU. */
static void print_descriptions(struct json_object *state, const char *only)
{
	static const char *const columns[] = { "~VGPU", "~VM", "~DESCRIPTION", NULL };
	struct json_object *list = get(state, "descriptions");
	struct table table = { .columns = columns };
	struct names_list names;
	bool found = false;

	names_list_read(&names);
	for (size_t i = 0; list && i < json_object_array_length(list); i++) {
		struct json_object *one = json_object_array_get_idx(list, i);
		const char *uuid = get_string(one, "uuid");

		if (only && strcasecmp(uuid, only))
			continue;
		table_cell(&table, "%s", uuid);
		add_name(&table, &names, uuid);
		table_cell(&table, "%s", get_string(one, "description"));
		found = true;
	}
	if (only && !found) {
		table_cell(&table, "%s", only);
		add_name(&table, &names, only);
		table_cell(&table, "none");
	}
	names_list_free(&names);
	table_print(&table);
}

/* Join words to a text, which mgpud checks. NULL for "none". */
static struct json_object *make_description(int argc, char **argv)
{
	char text[1024] = "";

	for (int i = 0; i < argc; i++) {
		size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "%s%s", i ? " " : "", argv[i]);
	}
	return strcmp(text, "none") ? json_object_new_string(text) : NULL;
}

int ctl_describe(const struct gpuctl *ctl, int argc, char **argv)
{
	static const struct of_vgpus descriptions = {
		"descriptions", { "version", "descriptions" }, print_descriptions,
	};
	const char *who = argc ? argv[0] : NULL;
	struct json_object *text;
	int ret;

	if (who && !strcmp(who, "default"))
		return usage_error("only a vGPU has a description: give its id, its UUID or the beginning of its UUID");
	text = argc > 1 ? make_description(argc - 1, argv + 1) : NULL;
	ret = show_or_set(ctl, &descriptions, who, argc > 1, text);
	json_object_put(text);
	return ret;
}

/* ---- resetting ---- */

/* Add a key to those that are reset: a setting, sla, descriptions, default or a vGPU. */
static int add_key(struct json_object *keys, const char *word, struct mgpud *mgpud)
{
	const struct mgpud_setting *setting = ctl_setting(word);
	struct json_object *state = NULL;
	struct mgpu_error err;

	if (setting) {
		word = setting->name;
	} else if (!is_word(word, ctl_reset_keys) && !is_uuid(word)) {
		const char *like = suggest(word, ctl_reset_keys);

		if (like)
			return usage_error("unknown setting '%s'; did you mean '%s'?", word,
					   like);
		if (mgpud_get(mgpud, &state, &err))
			return failed(&err);
		word = find_uuid(state, word);
	}
	if (word)
		json_object_array_add(keys, json_object_new_string(word));
	json_object_put(state);
	return word ? 0 : EXIT_USAGE;
}

int ctl_reset(const struct gpuctl *ctl, int argc, char **argv)
{
	struct json_object *keys = argc ? json_object_new_array() : NULL;
	struct json_object *state = NULL;
	struct mgpud *mgpud = NULL;
	struct mgpu_error err;
	int ret = 0;

	if (mgpud_connect(&mgpud, NULL, &err)) {
		ret = failed(&err);
		goto out;
	}
	for (int i = 0; i < argc && !ret; i++)
		ret = add_key(keys, argv[i], mgpud);
	if (ret)
		goto out;
	if (mgpud_reset(mgpud, keys, &state, &err)) {
		ret = failed(&err);
		goto out;
	}
	out_change(ctl, mgpud, state);
	state = NULL;
out:
	json_object_put(state);
	json_object_put(keys);
	mgpud_close(mgpud);
	return ret;
}

/* ---- watching ---- */

static void print_period(struct json_object *state)
{
	struct json_object *vgpus = get(state, "vgpus");
	char fds[OUT_CELL], best[OUT_CELL], time[OUT_CELL];
	size_t active = 0, nr = 0;
	size_t i;

	if (vgpus && json_object_is_type(vgpus, json_type_array))
		nr = json_object_array_length(vgpus);
	for (i = 0; i < nr; i++)
		active += !strcmp(get_string(json_object_array_get_idx(vgpus, i),
					     "state"), "active");
	printf("%s period %s, allocator %s: %zu of %zu vGPUs active, f %s, best %s, shortfalls %s\n",
	       out_time(time, sizeof(time)), get_string(state, "periods"),
	       get_string(state, "allocator"), active, nr,
	       number(fds, state, "fds", 1, 3),
	       number(best, state, "fds_optimal", 1, 3),
	       get_string(state, "shortfalls"));
}

static void print_watch_event(struct json_object *event)
{
	char floor[OUT_CELL], granted[OUT_CELL], time[OUT_CELL];
	const char *name = get_string(event, "event");

	out_time(time, sizeof(time));
	if (!get(event, "uuid")) {
		printf("%s %s%s%s%s%s\n", time, name, get(event, "model") ? " " : "",
		       get(event, "model") ? get_string(event, "model") : "",
		       get(event, "why") ? ": " : "",
		       get(event, "why") ? get_string(event, "why") : "");
		return;
	}
	printf("%s %s vgpu %s %s floor %s granted %s%s\n", time, name,
	       get_string(event, "id"), get_string(event, "uuid"),
	       number(floor, event, "floor_fps", 1, 1),
	       number(granted, event, "granted_fps", 1, 1),
	       is_true(event, "gone") ? " gone" : "");
}

int ctl_watch(const struct gpuctl *ctl, int argc, char **argv)
{
	struct json_object *state, *event;
	struct mgpud *mgpud = NULL;
	struct mgpu_error err;
	uint32_t seen = 0;
	int ret;

	if (argc)
		return usage_error("ctl watch takes no '%s'", argv[0]);
	if (mgpud_connect(&mgpud, NULL, &err))
		return failed(&err);
	stop_on_signals();
	setvbuf(stdout, NULL, _IOLBF, 0);

	ret = mgpud_watch(mgpud, &err);
	while (!ret && !gpuctl_stop && (!ctl->count || seen < ctl->count)) {
		ret = mgpud_next_any(mgpud, &state, &event, 0, &err);
		if (ret == -ETIMEDOUT) {
			ret = wait_or_stop(mgpud_fd(mgpud), NULL, &err);
			continue;
		}
		if (ret)
			break;
		seen++;
		if (ctl->json) {
			out_json(ctl, event ? event : state);
			continue;
		}
		if (event)
			print_watch_event(event);
		else
			print_period(state);
		json_object_put(event);
		json_object_put(state);
	}
	mgpud_close(mgpud);
	return ret ? failed(&err) : EXIT_OK;
}
