/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recordings in Perfetto's format: a message Trace of TracePackets, with the field numbers that
 * Perfetto publishes. trace_file.c builds one in memory and writes it, trace_read.c reads one.
 *
 * All packets are of one sequence. A ClockSnapshot comes first, then the track descriptors, then
 * the events in the order of time. Each event names its clock, CLOCK_MONOTONIC. Slices are
 * written whole, so that each begin has its end.
 */
#ifndef GPUCTL_TRACE_FILE_H
#define GPUCTL_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define TRACE_TEXT	512	/* of a name or a text, bytes; longer ones are cut off */
/* Size of a recording, bytes. */
#define TRACE_SIZE_MIN	(64ULL << 10)
#define TRACE_SIZE_DEFAULT	(64ULL << 20)
#define TRACE_SIZE_MAX	(1ULL << 30)

/* Field numbers of Perfetto's messages. */
enum {
	TRACE_PACKET = 1,

	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_CLOCK = 58,
	PACKET_DESCRIPTOR = 60,

	SNAPSHOT_CLOCKS = 1,
	SNAPSHOT_PRIMARY = 2,
	CLOCK_ID = 1,
	CLOCK_TIMESTAMP = 2,

	DESCRIPTOR_UUID = 1,
	DESCRIPTOR_NAME = 2,
	DESCRIPTOR_PARENT = 5,
	DESCRIPTOR_COUNTER = 8,
	DESCRIPTOR_ORDERING = 11,
	DESCRIPTOR_RANK = 12,
	DESCRIPTOR_DESCRIPTION = 14,
	DESCRIPTOR_MERGE = 15,
	COUNTER_UNIT_NAME = 6,

	EVENT_ARG = 4,
	EVENT_TYPE = 9,
	EVENT_TRACK = 11,
	EVENT_NAME = 23,
	EVENT_VALUE = 44,
	ARG_UINT = 3,
	ARG_TEXT = 6,
	ARG_NAME = 10,
};

/* Wire types of protobuf. */
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

/* Perfetto's ids of clocks. */
enum { TRACE_REALTIME = 1, TRACE_MONOTONIC = 3, TRACE_BOOTTIME = 6 };

/* Values of TrackEvent.Type. */
enum trace_type { TRACE_BEGIN = 1, TRACE_END = 2, TRACE_INSTANT = 3, TRACE_COUNTER = 4 };

/**
 * struct trace_clocks - one moment by three clocks, ns
 * @monotonic: CLOCK_MONOTONIC, the clock of all events
 * @boottime: CLOCK_BOOTTIME
 * @realtime: CLOCK_REALTIME
 */
struct trace_clocks {
	uint64_t monotonic;
	uint64_t boottime;
	uint64_t realtime;
};

/**
 * struct trace_arg - an argument of an event, which Perfetto shows beside it
 * @name: its name, NULL behind the last argument
 * @text: its value, NULL if it is a number
 * @value: the number
 */
struct trace_arg {
	const char *name;
	const char *text;
	uint64_t value;
};

/**
 * struct trace_track - how a track is described
 * @parent: id of the track that it is below, 0 for none
 * @name: name
 * @unit: unit of its values; NULL if it has slices and instants
 * @description: what it shows, NULL for nothing
 * @rank: place among the tracks below @parent
 */
struct trace_track {
	uint64_t parent;
	const char *name;
	const char *unit;
	const char *description;
	uint32_t rank;
};

struct trace_entry;

/**
 * struct trace_file - a recording that is being made
 * @bytes: encoded packets
 * @len: bytes of them
 * @room: bytes allocated
 * @entries: time and place of each packet
 * @nr: number of packets
 * @tracks: number of tracks; their ids are 1 to @tracks
 * @max: size that the file may have, bytes
 * @reserved: bytes that are kept for packets that must still be written
 * @error: 0; -ENOSPC, the next packet does not fit; -ENOMEM
 */
struct trace_file {
	uint8_t *bytes;
	size_t len;
	size_t room;
	struct trace_entry *entries;
	size_t nr;
	uint64_t tracks;
	size_t max;
	size_t reserved;
	int error;
};

/**
 * trace_add_room() - make room for one more element of an array
 * @array: pointer to the array, which the caller must free
 * @nr: elements in it; the room is the next power of two
 * @size: size of an element, bytes
 *
 * Return: false without memory: the array is as before.
 */
bool trace_add_room(void *array, size_t nr, size_t size);

/* Begin a recording with its clocks. */
void trace_file_init(struct trace_file *f, const struct trace_clocks *clocks, size_t max);
void trace_file_free(struct trace_file *f);

/*
 * The following functions do nothing once @f->error is set. They set it to -ENOSPC instead of
 * exceeding @max less @reserved.
 */

/* Add a track. Returns its id. */
uint64_t trace_file_track(struct trace_file *f, const struct trace_track *track);

/* Add a slice, if it is not empty. @args: of it; NULL for none */
void trace_file_slice(struct trace_file *f, uint64_t track, const char *name, uint64_t begin_ns,
		      uint64_t end_ns, const struct trace_arg *args);

/* Add an instant. @args: of it; NULL for none */
void trace_file_instant(struct trace_file *f, uint64_t track, const char *name, uint64_t ns,
			const struct trace_arg *args);

/* Add a value of a track with a unit. */
void trace_file_counter(struct trace_file *f, uint64_t track, uint64_t ns, double value);

/* Put the packets in the order of time. */
void trace_file_sort(struct trace_file *f);

/* Write the packets. @file: struct trace_file; for replace_file(). Returns 0 or -1, with errno. */
int trace_file_write(const void *file, FILE *to);

#endif /* GPUCTL_TRACE_FILE_H */
