"""Definitions of streams: what is refused, and what the message names."""

from __future__ import annotations

from copy import deepcopy
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from pipeline.config.loader import load
from pipeline.config.stream import KUAIREC, RESERVED, Stream
from pipeline.config.tree import Config
from pipeline.errors import ConfigError
from pipeline.kafka.topics import topics_of
from pipeline.records.outputs import Outcome, Prediction

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
        ("entities", {"user_id": "/user_id"}, "entities has 1 ids, and needs two"),
        ("entities", {"a": "/a", "b": "/b", "c": "/c"}, "entities has 3 ids, and needs two"),
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
        ("interactions.time_unit", "minutes", "'ms', 'us', 's' or 'iso8601'"),
        ("labels.value_kind", "text", "'number' or 'boolean'"),
        ("entities", {"user_id": "/a", "score": "/b"}, "score is the name of another field of outputs"),
        ("entities", {"user_id": "/a", "Video": "/b"}, "should match pattern"),
        ("target.name", "user_id", "the label and an id are both called user_id"),
        ("target.above", -1, "greater than or equal to 0"),
        ("target.scale", 0, "greater than 0"),
        ("target.kind", "ordinal", "Extra inputs are not permitted"),
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
    assert fields > RESERVED


def test_inputs_have_a_prefix_of_their_own() -> None:
    config = Config.model_validate({"kafka": {"prefix": "b-", "input_prefix": "plays."}})
    topics = topics_of(config)
    assert topics.inputs == ("plays.interactions", "plays.watch-labels")
    assert topics.predictions == "b-predictions"
    assert topics_of(Config.model_validate({"kafka": {"prefix": "b-"}})).interactions == "b-interactions"
