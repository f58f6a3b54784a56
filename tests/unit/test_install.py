# SPDX-License-Identifier: GPL-2.0-only
"""The layout of `meson install`, and that installed programs work."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from schedulers import C_SCHEDULERS, COMMANDS, ROOT, RUST_SCHEDULERS, SERVICES

RUST_PROGRAMS = RUST_SCHEDULERS + SERVICES + COMMANDS
PROGRAMS = C_SCHEDULERS + RUST_PROGRAMS

#: Where the files of a program are installed, below the prefix.
C_FILES = [
    "bin/{}",
    "share/man/man8/{}.8",
    "share/bash-completion/completions/{}",
    "share/zsh/site-functions/_{}",
]
RUST_FILES = [
    "bin/{}",
    "share/man/man{section}/{}.{section}",
    "share/bash-completion/completions/{}.bash",
    "share/zsh/site-functions/_{}",
    "share/fish/vendor_completions.d/{}.fish",
]

#: A scheduler's manifest for scx_loader.
MANIFEST = "share/scx/schedulers/{}.json"

#: Files of services/, by the Meson option of their directory. PLAIN_FILES are for systemd and
#: OpenRC.
PLAIN_FILES = {"libexecdir": ["scx-launch"], "sysconfdir": ["default/scx"]}
OPENRC_FILES = {"sysconfdir": ["init.d/scx", "conf.d/scx"]}
LOADER_FILES = {
    "dbus_dir": [
        "system.d/org.scx.Loader.conf",
        "system-services/org.scx.Loader.service",
        "interfaces/org.scx.Loader.xml",
    ],
    "polkit_action_dir": ["org.scx.Loader.policy"],
    "datadir": ["doc/scx/examples/50-scx.rules", "scx_loader/config.toml"],
}


@pytest.fixture(scope="module")
def installed(build_options: dict[str, str]) -> list[str]:
    """The programs that are built."""
    return C_SCHEDULERS + (RUST_PROGRAMS if build_options["enable_rust"] else [])


@pytest.fixture(params=PROGRAMS)
def name(request: pytest.FixtureRequest, installed: list[str]) -> str:
    """Each program. Skips the test if the program was not built."""
    if request.param not in installed:
        pytest.skip("built without the Rust programs")
    return request.param


def meson_options(build: Path) -> dict[str, str]:
    command = ["meson", "introspect", "--buildoptions", str(build)]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    return {option["name"]: option["value"] for option in json.loads(done.stdout)}


def service_files(options: dict[str, str]) -> set[str]:
    """The files of services/ that are installed with these options, relative to the root."""
    prefix = Path(options["prefix"])
    units = options["systemd_unit_dir"] or prefix / "lib/systemd/system"
    dbus = options["dbus_dir"] or prefix / options["datadir"] / "dbus-1"
    actions = options["polkit_action_dir"] or prefix / options["datadir"] / "polkit-1/actions"
    where = {
        "systemd_unit_dir": Path(units),
        "dbus_dir": Path(dbus),
        "polkit_action_dir": Path(actions),
    }
    has_loader = options["dbus"] and options["enable_rust"]
    chosen = []
    if options["systemd"] or options["openrc"]:
        chosen += PLAIN_FILES.items()
    if options["openrc"]:
        chosen += OPENRC_FILES.items()
    if options["systemd"]:
        chosen += [("systemd_unit_dir", ["scx.service"])]
    if has_loader:
        chosen += LOADER_FILES.items()
    if options["systemd"] and has_loader:
        chosen += [("systemd_unit_dir", ["scx_loader.service"])]
    folders = [(where.get(option) or prefix / options[option], files) for option, files in chosen]
    return {str(folder / file).lstrip("/") for folder, files in folders for file in files}


def install(build_dir: Path, destination: Path) -> None:
    command = ["meson", "install", "-C", str(build_dir), "--no-rebuild", "--quiet"]
    subprocess.run([*command, "--destdir", str(destination)], check=True, timeout=120)


@pytest.fixture(scope="module")
def root(build_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DESTDIR with everything installed."""
    destination = tmp_path_factory.mktemp("stage")
    install(build_dir, destination)
    return destination


@pytest.fixture(scope="module")
def stage(root: Path, build_options: dict[str, str]) -> Path:
    """The installation prefix below the DESTDIR."""
    return root / Path(build_options["prefix"]).relative_to("/")


def files_of(name: str) -> list[str]:
    """All installed files of a program."""
    files = C_FILES if name in C_SCHEDULERS else RUST_FILES
    if name in C_SCHEDULERS + RUST_SCHEDULERS:
        files = [*files, MANIFEST]
    return [file.format(name, section=1 if name in COMMANDS else 8) for file in files]


def man_page(stage: Path, name: str) -> Path:
    (file,) = (file for file in files_of(name) if "/man/" in file)
    return stage / file


def completions(stage: Path, name: str, shell: str) -> Path:
    """The completions of a program for bash, zsh or fish."""
    (file,) = (file for file in files_of(name) if f"/{shell}" in file)
    return stage / file


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_installed_files_are_exactly_those_expected(
    root: Path, stage: Path, installed: list[str], build_options: dict[str, str]
) -> None:
    found = {str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}
    expected = service_files(build_options)
    for name in installed:
        expected |= {str((stage / file).relative_to(root)) for file in files_of(name)}
    assert found == expected


