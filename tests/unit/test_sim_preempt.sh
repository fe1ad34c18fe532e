#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mgpu-sim-preempt: that the same stream gives the same result, that the policy is
# worth having, on a stream that it was looked at with and on one that it was not,
# and what is refused.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
export BUILD=${BUILD:-$top/build}
sim=$BUILD/sim/mgpu-sim-preempt
streams=$top/tools/bench/preempt/streams
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"

# A look at a JSON file: prints what is wrong.
look()	# FILE PYTHON-CONDITION
{
	python3 - "$1" "$2" <<-'END' 2>&1
	import json, sys
	d = json.load(open(sys.argv[1], encoding="utf-8"))
	runs = {r["policy"]: r for r in d["runs"]}
	if not eval(sys.argv[2]):
	    print("not true:", sys.argv[2], "in", json.dumps(d)[:2000])
	END
}

asserts=look

must 'mgpu-sim-preempt cannot be built' make -s -C "$top/tools/sim" preempt

generated()
{
	for s in tuned untuned; do
		sed -n 's/^# mgpu-sim-preempt //p' "$streams/$s.csv" |
			xargs "$sim" | cmp - "$streams/$s.csv" || echo "$s: differs"
	done
	! cmp -s "$streams/tuned.csv" "$streams/untuned.csv" || echo 'both are the same'
}
behaves 'the streams follow from their seeds' generated

better()	# STREAM
{
	"$sim" --stream "$streams/$1.csv" --json "$tmp/$1.json" >"$tmp/$1.txt" ||
		echo "status $?"
	look "$tmp/$1.json" 'list(runs) == ["none", "always", "drain", "flush", "mgpu", "clairvoyant"]'
	look "$tmp/$1.json" 'all(0 < r["norm_ipc"] <= d["slots"] for r in d["runs"])'
	look "$tmp/$1.json" 'runs["none"]["preemptions"] == 0 < runs["mgpu"]["preemptions"]'
	look "$tmp/$1.json" 'runs["mgpu"]["norm_ipc"] >= runs["none"]["norm_ipc"]'
	look "$tmp/$1.json" 'runs["mgpu"]["norm_ipc"] >= max(runs[p]["norm_ipc"] for p in ("always", "drain", "flush"))'
	look "$tmp/$1.json" 'runs["mgpu"]["norm_ipc"] >= 0.95 * runs["clairvoyant"]["norm_ipc"]'
	look "$tmp/$1.json" 'runs["mgpu"]["turnaround_mean_s"] <= runs["none"]["turnaround_mean_s"]'
	look "$tmp/$1.json" 'runs["flush"]["wasted_cycles"] > runs["always"]["wasted_cycles"] > 0'
}
for s in tuned untuned; do
	behaves "$s: mgpu is better than all but near the clairvoyant" better $s
	sed 's/^/# /' "$tmp/$s.txt"
done

# mgpu decides otherwise with what it learned before; where nothing is predicted, nothing changes.
priors()
{
	"$sim" --stream "$streams/tuned.csv" --policy none,mgpu --json "$tmp/cold.json" >/dev/null ||
		echo "status $?"
	"$sim" --stream "$streams/tuned.csv" --prior-stream "$streams/untuned.csv" \
		--policy none,mgpu --json "$tmp/prior.json" >/dev/null || echo "status $?"
	look "$tmp/prior.json" "runs['none']['norm_ipc'] == next(r['norm_ipc'] for r in json.load(open('$tmp/cold.json'))['runs'] if r['policy'] == 'none')"
	look "$tmp/prior.json" "runs['mgpu']['norm_ipc'] != next(r['norm_ipc'] for r in json.load(open('$tmp/cold.json'))['runs'] if r['policy'] == 'mgpu')"
	look "$tmp/prior.json" 'runs["mgpu"]["norm_ipc"] >= runs["none"]["norm_ipc"]'
	refused "$sim" 1 'No such file' --stream "$streams/tuned.csv" --prior-stream "$tmp/none.csv"
	refused "$sim" 1 'No such file' --stream "$streams/tuned.csv" --prior-pairs "$tmp/none"
	refused "$sim" 1 'not a file of learned weights' --stream "$streams/tuned.csv" \
		--prior-pairs "$streams/tuned.csv"
	refused "$sim" 1 "weights of the model 'network', not of pairs" \
		--stream "$streams/tuned.csv" --prior-pairs "$top/ctl/learn/weights/network.weights"
}
behaves 'a run begins with what was learned elsewhere' priors

coefficients()
{
	"$sim" --stream "$streams/tuned.csv" --json "$tmp/again.json" >/dev/null ||
		echo "status $?"
	cmp "$tmp/tuned.json" "$tmp/again.json"
	"$sim" --stream "$streams/tuned.csv" --cost published --decay 0.9 \
		--json "$tmp/published.json" >/dev/null || echo "status $?"
	cmp "$tmp/tuned.json" "$tmp/published.json"
	"$sim" --stream "$streams/tuned.csv" --policy mgpu --cost 1000,1000 --decay 0.5 \
		--json "$tmp/dear.json" >/dev/null || echo "status $?"
	look "$tmp/dear.json" 'runs["mgpu"]["switch"] == 0'
}
behaves 'the same gives the same, other coefficients do not' coefficients

