#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# gpuctl without the module: what it makes of its command line, and that its
# manual page and completion say what its command table says.  Runs a build of
# its own, with sanitizers.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
gpuctl=$BUILD/ctl-sanitize/gpuctl
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
export MGPUD_SOCKET=$tmp/mgpud.sock

must 'gpuctl cannot be built with sanitizers' \
	make -s -C "$top/ctl" gpuctl SANITIZE=1 BUILD="$BUILD"

help_and_version()
{
	local ko

	"$gpuctl" help >"$tmp/out" 2>"$tmp/err" || echo "help: status $?"
	grep -q 'gpuctl vgpu set' "$tmp/out" || echo 'help does not know vgpu set'
	[ -s "$tmp/err" ] && echo 'help complains'
	"$gpuctl" --help | cmp -s - "$tmp/out" || echo '--help is not help'
	"$gpuctl" >"$tmp/out" 2>"$tmp/err"
	[ $? -eq 2 ] || echo 'no word at all is no error'
	[ -s "$tmp/out" ] && echo 'no word at all prints on standard output'
	"$gpuctl" help vgpu | grep 'ctl set' >/dev/null && echo 'help vgpu is about ctl'
	"$gpuctl" version | grep '^gpuctl [0-9]' >/dev/null || echo 'no version'
	[ "$("$gpuctl" version | cut -d ' ' -f 2)" = "$(cat "$top/VERSION")" ] ||
		echo 'not the version of VERSION, which the module has'
	ko=$BUILD/kmod/${KERNEL:-6.1}/mgpu.ko
	[ ! -f "$ko" ] || PATH=$PATH:/usr/sbin modinfo -F version "$ko" | cmp -s - "$top/VERSION" ||
		echo "$ko has another version"
	"$gpuctl" -j version | grep '^{"version":1,"release":"[0-9]' >/dev/null || echo 'no version in JSON'
}
behaves 'help and version are printed' help_and_version

# The same four ways for all of the tools.
help_of_parts()
{
	"$gpuctl" vgpu set --help >"$tmp/out" || echo "vgpu set --help: status $?"
	grep -q '^  gpuctl vgpu set ' "$tmp/out" || echo 'vgpu set --help: not there'
	[ "$(grep -c '^  gpuctl ' "$tmp/out")" = 1 ] || echo 'vgpu set --help: others, too'
	grep -q -e '--batch' "$tmp/out" || echo 'vgpu set --help: no --batch'
	grep -q -e '--delay' "$tmp/out" && echo 'vgpu set --help: --delay'
	"$gpuctl" help vgpu set | diff "$tmp/out" -
	"$gpuctl" vgpu set 3 fps 30 -h | diff "$tmp/out" -
	"$gpuctl" vgpu -h | grep '^  gpuctl' >"$tmp/out"
	[ "$(wc -l <"$tmp/out")" = 5 ] || show "$tmp/out"
	grep -v '^  gpuctl vgpu ' "$tmp/out"
	"$gpuctl" top --help | grep -e '--delay' >/dev/null || echo 'top --help: no --delay'
	"$gpuctl" --version | diff - <("$gpuctl" version)
	"$gpuctl" -V -j | diff - <("$gpuctl" -j version)
	refused "$gpuctl" 2 "did you mean 'vgpu'" vgup set --help
	refused "$gpuctl" 2 "did you mean 'list'" help vgpu lsit
	"$gpuctl" ctl set --help | grep '^ *allocator ' >/dev/null || echo 'ctl set --help: no KEY'
}
behaves 'help of an object and of a command, and the version, are options, too' help_of_parts

