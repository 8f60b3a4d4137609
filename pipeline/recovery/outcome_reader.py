"""Read outcomes to learn from; features are decoded into columns, many records at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from pipeline.kafka.log import DECODE_ERRORS, LogReader, decode_records, offsets_of
from pipeline.records.decimals import decode_rows
from pipeline.records.fields import FEATURES_LENGTH, Features
from pipeline.records.outputs import Example, Outcome


class RawOutcome(Outcome, frozen=True, gc=False):
    """An outcome whose features are not yet decoded: lists of numbers cost more than all other fields."""

    features: msgspec.Raw  # type: ignore[assignment]  # the features' text

    @property
    def example(self) -> Example | None:
        """The training example; None if the outcome has no label."""
        if self.label is None:
            return None
        features = _FEATURES.decode(self.features)
        play = (self.user_id, self.video_id, self.timestamp, features)
        return Example(*play, self.label, self.watch_ratio or 0.0)


class OutcomeChunk(NamedTuple):
    """A slice of the outcomes' log."""

    records: list[RawOutcome]
    offsets: list[int]
    features: NDArray[np.float64]
    """The features of the records, shape (n, features), float64."""

    def __bool__(self) -> bool:
        return bool(self.records)


_FEATURES = msgspec.json.Decoder(Features)
_RAW = msgspec.json.Decoder(RawOutcome)
_OUTCOMES = msgspec.json.Decoder(Outcome)


def decode_outcomes(values: Sequence[bytes]) -> tuple[list[RawOutcome], NDArray[np.float64]]:
    """Decode outcomes.

    Parameters
    ----------
    values
        The records' JSON.

    Returns
    -------
    list of RawOutcome
        The records.
    ndarray
        Their features, shape (n, features), float64.

    Raises
    ------
    msgspec.DecodeError, UnicodeDecodeError
        One of the values is no outcome.
    """
    records = list(map(_RAW.decode, values))
    return records, decode_rows([record.features for record in records], FEATURES_LENGTH)


def read_outcomes(log: LogReader, topic: str, partition: int, offset: int) -> Iterator[OutcomeChunk]:
    """Read outcomes from an offset on, in the slices of `LogReader.read`.

    Raises
    ------
    StateError
        A record was not written by a worker.
    """
    for messages in log.read(topic, partition, offset):
        try:
            records, features = decode_outcomes([message.value() or b"" for message in messages])
        except DECODE_ERRORS:
            decode_records(_OUTCOMES, messages)  # names the faulty one
            raise
        yield OutcomeChunk(records, offsets_of(messages), features)
