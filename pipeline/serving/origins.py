"""Which outcomes the stored points of a learner came from, as far as it was seen to learn them."""

from __future__ import annotations

from itertools import takewhile

from forks import Forks
from pipeline.records.outcome_decoder import DecodedOutcomes


class PointOrigins:
    """The outcomes of stored points that have appeared while outcomes were learned here.

    A snapshot does not say which outcomes its stored points came from, so those of a restored model are not
    known until others take their place. A point of an example that another partition shared has no outcome
    in this partition.
    """

    def __init__(self) -> None:
        self._outcomes: dict[int, int | None] = {}
        """By the number of events that the learner had learned before, the outcome's sequence."""

    def of(self, learned_before: int | None) -> int | None:
        """Return the sequence of the outcome that was stored; None where it is not known."""
        return None if learned_before is None else self._outcomes.get(learned_before)

    def note(self, learner: Forks, updates: int, outcomes: DecodedOutcomes) -> None:
        """Note where the points come from that were stored while outcomes were learned.

        Parameters
        ----------
        learner
            The learner, which has learned them.
        updates
            Number of events that it had learned before.
        outcomes
            The outcomes.
        """
        stored = learner.stored_events
        new = [*takewhile(lambda each: each is not None and each >= updates, reversed(stored))]
        if not new:
            return
        learned = _learned_from(outcomes)
        if len(learned) == learner.updates - updates:
            self._outcomes.update((each, learned[each - updates]) for each in new if each is not None)
        kept = {*stored}
        self._outcomes = {each: found for each, found in self._outcomes.items() if each in kept}


def _learned_from(outcomes: DecodedOutcomes) -> list[int | None]:
    """Return, for each event that a learner learns of outcomes, the outcome's sequence; None for shared ones.

    A label of weight 0 is not learned, and one that replaces another is no event of its own.
    """
    learned: list[int | None] = []
    counts = outcomes.learned if outcomes.weights is None else outcomes.learned & (outcomes.weights != 0.0)
    for row, (sequence, counted) in enumerate(zip(outcomes.sequences, counts.tolist(), strict=True)):
        record = outcomes.records.get(row)
        for share in (record and record.shared) or ():
            learned += [None for example in share.examples if not example.weighted or example.weight]
        if counted and not (record and record.replaces):
            learned.append(sequence)
    return learned
