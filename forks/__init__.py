"""Fast second-order online kernel learning with incremental sketching (FORKS).

The public names are in this module; the folders, from the ground up:

- `forks.compiled`: vectors, products and elementary functions for compiled loops, with fixed bits.
- `forks.linalg`: decompositions of small matrices, with the same bits on every machine.
- `forks.algorithm`: the mathematics, one part a module, each beside its equation.
- `forks.learning`: the compiled event loop and the two stages of the learner.
- `forks.sparse`: weights of categories, words and their pairs, by hash.
- `forks.rivals`: other online learners with the same interface, to compare with.
- `forks.validation`: progressive validation with delayed labels.
- `forks.adapters`: the interfaces of River and scikit-learn.

A learner predicts and learns one event after the other, and stores at most a budget of points:

>>> import numpy as np
>>> from forks import Forks, ForksSettings, probability
>>> rng = np.random.default_rng(7)
>>> X = rng.uniform(-1, 1, (2000, 2))
>>> y = np.sign(X[:, 0] * X[:, 1])  # no linear function of X predicts more than half of them
>>> learner = Forks(ForksSettings.practical(2, width=1.0))
>>> scores = learner.predict_and_learn_many(X, y)
>>> int(np.sum(np.sign(scores[1000:]) != y[1000:])) < 100
True
>>> probability(learner.predict_one([0.5, 0.5])) > 0.9 > 0.1 > probability(learner.predict_one([0.5, -0.5]))
True
>>> copy = Forks.from_state(learner.settings, learner.state())
>>> copy.learn_one([0.1, 0.2], 1) == learner.learn_one([0.1, 0.2], 1)
True
"""

from typing import Final

from forks.learner import Forks
from forks.learning.entities import EntityTables
from forks.learning.events import LastColumns
from forks.learning.explanation import Explanation
from forks.learning.health import Health
from forks.learning.stored_points import NearPoint
from forks.losses import LOSSES, LossName, probability
from forks.settings import ForksSettings
from forks.sparse import SparseSettings
from forks.state import State
from forks.wide import WideForks

ARITHMETIC: Final = 2
"""Number of this library's arithmetic. A change that alters the bits of scores on purpose raises it.

In arithmetic 1, LAPACK and BLAS decomposed matrices, and the C library computed logarithms and exponentials.
"""

__all__ = [
    "ARITHMETIC",
    "LOSSES",
    "EntityTables",
    "Explanation",
    "Forks",
    "ForksSettings",
    "Health",
    "LastColumns",
    "LossName",
    "NearPoint",
    "SparseSettings",
    "State",
    "WideForks",
    "probability",
]
