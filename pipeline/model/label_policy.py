"""Choose which labels to ask for, where each costs money or goodwill. Pure.

A decision follows from the event's id, in a slate the item's too, the model's score and features, and the
number of labels asked for before. So batches, restarts and audits make the same decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import ClassVar, Final

from forks.compiled.exponential import exponential
from pipeline.config.settings import Labels
from pipeline.features.feature_set import KUAIREC_FEATURES, FeatureSet
from pipeline.features.totals import PRIOR_WEIGHT
from pipeline.records.encoding import encode
from pipeline.records.fields import Id

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

    A decision takes about a microsecond.

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
        """Return whether to ask for the label of a prediction.

        Parameters
        ----------
        event_id
            The id of the event; with slates that and the ids of the item.
        score, features
            The model's score and the features that it used.
        predicted, asked
            The number of the partition's predictions before this one, with slates of items, and of those
            asked for among them.
        """
        name, rate = self._settings.policy, self._settings.rate
        if name == "random":
            return self._uniform(event_id) < rate
        if predicted < self.warm_up_predictions:
            return True
        ahead = (asked - self.warm_up_predictions) - rate * (predicted + 1 - self.warm_up_predictions)
        if abs(ahead) >= MAX_RATE_DRIFT:
            return ahead < 0.0
        slowed = exponential(-abs(ahead) / RATE_TOLERANCE)
        h = rate * slowed if ahead > 0.0 else rate / slowed
        if name == "margin":
            return abs(score) < h
        excess = max(0.0, abs(score) - 0.5 * leverage([features[place] for place in self._log_counts]))
        return self._uniform(event_id) * (h + excess) < h

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

    def _uniform(self, event_id: Id | tuple[Id, ...]) -> float:
        """Return the event's coin: a number of at least 0 and less than 1."""
        digest = blake2b(encode(event_id), digest_size=8, key=self._key).digest()
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
    if not log_counts:
        return 1.0
    total = 0.0
    for log_count in log_counts:  # not sum(), which rounds otherwise from Python 3.12 on
        inverse = exponential(-log_count)
        total += inverse / (1.0 + (PRIOR_WEIGHT - 1.0) * inverse)  # 1 / (n + b) for inverse = 1 / (1 + n)
    return PRIOR_WEIGHT / len(log_counts) * total
