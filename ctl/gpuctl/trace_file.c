// SPDX-License-Identifier: GPL-2.0-only
/* Writes recordings in Perfetto's format. Pure. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace_file.h"

#define SEQUENCE	1
#define ORDERING_EXPLICIT	3
#define MERGE_NONE	2

/* Place among packets of one time. */
enum rank { RANK_CLOCKS, RANK_TRACK, RANK_END, RANK_EVENT };

/**
 * struct trace_entry - a packet
 * @ns: its time; 0 for clocks and tracks
 * @at: its first byte
 * @len: bytes
 * @rank: enum rank: a slice ends before the next one of its track begins
 */
struct trace_entry {
	uint64_t ns;
	uint64_t at;
	uint32_t len;
	uint32_t rank;
};

/* ---- encoding ---- */

/* A message that is being encoded; it has room for any packet of this file. */
struct message {
	size_t len;
	uint8_t bytes[8 * TRACE_TEXT];
};

/* The bytes need no value. */
static void clear(struct message *m)
{
	m->len = 0;
}

static void put_byte(struct message *m, uint8_t byte)
{
	if (m->len < sizeof(m->bytes))
		m->bytes[m->len++] = byte;
}

static void put_varint(struct message *m, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		put_byte(m, (uint8_t)(value | 0x80));
	put_byte(m, (uint8_t)value);
}

static void put_key(struct message *m, uint32_t field, uint32_t wire)
{
	put_varint(m, field << 3 | wire);
}

static void put_uint(struct message *m, uint32_t field, uint64_t value)
{
	put_key(m, field, WIRE_VARINT);
	put_varint(m, value);
}

static void put_double(struct message *m, uint32_t field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put_key(m, field, WIRE_FIXED64);
	for (int i = 0; i < 64; i += 8)
		put_byte(m, (uint8_t)(bits >> i));
}

static void put_bytes(struct message *m, uint32_t field, const void *bytes, size_t len)
{
	put_key(m, field, WIRE_BYTES);
	put_varint(m, len);
	for (size_t i = 0; i < len; i++)
		put_byte(m, ((const uint8_t *)bytes)[i]);
}

/*
 * Return the length of a text that ends between two characters of UTF-8: without the last one if
 * the text, or whoever cut it off before, ends within it.
 */
static size_t text_len(const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t len = strnlen(text, TRACE_TEXT), first = len, more;

	while (first && len - first < 3 && s[first - 1] >> 6 == 2)
		first--;
	if (!first || s[first - 1] < 0xc0)
		return len;
	more = s[first - 1] < 0xe0 ? 1 : s[first - 1] < 0xf0 ? 2 : 3;
	return len - first < more ? first - 1 : len;
}

static void put_text(struct message *m, uint32_t field, const char *text)
{
	put_bytes(m, field, text, text_len(text));
}

static void put_message(struct message *m, uint32_t field, const struct message *inner)
{
	put_bytes(m, field, inner->bytes, inner->len);
}

/* ---- packets ---- */

bool trace_add_room(void *array, size_t nr, size_t size)
{
	void *more;

	if (nr & (nr - 1) && nr)
		return true;
	more = reallocarray(*(void **)array, nr ? 2 * nr : 1, size);
	if (!more)
		return false;
	*(void **)array = more;
	return true;
}

/* Make room for a packet. */
static bool add_bytes(struct trace_file *f, size_t len)
{
	size_t room = f->room ? f->room : 1024;
	uint8_t *more;

	while (room < f->len + len)
		room *= 2;
	if (room == f->room)
		return true;
	more = realloc(f->bytes, room);
	if (!more)
		return false;
	f->bytes = more;
	f->room = room;
	return true;
}

/* Return whether packets of @len bytes together fit; else set the error. */
static bool fits(struct trace_file *f, size_t len)
{
	if (f->error)
		return false;
	if (len > f->max || f->reserved > f->max - len || f->len > f->max - len - f->reserved)
		f->error = -ENOSPC;
	return !f->error;
}

static void append(struct trace_file *f, uint64_t ns, enum rank rank, const struct message *packet)
{
	if (!add_bytes(f, packet->len) ||
	    !trace_add_room(&f->entries, f->nr, sizeof(*f->entries))) {
		f->error = -ENOMEM;
		return;
	}
	memcpy(f->bytes + f->len, packet->bytes, packet->len);
	f->entries[f->nr++] = (struct trace_entry) {
		.ns = ns, .at = f->len, .len = (uint32_t)packet->len, .rank = rank,
	};
	f->len += packet->len;
}

/* Put a packet with a payload into the message Trace. */
static void wrap(struct message *trace, uint64_t ns, uint32_t field, const struct message *payload)
{
	struct message packet;

	clear(&packet);
	if (ns) {
		put_uint(&packet, PACKET_TIMESTAMP, ns);
		put_uint(&packet, PACKET_CLOCK, TRACE_MONOTONIC);
	}
	put_uint(&packet, PACKET_SEQUENCE, SEQUENCE);
	put_message(&packet, field, payload);
	put_message(trace, TRACE_PACKET, &packet);
}

static void put_clock(struct message *snapshot, uint32_t id, uint64_t ns)
{
	struct message clock;

	clear(&clock);
	put_uint(&clock, CLOCK_ID, id);
	put_uint(&clock, CLOCK_TIMESTAMP, ns);
	put_message(snapshot, SNAPSHOT_CLOCKS, &clock);
}

