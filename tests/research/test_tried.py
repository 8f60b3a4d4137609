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
from research.harness.learners import Entrant
from research.harness.streams import Flipped, Stream
from research.harness.trials import Playing
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


def cells(stream: str) -> list[Playing]:
    found = EXPERIMENTS["tried"].cells(stream, InventedData(), 2)
    return [cell for cell in found if isinstance(cell, Playing)]


Changes = Mapping[str, tuple[Change, ...]]


def entrant(learner: str, change: str, changes: Changes = IN_TABLE_2) -> Entrant:
    entrants = fixed_budget.entrants(1_000, 2.0) if changes is IN_TABLE_2 else adversary.entrants(5_000, 2.0)
    (plain,) = (one for one in entrants if one.name == learner)
    (found,) = (one for one in changes[learner] if one.name == change)
    return found.made(plain)


def test_what_is_as_it_is_is_the_tables_own_cell() -> None:
    data = InventedData()
    ours = {
        str(cell.key()) for cell in cells("german") if cell.place == (("change", "as it is"), ("width", 50.0))
    }
    table = {str(cell.key()) for cell in EXPERIMENTS["table2"].cells("german", data, 2)}
    assert len(ours) == 2 * len(IN_TABLE_2)
    assert ours <= table
    game = {str(cell.key()) for cell in EXPERIMENTS["table4"].cells("german-2", data, 2)}
    plain = [cell for cell in cells("german-2") if ("change", "as it is") in cell.place]
    assert {str(cell.key()) for cell in plain} <= game


@pytest.mark.parametrize("stream", ["svmguide3", "cod-rna-1"])
def test_each_change_is_another_cell_and_each_run_too(stream: str) -> None:
    found = [
        cell for cell in cells(stream) if dict(cell.place)["width"] != fixed_budget.WIDTHS.get(stream, 100.0)
    ]
    assert len({str(cell.key()) for cell in found}) == len(found)


def test_those_with_a_printed_figure_play_the_games() -> None:
    for stream in GAMES:
        learners = {cell.learner for cell in cells(stream)}
        assert learners == IN_GAMES.keys() & PRINTED[stream].keys()
    assert {cell.learner for cell in cells("w7a")} - {"FORKS practical"} == PRINTED["w7a"].keys()


def test_filed_rows_are_shown_to_those_alone_who_are_to_see_them() -> None:
    for cell in cells("spambase-1"):
        assert isinstance(cell.shown, Flipped)
        assert cell.shown.filed == dict(cell.place)["change"].startswith("the file's")  # type: ignore[union-attr]  # a text


def test_a_longer_buffer_leaves_the_rank() -> None:
    learner = entrant("NOGD", "buffer of 3.34 B").make(3, 0)
    assert isinstance(learner, NOGD)
    assert (learner.budget, learner.rank) == (167, 5)


def test_steps_on_features_as_they_are_are_as_many_times_as_long_as_there_are_frequencies() -> None:
    learner = entrant("FOGD", "eta = 0.002, as they are").make(3, 0)
    assert isinstance(learner, FOGD)
    x = noise(1).X[0]
    learner.learn_one(x, 1)
    assert learner.predict_one(x) == pytest.approx(0.002 * 4 * 50)  # eta |cos, sin|^2, of 200 frequencies


def test_a_tenth_of_the_entries_is_a_smaller_dictionary() -> None:
    data = noise(300)
    learners = [entrant("PROS-N-KONS", change).make(3, 0) for change in ("as it is", "beta = 0.1")]
    for learner in learners:
        learner.predict_and_learn_many(data.X, data.y)
    sizes = [len(learner.weights) for learner in learners if isinstance(learner, PROSNKONS)]
    assert 0 < 3 * sizes[1] < sizes[0]


@pytest.mark.parametrize("changes", [IN_TABLE_2, IN_GAMES], ids=["tables", "games"])
def test_each_change_makes_a_learner(changes: Changes) -> None:
    for learner, ways in changes.items():
        for change in ways:
            made = entrant(learner, change.name, changes)
            assert made.name == learner
            assert np.isfinite(made.play(noise(5), 0).seconds)


def test_a_learner_without_a_budget_has_none_to_double() -> None:
    (plain,) = (one for one in fixed_budget.entrants(1_000, 2.0) if one.name == "PROS-N-KONS")
    with pytest.raises(ValueError, match="PROS-N-KONS has no budget"):
        tried.doubled(plain)
