"""Ids as text and features in millionths come back as they were, whatever they are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pipeline.join.id_texts import IdTexts
from pipeline.join.scored_columns import ScoredColumns
from pipeline.records.texts import Texts

ids = st.integers(-(2**63), 2**63 - 1) | st.text(min_size=1, max_size=6)
values = st.integers(-(10**10), 10**10).map(lambda n: n / 1e6) | st.floats() | st.just(-0.0)


@given(rows=st.lists(st.tuples(ids, ids, ids), min_size=1, max_size=12), data=st.data())
def test_ids_come_back(rows: list[tuple[int | str, ...]], data: st.DataObject) -> None:
    texts, columns = IdTexts(), [*map(list, zip(*rows, strict=True))]
    own = Texts.of_ids(columns[0], columns[1:])
    texts.append(own)
    kept = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1), min_size=1)))
    texts.keep(np.array(kept))
    places = np.arange(len(kept))
    assert [*map(tuple, texts.of(places))] == [rows[row] for row in kept]
    assert texts.of(places[:0]) == []
    assert texts.equal(places, own, np.array(kept)).all()
    for row in range(len(rows)):
        assert texts.equal(places[:1], own, np.array([row])).tolist() == [rows[row] == rows[kept[0]]]


@given(batches=st.lists(st.lists(st.tuples(values, values, values), min_size=1, max_size=4), max_size=5))
def test_features_come_back_bit_for_bit(batches: list[list[tuple[float, ...]]]) -> None:
    columns, expected = ScoredColumns(), np.empty((0, 3))
    for batch in batches:
        begin, scored = len(expected), np.array(batch)
        columns.resize(begin + len(batch))
        columns.store(begin + np.arange(len(batch)), scored[:, 0], scored[:, 1:])
        expected = np.concatenate([expected, scored])
        assert np.column_stack(columns.of(np.arange(len(expected)))).tobytes() == expected.tobytes()
