from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.join.digest_index import EMPTY, Rows
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


def rows_of(spilled: SpilledPredictions, event_ids: Sequence[Id]) -> Rows:
    """Return the rows of events."""
    return spilled.find(spilled.digester.digests(event_ids))


def first_of(spilled: SpilledPredictions) -> Prediction:
    """Return the prediction that is first by time and sequence."""
    [first] = spilled.read(spilled.first_rows(2**62, 1))
    return first


def remove(spilled: SpilledPredictions, event_ids: Sequence[Id]) -> None:
    """Remove the predictions of events."""
    spilled.remove(rows_of(spilled, event_ids))


def assert_holds(spilled: SpilledPredictions, held: dict[Id, Prediction]) -> None:
    assert len(spilled) == len(held)
    assert spilled.read(rows_of(spilled, list(held))) == list(held.values())
    if held:
        assert first_of(spilled) == min(held.values(), key=lambda each: (each.timestamp, each.sequence))
        assert spilled.first == first_of(spilled).timestamp
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
                ids = [first_of(spilled).event_id]
            else:
                ids = [each.event_id for each in held.values() if each.sequence == spilled.lowest[0]]
            remove(spilled, ids)
            for event_id in ids:
                del held[event_id]
            assert (rows_of(spilled, ids) == EMPTY).all()
        assert_holds(spilled, held)
        spilled.compact()
        assert_holds(spilled, held)


def test_an_event_that_is_not_here_is_not_found() -> None:
    spilled = SpilledPredictions(MemoryStore(), KUAIREC_TYPES.predictions, bytes(16))
    assert rows_of(spilled, ["a"]).tolist() == [EMPTY]
    append(spilled, [prediction(0, 0, "a")])
    assert rows_of(spilled, ["b", "a"]).tolist() == [EMPTY, 0]
    with pytest.raises(AssertionError, match="two outcomes"):
        remove(spilled, ["b"])


def test_what_is_moved_together_stays_in_order() -> None:
    """Of the first block more is left than of the second, so that it is moved after it."""
    spilled = SpilledPredictions(MemoryStore(), KUAIREC_TYPES.predictions, bytes(16), rows=BLOCK)
    append(spilled, [prediction(number, 10 * number, str(number)) for number in range(16)])
    left = ["0", "1", "4"]
    remove(spilled, [str(number) for number in range(16) if str(number) not in left])
    spilled.compact()
    for event_id in left:
        assert spilled.lowest[0] == first_of(spilled).sequence == int(event_id)
        remove(spilled, [event_id])


def test_the_place_of_closed_predictions_is_used_again() -> None:
    """One in ten waits very long; the others are closed a thousand later."""
    store = MemoryStore()
    spilled = SpilledPredictions(store, KUAIREC_TYPES.predictions, bytes(16), rows=100, size=100_000)
    waiting = 0
    for begin in range(0, 30_000, 50):
        append(spilled, [prediction(number, number, str(number)) for number in range(begin, begin + 50)])
        closed = range(begin - 1_000, begin - 950) if begin >= 1_000 else range(0)
        remove(spilled, [str(number) for number in closed if number % 10])
        longest = range(begin - 10_000, begin - 9_950) if begin >= 10_000 else range(0)
        remove(spilled, [str(number) for number in longest if not number % 10])
        spilled.compact()
        waiting = max(waiting, len(spilled))
    assert waiting < 2_000
    assert store.largest <= 2.5 * waiting / 100 * 100_000
    used = int(spilled._columns._blocks["used"].sum())
    assert used <= 2 * len(spilled) + 2 * 100
    remove(spilled, [str(number) for number in range(29_000, 30_000)])
    remove(spilled, [str(number) for number in range(20_000, 29_000, 10)])
    assert len(spilled) == len(store.data) == 0
