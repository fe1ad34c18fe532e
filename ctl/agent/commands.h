/* SPDX-License-Identifier: GPL-2.0-only */
/* mgpu-agent's commands. */
#ifndef AGENT_COMMANDS_H
#define AGENT_COMMANDS_H

#include "hold.h"

#define STATUS_FAILED	1
#define STATUS_USAGE	2

/**
 * struct options - the command line
 * @config: file with settings, NULL: the default
 * @service: where the service is, NULL: of the settings
 * @key: key of a request by hand, NULL: a new one
 * @wish: what is wanted
 * @wait: wait in the queue
 * @done: the work ended with success
 * @words: words behind the command, NULL at the end
 * @nr: their number
 */
struct options {
	const char *config;
	const char *service;
	const char *key;
	struct wish wish;
	bool wait;
	bool done;
	char **words;
	int nr;
};

/* Each returns the exit status. */
int run_run(const struct options *o);
int run_watch(const struct options *o);
int run_request(const struct options *o);
int run_state(const struct options *o);
int run_release(const struct options *o);
int run_extend(const struct options *o);
int run_consent(const struct options *o);

#endif /* AGENT_COMMANDS_H */
