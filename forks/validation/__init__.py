"""Progressive validation: predict each event, count it, and only then learn its label.

Every event is a test before it is a training example, so there is no held-out set. All events count, from the
first, when the learner has learned nothing.

>>> import numpy as np
>>> from forks import Forks, ForksSettings
>>> from forks.validation import without_delay, progressive, summarize
>>> rng = np.random.default_rng(7)
>>> X = rng.uniform(-1, 1, (2000, 2))
>>> y = np.sign(X[:, 0] * X[:, 1])
>>> predictions = progressive(Forks(ForksSettings.practical(2, width=1.0)), without_delay(X, y))
>>> summary = summarize(predictions, loss="logistic", X=X, window=1000)
>>> early, late = summary.windows
>>> late.mistakes < early.mistakes < 0.2 < summary.total.majority
True
>>> summary.total.regret < 0.0  # better than any fixed linear function, even in hindsight
True

References
----------
Blum, Kalai and Langford, Beating the Hold-Out: Bounds for K-fold and Progressive Cross-Validation, COLT 1999.
"""

from forks.validation.delays import Event, QAStep, simulate_qa, without_delay
from forks.validation.hindsight import LinearPredictor, best_linear
from forks.validation.metrics import (
    auc,
    brier_score,
    calibration_error,
    coverage,
    log_loss,
    majority,
    mean_absolute_error,
    r2,
    root_mean_squared_error,
)
from forks.validation.progressive import Learner, Predictions, progressive
from forks.validation.summary import Metrics, Summary, summarize

__all__ = [
    "Event",
    "Learner",
    "LinearPredictor",
    "Metrics",
    "Predictions",
    "QAStep",
    "Summary",
    "auc",
    "best_linear",
    "brier_score",
    "calibration_error",
    "coverage",
    "log_loss",
    "majority",
    "mean_absolute_error",
    "progressive",
    "r2",
    "root_mean_squared_error",
    "simulate_qa",
    "summarize",
    "without_delay",
]
