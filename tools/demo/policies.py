# SPDX-License-Identifier: GPL-2.0-only
"""Policies that the demo compares, and the order of their turns.

A policy is the engine's order (gpuctl dev set DEV policy) and an allocator of mgpud.
"none" is what a shared GPU does without mgpu: jobs in the order of arrival, and no VM
held back.  All others have mgpu's queueing; "weighted" has no more than that.
"""
import random

POLICIES = {
    "none": {"order": "best-effort", "allocator": "none"},
    "weighted": {"order": "weighted", "allocator": "none"},
    "vgasa": {"order": "weighted", "allocator": "vgasa"},
    "fea": {"order": "weighted", "allocator": "fea"},
    "exact": {"order": "weighted", "allocator": "exact"},
}
PROMISE = "exact"           # the policy that keeps a promise at the end


def turns(policies, rounds, seed):
    """Return (round, policy) for each turn.

    A round has each policy once.  Every second round is the one before it backwards, so
    that what changes steadily during both favours no policy; each further pair begins
    elsewhere in the order.
    """
    order = list(policies)
    random.Random(seed).shuffle(order)
    out = []
    for i in range(rounds):
        first = i // 2 * 2 % len(order)
        row = order[first:] + order[:first]
        out += [(i, p) for p in (row[::-1] if i % 2 else row)]
    return out
