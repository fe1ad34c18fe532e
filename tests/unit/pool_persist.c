// SPDX-License-Identifier: GPL-2.0-only
/*
 * A libvirt that outlives the service: libvirt's test driver has its VMs in the process, so that
 * a crash of the service would be one of libvirt, too.  Here each definition that the service
 * makes is written to a file of the folder MGPU_TEST_LIBVIRT, which is the truth, and read again
 * when a connection opens.  All else is the real host.c and the real test driver.
 *
 * The time of day is that of the machine and the seconds in the file MGPU_TEST_CLOCK, if any.
 */
#include <dirent.h>
#include <libvirt/libvirt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef crash_point
#include "crash.h"
#endif

virDomainPtr __real_virDomainDefineXML(virConnectPtr conn, const char *xml);
virDomainPtr __wrap_virDomainDefineXML(virConnectPtr conn, const char *xml);
virConnectPtr __real_virConnectOpenAuth(const char *name, virConnectAuthPtr auth,
					unsigned int flags);
virConnectPtr __wrap_virConnectOpenAuth(const char *name, virConnectAuthPtr auth,
					unsigned int flags);

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
time_t __wrap_time(time_t *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	const char *path = getenv("MGPU_TEST_CLOCK");
	FILE *f = path && clock == CLOCK_REALTIME ? fopen(path, "r") : NULL;
	int ret = __real_clock_gettime(clock, now);
	long long set;

	if (f && fscanf(f, "%lld", &set) == 1)
		now->tv_sec += set;
	if (f)
		fclose(f);
	return ret;
}

time_t __wrap_time(time_t *now)
{
	struct timespec t;

	__wrap_clock_gettime(CLOCK_REALTIME, &t);
	if (now)
		*now = t.tv_sec;
	return t.tv_sec;
}

static void keep(const char *name, const char *xml)
{
	char path[512], temporary[520];
	const char *folder = getenv("MGPU_TEST_LIBVIRT");
	FILE *f;

	if (!folder)
		return;
	snprintf(path, sizeof(path), "%s/%s.xml", folder, name);
	snprintf(temporary, sizeof(temporary), "%s.new", path);
	f = fopen(temporary, "w");
	if (!f || fputs(xml, f) < 0 || fclose(f) || rename(temporary, path))
		abort();
}

virDomainPtr __wrap_virDomainDefineXML(virConnectPtr conn, const char *xml)
{
	virDomainPtr vm;

	crash_point("libvirt");
	vm = __real_virDomainDefineXML(conn, xml);
	if (vm)
		keep(virDomainGetName(vm), xml);
	crash_point("libvirt-done");
	return vm;
}

static void define_kept(virConnectPtr conn, const char *path)
{
	static char xml[1 << 20];
	FILE *f = fopen(path, "r");
	virDomainPtr vm;
	size_t len;

	if (!f)
		return;
	len = fread(xml, 1, sizeof(xml) - 1, f);
	fclose(f);
	xml[len] = '\0';
	vm = __real_virDomainDefineXML(conn, xml);
	if (!vm)
		abort();
	virDomainFree(vm);
}

virConnectPtr __wrap_virConnectOpenAuth(const char *name, virConnectAuthPtr auth,
					unsigned int flags)
{
	virConnectPtr conn = __real_virConnectOpenAuth(name, auth, flags);
	const char *folder = getenv("MGPU_TEST_LIBVIRT");
	DIR *dir = conn && folder ? opendir(folder) : NULL;
	struct dirent *entry;
	char path[1024];

	while (dir && (entry = readdir(dir))) {
		size_t len = strlen(entry->d_name);

		if (len < 5 || strcmp(entry->d_name + len - 4, ".xml"))
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		define_kept(conn, path);
	}
	if (dir)
		closedir(dir);
	return conn;
}
