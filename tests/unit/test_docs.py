#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The pages below Documentation/ have headings with their text.

A heading whose line is too short, or a line under no heading, is what a conflict that
was resolved badly leaves.
"""

import glob
import os
import re
import sys

import pytap

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LINE = re.compile(r"([=\-~^\"'`+*#])\1{3,}$")


def problems(text):
    """Return faults of the headings of a page, by line number; and their number."""
    lines = ["", *text.splitlines(), ""]
    found, headings = [], 0
    for i, line in enumerate(lines):
        if not LINE.match(line):
            continue
        title, above, below = lines[i - 1], lines[i - 2], lines[i + 1]
        if LINE.match(above) and title and above == line:
            continue                    # the line below a title that has one above, too
        if not title and below and i + 2 < len(lines) and lines[i + 2] == line:
            title, above = below, ""    # the line above
        headings += 1
        if not title or title[0].isspace() or above:
            found.append(f"{i}: a line under no heading")
        elif len(line) < len(title):
            found.append(f"{i}: the line is shorter than {title!r}")
    return found, headings


def pages_have_headings():
    pages = glob.glob(os.path.join(TOP, "Documentation", "**", "*.rst"), recursive=True)
    assert len(pages) > 10, f"only {len(pages)} pages"
    bad = []
    for page in [*pages, os.path.join(TOP, "README.rst")]:
        with open(page, encoding="utf-8") as file:
            found, headings = problems(file.read())
        if not headings:
            found = ["no heading"]
        bad += [f"{os.path.relpath(page, TOP)}:{problem}" for problem in found]
    assert not bad, "\n".join(bad)


def mistakes_are_noticed():
    for text in ("Title\n====\n\ntext\n", "- item\n  more.\n=======\ntext\n",
                 "Text.\n\n=======\n\nText.\n", "One\nTwo\n=======\n"):
        assert problems(text)[0], text
    for text in ("Title\n=====\n\ntext\n", "=====\nTitle\n=====\n\ntext\n",
                 "====  ====\none   two\n====  ====\n", "::\n\n   =====\n"):
        assert not problems(text)[0], text


sys.exit(pytap.run([
    (pages_have_headings, "each heading has a name and a line that is as long"),
    (mistakes_are_noticed, "a heading that is damaged is noticed"),
]))
