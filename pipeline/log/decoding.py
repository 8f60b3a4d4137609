"""Decode the records of workers; anything else in their topics is refused by its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from pipeline.errors import StateError
from pipeline.records.inputs import KafkaMessage
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import Prediction

Record = TypeVar("Record")

DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for a record that no worker wrote. The last is for one that is nested too deeply."""


def decode_record(decoder: msgspec.json.Decoder[Record], message: KafkaMessage) -> Record:
    """Decode a record of a worker.

    Raises
    ------
    StateError
        No worker can have written it.
    """
    try:
        return decoder.decode(message.value() or b"")
    except DECODE_ERRORS as error:
        reason = getattr(message, "fault", None) or error
        raise StateError(
            f"{message.topic()}, partition {message.partition()}, offset {message.offset()}: no worker wrote "
            f"this record: {reason}. Something else writes to this topic, "
            "or a newer version of this program does"
        ) from error


def decode_records(decoder: msgspec.json.Decoder[Record], messages: Sequence[KafkaMessage]) -> list[Record]:
    """Decode records of workers.

    Raises
    ------
    StateError
        No worker can have written one of them: see `decode_record`.
    """
    decode = decoder.decode
    try:
        return [decode(message.value() or b"") for message in messages]
    except DECODE_ERRORS:
        return [decode_record(decoder, message) for message in messages]  # finds the faulty one


def decode_predictions(types: OutputTypes, message: KafkaMessage) -> list[Prediction]:
    """Decode the prediction of a record, or the predictions of a slate's items.

    Raises
    ------
    StateError
        No worker can have written it: see `decode_record`.
    """
    if types.slates is None:
        return [decode_record(types.predictions, message)]
    return types.slates.expand(decode_record(types.slates.decoder, message))


def offsets_of(messages: Sequence[KafkaMessage]) -> list[int]:
    """Return the offsets of messages."""
    return [message.offset() or 0 for message in messages]
