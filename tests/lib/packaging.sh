# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A system of Debian below build/, in which the packages are built, installed and removed: a
# chroot. To be sourced by a script that has set
#
#   suite	the release's name
#
# build/packaging keeps two things for later tests: SUITE.tar, a system with the packages'
# build dependencies and the release's kernel and headers, which tests unpack; and the packages
# of the current sources in debs-SUITE. Nothing is installed on this machine, and mounts go
# with a namespace of the test's own.
: "${suite:?}"

top=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=${BUILD:-$top/build}
if [ -z "${MGPU_OWN_MOUNTS-}" ] && [ "$(id -u)" -eq 0 ]; then
	MGPU_OWN_MOUNTS=yes exec unshare --mount --propagation private "$0" "$@"
fi
# shellcheck source=tests/lib/tap.sh
. "$top/tests/lib/tap.sh"
# shellcheck source=tools/setup/private-apt
. "$top/tools/setup/private-apt"

store=$BUILD/packaging
base=$store/$suite.tar
# The test's own: several tests may run at a time, and runs of one test take turns.
root=$store/$(basename "$0" .sh)
sources=$root-source
built=$store/debs-$suite
version=$(cat "$top/VERSION")
# A version before: only the number differs.
older=0.0.9

[ "$(id -u)" -eq 0 ] || skip_all 'root makes chroots, and this is another user'
needs mmdebstrap
main=$(source_line 'bookworm|stable' "$suite")
[ -n "$main" ] || skip_all 'apt has no source of Debian 12'

# Take, until the test ends, the system and all that the test keeps beside it, such as a disk. A
# second run of the same test waits. What the test starts has the lock, too: an emulator that
# outlives it keeps its disk.
own_system()
{
	mkdir -p "$store"
	exec {system_lock}>"$root.lock"
	flock -n "$system_lock" || {
		note "another run of this test has $root: waiting for its end"
		flock "$system_lock"
	}
}
own_system

in_root()	# COMMAND...
{
	chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 INITRD=No \
		DEBIAN_FRONTEND=noninteractive TERM=dumb "$@"
}

apt()		# ARGUMENT...
{
	in_root apt-get -q -y --no-install-recommends -o APT::Sandbox::User=root "$@"
}

# Print only what apt says when it fails.
quiet_apt()	# ARGUMENT...
{
	apt "$@" >"$tmp/apt" 2>&1 || tail -n 30 "$tmp/apt"
}

# Run a command, and write to $tmp/took how long it took.
timed()		# COMMAND...
{
	local TIMEFORMAT='%R s, %U s + %S s of CPU' err rc

	exec {err}>&2
	{ time "$@" 2>&"$err"; } 2>"$tmp/took"
	rc=$?
	exec {err}>&-
	return $rc
}

# ---- the system

# Unpack a minimal system.
bootstrap()
{
	local security

	security=$(source_line bookworm-security "$suite-security")
	rm -rf --one-file-system "$root"
	mmdebstrap --quiet --mode=root --variant=apt --include=build-essential,fakeroot,lintian \
		--aptopt='Acquire::Languages "none"' --aptopt='APT::Sandbox::User "root"' \
		--dpkgopt=force-unsafe-io \
		"$suite" "$root" "$main" ${security:+"$security"} \
		"$(source_line 'bookworm|stable' "$suite-backports")"
}

# Make of it the system that tests unpack. Its build dependencies are those of debian/control.
make_base()
{
	cp /etc/resolv.conf "$root/etc/"
	mkdir "$root/source"
	cp -a "$top/debian" "$root/source/"
	apt update || return
	[ "$suite" != bookworm ] || apt install "libbpf-dev/$suite-backports" \
		"libbpf1/$suite-backports" || return
	apt build-dep /source || return
	# A chroot boots nothing: no initramfs.
	apt install initramfs-tools || return
	sed -i 's/^update_initramfs=.*/update_initramfs=no/' \
		"$root/etc/initramfs-tools/update-initramfs.conf" || return
	apt install linux-image-amd64 linux-headers-amd64 || return
	apt clean
	tar -C "$root" -cf "$base.new" . && mv "$base.new" "$base"
}

# Unpack the system, and make it first if that was not done before.
unpack_system()
{
	mkdir -p "$store"
	(
		flock 9
		[ ! -f "$base" ] || exit 0
		bootstrap || exit 3
		make_base
	) 9>"$store/.lock-$suite" >"$store/$suite.log" 2>&1
	case $? in
	0)	;;
	3)	note "$(tail -n 5 "$store/$suite.log")"
		skip_all 'no chroot can be made: the packages cannot be had' ;;
	*)	note "$(tail -n 20 "$store/$suite.log")"
		bail 'build dependencies and kernel cannot be installed' ;;
	esac
	rm -rf --one-file-system "$root"
	mkdir -p "$root"
	must 'the system cannot be unpacked' tar -C "$root" -xf "$base"
	must 'no /proc' mount -t proc proc "$root/proc"
	must 'no /run' mount -t tmpfs tmpfs "$root/run"
	cp /etc/resolv.conf "$root/etc/"
	must 'no lists of packages' apt update
}

