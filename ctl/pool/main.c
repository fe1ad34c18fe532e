// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-poold: the command line. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "auth.h"
#include "check.h"
#include "client.h"
#include "cmdline.h"
#include "complain.h"
#include "config.h"
#include "output.h"
#include "service.h"

#ifndef MGPU_VERSION
#define MGPU_VERSION "unknown"
#endif

#define PROGRAM	"mgpu-poold"

static const char usage_text[] =
	"usage: mgpu-poold serve [--config FILE]\n"
	"       mgpu-poold config [--config FILE]\n"
	"       mgpu-poold check [--config FILE] [--json]\n"
	"       mgpu-poold export [--config FILE]\n"
	"       mgpu-poold token NAME --role ROLE [--project NAME] [--days N] [--config FILE]\n"
	"       mgpu-poold request VM --kind KIND [--key KEY] [--target TARGET] [--type TYPE]\n"
	"                  [--size MIB] [--memory MIB] [--precision P] [--lease SECONDS]\n"
	"                  [--wait SECONDS] [--json]\n"
	"       mgpu-poold list [--all] [--json]\n"
	"       mgpu-poold release ID [--done] [--json]\n"
	"       mgpu-poold help | version\n"
	"\n"
	"GPUs that virtual machines ask for and give back: serves, checks the configuration file or\n"
	"the hosts, prints the history as CSV, makes a token for the API; asks for GPUs, lists and\n"
	"releases requests. Without a command it serves.\n"
	"\n"
	"      --config FILE   configuration file (default " CONFIG_DEFAULT ")\n"
	"      --socket PATH   Unix socket of the service (default: that of the configuration file)\n"
	"      --role ROLE     role of the token: viewer, project or admin\n"
	"      --project NAME  project of the token\n"
	"      --days N        days until the token expires (default: never)\n"
	"      --kind KIND     kind of work, such as training\n"
	"      --key KEY       key of the request: asking again with it is asking once\n"
	"      --target TARGET a whole GPU or a vGPU: whole, vgpu or any\n"
	"      --type TYPE     vGPU type\n"
	"      --size MIB      amount of data, MiB\n"
	"      --memory MIB    GPU memory, MiB\n"
	"      --precision P   precision that the GPU should be fast at: fp64, fp32, fp16 or fp8\n"
	"      --lease SECONDS seconds after which the GPU is taken back\n"
	"      --wait SECONDS  wait so long for the GPU\n"
	"      --all           list requests that are over, too\n"
	"      --done          the work ended with success, which the history keeps\n"
	"      --json          print JSON\n"
	"  -h, --help          print this help\n"
	"  -V, --version       print the version\n";

enum {
	OPT_CONFIG = 256, OPT_SOCKET, OPT_ROLE, OPT_PROJECT, OPT_DAYS, OPT_KIND, OPT_KEY,
	OPT_TARGET, OPT_TYPE, OPT_SIZE, OPT_MEMORY, OPT_PRECISION, OPT_LEASE, OPT_WAIT, OPT_ALL,
	OPT_DONE, OPT_JSON,
};

