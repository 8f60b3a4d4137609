from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.records.decoding import NO_TIMESTAMP, Record, RejectedRecord
from pipeline.task.record_queue import Position, RecordQueue
from tests.support.builders import Message, inputs, interaction
from tests.support.entries import queued

JUMP = 1_000
BEHIND = 3_000


def record_queue(*messages: Message | int, position: Position | None = None) -> RecordQueue:
    """Return a record queue with messages, or interactions at the given times."""
    records = [interaction(n, each) if isinstance(each, int) else each for n, each in enumerate(messages)]
    result = RecordQueue(position or Position(0), JUMP, BEHIND)
    result.feed(queued(inputs(records, []).interactions))
    return result


def accepted(times: Sequence[int], position: Position | None = None) -> list[bool]:
    """Whether each message is accepted of an input that has ended."""
    queue = record_queue(*times, position=position)
    queue.at_end = True
    return [not isinstance(each, RejectedRecord) for each in popped(queue)]


def popped(queue: RecordQueue) -> list[Record]:
    return [queue.pop() for _ in range(len(queue))]


def test_a_new_record_queue_is_not_ready_and_has_no_head() -> None:
    queue = RecordQueue(Position(0), JUMP, BEHIND)
    assert not queue.ready
    assert queue.time is None
    assert len(queue) == 0


def test_a_record_queue_is_ready_with_messages_or_at_its_end() -> None:
    queue = record_queue(5)
    ready = [queue.ready]
    queue.pop()
    ready.append(queue.ready)
    queue.at_end = True
    ready.append(queue.ready)
    assert ready == [True, False, True]


def test_what_was_the_end_is_so_no_more_when_messages_come() -> None:
    queue = RecordQueue(Position(0), JUMP, BEHIND)
    queue.at_end = True
    queue.feed(queued(inputs([interaction(1, 6)], []).interactions))
    assert not queue.at_end


def test_messages_leave_in_the_order_of_their_offsets_and_move_the_position_past_them() -> None:
    queue = record_queue(50, 20, 30)
    seen = []
    for _ in range(3):
        head = queue.time
        queue.pop()
        seen.append((head, queue.source().offset, queue.position.offset, queue.position.clock))
    assert seen == [(50, 0, 1, 50), (20, 2, 3, 50), (30, 4, 5, 50)]


def test_what_cannot_be_used_goes_first_and_does_not_move_the_clock() -> None:
    queue = record_queue(b"{", 5)
    assert queue.time == NO_TIMESTAMP
    assert isinstance(queue.pop(), RejectedRecord)
    assert queue.position == Position(1, None, None)
    assert queue.time == 5


def test_what_cannot_be_used_does_not_move_the_clock_that_jumps_are_measured_from() -> None:
    queue = record_queue(b"{", position=Position(0, clock=600))
    queue.feed(queued(inputs([interaction(1, 600 + JUMP)], []).interactions))
    assert [isinstance(queue.pop(), RejectedRecord) for _ in range(2)] == [True, False]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([10**8], [True]),  # nothing to compare the first one with
        ([0, JUMP], [True, True]),
        ([0, JUMP + 1], [True, True]),
        ([0, 9_000, 10], [True, False, True]),  # one wrong clock
        ([0, 9_000, 9_000], [True, True, True]),  # confirmed: the stream was silent
        ([0, 9_000, 8_000], [True, True, True]),  # confirmed from just below
        ([0, 9_000, 7_999, 0], [True, False, False, True]),
        ([0, 9_000, 20_000, 30_000], [True, True, True, True]),  # time goes on from jump to jump
        ([0, 9_000, 10, 9_000, 11], [True, False, True, False, True]),  # the wrong clock again
        ([0, 9_000, 9_100, 9_200, 6_200], [True, True, True, True, True]),  # late
        ([0, 9_000, 9_100, 9_200, 6_199], [True, True, True, True, False]),  # too late
    ],
)
def test_a_jump_counts_if_the_next_messages_confirm_it(times: list[int], expected: list[bool]) -> None:
    assert accepted(times) == expected


def test_garbage_between_a_jump_and_its_confirmation_does_not_matter() -> None:
    queue = record_queue(0, 9_000, b"", 9_001)
    queue.at_end = True
    assert [isinstance(record, RejectedRecord) for record in popped(queue)] == [False, False, True, False]


def test_a_refused_jump_is_a_rejected_record_that_says_how_far_and_what_to_do() -> None:
    queue = record_queue(100, 9_000, 200)
    queue.at_end = True
    queue.pop()
    assert queue.time == NO_TIMESTAMP
    refused = queue.pop()
    assert isinstance(refused, RejectedRecord)
    assert refused.fault == "future"
    assert "8900 ms after" in refused.reason
    assert "join.max_jump (1000 ms)" in refused.reason
    assert queue.position == Position(3, clock=100, ahead=9_000)


def test_a_message_far_behind_is_a_rejected_record_that_says_how_far() -> None:
    queue = record_queue(9_000, 10)
    queue.pop()
    assert queue.time == NO_TIMESTAMP
    refused = queue.pop()
    assert isinstance(refused, RejectedRecord)
    assert refused.fault == "past"
    assert "8990 ms before" in refused.reason
    assert "join.max_jump and join.window (3000 ms)" in refused.reason
    assert queue.position == Position(3, clock=9_000, behind=1)