remove_system()
{
	umount "$root/proc" "$root/run" 2>/dev/null
	rm -rf --one-file-system "$root" "$sources"
}
at_exit remove_system

# Kernels of the system, one a line: those with headers.
kernels()
{
	find "$root/lib/modules/" -mindepth 2 -maxdepth 2 -name build -printf '%h\n' | sed 's,.*/,,'
}

# ---- the packages

# Build the packages in the system by the README's commands. In the folder of the result is what
# a failure printed, too.
build_version()		# DIR
{
	local tree=$root/build

	mkdir -p "$tree" "$1"
	cp -a "$sources/source" "$tree/"
	apt build-dep /build/source >"$1/build-dep.log" 2>&1
	in_root make -C /build/source deb DEPS=no JOBS="${JOBS:-$(nproc)}" >"$1/make.log" 2>&1
	find "$tree/source/build/deb" -maxdepth 1 -type f -exec cp -t "$1" {} +
}

# The older version is the same but for its number: it takes the objects that were built.
build_older()		# DIR
{
	local tree=$root/build/older

	mkdir -p "$tree" "$1"
	cp -a "$root/build/source/build/deb/source" "$tree/"
	sed -i "1s/(.*)/($older)/" "$tree/source/debian/changelog"
	echo "$older" >"$tree/source/VERSION"
	in_root sh -c 'cd /build/older/source && dh_clean && dpkg-buildpackage -us -uc -b -nc' \
		>"$1/build.log" 2>&1
	find "$tree" -maxdepth 1 -type f -exec cp -t "$1" {} +
}

# Copy the sources to $sources, and set key, which is another for other sources of the packages.
# Documentation that the packages have besides man pages is no matter for a test.
copy_sources()
{
	"$top/tools/packaging/deb" --source "$sources" >"$tmp/out" 2>&1 || bail "$(cat "$tmp/out")"
	key=$(cd "$sources/source" && find . -path ./tests -prune -o -path ./tools/vm -prune -o \
		-path './Documentation/*.rst' -o -path './Documentation/*.png' -o -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1)
}

# Make the packages of both versions in $built, unless they are there from the same sources.
build_packages()
{
	exec {debs_lock}>"$store/.lock-debs-$suite"
	flock "$debs_lock"
	[ "$(cat "$built/key" 2>/dev/null)" = "$key" ] || {
		rm -rf "$built"
		build_version "$built/$version"
		build_older "$built/$older"
		rm -rf --one-file-system "$root/build"
		[ ! -e "$built/$version/mgpu-dkms_${version}_amd64.deb" ] ||
			[ ! -e "$built/$older/mgpu-dkms_${older}_amd64.deb" ] || echo "$key" >"$built/key"
	} >"$tmp/out" 2>&1
	exec {debs_lock}>&-
	mkdir -p "$root/debs"
	cp -a "$built"/* "$root/debs/"
}

# Print the paths, in the system, of the packages of a version.
packages()		# VERSION [NAME]...
{
	local of=$1 name
	shift

	if [ $# -gt 0 ]; then
		for name; do
			echo "./debs/$of/${name}_${of}_amd64.deb"
		done
	else
		(cd "$root" && find "./debs/$of" -name '*.deb' ! -name '*dbgsym*')
	fi
}

install_packages()	# VERSION [NAME]...
{
	local files

	mapfile -t files < <(packages "$@")
	[ ${#files[@]} -gt 0 ] || echo "version $1 has no packages"
	quiet_apt install "${files[@]}"
}

# DKMS 3.0 warns of headers whose vmlinux has BTF only.
dkms_status()		# OPTION...
{
	in_root dkms status "$@" 2>/dev/null
}

# All modules are in force for the kernel, from this version, and DKMS knows it.
installed_for()		# KERNEL VERSION
{
	local m

	dkms_status -m mgpu -k "$1" | grep -q "^mgpu/$2, $1, x86_64: installed" ||
		echo "$1: dkms status prints '$(dkms_status)'"
	for m in mgpu mgpu_soft mgpu_user mgpu_virtio; do
		in_root modinfo -k "$1" -F filename "$m" | grep -q /updates/dkms/ || echo "$1: no $m"
	done
}
