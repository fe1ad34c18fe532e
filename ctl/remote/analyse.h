/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef REMOTE_ANALYSE_H
#define REMOTE_ANALYSE_H

#include <stdbool.h>

/* Find mgpu-defer in $PATH; @tool has PATH_MAX bytes for its path. */
bool analyse_tool(char *tool);

/*
 * Have mgpu-defer look at a program or library, for its next start, in a process of its own at the
 * lowest priority.  The process is not a child of the program, so that the program does not see it
 * end.  Without mgpu-defer in $PATH nothing is done.
 */
void analyse(const char *path);

#endif /* REMOTE_ANALYSE_H */
