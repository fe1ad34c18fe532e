// SPDX-License-Identifier: GPL-2.0-only
/*
 * mgpu-policy: load a scheduling policy in BPF, wait until it ends, and print the reason.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policy.h"

static const char usage_text[] =
	"Usage: mgpu-policy [-v] list\n"
	"       mgpu-policy [-v] load POLICY [dev DEV] [timeout MS] [set VAR=VALUE]... [--pin PATH]\n"
	"       mgpu-policy [-v] replace LINK POLICY [timeout MS] [set VAR=VALUE]...\n"
	"       mgpu-policy [-v] unload LINK\n"
	"\n"
	"  list     print the policies that come with this program\n"
	"  load     put a policy in force, and stay until it ends; Ctrl-C ends it\n"
	"  replace  replace a policy that was loaded\n"
	"  unload   end a policy that was loaded\n"
	"\n"
	"POLICY is a name that list prints, or the path of an object file.  DEV is the id or\n"
	"name of a device; without it the policy is for every one.  LINK is the path\n"
	"that was given to --pin, or the number that load printed.\n"
	"\n"
	"  -v, --verbose   print messages of libbpf and the verifier\n"
	"  --pin PATH      leave the policy in force, with its link pinned at PATH\n"
	"  -h, --help      print this help\n"
	"  --version       print the version\n";

void complain(const char *fmt, ...)
{
	va_list args;

	fflush(stdout);
	fputs("mgpu-policy: ", stderr);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
}

static int usage(const char *what, const char *arg)
{
	complain("%s%s%s%s; see mgpu-policy --help", what, arg ? " '" : "",
		 arg ? arg : "", arg ? "'" : "");
	return STATUS_USAGE;
}

/* Parse the words after the policy's name. */
static int parse_request(struct request *req, int argc,
			 const char *const *argv, bool is_load)
{
	unsigned long ms;
	char *end;

	for (int i = 0; i < argc; i += 2) {
		const char *key = argv[i], *value;

		if (strcmp(key, "timeout") && strcmp(key, "set") &&
		    (!is_load || strcmp(key, "dev")))
			return usage("unknown word", key);
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

int main(int argc, char **argv)
{
	struct request req = { 0 };
	const char *words[64];
	int nr = 0, ret;

	for (int i = 1; i < argc; i++) {
		const char *arg = argv[i];

		if (*arg != '-' || !arg[1]) {
			if (nr == sizeof(words) / sizeof(words[0]))
				return usage("unexpected word",
					     arg);
			words[nr++] = arg;
			continue;
		}
		if (!strcmp(arg, "-v") || !strcmp(arg, "--verbose")) {
			req.verbose = true;
			continue;
		}
		if (!strcmp(arg, "--pin")) {
			if (++i == argc)
				return usage("no path follows", arg);
			req.pin = argv[i];
			continue;
		}
		if (!strcmp(arg, "-h") || !strcmp(arg, "--help")) {
			fputs(usage_text, stdout);
			return STATUS_OK;
		}
		if (!strcmp(arg, "--version")) {
			puts("mgpu-policy " MGPU_VERSION);
			return STATUS_OK;
		}
		return usage("unknown option", arg);
	}
	if (!nr)
		return usage("no command is given", NULL);

	if (!strcmp(words[0], "list") && nr == 1)
		return list();
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
	return usage("unknown command", words[0]);
}
