"""A log's slices, made ahead and read to the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from threading import Event

import pytest

from pipeline.slices import ahead, read_until

PATIENCE = 30.0


class Source:
    """Slices to come, which tell when each is asked for."""

    def __init__(self, *slices: str | Exception) -> None:
        self.asked = [Event() for _ in slices]
        self._slices = slices

    def __iter__(self) -> Iterator[str]:
        for asked, each in zip(self.asked, self._slices, strict=True):
            asked.set()
            if isinstance(each, Exception):
                raise each
            yield each


def test_the_next_slice_is_made_while_the_present_one_is_in_use() -> None:
    source = Source("a", "b", "c")
    with closing(ahead(iter(source))) as slices:
        assert next(slices) == "a"
        assert source.asked[1].wait(PATIENCE)
        assert next(slices) == "b"


def test_what_comes_after_the_end_is_asked_for_only_when_it_is_wanted() -> None:
    source = Source("a", "", "b")
    with closing(ahead(iter(source))) as slices:
        assert [next(slices), next(slices)] == ["a", ""]
    assert not source.asked[2].is_set()


def test_an_error_comes_after_the_slices_before_it() -> None:
    slices = ahead(iter(Source("a", ValueError("torn"))))
    assert next(slices) == "a"
    with pytest.raises(ValueError, match="torn"):
        next(slices)


def test_who_closes_waits_for_the_slice_that_is_being_made() -> None:
    made = Event()

    def slow() -> Iterator[str]:
        yield "a"
        begun.set()
        allowed.wait(PATIENCE)
        made.set()
        yield "b"

    begun, allowed = Event(), Event()
    with closing(ahead(slow())) as slices:
        next(slices)
        assert begun.wait(PATIENCE)
        allowed.set()
    assert made.is_set()


def test_reading_ends_at_an_end_that_leaves_nothing() -> None:
    left = [2, 1, 0]
    slices = read_until(iter(["", "ab", "", ""]), lambda: left.pop(0), PATIENCE)
    assert list(slices) == ["", "ab", ""]


def test_reading_gives_up_on_what_is_not_there_when_its_patience_ends() -> None:
    assert list(read_until(iter(["ab", "", ""]), lambda: 1, 0.0)) == ["ab"]
