/* SPDX-License-Identifier: GPL-2.0-only */
/* Users of a PCI function's GPU on the host: processes, and the text console. */
#ifndef LIBMGPU_PCI_USERS_H
#define LIBMGPU_PCI_USERS_H

#include <stdbool.h>
#include <stddef.h>

#include "pci.h"

/**
 * struct pci_users - users of a GPU
 * @nr: number of processes that have its files below /dev open
 * @names: the first of them, and the number of the others: "Xorg (pid 812), ... and 2 more"
 * @console: file that unbinds the text console from it; "" if that is not on it
 */
struct pci_users {
	size_t nr;
	char names[192];
	char console[96];
};

/**
 * pci_users_find() - find the users of a GPU's DRM nodes and frame buffers
 * @root: prefix of /sys and /proc, "" for the machine
 * @address: address of the PCI function
 * @users: result
 *
 * Processes of other users stay unseen without CAP_SYS_PTRACE.
 *
 * Return: whether there are any.
 */
bool pci_users_find(const char *root, const char *address, struct pci_users *users);

#endif /* LIBMGPU_PCI_USERS_H */
