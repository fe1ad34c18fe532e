// SPDX-License-Identifier: GPL-2.0-only
/* The configuration file. inih splits lines; this file interprets them. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <ini.h>

#include "cmdline.h"
#include "config.h"

#define YEAR	31536000u
#define SETTING(s, k, kind, member, low, high, what, words, value)		\
	{ s, k, kind, offsetof(struct config, member),				\
	  sizeof(((struct config *)NULL)->member), low, high, what, words, value }
#define WHOLE(s, k, member, low, high, what, value) \
	SETTING(s, k, CONFIG_WHOLE, member, low, high, what, NULL, value)
#define TEXT(s, k, member, value) \
	SETTING(s, k, CONFIG_TEXT, member, 0, 0, "", NULL, value)

const struct config_setting config_settings[] = {
	SETTING("pool", "default_project", CONFIG_NAME, default_project, 0, 0, "", NULL, "default"),
	WHOLE("pool", "retention_days", retention_days, 0, 36500, "days", "90"),
	TEXT("database", "url", database, "sqlite:/var/lib/mgpu-pool/pool.db"),
	TEXT("listen", "socket", socket, "/run/mgpu-pool/socket"),
	SETTING("listen", "admin_group", CONFIG_NAME, admin_group, 0, 0, "", NULL, "mgpu-pool"),
	SETTING("listen", "others", CONFIG_FLAG, others, 0, 0, "", "none viewer", "none"),
	TEXT("listen", "address", address, "none"),
	TEXT("listen", "certificate", certificate, "none"),
	TEXT("listen", "key", key, "none"),
	TEXT("listen", "client_ca", client_ca, "none"),
	SETTING("agents", "listen", CONFIG_LIST, agents, 0, 0, "", NULL, "none"),
	WHOLE("idle", "look1_s", pool.look1, 1, YEAR, "seconds", "3600"),
	WHOLE("idle", "look2_s", pool.look2, 1, YEAR, "seconds", "1200"),
	WHOLE("idle", "grace_s", pool.grace, 0, YEAR, "seconds", "300"),
	WHOLE("idle", "agent_silent_s", pool.agent_silent, 1, YEAR, "seconds", "600"),
	WHOLE("idle", "extend_max_s", pool.extend_max, 0, YEAR, "seconds", "14400"),
	WHOLE("attach", "tries", pool.attach_tries, 1, 100, "", "5"),
	WHOLE("attach", "retry_s", pool.retry, 1, 3600, "seconds", "2"),
	WHOLE("queue", "max", pool.max_queue, 1, 1000000, "", "10000"),
	WHOLE("queue", "max_project", pool.max_queue_project, 1, 1000000, "", "1000"),
	WHOLE("queue", "max_lease_s", pool.max_lease, 0, YEAR, "seconds", "0"),
	SETTING("choice", "policy", CONFIG_CHOICE, pool.policy, 0, 0, "",
		"history best-fit first-fit", "history"),
	WHOLE("choice", "history_min", pool.history_min, 1, 1000000, "", "5"),
	WHOLE("limits", "rate", rate, 1, 100000, "calls a second", "100"),
	WHOLE("limits", "burst", burst, 1, 100000, "calls", "400"),
	WHOLE("limits", "opens", opens, 1, 100000, "connections a second", "10"),
	WHOLE("limits", "opens_burst", opens_burst, 1, 100000, "connections", "50"),
	WHOLE("limits", "connections", connections, 4, 4096, "", "512"),
	WHOLE("limits", "connections_address", connections_address, 1, 4096, "", "64"),
	WHOLE("limits", "streams", streams, 1, 4096, "", "256"),
	WHOLE("limits", "request_s", request_s, 1, 600, "seconds", "15"),
	{ 0 },
};

static const char *const host_keys[] = { "uri", NULL };
static const char *const project_keys[] = { "weight", "max_gpus", NULL };
static const char *const client_keys[] = { "role", "project", NULL };

/* Sections with a name: [host NAME]. */
static const struct {
	const char *word;
	const char *const *keys;
} named_sections[] = {
	{ "host", host_keys }, { "project", project_keys }, { "client", client_keys },
};

