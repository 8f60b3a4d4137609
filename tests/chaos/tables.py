"""Live tables of the world: their records, with unusable ones among them, and the rows that these come to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum, auto
from functools import cached_property
from importlib.resources import files
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.kafka.partitioner import partition
from pipeline.records.fields import Id

Integers = NDArray[np.int64]

MINUTE: Final = 60_000
FAR_FUTURE: Final = 4_102_444_800_000
AT_ONCE: Final = -1
"""When a record holds that cannot be used, or whose time no clock has reached."""
LENGTH: Final = 4.5
"""What counts as the length of a clip of which none is known."""


class TableKind(Enum):
    """What a record is; a dead letter names it in lower case."""

    ROW = auto()
    TOMBSTONE = auto()
    UNDECODABLE = auto()
    INVALID = auto()
    WRONG_KEY = auto()
    AHEAD = auto()
    """A row from a time on that no clock has reached: it holds at once."""
    STRANGER = auto()
    """A row of an id that no event has."""


CHANCES: Final = {
    TableKind.ROW: 0.71,
    TableKind.TOMBSTONE: 0.12,
    TableKind.UNDECODABLE: 0.03,
    TableKind.INVALID: 0.03,
    TableKind.WRONG_KEY: 0.03,
    TableKind.AHEAD: 0.03,
    TableKind.STRANGER: 0.05,
}
"""Shares of the records."""
UNUSABLE: Final = (TableKind.UNDECODABLE, TableKind.INVALID, TableKind.WRONG_KEY)


class TableRecord(NamedTuple):
    """A record to produce."""

    table: str
    kind: TableKind
    key: bytes
    value: bytes | None
    timestamp: int
    """When it is sent, and the time that Kafka has of it."""
    since: int
    """From when on it holds."""
    row: tuple[float, ...]
    """Its features, if it is a row."""


class Table(NamedTuple):
    """A table and all of its records, in the order in which they are sent."""

    name: str
    entity: int
    """The number of the entity whose id is the key."""
    divided: bool
    """Whether its topic has as many partitions as the inputs, or only one."""
    max_rows: int
    unknown: tuple[float, ...]
    """The features of an entity without a row."""
    records: list[TableRecord]

    def of_partition(self, number: int, partitions: int) -> list[TableRecord]:
        """Return the records that a partition of the inputs reads, in the order of their offsets."""
        if not self.divided:
            return self.records
        return [each for each in self.records if partition(each.key, partitions) == number]


def invented_tables(seed: int, users: Integers, videos: Integers, first: int, last: int) -> tuple[Table, ...]:
    """Return a table of videos in one partition, and one of users in as many as the inputs have.

    Parameters
    ----------
    seed
        Of everything random.
    users, videos
        The ids of the events.
    first, last
        Between these times events happen, in milliseconds since 1970.
    """
    chance = np.random.default_rng([seed, 3])
    everything, everybody = np.unique(videos), np.unique(users)
    clips = [_clip(chance, *given) for given in _draw(chance, everything, 3 * len(everything), first, last)]
    viewers = [_viewer(chance, *given) for given in _draw(chance, everybody, 2 * len(everybody), first, last)]
    known = len({each.key for each in clips})
    return (
        Table("clips", 1, False, max(1, 3 * known // 4), (0.0, LENGTH, 1.0), clips),
        Table("viewers", 0, True, 1_000_000, (0.0, 0.0), viewers),
    )


def _draw(
    chance: np.random.Generator, ids: Integers, count: int, first: int, last: int
) -> list[tuple[TableKind, int, int]]:
    """Return kind, id and time of each record; the first ids have a row before all events."""
    before = [(TableKind.ROW, number, first - MINUTE) for number in ids[: len(ids) // 3].tolist()]
    kinds = [list(CHANCES)[n] for n in chance.choice(len(CHANCES), count, p=list(CHANCES.values()))]
    times = np.sort(chance.integers(first, last, count)).tolist()
    return before + list(zip(kinds, chance.choice(ids, count).tolist(), times, strict=True))


def _clip(chance: np.random.Generator, kind: TableKind, number: int, sent: int) -> TableRecord:
    """A record that names its id, and from when on it holds: at once, since before, or a little later."""
    key, since = b"%d" % number, sent + int(chance.choice([0, 0, 0, -60, -1, 2]) * MINUTE)
    length = LENGTH if chance.random() < 0.1 else round(float(chance.exponential(9.0)), 3)
    fresh = bool(chance.random() < 0.5)
    row: dict[str, Any] = {"id": number, "since": since, "fresh": fresh}
    if length != LENGTH:
        row["length"] = length
    match kind:
        case TableKind.TOMBSTONE:
            return TableRecord("clips", kind, key, None, sent, sent, ())
        case TableKind.UNDECODABLE:
            return _unusable("clips", kind, key, json.dumps(row).encode()[:-7], sent)
        case TableKind.INVALID:
            return _unusable("clips", kind, key, json.dumps(row | {"fresh": "very"}).encode(), sent)
        case TableKind.WRONG_KEY:
            return _unusable("clips", kind, key, json.dumps(row | {"id": number + 1}).encode(), sent)
        case TableKind.AHEAD:
            row["since"], since = FAR_FUTURE, AT_ONCE
        case TableKind.STRANGER:
            row["id"], key = f"nobody-{number}", b"nobody-%d" % number
    value = json.dumps(row).encode()
    return TableRecord("clips", kind, key, value, sent, since, (1.0, length, float(fresh)))


def _viewer(chance: np.random.Generator, kind: TableKind, number: int, sent: int) -> TableRecord:
    """A record that holds from the time on that Kafka has of it, and names no id."""
    key, paying = b"%d" % number, bool(chance.random() < 0.3)
    value = json.dumps({"paying": paying}).encode()
    match kind:
        case TableKind.TOMBSTONE:
            return TableRecord("viewers", kind, key, None, sent, sent, ())
        case TableKind.UNDECODABLE:
            return _unusable("viewers", kind, key, value[:-1], sent)
        case TableKind.INVALID:
            return _unusable("viewers", kind, key, b'{"paying":1}', sent)
        case TableKind.WRONG_KEY:
            return _unusable("viewers", kind, b"\xff" + key, value, sent)
        case TableKind.STRANGER:
            key = b"nobody-%d" % number
    return TableRecord("viewers", kind, key, value, sent, sent, (1.0, float(paying)))


def _unusable(table: str, kind: TableKind, key: bytes, value: bytes, sent: int) -> TableRecord:
    return TableRecord(table, kind, key, value, sent, AT_ONCE, ())


def definition(tables: Sequence[Table]) -> str:
    """Return the definition of a stream: KuaiRec's with these tables, as TOML."""
    text = files("pipeline.config").joinpath("streams/kuairec.toml").read_text("utf-8")
    text = text.replace('name = "kuairec"', 'name = "plays"')
    clips, _ = tables
    return f"""{text}
[tables.clips]
topic = "clips"
entity = "video_id"
id = "/id"
time = "/since"
max_rows = {clips.max_rows}

[tables.clips.features]
length = {{ kind = "number", field = "/length", missing = {LENGTH} }}
fresh = {{ kind = "boolean", field = "/fresh", missing = true }}

[tables.viewers]
topic = "viewers"
entity = "user_id"

[tables.viewers.features]
paying = {{ kind = "boolean", field = "/paying" }}
"""


