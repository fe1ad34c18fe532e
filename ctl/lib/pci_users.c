// SPDX-License-Identifier: GPL-2.0-only
/* Users of a PCI function's GPU on the host. */
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "pci_users.h"
#include "sysfs.h"

#define MAX_NODES	16
#define NAMED		3	/* names of the first processes; the others are counted */

/**
 * struct nodes - device files of a GPU
 * @screen: a frame buffer is among them
 */
struct nodes {
	dev_t list[MAX_NODES];
	size_t nr;
	bool screen;
};

/* Make a path; false, with an empty path, if it is too long. */
__attribute__((format(printf, 2, 3)))
static bool make(char path[PATH_MAX], const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(path, PATH_MAX, fmt, ap);
	va_end(ap);
	if (n >= 0 && n < PATH_MAX)
		return true;
	*path = '\0';
	return false;
}

/* Device numbers of files below /dev, from the folders in a device's folder. */
static void add_nodes(const char *device, const char *kind, struct nodes *nodes)
{
	char folder[PATH_MAX], path[PATH_MAX];
	const struct dirent *entry;
	unsigned int major, minor;
	char line[32];
	DIR *files;

	files = make(folder, "%s/%s", device, kind) ? opendir(folder) : NULL;
	if (!files)
		return;
	while (nodes->nr < MAX_NODES && (entry = readdir(files))) {
		if (entry->d_name[0] == '.' || !make(path, "%s/%s/dev", folder, entry->d_name) ||
		    !read_line(path, line, sizeof(line)) ||
		    sscanf(line, "%u:%u", &major, &minor) != 2)
			continue;
		nodes->list[nodes->nr++] = makedev(major, minor);
		nodes->screen |= !strcmp(kind, "graphics");
	}
	closedir(files);
}

/* Kernels differ in the folder that has them: the function's, or its virtio device's. */
static void find_nodes(const char *root, const char *address, struct nodes *nodes)
{
	char function[PATH_MAX], path[PATH_MAX];
	const struct dirent *entry;
	DIR *files;

	nodes->nr = 0;
	nodes->screen = false;
	files = make(function, "%s" PCI_DEVICES "/%s", root, address) ? opendir(function) : NULL;
	if (!files)
		return;
	add_nodes(function, "drm", nodes);
	add_nodes(function, "graphics", nodes);
	while ((entry = readdir(files))) {
		if (strncmp(entry->d_name, "virtio", 6) ||
		    !make(path, "%s/%s", function, entry->d_name))
			continue;
		add_nodes(path, "drm", nodes);
		add_nodes(path, "graphics", nodes);
	}
	closedir(files);
}

/* True if a process has one of the files open. */
static bool holds_node(const char *fds, const struct nodes *nodes)
{
	const struct dirent *entry;
	bool found = false;
	struct stat st;
	DIR *files;
	size_t i;

	files = opendir(fds);
	if (!files)
		return false;	/* it has ended, or belongs to another user */
	while (!found && (entry = readdir(files))) {
		if (fstatat(dirfd(files), entry->d_name, &st, 0) || !S_ISCHR(st.st_mode))
			continue;
		for (i = 0; i < nodes->nr; i++)
			found |= st.st_rdev == nodes->list[i];
	}
	closedir(files);
	return found;
}

__attribute__((format(printf, 2, 3)))
static void append(struct pci_users *users, const char *fmt, ...)
{
	size_t len = strlen(users->names);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(users->names + len, sizeof(users->names) - len, fmt, ap);
	va_end(ap);
}

static void name_process(const char *root, const char *pid, struct pci_users *users)
{
	char path[PATH_MAX];
	char comm[32];

	if (!make(path, "%s/proc/%s/comm", root, pid) || !read_line(path, comm, sizeof(comm)))
		strcpy(comm, "?");
	append(users, "%s%s (pid %s)", users->nr > 1 ? ", " : "", comm, pid);
}

/* Count the processes that have its files open, and name the first ones. */
static void find_processes(const char *root, const struct nodes *nodes, struct pci_users *users)
{
	const struct dirent *entry;
	char path[PATH_MAX];
	DIR *files;

	files = make(path, "%s/proc", root) ? opendir(path) : NULL;
	if (!files)
		return;
	while ((entry = readdir(files))) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    !make(path, "%s/proc/%s/fd", root, entry->d_name) || !holds_node(path, nodes))
			continue;
		if (users->nr++ < NAMED)
			name_process(root, entry->d_name, users);
	}
	closedir(files);
	if (users->nr > NAMED)
		append(users, " and %zu more", users->nr - NAMED);
}

/* Path of the file that unbinds the text console, if that is on a frame buffer. */
static void find_console(const char *root, struct pci_users *users)
{
	static const char dir[] = "/sys/class/vtconsole";
	const struct dirent *entry;
	char path[PATH_MAX];
	char line[64];
	DIR *files;

	files = make(path, "%s%s", root, dir) ? opendir(path) : NULL;
	if (!files)
		return;
	while (!*users->console && (entry = readdir(files))) {
		if (entry->d_name[0] == '.' ||
		    !make(path, "%s%s/%s/name", root, dir, entry->d_name) ||
		    !read_line(path, line, sizeof(line)) || !strstr(line, "frame buffer") ||
		    !make(path, "%s%s/%s/bind", root, dir, entry->d_name) ||
		    !read_line(path, line, sizeof(line)) || strtoul(line, NULL, 10) != 1)
			continue;
		if ((size_t)snprintf(users->console, sizeof(users->console), "%s/%s/bind", dir,
				     entry->d_name) >= sizeof(users->console))
			*users->console = '\0';
	}
	closedir(files);
}

bool pci_users_find(const char *root, const char *address, struct pci_users *users)
{
	struct nodes nodes;

	memset(users, 0, sizeof(*users));
	find_nodes(root, address, &nodes);
	if (nodes.nr)
		find_processes(root, &nodes, users);
	if (nodes.screen)
		find_console(root, users);
	return users->nr || *users->console;
}
