# SPDX-License-Identifier: GPL-2.0-only
"""TAP for tests in Python.

A test is a function without arguments that says what must be so with assert.
It fails if an assertion fails, if it raises anything, and if it executes no
assert statement of its file: such a test checks nothing.  It raises Skip where a prerequisite is
missing.
"""
import ast
import sys
import traceback


class Skip(Exception):
    """The test cannot run here, and the reason."""


def _assertions(path):
    """Lines of a file on which an assert statement begins."""
    with open(path, encoding="utf-8") as f:
        return {node.lineno for node in ast.walk(ast.parse(f.read()))
                if isinstance(node, ast.Assert)}


class _Watch:
    """Counts the assert statements of a file that are executed."""

    def __init__(self, path):
        self.path = path
        self.lines = _assertions(path)
        self.executed = 0

    def _line(self, frame, event, _):
        if event == "line" and frame.f_lineno in self.lines:
            self.executed += 1
        return self._line

    def call(self, frame, _event, _arg):
        return self._line if frame.f_code.co_filename == self.path else None


def run(tests):
    """Run (function, behaviour) pairs; returns main()'s exit status."""
    failed = 0
    print("TAP version 13")
    print(f"1..{len(tests)}")
    for i, (test, what) in enumerate(tests, 1):
        watch = _Watch(test.__code__.co_filename)
        try:
            sys.settrace(watch.call)
            try:
                test()
            finally:
                sys.settrace(None)
            if not watch.executed:
                raise AssertionError("no assertion was executed")
            print(f"ok {i} - {what}")
        except Skip as why:
            print(f"ok {i} - {what} # SKIP {why}")
        except Exception:  # pylint: disable=broad-except
            failed = 1
            for line in traceback.format_exc().splitlines():
                print("# " + line)
            print(f"not ok {i} - {what}")
    if not tests:
        print("# there are no tests")
        return 1
    return failed
