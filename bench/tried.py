"""What was tried beside the effects: a low-rank part, laws of the noise, features of the event itself.

What has options takes those with the least log loss on KuaiRand's first week, and is measured on the second;
on KuaiRec, those of one half of the users, and is measured on the other half, both ways round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np
import polars as pl

from bench.effects_model import HEAVY, OF_PAIR, OF_USER, Constants
from bench.event_features import by_length, of_event
from bench.latent import Prior, expected
from bench.newest import by_labels, by_time
from bench.options import Options
from bench.paired import Metrics, mean_metrics, metrics, table, user_weights
from bench.rows import (
    KUAIRAND_TARGETS,
    OFFSET,
    OWN,
    Rows,
    halves,
    kuairand,
    kuairec,
    scores,
    with_offset,
)
from bench.timing import microseconds
from forks import Forks, ForksSettings
from forks.arrays import BoolArray, FloatArray, IntArray
from forks.validation import log_loss
from pipeline.features.effects import LOGIT_SCALE
from pipeline.features.feature_set import EFFECTS
from pipeline.features.tags import TagLists
from pipeline.sources.schedule import merge_by_time

BASE: Final = "in use"
ORDERS: Final = 5
LABELS: Final = (1.0, 3.0, 10.0)
"""Half-lives in labels of the user."""
MINUTES: Final = (3.0, 10.0, 60.0)
"""Half-lives in minutes."""
MINUTE: Final = 60_000
SPREADS: Final = (0.3, 1.0)
OF_USERS: Final = (0.02, 0.1, 0.5)
OF_ITEMS: Final = (0.02, 0.1)
"""What the priors of the low-rank part are chosen from."""
DIMENSIONS: Final = (2, 4)
TIMED_RUNS: Final = 5

Option: TypeAlias = Callable[[], FloatArray]
Candidates: TypeAlias = Mapping[str, list[Option]]


def candidates(rows: Rows, frame: pl.DataFrame | None) -> Candidates:
    """Return candidates by name, each with options that return the scores of the events, (n,).

    Parameters
    ----------
    rows
        The events in their order.
    frame
        Further columns of KuaiRand's events; None where times and lengths are made up.
    """
    X, positive = rows.of_use(), rows.positive

    def option(columns: FloatArray, **changes: Any) -> Option:
        return lambda: scores(columns, positive, **(with_offset() | changes))

    def beside(columns: FloatArray) -> list[Option]:
        """Return two options: all parts of the learner see the columns, or the linear one alone."""
        more = np.hstack([X, columns])
        return [option(more), option(more, **linear_alone(X))]

    def of_law(noise: int) -> list[Option]:
        return [option(rows.with_effects(X, Constants(noise=noise)))]

    found = {BASE: [option(X)], "noise of user and video multiplied": of_law(OF_PAIR)}
    found["heavy tails"] = of_law(HEAVY)
    adjusted = X[:, EFFECTS.index("user_effect")] + X[:, EFFECTS.index("video_effect")]
    rest, users = rows.signals - adjusted, rows.numbers()[0]
    found["newest signals by labels"] = [
        each for labels in LABELS for each in beside(by_labels(rows.at_once, users, rest, labels))
    ]
    for dimensions in DIMENSIONS:
        parts = [low_rank(rows, X, prior, by_tags=by_tags) for prior, by_tags in _priors(rows, dimensions)]
        found[f"{dimensions} latent dimensions, a column"] = [
            each for latent, _ in parts for each in beside(latent[:, None])
        ]
        found[f"{dimensions} latent dimensions, in the log-odds"] = [option(changed) for _, changed in parts]
    if frame is None:
        return found
    times = frame["time_ms"].to_numpy()
    by_minutes = [by_time(rows.at_once, users, times, rest, MINUTE * minutes) for minutes in MINUTES]
    found["newest signals by time"] = [each for column in by_minutes for each in beside(column)]
    for name, columns in of_event(frame).items():
        found[name] = beside(columns)
    four = np.hstack(list(of_event(frame).values()))
    found["these four"] = beside(four)
    grouped = Rows(rows.users, rows.videos, rows.ratios, by_length(frame)).of_use()
    found["length as a tag"] = [option(grouped)]
    found["length as a tag, newest signals by time, the four"] = [
        option(np.hstack([grouped, column, four]), **changes)
        for column in by_minutes
        for changes in ({}, linear_alone(X))
    ]
    return found


def linear_alone(X: FloatArray) -> dict[str, Any]:
    """Return the settings by which the kernel part sees the features in use and no columns behind them."""
    return {"kernel_columns": (0, X.shape[1])}


def low_rank(rows: Rows, X: FloatArray, prior: Prior, *, by_tags: bool) -> tuple[FloatArray, FloatArray]:
    """Return the signal that a low-rank part expects, and the features with it in the log-odds.

    Parameters
    ----------
    rows
        The events in their order.
    X : ndarray, shape (n, features), float64
        The features in use.
    prior
        Where factors start.
    by_tags
        Whether videos with the same tags start with the same factors.
    """
    users, videos = rows.numbers()
    lists = np.array([rows.tags.find(video) for video in rows.videos.tolist()])
    kinds = _same_tags(lists, rows.tags) if by_tags else videos
    adjusted = X[:, EFFECTS.index("user_effect")] + X[:, EFFECTS.index("video_effect")]
    effects = rows.effects(Constants())
    rest = rows.signals - adjusted
    found = expected(users, videos, kinds, rest, effects[:, len(OWN)], prior)
    logit = LOGIT_SCALE * (adjusted + found[:, 0]) / np.sqrt(effects[:, len(OWN)] + found[:, 1])
    changed = X.copy()
    changed[:, OFFSET] = logit
    return found[:, 0], changed


def of_kuairand(options: Options) -> dict[str, Any]:
    """Return the figures of the second week by target, with options that the first one chose."""
    found: dict[str, Any] = {}
    for target in KUAIRAND_TARGETS:
        rows, frame, second = kuairand(options.folder("kuairand"), target)
        positive = rows.positive
        weeks = {"first_week": slice(0, second), "second_week": slice(second, None)}
        weights = {week: user_weights(rows.users[part]) for week, part in weeks.items()}
        measured: dict[str, dict[str, list[Metrics]]] = {week: {} for week in weeks}
        chosen = {}
        for name, some in candidates(rows, frame).items():
            played = [each() for each in some]
            losses = [log_loss(own[:second], positive[:second]) or math.inf for own in played]
            chosen[name] = int(np.argmin(losses))
            own = played[chosen[name]]
            for week, part in weeks.items():
                measured[week][name] = [metrics(own[part], positive[part], weights[week])]
            options.say(f"KuaiRand, {target}: {name}: {measured['second_week'][name][0].values[0]}")
        found[target] = {"events": len(rows.users) - second, "chosen": chosen} | {
            week: table(of_week, BASE) for week, of_week in measured.items()
        }
    return found


def of_delays(options: Options) -> dict[str, Any]:
    """Return the figures of KuaiRand's second week where a label comes when its play has ended."""
    found: dict[str, Any] = {}
    for target in KUAIRAND_TARGETS:
        rows, frame, second = kuairand(options.folder("kuairand"), target)
        times, positive = frame["time_ms"].to_numpy(), rows.positive
        order = merge_by_time(times, times + frame["play_time_ms"].to_numpy())
        X = rows.of_use(order=order)
        grouped = Rows(rows.users, rows.videos, rows.ratios, by_length(frame)).of_use(order=order)
        rest = rows.signals - X[:, EFFECTS.index("user_effect")] - X[:, EFFECTS.index("video_effect")]
        newest = {
            minutes: by_time(order, rows.numbers()[0], times, rest, MINUTE * minutes) for minutes in MINUTES
        }

        def play(*columns: FloatArray, of: BoolArray = positive, steps: IntArray = order) -> FloatArray:
            return scores(np.hstack(columns), of, steps, **with_offset())

        losses = {
            minutes: log_loss(play(X, column)[:second], positive[:second]) or math.inf
            for minutes, column in newest.items()
        }
        chosen = min(losses, key=losses.__getitem__)
        four = np.hstack(list(of_event(frame).values()))
        played = {
            BASE: play(X),
            "newest signals by time": play(X, newest[chosen]),
            "the four": play(X, four),
            "length as a tag": play(grouped),
            "length as a tag, newest signals by time": play(grouped, newest[chosen]),
            "length as a tag, newest signals by time, the four": play(grouped, newest[chosen], four),
        }
        weights = user_weights(rows.users[second:])
        measured = {name: [metrics(own[second:], positive[second:], weights)] for name, own in played.items()}
        found[target] = {"minutes": chosen, "second_week": table(measured, BASE)}
        options.say(f"KuaiRand, {target}, delayed: done")
    return found


