"""Programs of Debian's packages, unpacked into a folder: nothing is installed on this machine."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ops.containers.process import TrialError, run

NEWER: Final = "trixie"
"""The release that the image builds on. It has Compose v2, buildx and Python 3.13."""
ENGINE: Final = ("docker.io", "debootstrap", "slirp4netns")
FROM_NEWER: Final = ("docker-compose", "docker-buildx", "prometheus", "busybox-static")
FORMAT: Final = "$(ORIGIN)|$(COMPONENT)|$(REPO_URI)"
KEYRING: Final = "/usr/share/keyrings/debian-archive-keyring.gpg"


@dataclass(frozen=True)
class Programs:
    """What was unpacked.

    Attributes
    ----------
    folder
        Where it is, with paths as on an installed system.
    mirror
        Where Debian's packages come from.
    """

    folder: Path
    mirror: str

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which the programs find one another and their libraries."""
        libraries = next((self.folder / "usr" / "lib").glob("*-linux-gnu"))
        folders = [self.folder / "links", self.folder / "usr/sbin", self.folder / "usr/bin"]
        return {
            "PATH": ":".join([*map(str, folders), "/usr/sbin:/usr/bin:/sbin:/bin"]),
            "LD_LIBRARY_PATH": str(libraries),
            "XTABLES_LIBDIR": str(libraries / "xtables"),
            "DEBOOTSTRAP_DIR": str(self.folder / "usr/share/debootstrap"),
        }


def fetch(folder: Path) -> Programs:
    """Download and unpack the engine, Compose, buildx, debootstrap, slirp4netns and Prometheus.

    Parameters
    ----------
    folder
        An empty folder.

    Returns
    -------
    Programs
        The programs.

    Raises
    ------
    TrialError
        This is no Debian, or a package cannot be had.
    """
    if not shutil.which("apt-get"):
        raise TrialError("this needs Debian, whose packages have the engine")
    run(["apt-get", "update"])
    mirror = _mirror(run(["apt-get", "indextargets", "--format", FORMAT, "Created-By: Packages"]))
    archives = folder / "archives"
    (archives / "partial").mkdir(parents=True)
    run(
        [
            *("apt-get", "install", "--yes", "--no-install-recommends", "--download-only", "--reinstall"),
            *("--option", f"Dir::Cache::archives={archives}/", *ENGINE),
        ]
    )
    run(["apt-get", *_newer(folder, mirror), "update"])
    run(["apt-get", *_newer(folder, mirror), "download", *FROM_NEWER], folder=archives)
    unpacked = folder / "unpacked"
    for package in sorted(archives.glob("*.deb")):
        run(["dpkg", "--extract", package, unpacked])
    links = unpacked / "links"
    links.mkdir()
    for name in ("iptables", "ip6tables"):  # as Debian's alternatives would do
        (links / name).symlink_to(unpacked / "usr/sbin" / f"{name}-legacy")
    return Programs(unpacked, mirror)


def _mirror(targets: str) -> str:
    r"""Return the address of Debian's main packages among those that apt uses.

    >>> _mirror("Debian|contrib|http://a/\nOther|main|http://b/\nDebian|main|http://c/debian/\n")
    'http://c/debian/'
    """
    for line in targets.splitlines():
        origin, component, address = line.split("|")
        if (origin, component) == ("Debian", "main"):
            return address
    raise TrialError("apt knows no source of Debian's packages")


def _newer(folder: Path, mirror: str) -> list[str]:
    """Make a state of apt's own for the newer release, and return the options that use it."""
    state = folder / "newer"
    for name in ("lists/partial", "archives/partial", "parts"):
        (state / name).mkdir(parents=True, exist_ok=True)
    (state / "sources.list").write_text(f"deb [signed-by={KEYRING}] {mirror} {NEWER} main\n")
    options = {
        "Dir::Etc::SourceList": state / "sources.list",
        "Dir::Etc::SourceParts": state / "parts",
        "Dir::State": state,
        "Dir::State::Lists": state / "lists",
        "Dir::State::Status": "/dev/null",
        "Dir::Cache": state,
        "APT::Sandbox::User": "root",  # this folder is closed to apt's own user
    }
    return [word for name, value in options.items() for word in ("--option", f"{name}={value}")]
