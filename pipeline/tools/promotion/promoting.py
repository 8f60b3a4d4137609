"""Swap the champion and a challenger of a group, in all partitions in one transaction."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.errors import StateError
from pipeline.model.factory import ModelFactory
from pipeline.model.model import Model
from pipeline.model.snapshot import pack
from pipeline.recovery.settings_check import refuse_other_settings
from pipeline.recovery.state_reader import read_snapshot
from pipeline.task.state import State
from pipeline.tools.checkpoint import CommittedState, Group
from pipeline.tools.checkpoint.installing import Replacement, install
from pipeline.tools.promotion.roles import swap, swapped, toml_lines


class Promotion:
    """Promotion of a challenger to the champion of a group.

    Parameters
    ----------
    group
        Group without members that runs under its configuration.
    name
        Name of the challenger, which has to be a FORKS learner.
    former
        Name of the present champion as a challenger.

    Raises
    ------
    ConfigError
        If there is no such challenger, it is a rival, or the other name cannot be used.
    StateError
        If the group runs under other settings or has members, or a partition has no state yet.
    """

    def __init__(self, group: Group, name: str, former: str) -> None:
        self._group, self._name, self._former = group, name, former
        self._config = swapped(group.config, name, former)
        self._before, self._after = ModelFactory(group.config), ModelFactory(self._config)
        self._committed_states = group.all_committed_states()
        for committed_state in self._committed_states:
            refuse_other_settings(committed_state.state, self._before.settings(group.partitions))
        group.refuse_members()
        self.outcomes = sum(map(_outcomes_since_snapshot, self._committed_states))
        """Number of outcomes to learn: at least those since the snapshots."""

    def run(self, progress: Callable[[int], None]) -> list[str]:
        """Learn to the end of the log, swap champion and challenger, and install the models.

        Parameters
        ----------
        progress
            Function to call now and then with the number of outcomes learned.

        Returns
        -------
        list of str
            Lines for the workers' forks.toml, in place of [learner] and all [challengers.NAME].

        Raises
        ------
        KafkaException
            If the transaction was not committed, or if that is not known.
        StateError
            If a worker has joined meanwhile, or outcomes are missing. Nothing has changed then.
        """
        settings, replacements, done = self._after.settings(self._group.partitions), [], 0
        for committed_state in self._committed_states:
            model = self._restored_model(committed_state.state)
            data = pack(swap(model, self._after.new_model(), self._name, self._former))
            replacements.append(Replacement.under(settings, committed_state, data))
            done += _outcomes_since_snapshot(committed_state)
            progress(done)
        install(self._group, replacements)
        return toml_lines(self._config, self._after)

    def _restored_model(self, state: State) -> Model:
        """Restore the model of all outcomes that the state record counts."""
        log = self._group.log(state.partition)
        model, usable = read_snapshot(log, state, self._before.new_model)
        begin = usable.snapshot.outcome_offset if usable.snapshot else 0
        for chunk in log.outcomes(begin, first=model.outcomes_learned, stop=state.outcomes, later=True):
            if not chunk:
                continue
            try:
                model.learn_columns(chunk.outcomes[model.outcomes_learned - chunk.sequences[0] :])
            except ValueError as error:
                raise StateError(f"partition {state.partition}: {error}") from error
        return model


def _outcomes_since_snapshot(committed_state: CommittedState) -> int:
    """Return the number of outcomes since the snapshot."""
    snapshot = committed_state.state.snapshot
    return committed_state.state.outcomes - (snapshot.outcomes_learned if snapshot else 0)
