#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# check.sh: in a minimal root, installs /root/*.deb, upgrades, removes and purges them. Tests that
# installation and upgrade do not touch the services, that removal stops them, and that a purge
# leaves nothing behind.
#
# systemd does not run here. A script that takes the place of systemctl records how it is called.
set -eu

packages="scx-scheds scx-tools"
calls=/root/systemctl-calls

step() {
	echo "package: $*"
}

fail() {
	echo "package: failed: $*"
	exit 1
}

install_dependencies() {
	step installing what the packages depend on
	export DEBIAN_FRONTEND=noninteractive
	apt-get update --quiet=2
	for deb in /root/*.deb; do
		apt-get satisfy --yes --quiet=2 --no-install-recommends "$(dpkg-deb -f "$deb" Depends)"
	done
	apt-get install --yes --quiet=2 --no-install-recommends polkitd systemd
}

# Makes systemd appear to run, so that the packages' maintainer scripts call systemctl, and records
# these calls. Only calls with --root are executed, because they do not need a running systemd.
record_systemctl() {
	mkdir -p /run/systemd/system
	printf '#!/bin/sh\nexit 0\n' >/usr/sbin/policy-rc.d
	cat >/usr/local/sbin/systemctl <<-END
		#!/bin/sh
		echo "\$*" >>$calls
		case "\$1" in
		--root=*) exec /usr/bin/systemctl "\$@" ;;
		esac
	END
	chmod 755 /usr/local/sbin/systemctl
}

# Lists all files, except virtual and temporary files, caches, logs, and the records of dpkg, apt
# and this script.
files() {
	find / \( -path /proc -o -path /sys -o -path /dev -o -path /root -o -path /tmp \
		-o -path /run/systemd -o -path /var/lib/dpkg -o -path /var/lib/apt \
		-o -path /var/cache -o -path /var/log \) -prune -o -print | sort
}

check_programs() {
	step checking the programs
	for package in $packages; do
		for program in $(dpkg -L "$package" | grep '^/usr/bin/.'); do
			"$program" --version >/root/version 2>&1 || fail "$program --version"
			grep -q "${program##*/}" /root/version || fail "$program --version prints $(cat /root/version)"
		done
	done
	scxctl --version
}

check_units() {
	step checking the units
	for unit in scx.service scx_loader.service; do
		systemctl --root=/ preset "$unit"
		[ "$(systemctl --root=/ is-enabled "$unit")" = disabled ] || fail "$unit is enabled"
		systemd-analyze verify --man=no "$unit" 2>/root/verify || fail "$(cat /root/verify)"
	done
	! grep -E '(^| )(start|restart|try-restart|enable|stop) ' "$calls" || fail "a service was touched"
}

# Creates packages with the same contents and a higher version.
higher_versions() {
	mkdir /root/higher
	for deb in /root/*.deb; do
		dpkg-deb -R "$deb" /root/unpacked
		sed -i 's/^Version: .*/&+higher/; s/(= \(.*\))/(= \1+higher)/' /root/unpacked/DEBIAN/control
		dpkg-deb -Zgzip -z1 -b /root/unpacked "/root/higher/${deb##*/}" >/dev/null
		rm -r /root/unpacked
	done
}

check_upgrade() {
	step checking the upgrade
	echo 'SCX_SCHEDULER=scx_flash' >>/etc/default/scx
	higher_versions
	: >"$calls"
	dpkg -i /root/higher/*.deb </dev/null
	grep -q scx_flash /etc/default/scx || fail "/etc/default/scx was replaced"
	! grep -E '(^| )(start|restart|try-restart|enable|stop) ' "$calls" ||
		fail "the upgrade touches a service"
	grep -q daemon-reload "$calls" || fail "the upgrade does not reload the units"
}

check_removal() {
	step checking removal and purge
	mkdir -p /run/scx/root
	touch /run/scx/note
	: >"$calls"
	# shellcheck disable=SC2086 # two words
	dpkg --remove $packages
	for unit in scx.service scx_loader.service; do
		grep -qE "(^| )stop .*$unit" "$calls" || fail "removal does not stop $unit"
	done
	[ -e /etc/default/scx ] || fail "removal deletes /etc/default/scx"
	# shellcheck disable=SC2086 # two words
	dpkg --purge $packages
	files >/root/after
	diff /root/before /root/after || fail "files differ after purge"
	! dpkg-query --show 'scx*' 2>/dev/null || fail "dpkg has a record of the packages"
}

install_dependencies
record_systemctl
files >/root/before
step installing
dpkg -i /root/*.deb </dev/null
check_programs
check_units
check_upgrade
check_removal
step checked
