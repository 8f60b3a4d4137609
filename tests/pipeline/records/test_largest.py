from __future__ import annotations

from typing import Any

import pytest

from pipeline.config.stream import KUAIREC, Stream
from pipeline.records.encoding import encode
from pipeline.records.largest import LargestRecords
from pipeline.records.output_types import KUAIREC_TYPES, OutputTypes
from pipeline.records.outputs import (
    EffectSums,
    EntityCounts,
    Example,
    LabelRequest,
    Outcome,
    Prediction,
    Share,
)
from tests.pipeline.records.test_dead_letter import batch_size
from tests.support import slates

TEXT = 256 * "\x01"
WIDE = 256 * "😀"
"""The longest id in UTF-8, as keys are."""
NUMBER, COUNT = -2.2250738585072014e-308, 2**63 - 1
FEATURES = KUAIREC_TYPES.features * [NUMBER]
NAMES = ["a", "wider-than-any"]
SCORES = dict.fromkeys(NAMES, NUMBER)
INTERVAL = 3
EVENT = TEXT, TEXT, TEXT, COUNT
PREDICTED = NUMBER, NUMBER, False, FEATURES
EXAMPLE = Example(TEXT, TEXT, COUNT, FEATURES, False, -NUMBER)
RECORDS = {
    "prediction": Prediction(*EVENT, *PREDICTED, COUNT, COUNT, SCORES, False),
    "label_request": LabelRequest(*EVENT, NUMBER, COUNT, COUNT),
    "outcome": Outcome(
        *EVENT,
        *PREDICTED,
        COUNT,
        COUNT,
        watch_ratio=NUMBER,
        label=False,
        label_timestamp=COUNT,
        correct=False,
        loss=-NUMBER,
        status="corrected",
        sequence=COUNT,
        challengers=SCORES,
        asked=False,
        former=NUMBER,
    ),
    "share": Share(
        *(COUNT, COUNT, COUNT),
        [EntityCounts(TEXT, COUNT, COUNT, -NUMBER)] * INTERVAL,
        [EXAMPLE] * INTERVAL,
        [EffectSums(NUMBER, -NUMBER, NUMBER, -NUMBER)] * INTERVAL,
        COUNT,
        COUNT,
    ),
}


@pytest.mark.parametrize("name", RECORDS)
def test_the_largest_record_is_as_large_as_the_types_say(name: str) -> None:
    largest = getattr(LargestRecords.of(KUAIREC, NAMES, INTERVAL), name)
    written = batch_size(WIDE.encode(), encode(RECORDS[name]), [])
    assert written <= largest <= 1.02 * written + 200


def slate_of(stream: Stream) -> Any:
    """The largest prediction of a slate."""
    types = OutputTypes.of(stream)
    assert types.slates is not None
    ids, features = types.entities * [TEXT], types.features * [NUMBER]
    item = types.slates.make_item(ids, NUMBER, NUMBER, False, features, SCORES, False)
    return types.slates.make(TEXT, ids, COUNT, [item] * stream.interactions.max_items, None, COUNT, COUNT)


@pytest.mark.parametrize("items", [1, 2, 1_000])
def test_a_slate_has_as_many_items_as_its_definition_allows(items: int) -> None:
    interactions = slates.SLATES.interactions.model_copy(update={"max_items": items})
    stream = slates.SLATES.model_copy(update={"interactions": interactions})
    largest = LargestRecords.of(stream, NAMES, INTERVAL)
    written = batch_size(WIDE.encode(), encode(slate_of(stream)), [])
    assert written <= largest.prediction <= 1.02 * written + 200
    assert LargestRecords.of(stream, [], INTERVAL).prediction < largest.prediction
