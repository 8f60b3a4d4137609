"""How well slates are ordered: NDCG and hit rate of learners and of the order shown, and rates by position.

The discount and the linear gain are those of Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR
techniques", ACM TOIS 20(4), 2002. Items of equal score share the mean of their discounts, as in McSherry and
Najork, "Computing information retrieval performance measures efficiently in the presence of tied scores",
ECIR 2008.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]

SHOWN: Final = "shown order"
"""The name of the order in which items were shown."""
DEFAULT_TOP: Final = 5
"""The first items of a ranking that count, unless their number is given."""


class SlateSize(msgspec.Struct):
    """The fields of a slate's prediction that the figures need."""

    sequence: int
    items: list[msgspec.Raw]


SLATE_SIZES: Final = msgspec.json.Decoder(SlateSize)


class RankFigures(msgspec.Struct, frozen=True):
    """Figures of one ranking. A standard error is that of a mean over slates, None of fewer than two."""

    name: str
    """A learner, or the order shown."""
    ndcg: float
    """Mean NDCG of the first items."""
    ndcg_error: float | None
    hit_rate: float
    """Share of slates with a positive label among the first items; of equal scores they are last."""
    hit_rate_error: float | None
    gain: float
    """Mean of NDCG minus that of the order shown, slate by slate."""
    gain_error: float | None


class PositionRate(msgspec.Struct, frozen=True):
    """The items that were shown at one position."""

    position: int
    """From 0."""
    items: int
    rate: float
    """Share of them with a positive label."""
    error: float | None
    """Standard error of that share; None of fewer than two items."""


class Ranking(msgspec.Struct, frozen=True):
    """Figures over closed slates of the current settings epoch: those of which each item has its outcome.

    An item without a label counts as one without a positive label.
    """

    slates: int
    """Closed slates that all learners scored."""
    with_positive: int
    """Those of them with a positive label. `rankings` are of these."""
    top: int
    """The first items of a ranking that count."""
    rankings: list[RankFigures]
    """Of the order shown, then of the champion, then of the challengers."""
    positions: list[PositionRate]
    """Over all closed slates."""


class ClosedSlates(NamedTuple):
    """The items of closed slates, one slate after the other, each in the order shown; shapes (items,)."""

    slates: Integers
    """The number of each item's slate, ascending."""
    positions: Integers
    gains: Floats
    """What it is worth to rank the item first, from 0 on: 1 for a positive label."""
    scores: Mapping[str, Floats]
    """By learner, the champion first."""


def closed_slates(
    sequences: Integers,
    positions: Integers,
    gains: Floats,
    scores: Mapping[str, Floats],
    sizes: Mapping[int, int],
) -> ClosedSlates:
    """Return the closed slates among outcomes of one partition.

    Parameters
    ----------
    sequences, positions, gains
        Of the outcomes in any order, shapes (n,).
    scores
        Scores of the outcomes by learner, each of shape (n,); NaN where a learner gave none. A slate with
        such an item is left out.
    sizes
        Items of each slate by the sequence of its prediction.
    """
    order = np.lexsort((positions, sequences))
    sequences = sequences[order]
    _, numbers, counts = np.unique(sequences, return_inverse=True, return_counts=True)
    begins = np.cumsum(counts) - counts
    wanted = [sizes.get(sequence, -1) for sequence in sequences[begins].tolist()]
    closed = counts == np.array(wanted, dtype=np.int64)
    scored = np.ones(len(order), dtype=np.bool_)
    for each in scores.values():
        scored &= ~np.isnan(each[order])
    closed &= np.bincount(numbers, weights=~scored, minlength=len(counts)) == 0
    rows = np.flatnonzero(closed[numbers]) if len(numbers) else np.empty(0, dtype=np.int64)
    kept = order[rows]
    return ClosedSlates(
        numbers[rows], positions[kept], gains[kept], {name: each[kept] for name, each in scores.items()}
    )


