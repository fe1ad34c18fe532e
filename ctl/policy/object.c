// SPDX-License-Identifier: GPL-2.0-only
/*
 * A policy's object: read it, set its variables, load and attach it. No skeleton is used,
 * since policies in files have none.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "complain.h"
#include "policy.h"

#define MODULE		"mgpu"
#define MODULE_BTF	"/sys/kernel/btf/" MODULE
#define TYPE		"mgpu_bpf_policy"

/* An ID that no device has. */
#define NO_DEVICE	UINT32_MAX

struct policy {
	struct bpf_object *obj;
	struct bpf_map *map;		/* type of the struct_ops */
	const struct btf_type *type;	/* type of its value in the object */
	char *value;
	struct bpf_link *link;
	char name[MGPU_POLICY_NAME_LEN];
	bool verbose;
};

static bool verbose_libbpf;

static int print_libbpf(enum libbpf_print_level level, const char *fmt,
			va_list args)
{
	if (!verbose_libbpf || level == LIBBPF_DEBUG)
		return 0;
	return vfprintf(stderr, fmt, args);
}

/* ---- the object's types ---- */

/* Find a member of the struct_ops, or NULL. */
static void *member(struct policy *p, const char *name)
{
	const struct btf *btf = bpf_object__btf(p->obj);
	const struct btf_member *m = btf_members(p->type);

	for (int i = 0; i < btf_vlen(p->type); i++) {
		if (!strcmp(btf__name_by_offset(btf, m[i].name_off), name))
			return p->value + m[i].offset / 8;
	}
	return NULL;
}

static int put_u32(struct policy *p, const char *name, uint32_t val)
{
	uint32_t *at = member(p, name);

	if (!at) {
		complain("the policy was built without '%s': build it with the policy.bpf.h of this version",
			 name);
		return -EINVAL;
	}
	*at = val;
	return 0;
}

static const struct btf_type *strip(const struct btf *btf, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	while (t && (btf_is_mod(t) || btf_is_typedef(t)))
		t = btf__type_by_id(btf, t->type);
	return t;
}

static struct bpf_map *section_map(struct policy *p, const char *section)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, p->obj) {
		const char *name = bpf_map__name(map);
		size_t len = strlen(name), end = strlen(section);

		if (len >= end && !strcmp(name + len - end, section))
			return map;
	}
	return NULL;
}

static int parse(const char *text, bool is_signed, size_t size, uint64_t *val)
{
	char *end;
	int64_t s;

	errno = 0;
	if (!strcmp(text, "true") || !strcmp(text, "false")) {
		*val = *text == 't';
		return 0;
	}
	if (!is_signed) {
		if (!*text || strchr(text, '-'))
			return -EINVAL;
		*val = strtoull(text, &end, 0);
		if (!errno && size < sizeof(*val) && *val >> 8 * size)
			return -ERANGE;
	} else {
		s = strtoll(text, &end, 0);
		if (!errno && size < sizeof(s) &&
		    (s < -(1LL << (8 * size - 1)) ||
		     s >= 1LL << (8 * size - 1)))
			return -ERANGE;
		*val = (uint64_t)s;
	}
	if (errno)
		return -errno;
	return *text && !*end ? 0 : -EINVAL;
}

/*
 * Set a variable of a section. Returns 1 if the section has no such variable; with @name
 * NULL it prints the section's variables.
 */
static int set_in(struct policy *p, const char *section, const char *name,
		  const char *text)
{
	const struct btf *btf = bpf_object__btf(p->obj);
	const struct btf_var_secinfo *var;
	const struct btf_type *sec, *t;
	struct bpf_map *map = section_map(p, section);
	int32_t id = btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC);
	uint64_t val = 0;
	size_t size;
	void *data;
	int err;

	if (id < 0 || !map)
		return 1;
	data = bpf_map__initial_value(map, &size);
	sec = btf__type_by_id(btf, id);
	var = btf_var_secinfos(sec);
	for (int i = 0; data && i < btf_vlen(sec); i++, var++) {
		const char *var_name;

		t = btf__type_by_id(btf, var->type);
		var_name = btf__name_by_offset(btf, t->name_off);
		t = strip(btf, t->type);
		if (!t || !btf_is_int(t) || (size_t)var->offset + t->size > size)
			continue;
		if (!name) {
			fprintf(stderr, " %s", var_name);
			continue;
		}
		if (strcmp(var_name, name))
			continue;
		err = parse(text, btf_int_encoding(t) & BTF_INT_SIGNED,
			    t->size, &val);
		if (err) {
			complain("'%s' is not a value for %s, a%s number of %u bytes",
				 text, name,
				 btf_int_encoding(t) & BTF_INT_SIGNED ?
				 "" : " positive", t->size);
			return err;
		}
		memcpy((char *)data + var->offset, &val, t->size);
		return 0;
	}
	return 1;
}

