"""Render an evaluation as text."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pipeline.tools.evaluate.advice import render_advice
from pipeline.tools.evaluate.evaluation import Evaluation
from pipeline.tools.terminal import number_or_dash, numbers_table


def render(found: Evaluation) -> RenderableType:
    """Render an evaluation for a terminal of 80 columns or more."""
    changes = "".join(f", {name} = {value}" for name, value in found.changes.items())
    labels = "delayed by the play" if found.delayed else "known at once"
    title = f"{found.learner}{changes}: {found.events:,} events of {found.features} features, labels {labels}"
    parts = (Text(), _total(found), Text(), _windows(found), render_advice(found.advice))
    return Group(Text(title, style="bold"), *parts)


def _total(found: Evaluation) -> Table:
    table = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "left"):
        table.add_column(justify=justify)
    for name, value, meaning in (
        ("mistakes", f"{found.mistakes:.2%}", "of all events, from the first"),
        ("majority", f"{found.majority:.2%}", "mistakes of always predicting the more frequent label"),
        ("AUC", number_or_dash(found.auc), ""),
        ("log loss", number_or_dash(found.log_loss), "nats"),
        ("Brier score", number_or_dash(found.brier), ""),
        (
            "calibration",
            number_or_dash(found.calibration_error),
            "expected error of the probabilities, ten bins",
        ),
        ("loss", number_or_dash(found.loss), found.loss_name.replace("_", " ")),
        ("regret", _regret(found.regret), "loss summed, less that of the best fixed linear predictor"),
        ("time", f"{found.seconds:.2f} s", f"{found.events / found.seconds:,.0f} events/s"),
    ):
        table.add_row(name, value, Text(meaning, style="dim"))
    return table


def _windows(found: Evaluation) -> Table:
    table = numbers_table("events", "mistakes", "majority", "AUC", "loss", "regret", text=0)
    for piece in found.windows:
        table.add_row(
            f"{piece.first + 1:,} - {piece.first + piece.events:,}",
            f"{piece.mistakes:.2%}",
            f"{piece.majority:.2%}",
            number_or_dash(piece.auc),
            number_or_dash(piece.loss),
            _regret(piece.regret),
        )
    return table


def _regret(value: float | None) -> str:
    return number_or_dash(value, "+,.1f")
