// SPDX-License-Identifier: GPL-2.0-only
/* PCI functions of the host, and their render nodes. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "pci.h"

#define DRM_CLASS	"/sys/class/drm"

bool pci_parse_address(const char *text, char address[PCI_ADDRESS_LEN])
{
	unsigned int domain = 0;
	unsigned int bus;
	unsigned int slot;
	unsigned int function;
	int end = 0;

	if (strspn(text, "0123456789abcdefABCDEF:.") != strlen(text))
		return false;
	if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &slot, &function,
		   &end) != 4 || text[end]) {
		domain = 0;
		end = 0;
		if (sscanf(text, "%2x:%2x.%1x%n", &bus, &slot, &function,
			   &end) != 3 || text[end])
			return false;
	}
	if (slot > 0x1f || function > 7)
		return false;
	snprintf(address, PCI_ADDRESS_LEN, "%04x:%02x:%02x.%x", domain, bus, slot,
		 function);
	return true;
}

void pci_read_driver(const char *dir, char driver[PCI_ADDRESS_LEN])
{
	char path[PATH_MAX];
	char target[PATH_MAX];
	const char *name;
	ssize_t n;

	*driver = '\0';
	if ((size_t)snprintf(path, sizeof(path), "%s/driver", dir) >= sizeof(path))
		return;
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return;
	target[n] = '\0';
	name = strrchr(target, '/');
	name = name ? name + 1 : target;
	if (strlen(name) < PCI_ADDRESS_LEN)
		strcpy(driver, name);
}

/*
 * Address of the PCI function of a node in DRM_CLASS. Its link is as
 * ../../devices/pci0000:00/0000:00:02.0/virtio1/drm/renderD128: the function is the last
 * part that is an address.
 */
static bool node_address(const char *root, const char *name, char address[PCI_ADDRESS_LEN])
{
	char path[PATH_MAX], target[PATH_MAX], *part, *rest = target;
	bool found = false;
	ssize_t n;

	if ((size_t)snprintf(path, sizeof(path), "%s" DRM_CLASS "/%s", root, name) >=
	    sizeof(path))
		return false;
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	while ((part = strsep(&rest, "/")))
		found |= pci_parse_address(part, address);
	return found;
}

/* Call @found for each render node of a PCI function until it returns true. */
static bool each_node(const char *root,
		      bool (*found)(const char *address, const char *name, void *arg), void *arg)
{
	char path[PATH_MAX], address[PCI_ADDRESS_LEN];
	const struct dirent *entry;
	bool end = false;
	DIR *dir;

	if ((size_t)snprintf(path, sizeof(path), "%s" DRM_CLASS, root) >= sizeof(path))
		return false;
	dir = opendir(path);
	if (!dir)
		return false;
	while (!end && (entry = readdir(dir)))
		if (!strncmp(entry->d_name, "renderD", 7) && strlen(entry->d_name) < 24 &&
		    node_address(root, entry->d_name, address))
			end = found(address, entry->d_name, arg);
	closedir(dir);
	return end;
}

/**
 * struct search - a search for a GPU or for its node
 * @address: the address, or room for it
 * @node: path of the node, or room for it
 */
struct search {
	char *address;
	char *node;
};

static bool has_address(const char *address, const char *name, void *arg)
{
	const struct search *s = arg;

	if (strcmp(address, s->address))
		return false;
	snprintf(s->node, PCI_ADDRESS_LEN, "/dev/dri/%s", name);
	return true;
}

static bool has_node(const char *address, const char *name, void *arg)
{
	const struct search *s = arg;

	if (strcmp(strrchr(s->node, '/') + 1, name))
		return false;
	strcpy(s->address, address);
	return true;
}

bool pci_of_render_node(const char *root, const char *node, char address[PCI_ADDRESS_LEN])
{
	char path[PCI_ADDRESS_LEN];
	struct search s = { .address = address, .node = path };

	if (strncmp(node, "/dev/dri/", 9) || strlen(node) >= sizeof(path))
		return false;
	strcpy(path, node);
	return each_node(root, has_node, &s);
}

/**
 * struct list - GPUs as text
 * @text: the text so far
 * @size: size of @text, bytes
 */
struct list {
	char *text;
	size_t size;
};

static bool add_gpu(const char *address, const char *name, void *arg)
{
	const struct list *l = arg;
	size_t len = strlen(l->text);

	snprintf(l->text + len, l->size - len, "%s%s (%s)", len ? ", " : "", address, name);
	return false;
}

void pci_list_render_nodes(const char *root, char *list, size_t size)
{
	struct list l = { .text = list, .size = size };

	*list = '\0';
	each_node(root, add_gpu, &l);
}

int pci_render_node(const char *root, const char *text, char address[PCI_ADDRESS_LEN],
		    char node[PCI_ADDRESS_LEN], struct mgpu_error *err)
{
	struct search s = { .address = address, .node = node };
	char dir[PATH_MAX], driver[PCI_ADDRESS_LEN], list[200];
	const char *others;

	pci_list_render_nodes(root, list, sizeof(list));
	others = *list ? "; GPUs with a render node: " : "; no GPU of this host has a render node";
	if (!pci_parse_address(text, address))
		return mgpu_fail(err, -EINVAL,
				 "'%.64s' is no PCI address: give one as in 0000:03:00.0 or 03:00.0, or none to render without a GPU%s%s",
				 text, others, list);
	if (each_node(root, has_address, &s))
		return 0;
	if ((size_t)snprintf(dir, sizeof(dir), "%s" PCI_DEVICES "/%s", root, address) >=
	    sizeof(dir) || access(dir, F_OK))
		return mgpu_fail(err, -ENODEV, "there is no PCI device %s%s%s", address, others,
				 list);
	pci_read_driver(dir, driver);
	if (!*driver)
		return mgpu_fail(err, -ENODEV,
				 "%s has no driver: load the module of its driver, which 'lspci -k -s %s' names%s%s",
				 address, address, others, list);
	return mgpu_fail(err, -ENODEV,
			 "the driver of %s, %s, makes no render node: bind the GPU to the host's own driver for it, which 'lspci -k -s %s' names%s%s",
			 address, driver, address, others, list);
}
