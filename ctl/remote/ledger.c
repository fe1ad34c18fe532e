// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/vm_sockets.h>

#include "complain.h"
#include "ledger.h"

/* Names of limits, and of their options. */
static const struct {
	const char *what;
	const char *option;
} limits[LEDGER_LIMITS] = {
	[LEDGER_MEMORY] = { "memory", "memory" },
	[LEDGER_OBJECTS] = { "objects", "objects" },
	[LEDGER_PENDING] = { "transfers on their way", "pending" },
};

pid_t owner_of(struct owner *o, int fd)
{
	struct ucred cred = { 0 };
	struct sockaddr_vm peer;
	socklen_t len = sizeof(peer);

	*o = (struct owner){ .uid = (uid_t)-1 };
	if (!getpeername(fd, (struct sockaddr *)&peer, &len) && peer.svm_family == AF_VSOCK) {
		o->cid = peer.svm_cid;
		return 0;
	}
	len = sizeof(cred);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return 0;
	o->uid = cred.uid;
	return cred.pid;
}

const char *owner_text(char buf[OWNER_TEXT], const struct owner *o)
{
	if (o->cid)
		snprintf(buf, OWNER_TEXT, "VM %u", o->cid);
	else
		snprintf(buf, OWNER_TEXT, "account %u", o->uid);
	return buf;
}

/* Read all of a text as a number below that of no owner. */
static bool read_number(unsigned int *n, const char *text)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end || v >= UINT_MAX)
		return false;
	*n = (unsigned int)v;
	return true;
}

bool owner_parse(struct owner *o, const char *text)
{
	const struct passwd *pw;

	*o = OWNER_OTHERS;
	if (!strcmp(text, "others"))
		return true;
	if (!strncmp(text, "vm:", 3))
		return read_number(&o->cid, text + 3) && o->cid;
	if (strncmp(text, "user:", 5))
		return false;
	pw = getpwnam(text + 5);
	if (pw)
		o->uid = pw->pw_uid;
	return pw || read_number(&o->uid, text + 5);
}

const char *owner_name(char buf[OWNER_TEXT], const struct owner *o)
{
	const struct owner others = OWNER_OTHERS;

	if (owner_same(o, &others))
		strcpy(buf, "others");
	else if (o->cid)
		snprintf(buf, OWNER_TEXT, "vm:%u", o->cid);
	else
		snprintf(buf, OWNER_TEXT, "user:%u", o->uid);
	return buf;
}

static size_t bytes(unsigned int room)
{
	return sizeof(struct ledger_memory) + room * sizeof(struct ledger_entry);
}

static int map(int fd, unsigned int room, struct ledger_memory **memory)
{
	void *p = mmap(NULL, bytes(room), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*memory = p;
	return 0;
}

int ledger_create(unsigned int room, struct ledger_memory **memory)
{
	int fd = memfd_create("mgpu-remote-ledger", MFD_CLOEXEC | MFD_ALLOW_SEALING), ret;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)bytes(room)) ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		ret = -errno;
	else
		ret = map(fd, room, memory);
	if (ret)
		close(fd);
	return ret ? ret : fd;
}

void ledger_free(struct ledger_memory *memory, unsigned int room)
{
	munmap(memory, bytes(room));
}

int ledger_open(struct ledger *l, int fd, unsigned int index)
{
	struct stat st;
	int ret;

	if (fstat(fd, &st))
		return -errno;
	if ((size_t)st.st_size < bytes(index + 1))
		return -EINVAL;
	l->room = (unsigned int)(((size_t)st.st_size - sizeof(*l->memory)) /
				 sizeof(struct ledger_entry));
	ret = map(fd, l->room, &l->memory);
	if (!ret)
		l->own = &l->memory->entries[index];
	return ret;
}

static uint64_t sum(const struct ledger *l, enum ledger_number which)
{
	unsigned int high = atomic_load(&l->memory->high);
	uint64_t total = 0;

	high = high < l->room ? high : l->room;
	for (unsigned int i = 0; i < high; i++)
		if (__builtin_add_overflow(total, ledger_get(&l->memory->entries[i], which),
					   &total))
			return UINT64_MAX;
	return total;
}

/* Return false, and have the log name the limit once. */
static bool refuse(struct ledger *l, enum ledger_number which, bool account)
{
	char owner[OWNER_TEXT];

	if (l->told[account][which])
		return false;
	l->told[account][which] = true;
	if (account)
		complain("program %d: the programs of %s have as much as they may together: %s (--account-%s)",
			 getpid(), owner_text(owner, &l->owner), limits[which].what,
			 limits[which].option);
	else
		complain("program %d has as much as a program may: %s (--%s)", getpid(),
			 limits[which].what, limits[which].option);
	return false;
}

static bool is_bounded(const struct ledger *l, enum ledger_number which)
{
	return l->memory && l->limits[which] != UINT64_MAX;
}

bool ledger_fits(struct ledger *l, enum ledger_number which, uint64_t amount, uint64_t limit)
{
	uint64_t own = ledger_get(l->own, which), all;

	if (own > limit || amount > limit - own)
		return refuse(l, which, false);
	if (!is_bounded(l, which))
		return true;
	all = sum(l, which);
	return (all <= l->limits[which] && amount <= l->limits[which] - all) ||
		refuse(l, which, true);
}

bool ledger_take(struct ledger *l, enum ledger_number which, uint64_t amount, uint64_t limit)
{
	uint64_t own = ledger_get(l->own, which);

	if (own > limit || amount > limit - own)
		return refuse(l, which, false);
	/* First taken and then looked at: of two that race at least one sees both. */
	atomic_fetch_add(&l->own->n[which], amount);
	if (!is_bounded(l, which) || sum(l, which) <= l->limits[which])
		return true;
	ledger_sub(l, which, amount);
	return refuse(l, which, true);
}
