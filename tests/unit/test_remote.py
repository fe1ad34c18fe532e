#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 300
"""OpenCL through mgpu-remoted: the same results, the same errors, and an end for each process.

The programs are tests/remote/*.c; PoCL executes their kernels on the processor. Each is run on PoCL
itself and through the front end: with a round trip for each call, batched, and with its loops
deferred.
"""

import fcntl
import json
import os
import pwd
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import pytap
import remoted
from remoted import (BUILD, CTL, MODES, PLAIN, SLOW, TOP, analyse, build, counts, finish, path,
                     start, wait_until)

SERVER, GPUCTL = os.path.join(CTL, "mgpu-remoted"), os.path.join(CTL, "gpuctl")
LOOPS = ("loops-constant", "loops-induction", "loops-results")
PROGRAMS = ("vecadd", "stencil", "bfs", "cg", "nbody", "kmeans", "fft", "lstm", "bulk", "maps",
            "images", "events", "errors", "builds", *LOOPS)

# PoCL's device that computes in threads: the other one waits for user events for ever.
NATIVE = dict(PLAIN, POCL_DEVICES="pthread", POCL_CACHE_DIR=path("cache"))
CLIENT = dict(NATIVE, OCL_ICD_VENDORS=path("vendors"))


def run(*args, env=None):
    """Run a program, on PoCL itself if no environment is given; return what it left."""
    return remoted.run(*args, env=env or NATIVE)


def serving(*options):
    """Have a server of PoCL."""
    return remoted.serving(*options, env=NATIVE, client=CLIENT)


def program(name):
    """Return a program below tests/remote, built."""
    if not os.path.exists(path(name)):
        build("gcc", "-std=gnu17", "-O1", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
              os.path.join(TOP, "tests", "remote", name + ".c"), "-o", path(name), "-lOpenCL",
              "-lpthread")
        analyse(name)
    return path(name)


def programs_print_the_same():
    with serving() as server:
        for name in PROGRAMS:
            native = run(program(name))
            assert native.returncode == 0 and len(native.stdout) > 10, (name, native)
            for mode in MODES:
                remote = run(program(name), env=server.env(mode))
                assert remote.returncode == 0, (name, mode, remote.stderr, server.said())
                assert remote.stdout == native.stdout, (name, mode, remote.stdout, native.stdout)


def programs_print_the_same_by_a_vgpu():
    name = path("vgpu.so")
    folder = os.path.join(TOP, "ctl")
    sources = [os.path.join(folder, "renderd", source + ".c")
               for source in ("remote", "processes", "sandbox")]
    sources += [os.path.join(folder, "lib", source + ".c")
                for source in ("complain", "drm_usage", "engine_clock", "memory",
                               "process_clock")]
    done = run("gcc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC",
               "-shared", "-o", name, "-I", os.path.join(folder, "renderd"),
               "-I", os.path.join(folder, "lib"), os.path.join(TOP, "tests", "remote", "vgpu.c"),
               *sources, *run("pkg-config", "--cflags", "libdrm").stdout.split(), "-lseccomp",
               "-lcap-ng", "-lpthread")
    assert not done.returncode, done.stderr
    env = dict(CLIENT, MGPU_REMOTE="vgpu:/dev/dri/renderD191", LD_PRELOAD=name,
               MGPU_REMOTED=SERVER)
    for name in PROGRAMS:
        # On PoCL itself its references depend on how far PoCL's threads have come.
        if name == "maps":
            continue
        native = run(program(name))
        remote = run(program(name), env=env)
        assert remote.returncode == 0 and remote.stdout == native.stdout, (name, native, remote)
    # It waits for nothing, and sends more than a vGPU keeps.
    done = run(program("launches"), "1", "50000", env=env)
    assert done.returncode == 0 and "sum 50000" in done.stdout, done
    # Blocks of data that are larger than a stream.
    done = run(program("bulk"), env=env)
    assert done.returncode == 0 and done.stdout == run(program("bulk")).stdout, done
    # A worker that is another one has none of the context.
    done = run(program("launches"), "0", env=dict(env, MGPU_VGPU_LOSES="60"))
    assert done.returncode == 2 and "error -2" in done.stdout, done
    assert "connection to the GPU's server is lost" in done.stderr, done
    done = run("clinfo", "-l", env=dict(env, MGPU_VGPU_LOSES="0"))
    assert not done.stdout.strip() and "starts no process" in done.stderr, done


