"""Rebuild the models of a group from its topics under other settings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np

from forks import LossName
from pipeline.config.settings import Learner
from pipeline.errors import ConfigError
from pipeline.model.challengers import parse_learner
from pipeline.model.factory import ModelFactory
from pipeline.model.model import Model
from pipeline.model.settings_text import as_toml
from pipeline.model.snapshot import pack
from pipeline.recovery.libraries import derivable_from
from pipeline.recovery.settings_check import differences, refuse_other_settings
from pipeline.task.state import SnapshotReference, State
from pipeline.tools.checkpoint import Group
from pipeline.tools.checkpoint.installing import Replacement, install
from pipeline.tools.rebuild.comparison import Comparison, PartitionRebuild, compare
from pipeline.tools.relearning import SCORED_OUTCOME, ScoredOutcomes, relearn

PROGRESS_EVERY = 1_000
"""Outcomes between two calls of the progress function."""


class Rebuild:
    """Rebuild of the models of all partitions of a group.

    Parameters
    ----------
    group
        Group whose outcomes are learned. Its workers may go on meanwhile, unless the result is installed.
    changes
        Settings of the learner that differ from the configuration, by name.
    check
        Whether the configuration has to be the one that the group runs under. Otherwise its learner and
        its challengers may differ too.

    Attributes
    ----------
    factory
        Factory of the rebuilt models.
    changes
        Settings that differ from the state records: their present and their new value.
    outcomes
        Number of outcomes to learn.

    Raises
    ------
    ConfigError
        If a setting is unknown or its value is not accepted.
    StateError
        If settings other than those of the learner and the challengers differ.
    """

    def __init__(self, group: Group, changes: Mapping[str, Any], *, check: bool) -> None:
        self._group = group
        self._learner = _changed(group.config.learner, changes)
        found = map(group.committed_state, range(group.partitions))
        self._committed_states = [state for state in found if state is not None]
        running = ModelFactory(group.config)
        self.factory = running.with_learner(self._learner)
        if self._committed_states and not check:
            running = running.with_saved_settings(self._committed_states[0].state.settings)
        before, after = running.settings(group.partitions), self.factory.settings(group.partitions)
        for committed_state in self._committed_states:
            refuse_other_settings(committed_state.state, before)
        self._settings = after
        self.changes = differences(before, after)
        self._losses = self._running_loss(running.learner.loss), self.factory.learner.loss
        self._models: list[bytes] = []
        self.outcomes = sum(committed_state.state.outcomes for committed_state in self._committed_states)

    def run(self, progress: Callable[[int], None], window: int | None = None) -> Comparison:
        """Learn all outcomes under the new settings, and compare the models.

        Parameters
        ----------
        progress
            Function to call now and then with the number of outcomes learned.
        window
            Labelled events in a window; by default a tenth of all.

        Returns
        -------
        Comparison
            Figures of the running and the rebuilt models.

        Raises
        ------
        StateError
            If records are missing, or no worker wrote them.
        """
        scored_outcomes, partition_rebuilds, done = [], [], 0
        self._models.clear()
        for _, state in self._committed_states:
            found, partition_rebuild, model = self._rebuild(state, partial(_report_progress, progress, done))
            scored_outcomes.append(found)
            partition_rebuilds.append(partition_rebuild)
            self._models.append(pack(model))
            done += state.outcomes
        target = self.factory.target
        return compare(
            scored_outcomes, partition_rebuilds, self._losses, self.changes, target=target, window=window
        )

    def refuse_install(self) -> None:
        """Raise an error if rebuilt models could not be installed.

        Raises
        ------
        ConfigError
            If no setting differs.
        StateError
            If a partition has no state, or the group has members.
        """
        if not self.changes:
            raise ConfigError(
                "--install: there is nothing to install, since the group runs under these settings. Change a "
                "setting, such as --set learner.budget=200, or configure other challengers"
            )
        self._group.all_committed_states()
        self._group.refuse_members()

    def install(self) -> list[str]:
        """Let the group continue from the rebuilt models, in all partitions at once; call `run` before.

        Returns
        -------
        list of str
            Lines for the section [learner] of the workers' forks.toml.

        Raises
        ------
        KafkaException
            If the transaction was not committed, or if that is not known.
        StateError
            As `refuse_install`, or if a worker has gone on since. Nothing has changed then.
        """
        self.refuse_install()
        replacements = [
            Replacement.under(self._settings, committed_state, data)
            for committed_state, data in zip(self._committed_states, self._models, strict=True)
        ]
        install(self._group, replacements)
        learner = self.factory.learner
        lines = [f"{name} = {as_toml(getattr(learner, name))}" for name in self._learner.overrides]
        return [f"preset = {as_toml(self._learner.preset)}", *lines]

    def _running_loss(self, present: LossName) -> LossName:
        """Return the loss for the written scores: hinge loss if an earlier epoch had another loss."""
        earlier = {
            epoch.settings["learner.loss"] for _, state in self._committed_states for epoch in state.earlier
        }
        return present if earlier <= {present} else "hinge"

    def _rebuild(
        self, state: State, progress: Callable[[int], None]
    ) -> tuple[ScoredOutcomes, PartitionRebuild, Model]:
        group, snapshot, model = self._group, state.snapshot, self.factory.new_model()
        same: bool | None = None
        others = derivable_from(state).outcomes
        parts = []
        with group.second_log(state.partition) as log:
            chunks = log.predictions(0, first=0, stop=state.predictions, later=True)
            predictions = chain.from_iterable(chunk.predictions for chunk in chunks)
            outcomes = group.log(state.partition).outcome_records(state.outcomes)
            scored = relearn(model, predictions, outcomes)
            while len(part := np.fromiter(islice(scored, _until_next(model, snapshot)), SCORED_OUTCOME)):
                parts.append(part)
                progress(model.outcomes_learned)
                if (
                    snapshot is not None
                    and model.outcomes_learned == snapshot.outcomes_learned
                    and not (self.changes or others)
                ):
                    same = hashlib.sha256(pack(model)).hexdigest() == snapshot.sha256
        partition_rebuild = PartitionRebuild(
            state.partition,
            model.outcomes_learned,
            snapshot.outcomes_learned if snapshot else None,
            same,
            others,
        )
        return np.concatenate([np.empty(0, SCORED_OUTCOME), *parts]), partition_rebuild, model


def _changed(learner: Learner, changes: Mapping[str, Any]) -> Learner:
    return parse_learner("learner", {"preset": learner.preset, **learner.overrides, **changes})


def _report_progress(progress: Callable[[int], None], before: int, learned: int) -> None:
    progress(before + learned)


def _until_next(model: Model, snapshot: SnapshotReference | None) -> int:
    """Return the number of outcomes up to the next progress report or the snapshot."""
    to_snapshot = snapshot.outcomes_learned - model.outcomes_learned if snapshot else 0
    return min(PROGRESS_EVERY, to_snapshot) if to_snapshot > 0 else PROGRESS_EVERY
