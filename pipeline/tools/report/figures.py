"""Compute the figures of a run from its outcomes and counters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks.validation import auc, log_loss, majority
from pipeline.task.state import COUNTERS, TABLE_COUNTERS
from pipeline.tools.report.comparison import LearnerComparison
from pipeline.tools.report.counts import DEAD_LETTER_FAULTS, Counts, differences

OUTCOME: Final = np.dtype(
    [
        ("sequence", np.int64),
        ("prediction_sequence", np.int64),
        ("model_version", np.int64),
        ("timestamp", np.int64),
        ("label_timestamp", np.int64),
        ("score", np.float64),
        ("user_mean", np.float64),
        ("video_mean", np.float64),
        ("label", np.int8),  # -1 where there was no label to learn
        ("watched", np.bool_),  # by the label, learned or not
        ("labelled", np.bool_),
        ("predicted", np.bool_),
        ("has_probability", np.bool_),
    ]
)
"""Columns that are kept of an outcome."""

Outcomes: TypeAlias = NDArray[np.void]
"""Outcomes of a partition as an array of type `OUTCOME`, shape (n,), in sequence."""
Floats: TypeAlias = NDArray[np.float64]
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
        events["predicted"] != watched,
        (margin > 0.0) != watched,
        watched != majority(watched),
    )
    delays = events["label_timestamp"] - events["timestamp"]
    there = [name for name in TABLE_COUNTERS if any(name in count.after for count in counts)]
    names = (*COUNTERS, *there)
    return Report(
        events=found["predictions"],
        predictions=found["predictions"],
        outcomes=found["labelled"] + found["expired"],
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
        windows=_windows(events["timestamp"], wrong, window or -(-len(events) // WINDOWS) or 1),
    )


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
    learned = np.concatenate([[0], np.cumsum(outcomes["label"] >= 0)])
    watched = np.concatenate([[0], np.cumsum(outcomes["label"] == 1)])
    known = np.searchsorted(outcomes["sequence"], outcomes["model_version"])
    mean = (watched[known] + 0.5) / (learned[known] + 1.0)
    margin: Floats = outcomes["user_mean"] + outcomes["video_mean"] - (mean + 0.5)
    return margin


def _by_time(outcomes: Sequence[Outcomes]) -> tuple[Outcomes, Floats]:
    """Return the labelled outcomes of all partitions in the order of time, with their margins."""
    margins = [running_means_margin(of_partition) for of_partition in outcomes]
    together = np.concatenate([np.empty(0, OUTCOME), *outcomes])
    labelled = np.flatnonzero(together["labelled"])
    order = labelled[np.argsort(together["timestamp"][labelled], kind="stable")]
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
