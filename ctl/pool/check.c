// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-poold check */
#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <json-c/json.h>

#include "check.h"
#include "host_private.h"
#include "output.h"
#include "pci.h"
#include "sysfs.h"

/**
 * struct check - a check of a host
 * @level: the worst level so far
 */
struct check {
	const struct pool_host *config;
	struct host *host;
	void (*fn)(const struct check_line *line, void *arg);
	void *arg;
	enum check_level level;
};

static const char *const levels[] = { "ok", "warning", "error" };

__attribute__((format(printf, 5, 6)))
static void line(struct check *check, enum check_level level, const char *what, const char *mend,
		 const char *fmt, ...)
{
	struct check_line l = { .what = what, .level = level };
	va_list ap;

	strcpy(l.host, check->config->name);
	snprintf(l.mend, sizeof(l.mend), "%s", mend);
	va_start(ap, fmt);
	vsnprintf(l.text, sizeof(l.text), fmt, ap);
	va_end(ap);
	if (level > check->level)
		check->level = level;
	check->fn(&l, check->arg);
}

/* ---- the machine ---- */

__attribute__((format(printf, 2, 3)))
static bool make_path(char path[PATH_MAX], const char *fmt, ...)
{
	size_t len = (size_t)snprintf(path, PATH_MAX, "%s", local_root);
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(path + len, PATH_MAX - len, fmt, ap);
	va_end(ap);
	return n > 0 && (size_t)n < PATH_MAX - len;
}

static unsigned int count_entries(const char *folder)
{
	const struct dirent *entry;
	char path[PATH_MAX];
	unsigned int nr = 0;
	DIR *dir;

	dir = make_path(path, "%s", folder) ? opendir(path) : NULL;
	if (!dir)
		return 0;
	while ((entry = readdir(dir)))
		nr += entry->d_name[0] != '.';
	closedir(dir);
	return nr;
}

