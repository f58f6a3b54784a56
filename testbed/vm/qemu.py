# SPDX-License-Identifier: GPL-2.0-only
"""QEMU: the machine of a guest, its command line, and its process."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from .kernels import Kernel
from .protocol import CONTROL_PORT, DATA_PORT, STREAM_PORT, TERMINAL_PORT
from .qmp import Monitor
from .topology import Topology

PROGRAM = "qemu-system-x86_64"
#: Size of a guest's inbox, through which the host gives files to the guest (see the module saved).
#: The inbox is the memory of a PCI device, so its size has to be a power of two. The tests'
#: programs with their libraries need less.
INBOX_BYTES = 128 << 20
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)

#: The emulated CPU, without features that are slow under emulation: fast string instructions (ERMS,
#: FSRM), because the emulator needs as long for each byte as for an instruction, and AVX, because
#: its registers are saved at each context switch.
_EMULATED_CPU = "max,-erms,-fsrm,-avx,-avx2,-fma,-f16c,-vaes,-vpclmulqdq"
#: Emulation is single-threaded. With one thread per virtual CPU, the kernel's patching of static
#: keys races, and guests die of "Oops: int3".
_TCG = ("-accel", "tcg,thread=single", "-cpu", _EMULATED_CPU)
_RTC = ("-rtc", "base=2026-01-01,clock=vm")
#: Time is the number of executed instructions (1 ns each). While all CPUs are idle, time passes as
#: on the host with sleep=on, and jumps to the next timer with sleep=off.
_ICOUNT = ("-icount", "shift=0,sleep=on", *_RTC)
_DETERMINISTIC = ("-icount", "shift=0,sleep=off", *_RTC)
#: Options of each accelerator.
ACCELERATORS = {
    "tcg": _TCG,
    "kvm": ("-accel", "kvm", "-cpu", "host"),
    # Guests with input from the host.
    "icount": (*_TCG, *_ICOUNT),
    # Guests without input while they run, which are therefore deterministic.
    "replay": (*_TCG, *_DETERMINISTIC),
}

#: Kernel parameters of every guest.
KERNEL_ARGS = (
    "console=ttyS0",
    # While the guest boots, print only warnings and errors. init enables all messages.
    "loglevel=5",
    # A panic or an oops ends QEMU (with -no-reboot), so that the host notices at once.
    "panic=-1",
    "oops=panic",
    # The TSC is exact under emulation. Without this, the kernel's clocksource watchdog might
    # replace the TSC by the slow HPET.
    "tsc=reliable",
    "random.trust_cpu=on",
    # Large enough for the debug dumps of a whole test run.
    "log_buf_len=1M",
    # Self-tests of the crypto code take half a second under emulation.
    "cryptomgr.notests",
)


class QemuError(Exception):
    """QEMU cannot be started, or a guest cannot be set up; the text is one line for the user."""


@dataclass(frozen=True)
class Emulator:
    """A QEMU of this machine: its command, with initial arguments."""

    command: tuple[str, ...] = (PROGRAM,)
    #: The libraries that `command` preloads.
    preloaded: tuple[Path, ...] = ()

    def about(self) -> str:
        """The version of QEMU and of its package. Raises QemuError if QEMU is not installed."""
        if shutil.which(self.command[0]) is None:
            raise QemuError(f"{PROGRAM} is missing: install the package qemu-system-x86")
        said = subprocess.run([*self.command, "--version"], capture_output=True, text=True)
        return said.stdout.partition("\n")[0]

    def version(self) -> str:
        """The version of QEMU, such as 7.2.22. Raises QemuError if QEMU is not installed."""
        match = re.search(r"version (\S+)", self.about())
        return match[1] if match else "unknown"


@dataclass(frozen=True)
class Machine:
    """Everything that defines a guest."""

    kernel: Kernel
    initramfs: Path
    topology: Topology
    accelerator: str
    console_log: Path
    #: Connect a terminal of the guest, /dev/hvc0, to the host.
    terminal: bool = False
    kernel_args: tuple[str, ...] = ()
    emulator: Emulator = field(default_factory=Emulator)
    #: Output files of the serial ports, except the first port, which is the console.
    serial_files: tuple[Path, ...] = ()
    #: Seed of the emulator's random numbers; None: random.
    seed: int | None = None
    #: Whether the guest has an inbox, so that it can be saved and resumed: see the module saved.
    has_inbox: bool = False

    @property
    def is_replayed(self) -> bool:
        """Whether the guest is deterministic, so that it has no ports to the host except serial
        ports."""
        return self.accelerator == "replay"


@dataclass
class Ports:
    """The host's ends of the guest's ports, all stream sockets."""

    control: socket.socket
    data: socket.socket
    stream: socket.socket
    terminal: socket.socket | None

    def close(self) -> None:
        """Close every port."""
        for port in (self.control, self.data, self.stream, self.terminal):
            if port is not None:
                port.close()


@dataclass
class Launched:
    """A QEMU process with the host's ends of its ports."""

    process: subprocess.Popen[bytes]
    #: None for a deterministic machine.
    ports: Ports | None
    #: QEMU's monitor, and the file descriptor of the shared memory that is the guest's inbox. Both
    #: are None for a machine without an inbox.
    monitor: Monitor | None
    inbox: int | None
    is_closed: bool = False

    def close(self) -> str:
        """Kill QEMU and release all resources. Returns the last line of QEMU's standard error; ""
        if there is none, or after an earlier call."""
        if self.is_closed:
            return ""
        self.is_closed = True
        self.process.kill()
        _, complaint = self.process.communicate()
        if self.ports:
            self.ports.close()
        if self.monitor:
            self.monitor.close()
        if self.inbox is not None:
            os.close(self.inbox)
        return "".join(complaint.decode(errors="replace").strip().splitlines()[-1:])


