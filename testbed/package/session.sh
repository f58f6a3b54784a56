#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# session.sh: tests the packages in a booted system: the commands of a user, the D-Bus interface,
# a crash of the loader, and suspend. The kernel parameter scx.session selects the tests: `first`
# without a default scheduler, `default` with a default scheduler, `off` with a default scheduler
# and scx=off. At the end, the machine is powered off.
# shellcheck disable=SC2317 # functions that are called by their names
set -u

STATE=/sys/kernel/sched_ext/state
OPS=/sys/kernel/sched_ext/root/ops
LOADER="org.scx.Loader /org/scx/Loader org.scx.Loader"
AUTO=0

say() {
	echo "package: $*"
}

end() {
	# Wait until the console has printed everything.
	sleep 1
	systemctl --force --force poweroff
	exit
}

fail() {
	say "failed: $*"
	SYSTEMD_COLORS=0 SYSTEMD_URLIFY=0 systemctl --no-pager --full status scx_loader.service
	end
}

# show COMMAND…: runs the command, which must not fail. Its output goes into the log.
show() {
	echo "\$ $*"
	"$@" || fail "$*: exit status $?"
}

# refused TEXT COMMAND…: runs the command, which must fail with a message that contains TEXT.
refused() {
	text=$1
	shift
	echo "\$ $*"
	! output=$("$@" 2>&1) || fail "$*: no error"
	echo "$output"
	case $output in
	*"$text"*) ;;
	*) fail "$*: $output" ;;
	esac
}

# until_true WHAT COMMAND…: waits until the command succeeds. After 60 attempts, one per second of
# the guest's time, the test fails.
until_true() {
	what=$1
	shift
	for _ in $(seq 60); do
		! "$@" || return 0
		sleep 1
	done
	fail "no $what"
}

runs() {
	[ "$(cat "$OPS" 2>/dev/null)" = "$1" ]
}

none_runs() {
	[ "$(cat "$STATE")" = disabled ]
}

is() {
	[ "$(systemctl "$1" "$2")" = "$3" ] || fail "$2 is not $3"
}

loader_pid() {
	systemctl show --property MainPID --value scx_loader.service
}

loader_has_another_pid() {
	pid=$(loader_pid)
	[ "$pid" != 0 ] && [ "$pid" != "$old_pid" ] && scxctl status >/dev/null
}

# The commands that README.md tells a new user to run.
readme() {
	say the commands of the README
	for unit in scx.service scx_loader.service; do
		is is-enabled $unit disabled
		is is-active $unit inactive
	done
	none_runs || fail "a scheduler runs"
	show scxctl check
	show scxctl recommend
	show scxctl start bpfland
	runs bpfland || fail "the kernel says '$(cat $OPS)'"
	show scxctl status
	show scxctl list
	show scxctl modes bpfland
	show scxctl switch --mode gaming
	show scxstats
	show scxctl stop
	none_runs || fail "a scheduler runs"
}

# shellcheck disable=SC2086 # three words
call() {
	busctl call -- $LOADER "$@"
}

# shellcheck disable=SC2086 # three words
property() {
	busctl get-property $LOADER "$1"
}

# The methods and properties that existing clients of scx_loader use.
calls() {
	say the calls of clients
	show call StartScheduler su scx_simple $AUTO
	runs simple || fail "StartScheduler"
	show call SwitchScheduler su scx_flash 1
	runs flash || fail "SwitchScheduler"
	show call SwitchSchedulerWithArgs sas scx_rusty 2 --slice-us-underutil 10000
	runs rusty || fail "SwitchSchedulerWithArgs"
	show call RestartScheduler
	runs rusty || fail "RestartScheduler"
	show call StopScheduler
	none_runs || fail "StopScheduler"
	show call StartSchedulerWithArgs sas scx_simple 1 -f
	runs simple || fail "StartSchedulerWithArgs"
	refused "default" call RestoreDefault
	for name in CurrentScheduler SchedulerMode SupportedSchedulers CurrentSchedulerArgs \
		DefaultScheduler DefaultMode; do
		show property $name
	done
	show busctl --no-pager introspect org.scx.Loader /org/scx/Loader
	refused "" runuser -u nobody -- scxctl stop
	runs simple || fail "an unprivileged user stopped the scheduler"
}

# If the loader is killed, its scheduler ends, and systemd restarts the loader.
crash() {
	say kill -9 of the loader
	old_pid=$(loader_pid)
	show kill -9 "$old_pid"
	until_true "new loader" loader_has_another_pid
	until_true "end of the old scheduler" none_runs
	show scxctl start --sched rustland
	runs rustland || fail "the kernel says '$(cat $OPS)'"
	show systemctl stop scx_loader.service
	until_true "end of the scheduler" none_runs
	# Any request activates the loader.
	show scxctl get
	is is-active scx_loader.service active
}

has_resumed() {
	[ "$(cat /sys/power/suspend_stats/success)" = 1 ]
}

# Suspend takes all CPUs but one offline, which ends the loaded scheduler. Its process loads it
# again on resume.
suspend_to_ram() {
	say suspend to RAM
	show scxctl start --sched flash
	echo +5 >/sys/class/rtc/rtc0/wakealarm
	show systemctl suspend
	until_true "resume" has_resumed
	until_true "scheduler after resume" runs flash
	until_true "reply of the loader" scxctl status
	show scxctl stop
}

# scx.service runs a scheduler without the loader.
service() {
	say scx.service
	show systemctl start scx.service
	until_true "scheduler of /etc/default/scx" runs rustland
	show systemctl stop scx.service
	until_true "end of the scheduler" none_runs
}

# The README's commands for a default scheduler.
configure_default() {
	say a default scheduler
	config=/etc/scx_loader/config.toml
	show install -D -m 644 /usr/share/scx_loader/config.toml $config
	show sed -i 's/^#default_sched = .*/default_sched = "scx_bpfland"/' $config
	show systemctl enable scx_loader.service
	show scxctl reload
	show scxctl restore
	runs bpfland || fail "restore"
}

case $(cat /proc/cmdline) in
*scx.session=first*)
	readme
	calls
	crash
	suspend_to_ram
	service
	configure_default
	;;
*scx.session=default*)
	say the default scheduler, at boot
	until_true "scheduler at boot" runs flash
	show scxctl status
	show scxctl switch --sched rusty
	show scxctl restore
	runs flash || fail "restore"
	;;
*scx.session=off*)
	say scx=off
	until_true "loader" systemctl --quiet is-active scx_loader.service
	sleep 5
	none_runs || fail "a scheduler runs"
	;;
esac
say "done"
end
