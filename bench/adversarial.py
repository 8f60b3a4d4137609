"""The adversarial stream of the paper's section 5.2: who recovers when labels flip?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.counting import Played, play
from bench.options import Options
from bench.published import play_published
from bench.sets import Labelled, read_set
from bench.spread import percent
from forks import Forks, ForksSettings

BLOCKS = 500
ROUNDS = 10
BUDGET = 200
CYCLE = 5 * (BLOCKS * ROUNDS - BUDGET) // 1000  # rho = 0.005 (N - B), N the rounds of the stream
SHORT_CYCLE = 5 * (1000 - BUDGET) // 1000  # N the rows of german: inferred from the printed figure
RUNS = 20
WIDTHS = {"german": 50.0, "cod-rna": 100.0}
PRINTED = {"german": {"mean": 5.142, "deviation": 0.215}, "cod-rna": {"mean": 6.752, "deviation": 1.647}}


def stream(data: Labelled, chance: np.random.Generator) -> Labelled:
    """Return blocks of one instance each, repeated; the labels of every even block are flipped."""
    chosen = chance.choice(len(data.y), BLOCKS, replace=False)
    flips = np.where(np.arange(1, BLOCKS + 1) % 2 == 0, -1.0, 1.0)
    return Labelled(
        np.repeat(data.X[chosen], ROUNDS, axis=0), np.repeat(data.y[chosen] * flips, ROUNDS, axis=0)
    )


def learners(dimension: int, width: float, seed: int) -> dict[str, ForksSettings]:
    """Return the paper's settings for this stream and `practical`, each with reset and carry-over."""
    s_p = 3 * BUDGET // 4
    paper = ForksSettings.paper(
        dimension,
        budget=BUDGET,
        sketch_size=s_p,
        landmarks=s_p // 5,
        rank=BUDGET // 10,
        cycle=CYCLE,
        width=width,
        seed=seed,
    )
    practical = ForksSettings.practical(dimension, budget=BUDGET, seed=seed)
    return {
        "paper (reset)": paper,
        "paper, 2B": replace(paper, budget=2 * BUDGET),
        "paper, carry-over": replace(paper, carry_over=True),
        "practical (carry-over)": practical,
        "practical, reset, cycle 24": replace(practical, carry_over=False, cycle=CYCLE),
    }


def published(dimension: int, width: float, seed: int) -> dict[str, ForksSettings]:
    """Return settings for the published code: the paper's, a stage 1 of 2 B points, and either cycle."""
    longer = learners(dimension, width, seed)["paper, 2B"]
    return {
        f"as published, 2B, cycle {cycle}": replace(longer, cycle=cycle) for cycle in (CYCLE, SHORT_CYCLE)
    }


def run(options: Options) -> dict[str, Any]:
    """Return figures by set and learner."""
    folder = options.folder("libsvm")
    runs = options.runs or RUNS
    return {
        "runs": runs,
        "blocks": BLOCKS,
        "rounds": ROUNDS,
        "sets": {name: _of(name, folder, runs, options) for name in WIDTHS},
    }


def _of(name: str, folder: Path, runs: int, options: Options) -> dict[str, Any]:
    data = read_set(folder, name)
    played: dict[str, list[Played]] = {}
    for seed in range(runs):
        shown = stream(data, np.random.default_rng(seed))
        for label, settings in learners(data.X.shape[1], WIDTHS[name], seed).items():
            played.setdefault(label, []).append(play(Forks(settings), shown))
        for label, settings in published(data.X.shape[1], WIDTHS[name], seed).items():
            played.setdefault(label, []).append(play_published(settings, shown))
        options.say(f"{name}: {seed + 1} of {runs}")
    figures = {label: _figures(rounds) for label, rounds in played.items()}
    for label, found in figures.items():
        options.say(f"{name}, {label}: {found}")
    return {"printed": PRINTED[name], "learners": figures}


def _figures(played: list[Played]) -> dict[str, Any]:
    """Sum up mistakes over all rounds and, in percent, by the place within a block."""
    places = np.mean([each.wrong.reshape(BLOCKS, ROUNDS).mean(axis=0) for each in played], axis=0)
    return {
        "honest": percent([each.honest for each in played]),
        "authors": percent([each.authors for each in played]),
        "by_place_in_block": [round(100.0 * float(place), 2) for place in places],
    }
