// SPDX-License-Identifier: GPL-2.0-only
/* GPUs of the service's own machine: the part that only sysfs and procfs say. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host_private.h"
#include "mgpu.h"
#include "pci.h"
#include "pci_users.h"
#include "sysfs.h"

#define PARENTS		"/sys/class/mdev_bus"
#define MDEVS		"/sys/bus/mdev/devices"
#define SLOWEST		"2.5 GT/s"	/* link of PCIe */

extern char **environ;

const char *local_root = "";

/* qemu:///system, and the like over libvirt's socket. */
bool local_is(const char *uri)
{
	return !strncmp(uri, "qemu:///", 8) || !strncmp(uri, "qemu+unix:///", 13);
}

/* ---- attributes ---- */

__attribute__((format(printf, 3, 4)))
static bool attribute(char *line, size_t size, const char *fmt, ...)
{
	char path[PATH_MAX];
	size_t len;
	va_list ap;
	int n;

	len = (size_t)snprintf(path, sizeof(path), "%s", local_root);
	va_start(ap, fmt);
	n = vsnprintf(path + len, sizeof(path) - len, fmt, ap);
	va_end(ap);
	*line = '\0';
	return n > 0 && (size_t)n < sizeof(path) - len && read_line(path, line, size);
}

/* ---- PCI functions ---- */

bool local_boot_display(const char *addr)
{
	char line[16];

	return attribute(line, sizeof(line), PCI_DEVICES "/%s/boot_vga", addr) &&
	       !strcmp(line, "1");
}

bool local_in_use(const char *addr, char *why, size_t size)
{
	struct pci_users users;

	if (!pci_users_find(local_root, addr, &users))
		return false;
	if (*users.console)
		snprintf(why, size, "%s is in use by the text console%s%s; 'echo 0 >%s' takes it away",
			 addr, users.nr ? " and " : "", users.names, users.console);
	else
		snprintf(why, size, "%s is in use by %s; end that first", addr, users.names);
	return true;
}

uint32_t local_memory_mib(const char *addr)
{
	unsigned long long bytes;
	char line[32];

	/* amdgpu's; other drivers tell it to their own tools only */
	if (!attribute(line, sizeof(line), PCI_DEVICES "/%s/mem_info_vram_total", addr))
		return 0;
	bytes = strtoull(line, NULL, 10);
	return (uint32_t)(bytes >> 20);
}

int local_works(const char *addr)
{
	char power[32], link[32], most[32];

	if (!attribute(power, sizeof(power), PCI_DEVICES "/%s/power_state", addr) ||
	    !strcmp(power, "unknown"))
		return -1;
	if (strcmp(power, "D0"))
		return 0;
	/* GPUs slow their link down while they have no work, if it has more than one speed. */
	return !attribute(link, sizeof(link), PCI_DEVICES "/%s/current_link_speed", addr) ||
	       !attribute(most, sizeof(most), PCI_DEVICES "/%s/max_link_speed", addr) ||
	       strncmp(link, SLOWEST, strlen(SLOWEST)) || !strncmp(most, SLOWEST, strlen(SLOWEST));
}

/* ---- parents of mdevs ---- */

uint32_t local_capabilities(const char *parent, const char *type)
{
	char line[256];

	if (!attribute(line, sizeof(line), PARENTS "/%s/mdev_supported_types/%s/description",
		       parent, type))
		return 0;
	return (strstr(line, "OpenGL") ? POOL_3D : 0) |
	       (strstr(line, "compute") ? POOL_COMPUTE : 0);
}

/**
 * struct sys_type - a type of mdevs in sysfs
 * @memory_mib: of its description
 */
struct sys_type {
	struct host_type type;
	unsigned int memory_mib;
};

static void read_type(const char *parent, const char *name, struct sys_type *type)
{
	char line[256];
	const char *memory;

	*type = (struct sys_type){ .type.capabilities = local_capabilities(parent, name) };
	strcpy(type->type.name, name);
	if (attribute(line, sizeof(line), PARENTS "/%s/mdev_supported_types/%s/available_instances",
		      parent, name))
		type->type.available = (unsigned int)strtoul(line, NULL, 10);
	attribute(line, sizeof(line), PARENTS "/%s/mdev_supported_types/%s/description", parent,
		  name);
	memory = strstr(line, "memory ");
	if (memory)
		type->memory_mib = (unsigned int)strtoul(memory + strlen("memory "), NULL, 10);
}

