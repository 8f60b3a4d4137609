"""What crosses the topics: decode, validate, encode.

Every value is one JSON object; `schemas/` holds the JSON Schema of each. msgspec checks types and
ranges while it parses, and writes floats in their shortest exact form, so that reading them back
gives the same bits.

Those that are held by the hundred thousand are not tracked by the garbage collector (`gc=False`): what
refers to nothing but numbers and text cannot be part of a cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple, Protocol, TypeAlias

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
            message.headers() or (),
        )

    @property
    def size(self) -> int:
        """Bytes in key, value and headers."""
        return size(self.key, self.value, self.headers)


def size(key: bytes | None, value: bytes | None, headers: Any) -> int:
    """Bytes in a message's key, value and headers, pairs or None."""
    size = len(key or b"") + len(value or b"")
    if headers:
        size += sum(len(name) + len(value or b"") for name, value in headers)
    return size


class Poison(NamedTuple):
    """Why a message cannot be used. `fault` is the counter it goes to."""

    fault: Literal["undecodable", "invalid", "wrong_key", "future", "orphan", "late", "mismatched"]
    reason: str


Record = Interaction | WatchLabel | Poison


INTERACTIONS = msgspec.json.Decoder(Interaction)
LABELS = msgspec.json.Decoder(WatchLabel)
InputDecoder = msgspec.json.Decoder[Interaction] | msgspec.json.Decoder[WatchLabel]

_encoder = msgspec.json.Encoder()
encode = _encoder.encode


def encode_all(records: Iterable[object]) -> list[bytes]:
    """`encode` each, at less cost: JSON has no line feeds but those that stand between two records here."""
    values = _encoder.encode_lines(list(records)).split(b"\n")
    values.pop()
    return values


class Ending(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What an outcome says beyond its prediction: the middle of `Outcome`, field by field."""

    prediction_sequence: int
    watch_ratio: float | None
    label: bool | None
    label_timestamp: int | None
    correct: bool | None
    loss: float | None
    status: Status
    sequence: int
    shared: list[Share] | None = None


_NUMBER: Final = b'"sequence":'
"""The name of a prediction's number: nothing before it can look like this, since text escapes its quotes."""


def opening(prediction: bytes) -> bytes:
    """What an outcome begins with: its prediction as it was written, up to its number."""
    return prediction[: prediction.index(_NUMBER)]


def plain_opening(prediction: bytes) -> bytes:
    """`opening` of a prediction that ends with its number, found sooner from there."""
    return prediction[: prediction.rindex(_NUMBER)]


def conclusion(prediction: bytes) -> bytes:
    """What an outcome ends with: its prediction as it was written, from behind its number."""
    return prediction[prediction.index(_NUMBER) + len(_NUMBER) :].lstrip(b"0123456789")


def encode_endings(endings: Iterable[Ending]) -> list[bytes]:
    """Encode what is between an outcome's opening and its conclusion, of at least one outcome.

    The three together are the bytes of the `Outcome`, whose numbers are not written anew.

    Examples
    --------
    >>> said = Prediction("e", 7, 3, 5, 0.5, None, True, [0.25], model_version=0, sequence=9)
    >>> prediction = encode(msgspec.structs.replace(said, challengers={"nogd": -0.5}))
    >>> opening(prediction)[-36:], conclusion(prediction)
    (b'"features":[0.25],"model_version":0,', b',"challengers":{"nogd":-0.5}}')
    >>> [ending] = encode_endings([Ending(9, 0.8, True, 6, True, 0.2, "labelled", sequence=4)])
    >>> (opening(prediction) + ending + conclusion(prediction))[-61:]
    b'"status":"labelled","sequence":4,"challengers":{"nogd":-0.5}}'
    """
    return _encoder.encode_lines(list(endings))[1:-2].split(b"}\n{")


_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Not JSON, not UTF-8, nested too deeply."""


def decode(
    keys: list[bytes | None], values: list[bytes | None], decoder: InputDecoder, latest: int
) -> list[Record]:
    r"""Decode messages of one input.

    Each is parsed for itself: joining them into one text to parse at once would let half an object and the
    next message's other half pass for one, and measured slower. What is wrong with one is looked into only
    where something is wrong with any.

    Parameters
    ----------
    keys, values
        Of messages in the order of their offsets.
    decoder
        `INTERACTIONS` or `LABELS`.
    latest
        The largest timestamp to accept, in milliseconds. What lies beyond would push stream time
        ahead and let everything expire that still waits for its label.

    Examples
    --------
    >>> good = b'{"event_id":1,"user_id":7,"video_id":3,"timestamp":5,"video_duration":900}'
    >>> decode([b"7"], [good], INTERACTIONS, latest=10)[0].video_duration
    900.0
    >>> decode([b"8"], [good], INTERACTIONS, latest=10)
    [Poison(fault='wrong_key', reason='the key is b\'8\', but user_id is 7: the key has to be "7"')]
    """
    try:
        parsed: list[Any] = list(map(decoder.decode, values))  # type: ignore[arg-type]  # TypeError for None
    except (TypeError, *_MALFORMED):
        pass
    else:
        expected = [str(record.user_id).encode() for record in parsed]
        if expected == keys and max([record.timestamp for record in parsed], default=0) <= latest:
            return parsed
    return [_decode(key, value, decoder, latest) for key, value in zip(keys, values, strict=True)]


def _decode(key: bytes | None, value: bytes | None, decoder: InputDecoder, latest: int) -> Record:
    if value is None:
        return Poison("undecodable", "the value is null (a tombstone)")
    try:
        record = decoder.decode(value)
    except msgspec.ValidationError as error:
        return Poison("invalid", str(error))
    except _MALFORMED as error:
        return Poison("undecodable", f"the value is not a JSON object: {error}")
    expected = str(record.user_id)
    if key != expected.encode():
        return Poison(
            "wrong_key",
            f'the key is {key!r}, but user_id is {record.user_id!r}: the key has to be "{expected}"',
        )
    if record.timestamp > latest:
        return Poison(
            "future", f"the timestamp {record.timestamp} lies in the future (accepted up to {latest})"
        )
    return record
