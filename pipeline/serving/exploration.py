"""Choose one of the candidates of a request at random, with the probability of every candidate. Pure.

The probabilities are computed first, and then one candidate is drawn from them by a hash of the event's id.
So what is called a propensity is the probability of the draw, whatever it was computed from, and an audit
derives both again.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from forks.compiled.normal import normal
from forks.jit import njit
from pipeline.config.settings import Labels, Serve
from pipeline.model.model import Model
from pipeline.records.encoding import encode
from pipeline.records.fields import Count, Id

Strategy: TypeAlias = Literal["epsilon-greedy", "thompson"]
Floats: TypeAlias = NDArray[np.float64]

NARROWEST: Final = 1 / 16
"""The least width of a score among candidates, as a share of the largest. It bounds the number of nodes."""
NO_WIDTH: Final = 1e-290
"""The width below which there are no errors: densities would be too large for a number."""
TAIL: Final = 8.0
"""Widths from a score beyond which its density is taken for nothing; 6e-16 of it lies there on each side."""
STEP: Final = 0.5
"""Distance of the nodes, in units of the narrowest width."""
_PURPOSE: Final = b"explore"
"""Tells the hash from that of label policies, which has the same seed."""


class Exploration(msgspec.Struct, frozen=True, gc=False):
    """How a candidate is chosen.

    Examples
    --------
    >>> Exploration.of(Serve(), Labels()) is None
    True
    """

    strategy: Strategy
    epsilon: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
    """The share of draws in which all candidates have the same probability."""
    scale: Annotated[float, msgspec.Meta(gt=0.0, le=1e6)]
    """The factor of the widths of scores, for `thompson`."""
    seed: Count

    def __post_init__(self) -> None:
        """Refuse a seed that is none of the settings."""
        if self.seed >= 2**64:
            raise ValueError(f"the seed {self.seed} is not below 2^64")

    @staticmethod
    def of(serve: Serve, labels: Labels) -> Exploration | None:
        """Return what the settings say; None where nothing is explored."""
        if serve.explore == "off":
            return None
        return Exploration(serve.explore, serve.epsilon, serve.thompson_scale, labels.seed)

    @property
    def needs_variances(self) -> bool:
        """Whether the probabilities depend on the variances of scores."""
        return self.strategy == "thompson"


class Choice(NamedTuple):
    """A candidate that was drawn."""

    chosen: int
    """Its place among the candidates."""
    greedy: int
    """The place of the candidate with the highest score, the first of several."""
    propensities: list[float]
    """The probability of each candidate, above 0 for the one that was drawn."""


def choose(
    exploration: Exploration, event_id: Id, scores: Sequence[float], variances: Sequence[float] | None
) -> Choice:
    """Draw a candidate.

    Parameters
    ----------
    exploration
        How it is drawn.
    event_id
        The id of the event in which it is shown.
    scores
        The scores of the candidates, at least one, all finite.
    variances
        Their variances, see `forks.Forks.variances`; read for `thompson` only.

    Returns
    -------
    Choice
        The candidate. But for rounding, which is below 1e-15 times the number of candidates,
        `Choice.propensities` are the probabilities of the draw.

    Examples
    --------
    >>> epsilon = Exploration("epsilon-greedy", epsilon=0.2, scale=1.0, seed=0)
    >>> choice = choose(epsilon, "e1", [0.5, 2.0, -1.0, 0.0], None)
    >>> choice.chosen, choice.greedy, choice.propensities
    (3, 1, [0.05, 0.8500000000000001, 0.05, 0.05])
    """
    greedy = max(range(len(scores)), key=scores.__getitem__)
    uniform = exploration.epsilon / len(scores)
    if exploration.strategy == "thompson":
        assert variances is not None
        widths = exploration.scale * np.sqrt(np.asarray(variances, dtype=np.float64))
        best = probabilities_of_best(np.asarray(scores, dtype=np.float64), widths).tolist()
    else:
        best = [float(number == greedy) for number in range(len(scores))]
    propensities = [(1.0 - exploration.epsilon) * each + uniform for each in best]
    return Choice(_draw(propensities, _uniform(exploration.seed, event_id)), greedy, propensities)


def probabilities_of_best(scores: Floats, widths: Floats) -> Floats:
    """Return the probability that each candidate is best, if scores had independent Gaussian errors.

    Each is the integral of the candidate's density times the distribution functions of all others, as a sum
    over nodes at equal distances, which converges exponentially for such functions. Sums and integrals differ
    by less than 1e-12.

    Parameters
    ----------
    scores
        The scores, shape (n,).
    widths
        Standard deviations of their errors, shape (n,). One below `NARROWEST` times the largest is taken for
        that, and none is above 0 where the largest is below `NO_WIDTH`.

    Returns
    -------
    ndarray
        Shape (n,), with the sum 1.

    References
    ----------
    Chapelle and Li, An Empirical Evaluation of Thompson Sampling, NIPS 2011.
    Trefethen and Weideman, The Exponentially Convergent Trapezoidal Rule, SIAM Review 56, 2014.

    Examples
    --------
    >>> probabilities_of_best(np.array([0.0, 0.0]), np.array([1.0, 3.0])).round(12).tolist()
    [0.5, 0.5]
    >>> probabilities_of_best(np.array([1.0, 1.5]), np.array([0.0, 0.0])).tolist()
    [0.0, 1.0]
    """
    best = np.zeros(len(scores))
    largest = float(widths.max())
    if largest > NO_WIDTH:
        behind = scores - scores.max()  # small numbers, so that nodes are apart however large scores are
        _sum_over_nodes(behind, np.maximum(widths, NARROWEST * largest), best)
    else:
        best[int(np.argmax(scores))] = 1.0
    normalised: Floats = best / best.sum()
    return normalised


@njit(cache=True, allocates=True, error_model="numpy")
def _sum_over_nodes(scores: Floats, widths: Floats, out: Floats) -> None:
    """Add each candidate's density times the others' distribution functions at all nodes to ``out`` (n,)."""
    n = scores.shape[0]
    begin, end = (scores - TAIL * widths).max(), (scores + TAIL * widths).max()
    step = STEP * widths.min()
    below, density = np.empty(n), np.empty(n)
    for node in range(int((end - begin) / step) + 2):
        value = begin + node * step
        for i in range(n):
            bell, below[i] = normal((value - scores[i]) / widths[i])  # at least that of -TAIL
            density[i] = bell / widths[i]
        others = 1.0
        for i in range(n):
            others *= below[i]
        for i in range(n):
            out[i] += density[i] * (others / below[i])


def warm_up_thompson(model: Model) -> None:
    """Compile what `thompson` calls, with a model that has seen nothing and is thrown away."""
    model.learner.variances(np.zeros((1, model.learner.settings.dimension)))
    probabilities_of_best(np.zeros(1), np.ones(1))


def _draw(propensities: Sequence[float], uniform: float) -> int:
    """Return the first place up to which the sum of propensities is above a number from 0 to 1."""
    for number, total in enumerate(accumulate(propensities)):
        if uniform < total:
            return number
    return max(number for number, each in enumerate(propensities) if each > 0.0)  # the sum was rounded down


def _uniform(seed: int, event_id: Id) -> float:
    """Return the event's number: at least 0 and less than 1."""
    key = seed.to_bytes(8, "little")
    digest = blake2b(encode(event_id), digest_size=8, key=key, person=_PURPOSE).digest()
    return (int.from_bytes(digest, "little") >> 11) * 2.0**-53
