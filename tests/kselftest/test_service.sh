#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
#
# mgpud's unit under systemd, as "make -C ctl install" installs it: start, sandbox, reload,
# rotation, crash, watchdog, restart and stop, with a vGPU that shows frames.
#
# systemd is process 1 of its own namespaces in the test host. It sees copies of /etc,
# /usr/local and /var that go with it, an empty /run, and of the distribution's units those
# that an ordinary service needs. The network is the test host's, since the module
# answers there. A VMM's process id is that of the test host, which /proc here does not
# have: mgpud learns of its threads by eBPF alone.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
load=$BUILD/kselftest/vgpu-load
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
needs "$BUILD/ctl/mgpud" "$BUILD/ctl/gpuctl" "$load" systemctl journalctl unshare nsenter \
	setpriv groupadd pgrep make jq
[ -x /lib/systemd/systemd ] || skip_all 'no systemd'
[ -z "$(ls /sys/bus/mdev/devices 2>/dev/null)" ] ||
	skip_all 'there are vGPUs, which keep the module loaded'

cgroup=/sys/fs/cgroup/mgpu-service
conf=/etc/mgpu/mgpud.conf
# the unit that is tested
unit=mgpud
launcher=
init=
vmm=
asserts='holds is logged logs unlogged modes has_status returns properties state'

# Run a command where systemd is process 1.
host()
{
	nsenter -t "$init" --mount --pid --uts --ipc --cgroup -- "$@"
}

ctl()
{
	host gpuctl -j ctl show
}

cleanup()
{
	# a time limit sends it twice
	trap '' TERM
	[ -z "$vmm" ] || kill "$vmm"
	# systemd dies with it, and all else with systemd
	[ -z "$launcher" ] || kill -KILL "$launcher"
	wait 2>/dev/null
	for _ in {1..100}; do
		find "$cgroup" -depth -type d -exec rmdir {} \; 2>/dev/null
		[ -d "$cgroup" ] || break
		sleep 0.1
	done
	[ ! -d /sys/module/mgpu_user ] || /usr/sbin/rmmod mgpu_user
	[ -d /sys/module/mgpu_soft ] || "$top/tools/vm/modules" load mgpu_soft
}
at_exit cleanup
trap 'exit 143' TERM

# The load leaves little of two processors: this script goes before it.
renice -n -15 $$ >/dev/null

explain()
{
	[ -n "$init" ] || return
	host systemctl status -n 0 $unit
	host journalctl -q -o cat -n 12 | cut -c -400
} 2>&1

property()	# NAME
{
	host systemctl show -P "$1" $unit
}

# As systemd has them all at one time.
properties()	# NAME=VALUE...
{
	local names=("${@%%=*}")

	host systemctl show "${names[@]/#/--property=}" $unit >"$tmp/properties"
	printf '%s\n' "$@" | sort | diff - <(sort "$tmp/properties")
}

is()		# NAME=VALUE...
{
	await 40 properties "$@" || bad "$unit: not $*: $(cat "$tmp/properties")"
}

state()		# FILTER
{
	ctl | jq -e "$1" >/dev/null
}

holds()		# FILTER
{
	await 40 state "$1" || bad "not so: $1: $(ctl 2>&1 | cut -c -600)"
}

# Lines of the unit in the journal since it was last started. systemd-journald reads the
# invocation of a line from a file that systemd removes when the unit fails: lines of a
# process that ended early may have its process id alone.
journal()
{
	host journalctl -q -o cat "_SYSTEMD_INVOCATION_ID=$(property InvocationID)" + \
		"_PID=$(property ExecMainPID)" >"$tmp/journal"
}

logged()	# PATTERN
{
	journal && grep -q -e "$1" "$tmp/journal"
}

logs()		# PATTERN
{
	await 40 logged "$1" || bad "the journal has no '$1'"
}

# Of lines before one that the journal has already.
unlogged()	# PATTERN
{
	journal || bad 'no journal'
	! grep -e "$1" "$tmp/journal" >"$tmp/lines" || bad "the journal has $(cat "$tmp/lines")"
}

