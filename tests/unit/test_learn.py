#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""mgpu-learn: its commands, on histories that the simulator writes."""

import json
import os
import re
import subprocess
import sys
import tempfile

import pytap

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD", os.path.join(TOP, "build"))
LEARN = os.path.join(BUILD, "ctl", "mgpu-learn")
SIM = os.path.join(BUILD, "sim", "mgpu-sim")
WEIGHTS = os.path.join(TOP, "ctl", "learn", "weights")
CONTROLS = ["static", "proportional", "persistence", "smoothing"]

tmp = tempfile.TemporaryDirectory()


def path(name):
    """Return the name of a file for this test."""
    return os.path.join(tmp.name, name)


def run(*args, **more):
    """Run mgpu-learn."""
    return subprocess.run([LEARN, *args], capture_output=True, text=True, check=False,
                          env={**os.environ, "SOURCE_DATE_EPOCH": "1000", **more})


def output(*args):
    """Return the output of a call that must succeed."""
    done = run(*args)
    assert done.returncode == 0 and not done.stderr, (args, done.stderr)
    return done.stdout


def refused(status, error, *args):
    """See that a call is refused with this error."""
    done = run(*args)
    assert done.returncode == status, (args, done.returncode, done.stderr)
    assert done.stderr.startswith("mgpu-learn: "), done.stderr
    assert error in done.stderr, (args, done.stderr)
    assert done.stderr.count("\n") == 1, done.stderr


def history(seed, scenario="churn", seconds=100):
    """Return the name of a history."""
    name = path(f"{scenario}-{seed}-{seconds}")
    if not os.path.exists(name):
        subprocess.run([SIM, "--scenario", scenario, "--seed", str(seed), "--seconds",
                        str(seconds), "--allocator", "exact", "--log", name], check=True,
                       stdout=subprocess.DEVNULL)
    return name


def histories():
    """Return histories to learn from."""
    return [history(seed) for seed in range(1, 9)]


def weights(model):
    """Return the name of a file of weights."""
    name = path(model + ".weights")
    if not os.path.exists(name):
        epochs = {"trees": "60", "network": "2"}[model]
        output("train", "--model", model, "--output", name, "--epochs", epochs, "-q",
               *histories())
    return name


def content(name):
    """Return the content of a file."""
    with open(name, "rb") as file:
        return file.read()


def trains():
    """Both models, from a seed."""
    for model in ("trees", "network"):
        first = content(weights(model))
        again, other = path("again"), path("other")
        epochs = {"trees": "60", "network": "2"}[model]
        output("train", "--model", model, "--output", again, "--epochs", epochs, "-q",
               *histories())
        assert content(again) == first, model
        output("train", "--model", model, "--output", other, "--epochs", epochs, "-q",
               "--seed", "2", *histories())
        assert content(other) != first, model
        head = first.split(b"\n")
        assert head[0] == b"mgpu-learn 1" and head[1] == b"model " + model.encode(), head[:3]
        assert head[2] == b"made 1000" and re.match(rb"data [0-9a-f]{16} \d+ samples of 8 runs",
                                                    head[3]), head[:5]


def shows_progress():
    """Epochs, losses, time left."""
    done = run("train", "--model", "network", "--output", path("progress"), "--epochs", "2",
               *histories())
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\d+ samples to learn from, \d+ for validation$", done.stderr, re.M)
    assert re.search(r"epoch 2 of 2: loss \d+\.\d+, of validation \d+\.\d+, least in epoch \d; "
                     r"at most 0 s left", done.stderr), done.stderr
    assert "mean absolute error of new VMs" in done.stdout


