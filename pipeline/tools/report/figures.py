"""Compute the figures of a run from its outcomes and counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks.validation import auc, log_loss, majority
from pipeline.config.stream import KUAIREC, Stream
from pipeline.records.names import Fault
from pipeline.task.state import CORRECTED, COUNTERS, ITEMS, TABLE_COUNTERS
from pipeline.tools.report.comparison import LearnerComparison
from pipeline.tools.report.counts import DEAD_LETTER_FAULTS, Counts, differences
from pipeline.tools.report.off_policy import OffPolicyFigures
from pipeline.tools.report.outcomes import (
    OUTCOME,
    Floats,
    Outcomes,
    in_order_of_time,
    known_sums,
    summed_means,
)
from pipeline.tools.report.ranking import Ranking
from pipeline.tools.report.regression import RegressionFigures

Flags: TypeAlias = NDArray[np.bool_]

WINDOWS: Final = 100
"""Number of windows of a run, unless their size is given."""


class Window(msgspec.Struct, frozen=True):
    """Successive labelled events, with the share of mistakes of the model and of the baselines."""

    first: int
    """Time of the first event in milliseconds since 1970, as `last`."""
    last: int
    events: int
    mistakes: float
    running_means: float | None
    running_mean: float
    majority: float


class Report(msgspec.Struct, frozen=True):
    """A run in figures, as `forks report --json` prints it.

    Every labelled event counts, from the first one on. Shares of mistakes lie between 0 and 1.
    Figures that are not defined, such as the AUC of a single class, are None.
    """

    target: str
    """Name of the label."""
    events: int
    """Interactions that were predicted."""
    predictions: int
    outcomes: int
    labelled: int
    expired: int
    dead_letters: int
    corrected: int
    """Outcomes of labels that came later for an event which had one. They count in no figure below."""
    positive: float | None
    """Share of positive labels."""
    mistakes: float | None
    auc: float | None
    log_loss: float | None
    """Log loss in nats; None for a loss without probabilities."""
    majority: float | None
    """Mistakes of always predicting the more frequent class, known in hindsight."""
    running_means: float | None
    """Mistakes of the running means of two entities, see `baseline_margins`; None without entities."""
    running_means_auc: float | None
    running_mean: float | None
    """Mistakes of predicting the class that was the more frequent one among the labels known by then."""
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
    running_means: Flags | None
    running_mean: Flags
    majority: Flags


def report(
    outcomes: Sequence[Outcomes],
    counts: Sequence[Counts],
    window: int | None = None,
    stream: Stream = KUAIREC,
) -> Report:
    """Sum up a run.

    Parameters
    ----------
    outcomes
        Outcomes of each partition.
    counts
        Numbers of records of each partition.
    window
        Labelled events in a window; by default so many that there are at most `WINDOWS`.
    stream
        Definition of the stream.

    Returns
    -------
    Report
        Figures of the run, without the comparison of learners.
    """
    found = sum((count.found for count in counts), Counter[str]())
    events, margins = _by_time(outcomes)
    positive = events["positive"]
    means = None if np.isnan(margins.running_means).any() else margins.running_means
    wrong = _Mistakes(
        (events["prediction"] > 0.0) != positive,
        None if means is None else (means > 0.0) != positive,
        (margins.running_mean > 0.0) != positive,
        positive != majority(positive),
    )
    delays = events["label_timestamp"] - events["timestamp"]
    rare = (*TABLE_COUNTERS, Fault.PAST.value, ITEMS)
    there = [name for name in rare if any(name in count.after for count in counts)]
    names = (*COUNTERS, *there)
    return Report(
        target=stream.target.name,
        events=found["predictions"],
        predictions=found["predictions"],
        outcomes=found["labelled"] + found["expired"] + found[CORRECTED],
        corrected=found[CORRECTED],
        labelled=found["labelled"],
        expired=found["expired"],
        dead_letters=sum(found[name] for name in (*DEAD_LETTER_FAULTS, "unknown")),
        positive=_share(positive),
        mistakes=_share(wrong.model),
        auc=auc(events["score"], positive),
        log_loss=log_loss(events["score"], positive) if np.all(events["has_probability"]) else None,
        majority=_share(wrong.majority),
        running_means=None if wrong.running_means is None else _share(wrong.running_means),
        running_means_auc=None if means is None else auc(means, positive),
        running_mean=_share(wrong.running_mean),
        label_delay_median=float(np.median(delays)) if len(delays) else None,
        label_delay_p99=float(np.percentile(delays, 99)) if len(delays) else None,
        counters={name: sum(count.after.get(name, 0) for count in counts) for name in names},
        differences=differences(counts),
        windows=_windows(events["timestamp"], wrong, window or window_size(len(events))),
    )


def without_classes(found: Report, regression: RegressionFigures | None) -> Report:
    """Return a report with the errors of numbers in place of the figures of two classes."""
    classes = ("positive", "mistakes", "auc", "log_loss", "majority")
    none = dict.fromkeys((*classes, "running_means", "running_means_auc", "running_mean"))
    return msgspec.structs.replace(found, **none, windows=[], regression=regression)


def window_size(events: int) -> int:
    """Return the labelled events in a window where their number is not given."""
    return -(-events // WINDOWS) or 1


class Margins(NamedTuple):
    """How far baselines lie above their threshold, where they predict a positive label, shape (n,)."""

    running_means: Floats
    """NaN without entities."""
    running_mean: Floats


def baseline_margins(outcomes: Outcomes) -> Margins:
    """Compute the baselines' predictions of classes.

    The running mean is that of all labels that were known when the prediction was made, that is, of the first
    `model_version` outcomes, smoothed as the features are. The sum of two entities' running means, less that
    mean, is `summed_means`. Each predicts the positive class above 1/2.

    Parameters
    ----------
    outcomes
        Outcomes of one partition, shape (n,).
    """
    learned, positive = known_sums(outcomes, outcomes["positive"].astype(np.float64))
    mean = (positive + 0.5) / (learned + 1.0)
    return Margins(summed_means(outcomes, mean) - 0.5, mean - 0.5)


def _by_time(outcomes: Sequence[Outcomes]) -> tuple[Outcomes, Margins]:
    """Return the labelled outcomes of all partitions in the order of time, with their margins."""
    margins = [baseline_margins(of_partition) for of_partition in outcomes]
    together, order = np.concatenate([np.empty(0, OUTCOME), *outcomes]), in_order_of_time(outcomes)
    columns = zip(*margins, strict=True) if margins else ((), ())
    return together[order], Margins(*(np.concatenate([np.empty(0), *each])[order] for each in columns))


def _windows(timestamps: NDArray[np.int64], wrong: _Mistakes, size: int) -> list[Window]:
    pieces = [slice(begin, begin + size) for begin in range(0, len(timestamps), size)]
    return [
        Window(
            first=int(timestamps[piece][0]),
            last=int(timestamps[piece][-1]),
            events=len(timestamps[piece]),
            mistakes=float(np.mean(wrong.model[piece])),
            running_means=None if wrong.running_means is None else _share(wrong.running_means[piece]),
            running_mean=float(np.mean(wrong.running_mean[piece])),
            majority=float(np.mean(wrong.majority[piece])),
        )
        for piece in pieces
    ]


def _share(flags: Flags) -> float | None:
    return float(np.mean(flags)) if len(flags) else None
