"""Running features that a definition declares, against plain sums over all labels."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import ValidationError
from numpy.typing import NDArray

from pipeline.config.stream import KUAIREC, Stream
from pipeline.features.binary import TARGET
from pipeline.features.effect_arrays import LABELS
from pipeline.features.feature_set import FeatureSet
from pipeline.features.statistics import RunningStatistics
from pipeline.records.fields import Id
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import EntityCounts
from tests.support.plain_features import PlainFeatures

Floats: TypeAlias = NDArray[np.float64]

BASE = KUAIREC.model_dump(mode="json")
CATEGORY = {"cuisine": {"kind": "category", "field": "/cuisine", "columns": 4}}
RECENT = {"half_life": "5m", "features": ["recent_label_mean", "recent_value_mean", "log_since_last"]}
NUMBERS = {
    "distance": {"kind": "number", "field": "/distance"},
    "dishes": {"kind": "number", "field": "/dishes", "log": True},
}
EFFECT, RESIDUAL = ["effect", "noise"], ["recent_residual", "log_recent_count"]
DECLARED: dict[str, dict[str, Any]] = {
    "no entity": {"entities": {}, "features": CATEGORY, "running": {"cuisine": {}}},
    "one entity": {"entities": {"device": "/device"}},
    "three entities": {"entities": {"a": "/a", "b": "/b", "c": "/c"}, "key": "b"},
    "crossed with a category": {
        "entities": {"courier": "/courier"},
        "features": CATEGORY,
        "running": {"courier": {}, "taste": {"of": ["courier", "cuisine"]}},
    },
    "recent": {
        "entities": {"courier": "/courier", "restaurant": "/restaurant"},
        "features": CATEGORY,
        "running": {
            "courier": RECENT,
            "restaurant": {"leans_on": "cuisine", "half_life": "1h"},
            "cuisine": {"features": ["log_since_last"]},
        },
    },
    "residuals": {
        "entities": {"courier": "/courier", "restaurant": "/restaurant"},
        "features": CATEGORY | NUMBERS,
        "effects": ["courier", "restaurant"],
        "running": {
            "courier": {"half_life": "5m", "features": [*EFFECT, *RESIDUAL, "label_mean"]},
            "restaurant": {"features": [*EFFECT, "log_count"]},
            "busy": {"of": ["restaurant"], "half_life": "1h", "features": ["log_recent_count"]},
            "distance": {"half_life": "1h", "features": [*RESIDUAL, "log_count"]},
            "reach": {
                "of": ["courier", "dishes"],
                "leans_on": "distance",
                "features": ["leaning_label_mean"],
            },
        },
    },
}


def stream_of(name: str) -> Stream:
    return Stream.model_validate(BASE | DECLARED[name])


class Event(NamedTuple):
    ids: tuple[Id, Id, Id]
    cuisine: int
    time: int
    label: bool
    value: float


events = st.lists(
    st.builds(
        Event,
        st.tuples(*[st.integers(0, 3) | st.sampled_from(["0", "x"])] * 3),
        st.integers(0, 3),
        st.integers(0, 10_000_000),
        st.booleans(),
        st.floats(0, 5),
    ),
    max_size=40,
)


class Steps(NamedTuple):
    events: list[Event]
    order: list[int]
    cuts: set[int]


@st.composite
def steps(draw: st.DrawFn) -> Steps:
    drawn = draw(events)
    order = draw(st.permutations(range(2 * len(drawn))))
    return Steps(drawn, list(order), draw(st.sets(st.integers(0, len(order)), max_size=5)))


@given(drawn=steps(), limit=st.integers(1, 6), name=st.sampled_from(sorted(DECLARED)))
def test_features_are_those_of_plain_sums_however_steps_fall_into_batches(
    drawn: Steps, limit: int, name: str
) -> None:
    features = FeatureSet.of(stream_of(name))
    entities, n = features.entities, len(drawn.events)
    if name == "residuals":
        drawn = drawn._replace(order=_labels_last(drawn.order, n))
    values = [[float(each.cuisine)] * len(features.event.names) for each in drawn.events]
    found = np.full((n, features.running), np.nan)
    compiled, signals = RunningStatistics(limit, features=features), np.zeros(n)
    for begin, end in pairwise(sorted({0, *drawn.cuts, len(drawn.order)})):
        order = drawn.order[begin:end]
        rows = compiled.run(
            np.array(order, dtype=np.int64),
            [[each.ids[number] for each in drawn.events] for number in range(entities)],
            np.array([each.label for each in drawn.events], dtype=np.bool_),
            np.array([each.value for each in drawn.events], dtype=np.float64),
            np.array([each.time for each in drawn.events], dtype=np.int64),
            np.array(values, dtype=np.float64).reshape(n, len(features.event.names)),
            expected=signals,
        )
        looked_up = [step for step in order if step < n]
        found[looked_up] = rows[looked_up]
    expected = _plainly(drawn, features, limit, values, found)
    made = [place for place, code in enumerate(features.codes[:, 0].tolist()) if code >= 0]
    assert len(made) == features.running - len(features.effect_columns)
    for number, wanted in expected.items():
        told = [wanted[place] for place in made]
        assert found[number, made].tolist() == pytest.approx(told, abs=2e-6)


def _labels_last(order: list[int], n: int) -> list[int]:
    """Return the order in which no label comes before its event is looked up: none could be left of it."""
    places = {step: place for place, step in enumerate(order)}
    moved = [*order]
    for event in range(n):
        first, second = sorted((places[event], places[n + event]))
        moved[first], moved[second] = event, n + event
    return moved


def _plainly(
    drawn: Steps, features: FeatureSet, limit: int, values: list[list[float]], found: Floats
) -> dict[int, list[float]]:
    """Return the features of each event by plain sums, given what effects are found to expect."""
    plain, n = PlainFeatures(features.layout, limit, TARGET), len(drawn.events)
    signals = features.expected_signals(found)
    expected, looked_up = dict[int, list[float]](), dict[int, float]()
    for step in drawn.order:
        event, own = drawn.events[step % n], values[step % n]
        ids = event.ids[: features.entities]
        if step < n:
            expected[step] = plain.features(ids, event.time, own)
            looked_up[step] = 0.0 if signals is None else signals[step]
        else:
            signal = looked_up.get(step - n, 0.0)
            plain.update(ids, event.label, event.value, event.time, own, expected=signal)
    return expected


def test_a_table_of_a_key_that_one_partition_has_is_not_shared() -> None:
    shared = {
        name: [table.name for table in FeatureSet.of(stream_of(name)).layout.tables if table.shared]
        for name in DECLARED
    }
    assert shared == {
        "no entity": ["cuisines"],
        "one entity": [],
        "three entities": ["as", "cs"],
        "crossed with a category": [],
        "recent": ["restaurants", "cuisines"],
        "residuals": ["restaurants", "busys", "distances"],
    }


def test_a_shared_entity_that_is_evicted_by_the_counts_of_others_loses_its_effect() -> None:
    stream = stream_of("three entities")
    features, types = FeatureSet.of(stream), OutputTypes.of(stream)
    statistics, make = RunningStatistics(1, features=features), cast(Any, types.share)
    for _ in range(5):
        statistics.update(("a1", "b1", "c1"), True, 2.0)
    counts = [EntityCounts("a2", 1, 1, 1.0)], [EntityCounts("c1", 1, 1, 1.0)]
    statistics.merge_shared([make(1, 0, 1, *map(list, counts), [])])
    statistics.update(("a3", "b1", "c1"), False, 0.0)
    assert statistics.effects is not None
    users = statistics.effects.state(*(table.rows() for table in statistics.adjusted_tables())).users
    assert users[0, LABELS] == 1.0


def test_counts_of_another_partition_are_added_to_each_shared_table() -> None:
    stream = stream_of("recent")
    features, types = FeatureSet.of(stream), OutputTypes.of(stream)
    statistics = RunningStatistics(10, features=features)
    make: Any = types.share
    of_restaurants, of_cuisines = [EntityCounts("r", 4, 3, 2.5)], [EntityCounts(2, 4, 3, 2.5)]
    statistics.merge_shared([make(1, 0, 4, of_restaurants, of_cuisines, [])])
    kept = dict(statistics.named_tables())
    assert kept["couriers"].state()[0] == []
    assert kept["restaurants"].state()[0] == ["r"]
    assert kept["restaurants"].state()[1].tolist() == [[4.0, 3.0, 2.5, 0.0, 0.0, 0.0, 0.0]]
    assert kept["cuisines"].state()[0] == [2]
    assert statistics.everything.tolist() == [[4.0, 3.0, 2.5]]


def test_a_share_has_pairs_where_the_table_is_of_pairs_and_only_there() -> None:
    stream = Stream.model_validate(
        BASE
        | {"entities": {"a": "/a", "b": "/b", "c": "/c"}}
        | {"running": {"b": {}, "both": {"of": ["b", "c"]}}}
    )
    decode = OutputTypes.of(stream).shares.decode
    text = b'{"partition":1,"since":0,"until":1,"bs":[[%b,1,1,0.5]],"boths":[[%b,1,1,0.5]],"examples":[]}'
    found = decode(text % (b'"x"', b'["x",3]'))
    assert [each[0].entity for each in found.counts] == ["x", ("x", 3)]
    for one, two in ((b'["x",3]', b'["x",3]'), (b'"x"', b'"x"'), (b'"x"', b'["x",3,4]')):
        with pytest.raises(ValidationError):
            decode(text % (one, two))
