"""Outcomes are decoded to columns with the bits of their records, or refused as one by one."""

from __future__ import annotations

import json
import re
from functools import cache
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from pipeline.config.stream import KUAIREC, Stream
from pipeline.log.decoding import DECODE_ERRORS
from pipeline.model.snapshot import pack
from pipeline.records.decoding import NO_TIMESTAMP
from pipeline.records.encoding import encode
from pipeline.records.outcome_decoder import FEWEST, DecodedOutcomes, OutcomeDecoder, warm_up
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import Outcome
from tests.fuzz.mutations import mutated_bytes, mutated_json
from tests.pipeline.model.test_score_terms import CHANGES
from tests.pipeline.model.test_score_terms import stream as changed_stream
from tests.support.builders import WEIGHTED, new_model
from tests.support.examples import examples
from tests.support.recording import eventful_run

STREAMS = {name: changed_stream(name) for name in CHANGES} | {"kuairec": KUAIREC, "weighted": WEIGHTED}
IDS: tuple[Any, ...] = (
    0,
    7,
    -7,
    10**17,
    10**18,
    2**63 - 1,
    -(2**63),
    "e",
    "1744-2251",
    "é",
    'a"b',
    "x" * 256,
)
NUMBERS = (
    0.0,
    -0.0,
    0.5,
    -0.25,
    4e-6,
    1e-5,
    1e22,
    1e300,
    5e-324,
    0.1 + 0.2,
    123456789.123456,
    123456789012345678.0,
)
PIECES = (
    *(b'" \\ { } , : - 0 1 9 1e5 .5 null true [] "a":1, 1e999 1.0 -0 -0.0 00 01 1. 1e 1e+5 1E-5'.split()),
    *(b'9007199254740993 9223372036854775808 0.1234567890123456789 "labelled" "expired" "replaced"'.split()),
    *(b" ", b"\n", b"\x00", b"\x7f", b"\xff", "é".encode()),
)


def record(rng: Random, stream: Stream, sequence: int) -> dict[str, Any]:  # noqa: PLR0912 - a branch a field
    """An outcome of a stream, usual or not, as its text says it."""
    types, found = OutputTypes.of(stream), dict[str, Any]()
    for field in msgspec.structs.fields(types.outcome):
        name, info = field.name, msgspec.inspect.type_info(field.type)
        if not field.required:
            continue
        if name == "event_id" or name.endswith("_id") or name.startswith("entity_"):
            value: Any = rng.choice(IDS) if rng.random() < 0.3 else rng.randrange(10**6)
        elif name == "features":
            few = [round(rng.random() * 10 ** rng.randrange(4), 6) for _ in range(types.features)]
            value = few if rng.random() < 0.8 else [rng.choice(NUMBERS) for _ in few]
        elif name == "tables":
            value = {"prices": rng.randrange(5)}
        elif name == "status":
            value = rng.choice(["labelled", "labelled", "expired", "corrected", "replaced"])
        elif name == "weight":
            value = rng.choice([0.0, 1.0, 2.25, 1000.0, 0.1 + 0.2])
        elif name in {"timestamp", "label_timestamp"}:
            value = rng.choice([0, 1594463095824, 2**53, rng.randrange(10**9)])
        elif "bool" in str(field.type) or "Bool" in str(info):
            value = rng.random() < 0.5
        elif name in {"model_version", "prediction_sequence", "position"}:
            value = rng.randrange(1_000)
        elif name == "sequence":
            value = sequence
        else:
            value = rng.choice([*NUMBERS, rng.random(), rng.random()])
        if "None" in str(field.type) and rng.random() < 0.15:
            value = None
        found[field.encode_name] = value
    if rng.random() < 0.1:
        found |= rng.choice(
            [{"asked": True}, {"challengers": {"small": 0.5}}, {"former": 0.5}, {"further": 1}]
        )
    return found


def changed(rng: Random, message: dict[str, Any]) -> bytes:
    kind = rng.random()
    if kind < 0.1:
        return encode(mutated_json(rng, message))
    text = encode(message)
    if kind < 0.2:
        return mutated_bytes(rng, text)
    if kind < 0.6:
        at = rng.randrange(len(text))
        return text[:at] + rng.choice(PIECES) + text[at + rng.randrange(3) :]
    return text


