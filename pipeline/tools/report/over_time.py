"""The errors of a run from its first to its last window, as a picture and a text show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

from pipeline.tools.report.figures import Report, Window
from pipeline.tools.report.regression import RegressionWindow


class OverTime(NamedTuple):
    """Errors of each window, by method."""

    errors: Mapping[str, Sequence[float]]
    """Shares of mistakes, or mean absolute errors where numbers are predicted; the model is the last."""
    events: Sequence[int]
    """Events of each window."""
    span: tuple[int, int]
    """Times of the first and the last event, in milliseconds."""

    @classmethod
    def of(cls, report: Report) -> Self:
        """Return the errors of a report with at least one labelled event."""
        windows: Sequence[Window | RegressionWindow] = report.windows
        errors = {"majority class": [window.majority for window in report.windows]}
        model = [window.mistakes for window in report.windows]
        if report.regression is not None:
            windows, errors = report.regression.windows, {}
            model = [window.mae for window in report.regression.windows]
        means = [window.running_means for window in windows if window.running_means is not None]
        if report.regression is not None or not means:
            errors["running mean"] = [window.running_mean for window in windows]
        if means:
            errors["running means"] = means
        errors["model"] = model
        return cls(errors, [window.events for window in windows], (windows[0].first, windows[-1].last))
