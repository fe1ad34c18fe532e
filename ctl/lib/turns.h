/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a server may work for a VM or an account: in turns, which a scheduler gives.  That is the
 * module, for work of a VM that does not pass it (MGPU_USER_TURN), or mgpu-remoted's shares.
 */
#ifndef MGPU_TURNS_H
#define MGPU_TURNS_H

#include <stdbool.h>
#include <stdint.h>

/* Engine time that a server may use before it asks for a turn, and again until it has one. */
#define TURNS_FREE_NS	1000000u
/* Length of a turn. */
#define TURNS_TURN_NS	10000000u
/* Period of looks while the server works. */
#define TURNS_LOOK_NS	2000000u
/* The same while it rests, or is stopped. */
#define TURNS_IDLE_NS	10000000u

/**
 * enum turns_state - what a server has
 * @TURNS_IDLE: little to do
 * @TURNS_WAIT: work, which waits for a turn
 * @TURNS_HAS: a turn
 */
enum turns_state { TURNS_IDLE, TURNS_WAIT, TURNS_HAS };

/* Actions of the caller. */
#define TURNS_ASK	0x1	/* ask for a turn, if none is waited for */
#define TURNS_END	0x2	/* answer the turn */
#define TURNS_STOP	0x4	/* stop the server */
#define TURNS_RUN	0x8	/* have it go on */

/**
 * struct turns - the turns of a server; all zero in the beginning
 * @state: what it has
 * @stopped: the server is stopped
 * @from_ns: beginning of the turn
 * @from_used_ns: what it had used then; in other states, when the last turn ended or was
 *	asked for
 * @looked_ns: the last look
 * @looked_used_ns: what it had used then
 */
struct turns {
	enum turns_state state;
	bool stopped;
	uint64_t from_ns;
	uint64_t from_used_ns;
	uint64_t looked_ns;
	uint64_t looked_used_ns;
};

/**
 * turns_look() - decide what a server may do
 * @t: turns
 * @now_ns: time, monotonic
 * @used_ns: engine time that the server has used so far, which never goes back
 * @owed: commands of the guest wait for the server: their jobs pay for what it does
 * @ready: the server has work, though it may have used no time: its turn goes on
 *
 * Return: TURNS_*, to be done in the order of their values.
 */
unsigned int turns_look(struct turns *t, uint64_t now_ns, uint64_t used_ns, bool owed, bool ready);

/*
 * Return whether the server has a turn, and worked for less than a tenth of the time since the last
 * look: the turn ends, unless turns_look() is told that the server is ready.
 */
bool turns_seems_to_rest(const struct turns *t, uint64_t now_ns, uint64_t used_ns);

/* The scheduler has given a turn. Return TURNS_RUN or 0. */
unsigned int turns_given(struct turns *t, uint64_t now_ns, uint64_t used_ns);

/*
 * The commands that the server worked for are over, and it has more to do: unless it has a turn, it
 * stops at once, and waits for one. Return TURNS_*.
 */
unsigned int turns_hold(struct turns *t, uint64_t used_ns);

/* Have the server go on until the next look. Return TURNS_RUN or 0. */
unsigned int turns_run(struct turns *t);

/* Return the time until the next look, nanoseconds. */
uint64_t turns_next(const struct turns *t);

#endif /* MGPU_TURNS_H */
