"""What a figure shows: lines over an axis, from rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from research.harness.rows import Row


class Line(NamedTuple):
    """One learner or method.

    Parameters
    ----------
    name : of it
    x, y : of its points
    deviation : of y
    """

    name: str
    x: list[float]
    y: list[float]
    deviation: list[float]


class Panel(NamedTuple):
    """One coordinate system.

    Parameters
    ----------
    title : what it shows
    x_label, y_label : of its axes
    lines : in the order of the rows
    log : the axes that are logarithmic, of ``x`` and ``y``
    """

    title: str
    x_label: str
    y_label: str
    lines: list[Line]
    log: str = ""


def lines_of(rows: Sequence[Row], x: Callable[[Row], float], measure: str) -> list[Line]:
    """Return a line for each learner, through its rows in their order.

    Parameters
    ----------
    rows : with the measure
    x : where a row lies on the axis
    measure : its mean is the height
    """
    lines: dict[str, Line] = {}
    for row in rows:
        line = lines.setdefault(row.learner, Line(row.learner, [], [], []))
        line.x.append(x(row))
        line.y.append(row.means[measure])
        line.deviation.append(row.deviations[measure])
    return list(lines.values())