# An object alone is its first verb.
default_verb()
{
	local object verb

	for object in dev:list vgpu:list ctx:list type:list ctl:show; do
		verb=${object#*:} object=${object%:*}
		"$gpuctl" "$object" >"$tmp/out" 2>&1
		status=$?
		"$gpuctl" "$object" "$verb" 2>&1 | diff "$tmp/out" -
		[ $status -eq 1 ] || [ -d /sys/module/mgpu ] || echo "$object: status $status"
		"$gpuctl" "$object" --help | sed -n "s/^  gpuctl $object \([a-z]*\).*/\1/p" |
			sed -n 1p | diff - <(echo "$verb")
	done
}
behaves 'an object without a verb is listed or shown' default_verb

mistyped()
{
	refused "$gpuctl" 2 "did you mean 'vgpu'" vgup list
	refused "$gpuctl" 2 "did you mean 'list'" vgpu lsit
	refused "$gpuctl" 2 "did you mean 'monitor'" montior
	refused "$gpuctl" 2 'did you mean --delay' top --dealy 3
	refused "$gpuctl" 2 "did you mean 'weight'" vgpu set 3 wieght 4
	refused "$gpuctl" 2 "did you mean 'fps'" vgpu set 3 weight 4 fsp 3
	refused "$gpuctl" 2 "did you mean 'fps'" vgpu set 3 fps-limit 30
	refused "$gpuctl" 2 "did you mean 'period'" vgpu set 3 gpu-limit 30% gpu-period 10ms
	refused "$gpuctl" 2 "did you mean 'gpu-limit'" vgpu set 3 gpu-limt 30%
	refused "$gpuctl" 2 "did you mean 'mode'" vgpu set 3 mdoe 1280x720
	refused "$gpuctl" 2 "did you mean 'policy'" dev set mgpu_soft.0 polcy fixed
	refused "$gpuctl" 2 "did you mean 'job-timeout'" dev set 0 timeout 1s
	refused "$gpuctl" 2 "did you mean 'slots'" dev set 0 slot 1
	refused "$gpuctl" 2 "did you mean 'force'" dev bind 0000:00:10.0 froce
	refused "$gpuctl" 2 "did you mean 'leave'" dev unbind 0000:00:10.0 levae
	refused "$gpuctl" 2 "did you mean 'bind'" dev bnid 0000:00:10.0
	refused "$gpuctl" 2 "did you mean 'start'" render strat
	refused "$gpuctl" 1 "did you mean 'force'" render stop froce
	refused "$gpuctl" 2 "did you mean 'preempt'" ctx premept 1 1
	refused "$gpuctl" 2 "did you mean 'vgpu'" ctx list vgup 1
	refused "$gpuctl" 2 "did you mean 'keep'" ctx preempt 1 1 kep 2
	refused "$gpuctl" 2 "did you mean 'method drain'" ctx preempt 1 1 drain
	refused "$gpuctl" 2 "give switch, drain or flush; did you mean 'flush'" ctx preempt 1 1 method fulsh
	refused "$gpuctl" 2 "did you mean 'first'" ctx resume 1 1 fist
	refused "$gpuctl" 2 "did you mean 'lambda'" ctl set lamda 3
	refused "$gpuctl" 2 "did you mean 'preempt'" ctl set premept mgpu
	refused "$gpuctl" 2 "did you mean 'preempt-cost'" ctl set prempt-cost 3,4
	refused "$gpuctl" 2 "did you mean 'dev" vgpu list deb 1
	refused "$gpuctl" 2 'help' banana
	refused "$gpuctl" 2 'did you mean' help vgup
}
behaves 'a mistyped word is refused with a suggestion' mistyped

missing_and_surplus()
{
	refused "$gpuctl" 2 "vgpu has no 'wait', but: list, show, create, remove, set" vgpu wait
	refused "$gpuctl" 2 'list, show, set, bind, unbind' dev wait
	refused "$gpuctl" 2 'by its PCI address first' dev bind
	refused "$gpuctl" 2 'by its PCI address first' dev bind force
	refused "$gpuctl" 2 'by its PCI address first' dev unbind leave
	refused "$gpuctl" 2 "takes no 'now', but force\$" dev bind 0000:00:10.0 now
	refused "$gpuctl" 2 "takes no 'now', but leave and force\$" dev unbind 0000:00:10.0 now
	refused "$gpuctl" 2 'duplicate' dev bind 0000:00:10.0 force force
	refused "$gpuctl" 2 'duplicate' dev unbind 0000:00:10.0 leave force leave
	for address in 0000:00:10.8 0000:00:20.0 00:10 0000:00:10.0.0 ../0000:00:10.0 mgpu_soft.0 ''; do
		refused "$gpuctl" 1 "'$address' is no PCI address: .*as in" dev bind "$address"
		refused "$gpuctl" 1 "'$address' is no PCI address: .*as in" dev unbind "$address"
	done
	refused "$gpuctl" 1 'there is no PCI device 00aa:fe:1e.6; .*lspci' dev bind 00AA:fe:1E.6
	refused "$gpuctl" 1 'there is no PCI device' dev unbind 00aa:fe:1e.6 force
	for address in 0000:03:00.8 03:00 ../0000:03:00.0 mgpu_user.0 ''; do
		refused "$gpuctl" 1 "'$address' is no PCI address: .*, or none to render" render start "$address"
	done
	refused "$gpuctl" 1 'there is no PCI device 00aa:fe:1e.6; ' render start 00AA:fe:1E.6
	refused "$gpuctl" 2 "one GPU, or none; '04:00.0' is too much" render start none 04:00.0
	refused "$gpuctl" 2 "'04:00.0' is too much" render stop none force 04:00.0
	refused "$gpuctl" 2 "'force' is too much" render stop force force
	refused "$gpuctl" 2 "render list takes no 'none'" render list none
	refused "$gpuctl" 2 "did you mean 'stats'" remote stat
	refused "$gpuctl" 2 "remote list takes no '7'" remote list 7
	refused "$gpuctl" 2 "'gpuctl remote list' lists them" remote show
	refused "$gpuctl" 2 "'x' is no process ID" remote show x
	refused "$gpuctl" 2 "remote accounts takes no 'vm:3'" remote accounts vm:3
	refused "$gpuctl" 2 'name an account and what to set' remote set vm:3
	MGPU_REMOTE_CONTROL=/nonexistent/s refused "$gpuctl" 1 \
		'mgpu-remoted does not run .*/nonexistent/s.: start it, or set MGPU_REMOTE_CONTROL' \
		remote list
	refused "$gpuctl" 1 "renders on '0000:fe:1e.7'; 'gpuctl render list'" render stop 0000:fe:1e.7
	refused "$gpuctl" 2 'takes one' dev show
	refused "$gpuctl" 2 'as in' dev set
	refused "$gpuctl" 2 'as in' dev set mgpu_soft.0
	refused "$gpuctl" 2 'name it first' dev set policy fixed
	refused "$gpuctl" 2 'but policy, job-timeout, slots and hang-limit' dev set mgpu_soft.0 banana 3
	refused "$gpuctl" 2 'wants a value' dev set mgpu_soft.0 policy
	refused "$gpuctl" 2 'wants a value' dev set mgpu_soft.0 policy fixed job-timeout
	refused "$gpuctl" 2 'duplicate' dev set mgpu_soft.0 policy fixed policy equal
	refused "$gpuctl" 2 'takes one' vgpu show 1 2
	refused "$gpuctl" 2 'as in' vgpu set
	refused "$gpuctl" 2 'as in' ctl set
	refused "$gpuctl" 2 'name it first' vgpu set fps 30
	refused "$gpuctl" 2 'say what to set' vgpu set 3
	refused "$gpuctl" 2 'say what to set' vgpu set 3 weight 4 5
	refused "$gpuctl" 2 'wants a value' vgpu set 3 fps
	refused "$gpuctl" 2 'wants a value: give a part' vgpu set 3 weight 4 gpu-limit
	refused "$gpuctl" 2 'wants a value' ctl set allocator
	refused "$gpuctl" 2 "policy is called allocator now: use 'gpuctl ctl set allocator fea'" ctl set policy fea
	refused "$gpuctl" 2 'duplicate' vgpu set 3 fps 30 fps 31
	refused "$gpuctl" 2 'duplicate' vgpu set 3 weight 30 weight 31
	refused "$gpuctl" 2 'duplicate' vgpu set 3 gpu-limit 30% gpu-limit none
	refused "$gpuctl" 2 'duplicate' vgpu set 3 mode 1280x720 mode max
	refused "$gpuctl" 2 'duplicate' vgpu set 3 period 1ms burst 1ms period 1ms
	refused "$gpuctl" 2 'duplicate' ctl set beta 2 beta 3
	refused "$gpuctl" 2 'duplicate' ctl set preempt-cost fit beta 2 preempt-cost 1,1
	refused "$gpuctl" 2 'wants a value' ctl set preempt
	refused "$gpuctl" 2 "nothing or 'contexts', not 'now'" monitor now
	refused "$gpuctl" 2 'takes no' monitor contexts now
	refused "$gpuctl" 2 "ctx has no 'wait', but: list, show, preempt, resume" ctx wait
	refused "$gpuctl" 2 'takes no' status now
	refused "$gpuctl" 2 "object and its verb, not 'fps' too" help vgpu set fps
	refused "$gpuctl" 2 "nothing, 'dev DEV' or 'vgpu VGPU'" ctx list 1
	refused "$gpuctl" 2 "nothing, 'dev DEV' or 'vgpu VGPU'" ctx list vgpu
	refused "$gpuctl" 2 "nothing, 'dev DEV' or 'vgpu VGPU'" ctx list vgpu 1 2
	refused "$gpuctl" 2 "as in 'gpuctl ctx show 1 2'" ctx show
	refused "$gpuctl" 2 "as in 'gpuctl ctx preempt 1 2'" ctx preempt 1
	refused "$gpuctl" 2 "one context, not '3' too" ctx show 1 2 3
	refused "$gpuctl" 2 'takes no .*but method, keep and hold' ctx preempt 1 2 banana
	refused "$gpuctl" 2 'takes no .*but first' ctx resume 1 2 banana
	refused "$gpuctl" 2 'wants a value: give switch, drain or flush' ctx preempt 1 2 hold method
	refused "$gpuctl" 2 'wants a value' ctx preempt 1 2 keep
	refused "$gpuctl" 2 'duplicate' ctx preempt 1 2 hold hold
	refused "$gpuctl" 2 'duplicate' ctx preempt 1 2 keep 1 hold keep 2
	refused "$gpuctl" 2 'duplicate' ctx preempt 1 2 method drain method drain
	refused "$gpuctl" 2 'duplicate' ctx resume 1 2 first first
	refused "$gpuctl" 2 'takes no' top now
	refused "$gpuctl" 2 'takes no' ctl show now
	refused "$gpuctl" 2 'takes no' ctl watch now
	refused "$gpuctl" 2 'floor needs a vGPU, or default for all others: name it first' ctl sla floor 30
	refused "$gpuctl" 2 'wants a value' ctl sla default floor
	refused "$gpuctl" 2 'duplicate' ctl sla default floor 30 floor 31
	refused "$gpuctl" 2 "did you mean 'ceiling'" ctl sla default cieling 30
	refused "$gpuctl" 2 'but floor and ceiling' ctl sla 3 banana 30
	refused "$gpuctl" 2 'only a vGPU has a description' ctl describe default game
}
behaves 'missing and surplus words are refused' missing_and_surplus

values()
{
	for fps in 0 0.5 10000.5 1e3 30fps 29.9701 -30 ''; do
		refused "$gpuctl" 2 "fps $fps: give a number from 1 to 10000" vgpu set 3 fps "$fps"
	done
	for weight in 0 10001 1.5 -1 many 4294967297; do
		refused "$gpuctl" 2 "weight $weight: give a whole number from 1 to 10000" vgpu set 3 weight "$weight"
	done
	for share in 30 0 0.3 0% 0.05% 100.1% 999ppm 1000001ppm 33.33333% '30 %' -5% ''; do
		refused "$gpuctl" 2 "gpu-limit $share: give a part .*from 0.1% to 100%" vgpu set 3 gpu-limit "$share"
	done
	for time in 10 0 999us 1.1s 10min 1.0005ms none -1ms ''; do
		refused "$gpuctl" 2 "period $time: give a time from 1ms to 1s" vgpu set 3 gpu-limit 30% period "$time"
	done
	for time in 10 1.1s 10ns 0.5us none -1ms ''; do
		refused "$gpuctl" 2 "burst $time: give a time from 0 to 1s" vgpu set 3 burst "$time"
	done
	for mode in 0 0x0 1280 1280x 1280x720x3 63x64 64x63 1280X720 1280,720 -1x720 4294967297x720 \
		'1280 x 720' 1280x7e2 none ''; do
		refused "$gpuctl" 2 "mode $mode: give width and height, from 64x64" vgpu set 3 mode "$mode"
	done
	for time in 500 99ms 61s 0 1min 100.5ms none ''; do
		refused "$gpuctl" 2 "job-timeout $time: give a time from 100ms to 60s" dev set 0 job-timeout "$time"
	done
	for slots in 0 -1 1.5 many 4294967296 ''; do
		refused "$gpuctl" 2 "slots $slots: give a whole number from 1" dev set 0 slots "$slots"
	done
	for limit in 0 17 -1 1.5 many ''; do
		refused "$gpuctl" 2 "hang-limit $limit: give a number of hangs from 1 to 16" dev set 0 hang-limit "$limit"
	done
	for word in 1 yes ON ''; do
		refused "$gpuctl" 2 "quarantine $word: give 'on' or 'off'" vgpu set 3 quarantine "$word"
	done
	for ctx in 0 -1 1.5 training 4294967296 ''; do
		refused "$gpuctl" 2 "context $ctx: give its id" ctx show 1 "$ctx"
	done
	for keep in -1 1.5 all 4294967296 ''; do
		refused "$gpuctl" 2 "keep $keep: give the number of slots" ctx preempt 1 2 keep "$keep"
	done
	for method in '' 1 SWITCH banana; do
		refused "$gpuctl" 2 "method $method: give switch, drain or flush" ctx preempt 1 2 method "$method"
	done
	refused "$gpuctl" 2 'a flush takes all slots' ctx preempt 1 2 keep 1 method flush
	refused "$gpuctl" 2 'at most 32 characters' dev set 0 policy ''
	refused "$gpuctl" 2 'at most 32 characters' dev set 0 policy "$(printf 'p%.0s' {1..33})"
	for fps in 0 0.5 10001 1e3 30fps -30 ''; do
		refused "$gpuctl" 2 "floor $fps: give a number from 1 to 10000" ctl sla default floor "$fps"
	done
	refused "$gpuctl" 2 'give a number' ctl set beta two
	refused "$gpuctl" 2 'give a number' ctl set headroom much
	refused "$gpuctl" 2 'give a whole number' ctl set period-ms 1.5
	for key in preempt-decay-compute preempt-decay-memory preempt-class-threshold \
		preempt-starve-ms preempt-min-gain; do
		refused "$gpuctl" 2 "$key much: give a number" ctl set $key much
	done
	refused "$gpuctl" 2 'from 0.1 to 86400' top -d 0
	refused "$gpuctl" 2 'from 0.1 to 86400' top -d soon
	refused "$gpuctl" 2 'from 1 on' top -n 0
	refused "$gpuctl" 2 'from 1 on' monitor --count=-1
}
behaves 'values that cannot be meant are refused with those that can' values

options()
{
	refused "$gpuctl" 2 "^gpuctl: unknown option -x; 'gpuctl --help' lists all$" -x vgpu list
	refused "$gpuctl" 2 '^gpuctl: unknown option --jsno; did you mean --json?$' vgpu list --jsno=3
	refused "$gpuctl" 2 'unknown option' vgpu list -jx
	refused "$gpuctl" 2 'unknown option --' vgpu list --=3
	refused "$gpuctl" 2 'wants a value' top -n
	refused "$gpuctl" 2 'takes no value' vgpu list --json=yes
	refused "$gpuctl" 2 'does not apply' vgpu list -n 3
	refused "$gpuctl" 2 "top takes no 'file'" top --batch file
	refused "$gpuctl" 2 'takes no value' top --batch=file
	refused "$gpuctl" 2 'takes nothing' dev list -- -j
}
behaves 'options that make no sense are refused' options

batch()
{
	cat >"$tmp/batch" <<-'END'
		# a comment
		1 weight 5   # and one behind

		2 fps none
		83b8f4f2 wieght 7
	END
	refused "$gpuctl" 2 "^gpuctl: $tmp/batch:5: .*did you mean 'weight'" vgpu set -b "$tmp/batch"
	refused "$gpuctl" 2 'not both' vgpu set 1 fps 30 -b "$tmp/batch"
	refused "$gpuctl" 1 'No such file' vgpu set -b "$tmp/nothing"
	refused "$gpuctl" 1 'directory' vgpu set -b "$tmp"
	refused "$gpuctl" 2 'as in' vgpu set --batch=-
	echo '4 fps 0.2' >"$tmp/batch"
	"$gpuctl" vgpu set -b - <"$tmp/batch" 2>"$tmp/err"
	grep -q '^gpuctl: stdin:1: .*fps 0.2' "$tmp/err" || echo "stdin: $(cat "$tmp/err")"
	yes 1 fps 3 | tr '\n' ' ' | head -c 2000 >"$tmp/batch"
	refused "$gpuctl" 2 'too long' vgpu set -b "$tmp/batch"
	printf '1 weight 5 gpu-limit 30%% period 10ms burst 0 fps none\n2 burst 2s\n' >"$tmp/batch"
	refused "$gpuctl" 2 "^gpuctl: $tmp/batch:2: vGPU 2: burst 2s: give" vgpu set -b "$tmp/batch"
}
behaves 'a batch is refused with the line that is wrong' batch

nobody_there()
{
	refused "$gpuctl" 1 "$tmp/mgpud.sock" ctl show
	refused "$gpuctl" 1 'mgpud does not run' ctl set allocator fea lambda -0.5 headroom 1.5
	refused "$gpuctl" 1 'mgpud does not run' ctl set preempt mgpu preempt-cost 0.1,0.02 \
		preempt-decay-compute 1 preempt-decay-memory 0.9 preempt-class-threshold 0.5 \
		preempt-starve-ms 12.5 preempt-min-gain 0
	refused "$gpuctl" 1 'mgpud does not run' ctl sla
	refused "$gpuctl" 1 'mgpud does not run' ctl sla default floor 30 ceiling none
	refused "$gpuctl" 1 'mgpud does not run' ctl watch -n 1
	if [ ! -d /sys/module/mgpu ]; then
		refused "$gpuctl" 1 'modprobe mgpu_soft' dev list
		refused "$gpuctl" 1 'modprobe mgpu_soft' vgpu list
		refused "$gpuctl" 1 'modprobe mgpu_soft' vgpu set 1 fps 29.97 2 weight 3 fps none
		refused "$gpuctl" 1 'modprobe mgpu_soft' vgpu set 1 gpu-limit 30.5% period 10ms burst 500us \
			2 gpu-limit none burst 0 3 gpu-limit 300000ppm weight 2 mode 1280x720 4 mode max
		refused "$gpuctl" 1 'modprobe mgpu_soft' dev set mgpu_soft.0 policy fixed job-timeout 2.5s
		refused "$gpuctl" 1 'modprobe mgpu_soft' dev set mgpu_soft.0 slots 2
		refused "$gpuctl" 1 'modprobe mgpu_soft' ctx list
		refused "$gpuctl" 1 'modprobe mgpu_soft' ctx list vgpu 1
		refused "$gpuctl" 1 'modprobe mgpu_soft' ctx show 1 4294967295
		refused "$gpuctl" 1 'modprobe mgpu_soft' ctx preempt 1 2 hold method drain keep 0
		refused "$gpuctl" 1 'modprobe mgpu_soft' ctx resume 1 2 first
		refused "$gpuctl" 1 'modprobe mgpu_soft' monitor contexts
		refused "$gpuctl" 1 'modprobe mgpu_soft' monitor
		refused "$gpuctl" 1 'modprobe mgpu_soft' top -n1 -d.5 -jp
	fi
}
behaves 'without module or mgpud, the error says what to do' nobody_there

# In mgpud's place: one request to FILE, and a state in answer.
cat >"$tmp/serve.py" <<'END'
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1] + ".new")
s.listen()
os.rename(sys.argv[1] + ".new", sys.argv[1])
c = s.accept()[0]
with open(sys.argv[2], "w") as f:
    f.write(c.makefile().readline())