def vgpus_are_looked_for():
    env = CLIENT
    done = run("clinfo", "-l", env=dict(env, MGPU_REMOTE="vgpu:" + path("nothing")))
    assert not done.stdout.strip() and "No such file" in done.stderr, done
    done = run("clinfo", "-l", env=dict(env, MGPU_REMOTE="vgpu:/dev/null"))
    assert not done.stdout.strip() and "start mgpu-renderd with --remote" in done.stderr, done
    for where in ("1", "1:", "1:2:3", "a:b"):
        done = run("clinfo", "-l", env=dict(env, MGPU_REMOTE="vsock:" + where))
        assert not done.stdout.strip() and "Invalid argument" in done.stderr, done
    with serving() as server:
        done = run("clinfo", "-l", env=dict(env, MGPU_REMOTE="unix:" + server.socket))
        assert "Portable Computing" in done.stdout, done


def loops_are_deferred():
    with serving() as server:
        for name in LOOPS:
            env = dict(server.env("deferred"), MGPU_REMOTE_COUNTS="1")
            deferred = counts(run(program(name), env=env))
            batched = counts(run(program(name), env=dict(env, MGPU_REMOTE_MODE="batched")))
            assert deferred["requests"] == batched["requests"], (name, deferred, batched)
            assert batched["groups"] == 0 < deferred["groups"], (name, deferred, batched)
            assert deferred["grouped"] > 0.8 * deferred["requests"], (name, deferred)
            assert deferred["bytes"] < 0.5 * batched["bytes"], (name, deferred, batched)
        # Not without a report, nor with a damaged one.
        for text in (None, "{", '{"version": 1, "loops": [1, {"class": 2, "calls": 7}]}'):
            env["XDG_CACHE_HOME"] = path("other")
            if text:
                os.makedirs(path("other/mgpu/defer"), exist_ok=True)
                for report in os.listdir(path("reports/mgpu/defer")):
                    with open(path("other/mgpu/defer/" + report), "w", encoding="utf-8") as file:
                        file.write(text)
            done = run(program(name), env=env)
            assert done.returncode == 0 and counts(done)["groups"] == 0, (text, done)


def missing_reports_are_made():
    with serving() as server:
        env = dict(server.env("deferred"), XDG_CACHE_HOME=path("made"), MGPU_REMOTE_COUNTS="1",
                   PATH=CTL + ":" + os.environ["PATH"])
        assert counts(run(program(LOOPS[0]), env=env))["groups"] == 0

        def report_is_there():
            folder = path("made/mgpu/defer")
            return os.path.isdir(folder) and any(name.endswith("-assume-success.json")
                                                 for name in os.listdir(folder))
        wait_until(report_is_there)
        assert counts(run(program(LOOPS[0]), env=env))["groups"] > 0


def errors_of_deferred_loops_are_named():
    with serving("--objects", "40") as server:
        done = run(program("loops-leak"), env=server.env("deferred"))
        assert done.stdout == "finished -6\n", (done, server.said())
        assert re.search(r"call 2 of iteration \d+ of \d+ in a loop: error -6\n", server.said()), \
            server.said()


def the_log_says_why_loops_are_not_deferred():
    with serving() as server:
        def log(name, **more):
            env = dict(server.env("deferred"), **more)
            quiet = run(program(name), env=env)
            assert quiet.returncode == 0 and not quiet.stderr, quiet
            done = run(program(name), env=dict(env, MGPU_REMOTE_LOG="1"))
            assert done.stdout == quiet.stdout, done
            return done.stderr

        said = log("cg")
        assert re.fullmatch(r"(mgpu: (solve|main), loop at 0x\w+: not deferred: \w+ of "
                            r"clSetKernelArg is computed from a result.*; and \d+ other "
                            r"reasons.*\n){2}", said), said
        said = log("loops-constant")
        assert re.search(r"loop at 0x\w+: class 1, \d{3,} iterations as predicted, [1-9]\d* groups, "
                         r"0 mispredictions\n", said), said
        said = log("loops-short")
        assert said.count("not deferred: clFinish has to be answered at once\n") == 1, said
        assert said.count("no longer deferred") == 1 and said.endswith(", given up\n"), said
        said = log("cg", XDG_CACHE_HOME=path("no reports"))
        assert said.count("there is no report") == 1, said


