"""Which features the learner's sparse part reads, and which scores it adds to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PREFIX: Final = "score_"
"""What begins the names of the scores among the features."""
SEEN: Final = ("fields", "pairs", "binned")
"""Scores that the dense part of the learner sees, the mixture of all aside."""
HIDDEN: Final = ("pairs_fading", "binned_pairs", "binned_pairs_fading")
"""Those that it does not see."""
HIDDEN_WITHOUT_PAIRS: Final = ("fading", "binned_fading")
"""The same where there are no pairs."""
OTHERS: Final = ("constant", "dense")
"""The score of the constant, and that of the dense part."""


@dataclass(frozen=True, slots=True)
class SparseLayout:
    """What the sparse part has of a stream.

    Attributes
    ----------
    fields
        Places of its categories among the features.
    words
        Places of the words of its texts.
    numbers
        Places of the numbers that are binned.
    pairs
        Whether there are weights for pairs.
    crosses
        Further crosses, as `forks.sparse.SparseSettings` has them.
    first_score
        Place of the first score.
    base
        Place of the log-odds that all scores start from; None for none.
    scores
        Names of the scores among the features, which follow one another: see `forks.sparse.plan.Columns`.
    seen
        How many of them, from the first on, the dense part of the learner sees; the last is its offset.
    """

    fields: tuple[int, ...]
    words: tuple[int, ...]
    numbers: tuple[int, ...]
    pairs: bool
    crosses: tuple[tuple[int, ...], ...]
    first_score: int
    base: int | None
    scores: tuple[str, ...]
    seen: int

    @property
    def mixture(self) -> int:
        """The place of the mixture of all scores but that of the dense part."""
        return self.first_score + self.seen - 1

    @property
    def hidden(self) -> range:
        """The places of the scores that the dense part does not see."""
        return range(self.first_score + self.seen, self.first_score + len(self.scores))


def score_names(numbers: int, *, crosses: bool) -> tuple[tuple[str, ...], int]:
    """Return the names of the scores, and how many the dense part sees.

    Parameters
    ----------
    numbers
        Number of numbers that are binned.
    crosses
        Whether there are weights for pairs or other crosses.

    Examples
    --------
    >>> score_names(0, crosses=False)
    (('score_fields', 'score_mixture', 'score_fading', 'score_constant', 'score_dense'), 2)
    """
    seen = [name for name in SEEN if _is_there(name, numbers, crosses=crosses)]
    hidden = HIDDEN if crosses else HIDDEN_WITHOUT_PAIRS
    rest = [name for name in hidden if _is_there(name, numbers, crosses=crosses)]
    return _prefixed([*seen, "mixture", *rest, *OTHERS]), len(seen) + 1


def _is_there(name: str, numbers: int, *, crosses: bool) -> bool:
    return (crosses or "pairs" not in name) and (numbers > 0 or "binned" not in name)


def _prefixed(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(PREFIX + name for name in names)
