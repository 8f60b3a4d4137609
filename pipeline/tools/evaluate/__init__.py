"""Evaluate settings on a file by progressive validation, or by a run of the pipeline without Kafka."""

from pipeline.tools.evaluate.evaluation import Evaluation, evaluate, run
from pipeline.tools.evaluate.evaluation_text import render
from pipeline.tools.evaluate.losses import describe_losses
from pipeline.tools.evaluate.table_run import TableRun, run_table, without_schemas
from pipeline.tools.evaluate.trial import Order, Source, Trial, prepare

__all__ = [
    "Evaluation",
    "Order",
    "Source",
    "TableRun",
    "Trial",
    "describe_losses",
    "evaluate",
    "prepare",
    "render",
    "run",
    "run_table",
    "without_schemas",
]