def available() -> bool:
    """Whether QEMU is installed."""
    return shutil.which(PROGRAM) is not None


def _has_host_time(machine: Machine) -> bool:
    return machine.accelerator not in ("icount", "replay")


def _hpet(machine: Machine) -> str:
    """Whether the guest has an HPET. On a busy host, the kernel may fail to calibrate the TSC with
    the PIT, as 6.12 did in 4 of 8 boots, but not with an HPET. If instructions count as time, the
    PIT is reliable."""
    return "on" if _has_host_time(machine) else "off"


def _timer_args(machine: Machine) -> list[str]:
    """Kernel parameters that disable the boot-time check of the timer interrupt. If the host does
    not run the guest during the check, the check fails, and the kernel panics: "IO-APIC + timer
    doesn't work!"."""
    return ["no_timer_check"] if _has_host_time(machine) else []


def machine_args(machine: Machine) -> list[str]:
    """QEMU's command line for `machine`, without the virtio ports, the monitor and the inbox."""
    of_machine = (*_timer_args(machine), *machine.topology.kernel_args())
    kernel_args = (*KERNEL_ARGS, *of_machine, *machine.kernel_args)
    return [
        *machine.emulator.command,
        *ACCELERATORS[machine.accelerator],
        *(() if machine.seed is None else ("-seed", str(machine.seed))),
        *("-machine", f"pc,usb=off,vmport=off,hpet={_hpet(machine)}"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *machine.topology.qemu_args(),
        *("-kernel", str(machine.kernel.path), "-initrd", str(machine.initramfs)),
        *("-append", " ".join(kernel_args)),
        *(
            word
            for file in (machine.console_log, *machine.serial_files)
            for word in ("-serial", f"file:{file}")
        ),
    ]


def launch(machine: Machine, *more_args: str) -> Launched:
    """Start QEMU, with `more_args` in addition to the arguments for `machine`. QEMU is killed when
    the calling thread ends. Raises QemuError if QEMU is not installed."""
    if not available():
        raise QemuError(f"{PROGRAM} is missing: install the package qemu-system-x86")
    args = [*machine_args(machine), *more_args]
    inherited: list[int] = []
    ports, monitor, inbox = None, None, None
    with contextlib.ExitStack() as guest_ends:

        def channel(name: str) -> socket.socket:
            host_end, guest_end = socket.socketpair()
            number = guest_ends.enter_context(guest_end).fileno()
            inherited.append(number)
            args.extend(("-chardev", f"socket,id={name},fd={number}"))
            return host_end

        def port(device: str, name: str) -> socket.socket:
            host_end = channel(name)
            args.extend(("-device", f"{device},chardev={name},name={name}"))
            return host_end

        if machine.has_inbox:
            monitor = Monitor(channel("qmp"))
            inbox = os.memfd_create("scx-inbox")
            os.truncate(inbox, INBOX_BYTES)
            inherited.append(inbox)
            args += _inbox_args(inbox)
        if not machine.is_replayed:
            args += ["-device", "virtio-serial-pci"]
            ports = Ports(
                control=port("virtserialport", CONTROL_PORT),
                data=port("virtserialport", DATA_PORT),
                stream=port("virtserialport", STREAM_PORT),
                terminal=port("virtconsole", TERMINAL_PORT) if machine.terminal else None,
            )
        return Launched(spawn(args, pass_fds=inherited), ports, monitor, inbox)


def _inbox_args(memory: int) -> list[str]:
    """QEMU's options for the monitor, for the inbox (shared memory that the guest reads), and for
    the device by which the guest stops the machine."""
    path = f"/proc/self/fd/{memory}"
    backend = f"memory-backend-file,id=inbox,size={INBOX_BYTES},mem-path={path},share=on"
    return [
        *("-mon", "chardev=qmp,mode=control"),
        *("-object", backend, "-device", "ivshmem-plain,memdev=inbox,master=on"),
        *("-device", "pvpanic", "-action", "panic=pause"),
    ]


def spawn(args: list[str], pass_fds: list[int] | None = None) -> subprocess.Popen[bytes]:
    """Start QEMU in its own session, so that a terminal's Ctrl-C does not reach it. The kernel
    kills QEMU when the calling thread ends."""
    parent = os.getpid()

    def die_with_parent() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return subprocess.Popen(
        args,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=pass_fds or (),
        start_new_session=True,
        preexec_fn=die_with_parent,
    )
