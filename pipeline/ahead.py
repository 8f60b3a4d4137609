"""Making the next of a stream of things while the present one is in use."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Thing = TypeVar("Thing")


def one_ahead(things: Iterator[Thing]) -> Iterator[Thing]:
    """Each of the things, while the next is already being made in a thread of its own.

    Whoever stops early waits for the one under way.

    Examples
    --------
    >>> list(one_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(_next, things)
        while thing := coming.result():
            coming = thread.submit(_next, things)
            yield thing[0]


def _next(things: Iterator[Thing]) -> tuple[Thing] | None:
    for thing in things:
        return (thing,)
    return None
