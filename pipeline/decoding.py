"""Messages of the inputs, decoded: records, or the reason why a message cannot be used."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import msgspec

from pipeline.records import Interaction, WatchLabel


class Poison(NamedTuple):
    """Why a message cannot be used. `fault` is the counter it goes to."""

    fault: Literal["undecodable", "invalid", "wrong_key", "future", "orphan", "late", "mismatched"]
    reason: str


Record = Interaction | WatchLabel | Poison


INTERACTIONS = msgspec.json.Decoder(Interaction)
LABELS = msgspec.json.Decoder(WatchLabel)
InputDecoder = msgspec.json.Decoder[Interaction] | msgspec.json.Decoder[WatchLabel]

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