def of_kuairec(options: Options) -> dict[str, Any]:
    """Return the figures of both halves of the users, each with options that the other one chose."""
    rows = kuairec(options.folder("kuairec"))
    parts = [rows.taken(numbers) for numbers in halves(rows.users)]
    orders = options.runs or ORDERS
    measured: dict[str, list[Metrics]] = {}
    chosen = []
    for part, other in zip(parts, reversed(parts), strict=True):
        shuffled = other.taken(_order(len(other.users), 0))
        positive = shuffled.positive
        best = {
            name: int(np.argmin([log_loss(each(), positive) or math.inf for each in some]))
            for name, some in candidates(shuffled, None).items()
        }
        chosen.append(best)
        weights = user_weights(part.users)
        runs: dict[str, list[Metrics]] = {}
        for seed in range(orders):
            order = _order(len(part.users), seed)
            back = np.argsort(order)
            for name, some in candidates(part.taken(order), None).items():
                own = some[best[name]]()[back]
                runs.setdefault(name, []).append(metrics(own, part.positive, weights))
            options.say(f"KuaiRec, a half: {seed + 1} of {orders} orders")
        for name, of_runs in runs.items():
            measured.setdefault(name, []).append(mean_metrics(of_runs))
    return {"events": len(rows.users), "chosen": chosen, "features": table(measured, BASE)}


