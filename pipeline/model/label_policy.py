"""Choose which labels to ask for, where each costs money or goodwill. Pure.

A decision follows from the event's id, in a slate the item's too, the model's score and features, and the
number of labels asked for before. So batches, restarts and audits make the same decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks.compiled.exponential import exponential
from forks.jit import njit
from pipeline.config.settings import Labels
from pipeline.features.feature_set import KUAIREC_FEATURES, FeatureSet
from pipeline.features.totals import PRIOR_WEIGHT
from pipeline.records.encoding import encode
from pipeline.records.fields import Id
from pipeline.records.texts import Texts

Flags: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]

RATE_TOLERANCE: Final = 50.0
"""Labels ahead of the rate at which a margin has to be smaller by the factor e to be asked for."""
MAX_RATE_DRIFT: Final = 250.0
"""The largest number of labels by which the count may be ahead of the rate or behind it, for any scores."""

LOG_COUNTS: Final = tuple(KUAIREC_FEATURES.places("log_count"))
"""Places of the log counts among KuaiRec's features."""


class LabelPolicy:
    """Decides for which predictions the label is asked for, and which outcomes are learned.

    ``random`` flips a coin for each prediction. ``margin`` asks where the score is close to 0. ``adaptive``
    asks as OKSG does, with probability h / (h + max(0, |score| - tau / 2)): less often, the surer the model
    is, and always where the score is small compared with what is not known yet. The coin is a hash of
    the event's id under the seed. Of a slate, each item is decided by itself: its coin is a hash of the
    event's id and its own, and it counts as a prediction.

    Where the paper leaves open what a stream needs, two choices are made here:

    - tau is the paper's ridge leverage, Eq. (3), of each entity, such as user and video, in the indicator
      features behind their running means: b / (n + b) each, with n labels so far and the means' prior weight
      as b, and then the mean of these. It is 1 where none has had a label.
    - h is not fixed, since nobody knows which h keeps to a budget. It is the rate, times
      exp(-ahead / `RATE_TOLERANCE`), where ahead is the number of labels asked for ahead of the rate. The
      threshold of ``margin`` is this h, too. This integral control needs no state but the count. A partition
      is never more than `MAX_RATE_DRIFT` labels (and the present one) away from the rate.

    The first `warm_up_predictions` of a partition are all asked for, and the rate counts from then on. The
    scores of a model with a handful of labels are too far from 0, so that without this warm-up it would ask
    for hardly any more labels for a long time. ``random`` needs no warm-up.

    Parameters
    ----------
    settings
        The policy, its rate and its seed. The policy is not ``all``, which leaves nothing to decide.
    log_counts
        Places among the features of the log counts of the entities.

    References
    ----------
    Yang and Li, adaptive online kernel sampling for the nodes of a graph (OKSG), Definition 1 and Eq. (3).

    Examples
    --------
    >>> policy = LabelPolicy(Labels(policy="margin", rate=0.2))
    >>> [policy.asks("e", score, [0.0] * 10, predicted=1249, asked=450) for score in (-0.1, 0.1, 0.3)]
    [True, True, False]
    >>> policy.asks("e", 0.1, [0.0] * 10, predicted=1249, asked=500)
    False
    """

    warm_up_predictions: ClassVar = 250

    def __init__(self, settings: Labels, log_counts: Sequence[int] = LOG_COUNTS) -> None:
        self._settings = settings
        self._log_counts = log_counts
        self._key = settings.seed.to_bytes(8, "little")

    @property
    def needs_scores(self) -> bool:
        """Whether decisions depend on scores."""
        return self._settings.policy != "random"

    def asks(
        self,
        event_id: Id | tuple[Id, ...],
        score: float,
        features: Sequence[float],
        *,
        predicted: int,
        asked: int,
    ) -> bool:
        """Return whether to ask for the label of a prediction: see `ask`."""
        coins, row = self.coins(Texts.of([encode(event_id)])), np.array([features], dtype=np.float64)
        return bool(self.ask(coins, np.array([score]), row, predicted=predicted, asked=asked)[0])

    @property
    def tosses_coins(self) -> bool:
        """Whether decisions depend on coins."""
        return self._settings.policy != "margin"

    def coins(self, event_ids: Texts) -> Floats:
        """Return the coins of events: numbers of at least 0 and less than 1, shape (n,).

        Parameters
        ----------
        event_ids
            The JSON of the ids of the n events; with slates, of lists of that and the ids of the item.
        """
        return np.array([*map(self._coin, event_ids)], dtype=np.float64)

    def ask(self, coins: Floats, scores: Floats, features: Floats, *, predicted: int, asked: int) -> Flags:
        """Return for which of some predictions, in their order, to ask for the label; shape (n,).

        Parameters
        ----------
        coins
            Those of the n events; any numbers where there are none.
        scores, features
            The model's scores, shape (n,), and the features that it used, shape (n, features).
        predicted, asked
            The number of the partition's predictions before these, with slates of items, and of those asked
            for among them.
        """
        name, rate = self._settings.policy, self._settings.rate
        if name == "random":
            return coins < rate
        decided = np.empty(len(scores), dtype=np.bool_)
        log_counts = np.ascontiguousarray(features[:, list(self._log_counts)])
        adaptive, warm_up = name == "adaptive", self.warm_up_predictions
        _decide(
            adaptive,
            float(rate),
            np.ascontiguousarray(scores),
            log_counts,
            coins,
            predicted,
            asked,
            warm_up,
            decided,
        )
        return decided

    def learns(self, asked: bool | None, labelled: bool) -> bool:
        """Return whether an outcome is learned.

        Parameters
        ----------
        asked
            Whether its label was asked for; None for a prediction made without a policy.
        labelled
            Whether its label came.
        """
        return bool(self.learns_many(np.array([asked is False]), np.array([labelled]))[0])

    def learns_many(self, refused: Flags, labelled: Flags) -> Flags:
        """Return `learns` of outcomes, by whether their labels were not asked for, and whether they came."""
        return ~refused | labelled if self._settings.learn_unasked else ~refused

    def _coin(self, event_id: bytes) -> float:
        """Return an event's coin: a number of at least 0 and less than 1."""
        digest = blake2b(event_id, digest_size=8, key=self._key).digest()
        return (int.from_bytes(digest, "little") >> 11) * 2.0**-53


