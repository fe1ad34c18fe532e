#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""CUDA's driver API through mgpu-remoted: the same calls, the same results, the same errors.

The programs are tests/remote/cuda/*.c. A library of the driver that records its calls is used by
the programs themselves and by mgpu-remoted: the records and what the programs print must be the same
with a round trip for each call, batched, and with loops deferred.
"""

import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

import pytap
import remoted
from remoted import (BUILD, CTL, MODES, PLAIN, TOP, analyse, build, counts, finish, path, run, start,
                     wait_until)

HERE, REMOTE = os.path.join(TOP, "tests", "remote", "cuda"), os.path.join(TOP, "ctl", "remote")
INCLUDES = ["-I" + os.path.join(REMOTE, "cuda"), "-I" + os.path.join(CTL, "gen")]
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


def compare(server, name, *args, modes=MODES, least=10):
    """Compare what a program does by itself with what is done for it; return the last counts."""
    native = run(program(name), *args, env=dict(PLAIN, LD_LIBRARY_PATH=recorder(),
                                                MGPU_CUDA_RECORD=path("native")))
    assert native.returncode == 0, (name, native)
    record = taken("native")
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


def the_runtime_library_ends_with_an_error():
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
            (the_runtime_library_ends_with_an_error, "CUDA's runtime library gets an error"),
            (a_killed_server_is_an_error, "calls fail when the server is killed"),
            (a_killed_program_ends_its_process, "a program that is killed ends its process"),
            (hostile_programs_lose_their_process, "a hostile program loses its own process"),
            (memory_has_a_limit, "device memory has a limit"),
            (without_a_server_or_a_driver_there_is_no_device,
             "without a server or a driver there is no device"),
        ]))
