// SPDX-License-Identifier: GPL-2.0-only
/* Words and options that a program does not know. */
#include <getopt.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cmdline.h"

bool is_word(const char *word, const char *const *words)
{
	for (; words && *words; words++)
		if (!strcmp(word, *words))
			return true;
	return false;
}

#define WORD_MAX	32
#define NAMES_MAX	64	/* options of a program that can be suggested */

/* True if one of @word's parts, between hyphens, is @part. */
static bool has_part(const char *word, const char *part)
{
	size_t len = strlen(part);
	const char *dash;

	for (const char *at = word; ; at = dash + 1) {
		if (!strncmp(at, part, len) && (!at[len] || at[len] == '-'))
			return true;
		dash = strchr(at, '-');
		if (!dash)
			return false;
	}
}

/* Edit distance: letters to insert, drop, replace or swap to turn @a into @b. */
static size_t distance(const char *a, const char *b)
{
	size_t d[WORD_MAX + 1][WORD_MAX + 1];
	size_t la = strlen(a);
	size_t lb = strlen(b);
	size_t i;
	size_t j;

	if (la > WORD_MAX || lb > WORD_MAX)
		return SIZE_MAX;
	for (i = 0; i <= la; i++)
		d[i][0] = i;
	for (j = 0; j <= lb; j++)
		d[0][j] = j;
	for (i = 1; i <= la; i++) {
		for (j = 1; j <= lb; j++) {
			size_t best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			if (d[i - 1][j] + 1 < best)
				best = d[i - 1][j] + 1;
			if (d[i][j - 1] + 1 < best)
				best = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
				best = d[i - 2][j - 2] + 1;
			d[i][j] = best;
		}
	}
	return d[la][lb];
}

const char *suggest(const char *word, const char *const *words)
{
	const char *best = NULL;
	size_t least = 3;

	for (; words && *words; words++) {
		size_t n = distance(word, *words);

		/* An abbreviation is a match, whatever it omits. */
		if (*word && !strncmp(word, *words, strlen(word)))
			n = 0;
		/* fps-limit for fps, timeout for job-timeout */
		else if (has_part(word, *words) || has_part(*words, word))
			n = 1;
		/* A short word must keep some of its letters. */
		if (n < least && n < strlen(*words) - 1) {
			least = n;
			best = *words;
		}
	}
	return best;
}

void unknown_option(char *text, size_t size, const char *program, const char *option,
		    const char *const *names)
{
	const char *like = NULL;
	int len = (int)strcspn(option, "=");
	char name[WORD_MAX + 1];

	if (!strncmp(option, "--", 2) && len > 2) {
		snprintf(name, sizeof(name), "%.*s", len - 2, option + 2);
		like = suggest(name, names);
	}
	if (like)
		snprintf(text, size, "unknown option %.*s; did you mean --%s?", len, option,
			 like);
	else
		snprintf(text, size, "unknown option %.*s; '%s --help' lists all", len, option,
			 program);
}

void unknown_command(char *text, size_t size, const char *program, const char *word,
		     const char *const *commands)
{
	const char *like = suggest(word, commands);

	if (like)
		snprintf(text, size, "unknown command '%s'; did you mean '%s'?", word, like);
	else
		snprintf(text, size, "unknown command '%s'; '%s --help' lists all", word, program);
}

/* The long name of an option, NULL for none. */
static const char *long_name(const struct option *options, int val)
{
	for (; options->name; options++)
		if (!options->flag && options->val == val)
			return options->name;
	return NULL;
}

void getopt_problem(char *text, size_t size, const char *program, int result,
		    char *const *argv, const struct option *options, const char *const *names)
{
	const char *name = optopt ? long_name(options, optopt) : NULL;
	char letter[] = { '-', (char)optopt, '\0' };
	const char *all[NAMES_MAX + 1] = { NULL };

	for (size_t i = 0; i < NAMES_MAX && options[i].name; i++)
		all[i] = options[i].name;
	if (!names)
		names = all;
	if (!optopt)
		unknown_option(text, size, program, argv[optind - 1], names);
	else if (result == ':' && name)
		snprintf(text, size, "--%s wants a value; see '%s --help'", name, program);
	else if (result == ':')
		snprintf(text, size, "%s wants a value; see '%s --help'", letter, program);
	else if (name)
		snprintf(text, size, "--%s takes no value", name);
	else
		unknown_option(text, size, program, letter, names);
}

int read_options(char *text, size_t size, const struct program_options *p, int argc, char **argv,
		 uint32_t *given)
{
	int c, at = 0;

	while ((c = getopt_long(argc, argv, ":hV", p->options, &at)) != -1) {
		if (c == 'h' || c == 'V')
			return c;
		if (c == '?' || c == ':') {
			getopt_problem(text, size, p->program, c, argv, p->options, NULL);
			return '?';
		}
		*given |= UINT32_C(1) << (c - p->first);
		p->take(c, p->options[at].name);
	}
	return 0;
}

bool wrong_options(char *text, size_t size, const char *program, const struct command_options *c,
		   const struct option *options, int first, uint32_t given)
{
	uint32_t wrong = given & ~c->takes, missing = c->needs & ~given;

	for (int i = 0; i < 32; i++) {
		uint32_t bit = UINT32_C(1) << i;
		const char *name = (wrong | missing) & bit ? long_name(options, first + i) : NULL;

		if (!name)
			continue;
		if (wrong & bit)
			snprintf(text, size, "--%s is not for %s; see '%s --help'", name,
				 c->command, program);
		else
			snprintf(text, size, "%s needs --%s; see '%s --help'", c->command, name,
				 program);
		return true;
	}
	return false;
}
