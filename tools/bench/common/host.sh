# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Common parts of the scripts that start a bench: where things are, and how the test
# host is run and watched. To be sourced. Sets top, out, BUILD and KERNEL. Sets traps:
# a signal ends the process of ID $vm, and the caller's function keep, if there is one,
# stores the results so far.

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
export BUILD=${BUILD:-$top/build}
export KERNEL=${KERNEL:-6.1}
# shellcheck disable=SC2034
out=$BUILD/bench

die()
{
	echo "bench: $*" >&2
	exit 1
}

# Programs and modules that a bench needs.
built()		# TARGET OF make, FILE...
{
	local target=$1 file
	shift

	for file; do
		[ -e "$file" ] || die "$file is missing; run: make $target"
	done
}

# Take the directory of results until the script ends: two benches at a time would write to the same
# files, and would measure each other.
alone()
{
	[ -z "${MGPU_BENCH_ALONE-}" ] || return 0	# the bench that calls this one has it
	mkdir -p "$BUILD/bench"
	exec 8>"$BUILD/bench/.lock"
	flock -n 8 || die "another bench runs with $BUILD/bench: wait for its end, or set BUILD"
	export MGPU_BENCH_ALONE=1
}

# Succeed if a part is in the caller's array parts.
# shellcheck disable=SC2154
wanted()	# PART
{
	[[ " ${parts[*]} " == *" $1 "* ]]
}

vm=
# shellcheck disable=SC2317
interrupted()
{
	trap - INT TERM HUP
	[ -z "$vm" ] || kill -TERM "$vm" 2>/dev/null || true
	[ -z "$vm" ] || wait "$vm" 2>/dev/null || true
	! declare -F keep >/dev/null || keep || true
	exit 130
}
trap interrupted INT TERM HUP

# Print the time for which a process's threads have run and have waited for a
# processor, ns.
task_times()	# PID
{
	cat /proc/"$1"/task/*/schedstat 2>/dev/null |
		awk '{ run += $1; wait += $2 } END { printf "%.0f %.0f\n", run, wait }'
}

# Print the emulator's times when it has ended; 0 0 if it was never seen.
emulator_times()	# PID OF tools/vm/run
{
	local qemu='' run=0 wait=0 r w

	while kill -0 "$1" 2>/dev/null; do
		[ -n "$qemu" ] || qemu=$(pgrep -P "$1" -f qemu-system | head -n 1 || true)
		# When the emulator exits, its threads and their times go one by one.
		if [ -n "$qemu" ] && read -r r w < <(task_times "$qemu") && [ "$r" -ge "$run" ]; then
			run=$r
			wait=$w
		fi
		sleep 1
	done
	echo "$run $wait"
}

# Write how long the emulator waited for a processor. This time is in every figure, and
# nothing in the test host can see it.
watch_emulator()	# PID OF tools/vm/run, FILE
{
	local load run wait

	read -r load _ </proc/loadavg
	read -r run wait < <(emulator_times "$1")
	printf '{"level0_cpus": %d, "level0_load_before": %s, "emulator_ran_s": %.1f, "emulator_waited_s": %.1f, "accel": "%s"}\n' \
		"$(nproc)" "$load" "$((run / 1000000))e-3" "$((wait / 1000000))e-3" \
		"$(if grep -qx kvm "$BUILD/vm/accel-$KERNEL" 2>/dev/null; then echo kvm; else echo tcg; fi)" \
		>"$2"
}

# Run a command in the test host and return its status; the emulator's times go to FILE.
in_host()	# FILE, ARGUMENT OF tools/vm/run...
{
	local file=$1 status=0 watcher
	shift

	# In the background, so that a signal reaches the trap at once.
	"$top/tools/vm/run" --kernel "$KERNEL" --smp 2 --mem 4096 "$@" &
	vm=$!
	watch_emulator "$vm" "$file" &
	watcher=$!
	wait "$vm" || status=$?
	vm=
	wait "$watcher" || true
	return "$status"
}
