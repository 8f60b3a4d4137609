"""Definitions of streams: what is refused, and what the message names."""

from __future__ import annotations

import re
from copy import deepcopy
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from forks.checks import LARGEST_WEIGHT
from pipeline.config.loader import load
from pipeline.config.settings import Config, Features
from pipeline.config.stream import KUAIREC, RESERVED, LabelDefinition, Stream
from pipeline.config.topics import topics_of
from pipeline.errors import ConfigError
from pipeline.model.settings_text import features_text
from pipeline.records.fields import LabelWeight
from pipeline.records.outputs import Outcome, Prediction
from pipeline.recovery.settings_check import differences

DEFINITION = KUAIREC.model_dump()


def changed(path: str, value: object) -> dict[str, Any]:
    """Return KuaiRec's definition with another value at a dotted path."""
    definition = deepcopy(DEFINITION)
    *sections, name = path.split(".")
    inner = definition
    for section in sections:
        inner = inner[section]
    inner[name] = value
    return definition


def test_without_a_definition_the_stream_is_kuairec_s() -> None:
    assert Config().stream == KUAIREC
    assert Stream.model_validate(DEFINITION) == KUAIREC


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (
            "entities",
            {"user_id": "/id", "video_id": "/id"},
            "entities.user_id and entities.video_id are both /id",
        ),
        (
            "interactions.event_id",
            "/user_id",
            "interactions: event_id and entities.user_id are both /user_id",
        ),
        ("labels.value", "/timestamp/value", "labels: time is /timestamp and value is /timestamp/value"),
        ("interactions.numbers", {"x": "/user_id"}, "numbers.x and entities.user_id are both /user_id"),
        ("interactions.topic", "watch-labels", "interactions and labels have the same topic, watch-labels"),
        ("interactions.time", "timestamp", 'like "/user_id" or "/user/id"'),
        ("interactions.time", "/a//b", 'like "/user_id" or "/user/id"'),
        ("interactions.time", "/a~2", 'like "/user_id" or "/user/id"'),
        ("interactions.time", "/a" * 9, "a pointer has at most 8 names"),
        ("interactions.time_unit", "minutes", "'ms', 'us', 'ns', 's', 'iso8601' or 'text'"),
        ("interactions.time_unit", "text", 'with time_unit = "text" only'),
        ("interactions.time_format", "%d.%m.%Y", 'with time_unit = "text" only'),
        ("interactions.utc_offset", "+01:00", "numbers since 1970 are UTC"),
        ("interactions.time_of_day", "/hour", "time_of_day is where the time of the day is"),
        ("labels.value_kind", "text", "'number', 'boolean' or 'signal'"),
        ("entities", {"user_id": "/a", "score": "/b"}, "score is the name of another field of outputs"),
        ("entities", {"user_id": "/a", "Video": "/b"}, "should match pattern"),
        ("target.name", "user_id", "the label and an id are both called user_id"),
        ("target.above", -1, "greater than or equal to 0"),
        ("target.scale", 0, "greater than 0"),
        ("target.kind", "multiclass", 'its kind is "binary" or "regression", not '),
    ],
)
def test_what_does_not_fit_is_refused_by_name(path: str, value: object, message: str) -> None:
    with pytest.raises(ValueError, match="validation error") as caught:
        Stream.model_validate(changed(path, value))
    assert message in str(caught.value)


def test_a_refused_setting_is_named_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "forks.toml"
    file.write_text('[stream]\nname = "a"\n[stream.entities]\nuser = "user"\n')
    with pytest.raises(ConfigError) as caught:
        load(file)
    text = str(caught.value)
    assert f"{file}: stream.entities.user: a pointer names a field by its path" in text
    assert f"{file}: stream.interactions: Field required" in text


