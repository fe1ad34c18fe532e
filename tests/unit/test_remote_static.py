#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Programs that were linked with CUDA's runtime library statically, redirected to our own.

NVIDIA's static library does not run here, natively or remoted. So a program's calls are compared
with those of the same source, linked with our shared library. Where there is no nvcc a library in
C takes the place of NVIDIA's: it has the same functions, and each ends the program.
"""

import os
import random
import re
import subprocess
import sys

import pytap
import remoted
from remoted import BUILD, CTL, MODES, PLAIN, TOP, build, counts, path, run, wait_until
from test_remote_cuda import (HERE, INCLUDES, NVCC, RUNTIME, STRICT, TOOLKIT, alone, recorder,
                              runtime_program, serving, taken)

SOURCES = os.path.join(HERE, "static")
DEFER, CUDA = os.path.join(CTL, "mgpu-defer"), os.path.join(CTL, "cuda")
ARCHIVE = os.path.join(TOOLKIT, "lib64", "libcudart_static.a")
WRAPPER = os.path.join(CTL, "mgpu-cuda")
NOWHERE = {"CUDA_HOME": "/nowhere", "MGPU_CUDART_STATIC": "/nowhere/libcudart_static.a"}
REDIRECTED = dict(PLAIN, LD_PRELOAD=os.path.join(CUDA, "libmgpu-redirect.so"),
                  PATH=CTL + ":" + os.environ["PATH"])


def needs_nvcc():
    """Skip a test where the toolkit is not installed."""
    if not os.path.exists(NVCC):
        raise pytap.Skip("CUDA's toolkit is not installed: no nvcc")


def functions(name, **env):
    """Return what is found in a program: version, rooms and addresses by name, and errors."""
    done = run(DEFER, "runtime", path(name), env=dict(PLAIN, **env))
    lines = done.stdout.splitlines()
    if done.returncode:
        assert done.returncode == 1 and not lines and done.stderr.startswith("mgpu-defer: "), \
            (done.returncode, done.stderr)
        return None, {}, done.stderr
    assert lines[-1] == "end" and lines[0].startswith("cudart ") and not done.stderr, done
    found = {}
    for line in lines[1:-1]:
        address, room, code, function = line.split()
        assert len(code) == 32, line
        found[function] = (int(address, 16), int(room))
    return int(lines[0].split()[1]), found, ""


def symbols(name):
    """Return addresses of a program's functions."""
    done = run("nm", path(name))
    return {name: int(address, 16) for address, name in
            re.findall(r"^(\w+) [tT] (\w+)$", done.stdout, re.M)}


def redirected(name, *args, env=None):
    """Run a program on the library that records, redirected; return what it left and the record."""
    folder = f"{recorder()}:{CUDA}"
    done = run(path(name), *args, env=dict(REDIRECTED, LD_LIBRARY_PATH=folder,
                                           MGPU_CUDA_RECORD=path("redirected"), **env or {}))
    return done, taken("redirected")


# ---- a library in place of NVIDIA's ----

PROLOGUE = """
#include <stdio.h>
#include <unistd.h>
void lost(const char *name);
static void (*volatile end)(int) = _exit;
const char *const texts[] = { "libcuda.so.1", "cudaErrorInsufficientDriver" };
int times_lost;
void lost(const char *name)
{
	times_lost++;
	fprintf(stderr, "%s was not redirected, %s\\n", name, texts[1]);
	end(99);
}
__attribute__((noinline)) int store_version(int *version);
int store_version(int *version)
{
	*version = VERSION;
	return 0;
}
int cudaRuntimeGetVersion(int *version)
{
	lost("cudaRuntimeGetVersion");
	return store_version(version);
}
"""


def fake_archive(name, *flags, more="", version=13000, without=()):
    """Make an archive with the functions of our library and more, once; return its path."""
    name += "".join(flags)
    if os.path.exists(path(name + ".a")):
        return path(name + ".a")
    done = run("nm", "-D", "--defined-only", os.path.join(CUDA, "libcudart.so.13"))
    names = sorted(set(re.findall(r" T ((?:__)?cuda\w+)@", done.stdout)))
    assert len(names) > 400, done
    with open(path(name + ".c"), "w", encoding="utf-8") as file:
        file.write(PROLOGUE.replace("VERSION", str(version)))
        file.write("".join(f'void {f}(void)\n{{\n\tlost("{f}");\n}}\n' for f in names
                           if f != "cudaRuntimeGetVersion" and f not in without))
        file.write(more)
    build("gcc", "-O2", *flags, "-c", path(name + ".c"), "-o", path(name + ".o"))
    build("ar", "rcs", path(name + ".a"), path(name + ".o"))
    return path(name + ".a")


