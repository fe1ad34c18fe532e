// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-policy: load a scheduling policy in BPF, wait until it ends, and print the reason.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmdline.h"
#include "complain.h"
#include "policy.h"

/* A command, and what follows it; the others have no words. */
static const struct verb {
	const char *name;
	const char *args;
	const char *help;
} verbs[] = {
	{ "list", "", "print the policies that come with this program" },
	{ "load", "POLICY [dev DEV] [timeout MS] [set VAR=VALUE]... [--pin PATH]",
	  "put a policy in force, and stay until it ends; Ctrl-C ends it" },
	{ "replace", "LINK POLICY [timeout MS] [set VAR=VALUE]...",
	  "replace a policy that was loaded" },
	{ "unload", "LINK", "end a policy that was loaded" },
	{ "help", "[COMMAND]", "print this help, or that of one command" },
	{ "version", "", "print the version" },
};

#define NR_VERBS	(sizeof(verbs) / sizeof(verbs[0]))

static const char notes_text[] =
	"\n"
	"POLICY is a name that list prints, or the path of an object file.  DEV is the id or\n"
	"name of a device; without it the policy is for every one.  LINK is the path\n"
	"that was given to --pin, or the number that load printed.  Without a command the\n"
	"policies are listed.\n"
	"\n"
	"  -v, --verbose   print messages of libbpf and the verifier\n"
	"      --pin PATH  leave the policy in force, with its link pinned at PATH\n"
	"  -h, --help      print this help, or that of the command before it\n"
	"  -V, --version   print the version\n";

static int usage(const char *what, const char *arg)
{
	complain("%s%s%s%s; see 'mgpu-policy --help'", what, arg ? " '" : "",
		 arg ? arg : "", arg ? "'" : "");
	return STATUS_USAGE;
}

static int unknown_word(const char *what, const char *word, const char *const *known)
{
	const char *like = suggest(word, known);

	if (!like)
		return usage(what, word);
	complain("%s '%s'; did you mean '%s'?", what, word, like);
	return STATUS_USAGE;
}

static int unknown_verb(const char *word)
{
	const char *names[NR_VERBS + 1] = { NULL };

	for (size_t i = 0; i < NR_VERBS; i++)
		names[i] = verbs[i].name;
	return unknown_word("unknown command", word, names);
}

/* Print the help of all commands, or of the one with this name. */
static int print_help(const char *only)
{
	bool found = false;

	for (size_t i = 0; i < NR_VERBS; i++)
		found |= only && !strcmp(verbs[i].name, only);
	if (only && !found)
		return unknown_verb(only);
	puts("usage: mgpu-policy [OPTION]... [COMMAND] [WORD]...\n");
	for (size_t i = 0; i < NR_VERBS; i++)
		if (!only || !strcmp(verbs[i].name, only))
			printf("  mgpu-policy %s%s%s\n        %s\n", verbs[i].name,
			       *verbs[i].args ? " " : "", verbs[i].args, verbs[i].help);
	fputs(notes_text, stdout);
	return STATUS_OK;
}

/* Parse the words after the policy's name. */
static int parse_request(struct request *req, int argc,
			 const char *const *argv, bool is_load)
{
	static const char *const load_words[] = { "dev", "timeout", "set", NULL };
	static const char *const replace_words[] = { "timeout", "set", NULL };
	unsigned long ms;
	char *end;

	for (int i = 0; i < argc; i += 2) {
		const char *key = argv[i], *value;

		if (strcmp(key, "timeout") && strcmp(key, "set") &&
		    (!is_load || strcmp(key, "dev")))
			return unknown_word("unknown word", key, is_load ? load_words :
					    replace_words);
		if (i + 1 == argc)
			return usage("no value follows", key);
		value = argv[i + 1];
		if (!strcmp(key, "dev")) {
			req->dev = value;
		} else if (!strcmp(key, "timeout")) {
			ms = strtoul(value, &end, 10);
			if (!*value || *end || ms < TIMEOUT_MIN || ms > TIMEOUT_MAX)
				return usage("the timeout is in milliseconds, 100 to 30000, and not",
					     value);
			req->timeout_ms = (uint32_t)ms;
		} else if (req->nr_sets == MAX_SETS) {
			return usage("too many variables to set, from",
				     value);
		} else {
			req->set[req->nr_sets++] = value;
		}
	}
	return 0;
}

static int list(void)
{
	for (size_t i = 0; i < nr_examples; i++)
		printf("%-10s %s\n", examples[i].name, examples[i].help);
	return STATUS_OK;
}

static int find_device(const char *key, struct mgpu_dev_info *dev)
{
	struct mgpu_error err;
	struct mgpu *mgpu;
	int ret;

	ret = mgpu_open(&mgpu, &err);
	if (!ret) {
		ret = mgpu_dev_find(mgpu, key, dev, &err);
		mgpu_close(mgpu);
	}
	if (ret)
		complain("%s", err.text);
	return ret;
}

