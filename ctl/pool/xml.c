// SPDX-License-Identifier: GPL-2.0-only
/* Libvirt's XML: what the pool attaches, and what libvirt has. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libxml/parser.h>
#include <libxml/tree.h>
#include <libxml/xmlwriter.h>

#include "host.h"
#include "xml.h"

#define ALIAS		"ua-mgpu-"

/* libxml2's own characters; its texts are UTF-8. */
#define X(text)		((const xmlChar *)(text))

/**
 * struct address - address of a PCI function
 * @domain: 16 bits: a domain above is behind a VMD controller, whose devices go to no VM
 */
struct address {
	unsigned int domain, bus, slot, function;
};

void xml_init(void)
{
	xmlInitParser();
}

/* ---- writing ---- */

static int parse_address(const char *text, struct address *a)
{
	int end = 0;

	if (strlen(text) != strlen("DDDD:BB:SS.F") ||
	    strspn(text, "0123456789abcdefABCDEF:.") != 12 ||
	    sscanf(text, "%4x:%2x:%2x.%1x%n", &a->domain, &a->bus, &a->slot, &a->function,
		   &end) != 4 || end != 12 || a->slot > 0x1f || a->function > 7)
		return -EINVAL;
	return 0;
}

static int format_address(const struct address *a, char text[POOL_ADDR_MAX])
{
	if (a->domain > 0xffff || a->bus > 0xff || a->slot > 0x1f || a->function > 7)
		return -EINVAL;
	snprintf(text, POOL_ADDR_MAX, "%04x:%02x:%02x.%x", a->domain, a->bus, a->slot,
		 a->function);
	return 0;
}

int xml_node_name(const char *addr, char *name, size_t size)
{
	struct address a;

	if (parse_address(addr, &a))
		return -EINVAL;
	return (size_t)snprintf(name, size, "pci_%04x_%02x_%02x_%x", a.domain, a.bus, a.slot,
				a.function) < size ? 0 : -E2BIG;
}

static bool is_uuid(const char *text)
{
	size_t i;

	if (strlen(text) != POOL_UUID_MAX - 1)
		return false;
	for (i = 0; i < POOL_UUID_MAX - 1; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-' : !strchr("0123456789abcdefABCDEF", text[i]))
			return false;
	}
	return true;
}

/* A document in the making; an error of libxml2's, which is one of memory, sticks. */
struct writer {
	xmlBufferPtr buffer;
	xmlTextWriterPtr writer;
	bool bad;
};

static void writer_begin(struct writer *w)
{
	w->buffer = xmlBufferCreate();
	w->writer = w->buffer ? xmlNewTextWriterMemory(w->buffer, 0) : NULL;
	w->bad = !w->writer;
}

static void element(struct writer *w, const char *name)
{
	w->bad = w->bad || xmlTextWriterStartElement(w->writer, X(name)) < 0;
}

static void end(struct writer *w)
{
	w->bad = w->bad || xmlTextWriterEndElement(w->writer) < 0;
}

static void attribute(struct writer *w, const char *name, const char *value)
{
	w->bad = w->bad || xmlTextWriterWriteAttribute(w->writer, X(name), X(value)) < 0;
}

