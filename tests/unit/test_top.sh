#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The screen of gpuctl top, and what vgpu remove asks, in a terminal of tmux's, on the kernel of
# test_gpuctl_ctx: three vGPUs, of which web draws 60 frames/s and desk 25, and the third is in
# quarantine.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
needs tmux pgrep "$BUILD/unit/test_gpuctl_ctx"
asserts='shows lacks'

# The search for leaks at the end of a program has been seen to wait for its own helper for ever
# when the terminal went meanwhile.  Other tests of the program look for leaks.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

names()		# PID NAME
{
	mkdir -p "$tmp/root/proc/$1"
	printf 'qemu\0-name\0guest=%s,debug-threads=on\0' "$2" >"$tmp/root/proc/$1/cmdline"
}
names 1001 web
names 1002 desk

# Each terminal has a server of its own: one that ends may still have its socket.
server()
{
	tmux -S "$terminal" -f /dev/null "$@"
}

stop()
{
	local socket

	for socket in "$tmp"/tmux.*; do
		[ ! -S "$socket" ] || tmux -S "$socket" kill-server 2>/dev/null
	done
}
at_exit stop

# Print the programs of this test that still run.
left()
{
	local pid

	for pid in $(pgrep -f "$BUILD/unit/test_gpuctl_ctx"); do
		! grep -qzxF "GPUCTL_ROOT=$tmp/root" "/proc/$pid/environ" 2>/dev/null || echo "$pid"
	done
}

# Begin gpuctl's top in a terminal, run by PROGRAM with its options. Its status will be in $ended,
# and its complaints in $err.
begin()		# COLUMNS LINES [VARIABLE=VALUE]... [PROGRAM]... -- [OPTION]...
{
	local size=(-x "$1" -y "$2") variables=()
	shift 2

	while [ "$1" != -- ]; do
		variables+=("$1")
		shift
	done
	shift
	terminal=$(mktemp -u "$tmp/tmux.XXXXXX")
	ended=$terminal.ended err=$terminal.err
	server new-session -d "${size[@]}" \
		"env MGPUD_SOCKET=/nonexistent/s GPUCTL_ROOT='$tmp/root' LC_ALL=C.UTF-8 ${variables[*]} \
		'$BUILD/unit/test_gpuctl_ctx' top $* 2>'$err'; echo \$? >'$ended'; sleep 60"
}

send()
{
	server send-keys "$@"
}

screen()
{
	server capture-pane -p "${@}"
}

has()		# PATTERN
{
	screen >"$tmp/screen"
	grep -q -e "$1" "$tmp/screen"
}

shows()		# PATTERN : within some seconds
{
	await 20 has "$1" >/dev/null || echo "no line is like '$1': $(cat "$tmp/screen")"
}

lacks()		# PATTERN
{
	if has "$1"; then echo "a line is like '$1': $(cat "$tmp/screen")"; fi
}

has_ended()
{
	[ -s "$ended" ]
}

quit()
{
	send q
	await 20 has_ended >/dev/null || echo 'q does not quit'
	[ "$(cat "$ended")" = 0 ] || echo "status $(cat "$ended"): $(cat "$err")"
	server kill-server
}

whole_screen()
{
	begin 130 30 -- -d 1
	shows '^ *1  web .* 83b8f4f2 *60.0 .* none .* 45.0 '
	shows '^ *2  desk .* 12345678 *25.0 .* 25 .* 30.0 '
	shows '^ *3  - .* 93b8f4f2 *0.0 '
	shows '3 vGPUs, 2 open  mgpud does not run  by id'
	shows '^mgpu_soft.0 .*GPU  50.0% |.*▄'
	# frame times of an interval, not of all time
	shows '^ *1  web .* 24\.[0-9]  *[0-9.]* *45.0 '
	# graphs of the selected vGPU
	shows '^web  83b8f4f2-509f-382f-3c1e-e6bfe0fa1001  medium-render on mgpu_soft.0'
	shows '^  fps |.*█|.*GPU |.*█|'
	shows '^q quit'
	quit
	grep -q '^requests' "$err" || show "$err"
	[ "$(grep -vc '^requests' "$err")" = 0 ] || show "$err"
}
behaves 'the screen shows GPUs, VMs, their rates and their history' whole_screen

