// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-defer: the command line. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache.h"
#include "classify.h"
#include "cmdline.h"
#include "complain.h"
#include "cudart.h"
#include "report.h"

#define STATUS_USAGE	2

static const char usage_text[] =
	"usage: mgpu-defer analyse [-j] [--assume-success] [--picture FILE] [--no-cache] PROGRAM\n"
	"       mgpu-defer runtime PROGRAM\n"
	"       mgpu-defer help | version\n"
	"\n"
	"Finds the loops of a program whose GPU calls (OpenCL, CUDA) need not be executed\n"
	"one by one, and says of the others why they must be. With 'runtime' prints where the\n"
	"functions of a statically linked CUDA runtime library are.\n"
	"\n"
	"  -j, --json          print JSON\n"
	"      --assume-success  a loop may test whether a call succeeded; an error then shows at\n"
	"                      the next call that waits\n"
	"      --picture FILE  draw the control-flow graphs of the functions with such loops:\n"
	"                      .dot, or .svg, .png or .pdf by Graphviz\n"
	"      --no-cache      neither use nor keep the report of a program with this build id\n"
	"  -h, --help          print this help\n"
	"  -V, --version       print the version\n";

struct options {
	bool json, no_cache;
	const char *picture;
	struct classify_options classify;
};

/* Return the extension of a picture that can be made, without its dot; NULL: none. */
static const char *picture_format(const char *path)
{
	static const char *const formats[] = { "dot", "svg", "png", "pdf" };
	const char *dot = strrchr(path, '.');
	size_t i;

	for (i = 0; dot && i < sizeof(formats) / sizeof(*formats); i++)
		if (!strcmp(dot + 1, formats[i]))
			return formats[i];
	return NULL;
}

/* Let Graphviz draw: its program, since that ends on a graph that it cannot lay out. */
static int run_dot(const char *graph, size_t len, const char *format, const char *path)
{
	char option[16];
	char *argv[] = { "dot", option, "-o", (char *)path, NULL };
	posix_spawn_file_actions_t actions;
	int fds[2], status, ret;
	FILE *out;
	pid_t pid;

	snprintf(option, sizeof(option), "-T%s", format);
	if (pipe2(fds, O_CLOEXEC))
		return -1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[0], STDIN_FILENO);
	ret = posix_spawnp(&pid, "dot", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[0]);
	out = fdopen(fds[1], "w");
	if (ret || !out) {
		ret = ret ? ret : errno;
		if (out)
			fclose(out);
		else
			close(fds[1]);
		errno = ret;
		return -1;
	}
	fwrite(graph, 1, len, out);
	fclose(out);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	errno = EIO;
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -1;
}

static int draw(const char *graph, size_t len, const char *format, const char *path)
{
	FILE *out;
	int ret;

	if (strcmp(format, "dot")) {
		signal(SIGPIPE, SIG_IGN);
		ret = run_dot(graph, len, format, path);
		if (ret)
			complain("%s was not drawn by Graphviz's dot: %s; a .dot file does not need it",
				 path, strerror(errno));
		return ret;
	}
	out = fopen(path, "we");
	ret = out && fwrite(graph, 1, len, out) == len ? 0 : -1;
	if (out && fclose(out))
		ret = -1;
	if (ret)
		complain("%s: %s", path, strerror(errno));
	return ret;
}

static json_object *look_at(const struct image *img, const char *path, struct options *o,
			    char **graph, size_t *graph_len)
{
	struct picture picture;
	json_object *json;
	struct report r;
	FILE *out = NULL;
	int ret;

	if (o->picture) {
		out = open_memstream(graph, graph_len);
		if (!out)
			return NULL;
		picture_begin(&picture, out);
		o->classify.picture = picture_function;
		o->classify.data = &picture;
	}
	ret = classify(&r, img, &o->classify);
	json = ret ? NULL : report_json(&r, img, &o->classify);
	report_free(&r);
	if (out) {
		picture_end(&picture);
		fclose(out);
	}
	if (!json)
		complain("%s: %s", path, strerror(ret ? -ret : ENOMEM));
	return json;
}

static int flush(void)
{
	if (fflush(stdout) || ferror(stdout)) {
		complain("standard output: %s", strerror(errno));
		return 1;
	}
	return 0;
}

static int print(json_object *json, const char *path, bool as_json)
{
	if (as_json) {
		json_object_object_add(json, "program", json_object_new_string(path));
		puts(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PRETTY |
						    JSON_C_TO_STRING_NOSLASHESCAPE));
	} else {
		report_print(json, path, stdout);
	}
	return flush();
}

/* Name the functions of a runtime library in a stripped program; return whether that was so. */
static bool name_runtime(struct image *img, struct cudart *rt, const char *path)
{
	unsigned int i;
	int ret;

	ret = cudart_find(rt, img, cudart_archive());
	if (ret)
		complain("%s: calls of CUDA's runtime library have no names: %s", path, rt->error);
	for (i = 0; !ret && i < rt->nr; i++)
		if (!image_symbol(img, rt->functions[i].address))
			ret = image_name(img, rt->functions[i].address, rt->functions[i].name);
	return !ret;
}

