"""Variants of learners whose printed figures in FORKS, Tables 2 to 4, or SkeGD, Table 1, are not reproduced.

Each variant runs on the streams of the tables and changes one setting of one learner: one that the papers
leave open, one in which `forks.rivals` departs from them, or FOGD's step of 0.002 on unscaled cosines and
sines, the default of its authors' toolbox. The papers give only the grid of Gaussian widths, 2^-5 to 2^7, so
some variants run with several widths of that grid. `research.findings.tried` decides which variants explain
which figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from research.experiments import adversary, fixed_budget
from research.harness.experiment import Data, Experiment
from research.harness.learners import LearnerSpec
from research.harness.printed import SKEGD_TABLE_1, TABLE_2, TABLE_3, TABLE_4, PrintedResults
from research.harness.streams import Flipped, Permuted, Stream
from research.harness.trials import StreamTrial, Trial

GRID = tuple(round(2.0 ** (half / 2.0), 2) for half in range(15))
"""Widths from 2^0 to 2^7 in the paper's steps; narrower ones, from 2^-5 on, would take too long."""
WIDE = GRID[8:]
"""Widths with which a dictionary stays small."""


def _unchanged(spec: LearnerSpec) -> LearnerSpec:
    return spec


@dataclass(frozen=True)
class Change:
    """One variant: what differs from the tables.

    Attributes
    ----------
    name
        Heading of the table's column.
    apply
        Function that turns the spec of the tables into the changed one.
    widths
        Widths of the Gaussian kernel to try; none for the tables' own width.
    file_order
        Whether a game's instances are the set's first rows in each run.
    """

    name: str
    apply: Callable[[LearnerSpec], LearnerSpec] = _unchanged
    widths: tuple[float, ...] = ()
    file_order: bool = False


def with_doubled_budget(spec: LearnerSpec) -> LearnerSpec:
    """Return the spec with a budget of 2 B."""
    return spec.replace(budget=2 * budget_of(spec))


