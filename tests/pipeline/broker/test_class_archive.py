"""The archive of the broker's classes: when it is made, and where it cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGTERM, Signals

import pytest

from pipeline.broker import class_archive
from pipeline.broker.class_archive import ensure_class_archive
from pipeline.broker.java import JavaProgram
from pipeline.broker.launch import Launch
from pipeline.errors import BrokerError
from tests.pipeline.broker.test_java import install_java


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JavaProgram:
    """Let a Java 17 without archives run brokers."""
    java = install_java(tmp_path / "home", "17.0.15")
    program = JavaProgram(java, [tmp_path / "kafka.jar"], ["-Dsome=thing"], tmp_path / "classes")
    monkeypatch.setattr(class_archive, "java_program", lambda: program)
    return program


def run_with(monkeypatch: pytest.MonkeyPatch, run: Callable[[], object]) -> list[Signals]:
    """Let a function stand for the broker that makes the archive, and return how those were ended."""
    ended: list[Signals] = []

    @contextmanager
    def broker(prepare: Callable[[Path], Launch], end_signal: Signals) -> Iterator[str]:
        run()
        yield "127.0.0.1:1"
        ended.append(end_signal)

    monkeypatch.setattr(class_archive, "guarded_broker", broker)
    return ended


def test_it_is_made_once_by_a_broker_that_ends_in_good_order(
    program: JavaProgram, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = run_with(monkeypatch, lambda: program.new_archive.write_text("classes"))
    assert program.command()[1] == "-cp"

    ensure_class_archive()
    ensure_class_archive()

    assert ended == [SIGTERM]
    assert program.archive.read_text() == "classes"
    assert not program.new_archive.exists()
    assert program.command()[1] == f"-XX:SharedArchiveFile={program.archive}"
    assert capsys.readouterr().err.count("Preparing a quicker start") == 1


def test_a_java_that_writes_none_is_asked_once(
    program: JavaProgram, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = run_with(monkeypatch, lambda: None)

    ensure_class_archive()
    ensure_class_archive()

    assert len(ended) == 1
    assert program.command()[1] == "-cp"
    assert "Java wrote no class archive" in capsys.readouterr().err


def test_without_one_brokers_start_all_the_same(
    program: JavaProgram, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise BrokerError("no memory is left")

    run_with(monkeypatch, fail)

    ensure_class_archive()

    assert capsys.readouterr().err.endswith("Kafka starts without a class archive: no memory is left\n")
    assert not program.archive.exists()


def test_a_cache_that_cannot_be_written_is_named(
    program: JavaProgram, capsys: pytest.CaptureFixture[str]
) -> None:
    program.archives.write_text("")  # a file where the folder has to be

    ensure_class_archive()

    assert "cannot keep Java's class archive in" in capsys.readouterr().err


def test_each_java_and_each_set_of_jars_has_its_own(tmp_path: Path) -> None:
    javas = [install_java(tmp_path / version, version) for version in ("17.0.15", "25.0.2")]
    jars = [tmp_path / "a.jar"], [tmp_path / "a.jar", tmp_path / "b.jar"]
    programs = [JavaProgram(java, paths, [], tmp_path) for java in javas for paths in jars]

    assert len({program.archive for program in programs}) == 4
    assert programs[0].command(writing=True)[1] == f"-XX:ArchiveClassesAtExit={programs[0].new_archive}"
    assert programs[2].command(writing=True)[1] == f"-XX:AOTCacheOutput={programs[2].new_archive}"
