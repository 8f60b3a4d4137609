"""From a partition's topics to its model under other settings."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import msgspec
import numpy as np
from pydantic import ValidationError

from pipeline.blueprint import Blueprint
from pipeline.checkpoint import Group
from pipeline.config import Learner
from pipeline.errors import ConfigError, StateError
from pipeline.log import Log, decoded
from pipeline.model import Model
from pipeline.rebuild.comparison import Comparison, PartitionFold, compare
from pipeline.rebuild.folding import CASE, Cases, refold
from pipeline.records import Outcome, Prediction
from pipeline.recovery import read_until, refuse_other_settings
from pipeline.snapshot import pack
from pipeline.state import SnapshotReference, State
from pipeline.topics import Topics

LOOK_EVERY = 1_000
"""Outcomes folded from one look at the model to the next."""

_OUTCOMES = msgspec.json.Decoder(Outcome)
_PREDICTIONS = msgspec.json.Decoder(Prediction)


class Rebuild:
    """All partitions of a group, folded once more.

    Parameters
    ----------
    group
        Whose outcomes; its members may go on meanwhile.
    changes
        The settings of the learner that differ from the configuration's, by name.

    Attributes
    ----------
    blueprint
        What the rebuilt models are made of.
    outcomes
        How many there are to fold.

    Raises
    ------
    ConfigError
        Naming the setting and what is accepted.
    StateError
        If the outputs were made under other settings than the configuration's.
    """

    def __init__(self, group: Group, changes: Mapping[str, Any]) -> None:
        self._group = group
        running = Blueprint(group.config)
        learner = group.config.learner
        try:
            changed = Learner.model_validate({"preset": learner.preset, **learner.overrides, **changes})
        except ValidationError as error:
            detail = error.errors()[0]
            raise ConfigError(f"learner.preset: {detail['msg']} (got {detail['input']!r})") from error
        self.blueprint = running.with_learner(changed)
        before, after = running.settings(group.partitions), self.blueprint.settings(group.partitions)
        self._changes = {name: (before[name], after[name]) for name in after if before[name] != after[name]}
        self._losses = running.learner.loss, self.blueprint.learner.loss
        found = [group.saved(partition) for partition in range(group.partitions)]
        self._states = [saved.state for saved in found if saved is not None]
        for state in self._states:
            refuse_other_settings(state, before)
        self.outcomes = sum(state.outcomes for state in self._states)

    def run(self, progress: Callable[[int], None], window: int | None = None) -> Comparison:
        """Fold, and compare.

        Parameters
        ----------
        progress
            Called now and then with the number of outcomes folded.
        window
            Labelled events in a window; by default a tenth of all.

        Raises
        ------
        StateError
            If records are missing, or no worker wrote them.
        """
        cases, folds, done = [], [], 0
        for state in self._states:
            found, fold = self._fold(state, partial(_told, progress, done))
            cases.append(found)
            folds.append(fold)
            done += state.outcomes
        return compare(cases, folds, self._losses, self._changes, window)

    def _fold(self, state: State, tell: Callable[[int], None]) -> tuple[Cases, PartitionFold]:
        group, snapshot, model = self._group, state.snapshot, self.blueprint.new_model()
        same: bool | None = None
        parts = []
        with Log(group.config.kafka, group.log.patience) as second_log:
            predictions = _predictions(second_log, group.topics, state)
            refolded = refold(model, predictions, _outcomes(group, state, model))
            while len(part := np.fromiter(islice(refolded, _until_next(model, snapshot)), CASE)):
                parts.append(part)
                tell(model.folded)
                if snapshot is not None and model.folded == snapshot.folded and not self._changes:
                    same = hashlib.sha256(pack(model)).hexdigest() == snapshot.sha256
        if model.folded < state.outcomes:
            raise StateError(
                f"outcome {model.folded} of partition {state.partition} is missing at the end: its state "
                f"record counts {state.outcomes}"
            )
        fold = PartitionFold(state.partition, model.folded, snapshot.folded if snapshot else None, same)
        return np.concatenate([np.empty(0, CASE), *parts]), fold


def _told(progress: Callable[[int], None], before: int, folded: int) -> None:
    progress(before + folded)


def _until_next(model: Model, snapshot: SnapshotReference | None) -> int:
    """Outcomes to fold before the next look at the model."""
    to_snapshot = snapshot.folded - model.folded if snapshot else 0
    return min(LOOK_EVERY, to_snapshot) if to_snapshot > 0 else LOOK_EVERY


def _outcomes(group: Group, state: State, model: Model) -> Iterator[Outcome]:
    """Those that the state record counts."""
    topic = group.topics.outcomes
    for messages in read_until(group.log, topic, state.partition, 0, lambda: state.outcomes - model.folded):
        for message in messages:
            outcome = decoded(_OUTCOMES, message)
            if outcome.sequence >= state.outcomes:
                return
            yield outcome


def _predictions(log: Log, topics: Topics, state: State) -> Iterator[Prediction]:
    """Those that the state record counts, and later ones."""
    taken = 0

    def left() -> int:
        return state.predictions - taken

    for messages in read_until(log, topics.predictions, state.partition, 0, left):
        for message in messages:
            prediction = decoded(_PREDICTIONS, message)
            taken = prediction.sequence + 1
            yield prediction
