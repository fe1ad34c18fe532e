# SPDX-License-Identifier: GPL-2.0-only
"""The lock that keeps two benches from one directory of results; alone() of host.sh takes it, too."""
import fcntl
import os
import sys

LOCKS = []                      # files that stay open until the program ends


def alone(build):
    """Take the results in a directory of the build until this program ends, or end it.

    Two benches at a time would write to the same files, and would measure each other. The bench
    that calls this one has the lock already.
    """
    if os.environ.get("MGPU_BENCH_ALONE"):
        return
    results = os.path.join(build, "bench")
    os.makedirs(results, exist_ok=True)
    # pylint: disable-next=consider-using-with
    lock = open(os.path.join(results, ".lock"), "w", encoding="ascii")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"bench: another bench runs with {results}: wait for its end, or set BUILD")
    LOCKS.append(lock)
    os.environ["MGPU_BENCH_ALONE"] = "1"
