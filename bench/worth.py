"""What each part of the features is worth, on data that had no say in it.

KuaiRand's second week: the constants of the effects were chosen on KuaiRec, and their fading on the first
week. KuaiRec's sample chose the constants, so its users are halved here: each half is measured with constants
that the other half alone chooses anew, from a start that knows nothing of those in use. One more user, of
KuaiRec's big matrix, is in no sample. Standard errors by bootstrap over users, of the one user over rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from bench.effects_model import OF_ALL, Constants
from bench.options import Options
from bench.paired import Metrics, mean_metrics, metrics, table, user_weights
from bench.rows import (
    KUAIRAND_TARGETS,
    OFFSET,
    OWN,
    WATCHED,
    Rows,
    halves,
    kuairand,
    kuairec,
    kuairec_of_one_user,
    scores,
    with_offset,
)
from forks.arrays import FloatArray, IntArray
from forks.validation import log_loss
from pipeline.features.feature_set import EFFECTS, RUNNING
from pipeline.model.learner_settings import LINEAR_ALPHA

ORDERS: Final = 5
"""Random orders of each half of KuaiRec's users."""
ORDERS_OF_CHOICE: Final = 2
BASE: Final = "all parts"
STEP: Final = 2.0
"""Factor between neighbouring values of a constant that is chosen."""
LARGEST: Final = 64.0
"""The largest value of a constant; the least is one over it."""
TURNS: Final = 4
"""The largest number of times that each constant is chosen given the others."""


class Choice(NamedTuple):
    """Constants that are chosen on data.

    Attributes
    ----------
    constants
        Those of the effects.
    linear_alpha
        Prior precision of the linear part of the learner.
    """

    constants: Constants
    linear_alpha: float


CHOSEN: Final = ("slope", "user_prior", "item_prior", "group_prior", "noise_weight", "logit_scale")
IN_USE: Final = Choice(Constants(), LINEAR_ALPHA)
LABELS: Final = Choice(
    Constants(slope=math.inf, user_prior=0.1, item_prior=0.3, group_prior=0.1), LINEAR_ALPHA
)
"""Constants for signals of -1 and 1, chosen on KuaiRec's sample."""
START: Final = Choice(
    Constants(slope=1.0, user_prior=1.0, item_prior=1.0, group_prior=1.0, noise_weight=1.0, logit_scale=1.0),
    1.0,
)
"""Where a choice starts: all at 1."""


def choose(rows: Rows, start: Choice, orders: int) -> Choice:
    """Return the constants with the least log loss that steps from a start come to, one constant at a time.

    Parameters
    ----------
    rows
        The events that choose.
    start
        Constants to start with; an infinite slope stays.
    orders
        Random orders of the events.
    """
    streams = [rows.taken(_order(len(rows.users), seed)) for seed in range(orders)]
    means = [stream.of_use() for stream in streams]

    def loss(choice: Choice) -> float:
        found = []
        for stream, of_stream in zip(streams, means, strict=True):
            X = stream.with_effects(of_stream, choice.constants)
            own = scores(X, stream.positive, **with_offset(linear_alpha=choice.linear_alpha))
            found.append(log_loss(own, stream.positive) or math.inf)
        return float(np.mean(found))

    best, least = start, loss(start)
    for _ in range(TURNS):
        before = best
        for name in (*CHOSEN, "linear_alpha"):
            for factor in (STEP, 1.0 / STEP):
                while True:
                    tried = _changed(best, name, factor)
                    if tried == best or (found := loss(tried)) >= least:
                        break
                    best, least = tried, found
        if best == before:
            break
    return best


def _changed(choice: Choice, name: str, factor: float) -> Choice:
    """Return the choice with a constant times a factor, or as it is if that is out of range."""
    if name == "linear_alpha":
        return choice._replace(linear_alpha=_bounded(factor * choice.linear_alpha))
    value = getattr(choice.constants, name)
    changed: Any = value if math.isinf(value) else _bounded(factor * value)
    return choice._replace(constants=choice.constants._replace(**{name: changed}))


def _bounded(value: float) -> float:
    return min(max(value, 1.0 / LARGEST), LARGEST)


