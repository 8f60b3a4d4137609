"""The pages on running, changing and comparing against the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

from pipeline.cli import app
from pipeline.config.settings import Config
from pipeline.errors import ForksError
from pipeline.model.challengers import resolve_challengers

DOCS: Final = Path(__file__).parents[1] / "docs"
LIMITS: Final = (DOCS / "limits.md").read_text()
GUIDES: Final = ("learners", "settings")
"""Pages with examples of configurations."""


def test_every_exit_code_is_there() -> None:
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", LIMITS, re.MULTILINE)}
    errors: list[type[ForksError]] = [ForksError, *ForksError.__subclasses__()]
    assert documented == {error.exit_code for error in errors} | {0, 130}
    assert documented == {int(code) for code in re.findall(r"\d+", app.info.epilog or "")}


@pytest.mark.parametrize("guide", GUIDES)
def test_the_examples_are_valid(guide: str) -> None:
    examples = re.findall(r"```toml\n(.*?)```", (DOCS / f"{guide}.md").read_text(), re.DOTALL)
    assert len(examples) > 1
    for example in examples:
        Config.model_validate(parsed := tomllib.loads(example))
        resolve_challengers(Config.model_validate(parsed).challengers, 0)