static int load(const struct request *req)
{
	struct mgpu_dev_info dev = { 0 };
	struct policy *policy = NULL;
	struct watch *watch = NULL;
	int status = STATUS_FAILED;
	const char *where;

	if (req->dev && find_device(req->dev, &dev))
		return STATUS_FAILED;
	if (policy_open(&policy, req, dev.id))
		return STATUS_FAILED;
	if (watch_begin(&watch, req->dev ? dev.name : NULL,
			policy_name(policy)) ||
	    policy_attach(policy))
		goto out;
	where = watch_where(watch);
	if (req->pin) {
		if (policy_pin(policy, req->pin))
			goto out;
		printf("%s: loaded on %s; end it with: mgpu-policy unload %s\n",
		       policy_name(policy), *where ? where : "no device yet",
		       req->pin);
		status = STATUS_OK;
	} else {
		printf("%s: loaded on %s, link %u; Ctrl-C ends it\n",
		       policy_name(policy), *where ? where : "no device yet",
		       link_id(policy_link_fd(policy)));
		fflush(stdout);
		status = watch_run(watch, policy_link_fd(policy));
	}
out:
	policy_close(policy);
	watch_end(watch);
	return status;
}

static int replace(const char *link, const struct request *req)
{
	struct policy *policy;
	int status = STATUS_FAILED;
	int fd;

	if (policy_open(&policy, req, 0))
		return STATUS_FAILED;
	fd = link_open(link);
	if (fd >= 0 && !policy_replace(policy, fd)) {
		printf("%s: loaded in its place\n", policy_name(policy));
		status = STATUS_OK;
	}
	if (fd >= 0)
		close(fd);
	policy_close(policy);
	return status;
}

static int unload(const char *link)
{
	int fd = link_open(link);
	int ret;

	if (fd < 0)
		return STATUS_FAILED;
	ret = link_detach(fd);
	close(fd);
	if (link[strspn(link, "0123456789")]) {
		/* Removing the pin ends the policy on kernels that cannot detach it. */
		if (unlink(link)) {
			complain("cannot remove %s: %s", link, strerror(errno));
			return STATUS_FAILED;
		}
	} else if (ret) {
		complain("this kernel cannot detach link %s: end the program that holds it",
			 link);
		return STATUS_FAILED;
	}
	return STATUS_OK;
}

enum { OPT_PIN = 256 };

/* Request of an option, in place of an exit status. */
enum { WANT_HELP = -1, WANT_VERSION = -2 };

/* Returns 0 to go on, WANT_HELP, WANT_VERSION, or the exit status of an error. */
static int parse_options(struct request *req, int argc, char **argv)
{
	static const struct option options[] = {
		{ "verbose", no_argument, NULL, 'v' },
		{ "pin", required_argument, NULL, OPT_PIN },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ 0 },
	};
	int c, wanted = 0;
	char text[256];

	opterr = 0;	/* it prints errors of its own */
	while ((c = getopt_long(argc, argv, ":vhV", options, NULL)) != -1) {
		switch (c) {
		case 'v':
			req->verbose = true;
			break;
		case OPT_PIN:
			req->pin = optarg;
			break;
		case 'h':
			wanted = WANT_HELP;
			break;
		case 'V':
			wanted = wanted ? wanted : WANT_VERSION;
			break;
		default:
			getopt_problem(text, sizeof(text), "mgpu-policy", c, argv, options, NULL);
			complain("%s", text);
			return STATUS_USAGE;
		}
	}
	return wanted;
}

int main(int argc, char **argv)
{
	struct request req = { 0 };
	const char *const *words;
	int nr, ret;

	ret = parse_options(&req, argc, argv);
	if (ret > 0)
		return ret;
	words = (const char *const *)argv + optind;
	nr = argc - optind;
	if (ret == WANT_HELP)
		return print_help(nr ? words[0] : NULL);
	if (ret == WANT_VERSION || (nr == 1 && !strcmp(words[0], "version"))) {
		puts("mgpu-policy " MGPU_VERSION);
		return STATUS_OK;
	}
	if (nr && nr <= 2 && !strcmp(words[0], "help"))
		return print_help(words[1]);
	if (!nr || (nr == 1 && !strcmp(words[0], "list")))
		return req.pin ? usage("--pin is for load only", NULL) : list();
	if (!strcmp(words[0], "load")) {
		if (nr < 2)
			return usage("no policy is given", NULL);
		req.what = words[1];
		ret = parse_request(&req, nr - 2, words + 2, true);
		return ret ? ret : load(&req);
	}
	if (req.pin)
		return usage("--pin is for load only", NULL);
	if (!strcmp(words[0], "replace")) {
		if (nr < 3)
			return usage("replace needs a link and a policy", NULL);
		req.what = words[2];
		ret = parse_request(&req, nr - 3, words + 3, false);
		return ret ? ret : replace(words[1], &req);
	}
	if (!strcmp(words[0], "unload")) {
		if (nr != 2)
			return usage("unload needs a link, and nothing else",
				     NULL);
		return unload(words[1]);
	}
	for (size_t i = 0; i < NR_VERBS; i++)
		if (!strcmp(verbs[i].name, words[0]))
			return usage("unexpected word", words[nr - 1]);
	return unknown_verb(words[0]);
}
