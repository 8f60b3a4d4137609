"""A regression target: its rules at their bounds, columns as each alone, and what does not go with it."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.feature_layout import FeatureLayout
from pipeline.config.loader import load
from pipeline.config.settings import Config
from pipeline.config.stream import Stream
from pipeline.errors import ConfigError
from pipeline.features.regression import RegressionTarget
from pipeline.features.targets import target_of
from pipeline.model.factory import ModelFactory
from pipeline.model.settings_text import target_from, target_text
from pipeline.records.decoding import RejectedRecord, decode
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import Label
from pipeline.records.output_types import OutputTypes

DEFINITION: dict[str, Any] = tomllib.loads(
    files("pipeline.config").joinpath("streams/deliveries.toml").read_text("utf-8")
)
DELIVERIES = Stream.model_validate(DEFINITION)
MINUTES = RegressionTarget(threshold=30.0, cap=60.0, scale=10.0)

values = st.floats(-1e9, 1e9) | st.sampled_from([-30.0, 0.0, 30.0, 90.0, 90.1])
targets = st.builds(
    RegressionTarget,
    threshold=st.floats(-1e3, 1e3),
    cap=st.floats(0.01, 1e6),
    scale=st.floats(0.01, 1e3),
)


@given(target=targets, labels=st.lists(values, max_size=8))
def test_columns_are_treated_as_each_alone(target: RegressionTarget, labels: list[float]) -> None:
    column = np.array(labels)
    assert target.summands(column).tolist() == [target.summand(value) for value in labels]
    assert target.signals(column).tolist() == [target.signal(value) for value in labels]
    assert target.taught_many("squared", column).tolist() == [
        target.taught("squared", value) for value in labels
    ]
    assert target.labels(labels) == [target.label(value) for value in labels]
    assert target.predictions(labels) == [target.prediction(value) for value in labels]
    assert target.correct_many(column, column) == [None] * len(labels)


@given(target=targets, value=values)
def test_sums_and_signals_are_bounded_and_stand_for_the_capped_value(
    target: RegressionTarget, value: float
) -> None:
    assert 0.0 <= target.summand(value) <= 1.0
    assert -1.0 <= target.signal(value) <= 1.0
    capped = target.label(value)
    assert abs(capped - target.threshold) <= target.cap * (1.0 + 1e-9) + 1e-9
    near = pytest.approx(capped, rel=1e-9, abs=1e-6 * max(1.0, target.cap))
    assert target.value_of(target.summand(value)) == near
    assert target.prediction(target.taught("squared", value)) == near


def test_a_label_that_does_not_come_teaches_nothing() -> None:
    assert MINUTES.missing_label(None) is None
    assert MINUTES.on_missing("negative") == "drop"


def test_its_settings_are_those_of_state_records() -> None:
    text = target_text(MINUTES)
    assert text["stream.target.kind"] == "regression"
    assert target_from(text) == MINUTES == target_of(DELIVERIES.target)


def test_features_are_means_of_values() -> None:
    layout = FeatureLayout.of(DELIVERIES)
    assert layout.names[:4] == ("courier_value_mean", "courier_effect", "courier_noise", "courier_log_count")
    running = {"courier": {"half_life": "1d", "leans_on": "restaurant"}, "restaurant": {}}
    names = FeatureLayout.of(Stream.model_validate(DEFINITION | {"running": running})).running_names
    assert names == (
        *("courier_value_mean", "courier_log_count", "courier_restaurant_value_mean"),
        *("courier_recent_value_mean", "courier_log_since_last"),
        *("restaurant_value_mean", "restaurant_log_count"),
    )


def test_outputs_have_numbers() -> None:
    types = OutputTypes.of(DELIVERIES)
    fields = {field.name: field.type for field in msgspec.structs.fields(types.outcome)}
    assert fields["predicted"] is float
    assert fields["label"] == float | None
    example = {field.name: field.type for field in msgspec.structs.fields(types.example)}
    assert example["label"] is float


@pytest.mark.parametrize("minutes", [-12.5, 0, 1e9])
def test_labels_may_be_negative(minutes: float) -> None:
    label = {"order": "o1", "courier": "c1", "restaurant": "r1", "minutes": minutes}
    value = msgspec.json.encode(label | {"arrived_at": "2026-03-01T12:00:00Z"})
    [found] = decode([b"c1"], [value], InputDecoders.of(DELIVERIES).labels, 2**53)
    assert isinstance(found, Label)
    assert found.watch_ratio == minutes


def test_labels_out_of_range_are_refused_by_name() -> None:
    value = b'{"order":"o","courier":"c","restaurant":"r","minutes":-2e9,"arrived_at":"2026-03-01T12:00:00Z"}'
    [found] = decode([b"c"], [value], InputDecoders.of(DELIVERIES).labels, 2**53)
    assert isinstance(found, RejectedRecord)
    assert "`$.minutes`" in found.reason


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("[join]\non_missing = 'negative'", 'join.on_missing is "drop" where numbers are predicted'),
        ("[labels]\npolicy = 'margin'", 'labels.policy is "all" or "random" where numbers are predicted'),
    ],
)
def test_settings_for_two_classes_are_refused(tmp_path: Path, settings: str, message: str) -> None:
    (tmp_path / "deliveries.toml").write_bytes(
        files("pipeline.config").joinpath("streams/deliveries.toml").read_bytes()
    )
    file = tmp_path / "forks.toml"
    file.write_text(f"stream = '{tmp_path / 'deliveries.toml'}'\n{settings}\n")
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"learner": {"loss": "logistic"}}, "learner.loss: this target is learned with the loss squared"),
        (
            {"challengers": {"a": {"learner": "arow"}}},
            "challengers.a.learner: arow minimises hinge loss, and this target is learned with",
        ),
        (
            {"challengers": {"a": {"learner": "forks", "loss": "hinge"}}},
            "challengers.a.loss: this target is learned with the loss squared, not hinge",
        ),
    ],
)
def test_learners_of_two_classes_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ModelFactory(Config.model_validate({"stream": DEFINITION} | settings))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            {"kind": "ordinal", "name": "x"},
            'target: its kind is "binary" or "regression", not \'ordinal\'',
        ),
        ({"kind": "regression", "name": "x", "offset": 1.0, "scale": 0.0, "cap": 1.0}, "target.scale: Input"),
        ({"kind": "regression", "name": "x", "above": 1.0}, "target.offset: Field required"),
        ({"name": "x", "above": 1.0, "cap": 1.0}, "target.scale: Field required"),
    ],
)
def test_a_target_that_does_not_fit_is_refused_by_name(
    tmp_path: Path, target: dict[str, Any], message: str
) -> None:
    lines = [f"{name} = {msgspec.json.encode(value).decode()}" for name, value in target.items()]
    text = files("pipeline.config").joinpath("streams/deliveries.toml").read_text("utf-8")
    before, rest = text.split("[target]\n")
    after = rest[rest.index("# What is known") :]
    (tmp_path / "deliveries.toml").write_text("\n".join([before, "[target]", *lines, after]))
    file = tmp_path / "forks.toml"
    file.write_text(f"stream = '{tmp_path / 'deliveries.toml'}'\n")
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert message in str(caught.value)


def test_shares_may_have_labels_below_zero() -> None:
    signals = DEFINITION | {
        "labels": DEFINITION["labels"] | {"value_kind": "signal", "signals": {"like": 2.0, "hide": -1.0}},
        "target": {"name": "reaction", "above": 0.0, "cap": 2.0, "scale": 1.0},
    }
    for definition in (DEFINITION, signals):
        types = OutputTypes.of(Stream.model_validate(definition))
        make: Any = types.example
        label = -1.0 if definition is DEFINITION else False
        example = make("c1", "r1", 5, [0.0] * types.features, label, -1.0)
        data = msgspec.json.encode(example)
        assert msgspec.json.decode(data, type=types.example) == example
