"""What a label of another weight than 1 does to the rivals: it is as many labels in a row, learned at once.

As with `forks.Forks`, a weight is not the length of a step (Karampatziakis and Langford, Online Importance
Weight Aware Updates, UAI 2011). A label of weight h makes steps of weight 1 and a last one of what is left,
each at the score that the one before has left. All of them go along the same event, so they are one step of
another length. The event is stored, counted and evicts others once, and what decays does so once.
"""

from __future__ import annotations

import math

from forks.algorithm.weighted import repeated_slope
from forks.losses import SQUARED, loss_slope


def descent_slope(loss: int, score: float, y: float, weight: float, moves: float) -> float:
    """Return the sum of the slopes of a label's steps of gradient descent.

    With squared loss, a step that reaches its label or goes beyond it is made once: more of them would go
    back and forth, and further away each time if they are long.

    Parameters
    ----------
    loss
        Number of the loss in `LOSSES`.
    score, y, weight
        Score of the event, its label, and the label's weight.
    moves
        How far a slope of -1 moves the score: the step size times the squared length of the event's features.

    Examples
    --------
    >>> from forks.losses import HINGE
    >>> descent_slope(HINGE, 0.0, 1.0, 2.5, 0.2), descent_slope(HINGE, 0.0, 1.0, 1000.0, 0.2)
    (-2.5, -5.0)
    """
    if weight == 1.0:
        return float(loss_slope(loss, score, y))
    if loss == SQUARED and 2.0 * moves >= 1.0:
        weight = min(weight, 1.0)
    return float(repeated_slope(loss, score, y, weight, moves))


def mistaken_weight(margin: float, weight: float, moves: float = 1.0) -> float:
    """Return how much of a weight a Perceptron learns until its mistake is none.

    Parameters
    ----------
    margin
        Label times score, <= 0.
    weight
        The label's weight.
    moves
        How far a step of weight 1 moves the score.

    Examples
    --------
    >>> mistaken_weight(-2.5, 0.5), mistaken_weight(-2.5, 2.0), mistaken_weight(-2.5, 10.0)
    (0.5, 2.0, 3.0)
    """
    if weight <= 1.0 or -margin >= weight * moves:  # none of the steps reaches the other side
        return weight
    return min(weight, math.floor(-margin / moves) + 1.0)