keys()
{
	begin 130 30 -- -d 1
	shows '^ *1  web .* 60.0 '
	send '?'
	shows 'Any key goes back'
	lacks '^ *1  web'
	send x
	shows '^ *1  web'
	send s s r
	shows 'by fps reversed'
	# the least first
	screen | grep -n -m 3 -e '^ *[123]  ' | cut -d : -f 2 | awk '{ print $1 }' | paste -sd ' ' |
		grep -qx '3 2 1' || echo "not sorted: $(screen)"
	send / D E S
	shows '^filter: DES'
	shows '^ *2  desk'
	lacks '^ *1  web'
	send Enter
	shows 'filter: DES'
	send Escape
	shows '^ *1  web'
	send End c
	shows '^ *CTX  STATE'
	shows '^ *1  running  *matmul'
	send Home k Space
	shows PAUSED
	send Space
	await 20 eval '! has PAUSED' >/dev/null || echo 'it stays paused'
	quit
}
behaves 'keys explain, sort, filter, pause and change the pane' keys

settings()
{
	begin 130 30 -- -d 1
	shows '^ *1  web .* none '
	send f 4 5 Enter
	shows '^set: fps 45'
	shows '^ *1  web .* 45 '
	# the checks of vgpu set
	send e
	send -l 'fps 0 weight 3'
	send Enter
	shows 'vGPU web: fps 0: give a number from 1 to 10000'
	shows '^ *1  web .* 45 '
	send Down e
	send -l 'fsp 3'
	send Enter
	shows "vGPU desk: unknown setting 'fsp'; did you mean 'fps'?"
	send f Escape
	shows '^q quit'
	quit
}
behaves 'limits are changed in place, with the checks of vgpu set' settings

sizes()
{
	begin 80 24 -- -d 1
	shows '^ *ID.*FPS  TARGET   LIMIT  P99-MS   GPU%   CPU%  HELD%        MEM'
	server resize-window -x 60 -y 12
	shows '^ *1  web'
	lacks 'MEM'
	lacks ' on mgpu_soft.0'
	server resize-window -x 200 -y 40
	shows 'FPS HISTORY'
	shows ' on mgpu_soft.0'
	# another size is no key
	send '?'
	shows 'Any key goes back'
	server resize-window -x 160 -y 35
	sleep 0.3
	shows 'Any key goes back'
	send x
	shows ' on mgpu_soft.0'
	server resize-window -x 10 -y 3
	sleep 0.3
	server resize-window -x 130 -y 30
	shows '^ *1  web .* 60.0 '
	quit
}
behaves 'it fits the terminal, whose size changes' sizes

hung_up()
{
	local pid

	begin 130 30 env --ignore-signal=HUP -- -d 1
	shows '^ *1  web'
	pid=$(pgrep -P "$(server display-message -p '#{pane_pid}')")
	server kill-server
	# its shell is gone, and does not write its status
	await 20 grep -q '^requests' "$err" || kill "$pid"
}
behaves 'it ends when the terminal hangs up, also if SIGHUP is ignored' hung_up

# A terminal's own sequences: colours are 3x and 9x, reverse and bold are not.
colours()
{
	begin 130 30 -- -d 1
	shows '^ *3  -'
	screen -e >"$tmp/colours"
	grep -q -e $'\033\\[[0-9;]*31m' "$tmp/colours" || echo 'the vGPU in quarantine is not red'
	quit
	begin 130 30 NO_COLOR=1 -- -d 1
	shows '^ *3  -'
	screen -e >"$tmp/colours"
	grep -q -e $'\033\\[[0-9;]*[34][0-7]m' "$tmp/colours" && echo 'it has colours with NO_COLOR'
	grep -q -e $'\033\\[[0-9;]*7m' "$tmp/colours" || echo 'the selected vGPU is not shown'
	quit
}
behaves 'colours are for terminals without NO_COLOR' colours

