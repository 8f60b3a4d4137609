"""Restore the model of a partition from its committed state record, as a worker does, but nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pipeline.kafka.committed import CommittedPosition
from pipeline.log.partition_log import PartitionLog
from pipeline.model.factory import ModelFactory
from pipeline.recovery.libraries import arithmetic_of
from pipeline.recovery.settings_check import refuse_other_settings
from pipeline.recovery.signature import StateSigner
from pipeline.recovery.state_reader import read_snapshot, read_state
from pipeline.recovery.table_rows import restore_tables
from pipeline.serving.partition import Restored, TableFollower
from pipeline.serving.served_model import ServedModel
from pipeline.task.state import State


class ModelRestorer:
    """Restores models, each with the settings of its state record.

    Parameters
    ----------
    factory
        Makes models. Its tables and limits are those of the workers; learner, challengers, kind of features
        and target follow the state records.
    partitions
        Number of partitions of each topic.
    signer
        Checks the MAC of state records; None where `checkpoint.key` is not set.
    follow_tables
        Returns what applies the records of live tables to a model from now on.
    """

    def __init__(
        self,
        factory: ModelFactory,
        partitions: int,
        signer: StateSigner | None,
        follow_tables: Callable[[ServedModel], TableFollower],
    ) -> None:
        self._factory = factory
        self._partitions = partitions
        self._signer = signer
        self._follow_tables = follow_tables
        self._warm = [factory.settings(partitions)]

    def begin(self, log: PartitionLog, position: CommittedPosition) -> Iterator[int | tuple[Restored, int]]:
        """Restore from what the group has committed: see `resume`.

        A group that has committed nothing has a model that has learned nothing.

        Parameters
        ----------
        log
            The log of the partition.
        position
            What the group has committed for it.
        """
        if position.state_offset is not None:
            state = read_state(log, position, self._signer)
            yield from self.resume(log, state)
            return
        factory, model = self._factory, self._factory.new_model()
        tables = yield from restore_tables(log, factory.features.tables, None)
        served = ServedModel(
            log.partition,
            model,
            factory.settings(self._partitions),
            0,
            rows=[table.rows for table in tables],
            versions={table.features.name: table.offset for table in tables},
        )
        yield Restored(served, None, self._follow_tables(served)), 0

    def resume(self, log: PartitionLog, state: State) -> Iterator[int | tuple[Restored, int]]:
        """Restore from a state record: the snapshot that it names, and the live tables as it says.

        Parameters
        ----------
        log
            The log of the partition.
        state
            The state record.

        Yields
        ------
        int or tuple of Restored and int
            How many records are left to read; at last the model, and the offset from which it has to learn
            outcomes.

        Raises
        ------
        StateError
            The state record is of settings that this follower cannot follow, or a table is not as it says.
        KafkaException
            A topic cannot be read for now.
        """
        factory = self._factory.with_saved_settings(state.settings)
        refuse_other_settings(state, factory.settings(self._partitions))
        self._warm_up(factory)
        model, state = read_snapshot(log, state, factory.new_model)
        tables = yield from restore_tables(log, factory.features.tables, state)
        served = ServedModel(
            state.partition,
            model,
            state.settings,
            len(state.earlier),
            arithmetic=arithmetic_of(state),
            rows=[table.rows for table in tables],
            versions={table.features.name: table.offset for table in tables},
        )
        begin = state.snapshot.outcome_offset if state.snapshot else 0
        yield Restored(served, state, self._follow_tables(served)), begin

    def _warm_up(self, factory: ModelFactory) -> None:
        """Compile what models of these settings call, once."""
        settings = factory.settings(self._partitions)
        if settings not in self._warm:
            self._warm.append(settings)
            factory.warm_up()
