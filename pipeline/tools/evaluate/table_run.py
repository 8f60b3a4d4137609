"""Run the events of a table through the pure core of a partition, as a worker does, without Kafka."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any, Final, NamedTuple

import polars as pl

from pipeline.config.settings import Config
from pipeline.config.topics import topics_of
from pipeline.errors import DataError
from pipeline.features.live_tables import Rows
from pipeline.join.spill import SpilledPredictions
from pipeline.model.cost import seconds_per_event
from pipeline.model.factory import ModelFactory
from pipeline.model.label_policy import label_policy
from pipeline.records.column_decoder import ColumnDecoder
from pipeline.records.decoding import InputDecoder
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import Interaction, Label
from pipeline.records.output_types import OutputTypes
from pipeline.sources.kuairec import Events
from pipeline.sources.messages import MessageWriter, writer_of
from pipeline.sources.schedule import Integers, order_of
from pipeline.task.live_tables import LiveTable
from pipeline.task.plan import DeadLetter
from pipeline.task.record_queue import Position, RecordQueue
from pipeline.task.state import ITEMS
from pipeline.task.task import Task
from pipeline.tools.evaluate.losses import DeadLetterCounts, Losses, losses_of
from pipeline.tools.report.counts import Counts
from pipeline.tools.report.figures import Report
from pipeline.tools.report.outcomes import Outcomes
from pipeline.tools.report.partition_run import (
    OutcomeTable,
    PartitionRun,
    ReportedState,
    outcome_decoder,
    report_of,
)
from pipeline.tools.report.ranking import SLATE_SIZES
from pipeline.worker.clock import wall_clock
from pipeline.worker.encoder import EncodedBatch, RecordEncoder
from pipeline.worker.spill_file import SpillFile

CHUNK: Final = 2_000
"""Messages of an input that are made at once."""
PROGRESS_SECONDS: Final = 0.5
"""Seconds from one report of progress to the next, about."""


class TableBatch(NamedTuple):
    """What a worker would write in one transaction."""

    records: EncodedBatch
    dead_letters: Sequence[DeadLetter]
    counters: Mapping[str, int]
    """The counters of the state record."""


class TableRun(NamedTuple):
    """Figures of a run, and how long it took."""

    report: Report
    seconds: float
    """Seconds of the run, without reading the table and compiling."""
    losses: Losses
    """Rows that no metric counts."""
    outcomes: Outcomes


def without_schemas(config: Config) -> Config:
    """Return a configuration whose inputs are plain JSON: no output depends on how messages are written."""
    stream = config.stream
    inputs = {
        name: definition.model_copy(update={"format": "json"})
        for name, definition in (("interactions", stream.interactions), ("labels", stream.labels))
    }
    return config.model_copy(update={"stream": stream.model_copy(update=inputs)})


def run_table(
    events: Events,
    config: Config,
    factory: ModelFactory,
    *,
    window: int | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> TableRun:
    """Predict and learn all events in one partition, as a worker that finds a whole replay in its inputs.

    Live tables are empty, and time passes with the events only: `join.idle_advance` has no effect.

    Parameters
    ----------
    events
        Events of `pipeline.sources.rows.read_rows`.
    config
        The whole configuration, with inputs in plain JSON.
    factory
        Makes the model.
    window
        Labelled events in a window of the report; by default a hundredth of all.
    progress
        Function to call now and then with the number of messages processed, of those of `order_of`.

    Returns
    -------
    TableRun
        The figures of `forks report`, seconds, and what is lost.

    Raises
    ------
    DataError
        There is no event.
    """
    if not len(events):
        example = next(iter(events.examples.values()), "")
        raise DataError(
            f"none of the {events.rows:,} rows can be used: {events.reasons}. {example}".rstrip(". ")
        )
    stream, begin = config.stream, time.perf_counter()
    outcomes, decoder, found = OutcomeTable(stream, factory.target), outcome_decoder(stream), Counter[str]()
    counters: Mapping[str, int] = {}
    slates: dict[int, int] = {}
    dead_letters = DeadLetterCounts()
    for batch in batches(events, config, factory):
        counters = batch.counters
        outcomes.add([decoder.decode(value) for value in batch.records.outcomes.values])
        found["predictions"] += len(batch.records.predictions.values)
        if stream.has_slates:
            sizes_here = [SLATE_SIZES.decode(value) for value in batch.records.predictions.values]
            slates |= {each.sequence: len(each.items) for each in sizes_here}
        dead_letters.add(batch.dead_letters)
        progress(counters["interactions"] + counters["labels"])
    found.update({fault.value: count for fault, count in dead_letters.counts.items()})
    found.update(outcomes.counted)
    found[ITEMS] += sum(slates.values())
    state = ReportedState(dict(counters), factory.settings(1))
    run = PartitionRun(outcomes, Counts(found, state.counters, state.counters), state, slates)
    seconds = time.perf_counter() - begin
    losses = losses_of(events, counters, dead_letters)
    return TableRun(report_of([run], stream, window), seconds, losses, outcomes.rows())


def batches(events: Events, config: Config, factory: ModelFactory) -> Iterator[TableBatch]:
    """Yield what a worker would write, see `run_table`."""
    types = OutputTypes.of(config.stream)
    encoder, limit = RecordEncoder(types), config.worker.batch
    limit = max(1, min(limit, int(PROGRESS_SECONDS / seconds_per_event(factory.learners))))
    with closing(SpillFile(config.join.spill_folder)) as file:
        spilled = SpilledPredictions(file, types.predictions, secrets.token_bytes(16))
        task = _task(config, factory, spilled)
        inputs = _inputs(events, config, task)
        while True:
            for each in inputs:
                each.fill(limit)
            batch = task.advance(limit)
            if batch.empty:
                return
            yield TableBatch(encoder.encode(batch), batch.dead_letters, task.counters)
            encoder.follow(task.join)


def _task(config: Config, factory: ModelFactory, spilled: SpilledPredictions) -> Task:
    """Return the task of the only partition."""
    task = Task(
        0,
        factory.new_model(),
        config.join,
        Position(0),
        Position(0),
        policy=label_policy(config.labels, factory.features),
        spilled=spilled,
        tables=[LiveTable(Rows(each)) for each in factory.features.tables],
    )
    for table in task.tables.tables:
        table.queue.at_end = True
    return task


def _inputs(events: Events, config: Config, task: Task) -> tuple[_Input, _Input]:
    """Return the interactions and the labels, each with its queue."""
    writer, decoders, frame = writer_of(config.stream), InputDecoders.of(config.stream), events.frame
    order, count = order_of(events), len(events)
    interactions_topic, labels_topic = topics_of(config).inputs
    interactions = _messages(interactions_topic, frame, order[order < count], writer, writer.interaction)
    labels = _messages(labels_topic, frame, order[order >= count] - count, writer, writer.label)
    max_ahead = config.join.max_ahead
    return (
        _Input(task.interactions, interactions, decoders.interactions, max_ahead),
        _Input(task.labels, labels, decoders.labels, max_ahead),
    )


def _messages(
    topic: str,
    frame: pl.DataFrame,
    rows: Integers,
    writer: MessageWriter,
    make: Callable[[Sequence[Any]], bytes],
) -> Iterator[_Message]:
    """Yield the messages of an input, made of these rows, as a replay sends them."""
    table, key_at = frame.select(writer.columns), writer.columns.index(writer.key_column)
    for begin in range(0, len(rows), CHUNK):
        for offset, row in enumerate(table[rows[begin : begin + CHUNK]].iter_rows(), begin):
            yield _Message(topic, offset, str(row[key_at]).encode(), make(row))


class _Message:
    """A message as a client would hand it over."""

    __slots__ = ("_key", "_offset", "_topic", "_value")

    def __init__(self, topic: str, offset: int, key: bytes, value: bytes) -> None:
        self._topic, self._offset, self._key, self._value = topic, offset, key, value

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes | None:
        return self._key

    def value(self) -> bytes | None:
        return self._value

    def headers(self) -> None:
        return None


class _Input:
    """Feeds the messages of an input to its queue.

    Parameters
    ----------
    queue
        Where they go.
    messages
        The messages, in the order of their offsets.
    decoder
        Decodes them.
    max_ahead
        Milliseconds by which a timestamp may be ahead of the clock.
    """

    def __init__(
        self,
        queue: RecordQueue,
        messages: Iterator[_Message],
        decoder: InputDecoder[Interaction] | InputDecoder[Label],
        max_ahead: int,
    ) -> None:
        self._queue = queue
        self._messages = messages
        self._decoder = ColumnDecoder(decoder)
        self._max_ahead = max_ahead

    def fill(self, count: int) -> None:
        """Feed messages until the queue has so many, or the input is at its end."""
        while len(self._queue) < count and not self._queue.at_end:
            chunk = list(islice(self._messages, CHUNK))
            if not chunk:
                self._queue.at_end = True
                return
            self._queue.feed(self._decoder.decode(chunk, wall_clock() + self._max_ahead))
