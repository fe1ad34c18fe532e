// SPDX-License-Identifier: GPL-2.0-only
#include <elf.h>
#include <errno.h>
#include <json-c/json.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyse.h"
#include "cache.h"
#include "marks.h"

/**
 * struct place - address that a call in a loop returns to
 * @site: the address; NULL: the slot of the table is free
 * @loops: loops that it is in, the outermost first
 */
struct place {
	const void *site;
	struct mark_loop *loops[MARK_LOOPS];
};

/* Loops of a report. */
struct loops {
	struct loops *next;
	size_t nr;
	struct mark_loop loop[];
};

static struct {
	struct place *table;
	size_t size;			/* a power of two */
	size_t used;
	struct loops *reports;
	bool log;
} marks;

/* ---- the table ---- */

static struct place *slot(const void *site)
{
	size_t i = (size_t)((uintptr_t)site * 0x9e3779b97f4a7c15ull >> 32) & (marks.size - 1);

	while (marks.table[i].site && marks.table[i].site != site)
		i = (i + 1) & (marks.size - 1);
	return &marks.table[i];
}

static bool grow(void)
{
	struct place *old = marks.table;
	size_t size = marks.size;

	marks.size = size ? 2 * size : 64;
	marks.table = calloc(marks.size, sizeof(*marks.table));
	if (!marks.table) {
		marks.table = old;
		marks.size = size;
		return false;
	}
	for (size_t i = 0; i < size; i++)
		if (old[i].site)
			*slot(old[i].site) = old[i];
	free(old);
	return true;
}

bool marks_add_place(const void *site, struct mark_loop *loop)
{
	struct place *p;

	if (2 * marks.used >= marks.size && !grow())
		return false;
	p = slot(site);
	if (!p->site)
		marks.used++;
	p->site = site;
	for (unsigned int i = 0; i < MARK_LOOPS; i++) {
		if (!p->loops[i]) {
			p->loops[i] = loop;
			break;
		}
	}
	return true;
}

struct mark_loop *marks_find(const void *site)
{
	const struct place *p;

	if (!marks.used || !site)
		return NULL;
	p = slot(site);
	for (unsigned int i = 0; i < MARK_LOOPS && p->loops[i]; i++)
		if (!p->loops[i]->why && p->loops[i]->short_stays < MARK_SHORT)
			return p->loops[i];
	return NULL;
}

void marks_free(void)
{
	free(marks.table);
	marks.table = NULL;
	marks.size = marks.used = 0;
	while (marks.reports) {
		struct loops *l = marks.reports;

		marks.reports = l->next;
		for (size_t i = 0; i < l->nr; i++) {
			free(l->loop[i].name);
			free(l->loop[i].why);
		}
		free(l);
	}
}

/* ---- the log ---- */

void marks_say(const struct mark_loop *loop, const char *fmt, ...)
{
	char text[512];
	va_list args;

	if (!marks.log)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* A line in one piece, since threads may speak. */
	fprintf(stderr, "mgpu: %s: %s\n", loop->name ? loop->name : "a loop", text);
}

void marks_tell(const void *site)
{
	const struct place *p;

	if (!marks.log || !marks.used || !site)
		return;
	p = slot(site);
	for (unsigned int i = 0; i < MARK_LOOPS && p->loops[i]; i++)
		if (p->loops[i]->why && !atomic_exchange(&p->loops[i]->told, true))
			marks_say(p->loops[i], "not deferred: %s", p->loops[i]->why);
}

void marks_tell_all(void)
{
	for (const struct loops *l = marks.reports; l; l = l->next) {
		for (size_t i = 0; i < l->nr; i++) {
			const struct mark_loop *loop = &l->loop[i];

			if (loop->seen)
				marks_say(loop,
					  "class %u, %llu iterations as predicted, %llu groups, %llu mispredictions%s",
					  loop->class, (unsigned long long)loop->iterations,
					  (unsigned long long)loop->groups,
					  (unsigned long long)loop->wrong,
					  loop->short_stays >= MARK_SHORT ? ", given up" : "");
		}
	}
}

/* ---- a report ---- */