static const struct option options[] = {
	{ "config", required_argument, NULL, OPT_CONFIG },
	{ "socket", required_argument, NULL, OPT_SOCKET },
	{ "role", required_argument, NULL, OPT_ROLE },
	{ "project", required_argument, NULL, OPT_PROJECT },
	{ "days", required_argument, NULL, OPT_DAYS },
	{ "kind", required_argument, NULL, OPT_KIND },
	{ "key", required_argument, NULL, OPT_KEY },
	{ "target", required_argument, NULL, OPT_TARGET },
	{ "type", required_argument, NULL, OPT_TYPE },
	{ "size", required_argument, NULL, OPT_SIZE },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "precision", required_argument, NULL, OPT_PRECISION },
	{ "lease", required_argument, NULL, OPT_LEASE },
	{ "wait", required_argument, NULL, OPT_WAIT },
	{ "all", no_argument, NULL, OPT_ALL },
	{ "done", no_argument, NULL, OPT_DONE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

#define BIT(option)	(UINT32_C(1) << ((option) - OPT_CONFIG))

/**
 * struct command_line - options and words
 * @config: configuration file
 * @must: it was named
 * @socket: Unix socket, NULL: that of the configuration file
 * @role: role of a token
 * @project: project of a token
 * @days: days until a token expires, 0: never
 * @wish: options of a request
 * @all: list all requests
 * @done: the work is done
 * @json: print JSON
 * @word: word behind the command
 */
static struct command_line {
	const char *config;
	bool must;
	const char *socket;
	const char *role;
	const char *project;
	uint64_t days;
	struct client_wish wish;
	bool all;
	bool done;
	bool json;
	const char *word;
} o = { .config = CONFIG_DEFAULT };

/* ---- commands ---- */

static bool load(struct config *config)
{
	char why[POOL_TEXT_MAX];

	if (!config_load(config, o.config, o.must, why, sizeof(why)))
		return true;
	complain("%s", why);
	return false;
}

static int run_serve(void)
{
	return service_run(o.config, o.must);
}

static int run_config(void)
{
	struct config config;

	if (!load(&config))
		return STATUS_CONFIG;
	config_free(&config);
	printf("%s: good\n", o.config);
	return end_output();
}

static int run_check(void)
{
	struct config config;
	int status;

	if (!load(&config))
		return STATUS_CONFIG;
	status = check_command(config.hosts, config.nr_hosts, o.json);
	config_free(&config);
	return status;
}

/* Print the history from the database: no service has it. */
static int store_print(const struct config *config)
{
	char why[POOL_TEXT_MAX];
	struct store *store;
	int ret;

	if (store_open(config->database, &store, why)) {
		complain("%s", why);
		return STATUS_FAILED;
	}
	fflush(stdout);
	ret = store_export(store, STDOUT_FILENO);
	if (ret)
		complain("%s", store_error(store));
	store_close(store);
	return ret ? STATUS_FAILED : 0;
}

static int run_export(void)
{
	struct config config;
	int status;

	if (!load(&config))
		return STATUS_CONFIG;
	if (*config.socket && client_reaches(config.socket))
		status = client_export(config.socket);
	else
		status = store_print(&config);
	config_free(&config);
	return status;
}

/* The path of the socket, which may be in @path; NULL for none. */
static const char *find_socket(char path[108])
{
	struct config config;

	if (o.socket)
		return o.socket;
	if (!load(&config))
		return NULL;
	strcpy(path, config.socket);
	config_free(&config);
	if (*path)
		return path;
	complain("%s has no socket; name one with --socket", o.config);
	return NULL;
}

/* Make a token in the database: the service does not run. */
static int store_new_token(const struct config *config, struct store_token *token)
{
	char text[AUTH_TOKEN_SIZE], why[POOL_TEXT_MAX];
	struct store *store;
	int ret;

	if (store_open(config->database, &store, why)) {
		complain("%s", why);
		return STATUS_FAILED;
	}
	ret = auth_new_token(text, token->hash);
	ret = ret ? ret : store_put_token(store, token);
	if (ret)
		complain("%s", store_error(store));
	store_close(store);
	if (ret)
		return STATUS_FAILED;
	puts(text);
	return end_output();
}

static bool fill_token(struct store_token *token)
{
	int role = store_role_of(o.role);

	if (role < 0) {
		complain("--role '%s': it must be viewer, project or admin", o.role);
		return false;
	}
	if (!pool_name_ok(o.word) || (o.project && !pool_name_ok(o.project))) {
		complain("'%s' and --project must be names: 1 to 63 of A-Z a-z 0-9 . _ -", o.word);
		return false;
	}
	if (role != STORE_VIEWER && o.project ? role == STORE_ADMIN : role == STORE_PROJECT) {
		complain(o.project ? "the role admin has no project; leave --project out" :
			 "the role project needs a project; add --project NAME");
		return false;
	}
	token->role = (enum store_role)role;
	strcpy(token->name, o.word);
	strcpy(token->project, o.project ? o.project : "");
	token->expires = o.days ? (int64_t)time(NULL) + (int64_t)o.days * 86400 : 0;
	return true;
}

static int run_token(void)
{
	struct store_token token = { 0 };
	struct config config;
	int status;

	if (!fill_token(&token))
		return STATUS_USAGE;
	if (!load(&config))
		return STATUS_CONFIG;
	if (*config.socket && client_reaches(config.socket))
		status = client_token(config.socket, token.name, o.role, o.project, token.expires);
	else
		status = store_new_token(&config, &token);
	config_free(&config);
	return status;
}

static int run_request(void)
{
	char path[108];
	const char *socket = find_socket(path);

	o.wish.vm = o.word;
	return socket ? client_request(socket, &o.wish, o.json) : STATUS_CONFIG;
}

static int run_list(void)
{
	char path[108];
	const char *socket = find_socket(path);

	return socket ? client_list(socket, o.all, o.json) : STATUS_CONFIG;
}

static int run_release(void)
{
	char path[108];
	const char *socket = find_socket(path);

	return socket ? client_release(socket, o.word, o.done, o.json) : STATUS_CONFIG;
}

static int run_help(void)
{
	fputs(usage_text, stdout);
	return end_output();
}

static int run_version(void)
{
	puts(PROGRAM " " MGPU_VERSION);
	return end_output();
}

/* ---- the command line ---- */

/**
 * struct command - a command
 * @o: its name and options
 * @words: words behind it
 * @run: the command; returns the exit status
 */
static const struct command {
	struct command_options o;
	int words;
	int (*run)(void);
} commands[] = {
	{ { "serve", BIT(OPT_CONFIG), 0 }, 0, run_serve },
	{ { "config", BIT(OPT_CONFIG), 0 }, 0, run_config },
	{ { "check", BIT(OPT_CONFIG) | BIT(OPT_JSON), 0 }, 0, run_check },
	{ { "export", BIT(OPT_CONFIG), 0 }, 0, run_export },
	{ { "token", BIT(OPT_CONFIG) | BIT(OPT_ROLE) | BIT(OPT_PROJECT) | BIT(OPT_DAYS),
	    BIT(OPT_ROLE) }, 1, run_token },
	{ { "request", BIT(OPT_CONFIG) | BIT(OPT_SOCKET) | BIT(OPT_KIND) |
	    BIT(OPT_KEY) | BIT(OPT_TARGET) | BIT(OPT_TYPE) | BIT(OPT_SIZE) | BIT(OPT_MEMORY) |
	    BIT(OPT_PRECISION) | BIT(OPT_LEASE) | BIT(OPT_WAIT) | BIT(OPT_JSON),
	    BIT(OPT_KIND) }, 1, run_request },
	{ { "list", BIT(OPT_CONFIG) | BIT(OPT_SOCKET) | BIT(OPT_ALL) | BIT(OPT_JSON), 0 }, 0,
	  run_list },
	{ { "release", BIT(OPT_CONFIG) | BIT(OPT_SOCKET) | BIT(OPT_DONE) | BIT(OPT_JSON), 0 }, 1,
	  run_release },
	{ { "help", 0, 0 }, 0, run_help },
	{ { "version", 0, 0 }, 0, run_version },
};

#define NR_COMMANDS	(sizeof(commands) / sizeof(commands[0]))

static uint64_t read_number(const char *option, uint64_t max)
{
	char *end;
	unsigned long long value = strtoull(optarg, &end, 10);

	if (*optarg < '0' || *optarg > '9' || *end || value > max) {
		complain("--%s '%s': it must be a whole number of 0 to %llu", option, optarg,
			 (unsigned long long)max);
		exit(STATUS_USAGE);
	}
	return value;
}

static void read_flag(int option)
{
	o.all |= option == OPT_ALL;
	o.done |= option == OPT_DONE;
	o.json |= option == OPT_JSON;
}

static void read_option(int option, const char *name)
{
	const struct {
		int option;
		const char **text;
		uint64_t *number;
		uint64_t max;
	} values[] = {
		{ OPT_CONFIG, &o.config, NULL, 0 }, { OPT_SOCKET, &o.socket, NULL, 0 },
		{ OPT_ROLE, &o.role, NULL, 0 }, { OPT_PROJECT, &o.project, NULL, 0 },
		{ OPT_DAYS, NULL, &o.days, 36500 },
		{ OPT_KIND, &o.wish.kind, NULL, 0 }, { OPT_KEY, &o.wish.key, NULL, 0 },
		{ OPT_TARGET, &o.wish.target, NULL, 0 }, { OPT_TYPE, &o.wish.type, NULL, 0 },
		{ OPT_SIZE, NULL, &o.wish.size_mib, UINT64_C(1) << 40 },
		{ OPT_MEMORY, NULL, &o.wish.memory_mib, 1 << 24 },
		{ OPT_PRECISION, &o.wish.precision, NULL, 0 },
		{ OPT_LEASE, NULL, &o.wish.lease_s, 31536000 },
		{ OPT_WAIT, NULL, &o.wish.wait_s, 31536000 },
	};

	o.must |= option == OPT_CONFIG;
	read_flag(option);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		if (values[i].option != option)
			continue;
		if (values[i].text)
			*values[i].text = optarg;
		else
			*values[i].number = read_number(name, values[i].max);
	}
}