static int set_variable(struct policy *p, const char *assignment)
{
	static const char *const sections[] = { ".rodata", ".data", ".bss" };
	const char *text = strchr(assignment, '=');
	char name[64];
	int ret = 1;

	if (!text || text == assignment ||
	    (size_t)(text - assignment) >= sizeof(name)) {
		complain("'%s' is not VAR=VALUE", assignment);
		return -EINVAL;
	}
	memcpy(name, assignment, (size_t)(text - assignment));
	name[text - assignment] = '\0';
	for (int i = 0; ret == 1 && i < 3; i++)
		ret = set_in(p, sections[i], name, text + 1);
	if (ret != 1)
		return ret;
	fprintf(stderr, "mgpu-policy: the policy has no variable '%s'; it has:",
		name);
	for (int i = 0; i < 3; i++)
		set_in(p, sections[i], NULL, NULL);
	fputc('\n', stderr);
	return -EINVAL;
}

/* ---- opening ---- */

/* True if the module's BTF has the type of a policy. */
static int has_policies(void)
{
	static const char name[] = "bpf_struct_ops_" TYPE;
	size_t len = 0, room = 1 << 20;
	char *btf = malloc(room);
	FILE *f = fopen(MODULE_BTF, "re");
	int ret = -ENOMEM;

	if (!f) {
		ret = -errno;
	} else if (btf) {
		len = fread(btf, 1, room, f);
		ret = ferror(f) ? -EIO :
		      !!memmem(btf, len, name, sizeof(name));
	}
	if (f)
		fclose(f);
	free(btf);
	return ret;
}

/*
 * Check that kernel and module can have BPF policies, and print why not. libbpf would
 * find out, too, but only after it has read all types of the kernel.
 */
static int check_kernel(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname uts;
	int ret;

	if (uname(&uts) || sscanf(uts.release, "%u.%u", &major, &minor) != 2) {
		complain("cannot read the version of this kernel");
		return -EIO;
	}
	if (access("/sys/module/" MODULE, F_OK)) {
		complain("the module " MODULE " is not loaded: modprobe " MODULE "_soft, or the back end of your GPU");
		return -ENODEV;
	}
	if (major < 6 || (major == 6 && minor < 9)) {
		complain("this is Linux %s: policies in BPF need Linux 6.9 or later; the built-in ones work here, see gpuctl dev set",
			 uts.release);
		return -EOPNOTSUPP;
	}
	ret = has_policies();
	if (ret > 0)
		return 0;
	if (ret == -ENOENT)
		complain("the module " MODULE " was built without BTF (there is no " MODULE_BTF "): build it where the kernel's vmlinux is at hand");
	else if (ret < 0)
		complain("cannot read " MODULE_BTF ": %s", strerror(-ret));
	else
		complain("the module " MODULE " has no policies in BPF: it was built for a kernel without CONFIG_BPF_JIT or CONFIG_DEBUG_INFO_BTF_MODULES");
	return ret ? ret : -EOPNOTSUPP;
}

