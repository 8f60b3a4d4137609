"""What a run's outcomes add up to. Pure: arrays in, figures out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks.validation import auc, log_loss, majority
from pipeline.task.state import COUNTERS
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
        ("label", np.int8),  # -1 where nothing was to be learned
        ("watched", np.bool_),  # by the label that came, learned or not
        ("labelled", np.bool_),
        ("predicted", np.bool_),
        ("has_probability", np.bool_),
    ]
)
"""What is kept of an outcome."""

Outcomes: TypeAlias = NDArray[np.void]
"""The outcomes of a partition as an array of `OUTCOME`, in the order of their sequence."""
Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]

WINDOWS: Final = 100
"""Into how many windows a run is cut, unless their size is given."""


class Window(msgspec.Struct, frozen=True):
    """Successive labelled events, and the share of mistakes of each of the three in them."""

    first: int
    """Milliseconds since 1970, as `last`."""
    last: int
    events: int
    mistakes: float
    running_means: float
    majority: float


class Report(msgspec.Struct, frozen=True):
    """A run in figures.

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
    """In nats; None for a loss without probabilities."""
    majority: float | None
    """Mistakes of one who says the more frequent class, known in hindsight, every time."""
    running_means: float | None
    """Mistakes of the sum of user's and video's running label mean, see `running_means_margin`."""
    running_means_auc: float | None
    label_delay_median: float | None
    """Milliseconds from an event to its label, as `label_delay_p99`."""
    label_delay_p99: float | None
    counters: dict[str, int]
    """The counters of the last state record of each partition, summed: `pipeline.task.state.COUNTERS`."""
    differences: list[str]
    """Where the counters and what the topics hold disagree."""
    windows: list[Window]
    """The labelled events of all partitions by their time, cut into pieces."""
    contest: LearnerComparison | None = None
    """The learner beside its challengers, if there are any."""


class _Mistakes(NamedTuple):
    """Who was wrong, event for event."""

    model: Flags
    running_means: Flags
    majority: Flags


def report(outcomes: Sequence[Outcomes], counts: Sequence[Counts], window: int | None = None) -> Report:
    """Sum up a run.

    Parameters
    ----------
    outcomes, counts
        What there is of each partition.
    window
        Labelled events in a window; without it so many that there are at most `WINDOWS`.
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
    return Report(
        events=found["predictions"],
        predictions=found["predictions"],
        outcomes=found["labelled"] + found["expired"],
        labelled=found["labelled"],
        expired=found["expired"],
        dead_letters=sum(found[case] for case in (*DEAD_LETTER_FAULTS, "unknown")),
        watched=_share(watched),
        mistakes=_share(wrong.model),
        auc=auc(events["score"], watched),
        log_loss=log_loss(events["score"], watched) if np.all(events["has_probability"]) else None,
        majority=_share(wrong.majority),
        running_means=_share(wrong.running_means),
        running_means_auc=auc(margin, watched),
        label_delay_median=float(np.median(delays)) if len(delays) else None,
        label_delay_p99=float(np.percentile(delays, 99)) if len(delays) else None,
        counters={case: sum(count.after.get(case, 0) for count in counts) for case in COUNTERS},
        differences=differences(counts),
        windows=_windows(events["timestamp"], wrong, window or -(-len(events) // WINDOWS) or 1),
    )


def running_means_margin(outcomes: Outcomes) -> Floats:
    """How far the sum of two running means lies above its threshold; positive where it says "watched".

    The sum is that of the user's and the video's running label mean, as the model had them in its
    features. The threshold is the mean of all labels so far, plus 1/2. "So far" is when the
    prediction was made: the first `model_version` outcomes, smoothed as the features are.

    Parameters
    ----------
    outcomes
        Those of one partition, (n,).

    Returns
    -------
    array
        Of shape (n,).
    """
    taught = np.concatenate([[0], np.cumsum(outcomes["label"] >= 0)])
    watched = np.concatenate([[0], np.cumsum(outcomes["label"] == 1)])
    known = np.searchsorted(outcomes["sequence"], outcomes["model_version"])
    mean = (watched[known] + 0.5) / (taught[known] + 1.0)
    margin: Floats = outcomes["user_mean"] + outcomes["video_mean"] - (mean + 0.5)
    return margin


def _by_time(outcomes: Sequence[Outcomes]) -> tuple[Outcomes, Floats]:
    """The labelled outcomes of all partitions in the order of their events, with their margins."""
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
