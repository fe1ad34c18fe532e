#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""CUDA's driver API through mgpu-remoted: the same calls, the same results, the same errors.

The programs are tests/remote/cuda/*.c, and for the runtime API, on our own library of it, those in
tests/remote/cuda/runtime. A library of the driver that records its calls is used by
the programs themselves and by mgpu-remoted: the records and what the programs print must be the same
with a round trip for each call, batched, and with loops deferred.
"""

import contextlib
import ctypes
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

import yaml

import pytap
import remoted
from remoted import (BUILD, CTL, MODES, PLAIN, TOP, analyse, build, counts, finish, path, run, start,
                     wait_until)

HERE, REMOTE = os.path.join(TOP, "tests", "remote", "cuda"), os.path.join(TOP, "ctl", "remote")
RUNTIME = os.path.join(HERE, "runtime")
INCLUDES = ["-I" + os.path.join(REMOTE, "cuda"), "-I" + os.path.join(REMOTE, "cuda", "runtime"),
            "-I" + os.path.join(CTL, "gen")]
STRICT = ["-std=gnu17", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-Wextra", "-Werror"]
PROGRAMS = ("vecadd", "loops", "search", "streams", "modules", "errors")
TOOLKIT = os.environ.get("CUDA_HOME", "/usr/local/cuda")
OTHERS = 0x7000000000           # as in record.c
NVCC = shutil.which("nvcc") or os.path.join(TOOLKIT, "bin", "nvcc")


def recorder(name="recorder", *flags):
    """Return the folder of a library that records."""
    if not os.path.exists(path(name)):
        os.mkdir(path(name))
        sources = [os.path.join(REMOTE, "cuda", part + ".c") for part in
                   ("errors", "image", "ranges")]
        build("gcc", *STRICT, "-Wpedantic", "-fPIC", "-shared", "-fvisibility=hidden",
              "-Wl,-z,defs", "-Wl,-soname,libcuda.so.1", "-I" + REMOTE, *INCLUDES, *flags,
              os.path.join(HERE, "record.c"), *sources, "-o", path(name + "/libcuda.so.1"))
    return path(name)


def program(name):
    """Return a program below tests/remote/cuda, built."""
    if not os.path.exists(path(name)):
        build("gcc", *STRICT, *INCLUDES, os.path.join(HERE, name + ".c"), "-o", path(name),
              "-L" + recorder(), "-l:libcuda.so.1", "-lpthread")
        analyse(name)
    return path(name)


def runtime_program(name):
    """Return a program in C of the runtime API, built."""
    built = "runtime-" + name
    if not os.path.exists(path(built)):
        build("gcc", *STRICT, *INCLUDES, os.path.join(RUNTIME, name + ".c"), "-o", path(built),
              "-L" + os.path.join(CTL, "cuda"), "-l:libcudart.so.13", "-lpthread")
        analyse(built)
    return built


def taken(name):
    """Return a record, and remove it."""
    if not os.path.exists(path(name)):
        return []
    with open(path(name), encoding="utf-8") as file:
        lines = file.read().splitlines()
    os.unlink(path(name))
    return lines


def serving(*options, folder=None):
    """Have a server with a library of the driver: the one that records if none is given."""
    library = os.path.join(folder or recorder(), "libcuda.so.1")
    return remoted.serving("--cuda", library, *options,
                           env=dict(PLAIN, MGPU_CUDA_RECORD=path("remoted")),
                           client=dict(PLAIN, LD_LIBRARY_PATH=os.path.join(CTL, "cuda"),
                                       MGPU_REMOTE_COUNTS="1"))


def alone(name, *args, folder=None):
    """Run a program by itself, with a library of the driver that records; return the record."""
    # The runtime library is beside the front end, which is not to be found.
    env = dict(PLAIN, LD_LIBRARY_PATH=f"{folder or recorder()}:{os.path.join(CTL, 'cuda')}",
               MGPU_CUDA_RECORD=path("native"))
    native = run(program(name), *args, env=env)
    assert native.returncode == 0, (name, native)
    return native, taken("native")


def compare(server, name, *args, modes=MODES, least=10, folder=None):
    """Compare what a program does by itself with what is done for it; return the last counts."""
    native, record = alone(name, *args, folder=folder)
    assert len(record) >= least, (name, record)
    for mode in modes:
        remote = run(program(name), *args, env=server.env(mode))
        assert remote.returncode == 0, (name, mode, remote, server.said())
        assert remote.stdout == native.stdout, (name, mode, remote.stdout, native.stdout)
        wait_until(server.has_none)
        calls = taken("remoted")
        for number, (wanted, got) in enumerate(zip(record, calls)):
            assert wanted == got, (name, mode, number, wanted, got)
        assert len(record) == len(calls), (name, mode, record[len(calls):], calls[len(record):])
    return counts(remote)


def programs_do_the_same():
    with serving() as server:
        for name in PROGRAMS:
            compare(server, name, least=5)


def loops_are_deferred():
    with serving() as server:
        batched = compare(server, "loops", modes=("batched",))
        deferred = compare(server, "loops", modes=("deferred",))
        assert deferred["requests"] == batched["requests"], (deferred, batched)
        assert batched["groups"] == 0 < deferred["groups"], (deferred, batched)
        assert deferred["grouped"] > 0.9 * deferred["requests"], deferred
        assert deferred["bytes"] < 0.2 * batched["bytes"], (deferred, batched)
        assert batched["waits"] < 40, batched


def drivers_that_know_no_parameters_do():
    with serving(folder=recorder("old", "-DWITHOUT_PARAM_INFO")) as server:
        compare(server, "vecadd", modes=("batched",))
        compare(server, "loops", modes=("deferred",))


def nvccs_images_are_launched():
    if not os.path.exists(NVCC):
        raise pytap.Skip("CUDA's toolkit is not installed: no nvcc")
    source, files = os.path.join(HERE, "kernels.cu"), []
    for kind in ("ptx", "cubin", "fatbin"):
        files.append(path("kernels." + kind))
        build(NVCC, "-arch=sm_80", "--no-compress", "--" + kind, source, "-o", files[-1])
    with serving() as server:
        compare(server, "modules", *files)


def declarations_are_those_of_the_toolkit():
    header = os.path.join(TOOLKIT, "include", "cuda.h")
    if not os.path.exists(header):
        raise pytap.Skip("CUDA's toolkit is not installed: no cuda.h")
    with open(path("both.c"), "w", encoding="utf-8") as file:
        # Each prototype again, with the toolkit's types.
        file.write("#include <cuda.h>\n" + "".join(
            f"#undef {name}\n" for name in ("cuGetProcAddress", "cuDeviceGetUuid",
                                            "cuEventElapsedTime")))
        file.write('#include "cuda_api.h"\n#include "cuda_gen.h"\n')
    build("gcc", "-std=gnu17", "-fsyntax-only", "-Wall", "-Werror",
          "-Wno-deprecated-declarations", *INCLUDES,
          "-I" + os.path.dirname(header), path("both.c"))
    build("gcc", *STRICT, "-DWITH_TOOLKIT", "-I" + os.path.dirname(header),
          os.path.join(HERE, "vecadd.c"), "-o", path("toolkit"),
          "-L" + os.path.join(CTL, "cuda"), "-l:libcuda.so.1")
    with serving() as server:
        ours = run(program("vecadd"), env=server.env("batched"))
        theirs = run(path("toolkit"), env=server.env("batched"))
        assert theirs.returncode == 0 and ours.stdout == theirs.stdout, (ours, theirs)
        wait_until(server.has_none)
        taken("remoted")
    sizes = {"CUDA_MEMCPY2D": 128, "CUlaunchConfig": 56, "CUlaunchAttribute": 72}
    for include in ("<cuda.h>", '"cuda_api.h"'):
        with open(path("sizes.c"), "w", encoding="utf-8") as file:
            file.write(f"#include {include}\n" + "".join(
                f'_Static_assert(sizeof({name}) == {size}, "");\n' for name, size in sizes.items()))
        build("gcc", "-std=gnu17", "-fsyntax-only", *INCLUDES, "-I" + os.path.dirname(header),
              path("sizes.c"))


def functions_are_found_in_a_loaded_library():
    # After the program has begun there is little room for data of threads.
    build("gcc", *STRICT, *INCLUDES, os.path.join(HERE, "loaded.c"), "-o", path("loaded"), "-ldl")
    with serving() as server:
        done = run(path("loaded"), env=server.env("batched"))
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) == 12, done
    for line in lines[:-1]:
        known = not line.startswith(("cuMem 3020", "cuGraphCreate", " 0")) and \
            line not in lines[2:3]
        assert line.endswith(": 0 0, as wanted" if known else ": 500 1, as wanted"), line
    assert lines[-1] == "table: 500", lines
    assert done.stderr.count("cuGetExportTable") == 1, done


# Calls of the driver that the program calls.c makes, among others, in this order.
CALLS = """flags of the primary context: 4
primary context c1 of device 0
copy m2+16 m1+0: 4080 stream s0
copy m1+0 m2+8: 4088 stream s0
rectangle m3+5 host: 30 4 stream s0
rectangle m3+0 m3+1024: 50 2 stream s0
variable factors of 1: m5+0 32
write m5+16: 16 stream s0
launch step 7,1,1 1,1,1 shared 0 stream s0: m8+0 0x1
launch step 5,1,1 64,1,1 shared 32 stream s0: m8+0 0x2
launch mixed 1,2,3 4,5,6 shared 0 stream s0: 0x7 m8+0 0x12c 0x1.0x2.0x3 0x3fc00000
launch none 2,3,1 8,2,1 shared 1024 stream s0:
launch none 2,3,1 8,2,1 shared 1024 stream s0 cooperative:
launch none 1,1,1 32,1,1 shared 0 stream s0 cooperative:
attribute 8 of step: 65536
stream s2 flags 1 priority -5
write async m9+0: 4096 stream s1
launch step 1,1,1 32,1,1 shared 0 stream s2: m9+0 0x3
launch step 2,1,1 32,1,1 shared 0 stream s3: m9+0 0x3
event e2 on s3 flags 0
module 1 ends
context c1 ends
primary context c2 of device 0
variable factors of 2: m11+0 32
launch step 9,1,1 1,1,1 shared 0 stream s0: m12+0 0x9
module 2 ends""".split("\n")


def runtime_programs_do_the_same():
    with serving() as server:
        for name in ("calls", "mistakes", "loops"):
            compare(server, runtime_program(name))


def runtime_calls_are_the_drivers():
    native, record = alone(runtime_program("calls"))
    rest = iter(re.sub(r" #\w+$", "", line) for line in record)
    for wanted in CALLS:
        assert wanted in rest, (wanted, record)
    assert sum(line.startswith("module") for line in record) == 4, record
    assert sum(line.startswith("function") for line in record) == 4, record
    assert native.stdout.endswith("done\n") and not native.stderr, native


def mistakes_get_their_errors():
    native = alone(runtime_program("mistakes"))[0]
    errors = dict(re.findall(r"^(.*): (\d+) cuda\w+, [a-z ]+$", native.stdout, re.M))
    wanted = {"cudaSetDevice(1)": 101, "cudaMalloc(&p, (size_t)1 << 40)": 2,
              "cudaMemcpy(p, bytes, 65, cudaMemcpyHostToDevice)": 1,
              "cudaMemcpy(p, bytes, 8, (enum cudaMemcpyKind)5)": 21,
              "cudaMemcpy2D(p, 4, bytes, 8, 8, 2, cudaMemcpyHostToDevice)": 12,
              "cudaMemcpyToSymbol(factors, bytes, 8, 25, cudaMemcpyHostToDevice)": 1,
              "cudaMemcpyToSymbol(factors, bytes, 8, (size_t)-4, cudaMemcpyHostToDevice)": 1,
              "cudaMemcpyToSymbol(factors, bytes, 8, 0, cudaMemcpyDeviceToHost)": 21,
              "cudaMemcpyToSymbol(&step, bytes, 8, 0, cudaMemcpyHostToDevice)": 13,
              "cudaMallocManaged(&q, 64, 1)": 801,
              "cudaLaunchKernel(total, dim(1, 1, 1), dim(1, 1, 1), args, 0, NULL)": 98,
              "cudaLaunchKernel(&lost, dim(1, 1, 1), dim(1, 1, 1), args, 0, NULL)": 98,
              "cudaLaunchKernel(&step, dim(0, 1, 1), dim(1, 1, 1), args, 0, NULL)": 9,
              "cudaLaunchKernel(&step, dim(1, 1, 1), dim(32, 32, 2), args, 0, NULL)": 9,
              "cudaLaunchKernel(&step, dim(1, 1, 1), dim(1, 1, 1), NULL, 0, NULL)": 1,
              "__cudaPopCallConfiguration(&a, &b, &shared, &stream)": 52,
              "__cudaPushCallConfiguration(dim(1, 1, 1), dim(1, 1, 1), 0, NULL)": 9,
              "cudaStreamDestroy(NULL)": 400, "cudaDeviceSynchronize()": 719}
    for call, number in wanted.items():
        assert errors[call] == str(number), (call, number, errors[call])
    assert errors["cudaLaunchKernel(&kernel, dim(1, 1, 1), dim(1, 1, 1), args, 0, NULL)"] == "801"
    assert native.stderr.count("mgpu: ") == 2, native
    assert native.stderr.count("cudaMallocManaged: ") == 1, native


def runtime_loops_are_deferred():
    with serving() as server:
        batched = compare(server, runtime_program("loops"), modes=("batched",))
        deferred = compare(server, runtime_program("loops"), modes=("deferred",))
        assert batched["requests"] > 1200 and batched["waits"] < 30, batched
        assert deferred["requests"] == batched["requests"], (deferred, batched)
        assert batched["groups"] == 0 < deferred["groups"], (deferred, batched)
        assert deferred["grouped"] > 0.9 * deferred["requests"], deferred


# Loops of classes.h of which no iteration can be predicted: a launch of another size waits, and so
# does an allocation.
UNPREDICTED = ("c2_grids", "c3_memory")


def check_classes(name, exact):
    """Compare the loops of classes.h with their names, and what they do with what is recorded."""
    done = run(os.path.join(CTL, "mgpu-defer"), "analyse", "--assume-success", "-j", path(name))
    found = {loop["function"].split(".")[0]: loop["class"] or 0
             for loop in json.loads(done.stdout)["loops"]}
    wanted = {loop: int(loop[1]) for loop in found}
    assert len(found) == 14, found
    assert all(bool(found[loop]) == bool(wanted[loop]) for loop in found), found
    assert found == wanted or not exact, found
    with serving() as server:
        counted = compare(server, name)
        log = run(path(name), env=dict(server.env("deferred"), MGPU_REMOTE_LOG="1")).stderr
        wait_until(server.has_none)
        taken("remoted")
    predicted = {loop.split(".")[0]: int(iterations) for loop, iterations in re.findall(
        r"(\w+)[.\w]*, loop at \w+: class \d, (\d+) iterations as predicted", log)}
    for loop in found:
        if not wanted[loop]:
            assert re.search(loop + r", loop at \w+: not deferred: ", log), (loop, log)
            assert loop not in predicted, (loop, log)
        elif loop not in UNPREDICTED:
            # Of 40, 300 or 600 iterations the first ones are looked at, and those behind a pause.
            assert predicted[loop] > (15 if loop == "c1_fails" else 100), (loop, log)
    assert counted["grouped"] > 0.5 * counted["requests"], counted


def runtime_loops_have_their_classes():
    check_classes(runtime_program("classes"), True)


def nvccs_loops_have_their_classes():
    if not os.path.exists(NVCC):
        raise pytap.Skip("CUDA's toolkit is not installed: no nvcc")
    ways = {"O0": ["-O0"], "own": ["-O2", "--default-stream", "per-thread"]}
    for way, flags in ways.items():
        name = "classes-" + way
        build(NVCC, "-cudart", "shared", "-arch=sm_80", *flags,
              os.path.join(RUNTIME, "classes.cu"), "-o", path(name))
        # Unoptimised code counts the parameters, so that their addresses are not known.
        check_classes(name, way != "O0")


def the_runtime_is_described():
    description = os.path.join(TOP, "ctl", "api", "cudart.yaml")
    done = run(sys.executable, os.path.join(REMOTE, "generate"), description, "front")
    assert done.returncode == 1 and "only the analysis of loops knows" in done.stderr, done
    with open(description, encoding="utf-8") as file:
        described = yaml.safe_load(file)["functions"]
    numbers = {symbol: len(form["args"]) if "prototype" not in form else
               form["prototype"].count(",") + 1
               for name, form in described.items() for symbol in (name, *form.get("also", ()))}
    with open(os.path.join(REMOTE, "cuda", "runtime", "cudart_api.h"), encoding="utf-8") as file:
        text = file.read()
    declared = {name: 0 if args == "void" else args.count(",") + 1 for name, args in re.findall(
        r"^(?:const char \*|[a-z][\w ]*? )(_{0,2}cuda\w+)\(([^;]*)\);", text, re.M)}
    for other, name in re.findall(r"^extern __typeof__\((\w+)\) (\w+);", text, re.M):
        declared[name] = declared[other]
    declared = {name: nr for name, nr in declared.items()
                if not re.match("__cuda(Unr|R)egister|__cudaInit|cudaCreateChannel", name)}
    assert len(declared) > 100, len(declared)
    assert numbers == declared, (set(numbers.items()) ^ set(declared.items()))


def devices_have_modules_of_their_own():
    folder = recorder("two", "-DDEVICES=2")
    with serving(folder=folder) as server:
        compare(server, runtime_program("devices"), folder=folder)
    record = alone(runtime_program("devices"), folder=folder)[1]
    assert [line for line in record if line.startswith(("primary", "launch", "context"))] == [
        "primary context c1 of device 0",
        "launch step 1,1,1 1,1,1 shared 0 stream s0: m1+0 0",
        "primary context c2 of device 1",
        "launch step 2,1,1 1,1,1 shared 0 stream s0: m3+0 0x1",
        "launch step 1,1,1 1,1,1 shared 0 stream s0: m1+0 0",
        "launch step 1,1,1 1,1,1 shared 0 stream s0: m1+0 0",
        "context c2 ends", "primary context c3 of device 1",
        "launch step 2,1,1 1,1,1 shared 0 stream s0: m6+0 0x1",
        "launch step 1,1,1 1,1,1 shared 0 stream s0: m1+0 0"], record


def threads_share_a_module():
    with serving() as server:
        done = run(path(runtime_program("threads")), env=server.env("batched"))
        assert done.returncode == 0 and done.stdout == "done\n", done
        wait_until(server.has_none)
        record = taken("remoted")
    nr = {start: sum(line.startswith(start) for line in record)
          for start in ("primary context", "module 1:", "module 1 ends", "module", "function step",
                        "launch step ", "launch step 3,1,1 ")}
    assert list(nr.values()) == [1, 1, 1, 2, 1, 800, 200], nr


def the_runtime_library_is_clean():
    # The library that records keeps objects to its end.
    env = dict(PLAIN, LD_LIBRARY_PATH=recorder(),
               ASAN_OPTIONS="detect_leaks=0:protect_shadow_gap=0")
    folder = os.path.join(REMOTE, "cuda", "runtime")
    sources = [os.path.join(folder, name) for name in sorted(os.listdir(folder))
               if name.endswith(".c")]
    sources += [os.path.join(REMOTE, "cuda", name) for name in ("errors.c", "image.c")]
    for name in ("calls", "mistakes"):
        build("gcc", *STRICT, "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
              "-I" + REMOTE, *INCLUDES, os.path.join(RUNTIME, name + ".c"), *sources,
              "-o", path("clean-" + name), "-lpthread", "-ldl")
        done = run(path("clean-" + name), env=env)
        assert done.returncode == 0 and done.stdout == alone(runtime_program(name))[0].stdout, done


def nvccs_programs_run():
    if not os.path.exists(NVCC):
        raise pytap.Skip("CUDA's toolkit is not installed: no nvcc")
    source = os.path.join(RUNTIME, "samples.cu")
    ways = {"cubin": ["-arch=sm_80"], "ptx": ["-gencode", "arch=compute_80,code=compute_80"],
            "linked": ["-arch=sm_80", "-rdc=true"],
            "own": ["-arch=sm_80", "--default-stream", "per-thread"]}
    with serving() as server:
        for way, flags in ways.items():
            build(NVCC, "-cudart", "shared", "--no-compress", "-O1", "-std=c++17", *flags, source,
                  "-o", path("samples-" + way))
            compare(server, "samples-" + way, least=60)
            native, record = alone("samples-" + way)
            assert "invalid configuration argument\n" in native.stdout, native
            assert re.search(r"64 bytes, \d+ calls\n", native.stdout), native
            assert not native.stderr, native
            launches = [line for line in record if line.startswith("launch ")]
            # The streams that are made are s1 to s3, or one more where the thread has its own.
            assert len(launches) == 11, launches
            stream = "s1" if way == "own" else "s0"
            assert re.fullmatch(r"launch \w+ 8,1,1 128,1,1 shared 0 stream " + stream +
                                r": m\d\+0 m\d\+0 m\d\+0 0x400", launches[0]), launches
            assert f"4,1,1 64,1,1 shared 256 stream {stream}: " in launches[1], launches
            assert launches[4].endswith(" 0x3.0x3ff8000000000000.0x100000064"), launches


def the_runtimes_declarations_are_those_of_the_toolkit():
    header = os.path.join(TOOLKIT, "include", "cuda_runtime_api.h")
    if not os.path.exists(header):
        raise pytap.Skip("CUDA's toolkit is not installed: no cuda_runtime_api.h")
    include = "-I" + os.path.dirname(header)
    with open(path("both.c"), "w", encoding="utf-8") as file:
        # Each prototype again, with the toolkit's types.
        file.write('#include <cuda_runtime_api.h>\n#include <cuda_profiler_api.h>\n'
                   '#include "cudart_api.h"\n')
    build("gcc", "-std=gnu17", "-fsyntax-only", "-Wall", "-Werror", "-Wno-deprecated-declarations",
          *INCLUDES, include, path("both.c"))
    # Members and values, by those that our header has.
    with open(os.path.join(REMOTE, "cuda", "runtime", "cudart_api.h"), encoding="utf-8") as file:
        ours = file.read()
    lines = []
    for kind, name, body in re.findall(r"^(?:typedef )?(struct|enum) ?(\w*) \{\n(.*?)^\}", ours,
                                       re.M | re.S):
        if kind == "enum":
            lines += [f'printf("%s %ld\\n", "{value}", (long){value});'
                      for value in re.findall(r"^\t(cuda\w+) =", body, re.M)]
            continue
        lines.append(f'printf("%s %zu\\n", "{name}", sizeof(struct {name}));')
        for members in re.findall(r"^\t\w[\w ]*?[ *](\w+(?:\[\d+\])?(?:, \w+)*);", body, re.M):
            lines += [f'printf("%s %zu\\n", "{name}.{member}", offsetof(struct {name}, {member}));'
                      for member in re.sub(r"\[\d+\]", "", members).split(", ")
                      if (name, member) not in (("cudaLaunchAttribute_st", "pad"),
                                                ("cudaLaunchAttribute_st", "cooperative"),
                                                ("cudaDeviceProp", "bytes"))]
    assert len(lines) > 150, lines
    printed = []
    for header in ("<cuda_runtime_api.h>", '"cudart_api.h"'):
        with open(path("layout.c"), "w", encoding="utf-8") as file:
            file.write(f"#include {header}\n#include <stddef.h>\n#include <stdio.h>\n"
                       "int main(void)\n{\n" + "\n".join(lines) + "\n}\n")
        build("gcc", "-std=gnu17", *INCLUDES, include, path("layout.c"), "-o", path("layout"))
        printed.append(run(path("layout")).stdout.splitlines())
    assert len(printed[0]) == len(lines) and printed[0] == printed[1], \
        [pair for pair in zip(*printed) if pair[0] != pair[1]]


def the_runtime_library_is_as_the_toolkits():
    library = os.path.join(TOOLKIT, "lib64", "libcudart.so.13")
    if not os.path.exists(library):
        raise pytap.Skip("CUDA's toolkit is not installed: no libcudart.so.13")
    with open(path("names.c"), "w", encoding="utf-8") as file:
        file.write('#include <stdio.h>\n#include "cudart_api.h"\nint main(void)\n{\n'
                   "\tfor (int i = 0; i < 1100; i++)\n"
                   '\t\tprintf("%d %s\\n", i, cudaGetErrorName((cudaError_t)i));\n'
                   "\treturn 0;\n}\n")
    build("gcc", *STRICT, *INCLUDES, path("names.c"), "-o", path("names"),
          "-L" + os.path.join(CTL, "cuda"), "-l:libcudart.so.13")
    said, symbols = [], []
    for folder in (os.path.dirname(library), os.path.join(CTL, "cuda")):
        said.append(run(path("names"), env=dict(PLAIN, LD_LIBRARY_PATH=folder)).stdout)
        done = run("nm", "-D", "--defined-only", os.path.join(folder, "libcudart.so.13"))
        symbols.append(set(re.findall(r" [TW] (\w+@@libcudart\.so\.13)$", done.stdout, re.M)))
    assert said[0] == said[1] and said[0].count("cudaError") > 100, said
    assert symbols[0] == symbols[1] and len(symbols[0]) > 400, symbols[0] ^ symbols[1]


def runtime_programs_need_a_driver():
    env = dict(PLAIN, LD_LIBRARY_PATH=os.path.join(CTL, "cuda"))
    done = run(path(runtime_program("loops")), env=dict(env, MGPU_REMOTE="off"))
    assert done.returncode == 1 and "cudaErrorNoDevice" in done.stderr, done
    with contextlib.suppress(OSError):
        # A driver of this machine would be found.
        ctypes.CDLL("libcuda.so.1")
        return
    os.mkdir(path("bare"))
    os.symlink(os.path.join(CTL, "cuda", "libcudart.so.13"), path("bare/libcudart.so.13"))
    done = run(path(runtime_program("loops")), env=dict(env, LD_LIBRARY_PATH=path("bare")))
    assert done.returncode == 1 and "cudaErrorInsufficientDriver" in done.stderr, done
    assert "libcuda.so.1: cannot open" in done.stderr, done


def nvidias_runtime_library_ends_with_an_error():
    if not os.path.exists(NVCC):
        raise pytap.Skip("CUDA's toolkit is not installed: no nvcc")
    with open(path("runtime.cu"), "w", encoding="utf-8") as file:
        file.write("#include <cstdio>\nint main()\n{\n\tint n = 0;\n"
                   "\tcudaError_t e = cudaGetDeviceCount(&n);\n"
                   '\tprintf("%d %s\\n", n, cudaGetErrorName(e));\n\treturn 0;\n}\n')
    build(NVCC, path("runtime.cu"), "-o", path("runtime"))
    with serving() as server:
        done = run(path("runtime"), env=server.env("batched"))
        assert done.returncode == 0 and done.stdout.startswith("0 cudaError"), done
        assert done.stderr.count("cuGetExportTable") == 1, done


def a_killed_server_is_an_error():
    with serving() as server:
        for mode in MODES:
            process = start(program("launches"), "0", env=server.env(mode))
            time.sleep(0.1)
            os.kill(server.programs()[0], signal.SIGKILL)
            out, error, status = finish(process)
            assert status == 2 and "error 46, then 46 46\n" in out, (mode, out, error)
            assert error.count("is lost") == 1, error
            wait_until(server.has_none)
        taken("remoted")


def a_killed_program_ends_its_process():
    with serving() as server:
        for mode in MODES:
            process = start(program("launches"), "0", env=server.env(mode))
            assert len(server.programs()) == 1
            process.kill()
            finish(process)
            wait_until(server.has_none)
        taken("remoted")


def generated(pattern):
    """Return numbers that the description's generated header has."""
    with open(os.path.join(CTL, "gen", "cuda_gen.h"), encoding="utf-8") as file:
        return dict(re.findall(pattern, file.read()))


def speak(server, *messages):
    """Send messages, and one that no front end sends; return what comes until the end."""
    return server.talk(*messages, struct.pack("<QIHHQ", 8, 1, 60000, 1, 0))


def hostile_programs_lose_their_process():
    digest = int(generated(r"(CUDA_DIGEST) 0x(\w+)ull")["CUDA_DIGEST"], 16)
    calls = {name: int(number) for name, number in
             generated(r"CALL_(\w+) = (\d+),").items()}
    hello = struct.pack("<8sIIQ", b"mgpuremo", 2, 2, digest)

    def request(name, *words):
        return struct.pack(f"<QIHH{len(words)}Q", 8 * len(words), 1, calls[name], 1, *words)
    begin = [hello, request("cuInit", 0), request("cuCtxCreate_v2", 0, 0, 1)]
    seed = int(os.environ.get("FUZZ_SEED", "1"))
    numbers = random.Random(seed)
    values = (0, 1, 2, 3, 8, 64, 255, 1 << 31, 1 << 32, 1 << 63, 2 ** 64 - 1)
    with serving() as server:
        # Memory that is not the program's, though the library has it.
        got = speak(server, *begin, request("cuMemcpyDtoH_v2", 1, OTHERS, 64, 1),
                    request("cuMemFree_v2", 1, OTHERS))
        assert struct.unpack("<QIIiI", got[-24:])[3] == 1, got
        assert struct.unpack("<QIIiI", got[-48:-24])[3] == 1, got
        # A length that is not that of the bytes that follow ends the process, too.
        known = len(speak(server, *begin))
        assert known == len(speak(server, *begin, request("cuMemcpyHtoD_v2", 1, 0x10000, 64, 8, 42),
                                  begin[1])), "it was answered"
        for _ in range(120):
            words = [numbers.choice(values) for _ in range(numbers.randrange(14))]
            name = numbers.choice(list(calls))
            speak(server, *begin, *(request(name, *words[:n]) for n in range(len(words))))
        wait_until(server.has_none)
        assert "ended its process" not in server.said(), (seed, server.said())
        taken("remoted")


def memory_has_a_limit():
    with serving("--memory", "1") as server:
        done = run(program("memory"), env=server.env("batched"))
        assert done.stdout == "4 of 256 KiB, then 2; after one was freed 0\n", (done, server.said())


def without_a_server_or_a_driver_there_is_no_device():
    env = dict(PLAIN, LD_LIBRARY_PATH=os.path.join(CTL, "cuda"))
    done = run(program("memory"), env=dict(env, MGPU_REMOTE="off"))
    assert done.returncode == 1 and "CUDA_ERROR_NO_DEVICE" in done.stderr, done
    with serving(folder=path("nothing")) as server:
        done = run(program("memory"), env=server.env("batched"))
        assert done.returncode == 1 and "CUDA_ERROR_NO_DEVICE" in done.stderr, done
        assert "libcuda.so.1" in server.said(), server.said()


if __name__ == "__main__":
    subprocess.run(["make", "-s", "-C", os.path.join(TOP, "ctl"), "remote", "defer",
                    f"BUILD={BUILD}"], check=True)
    with remoted.tmp:
        sys.exit(pytap.run([
            (programs_do_the_same, "programs have the same calls executed, and print the same"),
            (loops_are_deferred, "loops of each class are sent as groups"),
            (drivers_that_know_no_parameters_do, "a driver need not know kernels' parameters"),
            (nvccs_images_are_launched, "images of all kinds that nvcc makes are launched"),
            (declarations_are_those_of_the_toolkit, "declarations are those of the toolkit"),
            (functions_are_found_in_a_loaded_library, "a library that is loaded finds functions"),
            (runtime_programs_do_the_same, "programs of the runtime API do the same"),
            (runtime_calls_are_the_drivers, "calls of the runtime API become those of the driver"),
            (mistakes_get_their_errors, "mistakes get the errors of the runtime API"),
            (runtime_loops_are_deferred, "loops of the runtime API are sent as groups"),
            (runtime_loops_have_their_classes, "they get their classes, and do the same as natively"),
            (nvccs_loops_have_their_classes, "so do loops of kernel<<<>>> that nvcc compiled"),
            (the_runtime_is_described, "the functions of the runtime library are described"),
            (devices_have_modules_of_their_own, "each device has a module of its own"),
            (threads_share_a_module, "threads that use a kernel at once load its module once"),
            (the_runtime_library_is_clean, "the runtime library is clean with sanitizers"),
            (nvccs_programs_run, "programs run that nvcc has compiled"),
            (the_runtimes_declarations_are_those_of_the_toolkit,
             "declarations of the runtime API are those of the toolkit"),
            (the_runtime_library_is_as_the_toolkits,
             "the runtime library has the symbols and errors of the toolkit's"),
            (runtime_programs_need_a_driver, "the runtime library finds no driver or device"),
            (nvidias_runtime_library_ends_with_an_error, "NVIDIA's runtime library gets an error"),
            (a_killed_server_is_an_error, "calls fail when the server is killed"),
            (a_killed_program_ends_its_process, "a program that is killed ends its process"),
            (hostile_programs_lose_their_process, "a hostile program loses its own process"),
            (memory_has_a_limit, "device memory has a limit"),
            (without_a_server_or_a_driver_there_is_no_device,
             "without a server or a driver there is no device"),
        ]))
