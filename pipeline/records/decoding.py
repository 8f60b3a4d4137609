"""Decode messages of the inputs: to records, or to the reason why a message cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.records.encoding import keys_of
from pipeline.records.fields import Id
from pipeline.records.input_columns import InputColumns
from pipeline.records.inputs import InputRecord, Interaction, KafkaMessage, Label, Slate
from pipeline.records.kuairec import KuaiRecInteraction, WatchLabel
from pipeline.records.names import Fault
from pipeline.records.nesting import DEEPEST, shallow
from pipeline.records.surrogates import replace_lone_surrogates

NO_TIMESTAMP = -1
"""Merge time of a message that cannot be used: it goes before everything that has a timestamp."""


class RejectedRecord(NamedTuple):
    """A message that cannot be used, and why."""

    fault: Fault
    reason: str

    @property
    def timestamp(self) -> int:
        """Where it goes in the merge."""
        return NO_TIMESTAMP


Record = Interaction | Label | RejectedRecord


def no_record(_value: bytes) -> Record:
    """Stand for the decoder of messages that all have records."""
    raise AssertionError("the message was decoded to nothing")


class Decoded(NamedTuple):
    """Messages of one input in the order of their offsets, and what they were decoded to."""

    messages: Sequence[KafkaMessage]
    """Before they are decoded."""
    sizes: NDArray[np.int64]
    """In bytes, shape (n,)."""
    times: NDArray[np.int64]
    """Timestamps, in milliseconds, shape (n,); `NO_TIMESTAMP` for what cannot be used."""
    records: Sequence[Record | None]
    """None for what is in the columns only."""
    columns: InputColumns | None = None
    """None where each message has a record; what cannot be used has a row of no meaning."""
    decode: Callable[[bytes], Record] = no_record
    """Makes the record of a message that is in the columns only, given its value."""


AnyRecord_co = TypeVar("AnyRecord_co", bound=Interaction | Label, covariant=True)


@dataclass(frozen=True, slots=True)
class InputDecoder(Generic[AnyRecord_co]):
    """Decodes the messages of an input."""

    decode: Callable[[bytes], AnyRecord_co]
    """Returns the record of a message's value; errors are those of `decode_value`."""
    key_of: Callable[[Any], Id]
    """Returns the id that is the key of a record's message."""
    key_field: str
    """The field of the message that has this id."""
    parse: Callable[[bytes], object] = msgspec.json.decode
    """Returns the value as objects, lists and scalars, at least those fields that the record has."""
    ready: Callable[[Sequence[bytes | None]], int] | None = None
    """Returns how many of the first values can be decoded now: the schema of the next one is not known yet.
    None where messages need no schema."""
    record: type[InputRecord] | None = None
    """The type to which `decode` parses JSON at once; None where records are made in another way."""


INTERACTION_DECODER = InputDecoder(
    msgspec.json.Decoder(KuaiRecInteraction).decode,
    attrgetter("user_id"),
    "user_id",
    record=KuaiRecInteraction,
)
"""The decoder of KuaiRec's interactions."""
LABEL_DECODER = InputDecoder(
    msgspec.json.Decoder(WatchLabel).decode, attrgetter("user_id"), "user_id", record=WatchLabel
)
"""The decoder of KuaiRec's labels."""


class UnusableValueError(msgspec.DecodeError):
    """A value that no record can be made of; the text says why, and needs no more words."""


class LoneSurrogateError(UnusableValueError):
    """A field that is used has half a surrogate pair, which no text in UTF-8 can have."""


