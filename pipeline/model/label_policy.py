"""Choose which labels to ask for, where each costs money or goodwill. Pure.

A decision follows from the event's id, in a slate the item's too, the model's score and features, and the
number of labels asked for before. So batches, restarts and audits make the same decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import ClassVar, Final, NamedTuple, TypeAlias

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
Integers: TypeAlias = NDArray[np.int64]

RATE_TOLERANCE: Final = 50.0
"""Labels ahead of the rate at which a margin has to be smaller by the factor e to be asked for."""
MAX_RATE_DRIFT: Final = 250.0
"""The largest number of labels by which the count may be ahead of the rate or behind it, for any scores."""

NO_PLACES: Final = np.empty(0, dtype=np.int64)
NO_COINS: Final = np.empty(0)
LOG_COUNTS: Final = tuple(KUAIREC_FEATURES.places("log_count"))
"""Places of the log counts among KuaiRec's features."""


class PreparedPolicy(NamedTuple):
    """A policy for n predictions, for compiled code.

    Attributes
    ----------
    adaptive, rate, warm_up
        What it is, its rate, and the number of predictions that are all asked for.
    log_counts : ndarray, shape (entities,), int64
        Places among the features of the log counts of the entities.
    looks
        Whether it looks at scores. Otherwise it has decided before.
    learns_unasked
        Whether labels are learned that were not asked for.
    coins : ndarray, shape (n,), float64
        Those of the events; any numbers where there are none.
    asked : ndarray, shape (n,), int8
        1 or 0; any other number where labels are learned as they come. Written by `decide`.
    counts : ndarray, shape (2,), int64
        The number of the partition's predictions before these, with slates of items, and of those asked for
        among them. Changed by `decide`.
    """

    adaptive: bool
    rate: float
    warm_up: int
    log_counts: Integers
    looks: bool
    learns_unasked: bool
    coins: Floats
    asked: NDArray[np.int8]
    counts: Integers


def no_policy(n: int) -> PreparedPolicy:
    """Return what lets all labels of n predictions be learned as they come."""
    no_places, counts, undecided = NO_PLACES, np.zeros(2, dtype=np.int64), np.full(n, -1, dtype=np.int8)
    return PreparedPolicy(False, 1.0, 0, no_places, False, False, NO_COINS, undecided, counts)


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
        decided = np.empty(len(scores), dtype=np.int8)
        policy = self.prepared(coins, decided, np.array([predicted, asked]))
        decide(policy, scores, features, 0, len(scores))
        asked_for: Flags = decided == 1
        return asked_for

    def prepared(self, coins: Floats, asked: NDArray[np.int8], counts: Integers) -> PreparedPolicy:
        """Return the policy for compiled code, with these columns: see `PreparedPolicy`."""
        settings = self._settings
        return PreparedPolicy(
            settings.policy == "adaptive",
            float(settings.rate),
            self.warm_up_predictions,
            np.array(self._log_counts, dtype=np.int64),
            self.needs_scores,
            settings.learn_unasked,
            coins,
            asked,
            counts,
        )

    def learns(self, asked: bool | None, labelled: bool) -> bool:
        """Return whether an outcome is learned.

        Parameters
        ----------
        asked
            Whether its label was asked for; None for a prediction made without a policy.
        labelled
            Whether its label came.
        """
        return asked is not False or (labelled and self._settings.learn_unasked)

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
    row = np.array(log_counts, dtype=np.float64)
    return float(_leverage(row, np.arange(len(row))))


def warm_up() -> None:
    """Compile, or load what was compiled before."""
    policy = LabelPolicy(Labels(policy="adaptive"), [0])
    policy.asks("e", 0.5, [0.0], predicted=0, asked=0)
    leverage([])


@njit(cache=True, nogil=True)
def decide(policy: PreparedPolicy, scores: Floats, features: Floats, begin: int, end: int) -> None:
    """Decide for which of the predictions from `begin` to `end` the label is asked for, by their scores.

    Parameters
    ----------
    policy
        It looks at scores. What is asked for, and the counts, are written.
    scores, features
        Of the n predictions, as for `LabelPolicy.ask`.
    begin, end
        The first one, and the one behind the last.
    """
    warm_up, rate, counts = policy.warm_up, policy.rate, policy.counts
    for row in range(begin, end):
        ahead = float(counts[1] - warm_up) - rate * float(counts[0] + 1 - warm_up)
        if counts[0] < warm_up:
            wanted = True
        elif abs(ahead) >= MAX_RATE_DRIFT:
            wanted = ahead < 0.0
        else:
            slowed = exponential(-abs(ahead) / RATE_TOLERANCE)
            h = rate * slowed if ahead > 0.0 else rate / slowed
            if policy.adaptive:
                excess = max(0.0, abs(scores[row]) - 0.5 * _leverage(features[row], policy.log_counts))
                wanted = policy.coins[row] * (h + excess) < h
            else:
                wanted = abs(scores[row]) < h
        counts[0] += 1
        counts[1] += wanted
        policy.asked[row] = wanted


@njit(cache=True, nogil=True)
def _leverage(features: Floats, places: Integers) -> float:
    """Return `leverage` of the log counts at these places."""
    if not places.shape[0]:
        return 1.0
    total = 0.0
    for place in places:
        inverse = exponential(-features[place])
        total += inverse / (1.0 + (PRIOR_WEIGHT - 1.0) * inverse)  # 1 / (n + b) for inverse = 1 / (1 + n)
    mean: float = PRIOR_WEIGHT / places.shape[0] * total
    return mean
