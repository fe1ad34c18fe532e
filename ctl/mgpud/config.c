// SPDX-License-Identifier: GPL-2.0-only
/*
 * The configuration file. inih takes lines apart; here is what they mean. It is
 * handed one line after the other out of memory, so that the number of the line
 * is known to whoever finds something wrong with it.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <ini.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "config.h"
#include "mgpud_client.h"
#include "preempt_settings.h"

const char *const config_keys[] = {
	"policy", "period_ms", "iterations", "headroom", "beta", "lambda", "socket",
	"log", "json_log", "state_file", "state_period_s", NULL
};

void config_default(struct config *c)
{
	memset(c, 0, sizeof(*c));
	settings_default(&c->set);
	c->preempt = PREEMPTER_CONFIG_DEFAULT;
	strcpy(c->socket, MGPUD_SOCKET_DEFAULT);
	strcpy(c->state_file, CONFIG_STATE_FILE);
	c->state_period_s = CONFIG_STATE_PERIOD;
	c->log = LOG_AUTO;
}

void config_free(struct config *c)
{
	settings_free(&c->set);
}

static int set_path(char to[CONFIG_PATH], const char *key, const char *value, size_t max,
		    bool optional, struct settings_error *err)
{
	if (optional && !strcmp(value, "none"))
		value = "";
	else if (!*value)
		return settings_wrong(err, key, "%s must be a path%s", key,
				      optional ? ", or none" : "");
	if (strlen(value) >= max)
		return settings_wrong(err, key, "%s must be a path of at most %zu bytes",
				      key, max - 1);
	strcpy(to, value);
	return 0;
}

static int set_state_period(struct config *c, const char *value,
			    struct settings_error *err)
{
	char *end;
	long s = strtol(value, &end, 10);

	if (end == value || *end || s < 1 || s > CONFIG_STATE_PERIOD_MAX)
		return settings_wrong(err, "state_period_s",
				      "state_period_s must be a whole number from 1 to %d seconds, not \"%.32s\"",
				      CONFIG_STATE_PERIOD_MAX, value);
	c->state_period_s = (unsigned int)s;
	return 0;
}

int config_set(struct config *c, const char *key, const char *value,
	       struct settings_error *err)
{
	char keys[192] = "";

	if (settings_is_key(key))
		return settings_parse(&c->set, key, value, err);
	if (!strcmp(key, "socket"))
		return set_path(c->socket, key, value,
				sizeof(((struct sockaddr_un *)NULL)->sun_path), false, err);
	if (!strcmp(key, "json_log"))
		return set_path(c->json_log, key, value, CONFIG_PATH, true, err);
	if (!strcmp(key, "state_file"))
		return set_path(c->state_file, key, value, CONFIG_PATH, true, err);
	if (!strcmp(key, "state_period_s"))
		return set_state_period(c, value, err);
	if (!strcmp(key, "log"))
		return log_mode_parse(value, &c->log) ? 0 :
			settings_wrong(err, key, "log must be auto, periods, changes or quiet, not \"%.32s\"",
				       value);
	for (size_t i = 0; config_keys[i]; i++)
		snprintf(keys + strlen(keys), sizeof(keys) - strlen(keys), "%s%s",
			 i ? ", " : "", config_keys[i]);
	return settings_wrong(err, key, "there is no key \"%.32s\" in [mgpud]; they are %s",
			      key, keys);
}

int config_override(struct config *c, const char *key, const char *value,
		    struct settings_error *err)
{
	if (preempt_settings_is(key))
		return preempt_settings_parse_named(&c->preempt, key, value, err);
	return config_set(c, key, value, err);
}

/* ---- the file ---- */

#define FLOOR	0
#define CEILING	1

/**
 * struct agreement - a section [vgpu UUID] or [sla]
 * @uuid: "" for [sla]
 * @line: of FLOOR and of CEILING, 0 where it is not said
 * @sla: what is said
 */
