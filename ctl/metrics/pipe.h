/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The socket between the process that reads the sources, which has the privilege to, and the
 * one that answers HTTP clients, which has none.  A request is a byte, the format; the answer is
 * its length, 0 for none, and the text.
 */
#ifndef METRICS_PIPE_H
#define METRICS_PIPE_H

#include "snapshot.h"

/* Longest time that the reading of all sources may take, milliseconds. */
#define PIPE_ANSWER_MS	8000

/*
 * Ask for a text. @text: empty; result. 0, or -errno: the socket is of no more use, since the rest
 * of an answer may still come.
 */
int pipe_ask(int fd, enum expose_format format, struct text *text);

/* Receive a request; 0 or -errno, -EPIPE at the end. */
int pipe_receive(int fd, enum expose_format *format);

/* Answer a request. */
int pipe_answer(int fd, const struct text *text);

#endif /* METRICS_PIPE_H */
