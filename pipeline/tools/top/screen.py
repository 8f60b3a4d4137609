"""A worker's status as a screen of a terminal, in the words of its status page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Final

from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from pipeline.monitoring.explanations import ExplainedPrediction
from pipeline.monitoring.status import (
    HistoryStatus,
    JoinStatus,
    LatencyStatus,
    PartitionStatus,
    QualityStatus,
    Status,
)
from pipeline.tools.inspect.readable import printable
from pipeline.tools.terminal import number_or_dash, plain_table

BLOCKS: Final = "▁▂▃▄▅▆▇█"
CURVE: Final = 60
"""Samples in a curve, at most."""
WIDE: Final = 110
"""Columns from which on tables stand side by side, and there is room for ids of events."""
SHORT: Final = 40
"""Characters of an id, at most."""
BASELINES: Final = {
    "baseline:running_means": "running means",
    "baseline:running_mean": "running mean",
    "baseline:constant": "constant",
}
ABSENT: Final = "-"
UNITS: Final = ((1.0, 1e-3, "ms"), (120.0, 1.0, "s"), (7200.0, 60.0, "min"), (172_800.0, 3600.0, "h"))
"""Up to how many seconds a duration has a unit, its seconds and its name."""


class StatusScreen:
    """The status of a worker: a renderable of rich.

    Parameters
    ----------
    status
        The status.
    history
        The last hour.
    note
        A line on top, such as an error; "" for none.
    """

    def __init__(self, status: Status, history: HistoryStatus, note: str = "") -> None:
        self._status = status
        self._history = history
        self._note = note

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield what is to be printed."""
        status, history = self._status, self._history
        parts = [_throughput(status, history), _quality(status.quality, history), _joins(status.joins)]
        yield _head(status)
        if self._note:
            yield Text(printable(self._note), style="bold red")
        yield Text()
        wide = options.max_width >= WIDE
        if wide:
            grid = Table.grid(padding=(0, 4, 0, 0))
            grid.add_row(*parts)
            yield grid
        else:
            yield Group(*chain.from_iterable((part, Text()) for part in parts))
        yield Text()
        yield _partitions(status, wide=wide)
        yield Text()
        yield _predictions(status.predictions, with_events=wide)


def curve(values: Sequence[float | None]) -> str:
    """Return a line of blocks, from 0 to the largest value; a space where there is none.

    Examples
    --------
    >>> curve([0.0, 1.0, None, 7.0])
    '▁▂ █'
    """
    shown = values[-CURVE:]
    largest = max((value for value in shown if value is not None), default=0.0) or 1.0
    last = len(BLOCKS) - 1
    return "".join(" " if value is None else BLOCKS[round(last * value / largest)] for value in shown)


def duration(seconds: float | None) -> str:
    """Format seconds.

    Examples
    --------
    >>> duration(0.0123), duration(5.25), duration(600.0), duration(7e5), duration(None)
    ('12.3 ms', '5.25 s', '10 min', '8.1 days', '-')
    """
    if seconds is None:
        return ABSENT
    if not seconds:
        return "0 s"
    for limit, unit, name in UNITS:
        if seconds < limit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 86_400:,.1f} days"


