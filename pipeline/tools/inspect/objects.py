"""Turn records into JSON objects for scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pipeline.kafka.types import ConsumerRecord
from pipeline.records.dead_letter import read_dead_letter
from pipeline.records.names import parse_snapshot_key
from pipeline.tools.inspect.kinds import Kind
from pipeline.tools.inspect.readable import encoded


def as_object(
    kind: Kind, message: ConsumerRecord, parse: Callable[[bytes], object] = msgspec.json.decode
) -> dict[str, Any]:
    """Return a message as a JSON object.

    `encoding` is that of `value`: `json`, or `utf-8` or `base64` for dead letters and for whatever cannot be
    parsed. A chunk of a snapshot has its size as `bytes` instead.

    Parameters
    ----------
    kind
        Kind of the record.
    message
        Message of the topic.
    parse
        Parses its value.

    Returns
    -------
    dict
        Fields of the object, ready to be encoded.
    """
    key, key_encoding = encoded(message.key())
    record = {
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "key": key,
        "key_encoding": key_encoding,
    }
    chunk = parse_snapshot_key(message.key()) if kind is Kind.CHECKPOINTS else None
    if chunk is not None:
        return record | {"snapshot": chunk._asdict(), "bytes": len(message.value() or b"")}
    if kind is Kind.DEAD_LETTERS:
        value, encoding = encoded(message.value())
        return record | {"value": value, "encoding": encoding} | _dead_letter(message)
    content, encoding = _content(message.value(), parse)
    return record | {"value": content, "encoding": encoding}


def _dead_letter(message: ConsumerRecord) -> dict[str, Any]:
    dead_letter = read_dead_letter(message)
    headers = [
        dict(zip(("value", "encoding"), encoded(value), strict=True)) for _, value in dead_letter.headers
    ]
    return {
        "fault": dead_letter.fault,
        "reason": dead_letter.reason,
        "source": {
            "topic": dead_letter.topic,
            "partition": dead_letter.partition,
            "offset": dead_letter.offset,
        },
        "headers": [
            {"name": name} | value for (name, _), value in zip(dead_letter.headers, headers, strict=True)
        ],
    }


def _content(value: bytes | None, parse: Callable[[bytes], object]) -> tuple[Any, str | None]:
    try:
        return parse(value or b""), "json"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return encoded(value)
