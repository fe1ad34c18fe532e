/* SPDX-License-Identifier: GPL-2.0-only */
/* The programs of a listener, by account. */
#ifndef REMOTE_APPS_H
#define REMOTE_APPS_H

#include "ledger.h"
#include "process_clock.h"
#include "shares.h"

#define APP_COMMAND	64

/**
 * struct account - the programs of a user or a VM, as their sockets say
 * @owner: the user or VM
 * @fd: memory of the ledger
 * @memory: the same
 * @room: its entries
 * @nr: programs
 * @share: its part of the engine time
 * @used_ns: engine time of its programs so far
 * @apps: all programs
 * @next: another account
 */
struct account {
	struct owner owner;
	int fd;
	struct ledger_memory *memory;
	unsigned int room;
	unsigned int nr;
	struct share share;
	uint64_t used_ns;
	const struct apps *apps;
	struct account *next;
};

/**
 * struct part - what accounts may have of the engine time
 * @owner: the account; one that cannot be, for all that have no part of their own
 * @weight: as struct share has it
 * @limit_ppm: the same
 * @next: another one
 */
struct part {
	struct owner owner;
	uint32_t weight;
	uint32_t limit_ppm;
	struct part *next;
};

/**
 * struct app - a program
 * @process: process that executes its calls, 0 until it is started
 * @pid: the program, or 0 if it is not known here
 * @command: its name, "" if it is not known
 * @since_ns: when it came, CLOCK_MONOTONIC
 * @account: its account
 * @entry: its entry in the ledger
 * @clock: time of the process
 * @engines: that is engine time, and not CPU time
 * @looked_ns: what it was at the last look
 * @next: another program
 */
struct app {
	pid_t process;
	pid_t pid;
	char command[APP_COMMAND];
	uint64_t since_ns;
	struct account *account;
	unsigned int entry;
	struct process_clock clock;
	bool engines;
	uint64_t looked_ns;
	struct app *next;
};

/**
 * struct apps - all programs
 * @list: the programs
 * @nr: their number
 * @accounts: their accounts
 * @max: programs that there may be
 * @account_max: programs of an account
 * @shares: the accounts' shares of the engine time
 * @parts: what they may have of it
 */
struct apps {
	struct app *list;
	unsigned int nr;
	struct account *accounts;
	unsigned int max;
	unsigned int account_max;
	struct shares shares;
	struct part *parts;
};

/* Have @engines accounts work at a time, UINT_MAX for all. Before apps_add(). */
void apps_init(struct apps *a, unsigned int engines);

/**
 * apps_add() - add the program at the other end of a socket
 * @a: all programs
 * @fd: the socket
 *
 * Return: the program, or NULL after a line in the log: there are too many, or no memory.
 */
struct app *apps_add(struct apps *a, int fd);

void apps_remove(struct apps *a, struct app *app);

/* The program's process, a group of its own, has been started. */
void apps_started(struct app *app, pid_t process);

/* Have the processes of all accounts go on, which end with this one. */
void apps_end(struct apps *a);

/*
 * Return the part of an account, or of all that have none of their own with OWNER_OTHERS; they may
 * have the defaults.
 */
struct part apps_part(const struct apps *a, const struct owner *owner);

/* Set an account's part, which may have no programs yet. Return 0 or -ENOMEM. */
int apps_set_part(struct apps *a, const struct part *part);

/* Return the program of a process, or NULL. */
struct app *apps_find(const struct apps *a, pid_t process);

static inline const struct ledger_entry *app_entry(const struct app *app)
{
	return &app->account->memory->entries[app->entry];
}

#endif /* REMOTE_APPS_H */