void trace_file_init(struct trace_file *f, const struct trace_clocks *clocks, size_t max)
{
	struct message snapshot, trace;

	clear(&snapshot);
	clear(&trace);
	memset(f, 0, sizeof(*f));
	f->max = max;
	put_clock(&snapshot, TRACE_MONOTONIC, clocks->monotonic);
	put_clock(&snapshot, TRACE_BOOTTIME, clocks->boottime);
	put_clock(&snapshot, TRACE_REALTIME, clocks->realtime);
	put_uint(&snapshot, SNAPSHOT_PRIMARY, TRACE_MONOTONIC);
	wrap(&trace, 0, PACKET_CLOCK_SNAPSHOT, &snapshot);
	if (fits(f, trace.len))
		append(f, 0, RANK_CLOCKS, &trace);
}

void trace_file_free(struct trace_file *f)
{
	free(f->bytes);
	free(f->entries);
	memset(f, 0, sizeof(*f));
}

uint64_t trace_file_track(struct trace_file *f, const struct trace_track *track)
{
	struct message descriptor, trace, counter;

	clear(&descriptor);
	clear(&trace);
	clear(&counter);
	put_uint(&descriptor, DESCRIPTOR_UUID, f->tracks + 1);
	put_text(&descriptor, DESCRIPTOR_NAME, track->name);
	if (track->parent)
		put_uint(&descriptor, DESCRIPTOR_PARENT, track->parent);
	if (track->unit) {
		put_text(&counter, COUNTER_UNIT_NAME, track->unit);
		put_message(&descriptor, DESCRIPTOR_COUNTER, &counter);
	}
	put_uint(&descriptor, DESCRIPTOR_ORDERING, ORDERING_EXPLICIT);
	put_uint(&descriptor, DESCRIPTOR_RANK, track->rank);
	if (track->description)
		put_text(&descriptor, DESCRIPTOR_DESCRIPTION, track->description);
	/* two VMs may have one name */
	put_uint(&descriptor, DESCRIPTOR_MERGE, MERGE_NONE);
	wrap(&trace, 0, PACKET_DESCRIPTOR, &descriptor);
	if (fits(f, trace.len))
		append(f, 0, RANK_TRACK, &trace);
	return ++f->tracks;
}

static void put_arg(struct message *event, const struct trace_arg *arg)
{
	struct message m;

	clear(&m);
	put_text(&m, ARG_NAME, arg->name);
	if (arg->text)
		put_text(&m, ARG_TEXT, arg->text);
	else
		put_uint(&m, ARG_UINT, arg->value);
	put_message(event, EVENT_ARG, &m);
}

static void begin_event(struct message *event, uint64_t track, enum trace_type type)
{
	clear(event);
	put_uint(event, EVENT_TYPE, type);
	put_uint(event, EVENT_TRACK, track);
}

static void named_event(struct message *event, uint64_t track, enum trace_type type,
			const char *name, const struct trace_arg *args)
{
	begin_event(event, track, type);
	put_text(event, EVENT_NAME, name);
	for (; args && args->name; args++)
		put_arg(event, args);
}

void trace_file_slice(struct trace_file *f, uint64_t track, const char *name, uint64_t begin_ns,
		      uint64_t end_ns, const struct trace_arg *args)
{
	struct message event, begin, end;

	clear(&begin);
	clear(&end);
	if (begin_ns >= end_ns)
		return;
	named_event(&event, track, TRACE_BEGIN, name, args);
	wrap(&begin, begin_ns, PACKET_EVENT, &event);
	begin_event(&event, track, TRACE_END);
	wrap(&end, end_ns, PACKET_EVENT, &event);
	if (!fits(f, begin.len + end.len))
		return;
	append(f, begin_ns, RANK_EVENT, &begin);
	append(f, end_ns, RANK_END, &end);
}

void trace_file_instant(struct trace_file *f, uint64_t track, const char *name, uint64_t ns,
			const struct trace_arg *args)
{
	struct message event, trace;

	clear(&trace);
	named_event(&event, track, TRACE_INSTANT, name, args);
	wrap(&trace, ns, PACKET_EVENT, &event);
	if (fits(f, trace.len))
		append(f, ns, RANK_EVENT, &trace);
}

void trace_file_counter(struct trace_file *f, uint64_t track, uint64_t ns, double value)
{
	struct message event, trace;

	clear(&trace);
	begin_event(&event, track, TRACE_COUNTER);
	put_double(&event, EVENT_VALUE, value);
	wrap(&trace, ns, PACKET_EVENT, &event);
	if (fits(f, trace.len))
		append(f, ns, RANK_EVENT, &trace);
}

/* ---- the file ---- */

static int by_time(const void *a, const void *b)
{
	const struct trace_entry *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

void trace_file_sort(struct trace_file *f)
{
	if (f->nr)
		qsort(f->entries, f->nr, sizeof(*f->entries), by_time);
}

int trace_file_write(const void *file, FILE *to)
{
	const struct trace_file *f = file;

	for (size_t i = 0; i < f->nr; i++)
		if (fwrite(f->bytes + f->entries[i].at, 1, f->entries[i].len, to) !=
		    f->entries[i].len)
			return -1;
	return 0;
}
