"""A regression target: the value of a label itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from forks import LossName
from pipeline.config.settings import OnMissing
from pipeline.config.target_settings import RegressionSettings
from pipeline.features.target import Floats, Target


@dataclass(frozen=True, slots=True)
class RegressionTarget(Target):
    """A score predicts the value of a label, on a scale on which usual values are between -1 and 1.

    Labels above the offset count as positive in statistics.

    Attributes
    ----------
    threshold
        The value that a score of 0 predicts: `target.offset`.
    cap
        Values further than this from it count as so far, > 0.
    scale
        What a score of 1 adds to it, > 0.

    Examples
    --------
    >>> minutes = RegressionTarget(threshold=30.0, cap=60.0, scale=10.0)
    >>> minutes.taught("squared", 45.0), minutes.prediction(1.5), minutes.summand(45.0)
    (1.5, 45.0, 0.625)
    """

    threshold: float
    cap: float
    scale: float

    @classmethod
    def of(cls, settings: RegressionSettings) -> Self:
        """Return the target of the settings."""
        return cls(settings.offset, settings.cap, settings.scale)

    @property
    def losses(self) -> tuple[LossName, ...]:
        """Squared loss alone."""
        return ("squared",)

    def summand(self, value: float) -> float:
        """Return what statistics sum of a value: from 0 to 1, and 0.5 at the threshold.

        So sums of values are within the numbers of labels, as snapshots and shares expect.
        """
        return 0.5 + self._distance(value) / (2.0 * self.cap)

    def summands(self, values: Floats) -> Floats:
        """Return `summand` of each value, shape (n,), with the same bits."""
        return 0.5 + self._distances(values) / (2.0 * self.cap)

    def value_of(self, mean: float) -> float:
        """Return the value that a mean of summands stands for.

        Examples
        --------
        >>> target = RegressionTarget(30.0, 60.0, 10.0)
        >>> target.value_of(target.summand(45.0))
        45.0
        """
        return self.threshold + 2.0 * self.cap * (mean - 0.5)

    def signal(self, value: float) -> float:
        """Return the capped distance from the threshold, as a share of the cap."""
        return float(np.float32(self._distance(value) / self.cap))

    def signals(self, values: Floats) -> Floats:
        """Return `signal` of each value, shape (n,), with the same bits."""
        return (self._distances(values) / self.cap).astype(np.float32).astype(np.float64)

    def taught(self, loss: LossName, value: float) -> float:  # noqa: ARG002 - there is one loss
        """Return the capped distance from the threshold, in units of `scale`."""
        return self._distance(value) / self.scale

    def taught_many(self, loss: LossName, values: Floats) -> Floats:  # noqa: ARG002 - as above
        """Return `taught` of each value, shape (n,), with the same bits."""
        return self._distances(values) / self.scale

    def prediction(self, score: float) -> float:
        """Return the value that a score predicts."""
        return self.threshold + self.scale * score

    def predictions(self, scores: Sequence[float]) -> list[float]:
        """Return `prediction` of each score."""
        return [self.threshold + self.scale * score for score in scores]

    def label(self, value: float) -> float:
        """Return the value as it is learned: capped.

        Examples
        --------
        >>> RegressionTarget(30.0, 60.0, 10.0).label(900.0)
        90.0
        """
        return self.threshold + self._distance(value)

    def labels(self, values: Iterable[float]) -> list[float]:
        """Return `label` of each value, as a list."""
        return [self.label(value) for value in values]

    def correct(self, score: float, value: float) -> None:  # noqa: ARG002 - a number is never just right
        """Return None: a number is more or less right."""
        return

    def correct_many(self, scores: Floats, values: Floats) -> list[None]:  # noqa: ARG002 - as above
        """Return None for each."""
        return [None] * len(scores)

    def on_missing(self, setting: OnMissing | None) -> OnMissing:  # noqa: ARG002 - no number can be assumed
        """Return `drop`: no number says that a label is missing."""
        return "drop"

    def _distance(self, value: float) -> float:
        return max(min(value - self.threshold, self.cap), -self.cap)

    def _distances(self, values: Floats) -> Floats:
        return np.clip(values - self.threshold, -self.cap, self.cap)
