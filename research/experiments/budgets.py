"""FORKS, Figure 2: budgets from 100 to 500 on KuaiRec, with hinge and squared hinge loss (section 5.3)."""

from __future__ import annotations

from collections.abc import Sequence

from research.experiments.fixed_budget import UPDATE_RATE, cycle_of
from research.harness.experiment import Data, Experiment
from research.harness.learners import LearnerSpec, papers_forks, papers_skegd, spec_of
from research.harness.panels import Panel, lines_of
from research.harness.rows import Row
from research.harness.trials import StreamTrial, Trial

BUDGETS = (100, 200, 300, 400, 500)
LARGEST_DICTIONARY = 100
"""B_max of PROS-N-KONS, the same for all budgets of the others."""
LOSSES = ("hinge", "squared_hinge")
OURS = "logistic"
"""Loss of the practical preset, whose results appear beside those of both losses."""
WIDTH = 2.0
"""Width of the Gaussian kernel, which the paper does not give.

It does not give the bound C of the scores (its Eq. 10) either: FORKS runs without a bound, and with C = 1,
the margin of both losses.
"""


def learner_specs(events: int, budget: int, loss: str) -> list[LearnerSpec]:
    """Return the specs of the learners for a budget and a loss of `LOSSES`."""
    cycle = cycle_of(events, UPDATE_RATE)
    return [
        *(spec_of(name, name.lower(), budget, width=WIDTH, loss=loss) for name in ("BOGD", "FOGD", "NOGD")),
        papers_skegd("SkeGD", budget, width=WIDTH, cycle=cycle, loss=loss),
        papers_forks("FORKS", budget, width=WIDTH, cycle=cycle, loss=loss),
        papers_forks("FORKS, C = 1", budget, width=WIDTH, cycle=cycle, loss=loss, clip=1.0),
    ]


def _trials(stream: str, data: Data, runs: int) -> Sequence[Trial]:  # noqa: ARG001 - there is one stream
    row_stream = data.plays()
    events = len(row_stream.rows(0).y)
    specs = [
        (loss, spec) for budget in BUDGETS for loss in LOSSES for spec in learner_specs(events, budget, loss)
    ]
    specs += [
        (loss, spec_of("PROS-N-KONS", "pros-n-kons", LARGEST_DICTIONARY, width=WIDTH, loss=loss))
        for loss in LOSSES
    ]
    specs += [(OURS, spec_of("FORKS practical", "forks practical", budget)) for budget in BUDGETS]
    return [
        StreamTrial(row_stream, spec, run, (("loss", loss),)) for run in range(runs) for loss, spec in specs
    ]


def _panels(rows: Sequence[Row]) -> list[Panel]:
    def panel(loss: str) -> Panel:
        chosen = [row for row in rows if dict(row.key_columns)["loss"] in {loss, OURS}]
        lines = lines_of(chosen, lambda row: row.means["seconds"], "mistakes")
        title = f"KuaiRec, {loss.replace('_', ' ')} loss, budgets {BUDGETS[0]} to {BUDGETS[-1]}"
        return Panel(title, "seconds", "mistakes from the first event, percent", lines, log="x")

    return [panel(loss) for loss in LOSSES]


FIGURE2 = Experiment(
    "Budgets on KuaiRec (FORKS, Figure 2; data: Gao et al., CIKM 2022, CC BY-SA 4.0)",
    ("kuairec",),
    _trials,
    panels=_panels,
)