def test_services_refer_to_installed_files(root: Path, build_options: dict[str, str]) -> None:
    """No placeholder is left, and all programs of this project that services start are
    installed."""
    starts = re.compile(r"^(?:Exec|ExecStart|command)=(/\S+)$", re.MULTILINE)
    files = service_files(build_options)
    assert files
    for file in files:
        text = (root / file).read_text()
        assert not re.search(r"@\w+@", text), file
        for program in map(Path, starts.findall(text)):
            is_built = program.name in [*PROGRAMS, "scx-launch"]
            assert not is_built or os.access(f"{root}{program}", os.X_OK), f"{file}: {program}"


@pytest.mark.parametrize(
    "options",
    [
        {"prefix": "/usr", "systemd_unit_dir": "/units", "openrc": "true"},
        {"prefix": "/opt/scx", "systemd": "false", "openrc": "true", "sysconfdir": "/etc"},
        {"dbus": "false", "libexecdir": "lib/scx"},
        {"systemd": "false", "dbus": "false"},
        {"dbus_dir": "/share/bus", "polkit_action_dir": "/share/actions"},
    ],
)
def test_service_directories_follow_the_options(options: dict[str, str], tmp_path: Path) -> None:
    """The test installs only services/, because all else would have to be built again for each set
    of options."""
    source, build, destination = (tmp_path / name for name in ("source", "build", "root"))
    shutil.copytree(ROOT / "services", source / "services")
    shutil.copy(ROOT / "meson_options.txt", source)
    (source / "meson.build").write_text(
        "project('scx', meson_version: '>= 1.0')\nfs = import('fs')\nsubdir('services')\n"
    )
    setup = run("meson", "setup", build, source, *(f"-D{k}={v}" for k, v in options.items()))
    assert setup.returncode == 0, setup.stdout
    install(build, destination)
    found = {str(p.relative_to(destination)) for p in destination.rglob("*") if p.is_file()}
    assert found == service_files(meson_options(build))
    for folder in (value for value in options.values() if value.startswith("/")):
        assert (destination / folder[1:]).is_dir()


def test_installed_program_runs(stage: Path, name: str) -> None:
    assert run(stage / "bin" / name, "--version").returncode == 0


def test_man_page_has_no_errors(stage: Path, name: str) -> None:
    if not shutil.which("groff"):
        pytest.skip("needs groff")
    page = man_page(stage, name)
    assert run("groff", "-man", "-ww", "-z", page).stderr == ""
    assert "@" not in page.read_text()


def test_man_page_is_found_by_its_summary(stage: Path, name: str) -> None:
    """`apropos` reads the section NAME, which is one line."""
    page = man_page(stage, name).read_text()
    assert re.search(rf"^\.SH NAME\n{name} \\- \S.*\n\.", page, re.MULTILINE)


def option_of(name: str) -> str:
    """An option of the program."""
    others = {
        "scxstats": "--openmetrics",
        "scxctl": "--json",
        "scxtop": "--interval",
        "scx_loader": "--programs",
    }
    return others.get(name, "--exit-dump-len")


def test_bash_completes_options(stage: Path, name: str) -> None:
    option = option_of(name)
    partial = option[:6]
    script = f"""
        source "{completions(stage, name, "bash")}"
        compopt() {{ :; }}
        COMP_WORDS=({name} {partial}) COMP_CWORD=1
        _{name} {name} {partial} {name}
        echo "${{COMPREPLY[@]}}"
        COMP_WORDS=({name} -) COMP_CWORD=1
        _{name} {name} - {name}
        echo "${{COMPREPLY[@]}}"
        complete -p {name} >/dev/null
    """
    # The completions of C schedulers call the program.
    script = f'PATH="{stage}/bin:$PATH"\n{script}'
    done = run("bash", "-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert first.removesuffix("=") == option
    assert {"-h", "--help", "-V", "--version"} <= set(second.split())
    assert "--generate" not in second


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_can_be_parsed(stage: Path, installed: list[str], shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"needs {shell}")
    # fish generates completions of a C scheduler from its manual page.
    names = RUST_PROGRAMS if shell == "fish" else PROGRAMS
    for name in set(names).intersection(installed):
        done = run(shell, "-n", completions(stage, name, shell))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_generated_completions_name_the_options(
    stage: Path, installed: list[str], shell: str
) -> None:
    """Completions name options, but not the hidden option that generates the completions."""
    for name in set(RUST_PROGRAMS).intersection(installed):
        text = completions(stage, name, shell).read_text()
        assert option_of(name).removeprefix("--") in text
        assert "generate" not in text


def bpf_object(build_dir: Path, name: str) -> Path:
    """The BPF object of a scheduler. For a Rust scheduler, it is the newest object, because cargo
    keeps the objects of earlier builds."""
    if name in C_SCHEDULERS:
        return build_dir / "scheds/c" / f"{name}.bpf.o"
    # A scheduler with a policy in user space has the BPF side of scx_rustland_core.
    own = list(build_dir.glob(f"cargo/*/build/{name}-*/out/bpf.bpf.o"))
    found = own or build_dir.glob("cargo/*/build/scx_rustland_core-*/out/bpf.bpf.o")
    return max(found, key=lambda file: file.stat().st_mtime)


@pytest.mark.parametrize("name", C_SCHEDULERS + RUST_SCHEDULERS, indirect=True)
def test_bpf_object_names_no_path_of_the_build_machine(build_dir: Path, name: str) -> None:
    """BPF objects do not depend on where they were built."""
    contents = bpf_object(build_dir, name).read_bytes()
    for folder in (ROOT, build_dir.resolve(), Path.home() / ".cargo"):
        # Match only the start of a path: the path of a tree in /scx is also a part of
        # include/scx/common.bpf.h.
        assert not re.search(rb"(?<![\w.-])" + re.escape(str(folder)).encode() + b"/", contents)