/* Entries of a folder below local_root whose names fit. Returns their number. */
static size_t list(const char *folder, char names[][POOL_TYPE_MAX], size_t max)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	size_t nr = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s%s", local_root, folder);
	dir = opendir(path);
	if (!dir)
		return 0;
	while (nr < max && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strlen(entry->d_name) < POOL_TYPE_MAX)
			strcpy(names[nr++], entry->d_name);
	closedir(dir);
	return nr;
}

static size_t list_types(const char *parent, struct sys_type *types)
{
	char names[XML_TYPES_MAX][POOL_TYPE_MAX];
	char folder[256];
	size_t nr, i;

	snprintf(folder, sizeof(folder), PARENTS "/%s/mdev_supported_types", parent);
	nr = list(folder, names, XML_TYPES_MAX);
	for (i = 0; i < nr; i++)
		read_type(parent, names[i], &types[i]);
	return nr;
}

static bool is_pci(const char *name)
{
	char address[PCI_ADDRESS_LEN];

	return pci_parse_address(name, address);
}

bool local_has_parent(const char *name)
{
	char path[PATH_MAX];

	return !is_pci(name) && !strchr(name, '/') &&
	       (size_t)snprintf(path, sizeof(path), "%s" PARENTS "/%s", local_root, name) <
	       sizeof(path) && !access(path, F_OK);
}

/* The smallest first. */
static int by_memory(const void *a, const void *b)
{
	const struct sys_type *x = a, *y = b;

	if (x->memory_mib != y->memory_mib)
		return x->memory_mib < y->memory_mib ? -1 : 1;
	if (x->type.capabilities != y->type.capabilities)
		return x->type.capabilities < y->type.capabilities ? -1 : 1;
	return strcmp(x->type.name, y->type.name);
}

/* From its folder in sysfs: .../mgpu_soft.0/UUID. */
bool local_parent(const char *uuid, char *parent, size_t size)
{
	char path[PATH_MAX], real[PATH_MAX], *slash;

	if (strchr(uuid, '/'))
		return false;
	snprintf(path, sizeof(path), "%s" MDEVS "/%s", local_root, uuid);
	if (!realpath(path, real))
		return false;
	slash = strrchr(real, '/');
	*slash = '\0';
	slash = strrchr(real, '/');
	return slash && (size_t)snprintf(parent, size, "%s", slash + 1) < size;
}

/* Whether an mdev is of a parent and type: .../mdev_supported_types/mgpu_soft-small. */
static bool is_of(const char *uuid, const char *parent, const char *type)
{
	char name[POOL_NAME_MAX], path[PATH_MAX], real[PATH_MAX];

	if (!local_parent(uuid, name, sizeof(name)) || strcmp(name, parent))
		return false;
	if ((size_t)snprintf(path, sizeof(path), "%s" MDEVS "/%s/mdev_type", local_root, uuid) >=
	    sizeof(path))
		return false;
	return realpath(path, real) && !strcmp(strrchr(real, '/') + 1, type);
}

static void count_made(const struct host *host, const char *parent, struct host_type *types,
		       size_t nr_types)
{
	char names[1024][POOL_TYPE_MAX];
	size_t nr = list(MDEVS, names, 1024), i, k;

	for (i = 0; i < nr; i++) {
		if (!host_owns(host, names[i]))
			continue;
		for (k = 0; k < nr_types; k++)
			types[k].ours += is_of(names[i], parent, types[k].name);
	}
}

