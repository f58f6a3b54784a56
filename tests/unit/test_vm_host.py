# SPDX-License-Identifier: GPL-2.0-only
"""The host's side without a guest: QEMU's command line, errors, accelerator, terminal, CLI."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from vm import __main__ as cli
from vm import accelerator, emulator, link, progress, qemu, terminal, topology
from vm.guest import CommandError, Guest, Result
from vm.kernels import Kernel

KERNEL = Kernel(Path("/images/bzImage"), "7.2.12", "test")


def machine(**changes: object) -> qemu.Machine:
    given = {
        "kernel": KERNEL,
        "initramfs": Path("/tmp/initramfs"),
        "topology": topology.find("offline"),
        "accelerator": "tcg",
        "console_log": Path("/tmp/a,b/console.log"),
    }
    return qemu.Machine(**{**given, **changes})


def following(args: list[str], option: str) -> str:
    return args[args.index(option) + 1]


def test_emulation_is_single_threaded() -> None:
    assert following(qemu.machine_args(machine()), "-accel") == "tcg,thread=single"


def test_kernel_command_line_is_complete() -> None:
    words = following(qemu.machine_args(machine(kernel_args=("a=b",))), "-append").split()
    assert words[0] == "console=ttyS0"
    assert {"panic=-1", "oops=panic", "maxcpus=4", "a=b"} <= set(words)


def test_machine_exits_instead_of_rebooting() -> None:
    args = qemu.machine_args(machine())
    assert {"-no-reboot", "-nodefaults"} <= set(args)
    # After `file:`, the option is literal, including commas.
    assert following(args, "-serial") == "file:/tmp/a,b/console.log"


def test_deterministic_machine_is_independent_of_the_host() -> None:
    args = qemu.machine_args(
        machine(accelerator="replay", seed=7, serial_files=(Path("/tmp/output"),))
    )
    assert following(args, "-icount") == "shift=0,sleep=off"
    assert following(args, "-seed") == "7"
    assert following(args, "-rtc") == "base=2026-01-01,clock=vm"
    assert args[-2:] == ["-serial", "file:/tmp/output"]
    assert "virtio-serial-pci" not in args


def test_counting_machine_sleeps_with_the_host_while_it_is_idle() -> None:
    args = qemu.machine_args(machine(accelerator="icount"))
    assert following(args, "-icount") == "shift=0,sleep=on"
    assert following(args, "-rtc") == "base=2026-01-01,clock=vm"


@pytest.fixture
def qemu_versions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Versions of the machine's own QEMU, and of the QEMU in backports. Nothing is downloaded."""
    versions = {"own": "10.1.0", "backport": "10.2.0"}

    def version(found: qemu.Emulator) -> str:
        return versions["own" if found == qemu.Emulator() else "backport"]

    monkeypatch.setattr(qemu.Emulator, "version", version)
    monkeypatch.setattr(emulator.debs, "debian_codename", lambda: "bookworm")
    monkeypatch.setattr(emulator.debs.Suite, "fetch", lambda _, package: tmp_path / package)
    emulator.find.cache_clear()
    yield versions
    emulator.find.cache_clear()


def test_own_qemu_is_preferred(qemu_versions: dict[str, str]) -> None:
    assert emulator.find() == qemu.Emulator()


def test_old_qemu_is_replaced_by_the_backport(
    qemu_versions: dict[str, str], tmp_path: Path
) -> None:
    qemu_versions["own"] = "7.2.22"
    program, *firmware = emulator.find().command
    assert program == str(tmp_path / "qemu-system-x86/usr/bin/qemu-system-x86_64")
    assert following(firmware, "-L") == str(tmp_path / "qemu-system-data/usr/share/qemu")


