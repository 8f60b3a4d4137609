"""Write a configuration file in which every setting is explained, made from the code."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Final

from pydantic.fields import FieldInfo

from forks import ForksSettings
from pipeline.config.settings import LEARNERS, Challenger, Config, Learner
from pipeline.model.learner_settings import learner_settings
from pipeline.tools.config.toml import toml_value
from pipeline.tools.docstrings import attribute_docstrings, summary

WIDTH: Final = 100
"""Characters of a line of a comment, at most."""
NOT_SET: Final = "..."
"""Stands for the value of a setting that has none by default."""
FOLLOWS: Final = frozenset({"dimension", "linear_columns", "kernel_columns", "width", "offset_column"})
"""Settings of the learner that follow from the features, or from the other settings."""

HEAD: Final = """\
# The settings of forks, all of them, with their defaults. Remove the # before a setting to change it.
# Variables such as FORKS_JOIN__WINDOW override this file, and options override variables.
# Check it with `forks config check`, and see what is in force with `forks config show`.
"""
STREAM: Final = """\
# The definition of your stream: the path of a file, or the table [stream]. `forks stream init` drafts one.
# Not set, it is that of KuaiRec's plays.
#stream = ...
"""


def template() -> str:
    """Return the text of the file.

    Returns
    -------
    str
        TOML in which only the names of sections are no comments.
    """
    parts = [HEAD, STREAM]
    for name, field in Config.model_fields.items():
        if name == "stream":
            continue
        if name == "learner":
            parts.append(_learner())
        elif name == "challengers":
            parts.append(_challengers())
        else:
            section = type(field.default)
            lines = [*_comment(summary(section)), f"[{name}]"]
            texts = attribute_docstrings(section)
            for key, each in section.model_fields.items():
                lines += [*_comment(texts.get(key, "")), _setting(key, _default(each))]
            parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _default(field: FieldInfo) -> Any:
    """Return a default as a file has it: a duration is a text there."""
    return field.get_default(call_default_factory=True)


def _setting(name: str, value: Any) -> str:
    return f"#{name} = {NOT_SET if value is None else toml_value(value)}"


def _comment(text: str) -> Iterator[str]:
    plain = re.sub("`{1,2}", "`", text)
    return (
        f"# {line}" for line in textwrap.wrap(plain, WIDTH, break_long_words=False, break_on_hyphens=False)
    )


def _learner() -> str:
    """Return the section of the learner, with the values of the default preset."""
    settings = Learner()
    values = asdict(learner_settings(settings, 0))
    texts = _attributes_of(inspect.getdoc(ForksSettings) or "")
    lines = [*_comment(summary(Learner)), "[learner]"]
    lines += [*_comment(attribute_docstrings(Learner).get("preset", "")), _setting("preset", settings.preset)]
    for name in [name for name in values if name != "dimension"]:
        value = None if name in FOLLOWS else values[name]
        lines += [*_comment(texts.get(name, "")), _setting(name, value)]
    return "\n".join(lines) + "\n"


def _attributes_of(docstring: str) -> dict[str, str]:
    """Return the descriptions in the section `Attributes` of a docstring, by name."""
    section = re.split(r"^\w[\w ]*\n-+$", docstring.split("Attributes\n----------\n")[1], flags=re.MULTILINE)[
        0
    ]
    found: dict[str, str] = {}
    names: list[str] = []
    for line in section.splitlines():
        if line.startswith(" "):
            for name in names:
                found[name] = f"{found.get(name, '')} {line.strip()}".strip()
        elif line:
            names = line.split(", ")
    return found


def _challengers() -> str:
    lines = [
        *_comment(summary(Challenger)),
        *_comment(
            f"Any number of them, each with a name of its own. The learners are {', '.join(LEARNERS)}."
        ),
        "#[challengers.wider]",
        '#learner = "forks"',
        "#budget = 320",
    ]
    return "\n".join(lines) + "\n"
