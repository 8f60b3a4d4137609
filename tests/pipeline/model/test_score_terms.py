"""The terms of a score, of every kind of stream: they come to the score, and the model stays as it is."""

from __future__ import annotations

import math
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Learner
from pipeline.config.stream import KUAIREC, Stream
from pipeline.features.feature_set import FeatureSet
from pipeline.features.tables import Tables
from pipeline.features.targets import target_of
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model
from pipeline.model.score_terms import SMALL_SUM, Term, score_terms
from tests.support.examples import examples

FEATURES = {
    "size": {"kind": "number", "field": "/size"},
    "mood": {"kind": "category", "field": "/mood", "columns": 4},
}
CHANGES: dict[str, dict[str, Any]] = {
    "kuairec": {},
    "numbers": {"target": {"kind": "regression", "name": "n", "offset": 0.7, "scale": 0.5, "cap": 2.0}},
    "one entity": {"entities": {"kernel": "/user_id"}},
    "no entities": {"entities": {}, "features": FEATURES},
    "categories": {"features": FEATURES | {"mood": {"kind": "category", "field": "/mood"}}},
    "declared": {
        "features": FEATURES,
        "running": {"user_id": {}, "video_id": {}, "taste": {"of": ["video_id", "mood"]}},
        "effects": ["user_id", "video_id"],
    },
}


class Event(NamedTuple):
    ids: tuple[int, ...]
    timestamp: int


@cache
def stream(name: str) -> Stream:
    return Stream.model_validate(KUAIREC.model_dump(mode="json") | CHANGES[name])


def model_of(name: str, **settings: Any) -> Model:
    features, target = FeatureSet.of(stream(name)), target_of(stream(name).target)
    learner = Learner.model_validate({"budget": 6, "landmarks": 3, "rank": 3, "cycle": 3} | settings)
    found = learner_settings(learner, 0, features=features, losses=target.losses)
    return Model(found, Tables(), 5, features=features, target=target)


def event_of(model: Model, rng: np.random.Generator, number: int) -> tuple[Event, list[float]]:
    ids = tuple(int(rng.integers(6)) for _ in range(model.features.entities))
    own = [float(rng.normal()), float(rng.integers(-1, 4))] if model.features.event.names else []
    return Event(ids, 1_000 * number), own


def terms_of(model: Model, events: int, seed: int) -> tuple[float, list[Term], float]:
    """The terms of an event's score after the model has learned so many, and its score."""
    rng = np.random.default_rng(seed)
    for number in range(events):
        event, own = event_of(model, rng, number)
        model.learn_example(event, model.predict(event, own).features, float(rng.random()) * 2.0)
    event, own = event_of(model, rng, events)
    output = model.predict(event, own)
    score, terms = score_terms(model, event, output.features)
    assert model.predict(event, own) == output
    return score, terms, output.score


@pytest.mark.parametrize("name", CHANGES)
@examples(30)
@given(st.integers(0, 30), st.integers(0, 1_000), st.sampled_from([0.5, 10.0]))
def test_terms_come_to_the_score_with_its_bits(name: str, events: int, seed: int, clip: float) -> None:
    score, terms, predicted = terms_of(model_of(name, clip=clip), events, seed)
    assert score == predicted
    assert abs(math.fsum(term.value for term in terms) - score) < 1e-12
    owners = [(term.kind, term.name) for term in terms]
    assert len(set(owners)) == len(owners)
    last = {("kernel", "kernel"), ("clipping", "clipping"), ("mixture", "mixture")}
    assert owners[-1] in last


def test_terms_are_named_by_what_the_features_are_of() -> None:
    expected = {
        "kuairec": [("entity", "user"), ("entity", "video")],
        "numbers": [("entity", "user"), ("entity", "video")],
        "one entity": [("entity", "kernel")],
        "no entities": [("message", "message")],
        "declared": [("entity", "user"), ("entity", "video"), ("message", "message"), ("table", "taste")],
    }
    for name, owners in expected.items():
        terms = terms_of(model_of(name), 30, 1)[1]
        found = {(term.kind, term.name) for term in terms} - {("clipping", "clipping")}
        assert found == {*owners, ("bias", "bias"), ("kernel", "kernel")}, name


def test_effects_are_split_in_proportion_unless_they_cancel() -> None:
    model = model_of("kuairec", rank=3)
    names = model.features.names
    features = dict.fromkeys(names, 0.0) | {"user_effect": 0.3, "video_effect": -0.1, "effects_logit": 1.0}
    score, terms = score_terms(model, Event((1, 2), 0), [*features.values()])
    values = {(term.kind, term.name): term.value for term in terms}
    assert score == 1.0
    assert values["entity", "user"] == pytest.approx(1.5)
    assert values["entity", "video"] == pytest.approx(-0.5)
    features |= {"video_effect": -0.3 + SMALL_SUM / 2, "effects_logit": 0.01}
    terms = score_terms(model, Event((1, 2), 0), [*features.values()])[1]
    assert Term("table", "user and video", 0.01) in terms


def test_values_of_categories_words_ids_and_hours_are_named() -> None:
    changes = {
        "entities": {"user_id": "/user_id"},
        "features": {
            "mood": {"kind": "category", "field": "/mood"},
            "title": {"kind": "text", "field": "/title", "words": 3},
            "who": {"kind": "id", "entity": "user_id"},
            "hour": {"kind": "hour", "encoding": "category"},
        },
        "crosses": [["mood", "who"]],
    }
    features = FeatureSet.of(Stream.model_validate(KUAIREC.model_dump(mode="json") | changes))
    model = Model(learner_settings(Learner(), 0, features=features), Tables(), 5, features=features)
    event: Any = SimpleNamespace(
        ids=(7,), entity_0=7, timestamp=3_600_000, feature_0="good\n", feature_1="Win, win now", event_id=1
    )
    [own] = features.event.values([event], np.array([event.timestamp]))
    model.learn_example(event, model.predict(event, own.tolist()).features, 1.0)
    found = model.predict(event, own.tolist()).features
    terms = score_terms(model, event, found)[1]
    named = {term.name for term in terms if term.kind == "category"}
    assert named == {
        *(r"mood = good\n", "title = win", "title = now", "who = 7", "hour = 1"),
        r"mood = good\n x who = 7",
    }
    assert all(term.value > 0 for term in terms if term.kind == "category")
    named = {term.name for term in score_terms(model, Event((7,), 3_600_000), found)[1]}
    assert named >= {"mood", "title", "who = 7", "hour = 1", "mood x who = 7", "categories"}
