#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# gpuctl, mgpud, mgpu-policy, mgpu-trace, mgpu-renderd, mgpu-defer, mgpu-place, mgpu-learn,
# mgpu-exporter, mgpu-remoted, mgpu-poold and mgpu-agent have one grammar: help, version, and the answer to words and options that they do not know.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
ctl=$BUILD/ctl
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
tools='gpuctl mgpud mgpu-policy mgpu-trace mgpu-renderd mgpu-defer mgpu-place mgpu-learn mgpu-exporter
	mgpu-remoted mgpu-poold mgpu-agent'

must 'the tools cannot be built' \
	make -s -C "$top/ctl" gpuctl mgpud policy trace renderd defer place learn metrics remote pool agent BUILD="$BUILD"

help_and_version()
{
	local tool words

	for tool in $tools; do
		"$ctl/$tool" --help >"$tmp/help" 2>"$tmp/err" || echo "$tool --help: status $?"
		[ ! -s "$tmp/err" ] || echo "$tool --help: complains"
		grep -q "^usage: $tool " "$tmp/help" || echo "$tool --help: no usage"
		for words in -h help; do
			"$ctl/$tool" $words | diff "$tmp/help" - || echo "$tool $words"
		done
		grep -q -e '-h, --help' "$tmp/help" || echo "$tool --help: no -h, --help"
		grep -q -e '-V, --version' "$tmp/help" || echo "$tool --help: no -V, --version"
		"$ctl/$tool" --version >"$tmp/version" || echo "$tool --version: status $?"
		grep -qx "$tool [0-9].*" "$tmp/version" || show "$tmp/version"
		for words in -V version; do
			"$ctl/$tool" $words | diff "$tmp/version" - || echo "$tool $words"
		done
		grep -q '^\.B.*\\-h.*\\-help' "$top/Documentation/man/$tool".[18] ||
			echo "the manual page of $tool has no -h, --help"
		grep -q '^\.B.*\\-V.*\\-version' "$top/Documentation/man/$tool".[18] ||
			echo "the manual page of $tool has no -V, --version"
	done
}
behaves 'help and version are words and options of each tool' help_and_version

unknown()
{
	local tool

	for tool in $tools; do
		refused "$ctl/$tool" 2 "^$tool: unknown option --versoin; did you mean --version?\$" --versoin
		refused "$ctl/$tool" 2 "^$tool: unknown option --hlep; did you mean --help?\$" --hlep=3
		refused "$ctl/$tool" 2 "^$tool: unknown option --banana; '$tool --help' lists all\$" --banana
		refused "$ctl/$tool" 2 "^$tool: unknown option -x; '$tool --help' lists all\$" -x
		refused "$ctl/$tool" 2 "^$tool: unknown command 'vresion'; did you mean 'version'?\$" vresion
		refused "$ctl/$tool" 2 "^$tool: --help takes no value\$" --help=3
	done
	refused "$ctl/gpuctl" 2 '^gpuctl: --count wants a value' top --count
	refused "$ctl/mgpud" 2 '^mgpud: --config wants a value' --config
	refused "$ctl/mgpu-policy" 2 '^mgpu-policy: --pin wants a value' load deadline --pin
	refused "$ctl/mgpu-trace" 2 '^mgpu-trace: -o wants a value\|--output wants a value' record -o
	refused "$ctl/mgpud" 2 'did you mean --allocator' --alocator exact
	refused "$ctl/mgpud" 2 'policy is called --allocator now' --policy exact
	refused "$ctl/mgpu-policy" 2 "^mgpu-policy: unknown command 'laod'; did you mean 'load'?\$" laod
	refused "$ctl/mgpu-policy" 2 "unknown word 'timeuot'; did you mean 'timeout'?" load deadline timeuot 500
	refused "$ctl/mgpu-policy" 2 "unknown word 'dev'" replace 1 deadline dev 0
	refused "$ctl/mgpu-trace" 2 "did you mean 'record'" recrod
	refused "$ctl/mgpu-renderd" 2 "did you mean 'replay'" rpelay
	refused "$ctl/mgpu-defer" 2 "did you mean 'analyse'" analyze
	refused "$ctl/mgpu-place" 2 "did you mean 'replay'" rpelay
	refused "$ctl/mgpu-place" 2 '^mgpu-place: --nodes wants a value' replay --nodes
	refused "$ctl/mgpu-learn" 2 "did you mean 'evaluate'" evalaute
	refused "$ctl/mgpu-learn" 2 '^mgpu-learn: --seed wants a value' train --seed
	refused "$ctl/mgpu-exporter" 2 "did you mean 'serve'" sevre
	refused "$ctl/mgpu-poold" 2 "did you mean 'serve'" serv
	refused "$ctl/mgpu-poold" 2 '^mgpu-poold: --kind wants a value' request a --kind
	refused "$ctl/mgpu-poold" 2 '^mgpu-poold: --done is not for list' list --done
	refused "$ctl/mgpu-poold" 2 '^mgpu-poold: request needs --kind' request x
	refused "$ctl/mgpu-poold" 2 "--size '3G': it must be a whole number" request x --size 3G
	refused "$ctl/mgpu-poold" 2 'release takes one word' release
	refused "$ctl/mgpu-agent" 2 "did you mean 'release'" relaese
	refused "$ctl/mgpu-agent" 2 '^mgpu-agent: --size wants a value' run --size
	refused "$ctl/mgpu-agent" 2 '^mgpu-agent: --done is not for run' run --kind x --done true
	refused "$ctl/mgpu-agent" 2 "--lease '3y': invalid value" run --kind x --lease 3y true
	refused "$ctl/mgpu-agent" 2 'release takes the number of a request' release
	refused "$ctl/mgpu-exporter" 2 '^mgpu-exporter: --listen wants a value' serve --listen
	refused "$ctl/mgpu-exporter" 2 '^mgpu-exporter: --listen is not for print' print --listen x
	refused "$ctl/mgpu-exporter" 2 "--interval '0': it must be a whole number" textfile x.prom --interval 0
	refused "$ctl/mgpu-exporter" 2 'textfile takes one file' textfile
	refused "$ctl/mgpu-renderd" 2 'make it first' --record /nonexistent
	refused "$ctl/mgpu-renderd" 2 'replay needs a recording' replay
}
behaves 'unknown words and options are answered alike, with a suggestion' unknown

verbs()
{
	local verb

	"$ctl/mgpu-policy" | diff - <("$ctl/mgpu-policy" list)
	"$ctl/mgpu-policy" -v >/dev/null || echo "mgpu-policy -v: status $?"
	for verb in list load replace unload; do
		"$ctl/mgpu-policy" $verb --help >"$tmp/out" || echo "$verb --help: status $?"
		[ "$(grep -c '^  mgpu-policy ' "$tmp/out")" = 1 ] || show "$tmp/out"
		grep -q "^  mgpu-policy $verb" "$tmp/out" || show "$tmp/out"
		"$ctl/mgpu-policy" help $verb | diff "$tmp/out" -
		grep -qx "\.B $verb" "$top/Documentation/man/mgpu-policy.8" ||
			echo "mgpu-policy(8) does not know $verb"
	done
	"$ctl/mgpu-trace" record --help | diff - <("$ctl/mgpu-trace" --help)
	refused "$ctl/mgpu-policy" 2 "unknown command 'laod'; did you mean 'load'" laod --help
	refused "$ctl/mgpu-policy" 2 'for load only' unload 3 --pin /sys/fs/bpf/x
	refused "$ctl/mgpu-policy" 2 "unexpected word 'now'" list now
}
behaves 'each command has its help, and mgpu-policy alone lists' verbs

done_testing