static void check_iommu(struct check *check)
{
	unsigned int groups = count_entries("/sys/kernel/iommu_groups");

	if (groups)
		line(check, CHECK_OK, "iommu", "", "the IOMMU is on, with %u groups", groups);
	else
		line(check, CHECK_ERROR, "iommu",
		     "turn on VT-d or AMD-Vi in the firmware, add intel_iommu=on (Intel) to the kernel's command line, and boot again",
		     "the IOMMU is off");
}

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);
	const char *at = text;

	while ((at = strstr(at, word))) {
		if ((at == text || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return true;
		at += len;
	}
	return false;
}

static void check_parameters(struct check *check)
{
	char path[PATH_MAX], text[4096];
	bool on, passthrough;

	if (!make_path(path, "/proc/cmdline") || !read_line(path, text, sizeof(text)))
		return;
	on = has_word(text, "intel_iommu=on") || has_word(text, "amd_iommu=on");
	passthrough = has_word(text, "iommu=pt") || has_word(text, "iommu.passthrough=1");
	if (passthrough)
		line(check, CHECK_OK, "parameters", "", "the kernel's command line has %siommu=pt",
		     on ? "the IOMMU on, and " : "");
	else
		line(check, CHECK_WARNING, "parameters",
		     "add iommu=pt to the kernel's command line, unless devices of the host are not to be trusted",
		     "the kernel's command line lacks iommu=pt: the host's own devices pay for translation");
}

/* Loaded, built in, or there to load. */
static bool has_module(const char *name, const char *file)
{
	char path[PATH_MAX], text[1024];
	struct utsname system;
	bool found = false;
	FILE *f;

	if (make_path(path, "/sys/module/%s", name) && !access(path, F_OK))
		return true;
	if (uname(&system) || !make_path(path, "/lib/modules/%s/modules.dep", system.release))
		return false;
	f = fopen(path, "re");
	while (f && !found && fgets(text, sizeof(text), f))
		found = strstr(text, file);
	if (f)
		fclose(f);
	return found;
}

static void check_modules(struct check *check)
{
	static const char *const modules[][2] = {
		{ "vfio_pci", "/vfio-pci.ko" }, { "vfio_iommu_type1", "/vfio_iommu_type1.ko" },
	};
	size_t i;

	for (i = 0; i < 2; i++)
		if (has_module(modules[i][0], modules[i][1]))
			line(check, CHECK_OK, "modules", "", "the kernel has %s", modules[i][0]);
		else
			line(check, CHECK_ERROR, "modules",
			     "install the modules of the kernel that runs, or another kernel",
			     "the kernel has no %s", modules[i][0]);
}

/* ---- libvirt ---- */

static const char *transport_help(const char *uri)
{
	if (strstr(uri, "+ssh:"))
		return "see that 'ssh HOST true' works for the service's user without a password";
	if (strstr(uri, "+tls:") || !strstr(uri, ":///"))
		return "start virtproxyd-tls.socket there, and look for certificates in /etc/pki";
	return "start libvirtd, and put the service's user into the group libvirt";
}

static bool check_libvirt(struct check *check)
{
	char text[POOL_TEXT_MAX];
	unsigned long version = 0;

	if (host_connect(check->host, text) != HOST_OK) {
		line(check, CHECK_ERROR, "libvirt", transport_help(check->config->uri), "%s", text);
		return false;
	}
	virConnectGetLibVersion(check->host->conn, &version);
	if (version && version < 7003000)
		line(check, CHECK_WARNING, "libvirt", "update libvirt to 7.3 or later",
		     "libvirt %lu.%lu.%lu keeps no vGPU over a restart of the host",
		     version / 1000000, version / 1000 % 1000, version % 1000);
	else
		line(check, CHECK_OK, "libvirt", "", "libvirt %lu.%lu.%lu answers at %s",
		     version / 1000000, version / 1000 % 1000, version % 1000,
		     check->config->uri);
	return true;
}

static int nothing(const struct pool_found *found, void *arg)
{
	(void)found;
	(void)arg;
	return 0;
}

static int count(const struct pool_vm *vm, void *arg)
{
	(void)vm;
	++*(unsigned int *)arg;
	return 0;
}

static void check_vms(struct check *check)
{
	char text[POOL_TEXT_MAX];
	unsigned int nr = 0;

	if (host_vms(check->host, count, &nr, text) != HOST_OK)
		line(check, CHECK_ERROR, "vms", "see libvirtd's log", "%s", text);
	else if (!nr)
		line(check, CHECK_WARNING, "vms",
		     "define a VM, with the machine q35 and a pcie-root-port for each device that it may get",
		     "there are no VMs");
	else
		line(check, CHECK_OK, "vms", "", "there are %u VMs", nr);
}

/* ---- GPUs ---- */

static void check_parent(struct check *check, const struct pool_gpu *gpu)
{
	char types[POOL_TEXT_MAX];

	pool_type_names(gpu, types);
	if (gpu->slots)
		line(check, CHECK_OK, "parent", "", "%s (%s) has room for %u vGPUs; types: %s",
		     gpu->addr, gpu->model, gpu->slots, types);
	else
		line(check, CHECK_WARNING, "parent", "remove vGPUs that are not used (gpuctl vgpu)",
		     "%s (%s) has no room for a vGPU", gpu->addr, gpu->model);
}

/* "0000:41:00.0 (nouveau), 0000:41:00.1 (no driver)" */
static void list_functions(const struct inventory *inventory, const struct pool_gpu *gpu,
			   char *text, size_t size)
{
	size_t len = 0;
	unsigned int f;

	*text = '\0';
	for (f = 0; f < gpu->nr_functions && len < size; f++) {
		const struct xml_node *node = inventory_find(inventory, gpu->functions[f]);

		len += (size_t)snprintf(text + len, size - len, "%s%s (%s)", f ? ", " : "",
					gpu->functions[f],
					node && *node->driver ? node->driver : "no driver");
	}
}

static void check_whole(struct check *check, const struct inventory *inventory,
			const struct pool_gpu *gpu)
{
	const struct xml_node *node = inventory_find(inventory, gpu->addr);
	char functions[256], why[256];

	list_functions(inventory, gpu, functions, sizeof(functions));
	if (gpu->offline)
		line(check, CHECK_ERROR, "gpu", strchr(gpu->why, ';') ? strchr(gpu->why, ';') + 2 : "",
		     "%s (%s): %.*s", gpu->addr, gpu->model, (int)strcspn(gpu->why, ";"), gpu->why);
	else if (check->host->local && node && !is_vfio(node->driver) &&
		 local_in_use(gpu->addr, why, sizeof(why)))
		line(check, CHECK_WARNING, "gpu", "end what uses it before a VM asks for it",
		     "%s", why);
	else
		line(check, CHECK_OK, "gpu", "", "%s (%s), IOMMU group %d: %s", gpu->addr,
		     gpu->model, gpu->group, functions);
}

/* The result of a look at GPUs. */
struct found_gpus {
	struct pool_gpu *gpus;
	size_t nr;
};

static int add_gpu(const struct pool_gpu *gpu, void *arg)
{
	struct found_gpus *list = arg;
	struct pool_gpu *grown = reallocarray(list->gpus, list->nr + 1, sizeof(*grown));

	if (!grown)
		return -1;
	list->gpus = grown;
	list->gpus[list->nr++] = *gpu;
	return 0;
}

static void check_gpus(struct check *check)
{
	struct found_gpus list = { NULL, 0 };
	struct inventory inventory = { NULL, 0 };
	char text[POOL_TEXT_MAX];
	size_t i;

	/* A GPU that a VM has, and not from the pool, is offline. */
	if (host_found(check->host, nothing, NULL, text) != HOST_OK ||
	    inventory_load(check->host, &inventory, text) != HOST_OK ||
	    host_gpus(check->host, add_gpu, &list, text) != HOST_OK) {
		line(check, CHECK_ERROR, "gpu", "see libvirtd's log", "%s", text);
	} else if (!list.nr) {
		line(check, CHECK_ERROR, "gpu",
		     "put a GPU in, or share one: gpuctl dev bind (libvirt.rst says which parents libvirt lists)",
		     "there is no GPU, and no parent of vGPUs");
	}
	for (i = 0; i < list.nr; i++)
		if (list.gpus[i].target == POOL_VGPU)
			check_parent(check, &list.gpus[i]);
		else
			check_whole(check, &inventory, &list.gpus[i]);
	inventory_free(&inventory);
	free(list.gpus);
}

/* ---- all ---- */

enum check_level check_hosts(const struct pool_host *hosts, size_t nr,
			     void (*fn)(const struct check_line *line, void *arg), void *arg)
{
	struct check check = { .fn = fn, .arg = arg };
	size_t i;

	for (i = 0; i < nr; i++) {
		check.config = &hosts[i];
		check.host = host_new(&hosts[i]);
		if (!check.host) {
			line(&check, CHECK_ERROR, "libvirt", "free memory", "out of memory");
			continue;
		}
		if (check.host->local) {
			check_iommu(&check);
			check_parameters(&check);
			check_modules(&check);
		}
		if (check_libvirt(&check)) {
			check_gpus(&check);
			check_vms(&check);
		}
		host_free(check.host);
	}
	return check.level;
}

static void print_line(const struct check_line *l, void *arg)
{
	(void)arg;
	printf("%-8s%s: %s\n", levels[l->level], l->host, l->text);
	if (*l->mend)
		printf("        %s\n", l->mend);
}

static void add_line(const struct check_line *l, void *arg)
{
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "host", json_object_new_string(l->host));
	json_object_object_add(object, "what", json_object_new_string(l->what));
	json_object_object_add(object, "level", json_object_new_string(levels[l->level]));
	json_object_object_add(object, "text", json_object_new_string(l->text));
	if (*l->mend)
		json_object_object_add(object, "mend", json_object_new_string(l->mend));
	json_object_array_add(arg, object);
}

int check_command(const struct pool_host *hosts, size_t nr, bool json)
{
	struct json_object *lines, *object;
	enum check_level level;
	int ret;

	if (!json) {
		level = check_hosts(hosts, nr, print_line, NULL);
		ret = end_output();
		return ret ? ret : level == CHECK_ERROR;
	}
	lines = json_object_new_array();
	level = check_hosts(hosts, nr, add_line, lines);
	object = json_object_new_object();
	json_object_object_add(object, "lines", lines);
	json_object_object_add(object, "level", json_object_new_string(levels[level]));
	ret = print_json(object);
	return ret ? ret : level == CHECK_ERROR;
}
