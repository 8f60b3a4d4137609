"""Simple learners to measure `forks.Forks` against, each on one page.

They have its whole interface: one event or many, walks in any order, a state and what is restored from it;
`restored` is a learner's method here. Labels are -1 and +1. Those of `forks.rivals.pairs` take a (user, item)
in place of a vector, those of `forks.rivals.graphs` the number of a graph's node. The linear Online Newton
Step is `FourierNewton` without features. `Standardised` gives one of vectors its columns on one scale.
"""

from forks.rivals.arow import AROW
from forks.rivals.bogd import BOGD
from forks.rivals.bpas import BPAS
from forks.rivals.fogd import FOGD
from forks.rivals.forgetron import Forgetron
from forks.rivals.fourier_newton import FourierNewton
from forks.rivals.graphs import AKSG, GPA, OKL, OKSG
from forks.rivals.kogd import KOGD
from forks.rivals.kons import KONS
from forks.rivals.matrix_factorisation import MatrixFactorisation
from forks.rivals.nogd import NOGD
from forks.rivals.ogd import OGD
from forks.rivals.perceptron import Perceptron
from forks.rivals.projectron import Projectron, ProjectronPlus
from forks.rivals.pros_n_kons import PROSNKONS
from forks.rivals.rbp import RBP
from forks.rivals.running_means import RunningMeans
from forks.rivals.scw import SCW
from forks.rivals.skegd import SkeGD
from forks.rivals.sketched_kons import SketchedKONS
from forks.rivals.standardised import Standardised

__all__ = [
    "AKSG",
    "AROW",
    "BOGD",
    "BPAS",
    "FOGD",
    "GPA",
    "KOGD",
    "KONS",
    "NOGD",
    "OGD",
    "OKL",
    "OKSG",
    "PROSNKONS",
    "RBP",
    "SCW",
    "Forgetron",
    "FourierNewton",
    "MatrixFactorisation",
    "Perceptron",
    "Projectron",
    "ProjectronPlus",
    "RunningMeans",
    "SkeGD",
    "SketchedKONS",
    "Standardised",
]
