#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The packages have every file that is installed, the units are hardened, and modules get
# BTF from a kernel's image where headers lack it.
set -uo pipefail

unit=remote/mgpu-remoted.service program=mgpu-remoted man=mgpu-remoted.8
# shellcheck source=tests/lib/unit.sh
. "$(dirname "$0")/../lib/unit.sh"
needs "$program"

behaves 'systemd takes the unit of mgpu-remoted' takes_unit mgpu-remoted.service
behaves 'its exposure is low' exposed mgpu-remoted.service 30

# systemd gives RuntimeDirectory= with all that is in it to the User= and the Group= of a unit.
keeps_owners()
{
	! grep -l '^RuntimeDirectory=mgpu$' "$top"/ctl/*/*.service |
		xargs -d '\n' grep -H '^\(User\|Group\)='
}
behaves 'no unit takes the files of others in /run/mgpu' keeps_owners

versions()
{
	[ "$(sed -n '1s/.*(\(.*\)).*/\1/p' "$top/debian/changelog")" = "$(cat "$top/VERSION")" ]
}
behaves 'the packages have the version of the project' versions

# Each file that "make install" installs is in one package. Patterns of *.install may name
# folders.
every_file()
{
	local f p n

	make -s -C "$top/ctl" install BUILD="$BUILD" PREFIX=/usr libdir=/usr/lib/arch \
		unitdir=/lib/systemd/system DESTDIR="$tmp/root" >"$tmp/out" 2>&1 || show "$tmp/out"
	sed 's/#.*//; s,debian/tmp/,,; s,${env:UNITDIR},lib/systemd/system,' \
		"$top"/debian/*.install "$top"/debian/*.manpages |
		awk 'NF { print $1 }' >"$tmp/listed"
	(cd "$tmp/root" && find . -type f -printf '%P\n') >"$tmp/installed"
	[ "$(wc -l <"$tmp/installed")" -gt 20 ] || echo 'hardly a file was installed'
	while read -r f; do
		n=0
		while read -r p; do
			# shellcheck disable=SC2053
			[[ $f != $p && $f != $p/* ]] || n=$((n + 1))
		done <"$tmp/listed"
		[ $n -eq 1 ] || echo "$f is in $n packages"
	done <"$tmp/installed"
	while read -r p; do
		# shellcheck disable=SC2086
		(cd "$tmp/root" && ls -d $p) >"$tmp/out" 2>&1 || echo "$p is not installed"
	done <"$tmp/listed"
}
behaves 'each installed file is in one package' every_file

build_dependencies()
{
	local p

	sed -n '/^Build-Depends:/,/^[A-Z][a-z-]*:/s/^ \([a-z0-9-]*\).*/\1/p' "$top/debian/control" |
		grep -v '^debhelper-compat$\|^dh-sequence-\|^linux-libc-dev$\|^systemd-dev$' \
			>"$tmp/wanted"
	[ -s "$tmp/wanted" ] || echo 'no build dependencies'
	while read -r p; do
		grep -q "^$p\b" "$top/tools/setup/packages" || echo "make deps lacks $p"
	done <"$tmp/wanted"
}
behaves 'make deps installs what the packages are built with' build_dependencies

# The maintainer scripts that dh_installsystemd makes.
maintainer_scripts()
{
	local package

	command -v dh_installsystemd >/dev/null || skip 'debhelper is not installed'
	mkdir "$tmp/package"
	cp -r "$top/debian" "$tmp/package/"
	for package in mgpu-{tools:mgpud/mgpud,exporter:metrics/mgpu-exporter,agent:agent/mgpu-agent} mgpu-poold:pool/mgpu-poold \
		       mgpu-{remoted:remote/mgpu-remoted,renderd:renderd/mgpu-renderd@}; do
		install -D -m 644 -t "$tmp/package/debian/${package%:*}/lib/systemd/system" \
			"$top/ctl/${package#*:}.service"
	done
	(cd "$tmp/package" && make -s -f debian/rules override_dh_installsystemd) >"$tmp/out" 2>&1 ||
		show "$tmp/out"
	(cd "$tmp/package/debian/.debhelper/generated" &&
		grep -or "deb-systemd-invoke [^ ]* '[^']*'" . | sort) >"$tmp/got"
	cat >"$tmp/want" <<-'END'
		./mgpu-agent/postinst.service:deb-systemd-invoke start 'mgpu-agent.service'
		./mgpu-agent/prerm.service:deb-systemd-invoke stop 'mgpu-agent.service'
		./mgpu-exporter/postinst.service:deb-systemd-invoke $_dh_action 'mgpu-exporter.service'
		./mgpu-exporter/prerm.service:deb-systemd-invoke stop 'mgpu-exporter.service'
		./mgpu-poold/postinst.service:deb-systemd-invoke $_dh_action 'mgpu-poold.service'
		./mgpu-poold/prerm.service:deb-systemd-invoke stop 'mgpu-poold.service'
		./mgpu-remoted/postinst.service:deb-systemd-invoke start 'mgpu-remoted.service'
		./mgpu-remoted/prerm.service:deb-systemd-invoke stop 'mgpu-remoted.service'
		./mgpu-tools/postinst.service:deb-systemd-invoke $_dh_action 'mgpud.service'
		./mgpu-tools/prerm.service:deb-systemd-invoke stop 'mgpud.service'
	END
	diff "$tmp/want" "$tmp/got"
}
behaves 'an upgrade leaves services running, and a removal stops them' maintainer_scripts

