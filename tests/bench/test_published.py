from __future__ import annotations

import numpy as np

from bench.adversarial import BLOCKS, ROUNDS, published
from bench.counting import play
from bench.published import PublishedForks, play_published
from bench.sets import Labelled
from forks import Forks, ForksSettings
from forks.arrays import FloatArray


def noise(events: int) -> Labelled:
    chance = np.random.default_rng(0)
    return Labelled(chance.normal(size=(events, 3)), chance.choice([-1.0, 1.0], events))


def test_without_a_change_of_the_map_the_published_code_makes_the_papers_mistakes() -> None:
    # No step of stage 1 shrinks what it knows, so that rounds without a loss do nothing there either.
    settings = ForksSettings.paper(3, budget=20, cycle=10_000, decay=0.0)
    data = noise(200)
    ours, theirs = play(Forks(settings), data), play_published(settings, data)
    np.testing.assert_array_equal(ours.wrong, theirs.wrong)
    assert ours.stage_one <= theirs.stage_one  # the library's last round of stage 1 may have no loss


class Watched(PublishedForks):
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


def test_only_rounds_with_a_loss_count_and_entering_points_are_forgotten() -> None:
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


def test_the_short_cycle_follows_germans_rows() -> None:
    assert (BLOCKS, ROUNDS) == (500, 10)
    assert [settings.cycle for settings in published(24, 50.0, 0).values()] == [24, 4]
    assert {settings.budget for settings in published(24, 50.0, 0).values()} == {400}
