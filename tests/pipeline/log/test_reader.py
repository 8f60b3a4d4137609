"""A log's slices, read to the end."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from pipeline.errors import StateError
from pipeline.log import reader as log_module
from pipeline.log.reader import LogReader, read_until

TIMEOUT = 30.0


def test_reading_ends_at_an_end_that_leaves_nothing() -> None:
    left = [2, 1, 0]
    slices = read_until(iter(["", "ab", "", ""]), lambda: left.pop(0), TIMEOUT)
    assert list(slices) == ["", "ab", ""]


def test_reading_gives_up_on_what_is_not_there_when_its_patience_ends() -> None:
    assert list(read_until(iter(["ab", "", ""]), lambda: 1, 0.0)) == ["ab"]


class ScriptedLog(LogReader):
    """A log whose slices are given, each with the end that the reader knows by then."""

    def __init__(self, slices: list[tuple[list[int], int]]) -> None:
        self.end = -1
        self._slices = slices

    def read(self, topic: str, partition: int, offset: int = 0) -> Iterator[list[Any]]:
        del topic, partition
        for offsets, end in self._slices:
            self.end = end
            yield [SimpleNamespace(offset=lambda found=found: found) for found in offsets if found >= offset]


def offsets_read(log: LogReader, offsets: range) -> list[int]:
    return [message.offset() or 0 for messages in log.read_range("t", 0, offsets) for message in messages]


@pytest.mark.parametrize(
    "slices",
    [
        [([0, 1, 2], -1), ([3, 4, 7], -1)],
        [
            ([0, 1], -1),
            ([], 2),
            ([], 2),
            ([2, 3, 4], 2),
            ([], 5),
        ],  # a new leader's early end
        [([0, 1, 2, 3], -1), ([], 4), ([4], 4)],
        [([0, 1, 2, 3, 4, 5], -1)],
    ],
)
def test_a_range_is_read_to_its_very_end(slices: list[tuple[list[int], int]]) -> None:
    assert offsets_read(ScriptedLog(slices), range(1, 5)) == [1, 2, 3, 4]


def test_a_range_may_end_with_what_is_no_message() -> None:
    assert offsets_read(ScriptedLog([([0, 1], -1), ([], 3)]), range(3)) == [0, 1]
    assert offsets_read(ScriptedLog([]), range(3, 3)) == []


def test_a_partition_that_stays_shorter_than_its_range_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "END_PATIENCE", 0.0)
    with pytest.raises(StateError, match="t ends at offset 2 of partition 0, but had records up to 5"):
        offsets_read(ScriptedLog([([0, 1], -1), ([], 2), ([], 2)]), range(5))
