#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Check JSON against Documentation/mgpu.schema.json.

    tests/lib/json_schema.py OUTPUT
    tests/lib/json_schema.py OUTPUT FILE [OUTPUT FILE]...

OUTPUT is a name in the schema's $defs, such as vgpu_list; FILE, or standard input, has
one object per line.  Prints what is wrong; ends with 1 if anything is, and with 2 if
a file has no object.
"""

import json
import os
import sys

import jsonschema

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCHEMA = os.path.join(TOP, "Documentation/mgpu.schema.json")


def load():
    with open(SCHEMA, encoding="utf-8") as file:
        return json.load(file)


def validator(schema, output):
    return jsonschema.Draft202012Validator(
        {"$schema": schema["$schema"], "$ref": f"#/$defs/{output}", "$defs": schema["$defs"]},
        format_checker=jsonschema.FormatChecker())


def problems(check, value):
    return [f"{'/'.join(map(str, e.absolute_path)) or 'the object'}: {e.message[:300]}"
            for e in check.iter_errors(value)]


def look_into(output, file, schema):
    """Print what is wrong with a file: 0, 1, or 2 if there is no object."""
    lines = [line for line in file if line.strip()]
    check = validator(schema, output)
    found = [p for line in lines for p in problems(check, json.loads(line))]
    for problem in found:
        print(f"{output}: {problem}")
    return 2 if not lines else bool(found)


def main():
    schema = load()
    if len(sys.argv) == 2:
        return look_into(sys.argv[1], sys.stdin, schema)
    worst = 0
    for output, path in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        with open(path, encoding="utf-8") as file:
            worst = max(worst, look_into(output, file, schema))
    return worst


if __name__ == "__main__":
    sys.exit(main())
