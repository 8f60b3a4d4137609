"""Render a report as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.config.settings import CHAMPION
from pipeline.config.stream import KUAIREC, Stream
from pipeline.config.target_settings import RegressionSettings
from pipeline.features.feature_set import FeatureSet
from pipeline.tools.report.comparison import LearnerComparison
from pipeline.tools.report.counts import DEAD_LETTER_FAULTS
from pipeline.tools.report.figures import Report
from pipeline.tools.report.off_policy import Estimate, OffPolicyFigures
from pipeline.tools.report.over_time import OverTime
from pipeline.tools.report.ranking import SHOWN, Ranking
from pipeline.tools.report.regression import RegressionFigures
from pipeline.tools.terminal import named_values, number_or_dash, numbers_table
from pipeline.tools.times import date, duration

STAGES: Final = {
    "read": ("interactions", "labels"),
    "predicted": ("predictions", "items", "duplicate_interactions"),
    "joined": ("labelled", "expired", "crowded_out", "early", "duplicate_labels"),
    "label requests": ("asked", "unasked"),
    "dead letters": DEAD_LETTER_FAULTS,
}
"""Counters by the stage of a message."""

BARS: Final = " ▁▂▃▄▅▆▇█"
MAX_POSITIONS: Final = 10
"""Positions in slates that are shown, at most."""
COLUMNS: Final = 50
"""Number of bars, at most."""


def render(
    report: Report, stream: Stream = KUAIREC, *, where: str = "in topics", has_times: bool = True
) -> RenderableType:
    """Render a report for a terminal of 80 columns or more.

    Parameters
    ----------
    report
        The report.
    stream
        Definition of the stream, which names the entities.
    where
        What is said of where the records are.
    has_times
        Whether the times are those of the events, and not made up for rows in their order.
    """
    if not any(report.counters.values()) and not report.outcomes and not report.predictions:
        return Text("Nothing was written yet: no prediction, no outcome, no dead letter.")
    parts: list[RenderableType] = [_counters(report, where)]
    if report.regression is not None:
        parts += [*_regression(report, report.regression, stream), *_over_time(report, has_times=has_times)]
    elif report.labelled:
        parts += [Text(), _methods(report, stream)]
        if report.comparison is not None:
            parts += [Text(), _comparison(report.comparison)]
        parts += _over_time(report, has_times=has_times)
    else:
        parts += [Text(), Text("No label was joined yet, so there is nothing to compare predictions with.")]
    if report.off_policy:
        parts += [Text(), *_off_policy(report.off_policy)]
    if report.ranking is not None:
        parts += [Text(), *_ranking(report.ranking)]
    parts += [Text(f"differs: {difference}", style="red") for difference in report.differences]
    return Group(*parts)


def _counters(report: Report, where: str) -> Table:
    """Render every counter, also those that are 0; those of label requests only with a label policy."""
    rows = {
        stage: " · ".join(
            f"{name.replace('_', ' ')} {report.counters[name]:,}" for name in names if name in report.counters
        )
        for stage, names in STAGES.items()
        if stage != "label requests" or report.counters["asked"]
    }
    predicted = report.predictions if report.items is None else report.items
    waiting = predicted - (report.outcomes - report.corrected)
    if report.corrected:
        rows["corrected"] = _number(report.corrected, "later label")
    return named_values((rows | {where: _in_topics(report, waiting)}).items())


def _in_topics(report: Report, waiting: int) -> str:
    return (
        f"{_number(report.predictions, 'prediction')} · {_number(report.outcomes, 'outcome')} · "
        f"{_number(report.dead_letters, 'dead letter')} · {waiting:,} still waiting for a label"
    )


def _methods(report: Report, stream: Stream) -> Table:
    """Render the figures of the model and the baselines over the same events."""
    table = numbers_table(f"over all {report.labelled:,} labelled events", "mistakes", "AUC", "log loss")
    labels = ("watched", "not watched") if stream.is_kuairec else ("positive", "negative")
    always = labels[(report.positive or 0.0) <= 0.5]
    baseline: tuple[str, float | None, float | None] = ("running mean", report.running_mean, None)
    if report.running_means is not None:
        baseline = (_running_means(stream), report.running_means, report.running_means_auc)
    for name, mistakes, auc, loss in (
        ("model", report.mistakes, report.auc, report.log_loss),
        (*baseline, None),
        (f'always "{always}"', report.majority, 0.5, None),
    ):
        table.add_row(
            name,
            number_or_dash(mistakes, ".2%"),
            number_or_dash(auc),
            number_or_dash(loss),
            style="bold" if name == "model" else "",
        )
    return table


def _running_means(stream: Stream) -> str:
    """Return the name of the baseline of the first two running means."""
    mean = "value_mean" if isinstance(stream.target, RegressionSettings) else "label_mean"
    words = [table.word for table in FeatureSet.of(stream).layout.tables if mean in table.features]
    return f"running means of {' and '.join(words[:2])}"


def _comparison(comparison: LearnerComparison) -> Table:
    """Render the figures of champion and challengers over the events that all of them predicted."""
    names = ("mistakes", "alone right", "alone wrong", "AUC", "log loss")
    table = numbers_table(f"over {comparison.events:,} of them", *names)
    for each in comparison.contenders:
        champion = each.name == CHAMPION
        alone = ("", "") if champion else (f"{each.alone_right:,}", f"{each.alone_wrong:,}")
        table.add_row(
            each.name,
            f"{each.mistakes:.2%}",
            *alone,
            number_or_dash(each.auc),
            number_or_dash(each.log_loss),
            style="bold" if champion else "",
        )
    return table


def _ranking(found: Ranking) -> Iterator[RenderableType]:
    """Yield how well slates are ordered, and the rates of positions."""
    table = numbers_table(
        f"over {found.with_positive:,} of {found.slates:,} closed slates: with a positive label",
        f"NDCG@{found.top}",
        f"hit rate@{found.top}",
        "NDCG gain",
    )
    for each in found.rankings:
        table.add_row(
            each.name,
            _with_error(each.ndcg, each.ndcg_error, ".4f"),
            _with_error(each.hit_rate, each.hit_rate_error, ".2%"),
            "" if each.name == SHOWN else _with_error(each.gain, each.gain_error, "+.4f"),
            style="bold" if each.name == CHAMPION else "",
        )
    if found.rankings:
        yield table
        yield Text()
    rates = numbers_table("position", "items", "positive labels")
    for rate in found.positions[:MAX_POSITIONS]:
        rates.add_row(str(rate.position), f"{rate.items:,}", _with_error(rate.rate, rate.error, ".2%"))
    yield rates


def _with_error(value: float, error: float | None, form: str) -> str:
    """Return a figure with its standard error.

    Examples
    --------
    >>> _with_error(0.5, 0.01, "+.4f"), _with_error(0.5, None, ".2%")
    ('+0.5000 ± 0.0100', '50.00%')
    """
    return f"{value:{form}}" if error is None else f"{value:{form}} ± {error:{form.lstrip('+')}}"


def _off_policy(figures: OffPolicyFigures) -> Iterator[RenderableType]:
    """Yield the values of the policy that chose and of the target policy."""
    interval = f"{100 * figures.level:.6g}% interval"
    table = numbers_table("value of a policy, its mean reward", "outcomes", "value", interval)
    for name, outcomes, estimate in (
        ("logged", figures.outcomes, figures.logged),
        ("target, inverse propensities", figures.weighted, figures.ips),
        ("target, self-normalised", figures.weighted, figures.snips),
        ("target, doubly robust", figures.with_estimates, figures.doubly_robust),
    ):
        value = None if estimate is None else estimate.value
        table.add_row(name, f"{outcomes:,}", number_or_dash(value, ".4f"), _interval(estimate))
    yield table
    if figures.cap is not None:
        yield Text(
            f"weights up to {figures.largest_weight:.4g}, {figures.capped:,} above the cap of "
            f"{figures.cap:.4g}; as good as {figures.effective or 0.0:,.0f} outcomes of the target policy"
        )
    if figures.without_reward:
        yield Text(f"{_number(figures.without_reward, 'outcome')} without a reward count nowhere")


def _interval(estimate: Estimate | None) -> str:
    if estimate is None or estimate.low is None or estimate.high is None:
        return "-"
    return f"{estimate.low:.4f} to {estimate.high:.4f}"


def _regression(report: Report, figures: RegressionFigures, stream: Stream) -> Iterator[RenderableType]:
    """Yield the errors of a model that predicts numbers, and of its baselines."""
    title = f"over all {report.labelled:,} labelled events, in units of {stream.target.name}"
    table = numbers_table(title, "MAE", "RMSE", "R2")
    table.add_row("model", _figure(figures.mae), _figure(figures.rmse), _figure(figures.r2), style="bold")
    if figures.running_means is not None:
        table.add_row(_running_means(stream), _figure(figures.running_means), "", "")
    table.add_row("running mean", _figure(figures.running_mean), "", "")
    yield Text()
    yield table
    if figures.contenders:
        yield Text()
        yield _contenders(figures)
    covered = "-" if figures.coverage is None else f"{figures.coverage:.1%}"
    yield Text()
    yield Text(f"{covered} of the labels are between the 10% and 90% quantiles of earlier errors")


def _contenders(figures: RegressionFigures) -> Table:
    table = numbers_table("over the events that all of them predicted", "MAE", "RMSE", "closer")
    for each in figures.contenders:
        champion = each.name == CHAMPION
        closer = "" if champion else f"{each.closer:,}"
        row = (each.name, _figure(each.mae), _figure(each.rmse), closer)
        table.add_row(*row, style="bold" if champion else "")
    return table


def _figure(value: float | None) -> str:
    return number_or_dash(value, "#.4g")


def _over_time(report: Report, *, has_times: bool) -> Iterator[RenderableType]:
    """Yield the errors from the first to the last event as bars on one scale, and the delays of labels."""
    over_time = OverTime.of(report)
    what, form = "mistakes", ".0%"
    if report.regression is not None:
        what, form = "mean absolute error", ".3g"
    baseline = "running mean" if "running mean" in over_time.errors else "running means"
    weights = np.array(over_time.events)
    groups = np.array_split(np.arange(len(weights)), min(COLUMNS, len(weights)))
    series = {
        name: [
            float(np.average(np.array(over_time.errors[name])[group], weights=weights[group]))
            for group in groups
        ]
        for name in ("model", baseline)
    }
    low = min(min(values) for values in series.values())
    high = max(max(values) for values in series.values())
    table = Table.grid(padding=(0, 2))
    for name, values in series.items():
        table.add_row(name, _bars(values, low, high))
    first, last = map(date, over_time.span) if has_times else ("the first event", "the last")
    yield Text()
    yield Text(f"{what} from {first} to {last}, between {low:{form}} and {high:{form}}", style="bold")
    yield table
    if not has_times:
        return
    yield Text()
    yield Text(
        f"label delay: median {duration(report.label_delay_median or 0.0)}, "
        f"99% within {duration(report.label_delay_p99 or 0.0)}"
    )


def _bars(values: Sequence[float], low: float, high: float) -> str:
    """Return one bar for each value, on a scale from `low` to `high`.

    Examples
    --------
    >>> _bars([0.2, 0.3, 0.4], 0.2, 0.4)
    '▁▄█'
    """
    span = (high - low) or 1.0
    return "".join(BARS[1 + int((len(BARS) - 2) * (value - low) / span)] for value in values)


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
