"""What crosses the topics: decode, validate, encode.

Every value is one JSON object; `schemas/` holds the JSON Schema of each. msgspec checks types and
ranges while it parses, and writes floats in their shortest exact form, so that reading them back
gives the same bits.

Those that are held by the hundred thousand are not tracked by the garbage collector (`gc=False`): what
refers to nothing but numbers and text cannot be part of a cycle.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec

INTEGER_LIMIT = 2**63
IntegerId = Annotated[int, msgspec.Meta(ge=-INTEGER_LIMIT, le=INTEGER_LIMIT - 1)]
StringId = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Id = IntegerId | StringId
Timestamp = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""Milliseconds since 1970, UTC."""
Duration = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
"""Milliseconds."""
WatchRatio = Annotated[float, msgspec.Meta(ge=0, le=1e9)]
"""Play duration over video duration; above 1 where a video was watched more than once."""
Count = Annotated[int, msgspec.Meta(ge=0)]


class Interaction(msgspec.Struct, frozen=True):
    """A user is shown a video."""

    event_id: Id
    user_id: Id
    video_id: Id
    timestamp: Timestamp
    video_duration: Duration


class WatchLabel(msgspec.Struct, frozen=True):
    """How much of the video the user watched; `timestamp` is when that became known."""

    event_id: Id
    user_id: Id
    video_id: Id
    timestamp: Timestamp
    play_duration: Duration
    watch_ratio: WatchRatio


class Prediction(msgspec.Struct, frozen=True, gc=False):
    """What the model said of an interaction, with all that is needed to say it again."""

    event_id: Id
    user_id: Id
    video_id: Id
    timestamp: Timestamp
    score: float
    probability: float | None
    predicted: bool
    features: list[float]
    """The running block of the context vector, see `pipeline.statistics.FEATURES`."""
    model_version: Count
    """Outcomes folded into the model when it predicted."""
    sequence: Count
    """The prediction's number in its partition, from 0."""


Status = Literal["labelled", "expired"]


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """A prediction joined with its label, or with the fact that none came: a training example.

    `label` is what the model learns: None where it learns nothing (`join.on_missing = "drop"`).
    `correct` judges the prediction by it, and so does `loss`, but for squared loss: see
    `pipeline.labels.target`.
    """

    event_id: Id
    user_id: Id
    video_id: Id
    timestamp: Timestamp
    score: float
    probability: float | None
    predicted: bool
    features: list[float]
    model_version: Count
    prediction_sequence: Count
    watch_ratio: float | None
    label: bool | None
    label_timestamp: Timestamp | None
    correct: bool | None
    loss: float | None
    status: Status
    sequence: Count
    """Outcomes of the partition folded before this one."""


class Source(NamedTuple):
    """A message as it came, wherever it came from."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()

    @property
    def size(self) -> int:
        """Bytes in key, value and headers."""
        size = len(self.key or b"") + len(self.value or b"")
        if self.headers:
            size += sum(len(name) + len(value or b"") for name, value in self.headers)
        return size


class Poison(NamedTuple):
    """Why a message cannot be used. `fault` is the counter it goes to."""

    fault: Literal["undecodable", "invalid", "wrong_key", "future"]
    reason: str


class Entry(NamedTuple):
    """A message and what it was decoded to."""

    source: Source
    record: Interaction | WatchLabel | Poison


INTERACTIONS = msgspec.json.Decoder(Interaction)
LABELS = msgspec.json.Decoder(WatchLabel)
InputDecoder = msgspec.json.Decoder[Interaction] | msgspec.json.Decoder[WatchLabel]

encode = msgspec.json.Encoder().encode

_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Not JSON, not UTF-8, nested too deeply."""


def decode(sources: Sequence[Source], decoder: InputDecoder, latest: int) -> list[Entry]:
    r"""Decode messages of one input.

    One by one: joining them into one text to parse at once would let half an object and the next
    message's other half pass for one, and measured slower.

    Parameters
    ----------
    sources
        Messages in the order of their offsets.
    decoder
        `INTERACTIONS` or `LABELS`.
    latest
        The largest timestamp to accept, in milliseconds. What lies beyond would push stream time
        ahead and let everything expire that still waits for its label.

    Examples
    --------
    >>> good = b'{"event_id":1,"user_id":7,"video_id":3,"timestamp":5,"video_duration":900}'
    >>> [entry] = decode([Source("interactions", 0, 0, b"7", good)], INTERACTIONS, latest=10)
    >>> entry.record.video_duration
    900.0
    >>> [entry] = decode([Source("interactions", 0, 0, b"8", good)], INTERACTIONS, latest=10)
    >>> entry.record
    Poison(fault='wrong_key', reason='the key is b\'8\', but user_id is 7: the key has to be "7"')
    """
    return [Entry(source, _decode(source, decoder, latest)) for source in sources]


def _decode(source: Source, decoder: InputDecoder, latest: int) -> Interaction | WatchLabel | Poison:
    if source.value is None:
        return Poison("undecodable", "the value is null (a tombstone)")
    try:
        record = decoder.decode(source.value)
    except msgspec.ValidationError as error:
        return Poison("invalid", str(error))
    except _MALFORMED as error:
        return Poison("undecodable", f"the value is not a JSON object: {error}")
    key = str(record.user_id)
    if source.key != key.encode():
        return Poison(
            "wrong_key",
            f'the key is {source.key!r}, but user_id is {record.user_id!r}: the key has to be "{key}"',
        )
    if record.timestamp > latest:
        return Poison(
            "future", f"the timestamp {record.timestamp} lies in the future (accepted up to {latest})"
        )
    return record
