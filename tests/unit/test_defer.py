#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""mgpu-defer analyse: the classes of loops whose truth is known, and the command line.

tests/defer/*.c have the loops; the names of their functions say what is true of them.
"""

import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import yaml

import pytap

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
DEFER = os.path.join(BUILD, "ctl", "mgpu-defer")
API = sorted(glob.glob(os.path.join(TOP, "ctl", "api", "*.yaml")))
LOOPS = re.compile(r"^(?!static)[\w ]+?[ *]([cnsu][0-3]_\w+)\(", re.M)

# Compilers, each at these levels, and what a program may have been linked with besides.
COMPILERS = ("gcc", "clang")
LEVELS = ("-O0", "-O1", "-O2", "-O3")

# Functions that the programs call, and do not have.
ELSEWHERE = ("elsewhere", "progress")

# The worst share of right answers that is accepted: an aim of the design.
RIGHT = 0.95

tmp = tempfile.TemporaryDirectory()


def path(name):
    """Return the name of a file for this test."""
    return os.path.join(tmp.name, name)


def run(*args, **kw):
    """Run a program and return what it left."""
    return subprocess.run(args, capture_output=True, text=True, check=False, **kw)


def make(*args):
    """Run a program that must succeed."""
    done = run(*args)
    if done.returncode:
        raise RuntimeError(f"{' '.join(args)}: {done.stderr}")


def library():
    """Return a library with the functions that programs call, for the linker only."""
    name = path("libapi.so")
    if not os.path.exists(name):
        lines = [f"void {f}(void);\nvoid {f}(void) {{}}" for f in ELSEWHERE]
        for file in API:
            with open(file, encoding="utf-8") as desc:
                lines += [f"void {f}(void);\nvoid {f}(void) {{}}"
                          for f in yaml.safe_load(desc)["functions"]]
        with open(path("api.c"), "w", encoding="utf-8") as out:
            out.write("\n".join(lines) + "\n")
        make("gcc", "-shared", "-fPIC", path("api.c"), "-o", name)
    return name


def program(source, compiler, *options):
    """Return a program that is made of a file below tests/defer."""
    name = path("-".join((source, compiler, *options)).replace("/", "_"))
    if not os.path.exists(name):
        make(compiler, "-w", *options, os.path.join(TOP, "tests", "defer", source + ".c"),
             library(), "-lm", "-o", name)
    return name


def analyse(name, *options):
    """Return the report of a program."""
    done = run(DEFER, "analyse", "--no-cache", "-j", *options, name)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr}")
    return json.loads(done.stdout)


def functions(source):
    """Return the functions of a file whose loops are known."""
    with open(os.path.join(TOP, "tests", "defer", source + ".c"), encoding="utf-8") as file:
        return LOOPS.findall(file.read())


def verdict(function, classes, assume_success):
    """Say of the classes that a function's loops got whether they are right, and bold."""
    kind, truth = function[0], int(function[1])
    if kind == "s" and not assume_success:
        truth = 0
    right = bool(classes) and all(c == truth for c in classes)
    if kind == "u":
        return bool(classes) and all(c in (0, truth) for c in classes), False
    if kind == "n":
        right = truth in classes and all(c in (0, truth) for c in classes)
    return right, not truth and any(classes)


def judge(source, name):
    """Return how many verdicts on a program's loops there are, and lists of wrong and bold."""
    reports = {assume: analyse(name, *(["--assume-success"] if assume else []))
               for assume in (False, True)}
    names, wrong, bold, nr = functions(source), [], [], 0
    for function in names:
        for assume in (False, True) if function[0] == "s" else (False,):
            classes = [loop["class"] or 0 for loop in reports[assume]["loops"]
                       if loop["function"] == function]
            right, too_bold = verdict(function, classes, assume)
            nr += 1
            if not right:
                wrong.append(f"{function} {classes}")
            if too_bold:
                bold.append(f"{function} {classes}")
    return nr, wrong, bold


def check(source):
    """The classes of a file's loops, by each compiler at each level."""
    nr, wrong = 0, 0
    for compiler in COMPILERS:
        for level in LEVELS:
            n, bad, bold = judge(source, program(source, compiler, level))
            print(f"# {source}, {compiler} {level}: {n - len(bad)} of {n} are right"
                  f"{': ' if bad else ''}{', '.join(bad)}")
            assert not bold, f"said to be deferrable, and is not: {', '.join(bold)}"
            nr += n
            wrong += len(bad)
    assert nr >= 8 * 60, f"only {nr} verdicts"
    assert nr - wrong >= RIGHT * nr, f"{wrong} of {nr} are wrong"


def loops_are_classified():
    check("loops")


def held_out_loops_are_classified():
    check("loops_held_out")


def fresh_loops_are_classified():
    check("loops_fresh")


def addresses(report):
    """Return what a report says but for names of functions."""
    return [{k: v for k, v in loop.items() if k != "function"} for loop in report["loops"]]


def stripped_programs_are_alike():
    for options in (("-O2",), ("-O0", "-no-pie"), ("-O2", "-fno-plt"), ("-O2", "-fcf-protection"),
                    ("-O2", "-Wl,-z,now")):
        name = program("loops", "gcc", *options)
        whole = analyse(name)
        make("strip", "-o", name + ".stripped", name)
        stripped = analyse(name + ".stripped")
        assert len(whole["loops"]) > 60, f"{options}: {len(whole['loops'])} loops"
        assert addresses(stripped) == addresses(whole), options
        assert not any(loop["function"] for loop in stripped["loops"])


def the_way_of_linking_does_not_matter():
    usual = [(loop["function"], loop["class"])
             for loop in analyse(program("loops", "gcc", "-O2"))["loops"]]
    for options in (("-O2", "-no-pie"), ("-O2", "-fno-plt"), ("-O2", "-Wl,-z,now")):
        other = [(loop["function"], loop["class"])
                 for loop in analyse(program("loops", "gcc", *options))["loops"]]
        assert sorted(other, key=str) == sorted(usual, key=str), options


def reasons_name_the_instruction():
    report = analyse(program("loops", "gcc", "-O2"))
    loops = {loop["function"]: loop for loop in report["loops"]}
    for function, text in (("c0_finish", "clFinish has to be answered at once"),
                           ("c0_prints", "calls "), ("c0_elsewhere", "calls elsewhere"),
                           ("s1_checked", "--assume-success"), ("c0_converges", "tests a result"),
                           ("c0_random", "it is not known how src_offset"),
                           ("c0_kept", "stores a result where other code may read it"),
                           ("c0_callback", "calls a function of the program back")):
        reasons = loops[function]["reasons"]
        assert any(text in r["text"] for r in reasons), (function, reasons)
        assert all(r["address"] for r in reasons), (function, reasons)


def results_are_given_back():
    for compiler in COMPILERS:
        for level in LEVELS:
            report = analyse(program("loops", compiler, level))
            for loop in report["loops"]:
                if loop["function"] in ("c1_last_status", "c3_last_one"):
                    calls = {call["address"] for call in loop["calls"]}
                    assert loop["results"], (loop["function"], compiler, level)
                    assert all(r["call"] in calls for r in loop["results"])


def big_functions_are_given_up():
    """A function with more variables than are kept apart: none of its loops is known."""
    source = path("big.c")
    lines = [f"\tvolatile int v{i} = {i};" for i in range(600)]
    with open(source, "w", encoding="utf-8") as file:
        file.write("#include <CL/cl.h>\nvoid big(cl_command_queue q, int n);\n"
                   "void big(cl_command_queue q, int n)\n{\n" + "\n".join(lines) +
                   "\n\tfor (int i = 0; i < n; i++)\n\t\tclFlush(q);\n}\n"
                   "int main(void) { return 0; }\n")
    make("gcc", "-w", "-O0", source, library(), "-o", path("big"))
    loops = analyse(path("big"))["loops"]
    assert len(loops) == 1 and loops[0]["class"] is None, loops
    assert any("more values" in r["text"] for r in loops[0]["reasons"]), loops


def functions_of_many_frames_are_given_up():
    """A function that aligns its stack more often than there are symbols, and pushes a launch."""
    with open(path("frames.c"), "w", encoding="utf-8") as file:
        file.write("""
struct dim { unsigned int x, y, z; };
unsigned int __cudaPushCallConfiguration(struct dim grid, struct dim block, unsigned long shared,
					 void *stream);
void other(void);
void frames(struct dim d, long n);
void frames(struct dim d, long n)
{
	for (long i = 0; i < n; i++) {
		__asm__ volatile(".rept 600; and $-16, %rsp; .endr");
		__cudaPushCallConfiguration(d, d, 0, 0);
		other();
	}
}
""")
    make("gcc", "-w", "-O2", "-shared", "-fPIC", path("frames.c"), "-o", path("frames"))
    loops = analyse(path("frames"))["loops"]
    assert len(loops) == 1 and loops[0]["class"] is None, loops
    assert any("more values" in r["text"] for r in loops[0]["reasons"]), loops


def registers_of_callees_are_followed():
    """A function passes a status on in a vector register that its caller does not name."""
    with open(path("vector.c"), "w", encoding="utf-8") as file:
        file.write("""#include <CL/cl.h>
static __attribute__((noinline)) long through(long v, long c)
{
	long out;

	__asm__ volatile("pxor %%xmm9, %%xmm9; test %2, %2; je 1f; movq %1, %%xmm9; "
			 "1: movq %%xmm9, %0" : "=r"(out) : "r"(v), "r"(c) : "xmm9", "cc");
	return out;
}

void passed_on(cl_command_queue q, long n);
void passed_on(cl_command_queue q, long n)
{
	for (long i = 0; i < n; i++)
		if (through(clFlush(q), n))
			break;
}

int main(void) { return 0; }
""")
    make("gcc", "-w", "-O2", path("vector.c"), library(), "-o", path("vector"))
    loops = analyse(path("vector"))["loops"]
    assert len(loops) == 1 and loops[0]["class"] is None, loops
    assert any("tests a status" in r["text"] for r in loops[0]["reasons"]), loops


def a_cached_report_is_the_same():
    name = program("loops", "gcc", "-O2", "-Wl,--build-id=sha1")
    env = dict(os.environ, XDG_CACHE_HOME=path("cache"))
    first = run(DEFER, "analyse", name, env=env)
    files = glob.glob(path("cache/mgpu/defer/*.json"))
    assert len(files) == 1, files
    assert run(DEFER, "analyse", name, env=env).stdout == first.stdout
    # That it is read: of a report that was changed the change is printed.
    with open(files[0], encoding="utf-8") as file:
        text = file.read()
    with open(files[0], "w", encoding="utf-8") as file:
        file.write(text.replace("clFinish has to be answered", "CHANGED"))
    assert "CHANGED" in run(DEFER, "analyse", name, env=env).stdout
    assert "CHANGED" not in run(DEFER, "analyse", "--assume-success", name, env=env).stdout
    # A damaged one, and one of another version, are made anew.
    for damage in ("{", "[]", '{"version": 0}', text.replace('"version":', '"was":')):
        with open(files[0], "w", encoding="utf-8") as file:
            file.write(damage)
        assert run(DEFER, "analyse", name, env=env).stdout == first.stdout, damage
    # Where none can be kept the report is printed all the same.
    with open(path("no-folder"), "w", encoding="utf-8"):
        pass
    assert run(DEFER, "analyse", name, env=dict(env, XDG_CACHE_HOME=path("no-folder"))).stdout \
        == first.stdout


def a_picture_has_the_loops():
    name = program("loops", "gcc", "-O2")
    done = run(DEFER, "analyse", "--picture", path("loops.dot"), name)
    assert not done.returncode, done.stderr
    with open(path("loops.dot"), encoding="utf-8") as file:
        text = file.read()
    for part in ("c3_scratch\\nloop at 0x", ": class 3", "clCreateBuffer\\l", "not deferrable",
                 "! clFinish has to be answered"):
        assert part in text, part
    assert text.count("subgraph") > 60
    assert text.startswith("digraph") and text.endswith("}\n")
    assert text.count("{") == text.count("}")
    done = run(DEFER, "analyse", "--picture", path("loops.gif"), name)
    assert done.returncode == 2 and "must end in .dot, .svg, .png or .pdf" in done.stderr
    done = run(DEFER, "analyse", "--picture", path("loops.svg"), name, env={"PATH": tmp.name})
    assert done.returncode == 1 and "a .dot file does not need it" in done.stderr, done.stderr
    assert not os.path.exists(path("loops.svg"))
    # A program of this name that fails, and one that reads nothing.
    for script in ("cat >/dev/null\nexit 3", "exit 3"):
        with open(path("dot"), "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        os.chmod(path("dot"), 0o755)
        done = run(DEFER, "analyse", "--picture", path("loops.svg"), name, env={"PATH": tmp.name})
        assert done.returncode == 1 and "a .dot file does not need it" in done.stderr, done.stderr
    done = run(DEFER, "analyse", "--picture", "/nowhere/loops.dot", name)
    assert done.returncode == 1 and "/nowhere/loops.dot" in done.stderr


def other_files_are_refused():
    with open(path("text"), "w", encoding="utf-8") as file:
        file.write("no program\n")
    with open(program("loops", "gcc", "-O2"), "rb") as file:
        whole = file.read()
    for name, content in (("short", whole[:5000]), ("arm", whole[:18] + b"\xb7\0" + whole[20:]),
                          ("object", whole[:16] + b"\1\0" + whole[18:]), ("empty", b"")):
        with open(path(name), "wb") as file:
            file.write(content)
    for name, error in ((path("text"), "is not an ELF file"), (path("missing"), "No such file"),
                        (path("short"), "is it whole"), (path("arm"), "not for x86-64"),
                        (path("object"), "link it first"), (path("empty"), "size is 0"),
                        (tmp.name, "not a file")):
        done = run(DEFER, "analyse", name)
        assert done.returncode == 1 and error in done.stderr and not done.stdout, \
            (name, done.stderr)
        assert done.stderr.startswith("mgpu-defer: " + name), done.stderr
    done = run(DEFER, "analyse", "/bin/true")
    assert not done.returncode and "0 loops with such calls" in done.stdout, done


def wrong_calls_are_refused():
    for args, error in (((), "no command; the commands are: analyse PROGRAM, runtime"),
                        (("analyze",), "did you mean 'analyse'"),
                        (("analyse",), "analyse takes one program, not 0"),
                        (("analyse", "a", "b"), "analyse takes one program, not 2"),
                        (("runtime",), "runtime takes one program, not 0"),
                        (("analyse", "--jason", "a"), "unknown option --jason"),
                        (("analyse", "--picture"), "--picture wants a value")):
        done = run(DEFER, *args)
        assert done.returncode == 2 and error in done.stderr, (args, done.stderr)


def the_manual_page_has_all_options():
    help_text = run(DEFER, "--help").stdout
    with open(os.path.join(TOP, "Documentation", "man", "mgpu-defer.1"), encoding="utf-8") as file:
        page = file.read().replace("\\-", "-")
    options = set(re.findall(r"--[a-z-]+", help_text))
    assert len(options) > 5, options
    for option in options:
        assert option in page, option


def descriptions_are_refused_if_wrong():
    table = os.path.join(TOP, "ctl", "api", "table")
    good = {"api": "test", "types": {"scalars": {"int": 4}, "handles": {"object": "ERROR"},
                                     "structs": {"pair": 12, "large": 24}},
            "functions": {"f": {"args": {"n": "int", "p": "out object * n"},
                                "returns": "status"}}}
    changes = (({"returns": "state"}, "returns: unknown 'state'"),
               ({"wait": True}, "unknown key 'wait'"),
               ({"args": {"n": "integer"}}, "unknown type 'integer'"),
               ({"args": {"p": "in object * n"}}, "no argument is called 'n'"),
               ({"args": {"p": "in object * (4"}}, "is not"),
               ({"args": {"p": "in objects"}}, "unknown type 'objects'"),
               ({"args": {"p": "callback when"}}, "unknown callback 'when'"),
               ({"args": {f"n{i}": "int" for i in range(17)}}, "more than 16 arguments"),
               ({"blocks": "when"}, "blocks: no argument is called 'when'"),
               ({"args": {"s": "large"}}, "'large' does not lie in two registers"),
               ({"args": {**{f"n{i}": "int" for i in range(5)}, "s": "pair"}},
                "'s' does not lie in registers"),
               ({"args": {**{f"s{i}": "pair" for i in range(3)},
                          **{f"n{i}": "int" for i in range(11)}}}, "more than 16 arguments"),
               ({"local": "twice"}, "local: unknown 'twice'"),
               ({"configuration": "peek"}, "configuration: unknown 'peek'"),
               ({"cases": {"when": {}}}, "cases: no number is called 'when'"),
               ({"cases": {"p": {}}}, "cases: no number is called 'p'"),
               ({"cases": {"n": {1: {"q": "int"}}}}, "cases: no argument is called 'q'"),
               ({"cases": {"n": {}, "p": {}}}, "cases: more than one argument decides"),
               ({"also": ["g", "f"]}, "described twice"))
    for change, error in (({}, None), *changes):
        text = json.loads(json.dumps(good))
        text["functions"]["f"].update(change)
        with open(path("api.yaml"), "w", encoding="utf-8") as file:
            yaml.safe_dump(text, file, sort_keys=False)
        done = run(sys.executable, table, path("api.yaml"))
        if error is None:
            assert not done.returncode and '"p", API_OUT, API_OBJECT, 0, 8' in done.stdout, done
        else:
            assert done.returncode and error in done.stderr, (change, done.stderr)
    done = run(sys.executable, table, API[0], API[0])
    assert done.returncode and "described twice" in done.stderr, done.stderr


if __name__ == "__main__":
    make("make", "-s", "-C", os.path.join(TOP, "ctl"), "defer", f"BUILD={BUILD}")
    with tmp:
        sys.exit(pytap.run([
            (loops_are_classified, "loops get their classes, whatever compiled them"),
            (held_out_loops_are_classified, "so do loops that the analysis was not made with"),
            (fresh_loops_are_classified, "and loops that it was changed for last"),
            (stripped_programs_are_alike, "a stripped program has the same loops"),
            (the_way_of_linking_does_not_matter, "the way of linking does not matter"),
            (reasons_name_the_instruction, "a reason names the instruction"),
            (results_are_given_back, "a result that is used behind the loop is given back"),
            (big_functions_are_given_up, "a function with too many variables is given up"),
            (functions_of_many_frames_are_given_up, "so is one that aligns its stack too often"),
            (registers_of_callees_are_followed,
             "a result is followed through registers that only a callee names"),
            (a_cached_report_is_the_same, "a report from the cache is the same"),
            (a_picture_has_the_loops, "a picture has the loops and their classes"),
            (other_files_are_refused, "files that are no programs for x86-64 are refused"),
            (wrong_calls_are_refused, "calls that make no sense are refused"),
            (the_manual_page_has_all_options, "the manual page has all options"),
            (descriptions_are_refused_if_wrong, "a wrong description of an API is refused"),
        ]))
