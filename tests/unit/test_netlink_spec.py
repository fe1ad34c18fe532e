#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The netlink specification agrees with what was made of it.

Compares Documentation/netlink/specs/mgpu.yaml with the uapi header, the
kernel's policies and operations, libmgpu's table and the module's counters,
reading each as text.  Where the kernel's generator is at hand, runs it and
compares its output with the files in the repository.
"""

import glob
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

import yaml

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
GENERATED = ("include/uapi/linux/mgpu.h", "kmod/netlink_gen.h", "kmod/netlink_gen.c")
GENERATOR = ("tools/net/ynl/ynl-gen-c.py", "Documentation/netlink/genetlink-legacy.yaml")

number = 0
failures = 0
compared = 0		# names, values and files, since the last result


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def result(behaviour, problems, skip=None):
    global number, failures, compared
    number += 1
    if not compared and not skip:
        problems = problems + ["nothing was compared"]
    compared = 0
    for problem in problems:
        print("# " + problem)
    if problems:
        failures += 1
        print(f"not ok {number} {behaviour}")
    elif skip:
        print(f"ok {number} {behaviour} # SKIP {skip}")
    else:
        print(f"ok {number} {behaviour}")


def differ(what, got, want):
    """Say where two dictionaries differ."""
    global compared
    compared += len(set(got) & set(want))
    out = []
    for key in sorted(set(got) | set(want), key=str):
        if got.get(key) != want.get(key):
            out.append(f"{what}: {key}: {got.get(key)}, the specification says {want.get(key)}")
    if not want:
        out.append(f"{what}: the specification has none")
    return out


def upper(*words):
    return "_".join(words).replace("-", "_").upper()


SPEC = yaml.safe_load(read("Documentation/netlink/specs/mgpu.yaml"))
SETS = {s["name"]: s for s in SPEC["attribute-sets"]}
CONSTS = {d["name"]: d["value"] for d in SPEC["definitions"] if d["type"] == "const"}
ENUMS = {d["name"]: d["entries"] for d in SPEC["definitions"] if d["type"] == "enum"}


def attributes(set_name):
    """Attributes of a set with all their properties; a subset has them from its whole."""
    whole = SETS[set_name]
    if "subset-of" not in whole:
        return whole["attributes"]
    by_name = {a["name"]: a for a in SETS[whole["subset-of"]]["attributes"]}
    return [{**by_name[a["name"]], **a} for a in whole["attributes"]]


def attr_c_name(set_name, attr):
    return upper("mgpu-a", SETS[set_name].get("subset-of", set_name), attr)


def c_enums(text):
    """Names and values of all enumerations of a header."""
    values = {}
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    for body in re.findall(r"enum(?:\s+\w+)?\s*{(.*?)}", text, flags=re.S):
        value = 0
        for entry in body.split(","):
            entry = entry.strip()
            if not entry:
                continue
            name, _, given = (x.strip() for x in entry.partition("="))
            if given.isdigit():
                value = int(given)
            elif given:
                value = values[re.search(r"__\w+", given).group()] - 1
            values[name] = value
            value += 1
    return values


def header():
    text = read("include/uapi/linux/mgpu.h")
    want = {}
    for name, entries in ENUMS.items():
        for i, entry in enumerate(entries):
            want[upper("mgpu", name, entry["name"])] = i
    for name, one in SETS.items():
        if "subset-of" in one:
            continue
        for i, attr in enumerate(one["attributes"], 1):
            want[attr_c_name(name, attr["name"])] = i
        want["__" + upper("mgpu-a", name, "max")] = len(one["attributes"]) + 1
        want[upper("mgpu-a", name, "max")] = len(one["attributes"])
    for i, op in enumerate(SPEC["operations"]["list"], 1):
        want[upper("mgpu-cmd", op["name"])] = i
    want["__MGPU_CMD_MAX"] = len(SPEC["operations"]["list"]) + 1
    want["MGPU_CMD_MAX"] = len(SPEC["operations"]["list"])
    problems = differ("enumerators", c_enums(text), want)

    defines = dict(re.findall(r"^#define (MGPU_\w+)\s+(\S+)$", text, flags=re.M))
    want = {upper("mgpu", name): str(value) for name, value in CONSTS.items()}
    want["MGPU_FAMILY_NAME"] = f'"{SPEC["name"]}"'
    want["MGPU_FAMILY_VERSION"] = str(SPEC.get("version", 1))
    for group in SPEC["mcast-groups"]["list"]:
        want[upper("mgpu-mcgrp", group["name"])] = f'"{group["name"]}"'
    return problems + differ("defines", defines, want)


def limit(value):
    return upper("mgpu", value) if value in CONSTS else str(value)


def policy_of(attr):
    """An attribute's policy as C text, without white space."""
    checks = attr.get("checks", {})
    if attr["type"] == "nest":
        return f"NLA_POLICY_NESTED(mgpu_{attr['nested-attributes']}_nl_policy)"
    if attr["type"] == "string":
        length = f".len={limit(checks['max-len'])}," if "max-len" in checks else ""
        return "{.type=NLA_NUL_STRING," + length + "}"
    kind = upper("nla", attr["type"])
    if "min" in checks and "max" in checks:
        return f"NLA_POLICY_RANGE({kind},{limit(checks['min'])},{limit(checks['max'])})"
    if checks:
        raise ValueError(f"{attr['name']}: a check that this test does not know")
    if "enum" in attr:
        return f"NLA_POLICY_MAX({kind},{len(ENUMS[attr['enum']]) - 1})"
    return "{.type=" + kind + ",}"


