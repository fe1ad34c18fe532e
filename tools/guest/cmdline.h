/* SPDX-License-Identifier: GPL-2.0-only */
/* Command lines, messages and signals of the guest programs. */
#ifndef MGPU_GUEST_CMDLINE_H
#define MGPU_GUEST_CMDLINE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* The start of each message; each program defines its own. */
extern const char *const program_name;

/* Print a message to standard error, with the program's name in front. */
void explain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

enum option_type {
	OPTION_FLAG,		/* bool; takes no value */
	OPTION_TEXT,		/* const char * */
	OPTION_WORD,		/* const char *, one word without =, quotes and backslashes */
	OPTION_U32,		/* uint32_t, from @min to @max */
	OPTION_U64,		/* uint64_t, from @min to @max */
	OPTION_NUMBER,		/* double, from @min to @max */
	OPTION_CHOICE,		/* @choose decides */
};

/**
 * struct cmdline_option - an option of a program
 * @name: name, without the dashes; NULL ends a list of options
 * @to: the variable to set; its type depends on @type
 * @type: type of the value
 * @min: least number
 * @max: greatest number
 * @want: description of a valid value, for the error; by default the range of numbers
 * @choose: sets @to from a value; returns 0, or nonzero for an invalid value
 */
struct cmdline_option {
	const char *name;
	void *to;
	enum option_type type;
	double min;
	double max;
	const char *want;
	int (*choose)(const char *value, void *to);
};

/* Entries of a list of options; @w is struct cmdline_option's @want. */
#define FLAG(n, t)	{ .name = n, .to = t, .type = OPTION_FLAG }
#define TEXT(n, t)	{ .name = n, .to = t, .type = OPTION_TEXT }
#define WORD(n, t)	{ .name = n, .to = t, .type = OPTION_WORD }
#define CHOICE(n, t, c, w) \
	{ .name = n, .to = t, .type = OPTION_CHOICE, .choose = c, .want = w }
#define U32(n, t, from, up_to) \
	{ .name = n, .to = t, .type = OPTION_U32, .min = from, .max = up_to }
#define U64(n, t, from, up_to, w) \
	{ .name = n, .to = t, .type = OPTION_U64, .min = from, .max = up_to, .want = w }
#define NUMBER(n, t, from, up_to, w) \
	{ .name = n, .to = t, .type = OPTION_NUMBER, .min = from, .max = up_to, .want = w }

/**
 * cmdline_parse - parse a command line of options
 * @options: at most 31 options; --help is added
 * @usage: text that --help prints
 * @argc: of main()
 * @argv: of main()
 *
 * Return: 0; 1 if --help was given, and there is nothing left to do; or -EINVAL, with
 * a message on standard error.
 */
int cmdline_parse(const struct cmdline_option *options, const char *usage, int argc,
		  char **argv);

/* Set by SIGINT and SIGTERM after stop_on_signals(). */
extern volatile sig_atomic_t stop;
void stop_on_signals(void);

#endif /* MGPU_GUEST_CMDLINE_H */
