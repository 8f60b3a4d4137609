"""Render records as lines for a terminal: the fields of their JSON objects, whatever their kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from rich.text import Text

from pipeline.tools.inspect.readable import printable
from pipeline.tools.times import instant

PLACE_WIDTH: Final = 10
NAME_WIDTH: Final = 22
OWN: Final = ("fault", "reason", "source", "cut_from", "snapshot", "bytes")
"""Fields that are shown before those of the value."""
FEW: Final = 8
"""Fields of an object that are shown without detail, at most."""


def show(record: Mapping[str, Any], *, detail: bool = False, features: Sequence[str] = ()) -> Text:
    """Render a record in one line, or with one line for each field.

    Parameters
    ----------
    record
        Object of `pipeline.tools.inspect.objects.as_object`.
    detail
        Whether to show every field, instead of the number of values of lists and large objects.
    features
        Names of the features of predictions and outcomes.
    """
    place = f"{record['partition']}:{record['offset']}"
    text = Text.assemble((f"{place:>{PLACE_WIDTH}}", "bold"), f"  {instant(record['timestamp'])}")
    if record.get("encoding", "json") != "json" and "fault" not in record:
        text.append("  cannot be decoded", "red")
    for name, value in _fields(_content(record), features, detail=detail):
        safe = printable(name)
        text.append(f"\n{'':{PLACE_WIDTH}}  {safe:{NAME_WIDTH}} " if detail else f"  {safe} ", "dim")
        text.append(printable(value))
    return text


def _content(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields behind place and time; those of a value in JSON stand for themselves."""
    shown = {name: record[name] for name in OWN if name in record}
    value = record.get("value")
    if record.get("encoding") == "json" and isinstance(value, dict):
        return shown | value
    kept = {name: record[name] for name in ("key", "value", "headers") if name in record}
    return shown | kept


def _fields(
    value: Any, features: Sequence[str], path: str = "", *, detail: bool
) -> Iterator[tuple[str, str]]:
    """Yield the paths and the texts of the fields of a value."""
    match value:
        case dict() if detail or not path or len(value) <= FEW:
            for name, each in value.items():
                yield from _fields(each, features, f"{path}.{name}" if path else name, detail=detail)
        case list() if detail:
            named = path.rpartition(".")[2] == "features" and len(value) == len(features)
            paths = features if named else [f"{path}.{number}" for number in range(len(value))]
            for name, each in zip(paths, value, strict=True):
                yield from _fields(each, features, name, detail=detail)
        case dict() | list():
            yield path, f"[{len(value)}]"
        case None if not detail:
            return
        case str():
            yield path, value
        case float() if not detail:
            yield path, f"{value:.4g}"
        case _:
            yield path, msgspec.json.encode(value).decode()
