"""Find the disposition of each input message, of which it has exactly one."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias, cast

import numpy as np

from pipeline.features.event_features import EventFeatures
from pipeline.features.feature_set import FeatureSet
from pipeline.join.identity import Identify, Identity, identify_by
from pipeline.kafka.registry import decoders_of
from pipeline.records.decoding import InputDecoder, RejectedRecord, decode
from pipeline.records.encoding import encode
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction, Label, RawMessage, Slate
from pipeline.records.names import CLOCK_FAULTS, JOIN_FAULTS, REDRIVEN_HEADER, Fault
from pipeline.records.outputs import Outcome, Prediction
from pipeline.records.slates import STRIDE
from pipeline.task.record_queue import Position
from pipeline.task.state import SavedLabel
from pipeline.tools.audit.dead_letters import DeadLetters
from pipeline.tools.audit.differences import AuditResult
from pipeline.tools.audit.topic_records import AuditInput, PartitionRecords

MatchKey: TypeAlias = tuple[tuple[Id, ...], int, float | None, tuple[float | None, ...]]
"""Ids, time in milliseconds and, for a label, its value and its weight, for an interaction, its features and
the numbers that its prediction carries."""


class OutputIndex:
    """Index of the input messages that outputs were made from, until the messages are found.

    Examples
    --------
    >>> index = OutputIndex()
    >>> key = ((7, 3), 1_000, None, ())
    >>> index.add(1, key, offset=5)
    >>> index.match(1, key), index.match(1, key), index.has_event(1)
    (True, False, True)
    """

    def __init__(self) -> None:
        self._open: dict[Identity, list[tuple[MatchKey, int]]] = {}

    def add(self, event_id: Identity, key: MatchKey, offset: int) -> None:
        """Add an output.

        Parameters
        ----------
        event_id
            Event of the output.
        key
            Key of the input message that the output was made from.
        offset
            Offset of the output.
        """
        self._open.setdefault(event_id, []).append((key, offset))

    def match(self, event_id: Identity, *keys: MatchKey) -> bool:
        """Match an input message with its outputs, at most once per output; return whether all were there."""
        outputs = self._open.get(event_id, [])
        found = [next((each for each in outputs if each[0] == key), None) for key in keys]
        if None in found:
            return False
        for each in found:
            outputs.remove(cast(tuple[MatchKey, int], each))
        return True

    def has_event(self, event_id: Identity) -> bool:
        """Return whether any output is about this event."""
        return event_id in self._open

    def unmatched(self) -> Iterator[tuple[Identity, int]]:
        """Yield event and offset of each output whose input message was not found."""
        for event_id, outputs in self._open.items():
            for _, offset in outputs:
                yield event_id, offset


def match_key(record: Interaction | Label, event: EventFeatures) -> MatchKey:
    """Return the key of an input message.

    Parameters
    ----------
    record
        The message's record.
    event
        The features of interactions.
    """
    if isinstance(record, Label):
        return record.ids, record.timestamp, record.watch_ratio, (record.weight,)
    values = tuple(event.values([record], np.array([record.timestamp]))[0].tolist())
    return record.ids, record.timestamp, None, values + record.carried


def match_keys(record: Interaction | Label, event: EventFeatures) -> list[MatchKey]:
    """Return the key of an input message, or of each item of a slate, where its position stands last."""
    if not isinstance(record, Slate):
        return [match_key(record, event)]
    keys = [match_key(item, event) for item in record.items]
    return [(ids, time, None, (*values, position)) for position, (ids, time, _, values) in enumerate(keys)]


def prediction_key(prediction: Prediction, features: FeatureSet) -> MatchKey:
    """Return the key of the interaction, or of the item of a slate, that a prediction was made from."""
    position = (prediction.number % STRIDE,) if features.item_entities else ()
    values = (*prediction.features[features.own], *prediction.carried, *position)
    return prediction.ids, prediction.timestamp, None, values


def label_key(outcome: Outcome) -> MatchKey:
    """Return the key of the label that a labelled outcome was made from."""
    return outcome.ids, outcome.label_timestamp or 0, outcome.watch_ratio, (outcome.weight,)


ANY_TIME: Final = 2**53
"""Limit of timestamps in milliseconds: a message that lay in the future when it was read may be past now."""


class OutputTopic(NamedTuple):
    """An output topic whose records were made from input messages."""

    events: OutputIndex
    topic: str
    noun: str
    complete: bool
    """Whether retention has deleted no record."""


class Input(NamedTuple):
    """The messages of one input topic that the state record counts as processed.

    Attributes
    ----------
    name
        Name of the topic.
    records
        Messages of the topic.
    position
        Position behind the last processed message.
    decoder
        Decoder of the messages.
    event
        The features of interactions.
    identify
        Returns the event by which outputs made from a message are found.
    """

    name: str
    records: PartitionRecords[RawMessage]
    position: Position
    decoder: InputDecoder[Interaction] | InputDecoder[Label]
    event: EventFeatures
    identify: Identify

    @classmethod
    def interactions(cls, audit_input: AuditInput) -> Input:
        """Return the interactions of a partition."""
        state, decoders = audit_input.state, decoders_of(audit_input.topics)
        return cls(
            audit_input.topics.interactions,
            audit_input.interactions,
            state.interactions,
            decoders.interactions,
            FeatureSet.of(audit_input.topics.stream).event,
            attrgetter("event_id"),
        )

    @classmethod
    def labels(cls, audit_input: AuditInput) -> Input:
        """Return the labels of a partition."""
        topics, decoder = audit_input.topics, decoders_of(audit_input.topics).labels
        event = FeatureSet.of(topics.stream).event
        identify = identify_by(topics.stream.item_entities)
        return cls(topics.labels, audit_input.labels, audit_input.state.labels, decoder, event, identify)


class InputDispositions:
    """Dispositions of the messages of one input topic.

    A message has a dead letter, has an output, waits in the state record, or is a duplicate of such a
    message. Which of two equal messages is the duplicate makes no difference. Whether a duplicate came
    within `join.window` is not checked: the setting may have changed since, and stream time depends on
    the order of arrival.

    Parameters
    ----------
    given
        Messages of the input topic.
    outputs
        Outputs that were made from these messages.
    dead_letters
        Dead letters of the partition.
    waiting
        Labels that wait in the state record, by offset.
    result
        Result to add differences to.

    Attributes
    ----------
    counts
        Number of `messages`, and of `repeated` ones among them.
    """

    def __init__(
        self,
        given: Input,
        outputs: OutputTopic,
        dead_letters: DeadLetters,
        waiting: dict[int, SavedLabel],
        result: AuditResult,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._input = given
        self._outputs = outputs
        self._dead_letters = dead_letters
        self._waiting = dict(waiting)
        self._unjoined_events = dead_letters.unjoined_events | {
            given.identify(saved.restore(cast(InputDecoder[Label], given.decoder)).label)
            for saved in waiting.values()
        }
        self._result = result
        self._doubtful: dict[bytes, list[tuple[int, str, str]]] = defaultdict(list)
        """Differences about messages that have another dead letter than they would have now, by their digest.
        They are none if `forks redrive` has sent the message again: what it lacked was mended since."""

    def check(self) -> None:
        """Find the disposition of each message, then report outputs and dead letters without a message."""
        name, records, position, decoder, *_ = self._input
        end = None
        for source in records.items:
            if source.offset >= position.offset:
                break
            end = source.offset + 1
            self.counts["messages"] += 1
            self._result.checked[f"messages of {name} with one disposition"] += 1
            if any(header == REDRIVEN_HEADER for header, _ in source.headers):
                del self._doubtful[_content(source)][:1]
            [record] = decode([source.key], [source.value], decoder, ANY_TIME)
            self._check_message(source, record)
        for differences in self._doubtful.values():
            for offset, expected, found in differences:
                self._result.add_difference(name, offset, expected, found)
        self._check_end(end)
        self._dead_letters.check_sources(name, records.log_start_offset)
        for offset in self._waiting:
            if offset >= records.log_start_offset:
                self._result.add_difference(
                    name, offset, "the label that waits in the state record", "no message"
                )
        if records.complete:
            for event_id, offset in self._outputs.events.unmatched():
                expected = f"{self._outputs.noun} of a message in {name}"
                found = f"event {event_id!r}, of which there is no message with these values"
                self._result.add_difference(self._outputs.topic, offset, expected, found)

    def _check_message(self, source: RawMessage, record: Interaction | Label | RejectedRecord) -> None:
        unknown_schema = self._input.decoder.ready is not None and self._dead_letters.unknown_schema(source)
        fault = self._dead_letters.match(source)
        if unknown_schema:  # it may have been registered since, as a time may have passed
            return
        if isinstance(record, RejectedRecord):
            if fault is None:
                self._add_difference(source, f"a dead letter, {record.fault}", "no dead letter")
            elif fault != record.fault:
                self._doubt(source, f"a dead letter, {record.fault}", fault)
        elif fault is not None:
            if fault in (Fault.ORPHAN, Fault.MISMATCHED):  # a dead letter that is cut does not tell the event
                self._unjoined_events.add(self._input.identify(record))
            if fault not in (*CLOCK_FAULTS, *JOIN_FAULTS):
                self._doubt(source, "no dead letter, since the message is valid", f"a dead letter, {fault}")
        elif (saved := self._waiting.pop(source.offset, None)) is not None:
            if (saved.key, saved.value) != (source.key, source.value):
                self._add_difference(source, "the bytes that wait in the state record", "other bytes")
        elif not self._outputs.events.match(
            self._input.identify(record), *match_keys(record, self._input.event)
        ):
            self._duplicate(source, record)

    def _doubt(self, source: RawMessage, expected: str, found: str) -> None:
        self._doubtful[_content(source)].append((source.offset, expected, found))

    def _duplicate(self, source: RawMessage, record: Interaction | Label) -> None:
        event_id = self._input.identify(record)
        if self._outputs.events.has_event(event_id) or event_id in self._unjoined_events:
            self.counts["repeated"] += 1
        elif self._outputs.complete:
            expected = f"one disposition of event {event_id!r}: {self._outputs.noun}, a dead letter ..."
            self._add_difference(source, expected, "none")

    def _check_end(self, end: int | None) -> None:
        """Check that the position lies directly behind the last processed message."""
        position = self._input.position.offset
        if end is not None and position != end:
            expected = f"the input's position right behind its last processed message, {end}"
            self._result.add_difference(self._input.name, position - 1, expected, f"position {position}")
        elif end is None and position > self._input.records.log_start_offset:
            self._result.add_difference(self._input.name, position - 1, "a last processed message", "none")

    def _add_difference(self, source: RawMessage, expected: str, found: str) -> None:
        self._result.add_difference(source.topic, source.offset, expected, found)


def _content(source: RawMessage) -> bytes:
    """Return a digest of the key and the value of a message."""
    return hashlib.sha256(encode((source.key, source.value))).digest()
