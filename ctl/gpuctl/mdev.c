// SPDX-License-Identifier: GPL-2.0-only
/* Create and remove mediated devices, through sysfs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cmdline.h"
#include "mdev.h"

/* True if @name is the end of @type, behind a hyphen. */
static bool is_end_of(const char *name, const char *type)
{
	size_t len = strlen(name), all = strlen(type);

	return len && len + 1 < all && type[all - len - 1] == '-' &&
	       !strcmp(type + all - len, name);
}

static int no_type(const char *parent, const char *name, const struct mdev_type *types,
		   size_t nr, struct mgpu_error *err)
{
	const char **names = calloc(nr + 1, sizeof(*names));
	char list[256] = "";
	const char *like = NULL;
	size_t i;

	for (i = 0; i < nr; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			 i ? ", " : "", types[i].name);
	for (i = 0; names && i < nr; i++)
		names[i] = types[i].name;
	if (names)
		like = suggest(name, names);
	mgpu_fail(err, -ENOENT, "%s has no type '%.64s'%s%s%s%s", parent, name,
		  like ? "; did you mean '" : nr ? ", but: " : " and offers none",
		  like ? like : "", like ? "'?" : "", like ? "" : list);
	free(names);
	return -ENOENT;
}

int mdev_find_type(const struct pci_host *host, const char *parent, const char *name,
		   struct mdev_type *type, struct mgpu_error *err)
{
	const struct mdev_type *found = NULL;
	struct mdev_type *types = NULL;
	bool several = false;
	size_t nr, i;
	int ret;

	ret = mdev_types(host, parent, &types, &nr, err);
	if (ret)
		return ret;
	for (i = 0; i < nr; i++) {
		if (!strcmp(name, types[i].name))
			break;
		if (!is_end_of(name, types[i].name))
			continue;
		several = found;
		found = &types[i];
	}
	if (i < nr)
		*type = types[i];
	else if (found && !several)
		*type = *found;
	else
		ret = no_type(parent, name, types, nr, err);
	free(types);
	return ret;
}

bool mdev_is_uuid(const char *text)
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	size_t i;

	for (i = 0; form[i] && text[i]; i++)
		if (form[i] == '-' ? text[i] != '-' : !strchr("0123456789abcdefABCDEF", text[i]))
			return false;
	return !form[i] && !text[i];
}

int mdev_create(const struct pci_host *host, const char *parent, const char *type,
		const char *uuid, struct mgpu_error *err)
{
	char path[PCI_GPU_PATH];
	int ret;

	if (!mdev_is_uuid(uuid))
		return mgpu_fail(err, -EINVAL,
				 "'%.64s' is no UUID: give one as in 83b8f4f2-509f-382f-3c1e-e6bfe0fa1001, or none to have one made",
				 uuid);
	if ((size_t)snprintf(path, sizeof(path),
			     "%s/sys/class/mdev_bus/%s/mdev_supported_types/%s/create",
			     host->root, parent, type) >= sizeof(path))
		return mgpu_fail(err, -ENAMETOOLONG, "%s: the name is too long", parent);
	ret = host->write(host, path, uuid);
	switch (ret) {
	case 0:
		return 0;
	case -EEXIST:
		return mgpu_fail(err, ret,
				 "a device with the UUID %s exists: give another one, or none to have one made",
				 uuid);
	case -EACCES:
	case -EPERM:
		return mgpu_fail(err, -EACCES, "creating vGPUs is not permitted: run gpuctl as root");
	case -EUSERS:
	case -ENOSPC:
		return mgpu_fail(err, -ENOSPC,
				 "%s has no room for another %s: remove a vGPU, or choose another type; 'gpuctl type list %s' counts what is available",
				 parent, type, parent);
	}
	return mgpu_fail(err, ret, "%s cannot create a %s: %s; the kernel's log may say why",
			 parent, type, strerror(-ret));
}

int mdev_remove(const struct pci_host *host, const char *uuid, struct mgpu_error *err)
{
	char path[PCI_GPU_PATH];
	int ret;

	if (!mdev_is_uuid(uuid))
		return mgpu_fail(err, -EINVAL, "'%.64s' is no UUID", uuid);
	snprintf(path, sizeof(path), "%s/sys/bus/mdev/devices/%s/remove", host->root, uuid);
	ret = host->write(host, path, "1");
	switch (ret) {
	case 0:
		return 0;
	case -ENOENT:
	case -ENODEV:
		return mgpu_fail(err, -ENODEV, "vGPU %s is gone already", uuid);
	case -EACCES:
	case -EPERM:
		return mgpu_fail(err, -EACCES, "removing vGPUs is not permitted: run gpuctl as root");
	}
	return mgpu_fail(err, ret, "vGPU %s cannot be removed: %s", uuid, strerror(-ret));
}

int mdev_random_uuid(char uuid[MGPU_UUID_LEN], struct mgpu_error *err)
{
	unsigned char b[16];

	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		return mgpu_fail(err, -EIO, "no random numbers for a UUID");
	/* version 4, of RFC 4122's variant */
	b[6] = (b[6] & 0x0f) | 0x40;
	b[8] = (b[8] & 0x3f) | 0x80;
	snprintf(uuid, MGPU_UUID_LEN,
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
		 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		 b[13], b[14], b[15]);
	return 0;
}
