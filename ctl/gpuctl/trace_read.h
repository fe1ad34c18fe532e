/* SPDX-License-Identifier: GPL-2.0-only */
/* Recordings that trace_file.h describes, read from a file that is not trusted. */
#ifndef GPUCTL_TRACE_READ_H
#define GPUCTL_TRACE_READ_H

#include "trace_file.h"

#define TRACE_NONE	SIZE_MAX	/* no track */
#define TRACE_DEPTH	16		/* of tracks below each other, at most */
/*
 * Events, at most: 32 bytes each in a recording of TRACE_SIZE_MAX, less than gpuctl trace writes
 * for one. A test may have less room.
 */
#ifndef TRACE_EVENTS_MAX
#define TRACE_EVENTS_MAX	(1u << 25)
#endif

/* Text in the file: any bytes, without a NUL at its end. */
struct trace_text {
	const char *at;
	size_t len;
};

/**
 * struct read_track - a track of a recording
 * @uuid: its id in the file
 * @parent_uuid: id of the track that it is below, 0 for none
 * @parent: index of that track, TRACE_NONE for none
 * @name: its name
 * @description: what it shows, or of a vGPU the UUID
 * @rank: place among the tracks below @parent
 * @counter: it has values
 */
struct read_track {
	uint64_t uuid;
	uint64_t parent_uuid;
	size_t parent;
	struct trace_text name;
	struct trace_text description;
	uint64_t rank;
	bool counter;
};

/**
 * struct read_event - an event of a recording
 * @ns: its time; of a slice, its begin
 * @end_ns: of a slice: its end
 * @track: index of its track
 * @type: TRACE_BEGIN: a slice; TRACE_INSTANT, TRACE_COUNTER
 * @name: its name
 * @value: of a counter
 * @body: the encoded event, for trace_arg_uint() and trace_arg_text()
 */
struct read_event {
	uint64_t ns;
	uint64_t end_ns;
	size_t track;
	enum trace_type type;
	struct trace_text name;
	double value;
	struct trace_text body;
};

/**
 * struct trace_reading - a recording that was read
 * @tracks: tracks, in the order of their ids
 * @nr_tracks: number of tracks
 * @events: slices, instants and values, in the order of their (begin) times
 * @nr_events: number of events
 * @clocks: clocks at the begin; 0 where unknown
 */
struct trace_reading {
	struct read_track *tracks;
	size_t nr_tracks;
	struct read_event *events;
	size_t nr_events;
	struct trace_clocks clocks;
};

/**
 * trace_read() - read a recording
 * @r: result, which points into @data
 * @data: the file
 * @size: its size, bytes
 * @why: for an error, a sentence
 * @len: size of @why, bytes
 *
 * The file must be as trace_file.c writes it: each slice of a track ends before the next one
 * begins, each event has a time by CLOCK_MONOTONIC and a track, and times do not go back. The
 * result takes 72 bytes an event.
 *
 * Return: 0; -EINVAL, the file is damaged, or no recording; -E2BIG, it has more than
 * TRACE_EVENTS_MAX events; -ENOMEM.
 */
int trace_read(struct trace_reading *r, const void *data, size_t size, char *why, size_t len);
void trace_read_free(struct trace_reading *r);

/* Return the track with an id, TRACE_NONE if there is none. */
size_t trace_track_by_uuid(const struct trace_reading *r, uint64_t uuid);

/* Return the track below @parent that has a name, TRACE_NONE if there is none. */
size_t trace_track_named(const struct trace_reading *r, size_t parent, const char *name);

bool trace_text_is(const struct trace_text *text, const char *is);

/* Return a numeric argument of an event, 0 if it has none. */
uint64_t trace_arg_uint(const struct read_event *e, const char *name);

/* Return an argument that is a text, empty if there is none. */
struct trace_text trace_arg_text(const struct read_event *e, const char *name);

#endif /* GPUCTL_TRACE_READ_H */