def clinfo_runs_unmodified():
    with serving() as server:
        native, remote = run("clinfo"), run("clinfo", env=server.env("batched"))
        assert remote.returncode == 0 and not remote.stderr, remote.stderr
        for line in ("Device Name", "Device Version", "Max work group size", "Local memory size",
                     "Max compute units", "OpenCL C features"):
            wanted = re.findall(rf"^ *(?:Device )?{line} .*", native.stdout, re.M)
            assert wanted and wanted == re.findall(rf"^ *(?:Device )?{line} .*", remote.stdout,
                                                   re.M), line
        assert re.search(r"function suffix +MGPU\n", remote.stdout), remote.stdout
        # Extensions that would not work are not offered.
        assert "cl_khr_command_buffer" in native.stdout
        assert "cl_khr_command_buffer" not in remote.stdout


def late_errors_are_reported():
    for mode in MODES:
        with serving("--memory", "1") as server:
            done = run(program("late"), env=server.env(mode))
            assert done.returncode == 0, (mode, done, server.said())
            lines = done.stdout.splitlines()
            assert lines[0] == "buffers 3, error -4" and lines[-1] == "released", (mode, lines)
            if mode != "one":
                assert lines[1] == ("set 0, launched 0, event -4, waited -14, finished -4, "
                                    "again 0"), lines


def a_child_gets_errors():
    with serving() as server:
        for mode in MODES:
            done = run(program("children"), env=server.env(mode))
            assert done.stdout == "child: not available\nread 7\n", (mode, done)


def other_calls_fail_and_are_named_once():
    with serving() as server:
        done = run(program("outside"), env=server.env("batched"))
        assert done.stdout == ("SVM 0\n" + "pipe: none, error -59\nSVM: none\n" * 2), done.stdout
        for name in ("clCreatePipe", "clSVMAlloc"):
            assert done.stderr.count(name) == 1, done.stderr


def a_killed_server_is_an_error():
    with serving() as server:
        for mode in MODES:
            for name, args in (("launches", ("0",)), ("stuck", ("event",))):
                process = start(program(name), *args, env=server.env(mode))
                time.sleep(0.2)
                os.kill(server.programs()[0], signal.SIGKILL)
                out, error, status = finish(process)
                assert status == 2 and "error -2" in out, (mode, name, out, error)
                assert error.count("is lost") == 1, error
                wait_until(server.has_none)
        assert "Killed" in server.said()


def a_killed_program_ends_its_process():
    with serving() as server:
        for mode in MODES:
            for name, args in (("launches", ("0",)), ("stuck", ("event",)),
                               ("stuck", ("kernel",))):
                process = start(program(name), *args, env=server.env(mode))
                time.sleep(0.2)
                assert len(server.programs()) == 1
                process.kill()
                finish(process)
                wait_until(server.has_none)


def the_listener_ends_all():
    server = remoted.Server([], NATIVE, CLIENT)
    process = start(program("launches"), "0", env=server.env("batched"))
    server.process.terminate()
    out, _, status = finish(process)
    assert status == 2 and "error -2" in out, out
    assert server.process.wait(20 * SLOW) == 0


def hello(version=2, api=1, digest=None, magic=b"mgpuremo"):
    """Return the first message of a front end."""
    return struct.pack("<8sIIQ", magic, version, api, the_digest() if digest is None else digest)


def the_digest():
    """Return the digest of the description, as the build has it."""
    name = os.path.join(CTL, "gen", "opencl_gen.h")
    with open(name, encoding="utf-8") as file:
        return int(re.search(r"DIGEST 0x(\w+)ull", file.read())[1], 16)


