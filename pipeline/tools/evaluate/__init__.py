"""Evaluate a preset on a file by progressive validation."""

from pipeline.tools.evaluate.evaluation import Evaluation, evaluate, run
from pipeline.tools.evaluate.render import render
from pipeline.tools.evaluate.trial import Order, Trial, prepare

__all__ = ["Evaluation", "Order", "Trial", "evaluate", "prepare", "render", "run"]
