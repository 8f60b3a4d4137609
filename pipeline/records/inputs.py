"""Records of the input topics, and their raw messages."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.records.fields import Id, Timestamp


class InputRecord(msgspec.Struct, frozen=True, gc=False):
    """What both inputs say of an event.

    The types that are decoded have these properties as fields. Which fields of a message they are is up to
    the stream's definition: see `pipeline.records.input_decoders`.
    """

    id_fields: ClassVar[tuple[str, ...]] = ()
    """The fields that hold `ids`."""

    @property
    def event_id(self) -> Id:
        """The event's id."""
        raise NotImplementedError

    @property
    def ids(self) -> tuple[Id, ...]:
        """The ids of the stream's entities."""
        raise NotImplementedError

    @property
    def timestamp(self) -> Timestamp:
        """The time in milliseconds, when the event happened or its label was known."""
        raise NotImplementedError


def id_columns(records: Sequence[InputRecord], entities: int) -> tuple[list[Id], ...]:
    """Return the ids of records of one type that name so many entities, one column for each.

    Examples
    --------
    >>> from pipeline.records.kuairec import WatchLabel
    >>> id_columns([WatchLabel("e", 7, "v", 5, play_duration=1.0, watch_ratio=0.5)], 2)
    ([7], ['v'])
    """
    if not records:
        return tuple([] for _ in range(entities))
    return tuple([*map(attrgetter(name), records)] for name in records[0].id_fields)


Carried: TypeAlias = tuple[float | None, ...]
"""Numbers in the order of `pipeline.config.stream.CARRIED`, None where a message has none."""


class Interaction(InputRecord, frozen=True, gc=False):
    """An event, such as an item that is presented to a user. It also has what the stream's features need."""

    @property
    def carried(self) -> Carried:
        """The numbers that its prediction and outcome carry as they are; none where a stream has none."""
        return ()


class Slate(Interaction, frozen=True, gc=False):
    """Items that were shown together. It has no ids: each of its items has all of them."""

    @property
    def items(self) -> tuple[Interaction, ...]:
        """The items in the order in which they were shown, each with the event's id and time."""
        raise NotImplementedError


def feature_field(number: int) -> str:
    """Return the field of an interaction that has the feature of this number in the stream's definition."""
    return f"feature_{number}"


class Label(InputRecord, frozen=True, gc=False):
    """What became of an interaction."""

    @property
    def weight(self) -> float:
        """How many labels it counts as when it is learned; a field where the stream's labels have weights."""
        return 1.0

    @property
    def watch_ratio(self) -> float:
        """The label's value."""
        raise NotImplementedError


Headers: TypeAlias = Sequence[tuple[str, bytes | None]]


class KafkaMessage(Protocol):
    """A message as a client hands it over."""

    def topic(self) -> str | None: ...
    def partition(self) -> int | None: ...
    def offset(self) -> int | None: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> Any: ...


class RawMessage(NamedTuple):
    """A message before it is decoded."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    @classmethod
    def of(cls, message: KafkaMessage) -> RawMessage:
        """Copy what a client delivered."""
        return cls(
            message.topic() or "",
            message.partition() or 0,
            message.offset() or 0,
            message.key(),
            message.value(),
            message.headers() or [],
        )

    @property
    def size(self) -> int:
        """Size of key, value and headers, in bytes."""
        return int(sizes([self.key], [self.value], [self.headers])[0])


def sizes(
    keys: Sequence[bytes | None], values: Sequence[bytes | None], headers: Sequence[Any]
) -> NDArray[np.int64]:
    """Return the size of each message's key, value and headers (pairs or None), in bytes; shape (n,)."""
    bare = [len(key or b"") + len(value or b"") for key, value in zip(keys, values, strict=True)]
    return with_headers(np.array(bare, dtype=np.int64), headers)


def with_headers(bare: NDArray[np.int64], headers: Sequence[Any]) -> NDArray[np.int64]:
    """Return sizes of messages, given those without headers (pairs or None); shape (n,)."""
    if not any(headers):
        return bare
    return bare + np.array([_headers_size(pairs or ()) for pairs in headers], dtype=np.int64)


def _headers_size(headers: Headers) -> int:
    return sum(len(name) + len(value or b"") for name, value in headers)
