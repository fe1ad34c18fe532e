# SPDX-License-Identifier: GPL-2.0-only
"""Output of the programs of a bench, and the results that they add to $OUT."""
import json
import os

OUT = os.environ["OUT"]


def round_figures(o):
    if isinstance(o, float):
        return float(f"{o:.5g}")
    if isinstance(o, dict):
        return {k: round_figures(v) for k, v in o.items()}
    if isinstance(o, list):
        return [round_figures(v) for v in o]
    return o


def say(text):
    print(f"bench: {text}", flush=True)


def results(name):
    """Return a function that adds a result, a part and its record, to $OUT/NAME.jsonl."""
    def result(part, record):
        with open(os.path.join(OUT, f"{name}.jsonl"), "a", encoding="utf-8") as f:
            f.write(json.dumps(round_figures({"part": part, **record})) + "\n")
    return result