#define NR_NAMED	(sizeof(named_sections) / sizeof(named_sections[0]))
#define NR_SETTINGS	(sizeof(config_settings) / sizeof(config_settings[0]) - 1)
#define NR_SECTIONS	16

/**
 * struct reading - a file that is being read
 * @c: result
 * @name: name of the file
 * @at: the rest of the text
 * @left: its size, bytes
 * @line: number of the current line
 * @seen: line of each setting, 0 for none
 * @where: line of the last key of [listen]
 * @named: keys of the current section with a name that were set, a bit each
 * @section: name of that section
 * @why: error, of @size bytes; empty for none
 */
struct reading {
	struct config *c;
	const char *name;
	const char *at;
	size_t left;
	unsigned int line;
	unsigned int seen[NR_SETTINGS];
	unsigned int where;
	unsigned int named;
	char section[96];
	char *why;
	size_t size;
};

/* Write an error, the first only. Return 0, inih's word for one. */
__attribute__((format(printf, 2, 3)))
static int wrong(struct reading *r, const char *fmt, ...)
{
	va_list ap;
	int len;

	if (*r->why)
		return 0;
	len = snprintf(r->why, r->size, "%s:%u: ", r->name, r->line);
	if (len < 0 || (size_t)len >= r->size)
		return 0;
	va_start(ap, fmt);
	vsnprintf(r->why + len, r->size - (size_t)len, fmt, ap);
	va_end(ap);
	return 0;
}

static int unknown(struct reading *r, const char *what, const char *word, const char *const *words)
{
	const char *like = suggest(word, words);
	char list[256] = "";

	for (size_t i = 0; words[i]; i++) {
		size_t len = strlen(list);

		snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "", words[i]);
	}
	if (like)
		return wrong(r, "unknown %s '%.64s'; did you mean '%s'?", what, word, like);
	return wrong(r, "unknown %s '%.64s'; use one of %s", what, word, list);
}

/* ---- values ---- */

static bool whole(const char *text, uint32_t min, uint32_t max, uint32_t *value)
{
	unsigned long long n;
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || *end || n < min || n > max)
		return false;
	*value = (uint32_t)n;
	return true;
}

static int set_whole(struct reading *r, const char *key, const char *value, uint32_t min,
		     uint32_t max, const char *unit, uint32_t *result)
{
	if (whole(value, min, max, result))
		return 1;
	return wrong(r, "%s '%.64s': write a whole number of %u to %u%s%s", key, value, min, max,
		     *unit ? " " : "", unit);
}

static int set_text(struct reading *r, const char *key, const char *value, char *text, size_t size)
{
	if (strlen(value) >= size)
		return wrong(r, "%s: the value has more than %zu bytes; shorten it", key, size - 1);
	if (!*value)
		return wrong(r, "%s: the value is empty; remove the line for the default", key);
	strcpy(text, strcmp(value, "none") ? value : "");
	return 1;
}

static int set_name(struct reading *r, const char *key, const char *value, char *text)
{
	if (!pool_name_ok(value))
		return wrong(r, "%s '%.64s': write 1 to %d of A-Z a-z 0-9 . _ -, and begin with none of . -",
			     key, value, POOL_NAME_MAX - 1);
	return set_text(r, key, value, text, POOL_NAME_MAX);
}

/* Words with spaces between them; room for the words that a setting has. */
#define NR_WORDS	8

static void split(const char *text, char buf[256], const char *words[NR_WORDS + 1])
{
	size_t n = 0;
	char *save;

	snprintf(buf, 256, "%s", text);
	for (char *w = strtok_r(buf, " ", &save); w && n < NR_WORDS; w = strtok_r(NULL, " ", &save))
		words[n++] = w;
	words[n] = NULL;
}

