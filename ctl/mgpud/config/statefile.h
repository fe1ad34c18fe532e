/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state file, from which the next mgpud starts: averages of the estimates, variables
 * of the allocator, and what was learned of kinds of work and of vGPUs. Control works
 * without it, so that an invalid file is ignored. Of a file of another boot only what was
 * learned is valid, since it names no processes, and vGPUs by their UUIDs; and so is what
 * was set at run time (overlay.h).
 */
#ifndef MGPUD_STATEFILE_H
#define MGPUD_STATEFILE_H

#include "analyse.h"
#include "decide.h"
#include "learner.h"

/*
 * "learned", "known" and "settings" were added later without a new version: older readers
 * ignore them.
 */
#define STATEFILE_VERSION	1
#define STATEFILE_SIZE_MAX	(4u << 20)	/* 4,096 vGPUs take half */
#define STATEFILE_VGPUS_MAX	4096

/* ---- pure ---- */

struct json_object;

/*
 * Return the state as text, which the caller must free; NULL when out of memory.
 * @settings: what was set at run time, NULL for nothing.
 */
char *statefile_make(const struct estimate *e, const struct control *c,
		     const struct analyse *learned, const struct learner *known,
		     struct json_object *settings, const char *boot);

/*
 * Fill @e and @c, which must be as before the first sample, and @learned and @known from
 * text. If the text has no "learned", or an invalid one, @learned stays unchanged, and so
 * does @known without a valid "known". Returns 0 with a sentence in @why about those that
 * are invalid, or ""; or -errno with a sentence, and @e and @c unchanged:
 *
 * -EBADMSG	not a state file, or a truncated one
 * -EPROTO	another version
 * -ESTALE	another boot: IDs and processes mean something else
 * -ENOMEM
 *
 * With -ESTALE both are filled nevertheless; with the other errors they are unchanged.
 *
 * Whatever is returned, @settings is what was set at run time, which the caller must put,
 * or NULL if the text has none. Its values are not checked: overlay_keep_valid() does
 * that.
 */
int statefile_parse(const char *text, size_t len, const char *boot,
		    struct estimate *e, struct control *c, struct analyse *learned,
		    struct learner *known, struct json_object **settings, char *why,
		    size_t size);

/* ---- files ---- */

/* The kernel's ID of this boot, "" if it has none. */
void statefile_boot(char boot[64]);

/* As statefile_parse(); also -ENOENT: there is no file. */
int statefile_read(const char *path, const char *boot, struct estimate *e,
		   struct control *c, struct analyse *learned, struct learner *known,
		   struct json_object **settings, char *why, size_t size);

/* Replace the file atomically. Returns 0 or -errno. */
int statefile_write(const char *path, const char *text);

/*
 * Write in a thread, so that a slow disk does not stop control. The writer takes
 * ownership of @text. statefile_writer_start() returns -EBUSY while a write is in flight.
 */
struct statefile_writer;

struct statefile_writer *statefile_writer_new(void);
int statefile_writer_start(struct statefile_writer *w, const char *path, char *text);
/* For poll(): readable when a write has ended. */
int statefile_writer_fd(const struct statefile_writer *w);
/* Return true, once, if a write has ended; @result is 0 or -errno. */
bool statefile_writer_ended(struct statefile_writer *w, int *result);
void statefile_writer_free(struct statefile_writer *w);	/* waits for the write */

#endif /* MGPUD_STATEFILE_H */
