"""Texts wait for their turn in one buffer, as they would in a dictionary."""

from __future__ import annotations

import sys
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records import waiting_texts
from pipeline.records.texts import Integers, Texts
from pipeline.records.waiting_texts import WaitingTexts
from tests.support.examples import examples

steps = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 12), st.randoms(use_true_random=False)), max_size=12
)


def text_of(number: int) -> bytes:
    return b"{%s:%d}" % (b"x" * (number * 7 % 23), number)


def texts_of(numbers: list[int]) -> tuple[Texts, Integers]:
    """Return texts, and where their prefixes end."""
    texts = [text_of(number) for number in numbers]
    found = Texts.of(texts)
    return found, found.begins + np.array([text.index(b":") for text in texts], dtype=np.int64)


@examples(200)
@given(steps=steps)
def test_they_are_kept_until_they_are_taken(
    steps: list[tuple[int, int, Random]],
) -> None:
    waiting, expected, number = WaitingTexts(), list[int](), 3
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(waiting_texts, "COMPACT_AFTER", 3)
        for added, taken, random in steps:
            new = [*range(number, number + 2 * added, 2)]
            number += 2 * added + 1
            waiting.add(np.array(new, dtype=np.int64), *texts_of(new))
            expected += new
            chosen = random.sample(expected, min(taken, len(expected)))
            expected = [each for each in expected if each not in chosen]
            for whole in (True, False):
                half = np.array(chosen[::2] if whole else chosen[1::2], dtype=np.int64)
                texts = [text_of(each) for each in half.tolist()]
                assert [*waiting.at(half)] == [*waiting.read(half)] == texts
                if whole:
                    assert [*waiting.take(half)] == texts
                else:
                    assert [*waiting.take_prefixes(half)] == [text[: text.index(b":")] for text in texts]
            assert len(waiting) == len(expected)


def test_room_of_texts_that_were_taken_is_used_again() -> None:
    waiting, count, most = WaitingTexts(), 1_000, 0
    for first in range(0, 100 * count, count):
        numbers = np.arange(first, first + count)
        waiting.add(numbers, *texts_of(numbers.tolist()))
        most = max(most, len(waiting._buffer))
        waiting.take(numbers)
    assert len(waiting) == 0
    assert most < 10 * count * 30


def test_each_takes_few_bytes_more_than_its_text() -> None:
    waiting, numbers = WaitingTexts(), np.arange(10_000)
    texts = Texts.of([b"x" * 300] * 10_000)
    waiting.add(numbers, texts, texts.begins + 200)
    columns = (waiting._numbers, waiting._offsets, waiting._behind)
    parts = (waiting._buffer, *(column._distances for column in columns))
    assert sum(map(sys.getsizeof, parts)) / 10_000 < 1.07 * (301 + 2 + 4 + 2)


def test_what_waits_no_longer_cannot_be_taken() -> None:
    waiting = WaitingTexts()
    waiting.add(np.array([2, 4]), *texts_of([2, 4]))
    waiting.take(np.array([2]))
    for numbers in ([1], [2], [3], [5], [4, 4]):
        with pytest.raises(AssertionError, match="two outcomes"):
            waiting.take(np.array(numbers))
    assert len(waiting) == 1
