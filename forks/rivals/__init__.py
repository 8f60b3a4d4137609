"""Simple learners to measure `forks.Forks` against, each on one page.

They share its habits: `predict_one` returns a score and changes nothing, `learn_one` takes a label of
-1 or +1; and those that are made of `forks.rivals.learner` have all the rest of its interface, too.
"""

from forks.rivals.fourier_newton import FourierNewton
from forks.rivals.matrix_factorisation import MatrixFactorisation
from forks.rivals.perceptron import Perceptron
from forks.rivals.running_means import RunningMeans

__all__ = ["FourierNewton", "MatrixFactorisation", "Perceptron", "RunningMeans"]