static int set_choice(struct reading *r, const struct config_setting *s, const char *value,
		      void *member)
{
	const char *words[NR_WORDS + 1];
	char buf[256], what[96];

	split(s->values, buf, words);
	if (!is_word(value, words)) {
		snprintf(what, sizeof(what), "value of %s", s->key);
		return unknown(r, what, value, words);
	}
	if (s->kind == CONFIG_FLAG)
		*(bool *)member = !strcmp(value, words[1]);
	else
		snprintf(member, s->size, "%s", value);
	return 1;
}

static int set_list(struct reading *r, const char *value)
{
	struct config *c = r->c;
	char buf[CONFIG_TEXT_MAX * 2], *save;

	c->nr_agents = 0;
	if (!strcmp(value, "none"))
		return 1;
	snprintf(buf, sizeof(buf), "%s", value);
	for (char *w = strtok_r(buf, " \t,", &save); w; w = strtok_r(NULL, " \t,", &save)) {
		if (c->nr_agents == CONFIG_LISTENERS)
			return wrong(r, "listen: more than %d addresses; remove some",
				     CONFIG_LISTENERS);
		snprintf(c->agents[c->nr_agents++], CONFIG_TEXT_MAX, "%s", w);
	}
	return 1;
}

static int set_value(struct reading *r, const struct config_setting *s, const char *value)
{
	void *member = (char *)r->c + s->offset;

	switch (s->kind) {
	case CONFIG_WHOLE:
		return set_whole(r, s->key, value, s->min, s->max, s->unit, member);
	case CONFIG_TEXT:
		return set_text(r, s->key, value, member, s->size);
	case CONFIG_NAME:
		return set_name(r, s->key, value, member);
	case CONFIG_LIST:
		return set_list(r, value);
	default:
		return set_choice(r, s, value, member);
	}
}

/* ---- sections with a name ---- */

/* Room for one more in an array of @nr elements. */
static void *grow(struct reading *r, void *list, size_t nr, size_t size, size_t max)
{
	char *more;

	if (nr == max) {
		wrong(r, "more than %zu sections of this kind; remove some", max);
		return NULL;
	}
	more = reallocarray(list, nr + 1, size);
	if (!more)
		wrong(r, "out of memory");
	else
		memset(more + nr * size, 0, size);
	return more;
}

static bool duplicate(struct reading *r, const char *word, const char *name)
{
	const struct config *c = r->c;
	bool twice = false;

	for (size_t i = 0; *word == 'h' && i < c->nr_hosts; i++)
		twice |= !strcmp(c->hosts[i].name, name);
	for (size_t i = 0; *word == 'p' && i < c->nr_projects; i++)
		twice |= !strcmp(c->projects[i].name, name);
	for (size_t i = 0; *word == 'c' && i < c->nr_clients; i++)
		twice |= !strcmp(c->clients[i].name, name);
	if (twice)
		wrong(r, "duplicate section [%s %s]; remove one", word, name);
	return twice;
}

/* A certificate may have any printable name. */
static bool client_name_ok(const char *name)
{
	for (const char *c = name; *c; c++)
		if (!isgraph((unsigned char)*c))
			return false;
	return *name && strlen(name) < POOL_NAME_MAX;
}

static int add_host(struct reading *r, const char *name)
{
	struct config *c = r->c;
	struct pool_host *list = grow(r, c->hosts, c->nr_hosts, sizeof(*list), CONFIG_HOSTS);

	if (!list)
		return 0;
	c->hosts = list;
	strcpy(list[c->nr_hosts++].name, name);
	return 1;
}

static int add_project(struct reading *r, const char *name)
{
	struct config *c = r->c;
	struct pool_project *list = grow(r, c->projects, c->nr_projects, sizeof(*list),
					 CONFIG_PROJECTS);

	if (!list)
		return 0;
	c->projects = list;
	strcpy(list[c->nr_projects].name, name);
	list[c->nr_projects++].weight = POOL_WEIGHT_DEFAULT;
	return 1;
}

