// SPDX-License-Identifier: GPL-2.0-only
/*
 * The configuration file. inih splits lines; this file interprets them. inih reads line
 * by line from memory, so that each error can name its line.
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

#include "config/config.h"
#include "config/fail.h"
#include "config/table.h"

void config_default(struct config *c)
{
	struct settings_error err;

	memset(c, 0, sizeof(*c));
	c->set.sla = SLA_NONE;
	c->preempt = PREEMPTER_CONFIG_DEFAULT;
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++)
		table_parse(c, s, s->key, s->initial, &err);
}

void config_free(struct config *c)
{
	settings_free(&c->set);
}

/* ---- the file ---- */

#define FLOOR	0
#define CEILING	1
#define TEXT	2

/**
 * struct agreement - section [vgpu UUID] or [sla]
 * @uuid: UUID of the vGPU, "" for [sla]
 * @line: lines of FLOOR, of CEILING and of TEXT, the description, 0 if the section lacks the
 *	key
 * @sla: floor and ceiling
 */
struct agreement {
	char uuid[SAMPLE_UUID_LEN];
	unsigned int line[3];
	struct sla sla;
};

/**
 * struct reading - a configuration file that is being read
 * @c: the configuration that is made from it
 * @at: the rest of the text
 * @left: bytes of it
 * @line: number of the line that inih has
 * @seen: line of each setting, 0 where the file does not have it
 * @list: agreements in the order of the file
 * @nr: number of these
 * @wrong: line of the first mistake, 0 for none
 * @err: the mistake
 */
struct reading {
	struct config *c;
	const char *at;
	size_t left;
	unsigned int line;
	unsigned int *seen;
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
		return 0;	/* keep the first mistake */
	r->wrong = r->line;
	snprintf(r->err.key, sizeof(r->err.key), "%s", key);
	va_start(ap, fmt);
	vsnprintf(r->err.text, sizeof(r->err.text), fmt, ap);
	va_end(ap);
	return 0;
}

static bool is_table_section(const char *section)
{
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++)
		if (!strcmp(s->section, section))
			return true;
	return false;
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
		wrong(r, "section", "the section lacks its ]");
	snprintf(section, sizeof(section), "%.*s", (int)len, line + 1);
	if (is_table_section(section) || section_uuid(section, uuid))
		return;
	if (!strncmp(section, "vgpu", 4))
		wrong(r, "section", "[%s] has no UUID: write [vgpu 01234567-89ab-cdef-0123-456789abcdef]",
		      section);
	else
		wrong(r, "section", "unknown section [%s]; the sections are [mgpud], [preemption], [model], [sla] and [vgpu UUID]",
		      section);
}

/*
 * Length of a line without the comment behind it. inih removes only whole lines, and
 * comments that begin with a ;.
 */
static size_t without_comment(const char *line, size_t len)
{
	if (*line == '[')
		return len;
	for (size_t i = 1; i < len; i++)
		if ((line[i] == '#' || line[i] == ';') && isspace((unsigned char)line[i - 1]))
			return i;
	return len;
}

/* inih's reader, as fgets(): return the next line without leading spaces. */
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
		/* inih takes a line with a leading space as a continuation */
		r->at++;
		r->left--;
		line--;
	}
	len = without_comment(r->at, line);
	if (len > (size_t)room - 1) {
		if (*r->at != '#' && *r->at != ';')
			wrong(r, "line", "the line is longer than %d bytes; shorten it", room - 3);
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

static int unknown_key(struct reading *r, const char *section, const char *key,
		       const char *value)
{
	const struct mgpud_setting *renamed = table_was(section, key);
	char keys[192] = "";

	if (renamed)
		return wrong(r, key, "%s is called %s now: use %s = %.64s", key,
			     renamed->key, renamed->key, value);
	for (const struct mgpud_setting *s = mgpud_settings; s->key; s++)
		if (!strcmp(s->section, section))
			snprintf(keys + strlen(keys), sizeof(keys) - strlen(keys), "%s%s",
				 *keys ? ", " : "", s->key);
	return wrong(r, key, "unknown key \"%.32s\" in [%s]; the keys are %s", key, section,
		     keys);
}

static int set_key(struct reading *r, const char *section, const char *key,
		   const char *value)
{
	const struct mgpud_setting *s = table_key(section, key);
	unsigned int *seen;

	if (!s)
		return unknown_key(r, section, key, value);
	seen = &r->seen[s - mgpud_settings];
	if (*seen)
		return wrong(r, key, "duplicate key, first in line %u; remove one", *seen);
	if (table_parse(r->c, s, key, value, &r->err)) {
		r->wrong = r->line;
		return 0;
	}
	*seen = r->line;
	return 1;
}

static struct agreement *get_agreement(struct reading *r, const char *uuid)
{
	struct agreement *list;

	/* search backwards: it is mostly the last one */
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

/* In a section [vgpu UUID], a key that [sla] lacks. */
static bool is_description(const char *uuid, const char *key)
{
	return *uuid && !strcmp(key, "description");
}

static int set_agreement(struct reading *r, const char *uuid, const char *key,
			 const char *value)
{
	struct agreement *a = get_agreement(r, uuid);
	size_t which = strcmp(key, "floor") ? CEILING : FLOOR;
	bool text = is_description(uuid, key);

	if (!a)
		return wrong(r, key, "out of memory");
	if (text ? settings_describe(&r->c->set, uuid, strcmp(value, "none") ? value : NULL,
				     &r->err) :
	    settings_sla_parse(&a->sla, key, value, &r->err)) {
		r->wrong = r->line;
		return 0;
	}
	which = text ? TEXT : which;
	if (a->line[which])
		return wrong(r, key, "duplicate key, first in line %u; remove one",
			     a->line[which]);
	a->line[which] = r->line;
	return 1;
}

/* inih's handler: return 1 on success. */
static int on_key(void *arg, const char *section, const char *key, const char *value)
{
	struct reading *r = arg;
	char uuid[SAMPLE_UUID_LEN];

	if (r->wrong)
		return 0;
	if (!*section)
		return wrong(r, key, "the key is in no section; begin with a line [mgpud]");
	if (is_table_section(section))
		return set_key(r, section, key, value);
	if (section_uuid(section, uuid))
		return set_agreement(r, uuid, key, value);
	return wrong(r, key, "unknown section [%s]", section);
}

/* Fill keys that a vGPU lacks from [sla]. */
static int settle_agreements(struct reading *r)
{
	const struct agreement *others = get_agreement(r, "");
	struct sla sla;

	if (!others)
		return wrong(r, "sla", "out of memory");
	sla = others->sla;
	if (others->line[FLOOR] || others->line[CEILING])
		r->c->sla_origin = ORIGIN_FILE;
	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < r->nr; i++) {
			struct agreement *a = &r->list[i];

			if (!*a->uuid != !pass)
				continue;
			/* a description alone is no agreement */
			if (*a->uuid && !a->line[FLOOR] && !a->line[CEILING])
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
					 "; a key that [vgpu %s] lacks is as in [sla]",
					 a->uuid);
			return 0;
		}
	}
	return 1;
}

