// SPDX-License-Identifier: GPL-2.0-only
/* Reads recordings. Pure: the input is memory. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "trace_read.h"

#define TRACKS_MAX	200000

/* A message that is being decoded. */
struct cursor {
	const uint8_t *at;
	const uint8_t *end;
};

/* A field of a message. */
struct field {
	uint32_t number;
	uint32_t wire;
	uint64_t value;		/* of a varint or a fixed number */
	struct trace_text bytes;
};

/**
 * struct reader - a file that is being read
 * @r: result
 * @data: the file
 * @last_ns: time of the last event
 * @open: for each track, index of the slice that has not ended, plus 1; 0 for none
 * @sorted: the tracks are complete
 * @why: for an error, a sentence
 * @len: size of @why, bytes
 */
struct reader {
	struct trace_reading *r;
	const uint8_t *data;
	uint64_t last_ns;
	size_t *open;
	bool sorted;
	char *why;
	size_t len;
};

static int __attribute__((format(printf, 3, 4)))
refuse(struct reader *reader, const uint8_t *at, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(reader->why, reader->len, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < reader->len)
		snprintf(reader->why + n, reader->len - (size_t)n,
			 ", at byte %zu: the file is damaged, or not from gpuctl trace",
			 (size_t)(at - reader->data));
	return -EINVAL;
}

/* ---- decoding ---- */

