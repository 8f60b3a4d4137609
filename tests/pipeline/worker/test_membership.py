"""Whether another worker has a worker's name, by the members that the group reports."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka import Consumer

from pipeline.config.settings import Kafka, Worker
from pipeline.worker import membership
from pipeline.worker.membership import JOIN_TIMEOUT, Membership


class Group:
    """Tells who has the name, one answer after the other; each takes so many seconds."""

    def __init__(self, holders: list[str], seconds: float) -> None:
        self.now = 0.0
        self._holders: Iterator[str] = iter(holders)
        self._seconds = seconds

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def describe(self, _: Kafka, group: str, timeout: float) -> SimpleNamespace:
        assert group
        assert timeout > 0.0
        self.now += self._seconds
        holder = next(self._holders)
        members = [SimpleNamespace(group_instance_id="node", member_id=holder)] if holder else []
        return SimpleNamespace(members=members)


def replaced(monkeypatch: pytest.MonkeyPatch, holders: list[str], seconds: float = 0.1) -> bool:
    group = Group(holders, seconds)
    monkeypatch.setattr(membership, "describe_group", group.describe)
    monkeypatch.setattr(membership, "time", group)
    consumer = cast(Consumer, SimpleNamespace(memberid=lambda: "own"))
    return Membership(Kafka(instance="node"), Worker(), consumer).replaced()


def test_another_member_under_the_same_name_has_replaced_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    assert replaced(monkeypatch, ["own", "", "other", "other"])


def test_who_is_seen_late_is_looked_at_again_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert replaced(monkeypatch, ["other", "other"], seconds=2 * JOIN_TIMEOUT)


def test_nobody_is_waited_for_longer_than_it_takes_to_join(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not replaced(monkeypatch, ["own"], seconds=2 * JOIN_TIMEOUT)
    assert not replaced(monkeypatch, ["", "other", ""], seconds=JOIN_TIMEOUT / 3)
