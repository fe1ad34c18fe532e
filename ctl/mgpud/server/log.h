/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mgpud's log: one line per event. In the journal each line begins with its priority, as
 * in sd-daemon(3).
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
 * enum log_mode - which messages are logged
 * @LOG_AUTO: LOG_CHANGES to the journal, else LOG_PERIODS
 * @LOG_PERIODS: LOG_CHANGES, and a line for each period
 * @LOG_CHANGES: changes of settings, agreements that are not kept, failures
 * @LOG_QUIET: only warnings and errors
 */
enum log_mode {
	LOG_AUTO,
	LOG_PERIODS,
	LOG_CHANGES,
	LOG_QUIET,
};

const char *log_mode_name(enum log_mode mode);
bool log_mode_parse(const char *name, enum log_mode *mode);

/* Detect the journal; must be called before the first message. */
void log_start(void);
void log_set_mode(enum log_mode mode);
bool log_periods(void);

/*
 * Log an event: its name, and key=value pairs. Warnings and errors go to standard error,
 * other events to standard output.
 */
void log_event(enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Log a sentence: to a terminal or file as such, to the journal as text="..." */
void log_text(enum log_level level, const char *event, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Return the prefix for a line that the caller writes to @to itself. */
const char *log_prefix(enum log_level level, FILE *to);

/* For tests: true if "DEVICE:INODE", as in JOURNAL_STREAM, is this file. */
bool log_is_stream(const char *stream, int fd);

#endif /* MGPUD_LOG_H */