modes()		# 'FILE OWNER:GROUP MODE'...
{
	host stat -c '%n %U:%G %a' "${@%% *}" >"$tmp/out" 2>&1
	printf '%s\n' "$@" | diff - "$tmp/out" >"$tmp/lines" || bad "$(cat "$tmp/lines")"
}

# mgpud's targets and the operator's limits, as the module has them.
figures()
{
	host gpuctl -j vgpu list | jq -c '[.vgpus[] | .limit_fps, .target_fps]'
}

have_figures()	# LIMIT,TARGET
{
	[ "$(figures)" = "[$1]" ]
}

# ---- a host with systemd ----

units='sysinit.target basic.target multi-user.target sockets.target shutdown.target
	systemd-journald.service systemd-journald.socket'

cat >"$tmp/boot" <<'END'
set -e
top=$1 BUILD=$2 room=$3 units=$4
mount -t tmpfs tmpfs "$room"
for d in etc usr/local var; do
	mkdir -p "$room/$d/upper" "$room/$d/work"
	mount -t overlay overlay "/$d" \
		-o "lowerdir=/$d,upperdir=$room/$d/upper,workdir=$room/$d/work"
done
rm -rf /etc/mgpu /var/lib/mgpu /var/log/mgpu
sed -i /^mgpu:/d /etc/group /etc/gshadow
# the programs are built
make -s -C "$top/ctl" install BUILD="$BUILD" PREFIX=/usr/local -o gpuctl -o mgpud

mkdir -p "$room/units/sysinit.target.wants" "$room/none"
for u in $units; do
	cp "/lib/systemd/system/$u" "$room/units"
done
ln -s ../systemd-journald.service "$room/units/sysinit.target.wants"
mount --bind "$room/units" /lib/systemd/system
mount --bind "$room/none" /lib/systemd/system-generators
mount -t tmpfs -o mode=755 tmpfs /etc/systemd
mkdir /etc/systemd/system
printf '[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=\nRateLimitBurst=0\n' >/etc/systemd/journald.conf
umount /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
umount -l /run
mount -t tmpfs -o mode=755 tmpfs /run
exec env -i container=mgpu "PATH=$PATH" LANG=C.UTF-8 /lib/systemd/systemd --system \
	--unit=multi-user.target --log-target=journal --show-status=no
END

booted()
{
	init=$(pgrep -P "$launcher" -x systemd) &&
		host systemctl is-active multi-user.target
}

must 'no cgroup' mkdir "$cgroup"
mkdir "$tmp/room"
(
	echo $BASHPID >"$cgroup/cgroup.procs"
	# services begin with the priority of any other process
	exec nice -n 15 unshare --pid --fork --kill-child --mount --mount-proc --uts --ipc --cgroup \
		bash "$tmp/boot" "$top" "$BUILD" "$tmp/room" "$units"
) >"$tmp/booted" 2>&1 &
launcher=$!
must 'the modules do not go' "$top/tools/vm/modules" unload
await 60 booted || bail "systemd does not start: $(tail -n 5 "$tmp/booted")"

# ---- without the module ----

host systemctl daemon-reload || bad 'daemon-reload failed'
host systemctl enable --now mgpud 2>"$tmp/err" || bad "enable --now: $(cat "$tmp/err")"
# a start that has ended is one that mgpud has told of
properties ActiveState=active SubState=running \
	"StatusText=mgpu is not loaded: run 'modprobe mgpu_soft', or load another back end's module" >/dev/null ||
	bad "$(cat "$tmp/properties")"
[[ " $(host systemctl show -P Wants multi-user.target) " == *' mgpud.service '* ]] ||
	bad 'multi-user.target does not want it'
pid=$(property MainPID)
[ "$pid" -gt 1 ] || bad 'no process'
# it looks for the module every second
holds '.sample_age_s == null and .uptime_s > 3'
is ActiveState=active NRestarts=0 MainPID="$pid"
judge 'without the module the service is up and waits'