def test_a_definition_may_be_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("forks.toml").write_text('stream = "plays.toml"\n')
    with pytest.raises(ConfigError, match=r"forks\.toml: stream: plays\.toml cannot be read: No such file"):
        load()
    shipped = files("pipeline.config").joinpath("streams/kuairec.toml").read_text("utf-8")
    Path("plays.toml").write_text(shipped.replace('"/video_id"', '"/item/id"'))
    assert load().stream.entities == {"user_id": "/user_id", "video_id": "/item/id"}
    Path("plays.toml").write_text(shipped.replace('"/video_id"', '"video_id"'))
    with pytest.raises(ConfigError, match=r"plays\.toml: entities\.video_id: a pointer names a field"):
        load()
    Path("plays.toml").write_text("[")
    with pytest.raises(ConfigError, match=r"plays\.toml is not valid TOML"):
        load()


def test_ids_and_labels_cannot_be_called_like_other_fields() -> None:
    fields = {*Outcome.__struct_fields__, *Prediction.__struct_fields__}
    assert fields - RESERVED == {"user_id", "video_id", "watch_ratio"}
    assert fields | {"tables"} > RESERVED


def test_inputs_have_a_prefix_of_their_own() -> None:
    config = Config.model_validate({"kafka": {"prefix": "b-", "input_prefix": "plays."}})
    topics = topics_of(config)
    assert topics.inputs == ("plays.interactions", "plays.watch-labels")
    assert topics.predictions == "b-predictions"
    assert topics_of(Config.model_validate({"kafka": {"prefix": "b-"}})).interactions == "b-interactions"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key": "nobody"}, "the key is nobody, which is neither an entity nor event_id"),
        ({"entities": {"user": "/user", "user_id": "/id"}}, "user and user_id would both be called user"),
        ({"features": {"user_id": {"kind": "hour"}}}, "user_id is the name of an entity and of a feature"),
        ({"features": {"x": {"kind": "number", "field": "/user_id"}}}, "are both /user_id"),
        (
            {"features": {"x": {"kind": "angle"}}},
            "'number', 'boolean', 'category', 'text', 'vector', 'id', 'hour', 'weekday'",
        ),
        ({"features": {"x": {"kind": "number", "field": "/x", "clip": [2, 1]}}}, "and then a larger one"),
        ({"features": {"x": {"kind": "hour", "utc_offset": "8"}}}, 'like "+08:00" or "-05:30"'),
        ({"features": {"x": {"kind": "vector", "field": "/x"}}}, "length"),
        ({"running": {"city": {}}}, "running.city is of city, which is no entity, category or number"),
        ({"running": {"x": {"of": ["user_id", "user_id"]}}}, "running.x is of user_id twice"),
        ({"running": {"user_id": {"features": ["label_mean"] * 2}}}, "label_mean stands there twice"),
        ({"running": {"user_id": {"features": ["recent_label_mean"]}}}, "for which it needs half_life"),
        ({"running": {"user_id": {"features": ["log_recent_count"]}}}, "for which it needs half_life"),
        (
            {"running": {"user_id": {"half_life": "1h", "features": ["recent_residual"]}}},
            "recent_residual, for which it needs half_life, and the stream effects",
        ),
        ({"running": {"user_id": {"features": ["leaning_label_mean"]}}}, "for which it needs leans_on"),
        ({"running": {"user_id": {"leans_on": "city"}}}, "leans on city, which is no other table"),
        ({"running": {"user_id": {"features": ["effect"]}}}, "it needs to be one of effects"),
        ({"running": {"user_id": {}}, "effects": ["user_id", "video_id"]}, "effects name video_id"),
        (
            {
                "running": {"user_id": {}, "video_id": {"features": ["effect"]}},
                "effects": ["user_id", "video_id"],
            },
            "effects name video_id, whose features lack effect or noise",
        ),
        ({"running": {"user_id": {"half_life": "0s"}}}, "half_life"),
    ],
)
def test_features_that_do_not_fit_are_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(message)):
        Stream.model_validate(KUAIREC.model_dump(mode="json") | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"entities": {}}, "the stream has no features: name entities, or features of its messages"),
        ({"entities": {"tag": "/tag", "x": "/x"}}, "two tables called tags"),
        (
            {"features": {"user_log_count": {"kind": "number", "field": "/x"}}},
            "two features called user_log_count",
        ),
    ],
)
def test_names_that_outputs_could_not_tell_apart_are_refused(changes: dict[str, Any], message: str) -> None:
    stream = Stream.model_validate(KUAIREC.model_dump(mode="json") | changes)
    with pytest.raises(ValidationError, match=message):
        Config(stream=stream)


