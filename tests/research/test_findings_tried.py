from __future__ import annotations

from typing import Any

import pytest

from research.experiments.tried import IN_GAMES, IN_TABLE_2, PRINTED
from research.findings import FINDERS, Finding
from research.findings.explanations import EXPLANATIONS
from research.findings.tried import explained, find, nearest
from tests.research.test_findings import printed, row


def tried(learner: str, change: str, authors: float, stream: str = "german", **more: Any) -> dict[str, Any]:
    fixed = {"change": change, "width": 50.0, "stream": stream, **printed(30.0)}
    return row(learner, authors, authors, **(fixed | more))


def one(text: str, *rows: dict[str, Any]) -> Finding:
    (finding,) = (finding for finding in find(rows) if text in finding.claim)
    return finding


def test_it_is_found_by_the_experiments_name() -> None:
    assert FINDERS["tried"] is find


def test_explanations_name_what_is_tried() -> None:
    for explanation in EXPLANATIONS:
        changes = [
            change.name
            for changes in (IN_TABLE_2, IN_GAMES)
            for change in changes.get(explanation.learner, ())
        ]
        assert set(explanation.changes) <= set(changes)
        assert all(explanation.learner in PRINTED[stream] for stream in explanation.besides)


def test_of_several_widths_the_nearest_is_kept() -> None:
    rows = [
        tried("RBP", "another width", 29.0, width=1.0),
        tried("RBP", "another width", 30.4, width=2.0),
        tried("RBP", "another width", 30.5, width=4.0, mistakes_authors_sd=9.0),  # surer to come out, farther
        tried("RBP", "as it is", 35.0),
    ]
    found = nearest(rows)["RBP"]["german"]
    assert [(change, kept["width"]) for change, kept in found.items()] == [
        ("another width", 2.0),
        ("as it is", 50.0),
    ]


def test_what_has_no_printed_figure_is_kept_too() -> None:
    found = nearest([tried("FORKS practical", "as it is", 5.0, paper=None)])
    assert found["FORKS practical"]["german"]["as it is"]["mistakes"] == 5.0


@pytest.mark.parametrize(
    ("german", "ijcnn1", "holds"), [(30.2, 16.0, True), (30.4, 16.0, False), (30.2, 30.0, False)]
)
def test_an_explanation_holds_if_only_those_it_leaves_out_are_off(
    german: float, ijcnn1: float, holds: bool
) -> None:
    rows = [
        tried("RBP", "as it is", 35.0),
        tried("RBP", "another width", german),
        tried("RBP", "another width", ijcnn1, "ijcnn1"),
    ]
    finding = one("RBP: ", *rows)
    assert finding.claim == "RBP: each printed figure comes out, but for ijcnn1; changed: another width"
    assert finding.holds is holds


def test_any_of_an_explanations_changes_will_do() -> None:
    rows = [
        tried("BOGD", "another width", 35.0),
        tried("BOGD", "gamma = 1, another width", 30.1),
        tried("BOGD", "another width", 30.1, "w7a"),
        tried("BOGD", "gamma = 1, another width", 35.0, "w7a"),
    ]
    finding = one("BOGD: ", *rows)
    assert finding.holds
    assert finding.numbers == "2 of 2 do"


def test_what_comes_out_is_preferred_to_what_is_nearer() -> None:
    rows = [
        tried("BOGD", "another width", 30.4),
        tried("BOGD", "gamma = 1, another width", 30.5, mistakes_authors_sd=0.3),
    ]
    assert one("BOGD: ", *rows).numbers == "1 of 1 do"


def constant(learner: str, change: str, left_out: float, **more: Any) -> dict[str, Any]:
    counted = {"mistakes_authors": 9.71 - left_out, "majority": 9.71, **printed(9.38, 0.001), **more}
    return tried(learner, change, 9.71, "ijcnn1") | counted


def test_what_a_count_leaves_out_of_a_constant_is_reported() -> None:
    rows = [
        constant("NOGD", "as it is", 0.1),
        constant("NOGD", "buffer of 2 B", 0.2),
        constant("NOGD", "another width", 0.3, mistakes=9.0),
        constant("FORKS", "as it is", 0.19),
    ]
    finding = one("majority class all along", *rows)
    assert finding.holds
    assert finding.numbers == (
        "points left out: FORKS, as it is, 0.190; NOGD, as it is, 0.100; NOGD, buffer of 2 B, 0.200; "
        "by the printed figures NOGD 0.330, FORKS 0.330"
    )
    learned = [*rows[:3], constant("FORKS", "as it is", 0.19, mistakes=9.6)]
    assert not one("majority class all along", *learned).holds


@pytest.mark.parametrize(("deviation", "holds"), [(0.011, True), (0.009, False)])
def test_who_learns_on_ijcnn1_varies(deviation: float, holds: bool) -> None:
    rows = [
        constant("PROS-N-KONS", "as it is", 0.0, mistakes=9.2, mistakes_sd=deviation),
        constant("PROS-N-KONS", "alpha = 1", 0.0, mistakes_sd=0.0),  # says one class, so it is no witness
        constant("Projectron", "as it is", 0.0, mistakes=9.1, mistakes_sd=0.5),
    ]
    assert one("never undercut", *rows).holds is holds


@pytest.mark.parametrize(("plain", "holds"), [(1.8, True), (3.1, False)])
def test_standardised_columns_are_compared_with_the_majority_class(plain: float, holds: bool) -> None:
    rows = [
        tried("FORKS practical", "as it is", 5.0, "w7a", paper=None, majority=3.0),
        tried("FORKS practical", "columns as they are", plain, "w7a", paper=None, majority=3.0),
    ]
    assert one("standardised columns", *rows).holds is holds


def test_figures_that_come_out_are_counted() -> None:
    rows = [
        tried("RBP", "as it is", 30.1),
        tried("RBP", "as it is", 35.0, "w7a"),
        tried("RBP", "2 B", 30.1, "w7a"),
        tried("BOGD", "as it is", 35.0),
        tried("BOGD", "2 B", 36.0),
        tried("FORKS practical", "as it is", 36.0, paper=None),
    ]
    finding = one("each printed figure", *rows)
    assert not finding.holds
    assert finding.numbers == "3 figures; as it is 1 do, with one of them 2; not BOGD on german"
    assert one("each printed figure", *rows[:3]).holds


def test_reasons_stay_with_what_they_explain() -> None:
    ((finding, explanation),) = explained(nearest([tried("RBP", "another width", 30.0)]))
    assert finding.holds
    assert finding.claim == explanation.claim


def test_one_width_serves_all_if_each_learner_comes_out_with_it() -> None:
    rows = [
        tried("RBP", "another width", 30.1, width=2.0),
        tried("RBP", "another width", 35.0, width=4.0),
        tried("BOGD", "another width", 35.0, width=2.0),
        tried("BOGD", "another width", 30.1, width=4.0),
        tried("BOGD", "gamma = 1, another width", 30.2, width=2.0),
    ]
    assert one("one width", *rows).holds
    finding = one("one width", *rows[:4])
    assert not finding.holds
    assert finding.numbers == "1 of 2 at 2; not BOGD"
