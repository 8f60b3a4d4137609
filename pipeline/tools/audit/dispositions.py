"""What became of each input message: exactly one disposition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from pipeline.records.decoding import INTERACTIONS, LABELS, InputDecoder, Poison, decode
from pipeline.records.fields import Id
from pipeline.records.inputs import Interaction, Source, WatchLabel
from pipeline.records.outputs import Outcome, Prediction
from pipeline.task.record_queue import Position
from pipeline.task.state import SavedLabel
from pipeline.tools.audit.dead_letters import JOIN_FAULTS, Letters
from pipeline.tools.audit.differences import Ledger
from pipeline.tools.audit.topic_records import Evidence, Stretch

Key: TypeAlias = tuple[Id, Id, int, float | None]
"""User, video, time and, of a label, the watch ratio."""


class Claims:
    """What outputs claim, until it is found in the input.

    Examples
    --------
    >>> claims = Claims()
    >>> shown = Interaction(1, 7, 3, 1_000, 9_000.0)
    >>> claims.add(1, key_of(shown), offset=5)
    >>> claims.take(1, key_of(shown)), claims.take(1, key_of(shown)), claims.knows(1)
    (True, False, True)
    """

    def __init__(self) -> None:
        self._open: dict[Id, list[tuple[Key, int]]] = {}

    def add(self, event_id: Id, key: Key, offset: int) -> None:
        """Note what the output at an offset claims."""
        self._open.setdefault(event_id, []).append((key, offset))

    def take(self, event_id: Id, key: Key) -> bool:
        """Whether an output claims this message; each claim holds once."""
        claimed = self._open.get(event_id, [])
        for number, (other, _) in enumerate(claimed):
            if other == key:
                del claimed[number]
                return True
        return False

    def knows(self, event_id: Id) -> bool:
        """Whether any output was about this event."""
        return event_id in self._open

    def left(self) -> Iterator[tuple[Id, int]]:
        """Event and offset of the outputs whose message was not found."""
        for event_id, claimed in self._open.items():
            for _, offset in claimed:
                yield event_id, offset


def key_of(record: Interaction | WatchLabel | Prediction) -> Key:
    """By what a message, or the prediction of one, is known."""
    ratio = record.watch_ratio if isinstance(record, WatchLabel) else None
    return record.user_id, record.video_id, record.timestamp, ratio


def label_key(outcome: Outcome) -> Key:
    """By what the label of a labelled outcome is known."""
    return outcome.user_id, outcome.video_id, outcome.label_timestamp or 0, outcome.watch_ratio


ANY_TIME = 2**53
"""What lay in the future when it was read may be past by now."""


class Claimed(NamedTuple):
    """The outputs that claim messages, and what they are called."""

    claims: Claims
    topic: str
    noun: str
    whole: bool
    """Whether none of the outputs is gone."""


class Input(NamedTuple):
    """The messages of one input up to where the state record says it has been processed.

    Attributes
    ----------
    name
        The input's topic.
    stretch
        Its messages.
    position
        How far it has been processed.
    decoder
        Of its messages.
    """

    name: str
    stretch: Stretch[Source]
    position: Position
    decoder: InputDecoder

    @classmethod
    def interactions(cls, evidence: Evidence) -> Input:
        """The interactions."""
        state = evidence.state
        return cls(evidence.topics.interactions, evidence.interactions, state.interactions, INTERACTIONS)

    @classmethod
    def labels(cls, evidence: Evidence) -> Input:
        """The labels."""
        return cls(evidence.topics.labels, evidence.labels, evidence.state.labels, LABELS)


class Fates:
    """Finds the fate of each message of an input.

    A message was refused, is claimed by an output, waits, or repeats one of these. Which of two equal
    messages is the repetition makes no difference. Whether a repetition came within `join.window` is not
    asked: the window may have been another then, and stream time depends on what had arrived.

    Attributes
    ----------
    counts
        `messages`, and those that are `repeated`.
    """

    def __init__(
        self,
        given: Input,
        claimed: Claimed,
        letters: Letters,
        waiting: dict[int, SavedLabel],
        ledger: Ledger,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._input = given
        self._claimed = claimed
        self._letters = letters
        self._waiting = dict(waiting)
        self._held = letters.held | {saved.restore().label.event_id for saved in waiting.values()}
        self._ledger = ledger

    def check(self) -> None:
        """Go through the messages, then through what none of them was found for."""
        name, stretch, position, decoder = self._input
        end = None
        for source in stretch.items:
            if source.offset >= position.offset:
                break
            end = source.offset + 1
            self.counts["messages"] += 1
            self._ledger.checked[f"messages of {name} with one fate"] += 1
            [record] = decode([source.key], [source.value], decoder, ANY_TIME).records
            self._message(source, record)
        self._check_end(end)
        self._letters.check_sources(name, stretch.begin)
        for offset in self._waiting:
            if offset >= stretch.begin:
                self._ledger.differs(name, offset, "the label that waits in the state record", "no message")
        if stretch.whole:
            for event_id, offset in self._claimed.claims.left():
                expected = f"{self._claimed.noun} of a message in {name}"
                found = f"event {event_id!r}, of which there is no message with these values"
                self._ledger.differs(self._claimed.topic, offset, expected, found)

    def _message(self, source: Source, record: Interaction | WatchLabel | Poison) -> None:
        fault = self._letters.take(source)
        if isinstance(record, Poison):
            if fault != record.fault:
                self._differs(source, f"a dead letter, {record.fault}", fault or "no fate")
        elif fault is not None:
            if fault not in ("future", *JOIN_FAULTS):
                self._differs(source, "a fate as a valid message", f"a dead letter, {fault}")
        elif (saved := self._waiting.pop(source.offset, None)) is not None:
            if (saved.key, saved.value) != (source.key, source.value):
                self._differs(source, "the bytes that wait in the state record", "other bytes")
        elif not self._claimed.claims.take(record.event_id, key_of(record)):
            self._repetition(source, record)

    def _repetition(self, source: Source, record: Interaction | WatchLabel) -> None:
        if self._claimed.claims.knows(record.event_id) or record.event_id in self._held:
            self.counts["repeated"] += 1
        elif self._claimed.whole:
            expected = f"one fate of event {record.event_id!r}: {self._claimed.noun}, a dead letter ..."
            self._differs(source, expected, "none")

    def _check_end(self, end: int | None) -> None:
        """A position lies right behind the last message that was processed."""
        position = self._input.position.offset
        if end is not None and position != end:
            expected = f"the input's position right behind its last processed message, {end}"
            self._ledger.differs(self._input.name, position - 1, expected, f"position {position}")
        elif end is None and position > self._input.stretch.begin:
            self._ledger.differs(self._input.name, position - 1, "a last processed message", "none")

    def _differs(self, source: Source, expected: str, found: str) -> None:
        self._ledger.differs(source.topic, source.offset, expected, found)