def fake_program(name, archive, *flags, source=os.path.join(RUNTIME, "calls.c"), strip=False,
                 libraries=()):
    """Link a program with such an archive."""
    compiled = path("".join((os.path.basename(source), *flags)).replace("/", "-") + ".o")
    if not os.path.exists(compiled):
        build("gcc", *STRICT, *INCLUDES, *flags, "-c", source, "-o", compiled)
    build("gcc", *flags, compiled, archive, "-o", path(name), "-lpthread", *libraries)
    if strip:
        build("strip", path(name))


def does_as_shared(name, shared="calls"):
    """Compare a redirected program with the one that is linked with the shared library."""
    native, record = alone(runtime_program(shared))
    done, calls = redirected(name)
    assert done.returncode == 0 and done.stdout == native.stdout, (name, done)
    assert calls == record and len(record) > 60, (name, record, calls)
    return done


def programs_without_nvidias_library_do_the_same():
    archive = fake_archive("fake")
    for flags in (("-no-pie",), ("-pie", "-fPIE")):
        fake_program("whole", archive, *flags)
        does_as_shared("whole")
        fake_program("stripped", archive, *flags, strip=True)
        done, calls = redirected("stripped", env=NOWHERE)
        assert done.returncode == 99 and not calls, (done, calls)
        assert "not remoted" in done.stderr and "/nowhere/" in done.stderr, done
        os.environ["MGPU_CUDART_STATIC"] = REDIRECTED["MGPU_CUDART_STATIC"] = archive
        try:
            done = does_as_shared("stripped")
            assert not done.stderr, done
        finally:
            del REDIRECTED["MGPU_CUDART_STATIC"], os.environ["MGPU_CUDART_STATIC"]


def loops_are_deferred():
    """The front end has the loops of a program that calls its own copy of the library."""
    archive = fake_archive("fake")
    fake_program("static-loops", archive, source=os.path.join(RUNTIME, "loops.c"))
    run(DEFER, "analyse", "--assume-success", path("static-loops"), env=PLAIN)
    _, record = alone(runtime_program("loops"))
    with serving() as server:
        done = run(path("static-loops"), env=dict(
            server.env("deferred"), LD_PRELOAD=REDIRECTED["LD_PRELOAD"], PATH=REDIRECTED["PATH"]))
        wait_until(server.has_none)
    assert done.returncode == 0, done
    assert taken("remoted") == record
    counted = counts(done)
    assert counted["grouped"] > 0.9 * counted["requests"] > 1000, counted


def signatures_are_the_symbols():
    gold = ("-fuse-ld=gold",) if os.path.exists("/usr/bin/ld.gold") else ()
    for flags in (("-Os", "-fPIC"), ("-O2", "-fcf-protection", *gold), ("-O1", "-fno-pie")):
        archive = fake_archive("fake", *flags)
        fake_program("whole", archive, "-no-pie", *flags)
        build("strip", path("whole"), "-o", path("stripped"))
        by_name = functions("whole")
        assert by_name[0] == 13000 and len(by_name[1]) > 400, by_name
        assert functions("stripped", MGPU_CUDART_STATIC=archive) == by_name, flags
        real = symbols("whole")
        assert all(real[name] == at for name, (at, _) in by_name[1].items()), flags


