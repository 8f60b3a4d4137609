"""The tables of refusals.md, which this writes and the test compares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tests.security.refusal import Refusal

PAGE: Final = Path(__file__).parent / "refusals.md"
TITLE: Final = "| what is wrong | exit code | seconds | first line of the error |"
ROW: Final = re.compile(r"^\| (?P<case>.*?) \| (?P<code>\d+) \| [\d.]+ \| (?P<message>.*) \|$", re.MULTILINE)


def table(refusals: Iterable[Refusal]) -> str:
    """Return a table in Markdown."""
    rows = [
        f"| {refusal.case} | {refusal.exit_code} | {refusal.seconds:.1f} | {_cell(refusal.message)} |"
        for refusal in refusals
    ]
    return "\n".join([TITLE, "|---|---|---|---|", *rows])


def write(tables: Mapping[str, str]) -> None:
    """Put tables between their markers into the page."""
    text = PAGE.read_text()
    for name, content in tables.items():
        begin, end = markers(name)
        text = f"{text[: text.index(begin)]}{begin}\n\n{content}\n\n{text[text.index(end) :]}"
    PAGE.write_text(text)


def written(name: str) -> dict[str, tuple[int, str]]:
    """Return exit code and message by case, as the page has them."""
    begin, end = markers(name)
    text = PAGE.read_text()
    rows = ROW.finditer(text[text.index(begin) : text.index(end)])
    return {row["case"]: (int(row["code"]), row["message"]) for row in rows}


def found(refusals: Iterable[Refusal]) -> dict[str, tuple[int, str]]:
    """Return exit code and message by case, as `written` does."""
    return {refusal.case: (refusal.exit_code, _cell(refusal.message)) for refusal in refusals}


def markers(name: str) -> tuple[str, str]:
    """Return the comments before and behind a table."""
    return f"<!-- table: {name} -->", f"<!-- end: {name} -->"


def _cell(message: str) -> str:
    return message.replace("|", "\\|").replace("\n", " ")
