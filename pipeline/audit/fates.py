"""Each message that was processed has had one fate, and each output has a message that it came of."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from pipeline.audit.claims import Claims, key_of
from pipeline.audit.evidence import Evidence, Stretch
from pipeline.audit.ledger import Ledger
from pipeline.audit.letters import JOIN_FAULTS, Letters
from pipeline.decoding import INTERACTIONS, LABELS, InputDecoder, Poison, decode
from pipeline.inlet import Position
from pipeline.records import Interaction, Source, WatchLabel
from pipeline.state import SavedLabel

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