def hostile_programs_lose_their_process():
    with serving() as server:
        other = start(program("launches"), "0", env=server.env("batched"))
        welcome = struct.pack("<8sII", b"mgpuremo", 2, 0)
        refused = struct.pack("<8sII", b"mgpuremo", 2, 1)
        for message in (hello(magic=b"garbage!"), hello(version=1), hello(api=99), hello(digest=1)):
            assert server.talk(message)[:16] == refused, message
        for length, function, flags, body in (
                (8, 60000, 1, b"x" * 8),            # no such function
                (8, 0, 1, b"x" * 8),                # none has this number
                (2 ** 63, 1, 1, b""),               # longer than all that is allowed
                (0, 1, 1, b""),                     # arguments are missing
                (32, 1, 1, b"\0" * 32),             # there are too many
                (48, 0xffff, 1, b"\0" * 48),         # a report that waits
                (40, 0xffff, 0, b"\0" * 40),         # one that is too short
                (9, 1, 1, b"\0" * 9),               # no multiple of 8
                (24, 1, 4, b"\0" * 24)):            # unknown flag
            got = server.talk(hello(), struct.pack("<QIHH", length, 1, function, flags) + body)
            assert got[:16] == welcome and len(got) == 32, (length, function, got)
        assert server.said().count("no front end sends") >= 7, server.said()
        assert other.poll() is None
        other.kill()
        finish(other)


