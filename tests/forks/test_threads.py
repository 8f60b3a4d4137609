from __future__ import annotations

import numpy as np
import pytest

from forks import Forks, ForksSettings
from forks.learning import event_loop
from tests.support.threads import runs_beside


def test_other_threads_run_while_a_batch_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(0)
    X, y = chance.normal(size=(4000, 3)), chance.choice([-1.0, 1.0], 4000)
    learner = Forks(ForksSettings.practical(3))
    assert runs_beside(monkeypatch, event_loop, "run", lambda: learner.learn_many(X, y))
