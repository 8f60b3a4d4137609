"""A worker asks for schemas in the background, one at a time, and not more often than it should."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import pairwise

import pytest
import structlog

from pipeline.config.settings import Registry
from pipeline.errors import RegistryError
from pipeline.kafka.registry import SchemaRegistry
from pipeline.records.schemas import SchemaUnavailableError, UnknownSchemaError, WriterSchema
from pipeline.worker import schema_lookup as module
from pipeline.worker.schema_lookup import BURST, SchemaLookup

pytest.importorskip("fastavro", reason="the extra `registry` is not installed")
SCHEMA = WriterSchema("AVRO", '"int"')


class Answers(SchemaRegistry):
    """A registry that answers what it is told to, in whichever thread asks."""

    def __init__(self) -> None:
        super().__init__(Registry(url="http://127.0.0.1:1"), timeout=0.1)
        self.asked: list[int] = []
        self.answer: Callable[[int], WriterSchema | None] = lambda _: SCHEMA

    def fetch(self, schema_id: int) -> WriterSchema | None:
        self.asked.append(schema_id)
        return self.answer(schema_id)


def away(_: int) -> WriterSchema | None:
    raise RegistryError("it is away")


def eventually(lookup: SchemaLookup, schema_id: int) -> WriterSchema:
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        try:
            return lookup.get(schema_id)
        except SchemaUnavailableError:
            time.sleep(0.001)
    raise AssertionError("no answer came")


@pytest.fixture
def registry() -> Answers:
    return Answers()


def test_an_answer_comes_later_and_is_asked_for_once(registry: Answers) -> None:
    lookup = SchemaLookup(registry)
    with pytest.raises(SchemaUnavailableError):
        lookup.get(1)
    assert eventually(lookup, 1) == SCHEMA
    assert lookup.get(1) == SCHEMA
    assert registry.asked == [1]
    assert (lookup.found, lookup.unknown, lookup.failed) == (1, 0, 0)


def test_a_slow_answer_holds_nobody_up(registry: Answers) -> None:
    lookup, release = SchemaLookup(registry), threading.Event()

    def answer(_: int) -> WriterSchema:
        release.wait(60.0)
        return SCHEMA

    registry.answer = answer
    for schema_id in (1, 2, 1, 3):
        with pytest.raises(SchemaUnavailableError):
            lookup.get(schema_id)
    assert registry.asked == [1]
    release.set()
    assert eventually(lookup, 2) == SCHEMA


def test_that_there_is_no_schema_is_an_answer(registry: Answers) -> None:
    lookup = SchemaLookup(registry)
    registry.answer = lambda _: None
    with pytest.raises(UnknownSchemaError):
        eventually(lookup, 1)
    assert (lookup.found, lookup.unknown, lookup.failed) == (0, 1, 0)


def test_a_registry_that_is_away_is_said_once_and_so_is_that_it_is_back(
    registry: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookup = SchemaLookup(registry)
    registry.answer = away
    monkeypatch.setattr(module, "MAX_BACKOFF", 0.0)
    with structlog.testing.capture_logs() as logs:
        while lookup.failed < 3:
            with pytest.raises(SchemaUnavailableError):
                lookup.get(7)
        said = [lookup.away]
        registry.answer = lambda _: SCHEMA
        assert eventually(lookup, 7) == SCHEMA
    assert [*said, lookup.away] == [True, False]
    warning, back = logs
    assert (warning["log_level"], warning["schema"], warning["reason"]) == ("warning", 7, "it is away")
    assert back["event"] == "the schema registry answers again"


def test_attempts_become_seldom_while_the_registry_is_away(
    registry: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1_000.0
    monkeypatch.setattr(module, "time", type("Clock", (), {"monotonic": staticmethod(lambda: now)}))
    lookup = SchemaLookup(registry)
    registry.answer = away
    times: list[float] = []
    for step in range(600):
        now = 1_000.0 + step / 10
        with pytest.raises(SchemaUnavailableError):
            lookup.get(1)
        if lookup._call is not None:
            lookup._call._thread.join()
            if len(registry.asked) > len(times):
                times.append(now)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert gaps[:4] == pytest.approx([0.6, 1.1, 2.1, 4.1], abs=0.11)
    assert max(gaps) <= module.MAX_BACKOFF + 0.2


def test_a_flood_of_ids_is_no_flood_of_questions(registry: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(module, "time", type("Clock", (), {"monotonic": staticmethod(lambda: now)}))
    lookup = SchemaLookup(registry)
    registry.answer = lambda _: None
    for step in range(10_000):
        now = 1_000.0 + step / 1_000
        try:
            lookup.get(step)
        except (SchemaUnavailableError, UnknownSchemaError):
            if lookup._call is not None:
                lookup._call._thread.join()
    assert BURST + 95 <= len(registry.asked) <= BURST + 101


def test_an_answer_that_never_ends_is_given_up(registry: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    lookup, release = SchemaLookup(registry), threading.Event()

    def answer(_: int) -> WriterSchema | None:
        release.wait(60.0)
        return None

    registry.answer = answer
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            with pytest.raises(SchemaUnavailableError):
                lookup.get(1)
    assert lookup.failed == 1
    assert "has not answered within 0 s" in logs[0]["reason"]
    release.set()
