"""Derive the features that predictions took from live tables, and what became of the tables' records."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final, NamedTuple

from pipeline.features.feature_set import FeatureSet
from pipeline.features.live_tables import Rows
from pipeline.records.decoding import NO_TIMESTAMP, RejectedRecord
from pipeline.records.fields import Id
from pipeline.records.inputs import RawMessage
from pipeline.records.names import Fault
from pipeline.records.outputs import Prediction
from pipeline.task.state import TableState
from pipeline.tools.audit.dead_letters import DeadLetters
from pipeline.tools.audit.differences import AuditResult
from pipeline.tools.audit.topic_records import AuditInput, TableRecords

ROWS_CHECKED: Final = "rows of tables looked up again"
COMPACTED: Final = "rows of tables that compaction has taken away, which cannot be checked"
TABLES_COMPACTED: Final = "tables that compaction has changed, whose rows cannot be counted"


class _Version(NamedTuple):
    """Where the newest record of a key was found."""

    offset: int
    number: int
    """Records of the topic before it that were found, too."""


class TableReplay:
    """One table, read once, as far as each prediction has applied it.

    Parameters
    ----------
    rows
        Its rows, none yet.
    records
        The records of its topic.
    begin
        Place of the table's first feature.
    result
        Result to add differences to.
    dead_letters
        Dead letters of the partition, which are matched with the records that cannot be used; None to match
        none.
    """

    def __init__(
        self,
        rows: Rows,
        records: TableRecords,
        begin: int,
        result: AuditResult,
        dead_letters: DeadLetters | None = None,
    ) -> None:
        self.rows = rows
        self.begin = begin
        """Place of the table's first feature."""
        self.read = 0
        """Records found so far."""
        self.end = 0
        """The offset up to which they were applied."""
        self._dead_letters = dead_letters if records.reports else None
        self._result = result
        self._versions: dict[bytes, _Version] = {}
        self._messages: Iterator[RawMessage] = iter(records.messages)
        self._next = next(self._messages, None)

    def advance(self, end: int) -> None:
        """Apply the records below an offset."""
        while self._next is not None and self._next.offset < end:
            self._apply(self._next)
            self._next = next(self._messages, None)
        self.end = max(self.end, end)

    def _apply(self, message: RawMessage) -> None:
        record = self.rows.features.decode(message.key, message.value, NO_TIMESTAMP)
        rejected = record if isinstance(record, RejectedRecord) else self.rows.apply(record)
        if rejected is None and message.key is not None:
            self._versions[message.key] = _Version(message.offset, self.read)
        gap = message.offset != self.read
        self.read += 1
        if self._dead_letters is None:
            return
        right, found = rejected and rejected.fault, self._dead_letters.match(message)
        if right == found or (gap and Fault.TABLE_FULL in (right, found)):  # deleted rows leave room
            return
        self._result.add_difference(
            message.topic,
            message.offset,
            "no dead letter, since the record is valid" if right is None else f"a dead letter, {right}",
            "no dead letter" if found is None else f"a dead letter, {found}",
        )

    def has_gap(self, entity: Id) -> bool:
        """Return whether an offset is missing behind the newest record of an entity that was found."""
        offset, number = self._versions.get(str(entity).encode(), (-1, -1))
        return self.end - offset != self.read - number

    @property
    def complete(self) -> bool:
        """Whether no offset is missing."""
        return self.end == self.read


class LiveTableCheck:
    """Check of the live tables of a partition.

    What compaction has taken away is not in the topic any more. An offset that is missing between the newest
    record of a key that is left and the offset up to which a prediction had applied the table shows that
    there may have been a newer one. Such a lookup is counted, and compared no further.

    Parameters
    ----------
    audit_input
        Records of the partition.
    features
        The features of the stream.
    dead_letters
        Dead letters of the partition.
    result
        Result to add differences to.
    """

    def __init__(
        self, audit_input: AuditInput, features: FeatureSet, dead_letters: DeadLetters, result: AuditResult
    ) -> None:
        self._result = result
        self._topics = audit_input.topics
        self._states: dict[str, TableState] = audit_input.state.tables or {}
        self._state_offset = audit_input.state_offset
        self._tables: list[TableReplay] = []
        self._names = features.names
        begin = features.own.stop
        for each in features.tables:
            records = audit_input.tables[each.name]
            self._tables.append(TableReplay(Rows(each), records, begin, result, dead_letters))
            begin += len(each.names)

    def check(self, prediction: Prediction, offset: int) -> None:
        """Look the rows of the next prediction up again."""
        versions: dict[str, int] = getattr(prediction, "tables", {})
        names = [table.rows.features.name for table in self._tables]
        if [*versions] != names:
            self._add(self._topics.predictions, offset, f"offsets of the tables {names}", f"{versions}")
            return
        for table in self._tables:
            self._check_row(table, prediction, versions[table.rows.features.name], offset)

    def _check_row(self, table: TableReplay, prediction: Prediction, end: int, offset: int) -> None:
        features = table.rows.features
        limit = self._states[features.name].offset if features.name in self._states else 0
        if not table.end <= end <= limit:
            expected = f"an offset of the table {features.name} from {table.end} to {limit}"
            self._add(self._topics.predictions, offset, expected, str(end))
            return
        table.advance(end)
        entity = prediction.ids[features.entity]
        derived = array("d", table.rows.of(entity)).tolist()
        written = prediction.features[table.begin : table.begin + len(derived)]
        if derived != written and table.has_gap(entity):
            self._result.checked[COMPACTED] += 1
            return
        self._result.checked[ROWS_CHECKED] += 1
        if derived != written:
            place = next(n for n, pair in enumerate(zip(derived, written, strict=True)) if pair[0] != pair[1])
            name = self._names[table.begin + place]
            expected = f"feature {name} {derived[place]!r}, by the table's records below {end}"
            self._add(self._topics.predictions, offset, expected, f"feature {name} {written[place]!r}")

    def finish(self) -> None:
        """Read the rest of the tables, and compare their rows with the state record."""
        for table in self._tables:
            name = table.rows.features.name
            state = self._states.get(name)
            if state is None:
                self._add_state(f"the state of table {name}", "none")
                continue
            table.advance(state.offset)
            found = (state.rows, state.digest)
            right = (len(table.rows), table.rows.digest)
            if found != right and not table.complete:
                self._result.checked[TABLES_COMPACTED] += 1
                continue
            self._result.checked["tables compared with the state record"] += 1
            if found != right:
                self._add_state(f"{right[0]} rows of table {name}, {right[1]}", f"{found[0]}, {found[1]}")

    def _add_state(self, expected: str, found: str) -> None:
        self._add(self._topics.checkpoints, self._state_offset, expected, found)

    def _add(self, topic: str, offset: int, expected: str, found: str) -> None:
        self._result.add_difference(topic, offset, expected, found)