must 'the modules do not load' "$top/tools/vm/modules" load mgpu_soft
logs '^ready '
is StatusText='dividing CPU and GPU time' NRestarts=0 MainPID="$pid"
judge 'the same process controls when the module is loaded'

# ---- sandbox ----

modes '/run/mgpu root:root 755' '/var/lib/mgpu root:root 755' '/var/log/mgpu root:root 755' \
	'/etc/mgpu root:root 755' '/run/mgpu/mgpud.sock root:root 660'
judge 'the unit makes the directories, and the socket is for root alone'

logged '^ready .* bpf=yes charge=bpf ' || bad 'no eBPF'
unlogged '^no-bpf \|^no-preemption '
host gpuctl status >"$tmp/out" 2>&1 || bad "gpuctl status: $(cat "$tmp/out")"
[ "$(host ps -o ni= -p "$pid" | tr -d ' ')" = -15 ] || bad 'it does not run before VMs'
judge 'all of mgpud works in the sandbox'

declare -A bit=([CAP_CHOWN]=0 [CAP_NET_ADMIN]=12 [CAP_SYS_ADMIN]=21 [CAP_SYS_NICE]=23
	[CAP_PERFMON]=38 [CAP_BPF]=39)
mask=0
for cap in $(host sed -n 's/^CapabilityBoundingSet=//p' \
		/usr/local/lib/systemd/system/mgpud.service); do
	[ -n "${bit[$cap]-}" ] || bad "$cap is new: say its number here"
	mask=$((mask | 1 << ${bit[$cap]-0}))
done
[ $mask -ne 0 ] || bad 'the unit names no capabilities'
# as the kernel has it, which is what counts
has_status()	# FIELD VALUE
{
	host grep -qx "$1:	$2" "/proc/$pid/status" ||
		bad "$(host grep "^$1:" "/proc/$pid/status"), not $2"
}
has_status CapBnd "$(printf %016x $mask)"
has_status CapEff "$(printf %016x $mask)"
has_status NoNewPrivs 1
has_status Seccomp 2

# In mgpud's file systems, as root without capabilities: what it may write, and what not.
cat >"$tmp/inside" <<'END'
exec 2>&1
for place in / /etc /etc/mgpu /usr /usr/local/sbin /var /var/lib /var/log /run /run/systemd /sys/fs/cgroup; do
	! mkdir "$place/mgpud-was-here" || echo "it may write in $place"
done
for file in /proc/sys/kernel/core_pattern /etc/mgpu/mgpud.conf; do
	! : >>"$file" || echo "it may write $file"
done
for place in /root /home; do
	! ls $place || echo "it may read $place"
done
[ ! -e /dev/kmsg ] || echo 'it has devices'
for place in /run/mgpu /var/lib/mgpu /var/log/mgpu /tmp; do
	mkdir $place/x && rmdir $place/x || echo "it cannot write in $place"
done
echo end
END
host nsenter -t "$pid" --mount -- setpriv --bounding-set=-all --inh-caps=-all bash \
	<"$tmp/inside" >"$tmp/out"
grep -q '^end$' "$tmp/out" || bad "the look ended early: $(tail -n 1 "$tmp/out")"
! grep '^it ' "$tmp/out" >"$tmp/lines" || bad "$(cat "$tmp/lines")"
[ "$(grep -c 'Read-only\|Permission' "$tmp/out")" -eq 15 ] || bad "not as many refusals: $(cat "$tmp/out")"
judge 'the sandbox is in force, and leaves what the unit says'

# ---- reload ----

config()	# LINE...
{
	printf '%s\n' '[mgpud]' "$@" | host tee $conf >/dev/null
}

config 'period_ms = 200' 'json_log = /var/log/mgpu/mgpud.json'
host systemctl reload mgpud 2>"$tmp/err" || bad "reload: $(cat "$tmp/err")"
holds '.period_s == 0.2 and .reloads == 1'
is StatusText='dividing CPU and GPU time'
modes '/var/log/mgpu/mgpud.json root:root 644'
judge 'a reload brings a good configuration into force'

