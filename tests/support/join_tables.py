"""What is in the tables of a join."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.join.event_rows import NO_ROW
from pipeline.join.prediction_rows import UNDECIDED
from pipeline.join.records import Pending
from pipeline.join.tables import Join
from pipeline.records.fields import Id


def pending_of(join: Join) -> list[Pending]:
    """Return the predictions that wait in memory, in their order."""
    pending, rows = join.pending, join.pending.live()
    outputs = pending.outputs(rows)
    return [
        Pending(
            event_id,
            tuple(ids),
            int(pending.deadlines[row]) - join.window,
            int(pending.integers("versions")[row]),
            int(pending.numbers[row]),
            outputs.scored[place].tobytes(),
            None if outputs.asked[place] == UNDECIDED else bool(outputs.asked[place]),
            outputs.challengers[place],
        )
        for place, (row, (event_id, *ids)) in enumerate(zip(rows.tolist(), pending.ids_of(rows), strict=True))
    ]


def closed_of(join: Join) -> list[tuple[int, int, bytes]]:
    """Return number, deadline and digest of the closed events, in their order."""
    closed, rows = join.closed, join.closed.live()
    digests = [each.tobytes() for each in closed.digests[rows]]
    return list(zip(closed.numbers[rows].tolist(), closed.deadlines[rows].tolist(), digests, strict=True))


def closed_among(join: Join, event_ids: Iterable[Id]) -> dict[Id, int]:
    """Return the numbers of those events that are closed, in the order of the table."""
    ids = [*event_ids]
    rows = join.closed.find(join.digester.digests(ids)).tolist()
    found = sorted((row, event_id) for row, event_id in zip(rows, ids, strict=True) if row != NO_ROW)
    return {event_id: int(join.closed.numbers[row]) for row, event_id in found}