def label_policy(settings: Labels, features: FeatureSet = KUAIREC_FEATURES) -> LabelPolicy | None:
    """Return the policy; None where all labels are learned."""
    return None if settings.policy == "all" else LabelPolicy(settings, features.places("log_count"))


def leverage(log_counts: Sequence[float]) -> float:
    """Return the mean ridge leverage of a prediction's entities, from the logs of one more than their labels.

    It is 1 where none has had a label, and falls towards 0 with their labels.

    Examples
    --------
    >>> leverage([0.0, 0.0]), leverage([])
    (1.0, 1.0)
    >>> round(leverage([3.433987, 4.51086]), 6)  # log(1 + 30), log(1 + 90)
    0.175
    """
    return float(_leverage(np.array([log_counts], dtype=np.float64), np.int64(0)))


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    policy = LabelPolicy(Labels(policy="adaptive"), [0])
    policy.asks("e", 0.5, [0.0], predicted=0, asked=0)
    leverage([])


@njit(cache=True, nogil=True)
def _leverage(log_counts: Floats, row: int | np.int64) -> float:
    """Return `leverage` of a row."""
    if not log_counts.shape[1]:
        return 1.0
    total = 0.0
    for column in range(log_counts.shape[1]):
        inverse = exponential(-log_counts[row, column])
        total += inverse / (1.0 + (PRIOR_WEIGHT - 1.0) * inverse)  # 1 / (n + b) for inverse = 1 / (1 + n)
    mean: float = PRIOR_WEIGHT / log_counts.shape[1] * total
    return mean


@njit(cache=True, nogil=True)
def _decide(  # noqa: PLR0917 - compiled code is called by position
    adaptive: bool,
    rate: float,
    scores: Floats,
    log_counts: Floats,
    coins: Floats,
    predicted: int,
    asked: int,
    warm_up: int,
    out: Flags,
) -> None:
    """Write the decisions of `LabelPolicy.ask` that depend on scores."""
    for row in range(len(scores)):
        ahead = float(asked - warm_up) - rate * float(predicted + row + 1 - warm_up)
        if predicted + row < warm_up:
            wanted = True
        elif abs(ahead) >= MAX_RATE_DRIFT:
            wanted = ahead < 0.0
        else:
            slowed = exponential(-abs(ahead) / RATE_TOLERANCE)
            h = rate * slowed if ahead > 0.0 else rate / slowed
            if adaptive:
                excess = max(0.0, abs(scores[row]) - 0.5 * _leverage(log_counts, row))
                wanted = coins[row] * (h + excess) < h
            else:
                wanted = abs(scores[row]) < h
        asked += wanted
        out[row] = wanted
