/* SPDX-License-Identifier: GPL-2.0-only */
/* A pool with a database of its own and its API, for the unit test and the fuzz target. */
#ifndef TESTS_UNIT_POOL_API_WORLD_H
#define TESTS_UNIT_POOL_API_WORLD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api.h"
#include "effects.h"

#define WORLD_NOW	1000000

/* Folder of the folders of databases, in memory. */
static const char *world_home = "/dev/shm";

/**
 * struct world - the parts
 * @folder: folder of the database
 * @jobs: jobs that began
 * @job: the last of them
 * @jobs_before: for the caller
 * @told: changes that other parts were told of
 * @events: events that were stored
 */
static struct world {
	struct store *store;
	char folder[64];
	struct pool *pool;
	struct effects effects;
	struct api api;
	struct api_host host;
	unsigned int jobs;
	unsigned int jobs_before;
	struct pool_job job;
	unsigned int told;
	unsigned int events;
} world;

static void world_job(void *arg, const struct pool_job *job)
{
	(void)arg;
	world.jobs++;
	world.job = *job;
}

static void world_event(void *arg, const struct pool_event *event)
{
	(void)arg;
	world.api.last_event = event->id;
	world.events++;
}

static void world_changed(void *arg, enum api_change what, const char *name)
{
	(void)arg;
	(void)what;
	(void)name;
	world.told++;
}

static void world_project(const char *name)
{
	struct pool_project p = { .weight = 100 };

	snprintf(p.name, sizeof(p.name), "%s", name);
	if (store_put_project(world.store, &p) || pool_put_project(world.pool, &p))
		abort();
}

static void world_vm(const char *name, const char *project)
{
	struct pool_vm vm = { .host = "h", .uuid = "00000000-0000-0000-0000-000000000001" };

	snprintf(vm.name, sizeof(vm.name), "%s", name);
	snprintf(vm.project, sizeof(vm.project), "%s", project);
	if (store_put_vm(world.store, &vm) || pool_put_vm(world.pool, &vm))
		abort();
}

static void world_gpu(const char *addr)
{
	struct pool_gpu gpu = {
		.host = "h", .nr_functions = 1, .group = 7, .target = POOL_WHOLE, .model = "A",
		.slots = 1, .memory_mib = 8192, .capabilities = POOL_3D | POOL_COMPUTE,
		.present = true,
	};

	snprintf(gpu.name, sizeof(gpu.name), "h/%s", addr);
	snprintf(gpu.addr, sizeof(gpu.addr), "%s", addr);
	snprintf(gpu.functions[0], sizeof(gpu.functions[0]), "%s", addr);
	if (store_put_gpu(world.store, &gpu) || pool_put_gpu(world.pool, &gpu))
		abort();
}

static void world_open(const char *path)
{
	char why[POOL_TEXT_MAX];

	if (store_open(path, &world.store, why)) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
}

/* An empty database as bytes, made once: its tables take longer than most tests. */
static void world_copy(const char *path)
{
	static char *empty;
	static size_t size;
	FILE *f;

	if (!empty) {
		world_open(path);
		store_close(world.store);
		f = fopen(path, "r");
		empty = malloc(1 << 20);
		if (!f || !empty)
			abort();
		size = fread(empty, 1, 1 << 20, f);
		fclose(f);
		return;
	}
	umask(077);
	f = fopen(path, "w");
	if (!f || fwrite(empty, 1, size, f) != size || fclose(f))
		abort();
}

static void world_store(void)
{
	char path[80];

	snprintf(world.folder, sizeof(world.folder), "%s/pool-api-XXXXXX", world_home);
	if (!mkdtemp(world.folder))
		abort();
	snprintf(path, sizeof(path), "%s/db", world.folder);
	world_copy(path);
	world_open(path);
}

/* Projects p and q, VMs a of p and b of q, c of no project, and the GPU 0000:41:00.0 of host h. */
static void world_begin(void)
{
	struct pool_settings settings;
	struct pool_hooks hooks;

	memset(&world, 0, sizeof(world));
	world_store();
	world.effects = (struct effects){
		.store = world.store, .job = world_job, .event = world_event,
	};
	effects_hooks(&world.effects, &hooks);
	pool_settings_default(&settings);
	world.pool = pool_new(&settings, &hooks);
	if (!world.pool)
		abort();
	strcpy(world.host.name, "h");
	world.host.up = true;
	world.api = (struct api){
		.pool = world.pool, .store = world.store, .effects = &world.effects,
		.started = WORLD_NOW - 10, .hosts = &world.host, .nr_hosts = 1,
		.changed = world_changed,
	};
	world_project("p");
	world_project("q");
	world_vm("a", "p");
	world_vm("b", "q");
	world_vm("c", "");
	world_gpu("0000:41:00.0");
	pool_host_up(world.pool, "h", true);
}

static void world_end(void)
{
	pool_free(world.pool);
	effects_free(&world.effects);
	store_close(world.store);
	for (size_t i = 0; i < 4; i++) {
		static const char *const names[] = { "db", "db-wal", "db-shm", "db-lock" };
		char path[80];

		snprintf(path, sizeof(path), "%s/%s", world.folder, names[i]);
		unlink(path);
	}
	if (rmdir(world.folder))
		perror(world.folder);
}

#endif /* TESTS_UNIT_POOL_API_WORLD_H */
