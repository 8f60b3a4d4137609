"""Read the committed state records and snapshots of a group."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal, NamedTuple

from pipeline.config.settings import Config
from pipeline.config.topics import topics_of
from pipeline.errors import ConfigError, StateError
from pipeline.kafka.committed import position_of
from pipeline.kafka.group import ConsumerGroup
from pipeline.kafka.output_values import OutputValues
from pipeline.log.partition_log import PartitionLog
from pipeline.log.reader import LogReader
from pipeline.recovery.signature import StateSigner, state_signer
from pipeline.recovery.state_reader import read_state, snapshot_bytes
from pipeline.task.state import State


class CommittedState(NamedTuple):
    """The last committed state record of a partition, and its offset in the checkpoints topic."""

    offset: int
    state: State


class Group(ConsumerGroup):
    """The consumer group of a pipeline, with its committed state.

    Use as a context manager.

    Parameters
    ----------
    config
        Whole configuration.

    Raises
    ------
    BrokerError
        No broker answers.
    TopicError
        Topics are missing, or not as they have to be.
    """

    def __init__(self, config: Config) -> None:
        self.signer = state_signer(config.checkpoint, config.kafka)
        """Signs state records, and checks their MAC; None where `checkpoint.key` is not set."""
        super().__init__(config, replace(topics_of(config), requests_labels=False))
        patience = config.worker.transaction_timeout / 1000 + 10.0
        self.reader = LogReader(self.config.kafka, patience, OutputValues(topics_of(config)))

    def close(self) -> None:
        """Close the connections."""
        self.reader.close()
        super().close()

    def log(self, partition: int) -> PartitionLog:
        """Return the log of a partition."""
        return PartitionLog(self.reader, self.topics, partition)

    @contextmanager
    def second_log(self, partition: int) -> Iterator[PartitionLog]:
        """Return the log of a partition, with a connection of its own, to be read beside the others."""
        values = OutputValues(self.topics)
        with LogReader(self.config.kafka, self.reader.patience, values) as reader:
            yield PartitionLog(reader, self.topics, partition)

    def committed_state(
        self, partition: int, signer: StateSigner | Literal["present"] | None = "present"
    ) -> CommittedState | None:
        """Return the committed state record of a partition; None if nothing was committed yet.

        Parameters
        ----------
        partition
            Number of the partition.
        signer
            Checks its MAC; by default that of `checkpoint.key`, if it is set.

        Raises
        ------
        ConfigError
            There is no such partition.
        StateError
            If no worker committed the offsets, or their state record is missing.
        """
        if partition >= self.partitions:
            raise ConfigError(f"--partition {partition}: there are partitions 0 to {self.partitions - 1}")
        offsets = self.committed_offsets([partition])[partition]
        position = position_of(partition, offsets, self.topics, lambda _: 0)
        if position.state_offset is None:
            return None
        checked_by = self.signer if signer == "present" else signer
        state = read_state(self.log(partition), position, checked_by)
        return CommittedState(position.state_offset, state)

    def all_committed_states(self) -> list[CommittedState]:
        """Return the committed state records of all partitions, each of which has to have one.

        Raises
        ------
        StateError
            If nothing was committed for a partition yet, and as `committed_state`.
        """
        found = []
        for number in range(self.partitions):
            committed_state = self.committed_state(number)
            if committed_state is None:
                raise StateError(
                    f"nothing was committed for partition {number} yet, so workers with other settings could "
                    "start there. Run a worker until each partition has had a message, then retry"
                )
            found.append(committed_state)
        return found

    def snapshot(self, partition: int) -> tuple[State, bytes]:
        """Return the state record of a partition, and the bytes of its snapshot.

        Raises
        ------
        StateError
            If there is no snapshot, or it is damaged.
        """
        committed_state = self.committed_state(partition)
        if committed_state is None or committed_state.state.snapshot is None:
            raise StateError(
                f"group {self.config.kafka.group} has no snapshot of partition {partition} yet: a worker "
                "writes one after checkpoint.outcomes or checkpoint.interval, and when it stops"
            )
        return committed_state.state, snapshot_bytes(self.log(partition), committed_state.state.snapshot)
