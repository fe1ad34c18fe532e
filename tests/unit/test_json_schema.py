#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The JSON of gpuctl is as Documentation/mgpu.schema.json describes it.

gpuctl runs on the kernel of test_gpuctl_ctx, with an mgpud and an mgpu-remoted of this test's.
The keys of their own states are looked for in their source; kselftest/test_mgpud.sh and
test_remote.py check real ones.
"""

import copy
import json
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

import pytap  # noqa: E402 pylint: disable=wrong-import-position

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
GPUCTL = os.path.join(BUILD, "unit", "test_gpuctl_ctx")
UUID = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"

# Command and its output; None: it prints nothing.
OUTPUTS = {
    ("dev", "list"): "dev_list",
    ("dev", "show", "0"): "dev_show",
    ("dev", "set", "0", "slots", "3"): None,
    ("vgpu", "list"): "vgpu_list",
    ("vgpu", "show", "1"): "vgpu_show",
    ("vgpu", "set", "all", "fps", "30"): None,
    ("ctx", "list"): "ctx_list",
    ("ctx", "show", "1", "1"): "ctx_show",
    ("ctx", "preempt", "1", "1", "hold"): "ctx_show",
    ("ctx", "resume", "1", "1"): "ctx_show",
    ("render", "list"): "render_list",
    ("remote", "list"): "remote_list",
    ("remote", "show", "1000"): "remote_show",
    ("remote", "stats", "-n", "2", "-d", "0.1"): "remote_stats",
    ("remote", "accounts"): "remote_accounts",
    ("remote", "set", "vm:3", "weight", "300", "gpu-limit", "10%"): None,
    ("status",): "status",
    ("monitor", "contexts", "-n", "2"): "monitor_event",
    ("top", "-n", "2", "-d", "1"): "top_sample",
    ("ctl", "show"): "state",
    ("ctl", "set", "allocator", "exact"): "state",
    ("ctl", "reset", "allocator"): "state",
    ("ctl", "sla"): "agreements",
    ("ctl", "sla", "default", "floor", "30", "ceiling", "none"): "agreements",
    ("ctl", "describe"): "descriptions",
    ("ctl", "describe", UUID, "game", "at", "1920x1080"): "descriptions",
    ("ctl", "watch", "-n", "2"): ("state", "watch_event"),
    ("trace", "record", "-o", "TRACE", "-t", "1"): "trace_record",
    ("report", "TRACE"): "report",
    ("version",): "release",
}
# Commands that need sysfs: kselftest/test_gpuctl.sh, test_gpu_bind.sh and test_render_ctl.sh
# have them.
ELSEWHERE = {"dev bind", "dev unbind", "type list", "type show", "render start",
             "vgpu create"}
NO_JSON = {"help", "render stop", "vgpu remove"}
EVENT = {"version": 1, "event": "sla-shortfall", "time_s": 12.345, "id": 3, "uuid": UUID,
         "floor_fps": 30, "granted_fps": 21.5, "gone": False}


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def resolve(part):
    """Return a part of the schema that a reference stands for."""
    while "$ref" in part:
        at = SCHEMA
        for word in part["$ref"].removeprefix("#/").split("/"):
            at = at[word]
        part = at
    return part


def example(part):
    """Return a value with all that a part of the schema describes."""
    part = resolve(part)
    if "const" in part:
        return part["const"]
    if "enum" in part:
        return part["enum"][0]
    if "properties" in part:
        return {key: example(value) for key, value in part["properties"].items()}
    kind = part["type"] if isinstance(part["type"], str) else part["type"][0]
    if kind == "array":
        return [example(part["items"])]
    if kind == "string":
        return UUID if "0-9a-fA-F" in part.get("pattern", "") else \
            "0x0123abcd" if "pattern" in part else "exact"
    if kind == "number":
        return max(0.5, part.get("minimum", 0.5))
    return {"boolean": False, "integer": 1000, "object": {}}[kind]


def objects(*words):
    """Run gpuctl -j; return the objects that it prints."""
    words = [os.environ["TRACE"] if word == "TRACE" else word for word in words]
    ran = subprocess.run([GPUCTL, "-j", *words], capture_output=True, text=True, check=False,
                         timeout=60)
    # a recording tells what it lacks
    if ran.returncode not in (0, 3) or (ran.stderr and words[0] != "trace"):
        raise AssertionError(f"{' '.join(words)}: status {ran.returncode}: {ran.stderr}")
    return [json.loads(line) for line in ran.stdout.splitlines()]


def check_output(words, output):
    found = objects(*words)
    if output is None:
        assert not found, f"{' '.join(words)}: prints {found}"
        return
    assert found, f"{' '.join(words)}: prints nothing"
    outputs = [output] * len(found) if isinstance(output, str) else output
    for value, name in zip(found, outputs, strict=True):
        problems = json_schema.problems(json_schema.validator(SCHEMA, name), value)
        assert not problems, f"{' '.join(words)}: {problems}"
        problems = json_schema.problems(WHOLE, value)
        assert not problems, f"{' '.join(words)}, as any output: {problems}"


def with_mgpud():
    for words, output in OUTPUTS.items():
        check_output(words, output)


def without_mgpud():
    """Unknown values, and limits, are in the schema, too."""
    old = os.environ["MGPUD_SOCKET"]
    os.environ["MGPUD_SOCKET"] = "/nonexistent/mgpud.sock"
    try:
        for words, output in OUTPUTS.items():
            if words[0] != "ctl":
                check_output(words, output)
    finally:
        os.environ["MGPUD_SOCKET"] = old


def all_commands():
    table = subprocess.run([GPUCTL, "help", "--table"], capture_output=True, text=True,
                           check=True).stdout
    want = set()
    for line in table.splitlines():
        kind, synopsis, _ = line.split("\t")
        if kind == "command":
            words = re.match(r"gpuctl ([a-z]+(?: [a-z]+)?)", synopsis).group(1)
            want.add(words)
    got = {" ".join(words[:2]) if " ".join(words[:2]) in want else words[0]
           for words in OUTPUTS}
    assert got | ELSEWHERE | NO_JSON == want, f"{got ^ want}"


def parts(part, path=""):
    """Yield each part of the schema that describes a value, with its path."""
    if isinstance(part, dict):
        if "type" in part or "properties" in part or "$ref" in part:
            yield path, part
        for key, value in part.items():
            yield from parts(value, f"{path}/{key}")
    elif isinstance(part, list):
        for i, value in enumerate(part):
            yield from parts(value, f"{path}/{i}")


def closed_and_named():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    names = set()
    for path, part in parts(SCHEMA):
        for key, value in part.get("properties", {}).items():
            if isinstance(value, dict) and "/properties/properties" not in path:
                names.add(key)
                assert value.get("description") or "$ref" in value or \
                    value.get("type") == "array" or "allOf" in value, f"{path}: {key}"
    for name in names:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", name), name
    for name in SCHEMA["$defs"]:
        part = SCHEMA["$defs"][name]
        if "properties" not in part or name in ("dev", "vgpu", "ctx", "renderd", "remote_app",
                                                    "remote_rates"):
            continue    # these are closed where they are used
        assert part.get("additionalProperties") is False or \
            part.get("unevaluatedProperties") is False, f"{name} may have any key"


def wrong_ones():
    """The schema refuses what it does not describe."""
    good = objects("vgpu", "show", "1")[0]
    check = json_schema.validator(SCHEMA, "vgpu_show")
    assert not json_schema.problems(check, good)
    for key, value in (("fps-limit", 30000), ("weight", "100"), ("gpu_limit_share", 30.5),
                       ("version", "0.1.0"), ("uuid", "83b8f4f2"), ("quarantine", 1),
                       ("stats", {}), ("target_stale", None)):
        bad = copy.deepcopy(good)
        bad[key] = value
        assert json_schema.problems(check, bad), f"{key}: {value} is taken"
    for key in good:
        if key in ("limit_fps", "target_fps", "gpu_limit_share"):
            continue
        bad = copy.deepcopy(good)
        del bad[key]
        assert json_schema.problems(check, bad), f"without {key} it is taken"


def keys_of(path):
    return set(re.findall(r"(?:json_object_object_add|add|add_[a-z]+)\(\w+, \"(\w+)\"",
                          read(path)))


def mgpud_keys():
    """mgpud's state has the keys that the schema describes."""
    described = set()
    for name in ("state", "watch_event", "agreement", "own_agreement", "preempt", "guard",
                 "description", "model"):
        for _, part in parts(SCHEMA["$defs"][name]):
            described |= set(part.get("properties", {}))
    settings = re.findall(r"\.section = (\w+), *\s*\.key = \"(\w+)\"(?:, *\s*\.name = (\"\w+\"))?",
                          read("ctl/lib/mgpud_settings.h"))
    settings = {key.removesuffix("_ms") + "_s" if key.endswith("_ms") else key
                for section, key, name in settings if section == "MGPUD_CONTEXTS" or name}
    got = keys_of("ctl/mgpud/server/state.c") | keys_of("ctl/mgpud/contexts/preempt_state.c")
    assert len(got) > 40, got
    assert len(settings) > 10, settings
    missing = (got | settings) - described
    assert not missing, f"Documentation/mgpu.schema.json describes no {sorted(missing)}"
    # in each answer, and what gpuctl adds
    told = {"sample_age_s", "vm", "name"}
    counts = {"launch", "resume", "preempt", "switch", "drain", "flush"}
    gone = described - got - settings - told - counts - {"version"}
    assert not gone, f"mgpud tells no {sorted(gone)}"


