"""The model learns many outcomes with the same bytes as one by one."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forks import Forks
from pipeline.config.settings import Learner
from pipeline.config.stream import KUAIREC, Stream
from pipeline.features.feature_set import FeatureSet
from pipeline.features.tables import USER_CATEGORIES, USER_FLAGS, Tables
from pipeline.model.columns import InteractionColumns, InteractionLike
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model
from pipeline.model.snapshot import pack
from pipeline.records.kuairec import KuaiRecInteraction
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import Outcome
from tests.pipeline.model.test_snapshot import outcome
from tests.support.builders import interaction, new_model

LONG = 60


@cache
def outcomes() -> list[Outcome]:
    """Return the outcomes of a stream; each fifth has no label, and each seventh expired as a negative."""
    model, found = new_model(), []
    for number in range(LONG):
        user: int | str = number * 7 % 5 if number % 11 else "näme"
        ratio = (number * 37 % 100) / 50
        made = outcome(model, interaction(number, number, user, number * 3 % 8), ratio > 0.75, ratio)
        if number % 5 == 0:
            made = msgspec.structs.replace(made, label=None, watch_ratio=None, status="expired")
        elif number % 7 == 0:
            made = msgspec.structs.replace(made, label=False, watch_ratio=None, status="expired")
        model.learn_one(made)
        found.append(made)
    return found


@cache
def learned_one_by_one() -> bytes:
    """Return the snapshot of a model that learned the stream by `learn_one`."""
    model = new_model()
    for made in outcomes():
        model.learn_one(made)
    return pack(model)


@given(st.sets(st.integers(0, LONG)))
def test_learn_many_leaves_the_bytes_of_learn_one(cuts: set[int]) -> None:
    together = new_model()
    for begin, end in pairwise(sorted({0, LONG} | cuts)):
        together.learn_many(outcomes()[begin:end])
    assert pack(together) == learned_one_by_one()


@pytest.mark.parametrize("preset", ["paper", "practical"])
def test_the_learner_learns_whole_vectors_whether_or_not_it_uses_the_tables(
    preset: str, tmp_path: Path
) -> None:
    (tmp_path / "tags.csv").write_text("video_id,feat\n" + "".join(f'{v},"[{v % 3}]"\n' for v in range(8)))
    tables = Tables(tags=tmp_path / "tags.csv")
    settings = learner_settings(
        Learner.model_validate({"preset": preset, "budget": 4, "landmarks": 2, "rank": 2, "cycle": 3}),
        tables.columns,
    )
    together, alone, learner = Model(settings, tables, 9), Model(settings, tables, 9), Forks(settings)
    together.learn_many(outcomes())
    for made in outcomes():
        alone.learn_one(made)
        if made.label is not None:
            x = np.empty(settings.dimension)
            tables.fill(x, made.user_id, made.video_id, made.timestamp)
            x[tables.columns :] = made.features
            learner.learn_one(x, 1.0 if made.label else -1.0)
    assert pack(together) == pack(alone)
    for name, value in learner.state().items():
        assert np.array_equal(together.learner.state()[name], value), name


def test_outcomes_out_of_order_are_refused_and_change_nothing() -> None:
    model = new_model()
    model.learn_many(outcomes()[:20])
    before = pack(model)
    with pytest.raises(ValueError, match="outcome 22 is not the next one, 21"):
        model.learn_many([outcomes()[20], outcomes()[22]])
    assert pack(model) == before
    model.learn_many([])
    assert pack(model) == before


def test_categories_and_recent_means_are_learned_the_same_alone_and_together() -> None:
    definition = KUAIREC.model_dump(mode="json") | {
        "features": {
            "size": {"kind": "number", "field": "/size"},
            "mood": {"kind": "category", "field": "/mood", "columns": 4},
        },
        "running": {
            "user_id": {"half_life": "1h"},
            "mood": {},
            "taste": {"of": ["video_id", "mood"], "features": ["label_mean", "log_since_last"]},
        },
    }
    stream = Stream.model_validate(definition)
    features, make = FeatureSet.of(stream), cast(Any, OutputTypes.of(stream).outcome)
    settings = learner_settings(Learner.model_validate({"budget": 4, "rank": 2}), 0, features=features)
    alone, together, ran = (Model(settings, Tables(), 5, features=features) for _ in range(3))
    rng, n = np.random.default_rng(4), 60
    values = np.column_stack([rng.normal(size=n), rng.integers(0, 4, n)])
    outcomes = []
    for number, own in enumerate(values.tolist()):
        ids, at, ratio = (int(rng.integers(7)), int(rng.integers(4))), 60_000 * number, float(rng.random())
        event = KuaiRecInteraction(number, *ids, at, 900.0)
        output, label = alone.predict(event, own), ratio > 0.75
        outcomes.append(
            make(
                *(number, *ids, at, output.score, output.probability, output.predicted, output.features),
                *(number, number, ratio, label, at + 1, label == output.predicted, 0.0, "labelled", number),
            )
        )
        alone.learn_one(outcomes[-1])
    together.learn_many(outcomes)
    assert pack(together) == pack(alone)
    order = np.arange(2 * n).reshape(2, n).T.ravel()
    columns = InteractionColumns.of(outcomes, 2)
    ratios = np.array([each.watch_ratio for each in outcomes])
    found = ran.run(order, columns, np.empty((0, len(features))), ratios, values)
    assert found.scores == [each.score for each in outcomes]
    assert found.features.tolist() == [each.features for each in outcomes]


def test_a_stream_of_one_entity_may_have_a_table_by_its_id(tmp_path: Path) -> None:
    path = tmp_path / "user_features.csv"
    flags, categories = dict.fromkeys(USER_FLAGS, "1"), dict.fromkeys(USER_CATEGORIES, "a")
    row = {"user_id": "7"} | flags | categories
    path.write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    stream = Stream.model_validate(KUAIREC.model_dump(mode="json") | {"entities": {"user_id": "/user_id"}})
    features, tables = FeatureSet.of(stream), Tables(path)
    learner = Learner.model_validate({"preset": "paper", "budget": 4, "rank": 2, "landmarks": 2})
    model = Model(learner_settings(learner, tables.columns, features=features), tables, 5, features=features)
    make = cast(Any, OutputTypes.of(stream).outcome)
    output = model.predict(cast(InteractionLike, SimpleNamespace(ids=(7,), timestamp=5)))
    made = make(
        *("e", 7, 5, output.score, output.probability, output.predicted, output.features),
        *(0, 0, 1.0, True, 6, True, 0.5, "labelled", 0),
    )
    model.learn_one(made)
    assert model.outcomes_learned == model.learner.updates == 1
