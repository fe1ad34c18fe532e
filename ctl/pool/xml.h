/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Libvirt's XML, read and changed.  Texts that do not fit, entities and documents that are not
 * well-formed are refused.  xml_hostdev_pci(), xml_hostdev_mdev() and xml_mdev() of host.h are
 * here, too.
 */
#ifndef POOL_XML_H
#define POOL_XML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model.h"

#define XML_SIZE_MAX	(16 * 1024 * 1024)	/* of a document, bytes */
#define XML_HOSTDEV_MAX	1024			/* of a <hostdev> of ours, and its NUL */
#define XML_MDEV_MAX	2048			/* of a <device> of ours, and its NUL */
#define XML_NAME_MAX	128			/* of a node device, and its NUL */
#define XML_GROUP_MAX	32			/* functions of a group that are read */
#define XML_TYPES_MAX	64			/* types of mdevs that are read */

enum xml_kind { XML_OTHER, XML_PCI, XML_MDEV };

/**
 * struct xml_type - a type of mdevs that a parent offers
 * @id: name in sysfs, such as virtio-pci-medium
 * @available: devices of it that could be made now
 */
struct xml_type {
	char id[POOL_TYPE_MAX];
	unsigned int available;
};

/**
 * struct xml_node - a node device
 * @parent: node device above it
 * @driver: its driver on the host, "" for none
 * @class: PCI class, 24 bits
 * @addr: PCI address, DDDD:BB:SS.F
 * @vendor_name: as the host's list of PCI IDs has it, "" if it does not fit or is unknown
 * @product_name: likewise
 * @bridge: has the header of a PCI bridge
 * @group: IOMMU group, -1: none
 * @members: addresses of the group
 * @nr_members: number of them, which may exceed XML_GROUP_MAX
 * @uuid: of an mdev
 * @type: of an mdev
 * @parent_addr: of an mdev, as mdevctl has it; "" on old libvirt
 */
struct xml_node {
	enum xml_kind kind;
	char name[XML_NAME_MAX];
	char parent[XML_NAME_MAX];
	char driver[POOL_NAME_MAX];
	uint32_t class;
	char addr[POOL_ADDR_MAX];
	unsigned int vendor;
	unsigned int product;
	char vendor_name[XML_NAME_MAX];
	char product_name[XML_NAME_MAX];
	bool bridge;
	int group;
	char members[XML_GROUP_MAX][POOL_ADDR_MAX];
	unsigned int nr_members;
	struct xml_type types[XML_TYPES_MAX];
	unsigned int nr_types;
	char uuid[POOL_UUID_MAX];
	char type[POOL_TYPE_MAX];
	char parent_addr[POOL_NAME_MAX];
};

/**
 * struct xml_device - a <hostdev> of a domain
 * @alias: "" for none
 * @request: number of the pool's request in the alias, 0 if the device is not the pool's
 * @function: index of the function in the alias
 * @addr: PCI address, "" for an mdev
 * @uuid: UUID of an mdev, "" for a PCI function
 * @managed: libvirt takes the host's driver away, and brings it back
 */
struct xml_device {
	char alias[POOL_NAME_MAX];
	uint64_t request;
	unsigned int function;
	char addr[POOL_ADDR_MAX];
	char uuid[POOL_UUID_MAX];
	bool managed;
};

/* For the process, before threads use the rest. */
void xml_init(void);

/* Name of the node device of a PCI function, pci_DDDD_BB_SS_F. -EINVAL: no address. */
int xml_node_name(const char *addr, char *name, size_t size);

/* The request and function of an alias ua-mgpu-ID-FUNCTION; false if it is another's. */
bool xml_alias(const char *alias, uint64_t *request, unsigned int *function);

/**
 * xml_node() - read a node device
 * @xml: document
 * @node: result
 *
 * Return: 0; -EINVAL for what is no node device; -E2BIG for a name that does not fit, or too many
 * types.
 */
int xml_node(const char *xml, struct xml_node *node);

/**
 * xml_devices() - read the hostdevs of a domain
 * @xml: document
 * @fn: called for each PCI function and mdev; returns other than 0 to stop, which is returned
 * @arg: for @fn
 *
 * Devices whose texts do not fit are not the pool's, and left out.
 */
int xml_devices(const char *xml, int (*fn)(const struct xml_device *, void *), void *arg);
/* Whether it is of a domain that runs: 1, such a one has a number, or 0; -EINVAL for no domain. */
int xml_domain_runs(const char *xml);

/* A copy of a domain's XML with one more device, or without those of an alias; free() it. */
int xml_domain_add(const char *xml, const char *device, char **changed);
int xml_domain_remove(const char *xml, const char *alias, char **changed);

#endif /* POOL_XML_H */