def ranking(partitions: Sequence[ClosedSlates], top: int = DEFAULT_TOP) -> Ranking | None:
    """Compare the rankings of all partitions' closed slates; None if there are none.

    Parameters
    ----------
    partitions
        Closed slates of each partition.
    top
        The first items of a ranking that count.

    Examples
    --------
    >>> slates = np.array([0, 0, 0, 1, 1, 1])
    >>> positions, gains = np.array([0, 1, 2, 0, 1, 2]), np.array([0.0, 1, 0, 1, 0, 0])
    >>> scores = {"champion": np.array([0.1, 0.5, 0.2, 0.5, 0.1, 0.2])}
    >>> found = ranking([ClosedSlates(slates, positions, gains, scores)], top=1)
    >>> [(each.name, each.ndcg, each.gain) for each in found.rankings]
    [('shown order', 0.5, 0.0), ('champion', 1.0, 0.5)]
    """
    partitions = [each for each in partitions if len(each.slates)]
    if not partitions:
        return None
    together = _together(partitions)
    begins = np.flatnonzero(np.diff(together.slates, prepend=-1))
    positive = np.maximum.reduceat(together.gains, begins) > 0
    orders = {SHOWN: -together.positions.astype(np.float64), **together.scores}
    found = {name: _by_slate(together, scores, begins, top) for name, scores in orders.items()}
    shown, _ = found[SHOWN]
    figures = []
    if positive.any():
        for name, (ndcg, hits) in found.items():
            gains = ndcg[positive] - shown[positive]
            means = (_mean(ndcg[positive]), _mean(hits[positive]), _mean(gains))
            figures.append(RankFigures(name, *means[0], *means[1], *means[2]))
    return Ranking(len(begins), int(positive.sum()), top, figures, _positions(together))


def _together(partitions: Sequence[ClosedSlates]) -> ClosedSlates:
    """Return the slates of all partitions, numbered from 0."""
    slates, count = [], 0
    for each in partitions:
        _, numbers = np.unique(each.slates, return_inverse=True)
        slates.append(numbers + count)
        count += int(numbers[-1]) + 1
    names = partitions[0].scores
    return ClosedSlates(
        np.concatenate(slates),
        np.concatenate([each.positions for each in partitions]),
        np.concatenate([each.gains for each in partitions]),
        {name: np.concatenate([each.scores[name] for each in partitions]) for name in names},
    )


def _by_slate(closed: ClosedSlates, scores: Floats, begins: Integers, top: int) -> tuple[Floats, Floats]:
    """Return NDCG and whether there is a hit of each slate, when its items are ranked by these scores."""
    order = np.lexsort((-scores, closed.slates))
    gains, ranked = closed.gains[order], scores[order]
    ranks = np.arange(len(order)) - begins[closed.slates]
    discounts = _discounts(ranks, top)
    new = np.diff(ranked, prepend=np.nan) != 0
    new[begins] = True
    ties = np.flatnonzero(new)
    lengths = np.diff([*ties, len(order)])
    shared = np.repeat(np.add.reduceat(discounts, ties) / lengths, lengths)
    last = np.repeat(ranks[ties] + lengths - 1, lengths)
    ideal = closed.gains[np.lexsort((-closed.gains, closed.slates))]
    best = np.add.reduceat(ideal * discounts, begins)
    reached = np.add.reduceat(gains * shared, begins)
    ndcg = np.divide(reached, best, out=np.zeros(len(begins)), where=best > 0)
    return ndcg, np.maximum.reduceat(((gains > 0) & (last < top)).astype(np.float64), begins)


def _discounts(ranks: Integers, top: int) -> Floats:
    return np.where(ranks < top, 1.0 / np.log2(ranks + 2.0), 0.0)


def _positions(closed: ClosedSlates) -> list[PositionRate]:
    found = []
    for position in np.unique(closed.positions).tolist():
        positive = (closed.gains[closed.positions == position] > 0).astype(np.float64)
        found.append(PositionRate(position, len(positive), *_mean(positive)))
    return found


def _mean(values: Floats) -> tuple[float, float | None]:
    """Return the mean, and its standard error."""
    error = float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return float(np.mean(values)), error
