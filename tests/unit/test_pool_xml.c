// SPDX-License-Identifier: GPL-2.0-only
/* XML of libvirt: what the pool writes, and what it reads. */
#include <stdlib.h>

#include "host.h"
#include "tap.h"
#include "xml.h"

#define UUID	"83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"

static void pci(void)
{
	char xml[XML_HOSTDEV_MAX];

	TAP_EQ(xml_hostdev_pci("0000:41:00.1", 17, 1, true, xml, sizeof(xml)), 0);
	TAP_STR(xml,
		"<hostdev mode=\"subsystem\" type=\"pci\" managed=\"yes\"><source><address domain=\"0x0000\" bus=\"0x41\" slot=\"0x00\" function=\"0x1\"/></source><alias name=\"ua-mgpu-17-1\"/></hostdev>\n");
	TAP_EQ(xml_hostdev_pci("00ab:0c:1f.7", UINT64_MAX, 7, false, xml, sizeof(xml)), 0);
	TAP_CHECK(strstr(xml, "managed=\"no\""));
	TAP_CHECK(strstr(xml, "domain=\"0x00ab\" bus=\"0x0c\" slot=\"0x1f\" function=\"0x7\""));
	TAP_CHECK(strstr(xml, "ua-mgpu-18446744073709551615-7"));
}

static void pci_bad(void)
{
	static const char *const bad[] = {
		"", "0000:41:00", "0000:41:00.8", "0000:41:20.0", "41:00.0", "0000:41:00.0 ",
		"0000:41:00.0'/>", "mgpu_soft.0", "10000:41:00.0", "0000-41-00.0", "0000:4:00.00",
	};
	char xml[XML_HOSTDEV_MAX], name[XML_NAME_MAX];
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		TAP_EQ(xml_hostdev_pci(bad[i], 1, 0, true, xml, sizeof(xml)), -EINVAL);
		TAP_EQ(xml_node_name(bad[i], name, sizeof(name)), -EINVAL);
	}
	TAP_EQ(xml_hostdev_pci("0000:41:00.0", 1, 0, true, xml, 100), -E2BIG);
	TAP_EQ(xml_node_name("0000:41:00.0", name, sizeof(name)), 0);
	TAP_STR(name, "pci_0000_41_00_0");
	TAP_EQ(xml_node_name("0000:41:00.0", name, 10), -E2BIG);
}

static void mdev(void)
{
	static const char *const bad[] = {
		"83b8f4f2-509f-382f-3c1e-e6bfe0fa100g", "83b8f4f2:509f-382f-3c1e-e6bfe0fa1001",
	};
	char xml[XML_HOSTDEV_MAX];
	size_t i;

	TAP_EQ(xml_hostdev_mdev(UUID, 3, xml, sizeof(xml)), 0);
	TAP_STR(xml,
		"<hostdev mode=\"subsystem\" type=\"mdev\" managed=\"no\" model=\"vfio-pci\"><source><address uuid=\""
		UUID
		"\"/></source><alias name=\"ua-mgpu-3-0\"/></hostdev>\n");
	TAP_EQ(xml_hostdev_mdev("'/><x", 3, xml, sizeof(xml)), -EINVAL);
	for (i = 0; i < 2; i++)
		TAP_EQ(xml_hostdev_mdev(bad[i], 3, xml, sizeof(xml)), -EINVAL);
	TAP_EQ(xml_hostdev_mdev(UUID "0", 3, xml, sizeof(xml)), -EINVAL);
}

static void mdev_node(void)
{
	struct pool_request r = { .uuid = UUID, .weight = 300, .floor_mhz = 20000 };
	struct pool_gpu gpu = { .addr = "0000:00:10.0" };
	char xml[XML_MDEV_MAX];

	TAP_EQ(xml_mdev(&gpu, "virtio-pci-medium", &r, xml, sizeof(xml)), 0);
	TAP_STR(xml,
		"<device><parent>pci_0000_00_10_0</parent><capability type=\"mdev\"><type id=\"virtio-pci-medium\"/><uuid>"
		UUID
		"</uuid><attr name=\"mgpu/weight\" value=\"300\"/><attr name=\"mgpu/fps_floor\" value=\"20000\"/></capability></device>\n");
	r.weight = r.floor_mhz = 0;
	TAP_EQ(xml_mdev(&gpu, "a<b&\"c'", &r, xml, sizeof(xml)), 0);
	TAP_CHECK(strstr(xml, "<type id=\"a&lt;b&amp;&quot;c'\"/>"));
	TAP_CHECK(!strstr(xml, "attr"));
	TAP_EQ(xml_mdev(&gpu, "bad\xff", &r, xml, sizeof(xml)), -EINVAL);
	strcpy(gpu.addr, "mgpu_soft.0");
	TAP_EQ(xml_mdev(&gpu, "x", &r, xml, sizeof(xml)), -EINVAL);
}

