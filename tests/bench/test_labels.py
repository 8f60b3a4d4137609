from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.labels import Figures, Play, evaluate, plays_of, run
from bench.options import Options
from pipeline.config.settings import Labels
from pipeline.features.tables import Tables
from pipeline.model.model import Model
from pipeline.sources.kuairec import read_events
from tests.support.builders import LEARNER


def plays_in(folder: Path) -> list[Play]:
    return plays_of(read_events(folder).frame)


def model() -> Model:
    return Model(LEARNER, Tables(), 100)


def test_a_play_is_an_event_with_what_its_label_says(folder: Path) -> None:
    assert [
        (interaction.user_id, interaction.video_id, ratio) for interaction, ratio in plays_in(folder)[:4]
    ] == [
        (0, 0, 0.5),
        (1, 1, 1.5),
        (2, 2, 0.5),
        (0, 3, 1.5),
    ]


@pytest.mark.parametrize(("rate", "learned"), [(1.0, 12), (1e-9, 0)])
def test_only_what_was_asked_for_is_learned(folder: Path, rate: float, learned: int) -> None:
    taught = model()
    figures = evaluate(plays_in(folder), taught, Labels(policy="random", rate=rate))
    assert taught.learner.updates == taught.statistics.everything[0, 0] == learned
    assert figures.asked == learned / 12


def test_labels_that_are_only_counted_teach_the_learner_nothing(folder: Path) -> None:
    counting = model()
    figures = evaluate(plays_in(folder), counting, Labels(policy="random", rate=1e-9), count_all=True)
    assert counting.learner.updates == 0
    assert counting.statistics.everything[0, 0] == 12
    assert figures.asked == 0.0


def test_mistakes_are_those_of_predictions_made_before_the_label(folder: Path) -> None:
    play = plays_in(folder)[1]
    assert evaluate([play], model(), Labels()) == Figures(1.0, 1.0, 1.0)
    assert evaluate([Play(play.interaction, 0.0)], model(), Labels()) == Figures(0.0, 0.0, 1.0)


def test_every_policy_and_rate_is_in_the_result(folder: Path) -> None:
    (folder / "kuairec").symlink_to(folder)
    found: dict[str, Any] = run(Options(1, folder, quiet=True))
    assert found["events"] == 12
    assert found["all"]["asked"] == 100.0
    for policy in ("random", "margin", "adaptive"):
        assert list(found[policy]) == ["0.05", "0.1", "0.2", "0.5"]
        assert found["all_counted"][policy].keys() == found["all"].keys()
