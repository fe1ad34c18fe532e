// SPDX-License-Identifier: GPL-2.0-only
/* gpuctl vgpu create, vgpu remove */
#include <ctype.h>
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "complain.h"
#include "gpuctl.h"
#include "mdev.h"

const char *const vgpu_remove_keys[] = { "dev", "all", "force", NULL };

/* pci_machine below the root of a test. */
static struct pci_host machine(void)
{
	struct pci_host host = pci_machine;

	host.root = gpuctl_root;
	return host;
}

/* ---- create ---- */

/**
 * struct creation - what is to be created
 * @dev: word that names the device
 * @type: word that names the type
 * @uuid: UUID, "" to have one made
 * @name: name, NULL for none
 * @set: settings, of which @mask may be 0
 */
struct creation {
	const char *dev;
	const char *type;
	char uuid[MGPU_UUID_LEN];
	const char *name;
	struct mgpu_vgpu_setting set;
};

/* Take "uuid UUID" or "name NAME"; returns an exit status. */
static int parse_identity(struct creation *c, const char *key, const char *value)
{
	bool uuid = !strcmp(key, "uuid");
	char clean[VM_NAME_LEN];
	size_t i;

	if (!value)
		return usage_error("vgpu create: %s wants a value", key);
	if (uuid ? *c->uuid != '\0' : !!c->name)
		return usage_error("vgpu create: duplicate %s; give it once", key);
	if (uuid && !mdev_is_uuid(value))
		return usage_error("vgpu create: uuid %s: give a UUID, as in 83b8f4f2-509f-382f-3c1e-e6bfe0fa1001",
				   value);
	if (uuid) {
		/* as the kernel writes it: sysfs and VGPU_NAMES have files of this name */
		for (i = 0; i < MGPU_UUID_STRLEN; i++)
			c->uuid[i] = (char)tolower((unsigned char)value[i]);
		return 0;
	}
	if (!vm_name_clean(value, strlen(value), clean) || strcmp(value, clean))
		return usage_error("vgpu create: name: give 1 to %d bytes of printable UTF-8",
				   VM_NAME_LEN - 1);
	c->name = value;
	return 0;
}

