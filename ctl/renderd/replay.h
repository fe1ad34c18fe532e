/* SPDX-License-Identifier: GPL-2.0-only */
/* Replay of recordings, without the module. */
#ifndef RENDERD_REPLAY_H
#define RENDERD_REPLAY_H

/**
 * replay_main() - `mgpu-renderd replay`
 * @argc: number of words
 * @argv: words, from "replay"
 *
 * Return: exit status: 0; 1 after an error, or with --check if a transfer from the host
 * differs; 2 if the command line is wrong.
 */
int replay_main(int argc, char **argv);

#endif /* RENDERD_REPLAY_H */