c.sendall(b'{"ok":true,"state":' + sys.argv[3].encode() + b'}\n')
END

asserts=python3
answered()	# STATE WORD... : gpuctl's output, with the request in $tmp/request
{
	local state=$1 server i
	shift

	rm -f "$MGPUD_SOCKET" "$tmp/request"
	timeout 20 python3 "$tmp/serve.py" "$MGPUD_SOCKET" "$tmp/request" "$state" &
	server=$!
	for ((i = 0; i < 200; i++)); do
		[ ! -S "$MGPUD_SOCKET" ] || break
		sleep 0.05
	done
	"$gpuctl" "$@" 2>&1 || echo "$*: status $?"
	wait "$server" || echo "$*: nobody asked"
	rm -f "$MGPUD_SOCKET"
}

preempt()	# COST : a state with these members of the object
{
	tr -d '\n' <<-END
		{"allocator":"exact","preempt":{"policy":"mgpu","watched":true,"contexts":5,"waiting":2,
		"decisions":{"launch":10,"resume":4,"preempt":6},"by":{"switch":3,"drain":2,"flush":1},
		"cost":{"a":0.25,"b":0.0625,$1}}}
	END
}

preemption_shown()
{
	answered "$(preempt '"source":"fit","samples":40,"median_error":0.0815')" ctl show |
		grep '^preemption\|^switch' >"$tmp/out"
	diff - "$tmp/out" <<-'END'
		preemption      mgpu: 5 contexts, 2 waiting, 10 launched, 4 resumed, 6 preempted (3 switched, 2 drained, 1 flushed)
		switch cost     0.25000 * miss rate + 0.06250 cycles per byte, fitted to 40 switches, median error 8.2 %
	END
	answered "$(preempt '"source":"set"')" ctl show >"$tmp/out"
	grep -q ' cycles per byte, as set$' "$tmp/out" || show "$tmp/out"
	answered "$(preempt '"source":"default","no_fit":"too few"')" ctl show >"$tmp/out"
	grep -q ' cycles per byte, as published: too few$' "$tmp/out" || show "$tmp/out"
	answered "$(preempt '"source":"default","no_fit":null')" ctl show >"$tmp/out"
	grep -q ' cycles per byte, as published$' "$tmp/out" || show "$tmp/out"
	answered "$(preempt '"source":"set"' | sed 's/true/false/')" ctl show >"$tmp/out"
	grep -q '^preemption  *mgpu: no contexts are watched$' "$tmp/out" || show "$tmp/out"
	# one that is older, and one that is no mgpud
	answered '{"allocator":"exact"}' ctl show >"$tmp/out"
	grep -q '^preemption  *-$' "$tmp/out" || show "$tmp/out"
	for odd in 3 '[]' '"x"' '{}' '{"cost":7,"by":"x","decisions":[],"watched":true}'; do
		answered "{\"preempt\":$odd}" ctl show >"$tmp/out"
		grep -q '^preemption  *[-:]' "$tmp/out" || show "$tmp/out"
		grep -q 'status' "$tmp/out" && show "$tmp/out"
	done
	answered '{"preempt":{"learned":[{"op":"matmul"}]}}' -j ctl show >"$tmp/out"
	grep -q '"learned":\[{"op":"matmul"}\]' "$tmp/out" || show "$tmp/out"
}
behaves 'the preemption state of mgpud is shown' preemption_shown