ascii()
{
	begin 130 30 LC_ALL=C -- -d 1
	shows '^  fps |.*#|.*GPU |.*#|'
	LC_ALL=C grep -q '[^ -~]' "$tmp/screen" && echo "not ASCII: $(cat "$tmp/screen")"
	quit
}
behaves 'without UTF-8 graphs are of ASCII' ascii

# Three dumps for each of four samples, and a request for each row that is shown but for the
# first, before which there is none.
bounded()
{
	local lines

	for lines in 30:21 7:18 5:15; do
		begin 130 "${lines%:*}" -- -d 1 -n 3
		await 20 has_ended >/dev/null || echo 'it does not end by itself'
		[ "$(cat "$ended")" = 0 ] || echo "status $(cat "$ended")"
		grep -qx "requests ${lines#*:}" "$err" || show "$err"
		server kill-server
	done
}
behaves 'a refresh asks for all vGPUs at once, and for those on the screen' bounded

printed()
{
	begin 130 30 -- --batch -d 1 -n 2
	shows '^ID  UUID      VM '
	await 20 has_ended >/dev/null || echo 'it does not end'
	[ "$(screen | grep -c '^ID  UUID')" = 2 ] || echo "not as text: $(screen)"
	server kill-server
	# without a terminal, and with a signal
	GPUCTL_ROOT=$tmp/root MGPUD_SOCKET=/nonexistent/s \
		"$BUILD/unit/test_gpuctl_ctx" top -d 1 -n 1 2>/dev/null </dev/null >"$tmp/out"
	grep -q '^ 1  83b8f4f2  web   open    60.0 ' "$tmp/out" || show "$tmp/out"
	grep -q $'\033' "$tmp/out" && echo 'escape sequences in a file'
	GPUCTL_ROOT=$tmp/root "$BUILD/unit/test_gpuctl_ctx" top -b -d 1 -n 1 2>/dev/null >"$tmp/out"
	grep -q '^ 2  12345678  desk' "$tmp/out" || show "$tmp/out"
}
behaves 'with --batch, and without a terminal, it prints' printed

# The question of vgpu remove, which needs a terminal, too.
question()
{
	local file=$tmp/root/sys/bus/mdev/devices/12345678-509f-382f-3c1e-e6bfe0fa1002/remove answer
	local want

	mkdir -p "${file%/*}"
	for answer in n: y:1 ''; do
		want=${answer#*:} answer=${answer%:*}
		: >"$file"
		terminal=$(mktemp -u "$tmp/tmux.XXXXXX")
		ended=$terminal.ended
		server new-session -d -x 130 -y 30 "GPUCTL_ROOT='$tmp/root' \
			'$BUILD/unit/test_gpuctl_ctx' vgpu remove 2; echo \$? >'$ended'; sleep 60"
		shows 'Remove vGPU 2, 12345678-509f-382f-3c1e-e6bfe0fa1002 (-), of mgpu_soft.0? \[y/N\]'
		send $answer Enter
		await 20 has_ended >/dev/null || echo 'it does not end'
		[ "$(cat "$file")" = "$want" ] || echo "after '$answer': '$(cat "$file")'"
		[ "$want" = 1 ] || shows 'nothing was removed'
		[ "$want" = 1 ] || [ "$(cat "$ended")" = 1 ] || echo "status $(cat "$ended")"
		server kill-server
	done
}
behaves 'vgpu remove asks on a terminal, and takes only a yes' question

all_ended()
{
	[ -z "$(left)" ]
}

nothing_is_left()
{
	local pid

	stop
	await 20 all_ended >/dev/null
	for pid in $(left); do
		echo "process $pid runs on: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
		kill -9 "$pid"
	done
}
behaves 'all programs end with their terminals' nothing_is_left

done_testing
