"""The state record: what a restart needs to know beside the log itself.

One is written in every transaction, and its offset is the metadata of the committed input offsets.
The offsets in it are lower bounds: records of the same transaction have no offset yet when it is
written. Sequences identify the records that are read again but known already.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Final, TypeAlias

import msgspec

from pipeline.join.records import EarlyLabel
from pipeline.records.decoding import LABEL_DECODER, InputDecoder, decode_value
from pipeline.records.fields import Count, Timestamp, WrittenCount, always
from pipeline.records.inputs import Label, RawMessage
from pipeline.records.names import Fault
from pipeline.task.record_queue import Position

STATE_VERSION = 3
"""The version of what a transaction writes: this record, predictions, outcomes, label requests, shares and
dead letters. A snapshot has one of its own. Readers ignore fields that they do not know, so a field that may
be left out needs no other version."""

TABLE_COUNTERS = (Fault.TABLE_FULL.value,)
"""Further counters, of streams with live tables."""

COUNTER_MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "interactions": "Interactions read.",
        "labels": "Labels read.",
        "predictions": "Predictions made.",
        "labelled": "Predictions whose label came in time.",
        "expired": "Predictions that expired without a label.",
        "crowded_out": "Expired predictions that expired early, because too many waited.",
        "early": "Labels that came before their interaction.",
        Fault.ORPHAN.value: "Early labels whose interaction did not come in time, or that had no room.",
        Fault.LATE.value: "Labels that came after their prediction had expired.",
        Fault.MISMATCHED.value: "Labels that name another entity than their interaction.",
        "duplicate_interactions": "Interactions dropped as duplicates.",
        "duplicate_labels": "Labels dropped as duplicates.",
        Fault.UNDECODABLE.value: "Messages that cannot be decoded, such as what is no JSON object.",
        Fault.INVALID.value: "Messages with a field that is missing or not as it has to be.",
        Fault.WRONG_KEY.value: "Messages whose key is not the id that it has to be.",
        Fault.FUTURE.value: "Messages too far ahead of the clock or of those before them.",
        "asked": "Predictions whose label was asked for, of slates items; 0 where all labels are learned as "
        "they come.",
        "unasked": "Labels that were joined, but not asked for.",
    }
)
COUNTERS: Final = (*COUNTER_MEANINGS,)
"""The counters. Every message read is in `interactions` or `labels`, and in exactly one disposition; `early`
labels and `crowded_out` predictions have another one, too. Under a policy, `asked` counts the predictions
whose label was asked for, and `unasked` the labels that were joined though theirs was not."""

ITEMS = "items"
"""The counter of slates' items, which is there where interactions are slates."""
CORRECTED = "corrected"
"""The counter of labels that corrected an earlier one, which is there where they may."""
RARE_COUNTER_MEANINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        CORRECTED: "Labels that came later for a prediction which had an outcome already. Only with "
        "`join.corrections`.",
        ITEMS: "Items of slates that were predicted. Only where interactions are slates.",
        Fault.TABLE_FULL.value: "Records of live tables for which there was no room. Only where there are "
        "live tables.",
        Fault.PAST.value: "Messages too far behind those before them. Only from the first one on.",
    }
)
"""Those that are not always there."""


BY_PARTITION: Final = always(propertyNames={"pattern": "^[0-9]+$"})


class SnapshotReference(msgspec.Struct, frozen=True):
    """Where a snapshot is, and from where the outcomes after it are."""

    chunks: list[WrittenCount]
    """Offsets of its chunks in `checkpoints`, in order."""
    sha256: Annotated[str, always(pattern="^[0-9a-f]{64}$")]
    """SHA-256 of the whole snapshot, in hexadecimal digits."""
    slot: Annotated[int, always(enum=[0, 1])]
    """Which of the two alternating keys it was written under."""
    outcomes_learned: Count = msgspec.field(name="folded")
    """Number of outcomes that its model has learned."""
    outcome_offset: WrittenCount
    """No outcome from `folded` on lies below this offset."""


class SavedLabel(msgspec.Struct, frozen=True):
    """A label that waits for its interaction, as its message came."""

    topic: str
    """The topic of the message."""
    partition: WrittenCount
    """The message's partition in that topic."""
    offset: WrittenCount
    """The message's offset in that partition."""
    key: bytes | None
    """The message's key."""
    value: bytes
    """The message's value."""
    headers: list[tuple[str, bytes | None]]
    """The message's headers: pairs of name and value."""

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
    """Rows that the table has."""
    digest: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{32}$")]
    """Sum of the hashes of all rows, the same for the same rows."""


