"""Match the dead letters of a partition with the input messages that they name."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from pipeline.join.identity import Identity, identify_by
from pipeline.kafka.registry import decoders_of
from pipeline.records.dead_letter import Original
from pipeline.records.decoding import decode_value
from pipeline.records.encoding import encode
from pipeline.records.inputs import RawMessage
from pipeline.records.names import ERROR_HEADERS, JOIN_FAULTS, MESSAGE_FAULTS, TABLE_FAULTS, Fault
from pipeline.records.schemas import NOT_REGISTERED
from pipeline.tools.audit.differences import AuditResult
from pipeline.tools.audit.topic_records import AuditInput, DeadLetterMessage


class Kept(NamedTuple):
    """What a dead letter that is cut has of its message."""

    original: Original
    """What is known of the message's value."""
    key: int
    """Bytes of the key."""
    value: int
    """Bytes of the value."""
    headers: bool
    """Whether it has the headers."""

    def part(self, message: RawMessage) -> RawMessage:
        """Return the same part of a message."""
        key, value, headers = message.key, message.value, message.headers if self.headers else ()
        return message._replace(
            key=None if key is None else key[: self.key],
            value=None if value is None else value[: self.value],
            headers=headers,
        )


class DeadLetterDigest(NamedTuple):
    """The part of a dead letter that is kept in memory, since messages may be large."""

    fault: str
    offset: int
    digest: bytes
    unknown_schema: bool
    """Whether the reason is that the registry did not have the message's schema."""
    kept: Kept | None
    """None where it has all of its message."""

    def belongs_to(self, message: RawMessage) -> bool:
        """Return whether the dead letter has the bytes of a message."""
        kept = self.kept
        if kept is None:
            return self.digest == _digest(message, message.headers)
        part = kept.part(message)
        return kept.original == Original.of(message.value) and self.digest == _digest(part, part.headers)


class DeadLetters:
    """Dead letters that wait for the input message that they name.

    Parameters
    ----------
    audit_input
        Records of the partition. Dead letters about messages that the state record does not count yet are
        left out.
    result
        Result to add differences to.
    """

    def __init__(self, audit_input: AuditInput, result: AuditResult) -> None:
        self.faults: Counter[str] = Counter()
        """Number of dead letters by fault."""
        self.unjoined_events: set[Identity] = set()
        """Events whose label waited for its interaction in vain, or met another interaction; of slates, as
        `pipeline.join.identity` has them."""
        self._topic = audit_input.topics.dead_letters
        self._labels = decoders_of(audit_input.topics).labels
        self._identify = identify_by(audit_input.topics.stream.item_entities)
        self._result = result
        state = audit_input.state
        self._accepted: dict[str, tuple[int, tuple[Fault, ...]]] = {
            audit_input.topics.interactions: (state.interactions.offset, MESSAGE_FAULTS),
            audit_input.topics.labels: (state.labels.offset, (*MESSAGE_FAULTS, *JOIN_FAULTS)),
        }
        for name, table in (state.tables or {}).items():
            if name in audit_input.tables and audit_input.tables[name].reports:
                self._accepted[audit_input.topics.table(name)] = table.offset, TABLE_FAULTS
        self._waiting = {(saved.topic, saved.offset) for saved in state.waiting}
        self._open: dict[tuple[str, int], DeadLetterDigest] = {}
        for dead_letter_message in audit_input.dead_letters.items:
            self._read(dead_letter_message, audit_input.dead_letters.stable_offset)

    def _read(self, dead_letter_message: DeadLetterMessage, stable_offset: int) -> None:
        source, dead_letter = dead_letter_message
        end, faults = self._accepted.get(dead_letter.topic or "", (0, ()))
        if dead_letter.topic is None or dead_letter.offset is None or dead_letter.fault not in faults:
            about = f"{dead_letter.fault} about {dead_letter.topic}, offset {dead_letter.offset}"
            self._add_difference(source, "a dead letter that a worker wrote", about)
            return
        if dead_letter.offset >= end or (dead_letter.topic, dead_letter.offset) in self._waiting:
            if source.offset < stable_offset:
                expected = f"none about offsets from {end} on, or about labels that wait"
                self._add_difference(
                    source, expected, f"one about {dead_letter.topic}, offset {dead_letter.offset}"
                )
            return
        if dead_letter.partition != self._result.partition:
            self._add_difference(
                source, f"about partition {self._result.partition}", f"about {dead_letter.partition}"
            )
            return
        source_offset = (dead_letter.topic, dead_letter.offset)
        if source_offset in self._open:
            first = self._open[source_offset].offset
            self._add_difference(
                source,
                f"one dead letter for each message, the one at {first}",
                f"another about {source_offset}",
            )
            return
        self._result.checked["dead letters"] += 1
        self.faults[dead_letter.fault] += 1
        self._open[source_offset] = DeadLetterDigest(
            dead_letter.fault,
            source.offset,
            _digest(source, dead_letter.headers),
            NOT_REGISTERED in (dead_letter.reason or ""),
            _kept(dead_letter_message),
        )
        if dead_letter.fault in (Fault.ORPHAN, Fault.MISMATCHED) and dead_letter.original is None:
            self._add_unjoined(source)

    def unknown_schema(self, message: RawMessage) -> bool:
        """Return whether the registry did not have the schema of a message that is not matched yet."""
        entry = self._open.get((message.topic, message.offset))
        return entry is not None and entry.unknown_schema

    def match(self, message: RawMessage) -> str | None:
        """Match an input message with its dead letter, which has to hold the same bytes.

        Parameters
        ----------
        message
            Message of an input topic.

        Returns
        -------
        str or None
            Fault of the dead letter; None if there is no dead letter for the message.
        """
        entry = self._open.pop((message.topic, message.offset), None)
        if entry is None:
            return None
        if not entry.belongs_to(message):
            expected = f"the bytes of {message.topic}, offset {message.offset}"
            self._result.add_difference(self._topic, entry.offset, expected, "other bytes, key or headers")
        return entry.fault

    def check_sources(self, topic: str, log_start_offset: int) -> None:
        """Report dead letters that were not matched, because their message is not in the input.

        Parameters
        ----------
        topic
            Input topic.
        log_start_offset
            First offset that retention has not deleted; dead letters about earlier messages are not reported.
        """
        for (name, offset), entry in self._open.items():
            if name == topic and offset >= log_start_offset:
                expected = f"a source that exists: {topic}, offset {offset}"
                self._result.add_difference(self._topic, entry.offset, expected, "no message there")

    def _add_unjoined(self, source: RawMessage) -> None:
        try:
            self.unjoined_events.add(self._identify(decode_value(source.value or b"", self._labels)))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._add_difference(source, "a label that waited for its interaction", f"no label: {error}")

    def _add_difference(self, source: RawMessage, expected: str, found: str) -> None:
        self._result.add_difference(self._topic, source.offset, expected, found)


def _kept(dead_letter_message: DeadLetterMessage) -> Kept | None:
    source, dead_letter = dead_letter_message
    if dead_letter.original is None:
        return None
    sizes = len(source.key or b""), len(source.value or b"")
    return Kept(dead_letter.original, *sizes, headers=bool(dead_letter.headers))


def _digest(source: RawMessage, headers: Sequence[tuple[str, bytes | None]]) -> bytes:
    own = [header for header in headers if not header[0].startswith(ERROR_HEADERS)]
    return hashlib.sha256(encode((source.key, source.value, own))).digest()