static int parse_create(struct creation *c, int argc, char **argv)
{
	struct mgpu_error err;
	int i = 2, used, ret;

	memset(c, 0, sizeof(*c));
	if (argc < 2 || is_word(argv[0], vgpu_create_keys) || is_word(argv[1], vgpu_create_keys))
		return usage_error("vgpu create: name a device and a type, as in 'gpuctl vgpu create mgpu_soft.0 medium'; 'gpuctl type list' lists them");
	c->dev = argv[0];
	c->type = argv[1];
	while (i < argc) {
		if (!strcmp(argv[i], "uuid") || !strcmp(argv[i], "name")) {
			ret = parse_identity(c, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
			if (ret)
				return ret;
			i += 2;
			continue;
		}
		used = vgpu_parse_settings(&c->set, "to create", argc - i, argv + i, "", &err);
		if (!used)
			used = vgpu_no_setting("to create", argv[i], "", &err);
		if (used < 0)
			return usage_error("%s", err.text);
		i += used;
	}
	return 0;
}

static int write_name(const struct pci_host *host, const char *uuid, const char *name,
		      struct mgpu_error *err)
{
	int ret = vgpu_name_write(host->root, uuid, name);

	if (ret == -EACCES || ret == -EPERM)
		return mgpu_fail(err, -EACCES, "naming vGPUs is not permitted: run gpuctl as root");
	return ret ? mgpu_fail(err, ret, "%s/%s: %s", VGPU_NAMES, uuid, strerror(-ret)) : 0;
}

/*
 * Create it with its name: a monitor may see the vGPU as soon as it is there. The name replaces
 * that of an earlier vGPU with this UUID; a vGPU that exists keeps its name.
 */
static int create_named(const struct pci_host *host, const char *dev, const char *type,
			const struct creation *c, struct mgpu_error *err)
{
	char old[VM_NAME_LEN];
	int ret;

	vgpu_name_read(host->root, c->uuid, old);
	ret = write_name(host, c->uuid, c->name, err);
	if (ret)
		return ret;
	ret = mdev_create(host, dev, type, c->uuid, err);
	if (ret)
		vgpu_name_write(host->root, c->uuid, old);
	return ret;
}

/* Create it and set it; what cannot be set is removed again. */
static int create(struct mgpu *mgpu, const struct pci_host *host, struct creation *c,
		  struct mgpu_vgpu_info *vgpu, struct mgpu_error *err)
{
	struct mgpu_error removal;
	struct mgpu_dev_info dev;
	struct mdev_type type;
	int ret;

	ret = mgpu_dev_find(mgpu, c->dev, &dev, err);
	if (!ret)
		ret = mdev_find_type(host, dev.name, c->type, &type, err);
	if (!ret && !*c->uuid)
		ret = mdev_random_uuid(c->uuid, err);
	if (!ret)
		ret = create_named(host, dev.name, type.name, c, err);
	if (ret)
		return ret;
	strcpy(c->set.uuid, c->uuid);
	if (c->set.mask)
		ret = mgpu_vgpu_set(mgpu, &c->set, 1, err);
	if (!ret)
		ret = mgpu_vgpu_find(mgpu, c->uuid, vgpu, err);
	if (ret) {
		vgpu_name_write(host->root, c->uuid, NULL);
		if (mdev_remove(host, c->uuid, &removal))
			complain("vGPU %s stays, without what was asked for: %s", c->uuid,
				 removal.text);
	}
	return ret;
}

int vgpu_create(const struct gpuctl *ctl, int argc, char **argv)
{
	struct pci_host host = machine();
	struct mgpu_vgpu_info vgpu;
	struct mgpu_error err;
	struct creation c;
	struct mgpu *mgpu;
	char id[16];
	int ret;

	ret = parse_create(&c, argc, argv);
	if (ret)
		return ret;
	if (mgpu_open(&mgpu, &err))
		return failed(&err);
	ret = create(mgpu, &host, &c, &vgpu, &err);
	mgpu_close(mgpu);
	if (ret)
		return failed(&err);
	if (ctl->json) {
		char *word = id;

		snprintf(id, sizeof(id), "%u", vgpu.id);
		return vgpu_show(ctl, 1, &word);
	}
	puts(vgpu.uuid);
	return EXIT_OK;
}

/* ---- remove ---- */

/**
 * struct removal - vGPUs to remove
 * @vgpus: all vGPUs, of which the first @nr are to be removed
 * @nr: number of those
 * @force: also those that VMs have
 */
struct removal {
	struct mgpu_vgpu_info *vgpus;
	size_t nr;
	bool force;
};

static int find_dev(const struct mgpu_vgpu_info *vgpus, size_t nr, const char *dev,
		    uint32_t *id, struct mgpu_error *err)
{
	bool is_id = !parse_u32(dev, 0, UINT32_MAX, id);
	size_t i;

	for (i = 0; i < nr; i++) {
		if (is_id ? vgpus[i].dev_id != *id : strcmp(vgpus[i].dev_name, dev) != 0)
			continue;
		*id = vgpus[i].dev_id;
		return 0;
	}
	return mgpu_fail(err, -ENODEV, "device %s has no vGPUs to remove", dev);
}

/* Move the vGPUs that the words name to the front of the list. */
static int choose(struct removal *r, size_t all, char *words, const char *dev,
		  struct mgpu_error *err)
{
	const struct mgpu_vgpu_info *found;
	uint32_t id = 0;
	char *word;
	size_t i;
	int ret = 0;

	if (dev)
		ret = find_dev(r->vgpus, all, dev, &id, err);
	for (i = 0; dev && !ret && i < all; i++)
		if (r->vgpus[i].dev_id == id)
			r->vgpus[r->nr++] = r->vgpus[i];
	if (dev || ret)
		return ret;
	if (!strcmp(words, "all")) {
		r->nr = all;
		return all ? 0 : mgpu_fail(err, -ENODEV, "there are no vGPUs to remove");
	}
	while (!ret && (word = strsep(&words, ","))) {
		struct mgpu_vgpu_info swap;

		ret = mgpu_vgpu_match(r->vgpus, all, word, &found, err);
		if (ret)
			break;
		i = (size_t)(found - r->vgpus);
		if (i < r->nr)
			return mgpu_fail(err, -EINVAL, "duplicate vGPU %s; give it once", word);
		swap = r->vgpus[r->nr];
		r->vgpus[r->nr++] = *found;
		r->vgpus[i] = swap;
	}
	return ret;
}

static size_t nr_open(const struct removal *r)
{
	size_t open = 0, i;

	for (i = 0; i < r->nr; i++)
		open += r->vgpus[i].open;
	return open;
}

static int check_open(const struct removal *r, struct mgpu_error *err)
{
	char name[VM_NAME_LEN];
	size_t i;

	for (i = 0; i < r->nr; i++) {
		if (!r->vgpus[i].open || r->force)
			continue;
		return mgpu_fail(err, -EBUSY,
				 "vGPU %s is open, by process %u (VM %s): shut the VM down first, or say 'force', and the VM loses it",
				 r->vgpus[i].uuid, r->vgpus[i].tgid,
				 vgpu_name(&r->vgpus[i], name));
	}
	return 0;
}

/* Ask on a terminal; true if they may go. */
static bool agreed(const struct gpuctl *ctl, const struct removal *r)
{
	char line[16] = "", name[VM_NAME_LEN];
	size_t open = nr_open(r);

	if (ctl->yes || !isatty(STDIN_FILENO))
		return true;
	if (r->nr == 1)
		fprintf(stderr, "Remove vGPU %u, %s (%s), of %s", r->vgpus[0].id,
			r->vgpus[0].uuid, vgpu_name(&r->vgpus[0], name), r->vgpus[0].dev_name);
	else
		fprintf(stderr, "Remove %zu vGPUs", r->nr);
	if (open)
		fprintf(stderr, ", %zu of them open in VMs", open);
	fputs("? [y/N] ", stderr);
	return fgets(line, sizeof(line), stdin) && (line[0] == 'y' || line[0] == 'Y');
}

/* Remove all, also after one that could not be; returns the first error. */
static int remove_all(const struct pci_host *host, const struct removal *r,
		      struct mgpu_error *err)
{
	struct mgpu_error one;
	int ret = 0, failure;
	size_t i;

	if (nr_open(r))
		host->waits(host, nr_open(r));
	for (i = 0; i < r->nr; i++) {
		failure = mdev_remove(host, r->vgpus[i].uuid, &one);
		if (!failure)
			vgpu_name_write(host->root, r->vgpus[i].uuid, NULL);
		if (failure && !ret)
			*err = one;
		ret = ret ? ret : failure;
	}
	return ret;
}

int vgpu_remove(const struct gpuctl *ctl, int argc, char **argv)
{
	bool by_dev = argc && !strcmp(argv[0], "dev");
	int words = by_dev ? 2 : 1;
	struct pci_host host = machine();
	struct removal r = { 0 };
	struct mgpu_error err;
	size_t all;
	int ret;

	r.force = argc == words + 1 && !strcmp(argv[words], "force");
	if (argc < words || !strcmp(argv[0], "force"))
		return usage_error("vgpu remove: name vGPUs with a comma between two, 'dev DEV' or 'all', as in 'gpuctl vgpu remove 1,2'");
	if (argc != words + r.force) {
		const char *like = suggest(argv[words], vgpu_remove_keys);

		return usage_error("vgpu remove takes no '%s'%s%s%s", argv[words],
				   like ? "; did you mean '" : ", but force: separate vGPUs with commas",
				   like ? like : "", like ? "'?" : "");
	}
	ret = host.vgpus(&host, &r.vgpus, &all, &err);
	if (ret)
		return failed(&err);
	ret = choose(&r, all, argv[0], by_dev ? argv[1] : NULL, &err);
	if (!ret)
		ret = check_open(&r, &err);
	if (!ret && !agreed(ctl, &r)) {
		free(r.vgpus);
		fputs("gpuctl: nothing was removed\n", stderr);
		return EXIT_FAILED;
	}
	if (!ret)
		ret = remove_all(&host, &r, &err);
	free(r.vgpus);
	return ret ? failed(&err) : EXIT_OK;
}
