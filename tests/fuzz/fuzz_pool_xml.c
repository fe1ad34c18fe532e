// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fuzz what mgpu-poold reads of libvirt's XML, and what it writes.  The first byte of the input
 * selects: n a node device, d a domain, which then gets and loses a device, m the type of an mdev,
 * a an alias, p an address.  A text that is written is read back as it was.
 */
#include <errno.h>
#include <inttypes.h>

#include "fuzz.h"
#include "host.h"
#include "xml.h"

#define UUID	"83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"

#define ENDS(text)	FUZZ_ASSERT(memchr(text, '\0', sizeof(text)))

static void node(const char *text)
{
	struct xml_node n;
	unsigned int i;

	if (xml_node(text, &n))
		return;
	ENDS(n.name);
	ENDS(n.parent);
	ENDS(n.driver);
	ENDS(n.vendor_name);
	ENDS(n.product_name);
	FUZZ_ASSERT(n.nr_types <= XML_TYPES_MAX && n.group >= -1);
	for (i = 0; i < n.nr_types; i++)
		FUZZ_ASSERT(*n.types[i].id);
	if (n.kind == XML_PCI) {
		char name[XML_NAME_MAX];

		FUZZ_ASSERT(!xml_node_name(n.addr, name, sizeof(name)));
		for (i = 0; i < n.nr_members && i < XML_GROUP_MAX; i++)
			FUZZ_ASSERT(!xml_node_name(n.members[i], name, sizeof(name)));
	}
	FUZZ_ASSERT(n.kind != XML_MDEV || strlen(n.uuid) == POOL_UUID_MAX - 1);
}

struct count {
	unsigned int all, ours;
};

static int count(const struct xml_device *d, void *arg)
{
	struct count *c = arg;

	ENDS(d->alias);
	FUZZ_ASSERT(!*d->addr != !*d->uuid);
	c->all++;
	c->ours += d->request == 77 && d->function == 5;
	return 0;
}

static void domain(const char *text)
{
	struct count before = { 0, 0 }, more = { 0, 0 }, less = { 0, 0 };
	char *changed, *again, device[XML_HOSTDEV_MAX];

	if (xml_devices(text, count, &before))
		return;
	FUZZ_ASSERT(!xml_hostdev_pci("0000:41:00.1", 77, 5, true, device, sizeof(device)));
	if (xml_domain_add(text, device, &changed)) {
		FUZZ_ASSERT(!changed);
		return;
	}
	FUZZ_ASSERT(!xml_devices(changed, count, &more));
	FUZZ_ASSERT(more.all == before.all + 1 && more.ours == before.ours + 1);
	FUZZ_ASSERT(!xml_domain_remove(changed, "ua-mgpu-77-5", &again));
	FUZZ_ASSERT(!xml_devices(again, count, &less));
	FUZZ_ASSERT(less.ours == 0 && less.all == before.all - before.ours);
	free(changed);
	free(again);
}

/* A device that is made reads as one: its type is the text. */
static void mdev(const char *text)
{
	struct pool_request r = { .uuid = UUID, .weight = 300 };
	struct pool_gpu gpu = { .addr = "0000:00:10.0" };
	char xml[XML_MDEV_MAX];
	struct xml_node n;

	if (xml_mdev(&gpu, text, &r, xml, sizeof(xml)) || strlen(text) >= sizeof(n.type))
		return;
	if (xml_node(xml, &n))
		return;	/* XML has no way to write some control characters */
	FUZZ_ASSERT(n.kind == XML_MDEV && !strcmp(n.type, text));
	FUZZ_ASSERT(!strcmp(n.parent, "pci_0000_00_10_0") && !strcmp(n.uuid, UUID));
}

static void alias(const char *text)
{
	char again[POOL_NAME_MAX];
	unsigned int function;
	uint64_t request;

	if (!xml_alias(text, &request, &function))
		return;
	FUZZ_ASSERT(request && function <= 255);
	snprintf(again, sizeof(again), "ua-mgpu-%" PRIu64 "-", request);
	FUZZ_ASSERT(!strncmp(text, again, strlen(again)));
}

static void address(const char *text)
{
	char xml[XML_HOSTDEV_MAX], name[XML_NAME_MAX];

	FUZZ_ASSERT(!xml_hostdev_pci(text, 1, 0, false, xml, sizeof(xml)) ==
		    !xml_node_name(text, name, sizeof(name)));
	xml_hostdev_mdev(text, 1, xml, sizeof(xml));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	FUZZ_ASSERT(text);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	switch (*data) {
	case 'n':
		node(text);
		break;
	case 'd':
		domain(text);
		break;
	case 'm':
		mdev(text);
		break;
	case 'a':
		alias(text);
		break;
	case 'p':
		address(text);
		break;
	}
	free(text);
	return 0;
}

static void write_seeds(const char *dir)
{
	static const char *const seeds[] = {
		"n<device><name>pci_0000_41_00_0</name><parent>pci_0000_40_01_0</parent><driver><name>nouveau</name></driver><capability type='pci'><class>0x030000</class><domain>0</domain><bus>65</bus><slot>0</slot><function>0</function><product id='0x2684'>AD102</product><vendor id='0x10de'>NVIDIA</vendor><capability type='mdev_types'><type id='a'><availableInstances>4</availableInstances></type></capability><iommuGroup number='12'><address domain='0x0000' bus='0x41' slot='0x00' function='0x0'/></iommuGroup></capability></device>",
		"n<device><name>mdev_x</name><parent>computer</parent><capability type='mdev'><type id='t'/><uuid>"
		UUID
		"</uuid><parent_addr>mgpu_soft.0</parent_addr></capability></device>",
		"d<domain type='kvm'><name>a</name><devices><hostdev mode='subsystem' type='pci' managed='yes'><source><address domain='0x0000' bus='0x41' slot='0x00' function='0x0'/></source><alias name='ua-mgpu-7-0'/></hostdev><hostdev mode='subsystem' type='mdev'><source><address uuid='"
		UUID
		"'/></source></hostdev></devices></domain>",
		"d<domain/>",
		"mvirtio-pci-medium", "m<&'\">", "aua-mgpu-7-1", "p0000:41:00.1", ("p" UUID),
	};
	char name[16];
	size_t i;

	for (i = 0; i < sizeof(seeds) / sizeof(*seeds); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		fuzz_seed(dir, name, seeds[i], strlen(seeds[i]));
	}
}

FUZZ_SEEDS(write_seeds)
