"""Write values as TOML."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any


def toml_value(value: Any) -> str:
    r"""Write a value as TOML does.

    Examples
    --------
    >>> print(toml_value("a\"b"), toml_value(True), toml_value(float("inf")), toml_value((1, 2.5)))
    "a\"b" true inf [1, 2.5]
    >>> print(toml_value({"sasl.username": "x"}))
    { "sasl.username" = "x" }
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | Path):  # what JSON escapes, TOML escapes alike, but for the character DEL
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict):
        pairs = ", ".join(f"{toml_key(name)} = {toml_value(inner)}" for name, inner in value.items())
        return f"{{ {pairs} }}" if pairs else "{}"
    return str(value)


def toml_key(name: str) -> str:
    """Write the name of a setting, in quotes where it needs them.

    Examples
    --------
    >>> toml_key("window"), toml_key("sasl.password")
    ('window', '"sasl.password"')
    """
    return name if re.fullmatch("[A-Za-z0-9_-]+", name) else toml_value(name)
