#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mgpu-sim's command line: its output, its errors, the same result for the same seed,
# and its speed.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
export BUILD=${BUILD:-$top/build}
sim=$BUILD/sim/mgpu-sim
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

must 'mgpu-sim cannot be built' make -s -C "$top/tools/sim"

reference()
{
	"$sim" --seconds 60 --json "$tmp/a.json" --csv "$tmp/a.csv" >"$tmp/a.txt" ||
		echo "status $?"
	look "$tmp/a.json" '[r["policy"] for r in d["reference"]] == ["none", "vgasa", "fea", "exact", "clairvoyant"]'
	look "$tmp/a.json" 'all(r["mean"] < 0 and r["std"] > 0 for r in d["reference"])'
	look "$tmp/a.json" 'all(r["mean"] <= r["bound_mean"] + 0.01 for r in d["runs"])'
	look "$tmp/a.json" 'all(0 < r["engine_use"] <= 1 and 0 < r["cpu_use"] <= 1 for r in d["runs"])'
	look "$tmp/a.json" 'all(v["fps"] <= 31 for v in runs["vgasa"]["vms"])'
	[ "$(wc -l <"$tmp/a.csv")" -eq 301 ] || echo "$(wc -l <"$tmp/a.csv") lines of CSV"
	grep -q 'times real time' "$tmp/a.txt" || show "$tmp/a.txt"
}
behaves 'the reference scenario gives a table, JSON and CSV' reference

seeds()
{
	"$sim" --seconds 60 --csv "$tmp/b.csv" >/dev/null || echo "status $?"
	"$sim" --seconds 60 --csv "$tmp/c.csv" --seed 2 >/dev/null || echo "status $?"
	cmp "$tmp/a.csv" "$tmp/b.csv"
	! cmp -s "$tmp/a.csv" "$tmp/c.csv" || echo 'another seed gives the same'
}
behaves 'the same seed gives the same, another seed does not' seeds

# Far below what is measured, so that a machine that is busy passes.
speed()
{
	"$sim" --seconds 600 --json "$tmp/d.json" >/dev/null
	look "$tmp/d.json" 'd["times_real_time"] > 1000'
}
behaves 'it is a thousand times as fast as real time' speed

scenarios()
{
	for s in $("$sim" --list | sed -n '/^Scen/,/^All/s/^  \([a-z]*\) .*/\1/p'); do
		"$sim" --scenario "$s" --seconds 40 --allocator all --json "$tmp/s.json" \
			>"$tmp/s.txt" 2>&1 || echo "$s: status $?: $(tail -1 "$tmp/s.txt")"
		look "$tmp/s.json" 'len(d["runs"]) >= 8 and all(r["mean"] is not None for r in d["runs"])'
	done
}
behaves 'every scenario runs under every allocator' scenarios

# On seeds that nothing was tuned on. Scenarios with promises are left out: the best f
# knows no promises, the clairvoyant keeps them.
best()
{
	for s in reference weighted unequal cpu mixed comings idle; do
		"$sim" --scenario $s --seconds 120 --seed 71 --json "$tmp/best.json" \
			>/dev/null || echo "$s: status $?"
		look "$tmp/best.json" 'all(r["mean"] <= r["best_mean"] for r in d["runs"])'
		look "$tmp/best.json" 'all(-0.02 < 1 - runs[p]["best_mean"] / runs["clairvoyant"]["mean"] < 0.05 for p in ("none", "fea", "exact", "clairvoyant"))'
	done
}
behaves 'the best f is what the clairvoyant reaches, to a few percent' best

# Frames as serial guests show them: VMs that wait for one another leave capacity idle.
awk 'BEGIN {
	print "# mgpu-trace cpus=2 engines=1 seconds=60"
	print "time_s,vgpu,cpu_s,engine_s"
	for (i = 0; i < 3600; i++)
		printf "%.4f,vm%d,%.4f,%.4f\n", i / 60, i % 3,
			0.010 + (i * 7 % 5) * 0.001, 0.008 + (i * 5 % 7) * 0.001
}' >"$tmp/serial.csv"
serial()
{
	for more in '' --engines-on-cpus; do
		"$sim" --trace "$tmp/serial.csv" $more --json "$tmp/serial.json" >/dev/null ||
			echo "status $?"
		look "$tmp/serial.json" 'all(r["mean"] <= r["best_mean"] for r in d["runs"])'
		look "$tmp/serial.json" 'all(-0.02 < 1 - runs[p]["best_mean"] / runs["clairvoyant"]["mean"] < 0.05 for p in ("none", "fea", "exact"))'
	done
}
behaves 'so it is where VMs wait for one another' serial

