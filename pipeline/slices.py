"""Slices of a log: decoded, and up to the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
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
