// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps.h"
#include "clock.h"
#include "complain.h"

/* ---- engine time ---- */

/* Add what a program's process has used since the last look. */
static uint64_t look_at(struct app *app, uint64_t now)
{
	uint64_t ns = process_clock_engine_ns(&app->clock, now), before = app->looked_ns;
	bool engines = process_clock_has_engines(&app->clock) || app->engines;

	if (!engines)
		ns = process_clock_cpu_ns(&app->clock);
	if (engines == app->engines && ns <= before)
		return 0;
	app->looked_ns = ns;
	/* Its first work on a GPU counts; the CPU time until then has been. */
	if (engines != app->engines)
		before = 0;
	app->engines = engines;
	return ns - before;
}

static uint64_t account_used(void *arg, uint64_t now)
{
	struct account *account = arg;

	for (struct app *app = account->apps->list; app; app = app->next)
		if (app->account == account && app->clock.pid)
			account->used_ns += look_at(app, now);
	return account->used_ns;
}

static bool account_ready(void *arg)
{
	const struct account *account = arg;

	for (const struct app *app = account->apps->list; app; app = app->next)
		if (app->account == account && app->clock.pid && !app->engines &&
		    process_clock_is_ready(&app->clock))
			return true;
	return false;
}

static void stop_app(const struct app *app, bool stop)
{
	if (app->process > 0)
		kill(-app->process, stop ? SIGSTOP : SIGCONT);
}

static void account_stop(void *arg, bool stop)
{
	const struct account *account = arg;

	for (const struct app *app = account->apps->list; app; app = app->next)
		if (app->account == account)
			stop_app(app, stop);
}

void apps_init(struct apps *a, unsigned int engines)
{
	a->shares.engines = engines;
	a->shares.used = account_used;
	a->shares.ready = account_ready;
	a->shares.stop = account_stop;
}

void apps_started(struct app *app, pid_t process)
{
	app->process = process;
	setpgid(process, process);
	process_clock_start(&app->clock, process);
	if (app->account->share.turns.stopped)
		stop_app(app, true);
}

void apps_end(struct apps *a)
{
	for (const struct app *app = a->list; app; app = app->next)
		stop_app(app, false);
}

static struct part *find_part(const struct apps *a, const struct owner *owner)
{
	struct part *part;

	for (part = a->parts; part; part = part->next)
		if (owner_same(&part->owner, owner))
			break;
	return part;
}

struct part apps_part(const struct apps *a, const struct owner *owner)
{
	const struct owner others = OWNER_OTHERS;
	const struct part *part = find_part(a, owner);

	if (!part)
		part = find_part(a, &others);
	return (struct part){
		.owner = *owner,
		.weight = part ? part->weight : SHARES_WEIGHT,
		.limit_ppm = part ? part->limit_ppm : 0,
	};
}

/* Have an account's share as the parts say. */
static void apply(const struct apps *a, struct account *account)
{
	const struct part part = apps_part(a, &account->owner);

	account->share.weight = part.weight;
	if (account->share.limit_ppm != part.limit_ppm)
		account->share.left_ns = 0;
	account->share.limit_ppm = part.limit_ppm;
}

int apps_set_part(struct apps *a, const struct part *part)
{
	struct part *own = find_part(a, &part->owner), *next;

	if (!own) {
		own = calloc(1, sizeof(*own));
		if (!own)
			return -ENOMEM;
		own->next = a->parts;
		a->parts = own;
	}
	next = own->next;
	*own = *part;
	own->next = next;
	for (struct account *account = a->accounts; account; account = account->next)
		apply(a, account);
	return 0;
}

/* ---- accounts and programs ---- */

static struct account *find_account(struct apps *a, const struct owner *owner)
{
	struct account *account;

	for (account = a->accounts; account; account = account->next)
		if (owner_same(&account->owner, owner))
			return account;
	account = calloc(1, sizeof(*account));
	if (!account)
		return NULL;
	account->owner = *owner;
	account->room = a->account_max < a->max ? a->account_max : a->max;
	account->fd = ledger_create(account->room, &account->memory);
	if (account->fd < 0) {
		errno = -account->fd;
		free(account);
		return NULL;
	}
	account->next = a->accounts;
	a->accounts = account;
	account->apps = a;
	account->share.arg = account;
	apply(a, account);
	shares_add(&a->shares, &account->share);
	return account;
}

static void put_account(struct apps *a, struct account *account)
{
	struct account **at;

	if (account->nr)
		return;
	for (at = &a->accounts; *at != account; at = &(*at)->next)
		;
	*at = account->next;
	shares_remove(&a->shares, &account->share);
	ledger_free(account->memory, account->room);
	close(account->fd);
	free(account);
}

static void read_command(struct app *app)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", app->pid);
	file = app->pid ? fopen(path, "re") : NULL;
	if (!file)
		return;
	if (fgets(app->command, sizeof(app->command), file))
		app->command[strcspn(app->command, "\n")] = '\0';
	fclose(file);
}

/* Return an entry that no program of the account has. */
static unsigned int free_entry(const struct apps *a, const struct account *account)
{
	const struct app *app;
	unsigned int i;

	for (i = 0; i < account->room; i++) {
		for (app = a->list; app; app = app->next)
			if (app->account == account && app->entry == i)
				break;
		if (!app)
			break;
	}
	return i;
}

struct app *apps_add(struct apps *a, int fd)
{
	struct account *account;
	char text[OWNER_TEXT];
	struct owner owner;
	struct app *app;
	pid_t pid;

	if (a->nr >= a->max) {
		complain("a program is turned away: there are %u already (--programs)", a->nr);
		return NULL;
	}
	pid = owner_of(&owner, fd);
	account = find_account(a, &owner);
	app = account ? calloc(1, sizeof(*app)) : NULL;
	if (!app) {
		complain("a program is turned away: %s", strerror(errno));
		if (account)
			put_account(a, account);
		return NULL;
	}
	if (account->nr >= a->account_max) {
		complain("a program is turned away: %s has %u already (--account-programs)",
			 owner_text(text, &owner), account->nr);
		free(app);
		return NULL;
	}
	app->pid = pid;
	app->since_ns = now_ns();
	app->account = account;
	app->entry = free_entry(a, account);
	read_command(app);
	/* The objects of this entry's last program ended with its process. */
	memset(&account->memory->entries[app->entry], 0, sizeof(struct ledger_entry));
	if (app->entry >= account->memory->high)
		account->memory->high = app->entry + 1;
	account->nr++;
	app->next = a->list;
	a->list = app;
	a->nr++;
	return app;
}

void apps_remove(struct apps *a, struct app *app)
{
	struct app **at;

	for (at = &a->list; *at != app; at = &(*at)->next)
		;
	*at = app->next;
	a->nr--;
	memset(&app->account->memory->entries[app->entry], 0, sizeof(struct ledger_entry));
	app->account->nr--;
	put_account(a, app->account);
	free(app);
}

struct app *apps_find(const struct apps *a, pid_t process)
{
	struct app *app;

	for (app = a->list; app && app->process != process; app = app->next)
		;
	return app;
}
