# SPDX-License-Identifier: GPL-2.0-only
"""How the build helpers call cargo.

libbpf.py and cargo_build.py must call cargo in the same way, or cargo builds libbpf twice. They
call cargo in the workspace's directory, where cargo looks for .cargo/config.toml.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path


class CargoError(Exception):
    """cargo failed, is missing, or did not build what is needed. If cargo ran, its messages went to
    standard error."""


ROOT = Path(__file__).resolve().parents[1]


def parser(description: str) -> argparse.ArgumentParser:
    """An argument parser with the options for calling cargo."""
    p = argparse.ArgumentParser(description=description)
    p.add_argument("--cargo", default="cargo", help="cargo program")
    p.add_argument(
        "--manifest", type=Path, default=ROOT / "Cargo.toml", help="Cargo.toml of the workspace"
    )
    p.add_argument(
        "--target-dir", type=Path, default=ROOT / "target", help="cargo's build directory"
    )
    p.add_argument("--profile", choices=["dev", "release"], default="dev")
    p.add_argument("--offline", action="store_true", help="fetch nothing")
    p.add_argument("--bpf-clang", help="clang for BPF programs; by default it is searched for")
    p.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="environment variable"
    )
    p.add_argument("--libbpf", type=Path, help="a static libbpf to link instead of the pinned one")
    return p


def _rust_host(cargo: str) -> str:
    """The target triple that cargo builds for."""
    lines = subprocess.run(
        [cargo, "version", "--verbose"], check=True, capture_output=True, text=True
    ).stdout.splitlines()
    return next(line.split()[1] for line in lines if line.startswith("host:"))


def _own_libbpf(cargo: str, archive: Path) -> list[str]:
    """Arguments that replace libbpf-sys' build script (its `links` key is "bpf")
    by a given archive, as the Cargo Book describes under "Overriding Build Scripts"."""
    key = f"target.{_rust_host(cargo)}.bpf"
    return [
        "--config",
        f'{key}.rustc-link-search=["native={archive.resolve().parent}"]',
        "--config",
        f'{key}.rustc-link-lib=["static=bpf", "elf", "z"]',
    ]


def _without_paths(args: argparse.Namespace) -> list[str]:
    """Arguments that keep this machine's paths out of the programs. Only two builds in the same
    directory give the same bytes, because the names of symbols depend on the directory. RUSTFLAGS
    in the environment overrides these arguments: see `build.rustflags` in the Cargo Book."""
    cargo_home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    # rustc applies the last prefix that matches.
    names = {
        cargo_home / "registry/src": "registry",
        args.manifest.resolve().parent: ".",
        args.target_dir.resolve(): "target",
    }
    flags = [f"--remap-path-prefix={path}={name}" for path, name in names.items()]
    return ["--config", f"build.rustflags={json.dumps(flags)}"]


def command(args: argparse.Namespace, verb: str, selection: list[str]) -> list[str]:
    """The command line of `cargo VERB`. `selection` has the options that select packages and
    targets."""
    line = [args.cargo, verb, *selection, "--locked"]
    line += ["--manifest-path", str(args.manifest), "--target-dir", str(args.target_dir)]
    line += ["--profile", args.profile, *_without_paths(args)]
    if args.offline:
        line.append("--offline")
    if args.libbpf:
        line += _own_libbpf(args.cargo, args.libbpf)
    return line


def _commit(root: Path) -> str:
    """The build id for --version: the commit, with -dirty if there are changes; "" without git.

    The commit of a surrounding repository is not used."""
    if not (root / ".git").exists():
        return ""
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    try:
        done = subprocess.run(describe, cwd=root, capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout.strip()


def environment(args: argparse.Namespace) -> dict[str, str]:
    """The environment for cargo: that of this process, the build id, and the variables that the
    options set."""
    env = dict(os.environ)
    env.setdefault("SCX_BUILD_ID", _commit(args.manifest.parent))
    if args.bpf_clang:
        env["BPF_CLANG"] = args.bpf_clang
    env |= dict(one.split("=", 1) for one in args.set)
    return env


def build(args: argparse.Namespace, selection: list[str]) -> list[dict]:
    """Run `cargo build` on `selection`; returns cargo's JSON messages.

    Raises CargoError if the build fails."""
    line = [*command(args, "build", selection), "--message-format=json-render-diagnostics"]
    root = args.manifest.parent
    done = subprocess.run(line, stdout=subprocess.PIPE, text=True, cwd=root, env=environment(args))
    if done.returncode:
        needs_cache = args.offline and not (root / "vendor").is_dir()
        cure = "; to build offline, run `cargo fetch --locked` first" if needs_cache else ""
        raise CargoError(f"cargo build failed with status {done.returncode}{cure}")
    return [json.loads(message) for message in done.stdout.splitlines()]


def main(run) -> None:
    """Call `run` and turn a CargoError into a one-line message and status 1."""
    try:
        run()
    except CargoError as e:
        sys.exit(f"{Path(sys.argv[0]).name}: {e}")
