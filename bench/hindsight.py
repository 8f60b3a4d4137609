"""What gradient-boosted trees (LightGBM) make of the features, and of all that is known, beside the learner.

Retrained at checkpoints on what was known until then, trees show whether the learner or the features are the
bottleneck. In hindsight, by five folds, they show what is left to gain: on the same features, and on those
that come from all labels but those of an event's own fold, later ones too.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bench.event_features import of_event
from bench.hindsight_columns import Hindsight
from bench.options import Options
from bench.paired import metrics, table, user_weights
from bench.rows import KUAIRAND_TARGETS, Rows, kuairand, kuairec, scores, with_offset
from forks.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import lightgbm

BASE: Final = "learner"
FOLDS: Final = 5
CHECKPOINTS: Final = 20
PARAMETERS: Final = {
    "objective": "binary",
    "learning_rate": 0.05,
    "num_leaves": 15,
    "min_data_in_leaf": 50,
    "lambda_l2": 5.0,
    "feature_fraction": 0.8,
    "verbose": -1,
    "num_threads": 1,
    "deterministic": True,
    "seed": 0,
}
"""None was tuned; the number of trees is where the log loss of a tenth of the training rows is least."""
MOST_TREES: Final = 1000
PATIENCE: Final = 30
"""Trees without a smaller log loss after which no more are grown."""
NEWEST: Final = 10
"""One in so many training rows says how many trees there are."""
Folded = Callable[[IntArray, IntArray], FloatArray]


def trees(X: FloatArray, positive: BoolArray, judges: BoolArray) -> lightgbm.Booster:
    """Return trees that are grown on rows, as many as are best for those of them that judge."""
    import lightgbm  # noqa: PLC0415 - it needs a library of the system, and other benchmarks do not

    training = lightgbm.Dataset(X[~judges], positive[~judges].astype(np.float64))
    judging = lightgbm.Dataset(X[judges], positive[judges].astype(np.float64), reference=training)
    stop = lightgbm.early_stopping(PATIENCE, verbose=False)
    return lightgbm.train(PARAMETERS, training, MOST_TREES, valid_sets=[judging], callbacks=[stop])


def log_odds(model: lightgbm.Booster, X: FloatArray) -> FloatArray:
    """Return the scores of events, shape (n,)."""
    return np.asarray(model.predict(X, raw_score=True), dtype=np.float64)


def retrained(X: FloatArray, positive: BoolArray, checkpoints: int = CHECKPOINTS) -> FloatArray:
    """Return the scores of trees that are grown anew at each checkpoint on all events before it, shape (n,).

    The newest of these events judge how many trees there are. Before the first checkpoint, scores are NaN.
    """
    n = len(X)
    borders = np.linspace(0, n, checkpoints + 1).astype(np.int64)
    found = np.full(n, np.nan)
    for start, stop in pairwise(borders[1:]):
        judges = np.arange(start) >= start - max(1, start // NEWEST)
        found[start:stop] = log_odds(trees(X[:start], positive[:start], judges), X[start:stop])
    return found


def by_folds(columns: Folded, positive: BoolArray, seed: int = 0) -> FloatArray:
    """Return the scores of events by trees that were grown on the other folds, shape (n,).

    Parameters
    ----------
    columns
        Returns columns of some events, shape (some, columns), from the labels of others; both are numbers
        of events. The columns of training rows come from the labels of the other training folds, as those of
        the fold to predict come from all training rows.
    positive : ndarray, shape (n,), bool
        The labels.
    seed
        Seed of the folds.
    """
    n = len(positive)
    fold = np.random.default_rng(seed).permutation(n) % FOLDS
    everyone = np.arange(n, dtype=np.int64)
    found = np.empty(n)
    for number in range(FOLDS):
        training, tested = everyone[fold != number], everyone[fold == number]
        inner = np.random.default_rng(seed + 1 + number).permutation(len(training)) % FOLDS
        parts = [columns(training[inner != k], training[inner == k]) for k in range(FOLDS)]
        X = np.empty((len(training), parts[0].shape[1]))
        for k, part in enumerate(parts):
            X[inner == k] = part
        judges = np.random.default_rng(seed).permutation(len(training)) % NEWEST == 0
        model = trees(X, positive[training], judges)
        found[tested] = log_odds(model, columns(training, tested))
    return found


def compared(
    rows: Rows, counted: IntArray, options: Options, name: str, own: FloatArray | None = None
) -> dict[str, Any]:
    """Return figures of the learner, of retrained trees and of hindsight.

    Parameters
    ----------
    rows
        The events in their order.
    counted : ndarray, int64
        Numbers of the events that count.
    options, name
        What to tell a person.
    own : ndarray, shape (n, columns), float64
        Features of the events themselves; None where they are made up.
    """
    positive, X = rows.positive, rows.of_use()
    everything = np.hstack([X, rows.of_use("running")])
    hindsight = Hindsight(rows)

    def both(known: IntArray, of: IntArray) -> FloatArray:
        return np.hstack([everything[of], hindsight.columns(known, of)])

    makers: dict[str, Callable[[], FloatArray]] = {
        BASE: lambda: scores(X, positive, **with_offset()),
        "retrained, features in use": lambda: retrained(X, positive),
        "retrained, both kinds of features": lambda: retrained(everything, positive),
        "folds, features in use": lambda: by_folds(lambda _, of: X[of], positive),
        "folds, both kinds of features": lambda: by_folds(lambda _, of: everything[of], positive),
        "folds, hindsight without factors": lambda: by_folds(hindsight.without_factors, positive),
        "folds, hindsight": lambda: by_folds(hindsight.columns, positive),
        "folds, both kinds and hindsight": lambda: by_folds(both, positive),
    }
    if own is not None:
        more = np.hstack([X, own])
        makers |= {
            "learner, features of the event too": lambda: scores(more, positive, **with_offset()),
            "retrained, features of the event too": lambda: retrained(more, positive),
        }
    weights = user_weights(rows.users[counted])
    measured = {}
    for title, make in makers.items():
        measured[title] = [metrics(make()[counted], positive[counted], weights)]
        options.say(f"{name}: {title}: {measured[title][0].values[0]}")
    return {"counted": len(counted), "models": table(measured, BASE)}


def run(options: Options) -> dict[str, Any]:
    """Return figures of KuaiRand's second week by target, and of KuaiRec behind the first checkpoint."""
    found = {}
    for target in KUAIRAND_TARGETS:
        rows, frame, second = kuairand(options.folder("kuairand"), target)
        counted = np.arange(second, len(rows.users), dtype=np.int64)
        columns = np.hstack(list(of_event(frame).values()))
        found[target] = compared(rows, counted, options, target, columns)
    rows = kuairec(options.folder("kuairec"))
    first = len(rows.users) // CHECKPOINTS
    counted = np.arange(first, len(rows.users), dtype=np.int64)
    return {"kuairand_second_week": found, "kuairec": compared(rows, counted, options, "KuaiRec")}
