"""What the figures of a report need of the run of one partition, and the report of all partitions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from pipeline.config.settings import CHAMPION
from pipeline.config.stream import CARRIED, Stream
from pipeline.config.target_settings import RegressionSettings
from pipeline.features.feature_set import FeatureSet
from pipeline.features.regression import RegressionTarget
from pipeline.features.target import Target
from pipeline.model.settings_text import challengers_from
from pipeline.records.fields import Count, Status, Timestamp
from pipeline.records.output_types import derived
from pipeline.task.state import CORRECTED, ITEMS, SettingsEpoch
from pipeline.tools.report.comparison import LabelledScores, compare_learners
from pipeline.tools.report.counts import Counts
from pipeline.tools.report.figures import Report, report, window_size, without_classes
from pipeline.tools.report.off_policy import LOGGED, Logged, OffPolicy, off_policy_figures
from pipeline.tools.report.outcomes import OUTCOME, Outcomes
from pipeline.tools.report.ranking import DEFAULT_TOP, ClosedSlates, closed_slates, ranking
from pipeline.tools.report.regression import regression_figures

Scores: TypeAlias = Mapping[str, float]
"""Scores of an event, by challenger."""


class ReportedOutcome(msgspec.Struct):
    """The fields of an outcome that the figures need."""

    sequence: Count
    prediction_sequence: Count
    model_version: Count
    timestamp: Timestamp
    label_timestamp: Timestamp | None
    score: float
    probability: float | None
    predicted: bool
    features: list[float]
    watch_ratio: float | None
    label: bool | None
    status: Status
    challengers: dict[str, float] | None = None
    position: Count = 0


def outcome_decoder(stream: Stream) -> msgspec.json.Decoder[ReportedOutcome]:
    """Return the decoder of a stream's outcomes."""
    numbers: dict[tuple[str, ...], dict[str, Any]] = {
        ("predicted",): {"predicted": float},
        ("label",): {"label": float | None},
    }
    regression = isinstance(stream.target, RegressionSettings)
    numbers = numbers if regression else {}
    if carried := stream.interactions.carried:
        fields = {"challengers": (dict[str, float] | None, None)} | dict.fromkeys(
            carried, (float | None, None)
        )
        numbers[("challengers",)] = fields
    outcome = derived(ReportedOutcome, numbers, {"watch_ratio": stream.target.name})
    return msgspec.json.Decoder(outcome)


class ReportedState(msgspec.Struct):
    """The fields of a state record that the figures need."""

    counters: dict[str, int]
    settings: dict[str, str]
    earlier: list[SettingsEpoch] = []

    @property
    def since(self) -> int:
        """Sequence of the first prediction of the current settings epoch."""
        return self.earlier[-1].predictions if self.earlier else 0


class OutcomeTable:
    """Collects and counts the outcomes of a partition, in their order.

    Parameters
    ----------
    stream
        Definition of the stream.
    target
        The rules that say what labels mean.

    Attributes
    ----------
    counted
        Number of outcomes by counter.
    scores
        The scores of the challengers for each outcome.
    logged : list of ndarray
        Rewards and propensities, arrays of type `LOGGED`; none where a stream has no propensities.
    """

    def __init__(self, stream: Stream, target: Target) -> None:
        regression = isinstance(stream.target, RegressionSettings)
        self._places = FeatureSet.of(stream).places("value_mean" if regression else "label_mean")
        self._target = target
        self._parts: list[Outcomes] = []
        self.counted: Counter[str] = Counter()
        self.scores: list[Scores | None] = []
        self.logged: list[Logged] = []
        self._carries, self._slates = bool(stream.interactions.carried), stream.has_slates

    def add(self, outcomes: Sequence[ReportedOutcome]) -> None:
        """Add the next outcomes."""
        statuses = Counter(outcome.status for outcome in outcomes)
        self.counted.update(labelled=statuses["labelled"], expired=statuses["expired"])
        self.counted[CORRECTED] += statuses["corrected"] + statuses["replaced"]
        rows = [_row(outcome, self._target, self._places) for outcome in outcomes]
        self._parts.append(np.array(rows, OUTCOME))
        self.scores += [outcome.challengers for outcome in outcomes]
        if self._carries:
            logged = [_logged(outcome, self._target) for outcome in outcomes]
            if self._slates:  # of whose items most were not drawn
                logged = [row for row in logged if not math.isnan(row[1])]
            self.logged.append(np.array(logged, LOGGED))

    def rows(self) -> Outcomes:
        """Return the columns of all outcomes."""
        return np.concatenate([np.empty(0, OUTCOME), *self._parts])


class PartitionRun(NamedTuple):
    """What a partition has predicted and learned."""

    outcomes: OutcomeTable
    counts: Counts
    state: ReportedState
    """Its last state record."""
    slates: Mapping[int, int] | None = None
    """Items of each slate by its sequence; None where interactions are single items."""


