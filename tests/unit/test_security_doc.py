#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Documentation/security.rst names tests that exist.

A test is named as ``GROUP/PROGRAM:FUNCTION``; what fuzzes has no function.
"""

import os
import re
import sys

import pytap

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
GROUPS = ("kselftest", "unit", "fuzz", "static", "e2e", "device", "long")
# What runs a function as a test, in each kind of program.
RUNS = {
    ".c": r"^TEST(?:_F|_F_TIMEOUT|_F_SIGNAL|_SIGNAL)?\((?:\w+, )?{0}(?:, \w+)?\)|"
          r"tap_run(?:_within)?\({0}, ",
    ".sh": r"^(?:behaves|check) .* {0}\b",
    ".py": r"^result\(.*\b{0}\(\)|^\s+\({0}, \"",
}


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


DOC = read("Documentation/security.rst")


def names(text):
    """Names of tests in a text, as (group, program, function or None)."""
    found = re.findall(r"``(" + "|".join(GROUPS) + r")/([\w.-]+)(?::(\w+))?``", text)
    return [(group, program, function or None) for group, program, function in found]


def problem(group, program, function):
    """Return why there is no such test, or None."""
    for suffix in ("", ".c"):
        path = f"tests/{group}/{program}{suffix}"
        if os.path.isfile(os.path.join(TOP, path)):
            break
    else:
        return f"{group}/{program}: no such program"
    if group == "fuzz":
        targets = re.search(r"^TARGETS := ((?:.*\\\n)*.*)", read("tests/fuzz/Makefile"),
                            flags=re.M)
        return None if program in targets.group(1).split() else f"{program}: no target"
    # Programs that do anything at random have no functions.
    if not function and (group == "device" or program.startswith("test_fuzz")):
        return None
    if not function:
        return f"{group}/{program}: no function is named"
    runs = RUNS[os.path.splitext(path)[1]].format(function)
    if not re.search(runs, read(path), flags=re.M):
        return f"{path} runs no {function}"
    return None


def rows(title):
    """Rows of the table under a heading, as lists of cells."""
    text = re.search(rf"^{title}\n=+\n(.*?)(?=^\S[^\n]*\n=+\n)", DOC, flags=re.M | re.S)
    table = re.split(r"\n\n(?=\S)", text.group(1).strip())[0]
    return [re.split(r"^     - ", "     - " + row, flags=re.M)[1:]
            for row in re.split(r"^   \* - ", table, flags=re.M)[2:]]


def named_tests_exist():
    found = names(DOC)
    assert len(found) > 50, f"only {len(found)} names"
    problems = [p for p in (problem(*name) for name in found) if p]
    assert not problems, "\n".join(problems)


def each_class_has_a_test():
    classes = rows("Classes of mistakes")
    assert len(classes) > 12, f"only {len(classes)} classes"
    for row in classes:
        assert len(row) == 3, row
        assert names(row[2]) or row[2].strip() == "no test", row[0]


def names_have_the_form():
    """A test that is named in another form would escape the check."""
    loose = [word for word in re.findall(r"``([^`]*)``", DOC)
             if re.match(r"(?:test_|fuzz_|(?:" + "|".join(GROUPS) + ")/)", word)]
    strict = [f"{g}/{p}" + (f":{f}" if f else "") for g, p, f in names(DOC)]
    assert loose == strict, set(loose) ^ set(strict)


def absent_tests_are_noticed():
    for name in (("kselftest", "test_netlink", "no_such_test"),
                 ("kselftest", "test_netlink", None),
                 ("kselftest", "test_nothing", "garbage_is_refused"),
                 ("kselftest", "test_netlink", "garbage"),
                 ("kselftest", "test_gpuctl.sh", "capability"),
                 ("unit", "test_vring", "loop"),
                 ("unit", "test_netlink_spec.py", "upper"),
                 ("fuzz", "fuzz_nothing", None), ("fuzz", "fuzz", None)):
        assert problem(*name), name


sys.exit(pytap.run([
    (named_tests_exist, "each test that the page names exists"),
    (each_class_has_a_test, "each class of mistakes names a test, or says that it has none"),
    (names_have_the_form, "names of tests have the form that is checked"),
    (absent_tests_are_noticed, "a name without a test is noticed"),
]))
