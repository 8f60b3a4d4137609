"""A log's slices, read to the end."""

from __future__ import annotations

from pipeline.kafka.log import read_until

TIMEOUT = 30.0


def test_reading_ends_at_an_end_that_leaves_nothing() -> None:
    left = [2, 1, 0]
    slices = read_until(iter(["", "ab", "", ""]), lambda: left.pop(0), TIMEOUT)
    assert list(slices) == ["", "ab", ""]


def test_reading_gives_up_on_what_is_not_there_when_its_patience_ends() -> None:
    assert list(read_until(iter(["ab", "", ""]), lambda: 1, 0.0)) == ["ab"]
