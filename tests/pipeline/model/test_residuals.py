"""Streams with recent residuals and bins of numbers: how models learn and keep them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load, save

from pipeline.config.settings import Learner
from pipeline.config.stream import KUAIREC, Stream
from pipeline.errors import StateError
from pipeline.features.category_keys import category_keys
from pipeline.features.feature_set import FeatureSet
from pipeline.features.tables import Tables
from pipeline.features.totals import MAX_RESIDUAL, RECENT_EVENTS, RECENT_RESIDUALS
from pipeline.model.columns import FormerLabels, InteractionColumns
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model
from pipeline.model.snapshot import pack, unpack
from pipeline.records.output_types import OutputTypes
from pipeline.task.sharing import Outbox, SharingSettings

Floats: TypeAlias = NDArray[np.float64]

RECENT = ["effect", "noise", "recent_residual", "log_recent_count"]
STREAM = Stream.model_validate(
    KUAIREC.model_dump(mode="json")
    | {
        "features": {
            "length": {"kind": "number", "field": "/length", "log": True},
            "mood": {"kind": "category", "field": "/mood"},
        },
        "effects": ["user_id", "video_id"],
        "running": {
            "user_id": {"half_life": "5m", "features": RECENT},
            "video_id": {"half_life": "1h", "features": RECENT},
            "taste": {"of": ["user_id", "length"], "features": ["label_mean", "log_count"]},
            "mood": {"half_life": "1h", "features": ["log_count", "recent_residual"]},
            "length": {"features": ["label_mean"]},
        },
    }
)
FEATURES = FeatureSet.of(STREAM)
N = 80
MINUTE = 60_000


def model(limit: int = 5) -> Model:
    learner = Learner.model_validate({"budget": 4, "rank": 2})
    settings = learner_settings(learner, 0, features=FEATURES)
    return Model(settings, Tables(), limit, features=FEATURES, max_categories=2**12)


def events() -> tuple[InteractionColumns, Floats, Floats, Floats]:
    """Return interactions, the values of their messages, their labels, and other labels."""
    rng = np.random.default_rng(6)
    ids = [*rng.integers(0, 7, N).tolist()], [*rng.integers(0, 4, N).tolist()]
    values = np.column_stack([np.log1p(rng.integers(0, 90, N)), rng.integers(2**31, 2**32, N) // 7 * 7])
    labels, others = rng.choice([0.0, 0.5, 1.0, 3.0], (2, N))
    return InteractionColumns(ids, np.arange(N) * MINUTE), values, labels, others


def event_at(row: int) -> Any:
    columns = events()[0]
    return SimpleNamespace(ids=tuple(each[row] for each in columns.ids), timestamp=row * MINUTE)


@pytest.mark.parametrize("delay", [0, 7, N])
@pytest.mark.parametrize("size", [1, 13, 2 * N])
def test_steps_give_the_same_bits_however_they_fall_into_batches_and_snapshots(delay: int, size: int) -> None:
    columns, values, labels, _ = events()
    alone, batched = model(), model()
    due = sorted([(row, 1, row) for row in range(N)] + [(row + delay, 2, N + row) for row in range(N)])
    order = np.array([step for *_, step in due])
    rows, expected = dict[int, list[float]](), list[float]()
    for step in order.tolist():
        if step < N:
            output = alone.predict(event_at(step), values[step].tolist())
            rows[step] = output.features
            expected.append(output.score)
        else:
            alone.learn_example(event_at(step - N), rows[step - N], labels[step - N])
    known, found = np.zeros((N, len(FEATURES))), list[float]()
    for begin in range(0, 2 * N, size):
        steps = order[begin : begin + size]
        before = [step - N for step in steps.tolist() if step >= N and step - N not in steps]
        new = [step for step in steps.tolist() if step < N]
        places = {row: place for place, row in enumerate([*before, *new])}
        local = np.array([places[s] if s < N else len(places) + places[s - N] for s in steps.tolist()])
        taken = [*places]
        ids = tuple([each[row] for row in taken] for each in columns.ids)
        part = InteractionColumns(ids, columns.timestamps[taken])
        outputs = batched.run(local, part, known[before], labels[taken], values[new])
        known[new] = outputs.features
        found += outputs.scores
        snapshot, batched = pack(batched), model()
        unpack(snapshot, batched)
    assert found == expected
    assert known.tolist() == [rows[row] for row in range(N)]
    assert pack(batched) == pack(alone)


def test_labels_beside_and_in_place_of_others_are_learned_the_same_in_one_run_and_one_by_one() -> None:
    columns, values, labels, others = events()
    alone, together = model(), model()
    again, n = np.arange(0, N, 2), N + N // 2
    twice = InteractionColumns(
        tuple([*each, *[each[row] for row in again]] for each in columns.ids),
        np.concatenate([columns.timestamps, columns.timestamps[again]]),
    )
    order, former = list[int](), np.zeros(n)
    for row in range(N):
        order += [row, n + row]
        if row >= 6 and row % 2 == 0:
            place = N + (row - 6) // 2
            order.append((2 * n if row % 4 else n) + place)
            former[place] = labels[row - 6]
    every = np.concatenate([labels, others[again]])
    nothing = np.empty((0, len(FEATURES)))
    found = together.run(
        np.array(order), twice, nothing, every, values, former=FormerLabels(former, np.ones(n)), again=again
    )
    rows = list[list[float]]()
    for row in range(N):
        rows.append(alone.predict(event_at(row), values[row].tolist()).features)
        alone.learn_example(event_at(row), rows[row], labels[row])
        if row >= 6 and row % 2 == 0:
            before = row - 6
            if row % 4:
                alone.replace_example(event_at(before), rows[before], labels[before], others[before])
            else:
                alone.learn_example(event_at(before), rows[before], others[before])
    assert found.features.tolist() == rows
    assert pack(together) == pack(alone)


def test_a_label_that_is_replaced_leaves_the_residual_of_the_other() -> None:
    named = FEATURES.names.index("user_recent_residual")
    replaced, at_once = model(), model()
    for each, first in ((replaced, 0.0), (at_once, 3.0)):
        features = each.predict(event_at(0), [0.0, 1.0]).features
        each.learn_example(event_at(0), features, first)
    replaced.replace_example(event_at(0), features, 0.0, 3.0)
    one, other = (each.predict(event_at(0), [0.0, 1.0]).features[named] for each in (replaced, at_once))
    assert one == pytest.approx(other, abs=2e-6)
    assert 0.0 < one < 1.0


def test_features_that_no_prediction_has_leave_a_model_that_predicts_and_restores() -> None:
    hostile = model()
    for number, value in enumerate([1e300, -1e300, 5e-324, float(2**63)]):
        features = [value] * len(FEATURES)
        hostile.statistics.update((1, 2), True, 1.0, 0, features[FEATURES.running :], expected=value)
        assert hostile.statistics.tables[0].totals[1, RECENT_EVENTS] == number + 1
    totals = hostile.statistics.tables[0].totals[1]
    assert abs(totals[RECENT_RESIDUALS]) <= MAX_RESIDUAL * totals[RECENT_EVENTS]
    hostile.statistics.replace((1, 2), -1e15, 1e15, 10**15, [0.0, 0.0])
    restored = model()
    unpack(pack(hostile), restored)
    assert pack(restored) == pack(hostile)
    assert np.isfinite(restored.predict(event_at(0), [0.0, 1.0]).features).all()


@pytest.mark.parametrize("residuals", [np.nan, np.inf, -2.5, 1e9])
def test_residuals_that_no_labels_leave_are_refused(residuals: float) -> None:
    learned = model()
    learned.learn_example(event_at(0), learned.predict(event_at(0), [0.0, 1.0]).features, 1.0)
    data = load(pack(learned))
    data["users.totals"] = data["users.totals"].copy()
    data["users.totals"][0, RECENT_RESIDUALS] = residuals
    with pytest.raises(StateError, match=r"users\.totals"):
        unpack(save(data), model())


def test_partitions_share_the_keys_that_statistics_have() -> None:
    learned = model()
    settings = SharingSettings(2, 4, FEATURES, OutputTypes.of(STREAM))
    outbox = Outbox(0, settings, since=0)
    make: Any = outbox.example_type
    _, values, labels, _ = events()
    for row in range(4):
        at, features = event_at(row), learned.predict(event_at(row), values[row].tolist()).features
        learned.learn_example(at, features, labels[row])
        outbox.add(make(*at.ids, at.timestamp, features, labels[row] > 0.75, labels[row]))
    [share] = outbox.drain()
    shared = [FEATURES.layout.tables[number].name for number in FEATURES.layout.shared]
    assert shared == ["videos", "moods", "lengths"]
    tables = dict(learned.statistics.named_tables())
    for name, counts in zip(shared, share.counts, strict=True):
        assert {each.entity for each in counts} == {*tables[name].state()[0]}
    other = model()
    other.merge_shared([share])
    assert other.statistics.everything.tolist() == learned.statistics.everything.tolist()
    assert not dict(other.statistics.named_tables())["moods"].state()[1][:, RECENT_EVENTS:].any()


def test_numbers_and_categories_without_columns_have_keys_of_their_own() -> None:
    parts = {each.name: each.parts[-1] for each in FEATURES.layout.tables}
    length, mood = parts["tastes"], parts["moods"]
    lengths = np.array([0.0, 9.0, 10.0, 30.0, 10_000.0, 14_000.0, 15_000.0])
    assert category_keys(length, np.log1p(lengths)) == [0, 6, 6, 9, 26, 27, 27]
    hashes = [float(2**32 - 1), float(2**32 - 2)]
    assert category_keys(mood, np.array(hashes)) == hashes
