"""Progressive validation of a preset on a file: what `forks evaluate` does."""

from pipeline.evaluate.evaluation import Evaluation, evaluate, run
from pipeline.evaluate.render import render
from pipeline.evaluate.trial import Order, Trial, prepare

__all__ = ["Evaluation", "Order", "Trial", "evaluate", "prepare", "render", "run"]
