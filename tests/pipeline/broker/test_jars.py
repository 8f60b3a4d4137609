"""The download of Kafka's jars: what is fetched, from where, and what is said when it fails."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pooch.core
import pytest
from jgo.maven import MavenContext

from pipeline.broker.jars import LOCK, RETRIES, Jar, class_path
from pipeline.broker.launch import free_ports
from pipeline.broker.maven import repository_url
from pipeline.broker.settings import VERSION
from pipeline.errors import BrokerError, ConfigError
from tests.support.maven_repository import MavenRepository, serve

NO_TIMESTAMP = "org/example/first/1.0/first-1.0.jar"
SECOND = "org/example/deep/second/2.1/second-2.1.jar"
JARS = {NO_TIMESTAMP: b"the first jar", SECOND: b"the second jar"}


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
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MavenRepository]:
    with serve(tmp_path / "repository", JARS) as repository:
        monkeypatch.setenv("FORKS_MAVEN_URL", repository.url)
        yield repository


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits of pooch before it tries again, in seconds; nothing waits in these tests."""
    seconds: list[float] = []
    monkeypatch.setattr(pooch.core, "time", SimpleNamespace(sleep=seconds.append))
    return seconds


def jars_in(cache: Path) -> set[str]:
    """Every file in the cache folder, except that of its lock."""
    folder = cache / "jars"
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()} - {"lock"}


def test_the_committed_lock_names_each_jar_of_kafka_once() -> None:
    jars = [Jar.parse(line) for line in LOCK.read_text().splitlines()]
    names = [jar.path.name for jar in jars]

    assert f"kafka_2.13-{VERSION}.jar" in names
    assert f"kafka-clients-{VERSION}.jar" in names
    assert len(set(names)) == len(names)
    assert all(len(bytes.fromhex(jar.sha256)) == 32 for jar in jars)


def test_jars_are_downloaded_once_and_then_read_from_the_cache(
    repository: MavenRepository, cache: Path, lock: Path
) -> None:
    first = class_path(lock)
    for path in JARS:
        (repository.folder / path).unlink()

    assert class_path(lock) == first
    assert [file.read_bytes() for file in first] == list(JARS.values())
    assert jars_in(cache) == set(JARS)


def test_downloads_at_the_same_time_do_not_disturb_one_another(
    repository: MavenRepository, cache: Path, lock: Path
) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(class_path, [lock] * 8))

    assert all(answer == answers[0] for answer in answers)
    assert jars_in(cache) == set(JARS)
    assert sorted(repository.requests) == sorted(JARS)  # the others waited and found them


def test_a_jar_that_changed_in_the_cache_is_downloaded_again(
    repository: MavenRepository, cache: Path, lock: Path
) -> None:
    changed, kept = class_path(lock)
    changed.write_bytes(b"cut off")
    inode = kept.stat().st_ino
    repository.requests.clear()

    assert class_path(lock) == [changed, kept]
    assert changed.read_bytes() == JARS[NO_TIMESTAMP]
    assert kept.stat().st_ino == inode
    assert repository.requests == [NO_TIMESTAMP]
    assert jars_in(cache) == set(JARS)


def test_a_download_with_another_checksum_is_named_and_not_kept(
    repository: MavenRepository, cache: Path, lock: Path
) -> None:
    (repository.folder / SECOND).write_bytes(b"not the second jar")

    with pytest.raises(BrokerError) as raised:
        class_path(lock)
    message = str(raised.value)
    assert f"{SECOND} from {repository.url.rstrip('/')} is not the locked jar: " in message
    assert hashlib.sha256(JARS[SECOND]).hexdigest() in message
    assert hashlib.sha256(b"not the second jar").hexdigest() in message
    assert "FORKS_MAVEN_URL" in message
    assert jars_in(cache) == {NO_TIMESTAMP}


