"""The target of learning: what labels mean, and what a learner is taught of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from forks import LossName
from pipeline.config.settings import OnMissing

Floats: TypeAlias = NDArray[np.float64]
Booleans: TypeAlias = NDArray[np.bool_]


class Target(ABC):
    """The rules that turn values of labels into what a learner is taught, and scores into predictions.

    A label is positive if its value is above the threshold. Statistics count positive labels, whatever is
    predicted.
    """

    __slots__ = ()

    threshold: float
    """A value above this is a positive label."""

    @property
    @abstractmethod
    def losses(self) -> tuple[LossName, ...]:
        """The losses that a learner may minimise, of which the first is the default."""

    def is_positive(self, value: float) -> bool:
        """Return whether a label is positive."""
        return value > self.threshold

    def are_positive(self, values: Floats) -> Booleans:
        """Return `is_positive` of each value, shape (n,)."""
        return values > self.threshold

    @abstractmethod
    def summand(self, value: float) -> float:
        """Return what statistics sum of a value."""

    @abstractmethod
    def summands(self, values: Floats) -> Floats:
        """Return `summand` of each value, shape (n,), with the same bits."""

    @abstractmethod
    def signal(self, value: float) -> float:
        """Return what adjusted effects are made of: a number in [-1, 1], as a float32 can hold it."""

    @abstractmethod
    def signals(self, values: Floats) -> Floats:
        """Return `signal` of each value, shape (n,), with the same bits."""

    @abstractmethod
    def taught(self, loss: LossName, value: float) -> float:
        """Return what a learner with this loss is taught."""

    @abstractmethod
    def taught_many(self, loss: LossName, values: Floats) -> Floats:
        """Return `taught` of each value, shape (n,), with the same bits."""

    @abstractmethod
    def prediction(self, score: float) -> bool | float:
        """Return what a score predicts."""

    @abstractmethod
    def predictions(self, scores: Sequence[float]) -> list[bool] | list[float]:
        """Return `prediction` of each score."""

    @abstractmethod
    def label(self, value: float) -> bool | float:
        """Return the label that outcomes name, which is compared with the prediction."""

    @abstractmethod
    def labels(self, values: Iterable[float]) -> list[bool] | list[float]:
        """Return `label` of each value, as a list."""

    @abstractmethod
    def correct(self, score: float, value: float) -> bool | None:
        """Return whether a score predicts the label; None where predictions are not right or wrong."""

    @abstractmethod
    def correct_many(self, scores: Floats, values: Floats) -> list[bool] | list[None]:
        """Return `correct` of each score and value, shapes (n,)."""

    @abstractmethod
    def on_missing(self, setting: OnMissing | None) -> OnMissing:
        """Return what a prediction that expires teaches, given the setting, which may leave it open."""

    def missing_label(self, setting: OnMissing | None) -> bool | None:
        """Return whether the label of a prediction that expired is positive; None if nothing is learned.

        Its value counts as 0.
        """
        return self.is_positive(0.0) if self.on_missing(setting) == "negative" else None