class SettingsEpoch(msgspec.Struct, frozen=True):
    """An epoch that has ended, in which the outputs depended on other settings."""

    settings: dict[str, str]
    """The settings of that time, by name."""
    predictions: Count
    """Predictions below this sequence were made under these settings, from the epoch before on."""
    outcomes: Count
    """Outcomes below this sequence were learned under these settings, from the epoch before on."""


LibraryVersions: TypeAlias = Annotated[
    dict[
        Annotated[str, msgspec.Meta(max_length=40)],
        Annotated[str, msgspec.Meta(max_length=200, pattern="^[ -~]*$")],
    ],
    msgspec.Meta(max_length=16),
]
"""Versions by name, as they are shown to users."""
MAX_LIBRARY_EPOCHS = 8
"""The epochs of libraries that a state record names, at most."""


class LibraryEpoch(msgspec.Struct, frozen=True):
    """Outputs that were computed with other libraries than those after them."""

    versions: LibraryVersions
    """Versions of the libraries by name; empty where they are not known."""
    predictions: Count
    """Predictions below this sequence were made with these libraries, from the epoch before on."""
    outcomes: Count
    """Outcomes below this sequence were learned with these libraries, from the epoch before on."""


class Libraries(msgspec.Struct, frozen=True):
    """The arithmetic of the outputs, and its compilers: the last bits of scores depend on them."""

    versions: LibraryVersions
    """The number of the arithmetic of the worker that wrote the record, and the versions of its compilers."""
    earlier: Annotated[list[LibraryEpoch], msgspec.Meta(max_length=MAX_LIBRARY_EPOCHS)] = []
    """The epochs of other libraries, oldest first."""


class State(msgspec.Struct, frozen=True):
    """A partition's state record."""

    partition: Count
    """The partition."""
    settings: dict[str, str]
    """The settings that the outputs depend on, by name: a restart under other settings is refused."""
    stream_time: Annotated[int, always(minimum=-1)]
    """Stream time: the largest timestamp merged, in milliseconds since 1970, UTC; -1 before the first."""
    interactions: Position
    """The committed position in the input of interactions."""
    labels: Position
    """The committed position in the input of labels."""
    predictions: Count
    """Predictions made: the sequence of the next one."""
    outcomes: Count
    """Outcomes learned: the sequence of the next one."""
    pending: Count
    """Predictions that wait for their label; of slates, the items that wait."""
    pending_from: Count
    """Sequence below which no prediction waits."""
    outcomes_from: Count
    """Sequence below which the join's tables need no outcome."""
    prediction_offset: Count
    """No prediction from `pending_from` on lies below this offset."""
    outcome_offset: Count
    """No outcome from `outcomes_from` on lies below this offset."""
    snapshot: SnapshotReference | None
    """The latest snapshot of the model; null before the first."""
    waiting: list[SavedLabel]
    """Early labels that wait for their interaction, in the order of their arrival."""
    counters: dict[str, int]
    """What became of all messages since the first."""
    previous: SnapshotReference | None = None
    """The snapshot before `snapshot`, in case that cannot be used; null if there is none of the same
    settings."""
    earlier: list[SettingsEpoch] = []
    """The epochs of settings that have ended, oldest first."""
    published: Count | None = None
    """Number of outcomes that were shared with the other partitions; null while nothing is shared."""
    taken: Annotated[dict[Count, Count], BY_PARTITION] = {}
    """By other partition, the offset in `shared` after the last of its shares that was learned."""
    windows: Annotated[dict[Count, Timestamp], BY_PARTITION] | msgspec.UnsetType = msgspec.UNSET
    """By other partition, the earliest end of a window that its next share may have. Only with
    `sharing.align`."""
    tables: dict[str, TableState] | msgspec.UnsetType = msgspec.UNSET
    """How far each live table was applied, by its name. Only where the stream has such tables."""
    libraries: Libraries | msgspec.UnsetType = msgspec.UNSET
    """The libraries that the outputs were computed with. Not written by versions that knew of none."""
    version: Annotated[int, always(const=STATE_VERSION)] = STATE_VERSION
    """Version of this format."""

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


def counters(*, corrections: bool = False, tables: bool = False, slates: bool = False) -> Counter[str]:
    """Return all counters at zero, with those of corrections, live tables and slates where there are such."""
    names = [*COUNTERS]
    names += [CORRECTED] if corrections else []
    names += TABLE_COUNTERS if tables else []
    names += [ITEMS] if slates else []
    return Counter(dict.fromkeys(names, 0))
