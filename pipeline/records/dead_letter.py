"""What the headers of a dead letter say."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, cast

from pipeline.records.inputs import Headers, KafkaMessage

ABOUT: Final = "__streams.errors."
"""What the names of the headers that say why a message is here begin with (Kafka Streams' names)."""


class Letter(NamedTuple):
    """Why a message could not be used, and where it came from; None where that is not said."""

    fault: str | None
    reason: str | None
    topic: str | None
    partition: int | None
    offset: int | None
    headers: Headers
    """Those that the message had when it came."""


def read_letter(message: KafkaMessage) -> Letter:
    """Read a dead letter's headers; a message that had been one before tells of its last time."""
    own: list[tuple[str, bytes | None]] = []
    about: dict[str, str] = {}
    for name, value in cast(Headers, message.headers() or ()):
        if name.startswith(ABOUT):
            about[name.removeprefix(ABOUT)] = (value or b"").decode(errors="replace")
        else:
            own.append((name, value))
    return Letter(
        fault=about.get("exception"),
        reason=about.get("message"),
        topic=about.get("topic"),
        partition=_number(about.get("partition")),
        offset=_number(about.get("offset")),
        headers=own,
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch("[0-9]{1,18}", text) else None
