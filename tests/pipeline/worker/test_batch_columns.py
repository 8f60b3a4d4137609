"""Batches that are encoded column by column have the bytes of those that are encoded record by record."""

from __future__ import annotations

import struct
from typing import Any
from unittest.mock import patch

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pipeline.config.durations import AS_TEXT
from pipeline.config.stream import CARRIED, Stream
from pipeline.join.prediction_columns import UNDECIDED, PredictionColumns
from pipeline.join.records import ChallengerScores
from pipeline.records import column_encoder, texts, waiting_texts
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.fields import Id
from pipeline.records.output_types import KUAIREC_TYPES, OutputTypes
from pipeline.records.slates import item_number
from pipeline.records.texts import Texts
from pipeline.task.batch import Batch
from pipeline.task.columns import Corrections, OutcomeColumns
from pipeline.worker.batch_columns import FEWEST
from pipeline.worker.encoder import EncodedBatch, RecordEncoder
from tests.support import slates
from tests.support.builders import WEIGHTED
from tests.support.examples import examples
from tests.support.live_tables import STREAM as WITH_TABLES

DUMPED = WITH_TABLES.model_dump(mode="json", context=AS_TEXT)
CARRYING = Stream.model_validate(
    DUMPED | {"interactions": DUMPED["interactions"] | {name: f"/{name}" for name in CARRIED}}
)
TYPES = {
    "kuairec": KUAIREC_TYPES,
    "weighted": OutputTypes.of(WEIGHTED),
    "tables": OutputTypes.of(WITH_TABLES),
    "carrying": OutputTypes.of(CARRYING),
    "slates": slates.TYPES,
}

ids: st.SearchStrategy[Id] = (
    st.integers(-(2**63), 2**63 - 1)
    | st.text(min_size=1, max_size=20)
    | st.sampled_from(
        ['"', "\\", "\n", "\0", "é", "日本", "🎬", '"sequence":', "}\n{", "x" * 256, "\u2028", "\x7f"]
    )
)
any_bits = st.integers(0, 2**64 - 1).map(lambda bits: float(struct.unpack("d", struct.pack("Q", bits))[0]))
numbers: st.SearchStrategy[float] = (
    st.floats()
    | any_bits
    | st.floats(-5, 5)
    | st.integers(-3, 10**17)
    | st.sampled_from(
        [0.0, -0.0, 5e-324, 2.2e-308, 1e-7, 1e-6, 1e-5, 1e-4, 1e15, 1e16, 1e17, 1e21, 1e22, 1e308, 1]
    )
)
features = st.integers(-(10**9), 10**9).map(lambda units: units / 1e6) | st.sampled_from(
    [0.0, -0.0, 1e-6, 0.1]
)


def column(draw: st.DrawFn, values: st.SearchStrategy[Any], count: int) -> list[Any]:
    return draw(st.lists(values, min_size=count, max_size=count))


@st.composite
def batches(draw: st.DrawFn, types: OutputTypes) -> list[Batch]:
    """Consecutive batches. Each prediction gets an outcome once, some in the batch of the prediction."""
    found, waiting, closed, last = list[Batch](), list[int](), 0, dict[int, int]()
    corrections = draw(st.booleans())
    first = draw(st.sampled_from([0, 7, 95, 998]))
    for _ in range(draw(st.integers(1, 3))):
        items = [draw(st.integers(1, 3)) if types.slates else 1 for _ in range(draw(st.integers(0, 6)))]
        sequences = [first + number for number, size in enumerate(items) for _ in range(size)]
        positions = [position for size in items for position in range(size)]
        own = numbers_of(sequences, positions) if types.slates else sequences
        waiting += own
        chosen = draw(st.lists(st.sampled_from(waiting), unique=True, max_size=6)) if waiting else []
        waiting = [each for each in waiting if each not in chosen]
        predictions = draw(prediction_columns(types, own))
        last |= {number: closed + row for row, number in enumerate(chosen)}
        again = (
            draw(st.lists(st.sampled_from([*last]), unique=True, max_size=3)) if last and corrections else []
        )
        corrected = {len(chosen) + row: last[number] for row, number in enumerate(again)}
        last |= {number: closed + len(chosen) + row for row, number in enumerate(again)}
        outcomes = draw(outcome_columns(types, closed, [*chosen, *again], corrected))
        found.append(Batch(predictions, outcomes, first_request=closed, corrections=corrections))
        first, closed = first + len(items), closed + len(chosen) + len(again)
    return found


def numbers_of(sequences: list[int], positions: list[int]) -> list[int]:
    return [item_number(sequence, position) for sequence, position in zip(sequences, positions, strict=True)]


