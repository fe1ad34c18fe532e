/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The process of "watch" that looks at GPUs which the VM has, but which no run or job of the agent
 * asked for: requests by hand, or by people on the service's page. It reports their use and tells
 * of warnings.
 */
#ifndef AGENT_REPORTER_H
#define AGENT_REPORTER_H

#include <sys/types.h>

#include "conf.h"

/* Start the process; it ends with its parent. Return -1 on an error; complains. */
pid_t reporter_start(const struct conf *conf);
void reporter_stop(pid_t pid);

#endif /* AGENT_REPORTER_H */