def remoted_keys():
    """The state of mgpu-remoted has the keys that the schema describes."""
    account = SCHEMA["$defs"]["remote_accounts"]["properties"]["accounts"]
    described = set(SCHEMA["$defs"]["remote_app"]["properties"])
    described |= set(account["items"]["properties"])
    got = keys_of("ctl/remote/control.c") - {"version", "applications", "accounts"}
    assert got == described, got ^ described


TESTS = (
    (closed_and_named, "the schema is valid, closed, and names keys alike"),
    (all_commands, "each command of gpuctl is looked at"),
    (with_mgpud, "what each command prints is in the schema"),
    (without_mgpud, "so it is without mgpud"),
    (wrong_ones, "the schema refuses other cases, units and types"),
    (mgpud_keys, "the schema has the keys of mgpud's state"),
    (remoted_keys, "the schema has the keys of mgpu-remoted's state"),
)

try:
    import jsonschema
except ImportError:
    print("TAP version 13\n1..0 # SKIP python3-jsonschema is not installed")
    sys.exit(4)
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
import json_schema  # noqa: E402 pylint: disable=wrong-import-position
from played_service import Service  # noqa: E402 pylint: disable=wrong-import-position

SCHEMA = json_schema.load()
WHOLE = jsonschema.Draft202012Validator(SCHEMA)

if __name__ == "__main__":
    subprocess.run(["make", "-s", "-C", os.path.join(TOP, "tests/unit"), f"BUILD={BUILD}",
                    GPUCTL], check=True, stdout=subprocess.DEVNULL)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRACE"] = os.path.join(folder, "trace")
        os.environ["MGPUD_SOCKET"] = os.path.join(folder, "mgpud.sock")
        Service(os.environ["MGPUD_SOCKET"], example(SCHEMA["$defs"]["state"]), EVENT)
        os.environ["MGPU_REMOTE_CONTROL"] = os.path.join(folder, "remote.sock")
        Service(os.environ["MGPU_REMOTE_CONTROL"],
                {**example(SCHEMA["$defs"]["remote_list"]),
                 **example(SCHEMA["$defs"]["remote_accounts"])}, EVENT)
        status = pytap.run(TESTS)
    sys.exit(status)