def shared(server, fd):
    """Offer memory with the first message; return how much the server shares."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(20 * SLOW)
        sock.connect(server.socket)
        socket.send_fds(sock, [hello()], [fd])
        return struct.unpack("<8sIIQQ", sock.recv(64))[4]


def memory_that_can_shrink_is_not_shared():
    with serving("--pending", "2") as server:
        for size, seals, taken in ((4096, fcntl.F_SEAL_SHRINK, 4096), (4096, fcntl.F_SEAL_GROW, 0),
                                   (3 << 20, fcntl.F_SEAL_SHRINK, 0), (0, fcntl.F_SEAL_SHRINK, 0)):
            fd = os.memfd_create("shared", os.MFD_ALLOW_SEALING)
            os.truncate(fd, size)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
            assert shared(server, fd) == taken, (size, seals)
            os.close(fd)
        with open(path("file"), "wb+") as file:
            file.truncate(4096)
            assert shared(server, file.fileno()) == 0


def large_data_go_through_shared_memory():
    with serving() as server:
        env = dict(server.env("batched"), MGPU_REMOTE_COUNTS="1")
        native = run(program("bulk")).stdout
        for size, most in ((128, 1 << 17), (0, 1 << 30), (1, 1 << 26)):
            done = run(program("bulk"), env=dict(env, MGPU_REMOTE_SHARED=str(size)))
            assert done.stdout == native, (size, done, server.said())
            assert counts(done)["bytes"] < most, (size, done)
            assert size or counts(done)["bytes"] > 1 << 24, (size, done)


def processes_have_few_rights():
    root = os.geteuid() == 0
    with serving(*(["--user", "nobody"] if root else [])) as server:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(20 * SLOW)
            sock.connect(server.socket)
            sock.sendall(hello())
            assert len(sock.recv(64)) == 32
            process = f"/proc/{server.programs()[0]}"
            with open(process + "/status", encoding="ascii") as file:
                status = file.read()
            with open(process + "/limits", encoding="ascii") as file:
                limits = file.read()
        uid = 65534 if root else os.geteuid()
        assert re.search(rf"^Uid:\t{uid}\t{uid}\t{uid}\t", status, re.M), status
        assert "NoNewPrivs:\t1\n" in status, status
        assert not root or "CapEff:\t0000000000000000\n" in status, status
        assert re.search(r"^Max core file size +0 +0 ", limits, re.M), limits
        assert re.search(r"^Max data size +\d+ +\d+ ", limits, re.M), limits
    with serving("--user", "no-such-account") as server:
        assert server.talk(hello()) == b""
        assert "adduser" in server.said(), server.said()


FORBIDDEN = ("ptrace", "process_vm_readv", "mount", "chroot", "init_module", "kexec_load", "swapon",
             "bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "keyctl", "unshare",
             "setns", "clone", "iopl", "packets")


def escape(folder, *options):
    """Have a kernel make system calls, some with paths in a folder; return what each returned."""
    for name in ("read", "write"):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write("not the program's\n")
    with serving(*options) as server:
        done = run(program("escape"), os.path.join(folder, "read"), os.path.join(folder, "write"),
                   env=server.env("batched"))
        assert done.returncode == 0, (options, done, server.said())
        return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines()), server.said()


def kernels_cannot_call_what_no_driver_needs():
    for what in ("all", "calls"):
        got, _ = escape(path(""), "--confine", what)
        for name in FORBIDDEN:
            assert got[name] == "EPERM", (what, name, got)
        assert got["threads"] == "good", got
    got, _ = escape(path(""), "--confine", "none")
    for name in FORBIDDEN:
        assert got[name] != "EPERM" or os.geteuid(), (name, got)


def kernels_see_files_of_the_system_only():
    # Not below /tmp, where temporary files are.
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        assert not folder.startswith(("/tmp/", "/var/tmp/"))
        got, said = escape(folder)
        if "no Landlock" in said:
            raise pytap.Skip("this kernel has no Landlock")
        files = {name: got[name] for name in ("read", "write", "remove", "read /etc")}
        assert files == {"read": "EACCES", "write": "EACCES", "remove": "EACCES",
                         "read /etc": "good"}, files
        got, _ = escape(folder, "--read", folder)
        assert (got["read"], got["write"], got["remove"]) == ("good", "EACCES", "EACCES"), got
        got, _ = escape(folder, "--write", folder)
        assert (got["read"], got["write"], got["remove"]) == ("good",) * 3, got
        got, _ = escape(folder, "--confine", "calls")
        assert (got["read"], got["write"], got["remove"]) == ("good",) * 3, got


def programs_are_turned_away():
    for limit in ("--programs", "--account-programs"):
        with serving(limit, "1") as server:
            first = start(program("launches"), "0", env=server.env("batched"))
            done = run("clinfo", "-l", env=server.env("batched"))
            assert not done.stdout.strip() and "does not take" in done.stderr, done
            assert "turned away" in server.said() and f"({limit})" in server.said()
            first.kill()
            finish(first)


def remote(server, *words):
    """Ask gpuctl remote; return how it ended."""
    return run(GPUCTL, *words, env=dict(NATIVE, MGPU_REMOTE_CONTROL=server.socket + ".control"))


def applications(server, verb="list"):
    """Return the programs that gpuctl lists."""
    options = ("-n", "1", "-d", "0.3") if verb == "stats" else ()
    done = remote(server, "-j", "remote", verb, *options)
    assert done.returncode == 0 and not done.stderr, done
    return json.loads(done.stdout)["applications"]


def gpuctl_tells_what_programs_do():
    with serving() as server:
        wait_until(lambda: os.path.exists(server.socket + ".control"))
        assert applications(server) == []
        programs = {mode: start(program("launches"), "0", env=server.env(mode)) for mode in MODES}

        # Front ends report their loops ten times a second.
        def all_have_reported():
            listed = applications(server)
            return len(listed) == len(MODES) and all(
                app["calls"] > 100 and app["busy_s"] > 0 and
                app["mode"] and (app["mode"] != "deferred" or any(app["loops_by_class"]))
                for app in listed)

        wait_until(all_have_reported)
        told = {app["mode"]: app for app in applications(server)}
        for mode, process in programs.items():
            app = told[mode]
            assert app["pid"] == process.pid and app["uid"] == os.geteuid(), app
            assert app["process"] in server.programs(), app
            assert app["command"] == "launches" and app["api"] == "opencl", app
            assert app["handles"] == 5 and app["memory_bytes"] == 4, app
            assert app["busy_source"] == "cpu" and app["busy_s"] > 0, app
            assert app["received_bytes"] > 24 * app["round_trips"] > 0, app
            assert app["sent_bytes"] > 24 * app["round_trips"], app
            assert app["round_trips"] + app["round_trips_saved"] == app["calls"], app
            # Some calls may have no reply yet.
            assert (app["round_trips_saved"] > app["calls"] / 2) == (mode != "one"), app
            assert (app["groups"] > 0) == (mode == "deferred"), app
            assert app["loops_by_class"] == [int(mode == "deferred"), 0, 0], app
        text = remote(server, "remote", "list").stdout
        assert re.search(rf" *{programs['one'].pid} .* launches +opencl +one +\d+", text), text
        text = remote(server, "remote", "show", str(programs["deferred"].pid)).stdout
        assert re.search(r"^round-trips-saved: +\d{3,}$", text, re.M), text

        # A program that waits for its kernels, or for a processor, calls nothing for a while.
        def all_have_rates():
            listed = applications(server, "stats")
            assert all(app["busy_share"] < 65 for app in listed), listed
            return all(app["calls_per_s"] > 10 and app["busy_share"] > 0 for app in listed)

        wait_until(all_have_rates)
        done = remote(server, "remote", "show", "1")
        assert done.returncode == 1 and "'gpuctl remote list' lists them" in done.stderr, done
        for process in programs.values():
            process.kill()
            finish(process)
        wait_until(server.has_none)
        wait_until(lambda: applications(server) == [])


def others_may_not_ask():
    with serving("--control", path("other.control"), "--group", "root") as server:
        assert not os.path.exists(server.socket + ".control")
        # It comes behind the socket for programs.
        wait_until(lambda: os.path.exists(path("other.control")))
        assert os.stat(path("other.control")).st_mode & 0o7 == 0
    with serving("--control", "none") as server:
        done = remote(server, "remote", "list")
        assert done.returncode == 1 and "mgpu-remoted does not run" in done.stderr, done


def accounts_have_limits():
    with serving("--account-memory", "1") as server:
        done = run(program("late"), env=server.env("batched"))
        assert done.stdout.startswith("buffers 3, error -4\n"), (done, server.said())
        assert server.said().count("(--account-memory)") == 1, server.said()
    with serving("--account-objects", "40") as server:
        done = run(program("loops-leak"), env=server.env("batched"))
        assert done.stdout == "finished -6\n", (done, server.said())
        assert f"account {os.geteuid()} " in server.said(), server.said()
        assert server.said().count("(--account-objects)") == 1, server.said()


def busy(server, seconds):
    """Return the engine time that each account's programs use in some time, parts of an engine."""
    def used():
        return {app["uid"]: (app["busy_s"], app["age_s"]) for app in applications(server)}
    before = used()
    time.sleep(seconds)
    return {uid: (ns - before[uid][0]) / (age - before[uid][1])
            for uid, (ns, age) in used().items()}


