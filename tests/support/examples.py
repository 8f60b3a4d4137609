"""How many examples Hypothesis tries of a property."""

from __future__ import annotations

from hypothesis import settings

ALL = 100
"""What a property without settings of its own has where all examples are tried."""

FEWEST = 5


def examples(number: int) -> settings:
    """Return settings with so many examples, or with the share of them that the chosen profile tries."""
    share = settings().max_examples / ALL
    return settings(max_examples=max(round(number * share), min(number, FEWEST)))