def challengers(count: int) -> st.SearchStrategy[list[ChallengerScores | None]]:
    scores = st.dictionaries(st.sampled_from("ab"), numbers).map(ChallengerScores.of)
    return st.just([]) | st.lists(st.none() | scores, min_size=count, max_size=count)


def asked(count: int) -> st.SearchStrategy[NDArray[np.int8]]:
    several = st.lists(st.sampled_from([UNDECIDED, 0, 1]), min_size=count, max_size=count)
    return (st.just([UNDECIDED] * count) | several).map(lambda each: np.array(each, dtype=np.int8))


@st.composite
def prediction_columns(draw: st.DrawFn, types: OutputTypes, own: list[int]) -> PredictionColumns:
    count = len(own)
    fields = [field.name for field in msgspec.structs.fields(types.prediction)]
    carried = [name for name in CARRIED if name in fields]
    width = draw(st.sampled_from([1, types.features]))
    of_features = draw(st.sampled_from([features, features | numbers]))
    return PredictionColumns(
        np.array(own, dtype=np.int64),
        Texts.of_ids(column(draw, ids, count), [column(draw, ids, count) for _ in range(types.entities)]),
        np.array(column(draw, st.integers(0, 2**53), count), dtype=np.int64),
        np.array(column(draw, st.integers(0, 2**40), count), dtype=np.int64),
        np.array(column(draw, numbers, count), dtype=np.float64),
        np.array(column(draw, of_features, count * width), dtype=np.float64).reshape(count, width),
        draw(asked(count)),
        draw(challengers(count)),
        of_slates=types.slates is not None,
        probabilities=column(draw, st.none() | numbers, count),
        predicted=column(draw, st.booleans() | numbers, count),
        tables=column(draw, st.fixed_dictionaries({"items": st.integers(0, 9), "é": st.just(0)}), count)
        if "tables" in fields
        else [],
        carried=column(draw, st.tuples(*[st.none() | numbers] * len(carried)), count) if carried else [],
    )


@st.composite
def outcome_columns(
    draw: st.DrawFn, types: OutputTypes, first: int, chosen: list[int], corrected: dict[int, int]
) -> OutcomeColumns:
    count = len(chosen)
    weighted = "weight" in [field.name for field in msgspec.structs.fields(types.label_fields)]
    make: Any = types.share
    share = make(*[0 for field in msgspec.structs.fields(types.share) if field.required])
    missing = st.just(NO_TIMESTAMP)
    kinds = [st.integers(0, 2**53), missing, missing | st.integers(0, 9)]
    moments = np.array(column(draw, draw(st.sampled_from(kinds)), count), dtype=np.int64)
    weights = np.array(column(draw, numbers, count), dtype=np.float64) if weighted else None
    return OutcomeColumns(
        first,
        np.array(chosen, dtype=np.int64),
        np.where(moments == NO_TIMESTAMP, np.nan, np.array(column(draw, numbers, count), dtype=np.float64)),
        moments,
        weights,
        of_slates=types.slates is not None,
        challengers=draw(challengers(count)),
        asked=draw(st.none() | asked(count)),
        corrections=Corrections(
            np.array([*corrected], dtype=np.int64),
            np.array([*corrected.values()], dtype=np.int64),
            np.array(column(draw, st.just(np.nan) | numbers, len(corrected)), dtype=np.float64),
            np.array(
                column(draw, st.just(1.0) | numbers if weighted else st.just(1.0), len(corrected)),
                dtype=np.float64,
            ),
        ),
        replaces=draw(st.booleans()),
        keys=Texts.of_ids(column(draw, ids, count), []).column(0),
        timestamps=np.array(column(draw, st.integers(0, 9), count), dtype=np.int64),
        scores=np.zeros(count),
        labels=column(draw, st.none() | st.booleans() | numbers, count),
        correct=column(draw, st.none() | st.booleans(), count),
        losses=column(draw, st.none() | numbers, count),
        shared={
            row: [share] * draw(st.integers(1, 2)) for row in range(count) if draw(st.integers(0, 4)) == 0
        },
    )


def listed(encoded: EncodedBatch) -> list[Any]:
    return [(list(each.values), list(each.keys), list(each.timestamps)) for each in encoded]


