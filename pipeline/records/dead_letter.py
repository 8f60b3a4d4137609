"""Make dead letters that fit into their topic, and read their headers.

A dead letter is its message, as it came, and headers. Where that is too large for the topic, it is cut: the
message stays in its input, and the headers say how to find it there, and how to tell that it is the same.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, NamedTuple, cast

from pipeline.records.inputs import Headers, KafkaMessage, RawMessage
from pipeline.records.names import (
    ERROR_HEADERS,
    EXCEPTION_HEADER,
    LENGTH_HEADER,
    MESSAGE_HEADER,
    OFFSET_HEADER,
    PARTITION_HEADER,
    REDRIVEN_HEADER,
    SHA256_HEADER,
    TOPIC_HEADER,
    Fault,
)

MAX_REASON: Final = 500
"""Characters of a reason, at most: it may quote the message."""
ADDED_BYTES: Final = 4_096
"""Bytes by which a dead letter is larger than its message, at most: those of the error headers."""
LEAST_ROOM: Final = 4 * ADDED_BYTES
"""The smallest limit of a topic of dead letters: a cut one fits, and has something of its message."""

_BATCH_BYTES: Final = 61
"""Bytes of the header of a record batch."""
_RECORD_BYTES: Final = 36
"""Bytes of a record beside key, value and headers, at most: attributes, deltas and lengths."""
_HEADER_BYTES: Final = 10
"""Bytes of a header beside name and value, at most: their lengths."""


class DeadLetterRecord(NamedTuple):
    """A dead letter as it is written."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    """The message's, then fault, reason and origin."""
    cut: bool
    """Whether it has not all of its message."""


class Original(NamedTuple):
    """The value of a message whose dead letter is cut."""

    length: int
    """In bytes."""
    sha256: str
    """In hexadecimal digits."""

    @classmethod
    def of(cls, value: bytes | None) -> Original:
        """Return what the headers of a cut dead letter say of a value.

        Examples
        --------
        >>> Original.of(b"abc").length, Original.of(b"abc").sha256[:8]
        (3, 'ba7816bf')
        """
        return cls(len(value or b""), hashlib.sha256(value or b"").hexdigest())


class DeadLetterHeaders(NamedTuple):
    """Why a message could not be used, and where it came from; None where a header is missing."""

    fault: str | None
    reason: str | None
    topic: str | None
    partition: int | None
    offset: int | None
    headers: Headers
    """Headers that the message had in its input."""
    original: Original | None = None
    """What is known of the message's value, where the dead letter is cut."""


def record_size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Return the bytes that a record takes in a batch of its own without compression, at most.

    That is what brokers compare with `max.message.bytes`.

    Examples
    --------
    >>> record_size(b"7", b"{}", [("a", b"1")])
    112
    """
    return _BATCH_BYTES + _RECORD_BYTES + len(key or b"") + len(value or b"") + _headers_size(headers)


def _headers_size(headers: Headers) -> int:
    return sum(_HEADER_BYTES + len(name.encode()) + len(value or b"") for name, value in headers)


def dead_letter_record(source: RawMessage, fault: Fault, reason: str, room: int) -> DeadLetterRecord:
    """Return the dead letter of a message, cut if it does not fit into its topic.

    A cut one has the beginning of the value, and its length and digest. Headers that take, with the key, more
    than half of the room are left out, and so is what the key has beyond that half.

    Parameters
    ----------
    source
        The message.
    fault, reason
        Why it cannot be used.
    room
        Bytes of a record batch in the topic, at most; not less than `LEAST_ROOM`.

    Examples
    --------
    >>> whole = dead_letter_record(RawMessage("inputs", 0, 7, b"k", b"{"), Fault.INVALID, "why", 2**20)
    >>> whole.value, whole.headers[-1]
    (b'{', ('__streams.errors.offset', b'7'))
    """
    key, value, own = source.key, source.value, [*source.headers]
    texts = {
        EXCEPTION_HEADER: fault.value,
        MESSAGE_HEADER: reason if len(reason) <= MAX_REASON else f"{reason[: MAX_REASON - 1]}…",
        TOPIC_HEADER: source.topic,
        PARTITION_HEADER: str(source.partition),
        OFFSET_HEADER: str(source.offset),
    }
    errors = _encoded(texts)
    if record_size(key, value, [*own, *errors]) <= room:
        return DeadLetterRecord(key, value, [*own, *errors], cut=False)
    original = Original.of(value)
    errors += _encoded({LENGTH_HEADER: str(original.length), SHA256_HEADER: original.sha256})
    left = room - record_size(None, None, errors)
    half = left // 2
    if len(key or b"") + _headers_size(own) > half:
        own = []
    key = None if key is None else key[:half]
    left = room - record_size(key, None, [*own, *errors])
    return DeadLetterRecord(key, None if value is None else value[:left], [*own, *errors], cut=True)


def _encoded(texts: dict[str, str]) -> list[tuple[str, bytes | None]]:
    return [(name, text.encode()) for name, text in texts.items()]


def read_dead_letter(message: KafkaMessage) -> DeadLetterHeaders:
    """Read the headers of a dead letter.

    A message that was a dead letter before has each error header twice; the later one counts. Whether this
    one is cut, the last headers tell: those before them may be the message's.
    """
    headers = list(cast(Headers, message.headers() or ()))
    own: list[tuple[str, bytes | None]] = []
    errors: dict[str, str] = {}
    for name, value in headers:
        if name.startswith(ERROR_HEADERS):
            errors[name] = (value or b"").decode(errors="replace")
        else:
            own.append((name, value))
    length = _number(errors.get(LENGTH_HEADER))
    cut = [name for name, _ in headers[-2:]] == [LENGTH_HEADER, SHA256_HEADER] and length is not None
    return DeadLetterHeaders(
        fault=errors.get(EXCEPTION_HEADER),
        reason=errors.get(MESSAGE_HEADER),
        topic=errors.get(TOPIC_HEADER),
        partition=_number(errors.get(PARTITION_HEADER)),
        offset=_number(errors.get(OFFSET_HEADER)),
        headers=own,
        original=Original(length, errors[SHA256_HEADER]) if cut and length is not None else None,
    )


def is_redriven(dead_letter: DeadLetterHeaders) -> bool:
    """Return whether the message of a dead letter came from another dead letter."""
    return any(name == REDRIVEN_HEADER for name, _ in dead_letter.headers)


def message_headers(dead_letter: KafkaMessage) -> Headers:
    """Return the headers that a message had, without the errors that the worker added behind them."""
    headers = list(cast(Headers, dead_letter.headers() or ()))
    added = {EXCEPTION_HEADER, MESSAGE_HEADER, TOPIC_HEADER, PARTITION_HEADER, OFFSET_HEADER}
    while headers and headers[-1][0] in added:
        added.remove(headers.pop()[0])
    return headers


def redriven_headers(headers: Headers, dead_letter: KafkaMessage) -> list[tuple[str, bytes | None]]:
    """Return the headers with which a message is sent again.

    These are the headers that it had, and the dead letter as its origin. An earlier origin is left out: the
    dead letter has it.
    """
    origin = f"{dead_letter.topic()}/{dead_letter.partition()}/{dead_letter.offset()}".encode()
    return [*(each for each in headers if each[0] != REDRIVEN_HEADER), (REDRIVEN_HEADER, origin)]


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch("[0-9]{1,18}", text) else None
