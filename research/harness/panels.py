"""Panels of a figure: lines over an axis, made from rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from research.harness.rows import Row


class Line(NamedTuple):
    """Line of one learner or method.

    Attributes
    ----------
    name
        Name of the learner or method.
    x, y
        Coordinates of the points.
    deviation
        Standard deviation of y at each point.
    """

    name: str
    x: list[float]
    y: list[float]
    deviation: list[float]


class Panel(NamedTuple):
    """One coordinate system.

    Attributes
    ----------
    title
        Title of the panel.
    x_label, y_label
        Labels of the axes.
    lines
        Lines, in the order of the rows.
    log
        Logarithmic axes: ``x``, ``y``, ``xy`` or none.
    """

    title: str
    x_label: str
    y_label: str
    lines: list[Line]
    log: str = ""


def lines_of(rows: Sequence[Row], x: Callable[[Row], float], measure: str) -> list[Line]:
    """Return one line for each learner, through its rows in their order.

    Parameters
    ----------
    rows
        Rows that have the measure.
    x
        Function that returns the position of a row on the x axis.
    measure
        Name of the measure on the y axis.
    """
    lines: dict[str, Line] = {}
    for row in rows:
        line = lines.setdefault(row.learner, Line(row.learner, [], [], []))
        line.x.append(x(row))
        line.y.append(row.means[measure])
        line.deviation.append(row.deviations[measure])
    return list(lines.values())
