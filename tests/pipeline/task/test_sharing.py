"""Partitions that learn from one another: each share once, and all of it in the log."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.features.binary import TARGET
from pipeline.features.feature_set import EFFECTS
from pipeline.model.label_policy import LabelPolicy
from pipeline.model.model import Model
from pipeline.model.snapshot import pack
from pipeline.records.encoding import encode
from pipeline.records.largest import MAX_SHARES_BYTES
from pipeline.records.outputs import EntityCounts, Example, Outcome, Prediction, Share
from pipeline.task.inbox import INBOX_BYTES, Inbox
from pipeline.task.sharing import Outbox, SharingSettings
from pipeline.task.task import Task
from tests.pipeline.recovery.test_restoration import WorkerStep, rebuilt, worker_steps
from tests.support.builders import (
    ALL,
    Inputs,
    feed_all,
    inputs,
    interaction,
    label,
    new_model,
    new_task,
    records_of,
    run,
)
from tests.support.consumer import REST, Delivery, Step
from tests.support.examples import examples
from tests.support.join_tables import closed_of
from tests.support.output_log import OutputLog
from tests.support.recording import Recording
from tests.support.shares import ReceivedShare, offer, received_shares
from tests.support.streams import policies, streams

INTERVAL = 4


def run_sharing(
    given_inputs: Inputs,
    drawn: list[WorkerStep],
    received: list[ReceivedShare],
    policy: LabelPolicy | None = None,
) -> tuple[Task, OutputLog]:
    """Work batch by batch, told something now and then, and die now and then."""
    log = OutputLog(interval=INTERVAL, policy=policy)
    task = new_task(policy=policy, sharing=log.sharing)
    delivery = Delivery(task, given_inputs)
    for number, (step, snapshot, dies, loses) in enumerate((*drawn, WorkerStep(REST, True, True, False))):
        delivery.deliver(step)
        offer(task.inbox, received, number)
        before, batch = read(task), task.advance(step.limit)
        assert read(task) - before <= batch.steps <= step.limit
        log.commit(task, batch, snapshot)
        if dies:
            again = rebuilt(task, log)
            if loses:
                delivery.deliver(REST)
                task.advance(REST.limit)
            task = again
            positions = (task.interactions.position.offset, task.labels.position.offset)
            delivery = Delivery(task, given_inputs.from_positions(*positions))
    return task, log


def read(task: Task) -> int:
    return task.counters["interactions"] + task.counters["labels"]


def outcomes_of(log: OutputLog) -> list[Outcome]:
    return [msgspec.json.decode(value, type=Outcome) for _, value in log.outcomes]


def of(partition: int, shares: list[Share]) -> list[Share]:
    return [share for share in shares if share.partition == partition]


@cache
def long_stream() -> Inputs:
    interactions = [interaction(n, 10 * n, user_id=n % 5, video_id=n % 7) for n in range(120)]
    labels = [label(n, 10 * n + 35, n % 3, user_id=n % 5, video_id=n % 7) for n in range(120) if n % 10]
    return inputs(interactions, labels)


@examples(40)
@given(
    given_inputs=streams(),
    drawn=st.lists(worker_steps, max_size=12),
    received=received_shares(),
    policy=policies,
)
def test_the_log_alone_determines_all_that_was_predicted(
    given_inputs: Inputs, drawn: list[WorkerStep], received: list[ReceivedShare], policy: LabelPolicy | None
) -> None:
    """The audit derives each prediction from the outcomes before it, one by one."""
    task, log = run_sharing(given_inputs, drawn, received, policy)
    assert Recording.of(given_inputs, log).findings() == []
    together = new_model()
    together.learn_many(outcomes_of(log))
    assert pack(together) == pack(task.model)


@examples(12)
@given(drawn=st.lists(worker_steps, max_size=20), received=received_shares())
def test_so_does_that_of_a_long_stream_whose_feature_map_changes(
    drawn: list[WorkerStep], received: list[ReceivedShare]
) -> None:
    task, log = run_sharing(long_stream(), drawn, received)
    assert task.model.learner.state()["stage"] == 2
    assert Recording.of(long_stream(), log).findings() == []


@examples(40)
@given(given_inputs=streams(), drawn=st.lists(worker_steps, max_size=12), received=received_shares())
def test_each_share_is_learned_once_whatever_dies(
    given_inputs: Inputs, drawn: list[WorkerStep], received: list[ReceivedShare]
) -> None:
    task, log = run_sharing(given_inputs, drawn, received)
    offer(task.inbox, received, len(drawn))
    taken = [share for outcome in outcomes_of(log) for share in outcome.shared or ()]
    there = [each.share for each in received if each.batch <= len(drawn)]
    left = []
    while task.inbox.bytes:
        left += task.inbox.drain()
    for partition in (1, 2):
        assert of(partition, taken) + of(partition, left) == of(partition, there)


def effect_sums_of(outcome: Outcome) -> tuple[float, float, float, float]:
    """Residual, precision, signal and squared residual of an outcome, given what its features say."""
    named = dict(zip(EFFECTS, outcome.features, strict=True))
    y = 2.5 * ((outcome.watch_ratio or 0.0) - 0.75)
    signal, noise = y / math.sqrt(1.0 + y * y), named["user_noise"] ** 2
    residual = signal - named["user_effect"]
    return residual / noise, 1.0 / noise, signal, (residual - named["video_effect"]) ** 2


@examples(80)
@given(given_inputs=streams(), drawn=st.lists(worker_steps, max_size=12), policy=policies)
def test_what_is_published_is_what_the_outcomes_come_to_whatever_dies(
    given_inputs: Inputs, drawn: list[WorkerStep], policy: LabelPolicy | None
) -> None:
    task, log = run_sharing(given_inputs, drawn, [], policy)
    outcomes = outcomes_of(log)
    whole = len(outcomes) // INTERVAL * INTERVAL
    assert [(share.since, share.until) for share in log.shares] == list(
        pairwise(range(0, whole + 1, INTERVAL))
    )
    for share in log.shares:
        learned = [each for each in outcomes[share.since : share.until] if each.label is not None]
        events = Counter(each.video_id for each in learned)
        assert [counts.entity for counts in share.videos] == list(events)
        for video, count, labels, ratios in map(msgspec.structs.astuple, share.videos):
            own = [each for each in learned if each.video_id == video]
            assert count == len(own)
            assert labels == sum(bool(each.label) for each in own)
            assert ratios == sum(min(each.watch_ratio or 0.0, TARGET.cap) for each in own)
        assert share.effects is not None
        for video, found in zip(events, share.effects, strict=True):
            parts = [effect_sums_of(each) for each in learned if each.video_id == video]
            expected = [round(sum(column), 6) for column in zip(*parts, strict=True)]
            assert msgspec.structs.astuple(found) == pytest.approx(expected, rel=1e-12, abs=2e-6)
        taught = [each.example for each in outcomes[share.since : share.until] if each.sequence % 2 == 0]
        assert share.examples == [example for example in taught if example is not None]
    state = task.state({})
    assert (state.published, state.outcomes) == (whole, len(outcomes))


@given(given_inputs=streams())
def test_publishing_changes_nothing_of_what_is_written(given_inputs: Inputs) -> None:
    _, expected = run(given_inputs)
    _, log = run_sharing(given_inputs, [], [])
    assert log.written == expected


def test_an_interval_that_was_shortened_leaves_nothing_out_and_publishes_without_a_message() -> None:
    log = OutputLog(interval=50)
    task = new_task(sharing=log.sharing)
    interactions = [interaction(n, n) for n in range(10)]
    feed_all(task, inputs(interactions, [label(n, n) for n in range(10)]))
    log.commit(task, task.advance(ALL), snapshot=True)
    assert log.shares == []
    log.interval = 4
    again = rebuilt_with(log)
    batch = again.advance(ALL)
    assert [(share.since, share.until) for share in batch.shares] == [(0, 4), (4, 8)]
    assert not batch.empty
    log.commit(again, batch, snapshot=False)
    assert log.state is not None
    assert log.state.published == 8
    assert again.advance(ALL).empty


def test_outcomes_that_nothing_else_needs_are_read_again_to_be_published() -> None:
    log = OutputLog(interval=6)
    task = new_task(sharing=log.sharing)
    interactions = [interaction(n, 1_000 * n, video_id=n) for n in range(7)]
    feed_all(task, inputs(interactions, [label(n, 1_000 * n + 1, video_id=n) for n in range(7)]))
    for _ in range(5):
        log.commit(task, task.advance(2), snapshot=True)
    assert log.state is not None
    assert (log.state.outcomes, log.state.published) == (5, 0)
    assert not task.join.pending
    assert [number // 2 for number, *_ in closed_of(task.join)] == [4]
    again = rebuilt_with(log)
    feed_all(again, inputs([interaction(5, 5_000, video_id=5)], [label(5, 5_001, video_id=5)]))
    [share] = again.advance(ALL).shares
    assert [counts.entity for counts in share.videos] == [0, 1, 2, 3, 4, 5]


def rebuilt_with(log: OutputLog) -> Task:
    again = log.restore()
    assert again.outbox is not None
    return again


def test_a_group_that_begins_to_share_late_publishes_from_then_on() -> None:
    task, log = new_task(), OutputLog()
    feed_all(task, inputs([interaction(n, n) for n in range(10)], [label(n, n) for n in range(10)]))
    log.commit(task, task.advance(7), snapshot=False)
    assert log.state is not None
    assert log.state.published is None
    log.interval = 4
    assert rebuilt_with(log).state({}).published == log.state.outcomes


@pytest.fixture
def shared_run() -> tuple[Recording, int]:
    """Return a run with shares in it, and the number of the first outcome that has one."""
    worker_step = WorkerStep(Step(9, 9, False, 15), False, False, False)
    received = [ReceivedShare(share_of(1 + n % 2, 10 * n, 10 * n + 10), n) for n in range(10)]
    _, log = run_sharing(long_stream(), [worker_step] * 20, received)
    run = Recording.of(long_stream(), log)
    assert run.findings() == []
    return run, next(number for number, each in enumerate(outcomes_of(log)) if each.shared)


def one_more(counts: EntityCounts) -> EntityCounts:
    return msgspec.structs.replace(counts, events=counts.events + 1)


@pytest.mark.parametrize(
    "changed",
    [
        lambda share: msgspec.structs.replace(share, videos=[one_more(each) for each in share.videos]),
        lambda share: msgspec.structs.replace(share, videos=[]),
        lambda share: msgspec.structs.replace(share, examples=[]),
    ],
)
def test_a_share_that_was_changed_is_found_in_the_next_prediction(
    shared_run: tuple[Recording, int], changed: Callable[[Share], Share]
) -> None:
    run, number = shared_run
    outcome = msgspec.json.decode(run.outcomes[number].value or b"", type=Outcome)
    run.change_outcome(number, shared=[changed(share) for share in outcome.shared or ()])
    found = run.first()
    assert found.topic == "predictions"
    first = next(
        each
        for each in run.predictions
        if msgspec.json.decode(each.value or b"", type=Prediction).model_version > number
    )
    assert found.offset == first.offset


@pytest.mark.parametrize(("partition", "since"), [(0, 40), (1, 0)])
def test_an_own_share_and_one_learned_twice_are_named(
    shared_run: tuple[Recording, int], partition: int, since: int
) -> None:
    run, _ = shared_run
    run.change_outcome(len(run.outcomes) - 1, shared=[share_of(partition, since, since + 10)])
    [found] = [found for found in run.findings() if found.topic == "outcomes"]
    assert found.offset == run.outcomes[-1].offset
    assert f"one of partition {partition}, from {since} on" in found.found


def test_counts_of_which_no_mean_can_be_made_are_nothing_that_a_worker_wrote() -> None:
    value = encode(share_of(1, 0, 1)).replace(b"[3,1,1,", b"[3,1,2,")
    with pytest.raises(msgspec.ValidationError, match="2 of 1 labels of 3 are positive"):
        msgspec.json.decode(value, type=Share)


def share_of(partition: int, since: int, until: int) -> Share:
    example = Example(7, 3, 5, [0.5] * 10, label=True, watch_ratio=1.0)
    return Share(partition, since, until, [EntityCounts(3, until - since, 1, 0.5)], [example])


def test_what_does_not_fit_into_an_outcome_goes_with_the_next_ones() -> None:
    inbox = Inbox(0, {})
    for offset in range(5):
        inbox.offer(share_of(1, offset, offset + 1), offset, MAX_SHARES_BYTES // 2)
    taken = [[share.since for share in inbox.drain()] for _ in range(4)]
    assert taken == [[0, 1], [2, 3], [4], []]
    assert inbox.taken == {1: 5}
    assert inbox.bytes == 0


def test_a_full_inbox_wants_no_more_until_half_is_read() -> None:
    inbox, size = Inbox(0, {}), INBOX_BYTES // 8
    for offset in range(12):
        inbox.offer(share_of(1, offset, offset + 1), offset, size)
    assert inbox.bytes == 8 * size
    assert inbox.next_offset(1) is None
    while inbox.next_offset(1) is None:
        assert inbox.bytes > INBOX_BYTES // 2
        inbox.drain()
    assert inbox.bytes == INBOX_BYTES // 2
    assert inbox.next_offset(1) == 8
    inbox.offer(share_of(1, 11, 12), 11, size)
    assert [share.since for share in inbox.drain()] == [4]


def test_a_partition_wants_nothing_of_its_own() -> None:
    inbox = Inbox(3, {1: 17})
    assert [inbox.next_offset(partition) for partition in range(4)] == [0, 17, 0, None]
    inbox.offer(share_of(3, 0, 1), 0, 9)
    inbox.offer(share_of(1, 0, 1), 16, 9)
    assert inbox.drain() == []


def test_the_largest_share_and_the_largest_outcome_fit_into_a_message() -> None:
    """With ids of the longest, every character of which takes six bytes, and all outcomes examples."""
    interval = 100
    outbox = Outbox(2**31, SharingSettings(2, interval), 2**53)
    features = [-1.2345678901234567] * 10
    for number in range(interval):
        video = f"{number:03}" + "\x01" * 253
        outbox.add(Example("\x01" * 256, video, 2**53, features, label=True, watch_ratio=1 / 3))
    [share] = outbox.drain()
    outcome = 8 * 256 * 6
    assert MAX_SHARES_BYTES + len(encode(share)) + outcome < 1_000_000


def test_examples_teach_the_learner_and_counts_do_not() -> None:
    def scored(shares: list[Share]) -> tuple[Model, float, list[float]]:
        model = new_model()
        model.merge_shared(shares)
        output = model.predict(interaction(1, 1, 7, 3))
        return model, output.score, output.features

    share = share_of(1, 0, 9)
    counts = msgspec.structs.replace(share, examples=[])
    untaught, _, features = scored([counts])
    taught, _, same = scored([share])
    assert features == same != new_model().predict(interaction(1, 1, 7, 3)).features
    assert not np.array_equal(taught.learner.state()["weights"], untaught.learner.state()["weights"])


@pytest.mark.parametrize("others", [1, 3])
def test_a_partition_is_taught_by_as_many_outcomes_of_others_as_of_its_own(others: int) -> None:
    outbox = Outbox(0, SharingSettings(others + 1, 60), 0)
    for _ in range(60):
        outbox.add(Example(7, 3, 5, [0.5] * 10, label=False, watch_ratio=0.0))
    [share] = outbox.drain()
    assert len(share.examples) * others == 60


def test_shares_that_fill_an_outcome_each_go_into_one_after_the_other() -> None:
    task = new_task()
    shares = [Share(1, number, number + 1, [EntityCounts(1, 1, 1, 0.5)], []) for number in range(2)]
    offer(task.inbox, [ReceivedShare(share, 0, MAX_SHARES_BYTES) for share in shares], 0)
    feed_all(task, inputs([interaction(n, n) for n in range(3)], [label(n, 10 + n) for n in range(3)]))
    assert [outcome.shared for outcome in records_of(task.advance(ALL)).outcomes] == [
        [shares[0]],
        [shares[1]],
        None,
    ]