def evaluates():
    """Errors of the controls and of what was learned."""
    held_out = [history(seed) for seed in (21, 22, 23)]
    rows = json.loads(output("evaluate", "-j", "--horizon", "1,3", "--weights", weights("trees"),
                             *held_out))["demand"]
    assert {row["model"] for row in rows} == {*CONTROLS, "trees"}, rows
    assert {row["horizon"] for row in rows} == {1, 3}
    assert {row["vms"] for row in rows} == {"new", "wakes", "active"}
    of = {(row["horizon"], row["vms"], row["model"]): row for row in rows}
    assert all(0 <= row["mae"] <= 1 and row["answers"] > 0 for row in rows)
    # what nothing is known of gets the same of both
    assert of[1, "new", "persistence"]["mae"] == of[1, "new", "static"]["mae"]
    assert of[1, "active", "trees"]["mae"] < of[1, "active", "static"]["mae"]
    text = output("evaluate", *held_out)
    assert re.search(r"^ +1  new +\d+  static +\d\.\d{4}", text, re.M), text


def inspects():
    """The header."""
    text = output("inspect", weights("trees"))
    assert re.search(r"^model +trees$", text, re.M) and "of 8 runs" in text, text
    head = json.loads(output("inspect", "-j", weights("network")))
    assert head["model"] == "network" and head["made_s"] == 1000 and head["bytes"] > 1000, head


def shipped():
    """The weights of the project."""
    names = sorted(os.listdir(WEIGHTS))
    assert names == ["network.weights", "trees.weights"], names
    held_out = [history(seed, scenario, 200) for seed in (31, 32)
                for scenario in ("churn", "bursts", "diurnal")]
    options = [option for name in names for option in ("--weights", os.path.join(WEIGHTS, name))]
    rows = json.loads(output("evaluate", "-j", *options, *held_out))["demand"]
    of = {(row["vms"], row["model"]): row["mae"] for row in rows}
    for model in ("trees", "network"):
        assert of["new", model] < of["new", "static"], of
        assert of["wakes", model] < of["wakes", "static"], of


def measured_pairs():
    """Return the name of a table of pairs: a job slows others as its batch is large."""
    jobs = [(model, batch) for model in ("ResNet", "LSTM", "Big Net") for batch in (32, 128)]
    name = path("pairs.csv")
    with open(name, "w", encoding="utf-8") as file:
        print("model1,dataset1,batchsize1,speed1,model2,dataset2,batchsize2,speed2", file=file)
        for i, (model, batch) in enumerate(jobs):
            for other, large in jobs[i:]:
                print(f"{model},X,{batch},{1 - large / 400},{other},X,{large},{1 - batch / 400}",
                      file=file)
    return name


def pairs():
    """The commands of pairs."""
    table, trained = measured_pairs(), path("pairs.weights")
    text = output("pairs", "train", "--data", table, "--output", trained)
    assert re.match(r"models that were held out: median error \d+\.\d\d %", text), text
    head = json.loads(output("inspect", "-j", trained))
    assert head["model"] == "pairs" and head["made_s"] == 1000, head
    assert re.fullmatch("[0-9a-f]{16}", head["data"]), head
    small, large = "model=Big Net,dataset=X,batch=32", "model=LSTM,dataset=X,batch=128"
    jobs = json.loads(output("pairs", "predict", "--weights", trained, "--job", small, "--job",
                             large, "-j"))["jobs"]
    assert [job["unseen"] for job in jobs] == ["none", "none"], jobs
    assert jobs[0]["speed"] < jobs[1]["speed"] <= jobs[1]["high_90"], jobs
    assert jobs[0]["class"] == "unknown" and jobs[0]["bound"] is None, jobs
    done = json.loads(output("pairs", "evaluate", "--data", table, "--hold", "parts", "-j"))
    assert done["rows"] == 21 and done["jobs"] == 6, done
    constant = done["pairs"][0]
    assert constant["predictor"] == "constant" and constant["spearman"] is None, constant
    refused(1, "No such file", "pairs", "evaluate", "--data", path("none"))
    refused(1, f"{trained}:1: no column 'model1'", "pairs", "evaluate", "--data", trained)
    refused(1, "--use pairs needs gpu_util and gmem_util", "pairs", "evaluate", "--data", table,
            "--use", "pairs")
    refused(1, "weights of the model 'trees'", "pairs", "predict", "--weights", weights("trees"),
            "--job", small, "--job", large)
    refused(2, "predict needs --job twice", "pairs", "predict", "--weights", trained, "--job",
            small)
    refused(2, "unknown key", "pairs", "predict", "--weights", trained, "--job", "colour=red")


