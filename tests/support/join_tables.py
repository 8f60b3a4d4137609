"""What is in the tables of a join."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pipeline.join.event_rows import NO_ROW
from pipeline.join.prediction_columns import UNDECIDED
from pipeline.join.records import Pending
from pipeline.join.tables import Join
from pipeline.records.fields import Id
from pipeline.records.texts import NO_TEXTS


def pending_of(join: Join) -> list[Pending]:
    """Return the predictions that wait in memory, in their order."""
    pending, rows = join.pending, join.pending.live()
    deadlines = pending.deadlines[rows]
    columns = pending.predictions(rows, pending.numbers[rows], NO_TEXTS, deadlines - join.window)
    scored = (
        np.column_stack([columns.scores, columns.features])
        if columns.features.size
        else np.empty((len(rows), 0))
    )
    return [
        Pending(
            event_id,
            tuple(ids),
            int(columns.timestamps[place]),
            int(columns.versions[place]),
            int(columns.numbers[place]),
            scored[place].tobytes(),
            None if columns.asked[place] == UNDECIDED else bool(columns.asked[place]),
            columns.challengers[place] if columns.challengers else None,
        )
        for place, (event_id, *ids) in enumerate(pending.ids_of(rows))
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
