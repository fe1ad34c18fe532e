/* SPDX-License-Identifier: GPL-2.0-only */
/* mgpu-poold check: whether hosts can give GPUs to VMs, and how to mend what they lack. */
#ifndef POOL_CHECK_H
#define POOL_CHECK_H

#include "model.h"

enum check_level { CHECK_OK, CHECK_WARNING, CHECK_ERROR };

/**
 * struct check_line - a result
 * @what: iommu, parameters, modules, libvirt, gpu, parent, vms
 * @text: what was found
 * @mend: how to mend it, "" for nothing
 */
struct check_line {
	char host[POOL_NAME_MAX];
	const char *what;
	enum check_level level;
	char text[POOL_TEXT_MAX];
	char mend[POOL_TEXT_MAX];
};

/**
 * check_hosts() - look at hosts, one by one
 * @hosts: hosts; what only sysfs tells is looked at where libvirt's URI is of this machine
 * @nr: number of them
 * @fn: called for each result
 * @arg: for @fn
 *
 * Return: the worst level.
 */
enum check_level check_hosts(const struct pool_host *hosts, size_t nr,
			     void (*fn)(const struct check_line *line, void *arg), void *arg);

/* Print the results, with @json as an object with "lines" and "level". Returns the exit status. */
int check_command(const struct pool_host *hosts, size_t nr, bool json);

#endif /* POOL_CHECK_H */