static void fill(const struct host *host, const char *parent, struct pool_gpu *gpu)
{
	struct host_type types[XML_TYPES_MAX];
	struct sys_type found[XML_TYPES_MAX];
	size_t nr = list_types(parent, found), i;

	memset(gpu, 0, sizeof(*gpu));
	strcpy(gpu->host, host->config.name);
	strcpy(gpu->addr, parent);
	snprintf(gpu->name, sizeof(gpu->name), "%s/%s", gpu->host, gpu->addr);
	snprintf(gpu->model, sizeof(gpu->model), "%.*s", (int)strcspn(parent, "."), parent);
	strcpy(gpu->functions[gpu->nr_functions++], parent);
	gpu->target = POOL_VGPU;
	gpu->group = -1;
	gpu->present = true;
	qsort(found, nr, sizeof(*found), by_memory);
	for (i = 0; i < nr; i++)
		types[i] = found[i].type;
	count_made(host, parent, types, nr);
	types_fill(gpu, types, nr);
}

int local_parents(const struct host *host, int (*fn)(const struct pool_gpu *, void *), void *arg)
{
	char names[XML_TYPES_MAX][POOL_TYPE_MAX];
	size_t nr = list(PARENTS, names, XML_TYPES_MAX), i;
	struct pool_gpu gpu;
	int ret = 0;

	for (i = 0; i < nr && !ret; i++) {
		if (is_pci(names[i]) || strlen(names[i]) >= POOL_ADDR_MAX)
			continue;
		fill(host, names[i], &gpu);
		ret = fn(&gpu, arg);
	}
	return ret;
}

/* ---- mdevctl, for parents that libvirt does not know ---- */

/* Run mdevctl, and read what it says on standard error into @said. Returns 0, -errno, -ECHILD. */
static int mdevctl(char *said, size_t size, char *const *argv)
{
	posix_spawn_file_actions_t actions;
	int ends[2], status, ret;
	char rest[256];
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
	ret = -posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	while (!ret && len < size - 1 && (n = read(ends[0], said + len, size - 1 - len)) > 0)
		len += (size_t)n;
	/* The pipe stays open for all of it: mdevctl would end at a write. */
	while (!ret && read(ends[0], rest, sizeof(rest)) > 0)
		;
	close(ends[0]);
	said[len] = '\0';
	said[strcspn(said, "\n")] = '\0';
	if (ret)
		return ret;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -ECHILD;
}

#define MDEVCTL(said, ...)	\
	mdevctl(said, sizeof(said), (char *const[]){ (char *)"mdevctl", __VA_ARGS__, NULL })
#define WORD(text)		((char *)(uintptr_t)(text))

static int add_attribute(const char *uuid, const char *name, uint32_t value, char said[256])
{
	char attr[64], number[32];
	char text[256];
	int ret;

	if (!value)
		return 0;
	snprintf(attr, sizeof(attr), "--addattr=%s", name);
	snprintf(number, sizeof(number), "--value=%" PRIu32, value);
	ret = MDEVCTL(text, WORD("modify"), WORD("--uuid"), WORD(uuid), attr, number);
	strcpy(said, text);
	return ret;
}

static bool mdev_is_there(const char *uuid)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s" MDEVS "/%s", local_root, uuid);
	return !access(path, F_OK);
}

static int define(const char *parent, const char *type, const char *uuid, char said[256])
{
	char text[256] = "";
	int ret = MDEVCTL(text, WORD("define"), WORD("--auto"), WORD("--uuid"), WORD(uuid),
			  WORD("--parent"), WORD(parent), WORD("--type"), WORD(type));

	strcpy(said, text);
	return ret;
}

enum host_result local_mdev_make(const char *parent, const char *type,
				 const struct pool_request *r, char *text)
{
	char said[256] = "", ignored[256];
	int ret;

	if (mdev_is_there(r->uuid))
		return HOST_OK;
	ret = define(parent, type, r->uuid, said);
	if (ret == -ECHILD) {
		/* Remains of an earlier try. */
		MDEVCTL(ignored, WORD("undefine"), WORD("--uuid"), WORD(r->uuid));
		ret = define(parent, type, r->uuid, said);
	}
	if (!ret)
		ret = add_attribute(r->uuid, "mgpu/weight", r->weight, said);
	if (!ret)
		ret = add_attribute(r->uuid, "mgpu/fps_floor", r->floor_mhz, said);
	if (!ret)
		ret = MDEVCTL(said, WORD("start"), WORD("--uuid"), WORD(r->uuid));
	if (!ret)
		return HOST_OK;
	/* It would come at the next boot, of no request. */
	MDEVCTL(ignored, WORD("undefine"), WORD("--uuid"), WORD(r->uuid));
	return host_says(HOST_RETRY, text, "no vGPU of type %s on %s: %s", type, parent,
			 ret == -ECHILD ? said : ret == -ENOENT ?
			 "mdevctl is missing; install it" : strerror(-ret));
}

