"""Verify that a snapshot has learned exactly the first outcomes of a log, without Kafka."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pipeline.errors import StateError
from pipeline.model.model import Model
from pipeline.model.snapshot import pack
from pipeline.records.outputs import Outcome

BATCH: Final = 1_000
"""Outcomes to learn at once, which takes a fraction of the time of one by one."""


def verify(candidate: Model, trusted: Model, outcomes: Iterable[tuple[int, Outcome]], begin: int) -> int:
    """Verify that two models have learned the same outcomes.

    The model that has learned fewer outcomes learns those that it lacks. Then both models have to have the
    same bytes. If the candidate is the one that learned, a difference that remains is found; one that
    learning has removed can have no effect. Both models are changed, and are of no use afterwards.

    Parameters
    ----------
    candidate
        Model to verify.
    trusted
        Model of the same settings that is known to have learned the log, possibly no outcome of it.
    outcomes
        Offsets and outcomes in order, from the first outcome that either model lacks, or an earlier one.
    begin
        Offset at which reading the outcomes began.

    Returns
    -------
    int
        An offset below which there is no outcome that the candidate had not learned.

    Raises
    ------
    StateError
        If the candidate has learned something else, or if outcomes are missing, so that this is unknown.
    """
    version = candidate.outcomes_learned
    earlier, later = sorted((candidate, trusted), key=lambda model: model.outcomes_learned)
    lowest = begin
    batch: list[Outcome] = []
    for offset, outcome in outcomes:
        expected = earlier.outcomes_learned + len(batch)
        if expected == later.outcomes_learned or outcome.sequence > expected:
            break
        if outcome.sequence < version:
            lowest = offset + 1
        if outcome.sequence == expected:
            batch.append(outcome)
        if len(batch) == BATCH:
            earlier.learn_many(batch)
            batch.clear()
    earlier.learn_many(batch)
    if earlier.outcomes_learned < later.outcomes_learned:
        raise StateError(
            f"outcome {earlier.outcomes_learned} is missing from the log, so whether the snapshot of "
            f"{version} outcomes belongs to it cannot be verified"
        )
    if pack(candidate) != pack(trusted):
        raise StateError(
            f"the snapshot is not the model of this log's first {version} outcomes: it is of another "
            "partition, another run or another arithmetic (docs/upgrading.md), or it was changed"
        )
    return lowest
