// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-exporter: the command line, and the process that reads the sources. */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmdline.h"
#include "complain.h"
#include "files.h"
#include "gather.h"
#include "http.h"
#include "notify.h"
#include "output.h"
#include "pipe.h"

#ifndef MGPU_VERSION
#define MGPU_VERSION "unknown"
#endif

#define STATUS_FAILED	1
#define STATUS_USAGE	2

#define INTERVAL_MAX	86400

static const char usage_text[] =
	"usage: mgpu-exporter print [--openmetrics] [--no-histograms]\n"
	"       mgpu-exporter serve --listen ADDRESS:PORT [--any-address] [--no-histograms]\n"
	"       mgpu-exporter serve --socket PATH [--no-histograms]\n"
	"       mgpu-exporter textfile FILE [--interval SECONDS] [--no-histograms]\n"
	"       mgpu-exporter list\n"
	"       mgpu-exporter help | version\n"
	"\n"
	"Metrics of GPUs and vGPUs for Prometheus: prints them, serves them, writes them to a file for\n"
	"node_exporter, or lists their names.\n"
	"\n"
	"      --listen ADDRESS:PORT\n"
	"                      serve by HTTP at this address, which must be a loopback one\n"
	"      --any-address   let --listen take another address, too: the service has no TLS and\n"
	"                      asks for no password\n"
	"      --socket PATH   serve by HTTP at a UNIX socket that owner and group may use\n"
	"      --interval SECONDS\n"
	"                      write the file again and again, with this pause (1 to 86400)\n"
	"      --openmetrics   print as OpenMetrics, not in Prometheus' text format\n"
	"      --no-histograms leave out histograms, half of all lines\n"
	"  -h, --help          print this help\n"
	"  -V, --version       print the version\n";

enum { OPT_LISTEN = 256, OPT_ANY, OPT_SOCKET, OPT_INTERVAL, OPT_OPENMETRICS, OPT_NO_HISTOGRAMS };

static const struct option options[] = {
	{ "listen", required_argument, NULL, OPT_LISTEN },
	{ "any-address", no_argument, NULL, OPT_ANY },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "interval", required_argument, NULL, OPT_INTERVAL },
	{ "openmetrics", no_argument, NULL, OPT_OPENMETRICS },
	{ "no-histograms", no_argument, NULL, OPT_NO_HISTOGRAMS },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

#define BIT(option)	(UINT32_C(1) << ((option) - OPT_LISTEN))

/**
 * struct exporter - options
 * @listen: address to serve at, NULL for none
 * @socket: UNIX socket to serve at, NULL for none
 * @any_address: @listen may be another one than a loopback address
 * @openmetrics: print as OpenMetrics
 * @interval: pause between two writes of a file, seconds; 0 to write it once
 * @file: file to write
 * @gather: how the sources are read
 */
static struct exporter {
	const char *listen;
	const char *socket;
	bool any_address;
	bool openmetrics;
	unsigned int interval;
	const char *file;
	struct gather gather;
} opt = { .gather = { .root = "", .hists = true, .verbose = true } };

/* ---- print, textfile, list ---- */

static int write_text(const void *text, FILE *f)
{
	const struct text *t = text;

	return fwrite(t->bytes, 1, t->len, f) != t->len;
}

/* Print a text and free it. Return the exit status. */
static int print_text(struct text *text)
{
	int status = STATUS_FAILED;

	if (text->failed) {
		complain("out of memory");
	} else {
		write_text(text, stdout);
		status = end_output();
	}
	text_free(text);
	return status;
}

static int run_print(void)
{
	struct text text = { 0 };

	gather_text(&opt.gather, &text, opt.openmetrics ? EXPOSE_OPENMETRICS : EXPOSE_TEXT);
	gather_close(&opt.gather);
	return print_text(&text);
}

static int run_list(void)
{
	struct text text = { 0 };

	metrics_list(&text);
	return print_text(&text);
}

static int write_file(const char *path)
{
	struct text text = { 0 };
	int ret = -1;

	gather_text(&opt.gather, &text, EXPOSE_TEXT);
	if (text.failed)
		complain("out of memory");
	else
		ret = replace_file(path, &text, write_text);
	text_free(&text);
	return ret;
}

static int run_textfile(void)
{
	const char *path = opt.file;
	size_t len = strlen(path);
	int ret;

	if (len < 6 || strcmp(path + len - 5, ".prom")) {
		complain("'%s': node_exporter reads only files whose name ends with .prom", path);
		return STATUS_USAGE;
	}
	for (;;) {
		ret = write_file(path);
		if (!opt.interval)
			break;
		/* A disk that is full may have room the next time. */
		if (!ret)
			notify("READY=1");
		sleep(opt.interval);
	}
	gather_close(&opt.gather);
	return ret ? STATUS_FAILED : 0;
}

/* ---- serve ---- */