# Two functions that differ in nothing but the function they call; one that is too short to be told.
TWINS = r"""
static volatile int n;
#define BODY(helper)						\
{								\
	for (int i = 0; i < a; i++)				\
		a = (a * 9 ^ a << 3) % (i | 7) + a / (a - i);	\
	return helper(a + n);					\
}
__attribute__((noinline)) int one(int a);
__attribute__((noinline)) int two(int a);
int one(int a)
{
	for (n = a; n < 99; n++)
		a = (a * 77 ^ 0x1234567) % (a | 1) + (a >> 7) * (a >> 9) - a * a * 5;
	return a;
}
int two(int a)
{
	for (n = a; n > 99; n--)
		a = (a * 76 ^ 0x7654321) % (a | 3) + (a << 7) * (a << 9) - a * a * 6;
	return a;
}
int cudaTwin(int a) BODY(one)
int cudaOther(int a) BODY(two)
"""
SHORT = "int cudaShort(void) { return 0; }\n"
LIBRARY = PROLOGUE.replace("VERSION", "13000") + TWINS
USER = """
int cudaTwin(int a);
int cudaOther(int a);
int cudaRuntimeGetVersion(int *version);
int cudaShort(void);
int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 3)
		return CALL;
	return (argc > 1 ? cudaTwin(argc) : cudaOther(argc)) + cudaRuntimeGetVersion(&argc);
}
"""


def small(library, call="0"):
    """Build a program and an archive of sections with a function each; return the archive."""
    for name, text in (("small.c", library), ("user.c", USER.replace("CALL", call))):
        with open(path(name), "w", encoding="utf-8") as file:
            file.write(text)
    build("gcc", "-O2", "-ffunction-sections", "-fno-ipa-icf", "-c", path("small.c"), "-o",
          path("small.o"))
    if os.path.exists(path("small.a")):
        os.unlink(path("small.a"))
    build("ar", "rcs", path("small.a"), path("small.o"))
    build("gcc", "-O2", path("user.c"), path("small.a"), "-Wl,--gc-sections", "-o", path("small"))
    build("strip", path("small"), "-o", path("small-stripped"))
    return path("small.a")


def twins_are_told_apart_by_their_callees():
    archive = small(LIBRARY)
    found = functions("small-stripped", MGPU_CUDART_STATIC=archive)
    real = symbols("small")
    assert found[0] == 13000 and set(found[1]) == {"cudaTwin", "cudaOther",
                                                   "cudaRuntimeGetVersion"}, found
    assert all(real[name] == at for name, (at, _) in found[1].items()), (real, found)


def what_cannot_be_told_is_refused():
    # Of the first the program has none, but code with its bytes.
    archive = small(LIBRARY.replace("two(a + n)", "one(a + n)").replace("BODY(two)", "BODY(one)"))
    version, found, error = functions("small-stripped", MGPU_CUDART_STATIC=archive)
    assert version is None and not found and "more than once" in error, error
    assert "nvcc -cudart shared" in error and re.search("cuda(Twin|Other)", error), error
    archive = small(LIBRARY + SHORT, "cudaShort()")
    error = functions("small-stripped", MGPU_CUDART_STATIC=archive)[2]
    assert "cudaShort" in error, error
    assert functions("small")[0] == 13000
    # Another library: one constant differs.
    small(LIBRARY)
    os.rename(path("small-stripped"), path("before"))
    archive = small(LIBRARY.replace("0x1234567", "0x1234568").replace("lost\"", "gone\""))
    error = functions("before", MGPU_CUDART_STATIC=archive)[2]
    assert "code as that of" in error or "is not that of" in error, error


def damaged_archives_get_an_error():
    with open(small(LIBRARY), "rb") as file:
        whole = file.read()
    seed = int(os.environ.get("FUZZ_SEED", "1"))
    numbers = random.Random(seed)
    real = symbols("small")
    for number in range(100):
        data = bytearray(whole)
        if number % 3:
            for _ in range(numbers.randrange(1, 9)):
                data[numbers.randrange(len(data))] = numbers.randrange(256)
        else:
            del data[numbers.randrange(len(data)):]
        with open(path("damaged"), "wb") as file:
            file.write(data)
        _, found, error = functions("small-stripped", MGPU_CUDART_STATIC=path("damaged"))
        assert bool(found) != bool(error), (seed, number, found, error)
        # Names may be damaged; where there are functions may not.
        assert {at for at, _ in found.values()} <= set(real.values()), (seed, number, found)
    for name, text in (("empty", b""), ("text", b"text\n")):
        with open(path(name), "wb") as file:
            file.write(text)
        error = functions("small-stripped", MGPU_CUDART_STATIC=path(name))[2]
        assert path(name) in error and "name another archive" in error, error


