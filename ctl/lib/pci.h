/* SPDX-License-Identifier: GPL-2.0-only */
/* PCI functions of the host. */
#ifndef LIBMGPU_PCI_H
#define LIBMGPU_PCI_H

#include <stdbool.h>

#include "mgpu.h"

#define PCI_ADDRESS_LEN		64
#define PCI_DEVICES		"/sys/bus/pci/devices"

/**
 * pci_parse_address() - parse the address of a PCI function
 * @text: address with or without its domain, as in 0000:03:00.0 or 03:00.0
 * @address: result, with the domain
 *
 * Return: false when @text is not an address.
 */
bool pci_parse_address(const char *text, char address[PCI_ADDRESS_LEN]);

/*
 * Read the name of the driver to which the link "driver" in the folder @dir of sysfs points;
 * "" if there is none.
 */
void pci_read_driver(const char *dir, char driver[PCI_ADDRESS_LEN]);

/**
 * pci_render_node() - find the render node of a GPU
 * @root: prefix of /sys, "" for the machine
 * @text: address of the PCI function, with or without its domain
 * @address: set to the address with its domain
 * @node: set to the path of the node, as in /dev/dri/renderD128
 * @err: sentence about an error
 *
 * Return: 0; -EINVAL, not an address; -ENODEV, no such function, or one without a render
 * node.
 */
int pci_render_node(const char *root, const char *text, char address[PCI_ADDRESS_LEN],
		    char node[PCI_ADDRESS_LEN], struct mgpu_error *err);

/**
 * pci_of_render_node() - find the GPU of a render node
 * @root: prefix of /sys, "" for the machine
 * @node: path of the node, without links
 * @address: set to the address of the PCI function
 *
 * Return: false when the node is not one of a PCI function.
 */
bool pci_of_render_node(const char *root, const char *node, char address[PCI_ADDRESS_LEN]);

/* List the GPUs that have render nodes: "0000:03:00.0 (renderD128), ..."; "" for none. */
void pci_list_render_nodes(const char *root, char *list, size_t size);

#endif /* LIBMGPU_PCI_H */
