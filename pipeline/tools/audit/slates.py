"""Read the predictions of a partition in sequence, those of a slate one item after the other."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.records.encoding import encode
from pipeline.records.inputs import RawMessage
from pipeline.records.output_types import OutputTypes
from pipeline.records.outputs import Prediction
from pipeline.tools.audit.differences import AuditResult
from pipeline.tools.audit.topic_records import DecodedRecord, PartitionRecords, read_in_sequence


def read_predictions(
    records: PartitionRecords[RawMessage], types: OutputTypes, topic: str, total: int, result: AuditResult
) -> Iterator[DecodedRecord[Prediction]]:
    """Yield the predictions of a topic in sequence.

    Parameters
    ----------
    records
        Records of the topic.
    types
        Types of the stream's outputs.
    topic
        Name of the topic.
    total
        Number of records by the state record.
    result
        Result to add differences to.

    Yields
    ------
    DecodedRecord
        Predictions. That of a slate's item has as its source what would be its own record.
    """
    if types.slates is None:
        yield from read_in_sequence(records, types.predictions, types.key_of, topic, total, result)
        return
    decoder, key_of = types.slates.decoder, types.slate_key_of
    for record, source in read_in_sequence(records, decoder, key_of, topic, total, result):
        if encode(record) != source.value:
            result.add_difference(
                topic, source.offset, "the record as a worker encodes it", "the same values in other bytes"
            )
        for item in types.slates.expand(record):
            yield DecodedRecord(item, source._replace(value=encode(item)))