def accounts_share_engines_by_weight():
    if os.geteuid():
        raise pytap.Skip("needs root, to have programs of two accounts")
    os.chmod(path(""), 0o755)
    with serving("--mode", "666", "--engines", "1", "--share", "user:nobody,weight=300") as server:
        env = server.env("batched")
        nobody = pwd.getpwnam("nobody").pw_uid
        programs = [subprocess.Popen([program("busy"), "x"], env=env, user=user,
                                     stdout=subprocess.PIPE, text=True) for user in (0, nobody)]
        for process in programs:
            assert process.stdout.readline().startswith("busy"), server.said()
        part = busy(server, 6)
        assert 2.6 < part[nobody] / part[0] < 3.4, part
        accounts = json.loads(remote(server, "-j", "remote", "accounts").stdout)["accounts"]
        assert {account["account"]: account["weight"] for account in accounts} == {
            "user:0": 100, f"user:{nobody}": 300}, accounts
        done = remote(server, "remote", "set", "user:nobody", "gpu-limit", "10%")
        assert not done.returncode, done
        time.sleep(1)
        part = busy(server, 6)
        assert 0 < part[nobody] < 0.12 and part[0] > 3 * part[nobody], part
        text = remote(server, "remote", "accounts").stdout
        assert re.search(r"^user:nobody +300 +10% +1 +(yes|no)$", text, re.M), text
        for process in programs:
            process.kill()
            process.communicate()
        wait_until(server.has_none)


def wrong_shares_are_refused():
    with serving() as server:
        for words, why in ((("vm:0", "weight", "3"), "an account is user:NAME, vm:CID"),
                           (("user:0", "weight", "0"), "whole number from 1 to 10000"),
                           (("user:0", "gpu-limit", "200%"), "0.1% to 100%"),
                           (("user:0", "weight"), "weight needs a value"),
                           (("user:0", "colour", "3"), "unknown setting 'colour'")):
            done = remote(server, "remote", "set", *words)
            assert done.returncode and why in done.stderr, (words, done)
        assert not remote(server, "remote", "set", "vm:7", "weight", "3").returncode
        text = remote(server, "remote", "accounts").stdout
        assert re.search(r"^vm:7 +3 +none +0 +no$", text, re.M), text
    for share in ("vm:0", "nobody", "user:nobody,weight=0", "others,gpu-limit=0.01%",
                  "others,gpu-limit=5", "others,colour=3"):
        done = run(SERVER, "--share", share)
        assert done.returncode == 2 and "is not allowed" in done.stderr, (share, done)