static bool get_varint(struct cursor *c, uint64_t *value)
{
	*value = 0;
	for (unsigned int shift = 0; shift < 64 && c->at < c->end; shift += 7) {
		uint8_t byte = *c->at++;

		if (shift == 63 && byte > 1)
			return false;
		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static bool get_fixed(struct cursor *c, unsigned int bytes, uint64_t *value)
{
	if ((size_t)(c->end - c->at) < bytes)
		return false;
	*value = 0;
	for (unsigned int i = 0; i < bytes; i++)
		*value |= (uint64_t)*c->at++ << 8 * i;
	return true;
}

/* Get the next field; false: the message is malformed. */
static bool get_field(struct cursor *c, struct field *f)
{
	uint64_t key, len;

	memset(f, 0, sizeof(*f));
	if (!get_varint(c, &key) || key >> 32 || !(key >> 3))
		return false;
	f->number = (uint32_t)(key >> 3);
	f->wire = key & 7;
	switch (f->wire) {
	case WIRE_VARINT:
		return get_varint(c, &f->value);
	case WIRE_FIXED64:
		return get_fixed(c, 8, &f->value);
	case WIRE_FIXED32:
		return get_fixed(c, 4, &f->value);
	case WIRE_BYTES:
		if (!get_varint(c, &len) || len > (uint64_t)(c->end - c->at))
			return false;
		f->bytes.at = (const char *)c->at;
		f->bytes.len = (size_t)len;
		c->at += len;
		return true;
	}
	return false;
}

static struct cursor inside(const struct trace_text *bytes)
{
	const uint8_t *at = (const uint8_t *)bytes->at;

	return (struct cursor) { at, bytes->len ? at + bytes->len : at };
}

/* ---- packets ---- */

static bool read_clock(const struct field *clock, struct trace_clocks *clocks)
{
	struct cursor c = inside(&clock->bytes);
	uint64_t id = 0, ns = 0;
	struct field f;

	while (c.at < c.end) {
		if (!get_field(&c, &f))
			return false;
		if (f.number == CLOCK_ID)
			id = f.value;
		else if (f.number == CLOCK_TIMESTAMP)
			ns = f.value;
	}
	if (id == TRACE_MONOTONIC)
		clocks->monotonic = ns;
	else if (id == TRACE_BOOTTIME)
		clocks->boottime = ns;
	else if (id == TRACE_REALTIME)
		clocks->realtime = ns;
	return true;
}

static int read_snapshot(struct reader *reader, struct cursor c)
{
	struct field f;

	while (c.at < c.end)
		if (!get_field(&c, &f) || (f.number == SNAPSHOT_CLOCKS &&
					   !read_clock(&f, &reader->r->clocks)))
			return refuse(reader, c.at, "the clocks are malformed");
	return 0;
}

static int read_descriptor(struct reader *reader, struct cursor c)
{
	struct trace_reading *r = reader->r;
	struct read_track track = { .parent = TRACE_NONE };
	const uint8_t *at = c.at;
	struct field f;

	if (reader->sorted)
		return refuse(reader, at, "a track is described after an event");
	while (c.at < c.end) {
		if (!get_field(&c, &f))
			return refuse(reader, c.at, "a track's description is malformed");
		switch (f.number) {
		case DESCRIPTOR_UUID:
			track.uuid = f.value;
			break;
		case DESCRIPTOR_PARENT:
			track.parent_uuid = f.value;
			break;
		case DESCRIPTOR_NAME:
			track.name = f.bytes;
			break;
		case DESCRIPTOR_DESCRIPTION:
			track.description = f.bytes;
			break;
		case DESCRIPTOR_RANK:
			track.rank = f.value;
			break;
		case DESCRIPTOR_COUNTER:
			track.counter = true;
			break;
		}
	}
	if (!track.uuid)
		return refuse(reader, at, "a track has no id");
	if (r->nr_tracks == TRACKS_MAX)
		return refuse(reader, at, "there are more than %d tracks", TRACKS_MAX);
	if (!trace_add_room(&r->tracks, r->nr_tracks, sizeof(*r->tracks)))
		return -ENOMEM;
	r->tracks[r->nr_tracks++] = track;
	return 0;
}

static int by_uuid(const void *a, const void *b)
{
	const struct read_track *x = a, *y = b;

	return x->uuid < y->uuid ? -1 : x->uuid > y->uuid;
}

static unsigned int depth(const struct trace_reading *r, size_t track)
{
	unsigned int n = 0;

	for (; track != TRACE_NONE && n <= TRACE_DEPTH; track = r->tracks[track].parent)
		n++;
	return n;
}

/* Find each track's parent, once all are known. */
static int sort_tracks(struct reader *reader, const uint8_t *at)
{
	struct trace_reading *r = reader->r;
	size_t i;

	reader->sorted = true;
	if (r->nr_tracks)
		qsort(r->tracks, r->nr_tracks, sizeof(*r->tracks), by_uuid);
	for (i = 0; i + 1 < r->nr_tracks; i++)
		if (r->tracks[i].uuid == r->tracks[i + 1].uuid)
			return refuse(reader, at, "two tracks have the id %llu",
				      (unsigned long long)r->tracks[i].uuid);
	for (i = 0; i < r->nr_tracks; i++) {
		struct read_track *track = &r->tracks[i];

		if (!track->parent_uuid)
			continue;
		track->parent = trace_track_by_uuid(r, track->parent_uuid);
		if (track->parent == TRACE_NONE)
			return refuse(reader, at, "track %llu is below a track that is not there",
				      (unsigned long long)track->uuid);
	}
	for (i = 0; i < r->nr_tracks; i++)
		if (depth(r, i) > TRACE_DEPTH)
			return refuse(reader, at, "tracks are more than %d levels deep",
				      TRACE_DEPTH);
	reader->open = calloc(r->nr_tracks + 1, sizeof(*reader->open));
	return reader->open ? 0 : -ENOMEM;
}

static bool read_event_fields(struct cursor c, struct read_event *e, uint64_t *track,
			      uint64_t *type)
{
	struct field f;

	while (c.at < c.end) {
		if (!get_field(&c, &f))
			return false;
		switch (f.number) {
		case EVENT_TYPE:
			*type = f.value;
			break;
		case EVENT_TRACK:
			*track = f.value;
			break;
		case EVENT_NAME:
			e->name = f.bytes;
			break;
		case EVENT_VALUE:
			memcpy(&e->value, &f.value, sizeof(e->value));
			break;
		}
	}
	return true;
}

/* Take an event whose fields are known. */
static int take_event(struct reader *reader, const uint8_t *at, const struct read_event *e)
{
	struct trace_reading *r = reader->r;
	size_t *open = &reader->open[e->track];
	bool is_value;

	if (e->type == TRACE_END) {
		if (!*open)
			return refuse(reader, at, "a slice ends that has not begun");
		r->events[*open - 1].end_ns = e->ns;
		*open = 0;
		return 0;
	}
	is_value = e->type == TRACE_COUNTER;
	if (r->tracks[e->track].counter != is_value)
		return refuse(reader, at, "an event is on a track of another type");
	if (is_value && !isfinite(e->value))
		return refuse(reader, at, "a value is not a number");
	if (r->nr_events == TRACE_EVENTS_MAX) {
		snprintf(reader->why, reader->len,
			 "the recording has more than %u events: record a shorter time, or fewer vGPUs with --vgpu",
			 TRACE_EVENTS_MAX);
		return -E2BIG;
	}
	if (!trace_add_room(&r->events, r->nr_events, sizeof(*r->events)))
		return -ENOMEM;
	r->events[r->nr_events++] = *e;
	if (e->type != TRACE_BEGIN)
		return 0;
	if (*open)
		return refuse(reader, at, "a slice begins before the one before it has ended");
	*open = r->nr_events;
	return 0;
}

static int read_event(struct reader *reader, const struct field *body, uint64_t ns, uint64_t clock)
{
	const uint8_t *at = (const uint8_t *)body->bytes.at;
	struct read_event e = { .ns = ns, .body = body->bytes };
	uint64_t track = 0, type = 0;
	int ret;

	ret = reader->sorted ? 0 : sort_tracks(reader, at);
	if (ret)
		return ret;
	if (!read_event_fields(inside(&body->bytes), &e, &track, &type))
		return refuse(reader, at, "an event is malformed");
	e.track = trace_track_by_uuid(reader->r, track);
	if (e.track == TRACE_NONE)
		return refuse(reader, at, "an event is on track %llu, which is not there",
			      (unsigned long long)track);
	if (!ns || clock != TRACE_MONOTONIC)
		return refuse(reader, at, "an event has no time by CLOCK_MONOTONIC");
	if (ns < reader->last_ns)
		return refuse(reader, at, "time goes back");
	if (type < TRACE_BEGIN || type > TRACE_COUNTER)
		return refuse(reader, at, "an event is of type %llu, which does not exist",
			      (unsigned long long)type);
	reader->last_ns = ns;
	e.type = (enum trace_type)type;
	return take_event(reader, at, &e);
}

static int read_packet(struct reader *reader, const struct field *packet)
{
	struct cursor c = inside(&packet->bytes);
	struct field f, payload = { 0 };
	uint64_t ns = 0, clock = 0;

	while (c.at < c.end) {
		if (!get_field(&c, &f))
			return refuse(reader, c.at, "a packet is malformed");
		switch (f.number) {
		case PACKET_TIMESTAMP:
			ns = f.value;
			break;
		case PACKET_CLOCK:
			clock = f.value;
			break;
		case PACKET_CLOCK_SNAPSHOT:
		case PACKET_DESCRIPTOR:
		case PACKET_EVENT:
			if (payload.number || f.wire != WIRE_BYTES)
				return refuse(reader, c.at, "a packet's content is malformed");
			payload = f;
			break;
		}
	}
	switch (payload.number) {
	case PACKET_CLOCK_SNAPSHOT:
		return read_snapshot(reader, inside(&payload.bytes));
	case PACKET_DESCRIPTOR:
		return read_descriptor(reader, inside(&payload.bytes));
	case PACKET_EVENT:
		return read_event(reader, &payload, ns, clock);
	}
	return 0;
}

static int read_packets(struct reader *reader, struct cursor c)
{
	struct field packet;
	const uint8_t *at;
	int ret;

	while (c.at < c.end) {
		at = c.at;
		if (!get_field(&c, &packet) || packet.number != TRACE_PACKET ||
		    packet.wire != WIRE_BYTES)
			return refuse(reader, at, "there is no packet");
		ret = read_packet(reader, &packet);
		if (ret)
			return ret;
	}
	if (!reader->sorted)
		return refuse(reader, c.at, "there are no events");
	for (size_t i = 0; i < reader->r->nr_tracks; i++)
		if (reader->open[i])
			return refuse(reader, c.at, "a slice does not end");
	return 0;
}

int trace_read(struct trace_reading *r, const void *data, size_t size, char *why, size_t len)
{
	struct reader reader = { .r = r, .data = data, .why = why, .len = len };
	struct trace_text all = { data, size };
	int ret;

	memset(r, 0, sizeof(*r));
	ret = read_packets(&reader, inside(&all));
	free(reader.open);
	if (ret == -ENOMEM)
		snprintf(why, len, "out of memory");
	if (ret)
		trace_read_free(r);
	return ret;
}

void trace_read_free(struct trace_reading *r)
{
	free(r->tracks);
	free(r->events);
	memset(r, 0, sizeof(*r));
}

/* ---- looking up ---- */

size_t trace_track_by_uuid(const struct trace_reading *r, uint64_t uuid)
{
	struct read_track key = { .uuid = uuid }, *found = NULL;

	if (r->nr_tracks)
		found = bsearch(&key, r->tracks, r->nr_tracks, sizeof(key), by_uuid);
	return found ? (size_t)(found - r->tracks) : TRACE_NONE;
}

bool trace_text_is(const struct trace_text *text, const char *is)
{
	return text->len == strlen(is) && (!text->len || !memcmp(text->at, is, text->len));
}

size_t trace_track_named(const struct trace_reading *r, size_t parent, const char *name)
{
	for (size_t i = 0; i < r->nr_tracks; i++)
		if (r->tracks[i].parent == parent && trace_text_is(&r->tracks[i].name, name))
			return i;
	return TRACE_NONE;
}

/* Get an argument. Its fields were not looked at before, and may be malformed. */
static struct field find_arg(const struct read_event *e, const char *name, uint32_t number)
{
	struct cursor c = inside(&e->body);
	struct field f;

	while (c.at < c.end && get_field(&c, &f)) {
		struct cursor in = inside(&f.bytes);
		struct field one, value = { 0 };
		bool is = false;

		if (f.number != EVENT_ARG || f.wire != WIRE_BYTES)
			continue;
		while (in.at < in.end && get_field(&in, &one)) {
			if (one.number == ARG_NAME)
				is = trace_text_is(&one.bytes, name);
			else if (one.number == number)
				value = one;
		}
		if (is)
			return value;
	}
	return (struct field) { 0 };
}

uint64_t trace_arg_uint(const struct read_event *e, const char *name)
{
	return find_arg(e, name, ARG_UINT).value;
}

struct trace_text trace_arg_text(const struct read_event *e, const char *name)
{
	return find_arg(e, name, ARG_TEXT).bytes;
}
