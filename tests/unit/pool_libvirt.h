/* SPDX-License-Identifier: GPL-2.0-only */
/* Hosts of libvirt's test driver, whose state is the process's: VMs that are off, and GPUs. */
#ifndef TESTS_UNIT_POOL_LIBVIRT_H
#define TESTS_UNIT_POOL_LIBVIRT_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* A PCI function in a group with the functions 0 to @functions - 1 of the slot. */
static void write_function(FILE *f, unsigned int bus, unsigned int function, unsigned int functions,
			   const char *class)
{
	unsigned int i;

	fprintf(f, "<device><name>pci_0000_%02x_00_%u</name><parent>computer</parent>\n"
		"<capability type='pci'><class>%s</class><domain>0</domain><bus>%u</bus><slot>0</slot>\n"
		"<function>%u</function><product id='0x2684'>AD102 [GeForce RTX 4090]</product>\n"
		"<vendor id='0x10de'>NVIDIA Corporation</vendor><iommuGroup number='%u'>",
		bus, function, class, bus, function, bus);
	for (i = 0; i < functions; i++)
		fprintf(f,
			"<address domain='0x0000' bus='0x%02x' slot='0x00' function='0x%x'/>", bus,
			i);
	fprintf(f, "</iommuGroup></capability></device>");
}

/**
 * write_test_host() - write the file of a host: its URI is test://PATH
 * @path: result, of mkstemp()
 * @gpus: GPUs 0000:01:00.0 and up, with an audio function .1 each
 * @vms: VMs vm0 and up, which are off
 */
__attribute__((unused))
static void write_test_host(char path[64], unsigned int gpus, unsigned int vms)
{
	unsigned int i;
	FILE *f;
	int fd;

	strcpy(path, "/tmp/test_pool_XXXXXX");
	fd = mkstemp(path);
	f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f)
		abort();
	fprintf(f, "<node><device><name>computer</name><capability type='system'><hardware>\n"
		"<uuid>11111111-1111-1111-1111-111111111111</uuid></hardware><firmware/></capability>\n"
		"</device>");
	for (i = 0; i < vms; i++)
		fprintf(f,
			"<domain type='test' xmlns:test='http://libvirt.org/schemas/domain/test/1.0'>\n"
			"<name>vm%u</name><uuid>6695eb01-f6a4-8304-79aa-%012x</uuid><memory>8388608</memory>\n"
			"<vcpu>2</vcpu><os><type>hvm</type></os><test:runstate>5</test:runstate></domain>",
			i, i + 1);
	for (i = 1; i <= gpus; i++) {
		write_function(f, i, 0, 2, "0x030000");
		write_function(f, i, 1, 2, "0x040300");
	}
	fprintf(f, "</node>");
	fclose(f);
}

#endif /* TESTS_UNIT_POOL_LIBVIRT_H */