def policies():
    text = read("kmod/netlink_gen.c")
    got = {}
    for name, last, body in re.findall(
            r"struct nla_policy (\w+)_nl_policy\[(\w+) \+ 1\] = {\n(.*?)\n};", text, flags=re.S):
        got[name + " last"] = last
        for attr, policy in re.findall(r"\[(\w+)\] = (.*),$", body, flags=re.M):
            got[f"{name} {attr}"] = re.sub(r"\s", "", policy)

    want = {}

    def add(name, set_name, attrs):
        for attr in attrs:
            want[f"{name} {attr_c_name(set_name, attr['name'])}"] = policy_of(attr)
        want[name + " last"] = attr_c_name(set_name, attrs[-1]["name"])

    for op in SPEC["operations"]["list"]:
        if "do" not in op:
            continue
        asked = op["do"]["request"]["attributes"]
        attrs = [a for a in attributes(op["attribute-set"]) if a["name"] in asked]
        add(upper("mgpu", op["name"]).lower(), op["attribute-set"], attrs)
        for attr in attrs:
            if attr["type"] == "nest":
                nested = attr["nested-attributes"]
                add("mgpu_" + nested, nested, attributes(nested))
    return differ("policies", got, want)


def operations():
    text = read("kmod/netlink_gen.c")
    table = re.search(r"struct genl_ops mgpu_nl_ops\[(\d+)\] = {\n(.*?)\n};", text, flags=re.S)
    got = {"number": table.group(1)}
    for body in re.findall(r"{(.*?)}", table.group(2), flags=re.S):
        fields = dict(re.findall(r"\.(\w+)\s*=\s*(.*?),\n", body))
        for key, value in fields.items():
            got[f"{fields['cmd']} {key}"] = value

    want = {}
    nr = 0
    for op in SPEC["operations"]["list"]:
        if "do" not in op:
            continue
        nr += 1
        cmd = upper("mgpu-cmd", op["name"])
        name = op["name"].replace("-", "_")
        asked = op["do"]["request"]["attributes"]
        attrs = [a for a in attributes(op["attribute-set"]) if a["name"] in asked]
        want[f"{cmd} cmd"] = cmd
        want[f"{cmd} doit"] = f"mgpu_nl_{name}_doit"
        if "dump" in op:
            want[f"{cmd} dumpit"] = f"mgpu_nl_{name}_dumpit"
        want[f"{cmd} policy"] = f"mgpu_{name}_nl_policy"
        want[f"{cmd} maxattr"] = attr_c_name(op["attribute-set"], attrs[-1]["name"])
        flags = op.get("flags", [])
        if flags:
            want[f"{cmd} flags"] = " | ".join(upper("genl", flag) for flag in flags)
    want["number"] = str(nr)
    return differ("operations", got, want)