def costs(options: Options) -> dict[str, float]:
    """Return microseconds an event on KuaiRec's rows of effects and variants, factors and learner."""
    rows = kuairec(options.folder("kuairec"))
    users, videos = rows.numbers()
    X, y = rows.of_use(), np.where(rows.positive, 1.0, -1.0)
    rest, noise = rows.signals, np.ones(len(y))

    def timed(action: Callable[[], object]) -> float:
        return microseconds(action, len(y), TIMED_RUNS)

    def learning(columns: int, **changes: Any) -> Callable[[], object]:
        more = np.ascontiguousarray(np.hstack([X, X[:, :columns]]))
        settings = ForksSettings.practical(more.shape[1], **(with_offset() | changes))
        return lambda: Forks(settings).predict_and_learn_many(more, y)

    found = {
        name: timed(rows.effects_run(Constants(noise=noise)))
        for name, noise in (
            ("effects", OF_USER),
            ("effects, noise of user and video", OF_PAIR),
            ("effects, heavy tails", HEAVY),
        )
    }
    found["effects, without tags"] = timed(rows.without_tags().effects_run(Constants()))
    for dimensions in DIMENSIONS:
        latent = partial(expected, users, videos, videos, rest, noise, Prior(dimensions))
        found[f"{dimensions} latent dimensions"] = timed(latent)
    times = np.arange(len(y), dtype=np.int64)
    found["newest signals by time"] = timed(partial(by_time, rows.at_once, users, times, rest, 1000.0))
    return found | {
        "learner": timed(learning(0)),
        "learner, a column more": timed(learning(1)),
        "learner, six columns more": timed(learning(6)),
        "learner, six columns more for the linear part": timed(learning(6, kernel_columns=(0, X.shape[1]))),
    }


def run(options: Options) -> dict[str, Any]:
    """Return figures by data and candidate, and costs."""
    return {
        "kuairand": of_kuairand(options),
        "kuairand_delayed": of_delays(options),
        "kuairec_halves": of_kuairec(options),
        "microseconds": costs(options),
    }


def _priors(rows: Rows, dimensions: int) -> list[tuple[Prior, bool]]:
    starts = (False, True) if rows.tags.count else (False,)
    return [
        (Prior(dimensions, *values), by_tags)
        for *values, by_tags in product(SPREADS, OF_USERS, OF_ITEMS, starts)
    ]


def _same_tags(lists: IntArray, tags: TagLists) -> IntArray:
    """Return a number of the tags of each event's video, shape (n,)."""
    packed = tags.packed
    of_list = {at: tuple(packed[at + 1 : at + 1 + packed[at]].tolist()) for at in set(lists.tolist())}
    numbers = {own: number for number, own in enumerate(sorted(set(of_list.values())))}
    return np.array([numbers[of_list[at]] for at in lists.tolist()], dtype=np.int64)


def _order(events: int, seed: int) -> IntArray:
    return np.random.default_rng(seed).permutation(events)