def test_a_changed_jar_stays_if_the_repository_has_no_better_one(
    repository: MavenRepository, cache: Path, lock: Path
) -> None:
    changed = class_path(lock)[0]
    for file in (changed, repository.folder / NO_TIMESTAMP):
        file.write_bytes(b"cut off")

    with pytest.raises(BrokerError, match=re.escape(NO_TIMESTAMP)):
        class_path(lock)
    assert changed.read_bytes() == b"cut off"


def test_a_download_that_fails_is_tried_again(
    repository: MavenRepository, cache: Path, lock: Path, waits: list[float]
) -> None:
    repository.failures = RETRIES

    class_path(lock)
    assert repository.requests == [NO_TIMESTAMP] * (RETRIES + 1) + [SECOND]
    assert waits == [1, 2]
    assert jars_in(cache) == set(JARS)


def test_a_jar_that_the_repository_does_not_have_is_named(
    repository: MavenRepository, cache: Path, lock: Path
) -> None:
    (repository.folder / NO_TIMESTAMP).unlink()

    address = re.escape(repository.url.rstrip("/"))
    with pytest.raises(
        BrokerError, match=rf"cannot download {NO_TIMESTAMP} of Apache Kafka .* from {address}: 404"
    ):
        class_path(lock)


def test_an_unreachable_repository_is_reported_with_what_to_do(
    cache: Path, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [port] = free_ports(1)
    monkeypatch.setenv("FORKS_MAVEN_URL", f"http://127.0.0.1:{port}")

    with pytest.raises(BrokerError) as raised:
        class_path(lock)
    message = str(raised.value)
    assert f"cannot download {NO_TIMESTAMP}" in message
    assert f"127.0.0.1:{port}" in message
    assert "Check the network" in message
    assert "FORKS_MAVEN_URL" in message
    assert "FORKS_KAFKA__BOOTSTRAP=host:port" in message
    assert "--bootstrap" in message
    assert jars_in(cache) == set()


def test_an_address_that_is_not_one_of_http_is_reported(
    cache: Path, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORKS_MAVEN_URL", "repository.example")

    with pytest.raises(BrokerError, match=rf"cannot download {NO_TIMESTAMP} .* from repository\.example: "):
        class_path(lock)


def test_a_cache_folder_that_cannot_be_made_is_named(cache: Path, lock: Path) -> None:
    cache.write_text("a file where the folder should be")

    with pytest.raises(ConfigError, match=r"cannot keep jars in .*/cache/jars: .* FORKS_CACHE_DIR"):
        class_path(lock)


def test_other_users_may_read_the_jars(repository: MavenRepository, cache: Path, lock: Path) -> None:
    assert [stat.S_IMODE(file.stat().st_mode) for file in class_path(lock)] == [0o644, 0o644]


def test_the_class_path_is_absolute_if_the_cache_folder_is_not(
    repository: MavenRepository, lock: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORKS_CACHE_DIR", os.path.relpath(tmp_path / "cache"))

    assert all(file.is_absolute() and file.exists() for file in class_path(lock))


def test_pooch_is_needed_for_downloads_only(
    repository: MavenRepository, cache: Path, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = class_path(lock)
    monkeypatch.setitem(sys.modules, "pooch", None)

    assert class_path(lock) == files
    files[0].unlink()
    with pytest.raises(ConfigError, match=r"pooch is not installed.*\"forks-stream\[broker\]\""):
        class_path(lock)


def test_without_an_address_the_repository_is_the_default_of_jgo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORKS_MAVEN_URL", raising=False)

    assert [repository_url()] == list(MavenContext().remote_repos.values())


def test_without_an_address_and_jgo_the_variable_is_named(
    cache: Path, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FORKS_MAVEN_URL", raising=False)
    monkeypatch.setitem(sys.modules, "jgo", None)

    with pytest.raises(ConfigError, match=r"jgo is not installed, .* FORKS_MAVEN_URL names none"):
        class_path(lock)