# The engine is what the games lack, so its time goes by weight.
by_weight()
{
	"$sim" --scenario unequal --seconds 200 --seed 72 --json "$tmp/w.json" >/dev/null ||
		echo "status $?"
	look "$tmp/w.json" '[v["weight"] for v in d["vms"]] == [400, 200, 100]'
	for a in exact fea clairvoyant; do
		look "$tmp/w.json" "all(abs(v['gpu_share'] / w - 1) < 0.1 for v, w in zip(runs['$a']['vms'], (4 / 7, 2 / 7, 1 / 7)))"
	done
	look "$tmp/w.json" 'runs["exact"]["mean"] > 0.95 * runs["none"]["mean"]'
	"$sim" --seconds 200 --seed 72 --weight A=400 --weight B=200 --json "$tmp/v.json" \
		>/dev/null || echo "status $?"
	# the same games and the same weights
	look "$tmp/v.json" "all(r['mean'] == s['mean'] for r, s in zip(d['runs'], json.load(open('$tmp/w.json'))['runs']))"
}
behaves 'shares follow weights' by_weight

printed()
{
	"$sim" --list | grep -q '^  fea-printed ' || echo '--list does not name it'
	"$sim" --seconds 20 --allocator fea,fea-printed --json "$tmp/p.json" >"$tmp/out" ||
		echo "status $?"
	look "$tmp/p.json" 'list(runs) == ["fea", "fea-printed"]'
	look "$tmp/p.json" 'runs["fea"] != runs["fea-printed"]'
}
behaves 'fea as its source prints it is an allocator of the simulator' printed

floors_and_ceilings()
{
	"$sim" --seconds 100 --allocator exact,none --floor C=80 --ceiling B=20 \
		--json "$tmp/e.json" >/dev/null || echo "status $?"
	look "$tmp/e.json" 'runs["exact"]["vms"][1]["fps"] <= 20.1'
	look "$tmp/e.json" 'runs["exact"]["vms"][2]["periods_below_floor"] < runs["none"]["vms"][2]["periods_below_floor"]'
	look "$tmp/e.json" 'runs["exact"]["vms"][2]["fps"] > 1.5 * runs["none"]["vms"][2]["fps"]'
}
behaves 'floors and ceilings are kept where there is room' floors_and_ceilings

# Where the engine's order is fair, limits rest.
no_cost()
{
	local scenario seed

	for scenario in weighted mixed comings; do
		for seed in 73 74 75; do
			"$sim" --scenario $scenario --allocator exact,fea,none --seed $seed \
				--json "$tmp/n.json" >/dev/null || echo "status $?"
			look "$tmp/n.json" 'all(runs[a]["mean"] > 1.002 * runs["none"]["mean"] for a in ("exact", "fea"))'
			look "$tmp/n.json" 'all(sum(v["fps"] for v in runs[a]["vms"]) > 0.995 * sum(v["fps"] for v in runs["none"]["vms"]) for a in ("exact", "fea"))'
		done
	done
}
behaves 'control costs nothing where rates are fair without it' no_cost

# The plan uses capacities up, so that a floor needs its margin.
promise()
{
	local seed

	for seed in 73 74 75; do
		"$sim" --scenario light --allocator exact,fea,none --seed $seed \
			--json "$tmp/l.json" >/dev/null || echo "status $?"
		look "$tmp/l.json" 'all(runs[a]["vms"][2]["periods_below_floor"] <= 0.01 * runs[a]["periods"] for a in ("exact", "fea"))'
		look "$tmp/l.json" 'runs["none"]["vms"][2]["periods_below_floor"] > 0.9 * runs["none"]["periods"]'
	done
}
behaves 'a promise is kept in 99 of 100 periods' promise

