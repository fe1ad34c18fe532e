// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-agent run: a command with a GPU. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "checksum.h"
#include "child.h"
#include "complain.h"

#define RELEASE_S	60	/* to try to release before a later start does it */

/*
 * The same command with the same wishes, started again after a crash or a boot, is the one that
 * asked before.
 */
static void name_of(const struct options *o, char name[KEPT_NAME])
{
	uint64_t hash = CHECKSUM_START;
	struct wire_text *t = malloc(sizeof(*t));

	if (t) {
		wire_begin(t, "run");
		wish_write(&o->wish, t);
		hash = checksum_add(hash, t->frame + WIRE_HEADER, t->length);
		free(t);
	}
	for (int i = 0; i < o->nr; i++)
		hash = checksum_add(hash, o->words[i], strlen(o->words[i]) + 1);
	snprintf(name, KEPT_NAME, "run-%016" PRIx64, hash);
}

static int start(char **words, pid_t *pid)
{
	pid_t parent = getpid();
	int error;

	*pid = fork();
	if (*pid < 0) {
		complain("no process for '%s': %s", words[0], strerror(errno));
		return CHILD_AGENT_FAILED;
	}
	if (*pid)
		return 0;
	child_prepare(parent);
	execvp(words[0], words);
	error = errno;
	complain("'%s' cannot be run: %s", words[0], strerror(error));
	_exit(error == ENOENT ? CHILD_NOT_FOUND : CHILD_NOT_EXECUTABLE);
}

/* Have the GPU in the guest. Return 0 or -errno. */
static int have_gpu(struct hold *h, const struct options *o)
{
	int ret = hold_ask(h, &o->wish);

	if (!ret)
		ret = hold_wait(h, o->wait);
	if (!ret)
		ret = hold_device(h);
	return ret;
}

static int status_without(int ret, int signals)
{
	if (ret == -EAGAIN) {
		complain("no GPU is free, and --no-wait was given: the request is taken back");
		return CHILD_QUEUED;
	}
	if (ret == -EINTR) {
		child_stopped(signals);
		complain("interrupted: the request is taken back");
	}
	return CHILD_AGENT_FAILED;
}

static int run_with(struct hold *h, const struct options *o, int signals)
{
	bool stop = false;
	int status;
	pid_t pid;

	child_environment(h);
	status = start(o->words, &pid);
	if (!status)
		status = child_follow(h, pid, signals, &stop);
	return status;
}

static int run_held(struct hold *h, const struct options *o, int signals)
{
	int status, ret = have_gpu(h, o);

	status = ret ? status_without(ret, signals) : run_with(h, o, signals);
	hold_release(h, !status, RELEASE_S);
	return status;
}

int run_run(const struct options *o)
{
	struct conf *conf = malloc(sizeof(*conf));
	struct link *link = malloc(sizeof(*link));
	struct hold *h = calloc(1, sizeof(*h));
	int signals = child_signals(), status = CHILD_AGENT_FAILED;
	char name[KEPT_NAME];

	if (!conf || !link || !h || signals < 0) {
		complain("cannot start: %s", strerror(errno));
	} else if (!conf_read(conf, o->config, o->service) && !link_init(link, conf, signals)) {
		h->conf = conf;
		h->link = link;
		h->say = true;
		hold_finish_all(conf, link);
		name_of(o, name);
		if (!kept_open(&h->kept, conf, name))
			status = run_held(h, o, signals);
		link_free(link);
	}
	if (conf)
		conf_forget(conf);
	free(h);
	free(link);
	free(conf);
	return status;
}
