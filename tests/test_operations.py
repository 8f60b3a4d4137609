"""The documentation of the settings against the settings."""

from __future__ import annotations

import re
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import pytest

from pipeline.cli import app
from pipeline.config.settings import Config, Learner
from pipeline.errors import ForksError
from pipeline.model.challengers import resolve_challengers
from pipeline.model.learner_settings import learner_settings

TEXT = (Path(__file__).parents[1] / "docs" / "operations.md").read_text()
ROWS = re.findall(r"^\| `(\w+)\.(\w+)` \| (.*?) \| (.*?) \|", TEXT, re.MULTILINE)
SECTIONS = {
    name: field.default
    for name, field in Config.model_fields.items()
    # The settings of learner and challengers are those of their learners; docs/streams.md has the stream's.
    if name not in ("learner", "challengers", "stream")
}
FOLLOWS_COLUMNS = {"linear_columns", "kernel_columns"}


def toml(cell: str) -> Any:
    """The value that stands in a cell as it would in a configuration file."""
    assert cell.startswith("`")
    return tomllib.loads(f"value = {cell.strip('`')}")["value"]


def test_every_setting_is_there_once() -> None:
    documented = [f"{section}.{key}" for section, key, *_ in ROWS]
    settings = [
        f"{section}.{key}" for section, default in SECTIONS.items() for key in type(default).model_fields
    ]
    learner = {"preset", *asdict(learner_settings(Learner(), 0))} - {"dimension"}
    assert sorted(documented) == sorted(settings + [f"learner.{key}" for key in learner])


@pytest.mark.parametrize(("section", "key", "cell"), [row[:3] for row in ROWS if row[0] in SECTIONS])
def test_every_default_is_the_code_s(section: str, key: str, cell: str) -> None:
    default = SECTIONS[section]
    if cell == "none":
        assert getattr(default, key) is None
    else:
        assert type(default).model_validate({key: toml(cell)}) == default


@pytest.mark.parametrize("preset", ["practical", "paper"])
def test_every_preset_is_the_code_s(preset: Literal["practical", "paper"]) -> None:
    column = 2 if preset == "practical" else 3
    cells = {row[1]: row[column] for row in ROWS if row[0] == "learner"}
    assert toml(cells.pop("preset")) == preset
    settings = asdict(learner_settings(Learner(preset=preset), 0))
    for key in [key for key, cell in cells.items() if cell == "none"]:
        assert settings[key] is None
        del cells[key]
    in_words = {key for key, cell in cells.items() if not cell.startswith("`")}
    assert in_words == (
        FOLLOWS_COLUMNS | {"width", "offset_column"} if preset == "practical" else FOLLOWS_COLUMNS
    )
    for key in cells.keys() - in_words:
        value = settings[key]
        assert toml(cells[key]) == (list(value) if isinstance(value, tuple) else value)


def test_every_exit_code_is_there() -> None:
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)}
    errors: list[type[ForksError]] = [ForksError, *ForksError.__subclasses__()]
    assert documented == {error.exit_code for error in errors} | {0, 130}
    assert documented == {int(code) for code in re.findall(r"\d+", app.info.epilog or "")}


def test_the_examples_are_valid() -> None:
    examples = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    assert examples
    for example in examples:
        Config.model_validate(parsed := tomllib.loads(example))
        resolve_challengers(Config.model_validate(parsed).challengers, 0)
