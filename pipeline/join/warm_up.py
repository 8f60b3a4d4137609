"""Compile what the join calls, before the first message comes."""

from __future__ import annotations

import numpy as np

from pipeline.config.settings import Join as JoinSettings
from pipeline.join import deadline_heap
from pipeline.join.digest_index import FEWEST
from pipeline.join.id_texts import IdTexts
from pipeline.join.prediction_columns import PredictionColumns
from pipeline.join.records import Pending
from pipeline.join.tables import Join
from pipeline.records.outputs import Prediction
from pipeline.records.texts import Texts, id_name_lengths


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    join = Join(JoinSettings())
    predictions = [Pending(number, (), number, 0, number) for number in range(FEWEST + 1)]
    join.open_all(predictions)  # so many that the index grows
    places = np.zeros((2, 1), dtype=np.int64)
    join.digester.digests_in(np.frombuffer(b"0", dtype=np.uint8), places[0], places[1] + 1)
    join.store(PredictionColumns.of([Pending(0, (), 0, 0, 0, bytes(16))]), 0)
    _warm_up_ids()
    deadline_heap.warm_up()
    join.pending.remove(np.zeros(1, dtype=np.int64))
    join.remember(join.digester.digests([0]), np.zeros(1, dtype=np.int64), [0], np.ones(1, dtype=np.bool_))
    join.first_due(0, 0, 1)
    join.forget(1)
    join.lowest_needed(0, 0)


def _warm_up_ids() -> None:
    texts, none, row = IdTexts(), np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    ids = Texts.of_ids([0], [[0]])
    texts.append(ids)
    texts.equal(none, ids, none)
    ids.begin(Texts(ids.text, none, none), none, id_name_lengths(Prediction, 1))
    texts.keep(row)
