#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# tools/guest/verdict on recorded serial logs: what a test may take for a fault of the
# emulated processor, and what it must not; and tests/e2e/host/boot-and-run and lib, which
# go by it, with a test host that is none.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
verdict=$top/tools/guest/verdict
data=$top/tests/unit/data
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
plan 13
# shellcheck disable=SC2034
asserts=is

cat >"$tmp/free" <<'END'
[<0>] futex_wait_queue+0x60/0x90
[<0>] kvm_vcpu_block+0x4c/0xb0 [kvm]
END
cat >"$tmp/ours" <<'END'
[<0>] mgpu_sched_idle+0x5c/0x90 [mgpu]
[<0>] vfio_device_fops_unl_ioctl+0x7b/0x850 [vfio]
END

# is CLASS REASON LOG [ARGUMENT]...: the verdict's first word and a pattern for the rest
is()
{
	local class=$1 reason=$2 log=$data/serial-$3.log out rc=0 want=1
	shift 3

	[ "$class" != emulation ] || want=0
	out=$(MGPU_SLOW=1 "$verdict" "$@" "$log") || rc=$?
	[ $rc -eq $want ] || bad "$log $*: status $rc, not $want"
	[[ $out == "$class: "* ]] && grep -qe "$reason" <<<"$out" ||
		bad "$log $*: '$out', not '$class: ...$reason'"
}

alive=(--alive 20 "$tmp/free")
held=(--alive 20 "$tmp/ours")

is emulation 'double fault.*before init' panic-at-boot
is emulation 'double fault.*before init' panic-at-boot "${alive[@]}"
judge 'a panic before init is up is the emulation'"'"'s'

is ours 'double fault.*start 2' panic-after-reset
is ours 'page fault.*start 2' panic-after-reboot
# a start of which init printed nothing
is ours 'double fault.*start 2' panic-at-boot --reset 41
is emulation 'double fault' panic-at-boot --reset 700
is ours 'int3.*start 2' int3 --reset 200
judge 'a panic after a reset or a reboot is ours'

is ours 'NULL pointer' panic
judge 'a panic of a guest that was up is ours'

is emulation 'int3: 0000' int3
is emulation 'int3: 0000' int3 "${held[@]}"
is ours 'int3: 0000.*in virtio_gpu_queue_ctrl_sgs' int3-virtio-gpu
judge 'an int3 is the emulation'"'"'s unless a function of the driver is in its trace'

is ours 'WARNING: CPU: 0' warning-int3
judge 'the first report decides: an int3 after a warning is ours'

is emulation 'detected stalls' stall "${alive[@]}"
is ours 'in the modules' stall "${held[@]}"
is ours 'QEMU is gone' stall
is ours 'start 2' stall "${alive[@]}" --reset 250
judge 'a stall is the emulation'"'"'s unless a thread of QEMU is in the modules'

is emulation 'not up after 100 s' silent --alive 100 "$tmp/free"
is ours 'in the modules' silent --alive 100 "$tmp/ours"
is none 'no report' silent --alive 99 "$tmp/free"
is none 'no report' silent
is none 'no report' silent --alive 300 "$tmp/free" --reset 10
is none 'no report' clean --alive 300 "$tmp/free"
judge 'a guest that does not come up is the emulation'"'"'s after 100 s, at its first start'

"$verdict" >/dev/null 2>"$tmp/err" && bad 'no log: status 0'
"$verdict" "$tmp/missing" >/dev/null 2>>"$tmp/err"
[ $? -eq 2 ] || bad 'a log that is not there: status not 2'
grep -q '^ *tools/guest/verdict ' "$tmp/err" || bad "says $(cat "$tmp/err")"
judge 'a wrong call is refused'

# ---- programs that use the verdict

fake=$tmp/fake
host=$fake/tests/e2e/host
mkdir -p "$host" "$fake"/tests/lib "$fake"/tools/{vm,guest}
cp "$top"/tests/e2e/host/{boot-and-run,lib} "$host"
cp "$top/tests/lib/tap.sh" "$fake/tests/lib"
cp "$verdict" "$fake/tools/guest"
cat >"$fake/tools/vm/run" <<'END'
#!/usr/bin/env bash
# runs the program here; $E2E_STATUS is that of a test host of which it is known
while [ "$1" != -- ]; do
	[ "$1" != --out ] || export OUT=$2
	[ "$1" != --env ] || export "$2"
	shift
