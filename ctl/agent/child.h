/* SPDX-License-Identifier: GPL-2.0-only */
/* The process that works with the GPU. */
#ifndef AGENT_CHILD_H
#define AGENT_CHILD_H

#include <sys/types.h>

#include "hold.h"

/* Exit statuses of "run", as of env(1) and timeout(1), and EX_TEMPFAIL. */
#define CHILD_AGENT_FAILED	125
#define CHILD_NOT_EXECUTABLE	126
#define CHILD_NOT_FOUND		127
#define CHILD_QUEUED		75

/* Block the signals that are read; return their descriptor, -1 on an error. */
int child_signals(void);
/* Whether a signal to end is pending or was; drops the others. */
bool child_stopped(int signals);

/* Set MGPU_GPU and the others in the environment of what is started next. */
void child_environment(const struct hold *h);

/**
 * child_follow() - wait for a process, forward signals to it, and report use
 * @h: the GPU
 * @pid: the process
 * @signals: of child_signals()
 * @stop: set if a signal to end came
 *
 * A GPU that the service takes back ends the process by SIGTERM.
 *
 * Return: its exit status, 128 + the signal that ended it.
 */
int child_follow(struct hold *h, pid_t pid, int signals, bool *stop);

/* In the child: unblock signals, and end with the agent. */
void child_prepare(pid_t parent);

#endif /* AGENT_CHILD_H */
