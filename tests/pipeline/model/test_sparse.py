"""Streams whose categories have no columns: the sparse part within the model."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from types import MappingProxyType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from forks.sparse import SparseSettings, category
from forks.sparse.plan import Columns
from pipeline.config.settings import Learner
from pipeline.config.sparse_layout import PREFIX, score_names
from pipeline.config.stream import KUAIREC, Stream
from pipeline.errors import ConfigError, StateError
from pipeline.features.feature_set import FeatureSet
from pipeline.features.tables import Tables
from pipeline.features.targets import target_of
from pipeline.model.columns import FormerLabels, InteractionColumns
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model
from pipeline.model.snapshot import pack, unpack
from pipeline.records.output_types import OutputTypes

REGRESSION = {"kind": "regression", "name": "minutes", "offset": 30.0, "scale": 10.0, "cap": 60.0}


def stream_of(
    *, columns: int | None = 4, extra: Mapping[str, Any] = MappingProxyType({}), **changes: Any
) -> Stream:
    definition = KUAIREC.model_dump(mode="json") | {
        "features": {
            "size": {"kind": "number", "field": "/size"},
            "mood": {"kind": "category", "field": "/mood"},
            "shape": {"kind": "category", "field": "/shape", "columns": columns},
            "site": {"kind": "category", "field": "/site"},
            **extra,
        }
    }
    return Stream.model_validate(definition | changes)


STREAMS = {
    "default": stream_of(),
    "no columns": stream_of(columns=None),
    "no crosses": stream_of(crosses="none"),
    "regression": stream_of(target=REGRESSION),
    "means": stream_of(running={"user_id": {}, "mood": {}, "taste": {"of": ["video_id", "site"]}}),
    "no entities": stream_of(entities={}, running=None),
    "words": stream_of(
        extra={
            "title": {"kind": "text", "field": "/title", "words": 3},
            "user": {"kind": "id", "entity": "user_id"},
            "hour": {"kind": "hour", "encoding": "category"},
        },
        crosses=["pairs", ["user", "hour", "site"], ["size", "hour"], ["hour", "size"]],
    ),
    "crosses only": stream_of(crosses=[["mood", "site"]]),
}


def event_of(ids: tuple[Any, ...], at: int) -> Any:
    return SimpleNamespace(ids=ids, timestamp=at)


def model_of(stream: Stream, capacity: int = 2**12, **learner: Any) -> Model:
    features, target = FeatureSet.of(stream), target_of(stream.target)
    settings = learner_settings(
        Learner.model_validate({"budget": 4, "rank": 2} | learner),
        0,
        features=features,
        losses=target.losses,
    )
    return Model(settings, Tables(), 5, features=features, target=target, max_categories=capacity)


def test_the_scores_have_the_names_of_those_of_the_part() -> None:
    for numbers, crosses in product((0, 2), (False, True)):
        columns = Columns.of(SparseSettings(fields=1, numbers=numbers, pairs=crosses))
        names = tuple(PREFIX + name for name in columns.names)
        assert score_names(numbers, crosses=crosses) == (names, columns.seen)


@pytest.mark.parametrize("name", STREAMS)
def test_predictions_and_learning_are_the_same_alone_and_together(name: str) -> None:
    stream, rng, n = STREAMS[name], np.random.default_rng(4), 700
    features, make = FeatureSet.of(stream), cast(Any, OutputTypes.of(stream).outcome)
    alone, together, ran, parts = (model_of(stream) for _ in range(4))
    moods, sites = ([category(f"{kind} {value}") for value in range(9)] for kind in ("mood", "site"))
    values = np.column_stack(
        [rng.normal(size=n), rng.choice(moods, n), rng.integers(0, 4, n), rng.choice(sites, n)]
        + [rng.choice([0.0, *moods], n) for _ in features.event.names[4:]]
    )
    outcomes = []
    for number, own in enumerate(values.tolist()):
        ids = (int(rng.integers(7)), int(rng.integers(4)))[: len(stream.entities)]
        at, ratio = 60_000 * number, float(rng.random() + (own[1] == moods[0]) + (own[3] == sites[0]))
        output, label = alone.predict(event_of(ids, at), own), ratio > 0.75
        known: dict[str, Any] = {"event_id": number, "timestamp": at, "watch_ratio": ratio}
        known |= {f"entity_{place}": each for place, each in enumerate(ids)}
        known |= {"score": output.score, "probability": output.probability, "predicted": output.predicted}
        known |= {"features": output.features, "model_version": number, "prediction_sequence": number}
        known |= {"label": label, "label_timestamp": at + 1, "correct": True}
        known |= {"loss": 0.0, "error": 0.0, "status": "labelled", "sequence": number}
        outcomes.append(make(**{key: known[key] for key in make.__struct_fields__ if key in known}))
        alone.learn_one(outcomes[-1])
    together.learn_many(outcomes)
    assert pack(together) == pack(alone)
    order = np.arange(2 * n).reshape(2, n).T.ravel()
    columns = InteractionColumns.of(outcomes, len(stream.entities))
    labels = np.array([each.watch_ratio for each in outcomes])
    nothing = np.empty((0, len(features)))
    found = ran.run(order, columns, nothing, labels, values)
    assert found.scores == [each.score for each in outcomes]
    assert found.features.tolist() == [each.features for each in outcomes]
    scores = list[float]()
    for begin in range(0, n, 100):
        part = slice(begin, begin + 100)
        columns_of = InteractionColumns.of(outcomes[part], len(stream.entities))
        steps = np.arange(200).reshape(2, 100).T.ravel()
        scores += parts.run(steps, columns_of, nothing, labels[part], values[part]).scores
        snapshot, parts = pack(parts), model_of(stream)
        unpack(snapshot, parts)
    assert scores == found.scores


def test_corrections_and_weights_are_learned_the_same_alone_and_together() -> None:
    stream, rng, n = STREAMS["default"], np.random.default_rng(5), 60
    features = FeatureSet.of(stream)
    alone, together = model_of(stream), model_of(stream)
    values = np.column_stack([rng.normal(size=n), *rng.integers(0, 4, (3, n)).astype(float)])
    columns = InteractionColumns(
        ([*rng.integers(0, 7, n).tolist()], [*rng.integers(0, 4, n).tolist()]), np.arange(n) * 60_000
    )
    labels, corrected = rng.random((2, n))
    weights, former_weights = rng.choice([0.5, 1.0, 3.0], n), rng.choice([0.5, 1.0, 3.0], n)
    nothing = np.empty((0, len(features)))
    known = together.run(np.arange(n), columns, nothing, labels, values).features
    order = np.arange(n, 2 * n)
    together.run(order, columns, known, labels, np.empty((0, 4)), weights=former_weights)
    former = FormerLabels(labels, former_weights)
    together.run(
        2 * n + np.arange(n), columns, known, corrected, np.empty((0, 4)), weights=weights, former=former
    )
    events = [event_of((columns.ids[0][row], columns.ids[1][row]), row * 60_000) for row in range(n)]
    rows = [alone.predict(event, own).features for event, own in zip(events, values.tolist(), strict=True)]
    assert rows == known.tolist()
    for row, event in enumerate(events):
        alone.learn_example(event, rows[row], labels[row], former_weights[row])
    for row, event in enumerate(events):
        alone.replace_example(
            event,
            rows[row],
            labels[row],
            corrected[row],
            former_weight=former_weights[row],
            weight=weights[row],
        )
    assert pack(alone) == pack(together)


def test_predicting_what_is_not_part_of_the_stream_changes_nothing() -> None:
    model = model_of(STREAMS["default"])
    before = pack(model)
    event = event_of((2, 3), 4)
    output = model.predict(event, [0.5, 7.0, 1.0, 9.0])
    assert model.predict_many([event], np.array([[0.5, 7.0, 1.0, 9.0]])).scores == [output.score]
    assert model.predict_score(event, output.features) == output.score
    assert pack(model) == before


def test_other_losses_are_refused_with_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"learner\.loss: .* give each category columns"):
        model_of(STREAMS["default"], loss="hinge")


def test_a_snapshot_of_another_capacity_or_without_the_part_is_refused() -> None:
    snapshot = pack(model_of(STREAMS["default"]))
    with pytest.raises(StateError, match=r"sparse\.taken are uint8"):
        unpack(snapshot, model_of(STREAMS["default"], 2**11))
    with pytest.raises(StateError, match="not of this model"):
        unpack(snapshot, model_of(KUAIREC))


def test_crosses_are_of_features_that_have_weights() -> None:
    layout = FeatureSet.of(STREAMS["words"]).layout
    assert layout.sparse is not None
    assert layout.event_names[-6:] == ("site", "title_0", "title_1", "title_2", "user", "hour")
    assert layout.sparse.pairs
    assert layout.sparse.crosses == ((1, 2, 3), (3, 7))
    for crosses, reason in {
        (
            ("mood", "shape"),
        ): "crosses name shape, which is no feature that can be crossed: there are mood, site",
        (("mood", "mood"),): "crosses name mood and mood, one of them twice",
    }.items():
        with pytest.raises(ValueError, match=reason):
            FeatureSet.of(stream_of(crosses=crosses))
    texts = {f"t{each}": {"kind": "text", "field": f"/t{each}", "words": 256} for each in range(5)}
    with pytest.raises(ValueError, match="features have 1280 words of texts, 1024 at most"):
        FeatureSet.of(stream_of(extra=texts))
    with pytest.raises(ValueError, match=r"features\.x is the id of nobody, which is no entity"):
        stream_of(extra={"x": {"kind": "id", "entity": "nobody"}})