def groups():
    """A multicast group has the flags of the specification, and is there."""
    table = re.search(r"genl_multicast_group mgpu_nl_mcgrps\[\] = {\n(.*?)\n};",
                      read("kmod/netlink_gen.c"), flags=re.S)
    got = {}
    for index, name, flags in re.findall(r"\[(\w+)\] = { \"([\w-]+)\", ?(.*?),? };?",
                                         table.group(1)):
        got[index] = (name, flags)
    known = {"admin-perm": "GENL_MCAST_CAP_NET_ADMIN"}
    want = {}
    for group in SPEC["mcast-groups"]["list"]:
        flags = " | ".join(known[flag] for flag in group.get("flags", []))
        want[upper("mgpu-nlgrp", group["name"])] = (group["name"], flags)
    return differ("multicast groups", got, want)


def privileged():
    """Each command and each group tells about tenants or changes something."""
    global compared
    problems = []
    for op in SPEC["operations"]["list"] + SPEC["mcast-groups"]["list"]:
        compared += 1
        if "notify" not in op and op.get("flags") != ["admin-perm"]:
            problems.append(f"{op['name']} is open to every process")
    return problems


def library():
    """libmgpu knows each attribute by its name, number and type."""
    text = read("ctl/lib/fields.c")
    got = {}
    for macro, attr, name, kind in re.findall(
            r"\b(DEV|POLICY_EXIT|VGPU|CTX)(?:_ORDER)?\((\w+), \"([\w-]+)\", (\w+),\s+\w+\)", text):
        got[f"MGPU_A_{macro}_{attr}"] = (name, kind)
    for attr, name in re.findall(r"\bSTAT\((\w+), \"([\w-]+)\", \w+\)", text):
        got[f"MGPU_A_STATS_{attr}"] = (name, "U64")
    for name, attr, kind in re.findall(
            r"\.name = \"([\w-]+)\",\s*\.attr = (\w+),\s*\.type = MGPU_FIELD_(\w+)", text):
        got[attr] = (name, kind)

    want = {}
    for set_name in ("dev", "policy-exit", "vgpu", "stats", "ctx"):
        for attr in attributes(set_name):
            if attr["type"] != "pad":
                want[attr_c_name(set_name, attr["name"])] = (attr["name"], attr["type"].upper())
    problems = differ("libmgpu", got, want)

    events = re.findall(r"case (MGPU_CMD_\w+):\s*return \"([\w-]+)\";", text)
    want = {upper("mgpu-cmd", op["name"]): op["name"]
            for op in SPEC["operations"]["list"] if "notify" in op}
    problems += differ("libmgpu's events", dict(events), want)

    for name, entries in ENUMS.items():
        values = re.findall(rf"\[({upper('mgpu', name)}_\w+)\] = \"([\w-]+)\"", text)
        want = {upper("mgpu", name, e["name"]): e["name"] for e in entries}
        problems += differ(f"libmgpu's {name}", dict(values), want)
    return problems


def units():
    """libmgpu knows the unit of each attribute that has one."""
    global compared
    text = read("ctl/lib/fields.c")
    got = dict(re.findall(r"{ \"([\w-]+)\", MGPU_UNIT_(\w+), \w+ },", text))
    limits = set(re.findall(r"{ \"([\w-]+)\", MGPU_UNIT_\w+, true },", text))
    words = {"bytes": "BYTES", "pixels": "PIXELS", "millihertz": "MILLIHERTZ",
             "parts per million": "PPM", "nanoseconds": "NS", "microseconds": "US",
             "milliseconds": "MS"}
    problems = []
    for set_name in ("dev", "policy-exit", "vgpu", "stats", "ctx"):
        for attr in attributes(set_name):
            name, doc = attr["name"], " ".join(attr.get("doc", "").split())
            told = [unit for word, unit in words.items()
                    if re.search(rf"\b{word}\b", doc.split(";")[0].split(":")[0])]
            if attr["type"] in ("pad", "nest", "binary") or not told:
                continue
            compared += 1
            unit = "NS" if name.endswith("-ns") else got.get(name)
            if unit not in told:
                problems.append(f"{set_name}: {name} is in {told[0]}, but for libmgpu in {unit}")
    for set_name in ("dev", "vgpu"):
        for attr in attributes(set_name):
            doc = " ".join(attr.get("doc", "").split())
            compared += 1
            if bool(re.search(r"\b0 for no (limit|quarantine|promise)", doc)) != (attr["name"] in limits):
                problems.append(f"{set_name}: {attr['name']}: is 0 no limit? libmgpu and the "
                                "specification do not agree")
    return problems


