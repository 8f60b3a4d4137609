"""The state record: what a restart needs to know beside the log itself.

One is written in every transaction, and its offset is the metadata of the committed input offsets.
The offsets in it are lower bounds: records of the same transaction have no offset yet when it is
written. Sequences identify the records that are read again but known already.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import Annotated, TypeAlias

import msgspec

from pipeline.join.tables import EarlyLabel
from pipeline.records.decoding import LABEL_DECODER, InputDecoder, decode_value
from pipeline.records.fields import Count, Timestamp
from pipeline.records.inputs import Label, RawMessage
from pipeline.records.names import Fault
from pipeline.task.record_queue import Position

STATE_VERSION = 3
"""The version of what a transaction writes: this record, predictions, outcomes, label requests, shares and
dead letters. A snapshot has one of its own. Readers ignore fields that they do not know, so a field that may
be left out needs no other version."""

TABLE_COUNTERS = (Fault.TABLE_FULL.value,)
"""Further counters, of streams with live tables."""

COUNTERS = (
    "interactions",
    "labels",
    "predictions",
    "labelled",
    "expired",
    "crowded_out",
    "early",
    Fault.ORPHAN.value,
    Fault.LATE.value,
    Fault.MISMATCHED.value,
    "duplicate_interactions",
    "duplicate_labels",
    Fault.UNDECODABLE.value,
    Fault.INVALID.value,
    Fault.WRONG_KEY.value,
    Fault.FUTURE.value,
    "asked",
    "unasked",
)
"""The counters. Every message read is in `interactions` or `labels`, and in exactly one disposition; `early`
labels and `crowded_out` predictions have another one, too. Under a policy, `asked` counts the predictions
whose label was asked for, and `unasked` the labels that were joined though theirs was not."""


CORRECTED = "corrected"
"""The counter of labels that corrected an earlier one, which is there where they may."""


class SnapshotReference(msgspec.Struct, frozen=True):
    """Where a snapshot is, and from where the outcomes after it are."""

    chunks: list[int]
    """Offsets in the checkpoints topic."""
    sha256: str
    slot: int
    folded: Count
    """Outcomes in it."""
    outcome_offset: int
    """No outcome from `folded` on lies below this offset."""


class SavedLabel(msgspec.Struct, frozen=True):
    """A label that waits for its interaction, as its message came."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes | None]]

    @classmethod
    def save(cls, early: EarlyLabel) -> SavedLabel:
        """Save the message of an early label."""
        source = early.source
        return cls(*source[:4], source.value or b"", list(source.headers))

    def restore(self, decoder: InputDecoder[Label] = LABEL_DECODER) -> EarlyLabel:
        """Return the early label of this message, which the decoder of labels reads."""
        source = RawMessage(self.topic, self.partition, self.offset, self.key, self.value, self.headers)
        return EarlyLabel(decode_value(self.value, decoder), source)


class TableState(msgspec.Struct, frozen=True):
    """How far a live table was applied, and what it held."""

    offset: Count
    """The next record to apply."""
    rows: Count
    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    """See `pipeline.features.live_tables.Rows.digest`."""


class SettingsEpoch(msgspec.Struct, frozen=True):
    """An epoch that has ended, in which the outputs depended on other settings."""

    settings: dict[str, str]
    """Settings of that time."""
    predictions: Count
    """Predictions below this sequence were made under these settings, from the epoch before on."""
    outcomes: Count
    """The same of outcomes."""


LibraryVersions: TypeAlias = Annotated[
    dict[
        Annotated[str, msgspec.Meta(max_length=40)],
        Annotated[str, msgspec.Meta(max_length=200, pattern="^[ -~]*$")],
    ],
    msgspec.Meta(max_length=16),
]
"""Versions of libraries by name, as they are shown to users."""
MAX_LIBRARY_EPOCHS = 8
"""The epochs of libraries that a state record names, at most."""


class LibraryEpoch(msgspec.Struct, frozen=True):
    """Outputs that were computed with other libraries than those after them."""

    versions: LibraryVersions
    """Empty where they are not known."""
    predictions: Count
    """Predictions below this sequence were made with these libraries, from the epoch before on."""
    outcomes: Count
    """The same of outcomes."""


