# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The test of the packages in a chroot of one release: built, installed, upgraded, with modules
# for a new kernel, removed and purged. To be sourced by a script that has set
#
#   suite	the release's name
#   newer	packages of its newest kernel with headers; apt's NAME or NAME/SUITE
: "${suite:?}" "${newer:?}"
# shellcheck source=tests/lib/packaging.sh
. "$(dirname "$0")/../lib/packaging.sh"
needs xz zstd objcopy readelf
asserts='installed_for has_btf_and_signature'

# Print a line beside the results.
tell()		# TEXT...
{
	echo "# $*" >&"${tap_out:?}"
}

# The modules have their BTF, the id of a kfunc is that of the function in it, and they are
# signed. The release's own bpftool reads the BTF, which may come with the types of the kernel that
# it needs (.BTF.base).
has_btf_and_signature()	# KERNEL
{
	local ko=$root/tmp/mgpu.ko file id of=()

	file=$root$(in_root modinfo -k "$1" -F filename mgpu)
	case $file in
	*.xz)	xz -dc "$file" >"$ko" ;;
	*.zst)	zstd -qdcf "$file" >"$ko" ;;
	*.ko)	cp "$file" "$ko" ;;
	*)	echo "$1: there is no mgpu.ko"
		return ;;
	esac
	if ! readelf -SW "$ko" | grep '\.BTF\.base' >/dev/null; then
		rm -rf "$tmp/btf"
		ROOT=$root "$top/tools/setup/kdir-btf" "$root/usr/src/linux-headers-$1" "$tmp/btf" \
			>"$tmp/kdir" 2>"$tmp/err" || show "$tmp/err"
		cp "$(head -n 1 "$tmp/kdir")/vmlinux" "$root/tmp/vmlinux"
		of=(-B /tmp/vmlinux)
	fi
	id=$(in_root bpftool "${of[@]}" btf dump file /tmp/mgpu.ko |
		sed -n "s/^\[\([0-9]*\)\] FUNC 'mgpu_charge'.*/\1/p")
	[ -n "$id" ] || echo "$1: mgpu.ko has no BTF of mgpu_charge()"
	objcopy -O binary -j .BTF_ids --set-section-flags .BTF_ids=alloc "$ko" "$tmp/ids" 2>/dev/null
	od -An -v -t u4 "$tmp/ids" | tr -s ' \n' '  ' | grep -qw "${id:-none}" ||
		echo "$1: the ids of kfuncs are not resolved"
	tail -c 28 "$ko" | grep -aq 'Module signature appended' || echo "$1: mgpu.ko is not signed"
}

# Files that belong to no package, but for caches, what apt and dpkg know and log, and what the
# installation of kernels makes. Folders of /usr that / has links to are named as there.
strays()
{
	in_root find / -xdev \( -path /proc -o -path /run -o -path /build -o -path /source \
		-o -path /debs -o -path /boot -o -path /var/cache -o -path /var/log/apt \
		-o -path '/var/log/dpkg.log*' -o -path '/var/log/alternatives.log*' \
		-o -path /var/lib/apt -o -path /var/lib/dpkg -o -path /tmp -o -path '/vmlinuz*' \
		-o -path '/initrd.img*' -o -path '/usr/lib/modules/*/modules.*' \
		-o -path '/var/lib/dkms/mok.*' -o -path /var/lib/initramfs-tools \
		-o -name __pycache__ \) -prune -o -print |
		sed 's,^/usr/\(s\?bin\|lib\|lib64\)\(/\|$\),/\1\2,' | sort -u >"$tmp/files"
	sed 's,^/usr/\(s\?bin\|lib\|lib64\)\(/\|$\),/\1\2,' "$root"/var/lib/dpkg/info/*.list |
		sort -u >"$tmp/owned"
	comm -23 "$tmp/files" "$tmp/owned"
}

unpack_system
copy_sources
build_packages
stock=$(kernels)

packages_build()
{
	local name

	for name in "$version" "$older"; do
		[ -e "$root/debs/$name/mgpu-dkms_${name}_amd64.deb" ] ||
			echo "version $name does not build: $(cat "$tmp/out";
				tail -n 20 "$built/$name"/*.log)"
	done
}
behaves "the packages build by the README's commands" packages_build

lintian_is_content()
{
	local tags=0

	in_root sh -c "lintian --allow-root --fail-on error /debs/$version/*.changes" \
		>"$tmp/out" 2>&1 || show "$tmp/out"
	! grep '^E: ' "$tmp/out" || return
	tags=$(grep -c '^W: ' "$tmp/out")
	tell "lintian: no errors, $tags warnings"
}
behaves 'lintian has no errors on any package' lintian_is_content

# Dependencies of the packages stay when the packages go.
dependencies()
{
	local f files depends

	mapfile -t files < <(packages "$version")
	depends=$(for f in "${files[@]}"; do
		dpkg-deb -f "$root/$f" Depends | tr , '\n' | grep -v '^ *mgpu-'
	done | paste -sd,)
	quiet_apt satisfy "$depends, dbus, systemd-sysv, udev"
	strays >"$tmp/before"
	[ -s "$tmp/owned" ] || echo 'no package has files'
	! grep mgpu "$tmp/before"
}
behaves 'what the packages depend on can be installed' dependencies

fresh()
{
	timed install_packages "$older" mgpu-dkms mgpu-tools
	tell "installation of mgpu-dkms and mgpu-tools: $(cat "$tmp/took")"
	installed_for "$stock" "$older"
	has_btf_and_signature "$stock"
	install_packages "$older"
}
behaves "modules are built for the release's kernel, with BTF, and signed" fresh

upgrade()
{
	echo '# mine' >>"$root/etc/mgpu/mgpud.conf"
	install_packages "$version"
	installed_for "$stock" "$version"
	has_btf_and_signature "$stock"
	! dkms_status | grep -F "/$older"
	[ ! -e "$root/usr/src/mgpu-$older" ] || echo "sources of $older stay"
	grep -q '^# mine$' "$root/etc/mgpu/mgpud.conf" || echo 'the configuration was lost'
}
behaves 'an upgrade replaces the modules and keeps the configuration' upgrade

# Units that the packages have, one a line; of a template an instance.
units()
{
	sed -n 's,^\(/usr\)\?/lib/systemd/system/\(.*\.service\)$,\2,p' \
		"$root"/var/lib/dpkg/info/mgpu-*.list | sed 's/@\./@none./' | sort -u
}

units_are_hardened()
{
	local unit figure most

	[ "$(units | wc -l)" -ge 4 ] || echo "there are not all units: $(units)"
	while read -r unit; do
		# mgpu-agent runs the jobs of a guest's users.
		most=30
		[ "$unit" != mgpu-agent.service ] || most=45
		in_root systemd-analyze security --no-pager --offline=true --threshold=$most "$unit" \
			>"$tmp/out" 2>&1 </dev/null || show "$tmp/out"
		figure=$(sed -n 's/.*Overall exposure level.*: \([0-9.]*\) .*/\1/p' "$tmp/out")
		[ -n "$figure" ] || echo "$unit has no exposure level"
		tell "exposure of $unit: $figure"
		! in_root systemd-analyze verify --man=no "$unit" 2>&1 </dev/null | grep -F "$unit"
	done < <(units)
}
behaves 'the exposure of each unit is at most 3.0, of mgpu-agent 4.5, and systemd takes it' units_are_hardened

