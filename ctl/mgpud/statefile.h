/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What one mgpud leaves for the next: the averages that estimates are made of,
 * where the allocator stood, and what was learned of kinds of work. It only helps; a
 * file that is not one is as good as none. Of one that is not of this boot, what was
 * learned is still true: it names neither vGPUs nor processes.
 */
#ifndef MGPUD_STATEFILE_H
#define MGPUD_STATEFILE_H

#include "analyse.h"
#include "decide.h"

/* What was learned came later; who does not know it passes over it. */
#define STATEFILE_VERSION	1
#define STATEFILE_SIZE_MAX	(4u << 20)	/* 4,096 vGPUs take a quarter */
#define STATEFILE_VGPUS_MAX	4096

/* ---- pure ---- */

/* As text, to be freed; NULL when out of memory. @boot: the id of this boot. */
char *statefile_make(const struct estimate *e, const struct control *c,
		     const struct analyse *learned, const char *boot);

/*
 * Fill @e and @c, as they are before the first sample, and @learned from text. Where
 * it has nothing that was learned, @learned stays as it was; so it does where that
 * cannot be believed, which says @why. Returns 0 with a sentence in @why about that,
 * or "" if all is well; or -errno with a sentence, and @e and @c as they were:
 *
 * -EBADMSG	it is no state, or not a whole one
 * -EPROTO	it is another version's
 * -ESTALE	it is of another boot: ids and processes mean something else
 * -ENOMEM
 *
 * With -ESTALE @learned is filled nevertheless, with the others it is as it was.
 */
int statefile_parse(const char *text, size_t len, const char *boot,
		    struct estimate *e, struct control *c, struct analyse *learned,
		    char *why, size_t size);

/* ---- files ---- */

/* This boot's id as the kernel has it, "" where it has none. */
void statefile_boot(char boot[64]);

/* Also -ENOENT: there is none. */
int statefile_read(const char *path, const char *boot, struct estimate *e,
		   struct control *c, struct analyse *learned, char *why, size_t size);

/* The old file or the new one, whatever happens. Returns 0 or -errno. */
int statefile_write(const char *path, const char *text);

/*
 * The same while the caller goes on: a disk that is busy must not stop control.
 * One at a time; @text is taken over. Returns -EBUSY while one is under way.
 */
struct statefile_writer;

struct statefile_writer *statefile_writer_new(void);
int statefile_writer_start(struct statefile_writer *w, const char *path, char *text);
/* The result of the last one that ended, once; 0 when there is none. */
int statefile_writer_result(struct statefile_writer *w);
void statefile_writer_free(struct statefile_writer *w);	/* waits for it */

#endif /* MGPUD_STATEFILE_H */
