"""What the processed input messages of a partition say about its state. No Kafka."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from pipeline.config.settings import Join as JoinSettings
from pipeline.errors import StateError
from pipeline.features.event_features import EventFeatures
from pipeline.join.identity import Identity
from pipeline.join.records import EarlyLabel
from pipeline.records.dead_letter import DeadLetterHeaders
from pipeline.records.decoding import InputDecoder, RejectedRecord, decode
from pipeline.records.input_decoders import InputDecoders
from pipeline.records.inputs import Interaction, Label, RawMessage
from pipeline.records.names import CLOCK_FAULTS, JOIN_FAULTS
from pipeline.task.input_clock import InputClock
from pipeline.task.record_queue import Position
from pipeline.task.state import SavedLabel
from pipeline.tools.audit.dispositions import ANY_TIME, match_key, match_keys
from pipeline.tools.checkpoint.output_summary import OutputSummary

JUMP: Final = "join.max_jump"
"""Stands in the reason of a dead letter whose timestamp lay too far from those before it."""


class InputSummary:
    """Summary of the messages of both inputs below the committed offsets.

    Each message has to be accounted for: by an output, by a dead letter or as a duplicate of one that is; or
    it is a label that waits for its interaction. So committed offsets that do not belong to the outputs are
    found.

    Parameters
    ----------
    outputs
        Summary of predictions and outcomes.
    dead_letters
        Headers of all dead letters.
    join
        Settings of the join.
    decoders
        Decoders of the inputs.
    event
        The features of interactions.

    Attributes
    ----------
    counters
        Counters of a state record that follow from inputs and dead letters.
    positions
        Positions behind the messages, by topic.
    stream_time
        Latest time of a message that was processed, in milliseconds.
    """

    def __init__(
        self,
        outputs: OutputSummary,
        dead_letters: Iterable[DeadLetterHeaders],
        join: JoinSettings,
        decoders: InputDecoders,
        event: EventFeatures,
    ) -> None:
        self.counters: Counter[str] = Counter()
        self.positions: dict[str, Position] = {}
        self.stream_time = outputs.latest
        self._outputs = outputs
        self._join = join
        self._decoders = decoders
        self._event = event
        self._dead_letters = {(each.topic, each.offset): each._replace(headers=()) for each in dead_letters}
        self._identify = outputs.join.identify
        self._pending_events = {self._identify(prediction) for prediction in outputs.pending.values()}
        self._first_offsets: dict[str, int] = {}
        """The first message of each topic that retention has not deleted."""
        self._unjoined_events: set[Identity] = set()
        """Events, or items of slates, with a label that has a dead letter."""
        self._unmatched: list[tuple[Label, RawMessage, int]] = []
        """With the latest time of the labels up to each: none that comes out of order sets it back."""
        self._latest = -1
        """Latest time of the topic's messages that were read so far."""

    def read_table(self, topic: str) -> int:
        """Count the dead letters about a table's records; return the offset behind the last of them."""
        about = {offset: each for (name, offset), each in self._dead_letters.items() if name == topic}
        self.counters.update(each.fault for each in about.values() if each.fault is not None)
        return max((offset + 1 for offset in about if offset is not None), default=0)

    def read_interactions(self, topic: str, messages: Iterable[RawMessage], end: int) -> None:
        """Read the interactions below the committed offset `end`.

        Raises
        ------
        StateError
            A message is not accounted for, or a prediction was made from none of them.
        """
        for source, record in self._read(topic, messages, end, self._decoders.interactions):
            if not isinstance(record, Interaction):
                continue
            if self._outputs.predicted.match(record.event_id, *match_keys(record, self._event)):
                continue
            if not self._outputs.predicted.has_event(record.event_id):
                raise _unaccounted(source, "there is no prediction of its event, and no dead letter")
            self.counters["duplicate_interactions"] += 1
        rest = next(self._outputs.predicted.unmatched(), None)
        if rest is not None and self._first_offsets.get(topic, 0) == 0:
            raise StateError(
                f"the prediction of event {rest[0]!r} was made from no message of {topic} below the "
                f"committed offset {end}: the group's offsets were set back. Set them to where they were"
            )

    def read_labels(self, topic: str, messages: Iterable[RawMessage], end: int) -> None:
        """Read the labels below the committed offset `end`; then call `waiting`.

        Raises
        ------
        StateError
            A message is not accounted for.
        """
        for source, record in self._read(topic, messages, end, self._decoders.labels):
            if isinstance(record, Label) and not self._outputs.labelled.match(
                self._identify(record), match_key(record, self._event)
            ):
                self._unmatched.append((record, source, self._latest))

    def waiting(self) -> list[SavedLabel]:
        """Return the labels that wait for their interaction, and count all others as duplicates.

        Where it is not known whether a label waits or was a duplicate, it waits: an event is joined once, so
        at worst the duplicate becomes a dead letter.

        Raises
        ------
        StateError
            The prediction of a label waits for it, although it was processed.
        """
        waiting: dict[Identity, SavedLabel] = {}
        for record, source, read_at in self._unmatched:
            identity = self._identify(record)
            if identity in self._pending_events and not self._may_be_repeated(record):
                raise _unaccounted(source, "the prediction of its event still waits for it")
            if identity not in waiting and self._may_wait(record, read_at):
                waiting[identity] = SavedLabel.save(EarlyLabel(record, source))
            else:
                self.counters["duplicate_labels"] += 1
        return list(waiting.values())

    def _may_wait(self, label: Label, read_at: int) -> bool:
        """Whether no output tells what became of a label, read at a stream time, without a dead letter."""
        identity = self._identify(label)
        if identity in self._pending_events:
            return False
        if self._outputs.labelled.has_event(identity) and read_at <= self._outputs.remembered_until[identity]:
            return False
        overdue = label.timestamp + self._join.early < self.stream_time
        return not overdue or not self._may_be_repeated(label)

    def _may_be_repeated(self, label: Label) -> bool:
        """Whether another label of the event was joined, or has a dead letter."""
        identity = self._identify(label)
        return self._outputs.labelled.has_event(identity) or identity in self._unjoined_events

    def _read(
        self, topic: str, messages: Iterable[RawMessage], end: int, decoder: InputDecoder[Any]
    ) -> Iterable[tuple[RawMessage, Interaction | Label | None]]:
        """Yield messages with their records, None for those that have a dead letter."""
        noun = "interactions" if decoder is self._decoders.interactions else "labels"
        clock = InputClock(self._join.max_jump, self._join.max_behind)
        self._latest = -1
        for source in messages:
            if source.offset >= end:
                break
            self._first_offsets.setdefault(topic, source.offset)
            self.counters[noun] += 1
            [record] = decode([source.key], [source.value], decoder, ANY_TIME)
            dead_letter = self._dead_letters.get((topic, source.offset))
            fault = None if dead_letter is None else dead_letter.fault
            if fault is not None:
                self.counters[fault] += 1
                if isinstance(record, Label):
                    self._unjoined_events.add(self._identify(record))
            if isinstance(record, RejectedRecord):
                if fault is None:
                    raise _unaccounted(source, f"it cannot be used ({record.reason}), but has no dead letter")
                yield source, None
                continue
            if fault is None or fault in JOIN_FAULTS:
                clock.accept(record.timestamp)
                self._latest = max(self._latest, record.timestamp)
                self.stream_time = max(self.stream_time, record.timestamp)
            elif fault in CLOCK_FAULTS and dead_letter is not None and JUMP in (dead_letter.reason or ""):
                clock.refuse(record.timestamp)
            yield source, record if fault is None else None
        self.positions[topic] = Position.of(end, clock)


def _unaccounted(source: RawMessage, why: str) -> StateError:
    return StateError(
        f"{source.topic}, partition {source.partition}, offset {source.offset}: the group's committed offset "
        f"counts this message as processed, but {why}. The offsets do not belong to the outputs, or outputs "
        "were deleted: set the offsets to where they were"
    )