static void alias(void)
{
	static const char *const bad[] = {
		"", "hostdev0", "ua-mgpu-", "ua-mgpu-1", "ua-mgpu-1-", "ua-mgpu--1-0", "ua-mgpu-0-0",
		"ua-mgpu-01-0", "ua-mgpu-1-x", "ua-mgpu-1-0x", "ua-mgpu-1-256", "ua-mgpu- 1-0",
		"ua-mgpu-99999999999999999999-0", "ua-mgpu-1--1", "xua-mgpu-1-0",
	};
	unsigned int function;
	uint64_t request;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		TAP_CHECK(!xml_alias(bad[i], &request, &function));
		TAP_EQ(request, 0);
	}
	TAP_CHECK(xml_alias("ua-mgpu-18446744073709551615-7", &request, &function));
	TAP_CHECK(request == UINT64_MAX && function == 7);
}

static const char gpu_node[] =
	"<device><name>pci_0000_41_00_0</name><path>/sys/x</path><parent>pci_0000_40_01_0</parent>\n"
	"<driver><name>nouveau</name></driver><capability type='pci'><class>0x030000</class>\n"
	"<domain>0</domain><bus>65</bus><slot>0</slot><function>0</function>\n"
	"<product id='0x2684'>AD102 [GeForce RTX 4090]</product><vendor id='0x10de'>NVIDIA &amp; Co</vendor>\n"
	"<capability type='mdev_types'>\n"
	"<type id='a'><name>A</name><deviceAPI>vfio-pci</deviceAPI><availableInstances>4</availableInstances></type>\n"
	"<type id='b'><deviceAPI>vfio-pci</deviceAPI><availableInstances>0</availableInstances></type>\n"
	"</capability>\n"
	"<iommuGroup number='12'><address domain='0x0000' bus='0x41' slot='0x00' function='0x0'/>\n"
	"<address domain='0x0000' bus='0x41' slot='0x00' function='0x1'/></iommuGroup>\n"
	"<pci-express/></capability></device>";

static void node(void)
{
	struct xml_node n;

	TAP_EQ(xml_node(gpu_node, &n), 0);
	TAP_EQ(n.kind, XML_PCI);
	TAP_STR(n.name, "pci_0000_41_00_0");
	TAP_STR(n.parent, "pci_0000_40_01_0");
	TAP_STR(n.driver, "nouveau");
	TAP_EQ(n.class, 0x030000);
	TAP_STR(n.addr, "0000:41:00.0");
	TAP_EQ(n.vendor, 0x10de);
	TAP_EQ(n.product, 0x2684);
	TAP_STR(n.vendor_name, "NVIDIA & Co");
	TAP_STR(n.product_name, "AD102 [GeForce RTX 4090]");
	TAP_CHECK(!n.bridge);
	TAP_EQ(n.group, 12);
	TAP_EQ(n.nr_members, 2);
	TAP_STR(n.members[1], "0000:41:00.1");
	TAP_EQ(n.nr_types, 2);
	TAP_STR(n.types[0].id, "a");
	TAP_EQ(n.types[0].available, 4);
	TAP_EQ(n.types[1].available, 0);
}

static void mdev_read(void)
{
	struct xml_node n;

	TAP_EQ(xml_node("<device><name>mdev_x</name><parent>pci_0000_00_10_0</parent>\n"
			"<driver><name>vfio_mdev</name></driver><capability type='mdev'><type id='t'/>\n"
			"<uuid>" UUID "</uuid><parent_addr>0000:00:10.0</parent_addr>\n"
			"<iommuGroup number='3'/></capability></device>", &n), 0);
	TAP_EQ(n.kind, XML_MDEV);
	TAP_STR(n.uuid, UUID);
	TAP_STR(n.type, "t");
	TAP_STR(n.parent_addr, "0000:00:10.0");
	TAP_EQ(n.group, -1);
	TAP_EQ(xml_node("<device><capability type='mdev'><uuid>x</uuid></capability></device>", &n),
	       -EINVAL);
}

