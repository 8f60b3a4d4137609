from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.drift import DRIFTS, _figures, run
from bench.options import Options


def test_differences_are_paired() -> None:
    effects, running = np.array([[20.0, 0.8], [30.0, 0.7]]), np.array([[21.0, 0.7], [31.0, 0.6]])
    found = _figures(effects, running)
    assert found["difference"] == [-1.0, 0.1]
    assert found["standard_error"] == [0.0, 0.0]
    assert _figures(effects, running[::-1])["standard_error"] == pytest.approx([10.0, 0.1])


def test_every_drift_is_played(tmp_path: Path) -> None:
    found = run(Options(2, tmp_path, quiet=True, events=600))
    assert list(found["drifts"]) == [f"{drift:g}" for drift in DRIFTS]
    assert all(0.0 < each["effects"][0] < 60.0 for each in found["drifts"].values())
