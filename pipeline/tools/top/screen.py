"""A worker's status as a screen of a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import Final, TypeVar

from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from pipeline.monitoring.explanations import ExplainedPrediction
from pipeline.monitoring.status import HistoryStatus, LatencyStatus, QualityStatus, Status
from pipeline.tools.inspect.readable import printable
from pipeline.tools.terminal import number_or_dash, plain_table

BLOCKS: Final = "▁▂▃▄▅▆▇█"
CURVE: Final = 60
"""Samples in a curve, at most."""
WIDE: Final = 110
"""Columns from which on tables stand side by side, and there is room for ids of events."""
SHORT: Final = 40
"""Characters of an id, at most."""
BASELINES: Final = {"baseline:running_means": "running means", "baseline:constant": "constant"}
ABSENT: Final = "-"
UNITS: Final = ((1.0, 1e-3, "ms"), (120.0, 1.0, "s"), (7200.0, 60.0, "min"), (172_800.0, 3600.0, "h"))
"""Up to how many seconds a duration has a unit, its seconds and its name."""

Value = TypeVar("Value")


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
        status = self._status
        parts = [_throughput(status, self._history), _quality(status, self._history), _joins(status)]
        yield _head(status)
        if self._note:
            yield Text(printable(self._note), style="bold red")
        yield Text()
        if options.max_width >= WIDE:
            grid = Table.grid(padding=(0, 4, 0, 0))
            grid.add_row(*parts)
            yield grid
        else:
            yield Group(*chain.from_iterable((part, Text()) for part in parts))
        yield Text()
        yield _partitions(status)
        yield Text()
        yield _predictions(status.predictions, with_events=options.max_width >= WIDE)


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


def _table(title: str, *heads: str, ids: int = 0) -> Table:
    """Return a table whose first column, and those of ids behind it, are folded where there is no room."""
    table = plain_table()
    table.title, table.title_justify, table.title_style = title, "left", "bold cyan"
    for number, head in enumerate(heads):
        justify: JustifyMethod = "right" if number else "left"
        table.add_column(Text(head), justify=justify, no_wrap=number > ids, overflow="fold")
    return table


def _add(table: Table, *cells: str) -> None:
    """Add a row of texts, in which nothing is markup."""
    table.add_row(*map(Text, cells))


def _throughput(status: Status, history: HistoryStatus) -> RenderableType:
    table = _table("Throughput, lag, latency", "", "now", "in all")
    for topic, rate in status.records.items():
        _add(
            table, printable(topic, SHORT), f"{number_or_dash(rate.per_second, ',.1f')}/s", f"{rate.total:,}"
        )
    lag = status.lag
    _add(table, "lag, interactions", _count(lag.interactions))
    _add(table, "lag, labels", _count(lag.labels))
    _add(table, "lag, event time", duration(lag.event_time_s))
    latency = status.prediction_latency
    for name, value in (("median", latency.p50), ("90%", latency.p90), ("99%", latency.p99)):
        _add(table, f"latency, {name}", _quantile(latency, value))
    _add(table, "transaction, median", _quantile(status.transactions, status.transactions.p50))
    return Group(
        table, Text(curve(history.per_second.get("predictions", [])) + " predictions/s", style="cyan")
    )


def _quality(status: Status, history: HistoryStatus) -> RenderableType:
    quality = status.quality
    if not quality.events:
        return Group(_table("Quality"), Text("no labels yet", style="dim"))
    numbers = quality.measure == "mean_absolute_error"
    heads = ("MAE", "RMSE") if numbers else ("mistakes", "AUC", "log loss", "calibration")
    table = _table(f"Quality, last {quality.events:,} labels", "", *heads)
    for each in quality.learners:
        name = BASELINES.get(each.name, printable(each.name, SHORT))
        if numbers:
            _add(
                table,
                name,
                number_or_dash(each.mean_absolute_error, ",.4g"),
                number_or_dash(each.root_mean_squared_error, ",.4g"),
            )
            continue
        _add(
            table,
            name,
            number_or_dash(each.mistakes, ".2%"),
            number_or_dash(each.auc),
            number_or_dash(each.log_loss),
            number_or_dash(each.calibration_error, ".2%"),
        )
    errors = next(iter(history.error.values()), [])
    return Group(table, Text(f"{curve(errors)} {heads[0]}, champion", style="cyan"))


def _joins(status: Status) -> RenderableType:
    joins = status.joins
    table = _table("Joins", "", "records")
    for name, count in joins.outcomes.items():
        _add(table, printable(name, SHORT), f"{count:,}")
    _add(table, "waiting predictions", f"{joins.waiting_predictions:,}")
    _add(table, "early labels", f"{joins.early_labels:,}")
    _add(table, "duplicates", f"{joins.duplicates:,}")
    for reason, count in joins.dead_letters.items():
        _add(table, f"dead letters, {printable(reason, SHORT)}", f"{count:,}")
    if not joins.dead_letters:
        _add(table, "dead letters", "0")
    return table


def _partitions(status: Status) -> RenderableType:
    if not status.partitions:
        return Text("no partition is assigned to this worker", style="dim")
    heads = ("state", "lag", "event\nlag", "predictions", "outcomes", "dead\nletters")
    table = _table(
        "Partitions", "", *heads, "MAE" if _numbers(status.quality) else "mistakes", "snapshot\nage"
    )
    for each in status.partitions:
        lags = [lag for lag in (each.lag_interactions, each.lag_labels) if lag is not None]
        state = printable(each.state, SHORT)
        if each.records_left is not None and each.state == "restoring":
            state += f", {each.records_left:,} left"
        _add(
            table,
            str(each.number),
            state + (", held back" if each.held_back else ""),
            _count(sum(lags) if lags else None),
            duration(each.event_time_lag_s),
            f"{each.predictions:,}",
            f"{each.outcomes:,}",
            f"{each.dead_letters:,}",
            number_or_dash(each.error, ",.4g" if _numbers(status.quality) else ".2%"),
            duration(each.snapshot_age_s),
        )
    return table


def _predictions(predictions: Sequence[ExplainedPrediction], *, with_events: bool) -> RenderableType:
    if not predictions:
        return Text("no prediction was explained yet", style="dim")
    entities = _distinct(name for each in predictions for name in each.ids)
    terms = _distinct((term.kind, term.name) for each in predictions for term in each.terms)
    table = _table(
        "Latest predictions, with the terms that their scores are the sum of",
        *(["event"] if with_events else []),
        *(printable(name, SHORT) for name in entities),
        "predicted",
        "score",
        *(f"{'+' if number else '='} {printable(name, SHORT)}" for number, (_, name) in enumerate(terms)),
        ids=len(entities) - (not with_events),
    )
    for each in predictions:
        values = {(term.kind, term.name): term.value for term in each.terms}
        _add(
            table,
            *([printable(each.event_id, SHORT)] if with_events else []),
            *(printable(each.ids.get(name, ABSENT), SHORT) for name in entities),
            _predicted(each),
            f"{each.score:+.4f}",
            *(number_or_dash(values.get(term), "+.4f") for term in terms),
        )
    return table


def _predicted(prediction: ExplainedPrediction) -> str:
    if not isinstance(prediction.predicted, bool):
        return f"{prediction.predicted:,.4g}"
    probability = "" if prediction.probability is None else f" {prediction.probability:.3f}"
    return ("positive" if prediction.predicted else "negative") + probability


def _numbers(quality: QualityStatus) -> bool:
    return quality.measure == "mean_absolute_error"


def _distinct(values: Iterable[Value]) -> list[Value]:
    return list(dict.fromkeys(values))


def _count(value: int | None) -> str:
    return ABSENT if value is None else f"{value:,}"


def _quantile(latency: LatencyStatus, value: float | None) -> str:
    if value is None and latency.count:
        return f"> {duration(latency.largest_bound)}"
    return duration(value)
