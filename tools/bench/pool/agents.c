// SPDX-License-Identifier: GPL-2.0-only
/*
 * Plays agents of many VMs, over the channel of mgpu-agent: its connection and frames.
 *
 *	bench-pool-agents HOST:PORT
 *
 * Lines of standard input:
 *
 *	key NAME HEX			the VM NAME has this key
 *	NAME VERB [FIELD=VALUE]...	its agent sends a message, and the answer is printed:
 *					NAME VERB ok|ERROR MILLISECONDS ID
 *
 * ID is the number of the request that the answer is about, 0 for none.  A connection is opened
 * with the first message of its VM, and stays.  Each has an address of its own in 127.0.0.0/8, as
 * VMs have, because the service bounds connections by address.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "clock.h"
#include "link.h"

#define AGENTS		4096
#define ANSWER_S	30
#define LINE		4096

int __real_connect(int fd, const struct sockaddr *to, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size);

/**
 * struct played - an agent
 * @conf: its settings
 * @link: its connection
 */
struct played {
	struct conf conf;
	struct link link;
};

static struct played *agents[AGENTS];
static unsigned int nr_agents;
static unsigned int connecting;		/* the agent that opens its connection */
static const char *service;

static void die(const char *text)
{
	fprintf(stderr, "bench-pool-agents: %s\n", text);
	exit(1);
}

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size)
{
	struct sockaddr_in own = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl((127u << 24) + (1u << 16) + (connecting / 250 << 8) +
					 1 + connecting % 250),
	};

	if (to->sa_family == AF_INET && bind(fd, (struct sockaddr *)&own, sizeof(own)))
		return -1;
	return __real_connect(fd, to, size);
}

static void add(const char *name, const char *hex)
{
	struct played *a = calloc(1, sizeof(*a));
	char none[64];

	if (!a || nr_agents == AGENTS)
		die("too many agents");
	if (!hex || strlen(name) >= sizeof(a->conf.vm) || wire_read_key(hex, none, a->conf.key))
		die("a line 'key' needs a name and 64 hexadecimal digits");
	strcpy(a->conf.vm, name);
	snprintf(a->conf.services[0], sizeof(a->conf.services[0]), "%s", service);
	a->conf.nr_services = 1;
	if (link_init(&a->link, &a->conf, -1))
		exit(1);
	agents[nr_agents++] = a;
}

static struct played *find(const char *name)
{
	for (connecting = 0; connecting < nr_agents; connecting++)
		if (!strcmp(agents[connecting]->conf.vm, name))
			return agents[connecting];
	die("a message of a VM without a key");
	return NULL;
}

/* Add the fields that are left of the line to the message. */
static void add_fields(struct wire_text *t, char **rest)
{
	char *field;

	while ((field = strtok_r(NULL, "\n ", rest))) {
		char *value = strchr(field, '=');

		if (!value)
			die("a field is NAME=VALUE");
		*value++ = '\0';
		wire_add(t, field, value);
	}
}

static void send_message(const char *name, const char *verb, char **rest)
{
	struct played *a = find(name);
	uint64_t id = 0, begin = now_ns();
	const char *result = "ok";
	int ret;

	wire_begin(&a->link.out, verb);
	add_fields(&a->link.out, rest);
	ret = link_ask(&a->link, ANSWER_S);
	if (ret)
		result = ret == -EACCES ? "refused" : "lost";
	else if (!link_ok(&a->link))
		result = link_code(&a->link);
	if (!ret)
		wire_number(&a->link.answer, "id", WIRE_SEQ_MAX, &id);
	printf("%s %s %s %.3f %llu\n", name, verb, result, (double)(now_ns() - begin) / 1e6,
	       (unsigned long long)id);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[LINE], *rest, *name, *verb;

	if (argc != 2)
		die("usage: bench-pool-agents HOST:PORT");
	service = argv[1];
	while (fgets(line, sizeof(line), stdin)) {
		name = strtok_r(line, "\n ", &rest);
		verb = name ? strtok_r(NULL, "\n ", &rest) : NULL;
		if (!verb)
			die("a line is 'key NAME HEX' or 'NAME VERB FIELD=VALUE...'");
		if (!strcmp(name, "key"))
			add(verb, strtok_r(NULL, "\n ", &rest));
		else
			send_message(name, verb, &rest);
	}
	for (unsigned int i = 0; i < nr_agents; i++) {
		link_free(&agents[i]->link);
		free(agents[i]);
	}
	return 0;
}
