#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# build.sh DIR VERSION [again]: builds the packages from DIR/scx_VERSION.orig.tar.xz, in a minimal
# root or on this machine. The build itself uses no network. The results are in DIR/out. With
# `again`, it also tests that a second build in the same directory gives the same bytes.
#
# DIR/changelog replaces the changelog of packaging/debian. If DIR/preferences exists, apt uses it,
# and the build dependencies are installed.
set -eu

top=$1
version=$2

step() {
	echo "package: $*"
}

# unpack DIR: unpacks the tarball to DIR/source, and adds the files of packaging/debian.
unpack() {
	mkdir -p "$1"
	cp "$top/scx_$version.orig.tar.xz" "$1"
	mkdir "$1/source"
	tar -C "$1/source" --strip-components=1 -xf "$1/scx_$version.orig.tar.xz"
	cp -R "$1/source/packaging/debian" "$1/source/debian"
	cp "$top/changelog" "$1/source/debian/changelog"
}

# A minimal root lacks even the programs that unpack the tarball.
install_tools() {
	step installing the tools that build packages
	cp "$top/preferences" /etc/apt/preferences.d/scx
	apt-get update --quiet=2
	apt-get install --yes --quiet=2 --no-install-recommends build-essential lintian xz-utils
}

install_dependencies() {
	step installing the build dependencies
	apt-get build-dep --yes --quiet=2 --no-install-recommends "$1"
}

# build DIR BUILDPACKAGE-ARGUMENT…
build() {
	cd "$1/source"
	shift
	# Without privileges, the network cannot be disabled. The build still gets no crates from
	# it, because the tarball's configuration of cargo names only vendor/.
	if unshare --net true 2>/dev/null; then
		unshare --net dpkg-buildpackage --unsigned-source --unsigned-changes "$@"
	else
		dpkg-buildpackage --unsigned-source --unsigned-changes "$@"
	fi
}

check_with_lintian() {
	if ! command -v lintian >/dev/null; then
		step lintian is not installed: not run
		return
	fi
	step lintian
	# The maintainer's address is a placeholder, because each distribution enters its own.
	lintian --allow-root --fail-on error --suppress-tags bogus-mail-host "$1"/*.changes
}

# Builds again, with another time zone, locale and umask. The directory has to be the same, because
# its path is part of the names of symbols in Rust programs.
build_again() {
	step building again
	rm -r "$top/build"
	unpack "$top/build"
	(umask 077 && export TZ=Asia/Kathmandu LC_ALL=POSIX && build "$top/build" -b)
	step comparing
	cd "$top/out"
	sha256sum -- *.deb >"$top/sums"
	cd "$top/build"
	sha256sum --check "$top/sums"
}

export DEBIAN_FRONTEND=noninteractive
[ ! -e "$top/preferences" ] || install_tools
unpack "$top/build"
[ ! -e "$top/preferences" ] || install_dependencies "$top/build/source"
step building
build "$top/build"
mkdir "$top/out"
cd "$top/build"
find . -maxdepth 1 -type f -exec cp -p {} "$top/out" \;
check_with_lintian "$top/build"
[ "${3-}" != again ] || build_again
step built
