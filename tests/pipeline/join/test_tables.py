"""The tables of the join: what is due, what is remembered, and what a restart has to read."""

from __future__ import annotations

import numpy as np

from pipeline.join.event_rows import NO_ROW
from pipeline.join.records import Pending
from pipeline.join.tables import Join
from pipeline.records.fields import Id
from tests.support.builders import join_settings
from tests.support.join_tables import closed_among, pending_of

WINDOW = 100


def new_join(max_pending: int = 100, max_closed: int = 100) -> Join:
    settings = join_settings(window=f"{WINDOW}ms", max_pending=max_pending, max_closed=max_closed)
    return Join(settings)


def prediction(event_id: Id, sequence: int, at: int, version: int = 0) -> Pending:
    return Pending(event_id, (1, 1), at, version, sequence)


def remember(join: Join, event_id: Id, sequence: int, at: int, label_at: int | None) -> None:
    """Remember an event as closed."""
    known_at = np.array([-1 if label_at is None else label_at])
    until = join.remembered_until(np.array([at + WINDOW]), known_at, np.zeros(1, dtype=np.bool_))
    join.remember(join.digester.digests([event_id]), until, [sequence], known_at < 0)


def due(join: Join, time: int, more: int = 0, most: int = 100) -> list[Id]:
    """Return the events that may be due, in their order."""
    rows = join.first_due(time, more, most).rows
    return [event_id for event_id, *_ in join.pending.ids_of(rows)]


def close(join: Join, event_id: Id) -> None:
    """Let a prediction wait no longer."""
    join.pending.remove(join.pending.find(join.digester.digests([event_id])))


def test_predictions_are_due_after_their_window_by_deadline_and_then_in_their_order() -> None:
    join = new_join()
    join.open_all(
        [prediction(f"at {at}, {sequence}", sequence, at) for sequence, at in enumerate([30, 10, 30, 20])]
    )
    assert due(join, 110) == []
    assert due(join, 111) == ["at 10, 1"]
    assert due(join, 1_000) == ["at 10, 1", "at 20, 3", "at 30, 0", "at 30, 2"]
    assert due(join, 1_000, most=2) == ["at 10, 1", "at 20, 3"]
    close(join, "at 10, 1")
    assert due(join, 121) == ["at 20, 3"]


def test_where_there_is_no_room_for_more_the_next_to_expire_are_due() -> None:
    join = new_join(max_pending=2)
    join.open_all([prediction(f"at {at}", sequence, at) for sequence, at in enumerate([30, 10])])
    assert due(join, 0) == []
    assert due(join, 0, more=1) == ["at 10"]
    assert due(join, 0, more=5) == ["at 10", "at 30"]
    assert [each.event_id for each in pending_of(join)] == ["at 30", "at 10"]


def test_a_closed_event_is_remembered_for_one_more_window() -> None:
    join = new_join()
    remember(join, "labelled", 0, at=0, label_at=40)
    remember(join, "expired", 1, at=0, label_at=None)
    join.forget(140)
    assert closed_among(join, ["labelled", "expired"]) == {"labelled": 0, "expired": 3}
    join.forget(141)
    assert [*closed_among(join, ["labelled", "expired"])] == ["expired"], "it was closed at 100"
    join.forget(201)
    assert not join.closed


def test_an_event_closed_twice_is_remembered_from_the_second_time() -> None:
    join = new_join()
    remember(join, 1, 0, at=0, label_at=10)
    remember(join, 2, 1, at=0, label_at=20)
    remember(join, 1, 2, at=400, label_at=450)
    assert [*closed_among(join, [1, 2]).items()] == [(2, 2 * 1), (1, 2 * 2)]
    join.forget(550)
    assert [*closed_among(join, [1, 2])] == [1]
    join.forget(551)
    assert not join.closed


def test_of_an_event_that_comes_twice_at_once_the_later_outcome_counts() -> None:
    join = new_join()
    digests = join.digester.digests(["a", "b", "a"])
    join.remember(digests, np.array([500, 500, 600]), [3, 4, 5], np.zeros(3, dtype=np.bool_))
    assert closed_among(join, ["a", "b"]) == {"b": 2 * 4, "a": 2 * 5}


def test_where_too_many_are_closed_those_are_forgotten_whose_time_is_over_first() -> None:
    join = new_join(max_closed=2)
    for sequence, label_at in enumerate([30, 10, 20]):
        remember(join, f"at {label_at}", sequence, at=0, label_at=label_at)
    ids = [f"at {label_at}" for label_at in (10, 15, 20, 30)]
    assert [*closed_among(join, ids)] == ["at 30", "at 20"]
    remember(join, "at 15", 3, at=0, label_at=15)
    assert [*closed_among(join, ids)] == ["at 30", "at 20"], "nor is it remembered if its own is the first"


def test_what_is_needed_starts_at_the_oldest_pending_prediction_and_what_is_remembered() -> None:
    join = new_join()
    assert join.lowest_needed(7, 5) == (7, 5)
    join.open_all([prediction(1, 7, at=0, version=5), prediction(2, 8, at=0, version=6)])
    assert join.lowest_needed(9, 6) == (7, 5)
    close(join, 1)
    remember(join, 1, 6, at=0, label_at=1)
    assert join.lowest_needed(9, 7) == (8, 6)
    close(join, 2)
    remember(join, 2, 7, at=0, label_at=500)
    assert join.lowest_needed(9, 8) == (9, 6)
    join.forget(150)
    assert join.lowest_needed(9, 8) == (9, 7)
    assert join.pending.find(join.digester.digests([1, 2])).tolist() == [NO_ROW, NO_ROW]


def test_a_correction_does_not_shorten_how_long_its_event_is_remembered() -> None:
    join, due_at = new_join(), np.array([10 + WINDOW] * 4)
    labels = np.array([-1, 20, 20, 15 + WINDOW])
    until = join.remembered_until(due_at, labels, np.array([False, False, True, True]))
    assert (until - WINDOW).tolist() == [10 + WINDOW, 20, 10 + WINDOW, 15 + WINDOW]
