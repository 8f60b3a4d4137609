"""An experiment's panels as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from pipeline.tools.report.picture import GREY, INK, STYLE
from research.experiments import Panel

FORMATS: Final = (".svg", ".png")
COLORS: Final = (
    *("#1f5fa8", "#d1711f", "#3a8a4d", "#9b3f97", "#8c8c8c", "#b3261e", "#0e8f8f", "#7a5c2e"),
    *("#4a4a9c", "#c2a000"),
)
MARKERS: Final = "osD^vPX*<>"


def draw(title: str, panels: Sequence[Panel], note: str, stem: Path) -> list[Path]:
    """Draw panels side by side into an SVG and a PNG file, and return the files.

    Parameters
    ----------
    title
        Title above all panels.
    panels
        Panels to draw, at least one.
    note
        Line below the panels, such as the origin of the results.
    stem
        Path of the files without their suffixes.
    """
    files = [stem.with_name(stem.name + ending) for ending in FORMATS]
    with mpl.rc_context(STYLE):
        figure = _figure(title, panels, note)
        for file in files:
            metadata = {"Date": None} if file.suffix == ".svg" else {}
            figure.savefig(file, dpi=150, metadata=metadata)
    return files


def _figure(title: str, panels: Sequence[Panel], note: str) -> Figure:
    figure = Figure(figsize=(1.4 + 5.6 * len(panels), 4.8), layout="constrained")
    figure.suptitle(title, fontsize=14, weight="bold", color=INK)
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    for number, panel in enumerate(panels, start=1):
        _draw_panel(figure.add_subplot(1, len(panels), number), panel, names)
    handles: dict[str, Artist] = {}
    for axes in figure.axes:
        drawn, labels = axes.get_legend_handles_labels()
        handles |= dict(zip(labels, drawn, strict=True))
    figure.legend(list(handles.values()), list(handles), loc="outside right center", frameon=False)
    figure.supxlabel(note, fontsize=8.5, color=GREY)
    return figure


def _draw_panel(axes: Axes, panel: Panel, names: Sequence[str]) -> None:
    axes.set_title(panel.title, fontsize=11, color=INK)
    axes.set_xlabel(panel.x_label, color=INK)
    axes.set_ylabel(panel.y_label, color=INK)
    for line in panel.lines:
        style = names.index(line.name)
        axes.errorbar(
            line.x,
            line.y,
            line.deviation,
            label=line.name,
            color=COLORS[style % len(COLORS)],
            marker=MARKERS[style % len(MARKERS)],
            markersize=4.5,
            linewidth=1.6,
            elinewidth=0.8,
            capsize=2.0,
        )
    plain = FuncFormatter(lambda value, _: f"{value:g}")
    for name, axis, set_scale in (("x", axes.xaxis, axes.set_xscale), ("y", axes.yaxis, axes.set_yscale)):
        if name in panel.log:
            set_scale("log")
            axis.set_minor_formatter(NullFormatter())
        axis.set_major_formatter(plain)
    axes.tick_params(length=0)
