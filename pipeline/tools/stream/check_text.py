"""The check of a stream as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from pipeline.tools.inspect.readable import printable
from pipeline.tools.stream.checking import InputCheck, StreamCheck
from pipeline.tools.terminal import numbers_table
from pipeline.tools.times import instant

EXAMPLE_WIDTH: Final = 40
"""Characters of an example, at most."""


def render(found: StreamCheck) -> RenderableType:
    """Return the check as text."""
    return Group(*_parts(found))


def _parts(found: StreamCheck) -> Iterator[RenderableType]:
    yield from _input("interactions", found.interactions)
    yield from _input("labels", found.labels)
    for name, table in found.tables.items():
        yield from _input(f"table {name}", table)
    labels = found.labels.usable
    if labels:
        yield Text(
            f"{found.joined:,} of {labels:,} labels are of events that were read, "
            f"{found.positive:,} are {_above(found)} ({found.positive / labels:.1%})"
        )
    for remark in found.remarks:
        yield Text.assemble(("look  ", "bold yellow"), printable(remark, 600))
    yield Text(f"{found.stream}: {'everything fits' if found.fits else 'not everything fits'}", style="bold")


def _above(found: StreamCheck) -> str:
    return "positive" if found.offset is None else f"above {found.offset:g}"


def _input(name: str, found: InputCheck) -> Iterator[RenderableType]:
    times = "" if found.first is None else f", from {instant(found.first)} to {instant(found.last or 0)}"
    yield Text.assemble(
        (f"{name} ", "bold"), f"in {found.topic}: {found.usable:,} of {found.messages:,} can be used{times}"
    )
    table = numbers_table("field", "at", "found", "as", "example", text=5)
    for field in found.fields:
        table.add_row(
            field.name,
            printable(field.pointer),
            f"{field.found:,} of {found.messages if field.items is None else field.items:,}",
            _kinds(field.kinds),
            "-" if field.example is None else printable(field.example, EXAMPLE_WIDTH),
        )
    if found.messages:
        yield table
    for reason in found.reasons:
        yield Text.assemble(
            (f"{reason.messages:,} {reason.fault}", "bold red"),
            f"  {printable(reason.reason)} (partition {reason.partition}, offset {reason.offset})",
        )
    yield Text()


def _kinds(kinds: Mapping[str, int]) -> str:
    """Return the kinds of values, with their numbers where there are several."""
    if len(kinds) == 1:
        return next(iter(kinds))
    return ", ".join(f"{kind} {count:,}" for kind, count in kinds.items())
