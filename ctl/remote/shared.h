/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory that the front end shares with its server, for the data of large transfers.  The front end
 * makes it, and decides which transfer has which part: a region.
 */
#ifndef REMOTE_SHARED_H
#define REMOTE_SHARED_H

#include <stddef.h>
#include <stdint.h>

#define SHARED_NONE	UINT64_MAX

/**
 * shared_open() - make the memory
 * @size: bytes
 *
 * It cannot become smaller, so that no access to it can fail in the server.
 *
 * Return: a descriptor for the server, or a negative errno.
 */
int shared_open(uint64_t size);

void shared_close(void);

/* Forget the memory in a child process, which has neither it nor a connection. */
void shared_in_child(void);

/* Have a region; return its offset, or SHARED_NONE if there is none of this size. */
uint64_t shared_take(uint64_t len);

/* Give a region up. */
void shared_put(uint64_t offset);

/* Bytes of the memory; 0 if there is none. */
uint64_t shared_size(void);

uint8_t *shared_at(uint64_t offset);

#endif /* REMOTE_SHARED_H */