/* Print a document in @text with @part in place of @of. */
static char *with(const char *text, const char *of, const char *part)
{
	const char *at = strstr(text, of);
	char *result = NULL;

	if (!at || asprintf(&result, "%.*s%s%s", (int)(at - text), text, part, at + strlen(of)) < 0)
		abort();
	return result;
}

static int node_with(const char *of, const char *part, struct xml_node *n)
{
	char *xml = with(gpu_node, of, part);
	int ret = xml_node(xml, n);

	free(xml);
	return ret;
}

static void node_bad(void)
{
	char *many = calloc(1, 1 << 20), *long_name = calloc(1, 200);
	struct xml_node n;
	int i;

	TAP_EQ(xml_node("", &n), -EINVAL);
	TAP_EQ(xml_node("<device>", &n), -EINVAL);
	TAP_EQ(xml_node("<domain/>", &n), -EINVAL);
	TAP_EQ(xml_node("<!DOCTYPE d [<!ENTITY e 'x'>]><device><name>&e;</name></device>",
			&n), -EINVAL);
	TAP_EQ(xml_node("<device/>", &n), 0);
	TAP_EQ(n.kind, XML_OTHER);
	TAP_EQ(node_with("<slot>0<", "<slot>32<", &n), -EINVAL);
	TAP_EQ(node_with("<function>0<", "<function>8<", &n), -EINVAL);
	TAP_EQ(node_with("<bus>65<", "<bus>256<", &n), -EINVAL);
	TAP_EQ(node_with("<domain>0<", "<domain>65536<", &n), -EINVAL);
	TAP_EQ(node_with("<domain>0<", "<domain>-1<", &n), -EINVAL);
	TAP_EQ(node_with("function='0x1'", "function='0x9'", &n), -EINVAL);
	TAP_EQ(node_with("function='0x1'", "", &n), -EINVAL);
	TAP_EQ(node_with("number='12'", "number='4294967295'", &n), -EINVAL);
	TAP_EQ(node_with("<availableInstances>4<", "<availableInstances>many<", &n), -EINVAL);
	/* Unknown elements do no harm. */
	TAP_EQ(node_with("0x030000", "", &n), 0);
	TAP_EQ(n.class, 0);
	TAP_EQ(node_with("id='0x10de'", "", &n), 0);
	TAP_EQ(n.vendor, 0);
	memset(long_name, 'n', 150);
	TAP_EQ(node_with("AD102 [GeForce RTX 4090]", long_name, &n), 0);
	TAP_STR(n.product_name, "");
	TAP_EQ(node_with("pci_0000_41_00_0", long_name, &n), -E2BIG);
	TAP_EQ(node_with("nouveau", long_name, &n), -E2BIG);
	TAP_EQ(node_with("type id='a'", "type id=''", &n), -EINVAL);
	for (i = 0; i < 100; i++)
		strcat(many, "<address domain='0x0000' bus='0x41' slot='0x00' function='0x1'/>");
	strcat(many, "</iommuGroup>");
	TAP_EQ(node_with("</iommuGroup>", many, &n), 0);
	TAP_EQ(n.nr_members, 102);
	*many = '\0';
	for (i = 0; i < 100; i++)
		strcat(many, "<type id='t'><availableInstances>1</availableInstances></type>");
	strcat(many, "<type id='a'>");
	TAP_EQ(node_with("<type id='a'>", many, &n), -E2BIG);
	TAP_EQ(n.nr_types, XML_TYPES_MAX);
	free(many);
	free(long_name);
}

static void bridge(void)
{
	struct xml_node n;

	TAP_EQ(node_with("0x030000", "0x060400", &n), 0);
	TAP_CHECK(n.bridge);
	TAP_EQ(node_with("<capability type='mdev_types'>",
			 "<capability type='pci-bridge'/><capability type='mdev_types'>",
			 &n), 0);
	TAP_CHECK(n.bridge);
	TAP_EQ(node_with("0x030000", "0x060000", &n), 0);
	TAP_CHECK(!n.bridge);
}