struct agreement {
	char uuid[SAMPLE_UUID_LEN];
	unsigned int line[2];
	struct sla sla;
};

#define NR_KEYS	(sizeof(config_keys) / sizeof(config_keys[0]) - 1)

/**
 * struct reading - a file that is being read
 * @c: what becomes of it
 * @at: the rest of the text
 * @left: bytes of it
 * @line: number of the line that inih has
 * @seen: line of each key of [mgpud], 0 where it was not there
 * @seen_preempt: the same of [preemption]
 * @list: agreements in the order of the file
 * @nr: number of these
 * @wrong: line of what is wrong, 0 while nothing is
 * @err: and what it is
 */
struct reading {
	struct config *c;
	const char *at;
	size_t left;
	unsigned int line;
	unsigned int seen[NR_KEYS];
	unsigned int seen_preempt[PREEMPT_SETTINGS];
	struct agreement *list;
	size_t nr;
	unsigned int wrong;
	struct settings_error err;
};

__attribute__((format(printf, 3, 4)))
static int wrong(struct reading *r, const char *key, const char *fmt, ...)
{
	va_list ap;

	if (r->wrong)
		return 0;	/* the first one counts */
	r->wrong = r->line;
	snprintf(r->err.key, sizeof(r->err.key), "%s", key);
	va_start(ap, fmt);
	vsnprintf(r->err.text, sizeof(r->err.text), fmt, ap);
	va_end(ap);
	return 0;
}

/* "vgpu UUID" or "sla" */
static bool section_uuid(const char *section, char uuid[SAMPLE_UUID_LEN])
{
	uuid[0] = '\0';
	if (!strcmp(section, "sla"))
		return true;
	if (strncmp(section, "vgpu", 4) || !isspace((unsigned char)section[4]))
		return false;
	section += 4;
	while (isspace((unsigned char)*section))
		section++;
	return settings_uuid(section, uuid);
}

static void check_section(struct reading *r, const char *line)
{
	char section[64], uuid[SAMPLE_UUID_LEN];
	size_t len = strcspn(line + 1, "]");

	if (!line[1 + len])
		wrong(r, "section", "a section ends with ]");
	snprintf(section, sizeof(section), "%.*s", (int)len, line + 1);
	if (!strcmp(section, "mgpud") || !strcmp(section, "preemption") ||
	    section_uuid(section, uuid))
		return;
	if (!strncmp(section, "vgpu", 4))
		wrong(r, "section", "[%s] has no UUID: write [vgpu 01234567-89ab-cdef-0123-456789abcdef]",
		      section);
	else
		wrong(r, "section", "there is no section [%s]; there are [mgpud], [preemption], [sla] and [vgpu UUID]",
		      section);
}

/* inih's reader, as fgets(): the next line, without spaces in front. */
static char *next_line(char *buf, int room, void *arg)
{
	struct reading *r = arg;
	const char *end;
	size_t len, line;

	if (!r->left)
		return NULL;
	end = memchr(r->at, '\n', r->left);
	line = end ? (size_t)(end - r->at) + 1 : r->left;
	r->line++;
	while (line > 1 && isspace((unsigned char)*r->at)) {
		/* to inih a line that begins with space goes on with the one before */
		r->at++;
		r->left--;
		line--;
	}
	len = line;
	if (len > (size_t)room - 1) {
		if (*r->at != '#' && *r->at != ';')
			wrong(r, "line", "the line is longer than %d bytes", room - 3);
		len = (size_t)room - 1;
	}
	memcpy(buf, r->at, len);
	buf[len] = '\0';
	r->at += line;
	r->left -= line;
	if (buf[0] == '[')
		check_section(r, buf);
	return buf;
}

static int set_preempt(struct config *c, const char *key, const char *value,
		       struct settings_error *err)
{
	return preempt_settings_parse(&c->preempt, key, value, err);
}

