from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pipeline.broker.jars import LOCK, Jar, class_path
from pipeline.broker.launch import free_ports
from pipeline.broker.settings import VERSION
from pipeline.errors import BrokerError, ConfigError

JARS = {
    "org/example/first/1.0/first-1.0.jar": b"the first jar",
    "org/example/deep/second/2.1/second-2.1.jar": b"the second jar",
}


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    lines = [f"{hashlib.sha256(content).hexdigest()}  {path}\n" for path, content in JARS.items()]
    file = tmp_path / "jars.lock"
    file.write_text("".join(lines))
    return file


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("FORKS_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a Maven repository that a server on a free port gives out."""
    folder = tmp_path / "repository"
    for path, content in JARS.items():
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_bytes(content)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=folder)) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        monkeypatch.setenv("FORKS_MAVEN_URL", f"http://127.0.0.1:{server.server_port}/")
        yield folder
        server.shutdown()
        thread.join()


def files_in(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def test_the_committed_lock_names_each_jar_of_kafka_once() -> None:
    jars = [Jar.parse(line) for line in LOCK.read_text().splitlines()]
    names = [jar.path.name for jar in jars]

    assert f"kafka_2.13-{VERSION}.jar" in names
    assert f"kafka-clients-{VERSION}.jar" in names
    assert len(set(names)) == len(names)
    assert all(len(bytes.fromhex(jar.sha256)) == 32 for jar in jars)


def test_jars_are_downloaded_once_and_then_read_from_the_cache(
    repository: Path, cache: Path, lock: Path
) -> None:
    first = class_path(lock)
    for path in JARS:
        (repository / path).unlink()

    assert class_path(lock) == first
    assert [file.read_bytes() for file in first] == list(JARS.values())
    assert files_in(cache / "jars") == set(JARS)


def test_downloads_at_the_same_time_do_not_disturb_one_another(
    repository: Path, cache: Path, lock: Path
) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(class_path, [lock] * 8))

    assert all(answer == answers[0] for answer in answers)
    assert files_in(cache / "jars") == set(JARS)


def test_a_download_with_another_checksum_is_named_and_not_kept(
    repository: Path, cache: Path, lock: Path
) -> None:
    path = list(JARS)[1]
    (repository / path).write_bytes(b"not the second jar")

    with pytest.raises(BrokerError, match=r"is not the locked second-2\.1\.jar: its SHA-256 is"):
        class_path(lock)
    assert path not in files_in(cache / "jars")


def test_a_jar_that_changed_in_the_cache_is_named(repository: Path, cache: Path, lock: Path) -> None:
    changed = class_path(lock)[0]
    changed.write_bytes(b"cut off")

    with pytest.raises(BrokerError, match=r"first-1\.0\.jar is not the locked .* Delete the file"):
        class_path(lock)


def test_a_jar_that_the_repository_does_not_have_is_named(repository: Path, cache: Path, lock: Path) -> None:
    (repository / next(iter(JARS))).unlink()

    with pytest.raises(BrokerError, match=r"cannot download org/example/first/1\.0/first-1\.0\.jar"):
        class_path(lock)


def test_an_unreachable_repository_is_reported_with_remedies(
    cache: Path, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [port] = free_ports(1)
    monkeypatch.setenv("FORKS_MAVEN_URL", f"http://127.0.0.1:{port}")

    with pytest.raises(BrokerError) as raised:
        class_path(lock)
    message = str(raised.value)
    assert "cannot download org/example/first/1.0/first-1.0.jar" in message
    assert f"127.0.0.1:{port}" in message
    assert "FORKS_MAVEN_URL" in message
    assert "FORKS_KAFKA__BOOTSTRAP=host:port" in message
    assert "--bootstrap" in message
    assert files_in(cache) == set()


def test_a_cache_folder_that_cannot_be_made_is_named(cache: Path, lock: Path) -> None:
    cache.write_text("a file where the folder should be")

    with pytest.raises(ConfigError, match=r"cannot keep jars in .* FORKS_CACHE_DIR"):
        class_path(lock)
