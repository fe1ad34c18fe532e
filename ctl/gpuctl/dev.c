// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl dev */
#include <json-c/json.h>
#include <stdlib.h>

#include "gpuctl.h"

static const char *const columns[] = {
	">ID", "NAME", "BACKEND", ">ENGINES", "ON-CPU", "POLICY", ">VGPUS",
	">MAX", NULL
};

static void add_row(struct table *table, const struct mgpu_dev_info *dev)
{
	table_cell(table, "%u", dev->id);
	table_cell(table, "%s", dev->name);
	table_cell(table, "%s", dev->backend);
	table_cell(table, "%u", dev->engines);
	table_cell(table, "%s", dev->engine_on_cpu ? "yes" : "no");
	table_cell(table, "%s", dev->policy);
	table_cell(table, "%u", dev->vgpus);
	table_cell(table, "%u", dev->max_vgpus);
}

int dev_list(const struct gpuctl *ctl, int argc, char **argv)
{
	struct table table = { .columns = columns };
	struct mgpu_dev_info *devs;
	struct mgpu_error err;
	struct mgpu *mgpu;
	size_t nr;
	size_t i;
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

	if (ctl->json) {
		struct json_object *array = json_object_new_array();

		for (i = 0; i < nr; i++)
			json_object_array_add(array, out_object(mgpu_dev_fields,
								&devs[i]));
		out_json(ctl, array);
	} else {
		for (i = 0; i < nr; i++)
			add_row(&table, &devs[i]);
		table_print(&table, SIZE_MAX);
	}
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

	if (ctl->json)
		return out_json(ctl, out_object(mgpu_dev_fields, &dev));
	out_fields(mgpu_dev_fields, &dev);
	return EXIT_OK;
}