/* One of @keys, which are all that @set takes; their lines are in @seen. */
static int set_key(struct reading *r, const char *const *keys, unsigned int *seen,
		   int (*set)(struct config *c, const char *key, const char *value,
			      struct settings_error *err),
		   const char *key, const char *value)
{
	size_t i;

	for (i = 0; keys[i]; i++)
		if (!strcmp(keys[i], key))
			break;
	if (keys[i] && seen[i])
		return wrong(r, key, "it is there twice, first in line %u; take one out",
			     seen[i]);
	if (set(r->c, key, value, &r->err)) {
		r->wrong = r->line;
		return 0;
	}
	seen[i] = r->line;
	return 1;
}

static struct agreement *get_agreement(struct reading *r, const char *uuid)
{
	struct agreement *list;

	/* mostly the last one: sections are read line by line */
	for (size_t i = r->nr; i; i--)
		if (!strcmp(r->list[i - 1].uuid, uuid))
			return &r->list[i - 1];
	list = realloc(r->list, (r->nr + 1) * sizeof(*list));
	if (!list)
		return NULL;
	r->list = list;
	memset(&list[r->nr], 0, sizeof(*list));
	strcpy(list[r->nr].uuid, uuid);
	list[r->nr].sla = SLA_NONE;
	return &list[r->nr++];
}

static int set_agreement(struct reading *r, const char *uuid, const char *key,
			 const char *value)
{
	struct agreement *a = get_agreement(r, uuid);
	size_t which = strcmp(key, "floor") ? CEILING : FLOOR;

	if (!a)
		return wrong(r, key, "out of memory");
	if (settings_sla_parse(&a->sla, key, value, &r->err)) {
		r->wrong = r->line;
		return 0;
	}
	if (a->line[which])
		return wrong(r, key, "it is there twice, first in line %u; take one out",
			     a->line[which]);
	a->line[which] = r->line;
	return 1;
}

/* inih's handler: 1 when all is well. */
static int on_key(void *arg, const char *section, const char *key, const char *value)
{
	struct reading *r = arg;
	char uuid[SAMPLE_UUID_LEN];

	if (r->wrong)
		return 0;
	if (!*section)
		return wrong(r, key, "it is in no section; begin with a line [mgpud]");
	if (!strcmp(section, "mgpud"))
		return set_key(r, config_keys, r->seen, config_set, key, value);
	if (!strcmp(section, "preemption"))
		return set_key(r, preempt_settings_keys, r->seen_preempt, set_preempt, key,
			       value);
	if (section_uuid(section, uuid))
		return set_agreement(r, uuid, key, value);
	return wrong(r, key, "there is no section [%s]", section);
}

/* What is not said of a vGPU is as for all others. */
static int settle_agreements(struct reading *r)
{
	const struct agreement *others = get_agreement(r, "");
	struct sla sla;

	if (!others)
		return wrong(r, "sla", "out of memory");
	sla = others->sla;
	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < r->nr; i++) {
			struct agreement *a = &r->list[i];

			if (!*a->uuid != !pass)
				continue;
			if (!a->line[FLOOR])
				a->sla.floor = sla.floor;
			if (!a->line[CEILING])
				a->sla.ceiling = sla.ceiling;
			if (!settings_sla_set(&r->c->set, *a->uuid ? a->uuid : NULL,
					      &a->sla, &r->err))
				continue;
			r->wrong = a->line[FLOOR] > a->line[CEILING] ?
				a->line[FLOOR] : a->line[CEILING];
			if (*a->uuid)
				snprintf(r->err.text + strlen(r->err.text),
					 sizeof(r->err.text) - strlen(r->err.text),
					 "; what [vgpu %s] does not say is as in [sla]",
					 a->uuid);
			return 0;
		}
	}
	return 1;
}

static unsigned int line_of(const struct reading *r, const char *key)
{
	for (size_t i = 0; i < NR_KEYS; i++)
		if (!strcmp(config_keys[i], key))
			return r->seen[i];
	return 0;
}

