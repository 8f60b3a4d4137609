"""What one partition's inputs have to come to, known without the pipeline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any, NamedTuple

from river import stream

from tests.chaos.tables import TableFold
from tests.chaos.world import NO_LABEL, WINDOW, Input, Kind, World


class DeadLetter(NamedTuple):
    """A dead letter."""

    fault: str
    key: bytes | None
    value: bytes | None


class Step(NamedTuple):
    """An event is predicted, or it is learned."""

    event: int
    learned: bool


class Expected:
    """The right answer for a partition.

    Parameters
    ----------
    world
        Where the inputs come from.
    partition
        Which.

    Attributes
    ----------
    predicted_events
        The events of the valid interactions, in the order of the input.
    dead_letters
        By source (`interactions`, `labels` or a table) and offset in it.
    tables
        The live tables, of which nothing is applied yet.
    rows
        Rows of each table when all of its records are applied, by name.
    counters
        Those of the state record, without `early`, which depends on when things arrive.
    """

    def __init__(self, world: World, partition: int) -> None:
        self.world = world
        self.predicted_events: list[int] = []
        self.dead_letters: dict[tuple[str, int], DeadLetter] = {}
        self.counters: Counter[str] = Counter()
        for given in world.inputs(partition):
            source = "labels" if given.is_label else "interactions"
            self._expect(given, source, self.counters[source])
            self.counters[source] += 1
        self.tables = self._tables(partition)
        self.rows: dict[str, int] = {}
        for table in self._tables(partition):
            self._apply_all(table, reports=table.table.divided or partition == 0)

    def _expect(self, given: Input, source: str, offset: int) -> None:
        if fault := given.kind.fault:
            self.dead_letters[source, offset] = DeadLetter(fault, given.key, given.value)
            self.counters[fault] += 1
        elif given.kind is Kind.DUPLICATE:
            self.counters["duplicate_labels" if given.is_label else "duplicate_interactions"] += 1
        elif given.kind is Kind.CORRECTION:
            self.counters["corrected"] += 1
        elif given.is_label:
            self.counters["labelled"] += 1
        else:
            self.predicted_events.append(given.event)
            self.counters["predictions"] += 1
            self.counters["expired"] += self.world.label_times[given.event] == NO_LABEL

    def _tables(self, partition: int) -> list[TableFold]:
        return [
            TableFold(table, table.of_partition(partition, self.world.partitions))
            for table in self.world.tables
        ]

    def _apply_all(self, table: TableFold, *, reports: bool) -> None:
        """Note what becomes of a table's records; where all partitions read them, the first one reports."""
        table.apply_until(len(table.records))
        self.rows[table.table.name] = len(table)
        for offset, fault in table.faults.items() if reports else ():
            record = table.records[offset]
            self.dead_letters[table.table.name, offset] = DeadLetter(fault, record.key, record.value)
            self.counters[fault] += 1

    def replayed(self) -> Iterator[Step]:
        """The order in which a log that is there is worked through, by River's `simulate_qa`.

        An event without a label is learned when the next message after its window comes: after all that
        happened when the window ended, before all that happened a millisecond later.
        """
        plays: Iterator[tuple[dict[Hashable, Any], float]] = (
            ({"at": int(self.world.times[event]), "wait": self._wait(event)}, 0.0)
            for event in self.predicted_events
        )
        for number, _, answer in stream.simulate_qa(plays, moment="at", delay="wait", copy=False):
            yield Step(self.predicted_events[number], answer is not None)

    def _wait(self, event: int) -> float:
        known = int(self.world.label_times[event])
        return WINDOW + 0.5 if known == NO_LABEL else float(known - int(self.world.times[event]))