def with_buffer(times: float) -> Callable[[LearnerSpec], LearnerSpec]:
    """Return a change that makes NOGD store ``times`` B points first, with its rank of B / 10."""

    def apply(spec: LearnerSpec) -> LearnerSpec:
        budget = budget_of(spec)
        return spec.replace(budget=round(times * budget), rank=budget // 10)

    return apply


def with_step(eta: float) -> Callable[[LearnerSpec], LearnerSpec]:
    """Return a change that gives FOGD steps of eta on cosines and sines that are not divided by sqrt(D)."""
    return lambda spec: spec.replace(step=eta * 4 * budget_of(spec))


def budget_of(spec: LearnerSpec) -> int:
    """Return the budget of a spec, or raise a ValueError if it has none."""
    if spec.budget is None:
        raise ValueError(f"{spec.name} has no budget")
    return spec.budget


AS_IT_IS = Change("as it is")
ANOTHER_WIDTH = Change("another width", widths=GRID)
FILE_ORDER = Change("the file's first rows, another width", widths=GRID[::2], file_order=True)
TWICE = Change("2 B", with_doubled_budget)
TENTH = Change("beta = 0.1", lambda one: one.replace(beta=0.1))
TENTH_WIDE = Change("beta = 0.1, another width", TENTH.apply, WIDE)
PUBLISHED = Change("as published", lambda one: one.replace(kind="forks published"))

IN_TABLE_2: Mapping[str, tuple[Change, ...]] = MappingProxyType(
    {
        "RBP": (
            AS_IT_IS,
            TWICE,
            Change("learns from each loss", lambda one: one.replace(kind="rbp eager")),
            ANOTHER_WIDTH,
        ),
        "BPA-S": (
            AS_IT_IS,
            TWICE,
            Change("C = 0.2", lambda one: one.replace(aggressiveness=0.2)),
            ANOTHER_WIDTH,
        ),
        "Projectron": (
            AS_IT_IS,
            TWICE,
            Change("learns from each loss", lambda one: one.replace(kind="projectron eager")),
            ANOTHER_WIDTH,
            Change("Projectron++", lambda one: one.replace(kind="projectron++")),
            Change("Projectron++, another width", lambda one: one.replace(kind="projectron++"), GRID),
        ),
        "BOGD": (
            AS_IT_IS,
            TWICE,
            Change("lambda = 0.01", lambda one: one.replace(decay=0.01)),
            Change("gamma = 1", lambda one: one.replace(largest=1.0)),
            ANOTHER_WIDTH,
            Change("gamma = 1, another width", lambda one: one.replace(largest=1.0), GRID),
        ),
        "FOGD": (
            AS_IT_IS,
            Change("eta = 0.2, as they are", with_step(0.2)),
            Change("eta = 0.002, as they are", with_step(0.002)),
            ANOTHER_WIDTH,
            Change("eta = 0.2, another width", with_step(0.2), GRID),
            Change("eta = 0.002, another width", with_step(0.002), GRID),
        ),
        "NOGD": (
            AS_IT_IS,
            Change("buffer of 2 B", with_buffer(2.0)),
            Change("buffer of 3.34 B", with_buffer(3.34)),
            Change("rank 0.2 B", lambda one: one.replace(rank=budget_of(one) // 5)),
            ANOTHER_WIDTH,
            Change("buffer of 2 B, another width", with_buffer(2.0), GRID),
        ),
        "SkeGD": (
            AS_IT_IS,
            Change("stage 1 of B", lambda one: one.replace(stage_one=1)),
            ANOTHER_WIDTH,
        ),
        "PROS-N-KONS": (
            AS_IT_IS,
            TENTH,
            Change("gamma = 10", lambda one: one.replace(gamma=10.0)),
            Change("alpha = 1", lambda one: one.replace(alpha=1.0)),
            TENTH_WIDE,
        ),
        "FORKS": (
            AS_IT_IS,
            Change("stage 1 of B", lambda one: one.replace(stage_one=1)),
            PUBLISHED,
            ANOTHER_WIDTH,
        ),
        "FORKS practical": (
            AS_IT_IS,
            Change("columns as they are", lambda one: one.replace(standardize=False)),
            Change("alpha = 10", lambda one: one.replace(alpha=10.0)),
        ),
    }
)
"""Variants by learner, in the order of a table's columns."""

IN_GAMES: Mapping[str, tuple[Change, ...]] = MappingProxyType(
    {
        "BOGD": (
            AS_IT_IS,
            TWICE,
            Change("lambda = 0.01", lambda one: one.replace(decay=0.01)),
            Change("gamma = 1", lambda one: one.replace(largest=1.0)),
            ANOTHER_WIDTH,
        ),
        "FOGD": (AS_IT_IS, Change("eta = 0.002, as they are", with_step(0.002)), ANOTHER_WIDTH, FILE_ORDER),
        "NOGD": (
            AS_IT_IS,
            Change("buffer of 2 B", with_buffer(2.0)),
            Change("B = 100", lambda one: one.replace(budget=100)),
            ANOTHER_WIDTH,
            FILE_ORDER,
        ),
        **{
            f"SkeGD, theta = {rate}": (AS_IT_IS, Change("another width", widths=GRID[::2]))
            for rate in adversary.RATES_OF_SKEGD
        },
        "PROS-N-KONS": (
            AS_IT_IS,
            TENTH,
            Change("gamma = 10", lambda one: one.replace(gamma=10.0)),
            Change(FILE_ORDER.name, widths=GRID[4::4], file_order=True),
        ),
        "FORKS": (
            AS_IT_IS,
            Change("stage 1 of B", lambda one: one.replace(stage_one=1)),
            PUBLISHED,
            Change(
                "as published, rho = 4",
                lambda one: one.replace(
                    kind="forks published", cycle=adversary.cycle_of(adversary.ROWS_OF_GERMAN)
                ),
            ),
            ANOTHER_WIDTH,
        ),
    }
)
"""Variants on streams with flipped labels, by learner."""

PRINTED: PrintedResults = MappingProxyType({**TABLE_2, **TABLE_3, **TABLE_4, **SKEGD_TABLE_1})
GAMES = MappingProxyType(
    {f"{name}-{number}": (name, 10 * number) for number in (1, 2) for name in adversary.SETS}
)
"""Set and rounds of a block, by stream."""


def _trials(stream: str, data: Data, runs: int) -> Sequence[Trial]:
    trials_of = _in_a_game if stream in GAMES else _in_table_2
    return [trial for run in range(runs) for trial in trials_of(stream, data, run)]


def _in_table_2(stream: str, data: Data, run: int) -> Iterator[Trial]:
    source = data.labelled(stream)
    rows = len(source.read().y)
    for learner, changes in IN_TABLE_2.items():
        for change, width in _variants(changes, fixed_budget.WIDTHS[stream]):
            spec = _named(learner, fixed_budget.learner_specs(rows, width))
            yield _trial(Permuted(source), spec, change, width, run)


def _in_a_game(stream: str, data: Data, run: int) -> Iterator[Trial]:
    name, rounds = GAMES[stream]
    for file_order in (False, True):
        row_stream = Flipped(data.labelled(name), stream, adversary.BLOCKS, rounds, file_order)
        for learner in (learner for learner in IN_GAMES if learner in PRINTED[stream]):
            for change, width in _variants(IN_GAMES[learner], fixed_budget.WIDTHS[name], file_order):
                spec = _named(learner, adversary.learner_specs(adversary.BLOCKS * rounds, width))
                yield _trial(row_stream, spec, change, width, run)


def _variants(
    changes: Sequence[Change], own: float, file_order: bool = False
) -> Iterator[tuple[Change, float]]:
    """Yield the changes, each with its widths, that use rows in the file's order or else drawn rows."""
    for change in changes:
        if change.file_order == file_order:
            for width in change.widths or (own,):
                yield change, width


def _named(name: str, learner_specs: Sequence[LearnerSpec]) -> LearnerSpec:
    (spec,) = (spec for spec in learner_specs if spec.name == name)
    return spec


def _trial(row_stream: Stream, spec: LearnerSpec, change: Change, width: float, run: int) -> Trial:
    return StreamTrial(row_stream, change.apply(spec), run, (("change", change.name), ("width", width)))


TRIED = Experiment(
    "What was tried for figures that do not come out (FORKS, Tables 2 to 4; SkeGD, Table 1)",
    (*fixed_budget.WIDTHS, *GAMES),
    _trials,
    PRINTED,
    runs=5,
)
