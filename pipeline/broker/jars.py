"""The jars of Apache Kafka: downloaded once per user, each checked against its locked SHA-256.

`jars.lock`, beside this file, names every jar by its path in a Maven repository, in the format of
``sha256sum``; ``python -m pipeline.broker.lock`` writes it anew. With the lock no dependency has to be
resolved on a user's machine: what is downloaded is what was tested.

Two variables of the environment change where jars come from and go to: ``FORKS_MAVEN_URL`` names a Maven
repository to use in place of Maven Central, ``FORKS_CACHE_DIR`` the folder that keeps them
(``$XDG_CACHE_HOME/forks``, or ``~/.cache/forks``, by default).
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from jgo.maven import MavenContext
from rich.console import Console
from rich.progress import track

from pipeline.broker.settings import BOOTSTRAP_VARIABLE, VERSION
from pipeline.errors import BrokerError, ConfigError

LOCK = Path(__file__).with_name("jars.lock")

OWN_BROKER_HINT = (
    f"To use a Kafka of your own instead, set {BOOTSTRAP_VARIABLE}=host:port or pass --bootstrap."
)


@dataclass(frozen=True)
class Jar:
    """One jar of the lock: its SHA-256 in hex, and its path in a Maven repository."""

    sha256: str
    path: PurePosixPath

    @classmethod
    def parse(cls, line: str) -> Jar:
        """Read a line of the lock.

        >>> Jar.parse("0e1f  org/slf4j/slf4j-api/1.7.36/slf4j-api-1.7.36.jar").path.name
        'slf4j-api-1.7.36.jar'
        """
        sha256, path = line.split()
        return cls(sha256, PurePosixPath(path))

    def artifact(self, maven: MavenContext) -> Any:
        """Give jgo's artifact of this jar: group, name and version are the folders of its path."""
        *group, name, version = self.path.parent.parts
        return maven.project(".".join(group), name).at_version(version).artifact()

    def check(self, file: Path) -> None:
        """Raise BrokerError unless the file has the locked SHA-256."""
        if (found := sha256(file)) != self.sha256:
            raise BrokerError(
                f"{file} is not the locked {self.path.name}: its SHA-256 is {found}, {LOCK.name} says "
                f"{self.sha256}. Delete the file and try again; if that does not help, the Maven repository "
                f"gives out another file. {OWN_BROKER_HINT}"
            )


def class_path(lock: Path = LOCK) -> list[Path]:
    """Give every jar's file, checked; download those that are not there yet, with progress on stderr.

    Several processes may do this at once: each downloads into a folder of its own and renames into place.

    Raises
    ------
    BrokerError
        A jar cannot be downloaded, or is not the one that the lock names.
    ConfigError
        The cache folder cannot be written.
    """
    cache = cache_folder() / "jars"
    jars = [Jar.parse(line) for line in lock.read_text().splitlines()]
    files = {jar: cache / jar.path for jar in jars}
    if missing := [jar for jar, file in files.items() if not file.exists()]:
        download(missing, cache)
    for jar, file in files.items():
        jar.check(file)
    return list(files.values())


def download(jars: list[Jar], cache: Path) -> None:
    """Download jars into the cache, each checked before it gets its name there."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(dir=cache, prefix="download-")
    except OSError as error:
        raise ConfigError(
            f"cannot keep jars in {cache}: {error.strerror}. Name a writable folder with FORKS_CACHE_DIR."
        ) from error
    with folder:
        maven = maven_context(Path(folder.name))
        for jar in track(jars, f"Downloading Apache Kafka {VERSION}", console=Console(stderr=True)):
            try:
                file = jar.artifact(maven).resolve()
            except (OSError, RuntimeError) as error:  # of requests and of jgo
                raise BrokerError(
                    f"cannot download {jar.path} of Apache Kafka {VERSION} from "
                    f"{', '.join(maven.remote_repos.values())}: {error}. Check the network, or name another "
                    f"Maven repository with FORKS_MAVEN_URL. {OWN_BROKER_HINT}"
                ) from error
            jar.check(file)
            target = cache / jar.path
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)


def maven_context(folder: Path) -> MavenContext:
    """Give jgo's resolver, which keeps its files in the folder and not in the user's ``~/.m2``."""
    url = os.environ.get("FORKS_MAVEN_URL")
    return MavenContext(repo_cache=folder, remote_repos={"maven": url.rstrip("/")} if url else None)


def cache_folder() -> Path:
    """Give the folder for what is downloaded once per user."""
    if own := os.environ.get("FORKS_CACHE_DIR"):
        return Path(own)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "forks"


def sha256(file: Path) -> str:
    """Give a file's SHA-256 in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
