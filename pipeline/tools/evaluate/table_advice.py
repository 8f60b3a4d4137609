"""What there is to look at in the run of a stream's table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from forks.arrays import IntArray
from pipeline.config.stream import Stream
from pipeline.config.target_settings import RegressionSettings
from pipeline.features.target import Target
from pipeline.sources.kuairec import Events
from pipeline.tools.evaluate.advice import Advice, Attempt, Labelled, Learned, advise, leaks, tied_times
from pipeline.tools.evaluate.losses import REMEDIES
from pipeline.tools.report.figures import baseline_margins
from pipeline.tools.report.outcomes import Outcomes
from pipeline.tools.report.regression import running_mean

EARLY: Final = "label_before_event"
"""The reason why a row is lost whose label comes before its event."""
FEATURE: Final = "features."
"""What the columns of features begin with."""


def advise_table(
    events: Events, outcomes: Outcomes, stream: Stream, target: Target, attempt: Attempt
) -> Iterator[Advice]:
    """Yield what there is to look at.

    Parameters
    ----------
    events
        The rows of the table.
    outcomes
        Outcomes of the run, in one partition.
    stream
        Definition of the stream.
    target
        What labels mean.
    attempt
        What was run.
    """
    if count := events.skipped.get(EARLY):
        seen = f"the labels of {count:,} of {events.rows:,} rows come before their events and are lost"
        yield Advice(EARLY, seen, "labels.time", REMEDIES[EARLY])
    order = np.lexsort((outcomes["position"], outcomes["prediction_sequence"]))
    order = order[outcomes["labelled"][order]]
    if not stream.has_slates and events.has_times:
        command = None if events.has_label_times else attempt.command
        if (tied := tied_times(_learned(outcomes[order]), command)) is not None:
            yield tied
    yield from advise(_labelled(outcomes, order, stream, has_times=events.has_times), attempt)
    values = events.frame["watch_ratio"].to_numpy()
    if not isinstance(stream.target, RegressionSettings):
        values = target.are_positive(values).astype(np.float64)
    columns = [each for each in events.frame if each.name.startswith(FEATURE)]
    yield from leaks([each.rename(each.name.removeprefix(FEATURE)) for each in columns], values)


def _labelled(outcomes: Outcomes, order: IntArray, stream: Stream, *, has_times: bool) -> Labelled:
    rows, regression = outcomes[order], stream.target
    is_regression = isinstance(regression, RegressionSettings)
    if isinstance(regression, RegressionSettings):
        mean = running_mean(outcomes, regression.offset)
    else:
        mean = baseline_margins(outcomes).running_mean + 0.5
    return Labelled(
        label=stream.target.name,
        setting="labels.value",
        numbers=rows["prediction_sequence"] + 1,
        times=rows["timestamp"] if has_times else None,
        scores=rows["prediction"] if is_regression else rows["score"],
        values=rows["value"],
        positive=None if is_regression else rows["positive"],
        mean=mean[order],
        log_odds=bool(rows["has_probability"].all()),
    )


def _learned(rows: Outcomes) -> Learned:
    """Return when the labels of outcomes in the order of their predictions were learned."""
    known = np.append(rows["model_version"][1:] > rows["sequence"][:-1], np.ones(min(1, len(rows)), np.bool_))
    return Learned(rows["timestamp"], rows["label_timestamp"], known)
