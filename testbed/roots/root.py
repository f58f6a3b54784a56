# SPDX-License-Identifier: GPL-2.0-only
"""Creates a minimal root file system, runs a script in it, and removes it.

The work is done by mmdebstrap, as root or in a user namespace. Packages of Debian are from the
mirror that this machine's apt uses.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .suites import Suite

#: Directory of locally added certificates. They are needed to fetch anything through a proxy that
#: intercepts TLS.
_LOCAL_CERTIFICATES = Path("/usr/local/share/ca-certificates")
#: Environment variables that name proxies for downloads, in lower case. They are passed on to the
#: script, as are the variables with these names in upper case.
_PASSED_ON = ("http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy")

#: The PATH of root's shells in Debian.
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Work:
    """A script that runs in a root, and its input and output."""

    #: Copied to /root, and executed.
    script: Path
    arguments: tuple[str, ...] = ()
    #: Copied to /root.
    files: tuple[Path, ...] = ()
    #: Packages that are installed in addition to the minimal root.
    packages: tuple[str, ...] = ("ca-certificates",)
    #: Receives the contents of /root/out.
    results: Path | None = None


def why_impossible() -> str | None:
    """Why no root file system can be created here. None if it is possible."""
    if shutil.which("mmdebstrap") is None:
        return "mmdebstrap is not installed"
    namespaces = ["--mount"] if os.geteuid() == 0 else ["--user", "--map-root-user", "--mount"]
    probe = subprocess.run(["unshare", *namespaces, "true"], capture_output=True, check=False)
    if probe.returncode == 0:
        return None
    return "neither root nor user namespaces: " + probe.stderr.decode(errors="replace").strip()


def run(suite: Suite, work: Work, log: Path) -> Iterator[str]:
    """Create the root and do the work. Yields the lines of output, which are also written to the
    log. The exit status is ignored."""
    return lines(_mmdebstrap(suite, work), log)


def lines(command: Sequence[str], log: Path) -> Iterator[str]:
    """Run the command. Yields the lines of output, which are also written to the log. The exit
    status is ignored."""
    with (
        log.open("w") as out,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        for line in process.stdout or ():
            out.write(line)
            out.flush()
            yield line.rstrip("\n")


def _mmdebstrap(suite: Suite, work: Work) -> list[str]:
    """The command that creates the root, does the work and removes the root."""
    env = [f"{name}={value}" for name, value in os.environ.items() if name.lower() in _PASSED_ON]
    # mmdebstrap mounts /proc read-only. On a real machine, /proc is writable.
    hooks = ['mount -o remount,rw "$1/proc"']
    hooks += [f"copy-in {shlex.quote(str(file))} /root" for file in (*work.files, work.script)]
    hooks += [
        f"copy-in {shlex.quote(str(file))} {_LOCAL_CERTIFICATES}"
        for file in sorted(_LOCAL_CERTIFICATES.glob("*.crt"))
    ]
    inside = [
        "env",
        "-i",
        f"PATH={_PATH}",
        *env,
    ]
    inside += [f"/root/{work.script.name}", *work.arguments]
    hooks.append('chroot "$1" ' + shlex.join(inside))
    if work.results:
        hooks.append(f"sync-out /root/out {shlex.quote(str(work.results))}")
    return [
        # If this process ends early, mmdebstrap gets SIGTERM, and removes the root.
        *("setpriv", "--pdeathsig", "TERM"),
        *("mmdebstrap", "--quiet", "--variant=minbase"),
        f"--include={','.join(work.packages)}",
        *suite.options,
        *(f"--customize-hook={hook}" for hook in hooks),
        *(suite.name, "/dev/null", *suite.sources),
    ]
