"""What the sparse part computes for an event: its variants, kinds of weights, and columns of scores.

What suits one stream costs on another, so several variants run side by side, and a mixture of them finds out.
Each has a weight of its own for a category; with pairs, with bins, and with variances that grow anew (fading)
there are up to six. The weights of one category stand together in a row of the table, in an order of the
variants in which those that a kind of weights takes part in are neighbours.
"""

from __future__ import annotations

from typing import Final, NamedTuple, Self

import numpy as np

from forks.losses import LOGISTIC, SQUARED
from forks.sparse.scores import BIN, BINNED_PAIR, FIELD, KINDS, NO_MEMBER, PAIR, WORD, Plan
from forks.sparse.settings import (
    FADING,
    FIELD_VARIANCE,
    MOST_CROSSED,
    PAIR_VARIANCE,
    WORD_VARIANCE,
    SparseSettings,
)


class Variant(NamedTuple):
    """One of the models that run side by side."""

    name: str
    """What begins the name of its score."""
    pairs: bool
    """Whether it has weights of pairs and other crosses."""
    bins: bool
    """Whether it has weights of bins."""
    fading: bool
    """Whether its variances grow with each use."""
    seen: bool
    """Whether the dense learner sees its score."""


VARIANTS: Final = (
    Variant("fields", pairs=False, bins=False, fading=False, seen=True),
    Variant("pairs", pairs=True, bins=False, fading=False, seen=True),
    Variant("pairs_fading", pairs=True, bins=False, fading=True, seen=False),
    Variant("binned_pairs", pairs=True, bins=True, fading=False, seen=False),
    Variant("binned_pairs_fading", pairs=True, bins=True, fading=True, seen=False),
    Variant("binned", pairs=False, bins=True, fading=False, seen=True),
)
"""All variants."""
WITHOUT_PAIRS: Final = (
    Variant("fields", pairs=False, bins=False, fading=False, seen=True),
    Variant("fading", pairs=False, bins=False, fading=True, seen=False),
    Variant("binned_fading", pairs=False, bins=True, fading=True, seen=False),
    Variant("binned", pairs=False, bins=True, fading=False, seen=True),
)
"""All variants where there are no crosses."""
CROSSES: Final = (PAIR, BINNED_PAIR)
"""Kinds of weights of two or three categories and bins."""
CONSTANT, MIXTURE, OWN = "constant", "mixture", "dense"
"""Names of the scores of the constant, of the mixture, and of the dense learner."""


def variants_of(settings: SparseSettings) -> tuple[Variant, ...]:
    """Return the variants, in the order in which a row of the table has their weights.

    Examples
    --------
    >>> [variant.name for variant in variants_of(SparseSettings(fields=3))]
    ['fields', 'pairs', 'pairs_fading']
    """
    every = VARIANTS if settings.pairs or settings.crosses else WITHOUT_PAIRS
    return tuple(variant for variant in every if settings.numbers or not variant.bins)


class Columns(NamedTuple):
    """The scores of the part, as columns behind one another.

    Attributes
    ----------
    names
        Their names: first those that the dense learner sees, the mixture last among them.
    seen
        How many the dense learner sees.
    """

    names: tuple[str, ...]
    seen: int

    @classmethod
    def of(cls, settings: SparseSettings) -> Self:
        """Return the columns.

        Examples
        --------
        >>> Columns.of(SparseSettings(fields=3))
        Columns(names=('fields', 'pairs', 'mixture', 'pairs_fading', 'constant', 'dense'), seen=3)
        """
        variants = variants_of(settings)
        seen = [each.name for each in variants if each.seen]
        hidden = [each.name for each in variants if not each.seen]
        return cls((*seen, MIXTURE, *hidden, CONSTANT, OWN), len(seen) + 1)


def plan_of(
    settings: SparseSettings, inputs: tuple[int, ...], first_score: int, base: int | None = None
) -> Plan:
    """Return the plan for events whose inputs, base and scores stand in these columns."""
    names, variants = Columns.of(settings).names, variants_of(settings)
    fields, words, numbers = settings.fields, settings.words, settings.numbers
    kinds, members = [FIELD] * fields + [WORD] * words + [BIN] * numbers, [(0, 0, 0)] * settings.inputs
    for places in settings.crossed:
        kinds.append(PAIR if places[-1] < fields else BINNED_PAIR)
        members.append((places[0], places[1], places[2] if len(places) == MOST_CROSSED else NO_MEMBER))
    priors = np.array([[_prior(kind, each, kinds) for each in variants] for kind in KINDS])
    experts = [CONSTANT, *(each.name for each in variants if each.seen and not each.pairs), MIXTURE, OWN]
    return Plan(
        LOGISTIC if settings.loss == "logistic" else SQUARED,
        np.array(inputs, dtype=np.int64),
        -1 if base is None else base,
        fields,
        words,
        numbers,
        first_score,
        np.array(kinds, dtype=np.int64),
        np.array(members, dtype=np.int64),
        np.array([_reach(kind, variants) for kind in KINDS], dtype=np.int64),
        priors.astype(np.float32).astype(np.float64),  # as the table has them
        np.array([1.0 + FADING if each.fading else 1.0 for each in variants]),
        np.array([names.index(each.name) for each in variants], dtype=np.int64),
        names.index(MIXTURE),
        names.index(CONSTANT),
        names.index(OWN),
        np.array([names.index(name) for name in experts], dtype=np.int64),
    )


def _takes_part(kind: int, variant: Variant) -> bool:
    return (variant.pairs or kind not in CROSSES) and (variant.bins or kind not in {BIN, BINNED_PAIR})


def _reach(kind: int, variants: tuple[Variant, ...]) -> tuple[int, int]:
    places = [place for place, each in enumerate(variants) if _takes_part(kind, each)]
    return (places[0], places[-1] + 1) if places else (0, 0)


def _prior(kind: int, variant: Variant, kinds: list[int]) -> float:
    """Return the prior variance of a weight: a share of the sum over those that an event has.

    It is 0 for a variant without such weights.
    """
    if not _takes_part(kind, variant):
        return 0.0
    if kind == WORD:
        return WORD_VARIANCE
    alike, total = ((FIELD, BIN), FIELD_VARIANCE) if kind in {FIELD, BIN} else (CROSSES, PAIR_VARIANCE)
    return total / max(1, sum(each in alike and _takes_part(each, variant) for each in kinds))