# it controls a vGPU
nice -n 15 "$load" 256 >"$tmp/load" 2>&1 &
vmm=$!
await 40 test -s "$tmp/load" || bad 'no load'
uuid=$(cat "$tmp/load")
holds '.vgpus | length == 1 and .[0].state == "active" and .[0].target_fps != null and
	.[0].fps > 40'
host gpuctl ctl set allocator vgasa headroom 3 >"$tmp/out" 2>&1 || bad "set: $(cat "$tmp/out")"
[ ! -s "$tmp/out" ] || bad "set: $(cat "$tmp/out")"
holds '.vgpus[0] | .target_fps == 30 and .fps > 0 and .fps <= 33'
host gpuctl vgpu set "$uuid" fps 35 || bad 'no limit of the operator'
await 40 have_figures 35,30 || bad "limit and target: $(figures)"
judge 'in the sandbox it controls a vGPU, and keeps what is set'

config 'period_ms = 300' 'polcy = fea'
host systemctl reload mgpud 2>"$tmp/err" && bad 'it takes a bad configuration'
grep -q 'Job for mgpud.service failed' "$tmp/err" || bad "systemctl says $(cat "$tmp/err")"
logs "$conf:3: .*polcy"
is ActiveState=active SubState=running MainPID="$pid"
config 'period_ms = 250' 'json_log = /var/log/mgpu/mgpud.json'
host systemctl reload mgpud 2>"$tmp/err" || bad "reload: $(cat "$tmp/err")"
holds '.period_s == 0.25 and .reloads == 2'
unlogged ' period_ms=300 \|^reload-refused '
judge 'a reload with a bad configuration fails, says why, and changes nothing'

# ---- rotation ----

rotate=$(sed -n '/^[[:space:]]*postrotate$/{n;s/^[[:space:]]*//p}' "$top/debian/mgpu-tools.logrotate")
[[ $rotate == *mgpud* ]] || bad "debian/mgpu-tools.logrotate has no command: '$rotate'"
host mv /var/log/mgpu/mgpud.json /var/log/mgpu/mgpud.json.1 || bad 'no log'
host sh -c "$rotate" || bad "$rotate: failed"
logs '^rotated json_log=/var/log/mgpu/mgpud.json'
await 40 host test -s /var/log/mgpu/mgpud.json || bad 'no new log'
size=$(host stat -c %s /var/log/mgpu/mgpud.json.1)
holds ".periods >= $(ctl | jq '.periods + 4')"
[ "$(host stat -c %s /var/log/mgpu/mgpud.json.1)" = "$size" ] || bad 'the old log grows'
host head -n 3 /var/log/mgpu/mgpud.json >"$tmp/out"
jq -e -s 'length == 3 and all(.allocator == "vgasa")' "$tmp/out" >/dev/null ||
	bad 'the new log has no records'
is MainPID="$pid" NRestarts=0
judge 'the command for logrotate lets it open its JSON log again'

# ---- crash and hang ----

# Wait until systemd has started mgpud once more. Meanwhile the module must have the same
# limit and target.
returns()	# TIMES
{
	local end=$((SECONDS + 60 * slow)) now

	until properties NRestarts="$1" ActiveState=active >/dev/null && logged '^ready '; do
		now=$(figures)
		if [ "$now" != '[35,30]' ] || [ $SECONDS -gt $end ]; then
			bad "limit and target are $now, and $(cat "$tmp/properties")"
			return
		fi
	done
	is StatusText='dividing CPU and GPU time'
	pid=$(property MainPID)
	holds '.restored == 1 and .run_time == {"allocator": "vgasa", "headroom": 3} and
		.allocator == "vgasa" and .headroom == 3 and .vgpus[0].target_fps == 30'
	have_figures 35,30 || bad "limit and target: $(figures)"
	kill -0 "$vmm" || bad 'the VMM is gone'
}