static int add_client(struct reading *r, const char *name)
{
	struct config *c = r->c;
	struct auth_client *list = grow(r, c->clients, c->nr_clients, sizeof(*list),
					AUTH_CLIENTS);

	if (!list)
		return 0;
	c->clients = list;
	strcpy(list[c->nr_clients].name, name);
	list[c->nr_clients++].role = STORE_ROLES;	/* not set yet */
	return 1;
}

static int begin_named(struct reading *r, const char *word, const char *name)
{
	if (*word == 'c' ? !client_name_ok(name) : !pool_name_ok(name))
		return wrong(r, "[%s %.64s]: the name is empty, too long, or has other characters than A-Z a-z 0-9 . _ -",
			     word, name);
	if (duplicate(r, word, name))
		return 0;
	return *word == 'h' ? add_host(r, name) : *word == 'p' ? add_project(r, name) :
	       add_client(r, name);
}

static int set_role(struct reading *r, struct auth_client *client, const char *value)
{
	static const char *const roles[] = { "viewer", "project", "admin", NULL };
	int role = store_role_of(value);

	if (role < 0)
		return unknown(r, "role", value, roles);
	client->role = (enum store_role)role;
	return 1;
}

static int set_named(struct reading *r, const char *word, const char *key, const char *value)
{
	struct config *c = r->c;

	if (*word == 'h')
		return set_text(r, key, value, c->hosts[c->nr_hosts - 1].uri,
				sizeof(c->hosts->uri));
	if (*word == 'p') {
		struct pool_project *p = &c->projects[c->nr_projects - 1];

		return strcmp(key, "weight") ?
			set_whole(r, key, value, 0, 1000000, "GPUs", &p->max_gpus) :
			set_whole(r, key, value, 1, 10000, "", &p->weight);
	}
	struct auth_client *a = &c->clients[c->nr_clients - 1];

	return strcmp(key, "role") ? set_name(r, key, value, a->project) : set_role(r, a, value);
}

/* At the end of a section with a name: what it must have. */
static int end_named(struct reading *r)
{
	struct config *c = r->c;
	const struct auth_client *a;

	if (!strncmp(r->section, "host ", 5) && !*c->hosts[c->nr_hosts - 1].uri)
		return wrong(r, "[%s] before this line has no uri; add uri = qemu:///system",
			     r->section);
	if (strncmp(r->section, "client ", 7))
		return 1;
	a = &c->clients[c->nr_clients - 1];
	if (a->role == STORE_ROLES)
		return wrong(r, "[%s] before this line has no role; add role = viewer, project or admin",
			     r->section);
	if (a->role == STORE_PROJECT && !*a->project)
		return wrong(r, "[%s] before this line has the role project, but no project; add project = NAME",
			     r->section);
	if (a->role == STORE_ADMIN && *a->project)
		return wrong(r, "[%s] before this line has a project, but the role admin; remove project",
			     r->section);
	return 1;
}

/* ---- lines ---- */

/* Index in named_sections[], -1 for none; @name: behind the word. */
static int named_section(const char *section, const char **name)
{
	for (size_t i = 0; i < NR_NAMED; i++) {
		size_t len = strlen(named_sections[i].word);

		if (strncmp(section, named_sections[i].word, len) ||
		    (section[len] && section[len] != ' ' && section[len] != '\t'))
			continue;
		*name = section + len + strspn(section + len, " \t");
		return (int)i;
	}
	return -1;
}

static int unknown_section(struct reading *r, const char *section)
{
	const char *words[NR_SECTIONS + 1];
	size_t n = 0;

	for (size_t i = 0; i < NR_SETTINGS; i++)
		if (!n || strcmp(words[n - 1], config_settings[i].section))
			words[n++] = config_settings[i].section;
	for (size_t i = 0; i < NR_NAMED; i++)
		words[n++] = named_sections[i].word;
	words[n] = NULL;
	return unknown(r, "section", section, words);
}

