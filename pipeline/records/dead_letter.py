"""Read the headers of dead letters."""

from __future__ import annotations

import re
from typing import NamedTuple, cast

from pipeline.records.inputs import Headers, KafkaMessage
from pipeline.records.names import (
    ERROR_HEADERS,
    EXCEPTION_HEADER,
    MESSAGE_HEADER,
    OFFSET_HEADER,
    PARTITION_HEADER,
    REDRIVEN_HEADER,
    TOPIC_HEADER,
)


class DeadLetterHeaders(NamedTuple):
    """Why a message could not be used, and where it came from; None where a header is missing."""

    fault: str | None
    reason: str | None
    topic: str | None
    partition: int | None
    offset: int | None
    headers: Headers
    """Headers that the message had in its input."""


def read_dead_letter(message: KafkaMessage) -> DeadLetterHeaders:
    """Read the headers of a dead letter.

    A message that was a dead letter before has each error header twice; the later one counts.
    """
    own: list[tuple[str, bytes | None]] = []
    errors: dict[str, str] = {}
    for name, value in cast(Headers, message.headers() or ()):
        if name.startswith(ERROR_HEADERS):
            errors[name] = (value or b"").decode(errors="replace")
        else:
            own.append((name, value))
    return DeadLetterHeaders(
        fault=errors.get(EXCEPTION_HEADER),
        reason=errors.get(MESSAGE_HEADER),
        topic=errors.get(TOPIC_HEADER),
        partition=_number(errors.get(PARTITION_HEADER)),
        offset=_number(errors.get(OFFSET_HEADER)),
        headers=own,
    )


def is_redriven(dead_letter: DeadLetterHeaders) -> bool:
    """Return whether the message of a dead letter came from another dead letter."""
    return any(name == REDRIVEN_HEADER for name, _ in dead_letter.headers)


def redriven_headers(message: KafkaMessage) -> list[tuple[str, bytes | None]]:
    """Return the headers with which the message of a dead letter is sent again.

    These are the headers that the message had, without the errors that the worker added behind them, and the
    dead letter as its origin. An earlier origin is left out: the dead letter has it.
    """
    headers = list(cast(Headers, message.headers() or ()))
    added = {EXCEPTION_HEADER, MESSAGE_HEADER, TOPIC_HEADER, PARTITION_HEADER, OFFSET_HEADER}
    while headers and headers[-1][0] in added:
        added.remove(headers.pop()[0])
    origin = f"{message.topic()}/{message.partition()}/{message.offset()}".encode()
    return [*(each for each in headers if each[0] != REDRIVEN_HEADER), (REDRIVEN_HEADER, origin)]


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch("[0-9]{1,18}", text) else None
