// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl type */
#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>

#include "gpuctl.h"
#include "pci_gpu.h"

static const char *const columns[] = {
	"TYPE", ">AVAILABLE", "~DESCRIPTION", NULL
};

/* The types as an array for JSON. */
struct json_object *types_array(const struct mdev_type *types, size_t nr)
{
	struct json_object *array = json_object_new_array();
	size_t i;

	for (i = 0; i < nr; i++) {
		struct json_object *type = json_object_new_object();

		json_object_object_add(type, "name",
				       json_object_new_string(types[i].name));
		json_object_object_add(type, "description",
				       json_object_new_string(types[i].description));
		json_object_object_add(type, "available",
				       types[i].available == ULONG_MAX ? NULL :
				       json_object_new_int64((int64_t)types[i].available));
		json_object_array_add(array, type);
	}
	return array;
}

/* Print the types as a table. */
void print_types(const struct mdev_type *types, size_t nr)
{
	struct table table = { .columns = columns };
	size_t i;

	for (i = 0; i < nr; i++) {
		table_cell(&table, "%s", types[i].name);
		if (types[i].available == ULONG_MAX)
			table_cell(&table, "-");
		else
			table_cell(&table, "%lu", types[i].available);
		table_cell(&table, "%s", types[i].description);
	}
	table_print(&table);
}

/* Show the types of one device.  With JSON, add them to @array. */
static int show_dev(const struct mgpu_dev_info *dev, struct json_object *array,
		    bool name_it)
{
	struct mdev_type *types;
	struct mgpu_error err;
	size_t nr;

	if (mdev_types(&pci_machine, dev->name, &types, &nr, &err))
		return failed(&err);
	if (array) {
		struct json_object *object = json_object_new_object();

		json_object_object_add(object, "dev",
				       json_object_new_string(dev->name));
		json_object_object_add(object, "types", types_array(types, nr));
		json_object_array_add(array, object);
	} else {
		if (name_it)
			printf("%s:\n", dev->name);
		print_types(types, nr);
	}
	free(types);
	return EXIT_OK;
}

int type_list(const struct gpuctl *ctl, int argc, char **argv)
{
	struct json_object *array = NULL, *all;
	struct mgpu_dev_info *devs = NULL;
	struct mgpu_error err;
	int ret, status = EXIT_OK;
	struct mgpu *mgpu;
	size_t nr = 1, i;

	if (argc > 1)
		return usage_error("type list takes one device, its id or its name, or nothing for all");
	if (mgpu_open(&mgpu, &err))
		return failed(&err);
	if (argc) {
		devs = calloc(1, sizeof(*devs));
		ret = devs ? mgpu_dev_find(mgpu, argv[0], devs, &err) :
			     mgpu_fail(&err, -ENOMEM, "out of memory");
	} else {
		ret = mgpu_dev_list(mgpu, &devs, &nr, &err);
	}
	mgpu_close(mgpu);
	if (ret) {
		free(devs);
		return failed(&err);
	}

	if (ctl->json)
		array = json_object_new_array();
	for (i = 0; i < nr && status == EXIT_OK; i++)
		status = show_dev(&devs[i], array, nr > 1);
	free(devs);
	if (array && status == EXIT_OK) {
		all = json_object_new_object();
		json_object_object_add(all, "devs", array);
		return out_json(ctl, all);
	}
	json_object_put(array);
	return status;
}
