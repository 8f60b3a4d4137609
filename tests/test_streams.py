"""The page on definitions of streams is about the code's settings, and its examples are valid."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from pipeline.config.section import Section
from pipeline.config.stream import InputDefinition, LabelDefinition, Stream, TargetSettings

TEXT = (Path(__file__).parents[1] / "docs" / "streams.md").read_text()


def test_every_setting_is_there_once() -> None:
    documented = re.findall(r"^\| `([a-z_.]+)` \|[^|]*\|$", TEXT, re.MULTILINE)
    sections: dict[str, type[Section]] = {
        "interactions": InputDefinition,
        "labels": LabelDefinition,
        "target": TargetSettings,
    }
    settings = [f"{name}.{key}" for name, section in sections.items() for key in section.model_fields]
    assert sorted(documented) == sorted([*settings, *(Stream.model_fields.keys() - sections.keys())])


def test_the_examples_are_valid() -> None:
    streams = [tomllib.loads(example) for example in re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)]
    assert [Path(parsed["stream"]).suffix for parsed in streams if isinstance(parsed.get("stream"), str)] == [
        ".toml"
    ]
    assert [Stream.model_validate(parsed).name for parsed in streams if "name" in parsed] == ["deliveries"]