def damaged():
    """Files that are not whole."""
    whole = content(weights("trees"))
    for name, data, error in (
            ("cut", whole[:len(whole) // 2], "the file ends too early"),
            ("flipped", whole[:-40] + bytes([whole[-40] ^ 1]) + whole[-39:], "checksum is wrong"),
            ("newer", whole.replace(b"mgpu-learn 1", b"mgpu-learn 2", 1), "version 2"),
            ("empty", b"", "not a file of learned weights")):
        with open(path(name), "wb") as file:
            file.write(data)
        refused(1, error, "inspect", path(name))
        refused(1, error, "evaluate", "--weights", path(name), history(1))


def wrong_calls():
    """Each says what to do."""
    refused(2, "no command")
    refused(2, "unknown command 'trian'; did you mean 'train'?", "trian")
    refused(2, "unknown option --wieghts; did you mean --weights?", "evaluate", "--wieghts", "x", "y")
    refused(2, "train needs --model", "train", "--output", path("x"), history(1))
    refused(2, "train needs --output", "train", "--model", "trees", history(1))
    refused(2, "it must be network or trees", "train", "--model", "forest", "--output",
            path("x"), history(1))
    refused(2, "needs a history", "evaluate")
    refused(2, "needs one file of weights", "inspect")
    refused(2, "--seed is not for inspect", "inspect", "--seed", "1", "x")
    refused(2, "--horizon must be a whole number from 1 to 60, not '0'", "evaluate", "--horizon",
            "0", history(1))
    refused(2, "--part must be a number from 0 to 1", "evaluate", "--part", "2", history(1))
    refused(2, "--form must be B, A or C", "train", "--form", "D", history(1))
    refused(1, "No such file", "evaluate", path("none"))
    refused(1, ":1: not a JSON object", "evaluate", weights("trees"))
    refused(1, "runs are too few", "train", "--model", "trees", "--output", path("x"), "-q",
            history(1))
    refused(1, "No such file", "train", "--model", "trees", "--output", path("no/x"), "-q",
            "--epochs", "1", *histories())
    with open(path("still"), "w", encoding="utf-8") as file:
        file.write('{"time_s":1,"capacity":{"cpu_cores":1,"gpu_engines":1},"vgpus":[]}\n')
    refused(1, "no VM comes and stays", "evaluate", path("still"))


def reads_what_mgpud_writes():
    """The keys that a history needs are those of mgpud's state and log."""
    with open(os.path.join(TOP, "ctl", "learn", "history.c"), encoding="utf-8") as file:
        keys = set(re.findall(r'(?:number|text|member)\(r, \w+, "(\w+)"', file.read()))
    with open(os.path.join(TOP, "Documentation", "mgpu.schema.json"), encoding="utf-8") as file:
        described = set(re.findall(r'"(\w+)": \{', file.read()))
    assert len(keys) >= 14, keys
    assert keys <= described, keys - described


def helps():
    """Help and version."""
    assert output("help").startswith("usage: mgpu-learn train")
    assert output("train", "--help").startswith("usage: mgpu-learn train")
    assert output("version").startswith("mgpu-learn ")


sys.exit(pytap.run([
    (trains, "models are trained, the same from the same seed"),
    (shows_progress, "training shows losses and the time left"),
    (evaluates, "models are compared with controls on other histories"),
    (inspects, "inspect shows what was learned from what"),
    (shipped, "the project's weights are better than the control on other seeds"),
    (reads_what_mgpud_writes, "a history is what mgpud writes"),
    (pairs, "speeds of pairs are learned, evaluated and predicted"),
    (damaged, "damaged weights are refused"),
    (wrong_calls, "a wrong call is refused with what to do"),
    (helps, "help and version"),
]))
