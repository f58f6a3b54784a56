# SPDX-License-Identifier: GPL-2.0-only
"""A guest whose CPUs look as if they differed in speed: a changed copy of the kernel's directory of
CPUs is mounted over the original. This affects only programs that read the directory, not the
kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vm.guest import Guest

CPUS = "/sys/devices/system/cpu"
COPY = "/tmp/cpus"

#: Makes the copy, and mounts it. Files that cannot be read are missing from the copy.
MAKE = f"""
mkdir -p {COPY}
mount -t tmpfs none {COPY}
cp -a {CPUS}/. {COPY}/ 2>/dev/null
for cpu in {COPY}/cpu[0-9]*; do echo 1024 >$cpu/cpu_capacity; done
for cpu in LITTLE; do echo 512 >{COPY}/cpu$cpu/cpu_capacity; done
mkdir -p {COPY}/cpufreq/policy0
echo balance_performance >{COPY}/cpufreq/policy0/energy_performance_preference
mount --bind {COPY} {CPUS}
"""


@contextmanager
def make_hybrid(guest: Guest, little: tuple[int, ...]) -> Iterator[None]:
    """Within the block, the CPUs `little` have half of the capacity of the other CPUs. The power
    profile is balance_performance at first."""
    guest.run(MAKE.replace("LITTLE", " ".join(map(str, little)))).check()
    try:
        yield
    finally:
        guest.run(f"umount {CPUS}; umount {COPY}").check()


def set_profile(guest: Guest, preference: str) -> None:
    """Sets the power profile: power, balance_power, balance_performance or performance."""
    file = f"{CPUS}/cpufreq/policy0/energy_performance_preference"
    guest.run(f"echo {preference} >{file}").check()


def busy_cpus(guest: Guest) -> set[int]:
    """The CPUs that are idle for less than a quarter of the next second."""

    show = "grep '^cpu[0-9]' /proc/stat"
    text = guest.run(f"{show}; sleep 1; {show}", is_urgent=True).check().stdout
    idle = [int(line.split()[4]) for line in text.splitlines()]
    nr_cpus = len(idle) // 2
    return {cpu for cpu in range(nr_cpus) if idle[nr_cpus + cpu] - idle[cpu] < 25}
