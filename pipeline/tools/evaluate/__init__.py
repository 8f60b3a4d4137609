"""Evaluate settings on a file by progressive validation, or by a run of the pipeline without Kafka."""

from pipeline.tools.evaluate.advice import Attempt, render_advice
from pipeline.tools.evaluate.evaluation import Evaluation, evaluate, run
from pipeline.tools.evaluate.evaluation_text import render
from pipeline.tools.evaluate.losses import describe_losses
from pipeline.tools.evaluate.table_advice import advise_table
from pipeline.tools.evaluate.table_run import TableRun, run_table, without_schemas
from pipeline.tools.evaluate.trial import Order, Source, Trial, prepare

__all__ = [
    "Attempt",
    "Evaluation",
    "Order",
    "Source",
    "TableRun",
    "Trial",
    "advise_table",
    "describe_losses",
    "evaluate",
    "prepare",
    "render",
    "render_advice",
    "run",
    "run_table",
    "without_schemas",
]
