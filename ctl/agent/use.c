// SPDX-License-Identifier: GPL-2.0-only
/* Use of a GPU that the host cannot see. */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "drm_usage.h"
#include "nvml.h"
#include "sysfs.h"
#include "use.h"

#define PATH_SIZE	1024
#define IRQS_S		10	/* interrupts per second from which on an interval is busy */

void meter_open(struct meter *m, const char *root, const char *addr, const char *nvml,
		uint64_t busy_ns)
{
	memset(m, 0, sizeof(*m));
	m->root = root;
	m->nvml = nvml;
	m->busy_ns = busy_ns;
	m->source = USE_NONE;
	snprintf(m->addr, sizeof(m->addr), "%s", addr);
}

static void attribute(const struct meter *m, const char *name, char path[PATH_SIZE])
{
	snprintf(path, PATH_SIZE, "%s/sys/bus/pci/devices/%s/%s", m->root, m->addr, name);
}

/* Read a number of an attribute of the device. */
static bool read_number(const struct meter *m, const char *name, uint64_t *value)
{
	char path[PATH_SIZE], line[64], *end;

	attribute(m, name, path);
	if (!read_line(path, line, sizeof(line)) || !isdigit((unsigned char)*line))
		return false;
	*value = strtoull(line, &end, 10);
	return !*end;
}

/* ---- engine times of DRM drivers ---- */

static struct use_client *find_client(struct meter *m, uint64_t client)
{
	for (size_t i = 0; i < m->nr_clients; i++)
		if (m->clients[i].client == client)
			return &m->clients[i];
	if (m->nr_clients == USE_CLIENTS)
		return NULL;
	m->clients[m->nr_clients] = (struct use_client){ .client = client };
	return &m->clients[m->nr_clients++];
}

/* Add what a client has worked since the last look; duplicates of a file add nothing. */
static void add_client(struct meter *m, const struct drm_usage *u, uint64_t *worked)
{
	struct use_client *c = find_client(m, u->client);

	if (!c)
		return;
	c->seen = true;
	if (u->engine_ns > c->engine_ns) {
		*worked += u->engine_ns - c->engine_ns;
		c->engine_ns = u->engine_ns;
	}
}

static bool is_node(const char *path)
{
	char to[32];
	ssize_t n = readlink(path, to, sizeof(to) - 1);

	return n > 9 && !memcmp(to, "/dev/dri/", 9);
}

static void look_at_process(struct meter *m, const char *pid, uint64_t *worked, bool *found)
{
	char path[PATH_SIZE];
	const struct dirent *e;
	struct drm_usage u;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc/%.16s/fd", m->root, pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((e = readdir(dir))) {
		snprintf(path, sizeof(path), "%s/proc/%.16s/fd/%.16s", m->root, pid, e->d_name);
		if (*e->d_name == '.' || !is_node(path))
			continue;
		snprintf(path, sizeof(path), "%s/proc/%.16s/fdinfo/%.16s", m->root, pid, e->d_name);
		if (!drm_usage_read(path, &u) || strcmp(u.device, m->addr))
			continue;
		add_client(m, &u, worked);
		*found = true;
	}
	closedir(dir);
}

/* Forget the clients that are gone. */
static void drop_clients(struct meter *m)
{
	size_t kept = 0;

	for (size_t i = 0; i < m->nr_clients; i++)
		if (m->clients[i].seen)
			m->clients[kept++] = m->clients[i];
	m->nr_clients = kept;
}

/* Whether the driver is one that was seen to tell engine times: without clients it is idle. */
static bool look_drm(struct meter *m, uint64_t *worked)
{
	char path[PATH_SIZE];
	const struct dirent *e;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc", m->root);
	dir = opendir(path);
	if (!dir)
		return false;
	for (size_t i = 0; i < m->nr_clients; i++)
		m->clients[i].seen = false;
	while ((e = readdir(dir)))
		if (isdigit((unsigned char)*e->d_name))
			look_at_process(m, e->d_name, worked, &found);
	closedir(dir);
	drop_clients(m);
	return found || m->source == USE_DRM;
}