# The unit's own times are too long for a test. WatchdogSec counts for the mgpud that
# comes after the kill.
host mkdir /run/systemd/system/mgpud.service.d
printf '[Service]\nRestartSec=1\nWatchdogSec=%d\n' $((6 * slow)) |
	host tee /run/systemd/system/mgpud.service.d/times.conf >/dev/null
host systemctl daemon-reload || bad 'daemon-reload failed'
host systemctl kill --kill-who=main -s KILL mgpud || bad 'it cannot be killed'
returns 1
judge 'after kill -9 systemd starts it again, and all that was set lasts'

host kill -STOP "$pid"
returns 2
host journalctl -q -o cat UNIT=mgpud.service >"$tmp/journal"
grep -q 'Watchdog timeout' "$tmp/journal" || bad 'it was not the watchdog'
judge 'a stuck mgpud is started again'
host rm -r /run/systemd/system/mgpud.service.d
host systemctl daemon-reload || bad 'daemon-reload failed'

# ---- restart and stop ----

host groupadd --system mgpu || bad 'no group'
host systemctl restart mgpud &
restart=$!
while kill -0 $restart 2>/dev/null; do
	[[ $(figures) == '[35,'* ]] || bad "the operator's limit is gone: $(figures)"
done
wait $restart || bad 'restart failed'
state '.restored == 1 and .bpf and .trouble == [] and .headroom == 3 and
	.run_time == {"allocator": "vgasa", "headroom": 3}' ||
	bad "not as it was when the restart ends: $(ctl | cut -c -600)"
is StatusText='dividing CPU and GPU time' NRestarts=0
holds '.vgpus[0].target_fps == 30'
have_figures 35,30 || bad "limit and target: $(figures)"
judge 'a restart keeps what is set at run time and the limit of the operator'

as()		# GROUP COMMAND...
{
	local group=$1
	shift

	host setpriv --reuid=65534 --regid="$group" --clear-groups "$@"
}
modes '/run/mgpu/mgpud.sock root:mgpu 660'
as mgpu gpuctl ctl show >"$tmp/out" 2>&1 || bad "a member: $(cat "$tmp/out")"
as mgpu gpuctl ctl set headroom 2.5 >"$tmp/out" 2>&1 || bad "a member: $(cat "$tmp/out")"
holds '.headroom == 2.5'
as 65534 gpuctl ctl show >"$tmp/out" 2>&1 && bad 'anybody may use it'
grep -q 'not permitted' "$tmp/out" || bad "others: $(cat "$tmp/out")"
judge 'after a restart members of the group mgpu may use it'

host systemctl stop mgpud || bad 'stop failed'
is ActiveState=inactive Result=success ExecMainStatus=0
logs '^released vgpus=1$'
have_figures 35,null || bad "limit and target: $(figures)"
kill -0 "$vmm" || bad 'the VMM is gone'
host test -e /run/mgpu/mgpud.sock && bad 'the socket stays'
host test -e /run/mgpu/mgpud.sock.lock || bad 'the lock file is gone'
host jq -e '.settings.allocator == "vgasa" and (.vgpus | length) == 1' \
	/var/lib/mgpu/mgpud.state >/dev/null || bad 'the state file has not all'
judge 'a stop removes the targets, and leaves the limit of the operator'

config 'polcy = fea'
host systemctl start mgpud 2>"$tmp/err" && bad 'it starts with a bad configuration'
is SubState=failed Result=exit-code ExecMainStatus=3 NRestarts=0
logs "$conf:2: .*polcy"
judge 'a start with a bad configuration fails once, and says why'

# ---- mgpu-renderd ----

unit=mgpu-renderd@none
asserts+=' renders'

listed()	# FILTER
{
	host gpuctl -j render list | jq -e ".renderds | $1" >/dev/null
}

renders()	# FILTER
{
	await 40 listed "$1" || bad "not so: $1: $(host gpuctl render list 2>&1)"
}

# A worker has no capability, another user, and two filters: the unit's and its own.
sealed()
{
	[ "$(status_of "$worker" CapEff)" = 0000000000000000 ] &&
		[ "$(status_of "$worker" Uid)" != 0 ] &&
		[ "$(status_of "$worker" Seccomp_filters)" -gt "$(status_of "$pid" Seccomp_filters)" ]
}

