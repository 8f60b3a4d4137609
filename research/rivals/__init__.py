"""Learners of the papers that no configuration can name, with the interface of `forks.rivals`.

An event of `MatrixFactorisation` and `RunningMeans` is a pair (user, item), see `research.rivals.pairs`; an
event of a learner in `research.rivals.graphs` is the number of a node. All others learn from vectors.
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
