"""What other libraries' learners cost an event, one at a time on the same rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from river import linear_model
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import SGDClassifier

from bench.timing import microseconds
from bench.workload import Workload
from forks.algorithm.kernels import precision

EVENTS = 200
COMPONENTS = 100


def costs(workload: Workload, runs: int) -> dict[str, float]:
    """Return microseconds to predict and learn an event, by learner."""
    rows = workload.rows(EVENTS)
    gamma = precision(float(np.sqrt(rows.shape[1])))
    players = {
        "scikit-learn RBFSampler(100), SGDClassifier": _scikit(
            RBFSampler(gamma=gamma, n_components=COMPONENTS, random_state=0), workload, rows
        ),
        "scikit-learn Nystroem(100), SGDClassifier": _scikit(
            Nystroem(gamma=gamma, n_components=COMPONENTS, random_state=0), workload, rows
        ),
        "River LogisticRegression": _river(workload, rows),
    }
    return {name: microseconds(play, EVENTS, runs) for name, play in players.items()}


def _scikit(sampler: Any, workload: Workload, rows: Any) -> Callable[[], None]:
    sampler.fit(rows)
    model = SGDClassifier(loss="log_loss", random_state=0)
    model.partial_fit(sampler.transform(rows[:1]), workload.y[:1], classes=[-1.0, 1.0])

    def play() -> None:
        for i in range(EVENTS):
            features = sampler.transform(rows[i : i + 1])
            model.decision_function(features)
            model.partial_fit(features, workload.y[i : i + 1])

    return play


def _river(workload: Workload, rows: Any) -> Callable[[], None]:
    model = linear_model.LogisticRegression()
    events = [dict(enumerate(row.tolist())) for row in rows]
    labels = (workload.y[:EVENTS] > 0).tolist()

    def play() -> None:
        for x, y in zip(events, labels, strict=True):
            model.predict_proba_one(x)
            model.learn_one(x, y)

    return play
