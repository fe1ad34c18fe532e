// SPDX-License-Identifier: GPL-2.0-only
/* Limits that an account's programs have together. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ledger.h"
#include "tap.h"

#define ROOM	3u
#define NONE	UINT64_MAX

static struct ledger_memory *memory;
static struct ledger programs[ROOM];
static int fd;

/* Have an account whose programs may have 100 of everything together. */
static void begin(void)
{
	fd = ledger_create(ROOM, &memory);
	TAP_CHECK(fd >= 0);
	for (unsigned int i = 0; i < ROOM; i++) {
		memset(&programs[i], 0, sizeof(programs[i]));
		TAP_CHECK(!ledger_open(&programs[i], fd, i));
		for (unsigned int k = 0; k < LEDGER_LIMITS; k++)
			programs[i].limits[k] = 100;
	}
	memory->high = ROOM;
}

static void end(void)
{
	for (unsigned int i = 0; i < ROOM; i++)
		ledger_free(programs[i].memory, ROOM);
	ledger_free(memory, ROOM);
	close(fd);
}

static void limits_are_of_all(void)
{
	begin();
	for (enum ledger_number which = 0; which < LEDGER_LIMITS; which++) {
		TAP_CHECK(ledger_take(&programs[0], which, 60, NONE));
		TAP_CHECK(ledger_fits(&programs[1], which, 40, NONE));
		TAP_CHECK(!ledger_fits(&programs[1], which, 41, NONE));
		TAP_CHECK(!ledger_take(&programs[1], which, 41, NONE));
		TAP_EQ(ledger_get(programs[1].own, which), 0);
		TAP_CHECK(ledger_take(&programs[1], which, 40, NONE));
		TAP_CHECK(!ledger_take(&programs[2], which, 1, NONE));
		ledger_sub(&programs[0], which, 10);
		TAP_CHECK(ledger_take(&programs[2], which, 10, NONE));
		/* Its own limit is less. */
		TAP_CHECK(!ledger_fits(&programs[2], which, 1, 10));
		TAP_CHECK(!ledger_take(&programs[2], which, NONE, 10));
	}
	end();
}

static void a_program_that_ends_gives_all_back(void)
{
	begin();
	TAP_CHECK(ledger_take(&programs[0], LEDGER_MEMORY, 100, NONE));
	TAP_CHECK(!ledger_take(&programs[1], LEDGER_MEMORY, 1, NONE));
	/* As the listener does, whatever the process did last. */
	memset(&memory->entries[0], 0, sizeof(memory->entries[0]));
	TAP_CHECK(ledger_take(&programs[1], LEDGER_MEMORY, 100, NONE));
	end();
}

static void numbers_of_others_may_be_wrong(void)
{
	begin();
	/* As if there were entries behind the memory. */
	memory->high = ~0u;
	TAP_CHECK(ledger_take(&programs[1], LEDGER_MEMORY, 1, NONE));
	ledger_sub(&programs[1], LEDGER_MEMORY, 1);
	ledger_set(&programs[0], LEDGER_MEMORY, NONE);
	ledger_set(&programs[2], LEDGER_MEMORY, 7);
	TAP_CHECK(!ledger_take(&programs[1], LEDGER_MEMORY, 1, NONE));
	TAP_EQ(ledger_get(programs[1].own, LEDGER_MEMORY), 0);
	/* The memory stays as large as it is. */
	TAP_CHECK(ftruncate(fd, 0) == -1 && errno == EPERM);
	TAP_CHECK(ledger_open(&programs[1], fd, ROOM) == -EINVAL);
	end();
}

/* ---- owners ---- */

static void owners_are_accounts_and_vms(void)
{
	const struct owner vm = { .uid = (uid_t)-1, .cid = 42 };
	char text[OWNER_TEXT], want[OWNER_TEXT];
	struct owner o;
	int ends[2];

	TAP_CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	TAP_EQ(owner_of(&o, ends[0]), getpid());
	TAP_EQ(o.uid, geteuid());
	TAP_EQ(o.cid, 0);
	snprintf(want, sizeof(want), "account %u", geteuid());
	TAP_CHECK(!strcmp(owner_text(text, &o), want));
	TAP_CHECK(!strcmp(owner_text(text, &vm), "VM 42"));
	close(ends[0]);
	close(ends[1]);
	/* No socket: nobody's. */
	TAP_EQ(owner_of(&o, ends[0]), 0);
	TAP_EQ(o.uid, (uid_t)-1);
}

int main(void)
{
	tap_run(owners_are_accounts_and_vms, "programs are of accounts and of VMs");
	tap_run(limits_are_of_all, "a limit of an account is of all its programs together");
	tap_run(a_program_that_ends_gives_all_back, "what a program had is free when it has ended");
	tap_run(numbers_of_others_may_be_wrong, "wrong numbers of another program do no harm");
	return tap_done();
}
