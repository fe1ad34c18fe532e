/* SPDX-License-Identifier: GPL-2.0-only */
/* The programs of a listener, by account. */
#ifndef REMOTE_APPS_H
#define REMOTE_APPS_H

#include "ledger.h"

#define APP_COMMAND	64

/**
 * struct account - the programs of a user or a VM, as their sockets say
 * @owner: the user or VM
 * @fd: memory of the ledger
 * @memory: the same
 * @room: its entries
 * @nr: programs
 * @next: another account
 */
struct account {
	struct owner owner;
	int fd;
	struct ledger_memory *memory;
	unsigned int room;
	unsigned int nr;
	struct account *next;
};

/**
 * struct app - a program
 * @process: process that executes its calls, 0 until it is started
 * @pid: the program, or 0 if it is not known here
 * @command: its name, "" if it is not known
 * @since_ns: when it came, CLOCK_MONOTONIC
 * @account: its account
 * @entry: its entry in the ledger
 * @next: another program
 */
struct app {
	pid_t process;
	pid_t pid;
	char command[APP_COMMAND];
	uint64_t since_ns;
	struct account *account;
	unsigned int entry;
	struct app *next;
};

/**
 * struct apps - all programs
 * @list: the programs
 * @nr: their number
 * @accounts: their accounts
 * @max: programs that there may be
 * @account_max: programs of an account
 */
struct apps {
	struct app *list;
	unsigned int nr;
	struct account *accounts;
	unsigned int max;
	unsigned int account_max;
};

/**
 * apps_add() - add the program at the other end of a socket
 * @a: all programs
 * @fd: the socket
 *
 * Return: the program, or NULL after a line in the log: there are too many, or no memory.
 */
struct app *apps_add(struct apps *a, int fd);

void apps_remove(struct apps *a, struct app *app);

/* Return the program of a process, or NULL. */
struct app *apps_find(const struct apps *a, pid_t process);

static inline const struct ledger_entry *app_entry(const struct app *app)
{
	return &app->account->memory->entries[app->entry];
}

#endif /* REMOTE_APPS_H */
