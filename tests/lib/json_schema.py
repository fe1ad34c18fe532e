#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Check JSON against Documentation/mgpu.schema.json.

    tests/lib/json_schema.py OUTPUT [FILE]

OUTPUT is a name in the schema's $defs, such as vgpu_list; FILE, or standard input, has
one object per line.  Prints what is wrong; ends with 1 if anything is, and with 2 if
there is no object.
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


def main():
    with open(sys.argv[2], encoding="utf-8") if len(sys.argv) > 2 else sys.stdin as file:
        lines = [line for line in file if line.strip()]
    check = validator(load(), sys.argv[1])
    found = []
    for line in lines:
        found += problems(check, json.loads(line))
    for problem in found:
        print(problem)
    return 2 if not lines else bool(found)


if __name__ == "__main__":
    sys.exit(main())