def other_files_have_no_runtime_library():
    assert functions("/bin/true") == (0, {}, "")
    runtime_program("calls")
    assert functions("runtime-calls") == (0, {}, "")
    done = run(DEFER, "runtime", path("absent"))
    assert done.returncode == 1 and "No such file" in done.stderr, done
    archive = fake_archive("fake")
    fake_program("whole", archive)
    with open(path("whole"), "rb") as file:
        data = file.read()
    with open(path("half"), "wb") as file:
        file.write(data[:len(data) // 2])
    assert "is it whole" in functions("half")[2]
    done = run("/bin/echo", "hello", env=REDIRECTED)
    assert done.stdout == "hello\n" and not done.stderr, done


def other_versions_are_refused():
    fake_program("twelve", fake_archive("fake12", version=12040))
    assert functions("twelve")[0] == 12040
    done, calls = redirected("twelve")
    assert done.returncode == 99 and not calls, done
    assert "version 12.4, and one of 13 is needed" in done.stderr, done
    fake_program("none", fake_archive("fake0", version=7))
    assert "version" in functions("none")[2]


# Functions in assembly, for nothing of a compiler's making is too short.
ASSEMBLY = r"""
__asm__(".text\n"
"	.type cudaGetDeviceCount, @function\n	.globl cudaGetDeviceCount\n"
"	.p2align 4\n"
"cudaGetDeviceCount:\n	.cfi_startproc\n"
"	mov $5, %eax\n{}	ret\n	.cfi_endproc\n"
"	.size cudaGetDeviceCount, . - cudaGetDeviceCount\n"
"{}"
"	.type follows, @function\n	.globl follows\n"
"follows:\n	.cfi_startproc\n{}	ret\n	.cfi_endproc\n"
"	.size follows, . - follows\n");
"""


def assembly(name, own, between, behind):
    """Build a program with such functions; return the room of the first."""
    def text(code):
        return code.replace("\t", "\\t").replace("\n", "\\n")
    rest = fake_archive("rest", without=("cudaGetDeviceCount",))
    with open(path(name + ".c"), "w", encoding="utf-8") as file:
        file.write(ASSEMBLY.format(text(own), text(between), text(behind)))
    build("gcc", "-c", path(name + ".c"), "-o", path(name + ".o"))
    fake_program(name, rest, libraries=[path(name + ".o")])
    return functions(name)[1]["cudaGetDeviceCount"][1]


def functions_without_room_are_refused():
    nops = "\tnop\n" * 12
    for room, own, between, behind in ((16, "", nops, "\tret\n"), (16, "\tlea 9(%rdi),%rsi\n" * 3,
                                                                  "", ""),
                                       (6, "", "", "\tret\n"), (13, "", "\tnop\n" * 7, "\tret\n"),
                                       (10, "", "\tnop\n" * 4 + "\tleave\n\tret\n" + nops, ""),
                                       (5, nops, "", "\tjmp cudaGetDeviceCount + 5\n"),
                                       (9, nops, "", "\tje cudaGetDeviceCount + 9\n"),
                                       (9, nops, "", "\tbnd jmp cudaGetDeviceCount + 9\n"),
                                       (16, nops, "", "\tcall cudaGetDeviceCount\n"),
                                       # Bytes that look like a jump, within an instruction.
                                       (16, nops, "", "\tmov $0xf2ebf2eb, %eax\n")):
        got = assembly("room", own, between, behind)
        assert got == room, (got, room, own, between, behind)
        os.rename(path("room"), path(f"room{room}"))
    done, calls = redirected("room16")
    assert done.returncode == 0 and len(calls) > 60, done
    for room in (5, 13):
        done, calls = redirected(f"room{room}")
        assert done.returncode == 99 and not calls, (room, done)
        assert f"cudaGetDeviceCount has room for {room} bytes" in done.stderr, done
        assert "link it with 'nvcc -cudart shared'" in done.stderr, done


def unknown_functions_are_named():
    source = path("unknown.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write("""
#include "common.h"
cudaError_t cudaOfTomorrow(int a);
cudaError_t cudaMalloc3DArray(void);
cudaError_t cudaMineBefore(int a);
cudaError_t cudaMineBefore(int a)
{
	return a;
}
int main(void)
{
	cudaError_t first = cudaOfTomorrow(1), last = cudaGetLastError();
	printf("%u %u %u %u\\n", first, cudaOfTomorrow(2), last, cudaMineBefore(6));
	printf("%u\\n", cudaMalloc3DArray());
	(void)check, (void)good;
	return 0;
}
""")
    # The last one is a function that ours has, so that the one before is the library's, too.
    more = "".join(f'void {name}(void)\n{{\n\tlost("{name}");\n}}\n'
                   for name in ("cudaOfTomorrow", "cudaFree"))
    archive = fake_archive("tomorrow", more=more, without=("cudaFree",))
    fake_program("unknown", archive, "-I" + RUNTIME, "-Wno-unused", source=source)
    done, _ = redirected("unknown")
    assert done.returncode == 0 and done.stdout == "801 801 801 6\n801\n", done
    assert done.stderr == "mgpu: cudaOfTomorrow: this runtime library does not have it\n" \
        "mgpu: cudaMalloc3DArray: this runtime library does not have it\n", done


def the_tool_is_needed():
    archive = fake_archive("fake")
    fake_program("whole", archive)
    done, calls = redirected("whole", env={"PATH": "/usr/bin"})
    assert done.returncode == 99 and not calls, done
    assert "mgpu-defer" in done.stderr and "$PATH" in done.stderr, done


def the_analysis_names_calls():
    with open(path("loop.c"), "w", encoding="utf-8") as file:
        file.write('#include "common.h"\n#include "cuda_api.h"\n'
                   "CUresult cuMemsetD8_v2(CUdeviceptr p, unsigned char c, size_t n);\n"
                   "int main(void)\n{\n\tvoid *p = NULL;\n\t(void)check, (void)good;\n"
                   "\tfor (int i = 0; i < 100; i++) {\n\t\tcuMemsetD8_v2(0, 1, 2);\n"
                   "\t\tcudaEventCreateWithFlags((cudaEvent_t *)&p, 0);\n"
                   "\t}\n\treturn 0;\n}\n")
    archive = fake_archive("fake")
    fake_program("loop", archive, "-I" + RUNTIME, "-Wno-unused", source=path("loop.c"),
                 libraries=("-L" + recorder(), "-l:libcuda.so.1"), strip=True)
    done = run(DEFER, "analyse", path("loop"), env=dict(PLAIN, MGPU_CUDART_STATIC=archive))
    assert "cudaEventCreateWithFlags" in done.stdout and not done.stderr, done
    done = run(DEFER, "analyse", "--no-cache", path("loop"), env=dict(PLAIN, **NOWHERE))
    assert "cudaEvent" not in done.stdout and "have no names" in done.stderr, done
    assert done.returncode == 0, done


# ---- NVIDIA's ----

def nvcc_links(name, shared, objects, *ways):
    """Link a program with the shared library, and statically in some ways; yield their names."""
    if not os.path.exists(path(shared)):
        build(NVCC, "-arch=sm_80", *ways[0][1], "-cudart", "shared", *objects, "-o", path(shared))
        for kind, flags in ways:
            build(NVCC, "-arch=sm_80", *flags, *objects, "-o", path(name + kind))
            build("strip", path(name + kind), "-o", path(name + kind + "-stripped"))
    for kind, _ in ways:
        yield name + kind, shared
        yield name + kind + "-stripped", shared


def nvcc_objects(level, *sources, flags=()):
    """Compile files; return the names of their objects."""
    needs_nvcc()
    objects = []
    for source in sources:
        name = os.path.basename(source)
        objects.append(path(name + level + ".o"))
        if not os.path.exists(objects[-1]):
            build(NVCC, "-arch=sm_80", "--no-compress", "-std=c++17", level, *flags, "-c", source,
                  "-o", objects[-1])
    return objects


def nvcc_programs():
    """Build programs in all ways; yield names of a static one and of the shared one."""
    for level in ("-O0", "-O3"):
        objects = nvcc_objects(level, *(os.path.join(SOURCES, part + ".cu")
                                        for part in ("main", "part")))
        yield from nvcc_links("static" + level, "shared" + level, objects, ("-pie", ()),
                              ("-fixed", ("-Xcompiler", "-no-pie")))
    linked = ("-rdc=true", "--default-stream", "per-thread")
    objects = nvcc_objects("-O1", os.path.join(RUNTIME, "samples.cu"), flags=linked)
    yield from nvcc_links("samples", "samples-shared", objects, ("-linked", linked))


def named(done):
    """Return the lines that name calls that are not supported."""
    return [line for line in done.stderr.splitlines() if "this runtime library" in line]


def nvccs_programs_do_the_same():
    native = {}
    with serving() as server:
        for number, (name, shared) in enumerate(nvcc_programs()):
            if shared not in native:
                native[shared] = alone(shared)
            wanted, record = native[shared]
            assert len(record) > 40 and wanted.stdout, (wanted, record)
            # Each mode with another program.
            env = server.env(MODES[number % len(MODES)])
            remote = run(path(name), env=dict(env, LD_PRELOAD=REDIRECTED["LD_PRELOAD"],
                                              PATH=REDIRECTED["PATH"]))
            assert remote.returncode == 0, (name, remote, server.said())
            assert remote.stdout == wanted.stdout, (name, remote.stdout, wanted.stdout)
            wait_until(server.has_none)
            calls = taken("remoted")
            assert calls == record, (name, calls, record)
            assert named(remote) == named(wanted), (remote, wanted)
    assert len(native) == 3 and len(named(native["shared-O0"][0])) == 1, native
    assert native["shared-O0"][0].stdout.count("801 cudaErrorNotSupported\n") == 1, native


def nvccs_functions_are_found():
    seen = 0
    for name, _ in nvcc_programs():
        version, found, error = functions(name)
        assert version >= 13000 and not error, (name, version, error)
        ours = run("nm", "-D", "--defined-only", os.path.join(CUDA, "libcudart.so.13")).stdout
        ours = set(re.findall(r" [TW] (\w+)@@libcudart\.so\.13$", ours, re.M))
        assert ours <= set(found), (name, ours - set(found))
        assert all(found[function][1] >= 14 for function in ours), (name, found)
        if name.endswith("stripped"):
            assert set(found) == ours, (name, set(found) - ours)
            real = symbols(name[:-len("-stripped")])
            assert all(real[function] == found[function][0] for function in ours), name
            seen += 1
    assert seen == 5, seen


def the_wrapper_runs_programs():
    for args, status, said in (((), 2, "usage: "), (("--",), 2, "usage: "),
                               (("--help",), 0, "usage: "),
                               (("--bad",), 2, "unknown option '--bad'"),
                               (("--", "/bin/echo", "a b"), 0, "a b\n"),
                               (("/nowhere/program",), 127, "not found")):
        done = run(WRAPPER, *args)
        assert done.returncode == status and said in done.stdout + done.stderr, (args, done)
    fake_program("whole", fake_archive("fake"))
    with serving() as server:
        native, record = alone(runtime_program("calls"))
        env = server.env("batched")
        del env["LD_LIBRARY_PATH"]
        done = run(WRAPPER, path("whole"), env=env)
        assert done.returncode == 0 and done.stdout == native.stdout, done
        wait_until(server.has_none)
        assert taken("remoted") == record


if __name__ == "__main__":
    subprocess.run(["make", "-s", "-C", os.path.join(TOP, "ctl"), "remote", "defer",
                    f"BUILD={BUILD}"], check=True)
    with remoted.tmp:
        sys.exit(pytap.run([
            (programs_without_nvidias_library_do_the_same,
             "programs with a library in C do the same, redirected"),
            (loops_are_deferred, "loops of redirected programs are sent as groups"),
            (signatures_are_the_symbols, "a stripped program's functions are those of its symbols"),
            (twins_are_told_apart_by_their_callees, "equal functions are told apart by callees"),
            (what_cannot_be_told_is_refused, "functions that cannot be told apart are refused"),
            (damaged_archives_get_an_error, "a damaged archive gets an error"),
            (other_files_have_no_runtime_library, "other files have no runtime library"),
            (other_versions_are_refused, "libraries of another version are refused"),
            (functions_without_room_are_refused, "functions without room for a jump are refused"),
            (unknown_functions_are_named, "functions that ours does not have fail, and are named"),
            (the_tool_is_needed, "without mgpu-defer a line says so"),
            (the_analysis_names_calls, "the analysis names calls of a stripped program"),
            (the_wrapper_runs_programs, "mgpu-cuda runs programs"),
            (nvccs_functions_are_found, "the functions of nvcc's library are found"),
            (nvccs_programs_do_the_same, "programs of nvcc do the same, redirected"),
        ]))