def test_a_jump_waits_with_what_is_behind_it_until_the_input_ends() -> None:
    queue = record_queue(5_000, 9_000, b"{", 7)
    queue.pop()
    assert (len(queue), queue.time, queue.ready, queue.waiting) == (0, None, False, 9_000)
    assert list(queue.peek(9)) == []
    queue.at_end = True
    assert [isinstance(each, RejectedRecord) for each in popped(queue)] == [False, True, True]
    assert queue.position == Position(7, clock=9_000, behind=1)
    assert (queue.waiting, queue.bytes) == (None, 0)


@pytest.mark.parametrize(
    ("present", "then", "expected"),
    [(9_000, 9_001, [True, True]), (9_001, 9_001, [False, True]), (9_001, 5_001, [False, True])],
)
def test_where_its_input_pauses_a_jump_to_the_present_counts_and_the_next_may_confirm_any_other(
    present: int, then: int, expected: list[bool]
) -> None:
    queue = record_queue(5_000, 9_000)
    queue.pop()
    queue.pause(present)
    assert (queue.at_end, queue.waiting) == (True, None)
    found = popped(queue)
    again = RecordQueue(queue.position, JUMP, BEHIND)
    again.feed(queued(inputs([interaction(n, then) for n in range(3)], []).interactions[2:]))
    again.pause(present)
    found += popped(again)
    assert [not isinstance(each, RejectedRecord) for each in found] == expected


def test_a_jump_that_waits_is_read_again_after_a_rewind() -> None:
    queue = record_queue(100, 9_000)
    queue.pop()
    queue.at_end = True
    queue.rewind()
    assert (queue.waiting, queue.position.offset, queue.at_end) == (None, 1, False)
    queue.feed(queued(inputs([interaction(n, 101) for n in range(2)], []).interactions[1:]))
    assert [isinstance(each, RejectedRecord) for each in popped(queue)] == [False]


times = st.lists(st.integers(0, 20) | st.integers(0, 5_000) | st.integers(0, 100_000), max_size=20)


@given(times=times, cut=st.integers(0, 20), by_skip=st.booleans())
def test_a_position_is_all_that_is_needed_to_go_on(times: list[int], cut: int, by_skip: bool) -> None:
    whole = record_queue(*times)
    expected = popped(whole)
    first, cut = record_queue(*times), min(cut, len(expected))
    head = [first.record_at(place) for place in range(cut)]
    if by_skip:
        first.skip(cut)
    else:
        assert [first.pop() for _ in range(cut)] == head
    second = RecordQueue(first.position, JUMP, BEHIND)
    entries = inputs([interaction(n, time) for n, time in enumerate(times)], []).interactions
    second.feed(queued(entries[cut:]))
    assert head + popped(second) == expected
    assert (second.position, second.waiting) == (whole.position, whole.waiting)


@given(
    messages=st.lists(st.sampled_from([b"{", 0, 50, 9_000, 20_000]) | st.integers(0, 30_000), max_size=30),
    cuts=st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["pop", "skip", "rewind", "wait"]))),
)
def test_verdicts_are_the_same_however_messages_are_cut_and_taken(
    messages: list[Message | int], cuts: list[tuple[int, str]]
) -> None:
    whole = record_queue(*messages)
    expected = popped(whole)
    records = [interaction(n, each) if isinstance(each, int) else each for n, each in enumerate(messages)]
    entries = inputs(records, []).interactions
    queue, found, fed = RecordQueue(Position(0), JUMP, BEHIND), list[Record](), 0
    for size, how in [*cuts, (len(entries), "pop")]:
        queue.feed(queued(entries[fed : fed + size]))
        fed += size
        if how == "pop":
            found += popped(queue)
        elif how == "skip":
            found += [queue.record_at(place) for place in range(len(queue))]
            queue.skip(len(queue))
        elif how == "rewind":
            queue.rewind()
            fed = sum(each.source.offset < queue.position.offset for each in entries)
    assert found == expected
    assert (queue.position, queue.waiting) == (whole.position, whole.waiting)


def test_a_rewound_record_queue_is_empty_and_keeps_its_position() -> None:
    queue = record_queue(50, 20, 30)
    queue.pop()
    queue.at_end = True
    queue.rewind()
    assert (len(queue), queue.ready) == (0, False)
    assert (queue.position.offset, queue.position.clock) == (1, 50)


def test_bytes_are_those_of_the_messages_not_yet_popped() -> None:
    queue = record_queue(b"{", 5, None)
    sizes = [entry.source.size for entry in inputs([b"{", interaction(1, 5), None], []).interactions]
    held = [queue.bytes]
    for _ in range(3):
        queue.pop()
        held.append(queue.bytes)
    assert held == [sum(sizes), sum(sizes[1:]), sizes[2], 0]
    queue.feed(queued(inputs([b"{"], []).interactions))
    queue.rewind()
    assert queue.bytes == 0


@pytest.mark.parametrize("sizes", [(2, 1), (1, 2), (1, 2, 1), (2, 1, 2)])
def test_records_are_made_of_messages_in_columns_whatever_comes_behind_them(sizes: tuple[int, ...]) -> None:
    records = [interaction(f"e{number}", 5) for number in range(sum(sizes))]
    queue, given_entries, begin = RecordQueue(Position(0), JUMP, BEHIND), inputs(records, []).interactions, 0
    for size in sizes:
        polled = queued(given_entries[begin : begin + size])
        if size == 1:  # as few messages come
            [record] = records[begin : begin + 1]
            polled = polled._replace(records=[record], columns=None)
        queue.feed(polled)
        begin += size
    assert queue.columns(len(records)).ids(0) == [each.event_id for each in records]
    assert [queue.pop() for _ in records] == records
