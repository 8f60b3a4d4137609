"""Settings of the sparse part, and its constants."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

from forks.sparse.table import WAYS

BIAS_VARIANCE: Final = 4.0
"""Prior variance of the bias. This and the following hold for labels whose variance is 1, or for log-odds.
They were chosen on the files that docs/measurements.md names."""
FIELD_VARIANCE: Final = 2.0
"""Sum of the prior variances of an event's categories and bins."""
PAIR_VARIANCE: Final = 1.0
"""Sum of the prior variances of an event's crosses."""
WORD_VARIANCE: Final = 0.2
"""Prior variance of a word."""
FADING: Final = 0.01
"""Share by which a fading variance grows with each use, up to the prior."""
LARGEST_CAPACITY: Final = 2**26
"""Largest number of rows of the table."""
MOST_FIELDS: Final = 256
"""Largest number of categories and numbers, whose pairs grow with the square."""
MOST_WORDS: Final = 1024
"""Largest number of words of an event."""
MOST_CROSSED: Final = 3
"""Largest number of categories and numbers of a cross."""
LARGEST_LABEL: Final = 1e30
"""Largest accepted absolute value of a label of squared loss, as weights have 32 bits."""


@dataclass(frozen=True)
class SparseSettings:
    """Settings of the sparse part.

    Attributes
    ----------
    fields
        Number of categories of an event, >= 0.
    numbers
        Number of numbers of an event that count as categories too, by the bin that they are in, >= 0.
    words
        Largest number of words of an event, >= 0.
    loss
        ``logistic`` (labels -1, +1) or ``squared``.
    pairs
        Whether there is a weight for each pair of categories and bins.
    crosses
        Further weights for two or three categories and bins together: places among an event's categories,
        words and numbers, in ascending order. Words cannot be crossed.
    capacity
        Number of rows of the table: a power of two, at least 8. A row has the weights of one category, word,
        bin or pair. When the places of a new one are taken, that which was learned longest ago is forgotten.

    Raises
    ------
    ValueError
        A setting is out of its range; the message names it and the accepted values.

    Examples
    --------
    >>> SparseSettings(fields=3).crossed, SparseSettings(fields=3, pairs=False, crosses=((0, 1, 2),)).crossed
    (((0, 1), (0, 2), (1, 2)), ((0, 1, 2),))
    >>> settings = SparseSettings(fields=2, words=1, numbers=1)
    >>> settings.inputs, settings.members
    (4, (0, 1, 3))
    >>> SparseSettings(fields=0)
    Traceback (most recent call last):
        ...
    ValueError: fields = 0 is not accepted: there must be a field, a number or a word
    """

    fields: int
    numbers: int = 0
    words: int = 0
    loss: Literal["logistic", "squared"] = "logistic"
    pairs: bool = True
    crosses: tuple[tuple[int, ...], ...] = ()
    capacity: int = 2**20

    def __post_init__(self) -> None:
        for name, most in (("fields", MOST_FIELDS), ("numbers", MOST_FIELDS), ("words", MOST_WORDS)):
            value = getattr(self, name)
            self._require(name, f"it must be an integer from 0 to {most}", _is_count(value, most))
        self._require(
            "fields", "there must be a field, a number or a word", self.fields + self.numbers + self.words > 0
        )
        self._require("loss", "it must be 'logistic' or 'squared'", self.loss in {"logistic", "squared"})
        self._require("pairs", "it must be true or false", type(self.pairs) is bool)
        self._require(
            "crosses",
            "each must be two or three places in ascending order, none of them of a word",
            all(self._can_be_crossed(each) for each in self.crosses),
        )
        self._require(
            "capacity",
            f"it must be a power of two from {WAYS} to {LARGEST_CAPACITY}",
            _is_count(self.capacity, LARGEST_CAPACITY)
            and self.capacity >= WAYS
            and self.capacity.bit_count() == 1,
        )

    @property
    def inputs(self) -> int:
        """Number of columns of an event that the part reads."""
        return self.fields + self.words + self.numbers

    @property
    def members(self) -> tuple[int, ...]:
        """The places of what can be crossed: categories and numbers."""
        return (*range(self.fields), *range(self.fields + self.words, self.inputs))

    @property
    def crossed(self) -> tuple[tuple[int, ...], ...]:
        """All that is crossed, each once: the pairs, then further crosses."""
        pairs = [pair for pair in combinations(self.members, 2) if self.pairs]
        return tuple(dict.fromkeys([*sorted(pairs, key=_last), *self.crosses]))

    def _can_be_crossed(self, places: tuple[int, ...]) -> bool:
        return 2 <= len(places) <= MOST_CROSSED and [*places] == sorted({*places} & {*self.members})

    def _require(self, field: str, accepted: str, holds: bool) -> None:
        if not holds:
            raise ValueError(f"{field} = {getattr(self, field)!r} is not accepted: {accepted}")


def _last(places: tuple[int, ...]) -> int:
    return places[-1]


def _is_count(value: object, most: int) -> bool:
    return type(value) is int and 0 <= value <= most