# Where values come from, what is wrong, and what does not last.
origins_shown()
{
	answered "$(tr -d '\n' <<-'END'
		{"allocator":"drf","period_s":0.5,"beta":2,"preempt":{"policy":"drain","starve_s":0.02},
		"sources":{"allocator":"run-time","period_ms":"file","beta":"default","preempt":"command-line",
		"preempt_starve_ms":"environment"},"trouble":["the disk is full","no group"]}
		END
	)" ctl show |
		grep '^allocator \|^period-ms\|^beta\|^preempt \|^preempt-starve\|^trouble' >"$tmp/out"
	diff - "$tmp/out" <<-'END'
		trouble         the disk is full
		trouble         no group
		allocator               drf (run time)
		period-ms               500 (file)
		beta                    2
		preempt                 drain (command line)
		preempt-starve-ms       20 (environment)
	END
}
behaves 'it is shown where settings come from' origins_shown

agreements_shown()
{
	local a=89abcdef-0123-4567-89ab-cdef01234567 b=99abcdef-0123-4567-89ab-cdef01234567 state

	state=$(tr -d '\n' <<-END
		{"allocator":"exact","floors":true,"sla":{"floor_fps":5,"ceiling_fps":60},"agreements":[
		{"floor_fps":30,"ceiling_fps":null,"uuid":"$a","source":"run-time"},
		{"floor_fps":20,"ceiling_fps":60,"uuid":"$b","source":"vgpu"}],"vgpus":[
		{"id":1,"uuid":"$b","fps":19,"granted_fps":20,"shortfall":false,"state":"active"},
		{"id":2,"uuid":"a${b:1}","fps":7,"granted_fps":5,"shortfall":true,"state":"active"}]}
	END
	)
	answered "$state" ctl sla | tr -s ' ' >"$tmp/out"
	diff - "$tmp/out" <<-END
		VGPU VM FLOOR CEILING SOURCE GRANTED FPS STATE
		default - 5.000 60.000 - - - -
		$a - 30.000 none run-time - - -
		$b - 20.000 60.000 vgpu 20.0 19.0 active
	END
	answered "$state" ctl sla $b | tr -s ' ' | grep -qx "$b - 20.000 60.000 vgpu 20.0 19.0 active" ||
		echo "the agreement of $b"
	answered "$state" ctl sla "a${b:1}" | tr -s ' ' |
		grep -qx "a${b:1} - 5.000 60.000 default 5.0 7.0 short" || echo 'the agreement of another vGPU'
}
behaves 'agreements are shown, and where each comes from' agreements_shown

