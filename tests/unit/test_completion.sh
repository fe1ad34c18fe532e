#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The completion of bash for the programs other than gpuctl, whose is in test_gpuctl.sh: it
# offers the options that a program has, their values, and its commands, and is installed.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
ctl=$BUILD/ctl
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
tools='mgpud mgpu-policy mgpu-trace mgpu-renderd mgpu-defer mgpu-place mgpu-learn mgpu-remoted
mgpu-exporter mgpu-poold mgpu-agent'
asserts='offers suggested'

must 'the tools cannot be built' \
	make -s -C "$top/ctl" gpuctl mgpud policy trace renderd defer place learn metrics remote pool agent BUILD="$BUILD"

# In place of programs that the completion asks.
# shellcheck disable=SC2317,SC2016 # text that must not be run
gpuctl()
{
	case $* in
	'vgpu list') printf 'ID UUID VM\n1 83b8f4f2 $(touch %s/run)\n' "$tmp" ;;
	'dev list') printf 'ID NAME\n0 mgpu_soft.0\n' ;;
	esac
}
# shellcheck disable=SC2317
mgpu-policy()
{
	printf 'deadline  by deadlines\nrr  in turns\n'
}
# shellcheck disable=SC2317
mgpu-place()
{
	printf 'first-fit  the first\nfgd  another\n'
}
# shellcheck disable=SC2317
lspci()
{
	echo '0000:00:10.0 0380: 1af4:1050 (rev 01)'
}

offers()	# WANT WORD... : what is offered for the last word
{
	local want=$1 got
	shift

	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	COMPREPLY=()
	"_${1//-/_}"
	got=${COMPREPLY[*]}
	[ "$got" = "$want" ] || echo "$*: offers '$got', not '$want'"
}

load()
{
	local tool

	for tool in $tools; do
		bash -n "$ctl/$tool.bash-completion" 2>&1
		# shellcheck disable=SC1090
		. "$ctl/$tool.bash-completion"
		complete -p "$tool" | grep -q -e "-F _${tool//-/_} $tool\$" || echo "$tool: not completed"
	done
}

# A mistyped option gets the one that the program has as a suggestion. Commands may have
# options of their own.
suggested()	# TOOL OPTION
{
	local said

	case $1 in
	mgpu-renderd) said=$("$ctl/$1" "$2x" 2>&1; "$ctl/$1" replay "$2x" 2>&1) ;;
	mgpu-learn) said=$("$ctl/$1" "$2x" 2>&1; "$ctl/$1" pairs "$2x" 2>&1) ;;
	*)	said=$("$ctl/$1" "$2x" 2>&1) ;;
	esac
	[[ $said == *"did you mean --"* ]]
}

options()
{
	local tool option nr=0

	load
	for tool in $tools; do
		COMP_WORDS=("$tool" --) COMP_CWORD=1
		"_${tool//-/_}"
		for option in "${COMPREPLY[@]}"; do
			suggested "$tool" "$option" || echo "$tool has no $option"
			nr=$((nr + 1))
		done
		[ ${#COMPREPLY[@]} -gt 3 ] || echo "$tool: only ${COMPREPLY[*]}"
	done
	[ $nr -gt 80 ] || echo "$nr options in all"
}
behaves 'the programs have the options that are offered' options

# Of the tables in the source; settings of mgpud are in its help from its table.
all_options()
{
	local tool source option

	for tool in renderd trace policy defer place learn remoted exporter poold agent; do
		case $tool in
		remoted) source=$top/ctl/remote ;;
		exporter) source=$top/ctl/metrics ;;
		poold) source=$top/ctl/pool ;;
		*)	source=$top/ctl/$tool ;;
		esac
		for option in $(sed -n 's/^\t{ "\([a-z-]*\)", *\(no\|required\|optional\)_argument.*/\1/p' \
			"$source"/*.c); do
			# mgpu-remoted starts itself anew with these
			[[ $tool:$option != remoted:@(serve|rests|launch) ]] || continue
			grep -q -e "--${option}[ ']" "$ctl/mgpu-$tool.bash-completion" ||
				echo "mgpu-$tool: --$option is not offered"
		done
	done
	for option in $("$ctl/mgpud" --help | grep -o '^ *\(-[a-zA-Z], \)\?--[a-z-]*' | grep -o '[a-z-]*$'); do
		grep -q -e "--${option#--}[ ']" "$ctl/mgpud.bash-completion" || echo "mgpud: $option"
	done
}
behaves 'all options of the programs are offered' all_options

values()
{
	load
	offers 'exact fea drf maxmin static vgasa none' mgpud --allocator ''
	offers 'exact' mgpud --allocator ex
	offers 'release keep' mgpud --dry-run --on-exit ''
	offers '' mgpud --period ''
	offers 'network trees' mgpu-learn train --model ''
	offers 'B A C' mgpu-learn train --form ''
	offers 'compute memory' mgpu-place place --kind ''
	offers 'first-fit fgd' mgpu-place replay --policy ''
	offers 'none 0000:00:10.0' mgpu-renderd --gpu ''
	offers 'none 0000:00:10.0' mgpu-renderd -g ''
	offers 'all calls' mgpu-remoted --confine ''
	offers '' mgpu-exporter serve --socket ''
	offers 'any whole vgpu' mgpu-agent run --target ''
	offers 'any fp64 fp32 fp16 fp8' mgpu-agent run --precision ''
}
behaves 'values of options are offered' values

commands()
{
	load
	offers 'help version' mgpud ''
	offers 'list load replace unload help version' mgpu-policy ''
	offers 'unload' mgpu-policy u
	offers 'dev timeout set deadline rr' mgpu-policy load ''
	offers '0 mgpu_soft.0' mgpu-policy load rr dev ''
	offers 'train evaluate predict' mgpu-learn pairs ''
	offers 'replay help version' mgpu-renderd ''
	offers 'print serve textfile list help version' mgpu-exporter ''
	offers '' mgpu-exporter list ''
	offers 'serve config check export token request list release help version' mgpu-poold ''
	offers 'run watch request state release extend consent help version' mgpu-agent ''
	offers 'yes no' mgpu-agent consent ''
	# a value is no command
	offers 'replay help version' mgpu-renderd --user nobody ''
	offers '83b8f4f2' mgpu-trace record ''
	[ ! -e "$tmp/run" ] || echo 'the name of a VM was run'
}
behaves 'commands, their words, vGPUs and devices are offered' commands

installed()
{
	local tool

	make -s -C "$top/ctl" install BUILD="$BUILD" DESTDIR="$tmp/root" PREFIX=/usr || return 1
	for tool in gpuctl $tools; do
		cmp "$ctl/$tool.bash-completion" \
			"$tmp/root/usr/share/bash-completion/completions/$tool"
	done
}
behaves 'the completion is installed' installed

done_testing