__attribute__((format(printf, 4, 5)))
static int fail(char *why, size_t size, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return code;
}

static int parse_text(struct config *c, const char *path, const char *text, size_t len,
		      unsigned int lines[2], char *why, size_t size)
{
	struct reading r = { .c = c, .at = text, .left = len };
	int ret;

	if (memchr(text, '\0', len))
		return fail(why, size, -EINVAL, "%s: it has bytes that are 0, and so is no text; mend it, or put another one there",
			    path);
	ret = ini_parse_stream(next_line, &r, on_key, &r);
	if (ret < 0) {
		ret = fail(why, size, -ENOMEM, "%s: out of memory", path);
	} else if (ret > 0 && (!r.wrong || (unsigned int)ret < r.wrong)) {
		ret = fail(why, size, -EINVAL, "%s:%d: it is neither \"key = value\", nor [section], nor a comment with # in front",
			   path, ret);
	} else if (r.wrong || !settle_agreements(&r)) {
		/* most sentences begin with the key */
		bool named = !strncmp(r.err.text, r.err.key, strlen(r.err.key));

		ret = fail(why, size, -EINVAL, "%s:%u: %s%s%s", path, r.wrong,
			   named ? "" : r.err.key, named ? "" : ": ", r.err.text);
	}
	lines[0] = line_of(&r, "beta");
	lines[1] = line_of(&r, "lambda");
	free(r.list);
	return ret;
}

static int read_file(struct config *c, const struct config_source *source,
		     unsigned int lines[2], char *why, size_t size)
{
	const char *path = source->path;
	char *text = NULL;
	size_t len = 0;
	struct stat st;
	int fd, ret;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && errno == ENOENT && !source->must)
		return 0;
	if (fd < 0)
		return fail(why, size, -errno, "%s: %s; name another file with --config",
			    path, strerror(errno));
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		ret = fail(why, size, -EINVAL, "%s: it is no file; name another one with --config",
			   path);
		goto out;
	}
	text = malloc(CONFIG_SIZE_MAX + 1);
	if (!text) {
		ret = fail(why, size, -ENOMEM, "out of memory");
		goto out;
	}
	while (len <= CONFIG_SIZE_MAX) {
		ssize_t n = read(fd, text + len, CONFIG_SIZE_MAX + 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			ret = fail(why, size, -errno, "%s: %s", path, strerror(errno));
			goto out;
		}
		if (!n)
			break;
		len += (size_t)n;
	}
	if (len > CONFIG_SIZE_MAX) {
		ret = fail(why, size, -EFBIG, "%s: it is larger than %u bytes", path,
			   CONFIG_SIZE_MAX);
		goto out;
	}
	c->found = true;
	ret = parse_text(c, path, text, len, lines, why, size);
out:
	free(text);
	close(fd);
	return ret;
}

int config_load(struct config *c, const struct config_source *source, char *why,
		size_t size)
{
	struct settings_error err;
	unsigned int lines[2] = { 0, 0 };
	struct config new;
	int ret;

	config_default(&new);
	ret = read_file(&new, source, lines, why, size);
	if (ret)
		goto err;
	for (size_t i = 0; i < source->nr; i++) {
		ret = config_override(&new, source->override[i].key,
				      source->override[i].value, &err);
		if (ret) {
			fail(why, size, ret, "%s", err.text);
			goto err;
		}
	}
	ret = settings_check(&new.set, &err);
	if (ret) {
		/* two keys that do not go together: where one of them is */
		unsigned int line = lines[!strcmp(err.key, "lambda")];

		if (!line)
			line = lines[0] > lines[1] ? lines[0] : lines[1];
		if (line)
			fail(why, size, ret, "%s:%u: %s", source->path, line, err.text);
		else
			fail(why, size, ret, "%s", err.text);
		goto err;
	}
	config_free(c);
	*c = new;
	return 0;
err:
	config_free(&new);
	return ret;
}
