"""What goes in: interactions and labels with poison among them, and what each message has to come to.

Everything follows from the seed. Nothing of the pipeline is used but the partitioner, which is Kafka's.
"""

from __future__ import annotations

import heapq
import json
import time
import tomllib
from collections.abc import Callable, Iterator
from enum import Enum, auto
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipeline.config.stream import KUAIREC, Stream
from pipeline.kafka.partitioner import partition
from tests.chaos.tables import Table, TableRecord, definition, invented_tables

Integers = NDArray[np.int64]

MINUTE = 60_000
SPEED = 60
"""Stream time passes so much faster than time, so that a stretch of silence is short beside the windows."""
WINDOW = 120 * MINUTE
EARLY = 60 * MINUTE
SILENCE = 4 * WINDOW
"""Stream time between the last event and those that close all windows."""
SHARE = 0.005
"""Of the events, poison of each kind."""
CORRECTIONS = 5
"""Times this share of the events whose labels are corrected, where labels are."""
STRANGER = 1_000_000_000
"""Added to an id, it is one that nobody knows."""
WRONG_KEY = b"somebody"
FAR_FUTURE = 4_102_444_800_000

NO_LABEL = -1
MOST_ITEMS = 3
"""Videos of a slate, at most."""
WEIGHTS = (1.0, 0.5, 3.0)
TOGETHER = {
    "interactions": f"""items = "/items"
item_fields = ["video_id", "video_duration"]
max_items = {MOST_ITEMS}""",
    "labels": 'weight = "/weight"',
}
"""What the definition of a stream has beside live tables, where all is tried together."""


class Kind(Enum):
    """What a message is; a dead letter names it in lower case."""

    GOOD = auto()
    DUPLICATE = auto()
    UNDECODABLE = auto()
    INVALID = auto()
    WRONG_KEY = auto()
    FUTURE = auto()
    ORPHAN = auto()
    LATE = auto()
    MISMATCHED = auto()
    CORRECTION = auto()

    @property
    def fault(self) -> str | None:
        """The fault that its dead letter names; None if it is none."""
        return None if self in (Kind.GOOD, Kind.DUPLICATE, Kind.CORRECTION) else self.name.lower()


def as_json(is_label: bool, kind: Kind, record: dict[str, Any]) -> bytes:
    """Return a message's value in JSON."""
    return json.dumps(record).encode()


class Input(NamedTuple):
    """A message to produce."""

    is_label: bool
    kind: Kind
    event: int
    key: bytes
    value: bytes
    timestamp: int


def stream_span(minutes: float) -> int:
    """Return the stream time that passes in some minutes, in milliseconds."""
    return int(minutes * MINUTE * SPEED)


def recent_begin(minutes: float) -> int:
    """Return when a world has to begin that ends now, in milliseconds since 1970.

    Brokers forget an idempotent producer when its last record's timestamp is as old as
    ``producer.id.expiration.ms``. One that restarts then appends what is sent once more a second time.
    """
    return round(time.time() * 1000) - stream_span(minutes) - SILENCE - WINDOW


