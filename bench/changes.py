"""Mistakes where a stream changes at once, and what quiet streams pay for it, with tracking and without.

On streams that change there is also a learner without tracking that starts anew at each change.

The adversarial streams of the papers are those of `python -m research table3` and `table4`. Streams here are
invented ones with three changes, and real ones. What tracking does was chosen on other invented streams, on
svmguide3, ijcnn1 and w7a, on KuaiRand's first week, and on german and spambase without standardised columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from bench import kuairec
from bench.kuairand import TARGETS, rows_by_time, scores_of
from bench.options import Options
from bench.summary import mean_and_error
from forks import Forks, ForksSettings
from forks.arrays import BoolArray, FloatArray
from forks.learning.event_loop import loss_values
from forks.losses import LOGISTIC, probabilities
from forks.validation import auc, log_loss
from pipeline.config.settings import Learner
from pipeline.model.learner_settings import learner_settings
from research.reproduce.data import DataFolder

RUNS: Final = 20
PHASE: Final = 8_000
"""Events from one change to the next."""
WINDOW: Final = 500
BEFORE: Final = 2_000
"""Events before a change whose mistakes are those to come back to."""
COLUMNS: Final = 10
LENGTH: Final = 2.0
"""Length of the weights that make the labels: the best possible mistakes are about 22%."""
SETS: Final = ("german", "spambase", "cod-rna")
TRACKING: Final[Mapping[str, bool]] = MappingProxyType({"tracking": True, "without": False})


def run(options: Options) -> dict[str, Any]:
    """Return figures by stream, with tracking and without."""
    runs = options.runs or RUNS
    found: dict[str, Any] = {"runs": runs}
    for name, stream, changes in (
        ("changes", changing_stream, ("ranking", "sensor", "fashion")),
        ("changing kernel", changing_kernel, ("first", "second", "third")),
    ):
        found[name] = {
            side: dict(zip(changes, _recoveries(stream, runs, scores), strict=True))
            for side, scores in SIDES.items()
        }
        options.say(f"{name}: {found[name]}")
    found["kuairec, delayed"] = _kuairec(options)
    options.say(f"kuairec, delayed: {found['kuairec, delayed']}")
    found["kuairand, second week"] = _kuairand(options)
    options.say(f"kuairand, second week: {found['kuairand, second week']}")
    for name in SETS:
        found[f"{name}, random order"] = _permuted(options, name, runs)
        options.say(f"{name}, random order: {found[f'{name}, random order']}")
    return found


def changing_stream(seed: int, phase: int = PHASE) -> tuple[FloatArray, FloatArray]:
    """Return rows and labels of a stream of four phases, between which it changes at once.

    Labels have log-odds w'x. First all of w is drawn anew (a new ranking). Then the column with the largest
    weight reports its negative plus 2 (a broken sensor). Then half of the weights change their sign (a
    fashion). The best possible mistakes stay the same.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4 * phase, COLUMNS))
    w = np.repeat([_direction(rng), _direction(rng)], [1, 3], axis=0)
    w[3, : COLUMNS // 2] *= -1.0
    y = _labels(rng, np.einsum("ij,ij->i", X, np.repeat(w, phase, axis=0)))
    broken = int(np.argmax(np.abs(w[2])))
    X[2 * phase :, broken] = 2.0 - X[2 * phase :, broken]
    return X, y


def changing_kernel(seed: int, phase: int = PHASE) -> tuple[FloatArray, FloatArray]:
    """Return a stream whose log-odds are a sum of bumps of three columns, drawn anew at each change."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4 * phase, COLUMNS))
    odds = []
    for part in np.split(X[:, :3], 4):
        centres, heights = rng.normal(size=(12, 3)), rng.choice([-1.0, 1.0], 12)
        sums = np.exp(-((part[:, None] - centres) ** 2).sum(axis=2) / 2) @ heights
        odds.append(LENGTH * (sums - np.median(sums)) / sums.std())
    return X, _labels(rng, np.concatenate(odds))


def _direction(rng: np.random.Generator) -> FloatArray:
    w = rng.normal(size=COLUMNS)
    return LENGTH * w / float(np.linalg.norm(w))


def _labels(rng: np.random.Generator, odds: FloatArray) -> FloatArray:
    return np.where(rng.random(len(odds)) < probabilities(odds), 1.0, -1.0)


def _recoveries(
    stream: Callable[[int], tuple[FloatArray, FloatArray]],
    runs: int,
    scores: Callable[[FloatArray, FloatArray], FloatArray],
) -> list[dict[str, Any]]:
    """Return mistakes in percent before each change, in two windows after it, and what is left then."""
    streams = [stream(1_000 + seed) for seed in range(runs)]
    found = np.array([_around_changes(scores(X, y), y) for X, y in streams])
    names = ("before", "first_500", "second_500")
    return [
        {name: mean_and_error(found[:, change, j]) for j, name in enumerate(names)}
        | {"left": mean_and_error(found[:, change, 2] - found[:, change, 0])}
        for change in range(found.shape[1])
    ]


def _with_tracking(X: FloatArray, y: FloatArray) -> FloatArray:
    return Forks(ForksSettings.practical(COLUMNS)).predict_and_learn_many(X, y)


def _without_tracking(X: FloatArray, y: FloatArray) -> FloatArray:
    return Forks(ForksSettings.practical(COLUMNS, tracking=False)).predict_and_learn_many(X, y)


def _started_anew(X: FloatArray, y: FloatArray) -> FloatArray:
    """Return the scores of a new learner for each phase: of one that is told when the stream changes."""
    phases = zip(np.split(X, 4), np.split(y, 4), strict=True)
    return np.concatenate([_without_tracking(*phase) for phase in phases])


SIDES: Final = MappingProxyType(
    {"tracking": _with_tracking, "without": _without_tracking, "started anew": _started_anew}
)


def _around_changes(scores: FloatArray, y: FloatArray) -> FloatArray:
    wrong = 100.0 * ((scores > 0.0) != (y > 0.0))
    rows = []
    for change in range(len(y) // 4, len(y), len(y) // 4):
        middle = change + WINDOW
        rows.append(
            [
                wrong[change - BEFORE : change].mean(),
                wrong[change:middle].mean(),
                wrong[middle : middle + WINDOW].mean(),
            ]
        )
    return np.array(rows)


def _kuairec(options: Options) -> dict[str, Any]:
    stream = kuairec.in_time_order(options.folder("kuairec"), delayed=True)
    found = {}
    for side, learner in _pipelines().items():
        scores = Forks(learner_settings(learner, 0)).run(stream.X, stream.y, stream.order)
        found[side] = _figures(scores, stream.y > 0.0)
    return found


def _kuairand(options: Options) -> dict[str, Any]:
    frame, second = rows_by_time(options)
    found: dict[str, Any] = {}
    for target in TARGETS:
        labels = frame[target].to_numpy() == 1
        found[target] = {
            side: _figures(scores_of(frame, labels, learner)[second:], labels[second:])
            for side, learner in _pipelines().items()
        }
    return found


def _pipelines() -> dict[str, Learner]:
    return {side: Learner.model_validate({"tracking": tracking}) for side, tracking in TRACKING.items()}


def _permuted(options: Options, name: str, runs: int) -> dict[str, Any]:
    """Return mistakes on a set in random orders, and what tracking adds to mistakes and log loss."""
    source = DataFolder(options.data).labelled(name)
    found: dict[str, list[tuple[float, float]]] = {side: [] for side in TRACKING}
    for seed in range(runs):
        data = source.read().permuted(np.random.default_rng(seed))
        for side, tracking in TRACKING.items():
            learner = Forks(ForksSettings.practical(data.X.shape[1], tracking=tracking))
            scores = learner.predict_and_learn_many(data.X, data.y)
            wrong = 100.0 * float(np.mean((scores > 0.0) != (data.y > 0.0)))
            found[side].append((wrong, float(loss_values(scores, data.y, LOGISTIC).mean())))
    tracking_adds = np.subtract(found["tracking"], found["without"])
    return {side: mean_and_error([wrong for wrong, _ in values]) for side, values in found.items()} | {
        "difference": mean_and_error(tracking_adds[:, 0], digits=3),
        "difference_log_loss": mean_and_error(tracking_adds[:, 1], digits=5),
    }


def _figures(scores: FloatArray, labels: BoolArray) -> dict[str, float | None]:
    area, loss = auc(scores, labels), log_loss(scores, labels)
    return {
        "mistakes": round(100.0 * float(np.mean((scores > 0.0) != labels)), 3),
        "auc": None if area is None else round(area, 5),
        "log_loss": None if loss is None else round(loss, 5),
    }
