"""The jars of Apache Kafka: downloaded once per user, and checked against their locked SHA-256.

`jars.lock`, beside this file, lists every jar in the format of ``sha256sum``: its SHA-256 and its path in a
Maven repository. ``python -m pipeline.broker.lock`` writes it. With the lock, no dependency is resolved on a
user's machine, and every user runs the jars that were tested.

Environment variables:

* ``FORKS_MAVEN_URL`` names a Maven repository to use in place of Maven Central.
* ``FORKS_CACHE_DIR`` names the folder that keeps the jars. It is ``$XDG_CACHE_HOME/forks`` by default, or
  ``~/.cache/forks`` if that variable is not set.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, Final

from rich.console import Console
from rich.progress import track

from pipeline.broker.folder_lock import locked
from pipeline.broker.maven import MAVEN_VARIABLE, repository_url
from pipeline.broker.settings import OWN_BROKER_HINT, VERSION
from pipeline.errors import BrokerError
from pipeline.extras import require

LOCK: Final = Path(__file__).with_name("jars.lock")

RETRIES: Final = 2  # pooch waits 1 s before the first one and 2 s before the second

CHUNK: Final = 1 << 16  # bytes; pooch writes to disk after each chunk, 1 KiB by default


@dataclass(frozen=True)
class Jar:
    """A line of the lock.

    Attributes
    ----------
    sha256 : str
        The SHA-256 of the jar in hex.
    path : PurePosixPath
        The path of the jar in a Maven repository, and in the cache folder.
    """

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

    def is_in(self, cache: Path) -> bool:
        """Tell whether the cache folder has the jar with the locked SHA-256."""
        file = cache / self.path
        return file.exists() and file_sha256(file) == self.sha256


def class_path(lock: Path = LOCK) -> list[Path]:
    """Return the files of all jars, after a check of their SHA-256.

    Jars that are missing or damaged are downloaded first, with progress on stderr. Only one process at a time
    downloads into a cache folder.

    Parameters
    ----------
    lock : Path
        The file that lists the jars.

    Returns
    -------
    list of Path
        One absolute path for each line of the lock, in the order of the lock.

    Raises
    ------
    BrokerError
        A jar cannot be downloaded, or the download has another SHA-256, or a package is not installed.
    ConfigError
        The cache folder cannot be written.
    """
    cache = cache_folder() / "jars"
    jars = [Jar.parse(line) for line in lock.read_text().splitlines()]
    if not all(jar.is_in(cache) for jar in jars):
        with locked(cache, "jars", "Name another folder with FORKS_CACHE_DIR."):
            # Another process may have downloaded some since the first look.
            if missing := [jar for jar in jars if not jar.is_in(cache)]:
                download(missing, cache)
    return [cache / jar.path for jar in jars]


def download(jars: Sequence[Jar], cache: Path) -> None:
    """Download jars into the cache folder, and replace those that are damaged.

    A file gets its name in the cache by a rename, after the check of its SHA-256.

    Parameters
    ----------
    jars : sequence of Jar
        The jars that the cache does not have.
    cache : Path
        An existing folder, absolute.

    Raises
    ------
    BrokerError
        A jar cannot be downloaded, or the download has another SHA-256.
    ConfigError
        A package of the extra `broker` is not installed.
    """
    require(
        f"to download the jars of Apache Kafka {VERSION} to {cache}", "pooch", alternative=OWN_BROKER_HINT
    )
    import pooch  # noqa: PLC0415 - of the extra `broker`, and of use only when jars are missing

    url = repository_url()
    client = pooch.create(
        cache,
        url,
        registry={str(jar.path): f"sha256:{jar.sha256}" for jar in jars},
        retry_if_failed=RETRIES,
    )
    pooch.get_logger().setLevel("WARNING")  # a line per file would break the progress bar
    downloader = partial(save_readable, pooch.HTTPDownloader(chunk_size=CHUNK))
    advice = f"name another Maven repository with {MAVEN_VARIABLE}. {OWN_BROKER_HINT}"
    for jar in track(jars, f"Downloading Apache Kafka {VERSION}", console=Console(stderr=True)):
        try:
            client.fetch(str(jar.path), downloader=downloader)
        except OSError as error:  # of requests and of the file system
            raise BrokerError(
                f"cannot download {jar.path} of Apache Kafka {VERSION} from {url}: {error}. "
                f"Check the network, or {advice}"
            ) from error
        except ValueError as error:  # pooch names both SHA-256
            raise BrokerError(
                f"{jar.path} from {url} is not the locked jar: {error} If this happens again, {advice}"
            ) from error


def save_readable(download: Callable[..., None], url: str, output_file: str, client: Any) -> None:
    """Download to pooch's temporary file, and make it readable for other users of the cache folder.

    Parameters
    ----------
    download : callable
        A downloader of pooch's.
    url, output_file, client
        What pooch passes to its downloaders.
    """
    download(url, output_file, client)
    Path(output_file).chmod(0o644)  # pooch makes temporary files with 0o600


def cache_folder() -> Path:
    """Return the folder for downloads, absolute: the broker does not run in the current folder."""
    if own := os.environ.get("FORKS_CACHE_DIR"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "forks"


def file_sha256(file: Path) -> str:
    """Return the SHA-256 of a file in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
