#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Sourced by ./dev: finds out which packages are missing, lists them and installs them.
#
# The machine is checked on each call, so there is no state that could become outdated. If nothing
# is missing, nothing is done.

# Minimum versions of Rust, for the crates of Cargo.lock, and of clang, for BPF programs.
RUST_MIN=1.89
CLANG_MIN=16
# Versions in the names of Debian's packages. The first is the version that is tested.
CLANG_VERSIONS=(19 20 21 22 18 17 16)
CLANG_FORMAT_VERSIONS=(19 20 21 22)
BPFTOOL_MIN=7.4
RUFF_REQUIREMENT=ruff==0.17.5
# Tests decode the traces of scxtop with the protobuf messages that Perfetto publishes.
PERFETTO_REQUIREMENTS=(perfetto==0.59.1 protobuf==7.36.2)

ASSUME_YES=${CI:-false}
MISSING=()
# Whether this call of ./dev has installed packages.
# shellcheck disable=SC2034 # ./dev reads it
INSTALLED=false

has() {
	command -v "$1" >/dev/null
}

# at_least WANTED FOUND
at_least() {
	[[ $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$1" ]]
}

# need COMMAND PACKAGE
need() {
	has "$1" || MISSING+=("$2")
}

# need_file FILE-BELOW-/usr/include PACKAGE
need_file() {
	[[ -e /usr/include/$1 ]] || MISSING+=("$2")
}

# Version of the installable package; empty if there is none.
candidate() {
	apt-cache policy "$1" 2>/dev/null | sed -n '/(none)/d; s/^ *Candidate: //p'
}

available() {
	[[ $(candidate "$1") ]]
}

clang_path() {
	local name version
	for name in clang "${CLANG_VERSIONS[@]/#/clang-}"; do
		has "$name" || continue
		version=$("$name" -dumpversion)
		if at_least "$CLANG_MIN" "$version"; then
			command -v "$name"
			return
		fi
	done
	return 1
}

rust_is_new_enough() {
	has cargo && has rustc && at_least "$RUST_MIN" "$(rustc --version | cut -d ' ' -f 2)"
}

need_clang() {
	local version
	clang_path >/dev/null && return
	for version in "${CLANG_VERSIONS[@]}"; do
		if available "clang-$version"; then
			MISSING+=("clang-$version")
			return
		fi
	done
	MISSING+=("clang")
}

# Debian's package rustc is old. Its packages rustc-web and cargo-web are newer.
need_rust() {
	rust_is_new_enough && return
	if available rustc-web; then
		MISSING+=(rustc-web cargo-web)
	else
		MISSING+=(rustc cargo)
	fi
}

need_rust_linters() {
	if ! has cargo-clippy; then
		if available rust-web-clippy; then MISSING+=(rust-web-clippy); else MISSING+=(rust-clippy); fi
	fi
	if ! has rustfmt; then
		if available rustfmt-web; then MISSING+=(rustfmt-web); else MISSING+=(rustfmt); fi
	fi
}

need_clang_format() {
	local version
	for version in "${CLANG_FORMAT_VERSIONS[@]}"; do
		has "clang-format-$version" && return
	done
	if has clang-format && at_least "${CLANG_FORMAT_VERSIONS[0]}" \
		"$(clang-format --version | grep -o '[0-9]*' | head -n 1)"; then
		return
	fi
	MISSING+=("clang-format-${CLANG_FORMAT_VERSIONS[0]}")
}

# A package that is too old is not installed, because bpftool_path fetches a newer package.
need_bpftool() {
	local version
	PATH=$PATH:/usr/sbin has bpftool && return
	version=$(candidate bpftool)
	[[ -z $version ]] || ! at_least "$BPFTOOL_MIN" "$version" || MISSING+=(bpftool)
}

# The cross-compilation test of C programs needs this compiler, and is skipped without it.
need_aarch64_compiler() {
	has aarch64-linux-gnu-gcc || ! available gcc-aarch64-linux-gnu ||
		MISSING+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
}

# need_if_available COMMAND PACKAGE: like need, but a package that apt does not know is left out.
# Tests that need the command are then skipped.
need_if_available() {
	has "$1" || ! available "$2" || MISSING+=("$2")
}

# These programs, and the configuration of the system bus, are copied into guests.
# tests/vm/system_bus.py uses the same paths.
need_system_bus() {
	need_if_available dbus-daemon dbus-daemon
	need_if_available busctl systemd
	need_if_available gdbus libglib2.0-bin
	[[ -e /usr/share/dbus-1/system.conf ]] || ! available dbus-system-bus-common ||
		MISSING+=(dbus-system-bus-common)
	[[ -x /usr/lib/polkit-1/polkitd || -x /usr/libexec/polkitd ]] || ! available polkitd ||
		MISSING+=(polkitd)
}

needs_of_build() {
	need python3 python3
	need meson meson
	need ninja ninja-build
	need gcc gcc
	need make make
	need pkg-config pkg-config
	need_file stdio.h libc6-dev
	need_file libelf.h libelf-dev
	need_file zlib.h zlib1g-dev
	need_file json-c/json.h libjson-c-dev
	need_clang
	need_rust
	need_bpftool
}

needs_of_vm() {
	need python3 python3
	need qemu-system-x86_64 qemu-system-x86
	need zstd zstd
	# Needed to compile the agent of guests if there is no build.
	need cc gcc
	need_file stdio.h libc6-dev
	[[ -x /bin/busybox ]] && /bin/busybox true 2>/dev/null || MISSING+=(busybox-static)
}

# Needed to build a kernel. perl-base and the compiler's binutils are always installed.
needs_of_kernel() {
	need python3 python3
	need gcc gcc
	need make make
	need flex flex
	need bison bison
	need m4 m4
	need bc bc
	need xz xz-utils
	need_file stdio.h libc6-dev
	need_file libelf.h libelf-dev
	need_file zlib.h zlib1g-dev
	if ! has pahole; then
		if available pahole; then MISSING+=(pahole); else MISSING+=(dwarves); fi
	fi
}

needs_of_test() {
	need cpio cpio
	need xz xz-utils
	need groff groff-base
	need_file cmocka.h libcmocka-dev
	need_aarch64_compiler
	need_system_bus
	/usr/bin/python3 -c 'import pytest' 2>/dev/null || MISSING+=(python3-pytest)
	# pytest-timeout makes a test that hangs fail: see pyproject.toml.
	/usr/bin/python3 -c 'import pytest_timeout' 2>/dev/null ||
		MISSING+=(python3-pytest-timeout)
	# No stable distribution has a package of perfetto: install_perfetto installs it from PyPI
	# below the cache.
	[[ $SCX_OFFLINE == 1 ]] || has_perfetto || need_venv
	# Tests parse the output of scxstats with this module, the Python client of Prometheus.
	/usr/bin/python3 -c 'import prometheus_client' 2>/dev/null ||
		MISSING+=(python3-prometheus-client)
}

needs_of_lint() {
	need shellcheck shellcheck
	need_clang_format
	need_rust_linters
	# No stable distribution has a package of ruff: install_ruff installs it from PyPI below
	# the cache.
	ruff_path >/dev/null || need_venv
}

need_venv() {
	/usr/bin/python3 -c 'import venv, ensurepip' 2>/dev/null || MISSING+=(python3-venv)
}

# Needed to create root file systems. Users other than root need newuidmap, and a range of
# subordinate user ids, which is not checked here.
needs_of_fresh() {
	need python3 python3
	need mmdebstrap mmdebstrap
	[[ $EUID == 0 ]] || need newuidmap uidmap
	[[ -e /usr/share/distro-info/ubuntu.csv ]] || MISSING+=(distro-info-data)
}

# Needed to run tests in parallel.
needs_of_seeds() {
	/usr/bin/python3 -c 'import xdist' 2>/dev/null || MISSING+=(python3-pytest-xdist)
}

# The missing packages in one line, each once.
missing() {
	printf '%s\n' "${MISSING[@]}" | sort -u | paste -sd ' '
}

confirm() {
	local answer
	echo "These packages are missing: $(missing)" >&2
	[[ $ASSUME_YES != true ]] || return 0
	[[ -t 0 ]] || die "standard input is not a terminal: add --yes to install them"
	read -r -p "Install them? [Y/n] " answer
	[[ -z $answer || $answer == [yY]* ]] || die "nothing was installed"
}

as_root() {
	if [[ $EUID == 0 ]]; then
		"$@"
	elif has sudo; then
		sudo "$@"
	else
		die "run this as root: $*"
	fi
}

install_packages() {
	echo "Installing them" >&2
	# Discard standard output, many lines for each package. Errors go to standard error.
	# shellcheck disable=SC2046 # one word each
	as_root env DEBIAN_FRONTEND=noninteractive DEBCONF_NOWARNINGS=yes \
		apt-get install --yes --quiet=2 --no-install-recommends -o Dpkg::Use-Pty=0 \
		$(missing) >/dev/null
	# shellcheck disable=SC2034 # ./dev reads it
	INSTALLED=true
}

find_missing() {
	local group
	MISSING=()
	for group in "$@"; do
		"needs_of_$group"
	done
}

# confirm_and_install GROUP…: asks before anything is done. Asks again if the update of the package
# lists changes which packages are missing: need_rust and other functions choose from the available
# packages, and a fresh machine has no package lists.
confirm_and_install() {
	local confirmed
	confirmed=$(missing)
	has apt-get || die "install the equivalents of these Debian packages: $confirmed"
	[[ $SCX_OFFLINE != 1 ]] || die "these packages are missing: $confirmed"
	confirm
	echo "Updating the package lists" >&2
	as_root apt-get update --quiet=2 >/dev/null
	find_missing "$@"
	((${#MISSING[@]})) || return 0
	[[ $(missing) == "$confirmed" ]] || confirm
	install_packages
}

# setup_for GROUP…: installs missing packages. Groups: build, vm, kernel, test, lint, fresh, seeds.
setup_for() {
	find_missing "$@"
	((${#MISSING[@]} == 0)) || confirm_and_install "$@"
	[[ " $* " != *" build "* ]] || rust_is_new_enough ||
		die "Rust $RUST_MIN or newer is needed, and not packaged here: install it with rustup"
	[[ " $* " != *" lint "* ]] || ruff_path >/dev/null || install_ruff
	[[ " $* " != *" test "* ]] || has_perfetto || install_perfetto
}

ruff_path() {
	command -v ruff || PATH=$SCX_CACHE/venv/bin command -v ruff
}

# Without ruff, its checks are reported as skipped.
install_ruff() {
	install_from_pypi "$RUFF_REQUIREMENT" || echo "dev: no ruff: its checks will be skipped" >&2
}

has_perfetto() {
	[[ -x $SCX_CACHE/venv/bin/python3 ]] &&
		"$SCX_CACHE/venv/bin/python3" -c 'import perfetto, google.protobuf' 2>/dev/null
}

# Without perfetto, the tests of traces are reported as skipped.
install_perfetto() {
	install_from_pypi "${PERFETTO_REQUIREMENTS[@]}" ||
		echo "dev: no perfetto: the tests of traces will be skipped" >&2
}

# install_from_pypi REQUIREMENT…: installs below the cache.
install_from_pypi() {
	[[ $SCX_OFFLINE != 1 ]] || return
	echo "Installing $* below $SCX_CACHE" >&2
	/usr/bin/python3 -m venv "$SCX_CACHE/venv" &&
		"$SCX_CACHE/venv/bin/pip" install --quiet --disable-pip-version-check "$@" >&2
}

bpftool_serves() {
	[[ -x $1 ]] && python3 "$ROOT/build-aux/bpftool_probe.py" \
		--clang "$(clang_path)" --bpftool "$1" 2>/dev/null
}

# Path of a bpftool that generates complete skeletons: the machine's own, or that of the
# distribution's backports, unpacked below the cache.
bpftool_path() {
	local own dir codename
	own=$(PATH=$PATH:/usr/sbin command -v bpftool || true)
	if bpftool_serves "$own"; then
		echo "$own"
		return
	fi
	# shellcheck source=/dev/null
	codename=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
	dir=$(python3 -m debs fetch "$codename-backports" bpftool) ||
		die "no usable bpftool: install $BPFTOOL_MIN or newer"
	echo "$dir/usr/sbin/bpftool"
}

# choose_kernels all|default|LIST [MESON-TEST-ARGUMENT…]: the kernels of kernels.txt to
# test, one per line.
choose_kernels() {
	python3 -m vm.choice "$TESTED_KERNELS" "$@"
}

# setup_for_kernels VERSION…: installs the dependencies of a kernel build if one of these kernels
# has to be built. Offline, none can be built.
setup_for_kernels() {
	[[ $SCX_OFFLINE == 1 ]] || ! python3 -m vm.kernel_build "$@" || setup_for kernel
}

# obtain_kernels VERSION…: fetch or build the kernels of the VM tests. Tests of a kernel that
# cannot be obtained are later reported as skipped.
obtain_kernels() {
	local version
	setup_for_kernels "$@"
	for version in "$@"; do
		python3 -m vm kernel "$version" >/dev/null || {
			# The user has interrupted the build or download: stop here, without tests.
			[[ $? != 130 ]] || exit 130
			echo "dev: no kernel $version: its tests will be skipped" >&2
		}
	done
}
