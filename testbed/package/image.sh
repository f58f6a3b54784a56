#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# image.sh: in a minimal root, installs systemd, D-Bus, polkit and /root/*.deb, and makes an
# initramfs of the root: /root/out/image.cpio.zst. The system runs session.sh when it has booted.
set -eu

step() {
	echo "package: $*"
}

install_all() {
	step installing a system with the packages
	export DEBIAN_FRONTEND=noninteractive
	apt-get update --quiet=2
	apt-get install --yes --quiet=2 --no-install-recommends \
		systemd-sysv dbus polkitd cpio zstd
	apt-get install --yes --quiet=2 --no-install-recommends /root/*.deb
}

# Adds a service that runs session.sh when the system is up. Its output goes to the console.
run_session() {
	cp /root/session.sh /usr/local/sbin/scx-session
	cat >/etc/systemd/system/scx-session.service <<-END
		[Unit]
		Description=Checks of the installed packages
		After=multi-user.target dbus.service

		[Service]
		Type=oneshot
		ExecStart=/usr/local/sbin/scx-session
		StandardOutput=tty
		StandardError=inherit
		TTYPath=/dev/ttyS0
		TimeoutStartSec=infinity
	END
	mkdir -p /etc/systemd/system/multi-user.target.wants
	ln -s ../scx-session.service /etc/systemd/system/multi-user.target.wants/
	systemctl set-default --quiet multi-user.target
	# Nobody logs in, so no getty is needed.
	systemctl mask --quiet getty.target serial-getty@ttyS0.service
}

pack() {
	step packing the system
	mkdir -p /root/out
	cd /
	find . \( -path ./proc -o -path ./sys -o -path ./dev -o -path ./run -o -path ./tmp \
		-o -path ./root -o -path ./var/cache/apt -o -path ./var/lib/apt/lists \
		-o -path ./usr/share/doc -o -path ./usr/share/locale -o -path ./usr/share/man \) \
		-prune -print -o -print | cpio --quiet --create --format=newc |
		zstd --quiet -3 -T0 -o /root/out/image.cpio.zst
}

install_all
run_session
pack
step packed
