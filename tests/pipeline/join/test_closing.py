"""When predictions expire between messages. That all is as one by one, `test_planning` says."""

from __future__ import annotations

import numpy as np

from pipeline.join.closing import NONE, Closings, Waiting, close_in_order

NO_LABELS = np.empty(0, dtype=np.int64)


def closed(times: list[int], waiting: Waiting, max_steps: int = 100) -> Closings:
    """Go through interactions alone."""
    before = np.zeros(len(times), dtype=np.int64)
    return close_in_order(np.array(times), NO_LABELS, before, NO_LABELS, waiting, max_steps)


def test_a_prediction_is_in_time_at_its_deadline_and_expires_after_it() -> None:
    found = closed([20, 21, 22, 21], Waiting(2, np.array([20, 21]), True, window=50, most=9, stream_time=0))
    assert found.outcomes_before.tolist() == [0, 1, 2, 2]
    assert found.targets.tolist() == [4, 5]
    assert (found.messages, found.steps, found.crowded_out) == (4, 6, 0)


def test_what_has_no_room_expires_after_the_message_by_deadline() -> None:
    found = closed([5, 6, 7], Waiting(1, np.array([12]), True, window=10, most=1, stream_time=0))
    assert found.targets.tolist() == [3, 0, 1]
    assert found.outcomes_before.tolist() == [0, 1, 2]
    assert (found.crowded_out, found.steps) == (3, 3)


def test_messages_end_where_more_might_expire_than_is_known_or_wanted() -> None:
    waiting = Waiting(9, np.array([10, 11]), False, window=50, most=99, stream_time=0)
    assert closed([5, 11, 12, 13], waiting).messages == 2
    complete = waiting._replace(complete=True)
    assert closed([5, 11, 12, 13], complete, max_steps=4).messages == 2
    assert closed([5, 11, 12, 13], complete, max_steps=5).messages == 3


def test_a_label_ends_the_messages_if_its_prediction_has_expired() -> None:
    waiting = Waiting(1, np.array([10]), True, window=50, most=9, stream_time=0)
    for time, messages in ((10, 1), (11, 0)):
        found = close_in_order(NO_LABELS, np.array([time]), NO_LABELS, np.array([0]), waiting, 9)
        assert found.messages == messages
        assert found.labels.tolist() == [0] * messages
    assert closed([11], waiting).labels.tolist() == [NONE]
