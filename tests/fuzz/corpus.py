#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Stored inputs of a fuzz target: one file of text with an input a line, in hex.

    corpus.py unpack FILE DIR     write each input to a file of its own
    corpus.py pack FILE DIR       the other way; '#' lines at the top of FILE stay

A file of text per target, because an input is some ten to some hundred bytes of
binary: a hundred files of that size each would be a nuisance to list and to
review, and a change of one input is a change of one line.  Lines are in the order
of length, then of content, so that the same inputs always give the same file.  An
input's name is its line number and the beginning of its SHA-1.
"""
import hashlib
import os
import sys


def unpack(path, directory):
    with open(path, encoding="ascii") as f:
        for number, line in enumerate(f, 1):
            if line.startswith("#"):
                continue
            try:
                data = bytes.fromhex(line)
            except ValueError:
                sys.exit(f"{path}:{number}: not a line of hexadecimal digits")
            name = f"line-{number:03d}-{hashlib.sha1(data).hexdigest()[:8]}"
            with open(os.path.join(directory, name), "wb") as out:
                out.write(data)


def pack(path, directory):
    comments = []
    if os.path.exists(path):
        with open(path, encoding="ascii") as f:
            comments = [line for line in f if line.startswith("#")]
    inputs = set()
    for name in os.listdir(directory):
        with open(os.path.join(directory, name), "rb") as f:
            inputs.add(f.read())
    inputs.discard(b"")
    with open(path + ".new", "w", encoding="ascii") as f:
        f.writelines(comments)
        for data in sorted(inputs, key=lambda data: (len(data), data)):
            f.write(data.hex() + "\n")
    os.rename(path + ".new", path)


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("unpack", "pack"):
        sys.exit(__doc__)
    (unpack if sys.argv[1] == "unpack" else pack)(*sys.argv[2:])
