/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef LIBMGPU_NOTIFY_H
#define LIBMGPU_NOTIFY_H

/*
 * Tell a service manager that set NOTIFY_SOCKET, as sd_notify(3) does.  Waits for at most a
 * second if its queue is full.
 */
void notify(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif /* LIBMGPU_NOTIFY_H */
