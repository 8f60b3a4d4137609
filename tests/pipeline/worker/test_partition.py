"""The life cycle of a partition: closed, restoring, running, kept."""

from __future__ import annotations

import pytest

from pipeline.config.settings import Checkpoint, Config, Worker
from pipeline.join.spill import SpilledPredictions
from pipeline.kafka.committed import CommittedPosition
from pipeline.records.inputs import RawMessage
from pipeline.records.names import Fault
from pipeline.recovery.restoration import WrittenTexts
from pipeline.task.batch import Batch
from pipeline.task.plan import DeadLetter
from pipeline.worker.partition import Partition, PartitionState, Restoration
from pipeline.worker.transaction import PartitionCommit
from tests.support.builders import inputs, interaction, join_settings, label, new_task, run

NUMBER = 4
BEGIN, LATER = CommittedPosition(0, 0, None), CommittedPosition(5, 5, 2)
CONFIG = Config(join=join_settings(idle_advance="1s"), worker=Worker(dead_letters=3))


class Log:
    """A log that partitions are restored from: one slice, then a task that is at the end of its inputs."""

    def __init__(self) -> None:
        self.begun: list[CommittedPosition] = []
        self.closed = 0

    def restore(
        self,
        position: CommittedPosition,
        *,
        texts: WrittenTexts,
        spilled: SpilledPredictions,
    ) -> Restoration:
        assert not spilled
        self.begun.append(position)
        self.texts = texts
        task = new_task(CONFIG.join, NUMBER)
        task.interactions.at_end = task.labels.at_end = True
        try:
            yield 70
            yield task
        finally:
            self.closed += 1


@pytest.fixture
def log() -> Log:
    return Log()


def running(log: Log, config: Config = CONFIG) -> Partition:
    partition = Partition(NUMBER, config, log.restore)
    partition.assign(BEGIN)
    while not partition.restore():
        pass
    return partition


def test_a_partition_is_restored_slice_by_slice_and_then_runs(log: Log) -> None:
    partition = Partition(NUMBER, CONFIG, log.restore)
    assert partition.state is PartitionState.CLOSED
    partition.assign(BEGIN)
    assert partition.restoring
    assert not partition.restore()
    assert (partition.restoring, partition.records_left) == (True, 70)
    assert partition.restore()
    assert (partition.running, partition.records_left) == (True, 0)
    assert partition.task.partition == NUMBER
    assert partition.queues == (partition.task.interactions, partition.task.labels)


def test_a_partition_that_comes_back_unchanged_goes_on_with_its_task(log: Log) -> None:
    partition = running(log)
    task, encoder = partition.task, partition.encoder
    assert log.texts is encoder
    partition.end_commit(PartitionCommit(task, Batch(), partition.encoder, False), LATER)
    partition.revoke()
    assert partition.state is PartitionState.KEPT
    partition.assign(LATER)
    assert partition.running
    assert partition.task is task
    assert partition.encoder is encoder
    assert log.begun == [BEGIN]


def test_a_partition_that_others_advanced_is_restored(log: Log) -> None:
    partition = running(log)
    encoder = partition.encoder
    partition.revoke()
    partition.assign(LATER)
    assert partition.encoder is not encoder
    assert not partition.restore()
    assert log.begun == [BEGIN, LATER]


def test_a_partition_whose_stream_time_moved_since_its_commit_is_not_kept(log: Log) -> None:
    partition = running(log)
    assert partition.advance(10, busy=True) is None  # nothing is pending, so nothing is to be committed
    partition.revoke()
    assert partition.state is PartitionState.CLOSED
    partition.assign(BEGIN)
    assert partition.restoring


def test_a_commit_covers_the_stream_time_that_moved_before_it(log: Log) -> None:
    partition = running(log)
    partition.advance(10, busy=True)
    commit = PartitionCommit(partition.task, Batch(), partition.encoder, False)
    partition.begin_commit(commit)
    partition.end_commit(commit, LATER)
    partition.revoke()
    assert partition.state is PartitionState.KEPT


def test_a_partition_that_is_taken_away_while_it_is_restored_ends_that(log: Log) -> None:
    partition = Partition(NUMBER, CONFIG, log.restore)
    partition.assign(BEGIN)
    partition.restore()
    partition.revoke()
    assert (partition.state, partition.records_left) == (PartitionState.CLOSED, 0)
    assert log.closed == 1


def test_a_kept_partition_that_is_taken_away_once_more_is_closed(log: Log) -> None:
    partition = running(log)
    partition.revoke()
    partition.revoke()
    assert partition.state is PartitionState.CLOSED


def with_dead_letters(partition: Partition, count: int) -> PartitionCommit:
    source = RawMessage("interactions", NUMBER, 0, b"1", b"{")
    batch = Batch(dead_letters=[DeadLetter(source, Fault.INVALID, "")] * count)
    return PartitionCommit(partition.task, batch, partition.encoder, False)


def test_a_throttled_partition_commits_nothing_and_stays_throttled_when_it_is_restored(log: Log) -> None:
    partition = running(log)
    partition.begin_commit(with_dead_letters(partition, 3))
    assert partition.throttle.active
    assert partition.advance(10, busy=False) is None
    partition.close()
    partition.assign(LATER)
    while not partition.restore():
        pass
    assert partition.throttle.active


def test_a_snapshot_is_due_after_enough_outcomes_and_on_stopping_after_any(log: Log) -> None:
    few, many = (
        Config(join=CONFIG.join, checkpoint=Checkpoint(outcomes=outcomes, interval="1h"))
        for outcomes in (1_000, 1)
    )
    done, _ = run(inputs([interaction(n, n) for n in range(5)], [label(n, n + 1) for n in range(5)]))
    learned = done.model.outcomes_learned
    assert learned

    def of(config: Config) -> Partition:
        def restore(_: CommittedPosition, **__: object) -> Restoration:
            yield done

        partition = Partition(done.partition, config, restore)
        partition.assign(BEGIN)
        partition.restore()
        return partition

    assert of(few).advance(10, busy=False) is None
    last = of(few).last_commit()
    assert last is not None
    assert last.snapshot
    due = of(many).advance(10, busy=False)
    assert due is not None
    assert due.snapshot
    assert running(log).last_commit() is None
