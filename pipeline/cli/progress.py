"""Progress of a long operation on standard error: a bar on a terminal, a line every few seconds elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LOG_INTERVAL: Final = 5.0
"""Seconds between two lines where there is no terminal."""


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how many of `total` are done.

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
