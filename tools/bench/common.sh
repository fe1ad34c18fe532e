# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# What benches in the test host have in common: how it is run and watched. To be
# sourced, with $top, $BUILD and $KERNEL set. Sets traps: a signal ends the command
# that $vm is the process of.
: "${top:?}"

vm=
# shellcheck disable=SC2317
interrupted()
{
	trap - INT TERM HUP
	[ -z "$vm" ] || kill -TERM "$vm" 2>/dev/null || true
	[ -z "$vm" ] || wait "$vm" 2>/dev/null || true
	exit 130
}
trap interrupted INT TERM HUP

# Time that threads of a process have run and have waited for a processor, ns.
task_times()	# PID
{
	cat /proc/"$1"/task/*/schedstat 2>/dev/null |
		awk '{ run += $1; wait += $2 } END { printf "%.0f %.0f\n", run, wait }'
}

# The emulator's, when it has come to its end; 0 0 if it was never seen.
emulator_times()	# PID OF tools/vm/run
{
	local qemu='' run=0 wait=0 r w

	while kill -0 "$1" 2>/dev/null; do
		[ -n "$qemu" ] || qemu=$(pgrep -P "$1" -f qemu-system | head -n 1 || true)
		# At its end its threads go one by one, and their times with them.
		if [ -n "$qemu" ] && read -r r w < <(task_times "$qemu") && [ "$r" -ge "$run" ]; then
			run=$r
			wait=$w
		fi
		sleep 1
	done
	echo "$run $wait"
}

# How much of the emulator's time went to others: nothing in the test host can
# see that, and it is in every figure.
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

# A command in the test host; how the emulator fared goes to FILE. Its status.
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
