// SPDX-License-Identifier: GPL-2.0-only
/*
 * libvirtd is preloaded with it: its test driver's VMs outlive connections and the daemon, as those
 * of pool_persist.c outlive the service.
 */
#include <dlfcn.h>

#define crash_point(name)	((void)(name))
#include "pool_persist.c"

/* The next definition of a function of libvirt's. */
static void *next(const char *name)
{
	void *fn = dlsym(RTLD_NEXT, name);

	if (!fn)
		abort();
	return fn;
}

virDomainPtr __real_virDomainDefineXML(virConnectPtr conn, const char *xml)
{
	virDomainPtr (*define)(virConnectPtr conn, const char *xml);

	*(void **)&define = next("virDomainDefineXML");
	return define(conn, xml);
}

virConnectPtr __real_virConnectOpenAuth(const char *name, virConnectAuthPtr auth,
					unsigned int flags)
{
	virConnectPtr (*open)(const char *name, virConnectAuthPtr auth, unsigned int flags);

	*(void **)&open = next("virConnectOpenAuth");
	return open(name, auth, flags);
}

virDomainPtr virDomainDefineXML(virConnectPtr conn, const char *xml)
{
	return __wrap_virDomainDefineXML(conn, xml);
}

virConnectPtr virConnectOpenAuth(const char *name, virConnectAuthPtr auth, unsigned int flags)
{
	return __wrap_virConnectOpenAuth(name, auth, flags);
}
