/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes for programs in a VM, which a worker of mgpu-renderd asks for. */
#ifndef REMOTE_LAUNCH_H
#define REMOTE_LAUNCH_H

/* Descriptor of the socket to the worker. */
#define LAUNCH_CONTROL	3

/**
 * launch() - start processes for programs, as a worker asks for them
 * @argc: length of @argv
 * @argv: arguments of this process; those of a program's process are made from them
 * @most: programs at a time
 *
 * The worker sends a byte for each program.  The answer is a byte that comes with two files: the
 * connection to the program's process, and the reader of what server.rests tells.  Both do not
 * block.  Without files the process could not be started.
 *
 * Return: 0 when the worker has ended, or a negative errno.
 */
int launch(int argc, char **argv, unsigned int most);

#endif /* REMOTE_LAUNCH_H */
