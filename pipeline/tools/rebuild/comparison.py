"""The running model beside the rebuilt one, over the same events. Pure: arrays in, figures out."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from forks import LossName
from forks.validation import Predictions, Summary, summarize
from pipeline.features.target import TARGET
from pipeline.recovery.settings_check import Changes
from pipeline.tools.rebuild.replay_outcomes import SCORED_OUTCOME, ScoredOutcomes


class PartitionRebuild(msgspec.Struct, frozen=True):
    """What was folded of a partition."""

    partition: int
    outcomes: int
    snapshot: int | None
    """Outcomes in the snapshot that the group continues from."""
    same: bool | None
    """Whether the rebuilt snapshot of as many has the very bytes; None under other settings."""


class Comparison(msgspec.Struct, frozen=True):
    """Two models in figures, explained at `forks.validation.Figures`.

    Every labelled event of all partitions counts, in the order of their time, from the first one on.
    """

    events: int
    changes: Changes
    """The settings in which the two differ: as they are, and as here; None where one is not there."""
    partitions: list[PartitionRebuild]
    running: Summary | None
    """None where no event has a label yet, as `rebuilt`. Its scores are those that were written, in whichever
    era; with another loss in one of them they are no log-odds, and are judged by hinge loss."""
    rebuilt: Summary | None
    installed: list[str] | None = None
    """Lines for [learner] of forks.toml, if the group goes on under these settings from now on."""


def compare(
    scored_outcomes: Sequence[ScoredOutcomes],
    partitions: Sequence[PartitionRebuild],
    losses: tuple[LossName, LossName],
    changes: Changes,
    window: int | None = None,
) -> Comparison:
    """Sum up the cases of all partitions.

    Parameters
    ----------
    cases, partitions
        What there is of each partition.
    losses
        The running model's, and the rebuilt one's.
    changes
        The settings in which they differ.
    window
        Labelled events in a window; by default a tenth of all.
    """
    together = np.concatenate([np.empty(0, SCORED_OUTCOME), *scored_outcomes])
    labelled = together[together["labelled"]]
    events = labelled[np.argsort(labelled["timestamp"], kind="stable")]
    running, rebuilt = (
        summarize(
            Predictions(events[name], TARGET.values(loss, events["watched"], events["watch_ratio"])),
            loss=loss,
            window=window,
        )
        if len(events)
        else None
        for name, loss in zip(("running", "rebuilt"), losses, strict=True)
    )
    return Comparison(len(events), changes, list(partitions), running, rebuilt)
