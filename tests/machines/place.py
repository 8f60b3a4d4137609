"""Places to run commands in: this system, or a Debian that debootstrap makes in a folder."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

PACKAGES: Final = ("ca-certificates", "git", "make", "python3", "python3-venv")
"""What a user of a fresh Debian installs first."""
SCRIPT: Final = "/usr/share/debootstrap/scripts/sid"
"""That of all releases that have none of their own yet."""
CARRIED: Final = re.compile(r"(PIP|SSL_CERT)_\w+|(REQUESTS|CURL)_CA_BUNDLE|\w+_proxy", re.IGNORECASE)
"""Variables by which a host reaches its package index."""
FILES: Final = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/pip.conf",
    "/etc/ssl/certs",
    "/usr/local/share/ca-certificates",
    "~/.config/pip",
    "~/.pip",
)
"""Files and folders of the host that do the same."""
APT_CACHE: Final = Path("/var/cache/apt/archives")
EVERY: Final = 60.0
"""Seconds between two lines of progress."""


class FailedError(Exception):
    """A command ended with another code than 0."""


def run(
    command: Sequence[str | Path],
    log: Path,
    say: Callable[[str], None],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    lasts: float,
) -> None:
    """Run a command with its output in a log.

    Whatever it starts has a namespace of its own for processes and mounts. So nothing of it is left when it
    ends, or is ended after `lasts` seconds or by Ctrl-C.
    """
    apart = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*apart, *command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        end = time.monotonic() + lasts
        try:
            while process.poll() is None:
                try:
                    process.wait(min(EVERY, end - time.monotonic()))
                except subprocess.TimeoutExpired:
                    if time.monotonic() >= end:
                        raise FailedError(f"ended after {lasts / 60:.0f} minutes") from None
                    say(f"  {last_line(log)}")
        finally:
            _end(process)
    if process.returncode:
        raise FailedError(f"exit code {process.returncode}: {last_line(log)}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the first process of the namespace: `unshare` ends when all others are gone, too."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while process.poll() is None:
        for first in children.read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(first), signal.SIGKILL)
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue


def last_line(log: Path) -> str:
    """Return the end of a log."""
    lines = log.read_text(errors="replace").split("\n")
    return next((line.strip()[-150:] for line in reversed(lines) if line.strip()), "")


def mirror() -> str | None:
    """Return the mirror of Debian in the host's own sources."""
    command = (
        "apt-get",
        "indextargets",
        "--format",
        "$(ORIGIN)|$(LABEL)|$(REPO_URI)",
        "Created-By: Packages",
    )
    for line in subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines():
        origin, label, uri = line.split("|", 2)
        if (origin, label) == ("Debian", "Debian"):
            return uri.rstrip("/")
    return None


class Debian:
    """A system in a folder; of the host it has package caches, and what leads to the package index."""

    def __init__(self, root: Path, log: Path, say: Callable[[str], None]) -> None:
        self.root = root
        self._log = log
        self._say = say

    def make(self, suite: str, architecture: str, source: str, lasts: float) -> None:
        """Install a release."""
        command = (
            *("debootstrap", "--variant=minbase", f"--arch={architecture}", f"--cache-dir={APT_CACHE}"),
            *(f"--include={','.join(PACKAGES)}", suite, self.root, source, SCRIPT),
        )
        run(command, self._log, self._say, lasts=lasts)

    def run(self, script: str, environment: Mapping[str, str], lasts: float) -> None:
        """Run lines of shell in the system."""
        carried = {name: value for name, value in os.environ.items() if CARRIED.fullmatch(name)}
        shown = [Path(name).expanduser() for name in FILES]
        shown += [Path(word) for value in carried.values() for word in value.split() if word.startswith("/")]
        lines = ["set -e", f"mount --bind {self.root} {self.root}"]  # else tests cannot unshare mounts there
        lines += [f"mount --rbind /dev {self.root}/dev", f"mount -t proc proc {self.root}/proc"]
        lines += [self._bind(path, "--read-only") for path in dict.fromkeys(shown) if path.exists()]
        cache = Path(os.environ.get("PIP_CACHE_DIR", "~/.cache/pip")).expanduser()
        if cache.exists():
            lines.append(self._bind(cache))
        lines.append(shlex.join(["exec", "chroot", str(self.root), "sh", "-exc", script]))
        system = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(Path.home()), "LANG": "C.UTF-8"}
        variables = {**system, **carried, **environment}
        run(("sh", "-c", "\n".join(lines)), self._log, self._say, environment=variables, lasts=lasts)

    def _bind(self, path: Path, *options: str) -> str:
        """Return the line that shows a file or folder of the host at the same place."""
        there = self.root / path.relative_to("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            there.mkdir(exist_ok=True)
        else:
            there.touch()
        return shlex.join(["mount", "--bind", *options, str(path.resolve()), str(there)])

    def remove(self) -> None:
        """Remove it: its mounts are gone with the processes."""
        shutil.rmtree(self.root)
