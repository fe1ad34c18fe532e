/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Words and options that a program does not know. gpuctl, mgpud, mgpu-policy, mgpu-trace,
 * mgpu-renderd, mgpu-defer, mgpu-place, mgpu-learn, mgpu-exporter, mgpu-remoted, mgpu-poold and
 * mgpu-agent answer them alike: one line on standard error, with a suggestion, and exit status 2.
 */
#ifndef LIBMGPU_CMDLINE_H
#define LIBMGPU_CMDLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct option;

/* @words: NULL at the end */
bool is_word(const char *word, const char *const *words);
/* The word of @words that is most like @word, NULL if none is similar. */
const char *suggest(const char *word, const char *const *words);

/**
 * unknown_option() - write the sentence for an unknown option
 * @text: result, of @size bytes
 * @size: size of the result
 * @program: name of the program
 * @option: the option as it was written, with its dashes
 * @names: long names to suggest, without dashes, NULL at the end
 */
void unknown_option(char *text, size_t size, const char *program, const char *option,
		    const char *const *names);

/**
 * unknown_command() - write the sentence for an unknown command
 * @text: result, of @size bytes
 * @size: size of the result
 * @program: name of the program
 * @word: the word in a command's place
 * @commands: commands to suggest, NULL at the end
 */
void unknown_command(char *text, size_t size, const char *program, const char *word,
		     const char *const *commands);

/**
 * getopt_problem() - write the sentence for an error of getopt_long()
 * @text: result, of @size bytes
 * @size: size of the result
 * @program: name of the program
 * @result: result of getopt_long(), '?' or ':', which it returns for a missing value if the
 *	short options begin with a colon
 * @argv: words, as getopt_long() left them
 * @options: long options
 * @names: long names to suggest, NULL at the end; NULL for those of all @options
 */
void getopt_problem(char *text, size_t size, const char *program, int result,
		    char *const *argv, const struct option *options, const char *const *names);

/**
 * struct program_options - options of a program that has commands
 * @program: name of the program
 * @options: long options, with -h and -V
 * @first: value of the option that bit 0 of a mask stands for; the others follow it
 * @take: called for each other one, with its value in optarg
 */
struct program_options {
	const char *program;
	const struct option *options;
	int first;
	void (*take)(int option, const char *name);
};

/**
 * read_options() - read all options of a command line, wherever they stand
 * @text: the sentence for a wrong option, of @size bytes
 * @size: its size
 * @p: the options
 * @argc: number of words
 * @argv: words; optind is left at the first one that is no option
 * @given: mask of the options that were given
 *
 * Return: 0; 'h' or 'V' for these; '?' for a wrong option.
 */
int read_options(char *text, size_t size, const struct program_options *p, int argc, char **argv,
		 uint32_t *given);

/**
 * struct command_options - options of a command
 * @command: name of the command
 * @takes: mask of its options
 * @needs: mask of the options that it needs
 */
struct command_options {
	const char *command;
	uint32_t takes;
	uint32_t needs;
};

/**
 * wrong_options() - write the sentence for an option that a command does not take, or lacks
 * @text: result, of @size bytes
 * @size: size of the result
 * @program: name of the program
 * @c: options of the command
 * @options: long options
 * @first: value of the option that bit 0 of a mask stands for; the others follow it
 * @given: mask of the options that were given
 *
 * Return: whether there is such an option.
 */
bool wrong_options(char *text, size_t size, const char *program, const struct command_options *c,
		   const struct option *options, int first, uint32_t given);

#endif /* LIBMGPU_CMDLINE_H */