system_is_set_up()
{
	local unit

	[ "$(in_root systemctl is-enabled mgpud.service)" = enabled ] || echo 'mgpud is not enabled'
	for unit in mgpu-remoted mgpu-exporter mgpu-poold mgpu-agent mgpu-renderd@none; do
		! in_root systemctl is-enabled --quiet "$unit.service" || echo "$unit is enabled"
	done
	in_root getent group mgpu >"$tmp/out" || echo 'no group mgpu'
	in_root id -nG mgpu-remote 2>&1 | grep -qw render || echo 'mgpu-remote may not use GPUs'
	in_root id -u mgpu-renderd >"$tmp/out" 2>&1 || echo 'no account mgpu-renderd'
	grep -qx mgpu_soft "$root/usr/lib/modules-load.d/mgpu.conf" ||
		echo 'modules are not loaded at boot'
	in_root mgpud --check >"$tmp/out" 2>&1 || show "$tmp/out"
	for program in gpuctl mgpud mgpu-policy mgpu-trace mgpu-renderd mgpu-remoted mgpu-defer \
		mgpu-learn mgpu-place mgpu-exporter mgpu-poold mgpu-agent; do
		in_root "$program" --version 2>&1 | grep -qF "$version" || echo "no $program $version"
	done
	# no other program finds the libraries of guests by itself
	! in_root ldconfig -p | grep -F "/mgpu/"
	[ -e "$root$(cat "$root/etc/OpenCL/vendors/mgpu.icd")" ] || echo 'no library of mgpu.icd'
}
behaves 'services, accounts, programs and libraries are set up' system_is_set_up

new_kernel()
{
	local kernel

	# shellcheck disable=SC2086
	quiet_apt install $newer
	kernel=$(kernels | grep -vxF "$stock")
	[ -n "$kernel" ] || echo 'there is no other kernel'
	installed_for "$kernel" "$version"
	has_btf_and_signature "$kernel"
	installed_for "$stock" "$version"
	tell "kernels: $stock, $kernel"
}
behaves 'a kernel update builds the modules for it, with BTF, and signed' new_kernel

no_modules()
{
	! dkms_status | grep mgpu
	! find "$root/lib/modules/" -name 'mgpu*' | grep .
}

modules_removed()
{
	quiet_apt remove mgpu-dkms
	no_modules
	[ ! -e "$root/usr/src/mgpu-$version" ] || echo 'sources stay'
	in_root gpuctl --version | grep -qF "$version" || echo 'gpuctl went, too'
}
behaves 'removal of mgpu-dkms removes the modules of all kernels, and no more' modules_removed

removed()
{
	quiet_apt remove '^mgpu-'
	[ -e "$root/etc/mgpu/mgpud.conf" ] || echo 'the configuration was removed'
	[ ! -e "$root/usr/sbin/mgpud" ] || echo 'mgpud stays'
}
behaves 'removal keeps the configuration only' removed

purged()
{
	mkdir -p "$root"/var/{lib,log}/mgpu "$root"/var/lib/mgpu-{pool,agent}
	touch "$root"/var/{lib,log}/mgpu/file "$root"/var/lib/mgpu-{pool,agent}/file
	quiet_apt purge '^mgpu-'
	strays >"$tmp/after"
	diff "$tmp/before" "$tmp/after" | grep '^[<>]'
	! grep mgpu "$tmp/after"
	! in_root dpkg -l 'mgpu-*' 2>/dev/null | grep '^[a-z][a-zA-Z] *mgpu'
	! find "$root/run" -name '*mgpu*' | grep .
}
behaves 'a purge leaves nothing' purged
done_testing
