from __future__ import annotations

from typing import Any

import pytest

from research.experiments import EXPERIMENTS
from research.findings import FINDERS, Finding


def row(learner: str, mistakes: float, authors: float | None = None, **more: Any) -> dict[str, Any]:
    spread = {"mistakes_sd": 0.1, "mistakes_authors_sd": 0.1, "queries_sd": 0.1}
    measures = {"mistakes": mistakes, "mistakes_authors": mistakes if authors is None else authors}
    fixed = {"stream": "german", "learner": learner, "budget": 50, "runs": 20, "majority": 30.0}
    return {**fixed, **measures, **spread, "seconds": 1.0, "paper": None, **more}


def printed(mean: float, deviation: float = 0.1, seconds: float = 1.0) -> dict[str, float]:
    return {"paper": mean, "paper_sd": deviation, "paper_seconds": seconds}


def found(experiment: str, *rows: dict[str, Any]) -> dict[str, bool]:
    return {finding.claim: finding.holds for finding in FINDERS[experiment](rows)}


def one(experiment: str, text: str, *rows: dict[str, Any]) -> Finding:
    (finding,) = (finding for finding in FINDERS[experiment](rows) if text in finding.claim)
    return finding


def test_each_experiment_has_its_findings() -> None:
    assert FINDERS.keys() == EXPERIMENTS.keys()


@pytest.mark.parametrize("experiment", FINDERS)
def test_without_rows_nothing_is_claimed(experiment: str) -> None:
    assert found(experiment) == {}


@pytest.mark.parametrize(("mistakes", "holds"), [(19.9, True), (20.1, False)])
def test_a_third_fewer_is_a_third_fewer_than_the_best_first_order_rival(mistakes: float, holds: bool) -> None:
    rows = [row("FORKS", mistakes), row("NOGD", 30.0), row("RBP", 40.0), row("Perceptron", 1.0)]
    finding = one("table2", "by a third", *rows)
    assert finding.holds is holds
    assert finding.numbers == f"FORKS {mistakes:.2f} ± 0.10; NOGD 30.00 ± 0.10"


def test_the_authors_count_decides_who_is_best_and_the_honest_one_who_learned() -> None:
    rows = [row("FORKS", 31.0, 26.0, **printed(26.0)), row("NOGD", 29.0, 28.0, **printed(28.0))]
    claims = found("table2", *rows, row("AROW, linear", 25.0))
    assert claims["german: by the authors' count FORKS makes the fewest mistakes of the paper's learners"]
    (tenth,) = (claim for claim in claims if claim.endswith("a tenth below the majority class"))
    assert not claims[tenth]
    both = "german: FORKS is below the majority class by the authors' count, and from the first event too"
    assert not claims[both]
    assert not claims["german: FORKS makes fewer mistakes than any linear learner beside it"]


def test_a_figure_comes_out_as_printed_within_two_deviations_of_both() -> None:
    near, far = row("FORKS", 31.0, 26.28, **printed(26.0)), row("FORKS", 31.0, 26.29, **printed(26.0))
    assert one("table2", "printed figures", near).holds
    finding = one("table2", "printed figures", near, far | {"stream": "cod-rna"})
    assert not finding.holds
    assert finding.numbers == "1 of 2 do; cod-rna 26.29, printed 26.00"


def test_one_run_has_no_deviation() -> None:
    assert not any(
        "printed" in claim for claim in found("table2", row("FORKS", 31.0, 99.0, runs=1, **printed(26.0)))
    )


def test_the_adversary_is_compared_with_the_papers_four_and_with_all() -> None:
    rates = {f"place_{number}": 50.0 / number for number in (1, 2, 3, 5)}
    rows = [row("FORKS", 10.0, **rates), row("BOGD", 30.0), row("Perceptron", 6.0)]
    claims = found("table3", *rows)
    assert claims["german: counted from the first event, FORKS makes fewer mistakes than the four of Table 3"]
    assert not claims["german: counted from the first event, FORKS makes fewer mistakes than every rival"]
    assert not claims["german: in the fifth round of a block FORKS is wrong less than one time in ten"]
    assert "50.0%, 25.0%, 16.7%, 10.0%" in one("table3", "fifth round", *rows).numbers


