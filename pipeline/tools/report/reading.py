"""Read what the figures of a report need from the topics of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Final, TypeAlias

import msgspec

from pipeline.config.settings import Kafka, Registry
from pipeline.config.stream import KUAIREC, Stream
from pipeline.config.topics import Topics
from pipeline.kafka.offsets import PartitionId
from pipeline.kafka.output_values import OutputValues
from pipeline.kafka.types import ConsumerRecord
from pipeline.log.decoding import DECODE_ERRORS, decode_record
from pipeline.log.partition_log import PartitionLog
from pipeline.log.ranges import Watermarks
from pipeline.log.reader import LogReader, Meter
from pipeline.model.settings_text import target_from
from pipeline.records.dead_letter import read_dead_letter
from pipeline.records.names import state_key
from pipeline.recovery.state_check import refuse_other_version
from pipeline.task.state import ITEMS
from pipeline.tools.report.counts import DEAD_LETTER_FAULTS, Counts
from pipeline.tools.report.figures import Report
from pipeline.tools.report.off_policy import OffPolicy
from pipeline.tools.report.partition_run import (
    OutcomeTable,
    PartitionRun,
    ReportedState,
    outcome_decoder,
    report_of,
)
from pipeline.tools.report.ranking import DEFAULT_TOP, SLATE_SIZES

ShowProgress: TypeAlias = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
"""Shows the progress of an operation, as `pipeline.tools.terminal.progress` does."""

_STATES: Final = msgspec.json.Decoder(ReportedState)


def summarize(
    kafka: Kafka,
    *,
    stream: Stream = KUAIREC,
    registry: Registry | None = None,
    window: int | None = None,
    off_policy: OffPolicy | None = None,
    top: int = DEFAULT_TOP,
    show_progress: ShowProgress = lambda _what, _total: nullcontext(lambda _: None),
) -> Report:
    """Sum up what a run has written so far.

    Committed records are read from the beginning of each topic, with no effect on the run.

    Parameters
    ----------
    kafka
        Connection of the topics, and their prefix.
    stream
        Definition of the stream, which names the fields of outcomes.
    registry
        Has the schemas of outputs that are not plain JSON; None where there are none.
    window
        Labelled events in a window of the report; by default a hundredth of all.
    off_policy
        How the values of policies are estimated; None for not at all.
    top
        The first items of slates that count in figures of rankings.
    show_progress
        Shows how many records were read.

    Returns
    -------
    Report
        Figures of the run.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        A topic does not exist.
    StateError
        A topic holds a record that no worker has written, or one of another version.
    """
    topics = Topics(kafka.prefix, stream=stream, registry=registry or Registry())
    decoder = outcome_decoder(stream)
    watermarks = Watermarks(
        kafka, (topics.predictions, topics.outcomes, topics.dead_letters, topics.checkpoints)
    )
    ranges = watermarks.ranges()
    partitions = [each.partition for each in watermarks.partitions if each.topic == topics.checkpoints]
    total = sum(len(offsets) for each, offsets in ranges.items() if each.topic != topics.checkpoints)
    runs = []
    with (
        show_progress("read", total) as update,
        LogReader(kafka, values=OutputValues(topics), meter=Meter(update)) as reader,
    ):
        for partition in partitions:
            log, checkpoints = (
                PartitionLog(reader, topics, partition),
                PartitionId(topics.checkpoints, partition),
            )
            before = _state(log, ranges[checkpoints])
            found, slates = Counter[str](), dict[int, int]()
            for messages in log.slices(topics.predictions):
                found["predictions"] += len(messages)
                if stream.has_slates:
                    slates |= _sizes(messages)
            found[ITEMS] += sum(slates.values())
            outcomes = OutcomeTable(stream, target_from(before.settings))
            for messages in log.slices(topics.outcomes):
                outcomes.add([decode_record(decoder, message) for message in messages])
            found.update(outcomes.counted)
            for messages in log.slices(topics.dead_letters):
                found.update(map(_fault, messages))
            after = _state(log, watermarks.ranges()[checkpoints])
            counts = Counts(found, before.counters, after.counters)
            runs.append(PartitionRun(outcomes, counts, after, slates))
    return report_of(runs, stream, window, off_policy, top)


def _sizes(messages: Sequence[ConsumerRecord]) -> dict[int, int]:
    """Return the number of items of slates, by sequence."""
    return {each.sequence: len(each.items) for each in (decode_record(SLATE_SIZES, one) for one in messages)}


def _state(log: PartitionLog, offsets: range) -> ReportedState:
    """Read the last state record of a partition; an empty one if none was committed yet."""
    key = state_key(log.partition).encode()
    found = log.last(log.topics.checkpoints, offsets, 1, lambda message: message.key() == key)
    if not found:
        return ReportedState({}, {})
    with suppress(*DECODE_ERRORS):  # which are named below
        refuse_other_version(found[0].value() or b"", log.partition)
    return decode_record(_STATES, found[0])


def _fault(message: ConsumerRecord) -> str:
    fault = read_dead_letter(message).fault
    return fault if fault in DEAD_LETTER_FAULTS else "unknown"