reset_sent()
{
	answered '{}' ctl reset period-ms preempt-starve-ms sla default \
		89abcdef-0123-4567-89ab-cdef01234567
	python3 - "$tmp/request" <<-'END'
		import json, sys
		got = json.load(open(sys.argv[1]))
		want = {"request": "reset", "keys": ["period_ms", "preempt_starve_ms", "sla", "default",
		    "89abcdef-0123-4567-89ab-cdef01234567"]}
		if got != want:
		    print(f"sent {got}")
	END
	answered '{}' ctl reset
	grep -qx '{"request":"reset"}' "$tmp/request" || show "$tmp/request"
}
behaves 'what was set is reset, all of it or by names' reset_sent

# It begins every UUID, that of the only vGPU, too.
empty_word()
{
	local words

	for words in 'ctl reset' 'ctl sla'; do
		# shellcheck disable=SC2086
		answered '{"vgpus":[{"id":1,"uuid":"89abcdef-0123-4567-89ab-cdef01234567"}]}' \
			$words '' >"$tmp/out"
		grep -q "^gpuctl: '' names no vGPU" "$tmp/out" || show "$tmp/out"
		grep -q ': status 2$' "$tmp/out" || echo "$words: no status 2"
		grep -qx '{"request":"get"}' "$tmp/request" || show "$tmp/request"
	done
}
behaves 'an empty word names no vGPU' empty_word

