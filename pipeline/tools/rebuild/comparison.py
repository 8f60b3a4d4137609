"""Compare the running model with the rebuilt one over the same events, given their scores."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from forks import LossName
from forks.validation import Predictions, Summary, summarize
from pipeline.features.regression import RegressionTarget
from pipeline.features.target import Target
from pipeline.recovery.settings_check import Changes
from pipeline.tools.relearning import SCORED_OUTCOME, ScoredOutcomes


class PartitionRebuild(msgspec.Struct, frozen=True):
    """The rebuild of one partition."""

    partition: int
    outcomes: int
    """Outcomes that were learned."""
    snapshot: int | None
    """Outcomes in the snapshot that the group continues from."""
    same: bool | None
    """Whether the rebuilt model of as many outcomes has the same bytes; None under other settings, or where
    the group learned outcomes with another arithmetic."""
    other_arithmetic: int = 0
    """Outcomes that the group learned with another arithmetic, in other bits."""


class Comparison(msgspec.Struct, frozen=True):
    """Two models in figures, which are explained at `forks.validation.Metrics`.

    They cover all labelled events of all partitions, in the order of time, from the first one on.
    """

    events: int
    changes: Changes
    """Settings that differ: their present and their new value; None where a setting does not exist."""
    partitions: list[PartitionRebuild]
    running: Summary | None
    """None if no event has a label yet, as `rebuilt`. Its scores are those of the topics, from all epochs of
    settings. If the epochs had different losses, the scores are no log-odds, and hinge loss is reported."""
    rebuilt: Summary | None
    scale: float | None = None
    """`target.scale`, where numbers are predicted: the figures of two classes say nothing then, and `loss` is
    the mean squared error in units of it."""
    installed: list[str] | None = None
    """Lines for [learner] of forks.toml, if the rebuilt models were installed."""


def compare(
    scored_outcomes: Sequence[ScoredOutcomes],
    partitions: Sequence[PartitionRebuild],
    losses: tuple[LossName, LossName],
    changes: Changes,
    *,
    target: Target,
    window: int | None = None,
) -> Comparison:
    """Compare the scores of all partitions.

    Parameters
    ----------
    scored_outcomes
        Scored outcomes of each partition, shape (n,), of type `SCORED_OUTCOME`.
    partitions
        Rebuild of each partition.
    losses
        Losses of the running and of the rebuilt model.
    changes
        Settings in which the models differ.
    target
        The rules that say what both models are taught.
    window
        Labelled events in a window; by default a tenth of all.

    Returns
    -------
    Comparison
        Figures of both models.
    """
    together = np.concatenate([np.empty(0, SCORED_OUTCOME), *scored_outcomes])
    labelled = together[together["labelled"]]
    events = labelled[np.argsort(labelled["timestamp"], kind="stable")]
    running, rebuilt = (
        summarize(
            Predictions(events[name], target.taught_many(loss, events["watch_ratio"])),
            loss=loss,
            window=window,
        )
        if len(events)
        else None
        for name, loss in zip(("running", "rebuilt"), losses, strict=True)
    )
    scale = target.scale if isinstance(target, RegressionTarget) else None
    return Comparison(len(events), changes, list(partitions), running, rebuilt, scale)
