from __future__ import annotations

from pipeline.join.records import EarlyLabel, Pending
from pipeline.join.tables import Join
from pipeline.records.fields import Id
from tests.support.builders import join_settings, label, source
from tests.support.join_tables import closed_among, pending_of

WINDOW, EARLY = 100, 30


def new_join(early_bytes: int = 10_000, max_pending: int = 100, max_closed: int = 100) -> Join:
    return Join(
        join_settings(
            window=f"{WINDOW}ms",
            early=f"{EARLY}ms",
            early_bytes=early_bytes,
            max_pending=max_pending,
            max_closed=max_closed,
        )
    )


def prediction(event_id: Id, sequence: int, at: int, version: int = 0) -> Pending:
    return Pending(event_id, (1, 1), at, version, sequence)


def remember(join: Join, event_id: Id, sequence: int, at: int, label_at: int) -> None:
    join.remember(event_id, at, label_at, sequence)


def early(event_id: Id, at: int, offset: int) -> EarlyLabel:
    about = label(event_id, at)
    return EarlyLabel(about, source("watch-labels", offset, about))


def close_expired(join: Join, time: int) -> list[Id]:
    closed: list[Id] = []
    for each in join.expired(time):
        join.close(each, None, len(closed))
        closed.append(each.event_id)
    return closed


def test_a_prediction_expires_after_its_window_and_not_at_its_end() -> None:
    join = new_join()
    join.open(prediction(1, 0, at=50))
    assert close_expired(join, 150) == []
    assert close_expired(join, 151) == [1]
    assert close_expired(join, 151) == []


def test_predictions_expire_by_deadline_and_then_in_their_order() -> None:
    join = new_join()
    for sequence, at in enumerate([30, 10, 30, 20]):
        join.open(prediction(f"at {at}, {sequence}", sequence, at))
    assert close_expired(join, 1_000) == ["at 10, 1", "at 20, 3", "at 30, 0", "at 30, 2"]


def test_a_closed_prediction_does_not_expire() -> None:
    join = new_join()
    predicted = prediction(1, 0, at=0)
    join.open(predicted)
    join.close(predicted, 5, 0)
    assert join.knows_any([1])
    assert close_expired(join, 1_000) == []


def test_a_closed_event_is_remembered_for_one_more_window() -> None:
    join = new_join()
    for number, label_at in enumerate([40, None]):
        predicted = prediction(number, number, at=0)
        join.open(predicted)
        join.close(predicted, label_at, number)
    join.forget(140)
    assert join.knows_any([0])
    join.forget(141)
    assert not join.knows_any([0])
    join.forget(200)
    assert join.knows_any([1]), "it was closed when its window ended, at 100"
    join.forget(201)
    assert not join.knows_any([1])


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


def test_where_too_many_wait_the_next_to_expire_goes_before_its_time() -> None:
    join = new_join(max_pending=2)
    for sequence, at in enumerate([30, 10, 20]):
        join.open(prediction(f"at {at}", sequence, at))
    assert close_expired(join, 0) == ["at 10"]
    assert [each.event_id for each in pending_of(join)] == ["at 30", "at 20"]
    assert join.closed_number("at 10") == 1, "it expired"


def test_where_too_many_are_closed_those_are_forgotten_whose_time_is_over_first() -> None:
    join = new_join(max_closed=2)
    for sequence, label_at in enumerate([30, 10, 20]):
        remember(join, f"at {label_at}", sequence, at=0, label_at=label_at)
    ids = [f"at {label_at}" for label_at in (10, 15, 20, 30)]
    assert [*closed_among(join, ids)] == ["at 30", "at 20"]
    remember(join, "at 15", 3, at=0, label_at=15)
    assert [*closed_among(join, ids)] == ["at 30", "at 20"], "nor is it remembered if its own is the first"


def test_an_early_label_waits_and_is_joined_once() -> None:
    join = new_join()
    join.add_early(early(1, at=0, offset=0))
    assert list(join.orphans(EARLY)) == []
    popped = join.pop_early(1)
    assert popped is not None
    assert popped.source.offset == 0
    assert join.pop_early(1) is None
    assert list(join.orphans(1_000)) == []


def test_early_labels_that_waited_too_long_go_oldest_first() -> None:
    join = new_join()
    for offset, at in enumerate([20, 0, 20]):
        join.add_early(early(offset, at, offset))
    assert [each.label.event_id for each in join.orphans(31)] == [1]
    assert [each.label.event_id for each in join.orphans(51)] == [0, 2]
    assert not join.early_labels


def test_an_event_that_is_early_again_has_a_timer_of_its_own() -> None:
    join = new_join()
    join.add_early(early(1, at=0, offset=0))
    join.pop_early(1)
    join.add_early(early(1, at=25, offset=1))
    assert list(join.orphans(31)) == []
    assert [each.source.offset for each in join.orphans(56)] == [1]


def test_the_oldest_early_labels_make_way_when_room_runs_out() -> None:
    size = len(source("watch-labels", 0, label(1, 10)).value or b"") + 1
    join = new_join(early_bytes=2 * size)
    join.add_early(early(1, at=12, offset=0))
    join.add_early(early(2, at=10, offset=1))
    assert list(join.orphans(0)) == []
    join.add_early(early(3, at=11, offset=2))
    assert [each.label.event_id for each in join.orphans(0)] == [2]
    assert [each.label.event_id for each in join.early_labels] == [1, 3]
    join.pop_early(1)
    join.add_early(early(4, at=13, offset=3))
    assert list(join.orphans(0)) == [], "what was taken gave its room back"


def test_without_room_no_label_waits() -> None:
    join = new_join(early_bytes=0)
    join.add_early(early(1, at=0, offset=0))
    assert len(list(join.orphans(0))) == 1


def test_headers_count_as_room() -> None:
    about = label(1, 0)
    message = source("watch-labels", 0, about)
    size = len(message.value or b"") + len(message.key or b"")
    join = new_join(early_bytes=size)
    join.add_early(EarlyLabel(about, message._replace(headers=[("a", None)])))
    assert len(list(join.orphans(0))) == 1


def test_what_is_needed_starts_at_the_oldest_pending_prediction_and_what_is_remembered() -> None:
    join = new_join()
    assert join.lowest_needed(7, 5) == (7, 5)
    first, second = prediction(1, 7, at=0, version=5), prediction(2, 8, at=0, version=6)
    join.open(first)
    join.open(second)
    assert join.lowest_needed(9, 6) == (7, 5)
    join.close(first, 1, 6)
    assert join.lowest_needed(9, 7) == (8, 6)
    join.close(second, 500, 7)
    assert join.lowest_needed(9, 8) == (9, 6)
    join.forget(150)
    assert join.lowest_needed(9, 8) == (9, 7)
