"""What there is to look at in the run of a stream's table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from forks.arrays import IntArray
from pipeline.config.settings import Config
from pipeline.config.stream import Stream
from pipeline.config.target_settings import RegressionSettings
from pipeline.features.target import Target
from pipeline.sources.kuairec import Events
from pipeline.tools.evaluate.advice import Advice, Attempt, Labelled, Learned, advise, leaks, tied_times
from pipeline.tools.evaluate.losses import REMEDIES
from pipeline.tools.report.figures import baseline_margins
from pipeline.tools.report.outcomes import Outcomes
from pipeline.tools.report.regression import running_mean
from pipeline.tools.times import instant

EARLY: Final = "label_before_event"
"""The reason why a row is lost whose label comes before its event."""
CLOCKS_SET: Final = 631_152_000_000
"""1990 in milliseconds."""
EARLY_SHARE: Final = 0.5
"""Share of rows below which times before 1990 are of clocks that were not set."""
FEATURE: Final = "features."
"""What the columns of features begin with."""


def advise_table(
    events: Events, outcomes: Outcomes, config: Config, target: Target, attempt: Attempt
) -> Iterator[Advice]:
    """Yield what there is to look at.

    Parameters
    ----------
    events
        The rows of the table.
    outcomes
        Outcomes of the run, in one partition.
    config
        The configuration.
    target
        What labels mean.
    attempt
        What was run.
    """
    stream, rows = config.stream, len(events)
    if events.labels < rows and target.missing_label(config.join.on_missing) is not None:
        seen = f"{rows - events.labels:,} of {rows:,} rows have no label, and count as negative in the end"
        remedy = 'set join.on_missing = "drop" if these labels are only not known yet'
        yield Advice("missing_labels", seen, "join.on_missing", remedy)
    times = events.frame["timestamp"]
    early = int((times < CLOCKS_SET).sum())
    if events.has_times and 0 < early < EARLY_SHARE * rows:
        first, last, other = (instant(int(times[row])) for row in (0, early - 1, early))
        seen = (
            f"{early:,} rows are of {first} to {last}, the others from {other} on: in messages, such a clock"
        )
        seen += " makes dead letters, past"
        yield Advice("clock_not_set", seen, "interactions.time", "leave these rows out, and mend the clock")
    if count := events.skipped.get(EARLY):
        seen = f"the labels of {count:,} of {events.rows:,} rows come before their events and are lost"
        yield Advice(EARLY, seen, "labels.time", REMEDIES[EARLY])
    order = np.lexsort((outcomes["position"], outcomes["prediction_sequence"]))
    order = order[outcomes["labelled"][order]]
    if not stream.has_slates and events.has_times:
        command = None if events.has_label_times else attempt.command
        if (tied := tied_times(_learned(outcomes[order]), command)) is not None:
            yield tied
    found = [*advise(_labelled(outcomes, order, stream, has_times=events.has_times), attempt)]
    labelled = events.frame.filter(pl.col("label_timestamp").is_not_null())
    values = labelled["watch_ratio"].to_numpy()
    if not isinstance(stream.target, RegressionSettings):
        values = target.are_positive(values).astype(np.float64)
    columns = [each for each in labelled if each.name.startswith(FEATURE)]
    told = [*leaks([each.rename(each.name.removeprefix(FEATURE)) for each in columns], values)]
    yield from (each for each in found if not (told and each.name == "too_good"))
    yield from told


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
