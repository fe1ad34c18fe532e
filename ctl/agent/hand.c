// SPDX-License-Identifier: GPL-2.0-only
/* mgpu-agent request, state, release, extend, consent: by hand. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "complain.h"
#include "lines.h"
#include "vm_name.h"

#define ANSWER_S	10
#define PATIENCE_S	20
#define WAIT_S		60

/**
 * struct hand - a command by hand
 * @conf: settings
 * @link: connection
 */
struct hand {
	struct conf conf;
	struct link link;
};

static struct hand *hand_new(const struct options *o)
{
	struct hand *h = malloc(sizeof(*h));

	if (!h) {
		complain("out of memory");
		return NULL;
	}
	if (!conf_read(&h->conf, o->config, o->service) && !link_init(&h->link, &h->conf, -1))
		return h;
	conf_forget(&h->conf);
	free(h);
	return NULL;
}

static void hand_free(struct hand *h)
{
	link_free(&h->link);
	conf_forget(&h->conf);
	free(h);
}

/* Ask what is in the link. Return 0 with an answer "ok"; complains. */
static int ask(struct hand *h, unsigned int seconds)
{
	if (!link_ask_long(&h->link, seconds, PATIENCE_S, true) && link_ok(&h->link))
		return 0;
	complain("%s", h->link.why);
	return -1;
}

/* Print the fields of the answer, fit for a terminal and for a shell script's read. */
static int print(const struct hand *h)
{
	const struct wire_message *m = &h->link.answer;
	char clean[1024];

	for (unsigned int i = 0; i < m->nr; i++) {
		if (!strcmp(m->fields[i].name, "version"))
			continue;
		text_clean(m->fields[i].value, strlen(m->fields[i].value), clean, sizeof(clean));
		printf("%s=%s\n", m->fields[i].name, clean);
	}
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	complain("standard output: %s", strerror(errno));
	return STATUS_FAILED;
}

static int finish(struct hand *h, int failed)
{
	int status = failed ? STATUS_FAILED : print(h);

	hand_free(h);
	return status;
}

/* Add the number of a request, the command's first word. */
static int add_id(struct hand *h, const struct options *o)
{
	uint64_t id;

	if (wire_decimal(o->words[0], INT64_MAX, &id) || !id) {
		complain("'%s': the number of a request is wanted (see mgpu-agent state)",
			 o->words[0]);
		return -1;
	}
	wire_add_number(&h->link.out, "id", id);
	return 0;
}

/* Wait until the request is no longer queued or on its way. */
static int wait_for(struct hand *h)
{
	for (;;) {
		const char *state = wire_get(&h->link.answer, "state");
		uint64_t id = 0, version = 0;

		if (!state || (strcmp(state, "queued") && strcmp(state, "attaching")) ||
		    wire_number(&h->link.answer, "id", INT64_MAX, &id) ||
		    wire_number(&h->link.answer, "version", INT64_MAX, &version))
			return 0;
		wire_begin(&h->link.out, "state");
		wire_add_number(&h->link.out, "id", id);
		wire_add_number(&h->link.out, "wait", WAIT_S);
		wire_add_number(&h->link.out, "seen", version);
		if (ask(h, WAIT_S + ANSWER_S))
			return -1;
	}
}

/* A key of the caller's, or a new one that is printed with the request. */
static int add_key(struct hand *h, const struct options *o)
{
	char key[KEPT_KEY];

	if (!o->key && kept_new_key(key))
		return -1;
	wire_add(&h->link.out, "key", o->key ? o->key : key);
	return 0;
}

int run_request(const struct options *o)
{
	struct hand *h = hand_new(o);
	int failed;

	if (!h)
		return STATUS_FAILED;
	wire_begin(&h->link.out, "request");
	failed = add_key(h, o);
	wish_write(&o->wish, &h->link.out);
	failed = failed || ask(h, ANSWER_S) || (o->wait && wait_for(h));
	return finish(h, failed);
}

int run_state(const struct options *o)
{
	struct hand *h = hand_new(o);

	if (!h)
		return STATUS_FAILED;
	wire_begin(&h->link.out, o->nr ? "state" : "list");
	return finish(h, (o->nr && add_id(h, o)) || ask(h, ANSWER_S));
}

int run_release(const struct options *o)
{
	struct hand *h = hand_new(o);

	if (!h)
		return STATUS_FAILED;
	wire_begin(&h->link.out, "release");
	wire_add_number(&h->link.out, "done", o->done);
	return finish(h, add_id(h, o) || ask(h, ANSWER_S));
}

int run_extend(const struct options *o)
{
	struct hand *h;
	uint32_t seconds;

	if (lines_duration(o->words[1], &seconds)) {
		complain("'%s': give a time such as 30m, 2h or 1d, or 0 for no end", o->words[1]);
		return STATUS_USAGE;
	}
	h = hand_new(o);
	if (!h)
		return STATUS_FAILED;
	wire_begin(&h->link.out, "extend");
	wire_add_number(&h->link.out, "seconds", seconds);
	return finish(h, add_id(h, o) || ask(h, ANSWER_S));
}

/*
 * The VM's own file is the first to say no and the last to say yes, so that nothing is read or
 * sent while the service does not know of a consent.
 */
int run_consent(const struct options *o)
{
	bool yes = !strcmp(o->words[0], "yes");
	struct hand *h;
	int failed;

	if (!yes && strcmp(o->words[0], "no")) {
		complain("consent '%s': say yes or no", o->words[0]);
		return STATUS_USAGE;
	}
	h = hand_new(o);
	if (!h)
		return STATUS_FAILED;
	failed = !yes && kept_set_consent(&h->conf, false);
	wire_begin(&h->link.out, "consent");
	wire_add(&h->link.out, "value", yes ? "yes" : "no");
	failed = failed || ask(h, ANSWER_S) || (yes && kept_set_consent(&h->conf, true));
	return finish(h, failed);
}
