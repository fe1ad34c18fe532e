#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""What the documentation says of commands, files, messages and counters is in the sources.

Commands are compared with the command table and the help of the programs, which must be built.
"""

import glob
import os
import re
import shlex
import subprocess
import sys

import yaml

sys.dont_write_bytecode = True

import pytap  # noqa: E402 pylint: disable=wrong-import-position

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
PROGRAMS = ("gpuctl", "mgpud", "mgpu-policy", "mgpu-trace", "mgpu-renderd", "mgpu-defer",
            "mgpu-place", "mgpu-learn", "mgpu-exporter", "mgpu-remoted")
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

def literals(text):
    """Commands of a page: (line, command, whole); names in running text may lack their words."""
    lines = text.split("\n")
    i = 0
    while i < len(lines):
        line = lines[i]
        if re.match(r"^\s*\.\. code-block::|^(?!\s*\.\.).*::$", line):
            indent = len(line) - len(line.lstrip())
            i += 1
            begin = i
            block = []
            while i < len(lines) and (not lines[i].strip() or
                                      len(lines[i]) - len(lines[i].lstrip()) > indent):
                block.append(lines[i])
                i += 1
            joined = re.sub(r"\\\n\s*", " ", "\n".join(block))
            for number, command in enumerate(joined.split("\n")):
                yield begin + number + 1, command, True
            continue
        i += 1
    for match in re.finditer(r"``([^`]+)``", text):
        yield text.count("\n", 0, match.start()) + 1, " ".join(match[1].split()), False


def troff_examples(text):
    """Commands between .nf and .fi of a manual page."""
    for block in re.finditer(r"^\.(?:nf|EX)\n(.*?)^\.(?:fi|EE)$", text, flags=re.M | re.S):
        begin = text.count("\n", 0, block.start()) + 2
        for number, command in enumerate(block[1].split("\n")):
            yield begin + number, command.replace("\\-", "-").replace("\\(dq", '"'), True


def calls(command, program, whole=True):
    """Words of each call of a program in a line of the shell, or in a text that quotes it."""
    before = r"^|[\s(/']" if whole else r"^|[(']"
    for match in re.finditer(rf"(?:{before}){re.escape(program)}(?= |$)", command):
        rest = re.split(r"(?<!\S)#| \||;|&&|(?<!\S)>|\)(?:\s|$)|'(?:,|:|\s|$)", command[match.end():])[0]
        try:
            yield shlex.split(rest.rstrip(").,"))
        except ValueError:
            yield rest.split()


def all_calls(program):
    for path in [*pages(), *files("Documentation/man/*")]:
        text = read(path)
        found = troff_examples(text) if "/man/" in path else literals(text)
        for line, command, whole in found:
            for words in calls(command, program, whole):
                yield f"{path}:{line}", words, whole


class Grammar:
    """The command table of gpuctl, as 'gpuctl help --table' prints it."""

    def __init__(self, table):
        self.commands, self.options = {}, {}
        for line in table.splitlines():
            kind, what, more = line.split("\t")[:3]
            if kind == "option":
                short, long = what.split(", ")
                self.options[short] = self.options[long] = bool(more)
            else:
                words = what.split()[1:]
                verb = words[1] if len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]) else None
                rest = words[2 if verb else 1:]
                self.commands.setdefault(words[0], {})[verb] = self.regex(" ".join(rest))

    @staticmethod
    def regex(synopsis):
        """A regular expression for the words behind the verb, each with a space before it."""
        text = re.sub(r"([A-Z]+)\[,[A-Z]+\]\.\.\.", r"\1", synopsis)
        out = []
        for token in re.findall(r"\.\.\.| \| |[\[\]{}]|[^\s\[\]{}]+?(?=\.\.\.)|[^\s\[\]{}]+", text):
            if token == "...":
                out[-1:] = {")": [")+"], ")?": [")*"]}.get(out[-1], [out[-1], "(?: [^ ]+)*"])
            elif token == " | ":
                out.append("|")
            elif token in "[{":
                out.append("(?:")
            elif token in "]}":
                out.append(")?" if token == "]" else ")")
            elif re.fullmatch(r"[a-z-]+", token):
                out.append(f" {token}")
            elif re.fullmatch(r"[a-z|]+", token):
                out.append(f" (?:{token})")
            else:
                out.append(" [^ ]+")
        return "".join(out)

    def problem(self, words, whole):
        """Return why a call is none, or None."""
        plain, batch = [], False
        words = list(words)
        while words:
            word = words.pop(0)
            if not re.match(r"-\D", word):
                plain.append(word)
                continue
            name = word.split("=")[0]
            batch = batch or name in ("-b", "--batch")
            if name not in self.options:
                return f"no option {name}"
            if self.options[name] and "=" not in word and words:
                words.pop(0)
        if not plain:
            return None
        if plain[0] not in self.commands:
            return f"no object {plain[0]}"
        verbs = self.commands[plain[0]]
        rest = plain[1:]
        if None in verbs:
            pattern = verbs[None]
        elif not rest:
            return None
        elif rest[0] not in verbs:
            return f"{plain[0]} has no verb {rest[0]}"
        else:
            pattern = verbs[rest[0]]
            rest = rest[1:]
        given = "".join(" " + word.replace(" ", "_") for word in rest)
        if "..." in rest or (not whole and re.fullmatch(pattern, given + " VALUE")):
            return None
        if re.fullmatch(pattern, given) or (not rest and (batch or not whole)):
            return None
        return f"'{' '.join(rest)}' is not '{pattern}'"


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
    page = "Text ``gpuctl vgpu``::\n\n   U=$(gpuctl vgpu create 0 small)  # x\n   a \\\n     b\n\nend\n"
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
            default = re.search(r"default:? ([\w-]+)", text) or re.search(r"(\w+) \(default\)", text)
            if numbers and f"{numbers[1]} to {numbers[2]}" not in named[name]:
                bad.append(f"{module} {name}: not {numbers[0]}")
            if default and f"default {default[1]}" not in named[name]:
                bad.append(f"{module} {name}: not default {default[1]}")
    assert not bad, bad


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
        attributes |= set(re.findall(r"DEVICE_ATTR_R[OW]\((\w+)\)", read(path)))
    assert attributes, "no attributes of devices"
    others = {os.path.basename(name) for name in named if "/parameters/" not in name}
    assert attributes <= others, attributes - others
    man = read("Documentation/man/mgpu.4")
    for name in attributes:
        assert name in man, f"mgpu.4: {name}"


# ---- counters

def counters_are_all_there():
    page = read("Documentation/counters.rst")
    spec = yaml.safe_load(read("Documentation/netlink/specs/mgpu.yaml"))
    sets = {"Counters of a vGPU": "stats", "State and settings of a vGPU": "vgpu",
            "A device": "dev", "A compute context": "ctx"}
    schema = set(re.findall(r'"([a-z_]+)": \{', read("Documentation/mgpu.schema.json")))
    metrics = set(re.findall(r"^   \* - ``(mgpu_\w+)``", read("Documentation/metrics.rst"), flags=re.M))
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


# ---- messages

def messages():
    """Texts of the sources; what a format inserts is '...'."""
    found = []
    for path in files("kmod/**/*.c", "ctl/**/*.c", "ctl/**/*.h"):
        text = read(path)
        defines = dict(re.findall(r'^#define (\w+)\s+"([^"\n]*)"$', text, flags=re.M))
        for match in re.finditer(r'"(?:[^"\\]|\\.)*"(?:\s*(?:"(?:[^"\\]|\\.)*"|[A-Z]{3,}\w*))*', text):
            joined = re.sub(r'"\s*([A-Z]{3,}\w*)?\s*"',
                            lambda m: defines.get(m[1], "...") if m[1] else "", match[0])
            joined = joined.strip('"').replace('\\"', '"').replace("%%", "\0")
            joined = re.sub(r"(?:%[-+ #0]*[\d*]*(?:\.[\d*]+)?(?:ll|l|z|h)*[a-zA-Z])+", "...", joined)
            found.append(joined.replace("\0", "%").removesuffix("\\n"))
    return found


def known(message, texts, depth=1):
    """Whether a message is in a text, or is a text in which other texts were inserted."""
    message = re.sub(r"^\.\.\.(?=\W)|(?<=\W)\.\.\.$", "", message)
    if any(message in text for text in texts):
        return True
    for text in texts if depth else ():
        fixed = text.split("...")
        if len(fixed) < 2 or len("".join(fixed)) < 10:
            continue
        match = re.fullmatch("(.*)".join(map(re.escape, fixed)), message)
        if match and all(part in ("", "...") or known(part, texts, depth - 1)
                         for part in match.groups()):
            return True
    return False


def troubleshooting_has_real_messages():
    page = read("Documentation/troubleshooting.rst")
    texts = messages()
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
    texts = messages()
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
    (troubleshooting_has_real_messages, "messages in troubleshooting.rst are those of the sources"),
    (invented_messages_are_noticed, "a message that there is not is noticed"),
]))
