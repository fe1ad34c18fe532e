# SPDX-License-Identifier: GPL-2.0-only
"""Recordings for Perfetto, read without gpuctl's code, and the rules that they must keep.

The field numbers are those that Perfetto publishes; tests/unit/data/perfetto.proto has them as a
description for protoc. The rules are those of Perfetto's trace processor, which counts a breach
as an error of the import and drops the packet: an event without a sequence, a time or a
track that is described (track_event_tokenizer), a slice that ends without a begin or overlaps
another one (slice_tracker), a time by a clock that no snapshot has (clock_tracker).
"""

import collections
import struct
import sys

MONOTONIC = 3
BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
DEPTH = 512     # of slices in slices, at most

Track = collections.namedtuple("Track", "uuid parent name counter")
Event = collections.namedtuple("Event", "ns track type name args value")


class Broken(Exception):
    """A rule is broken."""


def varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Broken("a number is cut off or too long")
        byte = data[at]
        at += 1
        value |= (byte & 0x7f) << shift
        if not byte & 0x80:
            return value, at
        shift += 7


def fields(data):
    """Yield the fields of a message: number and value."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if not number:
            raise Broken("a field has the number 0")
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
        elif wire in (1, 5):
            length = 8 if wire == 1 else 4
            value, at = data[at:at + length], at + length
        else:
            raise Broken(f"a field has the wire type {wire}")
        if at > len(data):
            raise Broken("a field is cut off")
        yield number, value


def only(data, number, default=None):
    """The last value of a field."""
    for found, value in fields(data):
        if found == number:
            default = value
    return default


def text(value):
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise Broken("a text is not UTF-8") from error


class Trace:
    """A recording that keeps the rules: tracks by their ids, and events in their order."""

    def __init__(self, data):
        self.clocks, self.tracks, self.events = {}, {}, []
        self.last, self.stacks = {}, collections.defaultdict(list)
        for number, packet in fields(data):
            if number != 1:
                raise Broken(f"the trace has a field {number}")
            self.packet(packet)
        for uuid, stack in self.stacks.items():
            if stack:
                raise Broken(f"slice {stack[-1]} on track {uuid} does not end")
        if not self.events:
            raise Broken("there are no events")
        for track in self.tracks.values():
            self.path(track.uuid)

    def packet(self, packet):
        found = dict(fields(packet))
        sequence = found.get(10, 0)
        if not sequence:
            raise Broken("a packet has no sequence")
        if 6 in found:
            self.snapshot(found[6])
        if 60 in found:
            self.descriptor(found[60])
        if 11 in found:
            self.event(found, sequence)

    def snapshot(self, data):
        for number, clock in fields(data):
            if number == 1:
                name = only(clock, 1)
                if name in self.clocks:
                    raise Broken(f"two snapshots of clock {name}")
                self.clocks[name] = only(clock, 2, 0)
        if only(data, 2) != MONOTONIC:
            raise Broken("the trace's clock is not CLOCK_MONOTONIC")

    def descriptor(self, data):
        found = dict(fields(data))
        uuid = found.get(1, 0)
        if not uuid:
            raise Broken("a track has no id")
        if uuid in self.tracks:
            raise Broken(f"two tracks have the id {uuid}")
        if not found.get(2):
            raise Broken(f"track {uuid} has no name")
        self.tracks[uuid] = Track(uuid, found.get(5, 0), text(found[2]), 8 in found)

    def event(self, found, sequence):
        body = found[11]
        ns, clock = found.get(8, 0), found.get(58, 0)
        kind, uuid = only(body, 9, 0), only(body, 11, 0)
        track, name = self.tracks.get(uuid), only(body, 23)
        if not ns or clock not in self.clocks:
            raise Broken("an event has no time by a clock of the snapshot")
        if clock != MONOTONIC:
            raise Broken("an event's clock is not CLOCK_MONOTONIC")
        if ns < self.last.get(sequence, 0):
            raise Broken("time goes back")
        if not track:
            raise Broken(f"an event is on track {uuid}, which was not described before")
        if kind not in (BEGIN, END, INSTANT, COUNTER):
            raise Broken(f"an event is of type {kind}")
        if track.counter != (kind == COUNTER):
            raise Broken(f"an event of type {kind} is on track {track.name}")
        if kind in (BEGIN, INSTANT) and not name:
            raise Broken("an event has no name")
        value = only(body, 44)
        if (kind == COUNTER) != (value is not None):
            raise Broken("a value is missing, or is where none belongs")
        self.last[sequence] = ns
        self.nest(uuid, kind, name)
        args = {text(only(arg, 10)): only(arg, 3) if only(arg, 6) is None else text(only(arg, 6))
                for number, arg in fields(body) if number == 4}
        self.events.append(Event(ns, uuid, kind, text(name) if name else None, args,
                                 value and struct.unpack("<d", value)[0]))

    def nest(self, uuid, kind, name):
        stack = self.stacks[uuid]
        if kind == BEGIN:
            stack.append(name)
            if len(stack) > DEPTH:
                raise Broken("slices are too deep")
        elif kind == END:
            if not stack:
                raise Broken("a slice ends that has not begun")
            stack.pop()

    def path(self, uuid):
        """Names of a track and those above it, the highest first."""
        names = []
        while uuid:
            track = self.tracks.get(uuid)
            if not track:
                raise Broken(f"track {uuid} has a track below it, and is not described")
            if len(names) > 64:
                raise Broken("tracks are below themselves")
            names.insert(0, track.name)
            uuid = track.parent
        return "/".join(names)

    def slices(self, path):
        """Slices of the track with a path: begin and end, ns, name, and arguments."""
        found, begin = [], None
        for event in self.events:
            if self.path(event.track) != path:
                continue
            if event.type == BEGIN:
                if begin:
                    raise Broken(f"slices of {path} overlap")
                begin = event
            elif event.type == END:
                found.append((begin.ns, event.ns, begin.name, begin.args))
                begin = None
        return found


if __name__ == "__main__":
    # For shell tests: print each track with the number of its events.
    try:
        with open(sys.argv[1], "rb") as file:
            trace = Trace(file.read())
    except Broken as why:
        sys.exit(f"{sys.argv[1]}: {why}")
    count = collections.Counter(event.track for event in trace.events if event.type != END)
    for uid in trace.tracks:
        print(f"{count[uid]}\t{trace.path(uid)}")
