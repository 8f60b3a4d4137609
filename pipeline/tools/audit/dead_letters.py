"""The dead letters of a partition, by the message that each is about."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from pipeline.records.dead_letter import ABOUT
from pipeline.records.decoding import LABELS
from pipeline.records.encoding import encode
from pipeline.records.fields import Id
from pipeline.records.inputs import Source
from pipeline.tools.audit.differences import Ledger
from pipeline.tools.audit.topic_records import Buried, Evidence

FAULTS = ("undecodable", "invalid", "wrong_key", "future")
"""Why a message is refused at once."""
JOIN_FAULTS = ("orphan", "late", "mismatched")
"""Why a good label is of no use."""


class Burial(NamedTuple):
    """What is kept of a dead letter: messages may be large."""

    fault: str
    offset: int
    digest: bytes


class Letters:
    """Dead letters, each to be met by the message that it names.

    Parameters
    ----------
    evidence
        Those of its dead letters that the state record covers are read.
    ledger
        Where to note what differs.
    """

    def __init__(self, evidence: Evidence, ledger: Ledger) -> None:
        self.faults: Counter[str] = Counter()
        """Dead letters by fault."""
        self.held: set[Id] = set()
        """Events whose label waited for an interaction and found none, or another one."""
        self._topic = evidence.topics.dead_letters
        self._ledger = ledger
        state = evidence.state
        self._accepted = {
            evidence.topics.interactions: (state.interactions.offset, FAULTS),
            evidence.topics.labels: (state.labels.offset, (*FAULTS, *JOIN_FAULTS)),
        }
        self._waiting = {(saved.topic, saved.offset) for saved in state.waiting}
        self._open: dict[tuple[str, int], Burial] = {}
        for buried in evidence.dead_letters.items:
            self._read(buried, evidence.dead_letters.covered)

    def _read(self, buried: Buried, covered: int) -> None:
        source, letter = buried
        end, faults = self._accepted.get(letter.topic or "", (0, ()))
        if letter.topic is None or letter.offset is None or letter.fault not in faults:
            about = f"{letter.fault} about {letter.topic}, offset {letter.offset}"
            self._differs(source, "a dead letter that a worker wrote", about)
            return
        if letter.offset >= end or (letter.topic, letter.offset) in self._waiting:
            if source.offset < covered:
                expected = f"none about offsets from {end} on, or about labels that wait"
                self._differs(source, expected, f"one about {letter.topic}, offset {letter.offset}")
            return
        if letter.partition != self._ledger.partition:
            self._differs(source, f"about partition {self._ledger.partition}", f"about {letter.partition}")
            return
        place = (letter.topic, letter.offset)
        if place in self._open:
            first = self._open[place].offset
            self._differs(source, f"one dead letter a message, that at {first}", f"another about {place}")
            return
        self._ledger.checked["dead letters"] += 1
        self.faults[letter.fault] += 1
        self._open[place] = Burial(letter.fault, source.offset, _digest(source, letter.headers))
        if letter.fault in ("orphan", "mismatched"):
            self._hold(source)

    def take(self, message: Source) -> str | None:
        """The fault for which an input's message was buried, if it was; the letter has to hold its bytes."""
        burial = self._open.pop((message.topic, message.offset), None)
        if burial is None:
            return None
        if burial.digest != _digest(message, message.headers):
            expected = f"the bytes of {message.topic}, offset {message.offset}"
            self._ledger.differs(self._topic, burial.offset, expected, "other bytes, key or headers")
        return burial.fault

    def check_sources(self, topic: str, begin: int) -> None:
        """Note the letters about messages that are not there, though not before `begin`."""
        for (name, offset), burial in self._open.items():
            if name == topic and offset >= begin:
                expected = f"a source that exists: {topic}, offset {offset}"
                self._ledger.differs(self._topic, burial.offset, expected, "no message there")

    def _hold(self, source: Source) -> None:
        try:
            self.held.add(LABELS.decode(source.value or b"").event_id)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._differs(source, "a label that waited for its interaction", f"no label: {error}")

    def _differs(self, source: Source, expected: str, found: str) -> None:
        self._ledger.differs(self._topic, source.offset, expected, found)


def _digest(source: Source, headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    own = [header for header in headers if not header[0].startswith(ABOUT)]
    return hashlib.sha256(encode((source.key, source.value, own))).digest()
