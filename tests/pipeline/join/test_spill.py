from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.join.spill import SpilledPredictions
from pipeline.records.encoding import encode
from pipeline.records.fields import FEATURES_LENGTH, Id
from pipeline.records.output_types import KUAIREC_TYPES
from pipeline.records.outputs import Prediction
from tests.support.examples import examples
from tests.support.spilling import MemoryStore

BLOCK = 4
SIZE = 1_500
"""Bytes of a block: room for five records, or less where ids are long."""


def prediction(sequence: int, at: int, event_id: Id) -> Prediction:
    return Prediction(event_id, 1, 2, at, 0.5, None, True, [0.25] * FEATURES_LENGTH, sequence // 2, sequence)


def append(spilled: SpilledPredictions, predictions: list[Prediction]) -> None:
    spilled.append(
        spilled.digester.digests([each.event_id for each in predictions]),
        [encode(each) for each in predictions],
        timestamps=np.array([each.timestamp for each in predictions], dtype=np.int64),
        sequences=np.array([each.sequence for each in predictions], dtype=np.int64),
        versions=np.array([each.model_version for each in predictions], dtype=np.int64),
    )


def assert_holds(spilled: SpilledPredictions, held: dict[Id, Prediction]) -> None:
    assert len(spilled) == len(held)
    assert spilled.find_all(list(held)) == list(held.values())
    if held:
        assert spilled.head == min(held.values(), key=lambda each: (each.timestamp, each.sequence))
        assert spilled.first == spilled.head.timestamp
        lowest = min(held.values(), key=lambda each: each.sequence)
        assert spilled.lowest == (lowest.sequence, lowest.model_version)


added = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from([1, 1, 1, 200])), min_size=1, max_size=9
)  # timestamps, and how long the ids are
actions = st.lists(
    st.one_of(
        added,
        st.lists(st.integers(0, 50), min_size=1, max_size=8),  # which are removed
        st.just("head"),
        st.just("lowest"),
    ),
    max_size=40,
)


@examples(200)
@given(drawn=actions)
def test_it_holds_what_a_dictionary_would(drawn: list[object]) -> None:
    store = MemoryStore()
    spilled = SpilledPredictions(store, KUAIREC_TYPES.predictions, bytes(16), rows=BLOCK, size=SIZE)
    held: dict[Id, Prediction] = {}
    sequence = 0
    for action in drawn:
        if isinstance(action, list) and isinstance(action[0], tuple):
            new = []
            for at, length in action:
                sequence += 1 + at % 3
                new.append(prediction(sequence, at, f"{sequence}-".ljust(length, "x")))
            append(spilled, new)
            held |= {each.event_id: each for each in new}
        elif held:
            if isinstance(action, list):
                ids = list({list(held)[number % len(held)] for number in action})
            elif action == "head":
                ids = [spilled.head.event_id]
            else:
                ids = [each.event_id for each in held.values() if each.sequence == spilled.lowest[0]]
            spilled.remove(ids)
            for event_id in ids:
                del held[event_id]
            assert not spilled.known(spilled.digester.digests(ids)).any()
        assert_holds(spilled, held)
        spilled.compact()
        assert_holds(spilled, held)


def test_an_event_that_is_not_here_is_not_found() -> None:
    spilled = SpilledPredictions(MemoryStore(), KUAIREC_TYPES.predictions, bytes(16))
    assert spilled.find_all(["a"]) is None
    assert spilled.find_all([]) == []
    append(spilled, [prediction(0, 0, "a")])
    assert spilled.find_all(["a", "b"]) is None
    assert spilled.known(spilled.digester.digests(["b", "a"])).tolist() == [False, True]
    with pytest.raises(AssertionError, match="two outcomes"):
        spilled.remove(["b"])


def test_what_is_moved_together_stays_in_order() -> None:
    """Of the first block more is left than of the second, so that it is moved after it."""
    spilled = SpilledPredictions(MemoryStore(), KUAIREC_TYPES.predictions, bytes(16), rows=BLOCK)
    append(spilled, [prediction(number, 10 * number, str(number)) for number in range(16)])
    left = ["0", "1", "4"]
    spilled.remove([str(number) for number in range(16) if str(number) not in left])
    spilled.compact()
    for event_id in left:
        assert spilled.lowest[0] == spilled.head.sequence == int(event_id)
        spilled.remove([event_id])


def test_the_place_of_closed_predictions_is_used_again() -> None:
    """One in ten waits very long; the others are closed a thousand later."""
    store = MemoryStore()
    spilled = SpilledPredictions(store, KUAIREC_TYPES.predictions, bytes(16), rows=100, size=100_000)
    waiting = 0
    for begin in range(0, 30_000, 50):
        append(spilled, [prediction(number, number, str(number)) for number in range(begin, begin + 50)])
        closed = range(begin - 1_000, begin - 950) if begin >= 1_000 else range(0)
        spilled.remove([str(number) for number in closed if number % 10])
        longest = range(begin - 10_000, begin - 9_950) if begin >= 10_000 else range(0)
        spilled.remove([str(number) for number in longest if not number % 10])
        spilled.compact()
        waiting = max(waiting, len(spilled))
    assert waiting < 2_000
    assert store.largest <= 2.5 * waiting / 100 * 100_000
    used = int(spilled._columns._blocks["used"].sum())
    assert used <= 2 * len(spilled) + 2 * 100
    spilled.remove([str(number) for number in range(29_000, 30_000)])
    spilled.remove([str(number) for number in range(20_000, 29_000, 10)])
    assert len(spilled) == len(store.data) == 0