/* Answer the process that serves, until it ends or a signal comes; 0 after a signal. */
static int read_for(int pipe, int signals)
{
	struct pollfd p[] = {
		{ .fd = pipe, .events = POLLIN }, { .fd = signals, .events = POLLIN },
	};
	enum expose_format format;

	for (;;) {
		struct text text = { 0 };
		int ret;

		if (poll(p, 2, -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (p[1].revents)
			return 0;
		ret = pipe_receive(pipe, &format);
		if (ret)
			return ret;
		gather_text(&opt.gather, &text, format);
		ret = pipe_answer(pipe, &text);
		text_free(&text);
		if (ret)
			return ret;
	}
}

static int block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* The process that serves ends with this one. */
static pid_t start_server(int listener, const int pipe[2])
{
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(STATUS_FAILED);
	close(pipe[0]);
	_exit(http_serve(listener, pipe[1]));
}

static int run_serve(void)
{
	int listener, pipe[2], signals, ret;
	pid_t server;

	if (!opt.listen == !opt.socket) {
		complain("serve: give --listen ADDRESS:PORT or --socket PATH: nothing is served unless asked for");
		return STATUS_USAGE;
	}
	listener = opt.listen ? http_listen(opt.listen, opt.any_address) :
				http_listen_unix(opt.socket);
	if (listener < 0)
		return STATUS_FAILED;
	signals = block_signals();
	if (signals < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipe)) {
		complain("cannot start: %s", strerror(errno));
		return STATUS_FAILED;
	}
	server = start_server(listener, pipe);
	close(listener);
	close(pipe[1]);
	if (server < 0) {
		complain("no process for HTTP: %s", strerror(errno));
		return STATUS_FAILED;
	}
	notify("READY=1");
	ret = read_for(pipe[0], signals);
	if (ret)
		complain("the process for HTTP has ended");
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	if (opt.socket)
		unlink(opt.socket);
	gather_close(&opt.gather);
	return ret ? STATUS_FAILED : 0;
}

/* ---- the command line ---- */

static void read_interval(void)
{
	char *end;
	unsigned long value = strtoul(optarg, &end, 10);

	if (*optarg < '0' || *optarg > '9' || *end || !value || value > INTERVAL_MAX) {
		complain("--interval '%s': it must be a whole number of seconds from 1 to %d",
			 optarg, INTERVAL_MAX);
		exit(STATUS_USAGE);
	}
	opt.interval = (unsigned int)value;
}

static void read_option(int option, const char *name)
{
	(void)name;
	switch (option) {
	case OPT_LISTEN:
		opt.listen = optarg;
		break;
	case OPT_ANY:
		opt.any_address = true;
		break;
	case OPT_SOCKET:
		opt.socket = optarg;
		break;
	case OPT_INTERVAL:
		read_interval();
		break;
	case OPT_OPENMETRICS:
		opt.openmetrics = true;
		break;
	default:
		opt.gather.hists = false;
	}
}

static int run_help(void)
{
	fputs(usage_text, stdout);
	return end_output();
}

static int run_version(void)
{
	puts("mgpu-exporter " MGPU_VERSION);
	return end_output();
}

/**
 * struct command - a command
 * @o: its name and options
 * @files: files that it takes
 * @run: the command; returns the exit status
 */
static const struct command {
	struct command_options o;
	int files;
	int (*run)(void);
} commands[] = {
	{ { "print", BIT(OPT_OPENMETRICS) | BIT(OPT_NO_HISTOGRAMS), 0 }, 0, run_print },
	{ { "serve", BIT(OPT_LISTEN) | BIT(OPT_ANY) | BIT(OPT_SOCKET) | BIT(OPT_NO_HISTOGRAMS), 0 },
	  0, run_serve },
	{ { "textfile", BIT(OPT_INTERVAL) | BIT(OPT_NO_HISTOGRAMS), 0 }, 1, run_textfile },
	{ { "list", 0, 0 }, 0, run_list },
	{ { "help", 0, 0 }, 0, run_help },
	{ { "version", 0, 0 }, 0, run_version },
};

static const char *const command_names[] = {
	"print", "serve", "textfile", "list", "help", "version", NULL
};

static const struct program_options program = {
	"mgpu-exporter", options, OPT_LISTEN, read_option
};

static int run(const struct command *command, uint32_t given, int nr_words, char **words)
{
	char text[256];

	if (wrong_options(text, sizeof(text), "mgpu-exporter", &command->o, options, OPT_LISTEN,
			  given)) {
		complain("%s", text);
		return STATUS_USAGE;
	}
	if (nr_words != command->files) {
		complain(command->files ? "%s takes one file" : "%s takes options only",
			 command->o.command);
		return STATUS_USAGE;
	}
	opt.file = *words;
	return command->run();
}

int main(int argc, char **argv)
{
	uint32_t given = 0;
	char text[256];
	int ret = read_options(text, sizeof(text), &program, argc, argv, &given);

	if (ret == 'h' || ret == 'V')
		return ret == 'h' ? run_help() : run_version();
	if (ret) {
		complain("%s", text);
		return STATUS_USAGE;
	}
	if (optind == argc) {
		complain("no command; the commands are print, serve, textfile and list (see 'mgpu-exporter --help')");
		return STATUS_USAGE;
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(commands[i].o.command, argv[optind]))
			return run(&commands[i], given, argc - optind - 1, argv + optind + 1);
	unknown_command(text, sizeof(text), "mgpu-exporter", argv[optind], command_names);
	complain("%s", text);
	return STATUS_USAGE;
}