status_of()	# PID FIELD
{
	host sed -n "s/^$2:\t\([^\t]*\).*/\1/p" "/proc/$1/status"
}

must 'mgpu_user does not load' "$top/tools/vm/modules" load mgpu_user
# In the unit's sandbox, little can be written.
host mkdir /run/systemd/system/$unit.service.d
host tee /run/systemd/system/$unit.service.d/test.conf >/dev/null <<'END'
[Service]
ExecStartPre=sh -c '! mkdir /etc/x && ! mkdir /usr/x && ! mkdir /run/x && ! true </dev/kmsg && ! ls /root'
END
host systemctl daemon-reload || bad 'daemon-reload failed'
host gpuctl render start none >"$tmp/out" 2>&1 || bad "start: $(cat "$tmp/out")
$(host journalctl -q -o cat -n 12 -u $unit)"
grep -q '^mgpu_user.0 serves without a GPU (process [0-9]*)$' "$tmp/out" || bad "$(cat "$tmp/out")"
is ActiveState=active StatusText='serves mgpu_user.0, renders without a GPU' NRestarts=0
pid=$(property MainPID)
renders "length == 1 and (.[0] | .pid == $pid and .state == \"serving\" and .vgpus == 0)"
has_status NoNewPrivs 1
has_status Seccomp 2
has_status CapBnd "$(printf %016x $((1 << 6 | 1 << 7 | 1 << 8 | 1 << 21)))"
judge 'gpuctl render starts a unit with a sandbox'

uuid=$(cat /proc/sys/kernel/random/uuid)
echo "$uuid" >/sys/class/mdev_bus/mgpu_user.0/mdev_supported_types/mgpu_user-small-render/create ||
	bad 'no vGPU can be made'
"$top/tests/lib/open_vgpu.py" "$uuid" "$tmp/open" &
opener=$!
await 60 test -e "$tmp/open" || bad 'the vGPU cannot be opened'
# The worker is a child of the supervisor, in a PID namespace: it renders, confined.
worker=$(host pgrep -P "$pid" -x mgpu-worker) || bad 'there is no worker'
await 60 sealed || bad "the worker is not sealed: $(host cat "/proc/$worker/status" 2>&1)"
host systemctl kill --kill-who=main -s KILL $unit || bad 'it cannot be killed'
renders ".[0] | .pid != null and .pid != $pid and .state == \"serving\" and
	.device == \"mgpu_user.0\" and .vgpus == 1"
is ActiveState=active NRestarts=1
host gpuctl render stop none >"$tmp/out" 2>&1 && bad 'it stops with a vGPU'
grep -q "^gpuctl: mgpu_user.0 has vGPUs: $uuid" "$tmp/out" || bad "$(cat "$tmp/out")"
is ActiveState=active
judge 'after kill -9 systemd starts it again, with its device and the vGPUs'

host gpuctl render stop none force >"$tmp/out" 2>&1 &
stop=$!
renders '.[0].state == "stopping"'
is ActiveState=deactivating
kill "$opener"
wait $stop || bad "stop: $(cat "$tmp/out")"
grep -qx 'none: stopped; removed mgpu_user.0' "$tmp/out" || bad "$(cat "$tmp/out")"
renders '. == []'
is ActiveState=inactive Result=success ExecMainStatus=0
[ ! -e /sys/class/mdev_bus/mgpu_user.0 ] || bad 'the device is left'
host test -d /run/mgpu || bad '/run/mgpu, which mgpud has too, is gone'
judge 'a stop with force waits for the VMM'

# a PCI function has no number 9
unit=mgpu-renderd@0000:03:00.9
host systemctl start $unit 2>"$tmp/err" && bad 'it starts'
is SubState=failed Result=exit-code ExecMainStatus=2 NRestarts=0
logs "'0000:03:00.9' is no PCI address"
judge 'an instance that is no GPU fails once, and says why'

done_testing
