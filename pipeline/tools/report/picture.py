"""Draw the running share of mistakes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter, StrMethodFormatter
from matplotlib.typing import RcKeyType

from pipeline.errors import ConfigError
from pipeline.tools.report.figures import Report
from pipeline.tools.report.outcomes import Floats
from pipeline.tools.report.over_time import OverTime
from pipeline.tools.times import date

FORMATS: Final = (".svg", ".png")
INK: Final = "#222222"
GREY: Final = "#6b6b6b"
STYLE: Final[dict[RcKeyType, Any]] = {
    "font.size": 11.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e4e4e4",
    "xtick.color": GREY,
    "ytick.color": GREY,
    "svg.hashsalt": "forks",  # the same run gives the same bytes
}
LABEL_DISTANCE: Final = 0.055
"""Smallest distance of two labels, as a share of the axis."""


class _Curve(NamedTuple):
    """The curve of one method."""

    name: str
    rates: Floats
    """Mistakes so far over events so far at the end of each window, shape (windows,)."""
    color: str
    width: float


def check_format(path: Path) -> None:
    """Raise `ConfigError` if a picture cannot be written to this file."""
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"--out {path}: the name of a picture has to end with {' or '.join(FORMATS)}")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"--out {path}: there is no folder {path.absolute().parent}")


def draw(report: Report, path: Path, note: str = "") -> None:
    """Draw the share of mistakes of model, running means and majority class over the labelled events.

    Parameters
    ----------
    report
        Report with at least one labelled event.
    path
        File to write, SVG or PNG.
    note
        Line below the picture, such as the source of the data.

    Raises
    ------
    ConfigError
        If the file cannot be written.
    """
    check_format(path)
    with mpl.rc_context(STYLE):
        figure = _figure(report, note)
        metadata = {"Date": None} if path.suffix.lower() == ".svg" else {}
        try:
            figure.savefig(path, dpi=150, metadata=metadata)
        except OSError as error:
            raise ConfigError(f"--out {path}: cannot be written: {error.strerror or error}") from error


COLORS: Final = {
    "majority class": ("#8c8c8c", 1.6),
    "running mean": ("#8c8c8c", 1.6),
    "running means": ("#d1711f", 2.0),
    "model": ("#1f5fa8", 2.6),
}
"""Color and width of each method's curve."""


def _figure(report: Report, note: str) -> Figure:
    over_time = OverTime.of(report)
    if report.regression is None:
        title, form = "Mistakes so far, counted from the first event", "{:.1%}".format
    else:
        title, form = "Mean absolute error so far, from the first event", "{:#.3g}".format
    events, rates = np.array(over_time.events), np.array([*zip(*over_time.errors.values(), strict=True)])
    events_so_far = np.cumsum(events)
    so_far = np.cumsum(rates * events[:, None], axis=0) / events_so_far[:, None]
    curves = [_Curve(name, so_far[:, column], *COLORS[name]) for column, name in enumerate(over_time.errors)]
    figure = Figure(figsize=(8.0, 4.6))
    bottom = 0.17 if note else 0.12
    axes = figure.add_axes((0.075, bottom, 0.665, 0.82 - bottom))
    axes.plot(events_so_far, rates[:, -1], color=curves[-1].color, linewidth=0.8, alpha=0.35)
    for curve in curves:
        axes.plot(
            events_so_far, curve.rates, color=curve.color, linewidth=curve.width, solid_capstyle="round"
        )
    axes.set_xlim(0, events_so_far[-1])
    percent = PercentFormatter(1.0, decimals=0)
    axes.yaxis.set_major_formatter(percent if report.regression is None else StrMethodFormatter("{x:g}"))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel("labelled events, by their time", color=INK)
    axes.tick_params(length=0)
    _label(axes, curves, form)
    span = " to ".join(map(date, over_time.span))
    figure.text(0.03, 0.93, title, fontsize=14, weight="bold", color=INK)
    figure.text(
        0.03,
        0.875,
        f"{report.labelled:,} events, {span}. Thin: the model in each {events[0]:,} events",
        color=GREY,
    )
    figure.text(0.03, 0.02, note, fontsize=8.5, color=GREY)
    return figure


def _label(axes: Axes, curves: Sequence[_Curve], form: Callable[[float], str]) -> None:
    """Write name and last value of each curve at its end, from the lowest up, without overlaps."""
    low, high = axes.get_ylim()
    free = -np.inf
    for curve in sorted(curves, key=lambda curve: float(curve.rates[-1])):
        height = max((curve.rates[-1] - low) / (high - low), free)
        free = height + LABEL_DISTANCE
        axes.text(
            1.015,
            height,
            f"{curve.name} {form(float(curve.rates[-1]))}",
            transform=axes.transAxes,
            color=curve.color,
            weight="bold",
            va="center",
        )
