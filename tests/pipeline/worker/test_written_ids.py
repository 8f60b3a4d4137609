"""The ids of waiting predictions are those of their records, whatever they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Join as JoinSettings
from pipeline.join import event_rows
from pipeline.join.records import Pending
from pipeline.join.tables import Join
from pipeline.records.fields import Id
from pipeline.records.outputs import Prediction
from pipeline.records.texts import Texts
from pipeline.worker.encoder import RecordEncoder

ids = st.integers(-(2**63), 2**63 - 1) | st.text(min_size=1, max_size=6) | st.sampled_from([1, 11, "1", "1,"])
rows = st.lists(
    st.tuples(ids, ids, ids), min_size=1, max_size=8, unique_by=lambda row: (type(row[0]), row[0])
)


def prediction(row: tuple[Id, Id, Id], number: int) -> Prediction:
    return Prediction(*row, number, 0.5, None, True, [0.25] * 10, model_version=0, sequence=number)


@given(rows=rows, written=st.integers(0, 8), dropped=st.sets(st.integers(0, 7)))
def test_ids_are_read_from_the_records(
    rows: list[tuple[Id, Id, Id]], written: int, dropped: set[int]
) -> None:
    join, encoder = Join(JoinSettings()), RecordEncoder()
    records = [prediction(row, number) for number, row in enumerate(rows)]
    for begin, end in ((0, written), (written, len(rows))):
        if waiting := records[begin:end]:
            join.open_all([*map(Pending.of, waiting)])
        if begin == 0:
            encoder.restore(waiting)
            join.pending.read_ids_from(encoder)
    own = Texts.of_ids([row[0] for row in rows], [[row[1] for row in rows], [row[2] for row in rows]])
    for join_row, row in enumerate(rows):
        [at] = join.pending.ids_of(np.array([join_row]))
        assert tuple(at) == row
        for other_row, other in enumerate(rows):
            [same] = join.pending.same_ids(np.array([join_row]), own, np.array([other_row])).tolist()
            assert same == ([*map(type, row)] == [*map(type, other)] and row == other)
    every = np.arange(len(rows))
    assert [*map(tuple, join.pending.ids_of(every[::-1]))] == rows[::-1]
    assert join.pending.same_ids(every, own, every).all()
    assert len(rows) == 1 or not join.pending.same_ids(every, own, every[::-1].copy()).all()


@pytest.mark.parametrize("other", [("e", 7, 1), ("e", 7, "11"), ("e", 1, 11), ("e", 71, 1), ("f", 7, 11)])
def test_ids_that_begin_alike_differ(other: tuple[Id, Id, Id]) -> None:
    encoder, row = RecordEncoder(), np.zeros(1, dtype=np.int64)
    encoder.restore([prediction(("e", 7, 11), 0)])
    for given_ids, same in ((("e", 7, 11), True), (other, False)):
        event_id, *ids = given_ids
        assert encoder.same_ids(row, Texts.of_ids([event_id], [[each] for each in ids]), row).tolist() == [
            same
        ]


def test_rows_that_move_keep_their_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_rows, "SPARE_ROWS", 0)
    join, encoder, made = Join(JoinSettings()), RecordEncoder(), 0
    for _ in range(12):
        records = [prediction((made + row, f"u{made + row}", row), made + row) for row in range(400)]
        made += len(records)
        join.open_all([*map(Pending.of, records)])
        join.pending.remove(join.pending.live()[: 300 if made > 800 else 0])
        encoder.restore(records)
        if made % 800 == 0:
            join.pending.read_ids_from(encoder)
        for row in join.pending.live().tolist():
            [at] = join.pending.ids_of(np.array([row]))
            number = int(join.pending.numbers[row])
            assert at == [number, f"u{number}", number % 400]
    assert join.pending.end < made, "they have moved"
