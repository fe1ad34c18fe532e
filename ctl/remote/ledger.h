/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects, memory and requests of the programs of an account: numbers in memory that their
 * processes and the listener share.  A process writes its own entry, and adds up all of them where
 * the account has a limit.  The listener believes none of the numbers: it adds and prints them.
 */
#ifndef REMOTE_LEDGER_H
#define REMOTE_LEDGER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * struct owner - to whom programs belong, and with whom they share limits
 * @uid: account; (uid_t)-1 if it is not of this machine
 * @cid: VM, by its number for vsock; 0 if they are programs of this machine
 */
struct owner {
	uid_t uid;
	unsigned int cid;
};

/* Stands for all owners that are not named. */
#define OWNER_OTHERS	((struct owner){ .uid = (uid_t)-1, .cid = 0 })

static inline bool owner_same(const struct owner *a, const struct owner *b)
{
	return a->uid == b->uid && a->cid == b->cid;
}

/* Find out who is at the other end of a socket. Return its process ID, or 0 if it has none here. */
pid_t owner_of(struct owner *o, int fd);

#define OWNER_TEXT	32	/* bytes of a text about an owner */

/* Say who that is, for a sentence. Return @buf. */
const char *owner_text(char buf[OWNER_TEXT], const struct owner *o);

/* Read "user:NAME", "user:UID", "vm:CID" or "others". Return false if it is none of these. */
bool owner_parse(struct owner *o, const char *text);

/* Write what owner_parse() reads. Return @buf. */
const char *owner_name(char buf[OWNER_TEXT], const struct owner *o);

/* Numbers of an entry; the first LEDGER_LIMITS have limits. */
enum ledger_number {
	LEDGER_MEMORY,		/* bytes of objects */
	LEDGER_OBJECTS,		/* their number */
	LEDGER_PENDING,		/* bytes of transfers that nothing waits for */
	LEDGER_LIMITS,

	LEDGER_API = LEDGER_LIMITS,	/* number of the API, 0 until it is known */
	LEDGER_CALLS,		/* requests, those in groups included */
	LEDGER_REPLIES,		/* requests that were waited for */
	LEDGER_RECEIVED,	/* bytes */
	LEDGER_SENT,
	LEDGER_GROUPS,
	LEDGER_GROUPED,		/* requests in groups */
	/* From here on as the front end reports them: */
	LEDGER_REPORT,
	LEDGER_MODE = LEDGER_REPORT,	/* enum remote_mode and 1, 0 until it is known */
	LEDGER_CLASS_1,		/* loops of this class that were recorded */
	LEDGER_CLASS_2,
	LEDGER_CLASS_3,
	LEDGER_WRONG,		/* requests of loops that were not as predicted */
	LEDGER_GIVEN_UP,	/* loops that are no longer recorded */
	LEDGER_NUMBERS,
};

#define LEDGER_REPORTED	(LEDGER_NUMBERS - LEDGER_REPORT)

/* Numbers of one program. */
struct ledger_entry {
	atomic_ullong n[LEDGER_NUMBERS];
} __attribute__((aligned(64)));

/**
 * struct ledger_memory - an account's programs
 * @high: entries that have been used
 * @entries: an entry for each program
 */
struct ledger_memory {
	atomic_uint high;
	struct ledger_entry entries[];
};

/**
 * struct ledger - the ledger as a program's process has it
 * @own: the program's entry
 * @memory: of its account, NULL for none
 * @room: entries of @memory
 * @limits: what the account's programs may have together; UINT64_MAX for no limit
 * @owner: the account
 * @told: limits that were reached, and that the log has
 * @alone: entry of a program without an account
 */
struct ledger {
	struct ledger_entry *own;
	struct ledger_memory *memory;
	unsigned int room;
	uint64_t limits[LEDGER_LIMITS];
	struct owner owner;
	bool told[2][LEDGER_LIMITS];
	struct ledger_entry alone;
};

/**
 * ledger_create() - make an account's memory, which no process can make smaller
 * @room: entries
 * @memory: result
 *
 * Return: a descriptor, or a negative errno.
 */
int ledger_create(unsigned int room, struct ledger_memory **memory);

/* Let go of an account's memory. */
void ledger_free(struct ledger_memory *memory, unsigned int room);

/* Take the entry with this index in an account's memory. Return 0 or a negative errno. */
int ledger_open(struct ledger *l, int fd, unsigned int index);

static inline void ledger_add(struct ledger *l, enum ledger_number which, uint64_t amount)
{
	atomic_fetch_add_explicit(&l->own->n[which], amount, memory_order_relaxed);
}

static inline void ledger_sub(struct ledger *l, enum ledger_number which, uint64_t amount)
{
	atomic_fetch_sub_explicit(&l->own->n[which], amount, memory_order_relaxed);
}

static inline void ledger_set(struct ledger *l, enum ledger_number which, uint64_t value)
{
	atomic_store_explicit(&l->own->n[which], value, memory_order_relaxed);
}

static inline uint64_t ledger_get(const struct ledger_entry *e, enum ledger_number which)
{
	return atomic_load_explicit(&e->n[which], memory_order_relaxed);
}

/**
 * ledger_fits() - look whether a program may have more
 * @l: the ledger
 * @which: what of
 * @amount: how much more
 * @limit: what the program may have by itself
 *
 * The log names a limit that is reached, once.
 *
 * Return: true, or false at the limit of the program or of its account.
 */
bool ledger_fits(struct ledger *l, enum ledger_number which, uint64_t amount, uint64_t limit);

/*
 * Have more, or nothing and false: programs of an account that ask at the same time do not get more
 * than it may have.
 */
bool ledger_take(struct ledger *l, enum ledger_number which, uint64_t amount, uint64_t limit);

#endif /* REMOTE_LEDGER_H */