int local_mdev_remove(const char *uuid, char *text)
{
	char parent[POOL_NAME_MAX];
	char said[256] = "";
	int ret;

	/* Libvirt has the others. */
	if (!local_parent(uuid, parent, sizeof(parent)) || is_pci(parent))
		return 0;
	ret = MDEVCTL(said, WORD("stop"), WORD("--uuid"), WORD(uuid));
	if (ret && mdev_is_there(uuid)) {
		host_says(HOST_RETRY, text, "vGPU %s stays: %s", uuid,
			  ret == -ECHILD ? said : strerror(-ret));
		return -EBUSY;
	}
	MDEVCTL(said, WORD("undefine"), WORD("--uuid"), WORD(uuid));
	return 1;
}

/* ---- use ---- */

#define LIST_NS		INT64_C(1000000000)	/* a list of vGPUs is good for this long */

/* The list of all vGPUs of the machine. */
static int list_vgpus(struct host *host)
{
	struct mgpu_error err;
	int ret = 0;

	if (host->vgpus && host_ns() - host->vgpus_ns < LIST_NS)
		return 0;
	free(host->vgpus);
	host->vgpus = NULL;
	host->nr_vgpus = 0;
	if (!host->mgpu)
		ret = mgpu_open(&host->mgpu, &err);
	if (!ret)
		ret = mgpu_vgpu_list(host->mgpu, NULL, &host->vgpus, &host->nr_vgpus, &err);
	if (!ret) {
		host->vgpus_ns = host_ns();
		return 0;
	}
	/* The module may be loaded again. */
	mgpu_close(host->mgpu);
	host->mgpu = NULL;
	return ret;
}

static int use_of_vgpu(struct host *host, const struct pool_request *r, struct pool_use *use)
{
	size_t i;

	if (list_vgpus(host))
		return -ENOENT;
	for (i = 0; i < host->nr_vgpus; i++) {
		const struct mgpu_vgpu_info *v = &host->vgpus[i];

		if (strcasecmp(v->uuid, r->uuid))
			continue;
		use->busy_ns = v->stats.engine_ns;
		use->memory_mib = (uint32_t)(v->mem_used >> 20);
		use->source = 'h';
		return 0;
	}
	return -ENOENT;
}

#define FORGET_NS	INT64_C(3600000000000)

/* Requests that are over. */
static void forget_powered(struct host *host, int64_t now)
{
	struct powered **at = &host->powered, *p;

	while ((p = *at)) {
		if (now - p->seen_ns < FORGET_NS) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		free(p);
	}
}

/* Time between looks at which it worked both times counts. */
static int use_of_whole(struct host *host, const struct pool_request *r, struct pool_use *use)
{
	const char *addr = strchr(r->gpu, '/');
	int works = addr ? local_works(addr + 1) : -1;
	struct powered *p = host->powered;
	int64_t now = host_ns();

	if (works < 0)
		return -ENOENT;
	while (p && p->request != r->id)
		p = p->next;
	if (!p) {
		p = calloc(1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		forget_powered(host, now);
		p->request = r->id;
		p->next = host->powered;
		host->powered = p;
	} else if (works && p->last_ns) {
		p->busy_ns += (uint64_t)(now - p->last_ns);
	}
	p->last_ns = works ? now : 0;
	p->seen_ns = now;
	use->busy_ns = p->busy_ns;
	use->source = 'p';
	return 0;
}

int host_use(struct host *host, const struct pool_request *r, struct pool_use *use)
{
	if (!host->local)
		return -ENOENT;
	memset(use, 0, sizeof(*use));
	use->request = r->id;
	return *r->uuid ? use_of_vgpu(host, r, use) : use_of_whole(host, r, use);
}