static int unknown_key(struct reading *r, const char *section, const char *key)
{
	const char *words[NR_SETTINGS + 1];
	size_t n = 0;

	for (size_t i = 0; i < NR_SETTINGS; i++)
		if (!strcmp(config_settings[i].section, section))
			words[n++] = config_settings[i].key;
	words[n] = NULL;
	return n ? unknown(r, "key", key, words) : unknown_section(r, section);
}

static int set_key(struct reading *r, const char *section, const char *key, const char *value)
{
	for (size_t i = 0; i < NR_SETTINGS; i++) {
		const struct config_setting *s = &config_settings[i];

		if (strcmp(s->section, section) || strcmp(s->key, key))
			continue;
		if (r->seen[i])
			return wrong(r, "duplicate key '%s', first in line %u; remove one", key,
				     r->seen[i]);
		r->seen[i] = r->line;
		if (!strcmp(section, "listen"))
			r->where = r->line;
		return set_value(r, s, value);
	}
	return unknown_key(r, section, key);
}

static int set_key_named(struct reading *r, int which, const char *section, const char *key,
			 const char *value)
{
	const char *word = named_sections[which].word;
	const char *const *keys = named_sections[which].keys;
	unsigned int bit = 0;

	while (keys[bit] && strcmp(keys[bit], key))
		bit++;
	if (!keys[bit])
		return unknown(r, "key", key, keys);
	if (r->named & 1u << bit)
		return wrong(r, "duplicate key '%s' in [%s]; remove one", key, section);
	r->named |= 1u << bit;
	return set_named(r, word, key, value);
}

/* inih's handler: return 1 on success. */
static int on_key(void *arg, const char *section, const char *key, const char *value)
{
	struct reading *r = arg;
	const char *name;
	int which = named_section(section, &name);

	if (*r->why)
		return 0;
	if (!*section)
		return wrong(r, "'%.64s' is in no section; begin with a line such as [database]",
			     key);
	if (which >= 0)
		return set_key_named(r, which, section, key, value);
	return set_key(r, section, key, value);
}

static void check_section(struct reading *r, const char *line)
{
	char section[64];
	const char *name, *end = strchr(line, ']');
	size_t len = end ? (size_t)(end - line - 1) : 0;
	int which;

	if (!end || len >= sizeof(section)) {
		wrong(r, "the section lacks its ], or is longer than %zu bytes",
		      sizeof(section) - 1);
		return;
	}
	snprintf(section, sizeof(section), "%.*s", (int)len, line + 1);
	if (*r->section && !end_named(r))
		return;
	r->section[0] = '\0';
	r->named = 0;
	which = named_section(section, &name);
	if (which >= 0) {
		if (!*name)
			wrong(r, "[%s] has no name; write [%s NAME]", section, section);
		else if (begin_named(r, named_sections[which].word, name))
			snprintf(r->section, sizeof(r->section), "%s", section);
		return;
	}
	for (size_t i = 0; i < NR_SETTINGS; i++)
		if (!strcmp(config_settings[i].section, section))
			return;
	unknown_section(r, section);
}

/* inih's reader, as fgets(): it counts the lines. */
static char *next_line(char *buf, int room, void *arg)
{
	struct reading *r = arg;
	const char *end;
	size_t len, skip;

	if (!r->left || *r->why)
		return NULL;
	end = memchr(r->at, '\n', r->left);
	len = end ? (size_t)(end - r->at) + 1 : r->left;
	r->line++;
	/* inih takes a line with a leading space as a continuation. */
	for (skip = 0; skip + 1 < len && isspace((unsigned char)r->at[skip]); )
		skip++;
	if (len - skip > (size_t)room - 1) {
		wrong(r, "the line is longer than %d bytes; shorten it", room - 2);
		return NULL;
	}
	memcpy(buf, r->at + skip, len - skip);
	buf[len - skip] = '\0';
	r->at += len;
	r->left -= len;
	if (*buf == '[')
		check_section(r, buf);
	return buf;
}

