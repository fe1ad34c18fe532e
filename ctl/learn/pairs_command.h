/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MGPU_LEARN_PAIRS_COMMAND_H
#define MGPU_LEARN_PAIRS_COMMAND_H

/* mgpu-learn pairs: @argv[0] is "pairs". Prints its own errors and returns the exit status. */
int pairs_command(int argc, char **argv);

#endif /* MGPU_LEARN_PAIRS_COMMAND_H */
