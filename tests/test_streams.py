"""The page on definitions of streams is about the code's settings, and its examples are valid."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import get_args

from pipeline.config.feature_layout import FeatureLayout
from pipeline.config.section import Section
from pipeline.config.stream import InteractionDefinition, LabelDefinition, OutputDefinition, Stream
from pipeline.config.stream_features import (
    BooleanFeature,
    CategoryFeature,
    IdFeature,
    NumberFeature,
    RunningFeature,
    RunningTable,
    TextFeature,
    TimeFeature,
    VectorFeature,
)
from pipeline.config.target_settings import BinarySettings, RegressionSettings

FEATURES = (
    *(NumberFeature, BooleanFeature, CategoryFeature, TextFeature, VectorFeature),
    *(IdFeature, TimeFeature),
)
TEXT = (Path(__file__).parents[1] / "docs" / "streams.md").read_text()


def test_every_setting_is_there_once() -> None:
    documented = re.findall(r"^\| `([a-z_.]+)` \|[^|]*\|$", TEXT, re.MULTILINE)
    sections: dict[str, type[Section]] = {
        "interactions": InteractionDefinition,
        "labels": LabelDefinition,
        "outputs": OutputDefinition,
        "target": RegressionSettings,
    }
    settings = {f"{name}.{key}" for name, section in sections.items() for key in section.model_fields}
    settings |= {f"target.{name}" for name in BinarySettings.model_fields}
    settings |= {f"features.{name}" for kind in FEATURES for name in kind.model_fields}
    settings |= {f"running.{name}" for name in RunningTable.model_fields}
    documented = [name for name in documented if name not in get_args(RunningFeature)]
    assert sorted(documented) == sorted([*settings, *(Stream.model_fields.keys() - sections.keys())])


def test_every_running_feature_is_there() -> None:
    rows = re.findall(r"^\| (`[a-z_]+`(?:, `[a-z_]+`)*) \| [A-Z]", TEXT, re.MULTILINE)
    documented = {name for row in rows for name in re.findall(r"`([a-z_]+)`", row)}
    assert documented >= {*get_args(RunningFeature)}


def test_the_examples_are_valid() -> None:
    streams = [tomllib.loads(example) for example in re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)]
    assert [Path(parsed["stream"]).suffix for parsed in streams if isinstance(parsed.get("stream"), str)] == [
        ".toml"
    ]
    drafted, whole, slates = (parsed for parsed in streams if "name" in parsed)
    parts = [parsed for parsed in streams if "name" not in parsed]
    [features, running] = [parsed for parsed in parts if {"features", "running"} & parsed.keys()]
    assert Stream.model_validate(drafted).name == "bike_hour"
    assert Stream.model_validate(whole).name == "deliveries"
    assert Stream.model_validate(slates).has_slates
    assert len(FeatureLayout.of(Stream.model_validate(whole | features | running)).names) > 40
