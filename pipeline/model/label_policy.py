"""Which labels are worth asking for, where each costs money or goodwill. Pure.

A decision follows from the event's id, what the model says of it, and how many labels were asked for before.
So batches, restarts and audits come to the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import ClassVar, Final

from pipeline.config.tree import Labels
from pipeline.features.statistics import FEATURES
from pipeline.features.totals import PRIOR_WEIGHT
from pipeline.records.encoding import encode
from pipeline.records.fields import Id

RATE_TOLERANCE: Final = 50.0
"""Labels ahead of the rate at which a margin has to be smaller by the factor e to be asked for."""
MAX_RATE_DRIFT: Final = 250.0
"""Labels that may have been asked for ahead of the rate, or be missing behind it, whatever the scores."""

_USER, _VIDEO = FEATURES.index("user_log_count"), FEATURES.index("video_log_count")


class LabelPolicy:
    """Says of which predictions the label is asked for, and what labels teach.

    ``random`` flips a coin for each prediction. ``margin`` asks where the score is close to 0. ``adaptive``
    does as OKSG and asks with probability h / (h + max(0, |score| - tau / 2)): the more seldom, the surer the
    model is, and always where the score is small beside what is not known yet (Yang and Li, Definition 1).
    The coin is a hash of the event's id under the seed.

    Two things in it are decisions made here, where the paper leaves a stream's needs open:

    - tau is the paper's ridge leverage, Eq. (3), of what a model knows least of, the user and the video, in
      the indicator features behind their running means: b / (n + b) each, with n labels so far and the means'
      prior weight as b, and then the mean of the two. It is 1 where neither has had a label.
    - h is not fixed, since nobody knows which h keeps to a budget. It is the rate, times exp(-ahead /
    `RATE_TOLERANCE`)
      with as many labels as have been asked for ahead of the rate; ``margin`` has it for its threshold. This
      integral control needs no state but the count. A partition is never more than `MAX_RATE_DRIFT` labels
      (and the one in hand) from the rate.

    The first predictions of a partition, `first`, are all asked for, and only then does the rate count: a
    model that has seen a handful of labels is sure of whatever it says, so that hardly any others would
    follow for a long time. ``random`` needs no such beginning.

    A decision takes about a microsecond.

    Parameters
    ----------
    settings
        The policy, its rate and its seed; anything but ``all``, with which there is nothing to decide.

    Examples
    --------
    >>> policy = LabelPolicy(Labels(policy="margin", rate=0.2))
    >>> [policy.asks("e", score, [0.0] * 10, predicted=1249, asked=450) for score in (-0.1, 0.1, 0.3)]
    [True, True, False]
    >>> policy.asks("e", 0.1, [0.0] * 10, predicted=1249, asked=500)
    False
    """

    first: ClassVar = 250

    def __init__(self, settings: Labels) -> None:
        self._settings = settings
        self._key = settings.seed.to_bytes(8, "little")

    def asks(
        self, event_id: Id, score: float, features: Sequence[float], *, predicted: int, asked: int
    ) -> bool:
        """Whether the label of a prediction is asked for.

        Parameters
        ----------
        event_id
            The event's.
        score, features
            What the model says, and from which running features.
        predicted, asked
            Predictions of the partition before this one, and how many of them were asked for.
        """
        name, rate = self._settings.policy, self._settings.rate
        if name == "random":
            return self._uniform(event_id) < rate
        if predicted < self.first:
            return True
        ahead = (asked - self.first) - rate * (predicted + 1 - self.first)
        if abs(ahead) >= MAX_RATE_DRIFT:
            return ahead < 0.0
        h = rate * math.exp(-ahead / RATE_TOLERANCE)
        if name == "margin":
            return abs(score) < h
        excess = max(0.0, abs(score) - 0.5 * leverage(features))
        return self._uniform(event_id) * (h + excess) < h

    def learns(self, asked: bool | None, labelled: bool) -> bool:
        """Whether an outcome is learned, by whether its label was asked for (None: by no policy) and came."""
        return asked is not False or (labelled and self._settings.learn_unasked)

    def _uniform(self, event_id: Id) -> float:
        """A number from 0 up to, not including, 1."""
        digest = blake2b(encode(event_id), digest_size=8, key=self._key).digest()
        return (int.from_bytes(digest, "little") >> 11) * 2.0**-53


def label_policy(settings: Labels) -> LabelPolicy | None:
    """The policy; None where all labels are wanted."""
    return None if settings.policy == "all" else LabelPolicy(settings)


def leverage(features: Sequence[float]) -> float:
    """How little is known of a prediction's user and video, from their running features: 1 is nothing.

    Examples
    --------
    >>> leverage([0.0] * 10)
    1.0
    >>> round(leverage([0.0, 0.0, 0.0, math.log1p(30), 0.0, 0.0, 0.0, math.log1p(90), 0.0, 0.0]), 6)
    0.175
    """
    user, video = math.expm1(features[_USER]), math.expm1(features[_VIDEO])
    return 0.5 * PRIOR_WEIGHT * (1.0 / (user + PRIOR_WEIGHT) + 1.0 / (video + PRIOR_WEIGHT))
