"""What a dashboard consists of, apart from how Grafana stores it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

RATE: Final = "$__rate_interval"
"""Grafana replaces it: a duration that has at least four scrapes."""


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs that a dashboard is about: some of them can be chosen above it.

    Attributes
    ----------
    variable
        The name of the choice. Links between dashboards carry it along.
    present
        A metric of all of these jobs, and of no other.
    """

    variable: str
    present: str

    @property
    def selector(self) -> str:
        """What selects the chosen ones, behind the name of a metric."""
        return f'{{job=~"${self.variable}"}}'


WORKERS: Final = Jobs("job", "forks_worker_info")
FOLLOWERS: Final = Jobs("followers", "forks_serve_brokers_up")
JOB: Final = WORKERS.selector


@dataclass(frozen=True, slots=True)
class Query:
    """A line, or several, of a panel.

    Attributes
    ----------
    expression
        The query, in PromQL.
    legend
        Names a line, from its labels in double braces.
    """

    expression: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph over time.

    Attributes
    ----------
    title
        Its title.
    text
        What it shows, and what is good or bad.
    unit
        Grafana's name of the unit.
    queries
        Its lines.
    """

    title: str
    text: str
    unit: str
    queries: Sequence[Query]


@dataclass(frozen=True, slots=True)
class Dashboard:
    """A page of panels.

    Attributes
    ----------
    name
        The name of its file, and in its address.
    title
        Its title.
    text
        The question it answers.
    panels
        Its panels, from left to right, two in a row.
    jobs
        The jobs to choose from.
    """

    name: str
    title: str
    text: str
    panels: Sequence[Panel]
    jobs: Jobs = WORKERS


def gauge(name: str, by: str, legend: str, aggregate: str = "max", jobs: Jobs = WORKERS) -> Query:
    """Return a query of a gauge.

    Examples
    --------
    >>> gauge("forks_held_back", "partition", "partition {{partition}}").expression
    'max by (partition) (forks_held_back{job=~"$job"})'
    """
    return Query(f"{aggregate} by ({by}) ({name}{jobs.selector})", legend)


def rate(name: str, by: str, legend: str, jobs: Jobs = WORKERS) -> Query:
    """Return a query of what a counter grows by in a second.

    Examples
    --------
    >>> rate("forks_rebalances_total", "instance", "{{instance}}").expression
    'sum by (instance) (rate(forks_rebalances_total{job=~"$job"}[$__rate_interval]))'
    """
    return Query(f"sum by ({by}) (rate({name}{jobs.selector}[{RATE}]))", legend)


def quantiles(name: str, by: str = "", legend: str = "", jobs: Jobs = WORKERS) -> tuple[Query, ...]:
    """Return queries of the median and the 99th percentile of a histogram.

    Examples
    --------
    >>> print(quantiles("forks_batch_steps")[0].expression)
    histogram_quantile(0.5, sum by (le) (rate(forks_batch_steps_bucket{job=~"$job"}[$__rate_interval])))
    """
    labels = f"le, {by}" if by else "le"
    return tuple(
        Query(
            f"histogram_quantile({share}, sum by ({labels}) (rate({name}_bucket{jobs.selector}[{RATE}])))",
            f"{legend} {text}".strip(),
        )
        for share, text in ((0.5, "median"), (0.99, "99 %"))
    )
