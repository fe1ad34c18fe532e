// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps.h"
#include "clock.h"
#include "complain.h"

static struct account *find_account(struct apps *a, const struct owner *owner)
{
	struct account *account;

	for (account = a->accounts; account; account = account->next)
		if (account->owner.uid == owner->uid && account->owner.cid == owner->cid)
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