__attribute__((format(printf, 3, 4)))
static void attribute_of(struct writer *w, const char *name, const char *fmt, ...)
{
	char value[POOL_NAME_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(value, sizeof(value), fmt, ap);
	va_end(ap);
	attribute(w, name, value);
}

static void text_element(struct writer *w, const char *name, const char *text)
{
	w->bad = w->bad || xmlTextWriterWriteElement(w->writer, X(name), X(text)) < 0;
}

/* Copy the result, and free the rest. */
static int writer_end(struct writer *w, char *xml, size_t size)
{
	const char *text;
	int ret = -ENOMEM;

	if (!w->bad && xmlTextWriterEndDocument(w->writer) >= 0) {
		xmlTextWriterFlush(w->writer);
		text = (const char *)xmlBufferContent(w->buffer);
		ret = strlen(text) < size ? 0 : -E2BIG;
		if (!ret)
			strcpy(xml, text);
	}
	xmlFreeTextWriter(w->writer);
	xmlBufferFree(w->buffer);
	return ret;
}

static void write_alias(struct writer *w, uint64_t request, unsigned int function)
{
	element(w, "alias");
	attribute_of(w, "name", ALIAS "%" PRIu64 "-%u", request, function);
	end(w);
}

int xml_hostdev_pci(const char *addr, uint64_t request, unsigned int function, bool managed,
		    char *xml, size_t size)
{
	struct writer w;
	struct address a;

	if (parse_address(addr, &a))
		return -EINVAL;
	writer_begin(&w);
	element(&w, "hostdev");
	attribute(&w, "mode", "subsystem");
	attribute(&w, "type", "pci");
	attribute(&w, "managed", managed ? "yes" : "no");
	element(&w, "source");
	element(&w, "address");
	attribute_of(&w, "domain", "0x%04x", a.domain);
	attribute_of(&w, "bus", "0x%02x", a.bus);
	attribute_of(&w, "slot", "0x%02x", a.slot);
	attribute_of(&w, "function", "0x%x", a.function);
	end(&w);
	end(&w);
	write_alias(&w, request, function);
	return writer_end(&w, xml, size);
}

int xml_hostdev_mdev(const char *uuid, uint64_t request, char *xml, size_t size)
{
	struct writer w;

	if (!is_uuid(uuid))
		return -EINVAL;
	writer_begin(&w);
	element(&w, "hostdev");
	attribute(&w, "mode", "subsystem");
	attribute(&w, "type", "mdev");
	attribute(&w, "managed", "no");
	attribute(&w, "model", "vfio-pci");
	element(&w, "source");
	element(&w, "address");
	attribute(&w, "uuid", uuid);
	end(&w);
	end(&w);
	write_alias(&w, request, 0);
	return writer_end(&w, xml, size);
}

static void write_attr(struct writer *w, const char *name, uint32_t value)
{
	if (!value)
		return;
	element(w, "attr");
	attribute(w, "name", name);
	attribute_of(w, "value", "%" PRIu32, value);
	end(w);
}

int xml_mdev(const struct pool_gpu *gpu, const char *type, const struct pool_request *r,
	     char *xml, size_t size)
{
	char parent[XML_NAME_MAX];
	struct writer w;

	if (!is_uuid(r->uuid) || xml_node_name(gpu->addr, parent, sizeof(parent)) ||
	    !xmlCheckUTF8(X(type)))
		return -EINVAL;
	writer_begin(&w);
	element(&w, "device");
	text_element(&w, "parent", parent);
	element(&w, "capability");
	attribute(&w, "type", "mdev");
	element(&w, "type");
	attribute(&w, "id", type);
	end(&w);
	text_element(&w, "uuid", r->uuid);
	write_attr(&w, "mgpu/weight", r->weight);
	write_attr(&w, "mgpu/fps_floor", r->floor_mhz);
	return writer_end(&w, xml, size);
}

/* ---- reading ---- */

static xmlDocPtr parse(const char *xml)
{
	size_t size = strnlen(xml, XML_SIZE_MAX + 1);
	xmlDocPtr doc;

	if (size > XML_SIZE_MAX)
		return NULL;
	doc = xmlReadMemory(xml, (int)size, NULL, NULL,
			    XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	/* Libvirt declares no entities. */
	if (doc && (doc->intSubset || !xmlDocGetRootElement(doc))) {
		xmlFreeDoc(doc);
		return NULL;
	}
	return doc;
}

static bool is(const xmlNode *node, const char *name)
{
	return node->type == XML_ELEMENT_NODE && !strcmp((const char *)node->name, name);
}

/* The next child of that name behind @after, the first for NULL. */
static xmlNode *next_child(const xmlNode *node, const char *name, const xmlNode *after)
{
	xmlNode *child = after ? after->next : node ? node->children : NULL;

	while (child && !is(child, name))
		child = child->next;
	return child;
}

static xmlNode *child_of(const xmlNode *node, const char *name)
{
	return next_child(node, name, NULL);
}

/* Copy a text that libxml2 allocated, and free it; -E2BIG if it does not fit. */
static int take(xmlChar *value, char *text, size_t size)
{
	size_t len = value ? strlen((char *)value) : 0;
	int ret = 0;

	*text = '\0';
	if (len < size)
		memcpy(text, value ? (char *)value : "", len + 1);
	else
		ret = -E2BIG;
	xmlFree(value);
	return ret;
}

static int take_text(const xmlNode *node, char *text, size_t size)
{
	return take(node ? xmlNodeGetContent(node) : NULL, text, size);
}

static int take_attribute(const xmlNode *node, const char *name, char *text, size_t size)
{
	return take(node ? xmlGetNoNsProp(node, X(name)) : NULL, text, size);
}

/* A number in any of C's notations, "" is none. */
static int number(const char *text, unsigned long max, unsigned int *value)
{
	unsigned long n;
	char *tail;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	n = strtoul(text, &tail, 0);
	if (errno || *tail || n > max)
		return -EINVAL;
	*value = (unsigned int)n;
	return 0;
}

static int child_number(const xmlNode *node, const char *name, unsigned int *value)
{
	char text[32];

	if (take_text(child_of(node, name), text, sizeof(text)))
		return -EINVAL;
	return number(text, UINT32_MAX, value);
}

static int attribute_number(const xmlNode *node, const char *name, unsigned int *value)
{
	char text[32];

	if (take_attribute(node, name, text, sizeof(text)))
		return -EINVAL;
	return number(text, UINT32_MAX, value);
}

/* <address domain='0x0000' bus='0x41' slot='0x00' function='0x0'/> */
static int read_address(const xmlNode *node, char addr[POOL_ADDR_MAX])
{
	struct address a;

	if (!node || attribute_number(node, "domain", &a.domain) ||
	    attribute_number(node, "bus", &a.bus) || attribute_number(node, "slot", &a.slot) ||
	    attribute_number(node, "function", &a.function))
		return -EINVAL;
	return format_address(&a, addr);
}

static void read_ids(const xmlNode *node, unsigned int *id, char name[XML_NAME_MAX])
{
	if (!node || attribute_number(node, "id", id))
		*id = 0;
	take_text(node, name, XML_NAME_MAX);
}

static int read_types(const xmlNode *capability, struct xml_node *node)
{
	const xmlNode *type = NULL;

	while ((type = next_child(capability, "type", type))) {
		struct xml_type *t = &node->types[node->nr_types];

		if (node->nr_types == XML_TYPES_MAX ||
		    take_attribute(type, "id", t->id, sizeof(t->id)))
			return -E2BIG;
		if (!*t->id || child_number(type, "availableInstances", &t->available))
			return -EINVAL;
		node->nr_types++;
	}
	return 0;
}

static int read_group(const xmlNode *group, struct xml_node *node)
{
	const xmlNode *member = NULL;
	unsigned int number;

	if (attribute_number(group, "number", &number) || number > INT32_MAX)
		return -EINVAL;
	node->group = (int)number;
	for (node->nr_members = 0; (member = next_child(group, "address", member));
	     node->nr_members++)
		if (node->nr_members < XML_GROUP_MAX &&
		    read_address(member, node->members[node->nr_members]))
			return -EINVAL;
	return 0;
}

/* Capabilities within that of PCI: a bridge's header, and types of mdevs. */
static int read_nested(const xmlNode *capability, struct xml_node *node)
{
	const xmlNode *nested = NULL;
	char type[32];
	int ret = 0;

	while (!ret && (nested = next_child(capability, "capability", nested))) {
		if (take_attribute(nested, "type", type, sizeof(type)))
			continue;
		if (!strcmp(type, "pci-bridge"))
			node->bridge = true;
		else if (!strcmp(type, "mdev_types"))
			ret = read_types(nested, node);
	}
	return ret;
}

static int read_pci(const xmlNode *capability, struct xml_node *node)
{
	const xmlNode *group = child_of(capability, "iommuGroup");
	struct address a;

	node->kind = XML_PCI;
	if (child_number(capability, "domain", &a.domain) ||
	    child_number(capability, "bus", &a.bus) ||
	    child_number(capability, "slot", &a.slot) ||
	    child_number(capability, "function", &a.function) || format_address(&a, node->addr))
		return -EINVAL;
	/* Libvirt before 5.6 has no class. */
	if (child_number(capability, "class", &node->class))
		node->class = 0;
	read_ids(child_of(capability, "vendor"), &node->vendor, node->vendor_name);
	read_ids(child_of(capability, "product"), &node->product, node->product_name);
	node->bridge = node->class >> 8 == 0x0604;
	if (group && read_group(group, node))
		return -EINVAL;
	return read_nested(capability, node);
}

static int read_mdev(const xmlNode *capability, struct xml_node *node)
{
	node->kind = XML_MDEV;
	if (take_attribute(child_of(capability, "type"), "id", node->type, sizeof(node->type)) ||
	    take_text(child_of(capability, "uuid"), node->uuid, sizeof(node->uuid)) ||
	    take_text(child_of(capability, "parent_addr"), node->parent_addr,
		      sizeof(node->parent_addr)))
		return -E2BIG;
	return is_uuid(node->uuid) ? 0 : -EINVAL;
}

static int read_node(const xmlNode *root, struct xml_node *node)
{
	const xmlNode *capability = NULL;
	char type[32];

	if (!is(root, "device"))
		return -EINVAL;
	if (take_text(child_of(root, "name"), node->name, sizeof(node->name)) ||
	    take_text(child_of(root, "parent"), node->parent, sizeof(node->parent)) ||
	    take_text(child_of(child_of(root, "driver"), "name"), node->driver,
		      sizeof(node->driver)))
		return -E2BIG;
	while ((capability = next_child(root, "capability", capability))) {
		if (take_attribute(capability, "type", type, sizeof(type)))
			continue;
		if (!strcmp(type, "pci"))
			return read_pci(capability, node);
		if (!strcmp(type, "mdev"))
			return read_mdev(capability, node);
	}
	return 0;
}

int xml_node(const char *xml, struct xml_node *node)
{
	xmlDocPtr doc = parse(xml);
	int ret;

	memset(node, 0, sizeof(*node));
	node->group = -1;
	if (!doc)
		return -EINVAL;
	ret = read_node(xmlDocGetRootElement(doc), node);
	xmlFreeDoc(doc);
	return ret;
}

bool xml_alias(const char *alias, uint64_t *request, unsigned int *function)
{
	unsigned long long id;
	char *tail;

	*request = 0;
	*function = 0;
	if (strncmp(alias, ALIAS, strlen(ALIAS)))
		return false;
	alias += strlen(ALIAS);
	if (*alias < '1' || *alias > '9')
		return false;
	errno = 0;
	id = strtoull(alias, &tail, 10);
	if (errno || *tail != '-' || number(tail + 1, 255, function))
		return false;
	*request = id;
	return true;
}

/* A <hostdev>; -ENOENT for one that is neither a PCI function nor an mdev. */
static int read_hostdev(const xmlNode *hostdev, struct xml_device *device)
{
	const xmlNode *address = child_of(child_of(hostdev, "source"), "address");
	char type[32];

	memset(device, 0, sizeof(*device));
	if (!take_attribute(hostdev, "managed", type, sizeof(type)))
		device->managed = !strcmp(type, "yes");
	if (take_attribute(hostdev, "type", type, sizeof(type)) ||
	    take_attribute(child_of(hostdev, "alias"), "name", device->alias,
			   sizeof(device->alias)))
		return -ENOENT;
	xml_alias(device->alias, &device->request, &device->function);
	if (!strcmp(type, "pci"))
		return read_address(address, device->addr) ? -ENOENT : 0;
	if (strcmp(type, "mdev") ||
	    take_attribute(address, "uuid", device->uuid, sizeof(device->uuid)))
		return -ENOENT;
	return is_uuid(device->uuid) ? 0 : -ENOENT;
}

static xmlNode *devices_of(xmlDocPtr doc)
{
	xmlNode *root = xmlDocGetRootElement(doc);

	return is(root, "domain") ? child_of(root, "devices") : NULL;
}

int xml_devices(const char *xml, int (*fn)(const struct xml_device *, void *), void *arg)
{
	xmlDocPtr doc = parse(xml);
	const xmlNode *hostdev = NULL;
	const xmlNode *devices;
	struct xml_device device;
	int ret = 0;

	if (!doc)
		return -EINVAL;
	devices = devices_of(doc);
	while (!ret && devices && (hostdev = next_child(devices, "hostdev", hostdev)))
		if (!read_hostdev(hostdev, &device))
			ret = fn(&device, arg);
	xmlFreeDoc(doc);
	return ret;
}

int xml_domain_runs(const char *xml)
{
	xmlDocPtr doc = parse(xml);
	xmlNode *root = doc ? xmlDocGetRootElement(doc) : NULL;
	int ret = -EINVAL;

	if (root && is(root, "domain"))
		ret = !!xmlHasProp(root, (const xmlChar *)"id");
	xmlFreeDoc(doc);
	return ret;
}

/* ---- changing ---- */

/* Print a document, and free it. */
static int print(xmlDocPtr doc, char **changed)
{
	xmlChar *text = NULL;
	int size = 0;

	xmlDocDumpMemory(doc, &text, &size);
	*changed = text ? strdup((char *)text) : NULL;
	xmlFree(text);
	xmlFreeDoc(doc);
	return *changed ? 0 : -ENOMEM;
}

int xml_domain_add(const char *xml, const char *device, char **changed)
{
	xmlDocPtr doc = parse(xml), part = parse(device);
	xmlNode *devices, *copy = NULL;

	*changed = NULL;
	if (!doc || !part || !is(xmlDocGetRootElement(doc), "domain")) {
		xmlFreeDoc(doc);
		xmlFreeDoc(part);
		return -EINVAL;
	}
	devices = devices_of(doc);
	if (!devices)
		devices = xmlNewChild(xmlDocGetRootElement(doc), NULL, X("devices"), NULL);
	if (devices)
		copy = xmlDocCopyNode(xmlDocGetRootElement(part), doc, 1);
	xmlFreeDoc(part);
	if (!copy || !xmlAddChild(devices, copy)) {
		xmlFreeNode(copy);
		xmlFreeDoc(doc);
		return -ENOMEM;
	}
	return print(doc, changed);
}

int xml_domain_remove(const char *xml, const char *alias, char **changed)
{
	xmlDocPtr doc = parse(xml);
	xmlNode *hostdev, *next;
	struct xml_device device;
	xmlNode *devices;

	*changed = NULL;
	devices = doc ? devices_of(doc) : NULL;
	if (!devices) {
		xmlFreeDoc(doc);
		return -EINVAL;
	}
	for (hostdev = child_of(devices, "hostdev"); hostdev; hostdev = next) {
		next = next_child(devices, "hostdev", hostdev);
		if (read_hostdev(hostdev, &device) || strcmp(device.alias, alias))
			continue;
		xmlUnlinkNode(hostdev);
		xmlFreeNode(hostdev);
	}
	return print(doc, changed);
}
