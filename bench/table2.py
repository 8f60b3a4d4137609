"""FORKS as printed, on three sets of the paper's Table 2, with mistakes counted in both ways.

The sizes of sketch and map follow the budget B. Stage 1 ends when its buffer is full; Algorithm 1 lets it
have B points, section 5.1 speaks of a buffer of 2 B. Both are run.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from bench.counting import play
from bench.options import Options
from bench.sets import Labelled, read_set
from bench.spread import percent
from forks import Forks, ForksSettings

SMALL = 10_000
PERMUTATIONS = 20


class Printed(NamedTuple):
    """What the paper prints for FORKS, in percent, and the width with which it comes out."""

    mean: float
    deviation: float
    width: float


SETS: Mapping[str, Printed] = MappingProxyType(
    {
        "german": Printed(26.425, 0.562, 50.0),
        "svmguide3": Printed(19.710, 0.557, 2.0),
        "cod-rna": Printed(12.795, 0.360, 100.0),
    }
)


def settings(data: Labelled, width: float, buffers: int, seed: int) -> ForksSettings:
    """Return the paper's section 5.1 for a set: s_p = B, s_m = 0.2 B, k = 0.1 B, rho = floor(0.3 N).

    ``buffers`` is how many times B stage 1 stores.
    """
    n, dimension = data.X.shape
    budget = 50 if n <= SMALL else 100
    return ForksSettings.paper(
        dimension,
        budget=buffers * budget,
        sketch_size=budget,
        landmarks=budget // 5,
        rank=budget // 10,
        cycle=3 * n // 10,
        width=width,
        seed=seed,
    )


def run(options: Options) -> dict[str, Any]:
    """Return figures by set and size of stage 1's buffer."""
    folder = options.folder("libsvm")
    runs = options.runs or PERMUTATIONS
    return {"permutations": runs, "sets": {name: _of(name, folder, runs, options) for name in SETS}}


def _of(name: str, folder: Path, runs: int, options: Options) -> dict[str, Any]:
    printed = SETS[name]
    data = read_set(folder, name)
    figures: dict[str, Any] = {
        "events": len(data.y),
        "width": printed.width,
        "majority": round(100.0 * data.majority, 3),
        "printed": {"mean": printed.mean, "deviation": printed.deviation},
    }
    for key, buffers in (("buffer_B", 1), ("buffer_2B", 2)):
        figures[key] = _figures(data, printed, buffers, runs)
        options.say(f"{name}, {key}: {figures[key]}")
    return figures


def _figures(data: Labelled, printed: Printed, buffers: int, runs: int) -> dict[str, Any]:
    played = [
        play(Forks(settings(data, printed.width, buffers, seed)), data.permuted(np.random.default_rng(seed)))
        for seed in range(runs)
    ]
    authors = percent([each.authors for each in played])
    return {
        "authors": authors,
        "honest": percent([each.honest for each in played]),
        "deviations_from_printed": round((authors["mean"] - printed.mean) / printed.deviation, 2),
    }