def played(rows: Rows, choice: Choice, plain: Choice | None) -> dict[str, FloatArray]:
    """Return the scores of each event, (n,), with all parts of the features, and without one at a time.

    Parameters
    ----------
    rows
        The events in their order.
    choice
        Constants.
    plain
        Constants for signals of -1 and 1; None where the signals are of that kind anyway.
    """
    constants, positive = choice.constants, rows.positive
    means = rows.of_use()
    X = means if constants == Constants() else rows.with_effects(means, constants)
    offset = with_offset(linear_alpha=choice.linear_alpha)

    def of(X: FloatArray, **changes: Any) -> FloatArray:
        return scores(X, positive, **changes)

    def of_columns(names: tuple[str, ...]) -> FloatArray:
        kept = [EFFECTS.index(name) for name in names]
        at = names.index("effects_logit")
        return of(X[:, kept], **with_offset(at, choice.linear_alpha))

    one_noise = rows.with_effects(means, constants._replace(noise=OF_ALL))
    one_noise[:, EFFECTS.index("video_noise")] = X[:, EFFECTS.index("video_noise")]
    found = {BASE: of(X, **offset)}
    if plain is not None:
        of_labels = rows.with_effects(means, plain.constants)
        found["labels for signals"] = of(of_labels, **with_offset(linear_alpha=plain.linear_alpha))
    found["one noise for all users"] = of(one_noise, **offset)
    if rows.tags.count:
        untagged = rows.without_tags()
        found["without tags"] = of(untagged.with_effects(untagged.of_use(), constants), **offset)
    running = rows.of_use("running")
    return found | {
        "without the noise columns": of_columns(tuple(n for n in EFFECTS if not n.endswith("_noise"))),
        "log-odds not as an offset": of(X),
        "without means and counts": of_columns(OWN),
        "nothing fades": of(rows.with_effects(means, constants._replace(fade=1.0)), **offset),
        "rings of 8": of(rows.with_effects(means, constants._replace(ring=8)), **offset),
        "rings of 64": of(rows.with_effects(means, constants._replace(ring=64)), **offset),
        "solved at each label": of(rows.with_effects(means, constants._replace(interval=1)), **offset),
        "log-odds alone, no learner": X[:, OFFSET],
        "running means and counts": of(running),
        "the same without tags": of(running[:, : RUNNING.index("video_tag_label_mean")]),
    }


def of_kuairand(options: Options) -> dict[str, Any]:
    """Return the figures of the second week by target."""
    found: dict[str, Any] = {}
    for target in KUAIRAND_TARGETS:
        rows, _, second = kuairand(options.folder("kuairand"), target)
        weights = user_weights(rows.users[second:])
        measured = {
            name: [metrics(own[second:], rows.positive[second:], weights)]
            for name, own in played(rows, IN_USE, LABELS if target == WATCHED else None).items()
        }
        found[target] = {"events": len(rows.users) - second, "features": table(measured, BASE)}
        options.say(f"KuaiRand, {target}: done")
    return found


def of_kuairec(options: Options) -> dict[str, Any]:
    """Return the figures of KuaiRec's sample, each half of the users with constants that the other chose."""
    rows = kuairec(options.folder("kuairec"))
    parts = [rows.taken(numbers) for numbers in halves(rows.users)]
    orders = options.runs or ORDERS
    measured: dict[str, list[Metrics]] = {}
    chosen = []
    for part, other in zip(parts, reversed(parts), strict=True):
        choice, plain = (
            choose(other, start, ORDERS_OF_CHOICE)
            for start in (START, START._replace(constants=START.constants._replace(slope=math.inf)))
        )
        options.say(f"chosen: {choice}, for labels {plain}")
        chosen.append(
            {
                "constants": _named(choice),
                "for_labels": {name: value for name, value in _named(plain).items() if name != "slope"},
            }
        )
        weights = user_weights(part.users)
        runs: dict[str, list[Metrics]] = {}
        for seed in range(orders):
            order = _order(len(part.users), seed)
            shuffled = part.taken(order)
            found = played(shuffled, choice, plain) | _in_use(shuffled)
            for name, own in found.items():
                runs.setdefault(name, []).append(metrics(*_back(own, shuffled, order), weights))
            options.say(f"KuaiRec, a half: {seed + 1} of {orders} orders")
        for name, of_runs in runs.items():
            measured.setdefault(name, []).append(mean_metrics(of_runs))
    return {
        "events": len(rows.users),
        "orders": orders,
        "chosen": chosen,
        "features": table(measured, BASE),
    }


def of_one_user(options: Options) -> dict[str, Any]:
    """Return the figures of the user of KuaiRec's big matrix, behind all rows of the sample."""
    folder = options.folder("kuairec")
    before, own = kuairec(folder), kuairec_of_one_user(folder)
    n = len(own.users)
    rows = before.followed_by(own)
    weights = user_weights(np.arange(n, dtype=np.int64))
    measured = {
        name: [metrics(found[-n:], own.positive, weights)]
        for name, found in played(rows, IN_USE, LABELS).items()
    }
    return {"events": n, "features": table(measured, BASE)}


def run(options: Options) -> dict[str, Any]:
    """Return figures by data and part of the features."""
    return {
        "kuairand_second_week": of_kuairand(options),
        "kuairec_halves": of_kuairec(options),
        "kuairec_one_user": of_one_user(options),
    }


def _in_use(rows: Rows) -> dict[str, FloatArray]:
    """Return the scores with the constants in use, which both halves chose."""
    return {"constants in use, of both halves": scores(rows.of_use(), rows.positive, **with_offset())}


def _back(own: FloatArray, rows: Rows, order: IntArray) -> tuple[FloatArray, Any]:
    """Return scores and labels in the order that the rows had before."""
    back = np.argsort(order)
    return own[back], rows.positive[back]


def _order(events: int, seed: int) -> IntArray:
    return np.random.default_rng(seed).permutation(events)


def _named(choice: Choice) -> Mapping[str, float]:
    values = {name: getattr(choice.constants, name) for name in CHOSEN}
    return values | {"linear_alpha": choice.linear_alpha}
