"""Other online learners to compare `forks.Forks` with, which the component can run as challengers.

They have the interface of `forks.Forks`: one event or many, mixed orders of predictions and updates, and a
state to restore from. Labels are -1 and +1. The linear Online Newton Step is `FourierNewton` without
features. `Standardised` standardises the columns for another learner. `forks.rivals.base` holds the base
classes.
"""

from forks.rivals.arow import AROW
from forks.rivals.base.standardised import Standardised
from forks.rivals.bogd import BOGD
from forks.rivals.bpas import BPAS
from forks.rivals.fogd import FOGD
from forks.rivals.forgetron import Forgetron
from forks.rivals.fourier_newton import FourierNewton
from forks.rivals.nogd import NOGD
from forks.rivals.ogd import OGD
from forks.rivals.perceptron import Perceptron
from forks.rivals.projectron import Projectron, ProjectronPlus
from forks.rivals.rbp import RBP
from forks.rivals.scw import SCW
from forks.rivals.skegd import SkeGD

__all__ = [
    "AROW",
    "BOGD",
    "BPAS",
    "FOGD",
    "NOGD",
    "OGD",
    "RBP",
    "SCW",
    "Forgetron",
    "FourierNewton",
    "Perceptron",
    "Projectron",
    "ProjectronPlus",
    "SkeGD",
    "Standardised",
]
