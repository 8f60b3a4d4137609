"""What is in the tables of a join."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.join.event_rows import NO_ROW
from pipeline.join.records import Pending
from pipeline.join.tables import Join
from pipeline.records.fields import Id


def pending_of(join: Join) -> list[Pending]:
    """Return the predictions that wait in memory, in their order."""
    return [*map(join.pending_at, join.pending.live().tolist())]


def closed_of(join: Join) -> list[tuple[int, int, bytes]]:
    """Return number, deadline and digest of the closed events, in their order."""
    closed, rows = join.closed, join.closed.live()
    digests = [each.tobytes() for each in closed.digests[rows]]
    return list(zip(closed.numbers[rows].tolist(), closed.deadlines[rows].tolist(), digests, strict=True))


def closed_among(join: Join, event_ids: Iterable[Id]) -> dict[Id, int]:
    """Return the numbers of those events that are closed, in the order of the table."""
    ids = [*event_ids]
    rows = join.closed.find(join.digests(ids)).tolist()
    found = sorted((row, event_id) for row, event_id in zip(rows, ids, strict=True) if row != NO_ROW)
    return {event_id: int(join.closed.numbers[row]) for row, event_id in found}