def test_without_a_new_qemu_guests_have_the_hosts_time(
    qemu_versions: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    qemu_versions |= {"own": "7.2.22", "backport": "9.2.0"}
    with pytest.raises(qemu.QemuError, match="need QEMU 10: install it"):
        emulator.find()
    monkeypatch.setenv("SCX_VM_ACCEL", "tcg")
    assert Guest(KERNEL, icount=True)._accelerator() == ("tcg", qemu.Emulator())
    assert "the guest has the host's time: " in capsys.readouterr().err


def test_only_emulated_guests_count_instructions(
    qemu_versions: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for accel, found in (("tcg", "icount"), ("kvm", "kvm")):
        monkeypatch.setenv("SCX_VM_ACCEL", accel)
        assert Guest(KERNEL, icount=True)._accelerator() == (found, qemu.Emulator())


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        (["--seed", "1"], "--seed is for --deterministic"),
        (["--deterministic", "--seed", "0"], "--seed 0: give a number from 1 to 4294967295"),
        (["--deterministic", "--seed", "-1"], "--seed -1: give a number from 1 to 4294967295"),
        (["--deterministic", "--user", "nobody"], "--user is not for --deterministic"),
    ],
)
def test_wrong_deterministic_options(
    capsys: pytest.CaptureFixture[str], args: list[str], complaint: str
) -> None:
    assert cli.main(["run", *args, "true"]) == cli.STATUS_USAGE
    assert complaint in capsys.readouterr().err


def test_missing_qemu_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    for ask in (qemu.Emulator().version, lambda: qemu.launch(machine())):
        with pytest.raises(qemu.QemuError, match="install the package qemu-system-x86"):
            ask()


def test_accelerator_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    for forced in ("tcg", "kvm"):
        monkeypatch.setenv("SCX_VM_ACCEL", forced)
        assert accelerator.choose(KERNEL) == forced
    monkeypatch.setenv("SCX_VM_ACCEL", "hvf")
    with pytest.raises(qemu.QemuError, match="SCX_VM_ACCEL=hvf: use tcg or kvm"):
        accelerator.choose(KERNEL)


def test_kvm_is_probed_once_per_kernel_qemu_and_host(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    probes: list[str] = []

    def probe(kernel: Kernel) -> bool:
        probes.append(kernel.release)
        return kernel is KERNEL

    monkeypatch.delenv("SCX_VM_ACCEL", raising=False)
    monkeypatch.setenv("SCX_CACHE", str(tmp_path))
    monkeypatch.setattr(accelerator, "_DEVICE", tmp_path)
    monkeypatch.setattr(accelerator, "boots_under_kvm", probe)
    monkeypatch.setattr(qemu.Emulator, "version", lambda _: "10.0")
    other = Kernel(Path("x"), "6.17.13", "test")
    choices = [accelerator.choose(kernel) for kernel in (KERNEL, other, KERNEL, other)]
    assert choices == ["kvm", "tcg", "kvm", "tcg"]
    assert probes == ["7.2.12", "6.17.13"]


def test_without_the_device_there_is_no_probe(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SCX_VM_ACCEL", raising=False)
    monkeypatch.setattr(accelerator, "_DEVICE", tmp_path / "kvm")
    assert accelerator.choose(KERNEL) == "tcg"


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        ("[ 1.0] Kernel panic - not syncing: x\n", "the guest died: Kernel panic - not syncing: x"),
        (
            "[ 1.0] BUG: kernel NULL pointer dereference, address: 0\n[ 1.1] Oops: Oops: 0000\n"
            "[ 1.2] Kernel panic - not syncing: Fatal exception\n",
            "the guest died: BUG: kernel NULL pointer dereference, address: 0",
        ),
        ("[ 1.0] reboot: Power down\n", None),
    ],
)
def test_cause_of_a_guests_death_is_read_from_the_console(
    tmp_path: Path, log: str, cause: str | None
) -> None:
    console = tmp_path / "console.log"
    console.write_text(log)
    assert link.cause_of_death(console) == cause


def test_without_a_console_there_is_no_cause(tmp_path: Path) -> None:
    assert link.cause_of_death(tmp_path / "nothing") is None


