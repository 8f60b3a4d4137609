from __future__ import annotations

import numpy as np

from forks import Forks, ForksSettings
from forks.arrays import FloatArray
from research.harness.counting import run_stream
from research.harness.labelled import Labelled
from research.variants.published import PublishedForks, PublishedSecondStage
from tests.research.invented import noise


def test_without_a_change_of_the_map_the_published_code_makes_the_papers_mistakes() -> None:
    # decay = 0: stage 1 changes nothing in rounds without a loss.
    settings = ForksSettings.paper(3, budget=20, cycle=10_000, decay=0.0)
    data = noise(200)
    ours = run_stream(Forks(settings), data, lambda learner: learner.state()["stage"] == 1)
    theirs = run_stream(PublishedForks(settings), data, lambda learner: learner.in_stage_one)
    np.testing.assert_array_equal(ours.wrong, theirs.wrong)
    assert ours.stage_one <= theirs.stage_one  # the library's last round of stage 1 may have no loss


class Watched(PublishedSecondStage):
    changes = 0

    def _change_map(self, x: FloatArray) -> None:
        self.changes += 1
        super()._change_map(x)


def in_stage_two(settings: ForksSettings, data: Labelled) -> tuple[Forks, int]:
    learner = Forks(settings)
    seen = 0
    while learner.state()["stage"] == 1:
        learner.learn_one(data.X[seen], data.y[seen])
        seen += 1
    return learner, seen


def test_only_rounds_with_a_loss_count_and_entering_points_are_not_stored() -> None:
    settings = ForksSettings.paper(3, budget=20, cycle=5)
    data = noise(300)
    learner, seen = in_stage_two(settings, data)
    watched = Watched(learner)
    scores = [watched.predict_and_learn(x, y) for x, y in zip(data.X[seen:], data.y[seen:], strict=True)]
    losses = int(np.sum(data.y[seen:] * scores < 1.0))
    assert losses < len(scores)
    assert watched.changes == (losses - 1) // 5
    assert len(watched._points) == 20
    np.testing.assert_array_equal(watched._points, learner.state()["points"])
