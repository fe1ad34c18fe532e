# SPDX-License-Identifier: GPL-2.0-only
"""Common parts of the benches' reports: read results, merge, print tables."""
import glob
import json
import os
import sys


class ReportError(Exception):
    pass


def read_json(path):
    """Return the content of a JSON file, or None if there is no file."""
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return None
    except ValueError as e:
        raise ReportError(f"{path} is not JSON: {e}") from e


def read_records(path):
    """Return (part, record) of each line; an incomplete last line is dropped."""
    found = []
    try:
        with open(path, encoding="utf-8") as f:
            lines = f.readlines()
    except FileNotFoundError:
        return found
    for i, line in enumerate(lines):
        try:
            record = json.loads(line)
            found.append((record.pop("part"), record))
        except (ValueError, KeyError) as e:
            if i == len(lines) - 1 and not line.endswith("\n"):
                break
            raise ReportError(f"{path}:{i + 1} is not a result: {e}") from e
    return found


def read_runs(directory):
    """Yield name, machine and records of each NAME.jsonl.

    The machine is what NAME.json says, with the conditions that the run recorded.
    """
    for path in sorted(glob.glob(os.path.join(directory, "*.jsonl"))):
        machine = read_json(path[:-1]) or {}
        records = []
        for part, record in read_records(path):
            if part == "conditions":
                machine.update(record)
            else:
                records.append((part, record))
        yield os.path.basename(path)[:-len(".jsonl")], machine, records


def table(title, header, rows):
    """Print a table: the first column to the left, the others to the right."""
    if not rows:
        return
    print(title)
    cells = [header] + [[str(c) for c in row] for row in rows]
    width = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for row in cells:
        line = [c.ljust(w) if i == 0 else c.rjust(w)
                for i, (c, w) in enumerate(zip(row, width))]
        print("  " + "  ".join(line).rstrip())
    print()


def number(value, digits=1):
    return "-" if value is None else f"{value:.{digits}f}"


def print_took(out):
    if out.get("took"):
        print("Took: " + ", ".join(f"{k} {v['seconds']:.0f} s"
                                   for k, v in out["took"].items()))


def run(argv, doc, collect, merge, print_all, failed):
    """Write the report of a bench, print it, and return the exit status.

    @collect: the results of a directory as one object
    @merge: old object and new one, for --add
    @print_all: print an object as tables
    @failed: whether an object has a failure
    """
    add = "--add" in argv
    args = [a for a in argv if a != "--add"]
    if len(args) != 2:
        print(doc.strip(), file=sys.stderr)
        return 2
    try:
        new = collect(args[0])
        old = (read_json(args[1]) or {}) if add else {}
    except (ReportError, OSError) as e:
        print(f"report: {e}", file=sys.stderr)
        return 1
    out = merge(old, new)
    with open(args[1] + ".tmp", "w", encoding="utf-8") as f:
        json.dump(out, f, indent=1)
        f.write("\n")
    os.replace(args[1] + ".tmp", args[1])
    print_all(out)
    return 1 if failed(out) else 0
