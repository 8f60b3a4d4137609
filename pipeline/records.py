"""What crosses the topics, and how it is encoded; `pipeline.decoding` has how inputs are decoded.

Every value is one JSON object; `schemas/` holds the JSON Schema of each. msgspec checks types and
ranges while it parses, and writes floats in their shortest exact form, so that reading them back
gives the same bits.

Those that are held by the hundred thousand are not tracked by the garbage collector (`gc=False`): what
refers to nothing but numbers and text cannot be part of a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Protocol, TypeAlias

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
FEATURES_LENGTH = 10
"""As many as `pipeline.statistics.FEATURES`, which `test_records` holds it to."""
Features = Annotated[list[float], msgspec.Meta(min_length=FEATURES_LENGTH, max_length=FEATURES_LENGTH)]
"""The running block of a context vector."""


class Interaction(msgspec.Struct, frozen=True, gc=False):
    """A user is shown a video."""

    event_id: Id
    user_id: Id
    video_id: Id
    timestamp: Timestamp
    video_duration: Duration


class WatchLabel(msgspec.Struct, frozen=True, gc=False):
    """How much of the video the user watched; `timestamp` is when that became known."""

    event_id: Id
    user_id: Id
    video_id: Id
    timestamp: Timestamp
    play_duration: Duration
    watch_ratio: WatchRatio


class Prediction(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What the model said of an interaction, with all that is needed to say it again."""

    event_id: Id
    user_id: Id
    video_id: Id
    timestamp: Timestamp
    score: float
    probability: float | None
    predicted: bool
    features: Features
    """The running block of the context vector, see `pipeline.statistics.FEATURES`."""
    model_version: Count
    """Outcomes folded into the model when it predicted."""
    sequence: Count
    """The prediction's number in its partition, from 0."""
    challengers: dict[str, float] | None = None
    """What the challengers said, by name, in the order of their names; not written if there were none."""
    asked: bool | None = None
    """Whether its label is asked for; not written where all labels are learned as they come."""


class LabelRequest(msgspec.Struct, frozen=True, gc=False):
    """A prediction whose label is wanted, for whoever provides labels."""

    event_id: Id
    user_id: Id
    video_id: Id
    timestamp: Timestamp
    score: float
    prediction_sequence: Count
    sequence: Count
    """The request's number in its partition, from 0."""

    @classmethod
    def of(cls, prediction: Prediction, sequence: int) -> LabelRequest:
        """What asks for a prediction's label, after so many others."""
        return cls(
            prediction.event_id,
            prediction.user_id,
            prediction.video_id,
            prediction.timestamp,
            prediction.score,
            prediction.sequence,
            sequence,
        )


class VideoCounts(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What labels of one video come to."""

    video_id: Id
    events: Count
    labels: Count
    """Those that said watched."""
    ratios: Annotated[float, msgspec.Meta(ge=0)]
    """Their watch ratios, each counted as `pipeline.labels.RATIO_CAP` at most."""

    def __post_init__(self) -> None:
        """Refuse counts of which no mean can be made."""
        if self.labels > self.events:
            raise ValueError(f"{self.labels} of {self.events} labels of video {self.video_id!r} said watched")


class Example(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a learner is taught by an outcome."""

    user_id: Id
    video_id: Id
    timestamp: Timestamp
    features: Features
    label: bool
    watch_ratio: WatchRatio
    """0 if none came."""


class Share(msgspec.Struct, frozen=True, gc=False):
    """What a partition tells the others of a stretch of its outcomes."""

    partition: Count
    since: Count
    """The stretch's first outcome, by its sequence."""
    until: Count
    """The one after its last."""
    videos: list[VideoCounts]
    examples: list[Example]


Status = Literal["labelled", "expired"]


class Outcome(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A prediction joined with its label, or with the fact that none came: a training example.

    `label` is what the model learns: None where it learns nothing, because no label came (with
    `join.on_missing = "drop"`), or because it was not asked for (`labels.policy`).
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
    features: Features
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
    shared: list[Share] | None = None
    """What was taken over from other partitions, folded right before this one; not written if nothing was."""
    challengers: dict[str, float] | None = None
    """The prediction's."""
    asked: bool | None = None
    """As in its prediction."""

    @property
    def example(self) -> Example | None:
        """What it teaches, if anything."""
        if self.label is None:
            return None
        play = (self.user_id, self.video_id, self.timestamp, self.features)
        return Example(*play, self.label, self.watch_ratio or 0.0)


Headers: TypeAlias = Sequence[tuple[str, bytes | None]]


class Delivered(Protocol):
    """A message as a client hands it over."""

    def topic(self) -> str | None: ...
    def partition(self) -> int | None: ...
    def offset(self) -> int | None: ...
    def key(self) -> bytes | None: ...
    def value(self) -> bytes | None: ...
    def headers(self) -> Any: ...


class Source(NamedTuple):
    """A message as it came, wherever it came from."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    @classmethod
    def of(cls, message: Delivered) -> Source:
        """What was delivered."""
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
        """Bytes in key, value and headers."""
        [size] = sizes([self.key], [self.value], [self.headers])
        return size


def sizes(keys: Sequence[bytes | None], values: Sequence[bytes | None], headers: Sequence[Any]) -> list[int]:
    """Bytes in the key, the value and the headers, pairs or None, of each message."""
    bare = [len(key or b"") + len(value or b"") for key, value in zip(keys, values, strict=True)]
    if not any(headers):
        return bare
    return [size + _headers_size(pairs or ()) for size, pairs in zip(bare, headers, strict=True)]


def _headers_size(headers: Headers) -> int:
    return sum(len(name) + len(value or b"") for name, value in headers)


_encoder = msgspec.json.Encoder()
encode = _encoder.encode


def keys_of(users: Sequence[Id]) -> list[bytes]:
    r"""The keys of messages about these users: what they are called, in UTF-8.

    Examples
    --------
    >>> keys_of([7, "Zoë"])
    [b'7', b'Zo\xc3\xab']
    """
    lines = _encoder.encode_lines(users)
    if b'"' in lines:  # of integers, and only of them, what is written is the name
        return [str(user).encode() for user in users]
    return lines.split(b"\n")[:-1]


def encode_all(records: Iterable[object]) -> list[bytes]:
    """`encode` each, at less cost: JSON has no line feeds but those that stand between two records here."""
    values = _encoder.encode_lines(list(records)).split(b"\n")
    values.pop()
    return values