/* ---- the file ---- */

/* Settings that must fit together. */
static int check(struct reading *r)
{
	struct config *c = r->c;

	if (*r->section && !end_named(r))
		return 0;
	r->line = r->where ? r->where : r->line;
	if (*c->address && (!*c->certificate || !*c->key))
		return wrong(r, "address needs certificate and key; add both, or remove address");
	if (!*c->address && *c->client_ca)
		return wrong(r, "client_ca needs address; add address, or remove client_ca");
	if (!*c->address && !*c->socket)
		return wrong(r, "neither socket nor address; set one");
	if (*c->socket && *c->socket != '/')
		return wrong(r, "socket '%s': write a path that begins with /", c->socket);
	return 1;
}

static void set_defaults(struct reading *r)
{
	pool_settings_default(&r->c->pool);
	for (size_t i = 0; i < NR_SETTINGS; i++)
		set_value(r, &config_settings[i], config_settings[i].initial);
}

int config_parse(struct config *config, const char *name, const char *text, size_t len, char *why,
		 size_t size)
{
	struct reading r = {
		.c = config, .name = name, .at = text, .left = len, .why = why, .size = size,
	};
	int ret;

	*why = '\0';
	memset(config, 0, sizeof(*config));
	set_defaults(&r);
	if (memchr(text, '\0', len)) {
		snprintf(why, size, "%s: the file has bytes with the value 0; replace it by a text file",
			 name);
	} else {
		ret = ini_parse_stream(next_line, &r, on_key, &r);
		if (ret && !*why)
			snprintf(why, size, "%s:%d: write \"key = value\", [section], or a comment that begins with #",
				 name, ret);
		if (!*why)
			check(&r);
	}
	if (!*why)
		return 0;
	config_free(config);
	return -EINVAL;
}

static bool has_password(const char *url)
{
	const char *user = strstr(url, "://");
	const char *at = user ? strpbrk(user + 3, "@/?") : NULL;

	if (at && *at == '@' && memchr(user + 3, ':', (size_t)(at - user - 3)))
		return true;
	return strstr(url, "password=");
}

int config_load(struct config *config, const char *path, bool must, char *why, size_t size)
{
	char *text;
	struct stat st;
	ssize_t n = 0, len = 0;
	int fd, ret;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT && !must)
		return config_parse(config, path, "", 0, why, size);
	if (fd < 0) {
		ret = -errno;
		snprintf(why, size, "%s: %s; name another file with --config", path,
			 strerror(errno));
		return ret;
	}
	text = malloc(CONFIG_SIZE_MAX + 1);
	if (!text || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		snprintf(why, size, "%s: no regular file, or no memory; name another file with --config",
			 path);
		free(text);
		close(fd);
		return -EINVAL;
	}
	while (len <= CONFIG_SIZE_MAX) {
		n = read(fd, text + len, (size_t)(CONFIG_SIZE_MAX + 1 - len));
		if (n <= 0)
			break;
		len += n;
	}
	if (n < 0 || len > CONFIG_SIZE_MAX) {
		snprintf(why, size, "%s: %s", path, n < 0 ? strerror(errno) :
			 "the file is larger than 1 MiB; shorten it");
		ret = -EINVAL;
	} else {
		ret = config_parse(config, path, text, (size_t)len, why, size);
		config->exposed = !ret && st.st_mode & 0004 && has_password(config->database);
	}
	free(text);
	close(fd);
	return ret;
}

void config_free(struct config *config)
{
	free(config->hosts);
	free(config->projects);
	free(config->clients);
	memset(config, 0, sizeof(*config));
}