/* ---- interrupts ---- */

static bool is_irq(const struct meter *m, const char *number)
{
	char path[PATH_SIZE], name[64];

	snprintf(name, sizeof(name), "msi_irqs/%.32s", number);
	attribute(m, name, path);
	return !access(path, F_OK);
}

/* Add the numbers of a line of /proc/interrupts: one per processor, then words. */
static uint64_t sum_line(char *at)
{
	uint64_t sum = 0, n;
	char *end;

	for (;; at = end) {
		n = strtoull(at, &end, 10);
		if (end == at || (*end && !isspace((unsigned char)*end)))
			return sum;
		sum += n;
	}
}

static bool count_irqs(const struct meter *m, uint64_t *sum)
{
	char path[PATH_SIZE], *line = NULL, *colon, *number;
	bool found = false;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/interrupts", m->root);
	f = fopen(path, "re");
	if (!f)
		return false;
	*sum = 0;
	while (getline(&line, &size, f) > 0) {
		colon = strchr(line, ':');
		if (!colon)
			continue;
		*colon = '\0';
		number = line + strspn(line, " ");
		if (!isdigit((unsigned char)*number) || !is_irq(m, number))
			continue;
		*sum += sum_line(colon + 1);
		found = true;
	}
	free(line);
	fclose(f);
	return found;
}

/* ---- looks ---- */

/* Read a counter and return what was added to it since the last look with this source. */
static uint64_t since_last(struct meter *m, enum use_source source, uint64_t value)
{
	uint64_t more = m->source == source && value > m->counter ? value - m->counter : 0;

	m->counter = value;
	return more;
}

static bool look_nvml(struct meter *m, uint64_t passed, uint64_t *worked)
{
	struct nvml_look look;

	if (!nvml_look(m->nvml, m->addr, m->sample_us, &look))
		return false;
	m->sample_us = look.last_us;
	*worked = passed / 100 * look.percent;
	m->memory_mib = look.memory_mib;
	if (!m->energy_from)
		m->energy_from = look.energy_mj;
	if (look.energy_mj > m->energy_from)
		m->energy_mj = look.energy_mj - m->energy_from;
	return true;
}

static bool look_power(struct meter *m, uint64_t *worked)
{
	char path[PATH_SIZE], line[16];
	uint64_t ms;

	attribute(m, "power/control", path);
	/* A device that is never suspended is always active. */
	if (!read_line(path, line, sizeof(line)) || strcmp(line, "auto") ||
	    !read_number(m, "power/runtime_active_time", &ms))
		return false;
	*worked = since_last(m, USE_POWER, ms) * 1000000;
	return true;
}

static enum use_source look(struct meter *m, uint64_t passed, uint64_t *worked)
{
	uint64_t n;

	if (look_nvml(m, passed, worked))
		return USE_NVML;
	if (look_drm(m, worked))
		return USE_DRM;
	if (read_number(m, "gpu_busy_percent", &n)) {
		*worked = passed / 100 * (n < 100 ? n : 100);
		return USE_BUSY;
	}
	if (look_power(m, worked))
		return USE_POWER;
	if (count_irqs(m, &n)) {
		n = since_last(m, USE_IRQ, n);
		*worked = n >= IRQS_S * (passed / NSEC + 1) ? passed : 0;
		return USE_IRQ;
	}
	return USE_NONE;
}

void meter_look(struct meter *m, uint64_t now)
{
	uint64_t passed = m->last_ns && now > m->last_ns ? now - m->last_ns : 0, worked = 0, n;

	m->source = look(m, passed, &worked);
	/* Several engines, or clients that began before the first look: no more than passed. */
	m->busy_ns += worked < passed ? worked : passed;
	m->last_ns = now;
	if (m->source != USE_NVML && read_number(m, "mem_info_vram_used", &n))
		m->memory_mib = (uint32_t)(n >> 20);
}