def test_a_table_by_an_id_that_the_stream_lacks_is_refused() -> None:
    stream = Stream.model_validate(KUAIREC.model_dump(mode="json") | {"entities": {"device": "/device"}})
    with pytest.raises(ValidationError, match=r"features\.tags is a table by the id of entity 2"):
        Config(stream=stream, features=Features(tags=Path("tags.csv")))


@pytest.mark.parametrize(
    "labels",
    [{"value_kind": "signal"}, {"signals": {"click": 1.0}}],
)
def test_signals_go_with_their_kind_of_value(labels: dict[str, Any]) -> None:
    definition = KUAIREC.model_dump(mode="json")
    with pytest.raises(ValidationError, match="signals"):
        Stream.model_validate(definition | {"labels": definition["labels"] | labels})


SIGNALS: dict[str, Any] = {"value_kind": "signal", "signals": {"click": 1.0, "hide": -1.0}}


def with_labels(**labels: Any) -> dict[str, Any]:
    definition = KUAIREC.model_dump(mode="json")
    return definition | {"labels": definition["labels"] | labels}


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"weight": "weight"}, 'like "/user_id" or "/user/id"'),
        ({"weight": "/timestamp"}, "labels: time and weight are both /timestamp"),
        ({"weight": "/watch_ratio/weight"}, "weight is /watch_ratio/weight: one is within the other"),
        ({"weight": 3.0}, "labels.weight"),
        ({"weights": {"click": 2.0}}, 'weights are those of signals: with value_kind = "signal" only'),
        (SIGNALS | {"weights": {"like": 2.0}}, "weights.like is of no signal: there are click, hide"),
        (SIGNALS | {"weights": {"click": 2.0}, "weight": "/weight"}, "take one of them"),
        (SIGNALS | {"weights": {"click": -0.5}}, "labels.weights.click"),
        (SIGNALS | {"weights": {"click": 1000.5}}, "labels.weights.click"),
        (SIGNALS | {"weights": {"click": float("nan")}}, "labels.weights.click"),
        (SIGNALS | {"weights": {"click": "heavy"}}, "labels.weights.click"),
    ],
)
def test_weights_that_do_not_fit_are_refused_by_name(labels: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match="labels") as caught:
        Stream.model_validate(with_labels(**labels))
    assert message.replace("labels.weights.", "") in str(caught.value)
    assert message.startswith("labels.weights.") <= ("labels.weights.click" in str(caught.value))


def test_only_outputs_with_weights_have_a_field_of_this_name() -> None:
    definition = with_labels()
    definition["target"]["name"] = "weight"
    assert Stream.model_validate(definition).target.name == "weight"
    definition["labels"]["weight"] = "/weight"
    with pytest.raises(ValidationError, match="weight is the name of another field of outputs"):
        Stream.model_validate(definition)


def test_weights_are_settings_that_outputs_depend_on() -> None:
    texts = [
        features_text(Stream.model_validate(with_labels(**labels)))
        for labels in ({}, {"weight": "/weight"}, SIGNALS, SIGNALS | {"weights": {"click": 2.0}})
    ]
    for number, one in enumerate(texts):
        assert all(differences(one, other) for other in texts[number + 1 :])
    moved = features_text(Stream.model_validate(with_labels(weight="/more/weight")))
    assert not differences(moved, texts[1])  # where it is may change


def test_the_range_of_weights_is_the_same_everywhere() -> None:
    [schema] = [msgspec.json.schema(LabelWeight)]
    assert (schema["minimum"], schema["maximum"]) == (0, LARGEST_WEIGHT)
    of_signals = LabelDefinition.model_json_schema()["properties"]["weights"]["additionalProperties"]
    assert (of_signals["minimum"], of_signals["maximum"]) == (0, LARGEST_WEIGHT)
