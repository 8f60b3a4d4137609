from __future__ import annotations

from bench.sizes import snapshot_bytes
from pipeline.config.tree import Config
from pipeline.model.factory import ModelFactory


def test_an_entity_adds_its_totals_and_its_id() -> None:
    found = snapshot_bytes(ModelFactory(Config()).new_model())
    totals, shortest, longest = 3 * 8, len("1,"), len("19999,")
    for kind in ("user", "video"):
        assert totals + shortest < found[kind] < totals + longest
    assert found["learner"] > 1_000
