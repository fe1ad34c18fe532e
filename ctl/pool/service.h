/* SPDX-License-Identifier: GPL-2.0-only */
/* The service: all parts in one loop. */
#ifndef POOL_SERVICE_H
#define POOL_SERVICE_H

/**
 * service_run() - serve until a signal ends it
 * @path: configuration file
 * @must: it must be there
 *
 * SIGTERM and SIGINT end it, SIGHUP has it read the file again. Complains.
 *
 * Return: the exit status.
 */
int service_run(const char *path, int must);

/* Exit statuses of mgpu-poold. */
#define STATUS_FAILED	1
#define STATUS_USAGE	2
#define STATUS_CONFIG	3

#endif /* POOL_SERVICE_H */
