"""Mistakes and log loss by the number of events from one change of the feature map to the next.

Streams are longer than 20 cycles, after which a cycle has its full length: invented plays, and invented rows
that change at once. Other seeds of the learner show what chance alone does to the same figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from bench.changes import changing_kernel, changing_stream
from bench.options import Options
from bench.rows import kuairec, scores, with_offset
from bench.summary import mean_and_error
from forks import ForksSettings
from forks.arrays import BoolArray, FloatArray
from pipeline.sources.synth.files import write_files
from pipeline.sources.synth.size import Size

RUNS: Final = 8
BASE: Final = str(ForksSettings.practical(1).cycle)
"""The cycle of the preset."""
OTHER_SEED: Final = f"{BASE}, other seed"
VARIANTS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        BASE: {},
        **{str(cycle): {"cycle": cycle} for cycle in (2_000, 4_000, 16_000)},
        OTHER_SEED: {"seed": 1_000},
    }
)
"""Settings that differ from the preset."""
PLAYS: Final = 400_000
PHASE: Final = 60_000
"""Events from one change of the changing streams to the next."""


class _Events(NamedTuple):
    """Rows, labels, and the settings of the learner that sees them."""

    X: FloatArray
    positive: BoolArray
    settings: Mapping[str, Any]


def run(options: Options) -> dict[str, Any]:
    """Return means, and differences to the preset's cycle with their standard errors, by stream."""
    runs = options.runs or RUNS
    found: dict[str, Any] = {"runs": runs}
    for name, streams in (
        ("invented plays", _plays(runs)),
        ("changes", _changing(changing_stream, runs)),
        ("changing kernel", _changing(changing_kernel, runs)),
    ):
        found[name] = _differences(streams)
        options.say(f"{name}: {found[name]}")
    return found


def _plays(runs: int) -> Iterator[_Events]:
    for seed in range(runs):
        with TemporaryDirectory() as folder:
            write_files(Path(folder), Size(events=PLAYS, users=4_000, videos=6_000, seed=100 + seed))
            rows = kuairec(Path(folder))
        yield _Events(rows.of_use(), rows.positive, with_offset())


def _changing(stream: Callable[[int, int], tuple[FloatArray, FloatArray]], runs: int) -> Iterator[_Events]:
    for seed in range(runs):
        X, y = stream(9_000 + seed, PHASE)
        yield _Events(X, y > 0.0, {})


def _differences(streams: Iterator[_Events]) -> dict[str, Any]:
    """Return the figures by cycle: those of the preset, and how those of the others differ in each stream."""
    figures: dict[str, list[tuple[float, float]]] = {name: [] for name in VARIANTS}
    for X, positive, settings in streams:
        for name, changes in VARIANTS.items():
            own = scores(X, positive, **settings, **changes)
            wrong = 100.0 * float(np.mean((own > 0.0) != positive))
            losses = np.logaddexp(0.0, np.where(positive, -own, own))
            figures[name].append((wrong, float(losses.mean())))
    base = np.array(figures[BASE])
    found: dict[str, Any] = {}
    for name, values in figures.items():
        shown = np.array(values) if name == BASE else np.array(values) - base
        found[name] = {
            "mistakes": mean_and_error(shown[:, 0], digits=4),
            "log_loss": mean_and_error(shown[:, 1], digits=6),
        }
    return found