/*
 * Print a line "cudart VERSION", one of address, room, first bytes and name for each function of
 * the runtime library, and "end".
 */
static void print_runtime(const struct cudart *rt, const struct image *img)
{
	const uint8_t *code;
	unsigned int i, k;
	size_t len;

	printf("cudart %u\n", rt->version);
	for (i = 0; i < rt->nr; i++) {
		code = image_bytes(img, rt->functions[i].address, &len);
		printf("%#llx %u ", (unsigned long long)rt->functions[i].address,
		       rt->functions[i].room);
		for (k = 0; k < CUDART_ROOM; k++)
			printf("%02x", code && k < len ? code[k] : 0);
		printf(" %s\n", rt->functions[i].name);
	}
	puts("end");
}

static int runtime(const char *path)
{
	struct cudart rt = { 0 };
	struct image img;
	int ret;

	ret = image_open(&img, path);
	if (ret)
		complain("%s: %s", path, img.error);
	if (!ret) {
		ret = cudart_find(&rt, &img, cudart_archive());
		if (!ret)
			ret = cudart_measure(&rt, &img);
		if (ret)
			complain("%s: %s", path, rt.error);
	}
	if (!ret) {
		print_runtime(&rt, &img);
		ret = flush();
	}
	cudart_free(&rt);
	image_close(&img);
	return ret ? 1 : 0;
}

static int analyse(const char *path, struct options *o)
{
	const char *format = o->picture ? picture_format(o->picture) : NULL;
	json_object *json = NULL;
	size_t graph_len = 0;
	char *graph = NULL;
	struct cudart rt = { 0 };
	struct image img;
	bool named;
	int ret = 1;

	if (o->picture && !format) {
		complain("--picture '%s': its name must end in .dot, .svg, .png or .pdf",
			 o->picture);
		return STATUS_USAGE;
	}
	if (image_open(&img, path)) {
		complain("%s: %s", path, img.error);
		image_close(&img);
		return 1;
	}
	if (!o->no_cache && !o->picture)
		json = cache_get(img.build_id, o->classify.assume_success);
	if (!json) {
		named = name_runtime(&img, &rt, path);
		json = look_at(&img, path, o, &graph, &graph_len);
		/* With the names the report is another one. */
		if (json && named && !o->no_cache)
			cache_put(img.build_id, o->classify.assume_success, json);
	}
	if (json)
		ret = print(json, path, o->json);
	if (json && !ret && o->picture && draw(graph, graph_len, format, o->picture))
		ret = 1;
	json_object_put(json);
	free(graph);
	cudart_free(&rt);
	image_close(&img);
	return ret;
}

int main(int argc, char **argv)
{
	enum { OPT_PICTURE = 256, OPT_NO_CACHE, OPT_ASSUME };
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "assume-success", no_argument, NULL, OPT_ASSUME },
		{ "picture", required_argument, NULL, OPT_PICTURE },
		{ "no-cache", no_argument, NULL, OPT_NO_CACHE },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	static const char *const commands[] = { "analyse", "runtime", "help", "version", NULL };
	const char *command;
	struct options o = { 0 };
	char text[256];
	int c;

	/* print our own error */
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":jhV", options, NULL)) != -1) {
		switch (c) {
		case 'j':
			o.json = true;
			break;
		case OPT_ASSUME:
			o.classify.assume_success = true;
			break;
		case OPT_PICTURE:
			o.picture = optarg;
			break;
		case OPT_NO_CACHE:
			o.no_cache = true;
			break;
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		case 'V':
			puts("mgpu-defer " MGPU_VERSION);
			return 0;
		default:
			getopt_problem(text, sizeof(text), "mgpu-defer", c, argv, options, NULL);
			complain("%s", text);
			return STATUS_USAGE;
		}
	}
	if (optind == argc) {
		complain("no command; the commands are: analyse PROGRAM, runtime PROGRAM (see 'mgpu-defer --help')");
		return STATUS_USAGE;
	}
	command = argv[optind];
	if (!strcmp(command, "help")) {
		fputs(usage_text, stdout);
		return 0;
	}
	if (!strcmp(command, "version")) {
		puts("mgpu-defer " MGPU_VERSION);
		return 0;
	}
	if (strcmp(command, "analyse") && strcmp(command, "runtime")) {
		unknown_command(text, sizeof(text), "mgpu-defer", command, commands);
		complain("%s", text);
		return STATUS_USAGE;
	}
	if (argc - optind != 2) {
		complain("%s takes one program, not %d", command, argc - optind - 1);
		return STATUS_USAGE;
	}
	if (!strcmp(command, "runtime"))
		return runtime(argv[optind + 1]);
	return analyse(argv[optind + 1], &o);
}
