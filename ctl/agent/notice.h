/* SPDX-License-Identifier: GPL-2.0-only */
/* Notices for the VM's people: a line on standard error (the journal), and a command. */
#ifndef AGENT_NOTICE_H
#define AGENT_NOTICE_H

#include "conf.h"

/**
 * notice() - say something, and run the configured command
 * @conf: settings
 * @what: a word for the command: idle or lease
 * @request: number of the request
 * @device: PCI address of its GPU
 * @text: a sentence
 *
 * The command is run by sh, with MGPU_NOTICE, MGPU_REQUEST, MGPU_GPU and MGPU_TEXT in its
 * environment, and is not waited for.
 */
void notice(const struct conf *conf, const char *what, uint64_t request, const char *device,
	    const char *text);

#endif /* AGENT_NOTICE_H */
