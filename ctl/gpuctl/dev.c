// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl dev */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl.h"

const char *const dev_set_keys[] = { "policy", "job-timeout", "slots", "hang-limit", NULL };

/* For the completion; the module may have others. */
const char *const dev_policies[] = {
	"best-effort", "equal", "weighted", "fixed", NULL
};

static const char *const columns[] = {
	">ID", "~NAME", "BACKEND", ">ENGINES", "->SLOTS", "-ON-CPU", "~POLICY",
	">VGPUS", "->MAX", NULL
};

static void add_row(struct table *table, const void *info, const void *arg)
{
	const struct mgpu_dev_info *dev = info;

	(void)arg;
	table_cell(table, "%u", dev->id);
	table_cell(table, "%s", dev->name);
	table_cell(table, "%s", dev->backend);
	table_cell(table, "%u", dev->engines);
	if (mgpu_has(dev, MGPU_A_DEV_SLOTS))
		table_cell(table, "%u", dev->slots);
	else
		table_cell(table, "-");
	table_cell(table, "%s", dev->engine_on_cpu ? "yes" : "no");
	table_cell(table, "%s", dev->policy);
	table_cell(table, "%u", dev->vgpus);
	table_cell(table, "%u", dev->max_vgpus);
}

static const struct listing listing = {
	.columns = columns, .key = "devs", .fields = mgpu_dev_fields, .add_row = add_row,
	.size = sizeof(struct mgpu_dev_info),
};

int dev_list(const struct gpuctl *ctl, int argc, char **argv)
{
	struct mgpu_dev_info *devs;
	struct mgpu_error err;
	struct mgpu *mgpu;
	size_t nr;
	int ret;

	if (argc)
		return usage_error("dev list takes nothing, not '%s'; 'gpuctl dev show %s' shows one",
				   argv[0], argv[0]);
	if (mgpu_open(&mgpu, &err))
		return failed(&err);
	ret = mgpu_dev_list(mgpu, &devs, &nr, &err);
	mgpu_close(mgpu);
	if (ret)
		return failed(&err);

	out_list(ctl, &listing, devs, nr);
	free(devs);
	return EXIT_OK;
}

int dev_show(const struct gpuctl *ctl, int argc, char **argv)
{
	struct mgpu_dev_info dev;
	struct mgpu_error err;
	struct mgpu *mgpu;
	int ret;

	if (argc != 1)
		return usage_error("dev show takes one device: its id or its name");
	if (mgpu_open(&mgpu, &err))
		return failed(&err);
	ret = mgpu_dev_find(mgpu, argv[0], &dev, &err);
	mgpu_close(mgpu);
	if (ret)
		return failed(&err);

	return out_info(ctl, mgpu_dev_fields, &dev);
}

static int parse_setting(struct mgpu_dev_setting *set, const char *dev,
			 const char *key, const char *value)
{
	bool policy = !strcmp(key, "policy");
	bool slots = !strcmp(key, "slots");
	bool hangs = !strcmp(key, "hang-limit");
	uint32_t bit = policy ? MGPU_DEV_SETTING_POLICY :
		       slots ? MGPU_DEV_SETTING_SLOTS :
		       hangs ? MGPU_DEV_SETTING_HANG_LIMIT :
		       MGPU_DEV_SETTING_JOB_TIMEOUT;

	if (!value)
		return usage_error("device %s: %s wants a value", dev, key);
	if (set->mask & bit)
		return usage_error("device %s: duplicate %s; give it once", dev, key);
	set->mask |= bit;
	if (policy) {
		if (!*value || strlen(value) > MGPU_POLICY_NAME_LEN)
			return usage_error("device %s: policy '%s': give a name of at most %d characters, as in 'policy fixed'",
					   dev, value, MGPU_POLICY_NAME_LEN);
		strcpy(set->policy, value);
		return 0;
	}
	if (slots) {
		if (parse_u32(value, 1, UINT32_MAX, &set->slots))
			return usage_error("device %s: slots %s: give a whole number from 1 to the device's number of engines, or of jobs that it can queue",
					   dev, value);
		return 0;
	}
	if (hangs) {
		if (strcmp(value, "none") &&
		    parse_u32(value, 1, MGPU_HANG_LIMIT_MAX, &set->hang_limit))
			return usage_error("device %s: hang-limit %s: give a number of hangs from 1 to %d, or 'none' for no quarantine",
					   dev, value, MGPU_HANG_LIMIT_MAX);
		return 0;
	}
	if (parse_time(value, 1000, MGPU_JOB_TIMEOUT_MIN, MGPU_JOB_TIMEOUT_MAX,
		       &set->job_timeout))
		return usage_error("device %s: job-timeout %s: give a time from %dms to %ds, in whole milliseconds, with its unit, as in 500ms or 4s",
				   dev, value, MGPU_JOB_TIMEOUT_MIN,
				   MGPU_JOB_TIMEOUT_MAX / 1000);
	return 0;
}

int dev_set(const struct gpuctl *ctl, int argc, char **argv)
{
	struct mgpu_dev_setting set = { 0 };
	struct mgpu_dev_info dev;
	struct mgpu_error err;
	struct mgpu *mgpu;
	int ret;
	int i;

	(void)ctl;
	if (argc < 2)
		return usage_error("dev set: name a device and what to set, as in 'gpuctl dev set mgpu_soft.0 policy fixed'");
	if (is_word(argv[0], dev_set_keys))
		return usage_error("%s needs a device: name it first",
				   argv[0]);
	for (i = 1; i < argc; i += 2) {
		const char *like;

		if (is_word(argv[i], dev_set_keys)) {
			ret = parse_setting(&set, argv[0], argv[i],
					    i + 1 < argc ? argv[i + 1] : NULL);
			if (ret)
				return ret;
			continue;
		}
		like = suggest(argv[i], dev_set_keys);
		return usage_error("device %s: unknown setting '%s'%s%s%s",
				   argv[0], argv[i],
				   like ? "; did you mean '" : ", but policy, job-timeout, slots and hang-limit",
				   like ? like : "", like ? "'?" : "");
	}

	if (mgpu_open(&mgpu, &err))
		return failed(&err);
	ret = mgpu_dev_find(mgpu, argv[0], &dev, &err);
	if (!ret) {
		set.id = dev.id;
		ret = mgpu_dev_set(mgpu, &set, &err);
	}
	mgpu_close(mgpu);
	return ret ? failed(&err) : EXIT_OK;
}
