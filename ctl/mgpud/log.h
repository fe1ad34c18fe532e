/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What mgpud says: one event, one line. To the journal each line begins with its
 * priority, as sd-daemon(3) has it.
 */
#ifndef MGPUD_LOG_H
#define MGPUD_LOG_H

#include <stdbool.h>
#include <stdio.h>

/* As in syslog(3). */
enum log_level {
	LEVEL_ERROR = 3,
	LEVEL_WARNING = 4,
	LEVEL_INFO = 6,
};

/**
 * enum log_mode - how much is said
 * @LOG_AUTO: LOG_CHANGES to the journal, else LOG_PERIODS
 * @LOG_PERIODS: a line for each period, too
 * @LOG_CHANGES: what changes: settings, agreements not kept, trouble
 * @LOG_QUIET: warnings and errors
 */
enum log_mode {
	LOG_AUTO,
	LOG_PERIODS,
	LOG_CHANGES,
	LOG_QUIET,
};

const char *log_mode_name(enum log_mode mode);
bool log_mode_parse(const char *name, enum log_mode *mode);

/* Look where standard output and standard error go; before anything is said. */
void log_start(void);
void log_set_mode(enum log_mode mode);
bool log_periods(void);

/*
 * An event: its name, and key=value. Warnings and errors go to standard error,
 * the rest to standard output.
 */
void log_event(enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The same for a sentence: to people as such, to the journal as text="..." */
void log_text(enum log_level level, const char *event, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* What a line to @to begins with that is written without the above. */
const char *log_prefix(enum log_level level, FILE *to);

/* For tests: is "DEVICE:INODE", as in JOURNAL_STREAM, this file? */
bool log_is_stream(const char *stream, int fd);

#endif /* MGPUD_LOG_H */