done
shift
export try=${OUT##*-}
"$@"
rc=$?
[ -z "${E2E_STATUS-}" ] || { echo 'vm: QEMU went wrong' >&2; exit "$E2E_STATUS"; }
exit $rc
END
chmod +x "$fake/tools/vm/run"

# Run a program of two results whose guest has a log, and judge by both.
#   e2e LOG-OF-TRY-1 LOG-OF-TRY-2 LINE...
e2e()
{
	{
		echo 'plan=2'
		echo 'limit=10'
		# shellcheck disable=SC2016
		echo '. "$(dirname "$0")/lib"'
		echo 'at_exit finish'
		echo 'emulated=yes'
		# shellcheck disable=SC2016
		echo 'mkdir -p "$work/g"'
		echo "logs=(none '$1' '$2')"
		# shellcheck disable=SC2016
		echo "cp $data/serial-"'${logs[try]}.log "$work/g/serial.log"'
		echo 'pid_of[g]=none since[g]=0 resets[g]='
		printf '%s\n' "${@:3}"
	} >"$host/program"
	sed -i '1i #!/usr/bin/env bash' "$host/program"
	chmod +x "$host/program"
	E2E_WORK=$tmp/work OUT=$tmp/out MGPU_SLOW=1 "$host/boot-and-run" program \
		>"$tmp/said" 2>"$tmp/err"
	status=$?
}

says()		# STATUS RETRIES RESULT...: what it printed, in short
{
	local want=$1 retries=$2 got
	shift 2

	got=$(sed -n 's/^\(ok\|not ok\|Bail out!\).*/\1/p' "$tmp/said" | paste -sd ,)
	[ $status -eq "$want" ] || bad "status $status, not $want"
	[ "$(grep -c '^# retried: ' "$tmp/said")" -eq "$retries" ] || bad "not $retries retries"
	[ "$got" = "$1" ] || bad "results $got, not $1"
	[ -z "$problem" ] || bad "$(cat "$tmp/said" "$tmp/err")"
}
asserts='is says'

e2e panic-at-boot clean 'check a true' "check b [ \$try = 2 ]"
says 0 1 ok,ok,ok
grep -q '^# retried: program: guest g: .*double fault.*; logs of the first try: ' "$tmp/said" ||
	bad "says $(grep retried "$tmp/said")"
[ -s "$tmp/out/try-1/serial-g.log" ] && [ -s "$tmp/out/try-1/output" ] &&
	[ -s "$tmp/out/try-2/output" ] || bad "kept: $(ls "$tmp"/out/*)"
e2e panic-at-boot clean 'check a true' "[ \$try = 2 ] || bail 'no guest'" 'check b true'
says 0 1 ok,ok,ok
judge 'a check that fails with a guest that the emulation broke is done again, in a try of its own'

e2e panic-at-boot panic-at-boot 'check a true' 'check b false'
says 4 1 'ok,not ok'
judge 'it is done again once'

e2e panic clean 'check a true' "check b [ \$try = 2 ]"
says 1 0 'ok,not ok,ok'
e2e panic-at-boot clean "cp $data/serial-clean.log \"\$work/g/serial.log\"" 'check a false' \
	"cp $data/serial-int3.log \"\$work/g/serial.log\"" 'check b false'
says 1 0 'not ok,not ok,ok'
e2e panic-at-boot clean 'resets[g]=10' 'check a false' 'check b true'
says 1 0 'not ok,ok,ok'
judge 'a failure that is ours is not done again, nor one that came before the emulation broke'

E2E_STATUS=4 e2e clean clean 'check a true' "check b [ \$try = 2 ]"
says 4 0 'ok,not ok,not ok'
E2E_STATUS=3 e2e clean clean 'check a true' 'check b true'
says 3 0 'ok,ok,not ok'
judge 'neither a wrong result nor a warning is lost when the test host goes wrong as well'

unset LIBVIRT_SUITE
BUILD=$tmp/build e2e clean clean libvirt=yes 'check a true' 'check b true'
says 4 0 ''
grep -qx '1\.\.0 # SKIP no libvirt to test with; run: make libvirt' "$tmp/said" ||
	bad "says $(cat "$tmp/said")"
mkdir -p "$tmp/build/libvirt/bookworm"
touch "$tmp/build/libvirt/bookworm/.complete"
BUILD=$tmp/build e2e clean clean libvirt=yes "check a [ \"\$LIBVIRT_SUITE\" = bookworm ]" \
	'check b true'
says 0 0 ok,ok,ok
judge 'a program with libvirt is skipped where there is none, and gets its suite'

done_testing
