"""Whether a snapshot is the fold of a log's outcomes. Pure: models and outcomes in, a proof out."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pipeline.errors import StateError
from pipeline.model.model import Model
from pipeline.model.snapshot import pack
from pipeline.records.outputs import Outcome

BATCH: Final = 1_000
"""Outcomes folded together, which costs a fraction of one by one."""


def verify(candidate: Model, trusted: Model, outcomes: Iterable[tuple[int, Outcome]], begin: int) -> int:
    """Make sure that two models are folds of the same outcomes.

    The one that has folded fewer folds those that it lacks; then both have to have the same bytes. What
    an earlier candidate differs in shows then, or it was forgotten on the way and can never show.
    Both models are used up.

    Parameters
    ----------
    candidate
        What is to be proved.
    trusted
        A model of the same settings that is known to be the fold, if only of no outcome at all.
    outcomes
        With their offsets, in order, from the lesser count of the two on or before.
    begin
        Where reading them began: no outcome that they do not hold is later than this.

    Returns
    -------
    int
        An offset below which no outcome lies that the candidate has not folded.

    Raises
    ------
    StateError
        If the candidate is not the fold, or outcomes are missing so that nobody can tell.
    """
    version = candidate.folded
    earlier, later = sorted((candidate, trusted), key=lambda model: model.folded)
    lowest = begin
    batch: list[Outcome] = []
    for offset, outcome in outcomes:
        expected = earlier.folded + len(batch)
        if expected == later.folded or outcome.sequence > expected:
            break
        if outcome.sequence < version:
            lowest = offset + 1
        if outcome.sequence == expected:
            batch.append(outcome)
        if len(batch) == BATCH:
            earlier.learn_many(batch)
            batch.clear()
    earlier.learn_many(batch)
    if earlier.folded < later.folded:
        raise StateError(
            f"outcome {earlier.folded} is missing from the log, so nobody can tell whether the snapshot of "
            f"{version} outcomes belongs to it"
        )
    if pack(candidate) != pack(trusted):
        raise StateError(
            f"the snapshot is not the model of this log's first {version} outcomes: it is of another "
            "partition, another run or another machine, or it was changed"
        )
    return lowest
