from __future__ import annotations

import numpy as np

from forks import Forks, ForksSettings
from forks.rivals import Perceptron
from research.harness.counting import run_stream
from research.harness.labelled import Labelled
from tests.research.invented import noise


def collecting(learner: Forks) -> bool:
    return learner.state()["stage"] == 1


def test_the_authors_count_leaves_out_stage_one_and_divides_by_all_rounds() -> None:
    data = noise(300)
    settings = ForksSettings.paper(3, budget=20, cycle=100)
    scores = Forks(settings).predict_and_learn_many(data.X, data.y)
    wrong = (scores > 0) != (data.y > 0)
    result = run_stream(Forks(settings), data, collecting)
    np.testing.assert_array_equal(result.wrong, wrong)
    # Nothing is scored beyond the hinge before the budget is full, so stage 1 stores every point or nearly.
    assert 20 <= result.stage_one < 40
    assert result.mistake_rate == wrong.mean()
    assert result.authors_mistake_rate == wrong[result.stage_one :].sum() / 300


def test_a_learner_without_stages_is_counted_alike_in_both_ways() -> None:
    data = noise(50)
    result = run_stream(Perceptron(3), data)
    scores = Perceptron(3).predict_and_learn_many(data.X, data.y)
    assert result.stage_one == 0
    assert result.authors_mistake_rate == result.mistake_rate == np.mean((scores > 0) != (data.y > 0))


def test_a_stream_that_ends_in_stage_one_has_no_mistake_that_the_authors_count() -> None:
    result = run_stream(Forks(ForksSettings.paper(3, budget=100)), noise(50), collecting)
    assert (result.stage_one, result.authors_mistake_rate) == (50, 0.0)
    assert result.mistake_rate > 0.0


def test_the_majority_is_counted_by_its_mistakes() -> None:
    assert Labelled(np.zeros((4, 1)), np.array([1.0, -1.0, 1.0, 1.0])).majority == 0.25
