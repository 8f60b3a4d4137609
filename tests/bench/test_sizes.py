from __future__ import annotations

from bench.sizes import snapshot_bytes
from pipeline.config.settings import Config
from pipeline.features.effect_arrays import USER_COLUMNS
from pipeline.model.factory import ModelFactory


def test_an_entity_adds_its_totals_and_its_id() -> None:
    found = snapshot_bytes(ModelFactory(Config()).new_model())
    shortest, longest = len("1,"), len("19999,")
    effects = {
        "user": USER_COLUMNS * 8 + 4 + 4,
        "video": 4 * 8,
    }  # a ring has one label, of an item and a signal
    for kind, more in effects.items():
        totals = 3 * 8 + more
        assert totals + shortest < found[kind] < totals + longest
    assert found["learner"] > 1_000