static const struct program_options program = { PROGRAM, options, OPT_CONFIG, read_option };

static int run(const struct command *command, uint32_t given, int nr_words, char **words)
{
	char text[256];

	if (wrong_options(text, sizeof(text), PROGRAM, &command->o, options, OPT_CONFIG, given)) {
		complain("%s", text);
		return STATUS_USAGE;
	}
	if (nr_words != command->words) {
		complain(command->words ? "%s takes one word; see '" PROGRAM " --help'" :
			 "%s takes options only; see '" PROGRAM " --help'", command->o.command);
		return STATUS_USAGE;
	}
	o.word = *words;
	return command->run();
}

int main(int argc, char **argv)
{
	const char *names[NR_COMMANDS + 1] = { NULL };
	const char *word;
	uint32_t given = 0;
	char text[256];
	int ret = read_options(text, sizeof(text), &program, argc, argv, &given);

	if (ret == 'h' || ret == 'V')
		return ret == 'h' ? run_help() : run_version();
	if (ret) {
		complain("%s", text);
		return STATUS_USAGE;
	}
	word = optind < argc ? argv[optind++] : "serve";
	for (size_t i = 0; i < NR_COMMANDS; i++) {
		names[i] = commands[i].o.command;
		if (!strcmp(names[i], word))
			return run(&commands[i], given, argc - optind, argv + optind);
	}
	unknown_command(text, sizeof(text), PROGRAM, word, names);
	complain("%s", text);
	return STATUS_USAGE;
}
