/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The agent's state on disk: its requests, with the keys that make a request the same one
 * after a restart of the agent or the guest, and the VM's consent.
 */
#ifndef AGENT_KEPT_H
#define AGENT_KEPT_H

#include <stdbool.h>
#include <stdint.h>

#include "conf.h"
#include "devices.h"

#define KEPT_NAME	96
#define KEPT_KEY	64
#define KEPT_REPORTED	"reported-"	/* begins the names of the reporter's requests */
#define KEPT_LIST	(DEVICES_MAX * DEVICE_WORD)
#define KEPT_BOOT	40

/**
 * struct kept - a request
 * @conf: settings
 * @name: name of its file; its lock is held by the process that works with it
 * @lock: descriptor of the lock, -1: none
 * @key: the request's key
 * @id: number that the service gave it, 0: none yet
 * @device: PCI address of its GPU, "": not there yet
 * @before: functions that were there before, of devices_list()
 * @boot: of the guest, when it asked; "": unknown
 * @over: the work has ended; only the release is left
 * @done: with success
 * @busy_ns: use that was reported, so that it grows over restarts
 */
struct kept {
	const struct conf *conf;
	char name[KEPT_NAME];
	int lock;
	char key[KEPT_KEY];
	uint64_t id;
	char device[DEVICE_ADDR];
	char before[KEPT_LIST];
	char boot[KEPT_BOOT];
	bool over;
	bool done;
	uint64_t busy_ns;
};

/**
 * kept_open() - take a request of this name that no process has, or a new one
 * @kept: result; without a @key if it is new
 * @conf: settings
 * @name: name, [A-Za-z0-9._-]+; several processes may have requests of one name
 *
 * Return: 0 or -1; complains.
 */
int kept_open(struct kept *kept, const struct conf *conf, const char *name);
/* Take a request by the name of its file. Return 0, -EBUSY: a process has it, or -errno. */
int kept_take(struct kept *kept, const struct conf *conf, const char *name);
/* Make a new key. Return 0 or -1; complains. */
int kept_new_key(char key[KEPT_KEY]);
/* Have a new key, and the devices that are there. Return 0 or -1; complains. */
int kept_renew(struct kept *kept);
/* Write it to disk. Return 0 or -1; complains. */
int kept_write(const struct kept *kept);
/* Let go of it; @remove: the request is over. */
void kept_close(struct kept *kept, bool remove);

/* Call @fn with the names of all requests that are kept. */
void kept_each(const struct conf *conf, void (*fn)(const char *name, void *arg), void *arg);
/*
 * Lock the devices of all requests: between kept_others() and kept_write() no other process takes
 * one. May wait for another process, for as long as a write takes. Return a file descriptor that
 * kept_unlock() takes, or -errno.
 */
int kept_lock_devices(const struct conf *conf);
/* Unlock; an error of kept_lock_devices() is ignored. */
void kept_unlock(int lock);
/* Write the devices of the other requests, separated by blanks. */
void kept_others(const struct kept *kept, char list[KEPT_LIST]);

/* Whether the agent keeps a request with this key, under another name than @but. */
bool kept_has(const struct conf *conf, const char *key, const char *but);

/* The VM's consent, as the service has taken it. */
bool kept_consent(const struct conf *conf);
int kept_set_consent(const struct conf *conf, bool yes);

/* Make the folder of the state. Return 0 or -1; complains. */
int kept_folder(const struct conf *conf);

#endif /* AGENT_KEPT_H */
