from __future__ import annotations

import json
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from pipeline.config.settings import Learner
from pipeline.errors import StateError
from pipeline.features.tables import Tables
from pipeline.model.learner_settings import learner_settings
from pipeline.model.model import Model
from pipeline.model.snapshot import pack, unpack
from pipeline.records.kuairec import KuaiRecInteraction
from pipeline.records.outputs import Outcome
from tests.support import builders
from tests.support.builders import LEARNER, new_model
from tests.support.examples import examples

LONG = 60


def outcome(model: Model, interaction: KuaiRecInteraction, label: bool, ratio: float) -> Outcome:
    """Return the outcome of an interaction whose label comes at once, as the task would make it."""
    output = model.predict(interaction)
    return Outcome(
        event_id=interaction.event_id,
        user_id=interaction.user_id,
        video_id=interaction.video_id,
        timestamp=interaction.timestamp,
        score=output.score,
        probability=output.probability,
        predicted=output.score > 0.0,
        features=output.features,
        model_version=model.outcomes_learned,
        prediction_sequence=model.outcomes_learned,
        watch_ratio=ratio,
        label=label,
        label_timestamp=interaction.timestamp,
        correct=output.predicted == label,
        loss=model.loss(output.score, ratio),
        status="labelled",
        sequence=model.outcomes_learned,
    )


def teach(model: Model, begin: int, end: int) -> list[float]:
    """Learn events that depend only on their number; return the scores that they had before."""
    scores = []
    for number in range(begin, end):
        user: int | str = number * 7 % 5 if number % 11 else "näme"
        label, ratio = number * 5 % 3 == 0, (number * 37 % 100) / 50
        made = outcome(model, builders.interaction(number, number, user, number * 3 % 8), label, ratio)
        model.learn_one(made)
        scores.append(made.score)
    return scores


def trained(events: int) -> Model:
    model = new_model()
    teach(model, 0, events)
    return model


def restored(data: bytes) -> Model:
    model = new_model()
    unpack(data, model)
    return model


@pytest.mark.parametrize(("events", "stage"), [(0, 1), (3, 1), (5, 2), (LONG, 2)])
def test_a_restored_model_gives_the_same_bytes_and_goes_on_with_the_same_bits(
    events: int, stage: int
) -> None:
    model = trained(events)
    assert model.learner.state()["stage"] == stage
    copy = restored(pack(model))
    assert pack(copy) == pack(model)
    assert copy.outcomes_learned == model.outcomes_learned == events
    assert teach(copy, events, events + LONG) == teach(model, events, events + LONG)
    assert pack(copy) == pack(model)


@examples(15)
@given(cuts=st.sets(st.integers(0, LONG)))
def test_going_through_snapshots_changes_no_bit(cuts: set[int]) -> None:
    model, scores = new_model(), []
    for begin, end in pairwise(sorted({0, *cuts, LONG})):
        scores += teach(model, begin, end)
        model = restored(pack(model))
    whole = new_model()
    assert scores == teach(whole, 0, LONG)
    assert pack(model) == pack(whole)


def test_entities_come_back_in_the_order_of_eviction() -> None:
    model = trained(LONG)
    copy = restored(pack(model))
    for entities, others in (
        (model.statistics.tables[0], copy.statistics.tables[0]),
        (model.statistics.tables[1], copy.statistics.tables[1]),
    ):
        (ids, totals), (kept_ids, kept_totals) = entities.state(), others.state()
        assert kept_ids == ids
        assert len(ids) == 3
        assert np.array_equal(kept_totals, totals)
    assert np.array_equal(copy.statistics.everything, model.statistics.everything)


def tagged(folder: Path, text: str = '1,[3]\n2,"[0, 3]"\n') -> Model:
    file = folder / "tags.csv"
    file.write_text("video_id,feat\n" + text)
    tables = Tables(tags=file)
    learner = Learner.model_validate({"budget": 4, "landmarks": 2, "rank": 2, "cycle": 3})
    return Model(learner_settings(learner, tables.columns), tables, 3)


def test_totals_of_tags_come_back_too(tmp_path: Path) -> None:
    model, copy = tagged(tmp_path), tagged(tmp_path)
    teach(model, 0, LONG)
    assert model.statistics.tags[3, 0] > model.statistics.tags[0, 0] > 0
    unpack(pack(model), copy)
    assert pack(copy) == pack(model)
    assert teach(copy, LONG, 2 * LONG) == teach(model, LONG, 2 * LONG)
    assert pack(copy) == pack(model)


def test_totals_of_other_tags_are_refused(tmp_path: Path) -> None:
    data = load(pack(tagged(tmp_path)))
    data["tags.totals"] = np.zeros((2, 3))
    with pytest.raises(StateError, match=r"tags\.totals are float64"):
        unpack(save(data), tagged(tmp_path))


def test_an_entity_that_stands_there_twice_is_refused() -> None:
    data = load(DATA)
    first, *_, last = json.loads(data["users.ids"].tobytes())
    data["users.ids"] = np.frombuffer(json.dumps([first, last, last]).encode(), dtype=np.uint8)
    with pytest.raises(StateError, match="3 entities, 2 of them different: at most 3 fit"):
        restored(save(data))


