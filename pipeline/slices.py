"""Slices of a log: decoded while those before are in use, and up to the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, NamedTuple, TypeVar

import msgspec
from confluent_kafka import TopicPartition

from pipeline.log import Log, Record, all_decoded, offsets_of

Slice = TypeVar("Slice")


class Records(NamedTuple, Generic[Record]):
    """A slice of a log, decoded."""

    records: list[Record]
    offsets: list[int]

    def __bool__(self) -> bool:
        return bool(self.records)


def decoded_slices(
    log: Log, decoder: msgspec.json.Decoder[Record], place: TopicPartition
) -> Iterator[Records[Record]]:
    """Records from a place on, in the slices of `Log.read`.

    Raises
    ------
    StateError
        At a record that no worker wrote.
    """
    for messages in log.read(place.topic, place.partition, place.offset):
        yield Records(all_decoded(decoder, messages), offsets_of(messages))


def ahead(slices: Iterator[Slice]) -> Generator[Slice]:
    """Each of the slices, which never end, while the next is already being made in a thread of its own.

    An empty slice says that there is no more for now: the one after it is not made before it is asked for.
    `close` waits for the slice that is being made.

    Examples
    --------
    >>> from itertools import chain, islice, repeat
    >>> list(islice(ahead(chain(["ab", "c"], repeat(""))), 4))
    ['ab', 'c', '', '']
    """
    coming: Future[Slice] | None = None
    with ThreadPoolExecutor(1) as thread:
        while True:
            present = coming.result() if coming else next(slices)
            coming = thread.submit(next, slices) if present else None
            yield present


def read_until(slices: Iterable[Slice], left: Callable[[], int], patience: float) -> Iterator[Slice]:
    """Slices as `Log.read` gives them, up to the end.

    They go past it as long as records known to be there are hidden by a transaction, at most for `patience`
    seconds.
    """
    begin = time.monotonic()
    for each in slices:
        if each:
            begin = time.monotonic()
        elif left() <= 0 or time.monotonic() - begin > patience:
            return
        yield each
