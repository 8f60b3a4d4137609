"""Outcomes are decoded with their features in columns; records that no worker wrote are refused."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from msgspec.structs import asdict, replace

from pipeline.records.encoding import encode
from pipeline.records.outcome_decoder import OutcomeDecoder
from pipeline.records.output_types import KUAIREC_TYPES
from pipeline.records.outputs import Outcome, RawOutcome
from tests.support.recording import eventful_run

VALUES = [source.value or b"" for source in eventful_run().outcomes]
PLAIN = [msgspec.json.decode(value, type=Outcome) for value in VALUES]
DECODER = OutcomeDecoder(KUAIREC_TYPES)


def test_outcomes_of_columns_equal_outcomes() -> None:
    found = DECODER.decode(VALUES)
    assert found.features.tolist() == [outcome.features for outcome in PLAIN]
    for row, outcome in enumerate(PLAIN):
        record = found.record(row)
        assert record.example == outcome.example
        assert asdict(record) | {"features": None} == asdict(outcome) | {"features": None}


def test_an_outcome_without_a_label_has_no_example() -> None:
    found = DECODER.decode([encode(replace(PLAIN[0], label=None, correct=None, loss=None))])
    assert found.record(0).example is None


def test_no_outcomes_have_no_features() -> None:
    found = DECODER.decode([])
    assert (len(found), found.features.shape) == (0, (0, len(PLAIN[0].features)))


@pytest.mark.parametrize("features", [[0.5] * 9, [0.5] * 11, ["0.5"] * 10, None, 7.0])
def test_other_features_are_refused(features: object) -> None:
    wrong = encode(asdict(PLAIN[3]) | {"features": features})
    with pytest.raises(msgspec.DecodeError):
        DECODER.decode([*VALUES[:3], wrong, *VALUES[4:]])


def test_features_of_any_number_of_digits_are_read() -> None:
    exact = np.random.default_rng(5).normal(size=10).tolist()
    found = DECODER.decode([VALUES[0], encode(replace(PLAIN[1], features=exact))])
    assert found.features.tolist() == [PLAIN[0].features, exact]
    assert isinstance(found.record(1), RawOutcome)