unsigned int marks_call_len(const uint8_t *p, size_t len)
{
	unsigned int at = 0, tail = 0;
	uint8_t mod, rm;

	/* CS for the linker's relaxation, notrack, bnd, and REX. */
	while (at < len && at < 4 && (p[at] == 0x67 || p[at] == 0x2e || p[at] == 0x3e ||
				      p[at] == 0xf2 || (p[at] & 0xf0) == 0x40))
		at++;
	if (at < len && p[at] == 0xe8)
		return at + 5 <= len ? at + 5 : 0;
	if (len < 2 || at > len - 2 || p[at] != 0xff || (p[at + 1] >> 3 & 7) != 2)
		return 0;
	mod = p[at + 1] >> 6;
	rm = p[at + 1] & 7;
	if (mod != 3 && rm == 4) {
		if (at + 2 >= len)
			return 0;
		tail = 1 + (!mod && (p[at + 2] & 7) == 5 ? 4 : 0);
	} else if (!mod && rm == 5) {
		tail = 4;
	}
	tail += mod == 1 ? 1 : mod == 2 ? 4 : 0;
	return at + 2 + tail <= len ? at + 2 + tail : 0;
}

static uint64_t number(struct json_object *o, const char *key)
{
	struct json_object *value = json_object_object_get(o, key);

	return value ? strtoull(json_object_get_string(value), NULL, 0) : 0;
}

/* Return a list and how many it has; of what is none, none. */
static struct json_object *list(struct json_object *o, const char *key, size_t *nr)
{
	struct json_object *value = json_object_object_get(o, key);

	if (!json_object_is_type(value, json_type_array))
		value = NULL;
	*nr = value ? json_object_array_length(value) : 0;
	return value;
}

/* Loops with calls that can wait, by their depth. */
static int compare(const void *a, const void *b)
{
	uint64_t x = number(*(struct json_object *const *)a, "depth");
	uint64_t y = number(*(struct json_object *const *)b, "depth");

	return (x > y) - (x < y);
}

static const char *string(struct json_object *o, const char *key)
{
	struct json_object *value = json_object_object_get(o, key);

	return value ? json_object_get_string(value) : "?";
}

/* Name a loop for the log, and say why it is none that can be deferred. */
static void describe(struct mark_loop *loop, struct json_object *report)
{
	size_t nr;
	struct json_object *reasons = list(report, "reasons", &nr), *first;

	if (asprintf(&loop->name, "%s, loop at %s", string(report, "function"),
		     string(report, "header")) < 0)
		loop->name = NULL;
	if (loop->class || !nr)
		return;
	first = json_object_array_get_idx(reasons, 0);
	if (nr == 1)
		loop->why = strdup(string(first, "text"));
	else if (asprintf(&loop->why, "%s; and %zu other reasons, which mgpu-defer has",
			  string(first, "text"), nr - 1) < 0)
		loop->why = NULL;
}

int marks_add(struct json_object *report, uintptr_t base, const uint8_t *start, const uint8_t *end)
{
	size_t nr, good = 0;
	struct json_object *loops = list(report, "loops", &nr), **sorted;
	struct loops *own;
	int added = 0;

	sorted = malloc((nr + 1) * sizeof(*sorted));
	own = calloc(1, sizeof(*own) + nr * sizeof(*own->loop));
	if (!sorted || !own) {
		free(sorted);
		free(own);
		return -ENOMEM;
	}
	marks.log = getenv("MGPU_REMOTE_LOG");
	own->next = marks.reports;
	own->nr = nr;
	marks.reports = own;
	for (size_t i = 0; i < nr; i++) {
		struct json_object *loop = json_object_array_get_idx(loops, i);

		if (number(loop, "class"))
			sorted[good++] = loop;
	}
	qsort(sorted, good, sizeof(*sorted), compare);
	/* Of those behind, which only the log is for, none takes the place of a good one. */
	for (size_t i = 0; i < nr && marks.log; i++)
		if (!number(json_object_array_get_idx(loops, i), "class"))
			sorted[good++] = json_object_array_get_idx(loops, i);
	for (size_t i = 0; i < good && added >= 0; i++) {
		size_t nr_calls;
		struct json_object *calls = list(sorted[i], "calls", &nr_calls);
		struct mark_loop *loop = &own->loop[i];

		loop->class = (unsigned int)number(sorted[i], "class");
		loop->base = base;
		if (marks.log)
			describe(loop, sorted[i]);
		if (!loop->class && !loop->why)
			continue;
		for (size_t k = 0; k < nr_calls && added >= 0; k++) {
			uintptr_t at = base + number(json_object_array_get_idx(calls, k),
						     "address");
			unsigned int len = 0;

			if (at >= (uintptr_t)start && at < (uintptr_t)end)
				len = marks_call_len((const uint8_t *)at, (uintptr_t)end - at);
			if (!len)
				continue;
			added = marks_add_place((const void *)(at + len), loop) ?
				added + 1 : -ENOMEM;
		}
	}
	free(sorted);
	return added;
}

