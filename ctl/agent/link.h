/* SPDX-License-Identifier: GPL-2.0-only */
/* The agent's connection to the service. */
#ifndef AGENT_LINK_H
#define AGENT_LINK_H

#include "conf.h"
#include "wire.h"

#define LINK_TEXT	256

/**
 * struct link - a connection, which is opened when something is asked
 * @conf: settings
 * @keys: derived from the VM's key
 * @wake: descriptor that ends a wait when it is readable, as with signals; -1: none
 * @fd: socket, -1: closed
 * @tls: GnuTLS's session
 * @seq: sequence of the last message
 * @out: frame that is sent
 * @in: frame that is read
 * @answer: its message
 * @why: sentence about the last error
 */
struct link {
	const struct conf *conf;
	struct wire_keys keys;
	int wake;
	int fd;
	void *tls;
	void *cred;
	uint64_t seq;
	struct wire_text out;
	unsigned char in[WIRE_FRAME_MAX];
	struct wire_message answer;
	char why[LINK_TEXT];
};

/* Return 0 or -1; complains. */
int link_init(struct link *link, const struct conf *conf, int wake);
void link_close(struct link *link);
void link_free(struct link *link);

/**
 * link_ask() - send the frame in @link->out, and read its answer
 * @link: the connection; opened if it is closed
 * @seconds: that the answer may take
 *
 * A refusal because of the sequence is met with a higher one.
 *
 * Return: 0 with an answer "ok" or "error" in @link->answer; -EINTR if @wake became readable;
 * -EACCES if the service refuses the key; another -errno, and trying again may help. The
 * connection is closed on an error.
 */
int link_ask(struct link *link, unsigned int seconds);

/**
 * link_ask_long() - the same, trying again with growing pauses
 * @link: the connection
 * @seconds: that an answer may take
 * @patience: seconds after which the last error is returned; 0: never
 * @say: complain about the first error
 */
int link_ask_long(struct link *link, unsigned int seconds, unsigned int patience, bool say);

/* Sleep, or until @wake is readable: -EINTR. */
int link_sleep(const struct link *link, unsigned int ms);

/* Whether the answer is "ok". If not, its text is in @link->why, fit for a terminal. */
bool link_ok(struct link *link);
/* The word of an error, "" for an answer "ok". */
const char *link_code(const struct link *link);

#endif /* AGENT_LINK_H */