class World:
    """Users who watch videos for a while; the last event of each partition closes all windows.

    Parameters
    ----------
    seed
        Of everything random.
    events
        Interactions that are valid, without the closing ones.
    partitions
        Of the inputs.
    minutes
        How long it is to take.
    begin
        The time before all events, in milliseconds since 1970.
    corrections
        Whether labels are corrected; late labels are corrections then.
    tables
        Whether there are live tables.
    together
        Whether interactions are slates and labels have weights, beside live tables.
    write
        Writes a message: whether it is a label, what it is, and its fields.

    Attributes
    ----------
    users, videos, times
        Who, what and when of each event, in the order of time, shape (events + partitions,).
    ratios
        How much was watched.
    label_times
        When the event's label is known, or `NO_LABEL` if it never is in time.
    tables
        The live tables with their records.
    definition
        The definition of the stream, as TOML; None for KuaiRec's.
    stream
        The same, read.
    corrected
        By event, when its label is corrected and the ratio that it says then.
    """

    def __init__(
        self,
        seed: int,
        events: int,
        partitions: int,
        minutes: float,
        begin: int = 0,
        *,
        corrections: bool = False,
        tables: bool = False,
        together: bool = False,
        write: Callable[[bool, Kind, dict[str, Any]], bytes] = as_json,
    ) -> None:
        self._write, self._together = write, together
        self.events = events
        self.partitions = partitions
        chance = np.random.default_rng([seed, 1])
        span = stream_span(minutes)
        final = _one_user_of_each(partitions)
        everybody, everything = max(50, events // 100), max(100, events // 50)
        users = (everybody * chance.random(events) ** 2).astype(np.int64)
        videos = (everything * chance.random(events) ** 2).astype(np.int64)
        pull = chance.normal(size=everybody)[users] + chance.normal(size=everything)[videos]
        self.users = np.append(users, final)
        self.videos = np.append(videos, np.zeros(partitions, dtype=np.int64))
        self.times = begin + np.append(
            np.sort(chance.integers(0, span, events)), np.full(partitions, span + SILENCE)
        )
        ratios = np.exp(0.6 * pull + 0.5 * chance.normal(size=events) - 0.3)
        self.ratios = np.append(np.round(ratios, 3), np.ones(partitions))
        delays = chance.integers(1_000, 10 * MINUTE, events + partitions)
        self.label_times = self.times + delays
        self.corrected: dict[int, tuple[int, float]] = {}
        self._lay_out(chance, corrections)
        self.tables: tuple[Table, ...] = ()
        self.definition: str | None = None
        self.stream = KUAIREC
        if tables or together:
            self.tables = invented_tables(seed, self.users, self.videos, begin, begin + span)
            self.definition = definition(self.tables)
            if together:
                for section, fields in TOGETHER.items():
                    self.definition = self.definition.replace(f"[{section}]\n", f"[{section}]\n{fields}\n")
            self.stream = Stream.model_validate(tomllib.loads(self.definition))

    def _lay_out(self, chance: np.random.Generator, corrections: bool) -> None:
        """Say which message is sent when."""
        every = np.arange(len(self.times))
        rows: list[tuple[Integers, Integers, bool, Kind]] = [(every, self.times, False, Kind.GOOD)]
        some = chance.permutation(self.events)
        size = max(1, int(SHARE * self.events))

        def sample() -> Integers:
            nonlocal some
            chosen, some = np.sort(some[:size]), some[size:]
            return chosen

        unlabelled, late, mismatched = sample(), sample(), sample()
        after_all, kind = self.times[late] + 3 * WINDOW // 2, Kind.CORRECTION if corrections else Kind.LATE
        rows.append((late, after_all, True, kind))
        rows.append((mismatched, self.label_times[mismatched], True, Kind.MISMATCHED))
        self.label_times[np.concatenate([unlabelled, late, mismatched])] = NO_LABEL
        labelled = every[self.label_times != NO_LABEL]
        rows.append((labelled, self.label_times[labelled], True, Kind.GOOD))
        for is_label in (False, True):
            for kind in (Kind.DUPLICATE, Kind.UNDECODABLE, Kind.INVALID, Kind.WRONG_KEY, Kind.FUTURE):
                chosen = sample()
                chosen = chosen[self.label_times[chosen] != NO_LABEL]
                after = self.label_times if is_label else self.times
                rows.append((chosen, after[chosen] + chance.integers(0, MINUTE, len(chosen)), is_label, kind))
        if corrections:
            self._correct(late, after_all, self.ratios[late])
            for _ in range(CORRECTIONS):
                chosen = sample()
                chosen = chosen[self.label_times[chosen] != NO_LABEL]
                at = self.label_times[chosen] + chance.integers(MINUTE, WINDOW // 2, len(chosen))
                rows.append((chosen, at, True, Kind.CORRECTION))
                ratios = self.ratios[chosen]
                self._correct(chosen, at, np.where(ratios > 0.75, 0.25 * ratios, ratios + 0.9).round(3))
        orphans = sample()
        rows.append((orphans, self.times[orphans], True, Kind.ORPHAN))
        events = np.concatenate([row[0] for row in rows])
        sent = np.concatenate([row[1] for row in rows])
        which = np.repeat(np.arange(len(rows)), [len(row[0]) for row in rows])
        order = np.lexsort((which, events, sent))
        self._rows = [(is_label, kind) for _, _, is_label, kind in rows]
        self._sent, self._which, self._events = sent[order], which[order], events[order]
        strayed = np.array([kind is Kind.WRONG_KEY for *_, kind in rows])[self._which]
        homes = {user: partition(b"%d" % user, self.partitions) for user in set(self.users.tolist())}
        home = np.array([homes[user] for user in self.users.tolist()])[self._events]
        self._partition_of = np.where(strayed, partition(WRONG_KEY, self.partitions), home)

    def _correct(self, events: Integers, times: Integers, ratios: NDArray[Any]) -> None:
        for event, at, ratio in zip(events.tolist(), times.tolist(), ratios.tolist(), strict=True):
            self.corrected[event] = at, ratio

    def inputs(self, only: int | None = None) -> Iterator[Input]:
        """All messages in the order in which they are sent, or those of one partition."""
        wanted = slice(None) if only is None else self._partition_of == only
        columns = (self._sent, self._which, self._events)
        for sent, which, event in zip(*(column[wanted].tolist() for column in columns), strict=True):
            is_label, kind = self._rows[which]
            key = WRONG_KEY if kind is Kind.WRONG_KEY else b"%d" % self.users[event]
            yield Input(is_label, kind, event, key, self._value(event, is_label, kind, sent), sent)

    def sent(self, *, final: bool) -> Iterator[Input | TableRecord]:
        """What closes the windows, or all that comes before it, with the tables' records, in its order."""
        inputs = (given for given in self.inputs() if self.is_final(given) == final)
        records = [] if final else [table.records for table in self.tables]
        return heapq.merge(*records, inputs, key=lambda given: given.timestamp)

    def positions(self, *, final: bool) -> dict[tuple[bool, int], int]:
        """Messages by whether they are labels, and partition; with the closing events or without."""
        labels = np.array([is_label for is_label, _ in self._rows])[self._which]
        counted = final | (self._events < self.events)
        return {
            (is_label, number): int(np.sum(counted & (labels == is_label) & (self._partition_of == number)))
            for is_label in (False, True)
            for number in range(self.partitions)
        }

    @property
    def size(self) -> int:
        """Messages, all told."""
        return len(self._sent) + sum(len(table.records) for table in self.tables)

    def is_final(self, given: Input) -> bool:
        """Whether it belongs to an event that closes the windows of its partition."""
        return given.event >= self.events

    def _value(self, event: int, is_label: bool, kind: Kind, sent: int) -> bytes:
        record: dict[str, Any] = {
            "event_id": event,
            "user_id": int(self.users[event]),
            "video_id": int(self.videos[event]),
            "timestamp": int(self.times[event]),
        }
        if is_label:
            ratio = float(self.ratios[event])
            known = int(self.label_times[event]) if kind in (Kind.GOOD, Kind.DUPLICATE) else sent
            if kind is Kind.CORRECTION:
                known, ratio = self.corrected[event]
            record |= {"timestamp": known, "play_duration": ratio * 10_000.0, "watch_ratio": ratio}
        else:
            record["video_duration"] = 10_000.0
        match kind:
            case Kind.INVALID:
                record["timestamp"] = "yesterday"
            case Kind.FUTURE:
                record["timestamp"] = FAR_FUTURE
            case Kind.ORPHAN:
                record["event_id"] += STRANGER
            case Kind.MISMATCHED:
                record["video_id"] += STRANGER
        if self._together and is_label:
            record["weight"] = WEIGHTS[event % len(WEIGHTS)]
        elif self._together:
            length, first = record.pop("video_duration"), record.pop("video_id")
            shown = range(first, first + 1 + event % MOST_ITEMS)
            record["items"] = [{"video_id": video, "video_duration": length} for video in shown]
        value = self._write(is_label, kind, record)
        return value[:-9] if kind is Kind.UNDECODABLE else value


def _one_user_of_each(partitions: int) -> list[int]:
    """A user for each partition who does nothing else."""
    found: dict[int, int] = {}
    for user in count(STRANGER):
        found.setdefault(partition(b"%d" % user, partitions), user)
        if len(found) == partitions:
            break
    return [found[number] for number in range(partitions)]
