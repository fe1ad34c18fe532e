/* SPDX-License-Identifier: GPL-2.0-only */
/* Privileges of the process that answers HTTP clients. */
#ifndef METRICS_PRIVILEGES_H
#define METRICS_PRIVILEGES_H

#include <stdbool.h>

/**
 * privileges_drop() - give up all capabilities, and most system calls
 *
 * The parser of requests is what hostile clients reach. The process goes on with the sockets that
 * it has: it opens no file, makes no socket, starts nothing, sends no signal to another process,
 * and gets no memory that can be executed. Other system calls than those of a list fail with EPERM.
 *
 * Return: false after a complaint.
 */
bool privileges_drop(void);

#endif /* METRICS_PRIVILEGES_H */