_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Not JSON, not UTF-8, nested too deeply."""


def decode(
    keys: list[bytes | None],
    values: list[bytes | None],
    decoder: InputDecoder[Interaction] | InputDecoder[Label],
    latest: int,
) -> list[Record]:
    r"""Decode messages of one input to records.

    Each is parsed for itself: joining them into one text to parse at once would let half an object and the
    next message's other half pass for one, and measured slower. What is wrong with one is looked into only
    where something is wrong with any.

    Parameters
    ----------
    keys, values
        Of messages in the order of their offsets.
    decoder
        Of the input: see `pipeline.records.input_decoders`.
    latest
        The largest timestamp to accept, in milliseconds. What lies beyond would push stream time
        ahead and let everything expire that still waits for its label.

    Examples
    --------
    >>> good = b'{"event_id":1,"user_id":7,"video_id":3,"timestamp":5,"video_duration":900}'
    >>> decode([b"7"], [good], INTERACTION_DECODER, latest=10)[0].video_duration
    900.0
    >>> [rejected] = decode([b"8"], [good], INTERACTION_DECODER, latest=10)
    >>> rejected.reason
    'the key is b\'8\', but user_id is 7: the key has to be "7"'
    """
    try:
        if decoder.ready is None and max(map(len, values), default=0) > DEEPEST:  # type: ignore[arg-type]
            [*map(shallow, values)]  # type: ignore[arg-type]  # TypeError for None
        parsed: list[Any] = list(map(decoder.decode, values))  # type: ignore[arg-type]
    except (TypeError, *_MALFORMED):
        pass
    else:
        if times_of(parsed).max(initial=0) <= latest and keys_of([*map(decoder.key_of, parsed)]) == keys:
            return parsed
    return [_decode(key, value, decoder, latest) for key, value in zip(keys, values, strict=True)]


def decode_value(value: bytes, decoder: InputDecoder[AnyRecord_co]) -> AnyRecord_co:
    r"""Decode one message. Half of a surrogate pair is accepted in fields that are ignored.

    Parameters
    ----------
    value
        The message's value.
    decoder
        Decoder of its input.

    Returns
    -------
    Interaction or Label
        The record.

    Raises
    ------
    LoneSurrogateError
        A field that is used has one; the error names it.
    SchemaUnavailableError, RegistryError
        The message's schema is not known yet, or the registry is away; only where messages have schemas.
    msgspec.DecodeError, UnicodeDecodeError, RecursionError
        The value is no such record.

    Examples
    --------
    >>> text = rb'{"event_id":1,"user_id":7,"video_id":3,"timestamp":5,"video_duration":900,"title":"\ud800"}'
    >>> decode_value(text, INTERACTION_DECODER).user_id
    7
    """
    if decoder.ready is None:
        shallow(value)
    try:
        return decoder.decode(value)
    except (msgspec.ValidationError, UnusableValueError):
        raise
    except msgspec.DecodeError:
        first, second = (replace_lone_surrogates(value, escape) for escape in (rb"\ufffd", rb"\ufffc"))
        if first == second:  # there is none, and something else is wrong
            raise
    record, other = decoder.decode(first), decoder.decode(second)
    if (name := _first_difference(record, other)) is not None:
        raise LoneSurrogateError(f"{name} has half a surrogate pair, which stands for no character")
    return record


def _first_difference(record: msgspec.Struct, other: msgspec.Struct) -> str | None:
    """Return the first field in which two records of a type differ; None if there is none."""
    for name in record.__struct_fields__:
        one, another = getattr(record, name), getattr(other, name)
        if isinstance(record, Slate) and name == "items":
            for number, pair in enumerate(zip(one, another, strict=True)):
                if (within := _first_difference(*pair)) is not None:
                    return f"{name}[{number}].{within}"
        elif one != another:
            return name
    return None


def times_of(records: Sequence[Record]) -> NDArray[np.int64]:
    """Return the timestamps of records, `NO_TIMESTAMP` for those that cannot be used."""
    return np.fromiter([record.timestamp for record in records], np.int64, len(records))


def _decode(
    key: bytes | None,
    value: bytes | None,
    decoder: InputDecoder[Interaction] | InputDecoder[Label],
    latest: int,
) -> Record:
    if value is None:
        return RejectedRecord(Fault.UNDECODABLE, "the value is null (a tombstone)")
    try:
        record: Interaction | Label = decode_value(value, decoder)
    except msgspec.ValidationError as error:
        return RejectedRecord(Fault.INVALID, str(error))
    except _MALFORMED as error:
        used = isinstance(error, UnusableValueError)
        reason = str(error) if used else f"the value is not a JSON object: {error}"
        return RejectedRecord(Fault.UNDECODABLE, reason)
    key_id = decoder.key_of(record)
    expected = str(key_id)
    if key != expected.encode():
        return RejectedRecord(
            Fault.WRONG_KEY,
            f'the key is {key!r}, but {decoder.key_field} is {key_id!r}: the key has to be "{expected}"',
        )
    if record.timestamp > latest:
        reason = f"the timestamp {record.timestamp} lies in the future (accepted up to {latest})"
        if latest // 10 < record.timestamp // 1000 <= latest:
            reason += looks_like("a thousandth of it", "microseconds")
        return RejectedRecord(Fault.FUTURE, reason)
    return record


def looks_like(fitting: str, unit: str) -> str:
    """Return the end of a reason: a time may be of another unit.

    Examples
    --------
    >>> looks_like("1000 times as much", "seconds")
    '; 1000 times as much would fit, as where seconds are read as milliseconds: look at time_unit'
    """
    return f"; {fitting} would fit, as where {unit} are read as milliseconds: look at time_unit"