def test_results_are_checked() -> None:
    good = Result("true", 0, b"o\xff", b"e")
    assert good.check() is good
    assert (good.stdout, good.stderr) == ("o�", "e")
    with pytest.raises(CommandError, match="'false' ended with status 1: oh no"):
        Result("false", 1, b"", b"oh no\n").check()
    with pytest.raises(CommandError, match=r"'x' took too long: \(no message\)"):
        Result("x", 137, timed_out=True).check()
    assert not Result("x", 0, timed_out=True).ok


@pytest.mark.parametrize(
    ("keys", "passed", "leaving"),
    [
        ([b"ls\r", b"\x03"], b"ls\r\x03", False),
        ([b"a\x01xb"], b"ab", True),
        ([b"\x01", b"x"], b"", True),
        ([b"\x01\x01"], b"\x01", False),
        ([b"\x01qz"], b"z", False),
    ],
)
def test_keys(keys: list[bytes], passed: bytes, leaving: bool) -> None:
    keyboard = terminal.Keyboard()
    assert b"".join(keyboard.typed(key) for key in keys) == passed
    assert keyboard.leaving is leaving


def test_progress_is_one_line_and_can_be_silenced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_quiet", False)
    with progress.step("thinking"):
        pass
    with pytest.raises(ValueError), progress.step("failing"):
        raise ValueError
    assert capsys.readouterr().err == "thinking … 0.0 s\nfailing … failed\n"
    progress.silence()
    progress.note("nothing")
    with progress.step("nothing"):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("arguments", [[], ["run"], ["fly"], ["run", "--for", "x", "true"]])
def test_usage_errors(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(arguments)
    assert exit_.value.code == cli.STATUS_USAGE


@pytest.mark.parametrize("option", ["--for", "--timeout"])
@pytest.mark.parametrize("limit", ["0", "-1", "nan", "inf", "604801"])
def test_invalid_limits_are_rejected(
    option: str, limit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["run", f"{option}={limit}", "true"]) == cli.STATUS_USAGE
    (message,) = capsys.readouterr().err.splitlines()
    assert message.startswith(f"vm: {option} {limit}: give more than 0 and at most 604800 seconds")


def test_errors_are_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCX_OFFLINE", "1")
    monkeypatch.setenv("SCX_CACHE", str(tmp_path))
    monkeypatch.delenv("SCX_VM_KERNELS", raising=False)
    assert cli.main(["run", "--kernel", "7.2", "true"]) == cli.STATUS_HARNESS
    assert cli.main(["run", "--topology", "nope", "true"]) == cli.STATUS_USAGE
    kernel_message, topology_message = capsys.readouterr().err.splitlines()
    assert kernel_message.startswith("vm: no local kernel 7.2")
    assert topology_message.startswith("vm: no topology 'nope'")


def test_topologies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["topology"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == list(topology.TOPOLOGIES)


def test_kernels_are_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SCX_CACHE", str(tmp_path))
    monkeypatch.setenv("SCX_OFFLINE", "1")
    monkeypatch.delenv("SCX_VM_KERNELS", raising=False)
    for arguments in (["kernel"], ["kernel", "list"]):
        assert cli.main(arguments) == 0
        assert capsys.readouterr().out.split(maxsplit=2) == [
            *("6.12", "source", "(not built: ./dev vm kernel 6.12)\n")
        ]
    assert cli.main(["kernel", "lst"]) == cli.STATUS_HARNESS
    assert "no kernel 'lst'" in capsys.readouterr().err
    assert cli.main(["kernel", "list", "7.2"]) == cli.STATUS_USAGE
    assert cli.main(["kernel", "7.2", "6.12"]) == cli.STATUS_USAGE


def test_kernel_by_version(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kernel VERSION` may build the kernel, `kernel fetch` does not."""
    monkeypatch.setattr(cli.kernel_build, "obtain", lambda _: KERNEL)
    monkeypatch.setattr(cli.kernels, "resolve", lambda _: Kernel(Path("/other"), "7.2.1", "test"))
    assert cli.main(["kernel", "6.12"]) == 0
    assert cli.main(["kernel", "fetch", "7.2"]) == cli.main(["kernel", "fetch"]) == 0
    assert capsys.readouterr().out == f"{KERNEL.path}\n/other\n/other\n"
