"""What is changed, one thing at a time, in learners of the papers' tables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from forks.rivals import FOGD, NOGD
from research.experiments import EXPERIMENTS, adversary, fixed_budget, tried
from research.experiments.tried import GAMES, IN_GAMES, IN_TABLE_2, PRINTED, Change
from research.harness.graphs import GraphSource
from research.harness.learners import LearnerSpec
from research.harness.streams import Flipped, Stream
from research.harness.trials import StreamTrial
from research.rivals import PROSNKONS
from tests.research.invented import Invented, noise


class InventedData:
    """Each set is the same one."""

    def labelled(self, name: str) -> Invented:
        return Invented(name)

    def plays(self) -> Stream:
        raise NotImplementedError

    def graph(self, name: str) -> GraphSource:
        raise NotImplementedError(Path(name))


def trials(stream: str) -> list[StreamTrial]:
    found = EXPERIMENTS["tried"].trials(stream, InventedData(), 2)
    return [trial for trial in found if isinstance(trial, StreamTrial)]


Changes = Mapping[str, tuple[Change, ...]]


def spec(learner: str, change: str, changes: Changes = IN_TABLE_2) -> LearnerSpec:
    learner_specs = (
        fixed_budget.learner_specs(1_000, 2.0)
        if changes is IN_TABLE_2
        else adversary.learner_specs(5_000, 2.0)
    )
    (plain,) = (one for one in learner_specs if one.name == learner)
    (found,) = (one for one in changes[learner] if one.name == change)
    return found.apply(plain)


def test_an_unchanged_learner_is_the_tables_own_trial() -> None:
    data = InventedData()
    ours = {
        str(trial.key())
        for trial in trials("german")
        if trial.key_columns == (("change", "as it is"), ("width", 50.0))
    }
    table = {str(trial.key()) for trial in EXPERIMENTS["table2"].trials("german", data, 2)}
    assert len(ours) == 2 * len(IN_TABLE_2)
    assert ours <= table
    game = {str(trial.key()) for trial in EXPERIMENTS["table4"].trials("german-2", data, 2)}
    plain = [trial for trial in trials("german-2") if ("change", "as it is") in trial.key_columns]
    assert {str(trial.key()) for trial in plain} <= game


@pytest.mark.parametrize("stream", ["svmguide3", "cod-rna-1"])
def test_each_change_and_each_run_is_another_trial(stream: str) -> None:
    found = [
        trial
        for trial in trials(stream)
        if dict(trial.key_columns)["width"] != fixed_budget.WIDTHS.get(stream, 100.0)
    ]
    assert len({str(trial.key()) for trial in found}) == len(found)


def test_those_with_a_printed_figure_play_the_games() -> None:
    for stream in GAMES:
        learners = {trial.learner for trial in trials(stream)}
        assert learners == IN_GAMES.keys() & PRINTED[stream].keys()
    assert {trial.learner for trial in trials("w7a")} - {"FORKS practical"} == PRINTED["w7a"].keys()


def test_only_changes_in_file_order_use_file_order_rows() -> None:
    for trial in trials("spambase-1"):
        assert isinstance(trial.row_stream, Flipped)
        change = str(dict(trial.key_columns)["change"])
        assert trial.row_stream.file_order == change.startswith("the file's")


def test_a_longer_buffer_leaves_the_rank() -> None:
    learner = spec("NOGD", "buffer of 3.34 B").make(3, 0)
    assert isinstance(learner, NOGD)
    assert (learner.budget, learner.rank) == (167, 5)


def test_steps_on_features_as_they_are_are_as_many_times_as_long_as_there_are_frequencies() -> None:
    learner = spec("FOGD", "eta = 0.002, as they are").make(3, 0)
    assert isinstance(learner, FOGD)
    x = noise(1).X[0]
    learner.learn_one(x, 1)
    assert learner.predict_one(x) == pytest.approx(0.002 * 4 * 50)  # eta |cos, sin|^2, of 200 frequencies


def test_a_tenth_of_the_entries_is_a_smaller_dictionary() -> None:
    data = noise(300)
    learners = [spec("PROS-N-KONS", change).make(3, 0) for change in ("as it is", "beta = 0.1")]
    for learner in learners:
        learner.predict_and_learn_many(data.X, data.y)
    sizes = [len(learner.weights) for learner in learners if isinstance(learner, PROSNKONS)]
    assert 0 < 3 * sizes[1] < sizes[0]


@pytest.mark.parametrize("changes", [IN_TABLE_2, IN_GAMES], ids=["tables", "games"])
def test_each_change_makes_a_learner(changes: Changes) -> None:
    for learner, ways in changes.items():
        for change in ways:
            made = spec(learner, change.name, changes)
            assert made.name == learner
            assert np.isfinite(made.run_stream(noise(5), 0).seconds)


def test_a_learner_without_a_budget_has_none_to_double() -> None:
    (plain,) = (one for one in fixed_budget.learner_specs(1_000, 2.0) if one.name == "PROS-N-KONS")
    with pytest.raises(ValueError, match="PROS-N-KONS has no budget"):
        tried.with_doubled_budget(plain)
