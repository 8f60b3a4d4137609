"""Kernelised online gradient descent."""

from __future__ import annotations

from typing import ClassVar

from forks.algorithm.kernels import precision
from forks.algorithm.kogd import Expansion, expansion_value
from forks.arrays import FloatArray
from forks.losses import LOSSES, LossName, loss_slope
from forks.rivals.base.learner import VectorRival, known_loss, positive


class KOGD(VectorRival):
    """Gradient descent on each loss plus decay |f|^2 / 2, in the space of the Gaussian kernel.

    The update is f <- (1 - step decay) f - step dl/ds k(x, .), without truncation. There is no budget: each
    event whose loss has a slope is stored, so an event costs O(m dimension) after m stored events. Stage 1 of
    `forks.Forks` is the same until its buffer is full; the defaults are those of FORKS, appendix H.

    Parameters
    ----------
    dimension
        Number of columns, >= 1.
    width
        Width of the Gaussian kernel, > 0.
    step
        Step size, > 0.
    decay
        Regularisation lambda, >= 0, with step * decay < 1.
    loss
        Loss: ``hinge``, ``logistic`` or another of `forks.losses`.

    References
    ----------
    Kivinen, Smola and Williamson, Online Learning with Kernels, IEEE Trans. Signal Process. 52, 2004.

    Examples
    --------
    >>> learner = KOGD(1, step=0.5, decay=0.1)
    >>> learner.learn_one([2.0], 1)
    1.0
    >>> learner.predict_one([2.0])
    0.5
    """

    arrays: ClassVar = {"points": (float, (None, "dimension")), "coefficients": (float, (None,))}

    def __init__(
        self,
        dimension: int,
        *,
        width: float = 1.0,
        step: float = 0.2,
        decay: float = 0.01,
        loss: LossName = "hinge",
    ) -> None:
        super().__init__(dimension)
        self.loss = known_loss(loss)
        self._gamma = precision(positive("width", width))
        self._step = positive("step", step)
        if not 0.0 <= step * decay < 1.0:
            raise ValueError(f"decay must be >= 0, and below 1 / step = {1.0 / step:g}, not {decay}")
        self._decay = decay
        self.points, self.coefficients = Expansion.empty(dimension)

    def _score(self, event: FloatArray) -> float:
        return float(expansion_value(event, Expansion(self.points, self.coefficients), self._gamma))

    def _learn(self, event: FloatArray, y: float, score: float, _weight: float, /) -> None:
        slope = loss_slope(LOSSES[self.loss], score, y)
        expansion = Expansion(self.points, self.coefficients)
        self.points, self.coefficients = expansion.descend(
            event, slope, store=slope != 0.0, step=self._step, decay=self._decay
        )
