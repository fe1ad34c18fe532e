/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Marks: the places in the running program from which loops call the API, if mgpu-defer found that
 * these calls need not be executed one by one.  The program's file is not changed: a place is known
 * by the address that a call returns to.
 */
#ifndef REMOTE_MARKS_H
#define REMOTE_MARKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

#define MARK_LOOPS	4u	/* loops that a place may be in */
#define MARK_SHORT	8u	/* stays in a loop without gain, after which it is given up */

/**
 * struct mark_loop - a loop
 * @class: its class, 1 to 3
 * @name: function and address, if there is a log; or NULL
 * @why: why its calls are not deferred, for the log; NULL if they are
 * @base: what addresses in the report are relative to
 * @short_stays: stays without gain since the last one with
 * @seen: it has been recorded
 * @told: the log has @why
 * @iterations: those that were as predicted
 * @groups: groups that were sent
 * @wrong: requests that were not as predicted
 */
struct mark_loop {
	unsigned int class;
	char *name;
	char *why;
	uintptr_t base;
	atomic_uint short_stays;
	bool seen;
	atomic_bool told;
	uint64_t iterations;
	uint64_t groups;
	uint64_t wrong;
};

/**
 * marks_add() - add the loops of a program or library
 * @report: of mgpu-defer
 * @base: what addresses in the report are relative to
 * @start: first byte of the code in memory
 * @end: behind its last byte
 *
 * Return: places that were added, or -ENOMEM.
 */
int marks_add(struct json_object *report, uintptr_t base, const uint8_t *start,
	      const uint8_t *end);

/* Add a place in a loop. Return false without memory. */
bool marks_add_place(const void *site, struct mark_loop *loop);

/*
 * Add the loops of the program and of the libraries that it was started with, as far as they are
 * linked with a library whose name begins with @library, and mgpu-defer has kept reports of them.
 * The program counts as linked with it if @within.
 * Of those without a report one is made for the next start.
 */
void marks_load(const char *library, bool within);

/* Have the log say once why the calls of a loop at a place are not deferred. */
void marks_tell(const void *site);

/* Have the log say of each loop that was recorded what became of it. */
void marks_tell_all(void);

/* Write a line of the log, which $MGPU_REMOTE_LOG asks for. */
void marks_say(const struct mark_loop *loop, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Forget all. */
void marks_free(void);

/* Return the outermost loop at a place that has not been given up, or NULL. */
struct mark_loop *marks_find(const void *site);

/* Return bytes of the call instruction at @p, of which @len bytes may be read; 0 if it is none. */
unsigned int marks_call_len(const uint8_t *p, size_t len);

#endif /* REMOTE_MARKS_H */