# A purge removes the folders that systemd makes for a unit.
state_goes()
{
	local unit package folder nr=0

	for unit in "$top"/ctl/*/*.service; do
		package=$(grep -lF "/${unit##*/}" "$top"/debian/*.install)
		for folder in $(sed -n 's,^StateDirectory=,/var/lib/,p; s,^LogsDirectory=,/var/log/,p' "$unit"); do
			nr=$((nr + 1))
			grep -qE "^\srm -rf (/.* )?$folder( |$)" "${package%.install}.postrm" ||
				echo "a purge of $(basename "$package" .install) leaves $folder"
		done
	done
	[ $nr -ge 4 ] || echo "there are $nr folders only"
}
behaves 'a purge removes state and logs of each service' state_goes

# ---- tests of the packages

# A test that begins, waits and ends, and has no system.
stand_in()	# NAME
{
	install -m 755 /dev/stdin "$tmp/tree/tests/packaging/$1.sh" <<-'END'
		#!/bin/bash
		suite=bookworm
		. "$(dirname "$0")/../lib/packaging.sh"
		echo "$1 begins" >>"$store/order"
		for ((i = 0; i < 2400; i++)); do
			[ ! -e "$store/go" ] || break
			sleep 0.05
		done
		echo "$1 ends" >>"$store/order"
		plan 0
	END
}

has_line()	# FILE TEXT
{
	grep -q "$2" "$1" 2>/dev/null
}

# The second run of a test waits for the first one, that of another test does not.
own_systems()
{
	local store=$tmp/tree/build/packaging

	[ "$(id -u)" -eq 0 ] || skip 'root makes chroots, and this is another user'
	mkdir -p "$tmp/tree/tests/packaging" "$store"
	ln -s "$top/tests/lib" "$tmp/tree/tests/lib"
	ln -s "$top/tools" "$top/VERSION" "$tmp/tree/"
	stand_in one
	stand_in two
	export BUILD=$tmp/tree/build MGPU_OWN_MOUNTS=yes
	"$tmp/tree/tests/packaging/one.sh" first >"$tmp/first" 2>&1 &
	await 20 has_line "$store/order" 'first begins' || show "$tmp/first"
	"$tmp/tree/tests/packaging/one.sh" second >"$tmp/second" 2>&1 &
	await 20 has_line "$tmp/second" 'another run of this test has .*/one' || show "$tmp/second"
	"$tmp/tree/tests/packaging/two.sh" other >"$tmp/third" 2>&1 &
	await 20 has_line "$store/order" 'other begins' || show "$tmp/third"
	touch "$store/go"
	wait
	grep -v other "$store/order" >"$tmp/out"
	diff - "$tmp/out" <<-'END'
		first begins
		first ends
		second begins
		second ends
	END
}
behaves 'two runs of a test of the packages take turns' own_systems

# ---- BTF

kernel=$BUILD/kernel/6.1
release=$(cat "$kernel/release" 2>/dev/null)

# Headers and an image as Debian 12 installs them: without vmlinux and resolve_btfids.
stock_headers()
{
	local f kdir

	[ -n "$release" ] || skip 'no test kernel 6.1'
	kdir=$(realpath "$kernel/kdir")
	rm -rf "$tmp/system"
	mkdir -p "$tmp/system/boot" "$tmp/system/headers/tools"
	for f in "$kdir"/{,.[a-z]}*; do
		case ${f##*/} in
		vmlinux|tools) ;;
		*)	ln -s "$f" "$tmp/system/headers/" ;;
		esac
	done
}

kdir_btf()
{
	ROOT=$tmp/system "$top/tools/setup/kdir-btf" "$tmp/system/headers" "$tmp/btf" \
		>"$tmp/out" 2>"$tmp/err"
}

from_image()
{
	stock_headers
	cp "$kernel/boot/vmlinuz-$release" "$tmp/system/boot/"
	kdir_btf || show "$tmp/err"
	[ "$(sed -n 1p "$tmp/out")" = "$tmp/btf/kdir" ] || show "$tmp/out"
	[ -x "$(sed -n 2p "$tmp/out")" ] || echo 'there is no btf-ids'
	objcopy -j .BTF "$kernel/vmlinux" "$tmp/want" 2>/dev/null
	objcopy -O binary "$tmp/want" "$tmp/want.btf"
	objcopy -O binary "$tmp/btf/kdir/vmlinux" "$tmp/got.btf"
	cmp "$tmp/want.btf" "$tmp/got.btf"
}
behaves 'headers without vmlinux get the BTF of the image' from_image