def assert_alike(found: DecodedOutcomes, expected: DecodedOutcomes) -> None:
    for name in ("sequences", "prediction_sequences", "prediction_numbers", "ids"):
        assert getattr(found, name) == getattr(expected, name), name
    assert [[type(each) for each in column] for column in found.ids] == [
        [type(each) for each in column] for column in expected.ids
    ]
    for name in ("timestamps", "label_timestamps", "learned", "labels", "weights", "features"):
        mine, other = getattr(found, name), getattr(expected, name)
        assert (mine is None) == (other is None), name
        assert mine is None or mine.tobytes() == other.tobytes(), name
    for row in range(len(found)):
        assert found.events[row] == expected.events[row] == encode(expected.record(row).event_id)
        assert asdict(found.record(row)) == asdict(expected.record(row))


def one_by_one(types: OutputTypes, values: list[bytes]) -> DecodedOutcomes:
    """Decode below the number from which outcomes are scanned."""
    pieces = [OutcomeDecoder(types).decode([value]) for value in values]
    records = [piece.record(0) for piece in pieces]
    return DecodedOutcomes.of(records, np.concatenate([piece.features for piece in pieces]), types.entities)


@pytest.mark.parametrize("name", STREAMS)
@examples(15)
@given(seed=st.integers(0, 2**32))
def test_columns_are_those_of_records_decoded_one_by_one(name: str, seed: int) -> None:
    rng, stream = Random(seed), STREAMS[name]
    types = OutputTypes.of(stream)
    decoder, texts = OutcomeDecoder(types), []
    padding = [encode(record(rng, stream, row)) for row in range(FEWEST)]
    for sequence in range(3 * FEWEST):
        text = changed(rng, record(rng, stream, sequence))
        try:
            one_by_one(types, [text])
        except DECODE_ERRORS as error:
            with pytest.raises(type(error)):
                decoder.decode([*padding, text])
        else:
            texts.append(text)
    assert_alike(decoder.decode(texts), one_by_one(types, texts))


@cache
def written() -> list[bytes]:
    return [source.value or b"" for source in eventful_run().outcomes]


def test_what_a_worker_writes_is_usual() -> None:
    found = OutcomeDecoder(OutputTypes.of(KUAIREC)).decode(written())
    assert not found.records
    assert (found.label_timestamps == NO_TIMESTAMP).any()


def test_outcomes_with_space_and_in_another_order_are_usual_too() -> None:
    texts = [json.loads(text) for text in written()[:FEWEST]]
    values = [json.dumps(dict(reversed(text.items()))).encode().replace(b", ", b" ,") for text in texts]
    values = [re.sub(rb"(?<=[0-9]) ,(?=[-0-9])", b",", value) for value in values]  # but not in the features
    types = OutputTypes.of(KUAIREC)
    found = OutcomeDecoder(types).decode(values)
    assert not found.records
    assert_alike(found, one_by_one(types, values))


def test_a_part_of_an_outcome_is_not_read_on_in_the_next() -> None:
    text = written()[0]
    for cut in range(1, len(text)):
        with pytest.raises(DECODE_ERRORS):
            OutcomeDecoder(OutputTypes.of(KUAIREC)).decode([text[:cut], text[cut:], *written()[:FEWEST]])


@examples(20)
@given(others=st.sets(st.integers(0, 199)), cuts=st.sets(st.integers(1, 199)))
def test_a_model_has_the_same_snapshot_whatever_is_decoded_to_columns(
    others: set[int], cuts: set[int]
) -> None:
    records = [msgspec.json.decode(value, type=Outcome) for value in written()]
    expected, outcomes_learned = new_model(), new_model()
    for row in others:
        replaced = {"status": "replaced", "former": 0.25} if row % 3 else {"asked": True}
        records[row] = replace(records[row], **replaced)
    for each in records:
        expected.learn_one(each)
    found = OutcomeDecoder(OutputTypes.of(KUAIREC)).decode([*map(encode, records)])
    assert {*found.records} == others
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(records)], strict=True):
        outcomes_learned.learn_columns(found[begin:end])
    assert pack(outcomes_learned) == pack(expected)


def test_what_a_worker_compiles_at_its_start_is_usual() -> None:
    warm_up()
