"""Simple learners to measure `forks.Forks` against, each on one page.

They have its whole interface: one event or many, walks in any order, a state and what is restored from it;
`restored` is a learner's method here. Labels are -1 and +1. Those of `forks.rivals.pairs` take a (user, item)
in place of a vector.
"""

from forks.rivals.fourier_newton import FourierNewton
from forks.rivals.matrix_factorisation import MatrixFactorisation
from forks.rivals.perceptron import Perceptron
from forks.rivals.running_means import RunningMeans

__all__ = ["FourierNewton", "MatrixFactorisation", "Perceptron", "RunningMeans"]