damaged()
{
	stock_headers
	for image in '' "$kernel/vmlinux" "$top/README.rst"; do
		rm -f "$tmp/system/boot"/*
		[ -z "$image" ] || cp "$image" "$tmp/system/boot/vmlinuz-$release"
		kdir_btf || show "$tmp/err"
		[ "$(sed -n 1p "$tmp/out")" = "$tmp/system/headers" ] || show "$tmp/out"
		grep -q "the modules for $release get no BTF: .*linux-image-$release" "$tmp/err" ||
			show "$tmp/err"
		grep -q 'Lost are mgpu-trace, mgpu-policy, and eBPF accounting' "$tmp/err" ||
			show "$tmp/err"
	done
	head -c 1000000 "$kernel/boot/vmlinuz-$release" >"$tmp/system/boot/vmlinuz-$release"
	kdir_btf || show "$tmp/err"
	grep -q 'get no BTF' "$tmp/err" || show "$tmp/err"
}
behaves 'without an image that is whole it says what is lost' damaged

# A vmlinux in the headers would have modules without BTF refused, or pahole called in vain.
not_configured()
{
	local kdir=$tmp/other

	mkdir -p "$kdir/include/generated" "$kdir/include/config"
	echo '#define UTS_RELEASE "9.9"' >"$kdir/include/generated/utsrelease.h"
	touch "$kdir"/{Makefile,vmlinux,include/config/auto.conf}
	"$top/tools/setup/kdir-btf" "$kdir" "$tmp/btf-other" >"$tmp/out" 2>"$tmp/err" ||
		show "$tmp/err"
	grep -q 'the modules for 9.9 get no BTF' "$tmp/err" || show "$tmp/err"
	[ "$(sed -n 1p "$tmp/out")" = "$tmp/btf-other/kdir" ] || show "$tmp/out"
	[ -f "$tmp/btf-other/kdir/Makefile" ] || echo 'the folder is not complete'
	[ ! -e "$tmp/btf-other/kdir/vmlinux" ] || echo 'the folder has a vmlinux'
}
behaves 'without BTF the modules are built in a folder without vmlinux' not_configured

# btf-ids against what the kernel's resolve_btfids did to the module of the tests.
same_ids()
{
	local ko=$BUILD/kmod/6.1/mgpu.ko at size

	[ -f "$ko" ] && [ -n "$release" ] || skip 'the modules for 6.1 are not built'
	gcc -std=gnu17 -D_GNU_SOURCE -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all \
		-Wall -Wextra -o "$tmp/btf-ids" "$top/tools/setup/btf-ids.c" -lbpf -lelf
	cp "$ko" "$tmp/mgpu.ko"
	read -r at size < <(readelf -SW "$ko" | sed -n 's/.* \.BTF_ids *[A-Z]* *[^ ]* \([^ ]*\) \([^ ]*\) .*/\1 \2/p')
	# as the compiler leaves them: zeros, but for flags
	for ((i = 0; i < 0x$size; i += 8)); do
		dd if=/dev/zero of="$tmp/mgpu.ko" bs=1 count=4 seek=$((0x$at + i)) conv=notrunc status=none
	done
	! cmp -s "$ko" "$tmp/mgpu.ko" || echo 'nothing was to be resolved'
	"$tmp/btf-ids" -b "$kernel/vmlinux" "$tmp/mgpu.ko" || echo 'btf-ids failed'
	cmp "$ko" "$tmp/mgpu.ko"
}
behaves 'btf-ids does what resolve_btfids does' same_ids

hostile_module()
{
	local ko=$BUILD/kmod/6.1/mgpu.ko n

	[ -x "$tmp/btf-ids" ] || gcc -std=gnu17 -D_GNU_SOURCE -g -O1 -fsanitize=address,undefined \
		-fno-sanitize-recover=all -o "$tmp/btf-ids" "$top/tools/setup/btf-ids.c" -lbpf -lelf
	refused "$tmp/btf-ids" 1 'README.rst has no BTF' -b "$top/README.rst" "$top/VERSION"
	refused "$tmp/btf-ids" 2 'usage: btf-ids -b BASE MODULE' -b "$top/VERSION"
	[ -f "$ko" ] && [ -n "$release" ] || return 0
	for n in 0 64 4096 1000000; do
		head -c $n "$ko" >"$tmp/cut.ko"
		refused "$tmp/btf-ids" 1 'btf-ids: .*cut.ko' -b "$kernel/vmlinux" "$tmp/cut.ko"
		[ "$(stat -c %s "$tmp/cut.ko")" -eq $n ] || echo "$n bytes changed"
	done
}
behaves 'btf-ids refuses damaged files, and changes none' hostile_module

done_testing