@pytest.mark.parametrize("name", TYPES)
@examples(60)
@given(data=st.data())
def test_by_columns_as_record_by_record(name: str, data: st.DataObject) -> None:
    types = TYPES[name]
    by_columns, by_records, mixed = (RecordEncoder(types) for _ in range(3))
    for number, batch in enumerate(data.draw(batches(types))):
        expected = listed(by_records._encode_records(batch))
        assert listed(by_columns._encode_columns(batch)) == expected
        either = mixed._encode_columns if number % 2 else mixed._encode_records
        assert listed(either(batch)) == expected
        assert len(by_columns) == len(by_records) == len(mixed)


def predicted(first: int, count: int) -> PredictionColumns:
    """Predictions of KuaiRec's stream."""
    return PredictionColumns(
        np.arange(first, first + count),
        Texts.of_ids([*map(str, range(first, first + count))], (["u"] * count, [7] * count)),
        np.full(count, 5),
        np.zeros(count, dtype=np.int64),
        np.full(count, 0.5),
        np.full((count, 10), 0.25),
        np.full(count, UNDECIDED, dtype=np.int8),
        probabilities=[0.625] * count,
        predicted=[True] * count,
    )


def labelled(first: int, sequences: list[int]) -> OutcomeColumns:
    """Outcomes of KuaiRec's stream."""
    count = len(sequences)
    return OutcomeColumns(
        first,
        np.array(sequences, dtype=np.int64),
        np.full(count, 0.75),
        np.full(count, 9),
        keys=Texts.of_ids([0] * count, []).column(0),
        timestamps=np.full(count, 5),
        scores=np.full(count, 0.5),
        labels=[True] * count,
        correct=[True] * count,
        losses=[0.25] * count,
    )


def test_waiting_predictions_are_restored_and_spilled_as_record_by_record() -> None:
    predictions = predicted(0, 6)
    texts = [*RecordEncoder().encode(Batch(predictions)).predictions.values]
    records = [KUAIREC_TYPES.predictions.decode(text) for text in texts]
    by_columns, by_records = RecordEncoder(), RecordEncoder()
    for encoder in (by_columns, by_records):
        encoder.restore(records[:2])
        encoder.restore([])
        encoder.restore(records[2:])
        assert encoder.take(np.array([1, 3])) == [texts[1], texts[3]]
        assert encoder.take(np.array([], dtype=np.int64)) == []
        assert len(encoder) == 4
    batch = Batch(predicted(6, 2), labelled(0, [3, 7, 2, 1]), spilled=[records[3], records[1]])
    expected = by_records._encode_records(batch)
    found = by_columns._encode_columns(batch)
    assert listed(found) == listed(expected)
    begin = found.outcomes.values[0]
    assert begin.startswith(texts[3].partition(b'"sequence"')[0])
    assert len(by_columns) == len(by_records) == 4
    assert by_columns.take(np.array([0, 4, 5, 6])) == by_records.take(np.array([0, 4, 5, 6]))


@pytest.mark.parametrize("name", ["_encode_columns", "_encode_records"])
def test_a_prediction_has_one_outcome(name: str) -> None:
    encoder = RecordEncoder()
    encoder.encode(Batch(predicted(0, 3)))
    encode = getattr(encoder, name)
    encode(Batch(outcomes=labelled(0, [1])))
    for unknown in ([1], [0, 0], [3]):
        with pytest.raises(AssertionError, match="two outcomes"):
            encode(Batch(outcomes=labelled(1, unknown)))


def test_many_records_are_encoded_by_columns_and_few_record_by_record() -> None:
    half = FEWEST // 2
    many = Batch(predicted(0, half), labelled(0, [*range(half)]))
    few = Batch(predicted(0, half - 1), labelled(0, [*range(half - 1)]))
    with patch.object(RecordEncoder, "_encode_records", side_effect=AssertionError("record by record")):
        assert len(RecordEncoder().encode(many).outcomes.values) == half
    with patch.object(RecordEncoder, "_encode_columns", side_effect=AssertionError("by columns")):
        assert len(RecordEncoder().encode(few).outcomes.values) == half - 1


def test_all_is_compiled_before_the_first_batch() -> None:
    column_encoder.warm_up()
    waiting_texts.warm_up()
    functions = column_encoder._splice, texts.join_texts
    compiled: list[Any] = [*functions]
    before = [len(each.signatures) for each in compiled]
    encoder = RecordEncoder()
    encoder._encode_columns(Batch(predicted(0, 3)))
    encoder._encode_columns(Batch(predicted(3, 2), labelled(0, [0, 4])))
    [spilled] = [KUAIREC_TYPES.predictions.decode(text) for text in encoder.take(np.array([1]))]
    encoder._encode_columns(Batch(outcomes=labelled(2, [1, 2]), spilled=[spilled]))
    encoder._waiting.compact()
    assert [len(each.signatures) for each in compiled] == before