static int parse_text(struct config *c, const char *path, const char *text, size_t len,
		      unsigned int *lines, char *why, size_t size)
{
	struct reading r = { .c = c, .at = text, .left = len, .seen = lines };
	int ret;

	if (memchr(text, '\0', len))
		return fail(why, size, -EINVAL, "%s: the file has bytes with the value 0; replace it by a text file",
			    path);
	ret = ini_parse_stream(next_line, &r, on_key, &r);
	if (ret < 0) {
		ret = fail(why, size, -ENOMEM, "%s: out of memory", path);
	} else if (ret > 0 && (!r.wrong || (unsigned int)ret < r.wrong)) {
		ret = fail(why, size, -EINVAL, "%s:%d: the line must be \"key = value\", [section], or a comment that begins with #",
			   path, ret);
	} else if (r.wrong || !settle_agreements(&r)) {
		/* most sentences begin with their key */
		bool named = !strncmp(r.err.text, r.err.key, strlen(r.err.key));

		ret = fail(why, size, -EINVAL, "%s:%u: %s%s%s", path, r.wrong,
			   named ? "" : r.err.key, named ? "" : ": ", r.err.text);
	}
	free(r.list);
	return ret;
}

static int read_file(struct config *c, const struct config_source *source,
		     unsigned int *lines, char *why, size_t size)
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
		ret = fail(why, size, -EINVAL, "%s: not a regular file; name another one with --config",
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
		ret = fail(why, size, -EFBIG, "%s: the file is larger than %u bytes", path,
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

/* The line of the setting that @err names, or of the one that it belongs to. */
static unsigned int line_of(const unsigned int *lines, const char *key)
{
	const size_t member[] = {
		offsetof(struct config, set.param.beta),
		offsetof(struct config, set.param.lambda),
	};
	unsigned int last = 0;

	for (size_t i = 0; i < sizeof(member) / sizeof(member[0]); i++) {
		const struct mgpud_setting *s = table_member(member[i]);
		unsigned int line = lines[s - mgpud_settings];

		if (line && !strcmp(s->key, key))
			return line;
		last = line > last ? line : last;
	}
	return last;
}

int config_load(struct config *c, const struct config_source *source, char *why,
		size_t size)
{
	unsigned int lines[CONFIG_SETTINGS_MAX] = { 0 };
	struct settings_error err;
	struct config new;
	unsigned int line;
	int ret;

	config_default(&new);
	ret = read_file(&new, source, lines, why, size);
	if (ret)
		goto err;
	for (size_t i = 0; i < CONFIG_SETTINGS_MAX; i++)
		new.origin[i] = lines[i] ? ORIGIN_FILE : ORIGIN_DEFAULT;
	for (size_t i = 0; i < source->nr; i++) {
		const struct mgpud_setting *s = source->override[i].setting;

		ret = table_parse(&new, s, s->option, source->override[i].value, &err);
		if (ret) {
			fail(why, size, ret, "%s", err.text);
			goto err;
		}
		new.origin[s - mgpud_settings] = (unsigned char)source->override[i].origin;
	}
	ret = settings_check(&new.set, &err);
	if (ret) {
		line = line_of(lines, err.key);
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