def without_a_server_there_is_no_platform():
    env = CLIENT
    assert run("clinfo", "-l", env=dict(env, MGPU_REMOTE="off")).stderr == ""
    done = run("clinfo", "-l", env=dict(env, MGPU_REMOTE=path("nothing")))
    assert not done.stdout.strip() and done.stderr.count("No such file") == 1, done


def wrong_calls_are_refused():
    assert "--socket" in run(SERVER, "--help").stdout
    for args, error in ((["--sockets"], "--socket"), (["--memory", "0"], "not allowed"),
                        (["--memory", "9x"], "not allowed"), (["--mode", "9"], "not allowed"),
                        (["--vsock", "0"], "not allowed"), (["--confine", "x"], "not allowed"),
                        (["more"], "unknown command"), (["--objects"], "--objects")):
        done = run(SERVER, *args)
        assert done.returncode == 2 and error in done.stderr, (args, done)
    done = run(SERVER, "--socket", path("no/folder"))
    assert done.returncode == 1 and "No such file" in done.stderr, done


def the_manual_page_has_all_options():
    text = run(SERVER, "--help").stdout
    name = os.path.join(TOP, "Documentation", "man", "mgpu-remoted.8")
    with open(name, encoding="utf-8") as file:
        page = file.read().replace("\\-", "-")
    options = set(re.findall(r"--[a-z-]+", text))
    assert len(options) > 8, options
    for option in options:
        assert option in page, option


if __name__ == "__main__":
    subprocess.run(["make", "-s", "-C", os.path.join(TOP, "ctl"), "remote", "defer", "gpuctl",
                    f"BUILD={BUILD}"],
                   check=True)
    with remoted.tmp:
        os.mkdir(path("vendors"))
        with open(path("vendors/mgpu.icd"), "w", encoding="utf-8") as icd:
            icd.write(os.path.join(CTL, "libmgpu-opencl.so") + "\n")
        sys.exit(pytap.run([
            (programs_print_the_same, "programs print the same as without a server between"),
            (programs_print_the_same_by_a_vgpu, "programs print the same by a vGPU"),
            (vgpus_are_looked_for, "a vGPU is taken if it has remoted OpenCL"),
            (loops_are_deferred, "loops of each class are sent as groups"),
            (missing_reports_are_made, "a program without a report has one at its next start"),
            (errors_of_deferred_loops_are_named, "the first error of a group is named"),
            (the_log_says_why_loops_are_not_deferred, "the log says why loops are not deferred"),
            (clinfo_runs_unmodified, "clinfo finds the device, and only what is remoted"),
            (late_errors_are_reported, "an error of a call that was put off is reported"),
            (a_child_gets_errors, "a child of a program gets errors"),
            (other_calls_fail_and_are_named_once, "calls that are not remoted fail, with a line"),
            (a_killed_server_is_an_error, "calls fail when the server is killed"),
            (a_killed_program_ends_its_process, "a program that is killed ends its process"),
            (the_listener_ends_all, "a listener that ends has all processes end"),
            (hostile_programs_lose_their_process, "a hostile program loses its own process"),
            (processes_have_few_rights, "a program's process has few rights"),
            (gpuctl_tells_what_programs_do, "gpuctl tells what programs do"),
            (others_may_not_ask, "the control socket is closed to others, or not there"),
            (accounts_have_limits, "programs of an account have limits together"),
            (accounts_share_engines_by_weight, "accounts share engines by weight, below limits"),
            (wrong_shares_are_refused, "shares that make no sense are refused"),
            (large_data_go_through_shared_memory, "large data go through shared memory"),
            (memory_that_can_shrink_is_not_shared, "memory that can shrink is not shared"),
            (kernels_cannot_call_what_no_driver_needs, "kernels cannot make most system calls"),
            (kernels_see_files_of_the_system_only, "kernels see files of the system only"),
            (programs_are_turned_away, "programs are turned away when there are too many"),
            (without_a_server_there_is_no_platform, "without a server there is no platform"),
            (wrong_calls_are_refused, "calls that make no sense are refused"),
            (the_manual_page_has_all_options, "the manual page has all options"),
        ]))
