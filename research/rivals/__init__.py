"""Learners of the papers that no configuration can name, with the interface of `forks.rivals`.

Those of `research.rivals.pairs` take a (user, item) in place of a vector, those of `research.rivals.graphs`
the number of a graph's node.
"""

from research.rivals.graphs import AKSG, GPA, OKL, OKSG
from research.rivals.kogd import KOGD
from research.rivals.kons import KONS
from research.rivals.matrix_factorisation import MatrixFactorisation
from research.rivals.pros_n_kons import PROSNKONS
from research.rivals.running_means import RunningMeans
from research.rivals.sketched_kons import SketchedKONS

__all__ = [
    "AKSG",
    "GPA",
    "KOGD",
    "KONS",
    "OKL",
    "OKSG",
    "PROSNKONS",
    "MatrixFactorisation",
    "RunningMeans",
    "SketchedKONS",
]