class Libraries(msgspec.Struct, frozen=True):
    """The libraries that outputs were computed with: the last bits of scores depend on them."""

    versions: LibraryVersions
    """Those of the worker that wrote the record."""
    earlier: Annotated[list[LibraryEpoch], msgspec.Meta(max_length=MAX_LIBRARY_EPOCHS)] = []
    """The epochs of other libraries, oldest first."""


class State(msgspec.Struct, frozen=True):
    """A partition's state record."""

    partition: Annotated[int, msgspec.Meta(ge=0)]
    settings: dict[str, str]
    """What the outputs depend on: a restart under other settings is refused."""
    stream_time: int
    interactions: Position
    labels: Position
    predictions: Count
    """Predictions made: the sequence of the next one."""
    outcomes: Count
    """Outcomes folded: the sequence of the next one."""
    pending: Count
    """Predictions that wait for their label."""
    pending_from: Count
    """Sequence below which no prediction waits."""
    outcomes_from: Count
    """Sequence below which the join's tables need no outcome."""
    prediction_offset: Count
    """No prediction from `pending_from` on lies below this offset."""
    outcome_offset: Count
    """No outcome from `outcomes_from` on lies below this offset."""
    snapshot: SnapshotReference | None
    waiting: list[SavedLabel]
    counters: dict[str, int]
    previous: SnapshotReference | None = None
    """The snapshot before `snapshot`, in case that cannot be used; of the same settings."""
    earlier: list[SettingsEpoch] = []
    """The epochs of settings that have ended, oldest first."""
    published: Count | None = None
    """Outcomes that were shared with the other partitions; None while nothing is shared."""
    taken: dict[Annotated[int, msgspec.Meta(ge=0)], Count] = {}
    """By other partition, the offset in `shared` after the last of its shares that was learned."""
    windows: dict[Annotated[int, msgspec.Meta(ge=0)], Timestamp] | msgspec.UnsetType = msgspec.UNSET
    """By other partition, the earliest end of a window that its next share may have, with `sharing.align`.
    Else not written."""
    tables: dict[str, TableState] | msgspec.UnsetType = msgspec.UNSET
    """The live tables by name; not written where there are none."""
    libraries: Libraries | msgspec.UnsetType = msgspec.UNSET
    """Not written by versions that knew of none."""
    version: int = STATE_VERSION

    @property
    def snapshots(self) -> list[SnapshotReference]:
        """Both snapshots, as far as they are there, the later one first."""
        return [each for each in (self.snapshot, self.previous) if each is not None]

    def with_settings(self, settings: dict[str, str]) -> State:
        """Return the record with which an epoch of other settings begins; it has no snapshot."""
        ended = SettingsEpoch(self.settings, self.predictions, self.outcomes)
        return msgspec.structs.replace(
            self, settings=settings, snapshot=None, previous=None, earlier=[*self.earlier, ended]
        )


class OffsetIndex:
    """Offsets of some of a topic's sequences.

    Examples
    --------
    >>> index = OffsetIndex(start=5)
    >>> index.add(sequence=100, offset=130)
    >>> index.floor(99), index.floor(100), index.floor(250)
    (5, 130, 130)
    """

    def __init__(self, start: int) -> None:
        self._sequences = [0]
        self._offsets = [start]

    def add(self, sequence: int, offset: int) -> None:
        """Note the offset of a sequence; sequences ascend from call to call."""
        if sequence > self._sequences[-1]:
            self._sequences.append(sequence)
            self._offsets.append(offset)

    def floor(self, sequence: int) -> int:
        """Return an offset below which neither this sequence nor any later one is."""
        return self._offsets[bisect_right(self._sequences, sequence) - 1]

    def forget(self, sequence: int) -> None:
        """Drop what is only needed for smaller sequences than this."""
        keep = bisect_right(self._sequences, sequence) - 1
        del self._sequences[:keep], self._offsets[:keep]


def counters(*, corrections: bool = False, tables: bool = False) -> Counter[str]:
    """Return all counters at zero, with those of corrections and of live tables where there are such."""
    names = (*COUNTERS, *((CORRECTED,) if corrections else ()), *(TABLE_COUNTERS if tables else ()))
    return Counter(dict.fromkeys(names, 0))
