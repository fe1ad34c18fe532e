/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A thread that is not scheduled in a poll() until its time is over, while what it waits for
 * comes; for a test that is linked with --wrap=poll.
 */
#ifndef TEST_LATE_POLL_H
#define TEST_LATE_POLL_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <unistd.h>

/* The next poll() of this thread that waits is such a one. */
static _Thread_local bool late_poll;

int __real_poll(struct pollfd *fds, nfds_t nr, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout_ms);

int __wrap_poll(struct pollfd *fds, nfds_t nr, int timeout_ms)
{
	if (!late_poll || timeout_ms <= 0)
		return __real_poll(fds, nr, timeout_ms);
	late_poll = false;
	usleep((useconds_t)timeout_ms * 1000);
	__real_poll(fds, nr, -1);
	errno = EINTR;
	return -1;
}

#endif /* TEST_LATE_POLL_H */
