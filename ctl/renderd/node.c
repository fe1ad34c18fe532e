// SPDX-License-Identifier: GPL-2.0-only
/* The GPU on which this mgpu-renderd renders. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node.h"

/* The GPU of a node, or the node's own name where it is not one of a PCI function. */
static int gpu_of_node(const char *node, char gpu[PCI_ADDRESS_LEN], struct mgpu_error *err)
{
	char path[PATH_MAX];
	const char *name;

	if (!realpath(node, path))
		return mgpu_fail(err, -errno, "cannot find %s: %s; 'ls /dev/dri' lists nodes", node,
				 strerror(errno));
	name = strrchr(path, '/') + 1;
	if (pci_of_render_node("", path, gpu))
		return 0;
	if (strlen(name) >= PCI_ADDRESS_LEN)
		return mgpu_fail(err, -ENAMETOOLONG, "%s is too long", path);
	strcpy(gpu, name);
	return 0;
}

int node_claim(const char *gpu, const char **node, struct renderd *record,
	       struct mgpu_error *err)
{
	char address[PCI_ADDRESS_LEN] = RENDERD_NONE, path[PCI_ADDRESS_LEN] = "";
	int ret = 0;

	if (*node)
		ret = gpu_of_node(*node, address, err);
	else if (gpu && strcmp(gpu, RENDERD_NONE))
		ret = pci_render_node("", gpu, address, path, err);
	if (!ret)
		ret = renderd_claim("", address, record, err);
	if (ret)
		return ret;
	snprintf(record->node, sizeof(record->node), "%s", *node ? *node : path);
	if (*record->node)
		*node = record->node;
	return 0;
}
