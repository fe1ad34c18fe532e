# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A Debian with the packages installed, booted with its own kernel, systemd and udev from a disk:
# services, a vGPU of mdevctl, a VM's GPU of the pool and settings that survive a reboot, and
# README's commands. To be sourced by a script that has set
#
#   suite	the release's name
#
# With the argument --prepare the script makes the disk only. build/packaging/NAME-disk, NAME being
# that of the script, has the disk, and a folder with the files of each boot (console.log, output).
# The disk is made once for the current sources, and each test starts from a copy.
: "${suite:?}"
# shellcheck source=tests/lib/packaging.sh
. "$(dirname "$0")/../lib/packaging.sh"
needs qemu-system-x86_64 mkfs.ext4 modprobe

dir=$root-disk
# Packages of the host besides those under test, their dependencies and their build dependencies.
system='curl, dbus, jq, kmod, libgl1-mesa-dri, libvirt-clients, libvirt-daemon-driver-qemu,
	libvirt-daemon-system, mdevctl, nftables, polkitd, qemu-system-x86, systemd-sysv, udev'

# Install as README says, from the line behind the build on. Dependencies of mgpu-renderd are there.
install_system()
{
	quiet_apt satisfy "$(dpkg-deb -f "$root/$(packages "$version" mgpu-renderd)" Depends), $system"
	in_root systemd-machine-id-setup >/dev/null 2>&1
	echo mgpu-test >"$root/etc/hostname"
	mkdir -p "$root/root/mgpu/build" "$root/var/log/journal"
	cp "$top/README.rst" "$root/root/mgpu/"
	mv "$root/debs/$version" "$root/root/mgpu/build/deb"
	timed in_root sh -c 'cd /root/mgpu &&
		apt-get -q -y install ./build/deb/mgpu-dkms_*.deb ./build/deb/mgpu-tools_*.deb' \
		>"$tmp/apt" 2>&1 || tail -n 30 "$tmp/apt"
	echo "installation of mgpu-dkms and mgpu-tools: $(cat "$tmp/took")" >"$dir/figures"
	installed_for "$(kernels)" "$version"
	quiet_apt install "./root/mgpu/build/deb/mgpu-poold_${version}_amd64.deb"
	in_root useradd --no-create-home --groups mgpu-pool keeper
	in_root useradd --no-create-home visitor
}

# Build, with the system's own headers, the modules that keep an emulated processor going.
emulator_modules()	# KERNEL
{
	cp -a "$top/tools/vm/tcg" "$root/tcg" &&
		in_root make -C "/lib/modules/$1/build" M=/tcg modules >"$tmp/tcg" 2>&1 || {
		tail -n 20 "$tmp/tcg"
		return 1
	}
	mkdir -p "$dir/tcg"
	mv "$root"/tcg/{repatch,whereis}.ko "$dir/tcg/" && rm -rf "$root/tcg"
}

# Write the disk, and the kernel beside it as tools/vm/run takes it.
write_disk()
{
	local release

	release=$(kernels)
	emulator_modules "$release" || return
	rm -rf "$root"/{debs,source,build} "$root"/var/cache/apt/*.bin
	umount "$root/proc" "$root/run"
	mkdir -p "$dir/lib/modules"
	cp -a "$root/lib/modules/$release" "$dir/lib/modules/" || return
	cp "$root/boot/vmlinuz-$release" "$dir/image"
	echo "$release" >"$dir/release"
	truncate -s 12G "$dir/fresh"
	mkfs.ext4 -q -F -d "$root" "$dir/fresh" || return
	touch "$dir/.complete"
}

prepare()
{
	unpack_system
	build_packages
	[ -e "$built/key" ] || bail 'the packages do not build'
	rm -rf "$dir"
	mkdir -p "$dir"
	install_system >"$tmp/said" 2>&1
	[ ! -s "$tmp/said" ] || bail "the packages cannot be installed: $(cat "$tmp/said")"
	must 'the disk cannot be written' write_disk
	echo "${key:?}" >"$dir/key"
}

# Boot the disk, run one of the programs beside this file there, and take over its results.
boot()		# PROGRAM [OPTION]...
{
	local program=$1 out=$dir/$1 line status=0
	shift

	rm -rf "$out"
	mkdir -p "$out"
	cp "$top/tests/packaging/host"/* "$top/tests/lib/tap.sh" "$top/Documentation/pool.rst" "$out/"
	"$top/tools/vm/run" --root "$dir" --smp 1 --mem 2048 --timeout $((900 * slow)) --out "$out" \
		"$@" -- "/run/mgpu-host/out/$program" >"$out/output" 2>"$out/vm" || status=$?
	while IFS= read -r line; do
		case $line in
		ok\ *)	number=$((number + 1))
			echo "ok $number $program: ${line#ok * }" ;;
		not\ ok\ *)
			number=$((number + 1)) failures=$((failures + 1))
			echo "not ok $number $program: ${line#not ok * }" ;;
		'# '*)	echo "$line" ;;
		esac
	done <"$out/output"
	grep -q '^1\.\.' "$out/output" || bad 'the program has not ended'
	[ $status -le 1 ] || bad "tools/vm/run ended with $status: $(tail -n 30 "$out/vm")"
	judge "$program: the kernel reports nothing, and the system ends by itself"
	cat "$out/vm"
	# A disk that was lost in the middle of a boot says nothing about the next one.
	[ $status -lt 4 ] || bail "there is no boot after this one"
}

# Its commands are checks, which judge counts.
declare -ft boot

drop_copy()
{
	rm -f "$dir/disk"
}
at_exit drop_copy

copy_sources
[ -e "$dir/.complete" ] && [ "$(cat "$dir/key" 2>/dev/null)" = "$key" ] || prepare
[ "${1-}" != --prepare ] || skip_all 'only the disk was to be made'
note "$(cat "$dir/figures")"
must 'the disk cannot be copied' cp --sparse=always "$dir/fresh" "$dir/disk"
gpu=()
! "$top/tools/vm/gpu-probe" >/dev/null 2>&1 || gpu=(--gpu virtio)
boot first
boot second
boot readme "${gpu[@]}"
done_testing