settings_sent()
{
	answered '{}' ctl set preempt none preempt-cost 0.1,0.02 preempt-decay-compute 1 \
		preempt-decay-memory 0.75 preempt-class-threshold 0.25 preempt-starve-ms 12.5 \
		preempt-min-gain 0 period-ms 500
	python3 - "$tmp/request" <<-'END'
		import json, sys
		got = json.load(open(sys.argv[1]))
		want = {"request": "set", "settings": {
		    "preempt": "none", "preempt_cost": "0.1,0.02", "preempt_decay_compute": 1,
		    "preempt_decay_memory": 0.75, "preempt_class_threshold": 0.25,
		    "preempt_starve_ms": 12.5, "preempt_min_gain": 0, "period_ms": 500}}
		if got != want:
		    print(got)
	END
}
behaves 'settings go to mgpud under its names' settings_sent

full_disk()
{
	"$gpuctl" help >/dev/full 2>"$tmp/err"
	[ $? -eq 1 ] || echo 'no error when nothing can be written'
	grep -q 'No space' "$tmp/err" || echo "says: $(cat "$tmp/err")"
}
behaves 'an error of writing is an error' full_disk

# The manual page: its bold lines are the table's, in its order.
man=$top/Documentation/man/gpuctl.8
manual_page()
{
	"$gpuctl" help --table >"$tmp/table"
	awk -F '\t' '$1 == "command" { print $2 }' "$tmp/table" >"$tmp/want"
	sed -n 's/^\.B \(gpuctl [a-z].*\)/\1/p' "$man" >"$tmp/got"
	diff "$tmp/want" "$tmp/got"
	[ -s "$tmp/want" ] || echo 'the table is empty'

	awk -F '\t' '$1 == "option" { print $2 ($3 ? " " $3 : "") }' "$tmp/table" >"$tmp/want"
	sed -n '/^\.B \\-., /{s/^\.B //;s/\\//g;p}' "$man" >"$tmp/got"
	diff "$tmp/want" "$tmp/got"

	awk -F '\t' '$1 == "command" { print $3 }' "$tmp/table" | tr ' ' '\n' |
		grep . >"$tmp/keys" || echo 'there are no keys'
	while read -r key; do
		grep -q "\\b$key\\b" "$man" ||
			echo "the manual page does not know the key $key"
	done <"$tmp/keys"
}
behaves 'the manual page has the commands, options and keys of the table' manual_page

