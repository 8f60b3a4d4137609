"""FORKS and its rivals on real KuaiRec rows, every event counted from the first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bench.kuairec import Stream, in_time_order, permuted
from bench.options import Options
from bench.rivals import Entry, Learner, entries
from bench.summary import mean_and_deviation, percent
from forks import ForksSettings
from forks.arrays import FloatArray
from forks.validation import auc, log_loss
from pipeline.model.warm_up import warm_up
from pipeline.records.fields import FEATURES_LENGTH

PERMUTATIONS = 5


class Figures(NamedTuple):
    """How one learner did on one stream.

    Parameters
    ----------
    mistakes : share of all events
    auc : area under the ROC curve
    log_loss : in nats; None where scores are not log-odds
    seconds : predicting and learning
    """

    mistakes: float
    auc: float | None
    log_loss: float | None
    seconds: float


def play(learner: Learner, inputs: Sequence[Any], stream: Stream) -> FloatArray:
    """Ask for each event when it comes, answer when its label does; return the scores, (n,)."""
    n = len(stream.y)
    scores = np.empty(n)
    for number in stream.order.tolist():
        if number < n:
            scores[number] = learner.predict_one(inputs[number])
        else:
            learner.learn_one(inputs[number - n], stream.y[number - n])
    return scores


def evaluate(entry: Entry, stream: Stream) -> Figures:
    """Let a fresh learner play a stream."""
    learner = entry.make()
    inputs: Sequence[Any] = list(stream.X) if entry.takes == "features" else stream.pairs
    before = time.perf_counter()
    scores = play(learner, inputs, stream)
    seconds = time.perf_counter() - before
    watched = stream.y > 0
    return Figures(
        float(np.mean((scores > 0) != watched)),
        auc(scores, watched),
        log_loss(scores, watched) if entry.probable else None,
        seconds,
    )


def run(options: Options) -> dict[str, Any]:
    """Return a table for labels at once, one for delayed ones, and one over permutations."""
    folder = options.folder("kuairec")
    runs = options.runs or PERMUTATIONS
    warm_up(ForksSettings.practical(FEATURES_LENGTH))
    at_once = in_time_order(folder, delayed=False)
    positive = float(np.mean(at_once.y > 0))
    return {
        "events": len(at_once.y),
        "majority": round(100.0 * min(positive, 1.0 - positive), 3),
        "at_once": _table("at once", at_once, options),
        "delayed": _table("delayed", in_time_order(folder, delayed=True), options),
        "permutations": runs,
        "permuted": _summaries(
            [_compare(f"permutation {i}", permuted(folder, i), options) for i in range(runs)]
        ),
    }


def _compare(title: str, stream: Stream, options: Options) -> dict[str, Figures]:
    results = {}
    for name, entry in entries(len(stream.y)).items():
        results[name] = evaluate(entry, stream)
        options.say(f"{title}: {name}: {results[name]}")
    return results


def _table(title: str, stream: Stream, options: Options) -> dict[str, dict[str, float | None]]:
    return {
        name: {
            "mistakes": round(100.0 * figures.mistakes, 3),
            "auc": _rounded(figures.auc),
            "log_loss": _rounded(figures.log_loss),
            "seconds": round(figures.seconds, 2),
        }
        for name, figures in _compare(title, stream, options).items()
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _summaries(comparisons: list[dict[str, Figures]]) -> dict[str, dict[str, Any]]:
    return {
        name: {
            "mistakes": percent([comparison[name].mistakes for comparison in comparisons]),
            "auc": _summary([comparison[name].auc for comparison in comparisons]),
            "log_loss": _summary([comparison[name].log_loss for comparison in comparisons]),
        }
        for name in comparisons[0]
    }


def _summary(values: list[float | None]) -> dict[str, float] | None:
    known = [value for value in values if value is not None]
    return mean_and_deviation(known) if len(known) == len(values) else None
