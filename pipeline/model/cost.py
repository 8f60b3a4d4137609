"""What an event costs a learner whose linear part has many columns: time grows with their square."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from forks import ForksSettings
from pipeline.errors import ConfigError

SECONDS_FOR_PAIR: Final = 2.5e-9
"""Seconds that an event takes for each pair of the learner's features, about: to predict and to learn it."""
WARNED_SECONDS: Final = 2e-4
"""Seconds of an event from which on a warning says what it costs."""
MOST_SECONDS: Final = 0.02
"""Seconds of an event, at most."""
REMEDY: Final = "leave out vectors, or `columns` of categories: their values have weights without, too"


def seconds_per_event(learners: Iterable[ForksSettings]) -> float:
    """Return about how long learners take to predict and to learn an event, in seconds.

    Examples
    --------
    >>> f"{seconds_per_event([ForksSettings.practical(1000)]):.4f}"
    '0.0028'
    """
    return sum(SECONDS_FOR_PAIR * each.features * each.features for each in learners)


def check_cost(where: str, settings: ForksSettings) -> None:
    """Refuse a learner that would take very long for an event.

    Parameters
    ----------
    where
        The section of the configuration, for the error.
    settings
        The learner's settings.

    Raises
    ------
    ConfigError
        An event takes more than `MOST_SECONDS`.
    """
    if seconds_per_event([settings]) > MOST_SECONDS:
        raise ConfigError(f"{where}: {_cost([settings])}, {1e3 * MOST_SECONDS:.0f} at most: {REMEDY}")


def cost_warning(learners: Iterable[ForksSettings]) -> str | None:
    """Return what is to be said of learners that take long for an event; None for others.

    Examples
    --------
    >>> cost_warning([ForksSettings.practical(10)]) is None
    True
    >>> print(cost_warning([ForksSettings.practical(800)]).split(":")[0])
    the learner has 849 features, so an event takes about 1.8 ms, and 555 events/s are the most to expect
    """
    known = [*learners]
    seconds = seconds_per_event(known)
    if seconds <= WARNED_SECONDS:
        return None
    return f"{_cost(known)}, and {1 / seconds:,.0f} events/s are the most to expect: {REMEDY}"


def _cost(learners: list[ForksSettings]) -> str:
    features = max(each.features for each in learners)
    milliseconds = 1e3 * seconds_per_event(learners)
    return f"the learner has {features} features, so an event takes about {milliseconds:.1f} ms"
