#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
#
# The modules compile without a warning of the compiler at W=1, and sparse, with
# its endian checks, is silent too. Compiled from nothing: an up-to-date object would
# give no warnings. Not linked: the steps after the objects, BTF above all, take as long
# again and give no warnings here, and make kmod has done them. These are the modules as
# users build them, without the parameters that tests have (MGPU_TEST).
set -uo pipefail

cd "$(dirname "$0")/../.." || exit 1
BUILD=${BUILD:-$PWD/build}
KERNEL=${KERNEL:-6.1}
kdir=$BUILD/kernel/$KERNEL/kdir
dir=$BUILD/check/static/kmod-$KERNEL
log=$dir.log
jobs=${JOBS:-$(nproc)}

echo 'TAP version 13'
if [ ! -d "$kdir/" ]; then
	echo '1..0 # SKIP no test kernel, run: make kernel'
	exit 4
fi
sparse=()
if command -v sparse >/dev/null; then
	sparse=(C=1)
fi

echo 1..4
rm -rf "$dir"
mkdir -p "$dir"
cp -a Kbuild kmod include "$dir/"
mapfile -t objects < <(sed -n 's/^obj-m += //p' Kbuild)
if [ ${#objects[@]} -gt 0 ] && make -C "$kdir" M="$dir" W=1 -j"$jobs" "${sparse[@]}" \
	"${objects[@]}" >"$log" 2>&1; then
	echo 'ok 1 - the modules compile'
else
	tail -n 40 "$log" | sed 's/^/# /'
	echo 'not ok 1 - the modules compile'
	echo 'Bail out! no modules'
	exit 1
fi

bad=0
result()	# NUMBER DESCRIPTION LINES
{
	if [ -z "$3" ]; then
		echo "ok $1 - $2"
	else
		printf '%s\n' "$3" | sed "s,$dir/,,; s/^/# /"
		echo "not ok $1 - $2"
		bad=1
	fi
}

# gcc names the flag behind its warning, sparse does not. The kernel's own
# headers are not ours to mend.
ours=$(grep -E ': (warning|error): ' "$log" | grep -F "$dir/" || true)
result 2 'W=1 is silent' "$(printf '%s' "$ours" | grep -E '\[-W[^]]*\]$')"
if [ ${#sparse[@]} -eq 0 ]; then
	echo 'ok 3 - sparse is silent # SKIP sparse is not installed'
elif grep -q 'C=1 specified, but' "$log"; then
	# The kernel's check of sparse is in its source, and not in Debian's headers.
	echo 'ok 3 - sparse is silent # SKIP sparse is older than this kernel asks for'
else
	result 3 'sparse is silent' "$(printf '%s' "$ours" | grep -vE '\[-W[^]]*\]$')"
fi
result 4 'users get no parameter that is for tests' \
	"$(grep -aol 'parm=[a-z_]*:For tests' "$dir"/*.o | sed 's/$/: has a parameter for tests/')"
exit $bad
