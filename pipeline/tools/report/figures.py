"""Compute the figures of a run from its outcomes and counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks.validation import auc, log_loss, majority
from pipeline.records.names import Fault
from pipeline.task.state import CORRECTED, COUNTERS, ITEMS, TABLE_COUNTERS
from pipeline.tools.report.comparison import LearnerComparison
from pipeline.tools.report.counts import DEAD_LETTER_FAULTS, Counts, differences
from pipeline.tools.report.off_policy import OffPolicyFigures
from pipeline.tools.report.outcomes import OUTCOME, Floats, Outcomes, in_order_of_time, known_sums
from pipeline.tools.report.ranking import Ranking
from pipeline.tools.report.regression import RegressionFigures

Flags: TypeAlias = NDArray[np.bool_]

WINDOWS: Final = 100
"""Number of windows of a run, unless their size is given."""


class Window(msgspec.Struct, frozen=True):
    """Successive labelled events, with the share of mistakes of the model and of both baselines."""

    first: int
    """Time of the first event in milliseconds since 1970, as `last`."""
    last: int
    events: int
    mistakes: float
    running_means: float
    majority: float


class Report(msgspec.Struct, frozen=True):
    """A run in figures, as `forks report --json` prints it.

    Every labelled event counts, from the first one on. Shares of mistakes lie between 0 and 1.
    Figures that are not defined, such as the AUC of a single class, are None.
    """

    events: int
    """Interactions that were predicted."""
    predictions: int
    outcomes: int
    labelled: int
    expired: int
    dead_letters: int
    corrected: int
    """Outcomes of labels that came later for an event which had one. They count in no figure below."""
    watched: float | None
    """Share of positive labels."""
    mistakes: float | None
    auc: float | None
    log_loss: float | None
    """Log loss in nats; None for a loss without probabilities."""
    majority: float | None
    """Mistakes of always predicting the more frequent class, known in hindsight."""
    running_means: float | None
    """Mistakes of the sum of the running label means of user and video, see `running_means_margin`."""
    running_means_auc: float | None
    label_delay_median: float | None
    """Median of the milliseconds from an event to its label, as `label_delay_p99`."""
    label_delay_p99: float | None
    counters: dict[str, int]
    """The counters of the last state record of each partition, summed: `pipeline.task.state.COUNTERS`."""
    differences: list[str]
    """Differences between the counters and the topics."""
    windows: list[Window]
    """Labelled events of all partitions in the order of time."""
    comparison: LearnerComparison | None = None
    """The champion compared with its challengers, if there are any."""
    regression: RegressionFigures | None = None
    """Errors, where numbers are predicted. The shares and figures of two classes above are None then, and
    `windows` is empty."""
    items: int | None = None
    """Items that were predicted, where interactions are slates; else None."""
    ranking: Ranking | None = None
    """How well slates are ordered, if there are any that are closed."""
    off_policy: OffPolicyFigures | msgspec.UnsetType = msgspec.UNSET
    """The values of policies, if they were asked for."""


class _Mistakes(NamedTuple):
    """Whether each method was wrong, event by event, shape (n,)."""

    model: Flags
    running_means: Flags
    majority: Flags


def report(outcomes: Sequence[Outcomes], counts: Sequence[Counts], window: int | None = None) -> Report:
    """Sum up a run.

    Parameters
    ----------
    outcomes
        Outcomes of each partition.
    counts
        Numbers of records of each partition.
    window
        Labelled events in a window; by default so many that there are at most `WINDOWS`.

    Returns
    -------
    Report
        Figures of the run, without the comparison of learners.
    """
    found = sum((count.found for count in counts), Counter[str]())
    events, margin = _by_time(outcomes)
    watched = events["watched"]
    wrong = _Mistakes(
        (events["prediction"] > 0.0) != watched,
        (margin > 0.0) != watched,
        watched != majority(watched),
    )
    delays = events["label_timestamp"] - events["timestamp"]
    rare = (*TABLE_COUNTERS, Fault.PAST.value, ITEMS)
    there = [name for name in rare if any(name in count.after for count in counts)]
    names = (*COUNTERS, *there)
    return Report(
        events=found["predictions"],
        predictions=found["predictions"],
        outcomes=found["labelled"] + found["expired"] + found[CORRECTED],
        corrected=found[CORRECTED],
        labelled=found["labelled"],
        expired=found["expired"],
        dead_letters=sum(found[name] for name in (*DEAD_LETTER_FAULTS, "unknown")),
        watched=_share(watched),
        mistakes=_share(wrong.model),
        auc=auc(events["score"], watched),
        log_loss=log_loss(events["score"], watched) if np.all(events["has_probability"]) else None,
        majority=_share(wrong.majority),
        running_means=_share(wrong.running_means),
        running_means_auc=auc(margin, watched),
        label_delay_median=float(np.median(delays)) if len(delays) else None,
        label_delay_p99=float(np.percentile(delays, 99)) if len(delays) else None,
        counters={name: sum(count.after.get(name, 0) for count in counts) for name in names},
        differences=differences(counts),
        windows=_windows(events["timestamp"], wrong, window or window_size(len(events))),
    )


def without_classes(found: Report, regression: RegressionFigures | None) -> Report:
    """Return a report with the errors of numbers in place of the figures of two classes."""
    classes = ("watched", "mistakes", "auc", "log_loss", "majority", "running_means", "running_means_auc")
    none = dict.fromkeys(classes)
    return msgspec.structs.replace(found, **none, windows=[], regression=regression)


def window_size(events: int) -> int:
    """Return the labelled events in a window where their number is not given."""
    return -(-events // WINDOWS) or 1


def running_means_margin(outcomes: Outcomes) -> Floats:
    """Compute how far the sum of two running means lies above its threshold.

    The sum is that of the running label means of user and video, which are features of the model. The
    threshold is 1/2 plus the mean of all labels that were known when the prediction was made, that is,
    of the first `model_version` outcomes, smoothed as the features are.

    Parameters
    ----------
    outcomes
        Outcomes of one partition, shape (n,).

    Returns
    -------
    array
        Margins, shape (n,), float64; positive where the method predicts "watched".
    """
    learned, watched = known_sums(outcomes, outcomes["watched"].astype(np.float64))
    mean = (watched + 0.5) / (learned + 1.0)
    margin: Floats = outcomes["user_mean"] + outcomes["video_mean"] - (mean + 0.5)
    return margin


def _by_time(outcomes: Sequence[Outcomes]) -> tuple[Outcomes, Floats]:
    """Return the labelled outcomes of all partitions in the order of time, with their margins."""
    margins = [running_means_margin(of_partition) for of_partition in outcomes]
    together, order = np.concatenate([np.empty(0, OUTCOME), *outcomes]), in_order_of_time(outcomes)
    return together[order], np.concatenate([np.empty(0), *margins])[order]


def _windows(timestamps: NDArray[np.int64], wrong: _Mistakes, size: int) -> list[Window]:
    return [
        Window(
            first=int(timestamps[begin]),
            last=int(timestamps[min(begin + size, len(timestamps)) - 1]),
            events=min(size, len(timestamps) - begin),
            mistakes=float(np.mean(wrong.model[begin : begin + size])),
            running_means=float(np.mean(wrong.running_means[begin : begin + size])),
            majority=float(np.mean(wrong.majority[begin : begin + size])),
        )
        for begin in range(0, len(timestamps), size)
    ]


def _share(flags: Flags) -> float | None:
    return float(np.mean(flags)) if len(flags) else None
