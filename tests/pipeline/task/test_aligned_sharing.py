"""Partitions that learn the windows of the others one window later: the same bytes, whoever is how far."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.settings import Join as JoinSettings
from pipeline.config.stream import KUAIREC, Stream
from pipeline.features.feature_set import FeatureSet
from pipeline.model.snapshot import pack
from pipeline.records.largest import MAX_SHARES_BYTES
from pipeline.records.outputs import EntityCounts, Share
from pipeline.task.aligned_inbox import AlignedInbox
from pipeline.task.inbox import ALL_OUTCOMES, INBOX_BYTES
from pipeline.task.sharing import Outbox, SharingSettings
from pipeline.task.task import Task
from tests.pipeline.recovery.test_restoration import WorkerStep, worker_steps
from tests.support import slates
from tests.support.builders import Inputs, inputs, interaction, join_settings, label, new_model, new_task
from tests.support.consumer import REST, Delivery
from tests.support.examples import examples
from tests.support.output_log import OutputLog
from tests.support.streams import streams, tight

PARTITIONS = 3
ALIGN = 200
INTERVAL = 2
SIZE = 90_000
"""Bytes that each share is said to have: three of them fill an outcome, 22 the queue of a partition."""
SIZE_OF_SLATES = 300_000
"""With slates, one fills an outcome: those of a window fill more than the largest slate can make."""


class Turn(NamedTuple):
    """What one of the partitions does next."""

    partition: int
    news: int
    """Most shares of each other partition that it reads before."""
    step: WorkerStep


turns = st.builds(
    Turn, partition=st.integers(0, PARTITIONS - 1), news=st.sampled_from([0, 1, 3, 99]), step=worker_steps
)


class Member:
    """One partition, the worker that has it, and its topics."""

    def __init__(
        self, number: int, given_inputs: Inputs, join: JoinSettings, stream: Stream, size: int
    ) -> None:
        self.number, self._size = number, size
        self.log = OutputLog(interval=INTERVAL, align=ALIGN, stream=stream)
        self._join = join
        self._inputs = given_inputs
        self._start()

    def _start(self) -> None:
        if self.log.state is None:
            model = new_model(features=FeatureSet.of(self.log.stream))
            self.task: Task = new_task(self._join, self.number, model, sharing=self.log.sharing)
        else:
            self.task = self.log.restore(self._join)
        positions = (self.task.interactions.position.offset, self.task.labels.position.offset)
        self._delivery = Delivery(self.task, self._inputs.from_positions(*positions))

    def turn(self, others: list[Member], news: int, drawn: WorkerStep) -> bool:
        """Read, process, commit, and die perhaps; return whether anything was read or done."""
        self._delivery.deliver(drawn.step)
        held = self.task.inbox.bytes
        for other in others:
            begin = self.task.inbox.next_offset(other.number)
            for offset in () if begin is None else range(begin, min(len(other.log.shares), begin + news)):
                self.task.inbox.offer(other.log.shares[offset], offset, self._size)
        came = self.task.inbox.bytes > held
        batch = self.task.advance(drawn.step.limit)
        if not batch.empty:
            self.log.commit(self.task, batch, drawn.snapshot)
        if drawn.dies:
            if drawn.loses:
                self._delivery.deliver(REST)
                self.task.advance(REST.limit)
            self._start()
        return came or not batch.empty


def play(
    given_inputs: list[Inputs],
    schedule: list[Turn],
    join: JoinSettings,
    stream: Stream = KUAIREC,
    size: int = SIZE,
) -> list[Member]:
    """Follow the schedule; then all go on until nobody can."""
    members = [Member(number, each, join, stream, size) for number, each in enumerate(given_inputs)]

    def turn(member: Member, news: int, step: WorkerStep) -> bool:
        return member.turn([other for other in members if other is not member], news, step)

    for each in schedule:
        turn(members[each.partition], each.news, each.step)
    while True:
        while sum(turn(member, 10_000, WorkerStep(REST, True, False, False)) for member in members):
            pass
        missing = [member.task.inbox.missing for member in members]
        if not any(missing):
            return members
        for member, partitions in zip(members, missing, strict=True):
            member.task.inbox.time_out(partitions)


def busy_stream(user: int, events: int) -> Inputs:
    """A label for each interaction, a few to a window."""
    interactions = [interaction(n, 30 * n, user_id=user, video_id=n % 7) for n in range(events)]
    labels = [label(n, 30 * n + 45, n % 3, user_id=user, video_id=n % 7) for n in range(events)]
    return inputs(interactions, labels)


def busy_slates(user: int, events: int) -> Inputs:
    """Slates of one to five videos, many to a window: most items have labels, some before their slate."""
    messages, labels = [], list[tuple[int, bytes]]()
    for number in range(events // 2):
        at, videos = 20 * number, range(number % 7, number % 7 + 1 + number % 5)
        messages.append(slates.slate(number, at, videos, user))
        for video in videos:
            if (number + video) % 4:
                known = at - 20 + 15 * (video % 6)
                answer = slates.label(number, max(0, known), video, float(video % 3), user)
                labels.append((known, answer))
    labels.sort(key=lambda each: each[0])
    return slates.inputs(messages, [answer for _, answer in labels])


def assert_same(members: list[Member], expected: list[Member]) -> None:
    for member, other in zip(members, expected, strict=True):
        assert member.log.written == other.log.written
        assert member.log.shares == other.log.shares
        assert pack(member.task.model) == pack(other.task.model)


@examples(40)
@given(
    given_inputs=st.lists(streams(jumps=False, size=25), min_size=PARTITIONS, max_size=PARTITIONS),
    schedule=st.lists(turns, max_size=25),
    join=tight,
)
def test_what_is_written_does_not_depend_on_who_is_how_far(
    given_inputs: list[Inputs], schedule: list[Turn], join: JoinSettings
) -> None:
    assert_same(play(given_inputs, schedule, join), play(given_inputs, [], join))


@examples(40)
@given(
    given_inputs=st.lists(slates.slates(size=10), min_size=PARTITIONS, max_size=PARTITIONS),
    schedule=st.lists(turns, max_size=25),
    join=tight,
)
def test_nor_does_what_is_written_of_slates(
    given_inputs: list[Inputs], schedule: list[Turn], join: JoinSettings
) -> None:
    join = join.model_copy(update={"max_pending": max(5, join.max_pending)})
    of_slates = join, slates.SLATES, SIZE_OF_SLATES
    assert_same(play(given_inputs, schedule, *of_slates), play(given_inputs, [], *of_slates))


streams_of = {
    "single items": (KUAIREC, SIZE, busy_stream),
    "slates": (slates.SLATES, SIZE_OF_SLATES, busy_slates),
}


@pytest.mark.parametrize("crowded", [False, True])
@pytest.mark.parametrize("kind", streams_of)
@examples(25)
@given(schedule=st.lists(turns, max_size=60))
def test_nor_does_it_in_busy_streams(kind: str, crowded: bool, schedule: list[Turn]) -> None:
    given_inputs, expected = played_at_once(kind, crowded=crowded)
    stream, size, _ = streams_of[kind]
    assert_same(play(given_inputs, schedule, room(crowded=crowded), stream, size), expected)


def room(*, crowded: bool) -> JoinSettings:
    return join_settings(max_pending=5) if crowded else join_settings()


@cache
def played_at_once(kind: str, *, crowded: bool) -> tuple[list[Inputs], list[Member]]:
    stream, size, busy = streams_of[kind]
    given_inputs = [busy(user, 60 + 15 * user) for user in range(PARTITIONS)]
    members = play(given_inputs, [], room(crowded=crowded), stream, size)
    assert sum(member.task.inbox.outcomes for member in members) > 150  # of others
    return given_inputs, members


@pytest.mark.parametrize("kind", streams_of)
def test_others_learn_a_window_when_the_next_one_has_ended(kind: str) -> None:
    stream, _, busy = streams_of[kind]
    given_inputs, learned = [busy(user, 80) for user in range(PARTITIONS)], 0
    for member in play(given_inputs, [], join_settings(), stream):
        for _, value in member.log.outcomes:
            outcome = _decoded(value)
            known = outcome["label_timestamp"]
            for share in outcome.get("shared", []):
                learned += 1
                if known is None or known < outcome["timestamp"]:  # time had come to the slate, or past it
                    continue
                assert known >= share["window_end"] + ALIGN
                assert known < share["window_end"] + 2 * ALIGN
    assert learned > 50


def test_a_slate_waits_until_it_is_known_what_each_outcome_of_it_learns() -> None:
    sharing = SharingSettings(2, INTERVAL, align=ALIGN, max_items=3)
    mine = AlignedInbox(0, sharing, {}, {}, stream_time=2 * ALIGN)
    for number in range(17):
        mine.offer(share(1, number, ALIGN), number, SIZE)
    assert mine.max_outcomes == 5  # of three shares each, and the two that are left do not fill another
    assert not mine.ready
    mine.offer(share(1, 17, ALIGN), 17, SIZE)
    assert mine.max_outcomes == 6
    assert mine.ready  # three items, and three others that make room


def _decoded(value: bytes) -> dict[str, Any]:

    decoded: dict[str, Any] = msgspec.json.decode(value)
    return decoded


def share(partition: int, number: int, window_end: int, closed_until: int | None = None) -> Share:
    counts = [EntityCounts(3, 1, 1, 0.5)]
    return Share(partition, number, number + 1, counts, [], window_end=window_end, closed_until=closed_until)


def inbox(partitions: int = 3, stream_time: int = 0) -> AlignedInbox:
    return AlignedInbox(0, SharingSettings(partitions, INTERVAL, align=ALIGN), {}, {}, stream_time)


def test_a_window_waits_for_those_that_are_behind_until_they_time_out() -> None:
    mine = inbox()
    assert mine.max_outcomes == ALL_OUTCOMES
    mine.move(2 * ALIGN)
    assert mine.missing == [1, 2]
    mine.offer(share(1, 0, ALIGN, closed_until=ALIGN), 0, 100)
    assert mine.missing == [2]
    assert not mine.ready
    mine.time_out([2])
    assert mine.max_outcomes == ALL_OUTCOMES
    assert [each.partition for each in mine.drain()] == [1]
    mine.move(3 * ALIGN)
    assert mine.missing == [1]
    mine.offer(share(2, 0, ALIGN, closed_until=2 * ALIGN), 0, 100)
    mine.offer(share(1, 1, 2 * ALIGN, closed_until=2 * ALIGN), 1, 100)
    assert [each.partition for each in mine.drain()] == [2, 1]  # late, but not lost
    mine.move(4 * ALIGN)
    assert mine.missing == [1, 2]  # nobody has timed out any more


def test_who_may_be_waiting_itself_does_not_time_out() -> None:
    mine = inbox()
    mine.move(9 * ALIGN)
    mine.offer(share(2, 0, ALIGN, closed_until=2 * ALIGN), 0, 100)
    mine.offer(share(1, 0, ALIGN, closed_until=ALIGN), 0, 100)
    assert mine.missing == [1, 2]
    mine.offer(share(2, 1, 3 * ALIGN, closed_until=4 * ALIGN), 1, 100)
    assert mine.missing == [1]


def test_a_window_that_is_larger_than_the_buffer_passes() -> None:
    mine, waiting = inbox(), 3 * INBOX_BYTES // SIZE
    shares = {1: [share(1, number, ALIGN) for number in range(waiting)], 2: [share(2, 0, ALIGN, ALIGN)]}
    shares[1].append(share(1, waiting, ALIGN, ALIGN))
    mine.move(2 * ALIGN)
    learned, most = [], 0
    while mine.max_outcomes < ALL_OUTCOMES or mine.bytes:
        for number, theirs in shares.items():
            while (offset := mine.next_offset(number)) is not None and offset < len(theirs):
                mine.offer(theirs[offset], offset, SIZE)
        most = max(most, mine.bytes)
        assert mine.ready
        learned += mine.drain()
    assert [(each.partition, each.since) for each in learned] == [
        *((1, number) for number in range(waiting + 1)),
        (2, 0),
    ]
    assert most <= INBOX_BYTES + 4 * MAX_SHARES_BYTES


def test_a_share_is_cut_where_a_window_ends() -> None:
    outbox = Outbox(0, SharingSettings(3, INTERVAL, align=ALIGN), since=0, stream_time=50)
    outbox.add(None)
    outbox.move(ALIGN + 1, outcomes=1)
    outbox.move(ALIGN + 2, outcomes=1)
    outbox.move(5 * ALIGN, outcomes=2)
    for _ in range(3):
        outbox.add(None)
    found = [(each.since, each.until, each.window_end, each.closed_until) for each in outbox.drain()]
    assert found == [
        (0, 1, ALIGN, ALIGN),
        (1, 2, 2 * ALIGN, 5 * ALIGN),
        (2, 4, 6 * ALIGN, None),
    ]


@pytest.mark.parametrize("stream_time", [0, 7 * ALIGN + 1])
def test_nothing_is_cut_within_a_window(stream_time: int) -> None:
    outbox = Outbox(0, SharingSettings(3, INTERVAL, align=ALIGN), since=0, stream_time=stream_time)
    outbox.move(stream_time + ALIGN // 2, outcomes=0)
    assert outbox.drain() == []