drawn()
{
	for s in churn bursts diurnal; do
		"$sim" --scenario $s --seed 7 --seconds 30 --allocator exact --json "$tmp/1.json" \
			>/dev/null || echo "$s: status $?"
		"$sim" --scenario $s --seed 7 --seconds 30 --allocator exact --json "$tmp/2.json" \
			>/dev/null || echo "$s: status $?"
		"$sim" --scenario $s --seed 8 --seconds 30 --allocator exact --json "$tmp/3.json" \
			>/dev/null || echo "$s: status $?"
		look "$tmp/1.json" "d['vms'] == json.load(open('$tmp/2.json'))['vms']"
		look "$tmp/1.json" "d['vms'] != json.load(open('$tmp/3.json'))['vms']"
		look "$tmp/1.json" '4 <= len(d["vms"]) <= 10'
	done
}
behaves 'a seed draws the same scenario each time, another seed another one' drawn

# On seeds that nothing was tuned on. The steady state is that of the allocator alone.
expectations()
{
	for s in churn bursts diurnal; do
		for seed in 73 74 75; do
			"$sim" --scenario $s --allocator exact,exact+static --seed $seed \
				--json "$tmp/x$seed.json" >/dev/null || echo "$s: status $?"
		done
		look "$tmp/x73.json" "sum(r['first_mean'] * (2 * ('+' in r['policy']) - 1) for n in (73, 74, 75) for r in json.load(open(f'$tmp/x{n}.json'))['runs']) > 0.3"
	done
	"$sim" --allocator exact,exact+static --seed 73 --json "$tmp/x.json" >/dev/null ||
		echo "status $?"
	look "$tmp/x.json" 'runs["exact"]["mean"] == runs["exact+static"]["mean"]'
	look "$tmp/x.json" 'runs["exact"]["first_mean"] is None'
}
behaves 'with expectations the first seconds of a VM are fairer, and no others change' expectations

{
	echo 'name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time'
	for i in {1..40}; do
		echo "t$i,$((i % 5 * 1000 + 500)),1024,$((i % 4 ? 1 : 0)),$((i % 4 ? i * 20 : 0)),$((i * 50)),$((i * 50 + 400))"
	done
} >"$tmp/tasks.csv"
tasks()
{
	"$sim" --tasks "$tmp/tasks.csv" --seed 5 --allocator exact,none \
		--json "$tmp/k.json" >/dev/null || echo "status $?"
	look "$tmp/k.json" 'd["scenario"] == "tasks" and 4 <= len(d["vms"]) <= 10'
	look "$tmp/k.json" 'all("/1000 GPU" in v["what"] for v in d["vms"])'
	# they come and go
	look "$tmp/k.json" 'all(0 < v["periods_present"] < runs["exact"]["periods"] for v in runs["exact"]["vms"][1:])'
	refused "$sim" 2 'exclude each other' --tasks "$tmp/tasks.csv" --scenario cpu
	refused "$sim" 1 'No such file' --tasks "$tmp/none"
	head -3 "$tmp/tasks.csv" >"$tmp/few.csv"
	refused "$sim" 1 'the trace has 2 tasks with times that share a GPU' --tasks "$tmp/few.csv"
	echo 'x,y' >"$tmp/other.csv"
	refused "$sim" 1 "no column 'cpu_milli'" --tasks "$tmp/other.csv"
}
behaves 'tasks of a cluster become VMs' tasks

log()
{
	"$sim" --scenario churn --seed 7 --seconds 20 --allocator exact --log "$tmp/log" >/dev/null ||
		echo "status $?"
	[ "$(wc -l <"$tmp/log")" -eq 25 ] || echo "$(wc -l <"$tmp/log") lines"
	jq -es 'all(.[]; .capacity.gpu_engines == 1 and (.vgpus | length) >= 4) and
		any(.[].vgpus[]; .state == "active" and .fps > 0 and .reach_fps >= .fps) and
		any(.[].vgpus[]; .description != "")' "$tmp/log" >/dev/null || head -2 "$tmp/log"
	refused "$sim" 1 'No such file' --log "$tmp/no/log"
}
behaves 'it writes a log as mgpud does' log