def test_a_pair_in_a_table_of_one_entity_is_refused() -> None:
    data = load(DATA)
    first, second, third = json.loads(data["users.ids"].tobytes())
    data["users.ids"] = np.frombuffer(json.dumps([first, second, [third, 1]]).encode(), dtype=np.uint8)
    with pytest.raises(StateError, match="got `array`"):
        restored(save(data))


def test_packing_leaves_the_model_alone() -> None:
    model = trained(LONG)
    first = pack(model)
    assert pack(model) == first
    teach(model, LONG, LONG + 5)
    assert restored(first).outcomes_learned == LONG


def test_the_default_learner_comes_back_in_both_stages() -> None:
    defaults = learner_settings(Learner(), 0)
    model = Model(defaults, Tables(), 1_000)
    for end in (90, 400):
        teach(model, model.outcomes_learned, end)
        copy = Model(defaults, Tables(), 1_000)
        unpack(pack(model), copy)
        assert teach(copy, end, end + 300) == teach(model, end, end + 300)
        assert pack(copy) == pack(model)


def header_of(data: bytes) -> dict[str, object]:
    [length] = struct.unpack("<Q", data[:8])
    header: dict[str, object] = json.loads(data[8 : 8 + length])
    return header


def test_the_bytes_are_safetensors_with_the_names_documented() -> None:
    names = set(header_of(pack(trained(LONG))))
    assert {"plain", "users.ids", "users.totals", "videos.ids", "videos.totals", "tags.totals"} < names
    assert "learner.inverse_hessian" in names


@pytest.mark.parametrize("events", [3, LONG])
def test_truncated_anywhere_it_is_refused(events: int) -> None:
    data = pack(trained(events))
    for end in range(0, len(data), 7):
        with pytest.raises(StateError, match="the snapshot"):
            restored(data[:end])
    with pytest.raises(StateError, match="the snapshot"):
        restored(data + b"\0")


DATA = pack(trained(LONG))


@examples(200)
@given(
    position=st.integers(0, len(DATA) - 1) | st.integers(0, 8 + struct.unpack("<Q", DATA[:8])[0]),
    byte=st.integers(0, 255),
)
def test_a_damaged_byte_is_refused_or_changes_a_number(position: int, byte: int) -> None:
    damaged = bytearray(DATA)
    damaged[position] = byte
    try:
        copy = restored(bytes(damaged))
    except StateError:
        return
    assert set(copy.learner.state()) == set(restored(DATA).learner.state())


def with_scalars(**changes: object) -> bytes:
    """Return a snapshot with other scalars."""
    tensors = load(DATA)
    scalars = json.loads(tensors["plain"].tobytes()) | changes
    tensors["plain"] = np.frombuffer(json.dumps(scalars).encode(), dtype=np.uint8)
    return save(tensors)


def test_another_version_is_named() -> None:
    with pytest.raises(StateError, match="version 1, this program reads version 3"):
        restored(with_scalars(version=1))


@pytest.mark.parametrize(
    "changes",
    [
        {"folded": None},
        {"folded": "60"},
        {"folded": -1},
        {"everything": [1, 2]},
        {"everything": ["a", "b", "c"]},
        {"learner": {}},
        {"learner": None},
        {"learner": {"stage": 2, "updates": "x", "since_change": 0}},
    ],
)
def test_scalars_of_another_type_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(StateError, match="damaged or not of this model"):
        restored(with_scalars(**changes))


def test_a_snapshot_of_other_settings_is_refused() -> None:
    other = Model(learner_settings(Learner.model_validate({"budget": 9}), 0), Tables(), 3)
    with pytest.raises(StateError, match="damaged or not of this model"):
        unpack(DATA, other)
    paper = Model(learner_settings(Learner(preset="paper"), 0), Tables(), 3)
    with pytest.raises(StateError, match="damaged or not of this model"):
        unpack(DATA, paper)
    assert other.learner.settings != LEARNER


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("shares", [0.5, 0.3, 0.2, 0.0], "not positive numbers with sum 1"),
        ("shares", [0.5, 0.4, 0.2, 0.1], "not positive numbers with sum 1"),
        ("shares", [np.nan, 0.5, 0.3, 0.2], "not positive numbers with sum 1"),
        ("phase", [3.0], "phase is 3.0, not 0, 1 or 2"),
        ("phase", [np.nan], "phase is nan, not 0, 1 or 2"),
        ("covariance", [[1.0]], "covariance are float64"),
        ("corrections", [[np.inf]], "corrections are float64"),
    ],
)
def test_a_tracker_that_no_labels_lead_to_is_refused(name: str, value: list[Any], message: str) -> None:
    data = load(DATA)
    data[f"learner.{name}"] = np.array(value)
    with pytest.raises(StateError, match=message):
        restored(save(data))


@pytest.mark.parametrize("events", [3, LONG])
def test_corrections_that_are_not_finite_are_refused(events: int) -> None:
    data = load(pack(trained(events)))
    data["learner.corrections"][0, 1] = np.inf
    with pytest.raises(StateError, match="corrections holds a number that is not finite"):
        restored(save(data))