slots_and_bound()
{
	for k in 1 3 16; do
		"$sim" --stream "$streams/tuned.csv" --slots "$k" \
			--policy none,always,drain,flush,mgpu --json "$tmp/k.json" \
			>/dev/null || echo "$k slots: status $?"
		look "$tmp/k.json" "d['slots'] == $k and all(r['norm_ipc'] <= $k + 1e-9 for r in d['runs'])"
	done
	"$sim" --stream "$streams/tuned.csv" --starve-ms 50 --policy mgpu \
		--json "$tmp/starve.json" >/dev/null || echo "status $?"
	look "$tmp/starve.json" 'runs["mgpu"]["starved"] > 0'
}
behaves 'any number of slots, and a bound on waiting' slots_and_bound

# A generated stream, and the runs of policies on it.
simulate()	# SEED JOBS SLOTS WIDE LOAD [OPTION...]
{
	"$sim" --generate "$1" --jobs "$2" --slots "$3" --wide "$4" --load "$5" \
		>"$tmp/seed.csv" || echo "status $?"
	"$sim" --stream "$tmp/seed.csv" --slots "$3" --policy none,always,drain,mgpu \
		--json "$tmp/seed.json" "${@:6}" >/dev/null || echo "status $?"
}

# Streams that no parameter was chosen by.
never_costs()
{
	for s in 1001 1002 1003; do
		for shape in '2 0 1' '2 0.3 1' '4 0 1' '4 0.3 1' '2 0 0.7'; do
			# shellcheck disable=SC2086
			simulate $s 300 $shape
			look "$tmp/seed.json" 'runs["mgpu"]["norm_ipc"] >= runs["none"]["norm_ipc"]'
			look "$tmp/seed.json" 'runs["mgpu"]["norm_ipc"] >= 0.99 * max(r["norm_ipc"] for r in d["runs"])'
		done
	done
}
behaves 'mgpu is at least none, and 0.99 of the best fixed policy' never_costs

# A switch takes some 40 ms and is thought to take 10 us.
never_pays()
{
	for s in 1001 1002; do
		simulate $s 1500 2 0 0.9 --true-cost 200,200
		look "$tmp/seed.json" 'not runs["mgpu"]["guard"]["switch"]["open"]'
		look "$tmp/seed.json" 'runs["mgpu"]["guard"]["switch"]["got"] < 0 < runs["mgpu"]["guard"]["switch"]["expected"]'
		look "$tmp/seed.json" 'runs["mgpu"]["guard"]["switch"]["trials"] <= 24'
		look "$tmp/seed.json" 'runs["mgpu"]["norm_ipc"] >= 0.99 * runs["none"]["norm_ipc"]'
		look "$tmp/seed.json" 'runs["always"]["norm_ipc"] < 0.5 * runs["none"]["norm_ipc"]'
	done
}
behaves 'where switches never pay, the guard forbids them before they cost 1 %' never_pays

pays()
{
	for s in 1001 1002; do
		simulate $s 1500 2 0 0.9
		look "$tmp/seed.json" 'all(m["open"] and not m["closings"] for m in runs["mgpu"]["guard"].values())'
		look "$tmp/seed.json" 'runs["mgpu"]["guard"]["switch"]["trials"] > 20 and runs["mgpu"]["guard"]["switch"]["got"] > 0'
		look "$tmp/seed.json" 'runs["mgpu"]["norm_ipc"] >= 1.03 * runs["none"]["norm_ipc"]'
	done
}
behaves 'where switches pay, the guard forbids none' pays

rarely()
{
	for ms in 5 60; do
		simulate 1001 300 2 0.2 1 --rest-ms $ms
		look "$tmp/seed.json" 'runs["mgpu"]["norm_ipc"] >= runs["none"]["norm_ipc"]'
	done
}
behaves 'decisions that come rarely do not cost either' rarely

head -3 "$streams/tuned.csv" >"$tmp/bad.csv"
echo '1,0,1,1,1,x,1,0,0,0,1,0' >>"$tmp/bad.csv"
head -3 "$streams/tuned.csv" >"$tmp/short.csv"
echo '1,0,1' >>"$tmp/short.csv"
head -3 "$streams/tuned.csv" >"$tmp/empty.csv"
echo 'a,b' >"$tmp/other.csv"
wrong_calls()
{
	refused "$sim" 1 "bad.csv:4: instr is 'x'" --stream "$tmp/bad.csv"
	refused "$sim" 1 'short.csv:4: there must be 12 columns' --stream "$tmp/short.csv"
	refused "$sim" 1 'has no jobs' --stream "$tmp/empty.csv"
	refused "$sim" 1 'the columns must be' --stream "$tmp/other.csv"
	refused "$sim" 1 'No such file' --stream "$tmp/none.csv"
	refused "$sim" 1 'cannot be read' --stream "$tmp"
	refused "$sim" 2 'unknown policy; --list' --stream "$tmp/bad.csv" --policy nobody
	refused "$sim" 2 'published, or A,B' --stream "$tmp/bad.csv" --cost 1
	refused "$sim" 2 'from 0 to 1000' --stream "$tmp/bad.csv" --cost=-1,1
	refused "$sim" 2 'from 0.5 to 1' --stream "$tmp/bad.csv" --decay 0.4
	refused "$sim" 2 'M,C,A,D' --stream "$tmp/bad.csv" --sharing 1,2,3
	refused "$sim" 2 'slowdowns must be' --stream "$tmp/bad.csv" --sharing=-1,0,0,0
	refused "$sim" 2 'from 0 to 1000' --stream "$tmp/bad.csv" --rest-ms=-1
	refused "$sim" 2 'from 1 to 64' --stream "$tmp/bad.csv" --slots 65
	refused "$sim" 2 'one of --stream and --generate' --slots 2
	refused "$sim" 2 "unexpected argument 'more'" --stream "$tmp/bad.csv" more
}
behaves 'a wrong call is refused with what to do' wrong_calls

done_testing