static int open_object(struct policy *p, const char *what)
{
	int ret;

	if (strchr(what, '/') || (strlen(what) > 2 &&
				  !strcmp(what + strlen(what) - 2, ".o"))) {
		p->obj = bpf_object__open_file(what, NULL);
		ret = -errno;
		if (!p->obj)
			complain("cannot read %s: %s%s", what, strerror(-ret),
				 ret == -ENOENT ? "" : "; is it an object that clang -target bpf made?");
		return p->obj ? 0 : ret;
	}
	for (size_t i = 0; i < nr_examples; i++) {
		const struct example *e = &examples[i];
		struct bpf_object_open_opts opts = {
			.sz = sizeof(opts), .object_name = e->name,
		};

		if (strcmp(e->name, what))
			continue;
		p->obj = bpf_object__open_mem(e->start,
					      (size_t)(e->end - e->start),
					      &opts);
		ret = -errno;
		if (!p->obj)
			complain("cannot read the policy %s: %s", what,
				 strerror(-ret));
		return p->obj ? 0 : ret;
	}
	complain("unknown policy '%s': see mgpu-policy list, or give the path of an object file",
		 what);
	return -ENOENT;
}

/* Find the object's struct_ops, which must be the only one. */
static int find_struct_ops(struct policy *p)
{
	const struct btf *btf = bpf_object__btf(p->obj);
	struct bpf_map *map;
	size_t size;
	int32_t id;

	bpf_object__for_each_map(map, p->obj) {
		if (bpf_map__type(map) != BPF_MAP_TYPE_STRUCT_OPS)
			continue;
		if (p->map) {
			complain("the object has more than one policy: build one object for each");
			return -EINVAL;
		}
		p->map = map;
	}
	id = btf__find_by_name_kind(btf, TYPE, BTF_KIND_STRUCT);
	if (!p->map || id < 0) {
		complain("the object has no policy: a struct " TYPE " in section .struct_ops.link");
		return -EINVAL;
	}
	p->type = btf__type_by_id(btf, id);
	p->value = bpf_map__initial_value(p->map, &size);
	if (!p->value || size < p->type->size) {
		complain("the object's policy is not a struct " TYPE);
		return -EINVAL;
	}
	return 0;
}

/* Check what the kernel refuses without a message. */
static int check_policy(struct policy *p)
{
	static const char *const mandatory[] = { "enqueue", "pick" };
	const char *name = member(p, "name");
	const uint32_t *timeout = member(p, "timeout_ms");
	void *const *op;

	for (int i = 0; i < 2; i++) {
		op = member(p, mandatory[i]);
		if (!op || !*op) {
			complain("the policy has no %s, which it must have",
				 mandatory[i]);
			return -EINVAL;
		}
	}
	if (timeout && *timeout &&
	    (*timeout < TIMEOUT_MIN || *timeout > TIMEOUT_MAX)) {
		complain("the policy's timeout_ms is %u: it must be from %d to %d",
			 *timeout, TIMEOUT_MIN, TIMEOUT_MAX);
		return -ERANGE;
	}
	if (!name || !*name || strnlen(name, sizeof(p->name)) >= sizeof(p->name)) {
		complain("the policy needs a name of 1 to %zu letters",
			 sizeof(p->name) - 1);
		return -EINVAL;
	}
	snprintf(p->name, sizeof(p->name), "%s", name);
	return 0;
}

int policy_open(struct policy **policy, const struct request *req,
		uint32_t dev_id)
{
	struct policy *p;
	int ret;

	verbose_libbpf = req->verbose;
	libbpf_set_print(print_libbpf);
	ret = check_kernel();
	if (ret)
		return ret;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->verbose = req->verbose;
	ret = open_object(p, req->what);
	if (!ret)
		ret = find_struct_ops(p);
	if (!ret)
		ret = put_u32(p, "dev", dev_id);
	if (!ret && req->timeout_ms)
		ret = put_u32(p, "timeout_ms", req->timeout_ms);
	if (!ret)
		ret = check_policy(p);
	for (size_t i = 0; !ret && i < req->nr_sets; i++)
		ret = set_variable(p, req->set[i]);
	if (ret) {
		policy_close(p);
		return ret;
	}
	*policy = p;
	return 0;
}

/* ---- loading ---- */

static int load(struct policy *p)
{
	int ret = bpf_object__load(p->obj);

	if (!ret)
		return 0;
	if (ret == -EPERM)
		complain("no permission to load BPF programs: run as root");
	else
		complain("the kernel refuses the programs of %s: %s%s", p->name,
			 strerror(-ret),
			 p->verbose ? "" : "; -v prints the verifier's messages");
	return ret;
}