complete_words()	# WORD... : what bash would offer for the last one
{
	# shellcheck disable=SC1091
	. "$tmp/completion"
	COMP_WORDS=(gpuctl "$@")
	COMP_CWORD=$#
	COMPREPLY=()
	_gpuctl
	echo "${COMPREPLY[*]}"
}

# The limits of the module's table, as the manual page gives them.
limits_of_types()
{
	local type line

	sed -n '/^#define \(SMALL\|MEDIUM\|LARGE\)\t/{N;p}' kmod/mdev.c | paste - - |
		sed -E 's/^#define (\w+)\s.*weight = ([0-9]+), .mem_limit = ([0-9]+)ULL << 20, .max_resources = ([0-9]+),.*max_width = ([0-9]+), .max_height = ([0-9]+), .max_instances = ([0-9]+)$/\L\1\E largest mode \5x\6, memory \3 MiB, weight \2, resources \4, at most \7 vGPUs/' >"$tmp/types"
	[ "$(wc -l <"$tmp/types")" -eq 3 ] || echo 'kmod/mdev.c has no table of three'
	while read -r type line; do
		grep -A1 -Fx ".B $type" Documentation/man/gpuctl.8 | grep -qxF "$line" ||
			echo "the manual page has not: $type: $line"
	done <"$tmp/types"
}
behaves 'the manual page has the limits of each type' limits_of_types