def _head(status: Status) -> Text:
    worker = {name: printable(value, SHORT) for name, value in status.worker.items()}
    head = Text.assemble(
        (worker.get("worker", ""), "bold"),
        "  ",
        ("ready", "bold green") if status.ready else ("not ready", "bold red"),
        f"  stream {worker.get('stream', '')}, group {worker.get('group', '')}, "
        f"up {duration(status.uptime_s)}, as of {datetime.fromtimestamp(status.time, UTC):%H:%M:%S} UTC",
    )
    for reason in status.reasons:
        head.append(f"\n{printable(reason.text)}", "red")
    return head


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]], ids: int = 0) -> Table:
    """Return a table of texts, in which nothing is markup.

    The first column, and those of ids behind it, are folded where there is no room.
    """
    table = plain_table()
    table.title, table.title_justify, table.title_style = title, "left", "bold cyan"
    for number, head in enumerate(heads):
        justify: JustifyMethod = "right" if number else "left"
        table.add_column(Text(head), justify=justify, no_wrap=number > ids, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _throughput(status: Status, history: HistoryStatus) -> RenderableType:
    lag, latency = status.lag, status.prediction_latency
    rows = [
        (printable(topic, SHORT), f"{each.total:,}", f"{number_or_dash(each.per_second, ',.1f')}/s")
        for topic, each in status.records.items()
    ]
    rows += [
        ("lag, interactions", _count(lag.interactions), ""),
        ("lag, labels", _count(lag.labels), ""),
        ("lag, event time", duration(lag.event_time_s), ""),
        ("latency, median", _quantile(latency, latency.p50), ""),
        ("latency, 90%", _quantile(latency, latency.p90), ""),
        ("latency, 99%", _quantile(latency, latency.p99), ""),
        ("transactions, median", _quantile(status.transactions, status.transactions.p50), ""),
    ]
    table = _table("Throughput, lag, latency", ("topic", "records", "per second"), rows)
    predictions = curve(history.per_second.get("predictions", []))
    return Group(table, Text(f"{predictions} predictions per second", style="cyan"))


def _quality(quality: QualityStatus, history: HistoryStatus) -> RenderableType:
    if not quality.events:
        return Group(_table("Quality", (), ()), Text("no labels yet", style="dim"))
    if _numbers(quality):
        heads = {"mean_absolute_error": ",.4g", "root_mean_squared_error": ",.4g"}
    else:
        heads = {"mistakes": ".2%", "AUC": ".4f", "log_loss": ".4f", "calibration_error": ".2%"}
    rows = [
        (
            BASELINES.get(each.name, printable(each.name, SHORT)),
            *(number_or_dash(getattr(each, head.lower()), spec) for head, spec in heads.items()),
        )
        for each in quality.learners
    ]
    words = [head.replace("_error", "\nerror").replace("_", " ") for head in heads]
    title = f"Quality, last {quality.events:,} labelled events"
    errors = curve(next(iter(history.error.values()), []))
    return Group(
        _table(title, ("learner", *words), rows), Text(f"{errors} {_error(quality)}, champion", style="cyan")
    )


def _joins(joins: JoinStatus) -> RenderableType:
    rows = {printable(name, SHORT): count for name, count in joins.outcomes.items()} | {
        "predictions that wait": joins.waiting_predictions,
        "labels that wait": joins.early_labels,
        "duplicates": joins.duplicates,
        "crowded out": joins.crowded_out,
    }
    rows |= {f"dead letters: {printable(reason, SHORT)}": n for reason, n in joins.dead_letters.items()}
    if not joins.dead_letters:
        rows["dead letters"] = 0
    return _table("Joins", ("", "records"), [(name, f"{count:,}") for name, count in rows.items()])


def _partitions(status: Status, *, wide: bool) -> RenderableType:
    if not status.partitions:
        return Text("the group has assigned no partition to this worker", style="dim")
    counts = (*(["waiting"] if wide else []), "predictions", "outcomes", "dead\nletters")
    error = _error(status.quality).replace(" ", "\n")
    heads = ("", "state", "lag", "event\ntime lag", *counts, error, "snapshot\nage")
    return _table(
        "Partitions", heads, [_partition(each, status.quality, wide=wide) for each in status.partitions]
    )


def _partition(each: PartitionStatus, quality: QualityStatus, *, wide: bool) -> Sequence[str]:
    lags = [lag for lag in (each.lag_interactions, each.lag_labels) if lag is not None]
    left = each.records_left if each.state == "restoring" else None
    return (
        str(each.number),
        printable(each.state, SHORT)
        + ("" if left is None else f", {left:,} left")
        + (", held back" if each.held_back else ""),
        _count(sum(lags) if lags else None),
        duration(each.event_time_lag_s),
        *([_count(each.waiting_predictions)] if wide else []),
        f"{each.predictions:,}",
        f"{each.outcomes:,}",
        f"{each.dead_letters:,}",
        number_or_dash(each.error, ",.4g" if _numbers(quality) else ".2%"),
        duration(each.snapshot_age_s),
    )


def _predictions(predictions: Sequence[ExplainedPrediction], *, with_events: bool) -> RenderableType:
    if not predictions:
        return Text("no prediction was explained yet", style="dim")
    entities = list(dict.fromkeys(name for each in predictions for name in each.ids))
    terms = list(dict.fromkeys((term.kind, term.name) for each in predictions for term in each.terms))
    heads = [
        *(["event"] if with_events else []),
        *(printable(name, SHORT) for name in entities),
        "predicted",
        "score",
        *(f"{'+' if number else '='} {printable(name, SHORT)}" for number, (_, name) in enumerate(terms)),
    ]
    rows = []
    for each in predictions:
        values = {(term.kind, term.name): term.value for term in each.terms}
        rows.append(
            [
                *([printable(each.event_id, SHORT)] if with_events else []),
                *(printable(each.ids.get(name, ABSENT), SHORT) for name in entities),
                _predicted(each),
                f"{each.score:+.4f}",
                *(number_or_dash(values.get(term), "+.4f") for term in terms),
            ]
        )
    title = "Latest predictions, with the terms that their scores are the sum of"
    return _table(title, heads, rows, ids=len(entities) - (not with_events))


def _predicted(prediction: ExplainedPrediction) -> str:
    if not isinstance(prediction.predicted, bool):
        return f"{prediction.predicted:,.4g}"
    probability = "" if prediction.probability is None else f", p = {prediction.probability:.3f}"
    return ("positive" if prediction.predicted else "negative") + probability


def _numbers(quality: QualityStatus) -> bool:
    return quality.measure == "mean_absolute_error"


def _error(quality: QualityStatus) -> str:
    return "mean absolute error" if _numbers(quality) else "mistakes"


def _count(value: int | None) -> str:
    return ABSENT if value is None else f"{value:,}"


def _quantile(latency: LatencyStatus, value: float | None) -> str:
    if value is None and latency.count:
        return f"> {duration(latency.largest_bound)}"
    return duration(value)