def counters():
    """stats has the module's counters, by their names, and each is sent as itself."""
    body = re.search(r"struct mgpu_stats {(.*?)^};", read("kmod/mgpu.h"), flags=re.S | re.M)
    members = re.findall(r"atomic64_t (\w+);", body.group(1))
    names = {a["name"].replace("-", "_") for a in attributes("stats") if a["type"] != "pad"}
    problems = differ("counters", dict.fromkeys(members, "there"), dict.fromkeys(names, "there"))
    sent = re.findall(r"MGPU_NL_STAT\((\w+), (\w+)\)", read("kmod/netlink.c"))
    got = {attr: name for attr, name in sent if attr != "NAME"}
    return problems + differ("counters sent", got, {name.upper(): name for name in names})


def limits():
    """Where a limit is defined beside the uapi header, as for BPF, it is the same."""
    values = {upper("mgpu", name): str(value) for name, value in CONSTS.items()}
    got, want = {}, {}
    for path in glob.glob(os.path.join(TOP, "*/*.[ch]")) + glob.glob(os.path.join(TOP, "*/*/*.[ch]")):
        path = os.path.relpath(path, TOP)
        for name, value in re.findall(r"^#define (MGPU_\w+)\s+(\d+)", read(path), flags=re.M):
            if name in values and path != "include/uapi/linux/mgpu.h":
                got[f"{path} {name}"] = value
                want[f"{path} {name}"] = values[name]
    return differ("limits", got, want)


def documentation():
    """Every attribute and operation says what it is."""
    global compared
    problems = []
    for name, one in SETS.items():
        if "subset-of" in one:
            continue
        for attr in one["attributes"]:
            compared += 1
            if attr["type"] != "pad" and not attr.get("doc"):
                problems.append(f"{name}: {attr['name']} has no doc")
    for op in SPEC["operations"]["list"]:
        compared += 1
        if not op.get("doc"):
            problems.append(f"{op['name']} has no doc")
    return problems


def regenerate():
    """Return problems of the generated files, or why the generator cannot run."""
    global compared
    sources = sorted(glob.glob(os.path.join(BUILD, "kernel/*/source")))
    sources = [s for s in sources
               if all(os.path.exists(os.path.join(s, path)) for path in GENERATOR)]
    if not sources:
        return [], f"no kernel source with {' and '.join(GENERATOR)} in {BUILD}/kernel"
    if not importlib.util.find_spec("jsonschema"):
        return [], "python3-jsonschema is not installed"
    problems = []
    with tempfile.TemporaryDirectory() as out:
        done = subprocess.run([os.path.join(TOP, "tools/netlink/ynl-regen"), sources[-1], out],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            return ["the generator fails: " + line for line in done.stderr.splitlines()] or \
                [f"the generator ends with {done.returncode}"], None
        for path in GENERATED:
            with open(os.path.join(out, path), encoding="utf-8") as file:
                compared += 1
                if file.read() != read(path):
                    problems.append(f"{path} is not what the generator writes: "
                                    f"run tools/netlink/ynl-regen {sources[-1]}")
    return problems, None


print("TAP version 13")
result("the uapi header has the specification's names and numbers", header())
result("the kernel's policies have the specification's types and ranges", policies())
result("the kernel's operations are the specification's", operations())
result("the kernel's multicast groups are the specification's", groups())
result("commands and groups need CAP_NET_ADMIN", privileged())
result("libmgpu knows all attributes by the specification's names", library())
result("libmgpu knows the units of attributes", units())
result("stats are the module's counters", counters())
result("limits defined elsewhere are the specification's", limits())
result("the specification documents everything", documentation())
result("generated files are what the generator writes", *regenerate())
print(f"1..{number}")
sys.exit(1 if failures else 0)
