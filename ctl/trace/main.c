// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-trace: the command line. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmdline.h"
#include "complain.h"
#include "trace.h"

#define STATUS_USAGE	2

static const char usage_text[] =
	"usage: mgpu-trace record -o FILE [-s SECONDS] [-v] [VGPU]...\n"
	"       mgpu-trace help | version\n"
	"\n"
	"Records what each frame of the vGPUs costs: CPU time of its VMM and engine\n"
	"time, one line of CSV per frame. mgpu-sim replays it.\n"
	"\n"
	"VGPU is a UUID, its beginning, or an id; without one all are recorded.\n"
	"\n"
	"  -o, --output FILE      output file\n"
	"  -s, --seconds SECONDS  duration; without it, until Ctrl-C\n"
	"  -v, --verbose          print messages of libbpf\n"
	"  -h, --help             print this help\n"
	"  -V, --version          print the version\n";

static int parse_seconds(const char *s, double *seconds)
{
	char *end;

	errno = 0;
	*seconds = strtod(s, &end);
	if (!errno && end != s && !*end && *seconds >= 0.1 &&
	    *seconds <= TRACE_SECONDS_MAX)
		return 0;
	complain("--seconds '%s': must be a number from 0.1 to %.0f", s,
		 TRACE_SECONDS_MAX);
	return -EINVAL;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "seconds", required_argument, NULL, 's' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	static const char *const commands[] = { "record", "help", "version", NULL };
	const char *command;
	char text[256];
	struct record r = { 0 };
	int c;

	/* print our own error */
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":o:s:vhV", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			r.path = optarg;
			break;
		case 's':
			if (parse_seconds(optarg, &r.seconds))
				return STATUS_USAGE;
			break;
		case 'v':
			r.verbose = true;
			break;
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		case 'V':
			puts("mgpu-trace " MGPU_VERSION);
			return 0;
		default:
			getopt_problem(text, sizeof(text), "mgpu-trace", c, argv, options, NULL);
			complain("%s", text);
			return STATUS_USAGE;
		}
	}
	if (optind == argc) {
		complain("no command; the command is: record -o FILE (see 'mgpu-trace --help')");
		return STATUS_USAGE;
	}
	command = argv[optind];
	if (!strcmp(command, "help")) {
		fputs(usage_text, stdout);
		return 0;
	}
	if (!strcmp(command, "version")) {
		puts("mgpu-trace " MGPU_VERSION);
		return 0;
	}
	if (strcmp(command, "record")) {
		unknown_command(text, sizeof(text), "mgpu-trace", command, commands);
		complain("%s", text);
		return STATUS_USAGE;
	}
	if (!r.path) {
		complain("record needs -o FILE");
		return STATUS_USAGE;
	}
	r.vgpus = argv + optind + 1;
	r.nr_vgpus = (size_t)(argc - optind - 1);
	return record(&r) ? 1 : 0;
}
