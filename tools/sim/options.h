/* SPDX-License-Identifier: GPL-2.0-only */
/* Command lines of the simulators: one table for the parser and the help. */
#ifndef MGPU_SIM_OPTIONS_H
#define MGPU_SIM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

/**
 * struct sim_option - an option
 * @id: what option_set() of the program gets; --help and --list have their own
 * @name: without the dashes
 * @arg: what the help calls its value; NULL if it has none
 * @help: one line
 */
struct sim_option {
	int id;
	const char *name;
	const char *arg;
	const char *help;
};

/**
 * struct sim_program - a program
 * @name: its name, which begins each complaint
 * @usage: what it is for and how it is called; begins the help
 * @options: its options, with --list and --help
 * @nr: number of these
 * @width: width of names in the help
 * @list: print what --list prints
 * @set: take an option; @value is NULL for one without. Returns 0, or -EINVAL after
 *	sim_bad()
 */
struct sim_program {
	const char *name;
	const char *usage;
	const struct sim_option *options;
	size_t nr;
	int width;
	void (*list)(void);
	int (*set)(void *data, const struct sim_option *option, const char *value);
};

#define SIM_OPTION_LIST	-1
#define SIM_OPTION_HELP	-2

/**
 * sim_parse() - parse a command line
 * @p: the program, whose name sim_bad() uses from then on
 * @argc: of main()
 * @argv: of main()
 * @data: for @p->set
 *
 * Return: 0; -EINVAL after a complaint; 1 after --help or --list.
 */
int sim_parse(const struct sim_program *p, int argc, char **argv, void *data);

/* Print a complaint on standard error. Return -EINVAL. */
int sim_bad(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Read the number of an option. Return 0, or -EINVAL after a complaint. */
int sim_number(const char *option, const char *s, double min, double max, bool whole,
	       double *v);

struct learn_file;

/*
 * Read a file of weights, to be freed with learn_file_free(). Return 0, or -EINVAL after a
 * complaint.
 */
int sim_weights(struct learn_file *file, const char *path);

#endif /* MGPU_SIM_OPTIONS_H */
