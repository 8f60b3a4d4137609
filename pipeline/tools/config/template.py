"""Write a configuration file of the settings that people set, a line each, made from the code."""

from __future__ import annotations

import re
import textwrap
from typing import Final

from pipeline.config.settings import LEARNERS, Config
from pipeline.tools.config.toml import toml_value
from pipeline.tools.docstrings import attribute_docstrings, summary

COLUMN: Final = 32
"""Where the comments begin."""
NOT_SET: Final = "..."
"""Stands for the value of a setting that has none by default."""
RARE: Final = frozenset(
    {
        *("registry.client", "join.early_bytes", "join.max_ahead", "join.max_jump"),
        *("features.same_day", "features.kind", "sharing.max_wait", "labels.learn_unasked", "labels.seed"),
        *("worker.dead_letters", "serve.max_body", "serve.timeout", "serve.thompson_scale"),
    }
)
"""Settings that are left out."""

HEAD: Final = """\
# The settings that are set most, with their defaults. Remove the # before one to change it.
# `forks config show` lists all settings with their values, `forks config check` checks this file.
# Variables such as FORKS_JOIN__WINDOW override this file, and options override variables.

#stream = ...                   # File of your stream's definition; `forks stream init` drafts one
"""
LEARNER: Final = """\
[learner]                       # The model that predicts
#preset = "practical"           # What settings are that are not named: "practical" or "paper"
#budget = 160                   # Stored points: more cost time, and may predict better
"""
CHALLENGERS: Final = f"""\
{textwrap.fill(", ".join(LEARNERS), 100, initial_indent="# Learners: ", subsequent_indent="# ")}
#[challengers.wider]            # A further model, compared with it; any number, each with its name
#learner = "forks"
#budget = 320                   # Settings that differ
"""


def template() -> str:
    """Return the text of the file.

    Returns
    -------
    str
        TOML in which only the names of sections are no comments.
    """
    written = {"learner": LEARNER, "challengers": CHALLENGERS}
    names = [name for name in Config.model_fields if name != "stream"]
    return "\n".join([HEAD, *(written.get(name) or _section(name) for name in names)])


def _section(name: str) -> str:
    section = type(Config.model_fields[name].default)
    lines = [_line(f"[{name}]", summary(section))]
    texts = attribute_docstrings(section)
    for key, field in section.model_fields.items():
        if f"{name}.{key}" not in RARE:
            default = field.get_default(call_default_factory=True)
            value = NOT_SET if default is None else toml_value(default)
            lines.append(_line(f"#{key} = {value}", texts.get(key, "")))
    return "\n".join(lines) + "\n"


def _line(setting: str, text: str) -> str:
    r"""Return a line with the first sentence of a text as its comment, or what stands before a semicolon.

    Examples
    --------
    >>> _line("#window = \"6h\"", "How long a `label` is waited for; then it is late. Longer costs memory.")
    '#window = "6h"                  # How long a label is waited for'
    """
    comment = re.split(r"[.;] |\.$", text.replace("`", ""))[0]
    return f"{setting.ljust(COLUMN - 1)} # {comment}" if comment else setting
