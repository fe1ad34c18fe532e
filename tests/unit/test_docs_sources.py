#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Commands, files, messages and counters of the documentation are those of the sources.

Commands are compared with the command table and the help of the programs, which must be built.
"""

import glob
import os
import re
import subprocess
import sys

import yaml

sys.dont_write_bytecode = True

import pytap  # noqa: E402 pylint: disable=wrong-import-position

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))

from docs_text import Grammar, calls, known, literals, messages, troff_examples  # noqa: E402
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
PROGRAMS = ("gpuctl", "mgpud", "mgpu-policy", "mgpu-trace", "mgpu-renderd", "mgpu-defer",
            "mgpu-place", "mgpu-learn", "mgpu-exporter", "mgpu-remoted", "mgpu-poold",
            "mgpu-agent")
# Options that a program gives itself, which its help leaves out.
HIDDEN = {"mgpu-remoted": "--serve"}


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as file:
        return file.read()


def files(*patterns):
    """Paths below the top that match."""
    found = []
    for pattern in patterns:
        found += [os.path.relpath(path, TOP) for path in
                  glob.glob(os.path.join(TOP, pattern), recursive=True)]
    return sorted(found)


def pages():
    found = files("Documentation/*.rst", "README.rst")
    assert len(found) > 40, f"only {len(found)} pages"
    return found


# ---- commands

def all_calls(program):
    for path in [*pages(), *files("Documentation/man/*")]:
        text = read(path)
        found = troff_examples(text) if "/man/" in path else literals(text)
        for line, command, whole in found:
            for words in calls(command, program, whole):
                yield f"{path}:{line}", words, whole


def output(program, *words):
    path = os.path.join(BUILD, "ctl", program)
    if not os.path.exists(path):
        raise pytap.Skip("the programs are not built")
    return subprocess.run([path, *words], capture_output=True, text=True, check=True).stdout


def gpuctl_commands():
    grammar = Grammar(output("gpuctl", "help", "--table"))
    found = list(all_calls("gpuctl"))
    assert len(found) > 200, f"only {len(found)} commands"
    bad = []
    for where, words, whole in found:
        problem = grammar.problem(words, whole)
        if problem:
            bad.append(f"{where}: gpuctl {' '.join(words)}: {problem}")
    assert not bad, "\n".join(bad)


def wrong_commands_are_noticed():
    grammar = Grammar(output("gpuctl", "help", "--table"))
    for line in ("vgpu lst", "vgpux list", "vgpu set 1 fsp 30", "vgpu list --pretyt", "top 3",
                 "dev set 0 policy", "ctx preempt 1 1 kepe 2", "render start x y",
                 "ctl sla default flor 30", "vgpu remove", "remote set vm:3 weight"):
        assert grammar.problem(line.split(), True), line
    for line in ("", "vgpu", "vgpu set 1 fps 30 2,3 weight 200", "-j vgpu list dev 0", "top -n 3",
                 "vgpu set --batch x", "dev set 0 policy fixed slots 3", "vgpu remove all force",
                 "ctx preempt 1 3 method drain keep 1 hold", "render start", "ctl reset",
                 "ctl sla default floor 30 ceiling none", "vgpu create 0 medium name desk fps 30"):
        assert not grammar.problem(line.split(), True), line
    page = ("Text ``gpuctl vgpu``::\n\n   U=$(gpuctl vgpu create 0 small)  # x\n   a \\\n"
            "     b\n\nend\n")
    found = [words for _, command, _ in literals(page) for words in calls(command, "gpuctl")]
    assert found == [["vgpu", "create", "0", "small"], ["vgpu"]], found


def options_of_programs():
    bad, looked = [], 0
    makefile = read("ctl/Makefile")
    for program in PROGRAMS[1:]:
        text = output(program, "--help") + HIDDEN.get(program, "")
        # Commands that have a help of their own.
        helps = re.search(rf"^{program}-helps := (.*)$", makefile, flags=re.M)
        for verb in helps[1].split() if helps else ():
            text += output(program, verb, "--help")
        for where, words, _ in all_calls(program):
            for word in words:
                if re.match(r"--[a-z]", word):
                    looked += 1
                    name = re.match(r"--[a-z-]+", word)[0]
                    if not re.search(rf"{name}\b(?!-)", text):
                        bad.append(f"{where}: {program} has no {name}")
    assert looked > 30, f"only {looked} options"
    assert not bad, "\n".join(bad)


def make_targets():
    goals = set(re.findall(r"^([a-z][\w-]*):", read("Makefile"), flags=re.M))
    bad, looked = [], 0
    for path in pages():
        for line, command, _ in literals(read(path)):
            for words in calls(command, "make") if command.lstrip().startswith("make ") else ():
                goal = next((w for w in words if re.fullmatch(r"[a-z][a-z-]+", w)), None)
                if goal and not any(word.startswith("-C") for word in words):
                    looked += 1
                    if goal not in goals:
                        bad.append(f"{path}:{line}: make {goal}")
    assert looked > 30, f"only {looked} targets"
    assert not bad, "\n".join(bad)


# ---- files

# Names of files of the sources, and of folders below these.
PATH = re.compile(r"(?<![\w/.$*-])((?:kmod|ctl|bpf|tools|tests|include/uapi|debian|Documentation)"
                  r"/[\w./*?{}@+-]*[\w*}])")


# Names of the kernel's source, which the pages say of them.
KERNELS = re.compile(r"Documentation/(?:gpu|driver-api)/|tools/(?:include|lib|net)(?:/|$)")


def exists(path):
    """Whether there is a file of this name; capitals stand for any name."""
    pattern = re.sub(r"(?<=[/_.-])[A-Z]{2,}(?=[/_.]|$)|^[A-Z]{2,}$", "*", path)
    for form in (pattern, pattern + ".c", pattern + ".py"):
        if glob.glob(os.path.join(TOP, form)):
            return True
    return False


def paths_exist():
    bad, looked = [], 0
    for path in pages():
        text = read(path)
        for match in PATH.finditer(text):
            name = match[1].rstrip(".")
            if "{" in name or text[match.end():match.end() + 1] in "{$":
                continue
            if KERNELS.match(name):
                continue
            looked += 1
            if not exists(name):
                bad.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {name}")
    assert looked > 250, f"only {looked} names"
    assert not bad, "\n".join(bad)


def directories_have_a_place():
    page = read("Documentation/developer.rst")
    named = set(re.findall(r"^``([\w/]+)`` ", page, flags=re.M))
    want = {"Documentation", "debian", "bpf", "include/uapi", "kmod"}
    want |= {"/".join(path.split("/")[:2])
             for path in files("kmod/*/**", "ctl/*/**", "tools/*/**", "tests/*/**")
             if os.path.isfile(os.path.join(TOP, path)) and path.count("/") > 1 and
             "__pycache__" not in path}
    assert named == want, named ^ want


# ---- parameters and sysfs

def parameters():
    """Parameters of the modules, but those of tests: {module: {name: description}}."""
    kbuild = read("Kbuild")
    found = {}
    for path in files("kmod/**/*.c"):
        module = re.search(rf"^(\w+)-y \+?:?= {re.escape(path[:-2])}\.o", kbuild, flags=re.M)
        for name, kind, mode, text in re.findall(
                r'^module_param\((\w+), (\w+), (\d+)\);\n(?:MODULE_PARM_DESC\(\w+, "(.*)"\);)?',
                read(path), flags=re.M):
            assert kind and mode and text, f"{path}: {name} has no description"
            if not text.startswith("For tests"):
                found.setdefault(module[1], {})[name] = (text, mode == "0644")
    assert sum(map(len, found.values())) >= 11, found
    return found


def manual_has_parameters():
    man = read("Documentation/man/mgpu.4").replace("\\-", "-")
    bad = []
    for module, params in parameters().items():
        part = re.search(rf"^Of\n\.BR {module} :\n(.*?)(?=^Of$|^\.SH)", man, flags=re.M | re.S)
        assert part, f"mgpu.4 has no parameters of {module}"
        named = dict(re.findall(r'^\.BR (\w+) "? ?\((.*?)\)"', part[1], flags=re.M))
        assert set(named) == set(params), f"{module}: {set(named) ^ set(params)}"
        for name, (text, _) in params.items():
            numbers = re.search(r"(\d+) to (\d+)", text)
            default = (re.search(r"default:? ([\w-]+)", text) or
                       re.search(r"(\w+) \(default\)", text))
            if numbers and f"{numbers[1]} to {numbers[2]}" not in named[name]:
                bad.append(f"{module} {name}: not {numbers[0]}")
            if default and f"default {default[1]}" not in named[name]:
                bad.append(f"{module} {name}: not default {default[1]}")
    assert not bad, bad


# Files of a type and of a mediated device that are vfio-mdev's.
OF_VFIO_MDEV = {"create", "available_instances", "description", "device_api", "name", "remove"}


def abi_has_files():
    abi = read("Documentation/ABI/testing/sysfs-mgpu")
    named = set(re.findall(r"^What:\s*(\S+)", abi, flags=re.M))
    want = {f"/sys/module/{module}/parameters/{name}"
            for module, params in parameters().items() for name in params}
    assert {name for name in named if "/parameters/" in name} == want, \
        {name for name in named if "/parameters/" in name} ^ want
    for module, params in parameters().items():
        for name, (_, changes) in params.items():
            entry = re.search(rf"parameters/{name}$.*?(?=^What:|\Z)",
                              abi[abi.index(f"/sys/module/{module}/parameters/{name}\n"):],
                              flags=re.M | re.S)[0]
            said = " ".join(entry.split())
            assert changes == ("be changed at any time" in said), name
            assert changes != ("set when the module is loaded" in said), name
    attributes = set()
    for path in files("kmod/**/*.c"):
        attributes |= set(re.findall(r"^(?:static DEVICE_ATTR_R[OW]|SETTING_ATTR)\((\w+)[,)]",
                                     read(path), flags=re.M))
    assert len(attributes) > 8, attributes
    others = {os.path.basename(name) for name in named
              if "/parameters/" not in name and not name.endswith("/")}
    # Of a folder the text has a paragraph for each file.
    others |= set(re.findall(r"^\t\t(\w+) \((?:r[ow]|wo)\): ", abi, flags=re.M))
    assert others == attributes | OF_VFIO_MDEV, others ^ (attributes | OF_VFIO_MDEV)
    man = read("Documentation/man/mgpu.4")
    man = man[man.index(".SH FILES"):]
    for name in attributes:
        assert re.search(rf"\b{name}\b", man), f"mgpu.4: {name}"


# ---- counters

def counters_are_all_there():
    page = read("Documentation/counters.rst")
    spec = yaml.safe_load(read("Documentation/netlink/specs/mgpu.yaml"))
    sets = {"Counters of a vGPU": "stats", "State and settings of a vGPU": "vgpu",
            "A device": "dev", "A compute context": "ctx"}
    schema = set(re.findall(r'"([a-z_]+)": \{', read("Documentation/mgpu.schema.json")))
    metrics = set(re.findall(r"^   \* - ``(mgpu_\w+)``", read("Documentation/metrics.rst"),
                             flags=re.M))
    assert len(metrics) > 80 and len(schema) > 80
    # Attributes of requests, which no answer has.
    sent = {"method", "hold", "first"}
    for title, name in sets.items():
        part = re.search(rf"^{title}\n=+\n(.*?)(?=^\S[^\n]*\n=+\n)", page, flags=re.M | re.S)[1]
        rows = re.findall(r"^   \* - ``([\w-]+)``\n     - ``(\w+)``\n     -(?: ``(\w+)``)?\n"
                          r"     -(?: ([^\n]*))?\n     - (.)", part, flags=re.M)
        attributes = [attr["name"] for group in spec["attribute-sets"] if group["name"] == name
                      for attr in group["attributes"] if attr["type"] != "pad"]
        assert {row[0] for row in rows} == set(attributes) - sent, \
            {row[0] for row in rows} ^ (set(attributes) - sent)
        for attr, key, metric, unit, _ in rows:
            assert key in schema, f"{attr}: JSON has no {key}"
            assert not metric or metric in metrics, f"{attr}: there is no {metric}"
            assert not key.endswith("_s") or unit == "s", f"{attr}: {unit}"
    there = set(re.findall(r"mgpu_(?:gpu|vgpu|remote)_\w+", page))
    missing = {m for m in metrics if re.match("mgpu_(?:gpu|vgpu|remote)_", m)} - there
    assert not {m for m in missing if "account" not in m and "program_info" not in m}, missing


def maps_are_all_there():
    page = read("Documentation/bpf-maps.rst")
    named = set(re.findall(r"^``(\w+)`` \((\w+)\) ", page, flags=re.M))
    # Policies' maps are of the examples alone.
    want = {(name, os.path.basename(path).removesuffix(".bpf.c"))
            for path in files("bpf/*.bpf.c") if "/policy_" not in path
            for name in re.findall(r'^} (\w+) SEC\("\.maps"\);', read(path), flags=re.M)}
    assert len(want) > 6 and named == want, named ^ want


# ---- messages

def texts_of_sources():
    return messages(read(path) for path in files("kmod/**/*.c", "ctl/**/*.c", "ctl/**/*.h"))


def troubleshooting_has_real_messages():
    page = read("Documentation/troubleshooting.rst")
    texts = texts_of_sources()
    assert len(texts) > 2000
    seen = []
    for row in re.findall(r"^   \* - (.*?)\n     - ", page, flags=re.M | re.S):
        row = " ".join(row.split())
        if row != "seen":
            seen += [m for m in re.findall(r"``([^`]+)``", row) if " " in m]
    assert len(seen) > 50, f"only {len(seen)} messages"
    bad = [message for message in seen if not known(message, texts)]
    assert not bad, "\n".join(bad)


def invented_messages_are_noticed():
    texts = texts_of_sources()
    assert known("vGPU ... has no worker: ...", texts)
    assert not known("vGPU ... has no workers: ...", texts)
    assert not known("the GPU is tired", texts)


sys.exit(pytap.run([
    (gpuctl_commands, "each gpuctl command that the pages have is one"),
    (wrong_commands_are_noticed, "a command that there is not is noticed"),
    (options_of_programs, "each option of a program is one"),
    (make_targets, "each target of make is one"),
    (paths_exist, "each file that the pages name is there"),
    (directories_have_a_place, "the developer's guide has each directory"),
    (manual_has_parameters, "mgpu(4) has each parameter, with its range and default"),
    (abi_has_files, "Documentation/ABI and mgpu(4) have each file in sysfs"),
    (counters_are_all_there, "counters.rst has each counter, with its names and its unit"),
    (maps_are_all_there, "bpf-maps.rst has each map of the eBPF programs"),
    (troubleshooting_has_real_messages, "messages in troubleshooting.rst are those of the sources"),
    (invented_messages_are_noticed, "a message that there is not is noticed"),
]))