@pytest.mark.parametrize(("mistakes", "holds"), [(5.2, True), (5.4, False)])
def test_on_flipped_labels_tracking_is_compared_with_resetting(mistakes: float, holds: bool) -> None:
    rates = {f"place_{number}": 50.0 for number in (1, 2, 3, 5)}
    rows = [
        row("FORKS", 10.0, **rates),
        row("FORKS practical", mistakes),
        row("FORKS practical, no tracking", 33.0),
        row("FORKS practical, reset", 5.3),
    ]
    assert one("table3", "without tracking, resetting is better", *rows).holds
    assert one("table3", "tracks changes, is better than resetting", *rows).holds is holds


def test_update_rates_are_compared_in_pairs_and_ends() -> None:
    rows = [
        row(f"FORKS, {method}", mistakes, update_rate=rate, seconds=seconds)
        for method, rate, mistakes, seconds in (
            ("TISVD", 0.5, 12.0, 1.0),
            ("full SVD", 0.5, 12.6, 1.0),
            ("TISVD", 0.001, 20.0, 2.0),
            ("full SVD", 0.001, 20.1, 4.0),
            ("TISVD", 0.0001, 99.0, 2.0),
        )
    ]
    assert list(found("figure1", *rows).values()) == [False, True, True]
    assert "at most 0.60 points" in one("figure1", "half a point", *rows).numbers


def test_budgets_are_compared_at_each_budget_and_loss() -> None:
    rows = [
        row("FORKS", 27.0, loss="hinge", budget=100),
        row("FORKS", 26.0, loss="hinge", budget=200),
        row("NOGD", 28.0, loss="hinge", budget=100),
        row("NOGD", 25.0, loss="hinge", budget=200),
        row("PROS-N-KONS", 26.5, loss="hinge", budget=100, seconds=3.0),
        row("FORKS", 29.0, loss="squared_hinge", budget=100),
        row("FORKS practical", 24.0, loss="logistic", budget=100),
        row("FORKS, C = 1", 25.0, loss="hinge", budget=100),
        row("FORKS, C = 1", 24.5, loss="hinge", budget=200),
    ]
    finding = one("figure2", "hinge loss: at every budget FORKS", *rows)
    assert not finding.holds
    assert finding.numbers.startswith("at 1 of 2 budgets")
    bounded = one("figure2", "C = 1", *rows)
    assert bounded.claim.startswith("hinge loss: with scores kept in [-1, 1]")
    assert bounded.holds
    assert bounded.numbers.startswith("at 2 of 2 budgets; FORKS, C = 1 24.50")
    assert one("figure2", "PROS-N-KONS", *rows).holds
    assert not one("figure2", "exp-concave", *rows).holds
    assert one("figure2", "practical", *rows).holds


@pytest.mark.parametrize(("squared", "holds"), [(24.4, True), (24.6, False)])
def test_squared_hinge_is_compared_with_a_bound_at_the_best_budgets(squared: float, holds: bool) -> None:
    rows = [
        row("FORKS", 20.0, loss="squared_hinge", budget=100),
        row("FORKS, C = 1", squared, loss="squared_hinge", budget=200),
        row("FORKS, C = 1", 27.0, loss="squared_hinge", budget=100),
        row("FORKS", 24.5, loss="hinge", budget=200),
        row("FORKS, C = 1", 25.0, loss="hinge", budget=200),
    ]
    assert one("figure2", "better than hinge, at", *rows).holds is holds


def test_decompositions_are_compared_after_the_most_changes() -> None:
    rows = [
        row(method, 0.0, updates=updates, seconds=seconds, excess=1.0)
        for method, updates, seconds in (
            ("TISVD", 5, 9.0),
            ("full SVD", 5, 1.0),
            ("TISVD", 50, 2.0),
            ("full SVD", 50, 5.0),
        )
    ]
    finding = one("figure3", "50 changes", *rows)
    assert finding.holds
    assert finding.numbers.startswith("2.5 times")


def test_graphs_are_compared_by_mistakes_and_queried_labels() -> None:
    rows = [
        row(name, mistakes, queries=queries)
        for name, mistakes, queries in (
            ("GPA", 33.0, 100.0),
            ("OKL", 31.0, 100.0),
            ("OKSG", 31.9, 80.0),
            ("AKSG", 30.0, 81.0),
        )
    ]
    assert list(found("graphs", *rows).values()) == [True, True, True, False]
    behind = [*rows[:2], rows[2] | {"mistakes": 32.1}, rows[3]]
    assert list(found("graphs", *behind).values()) == [True, False, True, False]
    unsure = row("OKL, unsure mistakes only", 30.5, queries=100.0)
    assert one("graphs", "sure of", *rows, unsure).holds
