from __future__ import annotations

from research.experiments import EXPERIMENTS, Line, Row
from research.harness.panels import lines_of


def row(learner: str, loss: str, budget: int, mistakes: float) -> Row:
    means = {"mistakes": mistakes, "seconds": budget / 100.0}
    return Row("kuairec", learner, budget, (("loss", loss),), 2, means, dict.fromkeys(means, 0.5), None)


def test_a_learners_rows_are_a_line_in_their_order() -> None:
    rows = [row("A", "hinge", 100, 30.0), row("B", "hinge", 100, 20.0), row("A", "hinge", 200, 29.0)]
    assert lines_of(rows, lambda one: float(one.budget or 0), "mistakes") == [
        Line("A", [100.0, 200.0], [30.0, 29.0], [0.5, 0.5]),
        Line("B", [100.0], [20.0], [0.5]),
    ]


def test_kuairec_has_a_panel_for_each_loss_with_the_practical_preset_in_both() -> None:
    rows = [
        row("FORKS", "hinge", 100, 30.0),
        row("FORKS", "squared_hinge", 100, 28.0),
        row("FORKS practical", "logistic", 100, 26.0),
    ]
    panels = EXPERIMENTS["figure2"].panels
    assert panels is not None
    hinge, squared = panels(rows)
    assert [(line.name, line.x, line.y) for line in hinge.lines] == [
        ("FORKS", [1.0], [30.0]),
        ("FORKS practical", [1.0], [26.0]),
    ]
    assert [line.y for line in squared.lines] == [[28.0], [26.0]]
