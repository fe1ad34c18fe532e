/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Engine time of accounts, for programs that no vGPU schedules: so many accounts work at a time, in
 * turns, by their weights and below their limits.  The others' processes are stopped.
 *
 * The account that has used the least time relative to its weight is next; time that it did not use
 * earns no credit.  Source: start-time fair queueing (Goyal, Vin, Cheng 1996), as in the module's
 * policy "weighted".
 */
#ifndef REMOTE_SHARES_H
#define REMOTE_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/mgpu.h>

#include "turns.h"

#define SHARES_WEIGHT		100u	/* if nothing else is said */
/* A limit holds over this time. */
#define SHARES_PERIOD_NS	100000000u

/**
 * struct share - an account
 * @weight: MGPU_WEIGHT_MIN to MGPU_WEIGHT_MAX, relative to the others'
 * @limit_ppm: parts per million of an engine's time that it may use; 0 for no limit
 * @arg: for the callbacks
 * @turns: what it may do
 * @asks: it waits for a turn
 * @ended: its turn ended at the last look
 * @used_ns: engine time that is accounted for
 * @vtime: the same since it worked first, times MGPU_WEIGHT_MAX / weight
 * @left_ns: time that the limit allows; negative for what it must wait for
 * @filled_ns: when that was computed last, CLOCK_MONOTONIC
 * @next: another account
 */
struct share {
	uint32_t weight;
	uint32_t limit_ppm;
	void *arg;
	struct turns turns;
	bool asks;
	bool ended;
	uint64_t used_ns;
	uint64_t vtime;
	int64_t left_ns;
	uint64_t filled_ns;
	struct share *next;
};

/**
 * struct shares - all accounts that have programs
 * @engines: accounts that may work at a time; UINT_MAX for all
 * @used: return the engine time that an account has used so far, nanoseconds, which never goes back
 * @ready: return whether it has work, though it may have used no time
 * @stop: stop its processes, or have them go on
 * @list: accounts
 * @nr: their number
 * @given: turns that are not over
 * @vtime: the highest at which a turn was given
 * @in_force: accounts may have to wait
 */
struct shares {
	unsigned int engines;
	uint64_t (*used)(void *arg, uint64_t now_ns);
	bool (*ready)(void *arg);
	void (*stop)(void *arg, bool stop);
	struct share *list;
	unsigned int nr;
	unsigned int given;
	uint64_t vtime;
	bool in_force;
};

/* Add an account, whose weight, limit and argument are set, and all else is 0. */
void shares_add(struct shares *all, struct share *s);

/* Remove an account, which has no programs any more. */
void shares_remove(struct shares *all, struct share *s);

/**
 * shares_look() - see what accounts have used, end turns, and give turns
 * @all: accounts
 * @now_ns: time, CLOCK_MONOTONIC
 *
 * Return: time until the next look, nanoseconds; UINT64_MAX if none is needed until an account is
 * added or a setting changes.
 */
uint64_t shares_look(struct shares *all, uint64_t now_ns);

#endif /* REMOTE_SHARES_H */