class TableFold:
    """The rows of a table as far as a partition has applied its records.

    Parameters
    ----------
    table
        The table.
    records
        Those that the partition reads, in the order of their offsets.

    Attributes
    ----------
    end
        Records applied.
    faults
        Of each record that was applied and cannot be used, why, by offset.
    """

    def __init__(self, table: Table, records: Sequence[TableRecord]) -> None:
        self.table = table
        self.records = records
        self.end = 0
        self.faults: dict[int, str] = {}
        self._rows: dict[bytes, tuple[float, ...]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def apply_until(self, end: int) -> None:
        """Apply the records below an offset."""
        for offset in range(self.end, end):
            self._apply(offset, self.records[offset])
        self.end = max(self.end, end)

    def _apply(self, offset: int, record: TableRecord) -> None:
        if record.kind in UNUSABLE:
            self.faults[offset] = record.kind.name.lower()
        elif record.value is None:
            self._rows.pop(record.key, None)
        elif record.key not in self._rows and len(self._rows) >= self.table.max_rows:
            self.faults[offset] = "table_full"
        else:
            self._rows[record.key] = record.row

    def row(self, ids: Sequence[Id]) -> tuple[float, ...]:
        """Return the features of an event with these ids."""
        return self._rows.get(str(ids[self.table.entity]).encode(), self.table.unknown)

    def end_at(self, time: int) -> int:
        """Return the offset of the first record that does not hold yet at a time, with those behind it."""
        return int(np.searchsorted(self._holding, time, side="right"))

    @cached_property
    def _holding(self) -> Integers:
        """When each record and all before it hold."""
        return np.array(list(accumulate((each.since for each in self.records), max)), dtype=np.int64)