awk 'BEGIN {
	print "time_s,vgpu,frame,frames,cpu_s,engine_s,held_s"
	for (i = 1; i <= 4000; i++)
		printf "%.6f,%s,%d,1,%s,0\n", i / 100, i % 3 ? "fast" : "slow", i,
			i % 3 ? "0.004,0.003" : "0.008,0.012"
}' >"$tmp/t.csv"
trace()
{
	"$sim" --trace "$tmp/t.csv" --cpus 4 --json "$tmp/t.json" >/dev/null ||
		echo "status $?"
	look "$tmp/t.json" 'd["scenario"] == "trace" and d["seconds"] == 40'
	look "$tmp/t.json" 'abs(d["vms"][0]["cpu_s_per_frame"] - 0.004) < 1e-6'
	look "$tmp/t.json" 'abs(d["vms"][1]["gpu_s_per_frame"] - 0.012) < 1e-6'
	look "$tmp/t.json" 'abs(runs["exact"]["mean"] / runs["clairvoyant"]["mean"] - 1) < 0.05'
}
behaves 'a trace is replayed with its costs' trace

plot()
{
	"$sim" --seconds 30 --plot "$tmp/p.png" >/dev/null || echo "status $?"
	[ "$(head -c 4 "$tmp/p.png" | tail -c 3)" = PNG ] || echo 'no PNG'
	# where VMs come, there is one more plot
	"$sim" --scenario churn --seconds 30 --plot "$tmp/q.png" >/dev/null || echo "status $?"
	python3 - "$tmp/p.png" "$tmp/q.png" <<-'END'
	import struct, sys
	low, high = (struct.unpack(">I", open(f, "rb").read()[20:24])[0] for f in sys.argv[1:])
	print(end="" if high > low else f"plots are {low} and {high} pixels high\n")
	END
}
behaves 'it draws a plot' plot

printf 'time_s,vgpu,cpu_s,engine_s\n1,a,0.1,x\n' >"$tmp/bad.csv"
wrong_calls()
{
	refused "$sim" 1 "bad.csv:2: engine_s is 'x'" --trace "$tmp/bad.csv"
	refused "$sim" 1 'No such file' --trace "$tmp/none.csv"
	refused "$sim" 1 'is directory\|zero byte\|cannot be read\|Is a directory' --trace "$tmp"
	refused "$sim" 1 "unknown scenario 'x'; --list" --scenario x
	refused "$sim" 1 "unknown VM 'X'" --floor X=30
	refused "$sim" 1 'floor must not be above ceiling' --floor A=30 --ceiling A=20
	refused "$sim" 1 'leave no CPU time' --host-cpus 4
	refused "$sim" 1 "order must be weighted" --order fixed
	refused "$sim" 1 'beta' --beta 1
	refused "$sim" 2 "unknown allocator; --list" --allocator nobody
	refused "$sim" 2 "unknown allocator; --list" --allocator nobody+static
	refused "$sim" 2 "unknown model; --list" --allocator exact+nobody
	refused "$sim" 1 "not a file of learned weights" --weights "$tmp/t.csv"
	refused "$sim" 1 'No such file' --weights "$tmp/none"
	refused "$sim" 1 'a second file of the model network' \
		--weights "$top/ctl/learn/weights/network.weights" \
		--weights "$top/ctl/learn/weights/network.weights"
	refused "$sim" 2 'whole number from 100 to 60000' --period-ms 99
	refused "$sim" 2 'from 1 to 100000' --seconds nan
	refused "$sim" 2 'VM=VALUE' --floor 30
	refused "$sim" 2 'whole number from 1 to 10000' --weight A=0
	refused "$sim" 2 'whole number from 1 to 10000' --weight A=1.5
	refused "$sim" 2 'exclude each other' --scenario cpu --trace "$tmp/t.csv"
	refused "$sim" 2 "unexpected argument 'more'" more
}
behaves 'a wrong call is refused with what to do' wrong_calls

done_testing
