// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl dev bind, dev unbind */
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "gpuctl.h"
#include "pci_gpu.h"

const char *const dev_bind_keys[] = { "force", NULL };
const char *const dev_unbind_keys[] = { "leave", "force", NULL };

/* @said: for each of @keys, whether the command line has it */
static int parse(const char *verb, int argc, char **argv,
		 const char *const *keys, bool *said)
{
	const char *like;
	int i;
	int j;

	if (!argc || is_word(argv[0], keys))
		return usage_error("dev %s: name the GPU by its PCI address first, as in 'gpuctl dev %s 0000:00:10.0'; 'lspci -nn -d 1af4:1050' lists virtio-gpus",
				   verb, verb);
	for (i = 1; i < argc; i++) {
		for (j = 0; keys[j] && strcmp(argv[i], keys[j]); j++)
			;
		if (keys[j] && said[j])
			return usage_error("dev %s: duplicate %s; give it once", verb,
					   argv[i]);
		if (keys[j]) {
			said[j] = true;
			continue;
		}
		like = suggest(argv[i], keys);
		return usage_error("dev %s takes no '%s'%s%s%s%s%s", verb,
				   argv[i],
				   like ? "; did you mean '" : ", but ",
				   like ? like : keys[0], like ? "'?" : "",
				   !like && keys[1] ? " and " : "",
				   !like && keys[1] ? keys[1] : "");
	}
	return 0;
}

static struct json_object *name_or_null(const char *name)
{
	return *name ? json_object_new_string(name) : NULL;
}

static struct json_object *gpu_object(const struct pci_gpu *gpu)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "address",
			       json_object_new_string(gpu->address));
	json_object_object_add(object, "virtio",
			       json_object_new_string(gpu->virtio));
	json_object_object_add(object, "driver", name_or_null(gpu->driver));
	json_object_object_add(object, "before", name_or_null(gpu->before));
	return object;
}

int dev_bind(const struct gpuctl *ctl, int argc, char **argv)
{
	struct mdev_type *types;
	bool said[1] = { false };
	struct mgpu_error err;
	struct pci_gpu gpu;
	size_t nr;
	int ret;

	ret = parse("bind", argc, argv, dev_bind_keys, said);
	if (ret)
		return ret;
	if (pci_gpu_bind(&pci_machine, argv[0], said[0], &gpu, &err) ||
	    mdev_types(&pci_machine, gpu.address, &types, &nr, &err))
		return failed(&err);

	if (ctl->json) {
		struct json_object *object = gpu_object(&gpu);

		json_object_object_add(object, "types", types_array(types, nr));
		out_json(ctl, object);
	} else {
		printf("%s is shared by %s%s%s%s\n", gpu.address, gpu.driver,
		       strcmp(gpu.before, gpu.driver) ? "; before, its driver was " :
							 ", as before",
		       !strcmp(gpu.before, gpu.driver) ? "" :
		       *gpu.before ? gpu.before : "none",
		       nr ? "" : ", which offers no types");
		print_types(types, nr);
	}
	free(types);
	return EXIT_OK;
}

int dev_unbind(const struct gpuctl *ctl, int argc, char **argv)
{
	bool said[2] = { false, false };
	struct mgpu_error err;
	struct pci_gpu gpu;
	int ret;

	ret = parse("unbind", argc, argv, dev_unbind_keys, said);
	if (ret)
		return ret;
	if (pci_gpu_unbind(&pci_machine, argv[0], said[0], said[1], &gpu, &err))
		return failed(&err);

	if (ctl->json)
		return out_json(ctl, gpu_object(&gpu));
	if (!strcmp(gpu.before, gpu.driver))
		printf("%s: %s%s, as before", gpu.address,
		       *gpu.driver ? "its driver is " : "it has no driver",
		       gpu.driver);
	else
		printf("%s: %s%s%s%s", gpu.address,
		       *gpu.driver ? "its driver is " : "it has no driver",
		       gpu.driver, *gpu.before ? "; before, it was " : "",
		       gpu.before);
	puts(gpu.missing ? "; this kernel has no module " PCI_GPU_THEIRS : "");
	return EXIT_OK;
}
