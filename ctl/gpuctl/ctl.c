// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl ctl: mgpud, which has its own socket */
#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "gpuctl.h"
#include "mgpud_client.h"

const char *const ctl_set_keys[] = {
	"policy", "period-ms", "iterations", "beta", "lambda", NULL
};

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

/* A number, or '-' where it is not known. */
static const char *number(char *buf, struct json_object *object,
			  const char *key, double factor, int decimals)
{
	struct json_object *value = get(object, key);

	if (!value || (!json_object_is_type(value, json_type_double) &&
		       !json_object_is_type(value, json_type_int)))
		strcpy(buf, "-");
	else
		snprintf(buf, OUT_CELL, "%.*f", decimals,
			 json_object_get_double(value) * factor);
	return buf;
}

static void print_vgpus(struct json_object *vgpus)
{
	static const char *const columns[] = {
		">ID", "UUID", "STATE", ">FPS", ">TARGET", ">CPU%", ">GPU%",
		">CPU-MS/FRAME", ">GPU-MS/FRAME", ">FRAMES", NULL
	};
	struct table table = { .columns = columns };
	char buf[OUT_CELL];
	size_t i;

	if (!vgpus || !json_object_is_type(vgpus, json_type_array) ||
	    !json_object_array_length(vgpus))
		return;
	for (i = 0; i < json_object_array_length(vgpus); i++) {
		struct json_object *vgpu = json_object_array_get_idx(vgpus, i);

		table_cell(&table, "%s", number(buf, vgpu, "id", 1, 0));
		table_cell(&table, "%s", get_string(vgpu, "uuid"));
		table_cell(&table, "%s", get_string(vgpu, "state"));
		table_cell(&table, "%s", number(buf, vgpu, "fps", 1, 1));
		table_cell(&table, "%s", number(buf, vgpu, "target_fps", 1, 1));
		table_cell(&table, "%s", number(buf, vgpu, "cpu_share", 100, 1));
		table_cell(&table, "%s", number(buf, vgpu, "gpu_share", 100, 1));
		table_cell(&table, "%s",
			   number(buf, vgpu, "cpu_s_per_frame", 1e3, 3));
		table_cell(&table, "%s",
			   number(buf, vgpu, "gpu_s_per_frame", 1e3, 3));
		table_cell(&table, "%s", number(buf, vgpu, "frames", 1, 0));
	}
	putchar('\n');
	table_print(&table, SIZE_MAX);
}

static void print_state(struct json_object *state)
{
	static const struct {
		const char *title;
		const char *key;
	} lines[] = {
		{ "version", "version" },
		{ "pid", "pid" },
		{ "uptime (s)", "uptime_s" },
		{ "policy", "policy" },
		{ "policies", "policies" },
		{ "period (ms)", "period_ms" },
		{ "periods", "periods" },
		{ "iterations", "iterations" },
		{ "beta", "beta" },
		{ "lambda", "lambda" },
		{ "dry run", "dry_run" },
		{ "eBPF", "bpf" },
		{ "charge source", "charge_source" },
		{ "fairness f", "fds" },
		{ "best f", "fds_optimal" },
	};
	struct json_object *value;
	char buf[OUT_CELL];
	size_t i;
	size_t j;

	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		value = get(state, lines[i].key);
		printf("%-16s", lines[i].title);
		if (!value) {
			puts("-");
		} else if (json_object_is_type(value, json_type_boolean)) {
			puts(json_object_get_boolean(value) ? "yes" : "no");
		} else if (json_object_is_type(value, json_type_double)) {
			printf("%g\n", json_object_get_double(value));
		} else if (json_object_is_type(value, json_type_array)) {
			for (j = 0; j < json_object_array_length(value); j++) {
				struct json_object *one;

				one = json_object_array_get_idx(value, j);
				printf("%s%s", j ? " " : "",
				       json_object_get_string(one));
			}
			putchar('\n');
		} else {
			puts(json_object_get_string(value));
		}
	}
	value = get(state, "capacity");
	printf("%-16s%s cores for VMs, ", "capacity",
	       number(buf, value, "cpu", 1, 2));
	printf("%s engines\n", number(buf, value, "gpu", 1, 2));
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

	if (ctl->json)
		return out_json(ctl, state);
	print_state(state);
	json_object_put(state);
	return EXIT_OK;
}

/* mgpud judges the values; here they become JSON. */
static int parse_setting(struct json_object *settings, const char *key,
			 const char *value)
{
	struct json_object *json = NULL;
	const char *name = key;
	uint32_t u32;
	double real;

	if (!strcmp(key, "policy")) {
		json = json_object_new_string(value);
	} else if (!strcmp(key, "beta") || !strcmp(key, "lambda")) {
		if (parse_double(value, &real))
			return usage_error("%s %s: give a number", key, value);
		json = json_object_new_double(real);
	} else {
		if (!strcmp(key, "period-ms"))
			name = "period_ms";
		if (parse_u32(value, 0, INT32_MAX, &u32))
			return usage_error("%s %s: give a whole number", key,
					   value);
		json = json_object_new_int((int32_t)u32);
	}
	if (get(settings, name)) {
		json_object_put(json);
		return usage_error("%s is there twice", key);
	}
	json_object_object_add(settings, name, json);
	return 0;
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
		ret = usage_error("ctl set: say what to set, as in 'gpuctl ctl set policy fea'");
	for (i = 0; i < argc && !ret; i += 2) {
		if (!is_word(argv[i], ctl_set_keys)) {
			const char *like = suggest(argv[i], ctl_set_keys);

			ret = usage_error("mgpud has no setting '%s'%s%s%s",
					  argv[i],
					  like ? "; did you mean '" : "",
					  like ? like : "", like ? "'?" : "");
		} else if (i + 1 == argc) {
			ret = usage_error("%s wants a value", argv[i]);
		} else {
			ret = parse_setting(settings, argv[i], argv[i + 1]);
		}
	}
	if (ret)
		goto out;

	if (mgpud_connect(&mgpud, NULL, &err) ||
	    mgpud_set(mgpud, settings, &state, &err)) {
		ret = failed(&err);
		goto out;
	}
	if (ctl->json) {
		out_json(ctl, state);
		state = NULL;
	}
out:
	json_object_put(state);
	mgpud_close(mgpud);
	json_object_put(settings);
	return ret;
}