/* ---- what is loaded ---- */

/* Write the build id of a note as mgpu-defer does; return whether it is one. */
static bool build_id(const uint8_t *p, size_t len, char *id)
{
	Elf64_Nhdr n;

	while (len >= sizeof(n)) {
		size_t name, desc;

		memcpy(&n, p, sizeof(n));
		name = (n.n_namesz + 3ul) & ~3ul;
		desc = (n.n_descsz + 3ul) & ~3ul;
		if (name > len - sizeof(n) || desc > len - sizeof(n) - name)
			return false;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 &&
		    !memcmp(p + sizeof(n), "GNU", 4) && n.n_descsz && n.n_descsz <= 32) {
			for (size_t i = 0; i < n.n_descsz; i++)
				sprintf(id + 2 * i, "%02x", p[sizeof(n) + name + i]);
			return true;
		}
		p += sizeof(n) + name + desc;
		len -= sizeof(n) + name + desc;
	}
	return false;
}

/* Return whether an object was linked with a library whose name begins so. */
static bool needs(const Elf64_Dyn *dynamic, Elf64_Addr base, const char *library)
{
	const char *strings = NULL;

	for (const Elf64_Dyn *d = dynamic; d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_STRTAB)
			/* The dynamic linker has made an address of it; the vDSO's is none. */
			strings = (const char *)(d->d_un.d_ptr < base ? base + d->d_un.d_ptr :
						 d->d_un.d_ptr);
	for (const Elf64_Dyn *d = dynamic; strings && d->d_tag != DT_NULL; d++)
		if (d->d_tag == DT_NEEDED &&
		    !strncmp(strings + d->d_un.d_val, library, strlen(library)))
			return true;
	return false;
}

struct marks_search {
	const char *library;
	bool within;			/* the program has the library's functions in itself */
	unsigned int nr;		/* objects that were looked at; the program is the first */
};

static int look(struct dl_phdr_info *info, size_t size, void *data)
{
	const uint8_t *start = NULL, *end = NULL;
	const Elf64_Dyn *dynamic = NULL;
	struct json_object *report;
	struct marks_search *search = data;
	bool program = !search->nr++;
	char id[65] = "";

	(void)size;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *h = &info->dlpi_phdr[i];
		const uint8_t *p = (const uint8_t *)(info->dlpi_addr + h->p_vaddr);

		if (h->p_type == PT_DYNAMIC)
			dynamic = (const void *)p;
		else if (h->p_type == PT_NOTE && !*id)
			build_id(p, h->p_memsz, id);
		if (h->p_type == PT_LOAD && h->p_flags & PF_X && !start) {
			start = p;
			end = p + h->p_memsz;
		}
	}
	if (!*id || !start || !dynamic ||
	    (!(program && search->within) && !needs(dynamic, info->dlpi_addr, search->library)))
		return 0;
	/* The front end answers for calls that it puts off, so that their status may be tested. */
	report = cache_get(id, true);
	if (!report && getenv("MGPU_REMOTE_LOG"))
		fprintf(stderr,
			"mgpu: %s: there is no report, so that no loop is deferred; mgpu-defer makes one for the next start\n",
			program ? "the program" : info->dlpi_name);
	if (report)
		marks_add(report, info->dlpi_addr, start, end);
	else
		analyse(program ? "/proc/self/exe" : info->dlpi_name);
	json_object_put(report);
	return 0;
}

void marks_load(const char *library, bool within)
{
	struct marks_search search = { .library = library, .within = within };

	dl_iterate_phdr(look, &search);
}
