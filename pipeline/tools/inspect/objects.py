"""Turn records into JSON objects for scripts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from pipeline.config.topics import Topics
from pipeline.kafka.registry import decoders_of
from pipeline.kafka.types import ConsumerRecord
from pipeline.records.dead_letter import read_dead_letter
from pipeline.records.names import parse_snapshot_key
from pipeline.tools.inspect.kinds import Kind
from pipeline.tools.inspect.readable import encoded

Parse: TypeAlias = Callable[[bytes], object]
"""Returns a value as objects, lists and scalars."""


def parser_of(kind: Kind, topics: Topics) -> Parse:
    """Return what parses the values of records; those of inputs may be in another format than JSON."""
    if kind not in {Kind.INTERACTIONS, Kind.LABELS}:
        return msgspec.json.decode
    inputs = decoders_of(topics)
    return inputs.labels.parse if kind is Kind.LABELS else inputs.interactions.parse


def as_object(kind: Kind, message: ConsumerRecord, parse: Parse = msgspec.json.decode) -> dict[str, Any]:
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
    headers = [(name, *encoded(value)) for name, value in dead_letter.headers]
    original = dead_letter.original
    return {
        "fault": dead_letter.fault,
        "reason": dead_letter.reason,
        "source": {
            "topic": dead_letter.topic,
            "partition": dead_letter.partition,
            "offset": dead_letter.offset,
        },
        "headers": [dict(zip(("name", "value", "encoding"), header, strict=True)) for header in headers],
        **({} if original is None else {"cut_from": original._asdict()}),
    }


def _content(value: bytes | None, parse: Parse) -> tuple[Any, str | None]:
    try:
        return parse(value or b""), "json"
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return encoded(value)
