/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The verbs of agents, without connections: a checked frame's message goes in, an answer comes
 * out.  agent.c, the unit tests and the fuzz target call it.
 */
#ifndef POOL_AGENT_VERBS_H
#define POOL_AGENT_VERBS_H

#include "agent.h"
#include "wire.h"

/**
 * struct agent_wait - a verb "state" that waits for a change
 * @id: request, 0: no wait
 * @seconds: longest wait
 * @version: version of the state that the agent has seen
 * @quick: hash of the request without its place in the queue
 */
struct agent_wait {
	uint64_t id;
	uint32_t seconds;
	uint64_t version;
	uint64_t quick;
};

/**
 * agent_verb() - do what a VM's agent asks
 * @setup: pool and store
 * @vm: name of the VM, proven
 * @m: the message
 * @now: time, seconds
 * @answer: the answer, to be signed; unset if @wait has an id
 * @wait: set if the answer is due later: agent_wait_over() says when
 */
void agent_verb(const struct agent_setup *setup, const char *vm, const struct wire_message *m,
		int64_t now, struct wire_text *answer, struct agent_wait *wait);

/**
 * agent_wait_over() - see whether what a wait is for has changed
 * @setup: pool and store
 * @wait: the wait
 * @place: look at the place in the queue, too, which costs more
 */
bool agent_wait_over(const struct agent_setup *setup, const struct agent_wait *wait, bool place);

/* Write the answer to a verb "state" now. */
void agent_state(const struct agent_setup *setup, const char *vm, uint64_t id, int64_t now,
		 struct wire_text *answer);

/* Write an error: a word, and a sentence with what to do. */
void agent_error(struct wire_text *answer, const char *code, const char *text);

/* A line of the log, of a VM's agent. */
void agent_event(const struct agent_setup *setup, const char *vm, const char *what,
		 uint64_t request, const char *text, int64_t now);

#endif /* POOL_AGENT_VERBS_H */
