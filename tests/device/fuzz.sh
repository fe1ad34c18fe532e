#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# timeout: 300
#
# Fuzz the whole device on the debug kernel, guided by coverage of the modules.
#
#   tests/device/fuzz.sh [--seconds N] [--seed N] [--gpu virtio] [--replay FILE|DIR]
#   tests/device/fuzz.sh [--gpu virtio] --merge FILE
#
# --seconds	time for new programs, after the stored ones (20)
# --seed	of the programs (a random one, which is printed)
# --gpu		vGPUs of a physical GPU, not of mgpu_soft
# --replay	execute the programs of FILE, one a line, on one vGPU; or the records of a
#		run, DIR/vgpu-N.log, each on a vGPU
# --merge	add those programs of FILE to tests/fuzz/corpus that cover a block of code
#		that no other program does
#
# Needs what make KERNEL=debug kmod kselftest builds. The modules are built once more
# below build/fuzz-device, for KCOV. Records, finds and logs of the last run are in
# build/fuzz-device/out, or in $OUT; of the run before in out.old. The output is TAP.
set -uo pipefail

top=$(cd "$(dirname "$0")/../.." && pwd)
cd "$top" || exit 1
real=${BUILD:-$top/build}
work=$real/fuzz-device
kmod=$work/kmod/debug

# In the test host: BUILD is $work.
if [ "${1-}" = --inside ]; then
	module=$2 program=$3
	tools/vm/modules load "$module" || exit 1
	(cd tests/kselftest && exec "$BUILD/kselftest/$program")
	rc=$?
	for vgpu in /sys/bus/mdev/devices/*; do
		[ -e "$vgpu" ] || continue
		echo "# left behind: ${vgpu##*/}"
		timeout 20 tee "$vgpu/remove" <<<1 >/dev/null
		rc=1
	done
	tools/vm/modules unload || rc=1
	exit "$rc"
fi

die()
{
	echo "tests/device/fuzz.sh: $*" >&2
	exit 2
}

seconds=20 seed=$(($(od -An -N4 -tu4 /dev/urandom) % 1000000000 + 1))
replay='' merge='' module=mgpu_soft program=test_fuzz corpus=fuzz_device options=()
while [ $# -gt 0 ]; do
	[ $# -ge 2 ] || { sed -n '5,/^set /{/^set /d;s/^# \{0,1\}//p}' "$0"; exit 2; }
	case $1 in
	--seconds) seconds=$2 ;;
	--seed)	seed=$2 ;;
	--replay) replay=$(realpath "$2") ;;
	--merge) merge=$(realpath "$2") ;;
	--gpu)	[ "$2" = virtio ] || die "--gpu takes virtio, not '$2'"
		module=mgpu_virtio program=test_fuzz_virtio corpus=fuzz_device_virtio
		options=(--gpu virtio-iommu) ;;
	*)	die "unknown option $1" ;;
	esac
	shift 2
done
[[ $seconds =~ ^[1-9][0-9]*$ && $seed =~ ^[0-9]+$ ]] ||
	die "seconds and seed are whole numbers, not '$seconds' and '$seed'"
[ -z "$replay$merge" ] || [ -e "$replay$merge" ] || die "there is no $replay$merge"

kdir=$real/kernel/debug/kdir
[ -f "$kdir/Makefile" ] || die "there is no debug kernel; run: make kernel KERNEL=debug"
[ -x "$real/kselftest/$program" ] ||
	die "there are no tests; run: make KERNEL=debug kmod kselftest"
if [ ${#options[@]} -gt 0 ] && ! why=$(tools/vm/gpu-probe 2>/dev/null); then
	echo "1..0 # SKIP no GPU: $why"
	exit 0
fi

# The modules for KCOV, and beside them what else the test host needs.
mkdir -p "$work/kmod"
for name in kernel kselftest tcg; do
	ln -sfn "../$name" "$work/$name"
done
tools/setup/kmod-build "$kdir" "$kmod" -j"$(nproc)" CC=gcc-12 UBSAN_SANITIZE=y \
	KCOV_INSTRUMENT=y >"$work/build.log" 2>&1 ||
	die "the modules do not build, see $work/build.log"
blocks=$(objdump -dr "$kmod/mgpu.ko" "$kmod/$module.ko" |
	grep -c 'R_X86_64_PLT32.*__sanitizer_cov_trace_pc')

# The records of a run that is replayed may be those of the last one.
out=${OUT:-$work/out}
rm -rf "$work/replay"
if [ -n "$replay" ]; then
	cp -r "$replay" "$work/replay"
	replay=$work/replay
fi
if [ -z "$merge" ]; then
	rm -rf "$out.old"
	[ ! -d "$out" ] || mv "$out" "$out.old"
fi
mkdir -p "$out"

limit=$((seconds + 240))
[ -z "$replay$merge" ] || limit=3600
echo "# seed $seed; again: make fuzz SECONDS=$seconds SEED=$seed"
for try in 1 2; do
	BUILD=$work tools/vm/run --kernel debug --timeout $limit --out "$out" "${options[@]}" \
		--env "FUZZ_SECONDS=$seconds" --env "FUZZ_SEED=$seed" \
		--env "FUZZ_REPLAY=$replay" --env "FUZZ_BLOCKS=$blocks" \
		--env "FUZZ_MERGE=$merge" -- \
		tests/device/fuzz.sh --inside "$module" "$program" \
		</dev/null >"$out/output" 2>&1
	rc=$?
	if [ "$rc" -ne 4 ] || [ "$try" -eq 2 ]; then
		break
	fi
	echo '# retried: the emulated processor went wrong'
	mv "$out/output" "$out/output-1"
done
cat "$out/output"
if [ "$rc" -ne 0 ] && [ -z "$merge" ]; then
	echo "# the programs of each vGPU are in $out/fuzz; again: make fuzz REPLAY=$out/fuzz"
fi
if [ "$rc" -eq 0 ] && [ -n "$merge" ]; then
	cp "$out/fuzz/merged.hex" "tests/fuzz/corpus/$corpus.hex"
	echo "# tests/fuzz/corpus/$corpus.hex: $(wc -l <"tests/fuzz/corpus/$corpus.hex") programs"
fi
exit "$rc"