int policy_attach(struct policy *p)
{
	int ret = load(p);

	if (ret)
		return ret;
	p->link = bpf_map__attach_struct_ops(p->map);
	if (p->link)
		return 0;
	ret = -errno;
	switch (ret) {
	case -EBUSY:
		complain("another BPF policy is in force: unload it first, or replace it with mgpu-policy replace");
		break;
	case -ENODEV:
		complain("the device is gone");
		break;
	case -EINVAL:
		complain("the kernel refuses the policy %s: its name must be of letters, digits, '-', '_' and '.', and not a built-in policy's; or its init failed",
			 p->name);
		break;
	default:
		complain("%s does not come into force: %s", p->name,
			 strerror(-ret));
	}
	return ret;
}

int policy_replace(struct policy *p, int link_fd)
{
	struct bpf_link *link;
	int ret;

	/*
	 * The map's value must be set before a link can be updated to it, and libbpf sets
	 * it only when it creates a link. So let libbpf try with a device that cannot
	 * exist.
	 */
	ret = put_u32(p, "dev", NO_DEVICE);
	if (!ret)
		ret = load(p);
	if (ret)
		return ret;
	link = bpf_map__attach_struct_ops(p->map);
	if (link) {
		bpf_link__destroy(link);
		return -EINVAL;
	}
	ret = -errno;
	if (ret == -ENODEV)
		ret = bpf_link_update(link_fd, bpf_map__fd(p->map), NULL);
	switch (ret) {
	case 0:
		break;
	case -ENOLINK:
		complain("the policy of this link has ended: unload it, and load this one");
		break;
	case -EINVAL:
		complain("%s cannot take its place: the link is not that of a policy, or the init of %s failed, or its name is not of letters, digits, '-', '_' and '.'",
			 p->name, p->name);
		break;
	default:
		complain("%s cannot take its place: %s", p->name,
			 strerror(-ret));
	}
	return ret;
}

int policy_pin(struct policy *p, const char *path)
{
	char dir[4096];
	struct statfs fs;
	char *slash;
	int ret;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = '\0';
	if (statfs(slash ? dir : ".", &fs) || fs.f_type != BPF_FS_MAGIC) {
		complain("%s is not on a BPF file system, where links are pinned: use a path in /sys/fs/bpf",
			 path);
		return -EINVAL;
	}
	ret = bpf_link__pin(p->link, path);
	if (ret == -EEXIST)
		complain("%s exists already: use another path, or mgpu-policy replace",
			 path);
	else if (ret)
		complain("cannot pin the link at %s: %s", path, strerror(-ret));
	return ret;
}

void policy_close(struct policy *p)
{
	if (!p)
		return;
	/* A pinned link stays in force. */
	bpf_link__destroy(p->link);
	bpf_object__close(p->obj);
	free(p);
}

const char *policy_name(const struct policy *p)
{
	return p->name;
}

int policy_link_fd(const struct policy *p)
{
	return bpf_link__fd(p->link);
}

/* ---- links ---- */

int link_open(const char *key)
{
	struct bpf_link_info info = { 0 };
	uint32_t len = sizeof(info);
	char *end;
	unsigned long id = strtoul(key, &end, 10);
	int fd;

	if (*key && !*end)
		fd = bpf_link_get_fd_by_id((uint32_t)id);
	else
		fd = bpf_obj_get(key);
	if (fd < 0) {
		complain("no link %s: give the path that a policy was pinned at, or the number that mgpu-policy load printed (%s)",
			 key, strerror(-fd));
		return fd;
	}
	if (bpf_link_get_info_by_fd(fd, &info, &len) ||
	    info.type != BPF_LINK_TYPE_STRUCT_OPS) {
		complain("%s is not the link of a policy", key);
		close(fd);
		return -EINVAL;
	}
	return fd;
}

uint32_t link_id(int fd)
{
	struct bpf_link_info info = { 0 };
	uint32_t len = sizeof(info);

	return bpf_link_get_info_by_fd(fd, &info, &len) ? 0 : info.id;
}

/* Ignore errors: an older kernel cannot detach, and a link that has ended need not be. */
int link_detach(int fd)
{
	return bpf_link_detach(fd);
}
