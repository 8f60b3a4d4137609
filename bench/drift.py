"""Mistakes on invented streams whose users and videos drift, with each kind of running features.

Labels are delayed by the play. How fast effects fade was not chosen on these streams.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np

from bench.kuairec import in_time_order
from bench.options import Options
from forks import Forks
from forks.arrays import FloatArray
from forks.validation import auc
from pipeline.config.feature_layout import FeatureKind
from pipeline.config.settings import Learner
from pipeline.config.stream import KUAIREC
from pipeline.features.feature_set import FEATURES, FeatureSet
from pipeline.model.learner_settings import learner_settings
from pipeline.sources.synth.files import write_files
from pipeline.sources.synth.size import Size

DRIFTS: Final = (1.0, 5.0, 20.0)
RUNS: Final = 5
FIRST_SEED: Final = 11
EVENTS: Final = 60_000
USERS: Final = 400
VIDEOS: Final = 1_000
DAYS: Final = 60


def run(options: Options) -> dict[str, Any]:
    """Return means over seeds by drift and kind of features, and paired differences."""
    runs, found = options.runs or RUNS, {}
    for drift in DRIFTS:
        played: dict[FeatureKind, list[tuple[float, float]]] = {kind: [] for kind in FEATURES}
        for seed in range(FIRST_SEED, FIRST_SEED + runs):
            with TemporaryDirectory() as name:
                folder = Path(name)
                write_files(folder, Size(options.events or EVENTS, USERS, VIDEOS, DAYS, seed, drift))
                for kind, rows in played.items():
                    rows.append(_play(folder, kind))
        found[f"{drift:g}"] = _figures(np.array(played["effects"]), np.array(played["running"]))
        options.say(f"drift {drift:g}: {found[f'{drift:g}']}")
    return {"runs": runs, "drifts": found}


def _play(folder: Path, kind: FeatureKind) -> tuple[float, float]:
    """Return percent of mistakes and AUC of the scores that each event got."""
    stream = in_time_order(folder, delayed=True, kind=kind)
    learner = Forks(learner_settings(Learner(), 0, features=FeatureSet.of(KUAIREC, kind)))
    scores = learner.run(np.ascontiguousarray(stream.X), stream.y, stream.order)
    watched = stream.y > 0
    area = auc(scores, watched)
    if area is None:
        raise ValueError("the labels of the data are all the same, so there is no area under the curve")
    return 100.0 * float(np.mean((scores > 0) != watched)), area


def _figures(effects: FloatArray, running: FloatArray) -> dict[str, Any]:
    """Return the means of both, and effects less running means with standard errors."""
    difference = effects - running
    error = difference.std(axis=0, ddof=1) / np.sqrt(len(effects))
    return {
        "running": np.round(running.mean(axis=0), 4).tolist(),
        "effects": np.round(effects.mean(axis=0), 4).tolist(),
        "difference": np.round(difference.mean(axis=0), 4).tolist(),
        "standard_error": np.round(error, 4).tolist(),
    }
