"""What commands show in a terminal: tables and numbers on standard output, progress on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.status import Status
from rich.table import Table
from rich.text import Text

LOG_INTERVAL: Final = 5.0
"""Seconds between two lines of progress where there is no terminal."""
COMPILING: Final = "Compiling the learner, which takes some seconds the first time ..."


def show(*parts: RenderableType) -> None:
    """Print on standard output; what is wider than a terminal is left to the terminal to wrap."""
    Console(highlight=False, soft_wrap=True).print(*parts)


def notice(text: str) -> None:
    """Print a line on standard error."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(text, markup=False)


def waiting(text: str) -> Status:
    """Return a context manager that shows a text while something is done."""
    return Console(stderr=True).status(text)


def plain_table() -> Table:
    """Return a table without borders, whose header is bold."""
    return Table(box=None, padding=(0, 2, 0, 0), header_style="bold")


def numbers_table(*names: str, text: int = 1) -> Table:
    """Return a plain table whose first columns have text, and the others numbers.

    Parameters
    ----------
    *names
        Names of the columns.
    text
        Number of columns with text.
    """
    table = plain_table()
    for number, name in enumerate(names):
        table.add_column(name, justify="left" if number < text else "right")
    return table


def named_values(values: Iterable[tuple[str, str]]) -> Table:
    """Return a table with a name and a value in each row."""
    table = Table.grid(padding=(0, 2))
    for name, value in values:
        table.add_row(Text(name, style="bold"), Text(value))
    return table


def number_or_dash(value: float | None, spec: str = ".4f") -> str:
    """Format a number, or return a dash for a number that is not defined.

    Parameters
    ----------
    value
        Number, or None.
    spec
        Format specification of the number.

    Examples
    --------
    >>> number_or_dash(0.25), number_or_dash(0.25, ".0%"), number_or_dash(None)
    ('0.2500', '25%', '-')
    """
    return "-" if value is None else format(value, spec)


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how many of `total` are done: a bar on a terminal, a line every few seconds elsewhere.

    Parameters
    ----------
    what
        Name of the operation.
    total
        Number of its steps.

    Yields
    ------
    callable
        To be called with the number of steps that are done.
    """
    console = Console(stderr=True)
    if console.is_terminal:
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        with Progress(*columns, console=console) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.update(task, completed=done)
    else:
        yield _log_lines(console, what, total)


def _log_lines(console: Console, what: str, total: int) -> Callable[[int], None]:
    begin = last_line = time.monotonic()

    def update(done: int) -> None:
        nonlocal last_line
        now = time.monotonic()
        if now - last_line >= LOG_INTERVAL:
            last_line = now
            rate = done / (now - begin)
            console.print(
                f"{what}: {done:,} of {total:,} ({done / total:.0%}), {rate:,.0f}/s", soft_wrap=True
            )

    return update