completion()
{
	"$gpuctl" help --completion >"$tmp/completion" || echo "status $?"
	bash -n "$tmp/completion" 2>&1
	# shellcheck disable=SC2317 # the completion calls it
	gpuctl()
	{
		case $* in
		'vgpu list') printf 'ID UUID DEV\n1 83b8f4f2 x\n' ;;
		'ctx list vgpu 1') printf 'VGPU CTX STATE\n1 77 idle\n1 78 idle\n' ;;
		'type list 0') printf 'TYPE AVAILABLE\nmgpu_soft-small 3\nmgpu_soft-medium 1\n' ;;
		'dev list') printf 'ID NAME\n0 mgpu_soft.0\n' ;;
		'remote list') printf '  PID USER\n   17 root\n' ;;
		'render list') printf 'ADDRESS NODE\n0000:03:00.0 /dev/dri/renderD128\n' ;;
		esac
	}
	# shellcheck disable=SC2317
	lspci()
	{
		echo '0000:00:10.0 0380: 1af4:1050 (rev 01)'
	}
	[ "$(complete_words vg)" = vgpu ] || echo "vg: $(complete_words vg)"
	[ "$(complete_words vgpu '')" = 'list show create remove set' ] ||
		echo "vgpu: $(complete_words vgpu '')"
	[ "$(complete_words -j vgpu s)" = 'show set' ] ||
		echo "-j vgpu s: $(complete_words -j vgpu s)"
	[ "$(complete_words vgpu set 3 w)" = weight ] ||
		echo "vgpu set 3 w: $(complete_words vgpu set 3 w)"
	[ "$(complete_words vgpu set al)" = all ] ||
		echo "vgpu set al: $(complete_words vgpu set al)"
	[ "$(complete_words vgpu create '')" = '0 mgpu_soft.0' ] ||
		echo "vgpu create: $(complete_words vgpu create '')"
	[ "$(complete_words vgpu create 0 '')" = 'mgpu_soft-small mgpu_soft-medium' ] ||
		echo "vgpu create 0: $(complete_words vgpu create 0 '')"
	[ "$(complete_words vgpu create 0 small u)" = uuid ] ||
		echo "vgpu create 0 small u: $(complete_words vgpu create 0 small u)"
	[ "$(complete_words vgpu remove '')" = 'dev all force 1 83b8f4f2' ] ||
		echo "vgpu remove: $(complete_words vgpu remove '')"
	[ "$(complete_words vgpu remove dev '')" = '0 mgpu_soft.0' ] ||
		echo "vgpu remove dev: $(complete_words vgpu remove dev '')"
	[ "$(complete_words vgpu remove 1 --y)" = --yes ] || echo 'vgpu remove --y'
	[ "$(complete_words help vgpu '')" = 'list show create remove set' ] ||
		echo "help vgpu: $(complete_words help vgpu '')"
	[ "$(complete_words type '')" = 'list show' ] || echo "type: $(complete_words type '')"
	[ "$(complete_words stat)" = status ] || echo "stat: $(complete_words stat)"
	[ "$(complete_words vgpu set 3 gpu-l)" = gpu-limit ] ||
		echo "vgpu set 3 g: $(complete_words vgpu set 3 g)"
	[ "$(complete_words dev '')" = 'list show set bind unbind' ] ||
		echo "dev: $(complete_words dev '')"
	[ "$(complete_words dev set mgpu_soft.0 '')" = 'policy job-timeout slots hang-limit' ] ||
		echo "dev set mgpu_soft.0: $(complete_words dev set mgpu_soft.0 '')"
	[ "$(complete_words dev set mgpu_soft.0 policy b)" = best-effort ] ||
		echo "policy b: $(complete_words dev set mgpu_soft.0 policy b)"
	[ "$(complete_words dev bind '')" = 0000:00:10.0 ] ||
		echo "dev bind: $(complete_words dev bind '')"
	[ "$(complete_words dev unbind 0000:00:10.0 '')" = 'leave force' ] ||
		echo "dev unbind 0000:00:10.0: $(complete_words dev unbind 0000:00:10.0 '')"
	[ "$(complete_words render '')" = 'list start stop' ] ||
		echo "render: $(complete_words render '')"
	[ "$(complete_words render start '')" = 'none 0000:00:10.0' ] ||
		echo "render start: $(complete_words render start '')"
	[ "$(complete_words render stop '')" = 'all none force 0000:03:00.0' ] ||
		echo "render stop: $(complete_words render stop '')"
	[ "$(complete_words remote '')" = 'list show stats accounts set' ] ||
		echo "remote: $(complete_words remote '')"
	[ "$(complete_words remote show '')" = 17 ] ||
		echo "remote show: $(complete_words remote show '')"
	[ "$(complete_words ctx '')" = 'list show preempt resume' ] ||
		echo "ctx: $(complete_words ctx '')"
	[ "$(complete_words ctx list '')" = 'dev vgpu' ] ||
		echo "ctx list: $(complete_words ctx list '')"
	[ "$(complete_words ctx list vgpu '')" = '1 83b8f4f2' ] ||
		echo "ctx list vgpu: $(complete_words ctx list vgpu '')"
	[ "$(complete_words ctx list dev '')" = '0 mgpu_soft.0' ] ||
		echo "ctx list dev: $(complete_words ctx list dev '')"
	[ "$(complete_words ctx show '')" = '1 83b8f4f2' ] ||
		echo "ctx show: $(complete_words ctx show '')"
	[ "$(complete_words ctx preempt 1 '')" = '77 78' ] ||
		echo "ctx preempt 1: $(complete_words ctx preempt 1 '')"
	[ "$(complete_words ctx preempt 1 77 '')" = 'method keep hold' ] ||
		echo "ctx preempt 1 77: $(complete_words ctx preempt 1 77 '')"
	[ "$(complete_words ctx preempt 1 77 method '')" = 'switch drain flush' ] ||
		echo "method: $(complete_words ctx preempt 1 77 method '')"
	[ "$(complete_words ctx resume 1 77 '')" = first ] ||
		echo "ctx resume 1 77: $(complete_words ctx resume 1 77 '')"
	[ "$(complete_words monitor '')" = contexts ] ||
		echo "monitor: $(complete_words monitor '')"
	[ "$(complete_words ctl set be)" = beta ] || echo 'ctl set be'
	[ "$(complete_words ctl sla de)" = default ] || echo 'ctl sla de'
	[ "$(complete_words ctl set allocator ex)" = exact ] || echo 'ctl set allocator ex'
	[ "$(complete_words ctl set preempt-st)" = preempt-starve-ms ] ||
		echo "ctl set preempt-st: $(complete_words ctl set preempt-st)"
	[ "$(complete_words ctl set beta 2 preempt a)" = always ] || echo 'ctl set preempt a'
	[ "$(complete_words ctl set preempt-cost '')" = fit ] || echo 'ctl set preempt-cost'
	[ "$(complete_words top --de)" = --delay ] || echo 'top --de'
}
behaves 'the completion offers the words of the table' completion

# The module's policies: gpuctl offers them and the manual page explains them.
module_policies()
{
	awk -F '"' '/^const struct mgpu_policy_ops mgpu_policy_/ { policy = 1 }
		policy && /^\t\.name = / { print $2; policy = 0 }' "$top"/kmod/sched/policy_*.c |
		sort >"$tmp/want"
	[ -s "$tmp/want" ] || echo 'the module has no policies'
	complete_words dev set mgpu_soft.0 policy '' | tr ' ' '\n' | sort |
		diff "$tmp/want" -
	while read -r policy; do
		grep -qx -e ".B ${policy//-/\\\\-}" "$man" ||
			echo "the manual page does not know the policy $policy"
	done <"$tmp/want"
}
behaves 'the policies of the module are offered and explained' module_policies

# mgpud's settings: test_mgpud_config compares the same names with mgpud itself.
settings()
{
	"$gpuctl" help ctl | sed -n '/KEY is one of/,/^  gpuctl/s/^ \{10\}\([a-z-]*\) .*/\1/p' |
		sort >"$tmp/want"
	[ "$(wc -l <"$tmp/want")" -ge 13 ] || echo "settings: $(cat "$tmp/want")"
	complete_words ctl set '' | tr ' ' '\n' | sort | diff "$tmp/want" -
	for key in allocator preempt preempt-cost; do
		"$gpuctl" help ctl | sed -n "s/^ *$key .*: \(.*\) (default.*/\1/p" |
			sed 's/ or A,B//; s/,//g; s/ or / /' >"$tmp/want"
		complete_words ctl set $key '' | diff "$tmp/want" -
	done
	for key in allocator preempt; do
		for name in $(complete_words ctl set $key ''); do
			grep -qx "\.B $name" "$top/Documentation/man/mgpud.conf.5" ||
				echo "mgpud.conf(5) does not explain $name"
		done
	done
}
behaves 'the settings of mgpud and their values are offered and explained' settings

done_testing