def report_of(
    runs: Sequence[PartitionRun],
    stream: Stream,
    window: int | None = None,
    off_policy: OffPolicy | None = None,
    top: int = DEFAULT_TOP,
) -> Report:
    """Sum up the runs of all partitions.

    Parameters
    ----------
    runs
        The runs.
    stream
        Definition of the stream.
    window
        Labelled events in a window of the report; by default a hundredth of all.
    off_policy
        How the values of policies are estimated; None for not at all.
    top
        The first items of slates that count in figures of rankings.
    """
    found = _report_of(runs, stream, window, top)
    if off_policy is None:
        return found
    logged = [part for run in runs for part in run.outcomes.logged]
    figures = off_policy_figures(logged, off_policy.level, off_policy.cap)
    return msgspec.structs.replace(found, off_policy=figures)


def _report_of(runs: Sequence[PartitionRun], stream: Stream, window: int | None, top: int) -> Report:
    outcomes = [run.outcomes.rows() for run in runs]
    found = report(outcomes, [run.counts for run in runs], window, stream)
    if stream.has_slates:
        regression = isinstance(stream.target, RegressionSettings)
        slates = [
            _closed_slates(rows, run, regression=regression) for rows, run in zip(outcomes, runs, strict=True)
        ]
        items = sum(run.counts.found[ITEMS] for run in runs)
        found = msgspec.structs.replace(found, items=items, ranking=ranking(slates, top))
    scores = [
        _labelled_scores(rows, run.outcomes.scores, run.state)
        for rows, run in zip(outcomes, runs, strict=True)
    ]
    if isinstance(stream.target, RegressionSettings):
        offset, scale = stream.target.offset, stream.target.scale
        size = window or window_size(found.labelled)
        return without_classes(found, regression_figures(outcomes, offset, scores, scale, size))
    settings: dict[str, str] = {}
    for run in runs:
        settings |= run.state.settings
    return msgspec.structs.replace(found, comparison=compare_learners(scores, _with_log_odds(settings)))


def _labelled_scores(rows: Outcomes, scores: list[Scores | None], state: ReportedState) -> LabelledScores:
    """Return the scores of the current settings epoch: before, a name may be that of another learner."""
    names = challengers_from(state.settings)
    compared = rows["labelled"] & (rows["prediction_sequence"] >= state.since)
    chosen = [scores[row] or {} for row in np.flatnonzero(compared)] if names else []
    columns = {CHAMPION: rows["score"][compared]}
    columns |= {name: np.array([by_name.get(name, np.nan) for by_name in chosen]) for name in names}
    return LabelledScores(rows["positive"][compared], columns, rows["value"][compared])


def _closed_slates(rows: Outcomes, run: PartitionRun, *, regression: bool) -> ClosedSlates:
    """Return the closed slates of the current settings epoch."""
    chosen = np.flatnonzero(rows["prediction_sequence"] >= run.state.since)
    rows = rows[chosen]
    gains = np.maximum(rows["value"], 0.0) if regression else rows["positive"].astype(np.float64)
    gains[~rows["labelled"]] = 0.0
    by_name = [run.outcomes.scores[row] or {} for row in chosen.tolist()]
    scores = {CHAMPION: rows["score"]}
    for name in challengers_from(run.state.settings):
        scores[name] = np.array([each.get(name, np.nan) for each in by_name], dtype=np.float64)
    return closed_slates(rows["prediction_sequence"], rows["position"], gains, scores, run.slates or {})


def _with_log_odds(settings: dict[str, str]) -> frozenset[str]:
    """Return the names of the learners whose scores are log-odds."""
    losses = {CHAMPION: settings.get("learner.loss", "")}
    losses |= {name: str(each.loss) for name, each in challengers_from(settings).items()}
    return frozenset(name for name, loss in losses.items() if loss == "logistic")


def _row(outcome: ReportedOutcome, target: Target, places: list[int]) -> tuple[float | bool, ...]:
    """Return the columns of `OUTCOME`, in their order, given the places of the entities' label means."""
    value = outcome.watch_ratio or 0.0
    return (
        outcome.sequence,
        outcome.prediction_sequence,
        outcome.model_version,
        outcome.timestamp,
        outcome.timestamp if outcome.label_timestamp is None else outcome.label_timestamp,
        outcome.score,
        outcome.predicted,
        *_means(outcome, target, places),
        target.label(value) if isinstance(target, RegressionTarget) else value,
        outcome.label is not None,
        target.is_positive(value),
        outcome.status == "labelled",
        outcome.probability is not None,
        outcome.position,
    )


def _logged(outcome: ReportedOutcome, target: Target) -> tuple[float, ...]:
    """Return the columns of `LOGGED`, in their order.

    The reward is the label, 0 or 1 where it is one of two classes. That of an expired outcome is what was
    learned in its place, if anything was.
    """
    label: float | None = outcome.label
    if outcome.watch_ratio is not None:
        label = target.label(outcome.watch_ratio)
    numbers = (label, *(getattr(outcome, name, None) for name in CARRIED))
    return tuple(math.nan if each is None else float(each) for each in numbers)


def _means(outcome: ReportedOutcome, target: Target, places: list[int]) -> tuple[float, float]:
    """Return the running means of two entities, NaN for one that there is not."""
    means = [outcome.features[place] for place in places[:2]]
    if isinstance(target, RegressionTarget):
        means = [target.value_of(mean) for mean in means]
    first, second = [*means, math.nan, math.nan][:2]
    return first, second