static const char domain[] =
	"<domain type='kvm'><name>a</name><devices><disk/>\n"
	"<hostdev mode='subsystem' type='pci' managed='yes'><driver name='vfio'/><source>\n"
	"<address domain='0x0000' bus='0x41' slot='0x00' function='0x0'/></source>\n"
	"<alias name='ua-mgpu-7-0'/><address type='pci' domain='0x0000' bus='0x05' slot='0x00' function='0x0'/></hostdev>\n"
	"<hostdev mode='subsystem' type='usb'><source><vendor id='0x1'/></source><alias name='ua-mgpu-7-3'/></hostdev>\n"
	"<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address uuid='"
	UUID
	"'/></source>\n"
	"<alias name='hostdev1'/></hostdev>\n"
	"<hostdev mode='subsystem' type='mdev' model='vfio-pci'><source><address uuid='x'/></source></hostdev>\n"
	"<hostdev mode='subsystem' type='pci'><source/></hostdev>\n"
	"</devices></domain>";

static struct xml_device seen[8];
static int nr_seen;

static int see(const struct xml_device *device, void *arg)
{
	seen[nr_seen++] = *device;
	return arg ? *(int *)arg : 0;
}

static void devices(void)
{
	int stop = -5;

	TAP_EQ(xml_devices(domain, see, NULL), 0);
	TAP_EQ(nr_seen, 2);
	TAP_STR(seen[0].addr, "0000:41:00.0");
	TAP_STR(seen[0].alias, "ua-mgpu-7-0");
	TAP_EQ(seen[0].request, 7);
	TAP_CHECK(seen[0].managed);
	TAP_STR(seen[1].uuid, UUID);
	TAP_EQ(seen[1].request, 0);
	TAP_CHECK(!seen[1].managed);
	nr_seen = 0;
	TAP_EQ(xml_devices(domain, see, &stop), -5);
	TAP_EQ(nr_seen, 1);
	TAP_EQ(xml_devices("<domain/>", see, NULL), 0);
	TAP_EQ(xml_domain_runs("<domain type='kvm' id='3'/>"), 1);
	TAP_EQ(xml_domain_runs("<domain type='kvm'/>"), 0);
	TAP_EQ(xml_domain_runs("<device id='3'/>"), -EINVAL);
	TAP_EQ(xml_domain_runs("<domain id='3'>"), -EINVAL);
	TAP_EQ(xml_devices("<device><devices><hostdev type='pci'/></devices></device>",
			   see, NULL), 0);
	TAP_EQ(xml_devices("<domain><devices>", see, NULL), -EINVAL);
}

static void changes(void)
{
	char device[XML_HOSTDEV_MAX];
	char *more, *less;

	TAP_EQ(xml_hostdev_pci("0000:41:00.1", 7, 1, true, device, sizeof(device)), 0);
	TAP_EQ(xml_domain_add(domain, device, &more), 0);
	TAP_EQ(xml_devices(more, see, NULL), 0);
	TAP_EQ(nr_seen, 3);
	TAP_STR(seen[2].alias, "ua-mgpu-7-1");
	TAP_EQ(xml_domain_remove(more, "ua-mgpu-7-0", &less), 0);
	nr_seen = 0;
	TAP_EQ(xml_devices(less, see, NULL), 0);
	TAP_EQ(nr_seen, 2);
	TAP_STR(seen[1].alias, "ua-mgpu-7-1");
	TAP_CHECK(strstr(less, "ua-mgpu-7-3") && strstr(less, "<disk/>"));
	free(more);
	free(less);
	TAP_EQ(xml_domain_add("<domain><name>x</name></domain>", device, &more), 0);
	nr_seen = 0;
	TAP_EQ(xml_devices(more, see, NULL), 0);
	TAP_EQ(nr_seen, 1);
	free(more);
	TAP_EQ(xml_domain_add("<device/>", device, &more), -EINVAL);
	TAP_EQ(xml_domain_add(domain, "<hostdev", &more), -EINVAL);
	TAP_EQ(xml_domain_remove("<domain/>", "x", &less), -EINVAL);
	TAP_CHECK(!more && !less);
}

int main(void)
{
	xml_init();
	tap_run(pci, "a hostdev names a PCI function in libvirt's notation");
	tap_run(pci_bad, "what is no address of a PCI function is refused");
	tap_run(mdev, "a hostdev names an mdev, and nothing but a UUID");
	tap_run(mdev_node, "an mdev's node device has its attributes, and every text escaped");
	tap_run(alias, "an alias of the pool's is told from others");
	tap_run(node, "a GPU's node device is read");
	tap_run(mdev_read, "an mdev's node device is read");
	tap_run(node_bad, "a node device that is malformed or too long is refused");
	tap_run(bridge, "bridges are told from endpoints");
	tap_run(devices, "PCI functions and mdevs of a domain are read");
	tap_run(changes, "a device is added to a domain, and taken out by its alias");
	return tap_done();
}
