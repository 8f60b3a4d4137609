"""What a worker holds between two faults: clients, tasks, and the loop over them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Self, TypeAlias, cast

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from pipeline.clients import group_consumer, transactional_producer
from pipeline.config import Config
from pipeline.errors import StateError
from pipeline.inlet import Inlet
from pipeline.model import Model
from pipeline.records import INTERACTIONS, LABELS, Source, decode
from pipeline.recovery import recover, start_from
from pipeline.task import Batch, Task
from pipeline.topics import LARGEST_DEAD_LETTER, Topics
from pipeline.transaction import Part, Writer

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

POLL = 0.1
"""Seconds to wait for a first message."""
PROGRESS = 10.0
"""Seconds between two log lines on progress."""
TIMEOUT = 30.0
"""Seconds to wait for the group's coordinator, and for the transaction's."""

_log = structlog.get_logger()


class Session:
    """Polls, advances and commits until told to stop, or until something fails.

    Parameters
    ----------
    config
        The whole configuration.
    instance
        The worker's name, by which older workers of that name are fenced.
    new_model
        Makes a model that has seen nothing.
    settings
        What the outputs depend on.

    Raises
    ------
    KafkaException
        From any method: throw the session away and start another.
    StateError
        If what the topics hold does not fit together.
    """

    def __init__(
        self, config: Config, instance: str, new_model: Callable[[], Model], settings: dict[str, str]
    ) -> None:
        self.config = config
        self.topics = Topics(config.kafka.prefix)
        self._new_model = new_model
        self._settings = settings
        self._tasks: dict[int, Task] = {}
        self._restoring: dict[int, Generator[Task | None]] = {}
        self._paused: set[tuple[str, int]] = set()
        self._read_to: dict[tuple[str, int], int] = {}
        self._fed: dict[tuple[str, int], float] = {}
        self._ended: set[tuple[str, int]] = set()
        self._snapshot_times: dict[int, float] = {}
        self._busy = False
        self._ticked = time.monotonic()
        self._progress = (time.monotonic(), 0, 0)
        self._producer = transactional_producer(config, instance, LARGEST_DEAD_LETTER)
        self._consumer: Consumer = group_consumer(config)
        patience = config.worker.transaction_timeout / 1000
        self._writer = Writer(self._producer, self.topics, settings, patience)

    def __enter__(self) -> Self:
        self._producer.init_transactions(TIMEOUT)
        self._consumer.subscribe(
            list(self.topics.inputs), on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._forget_all()
        self._consumer.close()

    def run(self, stopping: Callable[[], bool]) -> None:
        """Work until told to stop; then write every model whole."""
        while not stopping():
            self._step()
        rest = [Part(task, Batch(), True) for task in self._tasks.values() if self._unsaved(task)]
        if rest:
            self._commit(rest)
        _log.info("stopped", partitions=sorted(self._tasks))

    def _step(self) -> None:
        idle = not (self._busy or self._restoring)
        self._receive(POLL if idle else 0.0)
        self._restore()
        self._mark_ends()
        limit = self.config.worker.batch
        batches = {partition: task.advance(limit) for partition, task in self._tasks.items()}
        self._busy = any(batch.merged == limit for batch in batches.values())
        self._tick(batches)
        parts = [
            Part(self._tasks[partition], batch, self._snapshot_due(partition))
            for partition, batch in batches.items()
        ]
        parts = [part for part in parts if part.snapshot or not part.batch.empty]
        if parts:
            self._commit(parts)
        self._throttle()
        self._report()

    def _receive(self, timeout: float) -> None:
        """Take what is there: at once if something is, so that nothing waits for a batch to fill."""
        first = self._consumer.poll(timeout)
        if first is None:
            return
        arrived: dict[tuple[str, int], list[Source]] = defaultdict(list)
        for message in (first, *self._consumer.consume(2 * self.config.worker.batch, 0.0)):
            self._take(message, arrived)
        latest = int(time.time() * 1000) + self.config.join.max_ahead
        for place, sources in arrived.items():
            if place[1] in self._restoring:
                raise RuntimeError(f"{place} delivered messages while it was paused for its restore")
            inlet = self._inlet(place)
            if inlet is not None:
                self._feed(place, inlet, sources, latest)

    def _take(self, message: Message, arrived: dict[tuple[str, int], list[Source]]) -> None:
        place = (message.topic() or "", message.partition() or 0)
        error = message.error()
        if error is None:
            source = Source(
                *place,
                message.offset() or 0,
                message.key(),
                message.value(),
                cast(Headers, message.headers() or ()),
            )
            arrived[place].append(source)
        elif error.code() == KafkaError._PARTITION_EOF:
            if place not in arrived:
                self._ended.add(place)
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise StateError(
                f"{place[0]} has lost messages of partition {place[1]} that were not yet processed: "
                f"{error.str()}. Its retention is too short for how far the worker is behind"
            )
        elif not error.retriable():
            raise KafkaException(error)
        else:
            _log.warning("kafka", error=error.str())

    def _feed(self, place: tuple[str, int], inlet: Inlet, sources: list[Source], latest: int) -> None:
        decoder = INTERACTIONS if place[0] == self.topics.interactions else LABELS
        inlet.feed(decode(sources, decoder, latest))
        self._read_to[place] = sources[-1].offset + 1
        self._fed[place] = time.monotonic()
        self._ended.discard(place)

    def _inlet(self, place: tuple[str, int]) -> Inlet | None:
        """The inlet of a topic's partition; None if the partition has been taken away."""
        topic, partition = place
        task = self._tasks.get(partition)
        if task is None:
            return None
        return task.interactions if topic == self.topics.interactions else task.labels

    def _inlets(self) -> Iterator[tuple[tuple[str, int], Inlet]]:
        for partition, task in self._tasks.items():
            yield (self.topics.interactions, partition), task.interactions
            yield (self.topics.labels, partition), task.labels

    def _mark_ends(self) -> None:
        """Find the inputs that the others need not wait for.

        An input's end is known from an event, and often sooner from the end that the last fetch saw.
        Where transactions wrote the input, their markers lie between the last message and that end;
        then only the event tells.
        """
        for place, inlet in self._inlets():
            if not inlet.ready:
                _, end = self._consumer.get_watermark_offsets(TopicPartition(*place), cached=True)
                ended = place in self._ended or 0 <= end <= self._read_to[place]
                quiet = (time.monotonic() - self._fed[place]) * 1000
                inlet.at_end = ended and quiet >= self.config.join.max_idle

    def _restore(self) -> None:
        """Go on with restoring, for one slice of the log, so that the group hears from us in between."""
        for partition, steps in list(self._restoring.items()):
            task = next(steps)
            if task is None:
                return
            del self._restoring[partition]
            self._tasks[partition] = task
            self._snapshot_times[partition] = time.monotonic()
            since, predicted, folded = self._progress
            self._progress = (since, predicted + task.predicted, folded + task.model.folded)
            places = [TopicPartition(topic, partition) for topic in self.topics.inputs]
            self._consumer.resume(places)
            _log.info("restored", partition=partition, predictions=task.predicted, outcomes=task.model.folded)

    def _tick(self, batches: dict[int, Batch]) -> None:
        """While nothing comes, let stream time follow the wall clock, if that is wanted."""
        distance = self.config.join.idle_advance
        if distance is None or time.monotonic() - self._ticked < 1.0:
            return
        self._ticked = time.monotonic()
        for partition, task in self._tasks.items():
            idle = task.interactions.at_end and task.labels.at_end
            if idle and batches[partition].empty:
                batches[partition] = task.tick(int(time.time() * 1000) - distance)

    def _unsaved(self, task: Task) -> int:
        return task.model.folded - (task.snapshot.folded if task.snapshot else 0)

    def _snapshot_due(self, partition: int) -> bool:
        unsaved = self._unsaved(self._tasks[partition])
        age = time.monotonic() - self._snapshot_times[partition]
        settings = self.config.checkpoint
        return unsaved >= settings.outcomes or (unsaved > 0 and age * 1000 >= settings.interval)

    def _commit(self, parts: list[Part]) -> None:
        try:
            self._writer.commit(parts, self._consumer)
        except KafkaException as error:
            if error.args[0].txn_requires_abort():
                self._producer.abort_transaction(TIMEOUT)
            raise
        for part in parts:
            if part.snapshot:
                self._snapshot_times[part.task.partition] = time.monotonic()
                _log.info("snapshot", partition=part.task.partition, outcomes=part.task.model.folded)

    def _throttle(self) -> None:
        """Stop reading an input that runs ahead of the other, until the merge has caught up."""
        limit = self.config.worker.batch
        for place, inlet in self._inlets():
            if len(inlet) > 4 * limit and place not in self._paused:
                self._consumer.pause([TopicPartition(*place)])
                self._paused.add(place)
            elif len(inlet) < 2 * limit and place in self._paused:
                self._consumer.resume([TopicPartition(*place)])
                self._paused.remove(place)

    def _report(self) -> None:
        since, predictions, outcomes = self._progress
        seconds = time.monotonic() - since
        if seconds < PROGRESS:
            return
        predicted = sum(task.predicted for task in self._tasks.values())
        folded = sum(task.model.folded for task in self._tasks.values())
        if (predicted, folded) != (predictions, outcomes):
            rate = round((predicted - predictions) / seconds)
            _log.info("progress", predictions=predicted, outcomes=folded, predictions_per_s=rate)
        self._progress = (time.monotonic(), predicted, folded)

    def _assigned(self, consumer: Consumer, places: list[TopicPartition]) -> None:
        """Start from the committed offsets, but read nothing before the state is restored."""
        committed: dict[int, dict[str, TopicPartition]] = defaultdict(dict)
        for place in consumer.committed(places, TIMEOUT):
            if place.error is not None:
                raise KafkaException(place.error)
            committed[place.partition][place.topic] = place
        starts = []
        for partition, by_topic in sorted(committed.items()):
            lows = {
                topic: consumer.get_watermark_offsets(place, TIMEOUT)[0] for topic, place in by_topic.items()
            }
            start = start_from(by_topic, self.topics, lows)
            for topic, offset in zip(self.topics.inputs, start[:2], strict=True):
                starts.append(TopicPartition(topic, partition, offset))
                self._read_to[topic, partition] = offset
                self._fed[topic, partition] = time.monotonic()
            self._restoring[partition] = recover(
                partition, start, self._new_model, self._settings, self.config
            )
        consumer.assign(starts)
        consumer.pause(starts)
        _log.info("assigned", partitions=sorted(committed))

    def _revoked(self, consumer: Consumer, places: list[TopicPartition]) -> None:  # noqa: ARG002 - the signature is librdkafka's
        """Everything is committed between two polls: what is in memory can go."""
        _log.info("revoked", partitions=sorted({place.partition for place in places}))
        self._forget_all()

    def _forget_all(self) -> None:
        for steps in self._restoring.values():
            steps.close()
        for held in (
            self._tasks,
            self._restoring,
            self._paused,
            self._read_to,
            self._fed,
            self._ended,
            self._snapshot_times,
        ):
            held.clear()
